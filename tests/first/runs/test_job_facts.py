"""What launchers say of a job, as Slurm, torchrun and a pod set it, and that it stands in the run
and troubles nobody there."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packable_runs import packable, save
from steady_meters import Steady

from ckptcost.first.errors import InputError
from ckptcost.first.fleet.packing import facts_in
from ckptcost.first.jobs.measure import reviewed
from ckptcost.first.jobs.observe import Observer, WatchOptions
from ckptcost.first.report.studies.measure import study_of
from ckptcost.first.runs import job_facts
from ckptcost.first.runs.clocks import S, VirtualClock
from ckptcost.first.runs.header import Header
from ckptcost.first.runs.job_facts import (
    MOST_LABELS,
    MOST_NODE_LETTERS,
    JobFacts,
    facts_from,
    facts_of,
    labels_of,
)
from ckptcost.first.runs.reader import load
from ckptcost.first.runs.recorder import Recorder
from ckptcost.first.runs.sinks import FileSink
from ckptcost.first.runs.station import Station
from ckptcost.first.tui.live.board import LiveBoard

SLURM = {
    "SLURM_JOB_ID": "4711",
    "SLURM_JOB_NAME": "pretrain",
    "SLURM_JOB_ACCOUNT": "infra",
    "SLURM_CLUSTER_NAME": "alps",
    "SLURM_JOB_NUM_NODES": "128",
    "SLURM_JOB_NODELIST": "nid[001000-001127]",
    "SLURM_RESTART_COUNT": "2",
    "SLURM_PROCID": "0",
}
TORCHRUN = {
    "TORCHELASTIC_RUN_ID": "blue-7",
    "GROUP_WORLD_SIZE": "4",
    "WORLD_SIZE": "32",
    "LOCAL_WORLD_SIZE": "8",
}
POD = {
    "CKPTCOST_JOB": "train-abc",
    "CKPTCOST_NODES": "16",
    "CKPTCOST_LABELS": "team=infra,model=llama-405b,tier=scratch",
}


def test_slurm():
    facts = facts_of(SLURM)
    assert facts == JobFacts("4711", "pretrain", "infra", "alps", 128, "nid[001000-001127]", 2)
    assert facts.all_labels == {"team": "infra", "cluster": "alps", "name": "pretrain"}


def test_torchrun():
    assert facts_of(TORCHRUN) == JobFacts("blue-7", nodes=4)
    assert facts_of(TORCHRUN | {"TORCHELASTIC_RUN_ID": "none"}).job == ""
    del (without := dict(TORCHRUN))["GROUP_WORLD_SIZE"]
    assert facts_of(without).nodes == 4
    assert (
        facts_of(without | {"WORLD_SIZE": "33"}).nodes == 0
    )  # nodes are not all alike: nobody knows
    assert facts_of(without | {"LOCAL_WORLD_SIZE": "0"}).nodes == 0


def test_a_pod():
    facts = facts_of(POD)
    assert (facts.job, facts.nodes, facts.odd) == ("train-abc", 16, "")
    assert facts.all_labels == {"team": "infra", "model": "llama-405b", "tier": "scratch"}


def test_what_somebody_says_comes_before_what_a_launcher_does():
    facts = facts_of(SLURM | TORCHRUN | POD)
    assert (facts.job, facts.nodes, facts.node_names) == ("train-abc", 16, "nid[001000-001127]")
    assert facts.all_labels["team"] == "infra"
    assert facts_of(SLURM | {"CKPTCOST_LABELS": "team=vision"}).all_labels["team"] == "vision"
    assert "team" not in facts_of(SLURM | {"CKPTCOST_LABELS": "team="}).all_labels
    assert facts_of(SLURM | {"CKPTCOST_NODES": "m[1-3]"}).node_names == "m[1-3]"
    assert facts_of(SLURM | TORCHRUN).job == "4711"


def test_nothing_is_said():
    assert facts_of({}) == JobFacts()
    assert facts_of({}).detail == {}


@pytest.mark.parametrize("text", ["team", "=infra", "a b=c", "team=" + "x" * 201, "9=x"])
def test_no_label(text):
    with pytest.raises(InputError, match="is no label"):
        labels_of([text])
    facts = facts_of({"CKPTCOST_LABELS": f"model=m,{text}"})
    assert facts.labels == {"model": "m"}
    assert "CKPTCOST_LABELS" in facts.odd


def test_bounds():
    facts = facts_of(
        {
            "CKPTCOST_LABELS": ",".join(f"l{n}=x" for n in range(MOST_LABELS + 9)),
            "SLURM_JOB_NODELIST": "n" * 20_000,
        }
    )
    assert len(facts.labels) == MOST_LABELS
    assert facts.node_names == ""
    assert "73 labels" in facts.odd
    assert "20000 letters" in facts.odd
    assert (
        facts_of({"SLURM_JOB_NODELIST": "n" * MOST_NODE_LETTERS}).node_names
        == "n" * MOST_NODE_LETTERS
    )
    odd = {
        "SLURM_JOB_NUM_NODES": "9" * 30,
        "SLURM_RESTART_COUNT": "\u00b2",
        "SLURM_JOB_ID": "\x1b[2J\udcff7",
    }
    assert facts_of(odd) == JobFacts("[2J7")


@given(st.dictionaries(st.sampled_from(sorted({*SLURM, *TORCHRUN, *POD})), st.text(max_size=60)))
def test_whatever_an_environment_holds_comes_through_a_file_as_it_was(environ):
    facts = facts_of(environ)
    assert facts_from(json.loads(json.dumps(facts.detail)))._replace(odd=facts.odd) == facts


@given(
    st.dictionaries(
        st.sampled_from([*JobFacts._fields, "more"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=5,
        ),
    )
)
def test_whatever_a_file_holds_is_facts(detail):
    facts = facts_from(detail)
    assert 0 <= facts.nodes < 1_000_000_000
    assert all(
        isinstance(text, str)
        for text in (facts.job, facts.name, *facts.labels, *facts.labels.values())
    )


def test_it_stands_in_the_run_and_is_no_trouble_of_a_meter(tmp_path):
    folder = packable(tmp_path / "run", save("a", 60, 64), job=SLURM)
    plain = packable(tmp_path / "plain", save("a", 60, 64))
    run = load(folder)
    (note,) = [event for event in run.events if event.domain == "job"]
    assert (note.name, note.host) == ("note", "n1")
    assert run.problems == ()
    assert facts_in(reviewed(folder)) == facts_of(SLURM)
    assert reviewed(folder).events == []
    told, known = (study_of(reviewed(each)) for each in (folder, plain))
    assert [table.id for table in told.tables] == [table.id for table in known.tables]
    assert told.warnings == known.warnings


def test_the_screen_takes_it_for_no_event():
    board = LiveBoard(host="n1")
    board.absorb([("p", Header(run="a" * 32, host="n1"))])
    event = {"k": "event", "t": S, "name": "note", "text": "", "detail": {}}
    board.absorb([("p", event | {"domain": domain}) for domain in ("gpu:0", job_facts.DOMAIN)])
    assert [event.domain for event in board.events] == ["gpu:0"]


def test_it_is_said_again_each_hour(tmp_path):
    clock = VirtualClock(0)
    recorder = Recorder(
        [Steady(count=1)], FileSink(tmp_path / "run"), clock, run_id="a" * 32, host="n1"
    )
    recorder.begin()
    job_facts.note_job_facts(recorder, SLURM)
    recorder.run_until(7300 * S)
    recorder.stop()
    notes = [event for event in load(tmp_path / "run").events if event.domain == "job"]
    assert [round(event.t_s / 3600) for event in notes] == [0, 1, 2]
    assert notes[0].detail == notes[2].detail == facts_of(SLURM).detail


def test_a_wrapped_command_says_it(tmp_path):
    from ckptcost.first.jobs.instruments import Instruments

    observer = Observer(
        Instruments([Steady()], (), None, []), WatchOptions(), tmp_path / "run", environ=SLURM
    )
    observer.start(listen=False)
    observer.begin(command="train.py")
    observer.close()
    (note,) = [event for event in load(tmp_path / "run").events if event.domain == "job"]
    assert facts_from(note.detail) == facts_of(SLURM)


def test_a_job_that_records_itself_says_it(tmp_path, monkeypatch):
    for name, value in TORCHRUN.items():
        monkeypatch.setenv(name, value)
    station = Station(
        tmp_path / "run", "r" * 32, lambda: [Steady()], host="n", rank=0, local=0, locks=tmp_path
    ).start()
    station.mark("begin", "a")
    station.stop()
    run = load(tmp_path / "run")
    assert [event.detail for event in run.events if event.domain == "job"] == [
        {"job": "blue-7", "nodes": 4}
    ]


def test_where_nobody_says_anything_nothing_is_written(tmp_path, shell):
    done = shell(
        "run",
        "--record",
        str(tmp_path / "run"),
        "--settle",
        "0 s",
        "--",
        sys.executable,
        "-c",
        "pass",
    )
    if "no meter answers here" in done.stderr:
        pytest.skip("nothing to record here")
    assert done.returncode == 0, done.stderr
    assert not [event for event in load(tmp_path / "run").events if event.domain == "job"]
    assert list(Path(tmp_path / "run").glob("*.jsonl"))
