"""The shipped JSON Schema of documents beside this file:
`python -m ckptcost.first.report.schema_file` writes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ckptcost.first.report.document import SCHEMA_VERSION, Report

FILE = Path(__file__).with_name(f"report-{SCHEMA_VERSION}.schema.json")


def schema_text() -> str:
    """JSON Schema 2020-12 of a document, as the model gives it."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:ckptcost:report:{SCHEMA_VERSION}",
        **Report.model_json_schema(mode="serialization"),
    }
    _join_lines(schema)
    return json.dumps(schema, indent=1, sort_keys=True) + "\n"


def _join_lines(part: Any) -> None:
    """Where a description's source is broken into lines says nothing to who reads the schema."""
    for value in part.values() if isinstance(part, dict) else part:
        if isinstance(value, dict | list):
            _join_lines(value)
    if isinstance(part, dict) and isinstance(told := part.get("description"), str):
        part["description"] = " ".join(told.split())


if __name__ == "__main__":
    FILE.write_text(schema_text(), encoding="utf-8")
