"""Litres from energy and a site's factor."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptcost.first.core.quantities import litres
from ckptcost.first.core.units import KWH_J, parse

ASKED = ["model", "--tier", "generic-pfs", "--saves", "100", "--draws", "64", "-f", "json"]


def water_of(cli, *settings: str) -> dict:
    words = [word for each in settings for word in ("--set", each)]
    return json.loads(cli(*ASKED, *words).out)["statements"][0]


def test_a_published_factor_is_for_each_kwh_of_it():
    """1.15 kWh at the meter are 1 kWh of IT where PUE is 1.15: 1.8 litres, as WUE says."""
    assert litres(1.15 * KWH_J, parse("1.8 L/kWh", "l_per_j"), 1.15) == pytest.approx(1.8)


@given(st.floats(1e-3, 1e12), st.floats(0, 1e-4), st.floats(1, 10))
def test_it_grows_with_energy_and_factor_and_falls_with_pue(energy_j, factor, pue):
    one = litres(energy_j, factor, pue)
    assert litres(2 * energy_j, factor, pue) == pytest.approx(2 * one)
    assert litres(energy_j, 2 * factor, pue) == pytest.approx(2 * one)
    assert litres(energy_j, factor, 2 * pue) == pytest.approx(one / 2)


def test_without_a_factor_it_is_not_known(cli):
    told = water_of(cli)
    assert told["totals"]["water"]["value"] is None
    assert {c["water"]["value"] for c in told["components"] if c["energy"]["value"]} == {None}


def test_no_water_is_a_stated_zero(cli):
    told = water_of(cli, "site.water=0 L/kWh")
    assert told["totals"]["water"]["value"] == 0


def test_every_line_and_the_total_follow_from_the_energy(cli):
    told = water_of(cli, "site.water=1.8 L/kWh", "site.pue=1.2")
    for c in (*told["components"], told["totals"]):
        if c["energy"]["value"] is not None:
            assert c["water"]["value"] == pytest.approx(c["energy"]["value"] / 1.2 * 1.8)
    assert told["totals"]["water"]["unit"] == "L"
    assert "site.water" in told["rests"][told["totals"]["water"]["rests"]]


def test_it_is_a_target_and_a_sentence(cli):
    words = ["model", "--tier", "generic-pfs", "--saves", "100", "--draws", "64"]
    words += ["--set", "site.water=1.8 L/kWh"]
    done = cli(*words, "--full", "--require", "water_l<=1")
    assert done.code == 3
    assert "Water for cooling, on site: 46,600 L" in done.out
    assert "MISSED: water_l<=1, it is 46,600 L" in done.out
