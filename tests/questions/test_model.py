"""`ckptcost model`: the printed answers of one plan and of several, and that their facts agree."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ckptcost.advice import advise
from ckptcost.answer import Answer, Quantity, Range, Say
from ckptcost.errors import InputError
from ckptcost.plan.bill import LINES, QUANTITIES
from ckptcost.questions import common as q
from ckptcost.questions.model import answer as again
from ckptcost.questions.model import model
from ckptcost.scenario.units import per, show
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
}


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
    printed(of(answers, name), name)


@pytest.mark.parametrize("name", ASKED)
def test_fits_a_screen(name: str, answers: dict[str, Answer]) -> None:
    lines = text(of(answers, name), width=80).splitlines()
    assert max(map(len, lines)) <= 80
    if name in ("demo", "small-8b", "llama", "own"):
        assert len(lines) <= 28


@pytest.mark.parametrize("name", ASKED)
def test_short_sentences(name: str, answers: dict[str, Answer]) -> None:
    found = of(answers, name)
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
    table = found.table("cases")
    cell = table.rows[0][[column.key for column in table.columns].index(measure)]
    assert isinstance(cell, Range)
    return cell.value


@pytest.mark.parametrize("name", ["small-8b", "llama", "own"])
def test_groups_add_up(name: str, answers: dict[str, Answer]) -> None:
    found = of(answers, name)
    columns = [column.key for column in found.table("where").columns]
    rows = found.table("where").rows
    for row, quantity in zip(found.table("added").rows, columns[1:], strict=True):
        assert isinstance(row[1], Quantity)
        cells = [each[columns.index(quantity)] for each in rows]
        assert row[1].range.value == pytest.approx(value(found, quantity), rel=1e-12)
        parts = sum(cell.value for cell in cells if isinstance(cell, Range))
        assert parts == pytest.approx(row[1].range.value, rel=1e-9)
        assert row[1].range.low < row[1].range.value < row[1].range.high


@pytest.mark.parametrize("name", ["small-8b", "llama", "own"])
def test_sentences_say_what_the_tables_hold(name: str, answers: dict[str, Answer]) -> None:
    found = of(answers, name)
    assert f"takes {show(value(found, 'wall'), 's')}; " in words(found)
    assert f"{value(found, 'goodput') * 100:.1f} % (" in words(found)
    assert f"stops training for {show(value(found, 'stall'), 's', 2)}" in words(found)
    assert f"every {show(value(found, 'interval'), 's', 2)}" in found.about


def test_an_interruption_costs_what_the_bill_says(answers: dict[str, Answer]) -> None:
    """Lost work and getting back, times all failures, are those lines of the bill."""
    found = of(answers, "own")
    said = re.search(r"= ([\d,]+) GPU-hours", words(found))
    assert said
    table = found.table("lines")
    at = [column.key for column in table.columns].index("gpu_time")
    lost = [r[at] for r in table.rows if r[1] in ("redone_work", "restart", "loading")]
    hours = sum(cell.value for cell in lost if isinstance(cell, Range)) / per("GPU-h")
    assert float(said[1].replace(",", "")) * value(found, "failures") == pytest.approx(hours, 0.01)


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
    assert advice is not None
    assert f"do better saving every {show(advice.interval, 's', 2)}" in words(found)
    assert f"ckptcost interval {ASKED[name]['job']}" in commands(found)


def test_a_plan_that_follows_the_recommendation_is_left_alone(answers: dict[str, Answer]) -> None:
    assert "(recommended)" in of(answers, "llama").about
    assert "do better" not in words(of(answers, "llama"))


# --- what a conclusion may rest on ----------------------------------------------------------------


def test_an_unknown_limit_is_never_best(answers: dict[str, Answer]) -> None:
    """S3 would cost less at 2.6 GB/s times 2,048 nodes, which nobody has measured."""
    found = of(answers, "tiers")
    cost = [row[-1] for row in found.table("runs").rows]
    assert isinstance(cost[0], Range)
    assert isinstance(cost[1], Range)
    assert cost[1].value < cost[0].value
    assert "Least cost of tiers whose limit is known: flash-shared" in found.says[0].words
    assert "aws-s3-standard and gcs-standard are not ranked" in words(found)
    assert "--set tier.write=" in "\n".join(each.command for each in found.says)


def test_a_given_limit_is_ranked() -> None:
    found = model(LLAMA, tier=["aws-s3-standard", "nas-hdd"], set=["tier.write=200 GB/s"])
    assert "not ranked" not in words(found)


def test_a_tier_that_loses_its_copies_is_never_best() -> None:
    """Copies on local drives die with their node: without a second tier that is no plan."""
    found = model(LLAMA, tier=["flash-shared", "vast", "local-nvme"], draws=256)
    assert found.says[0].words.startswith("Least cost: flash-shared")
    assert "Left out, since it does not work as it stands: local-nvme." in words(found)
    assert "die with their node" in " ".join(each.words for each in found.cautions)
    second = ["second_tier.id=object-store"]
    found = model(LLAMA, tier=["flash-shared", "local-nvme"], set=second, draws=256)
    assert "Left out" not in words(found)


def test_dollars_are_compared_like_with_like(answers: dict[str, Answer]) -> None:
    found = of(answers, "provisioned")
    assert found.says[0].words.startswith("Least cost before rent")
    assert "for all that is provisioned" in words(found)


def test_never_finishes_has_no_numbers(answers: dict[str, Answer]) -> None:
    shown = [table.name for table in of(answers, "never").tables if table.shown]
    assert shown == []
    found = model(LLAMA, tier=["nas-hdd", "flash-shared"], draws=64)
    assert found.table("runs").rows[0][1:] == [None, None, None, "never finishes"]


def test_what_is_not_known_is_said_once(answers: dict[str, Answer]) -> None:
    found = of(answers, "unknown-power")
    assert words(found).count("Energy and emissions are not known") == 1
    assert '--set cluster.gpu_train="630 W"' in commands(found)
    assert "kWh" not in words(found)
    _, rows = found.table("cases").flat()
    assert None in rows[0]


def test_a_doubtful_input_comes_first(answers: dict[str, Answer]) -> None:
    assert "check tier.write" in of(answers, "doubtful").says[0].words


def test_a_small_difference_is_not_advised() -> None:
    near = advise(next(iter(q.cases_for("job.toml", {}).values())))
    assert near is not None
    found = model("job.toml", interval=f"{near.interval * 1.2:.0f} s", draws=64)
    assert "do better" not in words(found)


def test_a_list_price_is_named_and_a_given_one_is_not(answers: dict[str, Answer]) -> None:
    assert '--gpu-price "2.50 USD"' in commands(of(answers, "own"))
    found = model("job.toml", gpu_price="2.50 USD", draws=64)
    assert "--gpu-price" not in commands(found)


def test_a_target_is_met_in_a_share_of_the_draws() -> None:
    assert model("job.toml", require=["goodput>=0.5"], draws=256).missed == []
    missed = model("job.toml", require=["goodput>=0.988"], sure=0.95, draws=256).missed
    assert "of draws" in missed[0]


# --- the same again -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["demo", "own", "never"])
def test_cases_and_options_give_the_same_again(name: str, answers: dict[str, Answer]) -> None:
    found = of(answers, name)
    assert text(again(found.cases, **found.options)) == text(found)


# --- --inputs and --dir ---------------------------------------------------------------------------


def test_inputs_printed() -> None:
    printed(model("job.toml", inputs=True), "inputs")


def test_a_known_input_leaves_the_range_that_was_said() -> None:
    """Giving the failure rate narrows the cost as `--inputs` says."""
    found = model("job.toml", inputs=True)
    table = found.table("deciding")
    keys = [column.key for column in table.columns]
    assert table.rows[0][0] == "failures.rate_factor"
    left = table.rows[0][keys.index("known")]
    mine = model("job.toml", set=["failures.rate_factor=1"], draws=found.draws)
    cost = [row[-1] for row in mine.table("added").rows][2]
    assert isinstance(cost, Quantity)
    assert isinstance(left, Range)
    assert cost.range == pytest.approx(left, rel=1e-9)
    assert '--mtbf "20 h"' in found.says[0].command


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
    assert found.says[0].words.startswith("They do not fit: 20 kept and one being written")
    assert found.says[1] == Say("There is room to keep 3:", "", "--set policy.keep_last=3")
    assert len(found.missed) == 2


def test_no_such_folder() -> None:
    with pytest.raises(InputError, match="/nowhere"):
        model("job.toml", dir="/nowhere")


def test_the_recommended_interval_is_billed_as_rounded(answers: dict[str, Answer]) -> None:
    assert value(of(answers, "llama"), "interval") % 60.0 == 0.0
