"""Hashed numbers: strictly inside (0, 1), even, unrelated between runs, events, streams and seeds,
and each run's own."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest

from ckptcost.first.core.streams import GAPS, INPUTS, KINDS, NODES, OFFSETS, keys_of, mix, uniforms

RUNS = np.arange(20_000)


def test_splitmix64_is_the_published_one():
    """The first outputs of SplitMix64 from state 0, as in Vigna's reference code."""
    step = 0x9E3779B97F4A7C15
    states = np.array([(step * i) & (2**64 - 1) for i in (1, 2, 3)], dtype=np.uint64)
    assert [hex(int(x)) for x in mix(states)] == [
        "0xe220a8397b1dcdaf",
        "0x6e789e6aa1b965f4",
        "0x6c45d188009454f",
    ]


@pytest.mark.parametrize(
    ("seed", "stream", "event"),
    [(1, GAPS, 0), (1, KINDS, 0), (2**63 - 1, GAPS, 999_999), (0, NODES, 7)],
)
def test_even(seed, stream, event):
    u = uniforms(keys_of(seed, stream, RUNS), event)
    assert u.min() > 0
    assert u.max() < 1
    assert kstest(u, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(u[1:], u[:-1])[0, 1]) < 4 / np.sqrt(len(u))


def test_events_of_one_run_are_even_and_unrelated():
    key = keys_of(3, GAPS, np.array([17]))
    u = np.array([uniforms(key, event)[0] for event in range(5000)])
    assert kstest(u, "uniform").pvalue > 1e-3
    for lag in (1, 2, 7):
        assert abs(np.corrcoef(u[lag:], u[:-lag])[0, 1]) < 4 / np.sqrt(len(u))


def test_purposes_and_seeds_share_no_numbers():
    """Not even two runs that are each other's mirror: seed and run must not enter alike."""
    drawn = [
        uniforms(keys_of(seed, stream, RUNS), 0)
        for seed in (1, 2)
        for stream in (GAPS, KINDS, INPUTS, OFFSETS, NODES)
    ]
    correlation = np.corrcoef(np.array(drawn)) - np.eye(len(drawn))
    assert np.abs(correlation).max() < 4.5 / np.sqrt(len(RUNS))
    assert len(np.unique(np.concatenate(drawn))) == len(drawn) * len(RUNS)


def test_a_run_has_its_own_numbers():
    """Whatever its neighbours in the array are."""
    alone = uniforms(keys_of(9, GAPS, np.array([123])), 4)
    assert alone[0] == uniforms(keys_of(9, GAPS, RUNS), 4)[123]


def test_the_numbers_stay_as_they_are():
    """A new release must not change what a seed gives."""
    found = uniforms(keys_of(1, GAPS, np.arange(3)), 0)
    assert found.tolist() == [0.4007541778431443, 0.05505699424238869, 0.3085394233762098]
