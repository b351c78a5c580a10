"""`ckptcost calibrate` from the shell: runs on the disk become a tier and a cluster, and `ckptcost
model` uses them."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import jsonschema
import pytest
from whole_json import whole

from ckptcost.first.core.channels import Mark
from ckptcost.first.jobs.instruments import Instruments
from ckptcost.first.jobs.recording import record
from ckptcost.first.meters import simulated
from ckptcost.first.meters.simulated_machine import MachinePlan, marks
from ckptcost.first.runs.clocks import S, VirtualClock

SCHEMAS = Path(__file__).parents[3] / "ckptcost" / "first" / "report"
RATE, FIXED_S = 20e9, 0.5
FOR_S = 110.0
START_S = 1_767_225_600


def kept(
    folder: Path, bytes_: float, said: Sequence[Mark] | None = None, after_s: int = 0, **more
) -> Path:
    """A run on the disk: a job that saves so much at a rate and with a fixed time that are
    known."""
    moving_s = bytes_ / RATE
    written = {
        "snapshot_s": 0.0,
        "write_s": 0.3 * moving_s,
        "fsync_s": 0.7 * moving_s,
        "commit_s": FIXED_S,
    }
    asked = (
        {
            "gpus": 2,
            "packages": 0,
            "disks": 1,
            "variation": 0.0,
            "checkpoint_bytes": bytes_,
            "interval_s": 30.0,
        }
        | written
        | more
    )
    plan = MachinePlan(**asked)
    seen = simulated.find(plan, origin_ns=0)
    told = list(marks(plan, 0.0, FOR_S)) if said is None else list(said)
    clock = VirtualClock(0, (START_S + after_s) * S)
    record(Instruments(seen.meters, seen.absences, clock, told), FOR_S, folder)
    return folder


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> Path:
    base = tmp_path_factory.mktemp("runs")
    kept(base / "small", 20e9)
    kept(base / "large", 100e9, after_s=3600)
    return base


@pytest.fixture
def mine(monkeypatch, tmp_path, recorded) -> Path:
    """The user's own folders."""
    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path / "user"))
    monkeypatch.setenv("CKPTCOST_RUNS", str(recorded))
    return tmp_path / "user"


def calibrated(cli, *words: str):
    done = cli("calibrate", *words)
    assert done.code == 0, done
    return done


def test_the_model_then_predicts_the_save(cli, mine, recorded):
    done = calibrated(
        cli,
        str(recorded / "small"),
        str(recorded / "large"),
        "--as",
        "planted",
        "--name",
        "A planted machine",
    )
    assert "20 GB/s" in done.out
    assert "SIMULATED: nothing here was measured on this machine." in done.out
    assert "Next: `ckptcost model --tier planted --set cluster.id=planted`" in " ".join(
        done.out.split()
    )
    assert sorted(file.relative_to(mine).as_posix() for file in mine.rglob("*.toml")) == [
        "models/clusters/planted.toml",
        "models/tiers/planted.toml",
    ]
    for size, seconds in (("20 GB", 1.5), ("60 GB", 3.5), ("100 GB", 5.5)):
        answer = cli(
            "model",
            "--tier",
            "planted",
            "--set",
            "cluster.id=planted",
            "--set",
            f"checkpoint.size={size}",
            "-f",
            "json",
        )
        assert answer.code == 0, answer
        report = whole(answer.out)
        cases = report["tables"]["cases"]["rows"]
        assert cases
        assert [case["stall_s"] for case in cases] == pytest.approx(
            [seconds] * len(cases), rel=0.02
        )
        factors = {factor["id"]: factor for factor in report["statements"][0]["factors"]}
        assert factors["tier.node_write"]["sources"][0]["id"].startswith("SIMULATED run ")
        assert factors["cluster.gpu_stall"]["set_by"] == "cluster planted"


def test_the_catalogue_shows_it(cli, mine, recorded):
    calibrated(cli, str(recorded / "small"), str(recorded / "large"), "--as", "planted")
    shown = cli("catalog", "tier", "planted")
    assert shown.code == 0
    assert "calibrated" in shown.out
    assert "20 GB/s" in shown.out
    assert "planted" in cli("catalog", "tier").out


def test_document_keeps_its_schema(cli, mine, recorded):
    done = calibrated(
        cli, str(recorded / "small"), str(recorded / "large"), "--as", "planted", "-f", "json"
    )
    document = whole(done.out)
    [schema] = SCHEMAS.glob("report-2.*.schema.json")
    jsonschema.validate(document, json.loads(schema.read_text("utf-8")))
    assert (document["kind"], document["simulated"]) == ("calibration", True)
    assert document["question"]["as"] == "planted"
    assert document["tool"]["command"] == [
        "ckptcost",
        "calibrate",
        "small",
        "large",
        "--as",
        "planted",
        "-f",
        "json",
    ]
    parameters = {row["id"]: row for row in document["tables"]["parameters"]["rows"]}
    assert parameters["write"]["value"] == pytest.approx(RATE, rel=1e-4)
    assert parameters["write"]["path"] == "tier.node_write"
    assert parameters["setup"]["value"] == pytest.approx(FIXED_S, rel=1e-3)
    for row in parameters.values():
        assert (row["value"] is not None) or row["why"]
        assert row["value"] is None or row["low"] is None or row["low"] <= row["value"] * (1 + 1e-9)
        assert (
            row["value"] is None or row["high"] is None or row["value"] <= row["high"] * (1 + 1e-9)
        )
        if row["why"]:
            assert row["reason"] != row["why"], f"no sentence for {row['why']}"
    rounds = document["tables"]["rounds"]["rows"]
    assert len(rounds) == 6
    for row in rounds:
        assert row["measured"] - row["fitted"] == pytest.approx(row["difference"], abs=1e-9)
        assert row["gpus"] == "CONFIRMED"
    assert [row["saves"] for row in document["tables"]["runs"]["rows"]] == [3.0, 3.0]


def test_csv_and_markdown(cli, mine, recorded):
    done = calibrated(cli, str(recorded / "small"), "--as", "one", "--dry-run", "-f", "csv")
    rows = {
        row["id"]: row
        for row in csv.DictReader(
            line for line in io.StringIO(done.out) if not line.startswith("#")
        )
    }
    assert float(rows["write"]["value"]) == pytest.approx(20e9 / 1.5, rel=1e-4)
    assert rows["setup"]["why"] == "ONE_SIZE"
    assert (
        "| figure |"
        in calibrated(cli, str(recorded / "small"), "--as", "one", "--dry-run", "-f", "md").out
    )
    rounds = calibrated(
        cli, str(recorded / "small"), "--as", "one", "--dry-run", "-f", "csv", "--table", "rounds"
    ).out
    assert len(rounds.splitlines()) >= 4


def test_a_dry_run_writes_nothing(cli, mine, recorded):
    done = calibrated(cli, str(recorded / "small"), "--as", "planted", "--dry-run")
    assert "Nothing was written. It would be a tier and a cluster of the catalogue." in " ".join(
        done.out.split()
    )
    assert not mine.exists()


def test_what_is_there_stays_unless_forced(cli, mine, recorded):
    calibrated(cli, str(recorded / "small"), "--as", "planted")
    file = mine / "models" / "tiers" / "planted.toml"
    before = file.read_bytes()
    done = cli("calibrate", str(recorded / "large"), "--as", "planted")
    assert done.code == 2
    assert "already there" in done.err
    assert file.read_bytes() == before
    calibrated(cli, str(recorded / "large"), "--as", "planted", "--force")
    assert file.read_bytes() != before
    assert cli("calibrate", str(recorded / "large"), "--as", "nas-hdd").code == 2


def test_a_run_by_its_id_its_name_and_as_the_last(cli, mine, recorded):
    small = whole(calibrated(cli, "small", "--as", "x", "--dry-run", "-f", "json").out)["question"][
        "runs"
    ]
    last = whole(calibrated(cli, "last", "--as", "x", "--dry-run", "-f", "json").out)["question"][
        "runs"
    ]
    assert small != last
    again = whole(calibrated(cli, small[0][:8], "--as", "x", "--dry-run", "-f", "json").out)[
        "question"
    ]["runs"]
    assert again == small


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere", "--as", "x"], "no run named"),
        (["--as", "x"], "RUN"),
        (["small"], "--as"),
        (["small", "--as", "a/b"], "--as"),
        (["small", "small", "--as", "x"], "twice"),
        (["small", "--as", "x", "--table", "rounds"], "--table"),
        (["small", "--as", "x", "--name", "a\nb"], "--name"),
    ],
)
def test_wrong_input_ends_with_2_and_one_line(cli, mine, words, said):
    done = cli("calibrate", *words)
    assert done.code == 2
    assert said in done.err
    assert done.err.startswith("ckptcost: ")
    assert len(done.err.splitlines()) == 1
    assert not mine.exists()


def test_a_run_without_saves_is_not_measurable(cli, mine, tmp_path):
    kept(tmp_path / "idle", 20e9, [], gpus=0, saves=0)
    done = cli("calibrate", str(tmp_path / "idle"), "--as", "x")
    assert done.code == 5
    assert "nothing can be calibrated" in done.err


def test_figures_that_make_no_entry_are_shown_and_end_with_5(cli, mine, tmp_path):
    """A load alone: a tier needs a write rate."""
    said = [
        Mark(20.0, "begin", "load", detail={"of": "load", "bytes": 1e9}),
        Mark(22.0, "returned", "load"),
        Mark(22.0, "end", "load"),
    ]
    kept(tmp_path / "load", 20e9, said, gpus=0, saves=0)
    done = cli("calibrate", str(tmp_path / "load"), "--as", "x")
    assert done.code == 5
    assert "nothing was written" in done.err
    assert "0.5 GB/s" in done.out
    assert not mine.exists()


def test_a_folder_that_cannot_be_written(cli, mine, recorded):
    mine.write_text("in the way")
    done = cli("calibrate", str(recorded / "small"), "--as", "x")
    assert done.code == 4
    assert "could not be written" in done.err


def test_a_run_cut_off_by_a_kill_still_counts(cli, mine, recorded, tmp_path):
    shutil.copytree(recorded / "small", tmp_path / "cut")
    file = next((tmp_path / "cut").glob("*.jsonl"))
    raw = file.read_bytes()
    file.write_bytes(raw[: len(raw) * 8 // 10])
    document = json.loads(
        calibrated(cli, str(tmp_path / "cut"), "--as", "x", "--dry-run", "-f", "json").out
    )
    assert 1 <= len(document["tables"]["rounds"]["rows"]) < 4


def test_the_answer_goes_to_a_file(cli, mine, recorded, tmp_path):
    done = calibrated(
        cli, str(recorded / "small"), "--as", "x", "--dry-run", "-o", str(tmp_path / "x.txt")
    )
    assert done.out == ""
    assert "write rate" in (tmp_path / "x.txt").read_text("utf-8")


def test_from_a_shell(shell, mine, recorded):
    done = shell("calibrate", str(recorded / "small"), str(recorded / "large"), "--as", "planted")
    assert done.returncode == 0, done.stderr
    model = shell(
        "model",
        "--tier",
        "planted",
        "--set",
        "cluster.id=planted",
        "--set",
        "checkpoint.size=100 GB",
    )
    assert model.returncode == 0, model.stderr
    assert "5.5 s" in model.stdout
