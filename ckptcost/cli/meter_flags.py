"""Flags that `doctor` and `measure` share: what to read, and how."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ckptcost.meters.found import Wanted

UNMET = 5


def add(
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
    from ckptcost.cli.study_flags import ask
    from ckptcost.questions import parameters

    return ask(parameters.wanted_of, options, **more)


def unmet(lacking: Sequence[str]) -> int:
    """Say which of the needed kinds are not measured; the exit code."""
    for kind in lacking:
        print(f"ckptcost: {kind} is needed and not measured here", file=sys.stderr)
    return UNMET if lacking else 0
