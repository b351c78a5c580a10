"""The rule of sums, for the lines of a document: a total is what is known, and there is none where
nothing is known or a line is missing that no sum makes sense without."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ckptcost.first.core.bill import has_no_total
from ckptcost.first.core.lines import OF_THE_JOB

if TYPE_CHECKING:
    from ckptcost.first.report.parts import Component


def is_needed(line: Component) -> bool:
    """Whether there is no sum without this line: what GPUs and hosts do, unless the document says
    otherwise of its own lines."""
    return line.id in OF_THE_JOB if line.needed is None else line.needed


def has_total(lines: Sequence[Component], what: str) -> bool:
    """Whether some of the lines add up to a total of the quantity `what`."""
    return not has_no_total((getattr(line, what).value is None, is_needed(line)) for line in lines)
