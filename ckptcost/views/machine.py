"""What this machine can measure, in a glance: for the bar at the top and the first start."""

from __future__ import annotations

from typing import NamedTuple

from ckptcost import answers
from ckptcost.errors import CkptcostError
from ckptcost.meters.found import Wanted
from ckptcost.views.doctor import lights, three_lines

LOOK_S = 0.5


class Seen(NamedTuple):
    lights: str
    lines: tuple[str, ...]


def seen(meters: str, plain: bool = False) -> Seen:
    """Takes a second or so."""
    try:
        study, _ = answers.checkup(meters, Wanted(), LOOK_S)
    except (CkptcostError, OSError) as error:
        return Seen("", (str(error),))
    return Seen(lights(study, plain), tuple(three_lines(study)))
