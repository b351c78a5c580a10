"""What a saved answer said, in any format, and whether it still follows from its own inputs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from math import isclose
from pathlib import Path
from typing import Annotated, Any

from ckptcost import __version__
from ckptcost.answer import Answer, Cell, Column, Say, Table
from ckptcost.document import read_answer
from ckptcost.errors import InputError
from ckptcost.questions import VERBS
from ckptcost.questions.common import Flag
from ckptcost.reading import Document

CLOSE = 1e-9
"""relative; documents hold twelve digits"""
NOT_COMPARED = ("schema", "tool", "command", "cases", "options", "inputs", "words")
"""what the answer is computed from, and what says how it was asked"""
MANY = 20
"""differences that are listed"""


def report(
    file: Annotated[str, Flag("an answer that was saved with -f json", "FILE", place=True)],
    *,
    check: Annotated[bool, Flag("recompute it from its own inputs; exit 3 if it differs")] = False,
) -> Answer:
    """What a saved answer said; with --check, whether it follows from its inputs.

    ckptcost model job.toml -o old.json
    ckptcost report old.json
    ckptcost report old.json -o old.html
    ckptcost report old.json --check
    """
    document = read_answer(file)
    return checked(document, file) if check else document.answer()


def checked(document: Document, file: str) -> Answer:
    """Every number and text that does not follow from the inputs of the document."""
    written = Path(file).read_text("utf-8"), computed_again(document, file).to_json()
    saved, computed = (
        dict(leaves({k: v for k, v in json.loads(each).items() if k not in NOT_COMPARED}))
        for each in written
    )
    places = dict.fromkeys([*saved, *computed])
    found = [place for place in places if not same(saved.get(place), computed.get(place))]
    verdict = f"All {len(saved):,} numbers and texts of {file} follow from its inputs."
    why = "The same version of ckptcost wrote it, so it was changed since."
    if found:
        verdict = (
            f"{len(found):,} of {len(saved):,} numbers and texts do not follow from the inputs."
        )
    if document.tool != __version__:
        why = f"It was written by ckptcost {document.tool}; this is {__version__}."
    columns = [Column("place", "where"), Column("saved", "saved"), Column("computed", "computed")]
    rows: list[list[Cell]] = [
        [place, *(str(each.get(place, "(not there)")) for each in (saved, computed))]
        for place in found
    ]
    more = f"and {len(rows) - MANY:,} more" * (len(rows) > MANY)
    return Answer(
        "report",
        f"Does this answer follow from its inputs? {file}",
        document.title,
        [Say(verdict)],
        [Table("differences", "", columns, rows[:MANY], more)],
        [Say(why)] if found else [],
        missed=[verdict] if found else [],
    )


def computed_again(document: Document, file: str) -> Answer:
    """The question of the document, asked again with the cases and options that it holds."""
    module: Any = None
    if document.question in VERBS and VERBS[document.question].is_question:
        module = import_module(f"ckptcost.questions.{document.question}")
    if not document.cases or not hasattr(module, "answer"):
        problem = f"an answer of {document.question} holds nothing to recompute"
        raise InputError(problem, file, "model, interval, compare, need and simulate do")
    try:
        answer: Answer = module.answer(document.scenarios(), **document.options)
    except TypeError as error:
        problem = f"its options do not fit ({error})"
        raise InputError(problem, file, "ask the question again") from None
    return answer


def leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Every number and text of a document, by its place."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from leaves(each, f"{place}.{key}".lstrip("."))
    elif isinstance(value, list):
        for at, each in enumerate(value, 1):
            yield from leaves(each, f"{place}[{name_of(each, at)}]")
    else:
        yield place, "not known" if value is None else value


def name_of(row: Any, at: int) -> str:
    """Rows are counted, and named by what stands in front."""
    front = next(iter(row.values()), "") if isinstance(row, dict) else ""
    return f"{at} {front}" if isinstance(front, str) and 0 < len(front) < 40 else str(at)


def same(saved: Any, computed: Any) -> bool:
    if {type(saved), type(computed)} <= {int, float}:
        return isclose(saved, computed, rel_tol=CLOSE, abs_tol=1e-12)
    return bool(saved == computed)
