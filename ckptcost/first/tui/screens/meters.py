"""What can be measured here: of each kind of meter whether it answers, refuses, waits to be asked
for or is nothing that this machine has; lights for the bar, lines and tables."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from ckptcost.first.errors import CkptcostError
from ckptcost.first.present.amounts import amount, duration, quantities
from ckptcost.first.present.grid import Grid, Tone
from ckptcost.first.questions.doctor import doctor
from ckptcost.first.report.study import ROW_UNIT, Study, Table, cell
from ckptcost.first.tui.desk import by_flags
from ckptcost.first.tui.study_grids import toned_grid

SECONDS = 1.0
"""each meter is tried for so long; `ckptcost doctor` alone takes two"""
GLANCE = 0.5
"""the same for the bar at the top and the first start"""

State = Literal["answers", "refuses", "asleep", "lacks"]
STATES: dict[State, tuple[str, str, Tone]] = {
    "answers": ("\u25cf", "*", "good"),
    "refuses": ("\u2717", "x", "bad"),
    "asleep": ("\u25cb", "o", "muted"),
    "lacks": ("\u2013", "-", "muted"),
}
"""mark, mark in ASCII, and tone; what comes first is said of a kind of which several hold"""
_ORDER = tuple(STATES)
KINDS = {
    "gpu": "GPUs",
    "cpu": "processors",
    "dram": "memory",
    "storage": "storage",
    "node": "whole node",
}
_SHORT = {"gpu": "GPU", "cpu": "CPU", "dram": "DRAM", "storage": "IO"}
"""for the bar at the top"""
_LACKS = re.compile(
    r"no (NVIDIA|AMD) GPU is in this machine|no NVMe drive|none of the drives|no block device|no"
    r" /\S*hwmon\b|no node power sensor"
    r"|there is no dram counter|AMD's RAPL counts packages|RAPL is x86|its hypervisor passes no"
    r" counters on"
    r"|no Lustre mount|no path .* NFS|/nvidia-fs/stats: no such file|no /dev/ipmi\S*: the IPMI"
    r" driver is not loaded, or there is no BMC"
)
"""what is said of hardware that is not there; everything else could be made to answer"""
_QUANTITIES = {
    "written_bytes": "bytes written",
    "read_bytes": "bytes read",
    "energy_j": "energy counter",
    "power_w": "power",
}
"""of a kind, the one that is told first"""
_WITHOUT = {
    "gpu": (
        "Without the GPUs' power, stalls, bytes and rates are measured as ever; their joules are"
        " unknown, never 0, and the model still reckons them from the catalogue's watts."
    ),
    "cpu": (
        "Without the processors' counter, host joules are unknown and every sum says that it leaves"
        " them out."
    ),
    "dram": (
        "Without a counter of memory, its joules are unknown; a meter of the whole node contains"
        " them."
    ),
    "storage": (
        "Without disk counters, saves are still timed and their bytes counted by the files"
        " themselves."
    ),
    "node": (
        "Without a meter of the node, what no part meters (fans, supplies, boards) is not known."
    ),
}
_TABLES = ("absences", "channels", "cross")
"""those of the study that are shown; of what is missing first"""


class Kind(NamedTuple):
    """One of the things that users ask for."""

    id: str
    state: State
    by: tuple[str, ...]
    """domains that answer"""
    reasons: tuple[str, ...]
    """in the system's words, the one that decides first"""


def look(meters: str, every_gpu: bool = False, seconds: float = SECONDS) -> Study:
    """Try every meter; takes a second or three."""
    with by_flags():
        return doctor(f"{seconds:g} s", meters=meters, gpus="all" if every_gpu else "visible").study


def glance(meters: str, plain: bool = False) -> tuple[str, tuple[str, ...]]:
    """Lights for the bar, and GPUs, processors and storage in a line each, or why nothing can be
    looked at."""
    try:
        study = look(meters, seconds=GLANCE)
    except (CkptcostError, OSError) as error:
        return "", (str(error),)
    return lights(study, plain), three_lines(study, plain)


def command(meters: str, every_gpu: bool = False) -> str:
    words = ["ckptcost", "doctor", "--for", f"{SECONDS:g} s"]
    if meters != "auto":
        words += ["--meters", meters]
    return shlex.join([*words, *(["--gpus", "all"] if every_gpu else [])])


def rows_of(study: Study, table_id: str) -> list[dict[str, Any]]:
    return [row for table in study.tables if table.id == table_id for row in table.rows]


def state_of(reason: str) -> State:
    """Of something that is not measured.

    >>> (
    ...     state_of("not asked for: it starts a process"),
    ...     state_of("no NVMe drive in /sys/class/nvme"),
    ...     state_of("permission denied"),
    ... )
    ('asleep', 'lacks', 'refuses')
    """
    if reason.startswith("not asked for"):
        return "asleep"
    return "lacks" if _LACKS.search(reason) else "refuses"


def kinds_of(study: Study) -> list[Kind]:
    """GPUs, processors, memory, storage, the whole node. A counter that never moves measures
    nothing."""
    speaking = {channel["domain"] for channel in _moving_channels(study)}
    found = []
    for row in rows_of(study, "kinds"):
        by = [text.split(" (")[0] for text in row["by"].split("; ") if text]
        answering = tuple(domain for domain in by if domain in speaking)
        reasons = sorted(
            (each["reason"] for each in rows_of(study, "absences") if each["kind"] == row["kind"]),
            key=lambda reason: _ORDER.index(state_of(reason)),
        )
        state: State = "answers" if answering else state_of(reasons[0]) if reasons else "lacks"
        if not answering:
            reasons += [
                f"{channel['source']} answers and never moves"
                for channel in rows_of(study, "channels")
                if channel["domain"] in by
            ][:1]
        found.append(Kind(row["kind"], state, answering, tuple(reasons)))
    return found


def _moving_channels(study: Study) -> list[dict[str, Any]]:
    """Channels that moved."""
    return [row for row in rows_of(study, "channels") if row["rate"] is not None]


def _mark(state: State, plain: bool) -> str:
    return STATES[state][1 if plain else 0]


def lights(study: Study, plain: bool = False) -> str:
    """`GPU * CPU x DRAM - IO *` with the marks of the screen; `plain` takes letters only."""
    states = {kind.id: kind.state for kind in kinds_of(study)}
    return " ".join(
        f"{name} {_mark(states.get(kind, 'lacks'), plain)}" for kind, name in _SHORT.items()
    )


def three_lines(study: Study, plain: bool = False) -> tuple[str, ...]:
    """GPUs, processors and storage in a line each, for the welcome."""
    names = {"gpu": "GPU", "cpu": "CPU", "storage": "storage"}
    return tuple(
        f"{names[one.id]:<9}{_mark(one.state, plain)} {_brief(study, one)}"
        for one in kinds_of(study)
        if one.id in names
    )


def overview(study: Study, plain: bool = False) -> list[tuple[str, Tone]]:
    """A line for each kind, what works without what is missing, and what the asking cost. What is
    bad gets its mark where it is shown."""
    kinds = kinds_of(study)
    lines: list[tuple[str, Tone]] = []
    if study.simulated:
        lines.append(("A simulated or replayed machine: none of this is yours.", "warn"))
    for one in kinds:
        mark = "" if one.state == "refuses" else f"{_mark(one.state, plain)} "
        lines.append((f"{mark}{KINDS[one.id]:<11} {_brief(study, one)}", STATES[one.state][2]))
    more: list[tuple[str, Tone]] = [
        (_WITHOUT[one.id], "") for one in kinds if one.state != "answers"
    ]
    more += [(text, "muted") for text in study.findings if text.startswith("Asking every meter")]
    return [*lines, ("", ""), *more] if more else lines


def _brief(study: Study, one: Kind) -> str:
    """What it shows now, or why it does not."""
    if one.state != "answers":
        return one.reasons[0] if one.reasons else "nothing here meters it"
    by = f"{one.by[0]} and {len(one.by) - 1} more" if len(one.by) > 2 else ", ".join(one.by)
    speaking = [row for row in _moving_channels(study) if row["domain"] in one.by]
    for quantity, name in _QUANTITIES.items():
        if shown := [row for row in speaking if row["quantity"] == quantity]:
            renewed = "" if one.id == "storage" else _renewal_text(shown)
            return f"{by}: {name}, {_now(shown)}{renewed}"
    return by


def _renewal_text(rows: Sequence[dict[str, Any]]) -> str:
    """How often the slowest of alike channels does."""
    ticks = [tick for row in rows if (tick := row["tick"] or row["published_tick"])]
    return f", renewed each {duration(max(ticks))}" if ticks else ""


def _now(rows: Sequence[dict[str, Any]]) -> str:
    """What alike channels show, as a range where they differ."""
    rates = [row["rate"] for row in rows]
    unit = {"W": "w"}.get(rows[0]["unit"], rows[0]["unit"])
    same = amount(min(rates), unit) == amount(max(rates), unit)
    return amount(max(rates), unit) if same else quantities(min(rates), max(rates), unit)


def tables(study: Study) -> list[Grid]:
    """What is missing, every channel, and pyRAPL beside them. A row's key is its place in the
    study."""
    return [toned_grid(table, _tone) for table in _tables(study)]


def _tables(study: Study) -> list[Table]:
    found = {table.id: table for table in study.tables if table.rows}
    return [found[name] for name in _TABLES if name in found]


def _tone(row: dict[str, Any]) -> Tone:
    if "reason" in row:
        return STATES[state_of(row["reason"])][2]
    return "bad" if row.get("rate", 0.0) is None else ""


def detail(study: Study, place: int, key: str) -> list[tuple[str, Tone]]:
    """All that is known of a row of a table."""
    table = _tables(study)[place]
    row = table.rows[int(key)]
    if "reason" in row:
        lines: list[tuple[str, Tone]] = [(f"{row['what']}: {row['reason']}.", _tone(row))]
        if row["remedy"]:
            lines.append(("What would help (y copies it):", "muted"))
            lines += [(line, "") for line in row["remedy"].split("\n")]
        return lines
    units = [row["unit"] if each.unit == ROW_UNIT else each.unit for each in table.columns]
    facts = [
        f"{column.label} {cell(row[column.id], unit)}"
        for column, unit in zip(table.columns, units, strict=True)
        if row[column.id] not in (None, "") and column.id != "in"
    ]
    return [("; ".join(facts), _tone(row))]


def remedy(study: Study, place: int, key: str) -> str:
    """What would make a row answer; empty where nothing is to be done."""
    return str(_tables(study)[place].rows[int(key)].get("remedy", ""))


def worst(study: Study) -> str:
    """The absence to begin with: where a kind could be measured and is not, what refuses; else the
    first of all."""
    refusing = {one.id for one in kinds_of(study) if one.state == "refuses"}
    return next(
        (
            str(place)
            for place, row in enumerate(rows_of(study, "absences"))
            if row["kind"] in refusing and state_of(row["reason"]) == "refuses"
        ),
        "0",
    )


def seen_text(study: Study) -> str:
    """One line for when it is done."""
    states = [one.state for one in kinds_of(study)]
    return f"{states.count('answers')} of {len(states)} kinds are measured. {study.about[0]}"
