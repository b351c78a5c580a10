"""NVIDIA GPUs through NVML: joules from the energy counter, watts from fields with a defined
meaning; no process lists, no profiling.

Only the cards that the job may use are measured, unless everything is asked for. What a reading
costs is in the facts of a run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ckptcost.meters import nvml_library as codes
from ckptcost.meters.base import Absence, Found
from ckptcost.meters.nvml_meter import Nvml
from ckptcost.meters.nvml_probe import Gpu, Missing, attempt, probe
from ckptcost.meters.visible import Card, Slice, chosen


def find(
    *,
    visible: Mapping[str, str] | None = None,
    everything: bool = False,
    library: Any | None = None,
    grace_s: float = 30.0,
    devfs: Path = Path("/dev"),
    procfs: Path = Path("/proc"),
    sysfs: Path = Path("/sys"),
) -> Found:
    """The GPUs this job may use, or all of the node. `visible` is the environment that decides;
    `library` stands in for the binding."""
    environ = os.environ if visible is None else visible
    opened = codes.load(library, environ, devfs=devfs, procfs=procfs, sysfs=sysfs)
    if isinstance(opened, Absence):
        return Found((), (opened,))
    count, code = attempt(opened, "nvmlDeviceGetCount")
    cards, handles, missing = _cards(opened, count or 0)
    choice = chosen(environ, cards, everything)
    driver = _text(opened, "nvmlSystemGetDriverVersion")
    gpus = [
        probe(opened, card, handles[card.number], driver, choice.slices.get(card.number, ()))
        for card in choice.cards
    ]
    missing += _one_module_twice(gpus)
    absences = _told(missing + [lack for gpu in gpus for lack in gpu.missing])
    absences += [
        Absence("nvml " + choice.by.split("=")[0], said.reason, said.remedy, "gpu")
        for said in choice.remarks
    ]
    absences += [_sliced(gpu) for gpu in gpus if gpu.card.slices]
    if not choice.cards:
        absences.append(_nobody(count, code, choice.by))
    gpus = [gpu for gpu in gpus if gpu.channels]
    if not gpus:
        with suppress(opened.NVMLError):
            opened.nvmlShutdown()
        return Found((), tuple(absences))
    return Found(
        (Nvml(opened, gpus, _facts(opened, driver, gpus, choice.by), grace_s),), tuple(absences)
    )


def _cards(library: Any, count: int) -> tuple[list[Card], dict[int, Any], list[Missing]]:
    """Every card that this process may open. One that it may not belongs to somebody else, and CUDA
    does not count it either."""
    cards: list[Card] = []
    handles: dict[int, Any] = {}
    missing: list[Missing] = []
    for index in range(count):
        handle, code = attempt(library, "nvmlDeviceGetHandleByIndex", index)
        if handle is None:
            remedy = (
                "another job's, if a scheduler gave this job only some"
                if code == codes.NO_PERMISSION
                else "nvidia-smi; dmesg | grep -i nvrm"
            )
            missing.append(Missing(index, "", codes.reason(code), remedy))
            continue
        handles[index] = handle
        uuid, name = (
            _text(library, "nvmlDeviceGetUUID", handle),
            _text(library, "nvmlDeviceGetName", handle),
        )
        cards.append(Card(index, uuid, name, _slices(library, handle)))
    return cards, handles, missing


def _slices(library: Any, handle: Any) -> tuple[Slice, ...]:
    mode, _ = attempt(library, "nvmlDeviceGetMigMode", handle)
    if not mode or not mode[0]:
        return ()
    most, _ = attempt(library, "nvmlDeviceGetMaxMigDeviceCount", handle)
    found = []
    for place in range(most or 0):
        part, _ = attempt(library, "nvmlDeviceGetMigDeviceHandleByIndex", handle, place)
        if part is not None:
            ids = [
                attempt(library, name, part)[0]
                for name in ("nvmlDeviceGetGpuInstanceId", "nvmlDeviceGetComputeInstanceId")
            ]
            found.append(
                Slice(
                    _text(library, "nvmlDeviceGetUUID", part),
                    *(-1 if number is None else number for number in ids),
                )
            )
    return tuple(found)


def _one_module_twice(gpus: list[Gpu]) -> list[Missing]:
    """Two GPUs of one superchip may show the same module: then it is read through the first
    only."""
    missing: list[Missing] = []
    seen: dict[tuple[object, float], int] = {}
    for gpu in gpus:
        twin = next(
            (seen[(key, value)] for key, value in gpu.sensors.items() if (key, value) in seen), None
        )
        if twin is None:
            seen |= dict.fromkeys(gpu.sensors.items(), gpu.card.number)
            continue
        keep = [
            slot
            for slot, channel in enumerate(gpu.channels)
            if not channel.domain.startswith("module:")
        ]
        gpu.asks = [kept for ask in gpu.asks if (kept := ask.only(keep)) is not None]
        gpu.channels = [gpu.channels[slot] for slot in keep]
        gpu.sensors = {}
        same = f"its module's sensors read exactly what gpu:{twin}'s read: one module with two GPUs"
        missing.append(
            Missing(gpu.card.number, "module", same, f"nothing to do: module:{twin} counts both")
        )
    return missing


def _told(missing: list[Missing]) -> list[Absence]:
    """The same lack on several GPUs is told once."""
    alike: dict[tuple[str, str, str], list[int]] = {}
    for lack in missing:
        alike.setdefault(lack[1:], []).append(lack.gpu)
    return [
        Absence(f"nvml gpu:{','.join(map(str, indices))} {what}".strip(), reason, remedy, "gpu")
        for (what, reason, remedy), indices in alike.items()
    ]


def _sliced(gpu: Gpu) -> Absence:
    what = f"nvml gpu:{gpu.card.number} MIG"
    shared = "share the card's joules by a rule of your own, or give the job the whole card"
    return Absence(
        what,
        "a MIG instance has no energy of its own: the card's counter is read, once for all"
        " instances",
        shared,
        "gpu",
    )


def _nobody(count: int | None, code: int, by: str) -> Absence:
    if by:
        return Absence(
            "nvml",
            f"{by} leaves this job no GPU",
            "unset it, or ask for all GPUs of the node",
            "gpu",
        )
    if count is None:
        return Absence("nvml", codes.reason(code), "nvidia-smi", "gpu")
    return Absence(
        "nvml",
        "the NVIDIA driver runs but shows no GPU here",
        "in a container: docker run --gpus all; else: nvidia-smi -L",
        "gpu",
    )


def _facts(library: Any, driver: str, gpus: list[Gpu], by: str) -> dict[str, str]:
    facts = {
        "driver": driver,
        "nvml": _text(library, "nvmlSystemGetNVMLVersion"),
        "binding": "nvidia-ml-py",
    }
    if by:
        facts["visible"] = by
    for gpu in gpus:
        cut = f", MIG {len(gpu.card.slices)} instances" if gpu.card.slices else ""
        facts[f"gpu:{gpu.card.number}"] = (
            f"{gpu.card.name}, {gpu.card.uuid}, {gpu.kind or 'unknown chip'}{cut},"
            f" {gpu.took_us:.0f} us a tick"
        )
    return facts


def _text(library: Any, name: str, *arguments: Any) -> str:
    said, _ = attempt(library, name, *arguments)
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said or "")
