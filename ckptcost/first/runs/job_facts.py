"""What a launcher says of the job, from the environment: kept in the run as a note, so that a fleet
knows whose run it was.

Slurm and torchrun say it by themselves; elsewhere CKPTCOST_JOB, CKPTCOST_NODES and
CKPTCOST_LABELS="team=infra,model=llama-405b" do, and they have the last word. Nothing here fails: a
variable that cannot be understood is left out, and the note says which.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ckptcost.first.errors import InputError, brief

if TYPE_CHECKING:
    from ckptcost.first.runs.recorder import Recorder

DOMAIN: Final = "job"
"""of the event that carries it"""
MOST_LETTERS: Final = 200
MOST_NODE_LETTERS: Final = 16_000
"""a longer list of nodes is left out: cut, it would name some of them as all"""
MOST_LABELS: Final = 64
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")


class JobFacts(NamedTuple):
    """Empty, 0 and None are unknown."""

    job: str = ""
    name: str = ""
    account: str = ""
    cluster: str = ""
    nodes: int = 0
    node_names: str = ""
    """as the launcher writes them: n[001-128],m7"""
    restart: int | None = None
    """how often it was begun again"""
    labels: Mapping[str, str] = {}
    """as somebody gave them"""
    odd: str = ""
    """what could not be understood, in a sentence"""

    @property
    def detail(self) -> dict[str, Any]:
        """What is known, for the run file."""
        known = {key: value for key, value in self._asdict().items() if value not in ("", None, {})}
        if not self.nodes:
            known.pop("nodes")
        known.pop("odd", None)
        return known

    @property
    def all_labels(self) -> dict[str, str]:
        """Those that somebody gave, before the launcher's own words for the same."""
        own = {"team": self.account, "cluster": self.cluster, "name": self.name}
        return {name: text for name, text in (own | dict(self.labels)).items() if text}


def facts_of(environ: Mapping[str, str] = os.environ) -> JobFacts:
    """As this process was started.

    >>> facts_of(
    ...     {"SLURM_JOB_ID": "17", "SLURM_JOB_NUM_NODES": "128", "SLURM_JOB_ACCOUNT": "infra"}
    ... ).detail
    {'job': '17', 'account': 'infra', 'nodes': 128}
    >>> facts_of(
    ...     {"CKPTCOST_JOB": "web-7", "CKPTCOST_LABELS": "team=infra, tier=scratch"}
    ... ).all_labels
    {'team': 'infra', 'tier': 'scratch'}
    """
    odd: list[str] = []
    elastic = _text(environ, "TORCHELASTIC_RUN_ID")
    labels = _labels_from(environ, odd)
    nodes, names = _nodes_from(environ, odd)
    return JobFacts(
        job=_text(environ, "CKPTCOST_JOB")
        or _text(environ, "SLURM_JOB_ID")
        or ("" if elastic == "none" else elastic),
        name=_text(environ, "SLURM_JOB_NAME"),
        account=_text(environ, "SLURM_JOB_ACCOUNT"),
        cluster=_text(environ, "SLURM_CLUSTER_NAME"),
        nodes=nodes,
        node_names=names,
        restart=_number(environ, "SLURM_RESTART_COUNT"),
        labels=labels,
        odd="; ".join(odd),
    )


def note_job_facts(recorder: Recorder, environ: Mapping[str, str] = os.environ) -> None:
    """A note in the run, where there is something to say."""
    facts = facts_of(environ)
    if facts.detail or facts.odd:
        recorder.note(DOMAIN, facts.odd, **facts.detail)


def _labels_from(environ: Mapping[str, str], odd: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for piece in _printable(environ.get("CKPTCOST_LABELS", "")).split(","):
        try:
            found |= labels_of([piece] if piece.strip() else [])
        except InputError:
            odd.append(
                f"CKPTCOST_LABELS: {brief(piece.strip())} is left out, as it is no NAME=TEXT"
            )
    if len(found) > MOST_LABELS:
        odd.append(
            f"CKPTCOST_LABELS: {len(found)} labels, of which the first {MOST_LABELS} are kept"
        )
    return dict(list(found.items())[:MOST_LABELS])


def labels_of(said: Iterable[str]) -> dict[str, str]:
    """Of NAME=TEXT; an empty text says that there is no such label. Raises InputError.

    >>> labels_of(["team=infra", "note=a=b"])
    {'team': 'infra', 'note': 'a=b'}
    """
    found: dict[str, str] = {}
    for piece in said:
        name, equals, text = (part.strip() for part in _printable(piece).partition("="))
        if not equals or not _NAME.fullmatch(name) or len(text) > MOST_LETTERS:
            raise InputError(
                f"{brief(piece)} is no label", remedy="write NAME=TEXT, e.g. team=infra"
            )
        found[name] = text
    return found


def _nodes_from(environ: Mapping[str, str], odd: list[str]) -> tuple[int, str]:
    """How many, and their names. A pod's own count is of its job; Slurm's is of the allocation;
    torchrun counts agents, one a node."""
    own = _printable(environ.get("CKPTCOST_NODES", ""))
    names = _printable(environ.get("SLURM_JOB_NODELIST", ""))
    count = _number(environ, "CKPTCOST_NODES")
    if own and count is None:
        names = own
    if len(names) > MOST_NODE_LETTERS:
        odd.append(f"the list of nodes is left out: {len(names)} letters")
        names = ""
    if count:
        return count, names
    for name in ("SLURM_JOB_NUM_NODES", "GROUP_WORLD_SIZE"):
        if number := _number(environ, name):
            return number, names
    ranks, local = _number(environ, "WORLD_SIZE"), _number(environ, "LOCAL_WORLD_SIZE")
    return (ranks // local if ranks and local and ranks % local == 0 else 0), names


def _text(environ: Mapping[str, str], name: str) -> str:
    return _printable(environ.get(name, ""))[:MOST_LETTERS]


def _printable(text: str) -> str:
    """Without what would move a terminal's cursor, or is no text at all."""
    return "".join(letter for letter in text if letter.isprintable()).strip()


def _number(environ: Mapping[str, str], name: str) -> int | None:
    text = environ.get(name, "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def facts_from(detail: Mapping[str, object]) -> JobFacts:
    """As a run file has them, which anybody may have written: what is of another kind is
    unknown."""

    def text(key: str, most: int = MOST_LETTERS) -> str:
        value = detail.get(key)
        return _printable(value)[:most] if isinstance(value, str) else ""

    def number(key: str) -> int | None:
        value = detail.get(key)
        return value if type(value) is int and 0 <= value < 1_000_000_000 else None

    labels = detail.get("labels")
    pairs = labels.items() if isinstance(labels, Mapping) else ()
    names = text("node_names", MOST_NODE_LETTERS + 1)
    return JobFacts(
        job=text("job"),
        name=text("name"),
        account=text("account"),
        cluster=text("cluster"),
        nodes=number("nodes") or 0,
        node_names=names if len(names) <= MOST_NODE_LETTERS else "",
        restart=number("restart"),
        labels={
            _printable(str(name)): _printable(str(value))[:MOST_LETTERS]
            for name, value in list(pairs)[:MOST_LABELS]
        },
    )
