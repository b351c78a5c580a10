"""The front as a chart, one save in bars, one tier in detail, and what vendors claim."""

from __future__ import annotations

from ckptcost.errors import CkptcostError
from ckptcost.present.amounts import DASH, number, share
from ckptcost.present.chart import Bar, Bars, Chart, ChartPart, Curve, Dot
from ckptcost.present.grid import Grid, Tone
from ckptcost.present.words import caution_text
from ckptcost.report.studies.model import claims_table
from ckptcost.report.study import ROW_UNIT, Column
from ckptcost.tui.about_field import figure_text, source_lines
from ckptcost.tui.desk import Desk
from ckptcost.tui.fields import label_of
from ckptcost.tui.screens.model_runs import base_of
from ckptcost.tui.screens.tiers_view import AT_BEST, Line, Shown, Weighed
from ckptcost.tui.study_grids import grid_of, with_columns

AGAINST = AT_BEST | {"time": "cost"}
"""what goodput is held against, by objective"""
UNITS = {"energy": "kWh", "cost": "USD", "carbon": "kgCO2e"}
NAMED = 12
"""with more dots than this, only those that matter have their name beside them"""
SURVIVES = {
    "process": "lost with its node",
    "node": "survives the loss of a node",
    "site": "survives the loss of any node",
}
CLAIMS = {"case": "tier", "what": "claim", "unit": "in", "value": "claimed", "model": "model"} | {
    "low": "from",
    "high": "to",
    "size": "of a save of",
    "source": "source",
}


def short(name: str, most: int = 24) -> str:
    """A name that fits beside others.

    >>> short("nas-hdd"), short("a-tier-with-a-name-that-goes-on")
    ('nas-hdd', 'a-tier-with-a-name-tha..')
    """
    return name if len(name) <= most else name[: most - 2] + ".."


def front_chart(weighed: Weighed, desk: Desk, cursor: str = "") -> Chart:
    """Share of time lost against what it costs, each tier at its best interval, and the front that
    no tier beats."""
    options = weighed.options
    key = AGAINST[weighed.objective]
    if key == "cost" and all(row.get(key) is None for row in options):
        key = "energy"
    front = [row for table in weighed.tables if table.id == "front" for row in table.rows]
    on_front = {row["tier"] for row in front}
    baseline = base_of(desk, weighed.runs).key
    dots = []
    for row in options:
        tier, x, goodput = row["tier"], row.get(key), row.get("goodput")
        if not x or goodput is None or not goodput < 1.0:
            continue
        tone: Tone = "best" if tier in on_front else "base" if tier == baseline else ""
        named = tone or len(options) <= NAMED or tier == cursor
        dots.append(Dot(x, 1.0 - goodput, short(tier) if named else "", tone))
    points = sorted((row[key], 1.0 - row["goodput"]) for row in front if row.get(key))
    curve = Curve("", [x for x, _ in points], [y for _, y in points], "best")
    return Chart(
        f"time lost against {UNITS[key]}",
        (curve,) if len(points) > 1 else (),
        dots,
        x_label=UNITS[key],
        x_text=number,
        y_text=share,
        x_log=True,
        y_log=True,
        x_kind="number",
        empty="no tier has a best interval",
    )


def save_bars(weighed: Weighed, desk: Desk) -> Bars:
    """Dollars of one save, on a log scale: they span orders of magnitude."""
    best, baseline = weighed.best("save"), base_of(desk, weighed.runs).key
    known = [(run.row.get("save_cost_usd") or 0.0, run.key) for run in weighed.runs]
    rows = []
    for usd, key in sorted(known, key=lambda pair: -pair[0]):
        tone: Tone = "best" if key == best else "base" if key == baseline else ""
        part = ChartPart("USD", 0.0, usd, tone)
        rows += [Bar(short(key), (part,), f"{number(usd)} USD", key, tone)] if usd else []
    able = [run.case.resolved for run in weighed.runs if run.found is not None]
    unpriced = any("cluster.gpu_price" in each.unknown for each in able)
    why = f"what one save costs is not known{': cluster.gpu_price' if unpriced else ''}"
    return Bars(rows, (), "USD of one save, log scale", "", True, why)


def details(weighed: Weighed, desk: Desk, key: str, shown: Shown) -> list[Line]:
    """One tier: its figures and on whose word, what it outlives, and what to beware of."""
    run = next((run for run in weighed.runs if run.key == key), None)
    if run is None:
        return []
    lines: list[Line] = [(run.row.get("tier_name", key), "")]
    if run.found is not None:
        resolved = run.case.resolved
        inputs = [each for each in resolved.inputs if each.path.startswith("tier.")]
        inputs.sort(key=lambda each: "write" not in each.path)
        lines += [(f"{label_of(each.path)}: {figure_text(each)}", "") for each in inputs]
        unknown = [path for path in resolved.unknown if path.startswith("tier.")]
        lines += [
            (f"{label_of(path)}: {DASH} {resolved.unknown[path]}", "muted") for path in unknown
        ]
        lines.append((SURVIVES.get(str(resolved.words.get("tier.survives", "site")), ""), ""))
        lines += [(caution_text(each), "warn") for each in run.case.cautions]
        lines += source_lines(desk, [each.figure.source for each in inputs], 9)
    else:
        lines.append((run.reason, "bad"))
    if shown == "best" and (why := weighed.no_best.get(key)) and why != run.reason:
        lines.append((why, "warn"))
    try:
        note = desk.catalog.get("tier", key).note
    except CkptcostError:
        note = ""
    lines += [(note, "muted")] if note else []
    return lines


def claims(weighed: Weighed) -> Grid:
    """What vendors say of one save, beside what the model says of a save of the same size."""
    able = {run.key: run for run in weighed.runs if run.found is not None}
    table = claims_table([run.case for run in able.values()], list(able))
    modelled = {"energy": "save_energy_kwh", "time": "stall_s"}
    rows = [
        row | {"model": able[row["case"]].row[modelled[row["what"]]] if row["this_size"] else None}
        for row in table.rows
    ]
    more = Column("model", "model", ROW_UNIT, "of a save of the same size")
    note = (
        "no vendor says what its kWh include; the model counts the GPUs and hosts that wait, and"
        " the storage"
    )
    table = with_columns(table, CLAIMS, more)._replace(rows=rows, note=note)
    empty = "none of these tiers comes with a claim about one save"
    return grid_of(table)._replace(empty=empty)
