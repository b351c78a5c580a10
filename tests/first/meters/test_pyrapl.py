"""pyRAPL on a short lead: it agrees with our own reader, and nothing of it is left behind."""

from __future__ import annotations

import errno
import gc
import io
import json
import logging
import math
import os
import shutil
import subprocess
import sys
import threading
import types
import warnings
from pathlib import Path

import cpu_trees
import pytest
from cpu_trees import Host

from ckptcost.first.errors import MeterLost
from ckptcost.first.meters import rapl, rapl_ways
from ckptcost.first.meters.rapl_domains import read_processor

with rapl_ways.guard_logging():
    pyrapl = pytest.importorskip("pyRAPL", reason="pyRAPL is for Linux only")
    from pyRAPL import device_api

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).resolve().parent
SECOND = 1_000_000_000


class Redirected:
    """pyRAPL's `open` and `os` turned from /sys to a tree of ours, with errors to order."""

    def __init__(self, host: Host, patch: pytest.MonkeyPatch):
        self.host = host
        self.errors: dict[str, int] = {}
        self.broken: set[str] = set()
        self.files: list[Failing] = []
        patch.setattr(device_api, "open", self.open, raising=False)
        patch.setattr(
            device_api,
            "os",
            types.SimpleNamespace(
                path=types.SimpleNamespace(exists=lambda path: self.here(path).exists())
            ),
        )

    def here(self, path: str) -> Path:
        assert path.startswith("/sys/")
        return self.host.sysfs / path.removeprefix("/sys/")

    def open(self, path, mode="r"):
        for part, number in self.errors.items():
            if part in str(path):
                raise OSError(number, os.strerror(number), path)
        file = Failing(self, str(path), self.here(path).open(mode, encoding="ascii"))
        if path.endswith("energy_uj"):
            self.files.append(file)  # held, so that only who closes it closes it
        return file


class Failing(io.TextIOWrapper):
    def __init__(self, to: Redirected, path: str, file):
        super().__init__(file.detach())
        self.to, self.path = to, path

    def readline(self, *args):
        if any(part in self.path for part in self.to.broken):
            raise OSError(errno.EIO, "Input/output error")
        return super().readline(*args)


@pytest.fixture
def redirected(monkeypatch):
    return lambda host: Redirected(host, monkeypatch)


def both(host: Host):
    cpu = read_processor(host.procfs)
    theirs = rapl.by_pyrapl(sysfs=host.sysfs, cpu=cpu)
    ours = rapl_ways.tree(host.sysfs, cpu).meter
    return ours, theirs


@pytest.mark.parametrize("sockets", [1, 2])
@pytest.mark.parametrize("first", [0, 1])
def test_it_agrees_with_our_own_reader(tmp_path, redirected, sockets, first):
    host = cpu_trees.intel(tmp_path, sockets=sockets, psys=True, mmio=True, first=first)
    redirected(host)
    ours, (meters, absences) = both(host)
    assert absences == []
    (theirs,) = meters
    assert {channel.domain for channel in theirs.channels} == {
        f"{kind}:{n}" for kind in ("cpu", "dram") for n in range(sockets)
    }
    turns = {channel.domain: channel.wraps_at for channel in ours.channels}
    assert all(channel.wraps_at == turns[channel.domain] is not None for channel in theirs.channels)
    assert all(
        channel.role == "part" and channel.quantity == "energy_j" for channel in theirs.channels
    )
    readings = []
    for step in range(6):
        for domain, zone in host.zones.items():
            zone.set_j(
                zone.turn_j - 200.0 + 100.0 * step + len(domain)
            )  # over the edge in the middle
        readings.append((ours.read(step), theirs.read(step)))
    told = {difference.domain: difference for difference in rapl.crosscheck(ours, theirs, readings)}
    for domain in ("cpu:0", "dram:0"):
        assert told[domain].ours_j == pytest.approx(500.0, abs=0.01)
        assert told[domain].theirs_j == pytest.approx(500.0, abs=0.01)
        assert told[domain].apart_j == 0.0
    assert math.isnan(told["psys:0"].theirs_j)  # pyRAPL knows none
    ours.close()
    theirs.close()
    with pytest.raises(MeterLost):
        theirs.read(0)


def test_nothing_is_added_without_a_range(tmp_path, redirected):
    host = cpu_trees.intel(tmp_path)
    (host.zones["cpu:0"].path / "max_energy_range_uj").unlink()
    redirected(host)
    (meter,) = rapl.by_pyrapl(sysfs=host.sysfs, cpu=read_processor(host.procfs)).meters
    assert meter.channels[0].wraps_at is None
    assert "a wrap is a gap" in meter.channels[0].note
    assert meter.channels[1].wraps_at is not None
    meter.close()


def test_amd_has_no_memory(tmp_path, redirected):
    host = cpu_trees.amd(tmp_path)
    redirected(host)
    meters, absences = rapl.by_pyrapl(sysfs=host.sysfs, cpu=read_processor(host.procfs))
    assert meters[0].read(0) == pytest.approx([2000.0, 2000.0], abs=1e-3)
    assert [(absence.what, absence.kind) for absence in absences] == [("rapl pyrapl dram", "dram")]
    meters[0].close()


def test_several_dies_are_beyond_it(tmp_path, redirected):
    host = cpu_trees.several_dies(tmp_path)
    redirected(host)
    meters, absences = rapl.by_pyrapl(sysfs=host.sysfs, cpu=read_processor(host.procfs))
    assert meters == ()
    assert [absence.kind for absence in absences] == ["cpu", "dram"]
    assert "several dies" in absences[0].reason
    assert "--rapl powercap" in absences[0].remedy


def test_closed_files(tmp_path, redirected):
    host = cpu_trees.intel(tmp_path)
    redirected(host).errors["energy_uj"] = errno.EACCES
    meters, absences = rapl.by_pyrapl(sysfs=host.sysfs, cpu=read_processor(host.procfs))
    assert meters == ()
    assert "energy_uj: Permission denied" in absences[0].reason
    assert "udevadm" in absences[0].remedy


def test_a_processor_without_topology(tmp_path, redirected):
    host = cpu_trees.intel(tmp_path)
    shutil.rmtree(host.sysfs / "devices/system/cpu/cpu1")
    redirected(host)
    meters, absences = rapl.by_pyrapl(sysfs=host.sysfs, cpu=read_processor(host.procfs))
    assert meters == ()
    assert "No such file" in absences[0].reason


def test_no_zone_at_all(tmp_path, redirected):
    host = cpu_trees.nothing(tmp_path, flags="fpu hypervisor")
    host.add_processors({0: (0, 0)})
    redirected(host)
    meters, absences = rapl.by_pyrapl(sysfs=host.sysfs, cpu=read_processor(host.procfs))
    assert meters == ()
    assert "virtual machine" in absences[0].reason


def test_a_package_that_cannot_be_imported(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyRAPL", None)
    host = cpu_trees.intel(tmp_path)
    meters, (absence,) = rapl.by_pyrapl(sysfs=host.sysfs, cpu=read_processor(host.procfs))
    assert meters == ()
    assert "cannot be imported" in absence.reason
    assert "pip install" in absence.remedy


def test_another_root_than_sys_is_refused(tmp_path):
    meters, (absence,) = rapl.find(sysfs=tmp_path, procfs=tmp_path, backend="pyrapl")
    assert meters == ()
    assert str(tmp_path) in absence.reason


def test_a_counter_that_fails_and_comes_back(tmp_path, redirected):
    host = cpu_trees.intel(tmp_path, sockets=2)
    to = redirected(host)
    (meter,) = rapl.by_pyrapl(sysfs=host.sysfs, cpu=read_processor(host.procfs)).meters
    to.broken.add(
        "intel-rapl:1:1/energy_uj"
    )  # memory of the second socket: pyRAPL reads all memory in one go
    for tick in range(30):
        values = dict(
            zip((c.domain for c in meter.channels), meter.read(tick * SECOND // 10), strict=True)
        )
        assert values["cpu:1"] == pytest.approx(2000.0, abs=1e-3)
        assert math.isnan(values["dram:0"])
        assert math.isnan(values["dram:1"])
    assert [(event.name, event.domain) for event in meter.events] == [
        ("lost", "dram:0"),
        ("lost", "dram:1"),
    ]
    to.broken.clear()
    assert not any(math.isnan(value) for value in meter.read(4 * SECOND))
    assert [event.name for event in meter.events] == ["lost", "lost", "found", "found"]
    meter.close()


def test_it_closes_what_pyrapl_leaves_open(tmp_path, redirected):
    host = cpu_trees.intel(tmp_path, sockets=2)
    to = redirected(host)

    def held():
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    before = held()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (meter,) = rapl.by_pyrapl(sysfs=host.sysfs, cpu=read_processor(host.procfs)).meters
        assert (len(to.files), sum(not file.closed for file in to.files)) == (4, 4)
        to.broken.add("energy_uj")
        for tick in range(10):
            meter.read(tick * SECOND)  # each opens anew
        assert len(to.files) == 4 + 9 * 4
        assert sum(not file.closed for file in to.files) == 4
        to.broken.clear()
        meter.read(20 * SECOND)
        meter.close()
        to.broken.add("energy_uj")
        assert rapl.by_pyrapl(sysfs=host.sysfs, cpu=read_processor(host.procfs)).meters == ()
        assert all(file.closed for file in to.files)
    assert [str(warning.message) for warning in caught] == []
    assert held() == before


# ---------------------------------------------------------------- the guard


@pytest.mark.parametrize("own", [[], [logging.NullHandler()]])
def test_the_guard_gives_everything_back(own):
    root = logging.root
    kept, level, filters = root.handlers[:], root.level, root.filters[:]
    assert rapl_ways._not_pyrapls not in filters
    shown = warnings.filters[:]
    root.handlers[:] = own
    try:
        root.setLevel(logging.ERROR)
        with rapl_ways.guard_logging():
            logging.basicConfig(level=logging.DEBUG)
            root.addHandler(logging.StreamHandler())
            root.setLevel(logging.DEBUG)
            warnings.warn("unseen", UserWarning, stacklevel=1)
        assert root.handlers == own
        assert root.level == logging.ERROR
        assert root.filters == filters
        with pytest.raises(KeyError), rapl_ways.guard_logging():
            raise KeyError
        assert root.handlers == own
        assert root.filters == filters
    finally:
        root.handlers[:] = kept
        root.setLevel(level)
    assert warnings.filters == shown


def test_others_are_heard_meanwhile():
    heard = []

    class Ear(logging.Handler):
        def emit(self, record):
            heard.append(record.getMessage())

    ear = Ear()
    logging.root.addHandler(ear)
    try:
        with rapl_ways.guard_logging():
            logging.warning("of another thread")
            logging.root.handle(
                logging.LogRecord(
                    "root",
                    logging.WARNING,
                    "/site/pyRAPL/outputs/__init__.py",
                    1,
                    "theirs",
                    None,
                    None,
                )
            )
    finally:
        logging.root.removeHandler(ear)
    assert heard == ["of another thread"]


AFTER = """
import sys, logging, threading, warnings, gc, json
import ckptcost.first.meters.rapl, ckptcost.first.meters.rapl_ways  # numpy adds filters of its own
level, shown = logging.root.level, list(warnings.filters)
from pathlib import Path
{middle}
gc.collect()
assert logging.root.handlers == [], logging.root.handlers
assert (logging.root.level, list(warnings.filters)) == (level, shown)
assert threading.active_count() == 1
assert "tests" not in sys.modules
logging.getLogger("somebody").warning("by the last resort")
print(json.dumps(told))
"""
FIND = """
from ckptcost.first.meters import rapl
told = [list(absence) for absence in rapl.find(backend="pyrapl").absences]
assert sys.modules["pyRAPL"].__file__.startswith(sys.path[1]), sys.path
"""


def fresh(middle, tmp_path, *before):
    """A fresh interpreter that takes each warning for an error, with a pyRAPL that no .pyc saves
    from being compiled."""
    site = tmp_path / "site"
    shutil.copytree(
        Path(pyrapl.__file__).parent, site / "pyRAPL", ignore=shutil.ignore_patterns("__pycache__")
    )
    code = AFTER.format(middle=middle)
    flags = ["-B", "-W", "error", "-X", "dev"]
    environment = {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}"}
    return subprocess.run(
        [*before, sys.executable, *flags, "-W", "error", "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_fresh_interpreter_where_every_warning_is_an_error(tmp_path):
    done = fresh(FIND, tmp_path)
    assert done.returncode == 0, done.stderr
    assert (
        done.stderr == "by the last resort\n"
    )  # no message of pyRAPL's, no unclosed file, and logging works as before
    assert json.loads(done.stdout)


def test_without_the_guard_it_does_not_even_import(tmp_path):
    """What the guard is for; when this fails a newer pyRAPL may need none."""
    done = fresh("import pyRAPL; told = []", tmp_path)
    assert done.returncode != 0


NAMESPACE = """
set -e
mount --bind "$1/sys/class" /sys/class
mount --bind "$1/sys/devices/system/cpu" /sys/devices/system/cpu
shift
exec "$@"
"""
COMPARE = """
from ckptcost.first.meters import rapl
proc = Path({proc!r})
theirs = rapl.find(procfs=proc, backend="pyrapl").meters[0]
ours = rapl.find(procfs=proc, backend="powercap").meters[0]
told = rapl.crosscheck(ours, theirs, [(ours.read(n), theirs.read(n)) for n in range(3)])
assert theirs.facts["library"] == "pyRAPL 0.2.3.1"
ours.close(); theirs.close()
"""


def may_mount():
    try:
        done = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False)
    except OSError:
        return False
    return os.geteuid() == 0 and done.returncode == 0


@pytest.mark.skipif(not may_mount(), reason="laying a tree over /sys wants root and unshare")
@pytest.mark.parametrize("sockets", [1, 2])
def test_it_agrees_through_the_real_paths(tmp_path, sockets):
    """/sys itself, with a tree of ours laid over it for one process."""
    host = cpu_trees.intel(tmp_path / "host", sockets=sockets)
    done = fresh(
        COMPARE.format(proc=str(host.procfs)),
        tmp_path,
        "unshare",
        "--mount",
        "sh",
        "-c",
        NAMESPACE,
        "sh",
        str(host.root),
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == "by the last resort\n"
    told = {row[0]: row[1:] for row in json.loads(done.stdout)}
    for domain in [f"{kind}:{n}" for kind in ("cpu", "dram") for n in range(sockets)]:
        assert told[domain] == [0.0, 0.0, 0.0]


def test_no_thread_is_started():
    assert not [thread for thread in threading.enumerate() if "rapl" in thread.name.lower()]
