"""A fuzzer that knows the structure of what it changes: `make fuzz MINUTES=30`.

One target a reader. Each starts from inputs that are accepted, changes a few values under right
checksums, and runs a command on the result, in this process. What counts: no defect (exit code 70),
no hang over ten seconds, less than 2 GB, nothing on stdout or stderr that a terminal would obey.
The share that got past its reader is printed, because a fuzzer that is refused at the door proves
little.
"""

from __future__ import annotations

import argparse
import gc
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parent))
os.environ["OPENBLAS_NUM_THREADS"] = "1"


from targets import ANSWERED, Case, Make, quiet, targets

from ckptcost.first.cli import main as front

HANGS_S = 10
"""of the processor; six times as long by the clock, since others may want it too"""
MOST_KB = 2_000_000
EACH_TURN = {"document": 10, "export": 8}
"""how many of a target are tried in one turn, of those with many readers; else one"""
TOLD_EVERY_S = 60.0
FORBIDDEN = {chr(code) for code in (*range(9), *range(11, 32), 127, *range(0x202A, 0x202F))} | {
    chr(code) for code in range(0x2066, 0x206A)
}
"""what a terminal would obey: control characters but end of line and tab, and marks that turn the
direction of writing"""


class Hang(BaseException):
    """It took too long."""


@dataclass
class Tally:
    inputs: int = 0
    past: int = 0
    slowest_s: float = 0.0
    failures: list[str] = field(default_factory=list)


def tried(case: Case, folder: Path) -> tuple[int, str]:
    """Exit code, and what is wrong with how it went."""
    for name, data in case.files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    folder.mkdir(parents=True, exist_ok=True)
    here = os.getcwd()
    os.chdir(folder)
    signal.setitimer(signal.ITIMER_PROF, HANGS_S)
    signal.setitimer(signal.ITIMER_REAL, 6 * HANGS_S)
    try:
        code, out, err = quiet(["--debug", *case.words])
    except Hang:
        return 124, f"no answer within {HANGS_S} s"
    except BaseException:
        return front.DEFECT, traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        os.chdir(here)
    if code == front.DEFECT or "Traceback" in err:
        return code, err
    if odd := sorted(FORBIDDEN & set(out + err)):
        return code, f"tells a terminal {odd}"
    if "Warning" in err:
        return code, err
    return code, ""


def fuzz(
    seconds: float,
    seed: int,
    only: str = "",
    kept: Path | None = None,
    inputs: float = float("inf"),
    told: Callable[[dict[str, Tally]], None] | None = None,
) -> dict[str, Tally]:
    """Targets by turns, so long or so many. What fails is kept in a folder of its own, to be tried
    again; `told` hears of it all each minute."""
    tallies: dict[str, Tally] = {}

    def hang(*_: object) -> None:
        raise Hang

    alarms, pace = (signal.SIGALRM, signal.SIGPROF), gc.get_threshold()
    before, environment = [signal.signal(each, hang) for each in alarms], dict(os.environ)
    try:
        with tempfile.TemporaryDirectory(prefix="ckptcost-fuzz-") as name:
            folder = Path(name)
            os.environ["XDG_CONFIG_HOME"] = os.environ["XDG_DATA_HOME"] = str(folder / "home")
            makers = targets(folder, only)
            gc.freeze()  # what is there now stays: a fifth of the time went into looking at it
            gc.set_threshold(100_000)
            until_s, tell_s = time.monotonic() + seconds, time.monotonic() + TOLD_EVERY_S
            while time.monotonic() < until_s and done_of(tallies) < inputs:
                for key, make in makers.items():
                    tally = tallies.setdefault(key, Tally())
                    for _ in range(EACH_TURN.get(key, 1)):
                        random = Random(f"{seed} {key} {tally.inputs}")
                        _one(key, make, random, folder, tally, kept)
                if told is not None and time.monotonic() > tell_s:
                    told(tallies)
                    tell_s += TOLD_EVERY_S
    finally:
        gc.unfreeze()
        gc.set_threshold(*pace)
        for each, handler in zip(alarms, before, strict=True):
            signal.signal(each, handler)
        os.environ.clear()
        os.environ.update(environment)
    return tallies


def done_of(tallies: dict[str, Tally]) -> int:
    return sum(tally.inputs for tally in tallies.values())


def _one(
    key: str, make: Make, random: Random, folder: Path, tally: Tally, kept: Path | None
) -> None:
    case = make(random, folder)
    place = folder / "one"
    began_s = time.monotonic()
    code, wrong = tried(case, place)
    tally.slowest_s = max(tally.slowest_s, time.monotonic() - began_s)
    tally.inputs += 1
    tally.past += code in ANSWERED
    if wrong:
        tally.failures.append(f"{' '.join(case.words)}\n{wrong}")
        if kept is not None:
            there = kept / f"{key}-{tally.inputs}"
            tried(case._replace(words=["--version"]), there)
            (there / "command").write_text(" ".join(case.words) + "\n\n" + wrong, "utf-8")
    shutil.rmtree(place, ignore_errors=True)


def table(tallies: dict[str, Tally]) -> str:
    rows = [f"{'target':<12} {'inputs':>8} {'past the reader':>16} {'slowest':>9} {'wrong':>6}"]
    rows += [
        f"{key:<12} {t.inputs:>8,} {t.past / max(t.inputs, 1):>15.0%} {t.slowest_s:>8.1f}s"
        f" {len(t.failures):>6}"
        for key, t in tallies.items()
    ]
    inputs, past = done_of(tallies), sum(t.past for t in tallies.values())
    most_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    rows.append(
        f"{inputs:,} inputs, {past / max(inputs, 1):.0%} past the reader, {most_mb:,.0f} MB"
    )
    return "\n".join(rows)


def line(tallies: dict[str, Tally]) -> str:
    """Where it stands, and what the last failure was."""
    past, wrong = (
        sum(column)
        for column in zip(*((t.past, len(t.failures)) for t in tallies.values()), strict=True)
    )
    inputs, slowest_s = done_of(tallies), max(t.slowest_s for t in tallies.values())
    most_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    return (
        f"{time.strftime('%H:%M:%S')} {inputs:,} inputs, {past:,} past the reader, {wrong} wrong,"
        f" slowest {slowest_s:.1f} s, {most_mb:,.0f} MB"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--inputs", type=float, default=float("inf"), help="end after so many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="one target")
    parser.add_argument("--keep", type=Path, help="a folder for inputs that failed")
    options = parser.parse_args()
    tallies = fuzz(
        60 * options.minutes,
        options.seed,
        options.only,
        options.keep,
        options.inputs,
        lambda so_far: print(line(so_far), flush=True),
    )
    for key, tally in tallies.items():
        for failure in tally.failures[:5]:
            print(f"--- {key}: {failure}\n")
    print(table(tallies))
    return int(any(tally.failures for tally in tallies.values()))


if __name__ == "__main__":
    raise SystemExit(main())
