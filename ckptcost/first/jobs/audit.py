"""The audit: a sheet of claims, its verdicts, what follows, and the readings that would make it
hold."""

from __future__ import annotations

from typing import NamedTuple

from ckptcost.first.catalog import claims
from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.audit import (
    CONSISTENT,
    INCONSISTENT,
    NOT_DERIVABLE,
    Follow,
    Sheet,
    Verdict,
)
from ckptcost.first.core.audit import audit as audited
from ckptcost.first.core.readings import OtherReading, readings


class Audited(NamedTuple):
    """A sheet with everything the audit found."""

    sheet: Sheet
    verdicts: list[Verdict]
    follows: list[Follow]
    readings: list[OtherReading]

    def count(self, word: str) -> int:
        return sum(verdict.word == word for verdict in self.verdicts)

    def counts(self) -> dict[str, int]:
        """How many of each verdict."""
        return {word: self.count(word) for word in (CONSISTENT, INCONSISTENT, NOT_DERIVABLE)}


def audit(catalog: Catalog, name: str) -> tuple[Audited, list[tuple[str, bytes]]]:
    """The audit of a shipped sheet or of a file, and the user's file itself."""
    sheet, read = claims.read(catalog, name)
    return audit_of(sheet), read


def audit_of(sheet: Sheet) -> Audited:
    """The audit of a sheet."""
    result = audited(sheet)
    return Audited(sheet, result.verdicts, result.follows, readings(sheet, result))


def shipped_audits(catalog: Catalog) -> list[Audited]:
    """The audit of every sheet in the catalogue."""
    return [audit(catalog, name)[0] for name in catalog.ids("claim")]
