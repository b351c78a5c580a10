"""Exports of a statement with 100,000 rows of intervals: each in an interpreter of its own, from
the statement's file to its files."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from measure import ENVIRONMENT, digits, ratios, table

from ckptcost.first.exports.formats import FORMATS

ROWS = 100_000
MOST_S, MOST_MB = 5.0, 300.0
"""limits of the design: the whole process, and its resident peak"""
LIMITS = f"{MOST_S:g} s, {MOST_MB:g} MB"
MADE_UP = Path(__file__).parents[1] / "tests" / "first" / "exports"
"""where the tests make their statements up"""
MAKE = """
import sys
sys.path.insert(0, sys.argv[1])
from statements import START, document, statement
# over long before it is written: some formats take no costs of days to come
begin_s = START + 1800.0 - 1100 * 86400.0
made = statement(rows=int(sys.argv[2]) // 4, begin=begin_s, kind="measured")
# a model card is of a whole run: meters of all its accelerators, which is one
subject = made.subject.model_copy(update={"accelerator_count": 1.0})
made = made.model_copy(update={"subject": subject})
print(document(made).to_json(), end="")
"""
"""four of its lines have rows, an hour each"""
WORKER = """
import json, sys, time
from pathlib import Path
wanted, source, folder = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
if wanted == "json.dumps":
    whole = json.loads(source.read_text())
elif wanted == "DataFrame.to_csv":
    import pandas
    rows = json.loads(source.read_text())["statements"][0]["series"]
    frame = pandas.DataFrame({name: cells for name, cells in rows.items() if name != "width_s"})
else:
    from ckptcost.first.errors import InputError
    from ckptcost.first.report.document import Report
    document = Report.model_validate_json(source.read_bytes())
began_s, said = time.perf_counter(), None
if wanted == "json.dumps":
    (folder / "all.json").write_text(json.dumps(whole))
elif wanted == "DataFrame.to_csv":
    frame.to_csv(folder / "rows.csv", index=False)
else:
    from ckptcost.first.exports.formats import exported
    try:
        files = exported(document, wanted)
        for name, pieces in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                if isinstance(pieces, bytes):
                    file.write(pieces)
                else:
                    for piece in pieces:
                        file.write(piece if isinstance(piece, bytes) else piece.encode())
    except InputError as refusal:
        said = "refused: " + str(refusal)
    except ModuleNotFoundError as lacking:
        said = "not there: " + str(lacking.name)
took_s = time.perf_counter() - began_s
status = Path("/proc/self/status").read_text()
peak = int(status.split("VmHWM:")[1].split()[0]) * 1024
size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
print(json.dumps({"s": took_s, "peak": peak, "size": size, "said": said}))
"""
PEERS = ("json.dumps", "DataFrame.to_csv")
"""of the same document to a file, and of its rows; what is timed beside an export is the writing
alone"""


class Took(NamedTuple):
    whole_s: float
    alone_s: float
    peak_bytes: float
    size_bytes: float
    said: str | None


def once(wanted: str, source: Path) -> Took:
    with tempfile.TemporaryDirectory() as folder:
        began_s = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", WORKER, wanted, str(source), folder],
            check=True,
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            text=True,
        )
        whole_s = time.perf_counter() - began_s
    told = json.loads(done.stdout)
    return Took(whole_s, told["s"], told["peak"], told["size"], told["said"])


def row(name: str, took: list[Took], peers: dict[str, list[Took]]) -> tuple[str, ...]:
    if took[0].said is not None:
        return (name, took[0].said, *[""] * (4 + len(PEERS)))
    whole_s, alone_s, peak, size = (statistics.median(each[at] for each in took) for at in range(4))
    seconds = [each.alone_s for each in took]
    over = [
        f"{statistics.median(ratios(seconds, [each.alone_s for each in peers[peer]])):.2g}"
        for peer in PEERS
    ]
    over_s, over_mb = whole_s / MOST_S, peak / 1e6 / MOST_MB
    missed = [
        f"{share:.2f} times the {what}"
        for share, what in ((over_s, "time"), (over_mb, "memory"))
        if share > 1
    ]
    verdict = "" if name in PEERS else "**miss**, " + " and ".join(missed) if missed else "met"
    cells = (
        f"{digits(whole_s)} s",
        f"{digits(alone_s * 1e3)} ms",
        f"{digits(peak / 1e6)} MB",
        f"{digits(size / 1e3)} kB",
    )
    return (name, *cells, *over, verdict)


def measure(rounds: int = 3) -> str:
    """Medians of whole processes and of the export alone, resident peaks, and how long the two
    peers take in the same rounds."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "statement.json"
        with source.open("wb") as file:
            subprocess.run(
                [sys.executable, "-c", MAKE, str(MADE_UP), str(ROWS)],
                check=True,
                env=ENVIRONMENT,
                stdout=file,
            )
        took: dict[str, list[Took]] = {name: [] for name in (*PEERS, *FORMATS)}
        for number in range(rounds):
            for name in list(took)[:: -1 if number % 2 else 1]:
                took[name].append(once(name, source))
        megabytes = f"{digits(source.stat().st_size / 1e6)} MB"
    size = f"{ROWS:,} rows, {megabytes} of JSON"
    head = (
        size,
        "whole process",
        "the writing alone",
        "resident peak",
        "written",
        *[f"over {peer}" for peer in PEERS],
        LIMITS,
    )
    return table(head, [row(name, took[name], took) for name in took])


if __name__ == "__main__":
    print(measure())
