"""`ckptcost compare`: the same figures as `ckptcost model`, beside each other."""

from __future__ import annotations

import csv
import io

import pytest
from whole_json import whole

from ckptcost.first.jobs.compare import LETTERS

SCENARIOS = [
    "bloom-176b",
    "gpt4-scale-2tb",
    "llama31-405b-16k",
    "micron-100k",
    "opt-175b",
    "small-8b",
]
OF_THE_MODEL = {
    "goodput": "goodput",
    "wall": "wall_s",
    "saves": "saves",
    "interval": "interval_s",
    "stall": "stall_s",
    "failures": "failures",
    "gpu_hours": "run_gpu_hours",
    "kwh": "run_energy_kwh",
    "usd": "run_cost_usd",
    "kgco2e": "run_location_kgco2e",
    "market_kgco2e": "run_market_kgco2e",
    "embodied_kgco2e": "run_embodied_kgco2e",
    "save_gpu_hours": "save_gpu_hours",
    "save_kwh": "save_energy_kwh",
    "save_usd": "save_cost_usd",
    "save_kgco2e": "save_location_kgco2e",
}
"""quantity of `compare` -> column of `model`"""


def document(ran) -> dict:
    assert (ran.code, ran.err) == (0, "")
    return whole(ran.out)


@pytest.mark.parametrize(
    ("first", "second"), list(zip(SCENARIOS, SCENARIOS[1:] + SCENARIOS[:1], strict=True))
)
def test_two_outputs_never_disagree(cli, first, second):
    """Value and range of every quantity are those of `model -f json`, and the differences are
    theirs."""
    rows = document(cli("compare", first, second, "-f", "json"))["tables"]["values"]["rows"]
    found = {(row["scenario"], row["quantity"]): row for row in rows}
    models = [
        document(cli("model", "-s", name, "-f", "json"))["tables"]["cases"]["rows"][0]
        for name in (first, second)
    ]
    for letter, case in zip("AB", models, strict=True):
        for name, column in OF_THE_MODEL.items():
            row = found[letter, name]
            assert row["value"] == case[column], (name, letter)
            assert (row["low"], row["high"]) == (
                case.get(f"{column}_low"),
                case.get(f"{column}_high"),
            ), (name, letter)
    for name, column in OF_THE_MODEL.items():
        one, two = (case[column] for case in models)
        row = found["B", name]
        if row["difference"] is not None:
            assert row["difference"] == pytest.approx(two - one, rel=1e-9, abs=1e-9 * abs(one))
            if one:
                assert row["relative"] == pytest.approx((two - one) / one, rel=1e-9, abs=1e-9)
        assert found["A", name]["difference"] is None


def test_the_bill_is_the_models(cli):
    bill = document(cli("compare", "llama31-405b-16k", "opt-175b", "-f", "json"))["tables"][
        "bill_energy"
    ]["rows"]
    for letter, name in (("A", "llama31-405b-16k"), ("B", "opt-175b")):
        parts = {
            part["id"]: part["energy"]["value"]
            for part in document(cli("model", "-s", name, "-f", "json"))["statements"][0][
                "components"
            ]
        }
        for row in bill:
            assert row[letter] == parts[row["line"]], row["line"]


@pytest.mark.parametrize("count", range(2, 7))
@pytest.mark.parametrize("form", ["text", "md", "csv", "json"])
def test_two_to_six_in_every_form(cli, count, form):
    done = cli("compare", *SCENARIOS[:count], "-f", form)
    assert (done.code, done.err) == (0, "")
    assert "nan" not in done.out.lower().replace("finan", "").replace("maintenan", "")
    if form == "text":
        assert max(map(len, done.out.splitlines())) <= 80
        assert all(line == line.rstrip() for line in done.out.splitlines())
    if form == "json":
        assert whole(done.out)["kind"] == "comparison"


@pytest.mark.parametrize(
    "extra",
    [
        ["--with", "tier=nas-hdd"],
        ["--with", "mode=async", "--with", "tier.id=object-store, saves=12"],
        ["--set", "cluster.gpus=100000", "--with", "interval=1 h"],
        ["--with", "tier.write=1 kB/s"],
        ["--with", "second_tier.id=object-store, policy.second_every=3"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("name", SCENARIOS)
def test_variants_of_every_preset(cli, name, extra):
    done = cli("compare", "-s", name, *extra)
    assert done.err == ""
    assert done.code == 0
    assert max(map(len, done.out.splitlines())) <= 80
    assert "nan" not in done.out.lower().replace("finan", "").replace("maintenan", "")


def test_a_variant_is_the_scenario_with_that_changed(cli):
    rows = document(
        cli("compare", "-s", "opt-175b", "--with", "tier=nas-hdd, interval=2 h", "-f", "json")
    )["tables"]["values"]["rows"]
    model = document(
        cli("model", "-s", "opt-175b", "--tier", "nas-hdd", "--interval", "2 h", "-f", "json")
    )["tables"]["cases"]["rows"][0]
    mine = {row["quantity"]: row["value"] for row in rows if row["scenario"] == "B"}
    assert {name: mine[name] for name in OF_THE_MODEL} == {
        name: model[column] for name, column in OF_THE_MODEL.items()
    }


def test_why_they_differ(cli):
    done = document(
        cli(
            "compare",
            "-s",
            "llama31-405b-16k",
            "--with",
            "tier.write=50 GB/s, policy.mode=async",
            "-f",
            "json",
        )
    )
    rows = {row["input"]: row for row in done["tables"]["inputs"]["rows"]}
    assert set(rows) == {"policy.mode", "tier.write"} | ({"tier.read"} & set(rows))
    assert (rows["policy.mode"]["in_a"], rows["policy.mode"]["here"]) == ("sync", "async")
    assert (rows["tier.write"]["a_value"], rows["tier.write"]["value"]) == (167.5e9, 50e9)
    assert (rows["tier.write"]["a_basis"], rows["tier.write"]["basis"]) == ("derived", "user")
    assert len(done["scenarios"]) == 2


def test_the_same_scenario_twice_is_allowed(cli):
    done = document(cli("compare", "opt-175b", "opt-175b", "-f", "json"))
    assert {
        row["difference"] for row in done["tables"]["values"]["rows"] if row["scenario"] == "B"
    } <= {0.0, None}
    assert done["tables"]["inputs"]["rows"] == []


def test_what_is_uncertain_is_said(cli):
    said = " ".join(
        cli("compare", "-s", "llama31-405b-16k", "--with", "interval=16 min").out.split()
    )
    assert "The sign is not certain: B has more in" in said
    assert "The sign is not certain" not in cli(
        "compare", "-s", "llama31-405b-16k", "--with", "tier=nas-hdd"
    ).out.replace("\n", " ")


def test_the_tidy_table_is_the_csv(cli):
    done = cli("compare", "opt-175b", "bloom-176b", "-f", "csv")
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert list(rows[0])[:7] == ["scenario", "name", "quantity", "label", "unit", "value", "low"]
    assert {row["scenario"] for row in rows} == {"A", "B"}
    assert {row["quantity"] for row in rows} > set(OF_THE_MODEL)
    bill = cli("compare", "opt-175b", "bloom-176b", "-f", "csv", "--table", "bill_cost")
    assert bill.out.splitlines()[0] == "label,line,A_usd,B_usd,B_difference_usd"


def test_every_scenario_is_judged(cli):
    done = cli(
        "compare",
        "-s",
        "llama31-405b-16k",
        "--with",
        "mode=async",
        "--require",
        "goodput>=0.9",
        "--budget",
        "kwh<=1e9 kWh",
    )
    assert done.code == 3
    assert done.err == "ckptcost: MISSED: goodput>=0.9, it is 87.2 % [A: llama31-405b-16k]\n"
    assert "met: goodput>=0.9, it is 93 % [B: mode=async]" in done.out
    assert cli("compare", "opt-175b", "bloom-176b", "--require", "goodput>=0.5").code == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "nothing to compare"),
        (["opt-175b"], "nothing to compare"),
        (["-s", "opt-175b"], "nothing to compare"),
        (["opt-175b", "no-such"], "no-such"),
        (["opt-175b", "bloom-176b", "--with", "tier=nas-hdd"], "--with varies one scenario"),
        (["--with", "nonsense"], "not path=value"),
        (["--with", "tier=nas-hdd", "--set", "nonsense"], "not path=value"),
        (["opt-175b", "bloom-176b", "--require", "goodput=1"], "is not name>=value"),
        (["opt-175b"] * 7, "more than 6"),
        (["opt-175b", "bloom-176b", "--require", "goodput.p5>=0.5"], "percentile"),
        (["opt-175b", "bloom-176b", "--table", "x"], "--table"),
        (["opt-175b", "bloom-176b", "-f", "csv", "--table", "x"], "no table named"),
        (["opt-175b", "gone.toml"], "gone.toml"),
        (["opt-175b", ""], "names no scenario"),
    ],
)
def test_wrong_input_is_one_line_and_2(cli, words, says):
    done = cli("compare", *words)
    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert done.err.count("\n") == 1


def test_files_are_named_without_their_folder(cli, tmp_path):
    file = tmp_path / "secret-folder" / "mine.toml"
    file.parent.mkdir()
    file.write_text('extends = "opt-175b"\n[policy]\ninterval = "1 h"\n', "utf-8")
    done = cli("compare", "opt-175b", str(file), "-f", "json")
    assert "secret-folder" not in done.out
    found = document(done)
    assert found["question"]["scenarios"] == ["opt-175b", "mine.toml"]
    assert [each["path"] for each in found["reproducibility"]["inputs"]] == ["mine.toml"]


def test_the_same_bytes_twice(cli):
    words = ("compare", *SCENARIOS[: len(LETTERS)], "-f", "json")
    assert cli(*words).out == cli(*words).out


def test_the_tier_is_the_one_that_is_named(cli):
    for command in (("compare", "-s", "small-8b", "--with", "mode=async"), ("sensitivity",)):
        named = cli(*command, "--tier", "nas-hdd", "-f", "csv")
        assert named.code == 0
        assert named.out == cli(*command, "--set", "tier.id=nas-hdd", "-f", "csv").out
        unknown = cli(*command, "--tier", "nas-hd")
        assert (unknown.code, "did you mean 'nas-hdd'" in unknown.err) == (2, True)
