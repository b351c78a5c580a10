"""What the default installation leaves out: nothing of it is imported without need, what needs it
says so in one line, and the front page names every extra."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
MAIN = "from ckptcost.first.cli.main import main; raise SystemExit(main({}))"


def without(library: str, program: str) -> subprocess.CompletedProcess[str]:
    """A program of a machine that lacks a library."""
    return subprocess.run(
        [sys.executable, "-c", f"import sys; sys.modules[{library!r}] = None\n{program}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_default_installation_has_no_pandas():
    assert not [each for each in PROJECT["dependencies"] if each.startswith("pandas")]
    for extra in ("frame", "fleet", "test"):
        assert "pandas>=2.2" in PROJECT["optional-dependencies"][extra]


@pytest.mark.parametrize(
    "words",
    [
        ["model"],
        ["model", "-f", "json"],
        ["sweep", "--over", "tier=nas-hdd"],
        ["measure", "--meters", "simulated", "--for", "1 s"],
    ],
    ids=" ".join,
)
def test_without_pandas(words):
    done = without("pandas", MAIN.format(words))
    assert (done.returncode, done.stderr) == (0, "")


def test_a_fleet_without_pandas(tmp_path):
    done = without("pandas", MAIN.format(["fleet", str(tmp_path)]))
    assert done.returncode == 1
    assert done.stderr == (
        "ckptcost: rolling a fleet up needs pandas, which is not installed. "
        "pip install 'ckptcost[fleet]'\n"
    )


def test_a_frame_without_pandas():
    done = without("pandas", "import ckptcost; ckptcost.sweep('tier=nas-hdd')")
    assert done.stderr.splitlines()[-1].endswith(
        "a frame needs pandas, which is not installed. pip install 'ckptcost[frame]'"
    )


def test_the_front_page_names_every_extra():
    named = re.findall(r"`(\w+)`", (ROOT / "README.md").read_text("utf-8"))
    assert PROJECT["optional-dependencies"].keys() - {"test"} <= set(named)
