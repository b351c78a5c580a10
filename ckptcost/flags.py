"""From a question's signature to the flags of its verb: nothing is said twice.

A parameter's annotation is `Annotated[type, Flag(help, metavar, place)]`. Its type says how often
it may be given and what is read; `**flags: Unpack[Flags]` stands for the flags of that TypedDict.
"""

from __future__ import annotations

import inspect
from argparse import SUPPRESS, Action, ArgumentParser, HelpFormatter
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, NoReturn, get_args, get_origin, get_type_hints

from ckptcost.errors import InputError, unknown_name
from ckptcost.scenario.units import parse


class Parameter(NamedTuple):
    """A parameter of a question."""

    name: str
    kind: Any
    flag: Any
    default: Any = None
    shared: bool = False
    """one of the flags that describe a job"""
    many: bool = False
    """takes all words that are left"""


class Parser(ArgumentParser):
    """argparse, whose complaints are ours."""

    def __init__(self, **how: Any) -> None:
        super().__init__(formatter_class=_Help, **{"allow_abbrev": False, **how})

    def error(self, message: str) -> NoReturn:
        where, _, problem = message.removeprefix("argument ").rpartition(": ")
        if where.endswith("required"):
            where, problem = "", f"{problem} is missing"
        verb = self.prog.split()[-1]
        raise InputError(problem, where or verb, f"what it takes: ckptcost help {verb}")


class _Help(HelpFormatter):
    """80 columns, and examples line by line."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=26, width=80)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = text.splitlines()
        return "\n".join(
            super(_Help, self)._fill_text(x, width, indent) if x[:2] != "  " else x for x in lines
        )

    def _format_action_invocation(self, action: Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        return f"{', '.join(action.option_strings)} {action.metavar or action.dest.upper()}"


def parameters_of(function: Callable[..., Any]) -> list[Parameter]:
    """Of a question, the shared flags last."""
    hints = get_type_hints(function, include_extras=True)
    found = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            shared = get_type_hints(get_args(hints[name])[0], include_extras=True)
            for key, hint in shared.items():
                kind, flag = get_args(hint)[:2]
                found.append(Parameter(key, kind, flag, shared=True))
        else:
            many = parameter.kind is inspect.Parameter.VAR_POSITIONAL
            kind, flag = get_args(hints[name])[:2]
            found.append(Parameter(name, kind, flag, parameter.default, many=many))
    return found


def add_parameters(parser: Any, function: Callable[..., Any]) -> None:
    """All flags of a question, with its docstring as the help."""
    head, _, examples = inspect.cleandoc(function.__doc__ or "").partition("\n\n")
    parser.description = " ".join(head.split())
    parser.epilog = "examples:\n" + "\n".join(f"  {line}" for line in examples.splitlines())
    mine = parser.add_argument_group("this question")
    job = parser.add_argument_group("the job")
    parameters = parameters_of(function)
    for each in parameters:
        if each.flag.place:
            _add_place(parser, each)
        else:
            _add_flag(job if each.shared else mine, each)
    if {"job", "plans"} & {each.name for each in parameters}:
        hidden = {"action": "append", "default": [], "help": SUPPRESS}
        parser.add_argument("-s", "--scenario", dest="alias", **hidden)


def _add_place(parser: Any, each: Parameter) -> None:
    is_needed = each.default is inspect.Parameter.empty
    how: dict[str, Any] = {"nargs": "*" if each.many else None if is_needed else "?"}
    if not is_needed:
        how["default"] = each.default
    metavar = each.flag.metavar or each.name.upper()
    added = parser.add_argument(each.name, metavar=metavar, help=_help(each), **how)
    added.complete = {"bash": "_shtab_compgen_files", "zsh": "_files", "tcsh": "f"}


def _add_flag(parser: Any, each: Parameter) -> None:
    how: dict[str, Any] = {"action": "store_true"}
    if each.kind is not bool:
        how = {"metavar": each.flag.metavar or ("N" if each.kind is int else "TEXT")}
        if get_origin(each.kind) is Literal:
            how["choices"] = get_args(each.kind)
        elif get_origin(each.kind) is Sequence:
            how["action"] = "append"
        else:
            how["type"] = {int: count, float: number}.get(each.kind, str)
    spelled = f"--{each.name.rstrip('_').replace('_', '-')}"
    parser.add_argument(spelled, dest=each.name, default=SUPPRESS, help=_help(each), **how)


def _help(each: Parameter) -> str:
    default = "" if each.default is inspect.Parameter.empty else each.default
    said = f"{each.flag.help} (default: {default})" if default else each.flag.help
    return str(said).replace("%", "%%")


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
    found, rest = parser.parse_known_intermixed_args(words)
    if rest:
        raise _left_over(parser, rest[0])
    options, places = vars(found), list[Any]()
    jobs = options.pop("alias", [])
    for each in parameters_of(function):
        if each.many:
            places += [*jobs, *options.pop(each.name)]
        elif each.flag.place:
            value = options.pop(each.name)
            places.append(jobs[-1] if jobs and each.name == "job" else value)
    return places, options


def _left_over(parser: ArgumentParser, word: str) -> InputError:
    """A flag that is none, or a word for which there is no place."""
    verb = parser.prog.split()[-1]
    if word.startswith("-"):
        known = [name for action in parser._actions for name in action.option_strings]
        return unknown_name("flag", word.partition("=")[0], known, verb)
    problem = f"{word[:60]!r} is one word too many"
    return InputError(problem, verb, f"what it takes: ckptcost help {verb}")
