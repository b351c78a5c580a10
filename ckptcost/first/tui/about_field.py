"""What is known of one field: its value and range, what that rests on, who said it, and what may be
written there."""

from __future__ import annotations

from ckptcost.first.catalog.keys import CADENCES, KEYS, LIMITS, WORDS, meaning_of, unit_of
from ckptcost.first.catalog.store import Catalog, Entity
from ckptcost.first.catalog.template import example_of
from ckptcost.first.errors import CkptcostError
from ckptcost.first.present.amounts import DASH, count, quantities, quantity
from ckptcost.first.present.grid import Grid, GridHead, Row, Tone
from ckptcost.first.present.words import unknown_text
from ckptcost.first.report.factors import sources_of
from ckptcost.first.scenario import Input, Resolved
from ckptcost.first.tui.desk import OWN, Desk
from ckptcost.first.tui.fields import COUNTED, KINDS, TIER, choices_of, text_of

Lines = tuple[tuple[str, Tone], ...]
_BASES = {
    "measured": "measured",
    "published": "published",
    "derived": "derived from other figures",
    "vendor": "said by a vendor",
    "user": "yours",
    "assumed": "assumed",
    "": "assumed",
}
_WORDS = {
    "checkpoint.model": "the model whose state is saved, an entry of the catalogue",
    TIER: "the storage that is looked at; others stay beside it in the table",
    "second_tier.id": "where every n-th save also goes",
    "cluster.id": "the machines of the job, an entry of the catalogue",
    "cluster.accelerator": "the GPU in the nodes, an entry of the catalogue",
    "cluster.price_includes_electricity": (
        "whether the price of a GPU-hour contains its power and cooling"
    ),
    "policy.mode": (
        "sync: training waits until a save is written; async: it goes on while a copy drains"
    ),
    "policy.when_busy": "a save is due while another drains: wait for it, or leave this one out",
    "policy.optimal": "save at the interval with the least time, energy, dollars or carbon",
    "policy.pipelined": "copying, compressing and writing overlap",
    "site.id": "where the machines stand: PUE, grid and prices, an entry of the catalogue",
    "site.grid": "whose electricity is used, an entry of the catalogue",
    "survives": "what the tier's copy survives",
    "boundary": "what the tier's energy figures include",
    "in_memory": "copies are held in memory, so they must fit",
    "billed_on": "whether the storage price is paid for the bytes held or for the capacity",
}
"""words of a scenario, which have no field of the core that would say what they mean"""


def about_field(desk: Desk, path: str, resolved: Resolved | None = None) -> Lines:
    """Lines on one input of the tier that is looked at."""
    section, _, key = path.partition(".")
    resolved = resolved if resolved is not None else desk.resolved()
    if key in WORDS[section]:
        return _of_word(desk, resolved, path)
    lines: list[tuple[str, Tone]] = [
        (_sentence(meaning_of(section, key)), ""),
        *_of_figure(desk, resolved, path),
    ]
    if path in COUNTED and any(i.path == "checkpoint.size" for i in resolved.inputs):
        lines.append(("Not used: checkpoint.size is given.", "warn"))
    if section == "tier" and path in desk.edits and len(desk.tiers_shown()) > 1:
        lines.append(("What you write here holds for every tier in the table.", "warn"))
    return (
        *lines,
        (f"{_allowed(key, unit_of(section, key))}, e.g. {example_of(key).strip(chr(34))}", "muted"),
        (path, "muted"),
    )


def _of_figure(desk: Desk, resolved: Resolved, path: str) -> list[tuple[str, Tone]]:
    """Its value and who said it, or why there is none."""
    found = next((i for i in resolved.inputs if i.path == path), None)
    if found is not None:
        return _of_input(desk, found)
    if (why := resolved.unknown.get(path)) is not None:
        return [(unknown_text(path, why), "warn")]
    return [(_absent(resolved, path), "muted")]


def _absent(resolved: Resolved, path: str) -> str:
    section, _, key = path.partition(".")
    if section == "policy" and key in CADENCES:
        return (
            f"Follows from policy.{resolved.words['policy.cadence']}; give one of"
            f" {', '.join(CADENCES)} and optimal."
        )
    if path == "failures.mtbf":
        return "Follows from the rates and the job's size; given, it stands for all of them."
    return (
        "Counted: parameters x bytes per parameter."
        if path == "checkpoint.size"
        else "Nobody gives it."
    )


def _of_input(desk: Desk, found: Input) -> list[tuple[str, Tone]]:
    f = found.figure
    lines: list[tuple[str, Tone]] = [(figure_text(found), "")]
    if f.remark:
        lines.append((_sentence(f.remark), ""))
    lines += source_lines(desk, [f.source])
    lines.append(
        (f"Said by: {'you, here' if found.path in desk.edits else _who(found.origin)}", "muted")
    )
    return lines


def figure_text(found: Input) -> str:
    """A figure with its range, and what it rests on."""
    f = found.figure
    ranged = quantities(f.low, f.high, found.unit)
    return f"{text_of(found)}{f', range {ranged}' if ranged else ''}: {_BASES[f.basis]}"


def source_lines(desk: Desk, said: list[str], most: int = 3) -> list[tuple[str, Tone]]:
    titles = list(
        dict.fromkeys(
            str(source["title"]) for each in said for source in sources_of(desk.catalog, each)
        )
    )
    more = f"; and {len(titles) - most} more" if len(titles) > most else ""
    return [(f"Source: {'; '.join(titles[:most])}{more}", "muted")] if titles else []


def _who(origin: str) -> str:
    return {"models/defaults.toml": "the defaults", "defaults": "the defaults"}.get(origin, origin)


def _of_word(desk: Desk, resolved: Resolved, path: str) -> Lines:
    key = path.partition(".")[2]
    lines: list[tuple[str, Tone]] = [(_sentence(_WORDS.get(path) or _WORDS.get(key, key)), "")]
    said = desk.tier_chosen() if path == TIER else resolved.words.get(path)
    if path in KINDS and said and said in desk.catalog.ids(KINDS[path]):
        lines += _of_entity(desk, desk.catalog.get(KINDS[path], str(said)))
    if path in desk.edits:
        lines.append(("Said by: you, here", "muted"))
    choices = choices_of(desk.catalog, path)
    listed = (
        f"One of {', '.join(choices)}"
        if len(choices) < 10
        else f"{len(choices)} to choose from: Enter lists them"
    )
    return (*lines, (listed, "muted"), (path, "muted"))


def _of_entity(desk: Desk, entity: Entity) -> list[tuple[str, Tone]]:
    texts = (entity.name, _sentence(entity.note) if entity.note else "")
    sources = source_lines(desk, [f.source for f in entity.figures.values()])
    return [*((text, "") for text in texts if text), *sources]


def _allowed(key: str, unit: str) -> str:
    """What a figure must be, as the reader of files says it."""
    least, inclusive, most = LIMITS.get(key, (0.0, True, 1e30))
    bound = (quantity(least, unit) if unit and least else f"{least:g}") + (
        " or more" if inclusive else ""
    )
    said = bound if inclusive else f"more than {bound}"
    return f"Allowed: {said}" + (f", at most {count(most)}" if most < 1e9 and not unit else "")


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."


_COLUMNS = {
    "checkpoint": ("params", "size"),
    "tier": ("write", "node_write", "write_energy", "storage_price"),
    "cluster": ("gpus", "node_nic"),
    "site": ("pue", "tariff"),
    "accelerator": ("gpu_tdp", "gpu_price"),
    "grid": ("grid_location",),
}
"""the figures by which entries of a kind are told apart"""
_HEADS = {
    "params": "parameters",
    "size": "size",
    "write": "write",
    "node_write": "a node",
    "write_energy": "energy",
    "storage_price": "price",
    "gpus": "GPUs",
    "node_nic": "node link",
    "pue": "PUE",
    "tariff": "tariff",
    "gpu_tdp": "TDP",
    "gpu_price": "price",
    "grid_location": "carbon",
}


def entries(catalog: Catalog, path: str, marked: tuple[str, ...] = ()) -> Grid:
    """What a field that names a catalogue entry can be set to, or the words of one that has a
    few."""
    if path not in KINDS:
        return Grid(
            (GridHead("id", "choice", left=True),),
            [Row(each, (each,)) for each in choices_of(catalog, path)],
        )
    kind = KINDS[path]
    section = {"accelerator": "cluster", "grid": "site"}.get(kind, kind)
    keys = [key for key in _COLUMNS[kind] if key in KEYS[section]]
    heads = (
        GridHead("id", "id", left=True),
        GridHead("name", "name", left=True, rank=1),
        *(GridHead(key, _HEADS[key], rank=2 + place) for place, key in enumerate(keys)),
        GridHead("kind", "kind", left=True, rank=9),
    )
    return Grid(
        heads,
        [_entry(catalog, kind, section, keys, name, name in marked) for name in catalog.ids(kind)],
    )


def tier_entries(desk: Desk) -> Grid:
    """Every tier of the catalogue, the user's among them; those side by side are ticked."""
    shown = desk.tiers_shown()
    grid = entries(desk.catalog, TIER, shown)
    own = (OWN, "the scenario's own", *[DASH] * (len(grid.heads) - 2))
    rows = [Row(OWN, own, (*own[:2], *[None] * (len(own) - 2)), marked=True)] if "" in shown else []
    return grid._replace(rows=[*rows, *grid.rows], title="Tiers side by side")


def _entry(
    catalog: Catalog, kind: str, section: str, keys: list[str], name: str, marked: bool
) -> Row:
    try:
        entity = catalog.get(kind, name)
    except CkptcostError as error:
        rest = len(keys) + 1
        return Row(
            name, (name, str(error), *[DASH] * rest), (name, str(error), *[None] * rest), "bad"
        )
    values = [entity.figures[key].value if key in entity.figures else None for key in keys]
    cells = [_cell(value, unit_of(section, key)) for key, value in zip(keys, values, strict=True)]
    return Row(
        name,
        (name, entity.name, *cells, entity.label or "-"),
        (name, entity.name, *values, entity.label),
        marked=marked,
    )


def _cell(value: float | None, unit: str) -> str:
    return count(value) if not unit else quantity(value, unit)
