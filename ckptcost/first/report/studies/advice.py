"""The answer of a recorded run in sentences: what its saves cost, and how often to save."""

from __future__ import annotations

from ckptcost.first.core.outcome import Outcome, failure_cost
from ckptcost.first.jobs.advice import Advice, SaveRhythm
from ckptcost.first.present.amounts import count, count_text, duration, number, share, size
from ckptcost.first.report.study import Column, Study, Table, plain

COLUMNS = (
    Column("what", "what"),
    Column("now", "now", meaning="as the run shows it"),
    Column("advised", "advised", meaning="at the interval that is advised"),
)


_LOST = "were deleted or written over before they were"


def headline(rhythm: SaveRhythm) -> str:
    """What the saves of a run were, in one line."""
    mean = "" if rhythm.saves == 1 else " at each"
    least = "at least " if rhythm.staged else ""
    said = (
        f"{count_text(rhythm.saves, 'save')} of {size(rhythm.bytes)},"
        f" {least}{duration(rhythm.stall_s)} of training lost{mean}"
    )
    if rhythm.with_stall < rhythm.saves:
        said += (
            f" (as {count(rhythm.with_stall)} of them shows)"
            if rhythm.with_stall == 1
            else f" (as {count(rhythm.with_stall)} of them show)"
        )
    return f"{said}, {least}{share(rhythm.share)} of the run"


def with_advice(study: Study, advice: Advice) -> Study:
    """A recorded run's study with the answer first."""
    return study._replace(
        question=study.question | {"advice": _figures(advice)},
        findings=[*sentences(advice), *study.findings],
        tables=[_table(advice), *study.tables],
        resolved=[advice.resolved],
    )


def sentences(advice: Advice) -> list[str]:
    rhythm = advice.rhythm
    money = _usd(advice.gpu_s_a_save, advice)
    said = [
        f"{headline(rhythm)}.",
        (
            f"On {count(advice.job.gpus)} GPUs a save costs {number(advice.gpu_s_a_save)}"
            f" GPU-seconds{money and ' and ' + money}."
        ),
        _how_often(advice),
        (
            f"Failures: {_failures(advice)}. Getting back takes {_way_back(advice)}, assumed but"
            " for the load."
        ),
    ]
    unknown = rhythm.never_safe - rhythm.lost
    if rhythm.lost:
        was = "was deleted or written over before it was" if rhythm.lost == 1 else _LOST
        said.append(
            f"{count(rhythm.lost)} of {count_text(rhythm.saves, 'save')} {was} safe: a failure"
            " falls back further than this counts."
        )
    if unknown:
        said.append(
            f"Of {count(unknown)} of {count_text(rhythm.saves, 'save')} nobody knows when"
            f" {'it was' if unknown == 1 else 'they were'} safe: a failure may cost more than this"
            " counts."
        )
    if not rhythm.never_safe and rhythm.lag_s is not None and rhythm.lag_s > rhythm.stall_s:
        said.append(
            f"A save is safe {duration(rhythm.lag_s)} after training goes on: a failure before that"
            " falls back to the one before."
        )
    return said


def _how_often(advice: Advice) -> str:
    interval = duration(advice.interval_s)
    span = (
        f" ({duration(advice.robust.low_s)} to {duration(advice.robust.high_s)} inside the ranges"
        " of what is assumed)"
        if advice.robust.high_s > 1.01 * advice.robust.low_s
        else ""
    )
    if advice.rhythm.interval_s is None:
        return (
            f"Save every {interval} of training{span}; one save alone shows no interval of its own."
        )
    now = duration(advice.rhythm.interval_s)
    if advice.is_as_good:
        return (
            f"Every {now} of training, as it does, is within 1 % of the least wall time; the best"
            f" is {interval}{span}."
        )
    money = _usd(advice.gpu_h_a_day * 3600.0, advice)
    return (
        f"Save every {interval} of training instead of every {now}{span}: that wins "
        f"{number(advice.gpu_h_a_day)} GPU-hours a day{money and ', ' + money}."
    )


def _usd(gpu_s: float, advice: Advice) -> str:
    """Dollars, where the user has said what an hour costs: no list price is put into somebody's
    mouth."""
    price = advice.job.usd_per_gpu_hour
    return "" if price is None else f"{number(gpu_s / 3600.0 * price)} USD"


def _failures(advice: Advice) -> str:
    mtbf_s = 1.0 / float(advice.then.plan.failures_per_s)
    if advice.job.mtbf:
        return f"one each {duration(mtbf_s)}, as said"
    factor = next((i for i in advice.resolved.inputs if i.path == "failures.rate_factor"), None)
    if factor is None or factor.figure.low is None or factor.figure.high is None:
        return f"one each {duration(mtbf_s)}"
    low_s, high_s = (
        mtbf_s * factor.figure.value / end for end in (factor.figure.high, factor.figure.low)
    )
    return (
        f"one each {duration(mtbf_s)} ({duration(low_s)} to {duration(high_s)}), assumed from the"
        " job's size; say yours with --mtbf"
    )


def _way_back(advice: Advice) -> str:
    recovery = advice.then.plan.recovery
    return duration(float(recovery.down_s) + float(recovery.exposed_s))


def _lost_s(outcome: Outcome) -> float | None:
    cost = failure_cost(outcome)
    return plain(float(cost.redone_s) + float(cost.back_s))


def _figures(advice: Advice) -> dict[str, object]:
    rhythm = advice.rhythm
    return {
        "saves": rhythm.saves,
        "bytes": rhythm.bytes,
        "stall_s": rhythm.stall_s,
        "stall_share": rhythm.share,
        "safe_after_return_s": rhythm.lag_s,
        "interval_s": rhythm.interval_s,
        "gpus": advice.job.gpus,
        "gpu_s_a_save": advice.gpu_s_a_save,
        "usd_per_gpu_hour": advice.job.usd_per_gpu_hour,
        "advised_s": advice.interval_s,
        "advised_low_s": advice.robust.low_s,
        "advised_high_s": advice.robust.high_s,
        "wins_gpu_hours_a_day": None if rhythm.interval_s is None else advice.gpu_h_a_day,
        "assumed": [each.path for each in advice.assumed],
    }


def _table(advice: Advice) -> Table:
    now, then = advice.now, advice.then
    rows: list[dict[str, object]] = [
        {
            "what": "training between two saves",
            "now": advice.rhythm.interval_s and duration(advice.rhythm.interval_s),
            "advised": duration(advice.interval_s),
        },
        {
            "what": "goodput",
            "now": None if now is None else share(float(now.goodput)),
            "advised": share(float(then.goodput)),
        },
        {
            "what": "lost to each failure",
            "now": None if now is None else duration(_lost_s(now)),
            "advised": duration(_lost_s(then)),
        },
    ]
    return Table("advice", "How often to save", COLUMNS, rows)
