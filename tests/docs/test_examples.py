"""What the pages show is what the program prints: UPDATE_GOLDEN=1 renews it, for you to read.

Run are commands of the planning verbs. Skipped are those that measure, which the first edition
answers, and everything that is not `ckptcost`, such as `pip`. `make demo` prints what
`ckptcost model` prints.
"""

from __future__ import annotations

import doctest
import io
import os
import re
import sys
from contextlib import redirect_stderr, redirect_stdout
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from ckptcost import cli, former
from ckptcost.questions import VERBS
from ckptcost.scenario import catalog

ROOT = Path(__file__).resolve().parents[2]
spec = spec_from_file_location("examples", ROOT / "docs" / "examples.py")
examples = module_from_spec(spec)
sys.modules["examples"] = examples
spec.loader.exec_module(examples)

UPDATE = os.environ.get("UPDATE_GOLDEN", "0") not in ("", "0")
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


def is_planning(words):
    """Whether the new code answers it."""
    if words[:1] != ["ckptcost"]:
        return False
    verb = words[1] if len(words) > 1 else ""
    if verb in ("", "help") or verb.startswith("-"):
        return len(words) > 1
    return verb in VERBS and VERBS[verb].is_question and former.translated(words[1:]) is None


def run(words):
    """Exit code and all that is printed."""
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed):
        code = cli.main(words[1:])
    return code, printed.getvalue().rstrip("\n").split("\n")


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """An empty folder, with no catalogue of one's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(catalog, "OWN", tmp_path / "own")
    catalog.get.cache_clear()
    return tmp_path


@pytest.mark.parametrize("name", examples.PLANNING)
def test_commands_print_what_the_page_shows(name, elsewhere):
    path = ROOT / name
    page, wrong = path.read_text("utf-8"), []
    done, renewed = examples.blocks_of(page), []
    for block in done:
        if block.file:
            (elsewhere / block.file).write_text(block.text, "utf-8")
        commands = block.commands() if block.kind == "console" else []
        for command in commands:
            words = ["ckptcost", "model"] if command.line == "make demo" else command.words
            if is_planning(words):
                wrong += check(command, words)
        renewed.append(examples.as_typed(commands) if commands else block.text)
    if UPDATE:
        for block, text in reversed([*zip(done, renewed, strict=True)]):
            page = page[: block.begin] + text + page[block.end :]
        path.write_text(page, "utf-8")
    assert not wrong, f"{name}:\n" + "\n\n".join(wrong)


def check(command, words):
    """What is wrong with an example; renewed if that is wanted."""
    code, printed = run(words)
    if code != command.code:
        return [f"$ {command.line}\nexits {code}, not {command.code}:\n" + "\n".join(printed)]
    if not command.shown or examples.matches(command.shown, printed):
        return []
    if UPDATE:
        command.shown = examples.renewed(command.shown, printed)
        return []
    return [f"$ {command.line}\nprints now (UPDATE_GOLDEN=1 renews it):\n" + "\n".join(printed)]


with_python = [page for page in PAGES if ">>> " in page.read_text("utf-8")]


@pytest.mark.parametrize("page", with_python, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_examples_hold(page, elsewhere):
    text = page.read_text("utf-8")
    if "ckptcost.first" in text and not find_spec("ckptcost.first"):
        pytest.skip("the first edition is not here")
    for folder in ("data", "docs"):  # some examples look into them
        (elsewhere / folder).symlink_to(ROOT / folder)
    code = "".join(
        block.text + "\n" for block in examples.blocks_of(text) if block.kind == "python"
    )
    test = doctest.DocTestParser().get_doctest(code, {"page": text}, page.name, str(page), 0)
    said = io.StringIO()
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    found = doctest.DocTestRunner(optionflags=flags).run(test, out=said.write)
    assert not found.failed, said.getvalue()


def test_an_extract_is_renewed_where_it_fits():
    assert doctest.testmod(examples).failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S)
    links = re.findall(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)", text)
    gone = [each for each in links if "://" not in each and not (page.parent / each).exists()]
    assert not [each for each in gone if not each.startswith("mailto:")]


def test_sources_that_pages_cite_are_in_the_bibliography():
    cited = {
        name
        for page in PAGES
        for name in re.findall(r"\[`([a-z0-9][a-z0-9.-]+)`\]", page.read_text("utf-8"))
    }
    assert cited <= catalog.sources().keys()
