"""What a document may tell of the command that made it: neither where its author keeps things nor
an address. Each flag says it by what it takes: its metavar."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence

UNTOLD = "..."
Way = Callable[[str], str]


def whole(text: str) -> str:
    return text


def base_name(text: str) -> str:
    """The last part of a path, or of a URL behind its host."""
    kind, colon, path = text.partition(":")
    if colon and kind in ("run", "replay"):
        return f"{kind}:{base_name(path)}"
    _, is_url, path = text.partition("://")
    if is_url:
        path = path.split("?")[0].split("#")[0].partition("/")[2].strip("/")
        return os.path.basename(path) or "URL"
    return os.path.basename(os.path.normpath(text)) if text else text


def no_address(text: str) -> str:
    return "URL" if text else text


def untold(text: str) -> str:
    return UNTOLD


_WHOLE = (
    "CHANGES DAY DAYS HOW ID KIND LAW LIMIT N NAME NAME=TEXT NAME=VALUES NODES PATH=VALUE PID PORT"
    " RESULT RUNS SIZE TARGET TEXT TIME UNIT USD ZONE"
)
_BASE_NAME = "DIR FILE FILE|PRESET NAME|FILE NEW OLD PATH RUN SCENARIO SOURCE STORE URL WHAT WHICH"
WAYS: dict[str, Way] = {
    **dict.fromkeys(_WHOLE.split(), whole),
    **dict.fromkeys(_BASE_NAME.split(), base_name),
    **dict.fromkeys(("IP", "MARK=REGEX", "WHERE", "-- COMMAND ..."), untold),
    "--redfish": no_address,
}
"""by metavar, or by the flag itself"""
CHANGES_NO_FIGURE = ("--workers", "--scheduler")
"""left out: the answer is the same whatever they say"""


def way_of(action: argparse.Action) -> Way | None:
    """How a document tells what a flag is given; None: nobody has said how."""
    if action.nargs == 0 or action.choices is not None:
        return whole
    flag = action.option_strings[-1] if action.option_strings else ""
    kind = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    return WAYS.get(flag) or WAYS.get(kind)


def command_of(options: argparse.Namespace) -> list[str]:
    """The whole command, as a document may tell it."""
    name = options.words[: len(options.words) - len(options.rest)]
    return ["ckptcost", *name, *tellable(options.parser, options.rest)]


def tellable(parser: argparse.ArgumentParser, words: Sequence[str]) -> list[str]:
    """The words after the command's name, as a document may tell them."""
    return [*_tellable(parser, iter(words))]


def _tellable(parser: argparse.ArgumentParser, words: Iterator[str]) -> Iterator[str]:
    flags, places = parser._option_string_actions, _places(parser)
    for word in words:
        flag = word.partition("=")[0]
        if word == "--":
            yield word
            for placed in words:
                yield from _placed(next(places, None), placed, words)
        elif word[:2] not in flags and flag not in flags:
            yield from _placed(next(places, None), word, words)
        elif not flag.startswith("--"):
            yield from _short(flags, word, words)
        else:
            yield from _long_flag(flags[flag], word, words)


def _placed(place: argparse.Action | None, word: str, words: Iterator[str]) -> Iterator[str]:
    """A word without a flag; of a job's command nothing after its program is told."""
    yield _one(place, word)
    if place is not None and place.nargs == argparse.REMAINDER and [*words]:
        yield UNTOLD


def _long_flag(action: argparse.Action, word: str, words: Iterator[str]) -> Iterator[str]:
    """`--flag`, `--flag=VALUE`, `--flag VALUE`."""
    flag, equals, value = word.partition("=")
    if action.nargs == 0:
        yield flag
        return
    shown = _one(action, value if equals else next(words, ""))
    if flag not in CHANGES_NO_FIGURE:
        yield from [f"{flag}={shown}"] if equals else [flag, shown]


def _short(flags: dict[str, argparse.Action], word: str, words: Iterator[str]) -> Iterator[str]:
    """`-q`, `-o FILE`, `-oFILE`, `-qoFILE`."""
    for i, letter in enumerate(word[1:], 2):
        action = flags.get(f"-{letter}")
        if action is not None and action.nargs == 0:
            continue
        equals = word[i : i + 1] == "="
        value = word[i + equals :]
        yield word[: i + equals] + (_one(action, value) if value else "")
        if not value and not equals:
            yield _one(action, next(words, ""))
        return
    yield word


def _places(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """The positional argument that each further word belongs to."""
    for action in parser._actions:
        if not action.option_strings:
            while True:
                yield action
                if action.nargs in (None, "?"):
                    break


def _one(action: argparse.Action | None, word: str) -> str:
    """A job's program is told by its name; what nobody has thought of is not told."""
    if action is not None and action.nargs == argparse.REMAINDER:
        return base_name(word)
    way = way_of(action) if action is not None else None
    return (way or untold)(word)
