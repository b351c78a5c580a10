"""Measured beside modelled: a recorded run against the desk's scenario, as `ckptcost compare
run:PATH SCENARIO` has it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import NamedTuple

from ckptcost.catalog.store import Catalog
from ckptcost.jobs.gap import FORCED, gap
from ckptcost.jobs.model import one_of
from ckptcost.layers import layers_for
from ckptcost.present.amounts import duration
from ckptcost.present.chart import Bar, Bars, Part
from ckptcost.present.grid import Grid, Tone
from ckptcost.report.studies.gap import study_of
from ckptcost.report.study import Study, Table
from ckptcost.tui.desk import Desk
from ckptcost.tui.screens.run_view import seen_of
from ckptcost.tui.screens.runs_entries import Source
from ckptcost.tui.study_grids import grid_of, paragraphs

LINES = "lines"
PARTS = ("parts_save", "parts_load")


class AgainstView(NamedTuple):
    """One host of the run beside the model."""

    source: Source
    study: Study
    host: str
    hosts: tuple[str, ...]

    @property
    def tables(self) -> list[Grid]:
        return [grid_of(table) for table in self._tables]

    @property
    def table_ids(self) -> list[str]:
        return [table.id for table in self._tables]

    @property
    def _tables(self) -> list[Table]:
        """Line by line first; what the text report leaves out for its length comes last."""
        return sorted(
            (table for table in self.study.tables if table.rows),
            key=lambda table: (table.id != LINES, not table.shown),
        )

    @property
    def lines(self) -> list[tuple[str, Tone]]:
        """What explains the difference comes first."""
        about = set(self.study.about)
        said = paragraphs(self.study)
        return [
            *(line for line in said if line[0] not in about),
            *(line for line in said if line[0] in about),
        ]

    @property
    def head(self) -> str:
        several = (
            f", host {self.host} ({self.hosts.index(self.host) + 1} of {len(self.hosts)})"
            if len(self.hosts) > 1
            else ""
        )
        return (
            f"Run {self.source.short}{several} against"
            f" {self.study.question.get('scenario') or 'the scenario'}"
        )

    @property
    def bars(self) -> Bars:
        """From what is modelled, cause by cause, to what was measured."""
        table = next((table for table in self.study.tables if table.id in PARTS), None)
        if table is None:
            return Bars(
                title="From modelled to measured",
                empty="Size and time are not both known, so no cause can be told apart.",
            )
        return _waterfall(table, next(each for each in self.study.tables if each.id == LINES))


def _waterfall(table: Table, lines: Table) -> Bars:
    of = table.id.removeprefix("parts_")
    time = next(row for row in lines.rows if row["of"] == of and row["quantity"] == "time")
    rows: list[Bar] = []
    whole = next(row for row in table.rows if row["id"] == "whole")
    at_s = float(time["modelled"])
    rows.append(
        Bar("modelled", [Part("modelled", 0.0, at_s)], whole["modelled"], "modelled", "base")
    )
    for row in table.rows:
        if row["id"] == "whole" or row["seconds"] is None:
            continue
        more_s = float(row["seconds"])
        tone: Tone = "bad" if more_s > 0 else "good" if more_s < 0 else "muted"
        low_s, high_s = sorted((at_s, at_s + more_s))
        text = f"{'+' if more_s > 0 else ''}{duration(more_s)}"
        rows.append(
            Bar(row["cause"], [Part(row["cause"], low_s, high_s, tone)], text, row["id"], tone)
        )
        at_s += more_s
    rows.append(
        Bar("measured", [Part("measured", 0.0, at_s)], whole["measured"], "measured", "base")
    )
    return Bars(
        rows,
        title=f"From modelled to measured: one {of}, mean",
        note="each cause changed in this order; it adds up",
    )


def settings_of(desk: Desk) -> tuple[str, tuple[str, ...]]:
    """The scenario's name and the flags over it, the chosen tier among them where it is not the
    scenario's own."""
    layers = desk.layers()
    own = str(one_of(desk.catalog, layers).words.get("tier.id", ""))
    tier = desk.tier_chosen()
    return desk.base, (*desk.settings(), *([f"tier.id={tier}"] if tier and tier != own else []))


def held(source: Source, host: str, base: str, settings: Sequence[str]) -> AgainstView:
    """Raises CkptcostError where there is nothing to hold against each other."""
    seen = seen_of(source, host)
    catalog = Catalog()
    study = study_of(gap(catalog, seen, layers_for(catalog, base, None, list(settings))))
    return AgainstView(source, study, seen.energies.node.host, seen.run.hosts)


def command_of(source: Source, desk: Desk) -> str:
    """The command that prints the study; it takes the first host of several."""
    base, settings = settings_of(desk)
    return shlex.join(
        [
            "ckptcost",
            "compare",
            f"{FORCED}{source.word}",
            base,
            *(word for each in settings for word in ("--set", each)),
        ]
    )
