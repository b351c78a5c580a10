"""The three writers of tables, and of sentences under a heading: text of 80 columns, Markdown, CSV.

Whatever an answer, a statement or a difference has to say is a page of blocks; nothing else lays
out text or Markdown, so that a name does no harm in either.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from ckptcost.first.present.table import (
    WIDTH,
    columns,
    markdown,
    on_one_line,
    plain,
    sentence,
    wrap_line,
)
from ckptcost.first.report.canonical import tidy
from ckptcost.first.report.study import NOTE, Table, shown_cells
from ckptcost.first.report.to_csv import UNIT_SUFFIX, safe


class Section(NamedTuple):
    """Sentences under a heading."""

    title: str
    lines: Sequence[str]
    codes: Sequence[str] = ()
    """beside the lines, the code of each caution"""
    text_title: str | None = None
    """another heading in text"""
    points: bool = True
    """each line is a point in text; in Markdown it always is"""


Block = Section | Table


class ReportPage(NamedTuple):
    title: str
    lead: Sequence[str]
    blocks: Sequence[Block]
    simulated: str = ""
    """what is said where no machine was measured"""


# ---- text


def page_text(page: ReportPage) -> list[str]:
    title = on_one_line(page.title)
    head = [*wrap_line(title), "=" * min(len(title), WIDTH)]
    head += [page.simulated] if page.simulated else []
    return [*head, *(line for each in page.lead for line in wrap_line(each)), *text(page.blocks)]


def text(blocks: Iterable[Block]) -> list[str]:
    """Lines of the blocks that have anything to say, each after an empty one."""
    written = [table_text(b) if isinstance(b, Table) else section_text(b) for b in blocks]
    return [line for lines in written if lines for line in ["", *lines]]


def table_text(table: Table) -> list[str]:
    if not table.shown or table.wide or not table.rows:
        return []
    below = [column.id for column in table.columns if column.unit == NOTE]
    beside = table._replace(columns=tuple(c for c in table.columns if c.id not in below))
    header, rows, left = shown_cells(beside, wide=False)
    first, *lines = columns(header, rows, left=left, widest=WIDTH)
    body = [first]
    for line, row in zip(lines, table.rows, strict=True):
        notes = (wrap_line(on_one_line(row[name]), "    ", "    ") for name in below if row[name])
        body += [line, *chain.from_iterable(notes)]
    title = wrap_line(on_one_line(table.title)) if table.title else []
    return [*title, *body, *(wrap_line(table.note) if table.note else [])]


def section_text(section: Section) -> list[str]:
    if not section.lines:
        return []
    title = section.title if section.text_title is None else section.text_title
    marks = ("- ", "  ") if section.points else ("", "")
    return [
        *(wrap_line(title) if title else []),
        *(each for line in warning_lines(section) for each in wrap_line(line, *marks)),
    ]


def warning_lines(section: Section) -> list[str]:
    """The sentences, each with its code."""
    if not section.codes:
        return list(section.lines)
    return [f"{line} ({code})" for line, code in zip(section.lines, section.codes, strict=True)]


# ---- Markdown


def page_markdown(page: ReportPage) -> list[str]:
    head = [f"# {plain(page.title)}", ""]
    head += [f"**{page.simulated}**", ""] if page.simulated else []
    return [*head, *map(sentence, page.lead), *markdown_of(page.blocks)]


def markdown_of(blocks: Iterable[Block]) -> list[str]:
    written = [table_markdown(b) if isinstance(b, Table) else section_markdown(b) for b in blocks]
    return [line for lines in written if lines for line in ["", *lines]]


def table_markdown(table: Table) -> list[str]:
    if not table.shown or not table.rows:
        return []
    header, rows, left = shown_cells(table)
    note = ["", f"_{sentence(table.note.strip())}_"] if table.note else []
    body = [*markdown(header, rows, left=left), *note]
    if table.folded:  # in HTML, where a code span would be none
        return [f"<details><summary>{plain(table.title)}</summary>", "", *body, "", "</details>"]
    return [*([f"## {sentence(table.title)}", ""] if table.title else []), *body]


def section_markdown(section: Section) -> list[str]:
    if not section.lines:
        return []
    lines = [sentence(line) for line in section.lines]
    if section.codes:
        lines = [
            f"`{on_one_line(code).replace('`', '')}` {line}"
            for line, code in zip(lines, section.codes, strict=True)
        ]
    title = [f"## {section.title}", ""] if section.title else []
    return [*title, *(f"- {line}" for line in lines)]


# ---- CSV


def csv_rows(table: Table) -> list[list[object]]:
    """Header and rows: raw numbers, the unit in the header, None where unknown."""
    held = [column for column in table.columns if not column.range_of]
    header: list[object] = [on_one_line(_csv_name(column.id, column.unit)) for column in held]
    rows = [[_csv_cell(row.get(column.id), column.unit) for column in held] for row in table.rows]
    return [header, *rows]


def _csv_name(name: str, unit: str) -> str:
    """The column's name, ending in its unit."""
    suffix = UNIT_SUFFIX.get(unit, "")
    bare = name.removesuffix("_low").removesuffix("_high")
    said = (
        not suffix or bare == suffix or bare.endswith(f"_{suffix}") or bare.startswith(f"{suffix}_")
    )
    return name if said else f"{name}_{suffix}"


def _csv_cell(value: object, unit: str) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return safe(on_one_line(value))
    if value is None or isinstance(value, int):
        return value
    bare = tidy(float(value))  # type: ignore[arg-type]
    return int(bare) if unit == "count" and bare is not None and bare == int(bare) else bare
