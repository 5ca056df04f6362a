"""The nursery's model is registered after the modules of transformers ran, and not before."""

import subprocess
import sys

import pytest

from isoscope import auto_classes
from isoscope.auto_classes import AfterImport, install, try_to


@pytest.fixture
def waiting(tmp_path, monkeypatch):
    """Let a finder wait for a module of our own; return what was registered."""
    (tmp_path / "late_classes.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    seen = []
    monkeypatch.setattr(auto_classes, "REGISTER", {"late_classes": seen.append})
    before = list(sys.meta_path)
    yield seen
    sys.meta_path[:] = before
    sys.modules.pop("late_classes", None)


def test_it_registers_once_the_module_ran(waiting):
    install()
    assert waiting == []
    import late_classes

    assert waiting == [late_classes] and late_classes.value == 1
    # as Python loads it: where its source is, is known
    assert late_classes.__spec__.origin.endswith("late_classes.py")
    assert late_classes.__loader__.get_source("late_classes") == "value = 1\n"


def test_a_module_that_is_imported_already_is_registered_at_once(waiting):
    import late_classes

    before = list(sys.meta_path)
    install()
    assert waiting == [late_classes]
    assert sys.meta_path == before


def test_other_modules_are_none_of_its_business(waiting):
    finder = AfterImport()
    assert finder.find_spec("json", None) is None
    assert finder.find_spec("late_classes", ["nowhere"]) is None


def test_a_transformers_that_does_not_fit_is_a_warning():
    def register(_):
        raise AttributeError("no such class")

    with pytest.warns(UserWarning, match="nursery models cannot be loaded.*no such class"):
        try_to(register, sys)


ORDERS = """
import sys
import transformers
from transformers import AutoConfig
import isoscope
assert "isoscope_nursery" in transformers.CONFIG_MAPPING
from transformers import AutoModelForCausalLM
config = AutoConfig.for_model("isoscope_nursery", hidden_size=8, num_attention_heads=1)
print(type(AutoModelForCausalLM.from_config(config)).__name__)
"""


@pytest.mark.slow
def test_transformers_may_be_imported_first():
    done = subprocess.run(
        [sys.executable, "-c", ORDERS], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["NurseryLM"]
