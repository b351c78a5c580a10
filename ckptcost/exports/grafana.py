"""A Grafana dashboard, beside Prometheus rules, over the names in `metric_names`. They rest on
names alone: the same for every statement.

Queries use windows that are written out or chosen (`$__range`, `$window`), never one that follows
the screen's width, because a window shorter than the scrape interval shows nothing. A run's figures
may be scraped from several places, or have changed their basis: the largest copy counts, copies are
never added. The types of the dashboard are checked against Grafana's own and every query is run on
a real Prometheus; how Grafana draws it is untested.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ckptcost.exports import grafana_queries as queries
from ckptcost.exports import metric_names as names
from ckptcost.exports.formats import Files
from ckptcost.exports.grafana_queries import SHOWN, Shown
from ckptcost.exports.grafana_rules import rules
from ckptcost.report.document import Report

SCHEMA_VERSION = 42
"""of the dashboard's JSON, Grafana 13"""
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
Json = dict[str, Any]
REDUCED = {"calcs": ["lastNotNull"], "values": False, "fields": ""}
LEGEND = {"showLegend": True, "displayMode": "list", "placement": "bottom", "calcs": []}
MEMO = (
    "A memo item: this energy, money and carbon are already inside the facility's own meter and"
    " bills. Do not add it to an inventory."
)
_CAME_OUT = (
    "The second figure of each run is that factor as it came out, gCO2e per kWh; the table"
    " 'Factors' has its source."
)
WHY = {
    "emissions_location_kg": (
        "Factor: the grid's average where the run was (site.grid_location), of each hour where"
        f" that is known. {_CAME_OUT} Never add the market-based figure."
    ),
    "emissions_market_kg": (
        f"Factor: that of the electricity bought (site.grid_market, from contracts). {_CAME_OUT} "
        "No contracts known, no figure. Never add the location-based figure."
    ),
    "embodied_kg": (
        "Factor: making the hardware, shared over its life (cluster.gpu_embodied), for the GPU time"
        " lost. In no emissions figure."
    ),
}
ABOUT = """**What checkpoints and failures cost these runs**, beside the same work with no checkpoints and no failures.

* Memo items: already inside the facility's own meter and bills. Do not add them to an inventory.
* Location-based carbon = kWh x the grid's average factor, market-based = kWh x the factor of the electricity bought: two views of the same
  energy, never to be added. Factors are in the table *Factors*, with sources.
* What is not known is in no sum: see *Not known*. A dash or a gap is never a zero.
* Figures since a run began are right for any scrape interval. Figures *in a window* need scrapes while the run lasts, or the history that
  the export `openmetrics` fills in; a finished run's file alone never grows.
"""


def export(document: Report) -> Files:
    return {
        "dashboard.json": [json.dumps(dashboard(), indent=2) + "\n"],
        "rules.yaml": rules(),
        "README.txt": [README],
    }


def dashboard() -> Json:
    every = {"selected": True, "text": ["All"], "value": ["$__all"]}
    day = {"selected": True, "text": "1d", "value": "1d"}
    windows = ["1h", "6h", "1d", "7d", "30d"]
    values = 'label_values({__name__=~"ckptcost_.+"}, run)'
    return {
        "id": None,
        "uid": "ckptcost",
        "title": "Checkpoint costs",
        "tags": ["ckptcost"],
        "description": MEMO,
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "timezone": "utc",
        "refresh": "",
        "time": {"from": "now-30d", "to": "now"},
        "annotations": {"list": []},
        "links": [],
        "templating": {
            "list": [
                {
                    "name": "datasource",
                    "label": "Prometheus",
                    "type": "datasource",
                    "query": "prometheus",
                    "refresh": 1,
                    "hide": 0,
                },
                {
                    "name": "run",
                    "label": "Run",
                    "type": "query",
                    "datasource": SOURCE,
                    "query": {"query": values, "refId": "run"},
                    "refresh": 2,
                    "sort": 1,
                    "multi": True,
                    "includeAll": True,
                    "allValue": ".*",
                    "current": every,
                    "hide": 0,
                },
                {
                    "name": "window",
                    "label": "Window",
                    "type": "interval",
                    "query": ",".join(windows),
                    "current": day,
                    "refresh": 0,
                    "hide": 0,
                    "options": [
                        {"selected": each == "1d", "text": each, "value": each} for each in windows
                    ],
                },
            ]
        },
        "panels": [{"id": at, **panel} for at, panel in enumerate(_panels(), 1)],
    }


def _panels() -> Iterator[Json]:
    yield {
        **_panel("text", "", (0, 0, 24, 6), []),
        "options": {"mode": "markdown", "content": ABOUT},
    }
    for at, what in enumerate(("energy_kwh", "gpu_hours_lost", "cost_usd", "checkpoints")):
        yield _stat(SHOWN[what], (6 * at, 6, 6, 4))
    for at, what in enumerate(("emissions_location_kg", "emissions_market_kg", "embodied_kg")):
        yield _stat(SHOWN[what], (8 * at, 10, 8, 5))
    yield _table(
        "Runs",
        (0, 15, 24, 7),
        {
            "About": queries.about(),
            **{each.title: queries.total(each, "run, run_id") for each in SHOWN.values()},
            "Share of GPU time lost": queries.share(),
        },
    )
    yield _table(
        "Per checkpoint",
        (0, 22, 12, 7),
        {each.title: queries.per_save(each) for each in SHOWN.values() if each.id != "checkpoints"},
    )
    yield _table(
        "Not known, and in no sum",
        (12, 22, 12, 7),
        {"": queries.labels(names.UNKNOWN, "run, run_id, component, quantity")},
    )
    for at, what in enumerate(("energy_kwh", "gpu_hours_lost", "cost_usd")):
        yield _bars(SHOWN[what], (8 * at, 29, 8, 8))
    for at, each in enumerate(each for each in SHOWN.values() if each.id != "checkpoints"):
        yield _over_time(each, (12 * (at % 2), 37 + 8 * (at // 2), 12, 8))
    ranges = {
        f"{each.title}, {end}": queries.bound(each, end)
        for each in SHOWN.values()
        if each.id != "checkpoints"
        for end in ("low", "high")
    }
    yield _table("Ranges of the runs' sums", (0, 61, 24, 7), ranges)
    by = "run, run_id, factor, text, unit, origin, set_by, source, licence"
    yield _table(
        "Factors", (0, 68, 24, 10), {"Value in base units": queries.labels(names.FACTOR, by)}
    )


def _panel(
    kind: str,
    title: str,
    place: Sequence[int],
    targets: Sequence[Json],
    description: str = "",
    **defaults: Any,
) -> Json:
    x, y, w, h = place
    made: Json = {
        "type": kind,
        "title": title,
        "description": description,
        "gridPos": {"x": x, "y": y, "w": w, "h": h},
    }
    if targets:
        made |= {"datasource": SOURCE, "targets": targets}
    return {
        **made,
        "fieldConfig": {"defaults": {"noValue": "not known", **defaults}, "overrides": []},
    }


def _target(
    ref: str, expr: str, legend: str = "", shape: str = "time_series", step: str = ""
) -> Json:
    asked: Json = {
        "refId": ref,
        "datasource": SOURCE,
        "editorMode": "code",
        "expr": expr,
        "format": shape,
        "legendFormat": legend or "__auto",
    }
    return {
        **asked,
        "instant": not step,
        "range": bool(step),
        **({"interval": step} if step else {}),
    }


def _stat(shown: Shown, place: Sequence[int]) -> Json:
    targets = [_target("A", queries.total(shown, "run"), "{{run}}")]
    if shown.rated:
        targets.append(_target("B", queries.factor(shown), "factor of {{run}}"))
    panel = _panel(
        "stat",
        shown.title,
        place,
        targets,
        " ".join(each for each in (WHY.get(shown.id, ""), MEMO) if each),
        unit=shown.unit,
    )
    panel["fieldConfig"]["overrides"] = (
        [
            {
                "matcher": {"id": "byFrameRefID", "options": "B"},
                "properties": [{"id": "unit", "value": "suffix: gCO2e/kWh"}],
            }
        ]
        if shown.rated
        else []
    )
    return {
        **panel,
        "options": {
            "reduceOptions": REDUCED,
            "orientation": "auto",
            "textMode": "value_and_name",
            "colorMode": "none",
            "graphMode": "none",
            "justifyMode": "auto",
            "percentChangeColorMode": "standard",
            "showPercentChange": False,
            "wideLayout": True,
        },
    }


def _bars(shown: Shown, place: Sequence[int]) -> Json:
    target = _target("A", queries.total(shown, "run, component"), "{{run}}: {{component}}")
    panel = _panel(
        "bargauge", f"{shown.title}, by component", place, [target], MEMO, unit=shown.unit, min=0
    )
    return {
        **panel,
        "options": {
            "reduceOptions": REDUCED,
            "orientation": "horizontal",
            "displayMode": "basic",
            "valueMode": "color",
            "namePlacement": "auto",
            "sizing": "auto",
            "showUnfilled": True,
            "minVizWidth": 8,
            "minVizHeight": 16,
            "maxVizHeight": 300,
            "legend": {**LEGEND, "showLegend": False},
        },
    }


def _over_time(shown: Shown, place: Sequence[int]) -> Json:
    target = _target(
        "A",
        shown.joined(queries.IN_WINDOW, queries.CHOSEN, "run, component"),
        "{{run}}: {{component}}",
        step="$window",
    )
    custom = {
        "drawStyle": "bars",
        "fillOpacity": 60,
        "lineWidth": 0,
        "stacking": {"mode": "normal", "group": "A"},
    }
    panel = _panel(
        "timeseries",
        f"{shown.title} in the $window before",
        place,
        [target],
        WHY.get(shown.id, ""),
        unit=shown.unit,
        custom=custom,
    )
    return {**panel, "options": {"legend": LEGEND, "tooltip": {"mode": "multi", "sort": "desc"}}}


def _table(title: str, place: Sequence[int], columns: Mapping[str, str]) -> Json:
    """One query a column; Grafana joins them where their labels agree, and hides what is only a 1
    beside labels."""
    targets = [
        _target(chr(ord("A") + at), expr, shape="table") for at, expr in enumerate(columns.values())
    ]
    value = "Value" if len(targets) == 1 else "Value #{}"
    called = {
        value.format(target["refId"]): name for target, name in zip(targets, columns, strict=True)
    }
    hidden = {
        "Time": True,
        **{field: True for field, name in called.items() if name in ("", "About")},
    }
    organized = {
        "excludeByName": hidden,
        "indexByName": {},
        "renameByName": {field: name for field, name in called.items() if field not in hidden},
    }
    panel = _panel("table", title, place, targets, MEMO)
    units = {each.title: each.unit for each in SHOWN.values()} | {
        "Share of GPU time lost": "percentunit"
    }
    unit_of = {name: units.get(name, units.get(name.rpartition(", ")[0])) for name in columns}
    panel["fieldConfig"]["overrides"] = [
        {
            "matcher": {"id": "byName", "options": name},
            "properties": [{"id": "unit", "value": unit}],
        }
        for name, unit in unit_of.items()
        if unit
    ]
    steps = [{"id": "merge", "options": {}}] if len(targets) > 1 else []
    return {
        **panel,
        "options": {"frameIndex": 0, "showHeader": True},
        "transformations": [*steps, {"id": "organize", "options": organized}],
    }


README = """Checkpoint costs in Grafana

dashboard.json   Grafana: Dashboards, New, Import, upload the file; choose the Prometheus data source at the top of the dashboard.
                 Or put it where Grafana's file provisioning reads dashboards.
rules.yaml       Prometheus: name it under rule_files in prometheus.yml and reload. The dashboard does not need the rules.
                 Check them with: promtool check rules rules.yaml

Where the figures come from
  ckptcost export ... --to prometheus    a file for node_exporter's --collector.textfile.directory: what a run has cost so far.
  ckptcost export ... --to openmetrics   history: promtool tsdb create-blocks-from openmetrics metrics.txt DATA, with DATA Prometheus'
                                         storage directory, then restart it. Its retention must reach back to the run (by default it
                                         keeps 15 days); in the dashboard choose the time of the run.

A run's counters are the whole run's. Where several places serve them, or their basis changed, the largest copy counts; none are added.
Energy, cost and carbon are memo items: they are already inside the facility's own meter and bills.
"""
