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
from dataclasses import replace
from pathlib import Path
from typing import Any

from ckptcost.errors import MeterLost
from ckptcost.meters import amd_probe
from ckptcost.meters.amd_probe import Ask, Gpu, text_of
from ckptcost.meters.base import A_HICCUP, NOTHING, RETRY_NS, Absence, Channelwise, Found


def find(
    *,
    visible: Mapping[str, str] | None = None,
    everything: bool = False,
    library: Any | None = None,
    first: int = 0,
    grace_s: float = 30.0,
    wait: Callable[[float], None] = time.sleep,
    sysfs: Path = Path("/sys"),
) -> Found:
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
        return Found((), (Absence("amd", seen, "lspci -d 1002: shows what there is", "gpu"),))
    opened = _load(library)
    if isinstance(opened, Absence):
        return Found((), (opened,))
    try:
        handles = opened.amdsmi_get_processor_handles()
    except opened.AmdSmiException as error:
        return Found(
            (), (Absence("amd", f"amdsmi lists no GPU: {text_of(error)}", "amd-smi list", "gpu"),)
        )
    gpus = [
        amd_probe.look(opened, handle, first + place, place) for place, handle in enumerate(handles)
    ]
    wanted, remarks = (gpus, ()) if everything else amd_probe.visible(environ, gpus)
    watts = {gpu.card.number: amd_probe.watts_of(opened, gpu.handle)[0] for gpu in gpus}
    heads = amd_probe.heads_of(gpus, watts)
    wanted = amd_probe.with_heads(wanted, gpus, heads)
    absences = [Absence("amd", remark.reason, remark.remedy, "gpu") for remark in remarks]
    counting = amd_probe.miscounting(
        opened, [gpu for gpu in wanted if heads[gpu.card.number] == gpu.card.number], watts, wait
    )
    for gpu in wanted:
        absences += amd_probe.fill(opened, gpu, heads, counting)
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
        return Found((), tuple(absences))
    return Found((Amd(opened, wanted, _facts(opened, wanted), grace_s),), tuple(absences))


class Amd(Channelwise):
    def __init__(
        self, library: Any, gpus: list[Gpu], facts: dict[str, str], grace_s: float
    ) -> None:
        super().__init__(
            "amd", tuple(channel for gpu in gpus for channel in gpu.channels), facts=facts
        )
        self._library, self._error = library, library.AmdSmiException
        self.grace_ns = round(grace_s * 1e9)
        self._asks: list[Ask] = []
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
                self.answers(ask.slot, f"{channel.source} answers again", channel.domain)
                continue
            said = f"{channel.source}: {why}"
            self.missing(
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


def _load(library: Any | None) -> Any | Absence:
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


def _facts(library: Any, gpus: list[Gpu]) -> dict[str, str]:
    facts = {"binding": f"amdsmi {getattr(library, '__version__', '')}".strip()}
    with contextlib.suppress(library.AmdSmiException, KeyError, TypeError, AttributeError):
        facts["driver"] = str(library.amdsmi_get_gpu_driver_info(gpus[0].handle)["driver_version"])
    return facts | {
        f"gpu:{gpu.card.number}": f"{gpu.card.name}, {gpu.card.uuid}, {gpu.bdf}" for gpu in gpus
    }
