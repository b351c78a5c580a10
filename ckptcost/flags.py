"""From a question's signature to the flags of its verb: nothing is said twice.

A parameter's annotation is `Annotated[type, Flag(help, metavar, place)]`. Its type says how often
it may be given and what is read; `**flags: Unpack[Flags]` stands for the flags of that TypedDict.
"""

from __future__ import annotations

import inspect
from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, HelpFormatter
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, NoReturn, get_args, get_origin, get_type_hints

from ckptcost.errors import InputError


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

    @property
    def spelled(self) -> str:
        return f"--{self.name.rstrip('_').replace('_', '-')}"


class Parser(ArgumentParser):
    """argparse, whose complaints are ours."""

    def __init__(self, **how: Any) -> None:
        how.setdefault("allow_abbrev", False)
        super().__init__(formatter_class=_Help, **how)

    def error(self, message: str) -> NoReturn:
        where, _, problem = message.removeprefix("argument ").partition(": ")
        where, problem = (where, problem) if problem else ("", where)
        raise InputError(problem, where, f"its flags: ckptcost help {self.prog.split()[-1]}")


class _Help(HelpFormatter):
    """80 columns, and examples line by line."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=26, width=80)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = text.splitlines()
        return "\n".join(
            super(_Help, self)._fill_text(x, width, indent) if x[:2] != "  " else x for x in lines
        )

    def _format_action_invocation(self, action: Any) -> str:
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
            found += [Parameter(key, *_read(hint), shared=True) for key, hint in shared.items()]
        else:
            many = parameter.kind is inspect.Parameter.VAR_POSITIONAL
            found.append(Parameter(name, *_read(hints[name]), parameter.default, many=many))
    return found


def _read(hint: Any) -> tuple[Any, Any]:
    kind, flag = get_args(hint)[:2]
    return kind, flag


def add_parameters(parser: Any, function: Callable[..., Any], with_places: bool) -> None:
    """All flags of a question, with its docstring as the help."""
    doc = inspect.cleandoc(function.__doc__ or "")
    head, _, examples = doc.partition("\n\n")
    parser.description = " ".join(head.split())
    parser.epilog = "examples:\n" + "\n".join(f"  {line}" for line in examples.splitlines())
    parameters = parameters_of(function)
    mine = parser.add_argument_group("this question")
    job = parser.add_argument_group("the job")
    for each in parameters:
        if not each.flag.place:
            _add_flag(job if each.shared else mine, each)
        elif with_places:
            _add_place(parser, each)
    if {"job", "plans"} & {each.name for each in parameters}:
        hidden = {"action": "append", "default": SUPPRESS, "help": SUPPRESS}
        parser.add_argument("-s", "--scenario", dest="alias", **hidden)


def _add_place(parser: Any, each: Parameter) -> None:
    metavar = each.flag.metavar or each.name.upper()
    nargs = "*" if each.many else None if each.default is inspect.Parameter.empty else "?"
    said = (
        f"{each.flag.help} (default: {each.default})"
        if nargs == "?" and each.default
        else each.flag.help
    )
    added = parser.add_argument(
        each.name, nargs=nargs, metavar=metavar, help=said.replace("%", "%%")
    )
    added.complete = {"bash": "_shtab_compgen_files", "zsh": "_files", "tcsh": "f"}


def _add_flag(parser: Any, each: Parameter) -> None:
    how: dict[str, Any] = {"dest": each.name, "default": SUPPRESS}
    said = each.flag.help
    if each.kind is bool:
        how["action"] = "store_true"
    else:
        how["metavar"] = each.flag.metavar or ("N" if each.kind is int else "TEXT")
        if get_origin(each.kind) is Literal:
            how["choices"] = get_args(each.kind)
        elif get_origin(each.kind) in (Sequence, tuple, list):
            how["action"] = "append"
        else:
            how["type"] = _reader(each.kind)
        if each.default and not each.shared and each.default is not inspect.Parameter.empty:
            said = f"{said} (default: {each.default})"
    parser.add_argument(each.spelled, help=said.replace("%", "%%"), **how)


def _reader(kind: Any) -> Callable[[str], Any]:
    kinds = {kind, *get_args(kind)}
    return str if str in kinds else whole if int in kinds else share if float in kinds else str


def whole(text: str) -> int:
    """
    >>> whole("1e4"), whole("16,384")
    (10000, 16384)
    """
    number = share(text.replace(",", ""))
    if number != int(number):
        raise ArgumentTypeError(f"{text[:60]!r} is no whole number")
    return int(number)


def share(text: str) -> float:
    """
    >>> share("0.95"), share("95 %")
    (0.95, 0.95)
    """
    number = text.strip().removesuffix("%")
    try:
        found = float(number)
    except ValueError:
        found = float("nan")
    if not abs(found) < 1e15:
        raise ArgumentTypeError(f"{text[:60]!r} is no number")
    return found / 100 if number != text.strip() else found


def placed(
    verb: str, parameters: Sequence[Parameter], words: Sequence[str], jobs: Sequence[str] = ()
) -> list[str]:
    """The words without a flag, as the parameters that take them; `jobs` were given as -s."""
    takers = [each for each in parameters if each.flag.place]
    names = [each.name for each in takers]
    at = names.index("job" if "job" in names else "plans") if jobs else len(words)
    found = [*words[:at], *jobs, *words[at:]]
    _check_count(verb, takers, found)
    return found


def _check_count(verb: str, takers: Sequence[Parameter], found: Sequence[str]) -> None:
    """Neither too few nor too many."""
    many = any(each.many for each in takers)
    needed = [each for each in takers if each.default is inspect.Parameter.empty and not each.many]
    if len(found) < len(needed):
        lacking = needed[len(found)]
        metavar, usage = lacking.flag.metavar or lacking.name.upper(), f"see ckptcost help {verb}"
        raise InputError(f"{metavar} is missing", verb, f"{lacking.flag.help}; {usage}")
    if len(found) > len(takers) and not many:
        problem = f"{found[len(takers)][:60]!r} is one word too many"
        raise InputError(problem, verb, f"what it takes: ckptcost help {verb}")
