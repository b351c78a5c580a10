"""The form: which inputs are shown, in which groups, as texts that the parser takes back, and what
typing in one of them means."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from ckptcost.first.catalog.keys import CADENCES, KEYS, REFERENCES, SECTIONS, WORDS, unit_of
from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.domain import Scenario
from ckptcost.first.core.failures import mtbf_s
from ckptcost.first.core.outcome import Outcome
from ckptcost.first.core.size import full_bytes
from ckptcost.first.core.units import UNITS, parse
from ckptcost.first.errors import CkptcostError, InputError, UnknownName
from ckptcost.first.present.amounts import count, quantity
from ckptcost.first.present.form import Field
from ckptcost.first.scenario import Input, Resolved
from ckptcost.first.tui.desk import Desk

TIER = "tier.id"
"""not an input like others: it says which of the tiers side by side is looked at"""
MARKS = {
    "measured": "m",
    "published": "s",
    "vendor": "s",
    "derived": "=",
    "user": "u",
    "assumed": "d",
    "": "d",
}
LEGEND = "u yours, m measured, s sourced, = derived from others, d default"
FIRST_STEPS = (
    "Tab or i goes to a field. Type, and every figure follows.",
    "Enter on a field with an arrow lists what it can be.",
    "An empty field goes back to what the scenario says.",
    f"Where a value comes from: {LEGEND}.",
)
"""shown where no field has been looked at yet"""
KINDS = {
    "checkpoint.model": "checkpoint",
    TIER: "tier",
    "second_tier.id": "tier",
    "third_tier.id": "tier",
    "cluster.id": "cluster",
    "site.id": "site",
    "cluster.accelerator": "accelerator",
    "site.grid": "grid",
}
"""fields that name a catalogue entry, and of which kind"""
COUNTED = ("checkpoint.params", "checkpoint.bytes_per_param", "checkpoint.extra")
"""what a size is counted from, where none is given"""
_ONE_RATE, _RATE = (
    ("tier.write", "tier.node_write", "tier.gpu_write", "tier.write_per_capacity"),
    "write rate",
)

FIRST: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "Checkpoint",
        (
            ("checkpoint.model", "model"),
            ("checkpoint.size", "size"),
            ("checkpoint.params", "parameters"),
            ("checkpoint.bytes_per_param", "bytes/param"),
        ),
    ),
    ("Storage", ((TIER, "tier"), ("tier.write", _RATE))),
    (
        "Cluster",
        (
            ("cluster.id", "preset"),
            ("cluster.gpus", "GPUs"),
            ("cluster.accelerator", "accelerator"),
            ("cluster.gpu_train", "GPU training"),
            ("cluster.gpu_stall", "GPU waiting"),
            ("cluster.host_train", "rest of node"),
        ),
    ),
    (
        "Saving",
        (
            ("policy.mode", "mode"),
            ("policy.interval", "every"),
            ("policy.saves", "saves in run"),
            ("policy.optimal", "best for"),
            ("policy.keep_last", "keep last"),
            ("second_tier.id", "second tier"),
            ("policy.second_every", "2nd: each n-th"),
        ),
    ),
    (
        "Failures",
        (
            ("failures.mtbf", "one each"),
            ("failures.detect", "detect"),
            ("failures.reschedule", "reschedule"),
        ),
    ),
    (
        "Site and prices",
        (
            ("site.id", "site"),
            ("site.grid", "grid"),
            ("site.pue", "PUE"),
            ("site.tariff", "tariff"),
            ("cluster.gpu_price", "GPU-hour"),
        ),
    ),
    ("Run", (("run.work", "training"),)),
)
"""what is shown first, as people think of a job: group, and paths with their labels"""
_LABELS = {path: label for _, entries in FIRST for path, label in entries}
_TITLES = {
    "checkpoint": "Checkpoint",
    "tier": "Storage",
    "cluster": "Cluster",
    "policy": "Saving",
    "failures": "Failures",
    "site": "Site",
    "run": "Run",
    "second_tier": "Second tier",
    "third_tier": "Third tier",
}


def label_of(path: str) -> str:
    """What the form calls an input."""
    return _LABELS.get(path) or path.partition(".")[2].replace("_", " ")


def form(
    desk: Desk, resolved: Resolved, outcome: Outcome, everything: bool = False
) -> tuple[Field, ...]:
    """The fields of the tier that is looked at: the usual ones, or all."""
    given = {i.path: i for i in resolved.inputs}
    groups = _all_groups(resolved) if everything else _first_groups(given)
    found = (
        _field(desk, resolved, outcome, given, path, group)
        for group, paths in groups
        for path in paths
    )
    return tuple(
        found
        if everything
        else (each._replace(label=_RATE) if each.path in _ONE_RATE else each for each in found)
    )


def _first_groups(given: dict[str, Input]) -> list[tuple[str, list[str]]]:
    """A tier of local drives has a rate a node, not one of its own: the field is the one that
    holds."""
    rate = next((path for path in _ONE_RATE if path in given), "tier.write")
    return [
        (group, [rate if path == "tier.write" else path for path, _ in entries])
        for group, entries in FIRST
    ]


def _all_groups(resolved: Resolved) -> list[tuple[str, list[str]]]:
    s = resolved.scenario
    shown = [
        each
        for each in SECTIONS
        if each not in ("second_tier", "third_tier") or getattr(s, each) is not None
    ]
    groups = [
        (_TITLES[section], [f"{section}.{key}" for key in _keys_of(section)]) for section in shown
    ]
    if s.second_tier is None:
        groups.append((_TITLES["second_tier"], ["second_tier.id"]))
    return groups


def _keys_of(section: str) -> Iterable[str]:
    """The reference first, then figures, then other words; a name is not a choice that changes
    anything."""
    reference = REFERENCES.get(section)
    words = [word for word in WORDS[section] if word not in (reference, "name")]
    early = [word for word in words if f"{section}.{word}" in KINDS or word == "mode"]
    return [
        *([reference] if reference else []),
        *early,
        *KEYS[section],
        *(word for word in words if word not in early),
    ]


def _field(
    desk: Desk, resolved: Resolved, outcome: Outcome, given: dict[str, Input], path: str, group: str
) -> Field:
    section, _, key = path.partition(".")
    field = Field(path, label_of(path), "", group=group)
    yours = "u" if path in desk.edits else ""
    if key in WORDS[section]:
        return _word_field(desk, resolved, field, yours)
    if (found := given.get(path)) is None:
        mark, holds = _without(resolved, outcome, section, key)
        return field._replace(mark=mark, placeholder=holds)
    if path in COUNTED and "checkpoint.size" in given:
        return field._replace(placeholder=f"{text_of(found)}, not used")
    return field._replace(text=text_of(found), mark=yours or MARKS[found.figure.basis])


def _word_field(desk: Desk, resolved: Resolved, field: Field, yours: str) -> Field:
    """A name or a choice; where nobody says one, the usual one holds."""
    path, (section, _, key) = field.path, field.path.partition(".")
    said = desk.tier_chosen() if path == TIER else _word(resolved.words.get(path))
    usual = "" if said else _word(getattr(_part(resolved, section), key, ""))
    mark = yours or ("d" if usual else "")
    choices = choices_of(desk.catalog, path)
    return field._replace(text=said, mark=mark, choices=choices, placeholder=usual or "-")


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)


def _part(resolved: Resolved, section: str) -> Any:
    return resolved.scenario if section == "run" else getattr(resolved.scenario, section, None)


def _without(resolved: Resolved, outcome: Outcome, section: str, key: str) -> tuple[str, str]:
    """Mark and what holds where nobody gives the figure."""
    s, unit = resolved.scenario, unit_of(section, key)
    follows = {
        "checkpoint.size": quantity(float(full_bytes(s.checkpoint)), "bytes"),
        "policy.interval": quantity(float(outcome.interval_s), "s"),
        "policy.saves": count(float(outcome.saves)),
        "failures.mtbf": quantity(float(mtbf_s(outcome.plan.failures_per_s)), "s"),
    }
    if (text := follows.get(f"{section}.{key}")) is not None:
        return "=", text
    value: Any = getattr(_part(resolved, section), KEYS[section][key] or "-", None)
    if value is None or value != value or key in CADENCES or _of_absent_tier(s, key):
        return "", "-"
    return "", "no limit" if math.isinf(value) else quantity(value, unit) if unit else count(value)


def _of_absent_tier(scenario: Scenario, key: str) -> bool:
    """Whether a figure is about a second or third tier that there is not."""
    return any(
        key.startswith(f"{each}_") and getattr(scenario, f"{each}_tier") is None
        for each in ("second", "third")
    )


@lru_cache(maxsize=64)
def choices_of(catalog: Catalog, path: str) -> tuple[str, ...]:
    """What may be written there, where that is a list."""
    section, _, key = path.partition(".")
    if path in KINDS:
        return tuple(catalog.ids(KINDS[path]))
    allowed = WORDS[section].get(key, ())
    return ("true", "false") if allowed == (bool,) else () if allowed in ((), (str,)) else allowed


def put(desk: Desk, path: str, text: str) -> Desk:
    """The desk with a field changed; an empty text takes the change back. Raises InputError where
    the text alone is already wrong; whether the scenario then holds is known when it is
    computed."""
    text = text.strip()
    section, _, key = path.partition(".")
    if path == TIER:
        return _on_tier(desk, text)
    if not text:
        return desk.without(path)
    if path in KINDS:
        _known(desk.catalog, path, text)
        if key == REFERENCES.get(section):
            # as in a file: another entry forgets what was said of its section before
            desk = replace(
                desk,
                edits={
                    each: said
                    for each, said in desk.edits.items()
                    if not each.startswith(f"{section}.")
                },
            )
    elif key in KEYS[section]:
        text = with_unit(desk, path, text)
        if path in COUNTED and _size_given(desk):
            raise InputError(
                "checkpoint.size is given, so this decides nothing",
                remedy="change the size, or pick another model",
            )
    return desk.edited(path, text)


def _known(catalog: Catalog, path: str, name: str) -> None:
    kind = KINDS[path]
    try:
        catalog.get(kind, name)
    except UnknownName:
        raise UnknownName(kind, name, catalog.ids(kind), lists="Enter lists them") from None


def _on_tier(desk: Desk, tier: str) -> Desk:
    """Look at a tier; one that is not side by side with the others is put there."""
    if not tier:
        return replace(desk, chosen="")
    _known(desk.catalog, TIER, tier)
    edits = {path: text for path, text in desk.edits.items() if path != TIER}
    shown = tuple(filter(None, desk.tiers_shown()))
    return replace(
        desk, edits=edits, chosen=tier, tiers=desk.tiers if tier in shown else (*shown, tier)
    )


def _size_given(desk: Desk) -> bool:
    return any(i.path == "checkpoint.size" for i in desk.resolved().inputs)


REFUSALS = (CkptcostError, ArithmeticError, ValueError, OSError)
"""what a scenario may answer to what was typed: complaints, and sums that cannot be done; a wider
net would hide defects"""


def refusal(error: Exception) -> str:
    """Why a scenario was refused, in full."""
    return (
        str(error)
        if isinstance(error, CkptcostError | OSError)
        else f"cannot be computed with this ({error})"
    )


def reason(error: Exception, most: int = 200) -> str:
    """Why a text was refused, short enough for below its field: what is wrong and what would be
    right, not where."""
    if not isinstance(error, InputError):
        return refusal(error)[:most]
    # what lies below is wrong
    file = f"{error.where.rsplit('/', 1)[-1]}: " if error.where.endswith(".toml") else ""
    said = ". ".join(part for part in (file + error.problem, error.remedy) if part)
    return said if len(said) <= most else f"{said[: most - 2]}.."


_BARE = re.compile(r"\d[\d_]*\.?\d*|\.\d+")


def text_of(found: Input) -> str:
    """An input as a flag would give it: as it was written, else as short as it can be without
    changing it."""
    written = found.figure.text.strip()
    bare = not found.unit and _BARE.fullmatch(written)
    if written == "all" or (not bare and _means(written, found.unit) == found.figure.value):
        return written
    return exact_text(found.figure.value, found.unit)


def exact_text(value: float, unit: str) -> str:
    """The shortest text that is read back as exactly this value.

    >>> (
    ...     exact_text(3e10, "bytes_per_s"),
    ...     exact_text(630.0, "w"),
    ...     exact_text(1024.0, ""),
    ...     exact_text(4183.27, "s"),
    ... )
    ('30 GB/s', '630 W', '1024', '4183.27 s')
    """
    if math.isinf(value):
        return "all"
    name = re.sub(r"^[\d.e+-]+ ?", "", quantity(value, unit)) if unit else ""
    one = _means(f"1 {name}", unit)
    for digits in range(3, 18):
        text = f"{_plain(value / one, digits)} {name}".strip()
        if _means(text, unit) == value:
            return text
    return f"{value!r} {_BASE[unit]}".strip()


_BASE = {
    "bytes": "B",
    "bytes_per_s": "B/s",
    "s": "s",
    "w": "W",
    "j": "J",
    "j_per_byte": "J/B",
    "usd_per_gpu_s": "USD/GPU-s",
    "usd_per_j": "USD/J",
    "kgco2e_per_j": "kg/J",
    "kgco2e_per_gpu_s": "kg/GPU-s",
    "usd_per_byte_s": "USD/B-s",
    "failures_per_node_s": "/node-s",
    "failures_per_gpu_s": "/GPU-s",
    "failures_per_s": "/s",
    "per_s": "/s",
    "usd_per_s": "USD/s",
    "usd_per_byte": "USD/B",
    "usd_per_request": "USD/request",
    "bytes_per_param": "B",
    "files_per_s": "files/s",
    "gpu_s": "GPU-s",
    "usd": "USD",
    "kgco2e": "kg",
    "l": "L",
    "l_per_j": "L/J",
    "": "",
}
"""units whose factor is 1, in which every number can be written exactly"""


def _plain(value: float, digits: int) -> str:
    """Digits without an exponent where people write none.

    >>> _plain(1024.0, 4), _plain(0.49, 3), _plain(2e-7, 3)
    ('1024', '0.49', '2e-07')
    """
    text = f"{value:.{digits}g}"
    return f"{float(text):.0f}" if "e+" in text and abs(value) < 1e9 else text


def _means(text: str, unit: str) -> float:
    try:
        return parse(text, unit)
    except InputError:
        return math.nan


def with_unit(desk: Desk, path: str, text: str) -> str:
    """A number alone is meant in the unit that stood there before, a percentage as well; without
    one, in that of the example."""
    section, _, key = path.partition(".")
    unit = unit_of(section, key)
    if not _BARE.fullmatch(text):
        return text
    now = _now(desk, path) or (UNITS[unit][1] if unit else "")
    name = _BARE.sub("", now, count=1).strip() if unit else "%" * now.endswith("%")
    return f"{text} {name}" if name and not math.isnan(_means(f"1 {name}", unit)) else text


def _now(desk: Desk, path: str) -> str:
    """What stands there; of a scenario that cannot be resolved, what was written."""
    try:
        return next((text_of(i) for i in desk.resolved().inputs if i.path == path), "")
    except InputError:
        return desk.edits.get(path, "")
