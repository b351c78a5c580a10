"""What recorded runs say of the model's figures: now and measured, how they differ, and what would
be taken."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any, NamedTuple

from ckptcost.errors import CkptcostError
from ckptcost.jobs.calibrate import Calibration, Parameter, calibrate
from ckptcost.jobs.calibrate_files import texts_of
from ckptcost.present.amounts import count, share
from ckptcost.present.grid import Grid, Head, Row, Tone
from ckptcost.report.studies.calibrate import LABELS, study_of
from ckptcost.report.study import Study, cell
from ckptcost.runs.header import base_name
from ckptcost.tui.desk import Desk
from ckptcost.tui.study_grids import grid_of, paragraphs
from ckptcost.views.run import seen_of
from ckptcost.views.runs import Source

UNNAMED = "calibrated"
"""what it is called until it has a name"""
HEADS = (
    Head("what", "figure", left=True),
    Head("now", "model now"),
    Head("value", "measured"),
    Head("change", "change", rank=2),
    Head("spread", "95 %", rank=3),
    Head("n", "of", rank=4),
    Head("into", "goes to", left=True, rank=1),
)
_TIMES = {"j_per_byte": 1e9}
"""how a row of the study shows a base unit, where it is not as it is"""
_NONE = 5e-5
_FREE = ("cluster.", "policy.")
"""paths that a tier's file does not hold: a tick decides whether they go onto the desk"""
_FLAGGED = ("policy.snapshot", "policy.slowdown")
"""as the next command of `ckptcost calibrate` has them; they mean something for asynchronous saves
only"""


class Calibrated(NamedTuple):
    """A fit of some runs."""

    sources: tuple[Source, ...]
    found: Calibration

    @property
    def kinds(self) -> list[str]:
        """Catalogue entries that it makes."""
        return list(texts_of(self.found))

    @property
    def suggested(self) -> str:
        """A name for the tier, from where it was measured."""
        return base_name(
            f"{'simulated' if self.found.simulated else self.found.origins[0].host}-storage"
        )

    @property
    def free(self) -> list[str]:
        """Paths that a tick decides on."""
        mine = [
            p
            for p in self.found.parameters
            if p.path.startswith(_FREE) and p.estimate.known and p.estimate.value >= 0
        ]
        return [
            p.path for p in mine if not p.path.startswith("policy.") or self.found.mode == "async"
        ]

    @property
    def usual(self) -> list[str]:
        """Those that are ticked to begin with: the ones that the next command of `ckptcost
        calibrate` takes."""
        return [path for path in self.free if path.startswith("cluster.") or path in _FLAGGED]

    def named(self, id_: str, title: str = "") -> Calibration:
        return self.found._replace(id=id_ or UNNAMED, name=title)


def fit(sources: Sequence[Source]) -> Calibrated:
    """All runs together, each as all of its hosts saw it. Raises CkptcostError."""
    seen = []
    for source in sources:
        first = seen_of(source)
        others = [host for host in first.run.hosts if host != first.energies.node.host]
        seen += [first, *(seen_of(source, host) for host in others)]
    return Calibrated(tuple(sources), calibrate(seen, UNNAMED))


def study_for(
    fitted: Calibrated, id_: str = "", title: str = "", files: Sequence[str] = ()
) -> Study:
    """What `ckptcost calibrate` prints."""
    return study_of(fitted.named(id_, title), fitted.kinds, files)


def parameters(fitted: Calibrated, desk: Desk, ticked: Sequence[str]) -> Grid:
    """Each figure beside the one that the model has now. A row's key is its path, or its id where
    the model has no place for it."""
    now = _now(desk)
    told = study_for(fitted).tables[0].rows
    both = sorted(
        zip(fitted.found.parameters, told, strict=True), key=lambda each: not each[0].estimate.known
    )
    rows = [_row(fitted, parameter, row, now, ticked) for parameter, row in both]
    return Grid(
        HEADS, rows, "What the runs give", "x: is taken; Space ticks what goes onto the desk"
    )


def _row(
    fitted: Calibrated,
    parameter: Parameter,
    row: dict[str, Any],
    now: dict[str, float],
    ticked: Sequence[str],
) -> Row:
    path, unit, known = parameter.path, row["unit"], row["value"] is not None
    before = now.get(path)
    before = None if before is None else before * _TIMES.get(parameter.unit, 1.0)
    tick = (
        ("[x]" if path in ticked else "[ ]")
        if path in fitted.free
        else " x "
        if known and path.startswith("tier.")
        else " - "
    )
    change = _change(before, row["value"])
    spread = (
        f"{cell(row['low'], unit)} to {cell(row['high'], unit)}"
        if row["low"] is not None and row["high"] is not None
        else "-"
    )
    if row["low"] is not None and row["high"] is None:
        spread = f"from {cell(row['low'], unit)}"
    cells = (
        f"{tick} {row['what']}",
        cell(before, unit),
        cell(row["value"], unit),
        change[0],
        spread,
        count(row["n"]),
        _into(fitted, path, known),
    )
    order = (row["what"], before, row["value"], change[1], row["low"], row["n"], cells[6])
    return Row(path or parameter.id, cells, order, "" if "x" in tick else "muted")


def _now(desk: Desk) -> dict[str, float]:
    """The model's figures by path; none where the scenario cannot be computed."""
    try:
        return {each.path: float(each.figure.value) for each in desk.resolved().inputs}
    except CkptcostError:
        return {}


def _change(before: float | None, after: float | None) -> tuple[str, float | None]:
    if after is None:
        return "-", None
    if before is None:
        return "new", None
    if before == 0:
        return ("none", 0.0) if after == 0 else ("new", None)
    return change_text(after / before - 1.0), after / before - 1.0


def change_text(change: float) -> str:
    """With its sign; what no digit would show is none."""
    if abs(change) < _NONE:
        return "none"
    return f"{'+' if change > 0 else ''}{share(change)}"


def _into(fitted: Calibrated, path: str, known: bool) -> str:
    """Where a figure goes, or why nowhere."""
    if not known:
        return "not known"
    if path.startswith("tier."):
        return "the tier"
    if path in fitted.free:
        return "the desk"
    return "the model has no place for it" if not path else "not taken"


def lines(fitted: Calibrated) -> list[tuple[str, Tone]]:
    """What is said of the fit, in the words of the command line."""
    study = study_for(fitted)
    return [line for line in paragraphs(study) if not line[0].startswith("Nothing was written")]


def rounds(fitted: Calibrated) -> list[Grid]:
    """Each save and load, measured and fitted, and what was left out."""
    return [grid_of(table) for table in study_for(fitted).tables[1:] if table.rows]


def evidence(fitted: Calibrated, key: str) -> str:
    """What a figure rests on, or why it is not known."""
    found = zip(fitted.found.parameters, study_for(fitted).tables[0].rows, strict=True)
    row = next((row for parameter, row in found if key in (parameter.path, parameter.id)), None)
    said = "" if row is None else str(row["reason"] or row["note"])
    return f"{said[0].upper()}{said[1:]}." if said else ""


def why_not(fitted: Calibrated, key: str) -> str:
    """Why a tick on a row does nothing; empty where it does."""
    if key in fitted.free:
        return ""
    parameter = next((p for p in fitted.found.parameters if key in (p.path, p.id)), None)
    if parameter is None:
        return "no figure is under the cursor"
    if not parameter.estimate.known:
        return "it is not known, so there is nothing to take"
    if parameter.path.startswith("tier."):
        return (
            "it is in the tier's file, which is written whole: change it there afterwards, or with"
            " an edit of its own"
        )
    return (
        "the model has no place for it"
        if not parameter.path
        else "it means something for asynchronous saves only, and these were not"
    )


def not_taken(fitted: Calibrated, ticked: Sequence[str], desk: Desk) -> list[str]:
    """What is measured and still not used, and which of the desk's own changes stand before the
    tier's figures."""
    left = [_label(fitted, path) for path in fitted.free if path not in ticked]
    said = [f"Not ticked, so the model keeps its own: {', '.join(left)}."] if left else []
    over = [
        f"{path} = {text}"
        for path, text in desk.edits.items()
        if path.startswith("tier.") and path != "tier.id"
    ]
    return said + (
        [f"Your own changes hold for the new tier too: {', '.join(over)}."] if over else []
    )


def _label(fitted: Calibrated, path: str) -> str:
    return LABELS[
        next(parameter.id for parameter in fitted.found.parameters if parameter.path == path)
    ].removesuffix(", W")


def command_of(sources: Sequence[Source], id_: str, title: str = "") -> str:
    words: list[Any] = [
        "ckptcost",
        "calibrate",
        *(source.word for source in sources),
        "--as",
        id_ or UNNAMED,
    ]
    return shlex.join([*words, *(["--name", title] if title else [])])
