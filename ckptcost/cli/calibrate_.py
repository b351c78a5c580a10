"""`ckptcost calibrate`."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ckptcost.jobs.measured import Measured

EPILOG = """\
RUN is a folder or file of a run, "last", or the beginning of a run's id
examples:
  ckptcost probe /scratch --size "20 GB"
  ckptcost calibrate last --as our-scratch
  ckptcost calibrate runs/small runs/large --as our-lustre --name "Rack 7"
  ckptcost calibrate 3f9a --as our-lustre --dry-run -f json
then: ckptcost model --tier our-lustre
It writes into your own folder of the catalogue: $CKPTCOST_USER, else "ckptcost"
in the user configuration folder.
exit codes: 2 wrong input, 4 the file could not be written, 5 the runs hold
nothing to fit
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    from ckptcost.cli import study_flags

    parser.add_argument(
        "runs", nargs="+", metavar="RUN", help="recorded runs; all are fitted together"
    )
    parser.add_argument(
        "--as",
        dest="id",
        required=True,
        metavar="ID",
        help="what the tier and the cluster are called in the catalogue",
    )
    parser.add_argument(
        "--name", default="", metavar="TEXT", help="what it is, in words (default: the host's name)"
    )
    parser.add_argument("--dry-run", action="store_true", help="fit and show; write nothing")
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace what is there, and stand before what ships under the same name",
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write the answer to FILE instead of stdout"
    )
    study_flags.add(parser, gates=False)


def run(options: argparse.Namespace) -> int:
    from ckptcost.catalog.store import Catalog
    from ckptcost.cli import study_flags
    from ckptcost.errors import MeterUnavailable
    from ckptcost.jobs.calibrate import calibrate
    from ckptcost.jobs.calibrate_files import checked_id, checked_name, install, texts_of
    from ckptcost.report.studies.calibrate import study_of

    study_flags.fits(options)
    id_, name = checked_id(options.id), checked_name(options.name)
    found = calibrate([seen for text in options.runs for seen in _seen(text)], id_, name)
    kinds = list(texts_of(found))
    written = [] if options.dry_run else [str(file) for file in install(found, force=options.force)]
    study_flags.answer(study_of(found, kinds, written), options, Catalog(), _spoken(options), [])
    if not kinds:
        print(
            "ckptcost: nothing was written: these runs give neither a write rate nor the watts of"
            " a GPU",
            file=sys.stderr,
        )
        return MeterUnavailable.exit_code
    return 0


def _seen(text: str) -> list[Measured]:
    """A run, as each of its hosts saw it."""
    from ckptcost.jobs.measure import reviewed
    from ckptcost.runs.store import find

    path = find(text)
    first = reviewed(path)
    others = [host for host in first.run.hosts if host != first.energies.node.host]
    return [first, *(reviewed(path, host=host) for host in others)]


def _spoken(options: argparse.Namespace) -> list[str]:
    """The command as given, without the folders of its author."""
    words = list(options.command_line)
    for path in filter(None, (*options.runs, options.output)):
        words = [os.path.basename(path.rstrip("/")) if word == path else word for word in words]
    return words
