"""What `measure` and `doctor` make of their flags before anything is measured, and what a report
may tell of the command."""

from __future__ import annotations

from pathlib import Path

import pytest

from ckptcost.first.cli import flags, telling
from ckptcost.first.cli.main import parser_for
from ckptcost.first.errors import InputError, MeterUnavailable
from ckptcost.first.jobs.instruments import Instruments, instruments
from ckptcost.first.meters.base import Absence, Basic, FoundMeters
from ckptcost.first.meters.found import Wanted
from ckptcost.first.questions.parameters import needed_kinds
from ckptcost.first.runs.clocks import RealClock, VirtualClock
from ckptcost.first.runs.recorder import Recorder
from ckptcost.first.runs.sinks import FileSink


def options_of(command, *words):
    return parser_for(command).parse_args(words)


@pytest.mark.parametrize("command", ["measure", "doctor"])
def test_flags_become_what_is_wanted(command, tmp_path):
    assert flags.wanted_of(options_of(command)) == Wanted()
    words = (
        "--gpus",
        "all",
        "--rapl",
        "perf",
        "--dir",
        str(tmp_path),
        "--pid",
        "7",
        "--redfish",
        "https://bmc/",
        "--redfish-ca",
        "ca.pem",
        "--redfish-insecure",
    )
    assert flags.wanted_of(options_of(command, *words)) == Wanted(
        every_gpu=True,
        rapl="perf",
        directory=tmp_path,
        pid=7,
        redfish_url="https://bmc/",
        redfish_ca="ca.pem",
        redfish_insecure=True,
    )


@pytest.mark.parametrize("pid", ["0", "-4"])
def test_a_process_has_a_positive_number(pid):
    with pytest.raises(InputError, match=r"^pid: expected a process id"):
        flags.wanted_of(options_of("measure", "--pid", pid))


def test_needs_may_be_repeated_and_have_spaces():
    assert needed_kinds(["gpu, cpu", " node "]) == ["gpu", "cpu", "node"]
    assert needed_kinds("gpu") == ["gpu"]
    assert needed_kinds([]) == []


def test_a_report_tells_no_folder_and_no_address():
    words = [
        "--dir",
        "/secret/scratch/",
        "--record",
        "/secret/runs/today",
        "-o",
        "/secret/out.json",
        "--redfish",
        "https://10.0.0.1/",
        "--redfish-ca=/secret/ca.pem",
        "--meters",
        "replay:/secret/runs/old/",
        "--for",
        "3 s",
    ]
    assert telling.tellable(parser_for("measure"), words) == [
        "--dir",
        "scratch",
        "--record",
        "today",
        "-o",
        "out.json",
        "--redfish",
        "URL",
        "--redfish-ca=ca.pem",
        "--meters",
        "replay:old",
        "--for",
        "3 s",
    ]
    assert telling.tellable(parser_for("doctor"), ["--dir=/secret/x", "--meters", "nvml"]) == [
        "--dir=x",
        "--meters",
        "nvml",
    ]


class Asked(Exception):
    """What the command asked its job for."""


@pytest.fixture
def asked(monkeypatch):
    """The arguments of whichever job a command asks."""

    def asking(module, name):
        def job(*args, **more):
            raise Asked(name, *args)

        monkeypatch.setattr(f"ckptcost.first.jobs.{module}.{name}", job)

    asking("measure", "measure")
    asking("measure", "learn")
    asking("checkup", "checkup")
    monkeypatch.setattr("ckptcost.first.jobs.instruments.instruments", lambda *tools: tools)

    def of(command, *words):
        options = options_of(command, *words)
        with pytest.raises(Asked) as caught:
            options.carry_out(options)
        return caught.value.args

    return of


def test_each_command_asks_its_job(asked):
    assert asked("measure") == ("measure", "auto", Wanted(), 10.0, None, None)
    assert asked("measure", "--for", "3 s", "--record", "r", "--need", "gpu")[3:] == (
        3.0,
        Path("r"),
        None,
    )
    assert asked("measure", "--meters", "replay:x")[1:4] == ("replay:x", Wanted(), None)
    assert asked("measure baseline") == ("learn", "auto", Wanted(), 30.0, False)
    assert asked("measure baseline", "--anyway", "--meters", "nvml", "--gpus", "all")[1:] == (
        "nvml",
        Wanted(every_gpu=True),
        30.0,
        True,
    )
    assert asked("doctor") == ("checkup", ("auto", Wanted(), 2.0), 2.0)
    assert asked("doctor", "--for", "1 min", "--meters", "rapl", "--need", "cpu") == (
        "checkup",
        ("rapl", Wanted(), 60.0),
        60.0,
    )


# ---- instruments ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "names"),
    [("auto", ()), (" auto ", ()), ("nvml, rapl", ("nvml", "rapl")), ("block", ("block",))],
)
def test_meters_by_name(monkeypatch, spec, names):
    wanted, gone = [], Absence("rapl", "not root")
    monkeypatch.setattr(
        "ckptcost.first.jobs.instruments.find_meters",
        lambda w: wanted.append(w) or FoundMeters((Basic("x"),), (gone,)),
    )
    seen = instruments(spec, Wanted(pid=7), 1.0)
    assert wanted == [Wanted(names=names, pid=7)]
    assert ([m.name for m in seen.meters], list(seen.absences), type(seen.clock)) == (
        ["x"],
        [gone],
        RealClock,
    )
    assert not seen.simulated


def test_auto_and_more_is_what_costs_nothing_and_what_is_named(tmp_path):
    bare = Wanted(sysfs=tmp_path, procfs=tmp_path, environ={})
    seen = {absence.what.split()[0] for absence in instruments("auto,nfs", bare, 1.0).absences}
    assert {"nfs", "rapl", "block"} <= seen
    assert "nfs" not in {
        absence.what.split()[0] for absence in instruments("auto", bare, 1.0).absences
    }
    with pytest.raises(InputError, match="nvlm"):
        instruments("auto,nvlm", bare, 1.0)


def test_one_simulated_meter_makes_all_of_it_simulated():
    real, made_up = Basic("real"), Basic("made up", simulated=True)
    assert Instruments([real, made_up], (), VirtualClock()).simulated
    assert not Instruments([real], (), VirtualClock()).simulated


def test_a_simulated_job_has_marks_until_the_end():
    seen = instruments("simulated", Wanted(), 130.0)
    ends = [mark.t_s for mark in seen.marks if mark.name == "begin"]
    assert max(ends) > 130.0, "the save that begins in the last moment is known too"
    assert (seen.clock.now_ns(), min(mark.t_s for mark in seen.marks) >= 0.0) == (0, True)


class TestReplay:
    @pytest.fixture
    def run(self, tmp_path) -> Path:
        class Steady(Basic):
            def read(self, t_ns):
                return [t_ns / 1e9]

        from ckptcost.first.core.channels import Channel

        clock = VirtualClock(100 * 10**9)
        meter = Steady("bmc", (Channel("node", "power_w", "DCMI"),), 1.0, facts={"driver": "590"})
        recorder = Recorder([meter], FileSink(tmp_path / "r"), clock, host="h")
        recorder.begin()
        recorder.run_until(105 * 10**9)
        recorder.mark("begin", "w")
        recorder.run_until(110 * 10**9)
        recorder.stop()
        return tmp_path / "r"

    def test_a_run_answers_as_it_did(self, run):
        seen = instruments(f"replay:{run}", Wanted(), 0.0)
        (meter,) = seen.meters
        assert (meter.name, meter.least_s, meter.facts["driver"], meter.simulated) == (
            "bmc",
            1.0,
            "590",
            True,
        )
        assert [(mark.name, mark.t_s) for mark in seen.marks] == [("begin", pytest.approx(5.0))]
        assert meter.read(3 * 10**9) == pytest.approx([103.0])

    def test_without_a_meter_there_is_nothing_to_replay(self, tmp_path):
        recorder = Recorder([], FileSink(tmp_path / "r"), VirtualClock(), host="h")
        recorder.begin()
        recorder.run_until(10**9)
        recorder.stop()
        with pytest.raises(MeterUnavailable, match=r"^r: holds no readings"):
            instruments(f"replay:{tmp_path / 'r'}", Wanted(), 0.0)
