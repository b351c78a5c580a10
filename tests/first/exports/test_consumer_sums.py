"""Every format of six sources, added up by whoever reads it, is our own sum; nothing where that is
unknown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from consumer_sums import FOLDERS, READ, ROOT, SOURCES, Sums, export_words, ours, written

from ckptcost.first.cli.main import main
from ckptcost.first.exports.formats import FORMATS

DOC = ROOT / "docs" / "howto" / "export.md"
REFUSED = {
    ("boamps", "fleet of 8 jobs"),
    *((name, "unmetered run") for name in ("impact-framework", "codecarbon", "focus", "boamps")),
    ("github-benchmark", "unmetered run"),
}


@pytest.fixture(autouse=True)
def later(monkeypatch):
    """Some readers take nothing of days to come."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1830000000")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("sources")


MADE: dict[str, tuple[str, tuple[str, ...], Sums]] = {}


@pytest.fixture
def made(folder, monkeypatch):
    """By source: where it is, the options of its export, and our own sums. Made once."""
    monkeypatch.chdir(folder)
    for name, (commands, source, flags) in SOURCES.items():
        if name not in MADE:
            for words in commands:
                assert main(list(words)) == 0, words
            out = f"{len(MADE)}.json"
            assert main([*export_words("statement", source, flags, out)]) == 0
            MADE[name] = source, flags, ours(json.loads(Path(out).read_text("utf-8")))
    return MADE


TABLE: dict[str, dict[str, Sums | None]] = {}


@pytest.mark.parametrize("row", READ)
def test_the_reader_s_own_sum_is_ours(made, row, tmp_path):
    name, _, read = READ[row]
    for at, (source, (path, flags, wanted)) in enumerate(made.items()):
        TABLE.setdefault(source, {})["ours"] = wanted
        folder = tmp_path / str(at)
        folder.mkdir()
        out = folder / "t" if name in FOLDERS else folder / FORMATS[name].file
        code = main([*export_words(name, path, flags, str(out))])
        assert (code != 0) == ((row, source) in REFUSED), (row, source)
        sums = None if code else read(out if name in FOLDERS else folder)
        TABLE[source][row] = sums
        for what, value in (sums or {}).items():
            if wanted[what] is None or value is None:
                assert value is wanted[what] is None, (row, source, what, value, wanted[what])
            else:
                assert value == pytest.approx(wanted[what], rel=1e-9), (row, source, what)


def test_the_table_in_the_docs_is_this_one():
    missing = [row for row in READ if any(row not in rows for rows in TABLE.values())]
    if missing or not TABLE:
        pytest.skip(f"not tried here: {', '.join(missing) or 'any'}; run this whole file")
    # where it differs, the table to put there is what this prints
    assert written(TABLE) in DOC.read_text("utf-8"), written(TABLE)
