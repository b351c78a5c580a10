"""Several plans side by side: which may be ranked, what keeps the others out (they do not work, or
nobody knows their limit, or their prices are not alike), where they differ, and their curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ckptcost import advice as ad
from ckptcost.answer import Answer, Caution, Line, Plot, Say
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


def refused(question: str, title: str, about: str, stop: Caution, **asked: Any) -> Answer:
    """Of a plan that does not work: why, what to change, and that it meets no target."""
    lost = [f"{target}: the plan does not work" for target in asked.get("require", ())]
    says = [stopped(stop, "This plan does not work as it stands.")]
    return Answer(question, title, about, says, [], missed=lost)


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
    nodes = "node" if known == 1 else "nodes"
    counted = f"with {known:,.0f} {nodes}" if 0 < known < np.inf else "at smaller sizes"
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


def unlike(study: Study, names: Sequence[str] = ()) -> list[Say]:
    """That tiers charge in different ways, and how much: their dollars are compared without it."""
    ways: dict[str, dict[str, str]] = {}
    for row, scenario in enumerate(study.scenarios):
        name = names[row] if names else tier_of(scenario)
        ways.setdefault(price_of(scenario).way, {}).setdefault(name, rent_of(study, row))
    parts = []
    for way, what in PAID.items():
        if rents := ways.get(way):
            verb = "charge" if len(rents) > 1 else "charges"
            rent = f" ({q.and_join([*rents.values()])})" if all(rents.values()) else ""
            parts.append(f"{q.and_join([*rents])} {verb} for {what}{rent}.")
    words = "Compare dollars before rent, which is not alike."
    return [Say(" ".join([words, *parts]))] if len(parts) > 1 else []


def rent_of(study: Study, row: int) -> str:
    """What a run pays for keeping bytes, or for the whole tier; "" if that is not known."""
    standing = study.scenarios[row].said["tier"].get("standing_price")
    if isinstance(standing, Figure):
        return show(standing.value, "USD/h")
    rent = study.value("cost", row) - study.value("cost_apart", row)
    return show(rent, "USD", 2) if rent == rent else ""


def dollars(study: Study) -> str:
    """The measure of cost by which plans may be compared."""
    return "cost_apart" if unlike(study) else "cost"


LESS = {
    "wall": "ends sooner",
    "cost": "costs less",
    "cost_apart": "costs less before rent",
    "energy": "takes less energy",
    "carbon": "emits less",
}
"""what a plan does that is better by a measure"""


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
