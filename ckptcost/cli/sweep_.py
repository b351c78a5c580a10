"""`ckptcost sweep`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

EPILOG = """\
examples:
  ckptcost sweep --over tier=nas-hdd,generic-pfs --over saves=10:200:10
  ckptcost sweep -s llama31-405b-16k --over gpus=1024:131072:*2 -f csv
axes: name=a,b,c  name=start:stop:step  name=start:stop:*factor
      quantities take their unit: --over "tier.write=1 GB/s:100 GB/s:1 GB/s"
"""

MOST_TEXT_ROWS = 2000


def arguments(parser: argparse.ArgumentParser) -> None:
    from ckptcost.cli import scenario_flags

    scenario_flags.add(parser)
    parser.add_argument("--over", action="append", required=True, metavar="NAME=VALUES", help="one axis of the grid; may repeat")
    parser.add_argument("-f", "--format", choices=("text", "json", "csv", "md"), default="text", help="default: text")


def run(options: argparse.Namespace) -> int:
    from ckptcost import api
    from ckptcost.catalog.store import Catalog
    from ckptcost.cli import output
    from ckptcost.report.tables_csv import of_pieces, records

    pieces = api.pieces(options.over, options.scenario, options.interval, options.set, Catalog())
    if options.format == "csv":
        output.write(of_pieces(pieces), options.output)
    elif options.format == "json":
        output.write(_json(records(pieces), options.over), options.output)
    else:
        output.write(_table(records(pieces), options.format), options.output)
    return 0


def _json(rows: Iterator[dict[str, Any]], over: list[str]) -> Iterator[str]:
    from ckptcost.report.rows import COLUMNS

    head = {"schema_name": "ckptcost.sweep", "schema_version": "1.0", "over": over, "columns": COLUMNS}
    yield json.dumps(head, indent=1)[:-2] + ',\n "rows": ['
    for number, row in enumerate(rows):
        yield (",\n  " if number else "\n  ") + json.dumps(row, allow_nan=False)
    yield "\n ]\n}\n"


SHOWN = ("stall_s", "goodput", "run_gpu_hours", "run_energy_kwh", "run_cost_usd", "run_location_kgco2e")
TITLES = ("stall", "goodput", "GPU-h lost", "kWh", "USD", "kgCO2e")


def _table(rows: Iterator[dict[str, Any]], form: str) -> list[str]:
    from ckptcost.errors import InputError
    from ckptcost.present.amounts import duration, number, share
    from ckptcost.present.table import columns, markdown
    from ckptcost.report.rows import COLUMNS

    cells: list[list[str]] = []
    axes: list[str] = []
    for row in rows:
        axes = axes or [name for name in row if name not in COLUMNS] + [
            name for name in row if name in ("saves",) and list(row).index(name) < len(row) - len(COLUMNS) + 1
        ]
        named = [value if isinstance(value := row[axis], str) else number(value) for axis in axes]
        shown = [duration(row["stall_s"]), share(row["goodput"]), *(number(row[name]) for name in SHOWN[2:])]
        cells.append(named + shown)
        if len(cells) > MOST_TEXT_ROWS:
            raise InputError(f"more than {MOST_TEXT_ROWS:,} rows make no readable table", where="--format", remedy="use -f csv or -f json")
    make = markdown if form == "md" else columns
    return ["\n".join(make([*axes, *TITLES], cells, left=len(axes))) + "\n"]
