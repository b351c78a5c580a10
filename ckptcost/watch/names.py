"""What the name of a file or folder says of a checkpoint: which step, which rank, whether it is
temporary, a commit, or noise.

Names say little for certain; what savers write in fact is in the tests, as their own sequences of
files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

_RANDOM = re.compile(r"\.?tmp(?=[a-z]*[A-Z0-9])(?:[A-Za-z0-9]{6}|[A-Za-z0-9]{8})(?:\.\w+)?")
_TEMPORARY = tuple(
    re.compile(pattern, re.I)
    for pattern in (
        r"(.+?)[._-]orbax-checkpoint-tmp(?:-\d+)?",
        r"[._]*(?:te?mp|partial|incomplete|in_?progress)[-_.]+(.+)",
        r"\.?(.+?)[-_.](?:te?mp|partial|incomplete|in_?progress|writing|saving|unfinished)(?:[-_.]?[0-9a-z]{1,12})?",
        r"\.?(.+?)(?:\.part|~)",
        r"\.(.+\.\w+)\.\w{6}",  # rsync
    )
)
_NOISE = re.compile(
    r"events\.out\.tfevents\..*|.*\.(?:log(?:\.\d+)?|out|err|lock|sw[px]|pid|wandb|jsonl|csv|nsys-rep|ncu-rep|pyc|db|sqlite3?)|core\.\d+|"
    r".*\.trace\.json(?:\.gz)?|.*[.-](?:wal|shm|journal)|\.nfs[0-9a-f]+|\.fuse_hidden.*",
    re.I,
)
_NOISE_DIRS = frozenset(
    (
        "wandb",
        "mlruns",
        ".git",
        "__pycache__",
        ".hydra",
        "lost+found",
        "tensorboard",
        ".cache",
        ".snapshot",
    )
)
_STEP = frozenset(
    (
        "step",
        "steps",
        "iter",
        "iters",
        "iteration",
        "it",
        "epoch",
        "ep",
        "batch",
        "ba",
    )
)
_SAVE = frozenset(
    (
        "ckpt",
        "checkpoint",
        "chkpt",
        "cp",
        "snapshot",
        "save",
    )
)
_RANK = frozenset(
    (
        "rank",
        "shard",
        "part",
        "tp",
        "pp",
        "dp",
        "mp",
        "sp",
        "worker",
        "proc",
        "process",
        "node",
        "host",
        "gpu",
        "zero",
        "of",
        "layer",
        "expert",
        "world",
        "chunk",
        "split",
        "block",
        "stage",
        "slice",
        "idx",
        "index",
        "fsdp",
        "local",
        "device",
    )
)
_PART_DIR = re.compile(
    r"(?:\w*rank|shard|part|worker|proc|process|node|host|gpu|tp|pp|dp|mp|zero|expert|stage|pytorch_model_fsdp|optimizer)[-_]?\d[\w.]*|default|"
    r"(?:model_)?weights|model|optimizer|optim|state|states|params|d|ocdbt\.process_\d+|array_metadatas|rng|dist_ckpt|.*\.zarr",
    re.I,
)
CONTAINER = re.compile(
    r"(?:checkpoint|ckpt|model|output|result|weight|save|snapshot|run|log)s?", re.I
)
PLAIN = re.compile(
    r"(?:pytorch_|adapter_|diffusion_pytorch_)?model|optim(?:izer)?|consolidated|weights|scheduler|rng_state|",
    re.I,
)
DATA = re.compile(
    r".*\.(?:pt|pth|ckpt|bin|safetensors|distcp|pkl|npz|npy|h5|hdf5|msgpack|tar|model|state|gguf|onnx|nemo|params|keras)",
    re.I,
)
APPENDED = re.compile(r".*\.(?:h5|hdf5?|he5|nc4?|netcdf|tar|sqlite3?|db)", re.I)
"""formats made to be added to while they stay open: a pause in one of them ends a save, in another
file it may be the saver's own"""
COMMIT = re.compile(
    r"\.metadata|commit_success.*|trainer_state\.json|_CHECKPOINT_METADATA|[._]*(?:success|completed?|done|commit(?:ted)?)|.*\.(?:complete|done)",
    re.I,
)
POINTER = re.compile(
    r"(?:latest|last)(?:_checkpoint\w*|_step|_iter)?(?:\.txt|\.json)?|checkpoint", re.I
)
LITTLE = re.compile(r".*\.(?:json|txt|ya?ml|index|meta)|[^.]+", re.I)
ONE_OF = re.compile(r"(.*?)(\d+)-of-(\d+)(.*)")
DISTCP = re.compile(r"__(\d+)_\d+\.distcp")


def final(name: str) -> str:
    """A name as it will be when finished; empty for a random one, which says nothing.

    >>> [
    ...     final(name)
    ...     for name in (
    ...         "tmp-checkpoint-500",
    ...         "ckpt.pt.tmp",
    ...         "7.orbax-checkpoint-tmp-81",
    ...         ".tmpw51FR2",
    ...         "last.ckpt",
    ...     )
    ... ]
    ['checkpoint-500', 'ckpt.pt', '7', '', 'last.ckpt']
    """
    if _RANDOM.fullmatch(name):
        return ""
    return next((found[1] for pattern in _TEMPORARY if (found := pattern.fullmatch(name))), name)


def is_noise(path: str) -> bool:
    """Logs, curves, locks: written beside checkpoints all the time."""
    *dirs, name = path.split("/")
    return bool(_NOISE.fullmatch(name)) or not _NOISE_DIRS.isdisjoint(dirs)


class Numbers(NamedTuple):
    """What a name counts."""

    template: str
    values: tuple[int, ...]
    kinds: tuple[str, ...]
    """the word of a step, `save` and `bare` (may be a step or a rank), `rank`, or empty: unknown"""
    cut: str
    """the name up to the first rank"""

    @property
    def steps(self) -> dict[str, int]:
        return {
            kind: value
            for kind, value in zip(self.kinds, self.values, strict=True)
            if kind in _STEP
        }


@lru_cache(maxsize=4096)
def numbers_of(name: str) -> Numbers:
    """
    >>> numbers_of("ckpt_100.rank07.pt")
    Numbers(template='ckpt_#.rank#.pt', values=(100, 7), kinds=('save', 'rank'), cut='ckpt_100')
    """
    values: list[int] = []
    kinds: list[str] = []
    cut = ""
    for found in re.finditer(r"([A-Za-z]*)([-_=. ]*)(\d+)([A-Za-z]*)", name):
        word = found[1].lower()
        before = kinds[-1] if kinds else ""
        step = next(
            (step for step in _STEP if word == step or (len(step) > 3 and word.endswith(step))), ""
        )
        kind = ""
        if name.endswith(".distcp") or word in _RANK or name[found.end(3) :].startswith("-of-"):
            kind = "rank"
        elif found[4] and found[4] not in _STEP:
            kind = ""  # 7b, fp16
        elif step:
            kind = step
        elif word in _SAVE:
            kind = "save"
        elif found.start(3) == 0:
            kind = "bare"
        elif not word and before == "rank":
            kind = "rank"
        if kind == "rank" and not cut:
            cut = name[: found.start(1)].rstrip("-_=. ")
        values.append(int(found[3]))
        kinds.append(kind)
    return Numbers(
        re.sub(r"\d+", "#", name), tuple(values), tuple(kinds), cut if "rank" in kinds else name
    )


def _is_unit(name: str) -> bool:
    """A directory that is a checkpoint by its name."""
    return any(kind in _STEP or kind == "save" for kind in numbers_of(name).kinds)


def unit_of(path: str) -> tuple[str, str, bool]:
    """The directory that is, or holds, the checkpoint a file belongs to: as it is, as it will be
    called, and whether it is one by itself.

    >>> (
    ...     unit_of("run/tmp-checkpoint-500/global_step500/zero_rank_0.pt"),
    ...     unit_of("run/best/model/a.pt"),
    ... )
    (('run/tmp-checkpoint-500', 'run/checkpoint-500', True), ('run/best', 'run/best', False))
    """
    dirs = path.split("/")[:-1]
    finals = [final(each) or each for each in dirs]
    units = [at for at, each in enumerate(finals) if _is_unit(each)]
    bare = [
        at
        for at, each in enumerate(finals)
        if each.isdigit() and not re.fullmatch(r"(19|20)\d{6}", each)
    ]
    temporary = [at for at, each in enumerate(finals) if each != dirs[at] or not final(each)]
    if units:
        last = set(numbers_of(finals[units[-1]]).values)
        at = next(at for at in units if last & set(numbers_of(finals[at]).values))
    elif bare or temporary:
        at = (bare or temporary)[0]
    else:
        at = -1
    inner = numbers_of(final(path.rpartition("/")[2]))
    steps = set(inner.steps.values()) or (
        {*inner.values} if bare and not units and "save" in inner.kinds else set()
    )
    if at < 0 or (
        steps and not steps & set(numbers_of(finals[at]).values)
    ):  # many saves in a directory that counts something else
        while len(dirs) > 1 and _PART_DIR.fullmatch(dirs[-1]):
            dirs.pop()
        there = "/".join(dirs)
        return there, there, False
    named = finals[: at + 1]
    named[at] = numbers_of(named[at]).cut or named[at]
    return "/".join(dirs[: at + 1]), "/".join(named), True


def _is_far(a: int, b: int) -> bool:
    """Steps are counted in round numbers, ranks are not."""
    return a != b and a % 10 == 0 and b % 10 == 0


def same_step(new: str, others: Iterable[str], *, overlap: bool) -> bool:
    """Whether a name may belong to the checkpoint of the others, which lie in the same
    directory."""
    name = numbers_of(final(new))
    known = [numbers_of(final(other)) for other in others]
    for other in known:
        shared = name.steps.keys() & other.steps.keys()
        if shared:
            return all(name.steps[word] == other.steps[word] for word in shared)
    alike = [other for other in known if other.template == name.template]
    if not alike:
        first = next(
            (value for value, kind in zip(name.values, name.kinds, strict=True) if kind != "rank"),
            None,
        )
        theirs = [
            value
            for other in known
            for value, kind in zip(other.values, other.kinds, strict=True)
            if kind != "rank"
        ]
        return first is None or not theirs or any(not _is_far(first, value) for value in theirs)
    free = [place for place, kind in enumerate(name.kinds) if kind != "rank"]
    varied = {place for place in free if len({other.values[place] for other in alike}) > 1}
    nearest = min(
        alike, key=lambda other: sum(other.values[place] != name.values[place] for place in free)
    )
    differ = [place for place in free if nearest.values[place] != name.values[place]]
    if all(place in varied for place in differ):
        return True  # a number that varied while they overlapped, or none
    if (
        len(differ) > 1
        or (len(free) > 1 and name.kinds[differ[0]] == "save")
        or (varied and differ[0] not in varied)
    ):
        return False
    if len(free) == 1 and name.kinds[differ[0]] in ("save", "bare") and not overlap:
        return False
    value = name.values[differ[0]]
    return any(not _is_far(value, other.values[differ[0]]) for other in alike)


def another_rank(new: str, others: Iterable[str]) -> bool:
    """Whether the names differ in a rank and in nothing else: however late, that is the same
    checkpoint."""
    name = numbers_of(final(new))
    for other in map(numbers_of, map(final, others)):
        if "rank" in name.kinds and other.template == name.template and other.values != name.values:
            pairs = zip(name.kinds, name.values, other.values, strict=True)
            if all(kind == "rank" or mine == theirs for kind, mine, theirs in pairs):
                return True
    return False
