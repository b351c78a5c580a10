"""The model's view against `ckptcost model` with the flags it copies: the same numbers, and
sentences that say no more than they do."""

from __future__ import annotations

import itertools
import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from ckptcost.first.errors import InputError
from ckptcost.first.jobs.model import Answer, case_of
from ckptcost.first.present.amounts import number
from ckptcost.first.report.rows import COLUMNS
from ckptcost.first.report.studies.model import study_of
from ckptcost.first.tui import files
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.screens import model_view as model
from ckptcost.first.tui.screens.model_runs import (
    METRICS,
    TierRuns,
    base_of,
    best_of,
    note_of,
    undecided_of,
)
from ckptcost.first.tui.screens.model_view import headline_of
from ckptcost.first.tui.screens.tiers_view import weighed

DESKS = {
    "as it is": Desk(),
    "another tier looked at": Desk(chosen="ddn-exascaler-20"),
    "tiers of one's own": Desk(
        tiers=("flash-shared", "nas-hdd"), chosen="nas-hdd", baseline="nas-hdd"
    ),
    "changed": Desk(edits={"cluster.gpus": "2048", "checkpoint.size": "7 TB", "site.grid": "FRA"}),
    "asynchronous": Desk(
        edits={"policy.mode": "async"}, tiers=("generic-pfs", "local-nvme-8xgen5")
    ),
    "every half hour": Desk(edits={"policy.interval": "30 min"}),
    "the best interval": Desk(
        base="llama31-405b-16k",
        edits={"policy.optimal": "usd"},
        tiers=("flash-shared", "generic-pfs"),
    ),
    "two tiers": Desk(base="small-8b", tiers=("local-nvme-4xgen5", "nas-hdd")),
    "one tier": Desk(base="micron-100k"),
}


def report_of(view, cli):
    """What the command line says to the flags that the screen copies, to the first of its
    commands."""
    words = shlex.split(model.command(view).split("; ")[0])
    assert words[:2] == ["ckptcost", "model"]
    ran = cli(*words[1:], "-f", "json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def study_of_view(view):
    return study_of(Answer((case_of(view.resolved),)), view.desk.catalog)


def notes_on(view):
    return model.settled(view).notes


def own_row(report, tier):
    """The first of a tier's cases is the one at the cadence in force."""
    return next(row for row in cases_of(report) if row["tier"] == tier)


def cases_of(report):
    return report["tables"]["cases"]["rows"]


@pytest.mark.parametrize("name", DESKS)
def test_every_figure_of_every_tier_is_the_command_lines(name, cli):
    view = model.evaluate(DESKS[name])
    report = report_of(view, cli)
    assert cases_of(report)[0]["tier"] == view.looked.key
    for run in view.runs:
        row = own_row(report, run.key)
        assert [each for each in COLUMNS if run.row[each] != pytest.approx(row[each])] == []


@pytest.mark.parametrize("metric", [each for each in METRICS if each != "time"])
@pytest.mark.parametrize("name", ["as it is", "tiers of one's own"])
def test_so_many_saves_are_the_saves_of_the_case_with_that_count(name, metric, cli):
    desk = replace(DESKS[name], metric=metric)
    view = model.evaluate(desk)
    report = report_of(view, cli)
    counts = {
        float(head.id[1:]): at for at, head in enumerate(view.grid.heads) if head.id.startswith("x")
    }
    assert sorted(counts) == [100.0, 1000.0]
    for row in view.grid.rows:
        for saves, at in counts.items():
            case = next(c for c in cases_of(report) if c["tier"] == row.key and c["saves"] == saves)
            theirs = case[f"saves_{METRICS[metric].q.column}"]
            assert row.cells[at] == number(theirs)


def printed_by(view, cli):
    """The commands that the screen copies, each with what it prints."""
    found = {}
    for line in model.command(view).split("; "):
        ran = cli(*shlex.split(line)[1:])
        assert ran.code == 0, ran.err
        found[shlex.split(line)[1]] = " ".join(ran.out.split())
    return found


@pytest.mark.parametrize(
    ("metric", "objective", "label", "unit"),
    [
        ("kwh", "energy", "energy added", "kWh"),
        ("usd", "usd", "cost added", "USD"),
        ("gpuh", "time", "GPU-hours lost", "GPU-h"),
        ("time", "time", "GPU-hours lost", "GPU-h"),
    ],
)
def test_the_headline_is_the_difference_that_the_command_line_prints(
    metric, objective, label, unit, cli
):
    view = model.evaluate(Desk(metric=metric))
    out = printed_by(view, cli)["compare"]
    assert f"policy.optimal={objective}" in model.command(view)
    said, tone = model.settled(view).headline
    assert tone == "best"
    told = re.fullmatch(
        r"Save every (.*) on ddn-exascaler-40: (.*) less than now on nas-hdd, every 7,200 s;"
        rf" p5-p95 (.*)-(.*) {unit}\.",
        said,
    )
    assert f"B: {label} -{told[2]} (" in out
    assert f"p5-p95 -{told[4]} {unit} to -{told[3]} {unit}" in out
    assert f"training time between saves 7,200 s {told[1]} " in out
    first, tone = view.headline
    assert said.startswith(first.rstrip(".")), "typing shows the same without its range"
    for word in re.findall(r"[\d.,]+\d", view.beside[0]):
        assert word in out


def test_the_advised_tier_is_the_best_of_all_at_their_own_intervals():
    """The base saves so rarely that the order at its interval is not that of the best ones."""
    desk = Desk(tiers=("nas-hdd", "generic-pfs", "ddn-exascaler-40"), metric="usd")
    view = model.evaluate(desk)
    at_best = weighed(desk, "usd")
    assert view.advice.tier == at_best.best("best")
    least = float(at_best.found.best.outcome.run.total("cost_usd"))
    assert float(view.advice.pair.cases[1].outcome.run.total("cost_usd")) == pytest.approx(least)


@pytest.mark.parametrize("metric", METRICS)
def test_the_best_tier_has_the_least_whole_run(metric):
    view = model.evaluate(Desk(tiers=("nas-hdd", "ddn-exascaler-40", "generic-pfs"), metric=metric))
    column = METRICS[metric].column("run")
    at = next(i for i, head in enumerate(view.grid.heads) if head.id == column)
    least = min(view.grid.rows, key=lambda row: row.order[at])
    assert [row.key for row in view.grid.rows if row.tone == "best"] == [least.key]


@pytest.mark.parametrize(("baseline", "key"), [("", "nas-hdd"), ("generic-pfs", "generic-pfs")])
def test_now_is_the_base_of_the_tiers_screen(baseline, key):
    desk = Desk(baseline=baseline)
    view = model.evaluate(desk)
    assert view.base.key == key == base_of(desk, weighed(desk, "energy").runs).key
    assert [row.key for row in view.grid.rows if row.tone == "base"] == [key]
    assert f"less than now on {key}, every 7,200 s" in view.headline[0]
    assert view.grid.title.endswith(f"base {key}")


def test_where_the_base_is_best_only_its_interval_changes(cli):
    view = model.evaluate(Desk(baseline="ddn-exascaler-40"))
    assert re.fullmatch(
        r"Save every 2,130 s on ddn-exascaler-40: .* kWh less than now, every 7,200 s\.",
        view.headline[0],
    )
    assert view.advice.variant == "policy.optimal=energy"
    assert "--tier ddn-exascaler-40" in model.command(view)
    assert "B: energy added -" in printed_by(view, cli)["compare"]


def test_what_is_as_good_as_the_best_is_left_as_it_is():
    every = model.evaluate(Desk(chosen="ddn-exascaler-40")).advice.every_s
    desk = Desk(tiers=("ddn-exascaler-40",), edits={"policy.interval": f"{every:.0f} s"})
    said, tone = model.evaluate(desk).headline
    assert said == (
        "Leave it as it is, every 2,130 s on ddn-exascaler-40: within 1 % of the least kWh."
    )
    assert tone == "good"


def test_a_run_that_makes_no_headway_is_no_measure_of_what_is_less():
    view = model.evaluate(Desk(edits={"policy.saves": "1"}))
    assert re.fullmatch(
        r"Save every 2,130 s on ddn-exascaler-40\. As it is now on nas-hdd, every 8.33 d, the run"
        r" makes next to no headway \(goodput 0.198 %\)\.",
        view.headline[0],
    )
    assert view.beside == ("", "")


def test_without_failures_there_is_a_tier_to_take_and_no_interval(cli):
    view = model.evaluate(Desk(edits={"failures.rate": "0 /1000 node-days"}))
    assert re.fullmatch(
        r"Take ddn-exascaler-40: .* kWh less than now on nas-hdd\.", view.headline[0]
    )
    assert view.advice.variant == "tier.id=ddn-exascaler-40"
    assert "B: energy added -" in printed_by(view, cli)["compare"]


def test_a_baseline_without_figures_is_said_to_have_none(unrated_s3):
    desk = Desk(tiers=("nas-hdd", "flash-shared", "aws-s3-standard"), baseline="aws-s3-standard")
    view = model.evaluate(desk)
    assert "aws-s3-standard, which others are held against, has no figures" in view.headline[0]
    assert "compare" not in model.command(view)


def without(run: TierRuns, line_id: str, quantity: str) -> TierRuns:
    """A tier of which a line of the bill is not known."""
    case = run.case
    lines = (
        line._replace(**{quantity: float("nan")}) if line.id == line_id else line
        for line in case.outcome.run.lines
    )
    outcome = case.outcome._replace(run=case.outcome.run._replace(lines=tuple(lines)))
    return run._replace(found=case._replace(outcome=outcome))


def test_sums_that_lack_different_lines_have_no_best():
    view = model.evaluate(Desk())
    usd, kwh = METRICS["usd"], METRICS["kwh"]
    runs = [without(view.runs[0], "retention", "cost_usd"), *view.runs[1:]]
    assert best_of(view.runs, usd) is not None
    assert best_of(runs, usd) is None
    keys = undecided_of(runs, usd)
    assert keys == ("tier.storage_price",)
    assert best_of(runs, kwh) is best_of(view.runs, kwh)
    said, tone = headline_of(usd, runs[0], None, runs[0], keys)
    assert (
        said == "No tier is called best for usd: tier.storage_price is known for some of them only."
    )
    assert tone == "warn"
    lone = view.advice._replace(
        pair=view.advice.pair._replace(cases=(runs[0].case, view.advice.pair.cases[1])),
    )
    said, tone = headline_of(usd, runs[0], lone, runs[0])
    assert said.endswith(
        "How much that changes is not known: keeping the bytes is known for one of the two only."
    )
    assert tone == "warn"


def test_what_is_in_no_sum_of_the_metric_is_said():
    view = model.evaluate(Desk())
    assert view.grid.note == ""
    runs = [without(view.runs[0], "network", "energy_j"), *view.runs[1:]]
    assert (
        note_of(METRICS["kwh"], runs)
        == "none is best: tier.network_energy is known for some of them only; "
        "left out because unknown: network to storage [nas-hdd]"
    )
    every = [without(run, "network", "energy_j") for run in view.runs]
    assert note_of(METRICS["kwh"], every) == "left out because unknown: network to storage"
    assert model.evaluate(Desk(edits={"cluster.accelerator": "tpu-v4"})).grid.note == "", (
        "where there are no sums nothing is left out"
    )


def test_a_tier_that_takes_less_energy_and_more_money_says_both():
    """GPUs nearly for nothing, and every checkpoint kept on storage that asks more rent."""
    edits = {"policy.keep_last": "all", "cluster.gpu_price": "0.01 USD/GPU-h"}
    view = model.evaluate(Desk(tiers=("object-store", "ddn-exascaler-40"), edits=edits))
    assert view.advice.tier == "ddn-exascaler-40"
    assert " kWh less than now on object-store" in view.headline[0]
    assert re.match(r"Also .* USD more, .* GPU-h less; goodput", view.beside[0])


# ---- pictures


@pytest.mark.parametrize("metric", METRICS)
def test_the_course_of_a_run_ends_at_its_total(metric):
    view = model.evaluate(Desk(metric=metric))
    rows = model.settled(view).course.rows
    for before, after in itertools.pairwise(rows[:-1]):
        assert after.parts[0].begin == before.parts[0].end
    total = view.looked.row[model.counted_in(view.metric).column("run")]
    assert rows[-1].parts[0].begin == 0
    assert rows[-1].parts[0].end == pytest.approx(total, rel=1e-9)
    assert rows[-2].parts[0].end == pytest.approx(total, rel=1e-9)


# ---- what is not known, never ends, or is wrong


def test_what_is_not_known_is_a_dash_and_named(unpowered_gpus):
    view = model.evaluate(Desk(edits={"cluster.accelerator": "tpu-v4"}))
    assert "best" not in {row.tone for row in view.grid.rows}
    assert "cluster.gpu_train" in view.headline[0]
    assert view.headline[1] == "warn"
    at = next(i for i, head in enumerate(view.grid.heads) if head.label == "run adds")
    assert {row.cells[at] for row in view.grid.rows} == {"-"}
    assert model.settled(view).course.rows == ()
    money = model.evaluate(Desk(edits={"cluster.accelerator": "tpu-v4"}, metric="usd"))
    assert "best" in {row.tone for row in money.grid.rows}


def test_a_run_that_never_ends_is_not_the_best():
    view = model.evaluate(
        Desk(
            tiers=("nas-hdd", "ddn-exascaler-40"),
            edits={"cluster.gpus": "200000", "policy.saves": "100"},
        )
    )
    never = next(row for row in view.grid.rows if row.key == "nas-hdd")
    at = next(i for i, head in enumerate(view.grid.heads) if head.label == "run adds")
    assert (never.tone, never.cells[at]) == ("bad", "-")
    assert model.settled(view).course.rows == ()
    alone = model.evaluate(Desk(tiers=("nas-hdd",), edits={"cluster.gpus": "200000"}))
    assert alone.headline == ("No run ends on nas-hdd: too much is lost between two saves.", "bad")


def test_a_tier_without_figures_stays_with_its_reason_and_out_of_the_command(unrated_s3):
    view = model.evaluate(Desk(tiers=("nas-hdd", "aws-s3-standard"), chosen="aws-s3-standard"))
    assert view.looked.key == "nas-hdd"
    assert view.grid.rows[1].tone == "muted"
    assert any("aws-s3-standard" in said and tone == "bad" for said, tone in notes_on(view))
    assert "aws-s3-standard" not in model.command(view)


@pytest.mark.parametrize(
    "edits",
    [
        {"checkpoint.size": "2 W"},
        {"cluster.id": "no-such"},
        {"policy.second_every": "3"},
        {"second_tier.id": "nas-hdd", "third_tier.id": "nas-hdd"},
    ],
)
def test_what_cannot_be_computed_is_refused(edits):
    with pytest.raises(InputError):
        model.evaluate(Desk(edits=edits))


def test_a_change_of_the_tiers_figures_is_said_to_hold_for_all():
    view = model.evaluate(Desk(edits={"tier.write": "5 GB/s"}))
    assert any("every tier in the table" in said for said, _ in notes_on(view))


# ---- what is handed on


def test_the_export_is_the_command_lines_report(cli, tmp_path):
    view = model.evaluate(DESKS["tiers of one's own"])
    file = str(tmp_path / "out.json")
    files.write_view(model.report(view), file, view.desk, model.command(view))
    mine, theirs = json.loads(Path(file).read_text("utf-8")), report_of(view, cli)
    theirs["tool"]["command"].remove("--full")
    assert mine == theirs


def test_the_command_says_no_more_than_it_must():
    assert model.command(model.evaluate(Desk())) == (
        "ckptcost model --against ddn-exascaler-40 --full;"
        " ckptcost compare --with 'tier.id=ddn-exascaler-40, policy.optimal=energy' --full"
    )
    one = model.command(model.evaluate(DESKS["one tier"]))
    assert one == (
        "ckptcost model -s micron-100k --full;"
        " ckptcost compare -s micron-100k --with policy.optimal=energy --full"
    )


TOLD = {
    **{name: DESKS[name] for name in ("changed", "asynchronous", "one tier")},
    "the best looked at": Desk(chosen="ddn-exascaler-40", metric="usd"),
    "the baseline best": Desk(baseline="ddn-exascaler-40", metric="gpuh"),
    "a baseline beside": Desk(baseline="generic-pfs", metric="time"),
    "as carbon": Desk(metric="co2e"),
    "time every half hour": Desk(edits={"policy.interval": "30 min"}, metric="time"),
    "slowed": Desk(
        base="llama31-405b-16k",
        edits={"policy.mode": "async", "policy.slowdown": "5 %"},
        tiers=("nas-hdd", "flash-shared"),
        metric="time",
    ),
}


@pytest.mark.parametrize("name", TOLD)
def test_every_figure_of_the_headline_and_the_table_is_printed_by_the_copied_commands(name, cli):
    view = model.evaluate(TOLD[name])
    printed, cases = set(), {}
    for line in model.command(view).split("; "):
        words = shlex.split(line)[1:]
        ran = cli(*words)
        assert ran.code == 0, ran.err
        printed |= {word.strip(",.;:()+-") for word in ran.out.split()}
        if words[0] == "model":
            for case in cases_of(json.loads(cli(*words, "-f", "json").out)):
                values = [case[name] for name in COLUMNS if case[name] is not None]
                cases.setdefault(case["tier"], []).extend(values)
    said = re.sub(r"within \S+ %", "", f"{model.settled(view).headline[0]} {view.beside[0]}")
    said = re.sub(r"(?<=[\dM])-(?=\d)", " ", said.replace("p5-p95", ""))
    for word in (word.strip(",.;:()-") for word in said.split()):
        assert not word[:1].isdigit() or word in printed, (line, said)
    for row in view.grid.rows:
        for head, value in zip(view.grid.heads[1:], row.order[1:], strict=True):
            assert value is None or value in [pytest.approx(x) for x in cases[row.key]], head.id


@pytest.mark.parametrize("name", DESKS)
def test_once_nobody_types_the_report_of_the_tier_is_shown(name):
    view = model.evaluate(DESKS[name])
    found, study = model.settled(view), study_of_view(view)
    assert found.subject == study.about[0]
    assert found.bill.title.startswith(f"The bill of the run: {view.resolved.names['tier']}")
    assert [row.tone for row in found.bill.rows if row.tone] == ["base"]
    said = [text for text, _ in found.notes]
    assert {*(message for _, message in study.warnings), *study.remarks} <= set(said)


def test_a_keystroke_draws_no_ranges(monkeypatch):
    """They follow once nobody types."""
    from ckptcost.first.jobs import compare
    from ckptcost.first.jobs import model as jobs

    drawn = []
    monkeypatch.setattr(jobs, "drawn", lambda *words: drawn.append(words))
    monkeypatch.setattr(compare, "drawn", lambda *words, **more: drawn.append(words))
    model.evaluate(Desk())
    assert drawn == []


def test_a_gain_that_may_be_a_loss_is_not_called_best(monkeypatch):
    view = model.evaluate(Desk())
    change = view.advice.less(view.metric, True)
    monkeypatch.setattr(
        model.ModelAdvice, "less", lambda *_: change._replace(low=change.value * 2, high=3.6e9)
    )
    text, tone = headline_of(view.metric, view.looked, view.advice, view.base)
    assert "; p5-p95 from 1,000 kWh more to " in text
    assert tone == ""


TWO = Desk(base="small-8b", tiers=("nas-hdd", "flash-shared"))


def test_the_chosen_tier_is_the_one_that_is_billed():
    view = model.evaluate(replace(TWO, chosen="flash-shared"))
    assert view.looked.key == "flash-shared"
    assert [row.key for row in view.grid.rows if row.marked] == ["flash-shared"]
    bill = model.settled(view).bill
    assert bill.title.startswith(f"The bill of the run: {view.resolved.names['tier']}")


@pytest.mark.parametrize(
    ("metric", "units"),
    [("kwh", ("USD", "GPU-h")), ("usd", ("GPU-h", "kWh")), ("gpuh", ("USD", "kWh"))],
)
def test_the_other_amounts_are_not_the_one_that_is_shown_already(metric, units):
    said, _ = model.evaluate(replace(TWO, metric=metric)).beside
    assert tuple(re.findall(r"(USD|GPU-h|kWh) less", said)) == units
