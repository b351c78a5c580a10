"""The answer first: what a question prints unless all of it is asked for, a screen of a terminal.

What was asked, the answer in a few sentences, the tables that carry it, what would change it. What
is left out is counted in the last line, and `--full` prints it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ckptcost.first.present.table import WIDTH, columns, on_one_line, wrap_line
from ckptcost.first.present.words import gate_text
from ckptcost.first.report.studies.model_words import basis_line
from ckptcost.first.report.study import shortened, shown_cells

if TYPE_CHECKING:
    from ckptcost.first.report.study import Study, Table

LINES: Final = 40
SENTENCES: Final = 5
TABLES: Final = 2
LEAST_ROWS: Final = 4
"""of a table that has more; one that does not get so many is left out"""
FIRST_ROWS: Final = 10
"""of the first table, before the second one gets any"""
TITLE: Final = 130
"""letters of a table's title: two lines, with how many rows there are"""
CAUTIONS: Final = 3


class Most(NamedTuple):
    """How many lines each part may take."""

    about: int
    sentences: int
    targets: int
    cautions: int
    note: int
    last: int
    """what is left out, and an empty line before it"""


TRIED: Final = (
    Most(9, 15, 8, 9, 3, 2),
    Most(9, 15, 8, 9, 3, 3),
    Most(6, 12, 6, 6, 2, 4),
    Most(4, 9, 5, 4, 2, 4),
    Most(2, 5, 4, 3, 1, 4),
)
"""the first of these that fits the screen"""

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
    "simulation": ("outcome", "states"),
    "fleet": ("groups", "lines"),
    "optimum": ("levels", "options", "intervals"),
    "measurement": ("advice", "windows", "domains"),
    "probe": ("rates", "tiers"),
    "audit": ("verdicts", "follows"),
    "model": ("whole_run", "bill"),
}
"""the tables that carry the answer of a kind of question, the most telling first; of the others the
first ones do"""
KEPT: Final[dict[str, Callable[[dict[str, Any]], bool]]] = {
    "verdicts": lambda row: row.get("verdict") == "inconsistent",
    "intervals": lambda row: str(row.get("at")).startswith("now"),
    "domains": lambda row: row.get("role") == "whole",
    "lines": lambda row: row.get("line") == "total",
    "bill": lambda row: row.get("id") == "total",
    "whole_run": lambda row: bool(row.get("first") or row.get("least")),
    "parameters": lambda row: row.get("value") is not None,
}
"""the rows of a table that stay where it is cut"""
LARGEST: Final = {"groups": "gpu_hours"}
"""so do the rows with most of that: the whole fleet, and the jobs that lost most"""
LEADING: Final = {
    "optimum": ("Both chosen together", "No failure needs the second tier"),
    "calibration": ("Nothing was written", "Written: ", "Next: "),
}
"""how sentences begin that go before the others"""
LISTS: Final = frozenset({"runs", "checkup"})
"""what asks for all there is"""

_OF_SCENARIO: Final = re.compile(r"[A-Z]: ")


class Shown(NamedTuple):
    """A table as it is printed."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str
    left: int = 1
    kept: frozenset[int] = frozenset()
    """rows that stay where others are cut"""


class BriefAnswer(NamedTuple):
    """All that a question has to say, before it is cut to a screen."""

    title: str
    about: Sequence[str]
    sentences: Sequence[str]
    tables: Sequence[Shown]
    """those that carry the answer"""
    tables_there: int
    targets: Sequence[str]
    weighty: Sequence[str]
    """cautions that may turn a decision"""
    cautions_there: int
    basis: str = ""


def of_study(study: Study) -> str:
    """A study's answer; all of it, where a list was asked for."""
    from ckptcost.first.report import study_views  # which `model` has no use for

    if study.kind in LISTS or (study.kind == "audit" and not study.findings):
        return study_views.text(study)
    return _laid_out(told_of_study(study))


def told_of_study(study: Study) -> BriefAnswer:
    """What a study has to say, the most telling first."""
    from ckptcost.first.report.study_views import SIMULATED

    there = {table.id: table for table in study.tables if table.shown and table.rows}
    carrying = [there[name] for name in CARRYING.get(study.kind, ()) if name in there]
    if study.kind == "model":  # of one case its bill, of several the cases side by side
        carrying = carrying[:1] if len(carrying[0].rows) > 1 else carrying[1:]
    first = _in_turn if study.kind == "comparison" else _leading_first
    return BriefAnswer(
        study.title,
        [SIMULATED] * study.simulated + list(study.about),
        first(study),
        list(map(_of_table, carrying or there.values())),
        len(there),
        # what is missed first: the exit code says so too
        list(map(gate_text, sorted(study.gates, key=lambda each: each.met))),
        [f"{message} ({code})" for code, message in study.warnings if code not in OF_FIGURES],
        len(study.warnings),
        basis_line(study.factors) if study.factors else "",
    )


def _leading_first(study: Study) -> list[str]:
    words = LEADING.get(study.kind, ())
    return sorted(study.findings, key=lambda each: not each.startswith(words))


def _in_turn(study: Study) -> list[str]:
    """Of several scenarios first what is said of all, then one sentence of each in turn."""
    of_all = [each for each in study.findings if not _OF_SCENARIO.match(each)]
    own: dict[str, list[str]] = {}
    for each in study.findings:
        if _OF_SCENARIO.match(each):
            own.setdefault(each[0], []).append(each)
    turns = [each for turn in zip_longest(*own.values()) for each in turn if each is not None]
    return [*of_all, *turns]


def _of_table(table: Table) -> Shown:
    header, rows, left = shown_cells(table)
    stays = KEPT.get(table.id)
    kept = frozenset(at for at, row in enumerate(table.rows) if stays is not None and stays(row))
    if table.id in LARGEST:
        sizes = [row.get(LARGEST[table.id]) or 0.0 for row in table.rows]
        kept |= set(sorted(range(len(sizes)), key=lambda at: -sizes[at])[:LEAST_ROWS])
    return Shown(table.title, header, rows, table.note, left, kept)


def _laid_out(told: BriefAnswer) -> str:
    for most in TRIED:
        lines = _lines(told, most)
        if len(lines) <= LINES:
            break
    return "\n".join(lines) + "\n"


def _lines(told: BriefAnswer, most: Most) -> list[str]:
    title = on_one_line(told.title)
    about = _within(told.about, most.about)
    sentences = _within(told.sentences[:SENTENCES], most.sentences, "- ")
    targets = _within(told.targets, most.targets, "- ")
    parts = [
        [*_cut(wrap_line(title), 2), "=" * min(len(title), WIDTH), *chain.from_iterable(about)],
        list(chain.from_iterable(sentences)),
        _under("Targets", targets),
    ]
    room = LINES - sum(len(part) + 1 for part in parts if part) - most.last
    # a table in full goes before the second caution
    wanted = 2 + len(told.tables[0].rows) + bool(told.tables[0].note) if told.tables else 0
    care = _within(told.weighty[:CAUTIONS], min(most.cautions, max(room - 2 - wanted, 3)), "- ")
    warned = _under("Take care", care)
    printed, rows = _tables(told.tables, room - (len(warned) + 1 if warned else 0), most.note)
    left = (
        (len(told.about) - len(about), "line", "lines", " of what was asked"),
        (len(told.sentences) - len(sentences), "sentence", "sentences", ""),
        (told.tables_there - len(printed), "table", "tables", ""),
        (rows, "row", "rows", ""),
        (len(told.targets) - len(targets), "target", "targets", ""),
        (told.cautions_there - len(care), "caution", "cautions", ""),
    )
    blocks = filter(None, [*parts, *printed, warned, _more(left, told.basis)])
    return [line for block in blocks for line in ["", *block]][1:]


def _under(title: str, told: Sequence[list[str]]) -> list[str]:
    """Sentences under a heading; nothing where there are none."""
    return [title, *chain.from_iterable(told)] if told else []


def _cut(lines: list[str], most: int) -> list[str]:
    """As many lines; the last says where more was, and opens no bracket that it does not close."""
    if len(lines) <= most:
        return lines
    kept = "\n".join([*lines[: most - 1], lines[most - 1][: WIDTH - 3]])
    opened = _opened_at(kept)
    if opened is not None and kept[:opened].strip(" -\n"):
        kept = kept[:opened].rstrip()
    return f"{kept} ..".split("\n")


def _opened_at(text: str) -> int | None:
    """Where the outermost bracket begins that is not closed."""
    open_: list[int] = []
    for at, letter in enumerate(text):
        if letter in "([":
            open_.append(at)
        elif letter in ")]" and open_:
            open_.pop()
    return open_[0] if open_ else None


def _within(texts: Sequence[str], lines: int, mark: str = "") -> list[list[str]]:
    """As many from the first as fit, each as its lines; of the first one what does."""
    fitting: list[list[str]] = []
    for text in texts:
        folded = wrap_line(text, mark, " " * len(mark))
        if len(folded) > lines and fitting:
            break
        fitting.append(_cut(folded, max(lines, 1)))
        lines -= len(fitting[-1])
    return fitting


def _tables(tables: Sequence[Shown], room: int, most_note: int) -> tuple[list[list[str]], int]:
    """Tables as lines, each after an empty one, cut to the room; how many rows were left out."""
    printed: list[list[str]] = []
    left_out = 0
    for place, table in enumerate(tables[:TABLES]):
        note = _cut(wrap_line(table.note), most_note) if table.note else []
        title = wrap_line(on_one_line(shortened(table.title, TITLE)))
        own = room - 2 - len(title) - len(note)  # what its rows may take
        least = min(LEAST_ROWS, len(table.rows))
        if own < least and printed:
            break
        if place == 0 and len(tables) > 1:
            after = tables[1]
            needed = 3 + min(LEAST_ROWS, len(after.rows)) + (most_note if after.note else 0)
            if len(table.rows) > own - needed:  # cut for the sake of the second, not below ten
                own = max(own - needed, min(FIRST_ROWS, own))
        rows = len(table.rows)
        if rows > own:
            many = f"of {rows} rows)"
            cut = len(wrap_line(f"{shortened(table.title, TITLE)} ({own} {many}")) - len(title)
            rows = max(own - cut, least)
            title = wrap_line(f"{shortened(table.title, TITLE)} ({rows} {many}")
        left_out += len(table.rows) - rows
        body = columns(list(table.header), rows_of(table, rows), left=table.left, widest=WIDTH)
        printed.append([*title, *body, *note])
        room -= 1 + len(printed[-1])
    return printed, left_out


def rows_of(table: Shown, many: int) -> list[list[str]]:
    """As many of its rows, in their order: those that stay in any case, then from the first."""
    staying = sorted(table.kept)[:many]
    others = [at for at in range(len(table.rows)) if at not in table.kept]
    chosen = sorted([*staying, *others[: many - len(staying)]])
    return [list(table.rows[at]) for at in chosen]


def _more(left: Sequence[tuple[int, str, str, str]], basis: str) -> list[str]:
    """What is not printed, and how to see it."""
    counted = [
        f"{n} more {one if n == 1 else several}{of}" for n, one, several, of in left if n > 0
    ]
    said = [basis] if basis else []
    said += [f"With --full: {', '.join(counted)}."] if counted else []
    return [line for each in said for line in wrap_line(each)]
