"""The verbs by name. A question is one function in the module of its name: the name is the verb,
its parameters are the flags, its docstring is the help, and it returns an Answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # what `ckptcost` offers, so that calls of it are typed
    from ckptcost.questions.audit import audit as audit
    from ckptcost.questions.catalog import catalog as catalog
    from ckptcost.questions.compare import compare as compare
    from ckptcost.questions.export import export as export
    from ckptcost.questions.init import init as init
    from ckptcost.questions.interval import interval as interval
    from ckptcost.questions.model import model as model
    from ckptcost.questions.need import need as need
    from ckptcost.questions.report import report as report
    from ckptcost.questions.simulate import simulate as simulate


class Verb(NamedTuple):
    """A line of `ckptcost --help`."""

    group: str
    places: str
    answers: str
    is_question: bool = True
    """has a function here; the others are the first edition's as yet"""


VERBS = {
    "model": Verb("Plan", "[JOB]", "What do the checkpoints of this job cost?"),
    "interval": Verb("Plan", "[JOB]", "How often should it save, where, sync or async?"),
    "compare": Verb("Plan", "A [B ...]", "Which is better, by how much, how sure?"),
    "simulate": Verb("Plan", "[JOB]", "How differently can one run turn out?"),
    "need": Verb("Plan", "QUANTITY [JOB]", "What bandwidth, stall or MTBF meets a target?"),
    "audit": Verb("Plan", "SHEET", "Do a vendor's numbers agree with each other?"),
    "run": Verb("Measure", "-- COMMAND", "What do the checkpoints of this command take?", False),
    "probe": Verb("Measure", "DIR", "How fast is this folder for a checkpoint?", False),
    "report": Verb("Measure", "[RUN or FILE]", "What did a run, or a saved answer, say?"),
    "calibrate": Verb(
        "Measure", "RUN --as NAME", "Turn measurements into a tier for model.", False
    ),
    "export": Verb("Share", "FILE --to FORMAT", "Give it to other software."),
    "fleet": Verb("Share", "STORE", "What did many jobs take over months?", False),
    "doctor": Verb("Help", "[DIR]", "What can be measured here, and how to get the rest?", False),
    "catalog": Verb("Help", "[WORD]", "Search models, tiers, clusters, sites, sources."),
    "init": Verb("Help", "FILE", "Write a 20-line job file to start from."),
}
"""a further question is one module, and a line here and one above for type checkers"""
