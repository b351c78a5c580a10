"""What questions share: the flags that describe a job, the cases they give, targets and phrases."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, NamedTuple, TypedDict

import numpy as np

from ckptcost.advice import settled
from ckptcost.answer import Range, Table
from ckptcost.errors import InputError, unknown_name
from ckptcost.scenario import resolve as sc
from ckptcost.scenario.figures import Figure, read_section
from ckptcost.scenario.resolve import Scenario
from ckptcost.scenario.schema import CADENCES, KEYS
from ckptcost.scenario.units import parse, show
from ckptcost.study import MEASURES, MOST_DRAWS, MOST_VALUES, Study, Verdict, unit_of, verdict

DEFAULT = "gpt4-scale-2tb"
SURE = 0.5
"""a target is met if it is met in half of the draws, unless --sure asks for more"""


class Flag(NamedTuple):
    """How a parameter is given on the command line: read from the annotations by the parser."""

    help: str
    metavar: str = ""
    place: bool = False
    """given by its place, without a dash"""
    but: str = ""
    """the question that does not take it"""


Job = Annotated[str, Flag("a job file, or a preset of the catalogue", "JOB", place=True)]


class Flags(TypedDict, total=False):
    """The flags of every planning question."""

    tier: Annotated[Sequence[str], Flag("a storage tier of the catalogue; may repeat", "ID")]
    saves: Annotated[Sequence[float | str], Flag("saves in the whole run; may repeat", "N")]
    interval: Annotated[str, Flag('training time between saves, e.g. "30 min"', "TIME")]
    mode: Annotated[str, Flag("sync or async (interval also: both)", "MODE")]
    gpus: Annotated[float | str, Flag("accelerators of the job", "N")]
    mtbf: Annotated[str, Flag('mean time between failures, e.g. "20 h"', "TIME")]
    gpu_price: Annotated[str, Flag('price of a GPU-hour, e.g. "2.50 USD"', "PRICE")]
    set: Annotated[Sequence[str], Flag("any figure, e.g. tier.write=40GB/s", "KEY=VALUE")]
    require: Annotated[
        Sequence[str], Flag('exit 3 if missed, e.g. "goodput>=0.95"', "TARGET", but="need")
    ]
    sure: Annotated[float, Flag("share of draws in which a target must be met", "SHARE")]
    draws: Annotated[int, Flag("draws from the ranges of the inputs", "N")]


KEY_OF = {
    "interval": "policy.interval",
    "mode": "policy.mode",
    "gpus": "cluster.gpus",
    "mtbf": "failures.mtbf",
    "gpu_price": "cluster.gpu_price",
}
"""flags that are short for --set"""
JUDGED = ("require", "sure", "draws")
"""flags that say how the cases are judged"""


def settings_of(flags: Flags) -> list[str]:
    """All that the flags set, as key=value."""
    given = [(key, flags.get(flag)) for flag, key in KEY_OF.items()]
    short = [f"{key}={value}" for key, value in given if value is not None]
    return [*flags.get("set", ()), *short]


def check(flags: Flags) -> None:
    """Flags that are no figures."""
    sure, draws = flags.get("sure", SURE), flags.get("draws", 0)
    demand(0 < sure <= 1, f"{sure:g} is no share of draws", "--sure", "write e.g. --sure 0.95")
    asked = "sure" in flags and draws == 0 and "draws" in flags
    demand(not asked, "has no draws to count", "--sure", "leave out --draws 0")
    few = draws is None or 0 <= draws <= MOST_DRAWS
    demand(few, f"{draws:,} is out of range", "--draws", f"give 0 to {MOST_DRAWS:,}")
    for target in flags.get("require", ()):
        target_of(target)


OPEN = sc.Layer("", {"policy": {"optimal": "time"}})
"""a job that does not say how often it saves does so as often as is recommended"""


def layers_for(job: str, flags: Flags) -> list[sc.Layer]:
    """What the job's file says, and over it what the flags set."""
    check(flags)
    settings = settings_of(flags)
    layers = [OPEN, *sc.layers_of(job)]
    try:
        return [*layers, sc.layer_of_flags(settings)] if settings else layers
    except InputError as error:
        short = {f"--set: {key}": f"--{flag.replace('_', '-')}" for flag, key in KEY_OF.items()}
        error.where = short.get(error.where, error.where)
        raise


def cases_for(job: str, flags: Flags) -> dict[str, Scenario]:
    """Every tier at every number of saves; an interval that is left open is the recommended one."""
    found = sc.cases_of(layers_for(job, flags), flags.get("tier", ()), counts(flags))
    demand_room(len(found), flags.get("draws", 0), "--draws")
    return {name: settled(each) for name, each in found.items()}


def demand_room(plans: int, draws: int | None, flag: str) -> None:
    """Refuse what would not fit into memory."""
    problem = f"{plans:,} plans in {draws or 0:,} draws are too much"
    demand(plans * (1 + (draws or 0)) <= MOST_VALUES, problem, flag, f"at most {MOST_VALUES:,}")


def counts(flags: Flags) -> list[float]:
    """Numbers of saves of --saves."""
    said = [read_section("policy", {"saves": each}) for each in flags.get("saves", ())]
    return [each["saves"].value for each in said]


def one_case(job: str, flags: Flags, verb: str) -> dict[str, Scenario]:
    """For questions about one plan; of a job that compares several, the first."""
    for flag in ("tier", "saves"):
        several = len(flags.get(flag, ())) > 1  # type: ignore[arg-type]
        demand(not several, "one plan at a time", verb, f"give one --{flag}")
    return dict([*cases_for(job, flags).items()][:1])


def options_of(flags: Flags) -> dict[str, Any]:
    """What of the flags an answer needs besides its cases."""
    return {key: flags[key] for key in JUDGED if key in flags}  # type: ignore[literal-required]


def typed(job: str, flags: Flags) -> str:
    """Job and flags as they are typed behind a command, those about draws and targets left out."""
    words = [job] if job != DEFAULT else []
    for flag, value in flags.items():
        if flag not in JUDGED:
            several = [value] if isinstance(value, (str, int, float)) else value
            name = "--" + flag.replace("_", "-")
            listed: Any = several
            words += [word for each in listed for word in (name, str(each))]
    return shlex.join(words)


PATHS = [f"{section}.{key}" for section, keys in KEYS.items() for key in keys]
SHORT = {path.partition(".")[2]: path for path in reversed(PATHS)}
"""keys without their section stand for the first section that has them"""
SHORT |= {section: f"{section}.id" for section in KEYS if f"{section}.id" in PATHS}


def path_of(key: str) -> str:
    """The full path of a figure or word: "write" is tier.write, "tier" is tier.id."""
    if key in PATHS:
        return key
    if key not in SHORT:
        raise unknown_name("key", key, PATHS if "." in key else sorted(SHORT))
    return SHORT[key]


# --- targets --------------------------------------------------------------------------------------


class Target(NamedTuple):
    """A measure and its limit, such as goodput>=0.95."""

    measure: str
    limit: float
    at_least: bool
    text: str

    def holds(self, values: Any) -> Any:
        """Whether each value of the measure keeps the limit."""
        return values >= self.limit if self.at_least else values <= self.limit

    def met_by(self, study: Study, row: int) -> Verdict:
        """In how many draws a case keeps it."""
        return verdict(self.holds(study.of(self.measure, drawn=True)[row]))

    def missed_by(self, values: Any, sure: float) -> str:
        """Why values, the stated one first, do not keep it in that share of the draws; or ""."""
        if np.isnan(values[0]):
            return f"{self.text} cannot be said: {self.measure} is not known"
        met = verdict(self.holds(values))
        return "" if met.share >= sure else f"{self.text} is met {met.say()}"

    def say(self, found: Range) -> str:
        """The measure with its range, in as many digits as show on which side of the limit it is:
        "useful training 95.97 % (93-98 %)"."""
        unit, digits = MEASURES[self.measure].unit, 3
        while found.value != self.limit and digits < 9:
            if show(found.value, unit, digits) != show(self.limit, unit, digits):
                break
            digits += 1
        return named(self.measure, found.say(unit, digits))


def named(measure: str, text: str) -> str:
    """An amount with what it is: "useful training 97 %"; "20,000 USD", which is named already."""
    unit, header, *_ = MEASURES[measure]
    is_named = unit != "s" and header.startswith(unit)
    return text if is_named else f"{header} {text.removesuffix(' count')}"


def target_of(text: str, flag: str = "--require") -> Target:
    """Of "goodput>=0.95", "overhead<=1 %", "cost<=10000 USD"."""
    said = re.fullmatch(r"\s*(\w+)\s*(>=|<=)\s*(.+)", text)
    if not said:
        raise InputError(f"{text[:60]!r} is no target", flag, 'write e.g. "goodput>=0.95"')
    measure, sign, limit = said.groups()
    if measure not in MEASURES:
        raise unknown_name("measure", measure, MEASURES, f"{flag} {text[:60]!r}")
    unit = MEASURES[measure].unit
    example = {"share": "0.5", "count": "1"}.get(unit, f"1 {unit}")
    try:
        found = Target(measure, parse(limit, example), sign == ">=", text)
    except InputError as error:
        raise error.at(flag) from None
    possible = unit != "share" or found.limit <= 1.0
    demand(possible, f"{limit} is more than 100 %", flag, 'write e.g. "goodput>=0.95"')
    return found


def missed(
    study: Study, flags: Flags, rows: Sequence[int] | None = None, unfit: Sequence[int] = ()
) -> list[str]:
    """Targets of --require that a case misses, in words: those met in less than --sure of draws,
    and all of a plan that does not work."""
    found = []
    for target in map(target_of, flags.get("require", ())):
        for row in range(len(study.names)) if rows is None else rows:
            values = study.of(target.measure, drawn=True)[row]
            why = target.missed_by(values, flags.get("sure", SURE))
            if not np.isnan(values[0]) and row in unfit:
                why = f"{target.text} is not met, as the plan does not work"
            elif why and not np.isnan(values[0]):
                why += f" ({target.say(study.range(target.measure, row))})"
            found += [f"{study.names[row]}: {why}"] if why else []
    return found


# --- phrases --------------------------------------------------------------------------------------


def opened(scenario: Scenario) -> Scenario:
    """Without a cadence of its own: as often as takes the least time."""
    policy = {k: v for k, v in scenario.said["policy"].items() if k not in CADENCES}
    return replace(scenario, said=scenario.said | {"policy": policy | {"optimal": "time"}})


def with_values(scenario: Scenario, values: Mapping[str, float]) -> Scenario:
    """With these figures in it, and all that follow them."""
    for path, value in values.items():
        scenario = scenario.with_figure(path, figure_at(path, value))
    return scenario


def figure_at(path: str, value: float) -> Figure:
    """One value of a figure, tried."""
    return Figure(value, value, value, "user", text=show(value, unit_of(path)), origin="as tried")


def np_text(words: Any, row: int) -> str:
    """A word of a case."""
    return str(words[row if len(words) > 1 else 0, 0])


def and_join(parts: Sequence[str]) -> str:
    """
    >>> and_join(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def without_empty(table: Table) -> Table:
    """Without the columns in which nothing stands."""
    keep = [i for i in range(len(table.columns)) if any(row[i] is not None for row in table.rows)]
    table.columns = [table.columns[i] for i in keep]
    table.rows = [[row[i] for i in keep] for row in table.rows]
    return table


def demand(condition: bool, problem: str, where: str, remedy: str) -> None:
    """Refuse an input that does not make sense."""
    if not condition:
        raise InputError(problem, where, remedy)
