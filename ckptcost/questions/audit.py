"""Whether what a vendor's sheet states agrees with itself, and what its energies can include."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from ckptcost.answer import Answer, Cell, Column, Say, Table
from ckptcost.errors import InputError, unknown_name
from ckptcost.plan.claims import AGREES, CONTRADICTS, OPEN, Span, Verdict, lacking
from ckptcost.plan.laws import LAWS, QUANTITIES
from ckptcost.plan.readings import BOUNDARIES, Reading, reading_of
from ckptcost.plan.sheets import Sheet, meant, sheet_of
from ckptcost.questions.common import Flag
from ckptcost.scenario import catalog
from ckptcost.scenario.units import number, per, show_range

SHEET = Flag("a shipped sheet of statements, or a TOML file of your own", "SHEET", place=True)


def audit(sheet: Annotated[str, SHEET] = "") -> Answer:
    """Do a vendor's numbers agree with each other?

    ckptcost audit ddn-2025
    ckptcost audit ddn-2025 --detail
    ckptcost audit sheet.toml
    """
    read = sheet_named(sheet)
    agree, wrong, open_ = (
        [each for each in read.verdicts if each.word == word]
        for word in (AGREES, CONTRADICTS, OPEN)
    )
    readings = [found for claim in read.claims.values() if (found := reading_of(claim))]
    agrees = "agrees" if len(agree) == 1 else "agree"
    does = "does" if len(wrong) == 1 else "do"
    counts = f"{len(agree)} {agrees}, {len(wrong)} {does} not, {len(open_)} cannot be checked."
    verdicts, arithmetic = statement_tables(read)
    says = [Say(f"{len(read.verdicts)} statements: {counts}")]
    says += [Say(contradiction(read, each)) for each in wrong]
    notes = [
        Say(f"{word.upper()} ({len(verdicts)})  {in_one_line(read, verdicts)}.")
        for word, verdicts in ((AGREES, agree), (OPEN, open_))
        if verdicts
    ]
    return Answer(
        "audit",
        "Do these numbers agree with each other?",
        read.name,
        says,
        [verdicts, *energy_table(readings), arithmetic],
        [*notes, Say("The arithmetic:", command=f"ckptcost audit {sheet} --detail")],
        options={"sheet": sheet},
    )


def sheet_named(name: str) -> Sheet:
    """A user's file, or a shipped sheet."""
    shipped = catalog.ids("claim")
    if not name:
        known = ", ".join(shipped)
        raise InputError("names no sheet", "audit", f"give a TOML file, or one of {known}")
    is_file = name.endswith(".toml") or "/" in name
    if not is_file and name not in shipped:
        raise unknown_name("sheet", name, shipped)
    path = Path(name) if is_file else catalog.file_of("claim", name)
    try:
        return sheet_of(catalog.read_toml(path), path.stem)
    except InputError as error:
        raise (error if error.where.startswith(str(path)) else error.at(name)) from None


# --- words ----------------------------------------------------------------------------------------


def about_and_words(sheet: Sheet, verdict: Verdict) -> tuple[str, str]:
    """Who is spoken of, and what is stated of it."""
    claim = sheet.claims.get(verdict.claim)
    if claim is None:
        return verdict.what, verdict.stated.say()
    return claim.about, claim.words(verdict.what)


def contradiction(sheet: Sheet, verdict: Verdict) -> str:
    """What is stated, and below it the arithmetic with its numbers."""
    arithmetic, other = verdict.arithmetic(), meant(verdict)
    agrees = f' Agrees if "{other}" was meant.' if other else ""
    stated = ": ".join(about_and_words(sheet, verdict))
    return f'{CONTRADICTS.upper()}  "{stated}"\n{arithmetic[:1].upper()}{arithmetic[1:]}.{agrees}'


def in_one_line(sheet: Sheet, verdicts: Sequence[Verdict]) -> str:
    """Statements by whom they speak of and why they cannot be checked."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for verdict in verdicts:
        about, words = about_and_words(sheet, verdict)
        why = why_open(sheet, verdict)
        found.setdefault((about, f" ({why})" if why else ""), {})[words] = None
    return "; ".join(f"{about}: {', '.join(said)}{why}" for (about, why), said in found.items())


def why_open(sheet: Sheet, verdict: Verdict) -> str:
    """Why a statement cannot be checked: what is not stated, and what it would have to be."""
    if verdict.word != OPEN:
        return ""
    if verdict.follows:
        return "possible, at another interval"
    claim = sheet.claims[verdict.claim]
    missing = lacking(claim, verdict.what)
    if not missing:
        return "nothing else depends on it"
    would_be = claim.best(missing[0]) if len(missing) == 1 else None
    if would_be:
        said = QUANTITIES[missing[0]].words.format(would_be.say())
        return f"it would mean {said}, which is not stated"
    return f"{' and '.join(missing)} not stated".replace("_", " ")


# --- tables ---------------------------------------------------------------------------------------


def statement_tables(sheet: Sheet) -> list[Table]:
    """Every statement with its verdict; and the arithmetic, also of what is not stated."""
    verdicts: list[list[Cell]] = []
    steps: list[list[Cell]] = []
    for each in sheet.verdicts:
        verdicts.append([each.path, each.stated.say(), each.word, gives(each)])
        apart = f": {number(each.factor)} times apart" if each.factor > 1 else ""
        assumes = f" ({LAWS[each.law].assumes})" if each.law in LAWS else ""
        arithmetic = f"{each.arithmetic()}{apart}{assumes.replace(' ()', '')}"
        steps.append([each.path, arithmetic or why_open(sheet, each)])
    further = {
        f"{claim.id}.{what}": fact
        for claim in sheet.claims.values()
        for (what, _), fact in claim.facts.items()
        if what not in claim.stated
    } | {each.what: each.stated for each in sheet.follows}
    steps += [[path, "; ".join(fact.steps())] for path, fact in further.items()]
    headers = {"statement": "statement", "stated": "stated", "verdict": "verdict"}
    columns = [Column(*each) for each in (headers | {"follows": "the rest gives"}).items()]
    by_quantity = [Column("quantity", "quantity"), Column("arithmetic", "arithmetic")]
    return [
        Table("verdicts", "Every statement", columns, verdicts, sheet.note, shown=False),
        Table("arithmetic", "The arithmetic", by_quantity, steps, shown=False),
    ]


def gives(verdict: Verdict) -> str | None:
    fact = verdict.follows
    at_most = "at most " if fact and fact.at_most else ""
    return f"{at_most}{fact.say(verdict.stated.unit)}" if fact else None


def energy_table(readings: Sequence[Reading]) -> list[Table]:
    """Stated energies beside what each boundary takes, in the unit of their size."""
    if not readings:
        return []
    largest = max(each.stated.printed.low or each.stated.printed.high for each in readings)
    unit = "J" if largest < 0.01 * per("kWh") else "kWh"
    headers = {"claim": "", "stated": "stated"} | BOUNDARIES | {"gpus": who_waits(readings)}
    rows: list[list[Cell]] = []
    for each in readings:
        spans = [each.stated.printed, *each.within.values()]
        rows.append([each.claim.about, *(ends(span, unit) for span in spans)])
    title = f"ENERGY OF ONE CHECKPOINT, {unit} without cooling: what can the stated one include?"
    columns = [Column(*each) for each in headers.items()]
    return [Table("energy", title, columns, rows, what_fits(readings))]


def who_waits(readings: Sequence[Reading]) -> str:
    """The GPUs by number and power if all readings have the same."""
    who = {(each.gpus, each.gpu_power) for each in readings}
    if len(who) > 1:
        return BOUNDARIES["gpus"]
    gpus, watts = who.pop()
    count = f"{gpus.low:,.0f}" if gpus.low == gpus.high else ends(gpus, "")
    return f"{count} GPUs at {ends(watts, 'W')} W wait"


def what_fits(readings: Sequence[Reading]) -> str:
    """Which boundary fits, and whose figures these are."""
    fits = []
    for key, words in BOUNDARIES.items():
        if names := [each.claim.about for each in readings if key in each.fits]:
            fits.append(f"{words} ({', '.join(names)})")
    ours = any(each.ours for each in readings)
    gpus = " The GPU figures are ours; the sheet names no GPUs." if ours else ""
    return (f"Fits: {'; '.join(fits)}." if fits else "None fits what is stated.") + gpus


def ends(span: Span, unit: str) -> str:
    """Both ends as numbers in a unit; equal ones are one number.

    >>> ends(Span(15.0, 20.0), ""), ends(Span(2.0, 2.0), ""), ends(Span(2.0, float("inf")), "")
    ('15-20', '2', '>2')
    """
    low, high = (end / per(unit) for end in span)
    if low < high < float("inf"):
        return show_range(low, high, "")
    return ("" if low == high else ">") + number(low)
