"""Recorded runs into a store: one file for each node and UTC day, written again only when there is
more to say.

Each file is put on its own, so a packer that is killed leaves whole files, and the next one does
the rest. Two that pack the same run at once write the same bytes. Only the files of one host are in
memory at a time.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from ckptcost.first.errors import CkptcostError, InputError, OutputError, RunFileError
from ckptcost.first.fleet.node_day import NodeDay, NodeDayHead, empty_rows
from ckptcost.first.fleet.node_file import FUTURE, BadNodeFile, decode, encode
from ckptcost.first.fleet.recorded_day import DAY_NS, DayFacts, day_name, days_of
from ckptcost.first.fleet.store import Store, StoreEntry
from ckptcost.first.jobs.measure import reviewed_run
from ckptcost.first.jobs.measured import Measured
from ckptcost.first.present.amounts import count, size
from ckptcost.first.report.studies.runs import MOST_WARNED, SHORT
from ckptcost.first.report.study import Column, Study, Table
from ckptcost.first.runs import baselines, job_facts
from ckptcost.first.runs.clocks import S
from ckptcost.first.runs.job_facts import JobFacts
from ckptcost.first.runs.reader import Loading
from ckptcost.first.runs.store import Kept
from ckptcost.first.runs.store import PartHead as FileHead
from ckptcost.first.runs.summary import summary_of

PACKING: Final = "2"
"""of what is made of a run: another one packs all runs again"""
WRITTEN, THERE, NEWER = "written", "already there", "newer there"
_TAIL_BYTES: Final = 4096
_TWO: Final = "of two jobs that have a run one counts, DUPLICATE_JOB"
_LESS_S: Final = 1.0
"""a day that is there and covers so much more is of a run whose first parts are gone now"""


class PackingRequest(NamedTuple):
    """What the user says of the job: before what the launcher said."""

    job: str = ""
    labels: Mapping[str, str] = {}


NOTHING_ASKED: Final = PackingRequest()


class Put(NamedTuple):
    """A node's day, and what became of it."""

    job: str
    run: str
    host: str
    day: str
    rows: int
    bytes: int
    outcome: str
    simulated: bool


class Failed(NamedTuple):
    """A run, or a host of one, that could not be packed."""

    name: str
    error: CkptcostError


class Packing(NamedTuple):
    store: str
    puts: list[Put]
    failed: list[Failed]
    notes: list[str]
    """what a reader of the store should know, in sentences"""
    swept: int
    """leftovers of writers that were killed"""


def pack_runs(store: Store, runs: Iterable[Kept], asked: PackingRequest = NOTHING_ASKED) -> Packing:
    """Every run; one that cannot be read costs none but itself. Raises OutputError where the store
    takes nothing more."""
    encode(
        NodeDay(NodeDayHead("-", "-", "-", "2026-01-01"), empty_rows())
    )  # without pyarrow no run is worth reading
    found = Packing(store.url, [], [], [], 0)
    for kept in _whole(runs):
        for host in sorted({head.header.host for head in kept.heads}):
            heads = tuple(head for head in kept.heads if head.header.host == host)
            try:
                _pack(store, kept._replace(heads=heads), host, asked, found)
            except OutputError:
                raise
            except CkptcostError as error:
                name = kept.name if len(heads) == len(kept.heads) else f"{kept.name}, host {host}"
                found.failed.append(Failed(name, error))
    return found._replace(swept=store.sweep())


def _whole(runs: Iterable[Kept]) -> list[Kept]:
    """A run that lies in several folders, as one whose id somebody fixed and that was started
    again, is one; in the place of the first."""
    found: dict[str, Kept] = {}
    for kept in runs:
        before = found.get(kept.run)
        if before is None:
            found[kept.run] = kept
        else:
            known = {head.file for head in before.heads}
            found[kept.run] = before._replace(
                heads=(*before.heads, *(head for head in kept.heads if head.file not in known))
            )
    return list(found.values())


def beside(kept: Kept, within: Iterable[Kept]) -> list[Kept]:
    """It, and what else is kept of the same run: packed without that, the file of a day would hold
    the one or the other."""
    return [kept, *(each for each in within if each.run == kept.run and each.path != kept.path)]


class InStore(NamedTuple):
    """What is there already of a run and host, whatever the job."""

    days: frozenset[str]
    """all that the run lasts"""
    entries: list[StoreEntry]
    readable: list[tuple[StoreEntry, NodeDay]]


def _in_store(store: Store, kept: Kept, host: str) -> InStore:
    length_ns = max(0, round(summary_of(kept).length_s * S))
    first, last = kept.began_ns // DAY_NS, (kept.began_ns + length_ns) // DAY_NS
    around = store.listing(day_name(first - 1), day_name(last + 1))
    entries = _of_run(store, around, kept.run, host)
    read = [(entry, _read(store, entry)) for entry in entries]
    return InStore(
        frozenset(day_name(day) for day in range(first, last + 1)),
        entries,
        [(entry, day) for entry, day in read if day is not None],
    )


def _pack(store: Store, kept: Kept, host: str, asked: PackingRequest, found: Packing) -> None:
    files = source_of(kept.heads, host)
    source = f"{files}-{_digest_of(asked)}"
    there = _in_store(store, kept, host)
    known = {
        entry.day: _put(day, entry.bytes, THERE)
        for entry, day in there.readable
        if day.head.source == source or (asked == NOTHING_ASKED and _files_of(day) == files)
    }
    if there.days <= known.keys():
        found.puts.extend(known[day] for day in sorted(known))
        return
    m = measure_host(kept.heads, host, kept.name)
    facts = facts_in(m)
    if facts.odd:
        found.notes.append(f"{kept.name}: {facts.odd}")
    days = days_of(m, _day_facts(m, facts, asked, files, there))
    paths = {entry.path: entry for entry in there.entries}
    for day in days:
        found.puts.append(_one(store, day, paths))
    for path, done in _clear_other_jobs(store, days, there):
        found.notes.append(f"{kept.name}: {path}, the same run and host under another job, {done}")


def _day_facts(
    m: Measured, facts: JobFacts, asked: PackingRequest, files: str, there: InStore
) -> DayFacts:
    job, source = asked.job or facts.job or m.run.id, f"{files}-{_digest_of(asked)}"
    labels = facts.all_labels | dict(asked.labels)
    if asked == NOTHING_ASKED and there.readable:
        # what somebody said by hand once stays, also when the run has grown
        before = max(
            (day.head for _, day in there.readable), key=lambda head: (head.until_ns, head.job)
        )
        job, source = before.job, f"{files}{before.source[len(files) :]}"
        labels |= before.labels
    labels = {name: text for name, text in labels.items() if text}
    return DayFacts(job, labels, facts.nodes, facts.node_names, m.run.ended, source)


def _clear_other_jobs(
    store: Store, days: Sequence[NodeDay], there: InStore
) -> Iterator[tuple[str, str]]:
    """Files of these days under other jobs, and what became of each."""
    ours = {day.head.day: day.head for day in days}
    read = {entry.path: day.head for entry, day in there.readable}
    for entry in there.entries:
        new = ours.get(entry.day)
        if new is None or entry.path == store.path_of(new):
            continue
        old = read.get(entry.path)
        if old is None or _covers_more(old, new):
            # what may hold more than ours is nobody's to remove
            yield (
                entry.path,
                f"stays, for it holds more than what is here or cannot be read: {_TWO}",
            )
        elif why := store.remove(entry.path):
            yield entry.path, f"could not be removed ({why}): {_TWO}"
        else:
            yield entry.path, "is gone"


def _one(store: Store, day: NodeDay, there: Mapping[str, StoreEntry]) -> Put:
    path = store.path_of(day.head)
    entry = there.get(path)
    if entry is not None:
        try:
            old = decode(store.read(path), ("key",), path)
        except BadNodeFile as error:
            if error.code == FUTURE:
                return _put(day, entry.bytes, NEWER)
        else:
            if old.head.source == day.head.source:
                return _put(old, entry.bytes, THERE)
            if _covers_more(old.head, day.head):
                return _put(old, entry.bytes, NEWER)
    try:
        data = encode(day)
    except ValueError as error:  # of a clock that stood in another century, say
        raise RunFileError(
            f"cannot be packed: {error}", where=f"{day.head.host} {day.head.day}"
        ) from None
    store.put(path, data)
    return _put(day, len(data), WRITTEN)


def _covers_more(old: NodeDayHead, new: NodeDayHead) -> bool:
    return old.until_ns > new.until_ns or (
        old.until_ns == new.until_ns and old.covered_s > new.covered_s + _LESS_S
    )


def _put(day: NodeDay, bytes_: int, outcome: str) -> Put:
    head = day.head
    return Put(head.job, head.run, head.host, head.day, day.many, bytes_, outcome, head.simulated)


def _of_run(store: Store, entries: Iterable[StoreEntry], run: str, host: str) -> list[StoreEntry]:
    """Of this run and host, whatever the job: a file is named by both."""
    names: dict[str, str] = {}
    found = []
    for entry in entries:
        if entry.day not in names:
            names[entry.day] = store.path_of(NodeDayHead("-", run, host, entry.day)).rsplit("/", 1)[
                -1
            ]
        if entry.path.rsplit("/", 1)[-1] == names[entry.day]:
            found.append(entry)
    return found


def _read(store: Store, entry: StoreEntry) -> NodeDay | None:
    try:
        return decode(store.read(entry.path), ("key",), entry.path)
    except InputError:  # as if it was not there: it is looked at again before it is written over
        return None


def measure_host(heads: Iterable[FileHead], host: str, name: str) -> Measured:
    """The run as this host alone saw it, by its own clock."""
    loading = Loading()
    for head in heads:
        try:
            loading.read(head.file, head.header.run)
        except OSError as error:
            raise RunFileError(f"cannot be read: {error.strerror}", where=str(head.file)) from None
    if not loading.parts:
        raise RunFileError("its files are gone", where=name)
    return reviewed_run(loading.finish(), host=host, name=name)


def facts_in(m: Measured) -> JobFacts:
    """What the launcher said, the last time that the recorder said it."""
    notes = [
        event for event in m.run.events if event.domain == job_facts.DOMAIN and event.name == "note"
    ]
    return (
        job_facts.facts_from(notes[-1].detail)._replace(odd=notes[-1].text) if notes else JobFacts()
    )


def _files_of(day: NodeDay) -> str:
    return day.head.source.partition("-")[0]


def _digest_of(asked: PackingRequest) -> str:
    return hashlib.sha256(
        json.dumps([asked.job, sorted(asked.labels.items())]).encode()
    ).hexdigest()[:16]


def source_of(heads: Iterable[FileHead], host: str) -> str:
    """Another one where anything is that a packed file is made of: the host's files, its baseline,
    and how. What was asked for is added."""
    told = hashlib.sha256(PACKING.encode())
    heads = sorted(heads, key=lambda head: (head.file.name, head.header.wall_ns))
    for head in heads:
        try:
            with head.file.open("rb") as stream:
                size = stream.seek(0, 2)
                stream.seek(max(0, size - _TAIL_BYTES))
                tail = hashlib.sha256(stream.read(_TAIL_BYTES)).hexdigest()
        except OSError as error:
            raise RunFileError(f"cannot be read: {error.strerror}", where=str(head.file)) from None
        told.update(json.dumps([head.file.name, size, tail]).encode())
    if not any(head.header.simulated for head in heads):
        try:
            told.update(baselines.file_of(host).read_bytes())
        except OSError:
            told.update(b"none")
    return told.hexdigest()


# What was packed into a store, as a table.


MOST_SHOWN = 24
_OUTCOMES = {
    WRITTEN: "new, or more is known than was there",
    THERE: "made of the same files before",
    NEWER: "what is there covers more of the day, or was written by a newer ckptcost, and stays",
}


def study_of(packing: Packing, unread: Sequence[str] = ()) -> Study:
    """`unread`: why folders among the runs gave none."""
    puts, store = packing.puts, os.path.basename(os.path.normpath(packing.store))
    counts = Counter(put.outcome for put in puts)
    told = [f"{count(counts[outcome])} {outcome}" for outcome in _OUTCOMES if counts[outcome]]
    written = sum(put.bytes for put in puts if put.outcome == WRITTEN)
    why = [f"{each.name}: {each.error}" for each in packing.failed] + list(unread)
    days = f"{count(len(puts))} node day{'' if len(puts) == 1 else 's'} packed"
    return Study(
        kind="runs",
        title=days if puts else "Nothing was packed",
        about=[f"Into the store {store}: a file for each node and UTC day of a run."],
        question={"verb": "pack", "store": store},
        tables=[_files_table(puts)],
        findings=[f"{', '.join(told)}; {size(written)} written."] if told else [],
        warnings=_warnings_of("UNREADABLE", why) + _warnings_of("JOB", packing.notes),
        simulated=bool(puts) and all(put.simulated for put in puts),
    )


def _warnings_of(code: str, texts: Sequence[str]) -> list[tuple[str, str]]:
    said = [(code, f"{text.rstrip('.')}.") for text in texts[:MOST_WARNED]]
    if len(texts) > MOST_WARNED:
        said.append((code, f"And {count(len(texts) - MOST_WARNED)} more."))
    return said


def _files_table(puts: Sequence[Put]) -> Table:
    rows = [
        {
            "run": put.run[:SHORT],
            "host": put.host,
            "day": put.day,
            "rows": float(put.rows),
            "size": float(put.bytes),
            "outcome": put.outcome,
            "job": put.job,
            "id": put.run,
            "readings": "simulated" if put.simulated else "measured",
        }
        for put in puts
    ]
    outcomes = "; ".join(f"{outcome}: {meaning}" for outcome, meaning in _OUTCOMES.items())
    columns = (
        Column("run", "run", meaning="the beginning of its id"),
        Column("host", "host"),
        Column("day", "day (UTC)"),
        Column("rows", "rows", "count", "saves and loads that began on that day"),
        Column("size", "size", "bytes"),
        Column("outcome", "outcome", meaning=outcomes),
        Column("job", "job", shown=False),
        Column("id", "id", shown=False),
        Column("readings", "readings", meaning="measured or simulated", shown=False),
    )
    return Table("packed", "Files", columns, rows, shown=len(rows) <= MOST_SHOWN)
