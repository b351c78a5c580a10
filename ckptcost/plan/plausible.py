"""Inputs that look wrong: values far outside what the catalogue knows of their kind.

data/plausible.csv holds a check a row: figures (one of which the user gave), the amount that they
give, what is usual for it, and by which factor that band is widened. What is usual comes from
measurements and publications in data/ and models/, never from the figure itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf, isfinite, nan
from typing import Any, NamedTuple

import numpy as np

from ckptcost.plan.arrays import orelse
from ckptcost.plan.draws import worlds
from ckptcost.plan.physics import failure_rate, full_size, is_inside, own_rate
from ckptcost.scenario import catalog
from ckptcost.scenario.figures import Figure
from ckptcost.scenario.resolve import Scenario, default_figure
from ckptcost.scenario.schema import FAILURE_RATES, KEYS, Failures, World
from ckptcost.scenario.units import number, parse, show

Usual = Iterator[tuple[float, str]]
"""values that are known, with their sources"""


class Doubt(NamedTuple):
    """An input to be checked before anything is concluded from it."""

    path: str
    value: str
    """as it is shown"""
    usual: str
    """how it compares with what is usual, and who says so"""

    def say(self) -> str:
        """
        >>> Doubt("tier.write", "25 TB/s", "is 26 times the fastest system known (953 GB/s)").say()
        '25 TB/s is 26 times the fastest system known (953 GB/s): check tier.write.'
        """
        said = f"{self.value} {self.usual}: check {self.path}."
        return said[:1].upper() + said[1:]


def doubts(scenario: Scenario) -> list[Doubt]:
    """What to check, one a figure, the farthest outside first."""
    w, checks = worlds([scenario]), catalog.rows("plausible.csv")
    with np.errstate(all="ignore"):
        found = [each for check in checks for each in _found(check, scenario, w)]
    found.sort(key=lambda each: each[0])
    return [*reversed({doubt.path: doubt for _, doubt in found}.values())]


def _found(check: dict[str, str], scenario: Scenario, w: World) -> Iterator[tuple[float, Doubt]]:
    """A doubt and how far outside it is, if the user gave a figure and it lies outside."""
    users = {path for path, f in scenario.figures().items() if f.basis == "user" and not f.follows}
    paths = check["figures"].split()
    given = [path for path in paths if path in users]
    amount = amount_of(check["amount"] or paths[0], w)
    usual = sorted(usual_of(check, scenario, w)) if given and 0 < amount < inf else []
    far = max(amount / usual[-1][0], usual[0][0] / amount) if usual else 0.0
    if far > float(check["factor"]):
        yield far, _doubt(given[0], amount, check, usual)


def _doubt(
    path: str, amount: float, check: dict[str, str], usual: list[tuple[float, str]]
) -> Doubt:
    """An amount beside the end of what is usual that it lies beyond."""
    high = amount > usual[-1][0]
    end, source = usual[-1] if high else usual[0]
    times = f"{number(amount / end, 2)} times" if high else f"1/{number(round(end / amount), 2)} of"
    known = ", ".join(filter(None, (show(end, check["unit"]), catalog.source_title(source))))
    shown = (check["says"] or "{}").format(show(amount, check["unit"]))
    return Doubt(path, shown, f"is {times} {check['most' if high else 'least']} ({known})")


# --- amounts ------------------------------------------------------------------------------------

AMOUNTS: dict[str, Callable[[World], Any]] = {
    "system write": lambda w: np.where(is_inside(w.tier), nan, own_rate(w, w.tier)),
    "mtbf": lambda w: 1.0 / failure_rate(w),
    "size": full_size,
    "bytes by parameter": lambda w: full_size(w) / w.checkpoint.params,
    "copy rate": lambda w: orelse(
        full_size(w) / w.cluster.gpus / w.policy.snapshot, w.policy.snapshot_rate
    ),
}


def amount_of(name: str, w: World) -> float:
    """One of these, or a figure by its path."""
    section, _, key = name.partition(".")
    found = AMOUNTS[name](w) if name in AMOUNTS else getattr(getattr(w, section), key)
    return float(found.item())


# --- what is usual ------------------------------------------------------------------------------


def usual_of(check: dict[str, str], scenario: Scenario, w: World) -> Usual:
    """From parts such as "pue.csv pue" (file, column, unit, which rows), "3 h ddn-2025-07" (value
    and source), "entries" of the catalogue, or one of KNOWN."""
    section, key = check["figures"].split()[0].split(".")
    for part in check["usual"].format(gpu=_accelerator(scenario)).split("; "):
        if part in KNOWN:
            yield from KNOWN[part](scenario, w)
        elif part == "entries":
            yield from _entries(section, key)
        elif ".csv " in part:
            yield from _column(*part.split())
        else:
            value, _, source = part.rpartition(" ")
            yield parse(value, KEYS[section][key].metadata["example"]), source


def _column(file: str, column: str, *unit_and_where: str) -> Usual:
    """Numbers of a file, in a unit if they have none of their own, of the rows with key=value."""
    where = [each.split("=") for each in unit_and_where if "=" in each]
    unit = next((each for each in unit_and_where if "=" not in each), "")
    for row in catalog.rows(file):
        if row[column] and all(row[key] == value for key, value in where):
            text = f"{row[column]} {unit}" if row[column][-1].isdigit() else row[column]
            yield parse(text, f"1.0 {unit}"), row["source"]


def _entries(kind: str, key: str) -> Usual:
    """A figure in all entries of a kind that measured or published it."""
    for name in catalog.ids(kind):
        value = catalog.get(kind, name).said.get(key)
        if isinstance(value, Figure) and value.basis in ("measured", "published", "derived"):
            yield value.value, value.source


def _clients(scenario: Scenario, w: World) -> Usual:
    rows = [row for row in catalog.rows("mlperf_checkpoint.csv") if row["client_hosts"]]
    for row in rows:
        yield float(row["save_gb_s"]) * 1e9 / float(row["client_hosts"]), row["source"]


def _law_of_failures(scenario: Scenario, w: World) -> Usual:
    """How published jobs of this size scatter about the law that was fitted to them."""
    factor = default_figure("failures", "rate_factor")
    law = {key: np.array([default_figure("failures", key).value]) for key in FAILURE_RATES}
    every = 1.0 / failure_rate(replace(w, failures=Failures(**law))) * factor.value
    for end in (factor.low, factor.high):
        yield (every / end).item(), factor.source


def _memory(scenario: Scenario, w: World) -> Usual:
    """All GPU memory of the job: a checkpoint is not larger."""
    gpu = f"id={_accelerator(scenario)}"
    for each, source in _column("accelerator_figures.csv", "value", "GB", "key=memory", gpu):
        yield 0.0, source
        yield (each * w.cluster.gpus).item(), source


def _known_capacity(scenario: Scenario, w: World) -> Usual:
    known = scenario.said["tier"].get("known_capacity")
    if known:
        yield 0.0, known.source
        yield known.value, known.source


def _one_save(scenario: Scenario, w: World) -> Usual:
    """One save at the write rate alone: nobody can save more often."""
    seconds = full_size(w).item() / amount_of("system write", w)
    if isfinite(seconds):
        yield seconds, ""
        yield inf, ""


KNOWN = {
    "clients": _clients,
    "law of failures": _law_of_failures,
    "memory": _memory,
    "known capacity": _known_capacity,
    "one save": _one_save,
}


def _accelerator(scenario: Scenario) -> str:
    """The GPU of the cluster, its own or that of its catalogue entry."""
    cluster = scenario.said["cluster"]
    entry = catalog.get("cluster", cluster["id"]).said if cluster.get("id") else {}
    return str(cluster.get("accelerator") or entry.get("accelerator", ""))
