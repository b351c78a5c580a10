"""Pages for the tests: with everything in them, and with words that try to become markup."""

from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any, NamedTuple

import pytest
from statements import document, statement

from ckptcost.first.report.document import Report
from ckptcost.first.report.html.page import Extras
from ckptcost.first.report.html.pictures import IntervalPicture
from ckptcost.first.report.html.pictures_of_time import PowerPlot, SaveBand
from ckptcost.first.report.html.svg import PlotLine
from ckptcost.first.report.study import Column, Table

VOID = {"meta", "link", "br", "input"}


class Tag(NamedTuple):
    name: str
    attributes: dict[str, str | None]
    inside: tuple[str, ...]
    """the elements around it, outermost first"""


class Page(HTMLParser):
    """What a parser that is not ours finds."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[Tag] = []
        self.open: list[str] = []
        self.text: dict[str, list[str]] = {}
        self.odd: list[str] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs)
        self.tags.append(Tag(tag, dict(attrs), tuple(self.open)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.setdefault(self.open[-1] if self.open else "", []).append(data)

    def handle_comment(self, data: str) -> None:
        self.odd.append(data)

    def unknown_decl(self, data: str) -> None:
        self.odd.append(data)

    def handle_pi(self, data: str) -> None:
        self.odd.append(data)

    def words(self) -> str:
        return "\n".join(
            "".join(each) for name, each in self.text.items() if name not in ("script", "style")
        )

    def of(self, name: str) -> list[Tag]:
        return [tag for tag in self.tags if tag.name == name]


def full_extras(words: str = "nas-hdd", begin: float = 0.0) -> Extras:
    """Everything that a caller can add."""
    xs = [600.0 * 1.2**n for n in range(25)]
    t = [begin + n for n in range(900)]
    bands = [
        SaveBand(words, begin + 100.0 * n, begin + 100.0 * n + 20, begin + 100.0 * n + 60)
        for n in range(8)
    ]
    gpu: list[float | None] = [310.0 if n % 100 < 20 else 640.0 for n in range(900)]
    gpu[450:470] = [None] * 20
    columns = (Column("tier", "tier"), Column("kwh", "kWh", "kWh"), Column("said", "claimed"))
    rows = [
        {"tier": words, "kwh": 2150.0, "said": words},
        {"tier": "other", "kwh": 1.0, "said": ""},
    ]
    return Extras(
        title="",
        answer=["It pays."],
        findings=[words, "Saving every 14.8 h would cost less."],
        curve=IntervalPicture(
            xs,
            [
                PlotLine(words, [1e9 / x + 20 * x for x in xs], "USD"),
                PlotLine("energy", [1e6 / x + x for x in xs], "kWh"),
            ],
            7200.0,
            {"time": 53000.0, "usd": 53001.0, words: 44000.0, "never": None},
            words,
        ),
        power=PowerPlot(
            t, [PlotLine("GPUs", gpu, "W"), PlotLine(words, [120.0] * 900, "W")], bands, words
        ),
        tables=[Table("tiers", words, columns, rows, words)],
        more=[Table("others", words, columns, rows, words)],
        care=[("CODE", words)],
    )


FREE = frozenset(
    """name label how organisation team checkpoint tier cluster framework accelerator site grid grid_zone country region reason component
    counterfactual text set_by note title publisher url licence version retrieved instrument scope message uncertainty source price_unit
    path run_id method_version""".split()  # noqa: SIM905
)
"""keys of a document under which anybody may write anything"""


def painted(words: str) -> Report:
    """Every free text of a document replaced."""
    plain = document(
        statement(kind="measured"), statement(run_id="b", rows=2, market=None)
    ).model_dump(mode="json")
    plain["reproducibility"]["inputs"] = [{"path": "x", "bytes": 1, "sha256": "0" * 64}]

    def walk(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            if key == "tags":
                return {words: words}
            return {
                k: v if k == "series" or (key == "tool" and k == "name") else walk(v, k)
                for k, v in value.items()
            }
        if isinstance(value, list):
            return [
                walk(each, "reason" if key in ("included", "command") else key) for each in value
            ]
        return words if isinstance(value, str) and key in FREE else value

    return Report.model_validate(walk(plain))


@pytest.fixture(scope="session")
def parsed() -> Callable[[str], Page]:
    return Page


@pytest.fixture(scope="session")
def extras_with() -> Callable[..., Extras]:
    return full_extras


@pytest.fixture(scope="session")
def painted_with() -> Callable[[str], Report]:
    return painted
