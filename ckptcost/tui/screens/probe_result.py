"""What a probe found: its tables, what follows, the catalogue's tiers beside it, and a checkpoint
of the scenario at this rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ckptcost.core.quantities import pick
from ckptcost.core.size import full_bytes
from ckptcost.core.timing import nodes_of
from ckptcost.errors import CkptcostError
from ckptcost.jobs.model import case_of
from ckptcost.present.amounts import count, duration, number, quantity, rate, size
from ckptcost.present.chart import Bar, Bars, Part
from ckptcost.present.grid import Grid, Tone
from ckptcost.report.studies.probe import HERE, node_rates
from ckptcost.report.study import Study
from ckptcost.report.study_views import SIMULATED
from ckptcost.tui.desk import Desk
from ckptcost.tui.screens.meters import rows_of
from ckptcost.tui.screens.probe_run import Ended
from ckptcost.tui.study_grids import grid_of

Line = tuple[str, Tone]


def rates_of(study: Study) -> dict[str, dict[str, Any]]:
    """By kind of pass, the row of the whole size."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows_of(study, "rates"):
        found.setdefault(str(row["of"]), row)
    return found


def grids(study: Study) -> tuple[Grid, Grid]:
    """The rates, and every pass."""
    found = {table.id: table for table in study.tables}
    return grid_of(found["rates"]), grid_of(found["rounds"])


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
    lines: list[Line] = [(SIMULATED, "warn")] if study.simulated else []
    lines += [(text, "warn") for _, text in study.warnings]
    lines += on_the_desk(study, desk)
    lines += [(text, "") for text in study.findings if not text.startswith("`ckptcost calibrate")]
    more = kept or "Not kept yet: w keeps the run, c keeps it and calibrates a tier from it."
    return [*lines, (more, "muted")]


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
    kwh, gpu_h, usd = (
        f"{number(float(q.people(bill.total(q.field))))} {q.unit}"
        for q in pick("energy", "gpu_time_lost", "cost")
    )
    was = duration(float(now.outcome.plan.saved.write_s))
    return [
        (
            f"A checkpoint of {desk.title} is {size(whole)}{each}: {duration(float(saved.write_s))}"
            " to write if every node has a place like this.",
            "base",
        ),
        (
            f"It holds training up for {duration(float(saved.stall_s))} and costs {kwh}, {gpu_h}"
            f" and {usd} a save; on tier {now.tier_id} it takes {was}.",
            "base",
        ),
    ]


def like_this(desk: Desk, write: float, read: float | None) -> Desk:
    """The scenario on nodes that each have such a place. A storage that they share gives each of
    them less."""
    nodes = float(nodes_of(desk.resolved().scenario.cluster))
    for name, found in (("write", write), ("read", read)):
        if found is not None:
            desk = desk.edited(f"tier.node_{name}", quantity(found, "bytes_per_s"))
            desk = desk.edited(f"tier.{name}", quantity(found * nodes, "bytes_per_s"))
    return desk


def ended_text(ended: Ended) -> Line:
    """One line for when it is over."""
    if ended.study is not None and ended.study.simulated:
        return "Done; a simulated machine, so nothing was written but the run.", "good"
    if ended.left:
        left = ", ".join(ended.left)
        return (
            f"Ended, but these are still there: {left}; another probe's, or remove them by hand.",
            "warn",
        )
    removed = "everything that was written is removed"
    if not ended.cancelled:
        return f"Done; {removed}.", "good"
    passes = len(ended.probed.rounds) if ended.probed is not None else 0
    through = f"after {count(passes)} pass{'' if passes == 1 else 'es'}"
    return f"Stopped {through if passes else 'before a pass was through'}; {removed}.", "warn"
