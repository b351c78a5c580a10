"""Files that are looked at as soon as they are closed, before anybody knows what they belong to: on
a clock and a page cache of our own."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from ckptcost.first.watch import settle
from ckptcost.first.watch.settle import EARLY_S, PROMPT_S, Owed, S, Settling

WALL_S = 1_000_000.0
"""what the calendar shows at second 0 of the clock"""


class World:
    """Second by second; `owing` has the files that the cache still owes."""

    def __init__(self, monkeypatch, tmp_path):
        self.at_s, self.folder, self.owing, self.marks = 100.0, tmp_path, set(), []
        self.how = "cachestat"
        clock = SimpleNamespace(
            monotonic_ns=self.now_ns,
            time_ns=lambda: round((WALL_S + self.at_s) * S),
            thread_time_ns=lambda: 0,
        )
        monkeypatch.setattr(settle, "time", clock)
        monkeypatch.setattr(settle, "owed_bytes", self.owed)
        self.settling = Settling(self.tell)
        self.cases = []
        monkeypatch.setattr(self.settling, "_begin", self.cases.append)

    def now_ns(self):
        return round(self.at_s * S)

    def owed(self, fd, offset=0, length=0):
        return Owed(
            4096 if os.readlink(f"/proc/self/fd/{fd}").rpartition("/")[2] in self.owing else 0,
            self.how,
        )

    def tell(self, name, window="", **detail):
        self.marks.append((name, window, detail))

    def write(self, name, at_s, text="x"):
        path = self.folder / name
        path.write_text(text)
        os.utime(path, ns=(0, round((WALL_S + at_s) * S)))
        return path

    def look(self, at_s):
        """All cases once; what is over goes."""
        self.at_s = at_s
        self.cases[:] = [case for case in self.cases if not self.over(case)]

    def over(self, case):
        done = self.settling._look(case)
        if done:
            case.close()
        return done

    def follow(self, at_s, paths, written_s, window="w", **more):
        self.at_s = at_s
        self.settling.follow(
            window,
            paths,
            since_ns=round((written_s - 1.0) * S),
            written_ns=round(written_s * S),
            **more,
        )
        self.look(at_s)

    def closed(self, path, at_s):
        self.settling.closed(path, round(at_s * S))

    @property
    def safe(self):
        """The only mark: when, and how long before it may have been."""
        ((name, window, detail),) = self.marks
        assert (name, window, detail["by"]) == ("durable", "w", "watch")
        return detail["t_ns"] / S, detail["unsure_s"]


@pytest.fixture
def world(monkeypatch, tmp_path):
    made = World(monkeypatch, tmp_path)
    yield made
    for case in made.cases:
        case.close()


def test_a_file_that_was_synced_before_it_was_closed_was_safe_then(world):
    path = world.write("a", 100.0)
    world.closed(path, 100.0)
    world.look(100.05)
    assert world.marks == []  # it is of nothing yet
    world.follow(110.0, [path], 100.0, rank=4)
    assert world.safe == (100.0, None)
    assert world.marks[0][2]["rank"] == 4
    assert world.marks[0][2]["how"] == "cachestat"


def test_what_was_seen_to_be_paid_later_was_safe_when_it_was_seen(world):
    path = world.write("a", 100.0)
    world.owing.add("a")
    world.closed(path, 100.0)
    world.look(100.5)
    world.look(101.0)
    world.owing.clear()
    world.look(101.25)
    world.follow(110.0, [path], 100.0)
    assert world.safe == pytest.approx((101.25, 0.25))


def test_of_several_the_last_one_counts_with_its_own_doubt(world):
    paths = [world.write(name, 100.0) for name in "abc"]
    world.owing |= {"a", "b"}
    for path in paths:
        world.closed(path, 100.0)
    world.look(100.5)
    world.owing.discard("b")
    world.look(103.0)
    world.owing.discard("a")
    world.look(107.0)
    world.follow(120.0, paths, 100.0)
    assert world.safe == pytest.approx((107.0, 4.0))


def test_where_one_was_not_seen_it_is_safe_at_the_look(world):
    known, other = world.write("a", 100.0), world.write("b", 100.0)
    world.closed(known, 100.0)
    world.look(100.1)
    world.follow(120.0, [known, other], 100.0)
    assert world.safe == pytest.approx((120.0, 20.0))


def test_a_file_that_was_written_again_is_not_what_was_seen(world):
    path = world.write("a", 100.0)
    world.closed(path, 100.0)
    world.look(100.1)
    world.write("a", 105.0)
    world.follow(120.0, [path], 105.0)
    assert world.safe == pytest.approx((120.0, 15.0))


def test_another_file_under_the_same_name_is_not_what_was_seen(world):
    path = world.write("a", 100.0)
    world.closed(path, 100.0)
    world.look(100.1)
    world.write("b", 100.0).replace(path)
    world.follow(120.0, [path], 100.0)
    assert world.safe == pytest.approx((120.0, 20.0))


def test_a_file_keeps_what_was_seen_under_another_name(world):
    path = world.write("a.tmp", 100.0)
    world.closed(path, 100.0)
    world.look(100.1)
    path.rename(world.folder / "a")
    world.follow(120.0, [world.folder / "a"], 100.0)
    assert world.safe == (100.0, None)


def test_a_clean_file_that_was_looked_at_late_may_have_been_synced_by_others(world):
    """Renamed before anybody looked: whoever syncs the file system a second later must not make the
    save safe at its close."""
    path = world.write("a", 100.0)
    world.follow(101.0, [path], 100.0)
    assert world.safe == (101.0, 1.0)


@pytest.mark.parametrize(
    ("look_s", "safe"),
    [(100.0 + PROMPT_S, (100.0, None)), (100.1 + PROMPT_S, (100.1 + PROMPT_S, 0.1 + PROMPT_S))],
)
def test_clean_at_a_first_look_that_is_prompt_or_late(world, look_s, safe):
    path = world.write("a", 100.0)
    world.follow(look_s, [path], 100.0)
    at_s, unsure_s = world.safe
    assert at_s == pytest.approx(safe[0])
    assert unsure_s == pytest.approx(safe[1])


def test_where_nobody_saw_it_closed_a_sync_may_have_come_after_the_last_write(world):
    path = world.write("a", 100.0)
    world.follow(101.0, [path], 100.0, closed=False)
    assert world.safe == (101.0, 1.0)


def test_what_is_remembered_is_of_the_followed_too(world):
    """A second checkpoint that has a file of the first, as one that is linked: it was safe when it
    was seen."""
    path = world.write("a", 100.0)
    world.follow(100.05, [path], 100.0)
    world.marks.clear()
    world.follow(150.0, [path], 140.0)
    assert world.safe == (100.0, None)


def test_who_is_of_nothing_says_nothing_whatever_happens(world):
    path = world.write("a", 100.0)
    world.owing.add("a")
    world.closed(path, 100.0)
    world.look(100.1)
    path.unlink()
    world.look(100.2)
    assert (world.cases, world.marks) == ([], [])
    path = world.write("b", 100.0)
    world.owing.add("b")
    world.closed(path, 100.0)
    world.look(100.0 + EARLY_S - 0.1)
    assert len(world.cases) == 1
    world.look(100.0 + EARLY_S)
    assert (world.cases, world.marks) == ([], [])
    world.closed(world.folder / "never there", 170.0)
    world.look(170.0)
    assert (world.cases, world.marks) == ([], [])


def test_it_is_not_pending(world, monkeypatch):
    world.settling._cases = world.cases
    world.closed(world.write("a", 100.0), 100.0)
    assert world.settling.pending == ()
    world.settling._begin(settle._Case("w", [], 0, 0, None, 0))
    assert world.settling.pending == ("w",)


def test_half_of_the_room_is_kept_for_checkpoints(world):
    world.settling = Settling(world.tell, most_files=6)
    world.settling._begin = world.settling._cases.append
    for name in "abcde":
        world.closed(world.write(name, 100.0), 100.0)
    assert [case.paths[0].name for case in world.settling._cases] == ["a", "b", "c"]


def test_it_does_not_remember_for_ever(world, monkeypatch):
    monkeypatch.setattr(settle, "MOST_REMEMBERED", 2)
    paths = [world.write(name, 100.0) for name in "abc"]
    for path in paths:
        world.closed(path, 100.0)
    world.look(100.1)
    assert len(world.settling._clean) == 2
    for path in paths[1:]:
        world.follow(150.0, [path], 100.0)
        assert world.safe == (100.0, None)
        world.marks.clear()
    world.follow(150.0, paths[:1], 100.0)
    assert world.safe == pytest.approx((150.0, 50.0))


def test_extents_alone_prove_it_of_a_file_that_was_born_in_the_save(world, monkeypatch):
    world.how = "fiemap"
    monkeypatch.setattr(settle, "born_ns", lambda path, before_ns: round(99.5 * S))
    path = world.write("a", 100.0)
    world.closed(path, 100.0)  # since a second before
    world.look(100.1)
    world.follow(120.0, [path], 100.0)
    assert world.safe == (100.0, None)
    assert world.marks[0][2]["how"] == "fiemap"
    world.marks.clear()
    monkeypatch.setattr(settle, "born_ns", lambda path, before_ns: round(90.0 * S))
    older = world.write("b", 100.0)
    world.closed(older, 100.0)
    world.look(120.0)
    world.follow(120.0, [older], 100.0)
    assert world.marks == [
        ("note", "w", {"by": "watch", "rank": None, "durable_why": "NEVER_SEEN_OWING"})
    ]
