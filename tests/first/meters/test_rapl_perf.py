"""The `power` PMU: what its files say, which events are real, and the system call itself on an
event that any kernel has."""

from __future__ import annotations

import errno
import os
import sys
import time

import cpu_trees
import pytest

from ckptcost.first.errors import MeterLost
from ckptcost.first.meters import rapl, rapl_ways
from ckptcost.first.meters.rapl_domains import read_processor

SCALE = 2.0**-32
ALL = {"energy-cores": 1, "energy-pkg": 2, "energy-ram": 3, "energy-gpu": 4, "energy-psys": 5}
SECOND = 1_000_000_000


class Kernel:
    """perf_event_open with counters to order: a file per event and processor that holds what
    read(2) gives."""

    def __init__(self, folder):
        self.folder = folder
        self.calls: list[tuple[int, int, int]] = []
        self.refuse: dict[object, int] = {}
        self.joules: dict[tuple[int, int], float] = {}
        self.files: dict[int, tuple[int, int]] = {}
        self.short: set[tuple[int, int]] = set()

    def open(self, kind, config, cpu):
        self.calls.append((kind, config, cpu))
        for key in ("all", config, (config, cpu)):
            if key in self.refuse:
                raise OSError(self.refuse[key], os.strerror(self.refuse[key]))
        path = self.folder / f"{config}-{cpu}"
        path.write_bytes(b"")
        file = os.open(path, os.O_RDONLY)
        self.files[file] = (config, cpu)
        return file

    def read(self, file, size):
        event = self.files[file]
        assert size == 8
        if event in self.short:
            return b""
        return int(self.joules.get(event, 0.0) / SCALE).to_bytes(8, sys.byteorder)


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    (tmp_path / "events").mkdir()
    one = Kernel(tmp_path / "events")
    monkeypatch.setattr(rapl_ways.os, "read", one.read)
    return one


def pmu_of(host, kernel):
    return rapl_ways.pmu(host.sysfs, read_processor(host.procfs), kernel.open)


def said(meter, t_ns=0):
    return {
        channel.domain: value
        for channel, value in zip(meter.channels, meter.read(t_ns), strict=True)
    }


def server(root, topology, cpumask, events=ALL, vendor="GenuineIntel", release="6.8.0"):
    host = cpu_trees.nothing(root, vendor=vendor, release=release)
    host.add_processors(topology)
    host.add_pmu(events, cpumask)
    return host


TWO_SOCKETS = {n: (n // 8, 0) for n in range(16)}


def test_two_sockets(tmp_path, kernel):
    host = server(tmp_path, TWO_SOCKETS, "0,8")
    meter = pmu_of(host, kernel).meter
    assert {c.domain: c.role for c in meter.channels} == {
        "cpu:0": "part",
        "cpu:1": "part",
        "dram:0": "part",
        "dram:1": "part",
        "psys:0": "whole",
        "psys:1": "whole",
        "core:0": "detail",
        "core:1": "detail",
        "uncore:0": "detail",
        "uncore:1": "detail",
    }
    assert sorted(kernel.calls) == sorted(
        (16, config, cpu) for config in ALL.values() for cpu in (0, 8)
    )
    assert all(
        c.wraps_at is None and c.tick_s == 0.001 for c in meter.channels
    )  # the kernel has undone the wraps
    kernel.joules = {(2, 0): 100.5, (2, 8): 262_144.0 * 1000, (3, 8): 7.25}
    values = said(meter)
    assert (values["cpu:0"], values["cpu:1"], values["dram:0"], values["dram:1"]) == (
        100.5,
        262_144_000.0,
        0.0,
        7.25,
    )
    assert meter.facts["backend"] == "perf"
    meter.close()
    with pytest.raises(MeterLost):
        meter.read(0)


def test_the_processor_in_the_mask_is_not_the_package(tmp_path, kernel):
    """Processors 0 and 8 of a machine that numbers its packages the other way round."""
    host = server(tmp_path, {n: (1 - n // 8, 0) for n in range(16)}, "0,8", {"energy-pkg": 2})
    kernel.joules = {(2, 0): 1.0, (2, 8): 2.0}
    meter = pmu_of(host, kernel).meter
    assert said(meter) == {"cpu:0": 2.0, "cpu:1": 1.0}
    meter.close()


def test_dies(tmp_path, kernel):
    host = server(
        tmp_path, {n: (n // 4, n // 2 % 2) for n in range(8)}, "0,2,4,6", {"energy-pkg": 2}
    )
    kernel.joules = {(2, n): float(n) for n in (0, 2, 4, 6)}
    meter = pmu_of(host, kernel).meter
    assert said(meter) == {
        "cpu:0.die0": 0.0,
        "cpu:0.die1": 2.0,
        "cpu:1.die0": 4.0,
        "cpu:1.die1": 6.0,
    }
    meter.close()


@pytest.mark.parametrize("release", ["5.10.0", "6.8.0"])
def test_amd_has_packages_only_and_one_counter_each(tmp_path, kernel, release):
    """Before 5.17 the kernel listed events that do not exist; 6.9 to 6.11 listed the package once a
    core complex."""
    host = server(
        tmp_path, {n: (n // 4, n % 4) for n in range(8)}, "0-7", ALL, "AuthenticAMD", release
    )
    kernel.joules = {(2, n): 50.0 for n in range(8)}
    pmu = pmu_of(host, kernel)
    assert said(pmu.meter) == {"cpu:0": 50.0, "cpu:1": 50.0}
    assert kernel.calls == [(16, 2, 0), (16, 2, 4)]
    answer = rapl.by_perf(pmu, host.sysfs, read_processor(host.procfs))
    told = {absence.what: absence for absence in answer.absences}
    assert set(told) == {f"rapl perf {event}" for event in ALL if event != "energy-pkg"} | {
        "rapl dram:0, dram:1"
    }
    assert "5.17" in told["rapl perf energy-ram"].reason
    assert told["rapl dram:0, dram:1"].kind == "dram"
    pmu.meter.close()


def test_psys_alone_is_the_part(tmp_path, kernel):
    pmu = pmu_of(server(tmp_path, {0: (0, 0)}, "0", {"energy-psys": 5}), kernel)
    (channel,) = pmu.meter.channels
    assert (channel.role, channel.covers) == ("part", ("cpu", "dram"))
    assert "never moves" in channel.note
    pmu.meter.close()


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM])
def test_not_allowed(tmp_path, kernel, number):
    host = server(tmp_path, TWO_SOCKETS, "0,8")
    kernel.refuse["all"] = number
    answer = rapl.by_perf(pmu_of(host, kernel), host.sysfs, read_processor(host.procfs))
    assert answer.meters == ()
    absence, memory = answer.absences
    assert (absence.kind, memory.kind) == ("cpu", "dram")
    assert memory.reason == absence.reason
    assert os.strerror(number) in absence.reason
    assert "(and 9 more)" in absence.reason
    assert "sysctl -w kernel.perf_event_paranoid=0" in absence.remedy
    assert "/etc/sysctl.d/" in absence.remedy
    assert f"setcap cap_perfmon=ep {os.path.realpath(sys.executable)}" in absence.remedy


def test_one_event_refused(tmp_path, kernel):
    host = server(tmp_path, TWO_SOCKETS, "0,8", {"energy-pkg": 2, "energy-ram": 3})
    kernel.refuse[3] = errno.EINVAL
    pmu = pmu_of(host, kernel)
    answer = rapl.by_perf(pmu, host.sysfs, read_processor(host.procfs))
    assert [channel.domain for channel in answer.meters[0].channels] == ["cpu:0", "cpu:1"]
    assert [absence.what for absence in answer.absences] == ["rapl perf", "rapl dram:0, dram:1"]
    assert "dmesg" in answer.absences[0].remedy
    pmu.meter.close()


def test_an_event_in_error_and_back(tmp_path, kernel):
    meter = pmu_of(server(tmp_path, TWO_SOCKETS, "0,8", {"energy-pkg": 2}), kernel).meter
    kernel.joules = {(2, 0): 1.0, (2, 8): 2.0}
    kernel.short.add((2, 8))
    opened = len(kernel.calls)
    for tick in range(40):
        values = said(meter, tick * SECOND // 40)
        assert values["cpu:0"] == 1.0
        assert values["cpu:1"] != values["cpu:1"]
    assert [(event.name, event.domain) for event in meter.events] == [("lost", "cpu:1")]
    assert len(kernel.calls) - opened <= 2
    kernel.short.clear()
    assert said(meter, SECOND)["cpu:1"] == 2.0
    assert [event.name for event in meter.events] == ["lost", "found"]
    meter.close()


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("events/energy-pkg", "event=0x02,umask=0x1"),
        ("events/energy-pkg", ""),
        ("events/energy-pkg", "config=2"),
        ("events/energy-pkg.scale", ""),
        ("events/energy-pkg.scale", "fast"),
        ("events/energy-pkg.scale", "nan"),
        ("events/energy-pkg.scale", "0"),
        ("events/energy-pkg.scale", "-1e-10"),
        ("events/energy-pkg.scale", None),
        ("events/energy-pkg.unit", "Watts"),
        ("events/energy-pkg.unit", None),
    ],
)
def test_an_event_with_odd_files_is_left_out(tmp_path, kernel, file, text):
    host = server(tmp_path, {0: (0, 0)}, "0", {"energy-pkg": 2, "energy-ram": 3})
    path = host.sysfs / "bus/event_source/devices/power" / file
    path.unlink()
    if text is not None:
        path.write_text(text)
    pmu = pmu_of(host, kernel)
    assert [channel.domain for channel in pmu.meter.channels] == ["dram:0"]
    assert [event for event, _ in pmu.left_out] == ["energy-pkg"]
    assert all(reason for _, reason in pmu.left_out)
    pmu.meter.close()


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("type", ""),
        ("type", "power"),
        ("type", None),
        ("cpumask", "x"),
        ("cpumask", "0-99999999"),
        ("cpumask", None),
    ],
)
def test_a_pmu_with_odd_files_is_refused(tmp_path, kernel, file, text):
    host = server(tmp_path, {0: (0, 0)}, "0")
    path = host.sysfs / "bus/event_source/devices/power" / file
    path.unlink()
    if text is not None:
        path.write_text(text)
    pmu = pmu_of(host, kernel)
    assert (pmu.present, pmu.meter, len(pmu.refused)) == (True, None, 1)
    absences = rapl.by_perf(pmu, host.sysfs, read_processor(host.procfs)).absences
    assert [absence.kind for absence in absences] == ["cpu", "dram"]
    assert all(absence.reason and absence.remedy for absence in absences)


@pytest.mark.parametrize(("cpumask", "events"), [("", ALL), ("0", {}), ("0", {"energy-moon": 9})])
def test_a_pmu_that_lists_nothing(tmp_path, kernel, cpumask, events):
    host = server(tmp_path, {0: (0, 0)}, cpumask, events)
    pmu = pmu_of(host, kernel)
    assert (pmu.present, pmu.meter) == (True, None)
    absences = rapl.by_perf(pmu, host.sysfs, read_processor(host.procfs)).absences
    assert [absence.kind for absence in absences] == ["cpu", "dram"]


@pytest.mark.parametrize("text", [None, "", "-1", "x"])
def test_without_topology_packages_are_numbered_in_order(tmp_path, kernel, text):
    host = server(tmp_path, TWO_SOCKETS, "0,8", {"energy-pkg": 2})
    for cpu in (0, 8):
        path = host.sysfs / f"devices/system/cpu/cpu{cpu}/topology/physical_package_id"
        path.unlink()
        if text is not None:
            path.write_text(text)
    meter = pmu_of(host, kernel).meter
    assert [channel.domain for channel in meter.channels] == ["cpu:0", "cpu:1"]
    meter.close()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("0", [0]), ("0-3", [0, 1, 2, 3]), ("0,16-17", [0, 16, 17]), ("", []), ("0,", [0])],
)
def test_processor_lists(text, wanted):
    assert rapl_ways.parse_list(text) == wanted


# ---------------------------------------------------------------- the call itself

SOFTWARE, TASK_CLOCK_NS, PAGE_FAULTS = 1, 1, 2


def allowed():
    """May this process count itself?"""
    try:
        file = rapl_ways.perf_event_open(SOFTWARE, TASK_CLOCK_NS, -1, process=0)
    except OSError:
        return False
    os.close(file)
    return True


def allowed_everywhere():
    try:
        file = rapl_ways.perf_event_open(SOFTWARE, 0, 0)
    except OSError:
        return False
    os.close(file)
    return True


@pytest.mark.skipif(not allowed(), reason="perf_event_open is not allowed here")
def test_the_system_call_counts():
    file = rapl_ways.perf_event_open(SOFTWARE, TASK_CLOCK_NS, -1, process=0)
    try:
        assert not os.get_inheritable(file)
        first = rapl_ways.event_joules(file, 1e-9)
        begin = time.process_time()
        while time.process_time() - begin < 0.02:
            pass
        spent = rapl_ways.event_joules(file, 1e-9) - first
    finally:
        os.close(file)
    assert 0.015 <= spent < 2.0  # seconds of processor, by the kernel's own clock


@pytest.mark.skipif(
    not allowed_everywhere(), reason="counting a whole processor is not allowed here"
)
def test_a_meter_over_the_real_call(tmp_path):
    """The software PMU dressed as `power`: real descriptors, real counts, the way from files to
    joules."""
    host = server(
        tmp_path, {0: (0, 0)}, "0", {"energy-pkg": 0}
    )  # config 0 is the processor's clock in ns
    base = host.sysfs / "bus/event_source/devices/power"
    (base / "type").write_text(f"{SOFTWARE}\n")
    (base / "events/energy-pkg.scale").write_text("1e-9\n")
    pmu = rapl_ways.pmu(host.sysfs, read_processor(host.procfs))
    (before,) = pmu.meter.read(0)
    time.sleep(0.01)
    (after,) = pmu.meter.read(0)
    pmu.meter.close()
    assert pmu.meter.channels[0].domain == "cpu:0"
    assert 0.005 < after - before < 60.0  # the clock of one processor, idle or not


def test_the_system_call_refuses_with_a_reason():
    with pytest.raises(OSError, match=r"."):
        rapl_ways.perf_event_open(2**31 - 1, 0, 0)


def test_a_machine_whose_number_nobody_knows(monkeypatch):
    real = os.uname()
    monkeypatch.setattr(rapl_ways.os, "uname", lambda: os.uname_result((*real[:4], "vax")))
    with pytest.raises(OSError, match="vax") as caught:
        rapl_ways.perf_event_open(SOFTWARE, 0, 0)
    assert caught.value.errno == errno.ENOSYS
