"""Readings of a stated energy by boundary: the same energies as in `ckptcost model`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ckptcost.plan import draws
from ckptcost.plan import evaluate as ev
from ckptcost.plan.readings import Reading, reading_of
from ckptcost.plan.sheets import sheet_of
from ckptcost.questions.audit import audit
from ckptcost.scenario import catalog
from ckptcost.scenario import resolve as sc
from ckptcost.study import Study

KWH = 3.6e6
ONE = {"about": "a", "size": "exactly 2 TB", "write": "exactly 200 MB/s", "energy": "15 to 20 kWh"}


def reading(**more: Any) -> Reading:
    sheet = sheet_of({"claim": [ONE | more]})
    found = reading_of(sheet.claims["a"])
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("system", "rate"), [("nas-hdd", "200 MB/s"), ("generic-pfs", "2 GB/s"), ("", "300 GB/s")]
)
def test_storage_energy_is_that_of_the_model(system: str, rate: str) -> None:
    settings = [f"tier.id={system}"] if system else [f"tier.write={rate}"]
    settings += ["site.pue=1", "policy.saves=100", "checkpoint.size=2 TB", "cluster.gpus=4096"]
    job = [*sc.layers_of("gpt4-scale-2tb"), sc.layer_of_flags(settings)]
    study = Study({"job": sc.resolve(job)}, 4096)
    with np.errstate(all="ignore"):
        bill = ev.one_save(study.drawn_world, study.drawn)
    energy = np.broadcast_to(bill.lines["storage_write"]["energy"], (1, 4097))
    low, high = draws.ends(energy)
    found = reading(write=f"exactly {rate}").within["system"]
    assert found == pytest.approx((low[0], high[0]), rel=1e-9)


def test_drives_take_1_8_to_4_joules_a_gigabyte() -> None:
    assert reading().within["drives"] == pytest.approx((3600, 8000))


def test_waiting_gpus_take_their_power_for_the_whole_save() -> None:
    """1,024 GPUs at 500 W for 10,000 s; METHOD, section 8: about 1,429 kWh."""
    found = reading()
    assert found.ours
    assert found.within["gpus"] == pytest.approx((1422.2 * KWH, 1422.2 * KWH), rel=1e-4)


def test_a_sheet_that_names_its_gpus_is_read_with_them() -> None:
    found = reading(gpus=64, gpu_power="700 W", energy="120 to 130 kWh")
    assert not found.ours
    assert found.within["gpus"] == pytest.approx((64 * 700 * 1e4, 64 * 700 * 1e4))
    assert found.fits == ["gpus"]


def test_drives_of_one_vendor_fit_its_energies() -> None:
    sheet = sheet_of(catalog.read_toml(catalog.file_of("claim", "micron-2026")))
    found = [each for each in map(reading_of, sheet.claims.values()) if each]
    assert [each.fits for each in found] == [["drives"]] * 3


def test_no_energy_or_no_time_gives_no_reading() -> None:
    for time in ({}, {"time": "less than 10 s"}, {"time": "over 10 s"}):
        sheet = sheet_of({"claim": [{"about": "a", "size": "2 TB", "energy": "1 J"} | time]})
        assert reading_of(sheet.claims["a"]) is None
    assert [table.name for table in audit("mlperf-1t").tables if table.name == "energy"] == []
