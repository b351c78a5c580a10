"""`ckptcost fleet synthesize`."""

from __future__ import annotations

import argparse

EPILOG = """\
examples:
  ckptcost fleet synthesize 64 7 demo && ckptcost fleet demo
  ckptcost fleet synthesize 64 7 demo --seed 3
The same seed gives the same fleet.
needs pip install 'ckptcost[fleet]'
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    from ckptcost.cli import study_flags

    parser.add_argument("nodes", type=study_flags.count, metavar="NODES", help="how many nodes")
    parser.add_argument("days", type=study_flags.count, metavar="DAYS", help="how many days")
    parser.add_argument("directory", metavar="DIR", help="a new folder for the store")
    parser.add_argument("--seed", type=study_flags.count, default=1, metavar="N", help="default: 1")
    parser.add_argument(
        "--saves-per-day", type=float, default=96.0, metavar="N", help="by job (default: 96)"
    )


def run(options: argparse.Namespace) -> int:
    """A store of node files; what is in it goes to stdout."""
    from ckptcost.cli.status import bar_of
    from ckptcost.cli.study_flags import ask
    from ckptcost.fleet.synthetic.synthesize import synthesize
    from ckptcost.present.amounts import size

    with bar_of("writing") as tell:
        made = ask(synthesize, options, tell=tell)
    print(
        f"{options.directory}: {_many(options.nodes, 'node')}, {_many(options.days, 'day')},"
        f" {_many(made.jobs, 'job')}, {_many(made.saves, 'checkpoint')} of"
        f" {size(made.saved_bytes)}."
    )
    return 0


def _many(number: int, what: str) -> str:
    from ckptcost.present.amounts import count

    return f"{count(float(number))} {what}{'' if number == 1 else 's'}"
