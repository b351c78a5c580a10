"""Statements put into time: sums stay, factors of each hour apply, and what is not known stays
unknown."""

from __future__ import annotations

import math

import numpy as np
import pytest
import statements
from hypothesis import given, settings
from hypothesis import strategies as st

from ckptcost.catalog.contracts import Bought, SiteContracts
from ckptcost.catalog.grid_hours import GridHours
from ckptcost.core.hourly import Steps
from ckptcost.core.units import KWH_J
from ckptcost.errors import InputError
from ckptcost.report.dating import dated, start_of
from ckptcost.report.statement import COLUMNS, QUANTITIES, utc

START = statements.START
KG = ("emissions_location_kgco2e", "emissions_market_kgco2e")


def plan(**said):
    return statements.statement(dated=False, **said)


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


def contracts(*bought, residual=0.4, site="usa"):
    return {site: SiteContracts(site, residual, tuple(bought))}


def ppa(share, factor, begin=-math.inf, end=math.inf):
    return Bought("Wind PPA", "PPA", share, factor, begin, end, "")


def column(s, name, component=None):
    return [
        v
        for v, c in zip(getattr(s.series, name), s.series.component, strict=True)
        if component in (None, c)
    ]


def total(values):
    return math.fsum(v for v in values if v is not None)


def check_sums(s):
    """Rows add up to components and components to totals; each row's kilograms are its energy times
    its factor."""
    names = {
        "energy": "energy_kwh",
        "gpu_time_lost": "gpu_hours",
        "cost": "cost_usd",
        "embodied": "embodied_kgco2e",
        "emissions_location": KG[0],
        "emissions_market": KG[1],
    }
    for what, name in names.items():
        for c in s.marginal():
            value = getattr(c, what).value
            rows = column(s, name, c.id)
            if value is None:
                assert all(v is None for v in rows)
            else:
                assert total(rows) == pytest.approx(value, rel=1e-9, abs=1e-12)
        known = [getattr(c, what).value for c in s.marginal() if getattr(c, what).value is not None]
        if getattr(s.totals, what).value is not None:
            assert getattr(s.totals, what).value == pytest.approx(
                math.fsum(known), rel=1e-9, abs=1e-12
            )
    for n in range(len(s.series.start)):
        for factor, kg in (("grid_kgco2e_per_kwh", KG[0]), ("market_kgco2e_per_kwh", KG[1])):
            energy, by, said = (
                s.series.energy_kwh[n],
                getattr(s.series, factor)[n],
                getattr(s.series, kg)[n],
            )
            assert (said is None) == (energy is None or by is None)
            if said is not None:
                assert said == pytest.approx(energy * by, rel=1e-12)


def test_a_plan_gets_rows_on_the_hour_and_keeps_its_sums():
    s = dated(plan(), START + 1200.0)
    assert s.series.width_s == 3600.0
    assert s.series.start[:2] == ["2026-10-01T00:20:00Z", "2026-10-01T01:00:00Z"]
    assert s.series.duration_s[:2] == [2400.0, 3600.0]
    assert utc(s.period_end).timestamp() - utc(s.period_start).timestamp() == pytest.approx(
        s.length_s, abs=1e-3
    )
    check_sums(s)
    assert total(s.series.checkpoints) == pytest.approx(8.0)
    before = plan()
    for what in QUANTITIES:
        assert getattr(s.totals, what) == getattr(
            before.totals, what
        )  # without other factors nothing changes
    assert {len(getattr(s.series, name)) for name in COLUMNS} == {len(s.series.start)}


def test_no_component_is_unknown_and_zero_at_once():
    s = dated(
        plan(
            energies=(None, 0.0, 5.0, None, 0.0),
            gpu_hours=(1.0, 0.0, 0.0, 0.0, 0.0),
            costs=(None,) * 5,
        ),
        START,
    )
    assert set(s.series.component) == {
        "gpu_wait",
        "storage_write",
    }  # the others took nothing, or nobody knows
    assert column(s, "energy_kwh", "gpu_wait") == [None] * len(column(s, "energy_kwh", "gpu_wait"))
    check_sums(s)


def test_each_hour_has_its_own_factor():
    s = statements.statement(rows=4, begin=START)
    found = dated(s, grid=grid_of([0.1, 0.2, 0.3, 0.4]))
    rows = column(found, "emissions_location_kgco2e", "gpu_wait")
    assert rows == pytest.approx([1200.5 / 4 * factor for factor in (0.1, 0.2, 0.3, 0.4)])
    assert column(found, "grid_kgco2e_per_kwh", "gpu_wait") == pytest.approx([0.1, 0.2, 0.3, 0.4])
    gpu = found.components[0]
    assert gpu.emissions_location.value == pytest.approx(1200.5 * 0.25)
    assert gpu.emissions_location.low == pytest.approx(gpu.energy.low * 0.25)
    assert (
        gpu.emissions_market == s.components[0].emissions_market
    )  # the market is another question
    factor = next(f for f in found.factors if f.id == "site.grid_location")
    assert factor.value * KWH_J == pytest.approx(0.25)
    assert (factor.origin, factor.sources[0].title) == ("user", "hours.csv")
    assert found.totals.energy == s.totals.energy
    check_sums(found)


def test_five_minute_factors_make_five_minute_rows():
    s = statements.statement(rows=2, begin=START)
    found = dated(s, grid=grid_of([0.1, 0.5] * 12, step_s=300.0))
    assert found.series.width_s == 300.0
    assert column(found, "duration_s", "gpu_wait") == [300.0] * 24
    assert found.components[0].emissions_location.value == pytest.approx(1200.5 * 0.3)
    check_sums(found)


def test_factors_that_change_at_half_past():
    s = statements.statement(rows=2, begin=START)
    found = dated(s, grid=grid_of([0.1, 0.2, 0.3], begin=START - 1800.0))
    assert found.series.width_s == 1800.0
    assert column(found, "grid_kgco2e_per_kwh", "gpu_wait") == pytest.approx([0.1, 0.2, 0.2, 0.3])
    check_sums(found)


def test_hours_without_a_factor_are_refused_and_named():
    s = statements.statement(rows=4, begin=START)
    with pytest.raises(
        InputError,
        match="no factor for 2 of 4 rows of the run's time, the first from 2026-10-01T02:00:00Z",
    ):
        dated(s, grid=grid_of([0.1, 0.2]))


def test_contracts_make_the_market_factor_and_leave_the_location_alone():
    s = statements.statement(rows=4, begin=START)
    found = dated(s, sites=contracts(ppa(0.6, 0.0)))
    assert column(found, "market_kgco2e_per_kwh") == pytest.approx([0.16] * len(found.series.start))
    assert found.totals.emissions_market.value == pytest.approx(found.totals.energy.value * 0.16)
    assert found.totals.emissions_location == s.totals.emissions_location
    assert [c.name for c in found.contracts] == ["Wind PPA"]
    check_sums(found)


def test_a_contract_that_begins_in_the_middle():
    s = statements.statement(rows=4, begin=START)
    found = dated(s, sites=contracts(ppa(0.5, 0.0, begin=START + 7200.0)))
    assert column(found, "market_kgco2e_per_kwh", "gpu_wait") == pytest.approx([0.4, 0.4, 0.2, 0.2])
    assert found.components[0].emissions_market.value == pytest.approx(1200.5 * 0.3)
    check_sums(found)


def test_a_rest_without_a_residual_mix_is_not_zero():
    s = statements.statement(rows=4, begin=START)
    found = dated(s, sites=contracts(ppa(0.5, 0.0), residual=math.nan))
    assert found.totals.emissions_market.value is None
    assert set(column(found, "emissions_market_kgco2e")) == {None}
    assert "site.grid_market" not in {f.id for f in found.factors}
    whole = dated(s, sites=contracts(ppa(1.0, 0.02), residual=math.nan))
    assert whole.totals.emissions_market.value == pytest.approx(whole.totals.energy.value * 0.02)


def test_a_factor_known_for_some_hours_only_leaves_the_sum_unknown():
    s = statements.statement(rows=4, begin=START)
    found = dated(s, sites=contracts(ppa(1.0, 0.1, begin=START + 7200.0), residual=math.nan))
    assert column(found, "market_kgco2e_per_kwh", "gpu_wait") == [
        None,
        None,
        pytest.approx(0.1),
        pytest.approx(0.1),
    ]
    assert found.components[0].emissions_market.value is None


def test_contracts_of_another_site_are_refused():
    with pytest.raises(InputError, match="has no site usa"):
        dated(statements.statement(), sites=contracts(site="france"))


def test_undated_with_constant_contracts_and_nothing_else():
    found = dated(plan(), sites=contracts(ppa(0.5, 0.1)))
    assert found.series is None
    assert found.totals.emissions_market.value == pytest.approx(found.totals.energy.value * 0.25)
    with pytest.raises(InputError, match="has no dates"):
        dated(plan(), sites=contracts(ppa(0.5, 0.1, begin=START)))
    with pytest.raises(InputError, match="has no dates"):
        dated(plan(), grid=grid_of([0.1]))


def test_a_run_with_dates_of_its_own_is_not_moved():
    with pytest.raises(InputError, match="has dates of its own"):
        dated(statements.statement(), START)


def test_a_plan_that_never_ends():
    with pytest.raises(InputError, match="never ends"):
        dated(plan().model_copy(update={"length_s": None}), START)


def test_too_many_rows():
    endless = plan().model_copy(update={"length_s": 1e11})
    with pytest.raises(InputError, match="too many"):
        dated(endless, START)


@given(
    statements.statements(dated=False),
    st.integers(0, 10**8),
    st.lists(st.floats(0, 2), min_size=3, max_size=50),
)
@settings(max_examples=60)
def test_any_plan_under_any_grid(s, offset, values):
    short = s.model_copy(update={"length_s": 3600.0 * (len(values) - 1.5)})
    begin = START + offset - offset % 3600 + 1234.0
    found = dated(short, begin, grid_of(values, begin=begin - begin % 3600))
    if found.series.start:
        check_sums(found)
    again = dated(found, grid=grid_of(values, begin=begin - begin % 3600))
    for what in QUANTITIES:
        one, other = getattr(found.totals, what).value, getattr(again.totals, what).value
        assert (one is None) == (other is None)
        if one is not None:
            assert other == pytest.approx(one, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("soon", "is no time"),
        ("2026-11-01T02:00", "names no time zone"),
        ("1066-01-01", "out of range"),
    ],
)
def test_starts_that_are_none(text, said):
    with pytest.raises(InputError, match=said):
        start_of(text)


def test_without_what_gpus_or_hosts_emitted_there_is_no_sum():
    """A line of 0 kWh emits nothing whatever the factor; the sum of such lines is no sum of all."""
    s = statements.statement(energies=(1200.0, 800.0, 0.0, 0.0, 0.0), rows=4, begin=START)
    found = dated(s, sites=contracts(ppa(0.6, 0.1), residual=math.nan))
    assert {c.id: c.emissions_market.value for c in found.marginal()}["storage_write"] == 0.0
    assert found.totals.emissions_market.value is None
    assert set(found.totals.emissions_market.excludes) == {"gpu_wait", "host_wait"}


def test_a_line_that_the_document_does_not_need_leaves_a_sum():
    """As a fleet's: between two runs nobody records."""
    s = statements.statement(kind="measured", rows=4, begin=START)
    gone = s.components[0].model_copy(update={"id": "restart", "needed": False})
    unknown = {
        what: getattr(gone, what).model_copy(update={"value": None, "low": None, "high": None})
        for what in ("energy", "emissions_location", "emissions_market")
    }
    s = s.model_copy(update={"components": [*s.components, gone.model_copy(update=unknown)]})
    found = dated(s, grid=grid_of([0.3] * 24))
    assert found.totals.emissions_location.value is not None
    assert "restart" in found.totals.emissions_location.excludes


def test_rows_keep_their_own_factors_when_contracts_come_later():
    """Five-minute rows stay five-minute rows, and the last of them ends where the period does."""
    plain = plan().model_copy(update={"length_s": 7843.50049})
    first = dated(plain, START + 1043.0, grid_of([0.1, 0.5] * 24, step_s=300.0))
    again = dated(first, sites=contracts(ppa(0.5, 0.0)))
    assert again.series.width_s == 300.0
    assert again.series.grid_kgco2e_per_kwh == first.series.grid_kgco2e_per_kwh
    assert again.totals.emissions_location == first.totals.emissions_location
    check_sums(again)


@given(st.floats(0, 10_000), st.floats(600, 40_000))
@settings(max_examples=60)
def test_dating_twice_changes_nothing(offset, length):
    first = dated(plan().model_copy(update={"length_s": length}), START + offset)
    again = dated(first, sites=contracts(ppa(0.5, 0.0)))
    assert again.series.grid_kgco2e_per_kwh == first.series.grid_kgco2e_per_kwh
    assert len(set(zip(first.series.start, first.series.component, strict=True))) == len(
        first.series.start
    )
    check_sums(again)


def test_wide_rows_that_are_divided_say_so():
    s = statements.statement(rows=2, begin=START)
    found = dated(s, grid=grid_of([0.1, 0.5] * 12, step_s=300.0))
    assert [w.code for w in found.warnings].count("ROWS_DIVIDED") == 1
    assert "ROWS_DIVIDED" not in {w.code for w in dated(s, grid=grid_of([0.1, 0.5])).warnings}


def test_what_stands_there_anyway_is_under_the_same_factors():
    s = statements.statement(rows=4, begin=START)
    found = dated(s, grid=grid_of([0.1, 0.2, 0.3, 0.4]), sites=contracts(ppa(0.5, 0.0)))
    standing = next(c for c in found.components if c.ledger == "allocated")
    for told in (standing, found.allocated):
        assert told.energy.value == 4.0
        assert told.emissions_location.value == pytest.approx(4.0 * 0.25)
        assert told.emissions_market.value == pytest.approx(4.0 * 0.2)
    plain = dated(plan(), sites=contracts(ppa(0.5, 0.0)))
    assert plain.allocated.emissions_market.value == pytest.approx(4.0 * 0.2)
    dark = dated(s, sites=contracts(ppa(0.5, 0.0), residual=math.nan))
    assert dark.allocated.emissions_market.value is None
