"""`ckptcost measure`."""

from __future__ import annotations

import argparse
import sys

EPILOG = """\
examples:
  ckptcost measure --baseline               # idle power, learned once and dated
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
        help='how long, e.g. "30 s" (default: 10 s; with --baseline 30 s)',
    )
    parser.add_argument(
        "--baseline",
        action="store_true",
        help="learn the idle power of this machine; nothing else may run on it",
    )
    parser.add_argument(
        "--anyway", action="store_true", help="with --baseline: keep it although GPUs were busy"
    )
    parser.add_argument(
        "--record", metavar="DIR", help="keep the readings: a run, readable even after a crash"
    )
    meter_flags.add(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE instead of stdout")
    study_flags.add(parser, gates=False)


def run(options: argparse.Namespace) -> int:
    from ckptcost import answers
    from ckptcost.catalog.schema import flag_value
    from ckptcost.catalog.store import Catalog
    from ckptcost.cli import meter_flags, study_flags
    from ckptcost.errors import InputError, OutputError

    study_flags.fits(options)
    seconds = None if options.length is None else flag_value("--for", options.length, "s")
    if options.anyway and not options.baseline:
        raise InputError("belongs to --baseline", where="--anyway")
    wanted, needed = meter_flags.wanted_of(options), meter_flags.needed(options)
    if options.baseline:
        if options.record is not None:
            raise InputError(
                "a baseline is kept in a file of its own",
                where="--record",
                remedy="leave one of the two out",
            )
        study, lacking = answers.baseline(options.meters, wanted, seconds, needed, options.anyway)
    else:
        if options.record is not None and (
            options.meters.startswith("replay:") or not options.record
        ):
            raise InputError(
                "keeps readings of meters, in a folder",
                where="--record",
                remedy="name a folder, and no replay",
            )
        study, lacking = answers.measurement(
            options.meters, wanted, seconds, needed, options.record
        )
    study_flags.answer(study, options, Catalog(), meter_flags.spoken(options), [])
    if lost := next((message for code, message in study.warnings if code == "NOT_RECORDED"), None):
        print(f"ckptcost: {lost}", file=sys.stderr)
        return OutputError.exit_code
    for kind in lacking:
        print(f"ckptcost: {kind} is needed and not measured here", file=sys.stderr)
    if lacking:
        return meter_flags.UNMET
    asked_for_joules = options.meters == "auto" and not needed and not options.baseline
    if asked_for_joules and not answers.tells_joules(study):
        print(f"ckptcost: {NO_JOULES}", file=sys.stderr)
        return meter_flags.UNMET
    return 0
