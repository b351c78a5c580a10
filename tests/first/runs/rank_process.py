"""One rank of a job, as a process of its own: for the tests of the election and of being killed."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent))

from steady_meters import Steady

from ckptcost.first.runs import election
from ckptcost.first.runs.pace import Pace
from ckptcost.first.runs.recorder import Recorder
from ckptcost.first.runs.sinks import FileSink
from ckptcost.first.runs.station import Station


def rank(directory: str, locks: str, number: str) -> None:
    """Marks each 20 ms until its input ends; says when it records."""
    import select

    station = Station(
        directory,
        "j" * 32,
        lambda: [Steady()],
        host="n",
        rank=int(number),
        local=int(number),
        locks=Path(locks),
    ).start()
    said, count = False, 0
    while not select.select([sys.stdin], [], [], 0.02)[0]:
        station.mark("note", f"{number}-{count}")
        count += 1
        if station.elected and not said:
            said = True
            print("elected", flush=True)
    station.stop()
    print(count, flush=True)


def flood(directory: Path, out: int) -> None:
    """Records as quickly as it can until it is killed, and says after each mark how far the clock
    is."""
    recorder = Recorder(
        [Steady(count=40)],
        FileSink(directory, part_bytes=60_000),
        pace=Pace(rest_s=0.005, quick_s=0.005),
        host="n",
    )
    recorder.start()
    recorder.mark("begin", "w")
    for count in range(1_000_000):
        recorder.mark("note", str(count))
        os.write(out, b"%d\n" % time.monotonic_ns())
        time.sleep(0.002)


def floods(directory: str, times: str) -> None:
    """Forks so many, kills each in mid-write, and prints when it last was alive."""
    for turn in range(int(times)):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            flood(Path(directory) / str(turn), write)
        os.close(write)
        os.read(read, 1)
        time.sleep(0.03 + 0.0171 * (turn % 7))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        said = b""
        while block := os.read(read, 65536):
            said += block
        os.close(read)
        print(int(said.split()[-1]), flush=True)


def forget(directory: str) -> None:
    """A training script that ends without a word."""
    Recorder([Steady()], FileSink(Path(directory)), host="n").start().mark("begin", "w")


def take(pipe: Any, directory: str) -> None:
    """Tries a seat at once, also one that was left a moment ago."""
    election._LEFT_S = 0.0
    pipe.send(election.Seat("r", "n", Path(directory)).take())


if __name__ == "__main__":
    {"rank": rank, "floods": floods, "forget": forget}[sys.argv[1]](*sys.argv[2:])
