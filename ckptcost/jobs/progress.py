"""What a person is told while a job runs: one line for each checkpoint when it is safe, or when
nothing more can be seen of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from ckptcost.runs.clocks import S
from ckptcost.watch.base import Tell

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
class _Open:
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


class SaveProgress:
    """Stands between those who find checkpoints and the recorder. Quick: it runs in their
    threads."""

    def __init__(self, tell: Tell, said: Callable[[KnownSave], None] | None = None) -> None:
        self._tell, self._said = tell, said
        self._lock = threading.Lock()
        self._open: dict[str, _Open] = {}
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
        at_ns = t_ns
        self._tell(name, window, by=by, rank=rank, t_ns=at_ns, **detail)
        done = self._follow(name, window, by, rank, at_ns, detail)
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
            # a job that speaks for itself is told once, under its own labels
            if (
                name == "begin"
                and detail.get("of") != "load"
                and not (by == "watch" and self.hooked)
            ):
                if rank in self._told.get(window, ()):
                    self._told.pop(window)  # the same name once more
                if window not in self._told:
                    self._open.setdefault(window, _Open(t_ns)).ranks.add(rank)
            one = self._open.get(window)
            if one is None:
                return None
            size = detail.get("bytes")
            if isinstance(size, int | float):
                one.bytes_of[rank] = max(one.bytes_of.get(rank, 0.0), float(size))
            one.seen.add(rank)
            if isinstance(error := detail.get("error"), str):
                one.error = error
            if name == "returned":
                one.returned_ns = t_ns
            elif name in ("written", "synced", "committed"):
                one.written_ns = max(one.written_ns, t_ns)
            elif name == "durable":
                one.durable_ns = t_ns
            over = (
                name == "end"
                or (name == "durable" and (by == "watch" or one.returned_ns))
                or (name == "note" and "durable_why" in detail)
            )
            if not over:
                return None
            one.ranks.discard(rank)
            if one.ranks and not (
                by == "watch" and of_rank is None
            ):  # who watches a folder speaks for all ranks
                return None
            del self._open[window]
            self._told[window] = one.seen
            while len(self._told) > _MOST_TOLD:
                self._told.pop(next(iter(self._told)))
            size_bytes = sum(one.bytes_of.values()) if one.bytes_of else float("nan")
            self.saves += 1
            self.bytes += sum(one.bytes_of.values())
        until_ns = one.returned_ns or one.written_ns
        held_s = (until_ns - one.begin_ns) / S if until_ns else float("nan")
        safe_s = (one.durable_ns - one.begin_ns) / S if one.durable_ns else float("nan")
        return KnownSave(window, size_bytes, held_s, safe_s, one.error, bool(one.returned_ns))

    @property
    def open(self) -> tuple[str, ...]:
        with self._lock:
            return tuple(self._open)
