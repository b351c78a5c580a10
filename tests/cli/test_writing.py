"""Where an answer goes: formats by suffix, whole files or none, streams that are closed or full."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from ckptcost.cli import main

ASKED = ["model", "small-8b", "--draws", "16"]
STARTS = {"json": "{", "csv": "case,", "md": "# ", "html": "<!doctype html>", "txt": "What "}


@pytest.mark.parametrize("suffix", STARTS)
def test_the_suffix_is_the_format(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"answer.{suffix}"
    assert main([*ASKED, "-o", str(path)]) == 0
    assert path.read_text(encoding="utf-8").lower().startswith(STARTS[suffix].lower())
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_a_format_that_is_asked_for_wins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*ASKED, "-f", "json", "-o", str(tmp_path / "a.md")]) == 0
    assert main([*ASKED, "-f", "json", "-o", "-"]) == 0
    written = json.loads((tmp_path / "a.md").read_text(encoding="utf-8"))
    printed = json.loads(capsys.readouterr().out)
    assert written["tables"] == printed["tables"]
    assert printed["command"].startswith("ckptcost model small-8b")


def test_a_file_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, exit 4, and nothing of it is left."""
    kept = tmp_path / "kept.json"
    kept.write_text("old", encoding="utf-8")
    kept.chmod(0o444)
    lost = [tmp_path / "no" / "a.md", tmp_path, Path("/dev/full"), kept]
    for path in lost:
        code = main([*ASKED, "-f", "text", "-o", str(path)])
        err = capsys.readouterr().err
        assert code == 4
        assert err.count("\n") == 1
        assert "could not be written" in err
    assert [each.name for each in tmp_path.iterdir()] == ["kept.json"]
    assert kept.read_text(encoding="utf-8") == "old"


def test_a_link_is_followed(tmp_path: Path) -> None:
    there, link = tmp_path / "there.md", tmp_path / "link.md"
    there.write_text("old", encoding="utf-8")
    link.symlink_to(there)
    assert main([*ASKED, "-o", str(link)]) == 0
    assert link.is_symlink()
    assert there.read_text(encoding="utf-8").startswith("# ")


def test_detail_shows_every_table(capsys: pytest.CaptureFixture[str]) -> None:
    main(ASKED)
    short = capsys.readouterr().out
    main([*ASKED, "--detail"])
    long = capsys.readouterr().out
    assert len(long.splitlines()) > 2 * len(short.splitlines())
    assert "checkpoint.params" in long


def shell(command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    line = command.replace("ckptcost", f"{sys.executable} -m ckptcost")
    return subprocess.run(
        ["bash", "-c", line],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(sys.path), **environment},
    )


def test_a_reader_that_leaves_and_a_disk_that_is_full() -> None:
    left = shell("ckptcost catalog grid | head -1; exit ${PIPESTATUS[0]}")
    assert left.stderr == ""
    assert left.stdout.startswith("Catalogue: grid")
    full = shell("ckptcost model small-8b --draws 16 > /dev/full")
    assert full.returncode == 4
    assert full.stderr.count("\n") == 1


def test_a_stream_without_bytes() -> None:
    """Such as a notebook's."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert main(["catalog", "nas-hdd"]) == 0
    assert "nas-hdd" in printed.getvalue()


def test_letters_in_any_locale() -> None:
    found = shell("ckptcost catalog gcp:europe-west6", LC_ALL="C", PYTHONUTF8="0")
    assert (found.returncode, found.stderr) == (0, "")
    assert "Zürich" in found.stdout


def test_an_answer_with_control_characters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = tmp_path / "job.toml"
    main(["init", str(job)])
    job.write_text(job.read_text().replace('"my job"', '"\\u001b[31mred"'), encoding="utf-8")
    capsys.readouterr()
    code = main(["model", str(job), "--draws", "16"])
    assert "\x1b" not in "".join(capsys.readouterr())
    assert code in (0, 2)
