"""A report before it is written: what can be reported of the desk, the answers, and one of them
in a format, with the name of its file and the command that prints the very same text."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ckptcost.catalog.store import Catalog
from ckptcost.errors import InputError
from ckptcost.jobs.compare import MOST
from ckptcost.jobs.model import model as model_job
from ckptcost.jobs.model import one_of
from ckptcost.layers import files_of
from ckptcost.present.amounts import count, size
from ckptcost.present.grid import Grid, Head, Row, Tone
from ckptcost.questions.compare import compare
from ckptcost.questions.optimize import optimize
from ckptcost.questions.sensitivity import sensitivity
from ckptcost.report.studies.model import study_of
from ckptcost.report.studies.runs import SHORT, list_of
from ckptcost.report.study import Study
from ckptcost.runs import store
from ckptcost.runs.summary import summary_of
from ckptcost.tui import files
from ckptcost.tui.desk import Desk, by_flags
from ckptcost.tui.paths import path_of
from ckptcost.tui.screens import model_view
from ckptcost.tui.screens.model_runs import METRICS
from ckptcost.tui.screens.recorded_run import RUNS
from ckptcost.tui.screens.runs_entries import source_at
from ckptcost.tui.screens.tiers_view import OWN, scenario_of
from ckptcost.tui.study_grids import grid_of

MODEL, OPTIMUM, TIERS, CHANGES, RANKING, RUN = (
    "model",
    "optimize",
    "tiers",
    "changes",
    "sensitivity",
    "run:",
)
MOST_VARIANTS = MOST - 1
"""beside the reference"""
MOST_RUNS = 200
OF_METRIC = {name: metric.q.measure for name, metric in METRICS.items()} | {"time": "wall"}
_HEADS = (Head("what", "what to report", left=True),)


class Answered(NamedTuple):
    """What was found, before anybody chose a format."""

    subject: str
    words: tuple[str, ...]
    """the command without a format"""
    found: Study
    catalog: Catalog
    files: tuple[tuple[str, bytes], ...]
    paths: tuple[str, ...]
    """files and folders among the words, of which a document names the last part only"""
    note: str = ""
    """what the text does not say of itself"""

    @property
    def tables(self) -> tuple[str, ...]:
        """What a CSV can hold one of."""
        return tuple(table.id for table in self.found.tables)


def subjects(desk: Desk) -> Grid:
    """What can be reported of the desk just now."""
    rows = [
        Row(MODEL, ("the job's costs",)),
        Row(OPTIMUM, ("the best interval",)),
        Row(RANKING, ("what the result hangs on",)),
    ]
    if len(_variants(desk)) > 0:
        rows.append(Row(TIERS, ("the tiers side by side",)))
    if scenario_of(desk).edits:
        rows.append(Row(CHANGES, ("what my changes do",)))
    return Grid(_HEADS, rows)


def with_runs(grid: Grid, within: Path | None = None) -> Grid:
    """The recorded runs below it, the latest first."""
    listing = store.kept(within).runs[:MOST_RUNS]
    cells = (
        list_of([summary_of(kept) for kept in listing], [], within or store.home()).tables[0].rows
    )
    names = [kept.name for kept in listing]
    rows = [
        Row(
            RUN + (kept.name if names.count(kept.name) == 1 else kept.run),
            (f"run {row['started']} {kept.run[:SHORT]}",),
        )
        for kept, row in zip(listing, cells, strict=True)
    ]
    return grid._replace(rows=[*grid.rows, *rows])


def state_of(desk: Desk, subject: str) -> tuple[Any, ...]:
    """All that the answer depends on; two alike need no second look."""
    if subject.startswith(RUN):
        path = store.found(subject.removeprefix(RUN)).path
        return (
            subject,
            *(
                (entry.name, entry.stat().st_size)
                for entry in sorted(path.glob("*.jsonl") if path.is_dir() else [path])
            ),
        )
    return (
        subject,
        desk.catalog,
        desk.base,
        desk.stamp(),
        tuple(desk.edits.items()),
        desk.tiers,
        desk.baseline,
        desk.metric,
        desk.chosen,
    )


def answered(desk: Desk, subject: str, stopped: Callable[[], bool] = lambda: False) -> Answered:
    """The answer, however long it takes. Raises CkptcostError where there is none."""
    if subject.startswith(RUN):
        return _of_run(desk, subject, stopped)
    with by_flags():
        words, found, layers = _OF[subject](desk)
    note = _left_out(desk) if subject == TIERS else ""
    return Answered(
        subject, tuple(words), found, desk.catalog, tuple(files_of(layers)), (desk.base,), note
    )


def _of_model(desk: Desk) -> tuple[list[str], Study, Any]:
    view = model_view.evaluate(desk)
    flags, layers = model_view.flags(view), scenario_of(desk).layers()
    tiers = [flags[at + 1] for at, word in enumerate(flags) if word == "--tier"]
    against = flags[flags.index("--against") + 1] if "--against" in flags else None
    return (
        ["ckptcost", "model", *scenario_of(desk).words(), *flags],
        study_of(model_job(desk.catalog, layers, tiers, (), against), desk.catalog),
        layers,
    )


def _of_optimum(desk: Desk) -> tuple[list[str], Study, Any]:
    asked = scenario_of(desk)
    tiers = [word for tier in desk.tiers for word in ("--tier", tier)]
    found = optimize(asked.base, changes=asked.settings(), tier=desk.tiers, catalog=desk.catalog)
    return ["ckptcost", "optimize", *asked.words(), *tiers], found.study, asked.layers()


def _of_ranking(desk: Desk) -> tuple[list[str], Study, Any]:
    asked, of = _on_chosen(desk), OF_METRIC.get(desk.metric, "kwh")
    study = sensitivity(asked.base, changes=asked.settings(), of=of, catalog=desk.catalog).study
    return ["ckptcost", "sensitivity", *asked.words(), "--of", of], study, asked.layers()


def _of_tiers(desk: Desk) -> tuple[list[str], Study, Any]:
    asked, reference = desk.without("tier.id"), _reference(desk)
    if reference and reference != _own_tier(asked):
        asked = asked.edited("tier.id", reference)
    variants = [f"tier.id={tier}" for tier in _variants(desk)[:MOST_VARIANTS]]
    words = [
        "ckptcost",
        "compare",
        *asked.words(),
        *(word for each in variants for word in ("--with", each)),
    ]
    return (
        words,
        compare(
            asked.base, changes=asked.settings(), variants=variants, catalog=desk.catalog
        ).study,
        asked.layers(),
    )


def _of_changes(desk: Desk) -> tuple[list[str], Study, Any]:
    if not desk.edits:
        raise InputError("nothing was changed over the scenario")
    plain = desk.plain()
    variant = ", ".join(desk.settings())
    study = compare(plain.base, variants=[variant], catalog=desk.catalog).study
    return ["ckptcost", "compare", *plain.words(), "--with", variant], study, plain.layers()


def _of_run(desk: Desk, subject: str, stopped: Callable[[], bool]) -> Answered:
    word = subject.removeprefix(RUN)
    study = RUNS.load(source_at(word), stopped=stopped).study
    return Answered(subject, ("ckptcost", "report", word), study, desk.catalog, (), (word,))


_OF: dict[str, Callable[[Desk], tuple[list[str], Any, Any]]] = {
    MODEL: _of_model,
    OPTIMUM: _of_optimum,
    RANKING: _of_ranking,
    TIERS: _of_tiers,
    CHANGES: _of_changes,
}


def _own_tier(desk: Desk) -> str:
    return str(one_of(desk.catalog, desk.layers()).words.get("tier.id", ""))


def _on_chosen(desk: Desk) -> Desk:
    """The scenario on the tier that is looked at, said as a flag where it is not its own."""
    asked = scenario_of(desk)
    chosen = desk.tier_chosen()
    return asked.edited("tier.id", chosen) if chosen and chosen != _own_tier(asked) else asked


def _variants(desk: Desk) -> list[str]:
    """The tiers that can be held against the reference, which a catalogue has to name; none where
    the scenario is wrong."""
    try:
        return [tier for tier in desk.tiers_shown() if tier and tier != _reference(desk)]
    except (InputError, OSError):
        return []


def _reference(desk: Desk) -> str:
    """The baseline, else the first of the tiers side by side; empty: the scenario's own."""
    shown = desk.tiers_shown()
    return (
        desk.baseline
        if desk.baseline in shown
        else ""
        if desk.baseline == OWN and "" in shown
        else shown[0]
    )


def _left_out(desk: Desk) -> str:
    """Which tiers are not in the comparison."""
    shown, reference = desk.tiers_shown(), _reference(desk)
    held = _variants(desk)[:MOST_VARIANTS]
    rest = [tier or OWN for tier in shown if tier != reference and tier not in held]
    if not rest:
        return ""
    why = (
        f"`compare` takes {MOST}"
        if "" not in shown or not reference
        else f"`compare` takes {MOST} that have a name"
    )
    return f"{len(shown) - len(rest)} of {len(shown)} tiers: {why}; left out: {', '.join(rest)}"


FORMATS = (
    ("text", "text", "txt"),
    ("md", "Markdown", "md"),
    ("json", "JSON", "json"),
    ("csv", "CSV", "csv"),
)
"""as the command line calls it, as people do, and how a file's name ends"""


class Page(NamedTuple):
    """One text, exactly as the command prints it."""

    lines: tuple[str, ...]
    text: str
    command: str
    about: str
    """format and length"""
    form: str


def page(found: Answered, form: str, table: str = "") -> Page:
    """The text in one format; `table` is which of them a CSV holds, else the first."""
    words = [
        *found.words,
        *(["-f", form] if form != "text" else ["--full"]),
        *(["--table", table] if form == "csv" and table else []),
    ]
    if form == "json":
        from ckptcost.report.build import build

        words_told = _without_folders(words, found.paths)
        text = build(found.found, found.catalog, words_told, found.files).to_json()
    else:
        from ckptcost.report.study_views import view

        text = view(found.found, form, table or None, full=True)
    lines = text.splitlines()
    name = next(name for each, name, _ in FORMATS if each == form)
    which = f" of {table}" if form == "csv" and table else ""
    return Page(
        tuple(lines),
        text,
        shlex.join(words),
        f"{name}{which}, {count(len(lines))} lines, {size(len(text.encode()))}",
        form,
    )


def _without_folders(words: Sequence[str], paths: Sequence[str]) -> list[str]:
    """As the command line writes its own words into a document."""
    out = list(words)
    for path in filter(None, paths):
        out = [
            (
                word[: -len(path)] + os.path.basename(os.path.normpath(path))
                if word.endswith(path)
                else word
            )
            for word in out
        ]
    return out


def first_table(found: Answered) -> Grid | None:
    """The first table that people are shown."""
    return next(
        (grid_of(table) for table in found.found.tables if table.shown and table.rows), None
    )


def file_name(desk: Desk, subject: str, form: str) -> str:
    """What the file is called where nobody says otherwise."""
    ending = next(end for each, _, end in FORMATS if each == form)
    if subject.startswith(RUN):
        return f"run-{subject.removeprefix(RUN)}.{ending}"
    return f"{Path(desk.base).stem}-{subject}.{ending}"


def renamed(name: str, form: str) -> str:
    """The same name with the ending of another format, where it has one of these endings."""
    endings = {f".{end}" for _, _, end in FORMATS}
    stem, dot, last = name.rpartition(".")
    ending = next(end for each, _, end in FORMATS if each == form)
    return f"{stem}.{ending}" if dot and f".{last}" in endings else name


def standing(name: str) -> tuple[str, Tone]:
    """What will happen to the file that is named."""
    if not name.strip():
        return "no file is named", "bad"
    try:
        target = path_of(name)
        if target.is_dir():
            return "is a folder", "bad"
        if not target.parent.is_dir():
            return f"no folder {target.parent}", "bad"
        return ("exists: will ask", "warn") if target.exists() else ("new file", "muted")
    except (InputError, OSError) as error:
        return str(error), "bad"


def write(text: str, name: str, over: bool) -> str:
    """Whole or not at all, and what was done. Raises OutputError, one line."""
    where = files.write_text(text, name, over)
    return f"wrote {where}, {size(len(text.encode()))}"
