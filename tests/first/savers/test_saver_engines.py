"""Both engines of our own: all bytes are there, the figures add up, every damage is found, and a
storage that refuses is said."""

from __future__ import annotations

import errno
import math
import mmap
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ckptcost.first.errors import InputError, OutputError
from ckptcost.first.savers import page_cache
from ckptcost.first.savers.base import FileShape, SaverSettings, Shape
from ckptcost.first.savers.blocks import buffers
from ckptcost.first.savers.buffered import Posix
from ckptcost.first.savers.content import Content
from ckptcost.first.savers.crew import Crew
from ckptcost.first.savers.direct import BUFFERED, Direct
from ckptcost.first.savers.page_cache import cached_bytes, drop
from ckptcost.first.savers.place import SavePlace
from ckptcost.first.savers.shapes import shape_of

SCRIPT = Path(__file__).with_name("probe_process.py")
SMALL = SaverSettings(block_bytes=64 << 10, depth=4)
ODD = Shape(
    (
        FileShape("empty", 0, 0, "other"),
        FileShape("byte", 1, 0, "other"),
        FileShape("page", 4096, 1, "weights"),
        FileShape("page-and-a-byte", 4097, 1, "weights"),
        FileShape("block", 64 << 10, 2, "optimizer"),
        FileShape("blocks-less-a-byte", (3 << 20) - 1, 2, "optimizer"),
        FileShape("blocks-and-some", (1 << 20) + 12345, 4, "optimizer"),
    )
)


@pytest.fixture(params=[Direct, Posix], ids=["direct", "posix"])
def saver(request):
    return request.param()


@pytest.fixture
def place(tmp_path):
    with SavePlace(tmp_path) as place:
        yield place


def direct_or_skip(place):
    """Some file systems that tests run on know no direct I/O."""
    try:
        os.close(os.open("owner", os.O_RDONLY | os.O_DIRECT, dir_fd=place.fd))
    except OSError:
        pytest.skip("no direct I/O on this file system")


def path_of(place, number, name):
    return Path(place.shown, place.name, f"save-{number}", name)


def probe(*words, before=()):
    done = subprocess.run(
        [*before, sys.executable, str(SCRIPT), *map(str, words)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode == 77:
        pytest.skip("this kernel has no seccomp filters")
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def in_tmpfs(directory, options):
    private = ["unshare", "-m"] if os.getuid() == 0 else ["unshare", "-rm"]
    script = f'mount -t tmpfs -o {options} none "$0" && exec "$@"'
    if (
        shutil.which("unshare") is None
        or subprocess.run(
            [*private, "sh", "-c", script, directory, "true"], check=False, capture_output=True
        ).returncode
    ):
        pytest.skip("no right to mount here")
    return (*private, "sh", "-c", script, str(directory))


@pytest.mark.parametrize("preallocate", [True, False])
@pytest.mark.parametrize(
    "settings",
    [
        SMALL,
        SaverSettings(block_bytes=4096, depth=3),
        SaverSettings(depth=1),
        SaverSettings(threads=2, depth=40),
    ],
)
def test_every_byte_is_there_whatever_the_sizes(saver, place, settings, preallocate):
    settings = replace(settings, preallocate=preallocate)
    saver.save(place, ODD, settings, 7)
    expected = Content(settings.seed, 7)
    for file in ODD.files:
        whole = np.empty(page_cache.pad(file.size_bytes), np.uint8)
        expected.fill(whole, file.name, 0)
        assert path_of(place, 7, file.name).read_bytes() == whole[: file.size_bytes].tobytes()
    assert sorted(os.listdir(path_of(place, 7, ""))) == sorted(file.name for file in ODD.files)
    saver.load(place, ODD, settings, 7)
    saver.verify(place, ODD, settings, 7)


def test_what_one_engine_wrote_the_other_reads(place):
    shape = shape_of(5_000_001, 2)
    Direct().save(place, shape, SMALL, 0)
    Posix().verify(place, shape, SaverSettings(block_bytes=12288), 0)
    Posix().save(place, shape, SMALL, 1)
    Direct().verify(place, shape, SaverSettings(block_bytes=20480, depth=3), 1)


def test_the_figures_of_a_save(saver, place):
    shape = shape_of(24 << 20, 3, straggler=4.0)
    settings = SaverSettings(block_bytes=256 << 10, depth=4)
    before = time.monotonic_ns()
    io = saver.save(place, shape, settings, 0)
    after = time.monotonic_ns()
    marks = dict(io.marks)
    assert list(marks) == ["written", "synced", "committed"]
    assert (
        before
        < io.begin_ns
        < io.returned_ns
        == marks["written"]
        < marks["synced"]
        < marks["committed"]
        == io.durable_ns
        < after
    )
    assert (io.bytes, io.files) == (24 << 20, 7)
    assert io.bytes_per_s == pytest.approx(io.bytes / io.duration_s)
    assert io.duration_s == (io.durable_ns - io.begin_ns) * 1e-9
    assert 0.0 < io.fsync_s < io.duration_s
    assert io.latencies_s.count == sum(
        -(-file.size_bytes // settings.block_bytes) for file in shape.files
    )
    assert (
        0.0
        < io.latencies_s.p50
        <= io.latencies_s.p95
        <= io.latencies_s.p99
        <= io.latencies_s.max
        < io.duration_s
    )
    assert 0.0 < io.depth <= 4.0
    assert len(io.by_rank_s) == 3
    assert max(io.by_rank_s) <= (marks["synced"] - io.begin_ns) * 1e-9
    assert min(io.by_rank_s) > 0.0
    assert io.cached_bytes is None


def test_the_figures_of_a_load(saver, place):
    shape = shape_of(24 << 20, 3)
    saver.save(place, shape, SMALL, 0)
    io = saver.load(place, shape, SMALL, 0)
    assert (io.bytes, io.files, io.durable_ns, io.marks, io.fsync_s) == (24 << 20, 7, None, (), 0.0)
    assert io.begin_ns < io.returned_ns
    assert io.duration_s == (io.returned_ns - io.begin_ns) * 1e-9
    assert io.latencies_s.count >= 24 << 20 >> 16
    assert 0.0 < max(io.by_rank_s) <= io.duration_s + 0.01
    assert 0.0 < io.depth <= 4.0


def test_a_rank_without_files_has_no_time(saver, place):
    saver.save(place, ODD, SMALL, 0)
    io = saver.load(place, ODD, SMALL, 0)
    assert math.isnan(io.by_rank_s[3])
    assert all(took_s > 0.0 for rank, took_s in enumerate(io.by_rank_s) if rank != 3)


def test_a_checkpoint_of_nothing(saver, place):
    shape = Shape((FileShape("a", 0, 0, "other"), FileShape("b", 0, 1, "other")))
    io = saver.save(place, shape, SMALL, 0)
    assert io.begin_ns <= io.returned_ns <= io.durable_ns
    assert (io.bytes, io.latencies_s.count) == (0, 0)
    assert saver.load(place, shape, SMALL, 0).returned_ns
    saver.verify(place, shape, SMALL, 0)


def test_never_more_in_flight_than_asked(place, monkeypatch):
    direct_or_skip(place)
    now, most, lock, real = [0], [0], threading.Lock(), os.pwrite

    def counted(fd, data, offset):
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.002)
        try:
            return real(fd, data, offset)
        finally:
            with lock:
                now[0] -= 1

    monkeypatch.setattr(os, "pwrite", counted)
    Direct().save(place, shape_of(8 << 20, 3), replace(SMALL, depth=5), 0)
    assert most[0] == 5


def test_requests_that_the_kernel_does_in_parts(saver, place, monkeypatch):
    """pwrite, write and preadv may do less than asked."""
    pwrite, write, preadv, readv = os.pwrite, os.write, os.preadv, os.readv
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: pwrite(fd, data[:8192], at))
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:5000]))
    monkeypatch.setattr(os, "preadv", lambda fd, into, at: preadv(fd, [into[0][:4096]], at))
    monkeypatch.setattr(os, "readv", lambda fd, into: readv(fd, [into[0][:4104]]))
    shape = shape_of(1_000_003, 2)
    saver.save(place, shape, SMALL, 0)
    saver.load(place, shape, SMALL, 0)
    saver.verify(place, shape, SMALL, 0)


@pytest.mark.parametrize("at", [0, 70_000, 1_000_002])
def test_a_flipped_bit_on_the_storage_is_found(saver, place, at):
    shape = Shape((FileShape("weights-00000", 1_000_003, 0, "weights"),))
    saver.save(place, shape, SMALL, 0)
    with path_of(place, 0, "weights-00000").open("r+b") as file:
        file.seek(at)
        was = file.read(1)[0]
        file.seek(at)
        file.write(bytes([was ^ 4]))
        os.fsync(file.fileno())
    saver.load(place, shape, SMALL, 0)
    with pytest.raises(
        OutputError, match=f"save-0: weights-00000: read back wrongly at offset {at}: .*not written"
    ):
        saver.verify(place, shape, SMALL, 0)


def test_a_block_of_the_save_before_is_found(saver, place):
    shape = shape_of(3 << 20, 1, files=1)
    saver.save(place, shape, SMALL, 0)
    saver.save(place, shape, SMALL, 1)
    old = path_of(place, 0, "weights-00000").read_bytes()
    with path_of(place, 1, "weights-00000").open("r+b") as file:
        file.seek(1 << 20)
        file.write(old[1 << 20 : (1 << 20) + 4096])
        os.fsync(file.fileno())
    with pytest.raises(OutputError, match=f"offset {1 << 20}: there is a block of an earlier save"):
        saver.verify(place, shape, SMALL, 1)


def test_two_blocks_that_changed_places_are_found(saver, place):
    shape = shape_of(3 << 20, 1, files=1)
    saver.save(place, shape, SMALL, 0)
    path = path_of(place, 0, "weights-00000")
    data = bytearray(path.read_bytes())
    data[65536:131072], data[131072:196608] = data[131072:196608], data[65536:131072]
    path.write_bytes(data)
    with pytest.raises(OutputError, match="offset 65536: there is a block"):
        saver.verify(place, shape, replace(SMALL, depth=1, threads=1), 0)


@pytest.mark.parametrize(
    ("length", "offset"), [(500_000, 500_000), (999_999, 999_999), (1_000_001, 1_000_000), (0, 0)]
)
def test_a_file_of_another_length_is_found(saver, place, length, offset):
    shape = Shape((FileShape("weights-00000", 1_000_000, 0, "weights"),))
    saver.save(place, shape, SMALL, 0)
    os.truncate(path_of(place, 0, "weights-00000"), length)
    for act in (saver.load, saver.verify):
        with pytest.raises(
            OutputError, match=f"offset {offset}: the file is {length} bytes long, not 1000000"
        ):
            act(place, shape, SMALL, 0)


def test_a_file_that_is_gone(saver, place):
    shape = shape_of(3 << 20, 2)
    saver.save(place, shape, SMALL, 0)
    path_of(place, 0, "optimizer-00001").unlink()
    for act in (saver.load, saver.verify):
        with pytest.raises(OutputError, match="load of save 0: optimizer-00001: it is gone"):
            act(place, shape, SMALL, 0)


def test_the_page_cache_is_empty_before_a_load(place):
    shape = shape_of(8 << 20, 2)
    Posix().save(place, shape, SMALL, 0)
    assert path_of(place, 0, "optimizer-00001").read_bytes()
    io = Posix().load(place, shape, SMALL, 0)
    if io.cached_bytes is None:
        pytest.skip("this kernel does not say what it caches")
    assert io.cached_bytes == 0 or "in the page cache" in io.notes[0]


def test_pages_that_stay_are_said(place):
    """Those that are mapped do not go."""
    shape = shape_of(4 << 20, 1, files=1)
    Posix().save(place, shape, SMALL, 0)
    path = path_of(place, 0, "weights-00000")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        assert sum(mapped[::4096]) >= 0
        io = Posix().load(place, shape, SMALL, 0)
    assert io.cached_bytes > 3 << 20
    assert "of the bytes were still in the page cache" in io.notes[0]


def test_mincore_tells_the_same_as_cachestat(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"x" * 1_000_001)
    fd = os.open(path, os.O_RDWR)
    try:
        assert cached_bytes(fd) == cached_bytes(fd, ask=9999) == 1_000_001
        os.fsync(fd)
        drop(fd)
        assert cached_bytes(fd) == cached_bytes(fd, ask=9999)
    finally:
        os.close(fd)


def test_direct_io_that_goes_through_the_page_cache_all_the_same(tmp_path):
    """A file system in memory takes O_DIRECT since Linux 6.6."""
    lines = probe("save_once", tmp_path, "direct", 4 << 20, before=in_tmpfs(tmp_path, "size=64m"))
    if "refuses direct I/O" in lines[0]:
        pytest.skip("this kernel's tmpfs refuses O_DIRECT")
    assert lines[0] == f"cached None {BUFFERED}"


def test_no_note_where_direct_is_direct(place):
    direct_or_skip(place)
    assert Direct().save(place, shape_of(4 << 20, 1), SMALL, 0).notes == ()


@pytest.mark.parametrize("engine", ["direct", "posix"])
@pytest.mark.parametrize("preallocate", [True, False])
def test_the_storage_is_full_in_the_midst(engine, preallocate, tmp_path):
    """Somebody else fills it meanwhile: the question for free space comes too early."""
    script = (
        "import os, sys\nsys.path.insert(0, sys.argv[1])\nfrom probe_process import"
        " *\nSavePlace.check_room = lambda self, size: None\n"
        "with SavePlace(sys.argv[2]) as place:\n    try:\n"
        "        SAVERS[sys.argv[3]]().save(place, shape_of(64 << 20, 2),"
        " SaverSettings(depth=3, preallocate=sys.argv[4] == 'True'), 0)\n"
        "    except CkptcostError as error:\n       "
        " print(type(error).__name__, error.exit_code, error)\n   "
        " print(*os.listdir(place.fd))\nprint('left', *os.listdir(sys.argv[2]))\n"
    )
    words = in_tmpfs(tmp_path, "size=16m")
    done = subprocess.run(
        [
            *words,
            sys.executable,
            "-c",
            script,
            str(SCRIPT.parent),
            str(tmp_path),
            engine,
            str(preallocate),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    first, second, third = done.stdout.splitlines()
    if "refuses direct I/O" in first:
        pytest.skip("this kernel's tmpfs refuses O_DIRECT")
    assert first.startswith(f"OutputError 4 {tmp_path}: save 0: "), done
    assert first.endswith(
        "no space is left on the file system. Give a smaller size, or another directory"
    )
    assert "optimizer-0000" in first or "weights-0000" in first
    assert (second, third) == ("owner", "left")


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EIO, "the storage reports an input/output error"),
        (errno.EDQUOT, "the quota of this user or project is used up"),
        (errno.ENOSPC, "no space is left"),
        (errno.EROFS, "the file system is mounted read-only"),
    ],
)
@pytest.mark.parametrize(
    ("engine", "call"), [("direct", "pwrite64"), ("direct", "fsync"), ("posix", "fsync")]
)
def test_the_kernel_refuses_in_mid_save(engine, call, number, words, tmp_path):
    first, second, third = probe("save_once", tmp_path, engine, 3 << 20, f"{call}:{number}")
    assert first.startswith(f"OutputError 4 {tmp_path}: save 1: ")
    assert words in first
    assert "optimizer-0000" in first or "weights-0000" in first or "metadata" in first
    assert (second, third) == ("saves owner save-0", "left")


@pytest.mark.parametrize(("engine", "call"), [("direct", "preadv2"), ("posix", "readv")])
def test_the_kernel_refuses_to_read(engine, call, tmp_path):
    first, *_, last = probe("save_once", tmp_path, engine, 3 << 20, f"{call}:{errno.EIO}")
    assert first.startswith(f"OutputError 4 {tmp_path}: load of save 1: ")
    assert "the storage reports an input/output error. The kernel's log" in first
    assert last == "left"


@pytest.mark.parametrize(
    "call",
    [f"openat:{errno.EINVAL}:{os.O_DIRECT}", f"pwrite64:{errno.EINVAL}", f"preadv2:{errno.EINVAL}"],
)
def test_where_direct_io_is_refused_the_remedy_is_said(call, tmp_path):
    first, *_, last = probe("save_once", tmp_path, "direct", 3 << 20, call)
    assert (
        first
        == f"InputError 2 {tmp_path}: the file system there refuses direct I/O (O_DIRECT). `--saver"
        " posix` writes through the page cache"
    )
    assert last == "left"


def test_a_kernel_that_does_not_say_what_it_caches_asks_the_older_call(tmp_path):
    lines = probe("save_once", tmp_path, "posix", 3 << 20, f"cachestat:{errno.ENOSYS}")
    assert lines[0].split()[:2] == ["cached", "0"]


def test_no_locks_there(tmp_path):
    assert probe("save_once", tmp_path, "posix", 3 << 20, f"flock:{errno.ENOSYS}")[-1] == "left"


def test_an_interrupt_during_a_long_fsync_does_not_wait_for_it(place, monkeypatch):
    """The files are cut, so that nothing is left to write: here the fsync that is under way sees
    its file empty."""
    sizes, real = [], os.fsync

    def slow(fd):
        if sizes:
            return real(fd)
        sizes.append(os.fstat(fd).st_size)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        end = time.monotonic() + 20
        while os.fstat(fd).st_size and time.monotonic() < end:
            time.sleep(0.005)
        sizes.append(os.fstat(fd).st_size)
        return None

    monkeypatch.setattr(os, "fsync", slow)
    with pytest.raises(KeyboardInterrupt):
        Posix().save(place, Shape((FileShape("a", 1 << 20, 0, "weights"),)), SMALL, 0)
    assert sizes == [1 << 20, 0]
    assert os.listdir(place.fd) == ["owner"]


def test_an_interrupt_ends_every_thread(saver, place, monkeypatch):
    begun, real = threading.Event(), Content.fill

    def slow(self, out, name, offset):
        begun.set()
        time.sleep(0.002)
        real(self, out, name, offset)

    monkeypatch.setattr(Content, "fill", slow)
    main = threading.main_thread().ident

    def interrupt():
        begun.wait(20)
        signal.pthread_kill(main, signal.SIGINT)
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            saver.save(place, shape_of(1 << 30, 4), SMALL, 0)
    finally:
        thread.join()
    ends_s = (
        time.monotonic() + 5
    )  # not by join: one that was interrupted while it was being started cannot be joined yet
    while any(thread.name == "ckptcost-saver" for thread in threading.enumerate()):
        assert time.monotonic() < ends_s
        time.sleep(0.002)
    assert os.listdir(place.fd) == ["owner"]


def open_files():
    return len(os.listdir("/proc/self/fd"))


def test_no_file_stays_open(saver, place, monkeypatch):
    shape = shape_of(2 << 20, 3)
    saver.save(place, shape, SMALL, 0)
    before = open_files()
    saver.save(place, shape, SMALL, 1)
    saver.load(place, shape, SMALL, 1)
    saver.verify(place, shape, SMALL, 1)
    os.truncate(path_of(place, 1, "optimizer-00002"), 5)
    with pytest.raises(OutputError):
        saver.verify(place, shape, SMALL, 1)

    def broken(fd):
        raise OSError(errno.EIO, "x")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OutputError, match="input/output error"):
        saver.save(place, shape, SMALL, 2)
    assert open_files() == before


def test_the_first_error_stops_the_others():
    crew, loops = Crew(), []

    def endless():
        while not crew.stopped:
            loops.append(1)
            time.sleep(0.001)

    def fails():
        raise OSError(errno.EIO, "first")

    hurried = []
    with pytest.raises(OSError, match="first"):
        crew.run([endless, endless, fails], lambda: hurried.append(1))
    assert hurried


def test_too_many_threads(monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(OSError, match="cannot start 1 threads"):
        Crew().run([lambda: None])


def test_buffers_are_aligned_apart_and_bounded():
    found = buffers(8192, 5)
    addresses = [buffer.ctypes.data for buffer in found]
    assert [len(buffer) for buffer in found] == [8192] * 5
    assert all(address % 4096 == 0 for address in addresses)
    assert (
        len(
            {
                address // 8192 if addresses[0] % 8192 == 0 else (address - addresses[0]) // 8192
                for address in addresses
            }
        )
        == 5
    )
    with pytest.raises(InputError, match="more than half of the memory"):
        buffers(1 << 30, 1024)
