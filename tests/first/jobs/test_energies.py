"""Which channel speaks for a domain, and what its readings come to: on meters that say what a
formula says."""

from __future__ import annotations

import math

import pytest
from told_meters import Told, at, energy, recorded, said, watts

from ckptcost.first.core import counters, gauges
from ckptcost.first.core.channels import Channel
from ckptcost.first.jobs import energies
from ckptcost.first.jobs.checkup import lacking_of
from ckptcost.first.jobs.energies import Energies, drivers_of


def energies_of(says, for_s=10.0, marks=(), **more) -> Energies:
    return Energies(recorded(Told("told", says, **more), for_s=for_s, marks=marks).run.node())


def source(seen: Energies, domain: str) -> tuple[str, str]:
    channel = seen.sources[domain].channel
    return channel.quantity, channel.source


def test_a_part_speaks_for_its_domain_whatever_lies_inside_it():
    gauge, counter = watts("gpu:0", "mean", role="detail"), energy("gpu:0", "counter")
    seen = energies_of({gauge: lambda t: 999.0, counter: at(300.0)})
    assert (seen.parts, seen.details) == (["gpu:0"], [])
    assert source(seen, "gpu:0") == ("energy_j", "counter")
    assert seen.joules("gpu:0", 2.0, 6.0).value == pytest.approx(1200.0, rel=0.005)


def test_among_what_lies_inside_a_counter_goes_before_watts():
    gauge, counter = (
        watts("core:0", "mean", role="detail"),
        energy("core:0", "counter", role="detail"),
    )
    seen = energies_of({gauge: lambda t: 999.0, counter: at(30.0), energy("cpu:0"): at(100.0)})
    assert (seen.parts, seen.details) == (["cpu:0"], ["core:0"])
    assert source(seen, "core:0") == ("energy_j", "counter")
    assert seen.joules("core:0", 2.0, 6.0).value == pytest.approx(120.0, rel=0.005)


def test_what_a_module_covers_and_what_is_metered_elsewhere_is_shown_inside():
    plug = energy("drive:nvme0", boundary="facility")
    seen = energies_of(
        {energy("module:0", covers=("cpu",)): at(500.0), energy("cpu:0"): at(100.0), plug: at(9.0)}
    )
    assert seen.parts == ["module:0"]
    assert seen.details == ["cpu:0", "drive:nvme0"]
    assert seen.joules("cpu:0", 2.0, 4.0).value == pytest.approx(200.0, rel=0.005)


def test_a_channel_that_never_answers_leaves_its_domain_to_another():
    silent = energy("gpu:0", "counter")
    seen = energies_of({silent: lambda t: math.nan, watts("gpu:0", "mean"): lambda t: 250.0})
    assert (seen.parts, seen.details) == (["gpu:0"], [])
    assert source(seen, "gpu:0") == ("power_w", "mean")


def test_what_contains_the_parts_is_named_once_and_is_no_detail():
    seen = energies_of(
        {
            watts("node", "DCMI", role="whole"): lambda t: 900.0,
            watts("node", "Redfish", role="whole"): lambda t: 901.0,
            energy("cpu:0"): at(9),
        }
    )
    assert (seen.parts, seen.wholes, seen.details) == (["cpu:0"], ["node"], [])


def test_watts_are_integrated_with_all_that_is_known_of_their_sensor():
    def wobble(t_s):
        return 300.0 + 100.0 * math.sin(7.0 * t_s)

    known = {"averaging_s": 1.0, "looks": 0.25, "resolution": 5.0}
    gauge = watts("gpu:0", **known)
    seen = energies_of({gauge: wobble})
    found, series = seen.joules("gpu:0", 3.05, 6.05), seen.series(0)
    assert found == gauges.energy(series, 3.05, 6.05, **known)
    for left_out in known:
        rest = {key: value for key, value in known.items() if key != left_out}
        assert found != gauges.energy(series, 3.05, 6.05, **rest), left_out


def test_a_counter_that_wraps_goes_on_and_one_that_falls_does_not():
    wraps, falls = energy("cpu:0", wraps_at=262_143.0), energy("cpu:1")
    seen = energies_of(
        {one: lambda t: (261_000.0 + 300.0 * t) % 262_143.0 for one in (wraps, falls)}
    )
    assert seen.joules("cpu:0", 1.0, 9.0).value == pytest.approx(2400.0, rel=0.005)
    assert seen.joules("cpu:0", 1.0, 9.0).coverage == 1.0
    assert seen.joules("cpu:1", 1.0, 9.0).coverage < 1.0


def test_the_range_has_room_for_the_smallest_step():
    fine, coarse = energy("cpu:0", resolution=1e-6), energy("cpu:1", resolution=50.0)
    seen = energies_of({fine: at(100.0), coarse: at(100.0)})
    one, two = seen.joules("cpu:0", 2.0, 6.0), seen.joules("cpu:1", 2.0, 6.0)
    assert two.high - two.low >= one.high - one.low + 50.0


@pytest.mark.parametrize(("power_w", "believed"), [(15_000.0, True), (25_000.0, False)])
def test_more_than_any_domain_takes_is_not_believed(power_w, believed):
    amount = energies_of({energy("gpu:0"): at(power_w)}).joules("gpu:0", 2.0, 6.0)
    assert (amount.coverage == 1.0) is believed
    if believed:
        assert amount.value == pytest.approx(4.0 * power_w, rel=0.005)


def test_a_jump_in_one_reading_is_a_gap():
    amount = energies_of({energy("gpu:0"): lambda t: 100.0 * t + (1e7 if t > 4.0 else 0.0)}).joules(
        "gpu:0", 2.0, 6.0
    )
    assert amount.coverage < 1.0
    assert amount.value < 400.0 + 1.0


class TestHowOftenItIsRenewed:
    """Polled every 20 ms in the first seconds: slower renewals are seen, quicker ones look like the
    polls themselves."""

    def test_what_polling_saw_goes_before_what_is_published(self):
        published, real = 0.02, 0.5
        seen = energies_of(
            {energy("gpu:0", tick_s=published): at(400.0, real)},
            marks=said("begin 5, returned 6.3, durable 8"),
        )
        assert seen.tick_s("gpu:0") == pytest.approx(real, rel=0.1)
        assert seen._renewed_s(seen.channels[0]) == seen.tick_s("gpu:0")
        assert seen.provenance("gpu:0", 5.0, 8.0).tick_s == seen.tick_s("gpu:0")

    def test_what_polling_cannot_see_is_as_published(self):
        seen = energies_of(
            {energy("cpu:0", tick_s=0.001): at(100.0, 0.001)},
            marks=said("begin 5, returned 6.3, durable 8"),
        )
        assert seen._renewed_s(seen.channels[0]) == 0.001
        amount = seen.joules("cpu:0", 5.0, 8.0)
        assert amount.low <= 300.0 <= amount.high
        assert amount.high - amount.low < 1.0, "less than what one poll's length would leave open"

    def test_where_nothing_is_published_nor_seen_nothing_is_known(self):
        seen = energies_of({energy("cpu:0"): at(100.0)})
        assert seen._renewed_s(seen.channels[0]) is None


def test_provenance_is_of_the_channel_that_speaks():
    seen = energies_of(
        {energy("gpu:0", "field 186", device="GPU-a", accuracy=0.05): at(400.0, 0.1)},
        facts={"driver": "590.48"},
    )
    known = seen.provenance("gpu:0", 2.0, 6.0)
    assert (known.domain, known.source, known.device, known.driver, known.accuracy) == (
        "gpu:0",
        "field 186",
        "GPU-a",
        "590.48",
        0.05,
    )
    assert (known.coverage, known.tick_s) == (1.0, pytest.approx(0.1, rel=0.05))


def test_drivers_by_kind_of_domain():
    cards = Told(
        "nvml",
        {energy("gpu:0"): at(1.0), energy("gpu:1"): at(1.0), energy("module:0"): at(1.0)},
        facts={"driver": "590"},
    )
    node = recorded(
        cards, Told("rapl", {energy("cpu:0"): at(1.0)}, facts={"backend": "perf"}), for_s=1.0
    ).run.node()
    assert drivers_of(node) == {"gpu": "590", "module": "590"}
    assert Energies(node).sources["cpu:0"].driver == ""


def test_readings_and_domains_of_disks():
    disk, mount = (
        Channel("disk:sda", "written_bytes", "diskstats"),
        Channel("mount:/a", "written_bytes", "mountstats"),
    )
    busy = Channel("disk:sda", "busy_s", "diskstats")
    seen = energies_of({disk: lambda t: 5e9 * t, busy: lambda t: t / 2.0, mount: lambda t: 7.0 * t})
    assert seen.domains("disk", "written_bytes") == ["disk:sda"]
    assert seen.domains("mount", "written_bytes") == ["mount:/a"]
    assert seen.domains("disk", "read_bytes") == []
    readings = seen.readings("disk:sda")
    assert set(readings) == {"written_bytes", "busy_s"}
    assert readings["busy_s"].value[-1] == pytest.approx(readings["busy_s"].t_s[-1] / 2.0)


def test_a_meter_that_never_answers_does_not_measure_its_kind():
    told = Told("told", {energy("cpu:0"): at(1.0), energy("dram:0"): lambda t_s: math.nan})
    assert lacking_of(Energies(recorded(told, for_s=2.0).run.node()), ["cpu", "dram"]) == ["dram"]


def test_what_is_worked_out_ahead_is_what_is_asked_for_then(monkeypatch):
    says = {energy("gpu:0", tick_s=0.1): at(300.0, 0.1), watts("gpu:1"): lambda t: 100.0 + t}
    spans = [(2.0, 2.4), (2.0, 6.0), (5.5, 6.0), (3.0, 3.0)]
    plain, ahead = energies_of(says), energies_of(says)
    ahead.ahead(["gpu:0", "gpu:1"], [*spans, (2.0, 2.4), (4.0, 3.0)])
    expected = {(d, *s): plain.joules(d, *s) for d in ("gpu:0", "gpu:1") for s in spans}

    def asked(*_):
        raise AssertionError("it was at hand")

    monkeypatch.setattr(counters.Counter, "energies", asked)
    for begin_s, end_s in spans[:3]:
        assert ahead.joules("gpu:0", begin_s, end_s) == expected["gpu:0", begin_s, end_s]
        assert ahead.joules("gpu:1", begin_s, end_s) == expected["gpu:1", begin_s, end_s]


def test_no_more_is_kept_than_there_is_room_for(monkeypatch):
    monkeypatch.setattr(energies, "MOST_SPANS", 3)
    seen = energies_of({energy("gpu:0", tick_s=0.1): at(300.0, 0.1)})
    first = seen.joules("gpu:0", 1.0, 2.0)
    seen.ahead(["gpu:0"], [(2.0, 3.0), (3.0, 4.0), (4.0, 5.0)])
    assert len(seen._spans) == 3
    assert seen.joules("gpu:0", 1.0, 2.0) == first
