"""`ckptcost init`."""

from __future__ import annotations

import tomllib
from pathlib import Path


def test_it_writes_a_file_that_models_unchanged(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = cli("init")
    assert (done.code, done.out) == (0, "")
    assert "scenario.toml" in done.err
    tomllib.loads(Path("scenario.toml").read_text("utf-8"))
    modelled = cli("model", "-s", "scenario.toml")
    assert (modelled.code, modelled.err) == (0, "")
    assert modelled.out.startswith("my job\n")


def test_dash_prints_it(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = cli("init", "-")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("# A ckptcost scenario")
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_never_overwritten(cli, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text("precious")
    done = cli("init", str(file))
    assert (done.code, done.out) == (2, "")
    assert (
        done.err == f"ckptcost: {file}: is already there. choose another name, or remove it first\n"
    )
    assert file.read_text() == "precious"


def test_nor_a_folder_nor_a_link_to_nowhere(cli, tmp_path):
    assert cli("init", str(tmp_path)).code == 2
    link = tmp_path / "link.toml"
    link.symlink_to(tmp_path / "absent.toml")
    done = cli("init", str(link))
    assert link.is_symlink(), "the link was replaced"
    assert done.code in (0, 2, 4)


def test_nowhere_to_write(cli, tmp_path):
    done = cli("init", str(tmp_path / "absent" / "new.toml"))
    assert (done.code, done.out) == (4, "")
    assert done.err.count("\n") == 1
    assert not (tmp_path / "absent").exists()


def test_an_empty_name_says_so(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = cli("init", "")
    assert done.code == 2
    assert "already there" not in done.err


def test_it_is_the_same_each_time(cli):
    assert cli("init", "-") == cli("init", "-")
