"""Flags that say which job is meant, shared by model and sweep."""

from __future__ import annotations

import argparse


def add(parser: argparse.ArgumentParser) -> None:
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
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="write there instead of stdout; the file appears whole or not at all",
    )


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
