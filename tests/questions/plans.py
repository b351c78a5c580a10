"""The job of `ckptcost init`, and what tests read off an answer."""

from __future__ import annotations

import re
from typing import Any

from ckptcost.answer import Answer, Range

JOB = """\
name = "my job"
[checkpoint]
params = "70B"
[tier]
write = "25 GB/s"
[cluster]
id = "h100-1024"
gpus = 512
gpu_price = "2.50 USD"
[failures]
mtbf = "20 h"
[policy]
mode = "async"
interval = "30 min"
[run]
work = "30 days"
"""


def words(answer: Answer) -> list[str]:
    """Every sentence that is printed outside tables."""
    paragraphs = [each.words for each in [*answer.says, *answer.notes, *answer.cautions]]
    return [s for p in paragraphs for s in re.split(r"(?<=[.:?])\s+(?=[A-Z*])", p) if s]


def cell(answer: Answer, table: str, row: int, key: str) -> Any:
    found = answer.table(table)
    return found.rows[row][[column.key for column in found.columns].index(key)]


def value(answer: Answer, table: str, row: int, key: str) -> float:
    found = cell(answer, table, row, key)
    return float(found.value if isinstance(found, Range) else found)
