"""BoAmps: its required fields, what it says against the statement, and CodeCarbon's classes and
report writer reading it."""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import statements as made
from hypothesis import given
from hypothesis import settings as runs
from statements import (
    export_text,
    quantity,
    statement,
    with_fields,
    with_priced_standing,
    with_subject,
)

from ckptcost.first.errors import InputError
from ckptcost.first.exports import boamps
from ckptcost.first.exports.boamps import export, quality
from ckptcost.first.exports.formats import exported
from ckptcost.first.report.document import Report
from ckptcost.first.report.statement import Statement, utc

PYTHON = Path(__file__).parents[3] / ".consumers/py/bin/python"
WORDS = {
    "reportStatus": {"draft", "final", "corrective", "other"},
    "confidentialityLevel": {"public", "internal", "confidential", "secret"},
    "infraType": {"publicCloud", "privateCloud", "onPremise", "other"},
    "dataUsage": {"input", "output"},
    "dataType": {
        "tabular",
        "audio",
        "boolean",
        "image",
        "video",
        "object",
        "text",
        "token",
        "word",
        "other",
    },
    "quality": {"high", "medium", "low"},
}
NEEDED = {
    "": ("task", "measures", "infrastructure"),
    "header": ("reportDatetime",),
    "header.publisher": ("confidentialityLevel",),
    "task": ("taskStage", "taskFamily", "algorithms", "dataset"),
    "task.dataset": ("dataUsage", "dataType"),
    "measures": ("measurementMethod", "powerConsumption"),
    "system": ("os",),
    "software": ("language",),
    "infrastructure": ("infraType", "components"),
    "infrastructure.components": ("componentType", "nbComponent"),
    "environment": ("country",),
}
"""Required by Boavizta's five schemas, as they stand in 2026-11"""


def text_of(document: Report) -> str:
    files = export(document)
    assert list(files) == ["boamps.json"]
    return "".join(str(piece) for piece in files["boamps.json"])


def complete(node: Any, place: str = "") -> None:
    """Required fields are there, lists are not empty, words are of the lists, and no field is null.
    Raises where not."""
    if isinstance(node, list):
        assert node, f"{place} is empty"
        for each in node:
            complete(each, place)
    elif isinstance(node, dict):
        missing = [name for name in NEEDED.get(place, ()) if name not in node]
        assert not missing, f"{place} lacks {missing}"
        for name, each in node.items():
            assert each not in (None, ""), f"{place}.{name} says nothing"
            assert name not in WORDS or each in WORDS[name], f"{place}.{name}: {each}"
            assert name != "nbComponent" or type(each) is int
            complete(each, f"{place}.{name}".lstrip("."))


def same(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-9)


def judge(text: str, document: Report) -> None:
    """The report says what the statement says, in base units. Raises where it does not."""
    report = json.loads(text)
    complete(report)
    (statement,), (measure,) = document.statements, report["measures"]
    kwh = statement.totals.energy.value
    assert kwh is not None
    assert same(measure["powerConsumption"] * 3.6e6, kwh * 3.6e6)
    assert same(
        measure["powerConsumption"],
        math.fsum(line.energy.value or 0.0 for line in statement.marginal()),
    )
    if statement.series is not None:
        assert same(
            measure["powerConsumption"],
            math.fsum(each or 0.0 for each in statement.series.energy_kwh),
        )
    begin, end = utc(statement.period_start or ""), utc(statement.period_end or "")
    assert measure["measurementDateTime"] == begin.strftime("%Y-%m-%d %H:%M:%S")
    assert same(measure["measurementDuration"], (end - begin).total_seconds())
    lines = [
        line
        for line in statement.marginal()
        if line.energy.value is not None and line.emissions_location.value is not None
    ]
    used = math.fsum(line.energy.value or 0.0 for line in lines)
    if used:
        grams = report["environment"]["powerSourceCarbonIntensity"] * used
        assert same(
            grams, math.fsum(line.emissions_location.value or 0.0 for line in lines) * 1000.0
        )
    else:
        assert "powerSourceCarbonIntensity" not in report["environment"]
    said = report["task"]["taskDescription"]
    assert all(
        word in said
        for word in (
            "memo_item",
            statement.method_version,
            statement.kind,
            statement.subject.run_id,
            *statement.totals.energy.excludes,
        )
    )
    assert said.startswith("SIMULATED") == statement.simulated


def changed(statement: Statement, **subject: Any) -> Statement:
    return statement.model_copy(update={"subject": statement.subject.model_copy(update=subject)})


def full() -> Statement:
    """One of which everything is known."""
    return changed(
        made.statement(kind="measured"),
        organisation='Böhm & "Söhne"',
        team="t,1",
        cloud_provider="gcp",
        cloud_region="us-east4",
        region="virginia",
        parameters=1.8e12,
        tokens=13e12,
        framework="PyTorch",
        os="Linux",
        python="3.11.7",
        cpu_model="EPYC",
        cpu_count=192.0,
        ram_gb=2304.5,
        latitude=0.0,
        longitude=-77.0,
    )


# --- what stands in it


@pytest.mark.parametrize(
    "statement",
    [made.statement(), full(), made.statement(grid=None), made.statement((0.0,) * 5)],
    ids=["usual", "full", "no grid", "zero"],
)
def test_it_says_what_the_statement_says(statement: Statement) -> None:
    document = made.document(statement)
    judge(text_of(document), document)


@given(made.statements(dated=True))
@runs(max_examples=60)
def test_any_statement(statement: Statement) -> None:
    document = made.document(statement)
    if statement.totals.energy.value is None:
        with pytest.raises(InputError, match=r"energy of .* is unknown"):
            exported(document, "boamps")
    else:
        judge(text_of(document), document)


def times_1000(report: dict[str, Any]) -> None:
    report["measures"][0]["powerConsumption"] *= 1000


def market_for_location(report: dict[str, Any]) -> None:
    report["environment"]["powerSourceCarbonIntensity"] = made.MARKET * 1000


def without_the_energy(report: dict[str, Any]) -> None:
    del report["measures"][0]["powerConsumption"]


def without_the_memo(report: dict[str, Any]) -> None:
    report["task"]["taskDescription"] = report["task"]["taskDescription"].replace("memo_item", "")


def a_word_of_our_own(report: dict[str, Any]) -> None:
    report["quality"] = "excellent"


def one_half_gpu(report: dict[str, Any]) -> None:
    report["infrastructure"]["components"][0]["nbComponent"] = 0.5


@pytest.mark.parametrize(
    "slip",
    [
        times_1000,
        market_for_location,
        without_the_energy,
        without_the_memo,
        a_word_of_our_own,
        one_half_gpu,
    ],
)
def test_a_slip_is_seen(slip: Callable[[dict[str, Any]], None]) -> None:
    document = made.document()
    report = json.loads(text_of(document))
    slip(report)
    with pytest.raises((AssertionError, KeyError)):
        judge(json.dumps(report), document)


def test_units_and_choices() -> None:
    report = json.loads(text_of(made.document(full())))
    assert report["task"]["algorithms"][0]["parametersNumber"] == 1800.0  # billions
    assert report["task"]["taskStage"] == "checkpointing"
    assert report["task"]["dataset"] == [
        {"dataUsage": "input", "dataType": "token", "dataQuantity": 13e12},
        {"dataUsage": "output", "dataType": "object", "dataQuantity": 8.0},
    ]
    assert report["infrastructure"]["infraType"] == "publicCloud"
    assert report["measures"][0]["gpuTrackingMode"] == "NVML total energy consumption"
    assert report["environment"]["latitude"] == 0.0
    assert "CC BY 4.0" in report["task"]["taskDescription"]


def test_what_nobody_said_is_not_there() -> None:
    bare = changed(made.statement(grid=None), country=None, country_iso3=None, accelerator=None)
    report = json.loads(text_of(made.document(bare)))
    assert not {"system", "software", "environment"} & set(report)
    assert "publisher" not in report["header"]
    assert report["infrastructure"] == {
        "infraType": "other",
        "components": [{"componentType": "gpu", "nbComponent": 1024}],
    }


def test_hardware_that_is_not_known_is_refused_unless_nodes_are() -> None:
    nodes = changed(made.statement(), accelerator_count=None)
    assert json.loads(text_of(made.document(nodes)))["infrastructure"]["components"] == [
        {"componentType": "node", "nbComponent": 128}
    ]
    with pytest.raises(InputError, match="count of GPUs, processors or nodes"):
        export(made.document(changed(nodes, nodes=None)))


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (90.0, 110.0, "high"),
        (90.0, 110.1, "medium"),
        (75.0, 101.0, "medium"),
        (74.9, 101.0, "low"),
        (99.0, None, "low"),
        (None, None, None),
    ],
)
def test_the_band_of_quality(low: float | None, high: float | None, word: str | None) -> None:
    statement = made.statement((100.0, 0.0, 0.0, 0.0, 0.0))
    energy = statement.totals.energy.model_copy(update={"low": low, "high": high})
    ranged = statement.model_copy(
        update={"totals": statement.totals.model_copy(update={"energy": energy})}
    )
    assert quality(ranged) == word
    assert quality(ranged.model_copy(update={"simulated": True})) == "low"


def test_an_unknown_line_is_low_quality() -> None:
    assert quality(made.statement()) == "low"
    assert quality(made.statement((1.0, 2.0, 3.0, 4.0, 5.0))) == "high"


def test_several_statements_are_refused() -> None:
    with pytest.raises(InputError, match=r"one report a file, and here are 2.*--case"):
        export(made.document(made.statement(), made.statement(run_id="other")))


def test_odd_names_survive() -> None:
    odd = made.statement(name='=1+1, "q"\n<script>é</script>')
    assert odd.subject.name in json.loads(text_of(made.document(odd)))["task"]["taskDescription"]


# --- CodeCarbon's classes, and its writer of such reports


@pytest.fixture(scope="module")
def python() -> Path:
    if not PYTHON.exists():
        pytest.skip("codecarbon is not installed: make consumers")
    return PYTHON


READ = """
import dataclasses, json, sys
from codecarbon.output_methods.boamps import BoAmpsOutput, BoAmpsReport
from codecarbon.output_methods.emissions_data import EmissionsData
report = json.load(open("boamps.json"))
assert BoAmpsReport.from_dict(report).to_dict() == report, "not the same when written again"
words = {"run_id", "timestamp", "project_name", "experiment_id", "country_name", "cloud_provider", "on_cloud", "os"}
words |= {"cpu_model", "gpu_model"}
own = EmissionsData(**{field.name: "x" if field.name in words else 1.0 for field in dataclasses.fields(EmissionsData)})
writer = BoAmpsOutput.from_file("boamps.json", output_dir=".")
writer.out(own, own)
print(json.dumps(json.load(open(writer.save_file_path))))
"""


def read_by_codecarbon(python: Path, folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "boamps.json").write_text(text)
    env = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "TMPDIR": str(folder)}
    return subprocess.run(
        [str(python), "-c", READ],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("statement", [made.statement(), full()], ids=["usual", "full"])
def test_codecarbon_reads_it_and_fills_a_report_of_its_own_from_it(
    python: Path, tmp_path: Path, statement: Statement
) -> None:
    text = text_of(made.document(statement))
    ran = read_by_codecarbon(python, tmp_path, text)
    assert ran.returncode == 0, ran.stderr
    ours, theirs = json.loads(text), json.loads(ran.stdout.splitlines()[-1])
    complete(theirs)
    assert theirs["task"] == ours["task"]
    assert theirs["quality"] == ours["quality"]
    assert theirs["header"]["reportId"] == ours["header"]["reportId"]
    gpus = [
        part["nbComponent"]
        for part in theirs["infrastructure"]["components"]
        if part["componentType"] == "gpu"
    ]
    assert gpus == [1024]


def test_codecarbon_refuses_a_field_that_is_not_of_the_model(python: Path, tmp_path: Path) -> None:
    report = json.loads(text_of(made.document()))
    report["measures"][0]["energyKwh"] = 1.0
    ran = read_by_codecarbon(python, tmp_path, json.dumps(report))
    assert ran.returncode != 0
    assert "energy_kwh" in ran.stderr


ZERO = (0.0,) * 5


def boamps_of(s):
    return json.loads(export_text(s, "boamps"))


def test_boamps_says_simulated_memo_and_method():
    s = with_fields(statement(), simulated=True)
    told = boamps_of(s)
    words = told["task"]["taskDescription"]
    assert words.startswith("SIMULATED: nothing here was measured. ")
    assert "inventory_treatment: memo_item;" in words
    assert "Method 2026.1." in words
    assert told["quality"] == "low"
    assert "SIMULATED" not in boamps_of(statement())["task"]["taskDescription"]


def test_boamps_intensity_is_of_lines_of_which_both_are_known():
    s = statement((100.0, 300.0, None, 0.0, 0.0), grid=0.4, dated=False)
    lines = [
        c.model_copy(update={"energy": quantity("energy", None)}) if c.id == "host_wait" else c
        for c in s.components
    ]
    assert boamps._intensity_g_per_kwh(with_fields(s, components=lines)) == pytest.approx(400.0)
    assert boamps._intensity_g_per_kwh(with_priced_standing(s)) == pytest.approx(400.0)
    assert boamps._intensity_g_per_kwh(statement(ZERO)) is None


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (0.9, 1.1, "high"),
        (1.0, 1.1, "high"),
        (0.89, 1.0, "medium"),
        (1.0, 1.25, "medium"),
        (1.0, 1.26, "low"),
        (1.0, None, "low"),
        (None, None, None),
    ],
)
def test_boamps_quality_goes_by_the_farther_end(low, high, word):
    s = statement((1.0, 0.0, 0.0, 0.0, 0.0))
    s = with_fields(
        s,
        totals=s.totals.model_copy(
            update={"energy": s.totals.energy.model_copy(update={"low": low, "high": high})}
        ),
    )
    assert boamps.quality(s) == word


def test_boamps_zero_is_a_report_and_unknown_is_none():
    assert boamps_of(statement(ZERO))["measures"][0]["powerConsumption"] == 0.0
    with pytest.raises(InputError, match=r"the energy of .* is unknown"):
        boamps_of(statement((None,) * 5))


def test_boamps_places_and_instruments():
    s = with_subject(statement(kind="measured"), latitude=1.0, longitude=2.0, parameters=2e9)
    told = boamps_of(s)
    assert (told["environment"]["latitude"], told["environment"]["longitude"]) == (1.0, 2.0)
    assert told["task"]["algorithms"][0]["parametersNumber"] == 2.0
    assert told["measures"][0]["gpuTrackingMode"] == "NVML total energy consumption"
    assert "cpuTrackingMode" not in told["measures"][0]


def test_boamps_counts_no_half_processors():
    who = with_subject(statement(), accelerator_count=2.5, cpu_model="c", cpu_count=4.0).subject
    assert [(p["componentType"], p["nbComponent"]) for p in boamps._hardware(who)] == [("cpu", 4)]
    with pytest.raises(InputError, match="needs a count"):
        boamps._hardware(with_subject(statement(), accelerator_count=2.5, nodes=0.5).subject)
