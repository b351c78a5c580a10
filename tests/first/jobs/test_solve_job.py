"""Solve: a scenario whose answer is known gets it back; what cannot be reached is said with its
reason."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.domain import UNKNOWN, Scenario
from ckptcost.first.core.measures import MEASURES, saves_per_day
from ckptcost.first.core.outcome import best_interval_s, evaluate, outcome_at, plan_of
from ckptcost.first.core.timing import read_rate_bytes_per_s, write_rate_bytes_per_s
from ckptcost.first.errors import InputError, UnknownName
from ckptcost.first.jobs.gates import Gate, gate_of
from ckptcost.first.jobs.model import one_of
from ckptcost.first.jobs.price import breakeven, side_of
from ckptcost.first.jobs.solve import (
    KNOBS,
    NOTHING_ELSE,
    OBJECTIVES,
    RANGES,
    SearchResult,
    Trials,
    parts_of,
    shares_of,
    solve,
)
from ckptcost.first.layers import layers_for
from ckptcost.first.scenario import Resolved

sys.path.append(str(Path(__file__).parents[1] / "core"))

from sample_scenarios import ASYNC, BASE, DAY, SHAPES, TWO_TIERS, changed

few = settings(max_examples=60, deadline=None)


def resolved(s: Scenario) -> Resolved:
    return Resolved(s, (), {}, {}, "", (), {})


def preset(name: str, *settings_: str, tier: str | None = None) -> Resolved:
    catalog = Catalog()
    return one_of(catalog, layers_for(catalog, name, None, settings_), tier)


def gate(text: str) -> Gate:
    return gate_of(text, "--for")


def gate_at(measure: str, value: float) -> Gate:
    return Gate(
        "known", MEASURES[measure], "", ">=" if MEASURES[measure].better == "high" else "<=", value
    )


def searched(s: Scenario, what: str, asked: Gate) -> SearchResult:
    return Trials(resolved(s), asked).turned(KNOBS[what])


def best_for(s: Scenario, measure: str) -> Scenario:
    """The scenario at the interval that solve says it chooses, by the model's own objective."""
    objective: Any = {"time": "time", "energy": "energy", "usd": "usd", "carbon": "energy"}[
        OBJECTIVES[measure]
    ]
    return changed(s, policy__cadence="optimal", policy__objective=objective)


def turned(s: Scenario, what: str, factor: float) -> tuple[Scenario, float]:
    """The scenario with an input changed in the domain itself, and the amount of it then: not by
    way of the job's knobs."""
    write, read = (
        float(write_rate_bytes_per_s(s.tier, s.cluster)),
        float(read_rate_bytes_per_s(s.tier, s.cluster)),
    )
    rates = {
        "write": (write * factor, read),
        "read": (write, read * factor),
        "bandwidth": (write * factor, read * factor),
    }
    if what in rates:
        tier = replace(
            s.tier,
            write_bytes_per_s=rates[what][0],
            read_bytes_per_s=rates[what][1],
            node_write_bytes_per_s=math.inf,
            node_read_bytes_per_s=math.inf,
        )
        return replace(s, tier=tier), rates[what][1 if what == "read" else 0]
    f = s.failures
    if what == "mtbf":
        s = replace(
            s,
            failures=replace(
                f,
                failures_per_node_s=f.failures_per_node_s / factor,
                failures_per_s=f.failures_per_s / factor,
            ),
        )
        return s, 1.0 / float(plan_of(s).failures_per_s)
    if what == "stall":
        stall_s = float(plan_of(s).saved.stall_s) * factor
        return changed(s, policy__snapshot_s=stall_s), stall_s
    pieces = {
        name: getattr(f, name) * factor
        for name in ("detect_s", "reschedule_s", "init_s", "warmup_s")
    }
    s = replace(s, failures=replace(f, **pieces))
    recovery = plan_of(s).recovery
    return s, float(recovery.down_s + recovery.exposed_s)


@few
@given(
    shape=st.sampled_from(sorted(SHAPES)),
    what=st.sampled_from(sorted(KNOBS)),
    measure=st.sampled_from(sorted(OBJECTIVES)),
    factor=st.floats(0.1, 10.0),
    often=st.floats(0.2, 5.0),
)
def test_a_known_answer_comes_back(shape, what, measure, factor, often):
    """Build the scenario with the answer in it, evaluate it forwards, and ask the unchanged one for
    what that needs."""
    assume(
        what != "stall" or "async" in shape
    )  # a synchronous stall is a result of many inputs: it has a test of its own
    base = changed(SHAPES[shape], failures__failures_per_s=often / DAY)
    if what == "recovery":  # loading is part of getting back, and no input by itself
        base = replace(
            base,
            tier=replace(
                base.tier, read_bytes_per_s=math.inf, node_read_bytes_per_s=math.inf, setup_s=0.0
            ),
        )
        base = replace(
            base,
            cluster=replace(
                base.cluster, gpu_d2h_bytes_per_s=math.inf, node_nic_bytes_per_s=math.inf
            ),
        )
        base = base if base.second_tier is None else replace(base, second_tier=base.tier)
    known, value = turned(base, what, factor)
    forwards = evaluate(best_for(known, measure))
    assume(float(forwards.goodput) > 0.02 and float(forwards.interval_s) < base.work_s)
    asked = gate_at(measure, float(MEASURES[measure].of(forwards)))
    found = searched(base, what, asked)
    # the last digit of the known value may be a hair above what can be had
    assume(found.needed is not None or abs(found.at_best.measured / asked.limit - 1) > 1e-6)
    needed = found.needed
    assert needed is not None
    assert asked.holds(needed.measured)
    assert needed.measured == pytest.approx(asked.limit, rel=1e-7)
    # where the result hardly depends on the input, many values give it: then the results must
    # agree, and do above
    nearby = evaluate(best_for(turned(base, what, factor * 1.01)[0], measure))
    felt = abs(float(MEASURES[measure].of(nearby)) / asked.limit - 1)
    assert needed.value == pytest.approx(value, rel=max(1e-6, 1e-10 / max(felt, 1e-12)))


@few
@given(
    factor=st.floats(0.05, 20.0),
    shape=st.sampled_from(["sync", "two tiers"]),
    measure=st.sampled_from(["goodput", "wall", "gpu_hours"]),
)
def test_a_known_synchronous_stall_comes_back(factor, shape, measure):
    """A save of so many seconds is a tier with that set-up time and nothing else to wait for."""
    base = SHAPES[shape]
    stall_s = float(plan_of(base).saved.stall_s) * factor
    quick = replace(
        base.tier,
        write_bytes_per_s=1e30,
        node_write_bytes_per_s=math.inf,
        files_per_s=math.inf,
        setup_s=stall_s,
    )
    known = replace(
        base,
        tier=quick,
        cluster=replace(base.cluster, node_nic_bytes_per_s=math.inf, gpu_d2h_bytes_per_s=math.inf),
    )
    plan = plan_of(known)
    assert float(plan.saved.stall_s) == pytest.approx(stall_s)
    # loading keeps today's time
    plan = plan._replace(recovery=plan_of(base).recovery)
    if plan.second is not None:
        plan = plan._replace(
            second=plan_of(base).second, second_recovery=plan_of(base).second_recovery
        )
    tau = float(best_interval_s(known, plan, "time"))
    forwards = outcome_at(known, plan, tau)
    hair = 1 - 1e-12 if measure == "goodput" else 1 + 1e-12
    needed = searched(
        base, "stall", gate_at(measure, float(MEASURES[measure].of(forwards)) * hair)
    ).needed
    assert needed is not None
    assert needed.value == pytest.approx(stall_s, rel=1e-5)
    assert needed.interval_s == pytest.approx(tau, rel=1e-4)


@pytest.mark.parametrize("shape", sorted(SHAPES))
@pytest.mark.parametrize("measure", ["goodput", "usd", "kwh", "kgco2e"])
def test_the_range_of_intervals_is_what_a_scan_finds(shape, measure):
    s = SHAPES[shape]
    best = float(MEASURES[measure].of(evaluate(best_for(s, measure))))
    asked = gate_at(measure, best * (0.97 if measure == "goodput" else 1.2))
    found = solve(resolved(s), "interval", asked)
    assert found.found.needed is not None
    assert found.found.longest is not None
    taus = np.geomspace(found.found.needed.value / 5.0, s.work_s * 0.99, 4001)
    with np.errstate(all="ignore"):  # the scan reaches intervals at which the run never ends
        scanned = np.asarray(MEASURES[measure].of(outcome_at(s, plan_of(s), taus)))
    inside = taus[[asked.holds(float(value)) for value in scanned]]
    step = taus[1] / taus[0]
    assert found.found.needed.value <= inside[0] <= found.found.needed.value * step
    assert found.found.longest.value >= inside[-1] >= found.found.longest.value / step
    assert found.found.at_best.measured == pytest.approx(best, rel=1e-9)
    per_day = solve(resolved(s), "saves-per-day", asked)
    assert per_day.found.needed is not None
    assert saves_per_day(per_day.found.needed.outcome) == pytest.approx(
        86_400 / (inside[0] + per_day.found.needed.outcome.mean_stall_s), rel=0.01
    )


def test_a_skipping_drain_makes_no_interval_shorter_than_it():
    s = changed(ASYNC, policy__when_busy="skip", policy__in_flight=1.0)
    found = solve(resolved(s), "interval", gate("goodput>=0.5"))
    saved = plan_of(s).saved
    assert found.found.needed is not None
    assert found.found.needed.interval_s + 0.03 * saved.lag_s == pytest.approx(saved.lag_s)


@few
@given(
    what=st.sampled_from(sorted(KNOBS)),
    easy=st.floats(0.3, 0.8),
    harder=st.floats(0.001, 0.1),
    shape=st.sampled_from(sorted(SHAPES)),
)
def test_more_is_needed_for_more(what, easy, harder, shape):
    less = searched(SHAPES[shape], what, gate(f"goodput>={easy}"))
    more = searched(SHAPES[shape], what, gate(f"goodput>={easy + harder}"))
    if less.needed is None or more.needed is None:
        assert more.needed is None
        return
    if KNOBS[what].more_is_better:
        assert more.needed.value >= less.needed.value
    else:
        assert more.needed.value <= less.needed.value


@few
@given(
    down=st.floats(10.0, 5000.0), mtbf=st.floats(2000.0, 1e6), side=st.sampled_from([-1e-4, 1e-4])
)
def test_infeasible_exactly_when_recovery_alone_eats_the_room(down, mtbf, side):
    """With saves of no time and a fixed down time, goodput is 1/(1 + D/M) and not more."""
    s = replace(
        BASE,
        tier=replace(
            BASE.tier,
            setup_s=0.0,
            files_per_s=math.inf,
            read_bytes_per_s=math.inf,
            node_read_bytes_per_s=math.inf,
        ),
        cluster=replace(BASE.cluster, gpu_d2h_bytes_per_s=math.inf, node_nic_bytes_per_s=math.inf),
        failures=replace(
            BASE.failures,
            failures_per_node_s=0.0,
            failures_per_s=1 / mtbf,
            detect_s=down,
            reschedule_s=0.0,
            init_s=0.0,
            warmup_s=0.0,
        ),
    )
    reach = 1.0 / (1.0 + down / mtbf)
    asked = gate_at("goodput", reach * (1.0 + side))
    for what in ("write", "bandwidth", "stall"):
        found = solve(resolved(s), what, asked)
        assert (found.status == "infeasible") == (found.found.needed is None) == (side > 0)
        if what != "stall":
            assert found.found.at_best.measured == pytest.approx(reach, rel=1e-5)
        shares = shares_of(found.found.at_best.outcome)
        assert shares.restart == pytest.approx(1.0 - reach, rel=1e-3)


@pytest.mark.parametrize(
    ("wanted", "back_s", "stall_s", "rate"),
    [(0.90, 600.0, 14.50, 392e9), (0.95, 300.0, 3.27, 1735e9), (0.975, 120.0, 1.17, 4850e9)],
)
def test_the_published_requirements(wanted, back_s, stall_s, rate):
    s = replace(
        BASE,
        checkpoint=replace(BASE.checkpoint, params=UNKNOWN, size_bytes=5.68e12, extra_bytes=0.0),
        tier=replace(
            BASE.tier,
            setup_s=0.0,
            files_per_s=math.inf,
            read_bytes_per_s=math.inf,
            node_read_bytes_per_s=math.inf,
        ),
        cluster=replace(BASE.cluster, gpu_d2h_bytes_per_s=math.inf, node_nic_bytes_per_s=math.inf),
        failures=replace(
            BASE.failures,
            failures_per_node_s=0.0,
            failures_per_s=1 / 11_135,
            detect_s=0.0,
            reschedule_s=0.0,
            init_s=back_s,
            warmup_s=0.0,
        ),
    )
    asked = gate_at("goodput", wanted)
    stall, write = solve(resolved(s), "stall", asked), solve(resolved(s), "write", asked)
    assert stall.found.needed is not None
    assert write.found.needed is not None
    assert stall.found.needed.value == pytest.approx(stall_s, abs=0.005)
    assert write.found.needed.value == pytest.approx(rate, rel=1e-3)
    room = 1 - wanted - back_s / 11_135
    assert stall.first_order == pytest.approx((room**2 * 11_135 / 2,))
    assert write.first_order == pytest.approx((5.68e12 / (room**2 * 11_135 / 2),))


def test_what_is_enough_already_says_how_much_less_would_do():
    found = solve(resolved(BASE), "write", gate("goodput>=0.5"))
    assert found.status == "already"
    assert found.found.needed is not None
    assert found.found.needed.value < found.today.value
    assert found.today_at_best.measured >= found.today.measured


def test_a_better_interval_may_be_all_that_is_needed():
    s = changed(BASE, policy__every=100.0)
    best = solve(resolved(s), "write", gate("goodput>=0.5")).today_at_best.measured
    asked = gate_at("goodput", (best + float(evaluate(s).goodput)) / 2)
    assert solve(resolved(s), "write", asked).status == "already"
    kept = solve(resolved(s), "write", asked, keep_interval=True)
    assert kept.status == "reached"
    assert kept.found.needed is not None
    assert kept.found.needed.interval_s == 100.0
    assert kept.first_order == ()


@pytest.mark.parametrize(
    "cadence",
    [
        ("steps", 100.0, 900.0),
        ("per_day", 96.0, 900.0),
        ("saves", 2880.0, 900.0),
        ("optimal", 0.0, None),
    ],
)
@pytest.mark.parametrize("what", sorted(KNOBS))
def test_a_kept_interval_stays_whatever_it_is_said_in(cadence, what):
    s = changed(BASE, policy__cadence=cadence[0], policy__every=cadence[1], policy__step_s=9.0)
    found = solve(resolved(s), what, gate("goodput>=0.85"), keep_interval=True)
    at = found.found.needed or found.found.at_best
    assert at.interval_s == pytest.approx(cadence[2] or float(evaluate(s).interval_s))


@pytest.mark.parametrize("what", [*KNOBS, *RANGES])
@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_without_failures_nothing_is_lost_but_one_save(what, shape):
    s = changed(SHAPES[shape], failures__failures_per_node_s=0.0, failures__failures_per_s=0.0)
    found = solve(resolved(s), what, gate("goodput>=0.9"))
    assert found.status == ("any" if what in ("recovery", "read") else "already")
    assert found.today_at_best.measured == pytest.approx(1.0, abs=1e-3)
    assert found.circumstances == ()


def test_the_keep_of_an_optimal_interval_is_todays():
    s = changed(BASE, policy__cadence="optimal")
    found = solve(resolved(s), "mtbf", gate("goodput>=0.99"), keep_interval=True)
    assert found.found.needed is None or found.found.needed.interval_s == pytest.approx(
        float(evaluate(s).interval_s)
    )


def test_a_recovery_of_nothing_is_a_fixed_time():
    none = replace(BASE.failures, detect_s=0.0, reschedule_s=0.0, init_s=0.0, warmup_s=0.0)
    tier = replace(
        BASE.tier, setup_s=0.0, read_bytes_per_s=math.inf, node_read_bytes_per_s=math.inf
    )
    cluster = replace(BASE.cluster, gpu_d2h_bytes_per_s=math.inf, node_nic_bytes_per_s=math.inf)
    s = replace(BASE, failures=none, tier=tier, cluster=cluster)
    found = solve(resolved(s), "recovery", gate("goodput>=0.9"))
    assert found.found.needed is not None
    forwards = evaluate(
        best_for(replace(s, failures=replace(none, detect_s=found.found.needed.value)), "goodput")
    )
    assert float(forwards.goodput) == pytest.approx(0.9, rel=1e-9)


@pytest.mark.parametrize(
    ("field", "target", "key"),
    [
        ("cluster__usd_per_gpu_s", "usd<=1000", "cluster.gpu_price"),
        ("cluster__gpu_stall_w", "kwh<=1000", "cluster.gpu_stall"),
        ("site__kgco2e_per_j", "kgco2e<=1000", "site.grid_location"),
    ],
)
@pytest.mark.parametrize("what", ["write", "mtbf", "interval"])
def test_an_unknown_figure_is_named(field, target, key, what):
    s = changed(BASE, **{field: UNKNOWN})
    with pytest.raises(InputError, match=key):
        solve(resolved(s), what, gate(target))
    assert solve(resolved(s), what, gate("goodput>=0.5")).found.needed is not None


def test_an_unknown_read_rate_stays_where_the_write_rate_was():
    tier = replace(BASE.tier, read_bytes_per_s=UNKNOWN, node_read_bytes_per_s=UNKNOWN)
    s = replace(BASE, tier=tier)
    found = solve(resolved(s), "write", gate("goodput>=0.8"))
    assert found.found.needed is not None
    assert found.found.needed.outcome.plan.recovery.load_s == pytest.approx(
        float(plan_of(s).recovery.load_s)
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("goodput<=0.9", "worse run"),
        ("usd>=10", "worse run"),
        ("goodput.p5>=0.9", "percentile"),
        ("saves<=10", "no target to solve for"),
    ],
)
def test_questions_without_an_answer(text, words):
    with pytest.raises(InputError, match=words):
        solve(resolved(BASE), "write", gate(text))


def test_more_questions_without_an_answer():
    with pytest.raises(UnknownName, match="write"):
        solve(resolved(BASE), "wrte", gate("goodput>=0.9"))
    with pytest.raises(InputError, match="asked for"):
        solve(resolved(BASE), "interval", gate("goodput>=0.9"), keep_interval=True)
    with pytest.raises(InputError, match="three tiers"):
        solve(resolved(replace(TWO_TIERS, third_tier=BASE.tier)), "write", gate("goodput>=0.9"))


@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_the_reasons_add_up(shape):
    outcome = evaluate(SHAPES[shape])
    assert sum(shares_of(outcome)) == pytest.approx(1.0, rel=1e-12)
    for measure in ("kwh", "usd", "kgco2e"):
        assert sum(parts_of(outcome, measure).values()) == pytest.approx(
            float(MEASURES[measure].of(outcome)), rel=1e-12
        )


# ---- the projection to 100,000 GPUs
# --------------------------------------------------------------------------------------------------


def test_what_the_projection_to_100k_rests_on():
    found = solve(preset("micron-100k"), "stall", gate("goodput>=0.975"))
    assert found.plan.failures_per_s * DAY == pytest.approx(50.0)
    assert found.status == "infeasible"
    shares = shares_of(found.found.at_best.outcome)
    assert shares.restart > 0.025  # detection and restart alone eat more than there is
    hidden = found.circumstances[0]
    assert hidden.recovery_s == NOTHING_ELSE
    assert hidden.found.needed is not None
    assert hidden.found.needed.value == pytest.approx(0.549, abs=0.001)  # 0.54 to first order
    assert hidden.found.needed.interval_s == pytest.approx(43.2, abs=0.05)
    assert 1900 < saves_per_day(hidden.found.needed.outcome) < 2100  # failures / (1-G) = 2,000
    # a minute to get back is already too long
    minute = next(
        each for each in found.circumstances if each.recovery_s == pytest.approx(57.0, abs=1)
    )
    assert minute.found.needed is None


@pytest.mark.parametrize(("back", "reach"), [("60 s", 0.938), ("300 s", 0.806)])
def test_the_projection_with_a_way_back(back, reach):
    """0.5 s of stall, saves safe at once, and a recovery: what the talk's arithmetic leaves out."""
    settings_ = [
        "failures.detect=0 s",
        "failures.reschedule=0 s",
        f"failures.init={back}",
        "failures.warmup=0 s",
        "failures.rate=4.4 /1000 node-days",
    ]
    s = preset("micron-100k", *settings_).scenario
    plan = plan_of(s)
    plan = plan._replace(
        saved=plan.saved._replace(lag_s=0.0), recovery=plan.recovery._replace(load_s=0.0)
    )
    assert float(outcome_at(s, plan, best_interval_s(s, plan, "time")).goodput) == pytest.approx(
        reach, abs=0.01
    )


def test_saves_a_day_of_the_projection():
    found = solve(preset("micron-100k"), "saves-per-day", gate("goodput>=0.975"))
    assert found.status == "infeasible"
    hidden = found.circumstances[0].found
    assert hidden.needed is not None
    assert hidden.longest is not None
    assert saves_per_day(hidden.longest.outcome) < 2000
    assert saves_per_day(hidden.needed.outcome) > 2400


def test_a_job_that_says_it_has_no_recovery_is_asked_about_one():
    none = replace(BASE.failures, detect_s=0.0, reschedule_s=0.0, init_s=0.0, warmup_s=0.0)
    tier = replace(
        BASE.tier, setup_s=0.0, read_bytes_per_s=math.inf, node_read_bytes_per_s=math.inf
    )
    cluster = replace(BASE.cluster, gpu_d2h_bytes_per_s=math.inf, node_nic_bytes_per_s=math.inf)
    found = solve(
        resolved(replace(BASE, failures=none, tier=tier, cluster=cluster)),
        "stall",
        gate("goodput>=0.97"),
    )
    assert [each.recovery_s for each in found.circumstances] == [0.0, 60.0, 300.0]
    values = [each.found.needed.value for each in found.circumstances if each.found.needed]
    assert values == sorted(values, reverse=True)
    assert len(set(values)) == 3


@pytest.mark.parametrize("rate", [1.0, 1e2, 1e4, 1e5, 1e6])
def test_an_endless_first_recovery_leaves_the_second_tier(rate):
    """Reading ever slower from the first tier ends at what the second still gives, and not in an
    overflow."""
    at = Trials(resolved(TWO_TIERS), gate("goodput>=0.5")).at(KNOBS["read"], rate)
    assert 0.74 < at.measured < 0.76


# ---- break-even
# --------------------------------------------------------------------------------------------------


def published(rate: int, *more: str) -> Resolved:
    return preset(
        "llama31-405b-16k",
        "checkpoint.size=5.68 TB",
        "cluster.gpu_price=2 USD/GPU-h",
        "failures.rate=0 /1000 node-days",
        f"failures.shared_rate={86_400 / 11_135} /day",
        "failures.detect=540 s",
        "failures.reschedule=0 s",
        "failures.init=0 s",
        "failures.warmup=0 s",
        "tier.setup=0 s",
        f"tier.write={rate} GB/s",
        f"tier.read={rate} GB/s",
        "cluster.node_nic=100 TB/s",
        *more,
    )


UNPRICED = "tier.billed_on=provisioned"
"""without a capacity nobody knows what such a tier costs"""


@pytest.mark.parametrize(("slow", "fast", "usd_per_h"), [(100, 400, 1875), (400, 2000, 974)])
def test_break_even_as_published(slow, fast, usd_per_h):
    found = breakeven(*(side_of(published(rate, UNPRICED)) for rate in (slow, fast)))
    assert found.premium_usd_per_s * 3600 == pytest.approx(usd_per_h, abs=0.6)
    assert found.formula_usd_per_s == pytest.approx(found.premium_usd_per_s, rel=1e-9)
    assert found.worth_usd_per_s != found.worth_usd_per_s  # the slow tier's price is not known
    assert found.below is None


def test_an_assumed_price_is_no_price_to_be_below_of():
    """What a tier without a price is given for a ranking spans a factor of thirty: no verdict rests
    on it."""
    slow, fast = (side_of(published(rate)) for rate in (100, 400))
    found = breakeven(slow, fast)
    assert math.isnan(slow.price_usd_per_s)
    assert found.below is None
    assert found.premium_usd_per_s * 3600 == pytest.approx(1875, abs=0.6)
    given = side_of(published(100, "tier.storage_price=0.1 USD/GB-month"))
    assert given.price_usd_per_s > 0


def test_break_even_over_a_known_price():
    price = ("tier.standing_price=100 USD/h", "tier.capacity=100 TB")
    slow, fast = side_of(published(100, *price)), side_of(published(400, *price))
    found = breakeven(slow, fast)
    ratio = fast.goodput / slow.goodput
    rent = 16_384 * 2.0
    assert found.worth_usd_per_s * 3600 == pytest.approx((rent + 100) * ratio - rent, rel=1e-9)
    assert found.worth_usd_per_s == pytest.approx(found.formula_usd_per_s, rel=1e-9)
    assert found.below is True
    dear = breakeven(
        slow, side_of(published(400, "tier.standing_price=1e4 USD/h", "tier.capacity=100 TB"))
    )
    assert dear.below is False


def test_equal_tiers_break_even_at_the_same_price():
    price = ("tier.standing_price=100 USD/h", "tier.capacity=100 TB")
    found = breakeven(side_of(published(100, *price)), side_of(published(100, *price)), 1000.0)
    assert found.worth_usd_per_s * 3600 == pytest.approx(100.0)
    assert found.premium_usd_per_s == pytest.approx(0.0, abs=1e-12)
    assert found.payback is not None
    assert found.payback.time_s > 1e12


def test_at_break_even_both_jobs_cost_the_same():
    """The dollars of the two whole runs, each with its tier's price over its own wall time."""
    slow = side_of(published(100, "tier.standing_price=100 USD/h", "tier.capacity=100 TB"))
    fast = side_of(published(400))
    found = breakeven(slow, fast)
    totals = [
        16_384 * 2.0 / 3600 * float(side.outcome.wall_s) + price * float(side.outcome.wall_s)
        for side, price in ((slow, slow.price_usd_per_s), (fast, found.worth_usd_per_s))
    ]
    assert totals[0] == pytest.approx(totals[1], rel=1e-12)


def test_a_purchase_pays_after_what_it_saves():
    found = breakeven(side_of(published(100)), side_of(published(400)), 500_000.0)
    assert found.payback is not None
    assert found.payback.time_s * found.premium_usd_per_s == pytest.approx(500_000.0)
    assert found.payback.gpu_s == pytest.approx(found.payback.time_s * 16_384)
    worse = breakeven(side_of(published(400)), side_of(published(100)), 500_000.0)
    assert worse.payback is not None
    assert worse.payback.time_s == math.inf


def test_each_side_is_at_its_own_best_interval():
    slow, fast = side_of(published(100)), side_of(published(400))
    assert slow.outcome.interval_s > fast.outcome.interval_s
    assert (
        side_of(published(100, "policy.interval=600 s"), keep_interval=True).outcome.interval_s
        == 600.0
    )


def test_no_price_without_the_price_of_a_gpu():
    s = resolved(changed(BASE, cluster__usd_per_gpu_s=UNKNOWN))
    with pytest.raises(InputError, match=r"cluster\.gpu_price"):
        side_of(s)


def test_what_the_tier_itself_costs_is_in_its_price_alone():
    """Electricity of storage and network, and the bytes held: none is in what saves and failures
    cost; all of the rest is."""
    free = side_of(
        preset("llama31-405b-16k", "site.tariff=0.1 USD/kWh", "tier.network_energy=0 J/GB")
    )
    dear = side_of(
        preset("llama31-405b-16k", "site.tariff=0.1 USD/kWh", "tier.network_energy=800 J/GB")
    )
    for side in (
        free,
        dear,
    ):  # a price of keeping bytes, assumed or given, contains what the tier draws
        assert float(side.outcome.run.line("network").cost_usd) == 0.0
    assert float(dear.outcome.run.line("network").energy_j) > 0.0
    rented = [
        side_of(preset("llama31-405b-16k", f"tier.storage_price={price} USD/GB-month"))
        for price in (0, 1)
    ]
    assert [float(side.outcome.run.line("retention").cost_usd) > 0 for side in rented] == [
        False,
        True,
    ]
    for one, other in ((free, dear), rented):
        assert one.lost_usd == pytest.approx(other.lost_usd, rel=1e-12)


def test_a_purchase_is_net_of_the_prices_that_are_known():
    def side(rate, usd_per_h=None):
        price = (
            (UNPRICED,)
            if usd_per_h is None
            else (f"tier.standing_price={usd_per_h} USD/h", "tier.capacity=100 TB")
        )
        return side_of(published(rate, *price))

    for slow, fast, prices in ((100.0, 300.0, "both"), (100.0, None, "slow"), (None, None, "none")):
        found = breakeven(side(100, slow), side(400, fast), 1e6)
        even, premium = found.worth_usd_per_s, found.premium_usd_per_s
        assert found.payback.prices == prices
        assert found.payback.saved_usd_per_s == (
            even - fast / 3600 if prices == "both" else premium
        )
        if slow is not None:
            assert premium == pytest.approx(even - slow / 3600)


def test_keeping_is_a_part_of_its_own():
    found = evaluate(preset("llama31-405b-16k", "tier.storage_price=0.02 USD/GB-month").scenario)
    parts = parts_of(found, "usd")
    assert parts["keeping"] > 0
    assert parts["keeping"] == pytest.approx(float(found.run.line("retention").cost_usd))
    assert sum(parts.values()) == pytest.approx(float(found.run.total("cost_usd")))


@pytest.mark.parametrize("what", ["write", "bandwidth", "stall", "interval", "read"])
def test_saves_that_are_safe_at_once_are_asked_about_where_that_is_another_question(what):
    """With a drain, for a stall and for intervals; a faster write acts through the lag, so it is no
    circumstance there."""
    for shape, lagging in ((BASE, False), (ASYNC, True)):
        times = [
            each.recovery_s
            for each in solve(resolved(shape), what, gate("goodput>=0.5")).circumstances
        ]
        assert (NOTHING_ELSE in times) == (lagging and what in ("stall", "interval"))
        assert bool(times) == (what != "read")


def test_without_failures_the_scenario_as_it_stands_saves_once():
    s = changed(
        BASE,
        failures__failures_per_node_s=0.0,
        failures__failures_per_s=0.0,
        policy__cadence="optimal",
    )
    trials = Trials(resolved(s), gate("goodput>=0.9"))
    assert trials.asked_s == float(s.work_s)
    assert trials.as_it_stands(None).outcome.saves == pytest.approx(1.0)


def test_several_drains_at_once_let_intervals_be_shorter():
    """Skipping: an interval of one m-th of a drain, less stall and drag, is the shortest that is
    really made with m in flight."""
    for m in (1.0, 4.0):
        s = changed(
            ASYNC,
            policy__when_busy="skip",
            policy__in_flight=m,
            policy__slowdown_fraction=0.01,
            tier__write_bytes_per_s=2e9,
        )
        plan = plan_of(s)
        found = Trials(resolved(s), gate("goodput>=0.3")).window()
        taken_s = plan.saved.lag_s + plan.saved.stall_s
        least_s = float(taken_s / m - plan.saved.stall_s - 0.01 * plan.saved.lag_s)
        assert found.needed.value == pytest.approx(least_s, rel=1e-9)
        assert found.at_best.value >= least_s * (1 - 1e-9)


def test_a_strict_target_is_missed_at_its_edge():
    for text, met in (
        ("goodput>=0.5", True),
        ("goodput>0.5", False),
        ("wall<=2 h", True),
        ("wall<2 h", False),
    ):
        trials = Trials(resolved(BASE), gate(text))
        edge = trials.as_it_stands(None)._replace(measured=trials.gate.limit)
        assert trials.met(edge) is met, text
