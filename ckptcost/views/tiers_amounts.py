"""Which amounts of a run, or of one save, the tiers are held against each other by."""

from __future__ import annotations

from ckptcost.core.quantities import BY_OBJECTIVE, EVERYDAY

AMOUNTS = {q.column: q for q in EVERYDAY}
"""by column"""
COUNTED = {"time": "gpu_hours", **{name: q.column for name, q in BY_OBJECTIVE.items()}}
"""what the ratio to the baseline is of, by objective; lost GPU-hours stand for time, which is
nearly the same for every tier"""
RANKS = {"gpu_hours": 4, "energy_kwh": 3, "cost_usd": 2, "location_kgco2e": 5}
"""which columns give way first, but for the one that is asked about"""
