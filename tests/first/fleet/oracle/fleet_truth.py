"""What a synthetic fleet really cost: known from its plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from fleet_tally import Amounts, added


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
