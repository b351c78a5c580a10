"""`ckptcost runs`: list, show and pack what was recorded; without a verb it lists."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ckptcost.first.cli import answers, flags

if TYPE_CHECKING:
    from ckptcost.first.report.study import Study
    from ckptcost.first.runs.store import Found

EPILOG = """\
verbs, each with its own --help:
  ckptcost runs list                   # all, the latest first; the default
  ckptcost runs show last
  ckptcost runs pack last -o last-run
Kept in $CKPTCOST_RUNS, else $XDG_DATA_HOME/ckptcost/runs, else
~/.local/share/ckptcost/runs.
To remove a run, remove its folder.
"""


EPILOG_LIST = """\
examples:
  ckptcost runs list
  ckptcost runs list --dir /scratch/runs -f csv
Kept in $CKPTCOST_RUNS, else $XDG_DATA_HOME/ckptcost/runs, else
~/.local/share/ckptcost/runs.
To remove a run, remove its folder.
"""


def arguments_list(parser: argparse.ArgumentParser) -> None:
    flags.add_within(parser)
    flags.add_study(parser, gates=False, output=True)


def run_list(options: argparse.Namespace) -> int:
    from ckptcost.first.questions.statements import folder_of_runs
    from ckptcost.first.report.studies.runs import list_of
    from ckptcost.first.runs import store
    from ckptcost.first.runs.summary import summary_of

    answers.fits(options)
    folder = folder_of_runs(options.directory)
    listing = store.list_runs(folder)
    runs = [summary_of(kept) for kept in listing.runs]
    return answer(list_of(runs, listing.unread, folder or store.home()), options)


def answer(study: Study, options: argparse.Namespace) -> int:
    """What is said of kept runs rests on no catalogue of the user's."""
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.questions.results import StudyResult

    return answers.answer(StudyResult(study, Catalog()), options)


EPILOG_SHOW = """\
examples:
  ckptcost runs show last
  ckptcost runs show 3f9a              # the beginning of an id, or of a name
  ckptcost runs show last -f csv --table meters
"""


def arguments_show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "run_name",
        metavar="RUN",
        help='a folder or file, "last" (of a job), or the beginning of an id',
    )
    flags.add_within(parser)
    flags.add_study(parser, gates=False, output=True)


def run_show(options: argparse.Namespace) -> int:
    from ckptcost.first.report.studies.runs import show_of
    from ckptcost.first.runs.summary import count_marks, one_of, summary_of

    answers.fits(options)
    found = flags.found_of(options)
    kept = one_of(found.path, found.run)
    return answer(show_of(summary_of(kept), count_marks(kept)), options)


EPILOG_PACK = """\
examples:
  ckptcost runs pack last -o last-run  # needs pip install 'ckptcost[parquet]'
  ckptcost runs pack last --store /shared/fleet --label team=infra
  ckptcost runs pack --all --store /shared/fleet   # what is new of all of them
"""


def arguments_pack(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "run_name",
        nargs="?",
        metavar="RUN",
        help='a folder or file, "last" (of a job), or the beginning of an id',
    )
    flags.add_within(parser)
    parser.add_argument("--force", action="store_true", help="replace an older folder")
    parser.add_argument(
        "-o",
        "--output",
        metavar="PATH",
        help="the folder (default: RUN-parquet); with --store a file instead of stdout",
    )
    parser.add_argument(
        "--store",
        metavar="URL",
        help="into this store of many runs, made where there is none; a folder or a URL",
    )
    parser.add_argument(
        "--all", action="store_true", help="with --store: every run that is kept, instead of RUN"
    )
    parser.add_argument(
        "--job",
        metavar="ID",
        help="with --store: whose run it is (default: what the launcher said, else the run)",
    )
    parser.add_argument(
        "--label",
        action="append",
        default=[],
        metavar="NAME=TEXT",
        help=(
            "with --store: team, cluster, model, tier or any other; an empty TEXT takes it off; may"
            " repeat"
        ),
    )
    flags.add_study(parser, gates=False)


def run_pack(options: argparse.Namespace) -> int:
    from ckptcost.first.errors import InputError

    answers.fits(options)
    if options.store is not None:
        return _pack_into_store(options)
    for flag in ("all", "job", "label"):
        if getattr(options, flag):
            raise InputError(
                "belongs to a store", where=f"--{flag}", remedy="ckptcost runs pack --store URL"
            )
    if options.run_name is None:
        raise InputError("names no run", where="runs pack", remedy="e.g. ckptcost runs pack last")
    return _pack(options, flags.found_of(options))


def _pack(options: argparse.Namespace, found: Found) -> int:
    """The folder that -o names is written; what is said of it goes to stdout."""
    import os
    from pathlib import Path

    from ckptcost.first.errors import OutputError
    from ckptcost.first.report.parquet import pack
    from ckptcost.first.report.studies.runs import packed_of

    if options.output == "":
        raise OutputError("-o names no folder")
    name = found.path.resolve().name.removesuffix(".jsonl")
    target = Path(os.path.realpath(options.output or f"{name}-parquet"))
    study = packed_of(pack(found.path, target, found.run, options.force))
    options.output = None
    return answer(study, options)


def _pack_into_store(options: argparse.Namespace) -> int:
    """What is new of a run, or of all, goes into a store; a run that cannot be read is named, and
    the others go on."""
    import sys

    from ckptcost.first.errors import InputError
    from ckptcost.first.fleet.packing import PackingRequest, beside, pack_runs, study_of
    from ckptcost.first.fleet.store import open_store
    from ckptcost.first.questions.statements import folder_of_runs
    from ckptcost.first.runs import store
    from ckptcost.first.runs.job_facts import labels_of
    from ckptcost.first.runs.summary import one_of

    _check_store(options)
    try:
        labels = labels_of(options.label)
    except InputError as error:
        raise error.at("--label") from None
    unread: list[str] = []
    if options.all:
        listing = store.list_runs(folder_of_runs(options.directory))
        runs, unread = listing.runs, listing.unread
    else:
        found = flags.found_of(options)
        runs = beside(
            one_of(found.path, found.run), store.list_runs(found.path.resolve().parent).runs
        )
    packing = pack_runs(
        open_store(options.store, make=True),
        runs,
        PackingRequest((options.job or "").strip(), labels),
    )
    for failed in packing.failed:
        print(f"ckptcost: {failed.name}: {failed.error}", file=sys.stderr)
    for text in unread:
        print(f"ckptcost: {text}", file=sys.stderr)
    answer(study_of(packing, unread), options)
    codes = [failed.error.exit_code for failed in packing.failed] + [
        InputError.exit_code for _ in unread
    ]
    return min(codes, default=0)


def _check_store(options: argparse.Namespace) -> None:
    from ckptcost.first.errors import InputError

    if options.force:
        raise InputError(
            "is of no use to a store: a run that grew is packed again",
            where="--force",
            remedy="leave it out",
        )
    if options.all == (options.run_name is not None):
        told = "names a run and all of them" if options.all else "names no run"
        raise InputError(told, where="runs pack --store", remedy="name a RUN, or say --all")
    if options.job is not None and not options.job.strip():
        raise InputError("names no job", where="--job")


arguments, run = arguments_list, run_list
