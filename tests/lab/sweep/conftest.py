"""A task that a small model can learn: whether a text speaks of a river."""

import json

import numpy as np
import pytest

from isoscope.lab.sweep.encode import Encoder
from isoscope.lab.sweep.examples import read_task
from isoscope.lab.sweep.fine_tune import Trainer
from isoscope.lab.sweep.spec import SweepSpec
from isoscope.study.model import subject_of

TEXT = (
    "the boats carry people of town a small fire in hills was seen from road before rain "
    "began nobody knew number house where old captain kept his maps spring market opens early"
)
WORDS = TEXT.split()


@pytest.fixture(scope="session")
def rows():
    """Return 160 texts with a label, a score and a second text."""
    rng = np.random.default_rng(5)
    found = []
    for number in range(160):
        words = rng.choice(WORDS, size=6 + number % 7).tolist()
        if number % 2:
            words[number % len(words)] = "river"
        text = " ".join(words)
        found.append(
            {
                "text": text,
                "other": " ".join(words[::-1]),
                "stars": "wet" if number % 2 else "dry",
                "score": 4.0 * (number % 2) + (number % 3) / 2,
                "answer": words[2],
            }
        )
    return found


@pytest.fixture(scope="session")
def reviews(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("examples") / "reviews.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def trainer(tiny, reviews):
    """Return a function that makes a trainer of the small model for a kind of task."""

    def made(length=32, **asked):
        subject = subject_of(tiny)
        options = asked or {"label": "stars"}
        task = read_task(SweepSpec.of(model="m", data=str(reviews), **options))
        encoder = Encoder(subject, length)
        train, test = (encoder.encode(task, each) for each in (task.train, task.test))
        return Trainer(subject, task, encoder, train, test)

    return made
