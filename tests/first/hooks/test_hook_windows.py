"""Windows: which marks follow from which code, what is part of what, and that nothing ever reaches
the training job."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

import ckptcost
from ckptcost.first.core.channels import Mark
from ckptcost.first.core.phases import windows_of
from ckptcost.first.hooks import receivers, sender
from ckptcost.first.hooks.handles import NOTHING


def windows(ear):
    return windows_of(
        Mark(mark.t_ns / 1e9, mark.name, mark.window, mark.rank or 0, "api", mark.detail)
        for mark in ear.heard
    )


def test_a_with_block_is_begin_and_returned(ear, tmp_path):
    with ckptcost.window("step 1000", path=tmp_path / "a.pt"):
        pass
    assert ear.names == [("begin", "step 1000"), ("returned", "step 1000")]
    assert ear.detail("begin") == {"path": str(tmp_path / "a.pt")}
    assert ear.detail("returned") == {"path": str(tmp_path / "a.pt"), "settle": True}


def test_marks_by_hand(ear, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save = ckptcost.begin("s", path="a.pt")
    monkeypatch.chdir("/")
    save.snapshotted()
    save.written(bytes=5.0, files=2)
    save.synced()
    save.committed()
    save.returned()
    save.durable()
    save.end()
    save.end()
    assert [name for name, _ in ear.names] == [
        "begin",
        "snapshotted",
        "written",
        "synced",
        "committed",
        "returned",
        "durable",
        "end",
    ]
    assert ear.detail("written") == {"bytes": 5, "files": 2}
    assert ear.detail("returned") == {
        "path": str(tmp_path / "a.pt"),
        "bytes": 5,
        "files": 2,
    }, "nobody need find out: it was synced"
    (window,) = windows(ear)
    assert (window.flags, window.durable_why) == ((), "")


def test_a_writer_that_syncs_is_safe_when_it_returns(ear, tmp_path):
    with ckptcost.window("s", tmp_path, True):
        pass
    assert ear.names == [("begin", "s"), ("written", "s"), ("synced", "s"), ("returned", "s")]
    assert not any("settle" in mark.detail for mark in ear.heard)
    (window,) = windows(ear)
    assert window.durable_s == window.returned_s


def test_an_exception_passes_untouched_and_ends_it(ear):
    raised = ValueError("mine")
    with pytest.raises(ValueError, match="mine") as caught, ckptcost.window("s"):
        raise raised
    assert caught.value is raised
    assert [name for name, _ in ear.names] == ["begin", "end"]
    assert ear.detail("end") == {"error": "ValueError"}


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_interrupt_too(ear, kind):
    with pytest.raises(kind), ckptcost.window("s"):
        raise kind
    assert ear.detail("end") == {"error": kind.__name__}


def test_a_return_that_is_said_before_the_end_of_the_block_counts(ear):
    with ckptcost.window("s") as save:
        save.returned()
        with ckptcost.window("next"):
            pass
    assert ear.names == [("begin", "s"), ("returned", "s"), ("begin", "next"), ("returned", "next")]


# ---- parts


def test_inner_windows_are_parts(ear, tmp_path):
    with ckptcost.window("trainer", path=tmp_path):
        with ckptcost.window("dcp", sync=True, how="dcp"):
            pass
        with ckptcost.window("torch.save", sync=True, how="x") as inner:
            inner.written(bytes=7)
            inner.synced()
    assert ear.names == [(name, "trainer") for name in ("begin", "written", "synced", "returned")]
    assert ear.detail("synced") == {"how": "x"}
    assert ear.detail("returned") == {"path": str(tmp_path), "bytes": 7}
    (window,) = windows(ear)
    assert window.flags == ()
    assert window.durable_s < window.returned_s


def test_one_part_that_is_not_synced_makes_the_whole_unsynced(ear, tmp_path):
    with ckptcost.window("whole", path=tmp_path):
        with ckptcost.window("a", sync=True):
            pass
        with ckptcost.window("b"):
            pass
    assert [name for name, _ in ear.names] == ["begin", "written", "returned"]
    assert ear.detail("returned")["settle"] is True


def test_an_outer_window_that_says_there_is_more_is_not_synced_by_its_parts(ear, tmp_path):
    with ckptcost.window("whole", tmp_path, False), ckptcost.window("a", sync=True):
        pass
    assert [name for name, _ in ear.names] == ["begin", "written", "returned"]
    assert ear.detail("returned")["settle"] is True


def test_the_path_of_a_part_is_the_wholes_where_it_has_none(ear, tmp_path):
    with ckptcost.window("whole"), ckptcost.window("part", path=tmp_path):
        pass
    assert ear.detail("begin") == {}
    assert ear.detail("returned") == {"path": str(tmp_path), "settle": True}


def test_a_part_that_fails_and_is_tried_again_fails_nothing(ear):
    with ckptcost.window("whole"):
        with pytest.raises(OSError, match="full"), ckptcost.window("part"):
            raise OSError(28, "full")
        with ckptcost.window("part"):
            pass
    assert [name for name, _ in ear.names] == ["begin", "written", "returned"]


def test_separate_ones_are_separate(ear):
    with ckptcost.window("a"), ckptcost.window("b", separate=True):
        pass
    assert ear.names == [("begin", "a"), ("begin", "b"), ("returned", "b"), ("returned", "a")]
    with ckptcost.window("c"):
        pass
    assert ear.names[-2:] == [("begin", "c"), ("returned", "c")]


def test_a_forgotten_end_swallows_nothing(ear):
    forgotten = ckptcost.begin("step 1")
    forgotten = ckptcost.begin("step 2")
    with ckptcost.window("a part of step 2"):
        pass
    forgotten.returned()
    with ckptcost.window("step 3"):
        pass
    ckptcost.begin("nobody holds this one").written()
    with ckptcost.window("step 4"):
        pass
    assert [window for name, window in ear.names if name == "returned"] == [
        "step 2",
        "step 3",
        "step 4",
    ]


def test_begin_in_a_block_is_part_of_it_and_a_forgotten_part_goes_with_the_whole(ear):
    with ckptcost.window("whole"):
        part = ckptcost.begin("part")
    with ckptcost.window("next"):
        pass
    part.returned()
    assert ear.names == [
        ("begin", "whole"),
        ("returned", "whole"),
        ("begin", "next"),
        ("returned", "next"),
    ]


def test_ends_out_of_order(ear):
    outer, inner = ckptcost.begin("a"), ckptcost.begin("b")
    outer.returned()
    inner.returned()
    with ckptcost.window("c"):
        pass
    assert ear.names == [
        ("begin", "a"),
        ("begin", "b"),
        ("returned", "a"),
        ("returned", "b"),
        ("begin", "c"),
        ("returned", "c"),
    ]


def test_threads_are_separate_even_under_one_label(ear):
    inside, go = threading.Barrier(3), threading.Event()

    def saves():
        with ckptcost.window("latest"):
            inside.wait(10)
            go.wait(10)

    threads = [threading.Thread(target=saves) for _ in range(2)]
    with ckptcost.window("main"):
        for thread in threads:
            thread.start()
        inside.wait(10)
        go.set()
        for thread in threads:
            thread.join()
    assert sorted(window for name, window in ear.names if name == "begin") == [
        "latest",
        "latest (2)",
        "main",
    ]
    assert all(window.returned_s is not None and window.flags == () for window in windows(ear))
    with ckptcost.window("latest"):
        pass
    assert ear.names[-1] == ("returned", "latest"), "afterwards the label is free again"


def test_tasks_of_one_thread_are_separate(ear):
    async def saves(label):
        with ckptcost.window(label):
            await asyncio.sleep(0.001)

    async def both():
        await asyncio.gather(saves("a"), saves("b"))

    asyncio.run(both())
    assert sorted(window for name, window in ear.names if name == "returned") == ["a", "b"]


def test_one_object_in_several_threads(ear):
    shared, inside, labels = ckptcost.window("s"), threading.Barrier(4), {}
    turns = [threading.Event() for _ in range(5)]
    turns[0].set()

    def saves(number):
        try:
            with shared as mine:
                labels[number] = mine.label
                inside.wait(10)
                turns[number].wait(10)
                if number == 2:
                    raise ValueError
        finally:
            turns[number + 1].set()

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(saves, number) for number in range(4)]:
            done.exception(10)
    assert sorted(labels.values()) == ["s", "s (2)", "s (3)", "s (4)"]
    assert [window for name, window in ear.names if name == "end"] == [labels[2]]
    assert [window for name, window in ear.names if name == "returned"] == [
        labels[0],
        labels[1],
        labels[3],
    ]


# ---- the decorator and labels


def test_a_decorator_numbers_its_calls(ear, tmp_path):
    @ckptcost.window("save", path=tmp_path)
    def saves(number, *, fail=False):
        """Mine."""
        if fail:
            raise OSError
        return number

    assert (saves(5), saves(6)) == (5, 6)
    with pytest.raises(OSError):  # noqa: PT011
        saves(7, fail=True)
    assert (saves.__name__, saves.__doc__) == ("saves", "Mine.")
    assert ear.names == [
        ("begin", "save 1"),
        ("returned", "save 1"),
        ("begin", "save 2"),
        ("returned", "save 2"),
        ("begin", "save 3"),
        ("end", "save 3"),
    ]


def test_a_decorated_coroutine_is_waited_for(ear):
    ahead = []

    @ckptcost.window()
    async def saves():
        await asyncio.sleep(0)
        ahead.append([name for name, _ in ear.names])
        return 5

    assert asyncio.run(saves()) == 5
    assert ahead == [["begin"]]
    assert ear.names == [("begin", "save 1"), ("returned", "save 1")]


def test_a_label_that_is_used_again_stays_as_it_is(ear):
    for _ in range(2):
        with ckptcost.window("latest"):
            pass
    assert {window for _, window in ear.names} == {"latest"}
    assert [window.name for window in windows(ear)] == ["latest", "latest #2"]


class Evil:
    def __str__(self):
        raise RuntimeError("evil")

    __repr__ = __fspath__ = __float__ = __str__


@pytest.mark.parametrize(
    ("given", "label"),
    [
        (7, "7"),
        (None, "save 1"),
        ("", "save"),
        ("a\nb\x1b[31m", "a?b?[31m"),
        (b"x", "b'x'"),
        ("x" * 10_000, "x" * 200),
        (Evil(), "Evil"),
        ("\ud800", "?"),
        (Evil, str(Evil)),
        (type("Odd", (str,), {"__str__": lambda self: 5 / 0})("odd"), "Odd"),
    ],
)
def test_labels_are_cleaned(ear, given, label):
    with ckptcost.window(given):
        pass
    assert {window for _, window in ear.names} == {label}


@pytest.mark.parametrize(
    "path", [Evil(), 5, 0, True, "", "a\0b", "x" * 5000, object(), [], b"\xff\xfe"]
)
def test_odd_paths_are_left_out_or_kept_as_they_are(ear, path):
    with ckptcost.window("s", path=path):
        pass
    found = ear.detail("returned").get("path", "")
    assert found == (os.path.abspath(os.fsdecode(path)) if isinstance(path, bytes) else "")


def test_an_address_is_no_path_of_this_machine(ear, tmp_path):
    with ckptcost.window("s", path="s3://bucket/a"):
        pass
    assert ear.detail("returned") == {"path": "s3://bucket/a"}
    with (tmp_path / "f").open("wb") as file, ckptcost.window("t", path=file):
        pass
    assert ear.detail("returned", "t")["path"] == str(tmp_path / "f")


def test_a_working_directory_that_is_gone(ear, tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with ckptcost.window("s", path="a.pt"):
        pass
    monkeypatch.chdir("/")
    assert ear.detail("returned") == {}


@pytest.mark.parametrize(
    "amount", [Evil(), "5", float("nan"), -1, float("inf"), None, object(), 10**30]
)
def test_odd_amounts_are_left_out(ear, amount):
    save = ckptcost.begin("s")
    save.written(bytes=amount, files=amount)
    assert ear.detail("written") == {}


def test_a_path_that_is_known_late(ear, tmp_path):
    with ckptcost.window("s") as save:
        save.at(tmp_path)
        save.at(Evil())
    assert ear.detail("returned") == {"path": str(tmp_path), "settle": True}


# ---- the background


@pytest.mark.parametrize("sync", [True, False, None])
def test_a_future_is_followed(ear, tmp_path, sync):
    future = Future()
    with ckptcost.window("s", tmp_path) as save:
        assert save.follow(future, sync, lambda done: (done.result(), 3)) is future
    assert ear.names == [("begin", "s"), ("returned", "s")]
    assert ear.detail("returned") == {"path": str(tmp_path)}, (
        "it is not written yet, so nobody looks"
    )
    future.set_result(77)
    assert [name for name, _ in ear.names] == ["begin", "returned", "written"] + ["synced"] * (
        sync is True
    )
    assert ear.detail("written") == {"path": str(tmp_path), "bytes": 77, "files": 3} | (
        {} if sync else {"settle": True}
    )
    (window,) = windows(ear)
    assert (window.durable_s is not None) is (sync is True)


def test_a_future_that_fails(ear):
    future = Future()
    with ckptcost.window("s") as save:
        save.follow(future)
    future.set_exception(OSError(28, "full"))
    assert ear.detail("end") == {"error": "OSError"}
    assert [name for name, _ in ear.names] == ["begin", "returned", "end"]


def test_a_future_that_is_cancelled_or_done_already_or_none_at_all(ear):
    for number, future in enumerate((Future(), Future(), object(), None, Evil())):
        if number == 0:
            future.cancel()
        if number == 1:
            future.set_result(None)
        with ckptcost.window(f"s{number}", path="/x" if number == 0 else None) as save:
            assert save.follow(future) is future
    assert ear.detail("end", "s0") == {"error": "CancelledError", "path": "/x"}
    assert ear.detail("returned", "s0") == {"path": "/x"}, "there is nothing to settle"
    names = {
        number: [name for name, window in ear.names if window == f"s{number}"]
        for number in range(5)
    }
    assert names[1] == ["begin", "written", "returned"]
    assert names[2] == names[3] == names[4] == ["begin", "returned"]


def test_several_futures_are_one_save(ear):
    futures = [Future() for _ in range(3)]
    with ckptcost.window("whole"):
        for future in futures:
            with ckptcost.window("part") as part:
                part.follow(future, True, lambda done: (10, 1))
    futures[2].set_result(None)
    futures[0].set_result(None)
    assert len(ear.heard) == 2
    futures[1].set_result(None)
    assert [name for name, _ in ear.names] == ["begin", "returned", "written", "synced"]
    assert ear.detail("written") == {"bytes": 30, "files": 3}
    (window,) = windows(ear)
    assert window.flags == ()


def test_an_asyncio_future(ear):
    async def saves():
        future = asyncio.get_running_loop().create_future()
        with ckptcost.window("s") as save:
            save.follow(future, True)
        future.set_result(None)
        await asyncio.sleep(0.01)
        gone = asyncio.get_running_loop().create_future()
        with ckptcost.window("t") as save:
            save.follow(gone)
        gone.cancel()
        await asyncio.sleep(0.01)

    asyncio.run(saves())
    assert [name for name, window in ear.names if window == "s"] == [
        "begin",
        "returned",
        "written",
        "synced",
    ]
    assert ear.detail("end", "t") == {"error": "CancelledError"}


def test_futures_that_end_while_the_window_does(ear):
    with ThreadPoolExecutor(4) as pool:
        for number in range(200):
            with ckptcost.window(f"s{number}") as save:
                for _ in range(3):
                    save.follow(pool.submit(int), True)
    for window in windows(ear):
        assert (window.returned_why, window.durable_why) == ("", ""), window
        assert not [flag for flag in window.flags if flag.code == "DOUBLED"]


# ---- never into the job


class Broken:
    listening = True

    def __init__(self, error=RuntimeError):
        self.error = error

    def tell(self, *_, **__):
        raise self.error("broken")

    forked = close = tell


def every_hook():
    with ckptcost.window("s", path="x") as save:
        save.follow(Future())
    save = ckptcost.begin()
    for name in (
        "snapshotted",
        "written",
        "synced",
        "committed",
        "durable",
        "failed",
        "returned",
        "end",
    ):
        getattr(save, name)()
    ckptcost.window("d")(int)()
    ckptcost.step()
    list(ckptcost.steps([1]))
    return save


def test_a_broken_receiver_hurts_nobody():
    receivers.use(Broken())
    every_hook()


def test_an_interrupt_is_not_swallowed():
    receivers.use(Broken(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt), ckptcost.window("s"):
        pass
    receivers.use(receivers.NOBODY)


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"CKPTCOST": "off"},
        {"CKPTCOST": "OFF ", "CKPTCOST_SOCKET": "/s"},
        {"CKPTCOST": "0", "CKPTCOST_RECORD": "/r"},
        {"CKPTCOST_SOCKET": ""},
    ],
)
def test_off_is_nothing_at_all(monkeypatch, environ):
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert every_hook() is NOTHING
    assert receivers.state.receiver is receivers.NOBODY


@pytest.mark.parametrize(
    "environ",
    [
        {"CKPTCOST_SOCKET": "/"},
        {"CKPTCOST_SOCKET": "\udcff\n"},
        {"CKPTCOST_SOCKET": "x" * 5000},
        {"CKPTCOST_SOCKET": "relative"},
        {"CKPTCOST": "\udcff"},
        {"CKPTCOST": "yes"},
        {"CKPTCOST_SOCKET": "/dev/null", "RANK": "-1"},
        {"RANK": "9" * 400, "CKPTCOST_SOCKET": "/x"},
    ],
)
def test_odd_environments(monkeypatch, environ):
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    every_hook()


def test_a_signal_handler_while_it_is_decided_who_listens(monkeypatch):
    def found():
        every_hook()  # as a handler would, in the same thread
        return receivers.NOBODY

    monkeypatch.setattr(sender, "_find_receiver", found)
    before_s = time.monotonic()
    every_hook()
    assert time.monotonic() - before_s < 5.0


def test_a_context_of_its_own(ear):
    with ckptcost.window("a"):
        contextvars.Context().run(every_hook)
    assert ear.names[-1] == ("returned", "a")


def test_a_fork_in_the_middle_of_everything(tmp_path):
    """A window is open, another thread decides who listens, and the rank is known: none of that is
    the child's."""
    from ckptcost.first.hooks.listener import Listener

    told = []
    listener = Listener(lambda *mark, rank, **more: told.append((*mark, rank)), tmp_path / "s")
    os.environ["CKPTCOST_SOCKET"], os.environ["RANK"] = listener.path, "4"
    try:
        with ckptcost.window("latest"):
            receivers.state.rank = 4
            receivers.state.lock.acquire()
            child = os.fork()
            if child == 0:
                os.environ["RANK"] = "5"
                before_s = time.monotonic()
                with ckptcost.window("latest"):
                    pass
                os._exit(int(time.monotonic() - before_s > 5.0))
            receivers.state.lock.release()
            assert os.waitpid(child, 0)[1] == 0
    finally:
        del os.environ["CKPTCOST_SOCKET"], os.environ["RANK"]
        listener.close()
    assert sorted(told) == [
        ("begin", "latest", 4),
        ("begin", "latest", 5),
        ("returned", "latest", 4),
        ("returned", "latest", 5),
    ]


def test_at_the_end_of_everything(tmp_path):
    """Interpreters that die: threads that go on, destructors, modules half taken down."""
    import subprocess
    import sys

    script = """
import threading, atexit, ckptcost
class Late:
    def __del__(self):
        with ckptcost.window("late"): pass
        ckptcost.step()
late = Late()
late.me = late
def goes_on():
    while True:
        with ckptcost.window("on"): pass
        ckptcost.step()
        went.set()
went = threading.Event()
threading.Thread(target=goes_on, daemon=True).start()
atexit.register(lambda: ckptcost.begin("atexit").returned())
went.wait(30)
"""
    from ckptcost.first.hooks.listener import Listener

    told = []
    listener = Listener(lambda *mark, **more: told.append(mark), tmp_path / "s")
    for environ in ({}, listener.environ(), {"CKPTCOST_SOCKET": "/nobody"}):
        done = subprocess.run(
            [sys.executable, "-X", "dev", "-c", script],
            env={**os.environ, **environ},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
    listener.close()
    assert ("begin", "on") in told
