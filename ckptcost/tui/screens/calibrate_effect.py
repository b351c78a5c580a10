"""Whether the model, with what was measured in it, now predicts the runs; and what changes for the
desk's scenario."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ckptcost.catalog import files
from ckptcost.catalog.store import Catalog
from ckptcost.errors import CkptcostError, OutputError
from ckptcost.jobs.calibrate_files import install
from ckptcost.jobs.gap import gap
from ckptcost.jobs.measured import Measured
from ckptcost.jobs.model import model
from ckptcost.layers import layers_for
from ckptcost.present.grid import Grid, Tone
from ckptcost.report.rows import columns_of
from ckptcost.report.studies.run_columns import plain
from ckptcost.report.study import ROW_UNIT, Column, Table
from ckptcost.tui.desk import Desk
from ckptcost.tui.screens.calibrate_fit import UNNAMED, Calibrated, change, seen_hosts
from ckptcost.tui.study_grids import grid_of, toned_grid

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
