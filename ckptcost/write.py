"""An Answer as text, Markdown, CSV, JSON or HTML: a function a format, which knows no question."""

from __future__ import annotations

import csv
import io
import re
import shutil
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from ckptcost import __version__
from ckptcost.answer import Answer, Cell, Column, Say, Table
from ckptcost.cells import Part, printed
from ckptcost.document import ALL, said_in, to_json
from ckptcost.errors import visible
from ckptcost.scenario.figures import Figure

NARROWEST, WIDEST = 60, 100
LABELS, WORDS = 18, 16
"""letters of the column of labels, and at least of a column of wrapped words"""
PAGE_ROWS = 100
"""rows of a table on a page: a grid has 100,000"""


def _shown(answer: Answer, detail: bool) -> list[Table]:
    """The tables with rows; in detail all of them, what went in, and where that is from."""
    tables = [*answer.tables, *([inputs_table(answer), sources_table(answer)] if detail else [])]
    return [table for table in tables if table.rows and (table.shown or detail)]


def inputs_table(answer: Answer) -> Table:
    """Every figure of every case, as it was written or is read, with its pedigree."""
    from ckptcost.study import said_of

    keys = ("figure", "value", "range", "basis", "source", "given by", "note", "cases")
    rows: list[list[Cell]] = [
        [
            path,
            *said_of(path, f),
            f.basis,
            f.source,
            f.origin,
            f.note,
            "" if names == ALL else ", ".join(names),
        ]
        for path, f, names in sorted(said_in(answer.cases), key=lambda each: each[0])
        if isinstance(f, Figure)
    ]
    return Table("inputs", "What went in", [Column(k, k) for k in keys], rows, shown=False)


def sources_table(answer: Answer) -> Table:
    """Title, publisher and address of each source that a figure names."""
    from ckptcost.scenario.catalog import SHIPPED, read_toml

    figures = [each for case in answer.cases.values() for each in case.figures().values()]
    cited = {name for figure in figures for name in figure.source.split("; ")}
    known = read_toml(SHIPPED / "data/sources.toml") if figures else {}
    parts = ("title", "publisher", "version", "url")
    rows: list[list[Cell]] = [
        [name, ", ".join(str(known[name][part]) for part in parts if known[name].get(part))]
        for name in sorted(cited & known.keys())
    ]
    return Table(
        "sources", "Sources", [Column("source", "source"), Column("what", "")], rows, shown=False
    )


def _cautions(answer: Answer, detail: bool) -> list[Say]:
    """What it has not said already, where that holds, and the line to type; codes in detail."""
    said = " ".join(each.words for each in answer.says)
    found = []
    for each in answer.cautions:
        words, colon, command = each.words.partition(":   ")
        where, more = ", ".join(each.cases[:3]), len(each.cases) - 3
        where += f" and {more} more" if more > 0 else ""
        where = f" ({where})" if 0 < len(each.cases) < len(answer.cases) else ""
        code = f"{each.code}: " if detail else ""
        if detail or words not in said:
            found.append(Say(f"{code}{words}{where}{colon.strip()}", command=command))
    return found


# --- text -----------------------------------------------------------------------------------------


def text(answer: Answer, detail: bool = False, width: int | None = None) -> str:
    """What a person reads on a terminal."""
    width = width or shutil.get_terminal_size((80, 24)).columns
    width = min(max(width, NARROWEST), WIDEST)
    warned = _cautions(answer, detail)
    warned += [Say(f"Missed: {each}") for each in answer.missed if Say(each) not in answer.says]
    last = len(answer.notes)  # what to type next comes last, even after the cautions
    while warned and last and answer.notes[last - 1].command:
        last -= 1
    parts = [
        _says([Say(answer.title), Say(answer.about)], width),
        _says(answer.says, width),
        *(_table(each, detail, width) for each in _shown(answer, detail)),
        *(_says(each, width) for each in (answer.notes[:last], warned, answer.notes[last:])),
    ]
    return "\n\n".join(filter(None, parts))


def _says(says: Sequence[Say], width: int) -> str:
    """Paragraphs; those with a label behind a column of labels."""
    labels = [len(each.label) + 2 for each in says if each.label]
    column = max(LABELS, *labels) if labels else 0
    return "\n".join(filter(None, (_say(each, column, width) for each in says)))


def _say(say: Say, column: int, width: int) -> str:
    column *= bool(say.label)
    first = f"{visible(say.label):<{column}}"
    words = _wrap(say.words, width, first) or first.rstrip()
    if not say.command:
        return words
    commands = _visible(say.command).split("\n")
    beside = len(words.rpartition("\n")[2]) + 3
    if beside + max(map(len, commands)) <= width:
        return f"{words}   " + f"\n{' ' * beside}".join(commands)
    return "\n".join([words, *(_broken(each, width, " " * (column + 3)) for each in commands)])


UNITS = re.compile(r"(?<=\d) (?=(%|[a-z]{1,3}|days|kWh|USD|GPU-h|kgCO2e|[kMGTP]?B(/s)?)(\W|$))")
"""the space between a number and its unit, at which no line ends"""
FIRM = "\N{NO-BREAK SPACE}"


def _wrap(words: str, width: int, first: str = "") -> str:
    """Each line of the words, wrapped, behind what stands in front of the first."""
    lines: list[str] = []
    for line in UNITS.sub(FIRM, _visible(words)).split("\n"):
        lines += _lines(line, width, " " * len(first) if lines else first, " " * len(first))
    return "\n".join(lines).replace(FIRM, " ")


def _broken(command: str, width: int, indent: str) -> str:
    """A command; one that is too long goes on in lines that a shell takes for one, at flags."""
    if len(indent + command) <= width:
        return indent + command
    together = r"\"[^\"]*\"|'[^']*'|(?<!\S)--?\w\S* (?=[^ -])"
    firm = re.sub(together, lambda found: found[0].replace(" ", FIRM), command)
    return " \\\n".join(_lines(firm, width - 2, indent, f"{indent}  ")).replace(FIRM, " ")


def _lines(words: str, width: int, first: str, rest: str) -> list[str]:
    return textwrap.wrap(
        words,
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
        break_long_words=False,
    )


def _visible(words: str) -> str:
    """Lines stay, other control characters are seen."""
    return "\n".join(map(visible, words.split("\n")))


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
    blocks = [columns[:1]]  # as many columns in each as fit, behind the names of the rows
    for part in columns[1:]:
        if len(blocks[-1]) > 1 and _width([*blocks[-1], part]) > width:
            blocks.append(columns[:1])
        blocks[-1].append(part)
    body = "\n\n".join(map(_block, blocks))
    return "\n".join(filter(None, [_wrap(title, width), body, _wrap(table.note, width)]))


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
    caps = range(max(wordy), WORDS - 1, -1)
    fits = (cap for cap in caps if sum(max(w - cap, 0) for w in wordy) >= over)
    cap = next(fits, 28)
    return [_filled(part, cap) if part.wraps else part for part in parts]


def _filled(part: Part, width: int) -> Part:
    header, *texts = (
        "\n".join(textwrap.wrap(each, width, break_on_hyphens=False))
        for each in (part.header, *part.texts)
    )
    return part._replace(header=header, texts=texts)


def _block(parts: list[Part]) -> str:
    """Header and rows; a cell may have several lines."""
    widths = [_widest(part) if part.right else -_widest(part) for part in parts]
    lines = []
    for row in zip(*((part.header, *part.texts) for part in parts), strict=True):
        for cells in zip_longest(*(cell.split("\n") for cell in row), fillvalue=""):
            lines.append("  ".join(map("%*s".__mod__, zip(widths, cells, strict=True))).rstrip())
    return "\n".join(lines)


# --- Markdown, CSV --------------------------------------------------------------------------------


def markdown(answer: Answer, detail: bool = False) -> str:
    """For a comment or a wiki: GitHub's tables, everything else as paragraphs."""
    parts = [
        f"# {_md(answer.title)}",
        _md(answer.about),
        *map(_md_say, answer.says),
        *(part for table in _shown(answer, detail) for part in _md_table(table, detail)),
        *map(_md_say, answer.notes),
        *(f"> {_md(f'{x.words}   {x.command}'.rstrip())}" for x in _cautions(answer, detail)),
        *(f"> **Missed:** {_md(each)}" for each in answer.missed),
    ]
    return "\n\n".join(filter(None, parts))


def _md(words: str) -> str:
    """Other people's text is no markup."""
    return re.sub(r"([\\`*<|\[~])", r"\\\1", _visible(words))


def _md_say(say: Say) -> str:
    label = f"**{_md(say.label)}** " if say.label else ""
    command = f"\n\n```\n{_visible(say.command)}\n```" if say.command else ""
    return f"{label}{_md(say.words)}".strip() + command


def _md_table(table: Table, detail: bool) -> list[str]:
    parts = printed(table, detail)
    header, *rows = (
        f"| {' | '.join(_md(' '.join(cell.split())) for cell in row)} |"
        for row in zip(*((part.header, *part.texts) for part in parts), strict=True)
    )
    dashes = f"| {' | '.join('---:' if part.right else '---' for part in parts)} |"
    title = f"## {_md(table.title)}" if table.title else ""
    return [title, "\n".join([header, dashes, *rows]), _md(table.note)]


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Rows as CSV: twelve digits; a text that a spreadsheet would run as a formula gets a quote.
    What is not known is empty."""
    out = io.StringIO()  # % is twice as fast as an f-string, and a grid has 5 million cells
    csv.writer(out, lineterminator="\n").writerows(
        ["%.12g" % x if type(x) is float and x == x else _csv_cell(x) for x in row]  # noqa: UP031
        for row in rows
    )
    return out.getvalue()


def _csv_cell(cell: Any) -> Any:
    formula = isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") and cell != "-"
    return f"'{cell}" if formula else "" if cell != cell else cell


def to_csv(answer: Answer, detail: bool = False) -> str:
    """The first table, all of its columns, in the units of its keys; empty: not known."""
    keys, rows = answer.tables[0].flat()
    return csv_text([keys, *rows]).rstrip("\n")


# --- JSON, HTML -----------------------------------------------------------------------------------


def html(answer: Answer, detail: bool = False) -> str:
    """One page: no script, nothing loaded, prints."""
    from importlib.resources import files

    from jinja2 import Environment

    from ckptcost.plot import legend, svg

    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(files("ckptcost").joinpath("page.html").read_text("utf-8"))
    tables = []
    for table in _shown(answer, detail=True):
        some = replace(table, rows=table.rows[:PAGE_ROWS])
        parts = printed(some, detail=not table.shown)
        tables.append((table, parts, [*zip(*(part.texts for part in parts), strict=True)]))
    return template.render(
        a=answer,
        tables=tables,
        plots=[(plot.title, svg(plot), legend(plot)) for plot in answer.plots],
        cautions=_cautions(answer, detail=False),
        version=__version__,
    )


WRITERS = {
    "text": text,
    "md": markdown,
    "csv": to_csv,
    "json": lambda answer, _: to_json(answer),
    "html": html,
}
