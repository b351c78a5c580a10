"""What a script holds of an open window: its marks, and how windows inside each other are told from
windows beside each other.

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
from weakref import ref

from ckptcost.hooks import receivers, sender
from ckptcost.hooks.labels import label_of, number_of, numbered_label, path_of
from ckptcost.hooks.saving import Amount, MarkedSave

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
