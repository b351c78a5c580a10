"""How true the joules of a window are: ours, a plain difference, and other meters', against the
exact integral of the fake GPUs' power.

Our windows begin out of rest, as a checkpoint does: until the mark comes, the recorder asks five
times a second.
"""

from __future__ import annotations

import random
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import peers
from measure import Row, digits, table, verdict
from sampler import NO_COMPILER, Case, build_fake, running

BUDGETS = {0.3: None, 1.0: 2.0, 3.0: 0.5, 10.0: None}
"""by length in seconds: the mean error, %"""
SPREAD = 0.1
"""a window is so much shorter or longer: one of whole ticks and whole waves is easy for
everybody"""
REST_S = (2.0, 3.0)
"""between two of ours: longer than the quick pace lasts after a mark"""
GAP_S = (0.05, 0.15)
RECORDINGS, UNEVEN_RECORDINGS, TRACKERS, GPUS, ANYWHERE = 6, 3, 4, 8, 20
UNEVEN = "recorder, each tick up to 10 ms early or late"
OURS, PLAIN, ZEUS, CARBON = (
    "recorder",
    "counter at the end less at the beginning",
    "zeus ZeusMonitor",
    "codecarbon task",
)


class Piece(NamedTuple):
    """A window to be measured."""

    at_s: float
    length_s: float
    about_s: float


class Judged(NamedTuple):
    """One window of one GPU. Shares of the exact joules."""

    error: float
    holds: bool = False
    """whether the interval has the exact joules in it"""
    width: float = 0.0


def in_turn(
    rng: random.Random, times: dict[float, int], apart_s: tuple[float, float]
) -> list[Piece]:
    """One after the other, in any order."""
    lengths = [about_s for about_s, each in times.items() for _ in range(each)]
    rng.shuffle(lengths)
    plan: list[Piece] = []
    at_s = 0.0
    for about_s in lengths:
        at_s += rng.uniform(*apart_s)
        plan.append(Piece(at_s, about_s * rng.uniform(1 - SPREAD, 1 + SPREAD), about_s))
        at_s += plan[-1].length_s
    return plan


def anywhere(rng: random.Random, until_s: float, each: int) -> list[Piece]:
    """Overlapping as they like."""
    return [
        Piece(
            rng.uniform(0.0, until_s - (1 + SPREAD) * about_s),
            about_s * rng.uniform(1 - SPREAD, 1 + SPREAD),
            about_s,
        )
        for about_s in BUDGETS
        for _ in range(each)
    ]


def waves(rng: random.Random) -> str:
    """600 and 120 W in turn, 1 s each; the GPUs' phases and their counters' ticks of 100 ms are
    anywhere."""
    own = [
        f"phase_s.{n}={rng.uniform(0, 2):.4f} tick_phase_ms.{n}={rng.uniform(0, 100):.2f}"
        for n in range(GPUS)
    ]
    return f"high_w=600 low_w=120 period_s=2 tick_ms=100 {' '.join(own)}"


def judged(row: dict[str, Any], way: str) -> Iterator[tuple[str, Judged]]:
    """What a worker said of one window, GPU by GPU."""
    if way != UNEVEN:
        for truth, said in zip(row["exact"], row["said"], strict=True):
            yield (PLAIN if way == OURS else way), Judged(said / truth - 1.0)
    if "amounts" in row:
        for truth, (value, low, high) in zip(row["exact"], row["amounts"], strict=True):
            yield way, Judged(value / truth - 1.0, low <= truth <= high, (high - low) / truth)


def measure(rounds: int = 9) -> str:
    """The table of this file. All tools run at the same time, for as long as it takes to record so
    many windows out of rest."""
    if build_fake.compiler() is None:
        return NO_COMPILER
    lacking, rng = peers.lacking(), random.Random(7)
    few = max(rounds // 4, 1)
    times = {0.3: few, 1.0: few, 3.0: few, 10.0: 1}
    plans = {}
    for way, more, recordings in (
        (OURS, "", RECORDINGS),
        (UNEVEN, " jitter_ms=20", UNEVEN_RECORDINGS),
    ):
        plans |= {
            Case(way, ("ours",), GPUS, wave=waves(rng) + more): in_turn(rng, times, REST_S)
            for _ in range(recordings)
        }
    until_s = max(sum(plan[-1][:2]) for plan in plans.values())
    if not lacking:
        plans[Case(ZEUS, ("zeus",), GPUS, wave=waves(rng))] = anywhere(rng, until_s, ANYWHERE)
        tasks = {about_s: 2 * each for about_s, each in times.items()}
        plans |= {
            Case(CARBON, ("codecarbon", "1", "tasks"), 1, wave=waves(rng)): in_turn(
                rng, tasks, GAP_S
            )
            for _ in range(TRACKERS)
        }
    found: defaultdict[tuple[str, float], list[Judged]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        library = build_fake.build(Path(folder, "fake"))
        with running(list(plans), library, Path(folder, "runs")) as workers:
            for case, worker in workers.items():
                worker.say("windows", [piece[:2] for piece in plans[case]], case.gpus)
            for case, worker in workers.items():
                for piece, row in zip(plans[case], worker.hear(), strict=True):
                    for way, judgement in judged(row, case.name):
                        found[way, piece.about_s].append(judgement)
    head = (
        "joules of a window",
        "about",
        "windows",
        "mean error",
        "worst",
        "interval holds the truth",
        "its width",
        "budget",
        "",
    )
    lines = [
        _line(way, about_s, found[way, about_s])
        for way in (OURS, UNEVEN, PLAIN, ZEUS, CARBON)
        for about_s in BUDGETS
        if found[way, about_s]
    ]
    return table(head, lines) + (f"\n{lacking}\n" if lacking else "")


def _line(way: str, about_s: float, of: Sequence[Judged]) -> tuple[str, ...]:
    mean = statistics.fmean(abs(judgement.error) for judgement in of)
    worst = max(of, key=lambda judgement: abs(judgement.error)).error
    cells = (
        way,
        f"{about_s:g} s",
        str(len(of)),
        f"{digits(100 * mean)} %",
        f"{100 * worst:+.2f} %",
    )
    if way not in (OURS, UNEVEN):
        return (*cells, "", "", "", "")
    holds, width = (
        statistics.fmean(part) for part in ([j.holds for j in of], [j.width for j in of])
    )
    budget = BUDGETS[about_s] if way == OURS else None
    return (
        *cells,
        f"{100 * holds:.1f} %",
        f"{digits(100 * width)} %",
        *verdict(Row("", [mean], "%", budget)),
    )


if __name__ == "__main__":
    print(measure())
