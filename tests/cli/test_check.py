"""`ckptcost check`: a report agrees with its own inputs, or each difference is named."""

from __future__ import annotations

import json

import pytest

SCENARIOS = [
    "bloom-176b",
    "gpt4-scale-2tb",
    "llama31-405b-16k",
    "micron-100k",
    "opt-175b",
    "small-8b",
]


def written(cli, tmp_path, *words: str) -> tuple[str, dict]:
    file = tmp_path / "report.json"
    done = cli("model", *words, "-f", "json", "-o", str(file))
    assert (done.code, done.err) == (0, "")
    return str(file), json.loads(file.read_text())


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_shipped_scenario_agrees_with_itself(cli, tmp_path, name):
    file, _ = written(cli, tmp_path, "-s", name)
    done = cli("check", file)
    assert (done.code, done.out) == (0, "")
    assert "agrees" in done.err


@pytest.mark.parametrize(
    "words",
    [
        ["--against", "ddn-exascaler-40"],
        ["--tier", "nas-hdd", "--set", "policy.mode=async"],
        [
            "--tier",
            "node-ram",
            "--tier",
            "object-store",
            "--tier",
            "aws-fsx-p2-125",
            "--set",
            "tier.capacity=100 TB",
        ],
        [
            "-s",
            "small-8b",
            "--tier",
            "local-nvme",
            "--tier",
            "nas-hdd",
            "--saves",
            "10",
            "--saves",
            "20",
        ],
        ["-s", "small-8b", "--set", "policy.optimal=energy"],
        ["--tier", "nas-hdd", "--interval", "1 h"],
        ["--tier", "nas-hdd", "--set", "policy.steps=100", "--set", "policy.step=12 s"],
        ["--tier", "nas-hdd", "--set", "policy.keep_last=all"],
        ["--tier", "nas-hdd", "--set", "cluster.price_includes_electricity=false"],
        ["--tier", "nas-hdd", "--set", "site.id=industry-average"],
        ["--tier", "ddn-exascaler", "--tier", "micron-gen5-60tb", "--tier", "superpod-best"],
        ["-s", "llama31-405b-16k", "--tier", "nas-hdd", "--tier", "flash-shared"],
        ["-s", "micron-100k", "--tier", "local-nvme", "--tier", "mlperf-everpure-exa-30"],
        [
            "--tier",
            "nas-hdd",
            "--set",
            "checkpoint.full_every=10",
            "--set",
            "checkpoint.delta_fraction=0.1",
            "--set",
            "checkpoint.compression_ratio=1.3",
            "--set",
            "checkpoint.compress_rate=50 GB/s",
        ],
    ],
    ids=lambda words: " ".join(words)[:60],
)
def test_anything_a_flag_can_make_agrees_with_itself(cli, tmp_path, words):
    file, _ = written(cli, tmp_path, *words)
    done = cli("check", file)
    assert (done.code, done.out) == (0, "")


def test_it_needs_no_catalogue(cli, tmp_path, monkeypatch):
    """The report carries every input: it can be checked where the catalogue has moved on."""
    file, _ = written(cli, tmp_path)
    (tmp_path / "home" / "models").mkdir(parents=True)
    (tmp_path / "home" / "data").mkdir()
    monkeypatch.setenv("CKPTCOST_HOME", str(tmp_path / "home"))
    assert cli("check", file).code == 0


def set_at(document, path: str, change) -> None:
    *parents, last = path.split(".")
    at = document
    for name in parents:
        at = at[int(name)] if isinstance(at, list) else at[name]
    last = int(last) if isinstance(at, list) else last
    at[last] = change(at[last])


def numbers(value, path=""):
    """Every path of the document that holds a number."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from numbers(part, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for n, part in enumerate(value):
            yield from numbers(part, f"{path}.{n}")
    elif isinstance(value, float | int) and not isinstance(value, bool):
        yield path, value


def tampered(cli, tmp_path, document, rehash: bool = False):
    if rehash:
        from ckptcost.report.build import result_hash
        from ckptcost.report.document import Report

        document["reproducibility"]["result_sha256"] = result_hash(Report.model_validate(document))
    file = tmp_path / "tampered.json"
    file.write_text(json.dumps(document))
    return cli("check", str(file))


OUTSIDE_THE_HASH = ("reproducibility.inputs", "reproducibility.seed")


def test_every_number_times_1000_is_found(cli, tmp_path):
    """The hash is over everything but the date, the tool and itself: no number can be changed
    unnoticed."""
    _, document = written(
        cli, tmp_path, "--tier", "nas-hdd", "--saves", "100", "--against", "generic-pfs"
    )
    paths = [path for path, value in numbers(document) if value != 0]
    assert len(paths) > 300
    from ckptcost.report.build import result_hash
    from ckptcost.report.document import Report

    missed = []
    for path in paths:
        other = json.loads(json.dumps(document))
        set_at(other, path, lambda value: value * 1000)
        report = Report.model_validate(other)
        if result_hash(report) == report.reproducibility.result_sha256:
            missed.append(path)
    assert [path for path in missed if not path.startswith(OUTSIDE_THE_HASH)] == []


CLEVER = {
    "a total times 1000": ("totals.energy.value", 1000),
    "a component times 1000": ("components.0.energy.value", 1000),
    "the cost of a component": ("components.0.cost.value", 1000),
    "the emissions of a component": ("components.1.emissions_location.value", 0.001),
    "embodied": ("components.0.embodied.value", 2),
    "one save": ("one_save.components.0.energy.value", 1000),
    "one save's total": ("one_save.totals.energy.value", 1000),
    "a row": ("cases.1.values.run_energy_kwh", 1000),
    "the stall": ("schedule.stall_s", 1000),
    "goodput": ("schedule.goodput", 0.5),
    "the interval": ("schedule.interval_s", 2),
    "the best interval": ("schedule.best_interval_s.energy", 2),
    "Young": ("schedule.young_interval_s", 2),
    "Daly": ("schedule.daly_interval_s", 2),
    "the load time": ("schedule.load_s", 2),
    "the size": ("schedule.size_bytes", 2),
    "the rate": ("schedule.write_rate_bytes_per_s", 2),
    "the MTBF": ("schedule.mtbf_s", 2),
    "checkpoints": ("totals.checkpoints.value", 2),
    "a factor": ("factors.7.value", 1000),
    "the PUE of the boundary": ("boundary.pue", 1.5),
    "a low end": ("totals.energy.low", 0.001),
    "a high end": ("totals.energy.high", 1000),
    "a row's high end": ("cases.0.high.run_energy_kwh", 1000),
    "the price quantity": ("components.0.price_qty", 1000),
    "the unit price": ("components.0.unit_price", 1000),
    "the avoidable part": ("avoidable.values.run_energy_kwh", 1000),
    "the functional units": ("functional_units.0.count", 2),
    "an assumption": ("assumptions.1.value", 2),
    "the GPUs of the subject": ("subject.accelerator_count", 2),
    "a row's factor": ("cases.1.factors.0.value", 2),
    "GPU time": ("totals.gpu_time_lost.value", 1000),
}


@pytest.mark.parametrize("what", CLEVER)
def test_a_change_with_the_hash_made_good_is_found(cli, tmp_path, what):
    """Somebody who knows how to write the hash again: the arithmetic must still catch it."""
    path, factor = CLEVER[what]
    _, document = written(
        cli,
        tmp_path,
        "--tier",
        "nas-hdd",
        "--tier",
        "generic-pfs",
        "--saves",
        "100",
        "--against",
        "generic-pfs",
    )
    set_at(document, path, lambda value: value * factor)
    done = tampered(cli, tmp_path, document, rehash=True)
    assert done.code == 1, f"{path} was changed and nobody noticed"
    assert done.out


def test_a_difference_is_named_with_both_figures(cli, tmp_path):
    _, document = written(cli, tmp_path, "--tier", "nas-hdd", "--saves", "100")
    was = document["totals"]["energy"]["value"]
    document["totals"]["energy"]["value"] = was * 1000
    done = tampered(cli, tmp_path, document)
    assert done.code == 1
    line = next(line for line in done.out.splitlines() if line.startswith("totals.energy"))
    assert str(was * 1000) in line
    assert "recomputed" in line
    assert "result_sha256" in done.out


def test_two_components_swapped(cli, tmp_path):
    _, document = written(cli, tmp_path, "--tier", "nas-hdd", "--saves", "100")
    one, two = document["components"][0], document["components"][1]
    one["energy"]["value"], two["energy"]["value"] = two["energy"]["value"], one["energy"]["value"]
    done = tampered(cli, tmp_path, document, rehash=True)
    assert done.code == 1
    assert "components.gpu_wait.energy" in done.out
    assert "components.host_wait.energy" in done.out


@pytest.mark.parametrize("where", ["components", "factors", "cases"])
def test_a_line_dropped(cli, tmp_path, where):
    _, document = written(
        cli, tmp_path, "--tier", "nas-hdd", "--tier", "generic-pfs", "--saves", "100"
    )
    dropped = document[where].pop(0)
    done = tampered(cli, tmp_path, document, rehash=True)
    assert done.code in (1, 2), f"{dropped.get('id')} is gone and nobody noticed"


@pytest.mark.parametrize("where", ["components", "cases"])
def test_a_line_twice(cli, tmp_path, where):
    _, document = written(
        cli, tmp_path, "--tier", "nas-hdd", "--tier", "generic-pfs", "--saves", "100"
    )
    document[where].append(document[where][0])
    assert tampered(cli, tmp_path, document, rehash=True).code in (1, 2)


def test_an_unknown_made_zero(cli, tmp_path):
    bare = ("--set", "tier.billed_on=provisioned")
    _, document = written(cli, tmp_path, "--tier", "nas-hdd", "--saves", "100", *bare)
    line = next(c for c in document["components"] if c["id"] == "retention")
    assert line["cost"]["value"] is None
    line["cost"]["value"] = 0.0
    done = tampered(cli, tmp_path, document, rehash=True)
    assert done.code == 1
    assert "components.retention.cost.value: reported 0.0, recomputed None" in done.out


@pytest.mark.parametrize(
    "path",
    [
        "components.0.ledger",
        "choices",
        "components.0.energy.unit",
        "tool.method_version",
        "report_id",
        "reproducibility.inputs_sha256",
    ],
)
def test_words_that_carry_meaning(cli, tmp_path, path):
    _, document = written(
        cli, tmp_path, "--tier", "nas-hdd", "--saves", "100", "--set", "policy.mode=async"
    )
    change = {
        "components.0.ledger": lambda _: "allocated",
        "choices": lambda was: {**was, "policy.mode": "sync"},
        "components.0.energy.unit": lambda _: "GPU-h",
        "tool.method_version": lambda _: "2031.1",
        "report_id": lambda _: "urn:sha256:" + "0" * 32,
        "reproducibility.inputs_sha256": lambda _: "0" * 64,
    }
    set_at(document, path, change[path])
    assert tampered(cli, tmp_path, document, rehash=True).code in (
        1,
        2,
    ), f"{path} was changed and nobody noticed"


@pytest.mark.parametrize(
    ("id_", "value"),
    [
        ("cluster.gpus", 0.0),
        ("cluster.gpus", -5.0),
        ("tier.write", 0.0),
        ("cluster.gpus_per_node", 0.0),
        ("policy.saves", 0.0),
        ("run.work", 0.0),
        ("tier.write", None),
        ("site.pue", None),
        ("cluster.gpus", 1e300),
    ],
)
def test_factors_outside_all_bounds_do_not_break_it(cli, tmp_path, id_, value):
    """A report from elsewhere may hold anything the schema allows: still one message or a list,
    never a traceback."""
    _, document = written(cli, tmp_path, "--tier", "nas-hdd", "--saves", "100")
    next(f for f in document["factors"] if f["id"] == id_)["value"] = value
    done = tampered(cli, tmp_path, document, rehash=True)
    assert done.code in (1, 2)
    assert "Traceback" not in done.err
    assert "Warning" not in done.err


@pytest.mark.parametrize("value", [{}, [], 1, "x", None, True, "../../etc"])
@pytest.mark.parametrize(
    "key",
    [
        "policy.mode",
        "policy.cadence",
        "tier.survives",
        "tier.boundary",
        "policy.optimal",
        "policy.when_busy",
    ],
)
def test_choices_of_any_type_do_not_break_it(cli, tmp_path, key, value):
    _, document = written(cli, tmp_path, "--tier", "nas-hdd", "--saves", "100")
    document["choices"][key] = value
    done = tampered(cli, tmp_path, document, rehash=True)
    assert done.code in (0, 1, 2)
    assert "Traceback" not in done.err


def test_a_newer_minor_version_is_read_and_its_extra_keys_left_alone(cli, tmp_path):
    """Keys this version does not know belong to the hash of the one that wrote them: no difference
    may be made of them."""
    _, document = written(cli, tmp_path, "--tier", "nas-hdd", "--saves", "100")
    document["schema_version"] = "1.7"
    document["mood"] = {"of": "the day"}
    document["components"][0]["colour"] = "blue"
    document["totals"]["energy"]["confidence"] = 0.9
    done = tampered(cli, tmp_path, document)
    assert done.code in (0, 1), done.err
    assert "components" not in done.out
    assert "totals" not in done.out


def test_the_same_extra_keys_in_version_1_0_are_refused(cli, tmp_path):
    _, document = written(cli, tmp_path, "--tier", "nas-hdd", "--saves", "100")
    document["mood"] = "fine"
    done = tampered(cli, tmp_path, document)
    assert done.code == 2
    assert "mood" in done.err


@pytest.mark.parametrize("version", ["2.0", "0.9", "10.0", "1", "", "1.x", "11.0"])
def test_another_major_version_is_refused(cli, tmp_path, version):
    _, document = written(cli, tmp_path, "--tier", "nas-hdd", "--saves", "100")
    document["schema_version"] = version
    done = tampered(cli, tmp_path, document)
    assert (done.code, done.out) == (2, "")
    assert "schema_version" in done.err


def test_the_number_of_draws_is_part_of_a_report(cli, tmp_path):
    path, document = written(cli, tmp_path, "--tier", "nas-hdd", "--draws", "100")
    assert document["uncertainty"]["samples"] == 100
    assert cli("check", path).code == 0
    document["uncertainty"]["samples"] = 101
    assert tampered(cli, tmp_path, document, rehash=True).code == 1
    document["uncertainty"]["samples"] = 10**9
    assert tampered(cli, tmp_path, document, rehash=True).code == 2
