"""`ckptcost measure`."""

from __future__ import annotations

import argparse
import sys

EPILOG = """\
examples:
  ckptcost measure baseline                 # idle power, learned once and dated
  ckptcost measure --for "30 s"
  ckptcost measure --for "1 min" --record runs/today --dir /scratch
  ckptcost measure --meters simulated --for "5 min"
  ckptcost measure --meters replay:runs/today -f json
Ctrl-C ends it early; what there is counts.
exit code 5: a kind that --need names is not measured here; nothing meters
joules, and neither --need nor --meters asks for something else
"""
NO_JOULES = (
    "nothing here meters joules: ckptcost doctor says why; --need storage asks for bytes alone"
)


def arguments(parser: argparse.ArgumentParser) -> None:
    from ckptcost.cli import meter_flags, study_flags

    parser.add_argument(
        "--for",
        dest="length",
        metavar="TIME",
        help='how long, e.g. "30 s" (default: 10 s)',
    )
    parser.add_argument(
        "--record", metavar="DIR", help="keep the readings: a run, readable even after a crash"
    )
    meter_flags.add(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE instead of stdout")
    study_flags.add(parser, gates=False)


def run(options: argparse.Namespace) -> int:
    from ckptcost.cli import meter_flags, study_flags
    from ckptcost.errors import OutputError
    from ckptcost.questions.measure import measure, tells_joules

    study_flags.fits(options)
    result = study_flags.ask(measure, options)
    study_flags.answer(result, options)
    warnings = dict(result.study.warnings)
    if lost := warnings.get("NOT_RECORDED"):
        print(f"ckptcost: {lost}", file=sys.stderr)
        return OutputError.exit_code
    if result.lacking:
        return meter_flags.unmet(result.lacking)
    if options.meters == "auto" and not options.need and not tells_joules(result.study):
        print(f"ckptcost: {NO_JOULES}", file=sys.stderr)
        return meter_flags.UNMET
    return 0
