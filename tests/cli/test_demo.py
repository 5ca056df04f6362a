"""isoscope demo: the first thing a stranger sees."""

import json


def test_the_demo_prints_a_table(isoscope):
    done = isoscope("demo")
    assert done.exit_code == 0
    assert "mean-cosine" in done.stdout


def test_the_planted_cone_is_found(isoscope):
    done = isoscope("demo", "--json", "-q")
    values = {r["measure"]: r["value"] for r in map(json.loads, done.stdout.splitlines())}
    assert values["mean-cosine"] > 0.1
