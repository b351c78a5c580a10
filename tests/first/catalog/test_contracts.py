"""Contracts by site."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime

import pytest

from ckptcost.first.catalog.contracts import read_contracts
from ckptcost.first.errors import InputError

GOOD = """
[[site]]
id = "usa"
residual = "0.41 kg/kWh"
[[site.contract]]
name = "Wind PPA"
instrument = "PPA"
share = "60 %"
factor = "0 g/kWh"
from = 2026-01-01
until = "2027-01-01T00:00+01:00"
source = "contract 17"
[[site]]
id = "france"
"""


@pytest.fixture
def file(tmp_path):
    def write(text: str) -> str:
        path = tmp_path / "contracts.toml"
        path.write_text(text, "utf-8")
        return str(path)

    return write


def test_sites_with_their_contracts(file):
    found = read_contracts(file(GOOD))
    usa = found["usa"]
    assert usa.residual_kg_per_kwh == pytest.approx(0.41)
    (ppa,) = usa.bought
    assert (ppa.name, ppa.instrument, ppa.share, ppa.kg_per_kwh, ppa.source) == (
        "Wind PPA",
        "PPA",
        0.6,
        0.0,
        "contract 17",
    )
    assert (ppa.begin_s, ppa.end_s) == (1767225600.0, 1798758000.0)
    assert math.isnan(found["france"].residual_kg_per_kwh)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('id = "usa"\n', "", "site.1.id: is missing"),
        ('"60 %"', '"160 %"', "is no share"),
        ('"60 %"', '"0 %"', "is no share"),
        ('"0 g/kWh"', '"zero"', "is no emission factor"),
        ('"0 g/kWh"', '"900 kg/kWh"', "is no emission factor"),
        ('"0.41 kg/kWh"', '"-1 kg/kWh"', "is no emission factor"),
        ("2026-01-01", '"soon"', "is no date"),
        ("2026-01-01", "2029-01-01", "ends before it begins"),
        ("name =", "nmae =", "did you mean 'name'"),
        ("residual", "residuum", "did you mean 'residual'"),
        ('[[site]]\nid = "france"', '[[site]]\nid = "usa"', "two sites are called 'usa'"),
        ('share = "60 %"\n', "", "share: is missing"),
        ("[[site]]", "[[sites]]", "no key named 'sites'"),
    ],
)
def test_what_is_wrong_is_said(file, before, after, said):
    assert before in GOOD
    with pytest.raises(InputError, match=said):
        read_contracts(file(GOOD.replace(before, after)))


def test_shares_of_one_time_are_at_most_all(file):
    twice = GOOD.replace(
        '[[site]]\nid = "france"',
        '[[site.contract]]\nname = "Sun"\ninstrument = "GO"\nshare = "50 %"\nfactor = "0'
        ' g/kWh"\nfrom = 2026-06-01\n',
    )
    with pytest.raises(InputError, match="add up to more than all"):
        read_contracts(file(twice))
    read_contracts(file(twice.replace("from = 2026-06-01", "from = 2027-06-01")))


def test_nothing_in_it(file):
    with pytest.raises(InputError, match=r"no \[\[site\]\] tables"):
        read_contracts(file("# nothing"))


def site_of(file, text):
    return read_contracts(file(f'[[site]]\nid = "usa"\n{text}'))["usa"]


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


def test_names_of_contracts_hold_no_escape_sequences(file):
    with pytest.raises(InputError, match="control character"):
        site_of(file, CONTRACT.format("60 %", "0 g/kWh").replace('"a"', '"a\\u001b[31m"'))


def test_midnight_of_a_contract_is_utc_wherever_this_runs(file, monkeypatch):
    text = (
        '[[site]]\nid = "usa"\n[[site.contract]]\nname = "a"\ninstrument = "PPA"\nshare = "60'
        ' %"\nfactor = "0 g/kWh"\nfrom = 2026-01-01\n'
    )
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        (one,) = read_contracts(file(text))["usa"].bought
    finally:
        monkeypatch.undo()
        time.tzset()
    assert one.begin_s == datetime(2026, 1, 1, tzinfo=UTC).timestamp()
