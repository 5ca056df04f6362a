"""A spec is frozen, checked, written as flags, and hashed by its content."""

import pickle

import pytest
import yaml

from isoscope.errors import KEYWORDS, SWITCHES, ConfigError, ResumeError, UnknownNameError
from isoscope.lab.matrices.spec import MatricesSpec
from isoscope.lab.norm.spec import NormSpec
from isoscope.lab.probe.spec import ProbeSpec
from isoscope.lab.sweep.spec import SweepSpec
from isoscope.lab.zero.spec import ZeroSpec
from isoscope.study.experiment import built_in
from isoscope.study.option import named_options
from isoscope.study.rows import MeasureSpec
from isoscope.study.spec import digest, refuse_other
from isoscope.study.survey import SurveySpec

SPECS = {
    MeasureSpec: {"vectors": "v.npy", "measures": ["isoscore"], "zeta": 0.5, "skip_bad": True},
    SurveySpec: {"model": "m", "corpus": "c.txt", "sites": "resid,norm", "tokens": None},
    SweepSpec: {"model": "m", "data": "d.tsv", "weights": [-3, 3], "layers": [0, 2]},
    ZeroSpec: {"model": "m", "dimensions": [3, 11], "norms": 2},
    ProbeSpec: {"model": "m", "corpus": "c.jsonl", "label": "stars", "sites": ["resid.1"]},
    MatricesSpec: {"model": "m", "as_published": True},
    NormSpec: {"model": "m", "run": "r", "variant": "no-sink", "sigmas": 2},
}
every_spec = pytest.mark.parametrize(
    ("kind", "given"), SPECS.items(), ids=lambda x: str(x)[:40]
)


@every_spec
def test_it_survives_a_process_border_and_a_file(kind, given):
    spec = kind.of(**given)
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert hash(pickle.loads(pickle.dumps(spec))) == hash(spec)
    flags = yaml.safe_load(yaml.safe_dump(spec.to_config()))
    names = {option.flag: name for name, option in kind.options().items()}
    assert kind.of(**{names[flag]: value for flag, value in flags.items()}) == spec


@every_spec
def test_an_unknown_option_is_refused_with_the_nearest(kind, given):
    name = list(kind.options())[-1]
    with pytest.raises(UnknownNameError, match="no option is called") as caught:
        kind.of(**given, **{f"{name}x": 1})
    assert f"did you mean {name!r}?" in caught.value.hint
    with pytest.raises(TypeError):
        kind.of(**given, **{f"{name}x": 1})


@every_spec
def test_every_number_with_bounds_refuses_what_is_beyond(kind, given):
    tried = 0
    for name, option in kind.options().items():
        for bound, step in ((option.about.least, -1), (option.about.most, 1)):
            if bound is not None and not option.many:
                value = (
                    type(bound)(bound + step) if option.plain is float else int(bound) + step
                )
                with pytest.raises(ConfigError):
                    kind.of(**{**given, name: value})
                tried += 1
    assert tried or kind is MatricesSpec


def test_the_address_follows_from_options_and_content_and_not_from_paths():
    spec = SurveySpec.of(model="a/m", corpus="c.txt")
    moved = SurveySpec.of(model="b/m", corpus="d.txt")
    other = SurveySpec.of(model="a/m", corpus="c.txt", length=16)
    content = {"model": "123", "corpus": "456"}
    address = digest(spec.resolve(content))
    assert address == digest(moved.resolve(content))
    assert address != digest(other.resolve(content))
    assert address != digest(spec.resolve({**content, "corpus": "457"}))


def test_a_revised_spec_has_another_address_and_the_others_keep_theirs():
    sweep = SweepSpec.of(model="m", data="d").resolve({})
    before = {key: value for key, value in sweep.items() if key != "revision"}
    assert digest(sweep) != digest(before)
    assert refuse_other("run", before, sweep, SweepSpec.options()) is None  # no option differs
    assert "revision" not in MeasureSpec.of(vectors="v").resolve({})


def test_settings_are_what_merged_runs_must_share():
    settings = SurveySpec.of(model="m", corpus="c", tokens=100, seed=4, length=64).settings()
    assert settings["length"] == 64
    assert not {"model", "corpus", "tokens", "seed", "batch", "threads", "all"} & set(settings)


def test_a_run_begun_otherwise_says_which_option_and_both_values():
    content = {"corpus": "1"}
    begun = SurveySpec.of(model="m", length=512).resolve(content)
    now = SurveySpec.of(model="m", length=256).resolve(content)
    with pytest.raises(ResumeError) as caught:
        refuse_other("run", begun, now, SurveySpec.options())
    assert caught.value.problem == (
        "cannot resume 'run' with --length 256: it was begun with 512"
    )
    with pytest.raises(ResumeError, match=r"with another corpus: it was begun with '1', this"):
        other = SurveySpec.of(model="m").resolve({"corpus": "2"})
        refuse_other("run", begun, other, SurveySpec.options())
    with pytest.raises(ResumeError) as caught:
        other = SurveySpec.of(model="m", measures="alpha").resolve(content)
        refuse_other("run", begun, other, SurveySpec.options())
    assert caught.value.problem == (
        "cannot resume 'run' with --measure [\"alpha\"]: it was begun with null"
    )
    measure = MeasureSpec.of(vectors="v").resolve({})
    with pytest.raises(ResumeError, match="with measure: it was begun with survey"):
        refuse_other("run", begun, measure, MeasureSpec.options())
    refuse_other("run", begun, begun, SurveySpec.options())


def test_a_required_option_that_is_missing_is_named():
    with pytest.raises(ConfigError, match="expected data of a sweep, got none"):
        SweepSpec.of(model="m")


def test_errors_know_which_flags_are_switches_and_which_have_another_name():
    options = [
        option
        for each in built_in()
        for option in [*each.spec.options().values(), *named_options(each.where).values()]
        if not option.about.argument
    ]
    assert {each.flag for each in options if each.plain is bool} == SWITCHES
    renamed = {
        each.flag: each.name for each in options if each.flag != each.name.replace("_", "-")
    }
    assert renamed == KEYWORDS
