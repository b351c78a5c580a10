"""Whether the model, with what was measured in it, now predicts the runs; and what changes for the
desk's scenario."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import isfinite, nan
from pathlib import Path
from typing import Any, NamedTuple

from ckptcost.catalog import files
from ckptcost.catalog.store import Catalog
from ckptcost.errors import CkptcostError, OutputError
from ckptcost.jobs.calibrate_files import target_of, texts_of
from ckptcost.jobs.gap import gap
from ckptcost.jobs.measured import Measured
from ckptcost.jobs.model import model
from ckptcost.layers import layers_for
from ckptcost.present.amounts import duration, number, rate, share
from ckptcost.present.grid import Grid, Head, Row, Tone
from ckptcost.report.rows import columns_of
from ckptcost.tui.desk import Desk
from ckptcost.tui.screens.calibrate_fit import UNNAMED, Calibrated, change_text
from ckptcost.views.run import seen_of

_FIGURES: tuple[tuple[str, str, Callable[[float | None], str]], ...] = (
    ("rate_bytes_per_s", "rate of a save", rate),
    ("stall_s", "stall of a save", duration),
    ("save_energy_kwh", "one save, kWh", number),
    ("save_cost_usd", "one save, USD", number),
    ("run_energy_kwh", "the run, kWh", number),
    ("run_cost_usd", "the run, USD", number),
    ("goodput", "goodput", share),
    ("best", "best interval", duration),
)
CHECK_HEADS = (
    Head("run", "run", left=True),
    Head("of", "of", left=True, rank=1),
    Head("measured", "measured"),
    Head("before", "now"),
    Head("off_before", "off"),
    Head("after", "then"),
    Head("off_after", "off"),
)
_GOOD = 0.1
"""of what was measured: closer is a prediction"""


class Checked(NamedTuple):
    """Whole saves and loads of each run and host, in the mean: measured, and modelled at their
    size."""

    grid: Grid
    notes: tuple[str, ...]


def check(fitted: Calibrated, base: str, settings: Sequence[str]) -> Checked:
    """The model against the runs, before and after. It reads the runs once more, so it is work for
    the background."""
    rows: list[Row] = []
    notes: list[str] = []
    after = [*(each for each in settings if not each.startswith("tier.id=")), f"tier.id={UNNAMED}"]
    with _with_entries(fitted) as calibrated:
        for source in fitted.sources:
            first = seen_of(source)
            for host in first.run.hosts:
                seen = first if host == first.energies.node.host else seen_of(source, host)
                try:
                    before_s = _times(Catalog(), seen, base, settings)
                    after_s = (
                        _times(calibrated, seen, base, after) if "tier" in fitted.kinds else {}
                    )
                except CkptcostError as error:
                    notes.append(f"{source.short}: {error}")
                    continue
                name = source.short if len(first.run.hosts) == 1 else f"{source.short} {host}"
                rows += [
                    _checked(name, of, *times, after_s.get(of, (nan, nan))[1])
                    for of, times in before_s.items()
                ]
    title = "Does the model predict the runs? Until safe"
    return Checked(
        Grid(
            CHECK_HEADS,
            rows,
            title,
            empty="Nothing was measured that the model could be held against.",
        ),
        tuple(notes),
    )


def _times(
    catalog: Catalog, seen: Measured, base: str, settings: Sequence[str]
) -> dict[str, tuple[float, float]]:
    """By save and load: seconds measured, and modelled at the measured size."""
    found = gap(catalog, seen, layers_for(catalog, base, None, list(settings)))
    rows = {held.of: held.row("time") for held in (found.saves, found.loads) if held is not None}
    return {of: (row.measured.value, row.at_size) for of, row in rows.items()}


def _checked(name: str, of: str, measured_s: float, before_s: float, after_s: float) -> Row:
    offs = [each / measured_s - 1.0 if measured_s > 0 else nan for each in (before_s, after_s)]
    texts = [change_text(off) for off in offs]
    cells = (
        name,
        of,
        duration(measured_s),
        duration(before_s),
        texts[0],
        duration(after_s),
        texts[1],
    )
    tone: Tone = "good" if abs(offs[1]) <= _GOOD else "warn" if isfinite(offs[1]) else ""
    return Row(
        f"{name} {of}", cells, (name, of, measured_s, before_s, offs[0], after_s, offs[1]), tone
    )


@contextmanager
def _with_entries(fitted: Calibrated) -> Iterator[Catalog]:
    """The catalogue as it would be with the new entries: in a scratch folder, gone afterwards."""
    try:
        with tempfile.TemporaryDirectory(prefix="ckptcost-") as scratch:
            root, mine = Path(scratch) / "user", files.overlay()
            if mine.is_dir() and (mine / "models").is_dir():
                shutil.copytree(mine / "models", root / "models")
            for kind, text in texts_of(fitted.named(UNNAMED)).items():
                file = target_of(kind, UNNAMED, root)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, "utf-8")
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
    after: dict[str, float] = {}
    if "tier" in fitted.kinds:
        with _with_entries(fitted) as calibrated:
            then = replace(put_on(desk, UNNAMED, edits_of(fitted, ticked)), catalog=calibrated)
            after = _figures(then, UNNAMED)
    rows = []
    for key, label, text in _FIGURES:
        now, new = before.get(key, nan), after.get(key, nan)
        change = new / now - 1.0 if now else nan
        cells = (label, text(now), text(new), change_text(change))
        rows.append(Row(key, cells, (label, now, new, change)))
    heads = (
        Head("what", "figure", left=True),
        Head("now", "now"),
        Head("then", "then"),
        Head("change", "change", rank=1),
    )
    return Grid(heads, rows, f"What changes: {desk.title}{f' on {tier}' if tier else ''}")


def _figures(desk: Desk, tier: str) -> dict[str, float]:
    case = model(desk.catalog, desk.layers(), (tier,) if tier else ()).cases[0]
    found: dict[str, Any] = {**columns_of(case.outcome), "best": case.best["time"]}
    return {key: float(found[key]) for key, _, _ in _FIGURES}
