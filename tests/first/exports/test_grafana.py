"""The dashboard fits Grafana's types, and every query of it and of the rules finds our figures in a
real Prometheus."""

from __future__ import annotations

import json
import math
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_tools import Prometheus, consumer, program, prometheus_with, samples
from statements import START, document, export_text, seconds, statement

from ckptcost.first.exports import grafana
from ckptcost.first.exports.formats import exported
from ckptcost.first.exports.grafana import SHOWN
from ckptcost.first.report.document import Report

WHOLE = {
    "Energy": "energy",
    "GPU-hours lost": "gpu_time_lost",
    "Cost": "cost",
    "Emissions, location-based": "emissions_location",
    "Emissions, market-based": "emissions_market",
    "Embodied carbon": "embodied",
    "Checkpoints": "checkpoints",
}
RECORDED = {
    "energy_kwh": "energy",
    "gpu_hours_lost": "gpu_time_lost",
    "cost_usd": "cost",
    "emissions_location_kg": "emissions_location",
    "emissions_market_kg": "emissions_market",
    "embodied_kg": "embodied",
    "checkpoints": "checkpoints",
}


def files(wanted: Report | None = None) -> dict[str, str]:
    return {
        name: "".join(pieces) for name, pieces in exported(wanted or document(), "grafana").items()
    }  # type: ignore[arg-type]


def board() -> dict[str, Any]:
    return json.loads(files()["dashboard.json"])


def panels() -> list[dict[str, Any]]:
    return board()["panels"]


def rules() -> dict[str, str]:
    """By name: the expression. JSON's quoting is YAML's too."""
    found = re.findall(
        r'^      - (?:record|alert): (".*")\n +expr: (".*")$', files()["rules.yaml"], re.M
    )
    return {json.loads(name): json.loads(expr) for name, expr in found}


def test_the_same_for_every_statement():
    assert files(document(statement(run_id="other", dated=False, grid=None))) == files()
    assert set(files()) == {"dashboard.json", "rules.yaml", "README.txt"}


def test_panels_lie_beside_each_other():
    taken = [
        (x, y)
        for each in panels()
        for x in range(each["gridPos"]["x"], each["gridPos"]["x"] + each["gridPos"]["w"])
        for y in range(each["gridPos"]["y"], each["gridPos"]["y"] + each["gridPos"]["h"])
    ]
    assert len(taken) == len(set(taken))
    assert max(x for x, _ in taken) == 23
    assert [each["id"] for each in panels()] == list(range(1, len(panels()) + 1))


def test_carbon_panels_name_their_factor():
    texts = {each["title"]: each["description"] for each in panels()}
    assert "site.grid_location" in texts["Emissions, location-based"]
    assert "site.grid_market" in texts["Emissions, market-based"]
    assert "memo item" in texts["Energy"]


def test_location_and_market_are_never_together():
    exprs = [target["expr"] for each in panels() for target in each.get("targets", ())] + list(
        rules().values()
    )
    asked = [
        set(re.findall(r"ckptcost_(?:run_)?emissions_(location|market)_", expr)) for expr in exprs
    ]
    assert {frozenset(each) for each in asked} == {
        frozenset(),
        frozenset({"location"}),
        frozenset({"market"}),
    }
    assert all(
        each or not re.search(r"(?<!embodied_)emissions_", expr)
        for expr, each in zip(exprs, asked, strict=True)
    )


def test_every_name_is_one_that_is_written():
    """Rules of a name that nobody writes are silent."""
    (text,) = exported(document(), "prometheus").values()
    known = {name for name, _ in samples("".join(text))}  # type: ignore[arg-type]
    exprs = [target["expr"] for each in panels() for target in each.get("targets", ())] + list(
        rules().values()
    )
    assert {name for expr in exprs for name in re.findall(r"ckptcost_\w+", expr)} <= known


TYPES = """
import type { Dashboard, DataSourceRef, FieldConfigSource, GraphFieldConfig, Panel } from '@grafana/schema';
import type { Options as BarGauge } from '@grafana/schema/dist/esm/raw/composable/bargauge/panelcfg/x/BarGaugePanelCfg_types.gen';
import type { Options as Stat } from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen';
import type { Options as Table } from '@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen';
import type { Options as Text } from '@grafana/schema/dist/esm/raw/composable/text/panelcfg/x/TextPanelCfg_types.gen';
import type { Options as TimeSeries } from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';

// enums as the text that JSON has for them
type Plain<T> = T extends string ? `${T}` : T extends number | boolean | null | undefined ? T
  : T extends Array<infer U> ? Plain<U>[] : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
interface Query {
  refId: string; expr: string; datasource: DataSourceRef; editorMode: 'code' | 'builder'; format: 'time_series' | 'table' | 'heatmap';
  legendFormat: string; instant: boolean; range: boolean; interval?: string;
}
type One<Kind extends string, Options, Custom = Record<string, unknown>> =
  Omit<Plain<Panel>, 'type' | 'options' | 'targets' | 'fieldConfig'>
  & { type: Kind; options: Plain<Options>; targets?: Query[]; fieldConfig: Plain<FieldConfigSource<Custom>> };
type Ours = One<'text', Text> | One<'stat', Stat> | One<'bargauge', BarGauge> | One<'timeseries', TimeSeries, GraphFieldConfig>
  | One<'table', Table>;
type Board = Omit<Plain<Dashboard>, 'panels'> & { panels: Ours[] };
export const board: Board = """
MISTAKES = {
    "width": ('"w": 24', '"w": "24"'),
    "orientation": ('"orientation": "auto"', '"orientation": "sideways"'),
    "refresh": ('"refresh": 2', '"refresh": 9'),
    "key": ('"uid": "ckptcost"', '"uid": "ckptcost", "nonsense": 1'),
    "style": ('"drawStyle": "bars"', '"drawStyle": "bar"'),
    "option": ('"justifyMode"', '"justifyMod"'),
    "transformation": ('"id": "merge"', '"idd": "merge"'),
    "version": ('"schemaVersion": 42', '"schemaVersion": "42"'),
    "kind": ('"type": "bargauge"', '"type": "bargraph"'),
    "query": ('"format": "table"', '"format": "tables"'),
}
"""what Grafana's types must refuse, or they prove nothing"""


def test_grafanas_types(tmp_path):
    modules = consumer("node/node_modules")
    (tmp_path / "node_modules").symlink_to(modules)
    text = files()["dashboard.json"]
    boards = {"good": text, **{name: text.replace(*mistake) for name, mistake in MISTAKES.items()}}
    for name, each in boards.items():
        assert name == "good" or each != text
        (tmp_path / f"{name}.ts").write_text(f"{TYPES}{each};\n")
    options = {
        "strict": True,
        "noEmit": True,
        "module": "nodenext",
        "target": "es2022",
        "skipLibCheck": True,
        "types": [],
    }
    (tmp_path / "tsconfig.json").write_text(
        json.dumps({"compilerOptions": options, "files": [f"{name}.ts" for name in boards]})
    )
    command = [program("node"), str(modules / "typescript/bin/tsc"), "-p", "tsconfig.json"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=240
    )
    refused = {
        line.partition(".ts(")[0] for line in done.stdout.splitlines() if not line.startswith(" ")
    }
    assert refused == set(MISTAKES), done.stdout


def test_its_version_is_grafanas_newest():
    schema = (
        consumer("node/node_modules") / "@grafana/schema/dist/esm/raw/dashboard/x/types.gen.mjs"
    )
    found = re.search(r"schemaVersion: (\d+)", schema.read_text())
    assert found
    assert board()["schemaVersion"] == int(found[1])


@pytest.fixture(scope="module")
def sample() -> Report:
    simulated = statement(
        name="b.2 (new)", run_id="b", begin=START + 4000.25, rows=28, kind="measured"
    ).model_copy(update={"simulated": True})
    return document(statement(rows=30), simulated)


@pytest.fixture(scope="module")
def prometheus(sample: Report, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    (text,) = exported(sample, "openmetrics").values()
    with prometheus_with("".join(text), tmp_path_factory.mktemp("prometheus")) as running:  # type: ignore[arg-type]
        yield running


BEGIN, END = START, START + 31 * 3600.0


def filled(expr: str, run: str = ".*", window: str = "1d") -> str:
    """As Grafana does: a chosen run's special characters escaped for a regular expression in a
    string, All as its `allValue`."""
    chosen = run if run == ".*" else re.sub(r"[\\^$*+?.()|{}\[\]]", r"\\\\\g<0>", run)
    for name, value in (("$__range", f"{END - BEGIN:.0f}s"), ("$window", window), ("$run", chosen)):
        expr = expr.replace(name, value)
    assert "$" not in expr, expr
    return expr


def answered(
    prometheus: Prometheus, target: dict[str, Any], run: str = ".*"
) -> list[dict[str, Any]]:
    if target["instant"]:
        return prometheus.query(filled(target["expr"], run), END)
    return prometheus.query_range(filled(target["expr"], run), BEGIN, END, 3600.0)


@pytest.mark.parametrize("run", [".*", "b.2 (new)"])
def test_every_panel_has_data(prometheus, run):
    targets = [(each["title"], target) for each in panels() for target in each.get("targets", ())]
    assert len(targets) > 40
    assert [
        (title, target["expr"])
        for title, target in targets
        if not answered(prometheus, target, run)
    ] == []


def test_the_list_of_runs(prometheus, sample):
    query = next(each for each in board()["templating"]["list"] if each["name"] == "run")["query"][
        "query"
    ]
    match = re.fullmatch(r"label_values\((.*), (\w+)\)", query)
    assert match
    found = prometheus.label_values(match[2], match[1], BEGIN, END)
    assert set(found) == {run.subject.name for run in sample.statements}


def columns(title: str) -> dict[str, dict[str, Any]]:
    """A table's targets by what the column is called in the end."""
    panel = next(each for each in panels() if each["title"] == title)
    (organized,) = (
        each["options"] for each in panel["transformations"] if each["id"] == "organize"
    )
    return {
        organized["renameByName"].get(f"Value #{each['refId']}", ""): each
        for each in panel["targets"]
    }


def check(prometheus: Prometheus, sample: Report, table: dict[str, dict[str, Any]]) -> None:
    """Raises unless the table of runs has each run's sums, in the statement's units."""
    for title, what in WHOLE.items():
        found = {
            each["metric"]["run_id"]: float(each["value"][1])
            for each in answered(prometheus, table[title])
        }
        for run in sample.statements:
            assert math.isclose(
                found[run.subject.run_id], getattr(run.totals, what).value, rel_tol=1e-9
            ), title


def test_the_table_of_runs(prometheus, sample):
    check(prometheus, sample, columns("Runs"))


@pytest.mark.parametrize(
    "slip",
    [("3600000", "3600"), ("location", "market"), ("ckptcost_cost_usd_total", "ckptcost_cost_usd")],
)
def test_a_slip_is_seen(prometheus, sample, slip):
    with pytest.raises((AssertionError, KeyError)):
        check(prometheus, sample, json.loads(json.dumps(columns("Runs")).replace(*slip)))


def test_figures_of_a_save_and_the_factor(prometheus, sample):
    run = sample.statements[0]
    found = {
        title: float(answered(prometheus, target)[0]["value"][1])
        for title, target in columns("Per checkpoint").items()
        if title
    }
    assert math.isclose(
        found["Energy"], run.totals.energy.value / run.totals.checkpoints.value, rel_tol=1e-9
    )
    market = next(each for each in panels() if each["title"] == "Emissions, market-based")
    factors = [float(each["value"][1]) for each in answered(prometheus, market["targets"][1])]
    assert factors == pytest.approx([120.0, 120.0], rel=1e-9)


def test_windows_add_up(prometheus, sample):
    """Bars of a chosen window, side by side, are what the run cost."""
    run = sample.statements[0]
    panel = next(each for each in panels() if each["title"].startswith("Energy in the"))
    expr = filled(panel["targets"][0]["expr"], window="6h")
    bars = prometheus.query_range(expr, BEGIN + 6 * 3600, BEGIN + 36 * 3600, 6 * 3600.0)
    mine = [
        float(value)
        for each in bars
        if each["metric"]["run"] == run.subject.name
        for _, value in each["values"]
    ]
    assert math.fsum(mine) == pytest.approx(
        run.totals.energy.value, rel=0.05
    )  # Prometheus extrapolates to a window's ends


def test_every_rule_has_data(prometheus, sample):
    assert len(rules()) == 35
    end = seconds(sample.statements[0].period_end)
    for name, expr in rules().items():
        found = prometheus.query(expr.removesuffix(" > 0.1"), end)
        assert found, name
        _, metric, change = name.split(":") if ":" in name else ("", "", "")
        if change in {"last1d", "increase30d"}:
            value = math.fsum(
                float(each["value"][1]) for each in found if each["metric"]["run_id"] != "b"
            )
            what = RECORDED[metric.removeprefix("ckptcost_")]
            most = 1e-9 if change == "last1d" else 0.05
            assert value == pytest.approx(
                getattr(sample.statements[0].totals, what).value, rel=most
            ), name


def promtool(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program("promtool"), *args],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_promtool_checks_the_rules(tmp_path):
    text = files()["rules.yaml"]
    (tmp_path / "rules.yaml").write_text(text)
    done = promtool("check", "rules", "rules.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "SUCCESS: 35 rules found" in done.stdout
    (tmp_path / "broken.yaml").write_text(
        text.replace("sum by (run, run_id) (", "sum by (run, run_id) ((", 1)
    )
    assert promtool("check", "rules", "broken.yaml", cwd=tmp_path).returncode != 0


WHO = 'run="r",run_id="1",component="c"'


def scenario(lost_per_hour: int, kwh: float = 24.0) -> dict[str, Any]:
    """Two days scraped hourly, far apart for any rate window, from two places with the same
    figures; 10 GPUs."""
    series = {
        f'ckptcost_energy_joules_total{{{WHO},basis="measured",instance="x"}}': "0+3600000x48",
        f'ckptcost_energy_joules_total{{{WHO},basis="measured",instance="y"}}': "0+3600000x48",
        f'ckptcost_gpu_lost_seconds_total{{{WHO},basis="measured"}}': (
            f"0+{lost_per_hour * 3600}x48"
        ),
        'ckptcost_run_accelerators{run="r",run_id="1"}': "10x48",
    }
    exact = {
        "run:ckptcost_energy_kwh:last1d": 48.0,
        "run:ckptcost_energy_kwh:increase1d": kwh,
        "run_component:ckptcost_energy_kwh:last1d": 48.0,
    }
    tests = [
        {
            "expr": name,
            "eval_time": "48h",
            "exp_samples": [
                {
                    "labels": f"{name}{{{WHO if 'component' in name else WHO.rpartition(',')[0]}}}",
                    "value": value,
                }
            ],
        }
        for name, value in exact.items()
    ]
    fired = {
        "exp_labels": {"run": "r", "run_id": "1", "severity": "warning"},
        "exp_annotations": {
            "summary": "r lost 20% of a day's GPU time to checkpoints and failures",
            "description": (
                "More than a tenth. See the dashboard 'Checkpoint costs' for the components; change"
                " the share to suit."
            ),
        },
    }
    alert = {
        "eval_time": "48h",
        "alertname": "CkptcostGpuTimeLost",
        "exp_alerts": [fired] if lost_per_hour == 2 else [],
    }
    inputs = [{"series": name, "values": values} for name, values in series.items()]
    one = {
        "interval": "1h",
        "input_series": inputs,
        "promql_expr_test": tests,
        "alert_rule_test": [alert],
    }
    return {"rule_files": ["rules.yaml"], "evaluation_interval": "4m", "tests": [one]}


@pytest.mark.parametrize(
    ("case", "fits"), [(scenario(0), True), (scenario(2), True), (scenario(2, kwh=23.0), False)]
)
def test_rules_with_hourly_scrapes_from_two_places(tmp_path, case, fits):
    (tmp_path / "rules.yaml").write_text(files()["rules.yaml"])
    (tmp_path / "tests.yaml").write_text(json.dumps(case))
    done = promtool("test", "rules", "tests.yaml", cwd=tmp_path)
    assert (done.returncode == 0) == fits, done.stdout + done.stderr


def test_no_panel_has_a_figure_of_what_nobody_knows(tmp_path):
    """An unmetered run: a slowdown that is known to be 0, beside waiting that nobody metered."""
    made = statement(
        (None, None, 0.0, None, None),
        gpu_hours=(None, None, 0.0, None, None),
        costs=(None, None, 0.0, None, None),
        rows=30,
        kind="measured",
    )
    totals = made.totals.model_copy(
        update={
            what: getattr(made.totals, what).model_copy(update={"value": None})
            for what in WHOLE.values()
            if what != "checkpoints"
        }
    )
    (text,) = exported(document(made.model_copy(update={"totals": totals})), "openmetrics").values()
    with prometheus_with("".join(text), tmp_path) as running:
        told = {
            target["expr"]
            for each in panels()
            for target in each.get("targets", ())
            if answered(running, target)
        }
    counted = {name for name in told if "checkpoints" not in name}
    about = ("ckptcost_statement_info", "ckptcost_component_unknown", "ckptcost_factor{")
    assert [expr for expr in counted if not any(name in expr for name in about)] == []
    assert len(counted) == len(about)


def test_queries_spelled_out():
    gpu = grafana.total(SHOWN["gpu_hours_lost"], "run, run_id")
    assert gpu.endswith(" / 3600")
    assert " / 3600" not in grafana.share()  # GPU-seconds over the run's seconds
    assert grafana.per_save(SHOWN["cost_usd"]).endswith(" > 0)")
    assert grafana.bound(SHOWN["energy_kwh"], "low").endswith(" / 3600000")
    assert "ckptcost_run_energy_low_joules{" in grafana.bound(SHOWN["energy_kwh"], "low")
    assert "/" not in grafana.bound(SHOWN["cost_usd"], "high")
    assert re.match(r"sum by \(run\) \(max by ", grafana.factor(SHOWN["emissions_market_kg"]))
    assert "ckptcost_emissions_market_grams_total" in grafana.factor(SHOWN["emissions_market_kg"])
    assert grafana.factor(SHOWN["emissions_market_kg"]).endswith(" * 3600000")


def test_the_alert_is_a_share_of_a_days_gpu_hours():
    rules = export_text(statement(), "grafana", "rules.yaml")
    assert "[1d])) * 24) > 0.1" in rules
    assert "/ 3600 / (max by" in rules


def test_columns_that_are_only_ones_are_hidden():
    board = json.loads(export_text(statement(), "grafana", "dashboard.json"))
    runs = next(p for p in board["panels"] if p["title"] == "Runs")
    organize = runs["transformations"][-1]["options"]
    assert organize["excludeByName"] == {"Time": True, "Value #A": True}
    assert organize["renameByName"]["Value #B"] == "Energy"


def test_rules_of_runs_have_no_component():
    rules = export_text(statement(), "grafana", "rules.yaml")
    for name, expr in re.findall(r'record: "(run(?:_component)?):[^"]*"\n +expr: "([^"]*)"', rules):
        assert expr.startswith(
            "sum by (run, run_id, component) "
            if name == "run_component"
            else "sum by (run, run_id) "
        ), expr


def test_the_dashboards_words_for_what_is_not_known_and_its_units():
    board = json.loads(export_text(statement(), "grafana", "dashboard.json"))
    assert {p["fieldConfig"]["defaults"]["noValue"] for p in board["panels"]} == {"not known"}
    runs = next(p for p in board["panels"] if p["title"] == "Runs")
    units = {
        o["matcher"]["options"]: o["properties"][0]["value"]
        for o in runs["fieldConfig"]["overrides"]
    }
    assert units["Share of GPU time lost"] == "percentunit"
    assert units["Emissions, market-based"] == "suffix: kgCO2e"


def test_a_mean_factor_is_over_energy_whose_carbon_is_known():
    assert re.search(
        r"/ \(sum by \(run\) \(.* and .*ckptcost_emissions_location_grams_total.*\) > 0\)",
        grafana.factor(SHOWN["emissions_location_kg"]),
    )


def test_rules_are_evaluated_within_the_look_back_of_prometheus():
    rules = export_text(statement(), "grafana", "rules.yaml")
    for minutes in re.findall(r"interval: (\d+)m", rules):
        assert int(minutes) < 5
    assert re.findall(r"interval: (\d+)m", rules)
