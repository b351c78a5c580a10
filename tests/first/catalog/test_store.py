"""The catalogue: where it is, what lies over it, and what it says when something is wrong."""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path

import pytest

from ckptcost.first.catalog import files
from ckptcost.first.catalog.figures import BASES, Figure, figure_of, softest
from ckptcost.first.catalog.keys import KEYS, SECTIONS, WORDS, meaning_of, unit_of
from ckptcost.first.catalog.store import KINDS, Catalog
from ckptcost.first.core.units import UNITS
from ckptcost.first.errors import InputError, UnitError, UnknownName

ROOT = Path(__file__).resolve().parents[3]
TIER = 'id = "{id}"\nname = "Ours"\nwrite = "12 GB/s"\n'


@pytest.fixture
def user(tmp_path, monkeypatch):
    """A folder that lies over the shipped catalogue."""
    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path / "user"))

    def put(name: str, text: str, kind: str = "tiers") -> Path:
        file = tmp_path / "user" / "models" / kind / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    return put


# ---- shipped


@pytest.mark.parametrize("kind", KINDS)
def test_ids_are_the_files(kind):
    assert Catalog().ids(kind) == sorted(
        file.stem for file in (ROOT / "models" / KINDS[kind]).glob("*.toml")
    )


@pytest.mark.parametrize("kind", ["checkpoint", "tier", "cluster", "site", "accelerator", "grid"])
def test_every_entry_loads_and_every_figure_says_who(kind):
    catalog = Catalog()
    for name in catalog.ids(kind):
        entity = catalog.get(kind, name)
        assert entity.id == name
        assert entity.name
        for key, figure in entity.figures.items():
            assert figure.basis in BASES, (name, key)
            assert figure.text, (name, key)
            for source in filter(None, (part.strip() for part in figure.source.split(";"))):
                assert source in catalog.sources, (name, key, source)
            assert figure.source, (name, key)
            if figure.low is not None:
                assert figure.low <= figure.value <= figure.high, (name, key)


# ---- prices and their dates


def priced():
    """Every price of the catalogue and of its defaults, electricity's included."""
    shipped = Catalog()
    for kind in ("tier", "cluster", "site", "accelerator"):
        for name in shipped.ids(kind):
            for key, figure in shipped.get(kind, name).figures.items():
                if key.endswith("_price") or key == "tariff":
                    yield f"{kind} {name}: {key}", figure
    basis, source = shipped.defaults["basis"], shipped.defaults["source"]
    for section in ("tier", "cluster", "site"):
        for key, raw in shipped.defaults[section].items():
            if key.endswith("_price") or key == "tariff":
                figure = figure_of(raw, unit_of(section, key)).or_else(basis, source)
                yield f"default {section}.{key}", figure


def test_every_price_says_of_when_it_is_or_that_it_is_assumed():
    found = dict(priced())
    assert len(found) > 60
    undated = {
        where
        for where, figure in found.items()
        if not figure.date and figure.basis != "assumed" and "without a date" not in figure.note
    }
    assert not undated
    assert sum(1 for figure in found.values() if figure.date) >= 40
    for where, figure in found.items():
        assert not figure.date or figure.remark.startswith(f"as of {figure.date}"), where


def test_a_price_is_as_old_as_the_list_it_was_read_in():
    """A price of one dated list has that list's date; a copy of the date in two places must not
    drift."""
    sources = Catalog().sources
    for where, figure in priced():
        entry = sources.get(figure.source, {})
        listed = re.search(r"20\d\d-\d\d-\d\d", entry.get("version", ""))
        if listed and entry["kind"] == "price-list" and not where.startswith("accelerator"):
            assert figure.date == listed.group(), where


def test_a_gpu_price_is_dated_by_the_offers_that_span_it():
    catalog = Catalog()
    b200 = catalog.get("accelerator", "b200-sxm").figures["gpu_price"]
    assert b200.date == "2026-08-26 to 2026-09-20"
    assert b200.note.endswith("; offers without a date: 1 of 3"), "Nebius gives none"
    assert b200.remark == f"as of {b200.date}; {b200.note}"
    mi300x = catalog.get("accelerator", "mi300x").figures["gpu_price"]
    assert (mi300x.date, "without" in mi300x.note) == ("2026-05-18 to 2026-05-29", False)
    tpu = catalog.get("accelerator", "tpu-v4").figures["gpu_price"]
    assert (tpu.date, tpu.note) == ("", "one offer, per chip; offers without a date: 1 of 1")
    assert catalog.get("accelerator", "gh200-96").figures["gpu_price"].date == "2026-09-20"
    assert catalog.get("accelerator", "gb300").figures["gpu_price"].date == "", "assumed: of no day"
    assert catalog.get("accelerator", "b200-sxm").figures["gpu_tdp"].date == ""


# ---- one file, one entry


def test_a_file_is_read_once(monkeypatch):
    catalog = Catalog()
    first = catalog.get("tier", "nas-hdd")
    monkeypatch.setattr(files, "text_of", None)
    assert catalog.get("tier", "nas-hdd") is first


def test_a_second_tier_is_a_tier():
    assert Catalog().get("second_tier", "nas-hdd").kind == "tier"


def test_an_accelerator_joins_both_tables():
    h100 = Catalog().get("accelerator", "h100-sxm")
    assert h100.figures["gpu_tdp"].value == 700.0
    assert (
        h100.figures["gpu_price"].low
        < h100.figures["gpu_price"].value
        < h100.figures["gpu_price"].high
    )
    assert h100.about["vendor"] == "nvidia"
    assert not set(h100.figures) - set(KEYS["cluster"])


def test_a_grid_is_a_factor_in_base_units():
    usa = Catalog().get("grid", "USA").figures["grid_location"]
    assert usa.value == pytest.approx(0.3835 / 3.6e6, rel=1e-12)
    assert usa.source == "ember-owid"
    assert "lifecycle" in usa.note


def test_every_cluster_names_an_accelerator_and_every_site_a_grid_that_exist():
    catalog = Catalog()
    for kind, word, other in (("cluster", "accelerator", "accelerator"), ("site", "grid", "grid")):
        for name in catalog.ids(kind):
            if named := catalog.get(kind, name).words.get(word):
                assert named in catalog.ids(other), name


# ---- names


@pytest.mark.parametrize(
    ("kind", "name", "near"),
    [
        ("tier", "nas-hd", "nas-hdd"),
        ("tier", "NAS-HDD", "nas-hdd"),
        ("tier", "exascaler", "ddn-exascaler"),
        ("checkpoint", "llama31-405", "llama31-405b"),
        ("accelerator", "h100", "h100-sxm"),
        ("grid", "usa", "USA"),
        ("site", "germny", "germany"),
        ("scenario", "gpt4-scale", "gpt4-scale-2tb"),
    ],
)
def test_did_you_mean(kind, name, near):
    catalog = Catalog()
    with pytest.raises(UnknownName) as told:
        catalog.file_of(kind, name) if kind == "scenario" else catalog.get(kind, name)
    assert "did you mean" in str(told.value)
    assert repr(near) in str(told.value)


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../sites/usa",
        "/etc/passwd",
        "a/b",
        "a\\b",
        "nas-hdd.toml",
        "nas-hdd\0",
        "x" * 100_000,
        "*",
        "nas-hdd/",
    ],
)
@pytest.mark.parametrize("kind", ["tier", "scenario", "accelerator", "grid"])
def test_a_name_is_never_a_path(kind, name):
    catalog = Catalog()
    with pytest.raises(UnknownName) as told:
        catalog.file_of(kind, name) if kind == "scenario" else catalog.get(kind, name)
    assert len(str(told.value)) < 500


# ---- the user's own folder


def test_the_users_entry_is_found_and_is_the_users(user):
    file = user("ours.toml", TIER.format(id="ours"))
    entity = Catalog().get("tier", "ours")
    assert entity.figures["write"] == Figure(
        12e9, basis="user", source="user file ours.toml", text="12 GB/s"
    )
    assert entity.where == str(file)
    assert "ours" in Catalog().ids("tier")
    assert "nas-hdd" in Catalog().ids("tier")


def test_a_basis_the_user_gives_stays(user):
    user("ours.toml", 'basis = "measured"\nsource = "acceptance test"\n' + TIER.format(id="ours"))
    figure = Catalog().get("tier", "ours").figures["write"]
    assert (figure.basis, figure.source) == ("measured", "acceptance test")


def test_the_users_entry_lies_over_the_shipped_one(user):
    user("nas-hdd.toml", TIER.format(id="nas-hdd"))
    entity = Catalog().get("tier", "nas-hdd")
    assert entity.figures["write"].value == 12e9
    assert entity.claims == (), "nothing of the shipped entry shines through"
    assert Catalog().ids("tier").count("nas-hdd") == 1


def test_a_users_scenario_is_a_preset(user, cli):
    user("mine.toml", 'id = "mine"\nname = "Mine"\nextends = "small-8b"\n', "scenarios")
    done = cli("model", "-s", "mine")
    assert done.code == 0, done.err
    assert done.out.startswith("Mine\n")


def test_platform_folders(monkeypatch, tmp_path):
    monkeypatch.delenv("CKPTCOST_USER")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr("sys.platform", "linux")
    assert files.overlay() == tmp_path / "config" / "ckptcost"
    monkeypatch.delenv("XDG_CONFIG_HOME")
    assert files.overlay() == tmp_path / ".config" / "ckptcost"
    monkeypatch.setattr("sys.platform", "darwin")
    assert files.overlay() == tmp_path / "Library" / "Application Support" / "ckptcost"


def test_no_home_folder_is_no_reason_to_fail(monkeypatch):
    """A container's user without an entry and without $HOME: there is just no overlay."""
    monkeypatch.delenv("CKPTCOST_USER")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)

    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nowhere)
    assert "nas-hdd" in Catalog().ids("tier")


def test_an_absent_folder_has_no_entries(monkeypatch, tmp_path):
    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path / "absent"))
    assert "nas-hdd" in Catalog().ids("tier")


def test_a_file_in_place_of_the_folder(monkeypatch, tmp_path):
    """models is a file: the shipped catalogue still answers, or the message names the file."""
    (tmp_path / "models").write_text("not a folder")
    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path))
    try:
        assert "nas-hdd" in Catalog().ids("tier")
    except InputError as error:
        assert "models" in str(error)  # noqa: PT017


@pytest.mark.parametrize("method", ["is_dir", "iterdir"])
def test_an_unreadable_folder_is_said(user, monkeypatch, method):
    file = user("ours.toml", TIER.format(id="ours"))
    whole = getattr(Path, method)

    def refuse(self, *args, **more):
        if self == file.parent:
            raise PermissionError(13, "Permission denied")
        return whole(self, *args, **more)

    monkeypatch.setattr(Path, method, refuse)
    with pytest.raises(
        InputError,
        match=r"models/tiers: cannot be listed \(Permission denied\)\. check its permissions",
    ):
        Catalog().get("tier", "ours")


def test_an_unreadable_file_is_said(user, monkeypatch):
    file = user("ours.toml", TIER.format(id="ours"))
    whole = Path.open

    def refuse(self, *args, **more):
        if self == file:
            raise PermissionError(13, "Permission denied")
        return whole(self, *args, **more)

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError, match=r"ours\.toml: cannot be read"):
        Catalog().get("tier", "ours")


def test_a_folder_named_like_an_entry(user):
    user("ours.toml/x", "x")
    with pytest.raises(InputError, match=r"ours.toml: is a folder"):
        Catalog().get("tier", "ours")


def test_a_link_to_nowhere(user, tmp_path):
    user("other.toml", TIER.format(id="other"))
    (tmp_path / "user" / "models" / "tiers" / "ours.toml").symlink_to("absent.toml")
    with pytest.raises(InputError, match=r"ours.toml: no such file"):
        Catalog().get("tier", "ours")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (TIER.format(id="theirs"), "id: id is 'theirs', the file is called 'ours'"),
        ('name = "x"\nwrite = "1 GB/s"\n', "id"),
        ('id = "ours"\nwrite = "1 GB/s"\n', "name"),
        ("", "is empty"),
        (TIER.format(id="ours") + "speed = 1\n", "'speed'"),
        (TIER.format(id="ours").replace("12 GB/s", "12 GB"), "write: '12 GB' is bytes"),
        (TIER.format(id="ours").replace("12 GB/s", "0 GB/s"), "write: '0 GB/s' is out of range"),
        (TIER.format(id="ours") + 'survives = "fire"\n', "survives: no choice named 'fire'"),
        (TIER.format(id="ours") + 'basis = "guess"\n', "basis.*guess"),
        (TIER.format(id="ours") + '[[claim]]\nwhat = "energy"\n', "claim"),
        (
            TIER.format(id="ours") + '[[claim]]\nwhat = "energy"\nsize = "2"\nvalue = "1 kWh"\n',
            "claim",
        ),
        (
            TIER.format(id="ours") + '[[claim]]\nwhat = "energy"\nsize = "2 TB"\nvalue = "1 kW"\n',
            "claim",
        ),
        (TIER.format(id="ours") + '[[claim]]\nwhat = "energy"\nsize = 5\nvalue = []\n', "claim"),
        (
            TIER.format(id="ours") + '[[claim]]\nwhat = "energy"\nsize = "0 TB"\nvalue = "1 kWh"\n',
            "claim",
        ),
        (
            TIER.format(id="ours") + '[[claim]]\nwhat = "mood"\nsize = "2 TB"\nvalue = "1 kWh"\n',
            "claim.*mood",
        ),
    ],
    ids=[
        "other id",
        "no id",
        "no name",
        "empty",
        "unknown key",
        "wrong unit",
        "zero",
        "choice",
        "basis",
        "bare claim",
        "claim without unit",
        "claim in kW",
        "claim of nonsense",
        "claim for nothing",
        "claim of what",
    ],
)
def test_a_wrong_entry_names_the_file_and_the_key(user, cli, text, says):
    user("ours.toml", text)
    done = cli("model", "--tier", "ours", "--saves", "10", "-f", "json")
    assert (done.code, done.out) == (2, ""), done
    assert done.err.count("\n") == 1
    assert "ours.toml" in done.err
    import re

    assert re.search(says, done.err), done.err


# ---- another catalogue altogether


def test_home_replaces_the_shipped_catalogue(monkeypatch, tmp_path):
    shutil.copytree(ROOT / "models", tmp_path / "models")
    shutil.copytree(ROOT / "data", tmp_path / "data")
    (tmp_path / "models" / "tiers" / "nas-hdd.toml").unlink()
    monkeypatch.setenv("CKPTCOST_HOME", str(tmp_path))
    assert "nas-hdd" not in Catalog().ids("tier")
    assert "generic-pfs" in Catalog().ids("tier")


@pytest.mark.parametrize("made", [[], ["models"], ["data"]], ids=str)
def test_a_home_without_both_folders_is_refused(monkeypatch, tmp_path, cli, made):
    for name in made:
        (tmp_path / name).mkdir()
    monkeypatch.setenv("CKPTCOST_HOME", str(tmp_path))
    done = cli("model")
    assert (done.code, done.out) == (2, "")
    assert (
        done.err
        == f"ckptcost: CKPTCOST_HOME={tmp_path}: holds no models/ and data/. unset it to use the"
        " shipped catalogue\n"
    )


@pytest.mark.parametrize(
    "name",
    ["accelerators.csv", "accelerator_figures.csv", "gpu_prices.csv", "grids.csv", "sources.toml"],
)
@pytest.mark.parametrize("damage", ["absent", "empty", "a short row", "binary", "another header"])
def test_a_damaged_table_of_home_is_named(monkeypatch, tmp_path, cli, name, damage):
    shutil.copytree(ROOT / "models", tmp_path / "models")
    shutil.copytree(ROOT / "data", tmp_path / "data")
    file = tmp_path / "data" / name
    if damage == "absent":
        file.unlink()
    else:
        file.write_bytes(
            {
                "empty": b"",
                "a short row": file.read_bytes() + b"just-one-cell\n",
                "binary": bytes(range(256)),
                "another header": b"a,b,c\n1,2,3\n",
            }[damage]
        )
    monkeypatch.setenv("CKPTCOST_HOME", str(tmp_path))
    done = cli("model", "-f", "json")
    assert (done.code, done.out) == (2, ""), done.err[-300:]
    assert done.err.count("\n") == 1
    assert name in done.err


# ---- figures and keys


def test_a_product_of_figures_is_as_soft_as_the_softer():
    tdp, share = (
        Figure(700.0, basis="published", source="sheet"),
        Figure(0.9, 0.8, 1.0, basis="assumed", source="house"),
    )
    both = tdp.scaled(share, "how")
    assert (both.value, both.low, both.high) == (
        pytest.approx(630),
        pytest.approx(560),
        pytest.approx(700),
    )
    assert (both.basis, both.source, both.note) == ("assumed", "sheet; house", "how")


def test_softest():
    assert softest(("measured", "vendor", "published")) == "vendor"
    assert softest(()) == "assumed"
    assert [softest(tuple(BASES[: n + 1])) for n in range(len(BASES))] == list(BASES)


@pytest.mark.parametrize(
    "raw",
    [
        {"value": "1 GB/s", "low": "2 GB/s", "high": "3 GB/s"},
        {"value": "1 GB/s", "low": "1 GB/s"},
        {"low": "1 GB/s"},
        {"value": "1 GB/s", "basis": 3},
        {"value": "1 GB/s", "date": 2026},
        {"value": "1 GB/s", "date": "last summer"},
        {"value": "1 GB/s", "date": "2026-13"},
        {"value": "1 GB/s", "date": "2026-07-13 to"},
        {"value": "1 GB/s", 3: 4},
        {},
        "-1 GB/s",
        None,
        object(),
    ],
)
def test_a_wrong_figure(raw):
    with pytest.raises(InputError):
        figure_of(raw, "bytes_per_s")


@pytest.mark.parametrize(
    "date", ["2026", "2026-07", "2026-Q3", "2026-07-13", "2024-07-01 to 2026-Q3"]
)
def test_a_figure_says_of_when_it_is(date):
    dated = figure_of({"value": "0.1 USD/GB-month", "date": date, "note": "list"}, "usd_per_byte_s")
    assert (dated.date, dated.remark) == (date, f"as of {date}; list")
    assert figure_of({"value": "1 GB/s", "date": date}, "bytes_per_s").remark == f"as of {date}"
    assert figure_of("1 GB/s", "bytes_per_s").remark == ""


def test_minus_zero_is_zero_and_not_negative():
    assert str(figure_of("-0 s", "s").value) in ("0.0", "-0.0")
    with pytest.raises(UnitError):
        figure_of("-1 s", "s")


def test_every_key_has_a_unit_and_a_meaning():
    for section in SECTIONS:
        for key in KEYS[section]:
            assert unit_of(section, key) in UNITS
            assert len(meaning_of(section, key)) > 5
        assert not set(KEYS[section]) & set(WORDS[section])


def test_defaults_say_who_assumes_and_what_for():
    raw = tomllib.loads((ROOT / "models" / "defaults.toml").read_text())
    assert raw["basis"] == "assumed"
    assert raw["source"] in Catalog().sources
