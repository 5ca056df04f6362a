"""Loading is silent, and only loading."""

import logging
import subprocess
import sys
import warnings

import pytest
import transformers.utils.logging as transformers_logging
from tqdm.auto import tqdm

from isoscope.capture.model.quiet import quiet


def test_bars_logs_and_warnings_are_not_seen(capsys, recwarn):
    with quiet():
        list(tqdm(range(3)))
        print("chatter")
        warnings.warn("odd", UserWarning, stacklevel=1)
        transformers_logging.get_logger("transformers.models").error("report")
    assert capsys.readouterr() == ("", "")
    assert len(recwarn) == 0


def test_everything_is_as_before_also_after_an_error(capsys):
    before = transformers_logging.get_verbosity()
    with pytest.raises(ValueError, match="broken"), quiet():
        raise ValueError("broken")
    assert transformers_logging.get_verbosity() == before
    assert transformers_logging.get_verbosity() != logging.CRITICAL
    print("seen")
    assert capsys.readouterr().out == "seen\n"


def test_transformers_can_warn_again_afterwards():
    code = (
        "from isoscope.capture.model.quiet import quiet\n"
        "import transformers.utils.logging as log\n"
        "with quiet(): log.get_logger('transformers.a').warning('inside')\n"
        "log.get_logger('transformers.a').warning('after')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "after" in done.stderr
    assert "inside" not in done.stderr


def test_threads_that_are_quiet_at_the_same_time_leave_the_streams_as_they_were(capsys):
    out, first, second = sys.stdout, quiet(), quiet()
    first.__enter__()  # two threads, in the order in which they come and go
    second.__enter__()
    first.__exit__(None, None, None)
    print("chatter")
    second.__exit__(None, None, None)
    assert sys.stdout is out
    print("seen")
    assert capsys.readouterr().out == "seen\n"
