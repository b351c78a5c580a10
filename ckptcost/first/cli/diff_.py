"""`ckptcost diff`."""

from __future__ import annotations

import argparse
import sys

from ckptcost.first.cli import answers

EPILOG = """\
examples:
  ckptcost diff before.json after.json
  ckptcost diff main.json branch.json -f md -o comment.md
  ckptcost diff main.json branch.json --budget-change "usd<=5 %"
  ckptcost diff a.json b.json --budget-change "kwh/checkpoint<=-10 %"
OLD and NEW are reports as JSON, or recorded runs.
budgets: gpu_hours, kwh, usd, kgco2e, market_kgco2e, embodied_kgco2e, water_l;
of all, or /checkpoint and the like; a share of OLD's or an amount. Below 0:
less is asked.
An unknown change meets no budget.
exit codes: 2 also where the two cannot be compared (--anyway compares them),
3 a budget is exceeded
"""
EXCEEDED = 3


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", metavar="OLD", help="a JSON file, or a recorded run")
    parser.add_argument("new", metavar="NEW", help="what is held against it")
    parser.add_argument(
        "--case",
        action="append",
        default=[],
        metavar="ID",
        help="which statement, where a file holds several; twice: OLD's and NEW's",
    )
    parser.add_argument(
        "--budget-change",
        action="append",
        default=[],
        metavar="LIMIT",
        help='e.g. "usd<=5 %%" or "kwh<=100 kWh"; exit code 3 when it is exceeded; may repeat',
    )
    parser.add_argument(
        "--anyway",
        action="store_true",
        help="compare what cannot be compared, and say why it cannot",
    )
    parser.add_argument(
        "-f",
        "--format",
        choices=("text", "md", "json", "csv"),
        default="text",
        help="default: text",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE instead of stdout")


def run(options: argparse.Namespace) -> int:
    from ckptcost.first.cli import output, telling
    from ckptcost.first.questions.diff import diff
    from ckptcost.first.report.diff_views import budget_text, of_report
    from ckptcost.first.report.render import text_of

    document = answers.ask(diff, options, command=telling.command_of(options))
    output.write([text_of(document, options.format)], options.output)
    exceeded = [each for each in of_report(document).budgets if not each.met]
    for each in exceeded:
        print(f"ckptcost: {budget_text(each)}", file=sys.stderr)
    return EXCEEDED if exceeded else 0
