"""The worker of `isoscope probe`: states of documents at a site, and the best dimension."""

from collections.abc import Callable, Sequence
from typing import cast

import msgspec
import numpy as np
import torch
from torch import Tensor

from isoscope.capture.feed import Batch, feed_for
from isoscope.dataclass import dataclass
from isoscope.display import Results
from isoscope.engine import Notify, Scratch, Ticks
from isoscope.lab.probe.labels import Labels, against_rest, open_labelled
from isoscope.lab.probe.one_dimension import best_dimension, two_labels
from isoscope.lab.probe.results import Probe, results_of
from isoscope.lab.probe.spec import AtSite, ProbePlan, ProbeSpec
from isoscope.registry import check_names
from isoscope.site import Site, is_matrix
from isoscope.source.corpus.corpus import Corpus
from isoscope.study.model import At, ModelSites, choose_state, open_model, take_states
from isoscope.study.run import Finished, Live, Planner
from isoscope.study.selection import batches_of, prepare_documents
from isoscope.types import Array


class ProbeWorker(Planner[Results[Probe]]):
    """A loaded model, an open corpus, and the label of each document."""

    def __init__(self, spec: ProbeSpec, notify: Notify, live: Live) -> None:
        self.spec = spec
        read = spec.read
        self.corpus, labels = open_labelled(
            cast(str | Sequence[str], live.get("corpus", read.corpus)),  # checked as it is read
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

    def plan(self) -> ProbePlan:
        """Return one unit per site."""
        return ProbePlan(
            stages=(tuple(AtSite(site) for site in self.spec.sites or (None,)),),
            documents=len(self.corpus),
            model=self.subject.loaded.name,
            warnings=tuple(self.corpus.warnings),
        )

    def run(self, unit: object, _scratch: Scratch, ticks: Ticks, /) -> Probe:
        """Return the best dimension of a site."""
        assert isinstance(unit, AtSite)
        spec = self.spec
        states = states_of(
            self.subject,
            self.corpus,
            site=unit.site,
            at=spec.at,
            length=spec.length,
            batch=spec.batch,
            progress=ticks.at,
        )
        rule = best_dimension(
            states.rows,
            [self.labels[ordinal] for ordinal in states.ordinals],
            test=spec.test,
            seed=spec.seed,
            as_published=spec.as_published,
        )
        return Probe(states.site, states.at, rule, len(self.corpus) - len(states.ordinals))

    def finish(self, done: Finished) -> Results[Probe]:
        """Return the classifier of each site."""
        plan = done.plan_as(ProbePlan)
        return results_of(msgspec.convert(done.records, list[Probe]), plan.model, plan.warnings)


@dataclass(frozen=True)
class States:
    """A vector for each document that was long enough, in the order of the corpus."""

    rows: Array  # (documents, d)
    ordinals: list[int]  # of these documents
    site: str
    at: At


def states_of(
    subject: ModelSites,
    corpus: Corpus,
    *,
    site: str | None = None,
    at: str | None = None,
    length: int = 512,
    batch: int = 16,
    progress: Callable[[int], None] = lambda _: None,
) -> States:
    """Return the state of each document at a site: of its first or last token, or the mean.

    As in the paper, encoders with a [CLS] token are read there and decoders at the last
    token, at the final norm. `progress` is called with the number of documents done.
    """
    site, place = _find_site(subject, site), choose_state(subject, at)
    feed = feed_for(subject.loaded, length=length)
    ready = prepare_documents(corpus, feed)
    parts: list[Array] = []
    for each in batches_of([document for _, document in ready], feed, batch):

        def keep(name: str, tensor: Tensor, batch: Batch = each) -> None:
            real = batch.marks(Site.parse(name).stack, tensor.shape[1]).real.to(tensor.device)
            parts.append(take_states(tensor.float(), real, place).cpu().numpy())

        with subject.sites.listening([site], keep), torch.inference_mode():
            subject.loaded.body(**each.inputs)
        progress(sum(map(len, parts)))
    return States(np.concatenate(parts), [ordinal for ordinal, _ in ready], site, place)


def _find_site(subject: ModelSites, site: str | None) -> str:
    known = [each for each in subject.sites.names if not is_matrix(each)]
    if site is None:
        final, stream = subject.site("norm", "out"), subject.site("resid")
        resid = [each for each in known if Site.parse(each).group == stream]
        return final if final in known else (resid or known)[-1]
    check_names("site", [site], known)
    return site
