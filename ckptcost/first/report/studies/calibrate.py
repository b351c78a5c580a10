"""A calibration as a study: the figures with their intervals, what each save left of them, and what
was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Final, NamedTuple

from ckptcost.first.core.estimates import Estimate
from ckptcost.first.jobs.calibrate import Calibration, Parameter
from ckptcost.first.jobs.calibrate_rounds import FitRound
from ckptcost.first.present.amounts import (
    amount,
    count,
    count_text,
    duration,
    ends_text,
    number,
    rate,
    share,
    size,
    some,
)
from ckptcost.first.present.measured import reason_text
from ckptcost.first.report.study import (
    ROW_UNIT,
    Column,
    Study,
    Table,
    hidden,
    named,
    plain,
    table_of,
)

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

FEW: Final = ("ONE_SIZE", "ONE_ROUND", "SIZES_NOT_APART", "NO_GROWTH", "FEW_ROUNDS")
"""why the fit of the saves is less than could be had"""

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
    lacking: dict[str, list[str]] = {}
    for parameter in c.parameters:
        if _is_asked(c, parameter) and not parameter.estimate.known:
            name = LABELS[parameter.id].removesuffix(", W").removesuffix(", J/GB")
            lacking.setdefault(parameter.estimate.why, []).append(name)
    return [
        *_writing(c),
        *_reading(c),
        *_power(c),
        *_waiting(c),
        *_storage_energy(c),
        *(f"Not known: {', '.join(names)}: {why_text(why)}." for why, names in lacking.items()),
        *_left_out(c),
    ]


def _is_asked(c: Calibration, parameter: Parameter) -> bool:
    """Whether the model has a place for it, of the mode in which saves went."""
    if parameter.id == "step" and c.mode != "async":
        return False
    return bool(parameter.path) and parameter.estimate.why != "NOT_ASYNC"


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
    of = " to ".join(dict.fromkeys((size(sizes[0]), size(sizes[-1]))))
    head, found = f"{count_text(fit.n, f'{mode} save')} of {of}", fit.rate_bytes_per_s
    if not found.known:
        why = why_text(found.why)
        return [f"{head}: no rate, {why}; the rate is at least {rate(found.low)}."]
    told = f"{head}: {rate(found.value)}{_between(found, 'bytes_per_s')}"
    if not fit.fixed_s.known:
        return [f"{told}, the fixed time included; {why_text(fit.why)}."]
    fixed = f"{duration(fit.fixed_s.value)}{_between(fit.fixed_s, 's')}"
    return [f"{told}, and {fixed} that do not depend on the size."]


def _reading(c: Calibration) -> list[str]:
    found = c.reads.rate_bytes_per_s
    if not found.known:
        return []
    return [
        f"{count_text(c.reads.n, 'load')}: {rate(found.value)}{_between(found, 'bytes_per_s')}."
    ]


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
    said = []
    if snapshot.known:
        held = f"{duration(snapshot.value)}{_between(snapshot, 's')}"
        said.append(f"An asynchronous save holds training up for {held}.")
    if slowed.known:
        ends = ends_text(slowed.low, slowed.high, share) or f": {why_text(slowed.why)}"
        said.append(f"While one drains, training loses {share(slowed.value)} of its speed{ends}.")
    return said


def _storage_energy(c: Calibration) -> list[str]:
    found = c.parameter("write_energy")
    if not found.estimate.known:
        return []
    each = f"{amount(found.estimate.value, 'j_per_byte')}{_between(found.estimate, 'j_per_byte')}"
    by_model = ", by a model of it" if found.basis == "derived" else ""
    return [f"Writing takes {each}, at the {found.boundary}{by_model}."]


def _left_out(c: Calibration) -> list[str]:
    if not c.left:
        return []
    counted = Counter(one.why for one in c.left).most_common()
    return [f"Left out: {'; '.join(f'{count(n)} because {why_text(why)}' for why, n in counted)}."]


def warnings(c: Calibration) -> list[tuple[str, str]]:
    """What to mind before the tier is used."""
    hosts = list(dict.fromkeys(origin.host for origin in c.origins))
    against = [
        r.window.name for r in c.saves if r.dip is not None and r.dip.verdict == "CONTRADICTED"
    ]
    unsure_s = [r.unsure_s for r in c.saves if r.unsure_s > UNSURE * r.seconds]
    most_s = max(unsure_s, default=0.0)
    told = (
        (c.writes.why, c.writes.why in FEW, f"Saves: {why_text(c.writes.why)}."),
        (
            "SPREAD",
            c.writes.spread_fraction > SPREAD,
            f"Durations of saves scatter by {share(c.writes.spread_fraction)} around the fit. More"
            " rounds tell more.",
        ),
        (
            "UNSURE_END",
            bool(unsure_s),
            f"Of {count_text(len(unsure_s), 'save')} the end is known to {duration(most_s)} only:"
            " the rate may be higher.",
        ),
        (
            "SEVERAL_HOSTS",
            len(hosts) > 1,
            f"Runs of {', '.join(hosts)} were fitted together, as if they were alike.",
        ),
        (
            "CONTRADICTED",
            bool(against),
            f"GPU power does not fall in stalls that the marks tell of: {some(against, 5)}.",
        ),
    )
    return [(code, text) for code, holds, text in told if holds]


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
    rows = [_parameter_row(parameter, c.simulated) for parameter in c.parameters]
    columns = (
        Column("what", "figure"),
        Column("value", "value", ROW_UNIT),
        Column("low", "low", ROW_UNIT, "95 %"),
        Column("high", "high", ROW_UNIT, "95 %; null beside a low end: no upper end"),
        Column("n", "of", "count", "rounds it rests on"),
        Column(
            "path", "key", meaning="where the model takes it from; empty: it has no place for it"
        ),
        *hidden(
            *("why", "id", "unit", "note", "boundary", "basis"),
            Column("reason", "reason", meaning="why the value or its interval is not there"),
        ),
    )
    return Table("parameters", "What the model asks for", columns, rows)


def _parameter_row(parameter: Parameter, simulated: bool) -> dict[str, Any]:
    estimate, (unit, times) = parameter.estimate, _unit(parameter)
    ends = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
    basis = "assumed" if simulated else parameter.basis
    return {
        **parameter._asdict(),
        **{name: None if end is None else plain(end * times) for name, end in ends.items()},
        "what": LABELS[parameter.id],
        "n": estimate.n,
        "unit": unit,
        "why": estimate.why,
        "basis": basis if estimate.known else "",
        "reason": why_text(estimate.why) if estimate.why else "",
    }


class RoundSeen(NamedTuple):
    """A round and how far it lies from the fit."""

    of: FitRound
    off_s: float

    @property
    def fitted_s(self) -> float:
        return self.of.seconds - self.off_s


_ROUNDS = (
    Column("window", "checkpoint", of="of.window.name"),
    Column("of", "of", meaning=MODES, of="of.mode"),
    Column("bytes", "bytes", "bytes", of="of.bytes"),
    Column("measured", "measured", "s", of="of.seconds"),
    Column("fitted", "fitted", "s", of="fitted_s"),
    Column("difference", "difference", "s", of="off_s"),
    Column("off", "of fitted", "share", of=lambda one: one.off_s / one.fitted_s),
    Column("stall", "stall", "s", "by marks", of="of.stall_s"),
    Column(
        "by_steps",
        "by steps",
        "s",
        "how much longer the steps took that it touches",
        of="of.by_steps.value",
    ),
    Column(
        "gpus",
        "GPU power",
        meaning="whether it confirms the stall",
        of=lambda one: one.of.dip.verdict if one.of.dip else "",
    ),
    *hidden(
        Column("by_steps_low", "low", "s", of="of.by_steps.low"),
        Column("by_steps_high", "high", "s", of="of.by_steps.high"),
        Column("by_steps_why", "why not", of="of.by_steps.why"),
        Column(
            "drop",
            "falls by",
            "share",
            "GPU power in the stall",
            of=lambda one: one.of.dip and one.of.dip.drop_fraction,
        ),
        Column("how", "how", meaning="the evidence for the instant that it was safe", of="of.how"),
        Column(
            "unsure",
            "unsure",
            "s",
            "how long before that it was last seen not to be",
            of="of.unsure_s",
        ),
        Column("gpus_why", "why", of=lambda one: one.of.dip.why if one.of.dip else ""),
        Column("files", "files", "count", of="of.files"),
        Column("run", "run", of="of.run"),
    ),
)


def _rounds(c: Calibration) -> Table:
    seen = [
        RoundSeen(*each)
        for fit, rounds in ((c.writes, c.saves), (c.reads, c.loads))
        for each in zip(rounds, fit.residuals_s, strict=False)
    ]
    few = len(seen) <= MOST_SHOWN
    table = table_of("rounds", "Saves and loads, measured and fitted", _ROUNDS, seen, shown=few)
    empty = [
        name for name in ("by_steps", "gpus") if all(row[name] in (None, "") for row in table.rows)
    ]
    columns = (each._replace(shown=each.shown and each.id not in empty) for each in table.columns)
    return table._replace(columns=tuple(columns))


def _left(c: Calibration) -> list[Table]:
    if not c.left:
        return []
    columns = (
        Column("window", "checkpoint"),
        *named("of", "why"),
        Column("reason", "because", of=lambda one: why_text(one.why)),
        *hidden("run"),
    )
    return [table_of("left", "Left out", columns, c.left, shown=len(c.left) <= MOST_SHOWN)]


def _origins(c: Calibration) -> Table:
    columns = (
        *named("run", "host", "date"),
        Column("saves", "saves", "count"),
        Column("loads", "loads", "count"),
    )
    return table_of("runs", "Runs", columns, c.origins, shown=len(c.origins) > 1)
