"""A training process that records by itself: `CKPTCOST_RECORD=<dir>`, or `ckptcost.record(dir)`.
One rank of each node reads the meters.

Opening meters takes up to a second, once, at the first hook that is used: before the first window
begins, not inside it. A process that is killed leaves what it had written, a readable run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ckptcost.first.errors import CkptcostError
from ckptcost.first.hooks import receivers
from ckptcost.first.hooks.settles import Settles
from ckptcost.first.meters.base import Meter
from ckptcost.first.runs.station import Station

if TYPE_CHECKING:
    from ckptcost.first.watch.settle import Settling

RUN_ID = "CKPTCOST_RUN_ID"
Meters = str | Callable[[], Sequence[Meter]]
"""names with commas between them, "auto" for all that cost nothing; or what makes them"""
_made_ids: set[str] = set()
"""that this process gave to the environment, not the user"""


class Recording:
    """What `ckptcost.record` returns: `stop()`, or leave the `with` block. It is a receiver of the
    hooks' marks."""

    def __init__(
        self, directory: Path | str, meters: Meters = "auto", run_id: str = "", wait_s: float = 0.0
    ) -> None:
        self.directory = Path(directory).absolute()
        self.problem = ""
        """why nothing is recorded, or not all"""
        self._wait_s = wait_s
        self._pid = os.getpid()
        self._station: Station | None = None
        self._settler: Settling | None = None
        self._settles = Settles(self._settle)
        self.run_id = run_id or _shared_id()
        station = Station(self.directory, self.run_id, lambda: _open_meters(meters))
        try:
            self._station = station.start()
        except Exception as error:
            self.problem = (
                str(error)
                if isinstance(error, CkptcostError)
                else f"{type(error).__name__}: {error}"
            )
            station.stop()
            receivers.complain(f"nothing is recorded: {self.problem}")

    @property
    def listening(self) -> bool:
        return self._station is not None

    @property
    def elected(self) -> bool:
        """This rank reads the meters of its node."""
        return self._station is not None and self._station.elected

    def tell(
        self,
        name: str,
        window: str = "",
        *,
        by: str = "api",
        rank: int | None = None,
        t_ns: int | None = None,
        **detail: Any,
    ) -> None:
        station = self._station
        if station is None or os.getpid() != self._pid:
            return
        wanted = detail.pop("settle", False)
        station.mark(name, window, by=by, rank=rank, t_ns=t_ns, **detail)
        if t_ns is not None and name != "steps":
            self._settles.see(0, name, window, t_ns, rank or 0, detail.get("path"), wanted)

    def _settle(
        self, window: str, paths: Sequence[Path], *, since_ns: int, written_ns: int, rank: int
    ) -> None:
        if self._settler is None and self._station is not None:
            from ckptcost.first.watch.settle import Settling

            self._settler = Settling(self._station.mark)
        if self._settler is not None:
            self._settler.follow(window, paths, since_ns=since_ns, written_ns=written_ns, rank=rank)

    def stop(self, wait_s: float | None = None) -> None:
        """Ends it. `wait_s`: so long, at most, for saves that are not safe yet."""
        if os.getpid() != self._pid or self._station is None:
            return
        self._wait_s = self._wait_s if wait_s is None else wait_s
        if receivers.state.receiver is self:
            receivers.leave()  # which calls this again, when the last steps are told
            return
        station, self._station = self._station, None
        try:
            if self._settler is not None:
                self._settler.stop(self._wait_s)
            station.stop()
            recorder = station.recorder
            self.problem = (
                self.problem
                or station.problem
                or ("" if recorder is None else recorder.stats.problem)
            )
        except Exception as error:
            self.problem = f"{type(error).__name__}: {error}"

    def close(self) -> None:
        self.stop()

    def forked(self) -> None:
        """The child has none of its threads, and leaves its files alone."""

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class NotRecording:
    """What `ckptcost.record` returns where nothing is recorded by this process, and why."""

    run_id = ""
    elected = False

    def __init__(self, problem: str) -> None:
        self.problem = problem

    def stop(self, wait_s: float | None = None) -> None:
        """Nothing to end."""

    def __enter__(self) -> NotRecording:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to end."""


def record(
    directory: Path | str, meters: Meters = "auto", *, run_id: str = "", wait_s: float = 0.0
) -> Recording | NotRecording:
    """Record this process's checkpoints and the node's meters into a folder, until `stop()` or the
    end of the process.

    Every rank may call it: they agree on one that reads the meters. Where a wrapper listens already
    it does nothing, as with CKPTCOST=off. It never raises; `problem` says what is wrong. `wait_s`:
    at the end wait so long, at most, for saves to be safe.
    """
    try:
        if receivers.is_off():
            return NotRecording("CKPTCOST=off")
        if os.environ.get("CKPTCOST_SOCKET", ""):
            return NotRecording("a wrapper records this process already")
        running = receivers.state.receiver
        if isinstance(running, Recording) and running.listening:
            if running.directory == Path(directory).absolute():
                return running
            running.stop()
        made = Recording(directory, meters, run_id or _fresh_id(), wait_s)
        if not made.listening:
            return NotRecording(made.problem)
        receivers.use(made, lambda: Recording(directory, meters, made.run_id, wait_s))
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
        receivers.complain(f"nothing is recorded: {problem}")
        return NotRecording(problem)
    return made


def _open_meters(meters: Meters) -> Sequence[Meter]:
    if not isinstance(meters, str):
        return meters()
    from ckptcost.first.meters.found import Wanted, find_meters

    names = tuple(name.strip() for name in meters.split(",") if name.strip())
    return find_meters(Wanted() if names == ("auto",) else Wanted(names=names)).meters


def _fresh_id() -> str:
    """Another run of the same process has another id."""
    if os.environ.get(RUN_ID, "") in _made_ids:
        del os.environ[RUN_ID]
    return ""


def _shared_id() -> str:
    """An id that all ranks of this job have: the launcher's, else one made here, which children
    find in their environment."""
    from ckptcost.first.runs.election import job_run_id
    from ckptcost.first.runs.header import new_run_id

    known = job_run_id() or _launched_id()
    if not known:
        known = new_run_id()
        _made_ids.add(known)
        os.environ[RUN_ID] = known
    return known


def _launched_id() -> str:
    """Of ranks that one process of this node has started, as torchrun does without an id: that
    process and when it began."""
    if "LOCAL_RANK" not in os.environ or os.environ.get("LOCAL_WORLD_SIZE") != os.environ.get(
        "WORLD_SIZE"
    ):
        return ""
    import hashlib

    from ckptcost.first.runs.clocks import boot_id

    try:
        parent = os.getppid()
        began = Path(f"/proc/{parent}/stat").read_text("latin-1").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
    return hashlib.sha256(f"{boot_id()}\0{parent}\0{began}".encode()).hexdigest()[:32]
