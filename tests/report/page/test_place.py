"""Where sites stand."""

import pytest

from isoscope.report.page.place import STREAM, last_of_stream, ordered, place_of


@pytest.mark.parametrize(
    ("site", "part", "label"),
    [
        ("embed", STREAM, "embed"),
        ("resid.12", STREAM, "12"),
        ("norm.mid", STREAM, "mid"),
        ("enc.resid.1", "encoder stream", "1"),
        ("dec.embed", "decoder stream", "embed"),
        ("attn.3", "attention output", "3"),
        ("dec.q.3.11", "decoder queries", "3.11"),
        ("embed.weight", "other sites", "embed.weight"),
        ("rows", "other sites", "rows"),
        ("resid.99999999999999999999", "other sites", "resid.99999999999999999999"),
        ("</script>", "other sites", "</script>"),
    ],
)
def test_a_site_has_a_part_and_a_label(site, part, label):
    assert (place_of(site).part, place_of(site).label) == (part, label)


def test_layers_stand_in_the_order_of_their_numbers_and_other_sites_last():
    sites = ["embed.weight", "resid.10", "norm.out", "resid.9", "embed", "attn.1"]
    assert ordered(sites)[:4] == ["embed", "resid.9", "resid.10", "norm.out"]
    assert ordered(sites)[-1] == "embed.weight"


def test_the_output_is_the_deepest_site_of_the_last_stream():
    assert last_of_stream(["embed", "norm.out", "resid.3", "embed.weight"]) == "norm.out"
    assert last_of_stream(["enc.norm.out", "dec.embed", "dec.resid.1"]) == "dec.resid.1"
    assert last_of_stream(["embed.weight", "pooled"]) == "pooled"
    assert last_of_stream(["rows"]) == "rows"
    assert last_of_stream([]) is None


def test_the_final_norm_comes_after_the_blocks():
    after = [site for site in ("embed", "resid.31", "norm.in", "dec.norm.out", "rows")
             if place_of(site).after_blocks]  # fmt: skip
    assert after == ["norm.in", "dec.norm.out"]
