"""`ckptcost lead`."""

from __future__ import annotations

import argparse

from ckptcost.first.cli import answers, flags

EPILOG = """\
examples:
  ckptcost lead -s llama31-405b-16k
  ckptcost lead -s job.toml --set "policy.step=20 s"
  ckptcost lead last                       # of a recorded run
The time from a signal until the last save can be loaded: the step under way,
the save, and its drain where it is asynchronous; 99 of 100 take no longer.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "run",
        nargs="?",
        metavar="RUN",
        help=(
            'a recorded run instead of a scenario (folder, file, "last" of a job, the beginning of'
            " an id)"
        ),
    )
    flags.add_scenario(parser)
    parser.add_argument("--tier", metavar="ID", help="a storage tier of the catalogue")
    flags.add_study(parser, gates=False)


def run(options: argparse.Namespace) -> int:
    from ckptcost.first.questions.lead import lead

    return answers.ask_and_answer(lead, options)
