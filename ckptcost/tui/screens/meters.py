"""What can be measured here: lights for the bar, three lines for the welcome, and every meter with
what it says or what would help."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any

from ckptcost.present.amounts import duration, number, rate, share, size
from ckptcost.present.grid import Grid, Head, Order, Row, Tone
from ckptcost.questions.doctor import doctor
from ckptcost.report.study import Study
from ckptcost.tui.desk import by_flags
from ckptcost.tui.screens.meter_kinds import (
    ASCII,
    KINDS,
    MARKS,
    SHORT,
    TONES,
    Kind,
    State,
    alive,
    folded,
    kinds_of,
    rows_of,
    state_of,
)

SECONDS = 1.0
"""each meter is tried for so long; `ckptcost doctor` alone takes two"""
QUANTITIES = {
    "energy_j": "energy counter",
    "power_w": "power",
    "utilisation": "utilisation",
    "memory_used_bytes": "memory in use",
    "temperature_c": "temperature",
    "written_bytes": "written",
    "read_bytes": "read",
    "cancelled_bytes": "cancelled",
    "writes": "writes",
    "reads": "reads",
    "flushes": "flushes",
    "busy_s": "busy",
    "queue_s": "queue",
    "in_flight": "in flight",
    "dirty_bytes": "dirty pages",
    "writeback_bytes": "in writeback",
    "some_stalled_s": "some stalled",
    "full_stalled_s": "all stalled",
    "cpu_s": "processor time",
}
_PER_SECOND = frozenset({"writes", "reads", "flushes"})
_HEADS = (
    Head("mark", "", left=True),
    Head("kind", "for", left=True),
    Head("meter", "meter", left=True),
    Head("what", "what", left=True),
    Head("now", "now"),
    Head("tick", "renewed each", rank=1),
    Head("sees", "sees", left=True, rank=2),
    Head("why", "from, or why not", left=True, rank=3),
)
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


def look(meters: str, every_gpu: bool = False) -> Study:
    """Try every meter; takes a second or three."""
    with by_flags():
        return doctor(f"{SECONDS:g} s", meters=meters, gpus="all" if every_gpu else "visible").study


def command(meters: str, every_gpu: bool = False) -> str:
    words = ["ckptcost", "doctor", "--for", f"{SECONDS:g} s"]
    if meters != "auto":
        words += ["--meters", meters]
    return shlex.join([*words, *(["--gpus", "all"] if every_gpu else [])])


def lights(study: Study, plain: bool = False) -> str:
    """`GPU * CPU x DRAM - IO *` with the marks of the screen; `plain` takes letters only."""
    marks = ASCII if plain else MARKS
    states = {kind.id: kind.state for kind in kinds_of(study)}
    return " ".join(f"{name} {marks[states.get(kind, 'lacks')]}" for kind, name in SHORT.items())


def three_lines(study: Study, plain: bool = False) -> tuple[str, str, str]:
    """GPUs, processors and storage in a line each, for the welcome."""
    known = {kind.id: kind for kind in kinds_of(study)}
    said = []
    for kind, label in (("gpu", "GPU"), ("cpu", "CPU"), ("storage", "storage")):
        one = known.get(kind, Kind(kind, "lacks", (), ()))
        said.append(f"{label:<9}{_mark(one.state, plain)} {_brief(study, one)}")
    return said[0], said[1], said[2]


def overview(study: Study, plain: bool = False) -> list[tuple[str, Tone]]:
    """A line for each kind, what works without what is missing, and what the asking cost. What is
    bad gets its mark where it is shown."""
    kinds = kinds_of(study)
    lines: list[tuple[str, Tone]] = []
    for one in kinds:
        mark = "" if one.state == "refuses" else f"{_mark(one.state, plain)} "
        lines.append((f"{mark}{KINDS[one.id]:<11} {_brief(study, one)}", TONES[one.state]))
    if study.simulated:
        lines.insert(0, ("A simulated or replayed machine: none of this is yours.", "warn"))
    missing = [one.id for one in kinds if one.state != "answers"]
    more: list[tuple[str, Tone]] = [(_WITHOUT[kind], "") for kind in missing]
    more += [(text, "muted") for text in study.findings if text.startswith("Asking every meter")]
    if more:
        lines.append(("", ""))
    return [*lines, *more]


def grid(study: Study, plain: bool = False) -> Grid:
    """Everything that was tried: what answers, then what does not, by kind."""
    order = {kind: place for place, kind in enumerate(KINDS)}
    rows: list[tuple[int, Row]] = []
    for key, alike in _groups(study).items():
        kind = str(alike[0]["kind"])
        state: State = "answers" if any(map(alive, alike)) else "refuses"
        now, told = _now(alike)
        tick, tick_s = _tick(alike)
        why = (
            str(alike[0]["source"])
            if state == "answers"
            else f"it never moves: {alike[0]['source']}"
        )
        meter = folded([str(one["domain"]) for one in alike])
        cells = (
            _mark(state, plain),
            _for(kind),
            meter,
            _quantity(alike[0]),
            now,
            tick,
            str(alike[0]["scope"]) or "-",
            why,
        )
        orders: tuple[Order, ...] = (
            state,
            order.get(kind, 9),
            meter,
            _quantity(alike[0]),
            told,
            tick_s,
            str(alike[0]["scope"]),
            why,
        )
        rows.append(
            (order.get(kind, 9) * 2, Row(key, cells, orders, "bad" if state == "refuses" else ""))
        )
    for number_, absence in enumerate(rows_of(study, "absences")):
        kind, reason = str(absence["kind"]), str(absence["reason"])
        state = state_of(reason)
        cells = (_mark(state, plain), _for(kind), str(absence["what"]), "", "-", "-", "-", reason)
        orders = (state, order.get(kind, 9), str(absence["what"]), "", None, None, "-", reason)
        rows.append(
            (order.get(kind, 9) * 2 + 1, Row(f"absence {number_}", cells, orders, TONES[state]))
        )
    rows.sort(key=lambda each: each[0])
    note = (
        "renewed: as seen, (as published); now: a gauge's mean, or a counter's growth each second"
    )
    return Grid(_HEADS, [row for _, row in rows], "Every meter", note, "Nothing was tried yet.")


def detail(study: Study, key: str) -> list[tuple[str, Tone]]:
    """All that is known of the row under the cursor."""
    if (absence := _absence(study, key)) is not None:
        lines: list[tuple[str, Tone]] = [
            (f"{absence['what']}: {absence['reason']}.", TONES[state_of(str(absence["reason"]))])
        ]
        if absence["remedy"]:
            lines += [
                ("What would help (y copies it):", "muted"),
                *((line, "") for line in str(absence["remedy"]).split("\n")),
            ]
        return lines
    alike = _groups(study).get(key)
    if not alike:
        return []
    first = alike[0]
    several = f" and {len(alike) - 1} more like it" if len(alike) > 1 else ""
    lines = [(f"{first['domain']}{several}: {_quantity(first)}, by {first['meter']}", "")]
    lines.append(
        (f"from {first['source']}" + (f", {first['device']}" if first["device"] else ""), "")
    )
    lines.append(
        (f"sees: {first['scope'] or '-'}; {_ROLES.get(str(first['role']), str(first['role']))}", "")
    )
    facts = [
        f"renewed each {duration(first['tick'])} as seen" if first["tick"] is not None else "",
        (
            f"each {duration(first['published_tick'])} as published"
            if first["published_tick"] is not None
            else ""
        ),
        f"a mean over {duration(first['averaging'])}" if first["averaging"] is not None else "",
        f"looks {share(first['looks'])} of the time" if first["looks"] is not None else "",
        f"published error {share(first['accuracy'])}" if first["accuracy"] is not None else "",
        f"deviation {_amount(first, first['noise'])}" if first["noise"] is not None else "",
    ]
    if any(facts):
        lines.append(("; ".join(fact for fact in facts if fact), ""))
    answered = sum(one["answers"] for one in alike), sum(one["asked"] for one in alike)
    lines.append(
        (
            (
                f"answered {number(answered[0])} of {number(answered[1])} times; one reading takes"
                f" {duration(first['took'])}"
            ),
            "muted",
        )
    )
    if first["note"]:
        lines.append((str(first["note"]), "" if any(map(alive, alike)) else "warn"))
    return lines


_ROLES = {
    "part": "a part: its joules are added to the others'",
    "detail": "a detail inside of a part: shown, never added",
    "whole": "a whole: the parts are held against it",
}


def remedy(study: Study, key: str) -> str:
    """What would make the row under the cursor answer; empty where nothing is to be done."""
    absence = _absence(study, key)
    return "" if absence is None else str(absence["remedy"])


def worst(study: Study) -> str:
    """The row to begin with: where a kind could be measured and is not, what refuses; else the
    first of all."""
    refused = {KINDS[one.id] for one in kinds_of(study) if one.state == "refuses"}
    rows = grid(study).rows
    return next(
        (row.key for row in rows if row.tone == "bad" and row.cells[1] in refused),
        rows[0].key if rows else "",
    )


def _groups(study: Study) -> dict[str, list[dict[str, Any]]]:
    """Channels of a kind together: eight cards are one row."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows_of(study, "channels"):
        pattern = re.sub(r"(?<=:)[a-z]*\d\w*", "*", str(row["domain"]))
        groups.setdefault(f"{pattern} {row['quantity']}", []).append(row)
    return groups


def _absence(study: Study, key: str) -> dict[str, Any] | None:
    name, _, place = key.partition(" ")
    absences = rows_of(study, "absences")
    return (
        absences[int(place)]
        if name == "absence" and place.isdigit() and int(place) < len(absences)
        else None
    )


def _mark(state: State, plain: bool) -> str:
    return (ASCII if plain else MARKS)[state]


def _for(kind: str) -> str:
    return KINDS.get(kind, "this program" if kind == "self" else "-")


def _quantity(row: dict[str, Any]) -> str:
    return QUANTITIES.get(str(row["quantity"]), str(row["quantity"]))


def _brief(study: Study, one: Kind) -> str:
    """What it shows now, or why it does not."""
    if one.state != "answers":
        return one.reasons[0] if one.reasons else "nothing here meters it"
    channels = [row for row in rows_of(study, "channels") if row["domain"] in one.by and alive(row)]
    wanted = (
        ("written_bytes", "read_bytes", "energy_j", "power_w")
        if one.id == "storage"
        else ("energy_j", "power_w")
    )
    quantity = next((q for q in wanted if any(row["quantity"] == q for row in channels)), "")
    shown = [row for row in channels if row["quantity"] == quantity] or channels[:1]
    ticks = [
        row["tick"] or row["published_tick"]
        for row in shown
        if row["tick"] or row["published_tick"]
    ]
    renewed = f", renewed each {duration(max(ticks))}" if ticks else ""
    what = {"energy_j": "energy counter", "power_w": "power", "written_bytes": "bytes written"}.get(
        quantity, _quantity(shown[0])
    )
    return f"{folded(one.by)}: {what}, {_now(shown)[0]}{'' if one.id == 'storage' else renewed}"


def _now(rows: Sequence[dict[str, Any]]) -> tuple[str, float | None]:
    """What alike channels show, as a range where they differ."""
    known = sorted(float(row["rate"]) for row in rows if row["rate"] is not None)
    if not known:
        return "-", None
    low, high = _amount(rows[0], known[0]), _amount(rows[0], known[-1])
    if low == high:
        return high, known[-1]
    (number_low, _, unit_low), (_, _, unit_high) = low.partition(" "), high.partition(" ")
    return (f"{number_low}-{high}" if unit_low == unit_high else f"{low}-{high}"), known[-1]


def _amount(row: dict[str, Any], value: float) -> str:
    match row["unit"]:
        case "W":
            return f"{number(value)} W"
        case "share":
            return share(value)
        case "bytes":
            return size(value)
        case "bytes_per_s":
            return rate(value)
    return f"{number(value)} /s" if row["quantity"] in _PER_SECOND else number(value)


def _tick(rows: Sequence[dict[str, Any]]) -> tuple[str, float | None]:
    seen = [float(row["tick"]) for row in rows if row["tick"] is not None]
    if seen:
        return duration(max(seen)), max(seen)
    published = rows[0]["published_tick"]
    return (f"({duration(published)})", float(published)) if published is not None else ("-", None)


def seen_text(study: Study) -> str:
    """One line for when it is done."""
    states = [one.state for one in kinds_of(study)]
    return f"{states.count('answers')} of {len(states)} kinds are measured. {study.about[0]}"


def failed(text: str) -> list[tuple[str, Tone]]:
    """Of a look that did not come about."""
    return [(text, "bad")]
