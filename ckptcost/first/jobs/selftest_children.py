"""The processes that a self-test starts: the job that saves in the ways that training jobs do and
notes what it did by its own clock, and those that make a known load by a timetable and say when it
really changed.

A save in one file lies in `save-0`, one in several files in a folder of its own: names that the
folder's removal knows. Each note is a line of JSON, appended at once, so that what was done before
a kill is known.

Who makes a load says `ready` once it could begin, reads the timetable as one line of JSON,
`[[monotonic ns, state], ...]`, and notes every change as a line `[number, ns]`. The last state is
`end`. The load of a GPU needs PyTorch; nothing else here needs more than the standard library.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

FILES = 4
"""of a save in several files"""
KEPT_S = 1.5
"""a save that is rotated away is deleted after this, long before the kernel would write it back"""
REST_S = 4.0
"""between saves: longer than files of one save are apart, and time for the write-back that somebody
asks for"""
BLOCK_BYTES = 4 << 20
WAYS = ("one file", "one, fsync", "several", "several, fsync", "rotation")
"""rotation: one file, deleted before it is written back"""
_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG"""


IDLE, BUSY, SPIN, END = "idle", "busy", "spin", "end"
SIDE = 4096
"""rows of the matrices that a GPU multiplies"""
BATCH_S = 0.004
"""of work that is given to a GPU at a time: the load ends no later than that after its time"""
CLOCK_HZ = 1.5e9
"""of a GPU, about: for how long a kernel waits"""

Work = Callable[[], None]


class SelftestWriter:
    def __init__(self, folder: str, size_bytes: int, notes: str) -> None:
        self._folder = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        self._notes = os.open(notes, os.O_WRONLY | os.O_APPEND)
        self._size_bytes = size_bytes
        self._content = os.urandom(min(BLOCK_BYTES, size_bytes))

    def note(self, **what: object) -> None:
        os.write(self._notes, (json.dumps(what) + "\n").encode())

    def file(self, folder: int, name: str, size_bytes: int, synced: bool) -> None:
        fd = os.open(
            name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder
        )
        try:
            left = size_bytes
            while left:
                # never twice the same bytes: storage that folds them would be too quick
                begin = os.urandom(64) + self._content[64:]
                left -= os.write(fd, begin[:left])
            if synced:
                os.fsync(fd)
        finally:
            os.close(fd)

    def one(self, number: int, synced: bool) -> list[str]:
        with contextlib.suppress(FileExistsError):
            os.mkdir("save-0", 0o700, dir_fd=self._folder)
        with _open_file("save-0", self._folder) as inner:
            self.file(inner, f"step-{number}.tmp", self._size_bytes, synced)
            os.rename(
                f"step-{number}.tmp", f"step-{number}.bin", src_dir_fd=inner, dst_dir_fd=inner
            )
            if synced:
                os.fsync(inner)
        return [f"save-0/step-{number}.bin"]

    def several(self, number: int, synced: bool) -> list[str]:
        part, final, names = f"save-{number}.part", f"save-{number}", []
        os.mkdir(part, 0o700, dir_fd=self._folder)
        with _open_file(part, self._folder) as inner:
            for rank in range(FILES):
                share = self._size_bytes // FILES + (self._size_bytes % FILES if rank == 0 else 0)
                names.append(f"rank-{rank}.bin")
                self.file(inner, names[-1], share, synced)
            if synced:
                os.fsync(inner)
        os.rename(part, final, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        if synced:
            os.fsync(self._folder)
        return [f"{final}/{name}" for name in names]

    def save(self, number: int, way: str) -> None:
        synced = "fsync" in way
        begin_ns = time.monotonic_ns()
        write: Callable[[int, bool], list[str]] = self.several if "several" in way else self.one
        files = write(number, synced)
        returned_ns = time.monotonic_ns()
        self.note(
            number=number,
            way=way,
            bytes=self._size_bytes,
            files=files,
            begin_ns=begin_ns,
            returned_ns=returned_ns,
        )
        time.sleep(KEPT_S if way == "rotation" else REST_S)
        deleted_ns = time.monotonic_ns()
        for file in files:
            os.unlink(file, dir_fd=self._folder)
        self.note(number=number, deleted_ns=deleted_ns)
        if "several" in way:
            os.rmdir(f"save-{number}", dir_fd=self._folder)
        time.sleep(REST_S - KEPT_S if way == "rotation" else 0.0)


@contextlib.contextmanager
def _open_file(name: str, folder: int) -> Iterator[int]:
    fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
    try:
        yield fd
    finally:
        os.close(fd)


def _ends_with(parent: int) -> bool:
    """From now on this process ends when its parent does; False where that is gone already."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return os.getppid() == parent


def serve_saves(
    folder: str, size_bytes: int, rounds: int, within_s: float, notes: str, parent: int
) -> None:
    """All saves, as far as there is time; an error of the storage is a note. Ends with its parent,
    however that ends."""
    if not _ends_with(parent):
        return
    writer = SelftestWriter(folder, size_bytes, notes)
    until_s, longest_s, number = time.monotonic() + within_s, 0.0, 0
    time.sleep(1.0)
    for _ in range(rounds):
        for way in WAYS:
            number += 1
            since_s = time.monotonic()
            if since_s + longest_s > until_s:
                writer.note(skipped=way)
                continue
            try:
                writer.save(number, way)
            except OSError as error:
                writer.note(failed=way, errno=error.errno)
                return
            longest_s = max(longest_s, time.monotonic() - since_s)


class NoLoad(Exception):
    """Why this load cannot be made here."""


def processor() -> tuple[dict[str, Work], dict[str, str]]:
    """One core that spins, as a rank does that polls for the others."""

    def spin() -> None:
        for _ in range(2000):
            pass

    return {BUSY: spin}, {}


def gpus() -> tuple[dict[str, Work], dict[str, str]]:
    """Every GPU that this process may use multiplies matrices, or runs a kernel that only waits
    while the host polls for its end."""
    try:
        import torch
    except Exception as error:  # a broken installation raises what it likes
        raise NoLoad(f"PyTorch is not there ({type(error).__name__})") from error
    if not torch.cuda.is_available():
        raise NoLoad("this PyTorch finds no GPU")
    cards = range(torch.cuda.device_count())
    try:
        made = [_matrices(torch, card) for card in cards]
        times = max(1, round(BATCH_S / max(_took(torch, made), 1e-5)))
    except Exception as error:  # out of memory, a driver that does not fit
        raise NoLoad(f"the GPU takes no work ({type(error).__name__})") from error

    def multiply() -> None:
        for _ in range(times):
            for a, b, out in made:
                torch.mm(a, b, out=out)
        _wait(torch)

    def spin() -> None:
        for card in cards:
            with torch.cuda.device(card):
                torch.cuda._sleep(round(BATCH_S * CLOCK_HZ))
        _wait(torch)

    works: dict[str, Work] = {BUSY: multiply}
    if hasattr(torch.cuda, "_sleep"):
        works[SPIN] = spin
    facts = {"torch": str(torch.__version__), "cuda": str(torch.version.cuda)}
    return works, facts


def _matrices(torch: Any, card: int) -> tuple[Any, Any, Any]:
    about = {"device": f"cuda:{card}", "dtype": torch.float16}
    a, b = (torch.randn(SIDE, SIDE, **about) for _ in range(2))
    return a, b, torch.empty(SIDE, SIDE, **about)


def _took(torch: Any, made: list[tuple[Any, Any, Any]]) -> float:
    """Of one product on every card, after a few that nobody counts."""
    for _ in range(3):
        begin_s = time.perf_counter()
        for a, b, out in made:
            torch.mm(a, b, out=out)
        _wait(torch)
    return time.perf_counter() - begin_s


def _wait(torch: Any) -> None:
    for card in range(torch.cuda.device_count()):
        torch.cuda.synchronize(card)


LOADS = {"cpu": processor, "gpu": gpus}


def serve_load(load: str, parent: int) -> None:
    """Ends with its parent, however that ends."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    if not _ends_with(parent):
        return
    try:
        works, facts = LOADS[load]()
    except NoLoad as error:
        _say({"failed": str(error)})
        return
    _say({"ready": sorted(works), "facts": facts})
    line = sys.stdin.readline()
    if line:
        follow(json.loads(line), works, lambda number, ns: _say([number, ns]))


def _say(what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def follow(
    timetable: list[tuple[int, str]], works: dict[str, Work], changed: Callable[[int, int], None]
) -> None:
    """Each state from its time to the next one's; a state without work sleeps."""
    for number, (at_ns, state) in enumerate(timetable):
        # work is never cut short: what began before the time of the next state ends after it
        while (left_ns := at_ns - time.monotonic_ns()) > 0:
            time.sleep(left_ns / 1e9)
        changed(number, time.monotonic_ns())
        if (work := works.get(state)) is None:
            continue
        until_ns = timetable[number + 1][0]
        while time.monotonic_ns() < until_ns:
            work()
