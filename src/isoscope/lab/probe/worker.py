"""The worker of `isoscope probe`: states of documents at a site, and the best dimension."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, cast

from isoscope.engine import Notify
from isoscope.engine.base import Ticks
from isoscope.engine.scratch import Scratch
from isoscope.lab.labels import against_rest, labelled
from isoscope.lab.one_dimension import best_dimension, two_labels
from isoscope.lab.probe.spec import AtSite, ProbePlan, ProbeSpec
from isoscope.lab.sentence_states import At, states_of
from isoscope.store.summaries import State
from isoscope.study.model import open_model
from isoscope.study.plan import Plan


class ProbeWorker:
    """A loaded model, an open corpus, and the label of each document."""

    def __init__(self, spec: ProbeSpec, notify: Notify, live: Mapping[str, Any]) -> None:
        self.spec = spec
        read = spec.read
        self.corpus, labels = labelled(
            live.get("corpus", read.corpus),
            live.get("label", read.label),
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

    def enter(self, plan: Plan, stage: int, before: State | None) -> None:
        """Nothing to prepare."""

    def run(self, unit: AtSite, scratch: Scratch, ticks: Ticks) -> dict[str, Any]:
        """Return the best dimension of a site."""
        _ = scratch
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
