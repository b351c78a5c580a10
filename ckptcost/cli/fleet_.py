"""`ckptcost fleet`."""

from __future__ import annotations

import argparse

EPILOG = """\
examples:
  ckptcost runs pack --all --store /shared/fleet   # on every node
  ckptcost fleet /shared/fleet --site usa
  ckptcost fleet /shared/fleet --by team --since 2026-11-01
  ckptcost fleet /shared/fleet --budget "usd<=50000" -f json -o fleet.json
  ckptcost export fleet.json --to focus -o focus.csv
  ckptcost fleet s3://runs/fleet --scheduler tcp://dask:8786
  ckptcost fleet synthesize 64 7 demo && ckptcost fleet demo
STORE is a folder or an fsspec URL that `ckptcost runs pack --store` fills.
Joules are the machines' own unless --site, -s or --set say where they stand;
dollars of GPU time need a price: -s, or --set cluster.gpu_price=...
needs pip install 'ckptcost[fleet]'
"""
BY = ("job", "team", "cluster", "model", "tier", "day")


def arguments(parser: argparse.ArgumentParser) -> None:
    from ckptcost.cli import study_flags

    parser.add_argument("store", nargs="?", metavar="STORE", help="a folder or URL of packed runs")
    parser.add_argument(
        "--by",
        choices=BY,
        default="job",
        help="what the rows of the first table are (default: job)",
    )
    parser.add_argument("--since", metavar="DAY", help="first day, e.g. 2026-11-01 (UTC)")
    parser.add_argument("--until", metavar="DAY", help="last day")
    parser.add_argument(
        "--job",
        action="append",
        dest="jobs",
        default=[],
        metavar="ID",
        help="only this job; may repeat",
    )
    parser.add_argument(
        "--scheduler",
        default="pandas",
        metavar="WHERE",
        help=(
            "pandas: one process; threads, processes: Dask here; tcp://HOST:PORT: a Dask cluster"
            " (default: pandas)"
        ),
    )
    parser.add_argument(
        "--site", default="", metavar="ID", help="where the machines stand: PUE, grid and tariff"
    )
    parser.add_argument(
        "-s", "--scenario", metavar="FILE|PRESET", help="site and prices of a scenario"
    )
    parser.add_argument(
        "--set",
        action="append",
        dest="changes",
        default=[],
        metavar="PATH=VALUE",
        help='e.g. cluster.gpu_price="2.5 USD/GPU-h"',
    )
    parser.add_argument(
        "--top",
        type=study_flags.count,
        default=10,
        metavar="N",
        help="rows of tables of worst offenders (default: 10)",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE instead of stdout")
    study_flags.add(parser)


def run(options: argparse.Namespace) -> int:
    from ckptcost.cli import study_flags
    from ckptcost.cli.status import bar_of
    from ckptcost.errors import InputError
    from ckptcost.questions.fleet import roll_up

    if not options.store:
        raise InputError(
            "names no store",
            where="fleet",
            remedy="`ckptcost runs pack --all --store DIR` makes one",
        )
    study_flags.fits(options)
    with bar_of("reading") as tell:
        result = study_flags.ask(roll_up, options, tell=tell)
    return study_flags.answer(result, options)
