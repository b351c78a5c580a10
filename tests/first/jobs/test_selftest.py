"""How a self-test judges a save: between the disks' counter and fsync it agrees, outside it does
not, and unknown is not wrong."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from ckptcost.first.core.channels import Mark
from ckptcost.first.core.contents import contents_of
from ckptcost.first.core.phases import windows_of
from ckptcost.first.jobs.selftest import INSTANT_S, _Beside, _save_trial

S = 1_000_000_000
LINE = {"number": 1, "way": "one file", "bytes": 1000.0, "begin_ns": 10 * S, "returned_ns": 11 * S}


def said(begin_s=10.0, returned_s=11.0, durable_s=12.0, bytes_=1000.0, **detail):
    marks = [Mark(begin_s, "begin", "a", 0, "watch", {"bytes": bytes_})]
    marks += [Mark(returned_s, "returned", "a", 0, "watch")]
    if durable_s is not None:
        marks += [Mark(durable_s, "durable", "a", 0, "watch", {"how": "cachestat", **detail})]
    windows = windows_of(marks)
    return windows[0], contents_of(marks, windows)[0]


def tried(told, from_s=11.5, to_s=12.5, gone_s=None, line=LINE):
    ns = [None if each is None else round(each * S) for each in (from_s, to_s, gone_s)]
    return _save_trial(line, 10.0, told, *ns, INSTANT_S)


def test_all_that_is_said_is_true():
    one = tried(said())
    assert (one.is_found, one.agrees) == (True, True)
    assert (one.bytes_error, one.begin_error_s, one.stall_error_s, one.safe_error_s) == (0, 0, 0, 0)
    assert (one.safe_from_s, one.safe_to_s, one.said_safe_s) == (1.5, 2.5, 2.0)


@pytest.mark.parametrize(
    ("told", "field", "error"),
    [
        (said(begin_s=10.3, returned_s=11.3), "begin_error_s", 0.3),
        (said(returned_s=10.5), "stall_error_s", -0.5),
        (said(bytes_=999.0), "bytes_error", -0.001),
        (said(durable_s=11.2), "safe_error_s", -0.3),
        (said(durable_s=13.0), "safe_error_s", 0.5),
    ],
)
def test_what_is_off_disagrees_by_so_much(told, field, error):
    one = tried(told)
    assert getattr(one, field) == pytest.approx(error)
    assert not one.agrees


def test_early_without_the_disks_counter_cannot_be_told_and_late_still_can():
    assert tried(said(durable_s=11.2), from_s=None).agrees
    assert not tried(said(durable_s=13.0), from_s=None).agrees
    one = tried(said(), from_s=None, to_s=None)
    assert math.isnan(one.safe_error_s)


def test_unknown_is_not_wrong():
    one = tried(said(durable_s=None))
    assert one.agrees
    assert math.isnan(one.said_safe_s)


def test_a_save_that_is_not_found_disagrees():
    assert not tried(None).agrees


def test_deleted_before_it_was_safe_and_called_safe_is_wrong():
    assert not tried(said(), from_s=None, to_s=None, gone_s=12.0).agrees
    assert not tried(said(), from_s=13.0, to_s=None, gone_s=12.0).agrees
    assert tried(said(durable_s=None), from_s=None, to_s=None, gone_s=12.0).agrees
    assert tried(said(durable_s=11.6), from_s=11.5, to_s=None, gone_s=12.0).agrees


def test_the_last_look_at_which_the_disks_had_not_taken_it():
    beside = _Beside(-1, -1, ())
    assert beside.taken_ns(15, 100) is None
    beside.seen = [(10, 50), (20, 100), (30, 149), (40, 150), (50, 400)]
    assert beside.taken_ns(15, 100) == 30
    assert beside.taken_ns(15, 1) == 15
    assert beside.taken_ns(15, 1000) is None


def test_the_writers_names_are_those_that_are_removed(tmp_path):
    import os

    from ckptcost.first.jobs import selftest_children
    from ckptcost.first.savers.removal import is_save, remove

    place, notes = tmp_path / "place", tmp_path / "notes"
    place.mkdir()
    notes.touch()
    writer = selftest_children.SelftestWriter(str(place), 100_001, str(notes))
    files = [*writer.one(1, True), *writer.several(2, True), *writer.several(3, False)]
    assert sum((place / file).stat().st_size for file in files) == 3 * 100_001
    assert all(is_save(each.name) for each in Path(place).iterdir())
    parent, fd = (os.open(each, os.O_RDONLY) for each in (tmp_path, place))
    assert remove(parent, "place", fd) == []
    assert not place.exists()
    os.close(parent)
    os.close(fd)
