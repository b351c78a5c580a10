"""Exports in the software that reads them. `make consumers` installs it: .venv-consumers with
frictionless, prometheus_client and codecarbon, .venv-focus (Python 3.12) with focus-validator and
pyarrow<21; promtool is in Debian's package prometheus."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ckptcost.exports import export
from ckptcost.exports.plan import bills_of
from tests.exports.bills import one_tier, three_tiers, unknown_power

ROOT = Path(__file__).parents[2]
APPLIES = (
    "ACCOUNT_NAMING_SUPPORTED,NEGOTIATED_PRICING_SUPPORTED,PUBLIC_PRICE_LIST_SUPPORTED,"
    "USAGE_MEASUREMENT_SUPPORTED,UNIT_PRICING_SUPPORTED,SUB_ACCOUNT_SUPPORTED,"
    "RESOURCE_TYPE_ASSIGNMENT_SUPPORTED,REGION_SUPPORTED,TAGGING_SUPPORTED"
)


def tool(name: str, folder: str = ".venv-consumers") -> str:
    """Where a program is; the test skips without it."""
    own = Path(os.environ.get("CKPTCOST_CONSUMERS", ROOT)) / folder / "bin" / name
    found = str(own) if own.exists() else shutil.which(name) if name != "python" else None
    if not found:
        pytest.skip(f"{name} is not installed: make consumers")
    return found


def run(*words: str | Path, cwd: Path | None = None, given: str = "") -> str:
    done = subprocess.run(
        [*map(str, words)], input=given, capture_output=True, text=True, cwd=cwd, timeout=120,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout + done.stderr


def written(files: object, folder: Path) -> Path:
    for name, content in dict(files).items():  # type: ignore[call-overload]
        data = content if isinstance(content, bytes) else content.encode()
        (folder / name).write_bytes(data)
    return folder


@pytest.mark.parametrize("answer", [three_tiers, unknown_power])
def test_frictionless_accepts_the_package_and_finds_an_edit(answer: object, tmp_path: Path) -> None:
    frictionless = tool("frictionless")
    written(export(bills_of(answer()), "csv"), tmp_path)  # type: ignore[operator]
    run(frictionless, "validate", "datapackage.json", cwd=tmp_path)
    lines = tmp_path / "lines.csv"
    lines.write_text(re.sub(r"(\d)(?=,modelled)", lambda d: str(9 - int(d[1])), lines.read_text()))
    done = subprocess.run([frictionless, "validate", "datapackage.json"], cwd=tmp_path,
                          capture_output=True, check=False)  # fmt: skip
    assert done.returncode != 0


@pytest.mark.parametrize("dated", [False, True])
def test_promtool_accepts_the_metrics(dated: bool, tmp_path: Path) -> None:
    promtool = tool("promtool")
    (content,) = export(one_tier() if dated else one_tier(None), "prometheus").values()
    assert isinstance(content, str)
    if not dated:
        run(promtool, "check", "metrics", given=content)
        return
    (tmp_path / "plan.om").write_text(content)
    said = run(promtool, "tsdb", "create-blocks-from", "openmetrics", "plan.om", "data",
               cwd=tmp_path)  # fmt: skip
    count = sum(not line.startswith("#") for line in content.strip().split("\n"))
    assert re.search(rf"\b{count}\b", said)


def test_prometheus_client_reads_openmetrics(tmp_path: Path) -> None:
    python = tool("python")
    written(export(one_tier(), "prometheus"), tmp_path)
    code = (
        "from prometheus_client.openmetrics.parser import text_string_to_metric_families as read;"
        "found = {f.name: f for f in read(open('ckptcost.om').read())};"
        "print(sum(s.value for s in found['ckptcost_plan_cost_usd'].samples))"
    )
    cost = sum(row.value or 0.0 for row in one_tier().rows if row[1:3] == ("total", "cost"))
    assert float(run(python, "-c", code, cwd=tmp_path)) == pytest.approx(cost, rel=1e-9)


def test_focus_validator_finds_nothing_but_its_own_contradiction(tmp_path: Path) -> None:
    """InvoiceId-C-004 and C-005 are two arms of an "or": one always fails. It exits 0 anyway, and
    reads its rules relative to the folder that it is in."""
    validator = tool("focus-validator", ".venv-focus")
    written(export(one_tier(), "focus"), tmp_path)
    rules = next(Path(validator).parents[1].glob("lib/python3*/site-packages"))
    said = run(
        validator, "--data-file", tmp_path / "focus.csv", "--validate-version", "1.2",
        "--block-download", "--applicability-criteria", APPLIES, cwd=rules,
    )  # fmt: skip
    passed, failed = map(int, re.findall(r"Pass: (\d+) \| Fail: (\d+)", said)[0])
    assert passed > 200
    assert set(re.findall(r"(\S+): FAIL", said)) == {"InvoiceId-C-005-C"}
    assert failed == 1


def test_codecarbon_takes_the_file_for_its_own(tmp_path: Path) -> None:
    python = tool("python")
    written(export(one_tier(), "codecarbon"), tmp_path)
    code = (
        "import dataclasses, pandas\n"
        "from codecarbon.output import FileOutput\n"
        "from codecarbon.output_methods.emissions_data import EmissionsData as Data\n"
        "names = [f.name for f in dataclasses.fields(Data)]\n"
        "frame = pandas.read_csv('emissions.csv')\n"
        "assert list(frame.columns) == names, names\n"
        "data = Data(**frame.iloc[0].to_dict())\n"
        "assert FileOutput('emissions.csv', '.').has_valid_headers(data)\n"
        "print('kWh', frame['energy_consumed'].sum())\n"
    )
    said = run(python, "-c", code, cwd=tmp_path)
    energy = sum(row.value or 0.0 for row in one_tier().rows if row[1:3] == ("total", "energy"))
    assert float(said.split("kWh ")[1].split()[0]) == pytest.approx(energy, rel=1e-9)
