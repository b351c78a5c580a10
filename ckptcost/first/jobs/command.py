"""A command of the user's, run as if nobody stood between: its streams, signals and exit status are
its own.

It is started in our process group, so a terminal's Ctrl-C and Ctrl-Z reach it directly; those that
somebody sends to us alone are passed on. `posix_spawn` gives it the signal mask and dispositions
that we were given, not those that Python has set.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ckptcost.first.errors import InputError
from ckptcost.first.jobs.held import PASSED_ON, WAITED_FOR, hold, let_go
from ckptcost.first.runs.clocks import RealClock, S

_FROM_KERNEL = 0x80
"""si_code of what a terminal sends: the whole group has it already"""
_OF_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
"""ignored by the interpreter, and inherited unless reset"""
NOT_FOUND, NOT_EXECUTABLE = 127, 126
"""what a shell says; nothing was run"""


class CommandEnd(NamedTuple):
    """How the command ended, and what the kernel counted for it and its children."""

    status: int
    """as the shell has it: the exit code, or 128 and the signal's number"""
    signal: int
    """0: it ended by itself"""
    usage: resource.struct_rusage
    at_ns: int


class NoCommand(InputError):
    """There is no such program, or it may not be run; the exit code is the shell's."""

    def __init__(self, problem: str, exit_code: int, *, where: str) -> None:
        super().__init__(problem, where=where)
        self.exit_code = exit_code


class WrappedCommand:
    """`hold` signals before any thread is started, then `start` and `wait` in the main thread;
    `release` at the end."""

    def __init__(self, argv: Sequence[str], mask: set[int] | None = None) -> None:
        """`mask`: signals are held back already, and this is how the mask was."""
        self.argv = list(argv)
        self.pid = 0
        self.ended: CommandEnd | None = None
        self._clock = RealClock()
        self._mask, self._held_by_us = mask, False

    def check(self, path: str | None = None) -> None:
        """Raises NoCommand where it is clear that it cannot be run, before anything is begun for
        it."""
        if shutil.which(self.argv[0], os.F_OK, path) is None:
            raise NoCommand("no such command", NOT_FOUND, where=self.argv[0])
        if shutil.which(self.argv[0], os.F_OK | os.X_OK, path) is None:
            raise NoCommand("cannot be run (Permission denied)", NOT_EXECUTABLE, where=self.argv[0])

    def hold(self) -> None:
        """From now on signals wait for us, unless they do already."""
        if self._mask is None:
            self._mask, self._held_by_us = hold(), True

    def start(self, environ: Mapping[str, str], stdout: int | None = None) -> int:
        """Its process id. Raises NoCommand."""
        actions = [(os.POSIX_SPAWN_DUP2, stdout, 1)] if stdout is not None else []
        reset = [s for s in _OF_PYTHON if signal.getsignal(s) == signal.SIG_IGN]
        try:
            self.pid = os.posix_spawnp(
                self.argv[0],
                self.argv,
                dict(environ),
                file_actions=actions,
                setsigmask=self._mask or (),
                setsigdef=reset,
            )
        except FileNotFoundError:
            raise NoCommand("no such command", NOT_FOUND, where=self.argv[0]) from None
        except (OSError, ValueError) as error:
            raise not_executable(error, self.argv[0]) from None
        return self.pid

    def wait(
        self,
        look: Callable[[], None] | None = None,
        every_s: float = 0.5,
        resized: Callable[[], None] | None = None,
    ) -> CommandEnd:
        """Until it ends, passing signals on; `look` is called now and then."""
        while self.ended is None:
            self._reap()
            if self.ended is not None:
                break
            # without anything to look at the child's end wakes us
            seen = signal.sigtimedwait(WAITED_FOR, every_s if look is not None else 10.0)
            if seen is not None:
                self._pass_on(seen, resized)
            if look is not None:
                look()
        return self.ended

    def _pass_on(self, seen: signal.struct_siginfo, resized: Callable[[], None] | None) -> None:
        if seen.si_signo == signal.SIGWINCH and resized is not None:
            resized()
        if seen.si_signo in PASSED_ON and seen.si_code != _FROM_KERNEL:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, seen.si_signo)

    def _reap(self) -> None:
        pid, status, usage = os.wait4(self.pid, os.WNOHANG)
        if pid:
            by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
            self.ended = CommandEnd(
                128 + by if by else os.WEXITSTATUS(status), by, usage, self._clock.now_ns()
            )

    def stopped_by_user(self, for_s: float) -> bool:
        """Waits so long; True as soon as somebody wants us to end."""
        until_ns = self._clock.now_ns() + round(for_s * S)
        ends = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT}
        while (left_s := (until_ns - self._clock.now_ns()) / S) > 0:
            seen = signal.sigtimedwait(ends, left_s)
            if (
                seen is not None and seen.si_signo in ends
            ):  # 0 where the time ran out while we were stopped
                return True
        return False

    def release(self) -> None:
        """Signals are ours again, where it was us who held them."""
        if self._mask is not None and self._held_by_us:
            let_go(self._mask)
            self._mask, self._held_by_us = None, False


def not_executable(error: OSError | ValueError, name: str) -> NoCommand:
    """A command that is there and cannot be run."""
    problem = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return NoCommand(f"cannot be run ({problem})", NOT_EXECUTABLE, where=name)


def end_alike(ended: CommandEnd) -> int:
    """The exit code to end with; of a command that a signal ended, this process ends by the same
    signal, without a core of its own."""
    if ended.signal:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with contextlib.suppress(OSError, ValueError):  # SIGKILL has no disposition
            signal.signal(ended.signal, signal.SIG_DFL)
        with contextlib.suppress(OSError, ValueError):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {ended.signal})
            os.kill(os.getpid(), ended.signal)
    return ended.status
