"""`ckptcost sensitivity`."""

from __future__ import annotations

import argparse

EPILOG = """\
examples:
  ckptcost sensitivity -s llama31-405b-16k                 # of the kWh
  ckptcost sensitivity -s llama31-405b-16k --of usd --top 5
  ckptcost sensitivity -s llama31-405b-16k --of goodput --replan
  ckptcost sensitivity -s job.toml -f csv --table elasticities

The interval stays as it was chosen; --replan chooses the best one anew for
each value of an input.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    from ckptcost.cli import scenario_flags, study_flags

    scenario_flags.add(parser)
    parser.add_argument(
        "--of",
        default="kwh",
        metavar="RESULT",
        help="goodput, wall, gpu_hours, kwh, usd or kgco2e (default: kwh)",
    )
    parser.add_argument(
        "--top", default="12", metavar="N", help="rows of each table for people (default: 12)"
    )
    parser.add_argument(
        "--replan",
        action="store_true",
        help="choose the best interval anew each time (only with policy.optimal)",
    )
    study_flags.add(parser, gates=False)
    study_flags.add_draws(parser, "4,096, with --replan 1,024")


def run(options: argparse.Namespace) -> int:
    from ckptcost import answers, api
    from ckptcost.catalog.store import Catalog
    from ckptcost.cli import scenario_flags, study_flags
    from ckptcost.errors import InputError, brief

    if not (options.top.isascii() and options.top.isdigit() and 1 <= int(options.top[:6]) <= 1000):
        raise InputError(
            f"{brief(options.top)} is no number of rows",
            where="--top",
            remedy="a whole number from 1 to 1000",
        )
    catalog = Catalog()
    layers = api.layers_for(catalog, options.scenario, options.interval, options.set)
    study = answers.ranking(
        catalog, layers, options.of, options.replan, int(options.top), options.draws
    )
    return study_flags.answer(
        study, options, catalog, scenario_flags.spoken(options), api.files_of(layers)
    )
