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

from ckptcost.core.channels import Channel
from ckptcost.errors import MeterLost
from ckptcost.meters.base import A_HICCUP, NOTHING, RETRY_NS, Absence, Channelwise, FoundMeters
from ckptcost.meters.visible import Card, Remark, cards_named

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


@dataclass
class AmdGpu:
    card: Card
    handle: Any
    bdf: str
    hip: int
    channels: list[Channel] = field(default_factory=list)
    asks: list[AmdCall] = field(default_factory=list)
    shares: tuple[int, ...] = ()
    """GPUs that are read through this one"""

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
    return AmdGpu(Card(index, uuid, name), handle, bdf, hip if isinstance(hip, int) else place)


def visible_gpus(
    environ: Mapping[str, str], gpus: list[AmdGpu]
) -> tuple[list[AmdGpu], tuple[Remark, ...]]:
    """ROCR_VISIBLE_DEVICES first, then HIP's variable (or CUDA's, which HIP takes too) among what
    is left."""
    left = sorted(gpus, key=lambda gpu: gpu.hip)
    remarks: tuple[Remark, ...] = ()
    hip = next(
        (name for name in ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES") if name in environ), ""
    )
    for variable in ("ROCR_VISIBLE_DEVICES", hip):
        if variable in environ:
            choice = cards_named(variable, environ[variable], [gpu.card for gpu in left])
            left = [next(gpu for gpu in left if gpu.card == card) for card in choice.cards]
            remarks = (
                *remarks,
                *(
                    said._replace(remedy=f"correct {variable}; `amd-smi list` shows what there is")
                    for said in choice.remarks
                ),
            )
    return left, remarks


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


def heads_of(gpus: list[AmdGpu], watts: Mapping[int, float]) -> dict[int, int]:
    """Which GPU a GPU is read through: itself, or the one it shares a socket with."""
    heads: dict[int, int] = {}
    sockets: dict[str, int] = {}
    before: AmdGpu | None = None
    for gpu in gpus:
        socket = gpu.bdf.rsplit(".", 1)[0]  # partitions differ in the function only
        head = sockets.setdefault(socket, gpu.card.number)
        second_die = "MI250" in gpu.card.name and not watts[gpu.card.number] > 0
        if (
            second_die
            and before is not None
            and heads[before.card.number] == before.card.number
            and watts[before.card.number] > 0
        ):
            head = before.card.number
        heads[gpu.card.number] = head
        before = gpu
    return heads


def with_heads(wanted: list[AmdGpu], gpus: list[AmdGpu], heads: Mapping[int, int]) -> list[AmdGpu]:
    """A job on the second die alone is still read through the first."""
    by_index = {gpu.card.number: gpu for gpu in gpus}
    for gpu in gpus:
        by_index[heads[gpu.card.number]].shares += (gpu.card.number,)
    return list(
        {
            gpu.card.number: gpu
            for one in wanted
            for gpu in (by_index[heads[one.card.number]], one)
        }.values()
    )


def _joules(library: Any, handle: Any) -> float:
    """Accumulator times resolution, which is in microjoules."""
    said = library.amdsmi_get_energy_count(handle)
    count = (
        said["energy_accumulator"] if "energy_accumulator" in said else said["power"]
    )  # its name before 6.2.1
    return float(count) * float(said["counter_resolution"]) * 1e-6


def counter_faults(
    library: Any, gpus: list[AmdGpu], watts: Mapping[int, float], wait: Callable[[float], None]
) -> dict[int, str]:
    """For each GPU, what is wrong with its counter; nothing if it counts about what the watts say
    (ROCm/amdsmi issue 38: some do not)."""
    before: dict[int, tuple[float, float]] = {}
    wrong: dict[int, str] = {}
    for gpu in gpus:
        try:
            before[gpu.card.number] = (time.monotonic(), _joules(library, gpu.handle))
        except library.AmdSmiException as error:
            wrong[gpu.card.number] = text_of(error)
        except (KeyError, TypeError, ValueError):
            wrong[gpu.card.number] = "it gives no number"
    if before:
        wait(CHECK_S)
    for gpu in gpus:
        if gpu.card.number not in before:
            continue
        at_s, joules = before[gpu.card.number]
        with contextlib.suppress(library.AmdSmiException, KeyError, TypeError, ValueError):
            drawn_w = (_joules(library, gpu.handle) - joules) / max(
                time.monotonic() - at_s, CHECK_S
            )
            known_w = watts[gpu.card.number]
            if drawn_w <= 0:
                wrong[gpu.card.number] = "it does not move"
            elif not 0.1 < drawn_w / known_w < 10.0 and known_w > 0:
                wrong[gpu.card.number] = (
                    f"it counts {drawn_w:.3g} W where the sensor reads {known_w:.3g} W"
                )
    return wrong


def add_channels(
    library: Any, gpu: AmdGpu, heads: Mapping[int, int], wrong: Mapping[int, str]
) -> list[Absence]:
    """The channels of one GPU, and what it does not offer."""
    handle, index = gpu.handle, gpu.card.number
    absences = []
    if heads[index] != index:
        absences.append(
            Absence(
                f"amd gpu:{index} energy",
                _SHARED,
                f"gpu:{heads[index]} counts both; nothing to do",
                "gpu",
            )
        )
    else:
        together = (
            f"the watts of GPUs {', '.join(map(str, gpu.shares))} together"
            if len(gpu.shares) > 1
            else ""
        )
        if index in wrong:
            absences.append(
                Absence(
                    f"amd gpu:{index} energy counter",
                    wrong[index],
                    "joules are summed from watts; a newer ROCm may",
                    "gpu",
                )
            )
        else:
            source = "amdsmi energy accumulator"
            step_j = float(library.amdsmi_get_energy_count(handle)["counter_resolution"]) * 1e-6
            gpu.add(
                "energy_j",
                source,
                lambda: _joules(library, handle),
                note=together,
                resolution=step_j,
            )
        _, entry = watts_of(library, handle)
        if entry:
            source = f"amdsmi {entry}"
            gpu.add(
                "power_w",
                source,
                lambda: _power(library, handle, entry),
                100_000_000,
                note=together,
                resolution=1.0,
            )
        else:
            absences.append(
                Absence(
                    f"amd gpu:{index} power",
                    "amdsmi gives no socket power",
                    "amd-smi metric --power",
                    "gpu",
                )
            )
    with contextlib.suppress(
        library.AmdSmiException, KeyError, TypeError, ValueError, AttributeError
    ):
        _share(library, handle)
        gpu.add("utilisation", "amdsmi gfx activity", lambda: _share(library, handle), 500_000_000)
    with contextlib.suppress(
        library.AmdSmiException, KeyError, TypeError, ValueError, AttributeError
    ):
        vram = library.AmdSmiMemoryType.VRAM
        float(library.amdsmi_get_gpu_memory_usage(handle, vram))
        source = "amdsmi VRAM used"
        gpu.add(
            "memory_used_bytes",
            source,
            lambda: float(library.amdsmi_get_gpu_memory_usage(handle, vram)),
            500_000_000,
        )
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
    environ = os.environ if visible is None else visible
    if library is None and not _on_the_bus(
        sysfs
    ):  # amdsmi is slow to import and loud when it finds nothing
        seen = (
            "no AMD GPU is in this machine, or none was passed into this virtual machine or"
            " container"
        )
        return FoundMeters((), (Absence("amd", seen, "lspci -d 1002: shows what there is", "gpu"),))
    opened = _open_library(library)
    if isinstance(opened, Absence):
        return FoundMeters((), (opened,))
    try:
        handles = opened.amdsmi_get_processor_handles()
    except opened.AmdSmiException as error:
        return FoundMeters(
            (), (Absence("amd", f"amdsmi lists no GPU: {text_of(error)}", "amd-smi list", "gpu"),)
        )
    gpus = [probe_gpu(opened, handle, first + place, place) for place, handle in enumerate(handles)]
    wanted, remarks = (gpus, ()) if everything else visible_gpus(environ, gpus)
    watts = {gpu.card.number: watts_of(opened, gpu.handle)[0] for gpu in gpus}
    heads = heads_of(gpus, watts)
    wanted = with_heads(wanted, gpus, heads)
    absences = [Absence("amd", remark.reason, remark.remedy, "gpu") for remark in remarks]
    counting = counter_faults(
        opened, [gpu for gpu in wanted if heads[gpu.card.number] == gpu.card.number], watts, wait
    )
    for gpu in wanted:
        absences += add_channels(opened, gpu, heads, counting)
    if not any(
        channel.quantity in {"energy_j", "power_w"} for gpu in wanted for channel in gpu.channels
    ):
        absences = absences or [
            Absence(
                "amd",
                "no AMD GPU is left to this job",
                "amd-smi list; unset HIP_VISIBLE_DEVICES",
                "gpu",
            )
        ]
        with contextlib.suppress(opened.AmdSmiException):
            opened.amdsmi_shut_down()
        return FoundMeters((), tuple(absences))
    return FoundMeters((Amd(opened, wanted, _facts(opened, wanted), grace_s),), tuple(absences))


class Amd(Channelwise):
    def __init__(
        self, library: Any, gpus: list[AmdGpu], facts: dict[str, str], grace_s: float
    ) -> None:
        super().__init__(
            "amd", tuple(channel for gpu in gpus for channel in gpu.channels), facts=facts
        )
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


def _on_the_bus(sysfs: Path) -> bool:
    """Whether AMD has a display controller or a processing accelerator here."""
    for device in sysfs.glob("bus/pci/devices/*"):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            kind = (device / "class").read_text("ascii")
            if (
                kind.startswith(("0x03", "0x12"))
                and (device / "vendor").read_text("ascii").strip() == "0x1002"
            ):
                return True
    return False


def _open_library(library: Any | None) -> Any | Absence:
    """amdsmi, initialised. It prints when its library is missing, and fails in many ways where
    versions do not fit."""
    if library is None:
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
    with contextlib.suppress(library.AmdSmiException, KeyError, TypeError, AttributeError):
        facts["driver"] = str(library.amdsmi_get_gpu_driver_info(gpus[0].handle)["driver_version"])
    return facts | {
        f"gpu:{gpu.card.number}": f"{gpu.card.name}, {gpu.card.uuid}, {gpu.bdf}" for gpu in gpus
    }
