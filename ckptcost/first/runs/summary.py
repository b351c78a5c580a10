"""What a run is, from the first and last lines of its files alone: a day of readings is 137 MB, and
a list has hundreds of runs.

`counted` goes over every line once more for the marks, which lie anywhere.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ckptcost.first.core.channels import Mark
from ckptcost.first.core.contents import contents_of
from ckptcost.first.core.joining import join_marks
from ckptcost.first.core.phases import windows_of
from ckptcost.first.errors import RunFileError
from ckptcost.first.runs.clocks import S, boot_id
from ckptcost.first.runs.edges import Ending, ending, exit_of, spoken, wrapped_command
from ckptcost.first.runs.gaps import missing_parts
from ckptcost.first.runs.header import Header
from ckptcost.first.runs.lines import BadLine, decode
from ckptcost.first.runs.store import Kept, PartHead, kept_at

COMPLETE, RECORDING, CUT = "complete", "recording", "cut short"
LIVE_S = 5.0
"""a recorder writes each second; one that was silent for longer was killed, or its disk takes
nothing"""
_MARK = b'"k":"mark"'


class Summary(NamedTuple):
    """Of one run; what is not known is None or empty."""

    path: Path
    run: str
    began_ns: int
    """Unix time"""
    length_s: float
    """to its last line; 0 where only headers can be read"""
    state: str
    """complete: somebody stopped it; recording: its last line is some seconds old; cut short:
    neither"""
    hosts: tuple[str, ...]
    headers: tuple[Header, ...]
    """of every file, in order of time"""
    sizes: Mapping[str, int]
    """bytes by file name, in the same order"""
    command: str
    exit_code: int | None
    problems: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.path.resolve().name

    @property
    def bytes(self) -> int:
        return sum(self.sizes.values())

    @property
    def simulated(self) -> bool:
        return any(header.simulated for header in self.headers)

    @property
    def meters(self) -> tuple[str, ...]:
        return tuple(
            dict.fromkeys(meter.name for header in self.headers for meter in header.meters)
        )


class MarkSummary(NamedTuple):
    """The marks of a run."""

    names: Mapping[tuple[str, str], int]
    """how many, by name and by whom, the most first"""
    saves: int
    loads: int
    command: str
    exit_code: int | None


class _Last(NamedTuple):
    """The last file of a recorder, how it ends, and when: on the recorder's clock and as Unix
    time."""

    head: PartHead
    end: Ending
    t_ns: int
    wall_ns: int


def summary(path: Path, run: str = "", now_ns: int | None = None) -> Summary:
    """Of the run in a folder or file; `run`, the beginning of its id, chooses where there are
    several. Raises RunFileError."""
    return summary_of(one_of(path, run), now_ns)


def one_of(path: Path, run: str = "") -> Kept:
    """The only run there, or the one that is named."""
    here = kept_at(path)
    fits = [kept for kept in here if kept.run.startswith(run)]
    if len(fits) == 1:
        return fits[0]
    ids = ", ".join(kept.run for kept in here)
    if not fits:
        raise RunFileError(
            f"no run whose id begins with {run!r}", where=str(path), remedy=f"there is {ids}"
        )
    raise RunFileError(
        f"there are {len(fits)} runs in here",
        where=str(path),
        remedy=f"choose one by its id: {ids}",
    )


def summary_of(kept: Kept, now_ns: int | None = None) -> Summary:
    """Some milliseconds, however long the run is."""
    heads = sorted(
        kept.heads, key=lambda head: (head.header.wall_ns, head.header.rank, head.header.part)
    )
    ahead = _ahead(heads)
    sizes, gone = _sizes(heads)
    problems = [*kept.problems, *gone]
    lasts = [_last(head, ahead[_clock(head)]) for head in _newest(heads)]
    state = _state(lasts, time.time_ns() if now_ns is None else now_ns)
    if state != RECORDING:  # else half a line is one that is just being written
        problems += [f"{last.head.file.name}: {last.end.torn}" for last in lasts if last.end.torn]
    problems += map(str, missing_parts([head.header for head in heads]))
    command, exit_code = _command(heads, lasts)
    return Summary(
        path=kept.path,
        run=kept.run,
        began_ns=kept.began_ns,
        length_s=(max(last.wall_ns for last in lasts) - kept.began_ns) / S,
        state=state,
        hosts=tuple(sorted({head.header.host for head in heads})),
        headers=tuple(head.header for head in heads),
        sizes=sizes,
        command=command,
        exit_code=exit_code,
        problems=tuple(problems),
    )


def _sizes(heads: Sequence[PartHead]) -> tuple[dict[str, int], list[str]]:
    """Bytes by file name; and which files cannot be read."""
    sizes: dict[str, int] = {}
    problems = []
    for head in heads:
        try:
            sizes[head.file.name] = head.file.stat().st_size
        except OSError as error:  # removed in the meantime, to stay below the size asked for
            sizes[head.file.name] = 0
            problems.append(f"{head.file.name}: cannot be read ({error.strerror})")
    return sizes, problems


def _last(head: PartHead, ahead_ns: int) -> _Last:
    end = ending(head.file)
    t_ns = head.header.monotonic_ns if end.last_ns is None else end.last_ns
    return _Last(head, end, t_ns, t_ns + ahead_ns)


def _command(heads: Sequence[PartHead], lasts: Sequence[_Last]) -> tuple[str, int | None]:
    """What was wrapped, and its exit code."""
    metered = [head.file for head in heads if head.header.meters]
    command, exit_code = wrapped_command(metered[0], metered[-1]) if metered else ("", None)
    if command and len(lasts) > 1 and not exit_code:
        exit_code = _failed_code([last.head.file for last in lasts]) or exit_code
    return command, exit_code


def _failed_code(files: Sequence[Path]) -> int | None:
    """The first exit code that is not 0: of a job's tasks each has its own."""
    for file in files:
        with contextlib.suppress(OSError):
            if exit_code := exit_of(file):
                return exit_code
    return None


def _clock(head: PartHead) -> tuple[str, str]:
    return head.header.host, head.header.boot


def _ahead(heads: Sequence[PartHead]) -> dict[tuple[str, str], int]:
    """By clock what to add for Unix time, as its first header has it."""
    ahead: dict[tuple[str, str], int] = {}
    for head in heads:
        ahead.setdefault(_clock(head), head.header.wall_ns - head.header.monotonic_ns)
    return ahead


def _newest(heads: Sequence[PartHead]) -> list[PartHead]:
    """The last part of every recorder; those before it are closed."""
    return list(
        {
            (*_clock(head), head.header.pid, bool(head.header.meters)): head for head in heads
        }.values()
    )


def _state(lasts: Sequence[_Last], now_ns: int) -> str:
    """Recording if anybody does; else what the newest recorder of every host says."""
    boot, monotonic_ns = boot_id(), time.monotonic_ns()
    for last in lasts:
        ages_s = [(now_ns - last.wall_ns) / S]
        if boot and last.head.header.boot == boot:
            # this machine's own clock, whatever happened to the time of day
            ages_s.append((monotonic_ns - last.t_ns) / S)
        if not last.end.ended and any(-1.0 < age_s < LIVE_S for age_s in ages_s):
            return RECORDING
    return _how_it_ended(lasts)


def _how_it_ended(lasts: Sequence[_Last]) -> str:
    by_host: defaultdict[str, list[_Last]] = defaultdict(list)
    for last in [each for each in lasts if each.head.header.meters] or lasts:
        by_host[last.head.header.host].append(last)
    newest = [max(of_host, key=lambda last: last.wall_ns) for of_host in by_host.values()]
    return COMPLETE if all(last.end.ended for last in newest) else CUT


def count_marks(kept: Kept) -> MarkSummary:
    """All marks of a run: every line is looked at, none but marks are understood."""
    ahead = _ahead(sorted(kept.heads, key=lambda head: head.header.wall_ns))
    lines = [(head, fields) for head in kept.heads for fields in _mark_lines(head.file)]
    marks = []
    for head, fields in lines:
        # a line that a reader leaves out too
        with contextlib.suppress(KeyError, TypeError, ValueError, OverflowError):
            t_s = (int(fields["t"]) + ahead[_clock(head)] - kept.began_ns) / S
            said = (
                str(fields["name"]),
                str(fields["window"]),
                int(fields["rank"]),
                str(fields["by"]),
                dict(fields.get("detail") or {}),
            )
            marks.append(Mark(t_s, *said))
    together = join_marks(marks)
    kinds = Counter(what.of for what in contents_of(together, windows_of(together)))
    names = Counter((mark.name, mark.by) for mark in marks)
    return MarkSummary(
        dict(names.most_common()),
        kinds["save"],
        kinds["load"],
        *spoken([fields for _, fields in lines]),
    )


def _mark_lines(file: Path) -> Iterator[Mapping[str, Any]]:
    try:
        with file.open("rb") as stream:
            for line in stream:
                if _MARK in line:
                    with contextlib.suppress(BadLine):
                        fields = decode(line.removesuffix(b"\n"))
                        if fields["k"] == "mark":
                            yield fields
    except OSError as error:
        raise RunFileError(f"cannot be read ({error.strerror})", where=str(file)) from None
