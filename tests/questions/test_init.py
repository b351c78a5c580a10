"""`ckptcost init`: the file it writes is answered as it is, and never takes another's place."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from ckptcost.cli import main
from ckptcost.errors import InputError, OutputError
from ckptcost.questions.init import init
from ckptcost.scenario.resolve import layer_of
from ckptcost.scenario.schema import KEYS


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("all_", [False, True])
def test_it_is_answered_as_it_is(all_: bool, capsys: pytest.CaptureFixture[str]) -> None:
    init("job.toml", all=all_)
    for verb in ("model", "interval", "simulate", "need write", "compare mode=sync"):
        name, *words = verb.split()
        jobs = ["job.toml", *words] if name == "compare" else [*words, "job.toml"]
        assert main([name, *jobs, "--draws", "64"]) == 0
        assert "980 GB each" in capsys.readouterr().out
    assert len(Path("job.toml").read_text().splitlines()) < 20 or all_


def test_every_key_with_an_example_that_is_read() -> None:
    """Each commented line, uncommented, is a key of its section."""
    init("job.toml", all=True)
    lines = Path("job.toml").read_text(encoding="utf-8").splitlines()
    assert max(map(len, lines)) <= 100
    whole = [line.removeprefix("# ") for line in lines if not line.startswith("#  ")]
    said = tomllib.loads("\n".join(whole))
    for section, keys in KEYS.items():
        assert said[section].keys() == keys.keys()
        for key, value in said[section].items():
            if value != "...":
                layer_of({section: {key: value}}, "job.toml")


def test_a_file_that_is_there_stays() -> None:
    Path("job.toml").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="there already"):
        init("job.toml")
    assert Path("job.toml").read_text(encoding="utf-8") == "mine"
    with pytest.raises(InputError, match="no TOML"):
        init("job")
    with pytest.raises(OutputError):
        init("nowhere/job.toml")
