"""Parts of tables and sentences that what was measured shares: a range with its ends, lists,
plurals."""

from __future__ import annotations

from collections.abc import Sequence

from ckptcost.core.reconcile import Energy
from ckptcost.present.amounts import count, number
from ckptcost.report.studies.run_columns import plain
from ckptcost.report.study import Column


def three(energy: Energy, name: str) -> dict[str, float | None]:
    """With its range, and for people how far the farther end is."""
    low, high = plain(energy.low), plain(energy.high)
    return {
        name: plain(energy.value),
        f"{name}_low": low,
        f"{name}_high": high,
        f"{name}_error": plain(off(energy)),
    }


def off(energy: Energy) -> float:
    return max(energy.high - energy.value, energy.value - energy.low)


def range_of(name: str, shown: bool = False) -> tuple[Column, Column, Column]:
    """The columns of a range: its farther end for people, both ends for programs."""
    return (
        Column(f"{name}_error", "+-", "J", "how far the farther of low and high is", shown=shown),
        Column(f"{name}_low", "low", "J", shown=False),
        Column(f"{name}_high", "high", "J", shown=False),
    )


def give_or_take(energy: Energy) -> str:
    """With its farther end, which three digits of both ends would hide."""
    return f"{number(energy.value)} (+-{number(off(energy))})"


def count_text(number_: int, what: str) -> str:
    return f"{count(number_)} {what}{'' if number_ == 1 else 's'}"


def some(names: Sequence[str], most: int = 6) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
