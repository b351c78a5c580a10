"""The form: texts that are read back as what they show, what typing means, and what is told of each
field."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptcost.first.catalog.keys import KEYS, LIMITS, SECTIONS, WORDS, unit_of
from ckptcost.first.core.units import UNITS, parse
from ckptcost.first.errors import InputError, UnknownName
from ckptcost.first.report.rows import COLUMNS
from ckptcost.first.tui import fields
from ckptcost.first.tui.about_field import about_field, entries
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.fields import exact_text, with_unit
from ckptcost.first.tui.screens import model_view as model

PRESETS = [
    "bloom-176b",
    "gpt4-scale-2tb",
    "llama31-405b-16k",
    "micron-100k",
    "opt-175b",
    "small-8b",
]


def form_of(desk, everything=False):
    return model.form(model.evaluate(desk), everything)


def field(desk, path, everything=False):
    return next(each for each in form_of(desk, everything) if each.path == path)


def said(desk, path):
    return " ".join(text for text, _ in about_field(desk, path))


# ---- the text of a field is its value


@given(st.floats(1e-12, 1e20), st.sampled_from([unit for unit in UNITS if unit]))
def test_a_text_is_read_back_exactly(value, unit):
    assert parse(exact_text(value, unit), unit) == value


@given(st.floats(0, 1e18) | st.integers(0, 10**15).map(float))
def test_a_plain_number_too(value):
    assert parse(exact_text(value, ""), "") == value


@pytest.mark.parametrize("preset", PRESETS)
def test_every_field_of_every_preset_is_read_back_as_the_value_in_force(preset):
    desk = Desk(base=preset)
    view = model.evaluate(desk)
    values = {i.path: i for i in view.resolved.inputs}
    shown = [
        each for each in model.form(view, everything=True) if each.text and each.path in values
    ]
    assert len(shown) > 25
    for each in shown:
        given_value = values[each.path].figure.value
        assert (
            each.text == "all"
            if math.isinf(given_value)
            else parse(each.text, values[each.path].unit) == given_value
        )


@pytest.mark.parametrize("preset", ["gpt4-scale-2tb", "small-8b"])
def test_typing_what_stands_there_changes_no_value(preset):
    desk = Desk(base=preset)
    before = model.evaluate(desk)
    for each in model.form(before, everything=True):
        if not each.text or each.path in fields.KINDS or each.path.endswith("keep_last"):
            continue
        if each.path in ("failures.rate", "failures.gpu_rate"):
            continue  # given, they are taken alone, without the law of size: test_scenario
        found = model.evaluate(fields.put(desk, each.path, each.text))
        for name in COLUMNS:
            value = before.looked.row[name]
            same = pytest.approx(value, rel=1e-11) if isinstance(value, float) else value
            assert found.looked.row[name] == same, (each.path, name)


def test_all_fields_are_all_keys():
    shown = {each.path for each in form_of(Desk(base="small-8b"), everything=True)}
    sections = [section for section in SECTIONS if section != "third_tier"]
    keys = {f"{s}.{key}" for s in sections for key in (*KEYS[s], *WORDS[s]) if key != "name"}
    assert shown == keys


def test_without_a_second_tier_only_its_name_can_be_given():
    shown = [each.path for each in form_of(Desk(), everything=True)]
    assert [path for path in shown if path.startswith("second_tier.")] == ["second_tier.id"]


def test_the_first_view_is_short_and_has_every_group():
    shown = form_of(Desk())
    assert 20 <= len(shown) <= 30
    assert [*dict.fromkeys(each.group for each in shown)] == [
        "Checkpoint",
        "Storage",
        "Cluster",
        "Saving",
        "Failures",
        "Site and prices",
        "Run",
    ]


def test_the_rate_in_force_is_the_one_shown():
    assert "tier.node_write" in {each.path for each in form_of(Desk(base="small-8b"))}
    assert field(Desk(base="small-8b"), "tier.node_write").label == "write rate"
    assert field(Desk(), "tier.write").text == "200 MB/s"


def test_marks_say_where_a_value_comes_from():
    desk = Desk(edits={"cluster.gpus": "2048"})
    marks = {each.path: each.mark for each in form_of(desk, everything=True)}
    assert marks["cluster.gpus"] == "u"
    assert marks["cluster.gpu_idle"] == "m"
    assert marks["tier.write"] == "s"
    assert marks["cluster.gpu_train"] == "="
    assert marks["failures.detect"] == "d"
    assert marks["tier.capacity"] == ""


def test_what_is_not_given_shows_what_holds_without_it():
    desk = Desk()
    shown = {each.path: (each.text, each.placeholder) for each in form_of(desk, everything=True)}
    assert shown["policy.interval"] == ("", "7200 s")
    assert shown["tier.capacity"] == ("", "-")
    assert shown["checkpoint.compress_rate"] == ("", "no limit")
    assert shown["cluster.price_includes_electricity"] == ("", "true")
    assert shown["checkpoint.params"] == ("", "1000B, not used")


def test_a_size_that_is_counted_is_shown_as_such():
    desk = Desk(base="small-8b")
    shown = field(desk, "checkpoint.size")
    values = {i.path: i.figure.value for i in model.evaluate(desk).resolved.inputs}
    if "checkpoint.size" in values:
        pytest.fail("this preset is meant to count its size")
    counted = values["checkpoint.params"] * values["checkpoint.bytes_per_param"]
    assert shown.mark == "="
    assert parse(shown.placeholder, "bytes") == pytest.approx(counted, rel=0.01)


def test_choices_are_words_and_catalogue_entries():
    desk = Desk()
    assert field(desk, "policy.mode").choices == ("sync", "async")
    assert "flash-shared" in field(desk, "tier.id").choices
    assert field(desk, "cluster.gpus").choices == ()
    assert field(desk, "policy.pipelined", everything=True).choices == ("true", "false")


# ---- what typing means


def test_an_empty_text_goes_back():
    desk = fields.put(Desk(), "cluster.gpus", "2048")
    assert desk.edits == {"cluster.gpus": "2048"}
    assert fields.put(desk, "cluster.gpus", "  ").edits == {}


def test_a_number_alone_has_the_unit_that_stood_there():
    assert fields.put(Desk(), "cluster.gpu_train", "700").edits == {"cluster.gpu_train": "700 W"}
    assert fields.put(Desk(), "tier.write", "500").edits == {"tier.write": "500 MB/s"}
    assert fields.put(Desk(), "cluster.gpus", "512").edits == {"cluster.gpus": "512"}
    assert fields.put(Desk(), "tier.capacity", "6").edits == {
        "tier.capacity": "6 TB"
    }  # as in the example of a size


def test_a_number_alone_is_a_percentage_where_one_stood_there():
    desk = fields.put(Desk(), "policy.slowdown", "5 %")
    assert fields.put(desk, "policy.slowdown", "7").edits == {"policy.slowdown": "7 %"}
    assert fields.put(Desk(), "policy.slowdown", "0.07").edits == {"policy.slowdown": "0.07"}
    assert fields.put(desk, "cluster.gpus", "512").edits["cluster.gpus"] == "512"


def test_a_number_can_be_typed_where_the_scenario_cannot_be_resolved():
    desk = Desk(edits={"tier.write": "3 W"})
    assert fields.put(desk, "cluster.gpu_train", "700").edits["cluster.gpu_train"] == "700 W"
    assert fields.put(desk, "tier.write", "3 GB/s").edits == {"tier.write": "3 GB/s"}


@pytest.mark.parametrize(
    "path",
    [
        f"{s}.{k}"
        for s in ("checkpoint", "tier", "cluster", "policy", "failures", "site", "run")
        for k in KEYS[s]
    ],
)
def test_a_bare_number_can_be_typed_in_every_field(path):
    section, _, key = path.partition(".")
    parse(with_unit(Desk(), path, "1"), unit_of(section, key))


def test_another_entry_forgets_what_was_said_of_its_section():
    desk = fields.put(fields.put(Desk(), "cluster.gpus", "64"), "site.pue", "1.4")
    desk = fields.put(desk, "cluster.id", "h100-16k")
    assert desk.edits == {"site.pue": "1.4", "cluster.id": "h100-16k"}
    assert field(desk, "cluster.gpus").text == "16384"


def test_one_way_of_saying_how_often():
    desk = fields.put(fields.put(Desk(), "policy.saves", "50"), "policy.interval", "30 min")
    assert desk.edits == {"policy.interval": "30 min"}


def test_a_tier_is_looked_at_beside_the_others():
    desk = fields.put(Desk(), "tier.id", "flash-shared")
    assert (desk.chosen, desk.tiers[-1], len(desk.tiers)) == ("flash-shared", "flash-shared", 5)
    assert desk.edits == {}
    assert fields.put(Desk(), "tier.id", "generic-pfs").tiers == ()
    assert fields.put(desk, "tier.id", "").tier_chosen() == "nas-hdd"


def test_an_unknown_entry_says_what_is_near():
    with pytest.raises(UnknownName, match="nas-hdd"):
        fields.put(Desk(), "tier.id", "nas-hd")


def test_parameters_decide_nothing_where_the_size_is_given():
    with pytest.raises(InputError, match="size is given"):
        fields.put(Desk(), "checkpoint.params", "70B")
    assert fields.put(Desk(base="small-8b"), "checkpoint.params", "70B").edits == {
        "checkpoint.params": "70B"
    }


def test_a_reason_is_short_and_says_what_would_be_right():
    with pytest.raises(InputError) as caught:
        model.evaluate(fields.put(Desk(), "checkpoint.size", "2 W"))
    said = fields.reason(caught.value)
    assert "2 TB" in said
    assert "--set" not in said
    assert len(fields.reason(InputError("x" * 900))) <= 200


# ---- what is told of a field


def test_about_a_figure():
    told = said(Desk(), "site.pue")
    for part in (
        "facility energy over it energy",
        "1.15",
        "1.08-1.56",
        "assumed",
        "site usa",
        "1 or more, at most 10",
        "site.pue",
    ):
        assert part in told.lower()


def test_about_what_you_wrote():
    desk = Desk(edits={"tier.write": "1 GB/s"})
    assert "yours" in said(desk, "tier.write")
    assert "every tier in the table" in said(desk, "tier.write")
    assert "every tier" not in said(
        Desk(base="small-8b", edits={"tier.node_write": "1 GB/s"}), "tier.node_write"
    )


def test_about_what_nobody_gives():
    assert "1170 J/GB, range 38-36,000 J/GB: assumed" in said(Desk(), "tier.write_energy")
    assert "Nobody gives it" in said(Desk(), "tier.active_power")
    assert "Follows from policy.saves" in said(Desk(), "policy.interval")
    assert "Not used" in said(Desk(), "checkpoint.params")


@pytest.mark.parametrize("everything", [False, True])
def test_something_is_told_of_every_field(everything):
    desk = Desk(base="small-8b")
    view = model.evaluate(desk)
    for each in model.form(view, everything):
        told = about_field(desk, each.path, view.resolved)
        assert len(told) >= 2
        assert told[-1] == (each.path, "muted")
        key = each.path.partition(".")[2]
        if key in LIMITS:
            assert "Allowed" in told[-2][0]


@pytest.mark.parametrize("path", [*fields.KINDS, "policy.mode"])
def test_entries_list_every_choice(path):
    desk = Desk()
    grid = entries(desk.catalog, path)
    assert tuple(row.key for row in grid.rows) == fields.choices_of(desk.catalog, path)
    assert all(len(row.cells) == len(grid.heads) for row in grid.rows)


def test_a_refusal_names_the_file_that_is_wrong_below_what_was_typed(tmp_path):
    file = tmp_path / "job.toml"
    file.write_text("[cluster\n")
    with pytest.raises(InputError) as refused:
        Desk(base=str(file)).edited("cluster.gpus", "8").resolved()
    assert fields.reason(refused.value).startswith("job.toml: is not valid TOML")


def test_the_time_between_failures_is_shown_and_can_be_typed():
    desk = Desk()
    shown = {each.path: each for each in model.form(model.evaluate(desk))}["failures.mtbf"]
    assert (shown.label, shown.text, shown.mark) == ("one each", "", "=")
    assert shown.placeholder.endswith(" h")
    assert "stands for all of them" in said(desk, "failures.mtbf")
    mine = model.evaluate(fields.put(desk, "failures.mtbf", "6 h")).looked.case
    assert mine.outcome.plan.failures_per_s == pytest.approx(1 / 21_600)


TWO = Desk(base="small-8b", tiers=("nas-hdd", "flash-shared"))


def test_a_tier_s_figure_holds_for_two_tiers_as_for_many():
    said = [text for text, _ in about_field(TWO.edited("tier.write", "5 GB/s"), "tier.write")]
    assert "What you write here holds for every tier in the table." in said
