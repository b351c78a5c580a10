"""Whose bytes stand beside a save: the folder's own device's, never those of a disk below a loop
device."""

from __future__ import annotations

import pytest
from told_meters import Told, at, evaluated, said

from ckptcost.first.core.channels import Channel
from ckptcost.first.jobs.measured import stored_of_saves
from ckptcost.first.report.studies.measure import study_of

SAVE = said("begin 5, returned 7, durable 10")


def disk(name, note="", **more):
    return Channel(f"disk:{name}", "written_bytes", "told", "disk", note=note, **more)


def seen_with(channels, folder=""):
    meter = Told("block", channels, facts={"folder": f"disk:{folder}"} if folder else {})
    return evaluated(meter, marks=SAVE)


def rows_of(seen):
    tables = {table.id: table for table in study_of(seen).tables}
    return tables["storage_windows"].rows if "storage_windows" in tables else [], tables


LOOP = {
    disk("vda"): at(1e6),
    disk("loop0", "lies on /somewhere/disk.img", role="detail"): at(5e6),
}


def test_below_a_loop_device_lies_somebody_elses_cache():
    rows, tables = rows_of(seen_with(LOOP, "loop0"))
    assert [row["disk"] for row in rows] == ["disk:loop0"]
    assert rows[0]["written"] == pytest.approx(25e6, rel=0.01)
    assert [row["disk"] for row in tables["storage"].rows] == ["disk:vda"], "the sum has disks once"
    assert "disk:loop0, the folder's own device" in tables["storage_windows"].note
    assert "others' writes" in tables["storage_windows"].note


def test_disks_that_the_folder_is_not_on_are_left_out():
    channels = {disk("sda"): at(1e6), disk("sdb"): at(9e6)}
    rows, _ = rows_of(seen_with(channels, "sda"))
    assert [row["disk"] for row in rows] == ["disk:sda"]


def test_of_a_partition_its_disk_is_told_too():
    channels = {
        disk("sda"): at(4e6),
        disk("sdb"): at(9e6),
        disk("sda1", "lies on sda", role="detail"): at(1e6),
        disk("dm-0", "lies on sda1", role="detail"): at(1e6),
    }
    for own, told in (
        ("sda1", ["disk:sda1", "disk:sda"]),
        ("dm-0", ["disk:dm-0", "disk:sda"]),
    ):
        assert [stored.disk for stored in stored_of_saves(seen_with(channels, own))] == told


def test_where_no_folder_was_named_every_disk_is_told_and_that_is_said():
    rows, tables = rows_of(seen_with({disk("sda"): at(1e6), disk("sdb"): at(9e6)}))
    assert [row["disk"] for row in rows] == ["disk:sda", "disk:sdb"]
    assert "Which disk the saves went to is not known" in tables["storage_windows"].note


def test_a_short_window_says_how_far_its_bytes_may_lie_off():
    stepped = {disk("sda"): lambda t_s: 8e6 * (t_s // 0.5)}
    meter = Told("block", stepped, facts={"folder": "disk:sda"})
    seen = evaluated(meter, marks=said("begin 5.05, returned 5.1, durable 5.15"))
    (row,), _ = rows_of(seen)
    assert row["written_low"] <= row["written"] <= row["written_high"]
    assert row["written_error"] == max(
        row["written_high"] - row["written"], row["written"] - row["written_low"]
    )
