"""The tiers as a table, and the sentence that follows from it."""

from __future__ import annotations

from math import isfinite
from typing import NamedTuple

from ckptcost.core.quantities import BY_OBJECTIVE, EVERYDAY
from ckptcost.core.regret import cost_of
from ckptcost.jobs.compare import missing_keys
from ckptcost.present.amounts import DASH, count, duration, number, rate, share
from ckptcost.present.grid import Grid, Head, Order, Row, Tone
from ckptcost.report.factors import sources_of
from ckptcost.scenario import Input
from ckptcost.tui.desk import Desk
from ckptcost.tui.screens.tiers_view import Entry, Shown, Weighed, never_ends, no_headway

ALIKE = 1e-9
"""of the larger: two amounts this close differ by rounding only"""
RATES = ("write", "node_write", "gpu_write", "write_per_capacity")
_ONE_PLACE = 1e9
"""the columns' rates are in GB/s"""


class Evidence(NamedTuple):
    """Who says how fast a tier writes."""

    basis: str
    source: str
    """title of the first source"""
    figure: Input | None


def evidence_of(desk: Desk, entry: Entry) -> Evidence:
    """Of the rates that a tier has, the first: the others are its parts."""
    if entry.resolved is None:
        return Evidence("", "", None)
    inputs = {each.path: each for each in entry.resolved.inputs}
    found = next((inputs[f"tier.{key}"] for key in RATES if f"tier.{key}" in inputs), None)
    if found is None:
        return Evidence("", "", None)
    sources = sources_of(desk.catalog, found.figure.source)
    return Evidence(
        found.figure.basis or "assumed",
        str(sources[0]["title"]) if sources else found.origin,
        found,
    )


def short(name: str, most: int = 24) -> str:
    """A name that fits beside others.

    >>> short("nas-hdd"), short("a-tier-with-a-name-that-goes-on")
    ('nas-hdd', 'a-tier-with-a-name-tha..')
    """
    return name if len(name) <= most else name[: most - 2] + ".."


_NUMBERS = (
    Head("rate", "GB/s", rank=6),
    Head("stall", "stall", rank=4),
    Head("safe", "safe after", rank=8),
)
_LAST = (
    Head("evidence", "evidence", left=True, rank=7),
    Head("source", "source of the rate", left=True, rank=9),
)


def grid(weighed: Weighed, desk: Desk, shown: Shown) -> Grid:
    """One row a tier, in the order in which they were named; those without figures last."""
    baseline = weighed.baseline(desk)
    best = weighed.best(shown)
    heads = (
        Head("tier", "tier", left=True),
        *_NUMBERS,
        *([] if shown == "save" else [Head("goodput", "goodput", rank=1)]),
        *(
            Head(name, AMOUNTS[name].unit, rank=0 if name == counted(weighed) else RANKS[name])
            for name in AMOUNTS
        ),
        *([Head("storage", "storage kWh", rank=7)] if shown == "save" else []),
        Head("every", "best every", rank=2),
        Head("ratio", "vs base", rank=1),
        *_LAST,
    )
    rows = [
        _row(weighed, entry, baseline, best, desk, shown)
        for entry in sorted(weighed.entries, key=lambda entry: entry.run(shown) is None)
    ]
    return Grid(heads, rows, _title(weighed, shown), _note(weighed, baseline, shown), "no tier")


def _row(
    weighed: Weighed, entry: Entry, baseline: Entry, best: Entry | None, desk: Desk, shown: Shown
) -> Row:
    found, evidence = entry.figures[shown], evidence_of(desk, entry)
    run, prefix = entry.run(shown), "save" if shown == "save" else "run"
    key = counted(weighed)
    mine, theirs = found.get(f"{prefix}_{key}"), baseline.figures[shown].get(f"{prefix}_{key}")
    alike = known_alike(entry, baseline, shown, key)
    ratio = mine / theirs if mine is not None and theirs and alike else None
    best_s = float(entry.best.asked_s) if entry.best is not None else None
    stall, lag = found.get("stall_s"), found.get("lag_s")
    safe = stall + lag if stall is not None and lag is not None else None
    pairs: list[tuple[str, Order]] = [
        (entry.key, entry.key),
        (
            number(found["rate_bytes_per_s"] / _ONE_PLACE) if "rate_bytes_per_s" in found else DASH,
            found.get("rate_bytes_per_s"),
        ),
        (duration(stall), stall),
        (duration(safe), safe),
    ]
    if shown != "save":
        never = run is not None and never_ends(run)
        pairs.append(("never" if never else share(found.get("goodput")), found.get("goodput")))
    pairs += [
        (number(found.get(f"{prefix}_{name}")), found.get(f"{prefix}_{name}")) for name in AMOUNTS
    ]
    if shown == "save":
        pairs.append((number(found.get("save_storage_kwh")), found.get("save_storage_kwh")))
    pairs += [
        (duration(best_s), best_s),
        (
            (
                "base"
                if entry.key == baseline.key
                else "hopeless"
                if run is not None and no_headway(run)
                else f"{number(ratio)}x"
                if ratio is not None
                else DASH
            ),
            ratio,
        ),
        (evidence.basis or DASH, evidence.basis or None),
        (evidence.source or DASH, evidence.source or None),
    ]
    tone: Tone = ""
    if entry.reason or run is None:
        tone = "muted"
    elif no_headway(run):
        tone = "bad"
    elif best is not None and entry.key == best.key:
        tone = "best"
    elif entry.key == baseline.key:
        tone = "base"
    return Row(
        entry.key,
        tuple(cell for cell, _ in pairs),
        tuple(order for _, order in pairs),
        tone,
        entry.tier == desk.chosen != "",
    )


def counted(weighed: Weighed) -> str:
    """What the ratio to the baseline is of."""
    return COUNTED[weighed.objective]


def _title(weighed: Weighed, shown: Shown) -> str:
    """What is shown, and what the ratio is of: the line that every width has room for."""
    of = {
        "best": f" at their best for {weighed.objective}",
        "asked": " at the interval in force",
        "save": ", one save",
    }[shown]
    return f"Storage tiers{of}; vs base: {AMOUNTS[counted(weighed)].unit}"


def known_alike(one: Entry, other: Entry, shown: Shown, key: str) -> bool:
    """Whether two sums lack the same lines, so that they can be held against each other."""
    runs = [entry.run(shown) for entry in (one, other)]
    bills = [run.one_save if shown == "save" else run.run for run in runs if run is not None]
    return len(bills) < 2 or not missing_keys(bills, AMOUNTS[key].field)


def _deciding(weighed: Weighed, shown: Shown) -> tuple[str, ...]:
    """Inputs that only some of the tiers have, of what the ratio counts."""
    runs = [run for entry in weighed.entries if (run := entry.run(shown)) is not None]
    bills = [run.one_save if shown == "save" else run.run for run in runs]
    return missing_keys(bills, AMOUNTS[counted(weighed)].field)


def _note(weighed: Weighed, baseline: Entry, shown: Shown) -> str:
    """What the whole table rests on."""
    parts = []
    if shown == "asked" and any(entry.asked is not None for entry in weighed.entries):
        parts.append(_in_force(weighed))
    if shown == "save":
        parts.append(f"best: of the run, for {weighed.objective}")
    parts.append("kgCO2e: location-based")
    if not all(known_alike(entry, baseline, shown, counted(weighed)) for entry in weighed.entries):
        parts.append(
            f"no ratio where {' and '.join(_deciding(weighed, shown))} is known for one of the two"
            " only"
        )
    everywhere = [
        path for path in weighed.desk.edits if path.startswith("tier.") and path != "tier.id"
    ]
    if everywhere and len(weighed.entries) > 1:
        parts.append(f"{', '.join(everywhere)} holds for every tier")
    silent = sum(entry.run(shown) is None for entry in weighed.entries)
    if silent:
        parts.append(f"{count(silent)} of {count(len(weighed.entries))} without figures")
    return "; ".join(parts)


def _in_force(weighed: Weighed) -> str:
    """How often the runs save that are not at their best; where the scenario asks for the best,
    that is another one on each tier."""
    if not weighed.own_interval:
        return "no interval is given: the best one"
    resolved, asked = next(
        (entry.resolved, entry.asked) for entry in weighed.entries if entry.asked is not None
    )
    if resolved is not None and resolved.scenario.policy.cadence == "optimal":
        return f"each at its best for {resolved.scenario.policy.objective}"
    return f"every {duration(float(asked.interval_s))}" if asked is not None else ""


def sentence(weighed: Weighed, desk: Desk, shown: Shown) -> tuple[str, Tone]:
    """Which tier is best, and how much less a run on it takes than on the baseline."""
    objective, best, base = weighed.objective, weighed.best(shown), weighed.baseline(desk)
    if best is None and (keys := weighed.undecided(shown)):
        return (
            (
                f"No tier is called best for {objective}: {' and '.join(keys)} is known for some of"
                " them only."
            ),
            "warn",
        )
    if best is None:
        other = (
            " (o: the run at the interval in force)"
            if shown == "best" and any(entry.asked for entry in weighed.entries)
            else ""
        )
        return f"No best tier{other}: {_why_none(weighed)}", "warn"
    run: Shown = "asked" if shown == "asked" or best.best is None else "best"
    name, against = short(best.key, 32), short(base.key, 32)
    if (outcome := best.run(run)) is not None and (why := no_headway(outcome)):
        others = "" if len(weighed.entries) == 1 else ", the best of these"
        return f"Hopeless: on {name}{others}, {why}.", "bad"
    where = (
        ", each at its own best interval" if run == "best" else ", both at the interval in force"
    )
    if len(weighed.entries) == 1:
        return f"{name} is the only one here; t adds others to hold against it.", ""
    if best.key == base.key:
        return (
            f"{name}, the baseline, is best for {objective}. {_runner_up(weighed, best, run)}",
            "best",
        )
    mine, theirs = best.figures[run], base.figures[run]
    their_run = base.run(run)
    if their_run is not None and (why := no_headway(their_run)):
        return f"{name} is best for {objective}; on {against}, the baseline, {why}.", "best"
    if not theirs.get("run_gpu_hours"):
        return f"{name} is best for {objective}; {against}, the baseline, has no figures.", "best"
    saved: list[str] = []
    more: list[str] = []
    asked = COUNTED[objective]
    for key in (
        asked,
        *(each for each in ("cost_usd", "gpu_hours", "energy_kwh") if each != asked),
    ):
        if (left := theirs.get(f"run_{key}")) is not None and (
            right := mine.get(f"run_{key}")
        ) is not None:
            if not known_alike(best, base, run, key):
                continue
            if abs(left - right) > ALIKE * max(abs(left), abs(right)):
                (saved if left > right else more).append(
                    f"{number(abs(left - right))} {AMOUNTS[key].unit}"
                )
    if not saved and not more:
        return (
            (
                f"{name} and {against}, the baseline, are nothing"
                f" apart{where if run == 'asked' else ''}."
            ),
            "",
        )
    told = [f"{_listed(parts)} {way}" for parts, way in ((saved, "less"), (more, "more")) if parts]
    return (
        f"{name} is best for {objective}: a run takes {' and '.join(told)} than on"
        f" {against}{where}.",
        "best",
    )


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _why_none(weighed: Weighed) -> str:
    whys = dict.fromkeys(why for entry in weighed.entries if (why := entry.reason or entry.no_best))
    first = next(iter(whys), "no tier is known").rstrip(".")
    more = "" if len(whys) < 2 else f"; {count(len(whys) - 1)} more reasons, each with its tier"
    return f"{first}{more}."


def _runner_up(weighed: Weighed, best: Entry, run: Shown) -> str:
    """How much worse the next one is."""
    from ckptcost.report.studies.run_columns import COSTS

    outcomes = {
        entry.key: outcome for entry in weighed.entries if (outcome := entry.run(run)) is not None
    }
    least = float(cost_of(outcomes.pop(best.key), weighed.objective))
    others = (
        [
            (float(cost_of(outcome, weighed.objective)) / least - 1.0, key)
            for key, outcome in outcomes.items()
        ]
        if least > 0
        else []
    )
    others = [pair for pair in others if isfinite(pair[0])]
    if not others:
        return "No other has figures."
    over, name = min(others)
    return f"Next: {short(name, 32)}, {_apart(over)} {COSTS[weighed.objective]}."


def _apart(over: float) -> str:
    return f"{share(over)} more" if over > ALIKE else "nothing apart in"


def rates_said(evidence: Evidence) -> str:
    """A rate with its range, as its source gives it."""
    if evidence.figure is None:
        return DASH
    figure, per_s = evidence.figure.figure, evidence.figure.unit == "bytes_per_s"
    where = {"tier.node_write": " a node", "tier.gpu_write": " a GPU"}.get(evidence.figure.path, "")
    value = rate(figure.value) if per_s else figure.text
    span = (
        f" ({rate(figure.low)} to {rate(figure.high)})"
        if per_s and figure.low is not None and figure.high is not None
        else ""
    )
    return f"{value}{where}{span}"


AMOUNTS = {q.column: q for q in EVERYDAY}
"""by column"""
COUNTED = {"time": "gpu_hours", **{name: q.column for name, q in BY_OBJECTIVE.items()}}
"""what the ratio to the baseline is of, by objective; lost GPU-hours stand for time, which is
nearly the same for every tier"""
RANKS = {"gpu_hours": 4, "energy_kwh": 3, "cost_usd": 2, "location_kgco2e": 5}
"""which columns give way first, but for the one that is asked about"""
