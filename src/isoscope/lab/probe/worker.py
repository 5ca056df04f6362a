"""The worker of `isoscope probe`: states of documents at a site, and the best dimension."""

from dataclasses import asdict
from typing import cast

import msgspec

from isoscope.engine import Notify
from isoscope.engine.base import Scratch, Ticks
from isoscope.lab.probe.labels import Labels, against_rest, labelled
from isoscope.lab.probe.one_dimension import OneDimension, best_dimension, two_labels
from isoscope.lab.probe.sentence_states import At, states_of
from isoscope.lab.probe.spec import AtSite, ProbedSite, ProbePlan, ProbeSpec, Probing
from isoscope.store.state import State
from isoscope.study.model import open_model
from isoscope.study.run import Finished, Live


class SiteRecord(msgspec.Struct, frozen=True):
    """What the unit of a site has found."""

    site: str
    at: str
    left_out: int
    rule: OneDimension


class ProbeWorker:
    """A loaded model, an open corpus, and the label of each document."""

    def __init__(self, spec: ProbeSpec, notify: Notify, live: Live) -> None:
        self.spec = spec
        read = spec.read
        self.corpus, labels = labelled(
            live.get("corpus", read.corpus),
            cast(Labels, live.get("label", read.label)),
            column=read.column,
            id=read.id,
            skip_bad=read.skip_bad,
        )
        if spec.positive is not None:
            labels = against_rest(labels, spec.positive)
        _ = two_labels(labels)  # before a model is loaded for nothing
        self.labels = labels
        self.subject = open_model(spec.load, live=live.get("model"), say=notify.say)

    def content(self) -> dict[str, str]:
        """Return nothing: a probe is not written to a folder."""
        return {}

    def plan(self) -> ProbePlan:
        """Return one unit per site."""
        units = tuple(AtSite(site) for site in self.spec.sites or (None,))
        return ProbePlan(
            stages=(units,),
            documents=len(self.corpus),
            model=self.subject.loaded.name,
            warnings=tuple(self.corpus.warnings),
        )

    def enter(self, plan: object, stage: int, before: State | None) -> None:
        """Nothing to prepare."""

    def run(self, unit: object, scratch: Scratch, ticks: Ticks) -> dict[str, object]:
        """Return the best dimension of a site."""
        _ = scratch
        assert isinstance(unit, AtSite)
        spec = self.spec
        states = states_of(
            self.subject,
            self.corpus,
            self.labels,
            site=unit.site,
            at=cast("At | None", spec.at),
            length=spec.length,
            batch=spec.batch,
            progress=lambda done, _: ticks.at(done),
        )
        rule = best_dimension(
            states.rows,
            states.labels,
            test=spec.test,
            seed=spec.seed,
            as_published=spec.as_published,
        )
        return {
            "site": states.site,
            "at": states.at,
            "left_out": states.left_out,
            "rule": asdict(rule),
        }

    def finish(self, done: Finished) -> Probing:
        """Return what was found at each site."""
        plan = done.plan_as(ProbePlan)
        found = msgspec.convert(done.records, list[SiteRecord])
        sites = [ProbedSite(each.site, each.at, each.left_out, each.rule) for each in found]
        return Probing(plan.model, plan.warnings, sites)
