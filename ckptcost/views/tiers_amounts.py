"""Which amounts of a run, or of one save, the tiers are held against each other by."""

from __future__ import annotations

from ckptcost.core.quantities import LineField

COUNTED = {
    "time": "gpu_hours",
    "energy": "energy_kwh",
    "usd": "cost_usd",
    "carbon": "location_kgco2e",
}
"""what the ratio to the baseline is of, by objective; lost GPU-hours stand for time, which is
nearly the same for every tier"""
UNITS = {
    "gpu_hours": "GPU-h",
    "energy_kwh": "kWh",
    "cost_usd": "USD",
    "location_kgco2e": "kgCO2e",
}
QUANTITIES: dict[str, LineField] = {
    "gpu_hours": "gpu_s",
    "energy_kwh": "energy_j",
    "cost_usd": "cost_usd",
    "location_kgco2e": "location_kgco2e",
}
"""of a bill, whose unknown lines an amount lacks"""
AMOUNTS = tuple(QUANTITIES)
"""columns"""
RANKS = {"gpu_hours": 4, "energy_kwh": 3, "cost_usd": 2, "location_kgco2e": 5}
"""which columns give way first, but for the one that is asked about"""
