"""Flags and output that the commands with a study for an answer share."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from ckptcost.jobs.gates import Verdict
    from ckptcost.questions.results import StudyResult

T = TypeVar("T")

MISSED = 3


def add(parser: argparse.ArgumentParser, gates: bool = True) -> None:
    """-f, --table, and the gates."""
    parser.add_argument(
        "-f",
        "--format",
        choices=("text", "json", "csv", "md", "html"),
        default="text",
        help="default: text",
    )
    parser.add_argument("--table", metavar="ID", help="csv: which table (default: the first)")
    add_full(parser)
    if gates:
        add_gates(parser)


def add_full(parser: argparse.ArgumentParser) -> None:
    """--full, where text is the answer on one screen."""
    parser.add_argument(
        "--full",
        action="store_true",
        help="text: every table, caution and assumption, not the answer alone",
    )


def add_gates(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--require",
        action="append",
        default=[],
        metavar="TARGET",
        help='e.g. "goodput>=0.95"; exit code 3 when it is missed; may repeat',
    )
    parser.add_argument(
        "--budget",
        action="append",
        dest="require",
        default=[],
        metavar="LIMIT",
        help='e.g. "usd<=10000" or "kwh<=2 MWh"; exit code 3 when it is missed',
    )


def add_draws(parser: argparse.ArgumentParser, default: str) -> None:
    """--draws, where ranges are printed that come from them."""
    parser.add_argument(
        "--draws",
        type=draws,
        default=0,
        metavar="N",
        help=f"draws from the inputs' ranges behind p5-p95, 64 to 1,000,000 (default: {default})",
    )


def draws(text: str) -> int:
    """Of an option: how many draws."""
    from ckptcost.core.draws import LEAST, MOST

    value = count(text)
    if not LEAST <= value <= MOST:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not from {LEAST} to {MOST:,}")
    return value


def count(text: str) -> int:
    """Of an option: a whole number that is not negative."""
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no whole number") from None
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is negative")
    return value


def seconds(text: str) -> float:
    """Of an option: how long, at most a year."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 < value <= 366 * 86400:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not from 0 s to a year")
    return value


def ask(question: Callable[..., T], options: argparse.Namespace, **more: Any) -> T:
    """Ask a question with every option that has the name of one of its parameters."""
    code = question.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    said = {name: getattr(options, name) for name in names if hasattr(options, name)}
    return question(**said | more)


def fits(options: argparse.Namespace) -> None:
    """What can be judged before the work is done."""
    from ckptcost.errors import InputError

    if options.table and options.format != "csv":
        raise InputError("names one table of a CSV", where="--table", remedy="add -f csv")


def answer(result: StudyResult, options: argparse.Namespace) -> int:
    """Write the study; 3 when a target is missed."""
    from ckptcost.cli import output, telling

    fits(options)
    study = result.study
    if options.format == "json":
        written = result.document(telling.command_of(options)).to_json()
    elif options.format == "html":
        from ckptcost.report.render import page_of_study

        command = telling.command_of(options)
        written = page_of_study(study, result.catalog, command, result.files)
    else:
        from ckptcost.report.study_views import view

        written = view(study, options.format, options.table, options.full)
    output.write([written], options.output)
    return missed(study.gates)


def missed(verdicts: Sequence[Verdict]) -> int:
    """Say on stderr which targets were missed; the exit code."""
    from ckptcost.present.words import gate_text

    lost = [verdict for verdict in verdicts if not verdict.met]
    for verdict in lost:
        print(f"ckptcost: {gate_text(verdict)}", file=sys.stderr)
    return MISSED if lost else 0
