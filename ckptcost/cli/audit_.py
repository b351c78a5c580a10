"""`ckptcost audit`."""

from __future__ import annotations

import argparse

EPILOG = """\
examples:
  ckptcost audit                        the claims that ship, and how they fare
  ckptcost audit ddn-2025
  ckptcost audit sheet.toml --arithmetic
  ckptcost audit sheet.toml --strict    exit code 3 when anything contradicts
  ckptcost audit --vocabulary           keys of a claim, and the laws used
A sheet: [[claim]] about = "NAS", size = "2 TB", write = "200 MB/s", ...
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    from ckptcost.cli import study_flags

    parser.add_argument(
        "claims", nargs="?", metavar="NAME|FILE", help="shipped claims, or a TOML file of claims"
    )
    parser.add_argument(
        "--arithmetic", action="store_true", help="show every formula with its numbers"
    )
    parser.add_argument(
        "--strict", action="store_true", help="exit code 3 when a claim is inconsistent"
    )
    parser.add_argument(
        "--vocabulary", action="store_true", help="what a claim can speak of, and the laws between"
    )
    study_flags.add(parser, gates=False)
    parser.add_argument("-o", "--output", metavar="FILE", help="write there instead of stdout")


def run(options: argparse.Namespace) -> int:
    import sys

    from ckptcost.catalog.store import Catalog
    from ckptcost.cli import study_flags
    from ckptcost.core.audit import INCONSISTENT
    from ckptcost.errors import InputError
    from ckptcost.jobs import audit
    from ckptcost.report.studies import audit as studies

    catalog = Catalog()
    if options.vocabulary:
        if options.claims is not None:
            raise InputError("shows no claims", where="--vocabulary", remedy="leave the name away")
        return study_flags.answer(studies.vocabulary(), options, catalog, options.command_line, [])
    if options.claims is None:
        shipped = audit.shipped(catalog)
        contradictions = sum(each.count(INCONSISTENT) for each in shipped)
        code = study_flags.answer(
            studies.overview(shipped), options, catalog, options.command_line, []
        )
    else:
        audited, files = audit.audit(catalog, options.claims)
        contradictions = audited.count(INCONSISTENT)
        code = study_flags.answer(
            studies.study_of(audited, catalog.sources, options.arithmetic),
            options,
            catalog,
            options.command_line,
            files,
        )
    if options.strict and contradictions:
        print(f"ckptcost: {contradictions} inconsistent", file=sys.stderr)
        return code or study_flags.MISSED
    return code
