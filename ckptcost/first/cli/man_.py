"""`ckptcost man`: the manual page, from what `--help` is made of."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

EPILOG = """\
to read it:     ckptcost man | man -l -
to keep it:     ckptcost man > ~/.local/share/man/man1/ckptcost.1
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """It takes none."""


def escaped(text: str) -> str:
    """A line of text that roff takes as it is."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in (".", "'") else text


def of_action(action: argparse.Action, parser: argparse.ArgumentParser) -> Iterator[str]:
    formatter = parser._get_formatter()
    yield ".TP"
    if action.option_strings:
        names = ", ".join(f"\\fB{escaped(name)}\\fR" for name in action.option_strings)
        value = "" if action.nargs == 0 else formatter._format_args(action, action.dest.upper())
        yield names + (f" \\fI{escaped(value)}\\fR" if value else "")
    else:
        name = action.metavar if isinstance(action.metavar, str) else action.dest
        yield f"\\fI{escaped(name)}\\fR"
    yield escaped(" ".join(formatter._expand_help(action).split()) if action.help else "-")


def of_command(command: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    yield f".SS ckptcost {escaped(command)}"
    yield escaped(parser.description or "")
    usage = " ".join(parser.format_usage().removeprefix("usage: ").split())
    yield from (".PP", escaped(usage))
    for action in parser._actions:
        if action.dest != "help":
            yield from of_action(action, parser)
    if parser.epilog:
        yield from (".PP", ".nf")
        yield from (escaped(line) for line in parser.epilog.rstrip().splitlines())
        yield ".fi"


def page() -> Iterator[str]:
    from ckptcost.first.cli.main import COMMANDS, EPILOG, VERBS, parser_for
    from ckptcost.first.version import __version__

    yield f'.TH CKPTCOST 1 "" "ckptcost {escaped(__version__)}" "User Commands"'
    yield from (".SH NAME", "ckptcost \\- what AI\\-training checkpoints cost")
    yield from (".SH SYNOPSIS", "\\fBckptcost\\fR \\fICOMMAND\\fR [\\fIoptions\\fR]")
    yield ".SH DESCRIPTION"
    yield "kWh, GPU\\-hours lost, dollars and kgCO2e of the checkpoints of a training job, measured"
    yield "or modelled. Without a command it opens a screen. Results go to stdout."
    yield ".SH COMMANDS"
    for command in sorted(
        [*COMMANDS, *VERBS], key=lambda name: list(COMMANDS).index(name.split()[0])
    ):
        yield from of_command(command, parser_for(command))
    yield from (".SH EXIT STATUS", ".nf")
    yield from (escaped(line) for line in EPILOG.rstrip().splitlines())
    yield ".fi"


def run(options: argparse.Namespace) -> int:
    from ckptcost.first.cli import output

    output.write((f"{line}\n" for line in page()), None)
    return 0
