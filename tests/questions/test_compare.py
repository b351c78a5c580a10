"""`ckptcost compare`: its printed text, what B may cost, and saved answers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ckptcost.answer import Range
from ckptcost.errors import InputError
from ckptcost.questions.compare import compare
from ckptcost.questions.model import model

from .plans import JOB, folder, is_printed, said, value  # noqa: F401

PRINTED: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "tier": (("job.toml",), {"tier": ["flash-shared"]}),
    "mode": (("job.toml", "mode=sync"), {}),
    "changes": (("small-8b", "second_every=1,interval=75 min"), {}),
    "three": (("llama31-405b-16k", "mode=async", "tier.write=300GB/s"), {}),
    "unknown-limit": (("llama31-405b-16k",), {"tier": ["aws-s3-standard"]}),
    "blocked": (("llama31-405b-16k",), {"tier": ["local-nvme-8xgen5"]}),
    "provisioned": (("llama31-405b-16k",), {"tier": ["azure-amlfs-500"]}),
    "jobs": (("job.toml", "other.toml"), {}),
    "same": (("job.toml", "job.toml"), {}),
    "saved": (("old.json", "new.json"), {}),
}


@pytest.fixture(autouse=True)
def answers(folder: None) -> None:  # noqa: F811
    Path("old.json").write_text(model("job.toml").to_json(), encoding="utf-8")
    Path("new.json").write_text(model("job.toml", mtbf="10 h").to_json(), encoding="utf-8")


@pytest.mark.parametrize("name", PRINTED)
def test_printed(name: str) -> None:
    plans, flags = PRINTED[name]
    is_printed(f"compare-{name}", compare(*plans, **flags))


def test_what_b_may_cost_is_what_it_saves_a_month() -> None:
    answer = compare("job.toml", tier=["flash-shared"])
    gain = value(answer, "cases", 0, "cost") - value(answer, "cases", 1, "cost")
    months = value(answer, "cases", 1, "wall") / (730 * 3600)
    found = re.search(r"B pays .* less than ([\d,]+) USD a month more than A", said(answer))
    assert found
    assert float(found[1].replace(",", "")) == pytest.approx(gain / months, rel=0.01)


def test_a_change_of_how_often_keeps_each_plans_own_interval() -> None:
    answer = compare("job.toml", "interval=2 h")
    assert [value(answer, "cases", row, "interval") for row in (0, 1)] == [1800.0, 7200.0]


def test_a_saved_answer_is_a_plan_beside_a_job() -> None:
    answer = compare("old.json", "other.toml")
    assert [*answer.cases] == ["A: old", "B: other"]
    assert value(answer, "cases", 0, "wall") > value(answer, "cases", 1, "wall")


def test_unknown_money_and_energy_are_neither_shown_nor_judged() -> None:
    answer = compare("bare.toml", "mode=sync")
    cost = value(answer, "cases", 0, "cost")
    assert cost != cost
    assert not re.search("costs|energy", said(answer))
    for words in ("Energy and emissions are not known", "Cost is not known", "cluster.gpu_price="):
        assert said(answer).count(words) == 1
    assert [row[0] for row in answer.table("measures").rows][-1] == "GPU-h lost"


def test_time_and_money_that_disagree_stand_in_one_sentence() -> None:
    answer = compare("job.toml", "gpu_price=1 USD,tier.write=20GB/s")
    assert re.search(
        r"^A ends sooner in .* draws, but B costs less in all draws\.", said(answer).strip()
    )
    assert "better" not in said(answer)


@pytest.mark.parametrize("change", ["mode=sync", "tier.write=80GB/s", "tier.setup=20s"])
def test_it_is_called_better_if_19_of_20_draws_say_so(change: str) -> None:
    answer = compare("job.toml", change)
    saved = str(answer.table("measures").rows[-3][-1])
    better = "is better: " in answer.says[0].words
    assert better == ("(-" not in saved)
    assert re.search(r"in (all|\d+ %|nearly all)( of)? draws", answer.says[0].words)


def test_the_input_that_decides_moves_the_difference() -> None:
    """The line of the bill that differs most hung on the fixed time of a save."""
    job = JOB.replace('write = "25 GB/s"', 'write = "25 GB/s"\nread = "40 GB/s"')
    Path("job.toml").write_text(job, encoding="utf-8")
    note = said(compare("job.toml", tier=["nas-hdd"], mode="sync"))
    assert "The difference depends most on the read rate" in note
    note = said(compare("job.toml", "mode=async", mode="sync"))
    assert "The difference depends most on the training speed lost" in note


def test_a_price_of_the_whole_tier_is_named_and_no_dollar_is_won_by_it() -> None:
    answer = compare("job.toml", "tier.standing_price=12 USD/h")
    assert "no difference between them but what storage charges" in said(answer)
    assert "B charges for the whole system, used or not (12 USD/h)" in said(answer)
    assert value(answer, "cases", 0, "cost_apart") == pytest.approx(
        value(answer, "cases", 1, "cost_apart")
    )


def test_plans_that_end_at_the_same_time_are_judged_by_the_rest() -> None:
    cheaper = compare("job.toml", "gpu_price=1 USD/GPU-h").says[0].words
    assert cheaper == "B is better: it ends at the same time and costs less in all draws."
    assert "takes less energy in all draws" in compare("job.toml", "site.pue=1.01").says[0].words


def test_a_change_of_the_second_tiers_turn_is_not_overruled() -> None:
    assert "no difference" not in said(compare("small-8b", "second_every=3"))


def test_of_three_plans_it_says_which_two_are_alike() -> None:
    answer = compare("job.toml", "tier.write=25GB/s", "tier.write=2GB/s")
    assert "no difference between A and B." in said(answer)


def test_saved_answers_name_what_changed() -> None:
    answer = compare("old.json", "new.json")
    rows = {row[1]: row for row in answer.table("changes").rows}
    before = model("job.toml").table("cases").rows[0]
    assert isinstance(before[1], Range)
    assert "failures.mtbf from 20 h to 10 h" in said(answer)
    assert rows["USD"][2].range.value < rows["USD"][3].range.value


@pytest.mark.parametrize(
    ("plans", "complaint"),
    [
        (("job.toml",), "nothing to compare"),
        (("job.toml", "modes=async"), "no key is called 'modes'"),
        (("old.json", "new.json", "old.json"), "more than two saved answers"),
        (("old.json", "absent.json"), "cannot be read"),
    ],
)
def test_wrong_plans_are_refused(plans: tuple[str, ...], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        compare(*plans)
