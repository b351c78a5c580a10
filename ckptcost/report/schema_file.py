"""The shipped JSON Schemas, *.schema.json beside this file: `python -m ckptcost.report.schema_file`
writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from ckptcost.report import build, diff_document, statement, study_document
from ckptcost.report.diff_document import DiffDocument
from ckptcost.report.document import Report
from ckptcost.report.statement import StatementDocument
from ckptcost.report.study_document import StudyDocument

DOCUMENTS: dict[str, type[BaseModel]] = {
    "report": Report,
    "study": StudyDocument,
    "statement": StatementDocument,
    "diff": DiffDocument,
}
"""by the last word of their schema's name"""
VERSIONS = {
    "report": build.SCHEMA_VERSION,
    "study": study_document.SCHEMA_VERSION,
    "statement": statement.SCHEMA_VERSION,
    "diff": diff_document.SCHEMA_VERSION,
}


def file_of(name: str) -> Path:
    return Path(__file__).with_name(f"{name}-{VERSIONS[name]}.schema.json")


def schema_text(name: str) -> str:
    """JSON Schema 2020-12 of a document, as the model gives it."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:ckptcost:{name}:{VERSIONS[name]}",
        **DOCUMENTS[name].model_json_schema(mode="serialization"),
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
    for each in DOCUMENTS:
        file_of(each).write_text(schema_text(each), encoding="utf-8")
