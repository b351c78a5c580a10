"""`ckptcost runs list`, which is also what `ckptcost runs` alone does."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from ckptcost.report.study import Study
    from ckptcost.runs.store import Found

EPILOG = """\
examples:
  ckptcost runs list
  ckptcost runs list --dir /scratch/runs -f csv
Kept in $CKPTCOST_RUNS, else $XDG_DATA_HOME/ckptcost/runs, else
~/.local/share/ckptcost/runs.
To remove a run, remove its folder.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    from ckptcost.cli import study_flags

    within(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE instead of stdout")
    study_flags.add(parser, gates=False)


def run(options: argparse.Namespace) -> int:
    from ckptcost.cli import study_flags
    from ckptcost.report.studies.runs import list_of
    from ckptcost.runs import store
    from ckptcost.runs.summary import summary_of

    study_flags.fits(options)
    folder = within_of(options)
    listing = store.kept(folder)
    runs = [summary_of(kept) for kept in listing.runs]
    return answer(list_of(runs, listing.unread, folder or store.home()), options)


def within(parser: argparse.ArgumentParser) -> None:
    """--dir, of all commands that look for kept runs."""
    parser.add_argument(
        "--dir", dest="directory", metavar="DIR", help="look there instead of where runs are kept"
    )


def within_of(options: argparse.Namespace) -> Path | None:
    """The folder that --dir names; None: where runs are kept."""
    import os
    from pathlib import Path

    from ckptcost.errors import Argument, InputError

    if options.directory is None:
        return None
    if not os.path.isdir(options.directory):
        raise InputError(
            "no such folder",
            where=Argument("directory", options.directory),
            remedy="name one that holds runs",
        )
    return Path(options.directory)


def found_of(options: argparse.Namespace) -> Found:
    from ckptcost.runs import store

    return store.found(options.run_name, within_of(options))


def answer(study: Study, options: argparse.Namespace) -> int:
    """What is said of kept runs rests on no catalogue of the user's."""
    from ckptcost.catalog.store import Catalog
    from ckptcost.cli import study_flags
    from ckptcost.questions.results import StudyResult

    return study_flags.answer(StudyResult(study, Catalog()), options)
