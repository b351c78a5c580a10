"""Every error ckptcost raises on purpose, and the exit code each one means.

CkptcostError 1          the command could not be carried out
|-- InputError 2         a flag, scenario, catalogue or report file is wrong: where, what, remedy
|   |-- UnitError        a quantity without a unit, or with the wrong one
|   |-- UnknownName      no such entry; carries "did you mean"
|   `-- RunFileError     not a run file, or one of a newer version
|-- OutputError 4        the result could not be written (full disk, closed pipe, no permission)
|-- MeterUnavailable 5   what was asked for cannot be measured here: reason and remedy
`-- MeterLost 5          it answered before and does not now; a recorder goes on and says so

The front ends catch CkptcostError and nothing wider; anything else is a defect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ckptcost import errors as second


def brief(text: object, most: int = 60) -> str:
    """What somebody wrote, quoted and cut where a message would drown in it."""
    shown = repr(text)
    return shown if len(shown) <= most else shown[: most - 4] + "..." + shown[:1]


_OBEYED = [*range(9), *range(11, 32), *range(127, 160), 0x200E, 0x200F]
_OBEYED += [*range(0x202A, 0x202F), *range(0x2066, 0x206A)]
IN_JSON = {code: f"\\u{code:04x}" for code in _OBEYED if code > 126}
"""the same within a text of JSON, which has escapes for the others anyway: for `str.translate`"""
_SHOWN = {code: ascii(chr(code))[1:-1] for code in _OBEYED}


def visible(text: str) -> str:
    r"""What a terminal would obey, and marks that turn the direction of writing, as escapes: a name
    in a message may be anybody's.

    >>> print(visible("us\x1b[31m"))
    us\x1b[31m
    """
    return text.translate(_SHOWN)


class CkptcostError(second.CkptcostError):
    """Whoever catches the second edition's errors catches these too."""

    exit_code = 1
    __str__ = Exception.__str__


class Argument(str):
    """An argument of a question as the place of an error, with what was given where that helps:
    Python says its name, the command line its flag."""

    name: str
    value: object

    def __new__(cls, name: str, value: object = "") -> Argument:
        self = super().__new__(cls, f"{name} {value}".rstrip())
        self.name, self.value = name, value
        return self


class InputError(CkptcostError, second.InputError):
    """Something the user gave is wrong. `where` is a file or a parameter, `key` the place in it."""

    exit_code = 2

    def __init__(self, problem: str, *, where: str = "", key: str = "", remedy: str = "") -> None:
        self.problem, self.where, self.key, self.remedy = problem, where, key, remedy
        Exception.__init__(self, str(self))

    def at(self, where: str = "", key: str = "") -> InputError:
        """The same complaint with its place filled in where it was still unknown."""
        self.where = self.where or where
        self.key = self.key or key
        self.args = (str(self),)
        return self

    def spelled(self, spell: Callable[[str], str]) -> InputError:
        """The same complaint to somebody who says parameters in another way, as by flags."""
        self.where, self.key = (
            f"{spell(place.name)} {place.value}".strip() if isinstance(place, Argument) else place
            for place in (self.where, self.key)
        )
        return self

    def __str__(self) -> str:
        place = ": ".join(
            part if len(part) <= 300 else part[:297] + "..."
            for part in (self.where, self.key)
            if part
        )
        text = f"{place}: {self.problem}" if place else self.problem
        return f"{text}. {self.remedy}" if self.remedy else text


class UnitError(InputError):
    """A quantity's text has no unit, an unknown unit or the wrong dimension."""


class UnknownName(InputError):
    """A name that is not in the catalogue, or not a key of the file."""

    def __init__(
        self,
        kind: str,
        name: str,
        known: Iterable[str],
        *,
        where: str = "",
        key: str = "",
        lists: str = "`ckptcost catalog` lists them",
    ) -> None:
        import difflib

        known = sorted(known)
        near = difflib.get_close_matches(name.lower(), [k.lower() for k in known], n=3, cutoff=0.55)
        near = [next(k for k in known if k.lower() == low) for low in near] or [
            k for k in known if name.lower() in k.lower()
        ][:3]
        if near:
            remedy = "did you mean " + " or ".join(repr(k) for k in near) + "?"
        elif len(known) <= 12:
            remedy = "known: " + ", ".join(known)
        else:
            remedy = f"there are {len(known)}; {lists}"
        super().__init__(f"no {kind} named {brief(name)}", where=where, key=key, remedy=remedy)

    def __reduce__(self) -> tuple[object, ...]:
        """To another process it goes as what it says."""
        return InputError, (self.problem,), vars(self)


class OutputError(CkptcostError, second.OutputError):
    exit_code = 4


class RunFileError(InputError):
    """A run file that cannot be read: not ours, or written by a newer version."""


class MeterUnavailable(CkptcostError):
    """There is nothing to read, and why."""

    exit_code = 5

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(f"{reason}. {remedy}" if remedy else reason)
        self.reason, self.remedy = reason, remedy


def not_there(error: ImportError) -> str:
    """What is wrong with a library, after its name."""
    return (
        "is not installed"
        if isinstance(error, ModuleNotFoundError)
        else f"cannot be used ({error})"
    )


class MeterLost(MeterUnavailable):
    """A meter that answered before does not answer any more."""
