"""Whole runs, failure by failure, many at a time: one array element a run, one step an
interruption.

Between two interruptions the rhythm of training and saving is fixed, so a step needs no walk
through its saves: `rhythm.place` says where an instant falls. What an interruption leaves is the
newest copy that survives it, if its save had become usable by then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core import streams
from ckptcost.first.core.domain import Number
from ckptcost.first.core.interruptions import NEVER, Floats, InterruptionProcess
from ckptcost.first.core.job import DONE, STOPPED, Job, JobStep, Runs
from ckptcost.first.core.numeric import ratio
from ckptcost.first.core.rhythm import EDGE, End, RhythmPlace, end_of, place
from ckptcost.first.core.streams import Keys

MOST_EVENTS = 1_000_000
"""interruptions of one run after which it counts as endless"""


PACE_EVENTS = 10_000
"""so often it is asked whether a run will be through by then"""


class EndlessError(ArithmeticError):
    """A run that does not get through: more than MOST_EVENTS interruptions."""


class Enough(Exception):
    """Raised by whoever listens: no more walking. The walk passes it on with what it has."""

    runs: Runs
    ended: NDArray[np.bool_]
    """which of the runs are known, those that are interrupted least among them first"""


_SUMS = (
    "trained_s",
    "stall_s",
    "detect_s",
    "reschedule_s",
    "init_s",
    "load_s",
    "warmup_s",
    "saves",
    "second_saves",
    "third_saves",
)
_WRITES = _SUMS[-3:]


def walk(
    job: Job,
    process: InterruptionProcess,
    kind_keys: Keys,
    note: Callable[[float], None] | None = None,
    line: list[JobStep] | None = None,
) -> Runs:
    """All runs to their end. `line` collects the first run's steps.

    `note` hears how many are done, parts of runs counted, now and then, and may raise `Enough`.
    """
    under_way = _Walk(job, process, kind_keys)
    for event in range(MOST_EVENTS):
        going = under_way.step(event, line)
        if not going.all():
            line = line if going[0] and under_way.at[0] == 0 else None
            under_way.put_away(going)
            if not len(under_way.at):
                return under_way.result
        if event and event % PACE_EVENTS == 0 and under_way.is_hopeless(event):
            raise EndlessError
        if note is not None and event % 16 == 0:
            under_way.tell(note)
    raise EndlessError


class _Walk:
    """The runs still under way, one array element each."""

    def __init__(self, job: Job, process: InterruptionProcess, kind_keys: Keys) -> None:
        count = len(kind_keys)
        self.job, self.process, self.kind_keys = job, process, kind_keys
        self.at = np.arange(count)
        self.tiers = len(job.rhythm.lags_s)
        self.end = End(
            *(
                np.broadcast_to(np.asarray(x, float), (count,))
                for x in end_of(job.rhythm, job.work_s)
            )
        )
        self.clock_s = np.zeros(count)
        self.usable_s = [np.zeros(count) for _ in range(self.tiers)]
        """by tier: the newest point of the time line that can be loaded from it"""
        self.start = self._place(self.usable_s[0])
        self.level = np.zeros(count, dtype=np.intp)
        self.kind = np.zeros(count, dtype=np.intp)
        self.sums = {name: np.zeros(count) for name in _SUMS}
        self.by_kind = np.zeros((len(job.kinds), count))
        self.bounds = tuple(accumulate(kind.share for kind in job.kinds))[:-1]
        """where one kind ends and the next begins, on the way from 0 to 1; one value a run where
        shares differ"""
        self.kept_s, self.finished = np.zeros(count), np.zeros(count, dtype=bool)
        zeros = {name: np.zeros(count) for name in _SUMS}
        self.result = Runs(
            np.zeros(count, dtype=bool),
            np.zeros(count),
            **zeros,
            by_kind=np.zeros_like(self.by_kind),
        )

    def tell(self, note: Callable[[float], None]) -> None:
        """How many are done, parts of runs counted."""
        count = len(self.result.finished)
        try:
            note(count - float(np.sum(1.0 - self.progress())))
        except Enough as stop:
            stop.runs, stop.ended = self.result, np.ones(count, dtype=bool)
            stop.ended[self.at] = False
            raise

    def progress(self) -> Floats:
        """How far each run has come that still goes on: to the end of its work, or to its limit."""
        return np.maximum(self.usable_s[0] / self.end.at_s, self.clock_s / self.job.limit_s)

    def is_hopeless(self, event: int) -> bool:
        """At this pace the foremost run is not half through when it counts as endless."""
        return bool(self.progress().max() / event * MOST_EVENTS < 0.5)

    def put_away(self, going: NDArray[np.bool_]) -> None:
        """Write down the runs that have ended and go on with the others."""
        over = ~going
        out = self.at[over]
        for name in _SUMS:
            getattr(self.result, name)[out] = self.sums[name][over]
            self.sums[name] = self.sums[name][going]
        self.result.kept_s[out], self.result.finished[out] = self.kept_s[over], self.finished[over]
        self.result.by_kind[:, out] = self.by_kind[:, over]
        self.by_kind = self.by_kind[:, going]
        for name in ("at", "clock_s", "level", "kind", "kept_s", "finished", "kind_keys"):
            setattr(self, name, getattr(self, name)[going])
        self.usable_s = [each[going] for each in self.usable_s]
        self.start, self.end, self.bounds = (
            _of_going_runs(self.start, going),
            _of_going_runs(self.end, going),
            _of_going_runs(self.bounds, going),
        )
        self.process, self.job = self.process.keep(going), _of_going_runs(self.job, going)

    def step(self, event: int, line: list[JobStep] | None) -> NDArray[np.bool_]:
        """From a start of the job to its next interruption or its end; which runs go on."""
        job, rhythm, sums = self.job, self.job.rhythm, self.sums
        gap_s, kind, stopped = self._interruption(event)
        *back, up_s = self._way_back(event, gap_s)
        was_up = up_s > 0.0
        left_s = self.end.at_s - self.usable_s[0] + self._waits_to_the_end()
        done = up_s >= left_s
        up_s = np.minimum(up_s, left_s)
        at_s = np.where(done, self.end.at_s, self._line(up_s))
        here = self._place(at_s)
        trained_s = here.trained_s - self.start.trained_s
        stall_s = up_s - trained_s
        for name, amount in (
            ("init_s", back[0]),
            ("load_s", back[1]),
            ("warmup_s", back[2]),
            ("trained_s", trained_s),
            ("stall_s", stall_s),
        ):
            sums[name] += amount
        self._count_writes(here, at_s, up_s, done)
        self.clock_s = self.clock_s + back[0] + back[1] + back[2] + up_s
        going = ~(done | stopped)
        reached_s, made = (
            here.trained_s,
            np.where(done, self.end.saves, here.saves[0]) - self.start.saves[0],
        )
        stall_s = stall_s + self._fall_back(here, at_s, up_s, kind, going, was_up)
        self.finished = done
        self.kept_s = np.where(
            done,
            job.work_s,
            np.minimum(self.start.trained_s / rhythm.train_s * rhythm.kept_s, job.work_s),
        )
        down_s = self._down(kind, going)
        if line is not None:
            ended = int(kind[0]) if going[0] else DONE if done[0] else STOPPED
            lost_s = 0.0 if done[0] else reached_s - self.start.trained_s
            parts = [
                _whole(np.broadcast_to(x, going.shape)[0])
                for x in (*back, trained_s, stall_s, lost_s, made, down_s)
            ]
            line.append(
                JobStep._make(
                    [
                        float(self.clock_s[0]) - sum(parts[:5]) - parts[7],
                        *parts,
                        ended,
                        int(self.level[0]),
                    ]
                )
            )
        return going

    def _interruption(self, event: int) -> tuple[Floats, Any, Any]:
        """(time until the next one, its kind, whether it is the limit that stops the run)"""
        job = self.job
        gap_s, kind = self.process.next_s(self.clock_s, event)
        if kind is None:
            kind = np.zeros(len(gap_s), dtype=np.intp)
            if len(self.bounds):
                share = streams.uniforms(self.kind_keys, event)
                for bound in self.bounds:
                    kind = kind + (share >= bound)
        for i, each in enumerate(job.kinds):
            if each.after_s < NEVER:
                kind = np.where(gap_s > each.after_s, i, kind)
                gap_s = np.minimum(gap_s, each.after_s)
        if job.limit_s == NEVER:
            return gap_s, kind, False
        left_s = np.maximum(job.limit_s - self.clock_s, 0.0)
        return np.minimum(gap_s, left_s), kind, gap_s >= left_s

    def _first_copy(self) -> Any:
        """When, after a start, the first save's stall begins."""
        return self.start.ends_s[0] + self.job.rhythm.train_s - self.usable_s[0]

    def _late(self) -> Any:
        """What the last save waits because its interval is shorter: the place it waits for becomes
        free no earlier for that."""
        saves = self.end.saves - self.start.saves[0]
        waits = (saves > self.job.rhythm.in_flight) & (np.asarray(self.job.rhythm.wait_s) > 0)
        return np.where(waits, self.end.missing_s, 0.0)

    def _waits_to_the_end(self) -> Any:
        """All waits for a place in flight, if nothing interrupts from here on: one after each m
        saves, if more come."""
        rhythm = self.job.rhythm
        if _is_zero(rhythm.wait_s):
            return 0.0
        earlier = np.maximum(self.end.saves - self.start.saves[0] - 1.0, 0.0)
        return np.floor(earlier / rhythm.in_flight + EDGE) * rhythm.wait_s + self._late()

    def _line(self, up_s: Any) -> Any:
        """Where on the time line the run is so long after its start: the time line stands still in
        waits for a place in flight."""
        rhythm = self.job.rhythm
        if _is_zero(rhythm.wait_s):
            return self.usable_s[0] + up_s
        since_s, together_s = up_s - self._first_copy(), rhythm.in_flight * rhythm.cycle_s
        waits = np.maximum(np.floor(since_s / (together_s + rhythm.wait_s)), 0.0)
        waited_s = waits * rhythm.wait_s + np.maximum(
            since_s - waits * (together_s + rhythm.wait_s) - together_s, 0.0
        )
        at_s = self.usable_s[0] + up_s - waited_s
        return np.where(
            at_s > self.end.knee_s, np.maximum(at_s - self._late(), self.end.knee_s), at_s
        )

    def _place(self, at_s: Any) -> RhythmPlace:
        """`place`, with the last interval as short as it is: after its training the rhythm is ahead
        by what is missing of it."""
        late = at_s >= self.end.knee_s
        if not late.any():
            return place(self.job.rhythm, at_s)
        ahead_s = np.where(late, self.end.missing_s, 0.0)
        here = place(self.job.rhythm, at_s + ahead_s)
        ends_s = tuple(
            np.where(end_s >= self.end.knee_s, end_s - ahead_s, end_s) for end_s in here.ends_s
        )
        return here._replace(trained_s=here.trained_s - ahead_s, ends_s=ends_s)

    def _way_back(self, event: int, gap_s: Floats) -> tuple[Any, Any, Any, Floats]:
        """Seconds of start, load and warm-up, as far as the interruption lets them come, and what
        it leaves after them.

        Subtracted one by one: where it cuts them short, exactly nothing is left.
        """
        if event == 0:
            return 0.0, 0.0, 0.0, gap_s
        init_s, warmup_s = self._of_kind("init_s"), self._of_kind("warmup_s")
        load_s = self.job.loads_s[0] if self.tiers == 1 else _by(self.level, self.job.loads_s)
        init_s = np.minimum(gap_s, init_s)
        rest_s = gap_s - init_s
        load_s = np.minimum(rest_s, load_s)
        rest_s = rest_s - load_s
        warmup_s = np.minimum(rest_s, warmup_s)
        return init_s, load_s, warmup_s, rest_s - warmup_s

    def _of_kind(self, field: str) -> Any:
        """A piece of each run's way back, by what interrupted it last."""
        values = [getattr(kind, field) for kind in self.job.kinds]
        return values[0] if len(values) == 1 else _by(self.kind, values)

    def _count_writes(
        self, here: RhythmPlace, at_s: Floats, up_s: Floats, done: NDArray[np.bool_]
    ) -> None:
        """Saves written since the start, cut-short ones in part: by the stall they had, or,
        drained, by the time they had."""
        rhythm = self.job.rhythm
        drained = np.any(np.asarray(rhythm.lags_s[0]) > 0)
        stalls_s = (rhythm.stall_s, rhythm.second_stall_s, rhythm.third_stall_s)
        for tier, name in enumerate(_WRITES[: self.tiers]):
            if drained:
                made = (
                    self._drained(tier, here, at_s, done)
                    if _is_zero(rhythm.wait_s)
                    else self._drained_between_waits(here, up_s, done)
                )
            else:
                then = _written(self.start, tier, stalls_s[tier])
                now = _written(here, tier, stalls_s[tier])
                made = (np.where(done, self.end.saves, now) if tier == 0 else now) - then
            self.sums[name] += made

    def _drained(
        self, tier: int, here: RhythmPlace, at_s: Floats, done: NDArray[np.bool_]
    ) -> Floats:
        """Drains begun since the start, each counted by the part that is through: the sum of min(1,
        time/length)."""
        rhythm = self.job.rhythm
        begins_s = 0.0 if tier == 0 else rhythm.lags_s[tier - 1]
        length_s = rhythm.lags_s[tier] - begins_s
        period_s = rhythm.cycle_s * (1, rhythm.every, rhythm.every * rhythm.third_every)[tier]
        since = self.start.saves[tier]
        begun = np.maximum(np.floor((at_s - begins_s) / period_s + EDGE), since)
        through = np.clip(np.floor((at_s - begins_s - length_s) / period_s + EDGE), since, begun)
        under_way_s = (begun - through) * (at_s - begins_s) - period_s * (
            begun * (begun + 1.0) - through * (through + 1.0)
        ) / 2.0
        last = self.end.saves if tier == 0 else here.saves[tier]
        return (
            np.where(
                done, last, through + np.where(begun > through, ratio(under_way_s, length_s), 0.0)
            )
            - since
        )

    def _drained_between_waits(
        self, here: RhythmPlace, up_s: Floats, done: NDArray[np.bool_]
    ) -> Floats:
        """The same where saves come m together and then wait."""
        rhythm, since = self.job.rhythm, self.start.saves[0]
        many, lag_s = rhythm.in_flight, rhythm.lags_s[0]
        begun = here.saves[0] - since
        through = np.clip(
            self._place(np.maximum(self._line(up_s - lag_s), 0.0)).saves[0] - since, 0.0, begun
        )

        def ends_s(count: Any) -> Any:
            """sum of the instants, from the first copy's end on, at which so many saves have
            ended"""
            rounds = np.floor(count / many + EDGE)
            rest = count - rounds * many
            whole_s = many * rounds * (rounds - 1.0) / 2.0 + rounds * rest
            inside_s = rounds * many * (many - 1.0) / 2.0 + rest * (rest - 1.0) / 2.0
            return whole_s * (many * rhythm.cycle_s + rhythm.wait_s) + inside_s * rhythm.cycle_s

        first_s = self._first_copy() + rhythm.stall_s
        under_way_s = (begun - through) * (up_s - first_s) - (ends_s(begun) - ends_s(through))
        partly = through + np.where(begun > through, ratio(under_way_s, lag_s), 0.0)
        return np.where(done, self.end.saves - since, partly)

    def _fall_back(
        self,
        here: RhythmPlace,
        at_s: Floats,
        up_s: Floats,
        kind: Any,
        going: NDArray[np.bool_],
        was_up: NDArray[np.bool_],
    ) -> Any:
        """The newest copy that is left becomes the start; returns the stall of saves that a warning
        left time for."""
        begun_s = self.usable_s[0]
        usable = [
            here if _is_zero(lag_s) else self._place(np.maximum(self._line(up_s - lag_s), 0.0))
            for lag_s in self.job.rhythm.lags_s
        ]
        for tier, then in enumerate(usable):
            ends_s = then.ends_s[tier]
            self.usable_s[tier] = np.where(ends_s > begun_s, ends_s, self.usable_s[tier])
        level = self.level
        if self.tiers > 1:
            needs = np.array([each.level for each in self.job.kinds])[kind]
            level = np.where(going, np.where(was_up, needs, np.maximum(level, needs)), 0)
        emergency_s = self._save_at_notice(level, kind, going & was_up, at_s)
        if self.tiers > 1:
            back_s = _by(
                level, [np.maximum.reduce(self.usable_s[tier:]) for tier in range(self.tiers)]
            )
            self.usable_s = [
                np.where(level >= tier, back_s, self.usable_s[tier]) for tier in range(self.tiers)
            ]
        self.level, self.kind = level, kind
        self.start = self._place(self.usable_s[0])
        return emergency_s

    def _save_at_notice(
        self, level: NDArray[np.intp], kind: Any, running: NDArray[np.bool_], at_s: Floats
    ) -> Any:
        """Saves that a warning leaves time for; returns their stall."""
        job = self.job
        notices_s = np.array([each.notice_s for each in job.kinds])
        if not (notices_s > 0).any():
            return 0.0
        takes_s = _by(level, job.emergency_s)
        warned = running & (notices_s[kind] >= takes_s)
        emergency_s = np.where(
            warned, np.minimum(takes_s, np.maximum(job.limit_s - self.clock_s, 0.0)), 0.0
        )
        saved = warned & (emergency_s == takes_s)  # the limit may cut it short
        self.sums["stall_s"] += emergency_s
        self.clock_s = self.clock_s + emergency_s
        for tier in range(self.tiers):
            self.usable_s[tier] = np.where(saved & (level >= tier), at_s, self.usable_s[tier])
            self.sums[_WRITES[tier]] += np.where(
                warned & (level == tier), _part(emergency_s, takes_s), 0.0
            )
        return emergency_s

    def _down(self, kind: Any, going: NDArray[np.bool_]) -> Any:
        """Detection and rescheduling, which nothing interrupts but the limit."""
        for i in range(len(self.job.kinds)):
            self.by_kind[i] += going & (kind == i)
        detect_s, reschedule_s = (
            np.where(going, self._of_kind(field), 0.0) for field in ("detect_s", "reschedule_s")
        )
        if self.job.limit_s < NEVER:
            left_s = np.maximum(self.job.limit_s - self.clock_s, 0.0)
            detect_s = np.minimum(detect_s, left_s)
            reschedule_s = np.minimum(reschedule_s, left_s - detect_s)
        self.sums["detect_s"] += detect_s
        self.sums["reschedule_s"] += reschedule_s
        down_s = detect_s + reschedule_s
        self.clock_s = self.clock_s + down_s
        return down_s


def _written(here: RhythmPlace, tier: int, stall_s: Number) -> Any:
    """Saves on a tier, the one under way in part."""
    if _is_zero(stall_s):
        return here.saves[tier]
    return ratio(here.stalled_s[tier], stall_s)


def _part(part_s: Number, whole_s: Number) -> Any:
    """How much of it; something that takes no time is done."""
    return np.where(part_s == whole_s, 1.0, ratio(part_s, whole_s))


def _whole(value: Any) -> float:
    """A length of time without the residue of a subtraction of large ones."""
    return 0.0 if abs(value) < 1e-6 else float(value)


def _by(which: NDArray[np.intp], values: Sequence[Any]) -> Any:
    """Each run's own among several values."""
    return np.choose(which, list(values))


def _is_zero(value: Number) -> bool:
    return not np.any(np.asarray(value))


def _of_going_runs(value: Any, going: NDArray[np.bool_]) -> Any:
    """A value of the job, or a tuple of them, for the runs that go on."""
    if isinstance(value, np.ndarray):
        return value[going] if value.ndim and len(value) == len(going) else value
    if isinstance(value, tuple):
        parts = [_of_going_runs(each, going) for each in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value
