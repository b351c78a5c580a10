"""A study as text, as Markdown, and as CSV: its tables, what else there is to say, and what it
rests on."""

from __future__ import annotations

from ckptcost.first.errors import InputError, UnknownName
from ckptcost.first.present.table import markdown, sentence
from ckptcost.first.present.words import gate_text
from ckptcost.first.report import writers
from ckptcost.first.report.build import METHOD_VERSION
from ckptcost.first.report.studies.model_words import assumed_lines, basis_line, input_rows
from ckptcost.first.report.study import Column, Study, Table
from ckptcost.first.report.to_csv import lines
from ckptcost.first.report.writers import ReportPage, Section

MEMO = "Memo item: this energy is already in the facility's meter."
_READING = (
    "p5-p95: from drawing every ranged input at once. Energy is at the facility (PUE included). "
    "Sources: --format json, or `ckptcost catalog --sources`."
)
SIMULATED = "SIMULATED: nothing here was measured on this machine."


def view(study: Study, form: str, table: str | None = None, full: bool = False) -> str:
    """As text, Markdown or CSV, which need no document; text is the answer, or all of it."""
    if form == "csv":
        return to_csv(study, table)
    if form == "md":
        return to_markdown(study)
    from ckptcost.first.report import brief

    return text(study) if full else brief.of_study(study)


def _page(study: Study) -> ReportPage:
    blocks: list[writers.Block] = [
        Section("", study.findings),
        *study.tables,
        Section("Remarks", study.remarks, text_title="", points=False),
        Section("Targets", [gate_text(verdict) for verdict in study.gates]),
        Section(
            "Take care",
            [message for _, message in study.warnings],
            [code for code, _ in study.warnings],
        ),
    ]
    return ReportPage(study.title, study.about, blocks, SIMULATED if study.simulated else "")


def text(study: Study) -> str:
    """The answer in sentences, then its tables."""
    out = writers.page_text(_page(study))
    if study.factors:
        assumed = Section("", [f"{basis_line(study.factors)} Assumed, with their ranges:"])
        out += writers.text([assumed._replace(points=False)])
        out += writers.section_text(Section("", list(assumed_lines(study.factors))))
        out += writers.text([Section("", [_READING], points=False)])
    return "\n".join(out) + "\n"


def to_markdown(study: Study) -> str:
    """The same for a pull request or a wiki."""
    out = writers.page_markdown(_page(study))
    if study.factors:
        header, rows = input_rows(study.factors)
        out += ["", "## Inputs", "", sentence(basis_line(study.factors)), ""]
        out += [*markdown(header, rows, left=len(header)), "", f"Method {METHOD_VERSION}. {MEMO}"]
    return "\n".join(out) + "\n"


def to_csv(study: Study, name: str | None = None) -> str:
    """One table, the first unless another is named: raw numbers, the unit in the header, an empty
    cell where unknown."""
    if not study.tables:
        raise InputError(
            "there is no table in it", where=study.title, remedy="write it as text or Markdown"
        )
    table = study.tables[0] if name is None else _table_named(study, name)
    if study.simulated:  # a column, because a comment line breaks what reads the file
        rows = [row | {"simulated": True} for row in table.rows]
        table = table._replace(columns=(*table.columns, Column("simulated", "")), rows=rows)
    return lines(writers.csv_rows(table))


def _table_named(study: Study, name: str) -> Table:
    known = {table.id: table for table in study.tables}
    if name not in known:
        raise UnknownName("table", name, known, where="--table")
    return known[name]
