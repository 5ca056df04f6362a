"""A study is done in portions: killed, short of memory or in halves, it reads the same."""

import json
import os
import subprocess
import sys

import msgspec
import numpy as np
import pytest
import torch

from isoscope.api import merge, read, survey
from isoscope.engine import Notify, Ticks
from isoscope.errors import IsoscopeError, MergeError, ResumeError
from isoscope.study.documents import Batches, MatrixRows, SurveyPlan
from isoscope.study.model import load_model
from isoscope.study.run import run
from isoscope.study.survey import SurveySpec

SITES = ["embed", "resid.1", "norm.mid"]
FEW = ["isoscore", "mean-cosine"]  # where the measures are not what is looked at


def worker_of(folder, texts, notify=None, **options):
    """Return an open worker of a survey in memory."""
    given = {"sites": SITES, "tokens": None, **options}
    spec = SurveySpec.of(model=str(folder), **given)
    return spec.open(notify or Notify(), {"corpus": texts})


def read_by(worker, texts, notify=None):
    """Run a spec with a worker that is open already, and return its readings."""
    spec = worker.spec

    class Opened(type(spec), frozen=True, kw_only=True):
        def open(self, notify, live=None):
            worker.notify = notify
            return worker

    again = Opened(**{name: getattr(spec, name) for name in spec.__struct_fields__})
    return run(again, live={"corpus": texts}, notify=notify)


def short_of_memory(worker, documents):
    """Let the model's forward pass fail for more documents than these."""
    seen = []

    def refuse(_module, _arguments, named):
        seen.append(len(named["input_ids"]))
        if seen[-1] > documents:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    worker.subject.loaded.body.register_forward_pre_hook(refuse, with_kwargs=True)
    return seen


def test_every_document_is_in_one_unit(tiny, texts):
    plan = worker_of(tiny, texts, unit=150, sites=["resid.0", "embed.weight"]).plan()
    (units,) = plan.stages
    *batches, matrices = units
    assert len(batches) > 3
    ordinals = [each for unit in batches for batch in plan.batches(unit) for each in batch]
    assert sorted(ordinals) == list(range(len(texts)))
    assert matrices == MatrixRows(("embed.weight",))
    assert plan.total() == plan.drawn.rows == sum(plan.size(0, n) for n in range(len(units)))


def test_units_are_ranges_into_the_plan_and_never_lists(tiny, texts):
    plan = worker_of(tiny, texts, unit=150).plan()
    for unit in plan.stages[0]:
        if isinstance(unit, Batches):
            assert len(msgspec.json.encode(unit)) < 60


def test_turns_share_the_sites_and_repeat_the_documents(tiny, texts):
    plan = worker_of(tiny, texts, sites=["embed", "resid"], turns=2).plan()
    heard = [site for site in plan.sites if site != "embed.weight"]
    assert plan.sites_of_turn(0) == tuple(heard[::2])
    assert plan.sites_of_turn(1) == tuple(heard[1::2])
    one, two = (unit for unit in plan.stages[0] if isinstance(unit, Batches))
    assert plan.batches(one) == plan.batches(two)
    assert (one.turn, two.turn) == (0, 1)


def test_a_plan_is_the_same_after_a_file_and_in_another_worker(tiny, texts):
    options = {"unit": 150, "all": True}
    plan = worker_of(tiny, texts, **options).plan()
    assert SurveyPlan.decode(plan.encode()) == plan
    assert worker_of(tiny, texts, **options).plan() == plan
    assert len(plan.stages) == 2
    assert plan.stages[1] == tuple(u for u in plan.stages[0] if isinstance(u, Batches))


@pytest.mark.parametrize("threads", [1, 2])
def test_batches_are_halved_until_they_fit(tiny, texts, assert_alike, threads):
    sites = ["resid.1", "norm.mid"]
    wanted = read_by(worker_of(tiny, texts, sites=sites), texts)
    said, told = [], []
    worker = worker_of(tiny, texts, sites=sites, threads=threads)
    seen = short_of_memory(worker, 4)
    notify = Notify(lambda *each: told.append(each), said.append)
    found = read_by(worker, texts, notify)
    assert_alike(wanted, found, rel=1e-6, absolute=1e-6)
    if threads == 1:  # two batches are under way with two, in any order
        assert seen[:4] == [32, 16, 8, 4]
        assert max(seen[3:]) == 4
    assert {32, 16, 8, 4} <= set(seen)
    assert max(seen[-(len(texts) // 4) :]) == 4
    assert [each.rpartition(" ")[2] for each in said] == ["2", "4", "8"]
    assert all("memory ran out" in each for each in said)
    assert [each for each in found.remarks if "memory ran out" in each] == said
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1]


def test_memory_that_ran_out_in_one_unit_changes_no_other(tiny, texts):
    worker = worker_of(tiny, texts, unit=150)
    plan = worker.plan()
    worker.enter(plan, 0, None)
    first, second, *_ = plan.stages[0]
    ticks = Ticks(lambda done: None, lambda text: None)
    wanted = worker.run(second, None, ticks).to_state()[1]
    seen = short_of_memory(worker, 2)
    worker.run(first, None, ticks)
    assert max(seen) > 2
    seen.clear()
    worker.subject.loaded.body._forward_pre_hooks.clear()
    found = worker.run(second, None, ticks).to_state()[1]
    assert {name: each.tobytes() for name, each in found.items()} == {
        name: each.tobytes() for name, each in wanted.items()
    }


def test_a_model_that_changes_itself_reads_the_same(tiny, texts):
    expected = survey(tiny, texts, sites=SITES, tokens=None, batch=4, threads=2)
    worker = worker_of(tiny, texts, batch=4, threads=2)
    body = worker.subject.loaded.body

    def count(*_):
        body.passes = getattr(body, "passes", 0) + 1

    body.register_forward_pre_hook(count)
    assert list(read_by(worker, texts)) == list(expected)
    assert worker.changes_itself


def test_the_number_of_threads_changes_no_bit_of_two(tiny, texts):
    one, two = (
        survey(tiny, texts, sites=SITES, tokens=None, batch=4, threads=threads)
        for threads in (1, 2)
    )
    assert list(one) == list(two)


def test_one_document_that_does_not_fit_is_an_error_of_ours(tiny, texts):
    worker = worker_of(tiny, texts)
    short_of_memory(worker, 0)
    with pytest.raises(IsoscopeError, match="memory ran out with a single document") as caught:
        read_by(worker, texts)
    assert caught.value.slug == "out-of-memory"
    assert "--length" in caught.value.hint


def test_other_faults_of_a_model_are_not_taken_for_lack_of_memory(tiny, texts):
    worker = worker_of(tiny, texts)

    def fail(_module, _arguments):
        raise RuntimeError("shapes do not match")

    worker.subject.loaded.body.register_forward_pre_hook(fail)
    with pytest.raises(RuntimeError, match="shapes do not match"):
        read_by(worker, texts)


@pytest.fixture(scope="module")
def stopped(tiny, texts, tmp_path_factory):
    """Return the path of a survey that was interrupted after one unit, and its options."""
    place = tmp_path_factory.mktemp("stopped")
    (place / "c.txt").write_text("\n".join(texts) + "\n")
    options = {"tokens": None, "unit": 150, "sites": ["resid.0"], "output": place / "run"}
    reached = []

    def stop(done, total):
        reached.append(done)
        if done > 200:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        survey(tiny, place / "c.txt", progress=stop, **options)
    assert list((place / "run" / "stage-1").glob("node-*"))
    return place, options


@pytest.mark.parametrize(
    ("change", "named"),
    [({"seed": 1}, "--seed 1"), ({"length": 16}, "--length 16"), ({"sinks": 5.0}, "--sinks 5"),
     ({"prompt": "the"}, "--prompt 'the'"), ({"batch": 3}, "--batch 3"),
     ({"all": True}, "--all true"),
     ({"tokens": 100}, "--tokens 100"), ({"measures": ["isoscore"]}, "isoscore"),
     ({"zeta": 0.5}, "--zeta 0.5"), ({"threads": 1}, "--threads 1")],
)  # fmt: skip
def test_a_run_begun_with_another_option_says_which_and_both_values(
    tiny, stopped, change, named
):
    place, options = stopped
    with pytest.raises(ResumeError) as caught:
        survey(tiny, place / "c.txt", **{**options, **change})
    assert named in caught.value.problem
    assert "it was begun with" in caught.value.problem
    assert list((place / "run" / "stage-1").glob("node-*"))  # nothing is lost


def test_a_run_begun_on_another_corpus_or_model_says_so(tiny, other_tiny, texts, stopped):
    place, options = stopped
    (place / "other").mkdir(exist_ok=True)
    (place / "other" / "c.txt").write_text("\n".join(texts[1:]) + "\n")
    with pytest.raises(ResumeError, match="with another corpus"):
        survey(tiny, place / "other" / "c.txt", **options)
    with pytest.raises(ResumeError, match="with another model"):
        survey(other_tiny, place / "c.txt", **options)


def test_a_path_with_the_same_content_resumes_to_the_same_bytes(tiny, stopped, tmp_path):
    place, options = stopped
    (tmp_path / "moved").mkdir()
    (tmp_path / "moved" / "c.txt").write_bytes((place / "c.txt").read_bytes())
    whole = tmp_path / "run"
    survey(tiny, place / "c.txt", **{**options, "output": whole})
    survey(tiny, tmp_path / "moved" / "c.txt", **options)
    for name in ("state.safetensors", "readings.parquet"):
        assert (place / "run" / name).read_bytes() == (whole / name).read_bytes()


REALLY_SHORT = """
import resource, sys, torch
torch.set_num_threads(1)
from isoscope.api import survey
words = ["river", "boats", "town", "fire"]
texts = [" ".join(words[(n + i * i) % 4] for i in range(60)) for n in range(40)]
given = {"tokens": None, "sites": ["resid"], "measures": ["isoscore", "mean-cosine"]}
free, said = survey(sys.argv[1], texts, **given), []
used = next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith("VmSize"))
resource.setrlimit(resource.RLIMIT_AS, ((used << 10) + (64 << 20),) * 2)
limited = survey(sys.argv[1], texts, say=said.append, **given)
assert said and "memory ran out" in said[0], said
for one, other in zip(free, limited, strict=True):
    print(one.variant, one.measure, abs(one.value - other.value))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and a bound on memory")
def test_memory_that_really_ends_changes_nothing(tiny, tmp_path):
    from transformers import AutoTokenizer, BertConfig, BertModel

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=100, hidden_size=8, num_hidden_layers=1, num_attention_heads=1,
        intermediate_size=32_768, max_position_embeddings=64,
    )  # fmt: skip
    BertModel(config).save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(tiny).save_pretrained(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", REALLY_SHORT, str(tmp_path)],
        capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    lines = [line.split() for line in done.stdout.splitlines()]
    assert len(lines) > 6  # two measures in three variants, and bands
    assert all(float(apart) < 1e-6 for *_, apart in lines)


@pytest.fixture(scope="module")
def halves(tiny, texts, tmp_path_factory):
    """Runs of two halves of a corpus, of the whole, and of it with other names."""
    place = tmp_path_factory.mktemp("halves")
    lines = [json.dumps({"text": text, "key": f"d{n}"}) for n, text in enumerate(texts)]
    parts = {"a": lines[::2], "b": lines[1::2], "whole": lines}
    tokenizer = load_model(tiny).loaded.tokenizer
    ids = np.concatenate([tokenizer(text)["input_ids"] for text in texts])
    np.save(place / "counts.npy", np.bincount(ids, minlength=len(tokenizer)))
    for name, part in parts.items():
        (place / f"{name}.jsonl").write_text("\n".join(part) + "\n")
        survey(
            tiny, place / f"{name}.jsonl", column="text", id="key", tokens=None,
            sites=["resid.0", "resid.2", "embed.weight"], output=place / name,
            frequencies=place / "counts.npy",  # or each half would have bands of its own
        )  # fmt: skip
    return place


def test_two_halves_are_the_whole(halves, assert_alike):
    merge([halves / "a", halves / "b"], halves / "merged")
    assert_alike(read(halves / "whole"), read(halves / "merged"), rel=1e-6, absolute=1e-6)
    again = merge([halves / "b", halves / "a"], halves / "turned")
    assert_alike(read(halves / "merged"), again, rel=1e-7, absolute=1e-7)


def test_the_same_corpus_twice_is_refused(halves, tmp_path):
    with pytest.raises(MergeError) as caught:
        merge([halves / "a", halves / "a"], tmp_path / "merged")
    assert caught.value.slug == "merge-same-source"
    assert not list(tmp_path.iterdir())


def test_another_model_is_refused(halves, other_tiny, tmp_path):
    survey(
        other_tiny, halves / "b.jsonl", column="text", id="key", tokens=None,
        sites=["resid.0", "resid.2", "embed.weight"], output=tmp_path / "b", measures=FEW,
    )  # fmt: skip
    with pytest.raises(MergeError) as caught:
        merge([halves / "a", tmp_path / "b"], tmp_path / "merged")
    assert caught.value.slug == "merge-origin"


SECOND = ["mean-cosine", "mean-cosine-cross", "mean-cosine-centred", "isoscore"]


def test_second_passes_of_two_runs_are_not_mixed_up(tiny, texts, tmp_path):
    norms = norms_over_median(tiny, texts)
    level = (norms[-1] + norms[-2]) / 2  # one document alone has a sink
    for name, part in (("a", texts[::2]), ("b", texts[1::2]), ("whole", texts)):
        (tmp_path / f"{name}.txt").write_text("\n".join(part) + "\n")
        survey(
            tiny, tmp_path / f"{name}.txt", tokens=None, sites=["resid.0"], sinks=level,
            all=True, measures=SECOND, output=tmp_path / name,
        )  # fmt: skip
    sizes = {
        name: {r.variant: r.n for r in read(tmp_path / name) if r.measure == "isoscore"}
        for name in ("a", "b", "whole")
    }
    apart = [size["all"] - size["no-sink"] for size in sizes.values()]
    assert sorted(apart) == [0, 1, 1]
    found = merge([tmp_path / "a", tmp_path / "b"], tmp_path / "merged")
    wanted = {(r.variant, r.measure): r for r in read(tmp_path / "whole") if not r.group}
    for name in SECOND:
        for r in (r for r in found if r.measure == name and not r.group):
            assert r.n == wanted[r.variant, name].n
            assert r.value == pytest.approx(wanted[r.variant, name].value, rel=1e-5, abs=1e-6)


def norms_over_median(folder, texts):
    """Return of each document the largest norm in block 0 over its median, sorted."""
    found, heard = load_model(folder), []
    handle = found.loaded.body.encoder.layer[0].register_forward_hook(
        lambda _m, _i, out: heard.append((out[0] if isinstance(out, tuple) else out)[0])
    )
    for text in texts:
        with torch.inference_mode():
            found.loaded.body(**found.loaded.tokenizer(text, return_tensors="pt"))
    handle.remove()
    norms = [each.norm(dim=1) for each in heard]
    # The largest but one too: a document may have two tokens above the level.
    over = torch.cat([(each / each.median()).sort().values[-2:] for each in norms])
    return over.sort().values.tolist()


def test_a_saved_run_reads_site_by_site(halves):
    found = read(halves / "whole", sites=["resid.0"])
    assert {r.site for r in found} == {"resid.0"}
    one = read(halves / "whole", sites=["resid.2"], measures=["isoscore"])
    assert [(r.site, r.measure) for r in one] == [("resid.2", "isoscore")] * 3


def test_the_run_says_where_it_comes_from(halves):
    record = json.loads((halves / "whole" / "run.json").read_text())["origin"]
    assert record["kind"] == "survey"
    assert set(record["model"]) >= {"sha", "revision", "tokenizer", "dtype", "versions"}
    (source,) = record["sources"]
    assert source["documents"] == source["of"] == 40
    assert source["file"] == "whole.jsonl"
    assert source["kind"] == "text"
    assert record["settings"]["sites"] == ["resid.0", "resid.2", "embed.weight"]


def by_site(readings, site):
    """Return everything that was read at a site but its name."""
    there = [row for row in readings.to_dict() if row["site"] == site]
    return [{**row, "site": "", "run": ""} for row in there]


def test_a_tensor_at_two_sites_is_summed_once_and_read_at_both(tiny, texts, tmp_path):
    both = ["resid.2", "norm.out"]  # the last block of BERT ends with its norm
    worker = worker_of(tiny, texts, sites=both, unit=150)
    plan = worker.plan()
    worker.enter(plan, 0, None)
    found = worker.run(plan.stages[0][0], None, Ticks(lambda _: None, lambda _: None))
    assert found.same == {"resid.2": "norm.out"}
    assert {site for site, _ in found.held} == {"norm.out"}
    together = survey(tiny, texts, sites=both, tokens=None, output=tmp_path / "both")
    assert list(dict.fromkeys(each.site for each in together)) == both
    for site in both:
        alone = survey(tiny, texts, sites=[site], tokens=None)
        assert len(by_site(alone, site)) > 20
        assert by_site(together, site) == by_site(alone, site)
        assert by_site(read(tmp_path / "both", measures=["mean-cosine"]), site)


def test_runs_with_equal_sites_merge(tiny, texts, tmp_path):
    for name, half in (("a", texts[:20]), ("b", texts[20:])):
        corpus = tmp_path / f"{name}.txt"
        corpus.write_text("\n".join(half))
        target = tmp_path / name
        given = {"sites": ["resid.2", "norm.out"], "measures": FEW, "tokens": None}
        survey(tiny, corpus, **given, output=target)
    merged = merge([tmp_path / "a", tmp_path / "b"], output=tmp_path / "ab")
    assert by_site(merged, "resid.2") == by_site(merged, "norm.out") != []


def test_sites_that_are_not_always_alike_are_summed_apart(tiny, texts):
    both = ["resid.2", "norm.out"]
    worker = worker_of(tiny, texts, sites=both, batch=4, measures=FEW)
    calls = []

    def sometimes(_module, _inputs, output):
        calls.append(1)
        return output.clone() if len(calls) % 3 == 0 else None

    block = worker.subject.loaded.body.encoder.layer[-1]
    block.register_forward_hook(sometimes)
    found = read_by(worker, texts)
    assert worker.alone == {"resid.2"}
    for site in both:
        alone = survey(tiny, texts, sites=[site], measures=FEW, tokens=None, batch=4)
        assert by_site(found, site) == by_site(alone, site)


def test_a_tied_matrix_is_summed_once(tiny, texts, tmp_path):
    from transformers import BertConfig, BertForMaskedLM

    torch.manual_seed(0)
    config = BertConfig.from_pretrained(tiny)
    folder = tmp_path / "tied"
    BertForMaskedLM(config).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((tiny / name).read_bytes())
    both = ["embed.weight", "unembed.weight"]
    worker = worker_of(folder, texts, sites=both)
    plan = worker.plan()
    worker.enter(plan, 0, None)
    found = worker.run(plan.stages[0][-1], None, Ticks(lambda _: None, lambda _: None))
    assert found.same == {"unembed.weight": "embed.weight"}
    readings = survey(folder, texts, sites=both, tokens=None)
    assert by_site(readings, "unembed.weight") == by_site(readings, "embed.weight") != []
    with torch.no_grad():
        worker.subject.sites.weights["embed.weight"][3] = torch.nan
    spoilt = worker.run(plan.stages[0][-1], None, Ticks(lambda _: None, lambda _: None))
    assert spoilt.trouble.keys() == set(both)
    assert spoilt.same == {}


def test_documents_are_tokenised_once(tiny, texts):
    sites = ["resid.1", "norm.mid"]
    worker, seen = worker_of(tiny, texts, sites=sites, measures=FEW), []
    prepare = worker.feed.prepare

    def counted(document):
        seen.append(document.id)
        return prepare(document)

    worker.feed.prepare = counted
    found = read_by(worker, texts)
    assert sorted(seen) == sorted(set(seen))
    assert len(seen) == len(texts)
    again = survey(tiny, texts, sites=sites, measures=FEW, tokens=None)
    for site in sites:
        assert by_site(again, site)
        assert by_site(found, site) == by_site(again, site)


@pytest.fixture(scope="module")
def language_model(decoder, tmp_path_factory):
    """Return the folder of a small random GPT-2 whose tokenizer_config.json asks for bos."""
    import shutil

    from transformers import GPT2Config, GPT2LMHeadModel

    folder = tmp_path_factory.mktemp("language") / "model"
    shutil.copytree(decoder, folder)
    torch.manual_seed(0)
    GPT2LMHeadModel(GPT2Config.from_pretrained(decoder)).save_pretrained(folder)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings |= {"bos_token": "[PAD]", "add_bos_token": True}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def test_a_survey_says_the_loss_with_and_without_bos(language_model, texts, tmp_path):
    said = []
    found = survey(
        language_model, texts, sites=["resid.1"], measures=FEW, output=tmp_path / "run",
        say=said.append,
    )  # fmt: skip
    (line,) = [each for each in said if each.startswith("loss on the first")]
    assert line.endswith("without [PAD]")
    assert "with [PAD] before each document (as surveyed)" in line
    assert line in found.remarks
    stored = json.loads((tmp_path / "run" / "run.json").read_text())["origin"]["sources"][0]
    assert line in stored["warnings"]
    loss = stored["loss"]
    assert f"{loss['with_bos']:.2f} with [PAD]" in line
    assert f"{loss['without_bos']:.2f} without" in line
    assert loss["tokens"] >= 256
    assert read(tmp_path / "run").remarks == found.remarks


def test_a_resumed_survey_does_not_compute_the_loss_again(
    language_model, texts, tmp_path, monkeypatch
):
    from isoscope.capture import loss

    calls, compute = [], loss.next_token_loss
    monkeypatch.setattr(
        loss, "next_token_loss", lambda *a, **k: calls.append(1) or compute(*a, **k)
    )
    corpus = tmp_path / "texts.txt"
    corpus.write_text("\n".join(texts))
    options = {"tokens": None, "unit": 150, "sites": ["resid.1"], "output": tmp_path / "run"}
    options["measures"] = FEW

    def stop(done, total):
        if done > 200:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        survey(language_model, corpus, progress=stop, **options)
    found = survey(language_model, corpus, **options)
    assert len(calls) == 1
    assert any(each.startswith("loss on the first") for each in found.remarks)


def test_bos_is_measured_unless_it_is_switched_off(language_model, texts):
    given = {"sites": ["resid.1"], "measures": FEW}
    with_bos = survey(language_model, texts, **given)
    without = survey(language_model, texts, **given, no_bos=True)
    rows = [{r.variant: r.n for r in each if not r.group} for each in (with_bos, without)]
    assert rows[0]["all"] == rows[1]["all"] + len(texts)
    assert rows[0]["no-special"] == rows[1]["all"]
    assert "without [PAD] (as surveyed)" in " ".join(without.remarks)


def test_bos_is_at_the_beginning_of_every_document(language_model, texts):
    worker = worker_of(language_model, texts)
    ready = [worker.feed.prepare(worker.corpus.document(number)) for number in range(5)]
    assert all(each.inputs["input_ids"][0] == 0 and each.special[""][0] for each in ready)


def test_a_model_without_bos_is_told_that_there_is_none_to_drop(decoder, texts):
    said = []
    given = {"sites": ["resid.1"], "measures": FEW}
    survey(decoder, texts, **given, no_bos=True, say=said.append)
    assert any("no effect" in each for each in said)


def test_a_model_without_a_language_model_head_has_no_loss(tiny, decoder, texts):
    for folder in (tiny, decoder):
        found = survey(folder, texts, sites=["resid.1"], measures=FEW)
        assert not any("loss" in each for each in found.remarks)


def test_runs_with_and_without_bos_are_not_merged(language_model, texts, tmp_path):
    halves = {"a": texts[:20], "b": texts[20:]}
    for name, part in halves.items():
        (tmp_path / f"{name}.txt").write_text("\n".join(part))
        survey(
            language_model,
            tmp_path / f"{name}.txt",
            sites=["resid.1"],
            measures=FEW,
            no_bos=name == "b",
            output=tmp_path / name,
        )
    with pytest.raises(MergeError, match="no_bos"):
        merge([tmp_path / "a", tmp_path / "b"], tmp_path / "c")
