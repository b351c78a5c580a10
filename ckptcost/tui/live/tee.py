"""A recorder's lines for a screen in the same process, beside the files."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

from ckptcost.runs.clocks import Clock
from ckptcost.runs.header import Header
from ckptcost.runs.lines import Raw, Second
from ckptcost.runs.sinks import Sink
from ckptcost.tui.live.intake import Item


class Tee:
    """A recorder's sink that tells a screen everything at once, and passes it on to files where
    there are some."""

    def __init__(self, items: deque[Item], inner: Sink | None = None) -> None:
        self._items, self._inner = items, inner
        self._periods_s: tuple[tuple[float, ...], ...] = ()

    @property
    def periods_s(self) -> tuple[tuple[float, ...], ...]:
        return self._periods_s

    @periods_s.setter
    def periods_s(self, value: tuple[tuple[float, ...], ...]) -> None:
        self._periods_s = value
        if self._inner is not None:
            self._inner.periods_s = value

    @property
    def problem(self) -> str:
        return "" if self._inner is None else self._inner.problem

    @property
    def cpu_s(self) -> float:
        return 0.0 if self._inner is None else self._inner.cpu_s

    def open(self, header: Header, clock: Clock) -> None:
        if self._inner is not None:
            self._inner.open(header, clock)
        monotonic_ns, wall_ns = clock.pair()
        self._items.append(("own", replace(header, monotonic_ns=monotonic_ns, wall_ns=wall_ns)))

    def put(self, record: Raw | Second) -> None:
        self._items.append(("own", record))
        if self._inner is not None:
            self._inner.put(record)

    def line(self, fields: dict[str, Any]) -> None:
        self._items.append(("own", fields))
        if self._inner is not None:
            self._inner.line(fields)

    def turn(self) -> None:
        if self._inner is not None:
            self._inner.turn()

    def close(self) -> None:
        if self._inner is not None:
            self._inner.close()
