"""What a script holds of an open window: its marks, how windows inside each other are told from
windows beside each other, and what one checkpoint of this rank has gathered of all its windows.

A window inside another one of the same thread or task is part of it: a trainer's save around a
framework's around torch.save is one checkpoint, under the outermost label. Windows of several
threads are apart.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, TypeVar
from weakref import WeakValueDictionary, ref

from ckptcost.first.hooks import receivers, sender
from ckptcost.first.hooks.labels import label_of, number_of, numbered_label, path_of

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

F = TypeVar("F")


class Handle:
    """What there is where nobody wants marks: every method does nothing."""

    __slots__ = ("__weakref__",)

    def snapshotted(self) -> None:
        """The state is copied; training may change it again."""

    def written(self, bytes: object = None, files: object = None) -> None:  # noqa: A002
        """The last byte was handed over; this rank's bytes and files, where known."""

    def synced(self) -> None:
        """fsync returned."""

    def committed(self) -> None:
        """Renamed to its final name, or its commit file is there."""

    def returned(self) -> None:
        """Training goes on."""

    def durable(self) -> None:
        """It is safe on the storage."""

    def end(self) -> None:
        """Nothing more will come."""

    def failed(self, error: object = "") -> None:
        """It will not be complete; an exception, its type, or a word."""

    def at(self, path: object) -> None:
        """Where it is saved, if that was not known at the beginning."""

    def follow(
        self, future: F, sync: bool | None = None, amount: Callable[[Any], Amount] | None = None
    ) -> F:
        """What goes on in the background: when the future is done the save is written, and safe if
        the writer syncs. Returns it.

        `amount` is given the future then, and says bytes and files.
        """
        return future


NOTHING = Handle()


class OpenWindow(Handle):
    """An open window. Its marks go under the label of the checkpoint that it is part of."""

    __slots__ = ("_by_hand", "_how", "_outer", "_over", "_save", "_sync", "_told")

    def __init__(
        self, save: MarkedSave, outer: OpenWindow | None, sync: bool | None, how: str, by_hand: bool
    ) -> None:
        self._save, self._outer, self._sync, self._how, self._by_hand = (
            save,
            outer,
            sync,
            how,
            by_hand,
        )
        self._over = self._told = False

    @property
    def label(self) -> str:
        return self._save.label

    @property
    def is_part(self) -> bool:
        return self._outer is not None

    @property
    def is_over(self) -> bool:
        return self._over or self._save.over

    def _mark(self, name: str, detail: dict[str, object] | None = None) -> None:
        self._save.said.setdefault(
            name, None
        )  # not self: a cycle would keep a forgotten window open
        self._save.tell(name, None, detail or {})

    def _part_done(self, sync: bool | None) -> None:
        """Of a part: the whole says it when it is through, once."""
        self._told = True
        self._save.done.append((time.monotonic_ns(), sync, self._how))

    def snapshotted(self) -> None:
        with suppress(Exception):
            self._mark("snapshotted")

    def written(self, bytes: object = None, files: object = None) -> None:  # noqa: A002
        with suppress(Exception):
            if bytes is not None or files is not None:
                self._save.amounts.append((number_of(bytes), number_of(files)))
            if self._outer is None:
                self._mark("written", self._save.amount())
            else:
                self._part_done(self._sync)

    def synced(self) -> None:
        with suppress(Exception):
            if self._outer is None:
                self._mark("synced")
            else:
                self._part_done(True)

    def committed(self) -> None:
        with suppress(Exception):
            self._mark("committed")

    def durable(self) -> None:
        with suppress(Exception):
            self._mark("durable")

    def returned(self) -> None:
        with suppress(Exception):
            if self._over:
                return
            self._close()
            if self._outer is None:
                self._save.leave()
            elif not self._told:
                self._part_done(self._sync)

    def end(self) -> None:
        with suppress(Exception):
            self._close()
            if self._outer is None and self._save.first("end"):
                self._save.over = True
                self._save.tell("end", None, {})

    def failed(self, error: object = "") -> None:
        """Of a part: the whole goes on, and fails if the exception reaches it."""
        with suppress(Exception):
            self._close()
            if self._outer is None:
                self._save.fail(error)

    def at(self, path: object) -> None:
        self._save.path = path_of(path) or self._save.path

    def follow(
        self, future: F, sync: bool | None = None, amount: Callable[[Any], Amount] | None = None
    ) -> F:
        save, synced, how = self._save, self._sync if sync is None else sync, self._how

        def done(future: Any) -> None:
            with suppress(Exception):
                save.future_done(future, synced, how, amount)

        save.pending.add(id(future))
        self._told = True
        try:
            future.add_done_callback(done)  # type: ignore[attr-defined]
        except Exception:
            save.pending.discard(id(future))  # not a future
        return future

    def _close(self) -> None:
        self._over = True
        inner = _innermost.get()
        if inner is not None and inner() is self:
            _innermost.set(None if self._outer is None else ref(self._outer))


_innermost: ContextVar[ref[OpenWindow] | None] = ContextVar("ckptcost_window", default=None)
"""the open window of this thread or task; weakly, so that one which was forgotten does not swallow
all that follow"""


def open_window(
    label: object, path: object, sync: bool | None, separate: bool, how: str, of: str, by_hand: bool
) -> Handle:
    """A window, told if it is a checkpoint of its own. `by_hand`: it may never be closed, so
    another such one is not part of it."""
    try:
        if not sender.receiver().listening:
            return NOTHING
        inner = _innermost.get()
        outer = None if inner is None else inner()
        while outer is not None and outer.is_over:
            outer = outer._outer
        if outer is not None and not separate and not (by_hand and outer._by_hand):
            save = outer._save
            save.path = save.path or path_of(path)
        else:
            outer = None
            save = MarkedSave(
                numbered_label("save") if label is None else label_of(label),
                path_of(path),
                sync,
                how,
            )
            save.begin(of)
        made = OpenWindow(save, outer, sync, how, by_hand)
        _innermost.set(ref(made))
    except Exception:
        return NOTHING
    return made


def _clear() -> None:
    """In a forked child: windows that were open are the parent's."""
    _innermost.set(None)


receivers.state.after_fork.append(_clear)
