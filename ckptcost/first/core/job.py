"""What is walked through, and what comes out: a job, its runs, and one run's steps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core.domain import Number
from ckptcost.first.core.interruptions import NEVER, Floats, InterruptionKind
from ckptcost.first.core.rhythm import Rhythm

DONE, STOPPED = -1, -2
"""how a run's last step ends, where other steps name the kind of their interruption"""


class Job(NamedTuple):
    """What is simulated: work, rhythm, what interrupts it and what loading takes. Arrays have one
    value a run."""

    work_s: Number
    rhythm: Rhythm
    kinds: tuple[InterruptionKind, ...]
    loads_s: tuple[Number, ...]
    """by tier"""
    emergency_s: tuple[Number, ...]
    """by tier: time of a save there that is made because a warning came"""
    limit_s: float = NEVER
    """wall-clock time after which a run is stopped wherever it is"""


class Runs(NamedTuple):
    """One array element a run: seconds in each state, and counts."""

    finished: NDArray[np.bool_]
    kept_s: Floats
    """work done that was not lost again"""
    trained_s: Floats
    """time in training, the work that was lost and the slowdown by drains included"""
    stall_s: Floats
    detect_s: Floats
    reschedule_s: Floats
    init_s: Floats
    load_s: Floats
    warmup_s: Floats
    saves: Floats
    """writes to the first tier, cut-short ones in part"""
    second_saves: Floats
    third_saves: Floats
    by_kind: Floats
    """interruptions, a row a kind"""

    @property
    def interruptions(self) -> Floats:
        total: Floats = self.by_kind.sum(axis=0)
        return total

    @property
    def wall_s(self) -> Floats:
        return (
            self.trained_s
            + self.stall_s
            + self.detect_s
            + self.reschedule_s
            + self.init_s
            + self.load_s
            + self.warmup_s
        )


class JobStep(NamedTuple):
    """One run from a start of the job to its next interruption or its end: a piece of its time
    line."""

    start_s: float
    init_s: float
    load_s: float
    warmup_s: float
    trained_s: float
    stall_s: float
    lost_s: float
    """of the training, what is lost again; earlier training can be lost too, when a farther tier is
    needed"""
    saves: float
    down_s: float
    kind: int
    """which kind ended it, or DONE, or STOPPED by the limit"""
    tier: int
    """the tier that the job comes back from"""
