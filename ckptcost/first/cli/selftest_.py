"""`ckptcost selftest`."""

from __future__ import annotations

import argparse

from ckptcost.first.cli import answers, flags

EPILOG = """\
examples:
  ckptcost selftest /scratch/ckpt
  ckptcost selftest /scratch/ckpt --rounds 3 --size "256 MB" --within "4 min"
  ckptcost selftest . -f md -o trusted.md
Writes only into a hidden folder of its own in DIR and takes it away again, also
when it is killed.
exit codes: 0 all agrees, 1 something disagrees by more than its stated error,
2 wrong input, 4 the storage refused (full, no permission), 5 no meter answers
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "directory",
        metavar="DIR",
        nargs="?",
        default=".",
        help="the folder that checkpoints go to (default: the current one)",
    )
    parser.add_argument(
        "--size", default="32 MB", metavar="SIZE", help='of one save (default: "32 MB")'
    )
    parser.add_argument(
        "--rounds", type=int, default=1, metavar="N", help="of the five ways to save (default: 1)"
    )
    parser.add_argument(
        "--within",
        default="90 s",
        metavar="TIME",
        help="no save is begun that would not be over then (default: 90 s)",
    )
    parser.add_argument(
        "--record",
        metavar="DIR",
        help="where to keep the run (default: a folder of its own among your runs)",
    )
    parser.add_argument(
        "--no-load",
        action="store_true",
        help=(
            "make no load beside the meters of joules (it takes up to 80 s, on every core but one"
            " and every GPU)"
        ),
    )
    flags.add_output(parser, "write to FILE instead of stdout")
    flags.add_meters(parser, directory=False, pid=False, need=False)
    flags.add_study(parser, gates=False)


def run(options: argparse.Namespace) -> int:
    from ckptcost.first.jobs.held import hold, let_go

    mask = hold()  # before anything imports numpy, which starts threads
    try:
        return _run(options, mask)
    finally:
        let_go(mask)


def _run(options: argparse.Namespace, mask: set[int]) -> int:
    from pathlib import Path

    from ckptcost.first.catalog.schema import flag_value
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.errors import InputError
    from ckptcost.first.jobs.selftest import SelftestRequest, selftest
    from ckptcost.first.questions.results import StudyResult
    from ckptcost.first.report.studies.selftest import study_of

    answers.fits(options)
    if options.record == "":
        raise InputError("names no folder", where="--record")
    if not options.directory:
        raise InputError("names no folder", where="DIR")
    if not 1 <= options.rounds <= 100:
        raise InputError("expected 1 to 100", where="--rounds")
    size_bytes = flag_value("--size", options.size, "bytes")
    if not 1e6 <= size_bytes <= 1e12:
        raise InputError("expected 1 MB to 1 TB", where="--size")
    within_s = flag_value("--within", options.within, "s")
    if not 1 <= within_s <= 86400:
        raise InputError("expected 1 s to a day", where="--within")
    asked = SelftestRequest(
        Path(options.directory), round(size_bytes), options.rounds, within_s, not options.no_load
    )
    tested = selftest(
        asked,
        options.meters,
        flags.wanted_of(options, directory=None),
        None if options.record is None else Path(options.record),
        mask,
    )
    answers.answer(StudyResult(study_of(tested), Catalog()), options)
    return 0 if tested.agrees else 1
