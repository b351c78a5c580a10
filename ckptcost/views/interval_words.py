"""What the interval screen says in sentences: the trial, the price of the present interval, the
rules of thumb, and what to beware of."""

from __future__ import annotations

from ckptcost.core.cautions import cautions_of
from ckptcost.core.measures import saves_per_day
from ckptcost.core.outcome import makes_headway
from ckptcost.core.regret import WITHIN
from ckptcost.jobs.optimize import Point
from ckptcost.present.amounts import count, duration, number, share
from ckptcost.present.grid import Tone
from ckptcost.present.words import caution_text
from ckptcost.report.studies.optimize import WORTH_SAYING, advice, rules_line
from ckptcost.report.studies.optimize_levels import two_tiers
from ckptcost.report.studies.run_columns import COSTS, regret_value, row_of, stay
from ckptcost.views.interval import Studied, hopeless

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
    if hopeless(trial.outcome):
        return (
            f"Every {duration(trial.interval_s)} the run would all but never finish: too much is"
            " lost between two saves."
        )
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
    if hopeless(best.outcome):
        lines.append(
            (
                (
                    "Even at the best interval the run would all but never finish: a faster tier,"
                    " or fewer failures."
                ),
                "bad",
            )
        )
    ends = found.plateaus[one.objective]
    if ends.low_s == ends.low_s and not hopeless(best.outcome):
        lines.append(
            (
                (
                    f"From {duration(ends.low_s)} to {duration(ends.high_s)} the"
                    f" {COSTS[one.objective]} {stay(one.objective)} within 1 % of the least."
                ),
                "",
            )
        )
    light = float(found.classic.interval_light)
    lines.append((rules_line(found), LIGHTS.get(light, "")))
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
    held = cautions_of(found.option.scenario, best.outcome)
    return lines + [(caution_text(each), "warn") for each in held if bool(each.holds)]


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
    if hopeless(now.outcome):
        return (
            (
                f"{lead} the run would all but never finish; best is every"
                f" {duration(best.interval_s)}."
            ),
            "bad",
        )
    if not makes_headway(now.outcome):
        return (
            (
                f"{lead} the run makes next to no headway (goodput"
                f" {share(float(now.outcome.goodput))}); best is every {duration(best.interval_s)}."
            ),
            "bad",
        )
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
