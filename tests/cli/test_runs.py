"""isoscope merge: the parts are the whole."""

import json

import numpy as np
import pytest

from isoscope.store import load


def values(text):
    return {r["measure"]: r["value"] for r in map(json.loads, text.splitlines())}


def test_the_merged_run_reads_like_one_measured_at_once(isoscope, runs, place):
    done = isoscope("merge", "runs/a", "runs/b", "-o", "runs/whole", "--json")
    assert done.exit_code == 0, done.stderr
    assert "saved runs/whole" in done.stderr
    whole = place / "whole"
    whole.mkdir()
    for name in ("vectors", "other"):
        np.save(whole / f"{name}.npy", np.load(f"{name}.npy"))
    at_once = isoscope("measure", "whole", "--json")
    exact = ("mean-cosine", "isoscore", "participation", "effective-rank", "norm-spread")
    for name in exact:
        assert values(done.stdout)[name] == pytest.approx(
            values(at_once.stdout)[name], rel=1e-9
        )


def test_the_merged_run_is_a_run_with_all_sources(isoscope, runs, place):
    isoscope("merge", "runs/a", "runs/b", "-o", "runs/whole", "-q")
    run = load(place / "runs" / "whole")
    assert [source.name for source in run.origin.sources] == ["vectors", "other"]
    assert run.readings
    assert run.survey


def test_the_order_does_not_matter(isoscope, runs):
    one = values(isoscope("merge", "runs/a", "runs/b", "-o", "ab", "--json").stdout)
    other = values(isoscope("merge", "runs/b", "runs/a", "-o", "ba", "--json").stdout)
    assert one == pytest.approx(other, rel=1e-9)


def test_the_config_of_a_merged_run_merges_again(isoscope, runs):
    first = isoscope("merge", "runs/a", "runs/b", "-o", "runs/whole", "--json")
    again = isoscope("merge", "--config", "runs/whole/config.yaml", "-o", "again", "--json")
    assert again.exit_code == 0, again.stderr
    assert values(again.stdout) == values(first.stdout)


def refused(done, slug):
    assert done.exit_code == 2
    assert done.stdout == ""
    assert f" {slug}\n" in done.stderr
    assert len(done.stderr.splitlines()) == 3


def test_what_does_not_belong_together_is_refused(isoscope, runs, place):
    refused(isoscope("merge", "runs/a", "runs/a", "-o", "x"), "merge-same-source")
    isoscope("measure", "other.npy", "-o", "seeded", "--seed", "1", "-q")
    refused(isoscope("merge", "runs/a", "seeded", "-o", "x"), "merge-origin")
    np.save("wide.npy", np.random.default_rng(3).normal(size=(50, 9)).astype(np.float32))
    isoscope("measure", "wide.npy", "-o", "wide", "-q")
    refused(isoscope("merge", "runs/a", "wide", "-o", "x"), "merge-origin")
    for name in ("vectors", "other"):
        isoscope("measure", f"{name}.npy", "--by-order", "-o", f"by-{name}", "-q")
    refused(isoscope("merge", "by-vectors", "by-other", "-o", "x"), "merge-by-order")
    refused(isoscope("merge", "runs/a", "nowhere", "-o", "x"), "store-missing")
    refused(isoscope("merge", "runs/a", "runs/b", "-o", "runs/a"), "store-exists")
    record = json.loads((place / "runs/b/run.json").read_text())
    (place / "runs/b/run.json").write_text(json.dumps({**record, "schema": 2}))
    refused(isoscope("merge", "runs/a", "runs/b", "-o", "x"), "store-newer")
    assert not (place / "x").exists()


def test_an_output_is_needed(isoscope, runs):
    done = isoscope("merge", "runs/a", "runs/b")
    assert done.exit_code == 2
    assert "missing option" in done.stderr
