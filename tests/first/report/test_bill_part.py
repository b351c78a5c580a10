"""Lines and sums of statements, whatever they come from."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ckptcost.first.core.quantities import BY_ID, IN_DOCUMENTS
from ckptcost.first.report.statements.bill import (
    UNKNOWN_ENDS,
    BilledAmount,
    BilledLine,
    Rests,
    amount_part,
    bill_part,
    count_part,
    draws_amount,
    runs_mean,
)

ENERGY = BY_ID["energy"]
DARK = BilledAmount(*UNKNOWN_ENDS)


def told(found: BilledAmount, interval: str = "p5-p95") -> dict:
    return amount_part("kWh", found, 3, interval)


def line(name: str, **amounts: float) -> BilledLine:
    found = {q.id: BilledAmount(*[amounts.get(q.id, 0.0)] * 3) for q in IN_DOCUMENTS}
    return BilledLine(name, "node", found, "modelled", "assumed")


def test_a_mean_with_its_percentiles_by_hand():
    part = told(runs_mean(np.arange(101.0), ("a",)))
    assert (part["value"], part["low"], part["high"]) == (50.0, 5.0, 95.0)
    assert (part["interval"], part["excludes"], part["rests"]) == ("p5-p95", ["a"], 3)
    one = told(runs_mean(np.array([1.0])))
    assert (one["value"], one["low"], one["high"], one["interval"]) == (1.0, None, None, None)
    skewed = told(runs_mean(np.array([0.0] * 99 + [100.0])))
    assert (skewed["low"], skewed["value"], skewed["high"]) == (0.0, 1.0, 1.0)
    assert told(runs_mean(np.array([1.0, math.nan])))["value"] is None


def test_draws_are_in_base_units_and_their_range_holds_the_value():
    part = told(draws_amount(ENERGY, 3.6e6, np.array([7.2e6] * 9 + [10.8e6])))
    assert (part["value"], part["low"]) == (1.0, 1.0)
    assert part["high"] == pytest.approx(2.55)
    assert told(draws_amount(ENERGY, 3.6e6, 3.6e6))["interval"] is None


def test_ends_that_differ_in_rounding_alone_are_no_range():
    assert told(BilledAmount(0.3, 0.1 + 0.2, math.nextafter(0.1 + 0.2, 1.0)))["interval"] is None


def test_an_open_end_is_null_beside_a_low_one_and_what_is_unknown_has_no_range():
    part = told(BilledAmount(1.0, 1.0, math.inf, measured=True), "bounds")
    assert (part["low"], part["high"], part["interval"]) == (1.0, None, "bounds")
    assert part["basis"] == "measured"
    lost = told(BilledAmount(math.nan, 0.0, 1.0))
    assert (lost["value"], lost["low"], lost["high"]) == (None, None, None)


def bill_of(lines: list[BilledLine], price: float = 2.5) -> dict:
    def total(ledger, q):
        return BilledAmount(*[math.fsum(each.amounts[q.id].value for each in lines)] * 3)

    rests = Rests(lambda name, q: [f"{name}.{q}"])
    return bill_part(lines, total, rests, "bounds", price)


def rests_of(bill: dict, amount: dict) -> list[str]:
    return bill["rests"][amount["rests"]]


def test_lines_and_sums_say_what_they_are_and_what_they_rest_on():
    bill = bill_of([line("gpu_wait", energy=2.0), line("storage_write", energy=3.0)])
    first = bill["components"][0]
    assert (first["label"], first["cause"], first["ledger"]) == (
        "GPUs waiting for saves",
        "save",
        "marginal",
    )
    assert rests_of(bill, first["energy"]) == ["gpu_wait.energy"]
    assert bill["totals"]["energy"]["value"] == 5.0
    both = ["gpu_wait.energy", "storage_write.energy"]
    assert rests_of(bill, bill["totals"]["energy"]) == both
    assert bill["allocated"] is None
    apart = bill_of([line("standing")])
    assert rests_of(apart, apart["allocated"]["energy"]) == ["standing.energy"]


def test_each_list_of_factors_is_said_once_and_an_empty_one_not_at_all():
    rests = Rests(lambda name, q: {"energy": ["site.pue"], "cost": ["site.pue"]}.get(q, []))
    lines = [line("gpu_wait"), line("storage_write")]
    bill = bill_part(
        lines, lambda ledger, q: BilledAmount(0.0, 0.0, 0.0), rests, "bounds", math.nan
    )
    assert bill["rests"] == [["site.pue"]]
    of = [c[q]["rests"] for c in bill["components"] for q in ("energy", "cost", "embodied")]
    assert of == [0, 0, None] * 2


@pytest.mark.parametrize(
    ("hours", "price", "cost", "priced"),
    [
        (4.0, 2.5, 10.0, (4.0, "GPU-h", 2.5)),
        (0.0, 2.5, 10.0, (None, None, None)),
        (4.0, math.nan, 10.0, (None, None, None)),
        (4.0, 2.5, math.nan, (None, None, None)),
    ],
)
def test_gpu_time_is_priced_where_all_of_it_is_known(hours, price, cost, priced):
    part = bill_of([line("gpu_wait", gpu_time_lost=hours, cost=cost)], price)["components"][0]
    assert tuple(part[name] for name in ("price_qty", "price_unit", "unit_price")) == priced


def test_lines_of_further_tiers_are_named_after_them():
    part = bill_of([line("third_network")])["components"][0]
    assert part["label"] == "network to storage, third tier"
    assert (part["cause"], part["ledger"]) == ("save", "marginal")


def test_counts_have_no_range():
    part = count_part(12.0, "measured")
    assert (part["value"], part["unit"], part["basis"], part["interval"]) == (
        12.0,
        "1",
        "measured",
        None,
    )
