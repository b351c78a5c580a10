"""The answer first: what a question prints unless all of it is asked for, a screen of a terminal.

What was asked, the answer in a few sentences, the tables that carry it, what would change it. What
is left out is counted in the last line, and `--full` prints it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ckptcost.core.outcome import HEADWAY_GOODPUT
from ckptcost.present.amounts import (
    count,
    drawn_between,
    duration,
    number,
    quantities,
    quantity,
    share,
)
from ckptcost.present.table import columns
from ckptcost.present.words import gate_text
from ckptcost.report import study_views
from ckptcost.report import text as full
from ckptcost.report.study import shown_cells

if TYPE_CHECKING:
    from ckptcost.report.document import Report, Row
    from ckptcost.report.study import Study

WIDTH: Final = 80
LINES: Final = 40
SENTENCES: Final = 5
SENTENCE_LINES: Final = 15
TABLES: Final = 2
LEAST_ROWS: Final = 4
"""of a table that has more; one that does not get so many is left out"""
CAUTIONS: Final = 3
CAUTION_LINES: Final = 9
LAST_LINES: Final = 3
"""what is left out, and an empty line before it"""

OF_FIGURES: Final = frozenset(
    {
        "DRIVE_WEAR",
        "MEAN_OF_RATES",
        "MEAN_OF_READ_RATES",
        "NAMEPLATE_POWER",
        "NO_FIXED_TIME",
        "POWER_STEP",
        "SCALED_TIME",
        "UNKNOWN_INPUT",
        "PROBE_NOTE",
        "SELFTEST_NOTE",
    }
)
"""cautions that say how good a figure is or whom to tell; the others may turn a decision"""
CARRYING: Final = {
    "comparison": ("side_by_side", "inputs"),
    "sensitivity": ("measure_next_top",),
    "simulation": ("outcome",),
}
"""the tables that carry the answer of a kind of question; of the others the first ones do"""


LISTS: Final = frozenset({"runs", "checkup"})
"""what asks for all there is"""


class Shown(NamedTuple):
    """A table as it is printed; of a bill the last row, its total, stays."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str
    left: int = 1
    has_total: bool = False


def of_study(study: Study) -> str:
    """A study's answer."""
    carrying = CARRYING.get(study.kind)
    tables = [
        Shown(table.title, header, rows, table.note, left)
        for table in study.tables
        if table.shown and table.rows and (carrying is None or table.id in carrying)
        for header, rows, left in [shown_cells(table)]
    ]
    if study.kind in LISTS:
        return study_views.text(study)
    there = sum(1 for table in study.tables if table.shown and table.rows)
    about = [*([study_views.SIMULATED] if study.simulated else []), *study.about]
    return _laid_out(
        study.title,
        about,
        study.findings,
        tables,
        [gate_text(verdict) for verdict in study.gates],
        list(study.warnings),
        there,
    )


def of_report(report: Report) -> str:
    """A model's answer: of one case its bill, of several the cases side by side."""
    title, *about = full.heading(report)
    several = len(report.cases) > 1
    name, header, rows, note = full.whole_run(report) if several else full.bill(report)
    return _laid_out(
        title,
        about,
        _sentences(report),
        [Shown(name, header, rows, note, has_total=not several)],
        [],
        [(each.code, each.message) for each in report.warnings],
        len(full.tables(report)),
        more_text=[full.basis_line(report)],
    )


def _laid_out(
    title: str,
    about: Sequence[str],
    sentences: Sequence[str],
    tables: Sequence[Shown],
    gates: Sequence[str],
    cautions: Sequence[tuple[str, str]],
    tables_there: int,
    more_text: Sequence[str] = (),
) -> str:
    head = [*_wrapped(title), "=" * min(len(title), WIDTH)]
    head += [line for each in about for line in _wrapped(each)]
    told = _within(sentences[:SENTENCES], SENTENCE_LINES)
    said = [line for each in told for line in _wrapped(each, "- ", "  ")]
    targets = [line for each in gates for line in _wrapped(each, "- ", "  ")]
    weighty = [(code, message) for code, message in cautions if code not in OF_FIGURES]
    parts = [head, said, ["Targets", *targets] if targets else []]
    room = LINES - sum(len(part) + 1 for part in parts if part) - LAST_LINES
    # a table in full goes before the second caution
    wanted = 2 + len(tables[0].rows) + bool(tables[0].note) if tables else 0
    care = _within(
        [f"{message} ({code})" for code, message in weighty[:CAUTIONS]],
        min(CAUTION_LINES, room - 2 - wanted),
    )
    warned = [line for each in care for line in _wrapped(each, "- ", "  ")]
    taken = len(warned) + 2 if warned else 0
    printed, left_out = _tables(tables, room - taken)
    more = _more(
        len(sentences) - len(told),
        tables_there - len(printed),
        left_out,
        len(cautions) - len(care),
        more_text,
    )
    blocks = [*parts, *printed, ["Take care", *warned] if warned else [], more]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _within(texts: Sequence[str], lines: int) -> list[str]:
    """As many from the first as fit, the first in any case."""
    fitting: list[str] = []
    for text in texts:
        lines -= len(_wrapped(text, "- ", "  "))
        if lines < 0 and fitting:
            break
        fitting.append(text)
    return fitting


def _tables(tables: Sequence[Shown], room: int) -> tuple[list[list[str]], int]:
    """Tables as lines, each after an empty one, cut to the room; how many rows were left out."""
    printed: list[list[str]] = []
    left_out = 0
    for place, table in enumerate(tables[:TABLES]):
        later = min(len(tables), TABLES) - place - 1
        note = _wrapped(table.note) if table.note else []
        title = _wrapped(table.title)
        own = room - 1 - len(title) - 1 - len(note)  # what its rows may take
        if later and own >= len(table.rows) + LEAST_ROWS:
            own = len(table.rows)
        rows = len(table.rows) if len(table.rows) <= own else own
        if rows < min(LEAST_ROWS, len(table.rows)) and printed:
            break
        rows = max(rows, min(LEAST_ROWS, len(table.rows)))
        if rows < len(table.rows):
            left_out += len(table.rows) - rows
            title = _wrapped(f"{table.title} ({rows} of {len(table.rows)} rows)")
        kept = [list(row) for row in table.rows]
        kept = [*kept[: rows - 1], kept[-1]] if table.has_total else kept[:rows]
        body = columns(list(table.header), kept, left=table.left, widest=WIDTH)
        printed.append([*title, *body, *note])
        room -= 1 + len(printed[-1])
    return printed, left_out


def _more(sentences: int, tables: int, rows: int, cautions: int, also: Sequence[str]) -> list[str]:
    """What is not printed, and how to see it."""
    counted = [
        f"{n} more {one if n == 1 else one + 's'}"
        for n, one in (
            (sentences, "sentence"),
            (tables, "table"),
            (rows, "row"),
            (cautions, "caution"),
        )
        if n > 0
    ]
    also = list(also)
    if counted:
        also.append(f"With --full: {', '.join(counted)}.")
    return _wrapped(" ".join(also)) if also else []


def _wrapped(line: str, first: str = "", rest: str = "") -> list[str]:
    """A line of the terminal's width; below the first, what is indented is a command and stays
    whole."""
    head, *more = line.split("\n")
    told = textwrap.wrap(
        head,
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
        break_long_words=False,
    )
    for each in more:
        if each.startswith(" "):
            told.append(rest + each)
        else:
            told += _wrapped(each, rest, rest)
    return told or [""]


def _sentences(report: Report) -> list[str]:
    """The answer of a model, at most five."""
    found = _least(report) if len(report.cases) > 1 else []
    found += [_added(report)]
    found += [_rhythm(report), *_failures(report), *_decided(report)]
    return found[:SENTENCES]


def _added(report: Report) -> str:
    """What checkpoints and failures add to the job, of the first case."""
    t, s = report.totals, report.schedule
    if s.goodput is not None and s.goodput < HEADWAY_GOODPUT:
        return (
            f"On {report.subject.tier} the run makes next to no headway (goodput"
            f" {share(max(s.goodput, 0.0))}): nobody would let it go on."
        )
    amounts = []
    for q, unit in (
        (t.energy, "kWh"),
        (t.gpu_time_lost, "GPU-h"),
        (t.cost, "USD"),
        (t.emissions_location, "kgCO2e"),
    ):
        if q.value is None:
            continue
        ranged = drawn_between(q.low, q.high)
        amounts.append(f"{number(q.value)} {unit}" + (f" ({ranged})" if ranged else ""))
    on = f" on {report.subject.tier}" if len(report.cases) > 1 else ""
    said = f"Checkpoints and failures add {_listed(amounts)} to this job{on}"
    if s.goodput is not None and s.wall_s is not None:
        said += f"; it takes {duration(s.wall_s)}, goodput {share(s.goodput)}"
    return said + "."


def _least(report: Report) -> list[str]:
    """Of several cases the ones that add least, or why that cannot be said."""
    rows = [row for row in report.cases if "NEVER_FINISHES" not in row.cautions]
    lost = [_name(row, report) for row in report.cases if "NEVER_FINISHES" in row.cautions]
    told = []
    if lost:
        told.append(f"All but never finished: {', '.join(lost)}.")
    if len(rows) < 2:
        return told
    least: dict[str, list[str]] = {}
    for name, what in (
        ("run_energy_kwh", "energy"),
        ("run_gpu_hours", "GPU time"),
        ("run_cost_usd", "dollars"),
    ):
        known = [(row.values[name], row) for row in rows if row.values[name] is not None]
        if len(known) < len(rows) or len({str(row.excludes) for row in rows}) > 1:
            continue  # totals that lack different lines say nothing of each other
        best = min(known, key=lambda each: each[0] or 0.0)[1]
        least.setdefault(_name(best, report), []).append(what)
    if least:
        parts = [f"{_listed(whats)} with {name}" for name, whats in least.items()]
        told.append(f"Of {len(report.cases)} cases, least {'; least '.join(parts)}.")
    else:
        told.append(
            "Which of the cases adds least is not known: their totals lack different lines."
        )
    return told


def _name(row: Row, report: Report) -> str:
    """A case as its row in the table is called."""
    tiers = {each.tier for each in report.cases}
    return (
        row.tier
        if len(tiers) == len(report.cases)
        else f"{row.tier}, {count(row.values['saves'])} saves"
    )


def _rhythm(report: Report) -> str:
    """How often it saves and what one save does, beside the best interval."""
    s = report.schedule
    safe = f" and is safe {duration(s.lag_s)} later" if s.mode == "async" else ""
    said = (
        f"It saves every {duration(s.interval_s)}; one save holds training up for"
        f" {duration(s.stall_s)}{safe}."
    )
    best = s.best_interval_s.get("time")
    if s.failures and best:
        said += f" The best interval for time is {duration(best)}"
        said += f", for energy {duration(s.best_interval_s.get('energy'))}."
    return said


def _failures(report: Report) -> list[str]:
    s = report.schedule
    if not s.failures or s.lost_per_failure_s is None:
        return []
    return [
        f"A failure comes every {duration(s.mtbf_s)} and costs {duration(s.lost_per_failure_s)} on"
        " average."
    ]


def _decided(report: Report) -> list[str]:
    """The inputs that the range of the energy hangs on."""
    factors = {f.id: f for f in report.factors}
    named = []
    for path in report.uncertainty.decided_by:
        factor = factors[path]
        words = {"default": "assumed", "user": "yours"}
        ranged = quantities(factor.low, factor.high, factor.unit)
        value = quantity(factor.value, factor.unit)
        named.append(f"{path} {value} ({ranged}, {words.get(factor.origin, factor.origin)})")
    if not named:
        return []
    return [f"The range of the energy comes most of all from {_listed(named)}."]


def _listed(parts: Sequence[str]) -> str:
    """ "a, b and c" """
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1]))) if parts else ""
