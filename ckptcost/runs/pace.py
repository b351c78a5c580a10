"""How often to ask: rarely at rest, often around every mark, because an edge lies between two
readings and the counter between two ticks.

Ticks lie on a lattice of the quick period's multiples from the first tick on, so that lateness
never adds up. Those between two ticks at rest are moved off it, each by another share of the
period.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ckptcost.runs.clocks import S

SAFE = frozenset({"durable", "synced"})
"""marks after which a save that returned is over"""
GOLDEN = (5**0.5 - 1.0) / 2.0
ROUTINE = frozenset({"steps"})
"""marks of training itself, once a second: nobody looks closer for them"""


@dataclass(frozen=True, slots=True)
class Pace:
    """The settings; all are in a run's header."""

    rest_s: float = 0.2
    quick_s: float = 0.02
    off_beat: float = 0.75
    """quick ticks are moved by up to this share of their period: in step with a counter's own ticks
    they would see each of them from the same side, and its jitter not at all"""
    quick_for_s: float = 1.5
    """after each mark, and before one that is expected"""
    around_s: float = 2.0
    """single ticks are kept so long before and after every mark"""
    window_most_s: float = 7200.0
    """a window that never returns is given up after this"""
    drain_most_s: float = 600.0
    """one that returned, and of which nobody says when it was safe, after this"""
    retry_s: float = 10.0
    """a lost meter is tried again"""

    def __post_init__(self) -> None:
        if (
            not 0.001 <= self.quick_s <= self.rest_s <= 10.0
            or not 0.0 <= self.off_beat < 1.0
            or min(
                self.quick_for_s, self.around_s, self.window_most_s, self.drain_most_s, self.retry_s
            )
            < 0
        ):
            raise ValueError(
                "a pace asks every 1 ms to 10 s, quick no slower than at rest, and off the beat by"
                f" less than a period: {self}"
            )

    def settings(self) -> dict[str, float]:
        return asdict(self)


class Tempo:
    """What the pace is now."""

    def __init__(self, pace: Pace, origin_ns: int) -> None:
        self.pace = pace
        self.origin_ns = origin_ns
        self.quick_ns = round(pace.quick_s * S)
        self.rest_ns = max(1, round(pace.rest_s / pace.quick_s)) * self.quick_ns
        self.spacing_ns = self.quick_ns // 4
        """marks that come in crowds share a tick"""
        self.quick_until_ns = origin_ns
        self.keep_until_ns = origin_ns
        self.windows: dict[str, int] = {}
        """open ones, and until when they are believed to be"""
        self._marks: dict[str, set[str]] = {}

    def on_mark(self, name: str, window: str, t_ns: int) -> None:
        if name in ROUTINE:
            return
        self.quick_until_ns = max(self.quick_until_ns, t_ns + round(self.pace.quick_for_s * S))
        self.keep_until_ns = max(self.keep_until_ns, t_ns + round(self.pace.around_s * S))
        if name == "begin":
            self.windows[window] = t_ns + round(self.pace.window_most_s * S)
            self._marks[window] = set()
        elif window in self.windows:
            marks = self._marks[window]
            marks.add(name)
            if name == "end" or ("returned" in marks and marks & SAFE):
                self._close(window)
            elif name == "returned":
                self.windows[window] = t_ns + round(self.pace.drain_most_s * S)

    def _close(self, window: str) -> None:
        del self.windows[window], self._marks[window]

    def expect(self, until_ns: int) -> None:
        """A mark is going to come before then: be quick already."""
        self.quick_until_ns = max(self.quick_until_ns, until_ns)

    def abandoned(self, t_ns: int) -> list[str]:
        """Windows that never ended: given up, once."""
        gone = (
            [window for window, until_ns in self.windows.items() if t_ns > until_ns]
            if self.windows
            else []
        )
        for window in gone:
            self._close(window)
        return gone

    def keeping(self, t_ns: int) -> bool:
        return t_ns <= self.keep_until_ns or bool(self.windows)

    def next_ns(self, t_ns: int) -> int:
        """The first point of the lattice after t_ns."""
        step_ns = self.quick_ns if t_ns < self.quick_until_ns else self.rest_ns
        number = (t_ns - self.origin_ns) // step_ns
        if step_ns != self.rest_ns:
            at_ns = self._quick_ns(number)
            return at_ns if at_ns > t_ns else self._quick_ns(number + 1)
        return self.origin_ns + (number + 1) * step_ns

    def _quick_ns(self, number: int) -> int:
        """A quick tick, off the beat: multiples of the golden ratio leave no phase out for long."""
        at_ns = self.origin_ns + number * self.quick_ns
        if number * self.quick_ns % self.rest_ns == 0:
            return at_ns
        return at_ns + round(self.pace.off_beat * (number * GOLDEN % 1.0) * self.quick_ns)
