"""Contracts by site."""

from __future__ import annotations

import math

import pytest

from ckptcost.catalog.contracts import read_contracts
from ckptcost.errors import InputError

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
