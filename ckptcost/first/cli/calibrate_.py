"""`ckptcost calibrate`."""

from __future__ import annotations

import argparse
import sys

from ckptcost.first.cli import answers, flags

EPILOG = """\
RUN is a folder or file of a run, "last" (probes too), or how a run's id begins
examples:
  ckptcost probe /scratch --size "20 GB"
  ckptcost calibrate last --as our-scratch
  ckptcost calibrate runs/small runs/large --as our-lustre --name "Rack 7"
  ckptcost calibrate 3f9a --as our-lustre --dry-run -f json
then: ckptcost model --tier our-lustre
It writes into your own folder of the catalogue: $CKPTCOST_USER, else "ckptcost"
in the user configuration folder.
exit codes: 2 wrong input, 4 the file could not be written, 5 the runs hold
nothing to fit
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs", nargs="+", metavar="RUN", help="recorded runs; all are fitted together"
    )
    parser.add_argument(
        "--as",
        dest="entry",
        required=True,
        metavar="ID",
        help="what the tier and the cluster are called in the catalogue",
    )
    parser.add_argument(
        "--name", default="", metavar="TEXT", help="what it is, in words (default: the host's name)"
    )
    parser.add_argument("--dry-run", action="store_true", help="fit and show; write nothing")
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace what is there, and stand before what ships under the same name",
    )
    flags.add_output(parser, "write the answer to FILE instead of stdout")
    flags.add_study(parser, gates=False)


def run(options: argparse.Namespace) -> int:
    from ckptcost.first.errors import MeterUnavailable
    from ckptcost.first.questions.calibrate import calibrate

    answers.fits(options)
    result = answers.ask(calibrate, options)
    answers.answer(result, options)
    if result.lacking:
        print(
            "ckptcost: nothing was written: these runs give neither a write rate nor the watts of"
            " a GPU",
            file=sys.stderr,
        )
        return MeterUnavailable.exit_code
    return 0
