"""`ckptcost compare`: its printed text, what B may cost, and saved answers."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from ckptcost.answer import Answer, Range
from ckptcost.errors import InputError
from ckptcost.questions.compare import compare
from ckptcost.questions.model import model
from ckptcost.write import text

from .plans import JOB, value, words

GOLDEN = Path(__file__).with_name("golden")
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
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("job.toml").write_text(JOB, encoding="utf-8")
    Path("other.toml").write_text(JOB.replace("25 GB/s", "50 GB/s"), encoding="utf-8")
    Path("old.json").write_text(model("job.toml").to_json(), encoding="utf-8")
    Path("new.json").write_text(model("job.toml", mtbf="10 h").to_json(), encoding="utf-8")


@pytest.mark.parametrize("name", PRINTED)
def test_printed(name: str) -> None:
    """Set UPDATE=1 to write what is printed now."""
    plans, flags = PRINTED[name]
    answer = compare(*plans, **flags)
    printed = text(answer, width=80) + "\n"
    path = GOLDEN / f"compare-{name}.txt"
    if os.environ.get("UPDATE"):
        path.write_text(printed, encoding="utf-8")
    assert max(map(len, printed.splitlines())) <= 80
    assert max(len(each.split()) for each in words(answer)) <= 25
    assert printed == path.read_text(encoding="utf-8")


def said(answer: Answer) -> str:
    return "\n".join(each.words for each in [*answer.says, *answer.notes])


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
    bare = re.sub(r'(id = "h100-1024"|gpu_price = .*)\n', "", JOB)
    Path("bare.toml").write_text(bare, encoding="utf-8")
    answer = compare("bare.toml", "mode=sync")
    cost = value(answer, "cases", 0, "cost")
    assert cost != cost
    assert not re.search("USD|kWh|costs|energy", said(answer))
    assert [row[0] for row in answer.table("measures").rows][-1] == "GPU-h lost"


def test_ranges_across_zero_are_never_called_better_without_a_share() -> None:
    for plans in (("job.toml", "mode=sync"), ("llama31-405b-16k", "mode=async")):
        answer = compare(*plans)
        for each in answer.says:
            if "better" in each.words:
                assert re.search(
                    r"in (all|no|\d+ %|nearly all|hardly any) (of )?draws?", each.words
                )


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
