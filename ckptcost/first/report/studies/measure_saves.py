"""What is said of measured checkpoints, in sentences: how many and how large, how long until safe,
what training lost, and why something of it is not known."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from math import isnan, nan

from ckptcost.first.core.contents import GONE, LOST_BEFORE_SAFE, Contents, is_staged, written_back_s
from ckptcost.first.core.page_cache import saves_until_full
from ckptcost.first.core.windows import Window
from ckptcost.first.jobs.measured import Measured
from ckptcost.first.present.amounts import (
    count,
    count_text,
    duration,
    ends_text,
    rate,
    share,
    size,
    some,
)
from ckptcost.first.present.measured import reason_text, stall_reason_text
from ckptcost.first.report.study import plain

TIMER_S = 10.0
"""what lay in the page cache for less was written back for another reason than its age"""
MOST_MERGED = 3
"""bursts that are named"""
MUCH_MORE = 2.0
"""what a job writes beside its checkpoints is seldom as much again"""
NOTHING_FOUND = {
    "NO_FOLDER": "the folder that was watched never came to be",
    "NO_SAVE_IN_FOLDER": (
        "nothing large enough (--least) was written in the folder that was watched; "
        "what is written over in place, and does not grow, is not seen as a save"
    ),
    "NO_BURST": (
        "the job's own writing never looked like a save; --watch DIR looks at files instead"
    ),
}
"""what a recorder says of a job without a checkpoint, in words"""
MARK_IT = (
    "What goes to an object store, or is written over in place, a line in the script marks: "
    '`with ckptcost.window("step 1000"):`.'
)


def job_findings(m: Measured) -> list[str]:
    """How a wrapped command ended, where not well, and why no checkpoint of it was found."""
    findings = []
    said = _told_by_the_wrapper(m)
    if status := _number(said.get("exit_status")):
        ended = f"exit code {status:g}"
        if status > 128:
            ended += f", that is signal {status - 128:g}"
        findings.append(f"The command did not end well: {ended}.")
    if left_out := _number(said.get("left_out")):
        written, was = ("was", "it is") if left_out == 1 else ("were", "they are")
        findings.append(
            f"{count_text(int(left_out), 'file')} in the folder {written} written by"
            f" {said.get('left_out_by')}, which the job did not start: {was} left out."
        )
    return [*findings, *filter(None, [nothing_found(m)])]


def _number(value: object) -> float | None:
    """A number of a mark's, which may hold anything."""
    return value if isinstance(value, int | float) else None


def nothing_found(m: Measured) -> str:
    """Why no checkpoint was, in a sentence; empty where one was, or nobody looked."""
    reason = NOTHING_FOUND.get(str(_told_by_the_wrapper(m).get("nothing_found")))
    return f"No checkpoint was found: {reason}. {MARK_IT}" if reason and not m.windows else ""


def _told_by_the_wrapper(m: Measured) -> dict[str, object]:
    detail: dict[str, object] = {}
    for mark in m.run.marks:
        detail |= mark.detail if mark.by == "wrap" else {}
    return detail


Saves = Sequence[tuple[Window, Contents]]


def saves_of(m: Measured) -> Saves:
    """The saves among the checkpoints, each with what is known of what it holds."""
    both = zip(m.windows, m.contents, strict=True)
    return [(window, what) for window, what in both if what.of == "save"]


def saves_told(m: Measured) -> list[str]:
    """How many, how large, how long until safe; and of what it is not known."""
    saves = saves_of(m)
    if not saves:
        return []
    sizes = [
        what.bytes
        for _, what in saves
        if what.bytes == what.bytes and what.error in ("", GONE)  # of one that failed it is a piece
    ]
    told = [
        count_text(len(saves), "checkpoint") + (f", {size(sum(sizes))}" if sizes else ""),
        _safe_after(saves),
        _cached(saves),
        _unseen_text(saves),
        _failure_text(saves),
        _protecting_nothing(m, saves),
        _safe_unknown(saves),
    ]
    return [f"{'; '.join(filter(None, told))}."]


def _took_s(window: Window) -> float:
    """From its begin until it was safe; NaN where either is not known."""
    if window.durable_s is None or window.begin_s is None:
        return nan
    return window.durable_s - window.begin_s


def _mean_words(of: Sized) -> str:
    return "" if len(of) == 1 else " in the mean"


def _safe_after(saves: Saves) -> str:
    safe = [(window, what) for window, what in saves if rate_of(window, what) is not None]
    if not safe:
        return ""
    seconds = sum(_took_s(window) for window, _ in safe)
    return (
        f"safe after {duration(seconds / len(safe))}{_mean_words(safe)},"
        f" {rate(sum(what.bytes for _, what in safe) / seconds)}"
    )


def _unseen_text(saves: Saves) -> str:
    unseen_s = [
        _took_s(window)
        for window, what in saves
        if not isnan(_took_s(window)) and isnan(written_back_s(window, what))
    ]
    if not unseen_s:
        return ""
    return (
        f"{count(len(unseen_s))} safe at some time within {duration(max(unseen_s))}, which nobody"
        " looked at"
    )


def _failure_text(saves: Saves) -> str:
    failed = [what.error for _, what in saves if what.error and what.error != GONE]
    removed = sum(what.error == GONE for _, what in saves)
    told = [f"{count(len(failed))} failed: {some(sorted(set(failed)))}"] if failed else []
    if removed:
        told.append(
            f"{count(removed)} removed again at once, as after an upload or a save that was given"
            " up: nobody knows how long training stood still"
        )
    return "; ".join(told)


def _protecting_nothing(m: Measured, saves: Saves) -> str:
    seen = zip(m.windows, is_staged(m.windows, m.contents), strict=True)
    staged = {window.name for window, is_so in seen if is_so}
    lost = sum(
        _is_never_safe(window, what) and what.why in LOST_BEFORE_SAFE and window.name not in staged
        for window, what in saves
    )
    if not lost:
        return ""
    it, was = ("it", "it was") if lost == 1 else ("they", "they were")
    return f"{count(lost)} deleted or written over before {was} safe: {it} protected nothing"


def _is_never_safe(window: Window, what: Contents) -> bool:
    return window.durable_s is None and not what.error


def _safe_unknown(saves: Saves) -> str:
    reasons = [
        reason_text(what.why or window.durable_why)
        for window, what in saves
        if _is_never_safe(window, what) and what.why not in LOST_BEFORE_SAFE
    ]
    if not reasons:
        return ""
    why = some(sorted(set(reasons)))
    return f"of {count(len(reasons))} it is not known when they were safe: {why}"


def rate_of(window: Window, what: Contents) -> float | None:
    """Bytes over the time from begin until safe."""
    took_s = _took_s(window)
    if what.error or not took_s > 0:
        return None  # of a save that failed it is no rate
    if written_back_s(window, what) != 0.0:
        return None  # the time is the kernel's timer
    return plain(what.bytes / took_s)


def returned_why(window: Window, what: Contents) -> str:
    """Why it is not known when training went on; empty where it is."""
    if window.returned_s is not None:
        return ""
    return what.returned_why or window.begin_why or window.returned_why


def stalls_told(m: Measured) -> list[str]:
    """Of how many saves it is not known how long training stood still, and why."""
    reasons = [
        returned_why(window, what)
        for window, what in saves_of(m)
        if not what.error and window.stall_s is None
    ]
    if not reasons:
        return []
    why = sorted({stall_reason_text(reason) for reason in reasons if reason})
    return [
        f"Of {count_text(len(reasons), 'save')} it is not known how long training stood still:"
        f" {some(why)}."
    ]


def merged_told(m: Measured) -> list[str]:
    """Saves that ran into one, as far as what was written tells."""
    said = []
    for mark in m.run.marks:
        several, gap_s = (_number(mark.detail.get(name)) for name in ("run_together", "gap_s"))
        if several is not None and gap_s is not None:
            said.append(
                f"{mark.window} looks like about {count(several)} saves in one: files of like size"
                f" one after another, or one again and again. Saves closer than {duration(gap_s)}"
                " run into one: a shorter --gap tells them apart, and --watch DIR looks at each"
                " file."
            )
    if len(said) > MOST_MERGED:
        said[MOST_MERGED:] = [f"So it is with {count(len(said) - MOST_MERGED)} more."]
    return said or _rest_told(m)


def merged_briefly(m: Measured) -> str:
    """The same, to be put behind a headline."""
    merged = sum(bool(mark.detail.get("run_together")) for mark in m.run.marks)
    return f"; {count(merged)} may be several in one, see --gap" if merged else ""


def _rest_told(m: Measured) -> list[str]:
    """Whether the job wrote much more than the checkpoints that were found in a folder hold."""
    wrote = _number(_told_by_the_wrapper(m).get("written_bytes"))
    held = sum(what.bytes for _, what in saves_of(m) if what.bytes > 0)
    looked = any(mark.detail.get("how") in ("inotify", "poll") for mark in m.run.marks)
    if not looked or not held or wrote is None or not wrote >= MUCH_MORE * held:
        return []
    return [
        f"The job wrote {size(float(wrote))}, and the checkpoints that were found hold"
        f" {size(held)} of it. If the rest was saves too: those closer than --gap run"
        " into one, and of a file that is written over again and again only some are seen."
    ]


def staged_told(m: Measured) -> list[str]:
    """Of saves that were removed before the next one began: what they took may be more than was
    seen."""
    if not (staged := m.staged):
        return []
    one = len(staged) == 1
    return [
        f"The files of {some([window.name for window in staged])} were removed before they were"
        " safe and before another save began, as after an upload. If nothing took them elsewhere,"
        f" {'it' if one else 'they'} protected nothing; and training may have waited for that too,"
        f" so {'the' if one else 'their'} stall is at least what is said. A window around all of it"
        " shows how long it was."
    ]


def _cached(saves: Saves) -> str:
    """Of saves that nobody synced: how long they took, and how long the kernel then let them
    lie."""
    lay = [
        (window, late_s) for window, what in saves if (late_s := written_back_s(window, what)) > 0
    ]
    if not lay:
        return ""
    wrote_s = sum(_took_s(window) - late_s for window, late_s in lay) / len(lay)
    mean_s = sum(late_s for _, late_s in lay) / len(lay)
    whose = "the kernel's timer (30 s unless vm.dirty_expire_centisecs says otherwise)"
    if mean_s < TIMER_S:
        whose = (
            "when the kernel wrote them back, before its timer of 30 s: much was dirty, a file was"
            " written over, or somebody asked"
        )
    return (
        f"{count(len(lay))} not synced: written in {duration(wrote_s)}, "
        f"then {duration(mean_s)}{_mean_words(lay)} in the page cache until on the "
        f"storage. That is {whose}, no rate of the storage; with fsync a save is safe sooner and "
        "holds training up for as long as the storage takes"
    )


def honeymoon_told(m: Measured) -> list[str]:
    """Whether the first saves fitted into the page cache and later ones did not, or will not."""
    if (change := m.slower) is None:
        return _memory_lines(m)
    last = m.stalled_saves[change.first - 1].name
    return [
        f"The saves changed: {duration(change.before_s)} of training lost at each of the first"
        f" {count(change.first)} (until {last}), {duration(change.after_s)} at each after them."
        " So it goes where the first fit into the page cache and the later ones wait for the"
        f" storage: count on {duration(change.after_s)}."
    ]


def _memory_lines(m: Measured) -> list[str]:
    """From which save on they would wait for the disk, where that is seen to come."""
    limit = _number(
        next((n for x in m.run.marks if (n := x.detail.get("dirty_limit_bytes"))), None)
    )
    device = _device_bytes_per_s(m)
    sizes = [what.bytes for _, what in saves_of(m) if what.bytes > 0]
    saves = m.stalled_saves
    begins_s = [window.begin_s for window in saves if window.begin_s is not None]
    if limit is None or device is None or not sizes or len(begins_s) < 2:
        return []
    every_s = (begins_s[-1] - begins_s[0]) / (len(begins_s) - 1)
    mean_bytes = sum(sizes) / len(sizes)
    first = saves_until_full(mean_bytes, every_s, device, float(limit))
    if not len(saves) < first < 1000:
        return []
    return [
        f"These saves went into memory, which takes {size(float(limit))} before a writer waits: at"
        f" one save of {size(mean_bytes)} each {duration(every_s)} and {rate(device)} of the disk,"
        f" save {count(first)} and those after it wait for the disk, some"
        f" {duration(mean_bytes / device)} each."
    ]


def _device_bytes_per_s(m: Measured) -> float | None:
    """What the one disk that the saves went to takes while it is busy; None where that cannot be
    told."""
    busy: dict[str, list[tuple[float, float]]] = {}
    for each in m.stored:
        queue = each.queue
        if each.disk.startswith("disk:") and queue.written_bytes > 0 and queue.busy > 0:
            busy_s = queue.busy * (queue.end_s - queue.begin_s)
            busy.setdefault(each.disk, []).append((queue.written_bytes, busy_s))
    if len(busy) != 1:
        return None
    (seen,) = busy.values()
    seconds = sum(busy_s for _, busy_s in seen)
    return sum(bytes_ for bytes_, _ in seen) / seconds if seconds > 0 else None


def training_told(m: Measured) -> list[str]:
    """What training's own steps and the power of its GPUs say."""
    said = _steps_lines(m)
    against = [
        window.name
        for window, seen in zip(m.windows, m.dips, strict=False)
        if seen is not None and seen.verdict == "CONTRADICTED"
    ]
    if against:
        said.append(
            f"GPU power does not fall where training is said to stand still, in {some(against)}: it"
            " may not have stalled."
        )
    return said


def _steps_lines(m: Measured) -> list[str]:
    if m.steps is None or not m.steps.usual.step_s.known:
        return []
    line = (
        f"{count_text(len(m.steps.ends_s), 'training step')} marked,"
        f" {duration(m.steps.usual.step_s.value)} each outside saves"
    )
    held = [stall.value for stall in m.steps.stalls_s if stall.known]
    if held:
        line += f"; by them a save holds training up for {duration(sum(held) / len(held))}"
    more = m.steps.more
    if more.known:
        between = ends_text(more.low, more.high, share)
        line += f"; while one drains a step takes {share(more.value)} longer{between}"
    return [f"{line}."]
