"""What everything that finds checkpoints is given: somebody to tell, and a way to say that
something is coming."""

from __future__ import annotations

from typing import Protocol


class Tell(Protocol):
    """`Recorder.mark`: thread-safe, quick, never raises."""

    def __call__(
        self,
        name: str,
        window: str = "",
        *,
        by: str = "api",
        rank: int | None = None,
        t_ns: int | None = None,
        **detail: object,
    ) -> None: ...


class Expect(Protocol):
    """`Recorder.expect`: a mark will come within so long."""

    def __call__(self, within_s: float) -> None: ...
