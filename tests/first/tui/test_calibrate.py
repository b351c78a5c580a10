"""Calibrating on a screen: the fit, the files and the refusals of `ckptcost calibrate`, and a check
that the model itself makes."""

from __future__ import annotations

import json

import pytest
from recorded_runs import LARGE_RUN, SMALL_RUN, simulated_run
from small_runs import recorded

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.errors import InputError, MeterUnavailable, OutputError
from ckptcost.first.runs import store
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.screens import against, calibrate_fit
from ckptcost.first.tui.screens.recorded_run import RunSource


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    base = tmp_path_factory.mktemp("made")
    simulated_run(base / "small", 20e9, SMALL_RUN)
    simulated_run(base / "large", 100e9, LARGE_RUN, after_s=3600)
    return base


@pytest.fixture(scope="module")
def fitted(made):
    return calibrate_fit.fit([source_of(made / "small"), source_of(made / "large")])


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path / "user"))
    return tmp_path / "user"


def source_of(path):
    (kept,) = store.kept_at(path)
    return RunSource(str(path), kept.run, 1000, True, 3)


DESK = Desk(base="small-8b")


def test_the_figures_are_the_command_lines(cli, made, fitted):
    said = cli(
        "calibrate",
        str(made / "small"),
        str(made / "large"),
        "--as",
        "planted",
        "--dry-run",
        "-f",
        "json",
    )
    document = json.loads(said.out)
    parameters = {row["id"]: row for row in document["tables"]["parameters"]["rows"]}
    grid = calibrate_fit.parameters(fitted, DESK, fitted.usual)
    ids = {p.path or p.id: p.id for p in fitted.found.parameters}
    assert {ids[row.key] for row in grid.rows} == set(parameters)
    heads = [head.id for head in grid.heads]
    text = cli(
        "calibrate",
        str(made / "small"),
        str(made / "large"),
        "--as",
        "planted",
        "--dry-run",
        "--full",
    ).out
    for row in grid.rows:
        cells, told = dict(zip(heads, row.cells, strict=True)), parameters[ids[row.key]]
        assert row.order[heads.index("value")] == pytest.approx(told["value"])
        line = next(line for line in text.splitlines() if line.startswith(told["what"]))
        assert cells["value"] in line
        assert cells["n"] in line.split()
    assert calibrate_fit.study_for(fitted, "planted").findings == document["findings"]
    known = [row.order[heads.index("value")] is not None for row in grid.rows]
    assert known == sorted(known, reverse=True), "known ones stand first"
    assert {row.key for row in grid.rows} == {
        parameters[ids[row.key]]["path"] or row.key for row in grid.rows
    }


def test_now_is_the_models_own(cli, fitted):
    document = json.loads(
        cli("model", "-s", "small-8b", "--tier", DESK.tier_chosen(), "-f", "json").out
    )
    factors = {factor["id"]: factor["value"] for factor in document["statements"][0]["factors"]}
    grid = calibrate_fit.parameters(fitted, DESK, [])
    now = {row.key: row.order[1] for row in grid.rows if row.order[1] is not None}
    assert set(now) >= {"cluster.gpu_train", "tier.node_write"}
    for path in ("cluster.gpu_train", "cluster.gpu_stall", "tier.node_write"):
        assert now[path] == pytest.approx(factors[path])
    change = next(row for row in grid.rows if row.key == "tier.node_write")
    now, measured, changed = (
        change.order[[head.id for head in grid.heads].index(name)]
        for name in ("now", "value", "change")
    )
    assert changed == pytest.approx(measured / now - 1)


def test_ticks_are_for_what_no_tier_file_holds(fitted):
    assert (
        set(fitted.usual) == {path for path in fitted.free if path.startswith("cluster.")} != set()
    )
    assert calibrate_fit.why_not(fitted, "cluster.gpu_train") == ""
    assert "written whole" in calibrate_fit.why_not(fitted, "tier.node_write")
    assert "not known" in calibrate_fit.why_not(fitted, "policy.snapshot")
    assert "No figure" in calibrate_fit.why_not(fitted, "nothing.at_all")
    edits = calibrate_fit.edits_of(fitted, ["cluster.gpu_train"])
    assert list(edits) == ["cluster.gpu_train"]
    train = fitted.found.parameter("gpu_train").estimate.value
    resolved = Desk(base="small-8b", edits=edits).resolved()
    assert float(resolved.scenario.cluster.gpu_train_w) == pytest.approx(train, rel=1e-6)
    assert "several sizes" in calibrate_fit.evidence(fitted, "tier.node_write")
    assert calibrate_fit.evidence(fitted, "nothing.at_all") == ""
    left = calibrate_fit.not_taken(
        fitted, ["cluster.gpu_train"], DESK.edited("tier.write", "5 GB/s")
    )
    assert "one GPU held up" in left[0]
    assert "tier.write = 5 GB/s" in left[1]
    assert calibrate_fit.not_taken(fitted, fitted.free, DESK) == []
    rows = {
        row.key: row.cells[0]
        for row in calibrate_fit.parameters(fitted, DESK, ["cluster.gpu_train"]).rows
    }
    assert rows["cluster.gpu_train"].startswith("[x]")
    assert rows["cluster.gpu_stall"].startswith("[ ]")
    assert rows["tier.node_write"].startswith(" x ")


def test_the_same_files_as_the_command_line(cli, made, fitted, tmp_path, monkeypatch):
    texts = []
    for user in ("by-cli", "by-screen"):
        monkeypatch.setenv("CKPTCOST_USER", str(tmp_path / user))
        if user == "by-cli":
            words = (
                "calibrate",
                str(made / "small"),
                str(made / "large"),
                "--as",
                "planted",
                "--name",
                "A planted machine",
            )
            assert cli(*words).code == 0
        else:
            written = calibrate_fit.write(fitted, "planted", "A planted machine")
            assert written.kinds == ("tier", "cluster")
            assert "planted.toml" in written.text
        files = sorted((tmp_path / user).rglob("*.toml"))
        texts.append({str(file.relative_to(tmp_path / user)): file.read_bytes() for file in files})
    assert texts[0] == texts[1]
    assert len(texts[0]) == 2
    assert (
        calibrate_fit.command_of(fitted.sources, "planted", "A b")
        == f"ckptcost calibrate {made / 'small'} {made / 'large'} --as planted --name 'A b'"
    )


@pytest.mark.parametrize(
    "name", ["", "x/y", "../up", ".hidden", "a b", "flash-shared", "with.toml", "x" * 200]
)
def test_refuses_what_the_command_line_refuses(cli, made, fitted, mine, name):
    said = cli("calibrate", str(made / "small"), str(made / "large"), f"--as={name}")
    assert said.code == 2
    assert calibrate_fit.refusal_of(fitted, name)
    with pytest.raises(InputError):
        calibrate_fit.write(fitted, name)
    assert not list(mine.rglob("*.toml"))


def test_taken_names_and_titles_are_refused_and_nothing_is_written(fitted, mine):
    calibrate_fit.write(fitted, "planted")
    assert "already there" in calibrate_fit.refusal_of(fitted, "planted")
    assert "--force" not in calibrate_fit.refusal_of(fitted, "planted")
    assert calibrate_fit.refusal_of(fitted, "other", "two\nlines")
    assert calibrate_fit.refusal_of(fitted, "other") == ""


def test_undo_takes_back_only_what_nobody_changed(fitted, mine):
    written = calibrate_fit.write(fitted, "planted")
    (tier, _), (cluster, _) = written.texts
    tier.write_text(tier.read_text() + "# mine\n")
    with pytest.raises(OutputError, match="was changed since"):
        calibrate_fit.undo(written)
    assert cluster.exists()
    tier.write_text(tier.read_text().removesuffix("# mine\n"))
    assert "taken back" in calibrate_fit.undo(written)
    assert not tier.exists()
    assert not cluster.exists()


def test_the_check_is_what_compare_says_before_and_after(cli, made, fitted, mine):
    base, settings = against.settings_of(DESK)
    checked = calibrate_fit.check(fitted, base, settings)
    assert not list(mine.rglob("*.toml"))
    rows = {row.order[0]: row.order for row in checked.rows if row.order[1] == "save"}
    written = calibrate_fit.write(fitted, "planted")
    for name, run in (("small", SMALL_RUN), ("large", LARGE_RUN)):
        _, _, measured, before, off_before, after, off_after = rows[run[:8]]
        now = lines(cli("compare", f"run:{made / name}", "small-8b", "-f", "json"))
        then = lines(
            cli(
                "compare",
                f"run:{made / name}",
                "small-8b",
                "--set",
                "tier.id=planted",
                "-f",
                "json",
            )
        )
        assert measured == pytest.approx(now["measured"])
        assert before == pytest.approx(now["at_size"])
        assert after == pytest.approx(then["at_size"], rel=1e-6)
        assert off_before == pytest.approx(before / measured - 1)
        assert abs(off_after) < 0.03 < abs(off_before), "the fit predicts what it was made from"
    assert [row.tone for row in checked.rows] == ["good"] * len(checked.rows)
    calibrate_fit.undo(written)


def lines(said):
    assert said.code == 0, said
    rows = json.loads(said.out)["tables"]["lines"]["rows"]
    return next(row for row in rows if row["quantity"] == "time" and row["of"] == "save")


def test_the_effect_is_what_model_and_optimize_print(cli, fitted, mine):
    grid = calibrate_fit.effect(fitted, DESK, fitted.usual)
    rows = {row.key: row.order for row in grid.rows}
    edits = calibrate_fit.edits_of(fitted, fitted.usual)
    calibrate_fit.write(fitted, "planted")
    flags = [word for path, text in edits.items() for word in ("--set", f"{path}={text}")]
    now = json.loads(
        cli("model", "-s", "small-8b", "--tier", DESK.tier_chosen(), "-f", "json").out
    )["tables"]["cases"]["rows"][0]
    then = json.loads(
        cli("model", "-s", "small-8b", "--tier", "planted", *flags, "-f", "json").out
    )["tables"]["cases"]["rows"][0]
    for key in set(rows) - {"best"}:
        assert rows[key][1] == pytest.approx(now[key])
        assert rows[key][2] == pytest.approx(then[key], rel=1e-6)
    best = json.loads(
        cli("optimize", "-s", "small-8b", "--tier", "planted", *flags, "-f", "json").out
    )
    intervals = {row["at"]: row["interval"] for row in best["tables"]["intervals"]["rows"]}
    assert rows["best"][2] == pytest.approx(intervals["best for time"], rel=1e-3)


def test_on_the_desk_and_off_again(fitted, mine):
    calibrate_fit.write(fitted, "planted")
    edits = calibrate_fit.edits_of(fitted, ["cluster.gpu_stall"])
    desk = calibrate_fit.put_on(DESK, "planted", edits)
    assert desk.tiers_shown() == (*DESK.tiers_shown(), "planted")
    assert desk.tier_chosen() == "planted"
    assert "cluster.gpu_stall" in desk.edits
    written = float(desk.resolved().scenario.tier.node_write_bytes_per_s)
    assert written == pytest.approx(fitted.found.parameter("write").estimate.value, rel=1e-6)
    back = calibrate_fit.without(desk, "planted")
    assert back.tiers_shown() == DESK.tiers_shown()
    assert back.chosen == ""
    assert "planted" in calibrate_fit.offer(fitted, "planted", ["cluster.gpu_stall"])
    assert "cluster.gpu_stall = " in calibrate_fit.offer(fitted, "planted", ["cluster.gpu_stall"])


def test_the_users_other_entries_count_in_a_check(fitted, mine):
    calibrate_fit.write(fitted, "own-tier")
    desk = calibrate_fit.put_on(DESK, "own-tier", {})
    base, settings = against.settings_of(desk)
    assert "tier.id=own-tier" in settings
    checked = calibrate_fit.check(fitted, base, settings)
    assert checked.note == ""
    assert all(abs(row.order[4]) < 0.03 for row in checked.rows)
    assert "own-tier" in Catalog().ids("tier")


def test_nothing_to_fit_says_why(tmp_path):
    recorded(tmp_path / "idle", 20, run_id="a" * 32, saves=())
    with pytest.raises(MeterUnavailable, match="nothing can be calibrated"):
        calibrate_fit.fit([source_of(tmp_path / "idle")])


def test_a_scenario_that_cannot_be_computed_leaves_the_figures(fitted):
    desk = DESK.edited("policy.optimal", "nonsense")
    grid = calibrate_fit.parameters(fitted, desk, [])
    assert all(row.order[1] is None for row in grid.rows)
    assert any(row.order[2] is not None for row in grid.rows)
