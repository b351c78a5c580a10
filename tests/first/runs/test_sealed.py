"""Readings of a long run are kept small: what comes out of a sealed stretch is what went in, also
where lines come late, and lines that are read many at once are what one by one makes of them."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pytest

from ckptcost.first.core.channels import Channel
from ckptcost.first.runs import reader, tables
from ckptcost.first.runs.gaps import gaps_of
from ckptcost.first.runs.lines import Raw, begun_ns, raw_line
from ckptcost.first.runs.run import Node
from ckptcost.first.runs.tables import MeterTable, Seals

S = 10**9
CHANNELS = (
    Channel("gpu:0", "energy_j", "a"),
    Channel("gpu:0", "power_w", "a"),
    Channel("disk:sda", "written_bytes", "b"),
)


def bits(values) -> list[bytes]:
    return [struct.pack("d", value) for value in np.asarray(values, np.float64).tolist()]


@pytest.mark.parametrize(
    "column",
    [
        [],
        [7.25],
        [1.0] * 50,
        [0.1 * k for k in range(300)],
        [math.nan, 1.0, math.nan, math.nan, -0.0, 0.0],
        [2113953.387 + 0.001 * k for k in range(100)],
        [62383.618312665, 62387.32832514, 62387.32832514],
        [1e300, -1e300, 5e-324, math.inf],
        [2.0**53, 2.0**53 + 2, 1.0],
    ],
)
def test_a_packed_column_gives_back_every_bit(column):
    assert bits(tables.pack_floats(np.array(column, np.float64)).floats()) == bits(column)


@pytest.mark.parametrize(
    "column", [[], [5], [-(2**62), 2**62], [k * S for k in range(70_000)], [3, 3, 3, 9, 9]]
)
def test_packed_whole_numbers_are_what_they_were(column):
    assert tables.pack_ints(np.array(column, np.int64)).ints().tolist() == column


def test_what_is_steady_takes_little():
    steady = tables.pack_floats(np.repeat([100.0, 101.0], 4000))
    assert steady.more.nbytes + steady.places.nbytes < 10


def filled(seals: Seals | None, seed: int, late: bool) -> MeterTable:
    chance, table = np.random.default_rng(seed), MeterTable(CHANNELS, seals)
    joules = 0.0
    for second in (s for s in range(900) if s not in (333, 334, 335)):
        began = second * S
        for n in range(5 if second % 7 < 3 else 0):
            joules += float(chance.integers(0, 3))
            table.tick(began + n * S // 6, 40, [joules, 300.0, math.nan], 7)
        table.second(began, began + 4 * S // 6, 5, 50, [[joules, S // 9], [300.0, 1, 9, 5], 4.0])
    if late:
        table.tick(3 * S + 5, 40, [1.0, 2.0, 3.0], 7)
    return table


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_series_are_the_same_sealed_or_not(seed, late, monkeypatch):
    monkeypatch.setattr(tables, "SEALED", 128)
    sealed, plain = filled(Seals(), seed, late), filled(None, seed, late)
    assert (len(sealed.sealed) > 3) is not late, "what comes late opens what is sealed"
    nodes = [
        Node("h", (), tuple((stretch, 3) for stretch in table.stretches), 0, CHANNELS)
        for table in (sealed, plain)
    ]
    for channel in CHANNELS:
        for one, other in zip(*(node.series(channel) for node in nodes), strict=True):
            np.testing.assert_array_equal(one, other)
        assert nodes[0].answered(channel) == nodes[1].answered(channel)
    one, other = (node.ticked_s() for node in nodes)
    assert (one[0, 0], one[-1, 1]) == (other[0, 0], other[-1, 1])
    assert list(gaps_of(nodes[0])) == list(gaps_of(nodes[1]))


def test_decimals_are_what_float_makes_of_them():
    chance = np.random.default_rng(3)
    told = [
        *(float(f"{value:.3f}") for value in chance.uniform(0, 1e7, 500)),
        *(chance.uniform(-1, 1, 200) * 10.0 ** chance.integers(-300, 300, 200)).tolist(),
        *chance.integers(0, 2**62, 100).astype(float).tolist(),
    ]
    text = ",".join(map(repr, told)).encode()
    assert bits(reader.parse_floats(text)) == bits(told)


@pytest.mark.parametrize(
    "text", [b"", b"1,,2", b"1.2.3", b"1-2", b"1_0", b"x", b"1.0,", b".", b"1 "]
)
def test_what_is_no_number_is_no_decimal(text):
    with pytest.raises(ValueError, match=r"number|float|convert"):
        reader.parse_floats(text)


def column(table: MeterTable, index: int) -> tuple[Any, Any, Any]:
    """Times, values and how long the answers took of one channel."""
    rows = table.rows(index)
    return rows.t_ns, np.concatenate(table.values(index))[rows.pick], rows.took_ns


def test_lines_at_once_are_the_lines_one_by_one():
    meters = [CHANNELS[:2], CHANNELS[2:]]
    at_once, by_one = [MeterTable(of) for of in meters], [MeterTable(of) for of in meters]
    lines = reader.RawLines(at_once)
    for n in range(50):
        values = ((0.1 * n, math.nan), None) if n % 3 else ((1.5, -2e-7), (1e9,))
        tick = Raw(n * S, (300 + n, 5 * n), values)
        assert lines.take(n, raw_line(tick).removesuffix(b"\n"))
        begun = begun_ns(tick.took_ns, values)
        for table, took, row, after in zip(by_one, tick.took_ns, values, begun, strict=True):
            if row is not None:
                table.tick(tick.t_ns, took, row, after)
    assert lines.put() == 49 * S
    for one, other in zip(at_once, by_one, strict=True):
        for index in range(len(one.channels)):
            for part, same in zip(column(one, index), column(other, index), strict=True):
                np.testing.assert_array_equal(part, same)


@pytest.mark.parametrize(
    "values", [((1.0,), (1.0,)), ((1.0, 2.0, 3.0), None), (None,), ((1.0, 2.0), (1.0,), (1.0,))]
)
def test_a_line_that_does_not_fit_its_header_is_left_to_who_can_say_so(values):
    lines = reader.RawLines([MeterTable(CHANNELS[:2]), MeterTable(CHANNELS[2:])])
    took = tuple(range(len(values)))
    assert not lines.take(1, raw_line(Raw(5, took, values)).removesuffix(b"\n"))
    whole = raw_line(Raw(5, (1, 2), ((1.0, 2.0), None))).removesuffix(b"\n")
    assert lines.take(1, whole)
    assert not lines.take(1, whole.replace(b"2.0", b"3.0")), "its checksum does not fit"
