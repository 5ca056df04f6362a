"""What is kept of a checkpoint of a series."""

import msgspec

from isoscope.study.checkpoints import StepRecord
from isoscope.types import Reading


def test_the_record_of_a_step_survives_a_file():
    reading = Reading("", "resid.0", "all", "", 7, "isoscore", 0.5, 0.4, 0.6, 9, 3, ("few",))
    record = StepRecord(step=7, name="step_7", readings=[reading], left_out=["twonn: few"])
    assert msgspec.convert(
        msgspec.msgpack.decode(msgspec.msgpack.encode(record)), StepRecord
    ) == (record)
