"""What is kept of a checkpoint of a series."""

import msgspec
import numpy as np

from isoscope.measures.interval import Spread
from isoscope.study.checkpoints import StepRecord, pack_spreads, unpack_spreads
from isoscope.study.documents import KeptDocuments
from isoscope.study.series import Checkpoint
from isoscope.types import Reading


def test_the_record_of_a_step_survives_a_file():
    reading = Reading("", "resid.0", "all", "", 7, "isoscore", 0.5, 0.4, 0.6, 9, 3, ("few",))
    record = StepRecord(step=7, name="step_7", readings=[reading], left_out=["twonn: few"])
    assert msgspec.convert(
        msgspec.msgpack.decode(msgspec.msgpack.encode(record)), StepRecord
    ) == (record)


def test_spreads_of_a_step_survive_packing_and_share_their_keys():
    keys = np.arange(5, dtype=np.uint64)
    spreads = {
        ("head.0.1", "all", "query-norm"): Spread(np.arange(5.0), keys, centre=0.5),
        ("head.0.0", "all", "key-norm"): Spread(np.ones(5), keys, lost=2, correction=0.1),
        ("resid.0", "all", "mean-cosine"): Spread(np.ones(2), keys[:2]),
    }
    packed = pack_spreads(Checkpoint(step=7, name="step_7", where="w/step_7"), spreads)
    assert (packed.step, packed.name, len(packed.keys)) == (7, "step_7", 2)
    found = dict(unpack_spreads(packed))
    assert found.keys() == spreads.keys()
    for place, each in spreads.items():
        again = found[place]
        assert (again.lost, again.centre, again.correction) == (
            each.lost, each.centre, each.correction
        )  # fmt: skip
        assert again.parts.tolist() == each.parts.tolist()
        assert again.keys.tolist() == each.keys.tolist()
    assert list(unpack_spreads(None)) == []


def test_documents_are_kept_as_long_as_there_is_room(monkeypatch):
    class Document:
        inputs, special = {"input_ids": np.zeros(10)}, {"": np.zeros(5)}

    monkeypatch.setattr(KeptDocuments, "most", 250)  # bytes: two of them
    kept = KeptDocuments()
    kept.keep({3: Document(), 4: Document(), 5: Document()})
    assert kept.get(3) is not None and kept.get(4) is not None and kept.get(5) is None
