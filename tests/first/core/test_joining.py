"""One checkpoint that the job and a watcher both saw is one checkpoint."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptcost.first.core.channels import Mark
from ckptcost.first.core.contents import contents_of
from ckptcost.first.core.joining import SLACK_S, join_marks
from ckptcost.first.core.phases import windows_of


def hook(t_s, name, window="step 9", rank=0, **detail):
    return Mark(t_s, name, window, rank, "api", detail)


def seen(t_s, name, window="step_9", **detail):
    return Mark(t_s, name, window, 0, "watch", detail)


SYNC = [hook(1.0, "begin"), hook(3.0, "returned")]
FILE = [
    seen(1.1, "begin", bytes=5e6),
    seen(2.9, "written"),
    seen(2.95, "committed"),
    seen(9.0, "durable", how="cachestat"),
]


def test_the_hooks_instants_and_the_watchers_safety():
    (window,) = windows_of(join_marks(SYNC + FILE))
    assert (window.name, window.begin_s, window.returned_s, window.durable_s) == (
        "step 9",
        1.0,
        3.0,
        9.0,
    )
    assert contents_of(join_marks(SYNC + FILE), [window])[0].bytes == 5e6
    assert [phase.name for phase in window.phases] == ["stall", "drain"]


def test_what_the_job_says_itself_stays():
    (window,) = windows_of(join_marks([*SYNC, hook(2.0, "durable"), *FILE]))
    assert window.durable_s == 2.0
    assert window.spans[0].at_s["written"] == 2.9


def test_alone_each_speaks_for_itself():
    assert join_marks(SYNC) == SYNC
    assert join_marks(FILE) == FILE
    assert join_marks([]) == []


def test_a_save_that_no_hook_knows_stays_its_own():
    other = [seen(50.0, "begin", "step_10"), seen(52.0, "durable", "step_10")]
    assert [w.name for w in windows_of(join_marks(SYNC + FILE + other))] == ["step 9", "step_10"]


def test_the_folder_speaks_for_every_rank():
    ranks = [hook(1.0, "begin", rank=r) for r in range(4)] + [
        hook(3.0 + r, "returned", rank=r) for r in range(4)
    ]
    (window,) = windows_of(join_marks(ranks + FILE))
    assert window.durable_s == 9.0
    assert [span.durable_s for span in window.spans] == [9.0] * 4


def test_asynchronous_saves_that_overlap_find_their_own_by_name():
    told = [
        hook(0.0, "begin", "step 1", path="/c/step_1"),
        hook(0.1, "returned", "step 1"),
        hook(8.0, "written", "step 1"),
        hook(5.0, "begin", "step 2", path="/c/step_2"),
        hook(5.1, "returned", "step 2"),
        hook(12.0, "written", "step 2"),
        seen(5.2, "begin", "step_1"),
        seen(8.5, "durable", "step_1"),
        seen(5.3, "begin", "step_2"),
        seen(12.5, "durable", "step_2"),
    ]
    first, second = windows_of(join_marks(told))
    assert (first.name, first.durable_s) == ("step 1", 8.5)
    assert (second.name, second.durable_s) == ("step 2", 12.5)


def test_without_names_the_later_of_two_open_saves_gets_it():
    told = [
        hook(0.0, "begin", "a"),
        hook(9.0, "returned", "a"),
        hook(4.0, "begin", "b"),
        hook(8.0, "returned", "b"),
        seen(4.2, "begin", "x"),
        seen(7.0, "durable", "x"),
    ]
    by_name = {w.name: w for w in windows_of(join_marks(told))}
    assert by_name["b"].durable_s == 7.0
    assert by_name["a"].durable_s is None


def test_many_files_of_one_hook_are_one_checkpoint_safe_with_the_last():
    told = [
        *SYNC,
        *[seen(1.0 + n / 10, "begin", f"shard{n}", bytes=2e6, files=1) for n in range(5)],
        *[seen(4.0 + n, "durable", f"shard{n}") for n in range(5)],
    ]
    (window,) = windows_of(join_marks(told))
    assert window.durable_s == 8.0
    assert contents_of(join_marks(told), [window])[0][:2] == (1e7, 5)


@pytest.mark.parametrize("ahead_s", [0.0, 0.1, SLACK_S])
def test_a_little_before_the_hook_is_the_same_save(ahead_s):
    told = [*SYNC, seen(1.0 - ahead_s, "begin"), seen(4.0, "durable")]
    assert [w.name for w in windows_of(join_marks(told))] == ["step 9"]


def test_much_before_the_hook_is_another():
    told = [*SYNC, seen(1.0 - 2 * SLACK_S, "begin"), seen(4.0, "durable")]
    assert [w.name for w in windows_of(join_marks(told))] == ["step_9", "step 9"]


def test_the_reason_why_it_is_not_known_to_be_safe_comes_along():
    told = [
        *SYNC,
        seen(1.1, "begin"),
        seen(2.9, "written"),
        seen(3.2, "note", durable_why="IN_MEMORY"),
    ]
    marks = join_marks(told)
    assert contents_of(marks, windows_of(marks))[0].why == "IN_MEMORY"


def test_remarks_without_a_save_are_kept():
    note = Mark(0.0, "note", "", 0, "watch", {"text": "x"})
    assert note in join_marks([*SYNC, *FILE, note])


times = st.floats(0, 50, allow_nan=False)
marks_of = st.lists(
    st.tuples(
        times,
        st.sampled_from(["begin", "written", "committed", "returned", "durable", "end", "note"]),
        st.sampled_from("abc"),
        st.integers(0, 2),
        st.sampled_from(["api", "watch"]),
    ),
    max_size=25,
)


@given(marks_of)
def test_it_never_fails_never_loses_a_hooks_mark_and_is_in_order(told):
    marks = [
        Mark(t_s, name, window, rank if by == "api" else 0, by, {"how": "x"})
        for t_s, name, window, rank, by in told
    ]
    found = join_marks(marks)
    assert [m.t_s for m in found] == sorted(m.t_s for m in found)
    for mark in marks:
        if mark.by == "api":
            assert mark in found
    windows_of(found)
