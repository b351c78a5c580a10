"""The probe screen as data: the form with its plan, the probe under way, and what it found. The
screen knows this module alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from ckptcost.errors import CkptcostError
from ckptcost.present.chart import Bars, Chart, Stat
from ckptcost.present.form import Field
from ckptcost.present.grid import Grid, Tone
from ckptcost.report.study import Study
from ckptcost.tui.desk import Desk
from ckptcost.tui.screens import (
    probe_form,
    probe_place,
    probe_plan,
    probe_progress,
    probe_result,
    probe_run,
)
from ckptcost.tui.screens.probe_form import Draft, fresh
from ckptcost.tui.screens.probe_place import Spot
from ckptcost.tui.screens.probe_plan import Plan
from ckptcost.tui.screens.probe_progress import Progress
from ckptcost.tui.screens.probe_run import Ended, Running

__all__ = ["Draft", "Ended", "Progress", "Result", "Running", "Spot", "fresh"]

Line = tuple[str, Tone]
look = probe_place.look
choices = probe_form.choices


class Asking(NamedTuple):
    """The form and what comes of it, before anything is written."""

    fields: tuple[Field, ...]
    plan: list[Line]
    """the place, and what would be written there"""
    ready: Plan | None
    """None while a field or the place forbids it"""
    why_not: str


class Result(NamedTuple):
    """What was found, and all that the screen shows of it."""

    study: Study | None
    line: Line
    stats: tuple[Stat, ...] = ()
    rows: Grid = Grid()
    chart: Chart = Chart()
    tiers: Bars = Bars()
    words: Sequence[Line] = ()


def asking(
    draft: Draft,
    desk: Desk,
    spot: Spot | None,
    meters: str = "auto",
    known_bytes_per_s: float | None = None,
) -> Asking:
    """`spot` is None while it is looked at."""
    fields = probe_form.fields(draft, desk)
    simulated = "simulated" in meters.split(",")
    try:
        one = probe_form.wish(draft, desk)
    except CkptcostError as error:
        wrong = next(
            (f"{field.label}: {field.error}" for field in fields if field.error), str(error)
        )
        place = [] if spot is None or not draft.directory.strip() else probe_place.lines(spot, None)
        return Asking(fields, [*place, (wrong, "bad")], None, wrong)
    if simulated:
        plan = probe_plan.plan(one, Spot(str(one.directory), whole_bytes=0.0))
        return Asking(
            fields, probe_plan.lines(plan, simulated=True), plan._replace(question=""), ""
        )
    if spot is None or spot.directory != str(one.directory):
        return Asking(
            fields, [("looking at the folder ...", "muted")], None, "the folder is still looked at"
        )
    plan = probe_plan.plan(one, spot, known_bytes_per_s)
    ready, why_not = (None, f"{plan.refusal}.") if plan.refusal else (plan, "")
    place = probe_place.lines(spot, one if ready is not None else None)
    return Asking(
        fields, [*([] if spot.refusal else place), *probe_plan.lines(plan)], ready, why_not
    )


def directory_of(draft: Draft) -> str:
    """The folder as it would be opened; empty where none is named."""
    try:
        return str(Path(probe_form.directory(draft)))
    except CkptcostError:
        return ""


def question(plan: Plan) -> str:
    return probe_plan.question(plan) if plan.question else ""


def summary(plan: Plan) -> str:
    """The probe in one line, for a screen with no room for its form."""
    return probe_plan.summary(plan)


def command(draft: Draft, desk: Desk, meters: str) -> str:
    return probe_form.command(draft, desk, meters)


def begin(plan: Plan, meters: str) -> Running:
    return Running(plan.wish, meters)


def progress(
    running: Running,
    plan: Plan,
    stopping: bool = False,
    now_ns: Callable[[], int] = time.monotonic_ns,
) -> Progress:
    return probe_progress.progress(
        running.wish, running.watch, now_ns(), plan.moved_bytes, stopping
    )


def result(ended: Ended, running: Running, desk: Desk, kept: str = "") -> Result:
    passes = len(ended.probed.rounds) if ended.probed is not None else 0
    simulated = ended.study is not None and ended.study.simulated
    line = probe_result.ended_text(ended.cancelled, passes, ended.left, simulated)
    if ended.study is None or ended.probed is None:
        return Result(None, line)
    rows, chart = probe_progress.finished(ended.probed, running.watch)
    study = ended.study
    return Result(
        study,
        line,
        probe_result.stats(study),
        rows,
        chart,
        probe_result.tiers(study),
        probe_result.words(study, desk, kept),
    )


known_tiers = probe_result.known_tiers


def known_rate(ended: Ended) -> float | None:
    """What the place did just now, to tell how long the next probe takes."""
    if ended.study is None:
        return None
    row = probe_result.rates_of(ended.study).get("save")
    return float(row["rate"]) if row is not None and row["rate"] else None


def keep(ended: Ended) -> tuple[Ended, str]:
    """With its run among the user's runs, and a line that says so. Raises OutputError."""
    folder = probe_run.keep(ended)
    return (
        ended._replace(folder=folder),
        f"Kept as run {_run_of(ended)}, {folder}; the screen Runs lists it.",
    )


def calibrating(ended: Ended) -> str:
    """The command that makes a tier of a kept run."""
    return f"ckptcost calibrate {_run_of(ended)} --as NAME"


def _run_of(ended: Ended) -> str:
    assert ended.probed is not None
    return ended.probed.measured.kept[:8]


def forget(ended: Ended) -> None:
    probe_run.forget(ended)


def failed_text(text: str) -> str:
    """The storage refused while it was written."""
    return f"{text}{'' if text.endswith('.') else '.'} Everything that was written is removed."
