"""`ckptcost model`."""

from __future__ import annotations

import csv
import io
import re

import pytest
from whole_json import whole

SCENARIOS = [
    "bloom-176b",
    "gpt4-scale-2tb",
    "llama31-405b-16k",
    "micron-100k",
    "opt-175b",
    "small-8b",
]


def report(ran) -> dict:
    assert (ran.code, ran.err) == (0, "")
    return whole(ran.out)


def rows_of(document: dict, table: str = "cases") -> list[dict]:
    return document["tables"][table]["rows"]


def bill_of(document: dict) -> dict:
    """The statement of the first case."""
    (statement,) = document["statements"]
    return statement


def test_the_2_tb_table_is_one_command(cli):
    """10,000 s, 1,000 s, 100 s and 50 s for 0.2, 2, 20 and 40 GB/s and 5 s of set-up; the article's
    energy claims beside ours."""
    shown = cli("model", "--full")
    assert (shown.code, shown.err) == (0, "")
    words = " ".join(shown.out.split())
    for line in (
        "nas-hdd 0.2 GB/s 10,000 s",
        "generic-pfs 2 GB/s 1,000 s",
        "ddn-exascaler-20 20 GB/s 105 s",
        "ddn-exascaler-40 40 GB/s 55 s",
    ):
        assert line in words
    document = report(cli("model", "-f", "json"))
    cases = rows_of(document)
    stalls = {row["tier"]: row["stall_s"] for row in cases}
    assert stalls == {
        "nas-hdd": 10_005.0,
        "generic-pfs": 1_005.0,
        "ddn-exascaler-20": 105.0,
        "ddn-exascaler-40": 55.0,
    }
    assert {row["saves"] for row in cases} == {1.0, 100.0, 1000.0}
    assert len(cases) == 12
    said = {
        row["tier"]: next(
            (
                claim
                for claim in rows_of(document, "claims")
                if (claim["case"], claim["what"]) == (row["case"], "energy")
            ),
            None,
        )
        for row in cases
    }
    assert (said["nas-hdd"]["low"], said["nas-hdd"]["high"]) == (15.0, 20.0)
    assert (said["ddn-exascaler-40"]["low"], said["ddn-exascaler-40"]["high"]) == (1.0, 2.0)
    assert said["generic-pfs"] is None


def test_what_the_gpus_wait_is_time_times_gpus(cli):
    for v in rows_of(report(cli("model", "-f", "json"))):
        assert v["save_gpu_hours"] == pytest.approx(1024 * v["stall_s"] / 3600, rel=1e-11)
        assert v["saves_gpu_hours"] == pytest.approx(v["save_gpu_hours"] * v["saves"], rel=1e-11)
        assert v["interval_s"] * v["saves"] == pytest.approx(720_000, rel=1e-11)
        assert v["goodput"] == pytest.approx(720_000 / v["wall_s"], rel=1e-10)
        assert v["run_gpu_hours"] == pytest.approx(
            1024 * (v["wall_s"] - 720_000) / 3600, rel=1e-9
        ), "lost = wall - work, in GPU-hours"


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("form", ["text", "md", "csv", "json"])
def test_every_preset_in_every_form(cli, name, form):
    done = cli("model", "-s", name, "-f", form)
    assert (done.code, done.err) == (0, "")
    assert done.out.endswith("\n")
    assert not done.out.endswith("\n\n")
    assert "nan" not in done.out.lower().replace("tenan", "").replace("finan", "").replace(
        "maintenan", ""
    )
    assert "\t" not in done.out
    assert all(line == line.rstrip() for line in done.out.splitlines()) or form in ("csv", "md")


@pytest.mark.parametrize(
    "extra",
    [
        [],
        ["--against", "ddn-exascaler-40"],
        ["--set", "policy.mode=async"],
        ["--tier", "aws-fsx-intelligent-tiering"],
        ["--saves", "1"],
        ["--saves", "123456789"],
        ["--set", "cluster.gpus=100000"],
        ["--set", "second_tier.id=object-store", "--set", "policy.second_every=3"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("name", SCENARIOS)
def test_text_is_80_columns_wide(cli, name, extra):
    done = cli("model", "-s", name, *extra)
    assert (done.code, done.err) == (0, "")
    assert [line for line in done.out.splitlines() if len(line) > 80] == []


def test_80_columns_for_every_tier_there_is(cli):
    from ckptcost.first.catalog.store import Catalog

    catalog = Catalog()
    fit = [
        name
        for name in catalog.ids("tier")
        if {"write", "node_write", "gpu_write"} & catalog.get("tier", name).figures.keys()
    ]
    assert len(fit) > 40
    for most in (fit[:25], fit[25:]):
        done = cli("model", *(word for name in most for word in ("--tier", name)))
        assert (done.code, done.err) == (0, "")
        assert [line for line in done.out.splitlines() if len(line) > 80] == []


def test_80_columns_with_a_users_own_names(cli, tmp_path):
    """Long names wrap or are cut; a title that cannot wrap is still no excuse."""
    file = tmp_path / "job.toml"
    file.write_text(
        'name = "'
        + "a rather long name " * 20
        + '"\nextends = "gpt4-scale-2tb"\n[tier]\nid = "nas-hdd"\nname = "'
        + "our_storage_" * 12
        + '"\n'
    )
    for full in ([], ["--full"]):
        done = cli("model", "-s", str(file), *full)
        assert (done.code, done.err) == (0, "")
        assert [line for line in done.out.splitlines() if len(line) > 80] == []
    assert len(cli("model", "-s", str(file)).out.splitlines()) <= 40


@pytest.mark.parametrize("value", ["1e7", "1e-6", "123456.789"])
def test_80_columns_for_large_and_small_jobs(cli, value):
    done = cli(
        "model",
        "--set",
        f"cluster.gpus={max(1.0, float(value)):.0f}",
        "--set",
        f"run.work={value} days",
        "--saves",
        "3",
        "--tier",
        "nas-hdd",
        "--tier",
        "node-ram",
    )
    assert (done.code, done.err) == (0, ""), done.err
    assert [line for line in done.out.splitlines() if len(line) > 80] == []


def test_assumptions_are_exact_where_they_are_counts(cli):
    """1,024 GPUs were said: a list of inputs must not say 1,020."""
    out = cli("model", "--full").out
    assert "cluster.gpus = 1,020" not in out
    assert "1,024 x H100" in cli("model").out
    assert "cluster.gpus = 1,024" in out or "cluster.gpus = 1024" in out


def test_tiers_and_counts_multiply(cli):
    done = report(
        cli(
            "model",
            "--tier",
            "nas-hdd",
            "--tier",
            "generic-pfs",
            "--saves",
            "1",
            "--saves",
            "100",
            "--saves",
            "1000",
            "-f",
            "json",
        )
    )
    assert [row["case"] for row in rows_of(done)] == [
        f"{tier}@{n}" for tier in ("nas-hdd", "generic-pfs") for n in (1, 100, 1000)
    ]
    assert bill_of(done)["subject"]["tier"] == "Traditional NAS, hard drives (vendor claim)"
    assert bill_of(done)["schedule"]["saves"] == 1.0


def test_saves_takes_counts_with_a_suffix(cli):
    assert [
        row["saves"]
        for row in rows_of(
            report(
                cli("model", "--tier", "nas-hdd", "--saves", "1k", "--saves", "2.5", "-f", "json")
            )
        )
    ] == [1000.0, 2.5]


def test_interval(cli):
    done = report(cli("model", "--tier", "nas-hdd", "--interval", "30 min", "-f", "json"))
    assert bill_of(done)["schedule"]["interval_s"] == 1800.0
    assert bill_of(done)["schedule"]["cadence"] == "interval"
    assert bill_of(done)["schedule"]["saves"] == 400.0
    assert [row["saves"] for row in rows_of(done)] == [400.0], (
        "what the preset compares gives way to the flag"
    )


def test_set_reaches_every_kind_of_input(cli):
    done = report(
        cli(
            "model",
            "--tier",
            "nas-hdd",
            "--saves",
            "10",
            "--set",
            "cluster.gpus=4096",
            "--set",
            "tier.write=1 GB/s",
            "--set",
            "policy.mode=async",
            "--set",
            "cluster.price_includes_electricity=false",
            "--set",
            "site.grid=SWE",
            "--set",
            "tier.storage_price=0.1 USD/GB-month",
            "-f",
            "json",
        )
    )
    factors = {f["id"]: f for f in bill_of(done)["factors"]}
    assert factors["cluster.gpus"]["value"] == 4096.0
    assert factors["cluster.gpus"]["origin"] == "user"
    assert factors["cluster.gpus"]["set_by"]
    assert factors["tier.write"]["value"] == 1e9
    assert bill_of(done)["schedule"]["mode"] == "async"
    assert bill_of(done)["choices"]["cluster.price_includes_electricity"] is False
    assert bill_of(done)["subject"]["grid"] == "Sweden"
    retention = next(c for c in bill_of(done)["components"] if c["id"] == "retention")
    assert retention["cost"]["value"] > 0


def test_a_flags_own_tier_rate_goes_with_every_tier_named(cli):
    """--tier after --set: naming a tier must not quietly drop the rate that was set beside it."""
    done = report(
        cli(
            "model",
            "--tier",
            "nas-hdd",
            "--saves",
            "10",
            "--set",
            "tier.write=1 GB/s",
            "-f",
            "json",
        )
    )
    assert bill_of(done)["schedule"]["stall_s"] == 2005.0
    other = report(
        cli(
            "model",
            "-s",
            "small-8b",
            "--tier",
            "nas-hdd",
            "--set",
            "tier.write=1 GB/s",
            "-f",
            "json",
        )
    )
    assert next(f for f in bill_of(other)["factors"] if f["id"] == "tier.write")["value"] == 1e9, (
        "a scenario that names a tier of its own must not make the flag void"
    )


def test_a_missing_capacity_can_be_given_as_the_message_says(cli, tmp_path):
    job = tmp_path / "job.toml"
    job.write_text(
        '[checkpoint]\nparams = "8B"\n[tier]\nname = "mine"\nwrite_per_capacity = "125 MB/s/TiB"\n'
        '[cluster]\nid = "h100-8"\n[policy]\ninterval = "1 h"\n[run]\nwork = "10 days"\n',
        "utf-8",
    )
    assert "give its capacity" in cli("model", "-s", str(job)).err
    assert cli("model", "-s", str(job), "--set", "tier.capacity=100 TB").code == 0


def test_order_of_set_flags_does_not_matter(cli):
    one = cli(
        "model",
        "-s",
        "small-8b",
        "--set",
        "tier.write=5 GB/s",
        "--set",
        "tier.id=nas-hdd",
        "-f",
        "csv",
    )
    two = cli(
        "model",
        "-s",
        "small-8b",
        "--set",
        "tier.id=nas-hdd",
        "--set",
        "tier.write=5 GB/s",
        "-f",
        "csv",
    )
    assert one == two


def test_against_is_a_difference(cli):
    done = report(
        cli(
            "model",
            "--tier",
            "nas-hdd",
            "--saves",
            "100",
            "--against",
            "ddn-exascaler-40",
            "-f",
            "json",
        )
    )
    both = report(
        cli(
            "model",
            "--tier",
            "nas-hdd",
            "--tier",
            "ddn-exascaler-40",
            "--saves",
            "100",
            "-f",
            "json",
        )
    )
    slow, fast = rows_of(both)
    [less] = rows_of(done, "avoidable")
    assert (less.pop("tier"), less.pop("tier_name")) == (fast["tier"], fast["tier_name"])
    assert len(less) > 20
    for name, value in less.items():
        if slow[name] is None or fast[name] is None:
            assert value is None
        else:
            assert value == pytest.approx(
                slow[name] - fast[name], rel=1e-9, abs=1e-9 * max(abs(slow[name]), abs(fast[name]))
            )
    assert (
        "Avoidable with"
        in cli("model", "--tier", "nas-hdd", "--against", "ddn-exascaler-40", "--full").out
    )


def test_a_run_that_never_finishes_is_not_given_a_price(cli):
    done = cli(
        "model",
        "-s",
        "micron-100k",
        "--tier",
        "nas-hdd",
        "--saves",
        "2",
        "--set",
        "policy.mode=sync",
    )
    assert done.code == 0
    assert "NEVER_FINISHES" in done.out
    assert "never" in done.out
    assert "inf" not in done.out.lower().replace("info", "")
    document = report(
        cli(
            "model",
            "-s",
            "micron-100k",
            "--tier",
            "nas-hdd",
            "--saves",
            "2",
            "--set",
            "policy.mode=sync",
            "-f",
            "json",
        )
    )
    assert rows_of(document)[0]["wall_s"] is None or rows_of(document)[0]["wall_s"] > 1e10
    [row] = rows_of(document, "whole_run")
    assert (row["wall"], row["energy_kwh"], row["cost_usd"]) == (None, None, None)


def test_async_says_so(cli):
    out = cli("model", "-s", "micron-100k").out
    assert ", async," in " ".join(out.split())
    assert "holds training up for 0.5 s and is safe 25.1 s later" in " ".join(out.split())
    assert "Asynchronous: training stops" in cli("model", "-s", "micron-100k", "--full").out


def test_unknown_is_a_dash_and_said_aloud(cli):
    bare = ("--set", "tier.billed_on=provisioned")  # nobody knows the capacity that is paid for
    out = cli("model", "--tier", "nas-hdd", "--saves", "100", *bare).out
    line = next(line for line in out.splitlines() if line.startswith("keeping the bytes"))
    assert line.split()[3:] == ["0", "-", "0", "-", "0"]
    assert "not in the totals because unknown: keeping the bytes (cost)" in " ".join(out.split())


def test_csv_parses_and_has_a_unit_in_every_name(cli):
    rows = list(csv.DictReader(io.StringIO(cli("model", "-f", "csv").out)))
    assert len(rows) == 12
    for name in rows[0]:
        base = name.removesuffix("_low").removesuffix("_high")
        assert base in (
            "tier",
            "saves",
            "goodput",
            "failures",
            "cautions",
            "energy_without",
            "cost_without",
            "emissions_without",
            "case",
            "tier_name",
        ) or base.endswith(("_s", "_hours", "_kwh", "_usd", "_kgco2e", "_l")), name
    assert all(None not in row and None not in row.values() for row in rows)


def test_a_spreadsheet_formula_is_disarmed(cli, tmp_path, monkeypatch):
    overlay = tmp_path / "user" / "models" / "tiers"
    overlay.mkdir(parents=True)
    (overlay / "=1+1.toml").write_text('id = "=1+1"\nname = "=cmd()"\nwrite = "1 GB/s"\n')
    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path / "user"))
    done = cli("model", "--tier", "=1+1", "--saves", "10", "-f", "csv")
    assert done.code == 0, done.err
    [row] = csv.DictReader(io.StringIO(done.out))
    assert {row[name].strip("' ")[0] for name in ("tier", "case", "tier_name")} == {"="}
    assert not any(value.startswith("=") for value in row.values())


def test_a_scenario_is_named_by_path_or_by_preset(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gpt4-scale-2tb").write_text(
        "this is not read: no .toml and no slash makes it a preset\n"
    )
    (tmp_path / "job.toml").write_text('extends = "gpt4-scale-2tb"\n')
    assert (
        cli("model", "-s", "gpt4-scale-2tb", "-f", "csv").out
        == cli("model", "-s", "job.toml", "-f", "csv").out
        == cli("model", "--scenario", "./job.toml", "-f", "csv").out
    )


def test_help_names_every_flag(cli):
    out = cli("model", "--help").out
    for flag in (
        "--scenario",
        "--tier",
        "--saves",
        "--interval",
        "--set",
        "--format",
        "--output",
        "--against",
    ):
        assert flag in out
    assert "examples:" in out


def test_a_real_process_prints_the_same(cli, shell):
    done = shell("model", "-f", "csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == cli("model", "-f", "csv").out


def test_the_same_under_another_hash_seed_and_locale(shell):
    one = shell("model", "-f", "json", env={"PYTHONHASHSEED": "1"})
    two = shell(
        "model", "-f", "json", env={"PYTHONHASHSEED": "2", "LC_ALL": "C", "TZ": "Asia/Tokyo"}
    )
    assert one.stdout == two.stdout
    assert one.returncode == 0


@pytest.mark.parametrize(
    "words",
    [
        ["--tier", "nas-hdd", "--tier", "nas-hdd"],
        ["--tier", "nas-hdd", "--saves", "100", "--saves", "100"],
        ["--tier", "nas-hdd", "--saves", "100", "--saves", "100.00001"],
    ],
)
def test_no_two_cases_have_one_name(cli, words):
    """Said twice is said once, or refused; and two counts that differ keep names that differ."""
    done = cli("model", *words, "-f", "json")
    assert done.code in (0, 2)
    if done.code == 0:
        ids = [row["case"] for row in rows_of(whole(done.out))]
        assert len(set(ids)) == len(ids), ids


@pytest.mark.parametrize("form", ["text", "md"])
def test_a_name_cannot_steer_the_terminal(cli, tmp_path, form):
    file = tmp_path / "job.toml"
    file.write_text('name = "a\\u001b]0;title\\u0007b"\nextends = "small-8b"\n')
    done = cli("model", "-s", str(file), "-f", form)
    assert done.code in (0, 2)
    assert "\x1b" not in done.out + done.err
    assert "\x07" not in done.out + done.err


def test_a_users_name_for_a_tier_is_used(cli):
    done = report(
        cli(
            "model",
            "--tier",
            "nas-hdd",
            "--set",
            "tier.name=the old filer",
            "--saves",
            "10",
            "-f",
            "json",
        )
    )
    assert bill_of(done)["subject"]["tier"] == "the old filer"


def test_whether_copies_fit_is_never_surer_than_the_figures(cli):
    """A share of 2.77 GB a node; what the node has and what the job holds decide together."""
    job = ("-s", "llama31-405b-16k", "--set", "policy.mode=async")
    there, used = ("--set", "cluster.node_ram=1 TB"), ("--set", "cluster.node_ram_used=998 GB")
    for said, verdict, sentence in (
        ((), "unknown", "cluster.node_ram and cluster.node_ram_used would decide."),
        (there, "unknown", "is not known: cluster.node_ram_used would decide."),
        (used, "unknown", "is not known: cluster.node_ram would decide."),
        ((*there, "--set", "cluster.node_ram_used=900 GB"), "fits", "of 1 TB: it fits."),
        ((*there, *used), "too much", "too much, and the node may be killed."),
        (
            (*there, *used, "--set", "cluster.staging_budget=1 GB"),
            "fits",
            "copies of saves take 1 GB, the job 998 GB, of 1 TB: it fits.",
        ),
    ):
        words = " ".join(cli("model", *job, *said, "--full").out.split())
        assert sentence in words
        found = report(cli("model", *job, *said, "-f", "json"))
        assert bill_of(found)["schedule"]["ram_verdict"] == verdict
        codes = {each["code"] for each in found["warnings"]}
        assert ("HOST_RAM" in codes) == (verdict == "too much")
    assert "Host memory" not in cli("model", "-s", "llama31-405b-16k", "--full").out


def test_what_a_failure_costs(cli):
    shown = " ".join(cli("model", "-s", "llama31-405b-16k", "--full").out.split())
    assert "A failure costs" in shown
    answer = " ".join(cli("model", "-s", "llama31-405b-16k").out.split())
    assert "A failure comes every 3.09 h and costs" in answer
    found = report(cli("model", "-s", "llama31-405b-16k", "-f", "json"))
    bill, [row] = bill_of(found), rows_of(found)
    schedule = bill["schedule"]
    lost_s = schedule["lost_per_failure_s"]
    assert 0 < schedule["redone_per_failure_s"] < lost_s
    assert row["lost_per_failure_s"] == lost_s
    of_failures = ("redone_work", "restart", "loading")
    gpu_hours = sum(
        each["gpu_time_lost"]["value"] for each in bill["components"] if each["id"] in of_failures
    )
    gpus = bill["subject"]["accelerator_count"]
    assert lost_s * schedule["failures"] * gpus / 3600 == pytest.approx(gpu_hours, rel=1e-6)


def test_two_durations_need_no_rate(cli):
    timed = ("--set", "tier.save_time=758 s", "--set", "tier.load_time=174 s")
    refused = cli("model", "-s", "llama31-405b-16k", *timed)
    assert refused.code == 2
    assert "tier.timed_size" in refused.err
    found = report(
        cli(
            "model",
            "-s",
            "llama31-405b-16k",
            *timed,
            "--set",
            "tier.timed_size=5.68 TB",
            "-f",
            "json",
        )
    )
    schedule = bill_of(found)["schedule"]
    assert schedule["stall_s"] == pytest.approx(758.0, rel=1e-3)
    assert schedule["load_s"] == pytest.approx(174.0, rel=1e-3)
    by_clock = bill_of(
        report(cli("model", "-s", "llama31-405b-16k", "--set", "policy.clock=30 min", "-f", "json"))
    )["schedule"]
    assert by_clock["cadence"] == "clock"
    assert by_clock["interval_s"] + by_clock["stall_s"] == pytest.approx(1800.0)


def test_the_light_is_of_the_figure_beside_it(cli):
    """2 TB at 2 GB/s every 10 min on 8 GPUs: the rule's interval is right and the goodput it
    promises is nonsense."""
    words = ("--tier", "generic-pfs", "--set", "cluster.gpus=8", "--interval", "10 min")
    out = " ".join(cli("model", *words, "--set", "tier.write=2 GB/s", "--full").out.split())
    said = re.search(r"Daly's interval costs (.*?) % over the least wall time \((.*?)\)", out)
    assert said is not None
    assert said[1] == "less than 0.01"
    assert said[2] == "green"
    promised = re.search(r"every 600 s: (.*?) % against (.*?) % exact, (.*?) points off", out)
    assert promised is not None
    assert float(promised[1]) < 0 < float(promised[2])
    assert f"{promised[3]} points off (red)" in out
    told = report(cli("model", *words, "--set", "tier.write=2 GB/s", "-f", "json"))
    schedule = bill_of(told)["schedule"]
    assert schedule["validity"] == schedule["goodput_light"] == "red"
    assert schedule["interval_light"] == "green"
    assert schedule["rules_judged_by"] == "time"


def test_a_table_and_targets(cli):
    """Each table by its name, and what was asked of the run in every form."""
    words = ("--tier", "nas-hdd", "--saves", "100", "--require", "goodput>=0.9")
    done = cli("model", *words, "-f", "csv", "--table", "bill")
    assert done.code == 3
    lines = list(csv.DictReader(io.StringIO(done.out)))
    assert lines[-1]["id"] == "total"
    document = whole(cli("model", *words, "-f", "json").out)
    [target] = document["requirements"]
    assert (target["text"], target["met"]) == ("goodput>=0.9", False)
    [row] = rows_of(document)
    assert target["value"] == row["goodput"]
    total = rows_of(document, "bill")[-1]
    assert (total["kwh"], total["usd"]) == (row["run_energy_kwh"], row["run_cost_usd"])
    assert "\nTargets\n- " in cli("model", *words, "--full").out
    assert "\n## Targets\n" in cli("model", *words, "-f", "md").out
    refused = cli("model", "-f", "csv", "--table", "bills")
    assert (refused.code, refused.out) == (2, "")
    assert "bill" in refused.err
