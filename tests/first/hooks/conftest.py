"""A process that has not used a hook yet, and somebody who listens to it."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from ckptcost.first.hooks import labels, receivers, steps


class Heard(NamedTuple):
    name: str
    window: str
    rank: int | None
    t_ns: int
    detail: dict[str, Any]


class Ear:
    """A receiver that remembers."""

    listening = True

    def __init__(self) -> None:
        self.heard: list[Heard] = []

    def tell(self, name, window="", *, by="api", rank=None, t_ns=None, **detail):
        self.heard.append(Heard(name, window, rank, t_ns, detail))

    def forked(self):
        """Nothing to give back."""

    def close(self):
        """Nothing is open."""

    @property
    def names(self):
        """In the order of their instants."""
        return [(mark.name, mark.window) for mark in sorted(self.heard, key=lambda mark: mark.t_ns)]

    def detail(self, name, window=None):
        (found,) = [
            mark.detail
            for mark in self.heard
            if mark.name == name and window in (None, mark.window)
        ]
        return found


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    for name in (
        "CKPTCOST",
        "CKPTCOST_SOCKET",
        "CKPTCOST_RECORD",
        "CKPTCOST_RUN_ID",
        "RANK",
        "LOCAL_RANK",
        "SLURM_PROCID",
        "WORLD_SIZE",
    ):
        monkeypatch.delenv(name, raising=False)
    receivers.forget()
    labels.forget_counts()
    steps._ends.clear()
    steps._due_ns = 0
    yield
    receivers.forget()


@pytest.fixture
def ear():
    listener = Ear()
    receivers.use(listener)
    return listener
