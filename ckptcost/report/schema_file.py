"""The shipped JSON Schemas, *.schema.json beside this file: `python -m ckptcost.report.schema_file` writes them."""

from __future__ import annotations

import json
from pathlib import Path

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
    return json.dumps(schema, indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    for each in DOCUMENTS:
        file_of(each).write_text(schema_text(each), encoding="utf-8")
