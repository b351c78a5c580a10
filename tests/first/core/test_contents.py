"""What marks say of a save besides its instants."""

from __future__ import annotations

from math import isnan

from hypothesis import given
from hypothesis import strategies as st

from ckptcost.first.core.channels import Mark
from ckptcost.first.core.contents import DIED, contents_of
from ckptcost.first.core.phases import windows_of


def of(marks):
    windows = windows_of(marks)
    return contents_of(marks, windows)


def test_ranks_add_up_and_a_rank_counts_once():
    marks = [
        Mark(0.0, "begin", "a", 0, "api", {"bytes": 3e6, "files": 2}),
        Mark(1.0, "written", "a", 0, "api", {"bytes": 4e6}),
        Mark(0.1, "begin", "a", 1, "api", {"bytes": 5e6, "files": 2}),
        Mark(2.0, "returned", "a", 0),
    ]
    (found,) = of(marks)
    assert found.bytes == 9e6
    assert found.files == 4


def test_who_sees_the_whole_has_the_last_word():
    marks = [
        Mark(0.0, "begin", "a", 0, "api", {"bytes": 3e6}),
        Mark(0.0, "begin", "a", 1, "api", {"bytes": 3e6}),
        Mark(1.0, "written", "a", 0, "watch", {"bytes": 5.5e6}),
        Mark(1.0, "written", "a", 1, "watch", {"bytes": 5.5e6}),  # told to each rank
    ]
    assert of(marks)[0].bytes == 5.5e6


def test_nobody_says_is_not_nothing():
    (found,) = of([Mark(0.0, "begin", "a"), Mark(1.0, "durable", "a")])
    assert isnan(found.bytes)
    assert isnan(found.files)
    assert found.of == "save"
    assert isnan(found.unsure_s)


def test_values_that_are_no_amounts_are_not_believed():
    for odd in (-1.0, float("nan"), float("inf"), "12", True, None, [3]):
        (found,) = of([Mark(0.0, "begin", "a", 0, "api", {"bytes": odd})])
        assert isnan(found.bytes), odd


def test_two_uses_of_a_label_have_their_own():
    marks = [
        Mark(0.0, "begin", "last", 0, "api", {"bytes": 1.0}),
        Mark(1.0, "returned", "last"),
        Mark(2.0, "durable", "last", 0, "watch", {"how": "fiemap"}),
        Mark(10.0, "begin", "last", 0, "api", {"bytes": 2.0, "of": "load"}),
        Mark(11.0, "returned", "last"),
        Mark(12.0, "note", "last", 0, "watch", {"durable_why": "IN_MEMORY"}),
    ]
    first, second = of(marks)
    assert (first.bytes, first.how, first.of, first.why) == (1.0, "fiemap", "save", "")
    assert (second.bytes, second.how, second.of, second.why) == (2.0, "", "load", "IN_MEMORY")


def test_the_evidence_is_the_durable_marks_own():
    marks = [
        Mark(0.0, "begin", "a"),
        Mark(1.0, "synced", "a", 0, "api"),
        Mark(2.0, "durable", "a", 0, "watch", {"how": "cachestat", "unsure_s": 0.01}),
    ]
    (found,) = of(marks)
    assert (found.how, found.unsure_s) == ("cachestat", 0.01)
    assert of(marks[:2])[0].how == "api"


def test_what_ended_it_and_where():
    marks = [
        Mark(0.0, "begin", "a", 0, "api", {"path": "step_1"}),
        Mark(1.0, "end", "a", 0, "api", {"error": "OSError"}),
    ]
    (found,) = of(marks)
    assert (found.path, found.error) == ("step_1", "OSError")


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b"]), st.integers(0, 3), st.floats(0, 100), st.floats(0, 1e12)
        ),
        max_size=20,
    ),
    st.randoms(),
)
def test_the_order_of_marks_does_not_matter(told, random):
    marks = [
        Mark(t_s, "written", label, rank, "api", {"bytes": size}) for label, rank, t_s, size in told
    ]
    marks += [Mark(0.0, "begin", "a"), Mark(0.0, "begin", "b")]
    windows = windows_of(marks)
    before = [(c.bytes, c.files) for c in contents_of(marks, windows)]
    shuffled = list(marks)
    random.shuffle(shuffled)
    assert [(c.bytes, c.files) for c in contents_of(shuffled, windows)] == before or all(
        b != b for b, _ in before
    )
    for window, (size, _) in zip(windows, before, strict=True):
        most = {}
        for label, rank, _, each in told:
            if label == window.label and len(windows) == 2:
                most[rank] = max(most.get(rank, 0.0), each)
        if len(windows) == 2 and most:
            assert abs(size - sum(most.values())) <= 1e-9 * sum(most.values())


def test_a_checkpoint_that_was_deleted_to_make_room_was_saved():
    marks = [
        Mark(0.0, "begin", "a"),
        Mark(1.0, "written", "a", 0, "watch"),
        Mark(2.0, "end", "a", 0, "watch", {"error": "gone"}),
    ]
    assert of(marks)[0].error == ""
    assert of([marks[0], marks[2]])[0].error == "gone"
    assert (
        of([*marks[:2], Mark(2.0, "end", "a", 0, "watch", {"error": "unfinished"})])[0].error
        == "unfinished"
    )


def test_what_was_being_written_when_its_job_died_ended_with_an_error():
    def save(name, begin_s, written_s, **more):
        return [
            Mark(begin_s, "begin", name, 0, "watch"),
            Mark(written_s, "written", name, 0, "watch", {"bytes": 5e6}),
            *(Mark(t_s, each, name, 0, "watch", {}) for each, t_s in more.items()),
        ]

    marks = [
        *save("whole", 1.0, 2.0),
        *save("cut", 8.0, 9.99),
        *save("returned", 9.0, 9.95, returned=9.96),
        *save("renamed", 9.0, 9.95, committed=9.96),
        Mark(9.5, "begin", "open", 0, "watch"),
        Mark(9.0, "begin", "loaded", 0, "api", {"of": "load"}),
        Mark(9.0, "begin", "synced", 0, "watch"),
        Mark(9.95, "written", "synced", 0, "watch"),
        Mark(9.96, "durable", "synced", 0, "watch", {"how": "fsync"}),
    ]

    def errors(status):
        ended = Mark(10.0, "note", "", 0, "wrap", {"exit_status": status})
        windows = windows_of(marks)
        told = zip(windows, contents_of([*marks, ended], windows), strict=True)
        return {window.label for window, what in told if what.error == DIED}

    assert errors(137) == {"cut", "open"}
    assert errors(1) == {"cut", "open"}
    assert errors(0) == set()


def test_a_job_that_died_long_after_its_last_save_had_written_it():
    marks = [
        Mark(1.0, "begin", "a", 0, "watch"),
        Mark(2.0, "written", "a", 0, "watch"),
        Mark(10.0, "note", "", 0, "wrap", {"exit_status": 137}),
    ]
    assert contents_of(marks, windows_of(marks))[0].error == ""
