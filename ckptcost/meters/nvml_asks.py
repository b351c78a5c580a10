"""One call of NVML and the channels it fills. An answer that is no answer is NaN, with the reason
in `why`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from ckptcost.meters import nvml_fields as fields
from ckptcost.meters import nvml_library as codes
from ckptcost.meters.base import NOTHING

STILL_NS = 10_000_000_000
"""a GPU that is on draws watts; a counter that has not moved for so long is broken"""


class Ask(ABC):
    """`slots` are places in the meter's row. Between two calls `every_ns` apart the last answer
    stands."""

    def __init__(self, slots: Sequence[int], every_ns: int = 0) -> None:
        self.slots = tuple(slots)
        self.every_ns = every_ns
        self.next_ns = 0
        self.held = [NOTHING] * len(self.slots)
        self.why = [0] * len(self.slots)
        self.began_anew: tuple[float, float] | None = None
        self.troubled = False
        """something was missing or changed: the meter is to look at the next answer"""

    @abstractmethod
    def call(self, handle: Any, t_ns: int) -> list[float]:
        """One value a slot; NaN with its code in `why` where there is none."""

    def only(self, slots: Sequence[int]) -> Ask | None:
        """This call for fewer channels, numbered as they stand in `slots`; None for none of
        them."""
        self.slots = tuple(slots.index(slot) for slot in self.slots if slot in slots)
        return self if self.slots else None

    def forget(self) -> None:
        """The device was away: nothing said before is to be held against it."""
        self.held = [NOTHING] * len(self.slots)
        self.next_ns = 0


class Energy(Ask):
    """nvmlDeviceGetTotalEnergyConsumption. A counter that stands still is not an answer: it would
    read as 0 J."""

    def __init__(self, slot: int, library: Any) -> None:
        super().__init__([slot])
        self._get: Callable[[Any], int] = library.nvmlDeviceGetTotalEnergyConsumption
        self._last_mj = -1
        self._moved_ns = 0

    def call(self, handle: Any, t_ns: int) -> list[float]:
        now_mj = self._get(handle)
        if now_mj != self._last_mj:
            if now_mj < self._last_mj:
                self.began_anew, self.troubled = (self._last_mj / 1000.0, now_mj / 1000.0), True
            self._last_mj, self._moved_ns = now_mj, t_ns
        elif t_ns - self._moved_ns > STILL_NS:
            self.why[0] = codes.STANDS_STILL
            return [NOTHING]
        if now_mj == 0:
            self.why[0] = codes.NEVER_COUNTED
            return [NOTHING]
        return [now_mj / 1000.0]

    def forget(self) -> None:
        super().forget()
        self._last_mj = -1


class Fields(Ask):
    """nvmlDeviceGetFieldValues with all fields in one call; each element has a result of its own.
    Milliwatts, millijoules."""

    def __init__(
        self,
        slots: Sequence[int],
        pairs: Sequence[tuple[int, int]],
        library: Any,
        every_ns: int = 0,
    ) -> None:
        super().__init__(slots, every_ns)
        self._get: Callable[[Any, Sequence[tuple[int, int]]], Any] = (
            library.nvmlDeviceGetFieldValues
        )
        self.pairs = list(pairs)
        self._members = fields.VALUE

    def only(self, slots: Sequence[int]) -> Ask | None:
        self.pairs = [
            pair for pair, slot in zip(self.pairs, self.slots, strict=True) if slot in slots
        ]
        self.held, self.why = [NOTHING] * len(self.pairs), [0] * len(self.pairs)
        return super().only(slots)

    def call(self, handle: Any, t_ns: int) -> list[float]:
        said = []
        for place, element in enumerate(self._get(handle, self.pairs)):
            code = element.nvmlReturn
            if code:
                self.why[place] = code
                said.append(NOTHING)
                continue
            member = self._members.get(element.valueType)
            milli = getattr(element.value, member) if member else NOTHING
            if milli > 0:
                said.append(milli / 1000.0)
            else:
                self.why[place] = codes.NO_WATTS if milli <= 0 else codes.NOT_A_NUMBER
                said.append(NOTHING)
        return said


class Usage(Ask):
    """nvmlDeviceGetPowerUsage, where the fields are not known to the driver."""

    def __init__(self, slot: int, library: Any, every_ns: int = 0) -> None:
        super().__init__([slot], every_ns)
        self._get: Callable[[Any], int] = library.nvmlDeviceGetPowerUsage

    def call(self, handle: Any, t_ns: int) -> list[float]:
        milliwatts = self._get(handle)
        self.why[0] = codes.NO_WATTS
        return [milliwatts / 1000.0 if milliwatts > 0 else NOTHING]


class Utilisation(Ask):
    """nvmlDeviceGetUtilizationRates: share of the driver's last period (1/6 s to 1 s) in which a
    kernel ran."""

    def __init__(self, slot: int, library: Any, every_ns: int) -> None:
        super().__init__([slot], every_ns)
        self._get: Callable[[Any], Any] = library.nvmlDeviceGetUtilizationRates

    def call(self, handle: Any, t_ns: int) -> list[float]:
        return [self._get(handle).gpu / 100.0]


class Memory(Ask):
    """nvmlDeviceGetMemoryInfo; what the driver keeps for itself counts as used."""

    def __init__(self, slot: int, library: Any, every_ns: int) -> None:
        super().__init__([slot], every_ns)
        self._get: Callable[[Any], Any] = library.nvmlDeviceGetMemoryInfo

    def call(self, handle: Any, t_ns: int) -> list[float]:
        return [float(self._get(handle).used)]
