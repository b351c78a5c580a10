"""What a document tells of the command that made it: every flag of every command is asked."""

from __future__ import annotations

import argparse
import json

import pytest

from ckptcost.first.cli import telling
from ckptcost.first.cli.main import COMMANDS, VERBS, parser_for

ALL = [*COMMANDS, *VERBS]
PATHS = ("/secret/folder/name.toml", "secret/name.toml", "/secret/folder/name.toml/")
URLS = (
    "https://user:secret@secret.example/a/name.toml?token=secret#secret",
    "s3://secret/secret/name.toml",
)
HOLD_NO_FOLDER = {
    "CHANGES",
    "DAY",
    "DAYS",
    "HOW",
    "ID",
    "KIND",
    "LAW",
    "LIMIT",
    "N",
    "NAME",
    "NAME=TEXT",
    "NAME=VALUES",
    "NODES",
    "PATH=VALUE",
    "PID",
    "PORT",
    "RESULT",
    "RUNS",
    "SIZE",
    "TARGET",
    "TEXT",
    "TIME",
    "UNIT",
    "USD",
    "ZONE",
}
"""numbers, names of the catalogue, words of ours, and what its author calls things"""


def actions_of(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in parser._actions if action.nargs != 0]


def said(parser: argparse.ArgumentParser, action: argparse.Action, text: str) -> list[list[str]]:
    """All ways to say it, what must stand before it included."""
    if not action.option_strings:
        places = [each for each in parser._actions if not each.option_strings]
        return [[*["0"] * places.index(action), text]]
    ways = []
    for flag in action.option_strings:
        ways.append([flag, text])
        ways.append([f"{flag}={text}"] if flag.startswith("--") else [flag + text])
    return ways


@pytest.mark.parametrize("command", ALL)
def test_every_flag_says_how_it_is_told(command):
    for action in actions_of(parser_for(command)):
        way = telling.way_of(action)
        assert way is not None, action
        if way is telling.whole and action.choices is None:
            assert (action.metavar or action.dest.upper()) in HOLD_NO_FOLDER, action


@pytest.mark.parametrize("command", ALL)
def test_no_flag_tells_a_folder_or_an_address(command):
    parser = parser_for(command)
    asked = 0
    for action in actions_of(parser):
        if telling.way_of(action) is telling.whole:
            continue
        asked += 1
        for text in (*PATHS, *URLS, *(f"replay:{each}" for each in PATHS)):
            for words in said(parser, action, text):
                told = " ".join(telling.tellable(parser, words))
                assert "secret" not in told, (action.dest, words, told)
                if telling.way_of(action) is telling.base_name:
                    assert told.endswith("name.toml"), (action.dest, words, told)
    assert asked or command in ("fleet synthesize", "catalog", "completion", "man"), (
        "every other one takes a file"
    )


@pytest.mark.parametrize("command", ALL)
def test_what_is_told_whole_is_what_was_said(command):
    parser = parser_for(command)
    for action in actions_of(parser):
        if telling.way_of(action) is not telling.whole or action.dest in ("workers", "scheduler"):
            continue
        for words in said(parser, action, "0.5 of/it"):
            assert telling.tellable(parser, words) == words


@pytest.mark.parametrize(
    ("command", "words", "told"),
    [
        ("run", "-q -o /s/x.txt -- /s/python train.py --key=s", "-q -o x.txt -- python ..."),
        ("run", "-qo/s/x.txt -- /s/python", "-qox.txt -- python"),
        ("run", "--token begin=s /s/a.out -o /s/x", "--token ... a.out ..."),
        ("compare", "run:/s/run-1 /s/job.toml -s=/s/x.toml", "run:run-1 job.toml -s=x.toml"),
        ("compare", "-- /s/a.toml /s/b.toml", "-- a.toml b.toml"),
        ("attach", "4711 --watch /s/ckpt/ --for 3", "4711 --watch ckpt --for 3"),
        ("simulate", "--workers 2 --seed 3 --workers=4", "--seed 3"),
        ("fleet", "/s/store --scheduler tcp://h:1 --by day", "store --by day"),
        ("measure", "--redfish https://h/redfish/v1 --meters a,b", "--redfish URL --meters a,b"),
        ("runs pack", "x --store https://h --label team=a", "x --store URL --label team=a"),
        ("solve", "write -s small-8b --for goodput>=0.9", "write -s small-8b --for goodput>=0.9"),
        ("calibrate", "a/1 b/2 --as me -o -", "1 2 --as me -o -"),
    ],
)
def test_words(command, words, told):
    assert telling.tellable(parser_for(command), words.split(" ")) == told.split(" ")


@pytest.mark.parametrize(
    "words",
    [
        ("simulate", "-s", "JOB", "--runs", "3", "--trace", "TRACE", "--kinds", "KINDS"),
        ("measure", "--meters", "replay:RUN"),
        ("fits", "FOLDER", "-s", "JOB"),
        ("audit", "SHEET"),
        ("optimize", "-s", "JOB", "--require", "goodput>=0.01"),
        ("report", "RUN"),
    ],
    ids=lambda words: words[0],
)
def test_a_document_holds_no_folder(cli, tmp_path, words):
    hidden = tmp_path / "hidden-place"
    hidden.mkdir()
    files = {
        "JOB": 'extends = "small-8b"\n',
        "TRACE": "time_h\n1\n5\n9\n",
        "KINDS": '[[kind]]\nname = "node"\nshare = 0.5\n',
        "SHEET": '[[claim]]\nabout = "NAS"\nsize = "2 TB"\nwrite = "200 MB/s"\n',
    }
    for name, text in files.items():
        (hidden / name).with_suffix(".csv" if name == "TRACE" else ".toml").write_text(text)
    if "RUN" in words[-1]:
        record = str(hidden / "RUN")
        assert (
            cli("measure", "--meters", "simulated", "--for", "70 s", "--record", record).code == 0
        )

    def there(word: str) -> str:
        kind = word.removeprefix("replay:")
        if kind == "FOLDER":
            return str(hidden)
        suffix = {"TRACE": ".csv", "RUN": ""}.get(kind, ".toml")
        known = kind in files or kind == "RUN"
        return word.replace(kind, f"{hidden / kind}{suffix}") if known else word

    out = hidden / "out.json"
    done = cli(*map(there, words), "-f", "json", "-o", str(out))
    assert done.code in (0, 3), done
    text = out.read_text("utf-8")
    command = json.loads(text)["tool"]["command"]
    assert command[:2] == ["ckptcost", words[0]]
    assert str(tmp_path) not in text
    assert "hidden-place" not in " ".join(command) or words[0] == "fits", "its own name alone"
