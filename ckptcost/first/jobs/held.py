"""Signals that are meant for a wrapped command, held back from this process before it has any
thread but its first.

numpy starts threads when it is imported, and a thread that does not block a signal is where the
kernel delivers it, by default fatally. So this module needs nothing but the standard library, and
`hold` comes first.
"""

from __future__ import annotations

import signal

PASSED_ON = frozenset(
    {
        signal.SIGINT,
        signal.SIGTERM,
        signal.SIGHUP,
        signal.SIGQUIT,
        signal.SIGUSR1,
        signal.SIGUSR2,
        signal.SIGALRM,
        signal.SIGVTALRM,
        signal.SIGPROF,
        signal.SIGURG,
        signal.SIGWINCH,
        signal.SIGPWR,
    }
)
WAITED_FOR = PASSED_ON | {signal.SIGCHLD}


def hold() -> set[int]:
    """From now on they wait; threads that are started later inherit that. The mask as it was."""
    return set(signal.pthread_sigmask(signal.SIG_BLOCK, WAITED_FOR))


def let_go(mask: set[int]) -> None:
    """The mask as it was; what is pending of those that were for the command is dropped."""
    while signal.sigtimedwait(WAITED_FOR, 0) is not None:
        pass
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
