"""The same work on one machine and on many: a part for each job and day, put together in order.
Only who does the work differs.

    pandas                       one part after another, here
    threads                      dask's on this machine
    processes                    of our own on this machine
    tcp://host:port, tls://...   workers of a Dask cluster, which see the store under the same name

Workers get a store's name and a list of files, and give back sums. A worker that is lost has its
parts done again by another.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import re
import threading
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, groupby
from queue import Empty, Queue
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from ckptcost.first.errors import (
    Argument,
    CkptcostError,
    InputError,
    MeterUnavailable,
    brief,
    not_there,
)
from ckptcost.first.fleet import frames
from ckptcost.first.fleet.frames import PartFrames
from ckptcost.first.fleet.job_day import finish_part, pieces_of
from ckptcost.first.fleet.node_day import COLUMNS
from ckptcost.first.fleet.part import StorePart
from ckptcost.first.fleet.store import ABOUT
from ckptcost.first.fleet.validate import FileVerdict, heads_apart, read_in
from ckptcost.first.jobs.workers import in_order
from ckptcost.first.version import __version__

if TYPE_CHECKING:
    from pandas import DataFrame

    from ckptcost.first.fleet.store import Store, StoreEntry


# Work done by a Dask cluster that somebody else runs: it is asked, never started, and left as it
# was.


Given = TypeVar("Given")
Got = TypeVar("Got")

_ADDRESS: Final = re.compile(r"t(?:cp|ls)://(?:\[[0-9a-fA-F:.%\w]+\]|[^:/\s]+):\d{1,5}")
ANSWER_S: Final = 8.0
"""a scheduler, or its first worker, that says nothing for so long is not there"""
RETRIES: Final = 2
"""of a piece that a worker could not do; pieces of a worker that is lost are done again without
being counted"""
BATCH: Final = 64
"""pieces sent at once: a list of 2,048 files is 0.2 MB"""


def by_cluster(
    work: Callable[[Given], Got],
    given: Sequence[Given],
    store: Store,
    address: str,
    tell: Callable[[int, int], None] | None = None,
) -> list[Got]:
    """Results in the order of what was given."""
    if not given:
        return []
    distributed = _distributed_client()
    with _quiet(), _client(distributed, address) as client:
        _same_on_workers(client, store, address)
        try:
            futures = client.map(work, given, retries=RETRIES, pure=False, batch_size=BATCH)
            for done, _ in enumerate(distributed.as_completed(futures, loop=client.loop), 1):
                if tell:
                    tell(done, len(given))
            found: list[Got] = client.gather(futures)
        except distributed.scheduler.KilledWorker as error:
            _lost(
                address,
                f"a piece of the work took {error.allowed_failures + 1} workers with it",
                "Give workers more memory: 1 GB a thread",
            )
        except (
            OSError,
            distributed.client.FutureCancelledError,
            distributed.CancelledError,
        ) as error:
            _lost(
                address,
                f"the scheduler was lost ({type(error).__name__})",
                "Run it again: what was done is not kept",
            )
    return found


def _lost(address: str, problem: str, remedy: str) -> NoReturn:
    raise CkptcostError(f"{address}: {problem}. {remedy}") from None


def _distributed_client() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise MeterUnavailable(
            f"distributed {not_there(error)}",
            "pip install 'ckptcost[fleet]', or `--scheduler pandas`",
        ) from None
    return distributed


@contextlib.contextmanager
def _client(distributed: Any, address: str) -> Iterator[Any]:
    where = Argument("scheduler", address)
    if not _ADDRESS.fullmatch(address):
        raise InputError("names no host and port", where=where, remedy="e.g. tcp://head:8786")
    try:
        client = _in_time(
            lambda: distributed.Client(
                address, timeout=ANSWER_S, set_as_default=False, name="ckptcost"
            )
        )
    except TypeError:
        raise InputError(
            "TLS needs certificates",
            where=where,
            remedy="name them in Dask's configuration: distributed.comm.tls",
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(
            f"no Dask scheduler answers there ({type(error).__name__})",
            where=where,
            remedy="start one with `dask scheduler`, or leave it out",
        ) from None
    try:
        try:
            client.wait_for_workers(1, timeout=ANSWER_S)
        except TimeoutError:
            raise InputError(
                "the scheduler has no workers",
                where=where,
                remedy=f"start some with `dask worker {address}`",
            ) from None
        yield client
    finally:
        client.close(timeout=ANSWER_S)


def _in_time(make: Callable[[], Any]) -> Any:
    """What listens there may be no scheduler, and say nothing for ever: Dask's own limit does not
    cover its greeting."""
    found: Queue[Any] = Queue()

    def run() -> None:
        try:
            found.put(make())
        except Exception as error:
            found.put(error)

    threading.Thread(target=run, daemon=True).start()
    try:
        made = found.get(timeout=ANSWER_S + 2.0)
    except Empty:
        raise TimeoutError from None
    if isinstance(made, Exception):
        raise made
    return made


def _same_on_workers(client: Any, store: Store, address: str) -> None:
    """The sums are the same bits only where the program is the same, and a store that a worker does
    not see would seem empty."""
    where = Argument("scheduler", address)
    has = client.run(_worker_version(), on_error="return")
    for worker, version in has.items():
        if version != __version__:
            other = (
                f"has {version}"
                if isinstance(version, str) and version
                else "has none that can be imported"
            )
            raise InputError(
                f"worker {worker} {other}; here is ckptcost {__version__}",
                where=where,
                remedy="install the same everywhere",
            )
    for worker, problem in client.run(_sees, store, on_error="return").items():
        if problem:
            raise InputError(
                f"worker {worker} does not see the store: {problem}",
                where=where,
                remedy="put it where all see it under one name",
            )


def _worker_version() -> Callable[[], str]:
    def version() -> str:
        # within a function, so that its text is sent: a worker without ckptcost could not look it
        # up by name
        try:
            from ckptcost.first.version import __version__ as there
        except ImportError:
            return ""
        return there

    return version


def _sees(store: Store) -> str:
    try:
        store.read(ABOUT)
    except (OSError, CkptcostError) as error:
        return str(error)
    return ""


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Dask logs to stderr what is said here in a sentence, or is no concern of who asks."""
    names = [
        name
        for name in ("distributed", *logging.Logger.manager.loggerDict)
        if name.split(".")[0] == "distributed"
    ]
    before = [(logger := logging.getLogger(name), logger.level) for name in names]
    for logger, level in before:
        if level != logging.NOTSET:
            logger.setLevel(logging.CRITICAL + 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in before:
            logger.setLevel(level)


Tell = Callable[[int, int], None]
"""so many parts are done, of so many"""
Work = tuple["Store", list["StoreEntry"]]

ONE: Final = "pandas"
THREADS: Final = "threads"
PROCESSES: Final = "processes"
SCHEDULERS: Final = (ONE, THREADS, PROCESSES, "tcp://host:port", "tls://host:port")
HERE: Final = 2
"""threads of one process"""
FILES_AT_ONCE: Final = 128
"""of a partition of raw rows: some 20 MB where nodes have a save every two minutes"""
RAW: Final = ("job", "run", "host", *COLUMNS)


def group_by_job_day(entries: Iterable[StoreEntry]) -> list[list[StoreEntry]]:
    """By job and day, as the work is divided."""
    ordered = sorted(entries, key=lambda entry: (entry.job, entry.day, entry.path))
    return [list(same) for _, same in groupby(ordered, key=lambda entry: (entry.job, entry.day))]


def collect_parts(
    store: Store,
    groups: Sequence[Sequence[StoreEntry]],
    scheduler: str = ONE,
    tell: Tell | None = None,
) -> StorePart:
    """Each group is the files of one job and day. The result is the same bits whatever the
    scheduler and the number of workers."""
    groups, aside = _one_job_each(store, groups)
    work = [(store, list(group)) for group in groups]
    return finish_part(
        frames.put_together(
            [frames.pieces(files=frames.of_files(aside)), *_done(store, work, scheduler, tell)]
        )
    )


def work_through(work: Work) -> PartFrames:
    """What a worker does."""
    return pieces_of(*work)


def _done(
    store: Store, work: Sequence[Work], scheduler: str, tell: Tell | None
) -> Iterator[PartFrames]:
    if scheduler == ONE:
        yield from _here(work, tell)
    elif scheduler == THREADS:
        yield from _by_dask(work, tell)
    elif scheduler == PROCESSES:
        yield from _by_processes(work, tell)
    elif scheduler.startswith(("tcp://", "tls://")):
        yield from by_cluster(work_through, work, store, scheduler, tell)
    else:
        raise InputError(
            f"no scheduler named {brief(scheduler)}",
            where=Argument("scheduler"),
            remedy="known: " + ", ".join(SCHEDULERS),
        )


def _here(work: Sequence[Work], tell: Tell | None) -> Iterator[PartFrames]:
    """In this process. A second thread reads files while the first one adds up: a fifth quicker, at
    half as much memory again."""
    if len(work) < HERE:
        yield from map(work_through, work)
        return
    with ThreadPoolExecutor(HERE) as pool, _no_collecting():
        futures = [pool.submit(work_through, each) for each in work]
        try:
            for done, future in enumerate(futures, 1):
                yield future.result()
                if tell:
                    tell(done, len(work))
        finally:
            pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def _no_collecting() -> Iterator[None]:
    """Arrays by the hundred thousand and no circles among them: looking for some took a thirtieth
    of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _by_processes(work: Sequence[Work], tell: Tell | None) -> Iterator[PartFrames]:
    """Not dask's: its processes import from the current folder while they start."""
    pieces = [(each,) for each in work]
    for done, found in enumerate(in_order(work_through, pieces, os.cpu_count() or 1), 1):
        yield found
        if tell:
            tell(done, len(work))


def _by_dask(work: Sequence[Work], tell: Tell | None) -> Sequence[PartFrames]:
    dask = dask_of()
    from dask.callbacks import Callback

    done = 0

    def one_more(*_: Any) -> None:
        nonlocal done
        done += 1
        if tell:
            tell(min(done, len(work)), len(work))

    with Callback(posttask=one_more):
        delayed = dask.delayed(work_through, pure=False)
        # a list of files is not looked into for other delayed work
        found: Sequence[PartFrames] = dask.compute(
            *(delayed(dask.delayed(each, traverse=False)) for each in work), scheduler=THREADS
        )
    return found


def dask_of() -> Any:
    try:
        import dask
    except ImportError as error:
        raise MeterUnavailable(
            f"dask {not_there(error)}", "pip install 'ckptcost[fleet]', or `--scheduler pandas`"
        ) from None
    return dask


def _one_job_each(
    store: Store, groups: Sequence[Sequence[StoreEntry]]
) -> tuple[list[list[StoreEntry]], list[FileVerdict]]:
    """A run, host and day under two jobs has the same file name in both: only of such files are the
    heads read, before anything counts."""
    named: defaultdict[tuple[str, str], list[StoreEntry]] = defaultdict(list)
    for group in groups:
        for entry in group:
            named[entry.day, entry.path.rpartition("/")[2]].append(entry)
    alike = [same for same in named.values() if len({entry.job for entry in same}) > 1]
    if not alike:
        return [list(group) for group in groups], []
    # what cannot be read, or lies in a wrong place, is named by the part that it is in
    seen, _ = read_in(store, chain.from_iterable(alike), ("key",))
    aside = dict(heads_apart(seen))
    kept = [[entry for entry in group if entry.path not in aside] for group in groups]
    return kept, list(aside.values())


def windows_frame(store: Store, entries: Iterable[StoreEntry], columns: Sequence[str] = RAW) -> Any:
    """A lazy dask.dataframe of the rows as the nodes wrote them, by their own clocks, for questions
    of one's own.

    Files that cannot be read, lie in a wrong place or are of another day are left out; `collected`
    names them. Files that are there twice are in it twice.
    """
    dask_of()
    import dask.dataframe as dd

    pieces = [
        group[at : at + FILES_AT_ONCE]
        for group in group_by_job_day(entries)
        for at in range(0, len(group), FILES_AT_ONCE)
    ]
    wanted = list(columns)
    if unknown := [name for name in wanted if name not in RAW]:
        raise InputError(f"no column {brief(unknown[0])}", remedy="known: " + ", ".join(RAW))
    return dd.from_map(
        _raw, pieces or [[]], store=store, columns=wanted, meta=_raw([], store, wanted)
    )


def _raw(entries: Sequence[StoreEntry], store: Store, columns: Sequence[str]) -> DataFrame:
    import numpy as np
    import pandas as pd

    files, _ = read_in(store, entries, [name for name in COLUMNS if name in (*columns, "begin_ns")])
    found = {}
    for name in columns:
        if name in COLUMNS:
            empty = [
                np.zeros(0, dtype=object if COLUMNS[name].dtype == "str" else COLUMNS[name].dtype)
            ]
            values = np.concatenate([file.rows[name] for file in files] or empty)
            found[name] = pd.Series(values, dtype=COLUMNS[name].dtype)
        else:
            found[name] = pd.Series(
                np.repeat(
                    [getattr(file.head, name) for file in files], [file.many for file in files]
                ),
                dtype="str",
            )
    return pd.DataFrame(found)
