"""Reports of longer and longer runs: whether time and memory grow as the windows do, and no
faster."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import ENVIRONMENT, Row, digits, figures, shown, table

EVERY_S = 12.0
"""from one save to the next; each takes about one"""
SIZES = (100, 400)
LARGE = (1000, 4000)
BUDGET_S = 10.0
"""of 10,000 windows"""
BUDGET_MB = 300.0
_PROCESSOR = re.compile(r"^processor (\S+) s", re.M)
_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB", re.M)
_REPORT = """
import sys
import time
from pathlib import Path
from ckptcost.first.cli.main import main
code = main(["report", sys.argv[1], "-o", sys.argv[2]])
print(Path("/proc/self/status").read_text())
print("processor", time.process_time(), "s")
raise SystemExit(code)
"""


def recorded(windows: int, folder: Path) -> None:
    """A simulated node of eight GPUs that saves every twelve seconds."""
    from ckptcost.first.jobs.instruments import Instruments
    from ckptcost.first.jobs.recording import record
    from ckptcost.first.meters import simulated
    from ckptcost.first.meters.simulated_machine import MachinePlan, marks
    from ckptcost.first.runs.clocks import VirtualClock

    plan = MachinePlan(
        interval_s=EVERY_S,
        first_s=10.0,
        snapshot_s=0.1,
        write_s=0.3,
        fsync_s=0.6,
        commit_s=0.02,
        memory_scope=False,
    )
    length_s = 10.0 + windows * EVERY_S
    meters = simulated.find(plan, origin_ns=0).meters
    told = list(marks(plan, 0.0, length_s))
    record(Instruments(meters, (), VirtualClock(0), told), length_s, folder)


def report(folder: Path) -> tuple[float, float, float]:
    """Seconds of the whole process, the bytes of its peak, and its seconds of a processor, which
    tell more where others work on the same machine."""
    start = time.perf_counter()
    said = subprocess.run(
        [sys.executable, "-c", _REPORT, str(folder), str(folder / "report.txt")],
        check=True,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    seconds, peak, busy = time.perf_counter() - start, _PEAK.search(said), _PROCESSOR.search(said)
    if peak is None or busy is None:
        raise SystemExit("this kernel does not say how much memory a process took")
    return seconds, float(peak[1]) * 1024, float(busy[1])


def measure(rounds: int = 5, sizes: tuple[int, ...] = SIZES) -> str:
    """All tables of this file."""
    taken: dict[int, list[tuple[float, float, float]]] = {windows: [] for windows in sizes}
    with tempfile.TemporaryDirectory() as folder:
        for windows in sizes:
            recorded(windows, Path(folder) / str(windows))
        for number in range(rounds):
            for windows in sizes[:: -1 if number % 2 else 1]:
                taken[windows].append(report(Path(folder) / str(windows)))
    few, many = sizes[0], sizes[-1]
    pairs = list(zip(taken[few], taken[many], strict=True))
    more = many - few
    lines = [
        (
            f"{windows:,}",
            shown([seconds for seconds, _, _ in samples], "s")[0],
            shown([busy for _, _, busy in samples], "s")[0],
            shown([seconds / windows for seconds, _, _ in samples], "ms")[0],
            shown([peak for _, peak, _ in samples], "MB")[0],
        )
        for windows, samples in taken.items()
    ]
    rows = [
        Row(
            f"`ckptcost report`, {many:,} windows over {few:,} (linear is {digits(many / few)} or"
            " less)",
            [above[0] / below[0] for below, above in pairs],
            "x",
            1.1 * many / few,
        ),
        Row(
            "1,000 windows more, seconds",
            [1000.0 * (above[0] - below[0]) / more for below, above in pairs],
            "s",
            BUDGET_S / 10.0,
        ),
        Row(
            "the same of a processor",
            [1000.0 * (above[2] - below[2]) / more for below, above in pairs],
            "s",
        ),
        Row(
            "1,000 windows more, memory at its peak",
            [1000.0 * (above[1] - below[1]) / more for below, above in pairs],
            "MB",
            BUDGET_MB / 10.0,
        ),
    ]
    head = ("windows", "median", "of a processor", "a window", "memory at its peak")
    return "\n".join([figures(rows), table(head, lines)])


if __name__ == "__main__":
    print(measure(1, LARGE) if sys.argv[1:] == ["--large"] else measure())
