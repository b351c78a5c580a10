"""The small parts of a document that several of its larger ones hold: quantities, factors, lines
of a bill, sources, warnings. Null = unknown, 0 = known to be zero."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Unit = Literal["kWh", "kgCO2e", "GPU-h", "USD", "L", "MW", "1"]
Basis = Literal["measured", "modelled", "sourced", "assumed"]
Origin = Literal["measured", "published", "derived", "vendor", "user", "default"]


class DocumentPart(BaseModel):
    """Written strictly: unknown keys and numbers that are not finite are refused."""

    # deferred: builders hand over one dictionary, so only the document's own schema is ever
    # compiled (12 ms less at every start)
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, frozen=True, defer_build=True)


class Quantity(DocumentPart):
    value: float | None = Field(description="null = unknown")
    unit: Unit
    basis: Basis = "modelled"
    low: float | None = None
    high: float | None = Field(default=None, description="null beside a low end: without bound")
    interval: Literal["p5-p95", "bounds"] | None = Field(
        default=None,
        description=(
            "what low and high are; p5-p95 is widened where needed to contain the value, bounds are"
            " of a measurement"
        ),
    )
    rests: int | None = Field(
        default=None,
        ge=0,
        description="which of the statement's `rests` this figure rests on, from 0; null: none",
    )
    excludes: list[str] = Field(
        default=[], description="ids of components that are unknown and therefore not in this sum"
    )


class Source(DocumentPart):
    id: str
    title: str
    publisher: str | None = None
    url: str | None = None
    no_url: str | None = Field(default=None, description="why it has no address")
    version: str | None = None
    retrieved: str | None = None
    licence: str | None = None


class Factor(DocumentPart):
    id: str = Field(description="section.key, as a scenario file spells it")
    name: str = Field(description="what it means")
    value: float | None = Field(description="in base units; null = unlimited")
    unit: str = Field(description="base unit; empty for a plain number")
    text: str = Field(default="", description="as it was written")
    low: float | None = None
    high: float | None = None
    origin: Origin
    set_by: str = Field(description="the flag, file or catalogue entry that says so")
    boundary: str | None = None
    note: str | None = None
    sources: list[Source] = Field(default=[])


class Amounts(DocumentPart):
    """One of each quantity, in the order of documents."""

    energy: Quantity
    emissions_location: Quantity
    emissions_market: Quantity
    embodied: Quantity
    gpu_time_lost: Quantity
    cost: Quantity
    water: Quantity


class LineHead(DocumentPart):
    """What a line of a bill is."""

    id: str
    label: str
    cause: Literal["save", "failure", "keep"]
    ledger: Literal["marginal", "allocated"]
    boundary: Literal["drive", "storage-system", "node", "cluster", "facility"]
    basis: Basis = "modelled"
    rests_on: Literal["measured", "published", "derived", "vendor", "user", "assumed"] = Field(
        description="softest basis among its factors"
    )


class Component(Amounts, LineHead):
    """A line of a bill: what it is, how much of each quantity, and what it is priced by."""

    price_qty: float | None = None
    price_unit: str | None = None
    unit_price: float | None = None
    sku: str | None = None
    needed: bool | None = Field(
        default=None,
        description=(
            "whether there is no total without this line; null: where it is what GPUs and hosts do"
            " (gpu_wait, host_wait, slowdown, redone_work, restart, loading)"
        ),
    )


class Totals(Amounts):
    """Sums over components of one ledger, and nothing else."""


class RunTotals(Totals):
    checkpoints: Quantity


class OneSave(DocumentPart):
    """The bill of one completed save, no failures."""

    totals: Totals
    components: list[Component]


class Schedule(DocumentPart):
    """When saves happen and what they do to the run. Seconds, bytes and shares, as the names
    say."""

    mode: Literal["sync", "async"]
    cadence: str
    interval_s: float
    saves: float
    stall_s: float = Field(
        description=(
            "training held up per save; waiting for earlier saves and a second tier's share"
            " included"
        )
    )
    blocked_s: float = Field(
        description="part of the stall that waits for an earlier save to drain"
    )
    lag_s: float = Field(
        description="from the end of the stall until the save can be recovered from"
    )
    write_s: float
    load_s: float
    size_bytes: float
    written_bytes: float
    write_rate_bytes_per_s: float | None
    work_s: float
    wall_s: float | None
    goodput: float | None = Field(
        description="useful training time over wall time (effective training time ratio)"
    )
    failures: float | None
    mtbf_s: float | None
    lost_per_failure_s: float | None = Field(
        description="mean time that one failure costs: training done again, and getting back"
    )
    redone_per_failure_s: float | None = Field(description="the part of it that is training")
    ram_copies_bytes: float | None = Field(
        description="host memory of the busiest node for copies of saves"
    )
    ram_used_bytes: float | None = Field(
        description="host memory that the job holds besides (cluster.node_ram_used)"
    )
    ram_there_bytes: float | None = Field(description="host memory of a node (cluster.node_ram)")
    ram_verdict: Literal["fits", "too much", "unknown"] = Field(
        description="whether copies and job fit into a node's memory"
    )
    best_interval_s: dict[str, float | None]
    young_interval_s: float | None
    daly_interval_s: float | None
    first_order_goodput: float | None
    first_order_goodput_off: float | None = Field(
        default=None,
        description=(
            "distance of the first-order goodput from the exact one: up to 0.005 green, up to 0.02"
            " amber, beyond, below 0 or unknown red"
        ),
    )
    goodput_light: Literal["green", "amber", "red"] | None = None
    rules_judged_by: str | None = Field(
        default=None, description="objective whose cost the rule's interval is judged by"
    )
    daly_regret: float | None = Field(
        default=None,
        description=(
            "what Daly's interval costs over the best one: up to 0.01 green, up to 0.05 amber,"
            " beyond red; null where the rule cannot be applied"
        ),
    )
    interval_light: Literal["green", "amber", "red", "not applicable"] | None = None
    validity: Literal["green", "amber", "red", "not applicable"] = Field(
        description="the worse of goodput_light and interval_light: measured distances, not a bound"
    )


class PowerStep(DocumentPart):
    """How far the job's IT power falls when a save holds training up; it rises as far when the save
    is over."""

    gpus: Quantity
    hosts: Quantity
    whole: Quantity = Field(description="null where one of the two is unknown")
    lasts_s: float = Field(description="the stall: until power is back")
    least_ramp_mw_per_s: float | None = Field(
        description=(
            "mean rate of a fall and a rise that fill the stall; how fast it really is, is not"
            " known"
        )
    )


class Excluded(DocumentPart):
    component: str
    reason: str


class Assumption(DocumentPart):
    id: str
    text: str
    value: float | None
    unit: str
    low: float | None = None
    high: float | None = None
    sensitivity: float | None = Field(default=None, description="not computed in this version")


class Uncertainty(DocumentPart):
    method: str
    samples: int
    seed: int
    interval: Literal["p5-p95"]
    decided_by: list[str] = Field(
        default=[],
        description=(
            "inputs of the first case whose ranges explain most of the spread of its energy, the"
            " most first"
        ),
    )


class Warned(DocumentPart):
    code: str
    message: str


class InputFile(DocumentPart):
    path: str = Field(description="base name only")
    bytes: int
    sha256: str


class FactorSet(DocumentPart):
    name: str
    version: str
    sha256: str


class Tool(DocumentPart):
    name: Literal["ckptcost"]
    version: str
    command: list[str]
    method_version: str


class FunctionalUnit(DocumentPart):
    name: str
    count: float
