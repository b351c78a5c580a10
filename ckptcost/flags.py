"""From a question's signature to the flags of its verb: nothing is said twice.

A parameter's annotation is `Annotated[type, Flag(help, metavar, place)]`. Its type says how often
it may be given and what is read; `**flags: Unpack[Flags]` stands for the flags of that TypedDict.
"""

from __future__ import annotations

import inspect
import textwrap
from argparse import SUPPRESS, ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, NoReturn, get_args, get_origin, get_type_hints

from ckptcost.errors import InputError, unknown_name
from ckptcost.scenario.units import parse

NONE = inspect.Parameter.empty


class Parameter(NamedTuple):
    """A parameter of a question."""

    name: str
    kind: Any
    flag: Any
    default: Any = NONE
    shared: bool = False
    """one of the flags that describe a job"""
    many: bool = False
    """takes all words that are left"""

    @property
    def help(self) -> str:
        has_default = self.default and self.default is not NONE
        said = f" (default: {self.default})" if has_default else ""
        return f"{self.flag.help}{said}".replace("%", "%%")


class Parser(ArgumentParser):
    """argparse, whose complaints are ours."""

    def __init__(self, **how: Any) -> None:
        formatter = partial(RawDescriptionHelpFormatter, max_help_position=22, width=80)
        super().__init__(formatter_class=formatter, **{"allow_abbrev": False, **how})

    def error(self, message: str) -> NoReturn:
        where, _, problem = message.removeprefix("argument ").rpartition(": ")
        verb = self.prog.split()[-1]
        if where == "unrecognized arguments" and problem.startswith("-"):
            flag = problem.split()[0].partition("=")[0]
            raise unknown_name("flag", flag, self._option_string_actions, verb)
        if where == "unrecognized arguments":
            where, problem = "", f"{problem[:60]!r} is one word too many"
        elif where.endswith("required"):
            where, problem = "", f"{problem} is missing"
        raise InputError(problem, where or verb, f"what it takes: ckptcost help {verb}")


def parameters_of(function: Callable[..., Any]) -> Iterator[Parameter]:
    """Of a question, the shared flags last."""
    hints = get_type_hints(function, include_extras=True)
    for each in inspect.signature(function).parameters.values():
        if each.kind is each.VAR_KEYWORD:
            shared = get_type_hints(get_args(hints[each.name])[0], include_extras=True)
            for key, hint in shared.items():
                kind, flag = get_args(hint)[:2]
                if flag.but != function.__name__:
                    yield Parameter(key, kind, flag, shared=True)
        else:
            many = each.kind is each.VAR_POSITIONAL
            kind, flag = get_args(hints[each.name])[:2]
            yield Parameter(each.name, kind, flag, each.default, many=many)


def add_parameters(parser: Any, function: Callable[..., Any]) -> None:
    """All flags of a question, with its docstring as the help."""
    head, _, examples = inspect.cleandoc(function.__doc__ or "").partition("\n\n")
    parser.description = textwrap.fill(" ".join(head.split()), 80)
    parser.epilog = "examples:\n" + textwrap.indent(examples, "  ")
    mine = parser.add_argument_group("this question")
    job = parser.add_argument_group("the job")
    for each in parameters_of(function):
        if each.flag.place:
            _add_place(parser, each)
        else:
            _add_flag(job if each.shared else mine, each)
        if each.name in ("job", "plans"):
            hidden = {"action": "append", "default": [], "help": SUPPRESS}
            parser.add_argument("-s", "--scenario", dest="alias", **hidden)


def _add_place(parser: Any, each: Parameter) -> None:
    how: dict[str, Any] = {"metavar": each.flag.metavar, "help": each.help}
    if each.many:
        how["nargs"] = "*"
    elif each.default is not NONE:
        how |= {"nargs": "?", "default": each.default}
    added = parser.add_argument(each.name, **how)
    added.complete = {"bash": "_shtab_compgen_files", "zsh": "_files", "tcsh": "f"}


def _add_flag(parser: Any, each: Parameter) -> None:
    how: dict[str, Any] = {"action": "store_true"}
    if each.kind is not bool:
        how = {"metavar": each.flag.metavar or "N"}
        if get_origin(each.kind) is Literal:
            how["choices"] = get_args(each.kind)
        elif get_origin(each.kind) is Sequence:
            how["action"] = "append"
        else:
            how["type"] = {int: count, float: number}.get(each.kind, str)
    spelled = f"--{each.name.rstrip('_').replace('_', '-')}"
    parser.add_argument(spelled, dest=each.name, default=SUPPRESS, help=each.help, **how)


def count(text: str) -> int:
    """
    >>> count("1e4"), count("16,384")
    (10000, 16384)
    """
    found = parse(text, "1024")
    if found != int(found):
        raise ValueError
    return int(found)


def number(text: str) -> float:
    """
    >>> number("0.95"), number("95 %")
    (0.95, 0.95)
    """
    return round(parse(text, "0.5"), 12)


def parsed(
    parser: ArgumentParser, function: Callable[..., Any], words: Sequence[str]
) -> tuple[list[Any], dict[str, Any]]:
    """What stands in its place, and the flags that are given. A job may also be given as -s."""
    for word in words:
        if word.endswith("=--"):  # argparse of 3.11 makes an empty list of it
            raise InputError("-- is no value", word.removesuffix("=--"), "give one")
    options, places = vars(parser.parse_intermixed_args(words)), list[Any]()
    jobs = options.pop("alias", [])
    for each in parameters_of(function):
        if each.many:
            places += [*jobs, *options.pop(each.name)]
        elif each.flag.place:
            value = options.pop(each.name)
            places.append(jobs[-1] if jobs and each.name == "job" else value)
    return places, options
