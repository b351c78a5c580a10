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
from ckptcost.scenario.units import number, per

SHEET = Flag("a shipped sheet of statements, or a TOML file of your own", "SHEET", place=True)
STRICT = Flag("exit 3 if a statement does not agree with the others")


def audit(sheet: Annotated[str, SHEET] = "", *, strict: Annotated[bool, STRICT] = False) -> Answer:
    """Do a vendor's numbers agree with each other?

    ckptcost audit ddn-2025
    ckptcost audit ddn-2025 --detail
    ckptcost audit sheet.toml --strict
    """
    read = sheet_named(sheet)
    agree, wrong, open_ = (
        [each for each in read.verdicts if each.word == word]
        for word in (AGREES, CONTRADICTS, OPEN)
    )
    readings = [found for claim in read.claims.values() if (found := reading_of(claim))]
    counts = (
        f"{len(agree)} agree{'s' if len(agree) == 1 else ''},"
        f" {len(wrong)} {'does' if len(wrong) == 1 else 'do'} not,"
        f" {len(open_)} cannot be checked."
    )
    says = [Say(contradiction(read, each)) for each in wrong]
    says[:1] = [each._replace(label=CONTRADICTS.upper()) for each in says[:1]]
    notes = [
        Say(f"{word.upper()} ({len(verdicts)})  {in_one_line(read, verdicts)}.")
        for word, verdicts in ((AGREES, agree), (OPEN, open_))
        if verdicts
    ]
    statements = "1 statement does" if len(wrong) == 1 else f"{len(wrong)} statements do"
    return Answer(
        "audit",
        "Do these numbers agree with each other?",
        read.name,
        [Say(counts, f"{len(read.verdicts)} statements"), *says],
        [verdict_table(read), *energy_tables(readings), arithmetic_table(read)],
        [*notes, Say("The arithmetic:", command=f"ckptcost audit {sheet} --detail")],
        missed=[f"{statements} not agree with the others"] if strict and wrong else [],
        options={"sheet": sheet, "strict": strict},
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
    return f'"{stated}"\n{arithmetic[:1].upper()}{arithmetic[1:]}.{agrees}'


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
        return f"so {QUANTITIES[missing[0]].words.format(would_be.say())}, which is not stated"
    return f"{' and '.join(missing)} not stated"


# --- tables ---------------------------------------------------------------------------------------


def path_of(verdict: Verdict) -> str:
    """As a formula of a sheet names it: "nas.energy"; a formula has its own words."""
    return f"{verdict.claim}.{verdict.what}" if verdict.claim else verdict.what


def verdict_table(sheet: Sheet) -> Table:
    headers = {"statement": "statement", "stated": "stated", "verdict": "verdict"}
    headers["follows"] = "the rest gives"
    rows: list[list[Cell]] = []
    for each in sheet.verdicts:
        gives = each.follows.say(each.stated.unit) if each.follows else None
        at_most = "at most " if each.follows and each.follows.at_most else ""
        rows.append([path_of(each), each.stated.say(), each.word, gives and at_most + gives])
    columns = [Column(*each) for each in headers.items()]
    return Table("verdicts", "Every statement", columns, rows, sheet.note, shown=False)


def arithmetic_table(sheet: Sheet) -> Table:
    """The arithmetic of every verdict, and of what follows and is not stated."""
    rows: list[list[Cell]] = []
    for each in sheet.verdicts:
        apart = f": {number(each.factor)} times apart" if each.factor > 1 else ""
        assumes = LAWS[each.law].assumes if each.law in LAWS else ""
        found = f"{each.arithmetic()}{apart}{f' ({assumes})' if assumes else ''}"
        rows.append([path_of(each), found if each.follows else why_open(sheet, each)])
    for claim in sheet.claims.values():
        rows += [
            [f"{claim.id}.{what}", "; ".join(fact.steps())]
            for (what, _), fact in claim.facts.items()
            if what not in claim.stated
        ]
    rows += [[each.what, "; ".join(each.stated.steps())] for each in sheet.follows]
    columns = [Column("quantity", "quantity"), Column("arithmetic", "arithmetic")]
    return Table("arithmetic", "The arithmetic", columns, rows, shown=False)


def energy_tables(readings: Sequence[Reading]) -> list[Table]:
    """Stated energies beside what each boundary takes: as people read them, and as numbers."""
    if not readings:
        return []
    largest = max(each.stated.printed.low or each.stated.printed.high for each in readings)
    unit = "J" if largest < 0.01 * per("kWh") else "kWh"
    headers = BOUNDARIES | {"gpus": who_waits(readings)}
    columns = [Column("claim", ""), Column("stated", "stated")]
    columns += [Column(*each) for each in headers.items()]
    rows: list[list[Cell]] = []
    numbers: list[list[Cell]] = []
    for each in readings:
        spans = [each.stated.printed, *each.within.values()]
        rows.append([each.claim.about, *(ends(span, unit) for span in spans)])
        for key, span in each.within.items():
            fits = "yes" if key in each.fits else "no"
            numbers.append([each.claim.about, BOUNDARIES[key], *span, fits])
    title = f"ENERGY OF ONE CHECKPOINT, {unit} without cooling: what can the stated one include?"
    by_boundary = [
        Column("claim", "about"),
        Column("boundary", "boundary"),
        Column("low", "low", "kWh"),
        Column("high", "high", "kWh"),
        Column("fits", "fits the stated one"),
    ]
    return [
        Table("energy", title, columns, rows, what_fits(readings)),
        Table("readings", "Energy by boundary", by_boundary, numbers, shown=False),
    ]


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
    return (f"Fits: {'; '.join(fits)}." if fits else "None fits.") + gpus


def ends(span: Span, unit: str) -> str:
    """Both ends as numbers in a unit: "15-20", "<2"; equal ones are one number.

    >>> ends(Span(15.0, 20.0), ""), ends(Span(0.0, 2.0), ""), ends(Span(2.0, float("inf")), "")
    ('15-20', '<2', '>2')
    """
    low, high = (number(end / per(unit), 2 if span.low < span.high else 3) for end in span)
    if span.low == 0 or span.high == float("inf"):
        return f"<{high}" if span.low == 0 else f">{low}"
    return low if low == high else f"{low}-{high}"
