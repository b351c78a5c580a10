"""Which joules may be added: machines by hand, rules on random heaps of channels, and ranges by
corners."""

from __future__ import annotations

import itertools
from dataclasses import replace
from math import inf, isnan, nan
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptcost.first.core.channels import Channel
from ckptcost.first.core.reconcile import (
    NONE_SPENT,
    Energy,
    chosen,
    difference,
    energy_of_amount,
    reconcile,
    times,
    total,
    unknown,
)


def joules(domain: str, **more: object) -> Channel:
    return replace(Channel(domain, "energy_j", "a counter"), **more)


def watts(domain: str, **more: object) -> Channel:
    return replace(Channel(domain, "power_w", "a sensor"), **more)


def added(*channels: Channel, silent: tuple[int, ...] = (), boundary: str = "node") -> list[str]:
    picked = chosen(channels, [place not in silent for place in range(len(channels))], boundary)
    return [channels[place].domain for place in picked.parts]


def reasons(*channels: Channel, silent: tuple[int, ...] = ()) -> dict[int, tuple[str, int | None]]:
    picked = chosen(channels, [place not in silent for place in range(len(channels))])
    return {out.channel: (out.why, out.by) for out in picked.left_out}


def test_a_server():
    machine = [
        joules("gpu:0"),
        joules("gpu:1"),
        watts("gpu:0.memory", role="detail"),
        joules("cpu:0"),
        joules("cpu:1"),
        joules("dram:0"),
        joules("dram:1"),
        joules("core:0", role="detail"),
        joules("cpu:0.mmio", role="detail"),
        joules("psys:0", role="whole"),
        watts("node", role="whole"),
        watts("drive:nvme0n1", boundary="drive"),
        watts("node.supply0", role="detail"),
    ]
    assert added(*machine) == [
        "gpu:0",
        "gpu:1",
        "cpu:0",
        "cpu:1",
        "dram:0",
        "dram:1",
        "drive:nvme0n1",
    ]
    picked = chosen(machine, [True] * len(machine))
    assert [machine[place].domain for place in picked.wholes] == ["psys:0", "node"]
    assert sorted([*picked.parts, *(out.channel for out in picked.left_out)]) == list(
        range(len(machine))
    )


def test_roles_given_wrong_are_caught_by_what_the_domains_are():
    assert added(joules("core:0"), joules("uncore:0"), joules("cpu:0")) == ["cpu:0"]
    assert added(joules("core:0"), joules("uncore:0")) == ["core:0", "uncore:0"]
    assert added(joules("psys:0"), joules("cpu:0"), joules("dram:0")) == ["psys:0"]
    assert added(joules("gpu:0"), watts("gpu:0.memory")) == ["gpu:0"]
    assert added(joules("gpu:0"), watts("process:17"), watts("cgroup:/job"), watts("self")) == [
        "gpu:0"
    ]
    assert added(watts("node")) == []


def test_dies_of_a_package_add_up():
    assert added(joules("cpu:0.die0"), joules("cpu:0.die1"), joules("dram:0.die0")) == [
        "cpu:0.die0",
        "cpu:0.die1",
        "dram:0.die0",
    ]


def test_a_superchip_module_contains_its_processor_memory_and_gpu():
    module = joules("module:0", covers=("cpu", "dram"))
    machine = [
        watts("cpu:0", covers=("dram",)),
        joules("dram:0"),
        module,
        watts("gpu:0"),
        joules("core:0"),
        watts("drive:nvme0n1"),
    ]
    assert added(*machine) == ["module:0", "drive:nvme0n1"]
    assert reasons(*machine)[0] == ("COVERED", 2)
    # where the module is a whole beside the GPU, the parts stay parts
    machine[2] = replace(module, role="whole", covers=("cpu", "dram", "gpu"))
    assert added(*machine) == ["cpu:0", "gpu:0", "drive:nvme0n1"]


def test_a_module_that_does_not_answer_covers_nothing():
    assert added(
        joules("module:0", covers=("cpu", "dram")), joules("cpu:0"), joules("dram:0"), silent=(0,)
    ) == ["cpu:0", "dram:0"]


def test_a_silent_module_leaves_its_own_processor_to_itself():
    modules = [joules(f"module:{n}", covers=("cpu", "dram")) for n in (0, 1)]
    machine = [
        *modules,
        *(joules(f"{kind}:{n}") for kind in ("cpu", "dram", "gpu") for n in (0, 1)),
    ]
    assert added(*machine) == ["module:0", "module:1"]
    # GPUs are not told apart by module, and one counted twice is worse than one left out
    assert added(*machine, silent=(1,)) == ["module:0", "cpu:1", "dram:1"]
    assert added(*machine, watts("module:1", covers=("cpu", "dram")), silent=(1,)) == [
        "module:0",
        "module:1",
    ]


def test_cores_lie_in_what_covers_their_package():
    assert added(joules("module:0", covers=("cpu",)), joules("core:0")) == ["module:0"]


def test_two_that_cover_each_other_leave_one():
    assert added(joules("cpu:0", covers=("dram",)), joules("dram:0", covers=("cpu",))) in (
        ["cpu:0"],
        ["dram:0"],
    )


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (joules("gpu:0"), watts("gpu:0", averaging_s=0.1)),
        (watts("gpu:0", averaging_s=0.025), watts("gpu:0", averaging_s=1.0)),
        (watts("gpu:0", averaging_s=0.1), watts("gpu:0")),
        (watts("gpu:0"), watts("gpu:0", averaging_s=1.0)),
        (joules("cpu:0"), joules("cpu:0", source="intel-rapl-mmio:0")),
        (watts("gpu:0"), joules("gpu:0", basis="modelled")),
        (watts("drive:nvme0n1"), watts("disk:nvme0n1", basis="modelled")),
    ],
)
def test_one_channel_a_domain_the_better_one(better, worse):
    for order in ([better, worse], [worse, better]):
        picked = chosen(order, [True, True])
        assert [order[place] for place in picked.parts] == [better]
        assert [(order[out.channel], out.why, order[out.by]) for out in picked.left_out] == [
            (worse, "SAME_DOMAIN", better)
        ]
    assert added(better, worse, silent=(0,)) == [worse.domain]


def test_slices_of_one_gpu_are_one_gpu():
    slices = [
        watts("gpu:0.mig0", device="MIG-1"),
        watts("gpu:0.mig1", device="MIG-2"),
        watts("gpu:10"),
    ]
    assert added(*slices) == ["gpu:0.mig0", "gpu:10"]
    assert reasons(*slices) == {1: ("SAME_GPU", 0)}
    assert added(*slices, watts("gpu:0", device="GPU-a", averaging_s=1.0)) == ["gpu:10", "gpu:0"]
    assert added(watts("gpu:0", device="GPU-a"), watts("gpu:3", device="GPU-a")) == ["gpu:0"]
    assert added(watts("gpu:0", device="NVIDIA H100"), watts("gpu:1", device="NVIDIA H100")) == [
        "gpu:0",
        "gpu:1",
    ]


def test_a_partition_is_in_its_disk():
    assert added(
        watts("disk:sda"), watts("disk:sda1"), watts("disk:nvme0n1"), watts("disk:nvme0n1p2")
    ) == ["disk:sda", "disk:nvme0n1"]
    assert added(watts("disk:sda1"), watts("disk:sdb")) == ["disk:sda1", "disk:sdb"]
    assert added(watts("drive:nvme0n1"), watts("disk:nvme0n1p2")) == ["drive:nvme0n1"]
    assert added(
        watts("disk:nvme0n1"), watts("disk:nvme0n2"), watts("disk:dm-0"), watts("disk:dm-01")
    ) == ["disk:nvme0n1", "disk:nvme0n2", "disk:dm-0", "disk:dm-01"]


def test_boundaries_are_not_mixed():
    machine = [
        joules("gpu:0"),
        watts("drive:nvme0n1", boundary="drive"),
        watts("drive:array", boundary="storage-system"),
    ]
    assert added(*machine) == ["gpu:0", "drive:nvme0n1"]
    assert reasons(*machine) == {2: ("OTHER_BOUNDARY", None)}
    assert added(*machine, boundary="storage-system") == ["drive:nvme0n1", "drive:array"]


def test_only_joules_and_watts_are_looked_at():
    picked = chosen(
        [
            Channel("disk:sda", "written_bytes", "diskstats"),
            Channel("gpu:0", "utilisation", "nvml"),
        ],
        [True, True],
    )
    assert picked == ((), (), ())


DOMAINS = [
    "gpu:0",
    "gpu:0.mig1",
    "gpu:0.memory",
    "gpu:1",
    "module:0",
    "cpu:0",
    "cpu:0.die1",
    "dram:0",
    "core:0",
    "uncore:0",
    "psys:0",
    "node",
    "drive:sda",
    "disk:sda",
    "disk:sda1",
    "process:1",
]
HEAP = st.lists(
    st.builds(
        Channel,
        st.sampled_from(DOMAINS),
        st.sampled_from(["energy_j", "power_w"]),
        st.sampled_from(["rapl", "mmio"]),
        role=st.sampled_from(["part", "part", "detail", "whole"]),
        covers=st.sampled_from([(), (), ("cpu", "dram"), ("dram",), ("gpu",)]),
        averaging_s=st.sampled_from([None, 0.1, 1.0]),
    ),
    max_size=12,
)


@given(HEAP, st.integers(0, 4095))
def test_no_heap_of_channels_adds_anything_twice(heap, answers):
    has_value = [bool(answers >> place & 1) for place in range(len(heap))]
    picked = chosen(heap, has_value)
    parts = [heap[place] for place in picked.parts]
    domains, kinds = [part.domain for part in parts], {part.kind_of_domain for part in parts}
    assert all(has_value[place] and heap[place].role == "part" for place in picked.parts)
    assert len(domains) == len(set(domains))
    for inner, outer in (
        ("core", "cpu"),
        ("uncore", "cpu"),
        ("cpu", "psys"),
        ("dram", "psys"),
        ("core", "psys"),
        ("gpu", "module"),
    ):
        assert not {inner, outer} <= kinds, (inner, outer)
    for one, two in itertools.permutations(parts, 2):
        assert two.kind_of_domain not in one.covers
    assert not {"gpu:0", "gpu:0.mig1"} <= set(domains)
    assert sum(domain in ("drive:sda", "disk:sda", "disk:sda1") for domain in domains) <= 1
    assert not kinds & {"node", "process"}
    # every channel is in or out
    assert sorted([*picked.parts, *(out.channel for out in picked.left_out)]) == list(
        range(len(heap))
    )


# ---- sums, differences and the node ---------------------------------------------------------

RANGE = st.tuples(*[st.integers(-50, 100)] * 3).map(
    lambda ends: Energy(*(float(sorted(ends)[n]) for n in (1, 0, 2)))
)


@given(RANGE, RANGE, st.integers(0, 5))
def test_ranges_hold_every_corner(a, b, factor):
    for x, y in itertools.product((a.low, a.value, a.high), (b.low, b.value, b.high)):
        assert total([a, b]).low <= x + y <= total([a, b]).high
        assert difference(a, b).low <= x - y <= difference(a, b).high
        assert times(a, factor).low <= x * factor <= times(a, factor).high
    assert total([a, b]).value == a.value + b.value
    assert difference(total([a, b]), b).value == a.value
    widths = (a.high - a.low) + (b.high - b.low)
    assert (
        total([a, b]).high - total([a, b]).low
        == difference(a, b).high - difference(a, b).low
        == widths
    )


def test_unknown_stays_unknown_and_keeps_its_reason():
    known, lost = Energy(5.0, 4.0, 6.0, flags=("GAPS",)), unknown("NO_READING", "SHORT")
    for result in (
        total([known, lost]),
        difference(known, lost),
        difference(lost, known),
        times(lost, 0.0),
    ):
        assert isnan(result.value)
        assert isnan(result.low)
        assert result.why == "NO_READING"
    assert total([known, lost]).flags == ("GAPS", "SHORT")
    assert total([]) == NONE_SPENT
    assert times(Energy(5.0, -inf, inf), 0.0)[:3] == (0.0, 0.0, 0.0)


def test_what_a_meter_says():
    assert energy_of_amount(Energy(5.0, nan, 7.0, 0.5)) == Energy(
        5.0, -inf, 7.0, 0.5, "", ("GAPS",)
    )
    assert energy_of_amount(Energy(nan, nan, nan, 0.0)).why == "NO_READING"
    assert (
        energy_of_amount(Energy(0.0, 0.0, 0.0, 0.0)).why == "NO_READING"
    )  # counted nothing because it saw nothing
    said = SimpleNamespace(
        value=5.0, low=4.0, high=6.0, coverage=0.5, short=True, reasons=("reset",)
    )
    assert energy_of_amount(said) == Energy(5.0, 4.0, 6.0, 0.5, "", ("GAPS", "SHORT", "reset"))
    said.value = nan
    assert energy_of_amount(said).why == "reset"
    assert (
        total([energy_of_amount(Energy(1.0, 1.0, 1.0, 0.5)), Energy(1.0, 1.0, 1.0, 0.9)]).coverage
        == 0.5
    )


@given(st.lists(RANGE, min_size=1, max_size=4), RANGE)
def test_parts_and_unaccounted_are_the_node(parts, node):
    seen = reconcile({f"gpu:{n}": part for n, part in enumerate(parts)}, node)
    assert seen.parts.value + seen.unaccounted.value == node.value
    assert seen.unaccounted.low == node.low - seen.parts.high
    assert ("PARTS_EXCEED_NODE" in seen.flags) == (seen.parts.low > node.high)
    if node.value > 0:
        assert seen.share.value == seen.parts.value / node.value
        for x, y in itertools.product((seen.parts.low, seen.parts.high), (node.low, node.high)):
            if y > 0:
                assert seen.share.low - 1e-12 <= x / y <= seen.share.high + 1e-12
    else:
        assert isnan(seen.share.value)


def test_without_a_node_meter_nothing_is_unaccounted_that_anybody_knows_of():
    seen = reconcile({"gpu:0": Energy(5.0, 4.0, 6.0)}, None)
    assert (seen.parts.value, seen.known_j) == (5.0, 5.0)
    assert (seen.unaccounted.why, seen.share.why, seen.node.why) == ("NO_NODE_METER",) * 3
    assert seen.flags == ("NO_NODE_METER",)


def test_a_missing_part_is_not_zero():
    seen = reconcile(
        {"gpu:0": Energy(5.0, 4.0, 6.0), "gpu:1": unknown("NO_READING")}, Energy(20.0, 19.0, 21.0)
    )
    assert (seen.known_j, seen.missing, seen.flags) == (5.0, ("gpu:1",), ("PART_MISSING",))
    assert (seen.parts.why, seen.unaccounted.why, seen.share.why) == ("NO_READING",) * 3
    nothing = reconcile({}, Energy(20.0, 19.0, 21.0))
    assert isnan(nothing.known_j)
    assert (nothing.parts.why, nothing.unaccounted.why) == ("NO_PARTS", "NO_PARTS")


def test_more_than_the_node_is_said():
    assert reconcile({"gpu:0": Energy(30.0, 29.0, 31.0)}, Energy(20.0, 19.0, 21.0)).flags == (
        "PARTS_EXCEED_NODE",
    )
    assert reconcile(
        {"gpu:0": Energy(21.0, 19.5, 22.0)}, Energy(20.0, 19.0, 21.0), at_plug=True
    ).flags == ("PSU_LOSS_INCLUDED", "NOT_DISTINGUISHABLE")


def test_parts_that_are_just_the_node():
    same = Energy(20.0, 20.0, 20.0)
    assert reconcile({"gpu:0": same}, same).flags == ("NOT_DISTINGUISHABLE",)


def test_parts_and_node_of_different_times():
    whole, half = Energy(20.0, 19.0, 21.0), Energy(5.0, 4.0, 6.0, 0.5)
    assert reconcile({"gpu:0": half}, whole).flags == ("COVERAGE_DIFFERS",)
    assert reconcile({"gpu:0": half._replace(coverage=0.995)}, whole).flags == ()


def test_drive_joules_are_told_apart():
    seen = reconcile(
        {
            "gpu:0": Energy(600.0, 600.0, 600.0),
            "drive:nvme0n1": Energy(12.0, 11.0, 13.0),
            "cpu:0": Energy(200.0, 200.0, 200.0),
        },
        Energy(1000.0, 1000.0, 1000.0),
        {"drive:nvme0n1": "drive"},
    )
    assert [(boundary, energy.value) for boundary, energy in seen.by_boundary] == [
        ("node", 800.0),
        ("drive", 12.0),
    ]
    assert seen.parts.value == 812.0
