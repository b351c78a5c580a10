"""Tiers side by side, in the tables and sentences of `ckptcost optimize` and `ckptcost model`: at
their best, in force, one save in bars; the front as a chart, one tier in detail, and what vendors
claim.

A tier that cannot be computed stays in the list with the reason; it never stops the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from ckptcost.first.core.outcome import HEADWAY_GOODPUT
from ckptcost.first.core.quantities import BY_OBJECTIVE
from ckptcost.first.errors import CkptcostError, InputError
from ckptcost.first.jobs.model import Case, comparison_of, one_of
from ckptcost.first.jobs.model import model as model_job
from ckptcost.first.jobs.optimize import Optimum, optimize, option_of
from ckptcost.first.layers import Layer
from ckptcost.first.present.amounts import DASH, count, number, share
from ckptcost.first.present.chart import Bar, Bars, Chart, ChartPart, Curve, Dot
from ckptcost.first.present.grid import Grid, Tone
from ckptcost.first.present.words import caution_text
from ckptcost.first.report.studies.model import claims_table
from ckptcost.first.report.studies.model import study_of as model_study
from ckptcost.first.report.studies.optimize import how_sure, option_columns, study_of
from ckptcost.first.report.study import ROW_UNIT, Column, Study, Table
from ckptcost.first.tui.about_field import figure_text, source_lines
from ckptcost.first.tui.desk import Desk, scenario_of
from ckptcost.first.tui.fields import label_of
from ckptcost.first.tui.screens.model_runs import (
    CASES,
    OF_OBJECTIVE,
    TierRuns,
    base_of,
    best_of,
    holds_for_all,
    rank_tone,
    runs_of,
)
from ckptcost.first.tui.study_grids import grid_of, with_columns

Row = dict[str, Any]
Line = tuple[str, Tone]
Shown = Literal["best", "asked", "save"]
"""the run at each tier's best interval, the run at the interval in force, or one save"""
SHOWN: tuple[Shown, ...] = ("best", "asked", "save")
TITLES = {
    "best": "Each tier at its own best for {}",
    "asked": "The run at the interval in force",
    "save": "What one save costs",
}
AT_BEST = {"time": "gpu_hours", "energy": "energy", "usd": "cost", "carbon": "carbon"}
"""what the ratio to the baseline is of, by objective; lost GPU-hours stand for time, which is
nearly the same for every tier"""
ASKED = {"time": "gpu_hours", **{name: q.column for name, q in BY_OBJECTIVE.items()}}
"""the same in the table of cases"""
WITHOUT = {"energy": "energy_without", "usd": "cost_without", "carbon": "emissions_without"}
RATIO = Column("ratio", "of base", "share")
_RUN = {"goodput": "goodput", "gpu_hours": "GPU-h", "energy": "kWh", "cost": "USD"}
_AMOUNTS = {"gpu_hours": "GPU-h", "energy_kwh": "kWh", "cost_usd": "USD"}
LABELS: dict[Shown, dict[str, str]] = {
    "best": _RUN
    | {"interval": "best every", "ratio": "of base", "over": "over best", "carbon": "kgCO2e"}
    | {"rate_bytes_per_s": "rate", "stall_s": "stall", "cheaper": "best less in"},
    "asked": {"goodput": "goodput"}
    | {f"run_{name}": label for name, label in _AMOUNTS.items()}
    | {"interval_s": "every", "ratio": "of base", "wall_s": "whole run"}
    | {"run_location_kgco2e": "kgCO2e", "rate_bytes_per_s": "rate", "stall_s": "stall"},
    "save": {"stall_s": "stall"}
    | {f"save_{name}": label for name, label in _AMOUNTS.items()}
    | {"ratio": "of base", "rate_bytes_per_s": "rate", "save_location_kgco2e": "kgCO2e"}
    | {"lag_s": "drain", "save_storage_kwh": "storage kWh"},
}
"""columns of the reports' tables; where it is narrow, the later ones give way"""


class Weighed(NamedTuple):
    """All tiers of a desk, for one objective."""

    desk: Desk
    """the scenario as it was computed: where it says nothing of the interval, the best one is in
    force"""
    objective: str
    runs: tuple[TierRuns, ...]
    """at the interval in force"""
    no_best: dict[str, str]
    """tiers without a best interval, and why"""
    found: Optimum | None
    """`optimize`'s answer; for time where the tiers cannot be ranked by the objective"""
    study: Study | None
    unranked: str
    """why there is no best tier"""

    @property
    def ranked_by(self) -> str:
        """What the tiers' best intervals are best for."""
        return self.objective if self.found is None else self.found.objective

    @property
    def tables(self) -> dict[str, Table]:
        return {} if self.study is None else {table.id: table for table in self.study.tables}

    @property
    def options(self) -> list[Row]:
        """Each tier at its own best interval; `optimize` has no table of a single one."""
        if self.found is None:
            return []
        tables = self.tables
        if "options" in tables:
            return list(tables["options"].rows)
        at = f"best for {self.ranked_by}"
        best = next(row for row in tables["intervals"].rows if row["at"] == at)
        return [{**best, "tier": self.found.option.tier_id, "over": 0.0}]

    def rows(self, shown: Shown) -> list[Row]:
        """One row a tier, those without figures last."""
        if shown != "best":
            return sorted((run.row for run in self.runs), key=lambda row: len(row) == 1)
        at_best = {row["tier"]: row for row in self.options}
        rows = [{**run.row, "goodput": None, **at_best.get(run.key, {})} for run in self.runs]
        return sorted(rows, key=lambda row: row["tier"] not in at_best)

    def best(self, shown: Shown) -> str:
        """The tier whose run costs least; one save is judged by the run it is part of."""
        if self.found is not None and shown != "asked":
            return "" if self.unranked else self.found.option.tier_id
        run = best_of(self.runs, OF_OBJECTIVE[self.objective])
        return "" if run is None else run.key

    def lacks(self, run: TierRuns, shown: Shown) -> bool:
        """Whether a tier has no figures there."""
        return run.key in self.no_best if shown == "best" else run.found is None

    def column(self, shown: Shown) -> str:
        """What the ratio to the baseline is of."""
        if shown == "best":
            return AT_BEST[self.objective]
        return f"{'save' if shown == 'save' else 'run'}_{ASKED[self.objective]}"


def weighed(desk: Desk, objective: str, stopped: Callable[[], bool] = lambda: False) -> Weighed:
    """Resolve and evaluate every tier. Raises InputError where the scenario itself is wrong."""
    desk = scenario_of(desk).timed(objective)
    layers, runs, able = desk.layers(), [], []
    no_best: dict[str, str] = {}
    for tier in desk.tiers_shown():
        if stopped():
            break
        runs.append(runs_of(desk, layers, tier))
        try:
            option = option_of(one_of(desk.catalog, layers, tier or None))
            able += [tier] if option.known else []
        except InputError as error:
            no_best[runs[-1].key] = str(error)
    found, unranked = _optimum(desk, layers, able, objective)
    study = None if found is None else study_of(found)
    return Weighed(desk, objective, tuple(runs), no_best, found, study, unranked)


def _optimum(
    desk: Desk, layers: Sequence[Layer], tiers: Sequence[str], objective: str
) -> tuple[Optimum | None, str]:
    """Where the tiers cannot be ranked, the figures are those of the best for time."""
    if not tiers:
        return None, ""
    try:
        return optimize(desk.catalog, layers, tiers, "", objective), ""
    except InputError as error:
        if objective == "time":
            return None, str(error)
        return _optimum(desk, layers, tiers, "time")[0], str(error)


def is_hopeless(row: Row) -> bool:
    return row.get("goodput") is not None and row["goodput"] < HEADWAY_GOODPUT


def grid(weighed: Weighed, desk: Desk, shown: Shown) -> Grid:
    """One row a tier, and how much of the baseline's amount it takes."""
    rows, base = weighed.rows(shown), base_of(desk, weighed.runs).key
    best, column = weighed.best(shown), weighed.column(shown)
    theirs = next(row for row in rows if row["tier"] == base)
    rows = [row | {"ratio": _ratio(row, theirs, column, weighed.objective)} for row in rows]

    def tone(row: Row) -> Tone:
        if row.get(column) is None and row.get("goodput") is None:
            return "muted"
        if is_hopeless(row):
            return "bad"
        return rank_tone(row["tier"] == best, row["tier"] == base)

    labels = LABELS[shown]
    title = f"{TITLES[shown].format(weighed.ranked_by)}; base {base}, by {labels[column]}"
    known = Table("tiers", title, CASES.columns, rows, _note(weighed, shown))
    table = with_columns(
        known, {"tier": "tier"} | labels, *option_columns(weighed.ranked_by), RATIO
    )
    first = ("tier", column, "ratio")
    return grid_of(table, [row["tier"] for row in rows], tone, first, desk.chosen)


def _ratio(mine: Row, theirs: Row, column: str, objective: str) -> float | None:
    """None where a run is hopeless, or the two sums lack different lines."""
    lacks = WITHOUT.get(objective, "")
    if is_hopeless(mine) or is_hopeless(theirs) or mine.get(lacks) != theirs.get(lacks):
        return None
    value, whole = mine.get(column), theirs.get(column)
    return value / whole if value is not None and whole else None


def _note(weighed: Weighed, shown: Shown) -> str:
    """What the whole table rests on."""
    silent = sum(weighed.lacks(run, shown) for run in weighed.runs)
    tables = weighed.tables
    parts = [
        tables["options"].note if shown == "best" and "options" in tables else "",
        "kgCO2e: location-based",
        holds_for_all(weighed.desk, len(weighed.runs)),
        f"{count(silent)} of {count(len(weighed.runs))} without figures" if silent else "",
    ]
    return "; ".join(filter(None, parts))


def sentence(weighed: Weighed, shown: Shown) -> Line:
    """Which tier is best and how often it saves, in `optimize`'s words; or why none is."""
    objective, found = weighed.objective, weighed.found
    if weighed.unranked:
        return f"No tier is called best for {objective}: {weighed.unranked}", "warn"
    if found is None or weighed.study is None:
        whys = dict.fromkeys([*weighed.no_best.values(), *(run.reason for run in weighed.runs)])
        why = next(filter(None, whys), "no tier is known")
        other = shown == "best" and any(run.found is not None for run in weighed.runs)
        o = " (o: the run at the interval in force)" if other else ""
        return f"No best tier{o}: {why.rstrip('.')}.", "warn"
    goodput = float(found.best.outcome.goodput)
    if not goodput >= HEADWAY_GOODPUT:
        others = ", the best of these," if len(weighed.runs) > 1 else ""
        return (
            f"Hopeless: even at its best interval a run on {found.option.tier_id}{others} makes"
            f" next to no headway (goodput {share(goodput)}).",
            "bad",
        )
    return " ".join([weighed.study.findings[0], *how_sure(found)]), "best"


def command(weighed: Weighed, shown: Shown) -> str:
    """What prints the same numbers: tiers that cannot be computed are left out, for one of them
    would stop the command."""
    desk = weighed.desk
    able = [
        tier
        for tier, run in zip(desk.tiers_shown(), weighed.runs, strict=False)
        if not weighed.lacks(run, shown)
    ]
    name, *more = ("optimize", "--objective", weighed.ranked_by) if shown == "best" else ("model",)
    named = [tier for tier in able if tier]
    lines = []
    if "" in able or not named:  # the scenario's own tier has no name to give
        lines.append(desk.command(name, *more))
    if named:
        said = tuple(dict.fromkeys(comparison_of(desk.layers())[0])) == tuple(able)
        flags = [] if said else [word for tier in named for word in ("--tier", tier)]
        lines.append(desk.command(name, *flags, *more))
    return "; ".join(lines)


def exported(weighed: Weighed, shown: Shown) -> Study | None:
    """What is written to a file: `optimize`'s answer, or `model`'s where the interval is the one in
    force; None where there is none."""
    if shown == "best":
        if weighed.study is None:
            return None
        # the table of the tiers first: it is what a CSV holds
        tables = sorted(weighed.study.tables, key=lambda table: table.id != "options")
        return weighed.study._replace(tables=tables)
    desk = weighed.desk
    able = [run.key for run in weighed.runs if run.found is not None]
    named = [tier for tier in desk.tiers_shown() if tier in able]
    answer = model_job(desk.catalog, desk.layers(), named) if able else None
    return None if answer is None else model_study(answer, desk.catalog)


def next_of(shown: Shown) -> Shown:
    return SHOWN[(SHOWN.index(shown) + 1) % len(SHOWN)]


# pictures, and the tier under the cursor

AGAINST = AT_BEST | {"time": "cost"}
"""what goodput is held against, by objective"""
UNITS = {"energy": "kWh", "cost": "USD", "carbon": "kgCO2e"}
NAMED = 12
"""with more dots than this, only those that matter have their name beside them"""
SURVIVES = {
    "process": "lost with its node",
    "node": "survives the loss of a node",
    "site": "survives the loss of any node",
}
CLAIMS = {"case": "tier", "what": "claim", "unit": "in", "value": "claimed", "model": "model"} | {
    "low": "from",
    "high": "to",
    "size": "of a save of",
    "source": "source",
}


def short(name: str, most: int = 24) -> str:
    """A name that fits beside others.

    >>> short("nas-hdd"), short("a-tier-with-a-name-that-goes-on")
    ('nas-hdd', 'a-tier-with-a-name-tha..')
    """
    return name if len(name) <= most else name[: most - 2] + ".."


def front_chart(weighed: Weighed, desk: Desk, cursor: str = "") -> Chart:
    """Share of time lost against what it costs, each tier at its best interval, and the front that
    no tier beats."""
    key = AGAINST[weighed.objective]
    if key == "cost" and all(row.get(key) is None for row in weighed.options):
        key = "energy"
    front = weighed.tables["front"].rows if weighed.study is not None else []
    points = sorted((row[key], 1.0 - row["goodput"]) for row in front if row.get(key))
    curve = Curve("", [x for x, _ in points], [y for _, y in points], "best")
    return Chart(
        f"time lost against {UNITS[key]}",
        (curve,) if len(points) > 1 else (),
        list(_dots(weighed, key, {row["tier"] for row in front}, desk, cursor)),
        x_label=UNITS[key],
        x_text=number,
        y_text=share,
        x_log=True,
        y_log=True,
        x_kind="number",
        empty="no tier has a best interval",
    )


def _dots(weighed: Weighed, key: str, on_front: set[str], desk: Desk, cursor: str) -> Iterator[Dot]:
    """A tier each, where both of its amounts are known and can stand on a log scale."""
    options, baseline = weighed.options, base_of(desk, weighed.runs).key
    for row in options:
        tier, x, goodput = row["tier"], row.get(key), row.get("goodput")
        if x and goodput is not None and goodput < 1.0:
            tone = rank_tone(tier in on_front, tier == baseline)
            named = tone or len(options) <= NAMED or tier == cursor
            yield Dot(x, 1.0 - goodput, short(tier) if named else "", tone)


def save_bars(weighed: Weighed, desk: Desk) -> Bars:
    """Dollars of one save, on a log scale: they span orders of magnitude."""
    best, baseline = weighed.best("save"), base_of(desk, weighed.runs).key
    known = [(usd, run.key) for run in weighed.runs if (usd := run.row.get("save_cost_usd"))]
    rows = []
    for usd, key in sorted(known, key=lambda pair: -pair[0]):
        tone = rank_tone(key == best, key == baseline)
        part = ChartPart("USD", 0.0, usd, tone)
        rows.append(Bar(short(key), (part,), f"{number(usd)} USD", key, tone))
    able = [run.case.resolved for run in weighed.runs if run.found is not None]
    unpriced = any("cluster.gpu_price" in each.unknown for each in able)
    why = f"what one save costs is not known{': cluster.gpu_price' if unpriced else ''}"
    return Bars(rows, (), "USD of one save, log scale", "", True, why)


def details(weighed: Weighed, desk: Desk, key: str, shown: Shown) -> list[Line]:
    """One tier: its figures and on whose word, what it outlives, and what to beware of."""
    run = next((run for run in weighed.runs if run.key == key), None)
    if run is None:
        return []
    lines: list[Line] = [(run.row.get("tier_name", key), "")]
    lines += [(run.reason, "bad")] if run.found is None else _known_of(run.found, desk)
    if shown == "best" and (why := weighed.no_best.get(key)) and why != run.reason:
        lines.append((why, "warn"))
    try:
        note = desk.catalog.get("tier", key).note
    except CkptcostError:
        note = ""
    return [*lines, (note, "muted")] if note else lines


def _known_of(case: Case, desk: Desk) -> list[Line]:
    """Figures of the tier, those of writing first."""
    resolved = case.resolved
    inputs = [each for each in resolved.inputs if each.path.startswith("tier.")]
    inputs.sort(key=lambda each: "write" not in each.path)
    unknown = [path for path in resolved.unknown if path.startswith("tier.")]
    survives = SURVIVES.get(str(resolved.words.get("tier.survives", "site")), "")
    return [
        *((f"{label_of(each.path)}: {figure_text(each)}", "") for each in inputs),
        *((f"{label_of(path)}: {DASH} {resolved.unknown[path]}", "muted") for path in unknown),
        (survives, ""),
        *((caution_text(each), "warn") for each in case.cautions),
        *source_lines(desk, [each.figure.source for each in inputs], 9),
    ]


def claims(weighed: Weighed) -> Grid:
    """What vendors say of one save, beside what the model says of a save of the same size."""
    able = {run.key: run for run in weighed.runs if run.found is not None}
    table = claims_table([run.case for run in able.values()], list(able))
    modelled = {"energy": "save_energy_kwh", "time": "stall_s"}
    rows = [
        row | {"model": able[row["case"]].row[modelled[row["what"]]] if row["this_size"] else None}
        for row in table.rows
    ]
    more = Column("model", "model", ROW_UNIT, "of a save of the same size")
    note = (
        "no vendor says what its kWh include; the model counts the GPUs and hosts that wait, and"
        " the storage"
    )
    table = with_columns(table, CLAIMS, more)._replace(rows=rows, note=note)
    empty = "none of these tiers comes with a claim about one save"
    return grid_of(table)._replace(empty=empty)
