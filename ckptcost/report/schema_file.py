"""The shipped JSON Schema of a report, report-1.0.schema.json beside this file: `python -m ckptcost.report.schema_file` writes it."""

from __future__ import annotations

import json
from pathlib import Path

from ckptcost.report.document import Report

FILE = Path(__file__).with_name("report-1.0.schema.json")


def schema_text() -> str:
    """JSON Schema 2020-12 of the document, as the model gives it."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:ckptcost:report:1.0",
        **Report.model_json_schema(mode="serialization"),
    }
    return json.dumps(schema, indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    FILE.write_text(schema_text(), encoding="utf-8")
