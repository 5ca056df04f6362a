"""A series of checkpoints beside surveys of each; resume, pool, bad input."""

import json
import shutil
import time
from dataclasses import replace
from math import comb

import numpy as np
import pytest

import isoscope as iso
from forks import Fork
from isoscope.accumulate import ArrayBlock, Reservoir, accumulator_of
from isoscope.capture.runner import threads
from isoscope.cli.main import app
from isoscope.errors import ConfigError, IsoscopeError
from isoscope.lab.trajectory.curves import NO_MEASURES
from isoscope.store.run import load
from isoscope.store.series import SeriesParts

SITES = "resid.1,norm.out,embed.weight,unembed.weight"
FILES = ("readings.parquet", "series.msgpack", "config.yaml", "state.safetensors")


def some(folder, checkpoints, steps):
    """Return a folder with some of the checkpoints."""
    folder.mkdir()
    for step in steps:
        shutil.copytree(checkpoints / f"step_{step}", folder / f"step_{step}")
    return folder


def same_files(left, right):
    return [name for name in FILES if (left / name).read_bytes() != (right / name).read_bytes()]


def own(readings):
    """Return readings without what only a trajectory reads."""
    extra = {*NO_MEASURES, "loss"}
    return [
        replace(each, step=None, run="", warnings=())
        for each in readings
        if each.measure not in extra
    ]


def test_every_step_equals_a_survey_of_its_own_to_the_last_bit(followed, checkpoints, corpus):
    readings = load(followed).readings
    steps = sorted({each.step for each in readings})
    assert steps == [step * 10 for step in range(12)]
    for step in (0, 50, 110):
        alone = iso.survey(checkpoints / f"step_{step}", corpus, sites=SITES, threads=1)
        ours = own(each for each in readings if each.step == step)
        assert ours == own(alone)
        assert len(ours) > 50


def test_differences_are_those_of_compare_between_two_surveys(
    followed, checkpoints, corpus, tmp_path
):
    for step in (0, 110):
        iso.survey(
            checkpoints / f"step_{step}",
            corpus,
            sites="norm.out",
            threads=1,
            output=tmp_path / f"{step}",
        )
    changes = {
        each.measure: each
        for each in iso.compare(tmp_path / "0", tmp_path / "110", all=True)
        if each.site == "norm.out"
    }
    parts = SeriesParts.decode(load(followed).series)
    lines = {
        line["measure"]: line
        for line in parts.lines
        if (line["site"], line["variant"], line["group"]) == ("norm.out", "all", "")
    }
    paired = [name for name, each in changes.items() if each.paired]
    assert len(paired) > 8
    for name in paired:
        found = lines[name]["differences"][-1]
        each = changes[name]
        assert (found["value"], found["low"], found["high"]) == (
            each.difference, each.low, each.high
        )  # fmt: skip


def test_a_run_that_was_killed_is_resumed_to_the_same_bytes(checkpoints, corpus, tmp_path):
    series = some(tmp_path / "few", checkpoints, (0, 10, 20, 30))
    for each in ("whole", "killed"):
        (tmp_path / each).mkdir()
    words = (series, corpus, "--sites", "norm.out", "--threads", "1", "--no-theories")
    options = {"sites": "norm.out", "threads": 1, "no_theories": True}
    iso.trajectory(series, corpus, output=tmp_path / "whole" / "run", **options)
    target = tmp_path / "killed" / "run"
    job = Fork(app, ["trajectory", *map(str, words), "-o", str(target), "-q"])
    try:
        end = time.monotonic() + 240
        while len(list(target.glob("stage-1/unit-*"))) < 2:
            assert job.poll() is None and time.monotonic() < end
            time.sleep(0.01)
    finally:
        job.kill()
    assert not (target / "run.json").exists()
    iso.trajectory(series, corpus, output=target, **options)
    assert same_files(tmp_path / "whole" / "run", target) == []


def test_a_resumed_run_measures_no_checkpoint_again(checkpoints, corpus, tmp_path, monkeypatch):
    from isoscope.lab.trajectory.checkpoint import CheckpointWorker

    series = some(tmp_path / "few", checkpoints, (0, 10, 20))
    measured = []
    usual = CheckpointWorker.survey

    def survey(self, *arguments):
        if len(measured) == 2:
            measured.append("stop")
            raise KeyboardInterrupt
        measured.append(self.subject.loaded.name)
        return usual(self, *arguments)

    monkeypatch.setattr(CheckpointWorker, "survey", survey)
    options = {"sites": "norm.out", "measures": "mean-cosine", "output": tmp_path / "run"}
    with pytest.raises(KeyboardInterrupt):
        iso.trajectory(series, corpus, **options)
    assert measured == ["step_0", "step_10", "stop"]
    iso.trajectory(series, corpus, **options)
    assert measured[3:] == ["step_20"]


@pytest.mark.parametrize("per_width", [30, 10**4])
def test_where_the_sample_is_too_small_for_the_hull_passes_give_more_rows(
    checkpoints, corpus, texts, tmp_path, monkeypatch, per_width
):
    import torch
    from transformers import AutoTokenizer, GPT2Model

    from isoscope.lab.trajectory.checkpoint import CheckpointWorker

    series = some(tmp_path / "few", checkpoints, (0, 10))
    sampled, usual = [], CheckpointWorker.sample_rows

    def sample_rows(self, plan, site, count):
        sampled.append((count, usual(self, plan, site, count)))
        return sampled[-1][1]

    monkeypatch.setattr("isoscope.lab.trajectory.theories.PER_WIDTH", per_width)
    monkeypatch.setattr("isoscope.lab.trajectory.theories.accumulator_of", first_rows)
    monkeypatch.setattr(CheckpointWorker, "sample_rows", sample_rows)
    iso.trajectory(series, corpus, sites="norm.out", measures="twonn", threads=1)
    tokenizer = AutoTokenizer.from_pretrained(series / "step_0")
    model = GPT2Model.from_pretrained(series / "step_0").eval()
    with torch.inference_mode():
        states = [
            model(torch.tensor([tokenizer(text)["input_ids"]])).last_hidden_state[0]
            for text in texts
        ]
    every = torch.cat(states).numpy()
    count, rows = sampled[0]
    assert count == 24 * per_width
    assert len(rows) == min(count, len(every))
    nearest = np.abs(rows[:, None] - every).max(axis=2).min(axis=1)
    assert nearest.max() < 1e-5


def first_rows(here, kind):
    """Return an accumulator; of a sample, one that has seen 40 of its rows."""
    found = accumulator_of(here, kind)
    if kind is Reservoir:
        few = Reservoir(found.width)
        few.update(ArrayBlock(found.finalize().rows[:40]))
        return few
    return found


def test_pool_writes_the_same_bytes(checkpoints, corpus, tmp_path):
    series = some(tmp_path / "few", checkpoints, (0, 10, 20))
    options = {"sites": "norm.out,unembed.weight", "threads": 1}
    for name, where in (("here", {}), ("pool", {"engine": "pool", "workers": 2})):
        iso.trajectory(series, corpus, output=tmp_path / name / "run", **options, **where)
    assert same_files(tmp_path / "here" / "run", tmp_path / "pool" / "run") == []


def test_documents_are_tokenised_once_and_the_next_checkpoint_is_loaded_ahead(
    checkpoints, corpus, tmp_path, monkeypatch
):
    from isoscope.capture.feed.text import TextFeed
    from isoscope.lab.trajectory.worker import TrajectoryWorker

    series = some(tmp_path / "few", checkpoints, (0, 10, 20))
    prepared, order = [], []
    usual = TextFeed.prepare
    monkeypatch.setattr(
        TextFeed, "prepare", lambda self, text: prepared.append(1) or usual(self, text)
    )
    load_one, survey_one = TrajectoryWorker._load, TrajectoryWorker.read_step

    def loading(self, unit):
        order.append(f"load {unit.step}")
        return load_one(self, unit)

    def surveying(self, unit, *rest):
        for future in self.loading.values():
            future.result()
        order.append(f"survey {unit.step}")
        return survey_one(self, unit, *rest)

    monkeypatch.setattr(TrajectoryWorker, "_load", loading)
    monkeypatch.setattr(TrajectoryWorker, "read_step", surveying)
    iso.trajectory(series, corpus, sites="norm.out", measures="mean-cosine")
    assert len(prepared) == 40  # as many as there are documents
    assert order == ["load 0", "load 10", "survey 0", "load 20", "survey 10", "survey 20"]


# --- older theories -----------------------------------------------------------------------
def test_theories_are_what_plain_numpy_finds_in_the_weights(followed, checkpoints, corpus):
    from safetensors.numpy import load_file
    from transformers import AutoTokenizer

    weights = load_file(checkpoints / "step_110" / "model.safetensors")
    tokenizer = AutoTokenizer.from_pretrained(checkpoints / "step_110")
    readings = {
        (each.site, each.measure, each.group): each
        for each in load(followed).readings
        if each.step == 110 and each.variant == "all"
    }
    gain, bias = weights["transformer.ln_f.weight"], weights["transformer.ln_f.bias"]
    norm = {
        name: readings["norm.out", f"norm-{name}", ""].value
        for name in ("gain", "bias", "ratio")
    }
    assert norm["gain"] == pytest.approx(np.linalg.norm(gain.astype(float)), rel=1e-6)
    assert norm["bias"] == pytest.approx(np.linalg.norm(bias.astype(float)), rel=1e-6)
    assert norm["ratio"] == pytest.approx(norm["bias"] / norm["gain"], rel=1e-9)
    matrix = weights["lm_head.weight"].astype(np.float64)
    texts = corpus.read_text().splitlines()
    counts = np.bincount(
        [token for text in texts for token in tokenizer(text)["input_ids"][:64]],
        minlength=len(matrix),
    )
    unseen = matrix[counts == 0]
    group = "frequency 0"
    assert readings["unembed.weight", "row-norm", group].value == pytest.approx(
        np.linalg.norm(unseen, axis=1).mean(), rel=1e-6
    )
    mean = unseen.mean(axis=0)
    assert readings["unembed.weight", "common-share", group].value == pytest.approx(
        mean @ mean / np.square(unseen).sum(axis=1).mean(), rel=1e-6
    )
    alone = {
        (each.site, each.centred): each.value for each in iso.matrices(checkpoints / "step_110")
    }
    assert readings["unembed.weight", "partition", ""].value == alone["unembed.weight", False]
    assert (
        readings["embed.weight", "partition-centred", ""].value == alone["embed.weight", True]
    )


def test_rows_are_projected_on_the_negative_mean_of_the_final_states(
    followed, checkpoints, corpus
):
    import torch
    from transformers import AutoTokenizer, GPT2LMHeadModel

    model = GPT2LMHeadModel.from_pretrained(checkpoints / "step_110").eval()
    tokenizer = AutoTokenizer.from_pretrained(checkpoints / "step_110")
    states = []
    with torch.inference_mode():
        for text in corpus.read_text().splitlines():
            ids = torch.tensor([tokenizer(text)["input_ids"][:64]])
            states.append(model.transformer(input_ids=ids).last_hidden_state[0].double())
    mean = torch.cat(states).mean(dim=0)
    along = -(model.lm_head.weight.double() @ mean) / mean.norm()
    counts = np.zeros(len(along))
    for text in corpus.read_text().splitlines():
        np.add.at(counts, tokenizer(text)["input_ids"][:64], 1)
    cosines = along / model.lm_head.weight.double().norm(dim=1)
    readings = {
        (each.measure, each.group): each.value
        for each in load(followed).readings
        if (each.step, each.site) == (110, "unembed.weight")
    }
    rare = torch.from_numpy(counts == 0)
    for name, values in (("away-projection", along), ("away-cosine", cosines)):
        values = values.detach()
        assert readings[name, ""] == pytest.approx(float(values.mean()), rel=1e-4)
        assert readings[name, "frequency 0"] == pytest.approx(
            float(values[rare].mean()), rel=1e-4
        )


def test_the_hull_is_that_of_four_states_per_dimension_beside_the_chance_of_wendel(followed):
    found = {
        (each.step, each.measure): each
        for each in load(followed).readings
        if each.measure.startswith("hull-")
    }
    width = 24
    chance = 1 - sum(comb(4 * width - 1, k) for k in range(width)) / 2 ** (4 * width - 1)
    for step in range(0, 120, 10):
        wendel, inside = found[step, "hull-if-isotropic"], found[step, "hull-has-origin"]
        assert (wendel.n, wendel.d, wendel.site) == (4 * width, width, "norm.out")
        assert wendel.value == pytest.approx(chance, rel=1e-9)
        assert inside.value == float(found[step, "hull-margin"].value >= 0)


def test_the_loss_falls_and_is_that_of_a_survey(followed, checkpoints, corpus, tmp_path):
    losses = [each.value for each in load(followed).readings if each.measure == "loss"]
    assert len(losses) == 12 and losses[-1] < losses[0] - 0.2
    with threads(2):  # those of the process do not count where the survey names its own
        iso.survey(
            checkpoints / "step_50",
            corpus,
            sites="norm.out",
            threads=1,
            output=tmp_path / "run",
        )
    (source,) = load(tmp_path / "run").origin.sources
    assert losses[5] == source.loss["without_bos"]


# --- what changed -------------------------------------------------------------------------
def test_results_are_one_curve_per_measure_and_site(checkpoints, corpus, tmp_path):
    series = some(tmp_path / "few", checkpoints, (0, 10, 110))
    metrics = tmp_path / "steps.csv"
    metrics.write_text("step,accuracy\n0,0.1\n10,0.2\n110,0.5\n")
    found = iso.trajectory(
        series, corpus, sites="norm.out", measures="mean-cosine", metrics=metrics
    )
    line = next(each for each in found if each.measure == "mean-cosine" and not each.group)
    assert line.steps == [0, 10, 110]
    assert line.values[-1] - line.values[0] == pytest.approx(line.change.value)
    assert line.change.low <= line.change.value <= line.change.high
    assert line.metrics[0].metric == "accuracy" and line.metrics[0].p is None
    assert line.metrics[0].note
    record = json.loads(found.to_json().splitlines()[0])
    assert record["series"] == "few" and record["checkpoints"] == 3
    printed = str(found)
    assert "onset" in printed and "Older theories" in printed
    assert "norm-gain" in printed
    assert "Rows of matrices by frequency" in printed


def test_check_compares_the_last_step_with_the_first(followed):
    outcomes = iso.check(followed, ["mean-cosine@norm.out > 1.0x", "isoscore@norm.out < 0.0"])
    relative, fixed = outcomes
    readings = [
        each
        for each in load(followed).readings
        if (each.site, each.measure, each.variant, each.group)
        == ("norm.out", "mean-cosine", "all", "")
    ]
    assert (relative.baseline, relative.value) == (readings[0].value, readings[-1].value)
    parts = SeriesParts.decode(load(followed).series)
    line = next(
        each
        for each in parts.lines
        if (each["site"], each["measure"], each["variant"], each["group"])
        == ("norm.out", "mean-cosine", "all", "")
    )
    paired = line["differences"][-1]
    assert relative.margin_low == pytest.approx(paired["low"], rel=1e-12)
    assert fixed.state == "holds"


# --- bad input ----------------------------------------------------------------------------
def refused(series, corpus, slug, match, **options):
    with pytest.raises(IsoscopeError, match=match) as caught:
        iso.trajectory(series, corpus, sites="norm.out", measures="mean-cosine", **options)
    assert caught.value.slug == slug and caught.value.hint
    return caught.value


def test_a_folder_without_checkpoints_or_with_one_is_refused(checkpoints, corpus, tmp_path):
    (tmp_path / "none").mkdir()
    refused(tmp_path / "none", corpus, "series-empty", "got none")
    refused(tmp_path / "missing", corpus, "series-empty", "not there")
    one = some(tmp_path / "one", checkpoints, (0,))
    refused(one, corpus, "series-one", "got 1: 'step_0'")
    refused(checkpoints / "step_0", corpus, "series-one", "got 1: 'step_0'")


def test_steps_that_names_do_not_tell_are_refused(checkpoints, corpus, tmp_path):
    series = some(tmp_path / "named", checkpoints, (0, 10))
    (series / "step_0").rename(series / "best")
    refused(series, corpus, "series-step", "'best'")
    (series / "best").rename(series / "checkpoint-10")
    refused(series, corpus, "series-step", "'checkpoint-10' and 'step_10' of step 10")


def test_other_shapes_and_vocabularies_are_refused_before_anything_is_loaded(
    checkpoints, decoder, corpus, tmp_path
):
    series = some(tmp_path / "mixed", checkpoints, (0, 10))
    shutil.copytree(decoder, series / "step_20")
    refused(series, corpus, "series-shapes", "'step_0' to 'step_20'")
    shutil.rmtree(series / "step_20")
    settings = series / "step_10" / "tokenizer_config.json"
    settings.write_text(settings.read_text().replace("{", '{"note": 1,', 1))
    refused(series, corpus, "series-vocabulary", "tokenizers differ")
    for each in (series / "step_10").glob("tokenizer*"):
        each.unlink()
    refused(series, corpus, "series-vocabulary", "got none in 'step_10'")


def test_a_truncated_checkpoint_is_named_and_the_others_are_kept(checkpoints, corpus, tmp_path):
    series = some(tmp_path / "cut", checkpoints, (0, 10, 20))
    weights = series / "step_10" / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-100])
    target = tmp_path / "run"
    error = refused(series, corpus, "model-unreadable", "step_10 of step 10", output=target)
    assert "--skip-broken" in error.hint
    assert len(list(target.glob("stage-1/unit-*"))) == 2
    shutil.copytree(target, tmp_path / "without" / "run")
    options = {"sites": "norm.out", "measures": "mean-cosine"}
    other = tmp_path / "without" / "run"
    found = iso.trajectory(series, corpus, output=other, skip_broken=True, **options)
    assert found[0].steps == [0, 20]
    assert any("step_10" in text for text in found.remarks)
    weights.write_bytes(whole)
    found = iso.trajectory(series, corpus, output=target, **options)
    assert found[0].steps == [0, 10, 20]


def test_a_checkpoint_of_a_training_that_diverged_is_skipped_and_named(
    checkpoints, corpus, tmp_path
):
    from safetensors.torch import load_file, save_file

    series = some(tmp_path / "wide, and deep", checkpoints, (0, 10, 20))
    path = series / "step_10" / "model.safetensors"
    weights = load_file(path)
    for each in weights.values():
        each.fill_(float("nan"))
    save_file(weights, path, {"format": "pt"})
    options = {"sites": "norm.out", "measures": "mean-cosine", "no_theories": True}
    found = iso.trajectory(str(series), corpus, **options)
    assert found[0].steps == [0, 20]
    assert any("step_10" in text and "NaN or infinity" in text for text in found.remarks)


def test_a_checkpoint_that_was_replaced_after_it_was_measured_is_refused(
    checkpoints, corpus, tmp_path
):
    series = some(tmp_path / "cut", checkpoints, (0, 10, 20))
    weights = series / "step_20" / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-100])
    refused(series, corpus, "model-unreadable", "step_20", output=tmp_path / "run")
    weights.write_bytes(whole)
    shutil.copy(weights, series / "step_0" / "model.safetensors")
    refused(series, corpus, "resume-other", "step_0 was replaced", output=tmp_path / "run")


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (
            "step,loss\n0,1\n",
            "loss is missing at 1 of 2 checkpoints, the first of them step 10",
        ),
        ("step,loss\n0,1\n10,2\n10,3\n", "step 10 stands there twice"),
        ("epoch,loss\n0,1\n", "expected a column step"),
        ("step,loss\n0,1\n,2\n", "line 3: expected a step, got none"),
        ("step,loss\n0,x\n10,y\n", "expected numbers at the steps"),
        ("step,loss\n0.5,1\n10,2\n", "line 2: expected a step, got '0.5'"),
        ("", "expected a column step, got none"),
    ],
)
def test_metrics_with_missing_or_repeated_steps_are_refused(
    checkpoints, corpus, tmp_path, text, match
):
    series = some(tmp_path / "two", checkpoints, (0, 10))
    (tmp_path / "steps.csv").write_text(text)
    error = refused(series, corpus, "series-metrics", match, metrics=tmp_path / "steps.csv")
    assert isinstance(error, ConfigError)


def test_a_log_of_the_trainer_that_is_none_is_refused(tmp_path):
    from isoscope.lab.trajectory.metrics import read_metrics

    file = tmp_path / "trainer_state.json"
    for text, match in (("{", "broken JSON"), ("[]", "expected log_history")):
        file.write_text(text)
        with pytest.raises(ConfigError, match=match) as caught:
            read_metrics(str(file), [0, 10])
        assert caught.value.slug == "series-metrics"


def test_a_metric_of_checkpoints_that_were_skipped_has_no_numbers():
    from isoscope.lab.trajectory.changes import _link
    from isoscope.store.series import MetricCurve

    metric = MetricCurve(name="loss", steps=(5, 7), values=(1.0, 2.0))
    found = _link([0, 10], [0.1, 0.2], metric)
    assert (found.correlation, found.p, found.steps) == (None, None, 0) and found.note


def test_the_log_of_the_trainer_is_a_file_of_metrics(tmp_path):
    from isoscope.lab.trajectory.metrics import read_metrics

    log = [
        {"step": 10, "loss": 3.0, "epoch": 0.5},
        {"step": 10, "eval_loss": 2.5},
        {"step": 20, "loss": 2.0},
        {"step": 25, "loss": 1.9},
    ]
    (tmp_path / "trainer_state.json").write_text(json.dumps({"log_history": log}))
    found = read_metrics(str(tmp_path / "trainer_state.json"), [0, 10, 20])
    assert [(each.name, each.steps, each.values) for each in found] == [
        ("loss", (10, 20), (3.0, 2.0))
    ]


def test_paths_with_commas_and_a_list_are_series_too(checkpoints, corpus):
    paths = [checkpoints / "step_10", checkpoints / "step_0"]
    options = {"sites": "norm.out", "measures": "mean-cosine", "no_theories": True}
    listed = iso.trajectory(tuple(paths), corpus, **options)
    assert listed[0].steps == [0, 10]
    joined = iso.trajectory(",".join(map(str, paths)), corpus, **options)
    assert joined[0].values == listed[0].values
    assert joined.shared["series"] == checkpoints.name
