"""The model's view against `ckptcost model` with the flags it copies: the same numbers, and
sentences that say no more than they do."""

from __future__ import annotations

import itertools
import json
import math
import re
import shlex
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from ckptcost.errors import InputError
from ckptcost.jobs.model import Answer, case_of
from ckptcost.present.amounts import duration, number, rate, share
from ckptcost.report.rows import COLUMNS
from ckptcost.report.studies.model import study_of
from ckptcost.report.study import shown_cells
from ckptcost.tui import files
from ckptcost.tui.desk import Desk
from ckptcost.tui.screens import model_view as model
from ckptcost.tui.screens import model_words
from ckptcost.tui.screens.model_runs import METRICS, TierRuns, best_of, undecided_of
from ckptcost.tui.screens.model_tables import tiers_grid
from ckptcost.tui.screens.model_words import headline_of
from ckptcost.tui.screens.tiers_view import weighed
from ckptcost.tui.screens.waterfall import amount_of

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


def alike(mine, theirs):
    return (theirs is None and not math.isfinite(mine)) or (
        theirs is not None and mine == pytest.approx(theirs, rel=1e-11)
    )


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
        theirs = {name: row[name] for name in COLUMNS}
        assert theirs.keys() == run.values.keys()
        assert [each for each in theirs if not alike(run.values[each], theirs[each])] == []


@pytest.mark.parametrize("metric", [each for each in METRICS if each != "time"])
@pytest.mark.parametrize("name", ["as it is", "another tier looked at", "tiers of one's own"])
def test_so_many_saves_are_the_saves_of_the_case_with_that_count(name, metric, cli):
    desk = model.on_metric(DESKS[name], metric)
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
            assert alike(row.order[at] if row.order[at] is not None else math.nan, theirs)
            assert row.cells[at] == number(theirs)


@pytest.mark.parametrize("name", DESKS)
def test_the_bill_is_the_command_lines_bill_cell_by_cell(name, cli):
    view = model.evaluate(DESKS[name])
    table = next(each for each in study_of_view(view).tables if each.id == "bill")
    header, rows, _ = shown_cells(table)
    bill = model.settled(view).bill
    assert bill.title == table.title
    assert [head.label for head in bill.heads] == header
    assert [list(row.cells) for row in bill.rows] == rows
    assert [row.tone for row in bill.rows if row.tone] == ["base"]


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
    view = model.evaluate(model.on_metric(Desk(), metric))
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
    assert view.advice.tier == at_best.best("best").key
    least = float(at_best.best("best").best.run.total("cost_usd"))
    assert float(view.advice.pair.cases[1].outcome.run.total("cost_usd")) == pytest.approx(least)


@pytest.mark.parametrize("metric", METRICS)
def test_the_best_tier_has_the_least_whole_run(metric):
    view = model.evaluate(
        model.on_metric(Desk(tiers=("nas-hdd", "ddn-exascaler-40", "generic-pfs")), metric)
    )
    at = next(i for i, head in enumerate(view.grid.heads) if head.id == "run")
    least = min(view.grid.rows, key=lambda row: row.order[at])
    assert (
        [row.key for row in view.grid.rows if row.tone == "best"] == [least.key] == [view.best.key]
    )


@pytest.mark.parametrize(("baseline", "key"), [("", "nas-hdd"), ("generic-pfs", "generic-pfs")])
def test_now_is_the_base_of_the_tiers_screen(baseline, key):
    desk = Desk(baseline=baseline)
    view = model.evaluate(desk)
    assert view.base.key == key == weighed(desk, "energy").baseline(desk).key
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
        metric=usd,
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
    grid = tiers_grid(METRICS["kwh"], runs, runs[0], None, runs[0], ())
    assert (
        grid.note == "none is best: tier.network_energy is known for some of them only; "
        "left out because unknown: network to storage [nas-hdd]"
    )
    every = [without(run, "network", "energy_j") for run in view.runs]
    everywhere = tiers_grid(METRICS["kwh"], every, every[0], None, every[0], ()).note
    assert everywhere == "left out because unknown: network to storage"
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
    view = model.evaluate(model.on_metric(Desk(), metric))
    rows = view.course.rows
    for before, after in itertools.pairwise(rows[:-1]):
        assert after.parts[0].begin == before.parts[0].end
    total = (
        view.looked.of("wall_s")
        if metric == "time"
        else view.looked.of(f"run_{METRICS[metric].q.column}")
    )
    if metric == "gpuh":
        total += float(view.resolved.scenario.work_s * view.resolved.scenario.cluster.gpus) / 3600
    assert rows[-1].parts[0].begin == 0
    assert rows[-1].parts[0].end == pytest.approx(total, rel=1e-9)
    assert rows[-2].parts[0].end == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("metric", METRICS)
def test_one_saves_shares_add_up_and_its_amount_is_the_tables(metric):
    view = model.evaluate(model.on_metric(Desk(), metric))
    at = next(i for i, head in enumerate(view.grid.heads) if head.id == "save")
    for bar, row in zip(view.one_save.rows, view.grid.rows, strict=True):
        assert bar.key == row.key
        assert bar.text.startswith(f"of {row.cells[at]}")
        assert bar.parts[-1].end == pytest.approx(1.0)
        assert tuple(part.name for part in bar.parts) == view.one_save.names


_TIERS = ["nas-hdd", "flash-shared", "generic-pfs", "local-nvme-8xgen5", "object-store"]


@settings(max_examples=25, deadline=None)
@given(
    base=st.sampled_from(["llama31-405b-16k", "gpt4-scale-2tb", "small-8b", "micron-100k"]),
    tiers=st.lists(st.sampled_from(_TIERS), min_size=1, max_size=2, unique=True),
    saving=st.fixed_dictionaries(
        {
            "policy.mode": st.sampled_from(["sync", "async"]),
            "policy.interval": st.sampled_from(["1 min", "30 min", "3 h"]),
        },
        optional={
            "policy.slowdown": st.sampled_from(["5 %", "20 %"]),
            "policy.keep_last": st.sampled_from(["1", "all"]),
            "second_tier.id": st.sampled_from(_TIERS),
            "policy.second_every": st.just("4"),
        },
    ),
    metric=st.sampled_from(list(METRICS)),
)
@example(
    base="llama31-405b-16k",
    tiers=["nas-hdd", "flash-shared"],
    saving={"policy.mode": "async", "policy.slowdown": "5 %"},
    metric="time",
)
def test_what_a_save_is_made_of_adds_up_to_the_amount_beside_it(base, tiers, saving, metric):
    try:
        view = model.evaluate(Desk(base=base, tiers=tuple(tiers), edits=saving, metric=metric))
    except InputError:
        assume(False)
    of = METRICS[metric]
    for bar, run in zip(
        view.one_save.rows, (run for run in view.runs if run.found is not None), strict=True
    ):
        lines = [amount_of(of, run.case, line) for line in run.case.outcome.one_save.of()]
        total = math.fsum(each for each in lines if not math.isnan(each))
        if bar.text == "of -" or not 0 < total < math.inf:
            continue
        assert bar.text == f"of {of.said(total)}"
        assert math.fsum(part.end - part.begin for part in bar.parts) == pytest.approx(
            1.0, rel=1e-9
        )
        assert bar.parts[-1].end == pytest.approx(1.0, rel=1e-9)


def test_a_drain_that_slows_training_is_part_of_a_saves_time():
    edits = {"policy.mode": "async", "policy.slowdown": "5 %"}
    view = model.evaluate(
        Desk(base="llama31-405b-16k", tiers=("nas-hdd", "flash-shared"), edits=edits, metric="time")
    )
    bar = view.one_save.rows[1]
    assert bar.text == "of " + duration(view.runs[1].values["save_gpu_hours"] * 3600 / 16384)
    assert [part.name for part in bar.parts] == [
        "GPUs waiting for saves",
        "training slowed by a drain",
    ]


@pytest.mark.parametrize(
    ("metric", "head", "last"),
    [
        ("kwh", "run adds", "added in the run"),
        ("usd", "run adds", "added in the run"),
        ("gpuh", "run loses", "useful and lost"),
        ("time", "whole run", "useful and lost"),
    ],
)
def test_the_table_and_the_course_say_whether_useful_time_is_in_it(metric, head, last):
    view = model.evaluate(Desk(metric=metric))
    assert view.grid.heads[-1].label == head
    assert view.course.rows[-1].label == last
    lost = (
        f"lost in the run: {number(view.looked.of('run_gpu_hours'))} GPU-h; the rest is useful"
        " training"
    )
    assert view.course.note == (
        lost if metric in ("gpuh", "time") else "useful training, 8.33 d, is not in it"
    )


# ---- what is not known, never ends, or is wrong


def test_what_is_not_known_is_a_dash_and_named(unpowered_gpus):
    view = model.evaluate(Desk(edits={"cluster.accelerator": "tpu-v4"}))
    assert view.best is None
    assert "cluster.gpu_train" in view.headline[0]
    assert view.headline[1] == "warn"
    at = next(i for i, head in enumerate(view.grid.heads) if head.id == "run")
    assert {row.cells[at] for row in view.grid.rows} == {"-"}
    assert {bar.text for bar in view.one_save.rows} == {"of -"}
    assert view.course.rows == ()
    money = model.evaluate(Desk(edits={"cluster.accelerator": "tpu-v4"}, metric="usd"))
    assert money.best is not None


def test_a_run_that_never_ends_is_not_the_best():
    view = model.evaluate(
        Desk(
            tiers=("nas-hdd", "ddn-exascaler-40"),
            edits={"cluster.gpus": "200000", "policy.saves": "100"},
        )
    )
    never = next(row for row in view.grid.rows if row.key == "nas-hdd")
    assert (never.tone, never.cells[-1]) == ("bad", "never")
    assert view.course.rows == ()
    alone = model.evaluate(Desk(tiers=("nas-hdd",), edits={"cluster.gpus": "200000"}))
    assert alone.headline == ("No run ends on nas-hdd: too much is lost between two saves.", "bad")


def test_a_tier_without_figures_stays_with_its_reason_and_out_of_the_command(unrated_s3):
    view = model.evaluate(Desk(tiers=("nas-hdd", "aws-s3-standard"), chosen="aws-s3-standard"))
    assert view.looked.key == "nas-hdd"
    assert view.grid.rows[1].tone == "muted"
    assert any("aws-s3-standard" in said and tone == "bad" for said, tone in view.cautions)
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
    assert any("every tier in the table" in said for said, _ in view.cautions)


def test_the_sentences_below_are_the_command_lines(cli):
    view = model.evaluate(Desk())
    printed = " ".join(cli(*shlex.split(model.command(view).split("; ")[0])[1:]).out.split())
    assert view.grid.note == ""
    assert "left out because unknown" not in printed
    for said, _ in (
        *(each for each in view.cautions if each[0] != view.grid.note),
        *model.settled(view).remarks,
    ):
        assert " ".join(said.split()).rstrip(".") in printed


def test_the_subject_is_the_head_of_the_report():
    for name in ("as it is", "two tiers"):
        view = model.evaluate(DESKS[name])
        assert [view.subject] == study_of_view(view).about


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
    **{name: DESKS[name] for name in DESKS if name not in ("as it is", "two tiers")},
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
                cases.setdefault(case["tier"], set()).update(
                    said(each) for each in values for said in (number, duration, share, rate)
                )
    said = re.sub(r"within \S+ %", "", f"{model.settled(view).headline[0]} {view.beside[0]}")
    said = re.sub(r"(?<=[\dM])-(?=\d)", " ", said.replace("p5-p95", ""))
    for word in (word.strip(",.;:()-") for word in said.split()):
        assert not word[:1].isdigit() or word in printed, (line, said)
    for row in view.grid.rows:
        for head, cell in zip(view.grid.heads[1:], row.cells[1:], strict=True):
            assert cell in ("-", "never") or cell in cases[row.key], (head.id, cell)


def test_a_keystroke_draws_no_ranges(monkeypatch):
    """They follow once nobody types."""
    from ckptcost.jobs import compare
    from ckptcost.jobs import model as jobs

    drawn = []
    monkeypatch.setattr(jobs, "drawn", lambda *words: drawn.append(words))
    monkeypatch.setattr(compare, "drawn", lambda *words, **more: drawn.append(words))
    model.evaluate(Desk())
    assert drawn == []


def test_a_gain_that_may_be_a_loss_is_not_called_best(monkeypatch):
    view = model.evaluate(Desk())
    change = view.advice.less(view.metric, True)
    monkeypatch.setattr(
        model_words.Advice, "less", lambda *_: change._replace(low=change.value * 2, high=3.6e9)
    )
    text, tone = headline_of(view.metric, view.looked, view.advice, view.base)
    assert "; p5-p95 from 1,000 kWh more to " in text
    assert tone == ""
