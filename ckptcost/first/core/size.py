"""Bytes in a checkpoint."""

from __future__ import annotations

from ckptcost.first.core.domain import Checkpoint, Number
from ckptcost.first.core.numeric import or_otherwise


def state_bytes(params: Number, bytes_per_param: Number, extra_bytes: Number = 0.0) -> Number:
    """Size of a checkpoint that holds `bytes_per_param` of state for every parameter, active or
    not.

    >>> state_bytes(params=1e12, bytes_per_param=14.0)
    14000000000000.0
    """
    return params * bytes_per_param + extra_bytes


def transformer_params(
    vocab: Number, hidden: Number, layers: Number, ffn: Number, heads: Number, kv_heads: Number
) -> Number:
    """Parameters of a decoder with gated feed-forward, grouped keys and untied embeddings, as DLIO
    and MLPerf Storage count them.

    P = 2Vh + L(2h + h(h+2d) + h^2 + 3hf) + h, d = (h//heads)*kv_heads
    [mlperf-storage-v3]

    >>> transformer_params(vocab=128256, hidden=4096, layers=32, ffn=14336, heads=32, kv_heads=8)
    8030261248
    """
    kv = (hidden // heads) * kv_heads
    return (
        2 * vocab * hidden
        + layers * (2 * hidden + hidden * (hidden + 2 * kv) + hidden**2 + 3 * hidden * ffn)
        + hidden
    )


def mlperf_bytes(
    params: Number, hidden: Number, layers: Number, ranks: Number, tensor_parallel: Number = 1
) -> Number:
    """Bytes of an MLPerf Storage checkpoint: 2 B/param of weights, and three fp32 optimizer states
    padded per rank.

    2*(P + (TP-1)*(2hL + h)) + ranks * 3*(P//ranks + 5h)*4: every tensor-parallel rank writes the
    norms         [mlperf-storage-v3]

    >>> mlperf_bytes(params=8030261248, hidden=4096, layers=32, ranks=8) / 2**30
    104.70452117919922
    """
    norms = (tensor_parallel - 1) * (2 * hidden * layers + hidden)
    return 2 * (params + norms) + ranks * 3 * (params // ranks + 5 * hidden) * 4


def full_bytes(checkpoint: Checkpoint) -> Number:
    """Size of one full checkpoint: as stated, else from its parameters."""
    counted = state_bytes(checkpoint.params, checkpoint.bytes_per_param, checkpoint.extra_bytes)
    return or_otherwise(checkpoint.size_bytes, counted)


def mean_save_bytes(
    size_bytes: Number, full_every: Number = 1.0, delta_fraction: Number = 1.0
) -> Number:
    """Mean bytes of a save when every k-th is full and the others are deltas: B*(1+(k-1)*phi)/k.

    >>> mean_save_bytes(size_bytes=100.0, full_every=10.0, delta_fraction=0.1)
    19.0
    """
    return size_bytes * (1.0 + (full_every - 1.0) * delta_fraction) / full_every


def mean_load_bytes(
    size_bytes: Number, full_every: Number = 1.0, delta_fraction: Number = 1.0
) -> Number:
    """Mean bytes read back: the last full save and, on average, half of the deltas since.

    >>> mean_load_bytes(size_bytes=100.0, full_every=11.0, delta_fraction=0.1)
    150.0
    """
    return size_bytes * (1.0 + (full_every - 1.0) / 2.0 * delta_fraction)
