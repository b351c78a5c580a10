"""Flags of `report` and `export` that say which case, when and where it was, and under which
factors."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ckptcost.report.statements.reading import Placing

_TEXTS = ("case", "start", "grid", "grid_column", "grid_tz", "grid_unit", "contracts", "host")


def add(parser: argparse.ArgumentParser) -> None:
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
    from ckptcost.report.statements.reading import Placing

    return Placing(
        **{name: getattr(options, name) for name in _TEXTS}, labels=tuple(options.labels)
    )


def is_said(options: argparse.Namespace) -> bool:
    """Whether anything but the host and the folder was."""
    texts = [getattr(options, name) for name in _TEXTS if name != "host"]
    return any(texts) or bool(options.labels or options.site or options.scenario or options.changes)
