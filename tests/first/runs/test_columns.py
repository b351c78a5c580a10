"""Readings of a channel out of many tables: the same as a plain loop over the lines makes of them,
also after more has come."""

from __future__ import annotations

import itertools
from math import isfinite, nan

import numpy as np
import pytest

from ckptcost.first.core.channels import Channel
from ckptcost.first.errors import UnknownName
from ckptcost.first.runs.run import Node
from ckptcost.first.runs.tables import MeterTable

S = 10**9
JOULES, BYTES = Channel("gpu:0", "energy_j", "a"), Channel("disk:sda", "written_bytes", "b")
WATTS, DIRTY = Channel("gpu:0", "power_w", "a"), Channel("host", "dirty_bytes", "c")
CHANNELS = (JOULES, WATTS, BYTES, DIRTY)


class Told:
    """The same lines for a table and for a plain list."""

    def __init__(
        self, chance: np.random.Generator, channels: tuple[Channel, ...], from_s: int
    ) -> None:
        self.table, self.channels, self.chance = MeterTable(channels), channels, chance
        self.ticks: list[tuple[int, int, list[float], int]] = []
        self.seconds: list[tuple[int, int, int, int, list[object]]] = []
        self.at_s = from_s

    def one(self) -> object:
        return nan if self.chance.random() < 0.2 else float(self.chance.integers(1000))

    def more(self, seconds: int) -> None:
        for _ in range(seconds):
            began, self.at_s = self.at_s * S, self.at_s + 1
            count = int(self.chance.integers(1, 6))
            for n in range(count):
                if self.chance.random() < 0.5:  # of some seconds most ticks are told, of others few
                    row = [self.one() for _ in self.channels]
                    took_ns = int(self.chance.integers(1, 99))
                    begun_ns = int(self.chance.integers(0, took_ns))
                    self.ticks.append((began + n * S // 6, took_ns, row, begun_ns))
                    self.table.tick(*self.ticks[-1])
            entries: list[object] = []
            for channel in self.channels:
                value = self.one()
                late = (
                    [value, int(self.chance.integers(1, S // 8))]
                    if channel.is_counter
                    else [value, 0.0, 999.0, 3]
                )
                entries.append(late if self.chance.random() < 0.2 else value)
            self.seconds.append(
                (
                    began,
                    began + (count - 1) * S // 6,
                    count,
                    int(self.chance.integers(1, 99)),
                    entries,
                )
            )
            self.table.second(*self.seconds[-1])
        if self.chance.random() < 0.5:
            self.ticks.reverse()
            again = MeterTable(self.channels)
            for tick in self.ticks:
                again.tick(*tick)
            for second in self.seconds:
                again.second(*second)
            self.table = again

    def plain(self, index: int) -> list[tuple[int, float, int]]:
        """By hand, reading for reading."""
        ticks = sorted(
            (
                (t_ns, row[index], took_ns - begun_ns, begun_ns)
                for t_ns, took_ns, row, begun_ns in self.ticks
            ),
            key=lambda one: one[0],
        )
        alone, covered = [], []
        for from_ns, to_ns, count, took_ns, entries in self.seconds:
            if 2 * sum(from_ns <= t_ns <= to_ns for t_ns, *_ in ticks) >= count:
                continue
            entry = entries[index]
            value = entry[0] if isinstance(entry, list) else entry
            at_ns = (
                to_ns - (entry[1] if isinstance(entry, list) else 0)
                if self.channels[index].is_counter
                else (from_ns + to_ns) // 2
            )
            alone.append((at_ns, value, took_ns))
            covered.append((from_ns, to_ns))
        if not self.channels[index].is_counter:
            ticks = [
                one
                for one in ticks
                if not any(from_ns <= one[0] <= to_ns for from_ns, to_ns in covered)
            ]
        found: dict[int, tuple[int, float, int]] = {}
        asked = [(t_ns + begun_ns, value, took_ns) for t_ns, value, took_ns, begun_ns in ticks]
        for one in [*asked, *alone]:
            found.setdefault(one[0], one)
        return [found[at_ns] for at_ns in sorted(found)]


def same(node: Node, channel: Channel, told: list[tuple[Told, int]]) -> None:
    found = [
        (at + ahead, value, took)
        for one, ahead in told
        if channel in one.channels
        for at, value, took in one.plain(one.channels.index(channel))
    ]
    found.sort(key=lambda one: one[0])
    seen = node.series(channel)
    np.testing.assert_array_equal(seen.t_s, [(at - node.origin_ns) / 1e9 for at, *_ in found])
    np.testing.assert_array_equal(seen.value, [value for _, value, _ in found])
    np.testing.assert_array_equal(seen.took_s, [took / 1e9 for *_, took in found])
    assert node.answered(channel) == any(isfinite(value) for _, value, _ in found)


@pytest.mark.parametrize("seed", range(12))
def test_series_are_what_a_plain_loop_makes_of_the_lines(seed):
    chance = np.random.default_rng(seed)
    told = [
        (Told(chance, CHANNELS, 0), 0),
        (Told(chance, CHANNELS[::-1], 20), 0),
        (Told(chance, CHANNELS[1:3], 30), 5),
    ]
    for one, _ in told:
        one.more(12)
    node = Node("host", (), tuple((one.table, ahead) for one, ahead in told), 7, CHANNELS)
    for channel in CHANNELS:
        same(node, channel, told)


@pytest.mark.parametrize("seed", range(6))
def test_what_comes_later_is_seen_whatever_was_asked_before(seed):
    """What is kept is of the rows as they were: with one more it is worked out anew."""
    chance = np.random.default_rng(seed)
    one = Told(chance, CHANNELS, 0)
    node = Node("host", (), ((one.table, 0),), 0, CHANNELS)
    for row in itertools.chain(
        [[nan] * 4] * 3, [[1.0, nan, 2.0, nan]], [[nan, 3.0, nan, nan]], [[4.0, 4.0, 4.0, 4.0]]
    ):
        one.ticks.append((len(one.ticks) * S, 3, list(row), 1))
        one.table.tick(*one.ticks[-1])
        for channel in CHANNELS:
            same(node, channel, [(one, 0)])
    one.seconds.append((90 * S, 91 * S, 9, 5, [nan, 8.0, [9.0, 17], 1.0]))
    one.table.second(*one.seconds[-1])
    for channel in CHANNELS:
        same(node, channel, [(one, 0)])


def test_other_tables_or_another_origin_are_other_readings():
    chance = np.random.default_rng(5)
    first, second = Told(chance, CHANNELS, 0), Told(chance, CHANNELS[:2], 50)
    first.more(5)
    second.more(5)
    node = Node("host", (), ((first.table, 0),), 0, CHANNELS)
    same(node, WATTS, [(first, 0)])
    node.tables = ((second.table, 0),)
    same(node, WATTS, [(second, 0)])
    with pytest.raises(UnknownName, match="written_bytes"):
        node.series(BYTES)
    with pytest.raises(UnknownName, match="written_bytes"):
        node.answered(BYTES)
    node.origin_ns = 3 * S
    same(node, WATTS, [(second, 0)])


def test_times_that_channels_share_are_nobodys_to_change():
    one = Told(np.random.default_rng(1), CHANNELS, 0)
    one.more(4)
    node = Node("host", (), ((one.table, 0),), 0, CHANNELS)
    watts, dirty = node.series(WATTS), node.series(DIRTY)
    assert watts.t_s is dirty.t_s
    with pytest.raises(ValueError, match="read-only"):
        watts.t_s[0] = 5.0
