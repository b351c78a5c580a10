"""`ckptcost export`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ckptcost.first.cli import flags

if TYPE_CHECKING:
    from pathlib import Path

    from ckptcost.first.exports.formats import Files, Format

EPILOG = """\
examples:
  ckptcost export --list
  ckptcost export report.json --to prometheus -o ckptcost.prom
  ckptcost export report.json --to datapackage --start 2026-11-01 -o cost
  ckptcost export last --to codecarbon --site usa -o emissions.csv
  ckptcost export last --to impact-framework --site germany \\
    --grid hours.csv --grid-tz Europe/Berlin -o manifest.yaml
  ckptcost export march.json april.json --to focus -o focus.csv
SOURCE is a document that ckptcost wrote as JSON (report, study, statement),
or a recorded run: a folder, "last" (of a job), or the beginning of its id.
A run's energies are the machine's own unless --site, -s or --set say where
it stood. Every row is a memo item: its kWh are in your meters already.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        nargs="*",
        metavar="SOURCE",
        help="a JSON document or a recorded run; several go into one export",
    )
    parser.add_argument("--to", metavar="NAME", help="which export; --list shows them")
    parser.add_argument(
        "--list",
        action="store_true",
        help="what there is, what each is for, and what reads it in our tests",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="PATH",
        help="file, or folder where it is several files (default: stdout, or a folder)",
    )
    parser.add_argument("--force", action="store_true", help="replace a folder that is there")
    flags.add_placing(parser)


def run(options: argparse.Namespace) -> int:
    from ckptcost.first.errors import InputError

    if options.list:
        sys.stdout.write(listing())
        return 0
    if not options.source:
        raise InputError(
            "names nothing to export",
            where="export",
            remedy="e.g. ckptcost export report.json --to prometheus",
        )
    if not options.to:
        raise InputError(
            "says no format", where="--to", remedy="`ckptcost export --list` shows them"
        )
    return _export(options)


def _export(options: argparse.Namespace) -> int:
    import contextlib

    from ckptcost.first.cli import telling
    from ckptcost.first.exports.formats import exported, format_named, left_out
    from ckptcost.first.questions.statements import statement_document
    from ckptcost.first.report.statements.reading import cases_of, spool_pipe

    wanted = format_named(options.to)
    with contextlib.ExitStack() as kept:
        sources = [kept.enter_context(spool_pipe(source)) for source in options.source]
        document = statement_document(
            sources,
            flags.placing_of(options)._replace(summed=wanted.title if wanted.summed else ""),
            options.directory,
            options.scenario,
            options.changes,
            options.site,
            telling.command_of(options),
        )
        others = [] if options.case else [cases_of(source) for source in sources]
    write(wanted, exported(document, wanted.id), options.output, options.force)
    for why, _ in left_out(document, wanted).values():
        print(f"ckptcost: left out: {why}", file=sys.stderr)
    for name, cases in zip(options.source, others, strict=False):
        _tell_others(name, cases)
    return 0


def _tell_others(name: str, cases: Sequence[str]) -> None:
    if len(cases) > 1:
        print(
            f"ckptcost: {name}: {cases[0]} alone is exported, of {len(cases)} cases; "
            f"--case names another, such as {cases[1]}",
            file=sys.stderr,
        )


def listing() -> str:
    """Every export in a few lines."""
    import textwrap

    from ckptcost.first.exports.formats import FORMATS

    listed = []
    for each in FORMATS.values():
        place = f"folder {each.file}" if each.folder else each.file
        needs = ", needs dates" if each.dated else ""
        listed.append(f"{each.id:<17} {each.title} ({place}{needs})")
        listed += textwrap.wrap(each.what, 78, initial_indent="  ", subsequent_indent="  ")
        listed += textwrap.wrap(
            f"read in our tests by: {each.proof}", 78, initial_indent="  ", subsequent_indent="  "
        )
    return "\n".join(listed) + "\n"


def write(wanted: Format, files: Files, path: str | None, force: bool) -> None:
    """One file to stdout or where -o says, several into a folder that appears whole or not at
    all."""
    from pathlib import Path

    from ckptcost.first.cli import output
    from ckptcost.first.errors import InputError

    if wanted.folder:
        if path in ("", "-"):
            raise InputError(
                f"{wanted.title} is a folder", where="-o", remedy="name one, or leave it out"
            )
        _folder(Path(os.path.realpath(path or wanted.file)), files, force, path or wanted.file)
        return
    (content,) = files.values()
    output.write([content.decode()] if isinstance(content, bytes) else content, path)


def _require_replaceable(target: Path, files: Files, force: bool, shown: str) -> None:
    """Only what such an export writes is replaced."""
    from ckptcost.first.errors import OutputError

    if not force:
        raise OutputError(f"{shown} is there already; another -o, or --force to replace it")
    if not target.is_dir():
        raise OutputError(f"{shown} is there already; another -o")
    if not {each.name for each in target.iterdir()} <= set(files):
        raise OutputError(f"{shown} holds other files too; another -o")


def _folder(target: Path, files: Files, force: bool, shown: str) -> None:
    from ckptcost.first.errors import OutputError
    from ckptcost.first.report.folders import whole_folder

    if target.exists():
        _require_replaceable(target, files, force, shown)
    try:
        with whole_folder(target, force) as folder:
            for name, content in files.items():
                pieces = [content] if isinstance(content, bytes) else map(str.encode, content)
                with (folder / name).open("wb") as stream:
                    stream.writelines(pieces)
    except OSError as error:
        raise OutputError(f"{shown}: could not be written ({error.strerror or error})") from None
    print(f"ckptcost: wrote {shown}: {', '.join(files)}", file=sys.stderr)
