"""What the checkpoints of a job cost: one of them, all of them, and the failures of the run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Annotated, Any, Unpack

from ckptcost.answer import Answer, Column, Say, Table
from ckptcost.cautions import cautions_of
from ckptcost.questions import common as q
from ckptcost.questions import inputs as which
from ckptcost.questions import one, ranks, room, several
from ckptcost.questions import over as grid
from ckptcost.scenario.resolve import Scenario, tier_of
from ckptcost.scenario.units import parse, show_range
from ckptcost.study import Study


def model(
    job: q.Job = q.DEFAULT,
    *,
    over: Annotated[
        Sequence[str],
        q.Flag("a grid of plans, e.g. tier.write=2GB/s:40GB/s; may repeat", "KEY=VALUES"),
    ] = (),
    inputs: Annotated[bool, q.Flag("which inputs decide, and what to measure first")] = False,
    dir: Annotated[str, q.Flag("whether they fit into this folder", "PATH")] = "",  # noqa: A002
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
    if flags.get("mode") == "both":
        over = [*over, "mode=sync,async"]
        del flags["mode"]
    asked = [bool(over), inputs, bool(dir)].count(True)
    q.demand(asked <= 1, "--over, --inputs and --dir are three questions", "model", "ask for one")
    unjudged = not (asked and flags.get("require"))
    q.demand(
        unjudged, "is judged for plans alone", "--require", "leave out --over, --inputs, --dir"
    )
    options: dict[str, Any] = {"typed": q.typed(job, flags)} | q.options_of(flags)
    if over:
        axes = shlex.join(word for each in over for word in ("--over", each))
        options["typed"] = f"{options['typed']} {axes}".strip()
        cases, options["over"] = grid.cases_of(job, over, flags)
        return answer(cases, **options)
    if dir:
        options |= {"dir": dir} | room.measured(dir)
    if inputs:
        options["inputs"] = True
    return answer(q.cases_for(job, flags), **options)


def answer(cases: dict[str, Scenario], **asked: Any) -> Answer:
    """The same of cases, and of the options that a document holds."""
    typed, draws = asked["typed"], asked.get("draws")
    if asked.get("over"):
        found = grid.answer(cases, asked["over"], draws, typed)
    elif asked.get("dir"):
        found = room.answer(cases, asked["dir"], asked["free"], asked["files"])
    elif asked.get("inputs"):
        found = which.answer(cases, draws, typed)
    else:
        found = costs(Study(cases, draws), typed, q.Flags(**asked))  # type: ignore[typeddict-item]
    found.cases, found.options = cases, asked
    return found


def costs(study: Study, typed: str, flags: q.Flags) -> Answer:
    """One checkpoint and the whole run, of one plan or of several."""
    order = several.order_of(study)
    row, cases = order.rows[0], range(len(study.names))
    limits = ranks.unknown_limits(study, order.rows)
    if len(study.names) == 1:
        about, doubted = one.about(study, row), one.doubted(study, cases)
        unfit = [] if study.unsaid else [order.stops[each] for each in order.unfit]
        stops = [ranks.stopped(each, "This plan does not work as it stands.") for each in unfit]
        save, run = one.one_checkpoint(study, row), one.whole_run(study, row, order.stops)
        says = [*doubted, *stops, save, run]
        tables = [] if study.unsaid else [one.added(study, row), one.where(study, row)]
        notes = [*limits, *one.notes(study, row, typed, bool(doubted or stops))]
    else:
        about, doubted = several.about(study), one.doubted(study, cases)
        says = [*doubted, *several.choice(study, order), *limits, *ranks.unlike(study)]
        tables = [several.one_table(study), several.run_table(study)]
        notes = [*one.lacking(study, row), *one.inputs_of(study, row)]
    every = study.table("Every measure of the run", {}, shown=False)
    return Answer(
        "model",
        f"What checkpoints cost: {study.scenarios[row].name}",
        about,
        says,
        [every, *tables, one.lines(study), claims(study)],
        [*notes, Say("Every line, input and source:", "", "--detail")],
        cautions_of(study, [*dict.fromkeys([row, *order.unfit])]),
        several.curves(study),
        q.missed(study, flags, unfit=order.unfit),
        draws=study.draws,
    )


def claims(study: Study) -> Table:
    """What vendors say of one save, which never goes into the model."""
    keys = {"tier": "tier", "what": "what", "claimed": "claimed", "size": "for", "source": "source"}
    rows: list[list[Any]] = []
    for tier, scenario in {tier_of(each): each for each in study.scenarios}.items():
        for claim in scenario.claims:
            unit = {"energy": "kWh", "time": "s"}.get(claim["what"], "")
            ends = [claim.get(end, claim["value"]) for end in ("low", "high")]
            low, high = (parse(end, f"1 {unit}") for end in ends)
            said = f"{show_range(low, high, unit)} {unit}" if low < high else claim["value"]
            rows.append([tier, claim["what"], said, claim["size"], claim.get("source", "")])
    columns = [Column(*each) for each in keys.items()]
    return Table("claims", "What vendors say of one save", columns, rows, shown=False)
