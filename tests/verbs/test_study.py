"""A study is done in portions: killed, short of memory or in halves, it reads the same."""

import inspect
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from isoscope.errors import IsoscopeError, MergeError
from isoscope.verbs import merge, read, survey
from isoscope.verbs.answer import answered_places, chosen
from isoscope.verbs.model import opened
from isoscope.verbs.study import Study

SITES = ["embed", "resid", "norm.mid"]
DEFAULTS = {name: each.default for name, each in inspect.signature(survey).parameters.items()}


def planned(folder, texts, work, **given):
    """Return a study as the verb plans it."""
    found = opened(folder)
    settings = {**DEFAULTS, "corpus": texts, "sites": SITES, "tokens": None, **given}
    return Study.planned(found, work, chosen(None), settings)


def answers(study):
    return answered_places(study.done(), study.names, "run", study.options, study.sites)


def short_of_memory(study, documents):
    """Let the model's forward pass fail for more than so many documents."""
    seen = []

    def refuse(_module, _arguments, named):
        seen.append(len(named["input_ids"]))
        if seen[-1] > documents:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    study.found.loaded.body.register_forward_pre_hook(refuse, with_kwargs=True)
    return seen


def test_batches_are_halved_until_they_fit(tiny, texts, tmp_path, assert_alike):
    wanted = answers(planned(tiny, texts, tmp_path / "enough"))
    said, told = [], []
    study = planned(
        tiny, texts, tmp_path / "short", say=said.append,
        progress=lambda *each: told.append(each),
    )  # fmt: skip
    seen = short_of_memory(study, 4)
    assert_alike(wanted, answers(study), rel=1e-6, absolute=1e-6)
    assert seen[:4] == [32, 16, 8, 4]
    assert max(seen[3:]) == 4
    assert [each.rpartition(" ")[2] for each in said] == ["2", "4", "8"]
    assert all("memory ran out" in each for each in said)
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1]


def test_one_document_that_does_not_fit_is_an_error_of_ours(tiny, texts, tmp_path):
    study = planned(tiny, texts, tmp_path / "short")
    short_of_memory(study, 0)
    with pytest.raises(IsoscopeError, match="memory ran out with a single document") as caught:
        study.done()
    assert caught.value.slug == "out-of-memory"
    assert "--length" in caught.value.hint


def test_other_faults_of_a_model_are_not_taken_for_lack_of_memory(tiny, texts, tmp_path):
    study = planned(tiny, texts, tmp_path / "broken")

    def fail(_module, _arguments):
        raise RuntimeError("shapes do not match")

    study.found.loaded.body.register_forward_pre_hook(fail)
    with pytest.raises(RuntimeError, match="shapes do not match"):
        study.done()
    assert study.halvings == 0


REALLY_SHORT = """
import resource, sys, torch
torch.set_num_threads(1)
from isoscope.verbs import survey
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
    tokenizer = opened(tiny).loaded.tokenizer
    ids = np.concatenate([tokenizer(text)["input_ids"] for text in texts])
    np.save(place / "counts.npy", np.bincount(ids, minlength=len(tokenizer)))
    for name, part in parts.items():
        (place / f"{name}.jsonl").write_text("\n".join(part) + "\n")
        survey(
            tiny, place / f"{name}.jsonl", column="text", id="key", tokens=None,
            sites=["resid", "embed.weight"], output=place / name,
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
        sites=["resid", "embed.weight"], output=tmp_path / "b",
    )  # fmt: skip
    with pytest.raises(MergeError) as caught:
        merge([halves / "a", tmp_path / "b"], tmp_path / "merged")
    assert caught.value.slug == "merge-origin"


def test_second_passes_of_two_runs_are_not_mixed_up(tiny, texts, tmp_path):
    norms = norms_over_median(tiny, texts)
    level = (norms[-1] + norms[-2]) / 2  # one document alone has a sink
    for name, part in (("a", texts[::2]), ("b", texts[1::2]), ("whole", texts)):
        (tmp_path / f"{name}.txt").write_text("\n".join(part) + "\n")
        survey(
            tiny, tmp_path / f"{name}.txt", tokens=None, all=True, sites=["resid.0"],
            sinks=level, output=tmp_path / name,
        )  # fmt: skip
    sizes = {
        name: {r.variant: r.n for r in read(tmp_path / name) if r.measure == "isoscore"}
        for name in ("a", "b", "whole")
    }
    apart = [size["all"] - size["no-sink"] for size in sizes.values()]
    assert sorted(apart) == [0, 1, 1]
    found = merge([tmp_path / "a", tmp_path / "b"], tmp_path / "merged")
    wanted = {(r.variant, r.measure): r for r in read(tmp_path / "whole") if not r.group}
    for name in ("mean-cosine", "mean-cosine-cross", "mean-cosine-centred", "isoscore"):
        for r in (r for r in found if r.measure == name and not r.group):
            assert r.n == wanted[r.variant, name].n
            assert r.value == pytest.approx(wanted[r.variant, name].value, rel=1e-5, abs=1e-6)


def norms_over_median(folder, texts):
    """Return of each document the largest norm in block 0 over its median, sorted."""
    found, heard = opened(folder), []
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
    assert record["settings"]["sites"] == ["resid.0", "resid.1", "resid.2", "embed.weight"]
