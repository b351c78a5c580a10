"""The statement: the part of a document that says what checkpoints cost, line by line, dated and
placed where that is known.

One shape for what was modelled, simulated, compared and measured, and the one thing that every
export is a function of. Null = unknown, 0 = known to be zero. Sums are sums: of components in
`totals`, and of rows of `series` in each dated component.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from ckptcost.first.catalog.keys import GRID_METHODS
from ckptcost.first.core.channels import LONGEST_RUN_S
from ckptcost.first.core.quantities import IN_DOCUMENTS
from ckptcost.first.errors import brief
from ckptcost.first.report.parts import (
    Assumption,
    Basis,
    Component,
    DocumentPart,
    Excluded,
    Factor,
    FunctionalUnit,
    OneSave,
    PowerStep,
    Quantity,
    RunTotals,
    Schedule,
    Totals,
    Uncertainty,
    Warned,
)

QUANTITIES = tuple(q.id for q in IN_DOCUMENTS)
"""of a component and of the totals, in this order everywhere"""
SERIES_OF = {
    "energy": "energy_kwh",
    "emissions_location": "emissions_location_kgco2e",
    "emissions_market": "emissions_market_kgco2e",
    "embodied": "embodied_kgco2e",
    "gpu_time_lost": "gpu_hours",
    "cost": "cost_usd",
    "water": "water_l",
}
"""their columns of the series"""


class Subject(DocumentPart):
    """What it was, where, and for whom; null where nobody said."""

    run_id: str = Field(description="the same for every export of one statement")
    name: str
    organisation: str | None = None
    team: str | None = None
    checkpoint: str | None = None
    tier: str | None = None
    cluster: str | None = None
    framework: str | None = None
    parameters: float | None = None
    tokens: float | None = Field(default=None, description="training tokens, gross")
    accelerator: str | None = None
    accelerator_count: float | None = None
    nodes: float | None = None
    cpu_model: str | None = None
    cpu_count: float | None = None
    ram_gb: float | None = None
    os: str | None = None
    python: str | None = None
    site: str | None = None
    site_id: str | None = None
    grid: str | None = None
    grid_zone: str | None = Field(default=None, description="id of the grid whose factors are used")
    country: str | None = None
    country_iso3: str | None = None
    region: str | None = None
    latitude: float | None = None
    longitude: float | None = None
    cloud_provider: str | None = None
    cloud_region: str | None = None
    tags: dict[str, str] = Field(default={})


class Boundary(DocumentPart):
    included: list[str]
    excluded: list[Excluded]
    pue: float | None = Field(description="null: energies are the machine's own, as metered")
    pue_included_in_energy: bool
    embodied_included: Literal[False] = Field(
        description="embodied carbon is a figure of its own, in no emissions total"
    )
    counterfactual: str
    inventory_treatment: Literal["memo_item"] = Field(
        description=(
            "these kWh already sit in the facility's meter: do not add them to an inventory"
        ),
    )


class Series(DocumentPart):
    """Rows by time and component, as columns of equal length; UTC. Only components that any
    quantity is known of, and not zero."""

    width_s: float = Field(
        description=(
            "of a whole row; rows begin at whole multiples of it, the first and last may be shorter"
        )
    )
    start: list[str]
    duration_s: list[float]
    component: list[str]
    energy_kwh: list[float | None]
    gpu_hours: list[float | None]
    cost_usd: list[float | None]
    checkpoints: list[float] = Field(
        description="saves of that time, on the rows of one component only: the column adds up"
    )
    grid_kgco2e_per_kwh: list[float | None] = Field(description="location-based, of that time")
    market_kgco2e_per_kwh: list[float | None]
    emissions_location_kgco2e: list[float | None]
    emissions_market_kgco2e: list[float | None]
    embodied_kgco2e: list[float | None]
    water_l: list[float | None]

    @field_validator("start")
    @classmethod
    def _instants(cls, start: list[str]) -> list[str]:
        for text in start:
            utc(text)
        return start

    @field_validator("duration_s")
    @classmethod
    def _lengths(cls, duration_s: list[float]) -> list[float]:
        """So that rows can be counted in whole milliseconds."""
        if odd := next((each for each in duration_s if not 0 <= each < LONGEST_RUN_S), None):
            raise ValueError(f"a row of {odd:g} s")
        return duration_s

    @model_validator(mode="after")
    def _equally_long(self) -> Series:
        rows = len(self.start)
        odd = next((name for name in COLUMNS if len(getattr(self, name)) != rows), None)
        if odd is not None:
            raise ValueError(f"{odd} has {len(getattr(self, odd))} rows, start has {rows}")
        return self

    @model_validator(mode="after")
    def _sums_finite(self) -> Series:
        for name in AMOUNTS_OF_TIME:
            known = [*filter(None, getattr(self, name))]  # quick: there may be a million
            if known and (max(known) > MOST_AMOUNT or min(known) < -MOST_AMOUNT):
                raise ValueError(f"a row of {name} is more than {MOST_AMOUNT:g}")
        return self


COLUMNS = tuple(Series.model_fields)[1:]
AMOUNTS_OF_TIME = tuple(name for name in COLUMNS if name not in ("start", "component"))
MOST_AMOUNT = 1e200
"""no machine uses more; sums of what is beyond may not be finite"""


class Measurement(DocumentPart):
    id: str = Field(description="domain, such as gpu:0")
    instrument: str
    scope: str
    boundary: str
    basis: Basis
    tick_s: float | None
    coverage: float | None = Field(description="share of the time that is known")
    energy_kwh: float | None = Field(description="over the whole time, training included")
    role: Literal["part", "whole"] = Field(
        default="part", description="parts add up; a whole contains them and is never added to them"
    )


class Contract(DocumentPart):
    """Electricity bought for a site: part of its market-based factor."""

    name: str
    instrument: str
    share: float
    kgco2e_per_kwh: float
    valid_from: str | None = None
    valid_until: str | None = None
    source: str | None = None


class Statement(DocumentPart):
    id: str
    kind: Literal["measured", "modelled", "mixed"]
    how: str = Field(description="in words: a closed form, so many simulated runs, a recorded run")
    simulated: bool = Field(default=False, description="true where meters were simulated")
    currency: Literal["USD"] = "USD"
    method_version: str
    period_start: str | None = Field(description="null: a plan has no dates")
    period_end: str | None
    length_s: float | None = Field(
        description="of the run; period_end less period_start where they are known"
    )
    subject: Subject
    boundary: Boundary
    totals: RunTotals = Field(description="the marginal ledger")
    allocated: Totals | None = Field(
        description="share of what stands there anyway; never added to totals"
    )
    components: list[Component] = Field(description="every line of both ledgers")
    functional_units: list[FunctionalUnit]
    series: Series | None
    schedule: Schedule | None = Field(
        default=None, description="of a closed form: when saves happen and what they do to the run"
    )
    power_step: PowerStep | None = None
    one_save: OneSave | None = Field(
        default=None, description="of a closed form: one completed save, no failures"
    )
    factors: list[Factor]
    rests: list[list[str]] = Field(
        default=[], description="ids of factors, each list once: figures point at theirs by number"
    )
    choices: dict[str, Any] = Field(
        default={},
        description=(
            "what was chosen that is no number: ids of entries, mode, whether a price holds"
            " electricity"
        ),
    )
    contracts: list[Contract] = Field(default=[])
    assumptions: list[Assumption]
    measurements: list[Measurement]
    uncertainty: str = Field(description="what low and high are")
    drawn: Uncertainty | None = Field(
        default=None, description="where low and high come from draws: how many, and of what"
    )
    warnings: list[Warned]

    @property
    def grid_method(self) -> str:
        """What the grid's factor counts: combustion, life-cycle, or unknown."""
        said = str(self.choices.get("site.grid_method"))
        return said if said in GRID_METHODS else "unknown"

    @field_validator("rests")
    @classmethod
    def _rests_once(cls, rests: list[list[str]]) -> list[list[str]]:
        """Whoever adds a list finds the others by what they hold."""
        first: dict[tuple[str, ...], int] = {}
        for at, names in enumerate(rests):
            if (same := first.setdefault(tuple(names), at)) != at:
                raise ValueError(f"list {at} of factors is list {same} again")
        return rests

    @field_validator("period_start", "period_end")
    @classmethod
    def _instant(cls, told: str | None) -> str | None:
        if told is not None:
            utc(told)
        return told

    @model_validator(mode="after")
    def _period_as_long(self) -> Statement:
        if self.period_start is None or self.period_end is None:
            return self
        period_s = (utc(self.period_end) - utc(self.period_start)).total_seconds()
        if not 0 <= period_s < LONGEST_RUN_S:
            raise ValueError(f"a period of {period_s:,.0f} s")
        if self.length_s is not None and abs(period_s - self.length_s) > 1.0:
            raise ValueError(f"a period of {period_s:,.0f} s, of a length of {self.length_s:g} s")
        return self

    @model_validator(mode="after")
    def _lines_there(self) -> Statement:
        known = {c.id for c in self.components}
        rows = [] if self.series is None else self.series.component
        odd = next((name for name in rows if name not in known), None)
        if odd is not None:
            raise ValueError(f"its series has rows of {brief(odd)}, which is no component")
        return self

    @model_validator(mode="after")
    def _rests_there(self) -> Statement:
        sums = [self.totals, *filter(None, (self.allocated,))]
        lines = [*self.components, *sums]
        if self.one_save is not None:
            lines += [self.one_save.totals, *self.one_save.components]
        amounts = [getattr(line, what) for line in lines for what in QUANTITIES]
        amounts.append(self.totals.checkpoints)
        if self.power_step is not None:
            amounts += [self.power_step.gpus, self.power_step.hosts, self.power_step.whole]
        known = len(self.rests)
        if odd := next((q for q in amounts if q.rests is not None and q.rests >= known), None):
            raise ValueError(f"a figure rests on list {odd.rests} of factors, of {known}")
        return self

    def rests_of(self, q: Quantity) -> list[str]:
        """Ids of the factors that one of its figures rests on."""
        return [] if q.rests is None else self.rests[q.rests]

    def marginal(self) -> list[Component]:
        return [c for c in self.components if c.ledger == "marginal"]

    def labels_of(self, ids: Iterable[str]) -> str:
        """Of lines, by their ids."""
        labels = {c.id: c.label for c in self.components}
        return ", ".join(labels.get(each, each) for each in ids)

    def amount(self, line: Component, what: str) -> Quantity:
        """A line's, for whoever adds lines up: nothing of a sum that is not known."""
        q: Quantity = getattr(line, what)
        if line.ledger != "marginal" or getattr(self.totals, what).value is not None:
            return q
        return q.model_copy(update={"value": None, "low": None, "high": None, "interval": None})

    def known(self, what: str) -> list[Component]:
        """The marginal ledger's components, to be added up; none where their sum is not known: the
        zeros of some of them would say that all of it is nothing."""
        return [] if getattr(self.totals, what).value is None else self.marginal()


def utc(text: str) -> datetime:
    """An instant of a document.

    >>> utc("2026-11-01T00:00:00Z").isoformat()
    '2026-11-01T00:00:00+00:00'
    """
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):  # the latter of years near the first and the last
        raise ValueError(f"{brief(text)} is no instant") from None


def instant(unix_s: float) -> str:
    """The other way, to the millisecond where it is no whole second.

    >>> instant(1793491200), instant(1793491200.25)
    ('2026-11-01T00:00:00Z', '2026-11-01T00:00:00.250Z')
    """
    ms = round(unix_s * 1000)
    text = datetime.fromtimestamp(ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}Z" if ms % 1000 == 0 else f"{text}.{ms % 1000:03d}Z"
