"""The one table of lines: every bill has its lines, and the reports know what they rest on."""

from __future__ import annotations

import pytest
from sample_scenarios import SHAPES

from ckptcost.first.catalog.keys import meaning_of
from ckptcost.first.core.lines import KINDS, OF_A_SAVE, OF_THE_JOB, tier_and_kind
from ckptcost.first.core.outcome import evaluate
from ckptcost.first.fleet.lines import LINES


@pytest.mark.parametrize("shape", SHAPES)
def test_a_bill_has_the_lines_of_the_table_in_its_order(shape):
    bill = evaluate(SHAPES[shape]).run
    told = [tier_and_kind(line.id) for line in bill.lines]
    ours = [kind.id for tier, kind in told if tier == "tier"]
    assert ours == [name for name in KINDS if name in ours]
    assert set(KINDS) - set(ours) == {"waiting", "missing_nodes"}, "of fleets"
    for line, (_, kind) in zip(bill.lines, told, strict=True):
        assert (line.cause, line.ledger) == (kind.cause, kind.ledger)
        assert line.boundary == kind.boundary or kind.boundary is None
    assert {kind.id for tier, kind in told if tier != "tier"} <= {
        name for name, kind in KINDS.items() if not kind.watts
    }


def test_only_lines_that_hold_gpus_have_gpu_time():
    for line in evaluate(next(iter(SHAPES.values()))).run.lines:
        assert KINDS[tier_and_kind(line.id)[1].id].holds_gpus or line.gpu_s == 0, line.id


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_what_a_line_rests_on_is_an_input(kind):
    for path in (*kind.watts, *([f"tier.{kind.rate}"] if kind.rate else [])):
        assert meaning_of(*path.split("."))


def test_sets_of_lines():
    assert set(LINES) <= set(KINDS)
    assert {KINDS[name].cause for name in OF_A_SAVE} == {"save"}
    assert {"gpu_wait", "redone_work"} <= OF_THE_JOB
    assert "storage_write" not in OF_THE_JOB
