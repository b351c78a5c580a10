"""The command line: words to a question, its answer to a file or the terminal, errors to one line.

Verbs, flags and help are read from the questions' own signatures and docstrings. Only the module of
the verb that is asked is imported; `ckptcost --help` imports none.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ckptcost import __version__
from ckptcost.errors import CkptcostError, InputError, OutputError, unknown_name, visible
from ckptcost.questions import VERBS

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from ckptcost.answer import Answer

DEFECT, INTERRUPTED, MISSED = 70, 130, 3
LONGEST = 600
"""letters of a complaint's line: somebody may have given a whole file as a flag"""
FORMATS = ("text", "json", "csv", "md", "html")
SUFFIXES = {
    ".txt": "text",
    "": "text",
    ".json": "json",
    ".csv": "csv",
    ".md": "md",
    ".html": "html",
    ".htm": "html",
}
HELP = """\
A verb's flags and examples: ckptcost help VERB
Exit codes: 0 done, 2 wrong input, 3 a target is missed, 4 output not written,
5 not measurable here, 70 a defect of ckptcost, 130 interrupted
"""


def main(arguments: Iterable[str] | None = None) -> int:
    """Answer one command line; the value is the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
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
    except Exception as error:
        if getattr(error, "errno", None) == errno.ENAMETOOLONG:
            return _refused(InputError("this name is too long for a file", _shortened(words[-1])))
        return _defect(error)


def _refused(error: CkptcostError) -> int:
    """Where and what in one line, the remedy in another."""
    _print_traceback(error)
    print(f"ckptcost: {_one_line(str(CkptcostError(error.problem, error.where)))}", file=sys.stderr)
    if error.remedy:
        print(f"  {_one_line(error.remedy)}", file=sys.stderr)
    return error.exit_code


def _one_line(text: str) -> str:
    return visible(_shortened(" ".join(text.split())))


def _shortened(text: str) -> str:
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]} ... {text[-half:]}"


def _defect(error: Exception) -> int:
    _print_traceback(error)
    what = f"{type(error).__name__}: {_one_line(str(error))}"
    report = "please report it with what CKPTCOST_DEBUG=1 prints before the same words"
    print(f"ckptcost: a defect of ckptcost {__version__}: {what}\n  {report}", file=sys.stderr)
    return DEFECT


def _print_traceback(error: Exception) -> None:
    if os.environ.get("CKPTCOST_DEBUG", "0") not in ("", "0"):
        import traceback

        traceback.print_exception(error, file=sys.stderr)


# --- which verb -----------------------------------------------------------------------------------


def _answered(words: list[str]) -> int:
    first = words[0] if words else "" if _is_terminal() else "--help"
    if first in ("-h", "--help") or words == ["help"]:
        return _say(help_of_all())
    if first in ("-V", "--version"):
        return _say(f"ckptcost {__version__}\n")
    if first == "--print-completion":
        return _say(completion("".join(words[1:2])))
    return _verb(words)


def _verb(words: list[str]) -> int:
    """Help of a verb, its answer, or the first edition's; no verb at all is the screen."""
    from ckptcost import former

    if not words:
        return former.main(["screen"])
    is_help = words[0] == "help"
    verb = words[1] if is_help else words[0]
    _check_verb(verb, former.NOW)
    if is_help or {"-h", "--help"} & set(former.own(words)):
        return _say(parser_for(verb).format_help())
    handed = former.translated(words)
    return _ask(verb, words) if handed is None else former.main(handed)


def _check_verb(verb: str, now: Mapping[str, str]) -> None:
    if verb in VERBS:
        return
    if verb in now:
        raise InputError(f"{verb} is now: {now[verb]}")
    if verb.startswith("-"):
        raise InputError("stands before a verb", verb, "write e.g. ckptcost model JOB, then flags")
    if verb.endswith(".toml"):
        raise InputError("is no verb", verb, f"write ckptcost model {verb}")
    raise unknown_name("verb", verb, VERBS)


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
    """Ask a question of this edition and write its answer."""
    import shlex
    import warnings

    places, options = parsed(verb, words[1:])
    output, form = options.pop("output") or "", options.pop("format")
    form = form or ("text" if verb == "export" else format_for(output))
    detail = options.pop("detail")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = question(verb)(*places, **options)
        if isinstance(answer, Mapping):
            return write_files(answer, output)
        answer.command = answer.command or shlex.join(["ckptcost", *words])
        written = _written(answer, form, detail)
    write_out(written, output)
    return _missed(answer, aloud=bool(output) or form != "text")


def _missed(answer: Answer, aloud: bool) -> int:
    """The exit code; targets that are missed are said if the text of the answer is not read."""
    for each in answer.missed if aloud else ():
        print(f"ckptcost: {visible(each)}", file=sys.stderr)
    return MISSED if answer.missed else 0


def _written(answer: Answer, form: str, detail: bool) -> str:
    from ckptcost.write import WRITERS

    return WRITERS[form](answer, detail).rstrip("\n") + "\n"


def question(verb: str) -> Callable[..., Any]:
    """The function that answers a verb."""
    from importlib import import_module

    found: Callable[..., Any] = getattr(import_module(f"ckptcost.questions.{verb}"), verb)
    return found


# --- words to arguments ---------------------------------------------------------------------------


def parsed(verb: str, words: list[str]) -> tuple[list[Any], dict[str, Any]]:
    """What stands in its place, and the flags that are given."""
    from ckptcost.flags import parameters_of, placed

    parameters = parameters_of(question(verb))
    parser = parser_for(verb, with_places=False)
    found, rest = parser.parse_known_args(words)
    options = vars(found)
    split = rest.index("--") if "--" in rest else len(rest)
    unknown = [word for word in rest[:split] if word.startswith("-") and word != "-"]
    if unknown:
        known = [name for action in parser._actions for name in action.option_strings]
        flag = unknown[0].partition("=")[0]
        raise unknown_name("flag", flag, known, verb)
    words = [word for word in rest if word != "--"]
    return placed(verb, parameters, words, options.pop("alias", [])), options


def parser_for(verb: str, with_places: bool = True) -> ArgumentParser:
    """The parser of one verb. Words in places are declared only for its help and completion."""
    from ckptcost.flags import Parser, add_parameters

    parser = Parser(prog=f"ckptcost {verb}", usage=f"ckptcost {verb} {VERBS[verb].places} [flags]")
    fill(parser, verb, add_parameters, with_places)
    return parser


def fill(parser: Any, verb: str, add: Callable[..., None], with_places: bool = True) -> None:
    """A verb's flags, its help and its examples."""
    parser.description = VERBS[verb].answers
    if not VERBS[verb].is_question:
        from ckptcost import former

        return former.add_flags(parser, verb)
    add(parser, question(verb), with_places)
    output = parser.add_argument_group("the answer")
    output.add_argument(
        "-f", "--format", choices=FORMATS, help="how it is written (default: text, or by -o)"
    )
    output.add_argument("-o", "--output", metavar="FILE", help="a file; its suffix is the format")
    output.add_argument("--detail", action="store_true", help="every table, line, input and source")
    return None


def completion(shell: str) -> str:
    """A script that completes command lines, made by shtab from the same flags."""
    from ckptcost.flags import Parser, add_parameters

    try:
        import shtab
    except ImportError:
        raise InputError("needs shtab", "--print-completion", "pip install shtab") from None
    if shell not in shtab.SUPPORTED_SHELLS:
        raise unknown_name("shell", shell, shtab.SUPPORTED_SHELLS, "--print-completion")
    whole = Parser(prog="ckptcost")
    verbs = whole.add_subparsers()
    for name, verb in VERBS.items():
        fill(verbs.add_parser(name, help=verb.answers), name, add_parameters)
    return f"{shtab.complete(whole, shell)}\n"


# --- where the answer goes ------------------------------------------------------------------------


def format_for(output: str) -> str:
    """What a file's name says of its format.

    >>> format_for("page.html"), format_for("")
    ('html', 'text')
    """
    suffix = os.path.splitext(output)[1].lower()
    if suffix not in SUFFIXES:
        raise InputError(
            f"no format is called {suffix[1:]!r}", f"-o {output}", f"use {_suffixes()}"
        )
    return SUFFIXES[suffix]


def _suffixes() -> str:
    return ", ".join(filter(None, SUFFIXES))


def write_files(files: Mapping[str, str | bytes], output: str) -> int:
    """What a question hands over as files: one as it is named, several into a folder."""
    if len(files) == 1:
        write_out(next(iter(files.values())), output)
        return 0
    if not output:
        raise InputError(f"writes {len(files)} files", "-o", "name their folder, e.g. -o costs")
    try:
        os.makedirs(output, exist_ok=True)
    except OSError as error:
        raise OutputError(_why(error), output) from None
    for name, data in files.items():
        write_out(data, os.path.join(output, name))
    return 0


def write_out(written: str | bytes, output: str) -> None:
    """To a file, or else to the terminal."""
    data = written.encode("utf-8", "backslashreplace") if isinstance(written, str) else written
    try:
        if output in ("", "-"):
            _to_stdout(data)
        else:
            _to_file(data, os.path.realpath(output))
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        if output in ("", "-"):
            _close_stdout()
        raise OutputError(_why(error), output or "stdout") from None


def _why(error: OSError | ValueError) -> str:
    return f"could not be written ({getattr(error, 'strerror', None) or error})"


def _to_stdout(data: bytes) -> None:
    if hasattr(sys.stdout, "buffer"):
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        sys.stdout.write(data.decode("utf-8"))


def _to_file(data: bytes, path: str) -> None:
    """The file appears whole or not at all; a device or a pipe is written to as it is."""
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as file:
            file.write(data)
        return
    part = f"{path}.{os.getpid()}.part"
    try:
        with open(part, "wb") as file:
            file.write(data)
        if os.path.exists(path) and not os.access(path, os.W_OK):
            raise PermissionError(13, "it is read-only")
        os.replace(part, path)
    except BaseException:
        if os.path.exists(part):
            os.unlink(part)
        raise


def _say(text: str) -> int:
    write_out(text, "")
    return 0


def _is_terminal() -> bool:
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def _close_stdout() -> None:
    """What is left in its buffer must not raise again when Python ends."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, AttributeError, ValueError):
        return
