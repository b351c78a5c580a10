"""A probe under way: run in a thread, watched from the screen, stopped between two requests; its
run until it is kept; and what it found, beside the catalogue's tiers and the scenario."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import nan
from pathlib import Path
from typing import Any, NamedTuple

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.quantities import pick
from ckptcost.first.core.size import full_bytes
from ckptcost.first.core.timing import nodes_of
from ckptcost.first.errors import CkptcostError, OutputError
from ckptcost.first.jobs.model import case_of
from ckptcost.first.jobs.probe import Probed, ProbePass, ProbeProgress, probe
from ckptcost.first.meters.found import Wanted
from ckptcost.first.present.amounts import count, duration, number, quantity, rate, size
from ckptcost.first.present.chart import Band, Bar, Bars, Chart, ChartPart, Curve
from ckptcost.first.present.grid import Grid, Tone
from ckptcost.first.report.studies.probe import HERE, node_rates, pass_row, passes, study_of
from ckptcost.first.report.study import Study
from ckptcost.first.report.study_views import SIMULATED
from ckptcost.first.runs import store
from ckptcost.first.savers.base import Control, Io
from ckptcost.first.savers.owners import PREFIX
from ckptcost.first.tui.desk import Desk, by_flags
from ckptcost.first.tui.screens.meters import rows_of
from ckptcost.first.tui.screens.probe_plan import ProbePlan
from ckptcost.first.tui.study_grids import grid_of

STEP_NS = 50_000_000
"""between two looks at how far a pass is"""
_POINTS = 300
"""of a curve: no screen is wider"""
_DOING = {"save": "Writing", "verify": "Comparing", "load": "Reading", "warm-up": "Warming up"}
_TIMED = ("save", "load")


@dataclass
class Pass:
    """A save, a load or a comparison, as far as it is."""

    what: str
    number: int
    whole_bytes: int
    begin_ns: int
    moves: list[tuple[int, int]] = field(default_factory=list)
    """when how many bytes were through"""
    io: Io | None = None
    """what the engine says of it when it is over"""


class Watch(Control):
    """Everything that the screen draws while it runs. The engine's threads write, the screen's
    reads."""

    def __init__(self) -> None:
        super().__init__()
        self.passes: list[Pass] = []
        self.all_bytes = 0
        """moved in all"""
        self.begin_ns = time.monotonic_ns()

    def begin(self, what: str, number: int, whole_bytes: int) -> None:
        super().begin(what, number, whole_bytes)
        self.passes.append(Pass(what, number, whole_bytes, time.monotonic_ns()))

    def moved(self, bytes_: int) -> None:
        super().moved(bytes_)
        self.all_bytes += bytes_  # a byte lost between two threads is none on a screen
        now_ns, moves = time.monotonic_ns(), self.passes[-1].moves
        if not moves or now_ns - moves[-1][0] >= STEP_NS:
            moves.append((now_ns, self.moved_bytes))

    def tell(self, told: ProbeProgress) -> None:
        """The job says what the pass before was."""
        mine = [one for one in self.passes if one.what in _TIMED and one.io is None]
        if told.io is not None and mine:
            mine[-1].io = told.io

    def stopped_by(self, also: Callable[[], bool]) -> None:
        self._also = also


class Ended(NamedTuple):
    """How it ended. Without passes there is neither a study nor a run."""

    cancelled: bool
    probed: Probed | None = None
    study: Study | None = None
    folder: Path | None = None
    """of the run, among temporary files until it is kept"""
    left: tuple[str, ...] = ()
    """what could not be removed, or is another probe's"""

    @property
    def run(self) -> str:
        return "" if self.probed is None else self.probed.measured.kept[:8]

    @property
    def calibrating(self) -> str:
        """The command that makes a tier of its run, once it is kept."""
        return f"ckptcost calibrate {self.run} --as NAME"


class Running:
    """One probe."""

    def __init__(self, plan: ProbePlan, meters: str) -> None:
        self.plan, self.meters, self.watch = plan, meters, Watch()
        self._over = threading.Event()

    def stop(self, wait_s: float = 0.0) -> bool:
        """Whether it is over, everything removed, after at most so long."""
        self.watch.stop()
        return self._over.wait(wait_s)

    def work(self, stopped: Callable[[], bool]) -> Ended:
        """In a thread of its own. Raises what the storage, a library or a meter refuses; nothing is
        left then either."""
        self.watch.stopped_by(stopped)
        try:
            ended = self._probe()
            if stopped() and ended.study is not None:  # nobody is there any more who could keep it
                forget(ended)
                return Ended(True, left=ended.left)
            return ended
        finally:
            self._over.set()

    def _probe(self) -> Ended:
        try:
            scratch = Path(tempfile.mkdtemp(prefix="ckptcost-run-"))
        except OSError as error:
            raise OutputError(
                f"{tempfile.gettempdir()}: no folder for the run: {error.strerror or error}"
            ) from error
        asked = self.plan.asked
        asked = asked._replace(settings=replace(asked.settings, control=self.watch))
        probed: Probed | None = None
        try:
            with by_flags():
                probed = probe(asked, self.meters, Wanted(), scratch / "run", self.watch.tell)
        except KeyboardInterrupt:
            return Ended(True, left=left_in(asked.directory))
        finally:
            if probed is None:
                shutil.rmtree(scratch, ignore_errors=True)
        last = probed.rounds[-1]
        for one in self.watch.passes:
            if (one.what, one.number) == (last.of, last.number):
                one.io = last.io
        study, left = study_of(probed, Catalog()), left_in(asked.directory)
        return Ended(probed.interrupted, probed, study, scratch / "run", left)


def left_in(directory: Path) -> tuple[str, ...]:
    """Folders of probes that are still there."""
    try:
        return tuple(sorted(name for name in os.listdir(directory) if name.startswith(PREFIX)))
    except OSError:
        return ()


def keep(ended: Ended) -> Path:
    """Put the run among the user's own. Raises OutputError."""
    assert ended.folder is not None
    assert ended.probed is not None
    if ended.folder.parent == store.home():
        return ended.folder
    target = store.new_folder(run=ended.probed.measured.run.id)
    try:
        for file in sorted(ended.folder.iterdir()):
            shutil.move(str(file), target / file.name)
    except OSError as error:
        raise OutputError(
            f"{target}: the run could not be kept: {error.strerror or error}"
        ) from error
    forget(ended)
    return target


def forget(ended: Ended) -> None:
    """Drop a run that was not kept. Only what this module made."""
    if ended.folder is not None and ended.folder.parent.name.startswith("ckptcost-run-"):
        shutil.rmtree(ended.folder.parent, ignore_errors=True)


# how far it is


class Progress(NamedTuple):
    """All that the screen shows while it runs."""

    line: str
    rows: Grid
    chart: Chart


def progress(running: Running, stopping: bool = False, now_ns: int | None = None) -> Progress:
    watch = running.watch
    rows = [
        pass_row(ProbePass(one.number, one.what, float(one.whole_bytes), nan, one.io, None))
        for one in list(watch.passes)
        if one.io is not None
    ]
    line = "Stopping, and removing what was written ..."
    if not stopping:
        line = _line(running.plan, watch, time.monotonic_ns() if now_ns is None else now_ns)
    grid = grid_of(passes(rows)._replace(title="Every pass that is over"))
    return Progress(line, grid, curve(watch))


def _line(plan: ProbePlan, watch: Watch, now_ns: int) -> str:
    now = watch.passes[-1] if watch.passes and watch.passes[-1].io is None else None
    if now is None:
        return "Looking at the meters before the first save. Esc stops."
    lately = _lately(now, now_ns)
    at = f", {rate(lately)}" if lately == lately else ""
    done = watch.all_bytes / plan.moved_bytes if plan.moved_bytes > 0 else 0.0
    left = ""
    if 0.05 < done < 1.0:
        left_s = (now_ns - watch.begin_ns) * 1e-9 * (1.0 - done) / done
        left = f"; about {duration(float(round(left_s)))} left"
    of = f" round {count(now.number)} of {count(len(plan.asked.sizes))}"
    moved = size(min(watch.moved_bytes, now.whole_bytes))
    what = f"{_DOING[now.what]}{of if now.number else ''}"
    return f"{what}: {moved} of {size(now.whole_bytes)}{at}{left}. Esc stops."


def _lately(now: Pass, now_ns: int) -> float:
    """Bytes a second over the last second or so."""
    moves = now.moves
    if len(moves) < 2:
        return nan
    first = next((move for move in moves if now_ns - move[0] <= 1_000_000_000), moves[-2])
    last = moves[-1]
    return (last[1] - first[1]) / ((last[0] - first[0]) * 1e-9) if last[0] > first[0] else nan


def curve(watch: Watch) -> Chart:
    """Bytes a second as they went, passes shaded; between two there is a gap."""
    of, begin_ns = list(watch.passes), watch.begin_ns
    span_ns = (of[-1].moves[-1][0] if of and of[-1].moves else begin_ns) - begin_ns
    step_ns = max(span_ns // _POINTS, 1)
    xs: list[float] = []
    ys: list[float] = []
    bands = []
    for one in of:
        points = _points(one, step_ns)
        if len(points) < 2:
            continue
        at = [(t_ns - begin_ns) * 1e-9 for t_ns, _ in points]
        xs += [*at, at[-1]]
        ys += [*(y for _, y in points), nan]
        if one.what in _TIMED:
            bands.append(Band(at[0], at[-1], kind="save" if one.what == "save" else "load"))
    return Chart(
        "Bytes a second",
        [Curve("", xs, ys)],
        bands=bands,
        x_text=duration,
        y_text=rate,
        y_range=(0.0, nan),
        note="shaded: writing until safe, and reading; bare: comparing",
        empty="Nothing was written.",
    )


def _points(one: Pass, step_ns: int) -> list[tuple[int, float]]:
    """Time and rate; where it was too quick to be looked at, its mean."""
    io = one.io
    begin_ns = one.begin_ns if io is None else io.begin_ns
    points: list[tuple[int, float]] = []
    last = (begin_ns, 0)
    for move in one.moves:
        if move[0] - last[0] >= step_ns and move[1] >= last[1]:
            points.append((move[0], (move[1] - last[1]) / ((move[0] - last[0]) * 1e-9)))
            last = move
    if io is not None and len(points) < 3:
        mean = one.whole_bytes / max((io.returned_ns - begin_ns) * 1e-9, 1e-9)
        points = [(io.returned_ns, mean)]
    if points:
        points.insert(0, (begin_ns, points[0][1]))
    if io is not None:
        safe_ns = io.returned_ns if io.durable_ns is None else io.durable_ns
        # fsync: nothing is handed over any more, and it is not safe yet
        if safe_ns - points[-1][0] > 2 * step_ns:
            points += [(points[-1][0], 0.0), (safe_ns, 0.0)]
    return points


Line = tuple[str, Tone]


def rates_of(study: Study) -> dict[str, dict[str, Any]]:
    """By kind of pass, the row of the whole size."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows_of(study, "rates"):
        found.setdefault(str(row["of"]), row)
    return found


def grids(study: Study) -> tuple[Grid, Grid]:
    """The rates, and every pass."""
    found = {table.id: table for table in study.tables}
    return grid_of(found["rates"]), grid_of(found["rounds"])


def tiers(study: Study) -> Bars:
    """This place among the catalogue's tiers, by what one node writes."""
    return _bars(rows_of(study, "tiers"), "Beside the catalogue: what one node writes")


def known_tiers(desk: Desk) -> Bars:
    """Before anything was measured: what the catalogue says that one node writes, slowest first."""
    rows = sorted(node_rates(desk.catalog, 1.0), key=lambda row: float(row["write"]))
    return _bars(rows, "To compare with: what one node writes, by the catalogue")


def _bars(rows: Sequence[dict[str, Any]], title: str) -> Bars:
    return Bars(
        [
            Bar(
                str(row["tier"]),
                (ChartPart("write", 0.0, float(row["write"])),),
                rate(row["write"]),
                str(row["tier"]),
                "best" if row["tier"] == HERE else "",
            )
            for row in rows
        ],
        (),
        title,
        empty="No rate to compare.",
    )


def words(study: Study, desk: Desk, kept: str = "") -> list[Line]:
    """What follows, what to take care of, and the scenario's checkpoint here."""
    lines: list[Line] = [(SIMULATED, "warn")] if study.simulated else []
    lines += [(text, "warn") for _, text in study.warnings]
    lines += on_the_desk(study, desk)
    lines += [(text, "") for text in study.findings if not text.startswith("`ckptcost calibrate")]
    more = kept or "Not kept yet: w keeps the run, c keeps it and calibrates a tier from it."
    return [*lines, (more, "muted")]


def on_the_desk(study: Study, desk: Desk) -> list[Line]:
    """A checkpoint of the scenario, were every node's storage like this place."""
    rates = rates_of(study)
    write = rates["save"]["rate"] if "save" in rates else None
    if write is None:
        return []
    read = rates["load"]["rate"] if "load" in rates else None
    try:
        resolved = desk.resolved()
        s = resolved.scenario
        here = like_this(desk, write, read)
        now, then = case_of(resolved, False, False), case_of(here.resolved(), False, False)
    except CkptcostError as error:
        return [(f"The scenario cannot be computed at this rate: {error}", "warn")]
    whole, nodes = float(full_bytes(s.checkpoint)), float(nodes_of(s.cluster))
    each = f", {size(whole / nodes)} on each of {count(nodes)} nodes" if nodes > 1 else ""
    saved, bill = then.outcome.plan.saved, then.outcome.one_save
    kwh, gpu_h, usd = (
        f"{number(float(q.people(bill.total(q.field))))} {q.unit}"
        for q in pick("energy", "gpu_time_lost", "cost")
    )
    was = duration(float(now.outcome.plan.saved.write_s))
    return [
        (
            f"A checkpoint of {desk.title} is {size(whole)}{each}: {duration(float(saved.write_s))}"
            " to write if every node has a place like this.",
            "base",
        ),
        (
            f"It holds training up for {duration(float(saved.stall_s))} and costs {kwh}, {gpu_h}"
            f" and {usd} a save; on tier {now.tier_id} it takes {was}.",
            "base",
        ),
    ]


def like_this(desk: Desk, write: float, read: float | None) -> Desk:
    """The scenario on nodes that each have such a place. A storage that they share gives each of
    them less."""
    nodes = float(nodes_of(desk.resolved().scenario.cluster))
    for name, found in (("write", write), ("read", read)):
        if found is not None:
            desk = desk.edited(f"tier.node_{name}", quantity(found, "bytes_per_s"))
            desk = desk.edited(f"tier.{name}", quantity(found * nodes, "bytes_per_s"))
    return desk


def ended_text(ended: Ended) -> Line:
    """One line for when it is over."""
    if ended.study is not None and ended.study.simulated:
        return "Done; a simulated machine, so nothing was written but the run.", "good"
    if ended.left:
        left = ", ".join(ended.left)
        return (
            f"Ended, but these are still there: {left}; another probe's, or remove them by hand.",
            "warn",
        )
    removed = "everything that was written is removed"
    if not ended.cancelled:
        return f"Done; {removed}.", "good"
    passes = len(ended.probed.rounds) if ended.probed is not None else 0
    through = f"after {count(passes)} pass{'' if passes == 1 else 'es'}"
    return f"Stopped {through if passes else 'before a pass was through'}; {removed}.", "warn"
