"""`ckptcost solve`: the answer in words, the exit code, every format, and questions that are
refused."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest
from whole_json import whole

from ckptcost.first.report.document import Report

LLAMA = ("-s", "llama31-405b-16k")
KNOBS = ["write", "read", "bandwidth", "stall", "mtbf", "recovery", "interval", "saves-per-day"]


def flat(text: str) -> str:
    return " ".join(text.split())


def row(document: dict, name: str, table: str = "answer") -> dict:
    return next(row for row in document["tables"][table]["rows"] if row["id"] == name)


def test_the_bandwidth_a_goodput_needs(cli):
    done = cli("solve", "write", *LLAMA, "--for", "goodput>=0.9")
    assert done.code == 0
    assert (
        "It takes a write rate of 527 GB/s, 3.15 times today's 168 GB/s: goodput is 90 % by the"
        " model, with 582 s" in flat(done.out)
    )
    assert "To first order 726 GB/s: bytes / (((1-G) - L/M)^2 * M/2 - fixed time)." in flat(
        done.out
    )
    assert "chosen anew at every trial, the best for time" in flat(done.out)
    assert "met: goodput>=0.9" in done.out
    # and the model agrees, asked forwards
    there = ("--set", "tier.write=526.8095 GB/s", "--set", "tier.read=167.5 GB/s", "-f", "json")
    [values] = whole(cli("model", *LLAMA, *there).out)["tables"]["cases"]["rows"]
    assert values["goodput"] == pytest.approx(0.9, abs=1e-7)


@pytest.mark.parametrize("what", KNOBS)
@pytest.mark.parametrize(
    "target",
    [
        "goodput>=0.86",
        "wall<=60 days",
        "gpu_hours<=3200000",
        "kwh<=3 GWh",
        "usd<=20000000",
        "kgco2e<=900 tCO2e",
    ],
)
def test_every_quantity_and_target(cli, what, target):
    done = cli("solve", what, *LLAMA, "--for", target, "-f", "json")
    assert done.code in (0, 3)
    document = whole(done.out)
    Report.model_validate(document)
    assert document["kind"] == "solution"
    gate = document["requirements"][0]
    assert gate["met"] == (done.code == 0)
    status = document["tables"]["answer"]["rows"][0]["status"]
    assert (status == "infeasible") == (done.code == 3)
    if status in ("reached", "already") and what not in ("interval", "saves-per-day"):
        assert gate["value"] == pytest.approx(
            gate["limit"], rel=1e-9
        )  # just met, whether that is more or less than today
    text = cli("solve", what, *LLAMA, "--for", target)
    assert text.code == done.code
    assert max(len(line) for line in text.out.splitlines()) <= 80
    assert not re.search(r"\b(nan|inf|None|e-\d\d)\b", text.out)


def test_out_of_reach_says_what_stands_in_the_way(cli):
    done = cli("solve", "write", *LLAMA, "--for", "goodput>=0.975")
    assert done.code == 3
    assert (
        "INFEASIBLE: even with an infinitely fast write goodput is 92.1 %: detection and restart"
        in flat(done.out)
    )
    assert "MISSED: goodput>=0.975, it is 92.1 % [the best that can be had]" in done.err


def test_the_projection_to_100k(cli):
    done = cli("solve", "stall", "-s", "micron-100k", "--for", "goodput>=0.975")
    assert done.code == 3
    said = flat(done.out)
    assert "INFEASIBLE" in said
    assert "MISSED: goodput>=0.975" in said
    assert (
        "a stall per save of at most 0.549 s and 43.2 s of training between saves (1,970 saves a"
        " day)" in said
    )
    assert "a stall of 0.54 s = (1-G)^2 * M/2" in said
    assert "failures / (1-G) = 50 / 0.025 = 2,000 saves a day" in said
    done = cli("solve", "stall", "-s", "micron-100k", "--for", "goodput>=0.975", "--full")
    assert re.search(r"^57.8 s +no", done.out, re.M)


def test_saves_a_day_of_the_projection(cli):
    done = cli("solve", "saves-per-day", "-s", "micron-100k", "--for", "goodput>=0.975")
    assert done.code == 3
    assert re.search(r"could it be met: by 1,520 to 2,810 saves a day", flat(done.out))


def test_enough_already(cli):
    done = cli("solve", "write", *LLAMA, "--for", "goodput>=0.8")
    assert done.code == 0
    assert "Today's write rate, 168 GB/s, is enough" in flat(done.out)
    assert "It could be as low as" in flat(done.out)


def test_without_failures_anything_will_do(cli):
    done = cli(
        "solve",
        "recovery",
        *LLAMA,
        "--set",
        "failures.rate=0 /1000 node-days",
        "--for",
        "goodput>=0.9",
    )
    assert done.code == 0
    assert "Any time to get back meets it" in flat(done.out)
    assert "one save in the run is enough" in flat(done.out)


def test_a_kept_interval_is_said(cli):
    done = cli(
        "solve",
        "write",
        *LLAMA,
        "--interval",
        "10 min",
        "--keep-interval",
        "--for",
        "goodput>=0.89",
        "-f",
        "json",
    )
    document = whole(done.out)
    assert document["question"]["keep_interval"] is True
    assert row(document, "interval")["needed"] == 600.0
    assert "kept" in document["about"][1]


def test_steps_and_saves_a_day(cli):
    for more in (
        ("--set", "policy.steps=50", "--set", "policy.step=12 s"),
        ("--set", "policy.per_day=144"),
    ):
        document = json.loads(
            cli(
                "solve",
                "stall",
                *LLAMA,
                *more,
                "--keep-interval",
                "--for",
                "goodput>=0.88",
                "-f",
                "json",
            ).out
        )
        assert row(document, "interval")["today"] == 600.0


def test_two_tiers(cli):
    more = (
        "--tier",
        "node-ram",
        "--set",
        "second_tier.id=flash-shared",
        "--set",
        "policy.second_every=10",
    )
    done = cli("solve", "bandwidth", *LLAMA, *more, "--for", "goodput>=0.9", "-f", "json")
    assert done.code in (0, 3)
    assert whole(done.out)["requirements"][0]["value"] > 0


def test_csv_and_markdown(cli):
    words = ("solve", "write", *LLAMA, "--for", "goodput>=0.9")
    rows = list(csv.DictReader(io.StringIO(cli(*words, "-f", "csv").out)))
    assert rows[0]["id"] == "write"
    assert float(rows[0]["needed"]) == pytest.approx(526.81e9, rel=1e-4)
    assert rows[0]["unit"] == "bytes_per_s"
    assert rows[0]["status"] == "reached"
    parts = list(csv.DictReader(io.StringIO(cli(*words, "-f", "csv", "--table", "parts").out)))
    assert sum(float(each["then"]) for each in parts) == pytest.approx(1.0)
    assert "| write rate | 168 GB/s | 527 GB/s | 3.15 |" in cli(*words, "-f", "md").out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["write"], "--for"),
        (["write", "--for", "goodput>=1.2"], "goodput lies between 0 and 1"),
        (["write", "--for", "goodput"], "is not name>=value"),
        (["write", "--for", "usd<=-5"], "negative"),
        (["write", "--for", "kwh<=5 USD"], "expected j"),
        (["write", "--for", "goodput<=0.9"], "worse run"),
        (["write", "--for", "goodput.p95>=0.9"], "percentile"),
        (["write", "--for", "saves<=10"], "no target to solve for"),
        (["bandwith", "--for", "goodput>=0.9"], "did you mean 'bandwidth'"),
        (["--for", "goodput>=0.9"], "WHAT"),
        (["interval", "--keep-interval", "--for", "goodput>=0.9"], "--keep-interval"),
        (["write", "--for", "goodput>=0.9", "--capex", "5 USD"], "--capex"),
        (["write", "--for", "goodput>=0.9", "--against", "nas-hdd"], "--against"),
        (["write", "--for", "goodput>=0.9", "--tier", "nas-hd"], "did you mean"),
        (["write", "--for", "goodput>=0.9", "--table", "answer"], "--table"),
        (["price", "--tier", "nas-hdd"], "--against"),
        (
            ["price", "--tier", "nas-hdd", "--against", "flash-shared", "--for", "goodput>=0.9"],
            "--for",
        ),
        (
            ["price", "--tier", "nas-hdd", "--against", "flash-shared", "--capex", "500000"],
            "--capex",
        ),
        (
            ["price", "--tier", "nas-hdd", "--against", "flash-shared", "--capex", "-5 USD"],
            "--capex",
        ),
        (["price", "--tier", "nas-hdd", "--against", "flash-shared", "--capex", "5 GB"], "--capex"),
    ],
)
def test_questions_that_are_refused(cli, words, message):
    done = cli("solve", *words)
    assert done.code == 2
    assert done.out == ""
    assert message in done.err
    assert len(done.err.splitlines()) == 1


def test_an_unknown_price_is_named(cli, unpriced_gpus):
    done = cli("solve", "write", *LLAMA, "--set", "cluster.id=gb200-nvl72", "--for", "usd<=100")
    assert done.code == 2
    assert "cluster.gpu_price: the cost of this run is not known" in done.err
    assert "--set cluster.gpu_price=" in done.err
    price = cli(
        "solve",
        "price",
        *LLAMA,
        "--set",
        "cluster.id=gb200-nvl72",
        "--tier",
        "nas-hdd",
        "--against",
        "flash-shared",
    )
    assert price.code == 2
    assert "cluster.gpu_price" in price.err


def test_price(cli):
    done = cli(
        "solve",
        "price",
        *LLAMA,
        "--tier",
        "generic-pfs",
        "--against",
        "flash-shared",
        "--capex",
        "$5000000",
        "--full",
    )
    assert done.code == 0
    said = flat(done.out)
    assert re.search(
        r"flash-shared is worth at least [\d,M.]+ USD an hour more than generic-pfs", said
    )
    assert "The price of the slower tier, generic-pfs, is not known" in said
    assert re.search(
        r"A purchase of 5M USD has paid after [\d.,]+ \w+ of this job, [\d,.kM]+ GPU-hours", said
    )
    assert "a month of 730 h" in said
    assert "TB-month" in said
    assert max(len(line) for line in done.out.splitlines()) <= 80


def test_price_with_both_prices_known(cli):
    more = (
        "--tier",
        "object-store",
        "--against",
        "aws-fsx-p2-125",
        "--set",
        "tier.capacity=500 TiB",
    )
    done = cli("solve", "price", *LLAMA, *more)
    assert done.code == 0
    assert "below break-even: it pays" in flat(done.out)
    document = whole(cli("solve", "price", *LLAMA, *more, "-f", "json").out)
    Report.model_validate(document)
    hour, month = row(document, "hour", "prices"), row(document, "month", "prices")
    provisioned = row(document, "tb_month_provisioned", "prices")
    assert month["breakeven"] == pytest.approx(hour["breakeven"] * 730)
    assert hour["breakeven"] == pytest.approx(hour["premium"] + hour["slow"])
    # 0.145 USD a GiB-month
    assert provisioned["fast"] == pytest.approx(0.145e12 / 2**30)
    assert provisioned["breakeven"] == pytest.approx(month["breakeven"] / (500 * 2**40 / 1e12))
    assert len(document["scenarios"]) == 2


def test_bandwidth_keeps_the_proportion_of_reading_to_writing(cli):
    document = json.loads(
        cli(
            "solve",
            "bandwidth",
            *LLAMA,
            "--set",
            "tier.read=335 GB/s",
            "--for",
            "goodput>=0.9",
            "-f",
            "json",
        ).out
    )
    write, read = row(document, "bandwidth"), row(document, "read")
    assert (write["today"], read["today"]) == (167.5e9, 335e9)
    assert read["needed"] == pytest.approx(2 * write["needed"], rel=1e-9)
    assert write["factor"] == pytest.approx(write["needed"] / write["today"], rel=1e-9)


@pytest.mark.parametrize(
    ("what", "name"), [("interval", "interval"), ("saves-per-day", "saves_per_day")]
)
def test_with_todays_way_back_a_circumstance_is_the_answer(cli, what, name):
    document = whole(cli("solve", what, *LLAMA, "--for", "goodput>=0.86", "-f", "json").out)
    ends = sorted((row(document, name)["shortest"], row(document, name)["longest"]))
    found = document["tables"]["circumstances"]["rows"]
    assert (found[-1]["from"], found[-1]["to"]) == pytest.approx(ends, rel=1e-6)
    assert [each["from"] for each in found] == sorted(
        each["from"] for each in found
    )  # the longer the way back, the narrower
    assert [each["to"] for each in found] == sorted((each["to"] for each in found), reverse=True)


def test_few_saves_a_day_are_said_before_many(cli):
    number = r"([\d.,]+)"
    for what, said in (
        ("interval", rf"that is {number} to {number} saves a day"),
        ("saves-per-day", rf"It takes {number} to {number} saves a day"),
    ):
        few, many = re.search(
            said, flat(cli("solve", what, *LLAMA, "--for", "goodput>=0.86").out)
        ).groups()
        assert float(few.replace(",", "")) < float(many.replace(",", ""))


def test_what_is_left_of_an_asynchronous_save_is_stall_and_drain(cli):
    words = (
        "solve",
        "write",
        *LLAMA,
        "--set",
        "policy.mode=async",
        "--set",
        "tier.setup=30 s",
        "--for",
        "goodput>=0.99",
    )
    document = whole(cli(*words, "-f", "json").out)
    best = row(document, "mean_stall")["at_best"] or 0.0, row(document, "lag")["at_best"]
    said = re.search(r"A save would still take ([\d.]+) s", " ".join(document["findings"]))
    assert float(said[1]) == pytest.approx(sum(best), rel=5e-3)
    assert best[1] > 30
