"""`ckptcost compare`."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

EPILOG = """\
examples:
  ckptcost compare llama31-405b-16k opt-175b
  ckptcost compare -s llama31-405b-16k --with tier=nas-hdd --with mode=async
  ckptcost compare -s job.toml --with "tier.id=flash-shared, policy.mode=async"
  ckptcost compare mine.toml theirs.toml --require "goodput>=0.9"
  ckptcost compare runs/today job.toml      # a recorded run beside the model

The first scenario, or the one that --with varies, is A; the others are held
against it. --set and --interval hold for all, --with over both.
A run is a folder of readings, a .jsonl file, or run:ID.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    from ckptcost.cli import scenario_flags, study_flags

    parser.add_argument(
        "scenarios",
        nargs="*",
        metavar="SCENARIO",
        help="scenario files or presets, two to six; or a run and one scenario",
    )
    scenario_flags.add(parser)
    parser.add_argument(
        "--with",
        dest="variants",
        action="append",
        default=[],
        metavar="CHANGES",
        help=(
            'a variant of the one scenario, e.g. --with "tier.id=nas-hdd, policy.mode=async"; may'
            " repeat"
        ),
    )
    study_flags.add(parser)
    study_flags.add_draws(parser, "4,096")


def run(options: argparse.Namespace) -> int:
    from ckptcost import answers, api
    from ckptcost.catalog.store import Catalog
    from ckptcost.cli import scenario_flags, study_flags
    from ckptcost.core.draws import SAMPLES
    from ckptcost.errors import InputError
    from ckptcost.jobs.gap import run_named
    from ckptcost.layers import DEFAULT_SCENARIO

    gates = study_flags.gates_of(options)
    recorded = run_named(options.scenarios[0]) if options.scenarios else None
    if any(run_named(name) is not None for name in options.scenarios[1:]):
        raise InputError(
            "one run at a time, and the run comes first",
            where="compare",
            remedy="ckptcost compare RUN SCENARIO",
        )
    if recorded is not None:
        return _against_run(options, recorded)
    names = [*([options.scenario] if options.scenario is not None else []), *options.scenarios]
    catalog = Catalog()
    stacks = [
        (os.path.basename(name), api.layers_for(catalog, name, options.interval, options.set))
        for name in names or [DEFAULT_SCENARIO]
    ]
    study = answers.comparison(catalog, stacks, options.variants, gates, options.draws or SAMPLES)
    files = dict(pair for _, layers in stacks for pair in api.files_of(layers))
    return study_flags.answer(
        study,
        options,
        catalog,
        _spoken(options, scenario_flags.spoken(options)),
        list(files.items()),
    )


def _against_run(options: argparse.Namespace, recorded: Path) -> int:
    """A recorded run against one scenario."""
    from ckptcost import api
    from ckptcost.catalog.store import Catalog
    from ckptcost.cli import scenario_flags, study_flags
    from ckptcost.errors import InputError
    from ckptcost.report.studies.gap import held_against

    named = [*options.scenarios[1:], *([options.scenario] if options.scenario is not None else [])]
    if len(named) != 1:
        raise InputError(
            f"a run is held against one scenario, and {len(named) or 'none'}"
            f" {'are' if len(named) > 1 else 'is'} named",
            where="compare",
            remedy="ckptcost compare RUN SCENARIO",
        )
    for flag, said in (
        ("--with", options.variants),
        ("--require", options.require),
        ("--budget", options.budget),
    ):
        if said:
            raise InputError(
                "is for scenarios, and a run is what it is",
                where=flag,
                remedy="--set changes the scenario",
            )
    catalog = Catalog()
    layers = api.layers_for(catalog, named[0], options.interval, options.set)
    study = held_against(catalog, recorded, layers)
    return study_flags.answer(
        study,
        options,
        catalog,
        _spoken(options, scenario_flags.spoken(options)),
        api.files_of(layers),
    )


def _spoken(options: argparse.Namespace, words: list[str]) -> list[str]:
    """The command with no file's folder in it."""
    return [_bare(word) if word in options.scenarios else word for word in words]


def _bare(word: str) -> str:
    forced, colon, rest = word.rpartition("run:")
    return f"{forced}{colon}{os.path.basename(rest.rstrip(os.sep))}"
