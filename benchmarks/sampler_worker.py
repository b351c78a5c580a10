"""A process that meters the fake GPUs with one tool, ours or a peer's, and does what lines on its
standard input say.

It runs under two Pythons, and a peer's own processes load it again: only the standard library is
imported at the top.
"""

from __future__ import annotations

import ctypes
import heapq
import json
import multiprocessing
import os
import select
import signal
import statistics
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

CALLS = (
    "nvmlDeviceGetTotalEnergyConsumption",
    "nvmlDeviceGetFieldValues",
    "nvmlDeviceGetPowerUsage",
    "nvmlDeviceGetUtilizationRates",
    "nvmlDeviceGetMemoryInfo",
    "nvmlDeviceGetMemoryInfo_v2",
    "nvmlDeviceGetTemperature",
    "nvmlDeviceGetEnforcedPowerLimit",
    "nvmlDeviceGetComputeMode",
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetGraphicsRunningProcesses_v3",
    "nvmlDeviceGetName",
    "nvmlDeviceGetUUID",
    "nvmlDeviceGetHandleByIndex_v2",
    "nvmlDeviceGetCount_v2",
    "nvmlDeviceGetArchitecture",
    "nvmlDeviceGetC2cModeInfoV",
    "nvmlInitWithFlags",
)
SEEN_S = 2.5
"""a recording goes on for so long after its last window"""


def library() -> ctypes.CDLL:
    fake = ctypes.CDLL("libnvidia-ml.so.1")
    fake.fake_calls.restype = ctypes.c_ulonglong
    fake.fake_exact_gpu_mj.argtypes = [ctypes.c_int, ctypes.c_int64]
    fake.fake_exact_gpu_mj.restype = ctypes.c_double
    return fake


def own_calls() -> dict[str, int]:
    """Calls of NVML so far, by function, of this process."""
    fake = library()
    return {name: fake.fake_calls(name.encode()) for name in CALLS}


def _note(pid: int) -> Path:
    return Path(os.environ["BENCH_FOLDER"], f"calls.{pid}")


def _answer(*_: object) -> None:
    note = _note(os.getpid())
    note.with_suffix(".new").write_text(json.dumps(own_calls()))
    note.with_suffix(".new").rename(note)


def calls() -> dict[str, int]:
    """The same with the processes that a tool started: each writes a note when it gets a signal."""
    total = Counter(own_calls())
    for child in multiprocessing.active_children():
        note = _note(child.pid or 0)
        note.unlink(missing_ok=True)
        os.kill(child.pid or 0, signal.SIGUSR1)
        while not note.exists() and child.is_alive():
            time.sleep(0.005)
        total.update(json.loads(note.read_text()))
    return dict(total)


class Ours:
    """The recorder with every meter of this machine, the fake GPUs, and two packages made of files,
    into a run's directory."""

    def __init__(self, windows: bool) -> None:
        import cpu_trees

        from ckptcost.first.meters import rapl
        from ckptcost.first.meters.found import Wanted, find_meters
        from ckptcost.first.runs.recorder import Recorder
        from ckptcost.first.runs.sinks import FileSink

        self.beats_s = 1.0 if windows else None
        self._directory = Path(os.environ["BENCH_FOLDER"], "run")
        host = cpu_trees.intel(Path(os.environ["BENCH_FOLDER"], "cpus"), sockets=2)
        here = [meter for meter in find_meters(Wanted()).meters if meter.name != "rapl"]
        processors = rapl.find(sysfs=host.sysfs, procfs=host.procfs).meters
        self._recorder = Recorder([*here, *processors], FileSink(self._directory)).start()
        if windows:
            self._recorder.mark("begin", "kept open")
        self._plain: dict[str, list[float]] = {}

    def beat(self) -> None:
        """A mark within the open window, so that every tick comes quickly."""
        self._recorder.mark("note", "kept open")

    def written_bytes(self) -> int:
        return sum(path.stat().st_size for path in self._directory.iterdir())

    def marks(self, count: int, apart_s: float) -> list[float]:
        """Seconds that each of so many marks took its caller."""
        took = []
        for number in range(count):
            time.sleep(apart_s)
            start = time.perf_counter()
            self._recorder.mark("note", "kept open", bytes=number)
            took.append(time.perf_counter() - start)
        return took

    def _counters(self) -> list[float]:
        import pynvml

        handles = [pynvml.nvmlDeviceGetHandleByIndex(n) for n in range(pynvml.nvmlDeviceGetCount())]
        return [pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1000.0 for handle in handles]

    def begin(self, window: str) -> int:
        now_ns = time.monotonic_ns()
        self._recorder.mark("begin", window, t_ns=now_ns)
        self._plain[window] = self._counters()
        return now_ns

    def end(self, window: str) -> tuple[int, list[float]]:
        """When it ended, and by how much the counters, read here and at the beginning, differ."""
        now_ns = time.monotonic_ns()
        for name in ("returned", "durable", "end"):
            self._recorder.mark(name, window, t_ns=now_ns)
        return now_ns, [
            after - before
            for before, after in zip(self._plain[window], self._counters(), strict=True)
        ]

    def amounts(self, gpus: int) -> dict[str, list[tuple[float, float, float]]]:
        """Joules of each window as read out of the run, with their bounds, by GPU."""
        from ckptcost.first.core.phases import windows_of
        from ckptcost.first.jobs.energies import Energies
        from ckptcost.first.runs import reader

        time.sleep(SEEN_S)
        self.stop()
        run = reader.load(self._directory)
        energies = Energies(run.node())
        return {
            window.name: [
                energies.joules(f"gpu:{gpu}", window.begin_s, window.end_s)[:3]
                for gpu in range(gpus)
            ]
            for window in windows_of(run.marks)
            if window.begin_s is not None and window.end_s is not None
        }

    def stop(self) -> None:
        self._recorder.stop()


def windows(tool: Any, plan: list[tuple[float, float]], gpus: int) -> list[dict[str, Any]]:
    """Windows at their times, (begin, length) in seconds from now: of each the exact joules and
    what the tool says."""
    began_s = time.monotonic()
    due = [(began_s + at_s, number, True) for number, (at_s, _) in enumerate(plan)]
    heapq.heapify(due)
    begun_ns: dict[int, int] = {}
    rows: dict[int, dict[str, Any]] = {}
    fake = library()
    while due:
        at_s, number, begins = heapq.heappop(due)
        time.sleep(max(at_s - time.monotonic(), 0.0))
        if begins:
            begun_ns[number] = tool.begin(f"w{number}")
            heapq.heappush(due, (begun_ns[number] * 1e-9 + plan[number][1], number, False))
            continue
        ended_ns, said = tool.end(f"w{number}")
        edges = (begun_ns[number], ended_ns)
        begin_mj, end_mj = (
            [fake.fake_exact_gpu_mj(gpu, edge_ns) for gpu in range(gpus)] for edge_ns in edges
        )
        exact = [(end - begin) / 1000.0 for begin, end in zip(begin_mj, end_mj, strict=True)]
        rows[number] = {"exact": exact, "said": said}
    if isinstance(tool, Ours):
        amounts = tool.amounts(gpus)
        for number, row in rows.items():
            row["amounts"] = amounts[f"w{number}"]
    return [rows[number] for number in range(len(plan))]


def made(words: list[str]) -> Any:
    """The tool by its name and settings."""
    name, *settings = words
    if name == "ours":
        return Ours(settings == ["windows"])
    import peers

    if name == "zeus":
        return peers.Zeus()
    if name == "zeus-power":
        return peers.ZeusPower(float(settings[0]) if settings else None)
    return peers.CodeCarbon(float(settings[0]), start=settings[1:] != ["tasks"])


def main() -> None:
    tool = made(sys.argv[1:])
    print(json.dumps("ready"), flush=True)
    while True:
        if not select.select([sys.stdin], [], [], tool.beats_s)[0]:
            tool.beat()
            continue
        words = json.loads(sys.stdin.readline() or '["stop"]')
        if words[0] == "calls":
            said: Any = calls() | (
                {"bytes": tool.written_bytes()} if isinstance(tool, Ours) else {}
            )
        elif words[0] == "marks":
            took = tool.marks(*words[1:])
            said = [
                statistics.median(took),
                statistics.quantiles(took, n=100, method="inclusive")[98],
                max(took),
            ]
        elif words[0] == "windows":
            said = windows(tool, *words[1:])
        else:
            tool.stop()
            return
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
elif __name__ == "__mp_main__":
    signal.signal(signal.SIGUSR1, _answer)
