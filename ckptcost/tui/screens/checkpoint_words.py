"""One checkpoint in words: who found it, how it is known when it was safe, what is odd about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ckptcost.core.channels import Mark
from ckptcost.core.contents import Contents
from ckptcost.core.dips import Dip
from ckptcost.core.windows import Flag, Window
from ckptcost.present.amounts import duration, share
from ckptcost.present.grid import Tone
from ckptcost.present.measured import flag_text, reason_text, stall_reason_text

Said = tuple[str, Tone]

HOW = {
    "cachestat": "none of its pages were left to be written (cachestat)",
    "fiemap": "all of its blocks had a place on the device (FIEMAP)",
    "drained": "the host's page cache had been written back since",
    "fsync": "a sync of its files had returned",
    "api": "the job said so",
    "output": "the job's output said so",
    "hand": "it was marked by hand",
    "by hand": "it was marked by hand",
    "watch": "its files were seen to be synced",
    "direct": "it was written past the page cache",
}
"""how the durable instant is known, by what the marks say"""
_COUNTER = {
    "stuck": "the counter does not move",
    "no-readings": "nothing was read of it",
    "not-yet": "its readings begin later",
    "before-first-tick": "it begins before the first reading",
    "after-last-tick": "it ends after the last reading",
    "reset": "the counter began again",
    "maybe-more-than-one-wrap": "the counter may have wrapped more than once",
    "implausible": "the counter made a step that no machine takes",
}
"""what the reading of a counter says"""
_ODD = {
    "DOUBLED": (
        "The mark {about} came more than once; of begin and returned the first counts, of others"
        " the last."
    ),
    "STRAY": "A mark {about} came before its begin.",
    "OUT_OF_ORDER": (
        "The mark {about} stands before one that it should follow: their phases are told as one."
    ),
    "REUSED_WHILE_OPEN": (
        "The same name was used again while it was still being written: which marks belong to which"
        " is not certain."
    ),
    "BEGIN_MISSING": "No mark says when it began ({about}).",
}
_POWER = {
    "CONFIRMED": "GPU power confirms that training stood still: it fell by {drop}.",
    "CONTRADICTED": (
        "GPU power does not fall where training is said to stand still: it may not have stalled."
    ),
}


def why_text(code: str) -> str:
    """Why something is not known.

    >>> why_text("stuck"), why_text("NO_BEGIN")
    ('the counter does not move', 'no mark says when it began')
    """
    return _COUNTER.get(code) or reason_text(code)


def finders(marks: Iterable[Mark]) -> str:
    """Who saw it: `the job's own marks, its files`."""
    found = []
    for mark in marks:
        guessed = mark.by == "watch" and mark.detail.get("how") == "io"
        found.append(
            {"api": "the job's own marks", "output": "the job's output", "hand": "by hand"}.get(
                mark.by, ""
            )
        )
        if mark.by == "watch":
            found[-1] = (
                "what the process writes (I/O)"
                if guessed
                else "its files (watch)"
                if mark.name == "begin"
                else ""
            )
    return ", ".join(dict.fromkeys(each for each in found if each)) or "marks"


def safe_text(window: Window, what: Contents) -> str:
    """How it is known when it was safe, or why it is not."""
    if window.durable_s is None:
        return "not known: " + reason_text(what.why or window.durable_why)
    known = HOW.get(what.how, what.how or HOW["api"])
    return known + (f"; up to {duration(what.unsure_s)} earlier" if what.unsure_s > 0 else "")


def notes(
    window: Window, what: Contents, energy_flags: Sequence[str], energy_why: str, dip: Dip | None
) -> list[Said]:
    """What to know before believing its numbers, the worst first."""
    said: list[Said] = []
    if what.error:
        said.append((f"It failed: {what.error}.", "bad"))
    if window.begin_s is None:
        said.append((f"When it began is not known: {reason_text(window.begin_why)}.", "warn"))
    elif window.durable_s is None and what.of == "save":
        said.append(
            (
                f"When it was safe is not known: {reason_text(what.why or window.durable_why)}.",
                "warn",
            )
        )
    if window.returned_s is None and window.returned_why:
        said.append(
            (
                (
                    "When training went on is not known: "
                    f"{stall_reason_text(what.returned_why or window.returned_why)}."
                ),
                "warn",
            )
        )
    if energy_why and energy_why not in (window.durable_why, window.begin_why):
        said.append((f"Its joules are not known: {why_text(energy_why)}.", "warn"))
    said += [(_odd(flag), "warn") for flag in window.flags]
    said += [(text, "warn") for code in dict.fromkeys(energy_flags) if (text := flag_text(code))]
    if dip is not None and dip.verdict in _POWER:
        said.append(
            (
                _POWER[dip.verdict].format(drop=share(dip.drop_fraction)),
                "warn" if dip.verdict == "CONTRADICTED" else "",
            )
        )
    return list(dict.fromkeys(said))


def _odd(flag: Flag) -> str:
    return _ODD.get(flag.code, flag.code + ": {about}").format(about=flag.about)
