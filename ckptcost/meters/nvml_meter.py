"""The NVIDIA GPUs of a run while it runs: one row a tick, and what happens to devices meanwhile.

A device that does not answer gives NaN and one event, and is asked again about once a second. All
devices silent for `grace_s`: the meter is lost, and `read` says so until one is back.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

from ckptcost.errors import MeterLost
from ckptcost.meters import nvml_fields as fields
from ckptcost.meters import nvml_library as codes
from ckptcost.meters.base import A_HICCUP, NOTHING, RETRY_NS, Channelwise
from ckptcost.meters.nvml_asks import Ask
from ckptcost.meters.nvml_probe import Gpu, attempt


class Sample(NamedTuple):
    """One power sample of the driver's own buffer."""

    t_us: int
    """the driver's clock, microseconds since 1970"""
    power_w: float


class Nvml(Channelwise):
    """All GPUs of this job on this node."""

    def __init__(
        self, library: Any, gpus: list[Gpu], facts: dict[str, str], grace_s: float
    ) -> None:
        super().__init__(
            "nvml", tuple(channel for gpu in gpus for channel in gpu.channels), facts=facts
        )
        self._library, self._gpus, self._error = library, gpus, library.NVMLError
        self.grace_ns = round(grace_s * 1e9)
        self._reopen_ns: int | None = None
        first = 0
        for gpu in gpus:
            for ask in gpu.asks:
                ask.slots = tuple(slot + first for slot in ask.slots)
            first += len(gpu.channels)

    def read(self, t_ns: int) -> list[float]:
        row = [NOTHING] * len(self.channels)
        if self._reopen_ns is not None and t_ns >= self._reopen_ns:
            self._reopen(t_ns)
        for gpu in self._gpus:
            if self.is_lost(gpu.domain) and not self._back(gpu, t_ns):
                continue
            for ask in gpu.asks:
                if t_ns < ask.next_ns:
                    said, news = ask.held, False
                else:
                    try:
                        said = ask.call(gpu.handle, t_ns)
                    except self._error as error:
                        ask.why = [int(error.value)] * len(ask.slots)
                        said = [NOTHING] * len(ask.slots)
                    if ask.every_ns:
                        ask.held, ask.next_ns = said, t_ns + ask.every_ns
                    news = ask.troubled or any(value != value for value in said)
                for slot, value in zip(ask.slots, said, strict=True):
                    row[slot] = value
                if news and not self._judged(gpu, ask, said, t_ns):
                    break
        if self.all_silent(t_ns, (gpu.domain for gpu in self._gpus)):
            raise MeterLost(
                "no GPU answers NVML any more", "nvidia-smi; dmesg | grep -i -e nvrm -e xid"
            )
        return row

    def _judged(self, gpu: Gpu, ask: Ask, said: list[float], t_ns: int) -> bool:
        """Notice what is missing, new or back. False when the whole GPU is gone."""
        if ask.began_anew:
            before, now = ask.began_anew
            ask.began_anew = None
            anew = f"the energy counter began anew ({before:.0f} J, then {now:.0f} J)"
            self.tell("restarted", gpu.domain, anew)
        silent = 0
        for place, (slot, value) in enumerate(zip(ask.slots, said, strict=True)):
            channel = self.channels[slot]
            if value == value:
                if self.is_due(slot, t_ns):
                    self.answers(slot, f"{channel.source} answers again", channel.domain)
                continue
            silent += 1
            code = ask.why[place]
            if code in codes.LIBRARY_GONE:
                self._close_down(code, t_ns)
                return False
            if code in codes.DEVICE_GONE:
                self._lose(gpu, code, t_ns)
                return False
            why = f"{channel.source}: {codes.reason(code)}"
            self.missing(
                slot, why, channel.domain, t_ns=t_ns, wait_ns=RETRY_NS, news_at=A_HICCUP + 1
            )
        if silent == len(ask.slots) and all(map(self.is_lost, ask.slots)):
            ask.held, ask.next_ns = said, t_ns + RETRY_NS
        ask.troubled = any(slot in self.silent for slot in ask.slots)
        return True

    def _lose(self, gpu: Gpu, code: int, t_ns: int) -> None:
        self.missing(gpu.domain, codes.reason(code), t_ns=t_ns, wait_ns=RETRY_NS)

    def _back(self, gpu: Gpu, t_ns: int) -> bool:
        """Ask for a lost GPU by its UUID, at most once a second."""
        if self._reopen_ns is not None or not self.is_due(gpu.domain, t_ns):
            return False
        ask = gpu.asks[0]
        try:
            gpu.handle = self._library.nvmlDeviceGetHandleByUUID(gpu.card.uuid)
            said = ask.call(gpu.handle, t_ns)
        except self._error as error:
            self._lose(gpu, int(error.value), t_ns)
            return False
        if said[0] != said[0] and ask.why[0] in codes.DEVICE_GONE | codes.LIBRARY_GONE:
            self._lose(gpu, ask.why[0], t_ns)
            return False
        self.answers(gpu.domain, "the GPU answers again")
        for ask in gpu.asks:
            ask.next_ns = 0
        return True

    def _close_down(self, code: int, t_ns: int) -> None:
        self._reopen_ns = t_ns + RETRY_NS
        for gpu in self._gpus:
            self._lose(gpu, code, t_ns)

    def _reopen(self, t_ns: int) -> None:
        """After a reload of the driver the library must be started again, and every counter begins
        at 0."""
        self._reopen_ns = t_ns + RETRY_NS
        with suppress(self._error):
            self._library.nvmlShutdown()
        try:
            self._library.nvmlInit()
        except self._error:
            return
        self._reopen_ns = None
        loaded = "the NVIDIA driver was loaded again; its energy counters began anew"
        self.tell("restarted", "host", loaded)
        for gpu in self._gpus:
            self.silent[gpu.domain].again_ns = t_ns
            for ask in gpu.asks:
                ask.forget()

    def buffered(self, since_us: int = 0) -> dict[str, list[Sample]]:
        """The driver's own buffer of power samples, by domain; nothing for a GPU that keeps none.
        Not for the hot path."""
        found: dict[str, list[Sample]] = {}
        for gpu in self._gpus:
            for prefix, kind in (
                ("gpu", fields.POWER_SAMPLES),
                ("module", fields.MODULE_POWER_SAMPLES),
            ):
                if prefix == "module" and not gpu.sensors:
                    continue
                got, code = attempt(
                    self._library, "nvmlDeviceGetSamples", gpu.handle, kind, since_us
                )
                if (
                    code == codes.INSUFFICIENT_SIZE
                ):  # a sample came between the two calls that the binding makes
                    got, code = attempt(
                        self._library, "nvmlDeviceGetSamples", gpu.handle, kind, since_us
                    )
                if code in {0, codes.NOT_FOUND}:  # not found: nothing newer than `since_us`
                    value_type, samples = got or (0, [])
                    found[f"{prefix}:{gpu.card.number}"] = [
                        Sample(
                            int(sample.timeStamp),
                            fields.number(sample.sampleValue, value_type) / 1000.0,
                        )
                        for sample in samples
                    ]
        return found

    def close(self) -> None:
        with suppress(self._error):
            self._library.nvmlShutdown()
