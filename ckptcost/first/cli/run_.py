"""`ckptcost run`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from ckptcost.first.cli import answers, flags

if TYPE_CHECKING:
    from ckptcost.first.jobs.progress import KnownSave
    from ckptcost.first.jobs.wrap import WrappedRun
    from ckptcost.first.watch.output import Tokens

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
    flags.add_watch(parser)
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
    flags.add_output(parser, "write a report of the run to FILE at the end")
    parser.add_argument(
        "-f",
        "--format",
        choices=("text", "json", "csv", "md"),
        default="text",
        help="of that report (default: text)",
    )
    flags.add_full(parser)
    flags.add_meters(parser, directory=False, pid=False, need=False)
    parser.add_argument(
        "command",
        nargs=argparse.REMAINDER,
        metavar="-- COMMAND ...",
        help="what to run, with its arguments",
    )


def run(options: argparse.Namespace) -> int:
    from ckptcost.first.jobs.held import hold, let_go

    mask = hold()  # before anything imports numpy, which starts threads
    try:
        return _run(options, mask, let_go)
    finally:
        let_go(mask)


def _run(options: argparse.Namespace, mask: set[int], let_go: Callable[[set[int]], None]) -> int:
    from pathlib import Path

    from ckptcost.first.cli.status import is_watched
    from ckptcost.first.jobs.command import end_alike
    from ckptcost.first.jobs.wrap import wait_for_tasks, wrap
    from ckptcost.first.runs.election import task_of

    words = _words_of(options)
    look = flags.look_of(options)
    tokens = _tokens_of(options)
    task = task_of()
    speaks = task is None or task.rank == 0  # one report for all of a job's tasks
    talks = speaks and not options.quiet and is_watched()
    said, waiting = (say_save, say_waiting) if talks else (None, None)
    taken = wrap(
        words,
        options.meters,
        flags.wanted_of(options),
        look,
        None if options.record is None else Path(options.record),
        tokens=tokens,
        said=said,
        waiting=waiting,
        mask=mask,
    )
    let_go(mask)
    if task is not None and speaks and (talks or options.output):
        wait_for_tasks(taken)
    _tell(taken, options, talks, speaks)
    assert taken.ended is not None
    return end_alike(taken.ended)


def _tokens_of(options: argparse.Namespace) -> Tokens | None:
    from ckptcost.first.watch.output import Tokens

    return Tokens([_token(text) for text in options.token]) if options.token else None


def _words_of(options: argparse.Namespace) -> list[str]:
    """The command's words; refuses what could not be kept or written at its end."""
    from pathlib import Path

    from ckptcost.first.errors import InputError, OutputError

    words: list[str] = options.command[options.command[:1] == ["--"] :]
    if not words:
        raise InputError(
            "names no command", where="ckptcost run", remedy="e.g. ckptcost run -- python train.py"
        )
    if options.record == "":
        raise InputError("names no folder", where="--record")
    into = options.output
    if into and into != "-" and not Path(into).absolute().parent.is_dir():
        raise OutputError(f"{into}: there is no such folder to write the report into")
    return words


def _token(text: str) -> tuple[str, str]:
    from ckptcost.first.core.phases import MARKS
    from ckptcost.first.errors import InputError, UnknownName

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
    from ckptcost.first.errors import CkptcostError

    loud = not options.quiet and sys.stderr is not None
    try:
        for trouble in dict.fromkeys(taken.troubles) if loud else ():
            print(f"ckptcost: {trouble}", file=sys.stderr)
        if loud and speaks and not talks:
            say_headline(taken)
            print(where_it_is(taken), file=sys.stderr)
        if speaks:
            report(taken, options, talks)
    except (CkptcostError, OSError) as error:
        print(f"ckptcost: {error}", file=sys.stderr)


def say_save(one: KnownSave) -> None:
    from ckptcost.first.present.saves import save_text

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
    from ckptcost.first.questions.review import of_path

    if not (talks or options.output):
        return
    result = of_path(taken.folder)
    study = result.study
    if options.output:
        options.table = None
        answers.answer(result, options)
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
    from ckptcost.first.errors import CkptcostError
    from ckptcost.first.questions.review import headline_of

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
