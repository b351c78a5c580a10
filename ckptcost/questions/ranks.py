"""Several plans side by side: which may be ranked, what keeps the others out (they do not work, or
nobody knows their limit, or their prices are not alike), where they differ, and their curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ckptcost import advice as ad
from ckptcost.answer import Caution, Line, Plot, Say
from ckptcost.cautions import blocked
from ckptcost.plan import evaluate as ev
from ckptcost.plan import physics as ph
from ckptcost.questions import common as q
from ckptcost.scenario.figures import Figure
from ckptcost.scenario.resolve import DEFAULTS, Scenario, tier_of
from ckptcost.scenario.units import show, show_range
from ckptcost.study import AHEAD, Study, unit_of

LOSES = "COPY_DIES_WITH_NODE"
"""the caution of a plan that only works with a copy elsewhere, which it does not name: what its run
costs cannot be said"""


def ranking(study: Study, measure: str, count: int) -> tuple[list[int], dict[int, Caution]]:
    """The first cases from best to worst, those that do not work last, and why they do not."""
    stops = blocked(study, range(count))
    study.unsaid = {row for row, stop in stops.items() if stop.code == LOSES}
    order = [row for row in study.ranked(measure) if row < count]
    return sorted(order, key=lambda row: row in stops), stops


def stop_of(study: Study) -> Caution | None:
    """Why the only plan of a study does not work."""
    return ranking(study, "wall", 1)[1].get(0)


def stopped(caution: Caution, what: str) -> Say:
    """What does not work, why, and what would have to change."""
    why, _, command = caution.words.partition(":   ")
    return Say(f"{what} {why}:", "", command)


def unknown_limits(study: Study, order: Sequence[int]) -> list[Say]:
    """Tiers whose limit nobody has measured, with the key that would give it."""
    rows = [row for row in order if study.limit_unknown(row)]
    if not rows:
        return []
    w, row = study.w, rows[0]
    first = bool(study.stated_of(ph.limit_unknown(w, w.tier), row))
    section, tier = ("tier", w.tier) if first else ("second_tier", w.second_tier)
    ids = dict.fromkeys(str(study.scenarios[each].said[section].get("id", "")) for each in rows)
    known = study.stated_of(ph.known_clients(tier), row)
    counted = f"with {known:,.0f} nodes" if 0 < known < np.inf else "at smaller sizes"
    words = f"* {q.and_join([each or 'the tier' for each in ids])}: measured {counted} only."
    ranked = ", so the others are ranked first" if len(rows) < len(order) else ""
    words += f" The limit of the whole is not known{ranked}. If you know it:"
    return [Say(words, "", f'--set {section}.write="100 GB/s"')]


# --- prices ---------------------------------------------------------------------------------------


class Price(NamedTuple):
    """What a tier charges for keeping bytes."""

    words: str
    way: str
    assumed: bool = False


def price_of(scenario: Scenario) -> Price:
    """From what the plan says of its tier."""
    tier = scenario.said["tier"]
    price, standing = tier.get("storage_price"), tier.get("standing_price")
    if isinstance(standing, Figure):
        return Price(f"{show(standing.value, 'USD/h')} for {PAID['whole']}", "whole")
    if not isinstance(price, Figure):
        return Price("nothing of its own", "inside")
    each = show(price.value, "USD/GB-month").replace("USD/GB-month", "USD a GB-month")
    way = "provisioned" if tier.get("billed_on") == "provisioned" else "held"
    return Price(f"{each} for {PAID[way]}", way, price.origin == DEFAULTS)


PAID = {
    "held": "what is kept",
    "provisioned": "all that is provisioned",
    "whole": "the whole system, used or not",
}


def unlike(study: Study) -> list[Say]:
    """That dollars of tiers which charge in different ways are no contest."""
    ways: dict[str, list[str]] = {}
    for tier, scenario in {tier_of(each): each for each in study.scenarios}.items():
        ways.setdefault(price_of(scenario).way, []).append(tier)
    parts = [
        f"{q.and_join(ways[way])} {'charges' if len(ways[way]) == 1 else 'charge'} for {what}"
        for way, what in PAID.items()
        if way in ways
    ]
    return [Say(f"The dollars are not alike: {q.and_join(parts)}.")] if len(parts) > 1 else []


# --- where plans differ ---------------------------------------------------------------------------

ABSENT = "not given"


def differing(scenarios: Sequence[Scenario]) -> list[list[str]]:
    """Figures and words that differ: the path, and what each plan says."""
    texts = [
        {f"{section}.{key}": text_of(value, f"{section}.{key}")
         for section, keys in each.said.items() for key, value in keys.items()}
        for each in scenarios
    ]  # fmt: skip
    rows = [
        [path, *(each.get(path, ABSENT) for each in texts)]
        for path in sorted(set[str]().union(*texts))
    ]
    return [row for row in rows if len({*row[1:]}) > 1]


def text_of(value: Any, path: str) -> str:
    """A figure with its range, or a word."""
    if not isinstance(value, Figure):
        return str(value)
    unit = unit_of(path)
    ends = f" ({show_range(value.low, value.high, unit)})" if value.ranged else ""
    return f"{show(value.value, unit, 6)}{ends}"


# --- the plot -------------------------------------------------------------------------------------


def curves(study: Study, names: Sequence[str], marks: Mapping[str, tuple[int, float]]) -> Plot:
    """Useful training over the interval, a curve for each of the first cases, with marks: what they
    are called, their row and interval."""
    every = [x for _, x in marks.values()]
    x = np.geomspace(min(every) / 8.0, max(every) * 8.0, 61)
    lines = []
    with np.errstate(all="ignore"):
        plan = ph.plan(study.w)
        least, most = ad.possible(study.w, plan)
        y = ev.at(study.w, plan, x[:, None, None]).goodput[..., 0]
    for row, name in enumerate(names):
        own = (x >= least[row]) & (x <= most[row])
        if np.count_nonzero(own) > 1 and study.value("goodput", row) > AHEAD:
            lines.append(Line(name, x[own].tolist(), y[own, row].tolist()))
    points = [(name, x, study.value("goodput", row)) for name, (row, x) in marks.items()]
    title = "Useful training by how often the job saves"
    axes = "training time between saves [s]", "useful training [share]"
    return Plot(title, *axes, lines, tuple(points), True)
