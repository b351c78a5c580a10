"""The wheel carries the catalogue and answers away from the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.slow


def test_the_wheel_answers(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=120,
    )
    with zipfile.ZipFile(next((tmp_path / "dist").glob("*.whl"))) as archive:
        archive.extractall(tmp_path / "site")
        entry = next(name for name in archive.namelist() if name.endswith("entry_points.txt"))
        assert b"ckptcost = ckptcost.cli:main" in archive.read(entry)

    def said(site: Path, *words: str) -> str:
        env = {**os.environ, "PYTHONPATH": str(site), "PYTHONSAFEPATH": "1"}
        return subprocess.check_output(
            [sys.executable, *words], cwd=tmp_path, env=env, text=True, timeout=60
        )

    where = "from ckptcost.scenario.catalog import SHIPPED; print(SHIPPED)"
    wheel = tmp_path / "site"
    assert said(wheel, "-c", where).strip() == str(wheel / "ckptcost" / "_bundled")
    for words in (["--version"], ["model", "-f", "csv"], ["model", "-f", "html"]):
        assert said(wheel, "-m", "ckptcost", *words) == said(ROOT, "-m", "ckptcost", *words)
