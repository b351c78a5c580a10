"""`ckptcost report`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ckptcost.first.cli import answers, flags

if TYPE_CHECKING:
    from ckptcost.first.questions.results import StudyResult

EPILOG = """\
examples:
  ckptcost report last
  ckptcost report last --gpus 64 --usd-per-gpu-hour 2.5    # how often to save
  ckptcost report last -f html --site usa -o last.html
  ckptcost report report.json -f md
  ckptcost report 3f9a -f json -o cost.json
  ckptcost report runs/today -f csv --table windows
  ckptcost report last --host node7       # of a run of several hosts
SOURCE is a recorded run (a folder or file, "last", or the beginning of an id
or of a folder's name: ckptcost runs lists them), or a document that ckptcost
wrote as JSON. "last" is the last run of a job, no probe and no self-test. A run
that was killed counts as far as it goes.
"""
FORMATS = ("text", "md", "html", "json", "csv")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help='a recorded run (folder, file, "last", the beginning of an id), or a JSON document',
    )
    parser.add_argument("-f", "--format", choices=FORMATS, default="text", help="default: text")
    parser.add_argument("--table", metavar="ID", help="csv: which table (default: the first)")
    flags.add_full(parser)
    flags.add_output(parser, "write to FILE instead of stdout")
    parser.add_argument(
        "--gpus",
        type=float,
        metavar="N",
        help="of a run: GPUs of the whole job; says what a save costs and how often to save",
    )
    parser.add_argument(
        "--usd-per-gpu-hour", type=float, metavar="USD", help="with --gpus: what one costs"
    )
    parser.add_argument(
        "--mtbf",
        default="",
        metavar="TIME",
        help=(
            'with --gpus: time between failures of the job, e.g. "10 h"; else assumed from its size'
        ),
    )
    flags.add_placing(parser)


def run(options: argparse.Namespace) -> int:
    from ckptcost.first.cli import telling
    from ckptcost.first.report.statements import reading

    words = telling.command_of(options)
    with reading.spool_pipe(options.source) as options.source:
        return _write_report(options, words)


def _write_report(options: argparse.Namespace, words: list[str]) -> int:
    from ckptcost.first.errors import InputError
    from ckptcost.first.report.statements import reading

    answers.fits(options)
    is_document = reading.is_document(options.source)
    if options.gpus is not None and (is_document or options.scenario):
        raise InputError("is said of a recorded run", where="--gpus")
    if options.gpus is not None or not (is_document or flags.is_said(options)):
        return answers.answer(_review_run(options), options)
    if is_document:
        _check_no_job(options)
    if not flags.is_said(options):
        from ckptcost.first.cli import output
        from ckptcost.first.report.render import file_text

        output.write(
            [file_text(options.source, options.format, options.table, options.full)],
            options.output,
        )
        return 0
    _write_placed(options, words, is_document)
    return 0


def _write_placed(options: argparse.Namespace, words: list[str], is_document: bool) -> None:
    """A bill under other factors, which is no longer the study or report it was."""
    from ckptcost.first.cli import output
    from ckptcost.first.errors import InputError
    from ckptcost.first.questions.statements import statement_document
    from ckptcost.first.report import render
    from ckptcost.first.report.read import read, study_of

    if options.table:
        raise InputError(
            "names a table of a study", where="--table", remedy="leave out what says when and where"
        )
    document = statement_document(
        [options.source],
        flags.placing_of(options),
        options.directory,
        options.scenario,
        options.changes,
        options.site,
        words,
    )
    if options.format == "html":
        study = study_of(read(options.source)) if is_document else _review_run(options).study
        inputs = document.reproducibility.inputs
        written = render.page(study, document.statements, words, inputs)
    else:
        written = render.text_of(document, options.format)
    output.write([written], options.output)


def _check_no_job(options: argparse.Namespace) -> None:
    from ckptcost.first.errors import InputError

    for where, said in (("--usd-per-gpu-hour", options.usd_per_gpu_hour), ("--mtbf", options.mtbf)):
        if said:
            why = "says how often to save, of a job"
            raise InputError(why, where=where, remedy="give --gpus too")


def _review_run(options: argparse.Namespace) -> StudyResult:
    """A recorded run, as a study."""
    import sys

    from ckptcost.first.cli.status import StatusLine
    from ckptcost.first.questions.review import review

    status = StatusLine(sys.stderr)
    try:
        return answers.ask(review, options, run=options.source, tell=status.share)
    finally:
        status.clear()
