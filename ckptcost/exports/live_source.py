"""A run whose files grow, read in a thread of its own and told from any other as samples."""

from __future__ import annotations

import threading
from pathlib import Path

from ckptcost.errors import CkptcostError
from ckptcost.exports.live_metrics import Highest, Sample, samples_of
from ckptcost.jobs.live_counters import LiveCounters
from ckptcost.runs.follow import follow

POLL_S = 5.0
"""how often files are looked at where nobody asks, so that who asks after hours does not wait for
hours of lines"""
PATIENCE_S = 3.0
"""for files, which may lie on a storage that hangs; then what is known is told, and how old it
is"""
_FOREVER = 1 << 62


class Unreadable(Exception):
    """There is nothing to tell, and why."""


class LiveSource:
    """`read` once, or `start` and ask for `samples` until `close`."""

    def __init__(self, path: Path, run: str) -> None:
        """The folder or file, and the whole id of the run in it."""
        self.name = path.resolve().name.removesuffix(".jsonl")
        self.run = run
        self._path, self._counters, self._highest = path, LiveCounters(run), Highest()
        self._was = _identity(path)
        self._lock = threading.Lock()
        self._stopping, self._asked = threading.Event(), threading.Event()
        self._looks = threading.Condition()
        self._begun = self._done = 0
        """looks at the files, of which each finds all that was there when it began"""
        self._problem = ""
        self._thread: threading.Thread | None = None

    def read(self) -> LiveSource:
        """All that is there, at once, in this thread. Raises RunFileError."""
        for line in follow(self._path, stop=lambda: True):
            self._counters.take(line)
        return self

    def start(self) -> LiveSource:
        thread = threading.Thread(
            target=self._read_on, name="ckptcost-metrics-follows", daemon=True
        )
        thread.start()  # a signal may come meanwhile, and what has not begun cannot be waited for
        self._thread = thread
        return self

    def close(self) -> None:
        self._stopping.set()
        self._asked.set()
        if self._thread is not None:
            self._thread.join(PATIENCE_S)

    def check(self) -> None:
        """Raises Unreadable where there is nothing to tell."""
        if problem := self._problem or self._gone():
            raise Unreadable(problem)

    def samples(self) -> list[Sample]:
        """As of now. Raises Unreadable."""
        self._catch_up()
        self.check()
        with self._lock:
            return self._highest.kept(samples_of(self._counters.counters(), self.name))

    def _read_on(self) -> None:
        try:
            for line in follow(self._path, stop=self._begin, wait=self._rest):
                with self._lock:
                    self._counters.take(line)
                if self._stopping.is_set():
                    return
        except CkptcostError as error:
            self._problem = str(error)
        except OSError as error:
            self._problem = f"the run can no longer be read ({error.strerror or error})"
        except Exception as error:  # a defect of ours: say it, and do not tell what is half read
            self._problem = f"the run can no longer be followed ({type(error).__name__}: {error})"
        finally:
            with self._looks:
                self._begun = self._done = _FOREVER
                self._looks.notify_all()

    def _begin(self) -> bool:
        self._asked.clear()
        with self._looks:
            self._begun += 1
        return self._stopping.is_set()

    def _rest(self, _: float) -> None:
        with self._looks:
            self._done = self._begun
            self._looks.notify_all()
        self._asked.wait(POLL_S)

    def _catch_up(self) -> None:
        """Until a look that began after this call is over, for as long as patience lasts."""
        if self._thread is None:
            return
        with self._looks:
            wanted = min(self._begun + 1, _FOREVER)
            self._asked.set()
            self._looks.wait_for(lambda: self._done >= wanted, PATIENCE_S)
            if not self._done:  # half of a long run is no figure of it
                raise Unreadable("the run is being read for the first time; ask again")

    def _gone(self) -> str:
        """Why the files are no longer those that were read: they are open, and would be told of for
        ever."""
        now = _identity(self._path)
        if now is None:
            return "the run is gone: its folder or file was removed"
        if now != self._was:
            return "the run is gone: another folder or file is in its place"
        try:
            if self._path.is_dir() and not any(
                entry.suffix == ".jsonl" for entry in self._path.iterdir()
            ):
                return "the run is gone: its files were removed"
        except OSError as error:
            return f"the run can no longer be read ({error.strerror or error})"
        return ""


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
