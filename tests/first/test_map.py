"""docs/map.md: its picture is the one that the import contract gives, and every file and function
it names is there."""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "map.md").read_text("utf-8")
FLOWS = (ROOT / "docs" / "architecture.md").read_text("utf-8").partition("## Flows")[2]
MODULES = sorted(
    name
    for name in set(re.findall(r"\b[a-z_]+(?:\.\w+)+", FLOWS.split("```")[1]))
    if (ROOT / "ckptcost" / name.split(".")[0]).is_dir()
)
"""what the page of the architecture names in its flows: a module, or something in one"""
STEPS = re.findall(r"^\| .+ \| `(ckptcost/\S+\.py)` \| `(\w+)` \|$", PAGE, re.M)


@pytest.fixture(scope="module")
def drawing() -> ModuleType:
    spec = importlib.util.spec_from_file_location("drawing", ROOT / "docs" / "draw_map.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_picture_is_current(drawing):
    assert drawing.PICTURE.read_text("utf-8") == drawing.picture(), "run: python docs/draw_map.py"


def test_the_picture_shows_every_layer(drawing):
    shown = ElementTree.fromstring(drawing.picture())
    told = [text.text for text in shown.iter("{http://www.w3.org/2000/svg}text")]
    assert told == [name for names in drawing.layers() for name in names]
    packages = {path.stem for path in (ROOT / "ckptcost").iterdir() if path.stem[0] != "_"}
    assert set(told) == packages - {"py"}


def test_there_are_four_walks():
    assert len(STEPS) > 35
    assert PAGE.count("## Where a ") == 4


@pytest.mark.parametrize(("file", "name"), STEPS, ids=[":".join(step) for step in STEPS])
def test_what_a_walk_names_is_there(file, name):
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    assert name in {
        node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }


@pytest.mark.parametrize("name", MODULES)
def test_what_a_flow_names_is_there(name):
    place = ROOT / "ckptcost" / Path(*name.split("."))
    if not (place.is_dir() or place.with_suffix(".py").exists()):
        text = place.parent.with_suffix(".py").read_text("utf-8")
        assert re.search(rf"^(?:class|def) {place.name}\b|^    {place.name}\b", text, re.M)


def test_flows_name_many_modules():
    assert len(MODULES) > 30
