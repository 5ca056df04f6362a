"""How the tests of measures get a number: by the library call, in blocks, or from a view."""

import numpy as np
import pytest

from isoscope.accumulate import ACCUMULATORS, ArrayBlock
from isoscope.accumulate.survey import SECOND_PASS, Survey
from isoscope.api import measure
from isoscope.errors import TooFewRowsError
from isoscope.hashing import named_documents
from isoscope.measures import MEASURES
from isoscope.measures.view import Summaries
from isoscope.study.lanes import run
from isoscope.study.reading import kinds_for, read_survey, second_passes
from isoscope.study.rows import ROWS as PLACE
from isoscope.types import Chunk

FIRST = tuple(kind for kind in ACCUMULATORS if kind not in SECOND_PASS)


def readings(rows, *names, **options):
    """Return the readings of rows by name; every measure there is where none is named."""
    found = measure(rows, measures=list(names) or None, all=not names, **options)
    return {each.measure: each for each in found}


def cut_up(rows, *names, size, documents=None):
    """Return the readings of rows that arrive in chunks of this size, as a stream's would."""
    names = names or tuple(MEASURES)
    kinds = kinds_for(names)
    first = [kind for kind in kinds if kind not in SECOND_PASS]
    second = [kind for kind in kinds if kind in SECOND_PASS]

    def chunks():
        for start in range(0, len(rows), size):
            part = slice(start, start + size)
            yield Chunk(
                rows[part], "rows", start, None if documents is None else documents[part]
            )

    survey, _ = run(chunks(), PLACE, first)
    if second:
        start = Survey({PLACE: second_passes(survey.held[PLACE], second)})
        again, _ = run(chunks(), PLACE, second, start=start)
        survey.held[PLACE].update(again.held[PLACE])
    return {each.measure: each for each in read_survey(survey, names)[0]}


def summaries_of(rows, documents=None):
    """Return what every accumulator of a first pass knows of rows."""
    rows = np.asarray(rows)
    if documents is None:
        block = ArrayBlock(rows)
    else:
        keys = named_documents(np.asarray(documents))
        fresh = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
        lengths = np.diff(np.r_[fresh, len(keys)])
        positions = np.arange(len(keys)) - np.repeat(fresh, lengths)
        block = ArrayBlock(rows, keys, positions.astype(np.uint64))
    summaries = Summaries()
    for kind in FIRST:
        accumulator = kind(rows.shape[1])
        accumulator.update(block)
        try:
            summaries[kind] = accumulator.finalize()
        except TooFewRowsError as problem:
            summaries[kind] = problem
    return summaries


def survey_of_tokens(rows, documents, tokens, names, *, size=None, bands=None):
    """Return a survey of rows of tokens, shown in blocks of so many documents."""
    rows, documents, tokens = (np.asarray(part) for part in (rows, documents, tokens))
    keys = named_documents(documents)
    fresh = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
    ends = np.r_[fresh[1:], len(keys)]
    positions = np.arange(len(keys)) - np.repeat(fresh, ends - fresh)
    survey = Survey()
    step = size or len(fresh)
    for first in range(0, len(fresh), step):
        part = slice(fresh[first], ends[min(first + step, len(fresh)) - 1])
        block = ArrayBlock(
            rows[part],
            keys[part],
            positions[part].astype(np.uint64),
            tokens=tokens[part],
            frequency=None if bands is None else bands[tokens[part]],
        )
        survey.update(PLACE, kinds_for(names, causes=bands is not None), block)
    return survey


def of_tokens(rows, documents, tokens, *names, **how):
    """Return the readings of rows of tokens by name."""
    found, _ = read_survey(survey_of_tokens(rows, documents, tokens, names, **how), names)
    return {each.measure: each for each in found}


@pytest.fixture(scope="session")
def token_survey():
    """Rows, documents, tokens and names to a survey."""
    return survey_of_tokens


@pytest.fixture(scope="session")
def token_readings():
    """Rows, documents, tokens and names to readings by name."""
    return of_tokens


@pytest.fixture(scope="session")
def words():
    """Rows of 60 documents with the tokens they are of: a type has a direction of its own."""
    rng = np.random.default_rng(12)
    documents = np.repeat(np.arange(60), 9)
    tokens = np.minimum(rng.zipf(1.4, size=len(documents)), 70) - 1
    own = rng.normal(size=(70, 12))[tokens]
    shared = rng.normal(size=(60, 12))[documents]
    return own + 0.6 * shared + rng.normal(size=own.shape) + 0.4, documents, tokens


@pytest.fixture(scope="session")
def measured():
    """Rows and names of measures to readings by name."""
    return readings


@pytest.fixture(scope="session")
def value():
    """Rows and the name of one measure to its value."""
    return lambda rows, name, **options: readings(rows, name, **options)[name].value


@pytest.fixture(scope="session")
def in_blocks():
    """Rows, names and a size of chunks to readings by name."""
    return cut_up


@pytest.fixture(scope="session")
def summaries():
    """Rows, and documents if there are any, to summaries."""
    return summaries_of


@pytest.fixture(scope="session")
def viewed():
    """A kind of view and rows to that view of them."""
    return lambda view, rows, documents=None: summaries_of(rows, documents).view(view)
