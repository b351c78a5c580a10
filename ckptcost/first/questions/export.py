"""The same for other software."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ckptcost.first.questions.parameters import Changes, PathText, paths, settings_of

if TYPE_CHECKING:
    from ckptcost.first.catalog.store import Catalog


def export(
    sources: PathText | Sequence[PathText],
    to: str,
    *,
    case: str = "",
    start: str = "",
    grid: str = "",
    grid_column: str = "",
    grid_tz: str = "",
    grid_unit: str = "",
    contracts: str = "",
    labels: Mapping[str, str] | None = None,
    host: str = "",
    site: str = "",
    scenario: PathText | None = None,
    changes: Changes = (),
    directory: PathText | None = None,
    catalog: Catalog | None = None,
) -> dict[str, str | bytes]:
    """The files of an export, by name: of JSON documents or recorded runs, in a format of `ckptcost
    export --list`."""
    from ckptcost.first.exports.formats import exported
    from ckptcost.first.questions.statements import statement_document
    from ckptcost.first.report.statements.reading import Placing

    said = tuple(f"{name}={text}" for name, text in (labels or {}).items())
    placing = Placing(case, start, grid, grid_column, grid_tz, grid_unit, contracts, said, host)
    document = statement_document(
        paths(sources),
        placing,
        directory,
        None if scenario is None else os.fspath(scenario),
        settings_of(changes),
        site,
        catalog=catalog,
    )
    return {
        name: each if isinstance(each, bytes) else "".join(each)
        for name, each in exported(document, to).items()
    }
