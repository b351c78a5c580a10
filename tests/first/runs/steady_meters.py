"""Meters whose truth is a formula, for the tests of the recorder."""

from __future__ import annotations

from collections.abc import Sequence

from ckptcost.first.core.channels import Channel
from ckptcost.first.meters.base import Basic
from ckptcost.first.runs.pace import Pace

EVEN = Pace(off_beat=0.0)
"""a pace in round numbers"""


class Steady(Basic):
    """`count` domains; domain i draws 100 + i watts: a counter of exact joules and a gauge of watts
    each."""

    def __init__(
        self,
        name: str = "steady",
        count: int = 2,
        kind: str = "gpu",
        tick_ns: int = 0,
        least_s: float = 0.0,
    ) -> None:
        channels = []
        for i in range(count):
            channels.append(Channel(f"{kind}:{i}", "energy_j", f"{name} counter", scope=kind))
            channels.append(
                Channel(f"{kind}:{i}", "power_w", f"{name} gauge", scope=kind, role="detail")
            )
        super().__init__(
            name, tuple(channels), least_s=least_s, simulated=True, facts={"driver": "1.0"}
        )
        self.tick_ns = tick_ns
        self.count = count
        self.asked: list[int] = []
        self.closed = 0

    def read(self, t_ns: int) -> Sequence[float]:
        self.asked.append(t_ns)
        at_ns = t_ns // self.tick_ns * self.tick_ns if self.tick_ns else t_ns
        row = []
        for i in range(self.count):
            row += [(100 + i) * (at_ns / 1e9), 100.0 + i + (t_ns // 1_000_000 % 7)]
        return row

    def close(self) -> None:
        self.closed += 1
