"""`ckptcost measure` and `ckptcost doctor` from the shell: formats, what they never tell, exit
codes, a stop in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest
from whole_json import whole

from ckptcost.first.errors import InputError
from ckptcost.first.runs.reader import load

SCHEMA = json.loads(
    (
        Path(__file__).parents[3] / "ckptcost" / "first" / "report" / "report-2.0.schema.json"
    ).read_text("utf-8")
)
DEMO = ("measure", "--meters", "simulated", "--for", "70 s")


@pytest.fixture(scope="module")
def demo() -> dict:
    from ckptcost import measure

    return json.loads(measure("70 s", meters="simulated").to_json())


def test_document_keeps_its_schema_and_says_what_it_is(demo):
    jsonschema.validate(demo, SCHEMA)
    assert demo["simulated"] is True
    assert demo["kind"] == "measurement"
    assert set(demo["tables"]) == {
        "domains",
        "details",
        "windows",
        "energies",
        "phases",
        "storage",
        "storage_windows",
        "sources",
        "power",
    }


def test_every_joule_has_its_pedigree(demo):
    for row in demo["tables"]["domains"]["rows"]:
        if row["joules"] is not None:
            assert row["joules_low"] <= row["joules"] <= row["joules_high"]
            assert row["source"]
            assert row["scope"]
            assert row["basis"] in ("measured", "modelled")
            assert row["coverage"] == 1.0
            assert row["driver"] == "none: simulated"
            assert row["tick"] > 0


def test_tables_agree_with_each_other(demo):
    tables = demo["tables"]
    parts = [r for r in tables["domains"]["rows"] if r["role"] == "part"]
    (window,) = tables["windows"]["rows"]
    energies = [
        r for r in tables["energies"]["rows"] if r["domain"] in {p["domain"] for p in parts}
    ]
    assert window["joules"] == pytest.approx(sum(r["joules"] for r in energies))
    stall = next(r for r in tables["phases"]["rows"] if r["phase"] == "stall")
    assert stall["joules"] == pytest.approx(window["stall_joules"])
    storage = [r for r in tables["phases"]["rows"] if r["of"] == "storage"]
    assert sum(r["length"] for r in storage) == pytest.approx(window["length"])
    assert window["gpu_s"] == pytest.approx(8 * window["stall"])
    for row in parts:
        assert row["watts"] == pytest.approx(row["joules"] / 70.0)


@pytest.mark.parametrize("format_", ["text", "md"])
def test_people_are_told_first(cli, format_):
    out = cli(*DEMO, "-f", format_).out
    assert "SIMULATED" in "\n".join(out.splitlines()[:4])
    assert "Checkpoints" in out
    if format_ == "text":
        assert max(map(len, out.splitlines())) <= 80


def test_a_replay_of_what_was_recorded_is_no_simulation_and_one_of_what_was_made_up_is(cli):
    traces = Path(__file__).parents[3] / "data" / "traces"
    own = cli("measure", "--meters", f"replay:{traces / 'ext4-fsync.jsonl'}").out
    assert "SIMULATED" not in own
    assert "Replayed from a recording of 2026-11-21: nothing was measured just now." in own
    assert "anonymous" not in own, "it does not say of which host"
    told = json.loads(
        cli("measure", "--meters", f"replay:{traces / 'ext4-fsync.jsonl'}", "-f", "json").out
    )
    assert (told["simulated"], told["question"]["replayed"]) == (False, "2026-11-21")
    made_up = cli("measure", "--meters", f"replay:{traces / 'simulated-8gpu.jsonl'}").out
    assert "SIMULATED: nothing here was measured on this machine." in made_up
    assert "Replayed from a recording of 2026-11-21" in made_up


def test_the_same_again(cli):
    assert cli(*DEMO).out == cli(*DEMO).out


def test_record_and_evaluate_again(cli, tmp_path):
    done = cli(*DEMO, "--record", str(tmp_path / "kept"), "-f", "json")
    first = whole(done.out)
    assert str(tmp_path) not in done.out, "a report does not tell where its author keeps things"
    again = whole(cli("measure", "--meters", f"replay:{tmp_path / 'kept'}", "-f", "json").out)
    assert again["simulated"] is True
    assert str(tmp_path) not in json.dumps(again)
    for one, two in zip(
        first["tables"]["windows"]["rows"], again["tables"]["windows"]["rows"], strict=True
    ):
        assert two["joules"] == pytest.approx(one["joules"], rel=1e-9)


def test_baseline_of_a_simulated_machine_is_not_kept(cli, tmp_path, monkeypatch):
    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path))
    done = cli("measure", "baseline", "--meters", "simulated", "--for", "4 s")
    assert done.code == 0
    assert "Not kept" in done.out
    assert list(tmp_path.iterdir()) == []


def test_a_busy_machine_teaches_nothing(cli):
    done = cli("measure", "baseline", "--meters", "simulated", "--for", "60 s")
    assert done.code == 1
    assert done.out == ""
    assert "not idle" in done.err
    assert "--anyway" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("measure", "--for", "0 s"), "--for"),
        (("measure", "--for", "5"), "--for"),
        (("measure", "--for", "-3 s"), "--for"),
        (("measure", "--for", "2 kWh"), "--for"),
        (("measure", "--for", "9999 days"), "--for"),
        (("measure", "--meters", "nvlm"), "nvml"),
        (("measure", "--meters", ""), "--meters"),
        (("measure", "--meters", "simulated,rapl"), "mix"),
        (("measure", "--meters", "replay:nowhere"), "nowhere"),
        (("measure", "--meters", "simulated", "--need", "gqu"), "--need"),
        (("measure", "--dir", "nowhere"), "--dir nowhere"),
        (("measure", "--pid", "-4"), "--pid"),
        (("measure", "--anyway"), "--anyway"),
        (("measure", "baseline", "--record", "x"), "--record"),
        (("measure", "--for", "2 s", "--baseline"), "Say: ckptcost measure baseline"),
        (("measure", "--redfish", "http://user:secret@bmc.example/"), "redfish"),
        (("doctor", "--for", "1 ms"), "--for"),
        (("doctor", "--need", "gqu", "--meters", "simulated", "--for", "1 s"), "--need"),
        (("doctor", "--table", "kinds"), "--table"),
    ],
)
def test_wrong_input_is_one_line(cli, words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = cli(*words)
    assert done.code == 2, done
    assert done.out == ""
    assert said.lower() in done.err.lower()
    assert len(done.err.splitlines()) == 1
    assert "secret" not in done.err


def test_a_process_that_is_not_there(cli):
    done = cli("measure", "--meters", "process", "--pid", "4194303", "--for", "0.2 s")
    assert done.code == 5
    assert "nothing can be measured here" in done.err


@pytest.mark.parametrize(
    ("there", "words", "code"),
    [
        ("pressure", (), 5),
        ("pressure", ("--need", "storage"), 5),
        ("block", ("--need", "storage"), 0),
        ("simulated", (), 0),
    ],
)
def test_a_machine_without_joules_is_no_success_unless_other_things_were_asked_for(
    cli, monkeypatch, there, words, code
):
    from ckptcost.first.jobs import measure as job

    measure = job.measure
    monkeypatch.setattr(job, "measure", lambda meters, *more: measure(there, *more))
    done = cli("measure", "--for", "0.3 s", *words)
    if there == "block" and done.code == 5:
        pytest.skip("no disk is counted here")
    assert done.code == code
    assert "Measured at the node" in done.out or there == "simulated", (
        "the result is written all the same"
    )
    if not words and code:
        assert (
            done.err
            == "ckptcost: nothing here meters joules: ckptcost doctor says why; --need storage asks"
            " for bytes alone\n"
        )


def test_meters_that_were_named_are_what_was_asked_for(cli):
    assert cli("measure", "--meters", "pressure", "--for", "0.2 s").code == 0


def test_needs(cli):
    met = cli(
        "doctor",
        "--meters",
        "simulated",
        "--for",
        "1 s",
        "--need",
        "gpu,cpu,dram",
        "--need",
        "storage",
        "--need",
        "node",
        "--json",
    )
    assert met.code == 0
    unmet = cli("doctor", "--meters", "pressure,block", "--for", "0.5 s", "--need", "gpu")
    assert unmet.code == 5
    assert unmet.out.startswith("What can be measured here"), "the answer is written all the same"
    assert "gpu is needed and not measured here" in unmet.err


def test_doctor_names_reason_and_remedy(cli, tmp_path):
    seen = whole(cli("doctor", "--json", "--for", "0.5 s").out)
    jsonschema.validate(seen, SCHEMA)
    assert seen["simulated"] is False
    for row in seen["tables"]["absences"]["rows"]:
        assert row["reason"]
        assert row["remedy"]
    for row in seen["tables"]["channels"]["rows"]:
        assert row["asked"] >= row["answers"] >= 0
    kinds = {row["kind"]: row["measured"] for row in seen["tables"]["kinds"]["rows"]}
    assert set(kinds) == {"gpu", "cpu", "dram", "storage", "node"}


def test_doctor_measures_tick_and_noise(cli):
    seen = whole(cli("doctor", "--meters", "simulated", "--json").out)
    by_name = {(row["domain"], row["quantity"]): row for row in seen["tables"]["channels"]["rows"]}
    counter = by_name["gpu:0", "energy_j"]
    assert counter["tick"] == pytest.approx(0.1, rel=0.02)
    assert counter["rate"] == pytest.approx(77.7, rel=0.04)
    assert counter["noise"] < 0.1
    assert counter["unit"] == "W"
    assert by_name["node", "power_w"]["answers"] >= 2


def recorded_s(folder):
    """How long a run is so far, nothing while there is none that can be read."""
    try:
        return load(folder).duration_s
    except InputError:
        return 0.0


def test_an_interrupt_counts_what_there_is(tmp_path):
    words = [
        sys.executable,
        "-m",
        "ckptcost.first",
        "measure",
        "--meters",
        "pressure,writeback",
        "--for",
        "1 min",
        "--record",
        str(tmp_path / "r"),
    ]
    running = subprocess.Popen(
        [*words, "-f", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 30
    while recorded_s(tmp_path / "r") <= 1.0:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=20)
    assert running.returncode == 0, err
    assert 0.1 < json.loads(out)["question"]["seconds"] < 30
    assert err == ""


def test_nobody_may_write_there(cli, tmp_path):
    if os.geteuid() == 0:
        target = tmp_path / "file"
        target.write_text("")
    else:
        target = tmp_path / "closed"
        target.mkdir(mode=0o500)
    done = cli("measure", "--meters", "pressure", "--for", "0.2 s", "--record", str(target / "run"))
    assert done.code == 4
    assert done.out == ""
    assert len(done.err.splitlines()) == 1


def test_python_says_the_same(demo):
    import ckptcost

    frame = ckptcost.measure("70 s", meters="simulated").to_frame("windows")
    assert frame["joules"].tolist() == [row["joules"] for row in demo["tables"]["windows"]["rows"]]
    assert ckptcost.doctor("0.5 s", meters="simulated").kind == "checkup"
