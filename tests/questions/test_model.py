"""`ckptcost model`: the printed answers of one plan, of several and of a grid, and that their facts
agree."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ckptcost.advice import advise
from ckptcost.answer import Answer, Say, Table
from ckptcost.errors import InputError
from ckptcost.plan.bill import LINES, QUANTITIES
from ckptcost.questions import common as q
from ckptcost.questions.model import answer as again
from ckptcost.questions.model import model
from ckptcost.questions.over import Points, axis_of
from ckptcost.scenario.figures import Figure
from ckptcost.scenario.units import per, show
from ckptcost.study import MEASURES, Study
from ckptcost.write import text

from .plans import cell
from .plans import value as value_in

GOLDEN = Path(__file__).with_name("golden")
OWN = """\
name = "70B on 512 H100"
[checkpoint]
params = "70B"
[tier]
write = "25 GB/s"
[cluster]
id = "h100-1024"
gpus = 512
[policy]
mode = "async"
interval = "30 min"
[run]
work = "30 days"
"""
UNKNOWN = """\
name = "8B on 64 of our own accelerators"
[checkpoint]
params = "8B"
[tier]
write = "5 GB/s"
[cluster]
gpus = 64
[failures]
mtbf = "5 days"
[policy]
interval = "1 h"
[run]
work = "10 days"
"""
LLAMA = "llama31-405b-16k"
ASKED: Mapping[str, dict[str, Any]] = {
    "demo": {},
    "small-8b": {"job": "small-8b"},
    "llama": {"job": LLAMA},
    "own": {"job": "job.toml"},
    "too-rarely": {"job": "job.toml", "interval": "4 h"},
    "unknown-power": {"job": "unknown.toml"},
    "never": {"job": LLAMA, "tier": ["nas-hdd"]},
    "unknown-limit": {"job": LLAMA, "tier": ["aws-s3-standard"]},
    "tiers": {"job": LLAMA, "tier": ["flash-shared", "aws-s3-standard", "gcs-standard"]},
    "provisioned": {"job": LLAMA, "tier": ["flash-shared", "aws-fsx-p2-125:100TiB"]},
    "doubtful": {"job": "job.toml", "set": ["tier.write=25 TB/s"]},
    "continuous": {"job": "job.toml", "interval": "continuous"},
    "slow-clients": {"job": "job.toml", "gpus": 8, "set": ["checkpoint.params=700M"]},
    "modes-beside": {"job": "job.toml", "mode": "both"},
    "async-tiers": {"job": "job.toml", "tier": ["flash-shared", "nas-hdd"]},
    "no-second-tier": {"job": LLAMA, "tier": ["local-nvme"]},
    "inputs": {"job": "job.toml", "inputs": True},
    "sizes": {"job": "job.toml", "over": ["cluster.gpus=1000:100000"]},
    "rates-that-never-finish": {"job": LLAMA, "over": ["tier.write=0.1,0.2,2,20"]},
    "rates": {"job": "job.toml", "over": ["tier.write=2:40:2"]},
    "modes": {"job": "job.toml", "over": ["mode=sync,async", "interval=10,30,60"]},
}


LONG = ("continuous", "too-rarely", "slow-clients")
"""they also have to be told that another interval is better"""


@pytest.fixture(autouse=True)
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's own files, in the folder in which the tests run."""
    (tmp_path / "job.toml").write_text(OWN, encoding="utf-8")
    (tmp_path / "unknown.toml").write_text(UNKNOWN, encoding="utf-8")
    monkeypatch.chdir(tmp_path)


def printed(found: Answer, name: str) -> None:
    """Set UPDATE=1 to write what is printed now."""
    path, now = GOLDEN / f"model-{name}.txt", text(found, width=80) + "\n"
    if os.environ.get("UPDATE"):
        path.write_text(now, encoding="utf-8")
    assert now == path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def answers() -> dict[str, Answer]:
    return {}


def of(answers: dict[str, Answer], name: str) -> Answer:
    if name not in answers:
        answers[name] = model(**ASKED[name])
    return answers[name]


@pytest.mark.parametrize("name", ASKED)
def test_printed(name: str, answers: dict[str, Answer]) -> None:
    found = of(answers, name)
    printed(found, name)
    lines = text(found, width=80).splitlines()
    assert max(len(line) for line in lines if "ckptcost model" not in line) <= 80
    assert len(lines) <= 28 or name in LONG
    for say in found.says + found.notes:
        for sentence in re.split(r"(?<=[.:]) ", say.words):
            assert len(sentence.split()) <= 25, sentence


# --- facts agree ----------------------------------------------------------------------------------


def words(found: Answer) -> str:
    return "\n".join(each.words for each in found.says + found.notes)


def commands(found: Answer) -> str:
    return "\n".join(each.command for each in found.notes)


def value(found: Answer, measure: str) -> float:
    """Of the first case, in SI."""
    return value_in(found, "cases", 0, measure)


@pytest.mark.parametrize("name", ["small-8b", "llama", "own"])
def test_groups_add_up(name: str, answers: dict[str, Answer]) -> None:
    found = of(answers, name)
    for at, quantity in enumerate(("energy", "gpu_time", "cost", "carbon")):
        added = cell(found, "added", at, "amount").range
        parts = sum(row[1 + at].value for row in found.table("where").rows)  # type: ignore[union-attr, misc]
        assert added.value == pytest.approx(value(found, quantity), rel=1e-12)
        assert parts == pytest.approx(added.value, rel=1e-9)
        assert added.low < added.value < added.high


def test_an_interruption_costs_what_the_bill_says(answers: dict[str, Answer]) -> None:
    """Lost work and getting back, times all failures, are those lines of the bill."""
    found = of(answers, "own")
    [said] = re.findall(r"= ([\d,]+) GPU-hours", words(found))
    lost = [
        value_in(found, "lines", at, "gpu_time")
        for at, row in enumerate(found.table("lines").rows)
        if row[1] in ("redone_work", "restart", "loading")
    ]
    hours = sum(lost) / per("GPU-h")
    assert float(said.replace(",", "")) * value(found, "failures") == pytest.approx(hours, 0.01)


def test_lines_hold_every_line_of_every_case(answers: dict[str, Answer]) -> None:
    found = of(answers, "demo")
    keys, rows = found.table("lines").flat()
    assert {row[1] for row in rows} <= {*LINES}
    assert len({(row[0], row[1]) for row in rows}) == len(rows) == 10 * len(found.cases)
    assert {q for q in QUANTITIES if any(key.startswith(q) for key in keys)} == {*QUANTITIES}


@pytest.mark.parametrize("name", ["too-rarely", "small-8b"])
def test_recommends_what_interval_recommends(name: str, answers: dict[str, Answer]) -> None:
    found = of(answers, name)
    advice = advise(next(iter(found.cases.values())))
    assert f"Probably better: save every {show(advice.interval, 's', 2)}" in words(found)
    assert f"ckptcost interval {ASKED[name]['job']}" in commands(found)


def test_a_plan_that_follows_the_recommendation_is_left_alone(answers: dict[str, Answer]) -> None:
    assert "(recommended)" in of(answers, "llama").about
    assert value(of(answers, "llama"), "interval") % 60.0 == 0.0
    assert "Probably better" not in words(of(answers, "llama"))
    near = advise(next(iter(q.cases_for("job.toml", {}).values())))
    found = model("job.toml", interval=f"{near.interval * 1.2:.0f} s", draws=64)
    assert "Probably better" not in words(found)


# --- what a conclusion may rest on ----------------------------------------------------------------


def test_an_unknown_limit_is_never_best(answers: dict[str, Answer]) -> None:
    """S3 would cost less at 2.6 GB/s times 2,048 nodes, which nobody has measured."""
    found = of(answers, "tiers")
    assert value_in(found, "runs", 1, "cost") < value_in(found, "runs", 0, "cost")
    assert "Least cost of tiers whose limit is known: flash-shared" in found.says[0].words
    assert "* aws-s3-standard and gcs-standard: measured with 8 nodes only." in words(found)
    given = model(LLAMA, tier=["aws-s3-standard", "nas-hdd"], set=["tier.write=200 GB/s"], draws=64)
    assert "The limit of the whole" not in words(given)


def test_a_tier_that_loses_its_copies_is_never_best() -> None:
    """Copies on local drives die with their node: without a second tier that is no plan."""
    found = model(LLAMA, tier=["flash-shared", "vast", "local-nvme"], draws=256)
    assert found.says[0].words.startswith("Least cost: flash-shared")
    assert "does not work as it stands (see below): local-nvme." in words(found)
    assert "die with their node" in " ".join(each.words for each in found.cautions)
    second = ["second_tier.id=object-store"]
    found = model(LLAMA, tier=["flash-shared", "local-nvme"], set=second, draws=256)
    assert "Left out" not in words(found)


def test_what_a_run_costs_that_loses_its_copies_is_not_known(answers: dict[str, Answer]) -> None:
    """In no table and no file, alone, beside others, and in a grid."""
    found = of(answers, "no-second-tier")
    assert math.isnan(value(found, "cost"))
    assert value(found, "stall") > 0
    keys, rows = found.table("lines").flat()
    assert np.isnan([row[keys.index("cost_usd")] for row in rows]).all()
    assert "is not known. Copies on this tier die with their node" in words(found)
    assert "Copies on this tier" in words(model(LLAMA, tier=["local-nvme"], inputs=True))
    grid = model(LLAMA, over=["tier=local-nvme,flash-shared", "gpus=2000,16000"])
    assert np.isnan(column(grid.table("cases"), "cost")).tolist() == [True, True, False, False]


def test_never_finishes_has_no_numbers(answers: dict[str, Answer]) -> None:
    shown = [table.name for table in of(answers, "never").tables if table.shown]
    assert shown == []
    found = model(LLAMA, tier=["nas-hdd", "flash-shared"], draws=64)
    assert found.table("runs").rows[0][1:] == [None] * 4 + ["never finishes"]


# --- the same again -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["demo", "own", "never", "sizes", "modes"])
def test_cases_and_options_give_the_same_again(name: str, answers: dict[str, Answer]) -> None:
    found = of(answers, name)
    assert text(again(found.cases, **found.options)) == text(found)


# --- --inputs and --dir ---------------------------------------------------------------------------


def test_a_known_input_leaves_the_range_that_was_said(answers: dict[str, Answer]) -> None:
    """Giving the failure rate narrows the cost as `--inputs` says."""
    found = of(answers, "inputs")
    assert cell(found, "deciding", 0, "input") == "failures.rate_factor"
    mine = model("job.toml", set=["failures.rate_factor=1"], draws=found.draws)
    left = cell(found, "deciding", 0, "known")
    assert cell(mine, "added", 2, "amount").range == pytest.approx(left, rel=1e-9)


class Room:
    """What a file system answers."""

    f_bavail, f_frsize, f_favail = 1000, 4_000_000_000, 500


def test_room_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _folder: Room)
    found = model("job.toml", dir="/scratch/run7")
    printed(found, "dir")
    assert found.missed == []
    assert text(again(found.cases, **found.options)) == text(found)


def test_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _folder: Room)
    found = model("job.toml", dir="/x", set=["policy.keep_last=20", "checkpoint.files=1000"])
    assert found.says[0].words.startswith("They do not fit: 20 checkpoints kept and one being")
    assert found.says[1] == Say("There is room to keep 3:", "", "--set policy.keep_last=3")
    assert len(found.missed) == 2
    monkeypatch.undo()
    with pytest.raises(InputError, match="/nowhere"):
        model("small-8b", dir="/nowhere")


# --- --over ---------------------------------------------------------------------------------------


def column(table: Table, key: str) -> list[float]:
    at = [each.key for each in table.columns].index(key)
    cells = [row[at] for row in table.rows]
    return [getattr(cell, "value", cell) for cell in cells]  # type: ignore[misc]


@pytest.mark.parametrize(
    ("axis", "path", "values"),
    [
        ("saves=10:30:10", "policy.saves", ["10", "20", "30"]),
        ("tier.write=2:4:1", "tier.write", ["2 GB/s", "3 GB/s", "4 GB/s"]),
        ("write=2:3:1 TB/s", "tier.write", ["2 TB/s", "3 TB/s"]),
        ("step=1 s:3 s", "policy.step", [f"{1 + i / 6:.12g} s" for i in range(13)]),
        ("interval=5 min,1 h", "policy.interval", ["5 min", "1 h"]),
        ("mtbf=1,2", "failures.mtbf", ["1 h", "2 h"]),
        ("tier=a:1TiB,b", "tier.id", ["a:1TiB", "b"]),
        ("mode=sync,async", "policy.mode", ["sync", "async"]),
        ("gpus=1k,2k", "cluster.gpus", ["1k", "2k"]),
        ("slowdown=0:6:3", "policy.slowdown", ["0 %", "3 %", "6 %"]),
        ("gpus=500:5000", "cluster.gpus", ["500", "700", "1000", "1500", "2000", "3000", "5000"]),
    ],
)
def test_axes(axis: str, path: str, values: list[str]) -> None:
    assert axis_of(axis) == (path, values)


@pytest.mark.parametrize(
    "axes",
    [
        *(["gpus"], ["gpus="], ["nothing=1,2"], ["gpus=5:1"], ["gpus=1:2:0"], ["gpus=1:1e9:1"]),
        *(["write=2 min,3 min"], ["gpus=1:2:3:4"], ["gpus=40x,50x"]),
        ["gpus=1,2", "cluster.gpus=3,4"],
        ["gpus=1:10000:1", "interval=1:1000:1"],
    ],
)
def test_wrong_axes(axes: list[str]) -> None:
    with pytest.raises(InputError):
        model("job.toml", over=axes)
    with pytest.raises(InputError, match="three questions"):
        model("job.toml", over=axes, inputs=True)


@pytest.mark.parametrize("job", ["job.toml", "small-8b", "llama31-405b-16k"])
@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("tier.write", (3e9, 9.9e9, 10.1e9, 80e9)),
        ("cluster.gpus", (256.0, 5000.0)),
        ("cluster.gpu_tdp", (400.0, 1000.0)),
        ("policy.interval", (300.0, 7200.0)),
        ("failures.mtbf", (36000.0,)),
        ("run.work", (86400.0,)),
    ],
)
def test_each_point_is_the_plan_alone(job: str, path: str, values: tuple[float, ...]) -> None:
    """All measures in all draws: also what follows a figure moves with it."""
    (base, *_) = q.cases_for(job, {}).values()
    points = [
        base.with_figure(path, Figure(x, x, x, "user", text="", origin="as tried")) for x in values
    ]
    study = Study({str(i): each for i, each in enumerate(points)}, 32)
    # the base has the figure, as `cases_of` makes it
    found = Points(points[0], {path: np.array(values)}, 32)
    for measure in MEASURES:
        mine, theirs = found.of(measure, drawn=True), study.of(measure, drawn=True)
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, err_msg=measure)


def test_sizes_save_as_interval_recommends(answers: dict[str, Answer]) -> None:
    found = of(answers, "sizes")
    gpus, interval = (column(found.table("cases"), key) for key in ("cluster.gpus", "interval"))
    (base, *_) = found.cases.values()
    for n, mine in [*zip(gpus, interval, strict=True)][::6]:
        advice = advise(base.with_figure("cluster.gpus", q.figure_at("cluster.gpus", n)))
        assert advice.interval == mine
    goodput = column(found.table("cases"), "goodput")
    assert goodput == sorted(goodput, reverse=True)
    assert [plot.y for plot in found.plots] == ["useful training [share]", "failures a day"]


def test_an_interval_that_is_given_stays() -> None:
    found = model("job.toml", interval="45 min", over=["cluster.gpus=1000,2000"])
    assert set(column(found.table("cases"), "interval")) == {2700.0}


def test_a_large_grid_says_that_it_takes_the_exact_best() -> None:
    found = model("job.toml", over=["cluster.gpus=100:10000:100"])
    assert "Each plan saves at the interval of its shortest run." in found.says[-1].words
    assert len(found.table("cases").rows) == 100
    assert len(found.table("plans").rows) == 14
    assert found.draws == 0


def test_the_heading_names_the_units() -> None:
    """The first edition showed SI figures under a heading that named another unit."""
    found = model("job.toml", over=["tier.write=2:4:1"])
    keys, rows = found.table("cases").flat()
    assert keys[0] == "tier.write_gb_per_s"
    assert [row[0] for row in rows] == [2.0, 3.0, 4.0]


def test_words_alone_are_several_plans() -> None:
    found = model("job.toml", over=["mode=sync,async"])
    assert [*found.cases] == ["sync", "async"]
    assert found.table("runs").rows[0][0] == "sync"


def test_tiers_and_counts() -> None:
    found = model("job.toml", over=["tier=nas-hdd,flash-shared", "saves=10:200:10"])
    assert [*found.cases] == ["nas-hdd", "flash-shared"]
    table = found.table("cases")
    assert len(table.rows) == 40
    assert column(table, "saves") == pytest.approx(column(table, "policy.saves"))


def grid_of(*axes: str, job: str = LLAMA, **flags: Any) -> tuple[Answer, list[Any]]:
    """The answer, and the code of what each plan warns of."""
    found = model(job, over=axes, **flags)
    table = found.table("cases")
    at = [each.key for each in table.columns].index("caution")
    return found, [row[at] for row in table.rows]


def test_a_grid_recommends_nothing_whose_limit_is_unknown() -> None:
    """gcs-standard was the cheapest, at the rate of one client times 2,048 nodes."""
    found, codes = grid_of("tier=flash-shared,gcs-standard", "keep_last=1,3", draws=64)
    assert codes == ["", "", "LIMIT_UNKNOWN", "LIMIT_UNKNOWN"]
    assert "Least cost of plans whose limit is known: flash-shared" in words(found)
    assert [row[0] for row in found.table("plans").rows][2:] == ["gcs-standard *"] * 2
    alone, _ = grid_of("tier=gcs-standard", "keep_last=1,3", draws=64)
    assert "No plan here can be recommended" in words(alone)


def test_a_grid_recommends_nothing_that_does_not_work() -> None:
    found, codes = grid_of("wall_limit=10min,2h", "keep_last=1,9", job="job.toml", draws=64)
    assert codes == ["NO_SAVE_BEFORE_LIMIT"] * 2 + [""] * 2
    assert "Least cost: wall limit 2 h" in words(found)
    stop = next(each for each in found.says if "do not work: 2 of 4" in each.words)
    assert stop.command.startswith("--set run.wall_limit=")
    useful = column(found.table("plans"), "goodput")
    assert useful[:2] == ["does not work"] * 2
    small = ["tier.write=1,25", "capacity=2TB,9TB"]
    assert grid_of(*small, job="job.toml", draws=64)[1] == ["CAPACITY", ""] * 2


def test_a_grid_compares_dollars_that_are_alike_and_asks_what_is_implausible() -> None:
    found = model(
        LLAMA, over=["tier=flash-shared,aws-fsx-p2-125:100TiB", "keep_last=1,3"], draws=64
    )
    assert "Least cost before rent" in words(found)
    assert "for all that is provisioned (" in words(found)
    assert model("job.toml", over=["write=1GB/s,25TB/s"], draws=64).says[0].label == "Check first"


def test_a_given_mtbf_does_not_follow_the_size() -> None:
    given = model("job.toml", over=["gpus=500,5000"], mtbf="20 h", draws=64)
    assert "A failure comes every 20 h at every size. Leave mtbf out" in words(given)
    assert "at every size" not in words(model("job.toml", over=["gpus=500,5000"], draws=64))


@pytest.mark.parametrize("axes", [["gpus=1:1000000:1", "saves=1,2,3"], ["gpus=1:1000:1"]])
def test_more_than_memory_holds_is_refused(axes: list[str]) -> None:
    with pytest.raises(InputError, match=r"too many|too much"):
        model("job.toml", over=axes, draws=100_000)


def test_a_plan_without_room_says_so_first_and_meets_no_target() -> None:
    found = model("job.toml", set=["tier.capacity=3 TB"], require=["goodput>=0.1"], draws=64)
    assert found.says[0].words.startswith("This plan does not work as it stands. There is no room")
    assert found.says[0].command == "--set policy.keep_last=2"
    assert "as the plan does not work" in found.missed[0]
    assert "Probably better" not in words(found)


def test_what_is_not_known_is_no_miss_in_all_draws() -> None:
    """It was "met in no draw (kWh -)"."""
    found = model("unknown.toml", require=["energy<=1000 kWh"], draws=64)
    assert found.missed == ["5 GB/s: energy<=1000 kWh cannot be said: energy is not known"]


def test_capacity_that_is_provisioned_is_rented_however_much_is_kept() -> None:
    found = model(LLAMA, tier=["aws-fsx-p2-125:100TiB"], draws=64)
    groups = [row[0] for row in found.table("where").rows]
    assert "renting the tier's capacity" in groups
    assert not [each for each in groups if str(each).startswith("keeping")]


def test_a_run_that_gets_nowhere_has_no_endless_amounts() -> None:
    found = model("job.toml", set=["tier.write=1 MB/s", "policy.mode=sync"], draws=64)
    assert "endless" not in words(found)
