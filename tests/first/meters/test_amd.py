"""AMD GPUs on a stand-in for amdsmi: a driver with names, counters and the holes that real ones
have."""

from __future__ import annotations

import math
import sys
from types import SimpleNamespace

import pytest

from ckptcost.first.errors import MeterLost
from ckptcost.first.meters import amd
from ckptcost.first.meters.base import Meter


class AmdSmiException(Exception):
    pass


class Smi:
    """Each GPU is a dict; `broken` names calls that fail."""

    AmdSmiException = AmdSmiException
    AmdSmiInitFlags = SimpleNamespace(INIT_AMD_GPUS=2)
    AmdSmiMemoryType = SimpleNamespace(VRAM=0)
    __version__ = "7.0.2"

    def __init__(self, *gpus, broken=()):
        self.gpus = [
            {
                "name": "AMD Instinct MI300X",
                "watts": 500,
                "joules": 1e4,
                "bdf": f"0000:{k:02x}:00.0",
                "hip": k,
                **gpu,
            }
            for k, gpu in enumerate(gpus)
        ]
        self.broken = set(broken)
        self.downs = self.asked = 0

    def _may(self, name):
        if name in self.broken:
            raise AmdSmiException(f"Error code:\n\t2 | {name} - Feature not supported")

    def amdsmi_init(self, flag):
        assert flag == 2
        self._may("amdsmi_init")

    def amdsmi_shut_down(self):
        self.downs += 1

    def amdsmi_get_processor_handles(self):
        self._may("amdsmi_get_processor_handles")
        return list(range(len(self.gpus)))

    def amdsmi_get_gpu_asic_info(self, h):
        return {"market_name": self.gpus[h]["name"]}

    def amdsmi_get_gpu_enumeration_info(self, h):
        self._may("amdsmi_get_gpu_enumeration_info")
        return {"hip_id": self.gpus[h]["hip"]}

    def amdsmi_get_gpu_device_uuid(self, h):
        return f"uuid-{h}"

    def amdsmi_get_gpu_device_bdf(self, h):
        return self.gpus[h]["bdf"]

    def amdsmi_get_energy_count(self, h):
        self.asked += 1
        self._may("amdsmi_get_energy_count")
        gpu = self.gpus[h]
        return {
            gpu.get("key", "energy_accumulator"): round(gpu["joules"] / 15.3e-6),
            "counter_resolution": 15.3,
            "timestamp": 1,
        }

    def amdsmi_get_power_info(self, h):
        self._may("amdsmi_get_power_info")
        gpu = self.gpus[h]
        return {
            "current_socket_power": gpu["watts"],
            "average_socket_power": gpu.get("average", "N/A"),
            "socket_power": "N/A",
        }

    def amdsmi_get_gpu_activity(self, h):
        self._may("amdsmi_get_gpu_activity")
        return {"gfx_activity": self.gpus[h].get("busy", 42)}

    def amdsmi_get_gpu_memory_usage(self, h, kind):
        self._may("amdsmi_get_gpu_memory_usage")
        return 8 << 30

    def amdsmi_get_gpu_driver_info(self, h):
        return {"driver_version": "6.12"}

    def wait(self, seconds):
        for gpu in self.gpus:
            gpu["joules"] += (
                gpu.get("counts", gpu["watts"] if isinstance(gpu["watts"], int) else 0) * seconds
            )


def find(smi, environ=None, **more):
    return amd.find(visible=environ or {}, library=smi, wait=smi.wait, **more)


def names(found):
    return [channel.name for meter in found.meters for channel in meter.channels]


def test_a_gpu_has_joules_watts_use_and_memory():
    smi = Smi({})
    found = find(smi)
    (meter,) = found.meters
    assert isinstance(meter, Meter)
    assert names(found) == [
        "gpu:0 energy_j",
        "gpu:0 power_w",
        "gpu:0 utilisation",
        "gpu:0 memory_used_bytes",
    ]
    assert found.absences == ()
    joules, watts, share, memory = meter.read(0)
    assert joules == pytest.approx(smi.gpus[0]["joules"], abs=2e-5)
    assert (watts, share, memory) == (500.0, 0.42, 8 << 30)
    smi.gpus[0]["joules"] += 77.0
    assert meter.read(10**9)[0] - joules == pytest.approx(77.0, abs=4e-5)
    assert meter.channels[0].resolution == pytest.approx(15.3e-6)
    assert meter.facts["driver"] == "6.12"
    meter.close()
    assert smi.downs == 1


def test_the_older_name_of_the_accumulator():
    assert find(Smi({"key": "power"})).meters[0].read(0)[0] > 1e4


def test_the_mean_where_the_chip_has_no_watts_of_now():
    found = find(Smi({"watts": "N/A", "average": 90, "counts": 90}))
    assert [c.source for c in found.meters[0].channels if c.quantity == "power_w"] == [
        "amdsmi average_socket_power"
    ]


class TestSharedSensors:
    MI250 = ({"name": "AMD Instinct MI250X"}, {"name": "AMD Instinct MI250X", "watts": 0})

    def test_two_dies_are_one_part(self):
        found = find(Smi(*self.MI250 * 2))
        assert [name for name in names(found) if "energy" in name or "power" in name] == [
            "gpu:0 energy_j",
            "gpu:0 power_w",
            "gpu:2 energy_j",
            "gpu:2 power_w",
        ]
        assert [absence.what for absence in found.absences] == [
            "amd gpu:1 energy",
            "amd gpu:3 energy",
        ]
        assert "0, 1 together" in found.meters[0].channels[0].note

    @pytest.mark.parametrize("watts", [0, "N/A"])
    def test_a_job_on_the_second_die_is_read_through_the_first(self, watts):
        found = find(
            Smi(self.MI250[0], {"name": "AMD Instinct MI250X", "watts": watts}),
            {"HIP_VISIBLE_DEVICES": "1"},
        )
        assert "gpu:0 energy_j" in names(found)
        assert "gpu:1 energy_j" not in names(found)

    def test_partitions_of_a_socket_are_one_part(self):
        found = find(Smi({"bdf": "0000:05:00.0"}, {"bdf": "0000:05:00.1"}, {"bdf": "0000:06:00.0"}))
        assert [name for name in names(found) if "energy" in name] == [
            "gpu:0 energy_j",
            "gpu:2 energy_j",
        ]

    def test_a_silent_card_of_another_kind_is_no_second_die(self):
        found = find(Smi({}, {"watts": 0, "counts": 0}))
        assert "gpu:1 energy_j" not in names(found)
        assert any("does not move" in absence.reason for absence in found.absences)


@pytest.mark.parametrize(
    ("counts", "said"),
    [(0, "does not move"), (20, "counts 20 W"), (50_000, "W where the sensor reads 500 W")],
)
def test_a_counter_that_does_not_fit_the_watts_is_not_used(counts, said):
    found = find(Smi({"counts": counts}))
    assert "gpu:0 energy_j" not in names(found)
    assert "gpu:0 power_w" in names(found)
    assert said in found.absences[0].reason


class TestVisible:
    @pytest.mark.parametrize(
        ("environ", "cards"),
        [
            ({}, [0, 1, 2]),
            ({"HIP_VISIBLE_DEVICES": "1"}, [1]),
            ({"CUDA_VISIBLE_DEVICES": "2"}, [2]),
            ({"HIP_VISIBLE_DEVICES": "1", "CUDA_VISIBLE_DEVICES": "2"}, [1]),
            ({"ROCR_VISIBLE_DEVICES": "1,2", "HIP_VISIBLE_DEVICES": "1"}, [2]),
        ],
    )
    def test_the_jobs_cards(self, environ, cards):
        found = find(Smi({}, {}, {}), environ)
        assert [name for name in names(found) if "energy" in name] == [
            f"gpu:{card} energy_j" for card in cards
        ]

    def test_numbers_are_hips_and_not_amd_smis(self):
        found = find(Smi({"hip": 2}, {"hip": 0}, {"hip": 1}), {"HIP_VISIBLE_DEVICES": "0"})
        assert names(found)[0] == "gpu:1 energy_j"

    def test_none_is_left(self):
        found = find(Smi({}), {"HIP_VISIBLE_DEVICES": ""})
        assert found.meters == ()
        assert found.absences[0].remedy

    def test_a_wrong_number_is_told(self):
        found = find(Smi({}, {}), {"HIP_VISIBLE_DEVICES": "0,7"})
        assert "'7' names no card" in found.absences[0].reason

    def test_everything(self):
        assert (
            len(find(Smi({}, {}), {"HIP_VISIBLE_DEVICES": ""}, everything=True).meters[0].channels)
            == 8
        )

    def test_after_other_makers_cards(self):
        assert names(find(Smi({}), first=4))[0] == "gpu:4 energy_j"


class TestTrouble:
    def test_a_call_that_fails_is_told_once_and_asked_once_a_second(self):
        smi = Smi({})
        (meter,) = find(smi).meters
        meter.read(0)
        smi.broken.add("amdsmi_get_energy_count")
        times = [k * 20_000_000 for k in range(1, 151)]
        before = smi.asked
        rows = [meter.read(t) for t in times]  # 3 s
        assert smi.asked - before <= 2 + 3
        assert all(math.isnan(row[0]) for row in rows)
        assert all(row[1] == 500.0 for row in rows)
        assert [(event.name, "not supported" in event.text) for event in meter.events] == [
            ("lost", True)
        ]
        smi.broken.clear()
        meter.read(times[-1] + 2 * 10**9)
        assert [event.name for event in meter.events] == ["lost", "found"]

    def test_a_hiccup_is_no_news(self):
        smi = Smi({})
        (meter,) = find(smi).meters
        smi.broken.add("amdsmi_get_energy_count")
        assert math.isnan(meter.read(0)[0])
        smi.broken.clear()
        assert not math.isnan(meter.read(1)[0])
        assert meter.events == []

    def test_na_in_the_middle_of_a_run(self):
        smi = Smi({})
        (meter,) = find(smi).meters
        smi.gpus[0]["watts"] = "N/A"
        assert math.isnan(meter.read(0)[1])

    def test_watts_that_turn_to_zero_are_no_answer(self):
        smi = Smi({})
        (meter,) = find(smi).meters
        smi.gpus[0]["watts"] = 0
        assert math.isnan(meter.read(0)[1])

    def test_all_silent_for_long(self):
        smi = Smi({}, {})
        (meter,) = find(smi, grace_s=5.0).meters
        smi.broken |= {
            "amdsmi_get_energy_count",
            "amdsmi_get_power_info",
            "amdsmi_get_gpu_activity",
            "amdsmi_get_gpu_memory_usage",
        }
        for k in range(5):
            meter.read(k * 10**9)
        with pytest.raises(MeterLost):
            [meter.read(k * 10**9) for k in range(5, 12)]

    def test_nothing_but_use(self):
        found = find(Smi({}, broken={"amdsmi_get_energy_count", "amdsmi_get_power_info"}))
        assert found.meters == ()
        assert {absence.what for absence in found.absences} == {
            "amd gpu:0 energy counter",
            "amd gpu:0 power",
        }

    def test_old_drivers_without_use_memory_and_numbers(self):
        broken = {
            "amdsmi_get_gpu_activity",
            "amdsmi_get_gpu_memory_usage",
            "amdsmi_get_gpu_enumeration_info",
        }
        assert names(find(Smi({}, broken=broken))) == ["gpu:0 energy_j", "gpu:0 power_w"]
        assert "gpu:0 utilisation" not in names(find(Smi({"busy": "N/A"})))

    @pytest.mark.parametrize("call", ["amdsmi_init", "amdsmi_get_processor_handles"])
    def test_a_driver_that_does_not_start(self, call):
        found = find(Smi({}, broken={call}))
        assert found.meters == ()
        assert "not supported" in found.absences[0].reason
        assert found.absences[0].remedy


def on_the_bus(root):
    device = root / "bus/pci/devices/0000:c1:00.0"
    device.mkdir(parents=True)
    (device / "vendor").write_text("0x1002\n")
    (device / "class").write_text("0x120000\n")
    return root


def test_no_amd_gpu_imports_nothing(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "amdsmi", None)
    (absence,) = amd.find(visible={}, sysfs=tmp_path).absences
    assert "no AMD GPU" in absence.reason


def test_a_gpu_without_the_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "amdsmi", None)
    (absence,) = amd.find(visible={}, sysfs=on_the_bus(tmp_path)).absences
    assert "ckptcost[amd]" in absence.remedy


def test_a_package_without_its_library_is_quiet(tmp_path, monkeypatch, capsys):
    (tmp_path / "amdsmi.py").write_text(
        "print('Unable to find libamd_smi.so')\n{}['libamd_smi.so']\n", "utf-8"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "amdsmi", raising=False)
    (absence,) = amd.find(visible={}, sysfs=on_the_bus(tmp_path / "sys")).absences
    assert "KeyError" in absence.reason
    assert "ROCM_PATH" in absence.remedy
    assert capsys.readouterr().out == ""
