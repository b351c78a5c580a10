"""The sentences of a comparison: what differs, how surely, and what no difference can be told
of."""

from __future__ import annotations

import numpy as np

from ckptcost.core.measures import BILLED
from ckptcost.core.outcome import makes_headway
from ckptcost.core.quantities import EVERYDAY, in_people, unit_of_people
from ckptcost.jobs.compare import (
    LETTERS,
    RESULTS,
    SURE,
    Compared,
    Result,
    ScenarioDifference,
    line_difference,
    lines_of,
    useful_gpu_s,
)
from ckptcost.present.amounts import (
    count,
    drawn_between,
    duration,
    number,
    points,
    quantities,
    share,
)
from ckptcost.present.words import (
    METHODS,
    caution_of_several,
    caution_text,
    line_label,
    unknown_text,
)
from ckptcost.report.studies.run_columns import share_of_draws

_TOLD = ("goodput", *(q.measure for q in EVERYDAY))
_LEAST = {
    "goodput": "highest goodput",
    "kwh": "least energy",
    "usd": "least dollars",
    "kgco2e": "least emissions",
}
_BY_ID = {result.id: result for result in RESULTS}


def about(answer: Compared) -> list[str]:
    """Which letter is which."""
    return [
        f"{LETTERS[at]}: {name}, {count(case.scenario.cluster.gpus)} x "  # type: ignore[arg-type]
        f"{case.resolved.names.get('accelerator', 'GPU')}, "
        f"{duration(float(case.scenario.work_s))} of training, {case.tier_id},"
        f" {case.scenario.policy.mode}"
        for at, (name, case) in enumerate(zip(answer.names, answer.cases, strict=True))
    ]


def work_differs(answer: Compared) -> bool:
    """Whether the scenarios do different amounts of useful work."""
    works = [float(useful_gpu_s(case.scenario)) for case in answer.cases]
    return max(works) > min(works) * (1.0 + 1e-9)


def findings(answer: Compared, found: dict[tuple[int, str], ScenarioDifference]) -> list[str]:
    """For each scenario what it has more or less of than A, then who is best."""
    said = []
    hopeless = [at for at, case in enumerate(answer.cases) if not makes_headway(case.outcome)]
    for at in hopeless:
        case = answer.cases[at]
        own = (
            "even at its own best interval"
            if case.scenario.policy.cadence == "optimal"
            else 'at this interval; --set policy.optimal="time" compares it at its own best'
        )
        said.append(
            f"{LETTERS[at]} makes next to no headway {own}: {share(float(case.outcome.goodput))} of"
            " its time is work that lasts. Nobody would let it go on, so nothing is saved or added"
            " against it."
        )
    for at in range(1, len(answer.cases)):
        for name in _TOLD:
            if not {0, at} & set(hopeless):
                said += _sentence(answer, at, _BY_ID[name], found[at, name])
    return said + _best(answer, found)


def _sentence(answer: Compared, at: int, result: Result, change: ScenarioDifference) -> list[str]:
    letter = LETTERS[at]
    if change.lacking:
        # what can be said: the lines that both know
        parts = [
            rise
            for line in lines_of(answer)
            if (
                rise := line_difference(
                    answer.cases[0].outcome.run,
                    answer.cases[at].outcome.run,
                    line,
                    BILLED[result.id].field,
                )[2]
            )
            == rise
        ]
        if len(change.lacking) == len(lines_of(answer)):
            return [f"{letter}: {result.label}: known in one of the two only."]
        return [
            f"{letter}: no difference of the {result.label} is told, because"
            f" {_line_names(change.lacking)} is known in one of the two only; the lines known in"
            f" both differ by {_signed_text(sum(parts), result)}."
        ]
    if change.methods[0] != change.methods[1]:
        return [
            f"{letter}: no difference of the {result.label} is told, because A's grid factor is of"
            f" {METHODS[change.methods[0]]} and {letter}'s of {METHODS[change.methods[1]]}: name"
            " grids of one method (site.grid), or give site.grid_location and site.grid_method."
        ]
    if change.value != change.value:
        return []
    if change.value == 0 and change.low == change.high:
        return [f"{letter}: {result.label} as in A."]
    if change.value == 0:
        return [
            f"{letter}: {result.label} as in A at the stated values; the ranges of the inputs"
            f" differ (p5-p95 of the difference {_between(change, result)})."
        ]
    relative = (
        ""
        if change.relative != change.relative or result.id == "goodput"
        else f" ({_plus(change.relative)}{share(change.relative)})"
    )
    text = f"{letter}: {result.label} {_signed_text(change.value, result)}{relative}"
    if change.low < change.high:
        text += f", p5-p95 {_between(change, result)}"
    text += "."
    if not change.sign_is_certain:
        text += (
            f" The sign is not certain: {letter} has more in {share(share_of_draws(change.more))}"
            " of the draws."
        )
    elif main := _main_line(answer, at, result, change.value):
        text += f" {main}."
    return [text]


def _main_line(answer: Compared, at: int, result: Result, whole: float) -> str:
    """The line that makes the largest part of a difference; most of it only where it is over
    half."""
    if result.id not in BILLED or result.id == "kgco2e":
        return ""
    first, other = answer.cases[0].outcome.run, answer.cases[at].outcome.run
    field = BILLED[result.id].field
    rises = {line: line_difference(first, other, line, field)[2] for line in lines_of(answer)}
    known = {
        line: rise for line, rise in rises.items() if rise == rise and abs(rise) < float("inf")
    }
    if not known:
        return ""
    line = max(known, key=lambda each: abs(known[each]))
    if not known[line]:
        return ""
    lead = "Most of it" if known[line] / whole > 0.5 else "The largest part"
    return f"{lead}: {line_label(line)} ({_signed_text(known[line], result)})"


def _plus(value: float) -> str:
    return "+" if value > 0 else ""


def amount(value: float, name: str, unit: str) -> str:
    """A result in a sentence: "1,830 kWh", "93.1 %".

    >>> amount(3.6e9, "kwh", "j"), amount(0.931, "goodput", "")
    ('1,000 kWh', '93.1 %')
    """
    if name == "goodput":
        return share(value)
    if unit in ("s", ""):
        return duration(value) if unit else count(value)
    return f"{number(in_people(value, unit))} {unit_of_people(unit)}"


def _signed_text(value: float, result: Result) -> str:
    if result.id == "goodput":
        return f"{_plus(value)}{points(value)}"
    return _plus(value) + amount(value, result.id, result.unit)


def _between(change: ScenarioDifference, result: Result) -> str:
    if result.id == "goodput" or change.low < 0:
        return f"{_signed_text(change.low, result)} to {_signed_text(change.high, result)}"
    return quantities(change.low, change.high, result.unit, drawn_between)


def _best(answer: Compared, found: dict[tuple[int, str], ScenarioDifference]) -> list[str]:
    """Who is best at what, where all can be held against A; how surely, where the ranges leave room
    for another.

    Totals of different work rank nothing: those are ranked by what they are for each useful
    GPU-hour.
    """
    said = []
    useful = work_differs(answer)
    for name, text in _LEAST.items():
        by, per = (
            (f"{name}_per_useful", f"{text} per useful GPU-hour")
            if useful and name != "goodput"
            else (name, text)
        )
        result = _BY_ID[by]
        if any(found[at, by].value != found[at, by].value for at in range(1, len(answer.cases))):
            continue
        sign = -1.0 if name == "goodput" else 1.0
        costs = [sign * float(result.of(case.scenario, case.outcome)) for case in answer.cases]
        winners = [at for at, cost in enumerate(costs) if cost == min(costs)]
        if len(winners) == len(costs):
            continue
        drawn = [
            sign * np.asarray(result.of(case.scenario, together), dtype=float)
            for case, together in zip(answer.cases, answer.together, strict=True)
        ]
        others = [each for at, each in enumerate(drawn) if at not in winners]
        held = float(np.mean(np.all([drawn[winners[0]] < each for each in others], axis=0)))
        sure = ""
        if held < 0.5:
            sure = f" at the stated values, but in {share(share_of_draws(held))} of the draws only"
        elif held < SURE:
            sure = f" in {share(share_of_draws(held))} of the draws, so not for sure"
        said.append(f"{per}: {' and '.join(LETTERS[at] for at in winners)}{sure}")
    return [f"{'; '.join(said)[0].upper()}{'; '.join(said)[1:]}."] if said else []


def _line_names(lines: tuple[str, ...]) -> str:
    return " and ".join(line_label(line) for line in lines)


def lines_in_no_sum(answer: Compared) -> str:
    """Lines that no sum of energy or dollars has, by scenario."""
    said = []
    for what, name in (("energy", "kwh"), ("cost", "usd")):
        left = [_BY_ID[name].lines(case.outcome) for case in answer.cases]
        if len(set(left)) == 1 and left[0]:
            said.append(f"{what} without {_line_names(left[0])}")
        elif any(left):
            said += [
                f"{what} of {LETTERS[at]} without {_line_names(lines)}"
                for at, lines in enumerate(left)
                if lines
            ]
    return f"Left out because unknown: {'; '.join(said)}." if said else ""


def warnings(
    answer: Compared, found: dict[tuple[int, str], ScenarioDifference]
) -> list[tuple[str, str]]:
    """Cautions of each scenario, what is unknown, and whether they can be held against each other
    at all."""
    said = []
    if work_differs(answer):
        said.append(
            (
                "DIFFERENT_WORK",
                (
                    "The scenarios do different amounts of useful work (run.work x cluster.gpus):"
                    " totals of a longer or larger run are higher for that alone. Compare what is"
                    " said per 1,000 useful GPU-hours as well."
                ),
            )
        )
    accelerators = {case.resolved.names.get("accelerator", "") for case in answer.cases}
    if len(accelerators) > 1:
        said.append(
            (
                "DIFFERENT_GPUS",
                (
                    "A GPU-hour of one accelerator is not the work of another's: set run.work of"
                    " each to the time it needs for the same training."
                ),
            )
        )
    models = {case.resolved.names.get("checkpoint", "") for case in answer.cases}
    if len(models) > 1:
        said.append(
            (
                "DIFFERENT_MODEL",
                "The checkpoints are of different models, so the jobs are not variants of one.",
            )
        )
    cautions: dict[str, list[tuple[str, str]]] = {}
    unknown: dict[str, tuple[str, str]] = {}
    for letter, case in zip(LETTERS, answer.cases, strict=False):
        for caution in case.cautions:
            cautions.setdefault(caution.code, []).append((letter, caution_text(caution)))
        for path, reason in case.resolved.unknown.items():
            text, letters = unknown.get(path, (unknown_text(path, reason), ""))
            unknown[path] = (text, letters + letter)
    everyone = LETTERS[: len(answer.cases)]
    said += [(code, caution_of_several(texts, len(everyone))) for code, texts in cautions.items()]
    return said + [
        ("UNKNOWN_INPUT", text + _in(letters, everyone)) for text, letters in unknown.values()
    ]


def _in(letters: str, everyone: str) -> str:
    return "" if letters == everyone else f" [{', '.join(letters)}]"
