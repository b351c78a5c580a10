"""Sentences for what was measured: why a number is missing, what is odd about it, and what to
do."""

from __future__ import annotations

from collections.abc import Mapping

from ckptcost.first.watch.bursts import WHY as UNSEEN
from ckptcost.first.watch.settle import WHY as UNSETTLED
from ckptcost.first.watch.writers import WHY as UNJUDGED

ABSENT: Mapping[str, str] = (
    UNSETTLED
    | UNSEEN
    | {
        "NO_PARTS": (
            "nothing here meters power or energy; `ckptcost doctor` says why and what would help"
        ),
        "NO_READING": "a meter did not answer in this time",
        "NO_BASELINE": (
            "no idle power is known for this machine: `ckptcost measure baseline` learns it"
        ),
        "NO_PACKAGE_METER": "no meter of the processor",
        "NO_CPU_TIME": "the processor time is not known",
        "NO_NODE_METER": "no meter of the whole node",
        "NO_TRAINING_REFERENCE": "no second outside all saves was recorded before it",
        "NO_TIME": "it has no length",
        "NO_SHARE": "no time of it is covered by readings",
        "NO_BEGIN": "no mark says when it began",
        "NOT_MARKED": "no mark says so",
        "UNFINISHED": "the marks stop in the middle of it",
        "RANK_MISSING": "some ranks say, others do not",
        "COVERAGE_DIFFERS": "parts and node are not known for the same time",
        "UNSYNCED": "it was renamed without fsync, so its bytes may be in memory only",
        "OTHERS_STALL": "another save held training up all the while",
        "stuck": "the counter does not move",
        "no-readings": "nothing was read of it",
        "not-yet": "its readings begin later",
        "before-first-tick": "it begins before the first reading",
        "after-last-tick": "it ends after the last reading",
        "reset": "the counter began again",
        "maybe-more-than-one-wrap": "the counter may have wrapped more than once",
        "implausible": "the counter made a step that no machine takes",
    }
)
"""why a value is not known"""

FLAGS: Mapping[str, str] = {
    "SHORT": (
        "A window holds fewer than five ticks of a counter: its edges are most of the answer, see"
        " low and high."
    ),
    "GAPS": (
        "Part of a window is not covered by readings; joules are of the covered part and are not"
        " scaled up."
    ),
    "PARTS_EXCEED_NODE": (
        "The parts add up to more than the node's own meter says: one of them is wrong, or sees"
        " more than the node."
    ),
    "COVERAGE_DIFFERS": (
        "Parts and node are not known for the same time, so what no part explains is not known."
    ),
    "SHARED": (
        "Saves overlap: `share` divides the instants that several have in common; the joules of"
        " each contain them whole."
    ),
    "BASELINE_OF_OTHER_HOST": (
        "The baseline was learned on another host: learn this one's with `ckptcost measure"
        " baseline`."
    ),
    "BASELINE_OF_OTHER_DRIVER": (
        "The baseline was learned with another driver, and fields change their meaning with it:"
        " learn it again."
    ),
    "BASELINE_UNDATED": "The baseline does not say when it was learned.",
    "BASELINE_OLD": (
        "The baseline is older than 30 days: learn it again with `ckptcost measure baseline`."
    ),
    "NO_BASELINE": (
        "No idle power is known for this machine, so energy above idle is not: `ckptcost measure"
        " baseline` learns it."
    ),
}


def reason_text(code: str) -> str:
    """Why something is not known.

    >>> reason_text("NO_BEGIN")
    'no mark says when it began'
    """
    return ABSENT.get(code, code)


def stall_reason_text(code: str) -> str:
    """The same of a stall: what was looked at is not what says when files are safe.

    >>> stall_reason_text("ALWAYS_WAITS"), stall_reason_text("NO_BEGIN")
    ('the main thread waits at other times too', 'no mark says when it began')
    """
    return UNJUDGED.get(code, reason_text(code))


def flag_text(code: str) -> str:
    """What is odd about a number, as a sentence; empty where nothing needs to be said."""
    return FLAGS.get(code, "")


def warning_text(code: str, about: str) -> str:
    match code:
        case "PART_MISSING":
            return f"No sum: {about} did not answer. What is known is in the table, by domain."
        case "SENSOR_LOOKS":
            return (
                f"A sensor looks only {about} of the time: what happens while it does not is in low"
                " and high only as chance has it."
            )
        case "COUNTER_LOOKS":
            return (
                f"The cards' sensor of watts looks only {about} of the time. Whether their counter"
                " of joules does too is not settled by any published source, and not in low and"
                " high."
            )
        case "SENSOR_ERROR":
            return (
                f"The sensors' own error, published as up to {about} of a reading, is not in low"
                " and high."
            )
        case "NOT_IDLE":
            return f"The machine was not idle: {about}."
        case "NO_BASELINE":
            return (
                f"The baseline has no idle power of {about}: learn it again with `ckptcost measure"
                " baseline`."
            )
        case "METER_LOST":
            return f"Lost during the run: {about}."
    raise ValueError(code)


def absence_text(what: str, reason: str, remedy: str) -> str:
    """One line for a list of what is not there."""
    return f"{what}: {reason}." + (
        f" Remedy: {remedy}" + ("" if remedy.endswith(".") else ".") if remedy else ""
    )
