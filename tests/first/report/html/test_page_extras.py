"""What a page shows of each kind of answer, besides its statements."""

from __future__ import annotations

import json
import re

import pytest

TINY = ("-s", "small-8b", "--set", "run.work=9 h", "--saves", "10", "--draws", "64")


@pytest.fixture
def page_of_command(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*command: str) -> str:
        done = cli(*command, "-f", "html", "-o", "page.html")
        assert done.code in (0, 3), done.err
        return (tmp_path / "page.html").read_text("utf-8")

    return run


def section(page: str, at: str) -> str:
    return page.split(f'<section id="{at}"')[1].split("</section>", maxsplit=1)[0]


def test_tiers_stand_beside_each_other_before_the_first_ones_bill(page_of_command):
    page = page_of_command("model", *TINY, "--tier", "nas-hdd", "--tier", "local-nvme")
    assert "In large: the least that a case adds. In the bill: Traditional NAS, hard driv" in page
    tiers = section(page, "table-1")
    assert re.search(r'<tr class="best"><th scope="row">local-nvme<', tiers)
    assert page.index('id="table-1"') < page.index('id="steps"') < page.index('id="bill"')
    assert page.count(">The bill") == 2, "in the list of sections, and once as a table"


def cards(page: str) -> str:
    return page.split('class="cards"')[1].split("</ul>", maxsplit=1)[0]


def test_figures_in_large_are_of_the_case_that_adds_least(page_of_command, cli):
    words = ("model", *TINY, "--tier", "nas-hdd", "--tier", "local-nvme")
    rows = json.loads(cli(*words, "-f", "json").out)["tables"]["cases"]["rows"]
    large = cards(page_of_command(*words))
    shown = [float(each) for each in re.findall(r'<data value="([^"]+)"', large)]
    best = next(row for row in rows if row["tier"] == "local-nvme")
    assert best["run_energy_kwh"] < rows[0]["run_energy_kwh"]
    names = ("run_energy_kwh", "run_gpu_hours", "run_cost_usd", "run_location_kgco2e")
    assert shown == [pytest.approx(best[name]) for name in names]
    assert large.count("local-nvme, of 2 cases") == 4
    alone = cards(page_of_command(*words[:-2]))
    assert "cases" not in alone
    assert float(re.findall(r'<data value="([^"]+)"', alone)[0]) == pytest.approx(
        rows[0]["run_energy_kwh"]
    )


def test_an_answer_says_whether_its_targets_are_met(page_of_command):
    page = page_of_command("model", *TINY, "--tier", "nas-hdd", "--require", "goodput>=0.999")
    assert "MISSED: goodput" in section(page, "answer")


def test_under_factors_of_the_time_no_other_carbon_is_told(page_of_command, cli):
    assert cli("model", *TINY, "--tier", "nas-hdd", "-f", "json", "-o", "plan.json").code == 0
    plain = page_of_command("report", "plan.json")
    dated = page_of_command("report", "plan.json", "--start", "2026-11-01T00:00Z")
    assert ">kgCO2e</th>" in section(plain, "table-1")
    assert ">kgCO2e</th>" not in section(dated, "table-1")
    assert "kgCO2e" not in section(dated, "answer")
    assert 'id="hours"' in dated


def test_ways_to_do_one_job_under_factors_of_the_time_are_compared_anew(page_of_command, cli):
    asked = ("compare", "-s", "small-8b", "--with", "policy.mode=async", "--draws", "64")
    assert cli(*asked, "-f", "json", "-o", "two.json").code == 0
    plain = page_of_command("report", "two.json")
    dated = page_of_command("report", "two.json", "--start", "2026-11-01T00:00Z")
    assert "Side by side" in section(plain, "table-1")
    assert 'id="comparison"' not in plain
    assert 'id="comparison"' in dated
    assert 'id="table-1"' not in dated


def test_a_difference_is_told_by_totals_and_lines_that_are_known(page_of_command, cli):
    for tier in ("nas-hdd", "local-nvme"):
        assert cli("model", *TINY, "--tier", tier, "-f", "json", "-o", f"{tier}.json").code == 0
    cli("diff", "nas-hdd.json", "local-nvme.json", "--anyway", "-f", "json", "-o", "diff.json")
    page = page_of_command("report", "diff.json")
    assert "before_low" not in page.split("<script")[0]
    assert '<th scope="row">energy</th><td>kWh</td>' in section(page, "table-1")
    assert '<th scope="row">GPUs waiting for saves</th><td>energy</td>' in section(page, "table-2")
    assert '<th scope="row">tier.write</th>' in section(page, "table-3")
