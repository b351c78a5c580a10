"""Which input a result lacks: an unknown figure is named, never taken for zero."""

from __future__ import annotations

from ckptcost.core.bill import states_w
from ckptcost.core.domain import Scenario
from ckptcost.errors import InputError
from ckptcost.scenario import Resolved

_POWERS = ("gpu_train", "gpu_stall", "gpu_idle", "host_train", "host_stall", "host_idle")
_FOR = {"time": "duration", "energy": "energy", "usd": "cost", "carbon": "emissions"}


def unknown_inputs(s: Scenario, objective: str) -> list[str]:
    """Keys without a value that a total of energy, dollars or carbon cannot do without."""
    c, site = s.cluster, s.site
    powers = [
        f"cluster.{key}"
        for key, power_w in zip(_POWERS, states_w(s), strict=True)
        if _unknown(power_w)
    ]
    if objective == "energy":
        return powers
    if objective == "carbon":
        return [*powers, *(["site.grid_location"] if _unknown(site.kgco2e_per_j) else [])]
    if objective == "usd":
        price = ["cluster.gpu_price"] if _unknown(c.usd_per_gpu_s) else []
        if c.price_includes_electricity:
            return price
        return [*price, *(["site.tariff"] if _unknown(site.usd_per_j) else []), *powers]
    return []


def what_is_missing(resolved: Resolved, objective: str) -> InputError:
    """The complaint that a result is not known, with the key that would supply it and why nobody
    has."""
    missing = unknown_inputs(resolved.scenario, objective)
    if not missing:
        return InputError(
            f"the {_FOR[objective]} of this run cannot be computed",
            remedy="an input it needs is unknown",
        )
    first = missing[0]
    reason = resolved.unknown.get(first, "nobody gives it")
    also = f" Also unknown: {', '.join(missing[1:])}" if len(missing) > 1 else ""
    return InputError(
        f"the {_FOR[objective]} of this run is not known: {reason}",
        key=first,
        remedy=f"give it with --set {first}=...{also}",
    )


def _unknown(value: object) -> bool:
    return value != value
