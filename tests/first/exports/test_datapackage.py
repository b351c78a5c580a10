"""CSV with a Data Package: what was written reads back as the statement, and frictionless finds
what is wrong with it."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import subprocess
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from statements import LINES, document, documents, export_text, factor, statement, with_fields

from ckptcost.first.exports import datapackage, tables
from ckptcost.first.exports.formats import exported
from ckptcost.first.report.document import Report
from ckptcost.first.report.parts import Source
from ckptcost.first.report.statement import QUANTITIES

FRICTIONLESS = Path(__file__).parents[3] / ".consumers" / "py" / "bin" / "frictionless"
COLUMN = {
    "energy": "energy_kwh",
    "emissions_location": "emissions_location_kgco2e",
    "emissions_market": "emissions_market_kgco2e",
    "embodied": "embodied_kgco2e",
    "gpu_time_lost": "gpu_hours",
    "cost": "cost_usd",
    "water": "water_l",
}
ODD = (
    "=1+1",
    "'=1+1",
    "''@x",
    "-1",
    "\ta",
    "\rb",
    "'tis",
    'a, "b"',
    "two\nlines",
    "one\rline",
    "<script>alert(1)</script>",
    "Zürich 東京",
    "a|b; c",
)

Texts = dict[str, str]
Row = dict[str, Any]


def written(what: Report) -> Texts:
    files = exported(what, "datapackage")
    return {
        name: (pieces if isinstance(pieces, bytes) else "".join(pieces).encode()).decode()
        for name, pieces in files.items()
    }


def _text(cell: str) -> str:
    return cell[1:] if cell[:1] == "'" and cell.lstrip("'")[:1] in tuple("=+-@\t\r") else cell


READ: dict[str, Callable[[str], Any]] = {
    "string": _text,
    "number": float,
    "datetime": datetime.fromisoformat,
    "boolean": {"true": True, "false": False}.__getitem__,
}


def read(files: Texts) -> dict[str, list[Row]]:
    """Rows of each table, by the descriptor's types; an empty cell is None."""
    tables = {}
    for resource in json.loads(files["datapackage.json"])["resources"]:
        header, *rows = csv.reader(io.StringIO(files[resource["path"]], newline=""))
        kinds = [READ[field["type"]] for field in resource["schema"]["fields"]]
        assert header == [field["name"] for field in resource["schema"]["fields"]]
        tables[resource["name"]] = [
            {
                name: None if cell == "" else kind(cell)
                for name, kind, cell in zip(header, kinds, row, strict=True)
            }
            for row in rows
        ]
    return tables


def same(a: float | None, b: float | None) -> bool:
    return a is b if a is None or b is None else math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-290)


def total(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) if known else None


def check(what: Report, files: Texts) -> None:
    """Raises where the files say something else than the statement."""
    tables = read(files)
    for s in what.statements:
        mine = {
            name: [row for row in rows if row["run_id"] == s.subject.run_id]
            for name, rows in tables.items()
        }
        assert all(row["run_name"] == s.subject.name for rows in mine.values() for row in rows)
        assert all(
            row["inventory_treatment"] == "memo_item" for rows in mine.values() for row in rows
        )
        assert all(
            row["method_version"] == s.method_version for rows in mine.values() for row in rows
        )
        assert all(row["simulated"] is s.simulated for rows in mine.values() for row in rows)
        assert all(
            row["grid_method"] == s.grid_method
            for name in ("totals", "totals_wide", "components", "intervals")
            for row in mine[name]
        )
        (sums,) = mine["totals"]
        assert same(sums["checkpoints"], s.totals.checkpoints.value)
        assert [row["component"] for row in mine["components"]] == [c.id for c in s.components]
        for quantity in QUANTITIES:
            name = COLUMN[quantity]
            stated = getattr(s.totals, quantity)
            assert same(sums[name], stated.value), f"total of {name}"
            (wide,) = mine["totals_wide"]
            assert same(wide[name], stated.value), f"wide total of {name}"
            assert (wide[f"{name}_excludes"] or "").split() == stated.excludes
            partial = bool(stated.excludes) and stated.value is not None
            assert (name in (sums["at_least"] or "").split()) == partial
            assert same(
                total([row[name] for row in mine["components"] if row["ledger"] == "marginal"]),
                stated.value,
            ), f"sum of {name}"
            for row, component in zip(mine["components"], s.components, strict=True):
                meant = getattr(component, quantity)
                assert same(row[name], meant.value), f"{name} of {component.id}"
                assert same(row[f"{name}_low"], meant.low)
                assert same(row[f"{name}_high"], meant.high)
                assert row[f"{name}_basis"] == meant.basis
                assert row[f"{name}_interval"] == meant.interval
        _check_intervals(s, mine)
        assert [row["factor_id"] for row in mine["factors"]] == [each.id for each in s.factors]
        for row, of in zip(mine["factors"], s.factors, strict=True):
            assert same(row["value"], of.value), of.id
            assert row["source_licences"] == " | ".join(
                source.licence or "" for source in of.sources
            )


def _check_intervals(s: Any, mine: dict[str, list[Row]]) -> None:
    rows = mine["intervals"]
    if s.series is None:
        assert rows == []
        return
    assert [row["component"] for row in rows] == s.series.component
    for name in (
        "energy_kwh",
        "gpu_hours",
        "cost_usd",
        "checkpoints",
        "emissions_location_kgco2e",
        "emissions_market_kgco2e",
        "embodied_kgco2e",
        "water_l",
    ):
        for row, meant in zip(rows, getattr(s.series, name), strict=True):
            assert same(row[name], meant), f"{name} at {row['start']}"
    for row, start, length in zip(rows, s.series.start, s.series.duration_s, strict=True):
        assert row["start"] == datetime.fromisoformat(start)
        assert abs((row["end"] - row["start"]) - timedelta(seconds=length)) < timedelta(
            milliseconds=1
        )
        for per_kwh, kg in (
            ("grid_kgco2e_per_kwh", "emissions_location_kgco2e"),
            ("market_kgco2e_per_kwh", "emissions_market_kgco2e"),
        ):
            if row["energy_kwh"] is not None and row[per_kwh] is not None:
                assert same(row["energy_kwh"] * row[per_kwh], row[kg]), f"{kg} at {row['start']}"
    for component in mine["components"]:
        dated = [row for row in rows if row["component"] == component["component"]]
        for name in COLUMN.values() if dated else ():
            assert same(total([row[name] for row in dated]), component[name]), (
                f"rows of {name} of {component['component']}"
            )


def edited(files: Texts, table: str, change: Callable[[str], str], rehashed: bool = True) -> Texts:
    """A table changed; with a hash that fits, as somebody would who knows that there is one."""
    text = change(files[f"{table}.csv"])
    assert text != files[f"{table}.csv"]
    package = json.loads(files["datapackage.json"])
    for resource in package["resources"]:
        if resource["name"] == table and rehashed:
            resource |= {
                "bytes": len(text.encode()),
                "hash": "sha256:" + hashlib.sha256(text.encode()).hexdigest(),
            }
    return {**files, f"{table}.csv": text, "datapackage.json": json.dumps(package)}


def cells(change: Callable[[list[list[str]]], None]) -> Callable[[str], str]:
    def on(text: str) -> str:
        rows = list(csv.reader(io.StringIO(text, newline="")))
        change(rows)
        stream = io.StringIO()
        csv.writer(stream).writerows(rows)
        return stream.getvalue()

    return on


def slip(rows: list[list[str]]) -> None:
    """kWh that are Wh."""
    at = rows[0].index("energy_kwh")
    for row in rows[1:]:
        row[at] = str(float(row[at]) * 1000) if row[at] else ""


def drop(rows: list[list[str]]) -> None:
    at = rows[0].index("cost_usd")
    for row in rows:
        del row[at]


def swap(rows: list[list[str]]) -> None:
    a, b = (rows[0].index(name) for name in ("grid_kgco2e_per_kwh", "market_kgco2e_per_kwh"))
    for row in rows[1:]:
        row[a], row[b] = row[b], row[a]


def test_the_tables_are_the_statement() -> None:
    check(document(), written(document()))


def test_two_statements_and_odd_names_stay_apart() -> None:
    what = document(
        *(statement(name=name, run_id=f"-{n}", rows=n % 3 + 1) for n, name in enumerate(ODD))
    )
    files = written(what)
    check(what, files)
    assert [row["run_name"] for row in read(files)["totals"]] == list(ODD)


def test_no_cell_of_text_begins_a_formula() -> None:
    what = document(
        *(
            statement(
                name=name, run_id=f"={n}", lines=[(f"+{line}", *rest) for line, *rest in LINES]
            )
            for n, name in enumerate(ODD)
        )
    )
    files = written(what)
    check(what, files)
    for name in ("totals", "totals_wide", "components", "intervals", "factors"):
        for row in csv.reader(io.StringIO(files[f"{name}.csv"], newline="")):
            assert not [cell for cell in row if cell[:1] in tuple("=+-@\t\r")]


def test_unknown_is_empty_and_zero_is_written() -> None:
    rows = {row["component"]: row for row in read(written(document()))["components"]}
    assert rows["storage_write"]["energy_kwh"] is None
    assert rows["retention"]["energy_kwh"] == 0.0
    assert read(written(document()))["totals_wide"][0]["energy_kwh_excludes"] == "storage_write"


def test_no_row_has_any_of_a_sum_that_is_unknown() -> None:
    """Some lines are known to be 0, and a reader's sum of them would say that all of it is."""
    known = statement()
    energy = known.totals.energy.model_copy(update={"value": None, "low": None, "high": None})
    totals = known.totals.model_copy(update={"energy": energy})
    tables = read(written(document(known.model_copy(update={"totals": totals}))))
    marginal = [row for row in tables["components"] if row["ledger"] == "marginal"]
    for row in [*tables["totals"], *tables["totals_wide"], *marginal, *tables["intervals"]]:
        assert row["energy_kwh"] is None
        assert row.get("energy_kwh_low") is None
    assert any(row["gpu_hours"] for row in marginal)


def test_the_short_totals_are_short_and_say_their_units() -> None:
    (row,) = read(written(document()))["totals"]
    assert len(row) <= 19
    assert {"energy_kwh", "cost_usd", "gpu_hours", "length_s", "emissions_location_kgco2e"} <= set(
        row
    )


def test_the_readme_names_every_column_with_unit_and_meaning() -> None:
    files = written(document())
    said = files["README.md"]
    for resource in json.loads(files["datapackage.json"])["resources"]:
        part = said.partition(f"\n## {resource['name']}\n")[2].partition("\n## ")[0]
        rows = [line.strip("| ").split(" | ") for line in part.splitlines() if "| `" in line]
        header = next(csv.reader(io.StringIO(files[resource["path"]])))
        assert [row[0].strip("`") for row in rows] == header
        for field in resource["schema"]["fields"]:
            (line,) = [each for each in part.splitlines() if f"| `{field['name']}` |" in each]
            assert line.split("|")[2].strip() == field.get("unit", "")
            assert len(line.split("|")[3].strip()) > 1


def test_without_a_market_factor_its_columns_are_empty() -> None:
    files = read(written(document(statement(market=None, grid=None))))
    assert {row["emissions_market_kgco2e"] for row in files["components"]} == {None}
    assert {row["grid_kgco2e_per_kwh"] for row in files["intervals"]} == {None}


def test_without_dates_there_are_no_intervals() -> None:
    what = document(statement(dated=False))
    files = written(what)
    check(what, files)
    assert files["intervals.csv"].splitlines()[1:] == []


def test_totals_are_no_row_of_the_components() -> None:
    lines = [row["component"] for row in read(written(document()))["components"]]
    assert lines == [*(line for line, *_ in LINES), "standing"]


def test_every_column_says_what_it_is() -> None:
    package = json.loads(written(document())["datapackage.json"])
    fields = [field for resource in package["resources"] for field in resource["schema"]["fields"]]
    assert all(field["description"] for field in fields)
    ending = {
        "_kwh": "kWh",
        "_kgco2e": "kgCO2e",
        "_usd": "USD",
        "_hours": "GPU-h",
        "_s": "s",
        "_kgco2e_per_kwh": "kgCO2e/kWh",
    }
    for field in fields:
        units = [
            unit
            for end, unit in ending.items()
            if field["name"].removesuffix("_low").removesuffix("_high").endswith(end)
            and field["type"] == "number"
        ]
        assert not units or field["unit"] in units
        assert not units or f"[{field['unit']}]" in field["description"]


def test_the_descriptor_says_who_when_and_from_where() -> None:
    package = json.loads(written(document())["datapackage.json"])
    assert package["created"] == "2029-12-31T00:00:00Z"
    assert package["ckptcost"]["tool"] == {
        "name": "ckptcost",
        "version": "0.1.0",
        "method_version": "2026.1",
    }
    assert package["sources"][0]["licence"] == "CC BY 4.0"
    assert package["ckptcost"]["statements"][0]["contracts"][0]["instrument"] == "PPA"
    assert "contributors" not in package


def test_the_same_statement_gives_the_same_bytes() -> None:
    assert written(document()) == written(document())


@given(documents())
@settings(max_examples=60)
def test_any_statement_reads_back(what: Report) -> None:
    check(what, written(what))


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("components", slip),
        ("intervals", slip),
        ("totals", slip),
        ("components", drop),
        ("intervals", drop),
        ("intervals", swap),
    ],
    ids=lambda each: each if isinstance(each, str) else each.__name__,
)
def test_a_wrong_table_does_not_read_back(
    table: str, change: Callable[[list[list[str]]], None]
) -> None:
    files = edited(written(document()), table, cells(change))
    with pytest.raises(AssertionError):
        check(document(), files)


# --- frictionless itself


@cache
def _offline() -> tuple[str, ...]:
    """In front of a command: no network, where that can be had."""
    try:
        worked = (
            subprocess.run(
                ["unshare", "-rn", "true"], capture_output=True, timeout=20, check=False
            ).returncode
            == 0
        )
    except OSError:
        worked = False
    return ("unshare", "-rn") if worked else ()


@pytest.fixture
def frictionless(tmp_path: Path) -> Callable[[Texts], tuple[bool, set[str]]]:
    """`frictionless validate` in a folder of these files: whether it finds it valid, and the kinds
    of errors."""
    if not FRICTIONLESS.is_file():
        pytest.skip("frictionless is not installed: make consumers")

    def validate(files: Texts) -> tuple[bool, set[str]]:
        for name, text in files.items():
            (tmp_path / name).write_bytes(text.encode())
        command = [*_offline(), str(FRICTIONLESS), "validate", "--json", "datapackage.json"]
        ran = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
        )
        report = json.loads(ran.stdout)
        assert (ran.returncode == 0) == report["valid"], ran.stderr
        assert len(report["tasks"]) == 5 or not report["valid"]
        return report["valid"], {
            error["type"]
            for task in report["tasks"]
            for error in [*task["errors"], *report["errors"]]
        }

    return validate


def test_frictionless_finds_it_valid(frictionless: Any) -> None:
    what = document(
        *(
            statement(
                name=name, run_id=f"-{n}", begin=1790812800.25, market=None if n % 2 else 0.12
            )
            for n, name in enumerate(ODD)
        )
    )
    assert frictionless(written(what)) == (True, set())


def test_frictionless_finds_it_valid_without_dates(frictionless: Any) -> None:
    assert frictionless(written(document(statement(dated=False)))) == (True, set())


def _cell(name: str, value: str) -> Callable[[str], str]:
    def change(rows: list[list[str]]) -> None:
        rows[1][rows[0].index(name)] = value

    return cells(change)


WRONG: dict[str, tuple[str, Callable[[str], str], bool, str]] = {
    "a cell edited by hand": ("components", _cell("energy_kwh", "1200.6"), False, "hash-count"),
    "a row twice": ("components", cells(lambda rows: rows.append(rows[-1])), True, "primary-key"),
    "a decimal comma": ("components", _cell("energy_kwh", "1200,5"), True, "type-error"),
    "a word that is none": ("components", _cell("ledger", "standing"), True, "constraint-error"),
    "a line that is gone": ("components", cells(lambda rows: rows.pop(1)), True, "foreign-key"),
    "a month 13": ("intervals", _cell("start", "2026-13-01T00:00:00Z"), True, "type-error"),
}


@pytest.mark.parametrize("case", WRONG)
def test_frictionless_finds_what_is_wrong(frictionless: Any, case: str) -> None:
    table, change, rehashed, kind = WRONG[case]
    valid, kinds = frictionless(edited(written(document()), table, change, rehashed))
    assert not valid
    assert kind in kinds


def test_what_frictionless_cannot_know_reading_back_does(frictionless: Any) -> None:
    """A slip by 1000 with a hash that fits is a valid package."""
    files = edited(written(document()), "components", cells(slip))
    assert frictionless(files) == (True, set())
    with pytest.raises(AssertionError, match="energy_kwh"):
        check(document(), files)


def package(s):
    return json.loads(export_text(s, "datapackage", "datapackage.json"))


def test_a_data_package_says_what_is_required_and_what_is_missing():
    told = package(statement())
    assert told["ckptcost"]["inventory_treatment"] == "memo_item"
    for resource, table in zip(told["resources"], tables.TABLES, strict=True):
        assert resource["schema"]["missingValues"] == [""]
        assert resource["schema"]["primaryKey"] == list(table.key)
        required = [
            f["name"]
            for f in resource["schema"]["fields"]
            if f.get("constraints", {}).get("required")
        ]
        assert required == [c.name for c in table.columns if c.required]
        assert [f.get("unit", "") for f in resource["schema"]["fields"]] == [
            c.unit for c in table.columns
        ]
        assert {"run_id", "method_version", "inventory_treatment"} <= set(required)


def test_a_data_package_carries_what_fits_no_table():
    s = statement(kind="measured")
    (told,) = package(s)["ckptcost"]["statements"]
    assert told["measurements"] == [m.model_dump(mode="json") for m in s.measurements]
    assert {
        "warnings",
        "contracts",
        "assumptions",
        "allocated",
        "functional_units",
        "boundary",
    } <= set(told)


def test_an_address_of_a_source_is_a_path_whether_secure_or_not():
    s = statement()
    sources = [
        Source(id=n, title=n, url=url)
        for n, url in (("a", "http://x.org"), ("b", "https://x.org"), ("c", "file:///etc/passwd"))
    ]
    told = package(with_fields(s, factors=[s.factors[0].model_copy(update={"sources": sources})]))[
        "sources"
    ]
    assert [each.get("path") for each in told] == ["http://x.org", "https://x.org", None]


def test_tables_hold_each_cell_in_its_column():
    s = with_fields(statement(), simulated=True)
    doc = document(s)
    totals, wide, lines, rows, factors = (table.cells(doc) for table in tables.TABLES)
    gpu = s.components[0]
    assert (lines["price_quantity"][0], lines["price_unit"][0], lines["unit_price_usd"][0]) == (
        gpu.price_qty,
        "GPU-h",
        gpu.unit_price,
    )
    assert (lines["energy_kwh"][0], lines["energy_kwh_low"][0], lines["energy_kwh_high"][0]) == (
        gpu.energy.value,
        gpu.energy.low,
        gpu.energy.high,
    )
    assert (lines["basis"][0], lines["rests_on"][0], lines["ledger"][-1]) == (
        "modelled",
        "published",
        "allocated",
    )
    assert set(totals["simulated"]) | set(lines["simulated"]) | set(rows["simulated"]) | set(
        factors["simulated"]
    ) == {True}
    assert (totals["period_start"], totals["period_end"], totals["length_s"]) == (
        [s.period_start],
        [s.period_end],
        [s.length_s],
    )
    assert totals["at_least"] == [
        "energy_kwh emissions_location_kgco2e emissions_market_kgco2e cost_usd water_l"
    ]
    assert wide["energy_kwh_excludes"] == ["storage_write"]
    assert (rows["start"][0], rows["end"][0], rows["end"][1]) == (
        "2026-10-01T00:30:00Z",
        "2026-10-01T01:00:00Z",
        "2026-10-01T02:00:00Z",
    )
    f = s.factors[0]
    assert (
        factors["value"][0],
        factors["low"][0],
        factors["high"][0],
        factors["source_licences"][0],
    ) == (
        f.value,
        f.low,
        f.high,
        "CC BY 4.0",
    )


def test_a_source_of_which_something_is_not_said_leaves_its_place_empty():
    f = factor("a.b", 1.0, "", "1").model_copy(
        update={
            "sources": [
                Source(id="a", title="A", licence="X"),
                Source(id="b", title="B"),
                Source(id="c", title="C", licence="Y"),
            ]
        }
    )
    assert tables._sources(f, "licence") == "X |  | Y"


def test_two_sources_of_one_id_are_both_told():
    s = statement()
    sources = [
        Source(id="a", title="one"),
        Source(id="a", title="two"),
        Source(id="a", title="one"),
    ]
    told = package(with_fields(s, factors=[s.factors[0].model_copy(update={"sources": sources})]))[
        "sources"
    ]
    assert [each["title"] for each in told] == ["one", "two"]


def test_columns_have_their_words_and_keys_that_other_tables_hold():
    told = {
        r["name"]: r
        for r in json.loads(export_text(statement(), "datapackage", "datapackage.json"))[
            "resources"
        ]
    }
    for table in tables.TABLES:
        enums = {
            f["name"]: f.get("constraints", {}).get("enum")
            for f in told[table.name]["schema"]["fields"]
        }
        assert enums == {c.name: list(c.choices) or None for c in table.columns}
        keys = told[table.name]["schema"].get("foreignKeys", [])
        assert (
            [k["reference"]["resource"] for k in keys] == [datapackage.KEYS[table.name][0]]
            if table.name in datapackage.KEYS
            else keys == []
        )
    assert set(datapackage.KEYS) == {"totals_wide", "components", "intervals", "factors"}


def test_rows_of_time_say_ledger_and_basis_of_their_component():
    s = statement(kind="measured")
    rows = tables.TABLES[3].cells(document(s))
    assert set(rows["ledger"]) == {"marginal"}
    assert set(rows["basis"]) == {"measured"}
