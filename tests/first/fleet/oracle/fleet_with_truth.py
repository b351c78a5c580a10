"""A synthetic fleet of known truth: the product's plan and its node files, with faults planted
among them where they are asked for, and beside it what it really cost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from fleet_truth import Straggler, TierTruth, Trouble, Truth
from job_truth import JobBook
from planted_faults import (
    DUPLICATE,
    LEAST_DAYS,
    LEAST_NODES,
    SKEWED,
    UNSTEADY,
    Planted,
    clocks_of,
    damaged,
    planted_in,
    strays,
    swaying,
)

from ckptcost.first.fleet.node_file import encode
from ckptcost.first.fleet.store import Store, folder_of, open_store
from ckptcost.first.fleet.synthetic.fleet_plan import (
    DAY_NS,
    TIERS,
    FleetPlan,
    JobPlan,
    RunPlan,
    plan_of,
    usual_rate,
)
from ckptcost.first.fleet.synthetic.synthesize import NodeFiles, WrittenDay, days_of_run


def fleet_with_truth(
    nodes: int,
    days: int,
    directory: str,
    *,
    seed: int = 1,
    saves_per_day: float = 96.0,
    start: str = "2026-11-02",
    faults: bool = False,
    failures_per_node_day: float | None = None,
) -> Truth:
    assert not faults or (nodes >= LEAST_NODES and days >= LEAST_DAYS), "too small for faults"
    rate = usual_rate(nodes, days) if failures_per_node_day is None else failures_per_node_day
    plan = plan_of(nodes, days, seed, saves_per_day, start, rate)
    planted = planted_in(plan) if faults else Planted()
    store = open_store(directory, make=True)
    folder = NodeFiles(Path(directory), store)
    jobs, troubles = [], []
    for job in plan.jobs:
        book = JobBook(plan, job, planted)
        for run in job.runs:
            windows = book.windows(run)
            as_seen = run._replace(clock_ns=clocks_of(job, run, planted))
            for written in days_of_run(plan, job, as_seen, windows):
                if not planted.missing(job.place, written.node, written.place):
                    book.saw(written, *_put(plan, job, run, written, planted, folder, store))
            book.close(run, windows)
        jobs.append(book.truth())
        troubles += book.troubles
    troubles += _beside(plan, planted, folder)
    return Truth(
        seed=plan.seed,
        nodes=plan.nodes,
        days=plan.days,
        start=plan.start,
        saves_per_day=plan.saves_per_day,
        failures_per_node_day=plan.failures_per_node_day,
        files=folder.files,
        rows=folder.rows,
        tiers=tuple(
            TierTruth(
                tier.name, float(tier.bytes_per_s), float(tier.read_bytes_per_s), tier.fixed_s
            )
            for tier in TIERS
        ),
        jobs=tuple(jobs),
        stragglers=tuple(
            Straggler(job.job, host, factor / 1000)
            for job in plan.jobs
            for host, factor in zip(job.hosts, job.factor_permille.tolist(), strict=True)
            if factor != 1000
        ),
        troubles=tuple(troubles),
    )


def _put(
    plan: FleetPlan,
    job: JobPlan,
    run: RunPlan,
    written: WrittenDay,
    planted: Planted,
    folder: NodeFiles,
    store: Store,
) -> tuple[str, str, str]:
    """Why it is set aside, where it is, and where its copy; a file that counts is whole."""
    key = (job.place, run.place, written.node)
    code, path = planted.code(key, written.place), store.path_of(written.day.head)
    if code == SKEWED and not written.day.many:
        code = ""  # without a row nobody can see it
    if code in ("", DUPLICATE):
        folder.put(written)
        copy = path.replace(".parquet", "_copy.parquet") if code else ""  # as by hand
        if copy:
            folder.write(copy, encode(written.day))
        return "", path, copy
    day = written.day
    if code == UNSTEADY:
        swayed = swaying(plan.seed, key, job, day.rows["begin_ns"])
        day = day._replace(rows={**day.rows, "begin_ns": swayed})
    folder.write(path, damaged(encode(day), code))
    return code, path, ""


def _beside(plan: FleetPlan, planted: Planted, folder: NodeFiles) -> Iterator[Trouble]:
    if planted.beside < 0:
        return
    job = plan.jobs[planted.beside]
    day = plan.day((job.began_ns - plan.start_ns) // DAY_NS)
    for name, code, content in strays():
        path = f"job={folder_of(job.job)}/day={day}/{name}"
        folder.write(path, content)
        yield Trouble(code, path, job=job.job, day=day)
