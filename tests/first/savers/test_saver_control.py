"""Stopped from another thread, an engine leaves nothing; and how far it is can be seen."""

from __future__ import annotations

import os
import threading
import time

import pytest

from ckptcost.first.jobs.probe import ProbeRequest, probe
from ckptcost.first.meters.found import Wanted
from ckptcost.first.savers.base import Control, SaverSettings
from ckptcost.first.savers.found import SAVERS, saver_of
from ckptcost.first.savers.place import SavePlace
from ckptcost.first.savers.shapes import shape_of

SIZE = 24 << 20
TORCH = [name for name in SAVERS if name.startswith(("torch", "safe"))]


class AfterBytes(Control):
    """Stopped by itself after so many bytes."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__()
        self.most_bytes, self.all_bytes = most_bytes, 0

    def moved(self, bytes_: int) -> None:
        super().moved(bytes_)
        self.all_bytes += bytes_
        if self.all_bytes >= self.most_bytes:
            self.stop()


def made(name):
    if name in TORCH:
        pytest.importorskip("torch")
    return saver_of(name)


@pytest.mark.parametrize("name", SAVERS)
def test_a_save_that_is_stopped_leaves_nothing(name, tmp_path):
    saver, control = made(name), AfterBytes(SIZE // 8)
    shape = shape_of(SIZE, ranks=2, files=12)
    with SavePlace(tmp_path, SIZE) as place:
        with pytest.raises(KeyboardInterrupt):
            saver.save(
                place, shape, SaverSettings(block_bytes=256 << 10, depth=2, control=control), 1
            )
        assert os.listdir(place.fd) == ["owner"]
    assert control.all_bytes < SIZE
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("what", ["load", "verify"])
@pytest.mark.parametrize("name", SAVERS)
def test_reading_stops(name, what, tmp_path):
    saver, shape = made(name), shape_of(SIZE, ranks=2, files=12)
    with SavePlace(tmp_path, SIZE) as place:
        saver.save(place, shape, SaverSettings(block_bytes=256 << 10, depth=2), 1)
        control = AfterBytes(SIZE // 8)
        with pytest.raises(KeyboardInterrupt):
            getattr(saver, what)(
                place, shape, SaverSettings(block_bytes=256 << 10, depth=2, control=control), 1
            )
        assert 0 < control.all_bytes < SIZE
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("name", SAVERS)
def test_all_bytes_are_told(name, tmp_path):
    saver, control, shape = made(name), Control(), shape_of(SIZE, ranks=2, files=12)
    settings = SaverSettings(block_bytes=256 << 10, depth=2, control=control)
    with SavePlace(tmp_path, SIZE) as place:
        for what in ("save", "load", "verify"):
            control.begin(what, 1, SIZE)
            getattr(saver, what)(place, shape, settings, 1)
            least, most = (
                (SIZE, SIZE) if name not in TORCH else (0.9 * SIZE, 1.2 * SIZE)
            )  # a library's headers count, and what it reads twice
            assert least <= control.moved_bytes <= most, what


def test_nothing_begins_when_it_is_stopped(tmp_path):
    control = Control()
    control.stop()
    with pytest.raises(KeyboardInterrupt):
        control.begin("save", 1, 5)
    with pytest.raises(KeyboardInterrupt):
        control.rest(60.0)
    with SavePlace(tmp_path, SIZE) as place, pytest.raises(KeyboardInterrupt):
        saver_of("posix").save(place, shape_of(SIZE, 2), SaverSettings(control=control), 1)
    assert not os.listdir(tmp_path)


@pytest.fixture
def own_runs(monkeypatch, tmp_path):
    monkeypatch.setenv("CKPTCOST_RUNS", str(tmp_path / "runs"))


def asked(directory, control, **more):
    given = {
        "ranks": 2,
        "saver": "posix",
        "rounds": 1,
        "small": False,
        "pause_s": 0.0,
        "settings": SaverSettings(control=control, verify=False),
    }
    return ProbeRequest(directory, SIZE, **given | more)


def test_a_probe_that_is_stopped_in_its_first_pass(tmp_path, own_runs):
    place = tmp_path / "place"
    place.mkdir()
    with pytest.raises(KeyboardInterrupt):
        probe(asked(place, AfterBytes(SIZE // 8)), "block", Wanted(), tmp_path / "run")
    assert not os.listdir(place)


def test_what_is_through_counts(tmp_path, own_runs):
    place = tmp_path / "place"
    place.mkdir()
    probed = probe(asked(place, AfterBytes(SIZE + SIZE // 8)), "block", Wanted(), tmp_path / "run")
    assert probed.interrupted
    assert [(one.number, one.of) for one in probed.rounds] == [(1, "save")]
    assert not os.listdir(place)


def test_stopped_from_another_thread_while_it_waits(tmp_path, own_runs):
    place = tmp_path / "place"
    place.mkdir()
    resting, ended = threading.Event(), []

    class Rested(Control):
        def rest(self, seconds):
            resting.set()
            super().rest(seconds)

    control = Rested()

    def run():
        try:
            probe(asked(place, control, pause_s=60.0), "block", Wanted(), tmp_path / "run")
        except KeyboardInterrupt:
            ended.append(time.monotonic())

    thread = threading.Thread(target=run)
    thread.start()
    assert resting.wait(10.0)
    control.stop()
    stopped_s = time.monotonic()
    thread.join(10.0)
    assert ended[0] - stopped_s < 2.0
    assert not os.listdir(place)


def test_a_warm_up_counts_nowhere(tmp_path, own_runs):
    class Log(Control):
        passes: list[tuple[str, int]] = []  # noqa: RUF012

        def begin(self, what, number, whole_bytes):
            super().begin(what, number, whole_bytes)
            self.passes.append((what, number))

    place, control = tmp_path / "place", Log()
    place.mkdir()
    probed = probe(asked(place, control, warm_up=2), "block", Wanted(), tmp_path / "run")
    assert control.passes == [("warm-up", 0), ("warm-up", 0), ("save", 1), ("load", 1)]
    assert [(one.number, one.of) for one in probed.rounds] == [(1, "save"), (1, "load")]
    assert [window.name for window in probed.measured.windows] == ["save 1", "load 1"]


def test_a_rest_of_no_length_is_still_a_place_to_stop():
    control = Control()
    control.rest(0.0)
    control.stop()
    with pytest.raises(KeyboardInterrupt):
        control.rest(0.0)


def test_a_pass_is_stopped_by_whoever_else_may_stop_it():
    wanted = [False]
    control = Control(lambda: wanted[0])
    control.check()
    wanted[0] = True
    with pytest.raises(KeyboardInterrupt):
        control.check()
