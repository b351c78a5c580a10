"""What a model's figures say, in sentences: of a statement's closed form, and of the cases beside
each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ckptcost.first.core.outcome import HEADWAY_GOODPUT
from ckptcost.first.core.quantities import EVERYDAY
from ckptcost.first.present.amounts import (
    DASH,
    bracketed,
    count,
    drawn_between,
    duration,
    durations,
    number,
    points,
    power,
    quantities,
    quantity,
    rate,
    share,
    size,
)
from ckptcost.first.present.words import caution_of_several, caution_text, method_text, rule_text

if TYPE_CHECKING:
    from ckptcost.first.core.cautions import Caution
    from ckptcost.first.report.parts import Factor, Quantity

ClosedForm = Any
"""a statement of the closed form, which has a schedule; judged by the schema, or plain values"""
CaseRow = Mapping[str, Any]
"""a row of the table `cases`"""
AMOUNTS: Final = (
    ("run_energy_kwh", "kWh"),
    ("run_gpu_hours", "GPU-h"),
    ("run_cost_usd", "USD"),
)
ORIGINS: Final = {"default": "assumed", "user": "yours"}
"""where a figure is from, in words, where its code is none"""
NEAR: Final = 10.0
"""lengths that are no further apart are told in one unit"""
ENDLESS = "NEVER_FINISHES"


def range_text(q: Quantity) -> str:
    """The ends of what was drawn; "more than" where there is no upper one."""
    if q.interval and q.high is None:
        return f">{number(q.low)}"
    return drawn_between(q.low, q.high) or DASH


def sentences_of(
    of: ClosedForm, cases: Sequence[CaseRow], avoidable: Sequence[str] = ()
) -> list[str]:
    """The answer: what was avoidable, where that was asked; which case adds least, what the first
    one adds, how often it saves, what a failure costs, and on which inputs all that hangs."""
    several = len(cases) > 1
    on = case_text(cases[0], cases) if several else ""
    return [
        *avoidable,
        *(_least(cases) if several else []),
        _added_sentence(of, on),
        _rhythm(of),
        *_failures(of),
        *_deciding_inputs(of),
    ]


def remarks_of(of: ClosedForm) -> list[str]:
    """What else there is to say of the first case."""
    return [
        *interval_lines(of),
        *ram_lines(of),
        *allocated_lines(of),
        *price_lines(of),
        *carbon_lines(of),
        *water_lines(of),
        f"Narrowest place on the way to {of.subject.tier}:"
        f" {rate(of.schedule.write_rate_bytes_per_s)}.",
    ]


def avoidable_lines(
    values: Mapping[str, float | None], name: str, goodput: float | None
) -> list[str]:
    """What the first case costs more than the reference `name`, and what less; `values` are the
    differences."""
    more_by = values.get("goodput")
    other = None if goodput is None or more_by is None else goodput - more_by
    for run, of in (("the run", goodput), (f"the run on {name}", other)):
        if of is not None and of < HEADWAY_GOODPUT:
            return [
                f"Nothing is counted as avoidable with {name}: as it stands {run} makes next to no"
                f" headway (goodput {share(max(of, 0.0))}), and nobody would let it go on. Each at"
                ' its own best interval: --set policy.optimal="time".'
            ]
    return [_avoidable_text({q.unit: values[f"run_{q.column}"] for q in EVERYDAY}, name)]


def _avoidable_text(amounts: Mapping[str, float | None], name: str) -> str:
    known = {unit: value for unit, value in amounts.items() if value is not None}
    less = [f"{number(-value)} {unit}" for unit, value in known.items() if value < 0]
    told = [
        f"{number(None if value is None else abs(value))} {unit}" for unit, value in amounts.items()
    ]
    if less and not any(value > 0 for value in known.values()):
        return f"Nothing was avoidable with {name}: it would add {', '.join(told)} a run."
    rest = ", ".join(text for text in told if text not in less)
    adds = f"; it would add {', '.join(less)}" if less else ""
    return f"Avoidable with {name}: {rest} a run{adds}."


def interval_lines(of: ClosedForm) -> list[str]:
    """The interval in use beside the best ones."""
    s = of.schedule
    every, load = f"Interval {duration(s.interval_s)} ({s.cadence});", duration(s.load_s)
    if s.failures == 0:
        lines = [f"{every} with no failures the best is never to save. Loading takes {load}."]
    else:
        best = ", ".join(f"{name} {duration(value)}" for name, value in s.best_interval_s.items())
        lines = [
            f"{every} best for {best}.",
            *_rules_lines(of),
            f"Failures: one each {duration(s.mtbf_s)}; loading back takes {load}.",
            *_failure_lines(of),
        ]
    if s.mode == "async":
        waits = f"; {duration(s.blocked_s)} of the stop is waiting for the save before"
        lines.append(
            f"Asynchronous: training stops {duration(s.stall_s)} a save, which is safe"
            f" {duration(s.lag_s)} later{waits if s.blocked_s else ''}."
        )
    return [*lines, *power_lines(of)]


def _failure_lines(of: ClosedForm) -> list[str]:
    s = of.schedule
    if not s.failures or s.lost_per_failure_s is None or s.redone_per_failure_s is None:
        return []
    back_s = s.lost_per_failure_s - s.redone_per_failure_s
    # shorter than its parts: the next failure ends some of them early
    early = s.load_s is not None and back_s < s.load_s
    return [
        f"A failure costs {duration(s.lost_per_failure_s)} on average:"
        f" {duration(s.redone_per_failure_s)} of training done again, {duration(back_s)} to get"
        f" back{', less where the next failure comes first' if early else ''}."
    ]


def power_lines(of: ClosedForm) -> list[str]:
    """How far power falls at each save, which its supplier must bear; of the GPUs alone where the
    hosts are unknown."""
    step = of.power_step
    if step is None or step.gpus.value is None or not step.lasts_s:
        return []
    fall = step.gpus if step.whole.value is None else step.whole
    parts = "GPUs alone, the hosts' is not known"
    if step.hosts.value is not None:
        parts = f"GPUs {_mw(step.gpus.value)}, hosts {_mw(step.hosts.value)}"
    known = fall.low is not None and fall.high is not None
    ranged = f"{_mw(fall.low)} to {_mw(fall.high)}; " if known else ""
    least = step.least_ramp_mw_per_s
    ramp = f" at least {_mw(least)} a second," if least is not None else ""
    # a stall so short may be over before it fell
    by = "by" if step.lasts_s >= 1.0 else "by at most"
    return [
        f"Each save lets IT power fall {by} {_mw(fall.value)} ({ranged}{parts}) for"
        f" {duration(step.lasts_s)} and rise again:{ramp} how much faster is not known."
    ]


def _mw(megawatts: float | None) -> str:
    return power(None if megawatts is None else megawatts * 1e6)


def ram_lines(of: ClosedForm) -> list[str]:
    """Whether a save fits into the host memory of a node."""
    s = of.schedule
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


def _rules_lines(of: ClosedForm) -> list[str]:
    """The textbook's intervals and goodput, each with its measured distance and the light of
    that."""
    s = of.schedule
    rules = (
        f"First-order rules: Young {duration(s.young_interval_s)}, Daly"
        f" {duration(s.daly_interval_s)}"
    )
    promise = f"{share(s.first_order_goodput)} against {share(s.goodput)} exact"
    if s.rules_judged_by is None:  # a document from before distances were measured
        return [f"{rules}, goodput {promise} ({s.validity})."]
    from ckptcost.first.report.studies.run_columns import COSTS

    over = rule_text(s.daly_regret, COSTS[s.rules_judged_by], s.interval_light or "")
    off = (
        f"{points(s.first_order_goodput_off)} off " if s.first_order_goodput_off is not None else ""
    )
    return [
        f"{rules}; Daly's interval {over}. First-order goodput every {duration(s.interval_s)}: "
        f"{promise}, {off}({s.goodput_light})."
    ]


def carbon_lines(of: ClosedForm) -> list[str]:
    """What the kgCO2e column is, and what it is not."""
    market, embodied = of.totals.emissions_market.value, of.totals.embodied.value
    where = of.subject.grid or of.subject.site
    bought = "not known (site.grid_market)" if market is None else f"{number(market)} kgCO2e"
    made = "not known" if embodied is None else f"{number(embodied)} kgCO2e"
    return [
        f"kgCO2e is location-based ({where}; {method_text(of.choices)}). "
        f"Market-based: {bought}. Embodied share of the GPU time lost: {made}, in no total."
    ]


def water_lines(of: ClosedForm) -> list[str]:
    """Litres, where the site's factor is given."""
    q = of.totals.water
    if q.value is None:
        return []
    return [f"Water for cooling, on site: {number(q.value)} L{_draws_text(q.low, q.high)}."]


def _draws_text(low: float | None, high: float | None) -> str:
    """A range that comes from draws, behind its value."""
    return bracketed(drawn_between(low, high))


def allocated_lines(of: ClosedForm) -> list[str]:
    """The second ledger, where anything of it is known."""
    energy, cost = of.allocated.energy.value, of.allocated.cost.value
    said = [f"{number(energy)} kWh of idle storage"] if energy else []
    said += [f"{number(cost)} USD of standing price"] if cost else []
    return [f"Allocated, in no total: {' and '.join(said)}."] if said else []


def price_lines(of: ClosedForm) -> list[str]:
    """The range of the dollars, and the price that drives it."""
    total = of.totals.cost
    price = next((f for f in of.factors if f.id == "cluster.gpu_price"), None)
    if price is None or total.value is None:
        return []
    ranged = bracketed(quantities(price.low, price.high, price.unit))
    origin = "assumed" if price.origin == "default" else price.origin
    return [
        f"A GPU-hour is priced at {quantity(price.value, price.unit)}{ranged}, {origin}; the run's"
        f" dollars range over {range_text(total)} (p5-p95)."
    ]


def _added_sentence(of: ClosedForm, on: str) -> str:
    """What checkpoints and failures add to the job, of the first case."""
    t, s = of.totals, of.schedule
    if s.goodput is not None and s.goodput < HEADWAY_GOODPUT:
        return (
            f"On {on or of.subject.tier} the run makes next to no headway (goodput"
            f" {share(max(s.goodput, 0.0))}): nobody would let it go on."
        )
    told = {
        "kWh": t.energy,
        "GPU-h": t.gpu_time_lost,
        "USD": t.cost,
        "kgCO2e": t.emissions_location,
        "L of water": t.water,
    }
    amounts = [
        f"{number(q.value)} {unit}{_draws_text(q.low, q.high)}"
        for unit, q in told.items()
        if q.value is not None
    ]
    where = f" on {on}" if on else ""
    takes = ""
    if s.goodput is not None and s.wall_s is not None:
        takes = f"; it takes {duration(s.wall_s)}, goodput {share(s.goodput)}"
    return f"Checkpoints and failures add {_listing(amounts)} to this job{where}{takes}."


def least_of(cases: Sequence[CaseRow]) -> dict[str, CaseRow]:
    """Of several cases the one that adds least, for each amount in which they can be held against
    each other."""
    rows = [row for row in cases if ENDLESS not in row["cautions"]]
    if len(rows) < 2 or len({without_of(row) for row in rows}) > 1:
        return {}  # totals that lack different lines say nothing of each other
    return {
        amount: min(rows, key=lambda row: row[amount] or 0.0)
        for amount, _ in AMOUNTS
        if all(row[amount] is not None for row in rows)
    }


def without_of(row: CaseRow) -> tuple[str, ...]:
    """What the totals of a case lack."""
    return tuple(str(row[f"{what}_without"]) for what in ("energy", "cost", "emissions"))


def _least(cases: Sequence[CaseRow]) -> list[str]:
    """Of several cases the ones that add least, or why that cannot be said."""
    lost = [case_text(row, cases) for row in cases if ENDLESS in row["cautions"]]
    told = [f"All but never finished: {', '.join(lost)}."] if lost else []
    if len(cases) - len(lost) < 2:
        return told
    units = dict(AMOUNTS)
    least: dict[str, list[str]] = {}
    for amount, row in least_of(cases).items():
        ranged = _draws_text(row.get(f"{amount}_low"), row.get(f"{amount}_high"))
        said = f"{number(row[amount])} {units[amount]}{ranged}"
        least.setdefault(case_text(row, cases), []).append(said)
    if not least:
        why = "their totals lack different lines"
        return [*told, f"Which of the cases adds least is not known: {why}."]
    parts = "; ".join(f"{_listing(said)} with {name}" for name, said in least.items())
    return [*told, f"The least that one of {len(cases)} cases adds: {parts}."]


def case_text(row: CaseRow, cases: Sequence[CaseRow]) -> str:
    """A case as its row in the table is called."""
    tiers = {each["tier"] for each in cases}
    return (
        str(row["tier"])
        if len(tiers) == len(cases)
        else f"{row['tier']}, {count(row['saves'])} saves"
    )


def _rhythm(of: ClosedForm) -> str:
    """How often it saves and what one save does, beside the best interval."""
    s = of.schedule
    safe = f" and is safe {duration(s.lag_s)} later" if s.mode == "async" else ""
    best = s.best_interval_s.get("time") if s.failures else None
    lengths = [s.interval_s, *([best, s.best_interval_s.get("energy")] if best else [])]
    if s.stall_s > s.interval_s / NEAR:
        lengths.append(s.stall_s)
    known = [each for each in lengths if each]
    every, *others = (
        durations(lengths)
        if max(known) <= NEAR * min(known)
        else [duration(each) for each in lengths]
    )
    stall = others.pop() if s.stall_s > s.interval_s / NEAR else duration(s.stall_s)
    said = f"It saves every {every}; one save holds training up for {stall}{safe}."
    if best:
        said += f" The best interval for time is {others[0]}, for energy {others[1]}."
    return said


def _failures(of: ClosedForm) -> list[str]:
    s = of.schedule
    if not s.failures or s.lost_per_failure_s is None:
        return []
    return [
        f"A failure comes every {duration(s.mtbf_s)} and costs {duration(s.lost_per_failure_s)} on"
        " average."
    ]


def _deciding_inputs(of: ClosedForm) -> list[str]:
    """The inputs that the range of the energy hangs on."""
    factors = {f.id: f for f in of.factors}
    named = []
    for path in of.drawn.decided_by:
        f = factors[path]
        ranged = quantities(f.low, f.high, f.unit)
        origin = ORIGINS.get(f.origin, f.origin)
        named.append(f"{path} {quantity(f.value, f.unit)} ({ranged}, {origin})")
    if not named:
        return []
    return [f"The range of the energy comes most of all from {_listing(named)}."]


def _listing(parts: Sequence[str]) -> str:
    """ "a, b and c" """
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1]))) if parts else ""


# ---- inputs


def caution_sentences(
    names: Sequence[str], cautions: Sequence[Sequence[Caution]]
) -> list[tuple[str, str]]:
    """Each kind once, in the words of the first case it holds for; the others are named."""
    said: dict[str, list[tuple[str, str]]] = {}
    for name, own in zip(names, cautions, strict=True):
        for caution in own:
            said.setdefault(caution.code, []).append((name, caution_text(caution)))
    return [(code, caution_of_several(texts, len(names))) for code, texts in said.items()]


def basis_line(factors: Sequence[Factor]) -> str:
    """Of so many inputs, so many measured ..."""
    counts = Counter[str](f.origin for f in factors)
    order = ("measured", "published", "derived", "vendor", "user", "default")
    said = ", ".join(f"{counts[o]} {ORIGINS.get(o, o)}" for o in order if counts[o])
    return f"Of {len(factors)} inputs: {said}."


def assumed_lines(factors: Sequence[Factor]) -> list[str]:
    """Those that are assumed, with their ranges."""
    return [_assumption_text(f) for f in factors if f.origin == "default"]


def _assumption_text(f: Factor) -> str:
    given = count(f.value) if not f.unit else quantity(f.value, f.unit)
    if any(letter.isalpha() for letter in f.text):
        given = f.text
    elif f.value is None:
        given = "unlimited"
    return f"{f.id} = {given}{bracketed(quantities(f.low, f.high, f.unit))}"


def input_rows(factors: Sequence[Factor]) -> tuple[list[str], list[list[str]]]:
    """Header and rows of all inputs with their sources."""
    rows = [
        [
            f.id,
            f.text or quantity(f.value, f.unit),
            quantities(f.low, f.high, f.unit),
            f.origin,
            ", ".join(s.id for s in f.sources),
        ]
        for f in factors
    ]
    return ["input", "value", "range", "basis", "source"], rows
