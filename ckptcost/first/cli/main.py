"""`ckptcost`: find the command, import only that one, and turn every expected error into one line
and an exit code."""

from __future__ import annotations

import argparse
import contextlib
import errno
import io
import os
import signal
import sys
import threading
from collections.abc import Sequence
from importlib import import_module
from itertools import takewhile
from typing import NoReturn

from ckptcost.first.errors import (
    CkptcostError,
    InputError,
    OutputError,
    UnknownName,
    brief,
    visible,
)
from ckptcost.first.version import __version__

COMMANDS = {
    "screen": "all of this on one screen; what `ckptcost` alone opens",
    "model": "what a job's checkpoints cost, one save and the whole run",
    "sweep": "the same over a grid of tiers, counts and any other input",
    "simulate": "whole runs with random failures: spread, not only the mean",
    "optimize": "the best interval for time, energy, dollars and carbon",
    "solve": "what is needed for a target: bandwidth, stall, interval, price",
    "compare": "scenarios side by side, with absolute and relative differences",
    "sensitivity": "which inputs decide the result, and which to measure next",
    "audit": "claims of a vendor's sheet held against each other",
    "fits": "will the checkpoints that are kept fit into a folder",
    "lead": "how early before the wall limit the last save must begin",
    "measure": "what this machine uses for a while, by meter and by checkpoint",
    "run": "run a command and record what its checkpoints take",
    "attach": "the same of a process that runs already",
    "probe": "write a checkpoint for real and read it back: rates, latencies",
    "calibrate": "fit storage and power to runs; a tier that `model` then uses",
    "runs": "what was recorded: list, show, pack",
    "report": "a recorded run or a JSON document, as text, page or table",
    "export": "the same for other software, tried with what reads it",
    "diff": "two of them held against each other, for a pull request",
    "serve-metrics": "metrics of a run for Prometheus, while it is recorded",
    "fleet": "a store of packed runs: jobs, nodes and months rolled up",
    "doctor": "what can be measured here, and what would help with the rest",
    "selftest": "what this tool can be trusted with in a folder, by real saves",
    "catalog": "what ships: models, tiers, clusters, sites, grids and sources",
    "check": "recompute a JSON report from its own inputs and compare",
    "init": "write a commented scenario file to start from",
    "completion": "a script that completes command lines in bash, zsh or fish",
    "man": "the manual page, as roff",
}

VERBS = {
    "solve price": "what a faster tier may cost",
    "measure baseline": "learn the idle power of this machine and keep it",
    "fleet synthesize": "write a made-up fleet with known truth",
    "runs list": "what was recorded, the latest first",
    "runs show": "one run, with its marks counted",
    "runs pack": "a run as a folder of Parquet files, or into a store with others",
}
"""further questions of a command, each with its own --help"""
MOVED = {
    ("measure", "--baseline"): "ckptcost measure baseline",
    ("fleet", "--synthesize"): "ckptcost fleet synthesize NODES DAYS DIR",
}
"""flags of old, and where their question went"""

DEFECT = 70
"""exit code of what is no error of the user's: EX_SOFTWARE of sysexits.h"""
EPILOG = """\
exit codes: 0 done, 1 a check found differences, 2 wrong input,
3 a target is missed, 4 output could not be written,
5 not measurable here, 70 a defect of ckptcost, 130 interrupted
`ckptcost --debug COMMAND ...`, or CKPTCOST_DEBUG=1, prints its traceback
start with: ckptcost            the screen; without a terminal: ckptcost model
"""


class Parser(argparse.ArgumentParser):
    """argparse, with the house's one-line errors."""

    def error(self, message: str) -> NoReturn:
        print(f"ckptcost: {visible(message)}. See `{self.prog} --help`.", file=sys.stderr)
        raise SystemExit(2)


def parser_for(command: str) -> Parser:
    """The parser of one command, which imports that command's module and no other. A verb's
    `arguments`, `run` and `EPILOG` are beside its command's, with its name at the end."""
    name, _, verb = command.replace("-", "_").partition(" ")
    module = import_module(f"ckptcost.first.cli.{name}_")
    of_verb = f"_{verb}" if verb else ""
    what = (COMMANDS | VERBS)[command]
    parser = Parser(
        prog=f"ckptcost {command}",
        description=what[0].upper() + what[1:] + ".",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=getattr(module, f"EPILOG{of_verb.upper()}"),
        allow_abbrev=False,
    )
    getattr(module, f"arguments{of_verb}")(parser)
    parser.set_defaults(carry_out=getattr(module, f"run{of_verb}"))
    return parser


def command_of(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The command, with its verb where it has one, and the words that follow."""
    name, *rest = words
    if name not in COMMANDS:
        raise UnknownName("command", name, COMMANDS, lists="`ckptcost --help` lists them")
    _check_moved(name, rest)
    if rest and f"{name} {rest[0]}" in VERBS:
        return f"{name} {rest[0]}", rest[1:]
    if name == "runs":
        if rest and not rest[0].startswith("-"):
            verbs = [verb.removeprefix("runs ") for verb in VERBS if verb.startswith("runs ")]
            raise UnknownName("verb", rest[0], verbs)
        if not {"-h", "--help"} & set(rest):
            return "runs list", rest
    return name, rest


def _check_moved(name: str, words: Sequence[str]) -> None:
    for word in takewhile(lambda word: word != "--", words):
        if (moved := MOVED.get((name, word.partition("=")[0]))) is not None:
            raise InputError(
                f"`ckptcost {name} {word}` is a command of its own", remedy=f"Say: {moved}"
            )


def short_help() -> str:
    lines = [
        "usage: ckptcost COMMAND [options]",
        "",
        "What AI-training checkpoints cost, every number traceable.",
        "",
        "commands:",
    ]
    lines += [f"  {name:<13} {what}" for name, what in COMMANDS.items()]
    return (
        "\n".join(
            [
                *lines,
                "",
                "ckptcost COMMAND --help shows a command's options; --version the version.",
                EPILOG.rstrip(),
            ]
        )
        + "\n"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the value is the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        # data is UTF-8 whatever the locale says, and a message never fails over a letter
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    debug = words[:1] == ["--debug"]
    words = words[1:] if debug else words
    try:
        return _carried_out(words)
    except CkptcostError as error:
        print(f"ckptcost: {visible(str(error))}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("ckptcost: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # the reader went away (`| head`): no message, and no second one when Python flushes at exit
        _close_stdout()
        return OutputError.exit_code
    except OSError as error:
        return _refused_by_system(error)
    except Exception as error:
        return _told_defect(error, debug)


def _refused_by_system(error: OSError) -> int:
    """An input that could not be read was told where it was read; what is left is output, but for a
    name that no file can have."""
    if error.errno == errno.ENAMETOOLONG:
        print(f"ckptcost: {brief(error.filename)}: {error.strerror}", file=sys.stderr)
        return InputError.exit_code
    print(f"ckptcost: the output could not be written ({error.strerror or error})", file=sys.stderr)
    _close_stdout()
    return OutputError.exit_code


def _told_defect(error: Exception, debug: bool) -> int:
    """One line on what is our own mistake, and how to report it."""
    if debug or os.environ.get("CKPTCOST_DEBUG", "") not in ("", "0"):
        import traceback

        traceback.print_exception(error, file=sys.stderr)
    what = visible(" ".join(str(error).split()))
    print(
        f"ckptcost: a defect of ckptcost {__version__}: {type(error).__name__}"
        + (f": {brief(what, 120)}" if what else "")
        + ". Please report it, with what `ckptcost --debug` before the same words prints.",
        file=sys.stderr,
    )
    return DEFECT


def _carried_out(words: Sequence[str]) -> int:
    """Words without a command: options are the screen's, and nothing at all opens it."""
    first = words[0] if words else "" if _is_terminal() else "--help"
    if first in ("-h", "--help", "help"):
        _say(short_help())
    elif first in ("-V", "--version"):
        _say(f"ckptcost {__version__}\n")
    else:
        is_command = bool(words) and not first.startswith("-")
        return _command(words if is_command else ["screen", *words])
    return 0


def _command(words: Sequence[str]) -> int:
    command, rest = command_of(words)
    parser = parser_for(command)
    options = parser.parse_args(rest)
    _no_bare_dashes(parser, options)
    options.words = words
    options.parser, options.rest = parser, rest
    try:
        return _run(options)
    except InputError as error:
        raise error.spelled(lambda name: flag_of(parser, name, rest)) from None


def flag_of(parser: argparse.ArgumentParser, name: str, words: Sequence[str] = ()) -> str:
    """How the command line says a parameter: its flag, of several the one that was given; or the
    place it has."""
    said = {word.partition("=")[0] for word in words}
    actions = [action for action in parser._actions if action.dest == name]
    actions.sort(key=lambda each: (each.type is not None, said.isdisjoint(each.option_strings)))
    if not actions:
        return name
    return max(actions[0].option_strings, key=len, default=str(actions[0].metavar or name))


def _no_bare_dashes(parser: Parser, options: argparse.Namespace) -> None:
    """argparse takes `--flag=--` for an empty list; nobody means that."""
    for action in parser._actions:
        value = getattr(options, action.dest, None)
        many = (
            value
            if isinstance(value, list) and isinstance(action, argparse._AppendAction)
            else [value]
        )
        if (
            action.option_strings
            and not isinstance(action.nargs, int)
            and any(isinstance(each, list) for each in many)
        ):
            parser.error(f"argument {'/'.join(action.option_strings)}: expected one argument")


def _is_terminal() -> bool:
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def _run(options: argparse.Namespace) -> int:
    if threading.current_thread() is not threading.main_thread():
        return int(options.carry_out(options) or 0)
    before = signal.signal(signal.SIGTERM, _exit_on_sigterm)
    try:
        return int(options.carry_out(options) or 0)
    finally:
        signal.signal(signal.SIGTERM, before)


def _exit_on_sigterm(number: int, frame: object) -> NoReturn:
    """SIGTERM unwinds, so that a half-written file is taken away."""
    raise SystemExit(128 + number)


def _say(text: str) -> None:
    if sys.stdout is not None:
        sys.stdout.write(text)
        sys.stdout.flush()


def _close_stdout() -> None:
    with contextlib.suppress(OSError, AttributeError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    raise SystemExit(main())
