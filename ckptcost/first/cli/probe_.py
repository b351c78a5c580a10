"""`ckptcost probe`."""

from __future__ import annotations

import argparse
import sys

from ckptcost.first.cli import answers, flags

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
    flags.add_output(parser, "write to FILE instead of stdout")
    flags.add_meters(parser, directory=False, pid=False)
    flags.add_study(parser, gates=False)


def run(options: argparse.Namespace) -> int:
    from ckptcost.first.cli.status import StatusLine
    from ckptcost.first.present.saves import probing_text
    from ckptcost.first.questions.probe import probe

    answers.fits(options)
    status = StatusLine(sys.stderr, quiet=options.quiet)
    result = answers.ask(probe, options, tell=lambda told: status.show(probing_text(told)))
    status.clear()
    answers.answer(result, options)
    unmet = answers.unmet(result.lacking)
    return 130 if result.interrupted else unmet
