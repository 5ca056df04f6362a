"""The scratch of a unit is made when it is used."""

from isoscope.engine.base import Scratch


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
