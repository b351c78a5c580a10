"""The tables as Parquet: pyarrow and DuckDB read the statement from them, with units and
meaning."""

from __future__ import annotations

import builtins
import io
import math
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from statements import document, statement, with_fields

from ckptcost.first.errors import InputError
from ckptcost.first.exports.formats import exported
from ckptcost.first.report.document import Report
from ckptcost.first.report.statement import COLUMNS, utc

COLUMN = {
    "energy": "energy_kwh",
    "emissions_location": "emissions_location_kgco2e",
    "emissions_market": "emissions_market_kgco2e",
    "embodied": "embodied_kgco2e",
    "gpu_time_lost": "gpu_hours",
    "cost": "cost_usd",
    "water": "water_l",
}
Files = dict[str, bytes]


def written(what: Report) -> Files:
    files = exported(what, "parquet")
    return {name: content for name, content in files.items() if isinstance(content, bytes)}


def read(content: bytes) -> pa.Table:
    return pq.read_table(io.BytesIO(content))


def same(a: float | None, b: float | None) -> bool:
    return a is b if a is None or b is None else math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-290)


def check(what: Report, files: Files) -> None:
    """Raises where the files say something else than the statement."""
    tables = {
        name.removesuffix(".parquet"): read(content).to_pylist()
        for name, content in files.items()
        if name != "README.md"
    }
    assert sorted(tables) == ["components", "factors", "intervals", "totals", "totals_wide"]
    for s in what.statements:
        mine = {
            name: [row for row in rows if row["run_id"] == s.subject.run_id]
            for name, rows in tables.items()
        }
        assert all(
            row["inventory_treatment"] == "memo_item" for rows in mine.values() for row in rows
        )
        assert all(row["run_name"] == s.subject.name for rows in mine.values() for row in rows)
        (sums,) = mine["totals"]
        for quantity, name in COLUMN.items():
            known = [
                row[name]
                for row in mine["components"]
                if row["ledger"] == "marginal" and row[name] is not None
            ]
            stated = getattr(s.totals, quantity).value
            assert same(sums[name], stated), f"total of {name}"
            assert same(math.fsum(known) if known else None, stated), f"sum of {name}"
            for row, component in zip(mine["components"], s.components, strict=True):
                meant = getattr(component, quantity)
                assert [row[name], row[f"{name}_low"], row[f"{name}_high"]] == [
                    meant.value,
                    meant.low,
                    meant.high,
                ], f"{name} of {component.id}"
        rows = mine["intervals"]
        assert len(rows) == (0 if s.series is None else len(s.series.start))
        if s.series is not None:
            assert [row["start"] for row in rows] == [utc(start) for start in s.series.start]
            for name in COLUMNS[1:]:
                assert [row[name] for row in rows] == getattr(s.series, name), name
            for row in rows:
                if row["energy_kwh"] is not None and row["grid_kgco2e_per_kwh"] is not None:
                    assert same(
                        row["energy_kwh"] * row["grid_kgco2e_per_kwh"],
                        row["emissions_location_kgco2e"],
                    )
        assert [(row["factor_id"], row["value"]) for row in mine["factors"]] == [
            (factor.id, factor.value) for factor in s.factors
        ]


def edited(files: Files, name: str, change: Any) -> Files:
    sink = io.BytesIO()
    pq.write_table(change(read(files[name])), sink)
    return {**files, name: sink.getvalue()}


def slip(table: pa.Table) -> pa.Table:
    at = table.column_names.index("energy_kwh")
    return table.set_column(at, "energy_kwh", pa.compute.multiply(table["energy_kwh"], 1000.0))


def drop(table: pa.Table) -> pa.Table:
    return table.drop_columns(["cost_usd"])


def swap(table: pa.Table) -> pa.Table:
    names = {
        "grid_kgco2e_per_kwh": "market_kgco2e_per_kwh",
        "market_kgco2e_per_kwh": "grid_kgco2e_per_kwh",
    }
    return table.rename_columns([names.get(name, name) for name in table.column_names])


def test_the_tables_are_the_statement() -> None:
    what = document(
        statement(),
        statement(run_id="b", name='=1, "x"\r\n東京', market=None),
        statement(run_id="c", dated=False),
    )
    check(what, written(what))


def test_text_is_as_it_was() -> None:
    """A typed column is no spreadsheet's formula: nothing stands before it."""
    assert read(written(document(statement(name="=1+1")))["totals.parquet"])[
        "run_name"
    ].to_pylist() == ["=1+1"]


def test_columns_have_types_units_and_meaning() -> None:
    schema = read(written(document())["intervals.parquet"]).schema
    assert schema.field("start").type == pa.timestamp("ms", tz="UTC")
    assert schema.field("energy_kwh").type == pa.float64()
    assert schema.field("component").type == pa.dictionary(pa.int32(), pa.string())
    assert schema.field("simulated").type == pa.bool_()
    assert schema.field("energy_kwh").metadata == {
        b"unit": b"kWh",
        b"description": b"electricity",
    } | {
        key: value
        for key, value in schema.field("energy_kwh").metadata.items()
        if key.startswith(b"PARQUET:")
    }
    assert not schema.field("run_id").nullable
    assert all(field.metadata[b"description"] for field in schema)


def test_the_file_says_who_made_it_and_how() -> None:
    said = read(written(document())["components.parquet"]).schema.metadata
    assert said[b"ckptcost.version"] == b"0.1.0"
    assert said[b"ckptcost.method_version"] == b"2026.1"
    assert said[b"ckptcost.inventory_treatment"] == b"memo_item"
    assert said[b"ckptcost.generated_at"] == b"2029-12-31T00:00:00Z"
    assert b"never add them" in said[b"description"]


def test_unknown_is_null_and_zero_is_zero() -> None:
    rows = {
        row["component"]: row for row in read(written(document())["components.parquet"]).to_pylist()
    }
    assert rows["storage_write"]["energy_kwh"] is None
    assert rows["retention"]["energy_kwh"] == 0.0


def test_milliseconds_are_kept() -> None:
    what = document(statement(begin=1790812800.25))
    assert read(written(what)["intervals.parquet"])["start"][0].as_py() == utc(
        "2026-10-01T00:00:00.250Z"
    )


def test_the_same_statement_gives_the_same_bytes() -> None:
    assert written(document()) == written(document())


@pytest.mark.parametrize("name", ["components.parquet", "intervals.parquet", "totals.parquet"])
@pytest.mark.parametrize("change", [slip, drop])
def test_a_wrong_table_does_not_read_back(name: str, change: Any) -> None:
    with pytest.raises((AssertionError, KeyError)):
        check(document(), edited(written(document()), name, change))


def test_swapped_factors_do_not_read_back() -> None:
    with pytest.raises(AssertionError):
        check(document(), edited(written(document()), "intervals.parquet", swap))


def test_writing_the_table_again_changes_nothing() -> None:
    """What the three above rest on."""
    check(document(), edited(written(document()), "intervals.parquet", lambda table: table))


def test_without_pyarrow_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] == "pyarrow":
            raise ModuleNotFoundError("no pyarrow")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"not installed. pip install 'ckptcost\[parquet\]'"):
        exported(document(), "parquet")


# --- DuckDB itself

ASK = '''
import duckdb, json
def ask(text):
    return duckdb.sql(text).fetchall()
sums = ", ".join(f"sum({c})" for c in COLUMNS)
print(json.dumps({
    "sums": ask(f"select run_id, {sums} from 'components.parquet' where ledger = 'marginal' group by run_id order by 1"),
    "rows": ask("select run_id, component, sum(energy_kwh) from 'intervals.parquet' group by all order by 1, 2"),
    "first": ask("""select epoch_ms(min(start)), epoch_ms(max("end")) from 'intervals.parquet'"""),
    "said": dict(ask("select decode(key), decode(value) from parquet_kv_metadata('intervals.parquet')")),
    "types": [row[1] for row in ask("describe select start, energy_kwh, component, simulated from 'intervals.parquet'")],
}))
'''


def test_parquet_has_null_for_no_words_and_says_where_null_is_forbidden():
    parquet = pytest.importorskip("pyarrow.parquet")
    files = exported(
        document(statement(), with_fields(statement(run_id="b"), simulated=True)), "parquet"
    )
    found = parquet.read_table(io.BytesIO(files["components.parquet"]))
    assert found.column("energy_kwh_excludes").to_pylist() == [None] * 12
    assert not found.schema.field("run_id").nullable
    assert found.schema.field("label").nullable
    assert found.schema.metadata[b"ckptcost.simulated"] == b"true"
    assert found.schema.metadata[b"ckptcost.inventory_treatment"] == b"memo_item"
    assert found.schema.field("energy_kwh").metadata[b"unit"] == b"kWh"
