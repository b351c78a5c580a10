"""`ckptcost export` and the documents of `ckptcost report`: every format from the command line, and
everything that can be wrong."""

from __future__ import annotations

import csv
import io
import json
import stat
from pathlib import Path

import pytest
from nobody import may_write_everywhere
from whole_json import whole

from ckptcost.first.exports.formats import FORMATS
from ckptcost.first.present.amounts import number

TRACE = str(Path(__file__).parents[3] / "data" / "traces" / "simulated-8gpu.jsonl")
HOURS = "time,gCO2e/kWh\n" + "".join(
    f"2026-{10 + (n // 24) // 31:02d}-{1 + (n // 24) % 31:02d}T{n % 24:02d}:00Z,{200 + n % 24}\n"
    for n in range(24 * 55)
)


@pytest.fixture
def report(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert (
        cli(
            "model",
            "-s",
            "small-8b",
            "--tier",
            "nas-hdd",
            "--tier",
            "generic-pfs",
            "-f",
            "json",
            "-o",
            "report.json",
        ).code
        == 0
    )
    return "report.json"


def test_the_list_names_every_export_and_its_reader(cli):
    done = cli("export", "--list")
    assert done.code == 0
    for each in FORMATS.values():
        assert each.id in done.out
        assert each.title in done.out
    assert [line for line in done.out.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_of_a_plan(cli, report, name, tmp_path):
    if name == "parquet":
        pytest.importorskip("pyarrow")
    wanted = FORMATS[name]
    done = cli("export", report, "--to", name, "--start", "2026-09-01", "-o", "out")
    assert done.code == 0, done.err
    found = tmp_path / "out"
    assert found.is_dir() == wanted.folder
    files = list(found.iterdir()) if wanted.folder else [found]
    for file in files:
        assert file.stat().st_size > 0
        assert str(tmp_path).encode() not in file.read_bytes()


ONE_OF_TWO = (
    "ckptcost: {}: nas-hdd@1008 alone is exported, of 2 cases; --case names another, such as"
    " generic-pfs@1008\n"
)


def test_a_file_goes_to_stdout_where_none_is_named(cli, report):
    done = cli("export", report, "--to", "prometheus")
    assert (done.code, done.err) == (0, ONE_OF_TWO.format("report.json"))
    assert done.out.startswith("# HELP")
    assert cli("export", report, "--to", "prometheus", "--case", "nas-hdd@1008").err == ""


def test_a_chart_goes_on_where_the_interval_changes(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = []
    for every in ("1 h", "2 h"):
        assert (
            cli("model", "-s", "small-8b", "--interval", every, "-f", "json", "-o", every).code == 0
        )
        told = whole(cli("export", every, "--to", "github-benchmark").out)
        names.append({entry["name"] for entry in told})
    assert names[0] == names[1]


def test_ways_to_do_one_job_are_not_added_up(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wanted = ("compare", "--with", "policy.mode=async", "-f", "json", "-o", "both.json")
    assert cli(*wanted).code == 0
    for name in (name for name, each in FORMATS.items() if each.summed):
        done = cli("export", "both.json", "--to", name, "--start", "2026-08-01")
        assert (done.code, "holds 2 ways to do one job" in done.err) == (2, True)
        chosen = ("--case", "B", "-o", f"b.{name}")
        assert cli("export", "both.json", "--to", name, "--start", "2026-08-01", *chosen).code == 0
    assert cli("export", "both.json", "--to", "statement").code == 0


@pytest.mark.parametrize("name", [n for n, each in FORMATS.items() if each.dated and n != "boamps"])
def test_a_plan_without_dates_is_told_to_say_when(cli, report, name):
    done = cli("export", report, "--to", name)
    assert done.code == 2
    assert "--start" in done.err


def test_a_run_has_its_dates_and_takes_a_site(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = cli("export", TRACE, "--to", "statement", "--site", "usa", "--label", "team=infra")
    (s,) = whole(done.out)["statements"]
    assert (s["kind"], s["subject"]["site_id"], s["subject"]["team"]) == (
        "measured",
        "usa",
        "infra",
    )
    assert s["period_start"].endswith("Z")
    assert s["totals"]["emissions_location"]["value"] > 0
    assert s["totals"]["emissions_market"]["value"] is None
    assert cli("export", TRACE, "--to", "codecarbon", "--site", "usa").out.count("\n") > 2


def test_hours_and_contracts(cli, report, tmp_path):
    (tmp_path / "hours.csv").write_text(HOURS, "utf-8")
    (tmp_path / "contracts.toml").write_text(
        '[[site]]\nid = "usa"\nresidual = "0.4 kg/kWh"\n'
        '[[site.contract]]\nname = "W"\ninstrument = "PPA"\nshare = "50 %"\nfactor = "0 g/kWh"\n',
        "utf-8",
    )
    asked = ("--start", "2026-10-01", "--grid", "hours.csv", "--contracts", "contracts.toml")
    done = cli("export", report, "--to", "statement", *asked)
    assert done.code == 0, done.err
    document = whole(done.out)
    (s,) = document["statements"]
    assert set(s["series"]["market_kgco2e_per_kwh"]) == {0.2}
    assert len(set(s["series"]["grid_kgco2e_per_kwh"])) == 24
    assert {each["path"] for each in document["reproducibility"]["inputs"]} == {
        "hours.csv",
        "contracts.toml",
    }
    assert "W" in [c["name"] for c in s["contracts"]]
    page = cli("report", report, "-f", "html", *asked)
    assert page.code == 0
    assert "<script>" not in page.out
    table = list(csv.DictReader(io.StringIO(cli("report", report, "-f", "csv", *asked).out)))
    assert {row["component"] for row in table} >= {"gpu_wait", "host_wait"}


def test_cases_of_a_report(cli, report):
    names = [
        row["case"]
        for row in json.loads(Path(report).read_text("utf-8"))["tables"]["cases"]["rows"]
    ]
    done = cli("export", report, "--to", "prometheus", "--case", names[1])
    one, other = (name.replace("@", "-") for name in names)
    assert other in done.out
    assert one not in done.out
    assert cli("export", report, "--to", "prometheus", "--case", "nothing").code == 2


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--to", "prometheus"], 2, "names nothing to export"),
        (["report.json"], 2, "says no format"),
        (["report.json", "--to", "promethius"], 2, "did you mean 'prometheus'"),
        (["nowhere.json", "--to", "prometheus"], 2, "there is no such file"),
        (["nowhere", "--to", "prometheus"], 2, "there are no runs"),
        (["report.json", "--to", "prometheus", "--grid", "nowhere.csv"], 2, "nowhere.csv"),
        (["report.json", "--to", "prometheus", "--grid-tz", "UTC"], 2, "belongs to --grid"),
        (["report.json", "--to", "prometheus", "--start", "soon"], 2, "is no time"),
        (["report.json", "--to", "prometheus", "--site", "usa"], 2, "said of recorded runs"),
        (
            ["report.json", "--to", "prometheus", "-o", "no/such/place.prom"],
            4,
            "could not be written",
        ),
        (["report.json", "--to", "datapackage", "-o", "-"], 2, "is a folder"),
        (["report.json", "--to", "prometheus", "-o", ""], 4, "names no file"),
        (["report.json", "report.json", "--to", "prometheus"], 2, "two of the statements"),
        ([TRACE, "--to", "prometheus", "--site", "atlantis"], 2, "atlantis"),
        ([TRACE, "--to", "prometheus", "--start", "2026-01-01"], 2, "dates of its own"),
    ],
)
def test_what_is_wrong_is_one_line(cli, report, words, code, said):
    done = cli("export", *words)
    assert (done.code, done.out) == (code, "")
    assert said in done.err
    assert done.err.count("\n") == 1


def test_a_folder_is_replaced_only_when_told_and_only_one_of_ours(cli, report, tmp_path):
    asked = ("export", report, "--to", "datapackage", "-o", "cost")
    assert cli(*asked).code == 0
    before = (tmp_path / "cost" / "datapackage.json").read_bytes()
    refused = cli(*asked)
    assert (refused.code, "is there already" in refused.err) == (4, True)
    assert cli(*asked, "--force").code == 0
    assert (tmp_path / "cost" / "datapackage.json").read_bytes() == before
    (tmp_path / "cost" / "mine.txt").write_text("mine", "utf-8")
    assert "holds other files too" in cli(*asked, "--force").err
    assert (tmp_path / "cost" / "mine.txt").read_text("utf-8") == "mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "cost",
        "report.json",
    ]  # nothing half-written beside it


@pytest.mark.skipif(may_write_everywhere(), reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(cli, report, tmp_path):
    (tmp_path / "locked").mkdir()
    (tmp_path / "locked").chmod(stat.S_IRUSR | stat.S_IXUSR)
    assert cli("export", report, "--to", "datapackage", "-o", "locked/cost").code == 4


@pytest.mark.parametrize("form", ["text", "md", "csv", "json", "html"])
def test_a_report_is_told_again_from_its_file(cli, report, form):
    done = cli("report", report, "-f", form)
    assert done.code == 0, done.err
    if form != "html":
        straight = cli(
            "model", "-s", "small-8b", "--tier", "nas-hdd", "--tier", "generic-pfs", "-f", form
        )
        one, other = done.out, straight.out
        if form == "json":  # the command that it names is the one that wrote it
            one, other = (json.dumps(json.loads(text) | {"tool": None}) for text in (one, other))
        assert one == other


@pytest.mark.parametrize("form", ["text", "md", "csv"])
@pytest.mark.parametrize(
    "words",
    [
        ("compare", "-s", "small-8b", "--with", "policy.mode=async", "--require", "goodput>=0.1"),
        ("simulate", "-s", "small-8b", "--runs", "50"),
        ("sensitivity", "-s", "small-8b"),
        ("report", TRACE),
    ],
)
def test_studies_are_told_again_letter_by_letter(cli, tmp_path, monkeypatch, words, form):
    monkeypatch.chdir(tmp_path)
    assert cli(*words, "-f", "json", "-o", "study.json").code == 0
    assert cli("report", "study.json", "-f", form).out == cli(*words, "-f", form).out


@pytest.mark.parametrize(
    "words",
    [
        ("compare", "-s", "small-8b", "--with", "policy.mode=async"),
        ("simulate", "-s", "small-8b", "--runs", "50"),
        ("report", TRACE),
    ],
)
def test_pages_of_studies(cli, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    assert cli(*words, "-f", "json", "-o", "study.json").code == 0
    done = cli("report", "study.json", "-f", "html")
    assert done.code == 0, done.err
    assert "Content-Security-Policy" in done.out


def test_the_page_of_a_run_shows_its_power_and_checkpoints(cli):
    done = cli("report", TRACE, "-f", "html")
    assert done.code == 0
    assert "SIMULATED" in done.out
    assert done.out.count("<svg") >= 2


def test_no_secret_of_the_environment_gets_out(cli, report, monkeypatch, tmp_path):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2-hunter2")
    for name in FORMATS:
        cli("export", report, "--to", name, "--start", "2026-09-01", "-o", f"out-{name}")
    cli("report", report, "-f", "html", "-o", "page.html")
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert b"hunter2" not in path.read_bytes()
            assert str(tmp_path).encode() not in path.read_bytes()


def test_a_page_under_other_factors_does_not_tell_the_old_ones(cli, report, tmp_path):
    (tmp_path / "c.toml").write_text('[[site]]\nid = "usa"\nresidual = "0.4 kg/kWh"\n', "utf-8")
    assert "kgCO2e is location-based" in cli("report", report, "-f", "html").out
    page = cli("report", report, "-f", "html", "--contracts", "c.toml").out
    assert "Market-based: not known" not in page
    told = cli("export", report, "--to", "statement", "--contracts", "c.toml").out
    market = json.loads(told)["statements"][0]["totals"]["emissions_market"]["value"]
    assert f"Market-based: {number(market)} kgCO2e." in page
    (tmp_path / "hours.csv").write_text(HOURS, "utf-8")
    hourly = ("--start", "2026-10-01", "--grid", "hours.csv")
    page = cli("report", report, "-f", "html", *hourly)
    assert page.code == 0, page.err
    assert "kgCO2e is location-based" not in page.out


def test_what_a_kill_between_two_renames_left_comes_back(cli, report, tmp_path):
    """Only the older folder was moved away, and the newer one is not yet in its place."""
    asked = ("export", report, "--to", "datapackage", "-o", "cost")
    assert cli(*asked).code == 0
    before = (tmp_path / "cost" / "datapackage.json").read_bytes()
    (tmp_path / "cost").rename(tmp_path / ".cost.abc.old.part")
    (tmp_path / ".cost.abc.part").mkdir()
    refused = cli(*asked)
    assert refused.code == 4
    assert (tmp_path / "cost" / "datapackage.json").read_bytes() == before
    assert cli(*asked, "--force").code == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cost", "report.json"]


@pytest.mark.parametrize("start", [b"\xef\xbb\xbf", b"\n \n"])
def test_a_document_with_a_mark_of_its_encoding(cli, report, tmp_path, start):
    (tmp_path / "marked.json").write_bytes(start + (tmp_path / "report.json").read_bytes())
    assert cli("report", "marked.json").out == cli("report", report).out


def test_a_document_in_another_encoding_is_named(cli, report, tmp_path):
    (tmp_path / "wide.json").write_text((tmp_path / "report.json").read_text("utf-8"), "utf-16")
    done = cli("report", "wide.json")
    assert (done.code, "is in UTF-16" in done.err) == (2, True)


def test_documents_come_through_pipes(shell, report, tmp_path):
    text = (tmp_path / "report.json").read_text("utf-8")
    for words in (("report", "-"), ("report", "/dev/stdin"), ("export", "-", "--to", "prometheus")):
        done = shell(*words, input=text, cwd=tmp_path)
        assert done.returncode == 0
        assert done.stderr in ("", ONE_OF_TWO.format("-"))
    same = shell("diff", "-", "report.json", input=text, cwd=tmp_path)
    assert same.returncode == 0, same.stderr
    assert str(tmp_path) not in same.stdout


def test_a_key_that_comes_twice_is_refused(cli, report, tmp_path):
    text = (tmp_path / "report.json").read_text("utf-8")
    (tmp_path / "twice.json").write_text(text.replace("{", '{"currency": "EUR",', 1), "utf-8")
    for command in ("report", "check"):
        done = cli(command, "twice.json")
        assert (done.code, "has the key 'currency' twice" in done.err) == (2, True)
    (tmp_path / "long.json").write_text('{"a": ' + "1" * 6000 + "}", "utf-8")
    assert "thousands of digits" in cli("report", "long.json").err


def test_a_comparison_tells_no_difference_of_sums_that_lack_other_lines(
    cli, tmp_path, monkeypatch, unmetered_slow_tiers
):
    """The energy of writing is known on one tier and not on the other: the table above says what
    the findings below say."""
    monkeypatch.chdir(tmp_path)
    assert (
        cli(
            "compare", "-s", "small-8b", "--with", "tier.id=nas-hdd", "-f", "json", "-o", "two.json"
        ).code
        == 0
    )
    page = cli("report", "two.json", "-f", "html").out
    row = page.split('<th scope="row">energy added, kWh</th>')[1].split("</tr>")[0]
    assert row.endswith('<td class="n">-</td><td class="n">-</td>')
    assert "no difference of the energy added is told" in page
    assert "Left out because unknown: energy of B without storage writing." in page
    assert (
        cli(
            "compare",
            "-s",
            "small-8b",
            "--with",
            "policy.mode=async",
            "-f",
            "html",
            "-o",
            "alike.html",
        ).code
        == 0
    )
    alike = (tmp_path / "alike.html").read_text("utf-8")
    assert "no difference of" not in alike


def test_a_run_that_a_format_has_no_place_for_is_left_out_and_said(cli, tmp_path, monkeypatch):
    """The joules of one run are metered, those of the other are not."""
    monkeypatch.chdir(tmp_path)
    unmetered = str(Path(TRACE).with_name("ext4-fsync.jsonl"))
    priced = ("--site", "usa", "--set", "cluster.gpu_price=3 USD/GPU-h")
    for name, column in (("codecarbon", "run_id"), ("focus", "x_RunId")):
        done = cli("export", TRACE, unmetered, *priced, "--to", name)
        assert done.code == 0
        assert {row[column] for row in csv.DictReader(io.StringIO(done.out))} == {"simulated-8gpu"}
        assert "ckptcost: left out: the " in done.err
        assert "run ext4-fsync on anonymous is unknown" in done.err
        alone = cli("export", unmetered, *priced, "--to", name)
        assert (alone.code, "cannot leave open what is not known" in alone.err) == (2, True)


def test_a_run_of_which_nothing_is_known_is_left_out_and_said(cli):
    unmetered = str(Path(TRACE).with_name("ext4-fsync.jsonl"))
    done = cli("export", TRACE, unmetered, "--to", "github-benchmark")
    assert done.code == 0
    assert {"simulated-8gpu" in entry["extra"] for entry in json.loads(done.out)} == {True}
    assert done.err.count("left out: no energy, GPU time, cost or emissions of run ext4-fsync") == 1
    # a chart goes by names: whether another run is known moves none of them
    second = cli("export", unmetered, TRACE, "--to", "github-benchmark")
    assert all(entry["name"].startswith("measured run (2): ") for entry in json.loads(second.out))


def test_a_case_is_named_by_its_tier(cli, report, tmp_path):
    words = ("--to", "statement", "--start", "2026-09-01")
    by_id = cli("export", report, *words, "--case", "nas-hdd@1008").out
    assert (
        whole(cli("export", report, *words, "--case", "nas-hdd").out)["statements"]
        == (whole(by_id)["statements"])
    )


def test_ids_of_cases_have_six_digits_and_stay_apart(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ("model", "-s", "small-8b", "--tier", "nas-hdd", "-f", "json")
    found = whole(cli(*words, "--saves", "383.4999999999571").out)
    assert [case["case"] for case in found["tables"]["cases"]["rows"]] == ["nas-hdd@383.5"]
    both = cli(*words, "--saves", "383.4999999", "--saves", "383.5000001").out
    assert [case["case"] for case in json.loads(both)["tables"]["cases"]["rows"]] == [
        "nas-hdd@383.4999999",
        "nas-hdd@383.5000001",
    ]
