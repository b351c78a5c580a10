"""Tiers side by side: every figure is what `ckptcost model` and `ckptcost optimize` print for the
command that the screen shows."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ckptcost.catalog.store import Catalog
from ckptcost.core.bill import Bill
from ckptcost.core.outcome import Outcome
from ckptcost.core.regret import cost_of
from ckptcost.errors import InputError
from ckptcost.present.amounts import duration, number, share
from ckptcost.present.grid import Grid, sorted_by
from ckptcost.tui import files
from ckptcost.tui.desk import Desk
from ckptcost.tui.screens import tiers_pictures, tiers_table
from ckptcost.tui.screens import tiers_view as tiers
from ckptcost.tui.widgets.columns import fit, natural_widths

NO_FAILURES = "0 /1000 node-days"
SOME = ("nas-hdd", "flash-shared", "micron-9550", "aws-s3-standard", "node-ram")


_SEEN: dict[str, dict[str, Any]] = {}


def printed(cli: Callable[..., Any], line: str) -> list[dict[str, Any]]:
    """The documents that the commands of a line print; each asked once, since nothing changes
    it."""
    for command in line.split("; "):
        if command not in _SEEN:
            ran = cli(*shlex.split(command)[1:], "-f", "json")
            assert ran.code == 0, ran.err
            _SEEN[command] = json.loads(ran.out)
    return [_SEEN[command] for command in line.split("; ")]


def cells(grid: Grid, key: str) -> dict[str, str]:
    row = next(row for row in grid.rows if row.key == key)
    return {head.id: cell for head, cell in zip(grid.heads, row.cells, strict=True)}


def orders(grid: Grid, key: str) -> dict[str, Any]:
    row = next(row for row in grid.rows if row.key == key)
    return {head.id: value for head, value in zip(grid.heads, row.order, strict=True)}


@pytest.mark.parametrize(
    ("desk", "objective"),
    [
        *((Desk(), objective) for objective in ("time", "energy", "usd", "carbon")),
        (Desk(base="small-8b", tiers=SOME), "usd"),
        (Desk(tiers=SOME).edited("policy.mode", "async"), "energy"),
    ],
)
def test_the_run_at_each_best_interval_is_what_optimize_prints(
    cli: Callable[..., Any], desk: Desk, objective: str
) -> None:
    weighed = tiers.weighed(desk, objective)
    grid = tiers_table.grid(weighed, desk, "best")
    (document,) = printed(cli, tiers.command(weighed, "best"))
    rows = document["tables"]["options"]["rows"]
    assert [row["tier"] for row in rows] == [
        entry.key for entry in weighed.entries if entry.best is not None
    ]
    for row in rows:
        shown = cells(grid, row["tier"])
        assert shown["goodput"] == share(row["goodput"])
        assert shown["gpu_hours"] == number(row["gpu_hours"])
        assert shown["energy_kwh"] == number(row["energy"])
        assert shown["cost_usd"] == number(row["cost"])
        assert shown["location_kgco2e"] == number(row["carbon"])
        assert row["carbon"] == row["location"]
        assert shown["every"] == duration(row["interval"])
    best = min(rows, key=lambda row: row["over"])["tier"]
    assert [row.key for row in grid.rows if row.tone == "best"] == [best]


@pytest.mark.parametrize("shown", ["asked", "save"])
@pytest.mark.parametrize(
    "desk",
    [
        Desk(),
        Desk(tiers=SOME).edited("policy.interval", "4 h"),
        Desk(base="llama31-405b-16k", tiers=SOME),
    ],
)
def test_the_run_in_force_and_one_save_are_what_model_prints(
    cli: Callable[..., Any], desk: Desk, shown: tiers.Shown
) -> None:
    weighed = tiers.weighed(desk, "usd")
    grid = tiers_table.grid(weighed, desk, shown)
    (document,) = printed(cli, tiers.command(weighed, shown))
    cases: dict[str, dict[str, Any]] = {}
    for case in document["tables"]["cases"]["rows"]:
        cases.setdefault(case["tier"], case)
    assert set(cases) == {entry.key for entry in weighed.entries if entry.asked is not None}
    prefix = "save" if shown == "save" else "run"
    for tier, values in cases.items():
        mine = cells(grid, tier)
        for name in ("gpu_hours", "energy_kwh", "cost_usd"):
            assert mine[name] == number(values[f"{prefix}_{name}"])
        assert mine["location_kgco2e"] == number(values[f"{prefix}_location_kgco2e"])
        assert mine["stall"] == duration(values["stall_s"])
        assert mine["safe"] == duration(values["stall_s"] + values["lag_s"])
        assert mine["rate"] == number(values["rate_bytes_per_s"] / 1e9)
        if shown == "asked":
            assert mine["goodput"] == share(values["goodput"])
        else:
            assert mine["storage"] == number(values["save_storage_kwh"])


@pytest.mark.parametrize(
    ("objective", "quantity"),
    [("time", "gpu_hours"), ("energy", "kwh"), ("usd", "usd"), ("carbon", "kgco2e")],
)
@pytest.mark.parametrize(("shown", "of"), [("asked", ""), ("save", "save_")])
def test_the_ratio_is_to_the_baseline_and_compare_says_the_same(
    cli: Callable[..., Any], objective: str, quantity: str, shown: tiers.Shown, of: str
) -> None:
    desk = Desk()
    others = ("generic-pfs", "ddn-exascaler-40")
    (document,) = printed(
        cli,
        desk.command(
            "compare", *(word for tier in others for word in ("--with", f"tier.id={tier}"))
        ),
    )
    rows = document["tables"]["values"]["rows"]
    found = [row for row in rows if row["quantity"] == of + quantity]
    grid = tiers_table.grid(tiers.weighed(desk, objective), desk, shown)
    assert cells(grid, "nas-hdd")["ratio"] == "base"
    for row, tier in zip(found[1:], others, strict=True):
        assert row["relative"] is not None
        assert cells(grid, tier)["ratio"] == f"{number(1.0 + row['relative'])}x"


def test_another_baseline_turns_the_ratios() -> None:
    desk = tiers.on_baseline(Desk(), "generic-pfs")
    grid = tiers_table.grid(tiers.weighed(desk, "usd"), desk, "best")
    assert cells(grid, "generic-pfs")["ratio"] == "base"
    assert orders(grid, "nas-hdd")["ratio"] == pytest.approx(
        orders(grid, "nas-hdd")["cost_usd"] / orders(grid, "generic-pfs")["cost_usd"]
    )
    assert next(row.tone for row in grid.rows if row.key == "generic-pfs") == "base"


def test_what_the_best_tier_saves_is_what_model_calls_avoidable(cli: Callable[..., Any]) -> None:
    desk = Desk()
    text, tone = tiers_table.sentence(tiers.weighed(desk, "time"), desk, "asked")
    (document,) = printed(cli, "ckptcost model --tier nas-hdd --against ddn-exascaler-40")
    avoidable = document["tables"]["avoidable"]["rows"][0]
    assert tone == "best"
    assert (
        f"a run takes {number(avoidable['run_gpu_hours'])} GPU-h,"
        f" {number(avoidable['run_cost_usd'])} USD and " in text
    )
    assert f"{number(avoidable['run_energy_kwh'])} kWh less than on nas-hdd, both at" in text


def without_price(outcome: Outcome) -> Outcome:
    """A run whose tier has no price for keeping bytes."""
    lines = (
        line._replace(cost_usd=float("nan")) if line.id == "retention" else line
        for line in outcome.run.lines
    )
    return outcome._replace(run=Bill(tuple(lines)))


@pytest.mark.parametrize("shown", ["best", "asked", "save"])
def test_a_line_that_some_tiers_lack_leaves_no_best_and_is_named(shown: tiers.Shown) -> None:
    desk = Desk()
    whole = tiers.weighed(desk, "usd")
    first, *others = whole.entries
    bare = first._replace(best=without_price(first.best), asked=without_price(first.asked))
    seen = whole._replace(entries=(bare, *others))
    assert whole.best(shown) is not None
    assert seen.best(shown) is None
    assert seen.undecided(shown) == ("tier.storage_price",)
    assert tiers_table.sentence(seen, desk, shown) == (
        "No tier is called best for usd: tier.storage_price is known for some of them only.",
        "warn",
    )
    assert all(row.tone != "best" for row in tiers_table.grid(seen, desk, shown).rows)
    timed = seen._replace(objective="time")
    assert timed.best(shown) is not None, "the wall time lacks nothing"
    if shown != "save":
        grid = tiers_table.grid(seen, desk, shown)
        assert {cells(grid, each.key)["ratio"] for each in others} == {"-"}
        assert "no ratio where tier.storage_price is known for one of the two only" in grid.note
        assert "USD" not in tiers_table.sentence(timed, desk, shown)[0]


def test_the_best_dots_are_those_on_the_front_of_optimize(cli: Callable[..., Any]) -> None:
    desk = Desk(base="small-8b", tiers=(*SOME, "peer-ram-400g", "mlperf-aistore-12"))
    weighed = tiers.weighed(desk, "usd")
    chart = tiers_pictures.front_chart(weighed, desk)
    (document,) = printed(cli, tiers.command(weighed, "best"))
    front = document["tables"]["front"]["rows"]
    assert {dot.label for dot in chart.dots if dot.tone == "best"} == {row["tier"] for row in front}
    assert sorted(chart.curves[0].xs) == pytest.approx(sorted(row["cost"] for row in front))
    rows = {row["tier"]: row for row in document["tables"]["options"]["rows"]}
    assert {dot.label: dot.x for dot in chart.dots} == pytest.approx(
        {tier: row["cost"] for tier, row in rows.items()}
    )
    assert {dot.label: dot.y for dot in chart.dots} == pytest.approx(
        {tier: 1 - row["goodput"] for tier, row in rows.items()}
    )


def test_without_a_price_the_front_is_over_energy_and_the_bars_say_why(unpriced_gpus: None) -> None:
    desk = Desk(tiers=("nas-hdd", "flash-shared")).edited("cluster.accelerator", "gb300")
    weighed = tiers.weighed(desk, "time")
    assert all(
        entry.resolved is not None and "cluster.gpu_price" in entry.resolved.unknown
        for entry in weighed.entries
    )
    assert tiers_pictures.front_chart(weighed, desk).x_label == "kWh"
    bars = tiers_pictures.save_bars(weighed, desk)
    assert not bars.rows
    assert "cluster.gpu_price" in bars.empty
    assert "cluster.gpu_price" in tiers_table.sentence(tiers.weighed(desk, "usd"), desk, "best")[0]


def test_bars_fall_and_name_the_best() -> None:
    desk = Desk()
    bars = tiers_pictures.save_bars(tiers.weighed(desk, "time"), desk)
    assert [bar.label for bar in bars.rows] == [
        "nas-hdd",
        "generic-pfs",
        "ddn-exascaler-20",
        "ddn-exascaler-40",
    ]
    assert [bar.tone for bar in bars.rows] == ["base", "", "", "best"]
    assert bars.log


def test_claims_stand_beside_the_model_of_the_same_size_only(cli: Callable[..., Any]) -> None:
    desk = Desk()
    weighed = tiers.weighed(desk, "time")
    (document,) = printed(cli, tiers.command(weighed, "save"))
    values = next(
        case for case in document["tables"]["cases"]["rows"] if case["tier"] == "ddn-exascaler-40"
    )
    claim = cells(tiers_pictures.claims(weighed), "ddn-exascaler-40 1")
    assert claim["claimed"] == "1-2 kWh"
    assert claim["model"] == f"{number(values['save_energy_kwh'])} kWh"
    assert claim["storage"] == f"{number(values['save_storage_kwh'])} kWh"
    other = desk.edited("checkpoint.size", "3 TB")
    assert (
        cells(tiers_pictures.claims(tiers.weighed(other, "time")), "ddn-exascaler-40 1")["model"]
        == "-"
    )


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
    mine = json.loads((tmp_path / "out.json").read_text("utf-8"))
    assert mine == theirs
    assert mine["tool"]["command"][3] == "job.toml"


# what is lacking


def test_a_tier_without_a_rate_stays_and_says_why(tmp_path: Path) -> None:
    ours = tmp_path / "models" / "tiers" / "ours.toml"
    ours.parent.mkdir(parents=True)
    ours.write_text('id = "ours"\nname = "our storage"\n')
    desk = Desk(tiers=("ours", "nas-hdd"), catalog=Catalog(overlay=tmp_path))
    weighed = tiers.weighed(desk, "time")
    grid = tiers_table.grid(weighed, desk, "best")
    assert set(cells(grid, "ours").values()) == {"ours", "-"}
    assert weighed.baseline(desk).key == "nas-hdd"
    lines = tiers_pictures.details(weighed, desk, "ours", "best")
    assert any(
        "the write rate of ours is not known" in text and tone == "bad" for text, tone in lines
    )
    assert "1 of 2 without figures" in grid.note
    assert "ours" not in tiers.command(weighed, "best")


def test_without_failures_there_is_no_best_interval_but_there_is_a_run() -> None:
    desk = Desk().edited("failures.rate", NO_FAILURES)
    weighed = tiers.weighed(desk, "time")
    text, tone = tiers_table.sentence(weighed, desk, "best")
    assert tone == "warn"
    assert "never to save" in text
    assert "o: the run at the interval in force" in text
    assert tiers_table.sentence(weighed, desk, "asked")[0].startswith(
        "ddn-exascaler-40 is best for time"
    )
    assert cells(tiers_table.grid(weighed, desk, "asked"), "nas-hdd")["goodput"] != "-"
    assert tiers.exported(weighed, "best") is None
    assert tiers.exported(weighed, "asked") is not None


def test_a_run_that_never_ends_is_said_to_and_has_no_amounts() -> None:
    desk = Desk().edited("cluster.gpus", "100000")
    weighed = tiers.weighed(desk, "time")
    row = cells(tiers_table.grid(weighed, desk, "asked"), "nas-hdd")
    assert (row["goodput"], row["energy_kwh"], row["cost_usd"]) == ("never", "-", "-")
    text, tone = tiers_table.sentence(weighed, desk, "asked")
    assert text.startswith("Hopeless: on ddn-exascaler-40, the best of these, the run makes next")
    assert not re.search("USD|kWh|GPU-h", text), "amounts of a run that nobody would let go on"
    assert tone == "bad"


def test_three_tiers_have_no_closed_form_and_say_so() -> None:
    desk = Desk(base="small-8b").edited("third_tier.id", "nas-hdd")
    weighed = tiers.weighed(desk, "time")
    assert all("three tiers have no closed form" in entry.reason for entry in weighed.entries)
    assert tiers_table.sentence(weighed, desk, "best")[1] == "warn"


def test_a_scenario_that_is_wrong_raises() -> None:
    with pytest.raises(InputError, match="many"):
        tiers.weighed(Desk().edited("cluster.gpus", "many"), "time")


def test_a_scenario_without_an_interval_is_run_at_the_best_one(
    tmp_path: Path, cli: Callable[..., Any]
) -> None:
    file = tmp_path / "job.toml"
    file.write_text(
        '[checkpoint]\nsize = "2 TB"\n[cluster]\nid = "h100-1024"\n[run]\nwork = "30'
        ' days"\n[tier]\nwrite = "20 GB/s"\nsurvives = "site"\n'
    )
    desk = Desk(base=str(file))
    weighed = tiers.weighed(desk, "energy")
    (entry,) = weighed.entries
    assert (entry.tier, entry.key) == ("", tiers.OWN)
    assert entry.asked is not None
    assert "no interval is given" in tiers_table.grid(weighed, desk, "asked").note
    (document,) = printed(cli, tiers.command(weighed, "asked"))
    assert cells(tiers_table.grid(weighed, desk, "asked"), tiers.OWN)["energy_kwh"] == number(
        document["tables"]["cases"]["rows"][0]["run_energy_kwh"]
    )


def test_a_tier_of_the_scenario_itself_beside_one_of_the_catalogue(
    tmp_path: Path, cli: Callable[..., Any]
) -> None:
    own = tmp_path / "own.toml"
    own.write_text(
        '[checkpoint]\nsize = "2 TB"\n[cluster]\nid = "h100-1024"\n[run]\nwork = "30'
        ' days"\n[tier]\nwrite = "20 GB/s"\n[policy]\ninterval = "1 h"\n'
    )
    desk = Desk(base=str(own))
    desk = tiers.with_tiers(desk, [tiers.OWN, "nas-hdd"])
    assert desk.tiers == ("", "nas-hdd")
    weighed = tiers.weighed(desk, "time")
    documents = printed(cli, tiers.command(weighed, "best"))
    assert len(documents) == 2
    grid = tiers_table.grid(weighed, desk, "best")
    for document, key in zip(documents, (tiers.OWN, "nas-hdd"), strict=True):
        best = next(
            row for row in document["tables"]["intervals"]["rows"] if row["at"] == "best for time"
        )
        assert cells(grid, key)["cost_usd"] == number(best["cost"])


# changes


def test_adding_and_removing_tiers() -> None:
    desk = Desk()
    more = tiers.with_tiers(desk, [*desk.tiers_shown(), "flash-shared"])
    assert more.tiers_shown()[-1] == "flash-shared"
    assert tiers.without(more, "nas-hdd").tiers_shown()[0] == "generic-pfs"
    assert tiers.with_tiers(desk, []) is desk
    assert tiers.with_tiers(desk, list(desk.tiers_shown())) is desk


def test_a_change_of_the_tier_itself_gives_way_where_several_are_named() -> None:
    desk = tiers.with_tiers(Desk().edited("tier.id", "flash-shared"), ["flash-shared", "nas-hdd"])
    assert "tier.id" not in desk.edits
    weighed = tiers.weighed(desk, "time")
    rates = [entry.figures["save"]["rate_bytes_per_s"] for entry in weighed.entries]
    assert rates[0] != rates[1]


def test_a_change_that_holds_for_every_tier_is_said() -> None:
    desk = Desk().edited("tier.setup", "3 s")
    assert (
        "tier.setup holds for every tier"
        in tiers_table.grid(tiers.weighed(desk, "time"), desk, "best").note
    )


def test_the_same_figures_are_not_computed_again_but_a_file_opened_anew_is() -> None:
    desk = Desk().edited("cluster.gpus", "512")
    assert tiers.same_figures(tiers.on_baseline(desk, "generic-pfs"), desk)
    assert tiers.same_figures(tiers.on_tier(desk, "generic-pfs"), desk)
    assert not tiers.same_figures(desk.on(desk.base), desk)
    assert not tiers.same_figures(desk.on(desk.base), desk.on(desk.base))


def test_a_catalogue_read_anew_or_a_rewritten_file_has_other_figures(tmp_path: Path) -> None:
    file = tmp_path / "job.toml"
    file.write_text('extends = "gpt4-scale-2tb"\n')
    desk = Desk(base=str(file))
    stamp = desk.stamp()
    assert tiers.same_figures(tiers.on_baseline(desk, "generic-pfs"), desk, stamp)
    assert not tiers.same_figures(replace(desk, catalog=Catalog()), desk, stamp)
    file.write_text('extends = "gpt4-scale-2tb"\n[cluster]\ngpus = 512\n')
    assert not tiers.same_figures(desk, desk, stamp)


OBJECTIVES = ("time", "energy", "usd", "carbon")
LABELS = {"time": "GPU-h", "energy": "kWh", "usd": "USD", "carbon": "kgCO2e"}


@pytest.mark.parametrize("shown", tiers.SHOWN)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_column_that_the_ratio_is_of_stays_where_it_is_narrow_and_the_title_names_it(
    objective: str, shown: tiers.Shown
) -> None:
    desk = tiers.on_baseline(Desk(), "ddn-exascaler-20")
    grid = tiers_table.grid(tiers.weighed(desk, objective), desk, shown)
    places = {head.id: place for place, head in enumerate(grid.heads)}
    label = LABELS[objective]
    of = next(head.id for head in grid.heads if head.label == label)
    seen = {grid.heads[place].id for place, _ in fit(grid.heads, natural_widths(grid), 76).places}
    assert {"tier", of, "ratio"} <= seen
    assert len(grid.title) <= 76
    assert f"; vs base: {label}" in grid.title
    base = next(row for row in grid.rows if row.key == "ddn-exascaler-20")
    for row in grid.rows:
        assert row.order[places["ratio"]] == pytest.approx(
            row.order[places[of]] / base.order[places[of]]
        )  # type: ignore[operator]


def test_for_carbon_the_column_the_ranking_and_the_ratio_are_of_one_quantity(
    cli: Callable[..., Any],
) -> None:
    desk = Desk(tiers=("ddn-exascaler-20", "ddn-exascaler-40"))
    weighed = tiers.weighed(desk, "carbon")
    for shown in ("best", "asked"):
        grid = tiers_table.grid(weighed, desk, shown)  # type: ignore[arg-type]
        assert "kgCO2e: location-based" in grid.note
        assert grid.title.endswith("vs base: kgCO2e")
        for entry in weighed.entries:
            run = entry.run(shown)  # type: ignore[arg-type]
            assert run is not None
            assert orders(grid, entry.key)["location_kgco2e"] == pytest.approx(
                float(cost_of(run, "carbon"))
            )
    saved = (
        orders(grid, "ddn-exascaler-20")["location_kgco2e"]
        - orders(grid, "ddn-exascaler-40")["location_kgco2e"]
    )
    text, _ = tiers_table.sentence(weighed, desk, "asked")
    assert f"a run takes {number(saved)} kgCO2e, " in text
    (document,) = printed(
        cli,
        desk.command(
            "compare", "--set", "tier.id=ddn-exascaler-20", "--with", "tier.id=ddn-exascaler-40"
        ),
    )
    rows = [row for row in document["tables"]["values"]["rows"] if row["quantity"] == "kgco2e"]
    assert saved == pytest.approx(
        -sum(row["difference"] for row in rows if row["difference"] is not None), rel=1e-6
    )
    chart = tiers_pictures.front_chart(weighed, desk)
    assert chart.title == "time lost against kgCO2e"
    assert {dot.label: dot.x for dot in chart.dots} == pytest.approx(
        {
            entry.key: float(cost_of(entry.best, "carbon"))
            for entry in weighed.entries
            if entry.best is not None
        }
    )
    one = tiers_table.grid(weighed, desk, "save")
    assert one.title == "Storage tiers, one save; vs base: kgCO2e"
    assert "kgCO2e: location-based" in one.note.split("; ")


def test_best_intervals_that_are_asked_for_differ_from_tier_to_tier_and_are_not_one() -> None:
    desk = Desk().edited("policy.optimal", "energy")
    weighed = tiers.weighed(desk, "usd")
    assert "each at its best for energy" in tiers_table.grid(weighed, desk, "asked").note
    other = Desk().edited("policy.interval", "2 h")
    assert "every 7,200 s" in tiers_table.grid(tiers.weighed(other, "usd"), other, "asked").note


def test_tiers_alike_are_said_to_be() -> None:
    alike = Desk(tiers=("local-nvme-4xgen5", "local-nvme"), baseline="local-nvme")
    weighed = tiers.weighed(alike, "usd")
    text, tone = tiers_table.sentence(weighed, alike, "best")
    assert (text, tone) == (
        "local-nvme-4xgen5 and local-nvme, the baseline, are nothing apart.",
        "",
    )
    first = tiers.on_baseline(alike, "local-nvme-4xgen5")
    text, _ = tiers_table.sentence(weighed, first, "best")
    assert text.endswith("Next: local-nvme, nothing apart in dollars added.")


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
    grid = tiers_pictures.choices(desk)
    assert {row.key for row in grid.rows} == set(desk.catalog.ids("tier"))
    assert {row.key for row in grid.rows if row.marked} == set(desk.tiers_shown())
    assert cells(grid, "mine")["from"] == "yours"
    assert cells(grid, "mine")["write"] == "7 GB/s"
    assert next(row.tone for row in grid.rows if row.key == "broken") == "bad"
    rates = [orders(grid, row.key)["write"] for row in sorted_by(grid, "write").rows]
    known = [rate for rate in rates if rate is not None]
    assert len(known) > 40
    assert known == sorted(known)
    assert orders(grid, "mine")["write"] == 7e9
    assert orders(grid, "broken")["write"] is None
    names = [row.cells[1] for row in sorted_by(grid, "name").rows]
    assert names == sorted(names)
    mine = tiers.with_tiers(desk, ["mine"])
    weighed = tiers.weighed(mine, "time")
    assert cells(tiers_table.grid(weighed, mine, "best"), "mine")["evidence"] == "measured"


def test_every_tier_of_the_catalogue_at_once_sorts_by_any_column() -> None:
    desk = Desk(tiers=tuple(Desk().catalog.ids("tier")))
    weighed = tiers.weighed(desk, "usd")
    for shown in tiers.SHOWN:
        grid = tiers_table.grid(weighed, desk, shown)
        assert len(grid.rows) == len(desk.tiers)
        for head in grid.heads:
            rows = sorted_by(grid, head.id).rows
            assert len(rows) == len(grid.rows)
    assert all(
        tiers_pictures.details(weighed, desk, entry.key, "best") for entry in weighed.entries
    )
    labels = [
        dot.label for dot in tiers_pictures.front_chart(weighed, desk, "nas-hdd").dots if dot.label
    ]
    assert "nas-hdd" in labels
    assert len(labels) < len(desk.tiers) // 2


def test_work_that_was_superseded_stops_early() -> None:
    assert tiers.weighed(Desk(), "time", lambda: True).entries == ()
