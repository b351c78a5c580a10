"""What a person is told while a job runs: one line for each checkpoint when it is safe, or when
nothing more can be seen of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from math import nan
from typing import NamedTuple

from ckptcost.first.runs.clocks import S
from ckptcost.first.watch.base import Tell

_MOST_TOLD = 200


class KnownSave(NamedTuple):
    """One checkpoint as far as it is known."""

    label: str
    bytes: float
    held_up_s: float
    """until the call returned, or the last file was closed; NaN where not known"""
    safe_s: float
    """from begin; NaN where not known"""
    error: str
    has_returned: bool = False
    """held_up_s is until training went on, not until the last byte was written"""


@dataclass
class _OpenSave:
    begin_ns: int
    bytes_of: dict[int, float] = field(default_factory=dict)
    """by rank"""
    returned_ns: int = 0
    written_ns: int = 0
    durable_ns: int = 0
    error: str = ""
    ranks: set[int] = field(default_factory=set)
    """that have begun and not ended"""
    seen: set[int] = field(default_factory=set)

    def note(self, name: str, rank: int, t_ns: int, detail: dict[str, object]) -> None:
        """What one more mark of it says."""
        size = detail.get("bytes")
        if isinstance(size, int | float):
            self.bytes_of[rank] = max(self.bytes_of.get(rank, 0.0), float(size))
        self.seen.add(rank)
        if isinstance(error := detail.get("error"), str):
            self.error = error
        if name == "returned":
            self.returned_ns = t_ns
        elif name in ("written", "synced", "committed"):
            self.written_ns = max(self.written_ns, t_ns)
        elif name == "durable":
            self.durable_ns = t_ns

    def is_over_by(self, name: str, by: str, detail: dict[str, object]) -> bool:
        """Whether nothing more is to come of the rank that said this."""
        if name == "durable":
            return by == "watch" or bool(self.returned_ns)
        return name == "end" or (name == "note" and "durable_why" in detail)

    def is_last(self, rank: int, for_all: bool) -> bool:
        """The rank that is over now, or who speaks for all of them, has none beside it."""
        self.ranks.discard(rank)
        return for_all or not self.ranks

    def known(self, label: str) -> KnownSave:
        size_bytes = sum(self.bytes_of.values()) if self.bytes_of else nan
        until_ns = self.returned_ns or self.written_ns
        held_s = (until_ns - self.begin_ns) / S if until_ns else nan
        safe_s = (self.durable_ns - self.begin_ns) / S if self.durable_ns else nan
        return KnownSave(label, size_bytes, held_s, safe_s, self.error, bool(self.returned_ns))


class SaveProgress:
    """Stands between those who find checkpoints and the recorder. Quick: it runs in their
    threads."""

    def __init__(self, tell: Tell, said: Callable[[KnownSave], None] | None = None) -> None:
        self._tell, self._said = tell, said
        self._lock = threading.Lock()
        self._open: dict[str, _OpenSave] = {}
        self._told: dict[str, set[int]] = {}
        """checkpoints that are over, with the ranks that were in them: a rank that comes late is of
        the same one"""
        self.hooked = False
        """the job itself speaks: what is only guessed from its I/O is left out from then on"""
        self.saves = 0
        self.bytes = 0.0

    def __call__(
        self,
        name: str,
        window: str = "",
        *,
        by: str = "api",
        rank: int | None = None,
        t_ns: int | None = None,
        **detail: object,
    ) -> None:
        guessed = detail.get("how") == "io"
        with self._lock:
            if by == "api" and name == "begin":
                self.hooked = True
            if guessed and self.hooked and window not in self._open:
                return
        self._tell(name, window, by=by, rank=rank, t_ns=t_ns, **detail)
        done = self._follow(name, window, by, rank, t_ns, detail)
        if done is not None and self._said is not None:
            self._said(done)

    def _follow(
        self,
        name: str,
        window: str,
        by: str,
        of_rank: int | None,
        t_ns: int | None,
        detail: dict[str, object],
    ) -> KnownSave | None:
        rank = of_rank or 0
        if t_ns is None or not window:
            return None
        with self._lock:
            if name == "begin" and detail.get("of") != "load":
                self._begin(window, by, rank, t_ns)
            one = self._open.get(window)
            if one is None:
                return None
            one.note(name, rank, t_ns, detail)
            # who watches a folder speaks for all ranks
            for_all = by == "watch" and of_rank is None
            if not (one.is_over_by(name, by, detail) and one.is_last(rank, for_all)):
                return None
            self._end(window, one)
        return one.known(window)

    def _end(self, window: str, one: _OpenSave) -> None:
        del self._open[window]
        self._told[window] = one.seen
        while len(self._told) > _MOST_TOLD:
            self._told.pop(next(iter(self._told)))
        self.saves += 1
        self.bytes += sum(one.bytes_of.values())

    def _begin(self, window: str, by: str, rank: int, t_ns: int) -> None:
        """A job that speaks for itself is told once, under its own labels."""
        if by == "watch" and self.hooked:
            return
        if rank in self._told.get(window, ()):
            self._told.pop(window)  # the same name once more
        if window not in self._told:
            self._open.setdefault(window, _OpenSave(t_ns)).ranks.add(rank)

    @property
    def open(self) -> tuple[str, ...]:
        with self._lock:
            return tuple(self._open)
