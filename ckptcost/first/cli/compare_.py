"""`ckptcost compare`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ckptcost.first.cli import answers, flags

if TYPE_CHECKING:
    from pathlib import Path

EPILOG = """\
examples:
  ckptcost compare llama31-405b-16k opt-175b
  ckptcost compare -s llama31-405b-16k --with tier=nas-hdd --with mode=async
  ckptcost compare -s job.toml --with "tier.id=flash-shared, policy.mode=async"
  ckptcost compare mine.toml theirs.toml --require "goodput>=0.9"
  ckptcost compare runs/today job.toml      # a recorded run beside the model

The first scenario, or the one that --with varies, is A; the others are held
against it. --set and --interval hold for all, --with over both.
A run is a folder of readings, a .jsonl file, or run:ID.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "scenarios",
        nargs="*",
        metavar="SCENARIO",
        help="scenario files or presets, two to six; or a run and one scenario",
    )
    flags.add_scenario(parser)
    flags.add_tier(parser)
    parser.add_argument(
        "--with",
        dest="variants",
        action="append",
        default=[],
        metavar="CHANGES",
        help=(
            'a variant of the one scenario, e.g. --with "tier.id=nas-hdd, policy.mode=async"; may'
            " repeat"
        ),
    )
    flags.add_study(parser)
    flags.add_draws(parser, "4,096")


def run(options: argparse.Namespace) -> int:
    from ckptcost.first.errors import InputError
    from ckptcost.first.jobs.gap import run_path
    from ckptcost.first.questions.compare import compare
    from ckptcost.first.questions.parameters import gates_of

    gates_of(options.require)  # before a run is looked for
    recorded = run_path(options.scenarios[0]) if options.scenarios else None
    if any(run_path(name) is not None for name in options.scenarios[1:]):
        raise InputError(
            "one run at a time, and the run comes first",
            where="compare",
            remedy="ckptcost compare RUN SCENARIO",
        )
    if recorded is not None:
        return _against_run(options, recorded)
    named = [] if options.scenario is None else [options.scenario]
    result = answers.ask(compare, options, scenarios=[*named, *options.scenarios])
    return answers.answer(result, options)


def _against_run(options: argparse.Namespace, recorded: Path) -> int:
    """A recorded run against one scenario."""
    from ckptcost.first.errors import Argument, InputError
    from ckptcost.first.questions.gap import gap

    named = [*options.scenarios[1:], *([options.scenario] if options.scenario is not None else [])]
    if len(named) != 1:
        raise InputError(
            f"a run is held against one scenario, and {len(named) or 'none'}"
            f" {'are' if len(named) > 1 else 'is'} named",
            where="compare",
            remedy="ckptcost compare RUN SCENARIO",
        )
    for name in ("variants", "require"):
        if getattr(options, name):
            raise InputError(
                "is for scenarios, and a run is what it is",
                where=Argument(name),
                remedy="--set changes the scenario",
            )
    result = answers.ask(gap, options, run=recorded, scenario=named[0])
    return answers.answer(result, options)
