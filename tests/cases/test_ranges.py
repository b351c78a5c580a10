"""Ranges of defaults against the published outcomes that they were fitted to."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from coverage import GROUPS, outcomes
from ranges import (
    MOST,
    SETS,
    drawn_ends,
    ends_of,
    grouped,
    reports,
    shipped_ends,
    size_and_processes,
)

from ckptcost.scenario.resolve import default_figure
from ckptcost.scenario.units import parse


@pytest.mark.parametrize("group", SETS)
def test_the_first_of_two_sets_the_range_and_the_second_tests_it(group: str) -> None:
    """In the order of the file, whatever the values are."""
    sets = [cells["sets"] for cells in grouped(group)]
    assert sets == [SETS[group] if place % 2 == 0 else "" for place in range(len(sets))]


def test_every_group_is_one_of_these() -> None:
    assert {cells["group"] for cells in outcomes()} == set(GROUPS) == {*SETS, ""}


@pytest.mark.parametrize("group", [group for group in SETS if group != "restart"])
def test_a_twentieth_of_the_draws_lies_beyond_a_twentieth_of_the_reports(group: str) -> None:
    assert shipped_ends(group) == pytest.approx(ends_of(reports(group)), rel=0.03)


@pytest.mark.parametrize("way", ["write", "read"])
def test_the_rate_of_one_process_is_about_the_middle_of_the_reports(way: str) -> None:
    found = np.median(reports(way))
    assert default_figure("tier", f"gpu_{way}").value == pytest.approx(found, rel=0.12)


def test_a_restart_reaches_as_far_as_reported() -> None:
    """What follows a new start of the processes is in the reports: only the longer end tells."""
    figure = default_figure("failures", "reschedule")
    assert figure.low < min(reports("restart")) < max(reports("restart")) < figure.high


@pytest.mark.parametrize("way", ["write", "read"])
def test_only_jobs_of_few_processes_tell_the_rate_of_one(way: str) -> None:
    assert all(size_and_processes(cells)[1] <= MOST for cells in grouped(way))


def test_the_fixed_time_of_a_save_may_be_in_its_rate() -> None:
    """The shortest save of MLPerf Storage took 3 s, and its rate is bytes over the whole of it."""
    figure = default_figure("tier", "setup")
    assert drawn_ends(figure.low, figure.value, figure.high)[0] < parse("1 s", "1 s")
