"""The size of a change, and when it is negligible."""

import pytest

from isoscope.comparison.effect import check_limit, is_negligible, scale_of
from isoscope.errors import ConfigError
from isoscope.measures import MEASURES
from isoscope.measures.difference import Difference

ABSOLUTE = {  # 0 is isotropic, 1 is collapsed
    "mean-cosine", "mean-cosine-cross", "mean-cosine-centred", "mean-share",
    "mean-share-debiased",
    "self-similarity", "intra-similarity", "inter-similarity", "cluster-isotropy",
    "query-cosine", "key-cosine",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(MEASURES))
def test_a_change_is_compared_with_the_larger_value_unless_isotropic_is_zero(name):
    assert scale_of(name, -2.0, 1.0) == (1.0 if name in ABSOLUTE else 2.0)


def test_companions_have_the_scale_of_their_measure():
    assert scale_of("intra-similarity-token", 0.1, 0.2) == 1.0
    assert scale_of("partition-reference", 0.1, 0.2) == 0.2
    assert scale_of("of-somebody-else", 0.1, 0.2) == 0.2


@pytest.mark.parametrize(
    ("low", "high", "negligible"),
    [
        (0.05, 0.09, True),
        (-0.09, -0.05, True),
        (0.05, 0.11, False),  # the value is below 1 % of 10, but it may be more
        (-0.11, -0.05, False),
        (None, None, False),
    ],
)
def test_the_whole_interval_must_be_below_the_limit(low, high, negligible):
    assert is_negligible(Difference(0.07, low, high), 10.0, 0.01) is negligible


def test_nothing_is_negligible_at_zero():
    assert not is_negligible(Difference(0.0, 0.0, 0.0), 10.0, 0.0)


@pytest.mark.parametrize("limit", [-0.01, 1.0, float("nan"), float("inf")])
def test_a_limit_that_is_no_share_is_refused(limit):
    with pytest.raises(
        ConfigError, match="expected a share of at least 0 and below 1"
    ) as error:
        check_limit(limit)
    assert error.value.slug == "negligible-share"
