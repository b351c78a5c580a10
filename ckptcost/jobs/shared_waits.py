"""Saves and loads that hold training up at the same time: such an instant is divided among them, so
that their sum counts it once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ckptcost.core.attribution import excess, in_turn, spent
from ckptcost.core.domain import Scenario
from ckptcost.core.reconcile import Energy, times, total
from ckptcost.core.windows import Piece, Stretch, of_each, timeline
from ckptcost.jobs.measured import Measured
from ckptcost.jobs.measured_bill import at_facility, counted_in, load_end_s, shares_of


class Waited(NamedTuple):
    """A window's own part of the time that it shares with others."""

    gpus: Energy
    hosts: Energy
    parts: Energy
    """processors and memory alone, where nothing meters the node"""
    held_s: float
    """seconds of training held up, shared ones divided"""


def waits_of(m: Measured) -> list[Stretch | None]:
    """Beside the windows: when each held training up."""
    found: list[Stretch | None] = []
    for window, what in zip(m.windows, m.contents, strict=True):
        end_s = load_end_s(window) if what.of == "load" else window.returned_s
        found.append(None if window.begin_s is None or end_s is None else (window.begin_s, end_s))
    return found


def shared_pieces(stretches: Sequence[Stretch | None]) -> list[list[Piece]]:
    """Beside the windows: the pieces of those that share an instant with another; nothing for the
    others."""
    pieces = of_each(timeline([[stretch] for stretch in stretches]), len(stretches))
    return [mine if any(len(piece.open) > 1 for piece in mine) else [] for mine in pieces]


def waited_time(m: Measured, pieces: Sequence[Piece], s: Scenario) -> Waited:
    """What the pieces took at the facility, each divided by the windows that are open in it."""
    seen = {
        domain: in_turn([(_part(m, domain, piece), piece.length_s) for piece in pieces])
        for domain in counted_in(m.energies)
    }
    both = shares_of(seen)
    parts = total(
        energy for domain, energy in seen.items() if domain.split(":", 1)[0] in ("cpu", "dram")
    )
    return Waited(
        at_facility(both.gpus, s),
        at_facility(both.hosts, s),
        at_facility(parts, s),
        sum(p.length_s / len(p.open) for p in pieces),
    )


def storage_energy(
    m: Measured, domains: Sequence[str], pieces: Sequence[Piece], s: Scenario
) -> Energy:
    """What storage took above idle, the same way."""
    idle = {} if m.idle is None else m.idle.domains
    above = [
        times(
            excess(
                spent(m.energies.joules, domain, [(piece.begin_s, piece.end_s)]),
                piece.length_s,
                idle.get(domain),
            ),
            1.0 / len(piece.open),
        )
        for domain in domains
        for piece in pieces
    ]
    return at_facility(total(above), s)


def _part(m: Measured, domain: str, piece: Piece) -> Energy:
    return times(
        spent(m.energies.joules, domain, [(piece.begin_s, piece.end_s)]), 1.0 / len(piece.open)
    )
