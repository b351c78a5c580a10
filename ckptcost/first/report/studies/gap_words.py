"""The sentences of measured against modelled: which line explains most of the difference, and what
is not held against each other."""

from __future__ import annotations

from collections.abc import Mapping

from ckptcost.first.core.draws import p5_p95
from ckptcost.first.core.gap import Course, Parts, main_part
from ckptcost.first.jobs.gap import GapSide, ModelGap
from ckptcost.first.jobs.measured_bill import RunMachine
from ckptcost.first.present.amounts import count, duration, number, rate, size
from ckptcost.first.present.measured import ABSENT
from ckptcost.first.present.words import line_label

LABELS = {
    "bytes": "size",
    "files": "files",
    "time": "begin until safe",
    "stall": "stall",
    "lag": "drain after the stall",
    "rate": "size over time",
    "gpu_s": "GPU time stalled",
}
OF_A_LOAD = {"time": "begin until there", "stall": "held up", "gpu_s": "GPU time held up"}
CAUSES = {
    "size_s": "size",
    "fixed_s": "fixed time",
    "rate_s": "write rate",
    "straggler_s": "slowest rank over mean",
    "beside_s": "snapshot",
}
CAUSES_OF_A_LOAD = CAUSES | {"rate_s": "read rate", "beside_s": "copying"}
WHY = {
    "NO_BYTES": "no mark says how many bytes it wrote",
    "NO_FILES": "no mark says how many files it wrote",
    "NO_GPU_METER": "nothing here meters GPUs",
    "NO_GPU_COUNT": "nothing says how many GPUs there were: give --set cluster.gpus",
    "NO_STORAGE_METER": "nothing here meters the power of storage",
    "MODULE_METER": (
        "one meter sees GPU and host of a superchip together, and the model tells them apart"
    ),
    "NOT_METERED": "nothing on a node sees it",
    "NOT_MODELLED": "the scenario does not know a figure that it needs",
    "OTHER_BOUNDARY": (
        "it was measured at the drive, and the scenario's figure is of more than that"
    ),
    "PART_OF_JOB": "it is of one node, and the job is larger",
    "WITHOUT_LOST_TIME": (
        "measured is the power that a drain adds, modelled the training time that it takes"
    ),
    "GAPS": "readings do not cover all of it",
    "PARTS_EXCEED_NODE": "the GPUs' meters say more than the node's",
    "IN_MEMORY": "it was written to a file system in memory",
}
"""why a line has no difference"""


def why_text(code: str) -> str:
    """Why something is not compared.

    >>> why_text("NO_BYTES")
    'no mark says how many bytes it wrote'
    """
    return WHY.get(code) or ABSENT.get(code, code)


def label(row_id: str, of: str = "save", unit: str = "") -> str:
    """A row's name, with its unit where a number does not show it."""
    labels = LABELS | OF_A_LOAD if of == "load" else LABELS
    name = labels.get(row_id) or line_label(row_id)
    return f"{name}, {unit}" if unit in ("J", "GPU-s") else name


def cause_label(name: str, of: str) -> str:
    return CAUSES_OF_A_LOAD[name] if of == "load" else CAUSES[name]


def factor_text(name: str, course: Course) -> str:
    """What a cause was on one side.

    >>> factor_text("rate_s", Course(1e9, 1.0, 2.1e9, 1.0, 0.0))
    '2.1 GB/s'
    """
    match name:
        case "size_s":
            return size(float(course.moved_bytes))
        case "rate_s":
            return rate(float(course.rate_bytes_per_s))
        case "straggler_s":
            return f"{number(float(course.straggler))}x"
    return duration(float(getattr(course, name)))


ALIKE = 0.01
"""of the modelled time: a smaller difference is none"""
CANCELS = 0.1
"""of the modelled time: parts at least so large are told although the whole is nothing"""


def findings(answer: ModelGap) -> list[str]:
    """What explains the time, for saves and for loads; then what a person would ask next."""
    said = []
    for held in (answer.saves, answer.loads):
        if held is not None:
            said += [_explanation(held), *_range(held), *_rest(held)]
    if answer.saves is not None:
        said += [*_stall(answer.saves), *_joules(answer.saves, float(answer.scenario.site.pue))]
    return said


def _times(value: float) -> str:
    return f"{number(value, 2)}x as long as modelled"


def _explanation(held: GapSide) -> str:
    """The one sentence."""
    what = _what(held)
    if held.parts is None or held.measured is None:
        return _without_explanation(held, what)
    measured_s, modelled_s = float(held.measured.time_s), float(held.modelled.time_s)
    gap_s = measured_s - modelled_s
    parts = {name: float(value) for name, value in held.parts._asdict().items()}
    beside = f"{duration(measured_s)}, modelled {duration(modelled_s)}"
    if abs(gap_s) <= ALIKE * modelled_s:
        cancel = _cancelling_text(held, parts, modelled_s)
        if not cancel:
            return f"{what} takes as long as modelled: {beside}."
        return f"{what} takes as long as modelled ({beside}), but two causes cancel out: {cancel}."
    main = main_part(parts, gap_s)
    way = "more" if gap_s > 0 else "less"
    head = f"{what} takes {_times(measured_s / modelled_s)} ({beside})"
    made = duration(abs(parts[main]))
    if abs(parts[main]) > 1.02 * abs(gap_s):
        return (
            f"{head}: {_cause(held, main)} alone makes {made} {way}, of which other causes take"
            " back a part."
        )
    return f"{head}: of {duration(abs(gap_s))} {way}, {made} are {_cause(held, main)}."


def _what(held: GapSide) -> str:
    """Which save or load is judged, or how many in the mean."""
    judged = [one for one in held.taken if one.course is not None]
    judged = judged or [one for one in held.taken if one.time.known]
    if len(judged) == 1:
        return f"The {held.of} {judged[0].window.name}"
    return f"A {held.of}, in the mean of {count(len(judged))}," if judged else f"A {held.of}"


def _cancelling_text(held: GapSide, parts: Mapping[str, float], modelled_s: float) -> str:
    """The two causes that make most of each other undone, where they are large."""
    most, least = max(parts, key=parts.__getitem__), min(parts, key=parts.__getitem__)
    if parts[most] <= CANCELS * modelled_s:
        return ""
    return (
        f"{_cause(held, most)} makes {duration(parts[most])} more, {_cause(held, least)} makes"
        f" {duration(-parts[least])} less"
    )


def _cause(held: GapSide, name: str) -> str:
    assert held.measured is not None
    before = held.modelled if name == "size_s" else held.resized or held.modelled
    return (
        f"the {cause_label(name, held.of)} ({factor_text(name, held.measured)} measured,"
        f" {factor_text(name, before)} modelled)"
    )


def _without_explanation(held: GapSide, what: str) -> str:
    """Where size and time are not both known."""
    row = held.row("time")
    why = why_text(next((one.course_why for one in held.taken if one.course_why), ""))
    if row.why:
        return (
            f"{what} cannot be held against the model from its begin until it is safe:"
            f" {why_text(row.why)}."
        )
    return (
        f"{what} takes {_times(row.ratio)} ({duration(row.measured.value)}, modelled"
        f" {duration(row.modelled.value)}); what explains it is not known: {why}."
    )


def _range(held: GapSide) -> list[str]:
    row = held.row("time")
    if row.why or not row.modelled.low < row.modelled.high:
        return []
    lies = (
        "lies within"
        if row.modelled.low <= row.measured.value <= row.modelled.high
        else "lies outside of"
    )
    ends = f"{duration(row.modelled.low)} to {duration(row.modelled.high)}"
    return [f"The measured time {lies} the model's own range of {ends}."]


def _rest(held: GapSide) -> list[str]:
    """With another size, what is left of the difference at the run's own."""
    if held.parts is None or held.measured is None or held.resized is None:
        return []
    modelled_s, at_size_s, measured_s = (
        float(course.time_s) for course in (held.modelled, held.resized, held.measured)
    )
    if abs(float(held.parts.size_s)) <= CANCELS * modelled_s:
        return []
    parts = {name: float(value) for name, value in held.parts._asdict().items() if name != "size_s"}
    left_s = measured_s - at_size_s
    head = f"At the run's own size the model says {duration(at_size_s)}"
    if abs(left_s) <= ALIKE * at_size_s:
        return [f"{head}, as measured."]
    main = main_part(parts, left_s)
    return [
        f"{head}, and most of what is left ({duration(abs(left_s))}"
        f" {'more' if left_s > 0 else 'less'}) is {_cause(held, main)}."
    ]


def _stall(held: GapSide) -> list[str]:
    """Where training goes on before a save is safe, the stall is another story than the time."""
    stall, time = held.row("stall"), held.row("time")
    if stall.why or (
        not time.why
        and abs(stall.measured.value - time.measured.value) <= ALIKE * time.measured.value
        and abs(stall.modelled.value - time.modelled.value) <= ALIKE * time.modelled.value
    ):
        return []
    return [
        f"Training stands still for {duration(stall.measured.value)} a save, modelled"
        f" {duration(stall.modelled.value)}."
    ]


def _joules(held: GapSide, pue: float) -> list[str]:
    """The line whose joules differ most, by more than its meters leave open, and whether time or
    watts explain it."""
    known = [(held.row(each.line), each) for each in held.divided]
    known = [
        (row, each)
        for row, each in known
        if not row.why
        and each.of_amount == each.of_amount
        and not row.measured.low <= row.modelled.value <= row.measured.high
    ]
    if not known:
        return []
    row, each = max(known, key=lambda pair: abs(pair[0].difference))
    scale, unit, by_time, by_watts = 1.0 / pue, "W", "the stall", "the watts"
    if row.id == "storage_write":
        scale, unit, by_time, by_watts = 1e9 / pue, "J/GB", "the size", "the joules a byte"
    watts = (
        f"{number(each.measured_each * scale)} {unit} measured,"
        f" {number(each.modelled_each * scale)} {unit} modelled"
    )
    why = f"{by_time}, not {by_watts}" if abs(each.of_amount) >= abs(each.of_each) else by_watts
    name = label(row.id)
    return [
        f"{name[0].upper()}{name[1:]}: {number(row.measured.value)} J a save, modelled"
        f" {number(row.modelled.value)} J. Most of the difference is {why} ({watts})."
    ]


def part_range(ranges: Parts | None, name: str, value: float) -> tuple[float, float]:
    return (value, value) if ranges is None else p5_p95(getattr(ranges, name), value)


def warnings(answer: ModelGap) -> list[tuple[str, str]]:
    """What to know before believing the comparison."""
    saves = answer.saves
    told = [
        ("PART_OF_JOB", _part_of_job(answer.machine)),
        ("GPUS_ASSUMED", _gpus_assumed(answer.machine)),
    ]
    if saves is not None:
        told += [
            ("MODE_DIFFERS", _mode_differs(saves, answer.scenario.policy.mode)),
            ("FIXED_AS_MODELLED", _fixed_as_modelled(saves)),
            ("NO_FSYNC", _no_fsync(saves)),
        ]
    told += [("SAVE_FAILED", _failed(answer)), ("UNCOMPARABLE", _not_compared(answer))]
    return [(code, text) for code, text in told if text]


def _part_of_job(machine: RunMachine) -> str:
    if not machine.is_part:
        return ""
    return (
        f"The readings are of one node of {count(machine.job_gpus / machine.gpus_per_node)}:"
        " seconds are the job's, GPU-seconds and joules are this node's on both sides, and sizes"
        " are not compared."
    )


def _gpus_assumed(machine: RunMachine) -> str:
    if machine.how != "NODES":
        return ""
    return (
        f"Nothing says how many GPUs the job had: the model has {count(machine.job_gpus)}, as the"
        " scenario's own nodes have. Give --set cluster.gpus=N."
    )


def _mode_differs(saves: GapSide, mode: str) -> str:
    lag, stall = saves.row("lag"), saves.row("stall")
    if lag.why or stall.why:
        return ""
    drains = lag.measured.value > CANCELS * (lag.measured.value + stall.measured.value)
    own, word = "sync", "waits until a save is safe"
    if drains:
        own, word = "async", "goes on before a save is safe"
    if drains == (mode == "async"):
        return ""
    return (
        f"In the run training {word}, and the scenario has it otherwise: --set policy.mode={own}."
    )


def _fixed_as_modelled(saves: GapSide) -> str:
    if not any("FIXED" in one.as_modelled for one in saves.taken):
        return ""
    return (
        "No mark tells planning, barrier and commit from the writing, so the fixed time is taken as"
        " modelled and the rest is the rate. Saves of several sizes tell them apart: `ckptcost"
        " calibrate`."
    )


def _no_fsync(saves: GapSide) -> str:
    late = (
        one for one in saves.taken if one.time.known and one.unsynced_s > CANCELS * one.time.value
    )
    first = next(late, None)
    if first is None:
        return ""
    return (
        f"Of the {duration(first.time.value)} until {first.window.name} was safe,"
        f" {duration(first.unsynced_s)} came after the last write: nothing called fsync, and the"
        " kernel wrote the page cache when it liked. No such rate is the storage's own."
    )


def _failed(answer: ModelGap) -> str:
    if not answer.failed:
        return ""
    names = ", ".join(f"{name} ({error})" for name, error in answer.failed[:3])
    more = " and more" if len(answer.failed) > 3 else ""
    return f"Left out, because they ended with an error: {names}{more}."


def _not_compared(answer: ModelGap) -> str:
    """All of it in one sentence, lines of the same reason together."""
    by_why: dict[str, list[str]] = {}
    for held in filter(None, (answer.saves, answer.loads)):
        for row in held.rows:
            if row.why:
                by_why.setdefault(row.why, []).append(label(row.id, held.of))
    told = "; ".join(
        f"{' and '.join(dict.fromkeys(names))} ({why_text(code)})" for code, names in by_why.items()
    )
    return f"Not held against each other: {told}." if told else ""
