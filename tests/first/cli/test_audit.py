"""`ckptcost audit`: formats, exit codes, width, and everything that can be wrong with a sheet."""

from __future__ import annotations

import csv
import io

import pytest
from whole_json import whole

from ckptcost.first.catalog.store import Catalog

SHEETS = Catalog().ids("claim")
GOOD = '[[claim]]\nabout = "NAS"\nsize = "exactly 2 TB"\nwrite = "200 MB/s"\ntime = "about 2.8 h"\n'
BAD = '[[claim]]\nabout = "NAS"\nsize = "exactly 2 TB"\nwrite = "200 MB/s"\ntime = "about 17 min"\n'
TWO = '[[claim]]\nid = "a"\ntime = "10 s"\nstall = "0 s"\n[[claim]]\nid = "b"\ntime = "5 s"\n'


@pytest.fixture
def sheet(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def put(text, name="sheet.toml"):
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return name

    return put


def test_the_list(cli):
    done = cli("audit")
    assert (done.code, done.err) == (0, "")
    assert all(name in done.out for name in SHEETS)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--vocabulary"],
        *([name] for name in SHEETS),
        *([name, "--arithmetic"] for name in SHEETS),
    ],
)
@pytest.mark.parametrize("form", ["text", "md", "csv", "json"])
def test_every_view(cli, words, form):
    done = cli("audit", *words, "-f", form)
    assert (done.code, done.err) == (0, "")
    if form == "text":
        assert max(map(len, done.out.splitlines())) <= 80
    if form == "json":
        found = whole(done.out)
        assert found["kind"] == "audit"
        assert "NaN" not in done.out
        assert "Infinity" not in done.out


def test_json_has_the_numbers(cli):
    rows = whole(cli("audit", "ddn-2025", "-f", "json").out)["tables"]["verdicts"]["rows"]
    (row,) = [row for row in rows if row["claim"] == "nas.total_energy"]
    assert (row["unit"], row["follows_low"], row["follows_high"]) == ("kWh", 1500, 2000)
    assert (row["stated_low"], row["stated_high"]) == (2000, None), "no upper bound is null"
    assert row["arithmetic"] == "saves * energy = 100 * (15 to 20 kWh) = 1.5 to 2 MWh"


@pytest.mark.parametrize("table", ["verdicts", "follows", "readings"])
def test_csv_of_each_table(cli, table):
    rows = list(
        csv.DictReader(io.StringIO(cli("audit", "micron-2026", "-f", "csv", "--table", table).out))
    )
    assert rows
    assert all(row["claim"] for row in rows)


def test_into_a_file(cli, tmp_path):
    target = tmp_path / "out.md"
    done = cli("audit", "ddn-2025", "-f", "md", "-o", str(target))
    assert (done.code, done.out) == (0, "")
    assert "| nas.total_energy | over 2 MWh | 1.5 to 2 MWh | inconsistent |" in target.read_text()


def test_the_users_sheet(cli, sheet):
    done = cli("audit", sheet(GOOD))
    assert (done.code, done.err) == (0, "")
    assert "1 consistent, 0 inconsistent" in done.out
    assert (
        whole(cli("audit", "sheet.toml", "-f", "json").out)["reproducibility"]["inputs"][0]["path"]
        == "sheet.toml"
    )


def test_a_pipeline_can_stop(cli, sheet):
    assert cli("audit", sheet(GOOD), "--strict").code == 0
    done = cli("audit", sheet(BAD), "--strict")
    assert done.code == 3
    assert done.err == "ckptcost: 1 inconsistent\n"
    assert "inconsistent" in done.out
    assert cli("audit", "sheet.toml").code == 0
    assert cli("audit", "--strict").code == 3


def test_the_users_own_folder(cli, tmp_path, monkeypatch):
    folder = tmp_path / "models" / "claims"
    folder.mkdir(parents=True)
    (folder / "ours.toml").write_text(GOOD)
    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path))
    assert cli("audit", "ours").code == 0
    assert "ours" in cli("audit").out


def test_no_words_of_blame(cli):
    """Verdicts are about numbers."""
    for name in SHEETS:
        out = cli("audit", name, "--arithmetic").out.lower()
        assert not [
            word
            for word in ("wrong", "false", "lie", "mislead", "exaggerat", "fail to", "bogus")
            if f" {word}" in out
        ]


def claim(line):
    return f'[[claim]]\nid = "a"\n{line}\n'


def holds(that, what='is = "2"'):
    return f'{TWO}[[holds]]\nthat = "{that}"\n{what}\n'


WRONG = {
    "empty": ("", "is empty"),
    "only a comment": ("# nothing\n", "holds no claim"),
    "not TOML": ("[[claim", "not valid TOML"),
    "not UTF-8": (b"\xff\xfe", "UTF-8"),
    "huge": ("#" * 1_100_000, "larger than 1 MB"),
    "deep": (f"a = {'[' * 3000}{']' * 3000}\n", "nested too deep"),
    "a deep key": ("a." * 2000 + "b = 1\n", "nested too deep"),
    "unknown section": (GOOD + "[contxt]\n", "did you mean 'context'"),
    "unknown quantity": (
        claim('wirte = "2 GB/s"'),
        "claim.1: no quantity named 'wirte'. did you mean 'write'",
    ),
    "no unit": (claim("size = 2"), "claim.1.size: '2' has no unit"),
    "wrong unit": (claim('size = "2 GB/s"'), "claim.1.size"),
    "low over high": (claim('time = "5 to 3 s"'), "ends below its start"),
    "negative": (claim('time = "-5 s"'), "negative"),
    "1e308": (claim('time = "1e308 s"'), "out of range"),
    "NaN": (claim("saves = nan"), "claim.1.saves"),
    "infinity": (claim("saves = inf"), "claim.1.saves"),
    "true": (claim("saves = true"), "claim.1.saves"),
    "a list": (claim("saves = [1, 2]"), "claim.1.saves"),
    "more than all": (claim('goodput = "97.5"'), "at most 100 %"),
    "claims nothing": ('[[claim]]\nid = "a"\n', "claims nothing"),
    "one bracket": ('[claim]\nid = "a"\n', "two brackets"),
    "a claim that is none": ("claim = [1]\n", "claim.1: expected a table"),
    "context that is none": (
        GOOD.replace("[[claim]]", "context = 1\n[[claim]]"),
        "context: expected a table",
    ),
    "twice": (TWO.replace('"b"', '"a"'), "'a' is there twice"),
    "a bad id": (claim("saves = 1").replace('"a"', '"A b"'), "is no id"),
    "an id of another type": (claim("saves = 1").replace('"a"', "3"), "expected text"),
    "too many": (claim("saves = 1") * 101, "split the file"),
    "control character": (claim('saves = 1\nabout = "a\\u001bb"'), "control character"),
    "holds without is": (TWO + '[[holds]]\nthat = "a.time"\n', "holds.1.is: is missing"),
    "holds without that": (TWO + '[[holds]]\nis = "2"\n', "holds.1.that: is missing"),
    "unknown key of holds": (holds("a.time / b.time", 'is = "2"\nwhy = "x"'), "no key named 'why'"),
    "no formula": (holds("a.time /"), "at the end"),
    "no such claim": (holds("a.time / c.time"), "no claim named 'c'"),
    "no such quantity": (holds("a.time / b.tiem"), "did you mean 'time'"),
    "a bare name": (holds("time"), "names no claim"),
    "nothing known of it": (holds("a.energy"), "neither stated nor follows"),
    "dimensions": (holds("a.time + 1"), "cannot be added"),
    "no unit for it": (holds("a.time ^ 3"), "has no unit"),
    "is in another unit": (holds("a.time"), "holds.1.is"),
    "division by zero": (holds("b.time / a.stall"), "divides by"),
    "division by a range with zero": (holds("1 / (a.time - a.time)"), "divides by"),
    "deep brackets": (holds("(" * 50 + "a.time" + ")" * 50), "nested deeper"),
    "a long formula": (holds("a.time" + " + a.time" * 100), "longer than 500"),
    "twice the same": (
        holds("a.time / b.time") + '[[holds]]\nthat = "a.time / b.time"\nis = "2"\n',
        "there twice",
    ),
    "circular": (TWO + '[[follows]]\nwhat = "x"\nthat = "x"\n', "names no claim"),
    "unit that does not fit": (
        TWO + '[[follows]]\nthat = "a.time"\nunit = "GB"\n',
        "follows.1.unit",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_said(cli, sheet, what):
    text, said = WRONG[what]
    done = cli("audit", sheet(text))
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("ckptcost: sheet.toml: "), done.err
    assert said in done.err
    assert done.err.count("\n") == 1
    assert len(done.err) < 900


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ddn-2026"], "did you mean 'ddn-2025'"),
        (["gone.toml"], "no such file"),
        ([""], "names no claims"),
        (["."], "no claim named"),
        (["ddn-2025", "--vocabulary"], "shows no claims"),
        (["ddn-2025", "-f", "csv", "--table", "x"], "no table named"),
        (["ddn-2025", "--table", "verdicts"], "-f csv"),
        (["./"], "is a folder"),
    ],
)
def test_words_that_do_not_fit(cli, words, said):
    done = cli("audit", *words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_a_file_without_its_ending(cli, sheet):
    sheet(GOOD, "ours")
    assert "needs its ending" in cli("audit", "ours").err


def test_long_texts_and_large_sheets_keep_to_80_columns(cli, sheet):
    long = "".join(
        f'[[claim]]\nid = "c{i}"\nabout = "{"words " * 30}"\nsize = "exactly 2 TB"\nwrite = "200'
        f' MB/s"\ntime = "1{i} s"\n'
        for i in range(99)
    )
    for full in ([], ["--full"]):
        done = cli("audit", sheet(long), *full)
        assert done.code == 0
        assert max(map(len, done.out.splitlines())) <= 80
    assert "more in the tables" in done.out
    assert "99 inconsistent" in cli("audit", sheet(long)).out


def test_a_pipe_in_a_name_stays_in_its_cell(cli, sheet):
    out = cli("audit", sheet(holds("a.time / b.time", 'is = "2 x"\nwhat = "a|b"')), "-f", "md").out
    row = next(line for line in out.splitlines() if "a&#124;b" in line)
    assert row.count("|") == 6
