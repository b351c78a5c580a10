"""A line of words that is too long loses the folders of its paths, nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptcost.first.present.fit import fit

LONG = "/tmp/deep/er/and/deeper/still/models/tiers/simulated-storage.toml"


def test_the_reason_stays():
    assert (
        fit(f"{LONG}: could not be written: not a folder", 60)
        == "…/simulated-storage.toml: could not be written: not a folder"
    )


def test_the_longest_path_goes_first_and_the_other_only_where_needed():
    text = "from /data/runs/5a110000 to " + LONG
    assert fit(text, 80) == "from /data/runs/5a110000 to …/simulated-storage.toml"
    assert fit(text, 45) == "from …/5a110000 to …/simulated-storage.toml"


@pytest.mark.parametrize(
    "text", ["3.2 GB/s and 9 GB/s at 1/2 of the load", "a/b, c/d, x/y and and/or", "~/a", "/tmp/ab"]
)
def test_what_is_no_path_or_short_stays(text):
    assert fit(text, 3) == text


def test_it_is_cut_no_further_than_folders():
    assert fit(f"writing {LONG}", 5) == "writing …/simulated-storage.toml"


@given(st.text(alphabet="ab /.~:…", max_size=60), st.integers(0, 70))
def test_what_fits_is_left_and_nothing_grows(text, width):
    short = fit(text, width)
    assert len(short) <= len(text)
    if len(text) <= width:
        assert short == text
    assert fit(short, width) == short
