"""`ckptcost optimize`: four formats of one answer, 80 columns, bad input, exit codes."""

from __future__ import annotations

import csv
import io
import re

import pytest
from whole_json import whole

QUESTIONS = {
    "one tier": ["-s", "llama31-405b-16k"],
    "compared tiers": [],
    "tiers and modes": [
        "-s",
        "llama31-405b-16k",
        "--tier",
        "flash-shared",
        "--tier",
        "nas-hdd",
        "--mode",
        "both",
        "--objective",
        "energy",
    ],
    "two tiers": ["-s", "small-8b", "--mode", "async", "--set", "policy.slowdown=0.02"],
    "huge": [
        "-s",
        "micron-100k",
        "--mode",
        "both",
        "--tier",
        "mlperf-everpure-exa-30-405b",
        "--tier",
        "local-nvme-4xgen5",
    ],
    "hopeless": ["-s", "micron-100k", "--tier", "nas-hdd", "--mode", "sync"],
    "short": ["-s", "llama31-405b-16k", "--set", "run.work=5 min"],
}
questions = pytest.mark.parametrize("words", QUESTIONS.values(), ids=list(QUESTIONS))


def document(done):
    assert done.code in (0, 3), done.err
    return whole(done.out)


def table(cli, *words, name="intervals"):
    done = cli("optimize", *words, "-f", "csv", "--table", name)
    assert done.code == 0, done.err
    return list(csv.DictReader(io.StringIO(done.out)))


@questions
def test_text_fits_a_terminal(cli, words):
    for full in ([], ["--full"]):
        done = cli("optimize", *words, *full)
        assert (done.code, done.err) == (0, "")
        assert max(map(len, done.out.splitlines())) <= 80
        assert not re.search(r"\b(nan|inf|None)\b", done.out)
        assert re.search(r"- (Best|Robust) for ", done.out)
    assert "Regret" in done.out
    assert len(cli("optimize", *words).out.splitlines()) <= 40


@questions
def test_json_is_valid_and_complete(cli, words):
    found = document(cli("optimize", *words, "-f", "json"))
    assert (found["schema_name"], found["kind"]) == ("ckptcost.report", "optimum")
    assert {"intervals", "regret", "front", "candidates", "curve"} <= set(found["tables"])
    regrets = {row["at"]: row for row in found["tables"]["regret"]["rows"]}
    for objective in ("time", "energy", "usd", "carbon"):
        assert regrets[f"best for {objective}"][f"regret_{objective}"] in (0.0, None)
    candidates = found["tables"]["candidates"]["rows"]
    assert sum(row["on_front"] for row in candidates) == len(found["tables"]["front"]["rows"])
    assert len({(row["tier"], row["mode"], row["interval"]) for row in candidates}) == len(
        candidates
    )
    assert found["question"]["objective"] in ("time", "energy")


@pytest.mark.parametrize(
    "words", [QUESTIONS["one tier"], QUESTIONS["two tiers"]], ids=["one tier", "two tiers"]
)
def test_markdown_has_the_same_tables(cli, words):
    text, md = cli("optimize", *words, "--full").out, cli("optimize", *words, "-f", "md").out
    assert md.startswith("# How often to save")
    assert md.count("\n## ") >= 2
    assert ("Two tiers" in text) == ("Two tiers" in md)


def best_of_model(cli) -> float:
    """The best interval for time, as `model` says it."""
    [bill] = document(cli("model", "-s", "llama31-405b-16k", "-f", "json"))["statements"]
    return float(bill["schedule"]["best_interval_s"]["time"])


def test_csv_gives_each_table_by_name(cli):
    rows = table(cli, "-s", "llama31-405b-16k")
    assert [row["at"] for row in rows] == [
        "best for time",
        "best for energy",
        "best for usd",
        "best for carbon",
        "robust interval",
        "Young's rule",
        "Daly's rule",
        "now",
    ]
    assert float(rows[0]["interval_s"]) == pytest.approx(best_of_model(cli), rel=1e-9)
    assert {
        "goodput",
        "energy_kwh",
        "cost_usd",
        "carbon_kgco2e",
        "wall_s",
        "gpu_hours",
        "location_kgco2e",
    } <= set(rows[0])
    curve = table(cli, "-s", "llama31-405b-16k", name="curve")
    assert len(curve) == 61
    assert min(float(row["regret_time"]) for row in curve) == 0.0
    done = cli("optimize", "-s", "llama31-405b-16k", "-f", "csv", "--table", "curves")
    assert done.code == 2
    assert "curve" in done.err
    assert cli("optimize", "--table", "curve").code == 2


def test_it_agrees_with_model(cli):
    """The same run in both commands' tables, unit for unit."""
    row = next(row for row in table(cli, "-s", "llama31-405b-16k") if row["at"] == "now")
    theirs = next(
        csv.DictReader(io.StringIO(cli("model", "-s", "llama31-405b-16k", "-f", "csv").out))
    )
    for mine, other in (
        ("energy_kwh", "run_energy_kwh"),
        ("cost_usd", "run_cost_usd"),
        ("location_kgco2e", "run_location_kgco2e"),
        ("goodput", "goodput"),
        ("interval_s", "interval_s"),
        ("gpu_hours", "run_gpu_hours"),
    ):
        assert float(row[mine]) == pytest.approx(float(theirs[other]), rel=1e-11), mine


def test_carbon_is_what_model_calls_carbon(cli):
    """Location-based and operational: the embodied share is a figure of its own in both."""
    for row in table(cli, "-s", "llama31-405b-16k"):
        assert row["carbon_kgco2e"] == row["location_kgco2e"]
        assert float(row["embodied_kgco2e"]) > 0
        interval = f"{float(row['interval_s']):.17g} s"
        model = cli("model", "-s", "llama31-405b-16k", "--interval", interval, "-f", "json")
        (case,) = whole(model.out)["tables"]["cases"]["rows"]
        assert float(row["carbon_kgco2e"]) == pytest.approx(case["run_location_kgco2e"], rel=1e-9)


def test_regret_moves_with_the_interval(cli):
    """What runs now is whatever --interval says; its own best is not."""
    slow = {
        row["at"]: row
        for row in table(cli, "-s", "llama31-405b-16k", "--interval", "2 h", name="regret")
    }
    assert float(slow["now"]["interval_s"]) == 7200.0
    assert float(slow["now"]["regret_time"]) > 0.1
    assert float(slow["best for time"]["interval_s"]) == pytest.approx(best_of_model(cli), rel=1e-9)
    out = cli("optimize", "-s", "llama31-405b-16k", "--interval", "2 h").out
    assert "As the scenario stands: every 7,200 s, " in out
    assert "more wall time" in out


def test_unknown_is_a_dash_with_its_reason(cli, tmp_path):
    file = tmp_path / "job.toml"
    file.write_text(
        '[checkpoint]\nsize = "2 TB"\n[tier]\nwrite = "30 GB/s"\n[cluster]\ngpus ='
        ' 4096\n[run]\nwork = "30 days"\n'
    )
    assert re.search(r"^best for usd( +-)+$", cli("optimize", "-s", str(file)).out, re.M)
    done = cli("optimize", "-s", str(file), "--full")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert any(re.fullmatch(r"best for usd( +-)+", line) for line in lines)
    assert "No best interval for usd: cluster.gpu_price not known." in " ".join(done.out.split())
    assert not any(line.startswith("now ") for line in lines)
    row = next(
        row
        for row in document(cli("optimize", "-s", str(file), "-f", "json"))["tables"]["intervals"][
            "rows"
        ]
        if "usd" in row["at"]
    )
    assert row["interval"] is None
    asked = cli("optimize", "-s", str(file), "--objective", "usd")
    assert asked.code == 2
    assert "--objective" in asked.err
    assert "cluster.gpu_price" in asked.err


def test_without_failures(cli):
    done = cli("optimize", "--set", "failures.rate=0 /1000 node-days")
    assert done.code == 2
    assert "never to save" in done.err
    assert "failures.rate" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--tier", "no-such-tier"], "no-such-tier"),
        (["--mode", "sideways"], "sideways"),
        (["--objective", "beauty"], "beauty"),
        (["--require", "goodput>=2"], "--require"),
        (["--budget", "beauty<=3"], "--budget"),
        (["--require", "usd.p95<=10"], "percentile"),
        (["-s", ""], "--scenario"),
        (["--interval", "soon"], "--interval"),
        (["--set", "tier.write=fast"], "tier.write"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(cli, words, said):
    done = cli("optimize", *words)
    assert done.code == 2
    assert said in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert done.out == ""


def test_targets(cli):
    done = cli(
        "optimize",
        "-s",
        "llama31-405b-16k",
        "--require",
        "goodput>=0.95",
        "--budget",
        "usd<=20000000",
    )
    assert done.code == 3
    assert "MISSED: goodput>=0.95" in done.err
    assert "met: usd<=20000000" in done.out
    assert cli("optimize", "-s", "llama31-405b-16k", "--require", "goodput>=0.85").code == 0
    found = document(
        cli("optimize", "-s", "llama31-405b-16k", "--require", "goodput>=0.95", "-f", "json")
    )
    assert [gate["met"] for gate in found["requirements"]] == [False]


def test_targets_hold_for_the_best_of_all_tiers(cli):
    words = ["-s", "llama31-405b-16k", "--tier", "nas-hdd", "--require", "goodput>=0.85"]
    assert cli("optimize", *words).code == 3
    assert cli("optimize", *words, "--tier", "flash-shared").code == 0


def test_the_front_is_thinned_for_people_only(cli):
    words = [
        "-s",
        "llama31-405b-16k",
        "--tier",
        "flash-shared",
        "--tier",
        "nas-hdd",
        "--tier",
        "superpod-best",
    ]
    found = document(cli("optimize", *words, "-f", "json"))["tables"]
    assert 1 < len(found["front_ends"]["rows"]) <= 16 < len(found["front"]["rows"])
    kept = [(row["tier"], row["mode"], row["interval"]) for row in found["front"]["rows"]]
    assert {
        (row["tier"], row["mode"], row["interval"]) for row in found["front_ends"]["rows"]
    } <= set(kept)
    marked = {mark for row in found["front_ends"]["rows"] for mark in row["best_for"].split()}
    assert marked >= {"energy", "time"}
    assert "The front over goodput, energy, usd, carbon" in cli("optimize", *words, "--full").out


def test_two_tiers_are_chosen_together(cli):
    out = " ".join(cli("optimize", "-s", "small-8b").out.split())
    assert "Both chosen together: each " in out
    assert "first-order rule" in out
    rows = {row["at"]: row for row in table(cli, "-s", "small-8b", name="levels")}
    assert float(rows["both chosen"]["regret"]) == 0.0
    assert float(rows["now"]["regret"]) > 0.0
    assert len(table(cli, "-s", "small-8b", name="rule")) == 2
    nobody = " ".join(
        cli("optimize", "-s", "small-8b", "--set", "failures.node_loss_fraction=0").out.split()
    )
    assert "No failure needs the second tier" in nobody


def test_help_names_every_flag(cli):
    out = cli("optimize", "--help").out
    for flag in (
        "--scenario",
        "--tier",
        "--mode",
        "--objective",
        "--interval",
        "--set",
        "--require",
        "--budget",
        "--format",
        "--table",
    ):
        assert flag in out


def test_the_same_bytes_twice(cli):
    words = ("optimize", *QUESTIONS["tiers and modes"], "-f", "json")
    assert cli(*words).out == cli(*words).out


def test_the_ends_of_each_front_are_shown_where_there_is_a_choice(cli):
    tables = document(cli("optimize", *QUESTIONS["tiers and modes"], "-f", "json"))["tables"]
    whole, thin = (
        [(row["tier"], row["mode"], row["interval"]) for row in tables[name]["rows"]]
        for name in ("front", "front_ends")
    )
    assert set(thin) <= set(whole)
    for option in {row[:2] for row in whole}:
        intervals = [row[2] for row in whole if row[:2] == option]
        shown = [row[2] for row in thin if row[:2] == option]
        assert (min(shown), max(shown)) == (min(intervals), max(intervals))
    title = "The front over"
    assert title in cli("optimize", *QUESTIONS["tiers and modes"], "--full").out
    assert title not in cli("optimize", *QUESTIONS["one tier"], "--full").out


def test_the_tables_of_two_tiers_by_hand(cli):
    words = ("-s", "small-8b", "--mode", "sync", "--set", "failures.node_loss_fraction=1 %")
    tables = document(cli("optimize", *words, "-f", "json"))["tables"]
    for row in tables["levels"]["rows"]:
        assert row["period"] == pytest.approx(row["interval"] * row["every"], rel=1e-9)
    rule = tables["rule"]["rows"]
    assert len(rule) == 2
    for row in rule:
        assert row["alone"] == pytest.approx((2 * row["stall"] * row["mtbf"]) ** 0.5, rel=1e-9), (
            "neither held up by its drain nor pooled"
        )
        assert row["nested"] == pytest.approx(rule[0]["nested"] * row["multiple"], rel=1e-9)
    assert rule[0]["multiple"] == 1 < rule[1]["multiple"]
