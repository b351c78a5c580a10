"""`ckptcost simulate`."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from ckptcost.first.cli import answers, flags

EPILOG = """\
examples:
  ckptcost simulate -s llama31-405b-16k
  ckptcost simulate -s llama31-405b-16k --failures weibull:0.7 --inputs pert
  ckptcost simulate -s job.toml --trace failures.csv --limit "60 days"
  ckptcost simulate -s job.toml --require "goodput.p5>=0.9"   (exit code 3)
failures: exponential, weibull:SHAPE (gaps between failures of the job),
          weibull-nodes:SHAPE (nodes of all ages, replaced when they fail);
          a mean may follow: "weibull:0.7:3 h"
The same seed gives the same numbers, however many workers there are.
Ctrl-C answers with the runs that have ended, marked as such, and exit code 130;
with -o it writes nothing. --seconds-at-most does the same by itself, with 0.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    flags.add_scenario(parser)
    parser.add_argument(
        "--tier", metavar="ID", help="a storage tier of the catalogue, instead of the scenario's"
    )
    parser.add_argument(
        "--runs",
        type=flags.count,
        default=1000,
        metavar="N",
        help="how many runs (default: 1000)",
    )
    parser.add_argument("--seed", type=flags.count, default=1, metavar="N", help="default: 1")
    parser.add_argument(
        "--failures", default="exponential", metavar="LAW", help="see below (default: exponential)"
    )
    parser.add_argument(
        "--trace",
        metavar="FILE",
        help="replay recorded failures: CSV with time_s, time_h, time_days or timestamp",
    )
    parser.add_argument(
        "--trace-span",
        metavar="TIME",
        help="length of the record (default: one mean gap after its last failure)",
    )
    parser.add_argument(
        "--kinds",
        metavar="FILE",
        help="TOML with [[kind]] tables: classes of interruption with their own recovery",
    )
    parser.add_argument(
        "--limit", metavar="TIME", help="stop each run after this wall-clock time, finished or not"
    )
    parser.add_argument(
        "--inputs",
        default="fixed",
        metavar="HOW",
        help="draw inputs from their ranges: triangle, pert, uniform",
    )
    parser.add_argument(
        "--workers", type=flags.count, default=1, metavar="N", help="processes (default: 1)"
    )
    parser.add_argument(
        "--seconds-at-most",
        type=flags.seconds,
        metavar="N",
        help="stop working after so many seconds, and answer with the runs that have ended",
    )
    parser.add_argument(
        "--timeline",
        type=flags.count,
        metavar="RUN",
        help="also show this run, step by step (the first is 0)",
    )
    flags.add_study(parser)


def run(options: argparse.Namespace) -> int:
    from ckptcost.first.errors import CkptcostError
    from ckptcost.first.questions.simulate import simulate

    bound = _Bound(options.runs, options.workers, options.seconds_at_most, options.output is None)
    try:
        with bound:
            every_run = options.table == "runs"
            result = answers.ask(simulate, options, every_run=every_run, note=bound.note)
    except CkptcostError as error:
        if not bound.interrupted:
            raise
        print(f"ckptcost: {error}", file=sys.stderr)
        return 130
    code = answers.answer(result, options)
    return 130 if bound.interrupted else code


class _Bound:
    """Says on a terminal how far it is, and stops the work after Ctrl-C or when its time is over; a
    second Ctrl-C ends all."""

    def __init__(self, runs: int, workers: int, seconds: float | None, answers: bool) -> None:
        from ckptcost.first.cli.status import bar_of

        self._runs, self._apart, self._seconds = runs, workers > 1, seconds
        self._heard = [signal.SIGINT] if answers else []
        self._before: dict[int, Any] = {}
        self._bar = bar_of("simulating")
        self._tell: Callable[[float, float], None] | None = None
        self._over = self.interrupted = False

    def __enter__(self) -> _Bound:
        self._tell = self._bar.__enter__()
        if threading.current_thread() is threading.main_thread():
            for number in [*self._heard, *([signal.SIGALRM] if self._seconds else [])]:
                self._before[number] = signal.signal(number, self._stop)
            if self._seconds:
                signal.setitimer(signal.ITIMER_REAL, self._seconds)
        return self

    def __exit__(self, *_: object) -> None:
        if self._seconds and self._before:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        for number, before in self._before.items():
            signal.signal(number, before)
        self._bar.__exit__(None, None, None)

    def _stop(self, number: int, frame: object) -> None:
        from ckptcost.first.core.walk import Enough

        if self.interrupted and number == signal.SIGINT:
            raise KeyboardInterrupt
        self._over, self.interrupted = True, self.interrupted or number == signal.SIGINT
        if self._apart:  # the work is other processes', and this one waits for them
            raise Enough

    def note(self, done: float) -> None:
        if self._over:
            from ckptcost.first.core.walk import Enough

            raise Enough
        if self._tell is not None:
            self._tell(done, self._runs)
