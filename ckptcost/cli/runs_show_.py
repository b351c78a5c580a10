"""`ckptcost runs show`."""

from __future__ import annotations

import argparse

EPILOG = """\
examples:
  ckptcost runs show last
  ckptcost runs show 3f9a              # the beginning of an id, or of a name
  ckptcost runs show last -f csv --table meters
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    from ckptcost.cli import runs_list_, study_flags

    parser.add_argument(
        "run_name", metavar="RUN", help='a folder or file, "last", or the beginning of an id'
    )
    runs_list_.within(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE instead of stdout")
    study_flags.add(parser, gates=False)


def run(options: argparse.Namespace) -> int:
    from ckptcost.cli import runs_list_, study_flags
    from ckptcost.report.studies.runs import show_of
    from ckptcost.runs.summary import counted, one_of, summary_of

    study_flags.fits(options)
    found = runs_list_.found_of(options)
    kept = one_of(found.path, found.run)
    return runs_list_.answer(show_of(summary_of(kept), counted(kept)), options)
