"""Sites are taken apart in one place, and every name prints as it was."""

import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from isoscope.site import (
    FAMILIES,
    OTHER,
    STREAM,
    Site,
    is_layer,
    is_matrix,
    last_of_stream,
    order_regions,
    order_sites,
    output_of,
)

SOURCE = Path(__file__).parents[1] / "src" / "isoscope"
WORDS = [*FAMILIES, "enc", "dec", "in", "mid", "out", "weight", "0", "03", "3", "11", "", "my"]
NAMES = st.text() | st.lists(st.sampled_from(WORDS), max_size=5).map(".".join)


@given(NAMES)
@example("enc.")
@example("enc.enc.resid.3")
@example("resid.٣")
@example("resid.99999999999999999999")
@example("gradw.")
@example("norm.in.3")
@example(".3")
def test_every_name_prints_as_it_was(text):
    assert str(Site.parse(text)) == text


@given(NAMES)
def test_every_name_has_an_order_a_region_and_a_group(text):
    site = Site.parse(text)
    assert order_sites([text]) == [text]
    assert site.matches(text)
    assert site.matches(site.group) or site.layer is None
    assert not site < site


@pytest.mark.parametrize(
    ("text", "site"),
    [
        ("rows", Site("rows")),
        ("embed", Site("embed")),
        ("resid", Site("resid")),
        ("resid.3", Site("resid", 3)),
        ("enc.attn.0", Site("attn", 0, stack="enc")),
        ("dec.q.3.11", Site("q", 3, 11, stack="dec")),
        ("norm.mid", Site("norm", part="mid")),
        ("dec.norm.out", Site("norm", part="out", stack="dec")),
        ("enc.embed.weight", Site("embed.weight", stack="enc")),
        ("stage.2", Site("stage", 2)),
        ("grad.3", Site("grad", 3)),
        ("gradw.h.0.attn.weight", Site("gradw", part="h.0.attn.weight")),
        ("pooled", Site("pooled")),
        ("task", Site("task")),
        ("my.site", Site("my.site")),
        ("encoder.layer.3", Site("encoder.layer", 3)),
        ("h.3.mlp.0", Site("h.3.mlp.0")),
        ("mlp.fc1", Site("mlp.fc1")),
        ("resid.03", Site("resid.03")),
        ("norm.inner", Site("norm.inner")),
    ],
)
def test_a_name_is_taken_apart(text, site):
    assert Site.parse(text) == site


def test_families_are_distinguished_from_names_that_somebody_gave():
    free = ["my.site", "encoder.layer.3", "mlp.fc1", "norm.inner", ""]
    assert all(Site.parse(name).is_free for name in free)
    assert not any(Site.parse(name).is_free for name in ("rows", "q.0.1", "gradw.a.b", "norm"))


def test_matrices_have_rows_of_tokens():
    matrices = ["embed.weight", "unembed.weight", "dec.embed.weight"]
    assert all(map(is_matrix, matrices))
    assert not any(map(is_matrix, ["embed", "gradw.h.0.weight", "my.weight", "rows"]))


def test_layers_are_known_by_name():
    assert [n for n in ("resid", "resid.0", "enc.resid.0", "mlp.1") if is_layer(n)] == [
        "resid.0"
    ]


def test_the_group_is_the_family_with_its_stack():
    names = ("enc.resid.3", "norm.mid", "dec.embed.weight", "my.site", "again.1")
    groups = [Site.parse(name).group for name in names]
    assert groups == ["enc.resid", "norm", "dec.embed.weight", "my.site", "again"]


@pytest.mark.parametrize(
    ("name", "selectors"),
    [
        ("resid.3", ["resid", "resid.3"]),
        ("enc.resid.3", ["resid", "resid.3", "enc", "enc.resid", "enc.resid.3"]),
        ("q.3.11", ["q", "q.3", "q.3.11"]),
        ("embed.weight", ["embed", "embed.weight"]),
        ("unembed.weight", ["unembed", "unembed.weight"]),
        ("stage.2", ["resid", "stage", "stage.2"]),
        ("enc.stage.2", ["resid", "enc.resid", "stage", "enc", "enc.stage.2"]),
        ("my.site", ["my", "my.site"]),
    ],
)
def test_a_selector_is_the_start_of_a_name(name, selectors):
    others = {"resi", "resid.30", "dec", "dec.resid", "q.3.1", "embe", "weight", "site", "dec."}
    site = Site.parse(name)
    assert [s for s in (*selectors, *others) if site.matches(s)] == selectors


def test_sites_sort_as_a_model_has_them_and_matrices_last():
    names = [
        "enc.embed", "enc.resid.2", "enc.resid.10", "enc.attn.0", "enc.norm.in",
        "enc.norm.mid", "enc.norm.out", "enc.q.0.2", "enc.q.0.10", "enc.k.0.0",
        "dec.embed", "dec.resid.0", "enc.embed.weight", "unembed.weight", "dec.embed.weight",
    ]  # fmt: skip
    assert sorted(reversed(names), key=Site.parse) == names
    assert [str(site) for site in sorted(map(Site.parse, sorted(names)))] == names


@pytest.mark.parametrize(
    ("site", "region", "label"),
    [
        ("embed", STREAM, "embed"),
        ("resid.12", STREAM, "12"),
        ("norm.mid", STREAM, "mid"),
        ("enc.resid.1", "encoder stream", "1"),
        ("dec.embed", "decoder stream", "embed"),
        ("attn.3", "attention output", "3"),
        ("dec.q.3.11", "decoder queries", "3.11"),
        ("grad.3", "gradients", "3"),
        ("embed.weight", OTHER, "embed.weight"),
        ("rows", OTHER, "rows"),
        ("resid", OTHER, "resid"),
        ("encoder.layer.3", OTHER, "encoder.layer.3"),
        ("resid.99999999999999999999", OTHER, "resid.99999999999999999999"),
        ("</script>", OTHER, "</script>"),
    ],
)
def test_a_site_has_a_region_and_a_label(site, region, label):
    assert (Site.parse(site).region, Site.parse(site).label) == (region, label)


def test_layers_stand_in_the_order_of_their_numbers_and_other_sites_last():
    sites = ["embed.weight", "resid.10", "norm.out", "resid.9", "embed", "attn.1"]
    assert order_sites(sites)[:4] == ["embed", "resid.9", "resid.10", "norm.out"]
    assert order_sites(sites)[-1] == "embed.weight"
    assert order_sites(["q.1.10", "q.1.2", "q.0.3"]) == ["q.0.3", "q.1.2", "q.1.10"]
    assert order_regions([OTHER, "queries", STREAM, "queries"]) == ["queries", STREAM, OTHER]


def test_the_output_is_the_deepest_site_of_the_last_stream():
    assert last_of_stream(["embed", "norm.out", "resid.3", "embed.weight"]) == "norm.out"
    assert last_of_stream(["enc.norm.out", "dec.embed", "dec.resid.1"]) == "dec.resid.1"
    assert last_of_stream(["embed.weight", "pooled"]) == "pooled"
    assert last_of_stream(iter(["rows"])) == "rows"
    assert last_of_stream([]) is None


def test_the_output_is_pooled_where_a_model_pools():
    assert output_of(["embed", "norm.out", "pooled", "embed.weight"]) == "pooled"
    assert output_of(["embed", "norm.out", "resid.3"]) == "norm.out"
    assert output_of(iter([])) is None


def test_the_final_norm_comes_after_the_blocks():
    names = ("embed", "resid.31", "norm.in", "dec.norm.out", "rows", "norm")
    after = [name for name in names if Site.parse(name).is_final_norm]
    assert after == ["norm.in", "dec.norm.out"]
    assert Site.parse("norm.in").depth > Site.parse("resid.9999").depth


GRAMMAR = re.compile(
    r"""["'](enc|dec)\.["']"""  # a stack as a prefix
    r"""|["']\.weight["']"""  # a matrix by its end
    r"""|(startswith|endswith|removeprefix|removesuffix)\(f?["'][^"']*"""
    r"""\b(resid|norm|attn|mlp|embed|stage|grad|gradw|pooled|in|mid|out)\.?["']"""
)
LATER = {"study/saved_runs.py"}


def offenders(source):
    """Return the lines of modules that take names of sites apart by themselves."""
    return {
        f"{path.relative_to(source)}:{number}": line.strip()
        for path in sorted(source.rglob("*.py"))
        if str(path.relative_to(source)) not in {"site.py", *LATER}
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if GRAMMAR.search(line)
    }


def test_nobody_else_takes_names_of_sites_apart():
    assert offenders(SOURCE) == {}


def test_grammar_elsewhere_is_caught(tmp_path):
    lines = [
        'if site.startswith("resid."):', 'site.endswith(".weight")', 'MATRIX = ".weight"',
        'PREFIXES = ("", "enc.", "dec.")', 'reading.site.endswith("norm.out")',
        "x.startswith('dec.')", 'site.removesuffix(".out")',
    ]  # fmt: skip
    fine = ['getattr(module, "weight", None)', 'HEADS = "decoder."', 'kind.endswith("enc")']
    (tmp_path / "a.py").write_text("\n".join([*lines, *fine]))
    assert list(offenders(tmp_path)) == [f"a.py:{n}" for n in range(1, len(lines) + 1)]
