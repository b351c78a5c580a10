"""Statements put into time: sums stay, factors of each hour apply, and what is not known stays
unknown."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
import statements
from hypothesis import given, settings
from hypothesis import strategies as st

from ckptcost.first.catalog.contracts import Bought, SiteContracts
from ckptcost.first.catalog.grid_hours import GridHours
from ckptcost.first.core.hourly import Steps, spread, width_for
from ckptcost.first.core.units import KWH_J
from ckptcost.first.errors import InputError
from ckptcost.first.report.dating import date_statement, start_of
from ckptcost.first.report.parts import FunctionalUnit
from ckptcost.first.report.statement import COLUMNS, QUANTITIES, utc

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
    s = date_statement(plan(), START + 1200.0)
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
    s = date_statement(
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
    found = date_statement(s, grid=grid_of([0.1, 0.2, 0.3, 0.4]))
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
    found = date_statement(s, grid=grid_of([0.1, 0.5] * 12, step_s=300.0))
    assert found.series.width_s == 300.0
    assert column(found, "duration_s", "gpu_wait") == [300.0] * 24
    assert found.components[0].emissions_location.value == pytest.approx(1200.5 * 0.3)
    check_sums(found)


def test_factors_that_change_at_half_past():
    s = statements.statement(rows=2, begin=START)
    found = date_statement(s, grid=grid_of([0.1, 0.2, 0.3], begin=START - 1800.0))
    assert found.series.width_s == 1800.0
    assert column(found, "grid_kgco2e_per_kwh", "gpu_wait") == pytest.approx([0.1, 0.2, 0.2, 0.3])
    check_sums(found)


def test_hours_without_a_factor_are_refused_and_named():
    s = statements.statement(rows=4, begin=START)
    with pytest.raises(
        InputError,
        match="no factor for 2 of 4 rows of the run's time, the first from 2026-10-01T02:00:00Z",
    ):
        date_statement(s, grid=grid_of([0.1, 0.2]))


def test_contracts_make_the_market_factor_and_leave_the_location_alone():
    s = statements.statement(rows=4, begin=START)
    found = date_statement(s, sites=contracts(ppa(0.6, 0.0)))
    assert column(found, "market_kgco2e_per_kwh") == pytest.approx([0.16] * len(found.series.start))
    assert found.totals.emissions_market.value == pytest.approx(found.totals.energy.value * 0.16)
    assert found.totals.emissions_location == s.totals.emissions_location
    assert [c.name for c in found.contracts] == ["Wind PPA"]
    check_sums(found)


def test_a_contract_that_begins_in_the_middle():
    s = statements.statement(rows=4, begin=START)
    found = date_statement(s, sites=contracts(ppa(0.5, 0.0, begin=START + 7200.0)))
    assert column(found, "market_kgco2e_per_kwh", "gpu_wait") == pytest.approx([0.4, 0.4, 0.2, 0.2])
    assert found.components[0].emissions_market.value == pytest.approx(1200.5 * 0.3)
    check_sums(found)


def test_a_rest_without_a_residual_mix_is_not_zero():
    s = statements.statement(rows=4, begin=START)
    found = date_statement(s, sites=contracts(ppa(0.5, 0.0), residual=math.nan))
    assert found.totals.emissions_market.value is None
    assert set(column(found, "emissions_market_kgco2e")) == {None}
    assert "site.grid_market" not in {f.id for f in found.factors}
    whole = date_statement(s, sites=contracts(ppa(1.0, 0.02), residual=math.nan))
    assert whole.totals.emissions_market.value == pytest.approx(whole.totals.energy.value * 0.02)


def test_a_factor_known_for_some_hours_only_leaves_the_sum_unknown():
    s = statements.statement(rows=4, begin=START)
    found = date_statement(
        s, sites=contracts(ppa(1.0, 0.1, begin=START + 7200.0), residual=math.nan)
    )
    assert column(found, "market_kgco2e_per_kwh", "gpu_wait") == [
        None,
        None,
        pytest.approx(0.1),
        pytest.approx(0.1),
    ]
    assert found.components[0].emissions_market.value is None


def test_contracts_of_another_site_are_refused():
    with pytest.raises(InputError, match="has no site usa"):
        date_statement(statements.statement(), sites=contracts(site="france"))


def test_undated_with_constant_contracts_and_nothing_else():
    found = date_statement(plan(), sites=contracts(ppa(0.5, 0.1)))
    assert found.series is None
    assert found.totals.emissions_market.value == pytest.approx(found.totals.energy.value * 0.25)
    with pytest.raises(InputError, match="has no dates"):
        date_statement(plan(), sites=contracts(ppa(0.5, 0.1, begin=START)))
    with pytest.raises(InputError, match="has no dates"):
        date_statement(plan(), grid=grid_of([0.1]))


def test_a_run_with_dates_of_its_own_is_not_moved():
    with pytest.raises(InputError, match="has dates of its own"):
        date_statement(statements.statement(), START)


def test_a_plan_that_never_ends():
    with pytest.raises(InputError, match="never ends"):
        date_statement(plan().model_copy(update={"length_s": None}), START)


@pytest.mark.parametrize("length_s", [1e11, 2.0**63, -(2.0**63), -1.0])
def test_a_length_that_no_calendar_has(length_s):
    with pytest.raises(InputError, match="years long"):
        date_statement(plan().model_copy(update={"length_s": length_s}), START)


def test_too_many_rows():
    endless = plan().model_copy(update={"length_s": 1e9})
    with pytest.raises(InputError, match="too many"):
        date_statement(endless, START)


@given(
    statements.statements(dated=False),
    st.integers(0, 10**8),
    st.lists(st.floats(0, 2), min_size=3, max_size=50),
)
@settings(max_examples=60)
def test_any_plan_under_any_grid(s, offset, values):
    short = s.model_copy(update={"length_s": 3600.0 * (len(values) - 1.5)})
    begin = START + offset - offset % 3600 + 1234.0
    found = date_statement(short, begin, grid_of(values, begin=begin - begin % 3600))
    if found.series.start:
        check_sums(found)
    again = date_statement(found, grid=grid_of(values, begin=begin - begin % 3600))
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
    found = date_statement(s, sites=contracts(ppa(0.6, 0.1), residual=math.nan))
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
    found = date_statement(s, grid=grid_of([0.3] * 24))
    assert found.totals.emissions_location.value is not None
    assert "restart" in found.totals.emissions_location.excludes


def test_rows_keep_their_own_factors_when_contracts_come_later():
    """Five-minute rows stay five-minute rows, and the last of them ends where the period does."""
    plain = plan().model_copy(update={"length_s": 7843.50049})
    first = date_statement(plain, START + 1043.0, grid_of([0.1, 0.5] * 24, step_s=300.0))
    again = date_statement(first, sites=contracts(ppa(0.5, 0.0)))
    assert again.series.width_s == 300.0
    assert again.series.grid_kgco2e_per_kwh == first.series.grid_kgco2e_per_kwh
    assert again.totals.emissions_location == first.totals.emissions_location
    check_sums(again)


@given(st.floats(0, 10_000), st.floats(600, 40_000))
@settings(max_examples=60)
def test_dating_twice_changes_nothing(offset, length):
    first = date_statement(plan().model_copy(update={"length_s": length}), START + offset)
    again = date_statement(first, sites=contracts(ppa(0.5, 0.0)))
    assert again.series.grid_kgco2e_per_kwh == first.series.grid_kgco2e_per_kwh
    assert len(set(zip(first.series.start, first.series.component, strict=True))) == len(
        first.series.start
    )
    check_sums(again)


def test_wide_rows_that_are_divided_say_so():
    s = statements.statement(rows=2, begin=START)
    found = date_statement(s, grid=grid_of([0.1, 0.5] * 12, step_s=300.0))
    assert [w.code for w in found.warnings].count("ROWS_DIVIDED") == 1
    assert "ROWS_DIVIDED" not in {
        w.code for w in date_statement(s, grid=grid_of([0.1, 0.5])).warnings
    }


def test_what_stands_there_anyway_is_under_the_same_factors():
    s = statements.statement(rows=4, begin=START)
    found = date_statement(s, grid=grid_of([0.1, 0.2, 0.3, 0.4]), sites=contracts(ppa(0.5, 0.0)))
    standing = next(c for c in found.components if c.ledger == "allocated")
    for told in (standing, found.allocated):
        assert told.energy.value == 4.0
        assert told.emissions_location.value == pytest.approx(4.0 * 0.25)
        assert told.emissions_market.value == pytest.approx(4.0 * 0.2)
    plain = date_statement(plan(), sites=contracts(ppa(0.5, 0.0)))
    assert plain.allocated.emissions_market.value == pytest.approx(4.0 * 0.2)
    dark = date_statement(s, sites=contracts(ppa(0.5, 0.0), residual=math.nan))
    assert dark.allocated.emissions_market.value is None


NOTHING = (0.0, 0.0, 0.0, 0.0, 0.0)


def of(s, name, component="gpu_wait"):
    return [
        v
        for v, c in zip(getattr(s.series, name), s.series.component, strict=True)
        if c == component
    ]


def test_a_contract_without_dates_asks_for_no_narrower_rows():
    found = date_statement(
        statements.statement(dated=False).model_copy(update={"length_s": 5000.0}),
        START,
        sites=contracts(ppa(0.5, 0.1)),
    )
    assert found.series.width_s == 3600.0


def test_a_contract_that_ends_after_the_run_asks_for_no_narrower_rows():
    s = statements.statement(rows=2, begin=START)
    assert (
        date_statement(s, sites=contracts(ppa(0.5, 0.1, end=START + 1e6 + 7.0))).series.width_s
        == 3600.0
    )


def test_a_contract_ends_where_it_says_and_not_a_row_later():
    s = statements.statement(rows=4, begin=START)
    found = date_statement(s, sites=contracts(ppa(0.5, 0.0, end=START + 7200.0)))
    assert of(found, "market_kgco2e_per_kwh") == pytest.approx([0.2, 0.2, 0.4, 0.4])
    (told,) = found.contracts
    assert (told.valid_from, told.valid_until) == (None, "2026-10-01T02:00:00Z")


def test_grid_and_contracts_at_once_stay_apart():
    found = date_statement(
        statements.statement(rows=2, begin=START),
        grid=grid_of([0.1, 0.3]),
        sites=contracts(ppa(0.5, 0.0)),
    )
    assert of(found, "grid_kgco2e_per_kwh") == pytest.approx([0.1, 0.3])
    assert of(found, "market_kgco2e_per_kwh") == pytest.approx([0.2, 0.2])
    values = {f.id: f.value * 3.6e6 for f in found.factors if f.id.startswith("site.grid")}
    assert values == {
        "site.grid_location": pytest.approx(0.2),
        "site.grid_market": pytest.approx(0.2),
    }


def test_the_file_of_a_factor_is_named_with_its_hash_and_once():
    found = date_statement(statements.statement(rows=2, begin=START), grid=grid_of([0.1, 0.3]))
    (one,) = [f for f in found.factors if f.id == "site.grid_location"]
    assert (one.sources[0].title, one.sources[0].version, one.set_by) == (
        "hours.csv",
        "sha256 " + "ab" * 32,
        "--grid",
    )


def test_what_has_no_range_of_energy_gets_none_of_emissions():
    s = statements.statement(rows=2, begin=START)
    bare = {"low": None, "high": None, "interval": None}
    lines = [
        c.model_copy(update={"energy": c.energy.model_copy(update=bare)}) for c in s.components
    ]
    total = s.totals.model_copy(update={"energy": s.totals.energy.model_copy(update=bare)})
    found = date_statement(
        s.model_copy(update={"components": lines, "totals": total}), grid=grid_of([0.1, 0.3])
    )
    for q in (found.totals.emissions_location, found.components[0].emissions_location):
        assert (q.low, q.high, q.interval) == (None, None, None)
        assert q.value is not None


def test_ranges_lie_around_their_figures_the_right_way_round():
    found = date_statement(
        statements.statement(rows=2, begin=START),
        grid=grid_of([0.1, 0.3]),
        sites=contracts(ppa(0.5, 0.1)),
    )
    for q in (
        getattr(each, what)
        for each in (found.totals, *found.marginal())
        for what in ("emissions_location", "emissions_market")
    ):
        if q.value:
            assert (q.low, q.high) == (pytest.approx(0.9 * q.value), pytest.approx(1.1 * q.value))


def test_energy_that_has_no_rows_has_no_emissions_that_are_known():
    s = statements.statement(rows=2, begin=START)
    rows = [n for n, c in enumerate(s.series.component) if c != "host_wait"]
    names = [name for name in type(s.series).model_fields if name != "width_s"]
    series = s.series.model_copy(
        update={name: [getattr(s.series, name)[n] for n in rows] for name in names}
    )
    found = date_statement(s.model_copy(update={"series": series}), grid=grid_of([0.1, 0.3]))
    lines = {c.id: c.emissions_location.value for c in found.components}
    assert lines["host_wait"] is None
    assert lines["retention"] == 0.0  # it used none
    assert "host_wait" in found.totals.emissions_location.excludes
    assert "retention" not in found.totals.emissions_location.excludes


def test_without_a_sum_of_energy_there_is_none_of_emissions():
    s = statements.statement(rows=2, begin=START)
    total = s.totals.model_copy(
        update={
            "energy": s.totals.energy.model_copy(update={"value": None, "low": None, "high": None})
        }
    )
    found = date_statement(s.model_copy(update={"totals": total}), grid=grid_of([0.1, 0.3]))
    assert found.totals.emissions_location.value is None


def test_a_plan_is_as_long_as_it_said_and_its_last_row_may_be_short():
    s = statements.statement(dated=False).model_copy(update={"length_s": 5000.0})
    found = date_statement(s, START)
    assert (found.period_end, found.length_s) == ("2026-10-01T01:23:20Z", 5000.0)
    assert of(found, "duration_s") == [3600.0, 1400.0]
    assert of(found, "energy_kwh") == pytest.approx([1200.5 * 0.72, 1200.5 * 0.28])


def test_rows_to_the_millisecond():
    found = date_statement(
        statements.statement(dated=False).model_copy(update={"length_s": 3600.25}), START + 0.5
    )
    assert of(found, "duration_s") == [3599.5, 0.75]
    assert found.series.start[0] == "2026-10-01T00:00:00.500Z"


def test_an_allocated_share_has_no_rows_and_the_mean_of_the_hours():
    s = statements.statement(dated=False).model_copy(update={"length_s": 7200.0})
    found = date_statement(s, START, grid=grid_of([0.1, 0.3]))
    assert "standing" not in found.series.component
    mean = next(f.value for f in found.factors if f.id == "site.grid_location") * 3.6e6
    assert mean == pytest.approx(found.totals.emissions_location.value / found.totals.energy.value)
    standing = next(c for c in found.components if c.id == "standing")
    assert standing.emissions_location.value == pytest.approx(4.0 * 0.2)
    assert "standing" not in found.totals.emissions_location.excludes


def test_an_hour_in_which_nothing_is_known_to_happen_has_no_row():
    s = statements.statement(
        (1200.0, 100.0, 0.0, 0.0, 0.0),
        gpu_hours=NOTHING,
        costs=(None, None, 0.0, 0.0, 0.0),
        rows=2,
        begin=START,
    )
    energies = [
        0.0 if c == "host_wait" and n == 1 else e
        for n, c, e in zip([0, 1] * 2, s.series.component, s.series.energy_kwh, strict=True)
    ]
    litres = [None if e is None else e * statements.WATER for e in energies]
    series = s.series.model_copy(update={"energy_kwh": energies, "water_l": litres})
    found = date_statement(s.model_copy(update={"series": series}))
    assert of(found, "start", "host_wait") == ["2026-10-01T00:00:00Z"]
    assert of(found, "cost_usd", "host_wait") == [None]
    assert len(of(found, "start")) == 2  # the first carries the checkpoints


def test_saves_are_on_the_rows_of_one_component():
    found = date_statement(
        statements.statement(dated=False).model_copy(update={"length_s": 7200.0}), START
    )
    assert of(found, "checkpoints") == [4.0, 4.0]
    assert math.fsum(found.series.checkpoints) == 8.0


def test_each_amount_is_in_its_own_column():
    s = statements.statement(dated=False).model_copy(update={"length_s": 3600.0})
    found, gpu = date_statement(s, START), s.components[0]
    wanted = {
        "energy_kwh": gpu.energy,
        "gpu_hours": gpu.gpu_time_lost,
        "cost_usd": gpu.cost,
        "embodied_kgco2e": gpu.embodied,
        "emissions_location_kgco2e": gpu.emissions_location,
        "emissions_market_kgco2e": gpu.emissions_market,
    }
    for name, q in wanted.items():
        assert of(found, name) == pytest.approx([q.value]), name
    assert of(found, "grid_kgco2e_per_kwh") == pytest.approx([statements.GRID])
    assert of(found, "market_kgco2e_per_kwh") == pytest.approx([statements.MARKET])


def test_dates_that_are_told_have_the_zone_that_they_name():
    assert (
        start_of("2026-11-01T02:00+02:00")
        == datetime(2026, 11, 1, 2, tzinfo=timezone(timedelta(hours=2))).timestamp()
    )
    assert start_of("2026-11-01") == datetime(2026, 11, 1, tzinfo=UTC).timestamp()
    with pytest.raises(InputError, match="names no time zone"):
        start_of("2026-11-01T00:00:01")


def test_the_functional_units_stay():
    s = statements.statement(dated=False).model_copy(
        update={"length_s": 3600.0, "functional_units": [FunctionalUnit(name="x", count=3.0)]}
    )
    assert date_statement(s, START, grid=grid_of([0.1])).functional_units == s.functional_units


def test_an_end_inside_an_hour_asks_for_narrower_rows_as_a_beginning_does():
    assert width_for(Steps(np.array([0.0]), np.array([5400.0]), np.array([0.1]))) == 1800.0
    assert width_for(None, Steps(np.array([0.0]), np.array([300.0]), np.array([0.1]))) == 300.0
    assert width_for(Steps(np.array([0.0]), np.array([7.0]), np.array([0.1]))) == 60.0


def test_what_is_not_known_of_an_hour_says_nothing_of_the_next():
    found = spread(
        [(0.0, 3600.0), (3600.0, 7200.0)], [math.nan, 1.0], np.array([0.0, 3600.0, 7200.0])
    ).tolist()
    assert math.isnan(found[0])
    assert found[1] == 1.0
    twice = spread([(0.0, 3600.0)] * 2, [1.0, 2.0], np.array([0.0, 3600.0, 7200.0])).tolist()
    assert twice == [3.0, 0.0]


def test_a_row_without_energy_has_no_emissions_and_hides_none():
    s = statements.statement(rows=2, begin=START)
    energies = [
        None if c == "gpu_wait" and n == 1 else e
        for n, c, e in zip([0, 1] * 4, s.series.component, s.series.energy_kwh, strict=False)
    ]
    rows = s.series.model_copy(
        update={"energy_kwh": [*energies, *s.series.energy_kwh[len(energies) :]]}
    )
    found = date_statement(s.model_copy(update={"series": rows}), grid=grid_of([0.1, 0.3]))
    assert of(found, "emissions_location_kgco2e") == [pytest.approx(0.1 * 1200.5 / 2), None]
    assert found.components[0].emissions_location.value == pytest.approx(0.1 * 1200.5 / 2)


def test_rows_are_counted_for_every_component(monkeypatch):
    from ckptcost.first.report import dating

    monkeypatch.setattr(dating, "MOST_ROWS", 15)
    with pytest.raises(InputError, match="is 5 rows of time long, too many for 5 components"):
        date_statement(statements.statement((1.0,) * 5, rows=5, begin=START))


def test_a_component_of_nothing_has_no_rows_and_carries_no_checkpoints():
    s = statements.statement(
        (0.0, 10.0, 0.0, 0.0, 0.0), gpu_hours=NOTHING, costs=NOTHING, dated=False
    )
    found = date_statement(s.model_copy(update={"length_s": 7200.0}), START)
    assert set(found.series.component) == {"host_wait"}
    assert of(found, "checkpoints", "host_wait") == [4.0, 4.0]


def test_no_checkpoint_is_none():
    s = statements.statement(dated=False, checkpoints=0.0).model_copy(update={"length_s": 7200.0})
    assert math.fsum(date_statement(s, START).series.checkpoints) == 0.0


def test_a_contract_that_changes_at_half_past_cuts_rows_there():
    found = date_statement(
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
    found = date_statement(s.model_copy(update={"factors": odd, "length_s": 3600.0}), START)
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
    found = date_statement(s.model_copy(update=lists), grid=grid_of([0.1, 0.3]))
    q = found.components[0].emissions_location
    assert (q.basis, found.rests_of(q), q.excludes) == (
        "modelled",
        ["site.grid_location", "site.pue"],
        ["window 3"],
    )


def test_a_run_with_dates_has_the_length_of_its_period():
    s = statements.statement(rows=2, begin=START).model_copy(update={"length_s": None})
    assert date_statement(s, grid=grid_of([0.1, 0.3])).length_s == 7200.0


def one_line_of_energy():
    """Three hours, in which nobody knows the GPU time and the cost of the first line."""
    return statements.statement(
        (100.0, 0.0, 0.0, 0.0, 0.0),
        gpu_hours=(None, 0.0, 0.0, 0.0, 0.0),
        costs=(None, 0.0, 0.0, 0.0, 0.0),
        rows=3,
        begin=START,
    )


def test_the_first_component_has_all_rows_and_what_is_not_known_of_it_is_null():
    s = one_line_of_energy()
    energies = [0.0, 100.0, 0.0]
    found = date_statement(
        s.model_copy(update={"series": s.series.model_copy(update={"energy_kwh": energies})})
    )
    assert of(found, "energy_kwh") == energies
    assert of(found, "gpu_hours") == of(found, "cost_usd") == [None] * 3
    assert math.fsum(found.series.checkpoints) == pytest.approx(8.0)


def test_what_is_not_known_of_a_component_is_not_zero_in_hours_in_which_it_did_nothing():
    s = one_line_of_energy()
    names = [name for name in type(s.series).model_fields if name != "width_s"]
    one = s.series.model_copy(update={name: getattr(s.series, name)[1:2] for name in names})
    found = date_statement(s.model_copy(update={"series": one}))
    assert of(found, "energy_kwh") == [0.0, pytest.approx(100.0 / 3), 0.0]
    assert of(found, "gpu_hours") == of(found, "cost_usd") == [None] * 3


def test_thirty_years_of_hours_are_too_many():
    s = statements.statement((1.0,) * 5, dated=False)
    with pytest.raises(InputError, match="rows of time long, too many for 5 components"):
        date_statement(s.model_copy(update={"length_s": 30 * 365.25 * 86400.0}), START)
