"""What a saved answer said, in any format, and whether it still follows from its own inputs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from math import isclose
from typing import Annotated, Any, NamedTuple

from ckptcost import __version__
from ckptcost.answer import Answer, Column, Say, Table
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
    if not check:
        return document.answer()
    return checked(document, file)


class Difference(NamedTuple):
    place: str
    saved: Any
    computed: Any


def checked(document: Document, file: str) -> Answer:
    """Every number and text that does not follow from the inputs of the document."""
    saved = document.model_dump(by_alias=True, exclude_unset=True)
    computed = json.loads(computed_again(document, file).to_json())
    for key in NOT_COMPARED:
        saved.pop(key, None)
        computed.pop(key, None)
    found = [*differences(saved, computed)]
    count = sum(1 for _ in leaves(saved))
    columns = [Column("place", "where"), Column("saved", "saved"), Column("computed", "computed")]
    rows: list[list[Any]] = [
        [each.place, said(each.saved), said(each.computed)] for each in found[:MANY]
    ]
    verdict = f"All {count:,} numbers and texts of {file} follow from its inputs."
    if found:
        verdict = f"{len(found):,} of {count:,} numbers and texts do not follow from the inputs."
    more = f"and {len(found) - MANY:,} more" if len(found) > MANY else ""
    return Answer(
        "report",
        f"Does this answer follow from its inputs? {file}",
        document.title,
        [Say(verdict)],
        [Table("differences", "", columns, rows, note=more)],
        notes_on(document) if found else [],
        missed=[verdict] if found else [],
    )


def computed_again(document: Document, file: str) -> Answer:
    """The question of the document, asked again with the cases and options that it holds."""
    verb = VERBS.get(document.question)
    module: Any = None
    if verb and verb.is_question:
        module = import_module(f"ckptcost.questions.{document.question}")
    if not document.cases or not hasattr(module, "answer"):
        problem = f"an answer of {document.question} holds nothing to recompute"
        raise InputError(problem, file, "model, interval, compare, need and simulate do")
    try:
        answer: Answer = module.answer(document.scenarios_by_case(), **document.options)
    except TypeError as error:
        raise InputError(
            f"its options do not fit ({error})", file, "ask the question again"
        ) from None
    return answer


def notes_on(document: Document) -> list[Say]:
    """Why it may differ."""
    if document.tool != __version__:
        return [Say(f"It was written by ckptcost {document.tool}; this is {__version__}.")]
    return [Say("The same version of ckptcost wrote it, so it was changed since.")]


def differences(saved: Any, computed: Any, place: str = "") -> Iterator[Difference]:
    """Leaves that are not the same, numbers within 1e-9."""
    if isinstance(saved, dict) and isinstance(computed, dict):
        for key in dict.fromkeys([*saved, *computed]):
            where = f"{place}.{key}" if place else key
            yield from differences(saved.get(key, ABSENT), computed.get(key, ABSENT), where)
    elif isinstance(saved, list) and isinstance(computed, list):
        size = max(len(saved), len(computed))
        mine, its = (each + [ABSENT] * (size - len(each)) for each in (saved, computed))
        for name, one, other in zip(_names(mine), mine, its, strict=True):
            yield from differences(one, other, f"{place}[{name}]")
    elif not _same(saved, computed):
        yield Difference(place, saved, computed)


def _names(rows: list[Any]) -> list[str]:
    """Rows are named by what stands in front, as people see them, if no two have the same."""
    fronts = [next(iter(row.values()), None) if isinstance(row, dict) else None for row in rows]
    names = [each for each in fronts if isinstance(each, str) and len(each) < 40]
    unique = len(set(names)) == len(rows)
    return names if unique else [str(at) for at in range(len(rows))]


def _same(saved: Any, computed: Any) -> bool:
    kinds = {type(saved), type(computed)}
    if kinds <= {int, float}:
        return isclose(saved, computed, rel_tol=CLOSE, abs_tol=1e-12)
    return bool(saved == computed)


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (dict, list)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from leaves(each)
    else:
        yield value


def said(value: Any) -> str:
    """A leaf, or that there is a whole part, in few words."""
    if isinstance(value, (dict, list)):
        return f"({len(value)} entries)"
    return "not known" if value is None else str(value)
