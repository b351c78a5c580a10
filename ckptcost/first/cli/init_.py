"""`ckptcost init`."""

from __future__ import annotations

import argparse
import json
import os

EPILOG = """\
The file names every input with its meaning; what is commented out keeps its
catalogue or default value.
An existing file is never overwritten; "-" prints to stdout.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", default="scenario.toml", help="default: scenario.toml")
    parser.add_argument(
        "--schema",
        action="store_true",
        help="print the JSON Schema of a scenario file instead, for editors",
    )


def run(options: argparse.Namespace) -> int:
    from ckptcost.first.catalog.schema import scenario_json_schema
    from ckptcost.first.catalog.template import template
    from ckptcost.first.cli import output
    from ckptcost.first.errors import InputError

    if options.schema:
        output.write([json.dumps(scenario_json_schema(), indent=1) + "\n"], None)
        return 0
    if not options.file:
        raise InputError("names no file", key="FILE", remedy="e.g. ckptcost init scenario.toml")
    if options.file != "-" and os.path.lexists(options.file):
        raise InputError(
            "is already there", where=options.file, remedy="choose another name, or remove it first"
        )
    output.write([template()], options.file)
    if options.file != "-":
        import sys

        print(
            f"ckptcost: wrote {options.file}; edit it, then: ckptcost model -s {options.file}",
            file=sys.stderr,
        )
    return 0
