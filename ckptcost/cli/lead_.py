"""`ckptcost lead`."""

from __future__ import annotations

import argparse

EPILOG = """\
examples:
  ckptcost lead -s llama31-405b-16k
  ckptcost lead -s job.toml --set "policy.step=20 s"
  ckptcost lead last                       # of a recorded run
The time from a signal until the last save can be loaded: the step under way,
the save, and its drain where it is asynchronous; 99 of 100 take no longer.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    from ckptcost.cli import scenario_flags, study_flags

    parser.add_argument(
        "run_named",
        nargs="?",
        metavar="RUN",
        help='a recorded run instead of a scenario (folder, file, "last", the beginning of an id)',
    )
    scenario_flags.add(parser)
    parser.add_argument("--tier", metavar="ID", help="a storage tier of the catalogue")
    study_flags.add(parser, gates=False)


def run(options: argparse.Namespace) -> int:
    from ckptcost import answers, api
    from ckptcost.catalog.store import Catalog
    from ckptcost.cli import scenario_flags, study_flags
    from ckptcost.errors import InputError

    catalog = Catalog()
    if options.run_named is None:
        layers = api.layers_for(catalog, options.scenario, options.interval, options.set)
        study, files = answers.lead(catalog, layers, options.tier), api.files_of(layers)
    else:
        if options.scenario or options.interval or options.set or options.tier:
            raise InputError("is said of a scenario, not of a run", where="-s, --set, --tier")
        study, files = answers.lead_of_run(options.run_named), []
    return study_flags.answer(study, options, catalog, scenario_flags.spoken(options), files)
