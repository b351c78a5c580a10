"""What a person is told of each checkpoint while the job runs, from the marks as they come."""

from __future__ import annotations

from math import isnan, nan

import pytest

from ckptcost.first.jobs.progress import KnownSave, SaveProgress
from ckptcost.first.runs.clocks import S


class Heard:
    def __init__(self):
        self.marks, self.saves = [], []
        self.progress = SaveProgress(self.tell, self.saves.append)

    def tell(self, name, window="", *, by="api", rank=None, t_ns=None, **detail):
        self.marks.append((name, window, by, rank, t_ns, detail))

    def __call__(self, at_s, name, window="w", by="api", rank=None, **detail):
        self.progress(
            name, window, by=by, rank=rank, t_ns=None if at_s is None else round(at_s * S), **detail
        )


@pytest.fixture
def heard():
    return Heard()


def same(one: KnownSave, *other) -> bool:
    return all(a == b or (a != a and b != b) for a, b in zip(one, other, strict=False))


def test_marks_pass_through_as_they_are(heard):
    heard(1.5, "begin", "x", by="watch", rank=3, bytes=7, how="inotify")
    heard(None, "note", "", text="t")
    assert heard.marks == [
        ("begin", "x", "watch", 3, 1_500_000_000, {"bytes": 7, "how": "inotify"}),
        ("note", "", "api", None, None, {"text": "t"}),
    ]


def test_held_up_until_it_returned_and_safe_since_it_began(heard):
    heard(1.0, "begin", bytes=4e6)
    heard(2.5, "written")
    heard(3.0, "returned")
    assert heard.progress.open == ("w",)
    assert heard.saves == []
    heard(9.0, "durable", by="watch")
    assert heard.saves == [KnownSave("w", 4e6, 2.0, 8.0, "", True)]
    assert (heard.progress.open, heard.progress.saves, heard.progress.bytes) == ((), 1, 4e6)


@pytest.mark.parametrize("name", ["written", "synced", "committed"])
def test_without_a_return_until_the_last_file_was_done(heard, name):
    heard(1.0, "begin", by="watch")
    heard(4.0, name, by="watch")
    heard(3.0, "written", by="watch")  # told late
    heard(9.0, "durable", by="watch")
    (one,) = heard.saves
    assert same(one, "w", nan, 3.0, 8.0, "")


def test_a_hooks_durable_before_its_return_is_not_the_end(heard):
    heard(0.0, "begin")
    heard(1.0, "durable")
    assert heard.saves == []
    heard(1.5, "returned")
    assert heard.saves == []
    heard(1.6, "end")
    assert same(heard.saves[0], "w", nan, 1.5, 1.0, "")


def test_a_hooks_durable_after_its_return_is(heard):
    heard(0.0, "begin")
    heard(1.5, "returned")
    heard(4.0, "durable")
    assert same(heard.saves[0], "w", nan, 1.5, 4.0, "")
    heard(4.0, "end")
    assert len(heard.saves) == heard.progress.saves == 1


def test_what_failed_is_told_with_its_reason_and_not_as_safe(heard):
    heard(0.0, "begin", bytes=5)
    heard(2.0, "end", error="OSError")
    (one,) = heard.saves
    assert same(one, "w", 5.0, nan, nan, "OSError")


def test_nothing_more_will_be_seen_of_it(heard):
    heard(0.0, "begin")
    heard(2.0, "written")
    heard(2.1, "note", by="watch", text="a remark")
    assert heard.saves == []
    heard(2.2, "note", by="watch", durable_why="IN_MEMORY")
    assert same(heard.saves[0], "w", nan, 2.0, nan, "")


def test_of_several_sizes_the_largest(heard):
    heard(0.0, "begin", bytes=5e6)
    heard(1.0, "written", bytes=9e6)
    heard(1.1, "committed", bytes=7)
    heard(1.2, "note", bytes=float("nan"))
    heard(1.3, "note", bytes="12")
    heard(2.0, "end")
    assert heard.saves[0].bytes == 9e6


def test_a_size_that_nobody_knows_is_added_to_nothing(heard):
    for window, size in (("a", {}), ("b", {"bytes": 3}), ("c", {"bytes": 4})):
        heard(0.0, "begin", window, **size)
        heard(1.0, "end", window)
    assert [save.label for save in heard.saves] == ["a", "b", "c"]
    assert isnan(heard.saves[0].bytes)
    assert (heard.progress.saves, heard.progress.bytes) == (3, 7.0)


def test_loads_remarks_and_what_was_never_begun_are_no_saves(heard):
    heard(0.0, "begin", "load 1", of="load", bytes=4)
    heard(1.0, "end", "load 1")
    heard(1.0, "durable", "never begun", by="watch")
    heard(1.0, "begin", "")
    heard(None, "begin", "no instant")
    assert (heard.saves, heard.progress.open, heard.progress.saves) == ([], (), 0)
    assert len(heard.marks) == 5


def test_a_second_begin_does_not_move_the_first(heard):
    heard(1.0, "begin", rank=0)
    heard(1.5, "begin", rank=1)
    heard(2.0, "returned", rank=0)
    heard(3.0, "returned", rank=1)
    heard(5.0, "durable", by="watch")
    assert same(heard.saves[0], "w", nan, 2.0, 4.0, "")


def test_a_label_may_be_used_again(heard):
    for begin_s in (0.0, 10.0):
        heard(begin_s, "begin")
        heard(begin_s + 1.0, "returned")
        heard(begin_s + 2.0 + begin_s / 10, "durable", by="watch")
    assert [save.safe_s for save in heard.saves] == [2.0, 3.0]


def test_overlapping_saves_are_kept_apart(heard):
    heard(0.0, "begin", "a")
    heard(1.0, "begin", "b")
    assert heard.progress.open == ("a", "b")
    heard(2.0, "returned", "b")
    heard(5.0, "durable", "b", by="watch")
    assert heard.progress.open == ("a",)
    assert same(heard.saves[0], "b", nan, 1.0, 4.0, "")


def test_once_the_job_speaks_what_is_guessed_from_its_writing_is_left_out(heard):
    heard(0.0, "begin", "guess 1", by="watch", how="io")
    assert not heard.progress.hooked
    heard(1.0, "begin", "step 1")
    assert heard.progress.hooked
    heard(2.0, "begin", "guess 2", by="watch", how="io")
    heard(3.0, "written", "guess 2", by="watch", how="io")
    heard(3.0, "written", "guess 1", by="watch", how="io")  # what was begun is finished
    heard(4.0, "begin", "folder", by="watch", how="inotify")  # a folder's files are no guess
    assert [(name, window) for name, window, *_ in heard.marks] == [
        ("begin", "guess 1"),
        ("begin", "step 1"),
        ("written", "guess 1"),
        ("begin", "folder"),
    ]


def test_what_a_hook_tells_is_not_told_again_under_the_folders_name(heard):
    heard(0.0, "begin", "early", by="watch", bytes=1)
    heard(1.0, "begin", "step 1")
    heard(1.1, "begin", "step_1", by="watch", bytes=5)
    heard(2.0, "durable", "step_1", by="watch")
    heard(2.1, "end", "step 1")
    heard(3.0, "durable", "early", by="watch")
    assert [save.label for save in heard.saves] == ["step 1", "early"]
    assert len(heard.marks) == 6


@pytest.mark.parametrize(
    ("name", "by"), [("returned", "api"), ("steps", "api"), ("begin", "watch"), ("begin", "output")]
)
def test_only_a_hooks_begin_says_that_the_job_speaks(heard, name, by):
    heard(0.0, name, by=by)
    assert not heard.progress.hooked


def test_nobody_has_to_listen():
    progress = SaveProgress(lambda *a, **k: None)
    progress("begin", "w", t_ns=0)
    progress("end", "w", t_ns=S)
    assert progress.saves == 1


def test_ranks_of_one_save_are_one_save_with_all_their_bytes():
    said = []
    progress = SaveProgress(lambda *a, **k: None, said.append)
    for rank in (0, 1):
        progress("begin", "s", rank=rank, t_ns=rank, bytes=1e9)
    for rank in (0, 1):
        progress("returned", "s", rank=rank, t_ns=2_000_000_000 + rank)
        progress("durable", "s", rank=rank, t_ns=3_000_000_000)
    progress("begin", "s", rank=2, t_ns=5, bytes=1e9)  # late, and told already
    assert [(one.bytes, one.has_returned) for one in said] == [(2e9, True)]
    assert progress.saves == 1
    progress("begin", "s", rank=0, t_ns=9_000_000_000)  # the same name once more
    assert progress.open == ("s",)
