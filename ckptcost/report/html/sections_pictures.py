"""What the caller adds, drawn: the interval curve, tiers, power; and emissions by time from the
statement's own rows."""

from __future__ import annotations

from collections.abc import Sequence

from ckptcost.present.amounts import duration
from ckptcost.report.html import svg_curve, svg_emissions, svg_power
from ckptcost.report.html.extras import Curve, Power, TextTable
from ckptcost.report.html.markup import Markup, el, join, note, row, section, table
from ckptcost.report.html.sections import left_out, why_unknown
from ckptcost.report.html.svg_axis import Drawn, figure
from ckptcost.report.statement import Statement

MOST_BANDS = 30
CLAIMED = (
    "Claimed: what a vendor says, as stated; its boundary is not known, and nothing here rests"
    " on it"
)


def curve(at: str, of: Curve | None, level: int) -> Markup | None:
    if of is None or not of.x_s or not of.lines:
        return None

    def draw(width: float) -> Drawn:
        return svg_curve.drawn(of, width)

    drawing = figure(
        f"{at}curve-svg",
        "What each interval between saves costs",
        svg_curve.in_words(of),
        draw,
        of.note or None,
    )
    return section(f"{at}interval", "How often to save", drawing, level=level)


def text_table(of: TextTable, titled: bool) -> Markup:
    """Cells as they come; the claimed column last and apart."""
    left = max(of.left, 1)
    claims = list(of.claimed) if of.claimed is not None and any(of.claimed) else []
    rows = []
    for i, cells in enumerate(of.rows):
        mine = [*cells, *([""] * (len(of.header) - len(cells)))]
        said = [
            el("td", each, class_=None if n < left else "n") for n, each in enumerate(mine[1:], 1)
        ]
        last = (
            el("td", claims[i] if i < len(claims) else "", class_="n claimed") if claims else None
        )
        rows.append(el("tr", el("th", mine[0], scope="row"), said, last))
    header = [*of.header, *(["claimed"] if claims else [])]
    notes = ". ".join(each.rstrip(".") for each in (of.note, CLAIMED if claims else "") if each)
    caption = "" if titled else of.title
    return join(
        [
            table(header, rows, label=of.title, caption=caption, left=left),
            note(f"{notes[:1].upper()}{notes[1:]}" if notes else ""),
        ]
    )


def tiers(at: str, of: TextTable | None, level: int) -> Markup | None:
    return (
        section(f"{at}tiers", "Storage tiers side by side", text_table(of, False), level=level)
        if of is not None and of.rows
        else None
    )


def further(at: str, tables: Sequence[TextTable], level: int) -> Markup | None:
    found = [
        section(f"{at}table-{n}", of.title, text_table(of, True), level=level)
        for n, of in enumerate(tables, 1)
        if of.rows
    ]
    return join(found) if found else None


def power(at: str, of: Power | None, level: int) -> Markup | None:
    if of is None or not of.t_s or not of.lines:
        return None
    told = [of.note] if of.note else []
    if of.stacked and len(of.lines) > 1:
        told.append(
            "The areas lie on each other: the upper edge is their sum, and where one is not known"
            " none is drawn."
        )
    if len(of.t_s) > svg_power.MOST_POINTS:
        shaded = "" if of.stacked else ", with their range shaded"
        told.append(
            f"{len(of.t_s):,} readings are drawn as {svg_power.MOST_POINTS} means or fewer{shaded}."
        )

    def draw(width: float) -> Drawn:
        return svg_power.drawn(of, width)

    drawing = figure(
        f"{at}power-svg", "Power over time", svg_power.in_words(of), draw, " ".join(told) or None
    )
    rows = [row(*cells) for cells in svg_power.band_rows(of.bands[:MOST_BANDS])]
    header = ["Checkpoint", "begins at", "training held up", "safe after"]
    words = (
        "The checkpoints above"
        if len(of.bands) <= MOST_BANDS
        else f"The first {MOST_BANDS} of {len(of.bands):,} checkpoints above"
    )
    said = table(header, rows, label=words, caption=words) if rows else None
    return section(f"{at}power", "Power and checkpoints", drawing, said, level=level)


def emissions(at: str, statement: Statement, level: int) -> Markup | None:
    series = statement.series
    if series is None or not series.start:
        return None
    total = statement.totals.emissions_location
    if all(kg is None for kg in series.emissions_location_kgco2e):
        why = (
            why_unknown(statement, "emissions_location").rstrip(".")
            or "the grid's factor is not known"
        )
        return section(
            f"{at}hours",
            "Emissions by time",
            note(f"Emissions by time are not known: {why}."),
            level=level,
        )
    rows = svg_emissions.hours(series)
    shown, each_s = svg_emissions.gathered(rows, svg_emissions.MOST_BARS, series.width_s)
    told = [f"Each bar is up to {duration(each_s)}, UTC; location-based."]
    if len(shown) < len(rows):
        told.append(
            f"{len(rows):,} rows of {duration(series.width_s)} are drawn together: kilograms added,"
            " the grid's factor averaged over time."
        )
    lacking = left_out(statement, total)
    told += [f"{lacking[:1].upper()}{lacking[1:]}."] if lacking else []

    def draw(width: float) -> Drawn:
        return svg_emissions.drawn(rows, series.width_s, width)

    words = svg_emissions.in_words(shown)
    drawing = figure(
        f"{at}hours-svg",
        "Emissions by time, with the factor of the grid",
        words,
        draw,
        " ".join(told),
    )
    return section(f"{at}hours", "Emissions by time", drawing, level=level)
