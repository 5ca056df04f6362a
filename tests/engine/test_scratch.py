"""The scratch of a unit is made when it is used."""

from isoscope.engine.base import Scratch, kept_files


def test_it_is_made_on_first_use_and_removed_on_demand(tmp_path):
    made = []

    def base():
        made.append(tmp_path)
        return tmp_path

    scratch = Scratch(base, 0, 7)
    assert not scratch.used and not made
    (scratch.path / "checkpoint").write_text("half")
    assert scratch.used
    assert (tmp_path / "1-7" / "checkpoint").exists()
    Scratch(base, 0, 7).clear()
    assert list(tmp_path.iterdir()) == []
    Scratch(base, 0, 7).clear()  # of what is not there


def test_units_and_stages_have_scratches_of_their_own(tmp_path):
    paths = {Scratch(lambda: tmp_path, stage, unit).path for stage in (0, 1) for unit in (0, 1)}
    assert len(paths) == 4


def test_files_that_are_kept_are_not_cleared(tmp_path):
    scratch = Scratch(lambda: tmp_path, 0, 7)
    (scratch.kept / "step_0").mkdir()
    (scratch.path / "snapshot").write_text("half")
    scratch.clear()
    assert [each.name for each in tmp_path.iterdir()] == ["kept-1-7"]
    assert kept_files(tmp_path, "1-7") == scratch.kept
