"""Where runs are kept and how one is found, whatever else lies there."""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from nobody import may_become_others
from small_runs import WALL_NS, recorded

from ckptcost.first.errors import InputError, OutputError, RunFileError, UnknownName
from ckptcost.first.runs import store
from ckptcost.first.runs.clocks import S
from ckptcost.first.runs.lines import decode, encode


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("CKPTCOST_RUNS", str(tmp_path / "kept"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "kept"


def with_header(file: Path, source: Path, **changes):
    """The same file under another header."""
    first, _, rest = source.read_bytes().partition(b"\n")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(encode({**decode(first), **changes}) + rest)
    return file


@pytest.fixture
def three(place):
    """Written in another order than they began in, under names that say nothing of time."""
    recorded(place / "b-second", run_id="beef" + "0" * 28, wall_ns=WALL_NS + 60 * S, seconds=3)
    recorded(place / "a-third", run_id="beaf" + "0" * 28, wall_ns=WALL_NS + 120 * S, seconds=3)
    recorded(place / "c-first", run_id="cafe" + "0" * 28, wall_ns=WALL_NS, seconds=3)
    return place


@pytest.mark.parametrize("purpose", ["probe", "selftest"])
def test_the_last_is_the_last_of_a_job(three, purpose):
    (file,) = (three / "a-third").glob("*.jsonl")
    with_header(file, file, purpose=purpose)
    assert store.find("last") == three / "b-second"
    assert store.find("last", of_jobs=False) == three / "a-third"
    assert store.find("beaf") == three / "a-third"
    for name in ("b-second", "c-first"):
        (file,) = (three / name).glob("*.jsonl")
        with_header(file, file, purpose=purpose)
    with pytest.raises(InputError, match="holds no run of a job"):
        store.find("last")


def test_home_is_the_first_that_is_set(monkeypatch, tmp_path):
    assert store.home() == tmp_path / "kept"
    monkeypatch.delenv("CKPTCOST_RUNS")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert store.home() == tmp_path / "data" / "ckptcost" / "runs"
    monkeypatch.setenv("XDG_DATA_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    assert store.home() == tmp_path / "me" / ".local" / "share" / "ckptcost" / "runs"


def test_a_user_without_a_home(monkeypatch):
    def nobody():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("CKPTCOST_RUNS")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr(Path, "home", nobody)
    assert store.folders() == []
    assert store.list_runs() == ([], [])
    with pytest.raises(OutputError, match="CKPTCOST_RUNS"):
        store.new_folder()


def test_a_new_folder_says_when_whose_and_which(place):
    folder = store.new_folder(run="0123456789abcdef", now_ns=WALL_NS)
    assert re.fullmatch(r"20260101T000000Z-[A-Za-z0-9._-]+-01234567", folder.name)
    assert store.new_folder("../my job", now_ns=WALL_NS).name.startswith("20260101T000000Z-my-job-")
    assert folder.parent == place
    assert place.stat().st_mode & 0o077 == 0, "command lines are nobody else's business"


def test_two_at_the_same_instant_never_share(place):
    with ThreadPoolExecutor(16) as pool:
        made = list(pool.map(lambda _: store.new_folder("job", "0123456789", WALL_NS), range(64)))
    assert len(set(made)) == 64
    assert all(folder.is_dir() for folder in made)


def test_nowhere_to_make_one(place):
    place.write_text("a file is in the way")
    with pytest.raises(OutputError, match="CKPTCOST_RUNS"):
        store.new_folder()
    assert store.folders() == []


def test_the_last_is_the_one_that_began_last(three):
    assert store.find("last") == three / "a-third"
    assert [kept.name for kept in store.list_runs().runs] == ["a-third", "b-second", "c-first"]


@pytest.mark.parametrize(
    ("text", "folder"),
    [("beef", "b-second"), ("cafe" + "0" * 28, "c-first"), ("a-", "a-third"), ("c", "c-first")],
)
def test_the_beginning_is_enough(three, text, folder):
    assert store.find(text) == three / folder


def test_a_whole_name_is_not_the_beginning_of_another(three):
    recorded(three / "c-first-again", run_id="d" * 32, seconds=2)
    assert store.find("c-first") == three / "c-first"


def test_several_are_named_and_not_chosen(three):
    with pytest.raises(
        InputError, match=r"2 runs begin so\. there are a-third, b-second"
    ) as caught:
        store.find("be")
    assert caught.value.exit_code == 2


def test_did_you_mean(three):
    with pytest.raises(UnknownName, match="did you mean 'b-second'"):
        store.find("b-secnod")


@pytest.mark.parametrize(
    "text", ["", "  ", "nowhere/at/all", "x" * 300, "x/" * 3000, "zero\0byte", "zero/\0byte"]
)
def test_words_that_name_nothing(three, text):
    with pytest.raises(InputError) as caught:
        store.find(text)
    assert len(str(caught.value)) < 700


def test_no_runs_at_all(place):
    for text in ("last", "beef"):
        with pytest.raises(InputError, match="there are no runs"):
            store.find(text)
    (place / "empty").mkdir(parents=True)
    with pytest.raises(InputError, match="there are no runs"):
        store.find("last")


def test_a_path_that_is_there_wins(three, tmp_path):
    recorded(tmp_path / "beef", run_id="e" * 32, seconds=2)
    assert store.find_run("beef") == (Path("beef"), "")
    assert (
        store.find(str(three / "c-first" / "node1.000.jsonl"))
        == three / "c-first" / "node1.000.jsonl"
    )
    (tmp_path / "last").mkdir()
    assert store.find("last") == three / "a-third", "a folder of that name is ./last"
    assert store.find("./last") == Path("./last")


def test_a_folder_with_two_runs_gives_both(place):
    recorded(place / "job", run_id="a" * 32, seconds=2)
    recorded(place / "job", run_id="b" * 32, seconds=2, wall_ns=WALL_NS + 60 * S)
    assert store.find_run("aa") == (place / "job", "a" * 32)
    assert store.find_run("last") == (place / "job", "b" * 32)
    with pytest.raises(InputError, match=r"2 runs begin so\. there are b{32}, a{32}"):
        store.find("job")
    assert store.find_run("aa", within=place / "job") == (place / "job", "a" * 32)


def test_strange_things_cost_nobody_else(three):
    (three / "notes.txt").write_text("x")
    (three / "other").mkdir()
    (three / "other" / "table.csv").write_text("x")
    (three / "foreign").mkdir()
    (three / "foreign" / "data.jsonl").write_text('{"text": "hello"}\n')
    (three / "half").mkdir()
    source = three / "a-third" / "node1.000.jsonl"
    (three / "half" / "node1.000.jsonl").write_bytes(source.read_bytes()[:200])
    (three / "empty").mkdir()
    (three / "empty" / "node1.000.jsonl").touch()
    (three / "loop").symlink_to("loop")
    (three / "gone").symlink_to("nowhere")
    (three / "pipe").mkdir()
    os.mkfifo(three / "pipe" / "node1.jsonl")
    (three / "newer").mkdir()
    with_header(three / "newer" / "node1.000.jsonl", source, version="2.0")
    (three / "binary").mkdir()
    (three / "binary" / "x.jsonl").write_bytes(os.urandom(100_000))
    listing = store.list_runs()
    assert [kept.name for kept in listing.runs] == ["a-third", "b-second", "c-first"]
    assert {re.search(r"/kept/([a-z]+)", text)[1] for text in listing.unread} == {
        "foreign",
        "half",
        "empty",
        "newer",
        "binary",
    }
    assert store.find("last") == three / "a-third"


def test_a_broken_file_beside_good_ones_is_named(three):
    (three / "a-third" / "node2.000.jsonl").write_bytes(b"\0" * 1000)
    (kept,) = [kept for kept in store.list_runs().runs if kept.name == "a-third"]
    assert len(kept.heads) == 1
    assert (
        [problem for problem in kept.problems if "node2.000.jsonl" in problem]
        == list(kept.problems)
        != []
    )


@pytest.mark.skipif(
    not may_become_others(), reason="only root can become somebody who may not read"
)
def test_no_permission(three, monkeypatch):
    monkeypatch.chdir(
        three
    )  # the folders above are closed to others, a relative name does not ask them
    three.chmod(0o755)
    (three / "a-third").chmod(0o700)
    (three / "b-second" / "node1.000.jsonl").chmod(0o600)
    os.seteuid(65534)
    try:
        listing = store.list_runs(Path())
        with pytest.raises(RunFileError, match="Permission denied"):
            store.kept_at(Path("a-third"))
        with pytest.raises(RunFileError, match="Permission denied"):
            store.kept_at(store.find("a-third/node1.000.jsonl"))
    finally:
        os.seteuid(0)
    assert [kept.path.name for kept in listing.runs] == ["c-first"]
    assert len([text for text in listing.unread if "Permission denied" in text]) == 2


@pytest.mark.skipif(
    not may_become_others(), reason="only root can become somebody who may not read"
)
def test_the_place_itself_is_closed(three):
    os.seteuid(65534)
    try:
        with pytest.raises(InputError, match="cannot be listed"):
            store.find("last")
    finally:
        os.seteuid(0)


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="the kernel counts no bytes here")
def test_only_first_lines_are_read(three):
    source = (three / "a-third" / "node1.000.jsonl").read_bytes()
    for number in range(50):
        (three / f"more-{number}").mkdir()
        (three / f"more-{number}" / "node1.000.jsonl").write_bytes(source + source[-1000:] * 1000)

    def read_bytes():
        return int(Path("/proc/self/io").read_text().split()[1])

    before = read_bytes()
    assert len(store.list_runs().runs) == 53
    assert read_bytes() - before < 50 * 40_000
