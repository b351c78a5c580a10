"""The header says everything again, and a newer one is refused politely."""

from __future__ import annotations

import math

import pytest
from steady_meters import Steady

from ckptcost.first.core.channels import Channel
from ckptcost.first.errors import RunFileError
from ckptcost.first.meters.base import Basic
from ckptcost.first.runs.header import (
    Header,
    base_name,
    header_from,
    heads_of,
    host_name,
    new_run_id,
)
from ckptcost.first.runs.lines import BadLine, decode, encode

FULL = Channel(
    "gpu:0",
    "energy_j",
    "NVML field 83",
    "module",
    "node",
    "whole",
    ("cpu", "dram"),
    "modelled",
    "GPU-1",
    262143.32885,
    0.001,
    0.1,
    1.0,
    0.15,
    0.25,
    0.05,
    "note",
)
HEADER = Header(
    run="r",
    host="n",
    rank=3,
    part=2,
    boot="b",
    pid=7,
    monotonic_ns=2**60 + 1,
    wall_ns=2**60 + 3,
    created="c",
    simulated=True,
    meters=heads_of(
        [Basic("nvml", (FULL, Channel("cpu:0", "power_w", "s")), 0.5, facts={"driver": "1"})]
    ),
    periods_s=((0.1, 0.02),),
    settings={"rest_s": 0.2},
    dropped=(0, 1),
)


def test_it_comes_back_whole():
    assert header_from(decode(encode(HEADER.fields())[:-1])) == HEADER


def test_unknown_periods_are_null():
    fields = decode(encode({**HEADER.fields(), "periods_s": ((math.nan, 0.1),)})[:-1])
    assert fields["periods_s"] == [[None, 0.1]]
    assert math.isnan(header_from(fields).periods_s[0][0])


def test_newer_minor_versions_are_read():
    fields = decode(encode(HEADER.fields())[:-1])
    fields |= {"version": "1.9", "news": [1]}
    fields["meters"][0]["channels"][0]["colour"] = "red"
    fields["meters"][0]["mood"] = 1
    assert header_from(fields).meters == HEADER.meters


@pytest.mark.parametrize("version", ["2.0", "0.9", "1", "", None, "11.0"])
def test_other_major_versions_are_refused(version):
    with pytest.raises(RunFileError, match=r"reads 1\.x.*newer one") as caught:
        header_from({**HEADER.fields(), "version": version}, "here.jsonl")
    assert caught.value.where == "here.jsonl"


CHANNEL = {"domain": "x", "quantity": "power_w", "source": "s"}


@pytest.mark.parametrize(
    "change",
    [
        {"k": "raw"},
        {"format": "other"},
        {"clock": None},
        {"clock": {}},
        {"rank": "x"},
        {"rank": 2**63},
        *(
            {"meters": [{"name": "a", "channels": [{**CHANNEL, key: value}]}]}
            for key in ("wraps_at", "resolution", "tick_s")
            for value in (1e308, 5e-324)
        ),
        {"clock": {"monotonic_ns": 0, "wall_ns": 2**63}},
        {"meters": [{}]},
        {"meters": 3},
        {"dropped": ["x"]},
        {"meters": [{"name": "a", "channels": [{"domain": "x"}]}]},
        {"periods_s": 3},
        {"meters": [{"name": "a", "channels": 1}]},
        {
            "meters": [
                {
                    "name": "a",
                    "channels": [
                        {"domain": "x", "quantity": "power_w", "source": "s", "tick_s": "soon"}
                    ],
                }
            ]
        },
    ],
)
def test_what_is_no_header_is_a_bad_line(change):
    with pytest.raises(BadLine):
        header_from({**HEADER.fields(), **change})


@pytest.mark.parametrize(
    "text", ["../../etc/passwd", "/a", ".hidden", "a b\n", "", "é" * 300, "-rf", "x\0y"]
)
def test_a_name_is_never_a_path(text):
    name = base_name(text)
    assert name
    assert len(name) <= 100
    assert name.isascii()
    assert not set("/\\\0\n ") & set(name)
    assert name[0] not in ".-"


def test_ids_differ_and_hosts_are_names():
    assert len({new_run_id() for _ in range(50)}) == 50
    assert len(new_run_id()) == 32
    assert host_name() == base_name(host_name())
    assert heads_of([Steady()])[0].simulated
