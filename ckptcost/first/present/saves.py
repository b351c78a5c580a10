"""Checkpoints as they happen, in one line each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ckptcost.first.present.amounts import count, duration, rate, size

if TYPE_CHECKING:
    from ckptcost.first.jobs.probe import ProbeProgress
    from ckptcost.first.jobs.progress import KnownSave


WAITED = 0.5
"""a save that training was held up for so much of the time until it was safe was written at the
pace of the storage"""


def save_text(one: KnownSave) -> str:
    """`step_100: 48 MB, held up for 0.2 s, safe after 0.31 s (155 MB/s)`; no rate where it lay in
    memory for a while."""
    said = [size(one.bytes)] if one.bytes == one.bytes else []
    if one.error:
        return f"{one.label}: " + ", ".join([*said, f"failed: {one.error}"])
    if one.held_up_s == one.held_up_s:
        said.append(
            f"{'held up for' if one.has_returned else 'written in'} {duration(one.held_up_s)}"
        )
    if one.safe_s == one.safe_s:
        said.append(f"safe after {duration(one.safe_s)}")
        lay_in_memory = one.held_up_s < WAITED * one.safe_s
        if one.bytes == one.bytes and one.safe_s > 0 and not lay_in_memory:
            said[-1] += f" ({rate(one.bytes / one.safe_s)})"
    else:
        said.append("not known when it was safe")
    return f"{one.label}: " + ", ".join(said)


def status_text(
    seconds: float, saves: int, bytes_: float, open_: Sequence[str], lost: Sequence[str]
) -> str:
    """`1 min 20 s, 3 checkpoints, 144 MB; saving step_400`."""
    text = f"{duration(seconds)}, {count(saves)} checkpoint{'' if saves == 1 else 's'}"
    if bytes_ > 0:
        text += f", {size(bytes_)}"
    if open_:
        text += f"; saving {', '.join(open_[:2])}"
    if lost:
        text += f"; lost: {', '.join(lost)}"
    return text


def probing_text(told: ProbeProgress) -> str:
    """`load 3, 5 of 12 passes done; the last: 1.9 GB/s`."""
    what = "writing" if told.of == "save" else "reading"
    last = f"; the last: {rate(told.io.bytes_per_s)}" if told.io is not None else ""
    return f"{what} round {told.number}, {count(told.done)} of {count(told.all)} passes done{last}"
