"""The inputs as the report tells them: factors with their sources, which figure rests on which, and
the assumptions among them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ckptcost.first.catalog.keys import meaning_of
from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.lines import tier_and_kind
from ckptcost.first.core.quantities import BY_ID
from ckptcost.first.scenario import Input

Part = dict[str, Any]
"""a piece of the document"""

_SAVING = (
    "checkpoint.*",
    "tier.*",
    "cluster.gpus",
    "cluster.gpus_per_node",
    "cluster.gpu_d2h",
    "cluster.node_nic",
    "policy.*",
    "run.work",
    "failures.*",
)


@lru_cache(maxsize=4096)
def factor_ids(line_id: str, field: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """Which inputs a figure of a line rests on."""
    tier, kind = tier_and_kind(line_id)
    wanted = [pattern.replace("tier.", f"{tier}.") for pattern in _SAVING]
    rests_on = BY_ID[field].rests_on
    if "site.pue" in rests_on:
        wanted += kind.watts
    left_out = set() if kind.watts else {"cluster.gpu_price"}
    wanted += [name for name in rests_on if name not in left_out]
    sections = tuple(name[:-1] for name in wanted if name.endswith("*"))
    single = set(wanted)
    return tuple(name for name in known if name in single or name.startswith(sections))


_SOURCE = ("title", "publisher", "url", "no_url", "version", "retrieved", "licence")


def sources_of(catalog: Catalog, said: str) -> list[Part]:
    found: list[Part] = []
    for name in filter(None, (part.strip() for part in said.split(";"))):
        entry = catalog.sources.get(name, {"title": name})
        found.append(
            {key: str(entry[key]) if key in entry else None for key in _SOURCE} | {"id": name}
        )
    return found


def plain_input(i: Input) -> Part:
    """What hashes of inputs are over."""
    f = i.figure
    return {
        "id": i.path,
        "value": None if f.value == float("inf") else f.value,
        "unit": i.unit,
        "low": f.low,
        "high": f.high,
        "origin": "default" if f.basis in ("", "assumed") else f.basis,
    }


def factor_of(i: Input, catalog: Catalog) -> Part:
    section, key = i.path.split(".")
    f = i.figure
    return plain_input(i) | {
        "name": meaning_of(section, key),
        "text": f.text,
        "set_by": i.origin,
        "boundary": f.boundary or None,
        "note": f.remark or None,
        "sources": sources_of(catalog, f.source),
    }


def assumptions_of(factors: list[Part]) -> list[Part]:
    assumed = [f for f in factors if f["origin"] == "default"]
    return [
        {
            "id": f"A{n}",
            "text": (
                f"{f['name']}: {f['text'] or f['value']}" + (f" ({f['note']})" if f["note"] else "")
            ),
            **{key: f[key] for key in ("value", "unit", "low", "high")},
            "sensitivity": None,
        }
        for n, f in enumerate(assumed, start=1)
    ]


def plain_factor(factor: Part) -> Part:
    return {key: factor[key] for key in ("id", "value", "unit", "low", "high", "origin")}
