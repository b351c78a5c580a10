"""The wheel carries the catalogue and works without the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    target = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return target


def elsewhere(installed: Path, cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter that finds the unpacked wheel first, away from the checkout."""
    env = {**os.environ, "PYTHONPATH": str(installed), "PYTHONSAFEPATH": "1"}
    return subprocess.run(
        [sys.executable, *words],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def checkout_files() -> set[str]:
    listed = subprocess.run(
        # also what is new and not added yet
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "models", "data"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return set(listed.stdout.split("\n")) - {""} or {
        p.relative_to(ROOT).as_posix()
        for folder in ("models", "data")
        for p in (ROOT / folder).rglob("*")
        if p.is_file()
    }


def test_it_carries_the_catalogue_and_no_python_in_it(wheel):
    with zipfile.ZipFile(wheel) as archive:
        bundled = {
            name.removeprefix("ckptcost/_bundled/"): archive.read(name)
            for name in archive.namelist()
            if name.startswith("ckptcost/_bundled/")
        }
    assert set(bundled) == checkout_files()
    for name, content in bundled.items():
        assert content == (ROOT / name).read_bytes(), name
    assert [name for name in bundled if name.endswith((".py", ".pyc"))] == []


def test_it_carries_every_module_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    modules = {
        name
        for name in names
        if name.startswith("ckptcost/") and not name.startswith("ckptcost/_bundled/")
    }
    mine = {
        p.relative_to(ROOT).as_posix()
        for p in (ROOT / "ckptcost").rglob("*")
        if p.is_file() and "__pycache__" not in p.parts
    }
    assert modules == mine
    assert {name.split("/")[0] for name in names} == {
        "ckptcost",
        next(n for n in names if n.endswith(".dist-info/METADATA")).split("/")[0],
    }
    assert any(name.endswith("entry_points.txt") for name in names)
    assert any("LICENSE" in name for name in names)
    assert "ckptcost/py.typed" in names, "the classifier says Typing :: Typed"


def test_its_own_catalogue_is_used(installed, tmp_path):
    done = elsewhere(
        installed,
        tmp_path,
        "-c",
        "import ckptcost; from ckptcost.first.catalog import files; print(ckptcost.__file__);"
        " print(files.shipped_folder())",
    )
    module, catalogue = done.stdout.split("\n")[:2]
    assert Path(module).is_relative_to(installed), done.stdout + done.stderr
    assert catalogue == str(installed / "ckptcost" / "_bundled")


@pytest.mark.parametrize(
    "kind", ["checkpoint", "tier", "cluster", "site", "scenario", "accelerator", "grid", "source"]
)
def test_the_same_ids(installed, tmp_path, cli, kind):
    done = elsewhere(installed, tmp_path, "-m", "ckptcost", "catalog", kind)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == cli("catalog", kind).out


@pytest.mark.parametrize(
    "words",
    [["model"], ["model", "-f", "json"], ["model", "-s", "small-8b", "-f", "csv"], ["init", "-"]],
    ids=" ".join,
)
def test_the_same_output(installed, tmp_path, cli, words):
    done = elsewhere(installed, tmp_path, "-m", "ckptcost", *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == cli(*words).out


def test_from_inside_a_zip(wheel, tmp_path):
    """importlib.resources, not paths: the catalogue is found even where there are no files."""
    env = {**os.environ, "PYTHONPATH": str(wheel), "PYTHONSAFEPATH": "1"}
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            (
                "import ckptcost.first.catalog.store as s; print(s.__file__);"
                " print(len(s.Catalog().ids('tier')))"
            ),
        ],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-300:]
    assert wheel.name in done.stdout.split("\n")[0]
    assert int(done.stdout.split("\n")[1]) > 40
