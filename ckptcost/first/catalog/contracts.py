"""Contracts for electricity, by site, from a TOML file of the user's: what the market-based factor
is made of."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any, NamedTuple

from ckptcost.first.catalog.files import require_known, require_text, tables_in, toml_of
from ckptcost.first.catalog.grid_hours import unit_of
from ckptcost.first.catalog.schema import printable
from ckptcost.first.core.units import parse
from ckptcost.first.errors import InputError, brief

_HOW = "docs/howto/grid-factors.md shows one"
_OF_SITE = ("id", "residual", "contract", "note")
_OF_CONTRACT = ("name", "instrument", "share", "factor", "from", "until", "source")


class Bought(NamedTuple):
    """One contract: a share of the site's electricity at a factor of its own, for a time."""

    name: str
    instrument: str
    share: float
    kg_per_kwh: float
    begin_s: float
    """Unix time; minus infinity where nothing is said"""
    end_s: float
    source: str


class SiteContracts(NamedTuple):
    site: str
    residual_kg_per_kwh: float
    """of what no contract covers; NaN where it is not known"""
    bought: tuple[Bought, ...]


def read_contracts(path: str) -> dict[str, SiteContracts]:
    """By site."""
    raw = toml_of(Path(path), path, start=_HOW)
    try:
        found: dict[str, SiteContracts] = {}
        for n, table in enumerate(tables_in(raw, "site", _HOW), start=1):
            site = _site(table, f"site.{n}")
            if site.site in found:
                raise InputError(f"two sites are called {brief(site.site)}")
            found[site.site] = site
        return found
    except InputError as error:
        raise error.at(path) from None


def _site(raw: dict[str, Any], key: str) -> SiteContracts:
    try:
        require_known(raw, _OF_SITE, "key of a site")
        site = require_text(raw, "id")
        contracts = raw.get("contract", [])
        if not isinstance(contracts, list):
            raise InputError("is no table", key="contract", remedy=_HOW)
        bought = tuple(
            _contract(each, f"contract.{n}") for n, each in enumerate(contracts, start=1)
        )
        for at_s in {each.begin_s for each in bought}:
            if sum(each.share for each in bought if each.begin_s <= at_s < each.end_s) > 1.0 + 1e-9:
                raise InputError("the shares of the contracts add up to more than all", key="share")
        residual = _factor(raw["residual"], "residual") if "residual" in raw else math.nan
        return SiteContracts(site, residual, bought)
    except InputError as error:
        error.key = ".".join(filter(None, (key, error.key)))
        raise


def _contract(raw: Any, key: str) -> Bought:
    try:
        if not isinstance(raw, dict):
            raise InputError("is no table", remedy=_HOW)
        require_known(raw, _OF_CONTRACT, "key of a contract")
        for needed in ("name", "instrument", "share", "factor"):
            if needed not in raw:
                raise InputError("is missing", key=needed)
        share = parse(raw["share"], "")
        if not 0 < share <= 1:
            raise InputError(
                f"{brief(raw['share'])} is no share", key="share", remedy='e.g. "60 %"'
            )
        begin_s = _moment(raw.get("from"), "from", -math.inf)
        end_s = _moment(raw.get("until"), "until", math.inf)
        if not begin_s < end_s:
            raise InputError("ends before it begins", key="until")
        return Bought(
            printable(str(raw["name"])),
            printable(str(raw["instrument"])),
            share,
            _factor(raw["factor"], "factor"),
            begin_s,
            end_s,
            printable(str(raw.get("source", ""))),
        )
    except InputError as error:
        error.key = ".".join(filter(None, (key, error.key)))
        raise


def _factor(said: Any, key: str) -> float:
    """A text such as "0.41 kg/kWh", as kgCO2e per kWh."""
    number, _, unit = str(said).strip().partition(" ")
    scale = unit_of(unit)
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if scale is None or not 0 <= value * scale <= 5:
        raise InputError(
            f"{brief(said)} is no emission factor",
            key=key,
            remedy='e.g. "0.41 kg/kWh" or "35 g/kWh"',
        )
    return value * scale


def _moment(said: Any, key: str, unsaid: float) -> float:
    """Midnight UTC of a day, or an instant; `until` is the first moment in which it no longer
    holds."""
    if said is None:
        return unsaid
    try:
        when = datetime.fromisoformat(said) if isinstance(said, str) else said
        if isinstance(when, date) and not isinstance(when, datetime):
            when = datetime.combine(when, time())
        if not isinstance(when, datetime):
            raise ValueError
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except ValueError:
        raise InputError(f"{brief(said)} is no date", key=key, remedy="e.g. 2026-01-01") from None
