"""What a probe found: its numbers, its verdict, the catalogue's tiers beside it, and a checkpoint
of the scenario at this rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ckptcost.core.quantities import pick
from ckptcost.core.size import full_bytes
from ckptcost.core.timing import nodes_of
from ckptcost.errors import CkptcostError
from ckptcost.jobs.model import case_of
from ckptcost.present.amounts import count, duration, number, quantity, rate, share, size
from ckptcost.present.chart import Bar, Bars, Part, Stat
from ckptcost.present.grid import Tone
from ckptcost.report.studies.probe import HERE, LATER, SPREAD_OF_NOTE, node_rates
from ckptcost.report.study import Study
from ckptcost.tui.desk import Desk
from ckptcost.tui.screens.meters import rows_of
from ckptcost.tui.screens.probe_progress import ranged

Line = tuple[str, Tone]


def rates_of(study: Study) -> dict[str, dict[str, Any]]:
    """By kind of pass, the row of the whole size."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows_of(study, "rates"):
        found.setdefault(str(row["of"]), row)
    return found


def stats(study: Study) -> tuple[Stat, ...]:
    rates = rates_of(study)
    found = []
    for of, label in (("save", "WRITE"), ("load", "READ")):
        if (row := rates.get(of)) is not None:
            found.append(
                Stat(
                    label,
                    rate(row["rate"]),
                    ranged(row["rate_low"], row["rate_high"], row["rounds"]),
                )
            )
    if (row := rates.get("save")) is None:
        return tuple(found)
    returned = row["returned"]
    waited = (
        f"written after {duration(returned)}"
        if returned is not None and row["seconds"] > LATER * returned
        else ""
    )
    found.append(Stat("SAFE AFTER", duration(row["seconds"]), waited or f"{size(row['bytes'])}"))
    late = [
        each["p99"]
        for each in rows_of(study, "rounds")
        if each["of"] == "save" and each["bytes"] == row["bytes"] and each.get("p99")
    ]
    if late:
        found.append(Stat("P99", duration(max(late)), "of single writes, the worst round"))
    found.append(
        Stat(
            "ENERGY",
            "-" if row["j_per_gb"] is None else f"{number(row['j_per_gb'])} J/GB",
            "metered parts of this node",
        )
    )
    found.append(steady(row))
    return tuple(found)


def steady(row: dict[str, Any]) -> Stat:
    """Whether another probe would find the same."""
    spread = row["spread"]
    if spread is None:
        return Stat("STEADY", "-", "one round tells nothing")
    if spread > SPREAD_OF_NOTE:
        return Stat("STEADY", "no", f"rounds differ by {share(spread)}", "warn")
    return Stat("STEADY", "yes", f"rounds differ by {share(spread)}", "good")


def tiers(study: Study) -> Bars:
    """This place among the catalogue's tiers, by what one node writes."""
    return _bars(rows_of(study, "tiers"), "Beside the catalogue: what one node writes")


def known_tiers(desk: Desk) -> Bars:
    """Before anything was measured: what the catalogue says that one node writes, slowest first."""
    rows = sorted(node_rates(desk.catalog, 1.0), key=lambda row: float(row["write"]))
    return _bars(rows, "To compare with: what one node writes, by the catalogue")


def _bars(rows: Sequence[dict[str, Any]], title: str) -> Bars:
    return Bars(
        [
            Bar(
                str(row["tier"]),
                (Part("write", 0.0, float(row["write"])),),
                rate(row["write"]),
                str(row["tier"]),
                "best" if row["tier"] == HERE else "",
            )
            for row in rows
        ],
        (),
        title,
        empty="No rate to compare.",
    )


def words(study: Study, desk: Desk, kept: str = "") -> list[Line]:
    """What follows, what to take care of, and the scenario's checkpoint here."""
    said: list[Line] = (
        [("Simulated: nothing here was measured on this machine.", "warn")]
        if study.simulated
        else []
    )
    said += [(text, "warn") for _, text in study.warnings]
    said += on_the_desk(study, desk)
    said += [(text, "") for text in study.findings if not text.startswith("`ckptcost calibrate")]
    said.append(
        (
            kept or "Not kept yet: w keeps the run, c keeps it and calibrates a tier from it.",
            "muted",
        )
    )
    return said


def on_the_desk(study: Study, desk: Desk) -> list[Line]:
    """A checkpoint of the scenario, were every node's storage like this place."""
    rates = rates_of(study)
    write = rates["save"]["rate"] if "save" in rates else None
    if write is None:
        return []
    read = rates["load"]["rate"] if "load" in rates else None
    try:
        resolved = desk.resolved()
        s = resolved.scenario
        here = like_this(desk, write, read)
        now, then = case_of(resolved, False, False), case_of(here.resolved(), False, False)
    except CkptcostError as error:
        return [(f"The scenario cannot be computed at this rate: {error}", "warn")]
    whole, nodes = float(full_bytes(s.checkpoint)), float(nodes_of(s.cluster))
    each = f", {size(whole / nodes)} on each of {count(nodes)} nodes" if nodes > 1 else ""
    saved, bill = then.outcome.plan.saved, then.outcome.one_save
    taken = float(saved.write_s)
    was = float(now.outcome.plan.saved.write_s)
    kwh, gpu_h, usd = (
        f"{number(float(q.people(bill.total(q.field))))} {q.unit}"
        for q in pick("energy", "gpu_time_lost", "cost")
    )
    cost = f"{kwh}, {gpu_h} and {usd}"
    held_up, name = duration(float(saved.stall_s)), now.tier_id
    return [
        (
            (
                f"A checkpoint of {desk.title} is {size(whole)}{each}: {duration(taken)} to write"
                " if every node has a place like this."
            ),
            "base",
        ),
        (
            (
                f"It holds training up for {held_up} and costs {cost} a save; on tier {name} it"
                f" takes {duration(was)}."
            ),
            "base",
        ),
    ]


def like_this(desk: Desk, write: float, read: float | None) -> Desk:
    """The scenario on nodes that each have such a place. A storage that they share gives each of
    them less."""
    nodes = float(nodes_of(desk.resolved().scenario.cluster))
    edits = {
        "node_write": quantity(write, "bytes_per_s"),
        "write": quantity(write * nodes, "bytes_per_s"),
    }
    if read is not None:
        edits |= {
            "node_read": quantity(read, "bytes_per_s"),
            "read": quantity(read * nodes, "bytes_per_s"),
        }
    for key, text in edits.items():
        desk = desk.edited(f"tier.{key}", text)
    return desk


def ended_text(cancelled: bool, passes: int, left: Sequence[str], simulated: bool = False) -> Line:
    """One line for when it is over."""
    if simulated:
        return "Done; a simulated machine, so nothing was written but the run.", "good"
    if left:
        return (
            (
                f"Ended, but these are still there: {', '.join(left)}; another probe's, or remove"
                " them by hand."
            ),
            "warn",
        )
    removed = "everything that was written is removed"
    if cancelled:
        through = (
            f"after {count(passes)} pass{'' if passes == 1 else 'es'}"
            if passes
            else "before a pass was through"
        )
        return f"Stopped {through}; {removed}.", "warn"
    return f"Done; {removed}.", "good"
