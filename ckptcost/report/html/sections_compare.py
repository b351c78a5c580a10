"""Several statements side by side, with the differences from the first; and a warning where they
are not alike enough."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ckptcost.present.amounts import share
from ckptcost.report.html.markup import Markup, data, el, note, ranged, section, small, table
from ckptcost.report.html.sections import KINDS, without
from ckptcost.report.html.sections_bill import COLUMNS
from ckptcost.report.parts import Factor, Quantity
from ckptcost.report.statement import Statement

GRID_METHOD = "what the grid's factor counts"


def _asked(s: Statement) -> dict[str, object]:
    """What has to be alike for a comparison."""
    b = s.boundary
    return {
        "the version of the method": s.method_version,
        "measured or modelled": s.kind,
        "simulated or not": s.simulated,
        "what is counted": (sorted(b.included), b.counterfactual),
        "PUE": (b.pue, b.pue_included_in_energy),
        GRID_METHOD: s.grid_method,
        "which lines are unknown": sorted(
            {each for what, _ in COLUMNS for each in getattr(s.totals, what).excludes}
        ),
    }


def unlike(statements: Sequence[Statement]) -> list[str]:
    """In what they differ that a comparison needs alike."""
    first, *rest = map(_asked, statements)
    return [words for words, of in first.items() if any(other[words] != of for other in rest)]


def _cell(q: Quantity, first: Quantity | None, lacking: str, unlike_because: str) -> Markup:
    against = None
    if first is not None and unlike_because and q.value is not None and first.value is not None:
        against = f"no difference told: {unlike_because}"
    elif first is not None and q.value is not None and first.value:
        change = q.value / first.value - 1
        against = "as the first" if change == 0 else f"{'+' if change > 0 else ''}{share(change)}"
        if change and _overlap(q, first):
            against += ", ranges overlap if they are not paired"
    spread = el("span", ranged(q), class_="nb") if ranged(q) else None
    missing = f"without {lacking}" if lacking and q.value is not None else None
    return el("td", data(q.value), small(spread), small(against), small(missing), class_="n")


def _overlap(one: Quantity, other: Quantity) -> bool:
    """Whether both have ranges and an amount lies in both: the sign of the difference may be the
    uncertainty's."""
    if one.interval is None or other.interval is None or one.low is None or other.low is None:
        return False
    return one.low <= (math.inf if other.high is None else other.high) and other.low <= (
        math.inf if one.high is None else one.high
    )


def comparison(statements: Sequence[Statement]) -> Markup:
    """Totals of each, and the differences from the first."""
    lacking = {
        what: [without(s, getattr(s.totals, what)) for s in statements] for what, _ in COLUMNS
    }
    alike = {what for what, each in lacking.items() if len(set(each)) == 1}
    rows = []

    def unlike_because(n: int, what: str) -> str:
        """Why a total has no difference from the first one's."""
        if lacking[what][n] != lacking[what][0]:
            return "not the same lines are known"
        other_grid = GRID_METHOD in unlike([statements[0], statements[n]])
        return (
            "another method of the grid's factor"
            if other_grid and what == "emissions_location"
            else ""
        )

    for n, s in enumerate(statements):
        first = statements[0].totals if n else None
        name = el("a", s.subject.name, href=f"#statement-{n + 1}")
        told = KINDS[s.kind].lower() + (", SIMULATED" if s.simulated else "")
        cells = [
            _cell(
                getattr(s.totals, what),
                getattr(first, what, None),
                "" if what in alike else lacking[what][n],
                unlike_because(n, what),
            )
            for what, _ in COLUMNS
        ]
        rows.append(
            el("tr", el("th", name, small(told), small(s.subject.tier), scope="row"), cells)
        )
    header = ["Statement", *(name for _, name in COLUMNS)]
    caption = "Totals of each. Below a figure: its range, then the difference from the first"
    said = table(
        header,
        rows,
        label="Side by side",
        caption=caption,
        class_="wide-table compared",
        at="comparison-table",
    )
    missing = "; ".join(
        f"{name}: {lacking[what][0]}"
        for what, name in COLUMNS
        if what in alike and lacking[what][0]
    )
    remark = note(f"Not in any of these totals because unknown: {missing}.") if missing else None
    differs = unlike(statements)
    words = (
        f"Compare with care. These statements are not alike in: {'; '.join(differs)}."
        if differs
        else ""
    )
    return section("comparison", "Side by side", note(words, class_="beware"), said, remark)


def in_all(statements: Sequence[Statement]) -> list[Factor]:
    """Factors that every statement has, alike."""
    rest = [{f.id: f for f in s.factors} for s in statements[1:]]
    return [f for f in statements[0].factors if all(each.get(f.id) == f for each in rest)]
