"""The answer about one plan: a checkpoint, the run, where the cost goes, why its range is wide."""

from __future__ import annotations

import re
from collections.abc import Iterable
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from ckptcost import advice
from ckptcost.answer import Column, Line, Plot, Quantity, Range, Say, Table
from ckptcost.plan import evaluate as ev
from ckptcost.plan import physics as ph
from ckptcost.plan.bill import QUANTITIES, Bill, label_of
from ckptcost.plan.plausible import doubts
from ckptcost.questions import common as q
from ckptcost.scenario.figures import Figure
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
    **dict.fromkeys(("gpu_wait", "host_wait", "storage_write", "network", "requests"), "saving"),
    "slowdown": "slowed",
    "retention": "keeping",
    "redone_work": "lost",
    "restart": "back",
    "loading": "back",
}
"""lines of the bill that people see as one; the second tier's are one group, others stand alone"""
SHIFTED = 0.25
"""an interval that differs by more from the recommended one is worth a word"""
WIDE = 2.0
"""from the low to the high end of a range: less needs no explanation"""
NEVER = 100.0
"""a run that takes so many times its training is said never to finish"""
PRICE, LIMIT = '--gpu-price "2.50 USD"', '--set tier.write="100 GB/s"'
MEASURE = "ckptcost run -- python train.py"


def by_case(study: Study, drawn: Array) -> list[Range]:
    """Ranges of something that was computed in the draws of all cases."""
    return ranges_of(np.broadcast_to(drawn, (len(study.names), 1 + study.draws)))


def known(value: Range) -> bool:
    return value.value == value.value


def in_words(text: str) -> str:
    """
    >>> in_words("1,234 GPU-h"), in_words("5.43 USD/GPU-h")
    ('1,234 GPU-hours', '5.43 USD a GPU-hour')
    """
    return re.sub(r"GPU-h\b", "GPU-hours", text.replace("USD/GPU-h", "USD a GPU-hour"))


# --- the plan in a line ---------------------------------------------------------------------------


def facts(study: Study, row: int) -> dict[str, str]:
    """What is saved, how, how often and where; by whom, and for how long they train."""
    w, accelerator = study.w, study.scenarios[row].names.get("accelerator")
    gpus = f"{study.stated_of(w.cluster.gpus, row):,.0f}"
    every = f"every {show(study.value('interval', row), 's', 2)}"
    if study.stated_of(w.policy.interval, row) == 0:
        every = "continuously (each save begins when the last one is safe)"
    elif advised(study.scenarios[row]) and not never(study, row):
        every += " (recommended)"
    return {
        "size": f"{show(study.stated_of(study.stated.plan.first.stored, row), 'B')} each",
        "mode": q.np_text(w.policy.mode, row),
        "every": every,
        "to": f"to {_tiers(study, row)}",
        "gpus": f"{gpus} x {accelerator}" if accelerator else f"{gpus} accelerators",
        "work": f"{show(study.stated_of(w.run.work, row), 's', 2)} of training",
        "mtbf": f"a failure every {show(study.value('mtbf', row), 's', 2)}",
    }


def about(study: Study, row: int) -> str:
    """The plan in one line: "980 GB each, async, every 30 min, to 25 GB/s storage; 30 days ..."."""
    of = facts(study, row)
    return f"{of['size']}, {of['mode']}, {of['every']}, {of['to']}; {of['work']}"


def job(study: Study, row: int) -> str:
    """The same without how often it saves."""
    of = facts(study, row)
    return f"{of['size']}, {of['mode']}, {of['to']}; {of['work']}"


def shared(study: Study, *keys: str) -> list[str]:
    """Those facts that are the same in all cases."""
    found = [facts(study, row) for row in range(len(study.names))]
    return [found[0][key] for key in keys if len({each[key] for each in found}) == 1]


def _tiers(study: Study, row: int) -> str:
    """The tiers by name, or by their rate."""
    w, said, called = study.w, study.scenarios[row].said, []
    for section, tier in (("tier", w.tier), ("second_tier", w.second_tier)):
        rate = show(study.stated_of(ph.rate(w, tier, "write"), row), "B/s", 2)
        name = said[section].get("id")
        called.append(f"{name} ({rate})" if name else f"{rate} storage")
    n = study.stated_of(w.policy.second_every, row)
    return f"{called[0]}, {nth(n)} also to {called[1]}" if said["second_tier"] else called[0]


def nth(n: float) -> str:
    return "each" if n == 1 else f"every {n:g}th"


def advised(scenario: Scenario) -> bool:
    """The interval is already the recommended one."""
    figure = scenario.said["policy"].get("interval")
    return isinstance(figure, Figure) and figure.origin == advice.ORIGIN


def never(study: Study, row: int) -> bool:
    return not study.value("goodput", row) > 1.0 / NEVER


# --- one checkpoint, the run ----------------------------------------------------------------------


def doubted(study: Study, rows: Iterable[int]) -> list[Say]:
    """Inputs that lie far outside what is usual: to be checked before anything is concluded."""
    found = dict.fromkeys(each.say() for row in rows for each in doubts(study.scenarios[row]))
    return [Say(words, "Check first") for words in [*found][:2]]


def one_save(study: Study) -> Bill:
    """What one save takes, in all cases and draws."""
    with np.errstate(all="ignore"):
        return ev.one_save(study.drawn_world, study.drawn)


def one_checkpoint(study: Study, row: int) -> Say:
    """How long training waits for it, when it is safe, what it takes."""
    bill, parts = one_save(study), []
    for quantity in ("energy", "gpu_time", "cost"):
        found, unit = by_case(study, bill.total(quantity))[row], SHOWN[quantity][1]
        said = found.say(unit, 2) if quantity == "energy" else show(found.value, unit, 2)
        parts += [in_words(said)] if known(found) else []
    takes = f" It takes {q.and_join(parts)}." if parts else ""
    return Say(f"{_stops(study, row)}{takes}", "One checkpoint")


def _stops(study: Study, row: int) -> str:
    """How long training waits, and when the checkpoint is safe from what."""
    stall, safe = study.value("stall", row), study.value("safe", row)
    after = f"safe {show(safe, 's', 2)} after it began" if safe > stall else "safe then"
    words = f"stops training for {show(stall, 's', 2)} and is {after}"
    if q.np_text(study.w.tier.survives, row) != "process":
        return f"{words}."
    words += ", but not from the loss of a node."
    second = study.stated.plan.second
    if not study.scenarios[row].said["second_tier"]:
        return words
    copied = safe + study.stated_of(second.stall + second.lag, row)
    which = nth(study.stated_of(study.w.policy.second_every, row)).capitalize()
    return f"{words} {which} is safe from that too, after {show(copied, 's', 2)}."


def second_name(study: Study, row: int) -> str:
    return study.scenarios[row].said["second_tier"].get("id") or "the second tier"


def whole_run(study: Study, row: int) -> Say:
    """How long it takes, and how much of that is useful training."""
    label = "The whole run"
    if never(study, row):
        every = show(study.value("mtbf", row), "s", 2)
        back = show(study.stated_of(study.stated.plan.back.exposed, row), "s", 2)
        cycle = show(study.value("interval", row) + study.value("stall", row), "s", 2)
        return Say(
            f"never finishes: a failure comes every {every}. Getting back takes {back}, and the"
            f" next checkpoint is done {cycle} later.",
            label,
        )
    value, low, high = (f"{100 * each:.1f}" for each in study.range("goodput", row))
    share = f"{value} % ({low}-{high} %)" if low != high else f"{value} %"
    words = f"takes {show(study.value('wall', row), 's')}; {share} is useful training."
    stuck = verdict(study.of("goodput", drawn=True)[row] < AHEAD)
    if stuck.draws and stuck.share >= 0.005:
        words += f" It gets nowhere {stuck.say()}: failures come too fast for it."
    return Say(words, label)


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


def where(study: Study, row: int) -> Table:
    """The bill by groups of lines, those left out that are nothing throughout."""
    labels, groups = _labels(study, row), dict[str, list[str]]()
    for line in study.drawn.bill.lines:
        group = "second" if line.startswith("second_") else GROUPS.get(line, line)
        groups.setdefault(group, []).append(line)
    rows: list[list[Any]] = []
    for group, names in groups.items():
        part = copy(study.drawn.bill)
        part.lines = {line: study.drawn.bill.lines[line] for line in names}
        cells = [by_case(study, part.total(quantity))[row] for quantity in SHOWN]
        if any(abs(cell.value) > 0 for cell in cells):
            rows.append([labels.get(group) or label_of(group), *cells])
    columns = [Column("group", "Where it goes")]
    columns += [Column(each, unit, QUANTITIES[each][0]) for each, (_, unit) in SHOWN.items()]
    return Table("where", "", columns, rows, shown=not never(study, row))


def _labels(study: Study, row: int) -> dict[str, str]:
    """What groups of lines are called."""
    keep, saves = study.stated_of(study.w.policy.keep_last, row), study.value("saves", row)
    last = "all of them" if keep >= saves else "the last" if keep == 1 else f"the last {keep:,g}"
    return {
        "saving": f"saving, {number(saves)} checkpoints",
        "slowed": "training slowed while they are written",
        "keeping": f"keeping {last}",
        "lost": f"work lost to about {number(study.value('failures', row), 2)} failures",
        "back": "restarting and loading",
        "second": f"saving to {second_name(study, row)}",
    }


def lines(study: Study) -> Table:
    """Every line of the bill of every case, for files."""
    columns = [Column("case", "case"), Column("line", "line"), Column("words", "what")]
    columns += [Column(each, name, unit) for each, (unit, name) in QUANTITIES.items()]
    found = {
        line: [by_case(study, of[quantity]) for quantity in QUANTITIES]
        for line, of in study.drawn.bill.lines.items()
    }
    rows: list[list[Any]] = [
        [name, line, label_of(line), *(ranges[row] for ranges in of)]
        for row, name in enumerate(study.names)
        for line, of in found.items()
    ]
    return Table("lines", "Every line of the bill", columns, rows, shown=False)


# --- notes ----------------------------------------------------------------------------------------


def notes(study: Study, row: int, typed: str) -> list[Say]:
    """What else to know, and what to type next."""
    hopeless = never(study, row)
    inputs = [] if hopeless else inputs_of(study, row)
    measured = any(each.command == MEASURE for each in inputs)
    return [
        *([] if hopeless else interruption(study, row)),
        *beyond_measured(study, row),
        *lacking(study, row),
        *inputs,
        *([] if measured else unmeasured(study, row)),
        *([] if hopeless else better_interval(study, row, typed)),
    ]


def interruption(study: Study, row: int) -> list[Say]:
    """What one failure costs on average."""
    o = study.stated
    if not study.value("failures", row) > 0:
        return []
    lost, back = (study.stated_of(x, row) for x in (o.redone_per_failure, o.back_per_failure))
    gpus = study.stated_of(study.w.cluster.gpus, row)
    wasted = in_words(show((lost + back) * gpus, "GPU-h"))
    return [
        Say(
            f"Each interruption wastes {show(lost + back, 's', 2)} x {gpus:,.0f} GPUs = {wasted}:"
            f" {show(lost, 's', 2)} of lost work, {show(back, 's', 2)} to get back."
        )
    ]


def beyond_measured(study: Study, row: int) -> list[Say]:
    """That the rate is extrapolated, with the key that would give the limit."""
    if not study.limit_unknown(row):
        return []
    rate = show(study.stated_of(ph.rate(study.w, study.w.tier, "write"), row), "B/s", 2)
    words = f"Nobody has measured this storage at {rate}: the limit of the whole system is not"
    return [Say(f"{words} known. If you know it:", "", LIMIT)]


SUPPLIED = {
    "energy": ("Energy and emissions are", ("cluster.gpu_train", "cluster.host_train")),
    "cost": ("Cost is", ("cluster.gpu_price",)),
}
"""which figures a quantity cannot do without"""


def lacking(study: Study, row: int) -> list[Say]:
    """What is not known, once, with the keys that would supply it."""
    found, reasons = [], study.scenarios[row].lacking
    for measure, (words, paths) in SUPPLIED.items():
        lacks = [path for path in paths if path in reasons]
        if lacks and not known(study.range(measure, row)):
            why = q.and_join([reasons[path] for path in lacks])
            given = "\n".join(f'--set {path}="{_about(path)["example"]}"' for path in lacks)
            found.append(Say(f"{words} not known: {why}. Yours:", "", given))
    return found


def _about(path: str) -> Any:
    """What the schema says of a figure."""
    section, key = path.split(".")
    return KEYS[section][key].metadata


class Decides(NamedTuple):
    """An input that decides: in words, its value and range, and what to type for one's own."""

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
    "policy.pinned": "the training speed lost all the time to pinned memory",
    "checkpoint.bytes_per_param": "the bytes saved per parameter",
}
"""others are called by what the schema says of them"""
COMMANDS = {"cluster.gpu_price": PRICE, "policy.slowdown": MEASURE}
"""what to type for one's own figure, if that is not --set"""


def decides(study: Study, row: int, path: str) -> Decides:
    """One input in words."""
    figure = study.scenarios[row].figures()[path]
    if path in OFTEN:
        value, low, high = (show(each, "s", 2) for each in study.range("mtbf", row))
        basis = BASIS.get(figure.basis, "is assumed from published jobs of its size")
        said = f"once in {value} ({low} to {high})"
        return Decides("how often this job fails", basis, said, '--mtbf "20 h"')
    meaning = re.split("[:;,]", str(_about(path)["meaning"]).removeprefix("async: "))[0]
    words = WORDS.get(path, meaning if meaning.startswith("how ") else f"the {meaning}")
    unit = unit_of(path)
    value = in_words(show(figure.value, unit, 3 if "USD" in unit else 2))
    said = f"{value} ({show_range(figure.low, figure.high, unit)})"
    basis = BASIS.get(figure.basis, "is taken from published figures")
    command = COMMANDS.get(path) or f'--set {path}="{_about(path)["example"]}"'
    return Decides(words, basis, said, command)


def measure_of(study: Study, row: int) -> str:
    """What people ask for first among what is known."""
    ranged = (measure for measure in ("cost", "energy") if known(study.range(measure, row)))
    return next(ranged, "gpu_time")


def inputs_of(study: Study, row: int) -> list[Say]:
    """The input that decides, and that a price is from a list if it is not that one."""
    measure, found = measure_of(study, row), []
    whole = study.range(measure, row)
    if whole.high >= WIDE * whole.low:
        for path in [*study.deciding(measure, row)][:1]:
            each = decides(study, row, path)
            words = f"Why so wide: {each.words} {each.basis}: {each.said}. Yours:"
            found.append(Say(words, "", each.command))
    price = study.scenarios[row].said["cluster"].get("gpu_price")
    decisive = any(each.command == PRICE for each in found)
    if isinstance(price, Figure) and price.basis != "user" and not decisive:
        said = in_words(show(price.value, "USD/GPU-h"))
        found.append(Say(f"{said} is a list price; yours:", "", PRICE))
    return found


def unmeasured(study: Study, row: int) -> list[Say]:
    """What an asynchronous job should measure first, since reports of it differ so much."""
    figure = study.scenarios[row].said["policy"].get("slowdown")
    is_async = q.np_text(study.w.policy.mode, row) == "async"
    if not is_async or not isinstance(figure, Figure) or figure.origin != DEFAULTS:
        return []
    slowed = f"{show(figure.value, 'share', 2)} ({show_range(figure.low, figure.high, 'share')})"
    words = f"Other async jobs train {slowed} slower while a save is written. Measure yours:"
    return [Say(words, "", MEASURE)]


def better_interval(study: Study, row: int, typed: str) -> list[Say]:
    """What `ckptcost interval` recommends, if the plan is far from it."""
    scenario = study.scenarios[row]
    if advised(scenario):
        return []
    found = advice.advise(scenario)
    if abs(found.interval / study.value("interval", row) - 1.0) <= SHIFTED:
        return []
    also = f", {nth(found.every)} also to {second_name(study, row)}"
    words = f"You would probably do better saving every {show(found.interval, 's', 2)}"
    words += also if scenario.said["second_tier"] else ""
    return [Say(f"{words}:", "", f"ckptcost interval {typed}".rstrip())]


# --- the plot -------------------------------------------------------------------------------------

AROUND = np.geomspace(0.1, 10.0, 61)
"""intervals of the curve, by the plan's own"""


def curve(study: Study, rows: dict[str, int]) -> Plot:
    """What a longer or shorter interval would do, a line for each case; of one its own marked."""
    alone = len(rows) == 1
    measure = measure_of(study, *rows.values()) if alone else "goodput"
    found, marks = [], []
    for name, row in rows.items():
        now = study.value("interval", row)
        x = now * AROUND[now * AROUND <= study.stated_of(study.w.run.work, row)]
        found.append(Line(name, x.tolist(), read(measure, study.at(row, x))[:, 0].tolist()))
        marks.append(("now", now, study.value(measure, row)))
    name, unit = SHOWN.get(measure, ("useful training", "share"))
    axes = "training time between saves [s]", f"{name} [{unit}]"
    shown = tuple(marks) if alone else ()
    return Plot(f"What the interval decides: {name}", *axes, found, shown, log_x=True)
