"""One scenario out of what was asked: the tier that is named, else the first of those a scenario compares."""

from __future__ import annotations

from collections.abc import Sequence

from ckptcost.catalog.store import Catalog
from ckptcost.jobs.model import compared, with_tier
from ckptcost.layers import Layer
from ckptcost.scenario import Resolved, resolve


def one_of(catalog: Catalog, layers: Sequence[Layer], tier: str | None = None) -> Resolved:
    """The scenario on one tier, at one cadence."""
    tiers, saves, counted_by = compared(layers)
    chosen = tier if tier is not None else tiers[0] if tiers else None
    return resolve(catalog, with_tier(catalog, layers, chosen, saves[0] if saves else None, counted_by))
