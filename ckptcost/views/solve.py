"""The question backwards: how much of one quantity a target takes, on the tier that the interval
screen is about."""

from __future__ import annotations

from typing import NamedTuple

from ckptcost.jobs.solve import KNOBS
from ckptcost.present.grid import Grid, Head, Row, Tone
from ckptcost.questions.solve import solve
from ckptcost.tui.desk import Desk, by_flags
from ckptcost.tui.study_grids import paragraphs, tables_of
from ckptcost.views.interval import alone
from ckptcost.views.tiers import with_interval

_RANGES = {"interval": "training time between saves", "saves-per-day": "saves a day"}
QUANTITIES = {**{knob.id: knob.label for knob in KNOBS.values()}, **_RANGES}
"""what can be asked for"""
_EXAMPLES = {
    "goodput": ">=0.95",
    "wall": "<=60 days",
    "usd": "<=10000",
    "kwh": "<=2 MWh",
    "gpu_hours": "<=5000",
    "kgco2e": "<=900",
}
FIRST_TARGET = "goodput>=0.95"


class Solved(NamedTuple):
    """An answer, or why there is none."""

    command: str
    lines: tuple[tuple[str, Tone], ...]
    tables: tuple[Grid, ...]
    reached: bool
    """whether anything reaches the target"""


def solved(desk: Desk, what: str, target: str) -> Solved:
    """Raises InputError where the target cannot be read, or is none."""
    bare = _bare(desk)
    with by_flags():
        study = solve(
            what, target.strip() or None, bare.base, changes=bare.settings(), catalog=bare.catalog
        ).study
    reached = all(verdict.met for verdict in study.gates)
    lines = [
        (text, "bad" if text.startswith("INFEASIBLE") else tone)
        for text, tone in paragraphs(study._replace(gates=[], about=[]))
    ]
    return Solved(command(desk, what, target), tuple(lines), tuple(tables_of(study)), reached)


def _bare(desk: Desk) -> Desk:
    return alone(with_interval(desk)[0])[0]


def command(desk: Desk, what: str, target: str) -> str:
    """What prints the same answer."""
    return _bare(desk).command("solve", what, "--for", target.strip())


def quantities() -> Grid:
    """What can be asked for, as a list."""
    rows = [Row(key, (key, label)) for key, label in QUANTITIES.items()]
    return Grid(
        (Head("what", "what", left=True), Head("label", "quantity", left=True)), rows, "Solve for"
    )


def targets() -> str:
    """What a target may look like, one of each kind."""
    return f"e.g. {', '.join(f'{name}{limit}' for name, limit in _EXAMPLES.items())}"
