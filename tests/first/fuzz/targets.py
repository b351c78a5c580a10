"""What is changed, and who reads it: one target a reader. The inputs to begin with are small, so
that many changed ones can be tried."""

from __future__ import annotations

import contextlib
import io
import json
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from mutations import Base, changed_text, csv_bytes, json_bytes, lines_bytes, mutated, toml_bytes

from ckptcost.first.cli import main as front

ROOT = Path(__file__).resolve().parents[3]
ANSWERED = {0, 1, 3, 5}
"""exit codes of an input that got past its reader: an answer, differences, a target that is missed,
nothing measured"""
SMALL = ("-s", "small-8b", "--set", "run.work=9 hours")
FEW = ("--draws", "64")
"""ranges are drawn from inputs that were read already: a few draws show what many do"""


class Case(NamedTuple):
    """Files of an input by name, and the words of the command that reads them."""

    files: dict[str, bytes]
    words: list[str]


Make = Callable[[Random, Path], Case]


def quiet(words: Sequence[str]) -> tuple[int, str, str]:
    """A command in this process: exit code, stdout, stderr. Raises what no command should."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = front.main([*words])
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
    return code, out.getvalue(), err.getvalue()


def made(folder: Path, *words: str, name: str = "") -> Path:
    """A document of ours to begin with."""
    file = folder / f"{name or words[0]}.json"
    form = () if words[0] == "export" else ("-f", "json")
    code, _, err = quiet([*words, *form, "-o", str(file)])
    if code not in ANSWERED:
        raise SystemExit(f"{words} failed: {err}")
    return file


def documents(folder: Path) -> Iterator[tuple[str, Make]]:
    from ckptcost.first.exports.formats import FORMATS

    def base(*words: str, name: str = "") -> Base:
        return Base(json.loads(made(folder, *words, name=name).read_bytes()))

    recorded = str(_recorded(folder))
    model = made(folder, "model", *SMALL, *FEW, "--tier", "nas-hdd", "--tier", "flash-shared")
    other = made(folder, "model", *SMALL, *FEW, "--tier", "nas-hdd", name="other")
    dated = base("export", str(other), "--to", "statement", "--start", "2026-01-01")
    planned = [
        Base(json.loads(model.read_bytes())),
        base("simulate", *SMALL, "--tier", "nas-hdd", "--runs", "3"),
        base("compare", "small-8b", "opt-175b", *SMALL[2:]),
    ]
    billed = [*planned, base("report", recorded), dated]
    others = [
        base("optimize", *SMALL, *FEW, "--check", "2"),
        base("sensitivity", *SMALL, *FEW),
        base("solve", "write", *SMALL, "--for", "goodput>=0.9"),
        base("lead", *SMALL),
        base("audit", "bloom-176b"),
        base("doctor"),
        base("runs", "list", "--dir", str(folder)),
        base("compare", f"run:{recorded}", "small-8b", name="gap"),
        base("diff", str(other), str(model)),
    ]
    readers = [
        ["check", "in.json"],
        *(["report", "in.json", "-f", form] for form in ("text", "md", "csv", "json", "html")),
        ["report", "in.json", "--full"],
    ]
    exports = [["export", "in.json", "--to", name, "-o", "out", "--force"] for name in FORMATS]

    def written(random: Random, base: Base) -> bytes:
        tree = mutated(random, base)
        return json_bytes(_hashed(tree) if base is dated else tree)

    def one(random: Random, folder: Path) -> Case:
        base, words = random.choice([*billed, *others]), random.choice(readers)
        return Case({"in.json": written(random, base)}, words)

    def exported(random: Random, folder: Path) -> Case:
        base, words = random.choice(billed), random.choice(exports)
        begins = ["--start", "2026-01-01"] if base in planned else []
        return Case({"in.json": written(random, base)}, words + begins)

    def two(random: Random, folder: Path) -> Case:
        base = random.choice(billed)
        files = {"in.json": written(random, base), "past.json": json_bytes(base.tree)}
        return Case(files, ["diff", "past.json", "in.json", "-f", random.choice(("text", "md"))])

    yield "document", one
    yield "export", exported
    yield "diff", two


def _hashed(tree: Any) -> Any:
    """A document of statements under a right hash, without which it is not read."""
    from pydantic import ValidationError

    from ckptcost.first.report.build import result_hash
    from ckptcost.first.report.document import Report

    try:
        digest = result_hash(Report.model_validate(tree))
    except (ValidationError, ValueError):
        return tree
    return tree | {"reproducibility": tree["reproducibility"] | {"result_sha256": digest}}


def sheets(folder: Path) -> Iterator[tuple[str, Make]]:
    def toml_of(*parts: str) -> list[Base]:
        files = sorted(ROOT.joinpath(*parts).glob("*.toml"))
        return [Base(tomllib.loads(file.read_text("utf-8"))) for file in files]

    claims, scenarios = toml_of("models", "claims"), toml_of("models", "scenarios")
    questions = (
        *3 * (["model", "-s", "in.toml", "--tier", "nas-hdd", *FEW],),
        ["model", "-s", "in.toml", "--tier", "nas-hdd", *FEW, "-f", "json"],
        ["optimize", "-s", "in.toml", "--tier", "nas-hdd", *FEW, "--check", "2"],
        ["solve", "write", "-s", "in.toml", "--for", "goodput>=0.9"],
        ["lead", "-s", "in.toml", "--tier", "nas-hdd"],
        ["sensitivity", "-s", "in.toml", "--tier", "nas-hdd", *FEW],
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
        return Case({"in.toml": toml_bytes(tree)}, [*words, "--seconds-at-most", "0.1"])

    yield "scenario", scenario
    yield "claims", claim
    yield "simulation", simulated


def tables(folder: Path) -> Iterator[tuple[str, Make]]:
    report = made(folder, "model", *SMALL, *FEW, "--tier", "nas-hdd").read_bytes()
    hours = [["time", "gCO2e/kWh"]]
    hours += [[f"2026-01-{1 + n // 24:02d}T{n % 24:02d}:00Z", f"{200 + n % 90}"] for n in range(36)]
    trace = [["time_s"], *([f"{n * 3_000}"] for n in range(1, 12))]
    bought = {"name": "wind", "instrument": "PPA", "share": "40 %", "factor": "0 g/kWh"}
    contracts = Base({"site": [{"id": "usa", "residual": "0.4 kg/kWh", "contract": [bought]}]})

    def grid(random: Random, folder: Path) -> Case:
        files = {"in.csv": csv_bytes(random, hours), "report.json": report}
        words = ["export", "report.json", "--to", "statement", "-o", "out.json", "--force"]
        return Case(files, [*words, "--grid", "in.csv", "--start", "2026-01-01"])

    def failures(random: Random, folder: Path) -> Case:
        words = ["simulate", *SMALL, "--tier", "nas-hdd", "--runs", "2"]
        files = {"in.csv": csv_bytes(random, trace)}
        return Case(files, [*words, "--trace", "in.csv", "--seconds-at-most", "0.1"])

    def contract(random: Random, folder: Path) -> Case:
        files = {"in.toml": toml_bytes(mutated(random, contracts)), "report.json": report}
        return Case(
            files, ["report", "report.json", "--contracts", "in.toml", "--start", "2026-01-01"]
        )

    yield "grid", grid
    yield "trace", failures
    yield "contracts", contract


def _recorded(folder: Path) -> Path:
    """A recording of a minute, of meters that are simulated."""
    from ckptcost.first.meters import simulated
    from ckptcost.first.meters.simulated_machine import MachinePlan, marks
    from ckptcost.first.runs.clocks import S, VirtualClock
    from ckptcost.first.runs.recorder import Recorder
    from ckptcost.first.runs.sinks import FileSink

    plan = MachinePlan(gpus=1, first_s=8.0, interval_s=20.0, saves=2)
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
    return folder / "run"


def runs(folder: Path) -> Iterator[tuple[str, Make]]:
    from ckptcost.first.runs.lines import decode, seal_line

    (file,) = _recorded(folder).glob("*.jsonl")
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
        return seal_line(
            json.dumps({k: v for k, v in line.items() if k != "c"}, separators=(",", ":"))[:-1]
        )

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

    from ckptcost.first.fleet import node_file
    from ckptcost.first.fleet.node_day import COLUMNS

    quiet(["fleet", "synthesize", "2", "1", "--saves-per-day", "12", str(folder / "store")])
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
    from ckptcost.first.catalog.keys import KEYS, unit_of
    from ckptcost.first.core.units import UNITS

    keys = [(section, key) for section in KEYS for key in KEYS[section]]
    questions = (*12 * (["model"],), *4 * (["sensitivity"],), ["optimize", "--check", "2"])
    """the reader is the same, and the slow ones need not be asked as often"""

    def change(random: Random, folder: Path) -> Case:
        words = [*random.choice(questions), "-s", "small-8b", *FEW]
        section, key = random.choice(keys)
        unit = unit_of(section, key)
        example = UNITS[unit][1] if unit in UNITS else "1"
        amount = changed_text(random, example) if random.random() < 0.5 else example
        return Case({}, [*words, "--set", f"{section}.{key}={amount}", "--tier", "nas-hdd"])

    yield "settings", change


GROUPS = {
    documents: ("document", "export", "diff"),
    sheets: ("scenario", "claims", "simulation"),
    tables: ("grid", "trace", "contracts"),
    runs: ("run",),
    stores: ("store",),
    settings: ("settings",),
}


def targets(folder: Path, only: str = "") -> dict[str, Make]:
    """All, or one of them."""
    found: dict[str, Make] = {}
    for group, names in GROUPS.items():
        if not only or only in names:
            place = folder / group.__name__
            place.mkdir()
            found |= group(place)
    return {key: make for key, make in found.items() if only in ("", key)}
