"""Marks to windows: timelines by hand, every order of marks, and a plain account of clean saves."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptcost.first.core.channels import Mark
from ckptcost.first.core.phases import MARKS, windows_of
from ckptcost.first.core.windows import Flag, Window


def marks(text: str, label: str = "step 1000", rank: int = 0) -> list[Mark]:
    """`begin 0, returned 10` as marks."""
    return [
        Mark(float(at), name, label, rank)
        for name, at in (word.split() for word in text.split(","))
    ]


def one(text: str) -> Window:
    (window,) = windows_of(marks(text))
    return window


def named(phases) -> list[tuple[str, float, float]]:
    return [tuple(phase) for phase in phases]


def codes(window: Window) -> set[str]:
    return {flag.code for flag in window.flags}


def test_a_synchronous_save():
    save = one("begin 0, snapshotted 2, written 7, synced 9, committed 10, returned 11, end 11")
    assert (save.begin_s, save.returned_s, save.durable_s, save.end_s) == (0, 11, 10, 11)
    assert (save.stall_s, save.drain_s, save.length_s) == (11, 0, 11)
    assert named(save.phases) == [("stall", 0, 11), ("drain", 11, 11)]
    assert named(save.storage) == [
        ("snapshot", 0, 2),
        ("write", 2, 7),
        ("fsync", 7, 9),
        ("commit", 9, 10),
        ("return", 10, 11),
    ]
    assert save.flags == ()
    assert (save.begin_why, save.returned_why, save.durable_why) == ("", "", "")


def test_an_asynchronous_save_returns_before_it_is_written():
    save = one(
        "begin 100, snapshotted 101, returned 102, written 130, synced 140, durable 145, end 145"
    )
    assert (save.stall_s, save.drain_s) == (2, 43)
    assert named(save.phases) == [("stall", 100, 102), ("drain", 102, 145)]
    assert named(save.storage) == [
        ("snapshot", 100, 101),
        ("write", 101, 130),
        ("fsync", 130, 140),
        ("settle", 140, 145),
    ]


def test_without_fsync_durable_is_unknown_and_not_the_return():
    save = one("begin 0, written 1, returned 1.5, end 1.5")
    assert (save.returned_s, save.durable_s, save.durable_why) == (1.5, None, "NOT_MARKED")
    assert save.end_s is save.length_s is save.drain_s is None
    assert named(save.phases) == [("stall", 0, 1.5)]


def test_the_tail_of_writeback_is_drain():
    save = one("begin 0, written 1, returned 1.5, durable 30.8")
    assert save.drain_s == pytest.approx(29.3)
    assert named(save.storage)[-1] == ("settle", 1, 30.8)


@pytest.mark.parametrize(
    ("said", "durable"),
    [
        ("synced 5", 5),
        ("committed 6", None),
        ("synced 5, committed 6", 6),
        ("synced 7, committed 6", 7),
        ("synced 5, committed 6, durable 5.5", 5.5),
        ("committed 6, durable 36", 36),
    ],
)
def test_what_durable_rests_on(said, durable):
    assert one(f"begin 0, returned 1, {said}").durable_s == durable


def test_a_rename_without_fsync_is_not_durable():
    assert one("begin 0, committed 5, returned 6").durable_why == "UNSYNCED"
    assert one("begin 0, written 5, returned 6").durable_why == "NOT_MARKED"
    assert one("begin 0, committed 5, returned 6, durable 40").durable_why == ""
    assert codes(one("begin 0, synced 4, committed 5, returned 6")) == set()
    assert codes(one("begin 0, committed 5, durable 9, returned 6")) == set()


def test_a_watched_window_has_no_return():
    save = one("begin 0, written 5, committed 6, durable 8, end 8")
    assert (save.returned_s, save.returned_why, save.stall_s, save.drain_s, save.length_s) == (
        None,
        "NOT_MARKED",
        None,
        None,
        8,
    )
    assert named(save.phases) == [("undivided", 0, 8)]


def test_the_job_died():
    save = one("begin 0, snapshotted 2, written 5")
    assert (save.returned_why, save.durable_why, save.last_s, save.end_s) == (
        "UNFINISHED",
        "UNFINISHED",
        5,
        None,
    )
    assert named(save.phases) == []
    assert named(save.storage) == [("snapshot", 0, 2), ("write", 2, 5)]


def test_a_window_without_begin():
    save = one("written 5, returned 6, durable 7")
    assert (save.begin_s, save.begin_why, save.stall_s, save.length_s) == (
        None,
        "NO_BEGIN",
        None,
        None,
    )
    assert (save.phases, save.storage) == ((), ())
    assert save.flags == (Flag("BEGIN_MISSING", "rank 0"),)


def test_doubled_marks():
    save = one(
        "begin 0, begin 1, returned 5, returned 7, written 8, written 9, durable 10, durable 12"
    )
    assert (save.begin_s, save.returned_s, save.durable_s) == (0, 5, 12)
    assert named(save.storage) == [("write", 0, 9), ("settle", 9, 12)]
    assert save.flags == tuple(
        Flag("DOUBLED", name) for name in ("begin", "returned", "written", "durable")
    )


def test_a_mark_before_the_first_begin_belongs_nowhere():
    save = one("written -1, begin 0, returned 5, durable 6")
    assert named(save.phases) == [("stall", 0, 5), ("drain", 5, 6)]
    assert save.storage == ()
    assert save.flags == (Flag("STRAY", "written"),)


def test_marks_against_their_order_join_phases():
    save = one("begin 0, written 3, snapshotted 5, synced 6, returned 7")
    assert named(save.storage) == [("snapshot+write", 0, 5), ("fsync", 5, 6), ("return", 6, 7)]
    assert Flag("OUT_OF_ORDER", "written") in save.flags


def test_marks_of_two_watchers_at_one_instant_are_in_order():
    """A close is told some milliseconds after the fsync before it."""
    save = one("begin 0, written 3.007, synced 3, committed 4, returned 4")
    assert named(save.storage) == [
        ("write", 0, 3.007),
        ("fsync", 3.007, 3.007),
        ("commit", 3.007, 4),
    ]
    assert save.flags == ()
    late = one("begin 0, written 3.06, synced 3, returned 4")
    assert late.flags == (Flag("OUT_OF_ORDER", "synced"),)


def test_a_name_used_twice():
    first, second, third = windows_of(
        marks(
            "begin 0, returned 5, durable 6, begin 10, returned 12, synced 14, end 14, begin 14,"
            " returned 15"
        )
    )
    assert [w.name for w in (first, second, third)] == ["step 1000", "step 1000 #2", "step 1000 #3"]
    assert {w.label for w in (first, second, third)} == {"step 1000"}
    assert [(w.begin_s, w.returned_s, w.durable_s) for w in (first, second, third)] == [
        (0, 5, 6),
        (10, 12, 14),
        (14, 15, None),
    ]
    assert first.flags == second.flags == third.flags == ()


def test_a_name_that_looks_like_a_second_use_is_not_taken():
    names = [
        w.name
        for w in windows_of(
            marks("begin 0, end 1, begin 2, end 3", "a") + marks("begin 4, end 5", "a #2")
        )
    ]
    assert names == ["a", "a #3", "a #2"]


def test_the_same_name_while_the_first_still_drains():
    first, second = windows_of(
        marks("begin 0, returned 1, begin 30, returned 31, durable 40, durable 70")
    )
    assert (first.durable_s, second.durable_s) == (40, 70)
    assert codes(first) == codes(second) == {"REUSED_WHILE_OPEN"}


def test_a_save_without_end_does_not_take_the_next_ones_marks():
    first, second = windows_of(
        marks("begin 0, returned 10, begin 100, written 105, synced 108, returned 110")
    )
    assert (first.durable_s, second.durable_s) == (None, 108)
    assert first.flags == second.flags == ()


def test_at_one_instant_marks_go_to_the_window_that_lacks_them():
    first, second = windows_of(marks("begin 0, returned 1, end 2, begin 5, written 5, returned 6"))
    assert "written" not in first.spans[0].at_s
    assert second.spans[0].at_s["written"] == 5
    *_, second, third = windows_of(
        marks("begin 0, written 3, returned 5, begin 5, returned 7, written 8, begin 8, returned 9")
    )
    assert second.spans[0].at_s == {"begin": 5, "returned": 7, "written": 8}
    assert third.spans[0].at_s == {"begin": 8, "returned": 9}


def test_zero_length_windows_at_one_instant():
    save = one("returned 5, begin 5, durable 5")
    assert (save.stall_s, save.drain_s, save.length_s) == (0, 0, 0)
    first, second = windows_of(
        marks("begin 0, returned 1, durable 2, durable 5, returned 5, begin 5")
    )
    assert (first.durable_s, second.stall_s, second.durable_s) == (2, 0, 5)


def test_nested_and_overlapping_windows_stay_apart():
    inner, outer = (
        marks("begin 2, returned 3, durable 4", "shard"),
        marks("begin 0, returned 10, durable 12", "all"),
    )
    late = marks("begin 11, returned 13, durable 20", "next")
    found = windows_of(late + inner + outer)
    assert [(w.name, w.begin_s, w.end_s) for w in found] == [
        ("all", 0, 12),
        ("shard", 2, 4),
        ("next", 11, 20),
    ]


def test_ranks_of_one_checkpoint_and_the_straggler():
    two, three = (
        marks("begin 1, returned 4, durable 30", rank=1),
        marks("begin 2, returned 9, synced 9", rank=2),
    )
    (save,) = windows_of(marks("begin 0, returned 5, durable 6") + two + three)
    assert (save.begin_s, save.returned_s, save.durable_s) == (0, 9, 30)
    assert [(span.rank, span.stall_s) for span in save.spans] == [(0, 5), (1, 3), (2, 7)]
    assert save.waited_s == {0: 4, 1: 5, 2: 0}


def test_the_checkpoint_has_written_when_the_last_rank_has():
    (save,) = windows_of(
        marks("begin 0, written 3, synced 4, returned 5")
        + marks("begin 1, written 6, synced 7, returned 8", rank=1)
    )
    assert named(save.storage) == [("write", 0, 6), ("fsync", 6, 7), ("return", 7, 8)]
    assert [named(span.storage)[0] for span in save.spans] == [("write", 0, 3), ("write", 1, 6)]


def test_a_rank_without_begin_may_have_copied_before_the_others_began():
    (save,) = windows_of(
        marks("begin 10, written 15, synced 18, returned 20")
        + marks("snapshotted 5, returned 21, durable 19", rank=1)
    )
    assert named(save.storage) == [
        ("snapshot+write", 10, 15),
        ("fsync", 15, 18),
        ("settle", 18, 19),
        ("return", 19, 21),
    ]
    assert save.flags == (Flag("BEGIN_MISSING", "rank 1"), Flag("OUT_OF_ORDER", "snapshotted"))


def test_a_rank_that_never_gets_safe_leaves_the_checkpoint_unsafe():
    (save,) = windows_of(
        marks("begin 0, returned 5, durable 6") + marks("begin 0, returned 4", rank=1)
    )
    assert (save.returned_s, save.durable_s, save.durable_why) == (5, None, "RANK_MISSING")
    (save,) = windows_of(marks("begin 0, returned 5, durable 6") + marks("begin 0", rank=1))
    assert (save.returned_s, save.returned_why, save.waited_s) == (None, "RANK_MISSING", {})


def test_ranks_that_share_no_instant_are_one_checkpoint():
    (save,) = windows_of(marks("begin 0, returned 5") + marks("begin 6, returned 9", rank=1))
    assert (save.begin_s, save.returned_s) == (0, 9)


def test_a_rank_that_missed_the_first_use_joins_the_second():
    rank_0 = marks("begin 0, returned 10, durable 11, begin 100, returned 110, durable 111")
    first, second = windows_of(rank_0 + marks("begin 99, returned 109, durable 112", rank=1))
    assert [len(w.spans) for w in (first, second)] == [1, 2]
    assert (second.begin_s, second.durable_s) == (99, 112)


def test_a_straggler_that_reaches_into_the_next_use():
    rank_0 = marks("begin 0, returned 10, durable 11, begin 50, returned 60, durable 61")
    first, second = windows_of(
        rank_0
        + marks("begin 5, returned 55, durable 56, begin 58, returned 70, durable 71", rank=1)
    )
    assert [(w.begin_s, w.returned_s) for w in (first, second)] == [(0, 55), (50, 70)]


def test_remarks_and_marks_without_a_time_are_not_marks():
    extra = [
        Mark(3.0, "note", "step 1000"),
        Mark(float("nan"), "durable", "step 1000"),
        Mark(float("inf"), "end", "other"),
    ]
    assert windows_of(extra + marks("begin 0, returned 5")) == windows_of(
        marks("begin 0, returned 5")
    )
    assert windows_of([]) == []


# ---- any order of any marks -----------------------------------------------------------------

ANY = st.lists(
    st.builds(
        Mark,
        st.integers(0, 12).map(float),
        st.sampled_from([*MARKS, "begin", "returned", "note"]),
        st.sampled_from(["a", "a #2", ""]),
        st.integers(0, 2),
    ),
    max_size=24,
)


@given(ANY, st.randoms(use_true_random=False))
def test_any_marks_in_any_order(some, chance):
    found = windows_of(some)
    shuffled = list(some)
    chance.shuffle(shuffled)
    assert windows_of(shuffled) == found
    assert len({window.name for window in found}) == len(found)
    for window in found:
        for phases in (window.phases, window.storage, *(span.storage for span in window.spans)):
            assert all(phase.end_s >= phase.begin_s for phase in phases)
            assert all(one.end_s == two.begin_s for one, two in pairwise(phases))
        if window.phases:
            assert window.phases[0].begin_s == window.begin_s
            assert window.phases[-1].end_s == (
                window.returned_s if window.end_s is None else window.end_s
            )
        if window.length_s is not None:
            assert window.length_s >= 0
            assert sum(phase.length_s for phase in window.phases) == window.length_s
            assert not window.storage or window.storage[-1].end_s >= window.end_s
        assert (window.begin_s is None) == bool(window.begin_why)
        assert (window.returned_s is None) == bool(window.returned_why)
        assert (window.durable_s is None) == bool(window.durable_why)
        assert [span.rank for span in window.spans] == sorted({span.rank for span in window.spans})
        assert all(waited >= 0 for waited in window.waited_s.values())


@given(ANY)
def test_no_mark_is_lost_or_invented(some):
    """Each mark's instant is in a span or its name is flagged; each instant in a span is a
    mark's."""
    found = [(window.label, span) for window in windows_of(some) for span in window.spans]
    said = Counter(
        (mark.window, mark.rank, mark.name, mark.t_s) for mark in some if mark.name in MARKS
    )
    used = Counter(
        (label, span.rank, name, t_s) for label, span in found for name, t_s in span.at_s.items()
    )
    assert not used - said
    odd = {
        (label, span.rank, flag.about)
        for label, span in found
        for flag in span.flags
        if flag.code in ("DOUBLED", "STRAY")
    }
    missing = {(label, rank, name) for (label, rank, name, _) in said - used}
    begun = {(mark.window, mark.rank) for mark in some if mark.name == "begin"}
    assert {key for key in missing if key[:2] in begun} <= odd


def plain(save: dict[int, dict[str, float]]) -> tuple[float, float, float]:
    """What a clean save comes to, said once more."""
    safe = [
        at.get("durable", max(at.get("synced", -1.0), at.get("committed", -1.0)))
        for at in save.values()
    ]
    return (
        min(at["begin"] for at in save.values()),
        max(at["returned"] for at in save.values()),
        max(safe),
    )


@given(st.integers(0, 10_000))
def test_clean_saves_by_a_plain_account(seed):
    chance = random.Random(seed)
    saves, some, at_s = {}, [], 0.0
    for n in range(chance.randint(1, 5)):
        label = chance.choice([f"step {n}", "latest"])
        save = {}
        for rank in range(chance.randint(1, 3)):
            names = ["snapshotted", "written", "synced", "committed"]
            times = sorted(chance.uniform(at_s, at_s + 10.0) for _ in range(5))
            save[rank] = {
                "begin": times[0],
                **dict(zip(names, times[1:], strict=True)),
                "returned": chance.uniform(times[0], at_s + 10.0),
            }
            if chance.random() < 0.5:
                save[rank]["durable"] = times[4] + 1.0
        # windows of one label stay apart in time, each rank among them overlapping the others
        for at in save.values():
            at["begin"] = at_s
        at_s += 20.0
        saves[len(saves)] = (label, save)
        some += [
            Mark(t_s, name, label, rank) for rank, at in save.items() for name, t_s in at.items()
        ]
    chance.shuffle(some)
    found = windows_of(some)
    assert [w.label for w in found] == [label for label, _ in saves.values()]
    for window, (_, save) in zip(found, saves.values(), strict=True):
        assert (window.begin_s, window.returned_s, window.durable_s) == plain(save)
