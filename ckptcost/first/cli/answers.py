"""A question asked with a command's options, its answer written, and the exit code that follows."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from ckptcost.first.jobs.gates import GateVerdict
    from ckptcost.first.questions.results import StudyResult

T = TypeVar("T")

MISSED, UNMET = 3, 5


def ask(question: Callable[..., T], options: argparse.Namespace, **more: Any) -> T:
    """Ask a question with every option that has the name of one of its parameters."""
    code = question.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    said = {name: getattr(options, name) for name in names if hasattr(options, name)}
    return question(**said | more)


def ask_and_answer(question: Callable[..., StudyResult], options: argparse.Namespace) -> int:
    return answer(ask(question, options), options)


def fits(options: argparse.Namespace) -> None:
    """What can be judged before the work is done."""
    from ckptcost.first.errors import InputError

    if options.table and options.format != "csv":
        raise InputError("names one table of a CSV", where="--table", remedy="add -f csv")


def answer(result: StudyResult, options: argparse.Namespace) -> int:
    """Write the study; 3 when a target is missed."""
    from ckptcost.first.cli import output, telling

    fits(options)
    study = result.study
    if options.format == "json":
        written = result.document(telling.command_of(options)).to_json()
    elif options.format == "html":
        from ckptcost.first.report.render import page_of_study

        command = telling.command_of(options)
        written = page_of_study(study, result.catalog, command, result.files)
    else:
        from ckptcost.first.report.study_views import view

        written = view(study, options.format, options.table, options.full)
    output.write([written], options.output)
    return report_missed_targets(study.gates)


def report_missed_targets(verdicts: Sequence[GateVerdict]) -> int:
    """Say on stderr which targets were missed; the exit code."""
    from ckptcost.first.present.words import gate_text

    lost = [verdict for verdict in verdicts if not verdict.met]
    for verdict in lost:
        print(f"ckptcost: {gate_text(verdict)}", file=sys.stderr)
    return MISSED if lost else 0


def unmet(lacking: Sequence[str]) -> int:
    """Say which of the needed kinds are not measured; the exit code."""
    for kind in lacking:
        print(f"ckptcost: {kind} is needed and not measured here", file=sys.stderr)
    return UNMET if lacking else 0
