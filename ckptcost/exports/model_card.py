"""Text for a model card, in the words of the EU's documentation form for general-purpose models
(Annex XI). What is unknown is written as not known. A model card's `co2_eq_emissions` is of a whole
training run, so it is not filled in with the share of its checkpoints."""

from __future__ import annotations

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
    rows = ["| asked | answer | range |", "|---|---|---|"]
    for q, words in ASKED.items():
        row = bills.of(s, q)
        unit = QUANTITIES[q].unit
        said = "not known" if row.value is None else f"{number(row.value)} {unit}"
        more = f", at least: without {row.lacks}" if row.lacks and row.value is not None else ""
        ranged = (
            ""
            if row.low is None or row.high is None
            else f"{number(row.low)} to {number(row.high)}"
        )
        rows.append(f"| {words} | {said}{more} | {ranged} |")
    return "\n".join(
        [
            f"# Checkpoints and failures: {s.name}",
            "",
            *rows,
            "",
            f"How: estimated before training, by ckptcost {bills.version}; a {MEMO}.",
        ]
    )
