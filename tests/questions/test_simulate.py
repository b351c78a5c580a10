"""`ckptcost simulate`: luck beside what is not known, recorded failures, three tiers."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ckptcost.answer import Answer, Quantity
from ckptcost.errors import InputError
from ckptcost.questions.init import SHORT
from ckptcost.questions.simulate import answer as again
from ckptcost.questions.simulate import failures_of, simulate
from ckptcost.study import Study
from ckptcost.write import text

GOLDEN = Path(__file__).with_name("golden")
LLAMA = "llama31-405b-16k"
THREE = (
    *("second_tier.id=aws-s3-standard", "third_tier.id=gcs-standard"),
    *("policy.second_every=5", "policy.third_every=5"),
)
ASKED: dict[str, dict[str, Any]] = {
    "job": {"job": "job.toml"},
    "llama": {"job": LLAMA},
    "recorded": {"job": "job.toml", "failures": "record.csv"},
    "three-tiers": {"job": LLAMA, "tier": ["flash-shared"], "set": THREE, "runs": 300},
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("job.toml").write_text(SHORT, encoding="utf-8")
    Path("record.csv").write_text("time_h\n0\n3\n23\n32\n76\n88\n119\n", encoding="utf-8")


@pytest.mark.parametrize("name", ASKED)
def test_printed(name: str) -> None:
    """Set UPDATE=1 to write what is printed now."""
    path, now = GOLDEN / f"simulate-{name}.txt", text(simulate(**ASKED[name]), width=80) + "\n"
    if os.environ.get("UPDATE"):
        path.write_text(now, encoding="utf-8")
    assert now == path.read_text(encoding="utf-8")
    assert len(now.splitlines()) <= 28
    assert "\n\nLuck alone " in now


def cell(found: Answer, measure: str, column: str) -> Any:
    """Of the table of measures, by the words of the row and the key of the column."""
    table = found.table("measures")
    at = [each.key for each in table.columns].index(column)
    row = next(row for row in table.rows if row[0] == measure)
    said = row[at]
    return said.range if isinstance(said, Quantity) else said


def test_luck_is_not_ignorance() -> None:
    """Luck leaves about a point of useful training where the inputs leave several; both together
    leave no less than the wider one."""
    found = simulate(LLAMA, runs=600)
    luck, inputs, both = (cell(found, "useful training", key) for key in ("luck", "inputs", "both"))
    assert luck.high - luck.low < 0.02 < inputs.high - inputs.low
    assert both.high - both.low > 0.9 * (inputs.high - inputs.low)
    words = [say.label for say in found.says[:3]]
    assert words == ["Luck alone", "Inputs alone", "Both"]


def test_the_closed_form_is_the_average() -> None:
    found = simulate("job.toml", runs=4000, draws=0)
    wall = cell(found, "wall time", "luck")
    error = (wall.high - wall.low) / 3.3 / 4000**0.5
    assert abs(wall.value - Study(found.cases, 0).value("wall", 0)) < 4.0 * error


def test_bursts_widen_the_range() -> None:
    calm, bursts, regular = (
        cell(simulate("job.toml", runs=2000, draws=0, failures=law), "failures", "luck")
        for law in ("exponential", "weibull:0.5", "weibull:3")
    )
    assert regular.high - regular.low < calm.high - calm.low < bursts.high - bursts.low


def test_a_seed_is_its_runs() -> None:
    one, same, other = (
        simulate("job.toml", runs=100, draws=0, seed=seed).table("measures").rows
        for seed in (1, 1, 2)
    )
    assert one == same != other


@pytest.mark.parametrize(
    ("lines", "instants"),
    [
        ("time_h\n0\n1\n3\n6\n", [0.0, 3600.0, 10800.0, 21600.0]),
        ("time_s\n30\n10\n20\n", [10.0, 20.0, 30.0]),
        ("time_days\n1\n2\n\n2\n3.5", [86400.0, 172800.0, 302400.0]),
        (
            "timestamp\n1970-01-01T00:00:00Z\n1970-01-01T00:01:00+00:00\n1970-01-01T01:02:00+01:00",
            [0.0, 60.0, 120.0],
        ),
    ],
)
def test_recordings(lines: str, instants: list[float]) -> None:
    Path("record.csv").write_text(lines, encoding="utf-8")
    shape, found = failures_of("record.csv")
    assert shape == 1.0
    np.testing.assert_allclose(found, instants)


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ("", "is not known"),
        ("hours\n1\n2\n3", "is not known"),
        ("time_h\n1\nx\n", "line 3: 'x' cannot be read"),
        ("time_h\n-1\n2\n", "line 2"),
        ("time_s\n5\n5\n5", "fewer than three"),
    ],
)
def test_recordings_that_are_none(lines: str, why: str) -> None:
    Path("record.csv").write_text(lines, encoding="utf-8")
    with pytest.raises(InputError) as error:
        failures_of("record.csv")
    assert why in str(error.value)


def test_a_target() -> None:
    assert simulate("job.toml", runs=50, require=["goodput>=0.999"]).missed
    assert not simulate("job.toml", runs=50, require=["goodput>=0.5"]).missed
    three = ASKED["three-tiers"] | {"runs": 50, "require": ["goodput>=0.99"]}
    assert simulate(**three).missed


def test_asked_again() -> None:
    """A document's cases and options give the same answer, the recording with it."""
    found = simulate("job.toml", runs=60, failures="record.csv", seed=3)
    Path("record.csv").unlink()
    assert text(again(found.cases, **found.options), detail=True) == text(found, detail=True)


@pytest.mark.parametrize(
    ("flags", "command"),
    [
        ({"job": LLAMA, "tier": ["local-nvme-4xgen5"]}, "--set second_tier.id=object-store"),
        ({"set": ["tier.capacity=3 TB"]}, "--set policy.keep_last=2"),
        ({"interval": "2 h", "set": ["run.wall_limit=1 h"]}, "--set run.wall_limit="),
        ({"set": ["failures.mtbf=2 min"]}, "--mtbf"),
    ],
)
def test_a_plan_that_does_not_work_is_not_walked(flags: dict[str, Any], command: str) -> None:
    found = simulate(**{"job": "job.toml", "require": ["goodput>=0.01"], **flags})
    assert found.says[0].words.startswith("This plan does not work as it stands.")
    assert command in found.says[0].command
    assert found.missed
    assert not found.tables


def test_draws_that_hardly_end_count_against_a_target() -> None:
    """They were left out, and luck alone was what remained: 29 % of draws meet it."""
    found = simulate("micron-100k", runs=1000, require=["goodput>=0.59"], sure=0.9)
    assert found.missed
    assert re.search("hardly end and count as 0 %", found.says[2].words)
    assert cell(found, "useful training", "both").low < 0.3
