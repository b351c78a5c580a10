"""What one GPU answers: every field is tried once, what works becomes a channel and what does not
an absence."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ckptcost.core.channels import Channel
from ckptcost.meters import nvml_fields as fields
from ckptcost.meters import nvml_library as codes
from ckptcost.meters.nvml_asks import Ask, Energy, Fields, Memory, Usage, Utilisation
from ckptcost.meters.visible import Card

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
    (fields.INSTANT, fields.GPU),
    (fields.AVERAGE, fields.GPU),
    (fields.INSTANT, fields.MEMORY),
    (fields.AVERAGE, fields.MEMORY),
    (fields.INSTANT, fields.MODULE),
    (fields.AVERAGE, fields.MODULE),
    (fields.ENERGY, fields.GPU),
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
class Gpu:
    """One card: its channels, the calls that fill them, and whether it is there."""

    card: Card
    handle: Any
    kind: str
    channels: list[Channel] = field(default_factory=list)
    asks: list[Ask] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    sensors: dict[Key, float] = field(default_factory=dict)
    """what the module's sensors said, in milli-units: one module may be seen through two GPUs"""
    took_us: float = 0.0

    @property
    def domain(self) -> str:
        return self.channels[0].domain if self.channels else f"gpu:{self.card.number}"


def attempt(library: Any, name: str, *arguments: Any) -> tuple[Any, int]:
    """What a call gives, or None and the code it fails with. Older bindings lack some calls."""
    call = getattr(library, name, None)
    if call is None:
        return None, codes.FUNCTION_NOT_FOUND
    try:
        return call(*arguments), 0
    except library.NVMLError as error:
        return None, int(error.value)
    except ValueError:  # a name that is not UTF-8
        return None, codes.UNKNOWN


def probe(library: Any, card: Card, handle: Any, driver: str, named: tuple[str, ...] = ()) -> Gpu:
    """Try everything once. `named` are the MIG instances of the card that the job was given."""
    architecture, _ = attempt(library, "nvmlDeviceGetArchitecture", handle)
    gpu = Gpu(card, handle, fields.chip(architecture, card.name))
    said, refused = _values(library, handle)
    total_mj, refused[_TOTAL] = attempt(library, "nvmlDeviceGetTotalEnergyConsumption", handle)
    link, _ = attempt(library, "nvmlDeviceGetC2cModeInfoV", handle)
    superchip = bool(fields.SUPERCHIP.search(card.name)) or bool(
        link is not None and link.isC2cEnabled
    )
    _distrust(said, refused, superchip)
    if total_mj is not None:
        said[_TOTAL] = float(total_mj)

    about = Channel(
        f"gpu:{card.number}",
        "power_w",
        "",
        scope="gpu",
        device=card.uuid or card.name,
        resolution=0.001,
        note=_mig(card, named),
    )
    if superchip or any(isinstance(key, tuple) and key[1] == fields.MODULE for key in said):
        wanted = _superchip(gpu, about, said, driver)
    else:
        wanted = _plain(gpu, about, said, refused, driver)
    if not any(channel.quantity == "power_w" and channel.role == "part" for _, channel in wanted):
        watts, refused["usage"] = attempt(library, "nvmlDeviceGetPowerUsage", handle)
        if watts and not any(channel.domain.startswith("module:") for _, channel in wanted):
            wanted.append(("usage", _power(gpu, about, (fields.USAGE, fields.GPU), driver)))
        elif not wanted:
            refused["usage"] = refused["usage"] or codes.NO_WATTS
            gpu.missing.append(
                Missing(
                    card.number,
                    "",
                    "neither energy nor power: " + codes.reason(refused["usage"]),
                    _NO_WATTS,
                )
            )
            return gpu
    wanted += _at_rest(library, gpu, about)
    _compile(library, gpu, wanted)
    return gpu


def _values(library: Any, handle: Any) -> tuple[dict[Key, float], dict[Key, int]]:
    """Every field that answers, in milli-units, and the codes of those that do not."""
    elements, code = attempt(library, "nvmlDeviceGetFieldValues", handle, _PAIRS)
    if elements is None:
        return {}, dict.fromkeys(_PAIRS, code)
    said: dict[Key, float] = {}
    refused: dict[Key, int] = {}
    for pair, element in zip(_PAIRS, elements, strict=True):
        value = 0.0 if element.nvmlReturn else fields.number(element.value, element.valueType)
        if value > 0.0 or (
            pair[1] == fields.GPU and not element.nvmlReturn and pair[0] != fields.ENERGY
        ):
            said[pair] = (
                value  # the GPU's own 0 W is kept: asked too early after a start it may come right
            )
        else:
            refused[pair] = element.nvmlReturn or codes.NO_WATTS
    return said, refused


def _distrust(said: dict[Key, float], refused: dict[Key, int], superchip: bool) -> None:
    """A driver that does not know scopes gives the same number for each: then only one of them is
    meant."""
    for reading in (fields.INSTANT, fields.AVERAGE):
        for scope in (fields.MODULE, fields.MEMORY):
            if said.get((reading, scope), 0.0) > 0.0 and said.get((reading, scope)) == said.get(
                (reading, fields.GPU)
            ):
                other = fields.GPU if superchip and scope == fields.MODULE else scope
                del said[(reading, other)]
                refused[(reading, other)] = codes.NOT_SUPPORTED


def _plain(
    gpu: Gpu, about: Channel, said: dict[Key, float], refused: dict[Key, int], driver: str
) -> list[tuple[Key, Channel]]:
    """A card of its own: energy, then watts now, their mean beside it, and the memory's share."""
    wanted: list[tuple[Key, Channel]] = []
    if _TOTAL in said:
        wanted.append((_TOTAL, _counter(gpu, about)))
    else:
        gpu.missing.append(
            Missing(gpu.card.number, "energy counter", codes.reason(refused[_TOTAL]), _NO_COUNTER)
        )
    now, mean = (fields.INSTANT, fields.GPU), (fields.AVERAGE, fields.GPU)
    if now in said:
        wanted.append((now, _power(gpu, about, now, driver)))
    if mean in said:
        channel = _power(gpu, about, mean, driver)
        wanted.append(
            (
                mean,
                (
                    replace(channel, domain=f"{about.domain}.average", role="detail")
                    if now in said
                    else channel
                ),
            )
        )
    memory = next(
        (
            pair
            for pair in ((fields.INSTANT, fields.MEMORY), (fields.AVERAGE, fields.MEMORY))
            if pair in said
        ),
        None,
    )
    if memory:
        channel = _power(gpu, about, memory, driver)
        wanted.append(
            (
                memory,
                replace(
                    channel,
                    domain=f"{about.domain}.memory",
                    role="detail",
                    scope="memory",
                    accuracy=None,
                ),
            )
        )
    else:
        code = refused.get((fields.AVERAGE, fields.MEMORY), codes.NOT_SUPPORTED)
        gpu.missing.append(Missing(gpu.card.number, "memory power", codes.reason(code), _NO_MEMORY))
    return wanted


def _superchip(
    gpu: Gpu, about: Channel, said: dict[Key, float], driver: str
) -> list[tuple[Key, Channel]]:
    """The total counter is the module's. Where the GPU can be seen by itself it is the part, and
    the module is held against the sum."""
    wanted: list[tuple[Key, Channel]] = []
    total, own = said.get(_TOTAL), said.get((fields.ENERGY, fields.GPU))
    if own is not None and total is not None and abs(own - total) > 0.01 * total:
        counter = replace(_counter(gpu, about), source="NVML field 191 (energy), scope gpu")
        wanted.append(((fields.ENERGY, fields.GPU), counter))
    now = next(
        (
            pair
            for pair in ((fields.INSTANT, fields.GPU), (fields.AVERAGE, fields.GPU))
            if said.get(pair)
        ),
        None,
    )
    if now:
        wanted.append((now, _power(gpu, about, now, driver)))
    module = replace(
        about,
        domain=f"module:{gpu.card.number}",
        scope="module",
        role="whole" if wanted else "part",
        note=_joined(_MODULE, about.note),
    )
    if not wanted:
        module = replace(module, covers=("cpu", "dram"))
        alone = "the driver gives no watts for the GPU alone"
        gpu.missing.append(
            Missing(
                gpu.card.number,
                "GPU apart from its module",
                alone,
                "a newer driver may; until then only the module counts",
            )
        )
    if total is not None:
        wanted.append((_TOTAL, _counter(gpu, module)))
        gpu.sensors[_TOTAL] = total
    watts = next(
        (
            pair
            for pair in ((fields.INSTANT, fields.MODULE), (fields.AVERAGE, fields.MODULE))
            if pair in said
        ),
        None,
    )
    if watts:
        wanted.append((watts, replace(_power(gpu, module, watts, driver), accuracy=None)))
        gpu.sensors[watts] = said[watts]
    return wanted


def _counter(gpu: Gpu, about: Channel) -> Channel:
    note = _joined(fields.energy_note(gpu.kind), about.note)
    return replace(
        about,
        quantity="energy_j",
        source="NVML total energy consumption",
        tick_s=0.1,
        lag_s=fields.LAG_S,
        note=note,
    )


def _power(gpu: Gpu, about: Channel, pair: Pair, driver: str) -> Channel:
    known = fields.sensor(gpu.kind, pair[0], driver)
    error = fields.steady_error(gpu.card.name)
    off = "" if error is None else f"published steady-state error {error:+.1%}"
    name = {fields.INSTANT: "instant power", fields.AVERAGE: "average power"}.get(pair[0], "")
    return replace(
        about,
        source=(
            f"NVML field {pair[0]} ({name}), scope {fields.SCOPES[pair[1]]}"
            if pair[0] > 0
            else "NVML power usage"
        ),
        averaging_s=known.averaging_s,
        tick_s=known.tick_s,
        looks=known.looks,
        accuracy=None if error is None else abs(error),
        note=_joined(known.note, off, about.note),
    )


def _at_rest(library: Any, gpu: Gpu, about: Channel) -> list[tuple[Key, Channel]]:
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
            gpu.missing.append(Missing(gpu.card.number, key, codes.reason(code), why))
            continue
        wanted.append(
            (
                key,
                replace(
                    about,
                    quantity=quantity,  # type: ignore[arg-type]
                    source=f"NVML {key}",
                    resolution=resolution,
                    note=slow,
                ),
            )
        )
    return wanted


def _compile(library: Any, gpu: Gpu, wanted: list[tuple[Key, Channel]]) -> None:
    """Channels to calls: all fields in one. Each call is timed once."""
    gpu.channels = [channel for _, channel in wanted]
    slots = {key: slot for slot, (key, _) in enumerate(wanted)}
    pairs = [key for key in slots if isinstance(key, tuple)]
    counted = _TOTAL in slots and gpu.channels[slots[_TOTAL]].role == "part"
    makers: dict[Key, Callable[[int], Ask]] = {
        "energy": lambda slot: Energy(slot, library),
        "usage": lambda slot: Usage(slot, library),
        "utilisation": lambda slot: Utilisation(slot, library, REST_NS),
        "memory": lambda slot: Memory(slot, library, REST_NS),
    }
    gpu.asks = [makers[key](slot) for key, slot in slots.items() if key in makers]
    if pairs:
        gpu.asks.append(Fields([slots[pair] for pair in pairs], pairs, library))
    for ask in gpu.asks:
        began = time.perf_counter_ns()
        with suppress(library.NVMLError):
            ask.call(gpu.handle, 0)
        took = time.perf_counter_ns() - began
        ask.forget()
        if not ask.every_ns:
            gpu.took_us += took / 1000.0
            if isinstance(ask, Fields | Usage) and took > SLOW_NS:
                ask.every_ns = SLOW_GAUGE_NS
            elif isinstance(ask, Fields) and counted:
                ask.every_ns = GAUGE_NS


def _mig(card: Card, named: tuple[str, ...]) -> str:
    if not card.slices:
        return ""
    which = (
        f"the job was given {', '.join(named)}"
        if named
        else f"the card is cut into {len(card.slices)}"
    )
    return f"MIG: the whole card's value, for all instances together; {which}"


def _joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)
