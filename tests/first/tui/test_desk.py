"""The desk says a scenario exactly as flags and files do."""

import tomllib
from dataclasses import replace
from types import SimpleNamespace

import pytest

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.errors import InputError
from ckptcost.first.tui.desk import OWN, Desk, scenario_of

CATALOG = Catalog()


def desk(**more):
    return Desk(CATALOG, **more)


def test_edits_are_flags(cli):
    one = desk().edited("cluster.gpus", "512").edited("site.pue", "1.3")
    assert one.command("model") == "ckptcost model --set cluster.gpus=512 --set site.pue=1.3"
    assert float(one.resolved().scenario.cluster.gpus) == 512
    assert cli(*one.command("model").split()[1:]).code == 0


def test_the_command_is_quoted_for_a_shell():
    said = desk(base="my job.toml").edited("policy.interval", "30 min").command("model")
    assert said == "ckptcost model -s 'my job.toml' --set 'policy.interval=30 min'"


def test_the_last_way_to_say_how_often_wins():
    one = desk().edited("policy.interval", "30 min").edited("policy.saves", "20")
    assert dict(one.edits) == {"policy.saves": "20"}
    assert dict(one.edited("policy.optimal", "time").edits) == {"policy.optimal": "time"}
    assert one.resolved().scenario.policy.cadence == "saves"


def test_an_edit_made_again_moves_to_the_end_and_can_be_taken_back():
    one = desk().edited("site.pue", "1.3").edited("cluster.gpus", "64").edited("site.pue", "1.4")
    assert list(one.edits.items()) == [("cluster.gpus", "64"), ("site.pue", "1.4")]
    assert dict(one.without("site.pue").edits) == {"cluster.gpus": "64"}
    assert dict(one.plain().edits) == {}


def test_tiers_are_those_of_the_scenario_until_others_are_chosen():
    one = desk()
    assert one.tiers_shown() == ("nas-hdd", "generic-pfs", "ddn-exascaler-20", "ddn-exascaler-40")
    assert one.tier_chosen() == "nas-hdd"
    other = desk(tiers=("flash-shared", "nas-hdd"), chosen="nas-hdd")
    assert (other.tiers_shown(), other.tier_chosen()) == (("flash-shared", "nas-hdd"), "nas-hdd")
    assert desk(tiers=("flash-shared",), chosen="gone").tier_chosen() == "flash-shared"


def test_a_scenario_that_compares_nothing_shows_its_own_tier(tmp_path):
    file = tmp_path / "job.toml"
    file.write_text('extends = "llama31-405b-16k"\n[tier]\nid = "flash-shared"\n')
    assert desk(base=str(file)).tiers_shown() == ("flash-shared",)


def test_another_scenario_leaves_the_old_changes_behind():
    one = (
        desk(tiers=("nas-hdd",), baseline="nas-hdd", chosen="nas-hdd", metric="usd")
        .edited("site.pue", "1.3")
        .on("llama31-405b-16k")
    )
    assert (one.base, dict(one.edits), one.tiers, one.baseline, one.chosen, one.metric) == (
        "llama31-405b-16k",
        {},
        (),
        "",
        "",
        "usd",
    )


def test_wrong_changes_are_refused_with_a_place():
    with pytest.raises(InputError, match=r"cluster\.gpus"):
        desk().edited("cluster.gpus", "many").layers()
    with pytest.raises(InputError, match="section"):
        desk().edited("clutter.gpus", "8").layers()


def test_a_saved_scenario_computes_the_same(tmp_path):
    one = (
        desk(tiers=("flash-shared", "nas-hdd"))
        .edited("cluster.gpus", "512")
        .edited("policy.interval", "30 min")
    )
    one = one.edited("policy.pipelined", "true").edited("cluster.accelerator", "h200-sxm")
    file = tmp_path / "saved.toml"
    file.write_text(one.to_toml(tmp_path))
    assert tomllib.loads(file.read_text())["policy"]["pipelined"] is True
    again = one.saved_as(str(file))
    assert again.edits == {}
    assert again.tiers_shown() == one.tiers_shown()
    for tier in one.tiers_shown():
        assert again.resolved(tier).scenario == one.resolved(tier).scenario


def test_a_file_over_a_file_names_it_from_where_it_stands(tmp_path):
    below = tmp_path / "jobs" / "base.toml"
    below.parent.mkdir()
    below.write_text('extends = "gpt4-scale-2tb"\n')
    one = desk(base=str(below)).edited("site.pue", "1.5")
    (tmp_path / "over.toml").write_text(one.to_toml(tmp_path))
    assert 'extends = "jobs/base.toml"' in (tmp_path / "over.toml").read_text()
    assert (
        float(desk(base=str(tmp_path / "over.toml")).resolved("nas-hdd").scenario.site.pue) == 1.5
    )


@pytest.mark.parametrize(
    "text", ['a "quoted" name', "back\\slash", "new\nline", "tab\there", "\x7f"]
)
def test_any_text_survives_in_a_file(text, tmp_path):
    one = desk().edited("tier.name", text)
    assert tomllib.loads(one.to_toml(tmp_path))["tier"]["name"] == text


def test_a_key_that_is_none_is_not_written(tmp_path):
    with pytest.raises(InputError, match=r"cluster\.gpu_colour"):
        desk().edited("cluster.gpu_colour", "red").to_toml(tmp_path)


def test_the_stamp_changes_with_any_file_that_the_scenario_rests_on(tmp_path, monkeypatch):
    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path / "own"))
    preset = tmp_path / "own" / "models" / "scenarios" / "ours.toml"
    preset.parent.mkdir(parents=True)
    preset.write_text('id = "ours"\nname = "Ours"\nextends = "gpt4-scale-2tb"\n')
    (tmp_path / "below.toml").write_text('extends = "ours"\n')
    (tmp_path / "job.toml").write_text('extends = "below.toml"\n')
    desk = Desk(base=str(tmp_path / "job.toml"))
    seen = [desk.stamp()]
    assert desk.edited("cluster.gpus", "64").stamp() == desk.stamp() == seen[0]
    for file in (tmp_path / "job.toml", tmp_path / "below.toml", preset):
        file.write_text(file.read_text() + "# changed\n")
        seen.append(desk.stamp())
    (tmp_path / "below.toml").unlink()
    seen.append(desk.stamp())
    (tmp_path / "job.toml").unlink()
    seen.append(desk.stamp())
    assert len(set(seen)) == len(seen)
    assert seen[-1] == Desk(base="no\0name").stamp() == ()


def test_tiers_are_added_and_taken_out():
    one = desk()
    more = one.with_tiers([*one.tiers_shown(), "flash-shared"])
    assert more.tiers_shown()[-1] == "flash-shared"
    assert more.without_tier("nas-hdd").tiers_shown()[0] == "generic-pfs"
    assert one.with_tiers([]) is one
    assert one.with_tiers(list(one.tiers_shown())) is one
    assert one.on_tier("generic-pfs").tier_chosen() == "generic-pfs"
    assert one.on_tier(OWN).chosen == OWN, "the scenario's own is not among these"


def test_a_change_of_the_tier_itself_gives_way_where_several_are_named():
    one = desk().edited("tier.id", "flash-shared").with_tiers(["flash-shared", "nas-hdd"])
    assert "tier.id" not in one.edits
    named = desk(tiers=("nas-hdd", "flash-shared")).edited("tier.id", "flash-shared")
    assert "tier.id" not in scenario_of(named).edits


def test_numbers_of_saves_to_compare_say_how_often_to_save(monkeypatch):
    layers = [
        SimpleNamespace(has_cadence=False, compare_saves=()),
        SimpleNamespace(has_cadence=False, compare_saves=(10.0, 100.0)),
    ]
    monkeypatch.setattr(Desk, "layers", lambda self: layers)
    one = desk()
    assert one.timed() == one
    layers.pop()
    assert dict(one.timed("usd").edits) == {"policy.optimal": "usd"}


def test_the_same_figures_are_not_computed_again_but_a_file_opened_anew_is(tmp_path):
    one = desk().edited("cluster.gpus", "512")
    assert replace(one, baseline="generic-pfs", metric="usd").same_figures(one)
    assert one.on_tier("generic-pfs").same_figures(one)
    assert not replace(one, tiers=("flash-shared",)).same_figures(one)
    assert not one.on(one.base).same_figures(one)
    assert not one.on(one.base).same_figures(one.on(one.base))
    assert not one.same_figures(None)
    file = tmp_path / "job.toml"
    file.write_text('extends = "gpt4-scale-2tb"\n')
    one = desk(base=str(file))
    stamp = one.stamp()
    assert replace(one, metric="usd").same_figures(one, stamp)
    assert not replace(one, catalog=Catalog()).same_figures(one, stamp)
    file.write_text('extends = "gpt4-scale-2tb"\n[cluster]\ngpus = 512\n')
    assert not one.same_figures(one, stamp)
