"""AMD GPUs through amdsmi, an extra: joules from the energy accumulator, watts of the socket.

Two dies of one package (MI250) and the partitions of one socket (MI300 in CPX mode) share a sensor:
the first one is the part, the others have none. The order is amd-smi's own; HIP_VISIBLE_DEVICES
counts in HIP's.
"""

from __future__ import annotations

import contextlib
import io
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ckptcost.first.core.channels import Channel
from ckptcost.first.errors import MeterLost
from ckptcost.first.meters.base import (
    A_HICCUP,
    NOTHING,
    RETRY_NS,
    Absence,
    Channelwise,
    FoundMeters,
    none_found,
)
from ckptcost.first.meters.visible import Card, are_on_bus, cards_named

CHECK_S = 0.1
"""long enough for an accumulator that is renewed every few milliseconds"""
_SHARED = "AMD reports the watts of the whole package, here through its first die or partition"


@dataclass
class AmdCall:
    """One call and the channel it fills; between two calls the last answer stands."""

    slot: int
    call: Callable[[], float]
    every_ns: int = 0
    next_ns: int = 0
    held: float = NOTHING


@dataclass(eq=False)
class AmdGpu:
    card: Card
    handle: Any
    bdf: str
    hip: int
    watts: float
    channels: list[Channel] = field(default_factory=list)
    asks: list[AmdCall] = field(default_factory=list)
    head: AmdGpu = field(init=False, repr=False)
    """whom it is read through: itself, or the one it shares a socket with"""
    shares: tuple[int, ...] = ()
    """GPUs that are read through this one"""
    fault: str = ""
    """what is wrong with its counter"""

    def __post_init__(self) -> None:
        self.head = self

    def add(
        self, quantity: str, source: str, call: Callable[[], float], every_ns: int = 0, **known: Any
    ) -> None:
        about = Channel(
            f"gpu:{self.card.number}",
            "energy_j",
            source,
            scope="gpu",
            device=self.card.uuid or self.card.name,
        )
        self.asks.append(AmdCall(len(self.channels), call, every_ns))
        self.channels.append(replace(about, quantity=quantity, **known))  # type: ignore[arg-type]


def probe_gpu(library: Any, handle: Any, index: int, place: int) -> AmdGpu:
    def asked(name: str) -> Any:
        with contextlib.suppress(library.AmdSmiException, AttributeError):
            return getattr(library, name)(handle)
        return None

    name = (asked("amdsmi_get_gpu_asic_info") or {}).get("market_name", "AMD GPU")
    hip = (asked("amdsmi_get_gpu_enumeration_info") or {}).get("hip_id", place)
    uuid = str(asked("amdsmi_get_gpu_device_uuid") or "")
    bdf = str(asked("amdsmi_get_gpu_device_bdf") or f"{place}.0")
    hip = hip if isinstance(hip, int) else place
    return AmdGpu(Card(index, uuid, name), handle, bdf, hip, watts_of(library, handle)[0])


def visible_gpus(
    visible: Mapping[str, str] | None, gpus: list[AmdGpu]
) -> tuple[list[AmdGpu], list[Absence]]:
    """ROCR_VISIBLE_DEVICES first, then HIP's variable (or CUDA's, which HIP takes too) among what
    is left."""
    environ = os.environ if visible is None else visible
    left = sorted(gpus, key=lambda gpu: gpu.hip)
    absences: list[Absence] = []
    hip = next(
        (name for name in ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES") if name in environ), ""
    )
    for variable in ("ROCR_VISIBLE_DEVICES", hip):
        if variable in environ:
            choice = cards_named(variable, environ[variable], [gpu.card for gpu in left])
            left = [next(gpu for gpu in left if gpu.card == card) for card in choice.cards]
            remedy = f"correct {variable}; `amd-smi list` shows what there is"
            absences += [Absence("amd", said.reason, remedy, "gpu") for said in choice.remarks]
    return left, absences


def watts_of(library: Any, handle: Any) -> tuple[float, str]:
    """What the socket draws, and by which entry: now if the chip tells, else its mean."""
    try:
        said = library.amdsmi_get_power_info(handle)
    except library.AmdSmiException:
        return NOTHING, ""
    for entry in ("current_socket_power", "average_socket_power", "socket_power"):
        value = said.get(entry)
        if isinstance(value, int | float) and value > 0:
            return float(value), entry
    return NOTHING, ""


def find_heads(gpus: list[AmdGpu]) -> None:
    """Which GPUs share a socket."""
    sockets: dict[str, AmdGpu] = {}
    before: AmdGpu | None = None
    for gpu in gpus:
        socket = gpu.bdf.rsplit(".", 1)[0]  # partitions differ in the function only
        gpu.head = sockets.setdefault(socket, gpu)
        second_die = "MI250" in gpu.card.name and not gpu.watts > 0
        if second_die and before is not None and before.head is before and before.watts > 0:
            gpu.head = before
        gpu.head.shares += (gpu.card.number,)
        before = gpu


def with_heads(wanted: list[AmdGpu]) -> list[AmdGpu]:
    """A job on the second die alone is still read through the first."""
    return list(dict.fromkeys(gpu for one in wanted for gpu in (one.head, one)))


def _joules(library: Any, handle: Any) -> float:
    """Accumulator times resolution, which is in microjoules."""
    said = library.amdsmi_get_energy_count(handle)
    count = (
        said["energy_accumulator"] if "energy_accumulator" in said else said["power"]
    )  # its name before 6.2.1
    return float(count) * float(said["counter_resolution"]) * 1e-6


def find_faults(library: Any, gpus: list[AmdGpu], wait: Callable[[float], None]) -> None:
    """What is wrong with each counter; nothing if it counts about what the watts say (ROCm/amdsmi
    issue 38: some do not)."""
    before: list[tuple[AmdGpu, float, float]] = []
    for gpu in gpus:
        try:
            before.append((gpu, time.monotonic(), _joules(library, gpu.handle)))
        except library.AmdSmiException as error:
            gpu.fault = text_of(error)
        except (KeyError, TypeError, ValueError):
            gpu.fault = "it gives no number"
    if before:
        wait(CHECK_S)
    for gpu, at_s, joules in before:
        with contextlib.suppress(library.AmdSmiException, KeyError, TypeError, ValueError):
            drawn_w = (_joules(library, gpu.handle) - joules) / max(
                time.monotonic() - at_s, CHECK_S
            )
            if drawn_w <= 0:
                gpu.fault = "it does not move"
            elif not 0.1 < drawn_w / gpu.watts < 10.0 and gpu.watts > 0:
                gpu.fault = f"it counts {drawn_w:.3g} W where the sensor reads {gpu.watts:.3g} W"


def add_channels(library: Any, gpu: AmdGpu) -> list[Absence]:
    """The channels of one GPU, and what it does not offer."""
    absences = _add_joules_and_watts(library, gpu)
    handle = gpu.handle
    unknown = (library.AmdSmiException, KeyError, TypeError, ValueError, AttributeError)
    with contextlib.suppress(*unknown):
        _share(library, handle)
        gpu.add("utilisation", "amdsmi gfx activity", lambda: _share(library, handle), 500_000_000)
    with contextlib.suppress(*unknown):
        vram = library.AmdSmiMemoryType.VRAM
        float(library.amdsmi_get_gpu_memory_usage(handle, vram))
        gpu.add(
            "memory_used_bytes",
            "amdsmi VRAM used",
            lambda: float(library.amdsmi_get_gpu_memory_usage(handle, vram)),
            500_000_000,
        )
    return absences


def _add_joules_and_watts(library: Any, gpu: AmdGpu) -> list[Absence]:
    handle, what = gpu.handle, f"amd gpu:{gpu.card.number}"
    if gpu.head is not gpu:
        remedy = f"gpu:{gpu.head.card.number} counts both; nothing to do"
        return [Absence(f"{what} energy", _SHARED, remedy, "gpu")]
    absences = []
    together = (
        f"the watts of GPUs {', '.join(map(str, gpu.shares))} together"
        if len(gpu.shares) > 1
        else ""
    )
    if gpu.fault:
        remedy = "joules are summed from watts; a newer ROCm may"
        absences.append(Absence(f"{what} energy counter", gpu.fault, remedy, "gpu"))
    else:
        step_j = float(library.amdsmi_get_energy_count(handle)["counter_resolution"]) * 1e-6
        gpu.add(
            "energy_j",
            "amdsmi energy accumulator",
            lambda: _joules(library, handle),
            note=together,
            resolution=step_j,
        )
    _, entry = watts_of(library, handle)
    if entry:
        gpu.add(
            "power_w",
            f"amdsmi {entry}",
            lambda: _power(library, handle, entry),
            100_000_000,
            note=together,
            resolution=1.0,
        )
    else:
        reason = "amdsmi gives no socket power"
        absences.append(Absence(f"{what} power", reason, "amd-smi metric --power", "gpu"))
    return absences


def _power(library: Any, handle: Any, entry: str) -> float:
    watts = library.amdsmi_get_power_info(handle)[entry]
    return float(watts) if watts > 0 else NOTHING


def _share(library: Any, handle: Any) -> float:
    return float(library.amdsmi_get_gpu_activity(handle)["gfx_activity"]) / 100.0


def text_of(error: Exception) -> str:
    """The first line of amdsmi's text, which comes over several."""
    return " ".join(str(error).split()) or type(error).__name__


def find(
    *,
    visible: Mapping[str, str] | None = None,
    everything: bool = False,
    library: Any | None = None,
    first: int = 0,
    grace_s: float = 30.0,
    wait: Callable[[float], None] = time.sleep,
    sysfs: Path = Path("/sys"),
) -> FoundMeters:
    """The AMD GPUs this job may use. `first` is the number of the first, where other makers' cards
    have taken 0 and up."""
    opened = _open_library(library, sysfs)
    if isinstance(opened, Absence):
        return FoundMeters((), (opened,))
    try:
        handles = opened.amdsmi_get_processor_handles()
    except opened.AmdSmiException as error:
        return none_found("amd", f"amdsmi lists no GPU: {text_of(error)}", "amd-smi list", "gpu")
    gpus = [probe_gpu(opened, handle, first + place, place) for place, handle in enumerate(handles)]
    find_heads(gpus)
    wanted, absences = (gpus, []) if everything else visible_gpus(visible, gpus)
    wanted = with_heads(wanted)
    find_faults(opened, [gpu for gpu in wanted if gpu.head is gpu], wait)
    for gpu in wanted:
        absences += add_channels(opened, gpu)
    meter = Amd(opened, wanted, grace_s)
    if any(channel.quantity in {"energy_j", "power_w"} for channel in meter.channels):
        return FoundMeters((meter,), tuple(absences))
    meter.close()
    if absences:
        return FoundMeters((), tuple(absences))
    remedy = "amd-smi list; unset HIP_VISIBLE_DEVICES"
    return none_found("amd", "no AMD GPU is left to this job", remedy, "gpu")


class Amd(Channelwise):
    def __init__(self, library: Any, gpus: list[AmdGpu], grace_s: float) -> None:
        channels = tuple(channel for gpu in gpus for channel in gpu.channels)
        super().__init__("amd", channels, facts=_facts(library, gpus))
        self._library, self._error = library, library.AmdSmiException
        self.grace_ns = round(grace_s * 1e9)
        self._asks: list[AmdCall] = []
        for gpu in gpus:
            start = len(self._asks)
            self._asks += [replace(ask, slot=ask.slot + start) for ask in gpu.asks]

    def read(self, t_ns: int) -> list[float]:
        for ask in self._asks:
            if t_ns < ask.next_ns or not self.is_due(ask.slot, t_ns):
                continue
            why = "no value"
            try:
                ask.held = ask.call()
            except self._error as error:
                ask.held, why = NOTHING, text_of(error)
            except (TypeError, KeyError, ValueError):  # `N/A` where a number was
                ask.held = NOTHING
            ask.next_ns = t_ns + ask.every_ns
            channel = self.channels[ask.slot]
            if ask.held == ask.held:
                self.note_answer(ask.slot, f"{channel.source} answers again", channel.domain)
                continue
            said = f"{channel.source}: {why}"
            self.note_missing(
                ask.slot, said, channel.domain, t_ns=t_ns, wait_ns=RETRY_NS, news_at=A_HICCUP + 1
            )
        if self.all_silent(t_ns, (ask.slot for ask in self._asks)):
            raise MeterLost("no AMD GPU answers any more", "amd-smi list; dmesg | grep -i amdgpu")
        return [ask.held for ask in self._asks]

    def close(self) -> None:
        with contextlib.suppress(self._error):
            self._library.amdsmi_shut_down()


def _open_library(library: Any | None, sysfs: Path) -> Any | Absence:
    """amdsmi, initialised. It is slow to import and loud when it finds nothing, prints when its
    library is missing, and fails in many ways where versions do not fit."""
    if library is None:
        # a display controller or a processing accelerator
        if not are_on_bus(sysfs, "0x1002", ("0x03", "0x12")):
            seen = (
                "no AMD GPU is in this machine, or none was passed into this virtual machine or"
                " container"
            )
            return Absence("amd", seen, "lspci -d 1002: shows what there is", "gpu")
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                import amdsmi  # type: ignore[import-not-found,unused-ignore]
        except ImportError:
            return Absence(
                "amd",
                "the package amdsmi is not installed",
                "pip install 'ckptcost[amd]', of the version of your ROCm",
                "gpu",
            )
        except Exception as error:
            told = f"amdsmi does not load: {type(error).__name__}: {error}"
            fit = (
                "install ROCm's amd-smi-lib, set ROCM_PATH=/opt/rocm, and let amdsmi have ROCm's"
                " version: pip install amdsmi==<rocm>"
            )
            return Absence("amd", told, fit, "gpu")
        library = amdsmi
    try:
        library.amdsmi_init(library.AmdSmiInitFlags.INIT_AMD_GPUS)
    except library.AmdSmiException as error:
        return Absence(
            "amd",
            f"amdsmi does not start: {text_of(error)}",
            "modprobe amdgpu; ls -l /dev/kfd; usermod -aG render,video $USER",
            "gpu",
        )
    return library


def _facts(library: Any, gpus: list[AmdGpu]) -> dict[str, str]:
    facts = {"binding": f"amdsmi {getattr(library, '__version__', '')}".strip()}
    with contextlib.suppress(library.AmdSmiException, LookupError, TypeError, AttributeError):
        facts["driver"] = str(library.amdsmi_get_gpu_driver_info(gpus[0].handle)["driver_version"])
    return facts | {
        f"gpu:{gpu.card.number}": f"{gpu.card.name}, {gpu.card.uuid}, {gpu.bdf}" for gpu in gpus
    }
