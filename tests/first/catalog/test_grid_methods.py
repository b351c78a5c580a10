"""What a grid factor counts: said of each, kept apart in comparisons, and called by its name in an
inventory."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime, timedelta

import pytest

from ckptcost.first.catalog.grid_hours import read_grid
from ckptcost.first.catalog.keys import GRID_METHODS
from ckptcost.first.catalog.store import Catalog
from ckptcost.first.errors import InputError
from ckptcost.first.present.words import scope_text


def test_every_grid_says_what_it_counts_and_who_says_so():
    catalog = Catalog()
    methods = {}
    for name in catalog.ids("grid"):
        grid = catalog.get("grid", name)
        assert grid.words["grid_method"] in GRID_METHODS, name
        source = grid.figures["grid_location"].source
        assert source in catalog.sources, name
        methods.setdefault(source, set()).add(grid.words["grid_method"])
    assert methods == {
        "ember-owid": {"life-cycle"},
        "google-region-carbon": {"combustion"},
        "ccf-aws": {"combustion"},
        "ccf-azure": {"combustion"},
    }


def emissions(cli, *words):
    done = cli("compare", "-s", "small-8b", *words, "-f", "json")
    study = json.loads(done.out)
    rows = [r for r in study["tables"]["values"]["rows"] if "kgco2e" in r["quantity"]]
    return {r["quantity"]: r["difference"] for r in rows if r["scenario"] != "A"}, study


def test_factors_of_two_methods_have_no_difference(cli):
    apart = ("--set", "site.id=sweden", "--with", "site.id=azure-sweden-central")
    found, study = emissions(cli, *apart)
    assert found["kgco2e"] is None
    assert found["save_kgco2e"] is None
    assert found["embodied_kgco2e"] is not None, "what no grid factor is in still compares"
    said = [each for each in study["findings"] if "grid factor" in each]
    assert len(said) == 1
    assert "whole life cycle" in said[0]
    assert "combustion alone" in said[0]
    assert not [each for each in study["findings"] if "Least emissions" in each]


def test_factors_of_one_method_compare(cli):
    found, _ = emissions(cli, "--set", "site.id=sweden", "--with", "site.id=france")
    assert found["kgco2e"] is not None


def test_a_factor_of_ones_own_has_the_method_that_one_says(cli):
    own = ("--set", "site.grid_location=30 g/kWh")
    found, study = emissions(cli, "--set", "site.id=sweden", "--with", own[1])
    assert found["kgco2e"] is None
    assert "a method that is not known" in " ".join(study["findings"])
    said = f"{own[1]},site.grid_method=life-cycle"
    found, _ = emissions(cli, "--set", "site.id=sweden", "--with", said)
    assert found["kgco2e"] is not None


def test_a_marginal_factor_is_no_location_based_one(cli, tmp_path):
    done = cli("model", "--set", "site.grid_method=marginal")
    assert done.code == 2
    for name, column in (("moer.csv", "gCO2/kWh"), ("hours.csv", "marginal gCO2/kWh")):
        path = tmp_path / name
        path.write_text(f"time,{column}\n2026-01-01T00:00Z,400\n2026-01-01T01:00Z,410\n", "utf-8")
        with pytest.raises(InputError, match="marginal"):
            read_grid(str(path))


def test_only_combustion_is_called_scope_2():
    names = {method: scope_text({"site.grid_method": method}) for method in GRID_METHODS}
    assert names.pop("combustion") == "Scope 2"
    assert names == {
        "life-cycle": "Scope 2 and 3.3 (life cycle)",
        "unknown": "Scope 2 (method not known)",
    }
    assert scope_text({}) == names["unknown"], "a statement of before says nothing of it"


def test_diff_and_sweep_hold_no_emissions_of_two_methods_against_each_other(cli, tmp_path):
    documents = []
    for site in ("sweden", "azure-sweden-central"):
        documents.append(str(tmp_path / f"{site}.json"))
        cli(
            "model",
            "--tier",
            "nas-hdd",
            "--set",
            f"site.id={site}",
            "-f",
            "json",
            "-o",
            documents[-1],
        )
    done = cli("diff", *documents, "-f", "json")
    change = json.loads(done.out)["difference"]["delta"]["totals"]["emissions_location"]
    assert (change["change"], change["direction"]) == (None, "unknown")
    assert (
        change["reason"]
        == "the grid's factor is of the whole life cycle before, of combustion alone now"
    )
    over = "site.id=sweden,azure-sweden-central"
    swept = cli("sweep", "--over", over, "--over", "tier=nas-hdd", "-f", "json")
    assert {row["grid_method"] for row in json.loads(swept.out)["rows"]} == {
        "combustion",
        "life-cycle",
    }
    told = cli("sweep", "--over", over, "--over", "tier=nas-hdd").out
    assert "grid factors of combustion alone and of the whole life cycle" in told
    alone = cli("sweep", "--over", "site.id=sweden", "--over", "tier=nas-hdd").out
    assert "grid factors" not in alone


@pytest.fixture
def plans(cli, tmp_path):
    """Two plans as documents: by a life-cycle factor and by one of combustion."""
    documents = []
    for site in ("sweden", "azure-sweden-central"):
        documents.append(str(tmp_path / f"{site}.json"))
        words = ("--tier", "nas-hdd", "--set", f"site.id={site}", "-f", "json")
        assert cli("model", *words, "-o", documents[-1]).code == 0
    return documents


def exported(cli, name, *words):
    return cli("export", *words, "--start", "2026-11-01", "--to", name)


def test_no_rows_of_two_methods_where_a_reader_adds_up_all_rows(cli, plans):
    mixed = exported(cli, "codecarbon", *plans)
    assert mixed.code == 2
    assert not mixed.out
    for words in ("adds up all rows", "the whole life cycle", "combustion alone", "site.grid"):
        assert words in mixed.err
    for one, method in zip(plans, ("life-cycle", "combustion"), strict=True):
        rows = list(csv.DictReader(io.StringIO(exported(cli, "codecarbon", one).out)))
        assert {row["tracking_mode"].rpartition(", grid ")[2] for row in rows} == {method}
    france = plans[0].replace("sweden", "france")
    cli("model", "--tier", "nas-hdd", "--set", "site.id=france", "-f", "json", "-o", france)
    assert exported(cli, "codecarbon", plans[0], france).code == 0, "of one method"


def test_rows_say_what_their_emissions_count(cli, plans):
    rows = list(csv.DictReader(io.StringIO(exported(cli, "focus", *plans).out)))
    found = {}
    for row in rows:
        found.setdefault(row["x_RunId"], set()).add(row["x_GridMethod"])
    assert sorted(map(sorted, found.values())) == [["combustion"], ["life-cycle"]]


@pytest.mark.parametrize(
    ("column", "method"),
    [
        ("gCO2eq/kWh (direct)", "combustion"),
        ("gCO2eq/kWh (Life cycle)", "life-cycle"),
        ("gCO2eq/kWh LCA", "life-cycle"),
        ("gCO2eq/kWh", "unknown"),
        ("gCO2eq/kWh direct and life cycle", "unknown"),
    ],
)
def test_a_file_of_hours_is_of_its_own_method_not_of_the_site_s(
    cli, plans, tmp_path, column, method
):
    path = tmp_path / "hours.csv"
    begin = datetime(2026, 11, 1, tzinfo=UTC)
    hours = ((begin + timedelta(hours=n)).isoformat() for n in range(24 * 400))
    path.write_text(f"time,{column}\n" + "".join(f"{each},9\n" for each in hours), "utf-8")
    made = exported(cli, "statement", plans[0], "--grid", str(path))
    (statement,) = json.loads(made.out)["statements"]
    assert statement["choices"]["site.grid_method"] == method
    told = cli("report", plans[0], "--start", "2026-11-01", "--grid", str(path)).out
    assert scope_text({"site.grid_method": method}) + ", location-" in told


def test_the_unit_s_flag_may_say_what_a_file_counts(tmp_path):
    path = tmp_path / "hours.csv"
    path.write_text("time,x\n2026-01-01T00:00Z,400\n2026-01-01T01:00Z,410\n", "utf-8")
    assert read_grid(str(path), "x", unit="g/kWh direct").method == "combustion"
    assert read_grid(str(path), "x", unit="g/kWh").method == "unknown"
