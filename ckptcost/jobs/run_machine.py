"""The machine of a recorded run, and a scenario's job put onto it: the model is scaled to what was
measured, never the other way."""

from __future__ import annotations

from dataclasses import replace
from math import isnan, nan
from typing import NamedTuple

from ckptcost.core.domain import Scenario
from ckptcost.errors import Argument, InputError
from ckptcost.jobs.measured import Measured
from ckptcost.jobs.measured_bill import gpus_metered
from ckptcost.scenario import Resolved


class RunMachine(NamedTuple):
    """Who waits: the GPUs of the node that was read, and the job they belong to."""

    gpus: float
    """on that node; NaN where neither a meter nor --set says"""
    job_gpus: float
    gpus_per_node: float
    how: str
    """METERED, SAID (--set cluster.gpus), RANKS (the marks say how many) or NODES (as many as the
    scenario's nodes have)"""

    @property
    def here(self) -> float:
        """GPUs of the node as the model has it."""
        return self.gpus_per_node if isnan(self.gpus) else self.gpus

    @property
    def is_part(self) -> bool:
        """The job is larger than the node that was read."""
        return self.here < self.job_gpus


def machine_of(seen: Measured, resolved: Resolved) -> RunMachine:
    ranks = (float(n) for mark in seen.run.marks if isinstance(n := mark.detail.get("world"), int))
    metered = gpus_metered(seen.energies.parts)
    return machine_with(metered, len(seen.run.hosts), max(ranks, default=nan), resolved)


def machine_with(metered: float, run_hosts: int, ranks: float, resolved: Resolved) -> RunMachine:
    """The metered GPUs of one of the run's hosts times these, unless the `ranks` that marks speak
    of or --set cluster.gpus say more."""
    hosts = float(max(run_hosts, 1))
    said = next(
        (
            i.figure.value
            for i in resolved.inputs
            if i.path == "cluster.gpus" and i.origin.startswith("--")
        ),
        nan,
    )
    if not isnan(said):
        if said < metered * hosts:
            raise InputError(
                f"says {said:g} GPUs, and the run has {metered * hosts:g}",
                where=Argument("changes"),
                key="cluster.gpus",
                remedy="leave it out: the scenario is put onto the run's own machine",
            )
        each = said / hosts if isnan(metered) else metered
        return RunMachine(each, said, each, "SAID")
    if not isnan(metered):
        return RunMachine(
            metered, max(metered * hosts, 0.0 if isnan(ranks) else ranks), metered, "METERED"
        )
    per_node = float(resolved.scenario.cluster.gpus_per_node)
    if not isnan(ranks):
        return RunMachine(nan, ranks, ranks / hosts, "RANKS")
    return RunMachine(nan, per_node * hosts, per_node, "NODES")


def on_machine(s: Scenario, gpus: float, machine: RunMachine) -> Scenario:
    """The scenario with so many of the run's GPUs."""
    return replace(s, cluster=replace(s.cluster, gpus=gpus, gpus_per_node=machine.gpus_per_node))
