"""The report for a terminal, 80 columns; and the same tables as Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ckptcost.core.outcome import HEADWAY_GOODPUT
from ckptcost.core.quantities import EVERYDAY
from ckptcost.present.amounts import (
    DASH,
    between,
    count,
    drawn_between,
    duration,
    number,
    points,
    power,
    quantities,
    quantity,
    rate,
    share,
    size,
)
from ckptcost.present.table import columns, markdown
from ckptcost.present.words import line_label, method_text, rule_text

if TYPE_CHECKING:
    from ckptcost.report.document import Component, Quantity, Report, Row, RunTotals

WIDTH = 80

_READING = (
    "p5-p95: from drawing every ranged input at once. Energy is at the facility (PUE included). "
    "Sources: --format json, or `ckptcost catalog --sources`."
)

Table = tuple[str, list[str], list[list[str]], str]
"""title, header, rows, footnote"""

_EVERYDAY = tuple(q.column for q in EVERYDAY)


def _ranged(q: Quantity) -> str:
    if q.interval and q.high is None:
        return f">{number(q.low)}"
    return drawn_between(q.low, q.high) or DASH


def one_save(report: Report) -> Table:
    """Each tier once: what one save takes, beside what a vendor says of it."""
    rows = []
    for row in _by_tier(report.cases):
        v = row.values
        claim = next((c for c in row.claims if c["what"] == "energy" and c["this_size"]), None)
        said = (
            between(claim.get("low"), claim.get("high")) or number(claim["value"]) if claim else ""
        )
        amounts = [
            number(v[f"save_{what}"])
            for what in ("gpu_hours", "energy_kwh", "storage_kwh", "cost_usd", "location_kgco2e")
        ]
        rows.append([row.tier, rate(v["rate_bytes_per_s"]), duration(v["stall_s"]), *amounts, said])
    header = ["one save", "rate", "stall", "GPU-h", "kWh", "storage", "USD", "kgCO2e", "claimed"]
    if not any(row[-1] for row in rows):
        return (
            "What one save costs",
            header[:-1],
            [row[:-1] for row in rows],
            "storage: the part of the kWh spent at the storage",
        )
    note = (
        "storage: the part of the kWh spent at the storage; claimed: kWh that a vendor states for a"
        " save of this size, boundary not stated"
    )
    return "What one save costs", header, rows, note


def all_saves(report: Report) -> Table:
    """Tiers by number of saves: the saves alone, without failures."""
    counts = sorted({float(row.values["saves"] or 0) for row in report.cases})
    if len(counts) > 1 and len(report.cases) == len(counts) * len(_by_tier(report.cases)):
        header = ["kWh of the saves alone", *(f"x{count(each)}" for each in counts)]
        cell = {
            (row.tier, row.values["saves"]): row.values["saves_energy_kwh"] for row in report.cases
        }
        return (
            "Tiers by number of saves, no failures",
            header,
            [
                [row.tier, *(number(cell.get((row.tier, each))) for each in counts)]
                for row in _by_tier(report.cases)
            ],
            "",
        )
    header = ["all saves", "saves", "GPU-h", "kWh", "USD", "kgCO2e"]
    rows = [
        [
            row.tier,
            count(row.values["saves"]),
            *(number(row.values[f"saves_{what}"]) for what in _EVERYDAY),
        ]
        for row in report.cases
    ]
    return "All saves of the run, no failures", header, rows, ""


def whole_run(report: Report) -> Table:
    """Every case with failures and recovery, tiers together, counts rising."""
    header = ["whole run", "saves", "goodput", "wall", "GPU-h lost", "kWh", "USD", "kgCO2e"]
    rows: list[list[str]] = []
    last = ""
    for row in in_order(report):
        v = row.values
        hopeless = "NEVER_FINISHES" in row.cautions
        lost = [DASH] * 4 if hopeless else [number(v[f"run_{what}"]) for what in _EVERYDAY]
        name = "" if last == row.tier else row.tier
        last = row.tier
        rows.append(
            [
                name,
                count(v["saves"]),
                share(v["goodput"]),
                "never" if hopeless else duration(v["wall_s"]),
                *lost,
            ]
        )
    return "The whole run, failures and recovery included", header, rows, _left_out(report)


def in_order(report: Report) -> list[Row]:
    """The cases as the table of the whole run has them: tiers together, counts rising."""
    order = [row.tier for row in _by_tier(report.cases)]
    return sorted(report.cases, key=lambda row: (order.index(row.tier), row.values["saves"] or 0))


def _left_out(report: Report) -> str:
    """Which lines are missing in which rows of the tables."""
    said: dict[str, list[str]] = {}
    for row in _by_tier(report.cases):
        lacking = "; ".join(
            f"{what}: {', '.join(line_label(line) for line in lines)}"
            for what, lines in row.excludes.items()
            if what != "emissions"
        )
        if lacking:
            said.setdefault(lacking, []).append(row.tier)
    whole = len(_by_tier(report.cases))
    parts = [
        lacking + ("" if len(tiers) == whole else f" [{', '.join(tiers)}]")
        for lacking, tiers in said.items()
    ]
    if not parts:
        return ""
    alike = len(parts) == 1 and len(next(iter(said.values()))) == whole
    note = "" if alike else "; totals that lack different lines say nothing of each other"
    return "left out because unknown: " + " | ".join(parts) + note


def bill(report: Report) -> Table:
    """The first case line by line."""
    header = ["line", "kWh", "p5-p95", "GPU-h", "USD", "kgCO2e"]

    def cells(name: str, c: Component | RunTotals) -> list[str]:
        return [
            name,
            number(c.energy.value),
            _ranged(c.energy),
            number(c.gpu_time_lost.value),
            number(c.cost.value),
            number(c.emissions_location.value),
        ]

    rows = [cells(c.label, c) for c in report.components if c.ledger == "marginal" and _speaks(c)]
    rows.append(cells("total", report.totals))
    missing = sorted(
        {name for q in (report.totals.energy, report.totals.cost) for name in q.excludes}
    )
    note = (
        "not in the totals because unknown: " + ", ".join(_labels(report, missing))
        if missing
        else ""
    )
    return (
        f"The bill of the run: {report.subject.tier}, {count(report.schedule.saves)} saves",
        header,
        rows,
        note,
    )


def _labels(report: Report, ids: Sequence[str]) -> list[str]:
    labels = {c.id: c.label for c in report.components}
    found = []
    for name in ids:
        of = [
            what
            for what, q in (("energy", report.totals.energy), ("cost", report.totals.cost))
            if name in q.excludes
        ]
        found.append(f"{labels[name]} ({' and '.join(of)})")
    return found


def _speaks(c: Component) -> bool:
    return any(q.value is None or q.value != 0 for q in (c.energy, c.gpu_time_lost, c.cost))


def _by_tier(rows: Sequence[Row]) -> list[Row]:
    return list({row.tier: row for row in reversed(rows)}.values())[::-1]


def interval_lines(report: Report) -> list[str]:
    """The interval in use beside the best ones."""
    s = report.schedule
    every = f"Interval {duration(s.interval_s)} ({s.cadence});"
    if s.failures == 0:
        lines = [
            f"{every} with no failures the best is never to save. Loading takes"
            f" {duration(s.load_s)}."
        ]
    else:
        best = ", ".join(f"{name} {duration(value)}" for name, value in s.best_interval_s.items())
        lines = [
            f"{every} best for {best}.",
            *_rules_lines(report),
            f"Failures: one each {duration(s.mtbf_s)}; loading back takes {duration(s.load_s)}.",
        ]
    if s.failures and s.lost_per_failure_s is not None and s.redone_per_failure_s is not None:
        back_s = s.lost_per_failure_s - s.redone_per_failure_s
        lines.append(
            f"A failure costs {duration(s.lost_per_failure_s)} on average:"
            f" {duration(s.redone_per_failure_s)} of training done again, {duration(back_s)} to get"
            " back"
            # shorter than its parts: the next failure ends some of them early
            + (
                ", less where the next failure comes first."
                if s.load_s is not None and back_s < s.load_s
                else "."
            )
        )
    if s.mode == "async":
        lines.append(
            f"Asynchronous: training stops {duration(s.stall_s)} a save, which is safe"
            f" {duration(s.lag_s)} later"
            + (
                f"; {duration(s.blocked_s)} of the stop is waiting for the save before."
                if s.blocked_s
                else "."
            )
        )
    return [*lines, *power_lines(report)]


def power_lines(report: Report) -> list[str]:
    """How far power falls at each save, which its supplier must bear; of the GPUs alone where the
    hosts are unknown."""
    step = report.power_step
    if step is None or step.gpus.value is None or not step.lasts_s:
        return []
    fall = step.whole if step.whole.value is not None else step.gpus
    parts = (
        f"GPUs {_mw(step.gpus.value)}, hosts {_mw(step.hosts.value)}"
        if step.hosts.value is not None
        else "GPUs alone, the hosts' is not known"
    )
    ranged = (
        f"{_mw(fall.low)} to {_mw(fall.high)}; "
        if fall.low is not None and fall.high is not None
        else ""
    )
    least = step.least_ramp_mw_per_s
    ramp = f" at least {_mw(least)} a second," if least is not None else ""
    by = (
        "by" if step.lasts_s >= 1.0 else "by at most"
    )  # a stall so short may be over before it fell
    return [
        f"Each save lets IT power fall {by} {_mw(fall.value)} ({ranged}{parts}) for"
        f" {duration(step.lasts_s)} and rise again:{ramp} how much faster is not known."
    ]


def _mw(megawatts: float | None) -> str:
    return power(None if megawatts is None else megawatts * 1e6)


def ram_lines(report: Report) -> list[str]:
    """Whether a save fits into the host memory of a node."""
    s = report.schedule
    if not s.ram_copies_bytes:
        return []
    said = f"Host memory of a node: copies of saves take {size(s.ram_copies_bytes)}"
    if s.ram_used_bytes is not None:
        said += f", the job {size(s.ram_used_bytes)}"
    if s.ram_there_bytes is not None:
        said += f", of {size(s.ram_there_bytes)}"
    if s.ram_verdict == "fits":
        return [f"{said}: it fits."]
    if s.ram_verdict == "too much" and s.ram_there_bytes is not None:
        over = s.ram_copies_bytes + (s.ram_used_bytes or 0.0) - s.ram_there_bytes
        return [f"{said}: {size(over)} too much, and the node may be killed."]
    keys = [
        key
        for key, value in (("node_ram", s.ram_there_bytes), ("node_ram_used", s.ram_used_bytes))
        if value is None
    ]
    decides = " and ".join(f"cluster.{key}" for key in keys)
    return [f"{said}. Whether that fits is not known: {decides} would decide."]


def _rules_lines(report: Report) -> list[str]:
    """The textbook's intervals and goodput, each with its measured distance and the light of
    that."""
    s = report.schedule
    rules = (
        f"First-order rules: Young {duration(s.young_interval_s)}, Daly"
        f" {duration(s.daly_interval_s)}"
    )
    promise = f"{share(s.first_order_goodput)} against {share(s.goodput)} exact"
    if s.rules_judged_by is None:  # a document from before distances were measured
        return [f"{rules}, goodput {promise} ({s.validity})."]
    from ckptcost.report.studies.run_columns import COSTS

    over = rule_text(s.daly_regret, COSTS[s.rules_judged_by], s.interval_light or "")
    off = (
        f"{points(s.first_order_goodput_off)} off " if s.first_order_goodput_off is not None else ""
    )
    return [
        f"{rules}; Daly's interval {over}. First-order goodput every {duration(s.interval_s)}: "
        f"{promise}, {off}({s.goodput_light})."
    ]


def carbon_lines(report: Report) -> list[str]:
    """What the kgCO2e column is, and what it is not."""
    t, where = report.totals, report.subject.grid or report.subject.site
    market = (
        f"{number(t.emissions_market.value)} kgCO2e"
        if t.emissions_market.value is not None
        else "not known (site.grid_market)"
    )
    embodied = f"{number(t.embodied.value)} kgCO2e" if t.embodied.value is not None else "not known"
    return [
        f"kgCO2e is location-based ({where}; {method_text(report.choices)}). "
        f"Market-based: {market}. Embodied share of the GPU time lost: {embodied}, in no total."
    ]


def allocated_lines(report: Report) -> list[str]:
    """The second ledger, where anything of it is known."""
    energy, cost = report.allocated.energy.value, report.allocated.cost.value
    said = [f"{number(energy)} kWh of idle storage"] * bool(energy) + [
        f"{number(cost)} USD of standing price"
    ] * bool(cost)
    return [f"Allocated, in no total: {' and '.join(said)}."] if said else []


def basis_line(report: Report) -> str:
    """Of so many inputs, so many measured ..."""
    counts: dict[str, int] = {}
    for f in report.factors:
        counts[f.origin] = counts.get(f.origin, 0) + 1
    words = {"default": "assumed", "user": "yours"}
    said = ", ".join(
        f"{counts[o]} {words.get(o, o)}"
        for o in ("measured", "published", "derived", "vendor", "user", "default")
        if o in counts
    )
    return f"Of {len(report.factors)} inputs: {said}."


def tables(report: Report) -> list[Table]:
    found = [one_save(report), all_saves(report), whole_run(report)]
    return [*found, bill(report)]


def heading(report: Report) -> list[str]:
    s, b = report.subject, report.schedule
    gpus = f"{count(s.accelerator_count)} x {s.accelerator or 'GPU'}"
    every = next((f.value for f in report.factors if f.id == "policy.second_every"), 1.0)
    second = f", one save in {count(every)} also to {s.second_tier}" if s.second_tier else ""
    return [
        s.run_name,
        (
            f"{size(b.size_bytes)} a save, {gpus}, {duration(b.work_s)} of training,"
            f" {b.mode}{second}, PUE {number(report.boundary.pue)}, {s.grid or s.site}"
        ),
    ]


def avoidable_lines(report: Report) -> list[str]:
    """What the first case costs more than the reference, and what less."""
    if report.avoidable is None:
        return []
    v = report.avoidable.values
    told = [
        (value, f"{DASH if value is None else number(abs(value))} {q.unit}")
        for q in EVERYDAY
        for value in (v[f"run_{q.column}"],)
    ]
    more = [text for value, text in told if value is not None and value < 0]
    rest = [text for value, text in told if value is None or value >= 0]
    name = report.avoidable.tier_name
    goodput, more_by = report.schedule.goodput, v.get("goodput")
    other = None if goodput is None or more_by is None else goodput - more_by
    for run, of in (("the run", goodput), (f"the run on {name}", other)):
        if of is not None and of < HEADWAY_GOODPUT:
            return [
                f"Nothing is counted as avoidable with {name}: as it stands {run} makes next to no"
                f" headway (goodput {share(max(of, 0.0))}), and nobody would let it go on. Each at"
                ' its own best interval: --set policy.optimal="time".'
            ]
    if not more:
        return [f"Avoidable with {name}: {', '.join(rest)} a run."]
    if not any(value is not None and value > 0 for value, _ in told):
        return [
            f"Nothing was avoidable with {name}: it would add {', '.join(text for _, text in told)}"
            " a run."
        ]
    return [f"Avoidable with {name}: {', '.join(rest)} a run; it would add {', '.join(more)}."]


def text(report: Report) -> str:
    """The report as plain text."""
    out: list[str] = []
    title, *rest = heading(report)
    out += [_wrapped(title), "=" * min(len(title), WIDTH), *(_wrapped(line) for line in rest)]
    for name, header, rows, note in tables(report):
        out += ["", _wrapped(name), *columns(header, rows, widest=WIDTH)]
        if note:
            out.append(_wrapped(note))
    out += ["", *(_wrapped(line) for line in _remarks(report))]
    if report.warnings:
        out += ["", "Take care"]
        out += [_wrapped(f"{w.message} ({w.code})", "- ", "  ") for w in report.warnings]
    out += ["", _wrapped(basis_line(report) + " Assumed, with their ranges:")]
    out += [
        _wrapped(_assumed(f.id, f.text, f.value, f.unit, f.low, f.high), "- ", "  ")
        for f in report.factors
        if f.origin == "default"
    ]
    out += ["", _wrapped(_READING)]
    return "\n".join(out) + "\n"


def price_lines(report: Report) -> list[str]:
    """The range of the dollars, and the price that drives it."""
    total = report.totals.cost
    price = next((f for f in report.factors if f.id == "cluster.gpu_price"), None)
    if price is None or total.value is None:
        return []
    ranged = quantities(price.low, price.high, price.unit)
    said = f"A GPU-hour is priced at {quantity(price.value, price.unit)}" + (
        f" ({ranged})" if ranged else ""
    )
    return [
        f"{said}, {price.origin if price.origin != 'default' else 'assumed'}; the run's dollars"
        f" range over {_ranged(total)} (p5-p95)."
    ]


def _remarks(report: Report) -> list[str]:
    return [
        *interval_lines(report),
        *ram_lines(report),
        *avoidable_lines(report),
        *allocated_lines(report),
        *price_lines(report),
        *carbon_lines(report),
        _rate_line(report),
    ]


def _rate_line(report: Report) -> str:
    s = report.schedule
    return f"Narrowest place on the way to {report.subject.tier}: {rate(s.write_rate_bytes_per_s)}."


def _assumed(
    name: str, said: str, value: float | None, unit: str, low: float | None, high: float | None
) -> str:
    plain = count(value) if not unit else quantity(value, unit)
    given = (
        said
        if any(letter.isalpha() for letter in said)
        else plain
        if value is not None
        else "unlimited"
    )
    ranged = quantities(low, high, unit)
    return f"{name} = {given}" + (f" ({ranged})" if ranged else "")


def _wrapped(line: str, first: str = "", rest: str = "") -> str:
    return textwrap.fill(
        line, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    )


def to_markdown(report: Report) -> str:
    """The report for a pull request or a wiki."""
    title, *rest = heading(report)
    out = [f"# {title}", "", *rest]
    for name, header, rows, note in tables(report):
        out += ["", f"## {name}", "", *markdown(header, rows)]
        out += ["", f"_{note}_"] if note else []
    out += ["", "## Interval", "", *(f"- {line}" for line in _remarks(report))]
    if report.warnings:
        out += ["", "## Take care", "", *(f"- `{w.code}` {w.message}" for w in report.warnings)]
    out += ["", "## Inputs", "", basis_line(report), ""]
    out += markdown(
        ["input", "value", "range", "basis", "source"],
        [
            [
                f.id,
                f.text or quantity(f.value, f.unit),
                quantities(f.low, f.high, f.unit),
                f.origin,
                ", ".join(s.id for s in f.sources),
            ]
            for f in report.factors
        ],
        left=5,
    )
    out += [
        "",
        (
            f"Method {report.tool.method_version}, report {report.report_id}. Memo item: this"
            " energy is already in the facility's meter."
        ),
    ]
    return "\n".join(out) + "\n"
