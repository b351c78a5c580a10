"""What claims can speak of, and how those quantities hang together: the words and the physics of
the audit.

Each relation is written once for every quantity that can be solved for, with each other quantity
once in it, so that its interval is as narrow as it can be. Core.expressions evaluates the texts,
dimensions included.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class ClaimKey(NamedTuple):
    """A key of a claim."""

    unit: str
    """the suffix of core.units.UNITS it is in"""
    meaning: str
    most: float = 1e30

    @property
    def is_share(self) -> bool:
        return self.most == 1.0


def _share(meaning: str) -> ClaimKey:
    return ClaimKey("", meaning, 1.0)


QUANTITIES: Final[dict[str, ClaimKey]] = {
    "size": ClaimKey("bytes", "bytes of one checkpoint, or written in all"),
    "write": ClaimKey("bytes_per_s", "write rate"),
    "time": ClaimKey("s", "duration of one save, or of the run that wrote `size`"),
    "power": ClaimKey("w", "mean power meanwhile"),
    "energy": ClaimKey("j", "energy of one save"),
    "energy_per_byte": ClaimKey("j_per_byte", "energy per byte written"),
    "saves": ClaimKey("", "saves in all"),
    "total_size": ClaimKey("bytes", "bytes of all saves"),
    "total_energy": ClaimKey("j", "energy of all saves"),
    "params": ClaimKey("", "parameters"),
    "bytes_per_param": ClaimKey("bytes_per_param", "bytes saved for each parameter"),
    "interval": ClaimKey("s", "training time between two saves"),
    "saves_per_day": ClaimKey("", "saves in a day"),
    "stall_share": _share("share of the training time that saves take"),
    "speedup": ClaimKey("", "how many times faster a save gets"),
    "runtime_saved": _share("share of the training time that a speedup saves"),
    "stall": ClaimKey("s", "time training stands still for one save"),
    "recovery": ClaimKey("s", "time lost to each failure, redone work aside"),
    "goodput": _share("useful training time over wall time"),
    "failures": ClaimKey("", "failures counted"),
    "duration": ClaimKey("s", "time in which they were counted"),
    "failures_per_day": ClaimKey("", "failures in a day"),
    "mttf": ClaimKey("s", "mean time to failure of the job"),
    "gpu_mttf": ClaimKey("s", "GPU time per failure: mttf times GPUs"),
    "gpus": ClaimKey("", "GPUs of the job"),
    "gpu_power": ClaimKey("w", "power per GPU while it waits, host included"),
    "requests": ClaimKey("", "write requests"),
    "request_size": ClaimKey("bytes", "mean bytes of a write request"),
    "queue_depth": ClaimKey("", "mean requests in flight"),
    "latency": ClaimKey("s", "mean time of a request"),
    "capacity": ClaimKey("bytes", "capacity of the drive"),
    "drive_writes_per_day": ClaimKey("", "capacities written in a day"),
}


class Relation(NamedTuple):
    """One law: what each of its quantities is, given the others."""

    id: str
    forms: dict[str, str]
    """by quantity; an approximate one, else the first that is stated, is held against the rest"""
    assumes: str = ""
    at_most: bool = False
    """the formula is the most its quantity can be"""
    only_then: bool = False
    """holds only under what it assumes, which a sheet need not claim: it can agree with a
    statement, not contradict it"""
    unless: tuple[str, ...] = ()
    """not used where one of these is stated: another law then says it better"""


RELATIONS: Final[tuple[Relation, ...]] = (
    Relation("rate", {"write": "size / time", "time": "size / write", "size": "write * time"}),
    Relation(
        "power", {"energy": "power * time", "power": "energy / time", "time": "energy / power"}
    ),
    Relation(
        "energy of all",
        {
            "total_energy": "saves * energy",
            "energy": "total_energy / saves",
            "saves": "total_energy / energy",
        },
    ),
    Relation(
        "size of all",
        {"total_size": "saves * size", "size": "total_size / saves", "saves": "total_size / size"},
    ),
    Relation(
        "energy per byte", {"energy": "energy_per_byte * size", "energy_per_byte": "energy / size"}
    ),
    Relation(
        "state",
        {
            "size": "params * bytes_per_param",
            "bytes_per_param": "size / params",
            "params": "size / bytes_per_param",
        },
    ),
    Relation(
        "cadence",
        {
            "saves_per_day": "1 day / (interval + stall)",
            "interval": "1 day / saves_per_day - stall",
        },
    ),
    Relation(
        "cadence, waiting",
        {"saves_per_day": "1 day / (interval + time)", "interval": "1 day / saves_per_day - time"},
        "training waits for the whole save",
        unless=("stall",),
    ),
    Relation(
        "cadence, at most",
        {"saves_per_day": "1 day / interval", "interval": "1 day / saves_per_day"},
        "reached by saves that hold nothing up",
        at_most=True,
        unless=("stall", "time"),
    ),
    Relation(
        "stall share",
        {"stall_share": "1 / (1 + interval / stall)", "interval": "stall * (1 / stall_share - 1)"},
    ),
    Relation(
        "stall share, waiting",
        {
            "stall_share": "1 / (1 + interval / time)",
            "interval": "time * (1 / stall_share - 1)",
            "time": "interval / (1 / stall_share - 1)",
        },
        "training waits for the whole save",
        unless=("stall",),
    ),
    Relation(
        "speed-up",
        {
            "runtime_saved": "stall_share * (1 - 1 / speedup)",
            "stall_share": "runtime_saved / (1 - 1 / speedup)",
            "speedup": "1 / (1 - runtime_saved / stall_share)",
        },
        "only the saves get faster",
    ),
    Relation(
        "failure rate", {"mttf": "1 day / failures_per_day", "failures_per_day": "1 day / mttf"}
    ),
    Relation(
        "failures counted",
        {
            "failures_per_day": "failures * (1 day / duration)",
            "failures": "failures_per_day * (duration / 1 day)",
            "duration": "failures / failures_per_day * 1 day",
        },
    ),
    Relation(
        "GPU time per failure",
        {"gpu_mttf": "mttf * gpus", "mttf": "gpu_mttf / gpus", "gpus": "gpu_mttf / mttf"},
        "failures grow with GPUs",
    ),
    Relation(
        "saves for a goodput",
        {
            "saves_per_day": "failures_per_day / (1 - goodput)",
            "goodput": "1 - failures_per_day / saves_per_day",
            "failures_per_day": "saves_per_day * (1 - goodput)",
        },
        "the best interval, and no time to recover (first order)",
        only_then=True,
    ),
    Relation(
        "goodput for saves",
        {"goodput": "(1 + 1 / (1 + failures_per_day / saves_per_day)) / 2"},
        "each failure costs half an interval and nothing else",
        at_most=True,
    ),
    Relation(
        "stall for a goodput",
        {"stall": "(1 - goodput)^2 / 2 * (1 day / failures_per_day)"},
        "the best interval, and no time to recover (first order)",
        at_most=True,
    ),
    Relation(
        "goodput",
        {"goodput": "best_goodput(failures_per_day, stall, recovery)"},
        "the best interval (exact)",
        at_most=True,
    ),
    Relation(
        "requests",
        {
            "request_size": "size / requests",
            "size": "requests * request_size",
            "requests": "size / request_size",
        },
    ),
    Relation(
        "Little's law",
        {
            "latency": "queue_depth * time / requests",
            "queue_depth": "latency * requests / time",
            "requests": "queue_depth * time / latency",
            "time": "latency * requests / queue_depth",
        },
    ),
    Relation(
        "wear",
        {
            "drive_writes_per_day": "size / capacity * (1 day / time)",
            "capacity": "size / drive_writes_per_day * (1 day / time)",
        },
    ),
)
