"""Break-even as a study: what the faster tier may cost an hour, a month and a TB, and when a
purchase has paid."""

from __future__ import annotations

from typing import Any

from ckptcost.first.core.bill import is_local
from ckptcost.first.core.units import HOUR_S, MONTH_S, to_hours
from ckptcost.first.jobs.price import Breakeven
from ckptcost.first.present.amounts import count, duration, number, share, size
from ckptcost.first.report.study import ROW_UNIT, Column, Study, Table, hidden, plain, table_of

TB = 1e12


def study_of(found: Breakeven) -> Study:
    """The study of one break-even."""
    slow, fast = found.slow, found.fast
    name = slow.resolved.name or "Scenario"
    gpus, rent = fast.resolved.scenario.cluster.gpus, fast.resolved.scenario.cluster.usd_per_gpu_s
    about = [
        f"{name}; {count(float(gpus))} GPUs at {number(float(rent) * HOUR_S)} USD a GPU-hour.",
        (
            "Both do the same work, each at the interval that loses it least time. A tier's price"
            " contains its electricity."
        ),
    ]
    warnings = []
    for side, key in ((slow, "slower"), (fast, "faster")):
        if side.price_usd_per_s != side.price_usd_per_s:
            told = (
                f"The price of the {key} tier, {side.tier_id}, is not known: give"
                " tier.storage_price or tier.standing_price in a file. It is left out, not counted"
                " as zero."
            )
            warnings.append(("UNKNOWN_INPUT", told))
    return Study(
        kind="solution",
        title=f"What {fast.tier_id} may cost against {slow.tier_id}",
        about=about,
        question={
            "what": "price",
            "slow": slow.tier_id,
            "fast": fast.tier_id,
            "capital_usd": found.payback and found.payback.capital_usd,
        },
        tables=[
            _prices(found),
            table_of("sides", "The two runs", _SIDES, (slow, fast)),
            *_payback(found),
        ],
        findings=_findings(found),
        warnings=warnings,
        resolved=[slow.resolved, fast.resolved],
    )


def _dollars(usd_per_s: float) -> str:
    return f"{number(usd_per_s * HOUR_S)} USD an hour"


def _findings(found: Breakeven) -> list[str]:
    slow, fast, premium = found.slow, found.fast, found.premium_usd_per_s
    known = found.worth_usd_per_s == found.worth_usd_per_s
    least = "" if known else "at least "
    gained = f"{share(fast.goodput)} of the time is training kept instead of {share(slow.goodput)}"
    if premium > 0:
        lines = [
            f"{fast.tier_id} is worth {least}{_dollars(premium)} more than {slow.tier_id}:"
            f" {gained}."
        ]
    elif premium == 0:
        lines = [f"{fast.tier_id} is worth the same as {slow.tier_id}: {gained}."]
    else:
        lines = [
            f"{fast.tier_id} is worth {_dollars(-premium)} less than {slow.tier_id}: {gained}."
        ]
    if known:
        lines.append(
            f"With {slow.tier_id} at {_dollars(slow.price_usd_per_s)}, both cost the same at"
            f" {_dollars(found.worth_usd_per_s)}."
        )
    if is_local(fast.resolved.scenario.tier):
        lines.append(
            f"{fast.tier_id} is inside the nodes, with no price of its own: this is what its drives"
            " or memory may cost."
        )
    elif found.below is not None:
        place = "below break-even: it pays" if found.below else "above break-even: it does not pay"
        lines.append(
            f"By the catalogue {fast.tier_id} costs {_dollars(fast.price_usd_per_s)}, {place}."
        )
    if found.payback is not None:
        lines.append(_paid(found))
    return lines


def _paid(found: Breakeven) -> str:
    p = found.payback
    assert p is not None
    net = {
        "both": "net of both tiers' prices",
        "slow": "if it costs no more to run than the slower one",
        "none": "if it costs no more to run than the slower one",
    }[p.prices]
    if not p.time_s < float("inf"):
        return f"A purchase of {number(p.capital_usd)} USD never pays: nothing is saved, {net}."
    work = found.fast.outcome.wall_s
    over = (
        f", {share(float(work) / p.time_s)} of which fit into this run of {duration(float(work))}"
    )
    return (
        f"A purchase of {number(p.capital_usd)} USD has paid after {duration(p.time_s)} of this"
        f" job, {number(to_hours(p.gpu_s))} GPU-hours{over}: it saves"
        f" {_dollars(p.saved_usd_per_s)}, {net}."
    )


def _prices(found: Breakeven) -> Table:
    """Break-even, the premium and the catalogue's prices, an hour, a month and a TB."""
    held, capacity = found.fast.held_bytes, found.fast.capacity_bytes
    prices = {
        "breakeven": found.worth_usd_per_s,
        "premium": found.premium_usd_per_s,
        "slow": found.slow.price_usd_per_s,
        "fast": found.fast.price_usd_per_s,
    }
    per = [("an hour", "hour", "USD/h", HOUR_S), ("a month of 730 h", "month", "USD", MONTH_S)]
    if held > 0:
        per.append(
            (f"a TB-month, {size(held)} held", "tb_month_held", "USD", MONTH_S / (held / TB))
        )
    if capacity == capacity and capacity > 0:
        per.append(
            (
                f"a TB-month, {size(capacity)} provisioned",
                "tb_month_provisioned",
                "USD",
                MONTH_S / (capacity / TB),
            )
        )
    rows: list[dict[str, Any]] = [
        {
            "per": words,
            "id": name,
            "unit": unit,
            **{key: plain(price * factor) for key, price in prices.items()},
        }
        for words, name, unit, factor in per
    ]
    columns = (
        Column("per", "USD for"),
        Column(
            "breakeven",
            "break-even",
            ROW_UNIT,
            "price of the faster tier at which both cost the same",
        ),
        Column(
            "premium",
            "over slower",
            ROW_UNIT,
            "break-even less the price of the slower tier; a lower bound where that is not known",
        ),
        Column("slow", "slower costs", ROW_UNIT, "by the catalogue"),
        Column("fast", "faster costs", ROW_UNIT, "by the catalogue"),
        *hidden("id", "unit"),
    )
    formula = (
        f"(N*c + s)*G/G0 - N*c = {number(found.formula_usd_per_s * HOUR_S)} USD/h, from GPU rent"
        " alone."
    )
    return Table("prices", "Break-even price", columns, rows, formula)


_SIDES = (
    Column("tier", "tier", of="tier_id"),
    Column("goodput", "goodput", "share"),
    Column("interval", "interval", "s", of=lambda side: float(side.outcome.interval_s)),
    Column("stall", "stall", "s", of=lambda side: float(side.outcome.mean_stall_s)),
    Column("load", "load", "s", of=lambda side: float(side.outcome.plan.recovery.load_s)),
    Column("wall", "run", "s", of=lambda side: float(side.outcome.wall_s)),
    Column("lost", "USD lost", "USD", "saves and failures, tier price apart", of="lost_usd"),
)
_PAYBACK = (
    Column("capital", "purchase", "USD", of="capital_usd"),
    Column("saved", "saved an hour", "USD/h", of=lambda p: p.saved_usd_per_s * HOUR_S),
    Column("time", "paid after", "s", of="time_s"),
    Column("gpu", "GPU-hours", "GPU-h", of=lambda p: to_hours(p.gpu_s)),
)


def _payback(found: Breakeven) -> list[Table]:
    p = found.payback
    return [] if p is None else [table_of("payback", "The purchase", _PAYBACK, [p])]
