"""What the screen remembers: whole or not at all, and nothing breaks over a file that somebody else
wrote."""

import errno
import json
import os

import pytest

from ckptcost.first.errors import OutputError
from ckptcost.first.tui import state
from ckptcost.first.tui.state import Remembered


def test_what_is_saved_is_loaded(tmp_path):
    one = Remembered(
        "ckptcost-light",
        "tiers",
        "job.toml",
        {"site.pue": "1.3"},
        ("a", "b"),
        "a",
        "usd",
        ("x.toml",),
        True,
        "figures",
    )
    state.save(one, tmp_path / "deep" / "down")
    assert state.load(tmp_path / "deep" / "down") == one
    assert [each.name for each in (tmp_path / "deep" / "down").iterdir()] == ["screen.json"]


def test_nothing_yet(tmp_path):
    assert state.load(tmp_path) == Remembered()


@pytest.mark.parametrize(
    "text",
    ["", "{", "\x00\xff", "[1]", "null", '{"theme": 3, "edits": [1], "tiers": "a", "recent": [2]}'],
)
def test_a_damaged_file_costs_what_was_in_it_and_no_more(text, tmp_path):
    (tmp_path / "screen.json").write_text(text, "latin-1")
    loaded = state.load(tmp_path)
    assert loaded._replace(problem="", welcomed=False) == Remembered()
    assert bool(loaded.problem) == (text in ("", "{", "\x00\xff"))


def test_what_has_another_shape_is_left_out(tmp_path):
    told = {
        "theme": "ckptcost-dark",
        "edits": {"site.pue": "1.2", "cluster.gpus": 8},
        "tiers": ["a", 1],
        "new": True,
        "welcomed": 1,
    }
    (tmp_path / "screen.json").write_text(json.dumps(told))
    loaded = state.load(tmp_path)
    assert (loaded.theme, loaded.edits, loaded.tiers, loaded.welcomed) == (
        "ckptcost-dark",
        {"site.pue": "1.2"},
        ("a",),
        False,
    )


def test_where_it_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="could not be written"):
        state.save(Remembered(), tmp_path / "file" / "below")


def test_a_full_disk_leaves_what_was_there_and_nothing_half_written(monkeypatch, tmp_path):
    state.save(Remembered(theme="ckptcost-dark"), tmp_path)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    for call in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, call, full)
            with pytest.raises(OutputError, match="No space left on device"):
                state.save(Remembered(theme="ckptcost-light"), tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["screen.json"]
        assert state.load(tmp_path).theme == "ckptcost-dark"


def test_the_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("CKPTCOST_STATE", str(tmp_path / "own"))
    assert state.home() == tmp_path / "own"
    monkeypatch.delenv("CKPTCOST_STATE")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert state.home() == tmp_path / "ckptcost"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state.home() == tmp_path / ".local" / "state" / "ckptcost"
