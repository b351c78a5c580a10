"""Every source of the catalogue has its licence in data/LICENSES.md; what is quoted from sources
under share-alike terms is counted, and stays that little; the wheel says and carries all of it."""

from __future__ import annotations

import importlib.util
import re
import zipfile
from collections.abc import Iterator
from email import message_from_bytes
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "data" / "LICENSES.md").read_text("utf-8")
NOTICE = (ROOT / "NOTICE").read_text("utf-8")
COPYLEFT = ("BY-SA", "GPL", "MPL", "ODbL", "NC", "ND")


@pytest.fixture(scope="module")
def lister() -> ModuleType:
    spec = importlib.util.spec_from_file_location("listing", ROOT / "docs" / "list_licences.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def part(heading: str) -> str:
    return PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]


def under(lister: ModuleType, *words: str) -> Iterator[str]:
    for name, source in lister.sources().items():
        if any(word in source.get("licence", "") for word in words):
            yield name


def test_every_source_has_a_licence_entry(lister):
    rows = re.findall(r"^\| ([\w-]+) \| (.+?) \| .+ \|$", part("Every source"), re.M)
    listed = {name: licence for name, licence in rows if name != "source"}
    assert listed.keys() == lister.sources().keys()
    for name, source in lister.sources().items():
        if "licence" in source:
            assert listed[name] == source["licence"]


def test_the_table_is_current(lister):
    assert lister.written() == PAGE, "run: python docs/list_licences.py"


def test_each_file_that_quotes_a_share_alike_source_is_listed(lister):
    files = {
        file for name in under(lister, "BY-SA", "ODbL") for file in lister.cited_in().get(name, [])
    }
    listed = re.findall(r"^\* (\S+)$", part("Files that quote a share-alike source"), re.M)
    assert set(listed) == files


def test_share_alike_quotes_stay_four_rates(lister):
    """Whoever quotes more decides anew, and says so on the page."""
    (name,) = under(lister, "BY-SA", "ODbL")
    values = set()
    for file in lister.cited_in()[name]:
        text = (ROOT / file).read_text("utf-8")
        if file.endswith(".csv"):
            values |= {line.split(",")[2].split()[0] for line in text.splitlines() if name in line}
        else:
            values |= set(re.findall(r'^gpu_\w+ += "([\d.]+) GB/s"', text, re.M))
    assert values == {"55.06", "55.43", "377.15", "359.05"}


@pytest.mark.parametrize("word", COPYLEFT)
def test_a_source_under_copyleft_is_decided_by_name(lister, word):
    for name in under(lister, word):
        assert f"**{name}" in PAGE or f", {name}**" in PAGE, name


def test_notice_credits_what_asks_for_credit(lister):
    for name in under(lister, "CC BY 4.0"):
        publisher = lister.sources()[name]["publisher"]
        assert publisher in NOTICE, name


def test_grids_say_the_licence_of_their_source(lister):
    sources = lister.sources()
    for line in (ROOT / "data" / "grids.csv").read_text("utf-8").splitlines()[1:]:
        source = re.search(r",(ember-owid|google-region-carbon|ccf-\w+),", line)
        assert source is not None, line
        licence = sources[source[1]]["licence"]
        assert licence.split(" (")[0] in line


@pytest.mark.slow
def test_the_wheel_says_and_carries_it(tmp_path):
    import subprocess
    import sys

    made = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        names = wheel.namelist()
        folder = next(name for name in names if name.endswith(".dist-info/METADATA"))
        about = message_from_bytes(wheel.read(folder))
        home = folder.removesuffix("METADATA")
        assert about["License-Expression"] == "Apache-2.0 AND CC-BY-4.0 AND CC0-1.0"
        assert about.get_all("License-File") == ["LICENSE", "NOTICE", "data/LICENSES.md"]
        assert wheel.read(f"{home}licenses/NOTICE").decode() == NOTICE
        assert wheel.read(f"{home}licenses/data/LICENSES.md").decode() == PAGE
        assert wheel.read("ckptcost/_bundled/data/LICENSES.md").decode() == PAGE
