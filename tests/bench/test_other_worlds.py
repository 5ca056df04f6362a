"""The population values of the planted worlds are what a slow count of pairs finds."""

import numpy as np
import pytest

WIDTH = 16
ROWS = 16_000
BATCHES = 12
NAMES = [
    "outside-cone-0.049",
    "outside-cone-0.052",
    "outside-cone-0.3",
    "confounded-frequency",
    "confounded-position",
    "sign-change-256",
    "sign-change-8",
    "sign-change-256-crossed",
    "eight-dimensions",
    "three-dimensions",
    "topics",
    "topics-sinks",
]


@pytest.fixture
def module(script):
    return script("other_worlds")


def unit(rows):
    return rows / np.linalg.norm(rows.astype(float), axis=1, keepdims=True)


def sinks(drawn):
    norms = np.linalg.norm(drawn.rows, axis=1)
    starts = np.flatnonzero(np.diff(drawn.document, prepend=-1))
    medians = np.array([np.median(each) for each in np.split(norms, starts[1:])])
    return norms > 10 * medians[drawn.document]


def row_pairs(u, document, left, right):
    """Mean cosine of all pairs of a row in `left` and one in `right` of another document."""
    apart = document[left][:, None] != document[right]
    return (u[left] @ u[right].T)[apart].mean()


def document_pairs(u, document, left, right):
    """The same from sums over documents: all pairs less those within a document."""
    starts = np.flatnonzero(np.diff(document, prepend=-1))
    a, b = (np.add.reduceat(u * side[:, None], starts) for side in (left, right))
    n, k = (np.add.reduceat(side.astype(int), starts) for side in (left, right))
    pairs = n.sum() * k.sum() - n @ k
    return (a.sum(0) @ b.sum(0) - (a * b).sum()) / pairs if pairs else np.nan


def own_cell(u, document, cells):
    """T: the partner is drawn from the row's own cell; cells of one document have no pairs."""
    inside = [cells == cell for cell in np.unique(cells)]
    w = np.array([each.mean() for each in inside])
    found = np.array([document_pairs(u[i], document[i], i[i], i[i]) for i in inside])
    paired = np.isfinite(found)
    return w[paired] @ found[paired] / w[paired].sum()


def bands(drawn, world):
    """Both bands from the words of the definition."""
    share = world.token_shares()
    of_token = np.array([sum(s > edge for edge in (1e-5, 1e-4, 1e-3, 1e-2)) for s in share])
    of_position = np.array([min(int(p).bit_length(), 15) for p in range(len(world.lengths))])
    return of_token[drawn.token], of_position[drawn.position]


def values(u, document, f, p, sink, zeroed):
    """What the definition asks for, from pairs of different documents."""
    found = {"all": own_cell(u, document, np.zeros(len(u)))}
    u, document, f, p, zeroed = (x[~sink] for x in (u, document, f, p, zeroed))
    one = np.ones(len(u), bool)
    cells = {"C": one, "T_F": f, "T_P": p, "T_FP": f * 100 + p}
    found |= {key: own_cell(u, document, each) for key, each in cells.items()}
    found["falls_to"] = own_cell(zeroed, document, one)
    for cause, band in (("frequency", f), ("position", p)):
        for each in np.unique(band):
            inside = band == each
            product = document_pairs(u, document, inside, one)
            found[cause, int(each)] = inside.mean() * product
    return found


def expected(true):
    wanted = {key: getattr(true, key) for key in ("C", "T_F", "T_P", "T_FP", "falls_to")}
    wanted["all"] = true.C / (1 - true.sinks)
    for cause, shares in true.contributions.items():
        wanted |= {(cause, band): share * true.C for band, share in enumerate(shares)}
    return wanted


def test_every_world_is_tested(module):
    assert list(module.WORLDS) == NAMES


def test_sums_over_documents_are_all_pairs_of_rows(module):
    drawn = module.draw(module.WORLDS["topics-sinks"], 30, WIDTH, seed=1)
    u, band = unit(drawn.rows), drawn.token % 3
    for left, right in ((band == 0, band == 0), (band == 1, band >= 0)):
        slow = row_pairs(u, drawn.document, left, right)
        assert document_pairs(u, drawn.document, left, right) == pytest.approx(slow, abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_pairs_of_different_documents_find_the_population_values(module, name):
    world = module.WORLDS[name]
    documents = int(ROWS / (world.lengths @ np.arange(len(world.lengths))))
    drawn = module.draw(world, documents, WIDTH, seed=3)
    true = module.population(world, WIDTH)
    zeroed = drawn.rows.copy()
    zeroed[:, list(true.dimensions)] = 0
    f, p = bands(drawn, world)
    data = (unit(drawn.rows), drawn.document, f, p, sinks(drawn), unit(zeroed))
    found = values(*data)
    batch = drawn.document * BATCHES // documents
    batches = [values(*(x[batch == b] for x in data)) for b in range(BATCHES)]
    for key, wanted in expected(true).items():
        if wanted == 0 and key not in found:
            continue  # a band without rows
        error = np.std([each.get(key, 0.0) for each in batches], ddof=1) / np.sqrt(BATCHES)
        assert error < 0.02, key  # else the comparison would say nothing
        assert abs(found[key] - wanted) < 4 * error + 1e-9, (key, found[key], wanted, error)


@pytest.mark.parametrize("name", NAMES)
def test_the_parts_add_up(module, name):
    true = module.population(module.WORLDS[name], 64)
    both = (true.T_FP - true.C) / true.T_FP
    assert sum(part.shapley for part in true.parts.values()) == pytest.approx(both)
    assert true.alone["both"] == pytest.approx(both)
    for shares in true.contributions.values():
        assert shares.sum() == pytest.approx(1)
    if not true.dimensions:
        assert true.dimensions_share == 0 and true.falls_to == true.C


@pytest.mark.parametrize("share", [0.049, 0.052, 0.3])
def test_frequency_reads_the_share_outside_the_cone(module, share):
    true = module.population(module.outside_cone(share), 64)
    assert true.alone == pytest.approx({"frequency": share, "position": 0, "both": share})
    assert true.sinks == 0


@pytest.mark.parametrize("acting, idle", [("frequency", "position"), ("position", "frequency")])
def test_the_cause_that_does_not_act_is_nothing_as_the_last(module, acting, idle):
    true = module.population(module.confounded(acting), 64)
    assert true.parts[idle].last == pytest.approx(0, abs=1e-12)
    assert true.alone[idle] > 0.1 and true.parts[acting].last > 0.15


def test_a_crossed_effect_is_seen_only_by_both(module):
    true = module.population(module.sign_change(crossed=True), 64)
    assert true.alone["frequency"] == pytest.approx(0, abs=1e-12)
    assert true.alone["position"] == pytest.approx(0, abs=1e-12)
    assert true.alone["both"] > 0.9


@pytest.mark.parametrize("width", [16, 64, 768])
def test_the_planted_dimensions_carry_and_fall_as_planned(module, width):
    eight = module.population(module.eight_dimensions(), width)
    assert len(set(eight.dimensions)) == 8 and max(eight.dimensions) < width
    assert (eight.dimensions_share, eight.falls_to) == pytest.approx((1, 0))
    m = 0.6 * module.eight_dimensions().axes(width)[0]
    assert m[list(eight.dimensions)] ** 2 == pytest.approx(np.full(8, eight.C / 8))
    three = module.population(module.three_dimensions(), width)
    assert len(three.dimensions) == 3
    assert three.dimensions_share == pytest.approx(0.97)
    assert 1 - three.falls_to / three.C == pytest.approx(0.77)


def test_opposite_sinks_are_found_by_norm_and_thin_the_mean_out(module):
    world = module.WORLDS["topics-sinks"]
    drawn = module.draw(world, 50, WIDTH, seed=2)
    assert (sinks(drawn) == (drawn.position < 2)).all()
    share = 2 / (world.lengths @ np.arange(len(world.lengths)))
    assert module.population(world, WIDTH).sinks == pytest.approx(1 - (1 - share) ** -2)


@pytest.mark.parametrize("name", ["confounded-position", "outside-cone-0.052"])
def test_observed_counts_give_the_true_bands(module, name):
    world = module.WORLDS[name]
    documents = -(-module.fewest_rows(world) // 64)
    token = module.draw(world, documents, 4, seed=5).token
    share = world.token_shares()
    observed = np.bincount(token, minlength=len(share)) / len(token)
    assert share.sum() == pytest.approx(1)
    assert (module.frequency_band(observed) == module.frequency_band(share)).all()


def test_a_draw_is_reproducible(module):
    world = module.WORLDS["topics"]
    first, again, other = (module.draw(world, 9, WIDTH, seed) for seed in (4, 4, 5))
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    assert first.rows.dtype == np.float32 and first.rows.shape == (len(first.token), WIDTH)
    assert not np.array_equal(first.rows[:8], other.rows[:8])
