"""Workers of the lab: opened from a spec and a plan anywhere, they do any unit alike.

Their units are done here by a second worker, from a pickled spec and a plan that was
written and read back, in reverse order: what another process would do.
"""

import json
import pickle
from dataclasses import asdict, replace
from types import SimpleNamespace

import msgspec
import pytest

import isoscope as iso
from isoscope.engine import Notify
from isoscope.lab.dimensions.spec import DimensionsSpec
from isoscope.lab.explain.spec import ExplainSpec
from isoscope.lab.matrices.spec import MatricesSpec, OneMatrix
from isoscope.lab.norm.spec import AllNorms, NormSpec
from isoscope.lab.norm.worker import NormWorker
from isoscope.lab.probe.spec import AtSite, ProbeSpec
from isoscope.lab.probe.worker import ProbeWorker
from isoscope.lab.sweep.results import sweep_results
from isoscope.lab.sweep.spec import Before, Cell, SweepSpec
from isoscope.lab.sweep.worker import SweepWorker
from isoscope.lab.zero.spec import Documents, ZeroSpec
from isoscope.store.schema import plain_values

TICKS = SimpleNamespace(at=lambda _done: None, note=lambda _text: None)


@pytest.fixture(scope="module")
def reviews(tmp_path_factory, texts):
    rows = [
        {"text": text, "size": "long" if len(text.split()) > 15 else "short"} for text in texts
    ]
    path = tmp_path_factory.mktemp("reviews") / "reviews.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def records_elsewhere(spec):
    """Return the plan of a spec, and what a worker that did not make it finds."""
    plan = spec.open(Notify()).plan()
    again = pickle.loads(pickle.dumps(spec))
    worker, copy = again.open(Notify()), again.decode_plan(plan.encode())
    assert copy == plan
    worker.enter(copy, 0, None)
    (units,) = copy.stages
    found = {
        number: worker.run(units[number], None, TICKS) for number in reversed(range(len(units)))
    }
    kept = [msgspec.msgpack.encode(plain_values(found[n])) for n in range(len(units))]
    return plan, [msgspec.msgpack.decode(each) for each in kept]


def test_saved_runs_are_read_site_by_site(tiny_run, forked_pool):
    for spec, function in ((ExplainSpec, iso.explain), (DimensionsSpec, iso.dimensions)):
        plan, records = records_elsewhere(
            spec.of(run=str(tiny_run), sites=["embed", "resid.1"])
        )
        assert [unit.site for unit in plan.stages[0]] == ["embed", "resid.1"]
        found = function(tiny_run, sites=["embed", "resid.1"])
        pool = function(tiny_run, sites=["embed", "resid.1"], engine="pool", workers=2)
        assert pool.to_dict() == found.to_dict()
        assert len(records) == 2


def test_zero_is_done_batch_by_batch(speaker, texts, tmp_path):
    (tmp_path / "c.txt").write_text("\n".join(texts))
    options = {"corpus": str(tmp_path / "c.txt"), "documents": 6, "batch": 2, "top": 2}
    plan, records = records_elsewhere(ZeroSpec.of(model=str(speaker), **options))
    assert plan.stages == ((Documents(0, 2), Documents(2, 4), Documents(4, 6)),)
    found = iso.zero(speaker, **options)
    for number, each in enumerate(found):
        sums = sum(value for record in records for value in record["sums"][number])
        assert each.kl == pytest.approx(
            sums / sum(n for record in records for n in record["counts"]), rel=1e-12
        )


def test_probe_is_done_site_by_site(tiny, reviews):
    options = {"corpus": str(reviews), "label": "size", "sites": ["resid.0", "norm.out"]}
    spec = ProbeSpec.of(model=str(tiny), **options)
    assert isinstance(spec.open(Notify()), ProbeWorker)
    plan, records = records_elsewhere(spec)
    assert plan.stages == ((AtSite("resid.0"), AtSite("norm.out")),)
    found = iso.probe(tiny, **options)
    assert [record["rule"] for record in records] == [asdict(each.rule) for each in found]


def test_matrices_are_done_one_by_one(untied):
    plan, records = records_elsewhere(MatricesSpec.of(model=str(untied)))
    sites = ("embed.weight", "unembed.weight")
    units = [OneMatrix(site, centred) for site in sites for centred in (False, True)]
    assert plan.stages == (tuple(units),)
    assert records == [asdict(each) for each in iso.matrices(untied)]


def test_norms_are_one_unit(speaker):
    spec = NormSpec.of(model=str(speaker))
    worker = spec.open(Notify())
    assert isinstance(worker, NormWorker)
    plan, (record,) = records_elsewhere(spec)
    assert plan.stages == ((AllNorms(),),)
    found, there = worker.finish(SimpleNamespace(records=[record])), iso.norm(speaker)
    assert found.to_dict() == there.to_dict()


def test_a_sweep_is_done_cell_by_cell(tiny, reviews, tmp_path):
    options = {
        "data": str(reviews), "label": "size", "weights": [-3], "seeds": 1, "steps": 2,
        "length": 32, "probe": 16, "threads": 1,
    }  # fmt: skip
    spec = SweepSpec.of(model=str(tiny), **options)
    assert isinstance(spec.open(Notify()), SweepWorker)
    plan, records = records_elsewhere(spec)
    assert plan.stages == ((Before(), Cell(-3.0, 0), Cell(0.0, 0)),)
    iso.sweep(tiny, **options, output=tmp_path / "run")
    run = iso.load(tmp_path / "run")
    there = [asdict(replace(each, run="")) for each in run.readings]
    assert [each for record in records for each in record["readings"]] == plain_values(there)
    assert [line.weight for line in sweep_results(run.readings, run.origin)] == [-3.0, 0.0]
