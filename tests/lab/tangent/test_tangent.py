"""isoscope tangent of a model: readings, resuming, pages, bad input."""

import json
import shutil

import pytest
from click.testing import CliRunner

import isoscope as iso
from isoscope.cli.main import app
from isoscope.errors import ConfigError, IsoscopeError, TooFewRowsError, UnknownNameError

OPTIONS = {"rank": 4, "controls": 50, "threads": 1, "batch": 4}


@pytest.fixture(scope="module")
def run(speaker, corpus, tmp_path_factory):
    path = tmp_path_factory.mktemp("tangent") / "run"
    sites = ["grad", "gradw.h.1.mlp.c_fc"]
    return path, iso.tangent(speaker, corpus, sites=sites, output=path, **OPTIONS)


def test_every_site_is_read_against_every_control(run):
    path, found = run
    by = {(each.site, each.measure, each.group): each for each in found}
    for site in ("grad.0", "grad.1", "grad.2", "gradw.h.1.mlp.c_fc"):
        for group in ("complement", "random", "shuffled"):
            ratio = by[site, "tangent-energy-ratio", group]
            assert ratio.low < ratio.value < ratio.high, (site, group)
            assert (site, "tangent-anisotropy", group) in by
        energy = by[site, "tangent-energy", ""]
        assert 0 < energy.low < energy.value < energy.high < 1
        shares = [by[site, "tangent-energy", f"direction {n}"].value for n in range(1, 5)]
        assert sum(shares) == pytest.approx(energy.value)
        assert 0 < by[site, "tangent-energy-p", "random"].value <= 1
        halves = [by[site, "tangent-energy", half].value for half in ("early", "late")]
        assert min(halves) <= energy.value <= max(halves)
    for measure in ("tangent-energy", "tangent-anisotropy"):
        groups = [g for site, name, g in by if (site, name) == ("grad.1", measure)]
        assert {"early", "late"} < set(groups)
        assert any(group.startswith("frequency") for group in groups)
        halves = [by["grad.1", measure, half] for half in ("early", "late")]
        assert any(h.low is not None and h.low < h.value < h.high for h in halves)
    assert iso.read(path).to_dict() == found.to_dict()
    again = iso.read(path, measures=["tangent-energy"], sites=["grad.1"])
    assert {each.measure for each in again} == {"tangent-energy", "tangent-energy-p"}


def test_the_table_has_a_line_per_site(run):
    shown = str(run[1])
    assert "/ shuffled" in shown
    assert "gradw.h.1.mlp.c_fc" in shown
    assert "energy by half and frequency band" in shown
    assert "rise by half and frequency band" in shown
    assert any("intervals included: complement" in text for text in run[1].remarks)


def test_the_page_shows_ratios_and_concepts(run, tmp_path):
    iso.report(run[0], tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    for words in ("Gradients and tangents", "Energy ratio by layer", "Concepts of grad.1"):
        assert words in text


def test_documents_of_the_proxy_and_of_gradients_are_different(speaker, corpus):
    from isoscope.engine import Notify
    from isoscope.lab.tangent.spec import TangentSpec
    from isoscope.lab.tangent.worker import TangentWorker

    spec = TangentSpec.of(model=str(speaker), corpus=str(corpus), **OPTIONS)
    plan = TangentWorker(spec, Notify(), {}).plan()
    stages = [
        {each for unit in units for batch in plan.batches(unit) for each in batch}
        for units in plan.stages
    ]
    assert stages[0] and stages[1] and not stages[0] & stages[1]
    lengths = dict(zip(plan.ordinals.array.tolist(), plan.lengths.array.tolist(), strict=True))
    share = sum(lengths[each] for each in stages[0]) / sum(lengths.values())
    assert share == pytest.approx(0.3, abs=0.03)
    assert plan.first < plan.late < len(plan.starts.array) - 1


def test_two_processes_read_what_one_does(speaker, corpus, tmp_path, forked_pool):
    options = {**OPTIONS, "unit": 150, "sites": ["grad.1"]}
    alone = iso.tangent(speaker, corpus, output=tmp_path / "one" / "run", **options)
    several = iso.tangent(
        speaker, corpus, output=tmp_path / "two" / "run", engine="pool", workers=2, **options
    )
    assert alone.to_dict() == several.to_dict()
    states = [(tmp_path / each / "run" / "state.safetensors") for each in ("one", "two")]
    assert states[0].read_bytes() == states[1].read_bytes()


def test_semi_nmf_and_a_share_of_the_variance_choose_other_proxies(speaker, corpus):
    options = {**OPTIONS, "sites": ["grad.1"]}
    values = []
    for more in ({}, {"proxy": "semi-nmf"}, {"rank": None, "explained": 0.5}):
        found = iso.tangent(speaker, corpus, **{**options, **more})
        values.append(next(e.value for e in found if e.measure == "tangent-energy"))
    assert len(set(values)) == 3


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"rank": 23}, ConfigError, "at most 22 at grad.0, got 23"),
        ({"rank": 4, "explained": 0.5}, ConfigError, "both a rank and a share"),
        ({"proxy": "semi-nmf", "explained": 0.5, "rank": None}, ConfigError, "semi-nmf"),
        ({"sites": ["grad.9"]}, UnknownNameError, "grad.9"),
        ({"sites": ["resid.1"]}, UnknownNameError, "resid.1"),
        ({"loss": "masked"}, ConfigError, "cannot compute a masked loss"),
        ({"loss": "classification"}, ConfigError, "no head that gives each document a class"),
        ({"rank": 0}, ConfigError, "expected at least 1 as rank"),
        ({"tokens": 2}, TooFewRowsError, "at least 3 documents"),
        ({"tokens": 40, "rank": 20}, IsoscopeError, "got 20 of"),
    ],
)
def test_bad_input_is_refused(speaker, corpus, options, kind, words):
    with pytest.raises(kind, match=words):
        iso.tangent(speaker, corpus, **{**OPTIONS, **options})


def break_norm(folder):
    """Write NaN into the final norm: activations of blocks stay finite, the loss does not."""
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    weights["transformer.ln_f.bias"][:] = float("nan")
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


def test_a_loss_that_is_not_finite_is_named(speaker, corpus, tmp_path):
    folder = tmp_path / "broken"
    shutil.copytree(speaker, folder)
    break_norm(folder)
    with pytest.raises(IsoscopeError, match="finite loss at micro-batch 0, got nan"):
        iso.tangent(folder, corpus, **OPTIONS)


def test_a_checkpoint_whose_loss_is_not_finite_is_skipped_and_named(speaker, corpus, tmp_path):
    for step in (0, 10, 20):
        shutil.copytree(speaker, tmp_path / f"step_{step}")
    break_norm(tmp_path / "step_20")
    found = iso.tangent(tmp_path, corpus, sites=["grad.1"], **OPTIONS)
    assert {each.step for each in found} == {0, 10}
    assert any("skipped step_20: expected a finite loss" in text for text in found.remarks)


def test_a_site_that_the_loss_does_not_depend_on_is_named(speaker, corpus):
    """A map beside the stream, whose output nobody reads."""
    import torch

    from isoscope.study.model import load_model

    subject = load_model(speaker)
    block = subject.loaded.body.h[1]
    block.beside = torch.nn.Linear(24, 5).requires_grad_(False)
    block.register_forward_hook(
        lambda module, _i, out: (module.beside(out if torch.is_tensor(out) else out[0]), out)[1]
    )
    with pytest.raises(IsoscopeError, match=r"a gradient at gradw\.h\.1\.beside, got none"):
        iso.tangent(subject, corpus, sites=["gradw.h.1.beside"], **OPTIONS)


def test_weights_in_a_file_are_not_frozen(speaker, corpus):
    """Models are loaded without gradients of parameters, and weights have theirs all the same.

    Weights that a training run freezes are refused by what watches it.
    """
    found = iso.tangent(speaker, corpus, sites=["gradw.h.1.mlp.c_fc"], **OPTIONS)
    assert any(each.measure == "tangent-energy" for each in found)


def test_an_encoder_decoder_is_refused_in_one_line(tiny, corpus, tmp_path):
    import torch
    from transformers import AutoTokenizer, T5Config, T5ForConditionalGeneration

    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(tiny)
    tokenizer.save_pretrained(tmp_path / "t5")
    config = T5Config(
        vocab_size=len(tokenizer), d_model=16, d_kv=4, d_ff=16, num_layers=2, num_heads=2,
        decoder_start_token_id=0,
    )  # fmt: skip
    T5ForConditionalGeneration(config).save_pretrained(tmp_path / "t5")
    words = ["tangent", str(tmp_path / "t5"), str(corpus)]
    done = CliRunner().invoke(app, words, prog_name="isoscope")
    assert done.exit_code == 2
    assert "expected a decoder or an encoder of text, got t5, an encoder-decoder" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_command_prints_records(speaker, corpus):
    words = ["tangent", str(speaker), str(corpus), "--sites", "grad.2", "--rank", "3"]
    words += ["--controls", "20", "--threads", "1", "--json"]
    done = CliRunner().invoke(app, words, prog_name="isoscope")
    assert done.exit_code == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert {each["site"] for each in lines} == {"grad.2"}
    wrong = CliRunner().invoke(app, [*words, "--loss", "masked"], prog_name="isoscope")
    assert wrong.exit_code == 2
    assert "--loss=causal fits this model" in wrong.stderr
