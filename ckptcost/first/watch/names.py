"""What the name of a file or folder says of a checkpoint: which step, which rank, whether it is
temporary, a commit, or noise.

Names say little for certain; what savers write in fact is in the tests, as their own sequences of
files.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable
from functools import lru_cache
from posixpath import join
from typing import AnyStr, NamedTuple

_RANDOM = re.compile(r"\.?tmp(?=[a-z]*[A-Z0-9])(?:[A-Za-z0-9]{6}|[A-Za-z0-9]{8})(?:\.\w+)?")
_TEMPORARY = tuple(
    re.compile(pattern, re.I)
    for pattern in (
        r"(.+?)[._-]orbax-checkpoint-tmp(?:-\d+)?",
        r"[._]*(?:te?mp|partial|incomplete|in_?progress)[-_.]+(.+)",
        r"\.?(.+?)[-_.](?:te?mp|partial|incomplete|in_?progress|writing|saving|unfinished)"
        r"(?:[-_.]?[0-9a-z]{1,12})?",
        r"\.?(.+?)(?:\.part|~)",
        r"\.(.+\.\w+)\.\w{6}",  # rsync
    )
)
_NOISE = re.compile(
    r"events\.out\.tfevents\..*|"
    r".*\.(?:log(?:\.\d+)?|out|err|lock|sw[px]|pid|wandb|jsonl|csv|nsys-rep|ncu-rep|pyc|db|"
    r"sqlite3?)|core\.\d+|.*\.trace\.json(?:\.gz)?|.*[.-](?:wal|shm|journal)|\.nfs[0-9a-f]+|"
    r"\.fuse_hidden.*",
    re.I,
)
_NOISE_DIR = re.compile(
    r"wandb|mlruns|\.git|__pycache__|\.hydra|lost\+found|tensorboard|\.cache|\.snapshot"
)
_STEP = re.compile("steps?|iters?|iteration|it|epoch|ep|batch|ba")
_STEP_AT_END = re.compile("^(?:it|ep|ba)$|(?:steps?|iters?|iteration|epoch|batch)$")
_SAVE = re.compile("ckpt|checkpoint|chkpt|cp|snapshot|save")
_RANK = re.compile(
    "rank|shard|part|tp|pp|dp|mp|sp|worker|proc|process|node|host|gpu|zero|of|layer|expert|world|"
    "chunk|split|block|stage|slice|idx|index|fsdp|local|device"
)
_PART_DIR = re.compile(
    r"(?:\w*rank|shard|part|worker|proc|process|node|host|gpu|tp|pp|dp|mp|zero|expert|stage|"
    r"pytorch_model_fsdp|optimizer)[-_]?\d[\w.]*|default|(?:model_)?weights|model|optimizer|optim|"
    r"state|states|params|d|ocdbt\.process_\d+|array_metadatas|rng|dist_ckpt|.*\.zarr",
    re.I,
)
CONTAINER = re.compile(
    r"(?:checkpoint|ckpt|model|output|result|weight|save|snapshot|run|log)s?", re.I
)
PLAIN = re.compile(
    r"(?:pytorch_|adapter_|diffusion_pytorch_)?model|optim(?:izer)?|consolidated|weights|"
    r"scheduler|rng_state|",
    re.I,
)
DATA = re.compile(
    r".*\.(?:pt|pth|ckpt|bin|safetensors|distcp|pkl|npz|npy|h5|hdf5|msgpack|tar|model|state|gguf|"
    r"onnx|nemo|params|keras)",
    re.I,
)
APPENDED = re.compile(r".*\.(?:h5|hdf5?|he5|nc4?|netcdf|tar|sqlite3?|db)", re.I)
"""formats made to be added to while they stay open: a pause in one of them ends a save, in another
file it may be the saver's own"""
COMMIT = re.compile(
    r"\.metadata|commit_success.*|trainer_state\.json|_CHECKPOINT_METADATA|"
    r"[._]*(?:success|completed?|done|commit(?:ted)?)|.*\.(?:complete|done)",
    re.I,
)
POINTER = re.compile(
    r"(?:latest|last)(?:_checkpoint\w*|_step|_iter)?(?:\.txt|\.json)?|checkpoint", re.I
)
LITTLE = re.compile(r".*\.(?:json|txt|ya?ml|index|meta)|[^.]+", re.I)
ONE_OF = re.compile(r"(.*?)(\d+)-of-(\d+)(.*)")
RANK_0 = re.compile(r"__0+_\d+\.distcp")


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


def below(top: AnyStr, paths: Iterable[AnyStr]) -> list[AnyStr]:
    """Those that are `top` or lie in it."""
    inside = join(top, top[:0])
    return [path for path in paths if path == top or path.startswith(inside)]


def within(top: AnyStr, paths: Iterable[AnyStr]) -> list[AnyStr]:
    """Those that lie in `top`, which may be a file's name by now."""
    return [path for path in below(top, paths) if path != top]


def is_noise(path: str) -> bool:
    """Logs, curves, locks: written beside checkpoints all the time."""
    *dirs, name = path.split("/")
    return bool(_NOISE.fullmatch(name)) or any(map(_NOISE_DIR.fullmatch, dirs))


class Numbers(NamedTuple):
    """What a name counts."""

    template: str
    """the name with a slash for each number: no name has one of its own"""
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
            if _STEP.fullmatch(kind)
        }

    @property
    def counts(self) -> list[tuple[str, int]]:
        """All but ranks, with their kinds."""
        pairs = zip(self.kinds, self.values, strict=True)
        return [(kind, value) for kind, value in pairs if kind != "rank"]


@lru_cache(maxsize=4096)
def numbers_of(name: str) -> Numbers:
    """
    >>> numbers_of("ckpt_100.rank07.pt")
    Numbers(template='ckpt_/.rank/.pt', values=(100, 7), kinds=('save', 'rank'), cut='ckpt_100')
    """
    values: list[int] = []
    kinds: list[str] = []
    kind = cut = ""
    for found in re.finditer(r"([A-Za-z]*)([-_=. ]*)(\d+)([A-Za-z]*)", name):
        kind = _kind_of(found, kind)
        if kind == "rank" and not cut:
            cut = name[: found.start(1)].rstrip("-_=. ")
        values.append(int(found[3]))
        kinds.append(kind)
    return Numbers(
        re.sub(r"\d+", "/", name), tuple(values), tuple(kinds), cut if "rank" in kinds else name
    )


def _kind_of(found: re.Match[str], before: str) -> str:
    """What a number counts, by the word and the number before it and by what follows it."""
    name, kind = found.string, _kind_after(found[1].lower())
    if kind == "rank" or name.endswith(".distcp") or name.startswith("-of-", found.end(3)):
        return "rank"
    if found[4] and not _STEP.fullmatch(found[4]):
        return ""  # 7b, fp16
    if found.start(3) == 0:
        return "bare"
    return "rank" if not found[1] and before == "rank" else kind


def _kind_after(word: str) -> str:
    if _RANK.fullmatch(word):
        return "rank"
    if _SAVE.fullmatch(word):
        return "save"
    step = _STEP_AT_END.search(word)
    return step[0] if step else ""


def _is_unit(name: str) -> bool:
    """A directory that is a checkpoint by its name."""
    return any(kind == "save" or _STEP.fullmatch(kind) for kind in numbers_of(name).kinds)


def _is_plain_number(name: str) -> bool:
    """A number, and no date."""
    return name.isdigit() and not re.fullmatch(r"(19|20)\d{6}", name)


def unit_of(path: str) -> tuple[str, str, bool]:
    """The directory that is, or holds, the checkpoint a file belongs to: as it is, as it will be
    called, and whether it is one by itself.

    >>> (
    ...     unit_of("run/tmp-checkpoint-500/global_step500/zero_rank_0.pt"),
    ...     unit_of("run/best/model/a.pt"),
    ... )
    (('run/tmp-checkpoint-500', 'run/checkpoint-500', True), ('run/best', 'run/best', False))
    """
    *dirs, name = path.split("/")
    finals = [final(each) or each for each in dirs]
    at = _place_of_unit(dirs, finals)
    if at is None or _counts_another(name, finals[at]):
        while len(dirs) > 1 and _PART_DIR.fullmatch(dirs[-1]):
            dirs.pop()
        there = "/".join(dirs)
        return there, there, False
    named = [*finals[:at], numbers_of(finals[at]).cut or finals[at]]
    return "/".join(dirs[: at + 1]), "/".join(named), True


def _place_of_unit(dirs: list[str], finals: list[str]) -> int | None:
    """The outermost directory that counts what the innermost one counts; else the first that is a
    number or has a temporary name."""
    units = [at for at, each in enumerate(finals) if _is_unit(each)]
    if units:
        last = set(numbers_of(finals[units[-1]]).values)
        return next(at for at in units if last & set(numbers_of(finals[at]).values))
    bare = [at for at, each in enumerate(finals) if _is_plain_number(each)]
    temporary = [at for at, each in enumerate(dirs) if final(each) != each]
    return next(iter(bare + temporary), None)


def _counts_another(name: str, directory: str) -> bool:
    """The file counts something else than the directory that it lies in, which holds many saves
    then."""
    inner = numbers_of(final(name))
    steps = set(inner.steps.values())
    if not steps and _is_plain_number(directory) and "save" in inner.kinds:
        steps = set(inner.values)
    return bool(steps) and steps.isdisjoint(numbers_of(directory).values)


def _is_near(value: int, others: Iterable[int]) -> bool:
    """To one of them: steps are counted in round numbers, ranks are not."""
    return any(value == other or value % 10 or other % 10 for other in others)


def same_step(new: str, others: Iterable[str], *, overlap: bool) -> bool:
    """Whether a name may belong to the checkpoint of the others, which lie in the same
    directory."""
    name = numbers_of(final(new))
    known = list(map(numbers_of, map(final, others)))
    for other in known:
        shared = name.steps.keys() & other.steps.keys()
        if shared:
            return all(name.steps[word] == other.steps[word] for word in shared)
    alike = [other.counts for other in known if other.template == name.template]
    if alike:
        return _may_go_on(name.counts, alike, overlap=overlap)
    theirs = [value for other in known for _, value in other.counts]
    return not theirs or not name.counts or _is_near(name.counts[0][1], theirs)


def _may_go_on(
    mine: list[tuple[str, int]], alike: list[list[tuple[str, int]]], *, overlap: bool
) -> bool:
    """Whether what a name counts goes on with what names of the same template count."""
    varied = {place for place, seen in enumerate(zip(*alike, strict=True)) if len(set(seen)) > 1}
    nearest = min(alike, key=lambda theirs: sum(map(operator.ne, theirs, mine)))
    differ = [place for place, each in enumerate(mine) if nearest[place] != each]
    if varied.issuperset(differ):
        return True  # a number that varied while they overlapped, or none
    if varied or len(differ) > 1:
        return False
    kind, value = mine[differ[0]]
    alone = len(mine) == 1
    is_another = kind in ("save", "bare") and not overlap if alone else kind == "save"
    return not is_another and _is_near(value, (theirs[differ[0]][1] for theirs in alike))


def another_rank(new: str, others: Iterable[str]) -> bool:
    """Whether the names differ in a rank and in nothing else: however late, that is the same
    checkpoint."""
    name = numbers_of(final(new))
    return any(
        other.template == name.template
        and other.counts == name.counts
        and other.values != name.values
        for other in map(numbers_of, map(final, others))
    )
