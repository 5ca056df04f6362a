"""What is a series of checkpoints."""

from isoscope.study.series import is_series


def test_what_is_a_series_and_what_is_a_model(tmp_path):
    for name in ("series/step_0", "series/step_10", "output", "output/checkpoint-5"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "config.json").write_text("{}")
    series = tmp_path / "series"
    assert is_series([str(series)]) and is_series(["a", "b"]) and is_series(["a"], ["r"])
    assert not is_series([str(series / "step_0")]) and not is_series(["name/on-hub"])
    # what a trainer leaves: a model, and checkpoints beside it
    assert not is_series([str(tmp_path / "output")])
