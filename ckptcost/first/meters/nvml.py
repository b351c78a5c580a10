"""NVIDIA GPUs through NVML: joules from the energy counter, watts from fields with a defined
meaning; no process lists, no profiling.

Only the cards that the job may use are measured, unless everything is asked for. Every field is
tried once: what works becomes a channel and what does not an absence. A device that falls silent
gives NaN and one event, and is asked again about once a second; with all silent for `grace_s` the
meter is lost, and `read` says so until one is back. What a reading costs is in the facts of a run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from ckptcost.first.core.channels import Channel
from ckptcost.first.errors import MeterLost
from ckptcost.first.meters import nvml_driver as api
from ckptcost.first.meters.base import (
    A_HICCUP,
    NOTHING,
    RETRY_NS,
    Absence,
    Channelwise,
    FoundMeters,
)
from ckptcost.first.meters.nvml_driver import (
    EnergyCall,
    FieldsCall,
    MemoryCall,
    NvmlCall,
    UsageCall,
    UtilisationCall,
    attempt,
    text,
)
from ckptcost.first.meters.visible import Card, Choice, Slice, choose_cards

SLOW_NS = 500_000
"""a call for power that takes longer is made only as often as the sensor renews its value"""
SLOW_GAUGE_NS, GAUGE_NS = 100_000_000, 50_000_000
"""watts beside a counter are asked twice in each 100 ms that the driver repeats them; watts alone
at every tick"""
REST_NS = 1_000_000_000
"""utilisation and memory are for the eye, not for sums"""

Pair = tuple[int, int]
Key = str | Pair
"""`energy`, `usage`, `utilisation`, `memory`, or a field with its scope"""
_TOTAL: Key = "energy"
_PAIRS: list[Pair] = [
    (api.INSTANT, api.GPU),
    (api.AVERAGE, api.GPU),
    (api.INSTANT, api.MEMORY),
    (api.AVERAGE, api.MEMORY),
    (api.INSTANT, api.MODULE),
    (api.AVERAGE, api.MODULE),
    (api.ENERGY, api.GPU),
]
_NO_COUNTER = (
    "older than Volta, or a virtual GPU: joules are summed from its watts; the host of a virtual"
    " GPU has the counter"
)
_NO_WATTS = (
    "a virtual GPU or a MIG slice without its card: measure on the host, or ask for the whole card"
)
_NO_MEMORY = (
    "nothing to do: only recent data-centre GPUs under driver 550 or newer tell the memory's watts"
    " apart"
)
_MIG_SHARES = (
    "a MIG instance has no energy of its own: the card's counter is read, once for all instances"
)
_SHARE_IT = "share the card's joules by a rule of your own, or give the job the whole card"
_MODULE = (
    "counts the whole superchip module: GPU, CPU and memory; never to be added to the CPU's joules"
)


class Missing(NamedTuple):
    """Something one GPU does not offer; alike ones of several GPUs are told once."""

    gpu: int
    what: str
    reason: str
    remedy: str


@dataclass
class NvmlGpu:
    """One card: its channels, the calls that fill them, and whether it is there."""

    card: Card
    handle: Any
    kind: str
    channels: list[Channel] = field(default_factory=list)
    asks: list[NvmlCall] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    sensors: dict[Key, float] = field(default_factory=dict)
    """what the module's sensors said, in milli-units: one module may be seen through two GPUs"""
    took_us: float = 0.0

    @property
    def domain(self) -> str:
        return self.channels[0].domain if self.channels else f"gpu:{self.card.number}"

    def note_missing(self, what: str, reason: str, remedy: str) -> None:
        self.missing.append(Missing(self.card.number, what, reason, remedy))


def probe(
    library: Any, card: Card, handle: Any, driver: str, named: tuple[str, ...] = ()
) -> NvmlGpu:
    """Try everything once. `named` are the MIG instances of the card that the job was given."""
    architecture, _ = attempt(library, "nvmlDeviceGetArchitecture", handle)
    gpu = NvmlGpu(card, handle, api.chip(architecture, card.name))
    said, refused = _first_answers(library, handle)
    superchip = _is_superchip(library, card, handle)
    _drop_repeated(said, refused, superchip)
    about = Channel(
        f"gpu:{card.number}",
        "power_w",
        "",
        scope="gpu",
        device=card.uuid or card.name,
        resolution=0.001,
        note=_mig_note(card, named),
    )
    if superchip or any(isinstance(key, tuple) and key[1] == api.MODULE for key in said):
        wanted = _superchip_channels(gpu, about, said, driver)
    else:
        wanted = _card_channels(gpu, about, said, refused, driver)
    if not any(channel.quantity == "power_w" and channel.role == "part" for _, channel in wanted):
        wanted += _usage_channel(library, gpu, about, wanted, driver)
    if wanted:
        wanted += _slow_channels(library, gpu, about)
        _make_calls(library, gpu, wanted)
    return gpu


def _is_superchip(library: Any, card: Card, handle: Any) -> bool:
    """By its link to a CPU, or where the driver does not tell, by its name."""
    link, _ = attempt(library, "nvmlDeviceGetC2cModeInfoV", handle)
    return bool((link is not None and link.isC2cEnabled) or api.SUPERCHIP.search(card.name))


def _first_answers(library: Any, handle: Any) -> tuple[dict[Key, float], dict[Key, int]]:
    """The energy counter and every field that answers, in milli-units, and the codes of those that
    do not."""
    said: dict[Key, float] = {}
    refused: dict[Key, int] = {}
    elements, code = attempt(library, "nvmlDeviceGetFieldValues", handle, _PAIRS)
    total_mj, refused[_TOTAL] = attempt(library, "nvmlDeviceGetTotalEnergyConsumption", handle)
    if total_mj is not None:
        said[_TOTAL] = float(total_mj)
    if elements is None:
        return said, refused | dict.fromkeys(_PAIRS, code)
    for pair, element in zip(_PAIRS, elements, strict=True):
        value = 0.0 if element.nvmlReturn else api.number(element.value, element.valueType)
        if value > 0.0 or (pair[1] == api.GPU and not element.nvmlReturn and pair[0] != api.ENERGY):
            # the GPU's own 0 W is kept: asked too early after a start it may come right
            said[pair] = value
        else:
            refused[pair] = element.nvmlReturn or api.NO_WATTS
    return said, refused


def _drop_repeated(said: dict[Key, float], refused: dict[Key, int], superchip: bool) -> None:
    """A driver that does not know scopes gives the same number for each: then only one of them is
    meant."""
    for reading in (api.INSTANT, api.AVERAGE):
        for scope in (api.MODULE, api.MEMORY):
            if said.get((reading, scope), 0.0) > 0.0 and said.get((reading, scope)) == said.get(
                (reading, api.GPU)
            ):
                other = api.GPU if superchip and scope == api.MODULE else scope
                del said[(reading, other)]
                refused[(reading, other)] = api.NOT_SUPPORTED


def _watts_of(said: Mapping[Key, float], scope: int) -> Pair | None:
    """The field for the watts of a scope: now before their mean."""
    return next(
        (pair for pair in ((api.INSTANT, scope), (api.AVERAGE, scope)) if said.get(pair)), None
    )


def _card_channels(
    gpu: NvmlGpu, about: Channel, said: dict[Key, float], refused: dict[Key, int], driver: str
) -> list[tuple[Key, Channel]]:
    """A card of its own: energy, then watts now, their mean beside it, and the memory's share."""
    wanted: list[tuple[Key, Channel]] = []
    if _TOTAL in said:
        wanted.append((_TOTAL, _counter(gpu, about)))
    else:
        gpu.note_missing("energy counter", api.reason(refused[_TOTAL]), _NO_COUNTER)
    now, mean = (api.INSTANT, api.GPU), (api.AVERAGE, api.GPU)
    if now in said:
        wanted.append((now, _power(gpu, about, now, driver)))
    if mean in said:
        channel = _power(gpu, about, mean, driver)
        if now in said:
            channel = replace(channel, domain=f"{about.domain}.average", role="detail")
        wanted.append((mean, channel))
    if memory := _watts_of(said, api.MEMORY):
        channel = replace(
            _power(gpu, about, memory, driver),
            domain=f"{about.domain}.memory",
            role="detail",
            scope="memory",
            accuracy=None,
        )
        wanted.append((memory, channel))
    else:
        code = refused.get((api.AVERAGE, api.MEMORY), api.NOT_SUPPORTED)
        gpu.note_missing("memory power", api.reason(code), _NO_MEMORY)
    return wanted


def _superchip_channels(
    gpu: NvmlGpu, about: Channel, said: dict[Key, float], driver: str
) -> list[tuple[Key, Channel]]:
    """The total counter is the module's. Where the GPU can be seen by itself it is the part, and
    the module is held against the sum."""
    wanted: list[tuple[Key, Channel]] = []
    total, own = said.get(_TOTAL), said.get((api.ENERGY, api.GPU))
    if own is not None and total is not None and abs(own - total) > 0.01 * total:
        counter = replace(_counter(gpu, about), source="NVML field 191 (energy), scope gpu")
        wanted.append(((api.ENERGY, api.GPU), counter))
    if now := _watts_of(said, api.GPU):
        wanted.append((now, _power(gpu, about, now, driver)))
    module = replace(
        about,
        domain=f"module:{gpu.card.number}",
        scope="module",
        role="whole" if wanted else "part",
        note=_join_notes(_MODULE, about.note),
    )
    if not wanted:
        module = replace(module, covers=("cpu", "dram"))
        gpu.note_missing(
            "GPU apart from its module",
            "the driver gives no watts for the GPU alone",
            "a newer driver may; until then only the module counts",
        )
    if total is not None:
        wanted.append((_TOTAL, _counter(gpu, module)))
        gpu.sensors[_TOTAL] = total
    if watts := _watts_of(said, api.MODULE):
        wanted.append((watts, replace(_power(gpu, module, watts, driver), accuracy=None)))
        gpu.sensors[watts] = said[watts]
    return wanted


def _usage_channel(
    library: Any,
    gpu: NvmlGpu,
    about: Channel,
    wanted: list[tuple[Key, Channel]],
    driver: str,
) -> list[tuple[Key, Channel]]:
    """Watts by the old call, for a GPU that has no others; where a module is seen they may be the
    module's."""
    watts, code = attempt(library, "nvmlDeviceGetPowerUsage", gpu.handle)
    if watts and not any(channel.domain.startswith("module:") for _, channel in wanted):
        return [("usage", _power(gpu, about, (api.USAGE, api.GPU), driver))]
    if not wanted:
        why = api.reason(code or api.NO_WATTS)
        gpu.note_missing("", f"neither energy nor power: {why}", _NO_WATTS)
    return []


def _counter(gpu: NvmlGpu, about: Channel) -> Channel:
    note = _join_notes(api.energy_note(gpu.kind), about.note)
    return replace(
        about,
        quantity="energy_j",
        source="NVML total energy consumption",
        tick_s=0.1,
        lag_s=api.LAG_S,
        note=note,
    )


def _power(gpu: NvmlGpu, about: Channel, pair: Pair, driver: str) -> Channel:
    known = api.sensor(gpu.kind, pair[0], driver)
    error = api.steady_error(gpu.card.name)
    off = "" if error is None else f"published steady-state error {error:+.1%}"
    name = {api.INSTANT: "instant power", api.AVERAGE: "average power"}.get(pair[0], "")
    return replace(
        about,
        source=(
            f"NVML field {pair[0]} ({name}), scope {api.SCOPES[pair[1]]}"
            if pair[0] > 0
            else "NVML power usage"
        ),
        averaging_s=known.averaging_s,
        tick_s=known.tick_s,
        looks=known.looks,
        accuracy=None if error is None else abs(error),
        note=_join_notes(known.note, off, about.note),
    )


def _slow_channels(library: Any, gpu: NvmlGpu, about: Channel) -> list[tuple[Key, Channel]]:
    wanted: list[tuple[Key, Channel]] = []
    slow = "asked every 0.5 s and repeated between"
    for key, call, quantity, resolution in (
        ("utilisation", "nvmlDeviceGetUtilizationRates", "utilisation", 0.01),
        ("memory", "nvmlDeviceGetMemoryInfo", "memory_used_bytes", 1.0),
    ):
        value, code = attempt(library, call, gpu.handle)
        if value is None:
            why = (
                "nothing to do: the driver has it neither for MIG nor where memory is shared with"
                " the CPU"
            )
            gpu.note_missing(key, api.reason(code), why)
            continue
        channel = replace(
            about,
            quantity=quantity,  # type: ignore[arg-type]
            source=f"NVML {key}",
            resolution=resolution,
            note=slow,
        )
        wanted.append((key, channel))
    return wanted


def _make_calls(library: Any, gpu: NvmlGpu, wanted: list[tuple[Key, Channel]]) -> None:
    """Channels to calls: all fields in one."""
    gpu.channels = [channel for _, channel in wanted]
    slots = {key: slot for slot, (key, _) in enumerate(wanted)}
    pairs = [key for key in slots if isinstance(key, tuple)]
    counted = _TOTAL in slots and gpu.channels[slots[_TOTAL]].role == "part"
    makers: dict[Key, Callable[[int], NvmlCall]] = {
        "energy": lambda slot: EnergyCall(slot, library),
        "usage": lambda slot: UsageCall(slot, library),
        "utilisation": lambda slot: UtilisationCall(slot, library, REST_NS),
        "memory": lambda slot: MemoryCall(slot, library, REST_NS),
    }
    gpu.asks = [makers[key](slot) for key, slot in slots.items() if key in makers]
    if pairs:
        gpu.asks.append(FieldsCall([slots[pair] for pair in pairs], pairs, library))
    _time_calls(library, gpu, counted)


def _time_calls(library: Any, gpu: NvmlGpu, counted: bool) -> None:
    """Each is made once; watts that are slow to ask for, or beside a counter, are asked for less
    often."""
    for ask in gpu.asks:
        began = time.perf_counter_ns()
        with suppress(library.NVMLError):
            ask.call(gpu.handle, 0)
        took = time.perf_counter_ns() - began
        ask.forget()
        if not ask.every_ns:
            gpu.took_us += took / 1000.0
            if isinstance(ask, FieldsCall | UsageCall) and took > SLOW_NS:
                ask.every_ns = SLOW_GAUGE_NS
            elif isinstance(ask, FieldsCall) and counted:
                ask.every_ns = GAUGE_NS


def _mig_note(card: Card, named: tuple[str, ...]) -> str:
    if not card.slices:
        return ""
    which = (
        f"the job was given {', '.join(named)}"
        if named
        else f"the card is cut into {len(card.slices)}"
    )
    return f"MIG: the whole card's value, for all instances together; {which}"


def _join_notes(*notes: str) -> str:
    return "; ".join(note for note in notes if note)


class Nvml(Channelwise):
    """All GPUs of this job on this node."""

    def __init__(
        self, library: Any, gpus: list[NvmlGpu], facts: dict[str, str], grace_s: float
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
            if self.is_lost(gpu.domain) and not self._find_again(gpu, t_ns):
                continue
            self._read_gpu(gpu, t_ns, row)
        if self.all_silent(t_ns, (gpu.domain for gpu in self._gpus)):
            raise MeterLost(
                "no GPU answers NVML any more", "nvidia-smi; dmesg | grep -i -e nvrm -e xid"
            )
        return row

    def _read_gpu(self, gpu: NvmlGpu, t_ns: int, row: list[float]) -> None:
        """Its values into the row."""
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
            if news and not self._check_answers(gpu, ask, said, t_ns):
                break

    def _check_answers(self, gpu: NvmlGpu, ask: NvmlCall, said: list[float], t_ns: int) -> bool:
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
                    self.note_answer(slot, f"{channel.source} answers again", channel.domain)
                continue
            silent += 1
            code = ask.why[place]
            if code in api.LIBRARY_GONE:
                self._close_down(code, t_ns)
                return False
            if code in api.DEVICE_GONE:
                self._lose(gpu, code, t_ns)
                return False
            why = f"{channel.source}: {api.reason(code)}"
            self.note_missing(
                slot, why, channel.domain, t_ns=t_ns, wait_ns=RETRY_NS, news_at=A_HICCUP + 1
            )
        if silent == len(ask.slots) and all(map(self.is_lost, ask.slots)):
            ask.held, ask.next_ns = said, t_ns + RETRY_NS
        ask.troubled = any(slot in self.silent for slot in ask.slots)
        return True

    def _lose(self, gpu: NvmlGpu, code: int, t_ns: int) -> None:
        self.note_missing(gpu.domain, api.reason(code), t_ns=t_ns, wait_ns=RETRY_NS)

    def _find_again(self, gpu: NvmlGpu, t_ns: int) -> bool:
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
        if said[0] != said[0] and ask.why[0] in api.DEVICE_GONE | api.LIBRARY_GONE:
            self._lose(gpu, ask.why[0], t_ns)
            return False
        self.note_answer(gpu.domain, "the GPU answers again")
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

    def close(self) -> None:
        with suppress(self._error):
            self._library.nvmlShutdown()


def find(
    *,
    visible: Mapping[str, str] | None = None,
    everything: bool = False,
    library: Any | None = None,
    grace_s: float = 30.0,
    devfs: Path = Path("/dev"),
    procfs: Path = Path("/proc"),
    sysfs: Path = Path("/sys"),
) -> FoundMeters:
    """The GPUs this job may use, or all of the node. `visible` is the environment that decides;
    `library` stands in for the binding."""
    environ = os.environ if visible is None else visible
    opened = api.load(library, environ, devfs=devfs, procfs=procfs, sysfs=sysfs)
    if isinstance(opened, Absence):
        return FoundMeters((), (opened,))
    count, code = attempt(opened, "nvmlDeviceGetCount")
    cards, handles, missing = _cards(opened, count or 0)
    choice = choose_cards(environ, cards, everything)
    driver = text(opened, "nvmlSystemGetDriverVersion")
    gpus = [
        probe(opened, card, handles[card.number], driver, choice.slices.get(card.number, ()))
        for card in choice.cards
    ]
    missing += _drop_shared_module(gpus)
    absences = _absences(missing, gpus, choice)
    if not choice.cards:
        absences.append(_no_card_absence(count, code, choice.by))
    gpus = [gpu for gpu in gpus if gpu.channels]
    if not gpus:
        with suppress(opened.NVMLError):
            opened.nvmlShutdown()
        return FoundMeters((), tuple(absences))
    return FoundMeters(
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
                if code == api.NO_PERMISSION
                else "nvidia-smi; dmesg | grep -i nvrm"
            )
            missing.append(Missing(index, "", api.reason(code), remedy))
            continue
        handles[index] = handle
        uuid = text(library, "nvmlDeviceGetUUID", handle)
        name = text(library, "nvmlDeviceGetName", handle)
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
                    text(library, "nvmlDeviceGetUUID", part),
                    *(-1 if number is None else number for number in ids),
                )
            )
    return tuple(found)


def _drop_shared_module(gpus: list[NvmlGpu]) -> list[Missing]:
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


def _absences(missing: list[Missing], gpus: list[NvmlGpu], choice: Choice) -> list[Absence]:
    """What is not there, odd or not its own; the same lack on several GPUs is told once."""
    alike: dict[tuple[str, str, str], list[int]] = {}
    for lack in chain(missing, *(gpu.missing for gpu in gpus)):
        alike.setdefault(lack[1:], []).append(lack.gpu)
    told = [
        (f"nvml gpu:{','.join(map(str, indices))} {what}".strip(), reason, remedy)
        for (what, reason, remedy), indices in alike.items()
    ]
    told += [("nvml " + choice.by.split("=")[0], *said) for said in choice.remarks]
    told += [
        (f"nvml gpu:{gpu.card.number} MIG", _MIG_SHARES, _SHARE_IT)
        for gpu in gpus
        if gpu.card.slices
    ]
    return [Absence(*each, "gpu") for each in told]


def _no_card_absence(count: int | None, code: int, by: str) -> Absence:
    if by:
        return Absence(
            "nvml",
            f"{by} leaves this job no GPU",
            "unset it, or ask for all GPUs of the node",
            "gpu",
        )
    if count is None:
        return Absence("nvml", api.reason(code), "nvidia-smi", "gpu")
    return Absence(
        "nvml",
        "the NVIDIA driver runs but shows no GPU here",
        "in a container: docker run --gpus all; else: nvidia-smi -L",
        "gpu",
    )


def _facts(library: Any, driver: str, gpus: list[NvmlGpu], by: str) -> dict[str, str]:
    facts = {
        "driver": driver,
        "nvml": text(library, "nvmlSystemGetNVMLVersion"),
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
