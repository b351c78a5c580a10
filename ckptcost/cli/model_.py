"""`ckptcost model`."""

from __future__ import annotations

import argparse
from typing import Any

EPILOG = """\
examples:
  ckptcost model            # the 2 TB checkpoint on four storage systems
  ckptcost model -s llama31-405b-16k --tier flash-shared --tier nas-hdd
  ckptcost model --tier nas-hdd --tier generic-pfs --saves 1 --saves 1000
  ckptcost model -s job.toml --interval "30 min" -f json -o report.json
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    from ckptcost.cli import scenario_flags, study_flags

    scenario_flags.add(parser)
    parser.add_argument(
        "--tier",
        action="append",
        default=[],
        metavar="ID",
        help="a storage tier of the catalogue, with its size where it is sold by it, e.g. "
        "aws-fsx-p2-125:200TiB; may repeat, the first is billed in full",
    )
    parser.add_argument(
        "--saves",
        action="append",
        default=[],
        metavar="N",
        help="saves in the whole run; may repeat",
    )
    parser.add_argument(
        "--against", metavar="ID", help="reference tier: what of the bill was avoidable"
    )
    study_flags.add_gates(parser)
    study_flags.add_draws(parser, "4,096")
    parser.add_argument(
        "-f",
        "--format",
        choices=("text", "json", "csv", "md", "html"),
        default="text",
        help="default: text",
    )
    study_flags.add_full(parser)


def run(options: argparse.Namespace) -> int:
    from ckptcost.cli import output, study_flags, telling
    from ckptcost.jobs.model import judged_cases
    from ckptcost.questions.model import model
    from ckptcost.questions.parameters import gates_of

    gates = gates_of(options.require)
    result = study_flags.ask(model, options)
    if options.format == "json":
        written = result.document(telling.command_of(options)).to_json()
    elif options.format == "html":
        from ckptcost.report.again import page_of_answer

        words = telling.command_of(options)
        written = page_of_answer(result.document(words), result.catalog, words)
    else:
        from ckptcost.report.build import plain

        written = _view(plain(result.answer, result.catalog), options.format, options.full)
    output.write([written], options.output)
    return study_flags.missed(judged_cases(gates, result.answer.cases))


def _view(report: Any, form: str, full: bool) -> str:
    if form == "csv":
        from ckptcost.report.to_csv import of_report

        return of_report(report)
    from ckptcost.report import brief
    from ckptcost.report.text import text, to_markdown

    if form == "md":
        return to_markdown(report)
    return text(report) if full else brief.of_report(report)
