"""Ten things that people come for, done in a real terminal: how many keys each takes, and how long
until its answer stands there.

    python tests/first/tui/tasks/screen_tasks.py                  # a table for four sizes
    python tests/first/tui/tasks/screen_tasks.py 80x24 120x36

Names and figures that are typed are not counted among the keys. Needs tmux.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

SIZES = ("80x24", "100x30", "120x36", "200x50")
MOST_KEYS = 12
WAIT_S = 40.0
"""for what takes a second on a quiet machine"""
LOOK_S = 0.05
"""how often to look at the terminal"""


class Text(str):
    """A name or a figure that is typed."""


class Shows(str):
    """What stands on the screen before the next key is pressed: a regular expression."""


Step = str | Text | Shows


class Task(NamedTuple):
    name: str
    steps: tuple[Step, ...]
    """begins with the model screen; ends with what answers the question"""

    @property
    def keys(self) -> int:
        return sum(not isinstance(step, Text | Shows) for step in self.steps)


TASKS = (
    Task(
        "NAS against NVMe for Llama 405B",
        (
            "C-o",
            Shows("Open a scenario"),
            Text("405b-16k"),
            Shows("llama31-405b-16k"),
            "Enter",
            Shows("llama31-405b-16k: 5.68 TB|Scenario  llama31"),
            "t",
            Shows("Tiers side by side"),
            Text("nas-hdd"),
            Shows("1 of|1 ticked, 1 "),
            "Space",
            Shows("2 ticked"),
            "C-u",
            Text("local-nvme-4xgen5"),
            Shows("ticked, 1 "),
            "Space",
            Shows("3 ticked"),
            "Enter",
            Shows("(?s)nas-hdd.*local-nvme"),
        ),
    ),
    Task(
        "change the interval",
        (
            "C-p",
            Text("policy.interval"),
            Shows("Field: every policy.interval"),
            "Enter",
            Shows("Training time between saves|Allowed"),
            Text("1800 s"),
            Shows("1800 s: yours"),
        ),
    ),
    Task("the best interval", ("3", Shows(r"best for time +[\d.]+ h"))),
    Task(
        "three tiers side by side",
        (
            "t",
            Shows("Tiers side by side"),
            Text("lustre"),
            Shows("[1-9] of|shown"),
            "Space",
            Shows("[2-9] ticked"),
            "Enter",
            "2",
            Shows("Each tier at its own best"),
        ),
    ),
    Task("where the kWh come from", ("k", Shows(r"GPUs waiting for saves +[\d,]+"))),
    Task(
        "joules of the demo's last checkpoint",
        (
            "4",
            Shows("demo"),
            "d",
            Shows(r"#\d+: .* J "),
            "Enter",
            Shows(r"(?s)save \d+ of \d+.*energy at node.*\d,\d+ J"),
        ),
    ),
    Task(
        "probe a folder",
        (
            "5",
            Shows("Probe.*(?s:.*)folder"),
            "e",
            Text("scratch"),
            "Tab",
            Text("16 MB"),
            Shows("Will write 60 MB"),
            "C-r",
            Shows(r"16 MB +[\d.]+ s +[\d.]+ [GM]B/s|[GM]B/s in \d+ rou"),
        ),
    ),
    Task(
        "a recorded run against the model",
        ("6", Shows("1 complete"), "m", Shows(r"measured +modelled")),
    ),
    Task("save a report as a page", ("H", Shows(r"written: .*\.html"))),
    Task(
        "how sure a number is, and its source",
        (
            "C-p",
            Text("tier.write"),
            Shows("Field: write rate tier.write"),
            "Enter",
            Shows(r"(?s)said by a vendor.*Source:"),
        ),
    ),
)


class Terminal:
    """The program in a tmux of its own, so that nobody else's is touched."""

    def __init__(self, folder: Path, size: str, runs: Path) -> None:
        columns, rows = size.split("x")
        self._tmux = ["tmux", "-S", str(folder / "tmux"), "-f", "/dev/null"]
        (folder / "here" / "scratch").mkdir(parents=True)
        where = {"STATE": folder / "state", "RUNS": runs, "USER": folder / "user"}
        command = ["env", "-u", "COLUMNS", "-u", "LINES"]
        command += [f"CKPTCOST_{name}={path}" for name, path in where.items()]
        command += [sys.executable, "-m", "ckptcost", "screen", "--fresh"]
        begin = ["new-session", "-d", "-x", columns, "-y", rows, "-c", str(folder / "here")]
        self.call(*begin, *command)

    def call(self, *words: str) -> str:
        command = [*self._tmux, *words]
        return subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=20
        ).stdout

    def wait_for(self, pattern: str) -> None:
        until_s = time.monotonic() + WAIT_S
        while not re.search(pattern, seen := self.call("capture-pane", "-p")):
            if time.monotonic() > until_s:
                raise AssertionError(f"no {pattern!r} in:\n{seen}")
            time.sleep(LOOK_S)

    def take(self, step: Step) -> None:
        if isinstance(step, Shows):
            self.wait_for(step)
        elif isinstance(step, Text):
            self.call("send-keys", "-l", step)
        else:
            self.call("send-keys", step)

    def close(self) -> None:
        subprocess.run([*self._tmux, "kill-server"], check=False, capture_output=True, timeout=20)


def record_a_run(runs: Path) -> None:
    """A probe of a made-up machine, for the task that needs a run."""
    probe = ["probe", str(runs), "--meters", "simulated", "--size", "16 MB", "--rounds", "2", "-q"]
    where = {**os.environ, "CKPTCOST_RUNS": str(runs)}
    command = [sys.executable, "-m", "ckptcost", *probe, "--record", str(runs / "one")]
    subprocess.run(command, check=True, capture_output=True, timeout=WAIT_S, env=where)


def seconds(task: Task, size: str, runs: Path) -> float:
    """From the first key to the answer. Raises AssertionError where it does not come."""
    # the program may still write what it remembers while its folder goes
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        terminal = Terminal(Path(folder), size, runs)
        try:
            terminal.wait_for("nas-hdd")
            began_s = time.monotonic()
            for step in task.steps:
                terminal.take(step)
            return time.monotonic() - began_s
        finally:
            terminal.close()


def main(sizes: list[str]) -> int:
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder)
        record_a_run(runs)
        print(f"{'task':<40}{'keys':>5}" + "".join(f"{size:>10}" for size in sizes))
        for task in TASKS:
            cells = []
            for size in sizes:
                try:
                    cells.append(f"{seconds(task, size, runs):.1f} s")
                except AssertionError as error:
                    failed += 1
                    cells.append("fails")
                    print(f"{task.name}, {size}: {error}", file=sys.stderr)
            print(f"{task.name:<40}{task.keys:>5}" + "".join(f"{cell:>10}" for cell in cells))
    return int(failed > 0)


if __name__ == "__main__":
    if shutil.which("tmux") is None:
        raise SystemExit("tmux is not installed")
    raise SystemExit(main(sys.argv[1:] or list(SIZES)))
