"""What was measured of checkpoints: the tables of windows, of joules by domain and of phases, and
what is said of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any

from ckptcost.core.attribution import Cost
from ckptcost.core.contents import GONE, LOST_BEFORE_SAFE, Contents, is_staged, written_back_s
from ckptcost.core.counters import Amount
from ckptcost.core.page_cache import saves_until_full
from ckptcost.core.windows import Window
from ckptcost.jobs.measured import Measured
from ckptcost.present.amounts import count, duration, rate, share, size
from ckptcost.present.measured import reason_text, stall_reason_text
from ckptcost.report.studies.measured_parts import count_text, range_of, some, three
from ckptcost.report.studies.run_columns import plain
from ckptcost.report.study import Column, Later, Table

COSTS = 1000
"""costs whose amounts are looked at together"""
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
    status = _told_by_the_wrapper(m).get("exit_status")
    if isinstance(status, int | float) and status:
        ended = f"exit code {status:g}"
        if status > 128:
            ended += f", that is signal {status - 128:g}"
        findings.append(f"The command did not end well: {ended}.")
    others = _told_by_the_wrapper(m)
    left_out = others.get("left_out")
    if isinstance(left_out, int | float) and left_out:
        written, was = ("was", "it is") if left_out == 1 else ("were", "they are")
        findings.append(
            f"{count_text(int(left_out), 'file')} in the folder {written} written by"
            f" {others.get('left_out_by')}, which the job did not start: {was} left out."
        )
    return [*findings, *filter(None, [nothing_found(m)])]


def nothing_found(m: Measured) -> str:
    """Why no checkpoint was, in a sentence; empty where one was, or nobody looked."""
    reason = NOTHING_FOUND.get(str(_told_by_the_wrapper(m).get("nothing_found")))
    return f"No checkpoint was found: {reason}. {MARK_IT}" if reason and not m.windows else ""


def _told_by_the_wrapper(m: Measured) -> dict[str, object]:
    detail: dict[str, object] = {}
    for mark in m.run.marks:
        detail |= mark.detail if mark.by == "wrap" else {}
    return detail


def saves_told(m: Measured) -> list[str]:
    """How many, how large, how long until safe; and of what it is not known."""
    saves = [
        (window, what)
        for window, what in zip(m.windows, m.contents, strict=True)
        if what.of == "save"
    ]
    if not saves:
        return []
    failed = [what.error for _, what in saves if what.error and what.error != GONE]
    removed = [what for _, what in saves if what.error == GONE]
    safe = [(window, what) for window, what in saves if rate_of(window, what) is not None]
    sizes = [
        what.bytes
        for _, what in saves
        if what.bytes == what.bytes and what.error in ("", GONE)  # of one that failed it is a piece
    ]
    said = f"{count_text(len(saves), 'checkpoint')}"
    said += f", {size(sum(sizes))}" if sizes else ""
    if safe:
        seconds = sum(
            w.durable_s - w.begin_s
            for w, _ in safe
            if w.durable_s is not None and w.begin_s is not None
        )
        mean = "" if len(safe) == 1 else " in the mean"
        said += (
            f"; safe after {duration(seconds / len(safe))}{mean},"
            f" {rate(sum(what.bytes for _, what in safe) / seconds)}"
        )
    said += _cached(saves)
    unseen_s = [
        window.durable_s - window.begin_s
        for window, what in saves
        if window.durable_s is not None
        and window.begin_s is not None
        and isnan(written_back_s(window, what))
    ]
    if unseen_s:
        said += (
            f"; {count(len(unseen_s))} safe at some time within {duration(max(unseen_s))}, which"
            " nobody looked at"
        )
    said += f"; {count(len(failed))} failed: {some(sorted(set(failed)))}" if failed else ""
    if removed:
        said += (
            f"; {count(len(removed))} removed again at once, as after an upload or a save that was "
            "given up: nobody knows how long training stood still"
        )
    without = [
        (window, what) for window, what in saves if window.durable_s is None and not what.error
    ]
    staged = {
        window.name
        for window, is_so in zip(m.windows, is_staged(m.windows, m.contents), strict=True)
        if is_so
    }
    lost = [
        what
        for window, what in without
        if what.why in LOST_BEFORE_SAFE and window.name not in staged
    ]
    if lost:
        said += (
            f"; {count(len(lost))} deleted or written over before "
            f"{'it was' if len(lost) == 1 else 'they were'} safe: "
            f"{'it' if len(lost) == 1 else 'they'} protected nothing"
        )
    unknown_ = [(window, what) for window, what in without if what.why not in LOST_BEFORE_SAFE]
    if unknown_:
        why = sorted({reason_text(what.why or window.durable_why) for window, what in unknown_})
        said += f"; of {count(len(unknown_))} it is not known when they were safe: {some(why)}"
    return [said + "."]


def returned_why(window: Window, what: Contents) -> str:
    """Why it is not known when training went on; empty where it is."""
    if window.returned_s is not None:
        return ""
    return what.returned_why or window.begin_why or window.returned_why


def stalls_told(m: Measured) -> list[str]:
    """Of how many saves it is not known how long training stood still, and why."""
    reasons = [
        returned_why(window, what)
        for window, what in zip(m.windows, m.contents, strict=True)
        if what.of == "save" and not what.error and window.stall_s is None
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
        several, gap_s = mark.detail.get("run_together"), mark.detail.get("gap_s")
        if isinstance(several, int | float) and isinstance(gap_s, int | float):
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
    wrote = _told_by_the_wrapper(m).get("written_bytes")
    in_folder = [
        what.bytes
        for window, what in zip(m.windows, m.contents, strict=True)
        if what.of == "save" and what.bytes > 0
    ]
    looked = any(mark.detail.get("how") in ("inotify", "poll") for mark in m.run.marks)
    if not looked or not in_folder or not isinstance(wrote, int | float):
        return []
    if not wrote >= MUCH_MORE * sum(in_folder):
        return []
    return [
        f"The job wrote {size(float(wrote))}, and the checkpoints that were found hold"
        f" {size(sum(in_folder))} of it. If the rest was saves too: those closer than --gap run"
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


def _cached(saves: Sequence[tuple[Window, Contents]]) -> str:
    """Of saves that nobody synced: how long they took, and how long the kernel then let them
    lie."""
    lay_s = {
        place: late_s
        for place, (window, what) in enumerate(saves)
        if (late_s := written_back_s(window, what)) > 0
    }
    if not lay_s:
        return ""
    wrote_s = [
        window.durable_s - window.begin_s - lay_s[place]
        for place, (window, _) in enumerate(saves)
        if place in lay_s and window.durable_s is not None and window.begin_s is not None
    ]
    mean = "" if len(lay_s) == 1 else " in the mean"
    mean_s = sum(lay_s.values()) / len(lay_s)
    whose = (
        "the kernel's timer (30 s unless vm.dirty_expire_centisecs says otherwise)"
        if mean_s >= TIMER_S
        else (
            "when the kernel wrote them back, before its timer of 30 s: much was dirty, a file was"
            " written over, or somebody asked"
        )
    )
    return (
        f"; {count(len(lay_s))} not synced: written in {duration(sum(wrote_s) / len(wrote_s))}, "
        f"then {duration(mean_s)}{mean} in the page cache until on the "
        f"storage. That is {whose}, no rate of the storage; with fsync a save is safe sooner and "
        "holds training up for as long as the storage takes"
    )


def honeymoon_told(m: Measured) -> list[str]:
    """Whether the first saves fitted into the page cache and later ones did not, or will not."""
    if (change := m.slower) is not None:
        last = m.stalled_saves[change.first - 1].name
        return [
            f"The saves changed: {duration(change.before_s)} of training lost at each of the first"
            f" {count(change.first)} (until {last}), {duration(change.after_s)} at each after them."
            " So it goes where the first fit into the page cache and the later ones wait for the"
            f" storage: count on {duration(change.after_s)}."
        ]
    limit = next((n for x in m.run.marks if (n := x.detail.get("dirty_limit_bytes"))), None)
    saves = m.stalled_saves
    device = _device_bytes_per_s(m)
    if not isinstance(limit, int | float) or len(saves) < 2 or device is None:
        return []
    sizes = [what.bytes for what in m.contents if what.of == "save" and what.bytes > 0]
    begins_s = [window.begin_s for window in saves if window.begin_s is not None]
    if not sizes or len(begins_s) < 2:
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
    said = []
    if m.steps is not None and m.steps.usual.step_s.known:
        line = (
            f"{count_text(len(m.steps.ends_s), 'training step')} marked,"
            f" {duration(m.steps.usual.step_s.value)} each outside saves"
        )
        held = [stall.value for stall in m.steps.stalls_s if stall.known]
        line += (
            f"; by them a save holds training up for {duration(sum(held) / len(held))}"
            if held
            else ""
        )
        more = m.steps.more
        if more.known:
            between = (
                f" ({share(more.low)} to {share(more.high)})"
                if more.low is not None and more.high is not None
                else ""
            )
            line += f"; while one drains a step takes {share(more.value)} longer{between}"
        said.append(f"{line}.")
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


def windows(m: Measured) -> Table:
    rows, totals = [], m.of_windows()
    for place, (window, what, chance) in enumerate(
        zip(m.windows, m.contents, m.opportunities, strict=True)
    ):
        absolute, excess, stall = totals[window.name]
        row: dict[str, Any] = {
            "window": window.name,
            "of": what.of,
            "bytes": plain(what.bytes),
            "rate": rate_of(window, what),
            "files": plain(what.files),
            "error": what.error,
            "how": what.how,
            "unsure": plain(what.unsure_s),
            "begin": window.begin_s,
            "stall": window.stall_s,
            "drain": window.drain_s,
            "length": window.length_s,
            "returned": window.returned_s,
            "durable": window.durable_s,
            "durable_why": what.why or window.durable_why,
            "returned_why": returned_why(window, what),
            "ranks": float(len(window.spans)),
            **three(absolute, "joules"),
            **three(excess, "excess"),
            **three(stall, "stall_joules"),
            "gpu_s": plain(chance.stalled_gpu_s),
            "waited_gpu_s": plain(chance.waited_gpu_s),
            "flags": ", ".join(
                dict.fromkeys([*(flag.code for flag in window.flags), *absolute.flags])
            ),
            "excess_why": excess.why,
            **_training(m, place),
        }
        rows.append(row)
    columns = (
        Column("window", "checkpoint"),
        Column("begin", "begin", "s", "since the recording began", shown=False),
        Column("bytes", "bytes", "bytes", "as the job or its files say"),
        Column("length", "safe after", "s", "from begin until it is safe and training goes on"),
        Column(
            "rate",
            "rate",
            "bytes_per_s",
            "bytes over the time until safe, as MLPerf Storage has it",
        ),
        Column(
            "stall",
            "stall",
            "s",
            "training stood still, from the first rank's begin to the last one's return",
        ),
        Column("drain", "drain", "s", "from the return until the save is safe", shown=False),
        Column("joules", "J", "J", "all metered parts, from begin until safe"),
        *range_of("joules", True),
        Column("excess", "above idle", "J", "less the baseline's watts times the length"),
        *range_of("excess"),
        Column(
            "gpu_s",
            "GPU-s",
            "GPU-s",
            "GPUs times the stall: what standing still kept from being done",
        ),
        Column("stall_joules", "J of the stall", "J", shown=False),
        *range_of("stall_joules"),
        Column(
            "waited_gpu_s",
            "waited",
            "GPU-s",
            "of it, ranks that were done and waited for a slower one",
            shown=False,
        ),
        Column("of", "of", meaning="save or load", shown=False),
        Column("files", "files", "count", shown=False),
        Column("error", "error", meaning="what ended it before its time", shown=False),
        Column("how", "evidence", meaning="how it is known when it was safe", shown=False),
        Column(
            "unsure",
            "unsure",
            "s",
            "how long before that instant it was last seen not to be safe",
            shown=False,
        ),
        Column(
            "gpu_power",
            "GPU power",
            meaning="whether it confirms that training stood still",
            shown=False,
        ),
        Column(
            "gpu_drop",
            "drop",
            "share",
            "of the GPUs' power, stall over the time before",
            shown=False,
        ),
        Column("gpu_why", "why not", meaning="code, where GPU power does not tell", shown=False),
        Column(
            "steps_stall", "by steps", "s", "how much longer training's own steps took", shown=False
        ),
        Column("steps_stall_low", "low", "s", shown=False),
        Column("steps_stall_high", "high", "s", shown=False),
        Column("steps_why", "why", meaning="code, where steps do not tell", shown=False),
        Column("returned", "returned", "s", "since the recording began", shown=False),
        Column(
            "durable", "durable", "s", "since the recording began; null: not known", shown=False
        ),
        Column(
            "durable_why",
            "why not",
            meaning="code, where it is not known when the save was safe",
            shown=False,
        ),
        Column(
            "returned_why",
            "why no stall",
            meaning="code, where it is not known when training went on",
            shown=False,
        ),
        Column("ranks", "ranks", "count", shown=False),
        Column("flags", "flags", shown=False),
        Column("excess_why", "why", meaning="code, where the excess is unknown", shown=False),
    )
    return Table("windows", "Checkpoints", columns, rows)


def _training(m: Measured, place: int) -> dict[str, Any]:
    """What the GPUs' power and the job's own steps say of a stall."""
    found: dict[str, Any] = {}
    if place < len(m.dips) and (seen := m.dips[place]) is not None:
        found |= {
            "gpu_power": seen.verdict,
            "gpu_drop": plain(seen.drop_fraction),
            "gpu_why": seen.why,
        }
    if m.steps is not None:
        held = m.steps.stalls_s[place]
        found |= {
            "steps_stall": plain(held.value),
            "steps_stall_low": plain(held.low),
            "steps_stall_high": plain(held.high),
        }
        found["steps_why"] = held.why
    return found


def rate_of(window: Window, what: Contents) -> float | None:
    """Bytes over the time from begin until safe."""
    if (
        what.error
        or window.begin_s is None
        or window.durable_s is None
        or window.durable_s <= window.begin_s
    ):
        return None  # of a save that failed it is no rate
    if written_back_s(window, what) != 0.0:
        return None  # the time is the kernel's timer
    return plain(what.bytes / (window.durable_s - window.begin_s))


def energies(m: Measured) -> Table:
    columns = (
        Column("window", "checkpoint"),
        Column("domain", "domain"),
        Column("joules", "J", "J"),
        *range_of("joules", True),
        Column("stall", "stall J", "J"),
        Column("drain", "drain J", "J", "mostly training's own"),
        Column("extra", "extra J", "J", "what draining adds to the power of training just before"),
        Column("excess", "above idle", "J", shown=False),
        *(part for n in ("excess", "stall", "drain", "extra") for part in range_of(n)),
        Column(
            "share",
            "share",
            "J",
            "with instants that several saves share divided among them: these add up",
            shown=False,
        ),
        *range_of("share"),
        Column(
            "training", "training W", "W", "mean power just before, outside all saves", shown=False
        ),
        Column("overlap", "overlap", "s", "drain while training went on", shown=False),
        Column(
            "short",
            "short",
            "bool",
            "fewer than five ticks inside: the edges are most of the answer",
            shown=False,
        ),
        Column("coverage", "covered", "share", shown=False),
        Column("ticks", "ticks", "count", shown=False),
        Column("source", "source", shown=False),
        Column("flags", "flags", shown=False),
        Column("why", "why", shown=False),
        Column("reasons", "reasons", shown=False),
    )
    return Table(
        "energies",
        "Joules by checkpoint and domain",
        columns,
        Later(lambda: _energy_rows(m)),
        shown=len(m.costs) <= 12,
    )


def _energy_rows(m: Measured) -> list[dict[str, Any]]:
    rows = []
    spans = {w.name: w for w in m.windows}
    told: dict[tuple[str, str], Amount] = {}
    for place, cost in enumerate(m.costs):
        row: dict[str, Any] = {
            "window": cost.window,
            "domain": cost.domain,
            **three(cost.absolute, "joules"),
            **three(cost.excess, "excess"),
        }
        row |= (
            three(cost.stall, "stall")
            | three(cost.drain, "drain")
            | three(cost.extra, "extra")
            | three(cost.share, "share")
        )
        row |= {"training": plain(cost.training_w.value), "overlap": plain(cost.overlap_s)}
        row |= {
            "flags": ", ".join(
                dict.fromkeys([*cost.absolute.flags, *cost.excess.flags, *cost.extra.flags])
            ),
            "why": cost.absolute.why,
        }
        if place % COSTS == 0:
            told = _amounts(m, m.costs[place : place + COSTS], spans)
        amount = told.get((cost.window, cost.domain))
        if amount is not None:
            row |= {"short": amount.short, "reasons": ", ".join(amount.reasons)}
        row |= {
            "source": m.energies.sources[cost.domain].channel.source,
            "coverage": plain(amount.coverage) if amount else None,
            "ticks": plain(amount.ticks) if amount else None,
        }
        rows.append(row)
    return rows


def _amounts(
    m: Measured, costs: Sequence[Cost], spans: Mapping[str, Window]
) -> dict[tuple[str, str], Amount]:
    """What the meters say of some windows, worked out together."""
    asked: dict[tuple[str, str], tuple[float, float]] = {}
    for cost in costs:
        begin_s, end_s = spans[cost.window].begin_s, spans[cost.window].end_s
        if begin_s is not None and end_s is not None and end_s > begin_s:
            asked[cost.window, cost.domain] = begin_s, end_s
    m.energies.ahead(list(dict.fromkeys(domain for _, domain in asked)), asked.values())
    return {key: m.energies.joules(key[1], *span) for key, span in asked.items()}


def phases(m: Measured) -> Table:
    columns = (
        Column("window", "checkpoint"),
        Column("of", "of", meaning="two views of the same time: of training and of storage"),
        Column("phase", "phase"),
        Column("length", "length", "s"),
        Column("watts", "mean W", "W"),
        Column("joules", "J", "J"),
        *range_of("joules", True),
        Column("begin", "begin", "s", shown=False),
    )
    return Table(
        "phases",
        "Phases, all metered parts together",
        columns,
        Later(lambda: _phase_rows(m)),
        shown=len(m.windows) <= 3,
    )


def _phase_rows(m: Measured) -> list[dict[str, Any]]:
    told = [
        (window, kind, phase)
        for window in m.windows
        for kind, phases in (("training", window.phases), ("storage", window.storage))
        for phase in phases
        if phase.length_s != 0
    ]
    used = m.of_phases([(phase.begin_s, phase.end_s) for _, _, phase in told])
    return [
        {
            "window": window.name,
            "of": kind,
            "phase": phase.name,
            "begin": phase.begin_s,
            "length": phase.length_s,
            **three(energy, "joules"),
            "watts": plain(watts),
        }
        for (window, kind, phase), (energy, watts) in zip(told, used, strict=True)
    ]
