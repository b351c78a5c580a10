"""The command line: words to a question, its answer to a file or the terminal, errors to one line.

Verbs, flags and help are read from the questions' own signatures and docstrings. Only the module of
the verb that is asked is imported; `ckptcost --help` imports none.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ckptcost import __version__
from ckptcost.errors import CkptcostError, InputError, OutputError, unknown_name, visible
from ckptcost.questions import VERBS

if TYPE_CHECKING:
    from argparse import ArgumentParser

INTERRUPTED, MISSED = 130, 3
LONGEST = 600
"""letters of a complaint's line: somebody may have given a whole file as a flag"""
FORMATS = ("text", "json", "csv", "md", "html")
HELP = """\
A verb's flags and examples: ckptcost help VERB
Exit codes: 0 done, 2 wrong input, 3 a target is missed, 4 output not written,
5 not measurable here, 70 a defect of ckptcost, 130 interrupted
"""


def main(arguments: Iterable[str] | None = None) -> int:
    """Answer one command line; the value is the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    for name in ("stdout", "stderr"):  # closed by who started us: what is said goes nowhere
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # data is UTF-8 whatever the locale says
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        return _answered(words)
    except CkptcostError as error:
        return _refused(error)
    except KeyboardInterrupt:
        print("ckptcost: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader went away (`| head`): nothing to say, and nobody to say it
        _close_stdout()
        return OutputError.exit_code
    except OSError as error:
        return _refused(InputError(_why("read", error), str(error.filename or words)))
    except Exception as error:
        _print_traceback(error)
        problem = f"a defect of ckptcost {__version__}: {type(error).__name__}: {error}"
        remedy = "please report it with what CKPTCOST_DEBUG=1 prints before the same words"
        return _refused(CkptcostError(problem, remedy=remedy))


def _refused(error: CkptcostError) -> int:
    """Where and what in one line, the remedy in another."""
    _print_traceback(error)
    print(f"ckptcost: {_one_line(str(CkptcostError(error.problem, error.where)))}", file=sys.stderr)
    if error.remedy:
        print(f"  {_one_line(error.remedy)}", file=sys.stderr)
    return error.exit_code


def _one_line(text: str) -> str:
    text = visible(" ".join(text.split()))
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]} ... {text[-half:]}"


def _print_traceback(error: Exception) -> None:
    if os.environ.get("CKPTCOST_DEBUG", "0") not in ("", "0"):
        import traceback

        traceback.print_exception(error, file=sys.stderr)


# --- which verb -----------------------------------------------------------------------------------


def _answered(words: list[str]) -> int:
    """Help, or what a verb answers."""
    words = words or ([] if _is_terminal() else ["--help"])
    if words[:1] == ["help"]:
        words = [*words[1:2], "--help"]
    first = words[0] if words else ""
    if first in ("-h", "--help"):
        return write_out(help_of_all())
    if first in ("-V", "--version"):
        return write_out(f"ckptcost {__version__}\n")
    if first == "--print-completion":
        return write_out(completion("".join(words[1:2])))
    return _verb(first, words)


def _verb(first: str, words: list[str]) -> int:
    """Help of a verb, its answer, or the first edition's; no verb at all is the screen."""
    from ckptcost import former

    if first in VERBS and {"-h", "--help"} & set(former.own(words)):
        return write_out(help_of(first))
    if (handed := former.translated(words)) is not None:
        return former.main(handed)
    if first in former.NOW:
        raise InputError(f"{first} is now: {former.NOW[first]}")
    if first.startswith("-") or first.endswith(".toml"):
        raise InputError("is no verb", first, "write e.g. ckptcost model JOB, then flags")
    if first not in VERBS:
        raise unknown_name("verb", first, VERBS)
    return _ask(first, words)


def help_of(verb: str) -> str:
    """Its flags and examples; what the first edition still answers of it comes behind."""
    from ckptcost import former

    own = [parser_for(verb)] if VERBS[verb].is_question else []
    return "\n".join(parser.format_help() for parser in (*own, *former.parsers(verb)))


def help_of_all() -> str:
    """The verbs by group, each with the question that it answers."""
    lines = ["What AI training checkpoints cost: kWh, GPU-hours, dollars, kgCO2e."]
    group = ""
    for name, verb in VERBS.items():
        lines += ["", verb.group] if verb.group != group else []
        group = verb.group
        lines.append(f"  {f'{name} {verb.places}':<25}{verb.answers}")
    return "\n".join([*lines, "", HELP])


def _ask(verb: str, words: list[str]) -> int:
    """Ask a question of this edition and write its answer; the value is the exit code."""
    import shlex
    import warnings

    from ckptcost.flags import parsed

    places, options = parsed(parser_for(verb), question(verb), words[1:])
    output, form, detail = (options.pop(key) for key in ("output", "format", "detail"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = question(verb)(*places, **options)
        if isinstance(answer, Mapping):
            return write_files(answer, output)
        from ckptcost.write import WRITERS

        form = form or format_for(output)
        answer.command = answer.command or shlex.join(["ckptcost", *words])
        written = WRITERS[form](answer, detail).rstrip("\n") + "\n"
    write_out(written, output)
    for each in answer.missed if output or form != "text" else ():  # the text says them itself
        print(f"ckptcost: {visible(each)}", file=sys.stderr)
    return MISSED if answer.missed else 0


def question(verb: str) -> Callable[..., Any]:
    """The function that answers a verb."""
    from importlib import import_module

    found: Callable[..., Any] = getattr(import_module(f"ckptcost.questions.{verb}"), verb)
    return found


# --- flags ----------------------------------------------------------------------------------------


def parser_for(verb: str) -> ArgumentParser:
    """The parser of a question, with its flags, its help and its examples."""
    from ckptcost.flags import Parser, add_parameters

    parser = Parser(prog=f"ckptcost {verb}", usage=f"ckptcost {verb} {VERBS[verb].places} [flags]")
    add_parameters(parser, question(verb))
    output = parser.add_argument_group("the answer")
    output.add_argument(
        *("-f", "--format"), choices=FORMATS, metavar="FORMAT",
        help=f"{', '.join(FORMATS)} (default: text, or by -o)",
    )  # fmt: skip
    output.add_argument(
        "-o", "--output", metavar="FILE", default="", help="a file; its suffix is the format"
    )
    output.add_argument("--detail", action="store_true", help="every table, line, input and source")
    return parser


def completion(shell: str) -> str:
    """A script that completes command lines, made by shtab from the same flags."""
    from ckptcost import former
    from ckptcost.flags import Parser

    try:
        import shtab
    except ImportError:
        raise InputError("needs shtab", "--print-completion", "pip install shtab") from None
    if shell not in shtab.SUPPORTED_SHELLS:
        raise unknown_name("shell", shell, shtab.SUPPORTED_SHELLS, "--print-completion")
    whole = Parser(prog="ckptcost")
    verbs = whole.add_subparsers()
    for name, verb in VERBS.items():
        parser: Any = parser_for(name) if verb.is_question else next(former.parsers(name))
        verbs.add_parser(name, help=verb.answers, parents=[parser], add_help=False)
    return f"{shtab.complete(whole, shell)}\n"


# --- where the answer goes ------------------------------------------------------------------------


def format_for(output: str) -> str:
    """What a file's name says of its format.

    >>> format_for("page.html"), format_for("")
    ('html', 'text')
    """
    suffix = os.path.splitext(output)[1][1:].lower()
    form = "text" if suffix in ("", "txt") else suffix
    if form not in FORMATS:
        known = ".txt, .json, .csv, .md, .html"
        raise InputError(f"no format is called {suffix!r}", f"-o {output}", f"use {known}")
    return form


def write_files(files: Mapping[str, str | bytes], output: str) -> int:
    """What a question hands over as files: one as it is named, several into a folder."""
    if len(files) == 1:
        return write_out(next(iter(files.values())), output)
    if not output:
        raise InputError(f"writes {len(files)} files", "-o", "name their folder, e.g. -o costs")
    try:
        os.makedirs(output, exist_ok=True)
    except OSError as error:
        raise OutputError(_why("written", error), output) from None
    for name, data in files.items():
        write_out(data, os.path.join(output, name))
    return 0


def write_out(written: str | bytes, output: str = "") -> int:
    """To a file, or else to the terminal."""
    is_file = output not in ("", "-")
    try:
        if is_file:
            _to_file(written, os.path.realpath(output))
        elif isinstance(written, str):
            sys.stdout.write(written)
        else:
            sys.stdout.buffer.write(written)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        if not is_file:
            _close_stdout()
        raise OutputError(_why("written", error), output or "stdout") from None
    return 0


def _why(done: str, error: OSError | ValueError) -> str:
    return f"could not be {done} ({getattr(error, 'strerror', None) or error})"


def _to_file(written: str | bytes, path: str) -> None:
    """The file appears whole or not at all; a device or a pipe is written to as it is."""
    data = written.encode("utf-8", "backslashreplace") if isinstance(written, str) else written
    is_file = os.path.isfile(path)
    if os.path.exists(path) and not is_file:
        with open(path, "wb") as special:
            special.write(data)
        return
    if is_file and _is_read_only(path):
        raise PermissionError(0, "it is read-only")
    part = f"{path}.{os.getpid()}.part"
    try:
        with open(part, "wb") as file:
            file.write(data)
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(part)
        raise


def _is_read_only(path: str) -> bool:
    """Even to root, who could write it."""
    return not (os.access(path, os.W_OK) and os.stat(path).st_mode & 0o222)


def _is_terminal() -> bool:
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def _close_stdout() -> None:
    """What is left in its buffer must not raise again when Python ends."""
    with suppress(OSError, AttributeError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
