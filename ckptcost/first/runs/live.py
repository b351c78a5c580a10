"""A run whose lines still come: from a recorder in this process, from files that grow, or from
files that are read again. At any time it is a run like one that was loaded, from any instant on."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ckptcost.first.core.channels import Channel, Series
from ckptcost.first.runs.clocks import Clock
from ckptcost.first.runs.header import Header, header_from
from ckptcost.first.runs.lines import Raw, Second
from ckptcost.first.runs.reader import Loading, ReadPart
from ckptcost.first.runs.run import Run
from ckptcost.first.runs.sinks import Sink

Item = Header | Raw | Second | Mapping[str, Any]
"""a header, readings, or the fields of any other line"""


MISFITS = (ValueError, KeyError, TypeError, IndexError, OverflowError, AttributeError)
"""what a line raises that does not fit its header; a torn line of a crash is one"""


class Named(NamedTuple):
    """What came, and the part of the run that it came in."""

    part: str
    item: Item


def item_of(part: str, fields: Mapping[str, Any]) -> Named | None:
    """A decoded line. Raises BadLine, RunFileError, KeyError ... for what does not fit; None for
    what nobody needs."""
    match fields["k"]:
        case "raw":
            return Named(part, Raw(fields["t"], tuple(fields["d"]), tuple(fields["v"])))
        case "second":
            counts = tuple(n if isinstance(n, int) else (n[0], n[1], n[2]) for n in fields["n"])
            took_ns, values = tuple(fields["d"]), tuple(fields["v"])
            return Named(part, Second(fields["from"], fields["t"], counts, took_ns, values))
        case "run":
            return Named(part, header_from(fields, part))
        case "mark" | "event" | "clock" | "periods" | "end":
            return Named(part, fields)
    return None


class LiveRun:
    """The lines so far, as `runs.reader` holds those of files. One thread at a time."""

    def __init__(self, before: LiveRun | None = None) -> None:
        """`before`: the same run, of which this one goes on with the same clocks and the same
        measured periods, or an instant would lie elsewhere and an edge be judged otherwise."""
        self._loading = Loading()
        self._parts: dict[str, ReadPart] = {}
        if before is not None:
            self._parts = {
                name: self._loading.part(name, part.header) for name, part in before._parts.items()
            }
            self._loading.pairs = before._loading.pairs.copy()
            self._loading.periods = {
                host: dict(periods) for host, periods in before._loading.periods.items()
            }

    def feed(self, part: str, item: Item) -> None:
        """Raises BadLine or ValueError for what does not fit the part's header, KeyError where it
        has none."""
        if isinstance(item, Header):
            self._parts[part] = self._loading.part(part, item)
        elif isinstance(item, Raw):
            self._parts[part].tick(item)
        elif isinstance(item, Second):
            self._parts[part].second(item)
        else:
            self._parts[part].feed(item)

    @property
    def values(self) -> int:
        """How many numbers are held."""
        return self._loading.values

    @property
    def marks(self) -> int:
        return len(self._loading.marks)

    def run(self, since_s: float | None = None) -> Run:
        """The run so far; `since_s`: a piece of its own, with the readings from then on."""
        return self._loading.finish(since_s)

    def forget(self, before_s: float) -> None:
        """Let go of all before an instant. Marks too: no checkpoint that is asked for may reach
        back so far."""
        self._loading.forget(before_s)

    def series(self, channel: Channel) -> Series:
        """All readings of a channel that are held."""
        return self.run().node().series(channel)


class Tee:
    """A recorder's sink that tells somebody in the same process everything at once, and passes it
    on to files where there are some."""

    def __init__(self, items: deque[Named], inner: Sink | None = None) -> None:
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
        self._tell(replace(header, monotonic_ns=monotonic_ns, wall_ns=wall_ns))

    def put(self, record: Raw | Second) -> None:
        self._tell(record)
        if self._inner is not None:
            self._inner.put(record)

    def line(self, fields: dict[str, Any]) -> None:
        self._tell(fields)
        if self._inner is not None:
            self._inner.line(fields)

    def _tell(self, item: Item) -> None:
        self._items.append(Named("own", item))

    def turn(self) -> None:
        if self._inner is not None:
            self._inner.turn()

    def close(self) -> None:
        if self._inner is not None:
            self._inner.close()
