"""What is printed, byte for byte: every question in every format, every export of four sources, and
the tables of pages. The files beside this one hold it.

After a meant change: `make golden` (pytest tests/golden --update-golden) writes the files anew;
read the difference before it is committed. A file that no line below names fails a test; remove it.

The host has a name and drawn ids follow from the command. `steady` evens out what else varies:
hashes of whole documents, and digits of a float beyond the twelfth, which differ between
processors. The end of a long list or of an exported text,
and nearly all of what is the catalogue's (factors, sources, assumptions), is held by its count and
hash: what a line of it was is to be seen by asking the program before and after."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
import re
import secrets
import shlex
import shutil
from html.parser import HTMLParser
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from fleet_with_truth import fleet_with_truth

from ckptcost.first.exports.formats import FORMATS

HERE = Path(__file__).parent
TRACES = HERE.parents[2] / "data" / "traces"
LATER = "1800000000"
"""January 2027: the recorded runs are over by then"""
EVERY = ("txt", "full", "md", "csv", "json")
SHORT = ("txt", "md", "csv", "json")
"""of what has one text"""
NAMES = {"txt": "text", "full": "text --full"}
"""what `-f` calls a format"""
TINY = "-s small-8b --set 'run.work=9 h' --saves 100"

SOURCES = {
    "job.jsonl": TRACES / "simulated-8gpu.jsonl",
    "fsync.jsonl": TRACES / "ext4-fsync.jsonl",
    "kinds.toml": """
[[kind]]
name = "software"
share = "30 %"
detect = "10 s"
reschedule = "0 s"
[[kind]]
name = "preemption"
rate = "1 /day"
notice = "2 min"
reschedule = "20 min"
""",
    "tiers.json": f"model {TINY} --tier nas-hdd --tier generic-pfs --tier local-nvme --draws 64"
    " -f json -o tiers.json",
    "slower.json": f"model {TINY} --tier nas-hdd --draws 64 -f json -o slower.json",
    "simulated.json": "simulate -s small-8b --set 'run.work=9 h' --runs 20 -f json"
    " -o simulated.json",
    "alternatives.json": "compare -s small-8b --with policy.mode=async --draws 64"
    " -f json -o alternatives.json",
    "run.json": "report job.jsonl -f json -o run.json",
    "store": lambda to: fleet_with_truth(16, 2, to, saves_per_day=4, faults=True),
    "fleet.json": "fleet store -s small-8b --job pretraining/llama31-405b-01"
    " --job applied/llama31-8b-05 -f json -o fleet.json",
    "small": "probe . --meters simulated --size 10GB -q --record small",
    "large": "probe . --meters simulated --size 40GB -q --record large",
}
"""what commands read: a file that ships, a text, the command that writes it, or what does"""

QUESTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "model": ("model", ("txt", "csv")),
    "model-one-tier": ("model --tier ddn-exascaler-20 --saves 100 --draws 64", EVERY),
    "model-three-tiers": (
        f"model {TINY} --tier nas-hdd --tier generic-pfs --tier local-nvme --draws 64",
        EVERY,
    ),
    "model-async-two-tiers": (
        "model -s small-8b --set policy.mode=async --against local-nvme",
        ("txt",),
    ),
    "model-missed": (
        f"model {TINY} --draws 64 --require goodput>=0.999 --budget usd<=1",
        ("txt", "md"),
    ),
    "sweep": (
        "sweep --over tier=nas-hdd,generic-pfs,ddn-exascaler-20,ddn-exascaler-40"
        " --over saves=10:200:95",
        SHORT,
    ),
    "simulate": (
        "simulate -s llama31-405b-16k --runs 100 --kinds kinds.toml --timeline 0 --limit '60 h'",
        ("txt",),
    ),
    "simulate-few": ("simulate -s small-8b --runs 20 --seed 3 --inputs pert", EVERY),
    "optimize": ("optimize --tier generic-pfs --mode both", ("txt",)),
    "optimize-two-tiers": (
        "optimize -s small-8b --tier nas-hdd --tier generic-pfs --check 8 --draws 64"
        " --objective usd",
        EVERY,
    ),
    "solve": ("solve write -s llama31-405b-16k --for goodput>=0.9", ("txt",)),
    "solve-interval": ("solve interval -s llama31-405b-16k --for usd<=16000000", EVERY),
    "solve-infeasible": ("solve stall -s micron-100k --for goodput>=0.975", ("txt",)),
    "price": (
        "solve price --tier generic-pfs --against ddn-exascaler-40 --capex '500000 USD'",
        EVERY,
    ),
    "compare": ("compare -s llama31-405b-16k --with policy.mode=async", ("txt",)),
    "compare-few": ("compare small-8b opt-175b --draws 64", EVERY),
    "gap": ("compare job.jsonl small-8b", EVERY),
    "sensitivity": ("sensitivity -s llama31-405b-16k", ("md",)),
    "sensitivity-usd": ("sensitivity -s small-8b --of usd --top 5 --draws 64", EVERY),
    "audit": ("audit", ("txt",)),
    "audit-micron": ("audit micron-2026", EVERY),
    "fits": ("fits empty -s small-8b", EVERY),
    "lead": ("lead -s llama31-405b-16k", EVERY),
    "lead-run": ("lead job.jsonl", ("txt",)),
    "calibrate": ("calibrate small large --as planted --dry-run", EVERY),
    "probe": ("probe . --meters simulated --size 10GB -q", EVERY),
    "doctor": ("doctor --meters simulated --for '1 s'", EVERY),
    "measure": ("measure --meters simulated", EVERY),
    "measure-replay": ("measure --meters replay:job.jsonl", ("txt",)),
    "measure-unmetered": ("measure --meters replay:fsync.jsonl", ("txt",)),
    "run": ("report job.jsonl", EVERY),
    "run-unmetered": ("report fsync.jsonl --gpus 64 --usd-per-gpu-hour 2.5", EVERY),
    "run-statement": (
        "report job.jsonl -s small-8b --gpus 8 --usd-per-gpu-hour 2.5 --label team=infra",
        ("txt",),
    ),
    "runs": ("runs list --dir kept", ("csv",)),
    "diff": (
        "diff slower.json tiers.json --case nas-hdd@100 --case generic-pfs@100",
        SHORT,
    ),
    "diff-same": (
        "diff slower.json tiers.json --case nas-hdd@100 --case nas-hdd@100",
        ("txt", "md"),
    ),
    "fleet": ("fleet store -s small-8b", ("txt", "md", "csv")),
    "fleet-job": ("fleet store -s small-8b --job applied/llama31-8b-05", ("json",)),
    "fleet-teams": ("fleet store --by team --site usa --top 3", ("txt",)),
    "check": ("check tiers.json", ("txt",)),
    "catalog": ("catalog", ("txt",)),
    "catalog-tiers": ("catalog tier", ("txt",)),
    "catalog-one": ("catalog tier nas-hdd --sources", ("txt",)),
    "formats": ("export --list", ("txt",)),
}
"""the command without its format, and the formats that are held"""
WITHOUT_FORMAT = {"check", "catalog", "catalog-tiers", "catalog-one", "formats"}
PAGES = {
    "tiers": "tiers.json",
    "simulated": "simulated.json",
    "alternatives": "alternatives.json",
    "run": "run.json",
    "fleet": "fleet.json",
}
EXPORTED = {
    "tiers": ("tiers.json", "--case nas-hdd@100 --start 2025-01-01"),
    "simulated": ("simulated.json", "--start 2025-01-01"),
    "run": ("job.jsonl", "-s small-8b --label team=infra"),
    "unmetered": ("fsync.jsonl", "--site usa"),
    "fleet": ("fleet.json", ""),
}
EXPORTS = [
    (source, name)
    for source in EXPORTED
    for name in FORMATS
    if name != "grafana" or source == "run"  # a dashboard is the same whatever it will show
]
HELD = [
    *(f"{name}.{form}" for name, (_, forms) in QUESTIONS.items() for form in forms),
    *(f"{name}.page.txt" for name in PAGES),
    *(f"export-{source}-{name}.txt" for source, name in EXPORTS),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("goldens")
    for name in ("kept", "empty"):
        (made / name).mkdir()
    for name in ("job.jsonl", "fsync.jsonl"):
        shutil.copy(SOURCES[name], made / "kept" / name)
    return made


@pytest.fixture
def told(cli, folder, monkeypatch):
    """`told("report run.json")` gives what the command prints, and makes what it reads first."""
    from ckptcost.first.jobs import room

    monkeypatch.chdir(folder)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", LATER)
    monkeypatch.setenv("CKPTCOST_RUNS", str(folder / "runs"))
    monkeypatch.setenv("CKPTCOST_USER", str(folder / "user"))
    machine = os.uname()
    here = os.uname_result((machine.sysname, "some-host", *machine[2:]))
    monkeypatch.setattr(os, "uname", lambda: here)
    space = SimpleNamespace(
        f_bavail=1000, f_bfree=1100, f_frsize=10**9, f_favail=10**9, f_files=10**9
    )
    monkeypatch.setattr(room.os, "statvfs", lambda _: space)
    monkeypatch.setattr(room, "quotas_of", lambda _: [room.Limit("your quota", 45e12, 1e9)])

    def run(command: str):
        numbers = count()

        def drawn(size: int = 16) -> str:
            return hashlib.sha256(f"{command} {next(numbers)}".encode()).hexdigest()[: 2 * size]

        monkeypatch.setattr(secrets, "token_hex", drawn)
        return cli(*shlex.split(command))

    def tell(command: str) -> str:
        words = shlex.split(command)
        for word in words[1:]:
            make(word.removeprefix("replay:"))
        done = run(command)
        said = f"--- exit code {done.code}\n{done.err}" if done.code or done.err else ""
        return done.out + said

    def make(name: str) -> None:
        source = SOURCES.get(name)
        if source is None or Path(name).exists():
            return
        if isinstance(source, Path):
            shutil.copy(source, name)
        elif callable(source):
            source(name)
        elif source.startswith("\n"):
            Path(name).write_text(source, "utf-8")
        else:
            words = [word for word in shlex.split(source) if word != name or word == "--record"]
            for word in words[1:]:
                make(word)
            done = run(source)
            assert done.code == 0, done.err

    return tell


@pytest.mark.parametrize(
    ("name", "form"), [(name, form) for name, (_, forms) in QUESTIONS.items() for form in forms]
)
def test_a_question(told, golden, name, form):
    command = QUESTIONS[name][0]
    asked = "" if name in WITHOUT_FORMAT else f" -f {NAMES.get(form, form)}"
    out = steady(told(command + asked))
    golden(f"{name}.{form}", out)
    if form == "txt":
        wide = [line for line in out.splitlines() if len(line) > 80]
        assert wide == [] or name in WITHOUT_FORMAT


@pytest.mark.parametrize("name", PAGES)
def test_the_tables_of_a_page(told, golden, name):
    page = Tables()
    page.feed(told(f"report {PAGES[name]} -f html"))
    golden(f"{name}.page.txt", steady("\n".join(page.lines) + "\n"))


@pytest.mark.parametrize(("source", "name"), EXPORTS)
def test_an_export(told, golden, source, name, folder):
    if name == "parquet":
        pytest.importorskip("pyarrow")
    what, more = EXPORTED[source]
    to = folder / "exported"
    if to.is_dir():
        shutil.rmtree(to)
    to.unlink(missing_ok=True)
    said = told(f"export {what} --to {name} {more} -o exported")
    files = sorted(to.iterdir()) if to.is_dir() else [to] if to.is_file() else []
    parts = [
        f"=== {file.name}\n{steady(text_of(file), 0 if file.stem in LONG else MOST_TEXT)}"
        for file in files
    ]
    golden(f"export-{source}-{name}.txt", "".join([*parts, steady(said)]))


def test_every_file_is_held():
    there = {file.name for file in HERE.iterdir() if file.is_file() and file.suffix != ".py"}
    assert there == set(HELD)


class Tables(HTMLParser):
    """The text of a page's tables, a row a line."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._cell: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in ("table", "tr"):
            self.lines.append("" if tag == "tr" else "---")
        if tag in ("caption", "th", "td"):
            self._cell = []

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._cell.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("caption", "th", "td") and self._cell is not None:
            text = " ".join("".join(self._cell).split())
            self.lines[-1] += f" | {text}" if self.lines[-1] not in ("", "---") else text
            self._cell = None


def text_of(file: Path) -> str:
    if file.suffix != ".parquet":
        return file.read_text("utf-8")
    from pyarrow import parquet

    table = parquet.read_table(file)
    rows = io.StringIO()
    write = csv.writer(rows, lineterminator="\n")
    write.writerow([f"{field.name}: {field.type}" for field in table.schema])
    write.writerows(list(row.values()) for row in table.to_pylist())
    return rows.getvalue()


LONG = {"factors", "sources", "assumptions"}
MOST_ROWS, MOST_TEXT = 4, 8_000


def steady(text: str, most_text: float = math.inf) -> str:
    """The same text from run to run and from machine to machine."""
    text = re.sub(r"\b[0-9a-f]{64}\b", "<sha256>", text)
    # a file's size, and its hash, depend on the last digit of its numbers
    text = re.sub(r'("bytes": )\d+(,\s+"hash": "sha256:)', r"\g<1>0\2", text)
    text = re.sub(r"-?\d+\.\d{9,}(?:e[+-]?\d+)?", lambda m: f"{float(m[0]):.10g}", text)
    if text.startswith("{"):
        document, end = json.JSONDecoder().raw_decode(text)
        return _printed(_folded(document)) + text[end:]
    lines = text.splitlines()
    most, length = 0, 0
    while most < len(lines) and (length < most_text or most < 2):
        length += len(lines[most])
        most += 1
    rest = _rest(lines[most:])
    return "\n".join([*lines[:most], *rest]) + "\n" if rest else text


def _folded(part: object, key: str = "") -> object:
    if isinstance(part, dict):
        return {name: _folded(value, name) for name, value in part.items()}
    if not isinstance(part, list):
        return part
    most = 2 if key in LONG else MOST_ROWS
    return [*(_folded(each) for each in part[:most]), *_rest(part[most:])]


def _rest(rows: list[object]) -> list[str]:
    whole = hashlib.sha256(json.dumps(rows).encode()).hexdigest()
    return [f"and {len(rows)} more, {whole[:16]}"] if rows else []


def _printed(part: object, pad: str = "") -> str:
    flat = json.dumps(part, ensure_ascii=False)
    if len(flat) + len(pad) <= 100 or not isinstance(part, dict | list):
        return flat
    names = (
        [f"{json.dumps(name)}: " for name in part] if isinstance(part, dict) else [""] * len(part)
    )
    values = part.values() if isinstance(part, dict) else part
    inner = [
        f"{pad} {name}{_printed(each, pad + ' ')}" for name, each in zip(names, values, strict=True)
    ]
    return f"{flat[0]}\n" + ",\n".join(inner) + f"\n{pad}{flat[-1]}"
