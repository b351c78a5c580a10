"""Other energy meters beside ours: where they are installed, and how each one is started, asked for
a window, and stopped.

They live in an environment of their own, which `make bench` makes from peers.txt; without it the
tables say so. The classes run under that environment's Python, so only the standard library is
imported at the top.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHON = ROOT / ".venv-peers" / "bin" / "python"
WANTED = dict(
    line.split("==")
    for line in Path(__file__).with_name("peers.txt").read_text().split()
    if "==" in line
)
J_PER_KWH = 3.6e6


def lacking() -> str:
    """Why no peer can be measured here; empty if all can."""
    if not PYTHON.exists():
        return (
            "no peers here: `make bench` installs benchmarks/peers.txt into .venv-peers, which"
            " needs a package index"
        )
    asks = (
        "from importlib.metadata import version; print(*[version(name) for name in"
        f" {list(WANTED)}])"
    )
    done = subprocess.run([PYTHON, "-c", asks], capture_output=True, text=True, check=False)
    if done.returncode:
        return (
            f"no peers here: {done.stderr.strip().splitlines()[-1]}; `rm -r .venv-peers` and `make"
            " bench` try again"
        )
    there = dict(zip(WANTED, done.stdout.split(), strict=True))
    return (
        ""
        if there == WANTED
        else (
            f"no peers here: .venv-peers has {there}, benchmarks/peers.txt wants {WANTED}; remove"
            " .venv-peers"
        )
    )


class Zeus:
    """ZeusMonitor: reads the counters when a window begins and when it ends, and nothing
    between."""

    beats_s: float | None = 1.0

    def __init__(self) -> None:
        from zeus.monitor import ZeusMonitor

        self._monitor = ZeusMonitor()
        self._open = False

    def begin(self, window: str) -> int:
        """When the window began, on the monotonic clock."""
        self._monitor.begin_window(
            window, sync_execution=False
        )  # nothing to wait for: there is no torch here
        return time.monotonic_ns()

    def end(self, window: str) -> tuple[int, list[float]]:
        """When it ended, and its joules by GPU."""
        now_ns = time.monotonic_ns()
        return now_ns, list(
            self._monitor.end_window(window, sync_execution=False).gpu_energy.values()
        )

    def beat(self) -> None:
        """A window each second."""
        if self._open:
            self.end("beat")
        self.begin("beat")
        self._open = True

    def stop(self) -> None:
        """It has nothing to stop."""


class ZeusPower(Zeus):
    """The same and a PowerMonitor, whose processes poll the power; without a period it finds
    one."""

    def __init__(self, period_s: float | None = None) -> None:
        from zeus.monitor import PowerMonitor

        super().__init__()
        self._power = PowerMonitor(update_period=period_s)
        self._asked_s = time.time()

    def beat(self) -> None:
        """A window each second, and the power's integral over it: else what the processes send
        would pile up."""
        super().beat()
        since_s, self._asked_s = self._asked_s, time.time()
        self._power.get_energy(since_s, self._asked_s)

    def stop(self) -> None:
        self._power.stop()


class CodeCarbon:
    """EmissionsTracker, offline: a thread each second, and another each `every_s`."""

    beats_s: float | None = None

    def __init__(self, every_s: float, start: bool = True) -> None:
        from codecarbon import OfflineEmissionsTracker

        self._started = start
        self._tracker = OfflineEmissionsTracker(
            country_iso_code="USA",
            measure_power_secs=every_s,
            tracking_mode="machine",
            save_to_file=False,
            log_level="critical",
            allow_multiple_runs=True,
        )
        if start:
            self._tracker.start()
        else:  # the first task looks for hardware, for more than a second
            self._tracker.start_task("first")
            self._tracker.stop_task("first")

    def begin(self, window: str) -> int:
        """When the task began. It runs one at a time."""
        self._tracker.start_task(window)
        return time.monotonic_ns()

    def end(self, window: str) -> tuple[int, list[float]]:
        """When it ended, and the joules of all GPUs together."""
        now_ns = time.monotonic_ns()
        return now_ns, [self._tracker.stop_task(window).gpu_energy * J_PER_KWH]

    def beat(self) -> None:
        """It beats by itself."""

    def stop(self) -> None:
        if self._started:
            self._tracker.stop()
