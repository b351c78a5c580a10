"""What was measured with its range, as columns, as cells and in words."""

from __future__ import annotations

from operator import attrgetter

from ckptcost.core.reconcile import Energy
from ckptcost.present.amounts import number
from ckptcost.report.study import Column, hidden, plain


def range_of(name: str, shown: bool = False, of: str = "") -> tuple[Column, ...]:
    """The columns of a range: its farther end for people, both ends for programs."""
    energy = attrgetter(of or name)
    meaning = "how far the farther of low and high is"
    return (
        Column(f"{name}_error", "+-", "J", meaning, shown, of=lambda each: off(energy(each))),
        *hidden(
            Column(f"{name}_low", "low", "J", of=f"{of or name}.low"),
            Column(f"{name}_high", "high", "J", of=f"{of or name}.high"),
        ),
    )


def joules(name: str, label: str, meaning: str = "", shown: bool = True, *, of: str = "") -> Column:
    """The column of an energy, beside which its range stands."""
    return Column(name, label, "J", meaning, shown, of=f"{of or name}.value")


def off(energy: Energy) -> float:
    return max(energy.high - energy.value, energy.value - energy.low)


def three(energy: Energy, name: str) -> dict[str, float | None]:
    """With its range, and for people how far the farther end is."""
    ends = {"": energy.value, "_low": energy.low, "_high": energy.high, "_error": off(energy)}
    return {f"{name}{end}": plain(value) for end, value in ends.items()}


def give_or_take(energy: Energy) -> str:
    """With its farther end, which three digits of both ends would hide."""
    return f"{number(energy.value)} (+-{number(off(energy))})"
