"""Nothing stays, however a probe ends: real kills, probes side by side, and links that somebody
planted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from waiting import wait_for

from ckptcost.first.savers import owners
from ckptcost.first.savers.place import SavePlace

SCRIPT = Path(__file__).with_name("probe_process.py")


@contextmanager
def probing(*words, **options):
    """A probe process, and the words it said first."""
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), *map(str, words)],
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )
    try:
        yield process, process.stdout.readline().split()
    finally:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


def gone(pid):
    """Ended, and reaped or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def test_files_go_when_the_probe_is_killed(tmp_path):
    with probing("hold", tmp_path) as (process, (name, janitor)):
        assert sorted(os.listdir(tmp_path / name)) == ["owner", "save-1", "save-2.part"]
        process.kill()
        wait_for(lambda: not names(tmp_path))
        wait_for(lambda: gone(janitor))


@pytest.mark.parametrize("engine", ["direct", "posix"])
def test_files_go_when_it_is_killed_in_the_midst_of_writing(engine, tmp_path):
    with probing("save_on", tmp_path, engine, 64 << 20) as (process, (name,)):
        wait_for(lambda: any("part" in entry for entry in os.listdir(tmp_path / name)))
        process.kill()
        wait_for(lambda: not names(tmp_path))


@pytest.mark.parametrize("engine", ["direct", "posix"])
def test_ctrl_c_in_the_midst_of_writing(engine, tmp_path):
    """Sent to the whole group, as a terminal does it; twice, as people do it."""
    with probing(
        "save_on", tmp_path, engine, 256 << 20, stderr=subprocess.PIPE, process_group=0
    ) as (process, (name,)):
        wait_for(lambda: any("part" in entry for entry in os.listdir(tmp_path / name)))
        begin = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(20) == -signal.SIGINT
        assert time.monotonic() - begin < 10
        assert names(tmp_path) == []
        assert "KeyboardInterrupt" in process.stderr.read()
        process.stderr.close()


def test_the_janitor_is_small_apart_and_deaf_to_ctrl_c(tmp_path):
    with probing("hold", tmp_path) as (process, (name, janitor)):
        pid = int(janitor)
        assert os.getsid(pid) == pid != os.getsid(process.pid)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(pid, number)
        status = dict(
            line.split(":\t", 1)
            for line in Path(f"/proc/{janitor}/status").read_text().splitlines()
        )
        assert int(status["VmRSS"].split()[0]) < 20_000
        assert int(status["Threads"]) == 1
        maps = Path(f"/proc/{janitor}/maps").read_text()
        assert "numpy" not in maps
        assert os.readlink(f"/proc/{janitor}/cwd") == "/"
        process.kill()
        wait_for(lambda: not names(tmp_path))
        assert name


def test_when_both_are_killed_the_next_probe_removes_what_they_left(tmp_path):
    with probing("hold", tmp_path) as (process, (name, janitor)):
        os.kill(int(janitor), signal.SIGKILL)
        wait_for(lambda: gone(janitor))
        process.kill()
        process.wait()
        assert names(tmp_path) == [name]
        with SavePlace(tmp_path) as place:
            assert place.notes == [f"removed {name}, left by an earlier probe that was killed"]
            assert names(tmp_path) == [place.name]
    assert names(tmp_path) == []


def test_probes_side_by_side_leave_each_other_alone(tmp_path):
    with probing("hold", tmp_path) as (process, (name, janitor)):
        with SavePlace(tmp_path) as first, SavePlace(tmp_path) as second:
            assert names(tmp_path) == sorted([name, first.name, second.name])
            assert first.notes == second.notes == []
            assert sorted(os.listdir(tmp_path / name)) == ["owner", "save-1", "save-2.part"]
        assert names(tmp_path) == [name]
        os.kill(int(janitor), signal.SIGKILL)  # the probe lives on without
        with SavePlace(tmp_path):
            assert sorted(os.listdir(tmp_path / name)) == ["owner", "save-1", "save-2.part"]
        process.kill()


def test_while_a_janitor_still_works_nobody_takes_its_directory_for_stale(tmp_path):
    with probing("hold", tmp_path) as (process, (name, janitor)):
        os.kill(int(janitor), signal.SIGSTOP)
        process.kill()
        process.wait()
        try:
            with SavePlace(tmp_path) as place:
                assert place.notes == []
                assert name in names(tmp_path)
        finally:
            os.kill(int(janitor), signal.SIGCONT)
        wait_for(lambda: not names(tmp_path))


def plant(made, victims):
    """What a foe with our rights could put there: links to files and directories, and things of
    other kinds."""
    (made / "save-9").symlink_to(victims, target_is_directory=True)
    (made / "save-1" / "weights-00001").symlink_to(victims / "file")
    (made / "save-2.part" / "save-1").symlink_to(victims, target_is_directory=True)
    (made / "link").symlink_to(victims / "file")
    os.mkfifo(made / "save-1" / "fifo")


@pytest.mark.parametrize("both", [False, True])
def test_planted_links_are_neither_followed_nor_removed(both, tmp_path):
    victims, target = tmp_path / "victims", tmp_path / "target"
    victims.mkdir()
    target.mkdir()
    (victims / "file").write_text("mine")
    with probing("hold", target) as (process, (name, janitor)):
        made = target / name
        plant(made, victims)
        if both:
            os.kill(int(janitor), signal.SIGKILL)
            wait_for(lambda: gone(janitor))
        process.kill()
        process.wait()
        if both:
            with SavePlace(target) as place:
                assert "could not be removed whole" in place.notes[0]
        wait_for(lambda: gone(janitor))
    assert (victims / "file").read_text() == "mine"
    assert names(victims) == ["file"]
    assert names(made) == ["link", "save-1", "save-2.part", "save-9"]
    assert names(made / "save-1") == ["fifo", "weights-00001"]
    assert names(made / "save-2.part") == ["save-1"]


def test_the_directory_itself_made_a_link(tmp_path):
    """`.ckptcost-probe-...` moved away, and a link with its name put there."""
    (tmp_path / "victims").mkdir()
    (tmp_path / "victims" / "owner").write_text("mine")
    target = tmp_path / "target"
    target.mkdir()
    with probing("hold", target) as (process, (name, janitor)):
        (target / name).rename(tmp_path / "moved")
        (target / name).symlink_to(tmp_path / "victims", target_is_directory=True)
        process.kill()
        wait_for(lambda: gone(janitor))
    assert names(tmp_path / "moved") == []
    with SavePlace(target) as place:
        assert place.notes == []
    assert (target / name).is_symlink()
    assert names(tmp_path / "victims") == ["owner"]


def stale(directory, owner=""):
    made = directory / f"{owners.PREFIX}{'0' * 16}"
    made.mkdir()
    (made / "save-1").mkdir()
    (made / "save-1" / "weights-00000").write_text("x")
    if owner:
        (made / "owner").write_text(owner)
    return made


def test_a_probe_of_another_host_is_left_and_named(tmp_path):
    made = stale(tmp_path, "elsewhere\nanother-boot\n17\n")
    with SavePlace(tmp_path) as place:
        (note,) = place.notes
        assert "of a probe of elsewhere" in note
        assert "remove it by hand" in note
    assert (made / "save-1" / "weights-00000").exists()


@pytest.mark.parametrize(
    "owner",
    [
        f"{os.uname().nodename}\nanother-boot\n17\n",
        f"another-container\n{owners._boot()}\n17\n",
        "",
    ],
)
def test_of_this_host_in_another_boot_or_container(owner, tmp_path):
    made = stale(tmp_path, owner or "\n")
    with SavePlace(tmp_path) as place:
        assert place.notes == [f"removed {made.name}, left by an earlier probe that was killed"]
    assert names(tmp_path) == []


def test_one_that_is_just_being_made_is_left_and_an_old_one_is_not(tmp_path):
    made = stale(tmp_path)
    with SavePlace(tmp_path) as place:
        assert made.exists()
        assert place.notes == []
    os.utime(made, (1, 1))
    with SavePlace(tmp_path) as place:
        assert not made.exists()
        assert place.notes


def test_where_there_are_no_locks_nothing_is_removed(tmp_path, monkeypatch):
    made = stale(tmp_path, f"{os.uname().nodename}\n{owners._boot()}\n17\n")

    def no_locks(fd, how):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(owners.fcntl, "flock", no_locks)
    with SavePlace(tmp_path) as place:
        assert "it cannot be told here whether it still runs" in place.notes[0]
    assert names(tmp_path) == [made.name]


def test_other_names_are_nobodys_business(tmp_path):
    for name in (
        ".ckptcost-probe-",
        ".ckptcost-probe-xyz",
        f".ckptcost-probe-{'0' * 17}",
        "save-1",
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "owner").write_text("\n")
    (tmp_path / f".ckptcost-probe-{'1' * 16}").write_text("a file")
    before = names(tmp_path)
    with SavePlace(tmp_path) as place:
        assert place.notes == []
    assert names(tmp_path) == before


@pytest.mark.parametrize("through", [False, True])
def test_two_that_begin_at_the_same_time_and_sweep_each_other(through, tmp_path, monkeypatch):
    """The one that lost its directory to the sweep of another, which has the lock still or is
    through, takes a new one."""
    real, made = owners._lock, []

    def swept_first(fd):
        if made:
            return real(fd)
        made.extend(names(tmp_path))
        (tmp_path / made[0] / "owner").unlink()
        (tmp_path / made[0]).rmdir()
        return through

    monkeypatch.setattr(owners, "_lock", swept_first)
    with SavePlace(tmp_path) as place:
        assert names(tmp_path) == [place.name] != made
        assert os.listdir(place.fd) == ["owner"]
    assert names(tmp_path) == []


def test_many_probes_that_begin_and_end_at_once(tmp_path):
    script = (
        "import sys\nfrom ckptcost.first.savers.place import SavePlace\nfor _ in range(8):\n    with"
        " SavePlace(sys.argv[1]) as place:\n        assert not place.notes, place.notes\n"
    )
    processes = [subprocess.Popen([sys.executable, "-c", script, str(tmp_path)]) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert names(tmp_path) == []
