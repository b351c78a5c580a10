"""`ckptcost sensitivity`."""

from __future__ import annotations

import argparse

from ckptcost.first.cli import answers, flags

EPILOG = """\
examples:
  ckptcost sensitivity -s llama31-405b-16k                 # of the kWh
  ckptcost sensitivity -s llama31-405b-16k --of usd --top 5
  ckptcost sensitivity -s llama31-405b-16k --of goodput --replan
  ckptcost sensitivity -s job.toml -f csv --table elasticities

The interval stays as it was chosen; --replan chooses the best one anew for
each value of an input.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    flags.add_scenario(parser)
    flags.add_tier(parser)
    parser.add_argument(
        "--of",
        default="kwh",
        metavar="RESULT",
        help="goodput, wall, gpu_hours, kwh, usd or kgco2e (default: kwh)",
    )
    parser.add_argument(
        "--top",
        type=flags.count,
        default=12,
        metavar="N",
        help="rows of each table for people (default: 12)",
    )
    parser.add_argument(
        "--replan",
        action="store_true",
        help="choose the best interval anew each time (only with policy.optimal)",
    )
    flags.add_study(parser, gates=False)
    flags.add_draws(parser, "4,096, with --replan 1,024")


def run(options: argparse.Namespace) -> int:
    from ckptcost.first.questions.sensitivity import sensitivity

    return answers.ask_and_answer(sensitivity, options)
