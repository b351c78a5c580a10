"""The front as a chart, one save in bars, one tier in detail, what vendors claim, and the list to
choose tiers from."""

from __future__ import annotations

import math

import numpy as np

from ckptcost.catalog.keys import unit_of
from ckptcost.catalog.schema import Claim
from ckptcost.catalog.store import Entity as CatalogEntry
from ckptcost.core.cautions import cautions_of
from ckptcost.core.size import full_bytes
from ckptcost.core.units import parse, to_kwh
from ckptcost.errors import CkptcostError
from ckptcost.present.amounts import (
    DASH,
    between,
    duration,
    number,
    quantities,
    quantity,
    rate,
    share,
    size,
)
from ckptcost.present.chart import Bar, Bars, Chart, Curve, Dot, Part
from ckptcost.present.grid import Grid, Head, Row, Tone
from ckptcost.present.words import caution_text
from ckptcost.report.factors import sources_of
from ckptcost.report.rows import columns_of
from ckptcost.scenario import Input
from ckptcost.tui.desk import Desk
from ckptcost.tui.screens.tiers_table import AMOUNTS, COUNTED, evidence_of, rates_said, short
from ckptcost.tui.screens.tiers_view import OWN, Entry, Shown, Weighed, with_interval

Line = tuple[str, Tone]
AGAINST = COUNTED | {"time": "cost_usd"}
"""what goodput is held against, by objective"""
_TOLD = (
    ("power", ("write_energy", "active_power", "idle_power")),
    ("price", ("storage_price", "standing_price", "request_price")),
    ("capacity", ("capacity",)),
)
"""what is told of a tier, and the keys that may say it"""
NAMED = 12
"""with more dots than this, only those that matter have their name beside them"""
SURVIVES = {
    "process": "lost with its node",
    "node": "survives the loss of a node",
    "site": "survives the loss of any node",
}


def front_chart(weighed: Weighed, desk: Desk, cursor: str = "") -> Chart:
    """Share of time lost against what it costs, each tier at its best interval, and the front that
    no tier beats."""
    objective = weighed.objective
    key = AGAINST[objective]
    if (
        all(f"run_{key}" not in entry.figures["best"] for entry in weighed.entries)
        and key == "cost_usd"
    ):
        key = "energy_kwh"
    on_front = (
        {
            each.option.resolved.words.get("tier.id", "")
            for each in weighed.front.candidates
            if bool(each.on_front.any())
        }
        if (weighed.front is not None)
        else set()
    )
    dots, baseline = [], weighed.baseline(desk).key
    many = len(weighed.entries) > NAMED
    for entry in weighed.entries:
        found = entry.figures["best"]
        x, lost = found.get(f"run_{key}"), 1.0 - found.get("goodput", math.nan)
        if x is None or not lost > 0 or not x > 0:
            continue
        best = (
            entry.option is not None and entry.option.resolved.words.get("tier.id", "") in on_front
        )
        tone: Tone = "best" if best else "base" if entry.key == baseline else ""
        named = best or not many or entry.key in (baseline, cursor)
        dots.append(Dot(x, lost, short(entry.key) if named else "", tone))
    return Chart(
        f"time lost against {AMOUNTS[key].unit}",
        (),
        dots,
        x_label=AMOUNTS[key].unit,
        y_label="time lost",
        x_text=number,
        y_text=share,
        x_log=True,
        y_log=True,
        x_kind="number",
        note=(
            f"each tier at its best for {objective}; best: nothing beats it in time, energy, money"
            " and carbon at once"
        ),
        empty="no tier has a best interval",
    )._replace(curves=_front_curve(weighed, key))


def _front_curve(weighed: Weighed, key: str) -> tuple[Curve, ...]:
    """The points of the front over all intervals."""
    if weighed.front is None:
        return ()
    points: list[tuple[float, float]] = []
    for each in weighed.front.candidates:
        if not each.on_front.any():
            continue
        with np.errstate(over="ignore", invalid="ignore"):
            columns = columns_of(each.outcome)
            xs = np.broadcast_to(
                np.asarray(columns[f"run_{key}"], dtype=float), each.interval_s.shape
            )
            lost = 1.0 - np.broadcast_to(
                np.asarray(each.outcome.goodput, dtype=float), each.interval_s.shape
            )
        points += [
            (float(x), float(y))
            for x, y, on in zip(xs, lost, each.on_front, strict=True)
            if on and x > 0 and y > 0
        ]
    points.sort()
    return (
        (Curve("", [x for x, _ in points], [y for _, y in points], "best"),)
        if len(points) > 1
        else ()
    )


def save_bars(weighed: Weighed, desk: Desk) -> Bars:
    """Dollars of one save, on a log scale: they span orders of magnitude."""
    best, baseline, rows = weighed.best("save"), weighed.baseline(desk).key, []
    for entry in weighed.entries:
        usd = entry.figures["save"].get("save_cost_usd")
        if usd is not None and usd > 0:
            tone: Tone = (
                "best"
                if best is not None and entry.key == best.key
                else "base"
                if entry.key == baseline
                else ""
            )
            rows.append(
                Bar(
                    short(entry.key),
                    (Part("USD", 0.0, usd, tone),),
                    f"{number(usd)} USD",
                    entry.key,
                    tone,
                )
            )
    rows.sort(key=lambda bar: -bar.parts[0].end)
    return Bars(
        rows,
        (),
        "USD of one save, log scale",
        "",
        True,
        "the price of a GPU-hour is not known: cluster.gpu_price",
    )


def details(weighed: Weighed, desk: Desk, key: str, shown: Shown) -> list[Line]:
    """One tier: how fast, on whose word, what it draws and costs, what it outlives, and what to
    beware of."""
    entry = weighed.entry(key)
    if entry is None:
        return []
    if entry.resolved is None:
        return [
            (short(entry.key, 60), ""),
            (entry.reason, "bad"),
            *_from_catalogue(desk, entry.tier),
        ]
    r, evidence = entry.resolved, evidence_of(desk, entry)
    lines: list[Line] = [(r.names.get("tier", entry.key), "")]
    rested: list[tuple[str, Input]] = []
    if evidence.figure is not None:
        lines.append((f"writes {rates_said(evidence)}, {evidence.basis}", ""))
        rested.append(("rate", evidence.figure))
    run = entry.run(shown)
    if run is not None:
        saved = run.plan.saved
        later = f", safe {duration(float(saved.lag_s))} later" if float(saved.lag_s) > 0 else ""
        narrowest = rate(float(saved.wire_bytes_per_s))
        lines.append(
            (
                (
                    f"one save stalls {duration(float(run.mean_stall_s))}{later}; {narrowest} at"
                    " the narrowest place"
                ),
                "",
            )
        )
    inputs = {each.path: each for each in r.inputs}
    for label, keys in _TOLD:
        said = [inputs[f"tier.{key}"] for key in keys if f"tier.{key}" in inputs]
        lines += [
            (f"{label}: {_said(each)}, {each.figure.basis or 'assumed'}", "") for each in said
        ]
        rested += [(label, each) for each in said]
        if not said and label != "capacity":
            lines.append(
                (f"{label}: {DASH} {r.unknown.get(f'tier.{keys[0]}', '')}".rstrip(), "muted")
            )
    lines.append((SURVIVES.get(str(r.words.get("tier.survives", "site")), ""), ""))
    lines += [(reason, "warn") for reason in (entry.no_best, entry.reason) if reason]
    if run is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            lines += [
                (caution_text(each), "warn")
                for each in cautions_of(r.scenario, run)
                if bool(each.holds)
            ]
    lines += [line for line in _from_catalogue(desk, entry.tier) if line[0] != lines[0][0]]
    sources = {
        f"{label} from: {title}": None for label, each in rested if (title := _title(desk, each))
    }
    return [*lines, *((text, "muted") for text in sources)]


def _from_catalogue(desk: Desk, tier: str) -> list[Line]:
    """Name and note of a catalogue entry."""
    if not tier:
        return []
    try:
        entity = desk.catalog.get("tier", tier)
    except CkptcostError:
        return []
    return [(text, "muted") for text in (entity.name, entity.note) if text]


def _said(one: Input) -> str:
    spread = quantities(one.figure.low, one.figure.high, one.unit)
    return quantity(one.figure.value, one.unit) + (f" ({spread})" if spread else "")


def _title(desk: Desk, one: Input) -> str:
    """Of the source it comes from; what is assumed here has none."""
    return next(
        (
            str(each["title"])
            for each in sources_of(desk.catalog, one.figure.source)
            if each["id"] != "house"
        ),
        "",
    )


def claims(weighed: Weighed) -> Grid:
    """What vendors say of one save, beside what the model says of a save of the same size."""
    heads = (
        Head("tier", "tier", left=True),
        Head("what", "claim", left=True),
        Head("claimed", "claimed"),
        Head("model", "model"),
        Head("storage", "of it storage", rank=2),
        Head("of", "of a save of", rank=1),
        Head("source", "source", left=True, rank=3),
    )
    rows = [
        _claim(weighed.desk, entry, at, claim)
        for entry in weighed.entries
        if entry.resolved is not None
        for at, claim in enumerate(entry.resolved.claims)
    ]
    note = (
        "no vendor says what its kWh include; the model counts the GPUs and hosts that wait, and"
        " the storage"
    )
    return Grid(
        heads,
        rows,
        "What vendors claim",
        note,
        "none of these tiers comes with a claim about one save",
    )


def _claim(desk: Desk, entry: Entry, at: int, claim: Claim) -> Row:
    found = entry.figures["save"]
    assert entry.resolved is not None
    wanted = float(full_bytes(entry.resolved.scenario.checkpoint))
    of_bytes = parse(claim.size, "bytes")
    here = abs(of_bytes - wanted) <= 0.01 * wanted
    if claim.what == "energy":
        said = [
            None if text is None else to_kwh(parse(text, "j"))
            for text in (claim.value, claim.low, claim.high)
        ]
        claimed = f"{between(said[1], said[2]) or number(said[0])} kWh"
        mine, storage = found.get("save_energy_kwh"), found.get("save_storage_kwh")
        model = f"{number(mine)} kWh" if mine is not None and here else DASH
        stored = f"{number(storage)} kWh" if storage is not None and here else DASH
    else:
        said = [parse(claim.value, "s")]
        claimed, mine, stored = duration(said[0]), found.get("stall_s"), ""
        model = duration(mine if here else None)
    sources = sources_of(desk.catalog, claim.source)
    title = str(sources[0]["title"]) if sources else DASH
    cells = (entry.key, claim.what, claimed, model, stored, size(of_bytes), title)
    order = (entry.key, claim.what, said[0], mine if here else None, None, of_bytes, title)
    return Row(f"{entry.key} {at}", cells, order)


def choices(desk: Desk) -> Grid:
    """Every tier of the catalogue, the user's among them; those side by side are ticked."""
    shown = with_interval(desk)[0].tiers_shown()
    heads = (
        Head("tier", "tier", left=True),
        Head("name", "name", left=True),
        Head("write", "writes", rank=1),
        Head("kind", "kind", left=True, rank=2),
        Head("from", "from", left=True, rank=3),
    )
    own_words = (OWN, "the scenario's own")
    rows = (
        [Row(OWN, (*own_words, DASH, "", "scenario"), (*own_words, None, "", "scenario"), "", True)]
        if "" in shown
        else []
    )
    for tier in desk.catalog.ids("tier"):
        try:
            entity = desk.catalog.get("tier", tier)
        except CkptcostError as error:
            rows.append(
                Row(tier, (tier, str(error), DASH, "", ""), (tier, str(error), None, "", ""), "bad")
            )
            continue
        own = "catalogue" if entity.where.startswith("models/") else "yours"
        writes, per_s = _writes(entity)
        order = (tier, entity.name, per_s, entity.label, own)
        rows.append(
            Row(tier, (tier, entity.name, writes, entity.label, own), order, "", tier in shown)
        )
    return Grid(heads, rows, "Tiers side by side", "", "the catalogue has no tier")


def _writes(entity: CatalogEntry) -> tuple[str, float | None]:
    """The rate in its own terms, and as a number to sort by; how many nodes or how much capacity
    there will be is the scenario's to say."""
    for key, of in (
        ("write", ""),
        ("node_write", " a node"),
        ("gpu_write", " a GPU"),
        ("write_per_capacity", ""),
    ):
        if (figure := entity.figures.get(key)) is not None:
            unit = unit_of("tier", key)
            return quantity(figure.value, unit) + of, (
                figure.value if unit == "bytes_per_s" else None
            )
    return DASH, None
