"""The program that kills: some kills of each command, and that it finds what is wrong."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import kills


def test_commands_that_are_killed_leave_nothing_by_halves():
    hits, wrong = kills.kills(len(kills.KILLS), seed=5)
    assert wrong == []
    assert sum(hits.values()) >= 1, "else nothing was tried"


def test_half_a_file_is_found(tmp_path, monkeypatch):
    def halved(kill: kills.Kill, folder: Path, after_s: float) -> bool:
        (folder / "out.json").write_text('{"schema_name": "ckpt')
        return True

    monkeypatch.setattr(kills, "killed", halved)
    _, (wrong,) = kills.kills(1, names=("model",))
    assert "out.json is half a file" in wrong


def test_what_is_left_behind_is_found(monkeypatch):
    def littering(kill: kills.Kill, folder: Path, after_s: float) -> bool:
        (folder / ".out.json.1234.part").write_text("")
        return True

    monkeypatch.setattr(kills, "killed", littering)
    _, (wrong,) = kills.kills(1, names=("init",))
    assert "left behind: ['.out.json.1234.part']" in wrong
