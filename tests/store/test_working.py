"""The working folder: locked, resumed, begun again, and gone when there is nothing in it."""

import os

import pytest

from isoscope.accumulate.survey import Survey
from isoscope.errors import LockedError, RunExistsError, StoreError
from isoscope.store import save, working
from isoscope.store.working import Working, open_target

ID, RESOLVED, PLAN = "abc", {"options": {"seed": 0}}, b"\x01plan"


@pytest.fixture
def target(tmp_path):
    return tmp_path / "run"


@pytest.fixture
def finished(origin, readings):
    """Return a function that puts a finished run at a path."""
    return lambda path: save(path, Survey(), readings(), origin(), {})


def keep(folder, name="node-0-0-x.safetensors"):
    """Leave a unit in the first stage."""
    (folder.stage(1) / name).write_bytes(b"unit")


def abandoned(target, **options):
    """Leave an unfinished run with a unit behind."""
    with pytest.raises(KeyboardInterrupt), Working(target, **options) as folder:
        folder.begin(ID, RESOLVED, PLAN)
        keep(folder)
        folder.note("memory ran out")
        raise KeyboardInterrupt


def test_what_was_begun_is_found_again(target):
    abandoned(target)
    with Working(target) as again:
        begun = again.begun()
        assert (begun.id, begun.resolved) == (ID, RESOLVED)
        assert again.read_plan(begun) == PLAN
        assert again.notes == ["memory ran out"]
        assert [path.name[:4] for path in again.stage(1).iterdir()] == ["node"]
    assert not target.exists()  # done, and nothing was saved there


def test_a_new_one_has_not_begun(target):
    with Working(target) as folder:
        assert folder.begun() is None and folder.notes == []
        assert (target / "lock").exists()


@pytest.mark.parametrize("made_before", [True, False])
def test_nothing_is_left_when_nothing_was_kept(target, made_before):
    if made_before:
        target.mkdir()  # a folder of the user stays, empty
    with pytest.raises(ValueError, match="the first unit"), Working(target) as folder:
        folder.begin(ID, RESOLVED, PLAN)
        (folder.stage(1) / "123-0-0.part").write_bytes(b"half")
        folder.scratch()
        raise ValueError("the first unit")
    assert target.exists() == made_before
    assert not made_before or list(target.iterdir()) == []


@pytest.mark.parametrize(
    "path",
    ["stage-1/node-0-0-x.safetensors", "stage-2/unit-0-x.msgpack", "scratch/1-0/weights"],
)
def test_what_was_kept_survives_an_error(target, path):
    with pytest.raises(ValueError, match="later"), Working(target) as folder:
        folder.begin(ID, RESOLVED, PLAN)
        (target / path).parent.mkdir(parents=True)
        (target / path).write_bytes(b"hours of work")
        raise ValueError("later")
    assert (target / path).exists() and not (target / "lock").exists()


def test_an_unfinished_run_survives_an_error_before_it_is_resumed(target):
    abandoned(target)
    (target / "stage-1" / "node-0-0-x.safetensors").unlink()  # begun, but no unit was kept
    with pytest.raises(ValueError, match="another seed"), Working(target):
        raise ValueError("another seed")
    with Working(target) as folder:
        assert folder.begun() is not None


def test_beginning_again_removes_what_was_there(target):
    abandoned(target)
    with pytest.raises(ValueError, match="stop"), Working(target, overwrite=True) as folder:
        folder.begin("other", RESOLVED, b"other plan")
        assert folder.notes == []
        assert sorted(path.name for path in target.iterdir()) == [
            "begun.json", "lock", "plan.msgpack"
        ]  # fmt: skip
        keep(folder)
        raise ValueError("stop")
    with Working(target) as folder:
        assert folder.begun().id == "other"


def test_a_kill_while_it_begins_leaves_what_can_be_begun_again(target, monkeypatch):
    class Killed(BaseException):
        pass

    written = []

    def killed(path, content):
        if written:
            raise Killed
        written.append(path)
        path.write_bytes(content)

    abandoned(target)
    folder = Working(target).__enter__()
    monkeypatch.setattr(working, "write_whole", killed)
    with pytest.raises(Killed):
        folder.begin("other", RESOLVED, b"other plan")
    os.close(folder.descriptors[0])  # and no more of this process
    monkeypatch.undo()
    with Working(target) as again:
        assert again.begun() is None  # the new plan is not taken for that of the old spec


@pytest.mark.parametrize("content", [b"", b"{", b'{"id": 3}', b"\xff\xfe"])
def test_a_damaged_spec_is_reported(target, content):
    abandoned(target)
    (target / "begun.json").write_bytes(content)
    with pytest.raises(StoreError, match=r"begun\.json") as caught, Working(target) as folder:
        folder.begun()
    assert caught.value.slug == "store-damaged" and "--overwrite" in caught.value.hint
    assert (target / "stage-1").exists()  # nothing is lost by the attempt


@pytest.mark.parametrize("harm", ["cut", "gone", "changed"])
def test_a_damaged_plan_is_reported(target, harm):
    abandoned(target)
    path = target / "plan.msgpack"
    if harm == "gone":
        path.unlink()
    else:
        path.write_bytes({"cut": PLAN[:-1], "changed": PLAN[:-1] + b"?"}[harm])
    with pytest.raises(StoreError, match=r"plan\.msgpack") as caught, Working(target) as folder:
        folder.read_plan(folder.begun())
    assert caught.value.slug == "store-damaged"
    assert (target / "stage-1").exists()


def test_a_second_driver_is_refused_and_harms_nothing(target, monkeypatch):
    monkeypatch.setattr(working, "PATIENCE", 0.0)
    with Working(target) as folder:
        folder.begin(ID, RESOLVED, PLAN)
        with pytest.raises(LockedError), Working(target, overwrite=True):
            raise AssertionError("two drivers at once")
        assert folder.begun().id == ID and (target / "lock").exists()


def test_a_run_that_another_driver_has_just_finished_is_not_touched(target, finished):
    late = Working(open_target(target, False))  # before the other is done
    finished(target)
    with pytest.raises(RunExistsError), late:
        raise AssertionError("the folder is not one of units")
    names = ["config.yaml", "readings.parquet", "run.json", "state.safetensors"]
    assert sorted(path.name for path in target.iterdir()) == names


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_run_that_is_finished_the_moment_it_is_locked_is_not_touched(
    target, finished, monkeypatch, overwrite
):
    acquire = working.Lock.acquire

    def too_late(self):
        if not target.exists():
            finished(target)
        acquire(self)

    monkeypatch.setattr(working.Lock, "acquire", too_late)
    if overwrite:
        with Working(target, overwrite=True) as folder:
            assert folder.folder != target
            folder.begin(ID, RESOLVED, PLAN)
    else:
        with pytest.raises(RunExistsError), Working(target):
            raise AssertionError("the folder is not one of units")
    names = ["config.yaml", "readings.parquet", "run.json", "state.safetensors"]
    assert sorted(path.name for path in target.iterdir()) == names
    assert [path.name for path in target.parent.iterdir()] == ["run"]


def test_a_run_that_has_just_been_finished_is_replaced_only_at_the_end(target, finished):
    late = Working(open_target(target, True), overwrite=True)
    finished(target)
    with late as folder:
        assert folder.folder != target
        assert (target / "run.json").exists()
    assert sorted(path.name for path in target.parent.iterdir()) == ["run"]


def test_units_of_a_run_that_replaces_another_are_kept_beside_it(target, finished):
    finished(target)
    abandoned(target, overwrite=True)
    beside = target.parent / ".isoscope-run-units"
    assert (beside / "begun.json").exists() and (target / "run.json").exists()
    with Working(target, overwrite=True) as folder:
        assert folder.begun().id == ID
    assert not beside.exists() and (target / "run.json").exists()


def test_long_names_with_the_same_beginning_stay_apart(tmp_path, finished):
    targets = [tmp_path / ("x" * 60 + end) for end in "ab"]
    for each in targets:
        finished(each)
    folders = {Working(each, overwrite=True).folder for each in targets}
    assert len(folders) == 2
    assert all(len(os.fsencode(each.name)) < 255 for each in folders)


def test_a_folder_beside_the_run_that_holds_other_files_is_refused(target, finished):
    finished(target)
    beside = target.parent / ".isoscope-run-units"
    beside.mkdir()
    (beside / "thesis.tex").write_text("dear")
    with pytest.raises(StoreError) as caught, Working(target, overwrite=True):
        raise AssertionError("it is not ours")
    assert caught.value.slug == "store-foreign"
    assert [path.name for path in beside.iterdir()] == ["thesis.tex"]


def test_a_stage_that_built_on_another_state_is_emptied(target):
    with Working(target) as folder:
        first = folder.stage(2, "digest of the first stage")
        (first / "node-0-0-x.safetensors").write_bytes(b"unit")
        for name in ("1-0", "2-0"):
            (folder.scratch() / name).mkdir()
        assert folder.stage(2, "digest of the first stage") == first
        assert (first / "node-0-0-x.safetensors").exists()
        again = folder.stage(2, "another digest")
        assert [path.name for path in again.iterdir()] == ["after"]
        assert [path.name for path in folder.scratch().iterdir()] == ["1-0"]
        (again / "after").unlink()  # a kill before the mark was written
        (again / "node-0-0-x.safetensors").write_bytes(b"unit")
        assert [path.name for path in folder.stage(2, "another digest").iterdir()] == ["after"]


def test_notes_are_reported_once_and_survive_damage(target):
    abandoned(target)
    (target / "notes.json").write_bytes(b"[")
    with Working(target) as folder:
        assert folder.notes == []
        folder.note("one")
        folder.note("one")
        assert folder.notes == ["one"]


def test_without_a_target_nothing_is_made_until_somebody_asks(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with Working(None) as folder:
        folder.begin(ID, RESOLVED, PLAN)
        folder.note("one")
        folder.restart()
        assert folder.begun() is None and folder.stage(1) is None and folder.name == ""
        assert folder.descriptors == ()
        assert list(tmp_path.iterdir()) == []
        assert folder.scratch().parent == folder.spare()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_to_is_an_error_of_ours(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError) as caught, Working(tmp_path / "file" / "run"):
        raise AssertionError
    assert caught.value.slug == "store-write"


def test_no_target_is_no_folder(tmp_path):
    assert open_target(None, overwrite=False) is None
    assert open_target(tmp_path / "run", overwrite=False) == tmp_path / "run"
