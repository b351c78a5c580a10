"""Where a recorder's lines go: into files, or into memory for a screen that writes nothing."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ckptcost.first.runs.clocks import Clock
from ckptcost.first.runs.header import Header, base_name, stamp
from ckptcost.first.runs.lines import Raw, Second, encode, raw_line, second_line
from ckptcost.first.runs.pump import MARK, RAW, SECOND, SYNC_S, Pump
from ckptcost.first.runs.writer import MOST_BYTES, PART_BYTES, Writer

if TYPE_CHECKING:
    from ckptcost.first.runs.run import Run


class Sink(Protocol):
    """All but `open` and `close` are called from the recorder's thread and never wait or raise."""

    periods_s: tuple[tuple[float, ...], ...]

    @property
    def problem(self) -> str:
        """Why nothing reaches its place just now."""

    @property
    def cpu_s(self) -> float:
        """Processor time of what it does outside the recorder's thread."""

    def open(self, header: Header, clock: Clock) -> None:
        """Raises OutputError where it cannot begin."""

    def put(self, record: Raw | Second) -> None: ...

    def line(self, fields: dict[str, Any]) -> None:
        """A mark, an event and everything else that is dear."""

    def turn(self) -> None:
        """A chance to work for a sink that has no thread."""

    def close(self) -> None: ...


class FileSink:
    """Files of one recorder in the run's directory."""

    def __init__(
        self,
        directory: Path,
        *,
        base: str = "",
        part_bytes: int = PART_BYTES,
        most_bytes: int = MOST_BYTES,
        sync_s: float = SYNC_S,
    ) -> None:
        self._directory, self._base = directory, base
        self._part_bytes, self._most_bytes, self._sync_s = part_bytes, most_bytes, sync_s
        self._pump: Pump | None = None
        self._threaded = True
        self.periods_s: tuple[tuple[float, ...], ...] = ()

    def open(self, header: Header, clock: Clock) -> None:
        def head(part: int, dropped: tuple[int, ...]) -> bytes:
            monotonic_ns, wall_ns = clock.pair()
            now = replace(
                header,
                part=part,
                dropped=dropped,
                monotonic_ns=monotonic_ns,
                wall_ns=wall_ns,
                created=stamp(wall_ns),
                periods_s=self.periods_s or header.periods_s,
            )
            return encode(now.fields())

        base = self._base or base_name(header.host)
        writer = Writer(self._directory, base, header.run, head, self._part_bytes, self._most_bytes)
        self._threaded = not clock.virtual
        self._pump = Pump(writer, clock, threaded=self._threaded, sync_s=self._sync_s)

    def put(self, record: Raw | Second) -> None:
        assert self._pump is not None
        if type(record) is Raw:
            self._pump.put(RAW, raw_line(record))
        else:
            self._pump.put(SECOND, second_line(record))  # type: ignore[arg-type]

    def line(self, fields: dict[str, Any]) -> None:
        assert self._pump is not None
        self._pump.put(MARK, encode(fields))

    def turn(self) -> None:
        if self._pump is not None and not self._threaded:
            self._pump.flush()  # virtual time does not wait for a disk

    @property
    def problem(self) -> str:
        return self._pump.problem if self._pump else ""

    @property
    def cpu_s(self) -> float:
        return self._pump.cpu_s if self._pump else 0.0

    def close(self) -> None:
        if self._pump is not None:
            self._pump.close()


class MemorySink:
    """The newest lines, within bounds: about 40 bytes a value."""

    def __init__(self, most_values: int = 400_000, most_lines: int = 10_000) -> None:
        self._most_values = most_values
        self._header: Header | None = None
        self._clock: Clock | None = None
        self._ticks: deque[Raw] = deque()
        self._seconds: deque[Second] = deque()
        self._lines: deque[Mapping[str, Any]] = deque(maxlen=most_lines)
        self._lock = threading.Lock()
        self.periods_s: tuple[tuple[float, ...], ...] = ()
        self.problem = ""
        self.cpu_s = 0.0

    def open(self, header: Header, clock: Clock) -> None:
        monotonic_ns, wall_ns = clock.pair()
        self._header = replace(
            header, monotonic_ns=monotonic_ns, wall_ns=wall_ns, created=stamp(wall_ns)
        )
        channels = max(1, sum(len(meter.channels) for meter in header.meters))
        self._ticks = deque(maxlen=max(100, self._most_values // channels // 2))
        self._seconds = deque(maxlen=max(100, self._most_values // channels // 2))

    def put(self, record: Raw | Second) -> None:
        with self._lock:
            if type(record) is Raw:
                self._ticks.append(record)
            else:
                self._seconds.append(record)  # type: ignore[arg-type]

    def line(self, fields: dict[str, Any]) -> None:
        with self._lock:
            self._lines.append(fields)

    def turn(self) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Nothing to give back."""

    def run(self) -> Run:
        """What is remembered, as if it had been loaded."""
        from ckptcost.first.runs.reader import Loading

        assert self._header is not None
        with self._lock:
            ticks, seconds, lines = list(self._ticks), list(self._seconds), list(self._lines)
        loading = Loading()
        part = loading.part("memory", replace(self._header, periods_s=self.periods_s))
        for tick in ticks:
            part.feed({"k": "raw", "t": tick.t_ns, "d": tick.took_ns, "v": tick.values})
        for second in seconds:
            part.feed(
                {
                    "k": "second",
                    "t": second.t_ns,
                    "from": second.from_ns,
                    "n": second.counts,
                    "d": second.took_ns,
                    "v": second.values,
                }
            )
        for fields in lines:
            part.feed(fields)
        return loading.finish()
