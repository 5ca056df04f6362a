"""isoscope nursery train: checkpoints, metrics, seeds, kills, and what it refuses."""

import csv
import json

import numpy as np
import pytest
from nursery_texts import TEXTS, TINY
from transformers import AutoModelForImageClassification, AutoModelForMaskedLM, AutoTokenizer

import isoscope as iso
import isoscope.lab.nursery.worker as worker
from isoscope.errors import (
    ConfigError,
    ResumeError,
    RunExistsError,
    SourceError,
    StoreError,
    UndefinedError,
    UnknownNameError,
)
from isoscope.lab.nursery.figures import KINDS, draw_figures
from isoscope.lab.nursery.spec import Training

LANGUAGE = {"language": "zipf", "vocabulary": 64, **TINY}
WEIGHTS = "model.safetensors"


def train(folder=None, **options):
    return iso.nursery_train(
        **{**LANGUAGE, "steps": 4, "checkpoints": 2, **options}, output=folder
    )


def weights(folder, step=4):
    return (folder / f"step_{step}" / WEIGHTS).read_bytes()


def test_the_folder_has_checkpoints_metrics_and_held_out_text(trained):
    names = {each.name for each in trained.iterdir()}
    assert {"step_0", "step_1", "step_2", "step_3", "metrics.csv", "held_out.txt"} <= names
    rows = list(csv.DictReader((trained / "metrics.csv").open()))
    assert list(rows[0]) == ["step", "tokens", "loss", "held_out_loss"]
    assert [row["step"] for row in rows] == ["0", "1", "2", "3"]
    assert [row["tokens"] for row in rows] == ["0", "64", "128", "192"]
    assert rows[0]["loss"] == rows[1]["loss"]  # of the first batch, before any step
    held_out = (trained / "held_out.txt").read_text().splitlines()
    assert len(held_out) == 6 and set(held_out) < set(TEXTS)
    assert AutoTokenizer.from_pretrained(trained / "step_3")("hé")["input_ids"][0] > 2


def test_the_folder_is_a_run_that_can_be_read_and_replaced(trained, tmp_path):
    readings = iso.read(trained)
    assert {each.measure for each in readings} == {"loss", "held-out-loss"}
    folder = tmp_path / "run"
    train(folder)
    before = weights(folder)
    with pytest.raises(RunExistsError, match="which exists"):
        train(folder)
    train(folder, seed=1, overwrite=True)
    assert weights(folder) != before
    (folder / "notes.txt").touch()
    with pytest.raises(StoreError, match=r"also holds 'notes.txt'"):
        train(folder, overwrite=True)


def test_a_series_of_checkpoints_is_a_trajectory_with_metrics(trained):
    found = iso.trajectory(
        trained,
        trained / "held_out.txt",
        metrics=trained / "metrics.csv",
        sites=["norm.out"],
        measures=["mean-cosine"],
        no_theories=True,
    )
    course = next(each for each in found if each.measure == "mean-cosine")
    assert course.steps == [0, 1, 2, 3]
    assert {link.metric for link in course.metrics} == {"loss", "held_out_loss"}


def test_the_same_seed_gives_the_same_weights_and_another_one_does_not(tmp_path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        train(tmp_path / name, seed=seed)
    assert weights(tmp_path / "a") == weights(tmp_path / "b")
    assert weights(tmp_path / "a") != weights(tmp_path / "c")
    assert weights(tmp_path / "a") != weights(tmp_path / "a", 0)


class Killed(BaseException):
    """The process ends: nothing is tried again."""


KILLED = {
    "plain": {},
    "masks": {"objective": "masked"},
    "dropout": {
        "language": None,
        "vocabulary": 280,
        "corpus": TEXTS,
        "tokenizer": "bpe",
        "arch": "gpt2",
    },
    "attached": {"penalty": "istar", "weight": 0.5, "watch": 2},
}


def every_way(kinds):
    """Return kinds of training with both patiences; only the first with the second is quick."""
    for number, (name, options) in enumerate(kinds.items()):
        yield pytest.param(options, 0.0, id=f"every step-{name}")
        marks = [pytest.mark.slow] if number else []
        yield pytest.param(options, 1e9, id=f"checkpoints-{name}", marks=marks)


@pytest.mark.parametrize(("options", "patience"), list(every_way(KILLED)))
def test_a_killed_training_resumes_to_the_same_weights(
    options, patience, tmp_path, monkeypatch
):
    monkeypatch.setattr(worker, "PATIENCE", patience)
    train(tmp_path / "whole", **options, steps=6)

    def kill(done, _total):
        if done >= 5 * 64:
            raise Killed

    with pytest.raises(Killed):
        train(tmp_path / "killed", **options, steps=6, progress=kill)
    assert not (tmp_path / "killed" / "run.json").exists()
    train(tmp_path / "killed", **options, steps=6)
    assert weights(tmp_path / "whole", 6) == weights(tmp_path / "killed", 6)
    for name in ("metrics.csv", *(["watch.csv"] if "watch" in options else [])):
        ours, theirs = (tmp_path / each / name for each in ("whole", "killed"))
        assert ours.read_text() == theirs.read_text()


def test_losses_and_both_entropies_are_returned_and_printed():
    said = []
    found = train(say=said.append, steps=3)
    assert [each.step for each in found] == [0, 1, 3]
    assert found.shared["floor"] < found.shared["unigram_entropy"] < np.log(64) + 0.01
    assert "unigram entropy of" in found.remarks[0] and "is known" in found.remarks[1]
    assert found.shared["parameters"] - found.shared["inner_parameters"] == 2 * 67 * 16
    assert said[0].startswith("step 0: loss 4.") and "tokens/s" in said[1]
    line = json.loads(found.to_json().splitlines()[-1])
    assert line["step"] == 3 and line["held_out_loss"] == found[-1].held_out_loss


def test_it_learns():
    found = train(steps=60, learning_rate=0.02, batch=8)
    assert found[-1].held_out_loss < found[0].held_out_loss - 0.2


@pytest.mark.parametrize("arch", ["gpt_neox", "gpt2", "llama", "bert"])
def test_families_come_from_their_own_configs(arch, tmp_path):
    train(tmp_path / arch, arch=arch, steps=2, checkpoints=1)
    config = json.loads((tmp_path / arch / "step_2" / "config.json").read_text())
    assert config["model_type"] == arch
    if arch == "bert":
        AutoModelForMaskedLM.from_pretrained(tmp_path / arch / "step_2")


def test_a_vision_model_learns_labels_and_its_trajectory_is_measured(tmp_path):
    options = {each: TINY[each] for each in ("width", "heads", "layers", "threads")}
    found = iso.nursery_train(
        arch="vit", **options, batch=8, steps=2, checkpoints=2, output=tmp_path / "vit"
    )
    assert found.shared["unigram_entropy"] == pytest.approx(np.log(8))
    AutoModelForImageClassification.from_pretrained(tmp_path / "vit" / "step_2")
    courses = iso.trajectory(
        tmp_path / "vit",
        tmp_path / "vit" / "held_out",
        sites=["norm.out"],
        measures=["mean-cosine"],
        tokens=200,
        no_theories=True,
    )
    assert courses[0].steps == [0, 1, 2]


@pytest.mark.slow
def test_a_vision_model_tells_figures_apart_within_300_steps():
    found = iso.nursery_train(arch="vit", width=64, steps=300, checkpoints=1, threads=1)
    assert found[-1].held_out_loss < np.log(8) - 1


def test_figures_are_balanced_and_can_be_told_apart():
    images, labels = draw_figures(64, (0,))
    assert images.shape == (64, 32, 32, 3) and images.dtype == np.uint8
    assert np.array_equal(np.bincount(labels), np.full(len(KINDS), 8))
    assert np.array_equal(images, draw_figures(64, (0,))[0])


def test_a_loss_that_is_not_finite_names_its_step_and_keeps_what_there_is(tmp_path):
    with pytest.raises(
        UndefinedError, match=r"diverged: the .*loss .* step \d is NaN"
    ) as caught:
        train(tmp_path / "run", learning_rate=1e38, steps=6, checkpoints=6)
    assert caught.value.slug == "nursery-diverged"
    assert (tmp_path / "run" / "step_0" / WEIGHTS).is_file()
    assert iso.read(tmp_path / "run")


REFUSED = [
    ({"language": None, "corpus": [TEXTS[0][:50]]}, ConfigError, "at least 64 tokens for one"),
    ({"language": None, "corpus": [TEXTS[0][:50]], "tokenizer": "bpe", "vocabulary": 5000},
     ConfigError, "at least 64 tokens for one batch and 16 held out, got 46 and 6"),
    ({"language": None, "corpus": TEXTS, "tokenizer": "bpe", "vocabulary": 5000}, ConfigError,
     "supports a vocabulary of 5000, got one of"),
    ({"language": None, "corpus": TEXTS, "tokenizer": "bpe", "vocabulary": 50}, ConfigError,
     "a vocabulary of at least 259 for text, got 50"),
    ({"vocabulary": 50}, ConfigError, "expected a multiple of 16 words"),
    ({"corpus": TEXTS[0]}, ConfigError, "expected a text or a synthetic language"),
    ({"arch": "gpt2", "mixer": "convolution"}, ConfigError, "cannot set mixer"),
    ({"arch": "bert", "objective": "causal"}, ConfigError, "which predicts masked tokens"),
    ({"norm_place": "post", "residual": "parallel"}, ConfigError, "cannot set residual"),
    ({"width": 15}, ConfigError, "expected a width that 2 heads divide, got 15"),
    ({"arch": "vit"}, ConfigError, "cannot train vit on texts"),
    ({"mixer": "mamba"}, UnknownNameError, "no mixer is called 'mamba'"),
    ({"penalty": "nice"}, UnknownNameError, "no penalty is called 'nice'"),
    ({"steps": 0}, ConfigError, "expected at least 1 as steps, got 0"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "kind", "match"), REFUSED)
def test_what_cannot_be_done_is_refused(options, kind, match, tmp_path):
    with pytest.raises(kind) as caught:
        train(tmp_path / "run", **options)
    assert match in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_token_files_are_no_texts(tmp_path):
    np.save(tmp_path / "ids.npy", np.arange(100))
    with pytest.raises(SourceError, match="expected texts to train on, got tokens"):
        train(language=None, corpus=tmp_path / "ids.npy")


def test_the_folder_of_another_nursery_is_not_resumed(tmp_path):
    def kill(done, _total):
        if done:
            raise Killed

    with pytest.raises(Killed):
        train(tmp_path / "run", progress=kill)
    with pytest.raises(ResumeError, match="with width 32: it was begun with 16"):
        train(tmp_path / "run", width=32)
    train(tmp_path / "run", width=32, overwrite=True)


def test_steps_are_log_spaced_and_each_stands_once():
    assert Training(steps=600, checkpoints=12).saved_steps == [
        0, 1, 2, 3, 6, 10, 18, 33, 59, 105, 188, 335, 600,
    ]  # fmt: skip
    assert Training(steps=2, checkpoints=9).saved_steps == [0, 1, 2]
    assert Training(steps=7, checkpoints=1).saved_steps == [0, 7]


@pytest.mark.parametrize(
    ("options", "slug"),
    [
        ({"width": 65536, "layers": 100}, "nursery-memory"),
        ({"checkpoints": 10**9}, "number-range"),
    ],
)
def test_what_no_machine_has_room_for_is_refused(options, slug):
    with pytest.raises(ConfigError) as caught:
        iso.nursery_train(**options)
    assert caught.value.slug == slug
