"""Grid factors by time: zones, units, columns, clocks put forward and back, gaps and slips."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from ckptcost.first.catalog.grid_hours import read_grid, unit_of
from ckptcost.first.errors import InputError


@pytest.fixture
def file(tmp_path):
    def write(text: str) -> str:
        path = tmp_path / "hours.csv"
        path.write_text(text, "utf-8")
        return str(path)

    return write


def _at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def test_an_export_of_electricity_maps_with_a_column_named(file):
    path = file(
        "Datetime (UTC),Zone id,Carbon intensity gCO₂eq/kWh (direct),Carbon intensity gCO₂eq/kWh"
        " (Life cycle)\n2026-10-01 00:00:00,DE,310.5,355.25\n2026-10-01 01:00:00,DE,300,340\n"
    )
    with pytest.raises(InputError, match="several columns of factors"):
        read_grid(path)
    grid = read_grid(path, "Carbon intensity gCO₂eq/kWh (Life cycle)")
    assert grid.steps.value.tolist() == pytest.approx([0.35525, 0.34])
    assert grid.steps.start_s.tolist() == [_at("2026-10-01"), _at("2026-10-01T01:00")]
    assert grid.steps.end_s[-1] == _at("2026-10-01T02:00")
    assert (grid.step_s, grid.file) == (3600.0, "hours.csv")


@pytest.mark.parametrize(
    ("unit", "kg_per_kwh"),
    [
        ("gCO2e/kWh", 1e-3),
        ("gCO₂eq/kWh", 1e-3),
        ("g/kWh", 1e-3),
        ("gco2e_per_kwh", 1e-3),
        ("kgCO2e/kWh", 1.0),
        ("kg/MWh", 1e-3),
        ("tCO2/MWh", 1.0),
        ("lb/MWh", 0.45359237e-3),
        ("lbs CO2/MWh", 0.45359237e-3),
        ("tonne per GWh", 1e-3),
        ("intensity", None),
        ("kWh", None),
    ],
)
def test_units(unit, kg_per_kwh):
    assert unit_of(unit) == (None if kg_per_kwh is None else pytest.approx(kg_per_kwh, rel=1e-12))


def test_a_unit_that_no_header_names_is_said_by_the_flag(file):
    path = file("time,co2\n2026-10-01T00:00Z,0.4\n2026-10-01T01:00Z,0.5\n")
    with pytest.raises(InputError, match="no column whose name holds a unit"):
        read_grid(path)
    with pytest.raises(InputError, match="names no unit"):
        read_grid(path, "co2")
    assert read_grid(path, "co2", unit="kg/kWh").steps.value.tolist() == [0.4, 0.5]
    with pytest.raises(InputError, match="no unit is known"):
        read_grid(path, "co2", unit="miles")


def test_offsets_and_zones_mean_the_same_instants(file):
    with_offset = read_grid(
        file("time,g/kWh\n2026-07-01T02:00+02:00,1\n2026-07-01T03:00+02:00,2\n")
    )
    in_zone = read_grid(
        file("time,g/kWh\n2026-07-01 02:00,1\n2026-07-01 03:00,2\n"), zone="Europe/Berlin"
    )
    assert (
        with_offset.steps.start_s.tolist()
        == in_zone.steps.start_s.tolist()
        == [_at("2026-07-01"), _at("2026-07-01T01:00")]
    )


def test_times_without_a_zone_are_not_guessed(file):
    with pytest.raises(InputError, match=r"line 2: .* names no time zone"):
        read_grid(file("time,g/kWh\n2026-07-01 02:00,1\n2026-07-01 03:00,2\n"))


def test_clocks_put_back_the_same_hour_comes_twice(file):
    rows = ["2026-10-25 01:00", "2026-10-25 02:00", "2026-10-25 02:00", "2026-10-25 03:00"]
    grid = read_grid(
        file("time,g/kWh\n" + "".join(f"{row},{n}\n" for n, row in enumerate(rows))),
        zone="Europe/Berlin",
    )
    assert np.diff(grid.steps.start_s).tolist() == [3600.0] * 3
    assert grid.steps.start_s[0] == _at("2026-10-24T23:00")


def test_clocks_put_back_with_half_hours(file):
    rows = [
        f"2026-10-25 {hour:02d}:{minute}"
        for hour, minute in ((1, "30"), (2, "00"), (2, "30"), (2, "00"), (2, "30"), (3, "00"))
    ]
    grid = read_grid(
        file("time,g/kWh\n" + "".join(f"{row},{n}\n" for n, row in enumerate(rows))),
        zone="Europe/Berlin",
    )
    assert np.diff(grid.steps.start_s).tolist() == [1800.0] * 5


def test_clocks_put_forward_an_hour_that_is_not_there(file):
    good = read_grid(
        file("time,g/kWh\n2026-03-29 01:00,1\n2026-03-29 03:00,2\n"), zone="Europe/Berlin"
    )
    assert np.diff(good.steps.start_s).tolist() == [3600.0]
    with pytest.raises(InputError, match="clocks were put forward"):
        read_grid(
            file("time,g/kWh\n2026-03-29 01:00,1\n2026-03-29 02:30,2\n"), zone="Europe/Berlin"
        )


def test_an_empty_cell_is_a_gap_and_a_missing_row_too(file):
    grid = read_grid(
        file(
            "time,g/kWh\n2026-07-01T00:00Z,1\n2026-07-01T01:00Z,\n2026-07-01T02:00Z,3\n2026-07-01T03:00Z,4\n2026-07-01T06:00Z,5\n"
        )
    )
    assert grid.steps.value.tolist() == pytest.approx([0.001, 0.003, 0.004, 0.005])
    assert (grid.steps.end_s - grid.steps.start_s).tolist() == [3600.0] * 4


def test_semicolons_with_a_decimal_comma_and_a_file_that_runs_backwards(file):
    grid = read_grid(file("\ufefftime;g/kWh\n2026-07-01T01:00Z;350,5\n2026-07-01T00:00Z;100,25\n"))
    assert grid.steps.value.tolist() == pytest.approx([0.10025, 0.3505])


def test_five_minutes(file):
    rows = "".join(f"2026-07-01T00:{5 * n:02d}Z,{n}\n" for n in range(12))
    assert read_grid(file(f"point_time,lb/MWh\n{rows}")).step_s == 300.0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("time,g/kWh\n", "holds no factors"),
        ("a,b\n1,2\n", "no column of times"),
        ("time,g/kWh\nyesterday,1\n2026-07-01T00:00Z,2\n", "line 2: 'yesterday' is no time"),
        ("time,g/kWh\n2026-07-01T00:00Z,n/a\n", "line 2: 'n/a' is no number"),
        ("time,g/kWh\n2026-07-01T00:00Z,nan\n", "is no factor of a grid"),
        ("time,kg/kWh\n2026-07-01T00:00Z,383\n", "383 kgCO2e/kWh is no factor of a grid"),
        ("time,g/kWh\n2026-07-01T00:00Z,-3\n", "is no factor of a grid"),
        ("time,g/kWh\n2026-07-01T00:00Z\n", "line 2 has 1 cells"),
        ("time,g/kWh\n2026-07-01T00:00Z,1\n2026-07-01T00:00Z,2\n", "in no order"),
        ("time,g/kWh\n2026-07-01T00:00Z,1\n2026-08-01T00:00Z,2\n", "one factor each"),
        ("# remark\ntime,g/kWh\n2026-07-01T00:00Z,1\nbad,2\n", "line 4: 'bad'"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(file, text, said):
    with pytest.raises(InputError, match=said) as error:
        read_grid(file(text))
    assert "hours.csv" in str(error.value)


def test_no_such_file_and_no_such_zone(tmp_path, file):
    with pytest.raises(InputError, match="nowhere"):
        read_grid(str(tmp_path / "nowhere.csv"))
    with pytest.raises(InputError, match="no time zone named"):
        read_grid(file("time,g/kWh\n2026-07-01 00:00,1\n"), zone="Mars/Olympus")
    assert math.isfinite(
        read_grid(file("time,g/kWh\n2026-07-01 00:00,1\n"), zone="utc").steps.value[0]
    )


def test_a_file_without_any_number(file):
    with pytest.raises(InputError, match="holds no factors"):
        read_grid(file("time,g/kWh\n2026-07-01T00:00Z,\n2026-07-01T01:00Z,\n"))


def test_the_newest_first_over_the_hour_that_comes_twice(file):
    rows = ["2026-10-25 01:00", "2026-10-25 02:00", "2026-10-25 02:00", "2026-10-25 03:00"]
    text = "time,g/kWh\n" + "".join(f"{row},{n}\n" for n, row in reversed(list(enumerate(rows))))
    grid = read_grid(file(text), zone="Europe/Berlin")
    assert np.diff(grid.steps.start_s).tolist() == [3600.0] * 3
    assert grid.steps.value.tolist() == pytest.approx([0.0, 0.001, 0.002, 0.003])


@pytest.mark.parametrize(
    "text",
    ["time,kgCO2e/kWh\n2026-07-01T00:00Z,0,310\n", "time,gCO2e/kWh\n2026-07-01T00:00Z,1,310\n"],
)
def test_a_decimal_comma_or_a_comma_of_thousands_is_no_column(file, text):
    with pytest.raises(InputError, match=r"line 2 has 3 cells, the header 2\. a decimal comma"):
        read_grid(file(text))
    assert read_grid(file("time,g/kWh\n2026-07-01T00:00Z,1,\n")).steps.value.tolist() == [
        0.001
    ]  # an empty cell at the end says nothing


def test_offsets_that_change_are_instants_in_order(file):
    grid = read_grid(
        file(
            "time,g/kWh\n2026-10-25T02:30+02:00,1\n2026-10-25T02:00+01:00,2\n2026-10-25T02:30+01:00,3\n"
        )
    )
    assert np.diff(grid.steps.start_s).tolist() == [1800.0] * 2
    assert grid.steps.value.tolist() == pytest.approx([0.001, 0.002, 0.003])


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


@pytest.mark.parametrize(
    "text",
    [
        "Datetime (UTC),gCO2eq/kWh\n2026-10-01 00:00,300\n2026-10-01 01:00,310\n",
        "time,gCO2eq/kWh\n2026-10-01T02:00+02:00,300\n2026-10-01T03:00+02:00,310\n",
    ],
    ids=["header", "cell"],
)
def test_an_offset_that_a_file_says_is_not_overruled_by_a_flag(file, text):
    path = file(text)
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


def test_a_byte_order_mark_before_a_comment(file):
    grid = read_grid(
        file("\ufeff# from us\ntime,gCO2eq/kWh\n2026-10-01T00:00Z,300\n2026-10-01T01:00Z,310\n")
    )
    assert grid.steps.value.tolist() == pytest.approx([0.3, 0.31])
