"""`ckptcost sweep`."""

from __future__ import annotations

import argparse

from ckptcost.first.cli import answers, flags

EPILOG = """\
examples:
  ckptcost sweep --over tier=nas-hdd,generic-pfs --over saves=10:200:10
  ckptcost sweep -s llama31-405b-16k --over gpus=1024:131072:*2 -f csv
axes: name=a,b,c  name=start:stop:step  name=start:stop:*factor
      quantities take their unit: --over "tier.write=1 GB/s:100 GB/s:1 GB/s"
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    flags.add_scenario(parser)
    parser.add_argument(
        "--over",
        action="append",
        required=True,
        metavar="NAME=VALUES",
        help="one axis of the grid; may repeat",
    )
    flags.add_format(parser, "text", "json", "csv", "md")


def run(options: argparse.Namespace) -> int:
    from ckptcost.first.cli import output
    from ckptcost.first.questions.sweep import grid
    from ckptcost.first.report import sweeps

    sweep = answers.ask(grid, options)
    if options.format == "csv":
        output.write(sweeps.to_csv(sweep), options.output)
    elif options.format == "json":
        output.write(sweeps.to_json(sweep), options.output)
    else:
        output.write([sweeps.to_table(sweep, options.format)], options.output)
    return 0
