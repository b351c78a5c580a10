"""The engines that use PyTorch and safetensors: what they write comes back exactly, every refusal
is in our words and leaves nothing."""

from __future__ import annotations

import errno
import io
import os
import resource
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ckptcost.first.errors import InputError, MeterUnavailable, OutputError
from ckptcost.first.savers import torch_state
from ckptcost.first.savers.base import FileShape, Saver, SaverSettings, Shape
from ckptcost.first.savers.content import Content
from ckptcost.first.savers.found import saver_of
from ckptcost.first.savers.page_cache import cached_bytes, drop
from ckptcost.first.savers.place import SavePlace
from ckptcost.first.savers.shapes import shape_of
from ckptcost.first.savers.torch_state import Streams, refusal

NAMES = ("torch_save", "safetensors", "torch_dcp", "torch_dcp_async")
SHAPE = shape_of(3_000_001, 2)
SETTINGS = SaverSettings(seed=7)


@pytest.fixture(params=NAMES)
def saver(request: pytest.FixtureRequest) -> Saver:
    try:
        return saver_of(request.param)
    except MeterUnavailable as absent:
        pytest.skip(f"{absent} (make torch)")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[SavePlace]:
    with SavePlace(tmp_path) as made:
        yield made
    assert os.listdir(tmp_path) == []


def names_in(place: SavePlace) -> set[str]:
    return set(os.listdir(place.fd)) - {"owner"}


def files_of(place: SavePlace, number: int) -> dict[str, Path]:
    """Through the open directory: the place is in nobody's way by name."""
    save = Path(f"/proc/self/fd/{place.fd}/save-{number}")
    return {path.name: path for path in save.iterdir()}


def largest(place: SavePlace, number: int) -> Path:
    return max(files_of(place, number).values(), key=lambda path: path.stat().st_size)


def lets_go(directory: Path) -> bool:
    """Whether the file system's pages can be dropped; those of one in memory cannot."""
    with (directory / "x").open("wb+") as file:
        file.write(b"1" * 65536)
        os.fsync(file.fileno())
        drop(file.fileno())
        left = cached_bytes(file.fileno())
    (directory / "x").unlink()
    return left == 0


def test_saves_and_comes_back(saver, place, tmp_path):
    for number in (3, 4):
        saved = saver.save(place, SHAPE, SETTINGS, number)
        assert names_in(place) == {f"save-{number}"}
        files = files_of(place, number)
        assert saved.files == len(files)
        assert saved.bytes == sum(path.stat().st_size for path in files.values())
        assert SHAPE.size_bytes < saved.bytes < SHAPE.size_bytes + 50_000
        assert saved.durable_ns is not None
        assert saved.begin_ns < saved.returned_ns < saved.durable_ns
        at = dict(saved.marks)
        assert saved.begin_ns < at["written"] <= at["synced"] <= at["committed"] == saved.durable_ns
        assert 0.0 < saved.fsync_s <= saved.duration_s
        assert len(saved.by_rank_s) == SHAPE.ranks
        assert all(0.0 < took_s <= saved.duration_s for took_s in saved.by_rank_s)
        assert saved.latencies_s.count == 0
        assert saved.notes

        loaded = saver.load(place, SHAPE, SETTINGS, number)
        assert (loaded.bytes, loaded.files, loaded.durable_ns) == (saved.bytes, saved.files, None)
        assert loaded.begin_ns < loaded.returned_ns
        assert loaded.cached_bytes is not None
        if lets_go(tmp_path):
            assert loaded.cached_bytes == 0
        saver.verify(place, SHAPE, SETTINGS, number)
        place.remove(number)
    assert names_in(place) == set()


def test_training_goes_on_before_it_is_safe(saver, place):
    saved = saver.save(place, SHAPE, SETTINGS, 1)
    at = dict(saved.marks)
    if saver.name == "torch_dcp_async":
        assert at["snapshotted"] == saved.returned_ns < at["written"]
    elif saver.name == "torch_dcp":
        assert saved.returned_ns <= at["written"]  # with its own fsync
    else:
        assert at["written"] == saved.returned_ns < at["synced"]


def test_a_fresh_engine_reads_what_another_wrote(saver, place):
    saver.save(place, SHAPE, SETTINGS, 1)
    fresh = type(saver)()
    fresh.load(place, SHAPE, SETTINGS, 1)
    fresh.verify(place, SHAPE, SETTINGS, 1)
    with pytest.raises(OutputError, match="read back wrongly at offset 0"):
        fresh.verify(place, SHAPE, SaverSettings(seed=8), 1)


def test_content_is_incompressible_and_new_in_each_save(saver, place):
    saver.save(place, SHAPE, SETTINGS, 1)
    one = largest(place, 1).read_bytes()
    place.remove(1)
    saver.save(place, SHAPE, SETTINGS, 2)
    two = largest(place, 2).read_bytes()
    assert len(zlib.compress(one, 1)) > 0.99 * len(one)
    pages = {one[at : at + 4096] for at in range(0, len(one) - 4096, 4096)}
    same = sum(two[at : at + 4096] in pages for at in range(0, len(two) - 4096, 4096))
    assert same <= 2  # of the header


def test_dtypes_are_a_training_states(place):
    saver = _or_skip("torch_save")
    import torch

    saver.save(place, SHAPE, SETTINGS, 1)
    found = {name: torch.load(path) for name, path in files_of(place, 1).items()}
    dtypes = {
        name: {str(tensor.dtype) for key, tensor in tensors.items() if ".rest" not in key}
        for name, tensors in found.items()
    }
    assert dtypes == {
        "metadata": {"torch.uint8"},
        "weights-00000": {"torch.bfloat16"},
        "weights-00001": {"torch.bfloat16"},
        "optimizer-00000": {"torch.float32"},
        "optimizer-00001": {"torch.float32"},
    }
    assert (
        sum(tensor.nbytes for tensors in found.values() for tensor in tensors.values())
        == SHAPE.size_bytes
    )


def test_the_files_have_the_shapes_names(place):
    for name in ("torch_save", "safetensors"):
        _or_skip(name).save(place, SHAPE, SETTINGS, 1)
        assert set(files_of(place, 1)) == {file.name for file in SHAPE.files}
        place.remove(1)


def test_any_size_and_number_of_threads(saver, place):
    odd = Shape(
        tuple(
            FileShape(f"f{size}", size, rank, "weights")
            for rank, size in enumerate((0, 1, 7, 8, 9, 4097))
        )
    )
    for threads in (0, 1, 3):
        saver.save(place, odd, SaverSettings(threads=threads), threads)
        saver.load(place, odd, SaverSettings(threads=threads), threads)
        saver.verify(place, odd, SaverSettings(threads=threads), threads)


def test_a_flipped_byte_is_found(saver, place):
    saver.save(place, SHAPE, SETTINGS, 1)
    path = largest(place, 1)
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 1]))
    with pytest.raises(
        OutputError,
        match=(
            r"optimizer-0000[01]: read back wrongly at offset \d+: there is something that was not"
            r" written"
        ),
    ):
        saver.verify(place, SHAPE, SETTINGS, 1)


def test_a_block_that_never_arrived_is_found(saver, place):
    saver.save(place, SHAPE, SETTINGS, 1)
    path = largest(place, 1)
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2 // 4096 * 4096)
        file.write(bytes(8192))
    with pytest.raises(OutputError, match=r"optimizer-0000[01]: read back wrongly at offset \d+"):
        saver.verify(place, SHAPE, SETTINGS, 1)


@pytest.mark.parametrize("left", [0, 0.5])
def test_a_file_cut_short_is_our_error(saver, place, left):
    saver.save(place, SHAPE, SETTINGS, 1)
    path = largest(place, 1)
    os.truncate(path, int(path.stat().st_size * left))
    for act in (saver.load, saver.verify):
        with pytest.raises(OutputError, match="save"):
            act(place, SHAPE, SETTINGS, 1)


def test_a_missing_file_is_our_error(saver, place):
    saver.save(place, SHAPE, SETTINGS, 1)
    largest(place, 1).unlink()
    for act in (saver.load, saver.verify):
        with pytest.raises(OutputError, match="gone"):
            act(place, SHAPE, SETTINGS, 1)


def test_another_checkpoints_file_is_our_error(saver, place):
    saver.save(place, SHAPE, SETTINGS, 1)
    other = Shape(
        tuple(
            file if file.rank else FileShape(file.name, file.size_bytes + 16, 0, file.kind)
            for file in SHAPE.files
        )
    )
    names = set(files_of(place, 1))
    for act in (saver.load, saver.verify):
        with pytest.raises(
            OutputError, match=r"save-1: .*([Ss]ize|read back wrongly: tensor other.0)"
        ):
            act(place, other, SETTINGS, 1)
    assert set(files_of(place, 1)) == names


@contextmanager
def longest_file(size_bytes: int) -> Iterator[None]:
    """Python ignores SIGXFSZ, so a write beyond it fails with EFBIG."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_refused_write_is_our_error_and_leaves_nothing(saver, place):
    with (
        longest_file(500_000),
        pytest.raises(OutputError, match="would become larger than allowed"),
    ):
        saver.save(place, SHAPE, SETTINGS, 1)
    assert names_in(place) == set()
    assert threading.active_count() == 1 or all(
        "saver" not in thread.name for thread in threading.enumerate()
    )
    saver.save(place, SHAPE, SETTINGS, 1)  # and it goes on
    saver.verify(place, SHAPE, SETTINGS, 1)


FULL = """
import os, sys
from ckptcost.first.errors import OutputError
from ckptcost.first.savers.base import SaverSettings
from ckptcost.first.savers.found import saver_of
from ckptcost.first.savers.place import SavePlace
from ckptcost.first.savers.shapes import shape_of
SavePlace.check_room = lambda *_: None  # somebody else takes the space after it was asked for
with SavePlace(sys.argv[1]) as place:
    for name in sys.argv[2:]:
        try:
            saver_of(name).save(place, shape_of(12 << 20, 3), SaverSettings(), 1)
        except OutputError as error:
            print(name, error)
        assert os.listdir(place.fd) == ["owner"], os.listdir(place.fd)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system, which takes root")
def test_a_full_disk(tmp_path):
    for name in NAMES:
        _or_skip(name)
    root = Path(__file__).resolve().parents[3]
    script = (
        f'mount -t tmpfs -o size=4m none {tmp_path} && exec "$0" -c "$1" {tmp_path}'
        f" {' '.join(NAMES)}"
    )
    command = ["unshare", "-m", "bash", "-c", script, sys.executable, FULL]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), *sys.path])}
    done = subprocess.run(
        command, cwd=root, env=env, capture_output=True, text=True, timeout=60, check=False
    )
    if "mount" in done.stderr and not done.stdout:
        pytest.skip(f"cannot mount: {done.stderr.strip()}")
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert said.keys() == set(NAMES), done.stderr
    assert all("no space is left on the file system" in words for words in said.values()), said


def test_no_word_on_a_thread_that_fails(place, monkeypatch, capfd):
    """DCP itself takes such a save for complete."""
    saver = _or_skip("torch_dcp")
    _spoil(saver, monkeypatch, "__0_1.distcp", OSError(5, "Input/output error"))
    with pytest.raises(OutputError, match="the storage reports an input/output error"):
        saver.save(place, SHAPE, SETTINGS, 1)
    assert names_in(place) == set()
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("name", ["torch_dcp", "torch_dcp_async"])
@pytest.mark.parametrize("file", ["__0_0.distcp", ".metadata.tmp"])
def test_ctrl_c_stays_ctrl_c(place, monkeypatch, name, file):
    saver = _or_skip(name)
    _spoil(saver, monkeypatch, file, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        saver.save(place, Shape(SHAPE.of_rank(0)), SETTINGS, 1)
    assert names_in(place) == set()


def _spoil(saver: Saver, monkeypatch: pytest.MonkeyPatch, name: str, error: BaseException) -> None:
    """The file of that name can be opened, and no write succeeds."""
    filesystem = saver._filesystem
    right = filesystem.create_stream

    @contextmanager
    def late(self, path, mode):
        with right(self, path, mode) as stream:
            yield _Refusing(stream, error) if path.name == name else stream

    monkeypatch.setattr(filesystem, "create_stream", late)


class _Refusing:
    def __init__(self, stream, error):
        self._stream, self._error = stream, error

    def write(self, data):
        raise self._error

    def __getattr__(self, name):
        return getattr(self._stream, name)


def _or_skip(name: str) -> Saver:
    try:
        return saver_of(name)
    except MeterUnavailable as absent:
        pytest.skip(f"{absent} (make torch)")


def test_streams_keep_an_error_for_the_driver():
    streams = Streams()

    @contextmanager
    def file():
        yield io.BytesIO()

    with streams.one("a", file()):
        raise OSError(28, "full")
    with streams.one("b", file()) as stream:
        assert stream.write(b"12345") == stream.tell() == 5
    assert [error.errno for error in streams.problems] == [28]
    assert list(streams.ended) == ["b"]

    @contextmanager
    def none():
        raise OSError(24, "too many")
        yield

    with pytest.raises(OSError, match="too many"), streams.one("c", none()):
        pass
    assert [error.errno for error in streams.problems] == [28, 24]


def test_streams_let_ctrl_c_through_however_it_is_wrapped():
    wrapped = RuntimeError("unexpected pos 704 vs 598")
    wrapped.__context__ = KeyboardInterrupt()

    @contextmanager
    def file():
        yield io.BytesIO()

    streams = Streams()
    with pytest.raises(RuntimeError, match="unexpected pos"), streams.one("a", file()):
        raise wrapped
    streams.close()


def test_streams_close_waits_for_the_open_ones_and_opens_no_more():
    streams, go, opened, after = Streams(), threading.Event(), threading.Event(), []

    @contextmanager
    def file():
        yield io.BytesIO()

    def write():
        with streams.one("a", file()) as stream:
            stream.write(b"1")
            opened.set()
            go.wait(10)
            after.append("going on")
            stream.write(b"2")
            after.append("never")

    writer = threading.Thread(target=write)
    writer.start()
    opened.wait(10)
    closer = threading.Thread(target=lambda: (streams.close(), after.append("closed")))
    closer.start()
    closer.join(0.05)
    assert after == []
    go.set()
    closer.join(10)
    writer.join(10)
    assert after == ["going on", "closed"]
    assert [error.errno for error in streams.problems] == [errno.ECANCELED]
    with pytest.raises(SystemExit), streams.one("b", file()):
        pass


class _Failures(BaseException):
    """As a CheckpointException."""

    failures = {0: (OSError(122, "Disk quota exceeded"), "stack")}  # noqa: RUF012


def test_refusals_are_found_in_what_the_libraries_raise(place):
    with place.saving(1, 0) as save:
        assert refusal(_Failures(), save, "saving").errno == 122
        assert (
            refusal(
                RuntimeError("I/O error: Input/output error (os error 5)"), save, "saving"
            ).errno
            == 5
        )
        torchs = RuntimeError("unexpected pos 64 vs 0")
        torchs.__context__ = OSError(28, "No space left on device")
        assert refusal(torchs, save, "saving").errno == 28
        assert refusal(FileNotFoundError("No such file: x"), save, "loading").errno == 2
        torchs.__context__ = KeyboardInterrupt()
        assert isinstance(refusal(torchs, save, "saving"), KeyboardInterrupt)
        unknown = refusal(
            RuntimeError("unexpected pos 64 vs 0"), save, "torch.save of x", 5_000_000
        )
        assert isinstance(unknown, OutputError)
        assert "torch.save of x failed: unexpected pos 64 vs 0" in str(unknown)
        save.commit()


@pytest.mark.parametrize("name", NAMES)
def test_without_the_library_it_says_what_to_do(name, monkeypatch):
    for module in ("torch", "torch.distributed.checkpoint"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MeterUnavailable) as caught:
        saver_of(name)
    assert caught.value.reason == "torch is not installed"
    assert caught.value.remedy == "pip install 'ckptcost[torch]'"


def test_without_safetensors(monkeypatch):
    _or_skip("torch_save")
    for module in ("safetensors", "safetensors.torch"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        MeterUnavailable, match=r"safetensors is not installed. pip install 'ckptcost\[torch\]'"
    ):
        saver_of("safetensors")


def test_a_library_that_does_not_load(monkeypatch, tmp_path):
    (tmp_path / "half_a_library.py").write_text(
        "raise OSError('libsomething.so: cannot open shared object file')"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MeterUnavailable, match=r"half_a_library cannot be loaded: libsomething.so"):
        torch_state.library("half_a_library")


def test_nothing_loads_torch_before_it_is_asked_for():
    program = "import sys, ckptcost.first.savers.torch_savers; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == 0


def test_a_state_larger_than_memory_is_refused(tmp_path):
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:  100 kB\nMemAvailable:      1000 kB\n")
    torch_state._check_memory(1_024_000, meminfo)
    with pytest.raises(
        InputError,
        match=(
            r"0.00102 GB, do not fit in memory, of which 0.00102 GB are free. give a smaller size"
        ),
    ):
        torch_state._check_memory(1_024_001, meminfo)
    with pytest.raises(InputError, match="do not fit in memory"):
        torch_state._check_memory(1 << 60)


def test_parts_cover_a_file_exactly():
    for size in (0, 1, 8, 9, torch_state.TENSOR_BYTES, 2 * torch_state.TENSOR_BYTES + 15):
        parts = list(torch_state.parts_of(FileShape("x", size, 0, "optimizer")))
        edges = [0]
        for part in parts:
            assert part.offset == edges[-1]
            assert part.offset % 8 == 0
            assert 0 < part.size_bytes <= torch_state.TENSOR_BYTES
            edges.append(part.offset + part.size_bytes)
        assert edges[-1] == size
        assert len({part.key for part in parts}) == len(parts)


def test_check_names_a_tensor_that_is_missing_or_another():
    _or_skip("torch_save")
    import torch

    file, content = FileShape("weights-00000", 64, 0, "weights"), Content(0, 0)
    with pytest.raises(
        OutputError,
        match=r"here: weights-00000: read back wrongly: tensor weights.0 at offset 0 is missing",
    ):
        torch_state.check({}, file, content, "here")
    with pytest.raises(OutputError, match=r"is 64 bytes of torch.float32"):
        torch_state.check({"weights.0": torch.zeros(16)}, file, content, "here")
    with pytest.raises(OutputError, match=r"is 32 bytes of torch.bfloat16"):
        torch_state.check(
            {"weights.0": torch.zeros(16, dtype=torch.bfloat16)}, file, content, "here"
        )
