"""isoscope zero: a line a dimension, one error for what cannot be zeroed."""

import json

import pytest

from isoscope import api


def test_top_and_random_dimensions_have_a_line_each(isoscope, examples):
    done = isoscope("zero", "models/gpt2", "corpus.txt", "--top", "2", "--random", "1")
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].endswith("KL in nats per token")
    assert [line.split()[1] for line in lines[3:6]] == ["top", "top", "random"]
    assert done.stderr == ""


@pytest.mark.parametrize("flag", ["--csv", "--latex", "--markdown", "--json"])
def test_every_format_is_what_python_gives(isoscope, examples, flag):
    done = isoscope(
        "zero", "models/gpt2", "corpus.txt", "--dimension", "3", "--seed", "1", flag
    )
    assert done.exit_code == 0
    found = api.zero("models/gpt2", "corpus.txt", dimensions=[3], seed=1)
    assert done.stdout == getattr(found, f"to_{flag[2:]}")()


@pytest.mark.parametrize(
    ("flags", "norms"),
    [
        (("--norm", "final"), ["ln_f"]),
        (("--norm", "1"), ["h.2.ln_1", "h.2.ln_2"]),
        (("--norm", "h.0.ln_1", "--norm", "ln_f"), ["h.0.ln_1", "ln_f"]),
        (("--norm", "h.0.ln_1"), ["h.0.ln_1"]),
    ],
)
def test_norms_are_final_a_number_of_blocks_or_names(isoscope, examples, flags, norms):
    words = ("--dimension", "3", "--random", "0", "--documents", "4", "--json", *flags)
    done = isoscope("zero", "models/gpt2", "corpus.txt", *words)
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["norms"] == norms


def test_flags_may_come_from_a_file(isoscope, examples):
    (examples / "a.yaml").write_text("zero:\n  dimension: [3, 5]\n  random: 0\n")
    done = isoscope("zero", "models/gpt2", "corpus.txt", "--config", "a.yaml", "--json")
    assert [json.loads(line)["dimension"] for line in done.stdout.splitlines()] == [3, 5]


@pytest.mark.parametrize(
    ("line", "problem", "slug"),
    [
        ("models/minilm corpus.txt", "a model that predicts tokens", "no-output-distribution"),
        ("models/gpt2 corpus.txt --dimension 24", "from 0 to 23, got 24", "dimension-range"),
        ("models/gpt2 corpus.txt --dimension=-1", "from 0 to 23, got -1", "dimension-range"),
        ("models/gpt2 corpus.txt --norm ln_g", "no norm is called 'ln_g'", "unknown-norm"),
        ("models/gpt2 corpus.txt --norm 4", "expected 1 to 3 blocks, got 4", "number-range"),
        ("models/gpt2 none.txt", "got nothing of that name", "file-missing"),
        ("models/gpt2 --dimension x", "nvalid value for '--dimension'", "usage"),
    ],
)
def test_bad_input_is_one_line_and_a_hint(typed, examples, line, problem, slug):
    done = typed(f"isoscope zero {line}")
    assert done.returncode == 2 and done.stdout == ""
    said = done.stderr.splitlines()
    assert len(said) == 3 and problem in said[0]
    assert said[1].startswith("  hint: ") and said[2].endswith(f" {slug}")
