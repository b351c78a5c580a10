"""Processes of our own import nothing from the current folder, and one that dies is not started for
ever."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ckptcost.first import interpreter
from ckptcost.first.errors import CkptcostError
from ckptcost.first.jobs import workers

PLANTED = (
    "_weakrefset.py",
    "numpy.py",
    "pandas.py",
    "pickle.py",
    "rich.py",
    "textual.py",
    "ckptcost/__init__.py",
)
COMMAND = str(Path(sys.executable).with_name("ckptcost"))


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A folder whose files write their name into `ran` when they are imported."""
    folder = tmp_path / "planted"
    (folder / "ckptcost").mkdir(parents=True)
    ran = tmp_path / "ran"
    for name in PLANTED:
        (folder / name).write_text(
            f"open({str(ran)!r}, 'a').write({name!r})\nraise SystemExit(9)\n"
        )
    return folder


def in_folder(words: list[str], folder: Path, code: int = 0) -> str:
    done = subprocess.run(
        words, check=False, cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == code, done.stderr
    return done.stdout


def nothing_ran(folder: Path) -> None:
    ran = folder.parent / "ran"
    assert not ran.exists(), ran.read_text()


def test_what_is_planted_would_run(planted):
    in_folder([sys.executable, "-c", "import rich"], planted, 9)
    assert (planted.parent / "ran").exists()


def test_processes_of_fleet(planted):
    pytest.importorskip("pyarrow")
    code = (
        "from ckptcost.first.fleet import engine; engine.work_through = len; "
        "print(list(engine._by_processes(['ab', 'c'], None)))"
    )
    assert "[2, 1]" in in_folder([sys.executable, "-P", "-c", code], planted)
    nothing_ran(planted)


def test_the_application_of_a_served_page(planted):
    serving = pytest.importorskip("ckptcost.first.tui.serving")
    assert "usage" in in_folder(serving.command(["screen", "--help"]), planted)
    nothing_ran(planted)


def test_the_process_that_reads_runs(planted):
    code = "from ckptcost.first.tui.run_reader import Apart; print(Apart()._started().alive)"
    in_folder([sys.executable, "-P", "-c", code], planted)
    nothing_ran(planted)


def test_the_users_own_command_is_left_alone(planted):
    (planted / "helper.py").write_text("print('mine')\n")
    code = "import os, helper; print(os.environ.get('PYTHONSAFEPATH'))"
    words = [COMMAND, "run", "-q", "--settle", "0 s", "--"]
    (planted / "ckptcost" / "__init__.py").unlink()
    environ = {**os.environ, "CKPTCOST_RUNS": str(planted.parent / "runs")}
    environ.pop("PYTHONSAFEPATH", None)
    for name in ("_weakrefset.py", "pickle.py"):
        (planted / name).unlink()
    done = subprocess.run(
        [*words, sys.executable, "-c", code],
        check=False,
        cwd=planted,
        env=environ,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.splitlines()[:2] == ["mine", "None"], done.stderr


def test_children_find_the_package_in_a_checkout(monkeypatch):
    own = Path(interpreter.__file__).resolve().parents[2]
    monkeypatch.chdir(own)
    monkeypatch.setattr(sys, "path", ["", str(own), "/elsewhere"])
    assert interpreter.path_of_children() == ["/elsewhere", str(own)]


@pytest.mark.parametrize(
    ("code", "how"),
    [("raise SystemExit(3)", "exit code 3"), ("import os; os.kill(os.getpid(), 9)", "signal 9")],
)
def test_a_worker_that_dies_at_once_is_not_started_again(monkeypatch, code, how):
    started = []

    def dying(_: str) -> list[str]:
        started.append(code)
        return [sys.executable, "-I", "-c", code]

    monkeypatch.setattr(workers, "python", dying)
    with pytest.raises(CkptcostError, match=how):
        list(workers.in_order(len, [("a",), ("b",), ("c",)], 2))
    assert len(started) == 2


def test_a_worker_that_dies_at_its_work_ends_the_work():
    with pytest.raises(CkptcostError, match="exit code 7"):
        list(workers.in_order(os._exit, [(7,)] * 3, 2))


def test_results_come_in_order_and_errors_as_they_are():
    assert list(workers.in_order(len, [("x" * n,) for n in range(9)], 3)) == list(range(9))
    with pytest.raises(ZeroDivisionError):
        list(workers.in_order(divmod, [(1, 1), (1, 0)], 2))
