"""`ckptcost attach`."""

from __future__ import annotations

import argparse
import sys

from ckptcost.first.cli import answers, flags

EPILOG = """\
examples:
  ckptcost attach 4711 --watch /scratch/ckpt
  ckptcost attach $(pgrep -f train.py) --for "10 min" -f json -o cost.json
  ckptcost attach --watch /scratch/ckpt --for "1 h"   # a folder alone
Ends with the process, after --for, or with Ctrl-C: what there is counts. The
process is never touched. Without one nobody knows how long training stood
still: a folder tells when a checkpoint was written and when it was safe.
exit code 2: there is no such process; 5: a kind that --need names is not
measured here
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "pid",
        type=int,
        nargs="?",
        metavar="PID",
        help=(
            "the job's process; its children count with it; may be left out where --watch names a"
            " folder"
        ),
    )
    parser.add_argument(
        "--for",
        dest="length",
        metavar="TIME",
        help='how long, e.g. "10 min" (default: until it ends)',
    )
    flags.add_watch(parser)
    parser.add_argument(
        "--record",
        metavar="DIR",
        help="where to keep the run (default: a folder of its own among your runs)",
    )
    parser.add_argument(
        "-q",
        "--quiet",
        action="store_true",
        help="no status line and no line for each checkpoint on stderr",
    )
    flags.add_output(parser, "write to FILE instead of stdout")
    flags.add_meters(parser, directory=False, pid=False)
    flags.add_study(parser, gates=False)


def run(options: argparse.Namespace) -> int:
    from pathlib import Path

    from ckptcost.first.catalog.schema import flag_value
    from ckptcost.first.cli.status import StatusLine
    from ckptcost.first.errors import InputError
    from ckptcost.first.jobs.wrap import attach
    from ckptcost.first.questions.parameters import needed_kinds
    from ckptcost.first.questions.review import of_path

    answers.fits(options)
    if options.pid is None and not options.watch:
        raise InputError(
            "names no process",
            where="ckptcost attach",
            remedy="give its PID, or --watch DIR to watch a folder alone",
        )
    if options.pid is not None and options.pid <= 0:
        raise InputError("expected a process id", where="PID")
    seconds = None if options.length is None else flag_value("--for", options.length, "s")
    wanted, needed = flags.wanted_of(options), needed_kinds(options.need)
    folder = None if options.record is None else Path(options.record)
    status = StatusLine(sys.stderr, quiet=options.quiet)
    taken = attach(
        options.pid,
        options.meters,
        wanted,
        flags.look_of(options),
        seconds,
        folder,
        said=status.save,
        tick=status.tick,
    )
    status.clear()
    for trouble in dict.fromkeys(taken.troubles):
        print(f"ckptcost: {trouble}", file=sys.stderr)
    result = of_path(taken.folder, need=needed)
    answers.answer(result, options)
    if not options.quiet:
        print(
            f"ckptcost: {taken.why_over}; kept as run {taken.run_id[:8]}: ckptcost report"
            f" {taken.run_id[:8]}",
            file=sys.stderr,
        )
    return answers.unmet(result.lacking)
