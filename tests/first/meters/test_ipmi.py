"""DCMI over ipmitool: real output, a fake tool that is slow, wrong or gone, and reasons with
remedies."""

from __future__ import annotations

import math
import os
import shutil
import stat
import subprocess
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptcost.first.errors import MeterUnavailable
from ckptcost.first.meters import ipmi
from ckptcost.first.meters.background import Background
from ckptcost.first.meters.base import Event, Meter

GOOD = """
    Instantaneous power reading:                   319 Watts
    Minimum during sampling period:                  6 Watts
    Maximum during sampling period:               1304 Watts
    Average power reading over sample period:      349 Watts
    IPMI timestamp:                           02/15/24 08:36:01 UTC    Sampling period:                          00000010 Seconds.
    Power reading state is:                   activated

"""
"""as ipmitool 1.8.19 prints it: ipmi_timestamp_numeric ends without a newline"""
OLD = GOOD.replace("02/15/24 08:36:01 UTC    Sampling", "Thu Feb 15 08:36:01 2024\n    Sampling")
"""as 1.8.18 does"""
NO_DEVICE = (
    "Could not open device at /dev/ipmi0 or /dev/ipmi/0 or /dev/ipmidev/0: No such file or"
    " directory"
)
"""what ipmitool 1.8.19 writes without a BMC; exit code 1"""


def tool(folder: Path, script: str) -> str:
    path = folder / "ipmitool"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def says(folder: Path, text: str, code: int = 0, err: str = "") -> str:
    (folder / "out").write_text(text)
    (folder / "err").write_text(err)
    return tool(
        folder,
        f'echo "$@" >> {folder}/argv; echo "$LC_ALL" > {folder}/lang; cat {folder}/out; cat'
        f" {folder}/err >&2; exit {code}",
    )


@pytest.mark.parametrize(
    "text", [GOOD, OLD, GOOD.replace("\n", "\r\n"), "warning: something\n" + GOOD]
)
def test_a_reading(text):
    assert ipmi.parse(text)[:4] == (319.0, 6.0, 1304.0, 349.0)
    assert ipmi.parse(text).active
    assert ipmi.parse(OLD).period_s == 10.0


def test_the_period_may_share_a_line_with_the_timestamp():
    assert ipmi.parse(GOOD).period_s == 10.0


def test_deactivated_is_told():
    assert not ipmi.parse(GOOD.replace("activated", "deactivated")).active


@pytest.mark.parametrize("cut", range(0, len(GOOD.rstrip()), 7))
def test_a_reply_that_is_cut_off_is_refused(cut):
    with pytest.raises(ValueError, match=r"empty|not a DCMI"):
        ipmi.parse(GOOD[:cut])


@given(st.text())
def test_garbage_is_refused_and_nothing_else_happens(text):
    with pytest.raises(ValueError, match=r"empty|not a DCMI"):
        ipmi.parse(text)


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_any_figure_comes_back(now, period):
    text = GOOD.replace("319", str(now)).replace("00000010", f"{period:08d}")
    assert (ipmi.parse(text).now_w, ipmi.parse(text).period_s) == (float(now), float(period))


def test_a_meter_reads_with_a_fixed_command_and_a_fixed_language(tmp_path, monkeypatch):
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    meter = ipmi.Ipmi(says(tmp_path, GOOD), least_s=0.1)
    assert isinstance(meter, Meter)
    assert meter.least_s == 1.0
    (channel,) = meter.channels
    assert (channel.domain, channel.quantity, channel.role, channel.resolution) == (
        "node",
        "power_w",
        "whole",
        1.0,
    )
    assert meter.read(0) == (319.0,)
    assert meter.last.average_w == 349.0
    assert (tmp_path / "argv").read_text() == "dcmi power reading\n"
    assert (tmp_path / "lang").read_text() == "C\n"
    assert meter.events == []


def test_lost_and_found_once_each(tmp_path):
    meter = ipmi.Ipmi(says(tmp_path, GOOD))
    seen = []
    for text, code in [
        (GOOD, 0),
        ("rubbish", 0),
        (GOOD, 3),
        (GOOD.replace("319", "0"), 0),
        (GOOD.replace("activated", "deactivated"), 0),
        (GOOD, 0),
    ]:
        says(tmp_path, text, code)
        seen.append(meter.read(0)[0])
    assert seen[0] == seen[-1] == 319.0
    assert all(math.isnan(value) for value in seen[1:-1])
    assert [event.name for event in meter.events] == ["lost", "found"]
    assert "rubbish" in meter.events[0].text
    says(tmp_path, "", 1)
    meter.read(0)
    assert [event.name for event in meter.events] == ["lost", "found", "lost"]


@pytest.mark.parametrize(
    ("text", "code", "err", "reason", "remedy"),
    [
        ("", 1, NO_DEVICE, "Could not open device", "modprobe -a"),
        (
            "",
            1,
            NO_DEVICE.replace("No such file or directory", "Permission denied"),
            "Permission denied",
            "udev",
        ),
        (
            "",
            1,
            "    DCMI request failed because: Invalid command (c1)",
            "Invalid command",
            "redfish",
        ),
        ("", 2, "", "without a word", "redfish"),
        ("", 0, "", "empty reply", "redfish"),
        (GOOD.replace("activated", "deactivated"), 0, "", "deactivated", "redfish"),
        (GOOD.replace("319", "0"), 0, "", "0 W", "redfish"),
        (GOOD.replace("319", "65535"), 0, "", "65535 W", "redfish"),
        ("\x00\xff" * 9, 0, "", "not a DCMI", "redfish"),
        ("", 1, "x" * 5000, "xxx", "redfish"),
    ],
)
def test_each_failure_has_a_reason_and_a_remedy(tmp_path, text, code, err, reason, remedy):
    meter = ipmi.Ipmi(says(tmp_path, text, code, err))
    with pytest.raises(MeterUnavailable) as caught:
        meter.ask()
    assert reason in caught.value.reason
    assert remedy in caught.value.remedy
    assert len(caught.value.reason) < 300


def children() -> set[str]:
    me = Path("/proc/self/task")
    return {pid for task in me.iterdir() for pid in (task / "children").read_text().split()}


def test_a_tool_that_hangs_is_ended_with_all_it_started(tmp_path):
    before = children()
    path = tool(tmp_path, f"sleep 60 & echo $! > {tmp_path}/child; wait")
    meter = ipmi.Ipmi(path, timeout_s=0.3)
    assert math.isnan(meter.read(0)[0])
    assert meter.events == [Event("lost", "node", "no answer within 0.3 s")]
    assert children() == before  # nothing left, and no zombie
    child = Path("/proc") / (tmp_path / "child").read_text().strip() / "stat"
    end = time.monotonic() + 5.0
    while child.exists() and child.read_text().split()[2] != "Z" and time.monotonic() < end:
        time.sleep(0.005)
    assert not child.exists() or child.read_text().split()[2] == "Z"


def test_one_that_cannot_be_ended_is_not_started_twice(tmp_path, monkeypatch):
    class Stuck:
        pid, returncode, started = 2**22 + 1, None, 0

        def __init__(self, *args, **kwargs):
            Stuck.started += 1

        def communicate(self, timeout=None):
            raise subprocess.TimeoutExpired("ipmitool", timeout)

        def poll(self):
            return self.returncode

    monkeypatch.setattr(subprocess, "Popen", Stuck)
    meter = ipmi.Ipmi("ipmitool", timeout_s=0.01)
    for _ in range(3):
        assert math.isnan(meter.read(0)[0])
    assert Stuck.started == 1
    Stuck.returncode = -9
    meter.read(0)
    assert Stuck.started == 2


def test_a_tool_that_vanishes(tmp_path):
    meter = ipmi.Ipmi(says(tmp_path, GOOD))
    assert meter.read(0) == (319.0,)
    (tmp_path / "ipmitool").unlink()
    assert math.isnan(meter.read(0)[0])
    assert "No such file" in meter.events[0].text


def test_stop_ends_the_call_under_way(tmp_path):
    meter = Background(
        ipmi.Ipmi(tool(tmp_path, f"touch {tmp_path}/started; exec sleep 60"), timeout_s=30.0),
        stop_s=10.0,
    )
    meter.read(0)
    end = time.monotonic() + 5.0
    while not (tmp_path / "started").exists() and time.monotonic() < end:
        time.sleep(0.002)
    start = time.monotonic()
    meter.close()
    assert not meter.thread.is_alive()
    assert time.monotonic() - start < 8.0
    assert (meter.events, list(meter._news)) == ([], [])


def dev(folder: Path, name: str = "ipmi0") -> Path:
    (folder / "dev" / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / "dev" / name).touch()
    return folder / "dev"


def test_find_asks_nothing_of_anybody_unless_asked(monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", None)
    (absence,) = ipmi.find().absences
    assert absence.kind == "node"
    assert "not asked for" in absence.reason


@pytest.mark.parametrize("name", ipmi.NODES)
def test_find_gives_a_meter_behind_a_thread_that_is_not_started_yet(tmp_path, name):
    before = threading.active_count()
    found = ipmi.find(True, tool=says(tmp_path, GOOD), dev=dev(tmp_path, name), least_s=5.0)
    (meter,) = found.meters
    assert isinstance(meter, Background)
    assert (meter.name, meter.pace_s, meter.facts["statistics over"]) == ("ipmi", 5.0, "10 s")
    assert threading.active_count() == before
    meter.close()


def test_find_says_what_is_missing(tmp_path, monkeypatch):
    path = says(tmp_path, "", 1, NO_DEVICE)
    (no_tool,) = ipmi.find(True, tool=str(tmp_path / "none")).absences
    assert "install ipmitool" in no_tool.remedy
    (no_device,) = ipmi.find(True, tool=path, dev=tmp_path).absences
    assert (
        "modprobe -a ipmi_si ipmi_devintf" in no_device.remedy
    )  # without -a the second would be taken for a parameter
    (refused,) = ipmi.find(True, tool=path, dev=dev(tmp_path)).absences
    assert "Could not open" in refused.reason
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(shutil, "which", lambda _: path)
    (denied,) = ipmi.find(True, tool=path, dev=dev(tmp_path)).absences
    assert "permission" in denied.reason
    assert "controls the BMC" in denied.remedy


@pytest.mark.skipif(
    shutil.which("ipmitool") is None or any((Path("/dev") / n).exists() for n in ipmi.NODES),
    reason="ipmitool and no BMC",
)
def test_the_real_tool_without_a_bmc():
    with pytest.raises(MeterUnavailable) as caught:
        ipmi.Ipmi("ipmitool").ask()
    assert caught.value.reason == NO_DEVICE
    assert caught.value.remedy == ipmi.LOAD
