"""The bill by hand, its identities, and what a worse figure may never make better."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from plan_worlds import SECOND, at, one, outcome, world

from ckptcost.plan import bill as b
from ckptcost.plan import evaluate
from ckptcost.plan.draws import triangle
from ckptcost.scenario.resolve import default_figure

DATA = Path(__file__).parents[2] / "data"


def lines(w: Any, quantity: str) -> dict[str, float]:
    return {name: one(each[quantity]) for name, each in outcome(w).bill.lines.items()}


# --- by hand ------------------------------------------------------------------------------------


def test_energy_of_waiting_by_hand() -> None:
    """No failures: 200 saves of 60 s, 64 GPUs at 200 W, 8 hosts at 2.5 kW, PUE 1.2."""
    found = lines(world({"failures.mtbf": 1e14}), "energy")
    assert found["gpu_wait"] == pytest.approx(200 * 60 * 64 * 200 * 1.2)
    assert found["host_wait"] == pytest.approx(200 * 60 * 8 * 2500 * 1.2)


def test_wear_is_the_share_of_rated_writes_of_the_price() -> None:
    """120 TB written at 100 USD/TB, rated for one full write a day and 5 years: 6.57 USD."""
    drives = {"tier.drive_price": 1e-10, "tier.drive_writes": 1 / 86400.0, "tier.capacity": 1e14}
    w = world(drives | {"failures.mtbf": 1e14})
    assert lines(w, "cost")["wear"] == pytest.approx(120 * 100 / (365 * 5))
    o = outcome(w)
    a_day = 1.2e14 / one(o.wall) * 86400.0
    with np.errstate(all="ignore"):
        assert one(b.rated_share(w, o.plan, o.spent)) == pytest.approx(a_day / 1e14)
    assert "wear" not in outcome(world({})).bill.lines


@pytest.mark.parametrize(
    ("figures", "joules_a_byte"),
    [
        ({}, np.nan),
        ({"tier.usual_energy": 2e-7}, 2e-7),  # at 10 GB/s
        (
            {"tier.usual_energy": 2e-7, "tier.write": 1e9, "tier.usual_exponent": 0.5},
            2e-7 * 10**0.5,
        ),
        ({"tier.usual_energy": 2e-7, "tier.write": 2e10, "tier.share": 0.5}, 2e-7),
        ({"tier.usual_energy": 2e-7, "tier.write_energy": 1e-7}, 1e-7),
        ({"tier.usual_energy": 2e-7, "tier.active_power": 5e3, "tier.idle_power": 4e3}, 1e-7),
    ],
)
def test_energy_of_writing_a_byte(figures: dict[str, Any], joules_a_byte: float) -> None:
    w = world(figures | {"failures.mtbf": 1e14})
    saves = 200 * 6e11 * 1.2
    assert lines(w, "energy")["storage_write"] == pytest.approx(saves * joules_a_byte, nan_ok=True)


# --- identities ---------------------------------------------------------------------------------


figures = st.fixed_dictionaries(
    {
        "tier.write": st.floats(1e9, 1e12),
        "tier.write_energy": st.floats(0.0, 1e-6),
        "tier.storage_price": st.floats(1e-18, 1e-14),
        "policy.interval": st.floats(20.0, 20_000.0),
        "policy.mode": st.sampled_from(["sync", "async"]),
        "policy.slowdown": st.floats(0.0, 0.5),
        "policy.pinned": st.floats(0.0, 0.1),
        "policy.in_flight": st.integers(1, 3),
        "failures.mtbf": st.floats(2_000.0, 1e7),
        "failures.unusable": st.floats(0.0, 0.1),
        "policy.keep_last": st.sampled_from([1.0, 3.0, np.inf]),
    }
)
tiers = st.sampled_from([{}, SECOND])


@settings(max_examples=120, deadline=None)
@given(figures, tiers)
def test_lines_sum_to_totals_and_states_to_the_wall(
    said: dict[str, Any], more: dict[str, Any]
) -> None:
    o = outcome(world(more, said))
    if not one(o.goodput):
        return
    s = o.spent
    useful = s.stall + s.slowed + s.redone + s.detect + s.reschedule + s.init + s.load + s.warmup
    assert one(o.wall) == pytest.approx(120_000.0 + one(useful), rel=1e-9)
    for quantity in ("energy", "gpu_time", "cost", "carbon"):
        amounts = [one(line[quantity]) for line in o.bill.lines.values()]
        known = [x for x in amounts if x == x]
        assert one(o.bill.total(quantity)) == pytest.approx(sum(known), rel=1e-9)
        assert min(known) >= 0


def test_rounding_leaves_no_negative_work() -> None:
    """Without failures nothing is redone: not -1.6e-14 GPU-h either."""
    w = world({"failures.mtbf": np.nan, "policy.mode": "async", "policy.slowdown": 0.24})
    redone = at(w, np.linspace(100.0, 4000.0, 500)).spent.redone
    assert redone.min() >= 0
    assert redone.max() < 1e-6


WORSE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "slower tier": ({}, {"tier.write": 4e9}),
    "smaller share": ({}, {"tier.share": 0.4}),
    "starved data": ({}, {"tier.starves": 0.3}),
    "more failures": ({}, {"failures.mtbf": 3000.0}),
    "slower detection": ({}, {"failures.detect": 400.0}),
    "unusable checkpoints": ({}, {"failures.unusable": 0.1}),
    "late corruption": ({"failures.silent_back": 5}, {"failures.silent": 0.05}),
    "slowdown": ({}, {"policy.slowdown": 0.3}),
    "pinned memory": ({}, {"policy.pinned": 0.05}),
    "serial deletes": ({"policy.deleting": "serial"}, {"policy.delete_time": 30.0}),
    "less room to stage": ({}, {"cluster.staging_budget": 2e10}),
    "unknown scaling": (
        {"tier.write": np.inf, "tier.node_write": 2e9, "tier.clients": 2},
        {"tier.scaling": 0.3},
    ),
}


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("case", WORSE)
@settings(max_examples=25, deadline=None)
@given(st.floats(60.0, 5000.0), tiers)
def test_worse_figures_never_save_time(
    case: str, mode: str, interval: float, more: dict[str, Any]
) -> None:
    base, worse = WORSE[case]
    said = base | {"policy.mode": mode, "policy.interval": interval, "policy.keep_last": 3.0}
    before, after = (one(outcome(world(more, said, each)).wall) for each in ({}, worse))
    assert after >= before * (1 - 1e-12)


SAME: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "clients that scale": (
        {"tier.node_write": 1e9},
        {"tier.clients": 2, "tier.known_capacity": 1.0},
    ),
    "a burst of nothing": ({}, {"tier.burst_write": 1e12}),
    "a burst of the same rate": ({}, {"tier.burst_write": 1e10, "tier.burst_size": 1e11}),
    "share inside the node": ({"tier.boundary": "node"}, {"tier.share": 0.1}),
    "deletes of none": ({"policy.deleting": "serial"}, {"policy.delete_time": 50.0}),
    "quick deletes beside": ({"policy.keep_last": 2.0}, {"policy.delete_time": 50.0}),
    "no step back": ({}, {"failures.silent": 0.5}),
    "sync": ({}, {"policy.pinned": 0.3, "policy.slowdown": 0.5, "tier.starves": 0.5}),
    "copies with room": ({"policy.mode": "async"}, {"policy.copies": 4.0}),
    "a third tier for none": (
        {},
        {"policy.third_every": 3.0, "failures.second_loss_fraction": 0.5},
    ),
    "drives without a price": ({}, {"tier.drive_writes": 1e-5, "tier.drive_life": 1.0}),
    "usual energy not needed": ({"tier.write_energy": 1e-7}, {"tier.usual_energy": 1.0}),
}


@pytest.mark.parametrize("case", SAME)
def test_new_figures_are_neutral_where_they_do_not_apply(case: str) -> None:
    base, more = SAME[case]
    before, after = outcome(world(base)), outcome(world(base, more))
    for quantity in ("energy", "cost", "gpu_time"):
        totals = (one(each.bill.total(quantity)) for each in (before, after))
        assert next(totals) == pytest.approx(next(totals), rel=1e-13, nan_ok=True)
    assert one(after.wall) == pytest.approx(one(before.wall), rel=1e-13)
    saves = [one(evaluate.one_save(world(base), o).total("gpu_time")) for o in (before, after)]
    assert saves[0] == pytest.approx(saves[1], rel=1e-13)


# --- asynchronous saving as it was reported -----------------------------------------------------


def reports(key: str) -> np.ndarray:
    with (DATA / "async_measured.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["key"] == f"policy.{key}"]
    half = {"at most": 0.5} if key == "pinned" else {}
    kept = [row for row in rows if "mended" not in row["system"]]
    return np.array([float(r["value"].split()[0]) * half.get(r["bound"], 1.0) for r in kept])


def test_defaults_of_asynchronous_saving_are_those_of_the_reports() -> None:
    """The middle and the ends where many are reported, the mean of what is mostly "at most"."""
    rate, slowdown, pinned, copies = (
        default_figure("policy", key) for key in ("snapshot_rate", "slowdown", "pinned", "copies")
    )
    shares = (np.arange(4096) + 0.5) / 4096
    drawn = [triangle(f.low, f.value, f.high, shares) for f in (rate, slowdown, pinned)]
    found = reports("snapshot_rate") * 1e9
    assert rate.value == pytest.approx(np.median(found))
    assert np.quantile(drawn[0], (0.1, 0.9)) == pytest.approx(
        np.quantile(found, (0.1, 0.9)), rel=0.05
    )
    found = reports("slowdown")
    assert slowdown.value == pytest.approx(np.median(found))
    assert np.quantile(drawn[1], 0.1) == pytest.approx(np.quantile(found, 0.1), rel=0.2)
    assert slowdown.high == found.max() == 1.0
    assert drawn[2].mean() == pytest.approx(reports("pinned").mean(), rel=0.05)
    assert (copies.low, copies.high) == (reports("copies").min(), reports("copies").max())
