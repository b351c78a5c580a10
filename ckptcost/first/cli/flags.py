"""Flags that several commands share, and what their words come to: which job, which answer, which
meters, which case and place, where checkpoints are looked for."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ckptcost.first.jobs.observe import WatchOptions
    from ckptcost.first.meters.found import Wanted
    from ckptcost.first.report.statements.reading import Placing
    from ckptcost.first.runs.store import Found

_TEXTS = ("case", "start", "grid", "grid_column", "grid_tz", "grid_unit", "contracts", "host")


def add_scenario(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-s",
        "--scenario",
        metavar="FILE|PRESET",
        help=(
            "a scenario file, or a preset of `ckptcost catalog scenario` (default: gpt4-scale-2tb)"
        ),
    )
    parser.add_argument(
        "--interval", metavar="TIME", help='training time between saves, e.g. "30 min"'
    )
    parser.add_argument(
        "--mtbf",
        action="append",
        dest="changes",
        default=[],
        type="failures.mtbf={}".format,
        metavar="TIME",
        help='mean time between failures of the whole job, e.g. "6 h"; instead of rates',
    )
    parser.add_argument(
        "--set",
        action="append",
        dest="changes",
        default=[],
        metavar="PATH=VALUE",
        help=(
            'change one input, e.g. --set cluster.gpus=4096 --set tier.write="30 GB/s"; may repeat'
        ),
    )
    add_output(parser, "write there instead of stdout; the file appears whole or not at all")


def add_tier(parser: argparse.ArgumentParser) -> None:
    """Of commands that take one tier, or the same for all scenarios."""
    parser.add_argument(
        "--tier",
        action="append",
        dest="changes",
        type="tier.id={}".format,
        metavar="ID",
        help="a storage tier of the catalogue, instead of the scenario's",
    )


def add_output(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("-o", "--output", metavar="FILE", help=what)


def add_format(parser: argparse.ArgumentParser, *known: str) -> None:
    parser.add_argument("-f", "--format", choices=known, default="text", help="default: text")


def add_study(parser: argparse.ArgumentParser, gates: bool = True, output: bool = False) -> None:
    """-f, --table, and the gates; -o where no other flag of the command says where to write."""
    if output:
        add_output(parser, "write to FILE instead of stdout")
    add_format(parser, "text", "json", "csv", "md", "html")
    parser.add_argument("--table", metavar="ID", help="csv: which table (default: the first)")
    add_full(parser)
    if gates:
        add_gates(parser)


def add_full(parser: argparse.ArgumentParser) -> None:
    """--full, where text is the answer on one screen."""
    parser.add_argument(
        "--full",
        action="store_true",
        help="text: every table, caution and assumption, not the answer alone",
    )


def add_gates(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--require",
        action="append",
        default=[],
        metavar="TARGET",
        help='e.g. "goodput>=0.95"; exit code 3 when it is missed; may repeat',
    )
    parser.add_argument(
        "--budget",
        action="append",
        dest="require",
        default=[],
        metavar="LIMIT",
        help='e.g. "usd<=10000" or "kwh<=2 MWh"; exit code 3 when it is missed',
    )


def add_draws(parser: argparse.ArgumentParser, default: str) -> None:
    """--draws, where ranges are printed that come from them."""
    parser.add_argument(
        "--draws",
        type=draws,
        default=0,
        metavar="N",
        help=f"draws from the inputs' ranges behind p5-p95, 64 to 1,000,000 (default: {default})",
    )


def draws(text: str) -> int:
    """Of an option: how many draws."""
    from ckptcost.first.core.draws import LEAST, MOST

    value = count(text)
    if not LEAST <= value <= MOST:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not from {LEAST} to {MOST:,}")
    return value


def count(text: str) -> int:
    """Of an option: a whole number that is not negative."""
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no whole number") from None
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is negative")
    return value


def seconds(text: str) -> float:
    """Of an option: how long, at most a year."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 < value <= 366 * 86400:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not from 0 s to a year")
    return value


def add_meters(
    parser: argparse.ArgumentParser, directory: bool = True, pid: bool = True, need: bool = True
) -> None:
    """`directory` and `pid` where the command has no other way to say them."""
    parser.add_argument(
        "--meters",
        default="auto",
        metavar="WHAT",
        help=(
            "auto, simulated, replay:RUN, or names with commas: nvml,rapl,block ... (default: auto)"
        ),
    )
    parser.add_argument(
        "--gpus",
        choices=("visible", "all"),
        default="visible",
        help="those that CUDA_VISIBLE_DEVICES leaves, or all",
    )
    parser.add_argument(
        "--rapl",
        choices=("auto", "powercap", "perf", "pyrapl"),
        default="auto",
        help="how to read the processors (default: auto)",
    )
    if directory:
        parser.add_argument(
            "--dir",
            dest="directory",
            metavar="DIR",
            help="where checkpoints go: only its disk is read (default: all disks)",
        )
    if pid:
        parser.add_argument(
            "--pid",
            type=int,
            metavar="PID",
            help="the job's process: its writes and those of its children",
        )
    parser.add_argument(
        "--redfish",
        default="",
        metavar="URL",
        help="the node's management controller; account from CKPTCOST_REDFISH_USER and _PASSWORD",
    )
    parser.add_argument("--redfish-ca", metavar="FILE", help="certificates to trust for it")
    parser.add_argument(
        "--redfish-insecure", action="store_true", help="do not verify its certificate"
    )
    if need:
        parser.add_argument(
            "--need",
            action="append",
            default=[],
            metavar="KIND",
            help="gpu, cpu, dram, storage or node: exit code 5 when it is not measured; may repeat",
        )


def wanted_of(options: argparse.Namespace, **more: Any) -> Wanted:
    """Which meters are looked for, and how."""
    from ckptcost.first.cli.answers import ask
    from ckptcost.first.questions import parameters

    return ask(parameters.wanted_of, options, **more)


def add_placing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--case",
        default="",
        metavar="ID",
        help="of a report: which tier and count, e.g. nas-hdd@100; of a comparison: A, B",
    )
    parser.add_argument(
        "--start",
        default="",
        metavar="TIME",
        help="of a plan: when it begins, e.g. 2026-11-01T00:00Z; rows by the hour follow",
    )
    parser.add_argument(
        "--grid",
        default="",
        metavar="FILE",
        help="CSV of grid factors by the hour or quicker, applied to each row",
    )
    parser.add_argument(
        "--grid-column", default="", metavar="NAME", help="which column, where there are several"
    )
    parser.add_argument(
        "--grid-tz",
        default="",
        metavar="ZONE",
        help="time zone of times that name none, e.g. Europe/Berlin",
    )
    parser.add_argument(
        "--grid-unit", default="", metavar="UNIT", help='where the column names none, e.g. "g/kWh"'
    )
    parser.add_argument(
        "--contracts",
        default="",
        metavar="FILE",
        help="TOML of contracts and residual mix by site: the market-based factor",
    )
    parser.add_argument(
        "--label",
        action="append",
        dest="labels",
        default=[],
        metavar="NAME=TEXT",
        help="e.g. team=infra, organisation=ACME; others become tags",
    )
    parser.add_argument(
        "--host", default="", metavar="NAME", help="of a run of several hosts: one of them"
    )
    parser.add_argument(
        "--dir",
        dest="directory",
        metavar="DIR",
        help="look for runs there instead of where they are kept",
    )
    parser.add_argument(
        "--site",
        default="",
        metavar="ID",
        help="of a run: where it stood; its PUE, grid and tariff",
    )
    parser.add_argument(
        "-s", "--scenario", metavar="FILE|PRESET", help="of a run: site and prices of a scenario"
    )
    parser.add_argument(
        "--set",
        action="append",
        dest="changes",
        default=[],
        metavar="PATH=VALUE",
        help='of a run: e.g. cluster.gpu_price="2.5 USD/GPU-h"',
    )


def placing_of(options: argparse.Namespace) -> Placing:
    from ckptcost.first.report.statements.reading import Placing

    return Placing(
        **{name: getattr(options, name) for name in _TEXTS}, labels=tuple(options.labels)
    )


def is_said(options: argparse.Namespace) -> bool:
    """Whether anything but the host and the folder was."""
    texts = [getattr(options, name) for name in _TEXTS if name != "host"]
    return any(texts) or bool(options.labels or options.site or options.scenario or options.changes)


def add_watch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--watch",
        action="append",
        default=[],
        metavar="DIR",
        help="where the job puts its checkpoints; may repeat, and may come to be later",
    )
    parser.add_argument(
        "--least",
        default="1 MB",
        metavar="SIZE",
        help="what is smaller is no checkpoint (default: 1 MB)",
    )
    parser.add_argument(
        "--gap",
        default="1 s",
        metavar="TIME",
        help="files within such a silence belong together (default: 1 s)",
    )
    parser.add_argument(
        "--settle",
        default=None,
        metavar="TIME",
        help=(
            "how long to wait at the end for what is still in the page cache (default: 40 s; 0 s:"
            " not at all)"
        ),
    )


def look_of(options: argparse.Namespace) -> WatchOptions:
    from pathlib import Path

    from ckptcost.first.catalog.schema import flag_value
    from ckptcost.first.errors import InputError
    from ckptcost.first.jobs.observe import SETTLE_S, WatchOptions

    watch = []
    for text in options.watch:
        path = Path(text).absolute()
        if not text or (path.exists() and not path.is_dir()):
            raise InputError(
                "is no folder",
                where=f"--watch {text}",
                remedy="name the folder that checkpoints are written to",
            )
        watch.append(path)
    least = flag_value("--least", options.least, "bytes")
    gap_s = flag_value("--gap", options.gap, "s")
    settle_s = SETTLE_S if options.settle is None else flag_value("--settle", options.settle, "s")
    if not (least >= 0 and 0 < gap_s <= 3600 and 0 <= settle_s <= 86400):
        raise InputError(
            "out of range",
            where="--least, --gap or --settle",
            remedy="sizes from 0, gaps up to an hour, settling up to a day",
        )
    return WatchOptions(
        tuple(dict.fromkeys(watch)), least_bytes=least, gap_s=gap_s, settle_s=settle_s
    )


def add_within(parser: argparse.ArgumentParser) -> None:
    """--dir, of all commands that look for kept runs."""
    parser.add_argument(
        "--dir", dest="directory", metavar="DIR", help="look there instead of where runs are kept"
    )


def found_of(options: argparse.Namespace) -> Found:
    from ckptcost.first.questions.statements import find_run

    return find_run(options.run_name, options.directory)
