"""The interval screen's figures are those that `ckptcost optimize`, `model` and `solve` print for
the command it shows."""

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

from ckptcost.catalog.store import Catalog
from ckptcost.errors import InputError
from ckptcost.present.amounts import duration, number, share
from ckptcost.present.grid import Grid
from ckptcost.tui.desk import Desk
from ckptcost.tui.screens import interval_shown, solve
from ckptcost.tui.screens import interval_view as interval

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


@pytest.mark.parametrize(("name", "objective"), PAIRS)
def test_every_row_is_optimizes(cli: Callable[..., Any], name: str, objective: str) -> None:
    one = interval.studied(DESKS[name], objective)
    shown = interval_shown.view_of(one, interval.trial_of(one))
    document = printed(cli, interval.command(one))
    intervals, regrets = rows_of(document, "intervals"), rows_of(document, "regret")
    assert shown.points.rows[1].cells[0] == "now"
    for row in shown.points.rows[1:]:
        label = (
            f"{row.cells[0].partition(':')[0]}'s rule"
            if row.cells[0].startswith(("Young:", "Daly:"))
            else row.cells[0]
        )
        mine, theirs = cells(shown.points, row.cells[0]), intervals[label]
        assert mine["interval"] == duration(theirs["interval"])
        assert mine["goodput"] == share(theirs["goodput"])
        assert (mine["energy"], mine["cost"], mine["carbon"]) == tuple(
            number(theirs[key]) for key in ("energy", "cost", "carbon")
        )
        assert mine["over"] == share(regrets[label][f"regret_{objective}"])


@pytest.mark.parametrize("objective", ["time", "energy", "carbon"])
def test_the_curve_and_the_plateau_are_optimizes(cli: Callable[..., Any], objective: str) -> None:
    one = interval.studied(DESKS["one of four"], objective)
    chart = interval_shown.view_of(one, interval.trial_of(one)).chart
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
    rules = {rule.label: rule.at for rule in interval_shown.view_of(one, "8350 s").chart.rules}
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
    shown = interval_shown.view_of(one, trial)
    document = printed(cli, interval.command(one, trial))
    theirs, regret = rows_of(document, "intervals")["now"], rows_of(document, "regret")["now"]
    mine = cells(shown.points, "on trial")
    assert mine["interval"] == duration(theirs["interval"])
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
def test_what_is_lost_adds_up_to_what_the_run_shows(
    cli: Callable[..., Any], name: str, objective: str
) -> None:
    one = interval.studied(DESKS[name], objective)
    trial = interval.moved(one, interval.trial_of(one), -7)
    grid = interval_shown.view_of(one, trial).lost
    row = rows_of(printed(cli, interval.command(one, trial)), "intervals")["now"]
    whole = next(each for each in grid.rows if each.key == "total").order
    parts = [each.order for each in grid.rows if each.key != "total"]
    for column in range(1, 5):
        assert sum(float(part[column]) for part in parts) == pytest.approx(whole[column])  # type: ignore[arg-type]
    key = {"energy": "energy", "usd": "cost", "carbon": "carbon"}.get(objective)
    run = row["wall"] * (1.0 - row["goodput"]) / 3600.0 if key is None else row[key]
    per_day = (1.0 - row["goodput"]) * 1440.0 if key is None else row[key] / row["wall"] * 86400.0
    assert whole[3] == pytest.approx(run)
    assert whole[1] == pytest.approx(per_day)


def test_what_is_lost_to_what_is_the_bill_of_model(cli: Callable[..., Any]) -> None:
    one = interval.studied(DESKS["one of four"], "energy")
    grid = interval_shown.view_of(one, interval.trial_of(one)).lost
    document = printed(cli, "ckptcost model --tier generic-pfs")
    lines = {
        line["id"]: line["energy"]["value"] or 0.0
        for line in document["statements"][0]["components"]
        if line["ledger"] == "marginal"
    }
    mine = {row.key: row.order[3] for row in grid.rows}
    assert mine["redone"] == pytest.approx(lines["redone_work"])
    assert mine["restart"] == pytest.approx(lines["restart"])
    assert mine["loading"] == pytest.approx(lines["loading"])
    assert mine["saves"] == pytest.approx(
        lines["gpu_wait"] + lines["host_wait"] + lines["storage_write"] + lines["network"]
    )


def test_the_price_of_the_present_interval(cli: Callable[..., Any]) -> None:
    one = interval.studied(DESKS["one of four"], "energy")
    text, tone = interval_shown.view_of(one, interval.trial_of(one)).notes[0]
    document = printed(cli, interval.command(one))
    now, best = (
        rows_of(document, "intervals")["now"],
        rows_of(document, "intervals")["best for energy"],
    )
    regret = rows_of(document, "regret")["now"]["regret_energy"]
    assert (
        text == f"Now every 7,200 s: {share(regret)} more energy added and"
        f" {number(now['cost'] - best['cost'])} USD a run than every"
        f" {duration(best['interval'])}."
    )
    assert tone == "warn"


@pytest.mark.parametrize(
    ("desk", "objective", "rows", "word"),
    [
        (Desk(), "time", [("Young's rule", "good"), ("Daly's rule", "good")], "green"),
        (Desk(), "energy", [("Young: off", "bad"), ("Daly: rough", "warn")], "amber"),
        (
            Desk(base="llama31-405b-16k", tiers=("nas-hdd",)),
            "time",
            [("Young: off", "bad"), ("Daly's rule", "good")],
            "green",
        ),
    ],
)
def test_the_light_beside_the_rules_of_thumb(
    desk: Desk, objective: str, rows: list[tuple[str, str]], word: str
) -> None:
    """Each rule by what its own interval costs over the best; the figure stands in the row and in
    the sentence."""
    one = interval.studied(desk, objective)
    view = interval_shown.view_of(one, interval.trial_of(one))
    assert [(row.cells[0], row.tone) for row in view.points.rows[-2:]] == rows
    unseen = one.found.classic.daly_regret < 1e-4
    over = "less than 0.01 %" if unseen else view.points.rows[-1].cells[-1]
    tone = {"green": "good", "amber": "warn"}[word]
    assert [
        each for text, each in view.notes if f"costs {over} over the least" in text and word in text
    ] == [tone]
    assert not any("mislead" in text or "unsound" in text for text, _ in view.notes)


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
    chart = interval_shown.view_of(one, trial).chart
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
        view = interval_shown.view_of(one, interval.trial_of(one))
        assert view.points.note == "kgCO2e: location-based"
        row = rows_of(printed(cli, interval.command(one)), "intervals")["now"]
        assert cells(view.points, "now")["carbon"] == number(row["location"])
    assert view.chart.title.startswith("kgCO2e added over the interval")
    assert view.lost.title == "kgCO2e added a day"


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


def test_measures_come_round() -> None:
    objective, seen = "time", []
    for _ in range(4):
        objective = interval.next_objective(objective)
        seen.append(objective)
    assert seen == ["energy", "usd", "carbon", "time"]


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
    view = interval_shown.view_of(one, interval.trial_of(one))
    assert view.notes[0][1] == "bad"
    assert "hopeless, the run never ends" in view.notes[0][0]
    assert view.notes[1][0].startswith("Hopeless on nas-hdd: even at the best interval")
    assert not any(word in view.trial[0] + view.notes[1][0] for word in ("USD", "kWh"))
    assert cells(view.points, "now")["goodput"] == "never"
    assert cells(view.points, "now")["cost"] == "-"
    assert re.fullmatch(r"Hopeless every .*: the run never ends\.", view.trial[0])
    assert any(math.isnan(value) for value in view.chart.curves[0].ys)
    assert all(math.isfinite(dot.y) for dot in view.chart.dots)
    assert {row.cells[1] for row in view.lost.rows} == {"-"}


def test_where_the_best_is_asked_for_nothing_is_in_force() -> None:
    one = interval.studied(Desk().edited("policy.optimal", "usd"), "usd")
    view = interval_shown.view_of(one, interval.trial_of(one))
    assert one.now is None
    assert interval.trial_of(one) == interval.text_of(one.advised.interval_s)
    assert "No interval is in force" in view.notes[0][0]
    assert not [rule for rule in view.chart.rules if rule.kind == "now"]


def test_the_present_interval_is_on_the_axis_however_far_it_is() -> None:
    one = interval.studied(Desk().edited("policy.interval", "30 s"), "time")
    chart = interval_shown.view_of(one, interval.trial_of(one)).chart
    assert chart.x_range is not None
    assert chart.x_range[0] < 30.0
    assert min(chart.curves[0].xs) < 31.0
    assert list(chart.curves[0].xs) == sorted(chart.curves[0].xs)


def test_two_tiers_are_told_of() -> None:
    one = interval.studied(Desk(base="small-8b"), "time")
    assert any(
        "second tier" in text
        for text, _ in interval_shown.view_of(one, interval.trial_of(one)).notes
    )


def test_a_tier_that_is_in_no_catalogue(tmp_path: Path, cli: Callable[..., Any]) -> None:
    file = tmp_path / "job.toml"
    file.write_text(
        '[checkpoint]\nsize = "2 TB"\n[cluster]\nid = "h100-1024"\n[run]\nwork = "30'
        ' days"\n[tier]\nwrite = "20 GB/s"\n'
    )
    one = interval.studied(Desk(base=str(file)), "usd")
    assert (one.tier, one.now) == ("", None)
    view = interval_shown.view_of(one, interval.trial_of(one))
    best = rows_of(printed(cli, interval.command(one)), "intervals")["best for usd"]
    assert cells(view.points, "best for usd")["cost"] == number(best["cost"])


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
    document = printed(cli, found.command)
    assert [text for text, _ in found.lines[: len(document["findings"])]] == document["findings"]
    assert found.reached is all(each["met"] for each in document["requirements"])
    assert found.tables[0].rows


def test_what_cannot_be_reached_says_why() -> None:
    found = solve.solved(Desk(), "stall", "goodput>=0.999")
    assert not found.reached
    assert found.lines[0][0].startswith("INFEASIBLE")
    assert found.lines[0][1] == "bad"


@pytest.mark.parametrize("target", ["", "goodput", "goodput>=2", "speed>=3", "goodput<=0.9"])
def test_a_target_that_is_none(target: str) -> None:
    with pytest.raises(InputError):
        solve.solved(Desk(), "write", target)


def test_every_example_of_a_target_can_be_asked_for() -> None:
    for target in solve.targets().removeprefix("e.g. ").split(", "):
        assert solve.solved(Desk(), "interval", target).lines


def test_an_uncertain_optimum_shows_the_robust_interval(cli):
    desk = Desk(base="llama31-405b-16k").edited("policy.mode", "async")
    one = interval.studied(desk, "time")
    advised = one.advised
    assert advised is one.found.recommended
    assert advised.interval_s > 1.05 * one.best.interval_s
    view = interval_shown.view_of(one, interval.text_of(advised.interval_s))
    assert interval_shown.point_at(one, interval.text_of(advised.interval_s)) is advised
    rows = {row.cells[0]: row for row in view.points.rows}
    assert rows["robust interval"].cells[1] == duration(advised.interval_s)
    assert any(rule.label == "robust" for rule in view.chart.rules)
    said = " ".join(text for text, _ in view.notes)
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
    assert (
        "the robust interval for time is every" in interval_shown.view_of(one, "100 s").notes[0][0]
    )
