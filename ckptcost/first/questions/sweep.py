"""The same over a grid of tiers, counts and any other input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ckptcost.first.questions.parameters import Changes, PathText, scenario_layers, texts

if TYPE_CHECKING:
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.jobs.sweep import Sweep


def grid(
    over: str | Sequence[str],
    scenario: PathText | None = None,
    *,
    interval: str | None = None,
    changes: Changes = (),
    catalog: Catalog | None = None,
) -> Sweep:
    """The sweep in chunks of arrays, over axes such as "tier=a,b" and "saves=10:200:10"."""
    from ckptcost.first.axes import over_of
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.jobs.sweep import sweep

    catalog = catalog or Catalog()
    overs = [over_of(text) for text in texts(over)]
    return sweep(catalog, scenario_layers(catalog, scenario, interval, changes), overs)


def sweep(
    over: str | Sequence[str],
    scenario: PathText | None = None,
    *,
    interval: str | None = None,
    changes: Changes = (),
    catalog: Catalog | None = None,
) -> Any:
    """A tidy pandas frame over the grid of axes such as "tier=a,b" and "saves=10:200:10"."""
    from ckptcost.first.report.frame import frame_of_pieces

    found = grid(over, scenario, interval=interval, changes=changes, catalog=catalog)
    return frame_of_pieces(found.pieces)
