"""From layers to a scenario: who wins, who is forgotten, what follows from what, and what was
assumed."""

from __future__ import annotations

import re
from math import isnan

import pytest

from ckptcost.first.catalog.figures import BASES, Figure
from ckptcost.first.catalog.keys import CADENCES, KEYS, SECTIONS, WORDS
from ckptcost.first.catalog.store import Catalog
from ckptcost.first.catalog.template import template
from ckptcost.first.core.bill import states_w
from ckptcost.first.core.outcome import evaluate, plan_of
from ckptcost.first.core.timing import nodes_of
from ckptcost.first.errors import InputError
from ckptcost.first.jobs.model import model
from ckptcost.first.layers import layers_of, merge_layers, read_layer, set_layer
from ckptcost.first.scenario import ranges_of, resolve

SCENARIOS = [
    "bloom-176b",
    "gpt4-scale-2tb",
    "llama31-405b-16k",
    "micron-100k",
    "opt-175b",
    "small-8b",
]
JOB = {
    "checkpoint": {"size": "2 TB"},
    "tier": {"id": "nas-hdd"},
    "cluster": {"id": "h100-1024"},
    "policy": {"saves": 100},
    "run": {"work": "200 h"},
}


@pytest.fixture(scope="module")
def catalog():
    return Catalog()


def scenario(catalog, *documents):
    return resolve(catalog, [read_layer(raw, f"layer {n}") for n, raw in enumerate(documents)])


def inputs(resolved):
    return {i.path: i for i in resolved.inputs}


# ---- precedence


def test_a_later_layer_wins(catalog):
    found = scenario(catalog, JOB, {"cluster": {"gpus": 2048}}, {"cluster": {"gpus": 512}})
    assert found.scenario.cluster.gpus == 512
    assert inputs(found)["cluster.gpus"].origin == "layer 2"
    assert found.scenario.checkpoint.size_bytes == 2e12


def test_order_is_default_catalogue_preset_file_flag(catalog, tmp_path):
    assert scenario(catalog, JOB).scenario.cluster.gpus_per_node == 8
    base = tmp_path / "base.toml"
    base.write_text(
        'extends = "gpt4-scale-2tb"\n[cluster]\ngpus = 10\n[failures]\ndetect = "1 s"\n[site]\npue'
        " = 1.5\n"
    )
    job = tmp_path / "job.toml"
    job.write_text('extends = "./base.toml"\n[cluster]\ngpus = 20\n[site]\npue = 1.6\n')
    found = resolve(
        catalog,
        [
            *layers_of(catalog, str(job)),
            read_layer({"tier": {"id": "nas-hdd"}}, "t"),
            set_layer(["cluster.gpus=30"]),
        ],
    )
    said = inputs(found)
    assert (said["cluster.gpus"].figure.value, said["cluster.gpus"].origin) == (
        30.0,
        said["cluster.gpus"].origin,
    )
    assert (said["site.pue"].figure.value, said["site.pue"].origin) == (1.6, "file job.toml")
    assert (said["failures.detect"].figure.value, said["failures.detect"].origin) == (
        1.0,
        "file base.toml",
    )
    assert said["run.work"].origin == "scenario gpt4-scale-2tb"
    assert said["failures.init"].origin == "models/defaults.toml"
    assert said["tier.write"].origin == "tier nas-hdd"


def test_the_catalogue_beats_the_defaults(catalog):
    """gpus_per_node is 8 by default and 72 on an NVL72 rack."""
    assert (
        scenario(catalog, {**JOB, "cluster": {"id": "gb200-nvl72"}}).scenario.cluster.gpus_per_node
        == catalog.get("cluster", "gb200-nvl72").figures["gpus_per_node"].value
        != 8
    )


def test_the_clusters_own_word_beats_its_accelerator(catalog):
    found = scenario(catalog, {**JOB, "cluster": {"id": "a100-384"}})
    for key, figure in catalog.get("cluster", "a100-384").figures.items():
        assert inputs(found)[f"cluster.{key}"].figure.value == figure.value


def test_an_accelerator_named_later_replaces_the_clusters(catalog):
    one, two = (
        scenario(catalog, JOB),
        scenario(catalog, JOB, {"cluster": {"accelerator": "a100-sxm-80"}}),
    )
    assert two.scenario.cluster.gpus == one.scenario.cluster.gpus
    assert two.scenario.cluster.gpu_train_w == pytest.approx(400 * 0.9)
    assert two.names["accelerator"] != one.names["accelerator"]


def test_a_grid_named_later_replaces_the_sites(catalog):
    found = scenario(catalog, JOB, {"site": {"grid": "SWE"}})
    assert (
        found.scenario.site.kgco2e_per_j
        == catalog.get("grid", "SWE").figures["grid_location"].value
    )
    assert found.scenario.site.pue == scenario(catalog, JOB).scenario.site.pue


def test_naming_another_entry_forgets_what_was_said_of_the_last(catalog):
    """10 GB/s was said of one tier; of another it would be a lie."""
    found = scenario(
        catalog,
        {**JOB, "tier": {"id": "nas-hdd", "write": "10 GB/s", "setup": "9 s"}},
        {"tier": {"id": "generic-pfs"}},
    )
    assert found.scenario.tier.write_bytes_per_s == 2e9
    assert found.scenario.tier.setup_s == 0.0


def test_naming_the_same_entry_again_forgets_nothing(catalog):
    found = scenario(
        catalog, {**JOB, "tier": {"id": "nas-hdd", "write": "10 GB/s"}}, {"tier": {"id": "nas-hdd"}}
    )
    assert found.scenario.tier.write_bytes_per_s == 1e10


def test_the_same_layer_may_name_and_change(catalog):
    found = scenario(
        catalog,
        {**JOB, "tier": {"id": "nas-hdd"}},
        {"tier": {"id": "generic-pfs", "write": "7 GB/s"}},
    )
    assert found.scenario.tier.write_bytes_per_s == 7e9


def test_forgetting_keeps_the_defaults_and_the_other_sections(catalog):
    found = scenario(
        catalog,
        {**JOB, "tier": {"id": "nas-hdd", "write": "10 GB/s"}},
        {"tier": {"id": "generic-pfs"}},
    )
    assert inputs(found)["tier.setup"].origin == "models/defaults.toml"
    assert found.scenario.checkpoint.size_bytes == 2e12


@pytest.mark.parametrize(
    ("section", "first", "second"),
    [
        ("cluster", {"id": "h100-1024", "gpus": 77}, {"id": "h100-64"}),
        ("site", {"id": "usa", "pue": 1.9}, {"id": "germany"}),
        ("checkpoint", {"model": "llama31-8b", "size": "9 TB"}, {"model": "llama31-70b"}),
    ],
)
def test_the_same_for_other_sections(catalog, section, first, second):
    found = scenario(catalog, {**JOB, section: first}, {section: second})
    fresh = scenario(catalog, {**JOB, section: second})
    assert getattr(found.scenario, section) == getattr(fresh.scenario, section)


def test_a_size_said_before_a_model_is_named_is_forgotten_too(catalog):
    """The preset gives a size; a later layer names a model: the size was said of another one."""
    found = scenario(catalog, JOB, {"checkpoint": {"model": "llama31-8b"}})
    assert found.scenario.checkpoint.size_bytes != 2e12, "2 TB is not what an 8B model saves"


def test_an_entry_named_over_figures_given_by_hand_replaces_them(catalog):
    by_hand = {**JOB, "tier": {"write": "10 GB/s", "name": "by hand"}}
    found = scenario(catalog, by_hand, {"tier": {"id": "generic-pfs"}})
    assert found.scenario.tier.write_bytes_per_s == 2e9, (
        "the rate of the tier made by hand stuck to another tier"
    )


# ---- cadence


@pytest.mark.parametrize(
    "late",
    [
        {"interval": "1 h"},
        {"steps": 10, "step": "30 s"},
        {"per_day": 24},
        {"optimal": "time"},
        {"saves": 7},
    ],
)
@pytest.mark.parametrize(
    "early",
    [
        {"interval": "2 h"},
        {"steps": 20, "step": "30 s"},
        {"per_day": 48},
        {"optimal": "energy"},
        {"saves": 100},
    ],
)
def test_one_cadence_replaces_another_across_layers(catalog, early, late):
    found = scenario(catalog, {**JOB, "policy": early}, {"policy": late})
    alone = scenario(catalog, {**JOB, "policy": {"step": "30 s", **late}})
    wanted = next(key for key in late if key != "step")
    assert found.words["policy.cadence"] == wanted
    assert [i.path for i in found.inputs if i.path.split(".")[1] in CADENCES] == (
        [] if wanted == "optimal" else [f"policy.{wanted}"]
    )
    assert found.scenario.policy.every == alone.scenario.policy.every
    assert found.scenario.policy.objective == alone.scenario.policy.objective


@pytest.mark.parametrize(
    "both",
    [
        {"interval": "1 h", "saves": 3},
        {"optimal": "time", "per_day": 3},
        {"steps": 3, "saves": 3, "step": "1 s"},
    ],
)
def test_two_cadences_in_one_layer_contradict(catalog, both):
    with pytest.raises(InputError, match="contradict"):
        scenario(catalog, {**JOB, "policy": both})


def test_equal_cadences_give_equal_intervals(catalog):
    def interval(**policy):
        return (
            model(catalog, [read_layer({**JOB, "policy": policy}, "x")]).cases[0].outcome.interval_s
        )

    assert (
        interval(interval="2 h")
        == interval(saves=100)
        == interval(per_day=12)
        == interval(steps=240, step="30 s")
        == 7200.0
    )


# ---- what follows from what


def test_power_held_up_is_rating_times_fractions(catalog):
    said = inputs(scenario(catalog, JOB))
    tdp = catalog.get("accelerator", "h100-sxm").figures["gpu_tdp"]
    train, stall = said["cluster.gpu_train"].figure, said["cluster.gpu_stall"].figure
    assert train.value == pytest.approx(tdp.value * 0.90)
    assert (train.low, train.high) == (
        pytest.approx(tdp.value * 0.76),
        pytest.approx(tdp.value * 1.0),
    )
    assert stall.value == pytest.approx(tdp.value * 0.90 * 0.28)
    assert (stall.low, stall.high) == (
        pytest.approx(tdp.value * 0.90 * 0.15),
        pytest.approx(tdp.value * 0.90 * 0.5),
    )
    assert train.basis == stall.basis == "derived"
    for source in ("nvidia-gpu-exporter-captures", *tdp.source.split("; ")):
        assert source in train.source
    assert "arxiv-2604-04745" in stall.source
    assert "train_fraction" in train.note
    assert "stall_fraction" in stall.note
    for gone in ("gpu_tdp", "train_fraction", "stall_fraction"):
        assert f"cluster.{gone}" not in said


def test_a_fraction_set_by_hand_reaches_what_follows(catalog):
    found = scenario(
        catalog,
        JOB,
        {
            "cluster": {
                "train_fraction": 1.0,
                "stall_fraction": {"value": 0.5, "low": 0.4, "high": 0.6},
            }
        },
    )
    assert found.scenario.cluster.gpu_train_w == pytest.approx(700)
    assert ranges_of(found)["cluster.gpu_stall_w"] == (
        pytest.approx(280),
        pytest.approx(350),
        pytest.approx(420),
    )
    said = inputs(found)
    assert (
        "by hand" in said["cluster.gpu_train"].origin
        or "layer 1" in said["cluster.gpu_train"].origin
    ), "the user set it: it must not pass for the accelerator's own"


def test_a_power_given_is_not_derived(catalog):
    found = scenario(catalog, JOB, {"cluster": {"gpu_train": "500 W", "gpu_stall": "100 W"}})
    assert (found.scenario.cluster.gpu_train_w, found.scenario.cluster.gpu_stall_w) == (
        500.0,
        100.0,
    )
    assert inputs(found)["cluster.gpu_stall"].figure.basis == "user"


def test_hosts_that_wait_draw_a_fraction_of_what_they_draw_in_training(catalog):
    found = scenario(catalog, JOB)
    said = inputs(found)
    fraction = said["cluster.host_stall_fraction"].figure
    assert (fraction.low, fraction.value, fraction.high) == (0.5, 0.8, 1.0)
    assert fraction.note
    *_, host_train_w, host_stall_w, host_idle_w = states_w(found.scenario)
    assert host_stall_w == host_idle_w == pytest.approx(0.8 * host_train_w)
    given = scenario(catalog, {**JOB, "cluster": {**JOB["cluster"], "host_stall": "1 kW"}})
    assert states_w(given.scenario)[4] == 1000.0 * nodes_of(given.scenario.cluster)
    assert "cluster.host_stall_fraction" not in inputs(given)


def test_a_rate_that_is_given_is_taken_as_it_is(catalog):
    """Neither the default rate, nor its law of size, nor its spread."""
    for key, text in (("rate", "5 /1000 node-days"), ("gpu_rate", "5 /1000 GPU-days")):
        found = scenario(catalog, {**JOB, "failures": {key: text}})
        said = inputs(found)
        assert {p for p in said if "rate" in p and p.startswith("failures")} == {
            f"failures.{key}",
            "failures.shared_rate",
        }
        assert found.scenario.failures.size_exponent == 1.0
        assert found.scenario.failures.rate_factor == 1.0
    shared = scenario(catalog, {**JOB, "failures": {"shared_rate": "1 /day"}}).scenario.failures
    assert shared.failures_per_node_s > 0
    assert shared.size_exponent == 0.75


def test_mtbf_replaces_rates_and_a_later_layer_decides(catalog):
    mtbf = {**JOB, "failures": {"mtbf": "15 min"}}
    found = scenario(catalog, mtbf)
    assert {p for p in inputs(found) if "rate" in p and p.startswith("failures")} == set()
    assert plan_of(found.scenario).failures_per_s == pytest.approx(1 / 900)
    later = set_layer(["failures.rate=5 /1000 node-days"])
    over = resolve(catalog, [read_layer(mtbf, "job"), later]).scenario
    assert isnan(over.failures.mtbf_s)
    assert over.failures.failures_per_node_s > 0
    with pytest.raises(InputError, match="mtbf and rate contradict each other"):
        scenario(catalog, {**JOB, "failures": {"mtbf": "15 min", "rate": "5 /1000 node-days"}})


def test_reading_is_assumed_as_fast_as_writing_only_where_nothing_is_known(catalog):
    said = inputs(scenario(catalog, JOB))
    assert (said["tier.read"].figure.value, said["tier.read"].figure.basis) == (2e8, "assumed")
    both = inputs(scenario(catalog, {**JOB, "tier": {"id": "object-store"}}))
    assert both["tier.read"].figure.value == pytest.approx(41.1e9)
    ram = scenario(catalog, {**JOB, "tier": {"id": "node-ram"}})
    assert ram.scenario.tier.read_bytes_per_s == float("inf")


def test_a_local_tier_does_not_borrow_a_shared_systems_energy(catalog):
    shared, local = (
        scenario(catalog, {**JOB, "tier": {"id": name}})
        for name in ("ddn-exascaler-20", "node-ram")
    )
    assert shared.scenario.tier.write_j_per_byte == pytest.approx(139e-9)
    assert local.scenario.tier.write_j_per_byte == pytest.approx(3e-9)
    assert inputs(local)["tier.write_energy"].figure.high == pytest.approx(10e-9)
    assert not {"tier.network_energy", "tier.storage_price"} & inputs(local).keys()


def test_a_tier_without_a_price_gets_the_range_of_those_that_publish_one(catalog):
    """So that none is the cheapest for want of a price; what a tier says of itself stays."""
    published = []
    for name in catalog.ids("tier"):
        entity = catalog.get("tier", name)
        if price := entity.figures.get("storage_price"):
            published.append(price.value)
    bare = inputs(scenario(catalog, JOB))["tier.storage_price"].figure
    assert bare.low <= min(published) <= bare.value <= max(published) <= bare.high
    assert bare.basis == "derived"
    own = scenario(catalog, {**JOB, "tier": {"id": "gcs-standard", "write": "30 GB/s"}})
    assert inputs(own)["tier.storage_price"].figure.low is None
    bought = {"id": "nas-hdd", "standing_price": "12 USD/h", "capacity": "1 PB"}
    assert "tier.storage_price" not in inputs(scenario(catalog, {**JOB, "tier": bought}))


def test_every_line_of_a_shared_tier_has_a_figure(catalog):
    for name in ("nas-hdd", "generic-pfs", "flash-shared", "ddn-exascaler"):
        run = evaluate(scenario(catalog, {**JOB, "tier": {"id": name}}).scenario).run
        assert run.unknown("energy_j") == ()
        assert run.unknown("cost_usd") == ()


def test_energies_published_by_the_catalogue_lie_in_the_default_ranges(catalog):
    """Shared systems and drives, each in the range of its kind."""
    seen = 0
    for name in catalog.ids("tier"):
        entity = catalog.get("tier", name)
        figure = entity.figures.get("write_energy")
        if figure is None:
            continue
        local = entity.words.get("boundary") in ("drive", "node")
        low, high = (0.5e-9, 10e-9) if local else (38e-9, 309e-9)
        assert low <= figure.value <= high * (1 + 1e-6), name
        seen += 1
    assert seen >= 5


def test_the_second_tier_borrows_nothing_that_was_said_of_the_first(catalog):
    two = {
        **JOB,
        "tier": {"id": "ddn-exascaler", "write_energy": "7 J/GB", "setup": "9 s"},
        "second_tier": {"id": "object-store"},
    }
    found = scenario(catalog, two)
    assert found.scenario.tier.write_j_per_byte == pytest.approx(7e-9)
    assert found.scenario.second_tier.write_j_per_byte == pytest.approx(139e-9)
    assert inputs(found)["second_tier.setup"].origin == "models/defaults.toml"
    assert found.scenario.second_tier.setup_s == 5.0


def test_copies_are_uncertain_together(catalog):
    from ckptcost.first.scenario import ties_of

    found = scenario(catalog, {**JOB, "tier": {"id": "ddn-exascaler"}})
    assert ties_of(found) == {
        "tier.read_bytes_per_s": "tier.write_bytes_per_s",
    }


def test_a_slow_filer_does_not_borrow_the_energy_of_fast_systems(catalog):
    """139 J/GB at 0.2 GB/s would be 28 W for a shelf of drives: a wide range, with its reason,
    instead."""
    slow = inputs(scenario(catalog, JOB))["tier.write_energy"].figure
    assert (slow.low, slow.value, slow.high) == pytest.approx((38e-9, 1.17e-6, 36e-6))
    assert slow.basis == "assumed"
    assert "at rest" in slow.note
    provisioned = {**JOB, "tier": {"id": "aws-fsx-p2-125", "capacity": "10 TiB"}}
    assert inputs(scenario(catalog, provisioned))["tier.write_energy"].figure == slow
    provisioned["tier"]["capacity"] = "1000 TiB"
    assert scenario(catalog, provisioned).scenario.tier.write_j_per_byte == pytest.approx(139e-9)


def test_own_energy_beats_the_default(catalog):
    for name in catalog.ids("tier"):
        own = catalog.get("tier", name).figures.get("write_energy")
        if own and {"write", "node_write", "gpu_write"} & catalog.get("tier", name).figures.keys():
            assert (
                scenario(catalog, {**JOB, "tier": {"id": name}}).scenario.tier.write_j_per_byte
                == own.value
            )


def test_unknown_is_said_with_the_key_that_would_supply_it(catalog):
    found = scenario(catalog, {**JOB, "site": {"id": "industry-average"}})
    assert found.scenario.site.kgco2e_per_j != found.scenario.site.kgco2e_per_j
    for path, reason in found.unknown.items():
        section, key = path.split(".")
        assert key in KEYS[section]
        assert len(reason) > 10
    assert "site.grid_location" in found.unknown, (
        "no grid is known: the emissions will be missing, and a warning must say why"
    )


# ---- pedigree


@pytest.mark.parametrize("name", SCENARIOS)
def test_everything_assumed_is_listed(catalog, name):
    """The core sees no number that is not an input with its basis and origin."""
    layers = layers_of(catalog, name)
    for case in model(catalog, layers).cases:
        said = inputs(case.resolved)
        listed = {i.field for i in case.resolved.inputs}
        for section in ("checkpoint", "tier", "cluster", "failures", "site"):
            part = getattr(case.scenario, section)
            fresh = {
                f: type(part).__dataclass_fields__[f].default
                for f in type(part).__dataclass_fields__
            }
            for field, default in fresh.items():
                value = getattr(part, field)
                if isinstance(value, float) and value == value and value != default:
                    assert f"{section}.{field}" in listed, (
                        f"{section}.{field} = {value} comes from nowhere"
                    )
        for path, i in said.items():
            assert i.figure.basis in BASES, path
            assert i.origin, path


@pytest.mark.parametrize("name", SCENARIOS)
def test_sources_resolve_for_every_tier(catalog, name):
    """Shipped scenario x every tier that has a rate: each input's sources are in the
    bibliography."""
    layers = layers_of(catalog, name)
    tried = 0
    for tier in catalog.ids("tier"):
        if not {"write", "node_write", "gpu_write"} & catalog.get("tier", tier).figures.keys():
            continue
        tried += 1
        found = resolve(catalog, [*layers, read_layer({"tier": {"id": tier}}, "--tier", "flag")])
        for i in found.inputs:
            names = [part.strip() for part in i.figure.source.split(";") if part.strip()]
            assert all(source in catalog.sources for source in names), (tier, i.path, names)
            if i.figure.basis not in ("user", "assumed"):
                assert names, (tier, i.path)
    assert tried > 40


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize(
    ("said", "missing"),
    [({}, "write"), ({"write_per_capacity": "125 MB/s/TiB"}, "capacity")],
)
def test_a_tier_without_a_rate_says_what_is_missing(catalog, name, said, missing):
    layers = [
        layer._replace(sections={k: v for k, v in layer.sections.items() if k != "tier"})
        for layer in layers_of(catalog, name)
    ]
    ours = read_layer({"tier": {"name": "ours", **said}}, "--tier", "flag")
    with pytest.raises(InputError, match=rf"tier\.{missing}: the write rate of ours is not known"):
        resolve(catalog, [*layers, ours])


@pytest.mark.parametrize("name", SCENARIOS)
def test_ranges_contain_their_value(catalog, name):
    for case in model(catalog, layers_of(catalog, name)).cases:
        for path, (low, value, high) in ranges_of(case.resolved).items():
            assert low <= value <= high, path


# ---- extends


def test_relative_files_are_relative_to_the_file(catalog, tmp_path, monkeypatch):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "base.toml").write_text(
        'extends = "small-8b"\nname = "base"\n[cluster]\ngpus = 8\n'
    )
    (tmp_path / "a" / "mid.toml").write_text(
        'extends = "../base.toml"\nname = "mid"\n[site]\npue = 1.3\n'
    )
    (tmp_path / "a" / "b" / "top.toml").write_text('extends = "../mid.toml"\n[run]\nwork = "1 h"\n')
    monkeypatch.chdir(tmp_path / "a")
    found = resolve(catalog, layers_of(catalog, "b/top.toml"))
    assert (found.scenario.cluster.gpus, found.scenario.site.pue, found.scenario.work_s) == (
        8,
        1.3,
        3600,
    )
    assert found.name == "mid", "the nearest name wins"
    assert [layer.label for layer in layers_of(catalog, "b/top.toml")] == [
        "scenario small-8b",
        "file base.toml",
        "file mid.toml",
        "file top.toml",
    ]


def test_a_file_may_extend_a_preset_and_a_preset_no_file(catalog, tmp_path):
    file = tmp_path / "x.toml"
    file.write_text('extends = "small-8b"\n')
    assert (
        resolve(catalog, layers_of(catalog, str(file))).scenario
        == resolve(catalog, layers_of(catalog, "small-8b")).scenario
    )


def test_circles(catalog, tmp_path):
    (tmp_path / "a.toml").write_text('extends = "./b.toml"\n')
    (tmp_path / "b.toml").write_text('extends = "./a.toml"\n')
    with pytest.raises(InputError, match=re.escape("a.toml -> b.toml -> a.toml. break the circle")):
        layers_of(catalog, str(tmp_path / "a.toml"))


def test_a_circle_through_a_link(catalog, tmp_path):
    (tmp_path / "a.toml").write_text('extends = "./b.toml"\n')
    (tmp_path / "b.toml").symlink_to(tmp_path / "a.toml")
    with pytest.raises(InputError, match="extends itself"):
        layers_of(catalog, str(tmp_path / "a.toml"))


def test_extends_without_toml_or_slash_is_a_preset(catalog, tmp_path):
    (tmp_path / "base").write_text("")
    (tmp_path / "x.toml").write_text('extends = "base"\n')
    with pytest.raises(InputError, match="no scenario named 'base'"):
        layers_of(catalog, str(tmp_path / "x.toml"))


# ---- merged, set


def test_merging_does_not_change_its_layers(catalog):
    layers = [
        read_layer(JOB, "one"),
        read_layer({"tier": {"id": "generic-pfs"}}, "two"),
    ]
    before = [repr(layer) for layer in layers]
    merge_layers(layers)
    resolve(catalog, layers)
    assert [repr(layer) for layer in layers] == before


def test_set_reads_numbers_words_and_truths(catalog):
    layer = set_layer(
        [
            "cluster.gpus=4096",
            "tier.write= 30 GB/s ",
            "policy.mode=async",
            "policy.pipelined=FALSE",
            "cluster.price_includes_electricity=true",
            "policy.keep_last=all",
            "tier.name=a=b",
        ],
    )
    assert layer.sections["cluster"]["gpus"] == Figure(4096.0, basis="user", text="4096")
    assert layer.sections["tier"]["write"].value == 3e10
    assert layer.sections["tier"]["name"] == "a=b"
    assert layer.sections["policy"]["pipelined"] is False
    assert layer.sections["policy"]["keep_last"].value == float("inf")
    assert layer.sections["cluster"]["price_includes_electricity"] is True


def test_the_last_of_two_settings_wins(catalog):
    assert set_layer(["cluster.gpus=1", "cluster.gpus=2"]).sections["cluster"]["gpus"].value == 2.0


# ---- the template


def test_the_template_lists_every_key_and_models(catalog, tmp_path):
    file = tmp_path / "scenario.toml"
    file.write_text(template())
    found = model(catalog, layers_of(catalog, str(file)))
    assert found.cases[0].outcome.goodput > 0
    text = template()
    parts = dict(re.findall(r"(?ms)^(?:# )?\[(\w+)\](.*?)(?=^(?:# )?\[\w+\]|\Z)", text))
    assert list(parts) == list(SECTIONS)
    for section in SECTIONS:
        for key in (*KEYS[section], *WORDS[section]):
            assert re.search(rf"(?m)^(# )?{key} = ", parts[section]), f"{section}.{key}"


def test_every_line_of_the_template_may_be_uncommented(catalog):
    """Each example parses with its own key: nobody copies a line that is refused."""
    import tomllib

    section = ""
    for line in template().splitlines():
        if head := re.match(r"(?:# )?\[(\w+)\]", line):
            section = head[1]
        elif section and (found := re.match(r"(?:# )?(\w+ = .*)", line)):
            raw = tomllib.loads(found[1])
            read_layer({section: raw}, "template")


def test_names_of_the_template_exist(catalog):
    for name in re.findall(
        r'(?m)^(?:# )?(?:model|id|accelerator|grid|extends) = "([^"]+)"', template()
    ):
        assert any(
            name in catalog.ids(kind)
            for kind in ("checkpoint", "tier", "cluster", "site", "accelerator", "grid", "scenario")
        ), name


# ---- measured times instead of rates


TIMED = {"save_time": "758 s", "load_time": "174 s", "timed_size": "2 TB"}


def test_durations_need_no_rate(catalog):
    found = scenario(catalog, JOB | {"tier": {"name": "ours"}}, {"tier": TIMED}).scenario
    plan = plan_of(found)
    assert float(plan.saved.stall_s) == pytest.approx(758.0)
    assert float(plan.recovery.load_s) == pytest.approx(174.0)
    alone = {key: TIMED[key] for key in ("save_time", "timed_size")}
    found = scenario(catalog, JOB | {"tier": {"name": "ours"}}, {"tier": alone})
    assert float(plan_of(found.scenario).recovery.load_s) == pytest.approx(758.0)
    assert inputs(found)["tier.load_time"].figure.basis == "assumed"


@pytest.mark.parametrize("key", ["save_time", "load_time"])
def test_a_duration_without_its_size_is_refused(catalog, key):
    with pytest.raises(InputError) as refused:
        scenario(catalog, JOB, {"tier": {key: "758 s"}})
    assert refused.value.key == f"tier.{key}"
    assert "tier.timed_size" in str(refused.value.remedy)


def test_a_rate_of_a_later_layer_takes_the_place_of_a_duration(catalog):
    first = JOB | {"tier": {"name": "ours"} | TIMED}
    written = scenario(catalog, first, {"tier": {"write": "10 GB/s"}}).scenario.tier
    assert written.save_time_s != written.save_time_s
    assert written.load_time_s == 174.0
    read = scenario(catalog, first, {"tier": {"read": "10 GB/s"}}).scenario.tier
    assert (read.save_time_s, read.load_time_s) == (758.0, pytest.approx(float("nan"), nan_ok=True))
    other = scenario(catalog, first, {"tier": {"id": "nas-hdd"}}).scenario.tier
    assert other.save_time_s != other.save_time_s
