"""`ckptcost fleet` and `ckptcost fleet synthesize`."""

from __future__ import annotations

import argparse

from ckptcost.first.cli import answers, flags

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
        type=flags.count,
        default=10,
        metavar="N",
        help="rows of tables of worst offenders (default: 10)",
    )
    flags.add_output(parser, "write to FILE instead of stdout")
    flags.add_study(parser)


def run(options: argparse.Namespace) -> int:
    from ckptcost.first.cli.status import bar_of
    from ckptcost.first.errors import InputError
    from ckptcost.first.questions.fleet import roll_up

    if not options.store:
        raise InputError(
            "names no store",
            where="fleet",
            remedy="`ckptcost runs pack --all --store DIR` makes one",
        )
    answers.fits(options)
    with bar_of("reading") as tell:
        result = answers.ask(roll_up, options, tell=tell)
    return answers.answer(result, options)


EPILOG_SYNTHESIZE = """\
examples:
  ckptcost fleet synthesize 64 7 demo && ckptcost fleet demo
  ckptcost fleet synthesize 64 7 demo --seed 3
The same seed gives the same fleet.
needs pip install 'ckptcost[fleet]'
"""


def arguments_synthesize(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("nodes", type=flags.count, metavar="NODES", help="how many nodes")
    parser.add_argument("days", type=flags.count, metavar="DAYS", help="how many days")
    parser.add_argument("directory", metavar="DIR", help="a new folder for the store")
    parser.add_argument("--seed", type=flags.count, default=1, metavar="N", help="default: 1")
    parser.add_argument(
        "--saves-per-day", type=float, default=96.0, metavar="N", help="by job (default: 96)"
    )


def run_synthesize(options: argparse.Namespace) -> int:
    """A store of node files; what is in it goes to stdout."""
    from ckptcost.first.cli.status import bar_of
    from ckptcost.first.fleet.synthetic.synthesize import synthesize
    from ckptcost.first.present.amounts import size

    with bar_of("writing") as tell:
        made = answers.ask(synthesize, options, tell=tell)
    print(
        f"{options.directory}: {_many(options.nodes, 'node')}, {_many(options.days, 'day')},"
        f" {_many(made.jobs, 'job')}, {_many(made.saves, 'checkpoint')} of"
        f" {size(made.saved_bytes)}."
    )
    return 0


def _many(number: int, what: str) -> str:
    from ckptcost.first.present.amounts import count

    return f"{count(float(number))} {what}{'' if number == 1 else 's'}"
