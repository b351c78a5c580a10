"""`ckptcost fits`."""

from __future__ import annotations

import argparse

EPILOG = """\
examples:
  ckptcost fits /scratch/me/run7 -s job.toml
  ckptcost fits . -s llama31-405b-16k --set policy.keep_last=2 -f json
Free space, inodes, quotas that the kernel tells, and single targets where
`lfs df` is there, against the checkpoints kept and those being written.
exit code 3: it does not fit; the keep_last that would is said
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    from ckptcost.cli import scenario_flags, study_flags

    parser.add_argument("directory", metavar="DIR", help="where checkpoints go")
    scenario_flags.add(parser)
    study_flags.add(parser, gates=False)


def run(options: argparse.Namespace) -> int:
    from ckptcost import answers, api
    from ckptcost.catalog.store import Catalog
    from ckptcost.cli import scenario_flags, study_flags

    catalog = Catalog()
    layers = api.layers_for(catalog, options.scenario, options.interval, options.set)
    study = answers.room(options.directory, catalog, layers)
    code = study_flags.answer(
        study, options, catalog, scenario_flags.spoken(options), api.files_of(layers)
    )
    return code if study.question["fits"] else study_flags.MISSED
