"""Measured beside modelled: the tables of `ckptcost compare RUN SCENARIO`, and bars that add up."""

from __future__ import annotations

import json
import shlex

import pytest
from recorded_runs import LARGE_RUN, simulated_run
from small_runs import recorded

from ckptcost.first.errors import CkptcostError, InputError
from ckptcost.first.runs import store
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.screens import against
from ckptcost.first.tui.screens.recorded_run import RunSource, read_run
from ckptcost.first.tui.study_grids import paragraphs


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    return simulated_run(tmp_path_factory.mktemp("made") / "large", 100e9, LARGE_RUN)


def source_of(path):
    (kept,) = store.kept_at(path)
    return RunSource(str(path), kept.run, 1000, True, 3)


def study_of(source, desk, host=""):
    return against.study_against(read_run(source, host).seen, desk)


DESKS = [
    Desk(base="small-8b"),
    Desk(base="small-8b", edits={"checkpoint.size": "100 GB", "site.pue": "1.4"}),
    Desk(base="small-8b", tiers=("local-nvme-4xgen5", "generic-pfs"), chosen="generic-pfs"),
    Desk(base="small-8b", edits={"tier.id": "nas-hdd"}),
]


@pytest.mark.parametrize("desk", DESKS)
def test_the_command_prints_the_same(cli, large, desk):
    source = source_of(large)
    study = study_of(source, desk)
    words = shlex.split(against.command_of(source, desk))
    assert words[:2] == ["ckptcost", "compare"]
    said = cli(*words[1:], "-f", "json")
    assert said.code == 0, said
    document = json.loads(said.out)
    assert study.findings == document["findings"]
    for table in study.tables:
        for row, told in zip(table.rows, document["tables"][table.id]["rows"], strict=True):
            for key, value in row.items():
                assert told[key] == pytest.approx(value), (table.id, key)
    assert study.resolved[0].words.get("tier.id") == desk.tier_chosen()


def test_the_explanation_comes_first(large):
    run = read_run(source_of(large))
    study, screen = against.study_against(run.seen, DESKS[0]), against.AgainstScreen(run.source)
    said = [text for text, _ in screen.lines(run, study)]
    assert said.index(study.findings[0]) < said.index(study.about[0])
    assert min((table for table in study.tables if table.rows), key=screen.order).id == "lines"
    assert "Llama" in screen.head(run, study)


def test_bars_lead_from_modelled_to_measured(large):
    study = study_of(source_of(large), DESKS[0])
    bars = against.bars_of(study)
    lines = next(table for table in study.tables if table.id == "lines").rows
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
    parts = next(table for table in study.tables if table.id == "parts_save").rows
    assert [bar.label for bar in bars.rows[1:-1]] == [row["cause"] for row in parts[:-1]]


def test_several_hosts(tmp_path):
    for number, host in enumerate(("node1", "node2"), start=1):
        recorded(tmp_path / "two", 30, run_id="e" * 32, host=host, count=number)
    source = source_of(tmp_path / "two")
    first, second = read_run(source), read_run(source, "node2")
    assert (first.host, first.next_host, second.next_host) == ("node1", "node2", "node1")
    study = against.study_against(second.seen, DESKS[0])
    assert "(2 of 2)" in against.AgainstScreen(source).head(second, study)


def test_without_a_checkpoint_or_with_a_wrong_scenario(tmp_path, large):
    recorded(tmp_path / "idle", 20, run_id="a" * 32, saves=())
    with pytest.raises(InputError, match="holds no checkpoint"):
        study_of(source_of(tmp_path / "idle"), DESKS[0])
    with pytest.raises(CkptcostError):
        against.settings_of(Desk(base="no-such-scenario"))


def test_causes_that_are_not_known_are_said(tmp_path):
    recorded(tmp_path / "plain", 30, run_id="a" * 32)
    file = tmp_path / "plain" / "node1.000.jsonl"
    from ckptcost.first.runs.lines import decode, encode

    out = []
    for line in file.read_bytes().splitlines():
        fields = decode(line)
        if fields["k"] == "mark":
            (fields.get("detail") or {}).pop("bytes", None)
        out.append(encode({key: value for key, value in fields.items() if key != "c"}))
    file.write_bytes(b"".join(out))
    study = study_of(source_of(tmp_path / "plain"), DESKS[0])
    assert against.bars_of(study).rows == ()
    assert "no cause can be told apart" in against.bars_of(study).empty
    assert any("not known" in text or "cannot be held" in text for text, _ in paragraphs(study))
