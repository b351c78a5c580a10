"""`ckptcost check`: a report agrees with its own inputs, or each difference is named."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError
from whole_json import whole

from ckptcost.first.errors import InputError
from ckptcost.first.report.build import result_hash
from ckptcost.first.report.check import differences
from ckptcost.first.report.document import Report

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


def hashed_again(document) -> Report:
    report = Report.model_validate(document)
    said = report.reproducibility.model_copy(update={"result_sha256": result_hash(report)})
    return report.model_copy(update={"reproducibility": said})


def tampered(cli, tmp_path, document, rehash: bool = False):
    if rehash:
        again = hashed_again(document)
        document["reproducibility"]["result_sha256"] = again.reproducibility.result_sha256
    file = tmp_path / "tampered.json"
    file.write_text(json.dumps(document))
    return cli("check", str(file))


CASES = ["--tier", "nas-hdd", "--tier", "generic-pfs", "--saves", "100"]


def refused(document, path: str) -> bool:
    """Whether the place of a list of factors is none of the statement's."""
    if not path.endswith(".rests"):
        return False
    with pytest.raises(ValidationError, match="rests on list"):
        Report.model_validate(document)
    return True


def test_factors_of_another_figure_are_found(cli, tmp_path):
    _, document = written(cli, tmp_path, *CASES, "--draws", "100")
    many = len(document["statements"][0]["rests"])
    assert many > 10
    paths = [path for path, _ in numbers(document) if path.endswith(".rests")]
    assert len(paths) > 100
    for path in paths[::7]:
        other = json.loads(json.dumps(document))
        set_at(other, path, lambda number: (number + 1) % many)
        assert [each.where for each in differences(hashed_again(other))], path


def test_every_number_times_1000_is_found(cli, tmp_path):
    """The hash is over everything but the date, the tool and itself: no number can be changed
    unnoticed."""
    _, document = written(
        cli, tmp_path, "--tier", "nas-hdd", "--saves", "100", "--against", "generic-pfs"
    )
    paths = [path for path, value in numbers(document) if value != 0]
    assert len(paths) > 300
    parts = {".".join(path.split(".")[:2]) for path in paths}
    tables = {f"tables.{name}" for name in document["tables"]}
    assert parts == {*tables, "question.draws", "statements.0", "scenarios.1"}
    assert len(tables) == 7
    missed = []
    for path in paths:
        other = json.loads(json.dumps(document))
        set_at(other, path, lambda value: value * 1000)
        if refused(other, path):
            continue
        report = Report.model_validate(other)
        if result_hash(report) == report.reproducibility.result_sha256:
            missed.append(path)
    assert missed == []


def test_every_number_times_1000_with_the_hash_made_good_is_found(cli, tmp_path):
    """Somebody who knows how to write the hash again: the arithmetic must still catch it. What
    vendors say is no arithmetic: the hash alone covers it."""
    words = [*CASES, "--against", "generic-pfs", "--draws", "100"]
    _, document = written(cli, tmp_path, *words)
    paths = [path for path, value in numbers(document) if value != 0]
    assert len(paths) > 500
    missed = []
    for path in paths:
        other = json.loads(json.dumps(document))
        set_at(other, path, lambda value: value * 1000)
        if refused(other, path):
            continue
        report = hashed_again(other)
        try:
            if not differences(report):
                missed.append(path)
        except InputError:
            pass
    claimed = [path for path in paths if path.startswith("tables.claims.rows.")]
    assert missed == claimed != []


CLEVER = {
    "a total times 1000": ("statements.0.totals.energy.value", 1000),
    "a component times 1000": ("statements.0.components.0.energy.value", 1000),
    "the cost of a component": ("statements.0.components.0.cost.value", 1000),
    "the emissions of a component": ("statements.0.components.1.emissions_location.value", 0.001),
    "embodied": ("statements.0.components.0.embodied.value", 2),
    "one save": ("statements.0.one_save.components.0.energy.value", 1000),
    "one save's total": ("statements.0.one_save.totals.energy.value", 1000),
    "a row": ("tables.cases.rows.1.run_energy_kwh", 1000),
    "the stall": ("statements.0.schedule.stall_s", 1000),
    "goodput": ("statements.0.schedule.goodput", 0.5),
    "the interval": ("statements.0.schedule.interval_s", 2),
    "the best interval": ("statements.0.schedule.best_interval_s.energy", 2),
    "Young": ("statements.0.schedule.young_interval_s", 2),
    "Daly": ("statements.0.schedule.daly_interval_s", 2),
    "the load time": ("statements.0.schedule.load_s", 2),
    "the size": ("statements.0.schedule.size_bytes", 2),
    "the rate": ("statements.0.schedule.write_rate_bytes_per_s", 2),
    "the MTBF": ("statements.0.schedule.mtbf_s", 2),
    "checkpoints": ("statements.0.totals.checkpoints.value", 2),
    "a factor": ("statements.0.factors.7.value", 1000),
    "the PUE of the boundary": ("statements.0.boundary.pue", 1.5),
    "a low end": ("statements.0.totals.energy.low", 0.001),
    "a high end": ("statements.0.totals.energy.high", 1000),
    "a row's high end": ("tables.cases.rows.0.run_energy_kwh_high", 1000),
    "the price quantity": ("statements.0.components.0.price_qty", 1000),
    "the unit price": ("statements.0.components.0.unit_price", 1000),
    "the avoidable part": ("tables.avoidable.rows.0.run_energy_kwh", 1000),
    "the functional units": ("statements.0.functional_units.0.count", 2),
    "an assumption": ("statements.0.assumptions.1.value", 2),
    "the GPUs of the subject": ("statements.0.subject.accelerator_count", 2),
    "a row's factor": ("scenarios.1.factors.0.value", 2),
    "GPU time": ("statements.0.totals.gpu_time_lost.value", 1000),
    "what one save costs": ("tables.one_save.rows.1.energy_kwh", 1000),
    "what all saves cost": ("tables.all_saves.rows.0.energy_kwh", 1000),
    "the whole run": ("tables.whole_run.rows.1.wall", 2),
    "a line of the bill": ("tables.bill.rows.0.kwh", 1000),
    "the number of draws": ("question.draws", 2),
}


@pytest.mark.parametrize("what", CLEVER)
def test_a_change_with_the_hash_made_good_is_found(cli, tmp_path, what):
    """By a small factor and by hand too, each named in what the command says."""
    path, factor = CLEVER[what]
    _, document = written(cli, tmp_path, *CASES, "--against", "generic-pfs")
    set_at(document, path, lambda value: value * factor)
    done = tampered(cli, tmp_path, document, rehash=True)
    assert done.code == 1, f"{path} was changed and nobody noticed"
    assert done.out


def test_a_column_of_another_unit_or_gone(cli, tmp_path):
    _, document = written(cli, tmp_path, *CASES)
    told = json.dumps(document)
    document["tables"]["one_save"]["columns"]["energy_kwh"]["unit"] = "J"
    done = tampered(cli, tmp_path, document, rehash=True)
    assert (done.code, done.out.split(":")[0]) == (1, "one_save.columns.energy_kwh")
    document = json.loads(told)
    cases = document["tables"]["cases"]
    del cases["columns"]["run_cost_usd"]
    for row in cases["rows"]:
        del row["run_cost_usd"]
    done = tampered(cli, tmp_path, document, rehash=True)
    assert done.code == 1
    assert "cases.columns.run_cost_usd: " in done.out


@pytest.mark.parametrize("table", ["cases", "one_save", "all_saves", "whole_run", "bill"])
def test_a_table_gone(cli, tmp_path, table):
    _, document = written(cli, tmp_path, *CASES)
    del document["tables"][table]
    assert tampered(cli, tmp_path, document, rehash=True).code in (1, 2)


def test_a_difference_is_named_with_both_figures(cli, tmp_path):
    _, document = written(cli, tmp_path, "--tier", "nas-hdd", "--saves", "100")
    energy = document["statements"][0]["totals"]["energy"]
    was = energy["value"]
    energy["value"] = was * 1000
    done = tampered(cli, tmp_path, document)
    assert done.code == 1
    line = next(line for line in done.out.splitlines() if line.startswith("totals.energy"))
    assert str(was * 1000) in line
    assert "recomputed" in line
    assert "result_sha256" in done.out


def test_two_components_swapped(cli, tmp_path):
    _, document = written(cli, tmp_path, "--tier", "nas-hdd", "--saves", "100")
    one, two = document["statements"][0]["components"][:2]
    one["energy"]["value"], two["energy"]["value"] = two["energy"]["value"], one["energy"]["value"]
    done = tampered(cli, tmp_path, document, rehash=True)
    assert done.code == 1
    assert "components.gpu_wait.energy" in done.out
    assert "components.host_wait.energy" in done.out


LISTS = [
    "statements.0.components",
    "statements.0.one_save.components",
    "tables.cases.rows",
    "tables.one_save.rows",
    "tables.all_saves.rows",
    "tables.whole_run.rows",
    "tables.bill.rows",
]


def list_at(document, path: str) -> list:
    for name in path.split("."):
        document = document[int(name)] if isinstance(document, list) else document[name]
    return document


@pytest.mark.parametrize("where", [*LISTS, "statements.0.factors", "scenarios"])
def test_a_line_dropped(cli, tmp_path, where):
    _, document = written(cli, tmp_path, *CASES)
    dropped = list_at(document, where).pop(0)
    done = tampered(cli, tmp_path, document, rehash=True)
    assert done.code in (1, 2), f"{dropped.get('id')} is gone and nobody noticed"


def test_inputs_told_in_two_places_are_refused(cli, tmp_path):
    """The first case has the statement's inputs: others of its own would leave one of the two
    unchecked."""
    _, document = written(cli, tmp_path, *CASES)
    told = json.dumps(document)
    first = document["scenarios"][0]
    first |= {"by_difference": False, "factors": document["statements"][0]["factors"]}
    done = tampered(cli, tmp_path, document, rehash=True)
    assert (done.code, done.out) == (2, "")
    assert "scenarios.0: differs from the statement" in done.err
    document = json.loads(told)
    document["scenarios"][1]["by_difference"] = False
    done = tampered(cli, tmp_path, document, rehash=True)
    assert (done.code, done.out) == (2, "")
    assert "scenarios: is not told by what differs" in done.err


@pytest.mark.parametrize("key", ["tier", "case", "saves"])
def test_a_row_without_its_key(cli, tmp_path, key):
    _, document = written(cli, tmp_path, *CASES)
    del document["tables"]["cases"]["rows"][1][key]
    done = tampered(cli, tmp_path, document, rehash=True)
    assert (done.code, done.out) == (2, "")
    assert "tables.cases.rows.1: has not the cells of its columns" in done.err


@pytest.mark.parametrize("form", ["text", "md", "csv", "html"])
def test_a_word_where_a_table_has_seconds(cli, tmp_path, form):
    cli("lead", "-s", "llama31-405b-16k", "-f", "json", "-o", str(tmp_path / "lead.json"))
    document = json.loads((tmp_path / "lead.json").read_text("utf-8"))
    name, column = next(
        (name, column)
        for name, table in document["tables"].items()
        for column, about in table["columns"].items()
        if about.get("unit") == "s" and table["rows"]
    )
    document["tables"][name]["rows"][0][column] = "soon"
    (tmp_path / "lead.json").write_text(json.dumps(document), "utf-8")
    done = cli("report", str(tmp_path / "lead.json"), "-f", form)
    assert (done.code, done.out) == (2, "")
    assert f"tables.{name}.rows.0.{column}: is no number" in done.err


@pytest.mark.parametrize("where", LISTS)
def test_a_line_twice(cli, tmp_path, where):
    _, document = written(cli, tmp_path, *CASES)
    twice = list_at(document, where)
    twice.append(twice[0])
    assert tampered(cli, tmp_path, document, rehash=True).code in (1, 2)


def test_an_unknown_made_zero(cli, tmp_path):
    bare = ("--set", "tier.billed_on=provisioned")
    _, document = written(cli, tmp_path, "--tier", "nas-hdd", "--saves", "100", *bare)
    line = next(c for c in document["statements"][0]["components"] if c["id"] == "retention")
    assert line["cost"]["value"] is None
    line["cost"]["value"] = 0.0
    done = tampered(cli, tmp_path, document, rehash=True)
    assert done.code == 1
    assert "components.retention.cost.value: reported 0.0, recomputed None" in done.out


@pytest.mark.parametrize(
    "path",
    [
        "statements.0.components.0.ledger",
        "statements.0.choices",
        "statements.0.components.0.energy.unit",
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
        "statements.0.components.0.ledger": lambda _: "allocated",
        "statements.0.choices": lambda was: {**was, "policy.mode": "sync"},
        "statements.0.components.0.energy.unit": lambda _: "GPU-h",
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
    next(f for f in document["statements"][0]["factors"] if f["id"] == id_)["value"] = value
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
    document["statements"][0]["choices"][key] = value
    done = tampered(cli, tmp_path, document, rehash=True)
    assert done.code in (0, 1, 2)
    assert "Traceback" not in done.err


def test_a_newer_minor_version_is_read_and_its_extra_keys_left_alone(cli, tmp_path):
    """Keys this version does not know belong to the hash of the one that wrote them: no difference
    may be made of them."""
    _, document = written(cli, tmp_path, "--tier", "nas-hdd", "--saves", "100")
    document["schema_version"] = "2.7"
    document["mood"] = {"of": "the day"}
    document["statements"][0]["components"][0]["colour"] = "blue"
    document["statements"][0]["totals"]["energy"]["confidence"] = 0.9
    document["tables"]["bill"]["rows"][0]["colour"] = "blue"
    document["tables"]["bill"]["columns"]["colour"] = {"label": "colour", "unit": "", "hue": 3}
    done = tampered(cli, tmp_path, document)
    assert done.code in (0, 1), done.err
    assert "components" not in done.out
    assert "totals" not in done.out
    assert "colour" not in done.out
    assert "bill" not in done.out


def test_the_same_extra_keys_in_version_2_0_are_refused(cli, tmp_path):
    _, document = written(cli, tmp_path, "--tier", "nas-hdd", "--saves", "100")
    document["mood"] = "fine"
    done = tampered(cli, tmp_path, document)
    assert done.code == 2
    assert "mood" in done.err


@pytest.mark.parametrize("version", ["1.0", "1.4", "3.0", "0.9", "20.0", "2", "", "2.x", "21.0"])
def test_another_major_version_is_refused(cli, tmp_path, version):
    _, document = written(cli, tmp_path, "--tier", "nas-hdd", "--saves", "100")
    document["schema_version"] = version
    done = tampered(cli, tmp_path, document)
    assert (done.code, done.out) == (2, "")
    assert "schema_version" in done.err


def test_the_number_of_draws_is_part_of_a_report(cli, tmp_path):
    path, document = written(cli, tmp_path, "--tier", "nas-hdd", "--draws", "100")
    assert document["statements"][0]["drawn"]["samples"] == 100
    assert cli("check", path).code == 0
    document["statements"][0]["drawn"]["samples"] = 101
    assert tampered(cli, tmp_path, document, rehash=True).code == 1
    document["statements"][0]["drawn"]["samples"] = 10**9
    assert tampered(cli, tmp_path, document, rehash=True).code == 2


def test_another_kind_is_held_to_its_own_sums_hashes_and_id(cli, tmp_path):
    """What was simulated cannot be computed again from what the document holds, and that is
    said."""
    file = tmp_path / "simulated.json"
    words = ("simulate", "-s", "small-8b", "--runs", "3", "-f", "json", "-o", str(file))
    assert cli(*words).code == 0
    done = cli("check", str(file))
    assert (done.code, done.out) == (0, "")
    assert "its sums and hashes agree; only a model can be computed again" in done.err
    document = json.loads(file.read_text())
    told = json.dumps(document)
    bill = document["statements"][0]
    bill["totals"]["energy"]["value"] *= 1000
    done = tampered(cli, tmp_path, document)
    run = bill["subject"]["run_id"]
    assert done.code == 1
    assert f"{run}.totals.energy as a sum: " in done.out
    assert "reproducibility.result_sha256: " in done.out
    done = tampered(cli, tmp_path, document, rehash=True)
    assert done.code == 1
    assert "result_sha256" not in done.out
    document = json.loads(told)
    document["tables"]["outcome"]["rows"][0]["mean"] *= 1000
    assert tampered(cli, tmp_path, document).code == 1
    document = json.loads(told)
    document["question"]["runs"] = 4
    done = tampered(cli, tmp_path, document, rehash=True)
    assert (done.code, done.out.split(":")[0]) == (1, "report_id")
    document = json.loads(told)
    document["scenarios"][0]["factors"][0]["value"] = 7.0
    done = tampered(cli, tmp_path, document, rehash=True)
    assert done.code == 1
    assert "reproducibility.inputs_sha256: " in done.out


def test_statements_alone_are_refused_where_they_were_changed(cli, tmp_path):
    file, _ = written(cli, tmp_path, "-s", "small-8b")
    told = cli("export", file, "--to", "statement")
    assert told.code == 0, told.err
    document = whole(told.out)
    assert tampered(cli, tmp_path, document).code == 0
    document["statements"][0]["totals"]["energy"]["value"] *= 1000
    done = tampered(cli, tmp_path, document)
    assert (done.code, done.out) == (2, "")
    assert "was changed after it was written" in done.err
    done = tampered(cli, tmp_path, document, rehash=True)
    assert done.code == 1
    assert "totals.energy as a sum: " in done.out
