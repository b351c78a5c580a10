"""`ckptcost solve` and `ckptcost solve price`."""

from __future__ import annotations

import argparse

from ckptcost.first.cli import answers, flags

EPILOG = """\
WHAT: write read bandwidth stall mtbf recovery interval saves-per-day
examples:
  ckptcost solve write -s llama31-405b-16k --for "goodput>=0.9"
  ckptcost solve interval -s llama31-405b-16k --for "usd<=16000000"
  ckptcost solve stall -s micron-100k --for "goodput>=0.975"    # exits 3
What a faster tier may cost: ckptcost solve price --help
exit code 3: nothing reaches the target; the answer says what stands in the way
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", metavar="WHAT", help="what to solve for, see below")
    flags.add_scenario(parser)
    parser.add_argument(
        "--for",
        dest="target",
        metavar="TARGET",
        help='e.g. "goodput>=0.95", "wall<=60 days", "usd<=10000", "kwh<=2 MWh"',
    )
    parser.add_argument("--tier", metavar="ID", help="the storage tier")
    parser.add_argument(
        "--keep-interval",
        action="store_true",
        help="hold the interval; else each trial takes its best one",
    )
    flags.add_study(parser, gates=False)


def run(options: argparse.Namespace) -> int:
    from ckptcost.first.questions.solve import solve

    return answers.ask_and_answer(solve, options)


EPILOG_PRICE = """\
examples:
  ckptcost solve price --tier object-store --against flash-shared
  ckptcost solve price -s job.toml --against flash-shared --capex "500000 USD"
"""


def arguments_price(parser: argparse.ArgumentParser) -> None:
    flags.add_scenario(parser)
    parser.add_argument("--tier", metavar="ID", help="the slower tier (default: the scenario's)")
    parser.add_argument("--against", metavar="ID", help="the faster tier")
    parser.add_argument(
        "--capex", metavar="USD", help='when a purchase such as "500000 USD" has paid'
    )
    parser.add_argument(
        "--keep-interval",
        action="store_true",
        help="hold the interval; else each tier takes its best one",
    )
    flags.add_study(parser, gates=False)


def run_price(options: argparse.Namespace) -> int:
    from ckptcost.first.questions.price import price

    return answers.ask_and_answer(price, options)
