"""Which exports there are, what each is for, and how its reader proves it. Each is one module with
`export(document)`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import NamedTuple

from ckptcost.first.errors import InputError, UnknownName
from ckptcost.first.report.document import Report
from ckptcost.first.report.statement import utc

Files = Mapping[str, Iterable[str] | bytes]
"""by name: pieces of text, or bytes"""


class Format(NamedTuple):
    id: str
    title: str
    what: str
    """what it is for and who reads it, one line"""
    proof: str
    """the software that reads it in our tests"""
    file: str
    """the file's name, or the folder's where it is several files"""
    folder: bool = False
    dated: bool = False
    """needs to know when the run was"""
    summed: bool = False
    """its readers add up what they are given"""
    needs: tuple[str, ...] = ()
    """sums that it cannot do without: a statement of which one is unknown is left out"""
    needs_one: tuple[str, ...] = ()
    """sums of which it needs any: of a statement of which all are unknown it says nothing. The
    format is given it all the same, for its place among the others"""
    past: bool = False
    """takes nothing of days to come: Prometheus with samples of next month in it drops all that it
    scrapes until then"""


EMISSIONS = ("emissions_location", "emissions_market")
FORMATS = {
    each.id: each
    for each in (
        Format(
            "statement",
            "ckptcost statement",
            "all that the other exports are made of; they read it again",
            "check-jsonschema",
            "statement.json",
        ),
        Format(
            "datapackage",
            "CSV with a Data Package",
            "spreadsheets, BI and ESG suites: components, hourly intervals, factors",
            "frictionless",
            "datapackage",
            folder=True,
        ),
        Format(
            "impact-framework",
            "Impact Framework manifest",
            "GSF's if-run recomputes the carbon; the measurement file of an SCI report",
            "if-run",
            "manifest.yaml",
            dated=True,
            summed=True,
            needs=("energy", "emissions_location"),
        ),
        Format(
            "prometheus",
            "Prometheus textfile",
            "node_exporter's textfile collector: no timestamps",
            "promtool, node_exporter",
            "ckptcost.prom",
            summed=True,
        ),
        Format(
            "openmetrics",
            "OpenMetrics with timestamps",
            "backfill into Prometheus; GitLab's metrics report",
            "promtool, prometheus",
            "metrics.txt",
            dated=True,
            past=True,
            summed=True,
        ),
        Format(
            "grafana",
            "Grafana dashboard and Prometheus rules",
            "panels and recording rules over the names of the two above",
            "tsc, promtool, prometheus",
            "grafana",
            folder=True,
        ),
        Format(
            "codecarbon",
            "CodeCarbon emissions.csv",
            "carbonboard, and scripts that read CodeCarbon's 38 columns",
            "codecarbon",
            "emissions.csv",
            dated=True,
            summed=True,
            needs=("energy", "emissions_location"),
        ),
        Format(
            "focus",
            "FOCUS 1.2 CSV",
            "FinOps tools and warehouses; kWh and kgCO2e in x_ columns",
            "focus-validator",
            "focus.csv",
            dated=True,
            summed=True,
            needs=("cost",),
        ),
        Format(
            "boamps",
            "BoAmps",
            "Boavizta's open data on the energy of AI tasks",
            "its required fields; codecarbon's classes",
            "boamps.json",
            dated=True,
            summed=True,
            needs=("energy",),
        ),
        Format(
            "github-benchmark",
            "github-action-benchmark",
            "trend charts on GitHub Pages, smaller is better",
            "our own check of its four fields",
            "benchmark.json",
            needs_one=("energy", "gpu_time_lost", "cost", *EMISSIONS),
        ),
        Format(
            "parquet",
            "Parquet",
            "DuckDB, warehouses; needs pip install 'ckptcost[parquet]'",
            "duckdb, pyarrow",
            "parquet",
            folder=True,
        ),
        Format(
            "otlp",
            "OTLP metrics, JSON",
            "an OpenTelemetry collector's file or HTTP receiver",
            "opentelemetry-proto",
            "metrics.jsonl",
            dated=True,
            past=True,
            summed=True,
        ),
        Format(
            "model-card",
            "Model card metadata",
            "Hugging Face: co2_eq_emissions where the whole run's energy is known, else in words",
            "huggingface_hub",
            "model-card.md",
        ),
    )
}


UNKNOWN_SUMS = {
    "energy": ("energy", "meter the run, or give what the statement's warnings name"),
    "emissions_location": (
        "location-based emissions",
        "give the grid: --grid FILE, or site.grid_location in the scenario",
    ),
    "cost": ("cost", "meter the run, and give what has no price: cluster.gpu_price, site.tariff"),
}
"""what a sum is called where it is unknown, and what to do"""


def format_named(name: str) -> Format:
    if name not in FORMATS:
        raise UnknownName(
            "export", name, FORMATS, where="--to", lists="`ckptcost export --list` lists them"
        )
    return FORMATS[name]


def exported(document: Report, name: str) -> Files:
    """The files of an export, by name. Raises InputError where the statement lacks what the format
    cannot do without."""
    wanted = format_named(name)
    if not document.statements:
        raise InputError("holds no statement", where=wanted.id)
    if wanted.dated:
        _require_dates(document, wanted)
    gone = left_out(document, wanted)
    if len(gone) == len(document.statements):
        whys = [why for why, _ in gone.values()]
        more = f"; and {len(whys) - 3} more" if len(whys) > 3 else ""
        raise InputError(
            f"{wanted.title} cannot leave open what is not known: {'; '.join(whys[:3])}{more}",
            where=f"--to {wanted.id}",
            remedy=next(remedy for _, remedy in gone.values()),
        )
    if not wanted.needs_one:
        kept = [s for s in document.statements if s.subject.run_id not in gone]
        document = document.model_copy(update={"statements": kept})
    if wanted.past:
        _refuse_what_is_to_come(document, wanted)
    files: Files = import_module(f"ckptcost.first.exports.{wanted.id.replace('-', '_')}").export(
        document
    )
    return files


def _require_dates(document: Report, wanted: Format) -> None:
    for s in document.statements:
        if s.period_start is None or s.period_end is None:
            raise InputError(
                f"{wanted.title} needs to know when the run is, and {s.subject.name} has no dates",
                where=f"--to {wanted.id}",
                remedy='give --start, e.g. --start "2026-11-01T00:00Z"',
            )


def left_out(document: Report, wanted: Format) -> dict[str, tuple[str, str]]:
    """By run id: why the format has no place for it, and what to do."""
    found = {}
    for s in document.statements:
        unknown = next((w for w in wanted.needs if getattr(s.totals, w).value is None), None)
        if unknown is not None:
            word, remedy = UNKNOWN_SUMS[unknown]
            why = f"the {word} of {s.subject.name} {'are' if word[-1] == 's' else 'is'} unknown"
            lacks = ", ".join(getattr(s.totals, unknown).excludes)
            found[s.subject.run_id] = why + (f" (not known of {lacks})" if lacks else ""), remedy
        elif wanted.needs_one and all(
            getattr(s.totals, each).value is None for each in wanted.needs_one
        ):
            why = f"no energy, GPU time, cost or emissions of {s.subject.name} are known"
            found[s.subject.run_id] = why, UNKNOWN_SUMS["energy"][1]
    return found


def _refuse_what_is_to_come(document: Report, wanted: Format) -> None:
    now = utc(document.generated_at)
    for s in document.statements:
        over = utc(s.period_end or "")
        if over > now:
            earlier = (utc(s.period_start or "") - (over - now)).date()
            raise InputError(
                f"{wanted.title} is for what has been, and {s.subject.name} is over on"
                f" {over.date()} only: whoever has samples of days to come drops what is measured"
                f" until then; this statement is of {now.date()}",
                where=f"--to {wanted.id}",
                remedy=(
                    f"export it after that day, or let it begin earlier: --start {earlier}T00:00Z"
                ),
            )
