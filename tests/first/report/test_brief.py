"""The answer first: a screen of a terminal, whatever was asked; what is left out is counted, and
`--full` has it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from small_runs import recorded

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.jobs.gates import GateVerdict, gate_of
from ckptcost.first.jobs.model import one_of
from ckptcost.first.present.amounts import count, number
from ckptcost.first.report import brief, study_views
from ckptcost.first.report.studies.model_words import basis_line
from ckptcost.first.report.study import Column, Study, Table

LLAMA = ["-s", "llama31-405b-16k"]
SAVES = ["--saves", "10", "--saves", "100", "--saves", "1000"]
GATES = [word for n in range(40, 99, 3) for word in ("--require", f"goodput>=0.{n}")]
HUGE = f"{'a rather long name ' * 40}{'our_storage_' * 30}"
STUDIES = {
    "simulation": ["simulate", *LLAMA, "--runs", "30", "--require", "goodput>=0.99"],
    "one tier": ["optimize", *LLAMA],
    "tiers and modes": [
        *["optimize", *LLAMA, "--tier", "flash-shared", "--tier", "superpod-best"],
        *["--mode", "both", "--budget", "usd<=1"],
    ],
    "two tiers": ["optimize", "-s", "small-8b"],
    "many gates": ["optimize", *LLAMA, *GATES],
    "solution": ["solve", "write", *LLAMA, "--for", "goodput>=0.9"],
    "infeasible": ["solve", "stall", "-s", "micron-100k", "--for", "goodput>=0.975"],
    "price": ["solve", "price", "--tier", "generic-pfs", "--against", "ddn-exascaler-40"],
    "lead": ["lead", *LLAMA],
    "fits": ["fits", ".", *LLAMA],
    "two scenarios": ["compare", *LLAMA, "--with", "mode=async", "--require", "kwh<=1"],
    "five scenarios": [
        *["compare", *LLAMA, "--with", "interval=1 h", "--with", "interval=20 min"],
        *["--with", "mode=async, interval=5 min", "--with", "mode=async", *GATES],
    ],
    "sensitivity": ["sensitivity", *LLAMA],
    "audit": ["audit", "micron-2026"],
    "measured": ["measure", "--meters", "simulated", "--for", "70 s"],
}
MODELS = {
    "one case": ["model", "--tier", "ddn-exascaler-40", "--saves", "100"],
    "against": ["model", "--tier", "nas-hdd", "--saves", "100", "--against", "ddn-exascaler-40"],
    "two tiers": ["model", "-s", "small-8b", "--set", "policy.mode=async"],
    "three cases, one never finishes": ["model", *LLAMA, *SAVES],
    "twelve cases": ["model"],
    "many targets": ["model", *GATES],
    "thirty cases": ["model", *(w for n in range(1, 31) for w in ("--saves", str(n)))],
    "never finishes": ["model", *LLAMA, "--saves", "10"],
    "huge names": ["model", "-s", "huge.toml"],
    "huge names, twelve cases": ["model", "-s", "huge.toml", "--tier", "nas-hdd", *SAVES],
    "unknown totals": ["model", "-s", "bare.toml"],
    "unknown in some": ["model", "-s", "bare.toml", "--tier", "nas-hdd", "--tier", "flash-shared"],
}
NOUNS = ("sentence", "table", "row", "target", "caution")


def flat(text: str) -> str:
    return " ".join(text.split())


def counted(text: str) -> dict[str, int]:
    """What the last line says is left out."""
    last = re.search(r"With --full: ([^.]*)\.$", flat(text))
    said = dict.fromkeys(NOUNS, 0)
    for n, noun in re.findall(r"(\d+) more (\w+?)s?(?= of what|,|$)", last[1] if last else ""):
        if noun in said:
            said[noun] += int(n)
    return said


def blocks(text: str) -> list[list[str]]:
    return [block.splitlines() for block in text.rstrip("\n").split("\n\n")]


def begins(text: str) -> str:
    """Enough of a sentence to know it by, where its end was cut."""
    return flat(text)[:60]


def rows_shown(title: str, there: int) -> int:
    """Of a printed table, as its title says it."""
    cut = re.search(r"\((\d+) of (\d+) rows\)$", title)
    assert cut is None or int(cut[2]) == there
    return int(cut[1]) if cut else there


def printed_tables(text: str, titles: dict[str, tuple[int, str]]) -> Iterator[tuple[str, int]]:
    """Title and rows of each printed table; there are as many lines as it says."""
    for block in blocks(text)[1:]:
        for high in (1, 2):  # a long title takes two lines
            said = flat(" ".join(block[:high]))
            title = re.sub(r" \(\d+ of \d+ rows\)$", "", said).removesuffix("..")
            known = [
                each
                for each in titles
                if flat(each) == title or (len(title) > 120 and each.startswith(title))
            ]
            if known:
                break
        else:
            continue
        there, note = titles[known[0]]
        rows = rows_shown(said, there)
        below = block[high + 1 + rows :]
        assert bool(below) == bool(note), "rows, then the note"
        assert flat(note).startswith(flat(" ".join(below)).removesuffix("..").strip())
        yield known[0], rows


def held_against(
    text: str,
    sentences: Sequence[str],
    titles: dict[str, tuple[int, str]],
    targets: Sequence[str],
    cautions: Sequence[str],
) -> None:
    """Shown and counted are together what there is."""
    said, words = counted(text), flat(text)
    tables = dict(printed_tables(text, titles))
    left = {
        "sentence": sum(f"- {begins(each)}" not in words for each in sentences),
        "table": len(titles) - len(tables),
        "row": sum(titles[name][0] - rows for name, rows in tables.items()),
        "target": sum(f"- {each}" not in words for each in targets),
        "caution": sum(f"- {begins(each)}" not in words for each in cautions),
    }
    assert said == left


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CKPTCOST_RUNS", str(tmp_path / "kept"))
    (tmp_path / "huge.toml").write_text(
        f'name = "{HUGE}"\nextends = "gpt4-scale-2tb"\n[tier]\nid = "nas-hdd"\nname = "{HUGE}"\n'
    )
    (tmp_path / "bare.toml").write_text(
        '[checkpoint]\nsize = "2 TB"\n[tier]\nwrite = "30 GB/s"\n[cluster]\ngpus = 4096\n'
        '[run]\nwork = "30 days"\n[policy]\ninterval = "1 h"\n'
    )
    return tmp_path


@pytest.fixture
def asked(
    cli: Callable[..., Any], place: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[Any, str]]:
    """What a command answers, and its text."""
    seen: list[Any] = []
    real = brief.of_study

    def kept(found: Study) -> str:
        seen.append(found)
        return real(found)

    monkeypatch.setattr(brief, "of_study", kept)

    def ask(words: Sequence[str]) -> tuple[Any, str]:
        done = cli(*words)
        assert done.code in (0, 3), done.err
        return seen[-1], done.out

    return ask


def on_a_screen(text: str) -> None:
    lines = text.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    assert not re.search(r"\b(nan|None)\b|\xa0", text)


def told_of(study: Study) -> tuple[list[str], dict[str, tuple[int, str]], list[str], list[str]]:
    there = [table for table in study.tables if table.shown and table.rows]
    return (
        list(study.findings),
        {table.title: (len(table.rows), table.note) for table in there},
        [brief.gate_text(verdict) for verdict in study.gates],
        [message for _, message in study.warnings],
    )


@pytest.mark.parametrize(
    "words", [*STUDIES.values(), *MODELS.values()], ids=[*STUDIES, *(f"model, {m}" for m in MODELS)]
)
def test_an_answer_fits_a_screen_and_counts_what_it_leaves_out(asked, cli, words):
    study, text = asked(words)
    on_a_screen(text)
    assert text == brief.of_study(study)
    held_against(text, *told_of(study))
    if words[0] == "model":
        sentences = [line for line in blocks(text)[1] if line.startswith("- ")]
        assert 1 <= len(sentences) <= 5
        assert flat(basis_line(study.factors)) in flat(text)
    if words[0] != "fits":  # a folder's free space is another one by then
        assert cli(*words, "--full").out == study_views.text(study)


@pytest.mark.parametrize("seconds", [20, 3])
def test_a_recorded_run_shows_its_checkpoints_first(asked, cli, place, seconds):
    recorded(place / "kept" / "one", seconds=seconds)
    study, text = asked(["report", "one"])
    on_a_screen(text)
    held_against(text, *told_of(study))
    assert cli("report", "one", "--full").out == study_views.text(study)
    saves = any(table.id == "windows" for table in study.tables)
    titles = [block[0] for block in blocks(text)]
    assert ("Checkpoints" in titles) == saves == (seconds == 20)
    assert any(title.startswith("What was used") for title in titles)
    if saves:
        assert titles.index("Checkpoints") == 2


def test_a_document_is_told_as_its_command_told_it(asked, cli):
    for words in (MODELS["twelve cases"], STUDIES["one tier"]):
        _, text = asked(words)
        assert cli(*words, "-f", "json", "-o", "told.json").code == 0
        assert cli("report", "told.json").out == text
        assert cli("report", "told.json", "--full").out == cli(*words, "--full").out


def test_litres_are_said_where_the_site_has_a_factor(cli):
    words = ("model", "-s", "small-8b", "--tier", "nas-hdd", "--draws", "64")
    dry, wet = cli(*words).out, cli(*words, "--set", "site.water=1.8 L/kWh").out
    assert "L of water" not in dry
    assert "L of water" in " ".join(wet.split())
    assert len(wet.splitlines()) <= brief.LINES


def test_a_text_that_is_cut_opens_no_bracket_that_it_does_not_close():
    lines = ["- Call it (a=1). [one, two,", "  three]"]
    assert brief._cut(lines, 1) == ["- Call it (a=1). .."]
    assert brief._cut(["- (all of it", "  is in one)"], 1) == ["- (all of it .."]
    assert brief._cut(["- first (a", "  b) second", "  third"], 2) == [
        "- first (a",
        "  b) second ..",
    ]
    assert brief._cut(lines, 2) == lines


def test_a_list_is_all_there_is(cli, place):
    for words in (["audit"], ["doctor", "--meters", "simulated"], ["runs"]):
        assert cli(*words).out == cli(*words, "--full").out


@pytest.mark.parametrize("lines", [30, 28, 26])
def test_a_bill_that_is_cut_keeps_its_total(asked, monkeypatch, lines):
    study, whole = asked(MODELS["two tiers"])
    bill = next(table for table in study.tables if table.id == "bill")
    rows = bill.rows
    monkeypatch.setattr(brief, "LINES", lines)
    text = brief.of_study(study)
    assert len(text.splitlines()) <= lines < len(whole.splitlines())
    [(_, shown)] = printed_tables(text, {bill.title: (len(rows), bill.note)})
    assert brief.LEAST_ROWS <= shown < len(rows)
    assert counted(text)["row"] == len(rows) - shown
    block = next(block for block in blocks(text) if block[0].startswith("The bill"))
    assert block[-1].startswith("total ")
    assert any(line.startswith(rows[0]["line"]) for line in block)


def test_the_cases_that_the_answer_names_stay_in_a_table_that_is_cut(asked):
    study, text = asked(MODELS["thirty cases"])
    rows = next(table for table in study.tables if table.id == "cases").rows
    least = min(rows, key=lambda row: row["run_energy_kwh"])
    table = next(block for block in blocks(text) if block[0].startswith("The whole run"))
    assert len(table) < len(rows)
    for row in (rows[0], least):
        cells = [row["tier"], count(row["saves"]), number(row["run_energy_kwh"])]
        assert any(set(cells) <= set(line.split()) for line in table)
    assert f"{least['tier']}, {count(least['saves'])} saves" in flat(text)
    tiers = {row["tier"] for row in rows}
    assert {line.split()[0] for line in table[2:]} <= tiers, "a tier is named in every row"


def test_what_was_avoidable_is_said_first(asked):
    _, text = asked(MODELS["against"])
    assert blocks(text)[1][0].startswith("- Avoidable with DDN EXAScaler")


def _study(**more: Any) -> Study:
    column = (Column("name", "name"), Column("value", "value", "kWh"))
    rows = [{"name": f"row {n}", "value": float(n)} for n in range(30)]
    return Study(
        "audit", "title", ["about"], {}, [Table("only", "Only", column, rows)], ["It is so."]
    )._replace(**more)


def test_cautions_about_figures_push_out_none_that_may_turn_a_decision():
    about_figures = [(code, f"Of a figure, {code}.") for code in sorted(brief.OF_FIGURES)]
    weighty = [("NEVER_FINISHES", "Nobody waits for it."), ("HOST_RAM", "The node is killed.")]
    text = brief.of_study(_study(warnings=[*about_figures, *weighty]))
    assert "- Nobody waits for it. (NEVER_FINISHES)" in text
    assert "- The node is killed. (HOST_RAM)" in text
    assert "Of a figure" not in text
    assert counted(text)["caution"] == len(about_figures)
    on_a_screen(text)


def test_a_target_that_is_missed_goes_before_those_that_are_met():
    gates = [
        GateVerdict(gate_of(f"goodput>=0.{n}", "--require"), 0.5, n <= 50) for n in range(10, 99)
    ]
    text = brief.of_study(_study(gates=gates))
    assert "- MISSED: goodput>=0.51, it is 50 %" in text
    assert "- met" not in text
    assert counted(text)["target"] == len(gates) - text.count("- MISSED")
    on_a_screen(text)


@pytest.mark.parametrize("long", ["word " * 400, "letters" * 300])
def test_nothing_that_somebody_wrote_makes_it_longer_than_a_screen(long):
    study = _study(
        title=long,
        about=[long] * 30,
        findings=[f"{n} {long}" for n in range(9)],
        warnings=[(f"CODE_{n}", f"{n} {long}") for n in range(9)],
        gates=[GateVerdict(gate_of("goodput>=0.9", ""), 0.5, False, long)] * 9,
    )
    study = study._replace(tables=[study.tables[0]._replace(title=long, note=long)] * 3)
    text = brief.of_study(study)
    on_a_screen(text)
    assert "29 more lines of what was asked" in flat(text)
    assert "row 3" in text, "some rows stay"


def test_a_number_and_its_unit_stay_on_one_line():
    for width in range(60, 80):
        text = brief.of_study(_study(findings=[f"{'x' * width} takes 12 s, 93.1 % of 5 kWh it is"]))
        said = " ".join(line.strip() for line in text.splitlines())
        assert "12 s, 93.1 % of 5 kWh it is" in said
        assert not re.search(r"(12|93\.1|5)$", "\n".join(blocks(text)[1]), re.M)


@pytest.mark.parametrize(
    "words",
    [LLAMA, ["-s", "micron-100k"], ["-s", "small-8b"], ["--set", "tier.id=generic-pfs"]],
    ids=["llama", "micron", "two tiers", "slow"],
)
def test_the_inputs_that_decide_are_those_that_sensitivity_finds(cli, words):
    model = json.loads(cli("model", *words, "-f", "json").out)
    found = json.loads(cli("sensitivity", *words, "--of", "kwh", "-f", "json").out)
    rows = found["tables"]["measure_next"]["rows"]
    first = [row["input"] for row in rows if (row["share"] or 0.0) > 0.01][:3]
    assert model["statements"][0]["drawn"]["decided_by"] == first != []
    answer = flat(cli("model", *words).out)
    assert f"The range of the energy comes most of all from {first[0]} " in answer


def test_no_more_inputs_are_named_than_are_asked_for():
    from ckptcost.first.jobs.model import case_of
    from ckptcost.first.jobs.sensitivity import decided_by
    from ckptcost.first.layers import layers_for

    catalog = Catalog()
    case = case_of(one_of(catalog, layers_for(catalog, "llama31-405b-16k", None, ())))
    assert decided_by(case, most=1) == decided_by(case)[:1] != []
    assert decided_by(case, most=0) == []
