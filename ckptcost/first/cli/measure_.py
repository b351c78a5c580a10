"""`ckptcost measure` and `ckptcost measure baseline`."""

from __future__ import annotations

import argparse
import sys

from ckptcost.first.cli import answers, flags

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
    parser.add_argument(
        "--for",
        dest="length",
        metavar="TIME",
        help='how long, e.g. "30 s" (default: 10 s)',
    )
    parser.add_argument(
        "--record", metavar="DIR", help="keep the readings: a run, readable even after a crash"
    )
    flags.add_meters(parser)
    flags.add_study(parser, gates=False, output=True)


def run(options: argparse.Namespace) -> int:
    from ckptcost.first.errors import OutputError
    from ckptcost.first.questions.measure import measure, tells_joules

    answers.fits(options)
    result = answers.ask(measure, options)
    answers.answer(result, options)
    warnings = dict(result.study.warnings)
    if lost := warnings.get("NOT_RECORDED"):
        print(f"ckptcost: {lost}", file=sys.stderr)
        return OutputError.exit_code
    if result.lacking:
        return answers.unmet(result.lacking)
    if options.meters == "auto" and not options.need and not tells_joules(result.study):
        print(f"ckptcost: {NO_JOULES}", file=sys.stderr)
        return answers.UNMET
    return 0


EPILOG_BASELINE = """\
examples:
  ckptcost measure baseline
  ckptcost measure baseline --for "2 min" --meters rapl,nvml
Nothing else may run on the machine. What a checkpoint takes is told above the
latest baseline, with its date.
exit code 5: nothing meters power here, or a kind that --need names is missing
"""


def arguments_baseline(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--for", dest="length", metavar="TIME", help='how long, e.g. "1 min" (default: 30 s)'
    )
    parser.add_argument("--anyway", action="store_true", help="keep it although GPUs were busy")
    flags.add_meters(parser)
    flags.add_study(parser, gates=False, output=True)


def run_baseline(options: argparse.Namespace) -> int:
    from ckptcost.first.questions.measure import baseline

    answers.fits(options)
    result = answers.ask(baseline, options)
    answers.answer(result, options)
    return answers.unmet(result.lacking)
