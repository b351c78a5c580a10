"""`ckptcost run`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ckptcost.jobs.wrap import WrappedRun

EPILOG = """\
examples:
  ckptcost run -- python train.py
  ckptcost run --watch /scratch/ckpt -- torchrun --nproc-per-node 8 train.py
  ckptcost run --watch ckpt -f json -o cost.json -- python train.py
  ckptcost run --token begin='saving (.+)' --token returned='saved (.+)' -- ./x
then: ckptcost report last
The command's output, signals and exit code pass through untouched. Without
--watch its own writing shows when it saves; `with ckptcost.window(...):`
in the script says it exactly (docs/howto/hooks.md).
One for each task of a launcher (srun, mpirun): they write one run, in which
one of each node reads the meters (docs/howto/fleet-setup.md).
exit code: the command's; 126 or 127 where it cannot be run; before that 2, 4
or 5 as elsewhere
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    from ckptcost.cli import meter_flags, study_flags, watch_flags

    watch_flags.add(parser)
    parser.add_argument(
        "--token",
        action="append",
        default=[],
        metavar="MARK=REGEX",
        help=(
            "a line of the command's output that sets a mark: begin, written, returned, durable"
            " ...; may repeat"
        ),
    )
    parser.add_argument(
        "--record",
        metavar="DIR",
        help="where to keep the run (default: a folder of its own among your runs)",
    )
    parser.add_argument(
        "-q",
        "--quiet",
        action="store_true",
        help="say nothing on stderr while it runs and at its end",
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write a report of the run to FILE at the end"
    )
    parser.add_argument(
        "-f",
        "--format",
        choices=("text", "json", "csv", "md"),
        default="text",
        help="of that report (default: text)",
    )
    study_flags.add_full(parser)
    meter_flags.add(parser, directory=False, pid=False, need=False)
    parser.add_argument(
        "command",
        nargs=argparse.REMAINDER,
        metavar="-- COMMAND ...",
        help="what to run, with its arguments",
    )


def run(options: argparse.Namespace) -> int:
    from ckptcost.jobs.held import hold, let_go

    mask = hold()  # before anything imports numpy, which starts threads
    try:
        return _run(options, mask, let_go)
    finally:
        let_go(mask)


def _run(options: argparse.Namespace, mask: set[int], let_go: Callable[[set[int]], None]) -> int:
    from pathlib import Path

    from ckptcost.cli import meter_flags, watch_flags
    from ckptcost.errors import InputError, OutputError
    from ckptcost.jobs.command import end_alike
    from ckptcost.jobs.wrap import wait_for_tasks, wrap
    from ckptcost.runs.election import task_of
    from ckptcost.watch.output import Tokens

    words = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not words:
        raise InputError(
            "names no command", where="ckptcost run", remedy="e.g. ckptcost run -- python train.py"
        )
    if options.record == "":
        raise InputError("names no folder", where="--record")
    if (
        options.output
        and options.output != "-"
        and not Path(options.output).absolute().parent.is_dir()
    ):
        raise OutputError(f"{options.output}: there is no such folder to write the report into")
    look = watch_flags.look_of(options)
    tokens = Tokens([_token(text) for text in options.token]) if options.token else None
    folder = None if options.record is None else Path(options.record)
    task = task_of()
    speaks = task is None or task.rank == 0  # one report for all of a job's tasks
    talks = speaks and not options.quiet and sys.stderr is not None and sys.stderr.isatty()
    taken = wrap(
        words,
        options.meters,
        meter_flags.wanted_of(options),
        look,
        folder,
        tokens=tokens,
        said=watch_flags.say_save if talks else None,
        waiting=watch_flags.say_waiting if talks else None,
        mask=mask,
    )
    let_go(mask)
    if task is not None and speaks and (talks or options.output):
        wait_for_tasks(taken)
    _tell(taken, options, talks, speaks)
    assert taken.ended is not None
    return end_alike(taken.ended)


def _token(text: str) -> tuple[str, str]:
    from ckptcost.core.phases import MARKS
    from ckptcost.errors import InputError, UnknownName

    name, equals, pattern = text.partition("=")
    if not equals or not pattern:
        raise InputError(
            "expected MARK=REGEX",
            where=f"--token {text}",
            remedy="e.g. --token begin='saving (?P<window>\\S+)'",
        )
    if name not in MARKS:
        raise UnknownName("mark", name, MARKS, where="--token")
    return name, pattern


def _tell(taken: WrappedRun, options: argparse.Namespace, talks: bool, speaks: bool) -> None:
    """The report where it was asked for, a summary on a terminal, else the run's name: `--quiet` is
    for stderr alone. The job is over: nothing here may change its exit code."""
    from ckptcost.cli import watch_flags
    from ckptcost.errors import CkptcostError

    loud = not options.quiet and sys.stderr is not None
    try:
        for trouble in dict.fromkeys(taken.troubles) if loud else ():
            print(f"ckptcost: {trouble}", file=sys.stderr)
        if loud and speaks and not talks:
            watch_flags.say_headline(taken)
            print(watch_flags.where_it_is(taken), file=sys.stderr)
        if speaks:
            watch_flags.report(taken, options, talks)
    except (CkptcostError, OSError) as error:
        print(f"ckptcost: {error}", file=sys.stderr)
