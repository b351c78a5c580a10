"""The reference says what the program knows: python docs/make_reference.py renews it."""

from __future__ import annotations

import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


def script(name):
    spec = spec_from_file_location(name, DOCS / f"{name}.py")
    found = module_from_spec(spec)
    sys.modules[name] = found
    spec.loader.exec_module(found)
    return found


@pytest.mark.parametrize("name", ["commands.md", "job-file.md", "answer.md"])
def test_reference_is_what_the_program_says(name):
    written = (DOCS / "reference" / name).read_text("utf-8")
    assert written == script("make_reference").pages()[name]


def test_the_picture_is_the_plot_of_the_page():
    drawn = (DOCS / "screenshots" / "interval.svg").read_text("utf-8")
    assert drawn == script("make_pictures").picture()


def test_pages_quote_the_coverage_as_it_is():
    """In sentences of people: they are read again when the numbers change."""
    table = (DOCS / "coverage.md").read_text("utf-8")
    total = re.search(r"\| all \| \d+ of (\d+) \| (\d+ %)", table)
    held_back = re.search(r"\| all that test one range \| \d+ of \d+ \| (\d+ %)", table)
    for page in ("README.md", "CHANGELOG.md", "docs/method/draws.md"):
        said = (DOCS.parent / page).read_text("utf-8")
        assert f"{total[2]} of {total[1]} " in said, page
        assert held_back[1] in said, page
