"""`ckptcost model --over`: each point of a grid is the plan asked alone; its axes; its picture."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from ckptcost.advice import advise
from ckptcost.answer import Answer, Table
from ckptcost.errors import InputError
from ckptcost.plan import grid
from ckptcost.questions import common as q
from ckptcost.questions.model import answer as again
from ckptcost.questions.model import model
from ckptcost.questions.over import axis_of
from ckptcost.scenario.figures import Figure
from ckptcost.study import MEASURES, Study, read
from ckptcost.write import text

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


@pytest.fixture(autouse=True)
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "job.toml").write_text(OWN, encoding="utf-8")
    monkeypatch.chdir(tmp_path)


def printed(found: Answer, name: str) -> None:
    """Set UPDATE=1 to write what is printed now."""
    path, now = GOLDEN / f"model-{name}.txt", text(found, width=80) + "\n"
    if os.environ.get("UPDATE"):
        path.write_text(now, encoding="utf-8")
    assert now == path.read_text(encoding="utf-8")
    assert max(len(line) for line in now.splitlines() if "ckptcost model" not in line) <= 80


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
        ("interval=5 min,1 h", "policy.interval", ["0.0833333333333 h", "1 h"]),
        ("mtbf=1,2", "failures.mtbf", ["1 h", "2 h"]),
        ("tier=a:1TiB,b", "tier.id", ["a:1TiB", "b"]),
        ("mode=sync,async", "policy.mode", ["sync", "async"]),
        ("gpus=1k,2k", "cluster.gpus", ["1000", "2000"]),
        ("slowdown=0:6:3", "policy.slowdown", ["0 %", "3 %", "6 %"]),
    ],
)
def test_axes(axis: str, path: str, values: list[str]) -> None:
    assert axis_of(axis) == (path, values)


def test_ends_alone_give_numbers_that_are_easy_to_read() -> None:
    sizes = "1000 1500 2000 3000 5000 7000 10000 15000 20000 30000 50000 70000 100000"
    assert axis_of("gpus=1000:100000")[1] == sizes.split()
    assert len(axis_of("interval=10 min:20 min")[1]) == 13


@pytest.mark.parametrize(
    "axis",
    [
        "gpus",
        "gpus=",
        "nothing=1,2",
        "gpus=5:1",
        "gpus=1:2:0",
        "write=2 min,3 min",
        "gpus=1:2:3:4",
        "gpus=40x,50x",
    ],
)
def test_wrong_axes(axis: str) -> None:
    with pytest.raises(InputError):
        model("job.toml", over=[axis])


def test_an_axis_given_twice_and_too_many_plans() -> None:
    for over in (["gpus=1,2", "cluster.gpus=3,4"], ["gpus=1:10000:1", "interval=1:1000:1"]):
        with pytest.raises(InputError):
            model("job.toml", over=over)


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
    [(w, o)] = grid.outcomes(points[0], {path: np.array(values)}, 32)
    for measure in MEASURES:
        mine = np.broadcast_to(read(measure, o), (len(values), 33))
        theirs = study.of(measure, drawn=True)
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, err_msg=measure)
    assert w.cluster.gpus.shape[0] == len(values)


def test_one_question_at_a_time() -> None:
    with pytest.raises(InputError, match="three questions"):
        model("job.toml", over=["gpus=1,2"], inputs=True)


def test_sizes_printed() -> None:
    printed(model("job.toml", over=["cluster.gpus=1000:100000"]), "sizes")


def test_rates_printed() -> None:
    printed(model("job.toml", over=["tier.write=2:40:2"]), "rates")


def test_modes_printed() -> None:
    printed(model("job.toml", over=["mode=sync,async", "interval=10,30,60"]), "modes")


def test_sizes_save_as_interval_recommends() -> None:
    found = model("job.toml", over=["cluster.gpus=1000:100000"])
    gpus, interval = (column(found.table("cases"), key) for key in ("cluster.gpus", "interval"))
    (base, *_) = found.cases.values()
    for n, mine in [*zip(gpus, interval, strict=True)][::6]:
        advice = advise(base.with_figure("cluster.gpus", q.figure_at("cluster.gpus", n)))
        assert advice is not None
        assert advice.interval == mine
    goodput = column(found.table("cases"), "goodput")
    assert goodput == sorted(goodput, reverse=True)
    assert [plot.y for plot in found.plots] == ["useful training [share]", "failures a day"]


def test_an_interval_that_is_given_stays() -> None:
    found = model("job.toml", interval="45 min", over=["cluster.gpus=1000,2000"])
    assert set(column(found.table("cases"), "interval")) == {2700.0}


def test_a_large_grid_says_that_it_takes_the_exact_best() -> None:
    found = model("job.toml", over=["cluster.gpus=100:10000:100"])
    assert "Each plan saves at its own exact best interval for time." in found.says[-1].words
    assert len(found.table("cases").rows) == 100
    assert len(found.table("plans").rows) == 18
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


@pytest.mark.parametrize("over", ["cluster.gpus=1000:8000", "tier.write=2:40:2"])
def test_cases_and_options_give_the_same_again(over: str) -> None:
    found = model("job.toml", over=[over])
    assert text(again(found.cases, **found.options)) == text(found)
