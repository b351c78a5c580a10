"""A Grafana dashboard, beside Prometheus rules, over the names in `metric_names`. They rest on
names alone: the same for every statement.

A sum is of one family, and location- and market-based carbon are two, so no query adds them. Of a
figure that several places serve, or that changed its basis, the largest copy counts.

Queries use windows that are written out or chosen (`$__range`, `$window`), never one that follows
the screen's width, because a window shorter than the scrape interval shows nothing. The types of
the dashboard are checked against Grafana's own and every query is run on a real Prometheus; how
Grafana draws it is untested.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ckptcost.first.core.units import HOUR_S, KWH_J
from ckptcost.first.exports import metric_names as names
from ckptcost.first.exports.formats import Files
from ckptcost.first.exports.metric_names import Family
from ckptcost.first.report.document import Report

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
Json = dict[str, Any]
SHARE = "Share of GPU time lost"
ABOUT_RUN = (
    "run, run_id, kind, simulated, tier, site, grid_zone, grid_method, method_version,"
    " inventory_treatment"
)
FRAME = """{
"id": null, "uid": "ckptcost", "title": "Checkpoint costs", "tags": ["ckptcost"], "description": "",
"schemaVersion": 42, "version": 1, "editable": true, "graphTooltip": 1, "timezone": "utc",
"refresh": "", "time": {"from": "now-30d", "to": "now"}, "annotations": {"list": []}, "links": [],
"templating": {"list": [
{"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus",
 "refresh": 1, "hide": 0},
{"name": "run", "label": "Run", "type": "query",
 "datasource": {"type": "prometheus", "uid": "${datasource}"},
 "query": {"query": "label_values({__name__=~\\"ckptcost_.+\\"}, run)", "refId": "run"},\
 "refresh": 2,
 "sort": 1, "multi": true, "includeAll": true, "allValue": ".*",
 "current": {"selected": true, "text": ["All"], "value": ["$__all"]}, "hide": 0},
{"name": "window", "label": "Window", "type": "interval", "query": "1h,6h,1d,7d,30d",
 "current": {"selected": true, "text": "1d", "value": "1d"}, "refresh": 0, "hide": 0, "options": [
 {"selected": false, "text": "1h", "value": "1h"}, {"selected": false, "text": "6h", "value": "6h"},
 {"selected": true, "text": "1d", "value": "1d"}, {"selected": false, "text": "7d", "value": "7d"},
 {"selected": false, "text": "30d", "value": "30d"}]}]}
}"""
"""the dashboard without its panels, of Grafana 13"""
OPTIONS = """{
"stat": {"reduceOptions": {"calcs": ["lastNotNull"], "values": false, "fields": ""},
 "orientation": "auto", "textMode": "value_and_name", "colorMode": "none", "graphMode": "none",
 "justifyMode": "auto", "percentChangeColorMode": "standard", "showPercentChange": false,
 "wideLayout": true},
"bargauge": {"reduceOptions": {"calcs": ["lastNotNull"], "values": false, "fields": ""},
 "orientation": "horizontal", "displayMode": "basic", "valueMode": "color",
 "namePlacement": "auto", "sizing": "auto", "showUnfilled": true, "minVizWidth": 8,
 "minVizHeight": 16, "maxVizHeight": 300,
 "legend": {"showLegend": false, "displayMode": "list", "placement": "bottom", "calcs": []}},
"timeseries": {
 "legend": {"showLegend": true, "displayMode": "list", "placement": "bottom", "calcs": []},
 "tooltip": {"mode": "multi", "sort": "desc"}},
"table": {"frameIndex": 0, "showHeader": true}
}"""
"""by kind of panel"""
BARS = """{"drawStyle": "bars", "fillOpacity": 60, "lineWidth": 0,
 "stacking": {"mode": "normal", "group": "A"}}"""
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
ABOUT = """**What checkpoints and failures cost these runs**, beside the same work with no \
checkpoints and no failures.

* Memo items: already inside the facility's own meter and bills. Do not add them to an inventory.
* Location-based carbon = kWh x the grid's average factor, market-based = kWh x the factor of \
the electricity bought: two views of the same
  energy, never to be added. Factors are in the table *Factors*, with sources.
* What is not known is in no sum: see *Not known*. A dash or a gap is never a zero.
* Figures since a run began are right for any scrape interval. Figures *in a window* need \
scrapes while the run lasts, or the history that
  the export `openmetrics` fills in; a finished run's file alone never grows.
"""


CHOSEN, OVER_RANGE, IN_WINDOW = 'run=~"$run"', "last_over_time([$__range])", "increase([$window])"


class ShownCounter(NamedTuple):
    """A counter as people read it."""

    id: str
    title: str
    unit: str
    """Grafana's"""
    family: Family
    divisor: float

    def joined(self, change: str, where: str, by: str) -> str:
        """Its counters after `change`, one copy of each, added up. Saves have no component: the
        label is then empty for all.

        >>> SHOWN["gpu_hours_lost"].joined("rate([1d])", "", "run").split(" / ")[0]
        'sum by (run) (max by (run, run_id, component) (rate(ckptcost_gpu_lost_seconds_total[1d])))'
        """
        series = self.family.sample + (f"{{{where}}}" if where else "")
        total = (
            f"sum by ({by}) (max by (run, run_id, component)"
            f" ({change.replace('([', f'({series}[')}))"
        )
        return self.in_unit(total)

    def in_unit(self, query: str) -> str:
        return query if self.divisor == 1 else f"{query} / {self.divisor:.0f}"


def _shown_counter(id_: str, quantity: str, title: str, unit: str) -> ShownCounter:
    family, scale = names.QUANTITIES[quantity]
    return ShownCounter(id_, title, unit, family, scale)


AMOUNTS = (
    _shown_counter("energy_kwh", "energy", "Energy", "kwatth"),
    _shown_counter("gpu_hours_lost", "gpu_time_lost", "GPU-hours lost", "suffix: GPU-h"),
    _shown_counter("cost_usd", "cost", "Cost", "currencyUSD"),
    _shown_counter(
        "emissions_location_kg",
        "emissions_location",
        "Emissions, location-based",
        "suffix: kgCO2e",
    ),
    _shown_counter(
        "emissions_market_kg", "emissions_market", "Emissions, market-based", "suffix: kgCO2e"
    ),
    _shown_counter("embodied_kg", "embodied", "Embodied carbon", "suffix: kgCO2e"),
)
SAVES = ShownCounter("checkpoints", "Checkpoints", "short", names.CHECKPOINTS, 1.0)
EVERY = (*AMOUNTS, SAVES)
SHOWN = {each.id: each for each in EVERY}
ENERGY = SHOWN["energy_kwh"].family
GPU_SECONDS = SHOWN["gpu_hours_lost"]._replace(divisor=1.0)
RATED = ("emissions_location_kg", "emissions_market_kg")
"""energy times a factor"""


def total(shown: ShownCounter, by: str) -> str:
    return shown.joined(OVER_RANGE, CHOSEN, by)


def per_save(shown: ShownCounter) -> str:
    return f"{total(shown, 'run, run_id')} / ({total(SAVES, 'run, run_id')} > 0)"


def factor(shown: ShownCounter) -> str:
    """gCO2e per kWh as it came out, over the components whose carbon is known."""
    grams = labels(shown.family, "run, run_id, component")
    joules = labels(ENERGY, "run, run_id, component")
    return f"sum by (run) ({grams}) / (sum by (run) ({joules} and {grams}) > 0) * {KWH_J:.0f}"


def bound(shown: ShownCounter, end: Literal["low", "high"]) -> str:
    return shown.in_unit(labels(names.bound(shown.family, end, "run"), "run, run_id"))


def share() -> str:
    lost = total(GPU_SECONDS, "run, run_id")
    gpus, length = (labels(each, "run, run_id") for each in (names.ACCELERATORS, names.RUN_LENGTH))
    return f"{lost} / ({gpus} * {length} > 0)"


def labels(family: Family, by: str) -> str:
    return f"max by ({by}) (last_over_time({family.sample}{{{CHOSEN}}}[$__range]))"


def export(document: Report) -> Files:
    return {
        "dashboard.json": [json.dumps(dashboard(), indent=2) + "\n"],
        "rules.yaml": rules(),
        "README.txt": [README],
    }


def dashboard() -> Json:
    frame: Json = json.loads(FRAME)
    panels = [{"id": at, **panel} for at, panel in enumerate(_panels(), 1)]
    return {**frame, "description": MEMO, "panels": panels}


def _panels() -> Iterator[Json]:
    about = {"options": {"mode": "markdown", "content": ABOUT}}
    yield _panel("text", "", (0, 0, 24, 6), []) | about
    energy, gpu_hours, cost, *carbon = AMOUNTS
    for at, each in enumerate((energy, gpu_hours, cost, SAVES)):
        yield _stat(each, (6 * at, 6, 6, 4))
    for at, each in enumerate(carbon):
        yield _stat(each, (8 * at, 10, 8, 5))
    of_runs = {each.title: total(each, "run, run_id") for each in EVERY}
    columns = {"About": labels(names.STATEMENT, ABOUT_RUN), **of_runs, SHARE: share()}
    yield _table("Runs", (0, 15, 24, 7), columns)
    yield _table("Per checkpoint", (0, 22, 12, 7), {each.title: per_save(each) for each in AMOUNTS})
    unknown = labels(names.UNKNOWN, "run, run_id, component, quantity")
    yield _table("Not known, and in no sum", (12, 22, 12, 7), {"": unknown})
    for at, each in enumerate((energy, gpu_hours, cost)):
        yield _bars(each, (8 * at, 29, 8, 8))
    for at, each in enumerate(AMOUNTS):
        yield _over_time(each, (12 * (at % 2), 37 + 8 * (at // 2), 12, 8))
    ends: tuple[Literal["low", "high"], ...] = ("low", "high")
    ranges = {f"{each.title}, {end}": bound(each, end) for each in AMOUNTS for end in ends}
    yield _table("Ranges of the runs' sums", (0, 61, 24, 7), ranges)
    by = "run, run_id, factor, text, unit, origin, set_by, source, licence"
    yield _table("Factors", (0, 68, 24, 10), {"Value in base units": labels(names.FACTOR, by)})


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
    made["fieldConfig"] = {"defaults": {"noValue": "not known", **defaults}, "overrides": []}
    options = json.loads(OPTIONS).get(kind)
    return made | ({"options": options} if options else {})


def _target(
    ref: str, expr: str, legend: str = "", shape: str = "time_series", step: str = ""
) -> Json:
    target = {
        "refId": ref,
        "datasource": SOURCE,
        "editorMode": "code",
        "expr": expr,
        "format": shape,
        "legendFormat": legend or "__auto",
        "instant": not step,
        "range": bool(step),
    }
    return target | ({"interval": step} if step else {})


def _override(matcher: str, name: str, unit: str) -> Json:
    return {
        "matcher": {"id": matcher, "options": name},
        "properties": [{"id": "unit", "value": unit}],
    }


def _stat(shown: ShownCounter, place: Sequence[int]) -> Json:
    targets = [_target("A", total(shown, "run"), "{{run}}")]
    why = " ".join(each for each in (WHY.get(shown.id, ""), MEMO) if each)
    panel = _panel("stat", shown.title, place, targets, why, unit=shown.unit)
    if shown.id in RATED:
        targets.append(_target("B", factor(shown), "factor of {{run}}"))
        rate = _override("byFrameRefID", "B", "suffix: gCO2e/kWh")
        panel["fieldConfig"]["overrides"].append(rate)
    return panel


def _bars(shown: ShownCounter, place: Sequence[int]) -> Json:
    target = _target("A", total(shown, "run, component"), "{{run}}: {{component}}")
    title = f"{shown.title}, by component"
    return _panel("bargauge", title, place, [target], MEMO, unit=shown.unit, min=0)


def _over_time(shown: ShownCounter, place: Sequence[int]) -> Json:
    query = shown.joined(IN_WINDOW, CHOSEN, "run, component")
    target = _target("A", query, "{{run}}: {{component}}", step="$window")
    title, bars = f"{shown.title} in the $window before", json.loads(BARS)
    why = WHY.get(shown.id, "")
    return _panel("timeseries", title, place, [target], why, unit=shown.unit, custom=bars)


def _table(title: str, place: Sequence[int], columns: Mapping[str, str]) -> Json:
    """One query a column; Grafana joins them where their labels agree, and hides what is only a 1
    beside labels."""
    targets = [
        _target(chr(ord("A") + at), expr, shape="table") for at, expr in enumerate(columns.values())
    ]
    several = len(targets) > 1
    fields = [f"Value #{each['refId']}" if several else "Value" for each in targets]
    called = dict(zip(fields, columns, strict=True))
    hidden = {field: True for field, name in called.items() if name in ("", "About")}
    organized = {
        "excludeByName": {"Time": True, **hidden},
        "indexByName": {},
        "renameByName": {field: name for field, name in called.items() if field not in hidden},
    }
    panel = _panel("table", title, place, targets, MEMO)
    units = {each.title: each.unit for each in EVERY} | {SHARE: "percentunit"}
    panel["fieldConfig"]["overrides"] += [
        _override("byName", name, unit)
        for name in columns
        if (unit := units.get(name) or units.get(name.rpartition(", ")[0]))
    ]
    merge = [{"id": "merge", "options": {}}] if several else []
    return {
        **panel,
        "transformations": [*merge, {"id": "organize", "options": organized}],
    }


def rules() -> Iterator[str]:
    """The rules file. JSON's quoting is YAML's too, so only the outline is YAML's own."""
    units = (
        f"kWh = joules / {KWH_J:.0f}, GPU-hours = seconds / {HOUR_S:.0f}, kg = grams /"
        f" {names.KG_G:.0f}"
    )
    yield f"# {units}. Location- and market-based carbon: never add the two.\n"
    yield (
        "# An interval below Prometheus' look-back of 5 minutes, or the recorded lines would have"
        " gaps.\n"
    )
    yield "groups:\n"
    for name, of_group in _groups():
        yield f"  - name: {name}\n    interval: 4m\n    rules:\n"
        for rule in of_group:
            for at, (key, value) in enumerate(rule.items()):
                yield f"      {'-' if at == 0 else ' '} {key}: {json.dumps(value)}\n"


def _groups() -> Iterator[tuple[str, list[Json]]]:
    """A day's window outlives any sensible scrape interval."""
    run, part = "run, run_id", "run, run_id, component"

    def recorded(of: ShownCounter, level: str, by: str, window: str, change: str) -> Json:
        record = f"{level}:ckptcost_{of.id}:{change.removesuffix('_over_time')}{window}"
        return {"record": record, "expr": of.joined(f"{change}([{window}])", "", by)}

    now = "1d", "last_over_time"
    yield (
        "ckptcost_since_run_began",
        [
            *(recorded(each, "run_component", part, *now) for each in AMOUNTS),
            *(recorded(each, "run", run, *now) for each in EVERY),
        ],
    )
    windows = ("1d", "7d", "30d")
    grown = [recorded(each, "run", run, days, "increase") for days in windows for each in EVERY]
    yield "ckptcost_in_windows", grown
    lost = SHOWN["gpu_hours_lost"].joined("increase([1d])", "", run)
    gpus = f"(max by ({run}) (last_over_time({names.ACCELERATORS.sample}[1d])) * 24)"
    alert = {
        "alert": "CkptcostGpuTimeLost",
        "expr": f"{lost} / {gpus} > 0.1",
        "for": "1h",
        "labels": {"severity": "warning"},
        "annotations": {
            "summary": (
                "{{ $labels.run }} lost {{ $value | humanizePercentage }} of a day's GPU time to"
                " checkpoints and failures"
            ),
            "description": (
                "More than a tenth. See the dashboard 'Checkpoint costs' for the components; change"
                " the share to suit."
            ),
        },
    }
    yield "ckptcost_alerts", [alert]


README = """Checkpoint costs in Grafana

dashboard.json   Grafana: Dashboards, New, Import, upload the file; choose the Prometheus data \
source at the top of the dashboard.
                 Or put it where Grafana's file provisioning reads dashboards.
rules.yaml       Prometheus: name it under rule_files in prometheus.yml and reload. \
The dashboard does not need the rules.
                 Check them with: promtool check rules rules.yaml

Where the figures come from
  ckptcost export ... --to prometheus    a file for node_exporter's \
--collector.textfile.directory: what a run has cost so far.
  ckptcost export ... --to openmetrics   history: promtool tsdb create-blocks-from openmetrics \
metrics.txt DATA, with DATA Prometheus'
                                         storage directory, then restart it. Its retention \
must reach back to the run (by default it
                                         keeps 15 days); in the dashboard \
choose the time of the run.

A run's counters are the whole run's. Where several places serve them, or their basis changed, \
the largest copy counts; none are added.
Energy, cost and carbon are memo items: they are already inside the facility's own meter and bills.
"""
