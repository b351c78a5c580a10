"""Storage whose rate is known is measured right, and what a page cache hides is seen."""

from __future__ import annotations

import pytest
from throttled import throttled, why_not

from ckptcost.jobs.probe import ProbeRequest, probe, sums
from ckptcost.meters.found import Wanted
from ckptcost.savers.base import SaverSettings

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "none")


@pytest.fixture(autouse=True)
def own_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("CKPTCOST_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path / "user"))


def probed(directory, size_bytes, saver="direct", **more):
    asked = ProbeRequest(
        directory,
        size_bytes,
        ranks=2,
        saver=saver,
        rounds=1,
        small=False,
        pause_s=0.0,
        settings=SaverSettings(verify=False),
        **more,
    )
    return probe(asked, "block,writeback", Wanted())


@pytest.mark.parametrize("mb_per_s", [50, 100, 200])
def test_a_rate_that_is_known_is_measured_within_five_per_cent(tmp_path, mb_per_s):
    with throttled(tmp_path, mb_per_s * 1_000_000, 2_800_000_000) as point:
        # the controller lets a few slices of 0.1 s through at once: up to 0.3 s of a read, which
        # is little beside ten seconds
        written, read = sums(probed(point, mb_per_s * 10_000_000))
    assert written.rate_bytes_per_s == pytest.approx(mb_per_s * 1e6, rel=0.05)
    assert read.rate_bytes_per_s == pytest.approx(mb_per_s * 1e6, rel=0.05)


def test_a_buffered_save_returns_long_before_it_is_safe(tmp_path):
    with throttled(tmp_path, 50_000_000) as point:
        seen = probed(point, 250_000_000, "posix", read=False)
    (written,) = sums(seen)
    # the journal's commit and the wake of the write-back come on top: 0.25 s of 5 s on a busy
    # machine
    assert written.rate_bytes_per_s == pytest.approx(50e6, rel=0.1)
    assert written.returned_s < 0.5 * written.mean_s
    for window in seen.measured.windows:
        assert window.stall_s is not None
        assert window.drain_s is not None
        assert window.drain_s > window.stall_s
