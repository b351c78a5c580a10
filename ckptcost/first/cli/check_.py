"""`ckptcost check`."""

from __future__ import annotations

import argparse
import sys

from ckptcost.first.errors import visible

EPILOG = """\
Nothing is looked up. A model carries every input: it is computed again from
them, and every number, range, sum and hash is compared. Of other reports the
sums and hashes are.
exit codes: 0 everything agrees, 1 something differs (listed on stdout),
2 not a report
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="a JSON report written by ckptcost")


def run(options: argparse.Namespace) -> int:
    from ckptcost.first.report.check import differences
    from ckptcost.first.report.read import read

    report = read(options.file)
    found = differences(report)
    for d in found:
        said = visible(f"{d.where}: reported {d.reported}, recomputed {d.recomputed}")
        sys.stdout.write(f"{said}\n")
    print(
        f"ckptcost: {options.file}: "
        + (
            f"{len(found)} differences"
            if found
            else f"agrees with its {len(report.statements[0].factors)} inputs in every number"
            if report.kind == "model"
            else "its sums and hashes agree; only a model can be computed again"
        ),
        file=sys.stderr,
    )
    return 1 if found else 0
