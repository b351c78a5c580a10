"""Contracts for electricity, by site, from a TOML file of the user's: what the market-based factor
is made of."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any, NamedTuple

from ckptcost.catalog.files import toml_of
from ckptcost.catalog.grid_hours import unit_of
from ckptcost.catalog.schema import printable
from ckptcost.core.units import parse
from ckptcost.errors import InputError, UnknownName, brief

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
        for key in raw:
            if key != "site":
                raise UnknownName("key", str(key), ("site",))
        tables = raw.get("site")
        if (
            not isinstance(tables, list)
            or not tables
            or not all(isinstance(each, dict) for each in tables)
        ):
            raise InputError("holds no [[site]] tables", remedy=_HOW)
        found: dict[str, SiteContracts] = {}
        for n, table in enumerate(tables, start=1):
            site = _site(table, f"site.{n}")
            if site.site in found:
                raise InputError(f"two sites are called {brief(site.site)}")
            found[site.site] = site
        return found
    except InputError as error:
        raise error.at(path) from None


def _site(raw: dict[str, Any], key: str) -> SiteContracts:
    try:
        _only(raw, _OF_SITE, "key of a site")
        if not isinstance(raw.get("id"), str) or not raw["id"].strip():
            raise InputError("is missing", key="id")
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
        return SiteContracts(raw["id"], residual, bought)
    except InputError as error:
        error.key = ".".join(filter(None, (key, error.key)))
        raise


def _contract(raw: Any, key: str) -> Bought:
    try:
        if not isinstance(raw, dict):
            raise InputError("is no table", remedy=_HOW)
        _only(raw, _OF_CONTRACT, "key of a contract")
        for needed in ("name", "instrument", "share", "factor"):
            if needed not in raw:
                raise InputError("is missing", key=needed)
        share = parse(raw["share"], "")
        if not 0 < share <= 1:
            raise InputError(
                f"{brief(raw['share'])} is no share", key="share", remedy='e.g. "60 %"'
            )
        begin_s, end_s = (_moment(raw.get(name), name) for name in ("from", "until"))
        begin_s, end_s = (
            (-math.inf if begin_s is None else begin_s),
            (math.inf if end_s is None else end_s),
        )
        if not begin_s < end_s:
            raise InputError("ends before it begins", key="until")
        words = [printable(str(raw[name])) for name in ("name", "instrument")]
        return Bought(
            words[0],
            words[1],
            share,
            _factor(raw["factor"], "factor"),
            begin_s,
            end_s,
            printable(str(raw.get("source", ""))),
        )
    except InputError as error:
        error.key = ".".join(filter(None, (key, error.key)))
        raise


def _only(raw: dict[str, Any], known: tuple[str, ...], what: str) -> None:
    for name in raw:
        if name not in known:
            raise UnknownName(what, str(name), known)


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


def _moment(said: Any, key: str) -> float | None:
    """Midnight UTC of a day, or an instant; `until` is the first moment in which it no longer
    holds."""
    if said is None:
        return None
    try:
        when = datetime.fromisoformat(said) if isinstance(said, str) else said
        if isinstance(when, date) and not isinstance(when, datetime):
            when = datetime.combine(when, time())
        if not isinstance(when, datetime):
            raise ValueError
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except ValueError:
        raise InputError(f"{brief(said)} is no date", key=key, remedy="e.g. 2026-01-01") from None
