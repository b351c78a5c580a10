"""What a question gives, before anybody chose a format: the command line prints it as it is, Python
gets the document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.report.document import Report
    from ckptcost.first.report.study import Study

Files = Sequence[tuple[str, bytes]]
"""the user's own files, by name"""


class StudyResult(NamedTuple):
    study: Study
    catalog: Catalog
    files: Files = ()
    lacking: Sequence[str] = ()
    """what was needed and is not measured"""
    interrupted: bool = False

    def document(self, command: Sequence[str] = ()) -> Report:
        from ckptcost.first.report.build import build

        return build(self.study, self.catalog, command, self.files)
