"""`ckptcost model`."""

from __future__ import annotations

import argparse

from ckptcost.first.cli import answers, flags

EPILOG = """\
examples:
  ckptcost model            # the 2 TB checkpoint on four storage systems
  ckptcost model -s llama31-405b-16k --tier flash-shared --tier nas-hdd
  ckptcost model --tier nas-hdd --tier generic-pfs --saves 1 --saves 1000
  ckptcost model -s job.toml --interval "30 min" -f json -o report.json
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    flags.add_scenario(parser)
    parser.add_argument(
        "--tier",
        action="append",
        default=[],
        metavar="ID",
        help="a storage tier of the catalogue, with its size where it is sold by it, e.g. "
        "aws-fsx-p2-125:200TiB; may repeat, the first is billed in full",
    )
    parser.add_argument(
        "--saves",
        action="append",
        default=[],
        metavar="N",
        help="saves in the whole run; may repeat",
    )
    parser.add_argument(
        "--against", metavar="ID", help="reference tier: what of the bill was avoidable"
    )
    flags.add_study(parser)
    flags.add_draws(parser, "4,096")


def run(options: argparse.Namespace) -> int:
    from ckptcost.first.questions.model import model

    answers.fits(options)
    return answers.ask_and_answer(model, options)
