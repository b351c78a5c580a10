"""Asking a store: days, jobs, budgets, and stores of which something is gone."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from fleet_truth import Truth
from fleet_with_truth import fleet_with_truth

from ckptcost.first.errors import InputError, UnknownName
from ckptcost.first.fleet.answer import FleetQuestion, answer_of
from ckptcost.first.fleet.store import open_store
from ckptcost.first.jobs.gates import gate_of
from ckptcost.first.report.study import Study

BIG = "pretraining/llama31-405b-01"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Truth]:
    folder = str(tmp_path_factory.mktemp("answer") / "fleet")
    return folder, fleet_with_truth(24, 3, folder, seed=5, saves_per_day=48.0)


def line(study: Study, name: str, column: str = "gpu_hours") -> float:
    return next(float(row[column] or 0.0) for row in table(study, "lines") if row["id"] == name)


def table(study: Study, name: str) -> list[dict[str, object]]:
    return next(each.rows for each in study.tables if each.id == name)


def codes(study: Study) -> set[str]:
    return {code for code, _ in study.warnings}


def test_days_add_up_whatever_they_are_cut_into(made: tuple[str, Truth]) -> None:
    folder, truth = made
    whole = table(answer_of(FleetQuestion(folder)), "groups")[-1]
    parts = [
        table(answer_of(FleetQuestion(folder, since=since, until=until)), "groups")[-1]
        for since, until in (("", "2026-11-02"), ("2026-11-03", "2026-11-03"), ("2026-11-04", ""))
    ]
    for name in ("checkpoints", "loads", "bytes", "stall_sum", "failed_saves"):
        assert sum(part[name] for part in parts) == pytest.approx(whole[name])
    assert whole["checkpoints"] == truth.saves.windows


def test_a_day_without_files_is_no_downtime(made: tuple[str, Truth], tmp_path: Path) -> None:
    folder, truth = made
    job = next(job for job in truth.jobs if job.job == BIG)
    assert len(job.runs) > 1, "a run began on the day that goes"
    shutil.copytree(folder, tmp_path / "less")
    store = open_store(folder)
    for entry in store.listing("2026-11-03", "2026-11-03", [BIG]):
        (tmp_path / "less" / entry.path).unlink()
    before, after = (
        answer_of(FleetQuestion(folder)),
        answer_of(FleetQuestion(str(tmp_path / "less"))),
    )
    assert line(after, "restart") <= line(before, "restart")
    assert "LOST_DAYS" in codes(after) - codes(before)


def test_files_that_are_broken_are_no_zero(made: tuple[str, Truth], tmp_path: Path) -> None:
    shutil.copytree(made[0], tmp_path / "broken")
    files = sorted((tmp_path / "broken").rglob("*.parquet"))
    for file in files[:-3]:
        file.write_bytes(file.read_bytes()[:100])
    budget = gate_of("gpu_hours<=1000000", "--budget")
    study = answer_of(FleetQuestion(str(tmp_path / "broken")), [budget])
    assert [verdict.met for verdict in study.gates] == [False]
    assert "TRUNCATED" in codes(study)
    for file in files:
        file.write_bytes(b"")
    with pytest.raises(InputError, match=r"no file of it counts \(TRUNCATED"):
        answer_of(FleetQuestion(str(tmp_path / "broken")), [budget])


@pytest.mark.parametrize(
    ("asked", "error", "words"),
    [
        ({"jobs": ("llama",)}, UnknownName, "no job named 'llama'"),
        ({"since": "2027-01-01"}, InputError, "it has 2026-11-02 to 2026-11-04"),
        ({"since": "tomorrow"}, InputError, "is no day"),
        ({"since": "2026-11-04", "until": "2026-11-03"}, InputError, "is after"),
        ({"scheduler": "slurm"}, InputError, "no scheduler named 'slurm'"),
    ],
)
def test_what_is_not_there_is_told_with_what_is(
    made: tuple[str, Truth], asked: dict[str, object], error: type, words: str
) -> None:
    with pytest.raises(error, match=words):
        answer_of(FleetQuestion(made[0], **asked))  # type: ignore[arg-type]


def test_gates_that_a_fleet_cannot_judge_are_refused(made: tuple[str, Truth]) -> None:
    with pytest.raises(InputError, match="a fleet has no interval"):
        answer_of(FleetQuestion(made[0]), [gate_of("interval<=1 h", "--require")])


def test_who_listens_and_never_answers_is_no_scheduler(
    made: tuple[str, Truth], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = pytest.importorskip("ckptcost.first.fleet.engine")
    pytest.importorskip("distributed", reason="dask.distributed is not installed")
    monkeypatch.setattr(cluster, "ANSWER_S", 0.5)
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(InputError, match="no Dask scheduler answers"),
    ):
        answer_of(FleetQuestion(made[0], scheduler=f"tcp://127.0.0.1:{silent.getsockname()[1]}"))


def test_a_made_up_fleet_that_is_cut_short_leaves_nothing(tmp_path: Path) -> None:
    program = f"""
import os, signal
from ckptcost.first.fleet.synthetic.synthesize import synthesize
folder = {str(tmp_path / "fleet")!r}
synthesize(64, 7, folder, tell=lambda done, of: os.kill(os.getpid(), signal.SIGKILL))
"""
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode < 0
    assert not (tmp_path / "fleet").exists()
    from ckptcost.first.fleet.synthetic.synthesize import synthesize

    synthesize(1, 1, str(tmp_path / "fleet"))
    assert [each.name for each in tmp_path.iterdir()] == ["fleet"]
