"""explain of a run of attention heads: cosines beside that of their site."""

import pytest

import isoscope as iso
from isoscope.errors import UnknownNameError
from isoscope.lab.explain.heads import head_cosines, stream_of
from isoscope.site import Site


@pytest.fixture(scope="module")
def heads_run(tiny, texts, tmp_path_factory):
    path = tmp_path_factory.mktemp("explained") / "run"
    return path, iso.attention(tiny, texts, output=path, threads=1)


def test_each_head_stands_beside_its_site(heads_run):
    path, readings = heads_run
    found = iso.explain(path)
    values = {(each.site, each.measure): each for each in readings}
    assert len(found) == len({each.site for each in readings if each.site.startswith("head")})
    for each in found:
        assert each.query_cosine == values[each.site, "query-cosine"].value
        assert each.key_cosine == values[each.site, "key-cosine"].value
        assert each.mean_cosine == values[each.stream, "mean-cosine"].value
        assert each.low < each.mean_cosine < each.high
    assert (found[0].stream, found[-1].stream) == ("embed", "resid.1")
    assert "queries" in str(found) and "mean cosine" in str(found)
    assert len(found.to_json().splitlines()) == len(found)


def test_one_head_is_chosen_by_its_site(heads_run):
    path, _ = heads_run
    (one,) = iso.explain(path, sites=["head.1.0"])
    assert one.site == "head.1.0"
    with pytest.raises(UnknownNameError):
        iso.explain(path, sites=["head.9.0"])


def test_heads_of_a_crossing_belong_to_the_decoder():
    assert stream_of(Site.parse("cross.head.0.1")) == "dec.embed"
    assert stream_of(Site.parse("dec.head.2.1")) == "dec.resid.1"
    assert head_cosines([]) == []
