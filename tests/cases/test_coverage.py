"""Published outcomes against the ranges: docs/coverage.md says what was found."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from coverage import PAGE, counting, measured, outcomes, page, row_of, share, width

from ckptcost.scenario.catalog import sources

INSIDE, TESTED = 0.60, 0.80
"""Aimed at is 0.85 to 0.95. This is what was found of all outcomes, and of those that test a range
which others of their kind set: floors, a change may not make it worse."""
WIDE = 12.0
"""and not by ranges that say nothing: saves by few processes are reported to differ 100-fold"""
UNGROUPED = {"bound": "exactly", "sets": "", "group": "", "note": ""}


def test_outcomes_lie_inside_at_least_as_often_as_found() -> None:
    assert INSIDE <= share(counting()) <= 0.95
    assert TESTED <= share([row for row in counting() if row.group]) <= 0.95


def test_enough_outcomes_count_and_their_ranges_are_narrow_enough_to_help() -> None:
    assert width(counting()) < WIDE
    assert 60 <= len(counting()) <= 90
    assert not any(row.sets for row in counting())


@pytest.mark.parametrize("cells", outcomes(), ids=lambda cells: cells["id"])
def test_every_outcome_has_a_source(cells: dict[str, str]) -> None:
    assert all(each.strip() in sources() for each in cells["source"].split(";"))
    assert cells["bound"] in ("exactly", "at least", "at most")


def test_what_one_knows_exactly_is_met_exactly() -> None:
    """A case that is given its own time of a save has that time and no range."""
    settings = "tier.save_time=393.86 s; tier.timed_size=96 GB; checkpoint.size=96 GB"
    cells = {"id": "x", "job": "x", "settings": f"{settings}; cluster.gpus=8", "measure": "save"}
    row = row_of(cells | {"value": "393.86 s"} | UNGROUPED, draws=64)
    assert (row.inside, row.width) == (True, 1.0)
    assert not row._replace(published=394.86).inside
    assert row._replace(published=300.0, bound="at least").inside
    assert not row._replace(published=300.0, bound="at most").inside


def test_the_page_shows_every_outcome() -> None:
    """Its numbers are of the day it was written; `python tests/cases/coverage.py --write`."""
    jobs = [line.split(" | ")[0] for line in PAGE.read_text("utf-8").splitlines()]
    assert all(f"| {row.job}" in jobs for row in measured())
    assert page().count("\n") == len(jobs)
