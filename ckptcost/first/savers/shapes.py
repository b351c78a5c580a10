"""A checkpoint of a given size with the files that a sharded training job writes."""

from __future__ import annotations

from itertools import pairwise

from ckptcost.first.errors import InputError
from ckptcost.first.savers.base import FileShape, Kind, Shape

WEIGHTS_FRACTION = 2 / 14
"""mixed precision with Adam: 2 bytes of a parameter are weights, 12 are the optimizer's: master
weights and two moments in float32"""
METADATA_BYTES = 64 << 10
"""of rank 0: what lies where, the step, the random states"""


def shape_of(
    size_bytes: int,
    ranks: int = 1,
    *,
    files: int | None = None,
    weights_fraction: float = WEIGHTS_FRACTION,
    straggler: float = 1.0,
) -> Shape:
    """Each rank writes a shard of the weights and one of the optimizer, rank 0 a small file
    besides; the sizes sum to `size_bytes` exactly.

    `files` asks for so many shards in all, with as many of each rank, the weights first. The last
    rank has `straggler` times the bytes of any other: in real jobs the embedding or the expert that
    fits nowhere.
    """
    each = _files_of_a_rank(ranks, files, weights_fraction, straggler)
    metadata = min(METADATA_BYTES, size_bytes // 100)
    if size_bytes - metadata < ranks * each:
        raise InputError(
            f"{size_bytes} bytes in {ranks * each} files",
            remedy="give a larger size or fewer files",
        )
    found = [FileShape("metadata", metadata, 0, "other")] if metadata else []
    by_rank = _split(size_bytes - metadata, [1.0] * (ranks - 1) + [straggler if ranks > 1 else 1.0])
    weights_files = _weights_files(each, weights_fraction)
    for rank, of_rank in enumerate(by_rank):
        weights = (
            round(of_rank * weights_fraction)
            if 0 < weights_files < each
            else of_rank * (weights_files > 0)
        )
        for kind, total, count in (
            ("weights", weights, weights_files),
            ("optimizer", of_rank - weights, each - weights_files),
        ):
            found += _shards(kind, total, count, rank)  # type: ignore[arg-type]
    return Shape(tuple(found))


def _files_of_a_rank(
    ranks: int, files: int | None, weights_fraction: float, straggler: float
) -> int:
    """How many, or why there is no such checkpoint."""
    if not 1 <= ranks <= 4096:
        raise InputError(f"{ranks} ranks", remedy="give 1 to 4096")
    if not 0.0 <= weights_fraction <= 1.0:
        raise InputError(f"a weights fraction of {weights_fraction}", remedy="give 0 to 1")
    if not 1.0 <= straggler <= 1000.0:
        raise InputError(f"a straggler of {straggler} times the bytes", remedy="give 1 to 1000")
    if files is None:
        return 1 if weights_fraction in (0.0, 1.0) else 2
    if files < ranks or files % ranks:
        raise InputError(f"{files} files of {ranks} ranks", remedy=f"give a multiple of {ranks}")
    if files // ranks > 4096:
        raise InputError(f"{files // ranks} files of each rank", remedy="give at most 4096")
    return files // ranks


def _weights_files(each: int, fraction: float) -> int:
    """Of a rank's files, those with weights: at least one of each kind where there is room for
    both."""
    if fraction in (0.0, 1.0) or each == 1:
        return each * (fraction > 0.0)
    return min(max(round(each * fraction), 1), each - 1)


def _shards(kind: Kind, total: int, count: int, rank: int) -> list[FileShape]:
    if not count:
        return []
    sizes = _split(total, [1.0] * count)
    names = (
        [f"{kind}-{rank:05d}"]
        if count == 1
        else [f"{kind}-{rank:05d}-{number:05d}" for number in range(count)]
    )
    return [FileShape(name, size, rank, kind) for name, size in zip(names, sizes, strict=True)]


def _split(total: int, weights: list[float]) -> list[int]:
    """Whole numbers in proportion, with this sum.

    >>> _split(10, [1.0, 1.0, 1.0]), _split(7, [1.0, 2.5])
    ([3, 4, 3], [2, 5])
    """
    whole, edges, so_far = sum(weights), [0], 0.0
    for weight in weights:
        so_far += weight
        edges.append(min(round(total * (so_far / whole)), total))
    edges[-1] = total
    return [b - a for a, b in pairwise(edges)]
