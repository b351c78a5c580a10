"""Our NVML meter on a fake libnvidia-ml.so.1: NVIDIA's own binding, real ctypes, and a power whose
integral is known exactly."""

from __future__ import annotations

import math
from itertools import pairwise

import build_fake
import pytest
from nvml_lab import Lab

pytestmark = pytest.mark.skipif(
    build_fake.compiler() is None, reason="no C compiler to build the fake libnvidia-ml.so.1 with"
)

NAN = float("nan")
TICKS = [round(0.02 * k, 2) for k in range(1, 151)]  # 3 s at 50 Hz
H200 = [
    "gpu:0 energy_j",
    "gpu:0 power_w",
    "gpu:0.average power_w",
    "gpu:0.memory power_w",
    "gpu:0 utilisation",
    "gpu:0 memory_used_bytes",
]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    made = Lab(tmp_path_factory.mktemp("nvml"))
    yield made
    made.close()


def events(said, name=None):
    return [(at, domain, text) for at, kind, domain, text in said.events if name in {None, kind}]


def steps(values):
    """Where a counter moved, and by how much."""
    return [(k, b - a) for k, (a, b) in enumerate(pairwise(values), start=1) if b != a]


def test_an_h200_gives_energy_and_three_kinds_of_watts(lab):
    said = lab.walk("", TICKS)
    assert said.names == H200
    assert [c["role"] for c in said.channels[:4]] == ["part", "part", "detail", "detail"]
    energy, power, mean, memory = (said.by[name] for name in H200[:4])
    assert (power["averaging_s"], power["tick_s"], power["looks"]) == (0.025, 0.1, 0.25)
    assert (mean["averaging_s"], mean["looks"]) == (1.0, 1.0)
    assert "186" in power["source"]
    assert "185" in mean["source"]
    assert memory["scope"] == "memory"
    assert "not settled" in energy["note"]
    assert energy["looks"] is None
    assert energy["wraps_at"] is None
    assert energy["device"].startswith("GPU-")
    assert said.facts["driver"] == "590.48.01"
    assert said.absences == []
    assert said.events == []


def wave_j(t_s):
    """600 W in the first second of each two, 120 W in the other."""
    pairs, rest = divmod(t_s, 2.0)
    return pairs * 720.0 + min(rest, 1.0) * 600.0 + max(rest - 1.0, 0.0) * 120.0


def test_joules_and_watts_are_the_analytic_ones(lab):
    said = lab.walk("high_w=600 low_w=120 period_s=2 tick_ms=100", [at + 1e-3 for at in TICKS])
    joules = said.column("gpu:0 energy_j")
    for at, value in zip(TICKS, joules, strict=True):
        assert value == pytest.approx(
            123456.789 + wave_j(math.floor(at * 10 + 1e-6) / 10), abs=2e-3
        )
    gaps = {b - a for (a, _), (b, _) in pairwise(steps(joules))}
    assert gaps == {5}  # each 100 ms
    assert [row[0] for row in said.exact_j] == pytest.approx(
        [wave_j(at + 1e-3) for at in TICKS], abs=1e-3
    )  # what others are held against
    watts = dict(zip(TICKS, said.column("gpu:0 power_w"), strict=True))
    assert (watts[0.56], watts[1.56]) == (600.0, 120.0)
    mean = dict(zip(TICKS, said.column("gpu:0.average power_w"), strict=True))
    assert mean[1.56] == pytest.approx(360.0, abs=1e-3)  # asked since 1.5 s at the latest
    assert dict(zip(TICKS, said.column("gpu:0.memory power_w"), strict=True))[
        1.56
    ] == pytest.approx(54.0, abs=1e-3)
    assert set(said.column("gpu:0 utilisation")) == {0.87}
    assert set(said.column("gpu:0 memory_used_bytes")) == {143771 * 2**20 / 4}


def test_one_call_for_energy_one_for_all_fields_and_rare_ones_for_the_rest(lab):
    names = (
        "nvmlDeviceGetTotalEnergyConsumption",
        "nvmlDeviceGetFieldValues",
        "nvmlDeviceGetUtilizationRates",
        "nvmlDeviceGetMemoryInfo",
        "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlDeviceGetPowerUsage",
    )
    idle = lab.walk("gpus=2", [], calls=names).calls
    busy = lab.walk("gpus=2", TICKS, calls=names).calls
    made = {name: busy[name] - idle[name] for name in names}
    assert made[names[0]] == 2 * len(TICKS)
    assert (
        made[names[1]] == 2 * len(TICKS) / 3
    )  # the driver repeats watts for 100 ms: every third tick is asked
    assert made[names[2]] == made[names[3]] == 2 * 3  # 3 s, each second
    assert made[names[4]] == made[names[5]] == 0


@pytest.mark.parametrize(
    ("settings", "field", "averaging_s", "looks", "accuracy"),
    [
        (
            "arch=7 name=NVIDIA_A100-PCIE-40GB deny=185:0,186:2,185:2,186:1,185:1",
            "186",
            0.025,
            0.25,
            0.055,
        ),
        (
            "arch=8 name=NVIDIA_GeForce_RTX_4090 deny=186:2,185:2,186:1,185:1",
            "186",
            0.1,
            1.0,
            0.043,
        ),
        ("arch=6 name=NVIDIA_GeForce_RTX_2080_Ti fields=13", "usage", 0.1, 1.0, 0.062),
        ("arch=5 name=Tesla_V100-SXM2-32GB fields=13", "usage", 0.01, 0.5, None),
        ("arch=7 name=NVIDIA_A40 fields=13", "usage", 1.0, 1.0, None),
        ("arch=7 name=NVIDIA_A40 fields=13 driver=530.30.02", "usage", 0.1, 1.0, None),
        ("arch=7 name=NVIDIA_A30 fields=13", "usage", 0.025, 0.25, None),
        ("arch=10 name=NVIDIA_B200 deny=186:2,186:1,185:1", "186", None, None, None),
    ],
)
def test_what_a_reading_means_depends_on_the_chip(
    lab, settings, field, averaging_s, looks, accuracy
):
    power = lab.walk(settings).by["gpu:0 power_w"]
    assert field in power["source"]
    assert (power["averaging_s"], power["looks"], power["accuracy"]) == (
        averaging_s,
        looks,
        accuracy,
    )
    if accuracy is not None:
        assert "error -" in power["note"]


def test_what_a_gpu_does_not_offer_is_an_absence_and_the_rest_works(lab):
    said = lab.walk(
        "gpus=3 energy.1=3 deny.2=186:0,185:0,185:2,186:2,186:1,185:1 usage.2=3 utilisation=3",
        [0.1, 0.2],
    )
    lacks = {absence["what"]: absence for absence in said.absences}
    assert set(lacks) == {
        "nvml gpu:1 energy counter",
        "nvml gpu:2 memory power",
        "nvml gpu:0,1,2 utilisation",
    }
    assert all(
        absence["reason"] and absence["remedy"] and absence["kind"] == "gpu"
        for absence in said.absences
    )
    assert "gpu:1 energy_j" not in said.names
    assert "gpu:1 power_w" in said.names
    assert "gpu:2 energy_j" in said.names
    assert "gpu:2 power_w" not in said.names
    assert not any(math.isnan(value) for row in said.rows for value in row)


def test_a_gpu_that_offers_nothing_is_no_meter(lab):
    said = lab.walk("energy=3 fields=3 usage=3")
    assert said.meters == 0
    assert any("neither energy nor power" in absence["reason"] for absence in said.absences)


@pytest.mark.parametrize("settings", ["scopeless=1 deny=186:9", "scopeless=1 deny=186:1,185:1"])
def test_a_driver_that_knows_no_scopes_makes_no_memory_and_no_module(lab, settings):
    said = lab.walk(settings)
    assert said.names == [name for name in H200 if "memory power" not in name]


@pytest.mark.parametrize("code", [2, 3, 13])
def test_an_old_driver_gives_power_by_the_old_call(lab, code):
    said = lab.walk(f"fields={code} arch=7 name=NVIDIA_A40", [2.5])
    assert "gpu:0.average power_w" not in said.names
    assert said.by["gpu:0 power_w"]["source"] == "NVML power usage"
    assert said.column("gpu:0 power_w") == [pytest.approx(360.0)]


class TestSuperchip:
    GH200 = "name=NVIDIA_GH200_480GB module_w=250 period_s=0 high_w=500 "

    def test_the_gpu_is_the_part_and_the_module_is_held_against_it(self, lab):
        said = lab.walk(self.GH200 + "deny=191:0", [1.0, 2.0])
        roles = {
            name: (c["role"], tuple(c["covers"]))
            for name, c in said.by.items()
            if c["quantity"] in {"energy_j", "power_w"}
        }
        assert roles == {
            "gpu:0 power_w": ("part", ()),
            "module:0 energy_j": ("whole", ()),
            "module:0 power_w": ("whole", ()),
        }
        first, second = said.column("module:0 energy_j")
        assert second - first == pytest.approx(750.0, abs=2e-3)
        assert said.column("gpu:0 power_w") == [500.0, 500.0]
        assert said.column("module:0 power_w") == [750.0, 750.0]
        assert "never to be added to the CPU" in said.by["module:0 energy_j"]["note"]

    def test_a_scoped_counter_of_the_gpu_is_used(self, lab):
        said = lab.walk(self.GH200 + "deny=186:2", [1.0, 2.0])
        first, second = said.column("gpu:0 energy_j")
        assert second - first == pytest.approx(500.0, abs=2e-3)
        assert said.by["gpu:0 energy_j"]["role"] == "part"
        assert said.by["module:0 energy_j"]["role"] == "whole"

    def test_a_scoped_counter_that_is_the_modules_is_not_the_gpus(self, lab):
        said = lab.walk(self.GH200 + "deny=186:2 same_energy=1", [1.0, 2.0])
        assert "gpu:0 energy_j" not in said.names
        assert said.by["gpu:0 power_w"]["role"] == "part"

    def test_without_the_gpus_own_watts_the_module_is_the_part(self, lab):
        said = lab.walk(self.GH200 + "deny=186:0,185:0,191:0")
        for name in ("module:0 energy_j", "module:0 power_w"):
            assert (said.by[name]["role"], said.by[name]["covers"]) == ("part", ["cpu", "dram"])
        assert not {"gpu:0 energy_j", "gpu:0 power_w"} & set(said.names)
        assert [absence["what"] for absence in said.absences] == [
            "nvml gpu:0 GPU apart from its module"
        ]

    def test_it_is_known_by_its_link_or_its_scope_too(self, lab):
        assert "module:0 energy_j" in lab.walk("c2c=1 name=NVIDIA_Something deny=186:1,185:1").names
        assert "module:0 energy_j" in lab.walk("module_w=99 name=NVIDIA_Something deny=186:2").names
        assert "module:0 energy_j" not in lab.walk("name=NVIDIA_H200").names

    def test_a_superchip_whose_driver_knows_no_scopes_reads_its_module(self, lab):
        said = lab.walk("name=NVIDIA_GH200_480GB scopeless=1 deny=191:0")
        assert said.by["module:0 power_w"]["role"] == "part"
        assert "gpu:0 power_w" not in said.names

    def test_two_gpus_of_one_module_count_it_once(self, lab):
        twins = "module_of.1=0 module_of.3=2 high_w.2=700 offset_mj.2=777777 period_s=0"
        said = lab.walk(f"gpus=4 name=NVIDIA_GB200 arch=10 module_w=300 deny=191:0 {twins}")
        assert [name for name in said.names if "module" in name] == [
            "module:0 energy_j",
            "module:0 power_w",
            "module:2 energy_j",
            "module:2 power_w",
        ]
        assert [
            name for name in said.names if name.endswith("power_w") and name.startswith("gpu")
        ] == [f"gpu:{k} power_w" for k in range(4)]
        assert said.rows[0][said.names.index("gpu:3 power_w")] == 600.0
        assert (
            sum("one module with two GPUs" in absence["reason"] for absence in said.absences) == 2
        )


class TestMig:
    def test_two_instances_of_one_card_are_one_channel(self, lab):
        names = "MIG-b0000000-516c-516c-516c-000000000000,MIG-b0000001-516c-516c-516c-000000000001"
        said = lab.walk("gpus=2 mig.0=3", env={"CUDA_VISIBLE_DEVICES": names})
        assert [name for name in said.names if "energy" in name] == ["gpu:0 energy_j"]
        assert all(name in said.by["gpu:0 energy_j"]["note"] for name in names.split(","))
        assert [absence["what"] for absence in said.absences] == ["nvml gpu:0 MIG"]
        assert "no energy of its own" in said.absences[0]["reason"]

    def test_the_old_form_of_a_name(self, lab):
        said = lab.walk(
            "gpus=2 mig.1=2",
            env={"CUDA_VISIBLE_DEVICES": "MIG-GPU-a1111111-fa4e-fa4e-fa4e-000000000001/8/0"},
        )
        assert said.names[0] == "gpu:1 energy_j"
        assert "MIG-b0000011" in said.by["gpu:1 energy_j"]["note"]

    def test_an_uncut_card_says_nothing_of_it(self, lab):
        assert "MIG" not in lab.walk("").by["gpu:0 energy_j"]["note"]


class TestVisible:
    @pytest.mark.parametrize(
        ("value", "cards"),
        [
            ("1", [1]),
            ("2,0", [2, 0]),
            ("GPU-a1", [1]),
            ("0,9,1", [0]),
            ("0,-1,1", [0]),
            (None, [0, 1, 2]),
        ],
    )
    def test_only_the_jobs_cards_are_read(self, lab, value, cards):
        said = lab.walk("gpus=3", env={} if value is None else {"CUDA_VISIBLE_DEVICES": value})
        assert [name for name in said.names if "energy" in name] == [
            f"gpu:{card} energy_j" for card in cards
        ]

    @pytest.mark.parametrize("value", ["", "-1", "0,0", "nonsense"])
    def test_no_card_is_an_absence(self, lab, value):
        said = lab.walk("gpus=3", env={"CUDA_VISIBLE_DEVICES": value})
        assert said.meters == 0
        assert any("leaves this job no GPU" in absence["reason"] for absence in said.absences)

    def test_everything_is_everything(self, lab):
        said = lab.walk("gpus=3", env={"CUDA_VISIBLE_DEVICES": ""}, everything=True)
        assert [name for name in said.names if "energy" in name] == [
            f"gpu:{card} energy_j" for card in range(3)
        ]

    def test_a_card_of_another_job_is_not_counted(self, lab):
        said = lab.walk("gpus=3 handle.0=4", env={"CUDA_VISIBLE_DEVICES": "0"})
        assert [name for name in said.names if "energy" in name] == ["gpu:1 energy_j"]
        assert [absence["what"] for absence in said.absences] == ["nvml gpu:0"]

    def test_unlike_cards_and_an_index(self, lab):
        said = lab.walk("gpus=2 name.0=NVIDIA_T4", env={"CUDA_VISIBLE_DEVICES": "1"})
        assert any("fastest first" in absence["reason"] for absence in said.absences)
        assert not lab.walk(
            "gpus=2 name.0=NVIDIA_T4",
            env={"CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
        ).absences


class TestTrouble:
    """5 s at 20 Hz; the trouble begins at 1 s and, where it ends, ends at 3 s."""

    TIMES = tuple(round(0.05 * k, 2) for k in range(1, 101))

    @pytest.mark.parametrize("code", [15, 16, 2, 28])
    def test_a_lost_gpu_is_told_once_and_asked_once_a_second(self, lab, code):
        settings = f"gpus=2 lost_at_s.1=1 back_at_s.1=3 lost_code={code}"
        said = lab.walk(settings, self.TIMES, calls=("nvmlDeviceGetHandleByUUID",))
        values = dict(zip(self.TIMES, said.column("gpu:1 energy_j"), strict=True))
        assert not math.isnan(values[0.95])
        assert all(math.isnan(values[at]) for at in self.TIMES if 1.0 <= at < 3.0)
        assert all(not math.isnan(values[at]) for at in self.TIMES if at > 4.05)
        assert not any(math.isnan(value) for value in said.column("gpu:0 energy_j"))
        assert [(kind, domain) for _, kind, domain, _ in said.events] == [
            ("lost", "gpu:1"),
            ("found", "gpu:1"),
        ]
        assert said.calls["nvmlDeviceGetHandleByUUID"] <= 4
        assert said.lost == []

    @pytest.mark.parametrize("code", [10, 21, 999, 3])
    def test_a_query_that_fails_for_a_while(self, lab, code):
        settings = f"lost_at_s=1 back_at_s=3 lost_code={code}"
        names = ("nvmlDeviceGetTotalEnergyConsumption",)
        said = lab.walk(settings, self.TIMES, calls=names)
        values = dict(zip(self.TIMES, said.column("gpu:0 energy_j"), strict=True))
        assert all(math.isnan(values[at]) for at in self.TIMES if 1.0 <= at < 3.0)
        assert all(not math.isnan(values[at]) for at in self.TIMES if at > 4.15)
        lost = [text for _, domain, text in events(said, "lost") if "energy" in text]
        assert len(lost) == 1
        assert len([text for _, _, text in events(said, "found") if "energy" in text]) == 1
        assert said.calls[names[0]] < 2 + len([at for at in self.TIMES if at < 1.0 or at > 3.0]) + 6

    def test_a_hiccup_is_a_nan_and_no_news(self, lab):
        said = lab.walk("flaky=7", self.TIMES)
        values = said.column("gpu:0 energy_j")
        assert 10 <= sum(math.isnan(value) for value in values) <= 16
        assert said.events == []

    def test_one_field_that_goes_leaves_the_others(self, lab):
        said = lab.walk("gpus=1 zero_w=1", self.TIMES)
        assert all(math.isnan(value) for value in said.column("gpu:0 power_w"))
        assert not any(math.isnan(value) for value in said.column("gpu:0 energy_j"))
        texts = [text for _, _, text in events(said, "lost")]
        assert len(texts) == 2  # instant and average
        assert all("0 W" in text for text in texts)

    def test_a_field_that_the_driver_takes_away(self, lab):
        said = lab.walk("later=186:0 later_at_s=2", self.TIMES)
        watts = dict(zip(self.TIMES, said.column("gpu:0 power_w"), strict=True))
        assert not math.isnan(watts[1.95])
        assert all(math.isnan(watts[at]) for at in self.TIMES if at >= 2.05)
        assert not any(math.isnan(value) for value in said.column("gpu:0.average power_w"))
        assert [(at < 2.3, "186" in text) for at, _, text in events(said, "lost")] == [(True, True)]

    def test_a_counter_that_stands_still_is_no_answer(self, lab):
        times = [float(k) for k in range(1, 16)]
        said = lab.walk("frozen=1", times)
        values = said.column("gpu:0 energy_j")
        assert not math.isnan(values[9])
        assert math.isnan(values[13])
        assert ["stands still" in text for _, _, text in events(said, "lost")] == [True]

    def test_a_counter_at_zero_is_no_answer(self, lab):
        said = lab.walk("frozen=1 offset_mj=0", [0.1, 0.2, 0.3])
        assert all(math.isnan(value) for value in said.column("gpu:0 energy_j"))
        assert ["at 0" in text for _, _, text in events(said, "lost")] == [True]

    def test_a_reset_counter_is_told_and_left_to_the_arithmetic(self, lab):
        said = lab.walk("reset_at_s=2", self.TIMES)
        values = said.column("gpu:0 energy_j")
        assert values[-1] < values[0]
        assert [
            (domain, "began anew" in text) for _, domain, text in events(said, "restarted")
        ] == [("gpu:0", True)]

    def test_a_driver_reload_is_survived(self, lab):
        said = lab.walk(
            "gpus=2 reload_at_s=1 reload_until_s=2.5", self.TIMES, calls=("nvmlInitWithFlags",)
        )
        for gpu in (0, 1):
            values = dict(zip(self.TIMES, said.column(f"gpu:{gpu} energy_j"), strict=True))
            assert all(math.isnan(values[at]) for at in self.TIMES if 1.0 <= at < 2.5)
            assert 0 < values[4.9] < values[0.95]
        assert [(kind, domain) for _, kind, domain, _ in said.events] == [
            ("lost", "gpu:0"),
            ("lost", "gpu:1"),
            ("restarted", "host"),
            ("found", "gpu:0"),
            ("found", "gpu:1"),
        ]
        assert said.calls["nvmlInitWithFlags"] <= 4

    def test_all_gpus_gone_for_long_is_a_lost_meter(self, lab):
        said = lab.walk("gpus=2 lost_at_s=1", self.TIMES, grace_s=2.0)
        assert said.lost[0][0] == pytest.approx(3.0, abs=0.06)
        assert "nvidia-smi" in said.lost[0][1]
        assert said.rows[self.TIMES.index(2.9)] is not None
        assert len(events(said, "lost")) == 2

    def test_a_lost_meter_comes_back(self, lab):
        said = lab.walk("lost_at_s=1 back_at_s=4", self.TIMES, grace_s=2.0)
        assert said.lost
        assert said.rows[-1] is not None
        assert not math.isnan(said.column("gpu:0 energy_j")[-1])

    @pytest.mark.parametrize(
        ("code", "reason"),
        [
            (9, "not loaded|no NVIDIA GPU"),
            (4, "permission"),
            (18, "versions"),
            (999, "unknown|no NVIDIA GPU"),
        ],
    )
    def test_a_library_that_does_not_open(self, lab, code, reason):
        said = lab.walk(f"init={code}")
        assert said.meters == 0
        (absence,) = said.absences
        assert any(part in absence["reason"] for part in reason.split("|"))
        assert absence["remedy"]

    def test_a_driver_without_gpus(self, lab):
        (absence,) = lab.walk("gpus=0").absences
        assert "--gpus all" in absence["remedy"]


def test_watts_without_a_counter_are_asked_at_every_tick(lab):
    names = ("nvmlDeviceGetFieldValues",)
    for settings in (
        "energy=3",
        "name=NVIDIA_GH200_480GB module_w=250 deny=191:0",
        "name=NVIDIA_GH200_480GB module_w=250",
    ):
        assert lab.walk(settings, TICKS, calls=names).calls[names[0]] >= len(TICKS)


def test_a_slow_driver_is_asked_for_watts_less_often(lab):
    quick = lab.walk(
        "", TICKS, calls=("nvmlDeviceGetFieldValues", "nvmlDeviceGetTotalEnergyConsumption")
    )
    slow = lab.walk(
        "latency_us=600",
        TICKS,
        calls=("nvmlDeviceGetFieldValues", "nvmlDeviceGetTotalEnergyConsumption"),
    )
    assert slow.calls["nvmlDeviceGetFieldValues"] < quick.calls["nvmlDeviceGetFieldValues"] / 1.5
    assert (
        slow.calls["nvmlDeviceGetTotalEnergyConsumption"]
        == quick.calls["nvmlDeviceGetTotalEnergyConsumption"]
    )
    assert set(slow.column("gpu:0 power_w")) == {600.0, 120.0}  # repeated between, never empty
