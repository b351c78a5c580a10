"""CodeCarbon's emissions.csv: what stands in it, and CodeCarbon 3.3.2 itself reading it, adding to
it, refusing it and showing it."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import statements as made
from hypothesis import given
from hypothesis import settings as runs
from statements import (
    csv_rows,
    export_text,
    quantity,
    with_fields,
    with_priced_standing,
    with_subject,
)

from ckptcost.first.errors import InputError
from ckptcost.first.exports.codecarbon import export
from ckptcost.first.exports.formats import exported
from ckptcost.first.report.document import Report
from ckptcost.first.report.statement import Statement, utc

PYTHON = Path(__file__).parents[3] / ".consumers/py/bin/python"
NUMBERS = (
    "energy_consumed",
    "emissions",
    "cpu_energy",
    "gpu_energy",
    "ram_energy",
    "duration",
    "emissions_rate",
    "pue",
)


def text_of(document: Report) -> str:
    files = export(document)
    assert list(files) == ["emissions.csv"]
    return "".join(str(piece) for piece in files["emissions.csv"])


def rows_of(text: str) -> list[dict[str, str]]:
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    assert len(header) == 38
    assert {len(row) for row in rows} <= {38}
    return [dict(zip(header, row, strict=True)) for row in rows]


def same(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-290)


def judge(text: str, document: Report) -> None:
    """The file says what the statements say: every line, in base units, sums included. Raises where
    it does not."""
    rows = rows_of(text)
    wanted = {
        (statement.subject.run_id, line.id)
        for statement in document.statements
        for line in statement.marginal()
        if line.energy.value is not None and line.emissions_location.value is not None
    }
    found = {
        (row["run_id"].removeprefix("'"), row["project_name"].rpartition("/")[2]): row
        for row in rows
    }
    assert set(found) == wanted
    assert len(rows) == len(wanted)
    for statement in document.statements:
        mine = [row for row in rows if row["run_id"].removeprefix("'") == statement.subject.run_id]
        for what, column, per_unit in (
            ("energy", "energy_consumed", 3.6e6),
            ("emissions_location", "emissions", 1000.0),
        ):
            total, partial = getattr(statement.totals, what).value, 0.0
            for line in statement.marginal():
                if (statement.subject.run_id, line.id) in wanted:
                    value = float(found[statement.subject.run_id, line.id][column])
                    assert same(value * per_unit, getattr(line, what).value * per_unit)
                    partial += value
            if mine:
                assert same(math.fsum(float(row[column]) for row in mine), total)
                if statement.series is not None:
                    series = getattr(
                        statement.series,
                        {"energy": "energy_kwh"}.get(what, "emissions_location_kgco2e"),
                    )
                    assert same(math.fsum(value for value in series if value is not None), partial)
        for row in mine:
            assert row["timestamp"] == (statement.period_end or "")[:19]
            assert same(
                float(row["duration"]),
                utc(statement.period_end or "").timestamp()
                - utc(statement.period_start or "").timestamp(),
            )
            assert same(
                float(row["emissions_rate"]) * float(row["duration"]), float(row["emissions"])
            )
            assert "memo_item" in row["tracking_mode"]
            assert statement.method_version in row["codecarbon_version"]
            parts = [
                float(row[part]) for part in ("cpu_energy", "gpu_energy", "ram_energy") if row[part]
            ]
            assert not parts or same(math.fsum(parts), float(row["energy_consumed"]))


def changed(statement: Statement, **subject: Any) -> Statement:
    return statement.model_copy(update={"subject": statement.subject.model_copy(update=subject)})


# --- what stands in it


def test_it_says_what_the_statement_says() -> None:
    document = made.document(
        made.statement(),
        made.statement((5.0, 6.0, 7.0, 8.0, 9.0), name="the other", run_id="other-1"),
    )
    judge(text_of(document), document)


@given(made.documents(dated=True))
@runs(max_examples=60)
def test_any_document(document: Report) -> None:
    kept = [
        s
        for s in document.statements
        if s.totals.energy.value is not None and s.totals.emissions_location.value is not None
    ]
    lines = [line for statement in kept for line in statement.marginal()]
    homeless = any(line.energy.value and line.emissions_location.value is None for line in lines)
    if homeless or not kept:
        with pytest.raises(InputError):
            exported(document, "codecarbon")
    else:
        text = "".join(str(piece) for piece in exported(document, "codecarbon")["emissions.csv"])
        judge(text, made.document(*kept))


def times_1000(rows: list[dict[str, str]]) -> None:
    rows[0]["energy_consumed"] = repr(float(rows[0]["energy_consumed"]) * 1000)


def market_for_location(rows: list[dict[str, str]]) -> None:
    for row in rows:
        row["emissions"] = repr(float(row["energy_consumed"]) * made.MARKET)
        row["emissions_rate"] = repr(float(row["emissions"]) / float(row["duration"]))


def without_a_row(rows: list[dict[str, str]]) -> None:
    del rows[1]


def with_a_total(rows: list[dict[str, str]]) -> None:
    rows.append({**rows[0], "project_name": "all/checkpoint/total"})


def without_a_column(rows: list[dict[str, str]]) -> None:
    for row in rows:
        del row["wue"]


def grams(rows: list[dict[str, str]]) -> None:
    for row in rows:
        row["emissions"] = repr(float(row["emissions"]) * 1000)


@pytest.mark.parametrize(
    "slip", [times_1000, market_for_location, without_a_row, with_a_total, without_a_column, grams]
)
def test_a_slip_is_seen(slip: Callable[[list[dict[str, str]]], None]) -> None:
    document = made.document()
    rows = rows_of(text_of(document))
    slip(rows)
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    with pytest.raises(AssertionError):
        judge(out.getvalue(), document)


def test_unknown_is_no_row_and_zero_is_one() -> None:
    rows = {
        row["project_name"].rpartition("/")[2]: row for row in rows_of(text_of(made.document()))
    }
    assert sorted(rows) == [
        "gpu_wait",
        "host_wait",
        "redone_work",
        "retention",
    ]  # storage_write: unknown; standing: another ledger
    assert [rows["retention"][name] for name in ("energy_consumed", "emissions", "cpu_energy")] == [
        "0.0",
        "0.0",
        "0.0",
    ]
    assert float(rows["gpu_wait"]["water_consumed"]) == 1200.5 * made.WATER
    unknown = (
        "wue",
        "cpu_power",
        "cpu_utilization_percent",
        "ram_used_gb",
        "latitude",
        "os",
    )
    assert {rows["gpu_wait"][name] for name in unknown} == {""}


def test_water_whose_sum_is_unknown_is_on_no_row() -> None:
    s = made.statement()
    water = s.totals.water.model_copy(update={"value": None, "low": None, "high": None})
    s = s.model_copy(update={"totals": s.totals.model_copy(update={"water": water})})
    assert {row["water_consumed"] for row in rows_of(text_of(made.document(s)))} == {""}


def test_whose_energy_it_was() -> None:
    rows = {
        row["project_name"].rpartition("/")[2]: row for row in rows_of(text_of(made.document()))
    }
    parts = {
        name: tuple(row[f"{part}_energy"] for part in ("cpu", "gpu", "ram"))
        for name, row in rows.items()
    }
    assert parts["gpu_wait"] == ("0.0", "1200.5", "0.0")
    assert parts["host_wait"] == ("1350.25", "0.0", "")
    assert parts["redone_work"] == ("", "", "")


def test_what_the_pue_column_means() -> None:
    statement = made.statement()
    assert rows_of(text_of(made.document(statement)))[0]["pue"] == "1.15"
    metered = statement.boundary.model_copy(update={"pue": None, "pue_included_in_energy": False})
    assert (
        rows_of(text_of(made.document(statement.model_copy(update={"boundary": metered}))))[0][
            "pue"
        ]
        == "1.0"
    )


def test_where_and_what() -> None:
    told = changed(
        made.statement(kind="measured"),
        cloud_provider="gcp",
        cloud_region="us-east4",
        region="virginia",
        latitude=-0.5,
        longitude=77.0,
        cpu_model="EPYC",
        cpu_count=192.0,
        ram_gb=2304.0,
        os="Linux",
        python="3.11.7",
    ).model_copy(update={"simulated": True})
    row = rows_of(text_of(made.document(told)))[0]
    assert [row[name] for name in ("country_name", "country_iso_code", "region", "latitude")] == [
        "United States",
        "USA",
        "virginia",
        "-0.5",
    ]
    assert [row[name] for name in ("on_cloud", "cloud_provider", "cloud_region")] == [
        "Y",
        "gcp",
        "us-east4",
    ]
    assert [row[name] for name in ("gpu_count", "gpu_model", "cpu_count")] == [
        "1024",
        "1024 x H100 SXM5 80GB",
        "192",
    ]
    assert row["tracking_mode"] == "SIMULATED measured, memo_item, grid unknown"


def test_text_that_is_no_text_to_a_spreadsheet() -> None:
    odd = changed(
        made.statement(name='=HYPERLINK("http://x"),\n<b>é</b>', run_id="-1"),
        os="@x",
        cpu_model="+1",
        region="\tx",
    )
    row = rows_of(text_of(made.document(odd)))[0]
    assert row["experiment_id"] == '\'=HYPERLINK("http://x"),\n<b>é</b>'
    assert [row[name] for name in ("run_id", "os", "cpu_model", "region")] == [
        "'-1",
        "'@x",
        "'+1",
        "'\tx",
    ]
    assert row["project_name"] == "'-1/checkpoint/gpu_wait"


def test_no_grid_is_refused_and_says_what_to_give() -> None:
    with pytest.raises(
        InputError,
        match=r"gpu_wait uses energy, and its location-based emissions are unknown.*--grid FILE",
    ):
        export(made.document(made.statement(grid=None)))


def test_nothing_known_is_refused() -> None:
    with pytest.raises(InputError, match=r"the energy of GPT-4 scale, nas-hdd is unknown"):
        exported(made.document(made.statement((None,) * 5)), "codecarbon")


def test_the_zeros_of_an_unmetered_run_are_no_rows_and_others_keep_theirs() -> None:
    """A slowdown that is known to be 0 beside waiting that nobody metered."""
    nothing = made.statement((None, None, 0.0, None, None), run_id="unmetered")
    energy = nothing.totals.energy.model_copy(update={"value": None})
    totals = nothing.totals.model_copy(update={"energy": energy})
    document = made.document(nothing.model_copy(update={"totals": totals}), made.statement())
    text = "".join(exported(document, "codecarbon")["emissions.csv"])
    assert {row["run_id"] for row in rows_of(text)} == {"3449a33ac9b5dd46-nas-hdd-100"}


def test_a_year_of_hours_is_a_few_rows() -> None:
    document = made.document(made.statement(rows=8760))
    judge(text_of(document), document)
    assert len(rows_of(text_of(document))) == 4


# --- CodeCarbon


@pytest.fixture(scope="module")
def python() -> Path:
    if not PYTHON.exists():
        pytest.skip("codecarbon is not installed: make consumers")
    return PYTHON


def apart() -> list[str]:
    """Without a network, where this machine lets us."""
    tool = shutil.which("unshare")
    return (
        [tool, "-rn"]
        if tool
        and subprocess.run([tool, "-rn", "true"], capture_output=True, check=False).returncode == 0
        else []
    )


def environment(home: Path) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("CODECARBON") and "proxy" not in name.lower()
    }
    return {**kept, "HOME": str(home), "TMPDIR": str(home), "MPLCONFIGDIR": str(home)}


READ = """
import csv, dataclasses, json, logging, sys
from codecarbon.output_methods.emissions_data import EmissionsData
from codecarbon.output_methods.file import FileOutput
names = [field.name for field in dataclasses.fields(EmissionsData)]
own = EmissionsData(**{name: 1.0 for name in names} | {"run_id": "own", "project_name": "own"})
valid = FileOutput("emissions.csv", ".").has_valid_headers(own)
mode = sys.argv[1]
if mode == "tracker":
    from codecarbon import OfflineEmissionsTracker
    tracker = OfflineEmissionsTracker(
        country_iso_code="USA", output_dir=".", project_name="own", tracking_mode="process",
        gpu_ids=[], allow_multiple_runs=True, log_level="error",
    )
    tracker.start()
    tracker.stop()
else:
    FileOutput("emissions.csv", ".", on_csv_write=mode).out(own, own)
print(json.dumps([names, valid]))
"""


def read_by_codecarbon(python: Path, folder: Path, text: str, mode: str) -> tuple[list[str], bool]:
    """CodeCarbon looks at the file and writes a row of its own; its columns, and whether ours
    are."""
    (folder / "emissions.csv").write_text(text)
    ran = subprocess.run(
        [*apart(), str(python), "-c", READ, mode],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    names, valid = json.loads(ran.stdout.strip().splitlines()[-1])
    return names, valid


@pytest.mark.parametrize("mode", ["tracker", "append", "update"])
def test_codecarbon_adds_its_row_to_ours(python: Path, tmp_path: Path, mode: str) -> None:
    document = made.document(
        made.statement(),
        made.statement((5.0, 6.0, 7.0, 8.0, 9.0), name='the "other", one', run_id="other-1"),
    )
    text = text_of(document)
    names, valid = read_by_codecarbon(python, tmp_path, text, mode)
    assert valid
    assert next(csv.reader(io.StringIO(text))) == names
    assert not list(tmp_path.glob("*.bak"))
    *ours, own = rows_of((tmp_path / "emissions.csv").read_text())
    assert own["project_name"] == "own"
    before = rows_of(text)
    assert [row["project_name"] for row in ours] == [row["project_name"] for row in before]
    for name in NUMBERS:
        assert [row[name] and float(row[name]) for row in ours] == [
            row[name] and float(row[name]) for row in before
        ]


@pytest.mark.parametrize("more", [-1, 1])
def test_codecarbon_puts_aside_a_file_of_other_columns(
    python: Path, tmp_path: Path, more: int
) -> None:
    rows = [
        [*row, "x"] if more > 0 else row[:-1]
        for row in csv.reader(io.StringIO(text_of(made.document())))
    ]
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    _, valid = read_by_codecarbon(python, tmp_path, out.getvalue(), "append")
    assert not valid
    assert [path.name for path in tmp_path.glob("*.bak")] == ["emissions.csv.bak"]
    assert [row["project_name"] for row in rows_of((tmp_path / "emissions.csv").read_text())] == [
        "own"
    ]


class Board:
    """carbonboard on a port of the loopback: the calls that its page makes."""

    def __init__(self, port: int) -> None:
        self.at = f"http://127.0.0.1:{port}"
        self.open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open

    def ask(self, path: str, body: Any = None) -> tuple[int, str]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.at + path, data, {"Content-Type": "application/json"})
        try:
            with self.open(request, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.read().decode()

    def panels(self, project: str) -> tuple[dict[str, Any], list[str]]:
        """Every callback of the page for a project: what is shown, by id and property, and the
        panels that failed."""
        shown: dict[str, Any] = {"project_name.value": project, "energy_type.value": "fossil"}
        failed = []
        for wired in json.loads(self.ask("/_dash-dependencies")[1]):
            several = wired["output"].startswith("..")
            outputs = [
                dict(zip(("id", "property"), each.rsplit(".", 1), strict=True))
                for each in wired["output"].strip(".").split("...")
            ]
            inputs = [
                {**each, "value": shown.get(f"{each['id']}.{each['property']}")}
                for each in wired["inputs"]
            ]
            body = {
                "output": wired["output"],
                "outputs": outputs if several else outputs[0],
                "inputs": inputs,
                "changedPropIds": [],
            }
            status, answer = self.ask("/_dash-update-component", body)
            if status != 200:
                failed.append(outputs[-1]["id"])
                continue
            for name, properties in json.loads(answer)["response"].items():
                shown.update({f"{name}.{key}": value for key, value in properties.items()})
        return shown, failed


@contextmanager
def carbonboard(python: Path, folder: Path, text: str) -> Iterator[Board]:
    file, log = folder / "emissions.csv", folder / "board.log"
    file.write_text(text)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with log.open("w") as said:
        board = subprocess.Popen(
            [python, "-m", "codecarbon.viz.carbonboard", f"--filepath={file}", f"--port={port}"],
            cwd=folder,
            env=environment(folder),
            stdout=said,
            stderr=subprocess.STDOUT,
        )
        try:
            shown, until = Board(port), time.monotonic() + 120
            status = 0
            while status != 200:
                assert board.poll() is None, log.read_text()
                assert time.monotonic() < until, log.read_text()
                with suppress(OSError):
                    status, _ = shown.ask("/")
                if status != 200:
                    time.sleep(0.05)
            yield shown
        finally:
            board.terminate()
            try:
                board.wait(30)
            except subprocess.TimeoutExpired:
                board.kill()
                board.wait(30)


def german(**more: Any) -> Statement:
    return changed(
        made.statement(**more),
        country="Germany",
        country_iso3="DEU",
        grid_zone="DE",
        region="Hessen",
    )


def test_carbonboard_shows_our_rows(python: Path, tmp_path: Path) -> None:
    document = made.document(
        german(), german(energies=(5.0, None, 7.0, 8.0, 9.0), name="<b>two</b>", run_id="-two")
    )
    with carbonboard(python, tmp_path, text_of(document)) as board:
        layout = json.dumps(json.loads(board.ask("/_dash-layout")[1]))
        shown, failed = board.panels("3449a33ac9b5dd46-nas-hdd-100/checkpoint/gpu_wait")
    assert failed == []
    assert "'-two/checkpoint/storage_write" in layout
    energies = [statement.totals.energy.value or 0.0 for statement in document.statements]
    emissions = [
        statement.totals.emissions_location.value or 0.0 for statement in document.statements
    ]
    assert shown["net_power_consumption.children"] == f"{sum(energies):.1f} kWh"
    assert shown["net_carbon_equivalent.children"] == f"{sum(emissions):.1f} kg"
    assert shown["project_power_consumption.children"] == "1200.5 kWh"
    assert shown["project_infrastructure_location.children"] == "Hessen, Germany"


def test_carbonboard_shows_a_run_of_which_little_is_known(python: Path, tmp_path: Path) -> None:
    bare = changed(
        made.statement(),
        country=None,
        country_iso3=None,
        grid_zone=None,
        accelerator=None,
        accelerator_count=None,
        cloud_provider="aws",
    )
    with carbonboard(python, tmp_path, text_of(made.document(bare))) as board:
        shown, failed = board.panels("3449a33ac9b5dd46-nas-hdd-100/checkpoint/host_wait")
    assert failed == []
    assert shown["project_power_consumption.children"] == "1350.2 kWh"
    assert (
        shown["project_infrastructure_location.children"] == "nan, unknown"
    )  # its word for an empty region


def test_why_a_country_is_never_empty_and_emissions_are_required(
    python: Path, tmp_path: Path
) -> None:
    """What carbonboard makes of the cells that we do not leave empty."""
    rows = rows_of(text_of(made.document(german())))
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]))
    writer.writeheader()
    writer.writerows(
        {**row, "country_iso_code": "", "emissions": "", "on_cloud": ""} for row in rows
    )
    with carbonboard(python, tmp_path, out.getvalue()) as board:
        shown, failed = board.panels(rows[0]["project_name"])
    assert shown["net_carbon_equivalent.children"] == "nan kg"
    assert {
        "household_fraction",
        "project_emissions_bar_chart",
        "regional_emissions_comparison_component",
        "cloud_recommendation",
    } <= set(failed)


def test_codecarbon_has_a_row_for_a_known_zero_without_a_grid_and_refuses_energy_without_one():
    s = made.statement((0.0, 0.0, 0.0, 0.0, 0.0), grid=None)
    for gridless in (s, made.statement(grid=None)):
        with pytest.raises(InputError, match=r"location-based emissions of .* are unknown"):
            export_text(gridless, "codecarbon")
    mixed = with_fields(
        s,
        totals=s.totals.model_copy(
            update={"emissions_location": quantity("emissions_location", 0.0)}
        ),
        components=[
            c.model_copy(update={"emissions_location": quantity("emissions_location", 0.0)})
            if c.id == "gpu_wait"
            else c
            for c in s.components
        ],
    )
    assert [
        row["project_name"].rpartition("/")[2] for row in csv_rows(export_text(mixed, "codecarbon"))
    ] == ["gpu_wait"]


def test_codecarbon_leaves_the_other_ledger_out():
    rows = csv_rows(export_text(with_priced_standing(made.statement()), "codecarbon"))
    assert "standing" not in {row["project_name"].rpartition("/")[2] for row in rows}
    gpu = rows[0]
    assert float(gpu["emissions_rate"]) * float(gpu["duration"]) == pytest.approx(
        float(gpu["emissions"])
    )
    assert gpu["tracking_mode"] == "modelled, memo_item, grid unknown"
    assert gpu["codecarbon_version"].endswith("method 2026.1")


def test_codecarbon_knows_a_cloud_by_its_region():
    (row, *_) = csv_rows(
        export_text(with_subject(made.statement(), cloud_provider="aws"), "codecarbon")
    )
    assert (row["on_cloud"], row["cloud_provider"], row["cloud_region"]) == ("N", "", "")
    (row, *_) = csv_rows(
        export_text(
            with_subject(made.statement(), cloud_provider="aws", cloud_region="us-east-1"),
            "codecarbon",
        )
    )
    assert (row["on_cloud"], row["cloud_provider"], row["cloud_region"]) == (
        "Y",
        "aws",
        "us-east-1",
    )


def test_codecarbon_cells_are_no_formulas_and_places_are_not_each_other():
    s = with_subject(
        made.statement(),
        country="=1+1",
        country_iso3="@x",
        longitude=1.0,
        latitude=2.0,
        os="+o",
        region="-r",
    )
    row, *_ = csv_rows(export_text(s, "codecarbon"))
    assert (row["country_name"], row["country_iso_code"], row["os"], row["region"]) == (
        "'=1+1",
        "'@x",
        "'+o",
        "'-r",
    )
    assert (float(row["longitude"]), float(row["latitude"])) == (1.0, 2.0)
