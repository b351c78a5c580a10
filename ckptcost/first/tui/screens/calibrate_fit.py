"""What recorded runs say of the model's figures: now and measured, and what would be taken; writing
it into the user's catalogue, exactly as `ckptcost calibrate --as` does; whether the model then
predicts the runs, and what changes for the desk's scenario."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ckptcost.first.catalog import files
from ckptcost.first.catalog.store import Catalog
from ckptcost.first.errors import CkptcostError, InputError, OutputError
from ckptcost.first.jobs.calibrate import Calibration, calibrate
from ckptcost.first.jobs.calibrate_files import checked_id, checked_name, free, install, texts_of
from ckptcost.first.jobs.gap import gap
from ckptcost.first.jobs.measured import Measured
from ckptcost.first.jobs.model import model
from ckptcost.first.layers import layers_for
from ckptcost.first.present.grid import Grid, Tone
from ckptcost.first.report.rows import columns_of
from ckptcost.first.report.studies.calibrate import study_of
from ckptcost.first.report.studies.runs import place_text
from ckptcost.first.report.study import ROW_UNIT, Column, Study, Table, plain
from ckptcost.first.runs.header import base_name
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.screens.recorded_run import RUNS, RunSource
from ckptcost.first.tui.study_grids import grid_of, paragraphs, toned_grid

UNNAMED = "calibrated"
"""what it is called until it has a name"""
_TIMES = {"J/GB": 1e9}
"""how a row of the study shows a base unit, where it is not as it is"""
_NONE = 5e-5
"""a smaller change shows no digit"""
_FREE = ("cluster.", "policy.")
"""paths that a tier's file does not hold: a tick decides whether they go onto the desk"""
_FLAGGED = ("cluster.", "policy.snapshot", "policy.slowdown")
"""as the next command of `ckptcost calibrate` has them; those of the policy mean something for
asynchronous saves only"""


class Calibrated(NamedTuple):
    """A fit of some runs."""

    sources: tuple[RunSource, ...]
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
        takes = _FREE if self.found.mode == "async" else _FREE[:1]
        return [
            each.path
            for each in self.found.parameters
            if each.path.startswith(takes) and each.estimate.known and each.estimate.value >= 0
        ]

    @property
    def usual(self) -> list[str]:
        """Those that are ticked to begin with: the ones that the next command of `ckptcost
        calibrate` takes."""
        return [path for path in self.free if path.startswith(_FLAGGED)]

    @property
    def rows(self) -> Sequence[dict[str, Any]]:
        """Its figures, known ones first."""
        rows = study_for(self).tables[0].rows
        return sorted(rows, key=lambda row: row["value"] is None)

    def row(self, key: str) -> dict[str, Any] | None:
        return next((row for row in self.rows if key in (row["path"], row["id"])), None)

    def named(self, id_: str, title: str = "") -> Calibration:
        return self.found._replace(id=id_ or UNNAMED, name=title)


def fit(sources: Sequence[RunSource]) -> Calibrated:
    """All runs together, each as all of its hosts saw it. Raises CkptcostError."""
    seen = [each for source in sources for each in seen_hosts(source)]
    return Calibrated(tuple(sources), calibrate(seen, UNNAMED))


def seen_hosts(source: RunSource) -> Iterator[Measured]:
    """A run as each of its hosts saw it."""
    first = RUNS.load_here(source).seen
    yield first
    for host in first.run.hosts:
        if host != first.energies.node.host:
            yield RUNS.load_here(source, host).seen


def study_for(
    fitted: Calibrated, id_: str = "", title: str = "", files: Sequence[str] = ()
) -> Study:
    """What `ckptcost calibrate` prints."""
    return study_of(fitted.named(id_, title), fitted.kinds, files)


def parameters(fitted: Calibrated, desk: Desk, ticked: Sequence[str]) -> Grid:
    """The study's figures, each with the one that the model has now beside it. A row's key is its
    path, or its id where the model has no place for it."""
    now = _now(desk)
    rows = []
    for row in fitted.rows:
        before = now.get(row["path"])
        before = None if before is None else before * _TIMES.get(row["unit"], 1.0)
        rows.append(row | {"now": before, "change": change(before, row["value"])})
    table = study_for(fitted).tables[0]
    what, value, *others = table.columns
    columns = (
        what,
        Column("now", "model now", ROW_UNIT),
        value._replace(label="measured"),
        Column("change", "change", "share"),
        *others,
    )
    note = "x: is taken; Space ticks what goes onto the desk"
    table = table._replace(title="What the runs give", columns=columns, rows=rows, note=note)
    return _with_ticks(fitted, grid_of(table, [row["path"] or row["id"] for row in rows]), ticked)


def _with_ticks(fitted: Calibrated, grid: Grid, ticked: Sequence[str]) -> Grid:
    """With a mark for each figure that is taken; the others are muted."""
    known = [row["path"] for row in fitted.rows if row["value"] is not None]
    ticks = {path: " x " for path in known if path.startswith("tier.")}
    ticks |= {path: "[x]" if path in ticked else "[ ]" for path in fitted.free}
    toned = []
    for each in grid.rows:
        tick = ticks.get(each.key, " - ")
        cells = (f"{tick} {each.cells[0]}", *each.cells[1:])
        toned.append(each._replace(cells=cells, tone="" if "x" in tick else "muted"))
    return grid._replace(rows=toned)


def _now(desk: Desk) -> dict[str, float]:
    """The model's figures by path; none where the scenario cannot be computed."""
    try:
        return {each.path: float(each.figure.value) for each in desk.resolved().inputs}
    except CkptcostError:
        return {}


def change(before: float | None, after: float | None) -> float | None:
    """As a share of what was before; what no digit would show is none."""
    if before is None or after is None or before == 0:
        return None
    found = after / before - 1.0
    return found if abs(found) >= _NONE else 0.0


def lines(fitted: Calibrated) -> list[tuple[str, Tone]]:
    """What is said of the fit, in the words of the command line."""
    study = study_for(fitted)
    return [line for line in paragraphs(study) if not line[0].startswith("Nothing was written")]


def rounds(fitted: Calibrated) -> list[Grid]:
    """Each save and load, measured and fitted, and what was left out."""
    return [grid_of(table) for table in study_for(fitted).tables[1:] if table.rows]


def evidence(fitted: Calibrated, key: str) -> str:
    """What a figure rests on, or why it is not known."""
    row = fitted.row(key) or {"reason": "", "note": ""}
    text = str(row["reason"] or row["note"])
    return f"{text[0].upper()}{text[1:]}." if text else ""


def why_not(fitted: Calibrated, key: str) -> str:
    """Why a tick on a row does nothing; empty where it does."""
    if key in fitted.free:
        return ""
    row = fitted.row(key)
    if row is None:
        return "No figure is under the cursor."
    if row["value"] is None:
        return "It is not known, so there is nothing to take."
    if key.startswith("tier."):
        return (
            "It is in the tier's file, which is written whole: change it there afterwards, or with"
            " an edit of its own."
        )
    if not row["path"]:
        return "The model has no place for it."
    return "It means something for asynchronous saves only, and these were not."


def not_taken(fitted: Calibrated, ticked: Sequence[str], desk: Desk) -> list[str]:
    """What is measured and still not used, and which of the desk's own changes stand before the
    tier's figures."""
    free_ = fitted.free
    left = [
        row["what"] for row in fitted.rows if row["path"] in free_ and row["path"] not in ticked
    ]
    over = [
        f"{path} = {text}"
        for path, text in desk.edits.items()
        if path.startswith("tier.") and path != "tier.id"
    ]
    lines = [f"Not ticked, so the model keeps its own: {', '.join(left)}."] if left else []
    if over:
        lines.append(f"Your own changes hold for the new tier too: {', '.join(over)}.")
    return lines


def command_of(sources: Sequence[RunSource], id_: str, title: str = "") -> str:
    words = [*(source.word for source in sources), "--as", id_ or UNNAMED]
    return shlex.join(["ckptcost", "calibrate", *words, *(["--name", title] if title else [])])


class Written(NamedTuple):
    """What was written, so that it can be taken back as long as nobody changed it."""

    id: str
    kinds: tuple[str, ...]
    texts: tuple[tuple[Path, str], ...]

    @property
    def text(self) -> str:
        return f"Written: {', '.join(place_text(path) for path, _ in self.texts)}."


def refusal_of(fitted: Calibrated, id_: str, title: str = "") -> str:
    """Why it cannot be written under this name; empty where it can."""
    try:
        checked_name(title)
        checked_id(id_)
        if not fitted.kinds:
            return (
                "these runs give neither a write rate nor the watts of a GPU: there is nothing to"
                " write"
            )
        free(id_, fitted.kinds)
    except InputError as error:
        return (
            str(error.spelled(lambda name: "" if name == "entry" else f"--{name}"))
            .replace("replace it with --force", "delete the file")
            .replace(", or hide it with --force", "")
        )
    except OSError as error:
        return f"the catalogue cannot be looked into: {error.strerror or error}"
    return ""


def write(fitted: Calibrated, id_: str, title: str = "") -> Written:
    """The same files with the same content as the command line's. Raises InputError and
    OutputError, and then nothing is there."""
    if why := refusal_of(fitted, id_, title):
        raise InputError(why)
    named = fitted.named(checked_id(id_), checked_name(title))
    texts = texts_of(named)
    paths = install(named)
    return Written(id_, tuple(texts), tuple(zip(paths, texts.values(), strict=True)))


def undo(written: Written) -> str:
    """Remove what was written; what was done, in a sentence. Raises OutputError where somebody
    changed it meanwhile."""
    try:
        for path, text in written.texts:
            if path.exists() and path.read_text("utf-8") != text:
                raise OutputError(
                    f"{place_text(path)}: was changed since; remove it by hand if you mean it"
                )
        for path, _ in written.texts:
            path.unlink(missing_ok=True)
    except OSError as error:
        where = place_text(Path(error.filename))
        raise OutputError(f"{where}: could not be removed ({error.strerror or error})") from None
    are = "s are" if len(written.kinds) > 1 else " is"
    return f"{written.id} is taken back: its {' and '.join(written.kinds)} file{are} removed."


_FIGURES = {
    "rate_bytes_per_s": ("rate of a save", "bytes_per_s"),
    "stall_s": ("stall of a save", "s"),
    "save_energy_kwh": ("one save, kWh", "kWh"),
    "save_cost_usd": ("one save, USD", "USD"),
    "run_energy_kwh": ("the run, kWh", "kWh"),
    "run_cost_usd": ("the run, USD", "USD"),
    "goodput": ("goodput", "share"),
    "best": ("best interval", "s"),
}
_EFFECT = (
    Column("what", "figure"),
    Column("now", "now", ROW_UNIT),
    Column("then", "then", ROW_UNIT),
    Column("change", "change", "share"),
)
_CHECK = (
    Column("run", "run"),
    Column("of", "of"),
    Column("measured", "measured", "s"),
    Column("before", "now", "s"),
    Column("off_before", "off", "share"),
    Column("after", "then", "s"),
    Column("off_after", "off", "share"),
)
_Times = tuple[float | None, float | None]
_GOOD = 0.1
"""of what was measured: closer is a prediction"""


def check(fitted: Calibrated, base: str, settings: Sequence[str]) -> Grid:
    """The model against the runs, before and after: whole saves and loads of each run and host, in
    the mean, measured and modelled at their size. It reads the runs once more, so it is work for
    the background."""
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    after = [*(each for each in settings if not each.startswith("tier.id=")), f"tier.id={UNNAMED}"]
    with _with_entries(fitted) as calibrated:
        for source in fitted.sources:
            for seen in seen_hosts(source):
                try:
                    now = _times(Catalog(), seen, base, settings)
                    then = _times(calibrated, seen, base, after) if "tier" in fitted.kinds else {}
                except CkptcostError as error:
                    notes.append(f"{source.short}: {error}")
                    continue
                host = f" {seen.energies.node.host}" if len(seen.run.hosts) > 1 else ""
                rows += [
                    _check_row(f"{source.short}{host}", of, measured, before, then.get(of))
                    for of, (measured, before) in now.items()
                ]
    problems = "; ".join(notes)
    table = Table("check", "Does the model predict the runs? Until safe", _CHECK, rows, problems)
    empty = problems or "Nothing was measured that the model could be held against."
    return toned_grid(table, _tone)._replace(empty=empty)


def _check_row(
    run: str, of: str, measured: float | None, before: float | None, then: _Times | None
) -> dict[str, Any]:
    after = None if then is None else then[1]
    return {
        "run": run,
        "of": of,
        "measured": measured,
        "before": before,
        "off_before": change(measured, before),
        "after": after,
        "off_after": change(measured, after),
    }


def _tone(row: dict[str, Any]) -> Tone:
    off = row["off_after"]
    return "" if off is None else "good" if abs(off) <= _GOOD else "warn"


def _times(
    catalog: Catalog, seen: Measured, base: str, settings: Sequence[str]
) -> dict[str, _Times]:
    """By save and load: seconds measured, and modelled at the measured size."""
    found = gap(catalog, seen, layers_for(catalog, base, None, list(settings)))
    rows = {held.of: held.row("time") for held in (found.saves, found.loads) if held is not None}
    return {of: (plain(row.measured.value), plain(row.at_size)) for of, row in rows.items()}


@contextmanager
def _with_entries(fitted: Calibrated) -> Iterator[Catalog]:
    """The catalogue as it would be with the new entries: in a scratch folder, gone afterwards."""
    try:
        with tempfile.TemporaryDirectory(prefix="ckptcost-") as scratch:
            root, mine = Path(scratch) / "user", files.overlay()
            if mine.is_dir() and (mine / "models").is_dir():
                shutil.copytree(mine / "models", root / "models")
            install(fitted.named(UNNAMED), force=True, overlay=root)
            yield Catalog(overlay=root)
    except OSError as error:
        raise OutputError(f"no scratch file could be written ({error.strerror or error})") from None


def put_on(desk: Desk, id_: str, edits: dict[str, str]) -> Desk:
    """The desk with the tier beside the others and chosen, and what was ticked as changes of its
    own. The catalogue is read anew."""
    shown = [tier for tier in desk.tiers_shown() if tier and tier != id_]
    with_tier = replace(desk, catalog=Catalog(), tiers=(*shown, id_), chosen=id_)
    for path, text in edits.items():
        with_tier = with_tier.edited(path, text)
    return with_tier


def offer(fitted: Calibrated, id_: str, ticked: Sequence[str]) -> str:
    """The question, with what would be done."""
    edits = ", ".join(f"{path} = {text}" for path, text in edits_of(fitted, ticked).items())
    return f"Adds the tier {id_} beside the others and chooses it." + (
        f"\nChanges over the scenario: {edits}." if edits else ""
    )


def without(desk: Desk, id_: str) -> Desk:
    """The desk without a tier; other changes stay."""
    chosen, baseline = ("" if each == id_ else each for each in (desk.chosen, desk.baseline))
    return replace(
        desk,
        tiers=tuple(tier for tier in desk.tiers if tier != id_),
        chosen=chosen,
        baseline=baseline,
    )


def fresh(desk: Desk) -> Desk:
    """With the catalogue read anew."""
    return replace(desk, catalog=Catalog())


def edits_of(fitted: Calibrated, ticked: Sequence[str]) -> dict[str, str]:
    """What is ticked, as changes over the scenario: path to text."""
    units = {"w": " W", "s": " s", "": ""}
    edits = {}
    for parameter in fitted.found.parameters:
        if parameter.path in ticked and parameter.path in fitted.free:
            digits = 4 if parameter.path.startswith("policy.") else 7
            edits[parameter.path] = f"{parameter.estimate.value:.{digits}g}{units[parameter.unit]}"
    if any(path in ("policy.snapshot", "policy.slowdown") for path in edits):
        edits["policy.mode"] = "async"
    return edits


def effect(fitted: Calibrated, desk: Desk, ticked: Sequence[str]) -> Grid:
    """The scenario on its chosen tier, and on the calibrated one. Raises CkptcostError where the
    scenario cannot be computed."""
    tier = desk.tier_chosen()
    before = _figures(desk, tier)
    after: dict[str, float | None] = {}
    if "tier" in fitted.kinds:
        with _with_entries(fitted) as calibrated:
            then = replace(put_on(desk, UNNAMED, edits_of(fitted, ticked)), catalog=calibrated)
            after = _figures(then, UNNAMED)
    rows = [
        {
            "what": label,
            "unit": unit,
            "now": before[key],
            "then": after.get(key),
            "change": change(before[key], after.get(key)),
        }
        for key, (label, unit) in _FIGURES.items()
    ]
    title = f"What changes: {desk.title}{f' on {tier}' if tier else ''}"
    return grid_of(Table("effect", title, _EFFECT, rows), list(_FIGURES))


def _figures(desk: Desk, tier: str) -> dict[str, float | None]:
    case = model(desk.catalog, desk.layers(), (tier,) if tier else ()).cases[0]
    found: dict[str, Any] = {**columns_of(case.outcome), "best": case.best["time"]}
    return {key: plain(float(found[key])) for key in _FIGURES}
