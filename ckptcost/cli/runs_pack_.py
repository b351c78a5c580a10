"""`ckptcost runs pack`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ckptcost.runs.store import Found

EPILOG = """\
examples:
  ckptcost runs pack last -o last-run  # needs pip install 'ckptcost[parquet]'
  ckptcost runs pack last --store /shared/fleet --label team=infra
  ckptcost runs pack --all --store /shared/fleet   # what is new of all of them
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    from ckptcost.cli import runs_list_, study_flags

    parser.add_argument(
        "run_name",
        nargs="?",
        metavar="RUN",
        help='a folder or file, "last", or the beginning of an id',
    )
    runs_list_.within(parser)
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
    study_flags.add(parser, gates=False)


def run(options: argparse.Namespace) -> int:
    from ckptcost.cli import runs_list_, study_flags
    from ckptcost.errors import InputError

    study_flags.fits(options)
    if options.store is not None:
        return _stored(options)
    for flag in ("all", "job", "label"):
        if getattr(options, flag):
            raise InputError(
                "belongs to a store", where=f"--{flag}", remedy="ckptcost runs pack --store URL"
            )
    if options.run_name is None:
        raise InputError("names no run", where="runs pack", remedy="e.g. ckptcost runs pack last")
    return _pack(options, runs_list_.found_of(options))


def _pack(options: argparse.Namespace, found: Found) -> int:
    """The folder that -o names is written; what is said of it goes to stdout."""
    import os
    from pathlib import Path

    from ckptcost.cli import runs_list_
    from ckptcost.errors import OutputError
    from ckptcost.report.parquet import pack
    from ckptcost.report.studies.runs import packed_of

    if options.output == "":
        raise OutputError("-o names no folder")
    name = found.path.resolve().name.removesuffix(".jsonl")
    target = Path(os.path.realpath(options.output or f"{name}-parquet"))
    study = packed_of(pack(found.path, target, found.run, options.force))
    options.output = None
    return runs_list_.answer(study, options)


def _stored(options: argparse.Namespace) -> int:
    """What is new of a run, or of all, goes into a store; a run that cannot be read is named, and
    the others go on."""
    import sys

    from ckptcost.cli.runs_list_ import answer, found_of, within_of
    from ckptcost.errors import InputError
    from ckptcost.fleet.packing import Asked, beside, packed, study_of
    from ckptcost.fleet.store import open_store
    from ckptcost.runs import store
    from ckptcost.runs.job_facts import labels_of
    from ckptcost.runs.summary import one_of

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
    try:
        labels = labels_of(options.label)
    except InputError as error:
        raise error.at("--label") from None
    unread: list[str] = []
    if options.all:
        listing = store.kept(within_of(options))
        runs, unread = listing.runs, listing.unread
    else:
        found = found_of(options)
        runs = beside(one_of(found.path, found.run), store.kept(found.path.resolve().parent).runs)
    packing = packed(
        open_store(options.store, make=True), runs, Asked((options.job or "").strip(), labels)
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
