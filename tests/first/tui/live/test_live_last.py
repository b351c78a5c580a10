"""The sentence on the last checkpoint says what is not known."""

from __future__ import annotations

from math import nan
from types import SimpleNamespace

import pytest

from ckptcost.first.core.reconcile import Energy, unknown
from ckptcost.first.jobs import account
from ckptcost.first.jobs.account import Account, Joules
from ckptcost.first.tui.live import tables as live_last

KNOWN = Energy(22_300.0, 22_200.0, 22_400.0)


@pytest.mark.parametrize(
    ("gpus", "hosts", "told"),
    [
        (KNOWN, Energy(1_900.0, 1_877.0, 1_923.0), "24,200 J +-123 (GPU 22,300, host 1,900)"),
        (KNOWN, unknown("NO_PARTS"), "at least 22,300 J (GPU 22,300, host unknown)"),
        (unknown("GAPS"), KNOWN, "at least 22,300 J (GPU unknown, host 22,300)"),
        (unknown("GAPS"), unknown("GAPS"), "energy unknown"),
    ],
)
def test_a_part_that_is_missing_is_said(gpus, hosts, told):
    both = (
        unknown("GAPS")
        if not (gpus.known and hosts.known)
        else Energy(gpus.value + hosts.value, gpus.low + hosts.low, gpus.high + hosts.high)
    )
    assert live_last._energy(Joules(both, gpus, hosts)) == told


def test_without_a_price_or_a_stall_both_are_unknown_and_never_0():
    assert live_last._cost(None) == "cost unknown"
    assert live_last._waited(None, nan) == "GPU-s unknown"
    assert not Account().joules(1).all.known


def test_of_reasons_that_are_given_as_often_the_first_is_told():
    codes = [f"REASON_{number}" for number in range(12)]
    bills = [SimpleNamespace(energies={"host_wait": unknown(code)}) for code in codes]
    _, lacking = account._lines_j([SimpleNamespace(bill=bill) for bill in bills], 0)
    assert lacking == {"host_wait": ("REASON_0", 12)}
