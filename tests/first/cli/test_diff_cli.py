"""`ckptcost diff`: files in, a difference out; budgets and refusals by exit code."""

from __future__ import annotations

import csv
import io
import json

import pytest
from statements import document, factor, statement
from whole_json import whole

from ckptcost.first.cli import main
from ckptcost.first.errors import InputError
from ckptcost.first.questions.diff import asked_of
from ckptcost.first.report.document import Report


@pytest.fixture(autouse=True)
def known(monkeypatch):
    monkeypatch.setitem(
        main.COMMANDS, "diff", main.COMMANDS.get("diff", "what changed between two")
    )


ZERO = (0.0,) * 5


@pytest.fixture
def files(tmp_path):
    """`files(a=statement, b=[statement, statement])` writes them and gives their paths."""

    def write(**named):
        paths = []
        for name, said in named.items():
            path = tmp_path / "secret-folder" / f"{name}.json"
            path.parent.mkdir(exist_ok=True)
            path.write_text(document(*(said if isinstance(said, list) else [said])).to_json())
            paths.append(str(path))
        return paths

    return write


def energy(kwh: float, **more):
    return statement((kwh, 0.0, 0.0, 0.0, 0.0), gpu_hours=ZERO, costs=(10.0, *ZERO[1:]), **more)


@pytest.mark.parametrize("form", ["text", "md", "json", "csv"])
def test_every_form(cli, files, form):
    old, new = files(old=energy(100.0), new=energy(120.0))
    done = cli("diff", old, new, "-f", form)
    assert (done.code, done.err) == (0, "")
    if form == "json":
        found = Report.model_validate_json(done.out).difference
        assert found.comparable
        assert found.delta.totals.energy.relative == pytest.approx(0.2)
        assert (found.past.source, found.current.source) == ("old.json", "new.json")
    elif form == "csv":
        rows = list(csv.DictReader(io.StringIO(done.out)))
        assert float(rows[0]["change"]) == 20.0
    else:
        assert (
            "20 % more energy (worse, within the uncertainty): 100 kWh before, 120 kWh now"
            in " ".join(done.out.split())
        )
        assert form == "md" or max(map(len, done.out.splitlines())) <= 80


def test_no_folder_is_told(cli, files, tmp_path):
    old, new = files(old=energy(100.0), new=energy(120.0))
    to = tmp_path / "out-folder" / "diff.json"
    to.parent.mkdir()
    for words in (["-o", str(to)], [f"--output={to}"], [f"-o{to}"]):
        assert cli("diff", old, new, "-f", "json", *words).code == 0
        assert "folder" not in to.read_text()


def test_a_second_run_is_byte_identical(cli, files):
    old, new = files(old=energy(100.0), new=energy(120.0))
    assert cli("diff", old, new, "-f", "json") == cli("diff", old, new, "-f", "json")


@pytest.mark.parametrize(
    ("budget", "code"),
    [
        ("kwh<=20 %", 0),
        ("kwh<20 %", 3),
        ("kwh<=19.9 %", 3),
        ("kwh<=20 kWh", 0),
        ("kwh<=20", 0),
        ("kwh<=0.02 MWh", 0),
        ("kwh<=19 kWh", 3),
        ("kwh<=-1 %", 3),
        ("usd<=0 %", 0),
        ("usd<=-1 USD", 3),
        ("usd<0", 3),
        ("kwh/checkpoint<=2.5 kWh", 0),
        ("kwh/checkpoint<=2.4 kWh", 3),
        ("kgco2e<=25 %", 0),
        ("gpu_hours<=0 %", 0),
        ("kgco2e <= +1 t", 0),
        ("kwh/hour_of_the_run<=20 %", 0),
    ],
)
def test_budgets(cli, files, budget, code):
    old, new = files(old=energy(100.0), new=energy(120.0))
    done = cli("diff", old, new, "-f", "json", "--budget-change", budget)
    assert done.code == code, done.err
    assert whole(done.out)["difference"]["budgets"][0]["met"] == (
        code == 0
    )  # a miss does not cost the result
    assert ("EXCEEDED" in done.err) == (code == 3)


def test_a_fall_meets_a_budget_below_zero(cli, files):
    old, new = files(old=energy(100.0), new=energy(80.0))
    assert cli("diff", old, new, "--budget-change", "kwh<=-20 %").code == 0
    assert cli("diff", old, new, "--budget-change", "kwh<=-21 %").code == 3


def test_from_nothing_exceeds_every_share(cli, files):
    old, new = files(old=energy(0.0), new=energy(1.0))
    assert cli("diff", old, new, "--budget-change", "kwh<=1000 %").code == 3
    assert cli("diff", old, old, "--budget-change", "kwh<=0 %").code == 0


def test_the_unknown_meets_nothing(cli, files):
    old, new = files(old=energy(100.0), new=energy(120.0, market=None))
    done = cli(
        "diff", old, new, "--budget-change", "market_kgco2e<=1e9 kg", "--budget-change", "kwh<=50 %"
    )
    assert done.code == 3
    assert done.err == "ckptcost: EXCEEDED: market_kgco2e<=1e9 kg, the change is not known\n"


@pytest.mark.parametrize(
    "budget",
    [
        "",
        "kwh",
        "kwh>=5 %",
        "mood<=5 %",
        "kwh<=abc %",
        "kwh<=5 USD",
        "kwh<=nan %",
        "kwh<=inf %",
        "usd<=1e400",
        "kwh/day<=1",
        "kwh<=--5 %",
    ],
)
def test_bad_budgets(cli, files, budget):
    old, new = files(old=energy(100.0), new=energy(120.0))
    done = cli("diff", old, new, "--budget-change", budget)
    assert (done.code, done.out) == (2, "")
    assert "--budget-change" in done.err
    assert done.err.count("\n") == 1


def test_a_budget_is_read_before_the_files():
    with pytest.raises(InputError, match="no quantity named"):
        asked_of("mood<=1 %")
    assert asked_of("gpu_hours<=7200").limit == 7200.0
    assert asked_of("kwh<=1 MWh").limit == pytest.approx(1000.0)


def test_what_cannot_be_compared_is_refused(cli, files):
    old, new = files(
        old=energy(100.0), new=energy(120.0).model_copy(update={"method_version": "2027.1"})
    )
    done = cli("diff", old, new)
    assert (done.code, done.out) == (2, "")
    assert (
        done.err
        == "ckptcost: new.json: cannot be compared with old.json: method: 2026.1 before, 2027.1"
        " now. --anyway compares them\n"
    )
    done = cli("diff", old, new, "--anyway")
    assert (done.code, done.err) == (0, "")
    assert "NOT COMPARABLE" in done.out
    document = whole(cli("diff", old, new, "--anyway", "-f", "json").out)["difference"]
    assert document["comparable"] is False
    assert [(each["code"], each["refuses"]) for each in document["incomparable_reasons"]] == [
        ("METHOD", True)
    ]


def test_other_prices_are_flagged_and_computed(cli, files):
    other = energy(120.0)
    dearer = [
        factor("site.tariff", 9e-8, "usd_per_j", "0.324 USD/kWh") if f.id == "site.tariff" else f
        for f in other.factors
    ]
    old, new = files(old=energy(100.0), new=other.model_copy(update={"factors": dearer}))
    done = cli("diff", old, new)
    assert (done.code, done.err) == (0, "")
    assert "Not like for like" in done.out
    assert "site.tariff" in done.out
    assert "0.324 USD/kWh" in done.out


def test_one_of_several(cli, files):
    several = [
        energy(kwh, name=f"case {kwh:g}", run_id=f"abc-tier{kwh:g}")
        for kwh in (100.0, 110.0, 150.0)
    ]
    old, new = files(old=several, new=several)
    done = cli("diff", old, new)
    assert done.code == 2
    assert "holds 3 statements" in done.err
    assert "abc-tier110" in done.err
    done = cli("diff", old, new, "--case", "tier100", "--case", "case 150", "-f", "json")
    assert whole(done.out)["difference"]["delta"]["totals"]["energy"]["change"] == 50.0
    assert (
        whole(cli("diff", old, new, "--case", "abc-tier110", "-f", "json").out)["difference"][
            "delta"
        ]["totals"]["energy"]["change"]
        == 0.0
    )
    assert cli("diff", old, new, "--case", "nobody").code == 2
    assert cli("diff", old, new, "--case", "a", "--case", "b", "--case", "c").code == 2


@pytest.mark.parametrize("content", [None, "", "{", "[]", '{"schema_name": "other"}', "\xff"])
def test_no_statement_is_one_line(cli, files, tmp_path, content):
    (old,) = files(old=energy(1.0))
    bad = tmp_path / "bad.json"
    if content is not None:
        bad.write_text(content, "latin-1")
    done = cli("diff", old, str(bad))
    assert (done.code, done.out) == (2, "")
    assert "bad.json" in done.err
    assert "Traceback" not in done.err
    assert cli("diff", str(bad), old).code == 2


def test_reports_and_cases_are_read(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert (
        cli(
            "model",
            "-s",
            "small-8b",
            "--tier",
            "nas-hdd",
            "--tier",
            "flash-shared",
            "-f",
            "json",
            "-o",
            "both.json",
        ).code
        == 0
    )
    assert (
        cli(
            "model", "-s", "small-8b", "--tier", "flash-shared", "-f", "json", "-o", "flash.json"
        ).code
        == 0
    )
    names = [
        row["case"]
        for row in json.loads((tmp_path / "both.json").read_text("utf-8"))["tables"]["cases"][
            "rows"
        ]
    ]
    done = cli(
        "diff", "both.json", "both.json", "--case", names[0], "--case", names[1], "-f", "json"
    )
    assert done.code == 0, done.err
    ids = [
        whole(done.out)["difference"][which]["statement"]["subject"]["run_id"]
        for which in ("past", "current")
    ]
    assert [each.split("-", 1)[1] for each in ids] == [name.replace("@", "-") for name in names]
    same = json.loads(
        cli(
            "diff", "both.json", "flash.json", "--case", names[1], "--case", names[1], "-f", "json"
        ).out
    )
    assert same["difference"]["delta"]["totals"]["energy"]["change"] == 0


def test_a_line_known_on_one_side_only_is_told_and_the_rest_computed(
    cli, tmp_path, monkeypatch, unmetered_slow_tiers
):
    """The energy of writing is known of one tier and not of the other: no change of the sum, and no
    refusal."""
    monkeypatch.chdir(tmp_path)
    for tier in ("nas-hdd", "flash-shared"):
        assert (
            cli("model", "-s", "small-8b", "--tier", tier, "-f", "json", "-o", f"{tier}.json").code
            == 0
        )
    done = cli("diff", "nas-hdd.json", "flash-shared.json", "-f", "json")
    assert done.code == 0, done.err
    found = whole(done.out)["difference"]
    assert "UNKNOWN_LINE" in {reason["code"] for reason in found["incomparable_reasons"]}
    assert found["comparable"] is False
    assert found["delta"]["totals"]["energy"]["change"] is None
    assert found["delta"]["totals"]["gpu_time_lost"]["change"] < 0


def test_a_difference_with_a_quantity_of_nobody_is_refused(cli, files, tmp_path):
    old, new = files(old=energy(100.0), new=energy(120.0))
    document = whole(cli("diff", old, new, "--anyway", "-f", "json").out)
    file = tmp_path / "changed.json"
    document["tables"]["changes"]["rows"][3]["quantity"] = "emissions_nowhere"
    file.write_text(json.dumps(document), "utf-8")
    for form in ("html", "text"):
        refused = cli("report", str(file), "-f", form)
        assert (refused.code, refused.err.count("tables.changes.rows.3.quantity")) == (2, 1)
    del document["tables"]["changes"]["columns"]["reason"]
    for row in document["tables"]["changes"]["rows"]:
        row["quantity"] = "energy"
        del row["reason"]
    file.write_text(json.dumps(document), "utf-8")
    refused = cli("report", str(file), "-f", "html")
    assert (refused.code, refused.err.count("tables.changes")) == (2, 1)
