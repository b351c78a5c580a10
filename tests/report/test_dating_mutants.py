"""Slips in units, zones, contracts and rows of time that nothing else would notice."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
import statements

from ckptcost.catalog.contracts import Bought, SiteContracts, read_contracts
from ckptcost.catalog.grid_hours import GridHours, read_grid, unit_of
from ckptcost.core.hourly import Steps, spread, width_for
from ckptcost.errors import InputError
from ckptcost.report.dating import dated, start_of
from ckptcost.report.parts import FunctionalUnit

START = statements.START
ONLY_GPU = (1200.0, 0.0, 0.0, 0.0, 0.0)
NOTHING = (0.0, 0.0, 0.0, 0.0, 0.0)


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


# ---- the file of factors


@pytest.mark.parametrize(
    "mass",
    [
        ("mg", 1e-6),
        ("g", 1e-3),
        ("kg", 1.0),
        ("t", 1000.0),
        ("tonne", 1000.0),
        ("lb", 0.45359237),
        ("lbs", 0.45359237),
    ],
)
@pytest.mark.parametrize("energy", [("Wh", 1e-3), ("kWh", 1.0), ("MWh", 1000.0), ("GWh", 1e6)])
def test_every_mass_per_every_energy(mass, energy):
    assert unit_of(f"{mass[0]}CO2eq/{energy[0]}") == pytest.approx(mass[1] / energy[1])


def test_a_header_that_says_utc_is_not_overruled_by_a_flag(file):
    path = file("Datetime (UTC),gCO2eq/kWh\n2026-10-01 00:00,300\n2026-10-01 01:00,310\n")
    at = datetime(2026, 10, 1, tzinfo=UTC).timestamp()
    assert read_grid(path, zone="America/New_York").steps.start_s.tolist() == [at, at + 3600]


def test_an_offset_in_a_cell_is_the_cells_own(file):
    path = file("time,gCO2eq/kWh\n2026-10-01T02:00+02:00,300\n2026-10-01T03:00+02:00,310\n")
    at = datetime(2026, 10, 1, tzinfo=UTC).timestamp()
    assert read_grid(path, zone="America/New_York").steps.start_s.tolist() == [at, at + 3600]


@pytest.mark.parametrize(
    ("step_s", "good"), [(59, False), (60, True), (86400, True), (86401, False)]
)
def test_steps_from_a_minute_to_a_day(file, step_s, good):
    times = [
        (datetime(2026, 10, 1, tzinfo=UTC) + timedelta(seconds=n * step_s)).isoformat()
        for n in range(3)
    ]
    path = file("time,gCO2eq/kWh\n" + "".join(f"{each},300\n" for each in times))
    if good:
        assert read_grid(path).step_s == step_s
    else:
        with pytest.raises(InputError, match="one factor each"):
            read_grid(path)


def test_the_line_that_is_wrong_is_named_with_comments_counted(file):
    path = file(
        "# from us\n# again\ntime,gCO2eq/kWh\n2026-10-01T00:00Z,300\n2026-10-01T01:00Z,many\n"
    )
    with pytest.raises(InputError, match="line 5"):
        read_grid(path)


@pytest.mark.parametrize(
    ("value", "good"), [("5000", True), ("5001", False), ("-1", False), ("nan", False), ("0", True)]
)
def test_what_is_no_factor_of_a_grid(file, value, good):
    path = file(f"time,gCO2eq/kWh\n2026-10-01T00:00Z,{value}\n2026-10-01T01:00Z,300\n")
    if good:
        assert read_grid(path).steps.value[0] == pytest.approx(float(value) / 1000)
    else:
        with pytest.raises(InputError, match="no factor of a grid"):
            read_grid(path)


def test_newest_first_keeps_each_value_with_its_hour(file):
    grid = read_grid(
        file("time,gCO2eq/kWh\n2026-10-01T02:00Z,30\n2026-10-01T01:00Z,20\n2026-10-01T00:00Z,10\n")
    )
    assert grid.steps.value.tolist() == pytest.approx([0.01, 0.02, 0.03])
    assert np.all(np.diff(grid.steps.start_s) == 3600)


# ---- contracts


def site_of(file, text):
    return read_contracts(file(f'[[site]]\nid = "usa"\n{text}', "contracts.toml"))["usa"]


CONTRACT = '[[site.contract]]\nname = "a"\ninstrument = "PPA"\nshare = "{}"\nfactor = "{}"\n'


def test_a_residual_that_is_not_said_is_not_zero(file):
    assert math.isnan(site_of(file, CONTRACT.format("60 %", "35 g/kWh")).residual_kg_per_kwh)


def test_a_contract_without_dates_has_no_ends_and_its_unit_counts(file):
    (one,) = site_of(file, CONTRACT.format("60 %", "35 g/kWh")).bought
    assert (one.begin_s, one.end_s, one.share) == (-math.inf, math.inf, 0.6)
    assert one.kg_per_kwh == pytest.approx(0.035)


def test_midnight_of_a_contract_is_utc(file):
    (one,) = site_of(
        file,
        CONTRACT.format("100 %", "0 g/kWh") + 'from = 2026-01-01\nuntil = "2027-01-01T00:00"\n',
    ).bought
    assert one.begin_s == datetime(2026, 1, 1, tzinfo=UTC).timestamp()
    assert one.end_s == datetime(2027, 1, 1, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    "text",
    [
        CONTRACT.format("101 %", "0 g/kWh"),
        CONTRACT.format("60 %", "0 g/kWh") * 2,
        CONTRACT.format("60 %", "6000 g/kWh"),
        CONTRACT.format("60 %", "0 g/kWh") + "from = 2026-01-01\nuntil = 2026-01-01\n",
    ],
)
def test_contracts_that_are_none(file, text):
    with pytest.raises(InputError):
        site_of(file, text)


def test_one_contract_after_the_other_may_have_all_each(file):
    one = CONTRACT.format("100 %", "0 g/kWh")
    found = site_of(file, one + "until = 2026-06-01\n" + one + "from = 2026-06-01\n")
    assert [each.share for each in found.bought] == [1.0, 1.0]


# ---- dates and rows


def test_a_contract_without_dates_asks_for_no_narrower_rows():
    found = dated(
        statements.statement(dated=False).model_copy(update={"length_s": 5000.0}),
        START,
        sites=contracts(ppa(0.5, 0.1)),
    )
    assert found.series.width_s == 3600.0


def test_a_contract_that_ends_after_the_run_asks_for_no_narrower_rows():
    s = statements.statement(rows=2, begin=START)
    assert dated(s, sites=contracts(ppa(0.5, 0.1, end=START + 1e6 + 7.0))).series.width_s == 3600.0


def test_a_contract_ends_where_it_says_and_not_a_row_later():
    s = statements.statement(rows=4, begin=START)
    found = dated(s, sites=contracts(ppa(0.5, 0.0, end=START + 7200.0)))
    assert of(found, "market_kgco2e_per_kwh") == pytest.approx([0.2, 0.2, 0.4, 0.4])
    (told,) = found.contracts
    assert (told.valid_from, told.valid_until) == (None, "2026-10-01T02:00:00Z")


def test_grid_and_contracts_at_once_stay_apart():
    found = dated(
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
    found = dated(statements.statement(rows=2, begin=START), grid=grid_of([0.1, 0.3]))
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
    found = dated(
        s.model_copy(update={"components": lines, "totals": total}), grid=grid_of([0.1, 0.3])
    )
    for q in (found.totals.emissions_location, found.components[0].emissions_location):
        assert (q.low, q.high, q.interval) == (None, None, None)
        assert q.value is not None


def test_ranges_lie_around_their_figures_the_right_way_round():
    found = dated(
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
    found = dated(s.model_copy(update={"series": series}), grid=grid_of([0.1, 0.3]))
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
    found = dated(s.model_copy(update={"totals": total}), grid=grid_of([0.1, 0.3]))
    assert found.totals.emissions_location.value is None


def test_a_plan_is_as_long_as_it_said_and_its_last_row_may_be_short():
    s = statements.statement(dated=False).model_copy(update={"length_s": 5000.0})
    found = dated(s, START)
    assert (found.period_end, found.length_s) == ("2026-10-01T01:23:20Z", 5000.0)
    assert of(found, "duration_s") == [3600.0, 1400.0]
    assert of(found, "energy_kwh") == pytest.approx([1200.5 * 0.72, 1200.5 * 0.28])


def test_rows_to_the_millisecond():
    found = dated(
        statements.statement(dated=False).model_copy(update={"length_s": 3600.25}), START + 0.5
    )
    assert of(found, "duration_s") == [3599.5, 0.75]
    assert found.series.start[0] == "2026-10-01T00:00:00.500Z"


def test_an_allocated_share_has_no_rows_and_the_mean_of_the_hours():
    s = statements.statement(dated=False).model_copy(update={"length_s": 7200.0})
    found = dated(s, START, grid=grid_of([0.1, 0.3]))
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
    found = dated(s.model_copy(update={"series": series}))
    assert of(found, "start", "host_wait") == ["2026-10-01T00:00:00Z"]
    assert of(found, "cost_usd", "host_wait") == [None]
    assert len(of(found, "start")) == 2  # the first carries the checkpoints


def test_saves_are_on_the_rows_of_one_component():
    found = dated(statements.statement(dated=False).model_copy(update={"length_s": 7200.0}), START)
    assert of(found, "checkpoints") == [4.0, 4.0]
    assert math.fsum(found.series.checkpoints) == 8.0


def test_each_amount_is_in_its_own_column():
    s = statements.statement(dated=False).model_copy(update={"length_s": 3600.0})
    found, gpu = dated(s, START), s.components[0]
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
    assert dated(s, START, grid=grid_of([0.1])).functional_units == s.functional_units


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


def test_names_of_contracts_hold_no_escape_sequences(file):
    with pytest.raises(InputError, match="control character"):
        site_of(file, CONTRACT.format("60 %", "0 g/kWh").replace('"a"', '"a\\u001b[31m"'))


def test_a_row_without_energy_has_no_emissions_and_hides_none():
    s = statements.statement(rows=2, begin=START)
    energies = [
        None if c == "gpu_wait" and n == 1 else e
        for n, c, e in zip([0, 1] * 4, s.series.component, s.series.energy_kwh, strict=False)
    ]
    rows = s.series.model_copy(
        update={"energy_kwh": [*energies, *s.series.energy_kwh[len(energies) :]]}
    )
    found = dated(s.model_copy(update={"series": rows}), grid=grid_of([0.1, 0.3]))
    assert of(found, "emissions_location_kgco2e") == [pytest.approx(0.1 * 1200.5 / 2), None]
    assert found.components[0].emissions_location.value == pytest.approx(0.1 * 1200.5 / 2)


def test_rows_are_counted_for_every_component(monkeypatch):
    from ckptcost.report import dating

    monkeypatch.setattr(dating, "MOST_ROWS", 15)
    with pytest.raises(InputError, match="is 5 rows of time long, too many for 5 components"):
        dated(statements.statement((1.0,) * 5, rows=5, begin=START))


def test_a_component_of_nothing_has_no_rows_and_carries_no_checkpoints():
    s = statements.statement(
        (0.0, 10.0, 0.0, 0.0, 0.0), gpu_hours=NOTHING, costs=NOTHING, dated=False
    )
    found = dated(s.model_copy(update={"length_s": 7200.0}), START)
    assert set(found.series.component) == {"host_wait"}
    assert of(found, "checkpoints", "host_wait") == [4.0, 4.0]


def test_no_checkpoint_is_none():
    s = statements.statement(dated=False, checkpoints=0.0).model_copy(update={"length_s": 7200.0})
    assert math.fsum(dated(s, START).series.checkpoints) == 0.0
