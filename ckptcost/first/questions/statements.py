"""Documents and recorded runs as statements: what exports, pages and differences are made of."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ckptcost.first.errors import Argument, InputError
from ckptcost.first.questions.parameters import PathText

if TYPE_CHECKING:
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.report.document import Report
    from ckptcost.first.report.statement import Statement
    from ckptcost.first.report.statements.reading import Placing
    from ckptcost.first.runs.store import Found
    from ckptcost.first.scenario import Resolved


def statement_document(
    sources: Sequence[str],
    placing: Placing | None = None,
    within: PathText | None = None,
    scenario: str | None = None,
    settings: Sequence[str] = (),
    site: str = "",
    command: Sequence[str] = (),
    catalog: Catalog | None = None,
) -> Report:
    """Documents and recorded runs as one document of statements, placed and dated as is said. Site
    and prices are said of runs only."""
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.report.statements import reading

    said, catalog = placing or reading.Placing(), catalog or Catalog()
    factors = reading.factors_of(said)
    asked = bool(scenario or settings or site)
    found = []
    for source in sources:
        if reading.is_document(source):
            if asked:
                which = "site" if site else "scenario" if scenario else "changes"
                why = "is said of recorded runs; a document has its own"
                raise InputError(why, where=Argument(which))
            told = reading.statements_of(source, said.case, said.summed)
        else:
            told = _of_run(
                source,
                said.host,
                within,
                catalog,
                standing(catalog, scenario, settings, site) if asked else None,
                is_priced(scenario, settings),
                reading.width_of(factors),
            )
        found += reading.place_statements(told, said, factors)
    return reading.gather_statements(found, command, factors.inputs)


def is_priced(scenario: object, settings: Sequence[str]) -> bool:
    """Whether GPU time has a price that was said, not only a site."""
    return bool(scenario) or any(each.startswith("cluster.") for each in settings)


def _of_run(
    source: str,
    host: str,
    within: PathText | None,
    catalog: Catalog,
    resolved: Resolved | None,
    priced: bool,
    width_s: float,
) -> list[Statement]:
    from ckptcost.first.report.statements import reading

    if Path(source).suffix == ".json":
        raise InputError(
            "is no JSON document" if Path(source).exists() else "there is no such file",
            where=source,
        )
    kept = find_run(source, within)
    return reading.of_run(kept.path, kept.run, host, catalog, resolved, priced, width_s)


def find_run(name: str, within: PathText | None = None) -> Found:
    """A recorded run by folder, file, id or "last"."""
    from ckptcost.first.runs import store

    return store.find_run(name, folder_of_runs(within))


def folder_of_runs(within: PathText | None) -> Path | None:
    """A folder that is named and there; None: where runs are kept."""
    if within is None:
        return None
    if not os.path.isdir(within):  # False, too, where nobody may look
        raise InputError(
            "no such folder",
            where=Argument("directory", within),
            remedy="name one that holds runs",
        )
    return Path(within)


def standing(
    catalog: Catalog, scenario: str | None, settings: Sequence[str], site: str
) -> Resolved:
    """A scenario for its site and prices. What is measured has no line for keeping bytes, so a
    storage price that is only assumed cannot be the one that contains the storage's electricity: it
    is left out."""
    from ckptcost.first.core.domain import UNKNOWN
    from ckptcost.first.jobs.model import one_of
    from ckptcost.first.layers import DEFAULT_SCENARIO, layers_of, set_layer
    from ckptcost.first.scenario import DEFAULTS

    layers = layers_of(catalog, scenario or DEFAULT_SCENARIO)
    said = [*([f"site.id={site}"] if site else []), *settings]
    found = one_of(catalog, [*layers, set_layer(said, None)] if said else layers)
    price = next((each for each in found.inputs if each.path == "tier.storage_price"), None)
    if price is None or price.origin != DEFAULTS:
        return found
    s = found.scenario
    return found._replace(scenario=replace(s, tier=replace(s.tier, usd_per_byte_s=UNKNOWN)))
