"""How often the interval that is said of a save's joules holds the truth: a sample of the rows of docs/accuracy.md."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "benchmarks" / "meter_matrix.py"


def _matrix():
    spec = importlib.util.spec_from_file_location("meter_matrix", FILE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


matrix = _matrix()
SAMPLE = (
    "ticks 20 ms, lag 60 ms, jitter 30 ms, P 0.23 s",
    "ticks 100 ms, lag 0 ms, jitter 0 ms, P 1.7 s",
    "ticks 100 ms, lag 60 ms, jitter 0 ms, P 1.7 s",
    "ticks 100 ms, lag 100 ms, jitter 30 ms, P 3.4 s",
    "ticks 1000 ms, lag 30 ms, jitter 30 ms, P 0.23 s",
    "ticks 100 ms, lag 60 ms, asked every 1.7 s",
    "watts of 100 ms each 100 ms, P 1.7 s",
    "average over 1 s (GH200), P 0.23 s",
    "ticks 100 ms, lag 30 ms, polls up to 150 ms late",
    "ticks 1 ms, P 1.7 s, after a meter of 28 ms",
)
CASES = {case.name: case for case in matrix.cases()}


@pytest.mark.parametrize("name", SAMPLE)
def test_nine_of_ten_intervals_hold_the_truth(name):
    figures = matrix.row_of(CASES[name], each=3, recordings=3)["all"]
    assert figures.windows == 108
    assert figures.holds >= 0.9


def test_the_intervals_of_steady_power_are_narrow():
    figures = matrix.row_of(CASES["ticks 1 ms, constant power, after a meter of 28 ms"], 3, 3)
    assert figures["10 s"].width < 0.005
    assert figures["0.3 s"].mean < 0.01


def test_the_page_has_every_row():
    page = (FILE.parents[1] / "docs" / "accuracy.md").read_text("utf-8")
    assert [name for name in CASES if name not in page] == []
