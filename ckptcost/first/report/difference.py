"""The difference of two statements, as a part of a document: past, current, delta, and whether the
two may be compared at all.

Null = unknown: a change is never computed from a null as if it were 0. More is worse, of every
quantity.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ckptcost.first.report.parts import Basis, DocumentPart, InputFile, Warned
from ckptcost.first.report.statement import Statement

Direction = Literal["more", "less", "same", "unknown"]


class Amount(DocumentPart):
    value: float | None = Field(description="null = unknown")
    low: float | None = None
    high: float | None = Field(None, description="null beside a low end: without bound")
    interval: Literal["p5-p95", "bounds"] | None = None
    basis: Basis = "modelled"
    excludes: list[str] = Field(
        [], description="ids of components that are unknown and therefore not in this sum"
    )


class Change(DocumentPart):
    """One quantity before and after."""

    unit: Literal["kWh", "kgCO2e", "GPU-h", "USD", "L", "1", "s"]
    before: Amount | None = Field(description="null: the past one has no such line")
    after: Amount | None = Field(description="null: the current one has no such line")
    change: float | None = Field(
        description=(
            "after less before; null where either is unknown, or their sums lack different lines"
        )
    )
    relative: float | None = Field(description="of before; null also where before is 0")
    direction: Direction = Field(description="more is worse")
    ranges_overlap: bool | None = Field(
        description=(
            "true: the change is within the uncertainty of the two, each taken alone; null where"
            " neither has a range"
        )
    )
    reason: str | None = Field(
        None, description="why the change, or its relation to before, is not known"
    )


class Changes(DocumentPart):
    """The six quantities of a component or a sum."""

    energy: Change
    emissions_location: Change
    emissions_market: Change
    embodied: Change
    gpu_time_lost: Change
    cost: Change
    water: Change


class TotalChanges(Changes):
    checkpoints: Change
    length: Change = Field(description="of the run")


class ComponentChanges(Changes):
    id: str
    label: str
    cause: Literal["save", "failure", "keep"]
    ledger: Literal["marginal", "allocated"]
    only_in: Literal["past", "current"] | None = Field(
        description="a line that one of the two lacks: no change can be told, see the totals"
    )


class UnitChanges(Changes):
    """The totals for each of something: what is left to compare where runs are of different
    length."""

    name: str = Field(description="checkpoint, hour of training, hour of the run ...")
    before_count: float | None
    after_count: float | None


class FactorValue(DocumentPart):
    value: float | None = Field(description="in base units; null = unlimited")
    low: float | None
    high: float | None
    text: str
    origin: str


class FactorChange(DocumentPart):
    """A factor that is not the same in both."""

    id: str
    name: str
    unit: str = Field(description="base unit; empty for a plain number")
    before: FactorValue | None = Field(description="null: not a factor of the past one")
    after: FactorValue | None = Field(description="null: not a factor of the current one")
    converts: bool = Field(
        description=(
            "a price, grid or facility factor: it changes what amounts cost, not the amounts"
        )
    )


class SplitPart(DocumentPart):
    cause: str
    label: str
    change: float


class Split(DocumentPart):
    """A change divided among causes, one after another: amounts at the old factors first. The parts
    add up to the change."""

    quantity: str
    unit: str
    parts: list[SplitPart]
    at_constant_factors: float = Field(
        description="the part of the amounts: what the change is with the factors of the past one"
    )


class Delta(DocumentPart):
    totals: TotalChanges = Field(description="the marginal ledger")
    allocated: Changes | None = Field(
        description="share of what stands there anyway; in no total; null where either has none"
    )
    components: list[ComponentChanges]
    per: list[UnitChanges]
    factors: list[FactorChange]
    splits: list[Split] = Field(
        description=(
            "only of changes that a price, grid or facility factor takes part in, and where that"
            " can be told"
        )
    )


class Reason(Warned):
    refuses: bool = Field(description="true: computed all the same because that was asked for")


class Side(DocumentPart):
    source: str = Field(description="base name only")
    generated_at: str
    tool_version: str
    inputs: list[InputFile]
    result_sha256: str = Field(description="of the document that the statement is of")
    statement_sha256: str = Field(description="of the whole statement, series included")
    statement: Statement = Field(description="without its series")


class Budget(DocumentPart):
    """How much more is allowed, and what it is."""

    text: str
    quantity: str
    per: str | None = Field(description="for each of what; null: the total")
    operator: Literal["<=", "<"]
    limit: float = Field(description="a share of before, or in the quantity's unit")
    relative: bool
    value: float | None = Field(
        description="null: unknown, which meets nothing, or without bound where before was 0"
    )
    met: bool


class Difference(DocumentPart):
    past: Side
    current: Side
    delta: Delta
    comparable: bool = Field(description="false as soon as there is one reason below")
    incomparable_reasons: list[Reason]
    notes: list[Warned] = Field(
        description="what to know of the change that does not make the two incomparable"
    )
    budgets: list[Budget] = Field(default=[])
