"""Looking for meters: what each finder is told, what is left alone unless it is named, and that
later ones know of earlier ones."""

from __future__ import annotations

import importlib
import os

import pytest

from ckptcost.first.core.channels import Channel
from ckptcost.first.errors import UnknownName
from ckptcost.first.meters.background import Background
from ckptcost.first.meters.base import Absence, Basic, FoundMeters
from ckptcost.first.meters.found import FINDERS, ON_REQUEST, Wanted, find_meters

MODULES = {name: name.replace("-", "_") for name in FINDERS} | {"nfs": "mounts"}


@pytest.fixture
def told(monkeypatch):
    """What every finder was called with, by meter; `gives` is what it answers."""
    calls, gives = {}, {}

    def spy(name):
        def find(*args, **kwargs):
            calls[name] = (args, kwargs)
            return gives.get(name, FoundMeters((), ()))

        return find

    for name, module in MODULES.items():
        monkeypatch.setattr(
            importlib.import_module(f"ckptcost.first.meters.{module}"), "find", spy(name)
        )
    calls["gives"] = gives
    return calls


def kwargs_of(told, name, **wanted):
    find_meters(Wanted(**wanted))
    return told[name][1]


def meter(name, *channels, **more):
    return Basic(name, channels, **more)


def test_everything_that_costs_nothing_is_looked_for(told, tmp_path):
    find_meters(Wanted(sysfs=tmp_path / "sys", procfs=tmp_path / "proc", environ={}))
    del told["gives"]
    # the two that would start processes or use the network are told so by what they are given
    assert set(told) == set(FINDERS)
    for name, (args, kwargs) in told.items():
        if name not in ON_REQUEST:
            given = {
                *args,
                *(
                    value
                    for value in kwargs.values()
                    if not isinstance(value, (tuple, dict, frozenset))
                ),
            }
            assert tmp_path / "sys" in given, name
            assert "procfs" not in kwargs or kwargs["procfs"] == tmp_path / "proc", name
    assert told["ipmi"][0] == (False,)
    assert told["redfish"][0][:1] == ("",)
    for name in ("nvme", "lustre"):
        assert told[name][1]["allow_commands"] is False
    assert told["nfs"][1]["asked"] is told["lustre"][1]["asked"] is False


def test_what_is_named_may_do_more(told):
    find_meters(Wanted(names=("nvme", "nfs", "lustre", "ipmi")))
    assert told["nvme"][1]["allow_commands"] is True
    assert told["nfs"][1]["asked"] is True
    assert (told["lustre"][1]["asked"], told["lustre"][1]["allow_commands"]) == (True, True)
    assert told["ipmi"][0] == (True,)
    assert set(told) == {"gives", "nvme", "nfs", "lustre", "ipmi"}


def test_an_address_is_as_good_as_a_name(told):
    find_meters(Wanted(names=("pressure",), redfish_url="https://bmc/"))
    assert set(told) == {"gives", "pressure", "redfish"}


@pytest.mark.parametrize(
    ("wanted", "name", "key", "value"),
    [
        (
            {"environ": {"CUDA_VISIBLE_DEVICES": "1"}},
            "nvml",
            "visible",
            {"CUDA_VISIBLE_DEVICES": "1"},
        ),
        (
            {"environ": {"ROCR_VISIBLE_DEVICES": "1"}},
            "amd",
            "visible",
            {"ROCR_VISIBLE_DEVICES": "1"},
        ),
        ({}, "nvml", "everything", False),
        ({"every_gpu": True}, "nvml", "everything", True),
        ({"every_gpu": True}, "amd", "everything", True),
        ({"rapl": "perf"}, "rapl", "backend", "perf"),
        ({}, "block", "paths", ()),
        ({"directory": os.curdir}, "block", "paths", (os.curdir,)),
        ({}, "process", "pids", (os.getpid(),)),
        ({"pid": 7}, "process", "pids", (7,)),
        ({}, "cgroup", "pid", "self"),
        ({"pid": 7}, "cgroup", "pid", 7),
        ({"redfish_ca": "ca.pem"}, "redfish", "ca_file", "ca.pem"),
        ({"redfish_insecure": True}, "redfish", "insecure", True),
        ({}, "redfish", "insecure", False),
    ],
)
def test_what_is_wanted_reaches_its_finder(told, wanted, name, key, value):
    assert kwargs_of(told, name, **wanted)[key] == value


@pytest.mark.parametrize("by", ["wanted", "process"])
def test_the_account_of_a_management_controller_is_in_the_environment(told, monkeypatch, by):
    account = {"CKPTCOST_REDFISH_USER": "u", "CKPTCOST_REDFISH_PASSWORD": "p"}
    other = dict.fromkeys(account, "other")
    for name, value in (other if by == "wanted" else account).items():
        monkeypatch.setenv(name, value)
    find_meters(Wanted(redfish_url="https://bmc/", environ=account if by == "wanted" else None))
    assert told["redfish"][0] == ("https://bmc/", "u", "p")


class TestLaterMetersKnowOfEarlierOnes:
    cards = (
        Channel("gpu:0", "energy_j", "nvml"),
        Channel("gpu:0.memory", "power_w", "nvml", role="detail"),
        Channel("gpu:1.mig0", "power_w", "nvml"),
        Channel("gpu:1.mig1", "power_w", "nvml"),
        Channel("gpu:2", "utilisation", "nvml"),
    )

    def test_cards_are_numbered_on(self, told):
        assert kwargs_of(told, "amd")["first"] == 0
        told["gives"]["nvml"] = FoundMeters([meter("nvml", *self.cards)])
        assert kwargs_of(told, "amd")["first"] == 2

    def test_a_processor_is_not_measured_twice(self, told):
        find_meters(Wanted())
        assert told["hwmon"][1]["beside_rapl"] is False
        told["gives"]["rapl"] = FoundMeters(
            [
                meter(
                    "rapl",
                    Channel("cpu:0", "energy_j", "rapl"),
                    Channel("core:0", "energy_j", "r", role="detail"),
                )
            ]
        )
        find_meters(Wanted())
        assert told["hwmon"][1]["beside_rapl"] is True
        told["gives"]["rapl"] = FoundMeters(
            [meter("rapl", Channel("cpu:0", "energy_j", "rapl", role="detail"))]
        )
        find_meters(Wanted())
        assert told["hwmon"][1]["beside_rapl"] is False

    def test_a_drive_that_measures_itself_is_not_modelled(self, told):
        told["gives"]["nvml"] = FoundMeters([meter("nvml", *self.cards)])
        told["gives"]["nvme"] = FoundMeters(
            [meter("nvme", Channel("drive:nvme0", "power_w", "log page 2"), least_s=1.0)]
        )
        find_meters(Wanted(known=frozenset({"node"})))
        assert told["nvme-model"][1]["measured"] == {
            "node",
            "drive:nvme0",
            "gpu:0",
            "gpu:1.mig0",
            "gpu:1.mig1",
        }


def test_drives_are_asked_in_a_thread_of_their_own(told):
    told["gives"]["nvme"] = FoundMeters(
        [meter("nvme", Channel("drive:nvme0", "power_w", "log"), least_s=1.0)],
        [Absence("nvme nvme1", "old")],
    )
    seen = find_meters(Wanted(names=("nvme",)))
    assert [type(one) for one in seen.meters] == [Background]
    assert seen.meters[0].pace_s == 1.0
    assert seen.absences == (Absence("nvme nvme1", "old"),)


def test_meters_and_absences_come_together_in_order(told):
    for name in ("nvml", "block", "gds"):
        told["gives"][name] = FoundMeters([meter(name)], [Absence(name, "half of it", "", "gpu")])
    seen = find_meters(Wanted())
    assert [one.name for one in seen.meters] == ["nvml", "block", "gds"]
    assert [one.what for one in seen.absences] == ["nvml", "block", "gds"]


def test_a_name_that_no_meter_has_stops_before_anything_is_opened(told):
    with pytest.raises(UnknownName, match="nvlm"):
        find_meters(Wanted(names=("nvml", "nvlm")))
    assert set(told) == {"gives"}
