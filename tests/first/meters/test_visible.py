"""Which cards an environment leaves, against the rules as CUDA's guide and PyTorch state them,
written again in plain steps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptcost.first.meters.visible import Card, Slice, cards_named, choose_cards

CARDS = [
    Card(0, "GPU-aaaa1111", "H100", (Slice("MIG-0001", 7, 0), Slice("MIG-0002", 8, 0))),
    Card(1, "GPU-aabb2222", "H100"),
    Card(2, "GPU-cccc3333", "H100", (Slice("MIG-1001", 7, 0),)),
]


def cards_of(value, cards=CARDS, **more):
    return [
        card.number for card in choose_cards({"CUDA_VISIBLE_DEVICES": value, **more}, cards).cards
    ]


@pytest.mark.parametrize(
    ("value", "cards"),
    [
        ("0", [0]),
        ("0,1", [0, 1]),
        ("2,0", [2, 0]),
        (" 1 , 2", [1, 2]),
        ("+1", [1]),
        ("0,2,-1,1", [0, 2]),
        ("0,9,1", [0]),
        ("9", []),
        ("-1", []),
        ("", []),
        (" ", []),
        ("x", []),
        ("1gpu2,2", [1, 2]),
        ("0,0", []),
        ("1,0,1", []),
        ("0,,1", [0]),
        ("GPU-aaaa1111", [0]),
        ("GPU-c", [2]),
        ("GPU-cccc3333,GPU-aaaa", [2, 0]),
        ("GPU-aa", []),
        ("GPU-zz,GPU-c", []),
        ("GPU-c,0", [2]),
        ("0,GPU-c", [0]),
        ("GPU-c,GPU-cccc", []),
        ("MIG-0001", [0]),
        ("MIG-0001,MIG-0002", [0]),
        ("MIG-0001,MIG-1001", [0, 2]),
        ("MIG-00", []),
        ("MIG-1", [2]),
        ("MIG-9", []),
        ("MIG-GPU-aaaa1111/7/0", [0]),
        ("MIG-GPU-aaaa/8/0", [0]),
        ("MIG-GPU-aaaa1111/9/0", []),
        ("MIG-GPU-aa/7/0", []),
        ("MIG-GPU-aaaa1111/7/0,MIG-GPU-aaaa1111/8/0", [0]),
        ("MIG-0001,0", [0]),
        ("MIG-0001,MIG-0001", []),
    ],
)
def test_cuda_visible_devices(value, cards):
    assert cards_of(value) == cards


def plainly(value, count):
    """CUDA's rule for indices, step by step."""
    seen = []
    for entry in value.split(","):
        digits = ""
        for letter in entry.strip().removeprefix("+"):
            if letter not in "0123456789":
                break
            digits += letter
        if not digits or int(digits) >= count:
            return seen
        if int(digits) in seen:
            return []
        seen.append(int(digits))
    return seen


@given(
    st.lists(
        st.one_of(st.integers(-2, 6).map(str), st.sampled_from(["", "x", "1a", " 2", "+3"])),
        max_size=6,
    ).map(",".join)
)
def test_indices_are_read_as_cuda_reads_them(value):
    cards = [Card(k, f"GPU-{k}") for k in range(5)]
    assert cards_of(value, cards) == plainly(value, 5)


@given(st.text(alphabet="GPUMI-/,0123x ", max_size=30))
def test_nothing_breaks_it(value):
    choice = choose_cards({"CUDA_VISIBLE_DEVICES": value}, CARDS)
    assert set(choice.cards) <= set(CARDS)
    assert len(set(choice.cards)) == len(choice.cards)


def test_named_instances_are_kept_with_their_card():
    choice = choose_cards({"CUDA_VISIBLE_DEVICES": "MIG-0001,MIG-1001,MIG-0002"}, CARDS)
    assert choice.slices == {0: ("MIG-0001", "MIG-0002"), 2: ("MIG-1001",)}
    assert choose_cards({"CUDA_VISIBLE_DEVICES": "0"}, CARDS).slices == {}


def test_an_index_counts_the_cards_that_can_be_opened():
    assert cards_of("0", CARDS[1:]) == [1]


@pytest.mark.parametrize(
    ("value", "said"),
    [("0,9", "'9' names no card"), ("0,0", "twice"), ("-1", ""), ("", ""), ("0", "")],
)
def test_what_is_wrong_is_said(value, said):
    remarks = choose_cards({"CUDA_VISIBLE_DEVICES": value}, CARDS).remarks
    assert [said in remark.reason and bool(remark.remedy) for remark in remarks] == (
        [True] if said else []
    )


@pytest.mark.parametrize(
    ("names", "value", "order", "said"),
    [
        (["A", "B"], "0", None, True),
        (["A", "B"], "0", "FASTEST_FIRST", True),
        (["A", "B"], "0", "PCI_BUS_ID", False),
        (["A", "A"], "0", None, False),
        (["A", "B"], "GPU-0", None, False),
        (["A", "B"], None, None, False),
    ],
)
def test_an_index_among_unlike_cards_is_not_trusted(names, value, order, said):
    environ = {
        name: text
        for name, text in (("CUDA_VISIBLE_DEVICES", value), ("CUDA_DEVICE_ORDER", order))
        if text is not None
    }
    choice = choose_cards(environ, [Card(k, f"GPU-{k}", name) for k, name in enumerate(names)])
    assert any("fastest first" in remark.reason for remark in choice.remarks) is said


@pytest.mark.parametrize(
    ("granted", "cards"),
    [
        (None, [0, 1, 2]),
        ("all", [0, 1, 2]),
        ("void", [0, 1, 2]),
        ("none", [0, 1, 2]),
        ("", [0, 1, 2]),
        ("1", [1]),
        ("2,0", [2, 0]),
        ("GPU-c", [2]),
        ("5,6,7", [0, 1, 2]),  # the host's numbers: this container sees its three only
        ("9", [0, 1, 2]),  # it sees more than it was granted, but not that one
    ],
)
def test_what_a_container_was_granted(granted, cards):
    environ = {} if granted is None else {"NVIDIA_VISIBLE_DEVICES": granted}
    choice = choose_cards(environ, CARDS)
    assert [card.number for card in choice.cards] == cards
    assert len(choice.remarks) == (granted == "9")


def test_the_jobs_own_choice_comes_before_the_containers():
    environ = {"NVIDIA_VISIBLE_DEVICES": "1", "CUDA_VISIBLE_DEVICES": "2"}
    assert [card.number for card in choose_cards(environ, CARDS).cards] == [2]


def test_everything_and_nothing():
    assert choose_cards({"CUDA_VISIBLE_DEVICES": ""}, CARDS, everything=True).cards == tuple(CARDS)
    assert choose_cards({}, []).cards == ()
    assert choose_cards({"CUDA_VISIBLE_DEVICES": "0"}, []).cards == ()


def test_the_variable_that_decided_is_named():
    assert choose_cards({"CUDA_VISIBLE_DEVICES": "1"}, CARDS).by == "CUDA_VISIBLE_DEVICES=1"
    assert cards_named("HIP_VISIBLE_DEVICES", "0", CARDS).by == "HIP_VISIBLE_DEVICES=0"
    assert choose_cards({}, CARDS).by == ""
