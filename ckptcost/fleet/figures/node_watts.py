"""GPUs of a run's nodes, and what a node draws while it trains."""

from __future__ import annotations

from math import fsum, isnan
from typing import TYPE_CHECKING

from ckptcost.core.estimates import Estimate, absent, mean_of
from ckptcost.fleet.figures.grouping import Cells, numbers, texts

if TYPE_CHECKING:
    from ckptcost.fleet.merge.part import Part

_Days = dict[str, dict[str, list[float]]]
"""by host and day"""


def gpus_of(part: Part, cells: Cells) -> dict[tuple[str, str], list[float]]:
    """By job and run, GPUs of each node that says so."""
    return {
        key: [max(value for said in days.values() for value in said) for days in hosts.values()]
        for key, hosts in _by_host(part, cells, "gpus").items()
    }


class Watts:
    """Of one node of a run in the mean of its nodes: of GPUs, and of hosts."""

    def __init__(self, part: Part, cells: Cells) -> None:
        self._said = [_by_host(part, cells, name) for name in ("train_gpu_w", "train_host_w")]

    def of(self, job: str, run: str, expected: int) -> tuple[Estimate, Estimate]:
        gpus, hosts = (mean_watts(said.get((job, run), {}), expected) for said in self._said)
        return gpus, hosts


def mean_watts(hosts: _Days, expected: int) -> Estimate:
    """Some of the nodes are a sample of all. All of them are none: how they differ leaves nothing
    open, only how the days do.

    >>> mean_watts({"n1": {"2026-11-02": [900.0]}, "n2": {"2026-11-02": [1100.0]}}, 2)[:3]
    (1000.0, 1000.0, 1000.0)
    >>> [
    ...     round(watts)
    ...     for watts in mean_watts(
    ...         {"n1": {"2026-11-02": [900.0]}, "n2": {"2026-11-02": [1100.0]}}, 3
    ...     )[:3]
    ... ]
    [1000, -271, 2271]
    """
    if not hosts:
        return absent("NO_NODES")
    own = {
        host: _mean([value for said in days.values() for value in said])
        for host, days in sorted(hosts.items())
    }
    of_nodes = mean_of(list(own.values()))
    if len(hosts) < expected:
        return of_nodes
    by_day: dict[str, list[float]] = {}
    for host, mean_w in own.items():
        for day, said in hosts[host].items():
            by_day.setdefault(day, []).extend(
                value - mean_w for value in said
            )  # a node that is off for a day makes no other day of it
    of_days = mean_of([_mean(said) for _, said in sorted(by_day.items())])
    reach_w = 0.0 if of_days.high is None else of_days.high - of_days.value
    return Estimate(
        of_nodes.value,
        of_nodes.value - reach_w,
        of_nodes.value + reach_w,
        of_days.stderr,
        of_nodes.n,
    )


def _mean(said: list[float]) -> float:
    return fsum(said) / len(said)


def _by_host(part: Part, cells: Cells, name: str) -> dict[tuple[str, str], _Days]:
    found: dict[tuple[str, str], _Days] = {}
    for cell, host, value in zip(
        cells.of_heads.tolist(),
        texts(part.heads, "host"),
        numbers(part.heads, name).tolist(),
        strict=True,
    ):
        if not isnan(value):
            days = found.setdefault((cells.job[cell], cells.run[cell]), {}).setdefault(host, {})
            days.setdefault(cells.day[cell], []).append(value)
    return found
