"""Ends of training steps: what a step lasts with and without a save beside it. Once a second at
most they are told, all in one line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from time import monotonic_ns
from typing import Generic, TypeVar

from ckptcost.first.hooks import receivers, sender

T = TypeVar("T")
EVERY_NS = 1_000_000_000
MOST = 300
"""in a line; the rest waits for the next one"""
_MOST_WAITING = 20_000
"""more than that is no training; the oldest go"""
_ends: list[int] = []
_state = receivers.state
_due_ns = 0


def step() -> None:
    """A training step is done.

    >>> step()
    """
    try:
        receiver = _state.receiver or sender.receiver()
        if not receiver.listening:
            return
        now_ns = monotonic_ns()
        _ends.append(now_ns)
        if now_ns >= _due_ns:
            flush(now_ns)
    except Exception:
        return


def flush(now_ns: int | None = None) -> None:
    """Tells what has gathered."""
    global _due_ns  # noqa: PLW0603
    now_ns = monotonic_ns() if now_ns is None else now_ns
    _due_ns = now_ns + EVERY_NS
    lost = len(_ends) - _MOST_WAITING
    if lost > 0:
        del _ends[:lost]
    taken = _ends[:MOST]
    del _ends[: len(taken)]
    if taken:
        base = taken[0]
        ends_ms = [round((end - base) / 1e6, 2) for end in taken]
        sender.tell(
            "steps",
            "",
            now_ns,
            ends_ms=ends_ms,
            base=base,
            **({"dropped": lost} if lost > 0 else {}),
        )


class steps(Generic[T]):  # noqa: N801  # it reads as a word
    """`for batch in steps(loader)`: the body of the loop is a training step. It is as long as the
    loader, and iterates anew each time.

    >>> [batch for batch in steps([1, 2])], len(steps([1, 2]))
    ([1, 2], 2)
    """

    def __init__(self, loader: Iterable[T]) -> None:
        self.loader = loader

    def __len__(self) -> int:
        return len(self.loader)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[T]:
        for batch in self.loader:
            yield batch
            step()


def _clear() -> None:
    _ends.clear()


receivers.state.after_fork.append(_clear)
receivers.state.before_leaving.append(flush)
