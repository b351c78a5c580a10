"""Elements as text. Whatever is not markup already is escaped, so nothing that somebody wrote can
become markup."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from html import escape
from typing import TypeAlias

from ckptcost.present.amounts import between, drawn_between, number
from ckptcost.report.parts import Quantity


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child: TypeAlias = "str | Iterable[Child] | None"
Row: TypeAlias = "Markup | Sequence[Child]"
"""of a table: its cells, or markup already"""
Value = str | float | bool | None

_VOID = frozenset(("meta", "link", "br", "input"))
_FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]|[\U0001fffe-\U0001ffff]"
)
"""no HTML may hold these, or (the directions of writing) they reach beyond the text that holds
them"""
_BREAKS = str.maketrans("\f\r", "  ")
"""which HTML may hold, and a terminal obeys"""
_LINK = re.compile(
    r"https?://[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::\d{1,5})?(?:[/?#](?:[\w.~!$&'()*+,;=:@/?#-]|%[0-9a-f]{2})*)?",
    re.I | re.A,
)


def text(of: str) -> Markup:
    """Text, escaped for content and for attributes alike.

    >>> text('<b title="x">')
    '&lt;b title=&quot;x&quot;&gt;'
    """
    return (
        of
        if isinstance(of, Markup)
        else Markup(escape(_FORBIDDEN.sub("\ufffd", of).translate(_BREAKS), quote=True))
    )


def join(children: Iterable[Child]) -> Markup:
    """Children one after the other; None is nothing."""
    return Markup(
        "".join(
            [
                text(each) if isinstance(each, str) else join(each)
                for each in children
                if each is not None
            ]
        )
    )


def el(tag: str, *children: Child, **attributes: Value) -> Markup:
    """An element. Attributes that are None or False are left out; class_ is class, aria_label is
    aria-label.

    >>> el("a", "R&D", href="#x", class_="to", hidden=True, title=None)
    '<a href="#x" class="to" hidden>R&amp;D</a>'
    """
    head = tag
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        spelled = name.rstrip("_").replace("_", "-")
        head += (
            f" {spelled}"
            if value is True
            else f' {spelled}="{text(value) if isinstance(value, str) else px(value)}"'
        )
    return Markup(f"<{head}>") if tag in _VOID else Markup(f"<{head}>{join(children)}</{tag}>")


def px(value: float) -> str:
    """A coordinate, to a tenth.

    >>> px(12.04), px(-0.01), px(7)
    ('12', '0', '7')
    """
    said = f"{value:.1f}"
    return "0" if said == "-0.0" else said.removesuffix(".0")


def link(url: str, said: str) -> Markup:
    """A link where the address is plainly one of the web, else the text with the address behind it.

    >>> link("javascript:alert(1)", "here")
    'here (javascript:alert(1))'
    """
    if _LINK.fullmatch(url):
        return el("a", said, href=url, rel="noreferrer")
    return text(said if said == url else f"{said} ({url})")


def data(value: float | None, said: str | None = None) -> Markup:
    """A number as people read it, with the exact one in the markup; a dash where unknown."""
    return (
        text(number(None))
        if value is None
        else el("data", said or number(value), value=repr(float(value)))
    )


def range_text(q: Quantity) -> str:
    """Low to high in words, empty where there is none."""
    if q.low is None or q.low == q.high:
        return ""
    if q.high is None:
        return f">{number(q.low)}"
    if q.interval == "p5-p95" and q.low >= 0:
        return drawn_between(q.low, q.high)
    return between(q.low, q.high) if q.low >= 0 else f"{number(q.low)} to {number(q.high)}"


def section(
    at: str, title: str, *children: Child, level: int = 2, class_: str | None = None
) -> Markup:
    """A part of the page with a heading and an address; nothing where nothing is in it."""
    inside = join(children)
    if not inside:
        return inside
    return el(
        "section",
        el(f"h{level}", title, id=f"{at}-h"),
        inside,
        id=at,
        class_=class_,
        aria_labelledby=f"{at}-h",
    )


def table(
    header: Sequence[Child],
    *bodies: Iterable[Row],
    label: str,
    caption: str = "",
    left: int = 1,
    words: Collection[int] = (),
    class_: str = "",
    at: str | None = None,
) -> Markup:
    """A table in a box of its own that scrolls where it is wider than the page.

    The first `left` columns are text, and those in `words`; the others are numbers.
    """
    texts = {*range(left), *words}
    heads = [
        el("th", each, scope="col", class_=None if i in texts else "n")
        for i, each in enumerate(header)
    ]
    shown = [
        el("tbody", [each if isinstance(each, Markup) else row(each, texts) for each in body])
        for body in bodies
    ]
    named = el("caption", el("span", caption)) if caption else None
    inside = el("table", named, el("thead", el("tr", heads)), shown, id=at)
    box = f"scroll {class_}".rstrip()
    return el("div", inside, class_=box, tabindex="0", role="region", aria_label=label)


def row(cells: Sequence[Child], texts: Collection[int] = (), class_: str | None = None) -> Markup:
    """A row whose first cell says what it is."""
    head, *rest = cells
    said = [el("td", each, class_=None if i in texts else "n") for i, each in enumerate(rest, 1)]
    return el("tr", el("th", head, scope="row"), said, class_=class_)


def band(words: str, columns: int) -> Markup:
    """A row that names the rows below it."""
    return el("tr", el("th", words, scope="rowgroup", colspan=str(columns)), class_="band")


def small(*children: Child) -> Markup | None:
    """A remark below a value; nothing where there is none."""
    inside = join(children)
    return el("span", inside, class_="small") if inside else None


def bullets(items: Iterable[Child], class_: str | None = None) -> Markup | None:
    found = [el("li", each) for each in items]
    return el("ul", found, class_=class_) if found else None


def note(*children: Child, class_: str = "note") -> Markup | None:
    inside = join(children)
    return el("p", inside, class_=class_) if inside else None
