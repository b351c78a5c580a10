"""Answers written by hand, the fixtures of all formats."""

from __future__ import annotations

from math import inf, nan
from typing import Any

from ckptcost.answer import Answer, Caution, Column, Line, Plot, Quantity, Range, Say, Table

KWH, GPU_H = 3.6e6, 3600.0


def kwh(value: float, low: float, high: float) -> Range:
    return Range(value * KWH, low * KWH, high * KWH)


def whole() -> Answer:
    """What the specification prints for one job."""
    unknown = Range(nan, nan, nan)
    adds: list[list[Any]] = [
        ["energy", Quantity(kwh(3970, 2300, 14000), "kWh")],
        ["GPU time", Quantity(Range(4280 * GPU_H, 2400 * GPU_H, 15000 * GPU_H), "GPU-h")],
        ["cost", Quantity(Range(23600, 12000, 92000), "USD")],
        ["emissions, location-based", Quantity(Range(1520, 870, 5300), "kgCO2e")],
        ["emissions, market-based", Quantity(unknown, "kgCO2e")],
    ]
    goes: list[list[Any]] = [
        ["saving, 1,440 checkpoints", 541 * KWH, 493 * GPU_H, 2680.0],
        ["keeping the last 3", 0.0, 0.0, 322.0],
        ["work lost to about 17 failures", 2640 * KWH, 2340 * GPU_H, 12700.0],
    ]
    units = [Column("energy", "kWh", "kWh"), Column("gpu_time", "GPU-h", "GPU-h")]
    expected = Column("expected", "expected", "", "both")
    lines = [Column("line", ""), *units, Column("cost", "USD", "USD")]
    one = """\
stops training for 0.6 s and is safe 45 s after it began.
0.38 kWh (0.13-1.9), 0.34 GPU-hours, 2.10 USD"""
    run = "takes 30.3 days, of which 98.9 % is useful training (96.2-99.4 %)."
    why = """\
Why so wide: how often this job fails is assumed from published jobs of its size: once in 42 h \
(8 h to 5.8 days). Yours:"""
    better = "You would probably do better saving every 15 min:"
    return Answer(
        "model",
        "What checkpoints cost: 70B on 512 H100",
        "980 GB each, async, every 30 min, to 25 GB/s storage; 30 days of training",
        [Say(one, "One checkpoint"), Say(run, "The whole run")],
        [
            Table("adds", "Checkpoints and failures add", [Column("what", ""), expected], adds),
            Table("where", "Where it goes", lines, goes),
        ],
        [Say(why, command='--mtbf "20 h"'), Say(better, command="ckptcost interval job.toml")],
        [Caution("HOST_RAM", "Copies in flight need 2.1 TB of a node's 1 TB.", ("25 GB/s",))],
        draws=16384,
        command="ckptcost model job.toml",
    )


def intervals() -> Answer:
    """Bars, marks and a plot."""
    every, cost = [300.0, 900.0, 1800.0, 3600.0], [26900.0, 20200.0, 23600.0, 34500.0]
    gpu_time = [4890 * GPU_H, 3660 * GPU_H, 4280 * GPU_H, 6290 * GPU_H]
    rows = zip(every, [0.987, 0.990, 0.989, 0.983], gpu_time, cost, strict=True)
    columns = [
        Column("every", "every", "s"),
        Column("goodput", "useful training", "share"),
        Column("gpu_time", "GPU-h lost", "GPU-h"),
        Column("cost", "USD", "USD", "bar"),
        Column("mark", ""),
    ]
    marks = {900.0: "best", 1800.0: "you"}
    plot = Plot(
        "What the run costs, by interval",
        "training time between saves [s]",
        "USD",
        [Line("25 GB/s", every, cost), Line("flash <shared>", every, [y * 0.8 for y in cost])],
        (("best", 900.0, 20200.0), ("now", 1800.0, 23600.0)),
        log_x=True,
    )
    return Answer(
        "interval",
        "How often to save: 70B on 512 H100, async, 25 GB/s",
        "",
        [Say("Save every 15 min. You save every 30 min.")],
        [Table("intervals", "", columns, [[*row, marks.get(row[0])] for row in rows])],
        [
            Say("15 min beats 30 min in 80 % of draws.", "How sure?"),
            Say("To make it sure:", command='ckptcost run -- python train.py\n--mtbf "20 h"'),
        ],
        plots=[plot],
        draws=4096,
    )


def tiers() -> Answer:
    """Several cases, values that are unknown, that have no end and that come from other people."""
    table = Table(
        "cases",
        "One checkpoint, 2 TB",
        [
            Column("case", ""),
            Column("rate", "rate", "B/s"),
            Column("stall", "waits", "s"),
            Column("energy", "kWh", "kWh", "range"),
            Column("who", "source", "text", "no"),
        ],
        [
            ["nas-hdd", 0.2e9, 10080.0, kwh(1490, 1200, 2100), "a|b <i>"],
            ["generic-pfs", 2e9, 1020.0, kwh(151, 120, inf), "=1+1"],
            ["x\x1b[31m", 40e9, 55.0, kwh(nan, nan, nan), "plain"],
            ["never", 1e6, inf, kwh(inf, inf, inf), None],
        ],
    )
    caution = Caution("CAPACITY", "The checkpoints kept need more than there is.", ("nas-hdd",))
    return Answer(
        "model", "Four tiers", "2 TB", [Say("Take generic-pfs.")], [table], cautions=[caution],
        missed=["never: goodput>=0.5 is met in no draw"], cases={}, draws=4096,
    )  # fmt: skip
