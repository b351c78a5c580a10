"""What is written: nothing can compress it or find it twice, and nothing that is wrong with it
stays unseen."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from ckptcost.first.errors import OutputError
from ckptcost.first.savers.content import CHUNK_BYTES, Content

PAGE = 4096


def bytes_of(content, name="weights-00000", offset=0, size=2 * CHUNK_BYTES):
    out = np.empty(size, np.uint8)
    content.fill(out, name, offset)
    return out


def test_nothing_compresses_it():
    found = bytes_of(Content(1, 0)).tobytes()
    assert len(zlib.compress(found, 6)) > len(found)
    assert np.bincount(np.frombuffer(found, np.uint8), minlength=256).max() < 1.1 * len(found) / 256


def test_no_two_pages_are_alike_in_any_file_save_or_seed():
    pages = set()
    total = 0
    for seed, number, name in [(1, 0, "a"), (1, 0, "b"), (1, 1, "a"), (2, 0, "a")]:
        data = bytes_of(Content(seed, number), name, size=4 * CHUNK_BYTES).tobytes()
        pages |= {data[at : at + PAGE] for at in range(0, len(data), PAGE)}
        total += len(data) // PAGE
    assert len(pages) == total


def test_the_size_of_the_blocks_makes_no_difference():
    content = Content(7, 3)
    whole = bytes_of(content)
    for block in (PAGE, 12288, CHUNK_BYTES // 2, CHUNK_BYTES + PAGE):
        for at in range(0, len(whole) - block, block):
            assert np.array_equal(bytes_of(content, offset=at, size=block), whole[at : at + block])
    assert np.array_equal(bytes_of(Content(7, 3)), whole)


def test_pages_that_stand_at_the_same_place_of_a_mebibyte_differ_by_more_than_a_few_bytes():
    found = bytes_of(Content(1, 0))
    assert (found[:PAGE] == found[CHUNK_BYTES : CHUNK_BYTES + PAGE]).mean() < 0.5


@pytest.mark.parametrize("size", [PAGE, 8 * PAGE, 8 * PAGE - 1, 8 * PAGE - 7, 9, 1])
def test_right_bytes_pass_whatever_their_number(size):
    Content(1, 0).check(bytes_of(Content(1, 0), size=8 * PAGE)[:size], "weights-00000", 0)


@pytest.mark.parametrize("at", [0, 1, PAGE - 1, PAGE, 5 * PAGE + 17, 8 * PAGE - 2])
@pytest.mark.parametrize("bit", [0, 7])
def test_any_flipped_bit_is_found_where_it_is(at, bit):
    content, offset = Content(1, 0), 3 * CHUNK_BYTES - 4 * PAGE
    found = bytes_of(content, offset=offset, size=8 * PAGE)[: 8 * PAGE - 1].copy()
    found[at] ^= 1 << bit
    with pytest.raises(
        OutputError, match=rf"^there: weights-00000: .* offset {offset + at}: .*not written$"
    ):
        content.check(found, "weights-00000", offset, where="there")


@pytest.mark.parametrize(
    ("seed", "number", "name", "offset"),
    [
        (1, 4, "a", 8 * PAGE),
        (1, 5, "b", 8 * PAGE),
        (1, 5, "a", CHUNK_BYTES + 8 * PAGE),
    ],
)
def test_a_block_of_an_old_save_of_another_file_or_place_is_found_and_told(
    seed, number, name, offset
):
    found = bytes_of(Content(1, 5), "a", size=16 * PAGE)
    found[8 * PAGE :] = bytes_of(Content(seed, number), name, offset, 8 * PAGE)
    with pytest.raises(
        OutputError, match=f"a: .*offset {8 * PAGE}: there is a block of an earlier save"
    ):
        Content(1, 5).check(found, "a", 0)


def test_swapped_pages_are_found():
    found = bytes_of(Content(1, 5), size=16 * PAGE)
    found[PAGE : 2 * PAGE], found[2 * PAGE : 3 * PAGE] = (
        found[2 * PAGE : 3 * PAGE].copy(),
        found[PAGE : 2 * PAGE].copy(),
    )
    with pytest.raises(OutputError, match=f"offset {PAGE}: there is a block of"):
        Content(1, 5).check(found, "weights-00000", 0)


def test_a_hole_is_told():
    found = bytes_of(Content(1, 5), size=16 * PAGE)
    found[4 * PAGE :] = 0
    with pytest.raises(OutputError, match=f"offset {4 * PAGE}: there are zeros"):
        Content(1, 5).check(found, "weights-00000", 0)


def test_another_seed_is_another_pool():
    found = bytes_of(Content(2, 5), size=PAGE)
    with pytest.raises(OutputError, match="not written"):
        Content(1, 5).check(found, "weights-00000", 0)
