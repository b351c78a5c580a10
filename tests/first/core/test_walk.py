"""Whole runs against a plain walk through each of their saves: the same interruptions, the same
run, to the last write."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from plain_walk import NEVER, Ledger, Plain, PlainKind, in_flight_walk, plain_walk
from scipy.stats import chisquare

from ckptcost.first.core import streams
from ckptcost.first.core import walk as walking
from ckptcost.first.core.domain import Policy
from ckptcost.first.core.interruptions import InterruptionKind, Renewal
from ckptcost.first.core.job import DONE, STOPPED, Job, JobStep
from ckptcost.first.core.rhythm import Rhythm
from ckptcost.first.core.timing import Save, backpressure
from ckptcost.first.core.walk import EndlessError, walk

EVENTS = 60
RUNS = 8


class Told:
    """Interruptions that are told beforehand: a row a run."""

    def __init__(self, gaps: np.ndarray, kinds: np.ndarray) -> None:
        self.gaps, self.kinds = gaps, kinds

    def next_s(self, clock_s: Any, event: int) -> tuple[Any, Any]:
        return self.gaps[:, event].copy(), self.kinds[:, event]

    def keep(self, going: Any) -> Told:
        return Told(self.gaps[going], self.kinds[going])


FIELDS = ("kept", "trained", "stall", "detect", "reschedule", "init", "load", "warmup")


def job_for(jobs: list[Plain]) -> Job:
    """The same jobs as arrays, one element a run; what a job has one of (counts, kinds, limit) they
    share."""

    def column(name: str) -> Any:
        values = np.array([getattr(job, name) for job in jobs], dtype=float)
        return float(values[0]) if (values == values[0]).all() else values

    one = jobs[0]
    by_tier = {
        name: tuple(
            np.array([getattr(job, name)[tier] for job in jobs]) for tier in range(len(one.lags))
        )
        for name in ("lags", "loads", "emergency")
    }
    rhythm = Rhythm(
        column("kept"),
        column("drag"),
        column("stall"),
        0.0,
        one.every,
        column("second_stall"),
        one.third_every,
        column("third_stall"),
        by_tier["lags"],
    )
    kinds = tuple(
        InterruptionKind(
            f"kind {i}",
            1.0 / len(one.kinds),
            each.level,
            each.detect,
            each.reschedule,
            each.init,
            each.warmup,
            each.notice,
            each.after,
        )
        for i, each in enumerate(one.kinds)
    )
    return Job(column("work"), rhythm, kinds, by_tier["loads"], by_tier["emergency"], one.limit)


def compare(jobs: list[Plain], gaps: np.ndarray, kinds: np.ndarray) -> None:
    runs = walk(job_for(jobs), Told(gaps, kinds), np.arange(len(jobs), dtype=np.uint64))
    for i, job in enumerate(jobs):
        said = plain_walk(job, gaps[i].tolist(), kinds[i].tolist())
        found = Ledger(
            bool(runs.finished[i]),
            *(float(getattr(runs, f"{name}_s")[i]) for name in FIELDS),
            writes=[
                float(getattr(runs, name)[i]) for name in ("saves", "second_saves", "third_saves")
            ],
            by_kind=[int(n) for n in runs.by_kind[:, i]],
        )
        scale = job.work
        assert found.finished == said.finished, (job, found, said)
        assert found.by_kind == said.by_kind, (job, found, said)
        for name in FIELDS:
            assert getattr(found, name) == pytest.approx(
                getattr(said, name), rel=1e-6, abs=1e-6 * scale
            ), (name, job, found, said)
        assert found.writes == pytest.approx(said.writes, rel=1e-6, abs=1e-6), (job, found, said)


def a_batch(
    seed: int, mode: str, tiers: int, **more: Any
) -> tuple[list[Plain], np.ndarray, np.ndarray]:
    """Random jobs of one shape with their interruptions."""
    rng = random.Random(f"{seed} {mode} {tiers} {sorted(more)}")
    every = rng.choice([1, 2, 3, 5]) if tiers > 1 else 0
    third_every = rng.choice([1, 2, 3]) if tiers > 2 else 0
    kinds = tuple(
        PlainKind(
            rng.randrange(tiers),
            rng.choice([0.0, rng.uniform(0, 40)]),
            rng.choice([0.0, rng.uniform(0, 60)]),
            rng.choice([0.0, rng.uniform(0, 30)]),
            rng.choice([0.0, rng.uniform(0, 20)]),
            rng.choice([0.0, rng.uniform(0, 60)]) if more.get("notice") else 0.0,
        )
        for _ in range(rng.choice([1, 2, 4]))
    )
    if more.get("after"):
        kinds += (
            PlainKind(
                rng.randrange(tiers),
                5.0,
                7.0,
                11.0,
                3.0,
                rng.choice([0.0, 80.0]),
                rng.uniform(200, 900),
            ),
        )
    limit = rng.uniform(100, 4000) if more.get("limit") else NEVER
    segments = rng.randrange(1, 25)
    jobs = []
    for _ in range(RUNS):
        kept = rng.uniform(20, 200)
        work = kept * (segments - (0.0 if rng.random() < 0.3 else rng.random()))
        if mode == "async":
            first = rng.choice([rng.uniform(0.1, 60), rng.uniform(60, 900)])
            lags = [first, first + rng.uniform(0, 400)]
            lags.append(lags[1] + rng.uniform(0, 900))
            stall, others, drag = (
                rng.choice([0.0, rng.uniform(0, 5)]),
                (0.0, 0.0),
                rng.choice([0.0, rng.uniform(0, 10)]),
            )
        else:
            lags = [0.0] * 3
            stall, others, drag = (
                rng.uniform(0.1, 40),
                (rng.uniform(0.1, 80), rng.uniform(0.1, 150)),
                0.0,
            )
        jobs.append(
            Plain(
                work,
                kept,
                drag,
                stall,
                every,
                others[0] if tiers > 1 else 0.0,
                third_every,
                others[1] if tiers > 2 else 0.0,
                tuple(lags[:tiers]),
                kinds,
                tuple(rng.uniform(0, 50) for _ in range(tiers)),
                tuple(rng.uniform(1, 60) for _ in range(tiers)),
                limit,
            )
        )
    mean = rng.choice([60.0, 200.0, 600.0, 2000.0])
    gaps = np.array(
        [[rng.expovariate(1 / mean) for _ in range(EVENTS)] + [NEVER] * 1000 for _ in range(RUNS)]
    )
    return (
        jobs,
        gaps,
        np.array([[rng.randrange(len(kinds)) for _ in range(EVENTS + 1000)] for _ in range(RUNS)]),
    )


EXTRAS = [
    {},
    {"notice": True},
    {"limit": True},
    {"notice": True, "limit": True},
    {"after": True, "limit": True},
    {"after": True, "notice": True, "limit": True},
]


@pytest.mark.parametrize("extras", EXTRAS, ids=lambda extras: " ".join(extras) or "plain")
@pytest.mark.parametrize("tiers", [1, 2, 3])
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_run_for_run_as_a_plain_walk(mode, tiers, extras):
    for seed in range(10):
        compare(*a_batch(seed, mode, tiers, **extras))


PLAIN = Plain(
    450.0,
    90.0,
    0.0,
    10.0,
    0,
    0.0,
    0,
    0.0,
    (0.0,),
    (PlainKind(0, 5.0, 15.0, 2.0, 1.0),),
    (3.0,),
    (10.0,),
)


def told(*gaps: float, kinds: tuple[int, ...] = ()) -> Told:
    """One run's gaps; then nothing happens any more."""
    return Told(
        np.array([[*gaps, NEVER]]), np.array([[*kinds, *[0] * (len(gaps) + 1 - len(kinds))]])
    )


def one_run(job: Plain, *gaps: float, kinds: tuple[int, ...] = ()) -> list[JobStep]:
    line: list[JobStep] = []
    walk(job_for([job]), told(*gaps, kinds=kinds), np.zeros(1, np.uint64), None, line)
    return line


def test_a_run_by_hand():
    """Five times 90 s of work and 10 s of saving; an interruption 150 s in, another 4 s after the
    job has come back."""
    first, second, third = one_run(PLAIN, 150.0, 4.0)
    assert first == JobStep(0.0, 0.0, 0.0, 0.0, 140.0, 10.0, 50.0, 1.0, 20.0, 0, 0)
    assert second == JobStep(170.0, 2.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 20.0, 0, 0)
    assert third == JobStep(194.0, 2.0, 3.0, 1.0, 360.0, 40.0, 0.0, 4.0, 0.0, DONE, 0)


def test_a_warning_by_hand():
    """12 s are enough for a save of 10 s, 9 s are not."""
    for notice, lost, stall in ((12.0, 0.0, 20.0), (9.0, 50.0, 10.0)):
        first, last = one_run(
            PLAIN._replace(kinds=(PLAIN.kinds[0]._replace(notice=notice),)), 150.0
        )
        assert (first.lost_s, first.stall_s) == (lost, stall)
        assert first.trained_s - first.lost_s + last.trained_s == 450.0


def test_a_limit_by_hand():
    """Stopped in training, in a save, on the way back, and while it is down: what counts is the
    newest save."""
    for limit, kept in (
        (150.0, 90.0),
        (199.0, 90.0),
        (200.5, 180.0),
        (499.0, 360.0),
        (501.0, 450.0),
    ):
        runs = walk(job_for([PLAIN._replace(limit=limit)]), told(), np.zeros(1, np.uint64))
        assert (float(runs.kept_s[0]), bool(runs.finished[0])) == (kept, limit > 500)
        assert float(runs.wall_s[0]) == min(limit, 500.0)
    for limit in (152.0, 160.0, 171.0, 174.0):
        last = one_run(PLAIN._replace(limit=limit), 150.0)[-1]
        assert last.kind == STOPPED
        assert (
            last.start_s + last.init_s + last.load_s + last.warmup_s + last.trained_s + last.stall_s
            == limit
        )


def test_a_limit_cuts_an_emergency_save_short():
    """Warned at 150 s, stopped at 155 s: half a save is none, and the clock stands at the limit."""
    job = PLAIN._replace(kinds=(PLAIN.kinds[0]._replace(notice=60.0),), limit=155.0)
    runs = walk(job_for([job]), told(150.0), np.zeros(1, np.uint64))
    assert (float(runs.wall_s[0]), float(runs.kept_s[0]), float(runs.saves[0])) == (
        155.0,
        90.0,
        1.5,
    )


def test_a_lost_node_needs_the_farther_copy():
    """Two tiers, every second save to the far one; lost 350 s in: back to the second save, with the
    far tier's load."""
    job = PLAIN._replace(
        every=2, second_stall=30.0, lags=(0.0, 0.0), loads=(3.0, 20.0), emergency=(10.0, 40.0)
    )
    job = job._replace(kinds=(job.kinds[0], job.kinds[0]._replace(level=1)))
    near, _ = one_run(job, 350.0)
    far, back = one_run(job, 350.0, kinds=(1,))
    assert (near.lost_s, near.tier, far.lost_s, far.tier) == (20.0, 0, 110.0, 1)
    assert back.load_s == 20.0
    # on the way back a lesser interruption does not bring the near copy again
    _, again, back = one_run(job, 350.0, 10.0, kinds=(1, 0))
    assert (again.tier, back.load_s) == (1, 20.0)


def test_a_save_cut_short_in_the_last_interval_is_written_in_part():
    """40 s of work, 10 s of saving, interrupted 4 s into it: the shorter interval's save is as real
    as the others."""
    runs = walk(job_for([PLAIN._replace(work=40.0)]), told(44.0), np.zeros(1, np.uint64))
    assert float(runs.saves[0]) == pytest.approx(1.4)
    assert float(runs.trained_s[0]) == 80.0


def test_kinds_come_in_their_shares():
    shares = (0.2, 0.0, 0.5, 0.3)
    kinds = tuple(
        InterruptionKind(str(i), share, 0, 0.0, 0.0, 0.0, 0.0) for i, share in enumerate(shares)
    )
    ids = np.arange(300)
    job = job_for([PLAIN._replace(work=9000.0)])._replace(kinds=kinds)
    runs = walk(
        job,
        Renewal(streams.keys_of(1, streams.GAPS, ids), 300.0),
        streams.keys_of(1, streams.KINDS, ids),
    )
    seen = runs.by_kind.sum(axis=1)
    assert seen[1] == 0
    assert chisquare(seen[[0, 2, 3]], seen.sum() * np.array([0.2, 0.5, 0.3])).pvalue > 1e-3


def test_a_run_that_never_gets_through(monkeypatch):
    monkeypatch.setattr(walking, "MOST_EVENTS", 50)
    with pytest.raises(EndlessError):
        walk(job_for([PLAIN]), told(*[30.0] * 60), np.zeros(1, np.uint64))


# ---- one save in flight


def blocked_runs(*gaps: float, work: float = 40.0) -> Any:
    """Train 10, copy 1, drain 25: each cycle but the first after a start waits 14 for the save
    before it."""
    rhythm = Rhythm(10.0, 0.0, 1.0, 14.0, 0, 0.0, 0, 0.0, (25.0,))
    job = Job(
        work, rhythm, (InterruptionKind("failure", 1.0, 0, 0.0, 0.0, 0.0, 0.0),), (0.0,), (26.0,)
    )
    told = np.array([[*gaps, *[NEVER] * EVENTS]])
    return walk(
        job,
        Told(told, np.zeros(told.shape, dtype=np.intp)),
        streams.keys_of(1, streams.KINDS, np.arange(1)),
    )


@pytest.mark.parametrize(
    ("gaps", "work", "wall", "trained", "writes"),
    [
        ((), 40.0, 86.0, 40.0, 4.0),  # 11 + 3 x 25
        (
            (50.0,),
            40.0,
            50.0 + 61.0,
            30.0 + 30.0,
            1 + 14 / 25 + 3,
        ),  # the first save is safe at 36, the second, from 36 on, is not
        ((20.0,), 40.0, 20.0 + 86.0, 19.0 + 40.0, 9 / 25 + 4),  # before the first is safe
        ((10.5,), 40.0, 10.5 + 86.0, 10.0 + 40.0, 4.0),  # in the first copy
        ((30.0,), 40.0, 30.0 + 86.0, 20.0 + 40.0, 19 / 25 + 4),  # while the second waits
        ((36.5,), 40.0, 36.5 + 61.0, 20.5 + 30.0, 1 + 0.5 / 25 + 3),
        ((), 5.0, 6.0, 5.0, 1.0),
    ],
)
def test_the_first_save_after_a_start_waits_for_none(gaps, work, wall, trained, writes):
    runs = blocked_runs(*gaps, work=work)
    assert runs.finished.all()
    assert runs.wall_s[0] == pytest.approx(wall, abs=1e-9)
    assert runs.trained_s[0] == pytest.approx(trained, abs=1e-9)
    assert runs.saves[0] == pytest.approx(writes, abs=1e-9)


@pytest.mark.parametrize("staging", ["before", "after"])
@pytest.mark.parametrize("many", [1, 2, 3])
@pytest.mark.parametrize("work", [400.0, 393.0])
def test_saves_in_flight_as_a_plain_walk(many, staging, work):
    """Train 10, copy 2, drain 60: m saves come together, then one waits; the last interval may be
    shorter."""
    policy = Policy(every=10.0, mode="async", in_flight=float(many), staging=staging)
    saved = Save(2.0, 60.0, 60.0, 1.0, 1.0, 1.0)
    cycle = backpressure(10.0, saved, policy)
    assert cycle.blocked_s > 0
    rhythm = Rhythm(10.0, 0.0, 2.0, many * cycle.blocked_s, 0, 0.0, 0, 0.0, (60.0,), float(many))
    job = Job(
        work, rhythm, (InterruptionKind("failure", 1.0, 0, 0.0, 0.0, 0.0, 0.0),), (0.0,), (62.0,)
    )
    rng = np.random.default_rng(7)
    gaps = rng.exponential(300.0, (40, 5))
    told = np.concatenate([gaps, np.full((40, EVENTS), NEVER)], axis=1)
    runs = walk(
        job,
        Told(told, np.zeros(told.shape, dtype=np.intp)),
        streams.keys_of(1, streams.KINDS, np.arange(40)),
    )
    assert runs.finished.all()
    for run in range(40):
        plain = in_flight_walk(work, 10.0, 2.0, 60.0, many, staging, gaps[run])
        found = (runs.wall_s[run], runs.trained_s[run], runs.saves[run])
        assert found == pytest.approx(plain, abs=1e-6)


def test_a_warning_as_long_as_a_save_is_enough():
    first, last = one_run(PLAIN._replace(kinds=(PLAIN.kinds[0]._replace(notice=10.0),)), 150.0)
    assert (first.lost_s, first.stall_s, last.trained_s) == (0.0, 20.0, 310.0)
