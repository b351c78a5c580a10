"""`ckptcost check`."""

from __future__ import annotations

import argparse
import sys

EPILOG = """\
Nothing is looked up: the report carries every input. Checked are each figure, each sum, each row and the result's hash.
exit codes: 0 everything agrees, 1 something differs (listed on stdout), 2 not a report
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="a JSON report written by ckptcost")


def run(options: argparse.Namespace) -> int:
    from ckptcost.report.check import differences, read

    report = read(options.file)
    found = differences(report)
    for d in found:
        sys.stdout.write(f"{d.where}: reported {d.reported}, recomputed {d.recomputed}\n")
    figures = sum(len(row.values) for row in report.cases) + 12 * len(report.components)
    print(
        f"ckptcost: {options.file}: "
        + (f"{len(found)} differences" if found else f"agrees with its inputs ({figures} figures, {len(report.factors)} inputs)"),
        file=sys.stderr,
    )
    return 1 if found else 0
