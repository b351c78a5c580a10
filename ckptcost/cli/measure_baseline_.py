"""`ckptcost measure baseline`."""

from __future__ import annotations

import argparse

EPILOG = """\
examples:
  ckptcost measure baseline
  ckptcost measure baseline --for "2 min" --meters rapl,nvml
Nothing else may run on the machine. What a checkpoint takes is told above the
latest baseline, with its date.
exit code 5: nothing meters power here, or a kind that --need names is missing
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    from ckptcost.cli import meter_flags, study_flags

    parser.add_argument(
        "--for", dest="length", metavar="TIME", help='how long, e.g. "1 min" (default: 30 s)'
    )
    parser.add_argument("--anyway", action="store_true", help="keep it although GPUs were busy")
    meter_flags.add(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE instead of stdout")
    study_flags.add(parser, gates=False)


def run(options: argparse.Namespace) -> int:
    from ckptcost.cli import meter_flags, study_flags
    from ckptcost.questions.measure import baseline

    study_flags.fits(options)
    result = study_flags.ask(baseline, options)
    study_flags.answer(result, options)
    return meter_flags.unmet(result.lacking)
