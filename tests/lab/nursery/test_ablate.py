"""isoscope nursery ablate: cells trained and measured, and what is said of them."""

import json
from math import atanh

import numpy as np
import pytest
import torch
from msgspec.structs import replace

import isoscope as iso
from isoscope.engine import Notify
from isoscope.errors import ConfigError, UndefinedError, UnknownNameError
from isoscope.exhibit.exhibit import exhibits
from isoscope.lab.nursery import ablate_worker
from isoscope.lab.nursery.ablate_spec import AblateSpec
from isoscope.lab.nursery.ablate_worker import AblateWorker
from isoscope.lab.nursery.ablation import (
    Ablation,
    CellRecord,
    ablation_of,
    effects_of,
)
from isoscope.lab.nursery.config import NurseryConfig
from isoscope.lab.nursery.ingredients import cells_of, read_factors, training_of
from isoscope.lab.nursery.language import Language
from isoscope.lab.nursery.model import NurseryLM
from isoscope.lab.nursery.section import SECTION
from isoscope.lab.nursery.spec import Shape, Training
from isoscope.lab.nursery.windows import as_pretrained, word_tokenizer
from isoscope.store.run import load
from isoscope.types import Reading

SMALL = {
    "factors": "tie",
    "seeds": 2,
    "width": 16,
    "layers": 1,
    "vocabulary": 32,
    "steps": 3,
    "batch": 4,
    "length": 16,
    "checkpoints": 2,
    "tokens": 160,
    "threads": 1,
    "permutations": 20,
}


def ablate(folder=None, **options):
    return iso.nursery_ablate(**{**SMALL, **options}, output=folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the run of two cells with two seeds each."""
    made = tmp_path_factory.mktemp("ablation") / "tie"
    ablate(made)
    return made


def reading(measure, site, value, variant="all", step=4):
    return Reading("", site, variant, "", step, measure, value, None, None, 9, 2)


def record(levels, seed, cosine, *, loss=3.0, sink=None, diverged=""):
    """Return a made-up cell."""
    numbers = [
        reading("mean-cosine", "norm.out", cosine),
        reading("mean-cosine", "resid.1", cosine / 2),
        reading("isoscore", "norm.out", 0.3 + 0.01 * seed),
        reading("isoscore", "resid.1", 0.2 + 0.01 * seed),
        reading("held-out-loss", "model", loss + 0.01 * seed),
    ]
    if sink is not None:
        numbers.append(reading("isoscore", "norm.out", sink + 0.02 * seed, "no-sink"))
    return CellRecord(
        levels=levels,
        seed=seed,
        readings=[] if diverged else numbers,
        unigram_entropy=4.0,
        floor=2.5,
        diverged=diverged,
    )


def made_up(factors="tie,norm", **options):
    """Return cells in which tying raises the cosine from 0.1 to 0.6."""
    factors = read_factors(factors.split(","))
    return Ablation(
        factors=tuple((each.name, each.levels) for each in factors),
        middle="resid.1",
        records=[
            record(cell, seed, (0.6 if "tied" in cell else 0.1) + 0.01 * seed, **options)
            for cell in cells_of(factors)
            for seed in range(3)
        ],
        permutations=10,
    )


def test_effects_have_what_json_promises(folder):
    found = effects_of(ablation_of(load(folder)))
    lines = [json.loads(line) for line in found.to_json().splitlines()]
    places = {(each["measure"], each["site"]) for each in lines}
    assert places == {
        ("mean-cosine", "norm.out"),
        ("mean-cosine", "resid.0"),
        ("isoscore", "norm.out"),
        ("isoscore", "resid.0"),
        ("excess-loss", "model"),
    }
    wanted = {"factor", "measure", "site", "value", "low", "high", "p", "p_corrected"}
    assert all(wanted <= set(each) for each in lines)
    assert all(each["factor"] == "tie" for each in lines)
    assert "2 of 2 cells untrained" in lines[0]["marks"]
    text = str(found)
    assert "cells, means over seeds" in text and "tie=tied" in text
    # both counts are printed: tying changes one of them
    assert "4,432" in text and "3,872" in text and text.count("3,312") == 2


def test_the_page_shows_effects_and_curves_of_cells(folder):
    (shown,) = exhibits(folder)
    panel = SECTION.show([shown])
    effects, curves = panel.charts
    assert set(effects.columns["factor"]) == {"tie"}
    assert set(curves.columns["level tie"]) == {"untied", "tied"}
    assert set(curves.columns["step"]) == {0, 1, 3}
    assert "Fisher" in shown.findings[0].text
    assert SECTION.show([]) is None


def test_a_figure_is_of_the_measure_that_is_named(folder, tmp_path):
    made = [
        iso.figure(folder, tmp_path / f"{n}.svg", kind="ablation", measures=name).read_text()
        for n, name in enumerate((None, ["isoscore@resid.0"], ["excess-loss"]))
    ]
    assert "mean cosine" in made[0].lower() and "isoscore at resid.0" in made[1].lower()
    assert "loss above the known entropy" in made[2]
    with pytest.raises(UnknownNameError, match="no measure is called 'isoscore'") as caught:
        iso.figure(folder, tmp_path / "x.svg", kind="ablation", measures=["isoscore"])
    assert "isoscore@" in caught.value.hint


def test_a_killed_ablation_resumes_and_gives_the_same(folder, tmp_path):
    class Killed(BaseException):
        pass

    half = 2 * (3 * 4 * 16 + 3 * 160)

    def kill(done, _total):
        if done > half:
            raise Killed

    with pytest.raises(Killed):
        ablate(tmp_path / "run", progress=kill)
    kept = list((tmp_path / "run" / "stage-1").glob("unit-*"))
    assert len(kept) == 2
    ablate(tmp_path / "run")
    ours, theirs = (iso.read(each).to_dict() for each in (tmp_path / "run", folder))
    assert [{**each, "run": ""} for each in ours] == [{**each, "run": ""} for each in theirs]


def test_a_cell_that_diverges_is_kept_and_the_others_go_on(tmp_path, monkeypatch):
    def hot(levels, shape, train, seed):
        rate = 1e38 if (levels["tie"], seed) == ("tied", 1) else train.learning_rate
        return training_of(levels, shape, replace(train, learning_rate=rate), seed)

    monkeypatch.setattr(ablate_worker, "training_of", hot)
    said = []
    found = ablate(tmp_path / "run", say=said.append)
    (remark,) = (each for each in found.remarks if each.startswith("diverged"))
    assert "tie=tied with seed 1 (the " in remark and " step 1 is NaN" in remark
    assert any("diverged: the " in each for each in said)
    # one seed is left of that cell: it borrows the variance of the other
    assert found[0].p is not None
    kept = ablation_of(load(tmp_path / "run"))
    assert sum(bool(each.diverged) for each in kept.records) == 1


def test_where_everything_diverges_nothing_can_be_said(tmp_path):
    with pytest.raises(UndefinedError, match="at least 2 cells that did not diverge, got 0"):
        ablate(learning_rate=1e38, seeds=1)


def test_effects_are_on_the_scale_of_fisher_and_of_the_known_entropy():
    found = {(each.factor, each.measure, each.site): each for each in effects_of(made_up())}
    tie = found["tie", "mean-cosine", "norm.out"]
    wanted = np.mean([atanh(0.6 + s) - atanh(0.1 + s) for s in (0, 0.01, 0.02)])
    assert tie.value == pytest.approx(wanted)
    assert tie.p_corrected < 0.05 and tie.marks == []
    assert found["norm", "mean-cosine", "norm.out"].value == pytest.approx(0)
    assert tie.change == "untied to tied" and tie.scale == "Fisher's z"
    excess = made_up().table()["excess-loss", "model", "all"]
    assert excess["tied", "pre"] == pytest.approx([0.5, 0.51, 0.52])


def test_isoscore_without_sinks_is_listed_where_there_are_any():
    without = effects_of(made_up())
    assert {each.variant for each in without} == {"all"}
    assert any("no cell has sinks" in each for each in without.remarks)
    found = effects_of(made_up(sink=0.5))
    assert ("isoscore", "norm.out", "no-sink") in {
        (each.measure, each.site, each.variant) for each in found
    }


def test_an_untrained_cell_is_named_and_its_effects_are_marked():
    whole = made_up()
    lazy = [
        replace(each, unigram_entropy=3.2) if each.levels == ("tied", "post") else each
        for each in whole.records
    ]
    found = effects_of(replace(whole, records=lazy))
    assert any("tie=tied,norm=post" in each for each in found.remarks if "untrained" in each)
    assert all(each.marks == ["1 of 4 cells untrained"] for each in found)
    assert "untrained" in str(found)


def test_a_cell_that_diverged_with_every_seed_costs_its_comparisons():
    whole = made_up("tie,norm,rms")
    gone = [
        replace(each, diverged="the loss of step 3 is NaN", readings=[])
        if each.levels == ("tied", "pre", "rms")
        else each
        for each in whole.records
    ]
    found = effects_of(replace(whole, records=gone))
    assert {each.factor for each in found} == {
        "tie", "norm", "rms", "tie:norm", "tie:rms", "norm:rms",
    }  # fmt: skip
    assert all("some combinations diverged" in each.marks for each in found)


def test_one_seed_gives_effects_without_intervals():
    whole = made_up()
    found = effects_of(
        replace(whole, records=[each for each in whole.records if not each.seed])
    )
    assert found[0].p is None and found[0].low is None
    assert found.remarks[0] == "one seed: no intervals and no p"
    assert str(found)


REFUSED = [
    ({"factors": "tie=tied"}, ConfigError, "a factor needs at least 2 levels, got 1 of tie"),
    ({"factors": "width=32"}, ConfigError, "a factor needs at least 2 levels, got 1 of width"),
    ({"factors": "width=32:x"}, ConfigError, "expected whole numbers of 2 or more"),
    ({"factors": "tie,tie"}, ConfigError, "expected each factor once, got tie twice"),
    ({"factors": []}, ConfigError, "an ablation needs at least 1 factor, got none"),
    ({"factors": "depth"}, UnknownNameError, "no factor is called 'depth'"),
    ({"factors": "norm=before:post"}, UnknownNameError, "no level is called 'before'"),
    ({"factors": "rms", "width": 4, "heads": 2}, ConfigError, "expected cells within 2%"),
    ({"factors": "width=20:40"}, ConfigError, "expected a width that"),
]


@pytest.mark.parametrize(("options", "kind", "match"), REFUSED)
def test_what_cannot_be_done_is_refused(options, kind, match, tmp_path):
    options = {**options}
    if options["factors"] == "width=20:40":
        options["heads"], options["width"] = 3, 20
    with pytest.raises(kind, match=match):
        ablate(tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


def test_cells_differ_in_one_ingredient_and_in_no_number_of_parameters():
    factors = read_factors(["tie", "norm", "attention", "frequency"])
    assert len(cells_of(factors)) == 16
    shape, train = Shape(layers=4, width=64, vocabulary=512), Training()
    specs = {
        cell: training_of(dict(zip([f.name for f in factors], cell, strict=True)),
                          shape, train, 0)
        for cell in cells_of(factors)
    }  # fmt: skip
    assert len({str(each) for each in specs.values()}) == 16
    counts = {ablate_worker.parameter_counts(spec, 515)[1] for spec in specs.values()}
    assert len(counts) == 1


def test_a_planted_bias_of_the_final_norm_is_found_with_its_sign_and_size(tmp_path):
    """Models that are isotropic before a final norm, whose bias is r times as long as its gain.

    The mean cosine after it is then (m + r^2) / (1 + r^2), with m the one before.
    """
    language, r = Language(64, "uniform"), 2.0
    words = [f"w{number}" for number in range(64)]
    texts = [" ".join(words[word] for word in text) for text in language.sample(20, 16, (1,))]
    tokenizer = as_pretrained(word_tokenizer(words), 16)
    records = []
    for planted in ("without", "with"):
        for tied in ("untied", "tied"):
            for seed in range(3):
                torch.manual_seed(seed)
                config = NurseryConfig(
                    vocab_size=67,
                    hidden_size=32,
                    num_hidden_layers=2,
                    num_attention_heads=2,
                    tie_word_embeddings=tied == "tied",
                )
                model = NurseryLM(config)
                bias = model.nursery.final_layer_norm.bias
                if planted == "with":
                    way = torch.randn(32)
                    bias.data = r * 32**0.5 * way / way.norm()  # the gain is all ones
                place = tmp_path / f"{planted}-{tied}-{seed}"
                model.save_pretrained(place)
                tokenizer.save_pretrained(place)
                found = iso.survey(
                    place,
                    texts,
                    sites=["norm.out", "resid.1"],
                    measures=["mean-cosine", "isoscore"],
                    threads=1,
                )
                records.append(
                    CellRecord(
                        levels=(tied, planted),
                        seed=seed,
                        readings=[*found, reading("held-out-loss", "model", 3.0)],
                        unigram_entropy=4.0,
                    )
                )
    ablation = Ablation(
        factors=(("tie", ("untied", "tied")), ("final-bias", ("without", "with"))),
        middle="resid.1",
        records=records,
    )
    lines = {(e.factor, e.measure, e.site): e for e in effects_of(ablation)}
    effect = lines["final-bias", "mean-cosine", "norm.out"]
    before = [e.value("mean-cosine", "norm.out") for e in records if e.levels[1] == "without"]
    wanted = np.mean([atanh((m + r**2) / (1 + r**2)) - atanh(m) for m in before])
    assert effect.p_corrected < 0.01
    assert effect.value == pytest.approx(wanted, abs=0.1)
    others = [each for key, each in lines.items() if key[0] == "tie" and each.p is not None]
    assert all(each.p_corrected > 0.05 for each in others)
    # IsoScore ignores the mean, and what is before the norm does not know of it
    assert lines["final-bias", "isoscore", "norm.out"].value == pytest.approx(0, abs=1e-6)
    assert lines["final-bias", "mean-cosine", "resid.1"].value == pytest.approx(0, abs=1e-6)


@pytest.mark.slow
def test_cells_run_on_several_processes_and_give_the_same(folder, tmp_path):
    ablate(tmp_path / "pool", engine="pool", workers=2)
    ours, theirs = (iso.read(each).to_dict() for each in (tmp_path / "pool", folder))
    assert [{**each, "run": ""} for each in ours] == [{**each, "run": ""} for each in theirs]


def test_the_worker_plans_seed_by_seed():
    plan = AblateWorker(AblateSpec.of(factors="tie", seeds=2), Notify(), {}).plan()
    assert [(unit.levels, unit.seed) for unit in plan.stages[0]] == [
        (("untied",), 0),
        (("tied",), 0),
        (("untied",), 1),
        (("tied",), 1),
    ]
