"""Packers that are killed, that meet each other, a full disk, and runs and stores that are not as
they should be."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from packable_runs import NEW_YEAR_NS, packable, save

from ckptcost.first.errors import MeterUnavailable, OutputError, RunFileError
from ckptcost.first.fleet.node_file import decode
from ckptcost.first.fleet.packing import NEWER, THERE, WRITTEN, pack_runs
from ckptcost.first.fleet.store import open_store
from ckptcost.first.runs.clocks import S
from ckptcost.first.runs.store import Kept, kept_at, list_runs

HOSTS = ("n1", "n2", "n3")
PACK = """
    import sys
    from pathlib import Path
    from ckptcost.first.fleet.packing import pack_runs
    from ckptcost.first.fleet.store import open_store
    from ckptcost.first.runs.store import kept_at
    packing = pack_runs(open_store(sys.argv[1], make=True), kept_at(Path(sys.argv[2])))
    print([put.outcome for put in packing.puts])
"""
KILLED_AT = """
    import os, signal
    import ckptcost.first.fleet.store
    calls, told = [], os.{call}
    def last(*words, **more):
        calls.append(words)
        if len(calls) == {nth}:
            os.kill(os.getpid(), signal.SIGKILL)
        return told(*words, **more)
    os.{call} = last
"""


@pytest.fixture
def folder(tmp_path):
    for n, host in enumerate(HOSTS):
        packable(
            tmp_path / "run",
            save("a", 20 + n, 25),
            save("b", 40, 45 + n),
            seconds=60.0,
            host=host,
            wall_ns=NEW_YEAR_NS - 30 * S,
        )
    return tmp_path / "run"


@pytest.fixture
def store(tmp_path):
    return open_store(str(tmp_path / "store"), make=True)


def child(program, store, folder, **more):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), store.url, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


def files_in(store):
    return {
        path.relative_to(store.url).as_posix(): path.read_bytes()
        for path in sorted(Path(store.url).rglob("*"))
        if path.is_file()
    }


def whole(tmp_path, folder):
    """What an undisturbed packer leaves."""
    other = open_store(str(tmp_path / "undisturbed"), make=True)
    pack_runs(other, kept_at(folder))
    return files_in(other)


@pytest.mark.parametrize(("call", "nth"), [("write", 1), ("fsync", 5), ("rename", 4)])
def test_kill_9_in_the_middle_leaves_a_store_and_the_next_packer_does_the_rest(
    tmp_path, store, folder, call, nth
):
    killed = child(
        textwrap.dedent(KILLED_AT.format(call=call, nth=nth)) + textwrap.dedent(PACK), store, folder
    )
    assert killed.wait(60) == -signal.SIGKILL, killed.communicate()
    killed.communicate()
    left = {
        entry.path: decode(store.read(entry.path)) for entry in store.listing()
    }  # each is whole
    assert len(left) < 6
    parts = [name for name in files_in(store) if "/." in name]
    assert parts or call == "fsync", (
        "it was not killed while it wrote"
    )  # the fifth sync is of a folder
    packing = pack_runs(store, kept_at(folder))
    outcomes = [put.outcome for put in packing.puts]
    assert outcomes.count(THERE) == len(left)
    assert outcomes.count(WRITTEN) == 6 - len(left)
    assert packing.swept == len(parts)
    assert files_in(store) == whole(tmp_path, folder)


def test_two_packers_at_once_leave_what_one_leaves(tmp_path, store, folder):
    both = [child(PACK, store, folder) for _ in range(2)]
    for one in both:
        _, err = one.communicate(timeout=60)
        assert one.returncode == 0, err
    assert files_in(store) == whole(tmp_path, folder)


def test_a_full_disk_is_told_and_what_was_there_stays(store, folder, tmp_path):
    one = tmp_path / "one"
    packable(one, save("a", 20, 25), seconds=60.0, host="n9")
    pack_runs(store, kept_at(one))
    before = files_in(store)

    def full():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    program = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n" + textwrap.dedent(
        PACK
    )
    _, err = (done := child(program, store, folder, preexec_fn=full)).communicate(timeout=60)
    assert done.returncode == 1
    assert "OutputError" in err
    assert files_in(store) == before
    assert [put.outcome for put in pack_runs(store, kept_at(folder)).puts] == [WRITTEN] * 6


def test_a_store_that_takes_nothing_ends_it_at_once(store, folder, monkeypatch):
    asked = []

    def put(self, path, data):
        asked.append(path)
        raise OutputError("no space")

    monkeypatch.setattr(type(store), "put", put)
    with pytest.raises(OutputError, match="no space"):
        pack_runs(store, kept_at(folder))
    assert len(asked) == 1


def test_a_run_that_cannot_be_read_costs_no_other(store, folder, tmp_path):
    silent = packable(tmp_path / "silent", seconds=60.0, run_id="cd" * 16)
    (file,) = silent.glob("*.jsonl")
    file.write_bytes(
        file.read_bytes().splitlines(keepends=True)[0]
    )  # a recorder that was killed at its first line
    gone = packable(tmp_path / "gone", seconds=60.0, run_id="ef" * 16)
    runs = [*kept_at(gone), *kept_at(silent), *kept_at(folder)]
    next(gone.glob("*.jsonl")).unlink()
    packing = pack_runs(store, runs)
    assert [(each.name, type(each.error)) for each in packing.failed] == [
        ("gone", RunFileError),
        ("silent", MeterUnavailable),
    ]
    assert [put.outcome for put in packing.puts] == [WRITTEN] * 6


def test_a_run_that_was_killed_as_soon_as_it_was_begun_is_named(store, tmp_path):
    brief = packable(tmp_path / "brief", seconds=2.0, asked=(1.9,), stop=False)
    packing = pack_runs(store, kept_at(brief))
    assert [(each.name, type(each.error)) for each in packing.failed] == [
        ("brief", MeterUnavailable)
    ]
    assert packing.puts == []


def test_one_host_without_readings_costs_no_other(store, folder):
    (file,) = folder.glob("n2*.jsonl")
    file.write_bytes(file.read_bytes().splitlines(keepends=True)[0])
    packing = pack_runs(store, kept_at(folder))
    assert [each.name for each in packing.failed] == ["run, host n2"]
    assert {put.host for put in packing.puts} == {"n1", "n3"}


def test_a_torn_line_and_a_flipped_byte_cost_those_lines_alone(store, folder):
    for file in folder.glob("*.jsonl"):
        raw = bytearray(file.read_bytes())
        raw[len(raw) // 2] ^= 1
        file.write_bytes(raw[:-7])
    packing = pack_runs(store, kept_at(folder))
    assert packing.failed == []
    assert len(packing.puts) == 6
    assert sum(put.rows for put in packing.puts) == 6


@pytest.mark.parametrize("harm", ["torn", "flipped", "empty", "foreign"])
def test_a_broken_file_in_the_store_is_written_anew(tmp_path, store, folder, harm):
    pack_runs(store, kept_at(folder))
    broken = store.listing()[0].path
    data = store.read(broken)
    harmed = {
        "torn": data[:-100],
        "flipped": data[:200] + bytes([data[200] ^ 1]) + data[201:],
        "empty": b"",
        "foreign": b"PAR1PAR1",
    }
    (Path(store.url) / broken).write_bytes(harmed[harm])
    packing = pack_runs(store, kept_at(folder))
    assert sorted(put.outcome for put in packing.puts) == [THERE] * 5 + [WRITTEN]
    assert files_in(store) == whole(tmp_path, folder)


def test_a_file_of_a_newer_version_stays(store, folder):
    pack_runs(store, kept_at(folder))
    path = store.listing()[0].path
    data = store.read(path).replace(b'"version": "1.0"', b'"version": "9.0"')
    (Path(store.url) / path).write_bytes(_sealed_anew(data))
    before = files_in(store)
    packing = pack_runs(store, kept_at(folder))
    assert sorted(put.outcome for put in packing.puts) == [THERE] * 5 + [NEWER]
    assert files_in(store) == before


def _sealed_anew(data):
    """As the writer of that version would have."""
    import struct
    from binascii import crc32

    length = struct.unpack_from("<I", data, len(data) - 8)[0]
    footer = len(data) - 8 - length
    return (
        data[: footer - 4]
        + struct.pack("<I", crc32(data[footer:], crc32(data[: footer - 4])))
        + data[footer:]
    )


def test_a_file_that_was_removed_comes_back(tmp_path, store, folder):
    pack_runs(store, kept_at(folder))
    (Path(store.url) / store.listing()[3].path).unlink()
    assert sorted(put.outcome for put in pack_runs(store, kept_at(folder)).puts) == [THERE] * 5 + [
        WRITTEN
    ]
    assert files_in(store) == whole(tmp_path, folder)


def test_a_clock_in_another_century_is_named(store, tmp_path):
    lost = packable(
        tmp_path / "lost",
        save("a", 20, 25),
        seconds=60.0,
        wall_ns=8_000_000_000 * S,
        run_id="cd" * 16,
    )
    fine = packable(tmp_path / "fine", save("a", 20, 25), seconds=60.0, host="n2")
    packing = pack_runs(store, [*kept_at(lost), *kept_at(fine)])
    assert [each.name for each in packing.failed] == ["lost"]
    assert "cannot be packed" in str(packing.failed[0].error)
    assert [put.host for put in packing.puts] == ["n2"]


def test_what_a_note_holds_that_is_none_of_a_launchers_is_unknown(store, tmp_path):
    packable(
        tmp_path / "run",
        save("a", 20, 25),
        seconds=60.0,
        job={"CKPTCOST_LABELS": "team=a\u202eb,nonsense,=x", "CKPTCOST_JOB": "a/../b"},
    )
    packing = pack_runs(store, kept_at(tmp_path / "run"))
    (put,) = packing.puts
    assert put.job == "a/../b"
    (entry,) = store.listing()
    assert Path(store.url).resolve() in (Path(store.url) / entry.path).resolve().parents
    assert dict(decode(store.read(entry.path)).head.labels) == {"team": "ab"}
    assert "nonsense" in packing.notes[0]


def test_the_same_label_on_all_runs_of_a_folder(store, tmp_path):
    for n in range(3):
        packable(tmp_path / "kept" / f"r{n}", save("a", 20, 25), seconds=60.0, run_id=f"{n}" * 32)
    listing = list_runs(tmp_path / "kept")
    assert all(isinstance(each, Kept) for each in listing.runs)
    assert [put.outcome for put in pack_runs(store, listing.runs).puts] == [WRITTEN] * 3
    assert len({entry.path for entry in store.listing()}) == 3
