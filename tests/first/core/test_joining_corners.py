"""Where a watched save lies in a hooked one: at the edges in time, by name, rank by rank, and what
its remarks become."""

from __future__ import annotations

from math import isnan

import pytest

from ckptcost.first.core.channels import Mark
from ckptcost.first.core.contents import by_window, contents_of, first_s
from ckptcost.first.core.joining import SLACK_S, join_marks
from ckptcost.first.core.phases import windows_of


def hook(t_s, name, window="step 9", rank=0, **detail):
    return Mark(t_s, name, window, rank, "api", detail)


def seen(t_s, name, window="step_9", rank=0, **detail):
    return Mark(t_s, name, window, rank, "watch", detail)


def names(marks):
    return [window.name for window in windows_of(marks)]


@pytest.mark.parametrize(("after_s", "apart"), [(SLACK_S, False), (2 * SLACK_S, True)])
def test_a_little_after_the_hooks_last_mark_is_the_same_save(after_s, apart):
    told = [
        hook(1.0, "begin"),
        hook(3.0, "returned"),
        seen(3.0 + after_s, "begin"),
        seen(9.0, "durable"),
    ]
    assert names(join_marks(told)) == (["step 9", "step_9"] if apart else ["step 9"])


def test_a_second_is_much():
    assert names(
        join_marks(
            [hook(1.0, "begin"), hook(3.0, "returned"), seen(4.0, "begin"), seen(9.0, "durable")]
        )
    ) == ["step 9", "step_9"]


@pytest.mark.parametrize(
    ("path", "label", "same"),
    [
        ("/c/step_1", "step_1", True),
        ("/c/step_1/", "step_1", True),
        ("/c/step_1.pt", "step_1.tmp", True),
        ("/c/step_1", "step_1.incoming", True),
        ("/c/step_1", "step_10", False),
        ("/c/step_1/part", "step_1", False),
        ("", "step_1", False),
        ("/", "", False),
        ("step_1", "step_1", True),
    ],
)
def test_names_agree_but_for_an_ending(path, label, same):
    """Two saves are open; the later one gets what agrees with neither."""
    told = [
        hook(0.0, "begin", "a", path=path),
        hook(9.0, "returned", "a"),
        hook(1.0, "begin", "b", path="/c/other"),
        hook(9.0, "returned", "b"),
        seen(2.0, "begin", label),
        seen(12.0, "durable", label),
    ]
    safe = {window.name: window.durable_s for window in windows_of(join_marks(told))}
    assert safe == ({"a": 12.0, "b": None} if same else {"a": None, "b": 12.0})


def test_of_two_that_agree_the_later_one_gets_it():
    told = [
        hook(0.0, "begin", "a", path="/c/last"),
        hook(9.0, "returned", "a"),
        hook(1.0, "begin", "b", path="/c/last"),
        hook(9.0, "returned", "b"),
        seen(2.0, "begin", "last"),
        seen(12.0, "durable", "last"),
    ]
    assert {w.name: w.durable_s for w in windows_of(join_marks(told))} == {"a": None, "b": 12.0}


def test_a_rank_keeps_what_it_said_and_the_others_get_the_folders():
    told = [hook(1.0, "begin", rank=r) for r in (3, 5)] + [
        hook(4.0, "durable", rank=3),
        hook(2.0, "returned", rank=3),
    ]
    told += [
        seen(1.1, "begin"),
        seen(9.0, "durable", how="cachestat", unsure_s=0.5, bytes=7, files=2),
    ]
    found = join_marks(told)
    (window,) = windows_of(found)
    assert {span.rank: span.durable_s for span in window.spans} == {3: 4.0, 5: 9.0}
    assert window.durable_s == 9.0
    kept = [mark for mark in found if mark.by == "watch" and mark.t_s == 9.0]
    # once for the rank that lacks it, once as a remark beside the first rank's own word; sizes are
    # told apart, once
    assert sorted((mark.name, mark.rank, mark.window) for mark in kept) == [
        ("durable", 5, "step 9"),
        ("note", 0, "step 9"),
    ]
    assert all(mark.detail == {"how": "cachestat", "unsure_s": 0.5} for mark in kept)


def test_a_watchers_begin_and_return_are_remarks_told_once():
    told = [hook(1.0, "begin", rank=r) for r in range(3)] + [
        hook(2.0, "returned", rank=r) for r in range(3)
    ]
    told += [
        seen(1.1, "begin", path="step_9", bytes=5),
        seen(1.2, "returned"),
        seen(1.3, "note", durable_why="IN_MEMORY"),
    ]
    found = [mark for mark in join_marks(told) if mark.by == "watch" and "bytes" not in mark.detail]
    assert [(mark.name, mark.window, mark.detail) for mark in found] == [
        ("note", "step 9", {"path": "step_9"}),
        ("note", "step 9", {"durable_why": "IN_MEMORY"}),
    ]


@pytest.mark.parametrize("name", ["written", "synced", "committed", "durable"])
def test_every_mark_that_is_taken_over_comes_to_every_rank(name):
    told = [hook(1.0, "begin", rank=r) for r in (0, 1)] + [
        hook(2.0, "returned", rank=r) for r in (0, 1)
    ]
    (window,) = windows_of(join_marks([*told, seen(1.1, "begin"), seen(5.0, name)]))
    assert [span.at_s.get(name) for span in window.spans] == [5.0, 5.0]


def test_amounts_are_told_once_at_the_begin_and_only_if_all_are_known():
    told = [hook(1.0, "begin", rank=4), hook(3.0, "returned", rank=4)]
    parts = [
        seen(1.1, "begin", "a", bytes=3.0, files=1),
        seen(1.2, "begin", "b", bytes=4.0, files=2),
    ]
    (note,) = [mark for mark in join_marks(told + parts) if "bytes" in mark.detail]
    assert note == Mark(1.0, "note", "step 9", 4, "watch", {"bytes": 7.0, "files": 3.0})
    unknown = join_marks([*told, *parts, seen(1.3, "begin", "c")])
    assert isnan(contents_of(unknown, windows_of(unknown))[0].bytes)


@pytest.mark.parametrize(
    ("durable_s", "how", "safe_s"),
    [
        (6.0, "cachestat", 7.0),
        (8.0, "fiemap", 7.0),
        (2.0, "cachestat", 7.0),
        (12.0, "cachestat", 7.0),
        (12.1, "cachestat", 12.1),
        (1.9, "cachestat", 1.9),
        (6.0, "drained", 6.0),
    ],
)
def test_a_sync_that_was_seen_to_end_says_it_better_than_an_empty_page_cache(
    durable_s, how, safe_s
):
    told = [seen(0.0, "begin"), seen(7.0, "synced"), seen(durable_s, "durable", how=how)]
    (window,) = windows_of(join_marks(told))
    assert window.durable_s == safe_s
    said = [mark._replace(by="api") if mark.name == "durable" else mark for mark in told]
    assert windows_of(join_marks(said))[0].durable_s == durable_s


def test_a_rank_that_says_that_it_synced_is_not_told_when_it_was_safe():
    told = [hook(1.0, "begin", rank=r) for r in (0, 1)] + [
        hook(2.0, "synced", rank=0),
        hook(2.0, "returned", rank=0),
    ]
    (window,) = windows_of(join_marks([*told, seen(1.1, "begin"), seen(9.0, "durable")]))
    assert [span.durable_s for span in window.spans] == [2.0, 9.0]


def test_files_of_the_hooks_own_path_count_only_where_nobody_watches_the_folder():
    told = [
        hook(1.0, "begin"),
        hook(3.0, "returned"),
        seen(3.1, "durable", "step 9", bytes=5.0, files=1),
    ]
    for more, size in (([], 5.0), ([seen(1.1, "begin", bytes=4.0, files=1)], 4.0)):
        assert [
            mark.detail["bytes"] for mark in join_marks([*told, *more]) if "bytes" in mark.detail
        ] == [size]


def test_a_save_without_a_begin_takes_nothing_over():
    told = [hook(3.0, "returned"), seen(2.9, "begin"), seen(9.0, "durable")]
    assert join_marks(told) == sorted(told, key=lambda mark: mark.t_s)


def test_each_use_of_a_watched_name_finds_its_own_save():
    told = []
    for begin_s, label in ((0.0, "one"), (20.0, "two")):
        told += [hook(begin_s, "begin", label), hook(begin_s + 2.0, "returned", label)]
        told += [
            seen(begin_s + 0.1, "begin", "last", bytes=begin_s + 1.0, files=1),
            seen(begin_s + 2.0, "returned", "last"),
        ]
        told += [seen(begin_s + 5.0, "durable", "last")]
    windows = windows_of(join_marks(told))
    assert [(w.name, w.durable_s) for w in windows] == [("one", 5.0), ("two", 25.0)]
    assert [what.bytes for what in contents_of(join_marks(told), windows)] == [1.0, 21.0]


# --- contents


def test_a_mark_at_the_begin_of_a_use_is_of_that_use_and_an_early_one_of_the_first():
    marks = [hook(5.0, "begin"), hook(6.0, "returned"), hook(10.0, "begin"), hook(11.0, "returned")]
    early, at, between = hook(1.0, "note"), hook(10.0, "note"), hook(9.9, "note")
    late = [
        hook(5.5, "begin", rank=1),
        hook(10.5, "begin", rank=1),
        hook(6.5, "returned", rank=1),
        hook(11.5, "returned", rank=1),
    ]
    windows = windows_of(marks + late)
    assert [first_s(window) for window in windows] == [5.0, 10.0]
    mine = by_window([early, at, between, Mark(10.0, "note", "other")], windows)
    assert mine == [[early, between], [at]]


def test_the_last_word_counts_for_safety_and_the_first_for_the_rest():
    marks = [
        hook(0.0, "begin", path="", error=""),
        hook(0.5, "note", path="first", error="A"),
        hook(0.6, "note", path="second", error="B"),
        hook(1.0, "synced", how="early"),
        hook(2.0, "synced", how="late", unsure_s=9.0),
    ]
    (found,) = contents_of(marks[::-1], windows_of(marks))
    assert (found.path, found.error, found.how) == ("first", "A", "late")
    assert isnan(found.unsure_s)  # a sync's doubt is not that of a durable mark
    marks += [
        hook(3.0, "durable", how="x", unsure_s=1.0),
        hook(3.0, "durable", rank=1, how="y", unsure_s=0.0),
    ]
    found = contents_of(marks, windows_of(marks))[0]
    assert (found.how, found.unsure_s) == ("y", 0.0)


def test_the_largest_of_what_was_seen_from_outside():
    marks = [
        hook(0.0, "begin", bytes=99.0, files=3),
        seen(1.0, "written", "step 9", bytes=5.0),
        seen(2.0, "note", "step 9", bytes=8.0),
    ]
    (found,) = contents_of(marks, windows_of(marks))
    assert (found.bytes, found.files) == (8.0, 3.0)
