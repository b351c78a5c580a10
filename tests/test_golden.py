"""A few outputs, byte for byte. After a meant change: pytest tests/test_golden.py --update-golden, and read the difference."""

from __future__ import annotations

import pytest

OUTPUTS = {
    "model.txt": ["model"],
    "model.csv": ["model", "-f", "csv"],
    "model-async-two-tiers.txt": ["model", "-s", "small-8b", "--set", "policy.mode=async", "--against", "local-nvme"],
    "sweep.txt": ["sweep", "--over", "tier=nas-hdd,generic-pfs,ddn-exascaler-20,ddn-exascaler-40", "--over", "saves=10:200:95"],
    "model-one-tier.md": ["model", "--tier", "ddn-exascaler-20", "--saves", "100", "-f", "md"],
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_output(cli, golden, name):
    done = cli(*OUTPUTS[name])
    assert (done.code, done.err) == (0, "")
    golden(name, done.out)
    if name.endswith(".txt"):
        assert [line for line in done.out.splitlines() if len(line) > 80] == []
