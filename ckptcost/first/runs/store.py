"""Where runs are kept, and how one is named: by its path, as "last", or by the beginning of its id
or of its folder's name.

Only first lines are read: some thousand runs are looked through in about a second.
"""

from __future__ import annotations

import os
import secrets
import time
from collections import Counter, defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from ckptcost.first.errors import InputError, OutputError, RunFileError, UnknownName, brief
from ckptcost.first.runs.header import Header, base_name, header_from, host_name
from ckptcost.first.runs.lines import BadLine, decode
from ckptcost.first.runs.writer import first_line

LAST = "last"
_TOLD = 5
"""runs that a message names before it counts the rest"""
MAKE_ONE = "`ckptcost run -- COMMAND` records one; a run elsewhere goes by its path"


class PartHead(NamedTuple):
    """A file of a run and what its first line says."""

    file: Path
    header: Header


class Kept(NamedTuple):
    """A run, and the folder or file that it is in. A folder may hold several: a job that was
    started again writes a new one beside it."""

    path: Path
    run: str
    heads: tuple[PartHead, ...]
    problems: tuple[str, ...] = ()
    """of files here that belong to nobody"""

    @property
    def name(self) -> str:
        return self.path.resolve().name

    @property
    def is_of_job(self) -> bool:
        """Not so of what `probe` and `selftest` wrote themselves."""
        return not any(head.header.purpose for head in self.heads)

    @property
    def began_ns(self) -> int:
        """Unix time of the first part that is still there."""
        return min(head.header.wall_ns for head in self.heads)


class Found(NamedTuple):
    """What somebody's word stands for; `run` is empty for a path, which says no more than
    itself."""

    path: Path
    run: str


def home() -> Path:
    """$CKPTCOST_RUNS, else ckptcost/runs in the user's data folder."""
    if own := os.environ.get("CKPTCOST_RUNS"):
        return Path(own)
    if base := os.environ.get("XDG_DATA_HOME"):
        return Path(base) / "ckptcost" / "runs"
    try:
        return Path.home() / ".local" / "share" / "ckptcost" / "runs"
    except RuntimeError:
        # a container user without a home has no folder of its own: nothing is found there and
        # nothing can be made
        return Path(os.devnull) / "runs"


def new_folder(name: str = "", run: str = "", now_ns: int | None = None) -> Path:
    """An empty folder for one run: when, whose, and the beginning of its id. Two that ask at the
    same instant get two."""
    base = home()
    try:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)  # a command line may be in there
        when = datetime.fromtimestamp((time.time_ns() if now_ns is None else now_ns) / 1e9, UTC)
        stem = (
            f"{when:%Y%m%dT%H%M%SZ}-{base_name(name or host_name())}"
            f"-{base_name(run or secrets.token_hex(4))[:8]}"
        )
        for number in range(1, 1000):
            folder = base / (stem if number == 1 else f"{stem}-{number}")
            try:
                folder.mkdir()
            except FileExistsError:
                continue
            return folder
    except OSError as error:
        raise OutputError(
            f"{base}: cannot make a folder for the run: {error.strerror}. Name another, or set"
            " CKPTCOST_RUNS"
        ) from None
    raise OutputError(f"{base / stem}: a thousand folders of this name are there already")


def shared_folder(name: str, run: str) -> Path:
    """The folder of a job whose tasks each come here: the same for all of them, made by whoever is
    first."""
    base = home()
    folder = base / f"{base_name(name)}-{base_name(run)[:8]}"
    try:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"{folder}: cannot make a folder for the run: {error.strerror}. Name another, or set"
            " CKPTCOST_RUNS"
        ) from None
    return folder


def folders(within: Path | None = None) -> list[Path]:
    """Folders that hold run files or cannot be looked into, by name; `within` itself where it is
    one; none where it is not there."""
    base = home() if within is None else within
    try:
        with os.scandir(base) as entries:
            names = sorted(
                entry.name for entry in entries if os.path.isdir(entry.path)
            )  # a link to itself is none, and no error
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise InputError(
            f"cannot be listed ({error.strerror})",
            where=str(base),
            remedy="set CKPTCOST_RUNS to another",
        ) from None
    found = [base] if _files(base) else []
    for name in names:
        try:
            if not _files(base / name):
                continue
        except OSError:
            pass
        found.append(base / name)
    return found


def _files(folder: Path) -> list[Path]:
    """What a reader of the folder would open: no pipes."""
    with os.scandir(folder) as entries:
        return sorted(
            Path(entry.path)
            for entry in entries
            if entry.name.endswith(".jsonl") and os.path.isfile(entry.path)
        )


def _by_run(files: list[Path]) -> tuple[dict[str, list[PartHead]], list[str]]:
    """Files by the run's id; and what is wrong with those that have none."""
    found: defaultdict[str, list[PartHead]] = defaultdict(list)
    problems = []
    for file in files:
        try:
            header = header_from(decode(first_line(file)), str(file))
        except BadLine as error:
            problems.append(
                f"no header in {file.name} ({error}), so that nothing in it can be understood"
            )
        else:
            found[header.run].append(PartHead(file, header))
    return found, problems


def kept_at(path: Path) -> list[Kept]:
    """The runs of a folder or of one file, the latest first. Raises RunFileError where nothing of
    ours can be read."""
    folder = os.path.isdir(path)
    if not folder and os.path.exists(path) and not os.path.isfile(path):
        # a pipe would be waited for
        raise RunFileError("is neither a folder nor a file", where=str(path), remedy="name a run")
    try:
        by_run, problems = _by_run(_files(path) if folder else [path])
    except OSError as error:
        raise RunFileError(f"cannot be read ({error.strerror})", where=str(path)) from None
    if not by_run:
        why = f"not a run: {problems[0]}" if problems else "no run in here: there is no .jsonl file"
        raise RunFileError(
            why,
            where=str(path),
            remedy="A run is the folder that `ckptcost` records into, or one .jsonl file of it",
        )
    here = [Kept(path, run, tuple(heads), tuple(problems)) for run, heads in by_run.items()]
    return sorted(here, key=lambda kept: (-kept.began_ns, kept.run))


class Listing(NamedTuple):
    runs: list[Kept]
    """the latest first"""
    unread: list[str]
    """why a folder gave none, in a sentence"""


def list_runs(within: Path | None = None) -> Listing:
    """Every run; whatever is wrong with a folder costs that folder alone."""
    runs: list[Kept] = []
    unread: list[str] = []
    for folder in folders(within):
        try:
            runs += kept_at(folder)
        except RunFileError as error:
            unread.append(str(error))
    return Listing(sorted(runs, key=lambda each: (-each.began_ns, each.name, each.run)), unread)


def find(text: str, within: Path | None = None, of_jobs: bool = True) -> Path:
    """The folder or file of a run."""
    return find_run(text, within, of_jobs).path


def find_run(text: str, within: Path | None = None, of_jobs: bool = True) -> Found:
    """The run that a word stands for. A path that is there wins, so that a run elsewhere can always
    be named. The last one is the last `of_jobs`, or of any purpose."""
    if not text.strip():
        raise InputError(
            "names no run", where="RUN", remedy=f'a path, "{LAST}", or the beginning of an id'
        )
    path = Path(text).expanduser() if text.startswith("~/") else Path(text)
    if text != LAST and _is_there(path):
        return Found(path, "")
    if os.sep in text:
        raise InputError(
            "no such file or folder",
            where=brief(text, 200),
            remedy="`ckptcost runs` lists what is kept",
        )
    base = home() if within is None else within
    runs = list_runs(within).runs
    if not runs:
        raise InputError("there are no runs", where=str(base), remedy=MAKE_ONE)
    found = _last(runs, base, of_jobs) if text == LAST else _named(text, runs)
    return Found(found.path, found.run)


def _last(runs: list[Kept], base: Path, of_jobs: bool) -> Kept:
    for each in runs:
        if each.is_of_job or not of_jobs:
            return each
    raise InputError(
        "holds no run of a job, but of probes or self-tests",
        where=str(base),
        remedy=f"name one, e.g. {runs[0].name}",
    )


def _named(text: str, runs: list[Kept]) -> Kept:
    fits = [each for each in runs if text in (each.run, each.name)] or [
        each for each in runs if each.run.startswith(text) or each.name.startswith(text)
    ]
    if len(fits) == 1:
        return fits[0]
    if not fits:
        raise UnknownName(
            "run", text, {each.name for each in runs}, lists="`ckptcost runs` lists them"
        )
    names = Counter(each.name for each in fits)
    told = [each.run if names[each.name] > 1 else each.name for each in fits[:_TOLD]]
    more = f" and {len(fits) - _TOLD} more" if len(fits) > _TOLD else ""
    raise InputError(
        f"{len(fits)} runs begin so",
        where=brief(text),
        remedy=f"there are {', '.join(told)}{more}",
    )


def _is_there(path: Path) -> bool:
    """Or perhaps there: what may not be looked at is told so when it is read."""
    try:
        os.lstat(path)
    except PermissionError:
        return True
    except (OSError, ValueError):  # none, a name that is too long, a zero byte
        return False
    return True
