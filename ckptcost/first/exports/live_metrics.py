"""A run that goes on as Prometheus metrics, for whoever scrapes it: text 0.0.4, or OpenMetrics for
who prefers that. No timestamps.

These are what meters read, at the node, of everything that it does; what checkpoints cost, priced,
is in the statement's metrics. So they have names of their own, and nothing here is to be added to
anything there.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from ckptcost.first.errors import CkptcostError
from ckptcost.first.exports import metric_names as names
from ckptcost.first.exports.metric_names import Family, Flavour
from ckptcost.first.jobs.live_counters import (
    Freshness,
    HostCounters,
    LiveCounters,
    RunCounters,
    SaveCounts,
)
from ckptcost.first.runs.follow import follow
from ckptcost.first.version import __version__

CONTENT_TYPES: dict[Flavour, str] = {
    "prometheus": "text/plain; version=0.0.4; charset=utf-8",
    "openmetrics": "application/openmetrics-text; version=1.0.0; charset=utf-8",
}
_AS_SEEN = "As this host's marks tell: ranks on several hosts may speak of the same one."
_ROLES = 'Sum role="part" alone: a whole contains parts, and what lies inside a part is not told.'

RUN = Family("ckptcost_live_run", "info", "What is recorded, where, and by which version.")
ENERGY = Family(
    "ckptcost_live_metered_energy_joules",
    "counter",
    f"Joules read, of everything the domain did. {_ROLES}",
)
COVERAGE = Family(
    "ckptcost_live_energy_coverage_ratio",
    "gauge",
    "Share of the measured time that those joules are of.",
)
MEAN_POWER = Family(
    "ckptcost_live_mean_power_watts",
    "gauge",
    f"Mean power over the covered part of the measured time. {_ROLES}",
)
POWER = Family(
    "ckptcost_live_power_watts", "gauge", f"Mean power over the last 10 s of readings. {_ROLES}"
)
MEASURED = Family("ckptcost_live_measured_seconds", "gauge", "How long was measured so far.")
STARTED = Family("ckptcost_live_checkpoints_started", "counter", f"Saves that began. {_AS_SEEN}")
FINISHED = Family(
    "ckptcost_live_checkpoints_finished",
    "counter",
    f"Saves that are over: training goes on, or safe, or failed. {_AS_SEEN}",
)
SAFE = Family(
    "ckptcost_live_checkpoints_safe",
    "counter",
    f"Saves that are known to be safe on the storage. {_AS_SEEN}",
)
FAILED = Family(
    "ckptcost_live_checkpoints_failed", "counter", f"Saves that ended with an error. {_AS_SEEN}"
)
STALL = Family(
    "ckptcost_live_stall_seconds",
    "counter",
    "Time that training stood still for saves, of those of which it is known.",
)
UNKNOWN_STALL = Family(
    "ckptcost_live_checkpoints_of_unknown_stall",
    "gauge",
    "Saves, open ones too, of which it is not known how long training stood still.",
)
GPU_SECONDS = Family(
    "ckptcost_live_gpu_lost_seconds",
    "counter",
    "This host's metered GPUs times those stalls, in GPU-seconds.",
)
BYTES = Family(
    "ckptcost_live_checkpoint_bytes",
    "counter",
    "Bytes of the saves of which anybody says how large they are.",
)
LAST_STALL = Family(
    "ckptcost_live_last_checkpoint_stall_seconds", "gauge", "Stall of the latest save that is over."
)
LAST_LENGTH = Family(
    "ckptcost_live_last_checkpoint_length_seconds",
    "gauge",
    "The same save, from its begin until it is safe.",
)
LAST_BYTES = Family("ckptcost_live_last_checkpoint_bytes", "gauge", "Size of the same save.")
LAST_AT = Family(
    "ckptcost_live_last_checkpoint_timestamp_seconds",
    "gauge",
    "When the same save was over, Unix time.",
)
LAST_READING = Family(
    "ckptcost_live_last_reading_timestamp_seconds",
    "gauge",
    "When meters were last read, Unix time.",
)
AGE = Family(
    "ckptcost_live_last_reading_age_seconds",
    "gauge",
    "How long ago that was, when this was written.",
)
RECORDING = Family(
    "ckptcost_live_recording",
    "gauge",
    "1: readings come; 0: the recorder has ended, or is silent for more than 10 s.",
)
ENDED = Family(
    "ckptcost_live_ended",
    "gauge",
    "1: the recorder said that it stopped; 0: it goes on, or was killed.",
)
OWN_CPU = Family(
    "ckptcost_live_recorder_cpu_seconds",
    "counter",
    "Processor time of the recorder itself, told once a minute.",
)
BAD_LINES = Family(
    "ckptcost_live_bad_lines",
    "counter",
    "Lines of the run's files that could not be trusted and are left out.",
)


POLL_S = 5.0
"""how often files are looked at where nobody asks, so that who asks after hours does not wait for
hours of lines"""
PATIENCE_S = 3.0
"""for files, which may lie on a storage that hangs; then what is known is told, and how old it
is"""
_FOREVER = 1 << 62


class LiveSample(NamedTuple):
    family: Family
    labels: str
    value: float


class Highest:
    """Counters as they were told before. What a later reading takes back of an estimate is not
    taken back here: Prometheus would take a counter that falls for one that began anew, and count
    all of it twice."""

    def __init__(self) -> None:
        self._told: dict[tuple[Family, str], float] = {}

    def kept(self, samples: Iterable[LiveSample]) -> list[LiveSample]:
        """Counters of which nothing is known at the moment stay where they were."""
        held = (
            self._held(sample) if sample.family.kind == "counter" else sample for sample in samples
        )
        return [sample for sample in held if not math.isnan(sample.value)]

    def _held(self, sample: LiveSample) -> LiveSample:
        key = sample.family, sample.labels
        known = [
            value
            for value in (sample.value, self._told.get(key, math.nan))
            if not math.isnan(value)
        ]
        if known:
            self._told[key] = max(known)
        return sample._replace(value=max(known, default=math.nan))


def text(samples: Iterable[LiveSample], flavour: Flavour) -> str:
    return "".join(names.text(samples, flavour)) + "# EOF\n" * (flavour == "openmetrics")


def samples_of(counters: RunCounters, name: str) -> Iterator[LiveSample]:
    """All that is told, NaN where it is not known. `name` is what people call the run; paths are
    nobody's business."""
    run = {"run": name, "run_id": counters.run} | (
        {"simulated": "true"} if counters.simulated else {}
    )
    yield LiveSample(names.BUILD, names.labels({"version": __version__}), 1.0)
    headers = {header.host: header for header in counters.headers}
    headers |= {header.host: header for header in counters.headers if header.meters}
    for host, header in sorted(headers.items()):
        words = {
            "host": host,
            "recorder_version": header.ckptcost,
            "meters": ",".join(meter.name for meter in header.meters),
        }
        yield LiveSample(RUN, names.labels({**run, **words}), 1.0)
    yield LiveSample(BAD_LINES, names.labels(run), counters.bad_lines)
    for host, fresh in sorted(counters.fresh.items()):
        yield from _freshness(fresh, names.labels({**run, "host": host}))
    for each in counters.hosts:
        yield from _of_host(each, {**run, "host": each.host})


def _samples(labels: str, values: Mapping[Family, float | None]) -> Iterator[LiveSample]:
    for family, value in values.items():
        yield LiveSample(family, labels, math.nan if value is None else float(value))


def _freshness(fresh: Freshness, mine: str) -> Iterator[LiveSample]:
    age_s = None if fresh.age_s is None else max(fresh.age_s, 0.0)
    values = {LAST_READING: fresh.last_wall_s, AGE: age_s}
    return _samples(mine, {**values, RECORDING: fresh.recording, ENDED: fresh.ended})


def _of_host(host: HostCounters, who: dict[str, str]) -> Iterator[LiveSample]:
    mine = names.labels(who)
    yield LiveSample(MEASURED, mine, host.measured_s)
    for each in host.domains:
        whose = names.labels({**who, "domain": each.domain, "role": each.role, "basis": each.basis})
        coverage = each.covered_s / each.of_s if each.of_s > 0 else None
        values = {ENERGY: each.joules, COVERAGE: coverage}
        yield from _samples(whose, {**values, MEAN_POWER: each.mean_w, POWER: each.lately_w})
    yield from _of_saves(host.saves, mine, host.gpus)
    yield LiveSample(OWN_CPU, mine, host.own_cpu_s)


def _of_saves(saves: SaveCounts, mine: str, gpus: float) -> Iterator[LiveSample]:
    """Where there was no save, none has cost anything, which is known; where there were some and
    nobody says what, it is not."""
    of_stalls, of_sizes = saves.stalls or not saves.started, saves.sizes or not saves.started
    yield from _samples(
        mine,
        {
            STARTED: saves.started,
            FINISHED: saves.finished,
            SAFE: saves.safe,
            FAILED: saves.failed,
            STALL: saves.stall_s if of_stalls else None,
            UNKNOWN_STALL: saves.started - saves.stalls,
            GPU_SECONDS: saves.gpu_s if of_stalls and not math.isnan(gpus) else None,
            BYTES: saves.bytes if of_sizes else None,
        },
    )
    if last := saves.last:
        values = {LAST_AT: last.over_s, LAST_STALL: last.stall_s}
        yield from _samples(mine, {**values, LAST_LENGTH: last.length_s, LAST_BYTES: last.bytes})


def flavour_for(accept: str) -> Flavour:
    """By a request's Accept header: OpenMetrics for who asks for it by name, and no less than for
    plain text.

    >>> (
    ...     flavour_for("application/openmetrics-text;version=1.0.0,text/plain;q=0.5,*/*;q=0.1"),
    ...     flavour_for("*/*"),
    ... )
    ('openmetrics', 'prometheus')
    """
    wish = {"application/openmetrics-text": 0.0, "text/plain": 0.0}
    for piece in accept.split(","):
        kind, *parameters = (word.strip().lower() for word in piece.split(";"))
        if kind in wish:
            wish[kind] = max(wish[kind], _quality(parameters))
    openmetrics, plain = wish.values()
    return "openmetrics" if openmetrics > 0 and openmetrics >= plain else "prometheus"


def _quality(parameters: Iterable[str]) -> float:
    said = next((word[2:] for word in parameters if word.startswith("q=")), "1")
    try:
        return float(said)
    except ValueError:
        return 0.0


class Unreadable(Exception):
    """There is nothing to tell, and why."""


class LiveSource:
    """A run whose files grow, read in a thread of its own: `read` once, or `start` and ask for
    `samples` until `close`."""

    def __init__(self, path: Path, run: str) -> None:
        """The folder or file, and the whole id of the run in it."""
        self.name = path.resolve().name.removesuffix(".jsonl")
        self.run = run
        self._path, self._counters, self._highest = path, LiveCounters(run), Highest()
        self._was = _identity(path)
        self._lock = threading.Lock()
        self._stopping, self._asked = threading.Event(), threading.Event()
        self._looks = threading.Condition()
        self._begun = self._done = 0
        """looks at the files, of which each finds all that was there when it began"""
        self._problem = ""
        self._thread: threading.Thread | None = None

    def read(self) -> LiveSource:
        """All that is there, at once, in this thread. Raises RunFileError."""
        for line in follow(self._path, stop=lambda: True):
            self._counters.take(line)
        return self

    def start(self) -> LiveSource:
        thread = threading.Thread(
            target=self._read_on, name="ckptcost-metrics-follows", daemon=True
        )
        thread.start()  # a signal may come meanwhile, and what has not begun cannot be waited for
        self._thread = thread
        return self

    def close(self) -> None:
        self._stopping.set()
        self._asked.set()
        if self._thread is not None:
            self._thread.join(PATIENCE_S)

    def check(self) -> None:
        """Raises Unreadable where there is nothing to tell."""
        if problem := self._problem or self._gone():
            raise Unreadable(problem)

    def samples(self) -> list[LiveSample]:
        """As of now. Raises Unreadable."""
        self._catch_up()
        self.check()
        with self._lock:
            return self._highest.kept(samples_of(self._counters.counters(), self.name))

    def _read_on(self) -> None:
        try:
            for line in follow(self._path, stop=self._begin, wait=self._rest):
                with self._lock:
                    self._counters.take(line)
                if self._stopping.is_set():
                    return
        except CkptcostError as error:
            self._problem = str(error)
        except OSError as error:
            self._problem = f"the run can no longer be read ({error.strerror or error})"
        except Exception as error:  # a defect of ours: say it, and do not tell what is half read
            self._problem = f"the run can no longer be followed ({type(error).__name__}: {error})"
        finally:
            with self._looks:
                self._begun = self._done = _FOREVER
                self._looks.notify_all()

    def _begin(self) -> bool:
        self._asked.clear()
        with self._looks:
            self._begun += 1
        return self._stopping.is_set()

    def _rest(self, _: float) -> None:
        with self._looks:
            self._done = self._begun
            self._looks.notify_all()
        self._asked.wait(POLL_S)

    def _catch_up(self) -> None:
        """Until a look that began after this call is over, for as long as patience lasts."""
        if self._thread is None:
            return
        with self._looks:
            wanted = min(self._begun + 1, _FOREVER)
            self._asked.set()
            self._looks.wait_for(lambda: self._done >= wanted, PATIENCE_S)
            if not self._done:  # half of a long run is no figure of it
                raise Unreadable("the run is being read for the first time; ask again")

    def _gone(self) -> str:
        """Why the files are no longer those that were read: they are open, and would be told of for
        ever."""
        now = _identity(self._path)
        if now is None:
            return "the run is gone: its folder or file was removed"
        if now != self._was:
            return "the run is gone: another folder or file is in its place"
        try:
            if self._path.is_dir() and not any(
                entry.suffix == ".jsonl" for entry in self._path.iterdir()
            ):
                return "the run is gone: its files were removed"
        except OSError as error:
            return f"the run can no longer be read ({error.strerror or error})"
        return ""


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
