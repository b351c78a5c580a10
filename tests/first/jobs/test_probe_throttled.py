"""Storage whose rate is known is measured right, and what a page cache hides is seen."""

from __future__ import annotations

import subprocess
import time

import pytest
from throttled import throttled, why_not

from ckptcost.first.jobs.probe import ProbeRequest, probe, sums
from ckptcost.first.meters.found import Wanted
from ckptcost.first.savers.base import SaverSettings

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


BLOCK = 4 << 20


def plain_rate(point, bytes_per_s, way):
    """What two plain programs get here and now in five seconds: where others use the processor,
    it is not the storage alone that holds everybody up."""
    blocks = int(5 * bytes_per_s / 2 / BLOCK)
    files = [point / f"plain-{number}" for number in range(2)]
    names = {
        "written": ["if=/dev/zero", "of={}", "oflag=direct"],
        "read": ["if={}", "of=/dev/null", "iflag=direct"],
    }[way]
    begun = time.monotonic()
    running = [
        subprocess.Popen(
            ["dd", f"bs={BLOCK}", f"count={blocks}", "status=none"]
            + [name.format(file) for name in names]
        )
        for file in files
    ]
    assert [each.wait() for each in running] == [0, 0]
    return 2 * blocks * BLOCK / (time.monotonic() - begun)


def assert_rate(rate, bytes_per_s, within, point, way):
    """What is known is what the storage gives to somebody who has a processor."""
    least = bytes_per_s
    if rate < (1 - within) * least:
        least = min(least, plain_rate(point, bytes_per_s, way))
    assert (1 - within) * least <= rate <= (1 + within) * bytes_per_s


@pytest.mark.parametrize("mb_per_s", [50, 100, 200])
def test_a_rate_that_is_known_is_measured_within_five_per_cent(tmp_path, mb_per_s):
    with throttled(tmp_path, mb_per_s * 1_000_000, 2_800_000_000) as point:
        # the controller lets a few slices of 0.1 s through at once: up to 0.3 s of a read, which
        # is little beside ten seconds
        written, read = sums(probed(point, mb_per_s * 10_000_000))
        assert_rate(written.rate_bytes_per_s, mb_per_s * 1e6, 0.05, point, "written")
        assert_rate(read.rate_bytes_per_s, mb_per_s * 1e6, 0.05, point, "read")


def test_a_buffered_save_returns_long_before_it_is_safe(tmp_path):
    with throttled(tmp_path, 50_000_000) as point:
        seen = probed(point, 250_000_000, "posix", read=False)
    (written,) = sums(seen)
    # copied to memory first, with the processor that there is; then the device takes 5 s, with the
    # journal's commit and the wake of the write-back on top: 0.25 s on a busy machine
    assert 250e6 / (written.mean_s - written.returned_s) == pytest.approx(50e6, rel=0.1)
    assert written.rate_bytes_per_s == pytest.approx(250e6 / written.mean_s)
    assert written.returned_s < 0.5 * written.mean_s
    for window in seen.measured.windows:
        assert window.stall_s is not None
        assert window.drain_s is not None
        assert window.drain_s > window.stall_s
