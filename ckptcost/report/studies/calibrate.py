"""A calibration as a study: the figures with their intervals, what each save left of them, and what
was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Final

from ckptcost.core.estimates import Estimate
from ckptcost.core.fit import TimeFit
from ckptcost.jobs.calibrate import Calibration, Parameter
from ckptcost.jobs.calibrate_rounds import FitRound
from ckptcost.present.amounts import (
    amount,
    count,
    count_text,
    duration,
    number,
    rate,
    share,
    size,
    some,
)
from ckptcost.present.measured import reason_text
from ckptcost.report.study import ROW_UNIT, Column, Study, Table, plain

REASONS: Final[Mapping[str, str]] = {
    "NO_ROUNDS": "no save or load of that kind was recorded",
    "ONE_ROUND": "one round has no interval",
    "FEW_ROUNDS": "too few rounds for an interval: one more than there are unknowns",
    "ONE_SIZE": "all sizes alike: save in two sizes to tell the fixed time from the rate",
    "SIZES_NOT_APART": (
        "durations scatter too much to tell the fixed time from the rate: more rounds, or sizes"
        " further apart"
    ),
    "NO_GROWTH": "durations do not grow with the bytes: save larger ones",
    "FILES_UNKNOWN": "the number of files is not known of every save",
    "FILES_NOT_APART": (
        "the number of files does not vary by itself, so what a file costs is in the other figures"
    ),
    "AT_BOUND": "it would be negative and is held at nothing",
    "AS_WRITES": "loads of one size: the fixed time of the writes was taken off",
    "ONE_RANK": "one rank marked its part",
    "NO_STEPS": "no training steps are marked where they are needed",
    "FEW_STEPS": "too few steps for an interval",
    "STEPS_MISSING": "steps do not reach from before the stall until after it",
    "NOT_ASYNC": "the saves were synchronous",
    "NOT_TRAINING": "nobody trained meanwhile: no steps are marked, and the GPUs were not busy",
    "NO_GPU_METER": "no GPU was metered",
    "NO_STORAGE_METER": "no meter of a drive or of the storage gives joules",
    "NO_BYTES": "its size is not known",
    "FAILED": "it failed",
    "OVERLAPS": "another save or load went on at the same time",
    "HONEYMOON": (
        "one of the first saves, which fit into the page cache: the later ones take longer"
    ),
    "PAGE_CACHE": (
        "the job does not sync what it saves, so that the kernel's timer decides when it is "
        "safe, and no disk's counters show how fast its bytes went: sync them, or measure with "
        "`ckptcost probe`"
    ),
    "OTHER_MODE": (
        "saves written in the background and others are not fitted together, and the others are"
        " more"
    ),
    "PARTS_EXCEED_NODE": "the GPUs take more than the node's own meter says",
    "GAPS": "readings do not cover all of it",
}

SPREAD: Final = 0.15
"""scatter of durations that is worth a warning"""

UNSURE: Final = 0.1
"""share of a duration by which its end may be late that is worth a warning"""

LABELS: Final[Mapping[str, str]] = {
    "write": "write rate",
    "setup": "fixed time of a save",
    "files_rate": "files created a second",
    "rate_spread": "scatter of durations",
    "read": "read rate",
    "read_fixed": "fixed time of a load",
    "straggler": "slowest rank over the mean",
    "write_energy": "energy of writing, J/GB",
    "storage_rest": "storage at rest, W",
    "gpu_train": "one GPU in training, W",
    "gpu_stall": "one GPU held up, W",
    "gpu_idle": "one GPU idle, W",
    "host_train": "rest of node training, W",
    "host_stall": "rest of node held up, W",
    "host_idle": "rest of node idle, W",
    "snapshot": "stall of an async save",
    "slowdown": "speed lost in a drain",
    "step": "one training step",
}


def why_text(code: str) -> str:
    """Why a figure or its interval is not there, or a save was left out."""
    return REASONS.get(code) or reason_text(code)


def findings(c: Calibration) -> list[str]:
    """The figures that matter first; then what is not known."""
    said = [*_writing(c), *_reading(c), *_power(c), *_waiting(c), *_stored_lines(c)]
    lacking: dict[str, list[str]] = {}
    for parameter in c.parameters:
        asked = (
            parameter.path
            and parameter.estimate.why != "NOT_ASYNC"
            and (parameter.id != "step" or c.mode == "async")
        )
        if asked and not parameter.estimate.known:
            lacking.setdefault(parameter.estimate.why, []).append(
                LABELS[parameter.id].removesuffix(", W").removesuffix(", J/GB")
            )
    said += [f"Not known: {', '.join(names)}: {why_text(why)}." for why, names in lacking.items()]
    return said + _left_sentences(c)


def _between(estimate: Estimate, unit: str) -> str:
    """The interval in brackets, where there is one."""
    if estimate.low is None or estimate.high is None:
        return ""
    high = amount(estimate.high, unit) if isfinite(estimate.high) else "no upper end"
    return f" ({amount(estimate.low, unit)} to {high})"


def _writing(c: Calibration) -> list[str]:
    fit, mode = c.writes, "asynchronous" if c.mode == "async" else "synchronous"
    if not fit.n:
        return []
    sizes = sorted(round_.bytes for round_ in c.saves)
    of = (
        size(sizes[0])
        if size(sizes[0]) == size(sizes[-1])
        else f"{size(sizes[0])} to {size(sizes[-1])}"
    )
    head = f"{count_text(fit.n, f'{mode} save')} of {of}: "
    if not fit.rate_bytes_per_s.known:
        return [
            f"{head}no rate, {why_text(fit.rate_bytes_per_s.why)}; the rate is at least"
            f" {rate(fit.rate_bytes_per_s.low)}."
        ]
    told = f"{rate(fit.rate_bytes_per_s.value)}{_between(fit.rate_bytes_per_s, 'bytes_per_s')}"
    if fit.fixed_s.known:
        return [
            f"{head}{told}, and {duration(fit.fixed_s.value)}{_between(fit.fixed_s, 's')} that do"
            " not depend on the size."
        ]
    return [f"{head}{told}, the fixed time included; {why_text(fit.why)}."]


def _reading(c: Calibration) -> list[str]:
    found = c.reads.rate_bytes_per_s
    return (
        [f"{count_text(c.reads.n, 'load')}: {rate(found.value)}{_between(found, 'bytes_per_s')}."]
        if found.known
        else []
    )


def _power(c: Calibration) -> list[str]:
    train, stall = (c.parameter(name).estimate for name in ("gpu_train", "gpu_stall"))
    if not (train.known and stall.known):
        return []
    said = (
        f"A GPU takes {number(train.value)} W in training and {number(stall.value)} W while a save"
        f" holds it up: {share(stall.value / train.value)} of it."
    )
    verdicts = Counter(round_.dip.verdict for round_ in c.saves if round_.dip is not None)
    of, seen = sum(verdicts.values()), verdicts["CONFIRMED"]
    return [
        said,
        *([f"Their power confirms {count(seen)} of {count_text(of, 'stall')}."] if of else []),
    ]


def _waiting(c: Calibration) -> list[str]:
    snapshot, slowed = (c.parameter(name).estimate for name in ("snapshot", "slowdown"))
    said = (
        [
            "An asynchronous save holds training up for"
            f" {duration(snapshot.value)}{_between(snapshot, 's')}."
        ]
        if snapshot.known
        else []
    )
    if slowed.known:
        said.append(
            f"While one drains, training loses {share(slowed.value)} of its speed{_shares(slowed)}."
        )
    return said


def _shares(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return f": {why_text(estimate.why)}"
    return f" ({share(estimate.low)} to {share(estimate.high)})"


def _stored_lines(c: Calibration) -> list[str]:
    found = c.parameter("write_energy")
    if not found.estimate.known:
        return []
    return [
        "Writing takes"
        f" {amount(found.estimate.value, 'j_per_byte')}{_between(found.estimate, 'j_per_byte')},"
        f" {_place(found)}."
    ]


def _place(parameter: Parameter) -> str:
    return f"at the {parameter.boundary}" + (
        ", by a model of it" if parameter.basis == "derived" else ""
    )


def _left_sentences(c: Calibration) -> list[str]:
    if not c.left:
        return []
    counted = Counter(one.why for one in c.left)
    return [
        "Left out:"
        f" {'; '.join(f'{count(n)} because {why_text(why)}' for why, n in counted.most_common())}."
    ]


def warnings(c: Calibration) -> list[tuple[str, str]]:
    """What to mind before the tier is used."""
    found: list[tuple[str, str]] = []
    if c.writes.why in ("ONE_SIZE", "ONE_ROUND", "SIZES_NOT_APART", "NO_GROWTH", "FEW_ROUNDS"):
        found.append((c.writes.why, f"Saves: {why_text(c.writes.why)}."))
    if c.writes.spread_fraction > SPREAD:
        found.append(
            (
                "SPREAD",
                (
                    f"Durations of saves scatter by {share(c.writes.spread_fraction)} around the"
                    " fit. More rounds tell more."
                ),
            )
        )
    if unsure := [r for r in c.saves if r.unsure_s > UNSURE * r.seconds]:
        most_s = max(r.unsure_s for r in unsure)
        found.append(
            (
                "UNSURE_END",
                (
                    f"Of {count_text(len(unsure), 'save')} the end is known to {duration(most_s)}"
                    " only: the rate may be higher."
                ),
            )
        )
    if len(hosts := dict.fromkeys(origin.host for origin in c.origins)) > 1:
        found.append(
            (
                "SEVERAL_HOSTS",
                f"Runs of {', '.join(hosts)} were fitted together, as if they were alike.",
            )
        )
    if any(round_.dip is not None and round_.dip.verdict == "CONTRADICTED" for round_ in c.saves):
        names = [
            f"{r.window.name}"
            for r in c.saves
            if r.dip is not None and r.dip.verdict == "CONTRADICTED"
        ]
        found.append(
            (
                "CONTRADICTED",
                f"GPU power does not fall in stalls that the marks tell of: {some(names, 5)}.",
            )
        )
    return found


def next_command(c: Calibration, kinds: Sequence[str]) -> str:
    """How the model uses it; what a file cannot hold, as flags."""
    words = ["ckptcost model"]
    if "tier" in kinds:
        words.append(f"--tier {c.id}")
    if "cluster" in kinds:
        words.append(f"--set cluster.id={c.id}")
    if c.mode == "async":
        words.append("--set policy.mode=async")
    for name in ("snapshot", "slowdown"):
        parameter = c.parameter(name)
        if parameter.estimate.known:
            value = f"{parameter.estimate.value:.4g}"
            words.append(
                f'--set {parameter.path}="{value} s"'
                if parameter.unit == "s"
                else f"--set {parameter.path}={value}"
            )
    return " ".join(words)


_UNIT = {
    "bytes_per_s": ("bytes_per_s", 1.0),
    "s": ("s", 1.0),
    "w": ("W", 1.0),
    "j_per_byte": ("J/GB", 1e9),
    "files_per_s": ("1", 1.0),
}
"""how a row shows a base unit, and times what"""
_SHARES = ("rate_spread", "slowdown")
MOST_SHOWN = 12
MODES = "sync; early: safe only after training went on; async: written in the background; load"


def study_of(c: Calibration, kinds: Sequence[str], files: Sequence[str] = ()) -> Study:
    """`kinds` of catalogue entries that it makes; `files` that were written, none where it was only
    shown."""
    return Study(
        kind="calibration",
        title=f"{'Calibrated' if files else 'Would be calibrated'} as {c.id}",
        about=[
            (
                f"From {_runs(c)}. Seconds = fixed + bytes/rate, by least squares on durations; low"
                " and high hold the truth 95 times in 100."
            ),
            "Watts and joules are the machine's own: no PUE.",
        ],
        question={
            "as": c.id,
            "name": c.name,
            "runs": [origin.run for origin in c.origins],
            "written": bool(files),
        },
        tables=[_parameters(c), _rounds(c), *_left(c), _origins(c)],
        findings=[*findings(c), *_ends(c, kinds, files)],
        warnings=warnings(c),
        simulated=c.simulated,
    )


def _runs(c: Calibration) -> str:
    names = list(dict.fromkeys(origin.run[:8] for origin in c.origins))
    hosts = list(dict.fromkeys(origin.host for origin in c.origins))
    return f"{'run' if len(names) == 1 else 'runs'} {', '.join(names)} of {', '.join(hosts)}"


def _ends(c: Calibration, kinds: Sequence[str], files: Sequence[str]) -> list[str]:
    if not kinds:
        return [
            "Nothing of it makes a catalogue entry: a tier needs a write rate, a cluster the watts"
            " of a GPU in training."
        ]
    if not files:
        return [
            f"Nothing was written. It would be {' and '.join(f'a {kind}' for kind in kinds)} of the"
            " catalogue."
        ]
    return [f"Written: {', '.join(files)}.", f"Next: `{next_command(c, kinds)}`"]


def _unit(parameter: Parameter) -> tuple[str, float]:
    return _UNIT.get(parameter.unit, ("share" if parameter.id in _SHARES else "1", 1.0))


def _parameters(c: Calibration) -> Table:
    rows: list[dict[str, Any]] = []
    for parameter in c.parameters:
        estimate, (unit, times) = parameter.estimate, _unit(parameter)
        low, high = (
            None if end is None else plain(end * times) for end in (estimate.low, estimate.high)
        )
        rows.append(
            {
                "what": LABELS[parameter.id],
                "id": parameter.id,
                "value": plain(estimate.value * times),
                "low": low,
                "high": high,
                "n": float(estimate.n),
                "unit": unit,
                "why": estimate.why,
                "path": parameter.path,
                "note": parameter.note,
                "boundary": parameter.boundary,
                "basis": ("assumed" if c.simulated else parameter.basis) if estimate.known else "",
                "reason": why_text(estimate.why) if estimate.why else "",
            }
        )
    columns = (
        Column("what", "figure"),
        Column("value", "value", ROW_UNIT),
        Column("low", "low", ROW_UNIT, "95 %"),
        Column("high", "high", ROW_UNIT, "95 %; null beside a low end: no upper end"),
        Column("n", "of", "count", "rounds it rests on"),
        Column(
            "path", "key", meaning="where the model takes it from; empty: it has no place for it"
        ),
        Column("why", "why", shown=False),
        Column("id", "id", shown=False),
        Column("unit", "unit", shown=False),
        Column("note", "note", shown=False),
        Column("boundary", "boundary", shown=False),
        Column("basis", "basis", shown=False),
        Column(
            "reason", "reason", meaning="why the value or its interval is not there", shown=False
        ),
    )
    return Table("parameters", "What the model asks for", columns, rows)


def _rounds(c: Calibration) -> Table:
    rows = [
        _row(r, fit, n)
        for fit, rounds in ((c.writes, c.saves), (c.reads, c.loads))
        for n, r in enumerate(rounds)
    ]
    columns = (
        Column("window", "checkpoint"),
        Column("of", "of", meaning=MODES),
        Column("bytes", "bytes", "bytes"),
        Column("measured", "measured", "s"),
        Column("fitted", "fitted", "s"),
        Column("difference", "difference", "s"),
        Column("off", "of fitted", "share"),
        Column("stall", "stall", "s", "by marks"),
        Column("by_steps", "by steps", "s", "how much longer the steps took that it touches"),
        Column("gpus", "GPU power", meaning="whether it confirms the stall"),
        Column("by_steps_low", "low", "s", shown=False),
        Column("by_steps_high", "high", "s", shown=False),
        Column("by_steps_why", "why not", shown=False),
        Column("drop", "falls by", "share", "GPU power in the stall", shown=False),
        Column("how", "how", meaning="the evidence for the instant that it was safe", shown=False),
        Column(
            "unsure", "unsure", "s", "how long before that it was last seen not to be", shown=False
        ),
        Column("gpus_why", "why", shown=False),
        Column("files", "files", "count", shown=False),
        Column("run", "run", shown=False),
    )
    asked = {
        "by_steps": any(row["by_steps"] is not None for row in rows),
        "gpus": any(row["gpus"] for row in rows),
    }
    shown = tuple(
        column._replace(shown=column.shown and asked.get(column.id, True)) for column in columns
    )
    return Table(
        "rounds", "Saves and loads, measured and fitted", shown, rows, shown=len(rows) <= MOST_SHOWN
    )


def _row(r: FitRound, fit: TimeFit, n: int) -> dict[str, Any]:
    off_s, by_steps = fit.residuals_s[n], r.by_steps
    return {
        "window": r.window.name,
        "of": r.mode,
        "bytes": r.bytes,
        "measured": r.seconds,
        "fitted": r.seconds - off_s,
        "difference": off_s,
        "off": off_s / (r.seconds - off_s),
        "stall": plain(r.stall_s),
        "by_steps": plain(by_steps.value),
        "by_steps_low": by_steps.low,
        "by_steps_high": by_steps.high,
        "by_steps_why": by_steps.why,
        "gpus": "" if r.dip is None else r.dip.verdict,
        "gpus_why": "" if r.dip is None else r.dip.why,
        "how": r.how,
        "unsure": plain(r.unsure_s),
        "drop": None if r.dip is None else plain(r.dip.drop_fraction),
        "files": plain(r.files),
        "run": r.run,
    }


def _left(c: Calibration) -> list[Table]:
    if not c.left:
        return []
    rows = [
        {
            "window": one.window,
            "of": one.of,
            "why": one.why,
            "reason": why_text(one.why),
            "run": one.run,
        }
        for one in c.left
    ]
    columns = (
        Column("window", "checkpoint"),
        Column("of", "of"),
        Column("why", "why"),
        Column("reason", "because"),
        Column("run", "run", shown=False),
    )
    return [Table("left", "Left out", columns, rows, shown=len(rows) <= MOST_SHOWN)]


def _origins(c: Calibration) -> Table:
    rows = [
        {
            "run": o.run,
            "host": o.host,
            "date": o.date,
            "saves": float(o.saves),
            "loads": float(o.loads),
        }
        for o in c.origins
    ]
    columns = (
        Column("run", "run"),
        Column("host", "host"),
        Column("date", "date"),
        Column("saves", "saves", "count"),
        Column("loads", "loads", "count"),
    )
    return Table("runs", "Runs", columns, rows, shown=len(rows) > 1)
