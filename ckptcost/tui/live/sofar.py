"""Joules since the recording began, domain by domain, added up reading by reading: roughly what a
report of the run will say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, nan
from typing import Any

from ckptcost.core.channels import Channel
from ckptcost.tui.live.curves import HOLD_S


@dataclass(slots=True)
class Sum:
    """Of one domain, from the channel that speaks for it."""

    slot: int
    place: int
    channel: Channel
    hold_s: float = HOLD_S
    joules: float = nan
    missed_s: float = 0.0
    """time of which nothing is known; of a counter there is none"""
    _before: float = nan
    _before_s: float = nan

    def see(self, t_s: float, entry: Any) -> None:
        counter = self.channel.is_counter
        if type(entry) is list:
            if counter and len(entry) == 2 and isinstance(entry[1], int | float):
                t_s -= entry[1] * 1e-9
            entry = entry[0]
        if entry is None or not isfinite(entry):
            return
        passed_s = t_s - self._before_s
        if passed_s <= 0:
            return
        if passed_s == passed_s:  # not the first one
            added = self._grown(entry) if counter else (entry + self._before) / 2 * passed_s
            if added != added or (not counter and passed_s > self.hold_s):
                self.missed_s += passed_s
            else:
                self.joules = added if self.joules != self.joules else self.joules + added
        self._before, self._before_s = entry, t_s

    def _grown(self, value: float) -> float:
        grown = value - self._before
        if grown >= 0:
            return grown
        return grown + self.channel.wraps_at if self.channel.wraps_at else nan


def total_j(sums: Sequence[Sum]) -> float:
    """Of all, or unknown: a sum that leaves one out is not the sum, and a counter that stands at 0
    does not count."""
    return sum(one.joules or nan for one in sums) if sums else nan
