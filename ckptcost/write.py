"""An Answer as text, Markdown, CSV, JSON or HTML: a function a format, which knows no question."""

from __future__ import annotations

import csv
import io
import re
import shutil
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ckptcost import __version__
from ckptcost.answer import Answer, Caution, Say, Table
from ckptcost.cells import Part, printed
from ckptcost.errors import visible

WIDEST, LABELS, NARROW = 100, 18, 16
PAGE_ROWS = 100
"""rows of a table on a page: a grid has 100,000"""


# --- text -----------------------------------------------------------------------------------------


def text(answer: Answer, detail: bool = False, width: int | None = None) -> str:
    """What a person reads on a terminal."""
    width = min(width or shutil.get_terminal_size((80, 24)).columns, WIDEST)
    tables = [table for table in answer.tables if table.rows and (table.shown or detail)]
    warned = _cautions(answer, detail)
    warned += [Say(f"Missed: {each}") for each in answer.missed if Say(each) not in answer.says]
    early, late = _split_notes(answer.notes) if warned else (answer.notes, [])
    parts = [
        "\n".join(filter(None, (_wrap(answer.title, width), _wrap(answer.about, width)))),
        _says(answer.says, width),
        *(_table(each, detail, width) for each in tables),
        *(_says(each, width) for each in (early, warned, late)),
    ]
    return "\n\n".join(filter(None, parts))


def _split_notes(notes: Sequence[Say]) -> tuple[Sequence[Say], Sequence[Say]]:
    """What to type next comes last, even after the cautions."""
    at = max((i + 1 for i, note in enumerate(notes) if not note.command), default=0)
    return notes[:at], notes[at:]


def _cautions(answer: Answer, detail: bool = False) -> list[Say]:
    """Those that the answer has not said already, with the line to type apart."""
    said = " ".join(each.words for each in answer.says)
    found = []
    for each in answer.cautions:
        if detail or each.words.partition(":   ")[0] not in said:
            words, colon, command = _caution(each, answer, detail).partition(":   ")
            found.append(Say(words + colon.strip(), "", command))
    return found


def _caution(caution: Caution, answer: Answer, detail: bool = False) -> str:
    """Its words, and where it holds if not everywhere; its code in detail."""
    some = 0 < len(caution.cases) < len(answer.cases)
    more = len(caution.cases) - 3
    where = ", ".join(caution.cases[:3]) + (f" and {more} more" if more > 0 else "")
    code = f"{caution.code}: " if detail else ""
    words, colon, command = caution.words.partition(":   ")
    return f"{code}{words}{f' ({where})' if some else ''}{colon}{command}"


UNITS = re.compile(r"(?<=\d) (?=(%|[a-z]{1,3}|days|kWh|USD|GPU-h|kgCO2e|[kMGTP]?B(/s)?)(\W|$))")
"""the space between a number and its unit, at which no line ends"""


def _wrap(words: str, width: int, indent: str = "", first: str | None = None) -> str:
    """Each line of the words, wrapped."""
    lines: list[str] = []
    for line in UNITS.sub("\N{NO-BREAK SPACE}", _visible(words)).split("\n"):
        start = indent if first is None or lines else first
        lines += textwrap.wrap(
            line,
            max(width, 20),
            initial_indent=start,
            subsequent_indent=indent,
            break_on_hyphens=False,
            break_long_words=False,
        )
    return "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ")


def _visible(words: str) -> str:
    """Lines stay, other control characters are seen."""
    return "\n".join(map(visible, words.split("\n")))


def _says(says: Sequence[Say], width: int) -> str:
    """Paragraphs; labels, if there are any, in a column on the left."""
    labels = [len(each.label) for each in says if each.label]
    column = max(LABELS, *(n + 2 for n in labels)) if labels else 0
    return "\n".join(filter(None, (_say(each, column, width) for each in says)))


def _say(say: Say, column: int, width: int) -> str:
    first = f"{visible(say.label):<{column}}"
    words = _wrap(say.words, width, " " * column, first) or first.rstrip()
    if not say.command:
        return words
    commands = _visible(say.command).split("\n")
    last = words.rsplit("\n", 1)[-1]
    if len(last) + 3 + max(map(len, commands)) <= width:
        gap = " " * (len(last) + 3)
        return f"{words}   " + f"\n{gap}".join(commands)
    return "\n".join([words, *(f"{' ' * column}   {each}" for each in commands)])


def _table(table: Table, detail: bool, width: int) -> str:
    """Title, header and rows; a table that is too wide for the terminal comes in blocks."""
    columns = _narrowed(printed(table, detail), width)
    title = visible(table.title)
    if not columns[0].header:
        head = columns[0]._replace(header=title, texts=[f"  {each}" for each in columns[0].texts])
        if _width([head, *columns[1:]]) <= width or len(title) <= _widest(columns[0]) + 2:
            columns, title = [head, *columns[1:]], ""
        else:
            columns[0] = head._replace(header="")
    blocks = [_block(each) for each in _blocks(columns, width)]
    return "\n".join(filter(None, [_wrap(title, width), "\n\n".join(blocks), _note(table, width)]))


def _note(table: Table, width: int) -> str:
    return _wrap(table.note, width) if table.note else ""


def _widest(part: Part) -> int:
    """Its longest line."""
    return max(len(line) for each in (part.header, *part.texts) for line in each.split("\n"))


def _width(parts: Sequence[Part]) -> int:
    return sum(map(_widest, parts)) + 2 * (len(parts) - 1)


def _narrowed(parts: list[Part], width: int) -> list[Part]:
    """Words wrapped within their columns, the widest columns first, until the table fits."""
    over = _width(parts) - width
    wordy = [_widest(part) for part in parts if part.wraps]
    if over <= 0 or not wordy:
        return parts
    caps = range(max(wordy), NARROW - 1, -1)
    fits = (cap for cap in caps if sum(max(w - cap, 0) for w in wordy) >= over)
    cap = next(fits, 2 * NARROW)
    return [_filled(part, cap) if part.wraps else part for part in parts]


def _filled(part: Part, width: int) -> Part:
    texts = ["\n".join(textwrap.wrap(each, width, break_on_hyphens=False)) for each in part.texts]
    return part._replace(texts=texts)


def _blocks(parts: list[Part], width: int) -> list[list[Part]]:
    """As many columns in each block as fit; the first column names the rows of all of them."""
    blocks = [parts[:1]]
    for part in parts[1:]:
        if len(blocks[-1]) > 1 and _width([*blocks[-1], part]) > width:
            blocks.append(parts[:1])
        blocks[-1].append(part)
    return blocks


def _block(parts: list[Part]) -> str:
    """Header and rows; a cell may have several lines."""
    widths = [_widest(part) for part in parts]
    rows = [[part.header for part in parts], *zip(*(part.texts for part in parts), strict=True)]
    lines = []
    for row in rows:
        cells = [cell.split("\n") for cell in row]
        for at in range(max(map(len, cells))):
            line = (cell[at] if at < len(cell) else "" for cell in cells)
            lines.append(_line(line, widths, parts))
    return "\n".join(lines)


def _line(cells: Iterable[str], widths: Sequence[int], parts: Sequence[Part]) -> str:
    return "  ".join(
        cell.rjust(width) if part.right else cell.ljust(width)
        for cell, width, part in zip(cells, widths, parts, strict=True)
    ).rstrip()


# --- Markdown, CSV --------------------------------------------------------------------------------


def markdown(answer: Answer, detail: bool = False) -> str:
    """For a comment or a wiki: GitHub's tables, everything else as paragraphs."""
    tables = [table for table in answer.tables if table.rows and (table.shown or detail)]
    parts = [
        f"# {_md(answer.title)}",
        _md(answer.about),
        *map(_md_say, answer.says),
        *(part for table in tables for part in _md_table(table, detail)),
        *map(_md_say, answer.notes),
        *(f"> {_md(_caution(each, answer, detail))}" for each in answer.cautions),
        *(f"> **Missed:** {_md(each)}" for each in answer.missed),
    ]
    return "\n\n".join(filter(None, parts))


def _md(words: str) -> str:
    """Other people's text is no markup."""
    return re.sub(r"([\\`*<|\[~])", r"\\\1", _visible(words))


def _md_say(say: Say) -> str:
    label = f"**{_md(say.label)}** " if say.label else ""
    words = f"{label}{_md(say.words)}".strip()
    if not say.command:
        return words
    return f"{words}\n\n```\n{_visible(say.command)}\n```"


def _md_table(table: Table, detail: bool) -> list[str]:
    parts = printed(table, detail)
    dashes = ["---:" if part.right else "---" for part in parts]
    rows = [[_md(part.header) for part in parts], dashes]
    rows += [
        [_md(" ".join(cell.split())) for cell in row]
        for row in zip(*(part.texts for part in parts), strict=True)
    ]
    body = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return [f"## {_md(table.title)}" if table.title else "", body, _md(table.note)]


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Rows as CSV: twelve digits; a text that a spreadsheet would run as a formula gets a quote."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(
        ["%.12g" % cell if type(cell) is float else _csv_cell(cell) for cell in row]  # noqa: UP031
        for row in rows  # % is twice as fast as an f-string, and a grid has 5 million cells
    )
    return out.getvalue()


def _csv_cell(cell: Any) -> Any:
    if isinstance(cell, float):
        return f"{cell:.12g}"
    formula = isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") and cell != "-"
    return f"'{cell}" if formula else cell


def to_csv(answer: Answer, detail: bool = False) -> str:
    """The first table, all of its columns, in the units of its keys; empty: not known."""
    keys, rows = answer.tables[0].flat()
    return csv_text([keys, *rows]).rstrip("\n")


# --- JSON, HTML -----------------------------------------------------------------------------------


def to_json(answer: Answer, detail: bool = False) -> str:
    return answer.to_json()


def html(answer: Answer, detail: bool = False) -> str:
    """One page: no script, nothing loaded, prints."""
    from importlib.resources import files

    from jinja2 import Environment

    from ckptcost.plot import legend, svg

    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(files("ckptcost").joinpath("page.html").read_text("utf-8"))
    tables = []
    for table in filter(lambda each: each.rows, answer.tables):
        some = replace(table, rows=table.rows[:PAGE_ROWS])
        parts = printed(some, detail=not table.shown)
        tables.append((table, parts, list(zip(*(part.texts for part in parts), strict=True))))
    return template.render(
        a=answer,
        tables=tables,
        plots=[(plot.title, svg(plot), legend(plot)) for plot in answer.plots],
        sources=_sources(answer),
        cautions=_cautions(answer),
        version=__version__,
    )


def _sources(answer: Answer) -> list[tuple[str, str]]:
    """What the figures rest on: title, publisher and address of each source."""
    from ckptcost.scenario.catalog import SHIPPED, read_toml

    figures = [each for case in answer.cases.values() for each in case.figures().values()]
    cited = {name for figure in figures for name in figure.source.split("; ") if name}
    known = read_toml(SHIPPED / "data/sources.toml") if cited else {}
    parts = ("title", "publisher", "version", "url")
    return [
        (name, ", ".join(str(known[name][part]) for part in parts if known[name].get(part)))
        for name in sorted(cited & known.keys())
    ]


WRITERS = {"text": text, "md": markdown, "csv": to_csv, "json": to_json, "html": html}
