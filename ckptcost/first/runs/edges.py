"""The two ends of a run's file, without what lies between: when its last line is of, and what a
wrapper said of its command."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ckptcost.first.runs.lines import BadLine, decode

ENDS_BYTES = 262_144
"""of a file's beginning and of its end that are looked at: some hundred lines"""
NOTE_BYTES = 4_194_304
"""back from the end that a command's exit is looked for: after it a recorder waits until the disk
has everything"""
_LINES = 100
_WRAPPED = b'"by":"wrap"'
Fields = Mapping[str, Any]


class Ending(NamedTuple):
    """What the last lines of a file say."""

    last_ns: int | None
    """on its own clock; None where no line after the header can be read"""
    ended: bool
    torn: str
    """what is wrong with its very end"""


def ending(file: Path) -> Ending:
    """By the last lines whose checksum fits; they are not in order of time."""
    try:
        block = tail(file, ENDS_BYTES)
    except OSError as error:
        return Ending(None, False, f"cannot be read ({error.strerror})")
    *lines, rest = block.split(b"\n")
    torn = _torn(rest)
    last_ns, ended, good = None, False, 0
    for line in reversed([*lines, rest]):
        try:
            fields = decode(line)
        except BadLine:
            continue
        if line is rest:
            torn = ""  # whole but for its end of line
        t_ns = None if fields["k"] == "run" else fields.get("t")
        if isinstance(t_ns, int):
            last_ns = t_ns if last_ns is None else max(last_ns, t_ns)
        ended = ended or fields["k"] == "end"
        good += 1
        if good == _LINES:
            break
    return Ending(last_ns, ended, torn)


def _torn(rest: bytes) -> str:
    if not rest:
        return ""
    if rest.endswith(b"\0"):
        return "it ends in zero bytes: the power went before the last lines were on the disk"
    return "the last line is cut off, as after a kill or a crash"


def tail(file: Path, most: int) -> bytes:
    with file.open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - most))
        return stream.read(most)


def wrapped_command(first: Path, last: Path) -> tuple[str, int | None]:
    """The command that was wrapped, by the first part, and its exit code, by the last one."""
    try:
        with first.open("rb") as stream:
            command, exit_code = spoken(_notes(stream.read(ENDS_BYTES)))
        return command, exit_of(last) if command and exit_code is None else exit_code
    except OSError:
        return "", None


def exit_of(last: Path) -> int | None:
    """The exit code of the command, by the last part of whoever wrapped it. Raises OSError."""
    for most in (ENDS_BYTES, NOTE_BYTES):
        exit_code = spoken(_notes(tail(last, most)))[1]
        if exit_code is not None:
            return exit_code
    return None


def _notes(block: bytes) -> Iterator[Fields]:
    """Lines of a wrapper in a stretch of a file."""
    at = block.find(_WRAPPED)
    while at >= 0:
        start, stop = block.rfind(b"\n", 0, at) + 1, block.find(b"\n", at)
        if stop < 0:
            return
        with contextlib.suppress(BadLine):
            yield decode(block[start:stop])
        at = block.find(_WRAPPED, stop)


def spoken(lines: Iterator[Fields] | Sequence[Fields]) -> tuple[str, int | None]:
    """Command and exit code, as far as marks say; of a job's tasks the first exit code that is not
    0."""
    command, exit_code = "", None
    for fields in lines:
        detail = fields.get("detail")
        if fields.get("k") == "mark" and fields.get("by") == "wrap" and isinstance(detail, dict):
            command = command or str(detail.get("command") or "")
            for key in ("exit_status", "exit_code"):
                if isinstance(detail.get(key), int):
                    exit_code = exit_code or detail[key]
    return command, exit_code
