"""`ckptcost solve price`."""

from __future__ import annotations

import argparse

EPILOG = """\
examples:
  ckptcost solve price --tier object-store --against flash-shared
  ckptcost solve price -s job.toml --against flash-shared --capex "500000 USD"
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    from ckptcost.cli import scenario_flags, study_flags

    scenario_flags.add(parser)
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
    study_flags.add(parser, gates=False)


def run(options: argparse.Namespace) -> int:
    from ckptcost.cli import study_flags
    from ckptcost.questions.price import price

    return study_flags.answer(study_flags.ask(price, options), options)
