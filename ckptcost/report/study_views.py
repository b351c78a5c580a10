"""A study for a terminal of 80 columns, as Markdown, and as CSV; below its tables what else there
is to say, and what it rests on."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from ckptcost.errors import UnknownName
from ckptcost.jobs.gates import Verdict
from ckptcost.present.table import columns, markdown
from ckptcost.present.words import gate_text
from ckptcost.report.build import METHOD_VERSION
from ckptcost.report.canonical import tidy
from ckptcost.report.studies.model_words import assumed_lines, basis_line, input_rows
from ckptcost.report.study import Study, Table, on_one_line, shown_cells
from ckptcost.report.to_csv import UNIT_SUFFIX, lines, safe

WIDTH = 80
MEMO = "Memo item: this energy is already in the facility's meter."
_READING = (
    "p5-p95: from drawing every ranged input at once. Energy is at the facility (PUE included). "
    "Sources: --format json, or `ckptcost catalog --sources`."
)
SIMULATED = "SIMULATED: nothing here was measured on this machine."


def _wrapped(line: str, first: str = "", rest: str = "") -> str:
    """Lines below the first that are indented are commands and stay whole, however long; so do
    paths, which somebody copies. A name without an end is broken."""
    head, *more = line.split("\n")
    path = any("/" in word for word in head.split() if len(word) > WIDTH - len(rest))
    told = [
        textwrap.fill(
            head,
            WIDTH,
            initial_indent=first,
            subsequent_indent=rest,
            break_on_hyphens=False,
            break_long_words=not path,
        )
    ]
    for each in more:
        whole = each.startswith(" ")
        fold = textwrap.fill(
            each,
            WIDTH,
            initial_indent=rest,
            subsequent_indent=rest,
            break_on_hyphens=False,
            break_long_words=False,
        )
        told.append(rest + each if whole else fold)
    return "\n".join(told)


def view(study: Study, form: str, table: str | None = None, full: bool = False) -> str:
    """As text, Markdown or CSV, which need no document; text is the answer, or all of it."""
    if form == "csv":
        return to_csv(study, table)
    if form == "md":
        return to_markdown(study)
    from ckptcost.report import brief

    return text(study) if full else brief.of_study(study)


def text(study: Study) -> str:
    """The answer in sentences, then its tables."""
    out = [
        _wrapped(study.title),
        "=" * min(len(study.title), WIDTH),
        *([SIMULATED] if study.simulated else []),
    ]
    out += [_wrapped(line) for line in study.about]
    if study.findings:
        out += ["", *(_wrapped(line, "- ", "  ") for line in study.findings)]
    for table in study.tables:
        if not table.shown or not table.rows:
            continue
        header, rows, left = shown_cells(table)
        out += ["", _wrapped(table.title), *columns(header, rows, left=left, widest=WIDTH)]
        out += [_wrapped(table.note)] if table.note else []
    if study.remarks:
        out += ["", *(_wrapped(line) for line in study.remarks)]
    if study.gates:
        out += ["", "Targets", *(_wrapped(line, "- ", "  ") for line in _gates(study.gates))]
    if study.warnings:
        out += [
            "",
            "Take care",
            *(_wrapped(f"{message} ({code})", "- ", "  ") for code, message in study.warnings),
        ]
    if study.factors:
        out += ["", _wrapped(f"{basis_line(study.factors)} Assumed, with their ranges:")]
        out += [_wrapped(line, "- ", "  ") for line in assumed_lines(study.factors)]
        out += ["", _wrapped(_READING)]
    return "\n".join(out) + "\n"


def _gates(gates: Sequence[Verdict]) -> list[str]:
    return [gate_text(verdict) for verdict in gates]


def to_markdown(study: Study) -> str:
    """The same for a pull request or a wiki."""
    out = [
        f"# {study.title}",
        "",
        *([f"**{SIMULATED}**", ""] if study.simulated else []),
        *study.about,
    ]
    if study.findings:
        out += ["", *(f"- {line}" for line in study.findings)]
    for table in study.tables:
        if not table.shown or not table.rows:
            continue
        header, rows, left = shown_cells(table)
        out += ["", f"## {table.title}", "", *markdown(header, rows, left=left)]
        out += ["", f"_{table.note.strip()}_"] if table.note else []
    if study.remarks:
        out += ["", "## Remarks", "", *(f"- {line}" for line in study.remarks)]
    if study.gates:
        out += ["", "## Targets", "", *(f"- {line}" for line in _gates(study.gates))]
    if study.warnings:
        out += [
            "",
            "## Take care",
            "",
            *(f"- `{code}` {message}" for code, message in study.warnings),
        ]
    if study.factors:
        header, rows = input_rows(study.factors)
        out += ["", "## Inputs", "", basis_line(study.factors), ""]
        out += [*markdown(header, rows, left=len(header)), "", f"Method {METHOD_VERSION}. {MEMO}"]
    return "\n".join(out) + "\n"


def to_csv(study: Study, name: str | None = None) -> str:
    """One table, the first unless another is named: raw numbers, the unit in the header, an empty
    cell where unknown."""
    table = study.tables[0] if name is None else _named(study, name)
    header = [_headed(column.id, column.unit) for column in table.columns]
    rows = [
        [_raw(row.get(column.id), column.unit) for column in table.columns] for row in table.rows
    ]
    if study.simulated:  # a column, because a comment line breaks what reads the file
        header, rows = [*header, "simulated"], [[*row, "true"] for row in rows]
    return lines([header, *rows])


def _named(study: Study, name: str) -> Table:
    known = {table.id: table for table in study.tables}
    if name not in known:
        raise UnknownName("table", name, known, where="--table")
    return known[name]


def _headed(name: str, unit: str) -> str:
    """The column's name, ending in its unit."""
    suffix = UNIT_SUFFIX.get(unit, "")
    plain = name.removesuffix("_low").removesuffix("_high")
    said = (
        not suffix
        or plain == suffix
        or plain.endswith(f"_{suffix}")
        or plain.startswith(f"{suffix}_")
    )
    return name if said else f"{name}_{suffix}"


def _raw(value: object, unit: str) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return safe(on_one_line(value))
    if value is None or isinstance(value, int):
        return value
    plain = tidy(float(value))  # type: ignore[arg-type]
    return int(plain) if unit == "count" and plain is not None and plain == int(plain) else plain
