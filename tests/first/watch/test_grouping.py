"""Which files are one checkpoint: the file sequences of real savers, on a clock of the test's
own."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ckptcost.first.watch.grouping import Grouping
from ckptcost.first.watch.groups import FileStat, Rules
from ckptcost.first.watch.inotify import FileEvent
from ckptcost.first.watch.names import another_rank, final, numbers_of, same_step, unit_of

S = 1_000_000_000
MB = 1_000_000


class Seen(NamedTuple):
    label: str
    begin: float | None
    written: float | None
    committed: float | None
    error: str
    bytes: int
    files: int


class World:
    """Files, a clock, and what inotify and lstat would say of them. `at` goes on in time, with
    readings every 0.15 s on the way."""

    def __init__(self, **rules):
        self.grouping = Grouping(Rules(**rules))
        self.now = 100.0
        self.files: dict[str, list] = {}
        self.steps = []

    @property
    def t_ns(self):
        return round(self.now * S)

    def _stat(self, path):
        found = self.files.get(path)
        return FileStat(found[0], found[1] + 7 * 10**18, found[1]) if found else None

    def _event(self, kind, path, *, is_dir=False, old="", how="inotify"):
        stat = None if is_dir or kind == "gone" else self._stat(path)
        self.grouping.event(FileEvent(self.t_ns, kind, path, is_dir, old, how), stat)
        self._tick()

    def _tick(self):
        stats = {path: self._stat(path) for path in self.grouping.wanted(self.t_ns)}
        self.grouping.read(self.t_ns, stats)
        self.steps += self.grouping.tick(self.t_ns)

    def at(self, second):
        until = 100.0 + second
        while self.grouping.pending or self.grouping.wanted(self.t_ns):
            step = 0.15 if self.grouping.wanted(self.t_ns) else 0.5
            if self.now + step >= until:
                break
            self.now += step
            self._tick()
        self.now = max(self.now, until)
        return self

    def wait(self, seconds):
        return self.at(self.now - 100.0 + seconds)

    def mkdir(self, path):
        self._event("created", path, is_dir=True)

    def open(self, path):
        """For writing, from nothing."""
        is_new = path not in self.files
        self.files[path] = [0, self.t_ns]
        if is_new:
            self._event("created", path)
        self._event("opened", path)

    def grow(self, path, size):
        self.files[path] = [self.files[path][0] + size, self.t_ns]
        if (
            path in self.grouping.still
        ):  # as the kernel tells of the next write, where it was asked to
            del self.grouping.still[path]
            self._event("resumed", path)

    def close(self, path):
        self._event("closed", path)

    def look_at(self, path):
        """By a reader."""
        self._event("opened", path)

    def save(self, path, size=5 * MB, takes=0.0):
        self.open(path)
        for _ in range(10 if takes else 1):
            self.grow(path, size // (10 if takes else 1))
            self.wait(takes / 10)
        self.close(path)

    def move(self, old, new):
        self.files[new] = self.files.pop(old)
        self._event("moved", new, old=old)

    def move_dir(self, old, new):
        for path in [path for path in self.files if path.startswith(old + "/")]:
            self.files[new + path[len(old) :]] = self.files.pop(path)
        self._event("moved", new, is_dir=True, old=old)

    def move_in(self, path, size):
        self.files[path] = [size, self.t_ns]
        self._event("moved", path)

    def delete(self, path):
        del self.files[path]
        self._event("gone", path)

    def there(self, path, size):
        """Before anybody looked."""
        self.files[path] = [size, self.t_ns]

    def old(self, path, size):
        self.files[path] = [size, 0]

    def rewrite(self, path, size):
        """Cut, written and closed before anybody looked."""
        self.files[path] = [size, self.t_ns]
        self._event("opened", path)
        self._event("closed", path)

    def seen(self, wait=700.0):
        self.wait(wait)
        assert self.grouping.pending == 0
        found = {}
        for step in self.steps:
            at = found.setdefault(step.label, defaultdict(lambda: None))
            at[step.name] = step.t_ns / S - 100.0
            at["error"] = step.error or at["error"]
            at["bytes"], at["files"] = step.bytes, step.files
        return [
            Seen(
                k,
                _r(v["begin"]),
                _r(v["written"]),
                _r(v["committed"]),
                v["error"] or "",
                v["bytes"],
                v["files"],
            )
            for k, v in found.items()
        ]


def _r(value):
    return None if value is None else round(value, 3)


def one(world):
    (found,) = world.seen()
    return found


UNITS = {"MB": MB, "B": 1, "s": 1.0}


def word(text):
    """A path, or an amount: 5MB, 14B, 0.5s."""
    amount = re.fullmatch(r"([\d.]+)(MB|B|s)", text)
    return type(UNITS[amount[2]])(float(amount[1]) * UNITS[amount[2]]) if amount else text


def play(script):
    """What a world does, step by step: the second at which it is so, where that is said, the verb,
    and what it is done to."""
    world = World()
    for step in script.split(";"):
        second, verb, rest = re.fullmatch(r"\s*([\d.]+ )?(\w+) (.*)", step).groups()
        getattr(world.at(float(second)) if second else world, verb)(*map(word, rest.split()))
    return world


SEQUENCES = {
    "torch save to a temporary name and rename": (
        "1 save step_7.pt.tmp 5MB 1s; 2.5 move step_7.pt.tmp step_7.pt",
        [("step_7.pt", 1.0, 2.0, 2.5, "", 5 * MB, 1)],
    ),
    "safetensors names its file at the end and closes it after that": (
        "1 open .tmpw51FR2; grow .tmpw51FR2 5MB; 2 move .tmpw51FR2 weights.safetensors; "
        "2.1 close weights.safetensors",
        [("weights.safetensors", 1.0, 2.1, 2.0, "", 5 * MB, 1)],
    ),
    "the same file again and again is a checkpoint each time": (
        "1 save last.ckpt 5MB 1s; 8 look_at last.ckpt; 11 save last.ckpt 5MB 1s; "
        "18 look_at last.ckpt; 21 save last.ckpt 5MB 1s; 28 look_at last.ckpt",
        [
            ("last.ckpt", 1.0, 2.0, None, "", 5 * MB, 1),
            ("last.ckpt (2)", 11.0, 12.0, None, "", 5 * MB, 1),
            ("last.ckpt (3)", 21.0, 22.0, None, "", 5 * MB, 1),
        ],
    ),
    "a quick save over an old one of which no reading saw the middle": (
        "1 save last.ckpt; 6 rewrite last.ckpt 5MB",
        [
            ("last.ckpt", 1.0, 1.0, None, "", 5 * MB, 1),
            ("last.ckpt (2)", 6.0, 6.0, None, "", 5 * MB, 1),
        ],
    ),
    "a reader of the save before is no save of its own": (
        "1 save last.pt.tmp 5MB 0.1s; move last.pt.tmp last.pt; wait 1.5s; "
        "look_at last.pt; 3 save last.pt.tmp 5MB 0.1s; move last.pt.tmp last.pt; "
        "wait 1.5s; look_at last.pt; 5 save last.pt.tmp 5MB 0.1s; "
        "move last.pt.tmp last.pt; wait 1.5s; look_at last.pt",
        [
            ("last.pt", 1.0, 1.1, 1.1, "", 5 * MB, 1),
            ("last.pt (2)", 3.0, 3.1, 3.1, "", 5 * MB, 1),
            ("last.pt (3)", 5.0, 5.1, 5.1, "", 5 * MB, 1),
        ],
    ),
    "who opens an empty file need not write it": (
        "1 open rank0.done; close rank0.done; look_at rank0.done; save model.pt 5MB 1s",
        [("model.pt", 1.0, 2.0, None, "", 5 * MB, 2)],
    ),
    "a slow saver that pauses writes one checkpoint": (
        "1 open model.pt; grow model.pt 2MB; wait 6s; grow model.pt 2MB; wait 6s; "
        "grow model.pt 2MB; wait 6s; grow model.pt 2MB; wait 6s; close model.pt",
        [("model.pt", 1.0, 25.0, None, "", 8 * MB, 1)],
    ),
    "a file opened again to add to it counts what was added": (
        "1 open all.h5; wait 0.1s; grow all.h5 3MB; wait 0.5s; close all.h5; "
        "11 look_at all.h5; wait 0.1s; grow all.h5 3MB; wait 0.5s; close all.h5; "
        "21 look_at all.h5; wait 0.1s; grow all.h5 3MB; wait 0.5s; close all.h5",
        [
            ("all.h5", 1.0, 1.6, None, "", 3 * MB, 1),
            ("all.h5 (2)", 11.0, 11.6, None, "", 3 * MB, 1),
            ("all.h5 (3)", 21.0, 21.6, None, "", 3 * MB, 1),
        ],
    ),
    "a file that was opened before we looked and added to": (
        "there all.h5 90MB; 1 look_at all.h5; 60 grow all.h5 4MB",
        [("all.h5", 60.0, 60.0, None, "", 4 * MB, 1)],
    ),
    "a directory whose file was still for long stays one checkpoint": (
        "1 mkdir step_5; open step_5/model.pt; grow step_5/model.pt 2MB; wait 25s; "
        "grow step_5/model.pt 2MB; wait 1s; close step_5/model.pt",
        [("step_5", 1.0, 27.0, None, "", 4 * MB, 1)],
    ),
    "saves over the same file by rename closer than the gap": (
        "1 save last.ckpt.tmp 5MB 0.1s; move last.ckpt.tmp last.ckpt; "
        "1.5 save last.ckpt.tmp 5MB 0.1s; move last.ckpt.tmp last.ckpt; "
        "2 save last.ckpt.tmp 5MB 0.1s; move last.ckpt.tmp last.ckpt",
        [
            ("last.ckpt", 1.0, 1.1, 1.1, "", 5 * MB, 1),
            ("last.ckpt (2)", 1.5, 1.6, 1.6, "", 5 * MB, 1),
            ("last.ckpt (3)", 2.0, 2.1, 2.1, "", 5 * MB, 1),
        ],
    ),
    "readers open no checkpoint": (
        "old data.pt 900MB; 1 look_at data.pt; 2 look_at data.pt; 3 look_at data.pt; "
        "4 look_at data.pt; 5 look_at data.pt; close data.pt",
        [],
    ),
    "a reader at the time of a save does not make it begin earlier": (
        "old last.ckpt 5MB; 1 look_at last.ckpt; 5 save last.ckpt 5MB 1s",
        [("last.ckpt", 5.0, 6.0, None, "", 5 * MB, 1)],
    ),
    "an fsync through a second descriptor is no second save": (
        "1 save a.pt 5MB 1s; 2.2 look_at a.pt; 2.4 close a.pt",
        [("a.pt", 1.0, 2.0, None, "", 5 * MB, 1)],
    ),
    "a save that had begun before we looked has an end and no begin": (
        "there a.pt 5MB; 0.01 close a.pt",
        [("a.pt", None, 0.01, None, "", 5 * MB, 1)],
    ),
    "the part of another rank on a nodes own drive lacks nothing": (
        "1 save step_100/__8_0.distcp 5MB 1s",
        [("step_100", 1.0, 2.0, None, "", 5 * MB, 1)],
    ),
    "hugging face with deepspeed inside is one": (
        "1 mkdir checkpoint-500; "
        "save checkpoint-500/global_step500/zero_pp_rank_0_mp_rank_00_optim_states.pt; "
        "save checkpoint-500/latest 14B; save checkpoint-500/trainer_state.json 3000B",
        [("checkpoint-500", 1.0, 1.0, 1.0, "", 5003014, 3)],
    ),
    "megatron and its tracker beside": (
        "1 save iter_0000100/mp_rank_00_000/model_optim_rng.pt 5MB 2s; "
        "1.2 save iter_0000100/mp_rank_01_000/model_optim_rng.pt 5MB 2s; "
        "6 save latest_checkpointed_iteration.txt 3B",
        [("iter_0000100", 1.0, 5.0, 6.0, "", 10 * MB, 2)],
    ),
    "lightning files": (
        "10 save lightning_logs/version_0/checkpoints/epoch=0-step=100.ckpt 5MB 1s; "
        "20 save lightning_logs/version_0/checkpoints/epoch=1-step=200.ckpt 5MB 1s",
        [
            ("epoch=0-step=100.ckpt", 10.0, 11.0, None, "", 5 * MB, 1),
            ("epoch=1-step=200.ckpt", 20.0, 21.0, None, "", 5 * MB, 1),
        ],
    ),
    "orbax names": (
        "1 mkdir 1.orbax-checkpoint-tmp-9; "
        "save 1.orbax-checkpoint-tmp-9/d.orbax-checkpoint-tmp-2/ocdbt.process_0/9f3a 5MB 1s; "
        "save 1.orbax-checkpoint-tmp-9/d.orbax-checkpoint-tmp-2/manifest.ocdbt 500B; "
        "3 move_dir 1.orbax-checkpoint-tmp-9/d.orbax-checkpoint-tmp-2 1.orbax-checkpoint-tmp-9/d; "
        "3.5 move_dir 1.orbax-checkpoint-tmp-9 1",
        [("1", 1.0, 2.0, 3.5, "", 5000500, 2)],
    ),
    "the same name in two places gives two labels": (
        "1 save a/step_1/x.pt; save b/step_1/x.pt",
        [("step_1", 1.0, 1.0, None, "", 5 * MB, 1), ("b/step_1", 1.0, 1.0, None, "", 5 * MB, 1)],
    ),
    "a rank that comes late belongs to the others": (
        "1 save ckpt_100.rank0.pt; 20 save ckpt_100.rank1.pt",
        [("ckpt_100", 1.0, 20.0, None, "", 10 * MB, 2)],
    ),
    "flat shards that do not overlap with short gaps": (
        "1 save ckpt_100.rank0.pt; 1.9 save ckpt_100.rank1.pt; 2.8 save ckpt_100.rank2.pt; "
        "3.7 save ckpt_100.rank3.pt; 4.6 save ckpt_100.rank4.pt",
        [("ckpt_100", 1.0, 4.6, None, "", 25 * MB, 5)],
    ),
    "two flat checkpoints in a row without a pause": (
        "1 save ckpt_100.pt 5MB 0.5s; 1.6 save ckpt_200.pt 5MB 0.5s",
        [
            ("ckpt_100.pt", 1.0, 1.5, None, "", 5 * MB, 1),
            ("ckpt_200.pt", 1.6, 2.1, None, "", 5 * MB, 1),
        ],
    ),
    "files without numbers are two when a silence lies between": (
        "1 save best.pt 5MB 0.5s; 3 save last.pt 5MB 0.5s",
        [("best.pt", 1.0, 1.5, None, "", 5 * MB, 1), ("last.pt", 3.0, 3.5, None, "", 5 * MB, 1)],
    ),
    "random names that become the same file closer than the gap": (
        "1 save .tmpAb12Cd 5MB 0.1s; move .tmpAb12Cd m.safetensors; "
        "1.4 save .tmpEf34Gh 5MB 0.1s; move .tmpEf34Gh m.safetensors",
        [
            ("m.safetensors", 1.0, 1.1, 1.1, "", 5 * MB, 1),
            ("m.safetensors (2)", 1.4, 1.5, 1.5, "", 5 * MB, 1),
        ],
    ),
    "what stays small": (
        "1 mkdir step_1; save step_1/config.json 999000B; save notes.bin 999999B",
        [],
    ),
}


@pytest.mark.parametrize(("script", "seen"), SEQUENCES.values(), ids=SEQUENCES)
def test_a_sequence_of_files(script, seen):
    assert play(script).seen() == seen


# ---- one file ----


def test_torch_save_to_one_file():
    world = World()
    world.at(1.0).save("ckpt.pt", 8 * MB, takes=2.0)
    assert one(world) == ("ckpt.pt", 1.0, 3.0, None, "", 8 * MB, 1)
    assert [step.name for step in world.steps] == ["begin", "written", "end"]
    (written,) = [step for step in world.steps if step.name == "written"]
    assert (written.since_ns, written.paths) == (101 * S, ("ckpt.pt",))


def test_the_begin_is_told_while_it_is_still_being_written():
    world = World()
    world.at(1.0).open("ckpt.pt")
    world.wait(3.0)
    assert world.steps == []  # nothing in it yet: may be anything
    world.grow("ckpt.pt", 2 * MB)
    world.wait(0.4)
    assert [(step.name, step.t_ns) for step in world.steps] == [("begin", 101 * S)]
    assert world.grouping.open == ("ckpt.pt",)


# ---- files of another job ----


def test_what_another_job_writes_is_left_out():
    world = World()
    world.at(1.0).open("mine.pt")
    world.open("theirs.pt.tmp")
    assert sorted(world.grouping.unclaimed) == ["mine.pt", "theirs.pt.tmp"]
    world.grouping.claim("mine.pt")
    assert world.grouping.leave_out("theirs.pt.tmp")
    assert world.grouping.unclaimed == []
    world.grow("mine.pt", 5 * MB)
    world.grow("theirs.pt.tmp", 7 * MB)
    world.wait(0.5)
    world.close("mine.pt")
    world.close("theirs.pt.tmp")
    world.move("theirs.pt.tmp", "theirs.pt")
    assert one(world)[:1] + one(world)[4:] == ("mine.pt", "", 5 * MB, 1)


def test_a_name_that_was_anothers_may_be_the_jobs_next_time():
    world = World()
    world.at(1.0).open("last.pt")
    assert world.grouping.leave_out("last.pt")
    world.grow("last.pt", 5 * MB)
    world.close("last.pt")
    world.at(9.0).delete("last.pt")
    world.at(10.0).save("last.pt", takes=1.0)
    assert one(world)[:3] == ("last.pt", 10.0, 11.0)


def test_what_was_told_already_is_not_taken_back():
    world = World()
    world.at(1.0).open("a.pt")
    world.grow("a.pt", 5 * MB)
    world.wait(0.5)
    assert not world.grouping.leave_out("a.pt")
    world.close("a.pt")
    assert one(world).bytes == 5 * MB


# ---- one file that stays open ----


def appended_to(world, path, saves=3, every=10.0, size=5 * MB):
    """As HDF5 does: opened once, and each save adds to it."""
    world.at(1.0).open(path)
    world.grow(path, 4000)  # its head
    for k in range(saves):
        world.at(every * (k + 1))
        for _ in range(5):
            world.grow(path, size // 5)
            world.wait(0.2)
        world.at(every * (k + 1) + 8.5).look_at(path)  # a reader


def test_each_save_into_a_file_that_stays_open_is_one():
    world = World()
    appended_to(world, "all.h5")
    world.at(35.0).grow("all.h5", 2000)  # what is written when it is closed
    world.close("all.h5")
    assert world.seen() == [
        ("all.h5", 10.0, 10.8, None, "", 5 * MB, 1),
        ("all.h5 (2)", 20.0, 20.8, None, "", 5 * MB, 1),
        ("all.h5 (3)", 30.0, 30.8, None, "", 5 * MB, 1),
    ]
    assert [step.how for step in world.steps if step.name == "written"] == ["still"] * 3
    assert "all.h5" in world.grouping.paused


def test_a_file_of_any_name_that_stays_open_is_still_after_longer():
    world = World()
    appended_to(world, "state.pt", every=40.0)
    world.close("state.pt")
    assert [each[:3] for each in world.seen()] == [
        ("state.pt", 40.0, 40.8),
        ("state.pt (2)", 80.0, 80.8),
        ("state.pt (3)", 120.0, 120.8),
    ]


def test_who_reads_an_empty_file_begins_no_save():
    """A marker, a lock: opened by whoever looks at it, and never closed after writing."""
    world = World()
    world.files["DONE"] = [0, world.t_ns]
    world.wait(5).look_at("DONE")
    assert world.grouping.pending == 0
    world.save("a.pt", takes=1.0)
    [found] = world.seen()
    assert (found.label, found.error, found.files) == ("a.pt", "", 1)


def test_who_empties_a_file_begins_a_save():
    world = World()
    world.files["a.pt"] = [0, world.t_ns]
    world._event("opened", "a.pt")
    assert world.grouping.pending


def test_a_file_that_was_still_and_is_written_over_may_pause_again():
    """Its next write is a cut, so it is no file that is added to."""
    world = World()
    world.at(1.0).open("model.pt")
    world.grow("model.pt", 5 * MB)
    world.at(40.0)
    world.files["model.pt"] = [2 * MB, world.t_ns]
    del world.grouping.still["model.pt"]
    world._event("resumed", "model.pt")
    world.wait(6.0)  # a slow saver
    world.grow("model.pt", 3 * MB)
    world.close("model.pt")
    first, second = world.seen()
    assert (first.bytes, second.begin, second.written, second.bytes) == (5 * MB, 40.0, 46.0, 5 * MB)


def test_a_log_that_stays_open_is_no_checkpoint():
    world = World()
    world.at(1.0).open("metrics.h5")
    for _ in range(200):
        world.grow("metrics.h5", 20_000)
        world.wait(5.0)
    world.close("metrics.h5")
    assert world.seen() == []


def test_a_writer_that_never_closes_is_written_when_it_has_been_still():
    world = World(still_s=5.0)
    world.at(1.0).open("mapped.bin")
    world.grow("mapped.bin", 4 * MB)
    world.at(3.0)
    world.grow("mapped.bin", 4 * MB)
    found = one(world)
    assert found.written == pytest.approx(3.0, abs=0.2)
    assert [step.how for step in world.steps if step.name == "written"] == ["still"]


def test_two_writers_of_one_file_of_which_one_closes_early():
    world = World()
    world.at(1.0).open("a.pt")
    world.grow("a.pt", 2 * MB)
    world.at(1.5).close("a.pt")
    for k in range(20):
        world.at(1.6 + k * 0.2)
        world.grow("a.pt", MB)
    world.at(5.6).close("a.pt")
    assert one(world)[:3] == ("a.pt", 1.0, 5.6)


def test_a_file_moved_in_has_no_begin_unless_its_birth_is_known():
    world = World()
    world.at(1.0).move_in("step_5.pt", 5 * MB)
    assert one(world) == ("step_5.pt", None, 1.0, None, "", 5 * MB, 1)
    world = World()
    world.at(1.0)
    world.files["step_5.pt"] = [5 * MB, world.t_ns]
    world.grouping.event(
        FileEvent(world.t_ns, "moved", "step_5.pt"), FileStat(5 * MB, 1, world.t_ns, world.t_ns - S)
    )
    assert one(world)[:3] == ("step_5.pt", 0.0, 1.0)


# ---- directories ----


def dcp(world, at, top="step_100", ranks=2):
    world.at(at).mkdir(top)
    for rank in range(ranks):
        world.open(f"{top}/__{rank}_0.distcp")
    for rank in range(ranks):
        world.at(at + 0.5 + rank / 2)
        world.grow(f"{top}/__{rank}_0.distcp", 5 * MB)
        world.close(f"{top}/__{rank}_0.distcp")
    world.wait(4.0)  # rank 0 gathers
    world.save(f"{top}/.metadata.tmp", 2000)
    world.move(f"{top}/.metadata.tmp", f"{top}/.metadata")


def test_dcp_directory_with_its_metadata_last():
    world = World()
    dcp(world, 1.0)
    assert one(world) == ("step_100", 1.0, 6.0, 6.0, "", 10 * MB + 2000, 3)


def test_dcp_over_the_same_directory():
    world = World()
    dcp(world, 1.0)
    world.delete("step_100/.metadata")
    dcp(world, 9.0)
    assert [each[:2] for each in world.seen()] == [("step_100", 1.0), ("step_100 (2)", 9.0)]


def test_dcp_killed_before_its_metadata():
    world = World()
    world.at(1.0).mkdir("step_100")
    world.save("step_100/__0_0.distcp", takes=1.0)
    found = one(world)
    assert (found.label, found.error) == ("step_100", "unfinished")
    assert [step.name for step in world.steps] == ["begin", "written", "end"]


def hugging_face(world, top):
    world.mkdir(top)
    for name, size in (
        ("config.json", 800),
        ("model-00001-of-00002.safetensors", 5 * MB),
        ("model-00002-of-00002.safetensors", 4 * MB),
        ("model.safetensors.index.json", 20_000),
        ("optimizer.pt", 18 * MB),
        ("scheduler.pt", 1000),
        ("rng_state_0.pth", 14_000),
        ("rng_state_1.pth", 14_000),
        ("trainer_state.json", 3000),
    ):
        world.save(f"{top}/{name}", size, takes=0.5)
        if name.endswith("index.json"):
            world.wait(6.0)  # the optimizer is gathered


def test_hugging_face_checkpoint_with_rotation():
    world = World()
    hugging_face(world.at(1.0) and world, "checkpoint-500")
    for name in ("model.safetensors", "optimizer.pt"):
        world.files[f"checkpoint-400/{name}"] = [5 * MB, 0]
    for name in ("model.safetensors", "optimizer.pt"):
        world.delete(f"checkpoint-400/{name}")
    found = one(world)
    assert found == ("checkpoint-500", 1.0, 11.5, 11.5, "", 27 * MB + 52_800, 9)
    assert [step.path for step in world.steps if step.name == "committed"] == [
        "checkpoint-500/trainer_state.json"
    ]


def test_a_file_outlives_the_directory_whose_name_it_has():
    """A directory that was moved out is told as gone after the file in its place."""
    world = World()
    world.at(1).save("latest", 3 * MB)
    world._event("gone", "latest", is_dir=True)
    found = one(world)
    assert (found.label, found.error, found.bytes) == ("latest", "", 3 * MB)
    assert found.written is not None


def test_a_checkpoint_whose_only_file_is_moved_into_another_is_gone():
    w = World().at(1)
    w.save("x.pt")
    w.save("step_10/a.pt")
    w.move("x.pt", "step_10/x.pt")
    assert [(one.label, one.error, one.files) for one in w.seen()] == [
        ("x.pt", "gone", 1),
        ("step_10", "", 2),
    ]


def test_a_little_file_that_another_checkpoint_s_replaces():
    w = World().at(1)
    w.save("state.json", 100)
    w.save("step_10/state.json", 100)
    w.save("step_10/a.pt")
    w.move("step_10/state.json", "state.json")
    w.save("b_7.pt")
    assert {(one.label, one.error) for one in w.seen()} == {("step_10", ""), ("b_7.pt", "")}


def test_hugging_face_temporary_directory_renamed():
    world = World()
    world.at(1.0)
    hugging_face(world, "tmp-checkpoint-500")
    world.at(15.0).move_dir("tmp-checkpoint-500", "checkpoint-500")
    found = one(world)
    assert found == ("checkpoint-500", 1.0, 11.5, 15.0, "", 27 * MB + 52_800, 9)
    assert {step.label for step in world.steps} == {"checkpoint-500"}


def test_a_temporary_directory_that_is_never_renamed_is_unfinished():
    world = World()
    hugging_face(world.at(1.0) and world, "tmp-checkpoint-500")
    assert one(world).error == "unfinished"


def test_deepspeed_and_its_latest_beside():
    world = World()
    for step in (100, 200):
        for rank in range(4):
            world.at(step / 2 + rank * 0.1).save(
                f"run/global_step{step}/bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt"
            )
        world.at(step / 2 + 3.0).save("run/latest", 14)
    assert world.seen() == [
        ("global_step100", 50.0, 50.3, 53.0, "", 20 * MB, 4),
        ("global_step200", 100.0, 100.3, 103.0, "", 20 * MB, 4),
    ]


def test_two_asynchronous_saves_in_two_directories_are_two():
    world = World()
    world.at(1.0).open("step_100/__0_0.distcp")
    world.at(2.0).open("step_200/__0_0.distcp")
    for k in range(10):
        world.at(2.5 + k / 4)
        world.grow("step_100/__0_0.distcp", MB)
        world.grow("step_200/__0_0.distcp", MB)
    world.at(5.0).close("step_100/__0_0.distcp")
    world.save("step_100/.metadata", 100)
    world.at(6.0).close("step_200/__0_0.distcp")
    world.save("step_200/.metadata", 100)
    assert [each[:4] for each in world.seen()] == [
        ("step_100", 1.0, 5.0, 5.0),
        ("step_200", 2.0, 6.0, 6.0),
    ]


def test_a_directory_deleted_while_it_is_written_ends_with_an_error():
    world = World()
    world.at(1.0).open("step_1/x.pt")
    world.grow("step_1/x.pt", 5 * MB)
    world.at(2.0)
    world.files.clear()
    world._event("gone", "step_1/x.pt")
    world._event("gone", "step_1", is_dir=True)
    assert one(world)[:5] == ("step_1", 1.0, None, None, "gone")


# ---- flat shards ----


def test_64_flat_shards_of_64_processes_are_one():
    world = World()
    names = [f"ckpt_100.rank{rank:02}.pt" for rank in range(64)]
    for k, name in enumerate(random.Random(3).sample(names, 64)):
        world.at(1.0 + k * 0.1).save(name, 50_000)  # one after the other, each small
    assert one(world) == ("ckpt_100", 1.0, 7.3, None, "", 64 * 50_000, 64)


@pytest.mark.parametrize(
    "pattern",
    [
        "ckpt_{step}.rank{rank:02}.pt",
        "step{step}_shard{rank}.bin",
        "{step}_{rank}.pt",
        "rank{rank}_step{step}.pt",
    ],
)
def test_overlapping_flat_steps_are_two_whatever_the_names_look_like(pattern):
    world = World()
    for at, step in ((1.0, 100), (2.0, 200)):
        world.at(at)
        for rank in range(4):
            world.open(pattern.format(step=step, rank=rank))
            world.grow(pattern.format(step=step, rank=rank), 2 * MB)
    for at, step in ((4.0, 100), (5.0, 200)):
        world.at(at)
        for rank in range(4):
            world.close(pattern.format(step=step, rank=rank))
    found = world.seen()
    assert [each[1:3] + each[6:] for each in found] == [(1.0, 4.0, 4), (2.0, 5.0, 4)]


def test_a_bare_number_that_varies_while_files_overlap_counts_ranks():
    world = World()
    world.at(1.0)
    for rank in (3, 17, 0, 20, 1, 10):
        world.open(f"ckpt_{rank}.pt")
        world.grow(f"ckpt_{rank}.pt", 2 * MB)
    world.at(3.0)
    for rank in (3, 17, 0, 20, 1, 10):
        world.close(f"ckpt_{rank}.pt")
    assert one(world).files == 6


# ---- what is no checkpoint ----


@pytest.mark.parametrize(
    "path",
    [
        "train.log",
        "run/events.out.tfevents.17.host.1.0",
        "wandb/run-1/files/model.pt",
        "a.lock",
        "metrics.jsonl",
        "core.4711",
        "p.pt.trace.json",
    ],
)
def test_noise_of_any_size(path):
    world = World()
    world.at(1.0).save(path, 50 * MB, takes=1.0)
    assert world.seen() == []


def test_a_metrics_file_rewritten_all_the_time_neither_delays_nor_begins_a_checkpoint():
    world = World()
    for k in range(100):
        world.at(k * 0.3).save("metrics.json", 2000)
        if k == 30:
            world.open("ckpt.pt")
        if 30 <= k < 50:
            world.grow("ckpt.pt", MB)
        if k == 50:
            world.close("ckpt.pt")
    found = one(world)
    assert (found.label, found.begin, found.written) == (
        "ckpt.pt",
        pytest.approx(9.0, abs=0.01),
        pytest.approx(15.0, abs=0.01),
    )


def test_a_table_that_is_appended_to_is_no_checkpoint_each_time():
    world = World()
    world.at(0.0).save("history.txt", 900_000)
    for k in range(1, 20):
        world.at(k * 5.0)
        world.rewrite("history.txt", 900_000 + k * 20_000)
    assert world.seen() == []


# ---- the end of the watch ----


def test_finish_tells_the_complete_and_ends_the_rest():
    world = World()
    world.at(1.0).save("whole.pt")
    world.open("sub/half.pt")
    world.grow("sub/half.pt", 5 * MB)
    world.wait(0.3)
    world.steps += world.grouping.finish(world.t_ns)
    assert [(step.label, step.name, step.error) for step in world.steps] == [
        ("whole.pt", "begin", ""),
        ("half.pt", "begin", ""),
        ("whole.pt", "written", ""),
        ("whole.pt", "end", ""),
        ("half.pt", "end", "unfinished"),
    ]


def test_a_lost_directory_ends_what_is_open():
    world = World()
    world.at(1.0).open("a.pt")
    world.grow("a.pt", 5 * MB)
    world.wait(0.5)
    world._event("lost", "", is_dir=True)
    assert one(world).error == "gone"


# ---- properties ----


@settings(max_examples=60)
@given(
    steps=st.lists(st.integers(1, 30), min_size=1, max_size=4, unique=True),
    ranks=st.integers(1, 6),
    style=st.sampled_from(
        [
            "step_{step}/rank{rank}.pt",
            "ckpt_{step}.rank{rank}.pt",
            "iter_{step:07}/mp_rank_{rank:02}/m.pt",
        ]
    ),
    data=st.data(),
)
def test_any_interleaving_of_writers_gives_one_checkpoint_a_step(steps, ranks, style, data):
    """Each file is opened, grows and is closed, all in any order that a scheduler may choose."""
    world = World()
    world.at(1.0)
    actions = {
        style.format(step=100 * step, rank=rank): ["open", "grow", "grow", "close"]
        for step in steps
        for rank in range(ranks)
    }
    size = dict.fromkeys(actions, 0)
    while actions:
        name = data.draw(st.sampled_from(sorted(actions)))
        action = actions[name].pop(0)
        if action == "grow":
            size[name] += data.draw(st.integers(MB, 3 * MB))
            world.grow(name, size[name] - world.files[name][0])
        else:
            getattr(world, action)(name)
        if not actions[name]:
            del actions[name]
        world.wait(data.draw(st.sampled_from([0.0, 0.01, 0.3, 0.9])) if len(actions) > 1 else 0.0)
    found = world.seen(40.0)
    by_step = {f"{int(each.label.split('_')[1].split('.')[0])}": each for each in found}
    assert len(found) == len(steps)
    assert set(by_step) == {str(100 * step) for step in steps}
    for step, each in by_step.items():
        mine = sum(
            amount
            for name, amount in size.items()
            if name.startswith((f"step_{step}/", f"ckpt_{step}.", f"iter_{int(step):07}/"))
        )
        assert each.bytes == mine
        assert each.files == ranks
        assert each.begin <= each.written
        assert each.error == ""


EVENTS = st.tuples(
    st.sampled_from(["created", "opened", "closed", "moved", "gone"]),
    st.sampled_from("abcdef"),
    st.sampled_from("abcdef"),
    st.booleans(),
    st.sampled_from(["step_1/", "tmp-step_1/", ""]),
    st.sampled_from([0, 10, 5 * MB, 9 * MB, None]),
)


@given(st.lists(EVENTS, max_size=40))
def test_no_order_of_events_breaks_it_and_every_begin_has_one_end(script):
    grouping = Grouping()
    t_ns, steps = S, []
    for kind, name, other, is_dir, top, size in script:
        t_ns += S // 7
        path = top.rstrip("/") if is_dir and top else f"{top}{name}.pt"
        old = ("step_1" if top == "tmp-step_1/" else "tmp-step_1") if is_dir else f"{top}{other}.pt"
        stat = None if size is None or is_dir else FileStat(size, t_ns, t_ns)
        grouping.event(
            FileEvent(t_ns, kind, path, is_dir, old if kind == "moved" and old != path else ""),
            stat,
        )
        grouping.read(t_ns, dict.fromkeys(grouping.wanted(t_ns), FileStat(6 * MB, t_ns, t_ns)))
        steps += grouping.tick(t_ns)
    steps += grouping.finish(t_ns + S)
    assert grouping.pending == 0
    assert grouping._of == {}
    labels = defaultdict(list)
    for step in steps:
        labels[step.label].append(step.name)
        assert step.label
    for names in labels.values():
        assert names.count("begin") <= 1
        assert names.count("end") == 1
        assert names[-1] == "end"


# ---- names ----


@pytest.mark.parametrize(
    ("name", "finished"),
    [
        ("tmp-checkpoint-500", "checkpoint-500"),
        ("checkpoint-500.tmp", "checkpoint-500"),
        ("100.orbax-checkpoint-tmp-17", "100"),
        (".tmpXy12Ab", ""),
        ("tmpab12cd34", ""),
        ("tmp_step_12", "step_12"),
        ("ckpt.pt.partial", "ckpt.pt"),
        ("model.bin.incomplete", "model.bin"),
        ("x.pt~", "x.pt"),
        (".ckpt.pt.Xa81bc", "ckpt.pt"),
        ("ckpt.pt.tmp.12345", "ckpt.pt"),
        (".metadata", ".metadata"),
        ("step_100", "step_100"),
        ("tmp", "tmp"),
        ("attempt_3", "attempt_3"),
        ("_tmp_save", "save"),
        ("last.ckpt", "last.ckpt"),
    ],
)
def test_final_names(name, finished):
    assert final(name) == finished


@pytest.mark.parametrize(
    ("path", "key", "is_unit"),
    [
        ("step_100/a.pt", "step_100", True),
        ("epoch_3/step_100/a.pt", "epoch_3/step_100", True),
        ("run/100/params/0/x", "run/100", True),
        ("2024-01-01/12-00-00/last.pt", "2024-01-01/12-00-00", False),
        ("multirun/0/checkpoints/step_9.pt", "multirun/0/checkpoints", False),
        ("llama-7b/ckpt.pt", "llama-7b", False),
        ("20240101/ckpt.pt", "20240101", False),
        ("final/model/a.pt", "final", False),
        ("step_100_rank_3/a.pt", "step_100", True),
        ("version_0/checkpoints/epoch=0-step=5.ckpt", "version_0/checkpoints", False),
        ("a.pt", "", False),
        ("last.tmp/a.pt", "last", True),
        ("epoch_3/step_200.pt", "epoch_3", False),
        ("checkpoint-500/global_step500/x.pt", "checkpoint-500", True),
    ],
)
def test_units(path, key, is_unit):
    assert unit_of(path)[1:] == (key, is_unit)


@pytest.mark.parametrize(
    ("new", "others", "overlap", "same"),
    [
        ("step_200.pt", ["step_100.pt"], True, False),
        ("step_101.pt", ["step_100.pt"], True, False),
        ("ckpt_1.pt", ["ckpt_0.pt"], True, True),
        ("ckpt_2.pt", ["ckpt_1.pt"], False, False),
        ("optim_100.pt", ["model_100.pt"], True, True),
        ("optim_200.pt", ["model_100.pt"], True, False),
        ("optimizer.pt", ["model_100.pt"], True, True),
        ("model-00002-of-00004.safetensors", ["model-00001-of-00004.safetensors"], False, True),
        ("200_1.pt", ["100_0.pt", "100_1.pt"], True, False),
        ("100_7.pt", ["100_0.pt", "100_1.pt"], True, True),
        ("x.json", ["y.pt"], True, True),
        ("epoch=1-step=200.ckpt", ["epoch=0-step=100.ckpt"], True, False),
        ("rank0.x1", ["rank#.x1"], True, True),
    ],
)
def test_same_step(new, others, overlap, same):
    assert same_step(new, others, overlap=overlap) is same


def test_a_name_with_a_hash_is_no_rank_of_a_number():
    assert not another_rank("rank0.x1", ["rank#.x1"])


def test_numbers_that_belong_to_words_count_nothing():
    assert numbers_of("llama-7b-fp16-step_20.pt").steps == {"step": 20}
