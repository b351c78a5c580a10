"""Input ranges as draws, and grids in chunks."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_scenarios import BASE, SHAPES, changed
from scipy.stats import triang

from ckptcost.first.core.draws import SAMPLES, drawn, p5_p95, replace_at, strata, triangle
from ckptcost.first.core.outcome import evaluate
from ckptcost.first.core.quantities import FIELDS
from ckptcost.first.core.sweep import Axis, chunks, rows_in

quick = settings(max_examples=60, deadline=None, derandomize=True)
RANGES = {
    "tier.write_bytes_per_s": (20e9, 40e9, 60e9),
    "cluster.gpu_stall_w": (130.0, 320.0, 520.0),
    "site.pue": (1.1, 1.25, 1.5),
    "failures.failures_per_node_s": (2.3e-3 / 86400, 3.8e-3 / 86400, 6.5e-3 / 86400),
    "work_s": (20e5, 25e5, 26e5),
}


@quick
@given(
    low=st.floats(0.0, 1e6),
    to_mode=st.just(0.0) | st.floats(1e-3, 1e6),
    to_high=st.just(0.0) | st.floats(1e-3, 1e6),
)
def test_triangle_against_scipy(low, to_mode, to_high):
    mode, high = low + to_mode, low + to_mode + to_high
    share = (np.arange(101) + 0.5) / 101
    if high <= low:
        assert np.all(triangle(low, mode, high, share) == mode)
    else:
        expected = triang.ppf(share, (mode - low) / (high - low), loc=low, scale=high - low)
        np.testing.assert_allclose(
            triangle(low, mode, high, share), expected, rtol=1e-9, atol=1e-9 * high
        )


@pytest.mark.parametrize("figure", range(12))
@pytest.mark.parametrize("samples", [1, 2, 512, 1000])
def test_strata_are_permutations(figure, samples):
    found = strata(figure, samples)
    np.testing.assert_allclose(np.sort(found), (np.arange(samples) + 0.5) / samples, rtol=1e-15)


def test_strata_of_two_figures_are_unrelated():
    """The correlation of two honest shuffles of n is within 5/sqrt(n), and none repeats another."""
    table = np.array([strata(figure) for figure in range(24)])
    limit = 5 / np.sqrt(SAMPLES)
    apart = np.corrcoef(table) - np.eye(24)
    assert np.abs(apart).max() < limit
    assert not np.array_equal(table[0], np.sort(table[0]))
    assert abs(np.corrcoef(table[0][:-1], table[0][1:])[0, 1]) < limit


def test_another_seed_is_another_order():
    assert not np.array_equal(strata(0), strata(0, seed=2))
    assert np.array_equal(strata(3), strata(3))


def test_the_order_is_written_down():
    """The same on every machine and release: the first strata of the first figures."""
    assert [int(x * 512) for x in strata(0, 512)[:6]] == [280, 429, 346, 376, 377, 355]
    assert [int(x * 512) for x in strata(7, 512)[:6]] == [508, 220, 198, 6, 124, 378]


@pytest.mark.parametrize("shape", SHAPES)
def test_degenerate_ranges_are_the_point_estimate(shape):
    s = SHAPES[shape]
    point = evaluate(s)

    def at(path):
        head, _, tail = path.partition(".")
        return getattr(getattr(s, head), tail) if tail else s.work_s

    spread = evaluate(drawn(s, {path: (at(path),) * 3 for path in RANGES}, samples=16))
    for quantity in FIELDS:
        total = point.run.total(quantity)
        np.testing.assert_allclose(
            np.broadcast_to(spread.run.total(quantity), 16), total, rtol=1e-13
        )
        assert p5_p95(spread.run.total(quantity), total) == pytest.approx((total, total), rel=1e-13)
    assert np.all(np.asarray(spread.wall_s) == pytest.approx(point.wall_s, rel=1e-13))


def test_draws_are_inside_their_ranges_and_repeatable():
    one, two = drawn(BASE, RANGES), drawn(BASE, dict(reversed(RANGES.items())))
    for path, (low, _, high) in RANGES.items():
        head, _, tail = path.partition(".")
        a, b = (getattr(getattr(x, head), tail) if tail else x.work_s for x in (one, two))
        assert a.shape == (SAMPLES,)
        assert low <= a.min() < a.max() <= high
        assert np.array_equal(a, b)
    first, second = evaluate(one).run.total("energy_j"), evaluate(two).run.total("energy_j")
    assert np.array_equal(first, second)
    low, high = p5_p95(first, evaluate(BASE).run.total("energy_j"))
    assert low < evaluate(BASE).run.total("energy_j") < high


def test_draws_have_the_mean_of_the_triangle():
    """Latin hypercube: the mean of the strata is the mean of the distribution to a part in a
    thousand; the scale is logarithmic."""
    pue = drawn(BASE, RANGES).site.pue
    assert np.log(pue).mean() == pytest.approx(np.log([1.1, 1.25, 1.5]).mean(), rel=1e-3)
    ends = drawn(BASE, {"failures.warmup_s": (30.0, 120.0, 480.0)}).failures.warmup_s
    assert np.log(ends).mean() == pytest.approx(np.log(120.0), rel=1e-9)


def test_draws_from_zero_are_linear():
    warmup = drawn(BASE, {"failures.warmup_s": (0.0, 120.0, 480.0)}).failures.warmup_s
    assert warmup.mean() == pytest.approx(200.0, rel=1e-3)


def test_percentiles():
    values = np.arange(1.0, 101.0)
    assert p5_p95(values, 50.0) == pytest.approx((5.95, 95.05))
    assert p5_p95(values, 200.0) == pytest.approx((5.95, 200.0))
    assert p5_p95(values, 1.0) == pytest.approx((1.0, 95.05))
    assert p5_p95(np.full(5, np.nan), 3.0) == (3.0, 3.0)
    assert p5_p95(7.0, 7.0) == (7.0, 7.0)
    for count in (2, 7, 64, 257):
        uneven = np.sqrt(strata(1, count))
        assert p5_p95(uneven, float(np.median(uneven))) == pytest.approx(
            tuple(np.quantile(uneven, (0.05, 0.95))), rel=1e-14
        )


def test_draws_that_never_finish_count():
    """One draw in five costs infinitely much: the 95th percentile is not a number below that."""
    values = np.concatenate([np.linspace(1.0, 2.0, 80), np.full(20, np.inf)])
    assert p5_p95(values, 1.5)[1] == np.inf


def test_what_is_tied_moves_together():
    """A copy of a figure is as uncertain as the figure, not once more."""
    ranges = {
        "cluster.host_train_w": (1200.0, 2800.0, 4600.0),
        "cluster.host_stall_w": (1200.0, 2800.0, 4600.0),
    }
    tied = drawn(BASE, ranges, {"cluster.host_stall_w": "cluster.host_train_w"}).cluster
    assert np.array_equal(tied.host_stall_w, tied.host_train_w)
    free = drawn(BASE, ranges).cluster
    assert abs(np.corrcoef(free.host_stall_w, free.host_train_w)[0, 1]) < 0.2


def test_replace_at():
    assert replace_at(BASE, "tier.setup_s", 9.0).tier.setup_s == 9.0
    assert replace_at(BASE, "work_s", 9.0).work_s == 9.0
    assert BASE.tier.setup_s == 2.0


AXES = (
    Axis("tier.write_bytes_per_s", np.array([5e9, 40e9, 400e9])),
    Axis("policy.every", np.array([300.0, 900.0, 1800.0, 3600.0, 7200.0])),
    Axis("cluster.gpus", np.array([1000.0, 8192.0])),
)


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 29, 30, 31, 8192])
@pytest.mark.parametrize("shape", SHAPES)
def test_any_chunk_size_gives_the_same_rows(rows, shape):
    s = SHAPES[shape]
    pieces = list(chunks(s, AXES, rows))
    assert [piece.start for piece in pieces] == list(range(0, 30, rows))
    seen = np.concatenate(
        [np.stack([piece.axes[axis.path] for axis in AXES], axis=1) for piece in pieces]
    )
    assert seen.tolist() == [list(row) for row in product(*(axis.values.tolist() for axis in AXES))]
    wall = np.concatenate([np.atleast_1d(piece.outcome.wall_s) for piece in pieces])
    joules = np.concatenate(
        [np.atleast_1d(piece.outcome.run.total("energy_j")) for piece in pieces]
    )
    for i, (write, every, gpus) in enumerate(product(*(axis.values.tolist() for axis in AXES))):
        if i % 4 == 0:
            alone = evaluate(
                changed(s, tier__write_bytes_per_s=write, policy__every=every, cluster__gpus=gpus)
            )
            assert wall[i] == pytest.approx(alone.wall_s, rel=1e-12)
            assert joules[i] == pytest.approx(alone.run.total("energy_j"), rel=1e-12)


def test_rows_are_counted():
    assert rows_in(AXES) == 30
    assert rows_in(()) == 1
