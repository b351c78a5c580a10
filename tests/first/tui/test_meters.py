"""The doctor's lights, lines and rows say what the checkup found, in the words and amounts that
`ckptcost doctor` prints."""

from __future__ import annotations

import pytest
from doctor_studies import CLOSED, NO_GPU, RULE, bare, common, disk, gpu, made

from ckptcost.first.jobs.checkup import KINDS, Checkup
from ckptcost.first.meters.base import Absence
from ckptcost.first.present.amounts import number
from ckptcost.first.report.studies.checkup import study_of as checkup_study
from ckptcost.first.report.study_views import text as study_text
from ckptcost.first.tui.screens import meters
from ckptcost.first.tui.screens.meters import kinds_of, rows_of, state_of


def test_lights():
    assert meters.lights(common()) == "GPU \u25cf CPU \u2717 DRAM \u2013 IO \u25cf"
    assert meters.lights(common(), plain=True) == "GPU * CPU x DRAM - IO *"
    assert meters.lights(bare(), plain=True) == "GPU - CPU - DRAM - IO *"


def test_three_lines():
    gpus, cpu, storage = meters.three_lines(common(), plain=True)
    assert gpus == "GPU      * gpu:0, gpu:1: energy counter, 640-655 W, renewed each 0.1 s"
    assert cpu == f"CPU      x {CLOSED.reason}"
    assert storage == "storage  * disk:nvme0n1: bytes written, 12 MB/s"
    assert meters.three_lines(bare())[0] == f"GPU      \u2013 {NO_GPU.reason}"


def test_a_counter_that_never_moves_measures_nothing():
    node = next(kind for kind in kinds_of(bare()) if kind.id == "node")
    assert (node.state, node.by) == ("asleep", ())
    assert node.reasons == (
        "not asked for: each reading starts a process",
        "perf power/energy-psys/ answers and never moves",
    )
    (row,) = [row for row in meters.tables(bare())[1].rows if row.cells[0].startswith("psys")]
    assert (row.cells[2], row.tone) == ("-", "bad")


def test_every_channel_and_every_absence_has_a_row():
    study = common()
    missing, channels = meters.tables(study)
    assert [(row.cells[0], row.tone) for row in missing.rows] == [
        ("rapl cpu", "bad"),
        ("rapl dram:0", "muted"),
        ("ipmi", "muted"),
    ]
    assert [row.cells[:6] for row in channels.rows] == [
        ("gpu:0", "energy_j", "640", "1.5", "W", "0.1 s"),
        ("gpu:0", "power_w", "641", "2", "W", "-"),
        ("gpu:1", "energy_j", "655", "1.5", "W", "0.1 s"),
        ("gpu:1", "power_w", "656", "2", "W", "-"),
        ("disk:nvme0n1", "written_bytes", "12 MB/s", "-", "", "0.5 s"),
    ]


def test_what_is_shown_is_what_the_command_prints():
    study = common()
    said = " ".join(study_text(study).split())
    for row in meters.tables(study)[1].rows:
        assert " ".join(filter(None, row.cells)) in said
    for row in meters.tables(study)[0].rows:
        assert row.cells[1] in said
    assert next(line for line, _ in meters.overview(study) if line.startswith("Asking")) in said


def test_the_remedy_that_lasts():
    study = common()
    key = meters.worst(study)
    assert meters.remedy(study, 0, key) == RULE
    lines = [line for line, _ in meters.detail(study, 0, key)]
    assert lines == [
        f"rapl cpu: {CLOSED.reason}.",
        "What would help (y copies it):",
        *RULE.split("\n"),
    ]
    assert meters.remedy(study, 1, "0") == ""


def test_all_that_is_known_of_a_channel():
    ((line, tone),) = meters.detail(common(), 1, "1")
    assert line == (
        "domain gpu:0; quantity power_w; now 641; +- 2; answers 99; of 101; took 4e-4 s; unit W;"
        " meter nvml; kind gpu; source NVML field 186; scope gpu; role part; device NVIDIA H200 0;"
        " averaging 0.025 s; looks 25 %; accuracy 5 %"
    )
    assert tone == ""
    stuck = [line for line, tone in meters.detail(bare(), 1, "1") if tone == "bad"]
    assert "never moves: no such counter" in stuck[0]
    assert "published tick 0.001 s" in stuck[0]


def test_what_works_without():
    said = [line for line, _ in meters.overview(bare())]
    assert any(line.startswith("Without the GPUs' power") for line in said)
    assert not any("disk counters" in line for line in said), "storage answers"
    every = made(gpu(0, 1.0), disk("a"))
    assert not any(line.startswith("Without the GPUs") for line, _ in meters.overview(every))


def test_the_cursor_begins_at_what_refuses_where_something_would_be_measured():
    assert meters.worst(bare()) == "0"
    extra = Absence("cgroup", "permission denied", "", "storage")
    measured = made(gpu(0, 1.0), disk("a"), absences=(NO_GPU, extra))
    assert meters.worst(measured) == "0", "storage is measured by another"
    assert meters.worst(made(gpu(0, 1.0), absences=(NO_GPU, extra))) == "1"


def test_a_simulated_machine():
    study = meters.look("simulated")
    assert meters.lights(study) == "GPU \u25cf CPU \u25cf DRAM \u25cf IO \u25cf"
    assert "simulated" in meters.overview(study)[0][0]
    assert "gpu:0 and 7 more: energy counter, " in meters.overview(study)[1][0]
    watts = [
        row["rate"]
        for row in rows_of(study, "channels")
        if row["domain"].startswith("gpu:") and row["quantity"] == "energy_j"
    ]
    assert len(watts) == 8
    assert number(max(watts)) in meters.overview(study)[1][0]


def test_command():
    assert meters.command("auto") == "ckptcost doctor --for '1 s'"
    assert (
        meters.command("simulated", every_gpu=True)
        == "ckptcost doctor --for '1 s' --meters simulated --gpus all"
    )


@pytest.mark.parametrize(
    ("reason", "state"),
    [
        ("no permission to open /dev/nvidiactl", "refuses"),
        ("an NVIDIA driver runs, but libnvidia-ml.so.1 is not found here", "refuses"),
        ("the package amdsmi is not installed", "refuses"),
        ("/sys/class/powercap has no RAPL zone and the driver is not loaded", "refuses"),
        (
            (
                "/sys/class/powercap has no RAPL zone: a virtual machine, and its hypervisor passes"
                " no counters on"
            ),
            "lacks",
        ),
        (
            (
                "AMD's RAPL counts packages and cores and has nothing for memory. The memory's"
                " joules are unknown, not 0"
            ),
            "lacks",
        ),
        ("no /sys/class/hwmon", "lacks"),
        ("not asked for: it needs a BMC's address and account", "asleep"),
    ],
)
def test_what_a_machine_does_not_have_is_not_what_refuses(reason, state):
    assert state_of(reason) == state


def test_the_meters_still_say_it_in_these_words(tmp_path):
    """What looking on an empty machine says must be known here as hardware that is not there."""
    from ckptcost.first.meters import amd, hwmon, nvme, nvml

    empty = tmp_path / "sys"
    empty.mkdir()
    found = [
        amd.find(sysfs=empty, visible={}),
        hwmon.find(empty),
        nvme.find(sysfs=empty),
    ]
    for seen in found:
        assert [state_of(absence.reason) for absence in seen.absences] == ["lacks"]
    gpus = nvml.find(visible={}, sysfs=empty, procfs=tmp_path)
    assert {state_of(absence.reason) for absence in gpus.absences} <= {"lacks"}


def test_what_refuses_is_said_before_what_nobody_asked_for():
    absences = (
        Absence("ipmi", "not asked for: each reading starts a process", "", "cpu"),
        Absence("rapl", "permission denied", "", "cpu"),
    )
    study = checkup_study(
        Checkup("host", [], absences, (), "", {kind: [] for kind in KINDS}, 1.0, False, 0.03)
    )
    (kind,) = [kind for kind in kinds_of(study) if kind.id == "cpu"]
    assert (kind.state, kind.reasons[0]) == ("refuses", "permission denied")
