"""How early before a job is ended its last save must begin."""

from __future__ import annotations

from typing import Any

import numpy as np

from ckptcost.first.core.domain import Number, Policy
from ckptcost.first.core.numeric import or_otherwise
from ckptcost.first.core.timing import Save

SIGNAL_MOST_S = 65535
"""Slurm takes no longer time for --signal"""


def lead_s(saved: Save, policy: Policy) -> Number:
    """From a signal to a save that can be loaded: the step under way ends, then the save, and its
    drain where it is asynchronous.

    An asynchronous save may find the one before it still draining, and waits for a place among
    those in flight.

    >>> lead_s(Save(30.0, 0.0, 30.0, 1.0, 1.0, 1.0), Policy(every=600.0, step_s=20.0))
    50.0
    >>> lead_s(Save(2.0, 60.0, 60.0, 1.0, 1.0, 1.0), Policy(every=600.0, step_s=20.0, mode="async"))
    142.0
    """
    waits_s = saved.lag_s / policy.in_flight if policy.mode == "async" else 0.0
    return or_otherwise(policy.step_s, 0.0) + waits_s + saved.stall_s + saved.lag_s


def p99(values: Any) -> float:
    """The 99th percentile; of fewer than 100 values the largest.

    >>> p99([3.0, 1.0, 2.0]), p99(range(1, 1001))
    (3.0, 991.0)
    """
    return float(np.quantile(np.asarray(values, dtype=float), 0.99, method="higher"))


def chance_of_longer(count: int) -> float:
    """Chance that the next of its kind takes longer than all of so many, whatever their law.

    >>> chance_of_longer(count=6)
    0.14285714285714285
    """
    return 1.0 / (count + 1.0)
