"""More slips in hours, contracts and rows of time."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime

import numpy as np
import pytest
import statements

from ckptcost.catalog.contracts import Bought, SiteContracts, read_contracts
from ckptcost.catalog.grid_hours import GridHours, read_grid
from ckptcost.core.hourly import Steps, mean_over, width_for
from ckptcost.report.dating import dated

START = statements.START


@pytest.fixture
def file(tmp_path):
    def write(text: str, name: str = "hours.csv") -> str:
        path = tmp_path / name
        path.write_text(text, "utf-8")
        return str(path)

    return write


def grid_of(values, begin=START, step_s=3600.0):
    starts = begin + step_s * np.arange(len(values))
    return GridHours(
        Steps(starts, starts + step_s, np.array(values)),
        step_s,
        "g/kWh",
        "hours.csv",
        10,
        "ab" * 32,
    )


def contracts(*bought, residual=0.4):
    return {"usa": SiteContracts("usa", residual, tuple(bought))}


def ppa(share, factor, begin=-math.inf, end=math.inf):
    return Bought("Wind PPA", "PPA", share, factor, begin, end, "")


def of(s, name, component="gpu_wait"):
    return [
        v
        for v, c in zip(getattr(s.series, name), s.series.component, strict=True)
        if c == component
    ]


def test_the_quicker_of_two_factors_says_how_wide_rows_are():
    hourly, quick = (
        Steps(np.array([0.0, w]), np.array([w, 2 * w]), np.array([0.1, 0.2]))
        for w in (3600.0, 300.0)
    )
    assert width_for(hourly, quick) == width_for(quick, hourly) == 300.0


def test_before_the_first_step_and_in_a_gap_nothing_is_known():
    steps = Steps(np.array([3600.0, 10800.0]), np.array([7200.0, 14400.0]), np.array([0.1, 0.2]))
    found = mean_over(steps, np.array([0.0, 3600.0, 7200.0, 10800.0, 14400.0, 18000.0])).tolist()
    assert [math.isnan(each) for each in found] == [True, False, True, False, True]
    assert (found[1], found[3]) == (0.1, 0.2)


def test_a_row_in_which_nothing_changes_has_the_factor_to_the_last_digit():
    rng = np.random.default_rng(1)
    edges = START + np.cumsum(rng.uniform(1.0, 3600.0, 500))
    values = rng.uniform(0.0, 1.0, 499)
    assert mean_over(Steps(edges[:-1], edges[1:], values), edges).tolist() == values.tolist()


def test_a_byte_order_mark_before_a_comment(file):
    grid = read_grid(
        file("\ufeff# from us\ntime,gCO2eq/kWh\n2026-10-01T00:00Z,300\n2026-10-01T01:00Z,310\n")
    )
    assert grid.steps.value.tolist() == pytest.approx([0.3, 0.31])


def test_midnight_of_a_contract_is_utc_wherever_this_runs(file, monkeypatch):
    text = (
        '[[site]]\nid = "usa"\n[[site.contract]]\nname = "a"\ninstrument = "PPA"\nshare = "60'
        ' %"\nfactor = "0 g/kWh"\nfrom = 2026-01-01\n'
    )
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        (one,) = read_contracts(file(text, "contracts.toml"))["usa"].bought
    finally:
        monkeypatch.undo()
        time.tzset()
    assert one.begin_s == datetime(2026, 1, 1, tzinfo=UTC).timestamp()


def test_a_contract_that_changes_at_half_past_cuts_rows_there():
    found = dated(
        statements.statement(rows=2, begin=START),
        sites=contracts(ppa(1.0, 0.0, begin=START + 1800.0)),
    )
    assert found.series.width_s == 1800.0
    assert of(found, "market_kgco2e_per_kwh") == pytest.approx([0.4, 0.0, 0.0, 0.0])
    assert found.contracts[0].valid_from == "2026-10-01T00:30:00Z"


def test_a_factor_in_another_unit_is_no_factor_of_the_rows():
    s = statements.statement(dated=False)
    odd = [
        f.model_copy(update={"unit": "kgco2e_per_kwh"}) if f.id == "site.grid_location" else f
        for f in s.factors
    ]
    found = dated(s.model_copy(update={"factors": odd, "length_s": 3600.0}), START)
    assert of(found, "grid_kgco2e_per_kwh") == [None]
    assert of(found, "emissions_location_kgco2e") == [None]


def test_emissions_under_a_factor_that_was_given_are_modelled_and_say_what_they_rest_on():
    s = statements.statement(rows=2, begin=START)
    energy = {"rests": 3, "excludes": ["window 3"]}
    before = {"basis": "measured", "rests": 4, "excludes": []}
    lines = [
        c.model_copy(
            update={
                "energy": c.energy.model_copy(update=energy),
                "emissions_location": c.emissions_location.model_copy(update=before),
            }
        )
        for c in s.components
    ]
    lists = {"components": lines, "rests": [*s.rests, ["site.pue"], ["old"]]}
    found = dated(s.model_copy(update=lists), grid=grid_of([0.1, 0.3]))
    q = found.components[0].emissions_location
    assert (q.basis, found.rests_of(q), q.excludes) == (
        "modelled",
        ["site.grid_location", "site.pue"],
        ["window 3"],
    )


def test_a_run_with_dates_has_the_length_of_its_period():
    s = statements.statement(rows=2, begin=START).model_copy(update={"length_s": None})
    assert dated(s, grid=grid_of([0.1, 0.3])).length_s == 7200.0


def test_the_first_component_has_all_rows_and_what_is_not_known_of_it_is_null():
    s = statements.statement(
        (100.0, 0.0, 0.0, 0.0, 0.0),
        gpu_hours=(None, 0.0, 0.0, 0.0, 0.0),
        costs=(None, 0.0, 0.0, 0.0, 0.0),
        rows=3,
        begin=START,
    )
    energies = [0.0, 100.0, 0.0]
    found = dated(
        s.model_copy(update={"series": s.series.model_copy(update={"energy_kwh": energies})})
    )
    assert of(found, "energy_kwh") == energies
    assert of(found, "gpu_hours") == of(found, "cost_usd") == [None] * 3
    assert math.fsum(found.series.checkpoints) == pytest.approx(8.0)


def test_what_is_not_known_of_a_component_is_not_zero_in_hours_in_which_it_did_nothing():
    s = statements.statement(
        (100.0, 0.0, 0.0, 0.0, 0.0),
        gpu_hours=(None, 0.0, 0.0, 0.0, 0.0),
        costs=(None, 0.0, 0.0, 0.0, 0.0),
        rows=3,
        begin=START,
    )
    names = [name for name in type(s.series).model_fields if name != "width_s"]
    one = s.series.model_copy(update={name: getattr(s.series, name)[1:2] for name in names})
    found = dated(s.model_copy(update={"series": one}))
    assert of(found, "energy_kwh") == [0.0, pytest.approx(100.0 / 3), 0.0]
    assert of(found, "gpu_hours") == of(found, "cost_usd") == [None] * 3
