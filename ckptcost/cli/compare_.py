"""`ckptcost compare`."""

from __future__ import annotations

import argparse
import os

EPILOG = """\
examples:
  ckptcost compare llama31-405b-16k opt-175b
  ckptcost compare -s llama31-405b-16k --with tier=nas-hdd --with mode=async
  ckptcost compare -s job.toml --with "tier.id=flash-shared, policy.mode=async"
  ckptcost compare mine.toml theirs.toml --require "goodput>=0.9"

The first scenario, or the one that --with varies, is A; the others are held
against it. --set and --interval hold for all, --with over both.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    from ckptcost.cli import scenario_flags, study_flags

    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="scenario files or presets, two to six")
    scenario_flags.add(parser)
    parser.add_argument(
        "--with", dest="variants", action="append", default=[], metavar="CHANGES",
        help='a variant of the one scenario, e.g. --with "tier.id=nas-hdd, policy.mode=async"; may repeat',
    )  # fmt: skip
    study_flags.add(parser)


def run(options: argparse.Namespace) -> int:
    from ckptcost import answers, api
    from ckptcost.catalog.store import Catalog
    from ckptcost.cli import scenario_flags, study_flags
    from ckptcost.layers import DEFAULT_SCENARIO

    gates = study_flags.gates_of(options)
    names = [*([options.scenario] if options.scenario is not None else []), *options.scenarios]
    catalog = Catalog()
    stacks = [
        (os.path.basename(name), api.layers_for(catalog, name, options.interval, options.set))
        for name in names or [DEFAULT_SCENARIO]
    ]  # fmt: skip
    study = answers.comparison(catalog, stacks, options.variants, gates)
    files = dict(pair for _, layers in stacks for pair in api.files_of(layers))
    return study_flags.answer(study, options, catalog, _spoken(options, scenario_flags.spoken(options)), list(files.items()))


def _spoken(options: argparse.Namespace, words: list[str]) -> list[str]:
    """The command with no file's folder in it."""
    return [os.path.basename(word) if word in options.scenarios else word for word in words]
