"""Tiers side by side: the tables and sentences of the commands that the screen shows."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.errors import InputError
from ckptcost.first.present.amounts import number, share
from ckptcost.first.present.grid import Grid, sorted_by
from ckptcost.first.tui import files
from ckptcost.first.tui.about_field import tier_entries
from ckptcost.first.tui.desk import OWN, Desk
from ckptcost.first.tui.screens import tiers_view as tiers
from ckptcost.first.tui.screens.by_objective import next_objective
from ckptcost.first.tui.widgets.columns import fit, natural_widths

NO_FAILURES = "0 /1000 node-days"
SOME = ("nas-hdd", "flash-shared", "micron-9550", "aws-s3-standard", "node-ram")
OBJECTIVES = ("time", "energy", "usd", "carbon")
LABELS = {"time": "GPU-h", "energy": "kWh", "usd": "USD", "carbon": "kgCO2e"}


def printed(cli: Callable[..., Any], line: str) -> list[dict[str, Any]]:
    """The documents that the commands of a line print."""
    found = []
    for command in line.split("; "):
        ran = cli(*shlex.split(command)[1:], "-f", "json")
        assert ran.code == 0, ran.err
        found.append(json.loads(ran.out))
    return found


def cells(grid: Grid, key: str) -> dict[str, str]:
    row = next(row for row in grid.rows if row.key == key)
    return {head.id: cell for head, cell in zip(grid.heads, row.cells, strict=True)}


def orders(grid: Grid, key: str) -> dict[str, Any]:
    row = next(row for row in grid.rows if row.key == key)
    return {head.id: value for head, value in zip(grid.heads, row.order, strict=True)}


def tones(grid: Grid) -> dict[str, str]:
    return {row.key: row.tone for row in grid.rows}


@pytest.mark.parametrize(
    ("desk", "objective"),
    [
        (Desk(), "time"),
        (Desk(base="small-8b", tiers=SOME), "usd"),
        (Desk(tiers=SOME).edited("policy.mode", "async"), "energy"),
    ],
)
def test_the_run_at_each_best_interval_is_what_the_copied_command_prints(
    cli: Callable[..., Any], desk: Desk, objective: str
) -> None:
    weighed = tiers.weighed(desk, objective)
    grid = tiers.grid(weighed, desk, "best")
    (document,) = printed(cli, tiers.command(weighed, "best"))
    rows = document["tables"]["options"]["rows"]
    assert {row["tier"] for row in rows} == {row.key for row in grid.rows if row.tone != "muted"}
    for row in rows:
        assert orders(grid, row["tier"])["cost"] == pytest.approx(row["cost"])
        assert cells(grid, row["tier"])["goodput"] == share(row["goodput"])
    best = min(rows, key=lambda row: row["over"])["tier"]
    assert [key for key, tone in tones(grid).items() if tone == "best"] == [best]
    said, tone = tiers.sentence(weighed, "best")
    assert said.startswith(document["findings"][0])
    assert tone == "best"


@pytest.mark.parametrize("shown", ["asked", "save"])
@pytest.mark.parametrize(
    "desk",
    [Desk(tiers=SOME).edited("policy.interval", "4 h"), Desk(base="llama31-405b-16k", tiers=SOME)],
)
def test_the_run_in_force_and_one_save_are_what_the_copied_command_prints(
    cli: Callable[..., Any], desk: Desk, shown: tiers.Shown
) -> None:
    weighed = tiers.weighed(desk, "usd")
    grid = tiers.grid(weighed, desk, shown)
    (document,) = printed(cli, tiers.command(weighed, shown))
    prefix = "save" if shown == "save" else "run"
    for case in document["tables"]["cases"]["rows"]:
        mine = cells(grid, case["tier"])
        for name in ("gpu_hours", "energy_kwh", "cost_usd", "location_kgco2e"):
            assert mine[f"{prefix}_{name}"] == number(case[f"{prefix}_{name}"])


@pytest.mark.parametrize("shown", tiers.SHOWN)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_ratio_is_to_the_baseline_and_stays_where_it_is_narrow(
    objective: str, shown: tiers.Shown
) -> None:
    desk = replace(Desk(), baseline="ddn-exascaler-20")
    weighed = tiers.weighed(desk, objective)
    grid = tiers.grid(weighed, desk, shown)
    column = weighed.column(shown)
    labels = {head.id: head.label for head in grid.heads}
    assert labels[column] == LABELS[objective]
    seen = {grid.heads[place].id for place, _ in fit(grid.heads, natural_widths(grid), 76).places}
    assert {"tier", column, "ratio"} <= seen
    assert len(grid.title) <= 76
    assert grid.title.endswith(f"; base ddn-exascaler-20, by {LABELS[objective]}")
    base = orders(grid, "ddn-exascaler-20")[column]
    for row in grid.rows:
        mine = orders(grid, row.key)
        assert mine["ratio"] == pytest.approx(mine[column] / base)
    assert tones(grid)["ddn-exascaler-20"] == "base"


@pytest.fixture
def unpriced(tmp_path: Path) -> Desk:
    """A tier of the user's own whose bytes have no price, beside one of the catalogue."""
    ours = tmp_path / "models" / "tiers" / "ours.toml"
    ours.parent.mkdir(parents=True)
    ours.write_text('id = "ours"\nname = "our storage"\nwrite = "7 GB/s"\nread = "7 GB/s"\n')
    return Desk(tiers=("ours", "nas-hdd"), catalog=Catalog(overlay=tmp_path))


def test_a_line_that_some_tiers_lack_leaves_no_best_and_is_named(
    unpriced: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unranked(*_: object) -> None:
        raise InputError(
            "these tiers cannot be ranked by usd: tier.storage_price is known for some"
        )

    real = tiers.optimize
    monkeypatch.setattr(
        tiers, "optimize", lambda *words: unranked() if words[-1] == "usd" else real(*words)
    )
    weighed = tiers.weighed(unpriced, "usd")
    said, tone = tiers.sentence(weighed, "best")
    assert said.startswith("No tier is called best for usd: these tiers cannot be ranked by usd:")
    assert tone == "warn"
    grid = tiers.grid(weighed, unpriced, "best")
    assert "best" not in tones(grid).values()
    assert "at its own best for time" in grid.title, "their figures are those of the best for time"
    bare = weighed.runs[0]._replace(row=weighed.runs[0].row | {"cost_without": "retention"})
    lacking = weighed._replace(runs=(bare, *weighed.runs[1:]))
    assert cells(tiers.grid(lacking, unpriced, "best"), "nas-hdd")["ratio"] == "-"


def test_the_best_dots_are_those_on_the_front_of_optimize(cli: Callable[..., Any]) -> None:
    desk = Desk(base="small-8b", tiers=(*SOME, "peer-ram-400g", "mlperf-aistore-12"))
    weighed = tiers.weighed(desk, "usd")
    chart = tiers.front_chart(weighed, desk)
    (document,) = printed(cli, tiers.command(weighed, "best"))
    front = document["tables"]["front"]["rows"]
    assert {dot.label for dot in chart.dots if dot.tone == "best"} == {row["tier"] for row in front}
    assert sorted(chart.curves[0].xs) == pytest.approx(sorted(row["cost"] for row in front))
    rows = {row["tier"]: row for row in document["tables"]["options"]["rows"]}
    assert {dot.label: dot.y for dot in chart.dots} == pytest.approx(
        {tier: 1 - row["goodput"] for tier, row in rows.items()}
    )


def test_without_a_price_the_front_is_over_energy_and_the_bars_say_why(unpriced_gpus: None) -> None:
    desk = Desk(tiers=("nas-hdd", "flash-shared")).edited("cluster.accelerator", "gb300")
    weighed = tiers.weighed(desk, "time")
    assert tiers.front_chart(weighed, desk).x_label == "kWh"
    bars = tiers.save_bars(weighed, desk)
    assert not bars.rows
    assert "cluster.gpu_price" in bars.empty
    assert "cluster.gpu_price" in tiers.sentence(tiers.weighed(desk, "usd"), "best")[0]


def test_bars_fall_and_name_the_best() -> None:
    desk = Desk()
    bars = tiers.save_bars(tiers.weighed(desk, "time"), desk)
    assert [bar.label for bar in bars.rows] == [
        "nas-hdd",
        "generic-pfs",
        "ddn-exascaler-20",
        "ddn-exascaler-40",
    ]
    assert [bar.tone for bar in bars.rows] == ["base", "", "", "best"]
    assert bars.log


def test_claims_stand_beside_the_model_of_the_same_size_only() -> None:
    def claimed(desk: Desk) -> dict[str, str]:
        weighed = tiers.weighed(desk, "time")
        grid = tiers.claims(weighed)
        row = next(r for r in grid.rows if r.cells[:2] == ("ddn-exascaler-40", "energy"))
        return {head.id: cell for head, cell in zip(grid.heads, row.cells, strict=True)}

    same = claimed(Desk())
    assert (same["low"], same["high"], same["unit"], same["model"]) == ("1", "2", "kWh", "8.3")
    assert claimed(Desk().edited("checkpoint.size", "3 TB"))["model"] == "-"


def test_what_is_exported_is_the_document_that_model_writes(
    cli: Callable[..., Any], tmp_path: Path
) -> None:
    file = tmp_path / "job.toml"
    file.write_text('extends = "small-8b"\n')
    desk = Desk(base=str(file), tiers=("flash-shared", "nas-hdd"))
    weighed = tiers.weighed(desk, "time")
    study = tiers.exported(weighed, "asked")
    assert study is not None
    command = tiers.command(weighed, "asked")
    (theirs,) = printed(cli, command)
    files.write_view(study, str(tmp_path / "out.json"), desk, command)
    assert json.loads((tmp_path / "out.json").read_text("utf-8")) == theirs


# what is lacking


def test_a_tier_without_a_rate_stays_last_and_says_why(tmp_path: Path) -> None:
    ours = tmp_path / "models" / "tiers" / "ours.toml"
    ours.parent.mkdir(parents=True)
    ours.write_text('id = "ours"\nname = "our storage"\n')
    desk = Desk(tiers=("ours", "nas-hdd"), catalog=Catalog(overlay=tmp_path))
    weighed = tiers.weighed(desk, "time")
    grid = tiers.grid(weighed, desk, "best")
    assert [row.key for row in grid.rows] == ["nas-hdd", "ours"]
    assert set(cells(grid, "ours").values()) == {"ours", "-"}
    assert tones(grid) == {"nas-hdd": "best", "ours": "muted"}
    lines = tiers.details(weighed, desk, "ours", "best")
    assert any(
        "the write rate of ours is not known" in text and tone == "bad" for text, tone in lines
    )
    assert "1 of 2 without figures" in grid.note
    assert "ours" not in tiers.command(weighed, "best")


def test_without_failures_there_is_no_best_interval_but_there_is_a_run() -> None:
    desk = Desk().edited("failures.rate", NO_FAILURES)
    weighed = tiers.weighed(desk, "time")
    text, tone = tiers.sentence(weighed, "best")
    assert tone == "warn"
    assert "never to save" in text
    assert "o: the run at the interval in force" in text
    asked = tiers.grid(weighed, desk, "asked")
    assert tones(asked)["ddn-exascaler-40"] == "best"
    assert cells(asked, "nas-hdd")["goodput"] != "-"
    assert set(cells(tiers.grid(weighed, desk, "best"), "nas-hdd")) >= {"tier", "stall_s"}
    assert tiers.exported(weighed, "best") is None
    assert tiers.exported(weighed, "asked") is not None


def test_a_run_that_never_ends_is_hopeless_and_has_no_amounts() -> None:
    desk = Desk().edited("cluster.gpus", "100000")
    weighed = tiers.weighed(desk, "time")
    grid = tiers.grid(weighed, desk, "asked")
    row = cells(grid, "nas-hdd")
    assert (row["run_energy_kwh"], row["run_cost_usd"]) == ("-", "-")
    assert set(tones(grid).values()) == {"bad"}
    text, tone = tiers.sentence(tiers.weighed(replace(desk, tiers=("nas-hdd",)), "time"), "best")
    assert text.startswith("Hopeless: even at its best interval a run on nas-hdd")
    assert not any(unit in text for unit in ("USD", "kWh", "GPU-h"))
    assert tone == "bad"
    several, _ = tiers.sentence(
        tiers.weighed(desk.edited("cluster.gpus", "10000000"), "time"), "best"
    )
    assert ", the best of these, makes next to no headway" in several


def test_three_tiers_have_no_closed_form_and_say_so() -> None:
    desk = Desk(base="small-8b").edited("third_tier.id", "nas-hdd")
    weighed = tiers.weighed(desk, "time")
    assert all("three tiers have no closed form" in run.reason for run in weighed.runs)
    assert tiers.sentence(weighed, "best")[1] == "warn"


def test_a_scenario_that_is_wrong_raises() -> None:
    with pytest.raises(InputError, match="many"):
        tiers.weighed(Desk().edited("cluster.gpus", "many"), "time")


OWN_TIER = (
    '[checkpoint]\nsize = "2 TB"\n[cluster]\nid = "h100-1024"\n[run]\nwork = "30'
    ' days"\n[tier]\nwrite = "20 GB/s"\nsurvives = "site"\n'
)


def test_a_scenario_without_an_interval_is_run_at_the_best_one(
    tmp_path: Path, cli: Callable[..., Any]
) -> None:
    file = tmp_path / "job.toml"
    file.write_text(OWN_TIER)
    desk = Desk(base=str(file))
    weighed = tiers.weighed(desk, "energy")
    (run,) = weighed.runs
    assert run.key == OWN
    (document,) = printed(cli, tiers.command(weighed, "asked"))
    assert cells(tiers.grid(weighed, desk, "asked"), OWN)["run_energy_kwh"] == number(
        document["tables"]["cases"]["rows"][0]["run_energy_kwh"]
    )


def test_a_tier_of_the_scenario_itself_beside_one_of_the_catalogue(
    tmp_path: Path, cli: Callable[..., Any]
) -> None:
    own = tmp_path / "own.toml"
    own.write_text(f'{OWN_TIER}[policy]\ninterval = "1 h"\n')
    desk = Desk(base=str(own)).with_tiers([OWN, "nas-hdd"])
    assert desk.tiers == ("", "nas-hdd")
    weighed = tiers.weighed(desk, "time")
    documents = printed(cli, tiers.command(weighed, "best"))
    assert len(documents) == 2
    grid = tiers.grid(weighed, desk, "best")
    for document, key in zip(documents, (OWN, "nas-hdd"), strict=True):
        best = next(
            row for row in document["tables"]["intervals"]["rows"] if row["at"] == "best for time"
        )
        assert cells(grid, key)["cost"] == number(best["cost"])


def test_a_change_that_holds_for_every_tier_is_said() -> None:
    desk = Desk().edited("tier.setup", "3 s")
    note = tiers.grid(tiers.weighed(desk, "time"), desk, "best").note
    assert "tier.setup: what you wrote holds for every tier" in note


def test_tiers_alike_are_said_to_be() -> None:
    alike = Desk(tiers=("local-nvme-4xgen5", "local-nvme"), baseline="local-nvme")
    text, _ = tiers.sentence(tiers.weighed(alike, "usd"), "best")
    assert "nothing tells local-nvme-4xgen5, sync from local-nvme, sync" in text


def test_choices_hold_the_whole_catalogue_and_tick_what_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "models" / "tiers"
    folder.mkdir(parents=True)
    (folder / "mine.toml").write_text(
        'id = "mine"\nname = "Measured here"\nwrite = "7 GB/s"\nbasis = "measured"\nsource ='
        ' "house"\n'
    )
    (folder / "broken.toml").write_text('id = "broken"\nname = 3\n')
    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path))
    desk = Desk()
    grid = tier_entries(desk)
    assert {row.key for row in grid.rows} == set(desk.catalog.ids("tier"))
    assert {row.key for row in grid.rows if row.marked} == set(desk.tiers_shown())
    assert cells(grid, "mine")["write"] == "7 GB/s"
    assert tones(grid)["broken"] == "bad"
    rates = [orders(grid, row.key)["write"] for row in sorted_by(grid, "write").rows]
    known = [rate for rate in rates if rate is not None]
    assert len(known) > 40
    assert known == sorted(known)
    assert orders(grid, "broken")["write"] is None


def test_every_tier_of_the_catalogue_at_once_sorts_by_any_column() -> None:
    desk = Desk(tiers=tuple(Desk().catalog.ids("tier")))
    weighed = tiers.weighed(desk, "usd")
    for shown in tiers.SHOWN:
        grid = tiers.grid(weighed, desk, shown)
        assert len(grid.rows) == len(desk.tiers)
        for head in grid.heads:
            assert len(sorted_by(grid, head.id).rows) == len(grid.rows)
    assert all(tiers.details(weighed, desk, run.key, "best") for run in weighed.runs)
    dots = tiers.front_chart(weighed, desk, "nas-hdd").dots
    labels = [dot.label for dot in dots if dot.label]
    assert "nas-hdd" in labels
    assert len(labels) < len(desk.tiers) // 2


def test_work_that_was_superseded_stops_early() -> None:
    assert tiers.weighed(Desk(), "time", lambda: True).runs == ()


def test_measures_come_round() -> None:
    objective, seen = "time", []
    for _ in range(4):
        objective = next_objective(objective)
        seen.append(objective)
    assert seen == ["energy", "usd", "carbon", "time"]
