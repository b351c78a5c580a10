"""A store: names that lead nowhere else, files that are whole or not there, and a listing that
knows its own."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import pickle
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptcost.first.catalog import writing
from ckptcost.first.errors import InputError, MeterUnavailable, OutputError
from ckptcost.first.fleet import store as stores
from ckptcost.first.fleet.node_day import NodeDayHead
from ckptcost.first.fleet.store import Remote, Store, StoreEntry, folder_of, open_store

DAYS = ("2026-11-19", "2026-11-20", "2026-11-21")


@pytest.fixture
def store(tmp_path):
    return open_store(str(tmp_path / "fleet"), make=True)


@pytest.fixture
def far(request):
    pytest.importorskip("fsspec", reason="fsspec is not installed")
    import fsspec

    yield open_store("memory://tests/fleet", make=True)
    fsspec.filesystem("memory").rm("/tests", recursive=True)


@pytest.fixture(params=["folder", "memory"])
def either(request):
    return request.getfixturevalue("store" if request.param == "folder" else "far")


def head(job="llama", host="n1", day=DAYS[1], run="0123456789abcdef"):
    return NodeDayHead(job, run, host, day)


def filled(store, jobs=("b", "a/x"), hosts=("n1", "n2"), days=DAYS):
    for job in jobs:
        for day in days:
            for host in hosts:
                store.put(store.path_of(head(job, host, day)), f"{job} {day} {host}".encode())
    return store


def everything(folder):
    return sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*"))


def test_what_was_put_is_listed_and_read(either):
    filled(either)
    found = either.listing()
    assert [(entry.job, entry.day) for entry in found] == [
        (job, day) for job in ("a/x", "b") for day in DAYS for _ in (1, 2)
    ]
    assert found == sorted(found, key=lambda entry: entry[1:3] + entry[:1])
    for entry in found:
        data = either.read(entry.path)
        assert data.decode() == f"{entry.job} {entry.day} {'n1' if '/n1-' in entry.path else 'n2'}"
        assert entry.bytes == len(data)
    assert either.strange() == []


def test_put_again_is_the_last_word(either):
    path = either.path_of(head())
    either.put(path, b"first, and longer")
    either.put(path, b"last")
    assert either.read(path) == b"last"
    assert [entry.bytes for entry in either.listing()] == [4]


@pytest.mark.parametrize(
    ("since", "until", "jobs", "count"),
    [
        ("", "", (), 12),
        (DAYS[1], "", (), 8),
        ("", DAYS[1], (), 8),
        (DAYS[1], DAYS[1], (), 4),
        (DAYS[2], DAYS[0], (), 0),
        ("", "", ("a/x",), 6),
        (DAYS[0], DAYS[0], ("b",), 2),
        ("", "", ("c",), 0),
        ("", "", ("b", "a/x", "b"), 12),
        ("2030-01-01", "", (), 0),
    ],
)
def test_a_part_of_it(either, since, until, jobs, count):
    found = filled(either).listing(since, until, jobs)
    assert len(found) == count
    assert all(
        (not since or entry.day >= since) and (not until or entry.day <= until) for entry in found
    )
    assert not jobs or {entry.job for entry in found} <= set(jobs)


def test_other_folders_are_not_looked_into(store, monkeypatch):
    filled(store)
    seen = []
    scan = os.scandir
    monkeypatch.setattr(
        stores.os,
        "scandir",
        lambda path: seen.append(str(path).removeprefix(store.url)) or scan(path),
    )
    store.listing(DAYS[1], DAYS[1], ["b"])
    assert seen == ["/job=b", f"/job=b/day={DAYS[1]}"]


@pytest.mark.parametrize("day", ["2026-11", "20261120", "2026-02-30", "yesterday", "2026-W47-5"])
def test_a_day_that_is_none(store, day):
    with pytest.raises(InputError, match=r"since: no day: .*as 2026-11-20"):
        store.listing(since=day)
    with pytest.raises(InputError, match="until: no day"):
        store.listing(until=day)
    with pytest.raises(ValueError, match="no day"):
        store.path_of(head(day=f"{day}/.."))


NAMES = [
    "",
    "-",
    ".",
    "..",
    "../../etc",
    "a/b",
    "a b",
    "a%2Fb",
    "ä✓",
    "_x",
    "__HIVE_DEFAULT_PARTITION__",
    "job=x",
    "a\nb\0c",
    "~",
    "a" * 180,
    "\\",
    "C:",
]


@pytest.mark.parametrize("job", NAMES)
def test_names_of_jobs(either, job):
    path = either.path_of(head(job, host=job))
    either.put(path, b"x")
    assert [entry.job for entry in either.listing()] == [job]
    assert either.listing(jobs=[job]) == either.listing()
    assert (path.count("/"), either.strange()) == (2, [])
    if isinstance(either._place, stores.Folder):
        assert everything(either.url) == sorted(
            ["_store.json", path.split("/")[0], path.rpartition("/")[0], path]
        )


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=300), st.text(max_size=300))
def test_any_name_is_one_folder_that_says_it(one, other):
    """Two names never share one; what can be said whole is said whole."""
    name = folder_of(one)
    assert len(name.encode()) <= 200
    assert "/" not in name
    assert not name.startswith((".", "_"))
    assert (name == folder_of(other)) == (
        one.encode("utf-8", "backslashreplace") == other.encode("utf-8", "backslashreplace")
    )
    spelled_out = quote(one, safe="", errors="backslashreplace")
    if len(spelled_out) < 180 and name != "-":
        assert unquote(name) == one
    path = Store("", stores.Folder("/")).path_of(head(one, host=other, run=one))
    assert all(
        0 < len(piece) <= 200 and piece[0] not in "._" and piece.isascii() and piece.isprintable()
        for piece in path.split("/")
    )
    assert path.count("/") == 2


def test_names_too_long(store):
    jobs = ["ä" * 300, "ä" * 299 + "b", "." * 300]
    for job in jobs:
        store.put(store.path_of(head(job, host="h" * 300, run="/" * 40)), b"x")
    found = store.listing()
    assert len({entry.job for entry in found}) == 3
    for job in jobs:
        (only,) = store.listing(jobs=[job])
        assert only in store.listing(jobs=[only.job]), "the name that the listing says does as well"
    assert len(store.listing(jobs=jobs)) == 3
    assert store.strange() == []


def test_runs_and_hosts_are_told_apart(store):
    """By more than what is readable of them."""
    same = [
        head(),
        head(host="n2"),
        head(run="0123456789abcdeg"),
        head(run="x"),
        head(host="h" * 100),
        head(host="h" * 101),
        head(host="n1-0"),
    ]
    assert len({store.path_of(each) for each in same}) == len(same)
    assert store.path_of(head()) == store.path_of(head())


def test_what_does_not_belong_is_named(store):
    (good,) = filled(store, ["a"], ["n1"], DAYS[:1]).listing()
    root = Path(store.url)
    day = root / "job=a" / f"day={DAYS[0]}"
    odd = [
        "README",
        "jobs/x.parquet",
        "job=a b/day=2026-11-20/x.parquet",
        "job=%zz/day=2026-11-20/x.parquet",
        "job=%2e/day=2026-11-20/x.parquet",
        "job=/day=2026-11-20/x.parquet",
        "job=a/x.parquet",
        "job=a/day=2026-13-01/x.parquet",
        "job=a/2026-11-20/x.parquet",
        f"job=a/{day.name}/x.csv",
        f"job=a/{day.name}/deeper/x.parquet",
        f"job=a/{day.name}/folder.parquet/x",
    ]
    for name in odd:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"x")
    for name in (".hidden.parquet", ".x.parquet.0.part"):
        (day / name).write_bytes(b"x")
    os.mkfifo(day / "pipe.parquet")
    (day / "nowhere.parquet").symlink_to("not there")
    (day / "itself.parquet").symlink_to("itself.parquet")
    (root / "job=loop").symlink_to(root)
    assert store.listing() == [good]
    assert store.strange() == sorted(
        [
            "README",
            "jobs",
            "job=a b",
            "job=%zz",
            "job=%2e",
            "job=",
            "job=a/x.parquet",
            "job=a/day=2026-13-01",
            "job=a/2026-11-20",
            f"job=a/{day.name}/x.csv",
            f"job=a/{day.name}/deeper",
            f"job=a/{day.name}/folder.parquet",
            f"job=a/{day.name}/pipe.parquet",
            f"job=a/{day.name}/nowhere.parquet",
            f"job=a/{day.name}/itself.parquet",
            "job=loop/README",
            "job=loop/jobs",
            "job=loop/_store.json",
            *(f"job=loop/job={name}" for name in ("", "%2e", "%zz", "a", "a b", "loop")),
        ]
    )


def test_older_jobs_on_another_disk(store, tmp_path):
    """A link to a folder is one."""
    filled(store)
    before = store.listing()
    shutil.move(Path(store.url) / "job=b", tmp_path / "elsewhere")
    (Path(store.url) / "job=b").symlink_to(tmp_path / "elsewhere")
    assert store.listing() == before


def test_what_is_gone_when_it_is_read(either):
    (entry,) = filled(either, ["a"], ["n1"], DAYS[:1]).listing()
    with pytest.raises(InputError, match=r"day=2026-11-19/n9\.parquet: is not there any more"):
        either.read(entry.path.rpartition("/")[0] + "/n9.parquet")


def test_a_store_travels(either):
    filled(either)
    other = pickle.loads(pickle.dumps(either))
    assert (other.url, other.listing()) == (either.url, either.listing())
    assert other.read(other.listing()[0].path) == b"a/x 2026-11-19 n1"


def test_it_is_the_same_place_in_a_worker_that_stands_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = filled(open_store("fleet", make=True))
    monkeypatch.chdir("/")
    assert len(pickle.loads(pickle.dumps(store)).listing()) == 12
    assert store.url == str(tmp_path / "fleet")
    assert open_store(f"file://{tmp_path}/fleet").listing() == store.listing()


# opening


def test_a_folder_that_is_no_store(tmp_path):
    for url in (str(tmp_path), str(tmp_path / "none"), "memory://none"):
        with pytest.raises(
            InputError,
            match=r"is no store: there is no _store\.json in it\. `ckptcost runs pack --store DIR`",
        ):
            open_store(url)
    assert everything(tmp_path) == []
    with pytest.raises(InputError, match="a store has a name"):
        open_store("")


def test_made_twice(either):
    told = filled(either).read("_store.json")
    assert json.loads(told) == {"format": "ckptcost.store", "version": "1.0"}
    again = open_store(either.url, make=True)
    assert again.listing() == either.listing() == open_store(either.url).listing()
    assert again.read("_store.json") == told


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            '{"format": "ckptcost.store", "version": "2.0"}',
            r"is a store of version '2\.0', this program reads 1\.x\. use a newer ckptcost",
        ),
        ('{"format": "ckptcost.store", "version": 1}', "is not that of a store"),
        ('{"format": "shop", "version": "1.0"}', "is not that of"),
        ("", "is not that of"),
        ("[]", "is not that of"),
        ("{}", "is not that of"),
        ("\x00" * 50, "is not that of"),
        ("[" * 100_000, "is not that of"),
    ],
)
def test_a_store_that_is_not_ours_to_read(either, text, words):
    either.put("_store.json", text.encode())
    for make in (False, True):
        with pytest.raises(InputError, match=words):
            open_store(either.url, make=make)
    assert either.read("_store.json") == text.encode(), "what is there is nobody's to mend"


def test_a_newer_minor_version_is_read(either):
    either.put("_store.json", b'{"format": "ckptcost.store", "version": "1.9", "more": 1}')
    assert open_store(either.url).listing() == []


def test_places_that_cannot_be():
    pytest.importorskip("fsspec", reason="fsspec is not installed")
    with pytest.raises(InputError, match="is no place that fsspec knows"):
        open_store("nonsense://x/y", make=True)


def test_without_fsspec(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(
        MeterUnavailable,
        match=r"s3://bucket is reached by fsspec, .*pip install 'ckptcost\[fleet\]'",
    ):
        open_store("s3://bucket", make=True)
    assert open_store(str(tmp_path), make=True).listing() == []


def test_a_folder_needs_no_fsspec(tmp_path):
    """Nor pandas nor pyarrow: what a node writes with starts quickly."""
    text = f"""import sys
from ckptcost.first.fleet.store import open_store
open_store({str(tmp_path)!r}, make=True).listing()
print(*sys.modules)"""
    loaded = subprocess.run(
        [sys.executable, "-c", text], check=True, capture_output=True, text=True
    ).stdout.split()
    assert not {"fsspec", "pandas", "pyarrow", "numpy.testing", "dask"} & set(loaded)


def test_a_driver_that_fails(far, monkeypatch):
    """They raise what they like; here it has a place and a sentence."""

    def fails(*args, **more):
        raise RuntimeError("SlowDown")

    with monkeypatch.context() as patch:
        for name in ("ls", "cat_file", "pipe_file"):
            patch.setattr(type(far._place._files), name, fails)
        with pytest.raises(
            InputError, match=r"memory://tests/fleet: cannot be listed \(SlowDown\)"
        ):
            far.listing()
        with pytest.raises(
            InputError, match=r"memory://tests/fleet/x: cannot be read \(SlowDown\)"
        ):
            far.read("x")
        with pytest.raises(
            OutputError, match=r"memory://tests/fleet/x: could not be written \(SlowDown\)"
        ):
            far.put("x", b"")


def test_where_folders_are_more_than_names(tmp_path):
    """A driver that makes none by itself, as sftp."""
    pytest.importorskip("fsspec", reason="fsspec is not installed")
    store = filled(Store("far", Remote(f"file://{tmp_path}")))
    assert [entry.path for entry in store.listing()] == [
        entry.path for entry in Store("", stores.Folder(str(tmp_path))).listing()
    ]
    assert len(store.listing()) == 12


# writing, when it does not go well


def is_root():
    return os.geteuid() == 0


def test_a_really_full_disk(tmp_path):
    if not is_root() or shutil.which("mount") is None:
        pytest.skip("only root can mount a small disk")
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)],
        check=False,
        capture_output=True,
        text=True,
    )
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a small disk here: {mounted.stderr.strip()}")
    try:
        store = open_store(str(disk / "fleet"), make=True)
        path = store.path_of(head())
        store.put(path, b"x" * 100_000)
        before = everything(disk)
        for target in (path, store.path_of(head(host="n2"))):
            with pytest.raises(
                OutputError,
                match=(
                    r"fleet/job=llama/day=2026-11-20/n.*\.parquet: could not be written \(No space"
                    r" left on device\)"
                ),
            ):
                store.put(target, b"y" * 200_000)
        assert everything(disk) == before
        assert store.read(path) == b"x" * 100_000, "the older one stands"
        store.put(store.path_of(head(host="n3")), b"z" * 50_000)
        assert len(store.listing()) == 2
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_disk_that_is_read_only(tmp_path):
    if not is_root() or shutil.which("mount") is None:
        pytest.skip("only root can mount a disk read-only")
    store = filled(open_store(str(tmp_path / "fleet"), make=True))
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", store.url],
        check=False,
        capture_output=True,
        text=True,
    )
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a disk here: {mounted.stderr.strip()}")
    try:
        for work in (
            lambda: store.put(store.path_of(head()), b"x"),
            lambda: open_store(store.url, make=True),
        ):
            with pytest.raises(
                OutputError, match=r"fleet/.* could not be written \(Read-only file system\)"
            ):
                work()
    finally:
        subprocess.run(["umount", store.url], check=True)


def test_no_permission(store):
    filled(store)
    day = Path(store.url) / "job=b" / f"day={DAYS[0]}"
    day.chmod(0o500)
    if os.access(day, os.W_OK):
        pytest.skip("root may write everywhere")
    with pytest.raises(OutputError, match=r"could not be written \(Permission denied\)"):
        store.put(store.path_of(head("b", day=DAYS[0])), b"x")
    day.chmod(0)
    closed = f"job=b/day={DAYS[0]}"
    assert store.strange() == [f"{closed}/ cannot be listed (Permission denied)"]
    assert not [entry for entry in store.listing() if entry.path.startswith(closed)]
    day.chmod(0o700)


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize("call", ["open", "write", "fsync", "rename"])
def test_any_step_that_fails(store, monkeypatch, call, code):
    (entry,) = filled(store, ["a"], ["n1"], DAYS[:1]).listing()
    before = everything(store.url)
    real = getattr(os, call)

    def fails(*args, **more):
        if call == "open" and not str(args[0]).endswith(stores.PART):
            return real(*args, **more)
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(stores.os, call, fails)
        with pytest.raises(
            OutputError, match=rf"{entry.path}: could not be written \({os.strerror(code)}\)"
        ):
            store.put(entry.path, b"new")
    assert everything(store.url) == before
    assert store.read(entry.path) == b"a 2026-11-19 n1"


def test_a_file_in_the_way_of_a_folder(store):
    (Path(store.url) / "job=a").write_text("a file")
    with pytest.raises(
        OutputError, match=r"could not be written \((File exists|Not a directory)\)"
    ):
        store.put(store.path_of(head("a")), b"x")
    assert store.strange() == ["job=a"]


def test_a_disk_that_takes_little_at_a_time(store, monkeypatch):
    real = os.write
    monkeypatch.setattr(stores.os, "write", lambda fd, data: real(fd, bytes(data[:7])))
    store.put("job=a/day=2026-11-20/x.parquet", bytes(range(256)))
    assert store.read("job=a/day=2026-11-20/x.parquet") == bytes(range(256))


def put_one(root):
    opened = open_store(str(root), make=True)
    opened.put(opened.path_of(head()), b"one")


@pytest.mark.parametrize("mode", [0o755, 0o700, 0o2770])
def test_files_and_folders_have_the_modes_of_the_store(mode, tmp_path):
    """Not of whoever's umask it was: a node that packs must not lock the others out, nor let
    strangers in."""
    root = tmp_path / "store"
    root.mkdir()
    root.chmod(mode)
    before = os.umask(0o027)
    try:
        put_one(root)
    finally:
        os.umask(before)
    below = [path for path in root.rglob("*") if path.is_dir()]
    files = [path for path in root.rglob("*") if path.is_file()]
    assert below
    assert files
    assert {stat.S_IMODE(path.stat().st_mode) for path in below} == {mode}
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {mode & 0o666}


def test_a_folder_that_is_a_link_out_of_the_store_is_not_written_into(tmp_path):
    root, elsewhere = tmp_path / "store", tmp_path / "elsewhere"
    root.mkdir()
    elsewhere.mkdir()
    put_one(root)
    (job,) = root.glob("job=*")
    for path in sorted(job.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    job.rmdir()
    job.symlink_to(elsewhere)
    with pytest.raises(OutputError, match="leads out of the store"):
        put_one(root)
    assert list(elsewhere.rglob("*.parquet")) == []


def test_a_store_that_is_itself_a_link_is_written_into(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "store").symlink_to(tmp_path / "there")
    put_one(tmp_path / "store")
    assert list((tmp_path / "there").rglob("*.parquet"))


STUCK = """
import os, signal, sys
from ckptcost.first.fleet import store as stores
from ckptcost.first.fleet.store import open_store
rename = os.rename
def slowly(one, other):
    print(one, flush=True)
    signal.pause()
if {stuck}:
    stores.os.rename = slowly
store = open_store(sys.argv[1])
store.put(sys.argv[2], sys.argv[3].encode() * 1000)
"""


def test_killed_in_the_middle(store):
    path = store.path_of(head())
    store.put(path, b"older")
    writer = subprocess.Popen(
        [sys.executable, "-c", STUCK.format(stuck=True), store.url, path, "newer"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        part = Path(writer.stdout.readline().strip())
        assert (part.stat().st_size, part.name[0], part.suffix) == (5000, ".", ".part")
        assert store.sweep() == 0, "its writer is at work"
        assert part.exists()
    finally:
        writer.send_signal(signal.SIGKILL)
        writer.wait(10)
        writer.stdout.close()
    assert part.exists()
    assert ([entry.path for entry in store.listing()], store.strange(), store.read(path)) == (
        [path],
        [],
        b"older",
    )
    (Path(store.url) / "._store.json.0.part").touch()
    (Path(store.url) / "job=llama" / ".mine").touch()
    assert store.sweep() == 2
    assert everything(store.url) == sorted(
        ["_store.json", "job=llama", "job=llama/.mine", path.rpartition("/")[0], path]
    )
    assert store.sweep() == 0


def test_swept_where_locks_cannot_be_asked(store, monkeypatch):
    def none(fd, how):
        raise OSError(errno.ENOLCK, "No locks available")

    filled(store, ["a"], ["n1"], DAYS[:1])
    monkeypatch.setattr(stores.fcntl, "flock", none)
    left = Path(store.url) / "job=a" / f"day={DAYS[0]}" / ".x.parquet.0.part"
    left.write_bytes(b"x")
    assert store.sweep() == 0, "it may be at work"
    long_ago = time.time() - 2 * writing.OLD_S
    os.utime(left, (long_ago, long_ago))
    assert store.sweep() == 1
    store.put("job=a/day=2026-11-20/x.parquet", b"written all the same")
    assert len(store.listing()) == 2


def test_swept_before_it_was_locked(store, monkeypatch):
    """Between making the file and locking it, another's sweep takes it for left behind: then it is
    written once more."""
    real = fcntl.flock
    swept = []

    def flock(fd, how):
        if how == fcntl.LOCK_EX and len(swept) < 2:
            swept.append(store.sweep())
        return real(fd, how)

    monkeypatch.setattr(stores.fcntl, "flock", flock)
    store.put("job=a/day=2026-11-20/x.parquet", b"x")
    assert swept == [1, 1]
    assert store.read("job=a/day=2026-11-20/x.parquet") == b"x"
    assert [name for name in everything(store.url) if name.endswith(".part")] == []


WRITER = """
import sys
from ckptcost.first.fleet.store import open_store
for round in range(60):
    store = open_store(sys.argv[1], make=True)
    store.put(sys.argv[2], sys.argv[3].encode() * 50_000)
"""


def test_two_write_the_same(tmp_path):
    """The store too: at any time there is one of both, whole."""
    url, path = str(tmp_path / "fleet"), "job=a/day=2026-11-20/x.parquet"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, url, path, letter]) for letter in "ab"
    ]
    seen = []
    while any(writer.poll() is None for writer in writers):
        try:
            seen.append(open_store(url).read(path))
        except InputError:
            assert not seen, "once it is there, it stays"
            time.sleep(0.005)
    assert [writer.returncode for writer in writers] == [0, 0]
    assert {(len(data), len(set(data))) for data in seen} == {(50_000, 1)}
    assert everything(url) == ["_store.json", "job=a", "job=a/day=2026-11-20", path]


def test_a_large_store_is_listed_at_once(store):
    """14,336 files, as of 2,048 nodes and a week, in about 0.1 s; ten times that is a defect."""
    for number in range(7):
        folder = Path(store.url) / "job=a" / f"day=2026-11-{20 + number}"
        folder.mkdir(parents=True)
        for node in range(2048):
            os.close(os.open(folder / f"n{node}.parquet", os.O_CREAT | os.O_WRONLY))
    took = []
    for _ in range(3):
        began = time.process_time()
        found = store.listing()
        took.append(time.process_time() - began)
    assert len(found) == 14_336
    assert isinstance(found[0], StoreEntry)
    assert min(took) < 1
