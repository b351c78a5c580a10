"""Exports in the software that reads them. `make consumers` installs it: .venv-consumers with
frictionless, prometheus_client and codecarbon, .venv-focus (Python 3.12) with focus-validator and
pyarrow<21; promtool is in Debian's package prometheus."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ckptcost.answer import Answer
from ckptcost.exports import Bills, export
from ckptcost.exports.plan import bills_of
from tests.exports.bills import one_tier, three_tiers, unknown_power

ROOT = Path(os.environ.get("CKPTCOST_CONSUMERS", Path(__file__).parents[2]))
APPLIES = "ACCOUNT_NAMING RESOURCE_TYPE_ASSIGNMENT REGION TAGGING"


def tool(name: str, folder: str = ".venv-consumers") -> str:
    """Where a program is; the test skips without it."""
    own = ROOT / folder / "bin" / name
    found = str(own) if own.exists() else shutil.which(name) if name != "python" else None
    if not found:
        pytest.skip(f"{name} is not installed: make consumers")
    return found


def run(*words: str | Path, cwd: Path, given: str = "") -> str:
    done = subprocess.run(
        [*map(str, words)], input=given, capture_output=True, text=True, cwd=cwd, timeout=120,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout + done.stderr


def written(bills: Bills, format_: str, folder: Path) -> None:
    for name, content in export(bills, format_).items():
        (folder / name).write_text(str(content))


def total(quantity: str) -> Any:
    (row,) = [row for row in one_tier().rows if row[1:3] == ("total", quantity)]
    return pytest.approx(row.value, rel=1e-9)


@pytest.mark.parametrize("answer", [three_tiers, unknown_power])
def test_frictionless_accepts_the_package_and_finds_an_edit(
    answer: Callable[[], Answer], tmp_path: Path
) -> None:
    frictionless = tool("frictionless")
    written(bills_of(answer()), "csv", tmp_path)
    run(frictionless, "validate", "datapackage.json", cwd=tmp_path)
    lines = tmp_path / "lines.csv"
    lines.write_text(re.sub(r"(\d)(?=,modelled)", lambda d: str(9 - int(d[1])), lines.read_text()))
    with pytest.raises(AssertionError, match="hash"):
        run(frictionless, "validate", "datapackage.json", cwd=tmp_path)


def test_promtool_accepts_the_metrics(tmp_path: Path) -> None:
    promtool = tool("promtool")
    written(one_tier(None), "prometheus", tmp_path)
    given = (tmp_path / "ckptcost.prom").read_text()
    run(promtool, "check", "metrics", given=given, cwd=tmp_path)
    written(one_tier(), "prometheus", tmp_path)
    blocks = ("tsdb", "create-blocks-from", "openmetrics", "ckptcost.om", "data")
    count = len(re.findall(r"(?m)^[^#]", (tmp_path / "ckptcost.om").read_text()))
    assert re.search(rf"\b{count}\b", run(promtool, *blocks, cwd=tmp_path))


def test_prometheus_client_reads_openmetrics(tmp_path: Path) -> None:
    python = tool("python")
    written(one_tier(), "prometheus", tmp_path)
    code = (
        "from prometheus_client.openmetrics.parser import text_string_to_metric_families as read;"
        "found = {f.name: f for f in read(open('ckptcost.om').read())};"
        "print(sum(s.value for s in found['ckptcost_plan_cost_usd'].samples))"
    )
    assert float(run(python, "-c", code, cwd=tmp_path)) == total("cost")


def test_focus_validator_finds_nothing_but_its_own_contradiction(tmp_path: Path) -> None:
    """InvoiceId-C-004 and C-005 are two arms of an "or": one always fails. It exits 0 anyway, and
    reads its rules relative to the folder that it is in."""
    validator = tool("focus-validator", ".venv-focus")
    written(one_tier(), "focus", tmp_path)
    rules = next(Path(validator).parents[1].glob("lib/python3*/site-packages"))
    said = run(
        validator, "--data-file", tmp_path / "focus.csv", "--validate-version", "1.2",
        "--block-download", "--applicability-criteria",
        ",".join(f"{each}_SUPPORTED" for each in APPLIES.split()), cwd=rules,
    )  # fmt: skip
    passed, failed = map(int, re.findall(r"Pass: (\d+) \| Fail: (\d+)", said)[0])
    assert passed > 150
    assert failed == 1
    assert set(re.findall(r"(\S+): FAIL", said)) == {"InvoiceId-C-005-C"}


def test_codecarbon_takes_the_file_for_its_own(tmp_path: Path) -> None:
    python = tool("python")
    written(one_tier(), "codecarbon", tmp_path)
    code = (
        "import dataclasses, pandas\n"
        "from codecarbon.output import FileOutput\n"
        "from codecarbon.output_methods.emissions_data import EmissionsData as Data\n"
        "frame = pandas.read_csv('emissions.csv')\n"
        "assert list(frame.columns) == [f.name for f in dataclasses.fields(Data)]\n"
        "data = Data(**frame.iloc[0].to_dict())\n"
        "assert FileOutput('emissions.csv', '.').has_valid_headers(data)\n"
        "print('kWh', frame['energy_consumed'].sum())\n"
    )
    said = run(python, "-c", code, cwd=tmp_path)
    assert float(said.split("kWh ")[1].split()[0]) == total("energy")
