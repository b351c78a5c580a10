"""A process that makes a known load: it works, spins or sleeps by a timetable, and says when it
really changed.

It says `ready` once it could begin, reads the timetable as one line of JSON, `[[monotonic ns,
state], ...]`, and notes every change as a line `[number, ns]`. The last state is `end`. The load of
a GPU needs PyTorch; nothing else here does.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

IDLE, BUSY, SPIN, END = "idle", "busy", "spin", "end"
SIDE = 4096
"""rows of the matrices that a GPU multiplies"""
BATCH_S = 0.004
"""of work that is given to a GPU at a time: the load ends no later than that after its time"""
CLOCK_HZ = 1.5e9
"""of a GPU, about: for how long a kernel waits"""
_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG"""

Work = Callable[[], None]


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


def serve(load: str, parent: int) -> None:
    """Ends with its parent, however that ends."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
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
