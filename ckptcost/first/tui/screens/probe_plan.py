"""What a probe is asked to do, and what that means before anything is written: the fields of its
form as texts, the place, what would be written there, and the command that does the same."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from ckptcost.first.catalog.schema import flag_value
from ckptcost.first.core.size import full_bytes
from ckptcost.first.core.timing import nodes_of
from ckptcost.first.errors import CkptcostError, InputError, brief
from ckptcost.first.jobs.probe import PAUSE_S, ProbeRequest
from ckptcost.first.jobs.recording import MARGIN_S
from ckptcost.first.meters.block import device_of
from ckptcost.first.present.amounts import count, duration, quantity, rate, share, size
from ckptcost.first.present.form import Field
from ckptcost.first.present.grid import Grid, GridHead, Row, Tone
from ckptcost.first.savers.found import SAVERS
from ckptcost.first.savers.place import margin_bytes
from ckptcost.first.savers.torch_state import REMEDY
from ckptcost.first.tui.desk import Desk
from ckptcost.first.watch.filesystems import kind_of

Line = tuple[str, Tone]

# the form

NODES, WHOLE = "a node's share", "the scenario's"
"""sizes that the scenario on the desk gives"""
YES_NO = ("yes", "no")
LEAST_BYTES, MOST_BYTES = 1e6, 1e15
_COUNTS = {"ranks": (1, 4096), "rounds": (1, 1000), "warm_up": (0, 100)}
_FIELDS = (
    Field("directory", "folder", "", group="Where", placeholder="a folder on the storage"),
    Field("size", "size", "", group="What", choices=(NODES, WHOLE), placeholder="20 GB"),
    Field("writer", "writer", "", group="What", choices=tuple(SAVERS)),
    Field("ranks", "writers", "", group="What"),
    Field("rounds", "rounds", "", group="How often"),
    Field("quarter", "quarter size too", "", group="How often", choices=YES_NO),
    Field("warm_up", "warm-up saves", "", group="How often"),
    Field("read", "read back", "", group="How often", choices=YES_NO),
)
_LABELS = {field.path: field.label for field in _FIELDS}


@dataclass(frozen=True)
class Draft:
    """The texts as they stand in the form."""

    directory: str = ""
    size: str = "1 GB"
    writer: str = "direct"
    ranks: str = "8"
    rounds: str = "3"
    quarter: str = "yes"
    warm_up: str = "0"
    read: str = "yes"

    def edited(self, path: str, text: str) -> Draft:
        return replace(self, **{path: text})


def fresh() -> Draft:
    """The folder that one is in, and what the command takes where nothing is said."""
    try:
        return Draft(os.getcwd())
    except OSError:  # it was removed
        return Draft()


def fields(draft: Draft, desk: Desk) -> tuple[Field, ...]:
    wrong = problems(draft, desk)
    sized = draft.size.strip() in (NODES, WHOLE) and "size" not in wrong
    units = {"size": quantity(_known_bytes(draft.size.strip(), desk), "bytes")} if sized else {}
    return tuple(
        each._replace(
            text=getattr(draft, each.path),
            unit=units.get(each.path, ""),
            error=wrong.get(each.path, ""),
        )
        for each in _FIELDS
    )


def problems(draft: Draft, desk: Desk) -> dict[str, str]:
    """By field, why its text cannot be used."""
    found = {}
    for path in _LABELS:
        try:
            _value(path, draft, desk)
        except CkptcostError as error:
            found[path] = error.problem if isinstance(error, InputError) else str(error)
    return found


def request(draft: Draft, desk: Desk) -> ProbeRequest:
    """What is asked of the job. Raises InputError for the first field that cannot be used."""
    values = {path: _value(path, draft, desk) for path in _LABELS}
    return ProbeRequest(
        Path(values["directory"]),
        values["size"],
        values["ranks"],
        saver=values["writer"],
        rounds=values["rounds"],
        small=values["quarter"],
        read=values["read"],
        warm_up=values["warm_up"],
        pause_s=PAUSE_S,
    )


def _value(path: str, draft: Draft, desk: Desk) -> Any:
    """What a field's text means. Raises InputError where it means nothing."""
    text = str(getattr(draft, path)).strip()
    if path == "directory":
        return directory_of(draft)
    if path == "size":
        return _bytes(text, desk)
    if path in _COUNTS:
        least, most = _COUNTS[path]
        if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
            raise InputError(f"expected a whole number from {least} to {most}")
        return int(text)
    if path == "writer":
        if text not in SAVERS:
            raise InputError(f"no writer named {brief(text)}. Known: {', '.join(SAVERS)}")
        return text
    if text.lower() not in YES_NO:
        raise InputError("expected yes or no")
    return text.lower() == "yes"


def directory_of(draft: Draft) -> str:
    """The folder as it would be opened."""
    text = draft.directory.strip()
    if not text:
        raise InputError("name a folder on the storage that is to be measured")
    return str(Path(os.path.expanduser(text)))


def _bytes(text: str, desk: Desk) -> int:
    if text in (NODES, WHOLE):
        scenario = desk.resolved().scenario
        whole = float(full_bytes(scenario.checkpoint))
        found = whole / float(nodes_of(scenario.cluster)) if text == NODES else whole
    else:
        found = float(flag_value("", text, "bytes"))
    if not LEAST_BYTES <= found <= MOST_BYTES:
        raise InputError("expected 1 MB to 1 PB")
    return round(found)


def _known_bytes(text: str, desk: Desk) -> float | None:
    try:
        return float(_bytes(text, desk))
    except CkptcostError:
        return None


def choices(path: str, desk: Desk) -> Grid:
    """What a field can hold, with what it means."""
    about = dict.fromkeys(YES_NO, "")
    if path == "writer":
        about = {name: text for name, (_, _, text) in SAVERS.items()}
    elif path == "size":
        each, whole = (
            quantity(_known_bytes(name, desk), "bytes").replace("-", "unknown")
            for name in (NODES, WHOLE)
        )
        about = {
            NODES: f"{each}: what one of its nodes writes at a save",
            WHOLE: f"{whole}: a whole checkpoint, as if one node wrote all of it",
        }
    label = _LABELS[path]
    heads = (GridHead("name", label, left=True), GridHead("about", "what it is", left=True))
    return Grid(heads, [Row(name, (name, text)) for name, text in about.items()], label)


def command(draft: Draft, desk: Desk, meters: str) -> str:
    """The command that probes the same; empty while a field cannot be used."""
    try:
        one = request(draft, desk)
    except CkptcostError:
        return ""
    usual = ProbeRequest(one.directory, one.size_bytes)
    words = ["ckptcost", "probe", str(one.directory), "--size", size_text(one.size_bytes)]
    for flag, value, default in (
        ("--ranks", one.ranks, usual.ranks),
        ("--saver", one.saver, usual.saver),
        ("--rounds", one.rounds, usual.rounds),
        ("--warm-up", one.warm_up, usual.warm_up),
        ("--meters", meters, "auto"),
    ):
        words += [flag, str(value)] if value != default else []
    words += [] if one.small else ["--one-size"]
    words += [] if one.read else ["--no-read"]
    return shlex.join(words)


def size_text(size_bytes: int) -> str:
    """As a flag gives exactly this many bytes.

    >>> size_text(20_000_000_000), size_text(109_375_000_001)
    ('20 GB', '109375000001 B')
    """
    short = quantity(float(size_bytes), "bytes")
    return short if round(flag_value("", short, "bytes")) == size_bytes else f"{size_bytes} B"


# the place

ROTATING, DRIVE, NETWORK, MEMORY = "a rotating disk", "a drive", "a network file system", "memory"
LIKELY_BYTES_PER_S = {ROTATING: 0.2e9, DRIVE: 2e9, NETWORK: 1e9, MEMORY: 4e9}
"""to say roughly how long it takes, as long as nothing is known of the place"""
_NEEDS = {
    "torch_save": ("torch",),
    "torch_dcp": ("torch",),
    "torch_dcp_async": ("torch",),
    "safetensors": ("torch", "safetensors"),
}
_REMOTE_WHY = "what counts is this node's way to its servers, and others may use them meanwhile"


class Spot(NamedTuple):
    """A folder, as far as can be told without writing."""

    directory: str
    refusal: str = ""
    """why nothing can be written there, whatever the size"""
    fs_type: str = ""
    device: str = ""
    kind: str = DRIVE
    free_bytes: float = 0.0
    whole_bytes: float = 0.0
    """0 where the file system does not say"""
    memory_bytes: float = 0.0
    """of this machine: as much can be in the page cache"""

    @property
    def room_bytes(self) -> float:
        """What a checkpoint may take: some is always left free."""
        if not self.whole_bytes:
            return float("inf")
        return max(self.free_bytes - margin_bytes(int(self.whole_bytes)), 0.0)


def look(directory: str | Path, procfs: Path = Path("/proc"), sysfs: Path = Path("/sys")) -> Spot:
    """May wait for a server that does not answer, so not on the screen's own thread."""
    path = Path(directory)
    shown = str(path)
    try:
        if not path.exists():
            return Spot(shown, "no such folder")
        if not path.is_dir():
            return Spot(shown, "is no folder")
        room = os.statvfs(path)
    except (OSError, ValueError) as error:
        return Spot(shown, getattr(error, "strerror", None) or str(error))
    mounted = kind_of(path, procfs)
    disks = device_of(path, procfs=procfs, sysfs=sysfs).disks
    refusal = ""
    if room.f_flag & os.ST_RDONLY:
        refusal = "the file system is mounted read-only"
    elif not os.access(path, os.W_OK | os.X_OK):
        refusal = "you may not write there"
    return Spot(
        shown,
        refusal,
        mounted.fs_type,
        ", ".join(_named(disk, sysfs) for disk in disks),
        MEMORY if mounted.in_memory else NETWORK if mounted.blind else _kind(disks, sysfs),
        float(room.f_bavail * room.f_frsize),
        float(room.f_blocks * room.f_frsize),
        _memory_bytes(procfs),
    )


def _memory_bytes(procfs: Path) -> float:
    found = re.search(r"^MemTotal:\s+(\d+) kB", _word(procfs / "meminfo"), re.M)
    return float(found[1]) * 1024.0 if found else 0.0


def _kind(disks: tuple[str, ...], sysfs: Path) -> str:
    turning = [_word(sysfs / "block" / disk / "queue" / "rotational") for disk in disks]
    # virtual disks say that they rotate
    real = not any(re.match(r"(vd|xvd|nvme)", disk) for disk in disks)
    return ROTATING if "1" in turning and real else DRIVE


def _named(disk: str, sysfs: Path) -> str:
    model = _word(sysfs / "block" / disk / "device" / "model")
    return f"{disk} ({' '.join(model.split())})" if model else disk


def _word(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return ""


def refusal_of(spot: Spot, one: ProbeRequest) -> str:
    """Why this probe must not begin, with the numbers; empty where it may."""
    if spot.refusal:
        return f"{spot.directory}: {spot.refusal}"
    if one.size_bytes > spot.room_bytes:
        kept = spot.free_bytes - spot.room_bytes
        return (
            f"{spot.directory}: a checkpoint of {size(one.size_bytes)} does not fit:"
            f" {size(spot.free_bytes)} are free, of which {size(kept)} are left alone"
        )
    missing = next((name for name in _NEEDS.get(one.saver, ()) if find_spec(name) is None), "")
    return f"{one.saver} needs {missing}, which is not installed: {REMEDY}" if missing else ""


def place_lines(spot: Spot, one: ProbeRequest | None = None) -> list[Line]:
    """What the place is, and what to keep in mind there."""
    if spot.refusal:
        return [(spot.refusal, "bad")]
    lines: list[Line] = [(_spot_text(spot), "")]
    if spot.kind == MEMORY:
        lines.append((f"{spot.fs_type} is memory: this measures memory and no storage", "warn"))
    elif spot.kind == NETWORK:
        lines.append((f"{NETWORK}: {_REMOTE_WHY}", "muted"))
    if one is None or spot.kind == MEMORY:
        return lines
    if one.saver != "direct" and one.size_bytes < spot.memory_bytes:
        text = (
            f"{size(one.size_bytes)} fit into the page cache of {size(spot.memory_bytes)}: what"
            " counts is until fsync is through"
        )
        lines.append((text, "muted"))
    return lines


def _spot_text(spot: Spot) -> str:
    """Its file system and its room."""
    on = f" on {spot.device}" if spot.device else ""
    where = f"{spot.fs_type or 'unknown file system'}{on}"
    if not spot.whole_bytes:
        return f"{where}, it does not say how much is free"
    return f"{where}, {size(spot.free_bytes)} free of {size(spot.whole_bytes)}"


# the plan

ASK_FRACTION, ASK_BYTES = 0.10, 50e9
"""of the free room, or in all: more than that is asked about"""


class ProbePlan(NamedTuple):
    asked: ProbeRequest
    written_bytes: float
    """in all, warm-up included; never more than one checkpoint at a time is there"""
    read_bytes: float
    """to compare, and to time a load"""
    seconds: float
    """roughly"""
    guess: str
    """what `seconds` rests on"""
    much: str
    """why it is asked about before it begins; empty where it is not"""

    @property
    def saves(self) -> int:
        return len(self.asked.sizes) + self.asked.warm_up

    @property
    def moved_bytes(self) -> float:
        return self.written_bytes + self.read_bytes

    @property
    def question(self) -> str:
        """For the dialog before it begins."""
        return self.much and (
            f"{size(self.written_bytes)} are written into {self.asked.directory}: {self.much}.\n"
            f"Never more than {size(self.asked.size_bytes)} are there at a time, and nothing is"
            " left at the end."
        )


def plan_of(one: ProbeRequest, spot: Spot, known_bytes_per_s: float | None = None) -> ProbePlan:
    """`known_bytes_per_s` where the place was probed just before."""
    written = float(sum(one.sizes) + one.warm_up * one.size_bytes)
    read = float(sum(one.sizes)) * (one.settings.verify + one.read)
    likely = known_bytes_per_s or LIKELY_BYTES_PER_S[spot.kind]
    pauses = len(one.sizes) * (2 if one.read else 1) + one.warm_up
    seconds = (written + read) / likely + (pauses + 1) * one.pause_s + 2 * MARGIN_S
    guess = f"if {spot.kind} does {rate(likely)}"
    if known_bytes_per_s:
        guess = f"at {rate(likely)}, as before"
    much = ""
    if written > ASK_FRACTION * spot.free_bytes and spot.whole_bytes:
        part = share(written / spot.free_bytes)
        much = f"that is {part} of the {size(spot.free_bytes)} that are free"
    elif written > ASK_BYTES:
        much = f"that is more than {size(ASK_BYTES)}"
    return ProbePlan(one, written, read, seconds, guess, much)


def plan_lines(plan: ProbePlan) -> list[Line]:
    """The dry run."""
    one = plan.asked
    saves = f"{count(plan.saves)} saves" if plan.saves > 1 else "one save"
    of = f"{size(one.size_bytes)} each" + (", every second one a quarter" if one.small else "")
    warm = {0: "", 1: "; the first does not count"}.get(
        one.warm_up, f"; the first {count(one.warm_up)} do not count"
    )
    lines: list[Line] = [
        (f"Will write {size(plan.written_bytes)} into {one.directory}/.ckptcost-probe-...", "base"),
        (f"{saves}, {of}{warm}; at most {size(one.size_bytes)} at a time.", ""),
        (
            f"Will read {size(plan.read_bytes)},"
            f" {'to compare and then timed' if one.read else 'to compare, untimed'}.",
            "",
        ),
        (f"About {duration(_rounded(plan.seconds))}, {plan.guess}.", ""),
        ("Removed at the end, after Esc, and even when this program is killed.", "muted"),
    ]
    if plan.much:
        lines.append((f"It asks first: {plan.much}.", "warn"))
    return lines


def _rounded(seconds: float) -> float:
    """A guess has no three digits.

    >>> _rounded(13.4), _rounded(1234.0), _rounded(4.2)
    (13.0, 1200.0, 4.0)
    """
    digits = max(len(str(int(seconds))) - 2, 0)
    return float(round(seconds, -digits))


class Asking(NamedTuple):
    """What comes of the form, before anything is written."""

    lines: list[Line]
    """the place, and what would be written there"""
    ready: ProbePlan | None = None
    """None while a field or the place forbids it"""
    why_not: str = ""


def asking(
    draft: Draft,
    desk: Desk,
    spot: Spot | None,
    meters: str = "auto",
    known_bytes_per_s: float | None = None,
) -> Asking:
    """`spot` is None while it is looked at."""
    try:
        one = request(draft, desk)
    except CkptcostError as error:
        path, problem = next(iter(problems(draft, desk).items()), ("", str(error)))
        wrong = f"{_LABELS[path]}: {problem}" if path else problem
        place = place_lines(spot) if spot is not None and path != "directory" else []
        return Asking([*place, (wrong, "bad")], None, wrong)
    if "simulated" in meters.split(","):
        plan = plan_of(one, Spot(str(one.directory)))._replace(much="")
        text = "A simulated machine: nothing is written but the run, which takes some seconds."
        return Asking([(text, "warn")], plan)
    if spot is None or spot.directory != str(one.directory):
        return Asking(
            [("looking at the folder ...", "muted")], None, "the folder is still looked at"
        )
    if why := refusal_of(spot, one):
        place = [] if spot.refusal else place_lines(spot)
        return Asking([*place, (f"{why}.", "bad"), ("Nothing is written.", "")], None, f"{why}.")
    plan = plan_of(one, spot, known_bytes_per_s)
    return Asking([*place_lines(spot, one), *plan_lines(plan)], plan)
