"""The first line of every part: whose run it is, which clock, and every channel with all that is
known about it."""

from __future__ import annotations

import dataclasses
import math
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ckptcost.first.core.channels import Channel
from ckptcost.first.errors import RunFileError, brief
from ckptcost.first.meters.base import Meter
from ckptcost.first.runs.lines import FORMAT, MAJOR, MOST_READ, VERSION, BadLine
from ckptcost.first.version import __version__

_CHANNEL_KEYS = tuple(f.name for f in dataclasses.fields(Channel))
_NUMBERS = ("wraps_at", "resolution", "tick_s", "lag_s", "averaging_s", "looks", "accuracy")


class MeterHead(NamedTuple):
    """A meter as a run file names it."""

    name: str
    channels: tuple[Channel, ...]
    least_s: float = 0.0
    simulated: bool = False
    facts: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Header:
    """Everything a reader needs for the lines that follow."""

    run: str
    host: str
    rank: int = 0
    part: int = 0
    boot: str = ""
    pid: int = 0
    monotonic_ns: int = 0
    wall_ns: int = 0
    """both clocks at the same instant, when this part was begun"""
    created: str = ""
    ckptcost: str = __version__
    version: str = VERSION
    simulated: bool = False
    meters: tuple[MeterHead, ...] = ()
    periods_s: tuple[tuple[float, ...], ...] = ()
    """by meter and channel: how often the value was renewed, as measured in this run so far; NaN
    where that is not known yet"""
    settings: Mapping[str, float] = field(default_factory=dict)
    dropped: tuple[int, ...] = ()
    """first and last part that were removed to stay below the size asked for"""
    purpose: str = ""
    """what it was recorded for, where that was no job: probe, selftest"""

    def fields(self) -> dict[str, Any]:
        return {
            "k": "run",
            "format": FORMAT,
            "version": self.version,
            "run": self.run,
            "host": self.host,
            "rank": self.rank,
            "part": self.part,
            "boot": self.boot,
            "pid": self.pid,
            "clock": {"monotonic_ns": self.monotonic_ns, "wall_ns": self.wall_ns},
            "created": self.created,
            "ckptcost": self.ckptcost,
            "simulated": self.simulated,
            "meters": [
                {
                    "name": m.name,
                    "least_s": m.least_s,
                    "simulated": m.simulated,
                    "facts": dict(m.facts),
                    "channels": [dataclasses.asdict(c) for c in m.channels],
                }
                for m in self.meters
            ],
            "periods_s": self.periods_s,
            "settings": dict(self.settings),
            "dropped": self.dropped,
            **({"purpose": self.purpose} if self.purpose else {}),
        }


def heads_of(meters: Sequence[Meter]) -> tuple[MeterHead, ...]:
    return tuple(
        MeterHead(m.name, tuple(m.channels), m.least_s, m.simulated, dict(m.facts)) for m in meters
    )


def _channel(fields: Mapping[str, Any]) -> Channel:
    known = {key: fields[key] for key in _CHANNEL_KEYS if fields.get(key) is not None}
    known["covers"] = tuple(known.get("covers", ()))
    channel = Channel(**known)
    texts = (channel.domain, channel.quantity, channel.source, channel.scope, *channel.covers)
    numbers = [known.get(key, 0.0) for key in _NUMBERS]
    if not all(isinstance(text, str) for text in texts) or not all(
        isinstance(number, int | float) for number in numbers
    ):
        raise TypeError("a channel's text is not text, or its number not a number")
    if not all(number == 0 or 1 / MOST_READ <= abs(number) <= MOST_READ for number in numbers):
        raise ValueError("a channel's number is none that a meter has")
    return channel


def _meter_head(fields: Mapping[str, Any]) -> MeterHead:
    return MeterHead(
        str(fields["name"]),
        tuple(map(_channel, fields["channels"])),
        float(fields.get("least_s") or 0.0),
        bool(fields.get("simulated", False)),
        {str(key): str(value) for key, value in dict(fields.get("facts") or {}).items()},
    )


def header_from(fields: Mapping[str, Any], where: str = "") -> Header:
    """Raises RunFileError for another format or a newer major version, BadLine for a header that
    lacks something."""
    if fields.get("k") != "run" or fields.get("format") != FORMAT:
        raise BadLine("not the header of a run file")
    version = str(fields.get("version"))
    if not (known := re.match(r"(\d+)\.\d+$", version)) or int(known[1]) != MAJOR:
        raise RunFileError(
            f"this run was written in version {brief(version, 20)} of the format, and this ckptcost"
            f" reads {MAJOR}.x",
            where=where,
            remedy=(
                "read it with the ckptcost that wrote it"
                f" ({brief(fields.get('ckptcost', 'not said'), 40)}) or a newer one"
            ),
        )
    try:
        clock = fields["clock"]
        return Header(
            run=str(fields["run"]),
            host=str(fields["host"]),
            rank=_whole(fields.get("rank", 0)),
            part=_whole(fields.get("part", 0)),
            boot=str(fields.get("boot", "")),
            pid=_whole(fields.get("pid", 0)),
            monotonic_ns=_whole(clock["monotonic_ns"]),
            wall_ns=_whole(clock["wall_ns"]),
            created=str(fields.get("created", "")),
            ckptcost=str(fields.get("ckptcost", "")),
            version=version,
            simulated=bool(fields.get("simulated", False)),
            meters=tuple(map(_meter_head, fields.get("meters", ()))),
            periods_s=periods_from(fields.get("periods_s")),
            settings={
                str(k): float(v)
                for k, v in dict(fields.get("settings") or {}).items()
                if isinstance(v, int | float)
            },
            dropped=tuple(int(p) for p in fields.get("dropped") or ()),
            purpose=str(fields.get("purpose", "")),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadLine(
            f"its header lacks something or has it wrong ({type(error).__name__}:"
            f" {brief(str(error))})"
        ) from error


def periods_from(value: Any) -> tuple[tuple[float, ...], ...]:
    return tuple(
        tuple(math.nan if period is None else float(period) for period in of_meter)
        for of_meter in value or ()
    )


def new_run_id() -> str:
    return secrets.token_hex(16)


def host_name() -> str:
    """The node's name without its domain, fit for a file name."""
    return base_name(os.uname().nodename.split(".", 1)[0])


def base_name(text: str) -> str:
    """Letters, digits, dot, dash and underscore; never hidden, never a path.

    >>> base_name("../etc/näme.local"), base_name("")
    ('etc-n-me.local', 'host')
    """
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip(".-_")[:100] or "host"


def _whole(value: Any) -> int:
    """Raises ValueError where it does not fit the columns that it goes into."""
    number = int(value)
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"{number} is too large")
    return number


def stamp(wall_ns: int) -> str:
    """UTC for people, to the millisecond.

    >>> stamp(1_767_225_600_123_456_789)
    '2026-01-01T00:00:00.123Z'
    """
    whole_s, rest_ns = divmod(wall_ns, 1_000_000_000)
    return f"{datetime.fromtimestamp(whole_s, UTC):%Y-%m-%dT%H:%M:%S}.{rest_ns // 1_000_000:03d}Z"
