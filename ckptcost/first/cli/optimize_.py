"""`ckptcost optimize`."""

from __future__ import annotations

import argparse

from ckptcost.first.cli import answers, flags

EPILOG = """\
examples:
  ckptcost optimize -s llama31-405b-16k
  ckptcost optimize --tier flash-shared --tier nas-hdd --mode both
  ckptcost optimize -s small-8b --objective usd --require "goodput>=0.99"
  ckptcost optimize -s job.toml -f csv --table curve   # to plot

Targets are judged at the interval advised for the objective, on the best tier
and mode.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    flags.add_scenario(parser)
    parser.add_argument(
        "--tier",
        action="append",
        default=[],
        metavar="ID",
        help="a storage tier to compare; may repeat (default: those of the scenario)",
    )
    parser.add_argument(
        "--mode",
        choices=("sync", "async", "both"),
        default="",
        help="how to save (default: as the scenario does)",
    )
    parser.add_argument(
        "--objective",
        choices=("time", "energy", "usd", "carbon"),
        default="",
        help="what to minimise (default: as the scenario says, or time)",
    )
    parser.add_argument(
        "--check",
        type=int,
        default=200,
        metavar="RUNS",
        help="simulated runs of each combination of several tiers (default: 200; 0: none)",
    )
    flags.add_study(parser)
    flags.add_draws(parser, "4,096")


def run(options: argparse.Namespace) -> int:
    from ckptcost.first.questions.optimize import optimize

    return answers.ask_and_answer(optimize, options)
