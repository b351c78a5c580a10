"""Windows cut from one recording of the fake GPUs, against their exact joules: the whole way from
ctypes to an interval."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import build_fake
import numpy as np
import pytest

from ckptcost.first.core.channels import series
from ckptcost.first.core.counters import energy

pytestmark = pytest.mark.skipif(
    build_fake.compiler() is None, reason="no C compiler to build the fake libnvidia-ml.so.1 with"
)

SQUARE, CONSTANT, UNEVEN = (0, 1, 2, 3, 4, 5), 6, 7
SETTINGS = (
    "gpus=8 high_w=600 low_w=120 period_s=2 phase_step_s=0.29 tick_step_ms=13 "
    "period_s.6=0 high_w.6=400 "  # constant power
    "jitter_ms.7=20 tick_ms.7=60"  # a counter that ticks unevenly
)
BUDGET = {0.3: 0.06, 1.0: 0.02, 3.0: 0.005}
"""mean error, as a share of the true joules"""


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    library = build_fake.build(tmp_path_factory.mktemp("nvml"))
    script = Path(build_fake.SOURCE).with_name("nvml_record.py")
    command = [
        sys.executable,
        "-W",
        "error",
        str(script),
        "12",
        ",".join(map(str, BUDGET)),
        "70",
        "11",
    ]
    done = subprocess.run(
        command,
        env=build_fake.environment(library, SETTINGS),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def judged(recording):
    """For each window and GPU: its length, the GPU, the truth, our amount, and what a plain
    difference of the counter gives."""
    t_s, took_s, joules = (
        np.array(recording["t_s"]),
        np.array(recording["took_s"]),
        np.array(recording["joules"]),
    )
    rows = []
    for length, begin, end, exact in recording["windows"]:
        for gpu, truth in enumerate(exact):
            amount = energy(
                series(t_s, joules[:, gpu], took_s), begin, end, tick_s=0.1, resolution=1e-3
            )
            first, last = np.searchsorted(t_s, [begin, end], side="right") - 1
            rows.append((length, gpu, truth, amount, joules[last, gpu] - joules[first, gpu]))
    return rows


@pytest.mark.parametrize("length", BUDGET)
def test_mean_error_is_within_the_budget(judged, length):
    errors = [
        abs(amount.value - truth) / truth
        for of, gpu, truth, amount, _ in judged
        if of == length and gpu in SQUARE
    ]
    assert len(errors) >= 20
    assert np.mean(errors) < BUDGET[length]
    plain = [
        abs(naive - truth) / truth
        for of, gpu, truth, _, naive in judged
        if of == length and gpu in SQUARE
    ]
    assert np.mean(errors) < 0.6 * np.mean(plain)  # a plain difference is much worse


@pytest.mark.parametrize("length", BUDGET)
def test_constant_power_is_nearly_exact(judged, length):
    errors = [
        abs(amount.value - truth) / truth
        for of, gpu, truth, amount, _ in judged
        if of == length and gpu == CONSTANT
    ]
    assert np.mean(errors) < 0.02 * 0.3 / length


def test_the_interval_holds_the_truth(judged):
    for gpus in (SQUARE, (CONSTANT,), (UNEVEN,)):
        inside = [
            amount.low <= truth <= amount.high for _, gpu, truth, amount, _ in judged if gpu in gpus
        ]
        assert len(inside) >= 200
        assert np.mean(inside) >= 0.9
    wide = [
        (amount.high - amount.low) / truth
        for of, gpu, truth, amount, _ in judged
        if of == 3.0 and gpu in SQUARE
    ]
    assert np.mean(wide) < 0.05  # an interval that says nothing would hold everything


def test_every_window_is_covered_and_has_its_ticks(judged, recording):
    asked_s = np.array(recording["t_s"])
    edges = [window[1:3] for window in recording["windows"] for _ in window[3]]
    for (length, gpu, _, amount, _), (begin, end) in zip(judged, edges, strict=True):
        assert amount.coverage == 1.0
        assert amount.gaps == ()
        tick_s, soonest_s = (0.06, 0.04) if gpu == UNEVEN else (0.1, 0.1)
        inside = asked_s[(asked_s >= begin - tick_s) & (asked_s <= end + tick_s)]
        # who asks late on a busy machine sees several ticks as one
        hidden = np.floor(np.diff(inside) / soonest_s).sum()
        assert -2 - hidden <= amount.ticks - length / tick_s <= 2
