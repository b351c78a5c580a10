"""The report document, schema ckptcost.report 1.0. Unit in every quantity, null = unknown, 0 =
known to be zero.

Written strictly (unknown keys and non-finite numbers are refused); a newer minor version is read,
its extra keys ignored.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Unit = Literal["kWh", "kgCO2e", "GPU-h", "USD", "MW", "1"]
Basis = Literal["measured", "modelled", "sourced", "assumed"]
Origin = Literal["measured", "published", "derived", "vendor", "user", "default"]


class _Part(BaseModel):
    # deferred: the builder hands over one dictionary, so only Report's own schema is ever compiled
    # (12 ms less at every start)
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, frozen=True, defer_build=True)


class Quantity(_Part):
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
    factors: list[str] = Field(default=[], description="ids of the factors this figure rests on")
    excludes: list[str] = Field(
        default=[], description="ids of components that are unknown and therefore not in this sum"
    )


class Source(_Part):
    id: str
    title: str
    publisher: str | None = None
    url: str | None = None
    no_url: str | None = Field(default=None, description="why it has no address")
    version: str | None = None
    retrieved: str | None = None
    licence: str | None = None


class Factor(_Part):
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
    sources: list[Source] = []


class Component(_Part):
    id: str
    label: str
    cause: Literal["save", "failure", "keep"]
    ledger: Literal["marginal", "allocated"]
    boundary: Literal["drive", "storage-system", "node", "cluster", "facility"]
    basis: Basis = "modelled"
    rests_on: Literal["measured", "published", "derived", "vendor", "user", "assumed"] = Field(
        description="softest basis among its factors"
    )
    energy: Quantity
    emissions_location: Quantity
    emissions_market: Quantity
    embodied: Quantity
    gpu_time_lost: Quantity
    cost: Quantity
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


class Totals(_Part):
    """Sums over components of one ledger, and nothing else."""

    energy: Quantity
    emissions_location: Quantity
    emissions_market: Quantity
    embodied: Quantity
    gpu_time_lost: Quantity
    cost: Quantity


class RunTotals(Totals):
    checkpoints: Quantity


class Bill(_Part):
    totals: Totals
    components: list[Component]


class Schedule(_Part):
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


class PowerStep(_Part):
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


class Row(_Part):
    """One tier at one cadence in one line; the same columns as a sweep."""

    id: str
    tier: str
    tier_name: str
    values: dict[str, float | None]
    low: dict[str, float | None] = Field(
        default={}, description="p5 of those columns that depend on uncertain inputs"
    )
    high: dict[str, float | None] = Field(default={}, description="p95; null = without bound")
    claims: list[dict[str, Any]] = Field(
        default=[],
        description=(
            "what a vendor says of one checkpoint, as stated, for the size it states; never an"
            " input"
        ),
    )
    cautions: list[str] = []
    excludes: dict[str, list[str]] = Field(
        default={}, description="lines that are unknown and therefore not in the sums, by quantity"
    )
    factors: list[Factor] = Field(
        default=[], description="factors that differ from the first case's"
    )
    dropped: list[str] = Field(
        default=[], description="ids of the first case's factors that this case does not have"
    )
    choices: dict[str, Any] = Field(
        default={}, description="choices that differ from the first case's"
    )


class Subject(_Part):
    run_name: str
    checkpoint: str
    tier: str
    second_tier: str | None = None
    cluster: str
    accelerator: str | None = None
    accelerator_count: float
    nodes: float
    site: str
    grid: str | None = None


class Excluded(_Part):
    component: str
    reason: str


class Boundary(_Part):
    included: list[str]
    excluded: list[Excluded]
    pue: float
    pue_included_in_energy: Literal[True] = True
    embodied_included: Literal[False] = Field(
        default=False, description="embodied carbon is a figure of its own, in no emissions total"
    )
    counterfactual: str = "the same work with no checkpoints and no failures"
    inventory_treatment: Literal["memo_item"] = Field(
        default="memo_item",
        description=(
            "these kWh already sit in the facility's meter: do not add them to an inventory"
        ),
    )


class Assumption(_Part):
    id: str
    text: str
    value: float | None
    unit: str
    low: float | None = None
    high: float | None = None
    sensitivity: float | None = Field(default=None, description="not computed in this version")


class Uncertainty(_Part):
    method: str
    samples: int
    seed: int
    interval: Literal["p5-p95"] = "p5-p95"
    decided_by: list[str] = Field(
        default=[],
        description=(
            "inputs of the first case whose ranges explain most of the spread of its energy, the"
            " most first"
        ),
    )


class Warned(_Part):
    code: str
    message: str


class InputFile(_Part):
    path: str = Field(description="base name only")
    bytes: int
    sha256: str


class FactorSet(_Part):
    name: str = "ckptcost catalogue"
    version: str
    sha256: str


class Reproducibility(_Part):
    inputs_sha256: str = Field(description="over factors and choices of all cases")
    inputs: list[InputFile] = []
    factor_set: FactorSet
    seed: int
    result_sha256: str = Field(
        description="over everything but schema, report_id, generated_at, tool and this section"
    )


class Tool(_Part):
    name: Literal["ckptcost"] = "ckptcost"
    version: str
    command: list[str]
    method_version: str


class FunctionalUnit(_Part):
    name: str
    count: float


class Report(_Part):
    schema_name: Literal["ckptcost.report"]
    schema_version: str = Field(pattern=r"^1\.\d+$")
    report_id: str = Field(pattern=r"^urn:sha256:[0-9a-f]{32}$")
    generated_at: str = Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
    tool: Tool
    kind: Literal["measured", "modelled", "mixed"] = "modelled"
    simulated: bool = Field(default=False, description="true where meters were simulated")
    currency: Literal["USD"] = "USD"
    period_start: str | None = Field(default=None, description="null: a plan has no dates")
    period_end: str | None = None
    subject: Subject
    boundary: Boundary
    schedule: Schedule
    power_step: PowerStep | None = None
    totals: RunTotals = Field(description="the run's marginal ledger, first case")
    functional_units: list[FunctionalUnit]
    components: list[Component] = Field(
        description="the run's bill, first case: every line of both ledgers"
    )
    allocated: Totals = Field(
        description="share of what stands there anyway; never added to totals"
    )
    one_save: Bill = Field(description="one completed save, no failures")
    avoidable: Row | None = Field(default=None, description="first case minus the reference case")
    cases: list[Row] = Field(
        description="every tier at every cadence asked for, the first case included"
    )
    factors: list[Factor]
    choices: dict[str, Any]
    assumptions: list[Assumption]
    measurements: list[dict[str, Any]] = []
    uncertainty: Uncertainty
    warnings: list[Warned]
    reproducibility: Reproducibility

    def __repr__(self) -> str:
        """The answer as the terminal has it; `to_json` has all of it."""
        from ckptcost.report import brief

        return brief.of_report(self)

    __str__ = __repr__

    def _repr_html_(self) -> str:
        from ckptcost.report import brief, notebook

        return notebook.html(brief.told_of_report(self))

    def to_frame(self) -> Any:
        """The cases as a tidy pandas frame, one row each."""
        from ckptcost.report.frame import frame_of_rows

        return frame_of_rows(self.cases)

    def to_json(self) -> str:
        from ckptcost.report.canonical import pretty

        return pretty(self.model_dump(mode="json"))
