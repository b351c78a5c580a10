"""A fuzzer that knows the structure of what it changes: `make fuzz MINUTES=30`.

One target a reader. Each starts from inputs that are accepted, changes a few values under right
checksums, and runs a command on the result, in this process. What counts: no defect (exit code 70),
no hang over ten seconds, less than 2 GB, nothing on stdout or stderr that a terminal would obey.
The share that got past its reader is printed, because a fuzzer that is refused at the door proves
little.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import tomllib
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from mutations import changed_text, csv_bytes, json_bytes, lines_bytes, mutated, toml_bytes

from ckptcost.cli import main as front

ROOT = Path(__file__).resolve().parents[2]
HANGS_S = 10
MOST_KB = 2_000_000
ANSWERED = {0, 1, 3, 5}
"""exit codes of an input that got past its reader: an answer, differences, a target that is missed,
nothing measured"""
FORBIDDEN = {chr(code) for code in (*range(9), *range(11, 32), 127, *range(0x202A, 0x202F))} | {
    chr(code) for code in range(0x2066, 0x206A)
}
"""what a terminal would obey: control characters but end of line and tab, and marks that turn the
direction of writing"""


class Hang(BaseException):
    """It took too long."""


class Case(NamedTuple):
    """Files of an input by name, and the words of the command that reads them."""

    files: dict[str, bytes]
    words: list[str]


Make = Callable[[Random, Path], Case]


@dataclass
class Tally:
    inputs: int = 0
    past: int = 0
    slowest_s: float = 0.0
    failures: list[str] = field(default_factory=list)


def quiet(words: Sequence[str]) -> tuple[int, str, str]:
    """A command in this process: exit code, stdout, stderr. Raises what no command should."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = front.main([*words])
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
    return code, out.getvalue(), err.getvalue()


def made(folder: Path, *words: str) -> Path:
    """A document of ours to begin with."""
    file = folder / f"{words[0]}.json"
    code, _, err = quiet([*words, "-f", "json", "-o", str(file)])
    if code not in ANSWERED:
        raise SystemExit(f"{words} failed: {err}")
    return file


# targets: what is changed, and who reads it


def documents(folder: Path) -> Iterator[tuple[str, Make]]:
    from ckptcost.exports.formats import FORMATS

    small = ("-s", "small-8b", "--tier", "nas-hdd", "--tier", "flash-shared")
    trees = [
        json.loads(made(folder, *words).read_bytes())
        for words in (
            ("model", *small),
            ("optimize", *small),
            ("simulate", "-s", "small-8b", "--tier", "nas-hdd", "--runs", "3"),
            ("compare", "small-8b", "opt-175b"),
        )
    ]
    readers = [
        ["check", "in.json"],
        *(["report", "in.json", "-f", form] for form in ("text", "md", "csv", "json", "html")),
        ["report", "in.json", "--full"],
        *(
            ["export", "in.json", "--to", name, "-o", "out", "--start", "2026-01-01", "--force"]
            for name in FORMATS
        ),
    ]

    billed = [tree for tree in trees if tree["statements"]]

    def one(random: Random, folder: Path) -> Case:
        words = random.choice(readers)
        tree = random.choice(billed[:2] if words[0] == "export" else trees)
        return Case({"in.json": json_bytes(mutated(random, tree))}, words)

    def two(random: Random, folder: Path) -> Case:
        tree = random.choice(billed)
        files = {"in.json": json_bytes(mutated(random, tree)), "past.json": json_bytes(tree)}
        return Case(files, ["diff", "past.json", "in.json", "-f", random.choice(("text", "md"))])

    yield "document", one
    yield "diff", two


def sheets(folder: Path) -> Iterator[tuple[str, Make]]:
    def toml_of(*parts: str) -> list[dict[str, Any]]:
        files = sorted(ROOT.joinpath(*parts).glob("*.toml"))
        return [tomllib.loads(file.read_text("utf-8")) for file in files]

    claims, scenarios = toml_of("models", "claims"), toml_of("models", "scenarios")
    questions = (
        ["model", "-s", "in.toml", "--tier", "nas-hdd"],
        ["model", "-s", "in.toml", "--tier", "nas-hdd", "-f", "json"],
        ["optimize", "-s", "in.toml", "--tier", "nas-hdd"],
        ["solve", "write", "-s", "in.toml", "--for", "goodput>=0.9"],
        ["lead", "-s", "in.toml", "--tier", "nas-hdd"],
        ["sensitivity", "-s", "in.toml", "--tier", "nas-hdd"],
    )

    def scenario(random: Random, folder: Path) -> Case:
        tree = mutated(random, random.choice(scenarios))
        return Case({"in.toml": toml_bytes(tree)}, list(random.choice(questions)))

    def claim(random: Random, folder: Path) -> Case:
        tree = mutated(random, random.choice(claims))
        return Case({"in.toml": toml_bytes(tree)}, ["audit", "./in.toml", "--full"])

    def simulated(random: Random, folder: Path) -> Case:
        tree = mutated(random, random.choice(scenarios), 2)
        words = ["simulate", "-s", "in.toml", "--tier", "nas-hdd", "--runs", "2"]
        return Case({"in.toml": toml_bytes(tree)}, [*words, "--seconds-at-most", "0.3"])

    yield "scenario", scenario
    yield "claims", claim
    yield "simulation", simulated


def tables(folder: Path) -> Iterator[tuple[str, Make]]:
    report = made(folder, "model", "-s", "small-8b", "--tier", "nas-hdd").read_bytes()
    hours = [["time", "gCO2e/kWh"]]
    hours += [
        [f"2026-01-{1 + n // 24:02d}T{n % 24:02d}:00Z", f"{200 + n % 90}"] for n in range(720)
    ]
    trace = [["time_s"], *([f"{n * 40_000}"] for n in range(1, 12))]
    contracts = {
        "site": [
            {
                "id": "usa",
                "residual": "0.4 kg/kWh",
                "contract": [
                    {"name": "wind", "instrument": "PPA", "share": "40 %", "factor": "0 g/kWh"}
                ],
            }
        ]
    }

    def grid(random: Random, folder: Path) -> Case:
        files = {"in.csv": csv_bytes(random, hours), "report.json": report}
        words = ["export", "report.json", "--to", "statement", "-o", "out.json", "--force"]
        return Case(files, [*words, "--grid", "in.csv", "--start", "2026-01-01"])

    def failures(random: Random, folder: Path) -> Case:
        words = ["simulate", "-s", "small-8b", "--tier", "nas-hdd", "--runs", "2"]
        files = {"in.csv": csv_bytes(random, trace)}
        return Case(files, [*words, "--trace", "in.csv", "--seconds-at-most", "0.3"])

    def contract(random: Random, folder: Path) -> Case:
        files = {"in.toml": toml_bytes(mutated(random, contracts)), "report.json": report}
        return Case(
            files, ["report", "report.json", "--contracts", "in.toml", "--start", "2026-01-01"]
        )

    yield "grid", grid
    yield "trace", failures
    yield "contracts", contract


def runs(folder: Path) -> Iterator[tuple[str, Make]]:
    from ckptcost.meters import simulated
    from ckptcost.meters.simulated_machine import Plan, marks
    from ckptcost.runs.clocks import S, VirtualClock
    from ckptcost.runs.lines import decode, sealed
    from ckptcost.runs.recorder import Recorder
    from ckptcost.runs.sinks import FileSink

    plan = Plan(gpus=1, first_s=8.0, interval_s=20.0, saves=2)
    recorder = Recorder(
        simulated.find(plan, origin_ns=0).meters,
        FileSink(folder / "run"),
        VirtualClock(0, 1_767_225_600 * S),
        host="n1",
        run_id="a" * 32,
    )
    recorder.begin()
    for mark in sorted(marks(plan, 0.0, 60.0), key=lambda mark: mark.t_s):
        at_ns = round(mark.t_s * S)
        recorder.run_until(at_ns)
        recorder.mark(mark.name, mark.window, by=mark.by, rank=mark.rank, t_ns=at_ns, **mark.detail)
    recorder.run_until(60 * S)
    recorder.stop()
    (file,) = (folder / "run").glob("*.jsonl")
    lines = [decode(line) for line in file.read_bytes().splitlines()]
    readers = (
        ["report", "run"],
        ["report", "run", "-f", "json"],
        ["report", "run", "-f", "html"],
        ["runs", "show", "run"],
        ["calibrate", "run", "--as", "x", "--dry-run"],
        ["compare", "run:run", "small-8b"],
        ["export", "run", "--to", "openmetrics", "-o", "out.txt", "--force"],
        ["runs", "pack", "run", "-o", "packed"],
    )

    def seal(line: dict[str, Any]) -> bytes:
        line.pop("c", None)
        return sealed(json.dumps(line, separators=(",", ":"))[:-1])

    def run(random: Random, folder: Path) -> Case:
        changed = lines_bytes(random, lines, seal)
        return Case({"run/a.jsonl": changed}, list(random.choice(readers)))

    yield "run", run


def stores(folder: Path) -> Iterator[tuple[str, Make]]:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        return
    import numpy as np

    from ckptcost.fleet import node_file
    from ckptcost.fleet.node_day import COLUMNS

    quiet(["fleet", "synthesize", "2", "1", str(folder / "store")])
    files = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted((folder / "store").rglob("*"))
        if path.is_file()
    }
    names = [name for name in files if name.endswith(".parquet")]

    def forged(random: Random, data: bytes) -> bytes:
        day = node_file.decode(data)
        rows = {name: values.copy() for name, values in day.rows.items()}
        for _ in range(random.randint(1, 3)):
            name = random.choice(list(COLUMNS))
            if not len(rows[name]):
                continue
            at = random.randrange(len(rows[name]))
            if COLUMNS[name].dtype == "str":
                rows[name][at] = random.choice(("", "x" * 500, "\x1b[2J", "\u202e"))
            elif COLUMNS[name].dtype.startswith("float"):
                odd = (-1.0, np.nan, np.inf, -np.inf, 1e300, 0.0)
                with np.errstate(over="ignore"):
                    rows[name][at] = random.choice((*odd, float(rows[name][at]) * 2))
            elif COLUMNS[name].dtype == "bool":
                rows[name][at] = not rows[name][at]
            else:
                rows[name][at] = random.choice((0, 1, -1, 2**31 - 1))
        judges = node_file._judge, node_file.judge
        node_file._judge = node_file.judge = lambda _: None
        try:
            return node_file.encode(node_file.NodeDay(day.head, rows))
        finally:
            node_file._judge, node_file.judge = judges

    def store(random: Random, folder: Path) -> Case:
        name = random.choice(names)
        words = ["fleet", "store", *random.choice(([], ["--by", "team"], ["-f", "json"]))]
        return Case(files | {name: forged(random, files[name])}, words)

    yield "store", store


def settings(folder: Path) -> Iterator[tuple[str, Make]]:
    from ckptcost.catalog.keys import KEYS, unit_of
    from ckptcost.core.units import UNITS

    keys = [(section, key) for section in KEYS for key in KEYS[section]]

    def change(random: Random, folder: Path) -> Case:
        words = [random.choice(("model", "optimize", "sensitivity")), "-s", "small-8b"]
        section, key = random.choice(keys)
        unit = unit_of(section, key)
        example = UNITS[unit][1] if unit in UNITS else "1"
        amount = changed_text(random, example) if random.random() < 0.5 else example
        return Case({}, [*words, "--set", f"{section}.{key}={amount}", "--tier", "nas-hdd"])

    yield "settings", change


GROUPS = (documents, sheets, tables, runs, stores, settings)


def targets(folder: Path) -> dict[str, Make]:
    found: dict[str, Make] = {}
    for group in GROUPS:
        place = folder / group.__name__
        place.mkdir()
        found |= group(place)
    return found


def tried(case: Case, folder: Path) -> tuple[int, str]:
    """Exit code, and what is wrong with how it went."""
    for name, data in case.files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    folder.mkdir(parents=True, exist_ok=True)
    here = os.getcwd()
    os.chdir(folder)
    signal.setitimer(signal.ITIMER_REAL, HANGS_S)
    try:
        code, out, err = quiet(["--debug", *case.words])
    except Hang:
        return 124, f"no answer within {HANGS_S} s"
    except BaseException:
        return front.DEFECT, traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        os.chdir(here)
    if code == front.DEFECT or "Traceback" in err:
        return code, err
    if odd := sorted(FORBIDDEN & set(out + err)):
        return code, f"tells a terminal {odd}"
    if "Warning" in err:
        return code, err
    return code, ""


def fuzz(seconds: float, seed: int, only: str = "", kept: Path | None = None) -> dict[str, Tally]:
    """Targets by turns. What fails is kept in a folder of its own, to be tried again."""
    tallies: dict[str, Tally] = {}

    def hang(*_: object) -> None:
        raise Hang

    before, environment = signal.signal(signal.SIGALRM, hang), dict(os.environ)
    try:
        with tempfile.TemporaryDirectory(prefix="ckptcost-fuzz-") as name:
            folder = Path(name)
            os.environ["XDG_CONFIG_HOME"] = os.environ["XDG_DATA_HOME"] = str(folder / "home")
            makers = {key: make for key, make in targets(folder).items() if only in ("", key)}
            until_s, turn = time.monotonic() + seconds, 0
            while time.monotonic() < until_s:
                for key, make in makers.items():
                    random = Random(f"{seed} {key} {turn}")
                    _one(key, make, random, folder, tallies.setdefault(key, Tally()), kept)
                turn += 1
    finally:
        signal.signal(signal.SIGALRM, before)
        os.environ.clear()
        os.environ.update(environment)
    return tallies


def _one(
    key: str, make: Make, random: Random, folder: Path, tally: Tally, kept: Path | None
) -> None:
    case = make(random, folder)
    place = folder / "one"
    began_s = time.monotonic()
    code, wrong = tried(case, place)
    tally.slowest_s = max(tally.slowest_s, time.monotonic() - began_s)
    tally.inputs += 1
    tally.past += code in ANSWERED
    if wrong:
        tally.failures.append(f"{' '.join(case.words)}\n{wrong}")
        if kept is not None:
            there = kept / f"{key}-{tally.inputs}"
            tried(case._replace(words=["--version"]), there)
            (there / "command").write_text(" ".join(case.words) + "\n\n" + wrong, "utf-8")
    shutil.rmtree(place, ignore_errors=True)


def table(tallies: dict[str, Tally]) -> str:
    rows = [f"{'target':<12} {'inputs':>8} {'past the reader':>16} {'slowest':>9} {'wrong':>6}"]
    rows += [
        f"{key:<12} {t.inputs:>8,} {t.past / max(t.inputs, 1):>15.0%} {t.slowest_s:>8.1f}s"
        f" {len(t.failures):>6}"
        for key, t in tallies.items()
    ]
    inputs, past = sum(t.inputs for t in tallies.values()), sum(t.past for t in tallies.values())
    most_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    rows.append(
        f"{inputs:,} inputs, {past / max(inputs, 1):.0%} past the reader, {most_mb:,.0f} MB"
    )
    return "\n".join(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="one target")
    parser.add_argument("--keep", type=Path, help="a folder for inputs that failed")
    options = parser.parse_args()
    tallies = fuzz(60 * options.minutes, options.seed, options.only, options.keep)
    for key, tally in tallies.items():
        for failure in tally.failures[:5]:
            print(f"--- {key}: {failure}\n")
    print(table(tallies))
    return int(any(tally.failures for tally in tallies.values()))


if __name__ == "__main__":
    raise SystemExit(main())
