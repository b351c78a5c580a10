"""Lead time as a study: the option for Slurm, and whether a notice of a spot instance is long
enough."""

from __future__ import annotations

import math
from typing import Any

from ckptcost.first.core.lead import SIGNAL_MOST_S, chance_of_longer
from ckptcost.first.jobs.lead import Lead
from ckptcost.first.present.amounts import count, duration, share
from ckptcost.first.report.study import Column, Study, Table

NOTICES = (("Azure and Google Cloud", 30.0), ("AWS", 120.0))
"""seconds of warning before a spot instance is taken away      [gcp-spot] [azure-spot]
[aws-spot]"""


def study_of(found: Lead, name: str) -> Study:
    """The answer as a study."""
    return Study(
        kind="solution",
        title="How early the last save must begin" + (f": {name}" if name else ""),
        about=[_about(found)],
        question={"what": "lead", "saves": found.saves},
        tables=[_lead(found), _notices(found)],
        findings=_findings(found),
        warnings=_warnings(found),
        resolved=[] if found.resolved is None else [found.resolved],
    )


def _about(found: Lead) -> str:
    if found.saves:
        return (
            f"From {count(found.saves)} saves that were recorded, each from its begin until it was"
            " safe."
        )
    s = found.resolved.scenario if found.resolved else None
    how = "" if s is None else f"{s.policy.mode} saves, "
    return f"From the scenario: {how}99 of 100 draws from the ranges of its inputs."


def _findings(found: Lead) -> list[str]:
    said = [
        f"The last save must begin {duration(found.p99_s)} before the end: 99 of 100 are then safe "
        f"in time. Usually it takes {duration(found.usual_s)}."
    ]
    if 0 < found.saves < 100:
        said = [
            f"The longest of {count(found.saves)} saves needs {duration(found.p99_s)} before the "
            "end. So few say no 99th percentile: with a chance of "
            f"{share(chance_of_longer(found.saves))} the next one takes longer than all of them."
        ]
    if found.can_be_said:
        said.append(
            f"For Slurm: #SBATCH --signal=USR1@{found.signal_s}. It goes to the job's steps; with "
            f"--signal=B:USR1@{found.signal_s} to the batch script alone, which has to pass it on. "
            "Slurm may send it up to 60 s earlier."
        )
    else:
        said.append(
            f"Slurm's --signal takes no more than {count(SIGNAL_MOST_S)} s: the job itself has to "
            "watch the clock."
        )
    for who, notice_s in NOTICES:
        verdict = "are not enough: what counts is the last regular save"
        if found.p99_s <= notice_s:
            verdict = "are enough"
            if math.isnan(found.step_s):
                verdict += f" if a step takes no longer than {duration(notice_s - found.p99_s)}"
        said.append(f"The {duration(notice_s)} of warning of a spot instance ({who}) {verdict}.")
    return said


def _warnings(found: Lead) -> list[tuple[str, str]]:
    if not math.isnan(found.step_s):
        return []
    return [
        (
            "STEP_UNKNOWN",
            (
                "The length of a training step is not known and is left out: the signal waits for"
                " the step under way. Give policy.step, or mark steps in the run."
            ),
        )
    ]


def _lead(found: Lead) -> Table:
    columns = (
        Column("what", "what"),
        Column("time", "time", "s", "from the signal until the save can be loaded"),
    )
    step_s = None if math.isnan(found.step_s) else found.step_s
    rows: list[dict[str, Any]] = [
        {"what": "usual", "time": found.usual_s},
        {"what": "longest of all" if 0 < found.saves < 100 else "p99", "time": found.p99_s},
        {"what": "the step under way, of that", "time": step_s},
    ]
    return Table("lead", "Until the last save is safe", columns, rows)


def _notices(found: Lead) -> Table:
    columns = (
        Column("who", "spot instances of"),
        Column("notice", "warning", "s"),
        Column("left", "left for a step", "s", "less than nothing: not enough"),
    )
    step_s = 0.0 if math.isnan(found.step_s) else found.step_s
    rows: list[dict[str, Any]] = [
        {"who": who, "notice": notice_s, "left": notice_s - found.p99_s + step_s}
        for who, notice_s in NOTICES
    ]
    return Table("notices", "Warnings before an instance is taken away", columns, rows)
