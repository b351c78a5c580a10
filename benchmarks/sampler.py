"""What measuring costs: the recorder at rest and inside windows, and other meters, on the same fake
GPUs.

Processor time is the kernel's own, in nanoseconds, of a process and of all that it started. All
tools run at the same time, so that they meet the same machine; then the first few run alone,
because a processor that has to be woken for each tick needs more time for it.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import peers
from measure import Row, digits, figures, ratios, shown, table

TREES = Path(__file__).parents[1] / "tests" / "first" / "meters"
sys.path.append(str(TREES / "nvml_fake"))
import build_fake  # noqa: E402

WAVE = "high_w=600 low_w=120 period_s=2 phase_step_s=0.29 tick_ms=100 tick_step_ms=13"
SETTLE_S = 3.0
"""a recorder begins quickly; what starts a process is over by then"""
RESUME_S = 1.6
"""after a stop; longer than the quick pace lasts"""
SAMPLE_S, ALONE_S, LOUD_S = 8.0, 5.0, 4.0
GPUS = (1, 8, 16)
SLOW_US = 20
MARKS, MARKS_APART_S = 500, 0.003
NO_COMPILER = "Not measured: the fake GPUs are a library in C, and there is no C compiler here.\n"


class Case(NamedTuple):
    """A tool with its settings, as it stands in the tables."""

    name: str
    words: tuple[str, ...]
    gpus: int = 8
    slow_us: int = 0
    """how long each call of NVML takes besides"""
    wave: str = WAVE


REST, WINDOWS = ("ours",), ("ours", "windows")
ZEUS, ZEUS_POWER, ZEUS_SPINS = ("zeus",), ("zeus-power", "0.05"), ("zeus-power",)
CARBON_1, CARBON_15 = ("codecarbon", "1"), ("codecarbon", "15")
NAMES = {
    REST: "recorder at rest",
    WINDOWS: "recorder inside windows",
    CARBON_15: "codecarbon every 15 s, its default",
    CARBON_1: "codecarbon every 1 s",
    ZEUS: "zeus, a window each second",
    ZEUS_POWER: "zeus and its PowerMonitor told 50 ms",
    ZEUS_SPINS: "zeus and its PowerMonitor by default",
}


class Sample(NamedTuple):
    """A stretch of a tool's life."""

    share: float
    """of one core"""
    resident: float
    """bytes of all its processes; what they share counts in each"""
    apart: float
    """bytes, with what is shared counted once among those who share it"""
    processes: int
    threads: int
    calls: Mapping[str, float]
    """of NVML, a second"""
    written: float
    """bytes a second"""


class Worker:
    """A process of sampler_worker.py; it answers one line to each line."""

    def __init__(
        self, python: Path | str, words: Sequence[str], settings: str, library: Path, folder: Path
    ) -> None:
        folder.mkdir(parents=True)
        env = {
            name: value
            for name, value in build_fake.environment(library, settings).items()
            if not name.startswith("PYTHON")
        }
        env |= {"BENCH_FOLDER": str(folder), "PYTHONPATH": str(TREES / "rapl_trees")}
        self._complaints = (folder / "stderr").open("w+")
        self._process = subprocess.Popen(
            [str(python), str(Path(__file__).with_name("sampler_worker.py")), *words],
            env=env,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
        )

    def say(self, *words: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()

    def hear(self) -> Any:
        """The next answer; what a tool itself prints is none."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(("{", "[", '"')):
                return json.loads(line)
        self._complaints.seek(0)
        said = self._complaints.read().strip()
        raise BrokenPipeError(said.splitlines()[-1] if said else "it ended")

    def ask(self, *words: Any) -> Any:
        self.say(*words)
        return self.hear()

    def tree(self) -> list[int]:
        """It and all that it started, as far as they live."""
        parents = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
        found = [self._process.pid]
        for pid in found:
            found += [child for child, parent in parents.items() if parent == pid]
        return found

    def pause(self, paused: bool = True) -> None:
        os.kill(self._process.pid, signal.SIGSTOP if paused else signal.SIGCONT)

    def close(self) -> None:
        self.pause(False)
        if self._process.poll() is None:
            self.say("stop")
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout, self._complaints):
            if pipe is not None:
                pipe.close()


def cpu_s(pids: Sequence[int]) -> float:
    """Processor seconds of processes so far, and of their children that have ended."""
    ended = sum(
        sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[13:15]))
        for pid in pids
    )
    return sum(time.clock_gettime((~pid << 3) | 2) for pid in pids) + ended / os.sysconf(
        "SC_CLK_TCK"
    )


def held(pids: Sequence[int]) -> tuple[float, float, int]:
    """(resident bytes, those with shared ones counted once, threads) of processes."""
    resident = apart = threads = 0.0
    for pid in pids:
        said = dict(
            line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        )
        resident += float(said["VmRSS"].split()[0]) * 1024
        threads += int(said["Threads"])
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        apart += next(float(line.split()[1]) for line in rollup if line.startswith("Pss:")) * 1024
    return resident, apart, int(threads)


@contextmanager
def running(
    cases: Sequence[Case], library: Path, folder: Path, at_once: int = 3
) -> Iterator[dict[Case, Worker]]:
    """All cases at the same time, each in processes of its own, ready; so many of them start at
    once. A peer may fail to start."""
    with ExitStack() as stack:
        workers: dict[Case, Worker] = {}
        for first in range(0, len(cases), at_once):
            for number, case in enumerate(cases[first : first + at_once], first):
                python = sys.executable if case.words[0] == "ours" else peers.PYTHON
                settings = f"gpus={case.gpus} latency_us={case.slow_us} {case.wave}"
                workers[case] = Worker(python, case.words, settings, library, folder / str(number))
                stack.callback(workers[case].close)
            for case in cases[first : first + at_once]:
                try:
                    workers[case].hear()
                except BrokenPipeError as error:
                    if case.words[0] == "ours":
                        raise
                    print(f"{case.name}, {case.gpus} GPUs: {error}", file=sys.stderr)
                    del workers[case]
        if workers:
            time.sleep(SETTLE_S)
        yield workers


def sampled(workers: Mapping[Case, Worker], length_s: float) -> dict[Case, Sample]:
    """What each takes in so long."""
    begun = {case: (worker.ask("calls"), worker.tree()) for case, worker in workers.items()}
    first = {case: (time.monotonic(), cpu_s(pids)) for case, (_, pids) in begun.items()}
    time.sleep(length_s)
    last = {case: (time.monotonic(), cpu_s(pids)) for case, (_, pids) in begun.items()}
    found = {}
    for case, (before, pids) in begun.items():
        span_s = last[case][0] - first[case][0]
        after = workers[case].ask("calls")
        rates = {name: (after[name] - before[name]) / span_s for name in after}
        written = rates.pop("bytes", 0.0)
        resident, apart, threads = held(pids)
        found[case] = Sample(
            (last[case][1] - first[case][1]) / span_s,
            resident,
            apart,
            len(pids),
            threads,
            rates,
            written,
        )
    return found


def alone(workers: Mapping[Case, Worker]) -> dict[Case, Sample]:
    """The same, one after the other, while all others stand still."""
    found = {}
    for case, worker in workers.items():
        worker.pause(False)
        time.sleep(RESUME_S)
        found |= sampled({case: worker}, ALONE_S)
        worker.pause()
    return found


def measure(rounds: int = 9) -> str:
    """All tables of this file."""
    if build_fake.compiler() is None:
        return NO_COMPILER
    rounds, lacking = max(rounds // 3, 3), peers.lacking()
    tools = [REST, WINDOWS] if lacking else [REST, WINDOWS, ZEUS, CARBON_15, CARBON_1]
    together = [Case(NAMES[words], words, gpus) for gpus in GPUS for words in tools]
    together.append(
        Case(f"{NAMES[WINDOWS]}, each NVML call {SLOW_US} us longer", WINDOWS, 8, SLOW_US)
    )
    together += [] if lacking else [Case(NAMES[ZEUS_POWER], ZEUS_POWER)]
    one_by_one = [Case(f"{NAMES[words]}, alone", words) for words in (REST, WINDOWS)]
    loud = [] if lacking else [Case(NAMES[ZEUS_SPINS], ZEUS_SPINS)]
    samples: dict[Case, list[Sample]] = {
        case: [] for case in (*one_by_one, *sorted(together, key=_place), *loud)
    }
    marks: list[list[float]] = []
    with tempfile.TemporaryDirectory() as folder:
        library = build_fake.build(Path(folder, "fake"))
        with running(together, library, Path(folder, "together")) as workers:
            for _ in range(rounds):
                _keep(samples, sampled(workers, SAMPLE_S))
                marks.append(
                    workers[Case(NAMES[WINDOWS], WINDOWS)].ask("marks", MARKS, MARKS_APART_S)
                )
        with running(one_by_one, library, Path(folder, "alone")) as workers:
            for worker in workers.values():
                worker.pause()
            for _ in range(rounds):
                _keep(samples, alone(workers))
        with running(
            loud, library, Path(folder, "loud")
        ) as workers:  # it takes all the processor that there is
            _keep(samples, sampled(workers, LOUD_S))
    parts = [_budgets(samples, marks), _beside(samples), _by_function(samples)]
    return "\n".join(parts if not lacking else [*parts, lacking + "\n"])


def _place(case: Case) -> tuple[int, int, int]:
    return list(NAMES).index(case.words), case.slow_us, case.gpus


def _keep(samples: Mapping[Case, list[Sample]], new: Mapping[Case, Sample]) -> None:
    for case, sample in new.items():
        samples[case].append(sample)


def _budgets(samples: Mapping[Case, Sequence[Sample]], marks: Sequence[Sequence[float]]) -> str:
    rest, windows = samples[Case(NAMES[REST], REST)], samples[Case(NAMES[WINDOWS], WINDOWS)]
    rest_alone, windows_alone = (
        samples[Case(f"{NAMES[words]}, alone", words)] for words in (REST, WINDOWS)
    )
    rows = [
        Row(
            "recorder at rest, 8 GPUs, of one core, beside the other tools",
            [sample.share for sample in rest],
            "%",
            0.5,
        ),
        Row("the same alone on the machine", [sample.share for sample in rest_alone], "%", 0.5),
        Row(
            "recorder inside windows, ticks of 20 ms, beside the other tools",
            [sample.share for sample in windows],
            "%",
            2.0,
        ),
        Row("the same alone on the machine", [sample.share for sample in windows_alone], "%", 2.0),
        Row(
            "resident memory, Python and numpy included",
            [sample.resident for sample in windows],
            "MB",
            60.0,
        ),
        Row(
            "`Recorder.mark` while recording, half of the calls",
            [median for median, _, _ in marks],
            "us",
            50.0,
        ),
        Row(
            "`Recorder.mark` while recording, 99 of 100 calls",
            [most for _, most, _ in marks],
            "us",
            50.0,
        ),
        Row("written at rest", [sample.written for sample in rest], "kB/s"),
        Row("written inside windows", [sample.written for sample in windows], "kB/s"),
    ]
    for words in (CARBON_15, CARBON_1, ZEUS_POWER):
        if peer := samples.get(Case(NAMES[words], words)):
            rows.append(
                Row(
                    f"recorder at rest over {NAMES[words]}",
                    ratios([s.share for s in rest], [s.share for s in peer]),
                    "x",
                )
            )
    children = max(sample.processes for sample in (*rest, *windows)) - 1
    return (
        figures(rows)
        + f"| child processes | {children} |  | 0 | {'met' if children == 0 else '**miss**'} |\n"
    )


def _beside(samples: Mapping[Case, Sequence[Sample]]) -> str:
    """Every case. What several processes share counts in the memory of each, or once."""
    head = (
        "what",
        "GPUs",
        "of one core",
        "quartiles",
        "resident",
        "shared once",
        "processes",
        "threads",
        "NVML calls a second",
    )
    lines = []
    for case, of_case in samples.items():
        if not of_case:
            lines.append((case.name, str(case.gpus), "did not start", *[""] * (len(head) - 3)))
            continue
        last = of_case[-1]
        calls = statistics.median(sum(sample.calls.values()) for sample in of_case)
        memory = [shown([held_bytes], "MB")[0] for held_bytes in (last.resident, last.apart)]
        share = shown([sample.share for sample in of_case], "%")
        lines.append(
            (
                case.name,
                str(case.gpus),
                *share,
                *memory,
                str(last.processes),
                str(last.threads),
                digits(calls),
            )
        )
    return table(head, lines)


def _by_function(samples: Mapping[Case, Sequence[Sample]]) -> str:
    """NVML calls a second on 8 GPUs."""
    cases = [case for words, name in NAMES.items() if samples.get(case := Case(name, words))]
    rates = {
        case: {
            name: statistics.median(s.calls[name] for s in samples[case])
            for name in samples[case][0].calls
        }
        for case in cases
    }
    names = sorted(
        {name for of_case in rates.values() for name, rate in of_case.items() if rate > 0.0}
    )
    head = ("NVML calls a second, 8 GPUs", *(case.name for case in cases))
    return table(
        head,
        [(f"`{name}`", *(digits(rates[case].get(name, 0.0)) for case in cases)) for name in names],
    )


if __name__ == "__main__":
    print(measure())
