"""What the live screen's start page shows and asks: what can be measured here, which processes hold
a GPU, and what was typed."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import NamedTuple

from ckptcost.errors import CkptcostError, InputError, brief
from ckptcost.present.amounts import count
from ckptcost.present.grid import Grid, Head, Row, Tone
from ckptcost.questions.review import of_path
from ckptcost.report.studies.runs import shown
from ckptcost.report.study import Study
from ckptcost.runs import baselines, store
from ckptcost.runs.summary import RECORDING, summary_of
from ckptcost.tui.live.reading import Source
from ckptcost.tui.live.source import Start
from ckptcost.tui.paths import path_of
from ckptcost.tui.screens.meters import KINDS, kinds_of, look, overview, rows_of

DEMO_COMMAND = "ckptcost measure --meters simulated --for '5 min'"
_CARD = re.compile(r"/dev/(?:nvidia(\d+)|kfd)$")
_LETTERS = 200
"""of a command"""
_LOOKED_AT = 40
"""runs, the latest first: one that is being recorded is among them"""


class Typed(NamedTuple):
    """The fields of the page."""

    command: str = ""
    pid: str = ""
    watch: str = ""
    """folders, with commas between"""
    record: str = ""


def start_of(typed: Typed, meters: str) -> Start:
    """What the fields mean. Raises InputError, whose `where` is the field."""
    command, pid = typed.command.strip(), typed.pid.strip()
    if command and pid:
        raise InputError(
            "a command or a process, not both", where="pid", remedy="empty one of the two fields"
        )
    if pid and not (pid.isascii() and pid.isdigit() and int(pid) > 0):
        raise InputError(
            f"{brief(pid, 20)} is no process id", where="pid", remedy="a number, e.g. 4711"
        )
    if command:
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise InputError(
                f"cannot be read as a command ({error})", where="command", remedy="close the quotes"
            ) from None
        if not words:
            raise InputError("names no command", where="command", remedy="e.g. python train.py")
    watch = tuple(str(path_of(text, "watch")) for text in typed.watch.split(",") if text.strip())
    for folder in watch:
        if os.path.exists(folder) and not os.path.isdir(folder):
            raise InputError(
                f"{brief(folder, 60)} is no folder",
                where="watch",
                remedy="name the folder that checkpoints are written to",
            )
    record = typed.record.strip()
    return Start(
        command,
        int(pid) if pid else None,
        watch,
        meters,
        str(path_of(record, "record")) if record else "",
    )


def command_of(start: Start) -> str:
    """The command line that records the same; of a folder that is watched alone there is none."""
    words: list[str] = []
    if start.command:
        words = ["ckptcost", "run"]
    elif start.pid is not None:
        words = ["ckptcost", "attach", str(start.pid)]
    elif start.watch:
        return ""
    else:
        words = ["ckptcost", "measure", "--for", "10 min"]
    words += ["--meters", start.meters] if start.meters != "auto" else []
    for folder in start.watch:
        words += ["--watch", folder]
    words += ["--record", start.record] if start.record else []
    return shlex.join(words) + (f" -- {start.command}" if start.command else "")


def lines(study: Study, plain: bool = False) -> list[tuple[str, Tone]]:
    """A line for each kind; below what refuses, what would help."""
    told = overview(study, plain)
    kinds = kinds_of(study)
    first = 1 if study.simulated else 0
    out = told[:first]
    absences = rows_of(study, "absences")
    for kind, line in zip(kinds, told[first:], strict=False):
        out.append(line)
        helps = [
            str(row["remedy"]).split("\n")[0]
            for row in absences
            if row["kind"] == kind.id and row["remedy"]
        ]
        if kind.state == "refuses" and helps:
            out.append((f"{'':<{len(max(KINDS.values(), key=len)) + 3}}{helps[0]}", "muted"))
    return out


def lights_of(meters: str, plain: bool = False) -> list[tuple[str, Tone]]:
    """Tries every meter, which takes a second or three; where that cannot be done, why."""
    try:
        return lines(look(meters), plain)
    except (CkptcostError, OSError) as error:
        return [(str(error), "bad")]


def home() -> str:
    """Where runs go if no folder is named."""
    return shown(store.home())


def baseline_file() -> str:
    return shown(baselines.file_of())


def report_of(source: Source) -> str:
    """The command that says of its run what the screen says."""
    return "" if source.folder is None else shlex.join(["ckptcost", "report", str(source.folder)])


def checkpoint_named(grid: Grid, key: str) -> str:
    """The name of the checkpoint in a row of the live list; its number where the row has none."""
    place = next((n for n, head in enumerate(grid.heads) if head.id == "name"), None)
    name = next(
        (row.cells[place] for row in grid.rows if row.key == key and place is not None), key
    )
    return name.partition(": failed")[0].removesuffix(" (load)")


def study_of(source: Source) -> Study | None:
    """Its run so far, as that command has it; None where nothing is kept or nothing can be told
    yet."""
    if source.folder is None:
        return None
    try:
        return of_path(source.folder).study
    except (CkptcostError, OSError):
        return None


def gpu_processes(procfs: Path = Path("/proc")) -> Grid:
    """Processes that hold a GPU open, as far as this user may see: for the field of the PID."""
    heads = (
        Head("pid", "PID"),
        Head("gpus", "GPUs", left=True),
        Head("command", "command", left=True),
    )
    rows = []
    for entry in sorted((int(name) for name in _names(procfs) if name.isdigit()), reverse=True):
        cards = _cards(procfs / str(entry) / "fd")
        if cards is None or entry == os.getpid():
            continue
        command = _command(procfs / str(entry))
        rows.append(Row(str(entry), (str(entry), cards, command), (float(entry), cards, command)))
    return Grid(
        heads,
        rows,
        "Processes that hold a GPU",
        f"{count(len(rows))} seen",
        "No process of yours has a GPU open.",
    )


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _cards(fds: Path) -> str | None:
    """The numbers of the cards that are open; None where none is."""
    numbers: set[int] = set()
    held = False
    for name in _names(fds):
        try:
            found = _CARD.match(os.readlink(fds / name))
        except OSError:
            continue
        if found is not None:
            held = True
            numbers |= {int(found[1])} if found[1] else set()
    return (", ".join(str(number) for number in sorted(numbers)) or "AMD") if held else None


def _command(process: Path) -> str:
    try:
        words = (process / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        return "-"
    return " ".join(word for word in words if word)[:_LETTERS] or "-"


def being_recorded(within: Path | None = None) -> Grid:
    """Runs that a recorder is writing just now, here or elsewhere on a shared disk; a row's key is
    the folder."""
    heads = (
        Head("name", "run", left=True),
        Head("host", "host", left=True),
        Head("what", "what", left=True),
    )
    rows = []
    for kept in store.kept(within).runs[:_LOOKED_AT]:
        run = summary_of(kept)
        if run.state == RECORDING:
            rows.append(Row(str(run.path), (run.name, ", ".join(run.hosts), run.command or "-")))
    return Grid(heads, rows, "Being recorded", "", "Nobody is recording just now.")
