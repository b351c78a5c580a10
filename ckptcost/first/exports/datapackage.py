"""CSV with a Data Package (Frictionless, version 1 of the standard): tidy tables and what
their columns mean.

Numbers are raw with a point and their unit in the column's name; an empty cell is unknown. The
descriptor has the SHA-256 of every file, so a cell edited afterwards is found; it also carries what
fits no table, under the key ckptcost. Lines end as RFC 4180 says, which is also what makes a lone
carriage return inside a name safe: Python's writer quotes only those of its own line ends.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from ckptcost.first.exports.formats import Files
from ckptcost.first.exports.tables import MEMO, TABLES, ExportColumn, ExportTable, readme
from ckptcost.first.exports.texts import json_file
from ckptcost.first.report.document import Report
from ckptcost.first.report.to_csv import safe

NEWLINE: Final = "\r\n"
DIALECT: Final = {
    "delimiter": ",",
    "lineTerminator": NEWLINE,
    "quoteChar": '"',
    "doubleQuote": True,
    "skipInitialSpace": False,
    "header": True,
}
"""in full: a reader that guesses from the first lines takes odd names for something else"""
ROWS: Final = 10_000
"""at a time: a text buffer takes four bytes a character while it grows"""
KEYS: Final[dict[str, tuple[str, list[str]]]] = {
    "components": ("totals", ["run_id"]),
    "totals_wide": ("totals", ["run_id"]),
    "intervals": ("components", ["run_id", "component"]),
    "factors": ("totals", ["run_id"]),
}
"""by table: in which other these columns must be found"""
TYPES: Final = {"text": "string", "number": "number", "instant": "datetime", "flag": "boolean"}
QUOTED: Final = (
    "A ' stands before text that begins with = + - @ tab or carriage return (or with 's and then"
    " one of these): remove one '."
)


def export(document: Report) -> Files:
    files: dict[str, Iterable[str] | bytes] = {}
    resources = []
    for table in TABLES:
        content = b"".join(_csv(table, document))
        files[f"{table.name}.csv"] = content
        resources.append(_resource(table, content))
    package = {**_package(document), "resources": resources}
    return {
        "datapackage.json": json_file(package, 1),
        "README.md": [readme("datapackage")],
        **files,
    }


def cell_of(text: str) -> str:
    """Text that no spreadsheet takes for a formula, and that can be told from text which had the '
    already.

    >>> cell_of("=1+1"), cell_of("'=1+1"), cell_of("'tis"), cell_of("nas-hdd")
    ("'=1+1", "''=1+1", "'tis", 'nas-hdd')
    """
    bare = text.lstrip("'")
    return text if safe(bare) == bare else "'" + text


def _csv(table: ExportTable, document: Report) -> Iterator[bytes]:
    cells = table.cells(document)
    rows = zip(*(_written(column, cells.pop(column.name)) for column in table.columns), strict=True)
    part: Iterable[tuple[Any, ...]] = [tuple(column.name for column in table.columns)]
    while part:
        stream = io.StringIO()
        csv.writer(stream, lineterminator=NEWLINE).writerows(part)
        yield stream.getvalue().encode()
        part = list(islice(rows, ROWS))


def _written(column: ExportColumn, cells: list[Any]) -> list[Any]:
    """Cells as the writer takes them: it prints numbers so that they read back the same, and None
    as nothing."""
    if column.kind == "text":
        texts = {text: None if text is None else cell_of(text) for text in set(cells)}
        return [texts[text] for text in cells]
    if column.kind == "flag":
        return ["true" if cell else "false" for cell in cells]
    return cells


def _resource(table: ExportTable, content: bytes) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "fields": [_field(c) for c in table.columns],
        "missingValues": [""],
        "primaryKey": list(table.key),
    }
    if table.name in KEYS:
        other, names = KEYS[table.name]
        schema["foreignKeys"] = [
            {"fields": names, "reference": {"resource": other, "fields": names}}
        ]
    return {
        "name": table.name,
        "path": f"{table.name}.csv",
        "profile": "tabular-data-resource",
        "description": table.what,
        "format": "csv",
        "mediatype": "text/csv",
        "encoding": "utf-8",
        "bytes": len(content),
        "hash": f"sha256:{hashlib.sha256(content).hexdigest()}",
        "dialect": DIALECT,
        "schema": schema,
    }


def _field(column: ExportColumn) -> dict[str, Any]:
    what = column.what or column.name.replace("_", " ")
    field: dict[str, Any] = {
        "name": column.name,
        "type": TYPES[column.kind],
        "description": f"{what} [{column.unit}]" if column.unit else what,
    }
    if column.unit:
        field["unit"] = column.unit
    constraints: dict[str, Any] = {}
    if column.required:
        constraints["required"] = True
    if column.choices:
        constraints["enum"] = list(column.choices)
    return field | ({"constraints": constraints} if constraints else {})


def _package(document: Report) -> dict[str, Any]:
    """No licence of its own: that is for whoever publishes it to say. Those of the sources are with
    the sources."""
    tool = document.tool
    return {
        "profile": "tabular-data-package",
        "name": "ckptcost",
        "title": "What checkpoints cost",
        "description": (
            f"Electricity, emissions, GPU time and cost of checkpoints. {MEMO}. {QUOTED}"
        ),
        "created": document.generated_at,
        "sources": _sources(document),
        "ckptcost": {
            "tool": {
                "name": tool.name,
                "version": tool.version,
                "method_version": tool.method_version,
            },
            "schema": f"{document.schema_name}/{document.schema_version}",
            "generated_at": document.generated_at,
            "inventory_treatment": "memo_item",
            "reproducibility": document.reproducibility.model_dump(mode="json"),
            "statements": [
                {
                    "run_id": s.subject.run_id,
                    "tags": s.subject.tags,
                    **s.model_dump(mode="json", include=_UNTABLED),
                }
                for s in document.statements
            ],
        },
    }


_UNTABLED: Final = {
    "id",
    "kind",
    "how",
    "simulated",
    "currency",
    "method_version",
    "boundary",
    "allocated",
    "functional_units",
    "contracts",
    "assumptions",
    "measurements",
    "rests",
    "uncertainty",
    "warnings",
}


def _sources(document: Report) -> list[dict[str, str]]:
    """Each once. A path must be an address there: readers take anything else for a file."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for source in (
        source for s in document.statements for factor in s.factors for source in factor.sources
    ):
        said = {key: value for key, value in source.model_dump().items() if value is not None}
        if said.get("url", "").startswith(("https://", "http://")):
            said["path"] = said["url"]
        found.setdefault((source.id, source.title), said)
    return list(found.values())
