"""`ckptcost doctor`."""

from __future__ import annotations

import argparse
import sys

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
    from ckptcost import answers
    from ckptcost.catalog.schema import flag_value
    from ckptcost.catalog.store import Catalog
    from ckptcost.cli import meter_flags, study_flags

    if options.json:
        options.format = "json"
    study_flags.fits(options)
    seconds = flag_value("--for", options.length, "s")
    study, lacking = answers.checkup(
        options.meters, meter_flags.wanted_of(options), seconds, meter_flags.needed(options)
    )
    study_flags.answer(study, options, Catalog(), meter_flags.spoken(options), [])
    for kind in lacking:
        print(f"ckptcost: {kind} is needed and not measured here", file=sys.stderr)
    return meter_flags.UNMET if lacking else 0
