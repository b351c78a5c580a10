"""The documentation is run, not believed: its commands, the lines it shows of them, its links, and
what it refers to.

In a ```console block, each `$ ckptcost ...` line is run in a folder of the page's own, in order; `#
exits N` states an exit code other than 0 (`# exits 0, or 5` where it is the machine that decides),
a backslash continues the line, `$ export NAME=VALUE` sets a variable. Lines shown below must occur
in what the command prints, spaces aside; a line with "..." stands for what is left out. A ```toml
block that starts with `# file: NAME` becomes that file.
"""

from __future__ import annotations

import ast
import functools
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ckptcost.first.catalog.store import Catalog

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
FRONT = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "data/LICENSES.md"]
PAGES = [*(ROOT / name for name in FRONT), *sorted(DOCS.rglob("*.md"))]
SHARED = {
    "sweep": "outcome",
    "channels": "counters",
    "edges": "counters",
    "load_step": "ticks",
    "power_bins": "counters",
    "measures": "outcome",
    "contents": "joining",
    "groups": "offsets",
    **dict.fromkeys(("walk", "job", "rhythm", "interruptions", "streams"), "simulate"),
}
"""core modules that share another one's page"""
FURTHER = {"carbon": "quantities", "water": "quantities", "levels": "failures"}
"""pages of a part of a module, which has one of its own"""
IN_THE_CODE = {"estimates", "expressions", "intervals", "windows"}
"""core modules that serve other modules only: their method is in their docstring, with its proof"""
NO_FORMULAS = {"__init__", "domain", "lines", "numeric", "quantities"}

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
_LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks_of(page: Path, *languages: str) -> Iterator[tuple[str, str]]:
    for found in _FENCE.finditer(page.read_text("utf-8")):
        if found[1] in languages:
            yield found[1], found[2]


def prose_of(page: Path) -> str:
    return _FENCE.sub("", page.read_text("utf-8"))


class Shown(NamedTuple):
    """A command as a page shows it."""

    line: str
    codes: tuple[int, ...]
    output: list[str]


def bare(line: str) -> str:
    return " ".join(line.split())


def commands_in(block: str) -> Iterator[Shown]:
    shown: Shown | None = None
    for line in block.replace("\\\n", " ").splitlines():
        if line.startswith("$ "):
            if shown:
                yield shown
            said, _, comment = line[2:].partition("  # ")
            code = re.search(r"exits (\d+)(?:, or (\d+))?", comment)
            codes = tuple(int(each) for each in code.groups() if each) if code else (0,)
            shown = Shown(said.strip(), codes, [])
        elif shown and line.strip() and "..." not in line:
            shown.output.append(line.rstrip())
    if shown:
        yield shown


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands(page, cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for language, block in blocks_of(page, "console", "toml", "csv"):
        if language != "console":
            if found := re.match(r"# file: (\S+)\n", block):
                file = tmp_path / found[1]
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(block, "utf-8")
            continue
        for shown in commands_in(block):
            words = shlex.split(shown.line)
            if words[0] == "export":
                monkeypatch.setenv(*words[1].split("=", 1))
            if words[0] != "ckptcost":
                continue
            assert not {"|", ">", "<", "&&"} & set(words), shown.line
            done = cli(*words[1:])
            assert done.code in shown.codes, f"{shown.line}: {done}"
            printed = {bare(line) for line in (done.out + done.err).splitlines()}
            missing = [line for line in shown.output if bare(line) not in printed]
            assert missing == [], f"`{shown.line}` does not print this any more"


def targets(page: Path) -> Iterator[str]:
    for target in _LINK.findall(prose_of(page)):
        if not re.match(r"[a-z]+:", target):
            yield target


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_resolve(page):
    for target in targets(page):
        file, _, anchor = target.partition("#")
        there = (page.parent / file).resolve() if file else page
        assert there.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", prose_of(there), re.M)
            assert anchor in {
                re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-")
                for heading in headings
            }, target


def test_every_page_is_reachable_from_the_index():
    seen, ahead = set(), [DOCS / "index.md"]
    while ahead:
        page = ahead.pop()
        if page in seen:
            continue
        seen.add(page)
        ahead += [
            there
            for target in targets(page)
            if (there := (page.parent / target.partition("#")[0]).resolve()).suffix == ".md"
        ]
    assert [name_of(page) for page in sorted(set(DOCS.rglob("*.md")) - seen)] == []


def test_every_formula_has_its_page():
    modules = {path.stem for path in (ROOT / "ckptcost" / "first" / "core").glob("*.py")}
    pages = {path.stem for path in (DOCS / "method").glob("*.md")} - {"index"}
    assert set(FURTHER.values()) <= modules
    modules -= NO_FORMULAS | IN_THE_CODE
    assert pages - set(FURTHER) == {SHARED.get(module, module) for module in modules}


@pytest.mark.parametrize("page", sorted((DOCS / "method").glob("*.md")), ids=name_of)
def test_a_page_shows_its_formulas_at_work(page):
    if page.stem != "index":
        assert ">>> " in page.read_text("utf-8")


@pytest.mark.parametrize("module", sorted(IN_THE_CODE))
def test_a_method_in_the_code_shows_its_formulas_and_names_its_proof(module):
    tree = ast.parse((ROOT / "ckptcost" / "first" / "core" / f"{module}.py").read_text("utf-8"))
    method = ast.get_docstring(tree)
    assert method
    assert ">>> " in method
    (file,) = re.findall(r"tests/[\w/]+\.py", method)
    assert set(re.findall(r"\btest_\w+(?!\w*\.py)\b", method.replace(file, ""))) <= names_in(file)


@functools.cache
def names_in(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_proofs_it_names_exist(page):
    for file, test in re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", page.read_text("utf-8")):
        named = names_in(file)  # the file is there and can be read
        assert not test or test in named, f"{file}::{test}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_sources_it_names_exist(page):
    sources = tomllib.loads((ROOT / "data" / "sources.toml").read_text("utf-8"))
    assert set(re.findall(r"\[`([\w-]+)`\](?!\()", page.read_text("utf-8"))) <= set(sources)


def test_the_catalogue_it_counts_is_the_one_that_ships():
    words = {
        "models": "checkpoint",
        "storage tiers": "tier",
        "clusters": "cluster",
        "sites": "site",
        "accelerators": "accelerator",
        "grids": "grid",
        "scenarios": "scenario",
    }
    counted = re.findall(rf"(\d+) ({'|'.join(words)})\b", (ROOT / "README.md").read_text("utf-8"))
    assert len(counted) >= 4
    assert {what: int(count) for count, what in counted} == {
        what: len(Catalog().ids(words[what])) for _, what in counted
    }


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_nothing_of_the_authors_machine(page):
    found = re.findall(
        r"/(?:home|work|root|tmp|Users)/\S*|https?://(?:pypi|files\.pythonhosted|registry)\S*",
        page.read_text("utf-8"),
    )
    assert found == []
