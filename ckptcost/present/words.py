"""Labels of lines and the words of each caution: what it means and what to do next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

from ckptcost.core.cautions import COLLECTIVE_TIMEOUT_S, Caution
from ckptcost.core.domain import Number
from ckptcost.core.lines import tier_and_kind
from ckptcost.jobs.gates import GateVerdict
from ckptcost.present.amounts import amount, count, duration, number, power, share, size


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


def caution_text(caution: Caution) -> str:
    """One sentence of what holds and one of what to do."""
    value, limit = float(caution.value), float(caution.limit)
    match caution.code:
        case "NEVER_FINISHES":
            return (
                "The run would all but never finish: failures and saves take nearly all of its"
                " time. Take a faster tier first; the best interval is what `ckptcost optimize`"
                " says."
            )
        case "NO_SAVE_IN_RUN":
            return (
                f"The interval of {duration(value)} is longer than the run of {duration(limit)}:"
                " nothing is saved, and every failure starts it over."
            )
        case "NO_FIXED_TIME":
            return (
                f"A save of {duration(value)} counts nothing for planning, barrier, fsync and"
                " commit (tier.setup = 0 s): measure that time and give it."
            )
        case "POWER_STEP":
            return (
                f"When a save holds training up, the job's power falls by {power(value)} and comes"
                " back when it is over, at every save: agree that with whoever supplies it. A"
                " snapshot shortens the step, and makes it no smaller."
            )
        case "COLLECTIVE_TIMEOUT":
            slow = float(caution.slow)
            longest = max(value, slow) if slow == slow else value
            if not value > limit:
                how_long = f"may block for {duration(slow)} (99 of 100 draws stay below)"
            elif longest > 1.1 * value:
                how_long = (
                    f"blocks for {duration(value)}, the slowest of a hundred draws for"
                    f" {duration(slow)}"
                )
            else:
                how_long = f"blocks for {duration(value)}"
            return (
                f"A save {how_long}; ranks that wait for it in a collective give up after "
                f"{duration(COLLECTIVE_TIMEOUT_S)} by default with NCCL in PyTorch, 30 min with"
                " other backends. Call "
                "init_process_group(timeout=timedelta(seconds="
                f"{ceil(max(3.0 * longest, 1800.0) / 600.0) * 600}))."
            )
        case "STALL_NEAR_MTBF":
            return (
                f"A save blocks for {share(value)} of the mean time between failures: failures hit"
                " many saves before they are through. A faster tier or a snapshot shortens them."
            )
        case "RECOVERY_NEAR_MTBF":
            return (
                f"Starting, loading and warming up take {share(value)} of the mean time between"
                " failures: many recoveries are hit again before they are through. Shorten loading"
                " and restart first."
            )
        case "STALL_OVER_INTERVAL":
            return (
                f"Each save blocks longer ({duration(value)}) than training runs between two"
                f" ({duration(limit)})."
            )
        case "CAPACITY":
            return (
                "The checkpoints kept need"
                f" {size(value) if value != float('inf') else 'more room'}; the tier holds"
                f" {size(limit)}. Set policy.keep_last, or give tier.capacity."
            )
        case "KEEPING_DOMINATES":
            advice = (
                f"with the newest three on each tier it would be {share(limit)} (policy.keep_last)."
                if limit < 0.9 * value
                else "keeping fewer saves nothing: provision less, or take a cheaper tier."
            )
            return f"Keeping checkpoints is {share(value)} of these dollars; {advice}"
        case "DRIVE_WEAR":
            return (
                f"Checkpoints alone write the drives full {number(value * 86400)} times a day; they"
                f" are rated for {number(limit * 86400)}."
            )
        case "MEAN_OF_RATES":
            return (
                f"The published write rate spreads by {share(value)} from one save to the next. If"
                " the rate in use is a mean of such rates, it is more than bytes over time (about"
                " 1+spread^2 times): then give durations (tier.save_time)."
            )
        case "MEAN_OF_READ_RATES":
            return (
                f"The published read rate spreads by {share(value)} from one load to the next. If"
                " the rate in use is a mean of such rates, it is more than bytes over time (about"
                " 1+spread^2 times), and loading takes longer: then give durations"
                " (tier.load_time)."
            )
        case "SCALED_TIME":
            return (
                f"The times of tier.save_time and tier.load_time were measured with {size(limit)}"
                f" and are taken in proportion for {size(value)}: what does not grow with the bytes"
                " is scaled too."
            )
        case "STAGING_BUDGET":
            return (
                f"The copies in flight want {size(value)} of host memory a node and may take"
                f" {size(limit)} (cluster.staging_budget): training waits until the rest has"
                " drained."
            )
        case "NAMEPLATE_POWER":
            return (
                f"Writing is charged the whole {power(value)} of the tier, because its idle power"
                " is not known: an upper bound. Give tier.idle_power or tier.write_energy."
            )
        case "PERSIST_OVER_INTERVAL":
            return (
                f"With so many in flight a save can begin each {duration(value)}, and the cycle is"
                f" {duration(limit)}: the next one waits or is skipped (policy.when_busy,"
                " policy.in_flight)."
            )
        case "HOST_RAM":
            return (
                f"A node needs {size(value)} of host memory for copies of saves and what the job"
                f" holds, and has {size(limit)}: a save can kill it. Fewer in flight,"
                " cluster.staging_budget, more nodes, or a direct write."
            )
        case "COPY_DIES_WITH_NODE":
            return (
                f"This tier dies with its node, and {share(value)} of failures lose one. The"
                " figures assume that another copy exists: name it with second_tier.id and"
                " policy.second_every."
            )
        case "SECOND_LAG_NEAR_MTBF":
            return (
                f"Until a save is safe on the second tier passes {share(value)} of the mean time"
                " between failures: the closed form of two asynchronous tiers, right to first"
                " order in that, is too kind. `ckptcost simulate` walks through it."
            )
        case "SECOND_TIER_TOO_SLOW":
            return (
                f"The second tier needs {duration(value)} a save but gets one each"
                f" {duration(limit)}: raise policy.second_every."
            )
    return caution.code


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


def method_text(choices: Mapping[str, object]) -> str:
    """What the grid factor of a scenario counts."""
    return GRID_METHODS.get(str(choices.get("site.grid_method")), GRID_METHODS["unknown"])


def scope_text(choices: Mapping[str, object], scope_2: str = "Scope 2") -> str:
    """What an inventory may call the location-based figure: gross Scope 2 is combustion alone.

    >>> (
    ...     scope_text({"site.grid_method": "combustion"}),
    ...     scope_text({"site.grid_method": "life-cycle"}),
    ... )
    ('Scope 2', 'Scope 2 and 3.3 (life cycle)')
    """
    method = choices.get("site.grid_method")
    if method == "combustion":
        return scope_2
    if method == "life-cycle":
        return "Scope 2 and 3.3 (life cycle)"
    return "Scope 2 (method not known)"
