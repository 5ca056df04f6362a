"""A whole run of the command equals one that stores every activation and every gradient.

Activations, gradients and weight gradients are those of plain torch, proxies those of an SVD,
and every reading is computed from the stored rows by its definition.
"""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

import isoscope as iso
from isoscope.capture.gradient_sums import site_seed
from isoscope.capture.objective import shuffle
from isoscope.engine import Notify
from isoscope.lab.tangent.spec import TangentSpec
from isoscope.lab.tangent.worker import TangentWorker
from isoscope.measures.subspaces import gaussian
from isoscope.study.model import load_model

RANK, CONTROLS, ZETA, EVERY = 3, 12, 0.2, 8
OPTIONS = {"rank": RANK, "controls": CONTROLS, "threads": 1, "batch": 3}
PRECISION = {torch.float64: 1e-8, torch.float32: 1e-5}
# Models, their blocks, and a linear map: GPT-2 keeps its weight the other way round.
MODELS = {
    "speaker": ("h", "h.1.mlp.c_fc"),
    "filler": ("encoder.layer", "encoder.layer.1.attention.self.query"),
}


class Stored:
    """All rows of a run: activations, gradients, and those of the shuffled control."""

    def __init__(self, folder, subject, corpus, blocks, module):
        loaded = subject.loaded
        spec = TangentSpec.of(model=str(folder), corpus=str(corpus), **OPTIONS)
        worker = TangentWorker(spec, Notify(), {"model": subject})
        plan = worker.plan()
        self.layers = {"grad.1": loaded.body.get_submodule(f"{blocks}.1")}
        self.map = loaded.body.get_submodule(module)
        self.sites = ("grad.1", f"gradw.{module}")
        self.activations = {site: [] for site in self.sites}
        self.rows = {site: [] for site in self.sites}  # of gradients, by micro-batch
        self.halves, self.bands = [], []
        self.control = []  # rows of grad.1 under permuted targets
        self.expected = 0.0  # products of the weight gradient over all permutations
        self.means = []  # of its rows, in expectation
        counts = plan.counts.array / plan.counts.array.sum()
        number = 0
        for stage, units in enumerate(plan.stages):
            for unit in units:
                for batch in plan.batches(unit):
                    prepared = [worker._open(each) for each in batch]
                    if stage == 0:
                        self.keep_activations(loaded, worker.feed.batch(prepared))
                        continue
                    keys = worker._keys(prepared)
                    targets = worker.objective.targets(prepared, keys)
                    self.keep_gradients(loaded, targets, number)
                    self.halves.append(number + plan.first >= plan.late)
                    tokens = targets.tokens[targets.rows].numpy()
                    limits = (1e-5, 1e-4, 1e-3, 1e-2)
                    self.bands.append(np.searchsorted(limits, counts[tokens], side="right"))
                    number += 1

    def keep_activations(self, loaded, batch):
        outputs, inputs = self.listen(loaded, batch.inputs)
        real = batch.marks("", outputs.shape[1]).real
        for site, tensor in zip(self.sites, (outputs, inputs), strict=True):
            self.activations[site].append(tensor[real].double().detach().numpy())

    def listen(self, loaded, inputs):
        kept = {}
        hooks = [
            self.layers["grad.1"].register_forward_hook(
                lambda _m, _i, out: kept.update(out=out if torch.is_tensor(out) else out[0])
            ),
            self.map.register_forward_pre_hook(lambda _m, given: kept.update(given=given[0])),
        ]
        with torch.no_grad():
            loaded.model(**inputs)
        for hook in hooks:
            hook.remove()
        return kept["out"], kept["given"]

    def keep_gradients(self, loaded, targets, number):
        stream, weight, inputs, deltas = self.differentiate(loaded, targets, targets.labels)
        self.rows["grad.1"].append(stream[targets.rows].double().numpy())
        self.rows[self.sites[1]].append(weight.double().numpy())
        if number % EVERY == 0:
            labels = shuffle(targets.labels, 0, number)
            other = self.differentiate(loaded, targets, labels)[0]
            self.control.append(other[targets.rows].double().numpy())
        # The mean over permutations, pair by pair of positions: x_i x_j' E[d_p(i) . d_p(j)].
        x, d = (each[targets.real].double().numpy() for each in (inputs, deltas))
        m, own = len(x), np.square(d).sum()
        pairs = np.full((m, m), (np.square(d.sum(axis=0)).sum() - own) / (m * (m - 1)))
        np.fill_diagonal(pairs, own / m)
        self.expected = self.expected + x.T @ pairs @ x
        self.means.append((d.shape[1], d.mean(axis=0).sum() * x.sum(axis=0)))

    def differentiate(self, loaded, targets, labels):
        """Return gradients of the stream and of the weight, (out, d), by plain torch."""
        kept = {}
        hooks = [
            self.layers["grad.1"].register_forward_hook(
                lambda _m, _i, out: kept.update(out=out if torch.is_tensor(out) else out[0])
            ),
            self.map.register_forward_hook(lambda _m, i, out: kept.update(x=i[0], y=out)),
        ]
        parameters = list(loaded.model.parameters())
        for each in parameters:
            each.requires_grad_(True)
        logits = loaded.model(**targets.batch.inputs).logits[targets.rows]
        loss = cross_entropy(logits, labels, reduction="sum")
        wanted = [kept["out"], self.map.weight, kept["y"]]
        stream, weight, deltas = torch.autograd.grad(loss, wanted)
        for each in parameters:
            each.requires_grad_(False)
        for hook in hooks:
            hook.remove()
        turned = weight if isinstance(self.map, torch.nn.Linear) else weight.T
        return stream, turned, kept["x"].detach(), deltas

    def proxy(self, site):
        rows = np.concatenate(self.activations[site])
        return np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)[2][:RANK].T


def isoscore_star(values, dimensions):
    """The definition, from the eigenvalues of a covariance in so many dimensions."""
    values = np.sort(values)[-dimensions:]
    values = (1 - ZETA) * values + ZETA * values.mean()
    return (values.sum() ** 2 / np.square(values).sum() - 1) / (dimensions - 1)


def rise(scatter, basis):
    """By how much IsoScore* rises without a subspace, from the scatter of rows."""
    width = len(scatter)
    left = np.eye(width) - basis @ basis.T
    after = isoscore_star(np.linalg.eigvalsh(left @ scatter @ left), width - basis.shape[1])
    return after - isoscore_star(np.linalg.eigvalsh(scatter), width)


def scatter_of(rows):
    off = rows - rows.mean(axis=0)
    return off.T @ off


def readings_of(stored, site):
    """Return every reading of a site by its definition."""
    basis, rows = stored.proxy(site), np.concatenate(stored.rows[site])
    width = len(basis)
    energy = np.square(rows @ basis).sum() / np.square(rows).sum()
    found = {("tangent-energy", ""): energy}
    for n in range(RANK):
        own = np.square(rows @ basis[:, n]).sum() / np.square(rows).sum()
        found["tangent-energy", f"direction {n + 1}"] = own
    found["tangent-energy-ratio", "random"] = energy / (RANK / width)
    beside = (1 - energy) * RANK / (width - RANK)
    found["tangent-energy-ratio", "complement"] = energy / beside
    if site == "grad.1":
        control = np.concatenate(stored.control)
        products, scatter = control.T @ control, scatter_of(control)
    else:
        products = stored.expected
        count = sum(n for n, _ in stored.means)
        mean = sum(total for _, total in stored.means) / count
        scatter = products - count * np.outer(mean, mean)
    shuffled = np.trace(basis.T @ products @ basis) / np.trace(products)
    found["tangent-energy", "shuffled"] = shuffled
    found["tangent-energy-ratio", "shuffled"] = energy / shuffled
    cloud = scatter_of(rows)
    found["tangent-anisotropy", ""] = whole = rise(cloud, basis)
    found["tangent-anisotropy", "shuffled"] = whole - rise(scatter, basis)
    rest = np.linalg.qr(basis, mode="complete")[0][:, RANK:]
    frames = {
        "random": np.linalg.eigh(cloud)[1],
        "complement": rest @ np.linalg.eigh(rest.T @ cloud @ rest)[1],
    }
    for group, frame in frames.items():
        (drawn,) = gaussian(frame.shape[1], RANK, CONTROLS, site_seed(0, site))
        own = [np.linalg.qr(frame @ each)[0] for each in drawn]
        rises = np.array([rise(cloud, each) for each in own])
        found["tangent-anisotropy", group] = whole - rises.mean()
        if group == "random":
            shares = [np.square(rows @ each).sum() / np.square(rows).sum() for each in own]
            found["tangent-energy-p", group] = np.mean([*(np.array(shares) >= energy), True])
            found["tangent-anisotropy-p", group] = np.mean([*(rises >= whole), True])
    return found | pieces_of(stored, site, basis)


def pieces_of(stored, site, basis):
    """Return the readings of halves, and of a stream those of frequency bands."""
    found = {}
    sizes = [len(each) for each in stored.rows[site]]
    rows = np.concatenate(stored.rows[site])
    late = np.repeat(stored.halves, sizes)
    chosen = {"early": ~late, "late": late}
    if site == "grad.1":
        bands, names = np.concatenate(stored.bands), iso_bands()
        chosen |= {names[band]: bands == band for band in np.unique(bands)}
    for group, here in chosen.items():
        part = rows[here]
        found["tangent-energy", group] = np.square(part @ basis).sum() / np.square(part).sum()
        if site == "grad.1":
            found["tangent-anisotropy", group] = rise(scatter_of(part), basis)
    return found


def iso_bands():
    from isoscope.accumulate import FREQUENCIES

    return FREQUENCIES


@pytest.mark.parametrize("dtype", PRECISION, ids=str)
@pytest.mark.parametrize("model", MODELS)
def test_every_reading_of_a_run_is_that_of_stored_gradients(model, dtype, corpus, request):
    folder = request.getfixturevalue(model)
    subject = load_model(folder)
    subject.loaded.model.to(dtype)
    blocks, module = MODELS[model]
    stored = Stored(folder, subject, corpus, blocks, module)
    found = iso.tangent(subject, corpus, sites=stored.sites, **OPTIONS)
    for site in stored.sites:
        expected = readings_of(stored, site)
        read = {(r.measure, r.group): r.value for r in found if r.site == site}
        read.pop(("frequency-distance", ""), None)
        assert read.keys() == expected.keys()
        wrong = {
            key: (value, expected[key])
            for key, value in read.items()
            if value != pytest.approx(expected[key], rel=PRECISION[dtype], abs=PRECISION[dtype])
        }
        assert not wrong
