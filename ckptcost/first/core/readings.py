"""Which reading of an ambiguous claim would make it hold: another unit, another boundary, another
saved state, a mean of rates.

A reading changes one stated value and asks for the same verdict again. That one holds does not say
that it was meant.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from ckptcost.first.core.audit import (
    CONSISTENT,
    INCONSISTENT,
    Audit,
    Claim,
    Fact,
    Sheet,
    Stated,
    Verdict,
    audit,
    derive,
    verdict_of,
)
from ckptcost.first.core.intervals import Interval
from ckptcost.first.core.relations import QUANTITIES

J_PER_BYTE: Final = {"drive": Interval(2e-9, 3e-9), "storage-system": Interval(38e-9, 309e-9)}
"""joules per byte written: drives alone, and nameplate watts of whole systems over measured rates
(MLPerf Storage v3.0)"""
ABOUT: Final = 0.10
"""what "about" allows to either side"""
MEAN_OF_RATES: Final = 1.2
"""a mean of rates can exceed size over mean time by this much when rounds vary"""
STATES: Final = {
    2.0: "16-bit weights only",
    4.0: "fp32 weights only",
    6.0: "bf16 weights and fp32 master copy",
    8.0: "bf16, fp32 master, 8-bit Adam",
    10.0: "bf16, fp32 master, bf16 Adam moments",
    12.0: "fp32 weights and Adam moments",
    14.0: "bf16, fp32 master, Adam moments",
    16.0: "GPU memory: training state with 16-bit gradients",
    18.0: "GPU memory: training state with fp32 gradients",
}
"""bytes per parameter of a checkpoint, and of the memory that is mistaken for one"""
_PREFIX = re.compile(r"([kKMGTPE])(i?)B(?=$|/| )")
_POWER = {"k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}


class OtherReading(NamedTuple):
    """One stated value read in another way."""

    claim: str
    what: str
    """the quantity whose verdict or value is at stake"""
    kind: str
    """unit, bits, about, mean-of-rates, boundary or state"""
    reading: str
    stated: Stated
    gives: Interval
    """what follows under this reading"""
    unit: str
    fits: bool
    factor: float = math.nan
    """how many times the nearest ends differ where it does not fit"""


def scale_stated(stated: Stated, factor: float) -> Stated:
    """The same digits in a unit `factor` times as large."""
    return stated._replace(printed=stated.printed * factor, allowed=stated.allowed * factor)


def alternatives(stated: Stated, rate: bool = False) -> Iterator[tuple[str, str, Stated]]:
    """Kind, words and value of each other way to read a stated value; `rate` is one that a size and
    a time stand beside."""
    found = _PREFIX.search(stated.unit)
    if found:
        letter, binary = found[1], found[2]
        by = (2.0**10 / 1e3) ** _POWER[letter]
        other = stated.unit.replace(found[0], letter + ("" if binary else "i") + "B")
        yield "unit", f"{other}, not {stated.unit}", scale_stated(stated, 1 / by if binary else by)
        if "/" in stated.unit:
            bits = stated.unit.replace(found[0], found[0][:-1] + "b")
            yield "bits", f"bits: {bits}, not {stated.unit}", scale_stated(stated, 0.125)
    if rate:
        wide = Interval(stated.allowed.low / MEAN_OF_RATES, stated.allowed.high)
        printed = Interval(stated.printed.low / MEAN_OF_RATES, stated.printed.high)
        yield (
            "mean-of-rates",
            "a mean of rates, not size over time",
            stated._replace(printed=printed, allowed=wide),
        )
    if stated.strict or not stated.soft:
        yield "about", "about that much", about(stated)


def about(stated: Stated) -> Stated:
    """The same numbers, 10 % to either side; a bound becomes the number it names.

    >>> over = Stated(
    ...     "over 2 TB", Interval(2e12, math.inf), Interval(2e12, math.inf), "TB", True, "low"
    ... )
    >>> about(over).allowed
    Interval(low=1800000000000.0, high=2200000000000.0)
    """
    low, high = stated.printed.low, stated.printed.high
    said = {"low": Interval(low, low), "high": Interval(high, high)}.get(
        stated.strict, stated.printed
    )
    wide = Interval(1 - ABOUT, 1 + ABOUT) * said
    return stated._replace(printed=said, allowed=wide, strict="", soft=True)


def _key(verdict: Verdict) -> tuple[str, str, str, str]:
    return verdict.claim, verdict.what, verdict.law, verdict.fact.how if verdict.fact else ""


def _variants(sheet: Sheet, verdict: Verdict, fact: Fact) -> Iterator[tuple[str, str, Sheet]]:
    """Sheets in which one value that the verdict rests on is read in another way."""
    uses = _rests_on(verdict, fact)
    owners = {name.partition(".")[0] for name in uses}
    claims = tuple(claim for claim in sheet.claims if claim.id in owners)
    # a law knows its own claim only, and its text is no formula's
    held = tuple(h for h in sheet.held if h.what == verdict.what and h.that.text == fact.how)
    sheet = sheet._replace(claims=claims, held=held)
    if held:
        for kind, words, stated in alternatives(verdict.stated):
            read = tuple(h._replace(stated=stated) for h in held)
            yield kind, f"{verdict.stated.text} as {words}", sheet._replace(held=read)
    for kind, words, variant in _other_readings(claims, verdict, uses):
        yield kind, words, sheet._replace(claims=variant)


def _rests_on(verdict: Verdict, fact: Fact) -> set[str]:
    """The stated values that could be read in another way, as CLAIM.QUANTITY."""
    if not verdict.claim:
        return set(fact.uses)
    return {f"{verdict.claim}.{name}" for name in (*fact.uses, verdict.what)}


def _other_readings(
    claims: tuple[Claim, ...], verdict: Verdict, uses: set[str]
) -> Iterator[tuple[str, str, tuple[Claim, ...]]]:
    for i, claim in enumerate(claims):
        for name, said in claim.stated.items():
            if f"{claim.id}.{name}" not in uses:
                continue
            is_rate = name == "write" and verdict.law == "rate"
            for kind, words, stated in alternatives(said, is_rate):
                if kind == "about" and (name != verdict.what or QUANTITIES[name].most == 1.0):
                    # what a verdict rests on could always be vaguer, and a tenth of a share is no
                    # rounding
                    continue
                read = claim._replace(stated={**claim.stated, name: stated})
                yield kind, f"{name} as {words}", (*claims[:i], read, *claims[i + 1 :])


def _unit_readings(sheet: Sheet, verdict: Verdict, fact: Fact) -> Iterator[OtherReading]:
    for kind, words, variant in _variants(sheet, verdict, fact):
        again = next((v for v in audit(variant).verdicts if _key(v) == _key(verdict)), None)
        if again is None or again.fact is None:
            continue
        fits = again.word == CONSISTENT
        if fits or (kind == "unit" and again.factor - 1 < (verdict.factor - 1) / 2):  # nearer
            yield OtherReading(
                verdict.claim,
                verdict.what,
                kind,
                words,
                verdict.stated,
                again.fact.printed,
                verdict.unit,
                fits,
                again.factor,
            )


def _against(
    claim: Claim, what: str, kind: str, words: str, stated: Stated, gives: Interval, unit: str
) -> OtherReading:
    word, _, factor = verdict_of(stated, Fact(gives, gives, frozenset()))
    return OtherReading(
        claim.id, what, kind, words, stated, gives, unit, word == CONSISTENT, factor
    )


def boundaries(claim: Claim) -> Iterator[OtherReading]:
    """What one save takes at each boundary, beside what is claimed."""
    energy = claim.stated.get("energy")
    if energy is None:
        return
    slots = derive(claim)
    size, time = (_known_interval(claim, slots, name) for name in ("size", "time"))
    if size is not None:
        for boundary, joules in J_PER_BYTE.items():
            yield _against(claim, "energy", "boundary", boundary, energy, size * joules, "j")
    gpus, watts = claim.stated.get("gpus"), claim.stated.get("gpu_power")
    if time is not None and gpus is not None and watts is not None:
        words = f"cluster ({gpus.printed.low:,.0f} GPUs at {watts.printed.low:,.0f} W)"
        yield _against(
            claim, "energy", "boundary", words, energy, time * gpus.printed * watts.printed, "j"
        )


def _known_interval(claim: Claim, slots: dict[tuple[str, str], Fact], name: str) -> Interval | None:
    """Derived from firm values, else as stated."""
    derived = [
        fact
        for (what, _), fact in slots.items()
        if what == name and not fact.soft and "energy" not in fact.uses
    ]
    if name in claim.stated and not claim.stated[name].soft:
        return claim.stated[name].printed
    if derived:
        return min(derived, key=lambda fact: len(fact.uses)).printed
    return claim.stated[name].printed if name in claim.stated else None


def states(claim: Claim) -> Iterator[OtherReading]:
    """The saved states whose bytes per parameter are what size and parameters give."""
    if not {"size", "params"} <= claim.stated.keys():
        return
    fact = derive(claim).get(("bytes_per_param", "state"))
    if fact is None:
        return
    size = claim.stated["size"]
    near = Interval(fact.printed.low * (1 - ABOUT), fact.printed.high * (1 + ABOUT))
    for per_param, words in STATES.items():
        if Interval(per_param, per_param).within(near):
            gives = claim.stated["params"].printed * per_param
            yield OtherReading(
                claim.id,
                "size",
                "state",
                f"{per_param:g} B/param, {words}",
                size,
                gives,
                "bytes",
                True,
            )


def readings(sheet: Sheet, result: Audit) -> list[OtherReading]:
    """Readings that make an inconsistent claim hold, every boundary of a claimed energy, and what a
    size can contain."""
    found = [
        reading
        for verdict in result.verdicts
        if verdict.fact is not None and verdict.word == INCONSISTENT
        for reading in _unit_readings(sheet, verdict, verdict.fact)
    ]
    return found + [
        reading for claim in sheet.claims for reading in (*boundaries(claim), *states(claim))
    ]
