"""isoscope norm: three kinds of tables on stdout, one error where there is no norm."""

import json

import pytest

from isoscope import api


def test_a_model_has_two_tables_and_a_run_adds_two(isoscope, examples):
    done = isoscope("norm", "models/minilm")
    assert done.exit_code == 0, done.stderr
    assert "final norm" in done.stdout.splitlines()[0]
    assert "beyond 3 sigma" in done.stdout
    assert "normalised" not in done.stdout.partition("1  exact")[0]
    done = isoscope("norm", "models/minilm", "--run", "runs/minilm")
    assert done.exit_code == 0, done.stderr
    assert "readings of the run" in done.stdout
    assert "plus the bias" in done.stdout
    assert "\n\n\n" not in done.stdout


@pytest.mark.parametrize("flag", ["--csv", "--latex", "--markdown", "--json"])
def test_every_format_is_what_python_gives(isoscope, examples, flag):
    done = isoscope("norm", "models/minilm", "--run", "runs/minilm", "--sigmas", "2", flag)
    assert done.exit_code == 0
    found = api.norm("models/minilm", run="runs/minilm", sigmas=2.0)
    assert done.stdout == getattr(found, f"to_{flag[2:]}")()


def test_a_measure_and_a_variant_are_chosen(isoscope, examples):
    flags = ("--run", "runs/minilm", "--variant", "no-special", "-m", "participation")
    done = isoscope("norm", "models/minilm", *flags)
    assert "norm, variant no-special: readings of the run" in done.stdout
    assert "participation" in done.stdout and "mean-cosine-cross" not in done.stdout


def test_no_bias_is_reported_and_is_null_in_json(isoscope, gemma):
    done = isoscope("norm", gemma)
    assert done.exit_code == 0
    assert "GemmaRMSNorm has no bias" in done.stdout
    first = json.loads(isoscope("norm", gemma, "--json").stdout.splitlines()[0])
    assert (first["bias_norm"], first["reference"]) == (None, None)


@pytest.mark.parametrize(
    ("line", "problem", "slug"),
    [
        (
            "models/normless",
            "after the last block of normless",
            "no-final-norm",
        ),
        ("models/gpt2 --run runs/minilm", "through the run 'minilm'", "run-other-model"),
        ("models/minilm --run runs/bare", "of the run 'bare', got none", "no-final-norm"),
        ("models/minilm --run runs/none", "no run folder is called", "store-missing"),
        ("models/minilm --variant any", "no variant is called 'any'", "unknown-variant"),
        ("./none", "no such folder", "model-not-found"),
    ],
)
def test_bad_input_is_one_line_and_a_hint(
    isoscope, typed, examples, normless, line, problem, slug
):
    (examples / "models" / "normless").symlink_to(normless)
    if "bare" in line:
        words = ("survey", "models/minilm", "corpus.txt", "--sites", "embed", "-o", "runs/bare")
        assert isoscope(*words, "-q").exit_code == 0
    done = typed(f"isoscope norm {line}")
    assert done.returncode == 2 and done.stdout == ""
    said = done.stderr.splitlines()
    assert len(said) == 3 and problem in said[0]
    assert said[1].startswith("  hint: ") and said[2].endswith(f" {slug}")
