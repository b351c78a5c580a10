"""The sentences of measured against modelled: which line explains most of the difference, and what
is not held against each other."""

from __future__ import annotations

from ckptcost.core.draws import p5_p95
from ckptcost.core.gap import Course, Parts, main_part
from ckptcost.jobs.gap import GapSide, ModelGap
from ckptcost.present.amounts import count, duration, number, rate, size
from ckptcost.present.measured import ABSENT
from ckptcost.present.words import line_label

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
    name = (
        (OF_A_LOAD.get(row_id) if of == "load" else None)
        or LABELS.get(row_id)
        or line_label(row_id)
    )
    return f"{name}, {unit}" if unit in ("J", "GPU-s") else name


def cause_label(name: str, of: str) -> str:
    return (
        {"rate_s": "read rate", "beside_s": "copying"}.get(name, CAUSES[name])
        if of == "load"
        else CAUSES[name]
    )


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
    judged = [one for one in held.taken if one.course is not None] or [
        one for one in held.taken if one.time.known
    ]
    what = (
        f"A {held.of}, in the mean of {count(len(judged))}," if len(judged) > 1 else f"A {held.of}"
    )
    if len(judged) == 1:
        what = f"The {held.of} {judged[0].window.name}"
    if held.parts is None or held.measured is None:
        return _without_explanation(held, what)
    measured_s, modelled_s = float(held.measured.time_s), float(held.modelled.time_s)
    gap_s = measured_s - modelled_s
    parts = {name: float(value) for name, value in held.parts._asdict().items()}
    beside = f"{duration(measured_s)}, modelled {duration(modelled_s)}"
    if abs(gap_s) <= ALIKE * modelled_s:
        most, least = (
            max(parts, key=lambda name: parts[name]),
            min(parts, key=lambda name: parts[name]),
        )
        if parts[most] <= CANCELS * modelled_s:
            return f"{what} takes as long as modelled: {beside}."
        return (
            f"{what} takes as long as modelled ({beside}), but two causes cancel out:"
            f" {_cause(held, most)} makes {duration(parts[most])} more, {_cause(held, least)} makes"
            f" {duration(-parts[least])} less."
        )
    main = main_part(parts, gap_s)
    way = "more" if gap_s > 0 else "less"
    head = f"{what} takes {_times(measured_s / modelled_s)} ({beside})"
    if abs(parts[main]) > 1.02 * abs(gap_s):
        return (
            f"{head}: {_cause(held, main)} alone makes {duration(abs(parts[main]))} {way}, of which"
            " other causes take back a part."
        )
    return (
        f"{head}: of {duration(abs(gap_s))} {way}, {duration(abs(parts[main]))} are"
        f" {_cause(held, main)}."
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
    known = [
        (row, each)
        for each in held.divided
        if not (row := held.row(each.line)).why and each.of_amount == each.of_amount
    ]
    known = [
        (row, each)
        for row, each in known
        if not row.measured.low <= row.modelled.value <= row.measured.high
    ]
    if not known:
        return []
    row, each = max(known, key=lambda pair: abs(pair[0].difference))
    of_bytes = row.id == "storage_write"
    scale, unit = (1e9 / pue, "J/GB") if of_bytes else (1.0 / pue, "W")
    watts = (
        f"{number(each.measured_each * scale)} {unit} measured,"
        f" {number(each.modelled_each * scale)} {unit} modelled"
    )
    by_time, by_watts = (
        ("the size", "the joules a byte") if of_bytes else ("the stall", "the watts")
    )
    why = f"{by_time}, not {by_watts}" if abs(each.of_amount) >= abs(each.of_each) else by_watts
    name = label(row.id)
    return [
        f"{name[0].upper()}{name[1:]}: {number(row.measured.value)} J a save, modelled"
        f" {number(row.modelled.value)} J. Most of the difference is {why} ({watts})."
    ]


def part_range(ranges: Parts | None, name: str, value: float) -> tuple[float, float]:
    return (value, value) if ranges is None else p5_p95(getattr(ranges, name), value)


def _not_compared_sentences(answer: ModelGap) -> list[tuple[str, str]]:
    """All of it in one sentence, lines of the same reason together."""
    by_why: dict[str, list[str]] = {}
    for held in (answer.saves, answer.loads):
        for row in () if held is None else held.rows:
            if held is not None and row.why:
                by_why.setdefault(row.why, []).append(label(row.id, held.of))
    if not by_why:
        return []
    told = "; ".join(
        f"{' and '.join(dict.fromkeys(names))} ({why_text(code)})" for code, names in by_why.items()
    )
    return [("UNCOMPARABLE", f"Not held against each other: {told}.")]


def warnings(answer: ModelGap) -> list[tuple[str, str]]:
    """What to know before believing the comparison."""
    said: list[tuple[str, str]] = []
    machine, saves = answer.machine, answer.saves
    if machine.is_part:
        said.append(
            (
                "PART_OF_JOB",
                (
                    "The readings are of one node of"
                    f" {count(machine.job_gpus / machine.gpus_per_node)}: seconds are the job's,"
                    " GPU-seconds and joules are this node's on both sides, and sizes are not"
                    " compared."
                ),
            )
        )
    if machine.how == "NODES":
        said.append(
            (
                "GPUS_ASSUMED",
                (
                    "Nothing says how many GPUs the job had: the model has"
                    f" {count(machine.job_gpus)}, as the scenario's own nodes have. Give --set"
                    " cluster.gpus=N."
                ),
            )
        )
    if saves is not None:
        said += _of_saves(answer, saves)
    if answer.failed:
        names = ", ".join(f"{name} ({error})" for name, error in answer.failed[:3])
        said.append(
            (
                "SAVE_FAILED",
                (
                    "Left out, because they ended with an error:"
                    f" {names}{' and more' if len(answer.failed) > 3 else ''}."
                ),
            )
        )
    return said + _not_compared_sentences(answer)


def _of_saves(answer: ModelGap, saves: GapSide) -> list[tuple[str, str]]:
    said = []
    lag, stall = saves.row("lag"), saves.row("stall")
    if not lag.why and not stall.why:
        drains = lag.measured.value > CANCELS * (lag.measured.value + stall.measured.value)
        if drains != (answer.scenario.policy.mode == "async"):
            word = "goes on before a save is safe" if drains else "waits until a save is safe"
            mode = "async" if drains else "sync"
            said.append(
                (
                    "MODE_DIFFERS",
                    (
                        f"In the run training {word}, and the scenario has it otherwise: --set"
                        f" policy.mode={mode}."
                    ),
                )
            )
    lent = {name for one in saves.taken for name in one.as_modelled}
    if "FIXED" in lent:
        said.append(
            (
                "FIXED_AS_MODELLED",
                (
                    "No mark tells planning, barrier and commit from the writing, so the fixed time"
                    " is taken as modelled and the rest is the rate. Saves of several sizes tell"
                    " them apart: `ckptcost calibrate`."
                ),
            )
        )
    late = [
        one for one in saves.taken if one.time.known and one.unsynced_s > CANCELS * one.time.value
    ]
    if late:
        said.append(
            (
                "NO_FSYNC",
                (
                    f"Of the {duration(late[0].time.value)} until {late[0].window.name} was safe,"
                    f" {duration(late[0].unsynced_s)} came after the last write: nothing called"
                    " fsync, and the kernel wrote the page cache when it liked. No such rate is"
                    " the storage's own."
                ),
            )
        )
    return said
