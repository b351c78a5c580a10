"""The energy of writing to storage: one continuous law, fitted to published watts and rates."""

from __future__ import annotations

import numpy as np
import pytest

from ckptcost.plan import draws, evaluate
from ckptcost.scenario import catalog
from ckptcost.scenario.resolve import default_figure

from .jobs import scenario

POINTS = [row for row in catalog.rows("storage_power.csv") if row["fit"] == "yes"]
ENERGY, EXPONENT = (default_figure("tier", key) for key in ("usual_energy", "usual_exponent"))
T95 = 1.943
"""Student's t of 6 degrees of freedom, one-sided 95 %"""


def test_the_shipped_figures_are_the_fit_to_the_points() -> None:
    """Least squares of log(J/B) over log(rate / 10 GB/s)."""
    watts, rate = (np.array([float(row[key]) for row in POINTS]) for key in ("watts", "write_gb_s"))
    x, y = np.log(rate / 10), np.log(watts / rate)
    design = np.column_stack([np.ones_like(x), x])
    (at_ten, slope), *_ = np.linalg.lstsq(design, y, rcond=None)
    residuals = y - at_ten - slope * x
    error = np.sqrt(np.sum(residuals**2) / (len(x) - 2) * np.linalg.inv(design.T @ design)[1, 1])
    assert len(x) - 2 == 6
    assert ENERGY.value * 1e9 == pytest.approx(np.exp(at_ten), rel=5e-3)
    assert EXPONENT.value == pytest.approx(-slope, abs=5e-3)
    ends = np.exp(at_ten + np.array([residuals.min(), residuals.max()]))
    assert (ENERGY.low * 1e9, ENERGY.high * 1e9) == pytest.approx(ends, rel=1e-2)
    assert EXPONENT.low == pytest.approx(max(0.0, -slope - T95 * error), abs=1e-2)
    assert EXPONENT.high == pytest.approx(-slope + T95 * error, abs=1e-2)


def joules_a_byte(*rates: float) -> np.ndarray:
    """Of one save, without the network, at some write rates in GB/s."""
    cases = [
        scenario("gpt4-scale-2tb", f"tier.write={rate} GB/s", "site.pue=1.0", tier="flash-shared")
        for rate in rates
    ]
    w = draws.worlds(cases)
    one = evaluate.one_save(w, evaluate.evaluate(w)[0])
    return np.asarray(one.lines["storage_write"]["energy"] / 2e12)[:, 0]


def test_the_law_falls_slowly_and_never_jumps() -> None:
    rates = np.geomspace(0.1, 2000, 60)
    energy = joules_a_byte(*(float(f"{rate:.4g}") for rate in rates))
    steps = energy[1:] / energy[:-1]
    assert np.all((steps > 0.8) & (steps < 1))
    nine, ten = joules_a_byte(9.9, 10.1)
    assert ten / nine == pytest.approx((10.1 / 9.9) ** -EXPONENT.value)
    assert joules_a_byte(10)[0] == pytest.approx(ENERGY.value)


def test_a_tier_inside_the_node_takes_its_energy_by_the_byte() -> None:
    tier = scenario("small-8b", tier="local-nvme-8xgen5").said["tier"]
    assert tier["usual_energy"].value == pytest.approx(3e-9)
    assert tier["usual_exponent"].value == 0
    drive = scenario("small-8b", tier="micron-9550").said["tier"]
    assert drive["write_energy"].value == pytest.approx(1.8e-9)
    assert "usual_energy" not in drive


@pytest.mark.parametrize("setting", ["tier.write_energy=50 J/GB", "tier.active_power=7 kW"])
def test_a_figure_of_ones_own_takes_the_place_of_the_law(setting: str) -> None:
    said = scenario("small-8b", setting, tier="nas-hdd").said["tier"]
    assert not {"usual_energy", "usual_exponent"} & said.keys()
