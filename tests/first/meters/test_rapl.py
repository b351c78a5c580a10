"""Which way RAPL is read, and what is said where it is not: the reason, and a remedy that works."""

from __future__ import annotations

import errno
import fnmatch
import json
import math
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import cpu_trees
import pytest
from cpu_trees import Host

from ckptcost.first.errors import UnknownName
from ckptcost.first.meters import rapl, rapl_ways
from ckptcost.first.meters.base import Basic
from ckptcost.first.meters.rapl_domains import read_processor

ROOT = Path(__file__).resolve().parents[3]


CHOWN, SETGID, SETUID = 0, 6, 7


def root_with(*capabilities):
    """Root of a container may lack what makes root."""
    held = int(re.search(r"^CapEff:\s*(\w+)", Path("/proc/self/status").read_text(), re.M)[1], 16)
    return os.geteuid() == 0 and all(held >> number & 1 for number in capabilities)


def found(host: Host, backend="auto"):
    answer = rapl.find(sysfs=host.sysfs, procfs=host.procfs, backend=backend)
    for meter in answer.meters:
        meter.close()
    return answer


def closed(*paths):
    """An opener for which these files, or all, are closed."""

    def open_file(path, flags):
        if not paths or path in paths:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return os.open(path, flags)

    return open_file


def explained(host, open_file):
    cpu = read_processor(host.procfs)
    tree = rapl_ways.tree(host.sysfs, cpu, open_file)
    answer = rapl.by_powercap(tree, host.sysfs, cpu)
    for meter in answer.meters:
        meter.close()
    return answer


def by_kind(answer):
    return {absence.kind: absence for absence in answer.absences}


def test_a_whole_machine_has_nothing_to_explain(tmp_path):
    answer = found(cpu_trees.intel(tmp_path, sockets=2, psys=True, mmio=True))
    assert len(answer.meters) == 1
    assert answer.absences == []
    (meter,) = answer.meters
    assert meter.name == "rapl"
    assert meter.facts["backend"] == "powercap"
    assert meter.facts["kernel"] == "6.8.0-45-generic"
    assert not meter.simulated


@pytest.mark.parametrize("backend", ["powercap", "auto"])
def test_memory_that_nobody_counts_is_said(tmp_path, backend):
    answer = found(cpu_trees.intel(tmp_path, sockets=2, dram=False), backend)
    assert [channel.kind_of_domain for channel in answer.meters[0].channels] == [
        "cpu",
        "cpu",
        "core",
        "core",
    ]
    (absence,) = answer.absences
    assert absence.kind == "dram"
    assert absence.what == "rapl dram:0, dram:1"
    assert "unknown, not 0" in absence.reason
    assert "firmware" in absence.remedy
    (amd,) = found(cpu_trees.amd(tmp_path / "amd", complexes=4)).absences
    assert amd.what == "rapl dram:0, dram:1"
    assert "AMD" in amd.reason
    assert "firmware" not in amd.remedy


def test_memory_lacking_on_one_socket_of_two(tmp_path):
    host = cpu_trees.intel(tmp_path, sockets=2)
    shutil.rmtree(host.zones["dram:1"].path)
    (absence,) = found(host).absences
    assert absence.what == "rapl dram:1"


def test_unreadable_range(tmp_path):
    host = cpu_trees.intel(tmp_path)
    (host.zones["cpu:0"].path / "max_energy_range_uj").unlink()
    (absence,) = found(host).absences
    assert absence.what == "rapl range of cpu:0"
    assert "is a gap" in absence.reason
    assert str(host.zones["cpu:0"].path / "max_energy_range_uj") in absence.reason
    assert "/intel-rapl*:*:*/max_energy_range_uj 0444 root rapl -\n" in absence.remedy


def test_a_zone_of_another_kind(tmp_path):
    host = cpu_trees.intel(tmp_path)
    host.add_zone("intel-rapl:5", "hbm", "odd")
    (absence,) = found(host).absences
    assert "'hbm'" in absence.reason


def test_closed_counters(tmp_path):
    host = cpu_trees.intel(tmp_path, sockets=2, psys=True, mmio=True)
    answer = explained(host, closed())
    assert answer.meters == ()
    kinds = by_kind(answer)
    assert set(kinds) == {"cpu", "dram", "node"}
    assert len(answer.absences) == 3
    assert str(host.zones["cpu:0"].path / "energy_uj") in kinds["cpu"].reason
    assert "(and 1 more)" in kinds["cpu"].reason
    assert "Permission denied" in kinds["dram"].reason
    remedy = kinds["cpu"].remedy
    for piece in (
        rapl.UDEV_FILE,
        rapl.UDEV_RULE,
        "udevadm control --reload",
        "udevadm trigger --subsystem-match=powercap",
        rapl.TMPFILES_FILE,
        *rapl.TMPFILES_LINES,
        "kernel.perf_event_paranoid=0",
        "cap_perfmon",
        "CVE-2020-8694",
        "groupadd",
        os.path.realpath(sys.executable),
    ):
        assert piece in remedy
    assert not re.search(r"chmod\s+(-R\s+)?(a\+r|o\+r|0?444)", remedy)  # never to everybody
    assert kinds["dram"].remedy == "the remedy for rapl cpu opens this one as well"


def test_closed_memory_only(tmp_path):
    """The usual mistake: chmod on the upper zones, none on those inside."""
    host = cpu_trees.intel(tmp_path)
    answer = explained(host, closed(str(host.zones["dram:0"].path / "energy_uj")))
    assert [channel.domain for channel in answer.meters[0].channels] == ["cpu:0", "core:0"]
    (absence,) = answer.absences
    assert absence.kind == "dram"
    assert rapl.TMPFILES_LINES[1] in absence.remedy


def test_a_counter_that_fails_from_the_start_wants_no_permission(tmp_path):
    host = cpu_trees.intel(tmp_path, dram=False)
    (host.zones["cpu:0"].path / "energy_uj").write_text("")
    answer = found(host, "powercap")
    assert [channel.domain for channel in answer.meters[0].channels] == [
        "core:0"
    ]  # a detail; nothing that adds up
    cpu = by_kind(answer)["cpu"]
    assert "the file is empty" in cpu.reason
    assert "dmesg" in cpu.remedy
    assert "chmod" not in cpu.remedy


@pytest.fixture
def open_folder():
    """A folder that other users may look into, which pytest's are not."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.skipif(
    not root_with(SETGID, SETUID), reason="only root can give a process another user"
)
def test_closed_files_for_a_real_user(open_folder):
    """File modes stop nobody who is root, so the question is asked by nobody."""
    host = cpu_trees.intel(open_folder, sockets=2)
    for zone in host.zones.values():
        (zone.path / "energy_uj").chmod(0o400)
    code = (
        "import os, sys, json; os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "from pathlib import Path\n"
        "from ckptcost.first.meters import rapl\n"
        f"f = rapl.find(sysfs=Path({str(host.sysfs)!r}), procfs=Path({str(host.procfs)!r}))\n"
        "print(json.dumps([len(f.meters), [list(a) for a in f.absences]]))"
    )
    imports = (  # before giving up rights: the checkout may be root's
        "import ckptcost.first.meters.rapl_ways, ckptcost.first.meters.rapl\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", imports + code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    meters, absences = json.loads(done.stdout)
    assert meters == 0
    assert [absence[3] for absence in absences] == ["cpu", "dram"]
    assert "Permission denied" in absences[0][1]


def zone_files(host):
    return sorted(
        path
        for path in host.powercap.rglob("energy_uj")
        if not any(p.is_symlink() for p in path.parents)
    )


@pytest.mark.skipif(
    not root_with(CHOWN) or shutil.which("systemd-tmpfiles") is None,
    reason="wants root and systemd-tmpfiles",
)
def test_the_tmpfiles_lines_open_every_zone(tmp_path):
    """By the real program: a star that does not reach nested zones would leave memory closed."""
    host = cpu_trees.intel(tmp_path, sockets=2, psys=True, mmio=True)
    for path in zone_files(host):
        path.chmod(0o400)
    config = tmp_path / "etc/tmpfiles.d/rapl.conf"
    config.parent.mkdir(parents=True)
    config.write_text(
        "".join(
            line.replace(f"root {rapl.GROUP} ", "0 54321 ") + "\n" for line in rapl.TMPFILES_LINES
        )
    )
    done = subprocess.run(
        ["systemd-tmpfiles", "--create", f"--root={tmp_path}", str(config)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    files = zone_files(host)
    assert len(files) == 11
    for path in files:
        status = path.stat()
        assert (stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid) == (
            0o440,
            0,
            54321,
        ), path
    assert (
        stat.S_IMODE((host.zones["cpu:0"].path / "name").stat().st_mode) == 0o644
    )  # and nothing else


def test_the_udev_rule_meets_every_zone_and_only_zones(tmp_path):
    """udev's own substitutions: %S is the root of sysfs, %p the device below it; KERNEL is the last
    part of its path."""
    host = cpu_trees.intel(tmp_path, sockets=2, psys=True, mmio=True)
    rule = rapl.UDEV_RULE
    assert "\n" not in rule
    keys = re.findall(r'(\w+)(==|\+=)"([^"]*)"', rule)
    assert ", ".join(f'{key}{op}"{value}"' for key, op, value in keys) == rule
    assert {key: op for key, op, _ in keys} == {
        "SUBSYSTEM": "==",
        "KERNEL": "==",
        "ACTION": "==",
        "RUN": "+=",
    }
    pattern = next(value for key, _, value in keys if key == "KERNEL")
    runs = [value for key, _, value in keys if key == "RUN"]
    devices = [
        path
        for path in host.powercap.rglob("intel-rapl*")
        if path.is_dir() and not any(p.is_symlink() for p in path.parents)
    ]
    opened = set()
    for device in devices:
        if not fnmatch.fnmatchcase(device.name, pattern):
            assert ":" not in device.name  # the control types have no counter
            continue
        for run in runs:
            program, what, file = (
                run.replace("%S", str(host.sysfs))
                .replace("%p", "/" + str(device.relative_to(host.sysfs)))
                .split()
            )
            assert program.startswith("/")
            assert what in (rapl.GROUP, "0440")
            assert Path(file).exists()
            opened.add(Path(file))
    assert sorted(opened) == zone_files(host)
    assert len(runs) == 2
    assert runs[0].startswith("/bin/chgrp")  # the group first: never a moment open to another


def arm(root):
    host = cpu_trees.nothing(root)
    (host.procfs / "cpuinfo").write_text(
        "processor\t: 0\nBogoMIPS\t: 2000.00\nFeatures\t: fp\nCPU implementer\t: 0x41\n"
    )
    return host


def power(root):
    host = cpu_trees.nothing(root)
    (host.procfs / "cpuinfo").write_text("processor\t: 0\ncpu\t\t: POWER9, altivec supported\n")
    return host


def loaded(root):
    host = cpu_trees.nothing(root)
    (host.sysfs / "module/intel_rapl_common").mkdir(parents=True)
    return host


def masked(root):
    """A container lays an empty folder over the zones; the links to them stay."""
    host = cpu_trees.intel(root, sockets=2)
    shutil.rmtree(host.powercap)
    host.powercap.mkdir()
    return host


@pytest.mark.parametrize(
    ("make", "reason", "remedy"),
    [
        (
            lambda p: cpu_trees.nothing(p, flags="fpu msr hypervisor"),
            "virtual machine",
            "on the host",
        ),
        (cpu_trees.nothing, "driver is not loaded", "modprobe intel_rapl_msr"),
        (
            lambda p: cpu_trees.nothing(p, vendor="AuthenticAMD", release="5.10.0"),
            "Linux 5.10.0 has no RAPL files for AMD",
            "5.11",
        ),
        (
            lambda p: cpu_trees.nothing(p, vendor="AuthenticAMD", release="5.11.0"),
            "driver is not loaded",
            "modprobe intel_rapl_msr",
        ),
        (
            lambda p: cpu_trees.nothing(p, vendor="AuthenticAMD", release="garbage"),
            "driver is not loaded",
            "modprobe intel_rapl_msr",
        ),
        (arm, "ARM", "hwmon"),
        (power, "RAPL is x86", "BMC"),
        (loaded, "although the driver is loaded", "dmesg"),
        (masked, "a container hides", "systempaths=unconfined"),
        (Host, "RAPL is x86", "BMC"),
    ],
    ids=[
        "vm",
        "module",
        "old amd",
        "amd",
        "odd release",
        "arm",
        "power",
        "loaded",
        "container",
        "no files at all",
    ],
)
@pytest.mark.parametrize("backend", ["auto", "powercap"])
def test_no_zone_at_all(tmp_path, make, reason, remedy, backend):
    answer = found(make(tmp_path), backend)
    assert answer.meters == ()
    kinds = by_kind(answer)
    assert set(kinds) == {"cpu", "dram"}
    assert reason in kinds["cpu"].reason
    assert reason in kinds["dram"].reason
    assert remedy in kinds["cpu"].remedy


def test_the_machine_here_never_raises():
    for backend in ("auto", "powercap", "perf", "pyrapl"):
        answer = rapl.find(backend=backend)
        assert answer.meters or answer.absences
        for absence in answer.absences:
            assert absence.reason
            assert absence.remedy
        for meter in answer.meters:
            assert len(meter.read(0)) == len(meter.channels)
            meter.close()


def test_an_unknown_way_is_the_users_mistake():
    with pytest.raises(UnknownName, match="powercap"):
        rapl.find(backend="powrcap")


# ---------------------------------------------------------------- which way


def pipes(values):
    """A perf_event_open whose descriptors give these counts again and again."""

    def open_event(kind, config, cpu):
        value = values[config]
        if isinstance(value, int) and value < 0:
            raise OSError(-value, os.strerror(-value))
        read, write = os.pipe()
        os.write(write, int(value).to_bytes(8, sys.byteorder) * 8)
        os.close(write)
        return read

    return open_event


def chosen(host, open_file, values):
    cpu = read_processor(host.procfs)
    tree = rapl_ways.tree(host.sysfs, cpu, open_file)
    if rapl.measures_cpu(tree.meter):
        tree.meter.close()
        return None
    answer = rapl.by_files_or_perf(
        tree, rapl_ways.pmu(host.sysfs, cpu, pipes(values)), host.sysfs, cpu
    )
    for meter in answer.meters:
        meter.close()
    return answer


def test_perf_where_the_files_are_closed(tmp_path):
    host = cpu_trees.intel(tmp_path)
    host.add_pmu({"energy-pkg": 2, "energy-ram": 3})
    answer = chosen(host, closed(), {2: 1, 3: 1})
    (meter,) = answer.meters
    assert meter.facts["backend"] == "perf"
    assert "Permission denied" in meter.facts["not powercap"]
    assert [channel.domain for channel in meter.channels] == ["cpu:0", "dram:0"]
    assert answer.absences == []


@pytest.mark.parametrize("perf", [1, -errno.EACCES])
def test_the_way_not_taken_is_closed(tmp_path, perf):
    host = cpu_trees.intel(tmp_path)
    host.add_pmu({"energy-pkg": 2, "energy-ram": 3})
    before = len(os.listdir("/proc/self/fd"))
    answer = chosen(host, closed(str(host.zones["cpu:0"].path / "energy_uj")), {2: perf, 3: 1})
    assert answer.meters[0].facts["backend"] == ("perf" if perf > 0 else "powercap")
    assert len(os.listdir("/proc/self/fd")) == before


def test_both_refuse_and_both_say_why(tmp_path):
    host = cpu_trees.intel(tmp_path)
    host.add_pmu({"energy-pkg": 2, "energy-ram": 3})
    answer = chosen(host, closed(), {2: -errno.EACCES, 3: -errno.EACCES})
    assert answer.meters == ()
    assert [absence.what for absence in answer.absences] == ["rapl cpu", "rapl dram", "rapl perf"]


def test_without_a_pmu_the_files_reasons_are_enough(tmp_path):
    answer = chosen(cpu_trees.intel(tmp_path), closed(), {})
    assert [absence.what for absence in answer.absences] == ["rapl cpu", "rapl dram"]


def test_open_files_come_first(tmp_path):
    host = cpu_trees.intel(tmp_path)
    host.add_pmu({"energy-pkg": 2})
    assert chosen(host, os.open, {2: 1}) is None


def test_perf_without_packages_does_not_replace_what_there_is(tmp_path):
    """Files give memory, perf gives memory: the files stay, and both reasons are told."""
    host = cpu_trees.intel(tmp_path)
    host.add_pmu({"energy-pkg": 2, "energy-ram": 3})
    answer = chosen(
        host, closed(str(host.zones["cpu:0"].path / "energy_uj")), {2: -errno.EINVAL, 3: 1}
    )
    assert answer.meters[0].facts["backend"] == "powercap"
    assert [channel.domain for channel in answer.meters[0].channels] == ["dram:0", "core:0"]
    assert [absence.what for absence in answer.absences] == ["rapl cpu", "rapl perf"]


def test_perf_alone_may_be_asked_for(tmp_path):
    host = cpu_trees.intel(tmp_path)
    answer = found(host, "perf")
    assert [absence.kind for absence in answer.absences] == ["cpu", "dram"]
    assert "modprobe rapl" in answer.absences[0].remedy


# ---------------------------------------------------------------- two ways held against each other


def one(domain, wraps_at=None):
    from ckptcost.first.core.channels import Channel

    return Channel(domain, "energy_j", "test", wraps_at=wraps_at)


def test_two_ways_to_one_counter():
    ours = Basic("a", (one("cpu:0", 100.0), one("dram:0")))
    theirs = Basic("b", (one("dram:0"), one("cpu:0")))
    readings = [([90.0, 5.0], [5.0, 90.5]), ([99.9, 7.0], [7.0, 0.2]), ([10.0, 8.0], [8.5, 10.0])]
    cpu, dram = rapl.crosscheck(ours, theirs, readings)
    assert cpu.domain == "cpu:0"
    assert cpu.ours_j == pytest.approx(20.0)
    assert cpu.theirs_j == pytest.approx(19.5)
    assert cpu.apart_j == pytest.approx(0.5)  # 99.9 and 0.2 are 0.3 apart round the corner
    assert dram == ("dram:0", 3.0, 3.5, 0.5)


def test_what_one_of_them_does_not_say_is_unknown():
    ours, theirs = (
        Basic("a", (one("cpu:0"), one("core:0"))),
        Basic("b", (one("cpu:0"), one("dram:0"))),
    )
    found = {
        d.domain: d
        for d in rapl.crosscheck(
            ours, theirs, [([9.0, 1.0], [math.nan, 2.0]), ([5.0, 2.0], [4.0, 4.0])]
        )
    }
    assert math.isnan(found["cpu:0"].ours_j)  # fell, and nobody knows the range
    assert math.isnan(found["cpu:0"].theirs_j)  # a single reading
    assert found["cpu:0"].apart_j == 1.0  # of the pair that both answered
    assert found["core:0"].ours_j == 1.0
    assert math.isnan(found["core:0"].theirs_j)
    assert math.isnan(found["dram:0"].apart_j)
    empty = rapl.crosscheck(ours, theirs, [])
    assert all(math.isnan(d.ours_j) and math.isnan(d.apart_j) for d in empty)
