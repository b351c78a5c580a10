"""For those who keep an inventory: both Scope 2 figures, the Software Carbon Intensity, and what is
inside the boundary."""

from __future__ import annotations

from collections.abc import Sequence

from ckptcost.core.quantities import BY_ID
from ckptcost.present.amounts import amount, number, share
from ckptcost.present.words import scope_text
from ckptcost.report.html.extras import Sci
from ckptcost.report.html.markup import (
    Child,
    Markup,
    bullets,
    data,
    el,
    join,
    link,
    note,
    row,
    section,
    small,
    table,
)
from ckptcost.report.html.sections import interval_words, left_out, why_unknown
from ckptcost.report.parts import Quantity
from ckptcost.report.statement import Contract, Statement

MEMO = (
    "Memo item. This energy already sits in the facility's meter, and these emissions in the"
    " inventory made from it: do not add them to an inventory again. They say which part of it is"
    " due to checkpoints."
)
SCI = (
    "SCI = ((E x I) + M) per R, ISO/IEC 21031: E energy, I location-based intensity of the grid, M"
    " embodied share, R functional unit"
)


def _figure(statement: Statement, what: str, name: str) -> Markup:
    q: Quantity = getattr(statement.totals, what)
    head = el("div", name, class_="what")
    used = next((f for f in statement.factors if f.id == BY_ID[what].rests_on[-1]), None)
    at = (
        small(f"at {amount(used.value, used.unit)}, {used.set_by}")
        if used is not None and used.value is not None
        else None
    )
    if q.value is None:
        return el(
            "div",
            head,
            el("div", "not known", class_="value"),
            small(why_unknown(statement, what)),
            at,
        )
    value = el("div", data(q.value), f" {q.unit}", class_="value")
    return el("div", head, value, small(interval_words(q)), at, small(left_out(statement, q)))


def _contract(c: Contract) -> Markup:
    until = (
        " to ".join(each or "open" for each in (c.valid_from, c.valid_until))
        if c.valid_from or c.valid_until
        else "-"
    )
    source = link(c.source, c.source) if c.source else "-"
    return row(
        c.name,
        c.instrument,
        until,
        source,
        share(c.share),
        f"{number(c.kgco2e_per_kwh * 1000)} g/kWh",
        left=4,
    )


def _contracts(statement: Statement) -> Markup | None:
    if statement.contracts:
        header = ["Contract", "instrument", "valid", "source", "share", "factor"]
        return table(
            header,
            map(_contract, statement.contracts),
            label="Electricity bought by contract",
            left=4,
            class_="words",
        )
    made_up = (
        " Without one, no market-based figure is made up."
        if statement.totals.emissions_market.value is None
        else ""
    )
    return note(f"No contract for electricity is given.{made_up}")


def scope_2(at: str, statement: Statement, level: int) -> Markup:
    """Location and market side by side, never one sum."""
    t = statement.totals
    called = scope_text(statement.choices)
    location = _figure(statement, "emissions_location", f"{called}, location-based")
    market = _figure(statement, "emissions_market", "Scope 2, market-based")
    inside = el(
        "div",
        note(MEMO, class_="beware"),
        el("div", location, market, class_="figures"),
        _contracts(statement),
        class_="box",
    )
    lines = [
        ("E1-5 energy consumption", t.energy, "MWh"),
        (
            f"E1-6 {scope_text(statement.choices, 'gross Scope 2')} emissions, location-based",
            t.emissions_location,
            "tCO2e",
        ),
        ("E1-6 gross Scope 2 emissions, market-based", t.emissions_market, "tCO2e"),
    ]
    rows = [
        row(name, unit, "not known" if q.value is None else data(q.value / 1000), left=2)
        for name, q, unit in lines
    ]
    words = (
        "The same under the names of ESRS E1: parts of the reported figures, not additions to them"
    )
    esrs = table(
        ["ESRS E1 line", "unit", "value"],
        rows,
        label="ESRS E1",
        caption=words,
        left=2,
        class_="esrs",
    )
    return section(f"{at}scope2", "Scope 2", inside, esrs, level=level)


def sci(at: str, rows: Sequence[Sci], level: int) -> Markup | None:
    """Software Carbon Intensity, as given."""
    if not rows:
        return None

    def value(of: float | str | None) -> Child:
        return "not known" if of is None else of if isinstance(of, str) else data(of)

    found = [row(r.label, value(r.value), r.unit, r.note, words=(2, 3)) for r in rows]
    said = table(
        ["Term", "value", "unit", "note"],
        found,
        label="Software Carbon Intensity",
        caption=SCI,
        words=(2, 3),
        class_="words sci",
    )
    return section(f"{at}sci", "Software Carbon Intensity", said, level=level)


def boundary(at: str, statement: Statement, level: int) -> Markup:
    b = statement.boundary
    inside = el("div", el(f"h{level + 1}", "Counted"), bullets(b.included) or note("Nothing."))
    out = [join([each.component, small(each.reason)]) for each in b.excluded]
    outside = el(
        "div",
        el(f"h{level + 1}", "Not counted, and why"),
        bullets(out) or note("Nothing is left out."),
    )
    if b.pue is None:
        pue = "Energies are the machine's own, as metered: no PUE is applied"
    else:
        pue = (
            f"PUE {number(b.pue)},"
            f" {'' if b.pue_included_in_energy else 'not '}included in"
            f" {'every energy' if b.pue_included_in_energy else 'the energies'}"
        )
    treatment = b.inventory_treatment.replace("_", " ")
    remark = (
        f"{pue}. Embodied carbon is a figure of its own, in no emissions total. Inventory"
        f" treatment: {treatment}."
    )
    against = el("p", f"Compared with: {b.counterfactual}.")
    return section(
        f"{at}boundary",
        "Boundary",
        against,
        el("div", inside, outside, class_="pair"),
        note(remark),
        level=level,
    )
