"""New lines of a run as they come, for a live screen in another process; over the ends of parts and
new recorders."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ckptcost.first.runs.lines import BadLine, decode

_CHUNK = 1_000_000


class FollowedLine(NamedTuple):
    """A line as it stands in the file; the header is the first of each part."""

    part: str
    fields: Mapping[str, Any]
    problem: str = ""
    """why it cannot be trusted; then it has no fields"""


class _Tail:
    def __init__(self, path: Path) -> None:
        self.name = path.name
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._at = 0

    def lines(self) -> Iterator[FollowedLine]:
        """Whole lines since the last time. Only they are consumed: a recorder takes half a line
        back when a disk is full."""
        while True:
            block = os.pread(self._fd, _CHUNK, self._at)
            while len(block) >= _CHUNK and b"\n" not in block and len(block) < 16 * _CHUNK:
                block += os.pread(self._fd, _CHUNK, self._at + len(block))
            whole = block.rfind(b"\n") + 1
            if not whole:
                return
            self._at += whole
            for line in block[:whole].split(b"\n")[:-1]:
                try:
                    yield FollowedLine(self.name, decode(line))
                except BadLine as error:
                    yield FollowedLine(self.name, {}, str(error))

    def close(self) -> None:
        os.close(self._fd)


def follow(
    path: Path | str,
    *,
    poll_s: float = 0.25,
    stop: Callable[[], bool] = lambda: False,
    wait: Callable[[float], None] = time.sleep,
) -> Iterator[FollowedLine]:
    """Lines of a directory or file, from the start, then as they come, until `stop` says so. A look
    at an idle run costs some 20 us a part.

    A part of which a later one of the same name exists is closed once it is read to its end.
    """
    path = Path(path)
    tails: dict[str, _Tail] = {}
    seen: set[str] = set()
    try:
        while True:
            last = stop()
            for file in _parts(path):
                if file.name not in seen:
                    seen.add(file.name)
                    with suppress(OSError):  # removed in the meantime
                        tails[file.name] = _Tail(file)
            names = sorted(tails)
            for name in names:
                yield from tails[name].lines()
            for name in names:
                if _next_name(name) in tails:
                    yield from tails[name].lines()
                    tails.pop(name).close()
            if last:
                return
            wait(poll_s)
    finally:
        for tail in tails.values():
            tail.close()


def _next_name(name: str) -> str:
    """Of the part after this one; empty for a file that is no part."""
    stem, _, number = name.removesuffix(".jsonl").rpartition(".")
    return f"{stem}.{int(number) + 1:03d}.jsonl" if number.isdigit() else ""


def _parts(path: Path) -> list[Path]:
    try:
        if path.is_dir():
            return sorted(entry for entry in path.iterdir() if entry.suffix == ".jsonl")
        return [path] if path.exists() else []
    except OSError:
        return []
