"""What a saved answer said, in any format, and whether it still follows from its own inputs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from itertools import zip_longest
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
NOT_COMPARED = ("schema", "tool", "command", "cases", "options", "inputs", "words", "scenarios")
"""what the answer is computed from, and what says how it was asked"""
ABSENT = "(not there)"
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
    saved = json.loads(Path(file).read_text("utf-8"))
    computed = json.loads(computed_again(document, file).to_json())
    for key in NOT_COMPARED:
        saved.pop(key, None)
        computed.pop(key, None)
    found = [*differences(saved, computed)]
    count = leaves(saved)
    verdict = f"All {count:,} numbers and texts of {file} follow from its inputs."
    why = "The same version of ckptcost wrote it, so it was changed since."
    if found:
        verdict = f"{len(found):,} of {count:,} numbers and texts do not follow from the inputs."
    if document.tool != __version__:
        why = f"It was written by ckptcost {document.tool}; this is {__version__}."
    columns = [Column("place", "where"), Column("saved", "saved"), Column("computed", "computed")]
    rows: list[list[Cell]] = [[place, _said(a), _said(b)] for place, a, b in found[:MANY]]
    more = f"and {len(found) - MANY:,} more" if len(found) > MANY else ""
    return Answer(
        "report",
        f"Does this answer follow from its inputs? {file}",
        document.title,
        [Say(verdict)],
        [Table("differences", "", columns, rows, note=more)],
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
        answer: Answer = module.answer(document.scenarios_by_case(), **document.options)
    except TypeError as error:
        problem = f"its options do not fit ({error})"
        raise InputError(problem, file, "ask the question again") from None
    return answer


Difference = tuple[str, Any, Any]
"""a place, and what is saved and computed there"""


def differences(saved: Any, computed: Any, place: str = "") -> Iterator[Difference]:
    """Leaves that are not the same, numbers within 1e-9."""
    if isinstance(saved, dict) and isinstance(computed, dict):
        for key in dict.fromkeys([*saved, *computed]):
            where = f"{place}.{key}" if place else key
            yield from differences(saved.get(key, ABSENT), computed.get(key, ABSENT), where)
    elif isinstance(saved, list) and isinstance(computed, list):
        pairs = [*zip_longest(saved, computed, fillvalue=ABSENT)]
        for name, (one, other) in zip(_names([each for each, _ in pairs]), pairs, strict=True):
            yield from differences(one, other, f"{place}[{name}]")
    elif not _same(saved, computed):
        yield place, saved, computed


def _same(saved: Any, computed: Any) -> bool:
    if {type(saved), type(computed)} <= {int, float}:
        return isclose(saved, computed, rel_tol=CLOSE, abs_tol=1e-12)
    return bool(saved == computed)


def _names(rows: list[Any]) -> list[str]:
    """Rows are named by what stands in front, as people see them, if no two have the same."""
    fronts = [next(iter(row.values()), None) if isinstance(row, dict) else None for row in rows]
    names = [each for each in fronts if isinstance(each, str) and len(each) < 40]
    unique = len(set(names)) == len(rows)
    return names if unique else [str(at) for at in range(len(rows))]


def leaves(value: Any) -> int:
    """How many numbers and texts a document holds."""
    if isinstance(value, (dict, list)):
        return sum(map(leaves, value.values() if isinstance(value, dict) else value))
    return 1


def _said(value: Any) -> str:
    """A leaf, or that there is a whole part, in few words."""
    if isinstance(value, (dict, list)):
        return f"({len(value)} entries)"
    return "not known" if value is None else str(value)
