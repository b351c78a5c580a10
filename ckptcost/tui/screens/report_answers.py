"""What can be reported: questions about the desk and the recorded runs, each with its study, and
the text of one exactly as its command prints it."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from ckptcost.errors import CkptcostError, InputError
from ckptcost.jobs.compare import MOST
from ckptcost.jobs.model import model, one_of
from ckptcost.present.amounts import count, size
from ckptcost.present.grid import Grid, GridHead, Row, Tone
from ckptcost.questions.compare import compare
from ckptcost.questions.optimize import optimize
from ckptcost.questions.sensitivity import sensitivity
from ckptcost.report.studies.model import study_of
from ckptcost.report.studies.runs import list_of
from ckptcost.report.study import Study
from ckptcost.runs import store
from ckptcost.runs.summary import summary_of
from ckptcost.tui import files
from ckptcost.tui.desk import OWN, Desk, by_flags, scenario_of
from ckptcost.tui.screens import model_view
from ckptcost.tui.screens.model_runs import METRICS
from ckptcost.tui.screens.recorded_run import RUNS
from ckptcost.tui.screens.runs_entries import source_at

RUN = "run:"
"""how the subject of a recorded run begins"""
MOST_VARIANTS = MOST - 1
"""beside the reference"""
MOST_RUNS = 200
OF_METRIC = {name: metric.q.measure for name, metric in METRICS.items()} | {"time": "wall"}
FORMATS = {"txt": "text", "md": "Markdown", "json": "JSON", "csv": "CSV"}
"""by how a file's name ends, what people call it"""


class ReportAnswer(NamedTuple):
    """What was found, before anybody chose a format."""

    study: Study
    words: list[str]
    """of the command without a format"""
    note: str = ""
    """what the text does not say of itself"""

    @property
    def command(self) -> str:
        return shlex.join(["ckptcost", *self.words])

    @property
    def tables(self) -> tuple[str, ...]:
        """What a CSV can hold one of."""
        return tuple(table.id for table in self.study.tables)


def _of_model(desk: Desk) -> ReportAnswer:
    view = model_view.evaluate(desk)
    flags, asked = model_view.flags(view), scenario_of(desk)
    named = dict(pairwise(flags))
    tiers = [flags[at + 1] for at, word in enumerate(flags) if word == "--tier"]
    found = model(desk.catalog, asked.layers(), tiers, (), named.get("--against"))
    return ReportAnswer(study_of(found, desk.catalog), ["model", *asked.words(), *flags])


def _of_optimum(desk: Desk) -> ReportAnswer:
    asked = scenario_of(desk)
    tiers = [word for tier in desk.tiers for word in ("--tier", tier)]
    found = optimize(asked.base, changes=asked.settings(), tier=desk.tiers, catalog=desk.catalog)
    return ReportAnswer(found.study, ["optimize", *asked.words(), *tiers])


def _of_ranking(desk: Desk) -> ReportAnswer:
    asked, of = scenario_of(desk), OF_METRIC.get(desk.metric, "kwh")
    asked = _on_tier(asked, desk.tier_chosen())
    found = sensitivity(asked.base, changes=asked.settings(), of=of, catalog=desk.catalog)
    return ReportAnswer(found.study, ["sensitivity", *asked.words(), "--of", of])


def _of_tiers(desk: Desk) -> ReportAnswer:
    asked = _on_tier(desk.without("tier.id"), _reference(desk))
    held = [f"tier.id={tier}" for tier in _variants(desk)[:MOST_VARIANTS]]
    return _compared(asked, held)._replace(note=_left_out(desk))


def _of_changes(desk: Desk) -> ReportAnswer:
    if not desk.edits:
        raise InputError("nothing was changed over the scenario")
    return _compared(desk.plain(), [", ".join(desk.settings())])


def _compared(asked: Desk, variants: list[str]) -> ReportAnswer:
    found = compare(asked.base, changes=asked.settings(), variants=variants, catalog=asked.catalog)
    held = [word for each in variants for word in ("--with", each)]
    return ReportAnswer(found.study, ["compare", *asked.words(), *held])


def _on_tier(desk: Desk, tier: str) -> Desk:
    """The scenario on a tier, said as a flag where it is not its own."""
    own = str(one_of(desk.catalog, desk.layers()).words.get("tier.id", ""))
    return desk.edited("tier.id", tier) if tier not in ("", own) else desk


SUBJECTS: dict[str, tuple[str, Callable[[Desk], ReportAnswer]]] = {
    "model": ("the job's costs", _of_model),
    "optimize": ("the best interval", _of_optimum),
    "sensitivity": ("what the result hangs on", _of_ranking),
    "tiers": ("the tiers side by side", _of_tiers),
    "changes": ("what my changes do", _of_changes),
}


def subjects(desk: Desk) -> list[Row]:
    """What can be reported of the desk just now."""
    offered = {"tiers": bool(_variants(desk)), "changes": bool(scenario_of(desk).edits)}
    return [Row(key, (name,)) for key, (name, _) in SUBJECTS.items() if offered.get(key, True)]


def runs(within: Path | None = None) -> list[Row]:
    """The recorded runs, the latest first."""
    kept = store.list_runs(within).runs[:MOST_RUNS]
    names = [each.name for each in kept]
    (table,) = list_of([summary_of(each) for each in kept], [], Path()).tables
    return [
        Row(
            RUN + (each.name if names.count(each.name) == 1 else each.run),
            (f"run {row['started']} {row['id']}",),
        )
        for each, row in zip(kept, table.rows, strict=True)
    ]


def grid_of(rows: list[Row]) -> Grid:
    return Grid((GridHead("what", "what to report", left=True),), rows)


def state_of(desk: Desk, subject: str) -> tuple[Any, ...]:
    """All that the answer depends on; two alike need no second look. A run's readings are kept
    elsewhere."""
    on = replace(desk, edits={})
    return subject, desk.catalog, tuple(desk.edits.items()), repr(on), desk.stamp()


def answered(desk: Desk, subject: str, stopped: Callable[[], bool] = lambda: False) -> ReportAnswer:
    """The answer, however long it takes. Raises CkptcostError where there is none."""
    if subject.startswith(RUN):
        word = subject.removeprefix(RUN)
        study = RUNS.load(source_at(word), stopped=stopped).study
        return ReportAnswer(study, ["report", word])
    with by_flags():
        return SUBJECTS[subject][1](desk)


def _variants(desk: Desk) -> list[str]:
    """The tiers that can be held against the reference, which a catalogue has to name; none where
    the scenario is wrong."""
    try:
        return [tier for tier in desk.tiers_shown() if tier and tier != _reference(desk)]
    except (InputError, OSError):
        return []


def _reference(desk: Desk) -> str:
    """The baseline, else the first of the tiers side by side; empty: the scenario's own."""
    shown, baseline = desk.tiers_shown(), desk.baseline
    if baseline == OWN and "" in shown:
        return ""
    return baseline if baseline in shown else shown[0]


def _left_out(desk: Desk) -> str:
    """Which tiers are not in the comparison."""
    shown, reference = desk.tiers_shown(), _reference(desk)
    held = (reference, *_variants(desk)[:MOST_VARIANTS])
    rest = [tier or OWN for tier in shown if tier not in held]
    if not rest:
        return ""
    why = f"`compare` takes {MOST}{' that have a name' if '' in shown and reference else ''}"
    return f"{len(shown) - len(rest)} of {len(shown)} tiers: {why}; left out: {', '.join(rest)}"


class Page(NamedTuple):
    """One text, exactly as the command prints it."""

    answer: ReportAnswer
    form: str
    text: str
    lines: list[str]
    command: str
    about: str
    """format and length"""


def page(answer: ReportAnswer, desk: Desk, form: str, table: str = "") -> Page:
    """The text in one format; `table` is which of them a CSV holds, else the first."""
    table = table if form == "csv" and table in answer.tables else ""
    words = ["--full"] if form == "txt" else ["-f", form, *(["--table", table] if table else [])]
    text = files.text_of(answer.study, form, desk, answer.command, table=table or None)
    lines = text.splitlines()
    about = [f"{FORMATS[form]}{f' of {table}' if table else ''}", f"{count(len(lines))} lines"]
    return Page(
        answer,
        form,
        text,
        lines,
        shlex.join(["ckptcost", *answer.words, *words]),
        ", ".join([*about, size(len(text.encode()))]),
    )


def file_name(desk: Desk, subject: str, form: str) -> str:
    """What the file is called where nobody says otherwise."""
    if subject.startswith(RUN):
        return f"run-{subject.removeprefix(RUN)}.{form}"
    return f"{Path(desk.base).stem}-{subject}.{form}"


def renamed(name: str, form: str) -> str:
    """The same name with the ending of another format, where it has one of these endings."""
    stem, dot, last = name.rpartition(".")
    return f"{stem}.{form}" if dot and last in FORMATS else name


def standing(name: str) -> tuple[str, Tone]:
    """What will happen to the file that is named."""
    try:
        target = files.target_of(name, over=True)
        if not target.parent.is_dir():
            return f"no folder {target.parent}", "bad"
        return ("exists: will ask", "warn") if target.exists() else ("new file", "muted")
    except (CkptcostError, OSError) as error:
        return str(error), "bad"
