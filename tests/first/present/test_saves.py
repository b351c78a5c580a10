"""The lines that people read while checkpoints are written."""

from __future__ import annotations

from math import nan
from types import SimpleNamespace

import pytest

from ckptcost.first.jobs.probe import ProbeProgress
from ckptcost.first.jobs.progress import KnownSave
from ckptcost.first.present.saves import probing_text, save_text, status_text


@pytest.mark.parametrize(
    ("save", "text"),
    [
        (
            KnownSave("step_100", 48e6, 0.2, 0.31, ""),
            "step_100: 48 MB, written in 0.2 s, safe after 0.31 s (0.155 GB/s)",
        ),
        (KnownSave("a", 2e7, 0.063, 11.0, ""), "a: 20 MB, written in 0.063 s, safe after 11 s"),
        (KnownSave("a", 5e9, nan, 2.0, ""), "a: 5 GB, safe after 2 s (2.5 GB/s)"),
        (
            KnownSave("a", 5e9, 1.5, nan, ""),
            "a: 5 GB, written in 1.5 s, not known when it was safe",
        ),
        (KnownSave("a", nan, 1.5, 2.0, ""), "a: written in 1.5 s, safe after 2 s"),
        (KnownSave("a", 1e6, 0.0, 0.0, ""), "a: 1 MB, written in 0 s, safe after 0 s"),
        (KnownSave("a", nan, nan, nan, ""), "a: not known when it was safe"),
        (KnownSave("a", 1e6, 1.0, nan, "OSError"), "a: 1 MB, failed: OSError"),
        (KnownSave("a", nan, nan, nan, "OSError"), "a: failed: OSError"),
    ],
)
def test_a_checkpoint_in_a_line(save, text):
    assert save_text(save) == text


@pytest.mark.parametrize(
    ("told", "text"),
    [
        ((80.0, 3, 144e6, ["step_400"], []), "80 s, 3 checkpoints, 144 MB; saving step_400"),
        ((1.0, 1, 0.0, [], []), "1 s, 1 checkpoint"),
        ((1.0, 0, 0.0, [], []), "1 s, 0 checkpoints"),
        (
            (1.0, 1200, 1.0, ["a", "b", "c"], ["nvml", "rapl"]),
            "1 s, 1,200 checkpoints, 1 B; saving a, b; lost: nvml, rapl",
        ),
    ],
)
def test_the_state_in_a_line(told, text):
    assert status_text(*told) == text


def test_how_far_a_probe_is():
    io = SimpleNamespace(bytes_per_s=1.9e9)
    assert (
        probing_text(ProbeProgress(3, "load", 5, 12, io))
        == "reading round 3, 5 of 12 passes done; the last: 1.9 GB/s"
    )
    assert (
        probing_text(ProbeProgress(1, "save", 0, 12, None))
        == "writing round 1, 0 of 12 passes done"
    )


def test_a_save_that_returned_held_training_up():
    assert (
        save_text(KnownSave("a", 1e9, 1.0, 2.0, "", True))
        == "a: 1 GB, held up for 1 s, safe after 2 s (0.5 GB/s)"
    )
