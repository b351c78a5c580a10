"""What the interval screen says in sentences: the trial, the price of the present interval, the
rules of thumb, and what to beware of."""

from __future__ import annotations

from ckptcost.core.cautions import cautions_of
from ckptcost.core.measures import saves_per_day
from ckptcost.core.regret import WITHIN
from ckptcost.jobs.optimize import Point
from ckptcost.present.amounts import count, duration, number, share
from ckptcost.present.grid import Tone
from ckptcost.present.words import caution_text
from ckptcost.report.studies.optimize import WORTH_SAYING, advice, rules_line
from ckptcost.report.studies.optimize_levels import two_tiers
from ckptcost.report.studies.run_columns import COSTS, regret_value, row_of, stay
from ckptcost.tui.screens.interval_view import Studied
from ckptcost.tui.screens.tiers_view import no_headway

Line = tuple[str, Tone]
LIGHTS: dict[float, Tone] = {2: "good", 1: "warn", 0: "bad"}
"""the traffic light of a rule of thumb"""
RULED = ("young", "daly")
RULES: dict[Tone, str] = {
    "": "{}'s rule",
    "good": "{}'s rule",
    "warn": "{}: rough",
    "bad": "{}: off",
}
"""the light once more as words, for their rows"""


def trial_line(one: Studied, trial: Point) -> str:
    """The trial, and how far it is from the best."""
    if why := no_headway(trial.outcome):
        return f"Hopeless every {duration(trial.interval_s)}: {why}."
    values = row_of(trial.outcome)
    over = regret_value(trial.regrets[one.objective])
    far = over is not None and over >= WORTH_SAYING
    worse = (
        f"{share(over)} over the least {COSTS[one.objective]}"
        if far
        else f"within {share(WORTH_SAYING)} of the best for {one.objective}"
    )
    amounts = [f"goodput {share(values['goodput'])}"]
    amounts += [
        f"{number(values[name])} {unit}"
        for name, unit in (("energy", "kWh"), ("cost", "USD"))
        if values[name] is not None
    ]
    often = count(float(saves_per_day(trial.outcome)))
    return f"Every {duration(trial.interval_s)}: {worse}; {', '.join(amounts)}, {often} saves a day"


def notes(one: Studied) -> list[Line]:
    """What the present interval costs over the best one, how flat the valley is, what the rules of
    thumb say, and what to beware of."""
    best, found = one.best, one.found
    lines: list[Line] = [_now_line(one)]
    lines += [(text, "warn") for text in advice(found)]
    if why := no_headway(best.outcome):
        return [
            _now_line(one),
            (
                f"Hopeless on {found.option.tier_id}: even at the best interval, every"
                f" {duration(best.interval_s)}, {why}. It takes a faster tier, or fewer failures.",
                "bad",
            ),
            _rules(one),
            *_held(one),
        ]
    ends = found.plateaus[one.objective]
    if ends.low_s == ends.low_s:
        lines.append(
            (
                (
                    f"From {duration(ends.low_s)} to {duration(ends.high_s)} the"
                    f" {COSTS[one.objective]} {stay(one.objective)} within 1 % of the least."
                ),
                "",
            )
        )
    lines.append(_rules(one))
    cheaper = [each for each, value in found.never.items() if value < 0]
    if cheaper:
        lines.append(
            (
                (
                    f"Not saving at all costs less ({', '.join(cheaper)}): the run is short beside"
                    " the time between failures."
                ),
                "warn",
            )
        )
    if found.levels is not None:
        lines += [(text, "") for text in two_tiers(found.levels, one.objective)]
    return lines + _held(one)


def _rules(one: Studied) -> Line:
    """In the light of the distance that was measured."""
    found = one.found
    return rules_line(found), LIGHTS.get(float(found.classic.interval_light), "")


def _held(one: Studied) -> list[Line]:
    """What to beware of at the best interval."""
    held = cautions_of(one.found.option.scenario, one.best.outcome)
    return [(caution_text(each), "warn") for each in held if bool(each.holds)]


def _advised(one: Studied) -> str:
    """What to do, in a few words."""
    kind = "robust interval" if one.found.robust.moves else "best"
    return f"the {kind} for {one.objective} is every {duration(one.advised.interval_s)}"


def _now_line(one: Studied) -> Line:
    now, best = one.now, one.best
    if now is None:
        return (
            f"No interval is in force: {_advised(one)}. Enter a trial with a.",
            "",
        )
    over = now.regrets[one.objective]
    lead = f"Now every {duration(now.interval_s)}"
    if why := no_headway(now.outcome):
        return f"{lead}: hopeless, {why}; best is every {duration(best.interval_s)}.", "bad"
    if not over >= WORTH_SAYING:
        return (
            (
                f"{lead}: within {share(WORTH_SAYING)} of the best for {one.objective}, "
                f"every {duration(best.interval_s)}."
            ),
            "good",
        )
    mine, least = (row_of(point.outcome)["cost"] for point in (now, best))
    usd = (
        f" and {number(mine - least)} USD a run"
        if mine is not None and least is not None and mine > least
        else ""
    )
    text = (
        f"{lead}: {share(over)} more {COSTS[one.objective]}{usd} than every"
        f" {duration(best.interval_s)}."
    )
    return text, "warn" if over > WITHIN else ""
