"""Saves that people have published: sizes, seconds and rates of data/published_saves.csv, and what
they said of them.

E: exact. T: within a stated tolerance. B: a bound.
"""

from __future__ import annotations

import csv
import functools
import tomllib
from pathlib import Path
from typing import Any

import pytest

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.audit import CONSISTENT, INCONSISTENT
from ckptcost.first.core.domain import Checkpoint, Cluster, Policy, Tier
from ckptcost.first.core.size import full_bytes, state_bytes
from ckptcost.first.core.timing import Save, load_s, save
from ckptcost.first.core.units import parse
from ckptcost.first.jobs.audit import audit

ROOT = Path(__file__).resolve().parents[3]
GIB, MIB = 2.0**30, 2.0**20
with (ROOT / "data" / "published_saves.csv").open(encoding="utf-8", newline="") as file:
    ROWS = {row["id"]: row for row in csv.DictReader(file, strict=True)}
TIMED = [name for name, row in ROWS.items() if row["save_time"]]
COUNTED = [name for name, row in ROWS.items() if row["params"]]


def seconds(name: str, column: str = "save_time") -> float:
    return parse(ROWS[name][column], "s")


def size_of(name: str) -> float:
    """As published, else counted."""
    row = ROWS[name]
    if row["size"]:
        return parse(row["size"], "bytes")
    if row["params"]:
        return counted(name)
    return 1.0


def counted(name: str) -> float:
    row = ROWS[name]
    per_param = parse(row["bytes_per_param"], "bytes_per_param")
    return float(full_bytes(Checkpoint(params=float(row["params"]), bytes_per_param=per_param)))


def saved(name: str, policy: Policy | None = None, **tier: float) -> Save:
    checkpoint = Checkpoint(size_bytes=size_of(name))
    return save(checkpoint, Tier(**tier), Cluster(gpus=8.0), policy or Policy(every=1800.0))


def rate(name: str) -> float:
    """Bytes per second of the save as timed, by way of the model: what a tier must do to take as
    long."""
    found = (
        size_of(name) / saved(name, save_time_s=seconds(name), timed_bytes=size_of(name)).stall_s
    )
    again = saved(name, write_bytes_per_s=found)
    assert again.stall_s == pytest.approx(seconds(name), rel=1e-12)
    return float(found)


@pytest.mark.parametrize("name", TIMED)
def test_a_timed_save_takes_as_long_as_it_took(name):
    """E: the measured seconds come back, and twice the bytes take twice as long."""
    timed = {"save_time_s": seconds(name), "timed_bytes": size_of(name)}
    assert saved(name, **timed).stall_s == pytest.approx(seconds(name), rel=1e-12)
    twice = Checkpoint(size_bytes=2 * size_of(name))
    found = save(twice, Tier(**timed), Cluster(gpus=8.0), Policy(every=1800.0))
    assert found.stall_s == pytest.approx(2 * seconds(name), rel=1e-12)


SIZES = {  # how far 14 B a parameter are from the published size
    "primus-llama2-7b": 4e-6,
    "llmb-llama31-8b": 0.003,
    "llmb-nemotron4-340b": 0.015,
    "speech-qwen3-235b": 0.10,
    "automodel-llama-8b": 1e-12,
}


@pytest.mark.parametrize("name", COUNTED)
def test_sizes_are_14_bytes_a_parameter(name):
    """A5, A7, A9, A18. T as listed."""
    assert counted(name) == pytest.approx(size_of(name), rel=SIZES[name])


def test_primus_is_exact_but_for_its_extras():
    """A5: 94,337,818,624 of 94,338,155,448 bytes: 3.6 millionths are no parameters. E."""
    assert state_bytes(6_738_415_616, 14.0) == 94_337_818_624
    assert size_of("primus-llama2-7b") / 94_337_818_624 - 1 == pytest.approx(3.57e-6, rel=1e-2)


def test_a_gb_that_is_a_gib():
    """A7, A9: what is printed fits in binary units and not in decimal ones. T .3 %, 1.5 %."""
    assert counted("llmb-llama31-8b") / GIB == pytest.approx(104.70, abs=0.005)
    assert abs(counted("llmb-llama31-8b") / 105e9 - 1) > 0.05
    assert counted("llmb-nemotron4-340b") / 2**40 == pytest.approx(4.34, abs=0.005)
    assert abs(counted("llmb-nemotron4-340b") / 4.4e12 - 1) > 0.05


RATES = {  # what the seconds come to, in GB/s
    "primus-llama2-7b": ("124.5 MB/s", 1e-3),  # A5
    "llmb-llama31-8b": ("4.52 GB/s", 5e-3),  # A7: of the size counted, 105 GiB are 4.53
    "dcp-256-first": ("5.71 GB/s", 1e-3),  # A10
    "dcp-256-later": ("10.32 GB/s", 1e-3),
    "marin-d6144": ("14.33 GB/s", 1e-3),  # A12
    "automodel-llama-8b": ("4.1 GB/s", 5e-3),  # A16
    "b300-nvme": ("6.39 GB/s", 1e-3),  # A19
}


@pytest.mark.parametrize("name", RATES)
def test_rates(name):
    text, tolerance = RATES[name]
    assert rate(name) == pytest.approx(parse(text, "bytes_per_s"), rel=tolerance)


def test_a_mb_that_is_a_mib():
    """A5: "118.69 MB/s" is the rate in MiB/s. T 1e-4."""
    assert rate("primus-llama2-7b") / MIB == pytest.approx(118.69, rel=1e-4)
    load = Tier(load_time_s=seconds("primus-llama2-7b", "load_time"), timed_bytes=94338155448.0)
    checkpoint = Checkpoint(size_bytes=94338155448.0)
    assert load_s(checkpoint, load, Cluster(gpus=8.0)) == pytest.approx(174.0, rel=1e-12)


def test_planning_is_a_time_of_its_own():
    """A10: 280 s with plans made anew, 155 s with plans kept: no bandwidth explains the 125 s
    between. E."""
    size, later = size_of("dcp-256-later"), seconds("dcp-256-later")
    storage = {"write_bytes_per_s": size / later}
    first = saved("dcp-256-first", planning_s=125.0, **storage)
    assert first.stall_s == pytest.approx(seconds("dcp-256-first"), rel=1e-12)
    assert 1 - later / seconds("dcp-256-first") == pytest.approx(0.45, abs=0.005)
    tenfold = saved("dcp-256-first", planning_s=125.0, write_bytes_per_s=10 * size / later)
    assert tenfold.stall_s == pytest.approx(125.0 + later / 10, rel=1e-12)


def test_an_asynchronous_save_waits_for_its_planning():
    """A11: 90 s and more of planning on 256 ranks become 1.5 s, and training stands still for as
    much less. E."""
    policy = Policy(every=1800.0, mode="async", snapshot_s=1.0)
    before, after = (
        saved("dcp-256-first", policy, planning_s=plans, write_bytes_per_s=1e10)
        for plans in (90.0, 1.5)
    )
    assert before.stall_s - after.stall_s == pytest.approx(88.5, rel=1e-12)
    assert before.lag_s == after.lag_s


def test_sync_against_async():
    """A16: blocked for 27.34 s, then for 0.54 s: 50.6 times. T .1 %."""
    blocked = saved(
        "automodel-llama-8b", save_time_s=27.34, timed_bytes=counted("automodel-llama-8b")
    )
    link = size_of("automodel-llama-8b") / 8 / 0.54
    policy = Policy(every=1800.0, mode="async", gpu_snapshot_bytes_per_s=link)
    assert blocked.stall_s / saved(
        "automodel-llama-8b", policy, write_bytes_per_s=4.1e9
    ).stall_s == pytest.approx(50.6, rel=1e-3)
    assert link < 55e9, "no faster than the link to the host"


def test_3t_are_bytes():
    """A18, B: in 1,500 s at the least 14 B of 235e9 parameters are written at 2.2 GB/s at the most;
    3T parameters never are."""
    assert counted("speech-qwen3-235b") / seconds("speech-qwen3-235b") < 2.2e9
    assert counted("speech-qwen3-235b") == pytest.approx(3.29e12, rel=1e-3)
    assert state_bytes(3e12, 14.0) / 1500 > 10 * 2.2e9


def test_save_and_load_of_a_small_model():
    """A20: 6.46 s to save, 9.74 s to load, 6.26 s in all asynchronously: each is an input as it was
    read. E."""
    timed = Tier(save_time_s=6.46, load_time_s=9.74, timed_bytes=1.0)
    checkpoint, cluster = Checkpoint(size_bytes=1.0), Cluster(gpus=8.0)
    assert save(checkpoint, timed, cluster, Policy(every=600.0)).stall_s == 6.46
    assert load_s(checkpoint, timed, cluster) == 9.74
    policy = Policy(every=600.0, mode="async", snapshot_s=0.5)
    found = save(checkpoint, Tier(save_time_s=5.76, timed_bytes=1.0), cluster, policy)
    assert found.stall_s + found.lag_s == pytest.approx(6.26, rel=1e-12)


def test_the_first_saves_go_to_the_page_cache():
    """A4, N: later ones take 3.4 times as long; a range about the first four does not hold them."""
    first, later = seconds("h100-node-saves-1-4"), seconds("h100-node-saves-later")
    assert later / first == pytest.approx(3.4, abs=0.05)
    assert first < seconds("h100-node-save-5") < later


def test_a_node_saves_no_faster_than_its_links():
    """A23, B: 60 GB/s a node, 80 at the peak, into its memory: under eight links of PCIe 5 as
    measured."""
    figures = Catalog().get("accelerator", "h100-sxm").figures
    links = figures["gpus_per_node"].value * figures["gpu_d2h"].value
    assert links > 80e9
    node = Checkpoint(size_bytes=4 * 60e9)
    cluster = Cluster(gpus=32.0, gpu_d2h_bytes_per_s=figures["gpu_d2h"].value)
    policy = Policy(every=60.0, mode="async", gpu_snapshot_bytes_per_s=60e9 / 8)
    assert save(node, Tier(), cluster, policy).stall_s == pytest.approx(1.0, rel=1e-12)
    unbound = Policy(every=60.0, mode="async")
    assert save(node, Tier(), cluster, unbound).stall_s == pytest.approx(60e9 / links, rel=1e-12)


def test_a_faster_file_system_loads_40_times_faster():
    """A26: an NFS read 1 GB/s, the Storage Scale that replaced it 40 GB/s: the preset loads in a
    40th. E."""
    read = Catalog().get("tier", "ibm-storage-scale-vela").figures["read"].value
    checkpoint, cluster = Checkpoint(size_bytes=1e12), Cluster(gpus=1024.0)
    before, after = (
        load_s(checkpoint, Tier(read_bytes_per_s=speed), cluster) for speed in (1e9, read)
    )
    assert before / after == pytest.approx(40.0, rel=1e-12)


# ---- what was said of them: the audit
# -------------------------------------------------------------


@functools.cache
def sheet() -> Any:
    return audit(Catalog(), "saves-2025")[0]


SAID = {
    "118.69 MB/s are MiB/s": ("primus", "write", INCONSISTENT),
    "94.34 GB are 14 B a parameter": ("primus", "size", CONSISTENT),
    "105 GB are GiB": ("llama_8b", "size", INCONSISTENT),
    "3 TB are 14 B of 235e9": ("qwen", "size", CONSISTENT),
    "14 % of the 64 min from stall to stall": ("stall_to_stall", "stall_share", CONSISTENT),
    "not with 64 min between two": ("between_stalls", "stall_share", INCONSISTENT),
    "3T are no parameters": ("", "Qwen3: parameters", INCONSISTENT),
    "2 of 15 min are 87 % less": ("", "recovery saved, from 15 min", INCONSISTENT),
    "2 of 30 min are 93 % less": ("", "recovery saved, from 30 min", CONSISTENT),
}


@pytest.mark.parametrize("said", SAID)
def test_verdict_on_what_was_said(said):
    """A5, A7, A14, A18, A22."""
    claim, what, word = SAID[said]
    (found,) = [v for v in sheet().verdicts if v.what == what and v.claim == claim]
    assert found.word == word


@pytest.mark.parametrize(
    ("claim", "reading"),
    [("primus", "write as MiB/s, not MB/s"), ("llama_8b", "size as GiB, not GB")],
)
def test_the_unit_that_was_meant(claim, reading):
    (found,) = [r for r in sheet().readings if r.claim == claim and r.reading == reading]
    assert found.fits


def test_what_80_percent_would_take():
    """A22: 10 min before, not 15."""
    (found,) = [f.fact for f in sheet().follows if f.what == "recovery before that 80 % would be"]
    assert found.printed.low == pytest.approx(600.0)


# ---- bytes a parameter of the catalogue's models
# --------------------------------------------------

MUON = {  # parameters of its embeddings and output, which Adam trains
    "kimi-k2": 2 * 163_840 * 7168,
    "glm-4-5": 2 * 151_552 * 5120,
    "glm-5": 2 * 154_880 * 6144,
}


@pytest.mark.parametrize("model", MUON)
def test_muon_keeps_one_moment_of_a_matrix(model):
    """10 B a parameter of the matrices, 14 B of the rest, by their shares. T .01 B."""
    raw = tomllib.loads((ROOT / f"models/checkpoints/{model}.toml").read_text("utf-8"))
    params = parse(raw["params"], "")
    share = MUON[model] / params
    stated = parse(raw["bytes_per_param"]["value"], "bytes_per_param")
    assert stated == pytest.approx(10 * (1 - share) + 14 * share, abs=0.01)
    assert share < 0.01


def test_the_embeddings_of_kimi_are_those_of_its_shape():
    """Vocabulary of 160 x 1,024 by 7,168, in and out: 2.35B, 0.23 % of what Muon would else train.
    E."""
    raw = tomllib.loads((ROOT / "models/checkpoints/kimi-k2.toml").read_text("utf-8"))
    assert raw["about"]["vocab"] == 160 * 1024
    assert 2 * raw["about"]["vocab"] * raw["about"]["hidden"] == MUON["kimi-k2"] == 2_348_810_240
    assert "2.35B" in raw["bytes_per_param"]["note"]


def test_pythia_counts_from_its_shape():
    """Two embeddings of 50,688, 36 layers with biases and two norms of 5,120: 11,846,072,320. E."""
    vocab, hidden, layers = 50_688, 5120, 36
    shape = 2 * vocab * hidden + layers * (12 * hidden**2 + 13 * hidden) + 2 * hidden
    raw = tomllib.loads((ROOT / "models/checkpoints/pythia-12b.toml").read_text("utf-8"))
    assert parse(raw["params"], "") == shape == 11_846_072_320
