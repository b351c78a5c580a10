"""What the checkpoints of a job cost: one of them, all of them, and the failures of the run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Annotated, Any, Unpack

from ckptcost.answer import Answer, Column, Table
from ckptcost.cautions import cautions_of
from ckptcost.questions import common as q
from ckptcost.questions import inputs as which
from ckptcost.questions import one, room, several
from ckptcost.questions import over as grid
from ckptcost.scenario.resolve import Scenario
from ckptcost.scenario.units import parse, show_range
from ckptcost.study import Study, tier_of


def model(
    job: q.Job = q.DEFAULT,
    *,
    over: Annotated[
        Sequence[str],
        q.Flag("a grid of plans, e.g. tier.write=2GB/s:40GB/s; may repeat", "KEY=VALUES"),
    ] = (),
    inputs: Annotated[bool, q.Flag("which inputs decide, and what to measure first")] = False,
    dir: Annotated[str, q.Flag("whether the checkpoints fit into this folder", "PATH")] = "",  # noqa: A002
    **flags: Unpack[q.Flags],
) -> Answer:
    """What the checkpoints of a job cost: one of them, all of them, the whole run.

    ckptcost model job.toml
    ckptcost model llama31-405b-16k --tier flash-shared --tier nas-hdd
    ckptcost model job.toml --over cluster.gpus=1000:100000 -o sizes.html
    ckptcost model job.toml --over tier.write=2GB/s:40GB/s:2GB/s -f csv
    ckptcost model job.toml --inputs
    ckptcost model job.toml --dir /scratch/run7
    """
    asked = [bool(over), inputs, bool(dir)].count(True)
    q.demand(asked <= 1, "--over, --inputs and --dir are three questions", "model", "ask for one")
    options: dict[str, Any] = {"typed": q.typed(job, flags)} | q.options_of(flags)
    if over:
        axes_typed = shlex.join(word for each in over for word in ("--over", each))
        options["typed"] = f"{options['typed']} {axes_typed}".strip()
        cases, axes = grid.cases_of(job, over, flags)
        return answer(cases, over=axes, **options)
    if dir:
        return answer(q.cases_for(job, flags), dir=dir, **options, **room.measured(dir))
    return answer(q.cases_for(job, flags), inputs=inputs, **options)


def answer(
    cases: dict[str, Scenario],
    *,
    typed: str = "",
    over: Sequence[str] = (),
    inputs: bool = False,
    dir: str = "",  # noqa: A002
    free: float = 0.0,
    files: float = 0.0,
    require: Sequence[str] = (),
    sure: float = q.SURE,
    draws: int | None = None,
) -> Answer:
    """The same of cases, and of the options that a document holds."""
    asked: dict[str, Any] = {"over": [*over], "inputs": inputs, "dir": dir, "typed": typed}
    asked |= {"free": free, "files": files} if dir else {}
    asked |= {"require": [*require], "sure": sure, "draws": draws}
    if over:
        found = grid.answer(cases, over, draws, typed)
    elif dir:
        found = room.answer(cases, dir, free, files)
    elif inputs:
        found = which.answer(cases, draws, typed)
    else:
        found = costs(cases, typed, q.Flags(require=require, sure=sure), draws)
    found.cases = cases
    found.options = {key: value for key, value in asked.items() if value not in ([], "", False)}
    return found


def costs(cases: dict[str, Scenario], typed: str, flags: q.Flags, draws: int | None) -> Answer:
    """One checkpoint and the whole run, of one plan or of several."""
    study = Study(cases, draws)
    order = several.order_of(study)
    row, alone = order.rows[0], len(cases) == 1
    says = one.says(study, row) if alone else several.says(study, order)
    tables = (
        [one.added(study, row), one.where(study, row)]
        if alone
        else [several.one_table(study), several.run_table(study)]
    )
    notes = one.notes(study, row, typed) if alone else several.notes(study, row)
    return Answer(
        "model",
        f"What checkpoints cost: {study.scenarios[row].name}",
        one.about(study, row) if alone else several.about(study),
        says,
        [
            study.table("Every measure of the run", {}, shown=False),
            *tables,
            one.lines(study),
            *([] if alone else [study.bill_table(row)]),
            claims(study),
            study.inputs_table(row),
        ],
        notes,
        cautions_of(study, [*dict.fromkeys([row, *order.unfit])]),
        plots=several.curves(study) if not one.never(study, row) else [],
        missed=q.missed(study, flags),
        draws=study.draws,
    )


def claims(study: Study) -> Table:
    """What vendors say of one save, which never goes into the model."""
    columns = [
        Column("tier", "tier"),
        Column("what", "what"),
        Column("claimed", "claimed"),
        Column("size", "for"),
        Column("source", "source"),
    ]
    rows: list[list[Any]] = []
    by_tier = {tier_of(scenario): scenario for scenario in study.scenarios}
    for tier, scenario in by_tier.items():
        for claim in scenario.claims:
            unit = {"energy": "kWh", "time": "s"}.get(claim["what"], "")
            low, high = (
                parse(claim.get(end, claim["value"]), f"1 {unit}") for end in ("low", "high")
            )
            said = f"{show_range(low, high, unit)} {unit}" if low < high else claim["value"]
            rows.append([tier, claim["what"], said, claim["size"], claim.get("source", "")])
    return Table("claims", "What vendors say of one save", columns, rows, shown=False)
