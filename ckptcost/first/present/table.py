"""Rows and sentences as lines of a terminal and as Markdown, with nothing in them that either would
obey. No library, because `ckptcost model` would pay for it at every start."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import Final

WIDTH: Final = 80
"""of a terminal"""
LEAST = 8
"""a text column is not cut below this, unless even then the table is too wide"""
LEAST_OF_ALL = 5


def columns(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    left: int = 1,
    widest: int | None = None,
) -> list[str]:
    """Lines of a table whose first `left` columns are text; past `widest`, gaps narrow to one and
    then text is cut with "..".

    >>> columns(["tier", "kWh"], [["nas", "1,830"], ["nvme", "12"]])
    ['tier    kWh', 'nas   1,830', 'nvme     12']
    """
    cells = [[on_one_line(name) for name in header], *map(list, rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    gap = "  "
    if widest is not None:
        over = sum(widths) + len(gap) * (len(widths) - 1) - widest
        if over > 0:  # narrower gaps before shorter names
            over -= (len(gap) - 1) * (len(widths) - 1)
            gap = " "
        widths = [*_narrow(widths[:left], over), *widths[left:]]
        cut = map(_cut, zip(*cells, strict=True), widths)
        cells = [list(row) for row in zip(*cut, strict=True)]
    return [_line(row, widths, left, gap) for row in cells]


def _narrow(widths: list[int], over: int) -> list[int]:
    """Less by so much where that can be: the widest gives first, so that no name is cut for
    another's sake."""
    for least in (LEAST, LEAST_OF_ALL):
        while over > 0 and max(widths, default=0) > least:
            widths[widths.index(max(widths))] -= 1
            over -= 1
    return widths


def _cut(column: Sequence[str], width: int) -> list[str]:
    """Cells that are too long lose their end; their middle, where ends are what tells them apart.

    >>> _cut(["pretraining-01", "short"], 8), _cut(["pretraining-01", "pretraining-02"], 8)
    (['pretra..', 'short'], ['pre..-01', 'pre..-02'])
    """
    ended = [cell if len(cell) <= width else cell[: width - 2] + ".." for cell in column]
    if len(set(ended)) == len(set(column)) or width < LEAST:
        return ended
    first = (width - 2) // 2
    return [
        cell if len(cell) <= width else f"{cell[:first]}..{cell[len(cell) - (width - 2 - first) :]}"
        for cell in column
    ]


def _line(row: Sequence[str], widths: Sequence[int], left: int, gap: str) -> str:
    return gap.join(
        cell.ljust(width) if i < left else cell.rjust(width)
        for i, (cell, width) in enumerate(zip(row, widths, strict=True))
    ).rstrip()


_TOGETHER: Final = re.compile(
    r"(?<=\d) (?=(?:%|[kMGTP]?(?:Wh|W|B|J)|s|h|d|USD|GPU-h|kgCO2e|points)(?!\w))"
)
"""between a number and its unit no line is broken"""


def on_one_line(text: str) -> str:
    """What somebody else wrote, without what would move a terminal's cursor or break a row.

    >>> on_one_line("job\\x1b[31m\\n7")
    'job [31m 7'
    """
    return (
        text
        if text.isprintable()
        else "".join(letter if letter.isprintable() else " " for letter in text)
    )


def wrap_line(line: str, first: str = "", rest: str = "") -> list[str]:
    """Lines of the terminal's width. Below the first, what is indented is a command and stays
    whole, however long; so does a path, which somebody copies."""
    head, *more = line.split("\n")
    head = on_one_line(head)
    path = any("/" in word for word in head.split() if len(word) > WIDTH - len(rest))
    folded = textwrap.wrap(
        _TOGETHER.sub("\N{NO-BREAK SPACE}", head),
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
        break_long_words=not path,
    )
    out = [each.replace("\N{NO-BREAK SPACE}", " ") for each in folded]
    for each in more:
        whole = each.startswith(" ")
        out += [rest + on_one_line(each)] if whole else wrap_line(each, rest, rest)
    return out or [""]


# ---- Markdown

_MARKUP: Final = re.compile(
    r"[\\`\[\]|~$]|\*(?=\S)|(?<!\w)_+(?=\S)|<(?![= \d])|(?<! )>|>(?![= \d])"
    r"|&(?=#?\w+;)|#(?=\d)|(?<!\w)@(?=\w)|@(?=[\w.-]+\.\w)|://|www\.",
    re.I,
)
"""what begins markup, a link, or word to somebody"""
_BLOCK: Final = re.compile(r">|([-+*]|#{1,6}|\d{1,9}[.)])( |$)|[-=]+$")
"""what begins a quotation, a list, a rule or a heading where it begins a line"""
_CODE: Final = re.compile(r"(`[^`]+`)")


def _harmless(found: re.Match[str]) -> str:
    text = found[0]
    if text in "@#":
        return f"{text}&#8203;"
    if text == "://":
        return "&#58;//"
    if len(text) == 4 and text[-1] == ".":
        return f"{text[:-1]}&#46;"
    return "".join(f"&#{ord(each)};" for each in text)


def _inline(text: str) -> str:
    return _MARKUP.sub(_harmless, " ".join(on_one_line(text).split()))


def plain(text: str) -> str:
    """Somebody's words as Markdown that shows them and does nothing else: no markup, no link,
    nobody notified.

    >>> plain("a|b <b>*@me*"), plain("see www.x.org"), plain("cluster.gpu_price <= 5")
    ('a&#124;b &#60;b&#62;&#42;@&#8203;me*', 'see www&#46;x.org', 'cluster.gpu_price <= 5')
    """
    shown = _inline(text)
    return "&#8203;" + shown if _BLOCK.match(shown) else shown


def sentence(text: str) -> str:
    """The same of our own sentences, whose commands stay code.

    >>> sentence("`ckptcost model --tier a_|b` says *more*")
    '`ckptcost model --tier a_|b` says &#42;more*'
    """
    if "``" in text or "`" not in text:
        return plain(text)
    pieces = _CODE.split(" ".join(on_one_line(text).split()))
    told = [each if at % 2 else _MARKUP.sub(_harmless, each) for at, each in enumerate(pieces)]
    return ("&#8203;" if _BLOCK.match(pieces[0]) else "") + "".join(told)


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """A GitHub table; whatever a cell holds is shown and does nothing.

    >>> markdown(["tier", "kWh"], [["a|b", "3"]])
    ['| tier | kWh |', '| :--- | ---: |', '| a&#124;b | 3 |']
    """
    rule = [":---" if i < left else "---:" for i in range(len(header))]
    safe = [[_inline(cell) for cell in row] for row in [header, *rows]]
    return ["| " + " | ".join(row) + " |" for row in [safe[0], rule, *safe[1:]]]
