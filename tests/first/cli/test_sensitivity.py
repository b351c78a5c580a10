"""`ckptcost sensitivity`: what the command prints, and that it agrees with `ckptcost model`."""

from __future__ import annotations

import csv
import io

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
COLUMN = {
    "goodput": "goodput",
    "wall": "wall_s",
    "gpu_hours": "run_gpu_hours",
    "kwh": "run_energy_kwh",
    "usd": "run_cost_usd",
    "kgco2e": "run_location_kgco2e",
}


def document(ran) -> dict:
    assert (ran.code, ran.err) == (0, "")
    return whole(ran.out)


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("of", COLUMN)
def test_every_preset_and_result(cli, name, of):
    done = cli("sensitivity", "-s", name, "--of", of)
    assert (done.code, done.err) == (0, "")
    assert max(map(len, done.out.splitlines())) <= 80
    assert "nan" not in done.out.lower().replace("finan", "").replace("maintenan", "")
    assert "Measure " in done.out


@pytest.mark.parametrize("form", ["md", "csv", "json"])
@pytest.mark.parametrize("replan", [[], ["--replan"]])
def test_every_form(cli, form, replan):
    done = cli("sensitivity", "-s", "llama31-405b-16k", "-f", form, *replan)
    assert (done.code, done.err) == (0, "")
    if form == "json":
        found = whole(done.out)
        assert (found["kind"], found["question"]["replan"]) == ("sensitivity", bool(replan))


@pytest.mark.parametrize(
    ("path", "low", "high"),
    [
        ("failures.rate_factor", "0.3", "5.2"),
        ("site.pue", "1.08", "1.56"),
        ("cluster.gpu_stall", "94.5 W", "315 W"),
    ],
)
@pytest.mark.parametrize("of", COLUMN)
def test_the_ends_of_a_bar_are_the_models(cli, path, low, high, of):
    """At a fixed interval, what the tornado says of an end is what `model --set` says."""
    fixed = ("-s", "llama31-405b-16k", "--interval", "20 min")
    rows = document(cli("sensitivity", *fixed, "--of", of, "-f", "json"))["tables"]["tornado"][
        "rows"
    ]
    row = next(each for each in rows if each["input"] == path)
    for end, value in (("at_low", low), ("at_high", high)):
        asked = document(cli("model", *fixed, "--set", f"{path}={value}", "-f", "json"))
        model = asked["tables"]["cases"]["rows"][0]
        assert row[end] == pytest.approx(model[COLUMN[of]], rel=1e-9)


def test_all_inputs_are_for_programs_and_a_few_for_people(cli):
    few = cli("sensitivity", "-s", "llama31-405b-16k", "--top", "2")
    assert "more in -f csv and -f json" in " ".join(few.out.split())
    found = document(cli("sensitivity", "-s", "llama31-405b-16k", "--top", "2", "-f", "json"))[
        "tables"
    ]
    assert (
        len(found["tornado_top"]["rows"])
        == len(found["measure_next_top"]["rows"])
        == len(found["elasticities_top"]["rows"])
        == 2
    )
    inputs = {row["input"] for row in found["elasticities"]["rows"]}
    [bill] = document(cli("model", "-s", "llama31-405b-16k", "-f", "json"))["statements"]
    factors = {f["id"] for f in bill["factors"]}
    copies = {
        copy
        for row in found["elasticities"]["rows"]
        for copy in (row["copies"] or "").split("; ")
        if copy
    }
    assert inputs | copies == factors | {"policy.interval"}


def test_tables_as_csv(cli):
    rows = list(
        csv.DictReader(io.StringIO(cli("sensitivity", "-f", "csv", "--table", "elasticities").out))
    )
    assert {"input", "elasticity", "note"} <= set(rows[0])
    assert next(row for row in rows if row["input"] == "site.pue")["elasticity"] == "1.0"
    swings = list(csv.DictReader(io.StringIO(cli("sensitivity", "-f", "csv").out)))
    widths = [float(row["swing_kwh"]) for row in swings]
    assert widths == sorted(widths, reverse=True)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--of", "joules"], "no result named 'joules'"),
        (["--top", "0"], "--top"),
        (["--top", "few"], "--top"),
        (["--top", "1.5"], "--top"),
        (["--replan"], "there is no optimum to choose again"),
        (["-s", "no-such"], "no-such"),
        (["--set", "tier.write=1 kB/s"], "never finish"),
        (["--table", "x"], "--table"),
        (["-f", "csv", "--table", "x"], "no table named"),
        (["--set", "nonsense"], "not path=value"),
    ],
)
def test_wrong_input_is_one_line_and_2(cli, words, says):
    done = cli("sensitivity", *words)
    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert done.err.count("\n") == 1


def test_the_same_bytes_twice(cli):
    words = ("sensitivity", "-s", "small-8b", "-f", "json")
    assert cli(*words).out == cli(*words).out
