"""A rank's place in a run: it records if it has the node's seat, else it keeps its own marks and
stands by.

Standing by costs one try for the lock each half second, in a daemon thread; when the holder is
killed, another rank reads on within about a second, in a part of its own. Marks of a rank without
the seat go to `<host>.rank<n>.jsonl`, from the same thread.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ckptcost.first.errors import CkptcostError, OutputError
from ckptcost.first.meters.base import Meter
from ckptcost.first.runs import job_facts
from ckptcost.first.runs.clocks import RealClock, Wake, boot_id
from ckptcost.first.runs.election import Seat, global_rank, local_rank
from ckptcost.first.runs.header import Header, base_name, host_name
from ckptcost.first.runs.pace import Pace
from ckptcost.first.runs.pump import SYNC_S
from ckptcost.first.runs.recorder import Recorder
from ckptcost.first.runs.sinks import FileSink

TRY_S = 0.5
PATIENCE_S = 1.0
"""local rank 0 is preferred: the others do not try for so long at the start"""
_MOST_MARKS = 100_000


class Station:
    """`meters` is called only by the rank that records, when it does: nobody else opens a
    device."""

    def __init__(
        self,
        directory: Path | str,
        run_id: str,
        meters: Callable[[], Sequence[Meter]],
        *,
        host: str = "",
        rank: int | None = None,
        local: int | None = None,
        pace: Pace | None = None,
        locks: Path | None = None,
        sync_s: float = SYNC_S,
        alone: bool = False,
    ) -> None:
        self._directory, self._meters, self._pace, self._sync_s = (
            Path(directory),
            meters,
            pace,
            sync_s,
        )
        self._host = host or host_name()
        self._rank = global_rank() if rank is None else rank
        self._local = local_rank() if local is None else local
        self.run_id, self._alone = run_id, alone
        self._locks = locks
        self._seat: Seat | None = None
        self._clock = RealClock()
        self._marks: deque[dict[str, Any]] = deque(maxlen=_MOST_MARKS)
        self._own: FileSink | None = None
        self._wake = Wake()
        self._pid = os.getpid()
        self._stopping = False
        self._refreshed_s = time.monotonic()
        self._thread: threading.Thread | None = None
        self.recorder: Recorder | None = None
        """of the rank that records"""
        self.problem = ""

    @property
    def elected(self) -> bool:
        return self.recorder is not None and os.getpid() == self._pid

    def start(self) -> Station:
        """Raises OutputError where this rank should record and cannot."""
        try:
            self._seat = Seat(self.run_id, self._host, self._locks)
        except OutputError as error:
            # no place for the lock: the first of the node records, and nobody takes over from it
            self.problem = str(error)
        if self._local == 0:
            self._try(anew=True)
        self._thread = threading.Thread(target=self._stand_by, name="ckptcost-station", daemon=True)
        self._thread.start()
        return self

    def mark(
        self,
        name: str,
        window: str = "",
        *,
        by: str = "api",
        rank: int | None = None,
        t_ns: int | None = None,
        **detail: object,
    ) -> None:
        """As `Recorder.mark`, with or without the seat."""
        at_ns = self._clock.now_ns() if t_ns is None else t_ns
        if self.recorder is not None:
            self.recorder.mark(name, window, by=by, rank=rank, t_ns=at_ns, **detail)
        elif os.getpid() == self._pid:
            fields = {
                "k": "mark",
                "t": at_ns,
                "name": name,
                "window": window,
                "rank": self._rank if rank is None else rank,
                "by": by,
            }
            self._marks.append(fields | {"detail": detail} if detail else fields)
            self._wake.ring()

    def expect(self, within_s: float) -> None:
        if self.recorder is not None:
            self.recorder.expect(within_s)

    def _try(self, anew: bool = False) -> None:
        if not (self._local == 0 if self._seat is None else self._seat.take(anew)):
            return
        recorder: Recorder | None = None
        try:
            sink = FileSink(self._directory, sync_s=self._sync_s)
            recorder = Recorder(
                self._meters(),
                sink,
                pace=self._pace,
                run_id=self.run_id,
                host=self._host,
                rank=self._rank,
                alone=self._alone,
            )
            recorder.start()
            job_facts.note_job_facts(recorder)
        except BaseException:
            if self._seat is not None:
                self._seat.leave()
            raise
        self.recorder = recorder

    def _stand_by(self) -> None:
        may_try_s = time.monotonic() + (0.0 if self._local == 0 else PATIENCE_S)
        while not self._stopping:
            self._wake.wait(TRY_S if self.recorder is None else 4 * TRY_S)
            try:
                self._write_marks()
                if self.recorder is not None:
                    self._keep_seat()
                elif not self._stopping and time.monotonic() >= may_try_s:
                    self._try()
            except (CkptcostError, OSError) as error:
                self.problem = str(error)
                may_try_s = time.monotonic() + 10.0
            except Exception as error:  # a meter's search may break; marks must go on
                self.problem = f"{type(error).__name__}: {error}"
                may_try_s = time.monotonic() + 10.0

    def _keep_seat(self) -> None:
        if self._seat and time.monotonic() - self._refreshed_s > 3600.0:
            self._refreshed_s = time.monotonic()
            self._seat.refresh()

    def _write_marks(self) -> None:
        """Marks that came before there was a recorder here, into this rank's own file."""
        if not self._marks:
            return
        if self._own is None:
            own = FileSink(
                self._directory,
                base=f"{base_name(self._host)}.rank{self._rank}",
                sync_s=self._sync_s,
            )
            own.open(
                Header(
                    run=self.run_id,
                    host=self._host,
                    rank=self._rank,
                    boot=boot_id(),
                    pid=os.getpid(),
                ),
                self._clock,
            )
            self._own = own
        while self._marks:
            self._own.line(self._marks.popleft())

    def stop(self, timeout_s: float = 10.0) -> None:
        """Ends this rank's part of the run. Another rank that goes on takes the seat after some
        seconds."""
        if os.getpid() != self._pid or self._stopping:
            return
        self._stopping = True
        self._wake.ring()
        if self._thread is not None:
            self._thread.join(timeout_s)
        try:
            self._write_marks()
        except (CkptcostError, OSError) as error:
            self.problem = str(error)
        if self._own is not None:
            self._own.line({"k": "end", "t": self._clock.now_ns(), "why": "stopped"})
            self._own.close()
        if self.recorder is not None:
            self.recorder.stop(timeout_s)
        if self._seat is not None:
            self._seat.leave()
