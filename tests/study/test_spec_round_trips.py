"""Every registered spec survives a process border and a file, whatever its values are."""

import pickle
import string

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from isoscope.errors import ConfigError, UnknownNameError
from isoscope.study.experiment import built_in
from isoscope.study.keywords import execution_of
from isoscope.study.option import named_options
from isoscope.study.spec import EngineOptions, Execution
from isoscope.study.survey import SurveySpec

SPECS = {each.name: each.spec for each in built_in()}
every_spec = pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
WORDS = st.text(string.ascii_letters + string.digits + "-._/é", min_size=1, max_size=12)
TEXTS = WORDS | st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\u2028\u2029\ufeff"),
    min_size=1,
)


def one(option):
    """Return a strategy for one value of an option, within its bounds."""
    least, most = option.about.least, option.about.most
    if option.words:
        return st.sampled_from(option.words)
    if option.plain is bool:
        return st.booleans()
    if option.plain is int:
        return st.integers(
            -(10**6) if least is None else int(least), 10**9 if most is None else int(most)
        )
    if option.plain is float:
        return st.floats(least, most, allow_nan=False, allow_infinity=False)
    return WORDS if option.about.commas else TEXTS


def values(spec):
    """Return a strategy for the options of a spec: some given, some not."""
    required, others = {}, {}
    for name, option in spec.options().items():
        kind = st.lists(one(option), min_size=1, max_size=3) if option.many else one(option)
        if option.default is None and not option.required:
            kind |= st.none()
        (required if option.required else others)[name] = kind
    return st.fixed_dictionaries(required, optional=others)


@every_spec
@given(data=st.data())
def test_any_values_come_back(spec, data):
    made = spec.of(**data.draw(values(spec)))
    assert pickle.loads(pickle.dumps(made)) == made
    flags = yaml.safe_load(yaml.safe_dump(made.to_config(), allow_unicode=True))
    names = {option.flag: name for name, option in spec.options().items()}
    back = spec.of(**{names[flag]: value for flag, value in flags.items()})
    assert back == made and hash(back) == hash(made)
    assert back.resolve({}) == made.resolve({})


@every_spec
@given(data=st.data())
def test_what_is_out_of_bounds_is_refused_by_its_name(spec, data):
    good = data.draw(values(spec))
    bounded = [o for o in spec.options().values() if o.about.least is not None]
    if not bounded:
        return
    option = data.draw(st.sampled_from(bounded))
    least = option.about.least
    low = st.integers(max_value=int(least) - 1)
    if option.plain is float:
        low = st.floats(max_value=least, exclude_max=True, allow_infinity=False)
    with pytest.raises(ConfigError, match=f"as {option.flag}, got"):
        spec.of(**{**good, option.name: data.draw(low)})


@every_spec
def test_unknown_keys_and_words_get_the_nearest_name(spec):
    for name, option in spec.options().items():
        with pytest.raises(UnknownNameError) as caught:
            spec.of(**{f"{name}_": 1})
        assert f"{name}" in caught.value.hint
        if option.words:
            word = option.words[0]
            with pytest.raises(UnknownNameError, match="is called") as caught:
                option.check(f"{word}e")
            assert f"did you mean {word!r}?" in caught.value.hint


@pytest.mark.parametrize("kind", [Execution, EngineOptions])
def test_where_it_runs_survives_too(kind):
    made = execution_of({"engine": "pool", "workers": 3})
    assert pickle.loads(pickle.dumps(made)) == made
    assert set(named_options(kind)) >= {"engine", "workers"}


def test_a_spec_says_which_options_it_has_by_their_names():
    assert SurveySpec.options()["measures"].flag == "measure"
