"""Which plans may be ranked, and what keeps the others out: they do not work, or nobody knows their
limit, or their prices are not alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ckptcost.answer import Caution, Say
from ckptcost.cautions import blocked
from ckptcost.plan import physics as ph
from ckptcost.questions import common as q
from ckptcost.questions import one
from ckptcost.scenario.figures import Figure
from ckptcost.scenario.resolve import DEFAULTS, Scenario
from ckptcost.scenario.units import show
from ckptcost.study import Study, tier_of


def doubts(study: Study, rows: Sequence[int]) -> list[Say]:
    """Inputs to check before anything is concluded from them."""
    return [Say(f"{each.label}: {each.words}") for each in one.doubted(study, rows)]


def ranking(study: Study, measure: str, count: int) -> tuple[list[int], dict[int, Caution]]:
    """The first cases from best to worst, those that do not work last, and why they do not."""
    stops = blocked(study, range(count))
    order = [row for row in study.ranked(measure) if row < count]
    return sorted(order, key=lambda row: row in stops), stops


def stopped(caution: Caution, what: str) -> Say:
    """What does not work, why, and what would have to change."""
    why, _, command = caution.words.partition(":   ")
    return Say(f"{what} {why}:", "", command)


def unknown_limits(study: Study, rows: Sequence[int], ranked: bool = True) -> list[Say]:
    """Tiers whose limit nobody has measured, with the key that would give it."""
    if not rows:
        return []
    w, row = study.w, rows[0]
    first = bool(study.stated_of(ph.limit_unknown(w, w.tier), row))
    tier = w.tier if first else w.second_tier
    section = "tier" if first else "second_tier"
    names = [str(study.scenarios[each].said[section].get("id") or "the tier") for each in rows]
    known = study.stated_of(ph.known_clients(tier), row)
    counted = f"with {known:,.0f} nodes" if 0 < known < np.inf else "at smaller sizes"
    words = f"{q.and_join([*dict.fromkeys(names)])}: measured {counted} only"
    rest = " Not ranked above tiers whose limit is." if ranked else ""
    return [
        Say(
            f"* {words}; the limit of the whole is not known.{rest} If you know it:",
            "",
            f'--set {section}.write="100 GB/s"',
        )
    ]


# --- prices ---------------------------------------------------------------------------------------


class Price(NamedTuple):
    """What a tier charges for keeping bytes."""

    words: str
    way: str
    assumed: bool


def price_of(scenario: Scenario) -> Price:
    tier = scenario.said["tier"]
    price, standing = tier.get("storage_price"), tier.get("standing_price")
    if isinstance(standing, Figure):
        return Price(f"{show(standing.value, 'USD/h')} for the whole", "whole", False)
    if not isinstance(price, Figure):
        return Price("nothing of its own", "inside", False)
    each = show(price.value, "USD/GB-month").replace("USD/GB-month", "USD a GB-month")
    assumed = price.origin == DEFAULTS
    if tier.get("billed_on") == "provisioned":
        return Price(f"{each} for all that is provisioned", "provisioned", assumed)
    return Price(f"{each} for what is kept", "held", assumed)


def unlike(study: Study) -> list[Say]:
    """That dollars of tiers which charge in different ways are no contest."""
    ways: dict[str, list[str]] = {}
    for scenario in study.scenarios:
        ways.setdefault(price_of(scenario).way, []).append(tier_of(scenario))
    held, paid = ways.get("held"), ways.get("provisioned")
    if not held or not paid:
        return []
    names = [q.and_join([*dict.fromkeys(each)]) for each in (held, paid)]
    words = f"{names[0]} charge for what is kept, {names[1]} for all that is provisioned"
    return [Say(f"The dollars are not alike: {words}.")]
