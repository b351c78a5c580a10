"""Every command that writes, killed at random instants: `python tests/first/faults/kills.py --kills 300`.

What must hold afterwards: an output is whole or not there, what was there before is as it was, a
run that was being recorded can be read, and what a killed command left behind is gone when the next
one has run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple

EPOCH = "1767225600"
LONGEST_S = 60.0
COMMAND = [
    sys.executable,
    "-c",
    "from ckptcost.first.cli.main import main; raise SystemExit(main())",
]


class Kill(NamedTuple):
    """A command, and what must hold when it has been killed."""

    name: str
    words: list[str]
    holds: Callable[[Path], str]
    """of the folder that it ran in: what is wrong; empty where nothing is"""


def environment(folder: Path) -> dict[str, str]:
    places = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "CKPTCOST_STATE")
    home = str(folder / "home")
    return {**os.environ, **dict.fromkeys(places, home), "SOURCE_DATE_EPOCH": EPOCH}


def carried_out(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *words],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )


def prepared(folder: Path) -> None:
    """What the commands read."""
    for words in (
        ("model", "-s", "small-8b", "--tier", "nas-hdd", "-f", "json", "-o", "report.json"),
        ("measure", "--meters", "simulated", "--for", "1 s", "--record", "kept"),
    ):
        done = carried_out(folder, *words)
        if done.returncode not in (0, 5):
            raise SystemExit(f"{words}: {done.stderr}")


def hidden(folder: Path) -> list[str]:
    """Parts of files and scratch that nobody will ask for again."""
    return [
        str(path.relative_to(folder))
        for path in folder.rglob(".*")
        if not any(part == "home" for part in path.relative_to(folder).parts)
    ]


def whole_json(name: str) -> Callable[[Path], str]:
    def holds(folder: Path) -> str:
        file = folder / name
        if not file.exists():
            return ""
        try:
            json.loads(file.read_text("utf-8"))
        except ValueError as error:
            return f"{name} is half a file: {error}"
        done = carried_out(folder, "check", name)
        return "" if done.returncode == 0 else f"{name} does not check: {done.stderr}"

    return holds


def whole_folder(name: str, needed: str) -> Callable[[Path], str]:
    def holds(folder: Path) -> str:
        there = folder / name
        if not there.exists() or (there / needed).exists():
            return ""
        return f"{name} lacks {needed}: {sorted(path.name for path in there.iterdir())}"

    return holds


def readable_run(name: str) -> Callable[[Path], str]:
    def holds(folder: Path) -> str:
        if not list((folder / name).glob("*.jsonl")):
            return ""
        done = carried_out(folder, "report", name)
        if "Traceback" in done.stderr or done.returncode == 70:
            return f"the run cannot be read: {done.stderr[-300:]}"
        empty = "no run in here" in done.stderr or "not a run" in done.stderr
        readings = sum(path.stat().st_size for path in (folder / name).glob("*.jsonl"))
        if done.returncode in (0, 5) or (empty and readings < 5000):
            return ""
        nothing = "no reading" in done.stderr or "holds" in done.stderr
        return "" if nothing else f"exit {done.returncode}: {done.stderr[-300:]}"

    return holds


def readable_store(folder: Path) -> str:
    if not (folder / "store" / "_store.json").exists():
        return ""
    done = carried_out(folder, "fleet", "store")
    wrong = "Traceback" in done.stderr or done.returncode == 70
    return f"the store cannot be read: {done.stderr[-300:]}" if wrong else ""


def untouched(folder: Path) -> str:
    """What stood there before a command that replaces it is whole, the old or the new."""
    return whole_json("report.json")(folder)


def no_scratch(folder: Path) -> str:
    """What a probe wrote is gone once another one has been there."""
    carried_out(folder, "probe", "place", "--size", "4 MB", "--rounds", "1", "--one-size", "-q")
    left = [path.name for path in (folder / "place").iterdir()]
    return f"left behind: {left}" if left else ""


KILLS = (
    Kill(
        "model", ["model", "-s", "small-8b", "-f", "json", "-o", "out.json"], whole_json("out.json")
    ),
    Kill("replace", ["model", "-f", "json", "-o", "report.json"], untouched),
    Kill(
        "simulate",
        ["simulate", "-s", "small-8b", "--runs", "50", "-f", "json", "-o", "out.json"],
        whole_json("out.json"),
    ),
    Kill(
        "export",
        ["export", "report.json", "--to", "datapackage", "-o", "out"],
        whole_folder("out", "datapackage.json"),
    ),
    Kill(
        "measure",
        ["measure", "--meters", "simulated", "--for", "2 s", "--record", "run"],
        readable_run("run"),
    ),
    Kill(
        "run",
        [
            *("run", "-q", "--meters", "simulated", "--watch", "place", "--record", "run", "--"),
            *("sh", "-c", "for n in 1 2 3; do echo x > place/step-$n.pt; sleep 0.3; done"),
        ],
        readable_run("run"),
    ),
    Kill("pack", ["runs", "pack", "kept", "-o", "packed"], whole_folder("packed", "run.json")),
    Kill("store", ["runs", "pack", "kept", "--store", "store"], readable_store),
    Kill("fleet", ["fleet", "synthesize", "4", "2", "store"], readable_store),
    Kill("probe", ["probe", "place", "--size", "64 MB", "--rounds", "2", "-q"], no_scratch),
    Kill("init", ["init", "job.toml"], lambda folder: ""),
)


def killed(kill: Kill, folder: Path, after_s: float) -> bool:
    """Whether it was still at it."""
    with subprocess.Popen(
        [*COMMAND, *kill.words],
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            process.wait(after_s)
            return False
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return True


def tried(kill: Kill, base: Path, folder: Path, after_s: float) -> tuple[bool, str]:
    """Whether it was cut off, and what is wrong then."""
    shutil.copytree(base, folder)
    (folder / "place").mkdir()
    before = set(hidden(folder))
    hit = killed(kill, folder, after_s)
    wrong = kill.holds(folder)
    if not wrong:
        # the next of its kind sweeps what was left
        for output in ("out.json", "out", "run", "packed", "job.toml"):
            path = folder / output
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        if kill.name not in ("run", "probe"):
            carried_out(folder, *kill.words)
        left = sorted(set(hidden(folder)) - before)
        wrong = f"left behind: {left}" if left else ""
    shutil.rmtree(folder)
    return hit, wrong


def length_s(kill: Kill, base: Path, folder: Path) -> float:
    """How long it takes when nobody kills it."""
    shutil.copytree(base, folder)
    (folder / "place").mkdir()
    began_s = time.monotonic()
    carried_out(folder, *kill.words)
    shutil.rmtree(folder)
    return time.monotonic() - began_s


def kills(
    count: int, seed: int = 0, names: tuple[str, ...] = ()
) -> tuple[dict[str, int], list[str]]:
    """By command how often it was cut off, and what was wrong."""
    random = Random(seed)
    hits: dict[str, int] = {}
    wrong: list[str] = []
    chosen = [kill for kill in KILLS if not names or kill.name in names]
    with tempfile.TemporaryDirectory(prefix="ckptcost-kills-") as name:
        base = Path(name) / "base"
        base.mkdir()
        prepared(base)
        lengths_s = {kill.name: length_s(kill, base, Path(name) / "whole") for kill in chosen}
        for n in range(count):
            kill = chosen[n % len(chosen)]
            # most of the start is Python's: what matters comes late
            after_s = lengths_s[kill.name] * random.uniform(0.3, 1.0)
            hit, problem = tried(kill, base, Path(name) / f"{n}", after_s)
            hits[kill.name] = hits.get(kill.name, 0) + hit
            if problem:
                wrong.append(f"{kill.name} after {after_s:.2f} s: {problem}")
    return hits, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    hits, wrong = kills(options.kills, options.seed, (options.only,) if options.only else ())
    for problem in wrong:
        print(problem)
    for name, hit in hits.items():
        print(f"{name:<10} cut off {hit} times")
    print(f"{options.kills} kills, {sum(hits.values())} before it was done, {len(wrong)} wrong")
    return int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(main())
