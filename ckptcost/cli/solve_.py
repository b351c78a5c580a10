"""`ckptcost solve`."""

from __future__ import annotations

import argparse

EPILOG = """\
WHAT: write read bandwidth stall mtbf recovery interval saves-per-day price
examples:
  ckptcost solve write -s llama31-405b-16k --for "goodput>=0.9"
  ckptcost solve interval -s llama31-405b-16k --for "usd<=16000000"
  ckptcost solve stall -s micron-100k --for "goodput>=0.975"    # exits 3
  ckptcost solve price --tier object-store --against flash-shared
exit code 3: nothing reaches the target; the answer says what stands in the way
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    from ckptcost.cli import scenario_flags, study_flags

    parser.add_argument("what", metavar="WHAT", help="what to solve for, see below")
    scenario_flags.add(parser)
    parser.add_argument(
        "--for",
        dest="target",
        metavar="TARGET",
        help='e.g. "goodput>=0.95", "wall<=60 days", "usd<=10000", "kwh<=2 MWh"',
    )
    parser.add_argument("--tier", metavar="ID", help="the storage tier; for price the slower one")
    parser.add_argument(
        "--keep-interval",
        action="store_true",
        help="hold the interval; else each trial takes its best one",
    )
    parser.add_argument("--against", metavar="ID", help="price: the faster tier")
    parser.add_argument(
        "--capex", metavar="USD", help='price: when a purchase such as "500000 USD" has paid'
    )
    study_flags.add(parser, gates=False)


def run(options: argparse.Namespace) -> int:
    from ckptcost import answers, api
    from ckptcost.catalog.store import Catalog
    from ckptcost.cli import scenario_flags, study_flags
    from ckptcost.errors import InputError

    catalog = Catalog()
    layers = api.layers_for(catalog, options.scenario, options.interval, options.set)
    if options.what == "price":
        if options.target is not None:
            raise InputError(
                "a price is solved for break-even, not for a target",
                where="--for",
                remedy="compare with --against instead",
            )
        study = answers.price(
            catalog, layers, options.tier, options.against, options.capex, options.keep_interval
        )
    else:
        for flag in ("against", "capex"):
            if getattr(options, flag) is not None:
                raise InputError("belongs to `ckptcost solve price`", where=f"--{flag}")
        study = answers.solution(
            catalog, layers, options.what, options.target, options.tier, options.keep_interval
        )
    return study_flags.answer(
        study, options, catalog, scenario_flags.spoken(options), api.files_of(layers)
    )
