"""What a faster tier may cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ckptcost.first.errors import Argument, InputError
from ckptcost.first.questions.parameters import Changes, PathText, scenario_layers, text_of
from ckptcost.first.questions.results import StudyResult

if TYPE_CHECKING:
    from ckptcost.first.catalog.store import Catalog


def price(
    scenario: PathText | None = None,
    *,
    tier: str | None = None,
    against: str | None = None,
    capex: str | None = None,
    keep_interval: bool = False,
    interval: str | None = None,
    changes: Changes = (),
    catalog: Catalog | None = None,
) -> StudyResult:
    """What the faster tier `against` may cost so that it pays; with `capex`, e.g. "500000 USD",
    when a purchase has paid."""
    from ckptcost.first.catalog.schema import flag_value
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.jobs.model import one_of
    from ckptcost.first.jobs.price import breakeven, side_of
    from ckptcost.first.layers import files_of
    from ckptcost.first.report.studies.price import study_of

    catalog = catalog or Catalog()
    layers = scenario_layers(catalog, scenario, interval, changes)
    if against is None:
        raise InputError(
            "names no faster tier",
            where=Argument("against"),
            remedy="e.g. --tier nas-hdd --against flash-shared",
        )
    capital_usd = None
    if capex is not None:
        capital_usd = flag_value(Argument("capex"), text_of("capex", capex), "usd")
        if not capital_usd > 0:
            raise InputError(
                "a purchase costs something", where=Argument("capex"), remedy='e.g. "500000 USD"'
            )
    slow, fast = (side_of(one_of(catalog, layers, each), keep_interval) for each in (tier, against))
    return StudyResult(study_of(breakeven(slow, fast, capital_usd)), catalog, files_of(layers))
