"""Labels of lines and the words of each caution: what it means and what to do next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil, isfinite
from string import Formatter
from typing import Any

from ckptcost.first.core.cautions import COLLECTIVE_TIMEOUT_S, Caution
from ckptcost.first.core.domain import Number
from ckptcost.first.core.lines import tier_and_kind
from ckptcost.first.jobs.gates import GateVerdict
from ckptcost.first.present.amounts import amount, count, duration, number, power, share, size


def light_word(light: Number) -> str:
    """The light of a first-order rule as a word.

    >>> light_word(2), light_word(float("nan"))
    ('green', 'not applicable')
    """
    return "not applicable" if light != light else ("red", "amber", "green")[int(light)]


def rule_text(over: float | None, cost: str, light: str) -> str:
    """What an interval by a rule of thumb costs over the best one.

    >>> rule_text(0.0123, "wall time", "amber"), rule_text(4e-8, "wall time", "green")
    ('costs 1.23 % over the least wall time (amber)',
     'costs less than 0.01 % over the least wall time (green)')
    >>> rule_text(float("nan"), "wall time", "not applicable")
    'is not applicable'
    """
    if over is None or over != over:
        return f"is {light}"
    amount = "less than 0.01 %" if over < 1e-4 else share(over)
    return f"costs {amount} over the least {cost} ({light})"


def line_label(line_id: str) -> str:
    """A line's label; those of further tiers say so.

    >>> line_label("second_storage_write")
    'storage writing, second tier'
    """
    tier, kind = tier_and_kind(line_id)
    return kind.label + (f", {tier.replace('_', ' ')}" if tier != "tier" else "")


_SAID: Mapping[str, Callable[[float], str]] = {
    "duration": duration,
    "power": power,
    "share": share,
    "size": size,
    "room": lambda bytes_: size(bytes_) if isfinite(bytes_) else "more room",
    "a_day": lambda per_s: number(per_s * 86400),
}


class _Filled(Formatter):
    """Fields of a text, each as an amount of what it names: `{value:duration}`."""

    def format_field(self, value: Any, format_spec: str) -> str:
        return _SAID[format_spec](value)


_CAUTIONS = {
    "NEVER_FINISHES": (
        "The run would all but never finish: failures and saves take nearly all of its time. Take a"
        " faster tier first; the best interval is what `ckptcost optimize` says."
    ),
    "NO_SAVE_IN_RUN": (
        "The interval of {value:duration} is longer than the run of {limit:duration}: nothing is"
        " saved, and every failure starts it over."
    ),
    "NO_FIXED_TIME": (
        "A save of {value:duration} counts nothing for planning, barrier, fsync and commit"
        " (tier.setup = 0 s): measure that time and give it."
    ),
    "POWER_STEP": (
        "When a save holds training up, the job's power falls by {value:power} and comes back when"
        " it is over, at every save: agree that with whoever supplies it. A snapshot shortens the"
        " step, and makes it no smaller."
    ),
    "STALL_NEAR_MTBF": (
        "A save blocks for {value:share} of the mean time between failures: failures hit many saves"
        " before they are through. A faster tier or a snapshot shortens them."
    ),
    "RECOVERY_NEAR_MTBF": (
        "Starting, loading and warming up take {value:share} of the mean time between failures:"
        " many recoveries are hit again before they are through. Shorten loading and restart first."
    ),
    "STALL_OVER_INTERVAL": (
        "Each save blocks longer ({value:duration}) than training runs between two"
        " ({limit:duration})."
    ),
    "CAPACITY": (
        "The checkpoints kept need {value:room}; the tier holds {limit:size}. Set policy.keep_last,"
        " or give tier.capacity."
    ),
    "DRIVE_WEAR": (
        "Checkpoints alone write the drives full {value:a_day} times a day; they are rated for"
        " {limit:a_day}."
    ),
    "MEAN_OF_RATES": (
        "The published write rate spreads by {value:share} from one save to the next. If the rate"
        " in use is a mean of such rates, it is more than bytes over time (about 1+spread^2 times):"
        " then give durations (tier.save_time)."
    ),
    "MEAN_OF_READ_RATES": (
        "The published read rate spreads by {value:share} from one load to the next. If the rate in"
        " use is a mean of such rates, it is more than bytes over time (about 1+spread^2 times),"
        " and loading takes longer: then give durations (tier.load_time)."
    ),
    "SCALED_TIME": (
        "The times of tier.save_time and tier.load_time were measured with {limit:size} and are"
        " taken in proportion for {value:size}: what does not grow with the bytes is scaled too."
    ),
    "STAGING_BUDGET": (
        "The copies in flight want {value:size} of host memory a node and may take {limit:size}"
        " (cluster.staging_budget): training waits until the rest has drained."
    ),
    "NAMEPLATE_POWER": (
        "Writing is charged the whole {value:power} of the tier, because its idle power is not"
        " known: an upper bound. Give tier.idle_power or tier.write_energy."
    ),
    "PERSIST_OVER_INTERVAL": (
        "With so many in flight a save can begin each {value:duration}, and the cycle is"
        " {limit:duration}: the next one waits or is skipped (policy.when_busy, policy.in_flight)."
    ),
    "HOST_RAM": (
        "A node needs {value:size} of host memory for copies of saves and what the job holds, and"
        " has {limit:size}: a save can kill it. Fewer in flight, cluster.staging_budget, more"
        " nodes, or a direct write."
    ),
    "COPY_DIES_WITH_NODE": (
        "This tier dies with its node, and {value:share} of failures lose one. The figures assume"
        " that another copy exists: name it with second_tier.id and policy.second_every."
    ),
    "SECOND_LAG_NEAR_MTBF": (
        "Until a save is safe on the second tier passes {value:share} of the mean time between"
        " failures: the closed form of two asynchronous tiers, right to first order in that, is too"
        " kind. `ckptcost simulate` walks through it."
    ),
    "SECOND_TIER_TOO_SLOW": (
        "The second tier needs {value:duration} a save but gets one each {limit:duration}: raise"
        " policy.second_every."
    ),
}


def caution_text(caution: Caution) -> str:
    """One sentence of what holds and one of what to do."""
    value, limit = float(caution.value), float(caution.limit)
    if caution.code == "COLLECTIVE_TIMEOUT":
        return _timeout_text(value, limit, float(caution.slow))
    if caution.code == "KEEPING_DOMINATES":
        advice = "keeping fewer saves nothing: provision less, or take a cheaper tier."
        if limit < 0.9 * value:
            advice = f"with the newest three on each tier it would be {share(limit)}"
            advice += " (policy.keep_last)."
        return f"Keeping checkpoints is {share(value)} of these dollars; {advice}"
    if caution.code not in _CAUTIONS:
        return caution.code
    return _Filled().format(_CAUTIONS[caution.code], value=value, limit=limit)


def _timeout_text(value: float, limit: float, slow: float) -> str:
    longest = max(value, slow) if slow == slow else value
    how_long = f"blocks for {duration(value)}"
    if not value > limit:
        how_long = f"may block for {duration(slow)} (99 of 100 draws stay below)"
    elif longest > 1.1 * value:
        how_long += f", the slowest of a hundred draws for {duration(slow)}"
    return (
        f"A save {how_long}; ranks that wait for it in a collective give up after "
        f"{duration(COLLECTIVE_TIMEOUT_S)} by default with NCCL in PyTorch, 30 min with other"
        " backends. Call init_process_group(timeout=timedelta(seconds="
        f"{ceil(max(3.0 * longest, 1800.0) / 600.0) * 600}))."
    )


def caution_of_several(said: Sequence[tuple[str, str]], everyone: int) -> str:
    """One caution that holds for several, (name, words) each: the words of the first, and whom they
    are of.

    >>> caution_of_several([("A", "It blocks for 9 h."), ("B", "It blocks for 2 h.")], everyone=2)
    'It blocks for 9 h. [A; with other figures B]'
    >>> caution_of_several([("A", "Too slow."), ("C", "Too slow.")], everyone=3)
    'Too slow. [A, C]'
    """
    words = said[0][1]
    alike = ", ".join(name for name, text in said if text == words)
    others = ", ".join(name for name, text in said if text != words)
    if others:
        return f"{words} [{alike}; with other figures {others}]"
    return words if len(said) == everyone else f"{words} [{alike}]"


def result_text(value: float, measure_id: str, unit: str) -> str:
    """A result as people say it: shares as percentages, counts as counts."""
    if measure_id == "goodput":
        return share(value)
    return amount(value, unit) if unit else count(value)


def gate_text(verdict: GateVerdict) -> str:
    """One line of whether a target is met."""
    gate = verdict.gate
    value = (
        "unknown"
        if verdict.value != verdict.value
        else result_text(verdict.value, gate.measure.id, gate.measure.unit)
    )
    where = f" [{verdict.of}]" if verdict.of else ""
    return f"{'met' if verdict.met else 'MISSED'}: {gate.text}, it is {value}{where}"


def unknown_text(path: str, reason: str) -> str:
    """One sentence on an input that nobody gives."""
    return f"{path} is not known: {reason}. Figures that need it are left out, not counted as zero."


GRID_METHODS = {
    "combustion": "combustion alone: Scope 2",
    "life-cycle": "life cycle: Scope 2 and what Scope 3 has of fuels and energy, not told apart",
    "unknown": "what it counts is not known: site.grid_method",
}
"""what a location-based factor counts, in words"""


METHODS = {
    "combustion": "combustion alone",
    "life-cycle": "the whole life cycle",
    "unknown": "a method that is not known",
}
"""the same inside a sentence"""


SCOPES = {
    "combustion": "Scope 2",
    "life-cycle": "Scope 2 and 3.3 (life cycle)",
    "unknown": "Scope 2 (method not known)",
}
"""what an inventory may call the figure: gross Scope 2 is combustion alone"""


def method_text(choices: Mapping[str, object], words: Mapping[str, str] = GRID_METHODS) -> str:
    """What the grid factor of a scenario counts."""
    return words.get(str(choices.get("site.grid_method")), words["unknown"])


def scope_text(choices: Mapping[str, object]) -> str:
    """What an inventory may call the location-based figure.

    >>> (
    ...     scope_text({"site.grid_method": "combustion"}),
    ...     scope_text({"site.grid_method": "life-cycle"}),
    ... )
    ('Scope 2', 'Scope 2 and 3.3 (life cycle)')
    """
    return method_text(choices, SCOPES)
