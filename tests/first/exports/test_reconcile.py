"""Every export of one and the same answer, read back and held against the JSON that the command
wrote: six quantities, to nine digits."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from pathlib import Path

import pytest

from ckptcost.first.core.units import HOUR_S, KWH_J
from ckptcost.first.exports.formats import FORMATS

TRACE = str(Path(__file__).parents[3] / "data" / "traces" / "simulated-8gpu.jsonl")
MARKET = "site.grid_market=120 g/kWh"
WATER = "site.water=1.8 L/kWh"
PRICE = "cluster.gpu_price=3 USD/GPU-h"


COLUMNS = {
    "energy": "energy_kwh",
    "emissions_location": "emissions_location_kgco2e",
    "emissions_market": "emissions_market_kgco2e",
    "embodied": "embodied_kgco2e",
    "gpu_time_lost": "gpu_hours",
    "cost": "cost_usd",
    "water": "water_l",
}
ALL = tuple(COLUMNS)


class Mismatch(AssertionError):
    """An export says something else than the answer it was made from."""


# ---- one small reader a format: quantity -> figure, in the answer's units


def of_datapackage(files):
    rows = [
        row
        for row in csv.DictReader(io.StringIO(files["components.csv"]))
        if row["ledger"] == "marginal"
    ]
    return {what: _sum(row[name] for row in rows) for what, name in COLUMNS.items()}


def of_intervals(files):
    rows = list(csv.DictReader(io.StringIO(files["intervals.csv"])))
    return {what: _sum(row[name] for row in rows) for what, name in COLUMNS.items()}


def of_prometheus(files):
    return _metrics(files["ckptcost.prom"])


def of_openmetrics(files):
    return _metrics(files["metrics.txt"])


NAMES = {
    "ckptcost_energy_joules_total": ("energy", KWH_J),
    "ckptcost_emissions_location_grams_total": ("emissions_location", 1e3),
    "ckptcost_emissions_market_grams_total": ("emissions_market", 1e3),
    "ckptcost_embodied_emissions_grams_total": ("embodied", 1e3),
    "ckptcost_gpu_lost_seconds_total": ("gpu_time_lost", HOUR_S),
    "ckptcost_cost_usd_total": ("cost", 1.0),
    "ckptcost_water_litres_total": ("water", 1.0),
}


def _metrics(text):
    last: dict[tuple[str, str], float] = {}
    for line in text.splitlines():
        found = re.match(r"(\w+)\{(.*)\} (\S+)", line)
        if found and found[1] in NAMES:
            last[found[1], found[2]] = float(found[3])
    return {
        what: _sum(value / scale for (name, _), value in last.items() if NAMES[name][0] == what)
        for what, scale in NAMES.values()
    }


def of_impact_framework(files):
    rows = re.findall(
        r"energy: (\S+), grid/carbon-intensity: ([^,}\s]+)(?:, carbon-embodied: ([^,}\s]+))?",
        files["manifest.yaml"],
    )
    return {
        "energy": _sum(row[0] for row in rows),
        "emissions_location": _sum(float(row[0]) * float(row[1]) / 1e3 for row in rows),
        "embodied": _sum(float(row[2]) / 1e3 for row in rows if row[2]),
    }


def of_codecarbon(files):
    rows = list(csv.DictReader(io.StringIO(files["emissions.csv"])))
    if len(rows[0]) != 38:
        raise Mismatch("codecarbon has 38 columns")
    return {
        "energy": _sum(row["energy_consumed"] for row in rows),
        "emissions_location": _sum(row["emissions"] for row in rows),
    }


def of_focus(files):
    rows = list(csv.DictReader(io.StringIO(files["focus.csv"])))
    words = {
        "energy": "EnergyKwh",
        "emissions_location": "EmissionsLocationKgCO2e",
        "emissions_market": "EmissionsMarketKgCO2e",
        "embodied": "EmbodiedKgCO2e",
        "gpu_time_lost": "GpuHours",
        "water": "WaterLitres",
    }
    sums = {what: _sum(row[f"x_{word}"] for row in rows) for what, word in words.items()}
    return sums | {"cost": _sum(row["BilledCost"] for row in rows)}


def of_otlp(files):
    names = {
        "ckptcost.energy": ("energy", KWH_J),
        "ckptcost.emissions.location": ("emissions_location", 1e3),
        "ckptcost.emissions.market": ("emissions_market", 1e3),
        "ckptcost.emissions.embodied": ("embodied", 1e3),
        "ckptcost.gpu_time_lost": ("gpu_time_lost", HOUR_S),
        "ckptcost.cost": ("cost", 1.0),
        "ckptcost.water": ("water", 1.0),
    }
    last = {}
    for line in files["metrics.jsonl"].splitlines():
        for resource in json.loads(line)["resourceMetrics"]:
            for metric in (
                m
                for scope in resource["scopeMetrics"]
                for m in scope["metrics"]
                if m["name"] in names
            ):
                for point in metric["sum"]["dataPoints"]:
                    last[metric["name"], json.dumps(point["attributes"])] = point["asDouble"]
    return {
        what: _sum(v / scale for (name, _), v in last.items() if names[name][0] == what)
        for what, scale in names.values()
    }


def of_boamps(files):
    return {"energy": json.loads(files["boamps.json"])["measures"][0]["powerConsumption"]}


def of_github_benchmark(files):
    words = {"energy": "energy", "GPU time lost": "gpu_time_lost", "cost": "cost"}
    found = {}
    for row in json.loads(files["benchmark.json"]):
        what = row["name"].rsplit(": ", 1)[-1]
        if what in words:
            found[words[what]] = row["value"]
    return found


def of_parquet(files):
    pq = pytest.importorskip("pyarrow.parquet")
    table = pq.read_table(io.BytesIO(files["components.parquet"])).to_pylist()
    return {
        what: _sum(row[name] for row in table if row["ledger"] == "marginal")
        for what, name in COLUMNS.items()
    }


def of_statement(files):
    (s,) = json.loads(files["statement.json"])["statements"]
    return {what: s["totals"][what]["value"] for what in ALL}


READERS = {
    "datapackage": of_datapackage,
    "prometheus": of_prometheus,
    "openmetrics": of_openmetrics,
    "impact-framework": of_impact_framework,
    "codecarbon": of_codecarbon,
    "focus": of_focus,
    "otlp": of_otlp,
    "boamps": of_boamps,
    "github-benchmark": of_github_benchmark,
    "parquet": of_parquet,
    "statement": of_statement,
}


def test_every_format_is_reconciled():
    assert set(FORMATS) - set(READERS) == {
        "grafana",
        "model-card",
    }  # queries, and the whole training's energy: tests of their own


def _sum(values):
    known = [float(value) for value in values if value not in (None, "")]
    return math.fsum(known) if known else None


def reconcile(said, wanted):
    """Every quantity of the export is the answer's; raises Mismatch."""
    for what, value in said.items():
        other = wanted[what]
        if value is None or other is None:
            if value is not other:
                raise Mismatch(f"{what}: {value}, the answer says {other}")
        elif abs(value - other) > 1e-9 * max(abs(other), 1e-12):
            raise Mismatch(f"{what}: {value}, the answer says {other}")


# ---- the same answer in every format

ANSWERS = {
    "plan": (
        ("model", "-s", "small-8b", "--tier", "nas-hdd", "--set", MARKET, "--set", WATER),
        ("--start", "2026-09-01T00:20Z"),
    ),
    "two tiers": (
        (
            "model",
            "-s",
            "small-8b",
            "--set",
            "second_tier.id=flash-shared",
            "--set",
            "policy.second_every=4",
            "--set",
            MARKET,
        ),
        ("--start", "2026-09-01"),
    ),
    "nothing market-based": (
        ("model", "-s", "small-8b", "--tier", "nas-hdd"),
        ("--start", "2026-09-01T00:20Z"),
    ),
    "simulation": (
        ("simulate", "-s", "small-8b", "--runs", "60", "--set", MARKET, "--set", WATER),
        ("--start", "2026-09-01"),
    ),
    "run": (
        None,
        (
            "--site",
            "usa",
            "--set",
            MARKET,
            "--set",
            WATER,
            "--set",
            PRICE,
            "--set",
            "cluster.price_includes_electricity=false",
        ),
    ),
}


@pytest.fixture(params=ANSWERS)
def answer(request, cli, tmp_path, monkeypatch):
    """The source of an export, the options that date it, and the totals as its own JSON has
    them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(
        "SOURCE_DATE_EPOCH", "1830000000"
    )  # some readers take no costs of days to come
    words, flags = ANSWERS[request.param]
    if words is None:
        done = cli("export", TRACE, "--to", "statement", *flags)
        (s,) = json.loads(done.out)["statements"]
        return TRACE, flags, {what: s["totals"][what]["value"] for what in ALL}
    done = cli(*words, "-f", "json", "-o", "answer.json")
    assert done.code == 0, done.err
    raw = json.loads(Path("answer.json").read_text("utf-8"))
    if raw["kind"] == "model":
        totals = raw["statements"][0]["totals"]
        return "answer.json", flags, {what: totals[what]["value"] for what in ALL}
    rows = {row["quantity"]: row["mean"] for row in raw["tables"]["outcome"]["rows"]}
    names = {
        "energy": "energy added",
        "cost": "cost added",
        "gpu_time_lost": "GPU-hours lost",
        "emissions_location": "kgCO2e, location",
        "emissions_market": "kgCO2e, market",
        "embodied": "kgCO2e, embodied",
        "water": "L, water",
    }
    return "answer.json", flags, {what: rows[name] for what, name in names.items()}


def files_of(cli, source, flags, name):
    wanted = FORMATS[name]
    done = cli("export", source, "--to", name, *flags, "-o", f"out-{name}")
    assert done.code == 0, done.err
    out = Path(f"out-{name}")
    if not wanted.folder:
        return {wanted.file: out.read_text("utf-8")}
    return {
        file.name: file.read_bytes() if file.suffix == ".parquet" else file.read_text("utf-8")
        for file in out.iterdir()
    }


def test_all_exports_agree_with_the_answer(cli, answer):
    source, flags, wanted = answer
    assert wanted["energy"] is not None
    for name, reader in READERS.items():
        if name == "parquet":
            pytest.importorskip("pyarrow")
        files = files_of(cli, source, flags, name)
        said = reader(files)
        assert said, name
        reconcile(said, wanted)
        if name == "datapackage":
            reconcile(of_intervals(files), wanted)


# ---- what a validator would not see is found here


def times_1000(text, figure):
    assert figure in text
    return text.replace(figure, str(float(figure) * 1000), 1)


def without_column(text, name):
    rows = list(csv.reader(io.StringIO(text)))
    at = rows[0].index(name)
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(
        [cell for n, cell in enumerate(row) if n != at] for row in rows
    )
    return out.getvalue()


def swapped(text, one, other):
    assert one in text
    assert other in text
    return text.replace(one, "\0").replace(other, one).replace("\0", other)


SWAPS = {
    "datapackage": ("components.csv", "emissions_location_kgco2e", "emissions_market_kgco2e"),
    "prometheus": (
        "ckptcost.prom",
        "ckptcost_emissions_location_grams",
        "ckptcost_emissions_market_grams",
    ),
    "openmetrics": (
        "metrics.txt",
        "ckptcost_emissions_location_grams",
        "ckptcost_emissions_market_grams",
    ),
    "focus": ("focus.csv", "EmissionsLocationKgCO2e", "EmissionsMarketKgCO2e"),
    "otlp": ("metrics.jsonl", "ckptcost.emissions.location", "ckptcost.emissions.market"),
    "statement": ("statement.json", '"emissions_location"', '"emissions_market"'),
}
DROPS = {
    "datapackage": ("components.csv", "energy_kwh"),
    "codecarbon": ("emissions.csv", "emissions"),
    "focus": ("focus.csv", "x_EnergyKwh"),
}
SLIPS = {
    "datapackage": ("components.csv", r"gpu_wait[^\n]*?node,[^\n]*?,(\d+\.\d+)"),
    "prometheus": ("ckptcost.prom", r"\nckptcost_energy_joules_total\{[^}]*gpu_wait[^}]*\} (\S+)"),
    "openmetrics": ("metrics.txt", r"\nckptcost_energy_joules_total\{[^}]*gpu_wait[^}]*\} (\S+)"),
    "impact-framework": ("manifest.yaml", r"energy: (\d\S*), grid"),
    "codecarbon": ("emissions.csv", r'gpu_wait,[^,]*,"[^"]*",[^,]*,([^,]+),'),
    "focus": ("focus.csv", r"\n(\d+\.\d+),ckptcost"),
    "otlp": (
        "metrics.jsonl",
        r'"name":"ckptcost.energy"(?:(?!"name":).)*"gpu_wait"(?:(?!"name":).)*?"asDouble":([0-9.e+-]+)',
    ),
    "boamps": ("boamps.json", r'"powerConsumption": (\S+),'),
    "github-benchmark": ("benchmark.json", r'"value": (\S+),'),
    "statement": ("statement.json", r'"totals": \{\s+"energy": \{\s*"value": (\S+),'),
}


@pytest.fixture
def plan(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words, flags = ANSWERS["plan"]
    assert cli(*words, "-f", "json", "-o", "answer.json").code == 0
    totals = json.loads(Path("answer.json").read_text("utf-8"))["statements"][0]["totals"]
    return "answer.json", flags, {what: totals[what]["value"] for what in ALL}


@pytest.mark.parametrize("name", SLIPS)
def test_a_slip_of_a_thousand_is_found(cli, plan, name):
    source, flags, wanted = plan
    files = files_of(cli, source, flags, name)
    file, where = SLIPS[name]
    # of a counter the last point is the total
    every = list(re.finditer(where, files[file]))
    found = every[-1 if name in ("openmetrics", "otlp") else 0]
    at, end = found.span(1)
    bad = files | {file: files[file][:at] + repr(float(found[1]) * 1000) + files[file][end:]}
    with pytest.raises(Mismatch):
        reconcile(READERS[name](bad), wanted)


@pytest.mark.parametrize("name", SWAPS)
def test_location_and_market_swapped_are_found(cli, plan, name):
    source, flags, wanted = plan
    files = files_of(cli, source, flags, name)
    file, one, other = SWAPS[name]
    with pytest.raises(Mismatch):
        reconcile(READERS[name](files | {file: swapped(files[file], one, other)}), wanted)


@pytest.mark.parametrize("name", DROPS)
def test_a_column_that_is_gone_is_found(cli, plan, name):
    source, flags, wanted = plan
    files = files_of(cli, source, flags, name)
    file, column = DROPS[name]
    with pytest.raises((Mismatch, KeyError)):
        reconcile(READERS[name](files | {file: without_column(files[file], column)}), wanted)
