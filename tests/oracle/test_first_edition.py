"""Given the first edition's defaults as inputs, the second computes what the first did.

first_edition.json.gz holds 19 values of each of 1,900 cases (20 scenarios on 95 tiers) at commit
27dbac76 of the first edition, in SI units.
"""

from __future__ import annotations

import gzip
import json
import math
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from first_defaults import first_edition  # noqa: E402
from first_scenarios import SCENARIOS  # noqa: E402

from ckptcost.plan import draws, evaluate  # noqa: E402

TOTALS = ("energy", "gpu_time", "cost", "carbon", "carbon_market", "embodied", "water")
SEARCHED = {"best for dollars", "two tiers dollars", "keeps all"}
"""their own interval is searched: both searches stop where a flat least point is all rounding"""
TWO_TIERS = {"small-8b", "two tiers async", "two tiers dollars", "never"}
"""the best interval has no closed form; nor has it one tier's for money, when bytes cost rent"""
SKIPS = ("skips", "best cost")
"""the first edition's search ended in a second valley: test_skips_are_cheaper"""


@cache
def first() -> dict[str, dict[str, dict[str, float]]]:
    """By scenario, tier and measure."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for key, case in json.loads(
        gzip.decompress((HERE / "first_edition.json.gz").read_bytes())
    ).items():
        scenario, tier = key.split("|")
        found.setdefault(scenario, {})[tier] = case["point"]
    return found


def world(scenario: str) -> Any:
    """All tiers of a scenario, a row each."""
    preset, settings = SCENARIOS[scenario]
    said = [each.replace("COST", "cost") for each in settings]
    return draws.worlds([first_edition(preset, said, tier) for tier in first()[scenario]])


def measures(w: Any) -> dict[str, Any]:
    """All of them in one call, a row a tier."""
    o, _ = evaluate.evaluate(w)
    one = evaluate.one_save(w, o)
    found = {quantity: o.bill.total(quantity) for quantity in TOTALS}
    found |= {"goodput": o.goodput, "wall": o.wall, "failures": o.failures}
    found |= {"interval": o.interval, "saves": o.saves, "stall": o.rhythm.stall}
    found |= {"one_energy": one.total("energy"), "one_cost": one.total("cost")}
    for objective in ("time", "energy", "cost", "carbon"):
        found[f"best {objective}"] = evaluate.best(w, o.plan, objective)
    rows = np.shape(o.wall)[0]
    return {name: np.broadcast_to(value, (rows, 1))[:, 0] for name, value in found.items()}


def allowed(scenario: str, measure: str) -> float:
    """Relative difference: 1e-9 where nothing is searched."""
    if measure.startswith("best"):
        return 2e-6 if scenario in TWO_TIERS or measure == "best cost" else 1e-9
    if scenario in SEARCHED:
        return {"cost": 1e-9, "wall": 1e-8}.get(measure, 2e-6)
    return 1e-9


def same(ours: float, theirs: float, measure: str, tolerance: float) -> bool:
    if measure.startswith("best"):  # there is none: not known, endless, or at once
        ours, theirs = (x if math.isfinite(x) and x > 0 else math.nan for x in (ours, theirs))
    both_unknown = math.isnan(ours) and math.isnan(theirs)
    return both_unknown or math.isclose(ours, theirs, rel_tol=tolerance, abs_tol=0.0)


def test_every_case_is_there() -> None:
    cases = [case for tiers in first().values() for case in tiers.values()]
    assert first().keys() == SCENARIOS.keys()
    assert (len(cases), sum(len(case) for case in cases)) == (1900, 36100)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_same_values(scenario: str) -> None:
    with np.errstate(all="ignore"):
        ours = measures(world(scenario))
    wrong = []
    for row, (tier, case) in enumerate(first()[scenario].items()):
        assert case.keys() == ours.keys()
        for measure, value in case.items():
            tolerance = allowed(scenario, measure)
            if (scenario, measure) != SKIPS and not same(
                float(ours[measure][row]), value, measure, tolerance
            ):
                wrong.append((tier, measure, value, float(ours[measure][row])))
    assert not wrong


def test_skips_are_cheaper() -> None:
    """With when_busy = "skip" the best interval for money is at least as cheap as the first's."""
    with np.errstate(all="ignore"):
        w = world("skips")
        o, _ = evaluate.evaluate(w)
        theirs = np.array([[case["best cost"]] for case in first()["skips"].values()])
        ours = evaluate.best(w, o.plan, "cost")
        cost = [evaluate.at(w, o.plan, each).bill.total("cost") for each in (ours, theirs)]
    assert np.all(cost[0] <= cost[1] * (1 + 1e-9))
    assert np.max(1 - cost[0] / cost[1]) == pytest.approx(0.16, abs=0.01)
