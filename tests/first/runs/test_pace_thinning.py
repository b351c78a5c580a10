"""When to ask, and what is kept: a plain re-implementation for the summaries, rules for the
rest."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from steady_meters import EVEN

from ckptcost.first.runs.clocks import S
from ckptcost.first.runs.lines import Raw, Second
from ckptcost.first.runs.pace import Pace, Renewals, Tempo, Thinner, differ, summarise

MS = 1_000_000


def test_the_lattice_has_no_memory_of_lateness():
    tempo = Tempo(EVEN, 5 * MS)
    assert tempo.next_ns(5 * MS) == 205 * MS
    assert tempo.next_ns(205 * MS + 77) == 405 * MS
    assert tempo.next_ns(405 * MS - 1) == 405 * MS
    assert tempo.next_ns(3 * S + 6 * MS) == 3205 * MS


def test_quick_around_marks_and_before_expected_ones():
    tempo = Tempo(EVEN, 0)
    tempo.on_mark("note", "", 1 * S)
    assert tempo.next_ns(1 * S) == 1 * S + 20 * MS
    assert tempo.next_ns(int(2.5 * S) - 1) == int(2.5 * S)
    assert tempo.next_ns(int(2.5 * S)) == int(2.6 * S)
    tempo.expect(10 * S)
    assert tempo.next_ns(9 * S) == 9 * S + 20 * MS


def test_windows_keep_until_they_end_or_are_given_up():
    tempo = Tempo(Pace(window_most_s=100), 0)
    tempo.on_mark("begin", "a", 10 * S)
    tempo.on_mark("begin", "b", 11 * S)
    tempo.on_mark("end", "a", 20 * S)
    assert tempo.keeping(50 * S)
    tempo.on_mark("end", "b", 60 * S)
    assert tempo.keeping(62 * S)
    assert not tempo.keeping(62 * S + 1)
    tempo.on_mark("begin", "c", 70 * S)
    assert tempo.abandoned(170 * S) == []
    assert tempo.abandoned(170 * S + 1) == ["c"]
    assert not tempo.keeping(170 * S + 1)


@pytest.mark.parametrize(
    "wrong",
    [{"rest_s": 0.01}, {"quick_s": 0.0}, {"rest_s": 11}, {"around_s": -1.0}, {"rest_s": math.nan}],
)
def test_a_pace_that_makes_no_sense(wrong):
    with pytest.raises(ValueError, match="a pace asks"):
        Pace(**wrong)


NUMBER = st.one_of(st.floats(-1e6, 1e6), st.just(math.nan))
ROW = st.one_of(st.none(), st.tuples(NUMBER, NUMBER))


@given(st.lists(st.tuples(st.integers(1, 300), ROW, ROW), min_size=1, max_size=8))
def test_summaries_against_plain_ones(rows):
    ticks, t_ns = [], 0
    for step, one, other in rows:
        t_ns += step
        ticks.append(Raw(t_ns, (step, 2 * step), (one, other)))
    got = summarise(ticks, ((True, False), (True, False)))
    assert (got.from_ns, got.t_ns) == (ticks[0].t_ns, ticks[-1].t_ns)
    for meter in (0, 1):
        asked = [(t.t_ns, t.values[meter]) for t in ticks if t.values[meter] is not None]
        if not asked:
            assert (got.counts[meter], got.values[meter]) == (0, None)
            continue
        if (asked[0][0], asked[-1][0]) == (got.from_ns, got.t_ns):
            assert got.counts[meter] == len(asked)
        else:
            assert got.counts[meter] == (
                len(asked),
                got.t_ns - asked[0][0],
                got.t_ns - asked[-1][0],
            )
        counter, gauge = got.values[meter]
        answered = [(t, row[0]) for t, row in asked if not math.isnan(row[0])]
        if not answered:
            assert counter is None
        else:
            value, back = counter if isinstance(counter, list) else (counter, 0)
            assert (got.t_ns - back, value) == answered[-1]
        seen = [row[1] for _, row in asked if not math.isnan(row[1])]
        if not seen:
            assert gauge is None
        elif isinstance(gauge, list):
            assert gauge[0] == pytest.approx(sum(seen) / len(seen), rel=1e-8, abs=1e-9)
            assert gauge[1:] == [min(seen), max(seen), len(seen)]
        else:
            assert set(seen) == {gauge}
    assert got.took_ns == (max(r[0] for r in rows), 2 * max(r[0] for r in rows))


def thinned(marks_ms, length_ms=12_000, step_ms=200):
    out: list[Raw | Second] = []
    tempo = Tempo(EVEN, 0)
    tempo.keep_until_ns = -1
    thinner = Thinner(((True,),), out.append, 0, 2.0)
    most = 0
    for ms in range(0, length_ms, step_ms):
        for mark in [m for m in marks_ms if ms - step_ms < m <= ms]:
            tempo.on_mark("note", "", mark * MS)
            thinner.keep_since(mark * MS)
        thinner.add(Raw(ms * MS, (0,), ((float(ms),),)), tempo.keeping(ms * MS))
        most = max(most, thinner.held())
    thinner.close()
    return out, most


def test_every_second_has_its_summary_and_ticks_only_around_marks():
    out, most = thinned([])
    assert [s.from_ns // S for s in out] == list(range(12))
    assert all(type(s) is Second for s in out)
    assert most <= 4 * 5


@given(st.lists(st.integers(0, 11_800), max_size=3))
def test_two_seconds_before_and_after_each_mark_in_whole_seconds(marks):
    out, _ = thinned(marks)
    ticks = [r.t_ns // MS for r in out if type(r) is Raw]
    assert len(set(ticks)) == len(ticks)
    wanted = {ms for ms in range(0, 12_000, 200) for m in marks if m - 2000 <= ms <= m + 2000}
    assert wanted <= set(ticks)
    assert {ms // 1000 for ms in ticks} <= {
        ms // 1000 for m in marks for ms in range(m - 2200, m + 2201)
    }  # and no second more
    for second in {ms // 1000 for ms in ticks}:
        assert {ms for ms in ticks if ms // 1000 == second} == set(
            range(second * 1000, second * 1000 + 1000, 200)
        )
    assert len([s for s in out if type(s) is Second]) == 12


def test_renewal_periods():
    seen = Renewals(3)
    for ms in range(0, 3000, 20):
        seen.see(ms * MS, (ms // 100 * 1.0, 5.0, math.nan), 40 * MS)
    periods = seen.periods_s()
    assert periods[0] == pytest.approx(0.1)
    assert math.isnan(periods[1])
    assert math.isnan(periods[2])


def test_slow_readings_say_nothing_of_the_period():
    seen = Renewals(1)
    for ms in range(0, 60_000, 200):
        seen.see(ms * MS, (float(ms),), 40 * MS)
    assert math.isnan(seen.periods_s()[0])


def test_stretches_are_not_joined():
    seen = Renewals(1)
    for start in range(0, 20_000, 5000):
        for ms in range(start, start + 450, 10):
            seen.see(ms * MS, (ms // 100 * 1.0,), 40 * MS)
    assert seen.periods_s()[0] == pytest.approx(0.1)


def test_what_is_news_of_periods():
    nan = math.nan
    assert not differ((), ((nan,),))
    assert differ((), ((0.1,),))
    assert differ(((nan,),), ((0.1,),))
    assert not differ(((0.1,),), ((0.105,),))
    assert differ(((0.1,),), ((0.12,),))
