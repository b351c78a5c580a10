"""What goes wrong because of what somebody wrote, or because the answer cannot be written."""

from __future__ import annotations

from collections.abc import Iterable


class CkptcostError(Exception):
    """A problem with where it is and what to do about it; `where` is a file, a flag or a key."""

    exit_code = 70

    def __init__(self, problem: str, where: str = "", remedy: str = "") -> None:
        super().__init__(problem)
        self.problem, self.where, self.remedy = problem, where, remedy

    def __str__(self) -> str:
        said = f"{self.where}: {self.problem}" if self.where else self.problem
        return f"{said}\n  {self.remedy}" if self.remedy else said


class InputError(CkptcostError, ValueError):
    """A complaint about an input."""

    exit_code = 2

    def at(self, where: str) -> InputError:
        """The same, one place further out."""
        self.where = f"{where}: {self.where}" if self.where else where
        return self


class OutputError(CkptcostError):
    """The answer could not be written."""

    exit_code = 4


def unknown_name(kind: str, name: str, known: Iterable[str], where: str = "") -> InputError:
    """No such thing; the nearest names are offered."""
    from difflib import get_close_matches  # 4 ms to import, so it is deferred

    known = list(known)
    near = get_close_matches(name, known, 3) or sorted(known)[:8]
    return InputError(f"no {kind} is called {name[:80]!r}", where, f"try {', '.join(near)}")


def visible(text: str) -> str:
    """With control characters in sight, so that no name can move the cursor or split a line.

    >>> visible("a\\x1b[2Jb")
    'a\\\\x1b[2Jb'
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
