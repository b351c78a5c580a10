"""`ckptcost audit`."""

from __future__ import annotations

import argparse

from ckptcost.first.cli import answers, flags

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
    flags.add_study(parser, gates=False)
    flags.add_output(parser, "write there instead of stdout")


def run(options: argparse.Namespace) -> int:
    import sys

    from ckptcost.first.questions.audit import audit, contradictions

    result = answers.ask(audit, options)
    code = answers.answer(result, options)
    if options.strict and not options.vocabulary and (lost := contradictions(result)):
        print(f"ckptcost: {lost} inconsistent", file=sys.stderr)
        return code or answers.MISSED
    return code
