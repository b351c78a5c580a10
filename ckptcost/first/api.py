"""ckptcost from Python: the same questions as the command line, in three lines.

>>> import ckptcost
>>> report = ckptcost.model("gpt4-scale-2tb", tier=["nas-hdd", "generic-pfs"], saves=[100])
>>> [round(row["stall_s"]) for row in report.rows("cases")]
[10005, 1005]
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeVar

from ckptcost.first.questions import audit as _audit
from ckptcost.first.questions import calibrate as _calibrate
from ckptcost.first.questions import compare as _compare
from ckptcost.first.questions import doctor as _doctor
from ckptcost.first.questions import fits as _fits
from ckptcost.first.questions import fleet as _fleet
from ckptcost.first.questions import gap as _gap
from ckptcost.first.questions import lead as _lead
from ckptcost.first.questions import measure as _measure
from ckptcost.first.questions import model as _model
from ckptcost.first.questions import optimize as _optimize
from ckptcost.first.questions import price as _price
from ckptcost.first.questions import probe as _probe
from ckptcost.first.questions import review as _review
from ckptcost.first.questions import sensitivity as _sensitivity
from ckptcost.first.questions import simulate as _simulate
from ckptcost.first.questions import solve as _solve
from ckptcost.first.questions.diff import diff
from ckptcost.first.questions.export import export
from ckptcost.first.questions.parameters import PathText
from ckptcost.first.questions.sweep import sweep

if TYPE_CHECKING:
    from ckptcost.first.report.document import Report

__all__ = [
    "audit",
    "baseline",
    "calibrate",
    "compare",
    "diff",
    "doctor",
    "export",
    "fits",
    "gap",
    "lead",
    "load_report",
    "measure",
    "model",
    "optimize",
    "price",
    "probe",
    "review",
    "roll_up",
    "sensitivity",
    "simulate",
    "solve",
    "sweep",
]

P = ParamSpec("P")
D = TypeVar("D", covariant=True)  # noqa: PLC0105


class Documented(Protocol[D]):
    def document(self, command: Sequence[str] = ()) -> D: ...


def answered(question: Callable[P, Documented[D]]) -> Callable[P, D]:
    """The question with its document for an answer."""

    @wraps(question)
    def ask(*args: P.args, **kwargs: P.kwargs) -> D:
        return question(*args, **kwargs).document()

    return ask


audit = answered(_audit.audit)
baseline = answered(_measure.baseline)
calibrate = answered(_calibrate.calibrate)
compare = answered(_compare.compare)
doctor = answered(_doctor.doctor)
fits = answered(_fits.fits)
gap = answered(_gap.gap)
lead = answered(_lead.lead)
measure = answered(_measure.measure)
model = answered(_model.model)
optimize = answered(_optimize.optimize)
price = answered(_price.price)
probe = answered(_probe.probe)
review = answered(_review.review)
roll_up = answered(_fleet.roll_up)
sensitivity = answered(_sensitivity.sensitivity)
simulate = answered(_simulate.simulate)
solve = answered(_solve.solve)


def load_report(path: PathText) -> Report:
    """A report from its JSON file."""
    from ckptcost.first.report.read import read

    return read(os.fspath(path))
