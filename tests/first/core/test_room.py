"""Room for checkpoints: against holding them one by one, and the published case of a full
target."""

from __future__ import annotations

import math

import pytest

from ckptcost.first.core.room import (
    Limit,
    SavesHeld,
    evenly_bytes,
    fits,
    most_saves_kept,
    needed_bytes,
)


@pytest.mark.parametrize("every", [1, 2, 3, 7])
@pytest.mark.parametrize("kept", [1, 2, 5])
@pytest.mark.parametrize("writing", [1, 2])
def test_the_worst_is_the_worst_of_all_places_in_the_chain(every, kept, writing):
    saves = SavesHeld(100.0, 7.0, every, kept, writing, 1.0)

    def there(newest: int) -> float:
        oldest = newest - kept - writing + 1
        begin = oldest - oldest % every  # its chain begins at a full save
        return sum(100.0 if i % every == 0 else 7.0 for i in range(begin, newest + 1))

    worst = max(there(newest) for newest in range(50, 50 + 3 * every))
    assert worst <= needed_bytes(saves, kept) <= worst + 100.0
    if every == 1:
        assert needed_bytes(saves, kept) == worst


@pytest.mark.parametrize("room", [0.0, 19.9, 20.0, 29.9, 30.0, 1e6])
def test_the_most_that_fits_fits_and_one_more_does_not(room):
    saves, limits = SavesHeld(10.0, 10.0, 1, 3, 1, 4.0), [Limit("space", room, 1000.0)]
    most = most_saves_kept(saves, limits)
    assert most is not None
    assert most == 0 or fits(saves, limits[0], most)
    assert not fits(saves, limits[0], most + 1)


def test_files_limit_too_and_what_is_not_known_does_not():
    saves = SavesHeld(10.0, 10.0, 1, 3, 1, 100.0)
    assert most_saves_kept(saves, [Limit("inodes", math.nan, 500.0)]) == 4
    assert most_saves_kept(saves, [Limit("nothing", math.nan, math.nan)]) is None
    assert not fits(saves, Limit("space", 1e9, math.nan), math.inf)


def test_a_full_target_ends_a_save_whatever_is_free():
    # 459 GB free in all, one target full: a save of 53 GB failed at 27 GB    [awsome-distributed-ai
    # #1225]
    saves = SavesHeld(53e9, 53e9, 1, 1, 1, 0.0)
    free = [229.5e9, 229.5e9, 0.0]
    assert fits(saves, Limit("free space", sum(free), math.nan), 1)
    assert not fits(saves, Limit("the fullest target", evenly_bytes(free), math.nan), 1)
