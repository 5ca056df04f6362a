"""compare: what is held against what, how, and what is said of it."""

import json

import numpy as np
import pytest

import isoscope as iso
from isoscope.errors import ConfigError, SourceError, StoreError, UnknownNameError
from isoscope.store import load
from isoscope.study.saved_runs import read


def by_measure(changes):
    return {each.measure: each for each in changes}


def test_differences_are_those_of_the_readings(collections):
    a, b = collections("a"), collections("b", shift=0.8)
    found = by_measure(iso.compare(a, b))
    ours, theirs = ({r.measure: r for r in read(each)} for each in (a, b))
    assert found.keys() == ours.keys()
    for name, each in found.items():
        assert (each.a, each.a_low, each.a_high) == (
            ours[name].value, ours[name].low, ours[name].high,
        )  # fmt: skip
        assert each.difference == pytest.approx(theirs[name].value - ours[name].value)
        assert each.low <= each.difference <= each.high
        assert each.paired


def test_a_moved_mean_is_found_and_an_unmoved_spectrum_is_not(collections):
    changes = iso.compare(collections("a"), collections("b", shift=0.8))
    verdicts = {name: each.verdict for name, each in by_measure(changes).items()}
    assert verdicts["mean-cosine"] == verdicts["mean-share"] == "changed"
    assert verdicts["isoscore"] == verdicts["effective-rank-debiased"] == "within noise"


def test_paired_intervals_are_narrower_than_independent_ones(collections):
    a, b = collections("a"), collections("b")
    other = collections("c", prefix="note")
    paired, apart = (by_measure(iso.compare(a, each)) for each in (b, other))
    for name in ("mean-cosine", "isoscore-debiased", "effective-rank", "norm-spread"):
        assert paired[name].paired and not apart[name].paired
        widths = [each[name].high - each[name].low for each in (paired, apart)]
        assert widths[0] < 0.8 * widths[1]


def test_the_same_run_twice_is_the_same(collections):
    run = collections("a")
    changes = iso.compare(run, load(run))
    assert {each.verdict for each in changes} == {"same"}
    assert all(each.low == each.difference == each.high == 0 for each in changes)


def test_turned_around_it_is_the_opposite(collections):
    a, b = collections("a"), collections("b", shift=0.7)
    forth, back = (by_measure(iso.compare(*pair)) for pair in ((a, b), (b, a)))
    for name, each in forth.items():
        assert each.difference == -back[name].difference
        assert each.low == pytest.approx(-back[name].high)
        assert each.chance == back[name].chance


def test_the_correction_is_over_the_rows_shown(collections):
    a, b = collections("a"), collections("b", shift=0.62)
    one = iso.compare(a, b, measures=["norm-spread"])
    many = by_measure(iso.compare(a, b))
    assert one[0].chance < many["norm-spread"].chance <= 1.0
    assert (
        "over 1 rows" in one.summary and f"over {len(many)} rows" in iso.compare(a, b).summary
    )


def test_a_measure_that_was_not_read_comes_from_the_summaries(collections):
    a, b = (collections(name, measures=["mean-cosine"]) for name in "ab")
    assert [each.measure for each in iso.compare(a, b, measures=["mean-cosine-cross"])] == [
        "mean-cosine-cross"
    ]


# --- sites and variants ------------------------------------------------------------------


def profile(layers, measures=("isoscore",), start=0.1):
    return [
        (f"resid.{layer}", name, start + layer / 1000, start - 0.01, start + 0.5)
        for layer in range(layers)
        for name in measures
    ]


def test_what_only_one_run_has_is_reported(handmade):
    a = handmade("a", [*profile(2), ("embed", "isoscore", 0.5, 0.4, 0.6)])
    b = handmade("b", [*profile(3), ("resid.0", "alpha", 1.0, 0.9, 1.1)])
    changes = iso.compare(a, b)
    assert [each.site for each in changes] == ["resid.0", "resid.1"]
    assert changes.left_out == (
        "only in a, or without a match: embed",
        "only in b, or without a match: resid.2",
        "only in b: alpha",
    )


def test_layers_are_matched_by_depth_where_that_is_requested(handmade):
    a, b = handmade("a", profile(3)), handmade("b", profile(5), d=16)
    changes = iso.compare(a, b, match="depth")
    assert [(each.site, each.other_site) for each in changes] == [
        ("resid.0", "resid.0"), ("resid.1", "resid.2"), ("resid.2", "resid.4"),
    ]  # fmt: skip
    assert changes[0].warnings == ("different widths: 8 and 16",)
    assert "site of b" in str(changes)


def test_of_many_measures_and_sites_the_usual_ones_are_shown(handmade):
    names = ("mean-cosine", "mean-cosine-cross", "isoscore", "isoscore-debiased", "alpha",
             "twonn", "mean-share")  # fmt: skip
    a, b = handmade("a", profile(2, names)), handmade("b", profile(2, names))
    assert {each.measure for each in iso.compare(a, b)} == {
        "mean-cosine-cross", "isoscore-debiased", "mean-share",
    }  # fmt: skip
    assert {each.measure for each in iso.compare(a, b, all=True)} == set(names)
    one = iso.compare(a, b, sites=["resid.1"])
    assert {(each.site, each.measure) for each in one} == {("resid.1", n) for n in names}


def test_hundreds_of_layers_are_compared(handmade):
    a, b = handmade("a", profile(400)), handmade("b", profile(400))
    changes = iso.compare(a, b)
    assert len(changes) == 400 and len(changes.to_markdown().splitlines()) > 400


def test_readings_without_an_interval_are_not_judged(handmade):
    a = handmade("a", [("rows", "isoscore", 0.5, None, None), ("rows", "alpha", 1, 0.9, 1.1)])
    b = handmade("b", [("rows", "isoscore", 0.6, 0.5, 0.7), ("rows", "alpha", 2, 1.9, 2.1)])
    found = by_measure(iso.compare(a, b))
    assert (found["isoscore"].verdict, found["isoscore"].low) == ("no interval", None)
    assert found["alpha"].verdict == "changed"


def test_zero_width_intervals_tell_changed_from_same(handmade):
    a = handmade("a", [("rows", "isoscore", 0.5, 0.5, 0.5), ("rows", "alpha", 1, 1, 1)])
    b = handmade("b", [("rows", "isoscore", 0.6, 0.6, 0.6), ("rows", "alpha", 1, 1, 1)])
    changes = iso.compare(a, b)
    assert [each.verdict for each in changes] == ["changed", "same"]
    assert "0.1000" in str(changes)


def test_bias_that_differs_is_warned_of(handmade):
    row = [("rows", "isoscore", 0.5, 0.4, 0.6)]
    biased = ("n < 10 d (50 rows, 8 dimensions): the spectrum is biased",)
    a, b = handmade("a", row, n=50, warnings=biased), handmade("b", row)
    (change,) = iso.compare(a, b)
    assert change.warnings[0].startswith("biased by the number of rows, 50 in a and 500 in b")


# --- bias by documents --------------------------------------------------------------------


def in_documents(rng, documents, each, *, d=24, rho=0.3, first=0):
    """Rows of one population, dealt to documents: eigenvalue i is i^-1/2, the mean is not 0."""
    ids = np.repeat(np.arange(documents) + first, each)
    shared = rng.normal(size=(documents, d)).repeat(each, axis=0)
    noise = np.sqrt(rho) * shared + np.sqrt(1 - rho) * rng.normal(size=(len(ids), d))
    return (noise * np.arange(1, d + 1) ** -0.25 + 0.2).astype(np.float32), ids


def measured(folder, name, rows, ids, **options):
    iso.measure(rows, document=ids, output=folder / name, **options)
    return folder / name


@pytest.fixture(scope="module")
def unlike(tmp_path_factory):
    """Few long documents and many short ones, with as many rows of the same population."""
    folder, rng = tmp_path_factory.mktemp("unlike"), np.random.default_rng(5)
    few = measured(folder, "few", *in_documents(rng, 40, 100, d=48))
    many = measured(folder, "many", *in_documents(rng, 400, 10, d=48, first=1000))
    return few, many


def test_other_numbers_of_documents_change_nothing_where_rows_are_as_many(unlike):
    # the plain values differ by more than their noise; their intervals allow for it
    found = by_measure(iso.compare(*unlike, all=True))
    for name in ("effective-rank", "rankme", "alpha", "isoscore", "participation"):
        assert found[name].verdict != "changed", name
        assert found[name].low <= 0 <= found[name].high
    assert (
        found["rankme"]
        .warnings[0]
        .startswith("biased by the number of documents, 40 in a and 400 in b: compare ")
    )
    assert not found["isoscore"].warnings and not found["isoscore-debiased"].warnings


def test_a_measure_asked_alone_has_the_caveat_too(unlike):
    for name in ("effective-rank", "isoscore", "mean-cosine", "rankme"):
        alone = iso.compare(*unlike, measures=[name])[0]
        assert alone.warnings == by_measure(iso.compare(*unlike, all=True))[name].warnings


def test_a_debiased_measure_that_is_biased_itself_is_not_advised(tmp_path):
    rng = np.random.default_rng(6)
    few = measured(tmp_path, "few", *in_documents(rng, 40, 12, d=96))
    many = measured(tmp_path, "many", *in_documents(rng, 80, 12, d=96, first=1000))
    found = by_measure(iso.compare(few, many, measures=["effective-rank", "isoscore"]))
    assert (
        found["effective-rank"]
        .warnings[0]
        .endswith("40 in a and 80 in b: compare runs of equally many documents")
    )
    assert not found["isoscore"].warnings  # its interval is that of isoscore-debiased


def test_a_paired_change_of_a_biased_measure_has_the_caveat(tmp_path):
    rng = np.random.default_rng(7)
    rows, ids = in_documents(rng, 40, 12, d=96)
    runs = [
        measured(tmp_path, str(power), rows * np.arange(1, 97) ** -power, ids)
        for power in (0.0, 1.0)
    ]
    change = by_measure(iso.compare(*runs, all=True))["effective-rank"]
    assert change.paired and change.verdict == "changed"
    assert change.warnings[0].startswith("biased by few rows or documents, perhaps not alike")


# --- the size of a change -----------------------------------------------------------------


@pytest.fixture(scope="module")
def alike(tmp_path_factory):
    """Vectors of the same 20,000 texts by a model and by one that hardly differs."""
    folder, rng = tmp_path_factory.mktemp("alike"), np.random.default_rng(8)
    rows = rng.normal(size=(20_000, 32)) * np.arange(1, 33) ** -0.1 + 0.3
    other = rows * np.linspace(1.0, 1.002, 32)
    for name, cloud in (("a.npy", rows), ("b.npy", other)):
        np.save(folder / name, cloud.astype(np.float32))
    return folder / "a.npy", folder / "b.npy"


def test_a_certain_but_tiny_change_is_negligible(alike):
    found = by_measure(iso.compare(*alike))
    change = found["participation"]
    assert change.chance < 0.05 and change.low > 0  # larger than noise
    assert change.verdict == "negligible"
    assert change.effect == pytest.approx(change.difference / change.b) and change.effect < 1e-3
    assert change.scale == change.b and found["mean-cosine"].scale == 1.0
    assert found["mean-cosine"].effect == found["mean-cosine"].difference
    assert "changed" not in {each.verdict for each in found.values()}


def test_the_limit_can_be_set(alike):
    measures = ["participation", "mean-cosine"]
    for limit, verdict in ((0.0, "changed"), (1e-6, "changed"), (0.05, "negligible")):
        changes = iso.compare(*alike, measures=measures, negligible=limit)
        assert {each.verdict for each in changes} == {verdict}
        assert changes.shared["negligible_below"] == limit
    with pytest.raises(ConfigError) as error:
        iso.compare(*alike, negligible=2)
    assert error.value.slug == "negligible-share"


@pytest.mark.parametrize("name", ["mean-cosine", "norm-spread", "isoscore", "uniformity"])
def test_files_are_paired_whatever_is_measured(alike, name):
    changes = iso.compare(*alike, measures=[name])
    assert changes[0].paired and changes.remarks[0].startswith("paired by document group")


def test_series_are_matched_step_by_step(handmade):
    row = [("embed", "isoscore", 0.5, 0.4, 0.6)]
    a, b = handmade("a", row, step=1000), handmade("b", row, step=1000)
    (change,) = iso.compare(a, b)
    assert change.step == 1000 and "1000" in iso.compare(a, b).to_markdown()
    with pytest.raises(ConfigError, match="expected a reading that both runs have"):
        iso.compare(a, handmade("c", row, step=2000))


# --- bad input ---------------------------------------------------------------------------

ROW = [("embed", "isoscore", 0.5, 0.4, 0.6)]


def test_runs_with_nothing_in_common_are_one_clear_error(handmade):
    a, b = handmade("a", ROW), handmade("b", [("rows", "isoscore", 0.5, 0.4, 0.6)])
    with pytest.raises(ConfigError, match="a has embed; b has rows") as caught:
        iso.compare(a, b)
    assert caught.value.slug == "nothing-to-compare"


@pytest.mark.parametrize(
    ("how", "hint"),
    [
        ({"measures": ["isoscor"]}, "did you mean 'isoscore'?"),
        ({"sites": ["embde"]}, "did you mean 'embed'?"),
        ({"variant": "no-sinks"}, "did you mean 'no-sink'?"),
        ({"match": "dept"}, "did you mean 'depth'?"),
    ],
)
def test_an_unknown_name_gets_the_nearest(handmade, how, hint):
    run = handmade("a", ROW)
    with pytest.raises(UnknownNameError) as caught:
        iso.compare(run, run, **how)
    assert caught.value.hint == hint


def test_what_is_no_run_is_refused(handmade, tmp_path):
    run = handmade("a", ROW)
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    for other, error in (("file", SourceError), ("empty", StoreError), ("nothing", StoreError)):
        with pytest.raises(error):
            iso.compare(run, tmp_path / other)


def test_a_run_of_a_newer_schema_is_refused(handmade):
    run, newer = handmade("a", ROW), handmade("b", ROW)
    manifest = json.loads((newer / "run.json").read_text())
    (newer / "run.json").write_text(json.dumps({**manifest, "schema": 99}))
    with pytest.raises(StoreError, match="schema") as caught:
        iso.compare(run, newer)
    assert caught.value.slug == "store-newer"


def test_a_damaged_state_is_refused_where_it_is_needed(collections):
    a, b = collections("a"), collections("b")
    state = b / "state.safetensors"
    content = bytearray(state.read_bytes())
    content[-1] ^= 1
    state.write_bytes(bytes(content))
    with pytest.raises(StoreError, match="checksum"):
        iso.compare(a, b)


# --- a model -----------------------------------------------------------------------------


def test_a_model_in_two_precisions_differs_by_little_and_is_reported_exactly(
    tiny, texts, tmp_path
):
    sites = ["embed", "resid.0", "norm.out"]
    measures = ["mean-cosine", "mean-cosine-cross", "isoscore"]
    for dtype in ("float32", "bfloat16"):
        iso.survey(
            tiny, texts, output=tmp_path / dtype, dtype=dtype, sites=sites, measures=measures
        )
    changes = iso.compare(tmp_path / "float32", tmp_path / "bfloat16", all=True)
    method, differs = changes.remarks
    assert "dtype float32 and bfloat16" in differs
    assert method.startswith("paired by document group: both read the same")
    sites = {each.site for each in changes}
    assert {"embed", "resid.0", "norm.out", "embed.weight"} <= sites
    inner = [e for e in changes if e.measure == "mean-cosine-cross" and e.paired]
    assert len(inner) >= 4
    for each in inner:
        own = np.hypot(each.a_high - each.a_low, each.b_high - each.b_low)
        assert each.high - each.low < 0.2 * own


@pytest.fixture(scope="module")
def trained_and_not(tiny, texts, tmp_path_factory):
    """Return a folder with the runs of a model, `0`, and of its shape untrained, `1`."""
    place = tmp_path_factory.mktemp("variants")
    for seed in (0, 1):
        output = place / str(seed)
        iso.survey(tiny, texts, output=output, untrained=bool(seed), measures=["isoscore"])
    return place


@pytest.mark.parametrize("variant", ["no-special", "no-sink"])
def test_variants_are_compared_on_their_own(trained_and_not, variant):
    changes = iso.compare(trained_and_not / "0", trained_and_not / "1", variant=variant)
    ours = {r.site: r.value for r in read(trained_and_not / "0") if r.variant == variant}
    assert {each.site: each.a for each in changes} == ours
    assert all(each.paired for each in changes)


def test_depth_is_that_of_the_model_whatever_was_surveyed(tiny, texts, tmp_path):
    for name, sites in (("first", ["resid.0"]), ("last", ["resid.2"]), ("all", ["resid"])):
        options = {"sites": sites, "measures": ["mean-cosine"]}
        iso.survey(tiny, texts, output=tmp_path / name, **options)
    with pytest.raises(ConfigError, match=r"a has resid\.0; b has resid\.2"):
        iso.compare(tmp_path / "first", tmp_path / "last", match="depth")
    changes = iso.compare(tmp_path / "all", tmp_path / "last", match="depth")
    assert [(each.site, each.other_site) for each in changes] == [("resid.2", "resid.2")]
    for name in ("first", "last", "all"):
        assert load(tmp_path / name).origin.model.layers["resid"] == 3


def test_runs_that_do_not_say_how_deep_a_model_is_are_named(handmade):
    changes = iso.compare(handmade("a", profile(3)), handmade("b", profile(5)), match="depth")
    assert changes.remarks[1] == (
        "the number of layers is not stored in a and b: the deepest site that was surveyed "
        "counts as the last layer"
    )
