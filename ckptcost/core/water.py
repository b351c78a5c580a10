"""Litres of water that a site uses to cool what draws energy there."""

from __future__ import annotations

from ckptcost.core.domain import Number


def litres(energy_j: Number, water_l_per_j: Number, pue: Number = 1.0) -> Number:
    """Water used on site for energy at the facility. A site's factor (WUE, The Green Grid) is for
    each kWh of IT equipment, for which the facility draws PUE times as much.

    >>> round(litres(energy_j=1.15 * 3.6e6, water_l_per_j=1.8 / 3.6e6, pue=1.15), 9)
    1.8
    """
    return energy_j * (water_l_per_j / pue)
