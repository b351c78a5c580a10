"""What a known load told of the meters of joules, as a table and in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ckptcost.core.load_step import FEW_STEPS, FEW_TICKS, NO_STEP, TOO_LATE, Range
from ckptcost.jobs.load_step import Loaded, Told
from ckptcost.present.amounts import count, duration, power
from ckptcost.report.study import Column, Table

WHY = {
    NO_STEP: "its power did not follow the load",
    FEW_STEPS: "the load changed too seldom",
    FEW_TICKS: "it was renewed too seldom",
    TOO_LATE: "it is later than the load can tell",
}
SLOW_WAY = 2.0
"""how many times the lag one way may be the other's, beyond what is known of it, before it is the
load's own"""


TIMES = (
    ("tick", "how often it is renewed"),
    ("jitter", "how far a tick is from its place at most"),
    ("lag", "how late it shows what power did"),
)
POWERS = (
    ("busy", "the load is on"),
    ("idle", "the load is off"),
    ("spinning", "ranks poll for the others"),
    ("sleeping", "ranks sleep"),
)


def tables_of(made: Loaded) -> list[Table]:
    """When each meter is renewed and how late it is; then the watts of each state."""
    timing = Table(
        "timing",
        "Meters under a load that is known: when they are renewed, and how late they are",
        (
            Column("meter", "meter"),
            Column("quantity", "of"),
            *_ranges(TIMES, "s"),
            Column("assumed_lag", "assumed", "s", "the lag that intervals allow for, at most"),
            Column("why", "lag unknown because"),
        ),
        [_times(one) for one in made.told] or [{"meter": "none", "why": why} for why in made.why],
    )
    powers = Table(
        "powers",
        "What they said of it",
        (Column("meter", "meter"), Column("quantity", "of"), *_ranges(POWERS, "W")),
        [_powers(one) for one in made.told],
    )
    return [timing, powers] if made.told else [timing]


def _ranges(keys: Sequence[tuple[str, str]], unit: str) -> list[Column]:
    return [
        column
        for key, meaning in keys
        for column in (
            Column(key, key, unit, meaning),
            Column(f"{key}_low", "from", unit, "99 % of its scatter"),
            Column(f"{key}_high", "to", unit),
        )
    ]


def _row(one: Told, **ranges: Range) -> dict[str, Any]:
    row: dict[str, Any] = {
        "meter": one.channel.domain,
        "quantity": "joules" if one.channel.is_counter else "watts",
    }
    for key, found in ranges.items():
        row |= {key: found.value, f"{key}_low": found.low, f"{key}_high": found.high}
    return row


def _times(one: Told) -> dict[str, Any]:
    timing = one.timing
    row = _row(one, tick=timing.tick, jitter=timing.jitter, lag=timing.lag)
    assumed_s = one.assumed_lag_s if one.assumed_lag_s == one.assumed_lag_s else None
    return {**row, "assumed_lag": assumed_s, "why": WHY.get(timing.why, timing.why)}


def _powers(one: Told) -> dict[str, Any]:
    timing = one.timing
    return _row(
        one,
        busy=timing.high_w,
        idle=timing.low_w,
        spinning=one.spinning_w,
        sleeping=one.sleeping_w,
    )


def findings_of(made: Loaded) -> list[str]:
    said = [
        line for one in made.told if one.channel.is_counter for line in _of_counter(one, made.ranks)
    ]
    said += _watts_beside(made)
    said += [f"{why[0].upper()}{why[1:]}." for why in made.why]
    if made.trace is not None:
        said.append(f"The readings under the load, which name no machine: {made.trace}")
    return said


def _of_counter(one: Told, ranks: int) -> list[str]:
    lag, domain = one.timing.lag, one.channel.domain
    said = []
    if lag.value is None:
        said.append(f"How late the counter of {domain} is, is not known: {WHY[one.timing.why]}.")
    else:
        said.append(
            f"The counter of {domain} shows what power did {_about(lag)} later; "
            + _against(lag, one.assumed_lag_s)
        )
        if _differs(one):
            said.append(
                f"Its lag differs by direction, {duration(max(one.timing.up_s or 0.0, 0.0))} where"
                f" the load begins and {duration(max(one.timing.down_s or 0.0, 0.0))} where it"
                " ends: part of it is power that follows the load slowly."
            )
    spins, sleeps = one.spinning_w.value, one.sleeping_w.value
    if spins is not None and sleeps is not None:
        who = (
            f"{count(ranks)} {'rank' if ranks == 1 else 'ranks'}" if one.load == "cpu" else "ranks"
        )
        said.append(f"{domain} draws {power(spins)} with {who} spinning, {power(sleeps)} sleeping.")
    return said


def _about(found: Range) -> str:
    if found.value is None or found.low is None or found.high is None:
        return "an unknown time"
    return f"{duration(found.value)} ({duration(found.low)} to {duration(found.high)})"


def _against(lag: Range, assumed_s: float) -> str:
    if lag.high is None or lag.low is None:
        return ""
    if lag.high <= assumed_s:
        return f"intervals allow for up to {duration(assumed_s)}, which holds it."
    if lag.low > assumed_s:
        return (
            f"intervals allow for up to {duration(assumed_s)} only, so those of saves that stop"
            " training may miss the truth."
        )
    return f"intervals allow for up to {duration(assumed_s)}, which may or may not hold it."


def _differs(one: Told) -> bool:
    up_s, down_s, lag = one.timing.up_s, one.timing.down_s, one.timing.lag
    if up_s is None or down_s is None or lag.high is None or lag.low is None:
        return False
    return abs(up_s - down_s) > 0.02 and max(up_s, down_s) > SLOW_WAY * max(min(up_s, down_s), 0.0)


def _watts_beside(made: Loaded) -> list[str]:
    """The counter against the watts of the same card in the same run: what both share is not the
    counter's."""
    said = []
    watts = {
        one.channel.domain: one.timing.lag.value
        for one in made.told
        if not one.channel.is_counter and one.timing.lag.value is not None
    }
    for one in made.told:
        lag_s, beside_s = one.timing.lag.value, watts.get(one.channel.domain)
        if one.channel.is_counter and lag_s is not None and beside_s is not None:
            said.append(
                f"Watts of {one.channel.domain} show a step {duration(beside_s)} late on average,"
                " half of the time that they are held and averaged over included; the counter"
                f" {duration(lag_s)}."
            )
    return said
