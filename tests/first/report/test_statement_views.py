"""Statements as text, Markdown and CSV: figures as the document has them, unknown in words, names
as names."""

from __future__ import annotations

import csv
import io
import math
import re
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from statements import LINES, big, document, documents, statement

from ckptcost.first.present.amounts import number
from ckptcost.first.report import statement_views
from ckptcost.first.report.statement import QUANTITIES
from ckptcost.first.report.statement_views import SIMULATED, text, to_csv, to_markdown
from ckptcost.first.report.study import shown_cells

COLUMN = {
    "energy": "energy_kwh",
    "emissions_location": "emissions_location_kgco2e",
    "emissions_market": "emissions_market_kgco2e",
    "embodied": "embodied_kgco2e",
    "gpu_time_lost": "gpu_time_lost_gpu_hours",
    "cost": "cost_usd",
    "water": "water_l",
}
PER_UNIT = {"energy_kwh": 3.6e6, "gpu_time_lost_gpu_hours": 3600.0}


# ---- CSV


def check_csv(written: str, doc) -> None:
    """Back in base units: components as in the document, and summing to the totals; raises."""
    rows = list(csv.DictReader(io.StringIO(written)))
    assert len(rows) == sum(len(s.components) for s in doc.statements)
    at = iter(rows)
    for s in doc.statements:
        mine = [next(at) for _ in s.components]
        for row, c in zip(mine, s.components, strict=True):
            assert (row["run_id"].removeprefix("'"), row["component"], row["ledger"]) == (
                s.subject.run_id,
                c.id,
                c.ledger,
            )
            assert row["inventory_treatment"] == "memo_item"
            assert row["method_version"] == s.method_version
            for what, column in COLUMN.items():
                q = getattr(c, what)
                for end in ("value", "low", "high"):
                    cell, value = (
                        row[column + ("" if end == "value" else f"_{end}")],
                        getattr(q, end),
                    )
                    assert (cell == "") == (value is None), (
                        column,
                        "null is an empty cell, 0 is a 0",
                    )
                    scale = PER_UNIT.get(column, 1.0)
                    assert value is None or float(cell) * scale == pytest.approx(
                        value * scale, rel=1e-9
                    )
        for what, column in COLUMN.items():
            cells = [
                float(row[column]) for row in mine if row["ledger"] == "marginal" and row[column]
            ]
            total = getattr(s.totals, what).value
            assert total is None or math.fsum(cells) == pytest.approx(total, rel=1e-9)


@settings(max_examples=60)
@given(documents())
def test_csv_of_any(doc):
    check_csv(to_csv(doc), doc)


@pytest.mark.parametrize("planted", ["x1000", "dropped", "swapped", "zero"])
def test_the_check_of_the_csv_bites(planted):
    doc = document()
    written = to_csv(doc)
    header, *rest = csv.reader(io.StringIO(written))
    one, two = header.index("emissions_location_kgco2e"), header.index("emissions_market_kgco2e")
    for row in rest:
        if planted == "swapped":
            row[one], row[two] = row[two], row[one]
        if planted == "x1000":
            row[header.index("energy_kwh")] = str(
                float(row[header.index("energy_kwh")] or 0) * 1000
            )
        if planted == "zero":
            row[header.index("energy_kwh")] = row[header.index("energy_kwh")] or "0"
    if planted == "dropped":
        header, rest = header[:-3], [row[:-3] for row in rest]
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header, *rest])
    with pytest.raises((AssertionError, KeyError)):
        check_csv(out.getvalue(), doc)


def test_csv_cells_are_no_formulas():
    lines = (("gpu_wait", "=HYPERLINK(1)", "save", "node"), *LINES[1:])
    row = next(
        csv.DictReader(io.StringIO(to_csv(document(statement(name='@a, "b"\nc', lines=lines)))))
    )
    assert row["label"] == "'=HYPERLINK(1)"
    assert row["name"] == '\'@a, "b" c'


# ---- text


@settings(max_examples=60)
@given(documents())
def test_text_of_any(doc):
    told = text(doc)
    assert max(len(line) for line in told.splitlines()) <= 80
    assert all(line == line.rstrip() for line in told.split("\n"))
    assert "nan" not in re.findall(r"\bnan\b", told.lower()) + [""][1:]
    for s in doc.statements:
        total = s.totals.energy.value
        assert (number(total) if total is not None else "not known") in told


def test_text_says_what_it_should():
    told = text(
        document(statement(kind="measured", tags={"a": "b"}).model_copy(update={"simulated": True}))
    )
    flat = " ".join(told.split())
    assert SIMULATED in told
    for words in (
        "energy modelled 2,760 kWh 2,500-3,000",
        "GPUs waiting for saves 1,200 1,100-1,300 3,000 16,300 472",
        "Scope 2 (method not known), location-based 384 g/kWh 1,090",
        "Scope 2, market-based",
        "E1-5 energy consumption (memo) 2.76",
        "E1-6 Scope 2 (method not known), location-based (memo) 1.09",
        "E1-6 Scope 2, market-based (memo) 0.331",
        "SCI per checkpoint",
        "Out: storage writing: energy unknown",
        "NVML total energy consumption",
        "power usage effectiveness: 1.15 (1.08-1.56)",
        "Do not add it to an inventory",
        "Not in the totals because unknown: energy: storage writing",
        "Wind PPA (PPA), 60 % at 0 g/kWh",
        "UNKNOWN_INPUT",
        "apart: idle storage, its share 4",
    ):
        assert words in flat, words


def test_a_terminal_is_told_nothing_by_a_name():
    told = text(
        document(
            statement(
                name="a\x1b[31m\x07b\nc\u2028d",
                lines=(("gpu_wait", "x\x1b]0;t\x07", "save", "node"), *LINES[1:]),
            )
        )
    )
    assert "\x1b" not in told
    assert "\x07" not in told
    assert told.startswith("a [31m b c d\n")


# ---- Markdown


SECTIONS = [
    "Totals",
    "The bill",
    "Emissions of the electricity",
    "ESRS E1 lines",
    "Software carbon intensity (SCI)",
    "Coefficients",
    "Boundary",
    "Factors",
    "Assumptions",
    "Meters",
    "Take care",
]


def test_markdown_has_every_section():
    told = to_markdown(document(statement(kind="measured")))
    assert re.findall(r"^## (.*)$", told, re.M) == SECTIONS
    assert "Yearly electricity data (CC BY 4.0)" in told
    assert "| energy | modelled | 2,760 | kWh | 2,500-3,000 |" in told
    assert "| E1-6 Scope 2, market-based (memo) | 0.331 | 0.298-0.364 | tCO2e |" in told
    assert "Memo item" in told
    assert "Method 2026.1" in told


def test_unknown_is_not_known_and_zero_is_zero():
    nothing = [None] * 5
    told = to_markdown(document(statement(nothing, gpu_hours=(0.0,) * 5, costs=nothing)))
    assert "| energy | modelled | not known | kWh |  |" in told
    assert "| GPU time lost | modelled | 0 | GPU-h |  |" in told
    assert "| E1-5 energy consumption (memo) | not known |  | MWh |" in told
    assert "| storage writing | not known |  | 0 | not known | not known |" in told


def test_what_a_meter_does_not_know_is_a_dash_in_text_and_words_in_markdown():
    s = statement(kind="measured")
    meter = s.measurements[0].model_copy(update={"tick_s": None, "coverage": None})
    doc = document(s.model_copy(update={"measurements": [meter]}))
    row = next(line for line in text(doc).splitlines() if line.startswith(f"{meter.id} "))
    assert row.split()[-3:] == ["-", "-", number(meter.energy_kwh)]
    assert f"| node | not known | not known | {number(meter.energy_kwh)} |" in to_markdown(doc)


def test_what_somebody_wrote_stays_on_its_line():
    s = statement()
    said = s.warnings[0].model_copy(update={"message": "one\n  Totals\ntwo"})
    told = text(document(s.model_copy(update={"warnings": [said]})))
    assert "- one   Totals two (UNKNOWN_INPUT)" in told.splitlines()


@pytest.fixture(scope="module")
def gfm():
    if shutil.which("cmark-gfm") is None:
        pytest.skip("cmark-gfm is not installed: make consumers")

    def rendered(markdown: str) -> str:
        words = ["cmark-gfm", "-e", "table", "-e", "strikethrough", "-e", "autolink", "--unsafe"]
        return subprocess.run(
            words, input=markdown, capture_output=True, text=True, timeout=30, check=True
        ).stdout

    return rendered


ALLOWED = {
    "h1",
    "h2",
    "p",
    "em",
    "strong",
    "br",
    "ul",
    "li",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
}


@settings(max_examples=40)
@given(documents())
def test_markdown_of_any(gfm, doc):
    html = gfm(to_markdown(doc))
    assert {tag.lower() for tag in re.findall(r"<([a-zA-Z0-9]+)", html)} <= ALLOWED
    assert html.count("<h1>") == len(doc.statements)
    assert html.count("<table>") == sum(7 + bool(s.measurements) for s in doc.statements)


@pytest.mark.parametrize(
    "name",
    [
        "a|b",
        "<script>x</script>",
        "`c`",
        "@me",
        "- x",
        "1. x",
        "# x",
        "*x*",
        "[x](http://y)",
        "http://y.org",
        "~~x~~",
        "\\",
    ],
)
def test_a_name_is_a_name(gfm, name):
    lines = ((name, name, "save", "node"), *LINES[1:])
    html = gfm(to_markdown(document(statement(name=name, lines=lines))))
    assert {tag.lower() for tag in re.findall(r"<([a-zA-Z0-9]+)", html)} <= ALLOWED
    assert html.count("<h1>") == 1
    assert "@me" not in html
    bill = html[html.index("The bill") :]
    assert bill[: bill.index("</table>")].count("<td") == 6 * 7


# ---- size


def test_a_statement_of_many_hours_is_told_at_once():
    """The views are of components: rows of time cost nothing."""
    doc = big(4000)
    assert len(text(doc)) < 6000
    assert len(to_markdown(doc)) < 8000
    assert to_csv(doc).count("\n") == 7
    assert set(COLUMN) == set(QUANTITIES)


def test_markdown_says_memo_item_and_escapes_warnings():
    s = statement()
    s = s.model_copy(
        update={"warnings": [s.warnings[0].model_copy(update={"message": "see <b> | *x* @me"})]}
    )
    told = statement_views.to_markdown(document(s))
    assert f"_{statement_views.MEMO}_" in told.split("## Totals", maxsplit=1)[0]
    assert "- see &#60;b&#62; &#124; &#42;x* @&#8203;me (UNKNOWN_INPUT)" in told


def test_csv_has_both_ledgers_and_the_treatment_on_every_row():
    rows = list(
        csv.DictReader(
            io.StringIO(
                statement_views.to_csv(document(statement(), statement(run_id="b", name="=x")))
            )
        )
    )
    assert [row["ledger"] for row in rows] == (["marginal"] * 5 + ["allocated"]) * 2
    assert {row["inventory_treatment"] for row in rows} == {"memo_item"}
    assert {row["method_version"] for row in rows} == {"2026.1"}
    assert rows[-1]["name"] == "'=x"
    energy = float(rows[0]["energy_kwh"])
    assert (float(rows[0]["energy_kwh_low"]), float(rows[0]["energy_kwh_high"])) == (
        pytest.approx(energy * 0.9),
        pytest.approx(energy * 1.1),
    )
    assert (rows[0]["cause"], rows[0]["component"], rows[0]["period_start"]) == (
        "save",
        "gpu_wait",
        statement().period_start,
    )


def test_tables_hold_each_figure_in_its_place():
    s = statement(
        (1000.0, 0.0, 0.0, 0.0, 0.0),
        gpu_hours=(7.0, 0.0, 0.0, 0.0, 0.0),
        costs=(5.0, 0.0, 0.0, 0.0, 0.0),
        grid=0.4,
        market=0.1,
        dated=False,
    )
    _, esrs, _ = shown_cells(statement_views.esrs(s))
    assert [row[1] for row in esrs] == ["1", "0.4", "0.1"]
    _, scope_two, _ = shown_cells(statement_views.scope_two(s))
    assert [row[2] for row in scope_two] == ["400", "100"]
    _, bill, _ = shown_cells(statement_views.bill(s))
    assert [bill[0][n] for n in (1, 3, 4, 5)] == ["1,000", "7", "5", "400"]
    assert [row[0] for row in bill[-2:]] == ["total", "apart: idle storage, its share"]
    assert "60 % at 0 g/kWh" in statement_views.scope_two(s).note


def test_what_is_simulated_says_so_in_text_and_markdown():
    s = statement().model_copy(update={"simulated": True})
    for view in (statement_views.text, statement_views.to_markdown):
        assert statement_views.SIMULATED in view(document(s))
        assert statement_views.SIMULATED not in view(document(statement()))


@pytest.mark.parametrize(
    ("pue", "included", "said"),
    [
        (1.15, True, "PUE 1.15, included in the energies"),
        (1.15, False, "PUE 1.15, not included in the energies"),
        (None, False, "no PUE: energies as metered, not included in the energies"),
    ],
)
def test_the_boundary_in_words(pue, included, said):
    s = statement()
    s = s.model_copy(
        update={
            "boundary": s.boundary.model_copy(
                update={"pue": pue, "pue_included_in_energy": included}
            )
        }
    )
    assert statement_views.boundary_lines(s)[-1].endswith(said)
    assert said in " ".join(statement_views.text(document(s)).split())
