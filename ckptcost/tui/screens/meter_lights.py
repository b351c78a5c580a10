"""What this machine can measure, in a glance: for the bar at the top and the first start."""

from __future__ import annotations

from typing import NamedTuple

from ckptcost.errors import CkptcostError
from ckptcost.questions.doctor import doctor
from ckptcost.tui.desk import by_flags
from ckptcost.tui.screens.meters import lights, three_lines

LOOK = "0.5 s"


class Seen(NamedTuple):
    lights: str
    lines: tuple[str, ...]


def seen(meters: str, plain: bool = False) -> Seen:
    """Takes a second or so."""
    try:
        with by_flags():
            study = doctor(LOOK, meters=meters).study
    except (CkptcostError, OSError) as error:
        return Seen("", (str(error),))
    return Seen(lights(study, plain), tuple(three_lines(study)))
