"""Measured beside modelled: the tables of `ckptcost compare RUN SCENARIO`, and bars that add up."""

from __future__ import annotations

import json
import shlex

import pytest
from recorded_runs import LARGE_RUN, simulated_run
from small_runs import recorded

from ckptcost.errors import CkptcostError, InputError
from ckptcost.runs import store
from ckptcost.tui.desk import Desk
from ckptcost.tui.screens import against_view
from ckptcost.tui.screens.run_view import next_host
from ckptcost.tui.screens.runs_entries import Source


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    return simulated_run(tmp_path_factory.mktemp("made") / "large", 100e9, LARGE_RUN)


def source_of(path):
    (kept,) = store.kept_at(path)
    return Source(str(path), kept.run, 1000, True, 3)


def view_of(source, desk, host=""):
    return against_view.held(source, host, *against_view.settings_of(desk))


DESKS = [
    Desk(base="small-8b"),
    Desk(base="small-8b", edits={"checkpoint.size": "100 GB", "site.pue": "1.4"}),
    Desk(base="small-8b", tiers=("local-nvme-4xgen5", "generic-pfs"), chosen="generic-pfs"),
    Desk(base="small-8b", edits={"tier.id": "nas-hdd"}),
]


@pytest.mark.parametrize("desk", DESKS)
def test_the_command_prints_the_same(cli, large, desk):
    source = source_of(large)
    view = view_of(source, desk)
    words = shlex.split(against_view.command_of(source, desk))
    assert words[:2] == ["ckptcost", "compare"]
    said = cli(*words[1:], "-f", "json")
    assert said.code == 0, said
    document = json.loads(said.out)
    assert view.study.findings == document["findings"]
    for table in view.study.tables:
        for row, told in zip(table.rows, document["tables"][table.id]["rows"], strict=True):
            for key, value in row.items():
                assert told[key] == pytest.approx(value), (table.id, key)
    assert view.study.resolved[0].words.get("tier.id") == desk.tier_chosen()


def test_the_explanation_comes_first(large):
    view = view_of(source_of(large), DESKS[0])
    said = [text for text, _ in view.lines]
    assert said.index(view.study.findings[0]) < said.index(view.study.about[0])
    assert view.table_ids[0] == against_view.LINES
    assert set(view.table_ids) == {table.id for table in view.study.tables if table.rows}
    assert len(view.tables) == len(view.table_ids)
    assert "Llama" in view.head


def test_bars_lead_from_modelled_to_measured(large):
    view = view_of(source_of(large), DESKS[0])
    bars = view.bars
    lines = next(table for table in view.study.tables if table.id == "lines").rows
    time = next(row for row in lines if row["quantity"] == "time")
    assert bars.rows[0].parts[0].end == pytest.approx(time["modelled"])
    assert bars.rows[-1].parts[0].end == pytest.approx(time["measured"])
    at_s = bars.rows[0].parts[0].end
    for bar in bars.rows[1:-1]:
        (part,) = bar.parts
        assert at_s in (pytest.approx(part.begin), pytest.approx(part.end)), (
            "each begins where the one before ends"
        )
        at_s = part.begin + part.end - at_s
        assert part.tone == (
            "bad" if bar.text.startswith("+") else "good" if bar.text.startswith("-") else "muted"
        )
    assert at_s == pytest.approx(time["measured"])
    parts = next(table for table in view.study.tables if table.id == "parts_save").rows
    assert [bar.label for bar in bars.rows[1:-1]] == [row["cause"] for row in parts[:-1]]


def test_several_hosts(tmp_path):
    for number, host in enumerate(("node1", "node2"), start=1):
        recorded(tmp_path / "two", 30, run_id="e" * 32, host=host, count=number)
    first = view_of(source_of(tmp_path / "two"), DESKS[0])
    assert (first.host, next_host(first)) == ("node1", "node2")
    second = view_of(source_of(tmp_path / "two"), DESKS[0], "node2")
    assert "(2 of 2)" in second.head
    assert next_host(second) == "node1"


def test_without_a_checkpoint_or_with_a_wrong_scenario(tmp_path, large):
    recorded(tmp_path / "idle", 20, run_id="a" * 32, saves=())
    with pytest.raises(InputError, match="holds no checkpoint"):
        view_of(source_of(tmp_path / "idle"), DESKS[0])
    with pytest.raises(CkptcostError):
        against_view.settings_of(Desk(base="no-such-scenario"))


def test_causes_that_are_not_known_are_said(tmp_path):
    recorded(tmp_path / "plain", 30, run_id="a" * 32)
    file = tmp_path / "plain" / "node1.000.jsonl"
    from ckptcost.runs.lines import decode, encode

    out = []
    for line in file.read_bytes().splitlines():
        fields = decode(line)
        if fields["k"] == "mark":
            (fields.get("detail") or {}).pop("bytes", None)
        out.append(encode({key: value for key, value in fields.items() if key != "c"}))
    file.write_bytes(b"".join(out))
    view = view_of(source_of(tmp_path / "plain"), DESKS[0])
    assert view.bars.rows == ()
    assert "no cause can be told apart" in view.bars.empty
    assert any("not known" in text or "cannot be held" in text for text, _ in view.lines)
