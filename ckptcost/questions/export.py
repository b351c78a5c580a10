"""A saved answer as files for other software."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated

from ckptcost.answer import Answer, Cell, Column, Say, Table
from ckptcost.document import read_answer
from ckptcost.errors import InputError
from ckptcost.exports import FORMATS, MEMO
from ckptcost.exports import export as files_of
from ckptcost.questions.common import Flag


def export(
    file: Annotated[str, Flag("an answer that was saved with -f json", "FILE", place=True)] = "",
    *,
    to: Annotated[str, Flag(f"one of {', '.join(FORMATS)}", "FORMAT")] = "",
    case: Annotated[str, Flag("one case of the answer", "NAME")] = "",
    start: Annotated[str, Flag("when the run begins, e.g. 2026-11-01", "DATE")] = "",
    list: Annotated[bool, Flag("the formats, who reads them and for what")] = False,  # noqa: A002
) -> Answer | Mapping[str, str | bytes]:
    """A saved answer as files for other software. Its amounts are memo items: never add them up
    with a meter or an invoice.

    ckptcost export --list
    ckptcost model job.toml -o plan.json
    ckptcost export plan.json --to csv -o costs
    ckptcost export plan.json --to focus --case nas-hdd --start 2026-11-01 -o focus.csv
    """
    if list:
        return formats()
    if not file:
        remedy = "write e.g. ckptcost export plan.json --to csv"
        raise InputError("names no answer", "export", remedy)
    if not to:
        raise InputError("is needed", "--to", f"one of {', '.join(FORMATS)}")
    from ckptcost.exports.plan import bills_of

    try:
        begin = _instant(start) if start else None
        return files_of(bills_of(read_answer(file).answer(), case, begin), to)
    except InputError as error:
        raise error if error.where else error.at(file) from None


def formats() -> Answer:
    """What there is to export to."""
    columns = [Column("format", "format"), Column("reader", "who reads it"), Column("use", "for")]
    rows: list[list[Cell]] = [[name, each.reader, each.use] for name, each in FORMATS.items()]
    return Answer(
        "export",
        "Formats for other software",
        "",
        [Say(f"All amounts are a {MEMO}.")],
        [Table("formats", "", columns, rows)],
        [Say("Such as:", command="ckptcost export plan.json --to csv -o costs")],
    )


def _instant(start: str) -> datetime:
    """A date or an instant; UTC if no zone is given."""
    try:
        found = datetime.fromisoformat(start)
    except ValueError:
        problem = f"{start!r} is no date"
        raise InputError(problem, "--start", "write e.g. 2026-11-01") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
