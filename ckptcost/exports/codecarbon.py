"""CodeCarbon's emissions.csv: one row, as CodeCarbon has one a run.

Exactly its 38 columns: with one more or less CodeCarbon puts the file aside and starts another.
"""

from __future__ import annotations

from typing import Any

from ckptcost import __version__
from ckptcost.exports import Bills, Files, Subject
from ckptcost.exports.csv import text

COLUMNS = """
timestamp project_name run_id experiment_id duration emissions emissions_rate cpu_power gpu_power
ram_power cpu_energy gpu_energy ram_energy energy_consumed water_consumed country_name
country_iso_code region cloud_provider cloud_region os python_version codecarbon_version cpu_count
cpu_model gpu_count gpu_model longitude latitude ram_total_size tracking_mode
cpu_utilization_percent gpu_utilization_percent ram_utilization_percent ram_used_gb on_cloud pue
wue
""".split()  # noqa: SIM905


def write(bills: Bills) -> Files:
    found = bills.needing("CodeCarbon", "energy", "carbon")
    return {"emissions.csv": text(COLUMNS, (row(bills, each) for each in found))}


def row(bills: Bills, s: Subject) -> dict[str, Any]:
    """Energy is that of the facility, as CodeCarbon's is since 3.3; what is unknown stays empty."""
    start, end = s.period
    carbon, seconds = bills.of(s, "carbon").value, (end - start).total_seconds()
    return {
        "timestamp": end.strftime("%Y-%m-%dT%H:%M:%S"),
        "project_name": f"{s.name}/checkpoint",
        "run_id": s.id,
        "experiment_id": s.id,
        "duration": seconds,
        "emissions": carbon,
        "emissions_rate": carbon / seconds if carbon is not None else None,
        "energy_consumed": bills.of(s, "energy").value,
        "water_consumed": bills.of(s, "water").value,
        "country_name": s.words.get("country", "unknown"),
        "country_iso_code": s.words.get("country_iso3", "unknown"),
        "region": s.words.get("grid"),
        "codecarbon_version": f"ckptcost {__version__}",
        "on_cloud": "N",
        "gpu_count": s.words.get("gpus"),
        "gpu_model": s.words.get("gpu_model"),
        "tracking_mode": "plan, memo_item",
        "pue": s.words.get("pue"),
    }
