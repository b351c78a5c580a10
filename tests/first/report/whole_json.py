"""A document's JSON with what it leaves out because it says nothing: for tests that look at single
keys."""

from __future__ import annotations

import json
from typing import Any

from ckptcost.first.report.document import Report


def whole(text: str | bytes) -> Any:
    """Other JSON as it is."""
    plain = json.loads(text)
    if not isinstance(plain, dict) or plain.get("schema_name") != "ckptcost.report":
        return plain
    return Report.model_validate(plain).model_dump(mode="json")
