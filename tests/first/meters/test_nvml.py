"""The door to NVML, the table of sensors, and paths that need no library."""

from __future__ import annotations

import importlib
import logging
import sys
from types import ModuleType, SimpleNamespace

import pytest

from ckptcost.first.meters import nvml, nvml_driver
from ckptcost.first.meters.base import Absence, Meter


class NVMLError(Exception):
    def __init__(self, value):
        self.value = value
        super().__init__(value)


def binding(**calls):
    """A stand-in for pynvml in which only the given calls exist; an exception is raised, everything
    else is returned."""

    def call(said):
        def made(*_):
            if isinstance(said, Exception):
                raise said
            return said

        return made

    usual = {
        "nvmlInit": None,
        "nvmlShutdown": None,
        "nvmlDeviceGetCount": 1,
        "nvmlDeviceGetHandleByIndex": "handle",
        "nvmlSystemGetDriverVersion": b"590.1",
        "nvmlDeviceGetUUID": "GPU-1",
        "nvmlDeviceGetName": b"NVIDIA H200",
    }
    return SimpleNamespace(
        NVMLError=NVMLError, **{name: call(said) for name, said in (usual | calls).items()}
    )


def unopened(tmp_path, code, environ=None, *, nodes=(), driver=False, card=False, dxg=False):
    for name in nodes:
        (tmp_path / "dev").mkdir(exist_ok=True)
        (tmp_path / "dev" / name).touch()
    if dxg:
        (tmp_path / "dev").mkdir(exist_ok=True)
        (tmp_path / "dev/dxg").touch()
    if driver:
        (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
        (tmp_path / "proc/driver/nvidia/version").write_text("NVRM")
    if card:
        device = tmp_path / "sys/bus/pci/devices/0000:17:00.0"
        device.mkdir(parents=True)
        (device / "vendor").write_text("0x10de\n")
        (device / "class").write_text("0x030200\n")
    roots = {"devfs": tmp_path / "dev", "procfs": tmp_path / "proc", "sysfs": tmp_path / "sys"}
    found = nvml.find(visible=environ or {}, library=binding(nvmlInit=NVMLError(code)), **roots)
    assert found.meters == ()
    (absence,) = found.absences
    assert absence.kind == "gpu"
    return absence


def test_no_gpu_at_all(tmp_path):
    absence = unopened(tmp_path, nvml_driver.LIBRARY_NOT_FOUND)
    assert "no NVIDIA GPU" in absence.reason
    assert "lspci" in absence.remedy


def test_a_container_without_the_library(tmp_path):
    absence = unopened(tmp_path, nvml_driver.LIBRARY_NOT_FOUND, driver=True, card=True)
    assert "libnvidia-ml.so.1" in absence.reason
    assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility" in absence.remedy


def test_a_container_that_keeps_gpus_out(tmp_path):
    absence = unopened(
        tmp_path, nvml_driver.LIBRARY_NOT_FOUND, {"NVIDIA_VISIBLE_DEVICES": "void"}, card=True
    )
    assert "NVIDIA_VISIBLE_DEVICES=void" in absence.reason
    assert "--gpus all" in absence.remedy


def test_wsl(tmp_path):
    absence = unopened(tmp_path, nvml_driver.LIBRARY_NOT_FOUND, dxg=True)
    assert "/usr/lib/wsl/lib" in absence.remedy


def test_a_card_without_a_driver(tmp_path):
    assert (
        "libnvidia-ml" in unopened(tmp_path / "a", nvml_driver.LIBRARY_NOT_FOUND, card=True).reason
    )
    absence = unopened(tmp_path / "b", nvml_driver.DRIVER_NOT_LOADED, card=True)
    assert "not loaded" in absence.reason
    assert "modprobe nvidia" in absence.remedy


def test_device_files_that_may_not_be_opened(tmp_path):
    absence = unopened(
        tmp_path, nvml_driver.NO_PERMISSION, nodes=["nvidia0", "nvidiactl"], driver=True
    )
    assert f"{tmp_path}/dev/nvidia0" in absence.reason
    assert "usermod" in absence.remedy


def test_versions_that_do_not_fit(tmp_path):
    assert (
        "restart" in unopened(tmp_path, nvml_driver.MISMATCH, nodes=["nvidia0"], card=True).remedy
    )


def test_a_container_that_lost_its_devices(tmp_path):
    assert (
        "restart the container"
        in unopened(tmp_path, nvml_driver.UNKNOWN, nodes=["nvidiactl"]).remedy
    )


def test_an_error_nobody_has_heard_of(tmp_path):
    assert "NVML error 77" in unopened(tmp_path, 77, card=True).reason


def test_a_package_that_is_not_nvidias(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", ModuleType("pynvml"))
    (absence,) = nvml.find(visible={}).absences
    assert "not NVIDIA's binding" in absence.reason
    assert "pip uninstall pynvml" in absence.remedy


def test_no_package_at_all(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    (absence,) = nvml.find(visible={}).absences
    assert "nvidia-ml-py" in absence.remedy


def test_an_import_that_warns_and_logs_leaves_no_trace(monkeypatch, tmp_path):
    (tmp_path / "pynvml.py").write_text(
        "import logging,"
        " warnings\nlogging.warning('loud')\nlogging.getLogger().setLevel(1)\nwarnings.warn('old',"
        " FutureWarning)\n_nvmlGetFunctionPointer = None\nclass NVMLError(Exception):\n    value ="
        " 12\ndef nvmlInit():\n    raise NVMLError\n",
        "utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    importlib.invalidate_caches()
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])  # logging.warning installs one where there is none
    before, level = root.handlers[:], root.level
    (absence,) = nvml.find(visible={}, devfs=tmp_path, procfs=tmp_path, sysfs=tmp_path).absences
    sys.modules.pop("pynvml")
    assert (root.handlers, root.level) == (before, level)
    assert "no NVIDIA GPU" in absence.reason


def test_an_old_binding_lacks_most_calls():
    found = nvml.find(visible={}, library=binding(nvmlDeviceGetTotalEnergyConsumption=5000))
    (meter,) = found.meters
    assert isinstance(meter, Meter)
    assert [channel.name for channel in meter.channels] == ["gpu:0 energy_j"]
    assert list(meter.read(1)) == [5.0]


def test_a_name_that_is_not_text():
    bad = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no")
    (meter,) = nvml.find(
        visible={}, library=binding(nvmlDeviceGetName=bad, nvmlDeviceGetTotalEnergyConsumption=5000)
    ).meters
    assert meter.channels[0].device == "GPU-1"


def test_closing_twice_is_no_matter():
    library = binding(
        nvmlDeviceGetTotalEnergyConsumption=5000, nvmlShutdown=NVMLError(nvml_driver.UNINITIALIZED)
    )
    (meter,) = nvml.find(visible={}, library=library).meters
    meter.close()
    meter.close()


def test_every_refusal_has_words():
    codes = (
        nvml_driver.LIBRARY_GONE | nvml_driver.DEVICE_GONE | {3, 4, 10, 13, 21, 999, -1, -2, -3, -4}
    )
    assert not [
        code for code in codes - {12, 28} if nvml_driver.reason(code).startswith("NVML error")
    ]


@pytest.mark.parametrize(
    ("architecture", "name", "kind"),
    [
        (9, "NVIDIA GH200 480GB", "Hopper"),
        (7, "NVIDIA A100 80GB PCIe", "GA100"),
        (7, "NVIDIA A30", "GA100"),
        (7, "NVIDIA A800-SXM4", "GA100"),
        (7, "NVIDIA A10", "Ampere"),
        (7, "NVIDIA RTX A3000", "Ampere"),
        (8, "NVIDIA L40S", "Ada"),
        (None, "x", ""),
        (99, "x", ""),
    ],
)
def test_chips(architecture, name, kind):
    assert nvml_driver.chip(architecture, name) == kind


PUBLISHED = {  # chip: average, instant, usage under drivers 525, 530, 590; averaging_s and looks
    "Hopper": [(1.0, 1.0), (0.025, 0.25), None, None, (1.0, 1.0)],
    "Ada": [(1.0, 1.0), (0.1, 1.0), (1.0, 1.0), (0.1, 1.0), (1.0, 1.0)],
    "Ampere": [(1.0, 1.0), (0.1, 1.0), (1.0, 1.0), (0.1, 1.0), (1.0, 1.0)],
    "GA100": [None, (0.025, 0.25), (0.025, 0.25), (0.025, 0.25), (0.025, 0.25)],
    "Turing": [None, (0.1, 1.0), (0.1, 1.0), (0.1, 1.0), (0.1, 1.0)],
    "Volta": [None, (0.01, 0.5), (0.01, 0.5), (0.01, 0.5), (0.01, 0.5)],
    "Pascal": [None, (0.01, 0.5), (0.01, 0.5), (0.01, 0.5), (0.01, 0.5)],
}


@pytest.mark.parametrize("kind", PUBLISHED)
def test_the_published_table(kind):
    asked = [
        (nvml_driver.AVERAGE, "590.1"),
        (nvml_driver.INSTANT, "590.1"),
        *((nvml_driver.USAGE, f"{d}.9") for d in (525, 530, 590)),
    ]
    for (field, driver), known in zip(asked, PUBLISHED[kind], strict=True):
        if known is not None:
            sensor = nvml_driver.sensor(kind, field, driver)
            assert (sensor.averaging_s, sensor.looks) == known, (kind, field, driver)
            assert sensor.tick_s == (0.02 if kind in {"Volta", "Pascal"} else 0.1)
            assert sensor.looks == pytest.approx(min(sensor.averaging_s / sensor.tick_s, 1.0))


def test_what_is_not_published_is_not_known():
    for field in (nvml_driver.INSTANT, nvml_driver.USAGE, nvml_driver.AVERAGE):
        assert nvml_driver.sensor("Blackwell", field, "590.1").looks is None
        assert nvml_driver.sensor("", field, "590.1").looks is None
    assert nvml_driver.steady_error("NVIDIA B200") is None
    assert nvml_driver.energy_note("Ada") == ""


@pytest.mark.parametrize(
    "name", ["NVIDIA GH200 480GB", "NVIDIA GB200", "NVIDIA GB300", "NVIDIA GB10"]
)
def test_superchips_by_name(name):
    assert nvml_driver.SUPERCHIP.search(name)
    assert not nvml_driver.SUPERCHIP.search(name.replace("G", "", 1).replace("NVIDIA G", "NVIDIA "))


def test_every_type_of_value():
    value = SimpleNamespace(**{member: k + 0.5 for k, member in nvml_driver.VALUE.items()})
    assert [nvml_driver.number(value, k) for k in range(7)] == [k + 0.5 for k in range(7)]
    assert nvml_driver.number(value, 7) != nvml_driver.number(value, 7)


def test_a_field_of_an_unknown_type_is_no_answer():
    element = SimpleNamespace(nvmlReturn=0, valueType=9, value=SimpleNamespace())
    ask = nvml_driver.FieldsCall([0], [(186, 0)], binding(nvmlDeviceGetFieldValues=[element]))
    (said,) = ask.call("handle", 0)
    assert said != said
    assert ask.why == [nvml_driver.NOT_A_NUMBER]


def test_the_absence_is_one():
    assert isinstance(nvml_driver.load(binding(nvmlInit=NVMLError(1))), Absence)
