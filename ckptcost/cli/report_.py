"""`ckptcost report`."""

from __future__ import annotations

import argparse

EPILOG = """\
examples:
  ckptcost report last
  ckptcost report 3f9a -f json -o cost.json
  ckptcost report runs/today -f csv --table windows
  ckptcost report last --host node7       # of a run of several hosts
RUN is a folder or file, "last", or the beginning of an id or of a folder's
name: ckptcost runs lists them.
A run that was killed counts as far as it goes.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    from ckptcost.cli import study_flags

    parser.add_argument("run_name", metavar="RUN", help='a folder or file, "last", or the beginning of an id')
    parser.add_argument("--host", default="", metavar="NAME", help="of a run of several hosts: which (default: the first)")
    parser.add_argument("--dir", metavar="DIR", help="look there instead of where runs are kept")
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE instead of stdout")
    study_flags.add(parser, gates=False)


def run(options: argparse.Namespace) -> int:
    from ckptcost import answers
    from ckptcost.catalog.store import Catalog
    from ckptcost.cli import study_flags
    from ckptcost.cli.runs_ import found_of, spoken

    study_flags.fits(options)
    found = found_of(options)
    study, _ = answers.review(found.path, options.host, run_id=found.run)
    return study_flags.answer(study, options, Catalog(), spoken(options), [])
