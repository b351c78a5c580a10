"""The interval screen: `optimize`'s tables, the trial among them, and `solve`'s answer."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.errors import InputError
from ckptcost.first.present.amounts import duration, number, share
from ckptcost.first.present.chart import Chart
from ckptcost.first.present.grid import Grid
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.screens import interval_view as interval
from ckptcost.first.tui.screens import solve

DESKS = {
    "one of four": replace(Desk(), chosen="generic-pfs"),
    "the first": Desk(),
    "two tiers": Desk(base="small-8b"),
    "async, edited": (
        Desk(base="llama31-405b-16k", tiers=("flash-shared", "nas-hdd"), chosen="nas-hdd")
        .edited("policy.mode", "async")
        .edited("policy.interval", "20 min")
    ),
}


PAIRS = [
    ("one of four", "time"),
    ("one of four", "energy"),
    ("the first", "usd"),
    ("two tiers", "carbon"),
    ("async, edited", "usd"),
]
_SEEN: dict[str, dict[str, Any]] = {}


def printed(cli: Callable[..., Any], command: str) -> dict[str, Any]:
    """What a command prints; asked once, since nothing changes it."""
    if command not in _SEEN:
        _SEEN[command] = _printed(cli, command)
    return _SEEN[command]


def _printed(cli: Callable[..., Any], command: str) -> dict[str, Any]:
    ran = cli(*shlex.split(command)[1:], "-f", "json")
    assert ran.code in (0, 3), ran.err
    found: dict[str, Any] = json.loads(ran.out)
    return found


def rows_of(document: dict[str, Any], table: str) -> dict[str, dict[str, Any]]:
    return {row["at"]: row for row in document["tables"][table]["rows"]}


def cells(grid: Grid, label: str) -> dict[str, str]:
    row = next(row for row in grid.rows if row.cells[0] == label)
    return {head.id: cell for head, cell in zip(grid.heads, row.cells, strict=True)}


def points(one: interval.Studied, trial: str = "") -> Grid:
    return interval.points(one, interval.point_at(one, trial or interval.trial_of(one)))


def chart_of(one: interval.Studied, trial: str = "") -> Chart:
    return interval.chart(one, interval.point_at(one, trial or interval.trial_of(one)))


@pytest.mark.parametrize(("name", "objective"), PAIRS)
def test_every_row_is_the_copied_commands(
    cli: Callable[..., Any], name: str, objective: str
) -> None:
    one = interval.studied(DESKS[name], objective)
    document = printed(cli, interval.command(one))
    regrets, grid = rows_of(document, "regret"), points(one)
    assert [row.cells[0] for row in grid.rows[:2]] == ["on trial", "now"]
    for row in grid.rows[1:]:
        mine = cells(grid, row.cells[0])
        assert mine["over"] == share(regrets[row.cells[0]][f"regret_{objective}"])
        assert mine["cost"] == number(rows_of(document, "intervals")[row.cells[0]]["cost"])


@pytest.mark.parametrize("objective", ["time", "energy", "carbon"])
def test_the_curve_and_the_plateau_are_optimizes(cli: Callable[..., Any], objective: str) -> None:
    one = interval.studied(DESKS["one of four"], objective)
    chart = chart_of(one)
    document = printed(cli, interval.command(one))
    key = {"time": "goodput", "energy": "energy", "usd": "cost", "carbon": "carbon"}[objective]
    theirs = {row["interval"]: row[key] for row in document["tables"]["curve"]["rows"]}
    mine = dict(zip(chart.curves[0].xs, chart.curves[0].ys, strict=True))
    assert list(mine) == pytest.approx(sorted(theirs))
    assert list(mine.values()) == pytest.approx([theirs[at] for at in sorted(theirs)])
    ends = rows_of(document, "regret")[f"best for {objective}"]
    assert (chart.bands[0].begin, chart.bands[0].end) == pytest.approx(
        (ends["plateau_low"], ends["plateau_high"])
    )
    best = next(rule for rule in chart.rules if rule.kind == "best")
    assert best.at == pytest.approx(ends["interval"])


def test_every_objectives_best_has_a_rule() -> None:
    one = interval.studied(DESKS["one of four"], "energy")
    rules = {rule.label: rule.at for rule in chart_of(one, "8350 s").rules}
    assert set(rules) == {"best", "robust", "time, usd", "now", "trial"}
    assert rules["robust"] == one.advised.interval_s
    assert rules["now"] == 7200.0
    assert rules["trial"] == 8350.0


@pytest.mark.parametrize("objective", ["time", "usd"])
def test_a_trial_is_what_optimize_prints_once_it_is_in_force(
    cli: Callable[..., Any], objective: str
) -> None:
    desk = DESKS["one of four"]
    one = interval.studied(desk, objective)
    trial = interval.moved(one, interval.trial_of(one), 20)
    document = printed(cli, interval.command(one, trial))
    theirs, regret = rows_of(document, "intervals")["now"], rows_of(document, "regret")["now"]
    mine = cells(points(one, trial), "on trial")
    assert (mine["goodput"], mine["energy"], mine["cost"]) == (
        share(theirs["goodput"]),
        number(theirs["energy"]),
        number(theirs["cost"]),
    )
    assert mine["over"] == share(regret[f"regret_{objective}"])
    again = interval.studied(interval.applied(one, desk, trial), objective)
    assert again.now is not None
    assert again.now.interval_s == pytest.approx(theirs["interval"])
    assert interval.trial_of(again) == trial


@pytest.mark.parametrize(("name", "objective"), PAIRS)
def test_what_is_lost_adds_up_to_what_the_run_shows(name: str, objective: str) -> None:
    one = interval.studied(DESKS[name], objective)
    trial = interval.moved(one, interval.trial_of(one), -7)
    grid = interval.parts(one, interval.point_at(one, trial))
    table = points(one, trial)
    whole = dict(zip((head.id for head in table.heads), table.rows[0].order, strict=True))
    key = {"energy": "energy", "usd": "cost", "carbon": "carbon"}.get(objective)
    parts = sum(float(row.order[1] or 0.0) for row in grid.rows)
    assert parts == pytest.approx(1.0 if key is None else whole[key], rel=1e-6)


def test_the_price_of_the_present_interval_comes_first(cli: Callable[..., Any]) -> None:
    one = interval.studied(DESKS["one of four"], "energy")
    (text, tone), *others = interval.notes(one)
    document = printed(cli, interval.command(one))
    assert text.startswith("As the scenario stands: every 7,200 s, ")
    assert tone == "warn"
    assert {text, *(each for each, _ in others)} >= set(document["findings"])


@pytest.mark.parametrize(
    ("desk", "objective", "tones", "word"),
    [
        (Desk(), "time", ["good", "good"], "green"),
        (Desk(), "energy", ["bad", "warn"], "amber"),
        (Desk(base="llama31-405b-16k", tiers=("nas-hdd",)), "time", ["bad", "good"], "green"),
    ],
)
def test_the_light_beside_the_rules_of_thumb(
    desk: Desk, objective: str, tones: list[str], word: str
) -> None:
    """Each rule by what its own interval costs over the best; the figure stands in the row and in
    the sentence."""
    one = interval.studied(desk, objective)
    rules = [row for row in points(one).rows if row.cells[0].endswith("'s rule")]
    assert [row.tone for row in rules] == tones
    over = next(h for h, head in enumerate(points(one).heads) if head.id == "over")
    assert not any(row.tone == "bad" and row.cells[over] == "0 %" for row in rules)
    tone = {"green": "good", "amber": "warn"}[word]
    assert [each for text, each in interval.notes(one) if f"({word})" in text] == [tone]


# moving


def test_each_press_moves_the_trial_and_never_past_the_ends() -> None:
    one = interval.studied(Desk(), "time")
    low_s, high_s = one.reach_s
    trial, seen = interval.trial_of(one), set()
    for _ in range(200):
        assert trial not in seen
        seen.add(trial)
        further = interval.moved(one, trial, 1)
        if further == interval.text_of(high_s):
            break
        trial = further
    assert interval.moved(one, further, 1) == interval.text_of(high_s)
    for _ in range(300):
        further = interval.moved(one, further, -1)
    assert further == interval.text_of(low_s)
    assert interval.picked(one, further, 1e12) == interval.text_of(high_s)
    assert one.reach_s[1] <= float(one.found.option.scenario.work_s)


FAR = {
    "an interval far beyond the run": (
        Desk(base="bloom-176b").edited("policy.interval", "500 d"),
        "",
    ),
    "a run shorter than its interval": (Desk(base="bloom-176b").edited("run.work", "1 h"), ""),
    "a trial that another measure left there": (Desk(), "9000 d"),
    "a trial far too short": (Desk(), "0.01 s"),
}


@pytest.mark.parametrize("name", FAR)
def test_longer_is_never_shorter_and_what_is_in_force_is_on_the_axis(name: str) -> None:
    desk, trial = FAR[name]
    one = interval.studied(desk, "time")
    trial = trial or interval.trial_of(one)
    chart = chart_of(one, trial)
    low_s, high_s = chart.x_range or (0.0, 0.0)
    assert one.now is not None
    for rule in chart.rules:
        assert rule.label not in ("now", "trial") or low_s < rule.at < high_s
    assert low_s < interval.seconds_of(one, trial) < high_s
    assert list(chart.curves[0].xs) == sorted(chart.curves[0].xs)
    assert chart.curves[0].xs[0] == pytest.approx(low_s)
    assert chart.curves[0].xs[-1] == pytest.approx(high_s)
    for steps in (1, 10, -1, -10):
        before = interval.seconds_of(one, trial)
        after = interval.seconds_of(one, interval.moved(one, trial, steps))
        assert (after - before) * steps >= 0
        if interval.moved(one, trial, steps) == trial:
            assert (
                f"no {'longer' if steps > 0 else 'shorter'} than every {duration(before)}"
                in interval.why_stayed(one, trial, steps)
            )


def test_where_the_run_ends_the_curve_does_and_says_so() -> None:
    one = interval.studied(Desk(), "time")
    trial = interval.picked(one, "1 h", 1e12)
    assert "training" not in interval.why_stayed(one, trial, 1)
    short = interval.studied(Desk().edited("run.work", "20 h"), "time")
    trial = interval.picked(short, "1 h", 1e12)
    assert interval.moved(short, trial, 1) == trial == "20 h"
    assert (
        interval.why_stayed(short, trial, 1)
        == "The curve goes no longer than every 20 h, and the run has 20 h of training."
    )


@pytest.mark.parametrize(
    ("path", "text"),
    [("policy.saves", "70"), ("policy.interval", "1234.56 s"), ("policy.per_day", "7")],
)
def test_what_is_in_force_is_applied_as_it_is(path: str, text: str) -> None:
    desk = replace(Desk(), chosen="generic-pfs").edited(path, text)
    one = interval.studied(desk, "time")
    assert one.now is not None
    trial = interval.trial_of(one)
    assert interval.parse(trial, "s") != one.now.interval_s
    assert interval.applied(one, desk, trial) is desk
    away = interval.moved(one, interval.moved(one, trial, 5), -1)
    other = interval.applied(one, desk, away)
    assert dict(other.edits) == {"policy.interval": away}
    best = interval.applied(one, desk, interval.text_of(one.best.interval_s))
    again = interval.studied(best, "time")
    assert again.now is not None
    assert again.now.interval_s == pytest.approx(one.best.interval_s, rel=1e-6)


def test_every_kgco2e_says_which(cli: Callable[..., Any]) -> None:
    for objective in ("time", "carbon"):
        one = interval.studied(DESKS["one of four"], objective)
        assert "kgCO2e: location-based" in points(one).note
        row = rows_of(printed(cli, interval.command(one)), "intervals")["now"]
        assert cells(points(one), "now")["carbon"] == number(row["location"])
    assert chart_of(one).title.startswith("kgCO2e added over the interval")


def test_another_catalogue_or_a_rewritten_file_is_another_study(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('extends = "gpt4-scale-2tb"\n')
    desk = Desk(base=str(mine))
    stamp = desk.stamp()
    assert interval.same_study(replace(desk, metric="usd"), desk, stamp)
    assert not interval.same_study(replace(desk, catalog=Catalog()), desk, stamp)
    mine.write_text('extends = "gpt4-scale-2tb"\n[cluster]\ngpus = 512\n')
    assert not interval.same_study(replace(desk, metric="usd"), desk, stamp)


def test_a_trial_reads_back_as_what_is_shown() -> None:
    for seconds in (0.00123, 7.0, 59.99, 4183.27, 53_333.3, 1.234e6):
        text = interval.text_of(seconds)
        one = interval.studied(Desk(), "time")
        assert interval.seconds_of(one, text) == pytest.approx(seconds, rel=0.006)
        assert interval.text_of(interval.seconds_of(one, text)) == text


def test_applying_replaces_whatever_said_how_often() -> None:
    desk = Desk().edited("policy.saves", "50")
    desk = interval.applied(interval.studied(desk, "time"), desk, "20 min")
    assert dict(desk.edits) == {"policy.interval": "20 min"}


def test_the_next_tier_comes_round() -> None:
    desk = Desk()
    seen = [desk.tier_chosen()]
    for _ in range(4):
        desk = interval.on_next_tier(desk)
        seen.append(desk.tier_chosen())
    assert seen == [*Desk().tiers_shown(), Desk().tiers_shown()[0]]


# states


def test_without_failures_there_is_no_best_interval() -> None:
    with pytest.raises(InputError, match="never to save"):
        interval.studied(Desk().edited("failures.rate", "0 /1000 node-days"), "time")


def test_without_a_price_there_is_none_for_dollars(unpriced_gpus: None) -> None:
    desk = Desk().edited("cluster.accelerator", "gb300")
    assert interval.studied(desk, "time").found.option.known
    with pytest.raises(InputError, match=r"cluster\.gpu_price"):
        interval.studied(desk, "usd")


def test_a_tier_without_a_rate_says_so(unrated_s3: None) -> None:
    with pytest.raises(InputError, match="the write rate of aws-s3-standard is not known"):
        interval.studied(Desk(tiers=("aws-s3-standard",)), "time")


def test_a_run_that_never_ends_at_the_present_interval() -> None:
    one = interval.studied(Desk().edited("cluster.gpus", "100000"), "usd")
    notes, trial = interval.notes(one), interval.point_at(one, interval.trial_of(one))
    assert notes[0][0].startswith("Hopeless on nas-hdd: even at the best interval")
    assert notes[0][1] == "bad"
    assert not any(unit in text for text, _ in notes[:2] for unit in ("USD", "kWh"))
    assert next(row.tone for row in points(one).rows if row.cells[0] == "now") == "bad"
    assert re.fullmatch(r"Hopeless every .*: the run never ends\.", interval.trial_line(one, trial))
    assert any(math.isnan(value) for value in chart_of(one).curves[0].ys)
    assert all(math.isfinite(dot.y) for dot in chart_of(one).dots)


def test_where_the_best_is_asked_for_nothing_is_in_force() -> None:
    one = interval.studied(Desk().edited("policy.optimal", "usd"), "usd")
    assert one.now is None
    assert interval.trial_of(one) == interval.text_of(one.advised.interval_s)
    assert "now" not in [row.cells[0] for row in points(one).rows]
    assert not [rule for rule in chart_of(one).rules if rule.kind == "now"]


def test_the_present_interval_is_on_the_axis_however_far_it_is() -> None:
    one = interval.studied(Desk().edited("policy.interval", "30 s"), "time")
    chart = chart_of(one)
    assert chart.x_range is not None
    assert chart.x_range[0] < 30.0
    assert min(chart.curves[0].xs) < 31.0
    assert list(chart.curves[0].xs) == sorted(chart.curves[0].xs)


def test_two_tiers_are_told_of() -> None:
    one = interval.studied(Desk(base="small-8b"), "time")
    assert any("second tier" in text for text, _ in interval.notes(one))


def test_a_tier_that_is_in_no_catalogue(tmp_path: Path, cli: Callable[..., Any]) -> None:
    file = tmp_path / "job.toml"
    file.write_text(
        '[checkpoint]\nsize = "2 TB"\n[cluster]\nid = "h100-1024"\n[run]\nwork = "30'
        ' days"\n[tier]\nwrite = "20 GB/s"\n'
    )
    one = interval.studied(Desk(base=str(file)), "usd")
    assert (one.tier, one.now) == ("", None)
    best = rows_of(printed(cli, interval.command(one)), "intervals")["best for usd"]
    assert cells(points(one), "best for usd")["cost"] == number(best["cost"])


def test_a_change_of_the_tier_itself_holds_here_too() -> None:
    desk = Desk().edited("tier.id", "flash-shared").edited("tier.setup", "2 s")
    one = interval.studied(desk, "time")
    assert one.tier == "flash-shared"
    assert one.found.option.tier_id == "flash-shared"
    assert float(one.found.option.scenario.tier.setup_s) == 2.0
    both = interval.studied(
        replace(desk, tiers=("nas-hdd", "generic-pfs"), chosen="generic-pfs"), "time"
    )
    assert both.found.option.tier_id == "generic-pfs"


# backwards


@pytest.mark.parametrize("what", solve.QUANTITIES)
def test_the_answer_backwards_is_solves(cli: Callable[..., Any], what: str) -> None:
    desk = DESKS["one of four"]
    found = solve.solved(desk, what, " goodput>=0.9 ")
    document = printed(cli, solve.command(desk, what, " goodput>=0.9 "))
    said = [text for text, _ in solve.lines_of(found)]
    assert said[: len(document["findings"])] == document["findings"]


def test_what_cannot_be_reached_says_why() -> None:
    said, tone = solve.lines_of(solve.solved(Desk(), "stall", "goodput>=0.999"))[0]
    assert said.startswith("INFEASIBLE")
    assert tone == "bad"


@pytest.mark.parametrize("target", ["", "goodput", "goodput>=2", "speed>=3", "goodput<=0.9"])
def test_a_target_that_is_none(target: str) -> None:
    with pytest.raises(InputError):
        solve.solved(Desk(), "write", target)


def test_every_example_of_a_target_can_be_asked_for() -> None:
    for target in solve.targets().removeprefix("e.g. ").split(", "):
        assert solve.solved(Desk(), "interval", target).findings


def test_an_uncertain_optimum_shows_the_robust_interval(cli):
    desk = Desk(base="llama31-405b-16k").edited("policy.mode", "async")
    one = interval.studied(desk, "time")
    advised = one.advised
    assert advised is one.found.recommended
    assert advised.interval_s > 1.05 * one.best.interval_s
    assert interval.point_at(one, interval.text_of(advised.interval_s)) is advised
    robust = next(row for row in points(one).rows if row.cells[0] == "robust interval")
    assert (robust.order[1], robust.tone) == (advised.interval_s, "best")
    assert any(rule.label == "robust" for rule in chart_of(one).rules)
    said = " ".join(text for text, _ in interval.notes(one))
    assert "The best interval is uncertain" in said
    document = printed(cli, interval.command(one, interval.text_of(advised.interval_s)))
    assert rows_of(document, "robust")["robust interval"]["interval"] == pytest.approx(
        advised.interval_s, rel=1e-9
    )
    assert rows_of(document, "intervals")["robust interval"]["interval"] == pytest.approx(
        advised.interval_s, rel=1e-9
    )


def test_without_an_interval_in_force_the_trial_begins_at_what_is_advised():
    desk = Desk(base="llama31-405b-16k").edited("policy.mode", "async")
    one = interval.studied(desk.edited("policy.optimal", "time"), "time")
    assert one.now is None
    assert interval.trial_of(one) == interval.text_of(one.advised.interval_s)
    assert interval.notes(one)[0][0].startswith("Robust for time: save every")


TWO = Desk(base="small-8b", tiers=("nas-hdd", "flash-shared"))


def test_another_tier_is_another_study():
    assert interval.same_study(TWO, TWO)
    assert not interval.same_study(TWO, replace(TWO, chosen="flash-shared"))


@pytest.mark.parametrize(("objective", "log"), [("time", False), ("energy", True)])
def test_shares_of_time_stand_on_a_plain_axis_and_amounts_on_a_log_one(objective, log):
    one = interval.studied(Desk(base="small-8b"), objective)
    shown = interval.chart(one, one.best)
    assert (shown.x_log, shown.y_log) == (True, log)


@pytest.mark.parametrize(("steps", "there"), [(0.1, "1020 s"), (-0.1, "999 s")])
def test_the_smallest_step_moves_the_last_digit_that_is_shown(steps, there):
    assert interval.moved(interval.studied(Desk(base="small-8b"), "time"), "1010 s", steps) == there


def test_the_interval_in_force_is_meant_exactly():
    one = interval.studied(Desk(base="small-8b", edits={"policy.interval": "1234.56 s"}), "time")
    assert interval.trial_of(one) == "1230 s"
    assert interval.seconds_of(one, "1230 s") == 1234.56


def test_one_row_is_the_best():
    one = interval.studied(Desk(base="small-8b"), "time")
    rows = interval.points(one, one.best).rows
    assert [row.cells[0] for row in rows if row.tone == "best"] == ["robust interval"]
    sure = interval.studied(Desk(base="opt-175b"), "time")
    rows = interval.points(sure, sure.best).rows
    assert [row.cells[0] for row in rows if row.tone == "best"] == ["best for time"]


def test_an_interval_as_good_as_the_best_is_no_reason_to_warn():
    best_s = interval.studied(Desk(base="small-8b"), "energy").best.interval_s
    tones = {}
    for said in (interval.text_of(best_s), interval.text_of(best_s * 8)):
        one = interval.studied(Desk(base="small-8b", edits={"policy.interval": said}), "energy")
        tones[said] = next(
            row.tone for row in interval.points(one, one.best).rows if row.cells[0] == "now"
        )
    assert list(tones.values()) == ["", "warn"]
