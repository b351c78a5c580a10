"""Text for a model card, in the words of the EU's documentation form for general-purpose models
(Annex XI). What is unknown is written as not known. A model card's `co2_eq_emissions` is of a whole
training run, so it is not filled in with the share of its checkpoints."""

from __future__ import annotations

from ckptcost import __version__
from ckptcost.exports import MEMO, QUANTITIES, Bills, Files, Subject
from ckptcost.scenario.units import number

ASKED = {
    "energy": "Energy consumption of training: share of checkpointing and of failures",
    "gpu_time": "Computation used for training: GPU-hours that trained nothing",
    "carbon": "Emissions of that energy, location-based",
    "carbon_market": "Emissions of that energy, market-based (the same kWh, not to be added)",
    "embodied": "Embodied emissions, share of that time",
    "water": "Water for cooling, on site",
    "cost": "Cost of that time and energy",
}


def write(bills: Bills) -> Files:
    return {"model-card.md": "\n\n".join(form(bills, s) for s in bills.subjects) + "\n"}


def form(bills: Bills, s: Subject) -> str:
    rows = []
    for q, words in ASKED.items():
        row, unit = bills.of(s, q), QUANTITIES[q].unit
        said = "not known" if row.value is None else f"{number(row.value)} {unit}"
        if row.value is not None and row.lacks:
            said += f", at least: without {row.lacks}"
        ends = [number(end) for end in (row.low, row.high) if end is not None]
        rows.append(f"| {words} | {said} | {' to '.join(ends) if len(ends) == 2 else ''} |")
    return "\n".join(
        [
            f"# Checkpoints and failures: {s.name}\n",
            "| asked | answer | range |\n|---|---|---|",
            *rows,
            f"\nHow: estimated before training, by ckptcost {__version__}; a {MEMO}.",
        ]
    )
