"""Flags that `doctor` and `measure` share: what to read, and how."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

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


def wanted_of(options: argparse.Namespace) -> Wanted:
    import os
    from pathlib import Path

    from ckptcost.errors import InputError
    from ckptcost.meters.found import Wanted

    directory = None
    if (named := getattr(options, "dir", None)) is not None:
        directory = Path(named)
        if not os.path.isdir(directory):  # False, too, where nobody may look
            raise InputError(
                "is no folder",
                where=f"--dir {named}",
                remedy="name the folder that checkpoints are written to",
            )
    pid = getattr(options, "pid", None)
    if pid is not None and pid <= 0:
        raise InputError("expected a process id", where="--pid")
    return Wanted(
        every_gpu=options.gpus == "all",
        rapl=options.rapl,
        directory=directory,
        pid=pid,
        redfish_url=options.redfish,
        redfish_ca=options.redfish_ca,
        redfish_insecure=options.redfish_insecure,
    )


def spoken(options: argparse.Namespace) -> list[str]:
    """The command as given, without folders and addresses: a report must not tell where its author
    keeps things."""
    import os

    words = list(options.command_line)
    told = {
        text: os.path.basename(os.path.normpath(text))
        for text in (
            getattr(options, "dir", None),
            getattr(options, "record", None),
            options.output,
            options.redfish_ca,
            *getattr(options, "watch", ()),
        )
        if text
    }
    if options.redfish:
        told[options.redfish] = "URL"
    if options.meters.startswith("replay:"):
        told[options.meters] = "replay:" + os.path.basename(
            os.path.normpath(options.meters.removeprefix("replay:"))
        )
    for text, instead in told.items():
        words = [word[: -len(text)] + instead if word.endswith(text) else word for word in words]
    return words


def needed(options: argparse.Namespace) -> list[str]:
    return [word.strip() for text in options.need for word in text.split(",")]
