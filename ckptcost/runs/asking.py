"""Asking one meter: when it is due, what to do when it is gone, and what to do when it breaks.

Whatever a meter raises stays here. A lost meter is tried again; one that raises anything else is
set aside, because nobody knows what its numbers would mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ckptcost.errors import MeterLost, brief
from ckptcost.meters.base import Event, Meter
from ckptcost.runs.clocks import S
from ckptcost.runs.lines import Values


class Asked:
    """A meter and its state. `events` is emptied by the recorder."""

    __slots__ = (
        "_due_ns",
        "_least_ns",
        "_read",
        "_reopen",
        "_retry_ns",
        "_width",
        "aside",
        "events",
        "lost",
        "meter",
        "nothing",
    )

    def __init__(
        self, meter: Meter, retry_s: float, reopen: Callable[[], object] | None = None
    ) -> None:
        self.meter = meter
        self.lost = False
        self.aside = False
        self.events: list[Event] = []
        self.nothing: Values = (math.nan,) * len(meter.channels)
        self._width = len(meter.channels)
        self._read = meter.read
        self._reopen: Callable[[], object] | None = reopen or getattr(meter, "reopen", None)
        self._least_ns = round(meter.least_s * S)
        self._retry_ns = round(retry_s * S)
        self._due_ns = -(1 << 62)

    def ask(self, t_ns: int, planned_ns: int) -> Values | None:
        """Its values, or None where it was not asked. `planned_ns` is when this tick should have
        been: lateness must not skip a turn."""
        if planned_ns < self._due_ns:
            return None
        self._due_ns = planned_ns + self._least_ns
        if self.lost and self._reopen is not None and not self._reopened():
            if not self.aside:
                self._due_ns = planned_ns + self._retry_ns
            return self.nothing
        try:
            values = tuple(map(float, self._read(t_ns)))
            if len(values) != self._width:
                raise ValueError(f"{len(values)} values for {self._width} channels")
        except MeterLost as error:
            self._due_ns = planned_ns + self._retry_ns
            if not self.lost:
                self.lost = True
                self._say("lost", str(error))
            values = self.nothing
        except Exception as error:
            # a meter's defect must not end the recording, nor the training that it runs beside
            self._set_aside(error)
            values = self.nothing
        else:
            if self.lost:
                self.lost = False
                self._say("found", f"{self.meter.name} answers again")
        if self.meter.events:
            self.events += self.meter.events
            self.meter.events.clear()
        return values

    def _reopened(self) -> bool:
        try:
            assert self._reopen is not None
            self._reopen()
        except MeterLost:
            return False
        except Exception as error:
            self._set_aside(error)
            return False
        return True

    def _set_aside(self, error: Exception) -> None:
        self.aside = True
        self._due_ns = 1 << 62
        self._say(
            "error",
            f"{type(error).__name__}: {brief(str(error), 200)}; {self.meter.name} is not asked any"
            " more",
        )

    def _say(self, name: str, text: str) -> None:
        self.events.append(Event(name, self.meter.name, text))

    def close(self) -> None:
        try:
            self.meter.close()
        except Exception as error:
            self._set_aside(error)
