"""kgCO2e. Location-based and market-based stay apart; embodied carbon is a third figure, never
folded into either."""

from __future__ import annotations

from ckptcost.core.domain import Number


def operational_kgco2e(energy_j: Number, kgco2e_per_j: Number) -> Number:
    """Emissions of using energy.

    >>> operational_kgco2e(energy_j=5e8, kgco2e_per_j=1e-7)
    50.0
    """
    return energy_j * kgco2e_per_j


def embodied_kgco2e(gpu_s: Number, kgco2e_per_gpu_s: Number) -> Number:
    """Share of making the hardware that the time takes up: M = TE * TS * RS
    (SCI, ISO/IEC 21031)"""
    return gpu_s * kgco2e_per_gpu_s


def embodied_rate_kgco2e_per_gpu_s(made_kgco2e: Number, life_s: Number) -> Number:
    """Embodied carbon of one GPU and its share of the node, spread over its life. (876 kg over 3
    years: 33 g/GPU-h)"""
    return made_kgco2e / life_s
