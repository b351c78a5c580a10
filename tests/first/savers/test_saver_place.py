"""A probe's own directory: made safely, sized honestly, and gone afterwards."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ckptcost.first.errors import InputError, OutputError
from ckptcost.first.savers.place import SavePlace, check_name, margin_bytes

SCRIPT = Path(__file__).with_name("probe_process.py")


def said(*words, before=()):
    """What a probe process prints."""
    done = subprocess.run(
        [*before, sys.executable, str(SCRIPT), *map(str, words)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def in_tmpfs(directory, options):
    """Words that run a command with a small file system in memory mounted there, for it alone;
    skips where that is forbidden."""
    private = ["unshare", "-m"] if os.getuid() == 0 else ["unshare", "-rm"]
    script = f'mount -t tmpfs -o {options} none "$0" && exec "$@"'
    if (
        shutil.which("unshare") is None
        or subprocess.run(
            [*private, "sh", "-c", script, directory, "true"], check=False, capture_output=True
        ).returncode
    ):
        pytest.skip("no right to mount here")
    return (*private, "sh", "-c", script, str(directory))


def test_all_happens_in_a_directory_for_its_owner_only_and_nothing_stays(tmp_path):
    with SavePlace(tmp_path) as place:
        (made,) = tmp_path.iterdir()
        assert made.name == place.name
        assert made.name.startswith(".ckptcost-probe-")
        assert stat.S_IMODE(made.stat().st_mode) == 0o700
        with place.saving(3, 0) as save:
            fd = save.create("weights-00000")
            os.write(fd, b"x" * 10)
            os.close(fd)
            assert (made / "save-3.part" / "weights-00000").read_bytes() == b"x" * 10
            assert stat.S_IMODE((made / "save-3.part" / "weights-00000").stat().st_mode) == 0o600
            assert (save.path / "weights-00000").read_bytes() == b"x" * 10
            save.sync_files()
            save.commit()
        assert sorted(path.name for path in made.iterdir()) == ["owner", "save-3"]
        with place.loading(3) as save:
            fd = save.open("weights-00000")
            assert os.read(fd, 20) == b"x" * 10
            os.close(fd)
        place.remove(3)
        assert [path.name for path in made.iterdir()] == ["owner"]
    assert list(tmp_path.iterdir()) == []
    place.close()


def break_off(place, error, committed):
    with place.saving(1, 0) as save:
        os.close(save.create("a"))
        if committed:
            save.commit()
        raise error


def test_a_save_that_breaks_off_leaves_nothing(tmp_path):
    class Odd(BaseException):
        pass

    with SavePlace(tmp_path) as place:
        for error in (KeyboardInterrupt, Odd, ValueError):
            for committed in (False, True):
                with pytest.raises(error):
                    break_off(place, error, committed)
                assert os.listdir(place.fd) == ["owner"]


def test_a_save_that_was_never_made_or_is_gone(tmp_path):
    with SavePlace(tmp_path) as place:
        with pytest.raises(OutputError, match=r"load of save 7.*it is gone"), place.loading(7):
            pass
        place.remove(7)
        with place.saving(1, 0) as save:
            os.close(save.create("a"))
            save.commit()
        with pytest.raises(OutputError, match="save 1: it is there already"), place.saving(1, 0):
            pytest.fail("it began")
        assert os.listdir(tmp_path / place.name / "save-1") == ["a"]


def test_files_are_new_and_links_are_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "dir").mkdir()
    with SavePlace(tmp_path / "dir") as place:
        with place.saving(1, 0) as save:
            os.symlink(victim, "weights-00000", dir_fd=save.fd)
            with pytest.raises(FileExistsError):
                save.create("weights-00000", os.O_WRONLY | os.O_TRUNC)
            with pytest.raises(OSError, match="symbolic links"):
                save.open("weights-00000", os.O_WRONLY | os.O_TRUNC)
            os.unlink("weights-00000", dir_fd=save.fd)
        os.symlink(tmp_path, "save-5", dir_fd=place.fd)
        with pytest.raises(OutputError), place.loading(5):
            pass
        os.unlink("save-5", dir_fd=place.fd)
    assert victim.read_text() == "mine"
    assert list((tmp_path / "dir").iterdir()) == []


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/a", "../a", "a\0b", "n" * 256])
def test_a_name_is_only_a_name(name, tmp_path):
    with pytest.raises(InputError):
        check_name(name)
    with SavePlace(tmp_path) as place, place.saving(1, 0) as save:
        with pytest.raises(InputError):
            save.create(name)
        with pytest.raises(InputError):
            save.open(name)


def test_somebody_renames_the_directory_meanwhile(tmp_path):
    (tmp_path / "a").mkdir()
    with SavePlace(tmp_path / "a") as place:
        (tmp_path / "a").rename(tmp_path / "b")
        (tmp_path / "a").mkdir()
        with place.saving(1, 0) as save:
            os.close(save.create("x"))
            save.commit()
        assert list((tmp_path / "a").iterdir()) == []
    assert list((tmp_path / "b").iterdir()) == []


def test_no_directory(tmp_path):
    with pytest.raises(InputError, match=r"none: no such directory"):
        SavePlace(tmp_path / "none")
    with pytest.raises(InputError):
        SavePlace("a\0b")
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="file: not a directory"):
        SavePlace(tmp_path / "file")


def test_too_little_space_is_said_before_anything_is_made(tmp_path):
    free = shutil.disk_usage(tmp_path).free
    with pytest.raises(
        OutputError,
        match=r"a checkpoint of .*B does not fit: .*B are free, of which .*B are left alone",
    ):
        SavePlace(tmp_path, 2 * free + 10**9)
    assert list(tmp_path.iterdir()) == []
    with SavePlace(tmp_path) as place:
        with pytest.raises(OutputError, match="does not fit"), place.saving(1, 2 * free + 10**9):
            pytest.fail("it began")
        assert os.listdir(place.fd) == ["owner"]


def test_a_margin_stays_free(tmp_path):
    words = in_tmpfs(tmp_path, "size=64m")
    size, margin = 64 << 20, margin_bytes(64 << 20)
    assert "made" in said("try_place", tmp_path, size - margin - (1 << 20), before=words)
    out = said("try_place", tmp_path, size - margin // 2, before=words)
    assert (
        out
        == "OutputError 4 .: a checkpoint of 65.4 MB does not fit: 67.1 MB are free, of which 3.36"
        " MB are left alone. Give a smaller size, or another directory\nleft\n"
    )


def test_a_read_only_file_system(tmp_path):
    assert (
        said("try_place", tmp_path, 0, before=in_tmpfs(tmp_path, "size=1m,ro"))
        == "OutputError 4 .: cannot make a directory in it: the file system is mounted"
        " read-only\nleft\n"
    )


def test_a_directory_one_may_not_write_to(tmp_path):
    target = tmp_path / "closed"
    target.mkdir(mode=0o555)
    uid = "65534" if os.getuid() == 0 else ""
    assert (
        said("try_place", target, 0, uid)
        == "OutputError 4 .: cannot make a directory in it: permission denied\nleft\n"
    )


def test_a_directory_one_may_not_read(tmp_path):
    if os.getuid() == 0:
        pytest.skip("root may")
    (tmp_path / "closed").mkdir(mode=0)
    with pytest.raises(OutputError, match="cannot be opened: permission denied"):
        SavePlace(tmp_path / "closed")


def test_no_inode_left(tmp_path):
    out = said("try_place", tmp_path, 0, before=in_tmpfs(tmp_path, "size=1m,nr_inodes=2"))
    assert out.startswith("OutputError 4 .: cannot make a directory in it: no space is left"), out
    assert out.endswith("left\n")


def test_without_a_janitor_it_goes_on_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    with SavePlace(tmp_path) as place:
        (note,) = place.notes
        assert "if this process is killed its files stay" in note
    assert list(tmp_path.iterdir()) == []


def test_an_interpreter_that_does_not_start_is_no_janitor(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/true")
    with SavePlace(tmp_path) as place:
        assert "did not start" in place.notes[0]
    assert list(tmp_path.iterdir()) == []


def test_a_forked_child_removes_nothing(tmp_path):
    with SavePlace(tmp_path) as place:
        child = os.fork()
        if child == 0:
            place.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert place.name in os.listdir(tmp_path)
        assert os.listdir(place.fd) == ["owner"]
    assert list(tmp_path.iterdir()) == []


def test_what_somebody_else_put_there_stays_and_is_named(tmp_path):
    with SavePlace(tmp_path) as place:
        made = tmp_path / place.name
        with place.saving(1, 0) as save:
            os.close(save.create("x"))
            (save.path / "folder").mkdir()
            save.commit()
        (made / "theirs.txt").write_text("theirs")
    assert "theirs.txt: not made by a probe" in place.notes[0]
    assert "save-1/folder: not made by a probe" in place.notes[0]
    assert (made / "theirs.txt").read_text() == "theirs"
    assert (made / "save-1" / "folder").is_dir()
    assert not (made / "save-1" / "x").exists()
