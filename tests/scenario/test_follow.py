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
    assert FLASH.followers(path) == taken


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
    assert own.followers("cluster.gpu_train") == ["cluster.gpu_stall"]


def test_a_process_has_a_rate_of_its_own_unless_its_tier_says_one() -> None:
    assumed = sc.default_figure("tier", "gpu_write")
    found = scenario("small-8b", tier="local-nvme-8xgen5").figures()
    assert found["tier.gpu_write"] == assumed
    assert "tier.gpu_write" not in scenario("bloom-176b").figures()  # a save was timed
    assert value(scenario("small-8b", tier="node-ram"), "tier.gpu_write") == 55.06e9
    own = scenario("small-8b", "tier.gpu_write=2 GB/s", tier="local-nvme-8xgen5").figures()
    assert own["tier.gpu_read"].value == 2e9
    assert own["tier.gpu_read"].follows == ("tier.gpu_write",)


def test_a_read_rate_of_one_process_says_nothing_of_the_system() -> None:
    found = scenario("llama31-405b-16k", "tier.gpu_read=2 GB/s").figures()
    assert (found["tier.gpu_read"].value, found["tier.read"].value) == (2e9, 167.5e9)


def test_a_write_rate_that_is_tried_ends_a_measured_time() -> None:
    bloom = scenario("bloom-176b")
    tried = bloom.with_figure("tier.write", bloom.figures()["tier.write"].at(1e9))
    assert "save_time" not in tried.said["tier"]
    assert value(tried, "tier.read") == 1e9
    assert (tried.claims, tried.names["tier"]) == ((), f"{bloom.names['tier']}, rate as given")


def test_draws_move_together() -> None:
    w = draws.worlds([FLASH], 512)
    ratio = w.tier.read / w.tier.write  # assumed equal, with a range of its own
    assert ratio[0, 0] == 1.0
    assert np.all((sc.READ_OVER_WRITE[0] < ratio) & (ratio < sc.READ_OVER_WRITE[1]))
    assert np.corrcoef(np.log(w.tier.read[0, 1:]), np.log(w.tier.write[0, 1:]))[0, 1] > 0.5
    np.testing.assert_allclose(w.cluster.gpu_train, w.cluster.gpu_tdp * w.cluster.train_fraction)
    np.testing.assert_allclose(w.cluster.gpu_stall, w.cluster.gpu_train * w.cluster.stall_fraction)
    assert np.ptp(w.cluster.gpu_stall) > 0


def test_cases_share_their_draws() -> None:
    """Each follows its own write rate, in the same worlds."""
    other = scenario("llama31-405b-16k", tier="vast")
    w = draws.worlds([FLASH, other, FLASH], 64)
    assert w.tier.write[:, 0].tolist() == [167.5e9, 80e9, 167.5e9]
    np.testing.assert_array_equal(w.tier.write[0], w.tier.write[2])
    np.testing.assert_array_equal(w.tier.read[0], w.tier.read[2])
    assert np.all(w.failures.rate_factor[0] == w.failures.rate_factor[1:])


def test_stated_values_come_first_and_stay_inside() -> None:
    w = draws.worlds([FLASH], 256)
    for path, figure in FLASH.figures().items():
        section, key = path.split(".")
        row = getattr(getattr(w, section), key)[0]
        assert row[0] == figure.value
        if figure.ranged and not figure.follows:
            assert figure.low <= row.min() <= row.max() <= figure.high
            assert len(np.unique(row[1:])) == 256
