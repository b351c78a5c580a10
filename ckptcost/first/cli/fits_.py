"""`ckptcost fits`."""

from __future__ import annotations

import argparse

from ckptcost.first.cli import answers, flags

EPILOG = """\
examples:
  ckptcost fits /scratch/me/run7 -s job.toml
  ckptcost fits . -s llama31-405b-16k --set policy.keep_last=2 -f json
Free space, inodes, quotas that the kernel tells, and single targets where
`lfs df` is there, against the checkpoints kept and those being written.
exit code 3: it does not fit; the keep_last that would is said
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", metavar="DIR", help="where checkpoints go")
    flags.add_scenario(parser)
    parser.add_argument("--tier", metavar="ID", help="a storage tier of the catalogue")
    flags.add_study(parser, gates=False)


def run(options: argparse.Namespace) -> int:
    from ckptcost.first.questions.fits import fits

    result = answers.ask(fits, options)
    code = answers.answer(result, options)
    return code if result.study.question["fits"] else answers.MISSED
