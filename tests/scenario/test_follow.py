"""A figure that was taken from another moves with it: in what-if changes, grids and draws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptcost.plan import draws
from ckptcost.scenario import resolve as sc

from .jobs import scenario, value

FLASH = scenario("llama31-405b-16k")


@pytest.mark.parametrize(
    ("path", "taken"),
    [
        ("tier.write", ["tier.read"]),
        ("cluster.gpu_tdp", ["cluster.gpu_train", "cluster.gpu_stall"]),
        ("cluster.train_fraction", ["cluster.gpu_train", "cluster.gpu_stall"]),
        ("cluster.stall_fraction", ["cluster.gpu_stall"]),
        ("cluster.gpus", []),
    ],
)
def test_followers(path: str, taken: list[str]) -> None:
    assert sc.followers(FLASH, path) == taken


def test_a_load_follows_a_save_time() -> None:
    found = scenario(
        "small-8b", "tier.save_time=20 s", "tier.timed_size=112 GB", tier="node-ram"
    ).figures()
    assert "tier.load_time" not in found  # it has a read rate
    timed = scenario("llama31-405b-16k", "tier.save_time=20 s", "tier.timed_size=5 TB")
    assert value(
        timed.with_figure("tier.save_time", timed.figures()["tier.save_time"].at(40)), "tier.read"
    )


@given(st.floats(0.01, 100.0))
def test_what_if_moves_followers_in_the_same_ratio(factor: float) -> None:
    changed = FLASH
    for path in ("tier.write", "cluster.gpu_tdp"):
        figure = FLASH.figures()[path]
        changed = changed.with_figure(path, figure.at(figure.value * factor))
    for path in ("tier.read", "cluster.gpu_train", "cluster.gpu_stall"):
        assert value(changed, path) == pytest.approx(factor * value(FLASH, path))
    assert value(changed, "cluster.gpu_idle") == value(FLASH, "cluster.gpu_idle")  # measured


def test_a_figure_of_ones_own_follows_nothing() -> None:
    own = scenario("llama31-405b-16k", "tier.read=50 GB/s", "cluster.gpu_train=500 W")
    figure = own.figures()["tier.write"]
    assert value(own.with_figure("tier.write", figure.at(1e9)), "tier.read") == 50e9
    assert not {"gpu_tdp", "train_fraction"} & own.said["cluster"].keys()
    assert sc.followers(own, "cluster.gpu_train") == ["cluster.gpu_stall"]


def test_a_write_rate_that_is_tried_ends_a_measured_time() -> None:
    bloom = scenario("bloom-176b")
    tried = bloom.with_figure("tier.write", bloom.figures()["tier.write"].at(1e9))
    assert "save_time" not in tried.said["tier"]
    assert value(tried, "tier.read") == 1e9
    assert (tried.claims, tried.names["tier"]) == ((), f"{bloom.names['tier']}, rate as given")


def test_draws_move_together() -> None:
    w = draws.worlds([FLASH], 512)
    np.testing.assert_allclose(w.tier.read, w.tier.write)
    np.testing.assert_allclose(w.cluster.gpu_train, w.cluster.gpu_tdp * w.cluster.train_fraction)
    np.testing.assert_allclose(w.cluster.gpu_stall, w.cluster.gpu_train * w.cluster.stall_fraction)
    assert np.ptp(w.cluster.gpu_stall) > 0


def test_cases_share_their_draws() -> None:
    """Each follows its own write rate, in the same worlds."""
    other = scenario("llama31-405b-16k", tier="vast")
    w = draws.worlds([FLASH, other, FLASH], 64)
    assert w.tier.write[:, 0].tolist() == [167.5e9, 80e9, 167.5e9]
    np.testing.assert_array_equal(w.tier.write[0], w.tier.write[2])
    np.testing.assert_allclose(w.tier.read[0], w.tier.write[0], rtol=1e-15)
    assert np.all(w.failures.rate_factor[0] == w.failures.rate_factor[1:])


def test_stated_values_come_first_and_stay_inside() -> None:
    w = draws.worlds([FLASH], 256)
    for path, figure in FLASH.figures().items():
        section, key = path.split(".")
        row = getattr(getattr(w, section), key)[0]
        assert row[0] == figure.value
        if figure.ranged:
            assert figure.low <= row.min() <= row.max() <= figure.high
            assert len(np.unique(row[1:])) == 256
