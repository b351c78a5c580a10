"""`ckptcost doctor`."""

from __future__ import annotations

import argparse

from ckptcost.first.cli import answers, flags

EPILOG = """\
examples:
  ckptcost doctor
  ckptcost doctor --json
  ckptcost doctor --need gpu,cpu          # exit code 5 if one is not measured
  ckptcost doctor --meters rapl --rapl pyrapl
  ckptcost doctor --meters simulated      # what it looks like with hardware
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    flags.add_meters(parser)
    parser.add_argument(
        "--for",
        dest="length",
        default="2 s",
        metavar="TIME",
        help="how long every meter is tried (default: 2 s)",
    )
    parser.add_argument("--json", action="store_true", help="the same as -f json")
    flags.add_study(parser, gates=False, output=True)


def run(options: argparse.Namespace) -> int:
    from ckptcost.first.questions.doctor import doctor

    if options.json:
        options.format = "json"
    answers.fits(options)
    result = answers.ask(doctor, options)
    answers.answer(result, options)
    return answers.unmet(result.lacking)
