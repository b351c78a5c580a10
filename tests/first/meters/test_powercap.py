"""Powercap zones: which they are, what they add up to, and what happens when one of them stops
talking."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import cpu_trees
import pytest
from cpu_trees import STEPS, Counter, Host

from ckptcost.first.core import counters
from ckptcost.first.core.channels import series
from ckptcost.first.errors import MeterLost
from ckptcost.first.meters import rapl_ways
from ckptcost.first.meters.base import Meter
from ckptcost.first.meters.rapl_domains import (
    Processor,
    RaplSpot,
    drop_repeated_dies,
    read_processor,
)

SECOND = 1_000_000_000


def tree_of(host: Host, open_file=os.open):
    return rapl_ways.tree(host.sysfs, read_processor(host.procfs), open_file)


@pytest.fixture
def meters():
    """Meters made in a test, closed after it."""
    made = []

    def make(host, open_file=os.open):
        tree = tree_of(host, open_file)
        assert tree.meter is not None
        made.append(tree.meter)
        return tree.meter

    yield make
    for meter in made:
        meter.close()


def said(meter, t_ns=0):
    return {
        channel.domain: value
        for channel, value in zip(meter.channels, meter.read(t_ns), strict=True)
    }


def roles(meter):
    return {channel.domain: channel.role for channel in meter.channels}


def test_a_server_with_two_sockets_psys_and_mirrors(tmp_path, meters):
    meter = meters(cpu_trees.intel(tmp_path, sockets=2, psys=True, mmio=True))
    assert isinstance(meter, Meter)
    assert roles(meter) == {
        "cpu:0": "part",
        "cpu:1": "part",
        "dram:0": "part",
        "dram:1": "part",
        "psys:0": "whole",
        "core:0": "detail",
        "core:1": "detail",
        "cpu:0.mmio": "detail",
        "cpu:1.mmio": "detail",
        "dram:0.mmio": "detail",
        "dram:1.mmio": "detail",
    }
    values = said(meter)
    parts = sum(values[domain] for domain, role in roles(meter).items() if role == "part")
    assert parts == pytest.approx(1000.0 + 2000.0 + 100.0 + 200.0, abs=1e-3)
    assert {c.quantity for c in meter.channels} == {"energy_j"}
    assert all(
        c.covers == () and c.tick_s == 0.001 and c.accuracy is None and c.boundary == "node"
        for c in meter.channels
    )
    assert meter.channels[0].device == "Intel(R) Xeon(R) Platinum 8480+"
    assert meter.channels[0].source == str(
        tmp_path / "sys/devices/virtual/powercap/intel-rapl/intel-rapl:0/energy_uj"
    )
    assert meter.events == []


def test_the_zones_number_is_not_the_socket(tmp_path, meters):
    host = cpu_trees.intel(tmp_path, sockets=2, first=1)
    assert (host.zones["cpu:1"].path / "name").read_text() == "package-1\n"
    assert host.zones["cpu:1"].path.name == "intel-rapl:0"
    values = said(meters(host))
    assert values["cpu:0"] == pytest.approx(1000.0, abs=1e-3)
    assert values["cpu:1"] == pytest.approx(2000.0, abs=1e-3)
    assert values["dram:1"] == pytest.approx(200.0, abs=1e-3)


def test_the_same_zones_flat_or_nested_are_found_once(tmp_path, meters):
    both = cpu_trees.intel(tmp_path / "both", sockets=2, psys=True)
    wanted = {channel.domain for channel in meters(both).channels}
    flat = cpu_trees.intel(tmp_path / "flat", sockets=2, psys=True)
    flat.powercap.rename(tmp_path / "elsewhere")
    for link in (flat.sysfs / "class/powercap").iterdir():
        target = tmp_path / "elsewhere" / Path(os.readlink(link)).relative_to(flat.powercap)
        link.unlink()
        link.symlink_to(target)
    only_flat = meters(flat)
    assert {channel.domain for channel in only_flat.channels} == wanted
    assert len(only_flat.channels) == len(wanted)
    assert all("/class/powercap/" in channel.source for channel in only_flat.channels)
    shutil.rmtree(both.sysfs / "class")
    assert {channel.domain for channel in meters(both).channels} == wanted


def test_zones_numbered_in_hexadecimal(tmp_path):
    host = cpu_trees.nothing(tmp_path)
    for package in range(17):
        host.add_zone(f"intel-rapl:{package:x}", f"package-{package}", f"cpu:{package}")
    assert [zone.id.split(":")[1] for zone in rapl_ways.zones(host.sysfs)] == [
        f"{n:x}" for n in range(17)
    ]


def test_dies_are_parts_of_their_own(tmp_path, meters):
    meter = meters(cpu_trees.several_dies(tmp_path))
    assert roles(meter) == {
        f"{kind}:{package}.die{die}": "part"
        for kind in ("cpu", "dram")
        for package in (0, 1)
        for die in (0, 1)
    }
    values = said(meter)
    assert sum(values.values()) == pytest.approx(4 * 100.0 + 6.0 + 4 * 10.0 + 6.0, abs=1e-3)
    assert values["dram:1.die0"] == pytest.approx(12.0, abs=1e-3)


@pytest.mark.parametrize("complexes", [1, 8])
def test_amd_counts_once_a_package_however_often_the_kernel_shows_it(tmp_path, meters, complexes):
    meter = meters(cpu_trees.amd(tmp_path, sockets=2, complexes=complexes, release="6.10.3"))
    assert roles(meter) == {
        "cpu:0": "part",
        "cpu:1": "part",
        "core:0": "detail",
        "core:1": "detail",
    }
    values = said(meter)
    assert values["cpu:0"] + values["cpu:1"] == pytest.approx(4000.0, abs=1e-3)
    notes = {channel.domain: channel.note for channel in meter.channels}
    assert "first core alone" in notes["core:1"]
    assert ("once a die" in notes["cpu:0"]) == (complexes > 1)
    assert (
        "limits no power" in notes["cpu:1"]
    )  # enabled is 0 on AMD, and says nothing about counting


def test_only_amds_dies_are_one_counter():
    spots = [
        RaplSpot("cpu", 0, 1, where="b"),
        RaplSpot("cpu", 0, 0, where="a"),
        RaplSpot("cpu", 1, 0, where="c"),
    ]
    assert [(spot.domain, spot.where) for spot in drop_repeated_dies(spots, amd=True)] == [
        ("cpu:0", "a"),
        ("cpu:1", "c"),
    ]
    assert [spot.domain for spot in drop_repeated_dies(spots, amd=False)] == [
        "cpu:0.die0",
        "cpu:0.die1",
        "cpu:1.die0",
    ]


def test_psys_alone_is_the_part_and_says_what_it_covers(tmp_path, meters):
    host = cpu_trees.nothing(tmp_path)
    host.add_zone("intel-rapl:0", "psys", "psys:0", joules=77.0)
    (channel,) = meters(host).channels
    assert (channel.domain, channel.role, channel.covers, channel.scope) == (
        "psys:0",
        "part",
        ("cpu", "dram"),
        "psys",
    )


def test_each_package_may_have_a_psys_of_its_own(tmp_path, meters):
    host = cpu_trees.intel(tmp_path, sockets=2, psys=True)
    host.add_zone("intel-rapl:3", "psys-1", "psys:1")
    meter = meters(host)
    assert roles(meter)["psys:0"] == roles(meter)["psys:1"] == "whole"


def test_a_mirror_of_nothing_is_the_part(tmp_path, meters):
    host = cpu_trees.intel(tmp_path, dram=False, mmio=True)
    assert roles(meters(host)) == {
        "cpu:0": "part",
        "cpu:0.mmio": "detail",
        "dram:0": "part",
        "core:0": "detail",
    }


def test_two_zones_of_one_name_are_not_added(tmp_path, meters):
    host = cpu_trees.intel(tmp_path, sockets=1)
    host.add_zone("intel-rapl:1", "package-0", "second", joules=50_000.0)
    meter = meters(host)
    assert said(meter)["cpu:0"] == pytest.approx(1000.0, abs=1e-3)
    assert "intel-rapl:1 has the same name" in meter.channels[0].note


@pytest.mark.parametrize(
    "name",
    [
        "",
        "package-",
        "package-x",
        "package-0-die-",
        "platform",
        "psys-",
        "PACKAGE-0",
        "package-0 ",
        "\xff\xfe",
    ],
)
def test_names_nobody_knows_are_left_out(tmp_path, name):
    host = cpu_trees.intel(tmp_path)
    host.add_zone("intel-rapl:7", name, "odd", joules=9.0)
    tree = tree_of(host)
    assert tree.meter is not None
    tree.meter.close()
    odd = next(zone for zone in tree.zones if zone.id == "intel-rapl:7")
    if name.strip() == "package-0":  # blanks at the end are no other name
        assert odd.spot is not None
        assert odd.spot.domain == "cpu:0"
    else:
        assert odd.spot is None
    assert len(tree.meter.channels) == 3


def test_a_dram_zone_outside_a_package_is_left_out(tmp_path):
    host = cpu_trees.nothing(tmp_path)
    host.add_zone("intel-rapl:0", "psys", "psys:0")
    host.add_zone("intel-rapl:0:0", "dram", "dram")
    host.add_zone("intel-rapl:1", "dram", "dram too")
    assert [zone.spot is None for zone in rapl_ways.zones(host.sysfs)] == [False, True, True]


def test_where_a_counter_starts_again_and_its_step(tmp_path, meters):
    host = cpu_trees.intel(tmp_path)
    cpu = host.zones["cpu:0"]
    assert (cpu.path / "max_energy_range_uj").read_text() == "262143328850\n"
    package, memory = meters(host).channels[:2]
    assert package.wraps_at == pytest.approx(cpu.turn_j, rel=1e-9)
    assert package.wraps_at == pytest.approx(262_143.3288, abs=1e-3)
    assert memory.wraps_at == pytest.approx(STEPS * 15.3e-6, rel=1e-9)  # memory's unit is its own
    assert package.resolution == pytest.approx(61.035e-6, rel=1e-6)
    assert memory.resolution == pytest.approx(15.3e-6, rel=1e-6)


@pytest.mark.parametrize(
    "text", [None, "", "0\n", "garbage\n", "-262143328850\n", "1_0\n", "9" * 400]
)
def test_an_unreadable_range_is_unknown(tmp_path, meters, text):
    host = cpu_trees.intel(tmp_path)
    path = host.zones["cpu:0"].path / "max_energy_range_uj"
    path.unlink()
    if text is not None:
        path.write_text(text)
    channel = meters(host).channels[0]
    assert channel.wraps_at is None
    assert channel.resolution is None
    assert "a wrap is a gap" in channel.note
    assert meters(host).read(0)[0] == pytest.approx(1000.0, abs=1e-3)


def test_values_follow_the_files(tmp_path, meters):
    host = cpu_trees.intel(tmp_path)
    meter = meters(host)
    for joules in (0.0, 0.25, 1.0, 262_143.0):
        host.zones["cpu:0"].set_j(joules)
        assert said(meter)["cpu:0"] == pytest.approx(joules, abs=1e-4)
    (host.zones["cpu:0"].path / "energy_uj").write_text(
        "60293987000000\n"
    )  # a psys of joules, far beyond 32 bits of microjoules
    assert said(meter)["cpu:0"] == 60_293_987.0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "garbage\n",
        "-5\n",
        "1_000\n",
        "12 34\n",
        "0x10\n",
        "1e6\n",
        "nan\n",
        "\x00\x00",
        "9" * 40,
        "٣\n",
    ],
)
def test_text_that_is_no_number_is_no_answer(tmp_path, meters, text):
    host = cpu_trees.intel(tmp_path)
    meter = meters(host)
    path = host.zones["dram:0"].path / "energy_uj"
    path.write_text(text)
    first = said(meter, 0)
    assert first["dram:0"] != first["dram:0"]
    assert first["cpu:0"] == pytest.approx(1000.0, abs=1e-3)
    assert [(event.name, event.domain) for event in meter.events] == [("lost", "dram:0")]
    assert str(path) in meter.events[0].text
    for tick in range(1, 30):
        assert said(meter, tick * SECOND // 10)["dram:0"] != 0.0
    assert len(meter.events) == 1  # said once
    host.zones["dram:0"].set_j(123.0)
    assert said(meter, 4 * SECOND)["dram:0"] == pytest.approx(123.0, abs=1e-3)
    assert [event.name for event in meter.events] == ["lost", "found"]
    said(meter, 5 * SECOND)
    assert len(meter.events) == 2


class Odd:
    """os.open and os.pread with errors to order."""

    def __init__(self, monkeypatch):
        self.errors: dict[str, int] = {}
        self.opened: list[str] = []
        self.paths: dict[int, str] = {}
        pread = os.pread

        def odd_pread(file, size, offset):
            self.check("read " + self.paths.get(file, ""))
            return pread(file, size, offset)

        monkeypatch.setattr(rapl_ways.os, "pread", odd_pread)

    def check(self, what):
        if what in self.errors:
            raise OSError(self.errors[what], os.strerror(self.errors[what]), what)

    def open(self, path, flags):
        self.opened.append(path)
        self.check("open " + path)
        file = os.open(path, flags)
        self.paths[file] = path
        return file


@pytest.mark.parametrize(
    "number", [errno.EIO, errno.ENODATA, errno.ENODEV, errno.EINVAL, errno.ENXIO]
)
def test_a_counter_that_fails_and_comes_back(tmp_path, meters, monkeypatch, number):
    odd = Odd(monkeypatch)
    host = cpu_trees.intel(tmp_path)
    meter = meters(host, odd.open)
    path = str(host.zones["cpu:0"].path / "energy_uj")
    odd.errors["read " + path] = number
    for tick in range(50):
        values = said(meter, tick * SECOND // 50)
        assert values["cpu:0"] != values["cpu:0"]
        assert values["dram:0"] == pytest.approx(100.0, abs=1e-3)
    assert [(event.name, event.domain) for event in meter.events] == [("lost", "cpu:0")]
    assert os.strerror(number) in meter.events[0].text
    assert odd.opened.count(path) <= 3  # opened again now and then, not at each of 50 readings
    del odd.errors["read " + path]
    assert said(meter, SECOND)["cpu:0"] == pytest.approx(1000.0, abs=1e-3)
    assert [event.name for event in meter.events] == ["lost", "found"]


def test_a_zone_that_vanishes_and_is_registered_anew(tmp_path, meters):
    """The kept descriptor is of the old zone; the new one has a new file."""
    host = cpu_trees.intel(tmp_path, sockets=2)
    meter = meters(host)
    zone = host.zones["cpu:1"]
    moved = tmp_path / "gone"
    zone.path.rename(moved)
    (moved / "energy_uj").write_text("")  # what a removed device gives: nothing
    gone = said(meter, 0)
    assert gone["cpu:1"] != gone["cpu:1"]
    assert said(meter, SECOND // 2)["cpu:0"] == pytest.approx(1000.0, abs=1e-3)
    shutil.copytree(moved, zone.path, symlinks=True)
    zone.set_j(4321.0)
    assert said(meter, 2 * SECOND)["cpu:1"] == pytest.approx(4321.0, abs=1e-3)
    assert [(event.name, event.domain) for event in meter.events] == [
        ("lost", "cpu:1"),
        ("found", "cpu:1"),
    ]


def test_descriptors_are_not_leaked(tmp_path, monkeypatch):
    odd = Odd(monkeypatch)
    host = cpu_trees.intel(tmp_path, sockets=2)

    def held():
        return len(os.listdir("/proc/self/fd"))

    before = held()
    tree = tree_of(host, odd.open)
    meter = tree.meter
    assert held() == before + 6
    path = str(host.zones["cpu:0"].path / "energy_uj")
    odd.errors["read " + path] = errno.EIO
    for tick in range(20):
        meter.read(tick * SECOND)
    assert held() == before + 6
    meter.close()
    meter.close()
    assert held() == before
    with pytest.raises(MeterLost):
        meter.read(0)
    odd.errors.clear()
    odd.errors.update({"read " + str(c.path / "energy_uj"): errno.EIO for c in host.zones.values()})
    none = tree_of(host, odd.open)
    assert none.meter is None
    assert len(none.refused) == 6
    assert held() == before


def test_what_refuses_is_told_apart_from_what_is_not_there(tmp_path):
    host = cpu_trees.intel(tmp_path, sockets=2)
    closed = {str(host.zones[d].path / "energy_uj") for d in ("dram:0", "dram:1")}

    def open_file(path, flags):
        if path in closed:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return os.open(path, flags)

    tree = tree_of(host, open_file)
    assert [channel.domain for channel in tree.meter.channels] == [
        "cpu:0",
        "cpu:1",
        "core:0",
        "core:1",
    ]
    assert {refused.spot.domain for refused in tree.refused} == {"dram:0", "dram:1"}
    tree.meter.close()


@pytest.mark.parametrize("sysfs", ["missing", "file", "loop"])
def test_odd_roots_are_no_zones(tmp_path, sysfs):
    root = tmp_path / "sys"
    if sysfs == "file":
        (root / "class").mkdir(parents=True)
        (root / "class/powercap").write_text("no folder")
    elif sysfs == "loop":
        (root / "class/powercap/intel-rapl").mkdir(parents=True)
        (root / "class/powercap/intel-rapl/intel-rapl:0").symlink_to(".")
    assert rapl_ways.tree(root, Processor()) == rapl_ways.ZoneTree([], None, [])


def test_a_reading_of_a_large_machine_is_cheap(tmp_path, meters):
    """Not a timing: system calls are counted. One pread a counter and nothing else."""
    meter = meters(cpu_trees.intel(tmp_path, sockets=4, psys=True))
    calls = []
    pread = os.pread
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rapl_ways.os, "pread", lambda *a: calls.append("pread") or pread(*a))
        patch.setattr(rapl_ways.os, "open", lambda *a: calls.append("open"))
        meter.read(0)
    assert calls == ["pread"] * len(meter.channels)


def test_the_builder_wraps_like_the_kernel(tmp_path):
    counter = Counter(tmp_path)
    counter.set_j(counter.turn_j + 5.0)
    assert int((tmp_path / "energy_uj").read_text()) * 1e-6 == pytest.approx(5.0, abs=1e-3)


# ---------------------------------------------------------------- from files to a window's joules


def watched(meter, zones, power_w, begin_j, until_s=20.0, step_s=0.25):
    """The files move with their power, are read every `step_s`, and each channel becomes a
    series."""
    count = round(until_s / step_s)
    at, rows = [], []
    for n in range(count + 1):
        t_s = n * step_s
        for domain, zone in zones.items():
            zone.set_j(begin_j[domain] + power_w[domain] * t_s)
        at.append(t_s)
        rows.append(meter.read(round(t_s * SECOND)))
    return {
        c.domain: (c, series(at, [row[i] for row in rows], 1e-4))
        for i, c in enumerate(meter.channels)
    }


def in_window(channel, readings, begin_s, end_s):
    return counters.energy(
        readings,
        begin_s,
        end_s,
        wraps_at=channel.wraps_at,
        tick_s=channel.tick_s,
        resolution=channel.resolution or 0.0,
    )


POWER_W = {
    "cpu:0": 350.0,
    "cpu:1": 120.0,
    "core:0": 200.0,
    "core:1": 60.0,
    "dram:0": 40.0,
    "dram:1": 25.0,
}


@pytest.mark.parametrize(
    "wrapping", [("cpu:0",), ("cpu:1",), ("cpu:0", "cpu:1"), ("dram:0", "dram:1"), tuple(POWER_W)]
)
@pytest.mark.parametrize("at_s", [10.0, 5.0, 15.0, 14.99])
def test_a_wrap_costs_nothing_whichever_socket_and_wherever_in_the_window(
    tmp_path, meters, wrapping, at_s
):
    """On one socket, on both; in the middle, at the window's first and last instant, and between
    two readings there."""
    host = cpu_trees.intel(tmp_path, sockets=2)
    meter = meters(host)
    begin_j = dict.fromkeys(POWER_W, 1000.0)
    for domain in wrapping:
        begin_j[domain] = host.zones[domain].turn_j - POWER_W[domain] * at_s
    seen = watched(meter, host.zones, POWER_W, begin_j)
    total = 0.0
    for domain, (channel, readings) in seen.items():
        raw = readings.value
        assert (raw[-1] < raw[0]) == (
            domain in wrapping
        )  # it did wrap, and nothing before this hid it
        amount = in_window(channel, readings, 5.0, 15.0)
        assert amount.gaps == ()
        assert amount.value == pytest.approx(POWER_W[domain] * 10.0, rel=1e-3)
        assert amount.low - 1e-3 <= POWER_W[domain] * 10.0 <= amount.high + 1e-3
        total += amount.value if channel.role == "part" else 0.0
    assert total == pytest.approx((350.0 + 120.0 + 40.0 + 25.0) * 10.0, rel=1e-3)
    assert meter.events == []


def test_many_wraps_in_a_long_window(tmp_path, meters):
    """AMD's 65.5 kJ a turn at 500 W is 131 s; half an hour read every 30 s."""
    host = cpu_trees.amd(tmp_path, sockets=1)
    meter = meters(host)
    assert meter.channels[0].wraps_at == pytest.approx(65_532.6, abs=0.5)
    power_w = {"cpu:0": 500.0, "core:0": 5.0}
    seen = watched(
        meter, host.zones, power_w, {"cpu:0": 60_000.0, "core:0": 0.0}, until_s=1800.0, step_s=30.0
    )
    channel, readings = seen["cpu:0"]
    assert (readings.value[1:] < readings.value[:-1]).sum() == 14
    amount = in_window(channel, readings, 30.0, 1770.0)
    assert amount.gaps == ()
    assert amount.value == pytest.approx(870_000.0, rel=1e-5)


def test_without_a_range_a_wrap_is_a_gap(tmp_path, meters):
    host = cpu_trees.intel(tmp_path)
    (host.zones["cpu:0"].path / "max_energy_range_uj").unlink()
    zones = {"cpu:0": host.zones["cpu:0"]}
    seen = watched(meters(host), zones, {"cpu:0": 100.0}, {"cpu:0": zones["cpu:0"].turn_j - 1000.0})
    channel, readings = seen["cpu:0"]
    amount = in_window(channel, readings, 5.0, 15.0)
    assert len(amount.gaps) == 1
    assert amount.coverage < 1.0
    assert 970.0 < amount.value < 1001.0  # the rest is known; nothing like a quarter of a million


def test_a_counter_silent_across_its_wrap(tmp_path, meters):
    host = cpu_trees.intel(tmp_path)
    meter = meters(host)
    zone = host.zones["cpu:0"]
    at, values = [], []
    for n in range(401):
        t_s = n * 0.05
        zone.set_j(zone.turn_j - 1000.0 + 100.0 * t_s)
        if 9.0 < t_s < 11.0:
            (zone.path / "energy_uj").write_text("")
        at.append(t_s)
        values.append(meter.read(round(t_s * SECOND))[0])
    assert sum(value != value for value in values) >= 38
    amount = in_window(meter.channels[0], series(at, values, 1e-4), 5.0, 15.0)
    assert amount.value == pytest.approx(1000.0, rel=5e-3)
    assert [event.name for event in meter.events] == ["lost", "found"]
