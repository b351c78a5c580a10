"""CodeCarbon's emissions.csv: its 38 columns in its order, as version 3.3.2 writes them. One more
or one less, and it starts a new file.

One row for each component of the marginal ledger whose energy and emissions are known. No total:
carbonboard adds up all rows, and several statements too, so export alternatives one by one.
Emissions are **location-based**. There is no column for market-based ones, so they are not here;
nor are embodied carbon, dollars and ranges. Statements whose grid factors count different things
are refused: carbonboard's sum of life-cycle and of combustion emissions would be neither.

Unknown is not 0. A component whose energy is unknown has no row, and other unknown cells are empty,
which pandas reads as NaN. Where CodeCarbon's own readers stop at an empty cell there is none: a
country that nobody named is the word "unknown", and energy without location-based emissions is
refused. (carbonboard 3.3.2's map of US states fails on CodeCarbon's own rows as well.)

What has no column of its own:

| column | holds |
|---|---|
| project_name | run id, "checkpoint", component |
| experiment_id | the run's name |
| timestamp | end of the period, in UTC, without a zone as CodeCarbon writes it |
| codecarbon_version | what wrote the row, and the version of the method |
| tracking_mode | what it rests on, memo item (in a meter already), what the grid's factor counts |
| region | the grid zone where no region is known |
| on_cloud | "N" also where nobody said |
| pue | what the energies contain, as CodeCarbon's do; 1 where they are the machine's own |
| water_consumed | litres for cooling on site, where the site's factor is known |
| cpu_energy, gpu_energy | hosts waiting, GPUs waiting; empty for lines of several parts |
"""

from __future__ import annotations

from typing import Any

from ckptcost.first.errors import InputError
from ckptcost.first.exports.formats import Files
from ckptcost.first.present.words import METHODS
from ckptcost.first.report.document import Report
from ckptcost.first.report.parts import Component
from ckptcost.first.report.statement import Statement, Subject, utc
from ckptcost.first.report.to_csv import lines, safe

HEADER = """
timestamp project_name run_id experiment_id duration emissions emissions_rate cpu_power gpu_power
ram_power cpu_energy gpu_energy ram_energy energy_consumed water_consumed country_name
country_iso_code region cloud_provider cloud_region os python_version codecarbon_version cpu_count
cpu_model gpu_count gpu_model longitude latitude ram_total_size tracking_mode
cpu_utilization_percent gpu_utilization_percent ram_utilization_percent ram_used_gb on_cloud pue
wue
"""
COLUMNS = HEADER.split()


def export(document: Report) -> Files:
    rows = [
        _row(document, statement, line)
        for statement in document.statements
        for line in statement.marginal()
        if _has_row(statement, line)
    ]
    _require_one_method(document)
    return {"emissions.csv": [lines([COLUMNS, *rows])]}


def _require_one_method(document: Report) -> None:
    """Raises InputError where the rows' emissions are of several methods."""
    first: dict[str, str] = {}
    for statement in document.statements:
        if any(line.emissions_location.value for line in statement.marginal()):
            first.setdefault(statement.grid_method, statement.subject.name)
    if len(first) > 1:
        counted = "; ".join(f"{name}: {METHODS[method]}" for method, name in first.items())
        raise InputError(
            "carbonboard adds up all rows, and their grid factors count different things"
            f" ({counted})",
            where="--to codecarbon",
            remedy=(
                "export them one by one, or give factors of one method: site.grid, or "
                "site.grid_location with site.grid_method"
            ),
        )


def _has_row(statement: Statement, line: Component) -> bool:
    """Whether there is a row to write. Raises InputError where a row would have energy and no
    emissions: carbonboard fails on it."""
    if line.energy.value and line.emissions_location.value is None:
        raise InputError(
            f"{statement.subject.name}: {line.id} uses energy, and its location-based emissions are"
            " unknown",
            where="--to codecarbon",
            remedy="give the grid: --grid FILE, or site.grid_location in the scenario",
        )
    return line.energy.value is not None and line.emissions_location.value is not None


def _row(document: Report, statement: Statement, line: Component) -> list[Any]:
    who, kg, length_s = statement.subject, line.emissions_location.value, _length_s(statement)
    cells: dict[str, Any] = {
        "timestamp": utc(statement.period_end or "").strftime("%Y-%m-%dT%H:%M:%S"),
        "project_name": f"{who.run_id}/checkpoint/{line.id}",
        "run_id": who.run_id,
        "experiment_id": who.name,
        "duration": length_s,
        "emissions": kg,
        "emissions_rate": None if kg is None or not length_s else kg / length_s,
        **_split(line),
        "energy_consumed": line.energy.value,
        "water_consumed": statement.amount(line, "water").value,
        **_place(who),
        **_machine(who),
        "codecarbon_version": (
            f"ckptcost {document.tool.version}, method {statement.method_version}"
        ),
        "tracking_mode": (
            f"{'SIMULATED ' * statement.simulated}{line.basis}, memo_item, grid"
            f" {statement.grid_method}"
        ),
        "pue": statement.boundary.pue if statement.boundary.pue_included_in_energy else 1.0,
    }
    found = (cells.get(column) for column in COLUMNS)
    return [safe(cell) if isinstance(cell, str) else cell for cell in found]


def _place(who: Subject) -> dict[str, Any]:
    """Of a cloud both names or none: carbonboard looks both up."""
    cloud = who.cloud_provider is not None and who.cloud_region is not None
    return {
        "country_name": who.country or "unknown",
        "country_iso_code": who.country_iso3 or "unknown",
        "region": who.region or who.grid_zone,
        "cloud_provider": who.cloud_provider if cloud else None,
        "cloud_region": who.cloud_region if cloud else None,
        "longitude": who.longitude,
        "latitude": who.latitude,
        "on_cloud": "Y" if cloud else "N",
    }


def _machine(who: Subject) -> dict[str, Any]:
    gpus = _count(who.accelerator_count)
    return {
        "os": who.os,
        "python_version": who.python,
        "cpu_count": _count(who.cpu_count),
        "cpu_model": who.cpu_model,
        "gpu_count": gpus,
        "gpu_model": f"{gpus} x {who.accelerator}" if who.accelerator and gpus else who.accelerator,
        "ram_total_size": who.ram_gb,
    }


def _split(line: Component) -> dict[str, float | None]:
    """kWh by kind of part. A host's memory is inside what its row says of the processor; other
    lines are of several parts."""
    kwh = line.energy.value
    nothing = {"cpu_energy": 0.0, "gpu_energy": 0.0, "ram_energy": 0.0}
    if kwh == 0.0:
        return {**nothing}
    if line.id == "gpu_wait":
        return {**nothing, "gpu_energy": kwh}
    if line.id == "host_wait":
        return {**nothing, "cpu_energy": kwh, "ram_energy": None}
    return {}


def _length_s(statement: Statement) -> float | None:
    if (
        statement.length_s is not None
        or statement.period_start is None
        or statement.period_end is None
    ):
        return statement.length_s
    return (utc(statement.period_end) - utc(statement.period_start)).total_seconds()


def _count(number: float | None) -> float | int | None:
    """A whole number without a point, as CodeCarbon writes it."""
    return int(number) if number is not None and number == int(number) else number
