"""From a store to a study: list, merge, sum up, and say it. The one way for the command line and
for Python."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from math import inf, nan
from typing import TYPE_CHECKING, Final, NamedTuple

from ckptcost.first.core.estimates import Estimate
from ckptcost.first.core.measures import BILLED
from ckptcost.first.core.quantities import EVERYDAY, LineField
from ckptcost.first.core.units import HOUR_S, to_hours, to_kwh
from ckptcost.first.errors import Argument, InputError, UnknownName, brief
from ckptcost.first.fleet import bill_tables
from ckptcost.first.fleet.engine import collect_parts, group_by_job_day
from ckptcost.first.fleet.figures import Fleet, GroupFigures, fleet_of
from ckptcost.first.fleet.lines import FleetAmount, FleetLine, scenario_of
from ckptcost.first.fleet.part import StorePart
from ckptcost.first.fleet.runs_seen import days_without
from ckptcost.first.fleet.savings import Savings, savings_of, savings_sentence, savings_tables
from ckptcost.first.fleet.store import Store, open_store
from ckptcost.first.fleet.tiers import TierSeen, tier_table, tiers_of
from ckptcost.first.fleet.worst import Worst, worst_job_table, worst_of, worst_tables
from ckptcost.first.jobs.gates import Gate, GateVerdict, check_gates, no_percentiles
from ckptcost.first.present.amounts import count, duration, number, share, size
from ckptcost.first.present.words import METHODS, line_label
from ckptcost.first.report.study import Bills, Study

if TYPE_CHECKING:
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.report.statement import Statement
    from ckptcost.first.scenario import Resolved


# A fleet as a study: sentences first, then the tables, and a statement for each job.


MOST_NAMED = 3
"""in a sentence; the tables have all"""
OF_NEARLY_ALL = 0.99
OF_MANY = 0.01


class Findings(NamedTuple):
    """All that was found in a store."""

    fleet: Fleet
    """by what was asked for"""
    part: StorePart
    savings: Savings
    tiers: Sequence[TierSeen]
    worst: Worst
    strange: Sequence[str]
    """files that no fleet puts there"""


def study_of(asked: FleetQuestion, found: Findings, verdicts: Sequence[GateVerdict]) -> Study:
    placed, fleet = asked.resolved is not None, found.fleet
    simulated = bool(len(found.part.heads)) and bool(found.part.heads["simulated"].all())
    tables = [
        bill_tables.groups(fleet, placed),
        bill_tables.lines(fleet.whole, placed),
        *savings_tables(found.savings, placed),
        *bill_tables.failures(fleet),
        worst_job_table(found.worst),
        *worst_tables(found.worst),
        tier_table(found.tiers),
        bill_tables.days(fleet, placed),
        bill_tables.missing(fleet),
        bill_tables.aside(found.part, found.strange),
        bill_tables.clocks(found.part),
    ]
    return Study(
        kind="fleet",
        title=f"A fleet of {_many(fleet.whole.nodes, 'node')}, {_span(fleet)}"
        + (", made up or simulated" if simulated else ""),
        about=_about(asked, fleet),
        question={
            "by": asked.by,
            "since": asked.since or None,
            "until": asked.until or None,
            "jobs": list(asked.jobs),
            "site": None if asked.resolved is None else asked.resolved.names.get("site"),
        },
        tables=tables,
        findings=[text for text in _findings(found, placed) if text],
        warnings=list(_warnings(found, placed)),
        gates=list(verdicts),
        resolved=[] if asked.resolved is None else [asked.resolved],
        simulated=simulated,
        bills=Bills(lambda catalog: _bills(asked, found, catalog)),
    )


def _bills(asked: FleetQuestion, found: Findings, catalog: Catalog) -> list[Statement]:
    from ckptcost.first.fleet.statements import statements_of

    return statements_of(found.part, found.fleet, asked.resolved, asked.priced, catalog)


def _span(fleet: Fleet) -> str:
    days = [group.name for group in fleet.trend]
    return days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}" if days else "no day"


def _about(asked: FleetQuestion, fleet: Fleet) -> list[str]:
    whole = fleet.whole
    only = f" Only {', '.join(asked.jobs)}." if asked.jobs else ""
    return [
        (
            f"{_many(whole.jobs, 'job')}, {_many(whole.runs, 'run')},"
            f" {_many(whole.checkpoints, 'checkpoint')} of {size(whole.bytes)} in all,"
            f" {_many(whole.loads, 'load')}.{only}"
        ),
        (
            "Energies are the machines' own: no PUE."
            if asked.resolved is None
            else f"At {asked.resolved.names.get('site', 'a site')}"
            f"{_carbon_counted(asked.resolved)}."
        ),
    ]


def _carbon_counted(resolved: Resolved) -> str:
    """What its kgCO2e counts, where it has a grid."""
    if "site.grid_method" not in resolved.words:
        return ""
    return f"; kgCO2e is location-based, of {METHODS[resolved.grid_method]}"


def _many(number_: int, what: str) -> str:
    return f"{count(float(number_))} {what}{'' if number_ == 1 else 's'}"


def _findings(found: Findings, placed: bool) -> list[str]:
    whole = found.fleet.whole
    said = [_took(whole, placed)]
    said += [
        _goodput(found),
        _waiting(found),
        savings_sentence(found.savings),
        _missing(found.fleet),
    ]
    if whole.failed_saves:
        said.append(
            f"{_many(whole.failed_saves, 'save')} began and was never completed."
            if whole.failed_saves == 1
            else f"{_many(whole.failed_saves, 'save')} began and were never completed."
        )
    return said


def _took(whole: GroupFigures, placed: bool) -> str:
    """In each quantity that there is a sum of: first those of which all is known, then what is more
    than that."""
    if not whole.totals.gpu_s.known:
        return ""
    exact: list[str] = []
    least: list[str] = []
    for q in EVERYDAY:
        amount: FleetAmount = getattr(whole.totals, q.field)
        if amount.known and (placed or q.metered):
            said = f"{number(q.people(amount.value))} {q.unit.replace('GPU-h', 'GPU-hours')}"
            (least if _is_least(whole, q.field) else exact).append(said)
    if not exact and len(least) > 1:
        return f"Checkpoints and failures took at least {', '.join(least[:-1])} and {least[-1]}."
    return (
        "Checkpoints and failures took"
        f" {', '.join((*exact, *(f'at least {text}' for text in least)))}."
    )


def _is_least(whole: GroupFigures, quantity: LineField) -> bool:
    """Of saves that failed nobody knows the joules: those few make no sum the least."""
    lacks = whole.totals.lacks[quantity]
    shares = [line.known[quantity] for line in whole.lines if line.id in lacks]
    return any(known < OF_NEARLY_ALL * of for known, of in shares)


def _goodput(found: Findings) -> str:
    whole, failures = found.fleet.whole, found.fleet.failures
    mtbf = failures.node_mtbf_s
    kept = f"Goodput {share(whole.goodput)}. " if whole.goodput == whole.goodput else ""
    if not whole.failures:
        least = f": a node lasts {duration(mtbf.low)} or longer (95 %)" if mtbf.low else ""
        return f"{kept}No run failed{least}."
    spread = ""
    if mtbf.low is not None and mtbf.high is not None:
        spread = f" ({number(mtbf.low / HOUR_S)} to {number(mtbf.high / HOUR_S)} h)"
    return (
        f"{kept}{_many(whole.failures, 'failure')}: a node lasts {number(mtbf.value / HOUR_S)} h in"
        f" the mean{spread}.{_evenness(failures.shape)}"
    )


def _evenness(shape: Estimate) -> str:
    if not shape.known or shape.low is None or shape.high is None:
        return ""
    if shape.high < 1:
        return " More often soon after a start than later."
    return " More often the longer a run lasts." if shape.low > 1 else ""


def _waiting(found: Findings) -> str:
    hosts = [host for host in found.worst.hosts if host.share == host.share]
    line = _line(found.fleet.whole, "waiting")
    if line is None or not line.gpu_s.known or line.gpu_s.value <= 0 or not hosts:
        return ""
    named = ", ".join(f"{host.host} ({share(host.share)})" for host in hosts[:MOST_NAMED])
    return (
        f"{number(to_hours(line.gpu_s.value))} GPU-hours of that are nodes that were done and"
        f" waited, most for {named}."
    )


def _line(whole: GroupFigures, name: str) -> FleetLine | None:
    return next((line for line in whole.lines if line.id == name), None)


def _missing(fleet: Fleet) -> str:
    names = sorted({node.host for run in fleet.lacking for node in run.missing})
    unnamed = sum(run.unnamed for run in fleet.lacking)
    if not names and not unnamed:
        return ""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    told = ", ".join(names[:MOST_NAMED]) + more
    whom = "; ".join(filter(None, (told, f"{unnamed} whose names nobody says" * bool(unnamed))))
    estimate = _estimate_text(_line(fleet.whole, "missing_nodes"))
    return f"Missing: {whom}{estimate}, on a line of its own."


def _estimate_text(line: FleetLine | None) -> str:
    if line is None or not line.gpu_s.known:
        return ""
    said = f": estimated at {number(to_hours(line.gpu_s.value))} GPU-hours"
    if line.energy_j.known:
        value, low, high = (number(to_kwh(end)) for end in line.energy_j)
        high = "more" if line.energy_j.high == inf else high
        said += f" and {value} kWh ({low} to {high})"
    return said


def _lacks(line: FleetLine) -> str:
    """A line whose joules are unknown, or of much of it. Of saves that failed nobody knows them;
    those few are in the table."""
    some, of = line.known["energy_j"]
    if not of or some >= OF_NEARLY_ALL * of:
        return ""
    lacking = "all" if not some else share(1.0 - some / of)
    return f"{lacking} of {line_label(line.id)}"


def _warnings(found: Findings, placed: bool) -> Iterator[tuple[str, str]]:
    whole, lacking = found.fleet.whole, found.fleet.lacking
    if not placed:
        yield "NO_SITE", bill_tables.NO_SITE
    yield from _files_aside(found)
    yield from _lost_days(found.fleet)
    if silent := sum(len(run.silent) for run in lacking):
        yield (
            "SILENT",
            f"{_many(silent, 'node')} recorded without saves that others have: counted as waiting,"
            " by estimate.",
        )
    if lacks := ", ".join(filter(None, map(_lacks, whole.lines))):
        yield "UNKNOWN", f"Energy not known: {lacks}."
    yield from _unknown_saves(whole)
    unsure = found.part.heads["offset_unsure_s"] if len(found.part.heads) else []
    worst_s = max((float(each) for each in unsure if each == each), default=0.0)
    if worst_s > 0.1:
        yield "CLOCKS", f"Clocks are known to {duration(worst_s)} at worst; table clocks."


def _files_aside(found: Findings) -> Iterator[tuple[str, str]]:
    files = found.part.files
    codes = Counter(str(code) for code in files["code"] if code) if len(files) else Counter[str]()
    codes.update("UNREADABLE" if "/ " in name else "STRAY" for name in found.strange)
    for code, many in sorted(codes.items()):
        yield (
            code,
            f"{_many(many, 'file')} set aside: {bill_tables.CODE_WORDS.get(code, code)}."
            " `-f csv --table aside` names them.",
        )


def _lost_days(fleet: Fleet) -> Iterator[tuple[str, str]]:
    lost = {run.job: len(days) for run in fleet.runs if (days := days_without(run, fleet.cells))}
    if lost:
        named = ", ".join(sorted(lost)[:MOST_NAMED])
        yield (
            "LOST_DAYS",
            f"{_many(sum(lost.values()), 'day')} of runs without any file ({named}): what they held"
            " is in no sum.",
        )


def _unknown_saves(whole: GroupFigures) -> Iterator[tuple[str, str]]:
    """Of more than one in a hundred; fewer are in hidden columns."""
    saves = _many(whole.checkpoints, "checkpoint")
    if (some := whole.unknown.get("bytes", 0)) > OF_MANY * whole.checkpoints:
        yield (
            "UNKNOWN_BYTES",
            f"Bytes not known of {count(float(some))} of {saves}: they are not in the sum.",
        )
    if (some := whole.unknown.get("done_stall", 0)) > OF_MANY * whole.checkpoints:
        assumed = " Goodput takes them to have been as long as the others of their run."
        yield (
            "UNKNOWN_STALLS",
            f"Nobody says how long {count(float(some))} of {saves} held training up."
            f"{assumed if whole.unknown.get('assumed') else ''}",
        )
    if runs := whole.unknown.get("useful", 0):
        yield (
            "UNKNOWN_WORK",
            f"How much of {_many(runs, 'run')} was work is not known: goodput is of the others, if"
            " any.",
        )


LOST: Final = ("CORRUPT", "TRUNCATED", "FUTURE", "UNREADABLE", "SKEWED", "UNSTEADY")
"""codes of files that held something"""
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")


class FleetQuestion(NamedTuple):
    """Of which part of a store, grouped how, standing where."""

    store: str
    by: str = "job"
    since: str = ""
    until: str = ""
    """days, UTC, both included"""
    jobs: Sequence[str] = ()
    scheduler: str = "pandas"
    top: int = 10
    resolved: Resolved | None = None
    """site and prices; None: joules as metered, and neither dollars nor carbon"""
    priced: bool = True
    """whether GPU time has the price that `resolved` says, or only its site counts"""
    machine: bool = False
    """whether `resolved` is of these machines: a scenario that somebody named"""


def answer_of(
    asked: FleetQuestion, gates: Sequence[Gate] = (), tell: Callable[[int, int], None] | None = None
) -> Study:
    """The fleet as a study. Raises InputError where the store holds nothing of what is asked
    for."""
    no_percentiles(gates, "fleet")
    _check_days(asked)
    store = open_store(asked.store)
    # a save at midnight may lie in part with the day beside
    entries, strange = store.looked_through(
        _beside(asked.since, -1), _beside(asked.until, 1), asked.jobs
    )
    if not any(_inside(asked, entry.day) for entry in entries):
        raise _nothing(store, asked)
    part = _counting(collect_parts(store, group_by_job_day(entries), asked.scheduler, tell), asked)
    s = scenario_of(asked.resolved, asked.priced)
    if s is not None and not asked.machine:
        # how fast its GPUs copy, a scenario that nobody named does not know
        s = replace(s, cluster=replace(s.cluster, gpu_d2h_bytes_per_s=inf))
    fleet = fleet_of(part, asked.by, s)
    findings = Findings(
        fleet,
        part,
        savings_of(part, fleet, s),
        tiers_of(part, fleet.cells),
        worst_of(part, fleet, asked.top),
        strange,
    )
    return study_of(asked, findings, verdicts_of(fleet, part, gates))


def _nothing(store: Store, asked: FleetQuestion) -> InputError:
    """What there would be instead."""
    all_of_it = store.listing()
    if not all_of_it:
        return InputError(
            "is empty",
            where=asked.store,
            remedy="`ckptcost runs pack --all --store STORE` fills it",
        )
    jobs = sorted({entry.job for entry in all_of_it})
    for job in asked.jobs:
        if job not in jobs:
            return UnknownName("job", job, jobs, where=Argument("jobs"))
    days = sorted({entry.day for entry in all_of_it if not asked.jobs or entry.job in asked.jobs})
    return InputError(
        "holds nothing of these days", where=asked.store, remedy=f"it has {days[0]} to {days[-1]}"
    )


def _counting(part: StorePart, asked: FleetQuestion) -> StorePart:
    """Of the days that were asked for. Raises InputError where no file of them counts: that is not
    nothing, it is not known."""
    found = _cut(part, asked)
    if len(found.heads):
        return found
    why = sorted({str(code) for code in found.files["code"] if code}) if len(found.files) else []
    first = f"; the first: {found.files['text'].iloc[0]}" if why else ""
    raise InputError(
        f"no file of it counts ({', '.join(why) or 'none is of these days'}{first})",
        where=asked.store,
        remedy="pack these runs again",
    )


def _inside(asked: FleetQuestion, day: str) -> bool:
    return asked.since <= day and (not asked.until or day <= asked.until)


def _beside(day: str, by: int) -> str:
    return (date.fromisoformat(day) + timedelta(days=by)).isoformat() if day else ""


def _cut(part: StorePart, asked: FleetQuestion) -> StorePart:
    """What is of the days that were asked for, by the jobs' clocks. A run that began before is seen
    from there on."""
    if not asked.since and not asked.until:
        return part
    heads = part.heads
    if asked.since and len(heads):
        first_ns = int(datetime.fromisoformat(f"{asked.since}T00:00:00+00:00").timestamp()) * 10**9
        heads = heads.assign(
            run_began_ns=heads["run_began_ns"].where(
                heads["run_began_ns"] == 0, heads["run_began_ns"].clip(lower=first_ns)
            )
        )
    found = []
    for frame in part._replace(heads=heads):
        found.append(
            frame[[_inside(asked, str(day)) for day in frame["day"]]].reset_index(drop=True)
            if len(frame)
            else frame
        )
    return StorePart(*found)


def _check_days(asked: FleetQuestion) -> None:
    for name, day in (("since", asked.since), ("until", asked.until)):
        _is_day(day, Argument(name))
    if asked.since and asked.until and asked.since > asked.until:
        raise InputError(f"{asked.since} is after {asked.until}", where=Argument("since"))


def _is_day(text: str, where: str) -> None:
    if not text:
        return
    try:
        if not _DAY.fullmatch(text):
            raise ValueError
        date.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"{brief(text)} is no day", where=where, remedy="e.g. 2026-11-01"
        ) from None


def files_not_estimated(part: StorePart) -> list[str]:
    """Files that were set aside and of whose job's day nothing else is there, so that no estimate
    stands for them."""
    if not len(part.files):
        return []
    there = set(zip(part.heads["job"], part.heads["day"], strict=True))
    bad = part.files[part.files["code"].isin(LOST)]
    return [
        str(path)
        for path, job, day in zip(bad["path"], bad["job"], bad["day"], strict=True)
        if (job, day) not in there
    ]


def verdicts_of(fleet: Fleet, part: StorePart, gates: Sequence[Gate]) -> list[GateVerdict]:
    """Budgets against the whole fleet. What is not known meets none, and what lies in files that
    cannot be read is not known."""
    whole = fleet.whole
    known = {
        "goodput": whole.goodput,
        **{name: getattr(whole.totals, q.field).value for name, q in BILLED.items()},
        "stall": whole.stalls.mean_s,
        "saves": float(whole.checkpoints),
        "saves_per_day": whole.saves_per_day,
        "failures": float(whole.failures),
        "wall": nan,
        "interval": nan,
    }
    if files_not_estimated(part):
        known = dict.fromkeys(known, nan)
    for gate in gates:
        if gate.measure.id in ("wall", "interval"):
            raise InputError(
                f"a fleet has no {gate.measure.id}",
                where=gate.text,
                remedy=f"one of {', '.join(list(known)[:-2])}",
            )
    return check_gates(gates, lambda gate: known[gate.measure.id])
