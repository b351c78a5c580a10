"""Dollars. A rented GPU-hour already contains its electricity; it is never added twice."""

from __future__ import annotations

from ckptcost.first.core.domain import Number
from ckptcost.first.core.numeric import minimum, or_otherwise, ratio, times, where


def gpu_usd(gpu_s: Number, usd_per_gpu_s: Number) -> Number:
    """Price of GPU time.

    >>> round(gpu_usd(gpu_s=3600.0, usd_per_gpu_s=2.0 / 3600), 9)
    2.0
    """
    return gpu_s * usd_per_gpu_s


def electricity_usd(energy_j: Number, usd_per_j: Number) -> Number:
    """Price of energy; none for what is in another price already (a tariff of 0), however much it
    is."""
    return times(energy_j, usd_per_j)


def keeping_usd(held_bytes: Number, time_s: Number, usd_per_byte_s: Number) -> Number:
    """Price of keeping bytes.

    >>> round(
    ...     keeping_usd(
    ...         held_bytes=14e12, time_s=730 * 3600, usd_per_byte_s=0.023 / 1e9 / (730 * 3600)
    ...     ),
    ...     6,
    ... )  # 14 TB-months on S3
    322.0
    """
    return times(times(held_bytes, time_s), usd_per_byte_s)


def standing_usd(
    usd_per_s: Number, held_bytes: Number, capacity_bytes: Number, time_s: Number
) -> Number:
    """The share of a tier's standing price that its checkpoints occupy (allocated ledger).

    >>> standing_usd(usd_per_s=0.01, held_bytes=1e12, capacity_bytes=1e14, time_s=1e6)
    100.0
    """
    return times(usd_per_s, times(held_bytes / capacity_bytes, time_s))


def request_usd(
    written_bytes: Number,
    request_bytes: Number,
    usd_per_request: Number,
    usd_per_byte: Number = float("nan"),
) -> Number:
    """Price of writing: of the requests that carry `written_bytes`, and of the bytes where they are
    sold too.

    >>> round(
    ...     request_usd(
    ...         written_bytes=1e9, request_bytes=8e6, usd_per_request=5e-6, usd_per_byte=3e-12
    ...     ),
    ...     9,
    ... )
    0.003625
    """
    by_request = times(ratio(written_bytes, request_bytes), usd_per_request)
    return by_request + times(written_bytes, or_otherwise(usd_per_byte, 0.0))


def kept_saves(saves: Number, keep_last: Number) -> Number:
    """Mean number of checkpoints held over a run that makes `saves` and keeps the newest
    `keep_last`.

    m - m(m-1)/(2n), m = min(k, n): (n+1)/2 when all are kept.

    >>> kept_saves(saves=9.0, keep_last=float("inf")), kept_saves(saves=10.0, keep_last=1.0)
    (5.0, 1.0)
    """
    held = minimum(keep_last, saves)
    few = saves < 1
    return where(
        few,
        0.0 * held + minimum(saves, 1.0),
        held - held * (held - 1.0) / (2.0 * where(few, 1.0, saves)),
    )


def breakeven_usd_per_s(
    gpus: Number,
    usd_per_gpu_s: Number,
    slow_usd_per_s: Number,
    slow_goodput: Number,
    fast_goodput: Number,
) -> Number:
    """What a faster tier may cost for the work to cost the same: s_B = (N*c_g + s_A)*G_B/G_A -
    N*c_g.

    >>> breakeven_usd_per_s(16384.0, 2 / 3600, 0.5, 0.9, 0.9)
    0.5
    """
    rent = gpus * usd_per_gpu_s
    better = fast_goodput / slow_goodput
    return slow_usd_per_s * better + rent * (better - 1.0)
