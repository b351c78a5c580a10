"""`ckptcost doctor`."""

from __future__ import annotations

import argparse

EPILOG = """\
examples:
  ckptcost doctor
  ckptcost doctor --json
  ckptcost doctor --need gpu,cpu          # exit code 5 if one is not measured
  ckptcost doctor --meters rapl --rapl pyrapl
  ckptcost doctor --meters simulated      # what it looks like with hardware
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    from ckptcost.cli import meter_flags, study_flags

    meter_flags.add(parser)
    parser.add_argument(
        "--for",
        dest="length",
        default="2 s",
        metavar="TIME",
        help="how long every meter is tried (default: 2 s)",
    )
    parser.add_argument("--json", action="store_true", help="the same as -f json")
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE instead of stdout")
    study_flags.add(parser, gates=False)


def run(options: argparse.Namespace) -> int:
    from ckptcost.cli import meter_flags, study_flags
    from ckptcost.questions.doctor import doctor

    if options.json:
        options.format = "json"
    study_flags.fits(options)
    result = study_flags.ask(doctor, options)
    study_flags.answer(result, options)
    return meter_flags.unmet(result.lacking)
