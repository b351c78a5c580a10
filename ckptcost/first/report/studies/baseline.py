"""The idle power that was learned, as a table."""

from __future__ import annotations

from ckptcost.first.jobs.measure import LearnedIdle
from ckptcost.first.present.amounts import duration, number
from ckptcost.first.present.measured import warning_text
from ckptcost.first.report.study import Column, Study, Table, hidden, named


def study_of(learned: LearnedIdle) -> Study:
    idle, m = learned.idle, learned.measured
    parts = [idle.domains[domain].power_w for domain in m.energies.parts if domain in idle.domains]
    rows = [
        {
            "domain": name,
            "watts": b.power_w,
            "low": b.low_w,
            "high": b.high_w,
            "source": m.energies.sources[name].channel.source,
            "driver": m.energies.sources[name].driver,
        }
        for name, b in idle.domains.items()
    ]
    columns = (
        *named("domain"),
        Column("watts", "idle W", "W"),
        Column("low", "low", "W", "10th percentile of whole seconds"),
        Column("high", "high", "W", "90th percentile"),
        *hidden("source", "driver"),
    )
    kept = (
        f"Kept for {idle.host}, taken {idle.taken}."
        if learned.file is not None
        else "Not kept: this is no real machine's."
    )
    return Study(
        kind="measurement",
        title=f"Idle power of {idle.host}, learned in {duration(idle.seconds)}",
        about=[kept + " `ckptcost measure` takes it off where it says above idle."],
        question={"baseline": True, "seconds": idle.seconds, "taken": idle.taken, "run": m.run.id},
        tables=[Table("baseline", "Idle power by domain", columns, rows)],
        findings=[f"{number(sum(parts))} W in {len(parts)} metered parts that add up."]
        if parts
        else [],
        warnings=[("NOT_IDLE", warning_text("NOT_IDLE", ", ".join(learned.busy)))]
        if learned.busy
        else [],
        simulated=m.simulated,
    )
