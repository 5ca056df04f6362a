"""isoscope matrices: a line a matrix, a remark where two are one."""

import pytest

from isoscope import api


def test_tied_weights_are_a_reading_with_a_remark(typed, examples):
    done = typed("isoscope matrices models/gpt2")
    assert done.returncode == 0, done.stderr
    assert "embed.weight  the origin" in done.stdout
    assert "unembed.weight" not in done.stdout
    assert "1  tied: the output matrix is the input matrix, measured once" in done.stdout
    done = typed("isoscope matrices models/gpt2 --json")
    assert done.stderr == "note: tied: the output matrix is the input matrix, measured once\n"


@pytest.mark.parametrize("flag", ["--csv", "--latex", "--markdown", "--json"])
def test_every_format_is_what_python_gives(isoscope, untied, flag):
    done = isoscope("matrices", untied, "--as-published", "--against-random", flag)
    assert done.exit_code == 0
    found = api.matrices(untied, as_published=True, against_random=True)
    assert done.stdout == getattr(found, f"to_{flag[2:]}")()


def test_a_model_without_matrices_is_one_error(typed, normless):
    done = typed(f"isoscope matrices {normless}")
    assert done.returncode == 2 and done.stdout == ""
    said = done.stderr.splitlines()
    assert len(said) == 3 and said[2].endswith(" no-matrix")
