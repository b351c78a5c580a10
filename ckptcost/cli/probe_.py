"""`ckptcost probe`."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ckptcost.catalog.store import Catalog

EPILOG = """\
examples:
  ckptcost probe /scratch --size "20 GB"
  ckptcost probe /scratch --model llama31-8b --ranks 8
  ckptcost probe /scratch --size "4 GB" --saver posix --rounds 5 -f json
  ckptcost probe . --meters simulated --size "100 GB"
then: ckptcost calibrate last --as my-storage
Writes only into a hidden folder of its own in DIR and takes it away again, also
when it is killed. Content is incompressible.
exit codes: 2 wrong input, 4 the storage refused (full, no permission, I/O
error), 5 a library or a meter is missing
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    from ckptcost.cli import meter_flags, study_flags

    parser.add_argument(
        "directory", metavar="DIR", help="a folder on the storage that is to be measured"
    )
    parser.add_argument(
        "--size",
        metavar="SIZE",
        help='of one checkpoint, e.g. "20 GB" (default: 1 GB, or that of --model)',
    )
    parser.add_argument(
        "--model",
        metavar="ID",
        help="as large as this model's: an entry of `ckptcost catalog checkpoint`",
    )
    parser.add_argument(
        "--ranks",
        type=int,
        default=8,
        metavar="N",
        help="writers, each with files of its own (default: 8)",
    )
    parser.add_argument(
        "--files",
        type=int,
        metavar="N",
        help="files in all (default: as a training job would have)",
    )
    parser.add_argument(
        "--saver",
        default="direct",
        metavar="NAME",
        help=(
            "direct, posix, torch_save, torch_dcp, torch_dcp_async or safetensors (default: direct)"
        ),
    )
    parser.add_argument(
        "--rounds", type=int, default=3, metavar="N", help="of each size (default: 3)"
    )
    parser.add_argument(
        "--one-size",
        action="store_true",
        help="no rounds of a quarter of the size, which tell latency from rate",
    )
    parser.add_argument(
        "--warm-up",
        type=int,
        default=0,
        metavar="N",
        help="saves before the first round that do not count (default: 0)",
    )
    parser.add_argument("--no-read", action="store_true", help="write only")
    parser.add_argument(
        "--no-verify",
        action="store_true",
        help="do not compare what was written, in a pass that is not timed",
    )
    parser.add_argument(
        "--depth",
        type=int,
        default=16,
        metavar="N",
        help="requests in flight, of all writers together (default: 16)",
    )
    parser.add_argument(
        "--block", default="4 MiB", metavar="SIZE", help="of one request (default: 4 MiB)"
    )
    parser.add_argument(
        "--pause", default="1 s", metavar="TIME", help="between rounds (default: 1 s)"
    )
    parser.add_argument(
        "--record",
        metavar="DIR",
        help="where to keep the run (default: a folder of its own among your runs)",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE instead of stdout")
    meter_flags.add(parser, directory=False, pid=False)
    study_flags.add(parser, gates=False)


def run(options: argparse.Namespace) -> int:
    from pathlib import Path

    from ckptcost.catalog.schema import flag_value
    from ckptcost.catalog.store import Catalog
    from ckptcost.cli import meter_flags, study_flags
    from ckptcost.cli.status import Status
    from ckptcost.errors import InputError
    from ckptcost.jobs.checkup import known_kinds, lacking_of
    from ckptcost.jobs.probe import Asked, Told, probe
    from ckptcost.present.saves import probing_text
    from ckptcost.report.studies.probe import study_of
    from ckptcost.savers.base import Settings

    study_flags.fits(options)
    wanted, needed = meter_flags.wanted_of(options), meter_flags.needed(options)
    known_kinds(needed)
    catalog = Catalog()
    if not options.directory:
        raise InputError("names no folder", where="DIR")
    if not 1 <= options.rounds <= 1000:
        raise InputError("expected 1 to 1000", where="--rounds")
    if not 0 <= options.warm_up <= 100:
        raise InputError("expected 0 to 100", where="--warm-up")
    block_bytes = round(flag_value("--block", options.block, "bytes"))
    settings = Settings(block_bytes=block_bytes, depth=options.depth, verify=not options.no_verify)
    asked = Asked(
        Path(options.directory),
        _size_of(options, catalog),
        options.ranks,
        options.files,
        options.saver,
        options.rounds,
        small=not options.one_size,
        read=not options.no_read,
        warm_up=options.warm_up,
        pause_s=flag_value("--pause", options.pause, "s"),
        settings=settings,
    )
    status = Status(sys.stderr, quiet=options.quiet)

    def tell(told: Told) -> None:
        status.show(probing_text(told))

    probed = probe(
        asked,
        options.meters,
        wanted,
        None if options.record is None else Path(options.record),
        tell,
    )
    status.clear()
    study_flags.answer(study_of(probed, catalog), options, catalog, meter_flags.spoken(options), [])
    lacking = lacking_of(probed.measured.energies, needed)
    for kind in lacking:
        print(f"ckptcost: {kind} is needed and not measured here", file=sys.stderr)
    return 130 if probed.interrupted else meter_flags.UNMET if lacking else 0


def _size_of(options: argparse.Namespace, catalog: Catalog) -> int:
    from ckptcost.api import layers_for
    from ckptcost.catalog.schema import flag_value
    from ckptcost.core.size import full_bytes
    from ckptcost.errors import InputError
    from ckptcost.jobs.compare import first_of

    if options.size is not None and options.model is not None:
        raise InputError(
            "says the size a second time", where="--model", remedy="give --size or --model"
        )
    if options.model is not None:
        catalog.get("checkpoint", options.model)
        size_bytes = full_bytes(
            first_of(
                catalog, layers_for(catalog, None, None, [f"checkpoint.model={options.model}"])
            ).scenario.checkpoint
        )
    else:
        size_bytes = flag_value("--size", options.size or "1 GB", "bytes")
    if not 1e6 <= float(size_bytes) <= 1e15:
        raise InputError("expected 1 MB to 1 PB", where="--size")
    return round(float(size_bytes))
