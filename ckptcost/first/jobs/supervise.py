"""A recording that runs beside something else: of a command, of a process, of a folder alone, or of
the machine.

Unlike `wrap`, which stands between a terminal and the command, it owns a thread and the command's
streams: the command's input is empty, and its output goes into a file beside the readings.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from math import nan
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ckptcost.first.errors import CkptcostError
from ckptcost.first.jobs.command import WrappedCommand, not_executable
from ckptcost.first.jobs.instruments import Instruments
from ckptcost.first.jobs.observe import Observer, WatchOptions
from ckptcost.first.jobs.progress import KnownSave
from ckptcost.first.jobs.wrap import command_text, open_process
from ckptcost.first.meters.process import written_of
from ckptcost.first.runs.sinks import Sink

OUTPUT = "output.txt"
"""beside the readings"""
PATIENCE_S = 10.0
"""a command that was told to end is killed after this"""
QUICK_S = 1.5
"""the same where this program ends itself: then the command is left to end alone"""
LOOK_S = 0.25
_LAST_BYTES = 16_384

Phase = Literal["new", "running", "stopping", "settling", "over"]


class What(NamedTuple):
    """Of these at most one; none: the machine alone."""

    argv: Sequence[str] = ()
    pid: int | None = None


class Supervisor:
    """`start`, then it goes on by itself; `stop` from any thread."""

    def __init__(
        self,
        what: What,
        tools: Instruments,
        look: WatchOptions,
        directory: Path | None = None,
        *,
        tee: Callable[[Sink], Sink] | None = None,
        said: Callable[[KnownSave], None] | None = None,
        environ: Mapping[str, str] = os.environ,
        patience_s: float = PATIENCE_S,
    ) -> None:
        """Raises NoCommand, or InputError for a process that is not there, before anything is
        begun."""
        self._what, self._environ, self._patience_s = what, environ, patience_s
        if what.argv:
            WrappedCommand(what.argv).check(environ.get("PATH"))
        self._process = -1 if what.pid is None else open_process(what.pid)
        try:
            self.observer = Observer(tools, look, directory, said=said, environ=environ, tee=tee)
        except BaseException:
            self._close_process()
            raise
        self.folder = self.observer.folder
        self.phase: Phase = "new"
        self.why = ""
        """how it ended, in words"""
        self.exit_status: int | None = None
        """of the command, as a shell has it"""
        self.problem = ""
        self._job: subprocess.Popen[bytes] | None = None
        self._usage_bytes: float | None = None
        self._stop = threading.Event()
        self._hurry = threading.Event()
        self._told_s = 0.0
        self._thread: threading.Thread | None = None
        self._reaping = threading.Lock()
        self._output = self.folder / OUTPUT

    def start(self) -> None:
        """Raises OutputError where nothing can be written, NoCommand where the command does not
        start; then nothing runs."""
        observer = self.observer
        try:
            additions = observer.start(listen=bool(self._what.argv))
            if self._what.argv:
                observer.begin(command=command_text(self._what.argv))
                self._job = self._spawn({**self._environ, **additions})
                observer.follow(self._job.pid, whole=True)
            elif self._what.pid is not None:
                observer.begin(attached=self._what.pid)
                observer.follow(self._what.pid)
            else:
                observer.begin()
        except BaseException:
            self.phase = "over"
            observer.close()
            self._close_process()
            raise
        self.phase = "running"
        self._thread = threading.Thread(target=self._run, name="ckptcost-supervisor", daemon=True)
        self._thread.start()

    def _spawn(self, environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """In a session of its own: keys of the terminal are ours, and what it starts can be told to
        end with it."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with self._output.open("wb") as output:
                return subprocess.Popen(
                    list(self._what.argv),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=dict(environ),
                    start_new_session=True,
                )
        except (OSError, ValueError) as error:
            raise not_executable(error, self._what.argv[0]) from None

    # the thread

    def _run(self) -> None:
        try:
            ended = self._follow()
            self._finish(ended)
        except Exception as error:  # a defect of ours must not leave a recorder behind
            self.problem = f"the recording failed: {type(error).__name__}: {error}"
        finally:
            with contextlib.suppress(Exception):
                self.observer.close()
            self._close_process()
            self.phase = "over"

    def _follow(self) -> int:
        """Until the job is over or somebody stops us; when that was."""
        while not self._is_over():
            self.observer.look()
            if self._stop.is_set():
                time.sleep(0.05)
            else:
                self._stop.wait(LOOK_S)
        return time.monotonic_ns()

    def _is_over(self) -> bool:
        """Whether there is nothing left to follow; `why` says so then."""
        if self._job is not None and self._reaped() and not self._awaits_group():
            self.why = self.why or f"the command ended with {self.exit_status}"
        elif self._process >= 0 and select.select([self._process], [], [], 0)[0]:
            self.why = "the process ended"
        elif not self._stop.is_set():
            return False
        elif self._job is None:
            self.why = "stopped"
        else:
            return self._is_left_alone()
        return True

    def _awaits_group(self) -> bool:
        """The command was told to end and has, and what it started has not yet."""
        return (
            bool(self._told_s)
            and self._group_lives()
            and time.monotonic() - self._told_s < 2 * self._patience_s
        )

    def _is_left_alone(self) -> bool:
        """Tell the command to end, and later kill it; True where this program waits no longer."""
        now_s = time.monotonic()
        if not self._told_s:
            self.phase, self.why, self._told_s = "stopping", "stopped", now_s
            self._signal(signal.SIGTERM)
        elif self._hurry.is_set() and now_s - self._told_s > QUICK_S:
            self.why = "stopped; the command had not ended yet"
            return True
        elif now_s - self._told_s > self._patience_s:
            self._signal(signal.SIGKILL)
        return False

    def _finish(self, at_ns: int) -> None:
        detail: dict[str, Any] = {"why": self.why}
        if self.exit_status is not None:
            detail["exit_status"] = self.exit_status
        if self._usage_bytes is not None:
            detail["written_bytes"] = self._usage_bytes
        self.phase = "settling"
        self.observer.over(at_ns, self._waits, **detail)

    def _waits(self, for_s: float) -> bool:
        """True: nobody waits any longer. Who stopped it does not want to wait for a page cache; the
        margin is waited for."""
        if self._hurry.is_set():
            time.sleep(min(for_s, 0.2))
            return True
        if self._stop.is_set() and for_s <= 0.1:
            return True
        self._hurry.wait(for_s)
        return self._hurry.is_set() or (self._stop.is_set() and for_s <= 0.1)

    def _reaped(self) -> bool:
        """Asks the kernel what it counted, which Popen's own wait would throw away."""
        with self._reaping:
            return self._job is not None and self._ask(self._job)

    def _ask(self, job: subprocess.Popen[bytes]) -> bool:
        if job.returncode is not None:
            return True
        try:
            pid, status, usage = os.wait4(job.pid, os.WNOHANG)
        except ChildProcessError:  # somebody else in this program waited for it
            job.returncode, self.exit_status = 0, None
            return True
        if not pid:
            return False
        by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        job.returncode = -by if by else os.WEXITSTATUS(status)
        self.exit_status = 128 + by if by else os.WEXITSTATUS(status)
        self._usage_bytes = float(written_of(usage))
        return True

    def _group_lives(self) -> bool:
        """Others of its group run still: workers of a launcher that has ended."""
        assert self._job is not None
        try:
            os.killpg(self._job.pid, 0)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def _signal(self, number: signal.Signals) -> None:
        """To the command and all it started, as far as they are of its session's first group."""
        assert self._job is not None
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._job.pid, number)

    def _close_process(self) -> None:
        if self._process >= 0:
            os.close(self._process)
            self._process = -1

    # from outside

    def stop(self, within_s: float | None = None) -> str:
        """The command is told to end and killed after a while; a process that was only followed is
        left alone. `within_s`: this program ends and waits no longer; the run is complete all the
        same. Returns what is left behind, in a sentence.
        """
        self._stop.set()
        if within_s is not None:
            self._hurry.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(self._patience_s + 15.0 if within_s is None else within_s)
        return self.left()

    def left(self) -> str:
        """What of the command goes on although it was told to end, in a sentence."""
        if self._stop.is_set() and self._job is not None and not self._reaped():
            return (
                f"the command was told to end and has not yet: its process group is {self._job.pid}"
            )
        return ""

    def hurry(self) -> None:
        """Who stops it, in another thread, shall wait no longer: this program ends."""
        self._stop.set()
        self._hurry.set()

    @property
    def patience_left_s(self) -> float:
        """Until a command that was told to end is killed; NaN while none was told."""
        return (
            nan
            if not self._told_s
            else max(self._patience_s - (time.monotonic() - self._told_s), 0.0)
        )

    def skip(self) -> None:
        """The job is over: do not wait for what is still in the page cache."""
        self._stop.set()

    @property
    def running(self) -> bool:
        """A command of ours runs."""
        return self._job is not None and self._job.returncode is None and self.phase != "over"

    def output(self) -> bytes:
        """The end of what the command said."""
        try:
            with self._output.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - _LAST_BYTES))
                return file.read(_LAST_BYTES)
        except OSError:
            return b""

    def troubles(self) -> list[str]:
        found = [self.problem] if self.problem else []
        with contextlib.suppress(CkptcostError, RuntimeError):
            found += list(self.observer.troubles())
        return found
