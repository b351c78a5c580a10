"""Run a command, or follow a process that runs already, and record what its checkpoints take."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from ckptcost.first.errors import Argument, InputError, MeterUnavailable
from ckptcost.first.jobs.command import CommandEnd, WrappedCommand
from ckptcost.first.jobs.instruments import REPLAY, Instruments, instruments
from ckptcost.first.jobs.observe import Observer, WatchOptions
from ckptcost.first.jobs.progress import KnownSave
from ckptcost.first.meters.found import Wanted
from ckptcost.first.meters.process import written_of
from ckptcost.first.meters.writeback import dirty_limit_of_host
from ckptcost.first.runs.edges import ending
from ckptcost.first.runs.election import task_of
from ckptcost.first.watch.output import Relay, Tokens

TASKS_END_S = 5.0
"""how long the others of a job's tasks are waited for"""


class WrappedRun(NamedTuple):
    """A run on disk, and how the job ended."""

    folder: Path
    run_id: str
    ended: CommandEnd | None
    """None of a process that was only followed"""
    saves: int
    troubles: tuple[str, ...]
    why_over: str = ""


def tools_of(meters: str, wanted: Wanted, least: int = 1) -> Instruments:
    """This machine's meters. Raises MeterUnavailable where fewer than `least` answer, for what is
    recorded is readings."""
    if meters.startswith(REPLAY) or "simulated" in meters.split(","):
        raise InputError(
            "a job runs on this machine, so its meters are this machine's",
            where=Argument("meters"),
            remedy="leave it out, or name meters",
        )
    tools = instruments(meters, wanted, 0.0)
    if len(tools.meters) < least:
        raise MeterUnavailable("no meter answers here", "`ckptcost doctor` says what would help")
    return tools


def beside(wanted: Wanted, look: WatchOptions) -> Wanted:
    """Only the disk that the checkpoints go to is read; the folder may come to be later."""
    if not look.watch:
        return wanted
    return replace(
        wanted,
        directory=next(
            (path for path in (look.watch[0], *look.watch[0].parents) if path.is_dir()), None
        ),
    )


def wrap(
    argv: Sequence[str],
    meters: str,
    wanted: Wanted,
    look: WatchOptions,
    directory: Path | None = None,
    *,
    tokens: Tokens | None = None,
    said: Callable[[KnownSave], None] | None = None,
    waiting: Callable[[int], None] | None = None,
    mask: set[int] | None = None,
    purpose: str = "",
) -> WrappedRun:
    """Run it to its end. Its exit status is in `ended`; nothing of ours makes it fail. `mask`: as
    `WrappedCommand` has it.

    Of a job's tasks that a launcher started, each with a recorder, one of each node reads the
    meters; together they write one run.
    """
    environ = os.environ
    command = WrappedCommand(argv, mask)
    command.check(environ.get("PATH"))
    command.hold()
    observer: Observer | None = None
    try:
        task = task_of(environ)
        tools = partial(tools_of, meters, beside(wanted, look))
        observer = Observer(
            tools() if task is None else tools,
            look,
            directory,
            said=said,
            environ=environ,
            task=task,
            alone=True,
            purpose=purpose,
        )
        additions = observer.start()
        relay = _listening(tokens, observer) if tokens is not None else None
        observer.begin(command=command_text(argv), **_page_cache_limit())
        pid = command.start({**environ, **additions}, None if relay is None else relay.child_fd)
        observer.follow(pid, whole=True)
        if relay is not None:
            relay.start()
        ended = command.wait(
            observer.look, 2.0, resized=None if relay is None else _resizing(relay, pid)
        )
        if relay is not None:
            relay.finish()
            observer.problems += filter(None, [relay.problem])
        observer.over(
            ended.at_ns,
            command.stopped_by_user,
            waiting,
            exit_status=ended.status,
            written_bytes=written_of(ended.usage),
        )
        if task is not None and observer.reads and not wanted.every_gpu:
            observer.problems += others_gpus(environ)
        observer.close()
        return _wrapped_run(observer, ended)
    finally:
        if observer is not None:
            observer.close()
        command.release()


def _page_cache_limit() -> dict[str, Any]:
    limit = dirty_limit_of_host()
    return {} if limit is None else {"dirty_limit_bytes": limit}


def others_gpus(environ: Mapping[str, str]) -> list[str]:
    """Where a launcher gives each task its own GPUs, the one that reads for all sees no others.

    >>> others_gpus({"CUDA_VISIBLE_DEVICES": "2", "SLURM_GPUS_ON_NODE": "4"})[0][:52]
    'only 1 of the 4 GPUs that the job has on this node i'
    >>> others_gpus({"CUDA_VISIBLE_DEVICES": "0,1,2,3", "SLURM_GPUS_ON_NODE": "4"})
    []
    """
    seen, there = environ.get("CUDA_VISIBLE_DEVICES", ""), environ.get("SLURM_GPUS_ON_NODE", "")
    count = len(seen.split(","))
    if not seen or not there.isdigit() or count >= int(there):
        return []
    which = (
        f"only {count} of the {there} GPUs that the job has on this node"
        f" {'is' if count == 1 else 'are'} read"
    )
    return [
        f"{which}: give --gpus all where the job has the node alone, or --gpu-bind=none to srun"
    ]


def wait_for_tasks(taken: WrappedRun) -> bool:
    """Until all tasks that record into this folder have ended their files; one that was killed
    never does."""
    until_s = time.monotonic() + TASKS_END_S
    while True:
        # parts of one recorder in their order: .1000 after .999
        files = sorted(taken.folder.glob("*.jsonl"), key=lambda file: (len(file.name), file.name))
        lasts = {file.name.rsplit(".", 2)[0]: file for file in files}
        if all(ending(file).ended for file in lasts.values()):
            return True
        if time.monotonic() >= until_s:
            return False
        time.sleep(0.1)


def _listening(tokens: Tokens, observer: Observer) -> Relay:
    """The command's output passes through us, and its lines are marks."""

    def seen(data: bytes, t_ns: int) -> None:
        for token in tokens.feed(data):
            observer.tell(token.name, token.window or "output", by="output", t_ns=t_ns)

    return Relay(seen)


def _resizing(relay: Relay, pid: int) -> Callable[[], None]:
    def resize() -> None:
        if relay.resize():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGWINCH)

    return resize


def command_text(argv: Sequence[str]) -> str:
    """The command without folders: a run must not tell where its author keeps things."""
    return " ".join(
        [
            os.path.basename(argv[0]),
            *(os.path.basename(word) if word.startswith("/") else word for word in argv[1:]),
        ]
    )[:500]


def attach(
    pid: int | None,
    meters: str,
    wanted: Wanted,
    look: WatchOptions,
    for_s: float | None = None,
    directory: Path | None = None,
    *,
    said: Callable[[KnownSave], None] | None = None,
    tick: Callable[[Observer], None] | None = None,
) -> WrappedRun:
    """Follow a process until it ends, the time is over, or the user interrupts; without one, the
    folders of `look` alone."""
    process = None if pid is None else open_process(pid)
    observer: Observer | None = None
    try:
        tools = tools_of(meters, replace(beside(wanted, look), pid=pid))
        observer = Observer(tools, look, directory, said=said, alone=True)
        observer.start(listen=False)
        if pid is None:
            observer.begin(watched=", ".join(path.name for path in look.watch))
        else:
            observer.begin(attached=pid)
            observer.follow(pid)
        until_s = inf if for_s is None else time.monotonic() + for_s
        why = _look_until(until_s, process, observer, tick)
        observer.over(
            time.monotonic_ns(), _asleep if why == "the process ended" else _no_wait, why=why
        )
    finally:
        if observer is not None:
            observer.close()
        if process is not None:
            os.close(process)
    return _wrapped_run(observer, None, why)


def _look_until(
    until_s: float,
    process: int | None,
    observer: Observer,
    tick: Callable[[Observer], None] | None,
) -> str:
    """Why it is over, in words."""
    try:
        while time.monotonic() < until_s:
            if process is not None and _is_over(process):
                return "the process ended"
            observer.look()
            if tick is not None:
                tick(observer)
            time.sleep(max(min(0.25, until_s - time.monotonic()), 0.0))
    except KeyboardInterrupt:
        return "interrupted"
    return "time is over"


def _wrapped_run(observer: Observer, ended: CommandEnd | None, why: str = "") -> WrappedRun:
    return WrappedRun(
        observer.folder,
        observer.run_id,
        ended,
        observer.progress.saves,
        tuple(observer.troubles()),
        why,
    )


def open_process(pid: int) -> int:
    """The process itself, whatever becomes of its number. Raises InputError."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        process = -1
    except OSError as error:
        raise InputError(
            f"cannot be followed ({error.strerror})",
            where=f"PID {pid}",
            remedy="give a process, not a thread",
        ) from None
    if process >= 0 and not _is_over(process):
        return process
    if process >= 0:
        os.close(process)
    raise InputError(
        "there is no such process",
        where=f"PID {pid}",
        remedy="`ps` lists them; a job in a container has another number outside",
    )


def _is_over(process: int) -> bool:
    """Its main program has ended, whether or not its parent has taken note."""
    return bool(select.select([process], [], [], 0)[0])


def _asleep(for_s: float) -> bool:
    try:
        time.sleep(for_s)
    except KeyboardInterrupt:
        return True
    return False


def _no_wait(for_s: float) -> bool:
    """The job goes on writing; only the margin is waited for."""
    return for_s <= 0.1 or _asleep(for_s)
