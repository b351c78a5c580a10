"""Hugging Face model card: `co2_eq_emissions` in a YAML block, and a section for people.

The field means the whole training (https://huggingface.co/docs/hub/model-cards-co2), and a
statement holds what checkpoints and failures add to one. So the field is there only where the
statement's meters tell the energy of the whole time, times PUE where it is known, times the
location-based factor of the grid. Everywhere else there is the section alone: hardware, place, what
checkpoints and failures add, and that the rest is not known, and why. The field without a figure
would make the hub's search by emissions fail; the part never stands for the whole. Nothing is
counted twice:

* the node's own meter alone, where it was read all the time: it has fans, network cards and losses
  too, and the hosts' lines rest on it;
* else the sum of the node's parts, without what lies inside another (gpu:0.memory) or contains
  others (psys). A module is the sum of its GPUs, CPUs and memory: beside GPUs it is left out, else
  CPUs and memory are.

All must have been read all the time, on all accelerators and hosts of the run.

`training_type` is written where a tag of that name says it: pre-training or fine-tuning. Embodied
carbon is in no emissions figure, and market-based figures are not in the field.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ckptcost.first.core.units import KWH_J
from ckptcost.first.errors import InputError
from ckptcost.first.exports.formats import Files
from ckptcost.first.exports.texts import quote_yaml, sources_of, yaml_number
from ckptcost.first.present.amounts import count, number, share
from ckptcost.first.present.table import plain
from ckptcost.first.present.words import METHODS
from ckptcost.first.report.document import Report
from ckptcost.first.report.parts import Factor
from ckptcost.first.report.statement import Measurement, Statement

GRAMS = 1000.0
CARDS = ("gpu", "module")
COVERED = 0.99
"""share of the time that a meter has to have been read"""
PART = {
    "energy": ("energy", "kWh"),
    "emissions_location": ("location-based emissions", "kgCO2e"),
}
MEMO = (
    "Memo item: the checkpoints' energy is part of the run's and already sits in the facility's"
    " meter; do not add it to an inventory"
)


class Whole(NamedTuple):
    """The whole run, as metered."""

    statement: Statement
    parts: list[Measurement]
    metered_kwh: float
    grid: Factor
    grid_kgco2e_per_kwh: float

    @property
    def pue(self) -> float:
        return self.statement.boundary.pue or 1.0

    @property
    def kwh(self) -> float:
        return self.metered_kwh * self.pue

    @property
    def grams(self) -> float:
        return self.kwh * self.grid_kgco2e_per_kwh * GRAMS


def export(document: Report) -> Files:
    found = [(s, _whole(s)) for s in document.statements]
    wholes = [(s, each) for s, each in found if isinstance(each, Whole)]
    told = wholes or found
    if len(told) == 1:
        return {"model-card.md": _pieces(document, *told[0])}
    names = [s.subject.name for s, _ in told]
    raise InputError(
        f"a card is of one training, and there are {len(told)}: {', '.join(names[:3])}"
        + (" and others" if len(names) > 3 else ""),
        where="--to model-card",
        remedy="export one of them: --case names one",
    )


def _whole(s: Statement) -> Whole | str:
    """The run's energy and grid, or why there is none."""
    parts = _parts(s.measurements)
    if why := _not_of_all(s, parts):
        return why
    grid = next((f for f in s.factors if f.id == "site.grid_location"), None)
    if grid is None or grid.value is None or grid.unit != "kgco2e_per_j":
        return "its grid factor is not known"
    return Whole(s, parts, sum(m.energy_kwh or 0.0 for m in parts), grid, grid.value * KWH_J)


def _not_of_all(s: Statement, parts: list[Measurement]) -> str:
    """Why these meters are not of the whole run; empty where they are."""
    if any(warned.code == "ONE_HOST" for warned in s.warnings):
        return "one host of several was measured"
    if not parts:
        return "no meter tells the energy of the whole run"
    if unknown := [m.id for m in parts if not _is_whole(m)]:
        return f"{', '.join(unknown)}: not known over the whole time"
    cards, all_cards = sum(_class(m) in CARDS for m in parts), s.subject.accelerator_count
    if not cards:
        nodes = s.subject.nodes
        return "" if nodes in (None, 1.0) else f"a meter of 1 of {count(nodes)} nodes"
    if all_cards not in (None, 0, cards):
        return f"meters of {cards} of {count(all_cards)} accelerators"
    return ""


def _class(m: Measurement) -> str:
    """`gpu` of `gpu:0`."""
    return m.id.split(":", 1)[0]


def _parts(measurements: list[Measurement]) -> list[Measurement]:
    """The node itself, or those that add up to it, none inside another."""
    outer = [m for m in measurements if m.boundary == "node" and "." not in m.id]
    node = [m for m in outer if m.id == "node"]
    classes = {_class(m) for m in outer}
    if (node and _is_whole(node[0])) or not classes & {*CARDS, "cpu", "dram"}:
        return node
    modules_alone = classes & {*CARDS} == {"module"}
    taken = ("module",) if modules_alone else ("gpu", "cpu", "dram")
    return [m for m in outer if _class(m) in taken]


def _is_whole(m: Measurement) -> bool:
    return m.energy_kwh is not None and m.coverage is not None and m.coverage >= COVERED


def _pieces(document: Report, s: Statement, whole: Whole | str) -> Iterator[str]:
    who = s.subject
    where = ", ".join(dict.fromkeys(filter(None, (who.region or who.site, who.country))))
    gpus, nodes = who.accelerator, ""
    if who.accelerator_count:
        gpus = f"{count(who.accelerator_count)} x {gpus or 'GPU'}"
    if who.nodes and who.nodes != 1.0:
        nodes = f"{count(who.nodes)} nodes"
    hardware = ", ".join(filter(None, (gpus, nodes)))
    if isinstance(whole, Whole):
        fields = {
            "source": _source(document, whole),
            "training_type": who.tags.get("training_type"),
            "geographical_location": where,
            "hardware_used": hardware,
        }
        yield f"---\nco2_eq_emissions:\n  emissions: {yaml_number(whole.grams)}\n"
        yield "".join(f"  {key}: {quote_yaml(text)}\n" for key, text in fields.items() if text)
        yield "---\n\n"
        lines = _lines(whole)
    else:
        lines = _of_part(s, whole, hardware, where)
    yield "## Environmental impact\n\n"
    yield "".join(f"- {line}\n" for line in [*_head(s), *lines, MEMO])


def _source(document: Report, whole: Whole) -> str:
    s = whole.statement
    meters = ", ".join(sorted({m.instrument for m in whole.parts}))
    simulated = "SIMULATED METERS, no machine was measured; " if s.simulated else ""
    pue = f"PUE {s.boundary.pue!r}" if s.boundary.pue is not None else "no PUE"
    run = f"ckptcost {document.tool.version}, method {s.method_version}, run {s.subject.run_id}"
    factor = f"{whole.grid_kgco2e_per_kwh * GRAMS:.6g} gCO2e/kWh of {METHODS[s.grid_method]}"
    grid = f"location-based grid factor {factor} from {sources_of(whole.grid)}"
    return f"{simulated}{run}: {meters}; {pue}; {grid}"


def _head(s: Statement) -> Iterator[str]:
    if s.simulated:
        yield "**SIMULATED: no machine was measured for this.**"
    yield (
        f"Run: {plain(s.subject.name)} ({plain(s.subject.run_id)}), {s.kind}, method"
        f" {plain(s.method_version)}"
    )


def _of_part(s: Statement, why: str, hardware: str, where: str) -> Iterator[str]:
    """Where the whole is not known: why, and what checkpoints and failures add to it."""
    yield f"Hardware: {plain(hardware) or 'not known'}"
    yield f"Place: {plain(where) or 'not known'}"
    yield f"Energy and emissions of the whole run: not known ({plain(why)})"
    for what, (label, unit) in PART.items():
        total = getattr(s.totals, what)
        least = "at least " if total.excludes else ""
        said = "not known" if total.value is None else f"{least}{number(total.value)} {unit}"
        low, high = total.low, total.high
        ends = "" if low is None or high is None else f", {number(low)} to {number(high)}"
        yield f"Checkpoints and failures add, {label}: {said}{ends}"


def _lines(whole: Whole) -> Iterator[str]:
    s = whole.statement
    metered = (
        f"{number(whole.metered_kwh)} kWh metered by {plain(', '.join(m.id for m in whole.parts))}"
    )
    pue = (
        f", times a PUE of {number(s.boundary.pue)}"
        if s.boundary.pue is not None
        else ", without a PUE: nobody said one"
    )
    yield f"Energy of the whole run: {number(whole.kwh)} kWh ({metered}{pue})"
    kg = f"{number(whole.grams / GRAMS)} kgCO2e, of {METHODS[s.grid_method]}"
    yield f"Emissions of the whole run, location-based: {kg}; embodied carbon is not among them"
    yield from _added_lines(whole)


def _added_lines(whole: Whole) -> Iterator[str]:
    """What checkpoints and failures are of it, and what they need outside the nodes."""
    s = whole.statement
    lines = [(c, c.energy.value) for c in s.known("energy")]
    known = [kwh for c, kwh in lines if c.boundary == "node" and kwh is not None]
    if not known:
        yield "What checkpoints and failures add to it is not known"
        return
    added = sum(known) * (1.0 if s.boundary.pue_included_in_energy else whole.pue)
    of = f" ({share(added / whole.kwh)})" if whole.kwh else ""
    yield f"Of these, checkpoints and failures: {number(added)} kWh{of} at the nodes{_without(s)}"
    if beyond := sum(kwh or 0.0 for c, kwh in lines if c.boundary != "node"):
        yield (
            f"Outside the metered nodes: {number(beyond)} kWh more for checkpoints, in neither"
            " figure above"
        )


def _without(s: Statement) -> str:
    """Lines at the nodes of which nobody knows the energy."""
    unknown = [c for c in s.known("energy") if c.boundary == "node" and c.energy.value is None]
    return f", without {plain(', '.join(c.label for c in unknown))}: not known" if unknown else ""
