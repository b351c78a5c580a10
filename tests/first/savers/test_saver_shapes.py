"""The files of a checkpoint: sizes that sum exactly, for any number of ranks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptcost.first.errors import InputError
from ckptcost.first.savers.base import FileShape, SaverSettings, Shape
from ckptcost.first.savers.shapes import METADATA_BYTES, shape_of


@given(
    st.integers(10**4, 10**15),
    st.integers(1, 64),
    st.none() | st.integers(1, 5),
    st.floats(0.0, 1.0),
    st.floats(1.0, 20.0),
)
def test_it_sums_exactly(size, ranks, each, fraction, straggler):
    shape = shape_of(
        size, ranks, files=each and each * ranks, weights_fraction=fraction, straggler=straggler
    )
    assert shape.size_bytes == size
    assert shape.ranks == ranks
    assert all(file.size_bytes >= 0 and "/" not in file.name for file in shape.files)
    assert len({file.name for file in shape.files}) == len(shape.files)
    assert {file.rank for file in shape.files} == set(range(ranks))


def test_a_model_of_a_billion_parameters_on_four_ranks():
    shape = shape_of(14 * 10**9, 4)
    by_kind = {
        kind: sum(file.size_bytes for file in shape.files if file.kind == kind)
        for kind in ("weights", "optimizer", "other")
    }
    assert len(shape.files) == 9
    assert by_kind["other"] == METADATA_BYTES
    assert by_kind["weights"] == pytest.approx(2e9, rel=1e-4)
    assert by_kind["optimizer"] == pytest.approx(12e9, rel=1e-4)
    assert [file.kind for file in shape.of_rank(0)] == ["other", "weights", "optimizer"]
    sizes = [sum(file.size_bytes for file in shape.of_rank(rank)) for rank in range(4)]
    assert max(sizes) - min(sizes) <= METADATA_BYTES + 2


def test_a_straggler_has_so_many_times_the_bytes_of_the_others():
    shape = shape_of(10**9, 5, straggler=3.0)
    sizes = [sum(file.size_bytes for file in shape.of_rank(rank)) for rank in range(5)]
    assert sizes[4] == pytest.approx(3 * sizes[1], rel=1e-6)
    assert shape_of(10**9, 1, straggler=3.0) == shape_of(10**9, 1)


@pytest.mark.parametrize(("files", "weights"), [(2, 1), (8, 1), (14, 2), (1, 1)])
def test_so_many_files_of_a_rank(files, weights):
    shape = shape_of(10**9, 2, files=2 * files)
    kinds = [file.kind for file in shape.of_rank(1)]
    assert kinds == ["weights"] * weights + ["optimizer"] * (files - weights)


def test_one_kind_alone():
    assert {file.kind for file in shape_of(10**8, 2, weights_fraction=1.0).files} == {
        "weights",
        "other",
    }
    assert {file.kind for file in shape_of(10**8, 2, weights_fraction=0.0).files} == {
        "optimizer",
        "other",
    }


@pytest.mark.parametrize(
    "wrong",
    [
        {"ranks": 0},
        {"ranks": 5000},
        {"weights_fraction": -0.1},
        {"weights_fraction": float("nan")},
        {"straggler": 0.5},
        {"straggler": float("inf")},
        {"files": 3, "ranks": 2},
        {"files": 0},
        {"files": 10**6},
        {"size_bytes": 1},
        {"size_bytes": 0},
        {"size_bytes": -5},
    ],
)
def test_what_makes_no_checkpoint(wrong):
    with pytest.raises(InputError):
        shape_of(**{"size_bytes": 10**6} | wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"block_bytes": 0},
        {"block_bytes": 5000},
        {"block_bytes": -4096},
        {"block_bytes": 2 << 30},
        {"depth": 0},
        {"depth": 5000},
        {"threads": -1},
    ],
)
def test_settings_that_cannot_be(wrong):
    with pytest.raises(InputError):
        SaverSettings(**wrong)


def test_ranks_and_sizes_of_any_shape():
    shape = Shape((FileShape("a", 3, 2, "other"), FileShape("b", 4, 0, "weights")))
    assert (shape.size_bytes, shape.ranks) == (7, 3)
    assert shape.of_rank(1) == ()
    assert (Shape(()).size_bytes, Shape(()).ranks) == (0, 0)
