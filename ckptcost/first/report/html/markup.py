"""Elements as text, and the style sheet for them. Whatever is not markup already is escaped, so
nothing that somebody wrote can become markup."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from html import escape
from typing import TypeAlias

from ckptcost.first.present.amounts import between, drawn_between, number
from ckptcost.first.report.parts import Quantity


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child: TypeAlias = "str | Iterable[Child] | None"
Row: TypeAlias = "Markup | Sequence[Child]"
"""of a table: its cells, or markup already"""
Value = str | float | bool | None

_VOID = frozenset(("meta", "link", "br", "input"))
_FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef"
    "\ufffe\uffff]|[\U0001fffe-\U0001ffff]"
)
"""no HTML may hold these, or (the directions of writing) they reach beyond the text that holds
them"""
_BREAKS = str.maketrans("\f\r", "  ")
"""which HTML may hold, and a terminal obeys"""
_LINK = re.compile(
    r"https?://[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::\d{1,5})?"
    r"(?:[/?#](?:[\w.~!$&'()*+,;=:@/?#-]|%[0-9a-f]{2})*)?",
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


def data(value: float | None) -> Markup:
    """A number as people read it, with the exact one in the markup; a dash where unknown."""
    return (
        text(number(None)) if value is None else el("data", number(value), value=repr(float(value)))
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


def section(at: str, title: str, *children: Child, level: int = 2) -> Markup:
    """A part of the page with a heading and an address; nothing where nothing is in it."""
    inside = join(children)
    if not inside:
        return inside
    heading = f"{at}-h"
    return el("section", el(f"h{level}", title, id=heading), inside, id=at, aria_labelledby=heading)


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


# ---- the style sheet: light, dark, a telephone, and paper, where all must be told apart in grey

LIGHT = {
    "page": "#ffffff",
    "card": "#f5f7f9",
    "ink": "#1b1f24",
    "muted": "#525b66",
    "rule": "#d3d9e0",
    "link": "#0b4fa8",
    "red": "#b3121d",
    "on-red": "#ffffff",
    "warn": "#fff6dc",
    "warn-ink": "#533a00",
    "grid": "#e4e8ec",
    "hollow": "#e9ecf0",
    "total": "#2b3440",
    "save": "#1f5fa8",
    "failure": "#c26a00",
    "keep": "#4d8b6a",
    "l1": "#0b4fa8",
    "l2": "#b34a00",
    "l3": "#1a7353",
    "l4": "#7a3fb8",
    "l5": "#59636e",
    "l6": "#a3123f",
    "bar": "#3a78b8",
    "stall": "#c4473a",
    "drain": "#e8a24a",
}
DARK = {
    "page": "#12161b",
    "card": "#1b2128",
    "ink": "#e9edf1",
    "muted": "#a7b1bc",
    "rule": "#37414c",
    "link": "#86b8f5",
    "red": "#d3303b",
    "on-red": "#ffffff",
    "warn": "#3a2f12",
    "warn-ink": "#f6dfa4",
    "grid": "#2a323b",
    "hollow": "#262e37",
    "total": "#c8d1da",
    "save": "#5b9be0",
    "failure": "#e39a45",
    "keep": "#6fb592",
    "l1": "#7fb3f2",
    "l2": "#f0a05a",
    "l3": "#6fcfa5",
    "l4": "#c9a3f2",
    "l5": "#aab4bf",
    "l6": "#f28aa8",
    "bar": "#5b93cf",
    "stall": "#e0675a",
    "drain": "#8a5a1c",
}
PANELS = 6
"""pictures that can be switched between: one for each quantity's bill"""
DASHES = ("", "7 3", "2 3", "9 3 2 3", "5 5", "1 4")
"""of the lines 1 to 6, so that they are told apart without colour"""


def _variables(colours: dict[str, str]) -> str:
    return "".join(f"--{name}:{value};" for name, value in colours.items())


_BODY = """
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--page);color:var(--ink);overflow-wrap:anywhere}
body,svg text{font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,\
sans-serif}
.page{max-width:1140px;margin:0 auto;padding:28px 20px 48px}
h1{font-size:1.9rem;line-height:1.2;margin:0 0 6px;letter-spacing:-.01em}
h2{font-size:1.3rem;line-height:1.25;margin:0 0 12px}
h3{font-size:1.08rem;line-height:1.3;margin:0 0 10px}
h4{font-size:1rem;margin:18px 0 8px}
p{margin:0 0 10px;max-width:78ch}
a{color:var(--link)}
ul{margin:0 0 10px;padding-left:1.2em}
li{margin:3px 0}
code{font:.9em ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
section{margin:34px 0 0}
h2.appendix{margin:48px 0 -8px;padding-top:22px;border-top:3px solid var(--rule)}
.statement{border-top:3px solid var(--rule);padding-top:22px;margin-top:44px}
.lead{font-size:1.05rem;color:var(--muted);margin-bottom:4px}
.note,.small,figcaption,caption,.lead{color:var(--muted)}
.note,figcaption{font-size:.875rem}
.small{display:block;font-size:.8rem;line-height:1.35}
.tag{font-size:.78rem;font-weight:400;border:1px solid var(--rule);border-radius:3px;\
padding:0 6px;color:var(--muted);white-space:nowrap}
.simulated,.beware{padding:10px 14px;border-radius:4px;max-width:none}
.simulated{background:var(--red);color:var(--on-red);font-weight:700;margin:14px 0}
.beware{background:var(--warn);color:var(--warn-ink);border-left:4px solid var(--failure);\
margin:0 0 12px}
nav{margin:18px 0 0;padding:10px 0;border-top:1px solid var(--rule);\
border-bottom:1px solid var(--rule);font-size:.9rem}
nav ul{list-style:none;margin:0;padding:0;display:flex;flex-wrap:wrap;gap:2px 18px}
nav a{display:inline-block;padding:4px 0}
.cards{display:grid;grid-template-columns:repeat(3,minmax(0,1fr));gap:12px;margin:20px 0 14px;\
padding:0;list-style:none}
.cards li{background:var(--card);border:1px solid var(--rule);border-radius:6px;padding:13px 15px;\
margin:0}
.what{font-size:.9rem;font-weight:600;display:flex;justify-content:space-between;\
align-items:baseline;flex-wrap:wrap;gap:0 8px}
.nb,.unit{white-space:nowrap}
.cards .value{font-size:1.72rem;line-height:1.2;font-weight:650;margin:2px 0 3px;\
font-variant-numeric:tabular-nums}
.cards .unit{font-size:.95rem;font-weight:500;color:var(--muted)}
.cards .apart{border-style:dashed}
dl.facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(210px,1fr));gap:8px 22px;\
margin:14px 0 0;font-size:.9rem}
dl.facts.exact{grid-template-columns:repeat(auto-fill,minmax(300px,1fr))}
dl.facts div{min-width:0}
dt{color:var(--muted);font-size:.8rem}
dd{margin:0}
.findings{font-size:1.05rem;padding-left:1.1em}
.findings li{margin:6px 0;max-width:78ch}
.scroll{overflow-x:auto;margin:0 0 10px;max-width:100%}
.scroll:focus-visible,.switch input:focus-visible+label,\
a:focus-visible{outline:2px solid var(--link);outline-offset:2px}
table{border-collapse:collapse;width:100%;font-size:.875rem;font-variant-numeric:tabular-nums}
caption{text-align:left;padding:0 0 6px;font-size:.875rem}
caption span{position:sticky;left:0;display:inline-block;max-width:calc(100vw - 40px)}
th,td{text-align:left;vertical-align:top;padding:6px 14px 6px 0;\
border-bottom:1px solid var(--rule);overflow-wrap:normal}
th:last-child,td:last-child{padding-right:0}
thead th{border-bottom:2px solid var(--muted);vertical-align:bottom;font-weight:600}
tbody th{font-weight:500;min-width:11em}
.n{text-align:right;white-space:nowrap}
.n .small{white-space:normal;min-width:7em}
.band th{font-weight:650;padding-top:14px;color:var(--muted)}
.total th,.total td{font-weight:700;border-top:2px solid var(--muted);\
border-bottom:2px solid var(--muted)}
.total .small{font-weight:400}
.best th,.best td{font-weight:650}
.claimed{font-style:italic;color:var(--muted)}
.wide-table table{min-width:760px}
.words td{overflow-wrap:anywhere;min-width:6em}
.factors tbody th{width:38%}
.factors td:nth-child(4){min-width:11em}
.sources td:nth-child(3){min-width:16em}
.bill .n .small{white-space:normal;min-width:5.2em}
.compared .n .small{min-width:0}
.bill thead .n,.compared thead .n{white-space:normal}
.n+td:not(.n),.n+th:not(.n){padding-left:10px}
tr:has(:target){background:var(--warn);color:var(--warn-ink)}
figure{margin:0 0 12px}
figcaption{margin-top:4px;max-width:90ch}
svg{display:block;width:100%;height:auto;overflow:visible}
svg.narrow{display:none;max-width:480px}
svg text{font-size:12px;fill:var(--ink)}
svg .under{fill:var(--page)}
svg .dim{fill:var(--muted)}
svg .strong{font-weight:650}
svg .end{text-anchor:end}
svg .mid{text-anchor:middle}
svg .g{stroke:var(--grid);fill:none}
svg .axis{stroke:var(--muted);fill:none}
svg .now{stroke:var(--red);stroke-width:2;fill:none}
svg .best{stroke:var(--muted);stroke-width:1.2;stroke-dasharray:4 3;fill:none}
svg .hollow{fill:var(--hollow);stroke:none}
svg .bar{fill:var(--bar)}
svg .stall{fill:var(--stall)}
svg .drain{fill:var(--drain)}
.bars{list-style:none;margin:0 0 8px;padding:0;font-size:.82rem;font-variant-numeric:tabular-nums}
.bars li{display:grid;grid-template-columns:15.5em 1fr 12.5em;gap:0 10px;align-items:center;\
margin:0;padding:3px 0}
.bars .label{text-align:right}
.bars .small{line-height:1.1}
.bars .total{font-weight:650;border-top:1px solid var(--rule);padding-top:6px}
.track{position:relative;height:18px;border-left:1px solid var(--muted)}
.track span{position:absolute;top:0;height:100%;min-width:1.5px}
.f-total{background:var(--total)}.f-save{background:var(--save)}\
.f-failure{background:var(--failure)}.f-keep{background:var(--keep)}
.track .range{top:100%;height:7px;border:solid var(--ink);border-width:0 1.5px;\
background:linear-gradient(var(--ink),var(--ink)) 0 50%/100% 1.5px no-repeat}
.track .range.open{border-right:0}
.track .range.open::after{content:"";position:absolute;right:-1px;top:0;\
border:3.5px solid transparent;border-left:7px solid var(--ink);border-right:0}
svg .line{fill:none;stroke-width:2;stroke-linejoin:round}
svg .line.whole{stroke-dasharray:none}
svg .faint{fill-opacity:.2;stroke:none}
svg .cut{stroke:var(--ink);stroke-opacity:.35;stroke-dasharray:3 3;fill:none}
.switch{border:0;margin:0;padding:0;min-width:0}
.switch>legend{padding:0;font-size:.875rem;color:var(--muted);margin-bottom:6px}
.switch input{position:absolute;opacity:0}
.switch>label{display:inline-block;border:1px solid var(--rule);border-radius:4px;\
padding:5px 13px;margin:0 6px 10px 0}
.switch>label{cursor:pointer;font-size:.9rem}
.switch input:checked+label{background:var(--ink);color:var(--page);border-color:var(--ink)}
.panel{display:none}
.ends{margin-top:40px;border-top:1px solid var(--rule);padding-top:12px;font-size:.875rem;\
color:var(--muted)}
"""
_NARROW = """
@media (max-width:720px){
.page{padding:18px 16px 36px}
h1{font-size:1.45rem}
.cards{grid-template-columns:repeat(2,minmax(0,1fr));gap:9px}
.cards li{padding:10px 11px}
.cards .value{font-size:1.32rem}
.bars li{grid-template-columns:1fr auto}
.bars .label{text-align:left}
.bars .track{grid-area:2/1/auto/span 2}
svg.wide{display:none}
svg.narrow{display:block}
dl.facts{grid-template-columns:1fr 1fr}
dl.facts.exact{grid-template-columns:1fr}
tbody th[scope=row],thead th:first-child{position:sticky;left:0;background:var(--page);\
min-width:7.5em}
}
"""
_PAPER = """
@page{size:A4;margin:14mm 13mm}
@media print{
html{font-size:10.5px}
.appendix{break-before:page}
body{line-height:1.4}
.page{max-width:none;padding:0}
nav{display:none}
section{margin-top:20px}
.statement{break-before:page;margin-top:0;border:0;padding:0}
h1,h2,h3,h4,caption{break-after:avoid}
.cards{grid-template-columns:repeat(3,1fr);gap:7px}
.cards li{padding:7px 9px;break-inside:avoid}
dl.facts{grid-template-columns:repeat(4,1fr)}
dl.facts.exact{grid-template-columns:1fr 1fr}
tr,figure,.note,.beware,.findings li{break-inside:avoid}
thead{display:table-header-group}
.scroll{overflow:visible}
caption span{max-width:none}
table,.wide-table table{font-size:8.2px;line-height:1.3;min-width:0}
table .small{font-size:7.4px}
th,td{padding:3px 7px 3px 0;overflow-wrap:anywhere}
tbody th{min-width:0}
.n .small{min-width:0}
.words td,.words td:nth-child(n){min-width:0}
.factors td:nth-child(4){width:19%}
.sources a::after{content:" " attr(href);font-size:6.8px}
a{color:inherit}
.simulated,.switch,.bars{-webkit-print-color-adjust:exact;print-color-adjust:exact}
.simulated{border:2px solid #b3121d}
.switch>legend,.switch input,.switch>label{display:none}
.switch{display:grid;grid-template-columns:1fr 1fr;gap:6px 20px}
.panel{display:block;break-inside:avoid}
.bars{font-size:7.8px;line-height:1.25}
.bars li{grid-template-columns:13.5em 1fr 10.5em;padding:1px 0}
.bars .small{font-size:6.6px}
.track{height:11px}
.track .range{top:calc(100% + 1.5px);height:3.5px}
.track .range.open::after{border-width:2px;border-left-width:4px;border-right-width:0}
svg.wide{display:block}svg.narrow{display:none}
.switch svg.wide{display:none}.switch svg.narrow{display:block}
}
"""


def style_sheet() -> str:
    """All of it. The dark colours are for screens: paper is white."""
    numbered = "".join(
        f"svg .l{n}{{stroke:var(--l{n});stroke-dasharray:{DASHES[n - 1] or 'none'}}}"
        f"svg .s{n}{{fill:var(--l{n})}}"
        for n in range(1, 7)
    )
    shown = (
        ",".join(f".switch input:nth-of-type({n}):checked~.panel-{n}" for n in range(1, PANELS + 1))
        + "{display:block}"
    )
    return (
        f":root{{color-scheme:light dark;{_variables(LIGHT)}}}"
        "@media screen and"
        f" (prefers-color-scheme:dark){{:root{{{_variables(DARK)}}}}}{_BODY}{numbered}\n{shown}"
        f"{_NARROW}{_PAPER}"
    )
