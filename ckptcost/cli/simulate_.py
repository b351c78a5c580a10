"""`ckptcost simulate`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

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
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    from ckptcost.cli import scenario_flags, study_flags

    scenario_flags.add(parser)
    parser.add_argument(
        "--tier", metavar="ID", help="a storage tier of the catalogue, instead of the scenario's"
    )
    parser.add_argument(
        "--runs",
        type=study_flags.count,
        default=1000,
        metavar="N",
        help="how many runs (default: 1000)",
    )
    parser.add_argument("--seed", type=study_flags.count, default=1, metavar="N", help="default: 1")
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
        "--workers", type=study_flags.count, default=1, metavar="N", help="processes (default: 1)"
    )
    parser.add_argument(
        "--timeline",
        type=study_flags.count,
        metavar="RUN",
        help="also show this run, step by step (the first is 0)",
    )
    study_flags.add(parser)


def run(options: argparse.Namespace) -> int:
    from ckptcost import answers, api
    from ckptcost.catalog.store import Catalog
    from ckptcost.cli import scenario_flags, study_flags

    gates = study_flags.gates_of(options)
    catalog = Catalog()
    layers = api.layers_for(catalog, options.scenario, options.interval, options.set)
    asked = answers.asked_of(
        options.runs,
        options.seed,
        options.failures,
        options.trace,
        options.trace_span,
        options.kinds,
        options.limit,
        options.inputs,
        options.workers,
    )
    told = _told(asked.runs) if sys.stderr is not None and sys.stderr.isatty() else None
    try:
        study = answers.simulation(
            catalog,
            layers,
            asked,
            options.tier,
            gates,
            options.timeline,
            options.table == "runs",
            told,
        )
    finally:
        if told is not None:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
    files = [*api.files_of(layers), *answers.read_files(options.trace, options.kinds)]
    return study_flags.answer(
        study, options, catalog, _without_workers(scenario_flags.spoken(options)), files
    )


def _told(runs: int) -> Callable[[int], None]:
    last = [-1]

    def note(done: int) -> None:
        percent = 100 * done // runs
        if percent != last[0]:
            last[0] = percent
            bar = "#" * (percent * 40 // 100)
            print(f"\rsimulating [{bar:<40}] {percent:3d} %", end="", file=sys.stderr, flush=True)

    return note


def _without_workers(words: list[str]) -> list[str]:
    """The command without what changes no number."""
    found: list[Any] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word == "--workers":
            skip = True
        elif not word.startswith("--workers="):
            found.append(word)
    return found
