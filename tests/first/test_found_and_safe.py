"""Jobs that save as frameworks do, on file systems over a device of known speed: found, and never
called safe before they are."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest
from against_truth import ran
from throttled import MAKERS, overlaid, throttled, through_fuse, why_not

RATE = 40_000_000
NEAR_S = 0.1
CYCLE_S = 1.3
"""so long a small file that nobody synced may wait for whoever asks for write-back, and for its
turn"""
TURNS = (10, 50)
"""how often our threads have to wait for a processor until they know of a begin, and of safety:
on a busy machine they know late, and never early"""
TOOLS = {"xfs": "mkfs.xfs", "btrfs": "mkfs.btrfs", "fuse": "bindfs"}
WORDS = ("--saves", "2", "--rest", "1.5", "--bytes", "16000000")


@pytest.fixture
def storage(tmp_path):
    """A folder on a kind of file system, and one on the device below it (None where there is
    none)."""
    with ExitStack() as stack:

        def make(kind):
            if kind == "tmpfs":
                folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
                stack.callback(shutil.rmtree, folder)
                return folder, None
            if reason := why_not():
                pytest.skip(reason)
            if kind in TOOLS and shutil.which(TOOLS[kind]) is None:
                pytest.skip(f"{TOOLS[kind]} is not installed")
            point = stack.enter_context(
                throttled(tmp_path, RATE, kind=kind if kind in MAKERS else "ext4")
            )
            over = {"overlay": overlaid, "fuse": through_fuse}
            return stack.enter_context(over[kind](point)) if kind in over else point, point

        yield make


@pytest.mark.parametrize("synced", [False, True])
@pytest.mark.parametrize(
    ("kind", "way"),
    [
        ("ext4", "renamed"),
        ("ext4", "rotation"),
        ("xfs", "folder-renamed"),
        ("btrfs", "renamed"),
        ("overlay", "folder-renamed"),
        ("overlay", "renamed"),
        ("ext4", "appended"),
        ("xfs", "appended"),
    ],
)
def test_a_save_is_safe_when_the_device_has_it(tmp_path, storage, kind, way, synced):
    folder, device = storage(kind)
    found = ran(way, folder, tmp_path, device, *WORDS, *(["--sync"] if synced else []))
    assert found.others == 0
    for save in found.saves:
        assert save.said_bytes == save.bytes
        begin_late_s, safe_late_s = (turns * found.late_s for turns in TURNS)
        assert save.begin_s - NEAR_S < save.said_begin_s < save.begin_s + NEAR_S + begin_late_s
        assert save.safe_s is not None
        assert save.said_safe_s is not None, save.said_why
        assert save.said_safe_s > save.safe_s - NEAR_S, "safe before the device had it"
        assert save.said_safe_s < save.safe_s + CYCLE_S + safe_late_s


@pytest.mark.parametrize(("kind", "why"), [("tmpfs", "IN_MEMORY"), ("fuse", "UNKNOWN_FILE_SYSTEM")])
def test_where_nobody_can_tell_nothing_is_safe(tmp_path, storage, kind, why):
    folder, device = storage(kind)
    found = ran("renamed", folder, tmp_path, device, *WORDS)
    for save in found.saves:
        assert save.is_found
        assert save.said_bytes == save.bytes
        assert (save.said_safe_s, save.said_why) == (None, why)


def test_what_is_deleted_before_the_device_has_it_was_never_safe(tmp_path, storage):
    """Rotation that is faster than the storage: only the last save is left to become safe."""
    folder, device = storage("ext4")
    words = ("--saves", "3", "--rest", "0.6", "--bytes", "60000000")
    found = ran("rotation", folder, tmp_path, device, *words)
    for save in found.saves[:-1]:
        assert save.is_found
        assert save.said_safe_s is None
