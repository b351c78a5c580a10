"""The commands and Python examples of a page: what they are, and how their output is compared.

A block begins with three backticks and `console` or `python`. In a console block a line `$ ...` is
a command; what follows it is its output, in which a line `...` stands for any number of lines. A
command that ends in `# exits 3` must end with that code, any other with 0. A `toml` block whose
first line is `# file: NAME` is a file that later commands find.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLANNING = ("README.md", "docs/quickstart.md", "docs/guide/plan.md", "docs/guide/reports.md")
"""pages whose commands are run"""
ANY = "..."
_BLOCK = re.compile(r"^```(console|python|toml)\n(.*?)^```$", re.M | re.S)
_EXITS = re.compile(r"\s+# exits (\d+)$")


@dataclass
class Command:
    """A line that begins with "$ ", and the output that a page shows of it."""

    line: str
    shown: list[str] = field(default_factory=list)

    @property
    def words(self) -> list[str]:
        return shlex.split(_EXITS.sub("", self.line), comments=True)

    @property
    def code(self) -> int:
        """The exit code that the page promises."""
        found = _EXITS.search(self.line)
        return int(found[1]) if found else 0


@dataclass
class Block:
    """A block of a page, and where its text begins and ends in it."""

    kind: str
    text: str
    begin: int
    end: int

    def commands(self) -> list[Command]:
        found: list[Command] = []
        for line in self.text.splitlines():
            if line.startswith("$ "):
                found.append(Command(line[2:]))
            elif found:
                found[-1].shown.append(line)
        return found

    @property
    def file(self) -> str:
        """The file that a toml block is; "" if it is none."""
        first = self.text.partition("\n")[0]
        return first.removeprefix("# file: ") if first.startswith("# file: ") else ""


def blocks_of(page: str) -> list[Block]:
    """All blocks of a page that are examples."""
    return [Block(m[1], m[2], m.start(2), m.end(2)) for m in _BLOCK.finditer(page)]


def as_typed(commands: list[Command]) -> str:
    """The text of a console block."""
    return "".join("\n".join([f"$ {c.line}", *c.shown]) + "\n" for c in commands)


def chunks_of(shown: list[str]) -> list[list[str]]:
    """Lines between those that stand for anything."""
    chunks: list[list[str]] = [[]]
    for line in shown:
        if line == ANY:
            chunks.append([])
        else:
            chunks[-1].append(line)
    return chunks


def matches(shown: list[str], printed: list[str]) -> bool:
    """Whether output is what a page shows of it.

    >>> matches(["one", "...", "four"], ["one", "two", "three", "four"])
    True
    >>> matches(["one"], ["one", "two"])
    False
    """
    first, *others = chunks_of(shown)
    if printed[: len(first)] != first:
        return False
    if not others:
        return len(printed) == len(first)
    at, last = len(first), others.pop()
    for chunk in others:
        found = (n for n in range(at, len(printed) + 1) if printed[n : n + len(chunk)] == chunk)
        place = next(found, None)
        if place is None:
            return False
        at = place + len(chunk)
    return len(printed) - len(last) >= at and printed[len(printed) - len(last) :] == last


def renewed(shown: list[str], printed: list[str]) -> list[str]:
    """The same extract of new output: each run of lines is taken from where it fits best.

    >>> renewed(["a 1", "...", "c 1", "..."], ["a 2", "b 2", "c 2", "d 2"])
    ['a 2', '...', 'c 2', '...']
    """
    chunks = chunks_of(shown)
    if len(chunks) == 1:
        return printed
    found, at = list[str](), 0
    for n, chunk in enumerate(chunks):
        size = len(chunk)
        latest = max(at, len(printed) - size)
        places = [at] if n == 0 else [latest] if n == len(chunks) - 1 else range(at, latest + 1)
        best = max(places, key=lambda place: _likeness(chunk, printed[place : place + size]))
        found += [*([ANY] if n else []), *printed[best : best + size]]
        at = best + size
    return found


def _likeness(chunk: list[str], lines: list[str]) -> float:
    pairs = zip(chunk, lines, strict=False)
    return sum(SequenceMatcher(None, a, b).ratio() for a, b in pairs)
