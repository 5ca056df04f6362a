"""Trackers in a loop of one's own, each read back."""

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from isoscope.control.watch.logger import tensorboard, trackio, wandb


def test_event_files_hold_what_was_logged(tmp_path):
    log = tensorboard(tmp_path / "events")
    log({"anisotropy/isoscore/resid.0": 0.5, "other": 2.0}, 10)
    log({"anisotropy/isoscore/resid.0": 0.25}, 20)
    events = EventAccumulator(str(tmp_path / "events"))
    events.Reload()
    told = [(e.step, e.value) for e in events.Scalars("anisotropy/isoscore/resid.0")]
    assert told == [(10, 0.5), (20, 0.25)]


def test_runs_that_have_a_log_of_their_own_get_numbers_and_step():
    class Run:
        def __init__(self):
            self.said = []

        def log(self, numbers, step):
            self.said.append((numbers, step))

    for logger in (wandb, trackio):
        run = Run()
        logger(run)({"a": 1.0}, 3)
        assert run.said == [({"a": 1.0}, 3)]
