"""What plain hooks store of a model, and every reading of a survey compared with it."""

from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pytest
import torch

from isoscope.accumulate import ArrayBlock
from isoscope.accumulate.row_bands import frequency_bands
from isoscope.accumulate.survey import SECOND_PASS, Survey
from isoscope.hashing import named_documents, ordinal_documents
from isoscope.measures import MEASURES
from isoscope.measures.view import Neighbours
from isoscope.site import HEADS, Site
from isoscope.source.corpus import open_corpus
from isoscope.study.reading import kinds_for, read_survey, second_passes

VARIANTS = ("all", "no-special", "no-sink")
# By which states of float32 differ between batches, of a row's norm: 1.2e-6 at most in MiniLM.
ROUNDING = 3e-7


@dataclass(frozen=True)
class Read:
    """A document as the model reads it, and its special positions in each stack."""

    id: str
    inputs: dict
    special: dict  # by prefix of site: as many as there are positions that count

    def tokens(self, prefix):
        """Return the tokens of a stack; sound has none."""
        given = self.inputs.get({"": "input_ids", "dec.": "decoder_input_ids"}.get(prefix))
        return [] if given is None else given[0].tolist()


@dataclass
class Stored:
    """Rows of all documents by site; document, position and mark of each by stack."""

    rows: dict = field(default_factory=lambda: defaultdict(list))
    ids: dict = field(default_factory=lambda: defaultdict(list))
    place: dict = field(default_factory=lambda: defaultdict(list))
    special: dict = field(default_factory=lambda: defaultdict(list))
    tokens: dict = field(default_factory=lambda: defaultdict(list))  # none of sound

    def blocks(self, site):
        """Return a function that makes a block of those rows of a site that a mask keeps."""
        rows, prefix = torch.cat(self.rows[site]).double().numpy(), side_of(site)
        ids, place = np.array(self.ids[prefix]), np.array(self.place[prefix], dtype=np.uint64)
        tokens = np.array(self.tokens[prefix]) if self.tokens[prefix] else None
        bands = None if tokens is None else frequency_bands(np.bincount(tokens))[tokens]

        def block(kept, moved=None):
            noise = 0.0
            if moved is not None:  # as another batch would round them
                noise = np.random.default_rng(moved).normal(size=rows[kept].shape)
                noise *= ROUNDING * np.linalg.norm(rows[kept], axis=1, keepdims=True)
                noise /= np.sqrt(rows.shape[1])
            return ArrayBlock(
                rows[kept] + noise,
                named_documents(ids[kept]),
                place[kept],
                tokens=None if tokens is None else tokens[kept],
                frequency=None if bands is None else bands[kept],
            )

        return block


def known_by_id(where):
    """Open a corpus whose documents are known by their ids, as stored ones are."""
    corpus = open_corpus(where)
    corpus.__class__ = type("KnownById", (type(corpus),), {"has_ids": True})
    return corpus


def tensor_of(values):
    """Return the hidden states among what a module is given or gives."""
    return next(each for each in values if torch.is_tensor(each) and each.is_floating_point())


def stored(body, documents, hooks):
    """Run the documents one at a time and keep what the modules hear and say.

    Nothing of the package takes part: a model of transformers and hooks are all there is.
    """
    heard = defaultdict(list)
    handles = []
    for module in {hook.module for hook in hooks.values()}:

        def listen(_module, inputs, keywords, output, module=module):
            given = (*inputs, *keywords.values())
            said = (output,) if torch.is_tensor(output) else tuple(output)
            heard[module, "input"].append(tensor_of(given)[0].clone())
            heard[module, "output"].append(tensor_of(said)[0].clone())

        handle = body.get_submodule(module).register_forward_hook(listen, with_kwargs=True)
        handles.append(handle)
    kept = Stored()
    for document in documents:
        heard.clear()
        with torch.inference_mode():
            body(**document.inputs)
        for prefix, special in document.special.items():
            kept.ids[prefix] += [document.id] * len(special)
            kept.place[prefix] += range(len(special))
            kept.special[prefix] += list(special)
            kept.tokens[prefix] += document.tokens(prefix)
        for site, hook in hooks.items():
            rows = hook.through(heard[hook.module, hook.side][hook.call])
            kept.rows[site].append(rows[: len(document.special[side_of(site)])])
    for handle in handles:
        handle.remove()
    return kept


def side_of(site):
    return site[:4] if site.startswith(("enc.", "dec.")) else ""


def sinks(rows, ids):
    norms = np.linalg.norm(rows, axis=1)
    median = {n: np.median(norms[ids == n]) for n in set(ids)}
    return norms > 10 * np.array([median[n] for n in ids])


def block_readings(block, names):
    """Return what `measure` would say of a block: it has no argument for tokens."""
    first = [kind for kind in kinds_for(names, causes=True) if kind not in SECOND_PASS]
    whole = Survey()
    whole.update(("x", "all"), first, block)
    second = [kind for kind in kinds_for(names) if kind in SECOND_PASS]
    start = second_passes(whole.held[("x", "all")], second) if second else {}
    for part in start.values():
        part.update(block)
    whole.held["x", "all"].update(start)
    return {(r.measure, r.group): r for r in read_survey(whole, names, documents=True)[0]}


def pooled(rows, ids, names):
    """Return what the mean of each document reads, a unit vector that is its own document."""
    names_of = np.array(list(dict.fromkeys(ids)))
    means = np.stack([rows[ids == each].mean(axis=0, dtype=np.float64) for each in names_of])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    block = ArrayBlock(means, named_documents(names_of), independent=True)
    return block_readings(block, names)


def differences(found, wanted):
    """Yield where two readings differ by more than 1e-5 of the value, and by 1e-6.

    Ends of RankMe's interval by 5e-5, as surveys in other batches differ (`NOISY`): of `mlp.11`
    of SmolLM2 it is 1.7e-5, a ten-thousandth of the interval's width.
    """
    here = (found.site, found.variant, found.measure, found.group)
    if (found.n, found.d) != (wanted.n, wanted.d):
        yield *here, "n, d", (found.n, found.d), (wanted.n, wanted.d)
    for name in ("value", "low", "high"):
        ours, theirs = getattr(found, name), getattr(wanted, name)
        # an end near zero is the difference of a value and a reach that have as many digits
        exact = 1e-6 if name == "value" else max(1e-6, 1e-5 * abs(wanted.value))
        near = 5e-5 if found.measure == "rankme" and name != "value" else 1e-5
        if (ours is None) != (theirs is None) or (
            ours is not None and ours != pytest.approx(theirs, rel=near, abs=exact)
        ):
            yield *here, name, ours, theirs


def within_rounding(wrong, wanted, block):
    """Whether a reading of distances is as near as rounding of the rows leaves it.

    A distance to a near copy has fewer digits than the rows: at a thousandth of their norm
    three less than float32 has. So the reading of rows that are rounded otherwise decides.
    """
    *_, measure, group, end, ours, theirs = wrong
    record = MEASURES.get(measure)
    if record is None or not issubclass(record.reads, Neighbours):
        return False
    if end not in ("value", "low", "high") or ours is None or theirs is None:
        return False
    moved = [block_readings(block(seed), [measure])[measure, group] for seed in range(4)]
    reach = max(abs(getattr(each, end) - getattr(wanted, end)) for each in moved)
    return abs(ours - theirs) <= 2 * reach


def of_tokens(measure, group):
    """Whether a reading is of bands, or of a measure that needs tokens and texts."""
    text = [name for name, each in zip(MEASURES, MEASURES.values(), strict=True)
            if each.offered == "text"]  # fmt: skip
    return bool(group) or any(
        measure == name or measure.startswith(f"{name}-") for name in text
    )


def compared(found, kept, names, matrices=None, pool=None):
    """Compare every reading of a survey; return how many there were.

    What was stored is measured in float64: in float32 a document of thirty tokens, of which
    one is a sink, leaves only four digits of the others, and fewer of variances near zero.
    """
    for_place = defaultdict(dict)
    for reading in found:
        for_place[reading.site, reading.variant][reading.measure, reading.group] = reading
    wanted, again = {}, {}
    for site, parts in kept.rows.items():
        rows, prefix = torch.cat(parts).double().numpy(), side_of(site)
        ids, special = np.array(kept.ids[prefix]), np.array(kept.special[prefix])
        sink, block = sinks(rows, ids), kept.blocks(site)
        known = {}
        for variant, mask in zip(VARIANTS, (sink | True, ~special, ~sink), strict=True):
            key = mask.tobytes()
            if key not in known:
                known[key] = block_readings(block(mask), names)
            wanted[site, variant] = known[key]
            again[site, variant] = partial(block, mask)
    if pool is not None:
        rows = torch.cat(kept.rows[pool]).double().numpy()
        wanted["pooled", "all"] = pooled(rows, np.array(kept.ids[""]), names)
    first = {}  # a tied matrix is sampled once, under the name of the first site that has it
    for site, matrix in (matrices or {}).items():
        name = first.setdefault(matrix.data_ptr(), site)
        rows = matrix.detach().double().numpy()
        keys = ordinal_documents(name, np.arange(len(rows), dtype=np.uint64))
        wanted[site, "all"] = block_readings(ArrayBlock(rows, keys, independent=True), names)
    assert for_place.keys() == wanted.keys()
    wrong = []
    for place, here in for_place.items():
        theirs = wanted[place]
        apart = here.keys() ^ theirs.keys()
        if Site.parse(place[0]).family in HEADS:  # collects nothing that only tokens need
            apart = {name for name in apart if name in here or not of_tokens(*name)}
        wrong += [(*place, *name, "only in one") for name in apart]
        for name in here.keys() & theirs.keys():
            wrong += [
                each
                for each in differences(here[name], theirs[name])
                if place not in again or not within_rounding(each, theirs[name], again[place])
            ]
    assert not wrong, "\n".join(map(str, wrong))
    return len(found)
