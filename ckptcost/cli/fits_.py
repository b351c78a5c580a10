"""`ckptcost fits`."""

from __future__ import annotations

import argparse

EPILOG = """\
examples:
  ckptcost fits /scratch/me/run7 -s job.toml
  ckptcost fits . -s llama31-405b-16k --set policy.keep_last=2 -f json
Free space, inodes, quotas that the kernel tells, and single targets where
`lfs df` is there, against the checkpoints kept and those being written.
exit code 3: it does not fit; the keep_last that would is said
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    from ckptcost.cli import scenario_flags, study_flags

    parser.add_argument("directory", metavar="DIR", help="where checkpoints go")
    scenario_flags.add(parser)
    parser.add_argument("--tier", metavar="ID", help="a storage tier of the catalogue")
    study_flags.add(parser, gates=False)


def run(options: argparse.Namespace) -> int:
    from ckptcost.cli import study_flags
    from ckptcost.questions.fits import fits

    result = study_flags.ask(fits, options)
    code = study_flags.answer(result, options)
    return code if result.study.question["fits"] else study_flags.MISSED
