"""One checkpoint of this rank: what its windows, the outermost and those inside it, have gathered,
and which marks follow from that."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from weakref import WeakValueDictionary

from ckptcost.hooks import receivers, sender
from ckptcost.hooks.labels import label_of

Amount = tuple[int | float | None, int | float | None]
"""bytes and files, where known"""


class MarkedSave:
    """`begin` at once; the rest as its windows say it. Instants of parts are told when the whole is
    through, each mark once."""

    __slots__ = (
        "__weakref__",
        "amounts",
        "done",
        "how",
        "label",
        "over",
        "path",
        "pending",
        "returned",
        "said",
        "sync",
    )

    def __init__(self, label: str, path: str, sync: bool | None, how: str) -> None:
        self.label, self.path, self.sync, self.how = label, path, sync, how
        self.returned = self.over = False
        self.pending: set[int] = set()
        """futures, by id"""
        self.done: list[tuple[int, bool | None, str]] = []
        """parts that are through: when, whether they were synced, and how that is known"""
        self.amounts: list[Amount] = []
        self.said: dict[str, object] = {}
        """marks that were told"""

    def begin(self, of: str) -> None:
        self.label = _unique_label(self.label)
        _open[self.label] = self
        self.tell("begin", None, self.where(False) | ({"of": of} if of else {}))

    def tell(self, name: str, t_ns: int | None, detail: dict[str, object]) -> None:
        sender.tell(name, self.label, t_ns, **detail)

    def first(self, name: str) -> bool:
        """True once, whichever thread asks."""
        token = object()
        return self.said.setdefault(name, token) is token

    def amount(self) -> dict[str, object]:
        said: dict[str, object] = {}
        for place, key in enumerate(("bytes", "files")):
            known = [number for amount in self.amounts if (number := amount[place]) is not None]
            if known:
                said[key] = sum(known)
        return said

    def where(self, settle: bool) -> dict[str, object]:
        """The path; and whether somebody should find out when it is safe, because the job does not
        say it."""
        if not self.path:
            return {}
        asks = (
            settle
            and self.path.startswith("/")
            and not self.is_synced
            and not {"synced", "durable"} & self.said.keys()
        )
        return {"path": self.path, "settle": True} if asks else {"path": self.path}

    @property
    def is_synced(self) -> bool:
        """Every part that is known of is, and nobody says that there is more."""
        return (
            self.sync is not False and bool(self.done) and all(synced for _, synced, _ in self.done)
        )

    def leave(self) -> None:
        """The outermost window returns."""
        now_ns = time.monotonic_ns()
        waits = bool(self.pending)
        if not waits and self.sync and not self.done:
            self.done.append((now_ns, True, self.how))
        if not waits:
            self._finish(False)
        self.returned = self.over = True
        self.tell("returned", now_ns, self.where(not waits) | ({} if waits else self.amount()))
        if waits and not self.pending:
            self._finish(True)  # it was done just now, in between

    def _finish(self, settle: bool) -> None:
        """Nothing is pending any more: the last part's instant is the whole's. Said once."""
        if not self.done or not self.first("through"):
            return
        t_ns, _, how = max(self.done, key=lambda part: part[0])
        if self.first("written"):
            self.tell("written", t_ns, self.where(settle) | self.amount())
        if self.is_synced and self.first("synced"):
            self.tell("synced", t_ns, {"how": how} if how else {})

    def fail(self, error: object) -> None:
        self.over = True
        if self.first("end"):
            self.tell("end", None, {"error": _type_name(error)} | self.where(False))

    def future_done(
        self, future: Any, sync: bool | None, how: str, amount: Callable[[Any], Amount] | None
    ) -> None:
        """In whatever thread that is."""
        now_ns = time.monotonic_ns()
        error = _error_of(future)
        if error is not None:
            self.fail(error)  # and it stays pending: there is nothing to settle
            return
        if amount is not None:
            with suppress(Exception):
                self.amounts.append(amount(future))
        self.done.append((now_ns, sync, how))
        self.pending.discard(id(future))
        if self.returned and not self.pending and "end" not in self.said:
            self._finish(True)


def _error_of(future: Any) -> object | None:
    """What went wrong: of a future of concurrent.futures, asyncio or torch."""
    cancelled = getattr(future, "cancelled", None)
    if cancelled is not None and cancelled():
        return "CancelledError"
    exception = getattr(future, "exception", None)
    if exception is not None:
        found: object | None = exception()
        return found
    try:
        future.value()
    except Exception as error:
        return error
    return None


def _type_name(error: object) -> str:
    if isinstance(error, str):
        return label_of(error or "failed")
    return label_of(error.__name__ if isinstance(error, type) else type(error).__name__)


_open: WeakValueDictionary[str, MarkedSave] = WeakValueDictionary()
"""saves that hold training up now, by label: two of several threads must not be taken for one"""


def _unique_label(label: str) -> str:
    """The label; with a number where another thread is saving under it."""
    named, number = label, 1
    while (other := _open.get(named)) is not None and not other.over and number < 1000:
        number += 1
        named = f"{label} ({number})"
    return named


receivers.state.after_fork.append(_open.clear)  # what was open is the parent's
