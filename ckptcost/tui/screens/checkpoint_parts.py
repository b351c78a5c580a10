"""Parts of one checkpoint's picture: its phases on a time line, its instants, its joules by
domain."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from math import nan
from typing import Final

from ckptcost.core.attribution import mean_w
from ckptcost.core.channels import Mark
from ckptcost.core.contents import Contents
from ckptcost.core.reconcile import Energy, total
from ckptcost.core.windows import Window
from ckptcost.jobs.measured import Measured
from ckptcost.present.amounts import DASH, count, duration, number
from ckptcost.present.chart import Bar, Bars, Part
from ckptcost.present.grid import Grid, Head, Row, Tone
from ckptcost.present.measured import reason_text, stall_reason_text
from ckptcost.report.studies.measured_parts import off, some
from ckptcost.tui.screens.checkpoint_words import finders, safe_text, why_text

KINDS: Final = (
    ("GPU", ("gpu", "module")),
    ("CPU", ("cpu", "psys")),
    ("memory", ("dram",)),
    ("storage", ("drive",)),
    ("node", ("node",)),
)
"""domains that people ask for, and the kinds of meters that answer"""
ORDER: Final = (
    "begin",
    "snapshotted",
    "returned",
    "written",
    "synced",
    "committed",
    "durable",
    "end",
)
_TONES: Final[dict[str, Tone]] = {"stall": "bad", "undivided": "warn", "drain": "muted"}


def clock(m: Measured, at_s: float, form: str = "%H:%M:%S") -> str:
    return f"{datetime.fromtimestamp(m.run.wall_s(at_s), UTC):{form}}"


def phases_of(m: Measured, window: Window) -> Bars:
    """What training did and what storage did, from the begin on."""
    if window.begin_s is None:
        return Bars(
            title="Phases", empty="No mark says when it began, so its phases are not known."
        )
    rows = []
    for of, phases in (("training", window.phases), ("storage", window.storage)):
        for phase in phases:
            if phase.length_s == 0:
                continue
            energy = m.spent(phase.begin_s, phase.end_s)
            joules = f", {number(energy.value)} J" if energy.known else ""
            tone = _TONES.get(phase.name, "" if of == "training" else "base")
            part = Part(
                phase.name, phase.begin_s - window.begin_s, phase.end_s - window.begin_s, tone
            )
            rows.append(
                Bar(
                    phase.name,
                    [part],
                    f"{duration(phase.length_s)}{joules}",
                    f"{of}:{phase.name}",
                    tone,
                )
            )
    return Bars(
        rows,
        title="Phases",
        note="on a time line from its begin",
        empty="No marks divide it into phases.",
    )


def instants_of(m: Measured, window: Window, marks: Sequence[Mark], what: Contents) -> Grid:
    """Each mark: the last rank's, of begins the first; and what is not known of the return and of
    safety."""
    heads = (
        Head("mark", "mark", left=True),
        Head("after", "after begin"),
        Head("clock", "UTC", rank=1),
        Head("how", "how it is known", left=True, rank=2),
    )
    known: list[tuple[float, Row]] = []
    lacking: list[Row] = []
    for name in ORDER:
        at = [span.at_s[name] for span in window.spans if name in span.at_s]
        if not at and name == "durable" and window.durable_s is not None:
            at = [window.durable_s]  # by its sync and its rename
        if at:
            at_s = min(at) if name == "begin" else max(at)
            if name == "end" and any(at_s <= before_s for before_s, _ in known):
                continue  # it says nothing new
            after_s = at_s - window.begin_s if window.begin_s is not None else nan
            how = (
                safe_text(window, what)
                if name == "durable"
                else finders(mark for mark in marks if mark.name == name)
            )
            known.append(
                (
                    at_s,
                    Row(
                        name,
                        (name, duration(after_s), clock(m, at_s), how),
                        (name, after_s, at_s, how),
                    ),
                )
            )
        elif name in ("returned", "durable") and what.of == "save":
            why = (
                stall_reason_text(what.returned_why or window.returned_why)
                if name == "returned"
                else reason_text(what.why or window.durable_why)
            )
            lacking.append(Row(name, (name, DASH, DASH, why), (name, None, None, why), "muted"))
    known.sort(key=lambda pair: pair[0])
    ranks = len(window.spans)
    return Grid(
        heads,
        [*(row for _, row in known), *lacking],
        "Instants",
        f"{count(ranks)} ranks" if ranks > 1 else "",
    )


def energy_of(m: Measured, window: Window, every_domain: bool) -> Grid:
    """By domain with its range, at the node: no PUE. What is not metered says so; `every_domain`
    lists each card."""
    heads = (
        Head("domain", "domain", left=True),
        Head("joules", "J"),
        Head("off", "+- J"),
        Head("watts", "mean W"),
        Head("stall", "J of stall", rank=2),
        Head("source", "source", left=True, rank=1),
    )
    costs = {cost.domain: cost for cost in m.costs if cost.window == window.name}
    rows: list[Row] = []
    for name, kinds in KINDS:
        mine = [domain for domain in costs if domain.split(":", 1)[0] in kinds]
        if not mine:
            rows.append(
                Row(
                    name,
                    (name, DASH, DASH, DASH, DASH, "no meter of it"),
                    (name, None, None, None, None, ""),
                    "muted",
                )
            )
        elif every_domain and len(mine) > 1:
            rows += [_row(m, window, domain, [domain]) for domain in mine]
        else:
            label = f"{name}, {count(len(mine))} meters" if len(mine) > 1 else name
            whole = name == "node" and not any(domain in m.energies.parts for domain in mine)
            rows.append(
                _row(
                    m,
                    window,
                    f"{label}, contains the parts" if whole else label,
                    mine,
                    "muted" if whole else "",
                )
            )
    if m.energies.parts:
        together = m.of_window(window.name)
        rows.append(
            _cells(
                window, "parts together", together.absolute, together.stall, "what adds up", "base"
            )
        )
    return Grid(heads, rows, "Energy, measured", "at the node, without PUE")


def _row(m: Measured, window: Window, label: str, domains: Sequence[str], tone: Tone = "") -> Row:
    mine = [cost for cost in m.costs if cost.window == window.name and cost.domain in domains]
    sources = some(
        list(dict.fromkeys(m.energies.sources[domain].channel.source for domain in domains)), 2
    )
    return _cells(
        window,
        label,
        total(cost.absolute for cost in mine),
        total(cost.stall for cost in mine),
        sources,
        tone,
    )


def _cells(
    window: Window, label: str, absolute: Energy, stall: Energy, source: str, tone: Tone
) -> Row:
    watts = mean_w(absolute, window.length_s or 0.0).value
    values = (absolute.value, off(absolute), watts, stall.value)
    told = source if absolute.known else why_text(absolute.why) if absolute.why else source
    return Row(
        label, (label, *(number(value) for value in values), told), (label, *values, told), tone
    )
