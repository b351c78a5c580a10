"""Custom costs, read back, and held against the rules of the format as they are documented: there is nothing to run."""

from __future__ import annotations

import csv
import io
import math
import re
from collections import defaultdict
from collections.abc import Callable
from datetime import date
from decimal import Decimal

import pytest
import statements
from hypothesis import given, settings
from hypothesis import strategies as st

from ckptcost.errors import InputError
from ckptcost.exports.formats import exported
from ckptcost.report.statement import Statement, StatementDocument, utc

SIX = [
    "ProviderName",
    "ChargeDescription",
    "ChargePeriodStart",
    "ChargePeriodEnd",
    "BilledCost",
    "BillingCurrency",
]
NASTY = "=HYPERLINK(1), \"quoted\"\n<b>\ttab</b> 'é' \U0001f600"
TAGS = {"team": NASTY, "=cost centre": "-1", "component": "mine", "long": "x" * 3000, "empty": " "}
LATER = "2027-12-31T00:00:00Z"


def later(*made: Statement) -> StatementDocument:
    """The document of a day after its runs."""
    return statements.document(*made).model_copy(update={"generated_at": LATER})


def text_of(document: StatementDocument) -> str:
    return "".join(str(piece) for piece in exported(document, "datadog")["datadog-costs.csv"])


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def bare(cell: str) -> str:
    """Without the mark that keeps a spreadsheet from taking it for a formula."""
    return cell[1:] if re.match(r"'[=+@-]", cell) else cell


def rules(text: str, today: date) -> None:
    """What the documentation asks of an upload; raises where a row breaks it."""
    header, *rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    assert header[:6] == SIX, "required columns, by name and order"
    assert len({name.lower() for name in header}) == len(header), "a column twice"
    assert rows, "no line item"
    for row in rows:
        assert len(row) == len(header), "cells for columns"
        for cell in (*header, *row):
            assert cell.strip(), "blank"
            assert cell.upper() != "NULL", "null"
            assert len(cell) <= 1000, "longer than 1000 characters"
            assert cell.encode("utf-8").decode("utf-8") == cell, "not UTF-8"
        begin, end, cost, currency = row[2:6]
        for day in (begin, end):
            assert re.fullmatch(r"\d{4}-\d\d-\d\d", day), "date is not YYYY-MM-DD"
            assert date.fromisoformat(day) <= today, "date to come"
        assert begin <= end, "ends before it begins"
        assert re.fullmatch(r"-?\d+(\.\d+)?", cost), "cost is no decimal"
        assert currency == "USD", "currency"


def check(document: StatementDocument, text: str) -> None:
    """Sums by component and by day are the statement's; raises where they are not."""
    rules(text, utc(document.generated_at).date())
    found: dict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    for row in rows_of(text):
        assert row["inventory_treatment"] == "memo_item"
        assert "memo item" in row["ChargeDescription"]
        assert row["method_version"] == "2026.1"
        found[bare(row["run_id"]), row["component"]].append(row)
    wanted = {
        (s.subject.run_id, c.id): c.cost.value
        for s in document.statements
        for c in s.marginal()
        if c.cost.value is not None
    }
    assert set(found) == set(wanted), "components"
    for key, usd in wanted.items():
        told = math.fsum(float(Decimal(row["BilledCost"])) for row in found[key])
        assert math.isclose(told, usd, rel_tol=1e-9), f"{key}: {told} for {usd}"
    for s in document.statements:
        told = math.fsum(
            float(row["BilledCost"])
            for row in rows_of(text)
            if bare(row["run_id"]) == s.subject.run_id
        )
        assert math.isclose(told, s.totals.cost.value or 0.0, rel_tol=1e-9), "total"
        check_days(s, {key[1]: rows for key, rows in found.items() if key[0] == s.subject.run_id})


def check_days(s: Statement, found: dict[str, list[dict[str, str]]]) -> None:
    by_day: dict[tuple[str, str], list[float]] = defaultdict(list)
    if s.series and s.series.width_s <= 3600.0:
        for start, line, usd in zip(
            s.series.start, s.series.component, s.series.cost_usd, strict=True
        ):
            if usd is not None:
                by_day[line, start[:10]].append(usd)
        for line in {line for line, _ in by_day}:
            told = {row["ChargePeriodStart"]: float(row["BilledCost"]) for row in found[line]}
            assert len(told) == len(found[line]), "one row a component and day"
            for (_, day), usds in ((key, usds) for key, usds in by_day.items() if key[0] == line):
                assert math.isclose(told[day], math.fsum(usds), rel_tol=1e-9), f"{line} of {day}"


GOOD: dict[str, Callable[[], StatementDocument]] = {
    "as made": later,
    "several days": lambda: later(statements.statement(rows=60)),
    "nasty names": lambda: later(statements.statement(name=NASTY, tags=TAGS)),
    "two statements, one with tags": lambda: later(
        statements.statement(run_id="a", tags={"squad": "web"}),
        statements.statement(run_id="b", costs=(1.5, None, None, 0.0, None)),
    ),
    "tiny and huge": lambda: later(statements.statement(costs=(1e-12, 1e12, 3.3e-300, 0.0, 7.0))),
    "only zeros": lambda: later(
        statements.statement((0.0,) * 5, gpu_hours=(0.0,) * 5, costs=(0.0,) * 5)
    ),
    "a day and a half a row": lambda: later(statements.statement(width_s=129600.0, rows=4)),
}


@pytest.mark.parametrize("name", GOOD)
def test_what_is_written_is_what_is_stated(name: str) -> None:
    document = GOOD[name]()
    check(document, text_of(document))


@settings(max_examples=60)
@given(statements.documents(dated=True), st.booleans())
def test_any_statement(document: StatementDocument, simulated: bool) -> None:
    made = [s.model_copy(update={"simulated": simulated}) for s in document.statements]
    document = document.model_copy(update={"generated_at": LATER, "statements": made})
    if all(c.cost.value is None for s in made for c in s.marginal()):
        with pytest.raises(InputError, match="no cost is known"):
            text_of(document)
        return
    text = text_of(document)
    check(document, text)
    assert all(
        ("simulated" in row["ChargeDescription"], row["simulated"])
        == (simulated, str(simulated).lower())
        for row in rows_of(text)
    )


def edited(text: str, change: Callable[[list[list[str]]], object]) -> str:
    table = list(csv.reader(io.StringIO(text, newline="")))
    change(table)
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(table)
    return stream.getvalue()


def put(at: int, value: str) -> Callable[[list[list[str]]], object]:
    return lambda table: table[1].__setitem__(at, value)


BROKEN: dict[str, tuple[Callable[[list[list[str]]], object], str]] = {
    "no column": (lambda table: [row.pop(5) for row in table], "required columns"),
    "other order": (lambda table: [row.insert(1, row.pop(2)) for row in table], "required columns"),
    "lower case": (lambda table: table[0].__setitem__(0, "providername"), "required columns"),
    "blank description": (put(1, ""), "blank"),
    "blank tag": (put(10, " "), "blank"),
    "null": (put(8, "NULL"), "null"),
    "long": (put(1, "x" * 1001), "longer"),
    "a time": (put(2, "2026-10-01 00:30:00"), "YYYY-MM-DD"),
    "American": (put(3, "10/01/2026"), "YYYY-MM-DD"),
    "to come": (put(3, "2029-01-01"), "to come"),
    "backwards": (put(3, "2026-09-30"), "ends before"),
    "not a number": (put(4, "NaN"), "no decimal"),
    "exponent": (put(4, "1e-05"), "no decimal"),
    "thousands": (put(4, "1,630.5"), "no decimal"),
    "euros": (put(5, "EUR"), "currency"),
    "no rows": (lambda table: table.__delitem__(slice(1, None)), "no line item"),
    "column twice": (lambda table: table[0].__setitem__(-1, "Component"), "a column twice"),
    "x1000": (lambda table: table[1].__setitem__(4, str(float(table[1][4]) * 1000)), "gpu_wait"),
    "a row dropped": (lambda table: table.pop(1), "components"),
    "components swapped": (
        lambda table: (table[1].__setitem__(6, table[2][6]), table[2].__setitem__(6, "gpu_wait")),
        "for",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_row_is_refused(name: str) -> None:
    change, says = BROKEN[name]
    document = later()
    with pytest.raises(AssertionError, match=re.escape(says)):
        check(document, edited(text_of(document), change))


def test_unknown_cost_has_no_row_and_zero_has_one() -> None:
    rows = rows_of(text_of(later(statements.statement(costs=(None, 0.0, None, 5.0, None)))))
    assert [(row["component"], row["BilledCost"], row["without_cost"]) for row in rows] == [
        ("host_wait", "0.0", "gpu_wait storage_write retention"),
        ("redone_work", "5.0", "gpu_wait storage_write retention"),
    ]


def test_days_are_utc_and_inclusive() -> None:
    rows = rows_of(text_of(later(statements.statement(rows=26, begin=statements.START + 82800.0))))
    days = [row["ChargePeriodStart"] for row in rows if row["component"] == "gpu_wait"]
    assert days == ["2026-10-01", "2026-10-02", "2026-10-03"]
    until_midnight = rows_of(
        text_of(
            later(
                statements.statement(
                    (0.0,) * 5,
                    gpu_hours=(0.0,) * 5,
                    costs=(0.0,) * 5,
                    begin=statements.START,
                    rows=24,
                )
            )
        )
    )
    assert {(row["ChargePeriodStart"], row["ChargePeriodEnd"]) for row in until_midnight} == {
        ("2026-10-01", "2026-10-01")
    }


def today(made: Statement) -> StatementDocument:
    return statements.document(made).model_copy(update={"generated_at": "2026-09-21T14:13:20Z"})


def test_days_to_come_are_refused_with_a_remedy_that_helps() -> None:
    with pytest.raises(
        InputError, match=r"takes no cost of days to come.*--start 2026-09-21T00:00Z"
    ):
        text_of(today(statements.statement()))
    begin = utc("2026-09-21T00:00:00Z").timestamp()
    document = today(statements.statement(begin=begin))
    check(document, text_of(document))


def test_no_known_cost_is_refused() -> None:
    with pytest.raises(InputError, match=r"no cost is known of.*cluster\.gpu_price"):
        text_of(later(statements.statement(costs=(None,) * 5)))


def test_the_standing_share_is_not_billed() -> None:
    assert "standing" not in text_of(later())


def test_cells_are_no_formulas_and_tags_keep_their_names() -> None:
    rows = rows_of(text_of(GOOD["nasty names"]()))
    assert rows[0]["run_name"].startswith('\'=HYPERLINK(1), "quoted" <b>')
    assert rows[0]["'=cost centre"] == "'-1"
    assert rows[0]["component"] == "gpu_wait"
    assert rows[0]["empty"] == "not given"
    two = rows_of(text_of(GOOD["two statements, one with tags"]()))
    assert {(row["run_id"], row["squad"]) for row in two} == {("a", "web"), ("b", "not given")}
