"""The tables of the Data Package as Parquet: typed columns, their unit and meaning in the schema.
Needs pyarrow, imported only here.

The same statement gives the same bytes, as long as pyarrow is the same. What is unknown is null.
"""

from __future__ import annotations

from typing import Any, Final

from ckptcost.first.errors import InputError, not_there
from ckptcost.first.exports.formats import Files
from ckptcost.first.exports.tables import TABLES, ExportTable, readme
from ckptcost.first.report.document import Report

COMPRESSION: Final = "zstd"


def export(document: Report) -> Files:
    arrow = _arrow()
    return {
        "README.md": [readme("parquet")],
        **{f"{table.name}.parquet": _bytes(arrow, table, document) for table in TABLES},
    }


def _arrow() -> Any:
    try:
        import pyarrow  # type: ignore[import-not-found,import-untyped,unused-ignore]
        import pyarrow.parquet  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError as error:
        remedy = "pip install 'ckptcost[parquet]'; --to datapackage writes the same tables as CSV"
        raise InputError(
            f"Parquet is written with pyarrow, which {not_there(error)}",
            where="--to parquet",
            remedy=remedy,
        ) from None
    return pyarrow


def _bytes(arrow: Any, table: ExportTable, document: Report) -> bytes:
    """Texts as dictionaries: a hundred thousand rows of ten names."""
    types = {
        "text": arrow.dictionary(arrow.int32(), arrow.string()),
        "number": arrow.float64(),
        "flag": arrow.bool_(),
        "instant": arrow.timestamp("ms", tz="UTC"),
    }
    cells = table.cells(document)
    fields, arrays = [], []
    for column in table.columns:
        said = {"description": column.what or column.name.replace("_", " ")} | (
            {"unit": column.unit} if column.unit else {}
        )
        if column.choices:
            said["enum"] = " ".join(column.choices)
        fields.append(
            arrow.field(
                column.name, types[column.kind], nullable=not column.required, metadata=said
            )
        )
        values = cells.pop(column.name)
        arrays.append(_array(arrow, column.kind, values, types[column.kind]))
    schema = arrow.schema(
        fields, {"description": table.what, "primary_key": " ".join(table.key), **_about(document)}
    )
    sink = arrow.BufferOutputStream()
    arrow.parquet.write_table(
        arrow.Table.from_arrays(arrays, schema=schema), sink, compression=COMPRESSION
    )
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _array(arrow: Any, kind: str, values: list[Any], type_: Any) -> Any:
    if kind == "text":
        return arrow.array([value or None for value in values], arrow.string()).dictionary_encode()
    if kind == "instant":
        return arrow.array(values, arrow.string()).cast(type_)
    return arrow.array(values, type_)


def _about(document: Report) -> dict[str, str]:
    """The file's own metadata, as text: Parquet has no other."""
    tool = document.tool
    return {
        "ckptcost.version": tool.version,
        "ckptcost.method_version": tool.method_version,
        "ckptcost.schema": f"{document.schema_name}/{document.schema_version}",
        "ckptcost.generated_at": document.generated_at,
        "ckptcost.inventory_treatment": "memo_item",
        "ckptcost.result_sha256": document.reproducibility.result_sha256,
        "ckptcost.simulated": "true" if any(s.simulated for s in document.statements) else "false",
    }
