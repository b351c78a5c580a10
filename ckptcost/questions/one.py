"""The answer about one plan: a checkpoint, the run, where the cost goes, why its range is wide."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ckptcost import advice
from ckptcost.answer import Column, Line, Plot, Quantity, Range, Say, Table
from ckptcost.plan import evaluate as ev
from ckptcost.plan import physics as ph
from ckptcost.plan.bill import OF_THE_JOB, QUANTITIES, Bill, label_of
from ckptcost.questions import common as q
from ckptcost.scenario.figures import Figure
from ckptcost.scenario.plausible import doubts
from ckptcost.scenario.resolve import DEFAULTS, Scenario
from ckptcost.scenario.schema import KEYS, Array
from ckptcost.scenario.units import number, show, show_range
from ckptcost.study import AHEAD, Study, ranges_of, read, unit_of, verdict

SHOWN = {
    "energy": ("energy", "kWh"),
    "gpu_time": ("GPU time", "GPU-h"),
    "cost": ("cost", "USD"),
    "carbon": ("emissions, location-based", "kgCO2e"),
}
"""the quantities of the first screen, what they are called, and in which unit"""
GROUPS = {
    "gpu_wait": "saving",
    "host_wait": "saving",
    "storage_write": "saving",
    "network": "saving",
    "requests": "saving",
    "slowdown": "slowed",
    "retention": "keeping",
    "redone_work": "lost",
    "restart": "back",
    "loading": "back",
}
"""lines of the bill that people see as one; the second tier's are one group, others stand alone"""
SHIFTED = 0.25
"""an interval that differs by more from the recommended one is worth a word"""
SECOND = 0.7
"""of what the first input explains: a second one is named if it explains more"""
WIDE = 2.0
"""from the low to the high end of a range: less needs no explanation"""


# --- one checkpoint, the run ----------------------------------------------------------------------


def single(study: Study) -> list[dict[str, Range]]:
    """By case: each quantity of one save."""
    with np.errstate(all="ignore"):
        bill = ev.one_save(study.drawn_world, study.drawn)
    return by_case(study, {quantity: bill.total(quantity) for quantity in QUANTITIES})


def by_case(study: Study, found: dict[str, Array]) -> list[dict[str, Range]]:
    """Ranges of what was found in the draws of all cases, by case."""
    shape = len(study.names), 1 + study.draws
    ranges = {name: ranges_of(np.broadcast_to(x, shape)) for name, x in found.items()}
    return [{name: each[row] for name, each in ranges.items()} for row in range(shape[0])]


def one_checkpoint(study: Study, row: int) -> Say:
    """How long training waits for it, when it is safe, what it takes."""
    stall, safe = study.value("stall", row), study.value("safe", row)
    waits = f"stops training for {show(stall, 's', 2)}"
    if safe > stall:
        words = f"{waits} and is safe {show(safe, 's', 2)} after it began."
    else:
        words = f"{waits} and is safe then."
    found = single(study)[row]
    energy = found["energy"].say("kWh", 2) if known(found["energy"]) else ""
    parts = [energy, *(plain(found[each], SHOWN[each][1]) for each in ("gpu_time", "cost"))]
    takes = q.and_join([part for part in parts if part])
    return Say(f"{words} It takes {takes}." if takes else words, "One checkpoint")


def known(value: Range) -> bool:
    return value.value == value.value


def plain(value: Range, unit: str) -> str:
    return in_words(show(value.value, unit, 2)) if known(value) else ""


def in_words(text: str) -> str:
    """
    >>> in_words("1,234 GPU-h"), in_words("5.43 USD/GPU-h")
    ('1,234 GPU-hours', '5.43 USD a GPU-hour')
    """
    text = text.replace("USD/GPU-h", "USD a GPU-hour")
    return re.sub(r"GPU-h\b", "GPU-hours", text) if "GPU-hour" not in text else text


def whole_run(study: Study, row: int) -> Say:
    """How long it takes, and how much of that is useful training."""
    goodput, wall = study.range("goodput", row), study.value("wall", row)
    if never(study, row):
        return Say(_why_never(study, row), "The whole run")
    words = f"takes {show(wall, 's')}; {percent(goodput)} is useful training."
    stuck = verdict(study.of("goodput", drawn=True)[row] < AHEAD)
    if stuck.draws and stuck.share >= 0.005:
        words += f" It gets nowhere {stuck.say()}: failures come too fast for it."
    return Say(words, "The whole run")


def percent(share: Range) -> str:
    """To a tenth, since what is lost is the rest: "98.9 % (96.2-99.4 %)"."""
    value, low, high = (f"{100 * each:.1f}" for each in share)
    return f"{value} % ({low}-{high} %)" if low != high else f"{value} %"


NEVER = 100.0
"""a run that takes so many times its training is said never to finish"""


def never(study: Study, row: int) -> bool:
    return not study.value("goodput", row) > 1.0 / NEVER


def _why_never(study: Study, row: int) -> str:
    every = show(study.value("mtbf", row), "s", 2)
    back = study.stated_of(study.stated.plan.back.exposed, row)
    cycle = study.value("interval", row) + study.value("stall", row)
    return (
        f"never finishes: a failure comes every {every}. Getting back takes {show(back, 's', 2)},"
        f" and the next checkpoint is done {show(cycle, 's', 2)} later."
    )


def added(study: Study, row: int) -> Table:
    """What checkpoints and failures add to the run."""
    columns = [
        Column("what", "Checkpoints and failures add"),
        Column("amount", "expected", "", "both"),
    ]
    rows: list[list[Any]] = [
        [name, Quantity(study.range(quantity, row), unit)]
        for quantity, (name, unit) in SHOWN.items()
    ]
    return Table("added", "", columns, rows, shown=not never(study, row))


# --- where it goes --------------------------------------------------------------------------------


def group_of(line: str) -> str:
    return "second" if line.startswith("second_") else GROUPS.get(line, line)


def groups(bill: Bill) -> dict[str, list[str]]:
    """Lines of the bill by group, in the bill's order."""
    found: dict[str, list[str]] = {}
    for line in bill.lines:
        found.setdefault(group_of(line), []).append(line)
    return found


def where(study: Study, row: int) -> Table:
    """The bill by groups of lines, those left out that are nothing throughout."""
    labels = _labels(study, row)
    rows: list[list[Any]] = []
    for group, lines in groups(study.drawn.bill).items():
        cells = [_sum_of(study, lines, quantity, row) for quantity in SHOWN]
        if any(known(cell) and cell.value != 0 for cell in cells):
            rows.append([labels.get(group) or label_of(lines[0]), *cells])
    columns = [Column("group", "Where it goes")]
    columns += [
        Column(quantity, unit, QUANTITIES[quantity][0]) for quantity, (_, unit) in SHOWN.items()
    ]
    return Table("where", "", columns, rows, shown=not never(study, row))


def _sum_of(study: Study, lines: list[str], quantity: str, row: int) -> Range:
    """Of lines of one case, by the rule of the bill: without a line of the job there is no sum."""
    shape = len(study.names), 1 + study.draws
    bill, needed = study.drawn.bill.lines, [line for line in lines if line in OF_THE_JOB]
    table = np.array([np.broadcast_to(bill[line][quantity], shape)[row] for line in lines])
    lacks = np.isnan(table).all(axis=0)
    for line in needed:
        lacks = lacks | np.isnan(table[lines.index(line)])
    return ranges_of(np.where(lacks, np.nan, np.nansum(table, axis=0))[None, :])[0]


def _labels(study: Study, row: int) -> dict[str, str]:
    keep = study.stated_of(study.w.policy.keep_last, row)
    saves, failures = study.value("saves", row), study.value("failures", row)
    count = "all of them" if keep >= saves else "the last" if keep == 1 else f"the last {keep:,g}"
    second = study.scenarios[row].said["second_tier"].get("id") or "the second tier"
    return {
        "saving": f"saving, {number(saves)} checkpoints",
        "slowed": "training slowed while they are written",
        "keeping": f"keeping {count}",
        "lost": f"work lost to about {number(failures, 2)} failures",
        "back": "restarting and loading",
        "second": f"saving to {second}",
    }


def lines(study: Study) -> Table:
    """Every line of the bill of every case, for files."""
    columns = [Column("case", "case"), Column("line", "line"), Column("words", "what")]
    columns += [Column(each, name, unit) for each, (unit, name) in QUANTITIES.items()]
    rows: list[list[Any]] = []
    found = [(line, by_case(study, of)) for line, of in study.drawn.bill.lines.items()]
    for row, name in enumerate(study.names):
        rows += [
            [name, line, label_of(line), *(of[row][quantity] for quantity in QUANTITIES)]
            for line, of in found
        ]
    return Table("lines", "Every line of the bill", columns, rows, shown=False)


# --- notes ----------------------------------------------------------------------------------------


def interruption(study: Study, row: int) -> Say | None:
    """What one failure costs on average."""
    o = study.stated
    if never(study, row) or not study.value("failures", row) > 0:
        return None
    lost, back = (study.stated_of(x, row) for x in (o.redone_per_failure, o.back_per_failure))
    gpus = study.stated_of(study.w.cluster.gpus, row)
    wasted = in_words(show((lost + back) * gpus, "GPU-h"))
    return Say(
        f"Each interruption wastes {show(lost + back, 's', 2)} x {gpus:,.0f} GPUs = {wasted}:"
        f" {show(lost, 's', 2)} of lost work, {show(back, 's', 2)} to get back."
    )


class Decides(NamedTuple):
    """An input that decides: in words, its value and range, and what to type for one's own."""

    path: str
    words: str
    basis: str
    said: str
    command: str


BASIS = {
    "assumed": "is assumed",
    "vendor": "is the vendor's figure",
    "measured": "was measured",
    "user": "is given with a range",
}
OFTEN = ("failures.rate_factor", "failures.rate", "failures.gpu_rate", "failures.mtbf")
"""figures that say how often the job fails: people know it as a time between failures"""
WORDS = {
    "policy.slowdown": "the share of training speed lost while a save is written",
    "policy.pinned": "the training speed that async costs all the time, such as by pinned memory",
    "policy.snapshot_rate": "the rate at which a GPU's share is copied to host memory",
    "tier.setup": "the time for planning, fsync and commit of a save",
    "tier.write": "the write rate of the storage",
    "tier.node_write": "the write rate of one node",
    "tier.storage_price": "the price of keeping bytes",
    "tier.write_energy": "the energy of writing a byte",
    "cluster.gpu_price": "the price of a GPU",
    "failures.detect": "the time until a failure is noticed",
    "failures.reschedule": "the time until new processes exist",
    "failures.init": "the time for starting processes and communicators",
    "site.grid_location": "the emission factor of the grid",
}
"""others are called by what the schema says of them"""


def decides(study: Study, row: int, path: str) -> Decides:
    """One input in words."""
    figure = study.scenarios[row].figures()[path]
    if path in OFTEN:
        mtbf = study.range("mtbf", row)
        ends = f"{show(mtbf.low, 's', 2)} to {show(mtbf.high, 's', 2)}"
        basis = BASIS.get(figure.basis, "is assumed from published jobs of its size")
        said = f"once in {show(mtbf.value, 's', 2)} ({ends})"
        return Decides(path, "how often this job fails", basis, said, '--mtbf "20 h"')
    section, key = path.split(".")
    meaning = str(KEYS[section][key].metadata["meaning"]).partition(";")[0]
    unit, example = unit_of(path), KEYS[section][key].metadata["example"]
    value = in_words(show(figure.value, unit, 3 if "USD" in unit else 2))
    said = f"{value} ({show_range(figure.low, figure.high, unit)})"
    command = PRICE if path == "cluster.gpu_price" else f'--set {path}="{example}"'
    basis = BASIS.get(figure.basis, "is taken from published figures")
    return Decides(path, WORDS.get(path, meaning), basis, said, command)


def measure_of(study: Study, row: int) -> str:
    """What people ask for first among what is known."""
    for measure in ("cost", "energy"):
        if known(study.range(measure, row)):
            return measure
    return "gpu_time"


def why_wide(study: Study, row: int) -> list[Say]:
    """The one or two inputs that decide."""
    measure = measure_of(study, row)
    whole, shares = study.range(measure, row), [*study.deciding(measure, row).items()]
    if not shares or whole.high < WIDE * whole.low:
        return []
    count = 2 if len(shares) > 1 and shares[1][1] > SECOND * shares[0][1] else 1
    found = [decides(study, row, path) for path, _ in shares[:count]]
    says = []
    for begin, each in zip(("Why so wide", "Also"), found, strict=False):
        says.append(
            Say(f"{begin}: {each.words} {each.basis}: {each.said}. Yours:", "", each.command)
        )
    return says


def better_interval(study: Study, row: int, typed: str) -> Say | None:
    """What `ckptcost interval` recommends, if the plan is far from it."""
    scenario = study.scenarios[row]
    if never(study, row) or advised(scenario):
        return None
    found, now = advice.advise(scenario), study.value("interval", row)
    if found is None or abs(found.interval / now - 1.0) <= SHIFTED:
        return None
    every = show(found.interval, "s", 2)
    also = _of_second(study, row, found.every)
    words = f"You would probably do better saving every {every}{also}:"
    return Say(words, "", f"ckptcost interval {typed}".rstrip())


def _of_second(study: Study, row: int, n: int) -> str:
    second = study.scenarios[row].said["second_tier"]
    if not second:
        return ""
    which = "each" if n == 1 else f"every {n}th"
    return f", {which} also to {second.get('id') or 'the second tier'}"


def advised(scenario: Scenario) -> bool:
    """The interval is already the recommended one."""
    figure = scenario.said["policy"].get("interval")
    return isinstance(figure, Figure) and figure.origin == advice.ORIGIN


def list_price(study: Study, row: int) -> Say | None:
    figure = study.scenarios[row].said["cluster"].get("gpu_price")
    if not isinstance(figure, Figure) or figure.basis == "user":
        return None
    price = in_words(show(figure.value, "USD/GPU-h"))
    return Say(f"{price} is a list price; yours:", "", PRICE)


PRICE = '--gpu-price "2.50 USD"'


def lacking(study: Study, row: int) -> list[Say]:
    """What is not known, once, with the keys that would supply it."""
    says, reasons = [], study.scenarios[row].lacking
    for measure, (words, paths) in SUPPLIED.items():
        lacks = [path for path in paths if path in reasons]
        if lacks and not known(study.range(measure, row)):
            why = q.and_join([reasons[path] for path in lacks])
            examples = (KEYS["cluster"][path.partition(".")[2]].metadata for path in lacks)
            pairs = zip(lacks, examples, strict=True)
            given = "\n".join(f'--set {path}="{about["example"]}"' for path, about in pairs)
            says.append(Say(f"{words} not known: {why}. Yours:", "", given))
    return says


SUPPLIED = {
    "energy": ("Energy and emissions are", ("cluster.gpu_train", "cluster.host_train")),
    "cost": ("Cost is", ("cluster.gpu_price",)),
}
"""which figures a quantity cannot do without"""
DETAIL = Say("Every line, input and source:", "", "--detail")


def about(study: Study, row: int) -> str:
    """The plan in one line: "980 GB each, async, every 30 min, to 25 GB/s storage; 30 days ..."."""
    every = f"every {show(study.value('interval', row), 's', 2)}"
    if study.stated_of(study.w.policy.interval, row) == 0:
        every = f"continuously ({every})"
    return job(study, row, every + (" (recommended)" if advised(study.scenarios[row]) else ""))


def job(study: Study, row: int, every: str = "") -> str:
    """What is saved, how and where, and for how long the job trains."""
    size = show(study.stated_of(study.stated.plan.first.stored, row), "B")
    mode = q.np_text(study.w.policy.mode, row)
    work = show(study.stated_of(study.w.run.work, row), "s", 2)
    parts = [f"{size} each", mode, every, f"to {to(study, row)}"]
    return f"{', '.join(part for part in parts if part)}; {work} of training"


def to(study: Study, row: int) -> str:
    """The tiers by name, or by their rate."""
    said = study.scenarios[row].said
    first = named(said["tier"], ph.rate(study.w, study.w.tier, "write"), study, row)
    if not said["second_tier"]:
        return first
    n = study.stated_of(study.w.policy.second_every, row)
    second_rate = ph.rate(study.w, study.w.second_tier, "write")
    second = named(said["second_tier"], second_rate, study, row)
    return f"{first}, {'each' if n == 1 else f'every {n:g}th'} also to {second}"


def named(tier: dict[str, Any], rate: Array, study: Study, row: int) -> str:
    speed = show(study.stated_of(rate, row), "B/s", 2)
    return f"{tier['id']} ({speed})" if tier.get("id") else f"{speed} storage"


def says(study: Study, row: int) -> list[Say]:
    return [*doubted(study, [row]), one_checkpoint(study, row), whole_run(study, row)]


def notes(study: Study, row: int, typed: str) -> list[Say]:
    """What else to know, and what to type next."""
    found = [
        interruption(study, row),
        beyond_measured(study, row),
        *lacking(study, row),
        *(inputs_of(study, row) if not never(study, row) else []),
        unmeasured(study, row),
        better_interval(study, row, typed),
        DETAIL,
    ]
    return [each for each in found if each]


def beyond_measured(study: Study, row: int) -> Say | None:
    """That the rate is extrapolated, with the key that would give the limit."""
    if not study.limit_unknown(row):
        return None
    rate = study.stated_of(ph.rate(study.w, study.w.tier, "write"), row)
    return Say(
        f"Nobody has measured this storage at {show(rate, 'B/s', 2)}: the limit of the whole system"
        " is not known. If you know it:",
        "",
        LIMIT,
    )


LIMIT = '--set tier.write="100 GB/s"'


def unmeasured(study: Study, row: int) -> Say | None:
    """What an asynchronous job should measure first, since reports of it differ so much."""
    figure = study.scenarios[row].said["policy"].get("slowdown")
    is_async = q.np_text(study.w.policy.mode, row) == "async"
    if not is_async or not isinstance(figure, Figure) or figure.origin != DEFAULTS:
        return None
    slowed = f"{show(figure.value, 'share', 2)} ({show_range(figure.low, figure.high, 'share')})"
    return Say(
        f"Other async jobs train {slowed} slower while a save is written. Measure yours:",
        "",
        "ckptcost run -- python train.py",
    )


def inputs_of(study: Study, row: int) -> list[Say]:
    """What the range rests on, and that a price is from a list if that was not said there."""
    found, price = why_wide(study, row), list_price(study, row)
    priced = any(each.command == PRICE for each in found)
    return [*found, *([price] if price and not priced else [])]


# --- the plot -------------------------------------------------------------------------------------

AROUND = np.geomspace(0.1, 10.0, 61)
"""intervals of the curve, by the plan's own"""


def curve(study: Study, rows: list[int], names: list[str]) -> Plot:
    """What a longer or shorter interval would add, a line for each case, the plan's own marked."""
    measure = measure_of(study, rows[0]) if len(rows) == 1 else "goodput"
    lines, marks = [], []
    for row, name in zip(rows, names, strict=True):
        now = study.value("interval", row)
        x = now * AROUND[now * AROUND <= study.stated_of(study.w.run.work, row)]
        y = read(measure, study.at(row, x))[:, 0]
        lines.append(Line(name, x.tolist(), y.tolist()))
        marks.append(("now", now, study.value(measure, row)))
    name, unit = SHOWN.get(measure, ("useful training", "share"))
    title = f"What the interval decides: {name}"
    alone = tuple(marks) if len(marks) == 1 else ()
    return Plot(title, "training time between saves [s]", f"{name} [{unit}]", lines, alone, True)


def doubted(study: Study, rows: Iterable[int]) -> list[Say]:
    """Inputs that lie far outside what is usual: to be checked before anything is concluded."""
    found = dict.fromkeys(each.say() for row in rows for each in doubts(study.scenarios[row]))
    return [Say(words, "Check first") for words in [*found][:2]]
