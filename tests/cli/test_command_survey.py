"""isoscope survey: from a folder to a run, killed and gone on with, and what it refuses."""

import json
import re
import shutil
import signal
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import isoscope.study.run as study_run
from forks import Fork
from isoscope.cli.main import main
from isoscope.store import load

QUICK = ("--sites", "resid.0", "-m", "isoscore", "-m", "mean-cosine", "-q")


def readings(text):
    return {
        (r["site"], r["variant"], r["measure"]): r["value"]
        for r in map(json.loads, text.splitlines())
    }


def refused(done, slug):
    assert done.exit_code == 2, (done.stdout, done.stderr, done.exception)
    lines = done.stderr.splitlines()
    assert len(lines) == 3, done.stderr
    assert lines[0].startswith("error: ")
    assert lines[1].startswith("  hint: ")
    assert lines[2].endswith(f" {slug}"), lines
    assert done.stdout == ""


def test_a_table_of_layers_and_a_run_folder(isoscope, model, corpus):
    done = isoscope("survey", model, corpus, "-o", "runs/a")
    assert done.exit_code == 0, done.stderr
    sites = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("resid.")]
    assert sites == ["resid.0", "resid.1", "resid.2"]
    assert "saved runs/a" in done.stderr
    assert {p.name for p in Path("runs/a").iterdir()} == {
        "run.json", "state.safetensors", "readings.parquet", "config.yaml"
    }  # fmt: skip
    assert [p.name for p in Path("runs").iterdir()] == ["a"]
    read = isoscope("read", "runs/a", "-s", "resid.0", "--json")
    assert {key[0] for key in readings(read.stdout)} == {"resid.0"}
    table = isoscope("read", "runs/a", "-s", "resid.0")
    assert "isoscore" in table.stdout


def test_the_config_of_a_run_surveys_again(isoscope, model, corpus):
    first = isoscope(
        "survey", model, corpus, "--tokens", "300", "--all", "--sites", "resid.0,pooled",
        "--pooling", "cls", "--truncate-dim", "5", "--prompt", "the ", "--seed", "3",
        "--sinks", "4", "-o", "a", "--json",
    )  # fmt: skip
    assert first.exit_code == 0, first.stderr
    again = isoscope("survey", "--config", "a/config.yaml", "-o", "b/a", "--json")
    assert again.exit_code == 0, again.stderr
    assert again.stdout == first.stdout
    for name in ("state.safetensors", "readings.parquet", "config.yaml"):
        assert Path("a", name).read_bytes() == Path("b/a", name).read_bytes()


def test_corpora_of_every_shape_read_the_same(isoscope, shell, model, corpus, tiny, texts):
    from transformers import AutoTokenizer

    plain = isoscope("survey", model, corpus, *QUICK, "--json")
    column = isoscope("survey", model, "reviews.jsonl", "--column", "text", *QUICK, "--json")
    stdin = isoscope("survey", model, "-", *QUICK, "--json", input="\n".join(texts) + "\n")
    encoded = AutoTokenizer.from_pretrained(tiny)(texts)["input_ids"]
    tokens = np.zeros((len(texts), max(map(len, encoded))), dtype=np.int64)
    assert all(done.exit_code == 0 for done in (plain, column, stdin)), column.stderr
    wanted = readings(plain.stdout)
    assert readings(column.stdout) == pytest.approx(wanted, rel=1e-5)
    assert readings(stdin.stdout) == pytest.approx(wanted, rel=1e-5)
    same = [row for row in encoded if len(row) == 14]
    tokens = np.array(same, dtype=np.int64)
    np.save("tokens.npy", tokens)
    Path("same.txt").write_text(
        "\n".join(t for t, row in zip(texts, encoded, strict=True) if len(row) == 14) + "\n"
    )
    ids = isoscope("survey", model, "tokens.npy", *QUICK, "--json")
    words = isoscope("survey", model, "same.txt", *QUICK, "--json")
    assert ids.exit_code == words.exit_code == 0, ids.stderr
    assert readings(ids.stdout) == pytest.approx(readings(words.stdout), rel=1e-5)


def test_bad_documents_are_skipped_where_that_is_requested(isoscope, model, corpus):
    with Path("reviews.jsonl").open("a") as file:
        file.write('{"text": 7}\n')
    refused(
        isoscope("survey", model, "reviews.jsonl", "--column", "text", "-o", "a"),
        "document-unreadable",
    )
    assert not Path("a").exists()
    done = isoscope(
        "survey", model, "reviews.jsonl", "--column", "text", "--skip-bad", *QUICK[:-1]
    )
    assert done.exit_code == 0, done.stderr
    assert "documents that cannot be read skipped: 1" in done.stderr


def test_turns_are_announced_with_the_figure(isoscope, model, corpus, monkeypatch):
    monkeypatch.setenv("ISOSCOPE_MEMORY", "4000000")
    done = isoscope("survey", model, corpus, "--sites", "resid", "-m", "isoscore")
    assert done.exit_code == 0
    assert "3 sites takes" in done.stderr
    assert "3.8 MiB are free: done in" in done.stderr


def test_a_dropped_site_is_named_after_the_others_were_read(isoscope, place, tiny, corpus):
    from safetensors.numpy import load_file, save_file

    shutil.copytree(tiny, "spoilt")
    weights = load_file("spoilt/model.safetensors")
    weights["encoder.layer.1.output.LayerNorm.bias"][0] = np.nan
    save_file(weights, "spoilt/model.safetensors", metadata={"format": "pt"})
    done = isoscope("survey", "spoilt", corpus, "--sites", "resid", "-o", "run")
    assert done.exit_code == 2
    assert "resid.0" in done.stdout
    assert "expected finite numbers at resid.1 and 1 more sites" in done.stderr
    assert "of document 'corpus" in done.stderr
    assert "help site-not-finite" in done.stderr
    assert {r.site for r in load("run").readings} == {"resid.0"}


def test_what_cannot_be_surveyed_is_refused_in_one_line(isoscope, model, corpus, tiny, place):
    Path("empty.txt").write_text("\n\n")
    Path("holes").mkdir()
    shutil.copytree(tiny, "mute")
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        Path("mute", name).unlink(missing_ok=True)
    before = sorted(place.rglob("*"))
    cases = {
        ("./models/none", corpus): "model-not-found",
        ("holes", corpus): "model-not-found",
        ("mute", corpus): "tokenizer-missing",
        (model, "none.txt"): "file-missing",
        (model, "empty.txt"): "corpus-empty",
        (model, "reviews.jsonl", "--column", "words"): "unknown-column",
        (model, corpus, "--sites", "reside"): "unknown-site",
        (model, corpus, "--sites", "pooled"): "pooling",
        (model, corpus, "--pooling", "men"): "unknown-pooling",
        (model, corpus, "--device", "warp"): "device-unknown",
        (model, corpus, "--dtype", "int4"): "dtype-unknown",
        (model, corpus, "-m", "beauty"): "unknown-measure",
    }
    found = {}
    for words in cases:
        done = isoscope("survey", *words, "-o", "run")
        assert done.exit_code == 2, (words, done.stderr, done.exception)
        assert len(done.stderr.splitlines()) == 3, (words, done.stderr)
        assert done.stdout == ""
        found[words] = done.stderr.split()[-1]
    assert found == cases
    assert sorted(place.rglob("*")) == before


def test_documents_of_one_token_are_too_short(isoscope, model, place, tiny):
    np.save("short.npy", np.array([[5]] * 4))
    done = isoscope("survey", model, "short.npy", "-o", "run")
    refused(done, "corpus-short")
    assert not Path("run").exists()


# What is killed, and gone on with.

MANY = (
    "--unit", "15", "--batch", "1", "--tokens", "300",
    "--sites", "resid.0,attn.1", "-q", "--json",
)  # fmt: skip


def survey_and_write(*words):
    """Survey, and write every unit at once."""
    study_run.SummaryKeeper = partial(study_run.SummaryKeeper, patience=0.0)
    sys.argv[1:] = ["survey", *words]
    main()


def killed(*words, folder):
    """Kill a survey once some of its units are done."""
    process = Fork(survey_and_write, *words)
    try:
        deadline = time.monotonic() + 120
        while len(list(Path(folder).glob("stage-1/node-*"))) < 2:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.005)
    finally:
        process.kill()
    assert process.code == -signal.SIGKILL
    return sorted(Path(folder).glob("stage-1/node-*"))


def values(run):
    return pq.read_table(Path(run) / "readings.parquet").drop_columns(["run"]).to_pylist()


@pytest.fixture
def interrupted(isoscope, model, corpus):
    words = (model, corpus, *MANY, "-o", "run")
    kept = killed(*words, folder="run")
    assert not Path("run/run.json").exists()
    return words, kept


def test_an_interrupted_survey_says_what_it_keeps(isoscope, model, corpus, monkeypatch):
    from isoscope.study.survey import ModelWorker

    run, done = ModelWorker.run, []

    def interrupted(worker, unit, *rest):
        if done:
            raise KeyboardInterrupt
        done.append(unit)
        return run(worker, unit, *rest)

    monkeypatch.setattr(ModelWorker, "run", interrupted)
    stopped = isoscope("survey", model, corpus, *MANY, "-o", "run", "-q")
    assert stopped.exit_code == 130 and stopped.stdout == ""
    said, end = stopped.stderr.splitlines()
    assert re.fullmatch(
        r"1 of \d+ units are kept in run; the same command resumes the run", said
    )
    assert end == "error: interrupted"
    opened = isoscope("read", "run")
    assert opened.exit_code == 2 and "is not finished: 1 of" in opened.stderr


def test_a_killed_survey_is_resumed_where_it_was(
    isoscope, interrupted, other_model, monkeypatch
):
    words, kept = interrupted
    for changed in (
        ("other", *words[1:]),
        (words[0], "reviews.jsonl", "--column", "text", *words[2:]),
        (*words, "--seed", "1"),
        (*words, "--length", "9"),
        (*words, "--all"),
    ):
        refused(isoscope("survey", *changed), "resume-other")
    assert sorted(Path("run/stage-1").glob("node-*")) == kept
    shutil.copytree("run", "other-run")
    other = isoscope("survey", *words[:2], *QUICK, "-o", "other-run", "--overwrite")
    assert other.exit_code == 0, other.stderr
    assert {r.site for r in load("other-run").readings} == {"resid.0"}
    told = []
    ran = []
    from isoscope.api import survey
    from isoscope.study.survey import ModelWorker

    run = ModelWorker.run
    monkeypatch.setattr(
        ModelWorker, "run", lambda self, unit, *rest: ran.append(unit) or run(self, unit, *rest)
    )
    resumed = survey(
        words[0], words[1], output="run", unit=15, batch=1,
        tokens=300, sites=["resid.0", "attn.1"],
        progress=lambda *each: told.append(each),
    )  # fmt: skip
    assert ran[0].first > 0  # the first units are not run again
    assert told[0][0] == 0
    assert told[-1][0] == told[-1][1]
    assert {p.name for p in Path("run").iterdir()} >= {"run.json", "readings.parquet"}
    assert not Path("run/stage-1").exists()
    at_once = isoscope("survey", *words[:-1], "whole")
    assert at_once.exit_code == 0, at_once.stderr
    assert values("run") == values("whole")
    assert len(values("run")) == len(resumed)
    state = [Path(run, "state.safetensors").read_bytes() for run in ("run", "whole")]
    assert state[0] == state[1]


@pytest.fixture
def other_model(place, tiny):
    from safetensors.numpy import load_file, save_file

    shutil.copytree(tiny, "other")
    weights = load_file("other/model.safetensors")
    turned = {name: each[::-1].copy() for name, each in weights.items()}
    save_file(turned, "other/model.safetensors", metadata={"format": "pt"})


def test_a_finished_run_is_replaced_only_where_that_is_requested(isoscope, model, corpus):
    first = isoscope("survey", model, corpus, *QUICK, "-o", "run")
    assert first.exit_code == 0
    before = values("run")
    again = isoscope("survey", model, corpus, *QUICK, "-o", "run")
    assert again.exit_code == 0
    assert again.stdout == first.stdout
    refused(
        isoscope("survey", model, corpus, *QUICK, "--seed", "1", "-o", "run"), "store-exists"
    )
    killed(
        model, corpus, *MANY, "--seed", "1", "-o", "run", "--overwrite",
        folder=".isoscope-run-units",
    )  # fmt: skip
    assert values("run") == before
    # Other settings: what the killed one left is of no use, and in nobody's way.
    done = isoscope("survey", model, corpus, *QUICK, "--seed", "2", "-o", "run", "--overwrite")
    assert done.exit_code == 0, done.stderr
    assert values("run") != before
    assert not Path(".isoscope-run-units").exists()


def test_halves_of_a_corpus_merge(isoscope, model, texts, place):
    for name, part in (("a", texts[::2]), ("b", texts[1::2])):
        Path(f"{name}.txt").write_text("\n".join(part) + "\n")
        done = isoscope("survey", model, f"{name}.txt", *QUICK, "-o", f"runs/{name}")
        assert done.exit_code == 0, done.stderr
    done = isoscope("merge", "runs/a", "runs/b", "-o", "runs/whole", "--json")
    assert done.exit_code == 0, done.stderr
    Path("all.txt").write_text("\n".join(texts) + "\n")
    whole = isoscope("survey", model, "all.txt", *QUICK, "--json")
    assert readings(done.stdout) == pytest.approx(readings(whole.stdout), rel=1e-6, abs=1e-6)
    refused(isoscope("merge", "runs/a", "runs/a", "-o", "x"), "merge-same-source")


def test_a_frequency_table_of_another_tokenizer_is_refused(isoscope, model, corpus):
    Path("counts.json").write_text(json.dumps({f"##zz{n}": n + 1 for n in range(50)}))
    given = ("survey", model, corpus, *QUICK, "--frequencies")
    refused(isoscope(*given, "counts.json"), "frequency-table")
    np.save("counts.npy", np.ones(7))
    refused(isoscope(*given, "counts.npy"), "frequency-table")
    refused(isoscope(*given, "missing.npy"), "file-missing")
