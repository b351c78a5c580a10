"""Flags that `run` and `attach` share: where checkpoints are looked for, and what is said of
them."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ckptcost.jobs.observe import Look
    from ckptcost.jobs.progress import KnownSave
    from ckptcost.jobs.wrap import WrappedRun


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--watch",
        action="append",
        default=[],
        metavar="DIR",
        help="where the job puts its checkpoints; may repeat, and may come to be later",
    )
    parser.add_argument(
        "--least",
        default="1 MB",
        metavar="SIZE",
        help="what is smaller is no checkpoint (default: 1 MB)",
    )
    parser.add_argument(
        "--gap",
        default="1 s",
        metavar="TIME",
        help="files within such a silence belong together (default: 1 s)",
    )
    parser.add_argument(
        "--settle",
        default=None,
        metavar="TIME",
        help=(
            "how long to wait at the end for what is still in the page cache (default: 40 s; 0 s:"
            " not at all)"
        ),
    )


def look_of(options: argparse.Namespace) -> Look:
    from pathlib import Path

    from ckptcost.catalog.schema import flag_value
    from ckptcost.errors import InputError
    from ckptcost.jobs.observe import SETTLE_S, Look

    watch = []
    for text in options.watch:
        path = Path(text).absolute()
        if not text or (path.exists() and not path.is_dir()):
            raise InputError(
                "is no folder",
                where=f"--watch {text}",
                remedy="name the folder that checkpoints are written to",
            )
        watch.append(path)
    least = flag_value("--least", options.least, "bytes")
    gap_s = flag_value("--gap", options.gap, "s")
    settle_s = SETTLE_S if options.settle is None else flag_value("--settle", options.settle, "s")
    if not (least >= 0 and 0 < gap_s <= 3600 and 0 <= settle_s <= 86400):
        raise InputError(
            "out of range",
            where="--least, --gap or --settle",
            remedy="sizes from 0, gaps up to an hour, settling up to a day",
        )
    return Look(tuple(dict.fromkeys(watch)), least_bytes=least, gap_s=gap_s, settle_s=settle_s)


def say_save(one: KnownSave) -> None:
    from ckptcost.present.saves import save_text

    print(f"ckptcost: {save_text(one)}", file=sys.stderr, flush=True)


def say_waiting(pending: int) -> None:
    which = "the last checkpoint is" if pending == 1 else f"{pending} checkpoints are"
    print(
        f"ckptcost: {which} not on the storage yet; waiting (Ctrl-C ends that)",
        file=sys.stderr,
        flush=True,
    )


def report(taken: WrappedRun, options: argparse.Namespace, talks: bool) -> None:
    """The report in a file where one is named; on a terminal what it found, and where the run
    is."""
    from ckptcost.cli import study_flags
    from ckptcost.questions.review import of_path

    if not (talks or options.output):
        return
    result = of_path(taken.folder)
    study = result.study
    if options.output:
        options.table = None
        study_flags.answer(result, options)
    if talks:
        for finding in study.findings:
            print(f"ckptcost: {finding}", file=sys.stderr)
        for _, warning in study.warnings:
            print(f"ckptcost: note: {warning}", file=sys.stderr)
        say_headline(taken, reported=True)
        print(where_it_is(taken), file=sys.stderr)


def say_headline(taken: WrappedRun, *, reported: bool = False) -> None:
    """What the saves cost in training time, and how to ask how often to save; or why none was
    found, unless the report said so."""
    from ckptcost.errors import CkptcostError
    from ckptcost.questions.review import headline_of

    try:
        said, nothing = headline_of(taken.folder)
    except (CkptcostError, OSError):  # the report says what is wrong
        return
    if nothing and not reported:
        print(f"ckptcost: {nothing}", file=sys.stderr)
    if said:
        ask = f"ckptcost report {taken.run_id[:8]} --gpus N"
        print(f"ckptcost: {said}; how often to save: {ask}", file=sys.stderr)


def where_it_is(taken: WrappedRun) -> str:
    """The line that leads back to a run."""
    name = taken.run_id[:8]
    return f"ckptcost: kept as run {name}; all of it: ckptcost report {name}"
