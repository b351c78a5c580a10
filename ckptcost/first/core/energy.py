"""Joules, at the facility: PUE is applied once, here, to everything."""

from __future__ import annotations

from ckptcost.first.core.domain import Number
from ckptcost.first.core.numeric import isnan, or_otherwise, ratio, times, where


def job_w(gpus: Number, gpu_w: Number, nodes: Number, host_w: Number) -> Number:
    """IT power of the job in one state.

    >>> job_w(gpus=1024, gpu_w=343.0, nodes=128, host_w=2800.0)
    709632.0
    """
    return gpus * gpu_w + nodes * host_w


def save_step_w(training_w: Number, stalled_w: Number) -> Number:
    """Fall of IT power when a save holds training up; it rises as far when the save is over.

    IT power: cooling follows over minutes, a save lasts seconds.

    >>> save_step_w(training_w=24_576 * 630.0, stalled_w=24_576 * 176.4) / 1e6
    11.1476736
    """
    return training_w - stalled_w


def least_ramp_w_per_s(step_w: Number, stall_s: Number) -> Number:
    """Mean rate at which power must change to have fallen and risen again by the end of the stall:
    2*step/stall.

    A lower bound: how fast it really falls is a matter of microseconds in a GPU and of capacitors
    in its supplies.

    >>> least_ramp_w_per_s(step_w=12e6, stall_s=60.0)
    400000.0
    """
    return ratio(2.0 * step_w, stall_s)


def spent_j(time_s: Number, power_w: Number, pue: Number) -> Number:
    """Facility energy of `time_s` at `power_w` of IT power.

    >>> spent_j(
    ...     time_s=10_000.0, power_w=512_000.0, pue=1.0
    ... )  # 1,422 kWh: DDN's NAS row, 1,024 GPUs held at 500 W
    5120000000.0
    """
    return time_s * power_w * pue


def write_j(
    written_bytes: Number,
    write_j_per_byte: Number,
    write_s: Number,
    active_w: Number,
    idle_w: Number,
    pue: Number,
) -> Number:
    """Facility energy that one write adds at the storage: joules per byte where known, else busy
    minus idle power times the time.

    1 W per GB/s is 1 J per GB.

    >>> write_j(
    ...     written_bytes=2e12,
    ...     write_j_per_byte=139e-9,
    ...     write_s=1.0,
    ...     active_w=0.0,
    ...     idle_w=0.0,
    ...     pue=1.0,
    ... )
    278000.0
    """
    added_w = active_w - or_otherwise(idle_w, 0.0)
    return where(isnan(write_j_per_byte), added_w * write_s, written_bytes * write_j_per_byte) * pue


def carried_j(written_bytes: Number, network_j_per_byte: Number, pue: Number) -> Number:
    """Facility energy of carrying bytes over the network."""
    return written_bytes * network_j_per_byte * pue


def standing_j(
    idle_w: Number, held_bytes: Number, capacity_bytes: Number, time_s: Number, pue: Number
) -> Number:
    """The share of a tier's idle energy that its checkpoints occupy (allocated ledger).

    >>> standing_j(idle_w=1000.0, held_bytes=1e12, capacity_bytes=1e14, time_s=3600.0, pue=1.0)
    36000.0
    """
    return times(idle_w * pue, times(held_bytes / capacity_bytes, time_s))
