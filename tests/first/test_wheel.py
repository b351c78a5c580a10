"""The wheel carries the catalogue and answers away from the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow


def test_the_wheel_answers(tmp_path, cli):
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
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "site"), "PYTHONSAFEPATH": "1"}

    def said(*words: str) -> str:
        return subprocess.check_output(
            [sys.executable, *words], cwd=tmp_path, env=env, text=True, timeout=60
        )

    where = "from ckptcost.first.catalog.files import shipped_folder as f; print(f())"
    assert said("-c", where).strip() == str(tmp_path / "site" / "ckptcost" / "_bundled")
    assert said("-m", "ckptcost", "--version") == cli("--version").out
    assert said("-m", "ckptcost", "model", "-f", "csv") == cli("model", "-f", "csv").out
