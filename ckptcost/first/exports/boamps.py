"""BoAmps: Boavizta's JSON report of the energy of one AI task. Its readers take one object a file,
so one statement a file.

`powerConsumption` is energy in kWh, whatever its name: the total of the marginal ledger. What the
model has no field for stands in words in `taskDescription`: that these kWh are a memo item, what is
unknown and not in the sum, low and high, and what it all rests on.

Choices, where the model asks for something that no statement says:

| field | is |
|---|---|
| taskStage | "checkpointing", not "training": these kWh are a part of the training's |
| infraType | "publicCloud" where a cloud is named, else "other" |
| confidentialityLevel | "internal"; there is a publisher only where an organisation is named |
| reportStatus | "draft": who publishes it decides |
| parametersNumber | in billions |
| powerSourceCarbonIntensity | location-based, gCO2e/kWh, of lines with known energy and emissions |

`quality` goes by the farther end of low and high: within 10 % is high, within 25 % medium, else
low. It is low too where a line is unknown or meters were simulated, and there is none where nobody
gave a range.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ckptcost.first.errors import InputError
from ckptcost.first.exports.formats import Files
from ckptcost.first.exports.texts import json_file, without_unknown
from ckptcost.first.present.words import METHODS
from ckptcost.first.report.document import Report
from ckptcost.first.report.parts import Factor
from ckptcost.first.report.statement import Statement, Subject, utc

VERSION, MODEL = "1.1.0", "https://github.com/Boavizta/BoAmps/tree/main/model"
"""of Boavizta's release notes, read in 2026-11"""
BANDS = ((0.10, "high"), (0.25, "medium"))


def export(document: Report) -> Files:
    if len(document.statements) > 1:
        raise InputError(
            f"BoAmps is one report a file, and here are {len(document.statements)}",
            where="--to boamps",
            remedy="choose one with --case",
        )
    return {"boamps.json": json_file(_report(document, document.statements[0]), 2)}


def _report(document: Report, statement: Statement) -> dict[str, Any]:
    who = statement.subject
    return without_unknown(
        {
            "header": _header(document, statement),
            "task": _task(statement),
            "measures": [_measure(document, statement)],
            "system": {"os": who.os} if who.os else None,
            "software": {"language": "python", "version": who.python} if who.python else None,
            "infrastructure": without_unknown(
                {
                    "infraType": "publicCloud" if who.cloud_provider else "other",
                    "cloudProvider": who.cloud_provider,
                    "components": _hardware(who),
                }
            ),
            "environment": _environment(statement) if who.country else None,
            "quality": quality(statement),
        }
    )


def _header(document: Report, statement: Statement) -> dict[str, Any]:
    who = statement.subject
    publisher = {
        "name": who.organisation,
        "division": who.team,
        "projectName": who.name,
        "confidentialityLevel": "internal",
    }
    return without_unknown(
        {
            "formatVersion": VERSION,
            "formatVersionSpecificationUri": MODEL,
            "reportId": statement.id,
            "reportDatetime": _datetime(document.generated_at),
            "reportStatus": "draft",
            "publisher": without_unknown(publisher) if who.organisation else None,
        }
    )


def _task(statement: Statement) -> dict[str, Any]:
    who, saves = statement.subject, statement.totals.checkpoints.value
    algorithm = {
        "algorithmType": "neural network",
        "parametersNumber": None if who.parameters is None else who.parameters / 1e9,
        "framework": who.framework,
    }
    tokens = {"dataUsage": "input", "dataType": "token", "dataQuantity": who.tokens}
    saved = {"dataUsage": "output", "dataType": "object", "dataQuantity": saves}
    return {
        "taskStage": "checkpointing",
        "taskFamily": "training checkpoints",
        "algorithms": [without_unknown(algorithm)],
        "dataset": [*([] if who.tokens is None else [tokens]), without_unknown(saved)],
        "taskDescription": " ".join(_in_words(statement)),
    }


def _in_words(statement: Statement) -> Iterator[str]:
    who, energy, boundary = statement.subject, statement.totals.energy, statement.boundary
    if statement.simulated:
        yield "SIMULATED: nothing here was measured."
    yield (
        f"What checkpoints and failures add to the run {who.name} ({who.run_id}), not the"
        " training itself."
    )
    yield (
        f"inventory_treatment: {boundary.inventory_treatment}; the facility's meter has these"
        " kWh already, do not add them up."
    )
    yield (
        f"Basis: {statement.kind}; {statement.how}. Method {statement.method_version}. Times"
        " are UTC."
    )
    if boundary.pue_included_in_energy and boundary.pue:
        yield f"The energy contains the facility's share, PUE {boundary.pue:g}."
    else:
        yield "The energy is the machine's own, without the facility's."
    if energy.excludes:
        yield f"Unknown, and not in the sum: {', '.join(energy.excludes)}."
    if energy.low is not None:
        upper = "no upper end" if energy.high is None else f"{energy.high!r} kWh"
        yield f"Range: {energy.low!r} kWh to {upper}; {statement.uncertainty}."
    for each in statement.factors:
        if each.id == "site.grid_location":
            yield (
                f"Grid {who.grid_zone}: {each.text}, location-based, of"
                f" {METHODS[statement.grid_method]}{_sources(each)}."
            )


def _sources(factor: Factor) -> str:
    return "".join(
        "; " + ", ".join(each for each in (of.title, of.publisher, of.licence, of.url) if each)
        for of in factor.sources
    )


def _measure(document: Report, statement: Statement) -> dict[str, Any]:
    simulated = ", meters simulated" if statement.simulated else ""
    return without_unknown(
        {
            "measurementMethod": f"ckptcost, {statement.kind}{simulated}",
            "version": f"{document.tool.version}, method {statement.method_version}",
            "cpuTrackingMode": _instruments(statement, "cpu"),
            "gpuTrackingMode": _instruments(statement, "gpu"),
            "powerConsumption": statement.totals.energy.value,
            "measurementDuration": statement.length_s,
            "measurementDateTime": _datetime(statement.period_start or ""),
        }
    )


def _instruments(statement: Statement, kind: str) -> str | None:
    found = {m.instrument for m in statement.measurements if m.id.partition(":")[0] == kind}
    return ", ".join(sorted(found)) or None


def _hardware(who: Subject) -> list[dict[str, Any]]:
    parts = [
        without_unknown({"componentName": name, "componentType": kind, "nbComponent": int(count)})
        for kind, name, count in (
            ("gpu", who.accelerator, who.accelerator_count),
            ("cpu", who.cpu_model, who.cpu_count),
        )
        if count and count == int(count)
    ]
    if who.ram_gb:
        parts.append({"componentType": "ram", "nbComponent": 1, "memorySize": who.ram_gb})
    if not parts and who.nodes and who.nodes == int(who.nodes):
        parts.append({"componentType": "node", "nbComponent": int(who.nodes)})
    if not parts:
        raise InputError(
            "BoAmps needs a count of GPUs, processors or nodes, and none is known",
            where="--to boamps",
        )
    return parts


def _intensity_g_per_kwh(statement: Statement) -> float | None:
    known = [(line.emissions_location.value, line.energy.value) for line in statement.marginal()]
    pairs = [(kg, kwh) for kg, kwh in known if kg is not None and kwh is not None]
    kwh = math.fsum(kwh for _, kwh in pairs)
    if kwh <= 0.0:
        return None
    # a sum of a thousand rows over another: what is beyond ten digits is noise
    return float(f"{math.fsum(kg for kg, _ in pairs) / kwh * 1000.0:.10g}")


def _environment(statement: Statement) -> dict[str, Any]:
    who = statement.subject
    return without_unknown(
        {
            "country": who.country,
            "latitude": who.latitude,
            "longitude": who.longitude,
            "location": who.region or who.site,
            "powerSourceCarbonIntensity": _intensity_g_per_kwh(statement),
        }
    )


def quality(statement: Statement) -> str | None:
    """The band of the energy's relative error, by BoAmps' words for it."""
    energy = statement.totals.energy
    if energy.excludes or statement.simulated:
        return "low"
    if not energy.value or energy.low is None:
        return None
    if energy.high is None:
        return "low"
    error = max(energy.value - energy.low, energy.high - energy.value) / energy.value
    return next((word for most, word in BANDS if error <= most * (1 + 1e-9)), "low")


def _datetime(instant: str) -> str:
    """As the model spells it, to the second; UTC.

    >>> _datetime("2026-11-01T00:00:00.250Z")
    '2026-11-01 00:00:00'
    """
    return utc(instant).strftime("%Y-%m-%d %H:%M:%S")
