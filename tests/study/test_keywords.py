"""Python functions have the signature of their spec, and are checked by it."""

import inspect
import pickle
from pathlib import Path

import numpy as np
import pytest

import isoscope as iso
from isoscope.display import Results
from isoscope.errors import ConfigError, EngineError, UnknownNameError
from isoscope.study.keywords import execution_of
from isoscope.study.option import named_options
from isoscope.study.spec import Execution
from isoscope.study.survey import SurveySpec
from isoscope.types import Reading

ROWS = np.random.default_rng(0).normal(size=(300, 8))


def test_signatures_show_every_option_with_type_and_default():
    found = inspect.signature(iso.survey).parameters
    for name, option in SurveySpec.options().items():
        assert found[name].default == (
            inspect.Parameter.empty if option.required else option.default
        )
        assert found[name].annotation is not inspect.Parameter.empty
    assert set(found) == {
        *SurveySpec.options(), *named_options(Execution), "progress", "say", "status"
    }  # fmt: skip
    assert list(found)[:2] == ["model", "corpus"]
    assert found["length"].kind is inspect.Parameter.KEYWORD_ONLY


def test_arguments_may_be_named_or_not():
    by_place = iso.measure(ROWS, measures=["isoscore"])
    by_name = iso.measure(vectors=ROWS, measures="isoscore")
    assert [r.value for r in by_place] == [r.value for r in by_name]


def test_mistakes_in_a_call_are_those_of_python():
    with pytest.raises(TypeError, match="no option is called 'mesures'") as caught:
        iso.measure(ROWS, mesures=["isoscore"])
    assert isinstance(caught.value, UnknownNameError)
    assert "did you mean 'measures'?" in caught.value.hint
    with pytest.raises(TypeError, match="missing a required argument: 'vectors'"):
        iso.measure()
    with pytest.raises(TypeError, match="multiple values for argument 'vectors'"):
        iso.measure(ROWS, vectors=ROWS)
    with pytest.raises(TypeError, match="too many positional"):
        iso.measure(ROWS, ["isoscore"])


def test_where_it_runs_is_checked_too():
    with pytest.raises(UnknownNameError, match="no engine is called 'pol'") as caught:
        iso.measure(ROWS, engine="pol")
    assert "did you mean 'pool'?" in caught.value.hint
    with pytest.raises(ConfigError, match="at least 1 as workers, got 0"):
        iso.measure(ROWS, engine="pool", workers=0)
    with pytest.raises(ConfigError, match="cannot use 2 workers with the engine here"):
        iso.measure(ROWS, workers=2)
    with pytest.raises(EngineError, match="cannot hand vectors to the engine pool"):
        iso.measure(ROWS, engine="pool")


def test_paths_may_be_path_objects(tmp_path):
    np.save(tmp_path / "v.npy", ROWS)
    iso.measure(tmp_path / "v.npy", output=tmp_path / "run", measures=["isoscore"])
    assert (tmp_path / "run" / "run.json").is_file()
    assert execution_of({"output": Path("a") / "b"}) == Execution(output=str(Path("a") / "b"))


def test_the_signature_names_what_comes_back():
    assert inspect.signature(iso.measure).return_annotation == Results[Reading]


@pytest.mark.parametrize("name", iso.__all__)
def test_public_functions_survive_a_process_border(name):
    function = getattr(iso, name)
    assert pickle.loads(pickle.dumps(function)) is function
