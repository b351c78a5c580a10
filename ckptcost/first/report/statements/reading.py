"""From whatever there is, a report, a study, a statement or a recorded run, to the statements that
exports and pages are made of."""

from __future__ import annotations

import contextlib
import math
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ckptcost.first.catalog.contracts import SiteContracts, read_contracts
from ckptcost.first.catalog.grid_hours import GridHours, read_grid
from ckptcost.first.catalog.schema import printable
from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.hourly import width_for
from ckptcost.first.core.units import HOUR_S
from ckptcost.first.errors import Argument, InputError, UnknownName, brief
from ckptcost.first.report.build import build, input_part, statements_study
from ckptcost.first.report.dating import date_statement, start_of
from ckptcost.first.report.document import Report
from ckptcost.first.report.parts import FunctionalUnit, InputFile
from ckptcost.first.report.read import MOST_BYTES, read
from ckptcost.first.report.statement import Statement, Subject
from ckptcost.first.scenario import Resolved


class Placing(NamedTuple):
    """When and where it was, and under which factors: what the flags of `report` and `export`
    say."""

    case: str = ""
    start: str = ""
    grid: str = ""
    grid_column: str = ""
    grid_tz: str = ""
    grid_unit: str = ""
    contracts: str = ""
    labels: Sequence[str] = ()
    host: str = ""
    summed: str = ""
    """title of a format whose readers add up what they are given: of ways to do one job it takes
    one"""


class StatementFactors(NamedTuple):
    """What the files of the flags hold."""

    grid: GridHours | None
    sites: Mapping[str, SiteContracts] | None
    inputs: tuple[InputFile, ...]


@contextlib.contextmanager
def spool_pipe(source: str) -> Iterator[str]:
    """A document that comes through a pipe, or on stdin as `-`, as a file that can be read more
    than once."""
    path = Path(source)
    if source not in ("-", "/dev/stdin") and not source.startswith(
        "/dev/fd/"
    ):  # a named pipe may have nobody who ever writes
        yield source
        return
    with tempfile.TemporaryDirectory(prefix="ckptcost-") as folder:
        kept = Path(folder) / "stdin.json"
        with contextlib.ExitStack() as open_:
            stream = sys.stdin.buffer if source == "-" else open_.enter_context(path.open("rb"))
            raw = stream.read(MOST_BYTES + 1)
        kept.write_bytes(raw)
        yield str(kept)


def is_document(source: str) -> bool:
    """A JSON file, rather than the name of a recorded run."""
    path = Path(source)
    try:
        if not path.is_file() or path.suffix == ".jsonl":
            return False
        with path.open("rb") as stream:
            begin = stream.read(64)
    except OSError:  # whoever reads it next says why it cannot be
        return False
    if begin.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(
            "is in UTF-16",
            where=source,
            remedy="save it as UTF-8; -o FILE of ckptcost writes it so",
        )
    return begin.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")


def cases_of(source: str) -> list[str]:
    """Of a model: the case that is meant where none is named, and the others; of anything else
    none."""
    if not is_document(source):
        return []
    report = read(source)
    return [str(row["case"]) for row in report.rows("cases")] if report.kind == "model" else []


def statements_of(source: str, case: str = "", summed: str = "") -> list[Statement]:
    """Of a JSON document."""
    report = read(source)
    if report.kind == "model":
        from ckptcost.first.report.statements.modelled import statement_of

        return [statement_of(report, case)]
    found = report.statements
    if not found:
        raise InputError(
            f"holds no bill to export: it is of the kind {report.kind}",
            where=source,
            remedy={
                "simulation": "simulate at most 20,000 runs",
                "measurement": "a recording with checkpoints in it has one",
            }.get(report.kind, "reports, simulations, comparisons and recorded runs have one"),
        )
    if report.kind == "comparison" and summed and not case and len(found) > 1:
        raise InputError(
            f"holds {len(found)} ways to do one job, and readers of {summed} add them up",
            where=source,
            remedy="name one of them: --case A",
        )
    return _pick_case(found, case)


def _pick_case(found: Sequence[Statement], case: str) -> list[Statement]:
    if not case:
        return list(found)
    mine = [
        s for s in found if case in (s.subject.run_id, s.subject.name, s.subject.name.split(":")[0])
    ]
    if not mine:
        raise UnknownName("case", case, [s.subject.name for s in found], where=Argument("case"))
    return mine


def of_run(
    path: Path,
    run: str,
    host: str,
    catalog: Catalog,
    resolved: Resolved | None,
    priced: bool,
    width_s: float,
) -> list[Statement]:
    """One for each host of a recorded run."""
    from ckptcost.first.jobs.measure import reviewed
    from ckptcost.first.report.statements.measured import statement_of

    first = reviewed(path, host=host, run_id=run)
    hosts = [host] if host or len(first.run.hosts) == 1 else list(first.run.hosts)
    found = []
    for n, name in enumerate(hosts):
        seen = first if n == 0 and not host else reviewed(path, host=name, run_id=run)
        told = statement_of(seen, catalog, resolved, priced, width_s)
        if told is None:
            continue
        if len(hosts) > 1:
            told = told.model_copy(
                update={
                    "subject": told.subject.model_copy(
                        update={"run_id": f"{told.subject.run_id}-{name}"}
                    ),
                    "id": f"{told.id}#{name}",
                }
            )
        found.append(told)
    if not found:
        raise InputError(
            "holds no checkpoint",
            where=path.name,
            remedy="record a job that saves: `ckptcost run -- COMMAND`",
        )
    return found


def factors_of(placing: Placing) -> StatementFactors:
    """The files that the flags name."""
    own = (placing.grid_column, placing.grid_tz, placing.grid_unit)
    for flag, said in zip(("grid_column", "grid_tz", "grid_unit"), own, strict=True):
        if said and not placing.grid:
            raise InputError("belongs to --grid", where=Argument(flag))
    grid = read_grid(placing.grid, *own) if placing.grid else None
    sites = read_contracts(placing.contracts) if placing.contracts else None
    files = [path for path in (placing.grid, placing.contracts) if path]
    return StatementFactors(
        grid, sites, tuple(InputFile(**input_part(path, Path(path).read_bytes())) for path in files)
    )


def width_of(factors: StatementFactors) -> float:
    """How wide the rows of a run are."""
    return HOUR_S if factors.grid is None else width_for(factors.grid.steps)


def place_statements(
    found: Sequence[Statement], placing: Placing, factors: StatementFactors
) -> list[Statement]:
    """Under the flags: dated, with the factors of the time, and labelled."""
    start_s = start_of(placing.start) if placing.start else None
    asked = start_s is not None or factors.grid is not None or factors.sites is not None
    told = [date_statement(s, start_s, factors.grid, factors.sites) if asked else s for s in found]
    return [_label_statement(s, placing.labels) for s in told]


_NUMBERS = (
    "parameters",
    "tokens",
    "nodes",
    "accelerator_count",
    "cpu_count",
    "ram_gb",
    "latitude",
    "longitude",
)
_FIXED = ("run_id", "site_id", "grid_zone", "tags")
"""what other parts of the statement hang on"""


def _label_statement(s: Statement, labels: Sequence[str]) -> Statement:
    """What somebody says of the run in words: known names fill the subject, others are tags."""
    known: dict[str, Any] = {}
    tags = dict(s.subject.tags)
    for text in labels:
        name, value = _name_and_value(text)
        if name in _NUMBERS:
            known[name] = _number(name, value)
        elif name in Subject.model_fields:
            known[name] = value
        else:
            tags[name] = value
    subject = Subject.model_validate(s.subject.model_dump() | known | {"tags": tags})
    units = list(s.functional_units)
    if "tokens" in known:
        units.append(FunctionalUnit(name="training_token", count=known["tokens"]))
    return s.model_copy(update={"subject": subject, "functional_units": units})


def _name_and_value(label: str) -> tuple[str, str]:
    name, equals, value = label.partition("=")
    name, value = name.strip(), printable(value.strip())
    if not equals or not name or not value:
        empty = "says nothing" if equals and name else "is no label"
        raise InputError(
            f"{brief(label)} {empty}",
            where=Argument("labels"),
            remedy="NAME=TEXT, e.g. team=infra",
        )
    if name in _FIXED:
        raise InputError(
            f"{name} is not said by a label",
            where=Argument("labels"),
            remedy="--site names a site",
        )
    return name, value


def _number(name: str, text: str) -> float:
    try:
        value = float(text.replace("_", ""))
    except ValueError:
        value = math.nan
    limits = {"latitude": (-90.0, 90.0), "longitude": (-180.0, 180.0)}.get(name, (0.0, 1e30))
    if not limits[0] <= value <= limits[1]:
        raise InputError(f"{brief(text)} is no {name}", where=Argument("labels"))
    return value


def gather_statements(
    found: Sequence[Statement], command: Sequence[str], inputs: Sequence[InputFile] = ()
) -> Report:
    """All of them as one document; each with a run id of its own."""
    ids = [s.subject.run_id for s in found]
    twice = next((each for each in ids if ids.count(each) > 1), None)
    if twice is not None:
        raise InputError(f"two of the statements are of {twice}", remedy="name each source once")
    return build(
        statements_study(found), Catalog(), command, inputs=[each.model_dump() for each in inputs]
    )
