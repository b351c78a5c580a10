"""Waits for what can be seen, with a deadline; never for time alone."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_for(true: Callable[[], object], most_s: float = 20.0) -> None:
    end = time.monotonic() + most_s
    while not true():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.002)
