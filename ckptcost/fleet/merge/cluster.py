"""Work done by a Dask cluster that somebody else runs: it is asked, never started, and left as it
was."""

from __future__ import annotations

import contextlib
import logging
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from queue import Empty, Queue
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from ckptcost.errors import Argument, CkptcostError, InputError, MeterUnavailable, not_there
from ckptcost.fleet.kept.store import ABOUT
from ckptcost.version import __version__

if TYPE_CHECKING:
    from ckptcost.fleet.kept.store import Store

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
    distributed = _distributed()
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


def _distributed() -> Any:
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
    has = client.run(_asked(), on_error="return")
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


def _asked() -> Callable[[], str]:
    def version() -> str:
        # within a function, so that its text is sent: a worker without ckptcost could not look it
        # up by name
        try:
            from ckptcost.version import __version__ as there
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
