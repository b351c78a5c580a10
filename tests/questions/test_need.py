"""`ckptcost need`: printed answers; what it says is enough is enough, and not much more."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from ckptcost.answer import Answer, Range
from ckptcost.errors import InputError
from ckptcost.questions import common as q
from ckptcost.questions.init import SHORT
from ckptcost.questions.need import answer as again
from ckptcost.questions.need import need
from ckptcost.study import Study
from ckptcost.write import text

GOLDEN = Path(__file__).with_name("golden")
LLAMA = "llama31-405b-16k"
ASKED: dict[str, dict[str, Any]] = {
    "write": {"quantity": "write", "for_": "goodput>=0.95"},
    "rate-sure": {"quantity": "rate", "for_": "goodput>=0.95", "sure": 0.9},
    "interval": {"quantity": "interval", "for_": "overhead<=1 %"},
    "stall-cost": {"quantity": "stall", "for_": "cost<=30000 USD", "mode": "sync"},
    "impossible": {"quantity": "write", "job": LLAMA, "for_": "goodput>=0.97"},
    "recovery-stated": {"quantity": "recovery", "for_": "goodput>=0.97", "draws": 0},
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("job.toml").write_text(SHORT, encoding="utf-8")


def asked(name: str) -> Answer:
    return need(**{"job": "job.toml", **ASKED[name]})


@pytest.mark.parametrize("name", ASKED)
def test_printed(name: str) -> None:
    """Set UPDATE=1 to write what is printed now."""
    path, now = GOLDEN / f"need-{name}.txt", text(asked(name), width=80) + "\n"
    if os.environ.get("UPDATE"):
        path.write_text(now, encoding="utf-8")
    assert now == path.read_text(encoding="utf-8")
    assert len(now.splitlines()) <= 28
    assert all(len(line) <= 80 for line in now.splitlines() if "ckptcost " not in line)


def levels(found: Answer) -> dict[str, dict[str, Any]]:
    table = found.table("levels")
    keys = [column.key for column in table.columns]
    return {str(row[0]): dict(zip(keys, row, strict=True)) for row in table.rows}


@pytest.mark.parametrize(
    ("quantity", "path", "unit", "less"),
    [
        ("write", "tier.write", "B/s", 1 / 1.5),
        ("rate", "failures.mtbf", "s", 1 / 1.5),
        ("detect", "failures.detect", "s", 1.5),
    ],
)
def test_what_is_enough_is_enough(quantity: str, path: str, unit: str, less: float) -> None:
    """The plan at the value, saving as often as is said there, meets the target in that share of
    the draws; of the same, half as much again is too little."""
    target = q.target_of("goodput>=0.95")
    row = levels(need(quantity, "job.toml", for_=target.text, sure=0.8))["80 % of draws"]
    value = row["least" if less < 1 else "most"]
    for x, every, met in ((value, f"{row['interval']} s", True), (value * less, "", False)):
        settings = [f"{path}={x:.12g} {unit}", *([] if every else ["policy.optimal=time"])]
        flags = q.Flags(set=settings, **({"interval": every} if every else {}))  # type: ignore[typeddict-item]
        study = Study(q.one_case("job.toml", flags, ""), 4096)
        assert (target.met_by(study, 0).share >= 0.78) is met


def test_shares_cost_more() -> None:
    """The surer, the faster; and each row's share of draws is at least the one it is for."""
    rows = levels(need("write", "job.toml", for_="goodput>=0.92"))
    values = [rows[f"{share} % of draws"]["least"] for share in (50, 80, 95)]
    assert values == sorted(values)
    assert all(rows[f"{share} % of draws"]["met"] >= share / 100 for share in (50, 80, 95))
    assert rows["stated values"]["goodput"].value >= 0.92


def test_an_interval_has_two_edges() -> None:
    """Saving too often takes time, saving too rarely loses work."""
    row = levels(need("interval", "job.toml", for_="goodput>=0.95", draws=0))["stated values"]
    for side, beyond in (("least", 0.7), ("most", 1.5)):
        for interval, met in ((row[side], True), (row[side] * beyond, False)):
            study = Study(q.one_case("job.toml", q.Flags(interval=f"{interval} s"), ""), 0)
            assert (study.value("goodput", 0) >= 0.95) is met


def test_a_kept_interval_asks_for_more() -> None:
    """Each trial takes its best interval unless the job's is kept."""
    free, kept = (
        levels(need("write", "job.toml", for_="goodput>=0.95", draws=0, **flags))
        for flags in ({}, q.Flags(interval="30 min"))
    )
    assert free["stated values"]["least"] <= kept["stated values"]["least"]
    assert kept["stated values"]["interval"] == 1800.0


@pytest.mark.parametrize(
    "quantity", ["mtbf", "failures.rate", "policy.pinned", "write", "recovery"]
)
def test_figures_that_the_job_leaves_open(quantity: str) -> None:
    """They are asked for as if they were given."""
    found = need(quantity, "small-8b", for_="goodput>=0.5", draws=0)
    assert " is enough at the stated values" in found.says[0].words


def test_impossible() -> None:
    """Exit 3, the best that can be had, and what takes the time then."""
    found = asked("impossible")
    assert found.missed
    assert found.says[0].words.startswith("No write rate is enough.")
    assert "What remains there is " in found.says[1].words
    assert not asked("write").missed


def test_asked_again() -> None:
    """A document's cases and options give the same answer."""
    found = asked("rate-sure")
    twice = again(found.cases, **found.options)
    assert text(twice) == text(found)


def test_one_plan_at_a_time() -> None:
    with pytest.raises(InputError, match="one plan"):
        need("write", tier=["nas-hdd", "generic-pfs"])
    with pytest.raises(InputError, match="is for other verbs"):
        need("write", require=["goodput>=0.9"])


def test_a_figure_without_meaning_for_the_job_is_refused() -> None:
    with pytest.raises(InputError, match="gives its mtbf") as error:
        need("rate_factor", "job.toml")
    assert error.value.remedy == "ckptcost need mtbf"


def test_a_plan_that_does_not_work_meets_no_target() -> None:
    """Nobody knows what a run costs that loses its copies; one without room never starts."""
    lost = need("write", LLAMA, tier=["local-nvme-4xgen5"])
    full = need("write", "job.toml", set=["tier.capacity=3 TB"])
    for found, command in ((lost, "second_tier.id"), (full, "policy.keep_last=2")):
        assert found.says[0].words.startswith("This plan does not work as it stands.")
        assert command in found.says[0].command
        assert found.missed
        assert not found.table("levels").shown
    room = need("capacity", "job.toml", set=["tier.capacity=3 TB"], draws=0)
    assert "4 TB is enough" in room.says[1].words


@pytest.mark.parametrize(
    ("job", "target", "setting"),
    [("small-8b", "goodput>=0.97", ""), ("job.toml", "goodput>=0.9", "run.wall_limit=35 min")],
)
def test_more_of_what_is_enough_is_enough(job: str, target: str, setting: str) -> None:
    """The grid was judged at another interval than its edges: nothing was enough then."""
    found = need("write", job, for_=target, set=[setting] if setting else [], draws=512)
    assert not found.missed
    assert "No write rate" not in found.says[0].words


def test_what_is_not_known_meets_no_target_and_says_so() -> None:
    bare = "\n".join(x for x in SHORT.splitlines() if not x.startswith(("id =", "gpu_price")))
    Path("bare.toml").write_text(bare, encoding="utf-8")
    found = need("write", "bare.toml", for_="cost<=1000 USD", draws=64)
    assert found.missed == ["cost<=1000 USD cannot be said: cost is not known"]
    assert "--set cluster.gpu_price" in found.says[-1].command


def test_a_run_that_never_ends_does_not_save_rarely_enough() -> None:
    """The share of time spent on saving falls to nothing where nothing is achieved."""
    found = levels(need("interval", "job.toml", for_="overhead<=1 %", draws=0))
    assert 3600 < found["stated values"]["most"] < 10 * 86400.0


def test_digits_show_on_which_side_of_the_limit_it_is() -> None:
    target = q.target_of("goodput>=0.96")
    assert target.say(Range(0.95996, 0.95996, 0.95996)) == "useful training 95.996 %"
    assert q.target_of("safe<=1 min").say(Range(50.0, 50.0, 50.0)) == "safe after 50 s"
