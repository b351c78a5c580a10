"""What a probe will write, where and for about how long, before anything is written."""

from __future__ import annotations

from importlib.util import find_spec
from typing import NamedTuple

from ckptcost.jobs.probe import PAUSE_S
from ckptcost.jobs.recording import MARGIN_S
from ckptcost.present.amounts import count, duration, rate, share, size
from ckptcost.present.grid import Tone
from ckptcost.savers.torch_state import REMEDY
from ckptcost.tui.screens.probe_form import Wish
from ckptcost.tui.screens.probe_place import LIKELY_BYTES_PER_S, Spot, refusal

ASK_FRACTION, ASK_BYTES = 0.10, 50e9
"""of the free room, or in all: more than that is asked about"""
_NEEDS = {
    "torch_save": ("torch",),
    "torch_dcp": ("torch",),
    "torch_dcp_async": ("torch",),
    "safetensors": ("torch", "safetensors"),
}


class Plan(NamedTuple):
    wish: Wish
    saves: int
    """warm-up included"""
    written_bytes: float
    """in all; never more than one checkpoint at a time is there"""
    read_bytes: float
    """to compare, and to time a load"""
    seconds: float
    """roughly"""
    guess: str
    """what `seconds` rests on"""
    refusal: str
    """why it must not begin"""
    question: str
    """what is asked before it begins; empty: nothing"""

    @property
    def moved_bytes(self) -> float:
        return self.written_bytes + self.read_bytes


def plan(one: Wish, spot: Spot, known_bytes_per_s: float | None = None) -> Plan:
    """`known_bytes_per_s` where the place was probed just before."""
    asked = one.asked
    written = float(sum(asked.sizes) + one.warm_up * one.size_bytes)
    read = float(sum(asked.sizes)) * (
        (1.0 if asked.settings.verify else 0.0) + (1.0 if one.read else 0.0)
    )
    likely = known_bytes_per_s or LIKELY_BYTES_PER_S[spot.kind]
    pauses = len(asked.sizes) * (2 if one.read else 1) + one.warm_up
    seconds = (written + read) / likely + pauses * PAUSE_S + 2 * MARGIN_S + PAUSE_S
    guess = (
        f"at {rate(likely)}, as before"
        if known_bytes_per_s
        else f"if {spot.kind} does {rate(likely)}"
    )
    question = ""
    if written > ASK_FRACTION * spot.free_bytes and spot.whole_bytes:
        question = (
            f"that is {share(written / spot.free_bytes)} of the {size(spot.free_bytes)} that are"
            " free"
        )
    elif written > ASK_BYTES:
        question = f"that is more than {size(ASK_BYTES)}"
    return Plan(
        one,
        len(asked.sizes) + one.warm_up,
        written,
        read,
        seconds,
        guess,
        refusal(spot, one) or lacking(one.writer),
        question,
    )


def lacking(writer: str) -> str:
    """The library that a writer needs and that is not installed."""
    missing = next((name for name in _NEEDS.get(writer, ()) if find_spec(name) is None), "")
    return f"{writer} needs {missing}, which is not installed: {REMEDY}" if missing else ""


def lines(p: Plan, simulated: bool = False) -> list[tuple[str, Tone]]:
    """The dry run."""
    if simulated:
        return [
            (
                "A simulated machine: nothing is written but the run, which takes some seconds.",
                "warn",
            )
        ]
    if p.refusal:
        return [(f"{p.refusal}.", "bad"), ("Nothing is written.", "")]
    one = p.wish
    saves = f"{count(p.saves)} saves, " if p.saves > 1 else "one save, "
    of = f"{size(one.size_bytes)} each" + (", every second one a quarter" if one.small else "")
    warm = (
        f"; the first {count(one.warm_up)} do not count"
        if one.warm_up > 1
        else "; the first does not count"
        if one.warm_up
        else ""
    )
    said: list[tuple[str, Tone]] = [
        (f"Will write {size(p.written_bytes)} into {one.directory}/.ckptcost-probe-...", "base"),
        (f"{saves}{of}{warm}; at most {size(one.size_bytes)} at a time.", ""),
        (
            (
                f"Will read {size(p.read_bytes)},"
                f" {'to compare and then timed' if one.read else 'to compare, untimed'}."
            ),
            "",
        ),
        (f"About {duration(_rounded(p.seconds))}, {p.guess}.", ""),
        ("Removed at the end, after Esc, and even when this program is killed.", "muted"),
    ]
    if p.question:
        said.append((f"It asks first: {p.question}.", "warn"))
    return said


def question(p: Plan) -> str:
    """For the dialog before it begins."""
    return (
        f"{size(p.written_bytes)} are written into {p.wish.directory}: {p.question}.\nNever more"
        f" than {size(p.wish.size_bytes)} are there at a time, and nothing is left at the end."
    )


def _rounded(seconds: float) -> float:
    """A guess has no three digits.

    >>> _rounded(13.4), _rounded(1234.0), _rounded(4.2)
    (13.0, 1200.0, 4.0)
    """
    digits = max(len(str(int(seconds))) - 2, 0)
    return float(round(seconds, -digits))


def summary(p: Plan) -> str:
    """The probe in one line."""
    one = p.wish
    parts = [
        str(one.directory),
        size(one.size_bytes),
        f"{count(one.ranks)} writers",
        one.writer,
        f"{count(one.rounds)} rounds",
    ]
    return ", ".join(
        [*parts, *(["two sizes"] if one.small else []), *([] if one.read else ["write only"])]
    )
