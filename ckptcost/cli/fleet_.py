"""`ckptcost fleet`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ckptcost.fleet.told.answer import Asked
    from ckptcost.scenario import Resolved

EPILOG = """\
examples:
  ckptcost runs pack --all --store /shared/fleet   # on every node
  ckptcost fleet /shared/fleet --site usa
  ckptcost fleet /shared/fleet --by team --since 2026-11-01
  ckptcost fleet /shared/fleet --budget "usd<=50000" -f json -o fleet.json
  ckptcost export fleet.json --to focus -o focus.csv
  ckptcost fleet s3://runs/fleet --scheduler tcp://dask:8786
  ckptcost fleet --synthesize 64 7 demo && ckptcost fleet demo
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
        "--job", action="append", default=[], metavar="ID", help="only this job; may repeat"
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
    parser.add_argument(
        "--synthesize",
        nargs=3,
        metavar=("NODES", "DAYS", "DIR"),
        help="write a made-up fleet with known truth instead: DIR/_truth.json",
    )
    parser.add_argument(
        "--seed", type=study_flags.count, metavar="N", help="of --synthesize (default: 1)"
    )
    parser.add_argument(
        "--saves-per-day", type=float, metavar="N", help="of --synthesize, by job (default: 96)"
    )
    parser.add_argument(
        "--faults",
        action="store_true",
        help="of --synthesize: with broken files, wrong clocks and missing nodes",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE instead of stdout")
    study_flags.add(parser)


def run(options: argparse.Namespace) -> int:
    from ckptcost.cli import study_flags
    from ckptcost.errors import InputError

    if options.synthesize:
        return _synthesize(options)
    for flag in ("faults", "seed", "saves_per_day"):
        if getattr(options, flag) not in (None, False):
            raise InputError("belongs to --synthesize", where=f"--{flag.replace('_', '-')}")
    for flag in ("since", "until"):
        if getattr(options, flag) == "":
            raise InputError(
                "names no day", where=f"--{flag}", remedy="e.g. 2026-11-01, or leave it out"
            )
    if not options.store:
        raise InputError(
            "names no store",
            where="fleet",
            remedy="`ckptcost runs pack --all --store DIR` makes one",
        )
    study_flags.fits(options)
    gates = study_flags.gates_of(options)
    from ckptcost.catalog.store import Catalog
    from ckptcost.fleet.told.answer import answer_of

    catalog = Catalog()
    resolved, files = _standing(options, catalog)
    told = _told("reading") if _talks() else None
    try:
        study = answer_of(_asked(options, resolved), gates, told)
    finally:
        if told is not None:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
    return study_flags.answer(study, options, catalog, _spoken(options), files)


def _asked(options: argparse.Namespace, resolved: Resolved | None) -> Asked:
    from ckptcost.fleet.told.answer import Asked

    priced = bool(options.scenario) or any(each.startswith("cluster.") for each in options.set)
    return Asked(
        options.store,
        options.by,
        options.since or "",
        options.until or "",
        tuple(options.job),
        options.scheduler,
        options.top,
        resolved,
        priced,
        bool(options.scenario),
    )


def _standing(
    options: argparse.Namespace, catalog: object
) -> tuple[Resolved | None, list[tuple[str, bytes]]]:
    """Site and prices, where anything was said of them; and the user's own files among what says
    so."""
    if not (options.site or options.scenario or options.set):
        return None, []
    from ckptcost import answers, api
    from ckptcost.catalog.store import Catalog

    assert isinstance(catalog, Catalog)
    layers = api.layers_for(catalog, options.scenario, None, []) if options.scenario else []
    return answers.standing(catalog, options.scenario, options.set, options.site), api.files_of(
        layers
    )


def _synthesize(options: argparse.Namespace) -> int:
    """A store with known truth; what is in it goes to stdout."""
    from ckptcost.errors import InputError
    from ckptcost.fleet.made_up.synthesize import synthesize
    from ckptcost.present.amounts import size

    if options.store:
        raise InputError(
            "a store is written, not read",
            where="--synthesize",
            remedy="leave STORE out; DIR is the third word",
        )
    others: dict[str, object] = dict.fromkeys(("since", "until", "scenario", "output", "table"))
    others |= {
        "job": [],
        "set": [],
        "require": [],
        "budget": [],
        "site": "",
        "format": "text",
        "by": "job",
        "scheduler": "pandas",
    }
    if said := [name for name, usual in others.items() if getattr(options, name) != usual]:
        raise InputError(
            "belongs to a store that is read",
            where=f"--{said[0]}",
            remedy="leave it out; ask the store afterwards",
        )
    nodes, days, folder = options.synthesize
    told = _told("writing") if _talks() else None
    try:
        truth = synthesize(
            _whole(nodes, "NODES"),
            _whole(days, "DAYS"),
            folder,
            seed=1 if options.seed is None else options.seed,
            saves_per_day=96.0 if options.saves_per_day is None else options.saves_per_day,
            faults=options.faults,
            tell=told,
        )
    finally:
        if told is not None:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
    print(
        f"{folder}: {_many(int(nodes), 'node')}, {_many(int(days), 'day')},"
        f" {_many(len(truth.jobs), 'job')}, {_many(truth.saves.windows, 'checkpoint')} of"
        f" {size(truth.saves.bytes)}. The truth is in _truth.json."
    )
    return 0


def _whole(text: str, where: str) -> int:
    from ckptcost.errors import InputError, brief

    try:
        return int(text)
    except ValueError:
        raise InputError(
            f"{brief(text)} is no whole number", where=f"--synthesize {where}"
        ) from None


def _many(number: int, what: str) -> str:
    from ckptcost.present.amounts import count

    return f"{count(float(number))} {what}{'' if number == 1 else 's'}"


def _talks() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _told(what: str) -> Callable[[int, int], None]:
    last = [-1]

    def note(done: int, of: int) -> None:
        percent = 100 * done // max(of, 1)
        if percent != last[0]:
            last[0] = percent
            print(
                f"\r{what} [{'#' * (percent * 40 // 100):<40}] {percent:3d} %",
                end="",
                file=sys.stderr,
                flush=True,
            )

    return note


def _spoken(options: argparse.Namespace) -> list[str]:
    """The command without folders and without the scheduler, which changes no number."""
    import os

    words: list[str] = []
    skip = False
    for word in options.command_line:
        if skip or word == "--scheduler":
            skip = not skip
        elif not word.startswith("--scheduler="):
            words.append(word)
    for text in filter(None, (options.store, options.output, options.scenario)):
        words = [
            (
                word[: -len(text)] + os.path.basename(os.path.normpath(text))
                if word.endswith(text)
                else word
            )
            for word in words
        ]
    return words
