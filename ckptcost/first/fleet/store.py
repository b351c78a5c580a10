"""A store: one file for each run, node and UTC day, in folders by job and day. Many nodes write at
once, without a server.

Folders are named as hive has it, so that whoever reads them has job and day as columns.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import secrets
import stat
from binascii import crc32
from collections.abc import Iterator, Sequence
from datetime import date
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import quote, unquote

from ckptcost.first.catalog.writing import PART, swept
from ckptcost.first.errors import InputError, MeterUnavailable, OutputError, brief
from ckptcost.first.fleet.node_day import NodeDayHead

# Where a store's files are: in a folder of this machine, or elsewhere. Each lists, reads, and puts
# whole files.


_TRIES: Final = 5


class Thing(NamedTuple):
    """In a folder. `bytes` of a file; `kind`: file, folder, or something else."""

    name: str
    kind: str
    bytes: int


class StorePlace(Protocol):
    def things(self, folder: str) -> Iterator[Thing]:
        """Those with a dot first are left out. Nothing where there is no such folder; raises
        InputError where it cannot be looked into."""

    def is_folder(self, path: str) -> bool: ...

    def read(self, path: str) -> bytes:
        """Raises FileNotFoundError, or InputError for all else."""

    def put(self, path: str, data: bytes) -> None:
        """Whole or not at all; its folders are made. Raises OutputError."""

    def remove(self, path: str) -> str:
        """Why it could not be; empty where it is gone."""

    def sweep(self, folders: Iterator[str]) -> int:
        """Takes away what killed writers left."""


class Folder:
    """A file is written under a hidden name, synced, and renamed. The lock on it dies with its
    writer."""

    def __init__(self, root: str) -> None:
        self.root = root

    def _at(self, path: str) -> str:
        return os.path.join(self.root, path) if path else self.root

    def is_folder(self, path: str) -> bool:
        return os.path.isdir(self._at(path))

    def things(self, folder: str) -> Iterator[Thing]:
        try:
            with os.scandir(self._at(folder)) as entries:
                for entry in entries:
                    if not entry.name.startswith("."):
                        with contextlib.suppress(
                            FileNotFoundError
                        ):  # gone meanwhile, unless it is a link to nowhere
                            yield _thing(entry)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise InputError(
                f"cannot be listed ({error.strerror})", where=self._at(folder)
            ) from None

    def read(self, path: str) -> bytes:
        try:
            if not os.path.isfile(self._at(path)) and os.path.exists(self._at(path)):
                raise InputError("is no file", where=self._at(path))  # a pipe would be waited for
            with open(self._at(path), "rb") as file:
                return file.read()
        except FileNotFoundError:
            raise
        except OSError as error:
            raise InputError(f"cannot be read ({error.strerror})", where=self._at(path)) from None

    def put(self, path: str, data: bytes) -> None:
        target = self._at(path)
        folder, name = os.path.split(target)
        for tries in range(_TRIES):
            try:
                self._make(folder)
                self._refuse_links(folder)
                self._write(folder, name, data)
            except (
                FileNotFoundError
            ) as error:  # a sweep took it before it was locked, or somebody the folder
                if tries == _TRIES - 1:
                    raise OutputError(
                        f"{target}: could not be written ({error.strerror})"
                    ) from None
            except OSError as error:
                raise OutputError(f"{target}: could not be written ({error.strerror})") from None
            else:
                return

    def remove(self, path: str) -> str:
        try:
            os.unlink(self._at(path))
        except FileNotFoundError:
            pass
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def _refuse_links(self, folder: str) -> None:
        """Whoever may write into a store must not be able to send others' files elsewhere."""
        inside = os.path.realpath(self.root)
        if os.path.commonpath([os.path.realpath(folder), inside]) != inside:
            raise OutputError(f"{folder}: a link leads out of the store, nothing was written")

    def _mode(self) -> int:
        """The store's own: who may read and write in it is decided once, where it is made."""
        return stat.S_IMODE(os.stat(self.root).st_mode)

    def _make(self, folder: str) -> None:
        """New folders last only once the one above is synced."""
        new = []
        above = folder
        while not os.path.isdir(above):
            new.append(above)
            above = os.path.dirname(above)
        if new:
            os.makedirs(folder, exist_ok=True)
            for made in new:
                if made != self.root:
                    with contextlib.suppress(OSError):  # somebody else made it first
                        os.chmod(made, self._mode())
                _sync(os.path.dirname(made))

    def _write(self, folder: str, name: str, data: bytes) -> None:
        part = os.path.join(folder, f".{name}.{secrets.token_hex(4)}{PART}")
        fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            with contextlib.suppress(
                OSError
            ):  # a file system without locks: what a kill leaves goes when it is old
                fcntl.flock(fd, fcntl.LOCK_EX)
            with contextlib.suppress(OSError):  # a file system without modes
                os.fchmod(fd, self._mode() & 0o666)
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            os.fsync(fd)
            os.rename(part, os.path.join(folder, name))
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(part)
            raise
        finally:
            os.close(fd)
        _sync(folder)

    def sweep(self, folders: Iterator[str]) -> int:
        gone = 0
        for folder in folders:
            with contextlib.suppress(OSError), os.scandir(self._at(folder)) as entries:
                for entry in entries:
                    if (
                        entry.name.startswith(".")
                        and entry.name.endswith(PART)
                        and entry.is_file(follow_symlinks=False)
                    ):
                        gone += swept(entry.path)
        return gone


def _thing(entry: os.DirEntry[str]) -> Thing:
    """A link is what it leads to."""
    try:
        if entry.is_dir():
            return Thing(entry.name, "folder", 0)
        found = entry.stat()
    except FileNotFoundError:
        if not entry.is_symlink():
            raise
        return Thing(entry.name, "other", 0)
    except OSError:  # a link to itself
        return Thing(entry.name, "other", 0)
    return (
        Thing(entry.name, "file", found.st_size)
        if stat.S_ISREG(found.st_mode)
        else Thing(entry.name, "other", 0)
    )


def _sync(folder: str) -> None:
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:  # may be written to, not looked into
        return
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system that syncs no folders
            raise
    finally:
        os.close(fd)


# A store under a URL: an object store, or whatever else fsspec has a name for. fsspec is imported
# here alone, and only for such a URL.


class Remote:
    """An object store appears whole or not at all by itself. Of others, as sftp, a reader may find
    half a file, which its seal tells."""

    def __init__(self, url: str) -> None:
        self.url = url
        try:
            import fsspec  # type: ignore[import-not-found,import-untyped,unused-ignore]

            self._files, self._root = fsspec.core.url_to_fs(url)
        except ImportError as error:
            remedy = (
                "pip install 'ckptcost[fleet]'"
                if "fsspec" in str(error)
                else "install that driver beside 'ckptcost[fleet]'"
            )
            raise MeterUnavailable(
                f"{url} is reached by fsspec, which says: {error}", remedy
            ) from None
        except Exception as error:
            raise InputError(f"is no place that fsspec knows ({error})", where=url) from None
        self._root = self._root.rstrip("/")

    def __reduce__(self) -> tuple[type[Remote], tuple[str]]:
        return type(self), (self.url,)

    def _at(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root or "/"

    def _where(self, path: str) -> str:
        return f"{self.url.rstrip('/')}/{path}" if path else self.url

    def is_folder(self, path: str) -> bool:
        return any(True for _ in self.things(path))

    def things(self, folder: str) -> Iterator[Thing]:
        at = self._at(folder)
        try:
            self._files.invalidate_cache(at)
            found = self._files.ls(at, detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return
        except Exception as error:
            raise InputError(
                f"cannot be listed ({_error_words(error)})", where=self._where(folder)
            ) from None
        for entry in found:
            name = entry["name"].rstrip("/").rpartition("/")[2]
            if (
                name and not name.startswith(".") and entry["name"].strip("/") != at.strip("/")
            ):  # some name the folder itself
                kind = {"file": "file", "directory": "folder"}.get(entry["type"], "other")
                yield Thing(name, kind, int(entry.get("size") or 0))

    def read(self, path: str) -> bytes:
        try:
            return bytes(self._files.cat_file(self._at(path)))
        except FileNotFoundError:
            raise
        except Exception as error:
            raise InputError(
                f"cannot be read ({_error_words(error)})", where=self._where(path)
            ) from None

    def put(self, path: str, data: bytes) -> None:
        at = self._at(path)
        try:
            try:
                self._files.pipe_file(at, data)
            except FileNotFoundError:  # where folders are more than names
                self._files.makedirs(at.rpartition("/")[0], exist_ok=True)
                self._files.pipe_file(at, data)
        except Exception as error:
            raise OutputError(
                f"{self._where(path)}: could not be written ({_error_words(error)})"
            ) from None

    def remove(self, path: str) -> str:
        try:
            self._files.rm_file(self._at(path))
        except FileNotFoundError:
            pass
        except Exception as error:
            return str(_error_words(error))
        return ""

    def sweep(self, folders: Iterator[str]) -> int:
        """Half an upload has no name there."""
        return 0


def _error_words(error: Exception) -> Any:
    """Drivers of stores raise what they like."""
    return getattr(error, "strerror", None) or error or type(error).__name__


FORMAT: Final = "ckptcost.store"
VERSION: Final = "1.0"
MAJOR: Final = 1
ABOUT: Final = "_store.json"
ENDING: Final = ".parquet"
NAMELESS: Final = "-"
"""folder of the job without a name: readers of Parquet take an empty one for an error"""
LONGEST: Final = 180
"""bytes of a name in a path, of 255 that file systems take; a longer one is cut and gets a hash"""
_MAKE: Final = "`ckptcost runs pack --store DIR` and `ckptcost fleet synthesize` make one"


class StoreEntry(NamedTuple):
    """A node's file. `path` is within the store; `job` as far as the path can hold it: the head has
    it whole."""

    path: str
    job: str
    day: str
    bytes: int


class Store:
    """Pickles, and is the same place in another process of this machine or of one that sees the
    same folders."""

    def __init__(self, url: str, place: StorePlace) -> None:
        self.url, self._place = url, place

    def __repr__(self) -> str:
        return f"Store({self.url!r})"

    def looked_through(
        self, since: str = "", until: str = "", jobs: Sequence[str] = ()
    ) -> tuple[list[StoreEntry], list[str]]:
        """Files of nodes, sorted by job, day and path, and paths of what does not belong here;
        hidden files may be anybody's. Days inclusive; folders of other jobs and days are not looked
        into."""
        for name, day in (("since", since), ("until", until)):
            if day and not _is_day(day):
                raise InputError(f"no day: {brief(day)}", where=name, remedy="as 2026-11-20")
        things = list(self._walk(since, until, jobs))
        entries = [thing for thing in things if isinstance(thing, StoreEntry)]
        entries.sort(key=lambda entry: (entry.job, entry.day, entry.path))
        return entries, sorted(thing for thing in things if isinstance(thing, str))

    def listing(
        self, since: str = "", until: str = "", jobs: Sequence[str] = ()
    ) -> list[StoreEntry]:
        return self.looked_through(since, until, jobs)[0]

    def strange(self) -> list[str]:
        """Paths of what does not belong here; `listing` leaves it out."""
        return self.looked_through()[1]

    def read(self, path: str) -> bytes:
        try:
            return self._place.read(path)
        except FileNotFoundError:
            raise InputError("is not there any more", where=f"{self.url}/{path}") from None

    def put(self, path: str, data: bytes) -> None:
        """Whole or not at all, and safe on the disk once it returns; over what was there. Raises
        OutputError."""
        self._place.put(path, data)

    def remove(self, path: str) -> str:
        """Why it could not be removed; empty where it is gone."""
        return self._place.remove(path)

    def path_of(self, head: NodeDayHead) -> str:
        """The same for the same job, day, run and host. Raises ValueError where the day is none.

        >>> open_store("memory://doctest", make=True).path_of(
        ...     NodeDayHead("llama 3/pretrain", "0123456789abcdef", "node-7", "2026-11-20")
        ... )
        'job=llama%203%2Fpretrain/day=2026-11-20/node-7-0123456789ab-b821f096.parquet'
        """
        if not _is_day(head.day):
            raise ValueError(f"no day: {head.day!r}")
        whole = crc32(f"{head.run}\0{head.host}".encode("utf-8", "backslashreplace"))
        host = _encode_name(head.host)[:80] or "unnamed"
        name = f"{host}-{_encode_name(head.run[:12])}-{whole:08x}{ENDING}"
        return f"job={folder_of(head.job)}/day={head.day}/{name}"

    def sweep(self) -> int:
        """Takes away what killed writers left, and says how many files that were. Those at work are
        let alone."""

        def folders() -> Iterator[str]:
            yield ""
            for job in self._place.things(""):
                if job.kind == "folder" and job.name.startswith("job="):
                    yield from (
                        f"{job.name}/{day.name}"
                        for day in self._place.things(job.name)
                        if day.kind == "folder"
                    )

        return self._place.sweep(folders())

    def _walk(
        self, since: str = "", until: str = "", jobs: Sequence[str] = ()
    ) -> Iterator[StoreEntry | str]:
        """Entries, and the paths of what is none."""
        for top in self._tops(jobs):
            job = _job_of(top)
            if job is None:
                yield top.name
                continue
            for below in self._looked_into(top.name):
                if isinstance(below, str):
                    yield below
                elif not (day := _day_of(below)):
                    yield f"{top.name}/{below.name}"
                elif since <= day and (not until or day <= until):
                    yield from self._files_of(job, day, f"{top.name}/{below.name}")

    def _tops(self, jobs: Sequence[str]) -> list[Thing]:
        if not jobs:
            return [thing for thing in self._place.things("") if not thing.name.startswith("_")]
        names = dict.fromkeys(f"job={folder_of(job)}" for job in jobs)
        return [Thing(name, "folder", 0) for name in names if self._place.is_folder(name)]

    def _files_of(self, job: str, day: str, folder: str) -> Iterator[StoreEntry | str]:
        for thing in self._looked_into(folder):
            if isinstance(thing, str):
                yield thing
            elif thing.kind == "file" and thing.name.endswith(ENDING):
                yield StoreEntry(f"{folder}/{thing.name}", job, day, thing.bytes)
            else:
                yield f"{folder}/{thing.name}"

    def _looked_into(self, folder: str) -> Iterator[Thing | str]:
        """One job's folder that may not be read costs that job, and its name is told with the
        reason."""
        try:
            yield from self._place.things(folder)
        except InputError as error:
            yield f"{folder}/ {error.problem}"


def open_store(url: str, make: bool = False) -> Store:
    """A folder, `file://` and a folder, or any URL that fsspec knows. Raises InputError where there
    is none and `make` does not say so."""
    if not url:
        raise InputError("a store has a name", remedy=_MAKE)
    place: StorePlace
    if (scheme := re.match(r"([a-z][a-z0-9+.-]*)(://|::)", url)) and scheme[1] not in (
        "file",
        "local",
    ):
        place = Remote(url)
        url = url.rstrip("/") if not url.endswith("://") else url
    else:
        url = os.path.abspath(re.sub("^(file|local)://", "", url))  # a worker may stand elsewhere
        place = Folder(url)
    store = Store(url, place)
    try:
        _judge(url, place.read(ABOUT))
    except FileNotFoundError:
        if not make:
            raise InputError(
                f"is no store: there is no {ABOUT} in it", where=url, remedy=_MAKE
            ) from None
        place.put(ABOUT, (json.dumps({"format": FORMAT, "version": VERSION}) + "\n").encode())
    return store


def _judge(url: str, data: bytes) -> None:
    try:
        about = json.loads(data)
        if about["format"] != FORMAT:
            raise ValueError
        version: Any = re.fullmatch(r"([1-9]\d{0,5})\.\d{1,6}", about["version"])
        major = int(version[1])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(
            f"its {ABOUT} is not that of a store", where=url, remedy="name another folder"
        ) from None
    if major > MAJOR:
        raise InputError(
            f"is a store of version {brief(about['version'])}, this program reads 1.x",
            where=url,
            remedy="use a newer ckptcost",
        )


@lru_cache(maxsize=4096)
def folder_of(job: str) -> str:
    """Its name in a path, after "job=".

    >>> folder_of("team a/llama"), folder_of(".."), folder_of(""), folder_of("-")
    ('team%20a%2Fllama', '%2E.', '-', '%2D')
    """
    if not job:
        return NAMELESS
    if job == NAMELESS:
        return "%2D"
    name = _encode_name(job)
    if len(name) <= LONGEST:
        return name
    short = job[:LONGEST]
    while len(_encode_name(short)) > LONGEST - 17:
        short = short[:-1]
    whole = blake2b(job.encode("utf-8", "backslashreplace"), digest_size=8)
    return f"{_encode_name(short)}~{whole.hexdigest()}"


def _encode_name(text: str) -> str:
    """Letters, digits, `_.-~` as they are; a first dot would hide a file, and a first line mark
    hides it from readers of Parquet."""
    name = quote(text, safe="", errors="backslashreplace")
    return f"%{ord(name[0]):02X}{name[1:]}" if name.startswith((".", "_")) else name


def _job_of(thing: Thing) -> str | None:
    """None for a folder that this program would not have made."""
    name = thing.name.removeprefix("job=")
    if thing.kind != "folder" or name == thing.name:
        return None
    if name == NAMELESS:
        return ""
    job = unquote(name)
    return job if folder_of(job) == name else None


def _day_of(thing: Thing) -> str:
    """Empty for what is no day's folder."""
    day = thing.name.removeprefix("day=")
    return day if thing.kind == "folder" and day != thing.name and _is_day(day) else ""


@lru_cache(maxsize=4096)
def _is_day(text: str) -> bool:
    try:
        return len(text) == 10 and date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
