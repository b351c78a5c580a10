"""`ckptcost catalog`: counts, one line an entry within the terminal, and one entry with sources."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ckptcost.errors import InputError
from ckptcost.questions.catalog import KINDS, catalog, ids_of
from ckptcost.write import text

GOLDEN = Path(__file__).with_name("golden")
ASKED = {
    "all": [],
    "lustre": ["lustre"],
    "h100": ["h100"],
    "tier-aws-s3": ["tier", "aws-s3"],
    "one-tier": ["superpod-good-1su"],
    "one-source": ["ddn-2025-07"],
}


@pytest.mark.parametrize("name", ASKED)
def test_printed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set UPDATE=1 to write what is printed now."""
    monkeypatch.setattr("ckptcost.scenario.catalog.OWN", Path("~/.config/ckptcost"))
    path, now = GOLDEN / f"catalog-{name}.txt", text(catalog(*ASKED[name]), width=80) + "\n"
    if os.environ.get("UPDATE"):
        path.write_text(now, encoding="utf-8")
    assert now == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", KINDS)
def test_a_line_an_entry(kind: str) -> None:
    """All of a kind, none wider than the terminal; the table has the whole name."""
    found = catalog(kind)
    table = found.tables[0]
    assert [row[0] for row in table.rows] == ids_of(kind)
    lines = text(found, width=80).splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(line.split()[0] in {row[0] for row in table.rows} for line in lines if line) == len(
        table.rows
    )
    assert not any(str(row[-1]).endswith("...") for row in table.rows)


@pytest.mark.parametrize("kind", KINDS)
def test_every_entry_by_its_id(kind: str) -> None:
    """An id alone shows that entry, and sources that are named are in the bibliography."""
    for name in ids_of(kind)[:: 1 if kind != "grid" else 20]:
        found = catalog(kind, name)
        assert found.about == f"{kind} {name}"


def test_words_narrow_the_search() -> None:
    wide, narrow = (
        catalog(*words).tables[0].rows for words in (["tier", "aws"], ["tiers", "aws", "s3"])
    )
    assert 0 < len(narrow) < len(wide)
    assert {str(row[0]) for row in narrow} <= {str(row[0]) for row in wide}


@pytest.mark.parametrize("word", ["bloom-176b", "demo", "aws-s3"])
def test_of_several_hits_one_is_offered_by_its_kind(word: str) -> None:
    """Typed alone, an id that two kinds have would list both again."""
    command = catalog(word).notes[-1].command
    assert catalog(*command.removeprefix("ckptcost catalog ").split()).tables[0].name == "figures"


def test_nothing_matches() -> None:
    with pytest.raises(InputError, match="nothing matches") as error:
        catalog("nas-hddd")
    assert "nas-hdd" in error.value.remedy
