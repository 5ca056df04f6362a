"""What a run of a series keeps of its steps."""

import numpy as np
import pytest

from isoscope.store.series import GroupParts, Numbers, SeriesParts, StepParts


def parts():
    keys = Numbers.of(np.array([3, 5, 2**63], dtype="<u8"), "<u8")
    own = GroupParts(
        site="resid.0",
        variant="all",
        measure="isoscore",
        keys=0,
        parts=Numbers.of([0.1, -0.2, 0.1]),
        lost=2,
        centre=0.5,
        correction=0.01,
    )
    return SeriesParts(steps=(StepParts(step=7, name="step_7", keys=(keys,), parts=(own,)),))


def test_a_series_is_the_same_after_a_file():
    back = SeriesParts.decode(parts().encode())
    assert back == parts()
    (step,) = back.steps
    assert step.parts[0].parts.array.tolist() == [0.1, -0.2, 0.1]
    assert step.keys[0].array.tolist() == [3, 5, 2**63]


def test_what_is_no_series_is_refused():
    for content in (b"", b"\xc1", parts().encode()[:-3]):
        with pytest.raises(ValueError, match="it is no series"):
            SeriesParts.decode(content)
    with pytest.raises(ValueError, match="expected doubles"):
        _ = Numbers("|O", b"").array
