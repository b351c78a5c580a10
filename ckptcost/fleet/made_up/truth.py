"""What a synthetic fleet really cost: known from its plan, kept as _truth.json beside its store."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from math import isfinite, nan
from pathlib import Path
from typing import Any, Final, NamedTuple

from ckptcost.errors import InputError, OutputError
from ckptcost.fleet.made_up.tally import Amounts, added

FORMAT, VERSION = "ckptcost.truth", "1.0"
FILE: Final = "_truth.json"


class TierTruth(NamedTuple):
    name: str
    bytes_per_s: float
    """of one node that writes"""
    read_bytes_per_s: float
    fixed_s: float
    """of each save and load; a quarter of it of an asynchronous save's stall"""


class Straggler(NamedTuple):
    job: str
    host: str
    factor: float
    """how many times as long its bytes take"""


class RunTruth(NamedTuple):
    """On the true clock."""

    run: str
    began_ns: int
    ended_ns: int
    how: str
    """crash, node, cut, ended, open"""
    failed: bool
    exit_code: int | None
    """of nodes that said one"""
    culprit: str
    """host of the node that died"""
    saves: int
    """completed"""
    failed_saves: int
    last_kept_ns: int
    """begin of the last completed save; 0: none"""
    stall_s: float
    """of completed saves, all nodes together, like the two that follow"""
    load_s: float
    lost_s: float
    """work since the last kept save, or since the load; 0 for a run that did not fail"""
    clock_ns: tuple[int, ...]
    """what each host's clock shows beyond the true time, in the job's order of hosts"""


class JobTruth(NamedTuple):
    job: str
    labels: Mapping[str, str]
    asynchronous: bool
    hosts: tuple[str, ...]
    node_names: str
    gpus: float
    """of a node"""
    interval_s: float
    """from save to save, about"""
    step_s: float
    bytes_per_node: float
    """mean"""
    began_ns: int
    ended_ns: int
    runs: tuple[RunTruth, ...]
    saves: Amounts
    """of the files that count, like all that follows but the two that lack"""
    loads: Amounts
    lacking_saves: Amounts
    """what those set aside and those never written would have added"""
    lacking_loads: Amounts
    saves_by_day: Mapping[str, Amounts]
    loads_by_day: Mapping[str, Amounts]
    blamed_gpu_s: Mapping[str, float]
    """by host, saves and loads"""
    blamed_j: Mapping[str, float]
    gpu_total_j: float
    host_total_j: float
    covered_s: float
    """nodes added up"""
    wall_s: float
    down_s: float
    lost_s: float
    stall_s: float
    load_s: float
    failures: int
    mtbf_s: float
    """the true one, by which failures were drawn"""

    @property
    def exposure_s(self) -> float:
        """A run was there."""
        return self.wall_s - self.down_s

    def offsets_ns(self, run: str, hosts: Iterable[str] = ()) -> dict[str, int]:
        """Of the hosts' clocks (all, unless said) from the lower median of theirs."""
        clocks = next(each.clock_ns for each in self.runs if each.run == run)
        wanted = set(hosts) or set(self.hosts)
        mine = {
            host: clock for host, clock in zip(self.hosts, clocks, strict=True) if host in wanted
        }
        middle = sorted(mine.values())[(len(mine) - 1) // 2]
        return {host: clock - middle for host, clock in mine.items()}


class Trouble(NamedTuple):
    """Something planted. Only what is set aside or missing adds `rows` and the amounts to what
    lacks."""

    code: str
    """CORRUPT, TRUNCATED, FUTURE, DUPLICATE, SKEWED, UNSTEADY, NOT_OURS, STRAY (not a file of a
    store), NO_FILE"""
    path: str
    """within the store; empty where there is no file"""
    job: str = ""
    run: str = ""
    host: str = ""
    day: str = ""
    note: str = ""
    rows: int = 0
    """completed saves and loads"""
    own_gpu_s: float = 0.0
    bytes: float = 0.0
    gpu_j: float = 0.0
    host_j: float = 0.0


@dataclass(frozen=True, slots=True)
class Truth:
    seed: int
    nodes: int
    days: int
    start: str
    saves_per_day: float
    failures_per_node_day: float
    """the true rate"""
    files: int
    """that count"""
    rows: int
    """in them, failed ones included"""
    tiers: tuple[TierTruth, ...]
    jobs: tuple[JobTruth, ...]
    stragglers: tuple[Straggler, ...]
    troubles: tuple[Trouble, ...]

    @property
    def saves(self) -> Amounts:
        return added(job.saves for job in self.jobs)

    @property
    def loads(self) -> Amounts:
        return added(job.loads for job in self.jobs)

    @property
    def failures(self) -> int:
        return sum(job.failures for job in self.jobs)

    def by(self, word: str) -> dict[str, Amounts]:
        """Saves by job, team, cluster, model, tier or day."""
        groups: dict[str, list[Amounts]] = {}
        for job in self.jobs:
            if word == "day":
                for day, amounts in job.saves_by_day.items():
                    groups.setdefault(day, []).append(amounts)
            else:
                groups.setdefault(job.job if word == "job" else job.labels[word], []).append(
                    job.saves
                )
        return {name: added(parts) for name, parts in sorted(groups.items())}


def write(truth: Truth, directory: Path) -> None:
    content = {"format": FORMAT, "version": VERSION} | {
        each.name: _plain(getattr(truth, each.name)) for each in fields(truth)
    }
    content["totals"] = {
        "saves": _plain(truth.saves),
        "loads": _plain(truth.loads),
        "failures": truth.failures,
    }
    try:
        (directory / FILE).write_text(
            json.dumps(content, allow_nan=False, indent=1) + "\n", "utf-8"
        )
    except OSError as error:
        raise OutputError(f"{directory / FILE}: could not be written ({error.strerror})") from None


def read(directory: Path) -> Truth:
    """As it was written. Raises InputError for anything that is not a truth."""
    file = directory / FILE
    try:
        content = json.loads(file.read_bytes())
        if content["format"] != FORMAT or content["version"] != VERSION:
            raise ValueError("another format")
        known = {each.name: content[each.name] for each in fields(Truth)}
        known["tiers"] = tuple(TierTruth(**each) for each in known["tiers"])
        known["jobs"] = tuple(_job(each) for each in known["jobs"])
        known["stragglers"] = tuple(Straggler(**each) for each in known["stragglers"])
        known["troubles"] = tuple(Trouble(**each) for each in known["troubles"])
        return Truth(**known)
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", where=str(file)) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"is not the truth of a synthetic fleet ({error})", where=str(file)
        ) from None


def _job(content: dict[str, Any]) -> JobTruth:
    for name in ("saves", "loads", "lacking_saves", "lacking_loads"):
        content[name] = _amounts(content[name])
    for name in ("saves_by_day", "loads_by_day"):
        content[name] = {day: _amounts(each) for day, each in content[name].items()}
    content["runs"] = tuple(
        RunTruth(**(each | {"clock_ns": tuple(each["clock_ns"])})) for each in content["runs"]
    )
    content["hosts"] = tuple(content["hosts"])
    return JobTruth(**content)


def _amounts(content: dict[str, Any]) -> Amounts:
    found: dict[str, Any] = {
        name: nan if value is None else float(value) if isinstance(value, str) else value
        for name, value in content.items()
    }
    return Amounts(**found)


def _plain(value: Any) -> Any:
    """NaN is null, infinite is text."""
    if isinstance(value, float):
        return value if isfinite(value) else None if value != value else str(value)
    if hasattr(value, "_asdict"):
        return {name: _plain(each) for name, each in value._asdict().items()}
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
