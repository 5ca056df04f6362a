"""A survey from Python: what it reads, whatever the batches, and what it refuses."""

import json
import random
import shutil

import numpy as np
import pytest

from isoscope.api import survey
from isoscope.errors import IsoscopeError
from isoscope.store import load
from isoscope.study.model import list_sites as sites
from isoscope.study.model import load_model

EVERY = ("resid", "norm", "embed", "unembed", "attn", "mlp", "q", "k", "v")


@pytest.fixture(scope="module")
def whole(tiny, texts):
    """A survey of the usual sites."""
    return survey(tiny, texts, tokens=None)


def values(readings, site="resid.1", variant="all"):
    return {
        r.measure: r.value
        for r in readings
        if (r.site, r.variant, r.group) == (site, variant, "")
    }


# Units as small as that are hardly sorted by length.
ALONE, UNSORTED = {"batch": 1}, {"batch": 5, "unit": 90}
# Rounding decides whether two rows are copies, of which only one counts.
JUMP = ("twonn", "cluster-isotropy")
# Documents that begin alike have rows in a decoder that are equal but for rounding.
COPIES = ("mle-dimension", "lid")
SOME = ["resid.1", "norm.mid", "q.1.0"]  # `make slow` has all of them


@pytest.mark.parametrize(("model", "how"), [("tiny", ALONE), ("decoder", UNSORTED)])
def test_batches_do_not_change_what_is_read(request, model, how, texts, assert_alike):
    folder, texts = request.getfixturevalue(model), texts[:20]
    given = {"tokens": None, "all": True, "sites": SOME}
    together = survey(folder, texts, batch=32, **given)
    assert len({r.site for r in together}) == len(SOME)
    assert_alike(together, survey(folder, texts, **how, **given), rel=1e-4, absolute=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["tiny", "decoder"])
def test_batches_change_no_site_at_all(request, model, texts, assert_alike):
    folder = request.getfixturevalue(model)
    there = {row[0] for row in sites(folder)}
    given = {"tokens": None, "all": True, "sites": [each for each in EVERY if each in there]}
    jump = JUMP if model == "tiny" else (*JUMP, *COPIES)

    def read(**how):
        found = survey(folder, texts, **how, **given)
        return [r for r in found if not r.measure.startswith(jump)]

    together = read(batch=32)
    assert len({r.site for r in together}) > 20
    for how in (ALONE, UNSORTED):
        assert_alike(together, read(**how), rel=1e-4, absolute=1e-4)


@pytest.mark.real
@pytest.mark.slow
def test_batches_do_not_change_what_minilm_reads(minilm, texts, assert_alike):
    given = {"tokens": None, "sites": ["resid", "norm", "pooled"]}
    together = survey(minilm, texts, batch=32, **given)
    assert_alike(together, survey(minilm, texts, batch=1, **given), rel=1e-4, absolute=1e-4)


def test_the_order_of_the_corpus_does_not_matter(tiny, texts, tmp_path, assert_alike):
    lines = [json.dumps({"text": text, "key": f"d{n}"}) for n, text in enumerate(texts)]
    found = []
    for name in ("straight", "shuffled"):
        path = tmp_path / f"{name}.jsonl"
        path.write_text("\n".join(lines) + "\n")
        found.append(survey(tiny, path, column="text", id="key", sites=["resid.1"], tokens=300))
        random.Random(0).shuffle(lines)
    assert_alike(*found)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_narrow_numbers_read_a_little_differently(tiny, texts, whole, dtype, capsys):
    narrow = survey(tiny, texts, tokens=None, dtype=dtype, sites=["resid.2", "norm.out"])
    wide = {(r.site, r.variant, r.measure, r.group): r.value for r in whole}
    apart = {}
    for r in narrow:
        assert np.isfinite(r.value)
        by = abs(r.value - wide[r.site, r.variant, r.measure, r.group])
        if r.site == "resid.2" and not r.group:
            apart[r.measure] = max(apart.get(r.measure, 0.0), by)
    print("\n".join(f"{dtype} {name}: {by:.2g}" for name, by in apart.items()))
    assert 0 < apart["mean-cosine"] < 0.02
    assert 0 < apart["isoscore"] < 0.02
    assert apart["participation"] < 0.5
    assert "mean-cosine" in capsys.readouterr().out


def test_every_site_has_every_variant(whole):
    assert {r.site for r in whole} == {
        "embed", "resid.0", "resid.1", "resid.2", "norm.in", "norm.mid", "norm.out",
        "embed.weight",
    }  # fmt: skip
    assert {r.variant for r in whole if r.site == "resid.0"} == {"all", "no-special", "no-sink"}
    assert {r.variant for r in whole if r.site == "embed.weight"} == {"all"}
    everywhere, without = (
        next(r.n for r in whole if (r.site, r.variant) == ("resid.0", variant))
        for variant in ("all", "no-special")
    )
    assert everywhere - without == 2 * 40  # [CLS] and [SEP] of each document


def test_a_document_is_a_cluster(tiny, texts):
    found = survey(tiny, texts, tokens=None, sites=["resid.0"], measures=["mean-cosine-cross"])
    assert [r.measure for r in found] == ["mean-cosine-cross"] * 3
    assert all(r.low <= r.value <= r.high for r in found)


@pytest.mark.parametrize("turns", [2, 50])
def test_turns_change_no_bit(tiny, texts, whole, assert_alike, turns):
    said = []
    assert_alike(whole, survey(tiny, texts, tokens=None, turns=turns, say=said.append))
    assert len(said) == 1
    assert f"done in {min(turns, 7)} turns" in said[0]  # seven sites: no more than one each
    assert "MiB" in said[0] or "GiB" in said[0]


def test_turns_are_taken_where_memory_is_short(tiny, texts, whole, assert_alike, monkeypatch):
    monkeypatch.setenv("ISOSCOPE_MEMORY", "4000000")
    said = []
    assert_alike(whole, survey(tiny, texts, tokens=None, say=said.append))
    assert len(said) == 1
    assert "7 sites" in said[0]
    assert "turns" in said[0]
    assert "0.0 GiB" not in said[0]


def test_no_turns_are_spoken_of_where_there_is_room(tiny, texts):
    said = []
    survey(tiny, texts, sites=["resid.0"], measures=["isoscore"], say=said.append)
    assert said == []


def test_untrained_is_another_model_of_the_same_shape(tiny, texts, whole):
    usual = {"measures": ["mean-cosine", "isoscore"], "tokens": None, "untrained": True}
    random_one = survey(tiny, texts, **usual)
    assert {r.site for r in random_one} == {r.site for r in whole}
    theirs = values(whole)
    assert all(theirs[name] != value for name, value in values(random_one).items())
    given = {**usual, "sites": ["resid.1"]}
    assert values(random_one) == values(survey(tiny, texts, **given))
    assert values(random_one) != values(survey(tiny, texts, seed=1, **given))


def pooled(folder, texts, **given):
    return survey(folder, texts, tokens=None, sites=["resid.2", "pooled"], **given)


def test_pooled_vectors_are_a_site(tiny, texts):
    given = {"measures": ["isoscore"]}
    modes = ("mean", "cls", "last", "max")
    found = {mode: pooled(tiny, texts, pooling=mode, **given) for mode in modes}
    for readings in found.values():
        sizes = {(r.n, r.d) for r in readings if r.site == "pooled"}
        assert sizes == {(40, 24)}
    assert len({values(r, "pooled")["isoscore"] for r in found.values()}) == 4


def test_pooled_vectors_may_be_cut(tiny, texts):
    found = pooled(tiny, texts, pooling="mean", truncate_dim=8, measures=["isoscore"])
    assert {r.d for r in found if r.site == "pooled"} == {8}
    assert {r.d for r in found if r.site == "resid.2"} == {24}


def test_a_mean_is_that_of_the_last_block(tiny, texts):
    import torch

    from isoscope.api import measure

    found = load_model(tiny)
    rows = []
    for text in texts:
        given = found.loaded.tokenizer(text, return_tensors="pt")
        with torch.inference_mode():
            rows.append(found.loaded.body(**given).last_hidden_state[0].mean(dim=0))
    wanted = {r.measure: r.value for r in measure(torch.stack(rows).numpy())}
    ours = values(pooled(tiny, texts, pooling="mean"), "pooled")
    for name in ("mean-cosine", "isoscore", "participation", "norm-spread", "mean-share"):
        assert ours[name] == pytest.approx(wanted[name], rel=1e-4)


def test_a_prompt_stands_before_every_text(tiny, texts, whole):
    given = {"tokens": None, "sites": ["resid.1"], "measures": ["isoscore"]}
    prompted = survey(tiny, texts, prompt="the river ", **given)
    by_hand = survey(tiny, [f"the river {text}" for text in texts], **given)
    assert values(prompted)["isoscore"] == pytest.approx(values(by_hand)["isoscore"], rel=1e-6)
    assert values(prompted)["isoscore"] != values(whole)["isoscore"]


def test_tokens_bound_the_corpus_and_the_seed_chooses(tiny, texts):
    few = survey(tiny, texts, tokens=100, sites=["resid.0"])
    n = next(r.n for r in few)
    assert 100 <= n < 130
    other = survey(tiny, texts, tokens=100, sites=["resid.0"], seed=1)
    assert values(few, "resid.0") != values(other, "resid.0")


def test_long_documents_are_cut_and_it_is_reported(tiny, texts):
    found = survey(tiny, texts, tokens=None, length=10, sites=["resid.0"])
    assert any("documents were truncated" in remark for remark in found.remarks)
    assert next(r.n for r in found) == 40 * 10


def test_progress_never_goes_back_and_ends_at_the_total(tiny, texts):
    once, twice = "mean-cosine", "mean-cosine-centred"
    for measure, given, runs in (
        (once, {}, 1),
        (once, {"turns": 2}, 2),
        (twice, {"all": True}, 2),
    ):
        told = []
        survey(
            tiny, texts, tokens=None, unit=150, sites=["resid.0", "resid.1"],
            measures=[measure], progress=lambda *each, told=told: told.append(each), **given,
        )  # fmt: skip
        done, totals = zip(*told, strict=True)
        n = sum(len(text.split()) + 2 for text in texts)
        assert list(done) == sorted(done)
        assert len(set(totals)) == 1
        assert done[-1] == totals[0] == runs * n
        assert done[0] < n / 2


def test_sites_are_listed_with_their_widths(tiny):
    rows = {(family, width): count for family, count, width in sites(tiny)}
    assert rows["resid", 24] == 3
    assert rows["q", 12] == 6
    assert rows["norm", 24] == 3


def sentence_folder(tiny, folder, *, dense=None):
    shutil.copytree(tiny, folder)
    (folder / "modules.json").write_text(
        json.dumps(
            [
                {"idx": 0, "name": "0", "path": "", "type": "st.models.Transformer"},
                {"idx": 1, "name": "1", "path": "1_Pooling", "type": "st.models.Pooling"},
                {"idx": 2, "name": "2", "path": "2_Normalize", "type": "st.models.Normalize"},
            ]
        )
    )
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(
        json.dumps({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True})
    )
    return folder


def test_a_folder_that_says_how_it_pools_has_a_pooled_site(tiny, texts, tmp_path):
    folder = sentence_folder(tiny, tmp_path / "sentences")
    assert ("pooled", 1, 48) in sites(folder)  # cls and mean side by side
    found = survey(folder, texts, measures=["norm-spread"])
    assert {(r.n, r.d) for r in found if r.site == "pooled"} == {(40, 48)}
    assert values(found, "pooled")["norm-spread"] == pytest.approx(0, abs=1e-6)


def spoilt_folder(tiny, folder, change):
    """Copy the model with some weights changed."""
    from safetensors.numpy import load_file, save_file

    shutil.copytree(tiny, folder)
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def one_document_overflows(tiny, texts):
    """Return a change of block 1 that one document alone suffers from, and its name.

    A neuron is silent below a level that one token of one document exceeds, and what it
    then says is more than a float can hold.
    """
    import torch

    found = load_model(tiny)
    heard = []
    module = found.loaded.body.encoder.layer[1].attention.output
    handle = module.register_forward_hook(lambda _m, _i, out: heard.append(out[0].amax(dim=0)))
    for text in texts:
        with torch.inference_mode():
            found.loaded.body(**found.loaded.tokenizer(text, return_tensors="pt"))
    handle.remove()
    highest = torch.stack(heard).double().numpy()  # of each document, (documents, width)
    second, first = np.sort(highest, axis=0)[-2:]
    axis = np.argmax(first - second)  # where one stands out most
    scale = 1e37 / (first - second)[axis]

    def change(weights):
        block = "encoder.layer.1"
        weights[f"{block}.intermediate.dense.weight"][0] = 0
        weights[f"{block}.intermediate.dense.weight"][0, axis] = scale
        weights[f"{block}.intermediate.dense.bias"][0] = -scale * (first + second)[axis] / 2
        weights[f"{block}.output.dense.weight"][:, 0] = 1e10

    return change, f"memory:{np.argmax(highest[:, axis])}"


def test_a_layer_that_says_no_numbers_is_named_and_the_others_survive(tiny, texts, tmp_path):
    change, name = one_document_overflows(tiny, texts)
    folder = spoilt_folder(tiny, tmp_path / "nan", change)
    given = {"tokens": None, "unit": 150, "all": True}
    given["measures"] = ["isoscore", "mean-cosine-centred"]
    found = survey(folder, texts, output=tmp_path / "run", **given)
    assert set(found.trouble) == {"resid.1", "resid.2", "norm.in", "norm.mid", "norm.out"}
    assert all(f"of document {name!r}" in why for why in found.trouble.values())
    assert {r.site for r in found} == {"embed", "resid.0", "embed.weight"}
    run = load(tmp_path / "run")
    assert {r.site for r in run.readings} == {r.site for r in found}
    assert run.survey.trouble == found.trouble
    clean = survey(tiny, texts, sites=["resid.0"], **given)
    assert values(found, "resid.0") == values(clean, "resid.0")


def test_a_matrix_with_a_hole_is_named_and_nothing_is_left_of_a_run(tiny, texts, tmp_path):
    def change(weights):
        weights["embeddings.word_embeddings.weight"][5:] = np.nan

    folder = spoilt_folder(tiny, tmp_path / "nan", change)
    with pytest.raises(IsoscopeError) as caught:
        survey(folder, texts, output=tmp_path / "run")
    assert caught.value.slug == "site-not-finite"
    assert list(tmp_path.iterdir()) == [folder]


@pytest.mark.parametrize(
    ("given", "slug"),
    [
        ({"sites": ["residual"]}, "unknown-site"),
        ({"sites": ["pooled"]}, "pooling"),
        ({"truncate_dim": 4}, "pooling"),
        ({"pooling": "median"}, "unknown-pooling"),
        ({"measures": ["beauty"]}, "unknown-measure"),
        ({"dtype": "float8"}, "dtype-unknown"),
        ({"tokens": 0}, "number-too-small"),
        ({"length": 1}, "number-too-small"),
        ({"batch": 0}, "number-too-small"),
        ({"unit": 0}, "number-too-small"),
        ({"turns": 0}, "number-too-small"),
        ({"turns": 1.5}, "number-too-small"),
        ({"seed": -1}, "seed"),
        ({"sinks": 0.5}, "number-range"),
        ({"threads": 10**6}, "number-range"),  # OpenMP would end the process
        ({"zeta": 2.0}, "number-range"),
        ({"kind": "smell"}, "unknown-corpus-kind"),
        ({"per": "page"}, "corpus-per"),
    ],
)
def test_what_makes_no_sense_is_refused_before_work(tiny, texts, tmp_path, given, slug):
    with pytest.raises(IsoscopeError) as caught:
        survey(tiny, texts, output=tmp_path / "run", **given)
    assert caught.value.slug == slug
    assert caught.value.hint
    assert not list(tmp_path.iterdir())
