"""The answer about one plan: a checkpoint, the run, where the cost goes, why its range is wide."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from ckptcost import advice
from ckptcost.answer import Caution, Column, Quantity, Range, Say, Table
from ckptcost.plan import evaluate as ev
from ckptcost.plan import physics as ph
from ckptcost.plan.bill import LINES, QUANTITIES, Bill, label_of
from ckptcost.plan.plausible import doubts
from ckptcost.questions import common as q
from ckptcost.scenario.figures import Figure
from ckptcost.scenario.resolve import DEFAULTS, Scenario
from ckptcost.scenario.schema import KEYS, Array, Tier
from ckptcost.scenario.units import number, show, show_range
from ckptcost.study import AHEAD, Study, ranges_of, unit_of, verdict

SHOWN = {
    "energy": ("energy", "kWh"),
    "gpu_time": ("GPU time", "GPU-h"),
    "cost": ("cost", "USD"),
    "carbon": ("emissions, location-based", "kgCO2e"),
}
"""the quantities of the first screen, what they are called, and in which unit"""
GROUPS = {
    "saving, {saves} checkpoints": (
        "gpu_wait",
        "host_wait",
        "storage_write",
        "network",
        "requests",
    ),
    "training slowed while they are written": ("slowdown",),
    "work lost to about {failures} failures": ("redone_work",),
    "restarting and loading": ("restart", "loading"),
    "{keeping}": ("retention",),
    "drives worn": ("wear",),
    "saving to {second}": tuple(f"second_{line}" for line in LINES),
}
"""lines of the bill that people see as one"""
SHIFTED = 0.25
"""an interval that differs by more from the recommended one is worth a word"""
WIDE = 2.0
"""from the low to the high end of a range: less needs no explanation"""
NEVER = 100.0
"""a run that takes so many times its training is said never to finish"""
PRICE = '--gpu-price "2.50 USD"'
MEASURE = "ckptcost run -- python train.py"


def by_case(study: Study, drawn: Array) -> list[Range]:
    """Ranges of something that was computed in the draws of all cases."""
    return ranges_of(np.broadcast_to(drawn, (len(study.names), 1 + study.draws)))


UNKNOWN = Range(np.nan, np.nan, np.nan)


def known(value: Range) -> bool:
    return value.value == value.value


def in_words(text: str) -> str:
    """
    >>> in_words("1,234 GPU-h"), in_words("5.43 USD/GPU-h"), in_words("450 kg (400-600)")
    ('1,234 GPU-hours', '5.43 USD a GPU-hour', '450 kgCO2e (400-600)')
    """
    text = re.sub(r"\bkg\b", "kgCO2e", text.replace("USD/GPU-h", "USD a GPU-hour"))
    return re.sub(r"GPU-h\b", "GPU-hours", text)


# --- the plan in a line ---------------------------------------------------------------------------


def facts(study: Study, row: int) -> dict[str, str]:
    """What is saved, how, how often and where; by whom, and for how long they train."""
    w, accelerator = study.w, study.scenarios[row].names.get("accelerator")
    gpus = f"{study.stated_of(w.cluster.gpus, row):,.0f}"
    every = f"every {show(study.value('interval', row), 's', 2)}"
    if study.stated_of(w.policy.interval, row) == 0:
        every = "continuously (each save begins when the last one is safe)"
    elif advised(study.scenarios[row]) and ends(study, row):
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
    """The tiers by name and rate, or by their rate."""
    w, said, called = study.w, study.scenarios[row].said, []
    for section, tier in (("tier", w.tier), ("second_tier", w.second_tier)):
        rate, part = _rate(study, row, tier)
        name = said[section].get("id")
        called.append(f"{name} ({rate}{part})" if name else f"{rate} storage{part}")
    n = study.stated_of(w.policy.second_every, row)
    return f"{called[0]}, {nth(n)} also to {called[1]}" if said["second_tier"] else called[0]


def _rate(study: Study, row: int, tier: Tier) -> tuple[str, str]:
    """How fast the storage writes; and who gets how much of that, if they cannot use all of it."""
    w, limits = study.w, ph.limits(study.w, tier, "write")
    got, whole = (study.stated_of(x, row) for x in (ph.rate(w, tier, "write"), limits.system))
    nodes, processes = (ph.nodes(w), "nodes"), (w.cluster.gpus, "processes")
    users = ((limits.clients, nodes), (limits.links, nodes), (limits.gpus, processes))
    for limit, (count, name) in users:
        if got == study.stated_of(limit, row) < 0.99 * whole < np.inf:
            part = f", of which {study.stated_of(count, row):,.0f} {name} get {show(got, 'B/s', 2)}"
            return show(whole, "B/s", 2), part
    return show(got, "B/s", 2), ""


def nth(n: float) -> str:
    """
    >>> nth(1), nth(2), nth(11), nth(1000)
    ('each', 'every 2nd', 'every 11th', 'every 1,000th')
    """
    ending = {1: "st", 2: "nd", 3: "rd"}.get(int(n) % 10 if int(n) % 100 // 10 != 1 else 0, "th")
    return "each" if n == 1 else f"every {n:,g}{ending}"


def advised(scenario: Scenario) -> bool:
    """The interval is already the recommended one."""
    figure = scenario.said["policy"].get("interval")
    return isinstance(figure, Figure) and figure.origin == advice.ORIGIN


def ends(study: Study, row: int) -> bool:
    """Whether the run ends; false also if nobody can know, since it loses what it relies on."""
    return study.value("goodput", row) > 1.0 / NEVER


def never(study: Study, row: int) -> bool:
    return not ends(study, row) and row not in study.unsaid


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
        parts += [in_words(said)] if np.isfinite(found.value) else []
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


def whole_run(study: Study, row: int, stops: Mapping[int, Caution]) -> Say:
    """How long it takes, and how much of that is useful training."""
    label = "The whole run"
    if row in study.unsaid:
        why, _, command = stops[row].words.partition(":   ")
        return Say(f"is not known. {why}:", label, command)
    if never(study, row):
        every = show(study.value("mtbf", row), "s", 2)
        back = show(study.stated_of(study.stated.plan.back.exposed, row), "s", 2)
        cycle = show(study.value("interval", row) + study.value("stall", row), "s", 2)
        words = f"never finishes: a failure comes every {every}. Getting back takes {back},"
        return Say(f"{words} and the next checkpoint is done {cycle} later.", label)
    value, low, high = (f"{100 * each:.1f}" for each in study.range("goodput", row))
    share = f"{value} % ({low}-{high} %)" if low != high else f"{value} %"
    words = f"takes {show(study.value('wall', row), 's')}; {share} is useful training."
    stuck = verdict(study.of("goodput", drawn=True)[row] < AHEAD)
    if stuck.draws and stuck.share >= 0.005:
        words += f" It gets nowhere {stuck.say()}."
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
    return Table("added", "", columns, rows, shown=ends(study, row))


# --- where it goes --------------------------------------------------------------------------------


def where(study: Study, row: int) -> Table:
    """The bill by groups of lines, those left out that are nothing throughout."""
    keep, saves = study.stated_of(study.w.policy.keep_last, row), study.value("saves", row)
    last = f" {keep:,g}" * (keep > 1)
    numbers = {
        "saves": number(saves),
        "failures": number(study.value("failures", row), 2),
        "keeping": "keeping all of them" if keep >= saves else "keeping the last" + last,
        "second": second_name(study, row),
    }
    if q.np_text(study.w.tier.billed_on, row) == "provisioned":
        numbers["keeping"] = "renting the tier's capacity"
    rows: list[list[Any]] = []
    for words, lines in GROUPS.items():
        part = copy(study.drawn.bill)
        part.lines = {line: part.lines[line] for line in lines if line in part.lines}
        cells = [by_case(study, part.total(quantity))[row] for quantity in SHOWN]
        if any(abs(cell.value) > 0 for cell in cells):
            rows.append([words.format(**numbers), *cells])
    columns = [Column("group", "Where it goes")]
    columns += [Column(each, unit, QUANTITIES[each][0]) for each, (_, unit) in SHOWN.items()]
    return Table("where", "", columns, rows, shown=ends(study, row))


def lines(study: Study) -> Table:
    """Every line of the bill of every case, for files."""
    columns = [Column("case", "case"), Column("line", "line"), Column("words", "what")]
    columns += [Column(each, name, unit) for each, (unit, name) in QUANTITIES.items()]
    bill, rows = study.drawn.bill.lines, list[list[Any]]()
    found = {line: [by_case(study, of[each]) for each in QUANTITIES] for line, of in bill.items()}
    for row, name in enumerate(study.names):
        for line, ranges in found.items():
            cells = [UNKNOWN if row in study.unsaid else each[row] for each in ranges]
            rows.append([name, line, label_of(line), *cells])
    return Table("lines", "Every line of the bill", columns, rows, shown=False)


# --- notes ----------------------------------------------------------------------------------------


def notes(study: Study, row: int, typed: str, doubtful: bool) -> list[Say]:
    """What else to know, and what to type next: of a doubtful plan that is to check it."""
    if not ends(study, row):
        return lacking(study, row)
    inputs = [] if doubtful else inputs_of(study, row)
    measured = doubtful or any(each.command == MEASURE for each in inputs)
    return [
        *interruption(study, row),
        *lacking(study, row),
        *inputs,
        *([] if measured else unmeasured(study, row)),
        *([] if doubtful else better_interval(study, row, typed)),
    ]


def interruption(study: Study, row: int) -> list[Say]:
    """What one failure costs on average."""
    if not study.value("failures", row) > 0:
        return []
    o, gpus = study.stated, study.stated_of(study.w.cluster.gpus, row)
    lost, back = (study.stated_of(x, row) for x in (o.redone_per_failure, o.back_per_failure))
    all_, work, rest = (show(x, "s", 2) for x in (lost + back, lost, back))
    wasted = in_words(show((lost + back) * gpus, "GPU-h"))
    words = f"Each interruption wastes {all_} x {gpus:,.0f} GPUs = {wasted}"
    return [Say(f"{words}: {work} of lost work, {rest} to get back.")]


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
            given = "\n".join(f'--set {path}="{about_of(path)["example"]}"' for path in lacks)
            found.append(Say(f"{words} not known: {why}. Yours:", "", given))
    return found


def about_of(path: str) -> Any:
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
    "policy.pinned": "training speed lost all the time to pinned memory",
    "checkpoint.bytes_per_param": "bytes saved per parameter",
    "cluster.gpus": "number of GPUs",
    "failures.mtbf": "MTBF",
    "policy.interval": "interval",
    "policy.keep_last": "number of checkpoints kept",
    "policy.saves": "number of saves",
    "policy.steps": "number of steps between saves",
    "run.wall_limit": "wall limit",
    "tier.capacity": "capacity",
    "tier.read": "read rate",
    "tier.write": "write rate",
    "tier.id": "tier",
}
"""others are called by what the schema says of them"""
COMMANDS = {"cluster.gpu_price": PRICE, "policy.slowdown": MEASURE}
"""what to type for one's own figure, if that is not --set"""


def words_of(path: str) -> str:
    """What people call a figure."""
    meaning = str(about_of(path)["meaning"]).removeprefix("async: ")
    return WORDS.get(path, re.split("[:;,]", meaning)[0])


def decides(study: Study, row: int, path: str) -> Decides:
    """One input in words."""
    figure = study.scenarios[row].figures()[path]
    if path in OFTEN:
        value, low, high = (show(each, "s", 2) for each in study.range("mtbf", row))
        basis = BASIS.get(figure.basis, "is assumed from published jobs of its size")
        said = f"once in {value} ({low} to {high})"
        return Decides("how often this job fails", basis, said, '--mtbf "20 h"')
    called, unit = words_of(path), unit_of(path)
    words = called if called.startswith("how ") else f"the {called}"
    value = in_words(show(figure.value, unit, 3 if "USD" in unit else 2))
    said = f"{value} ({show_range(figure.low, figure.high, unit)})"
    basis = BASIS.get(figure.basis, "is taken from published figures")
    command = COMMANDS.get(path) or f'--set {path}="{about_of(path)["example"]}"'
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
    both = {"then": advice.with_advice(scenario, found), "now": scenario}
    if Study(both, advice.WORLDS).better("wall", 0, 1).share <= 0.5:
        return []
    words = f"Probably better: save every {show(found.interval, 's', 2)}"
    if scenario.said["second_tier"]:
        words += " to both tiers" if found.every == 1 else f", {nth(found.every)} to both tiers"
    return [Say(f"{words}:", "", f"ckptcost interval {typed}".rstrip())]
