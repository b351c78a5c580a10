"""A store: one file for each run, node and UTC day, in folders by job and day. Many nodes write at
once, without a server.

Folders are named as hive has it, so that whoever reads them has job and day as columns.
"""

from __future__ import annotations

import json
import os
import re
from binascii import crc32
from collections.abc import Iterator, Sequence
from datetime import date
from functools import lru_cache
from hashlib import blake2b
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from ckptcost.errors import InputError, brief
from ckptcost.fleet.node_day import NodeDayHead
from ckptcost.fleet.places import Folder, Remote, StorePlace, Thing

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
        if jobs:
            names = dict.fromkeys(f"job={folder_of(job)}" for job in jobs)
            tops = [Thing(name, "folder", 0) for name in names if self._place.is_folder(name)]
        else:
            tops = [thing for thing in self._place.things("") if not thing.name.startswith("_")]
        for top in tops:
            job = _job_of(top)
            if job is None:
                yield top.name
                continue
            for below in self._looked_into(top.name):
                if isinstance(below, str):
                    yield below
                    continue
                folder = f"{top.name}/{below.name}"
                day = below.name.removeprefix("day=")
                if below.kind != "folder" or day == below.name or not _is_day(day):
                    yield folder
                elif since <= day and (not until or day <= until):
                    for thing in self._looked_into(folder):
                        if isinstance(thing, str):
                            yield thing
                            continue
                        path = f"{folder}/{thing.name}"
                        yield (
                            StoreEntry(path, job, day, thing.bytes)
                            if thing.kind == "file" and thing.name.endswith(ENDING)
                            else path
                        )

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
        major = int(re.fullmatch(r"([1-9]\d{0,5})\.\d{1,6}", about["version"])[1])  # type: ignore[index]
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


@lru_cache(maxsize=4096)
def _is_day(text: str) -> bool:
    try:
        return len(text) == 10 and date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
