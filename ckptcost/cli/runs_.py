"""`ckptcost runs`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from ckptcost.runs.store import Found

EPILOG = """\
examples:
  ckptcost runs                          # all of them, the latest first
  ckptcost runs show last
  ckptcost runs show 3f9a              # the beginning of an id, or of a name
  ckptcost runs list -f csv
  ckptcost runs pack last -o last-run  # needs pip install 'ckptcost[parquet]'
  ckptcost runs list --dir /scratch/runs
  ckptcost runs pack last --store /shared/fleet --label team=infra
  ckptcost runs pack --all --store /shared/fleet   # what is new of all of them
Kept in $CKPTCOST_RUNS, else $XDG_DATA_HOME/ckptcost/runs, else
~/.local/share/ckptcost/runs.
To remove a run, remove its folder.
"""
VERBS = {
    "list": "all of them",
    "show": "one, with its marks counted",
    "pack": "one as a folder of Parquet files, or into a store with others",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    from ckptcost.cli import study_flags

    parser.add_argument(
        "verb",
        nargs="?",
        default="list",
        metavar="VERB",
        help="; ".join(f"{verb}: {what}" for verb, what in VERBS.items()),
    )
    parser.add_argument(
        "run_name",
        nargs="?",
        metavar="RUN",
        help='show, pack: a folder or file, "last", or the beginning of an id',
    )
    parser.add_argument("--dir", metavar="DIR", help="look there instead of where runs are kept")
    parser.add_argument("--force", action="store_true", help="pack: replace an older one")
    parser.add_argument(
        "-o",
        "--output",
        metavar="PATH",
        help=(
            "list, show, pack --store: a file instead of stdout; pack: the folder (default:"
            " RUN-parquet)"
        ),
    )
    parser.add_argument(
        "--store",
        metavar="URL",
        help="pack: into this store of many runs, made where there is none; a folder or a URL",
    )
    parser.add_argument(
        "--all", action="store_true", help="pack --store: every run that is kept, instead of RUN"
    )
    parser.add_argument(
        "--job",
        metavar="ID",
        help="pack --store: whose run it is (default: what the launcher said, else the run)",
    )
    parser.add_argument(
        "--label",
        action="append",
        default=[],
        metavar="NAME=TEXT",
        help=(
            "pack --store: team, cluster, model, tier or any other; an empty TEXT takes it off; may"
            " repeat"
        ),
    )
    study_flags.add(parser, gates=False)


def run(options: argparse.Namespace) -> int:
    from ckptcost.catalog.store import Catalog
    from ckptcost.cli import study_flags
    from ckptcost.errors import InputError, UnknownName
    from ckptcost.report.studies import runs as studies
    from ckptcost.runs import store
    from ckptcost.runs.summary import counted, one_of, summary_of

    study_flags.fits(options)
    if options.verb not in VERBS:
        raise UnknownName("verb", options.verb, VERBS)
    if options.force and options.verb != "pack":
        raise InputError("belongs to pack", where="--force")
    if options.store is not None:
        return _stored(options)
    for flag in ("all", "job", "label"):
        if getattr(options, flag):
            raise InputError(
                "belongs to a store", where=f"--{flag}", remedy="ckptcost runs pack --store URL"
            )
    if options.verb == "list":
        if options.run_name is not None:
            raise InputError(
                "lists all runs", where="list", remedy=f"ckptcost runs show {options.run_name}"
            )
        within = within_of(options)
        listing = store.kept(within)
        study = studies.list_of(
            [summary_of(kept) for kept in listing.runs], listing.unread, within or store.home()
        )
        return study_flags.answer(study, options, Catalog(), spoken(options), [])
    if options.run_name is None:
        raise InputError(
            "names no run",
            where=f"runs {options.verb}",
            remedy=f"e.g. ckptcost runs {options.verb} last",
        )
    found = found_of(options)
    if options.verb == "pack":
        return _pack(options, found)
    kept = one_of(found.path, found.run)
    return study_flags.answer(
        studies.show_of(summary_of(kept), counted(kept)), options, Catalog(), spoken(options), []
    )


def _pack(options: argparse.Namespace, found: Found) -> int:
    """The folder that -o names is written; what is said of it goes to stdout."""
    import os
    from pathlib import Path

    from ckptcost.catalog.store import Catalog
    from ckptcost.cli import study_flags
    from ckptcost.errors import OutputError
    from ckptcost.report.parquet import pack
    from ckptcost.report.studies.runs import packed_of

    if options.output == "":
        raise OutputError("-o names no folder")
    name = found.path.resolve().name.removesuffix(".jsonl")
    target = Path(os.path.realpath(options.output or f"{name}-parquet"))
    words = spoken(options)
    study = packed_of(pack(found.path, target, found.run, options.force))
    options.output = None
    return study_flags.answer(study, options, Catalog(), words, [])


def _stored(options: argparse.Namespace) -> int:
    """What is new of a run, or of all, goes into a store; a run that cannot be read is named, and
    the others go on."""
    import sys

    from ckptcost.catalog.store import Catalog
    from ckptcost.cli import study_flags
    from ckptcost.errors import InputError
    from ckptcost.fleet.kept.store import open_store
    from ckptcost.fleet.pack.packed import study_of
    from ckptcost.fleet.pack.packing import Asked, beside, packed
    from ckptcost.runs import store
    from ckptcost.runs.job_facts import labels_of
    from ckptcost.runs.summary import one_of

    if options.verb != "pack":
        raise InputError(
            "belongs to pack", where="--store", remedy="ckptcost runs pack RUN --store URL"
        )
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
    words = spoken(options)
    packing = packed(
        open_store(options.store, make=True), runs, Asked((options.job or "").strip(), labels)
    )
    for failed in packing.failed:
        print(f"ckptcost: {failed.name}: {failed.error}", file=sys.stderr)
    for text in unread:
        print(f"ckptcost: {text}", file=sys.stderr)
    study_flags.answer(study_of(packing, unread), options, Catalog(), words, [])
    codes = [failed.error.exit_code for failed in packing.failed] + [
        InputError.exit_code for _ in unread
    ]
    return min(codes, default=0)


def within_of(options: argparse.Namespace) -> Path | None:
    """The folder that --dir names; None: where runs are kept."""
    import os
    from pathlib import Path

    from ckptcost.errors import InputError

    if options.dir is None:
        return None
    if not os.path.isdir(options.dir):
        raise InputError(
            "no such folder", where=f"--dir {options.dir}", remedy="name one that holds runs"
        )
    return Path(options.dir)


def found_of(options: argparse.Namespace) -> Found:
    from ckptcost.runs import store

    return store.found(options.run_name, within_of(options))


def spoken(options: argparse.Namespace) -> list[str]:
    """The command as given, without folders: a document must not tell where its author keeps
    things."""
    import os

    words = list(options.command_line)
    for text in filter(None, (options.run_name, options.dir, options.output, options.store)):
        words = [
            (
                word[: -len(text)] + os.path.basename(os.path.normpath(text))
                if word.endswith(text)
                else word
            )
            for word in words
        ]
    return words
