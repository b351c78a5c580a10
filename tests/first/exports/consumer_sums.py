"""What each reader makes of an export when it adds it up itself, beside our own sum: six sources in
every format. The table of `docs/howto/export.md` is made here, and a test keeps it true."""

from __future__ import annotations

import functools
import io
import json
import math
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from prometheus_tools import CONSUMERS, consumer, prometheus_with, serving
from prometheus_tools import get as fetched
from prometheus_tools import program as installed

from ckptcost.first.exports import grafana

ROOT = Path(__file__).parents[3]
TRACES = ROOT / "data" / "traces"
QUANTITIES = ("energy", "emissions_location", "cost")
"""kWh, kgCO2e, USD"""
Sums = dict[str, float | None]
SET = ("--set", "site.grid_market=120 g/kWh")
PLACED = (
    *("--site", "usa", *SET, "--set", "cluster.gpu_price=3 USD/GPU-h"),
    *("--set", "cluster.price_includes_electricity=false"),
)
BEGIN = ("--start", "2026-09-01T00:20Z")
SOURCES: Mapping[str, tuple[tuple[tuple[str, ...], ...], str, tuple[str, ...]]] = {
    "model of three tiers, `--case`": (
        (
            ("model", "-s", "small-8b", *SET, "-o", "model.json", "-f", "json")
            + ("--tier", "nas-hdd", "--tier", "flash-shared", "--tier", "micron-local"),
        ),
        "model.json",
        (*BEGIN, "--case", "flash-shared"),
    ),
    "simulation": (
        (("simulate", "-s", "small-8b", "--runs", "60", *SET, "-f", "json", "-o", "sim.json"),),
        "sim.json",
        BEGIN,
    ),
    "recorded run": ((), str(TRACES / "simulated-8gpu.jsonl"), PLACED),
    "fleet of 8 jobs": (
        (
            ("fleet", "synthesize", "12", "2", "demo", "--seed", "7", "--saves-per-day", "12"),
            ("fleet", "demo", *PLACED, "-f", "json", "-o", "fleet.json"),
        ),
        "fleet.json",
        (),
    ),
    "unmetered run": ((), str(TRACES / "ext4-fsync.jsonl"), PLACED),
    "comparison, `--case B`": (
        (("compare", "-s", "small-8b", "--with", "tier.id=nas-hdd", "-f", "json", "-o", "c.json"),),
        "c.json",
        (*BEGIN, "--case", "B"),
    ),
}


def _sum(values: Any) -> float | None:
    known = [float(value) for value in values if value not in (None, "")]
    return math.fsum(known) if known else None


def ours(statement: Mapping[str, Any]) -> Sums:
    return {
        what: _sum(s["totals"][what]["value"] for s in statement["statements"])
        for what in QUANTITIES
    }


def _python(code: str, folder: Path) -> Any:
    """What a program in the consumers' own environment prints."""
    done = subprocess.run(
        [str(consumer("py/bin/python")), "-c", code],
        cwd=folder,
        env={**os.environ, "HOME": str(folder), "MPLCONFIGDIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1])


def _rows(*sums: float | None) -> Sums:
    return {
        what: None if value is None or value != value else value
        for what, value in zip(QUANTITIES, sums, strict=False)
    }


def by_frictionless(folder: Path) -> Sums:
    return _rows(
        *_python(
            "import json; from frictionless import Package\n"
            "rows = Package('datapackage.json').get_resource('components').read_rows()\n"
            "def s(n):\n known = [float(r[n]) for r in rows if r['ledger'] == 'marginal' and r[n] is not None]\n"
            " return sum(known) if known else None\n"
            "print(json.dumps([s('energy_kwh'), s('emissions_location_kgco2e'), s('cost_usd')]))",
            folder,
        )
    )


def by_duckdb(folder: Path) -> Sums:
    return _rows(
        *_python(
            'import duckdb, json; print(json.dumps(duckdb.sql("select sum(energy_kwh),'
            " sum(emissions_location_kgco2e), sum(cost_usd) from 'components.parquet'"
            " where ledger = 'marginal'\").fetchall()[0]))",
            folder,
        )
    )


def by_duckdb_of_focus(folder: Path) -> Sums:
    return _rows(
        *_python(
            'import duckdb, json; print(json.dumps(duckdb.sql("select sum(x_EnergyKwh::double),'
            " sum(x_EmissionsLocationKgCO2e::double), sum(BilledCost::double)"
            " from read_csv('focus.csv', all_varchar=true)\").fetchall()[0]))",
            folder,
        )
    )


def by_pandas_of_codecarbon(folder: Path) -> Sums:
    return _rows(
        *_python(
            "import json, pandas; d = pandas.read_csv('emissions.csv')\n"
            "print(json.dumps([d.energy_consumed.sum(), d.emissions.sum()]))",
            folder,
        )
    )


def by_opentelemetry(folder: Path) -> Sums:
    found = _python(
        "import json\nfrom google.protobuf.json_format import Parse\n"
        "from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import"
        " ExportMetricsServiceRequest as R\nlast = {}\n"
        "for line in open('metrics.jsonl'):\n"
        " for r in Parse(line, R()).resource_metrics:\n"
        "  for m in r.scope_metrics[0].metrics:\n"
        "   for p in m.sum.data_points:\n"
        "    last[m.name, str(r.resource), str(p.attributes)] = p.as_double\n"
        "s = {}\n"
        "for (name, *_), v in last.items(): s[name] = s.get(name, 0.0) + v\n"
        "print(json.dumps(s))",
        folder,
    )
    scales = (("energy", 3.6e6), ("emissions.location", 1e3), ("cost", 1.0))
    return _rows(*(found.get(f"ckptcost.{name}", math.nan) / scale for name, scale in scales))


def by_if_run(folder: Path) -> Sums:
    tool = consumer("node/node_modules/.bin/if-run")
    subprocess.run(
        [str(tool), "-m", "manifest.yaml", "-o", "out.yaml"],
        cwd=folder,
        capture_output=True,
        check=True,
        timeout=120,
    )
    load = (
        "const y=require('js-yaml');console.log(JSON.stringify(y.load(require('fs')"
        ".readFileSync('out.yaml','utf8'))))"
    )
    done = subprocess.run(
        [installed("node"), "-e", load],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "NODE_PATH": str(CONSUMERS / "node" / "node_modules")},
    )
    told = json.loads(done.stdout)
    assert told["execution"]["status"] == "success", told["execution"]
    whole = told["tree"]["aggregated"]
    return _rows(whole["energy"], whole["carbon-operational"] / 1e3)


FAMILIES = (
    ("ckptcost_energy_joules_total", 3.6e6),
    ("ckptcost_emissions_location_grams_total", 1e3),
    ("ckptcost_cost_usd_total", 1.0),
)


def by_node_exporter(folder: Path) -> Sums:
    command = [
        installed("prometheus-node-exporter"),
        "--web.listen-address=127.0.0.1:{port}",
        "--collector.disable-defaults",
        "--collector.textfile",
        f"--collector.textfile.directory={folder}",
        "--web.disable-exporter-metrics",
    ]
    with serving(command, "/") as url:
        lines = fetched(f"{url}/metrics").splitlines()
    found = []
    for name, scale in FAMILIES:
        of = _sum(line.rpartition(" ")[2] for line in lines if line.startswith(name + "{"))
        found.append(None if of is None else of / scale)
    return _rows(*found)


AT, RANGE = 1830000000.0, "1200d"
PANELS = ("energy_kwh", "emissions_location_kg", "cost_usd")
QUERIES = (
    *(f"sum(max_over_time({name}[{RANGE}])) / {scale}" for name, scale in FAMILIES),
    *(
        grafana.total(grafana.SHOWN[each], "run").replace("$__range", RANGE).replace("$run", ".*")
        for each in PANELS
    ),
)


@functools.lru_cache(maxsize=len(SOURCES))
def _asked(text: str) -> list[float | None]:
    """One server answers for Prometheus and for the dashboard, whose queries it runs."""
    with (
        tempfile.TemporaryDirectory() as folder,
        prometheus_with(text, Path(folder), "240h") as server,
    ):
        return [_sum(each["value"][1] for each in server.query(q, AT)) for q in QUERIES]


def by_prometheus(folder: Path) -> Sums:
    return _rows(*_asked((folder / "metrics.txt").read_text("utf-8"))[:3])


def by_panels(folder: Path) -> Sums:
    return _rows(*_asked((folder / "metrics.txt").read_text("utf-8"))[3:])


def by_json_of_statement(folder: Path) -> Sums:
    return ours(json.loads((folder / "statement.json").read_text("utf-8")))


def by_json_of_boamps(folder: Path) -> Sums:
    told = json.loads((folder / "boamps.json").read_text("utf-8"))
    return _rows(told["measures"][0]["powerConsumption"])


def by_json_of_benchmark(folder: Path) -> Sums:
    told = json.loads((folder / "benchmark.json").read_text("utf-8"))
    words = ("energy", "emissions, location-based", "cost")
    return _rows(
        *(_sum(e["value"] for e in told if e["name"].endswith(f": {word}")) for word in words)
    )


READ: Mapping[str, tuple[str, str, Callable[[Path], Sums]]] = {
    "datapackage": ("datapackage", "Frictionless", by_frictionless),
    "parquet": ("parquet", "DuckDB", by_duckdb),
    "impact-framework": ("impact-framework", "if-run, at the root", by_if_run),
    "prometheus": ("prometheus", "node_exporter", by_node_exporter),
    "openmetrics": ("openmetrics", "promtool and Prometheus", by_prometheus),
    "grafana": ("openmetrics", "its queries in Prometheus", by_panels),
    "otlp": ("otlp", "opentelemetry-proto", by_opentelemetry),
    "codecarbon": ("codecarbon", "pandas, as carbonboard", by_pandas_of_codecarbon),
    "focus": ("focus", "DuckDB", by_duckdb_of_focus),
    "statement": ("statement", "a script", by_json_of_statement),
    "boamps": ("boamps", "a script", by_json_of_boamps),
    "github-benchmark": ("github-benchmark", "a script", by_json_of_benchmark),
}
"""row of the table: which export is made, who reads it, how"""
FOLDERS = ("datapackage", "parquet")


def export_words(name: str, source: str, flags: tuple[str, ...], out: str) -> tuple[str, ...]:
    return ("export", source, "--to", name, *flags, "-o", out)


def cell(sums: Sums | None) -> str:
    """kWh / kgCO2e / USD to four digits, as many of them as the format has.

    >>> cell({"energy": 1.23456, "emissions_location": None}), cell(None)
    ('1.235 / unknown', 'refused')
    """
    if sums is None:
        return "refused"
    if all(value is None for value in sums.values()):
        return "nothing"
    return " / ".join(
        "unknown" if each is None else f"{float(f'{each:.4g}'):,g}" for each in sums.values()
    )


def written(table: Mapping[str, Mapping[str, Sums | None]]) -> str:
    """By source, then by row: as Markdown."""
    out = io.StringIO()
    out.write("| | " + " | ".join(SOURCES) + " |\n|---|" + "---|" * len(SOURCES) + "\n")
    for row in ("ours", *READ):
        name = "**ours**" if row == "ours" else f"`{row}`: {READ[row][1]}"
        out.write(f"| {name} | " + " | ".join(cell(table[s][row]) for s in SOURCES) + " |\n")
    return out.getvalue()
