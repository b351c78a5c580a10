"""What people and services meet first: how to cite, contribute and check before a commit, and what
CI of two hosts runs. No parser of YAML is here, so keys are read where they stand."""

from __future__ import annotations

import datetime
import re
import tomllib
from pathlib import Path

import pytest

from ckptcost.first.version import __version__

ROOT = Path(__file__).resolve().parents[2]
CI_FILES = [".github/workflows/ci.yml", ".gitlab-ci.yml"]


def text_of(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def citation() -> dict[str, str]:
    """Top-level keys of CITATION.cff, with the value on the same line."""
    return dict(re.findall(r'^([a-z-]+): ?"?(.*?)"?$', text_of("CITATION.cff"), re.M))


def test_the_citation_has_the_keys_that_the_format_requires():
    given = citation()
    assert {"cff-version", "message", "title", "authors"} <= given.keys()
    assert given["cff-version"] == "1.2.0"
    assert given["type"] == "software"
    assert "\t" not in text_of("CITATION.cff")
    authors = re.search(r"^authors:\n((?:  .*\n)+)", text_of("CITATION.cff"), re.M)
    assert authors is not None
    assert authors[1].startswith("  - name: ")


def test_the_citation_is_of_this_version():
    assert citation()["version"] == __version__
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    assert project["license"].startswith(citation()["license"])


def test_the_changelog_can_be_tagged():
    """A section for what comes, then one for this version, which has a day once it is tagged."""
    sections = re.findall(r"^## \[(.+?)\](?: - (.+))?$", text_of("CHANGELOG.md"), re.M)
    assert sections[0] == ("Unreleased", "")
    assert sections[1][0] == __version__
    for _, day in sections[1:]:
        assert day == "not tagged yet" or datetime.date.fromisoformat(day)
    kinds = set(re.findall(r"^### (.+)$", text_of("CHANGELOG.md"), re.M))
    assert kinds <= {
        "Added",
        "Changed",
        "Deprecated",
        "Removed",
        "Fixed",
        "Security",
        "Known limits",
    }


def test_hooks_before_a_commit_are_local():
    hooks = text_of(".pre-commit-config.yaml")
    assert re.findall(r"^ +- repo: (.+)$", hooks, re.M) == ["local"]
    assert re.findall(r"^ +- id: (.+)$", hooks, re.M) == ["ruff-format", "ruff-check", "mypy"]
    assert "://" not in hooks


@pytest.mark.parametrize("name", CI_FILES)
def test_ci_of_a_host_only_calls_ours(name):
    said = text_of(name)
    commands = re.findall(r"^ +- (?:run: )?([^:\n]*\.ci/run)$", said, re.M)
    assert len(commands) == 1
    assert said.count("run: ") + said.count("script:") == 1
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111


def test_contributing_names_files_and_targets_that_are_there():
    page = text_of("CONTRIBUTING.md")
    targets = set(re.findall(r"^([a-z]+):", text_of("Makefile"), re.M))
    assert set(re.findall(r"`make ([a-z]+)", page)) <= targets
    for name in re.findall(r"`((?:ckptcost|tests|docs|data|models)/[\w./-]+)`", page):
        if "NAME" not in name:
            assert (ROOT / name).exists(), name


def test_the_front_page_leads_to_all_of_it():
    linked = set(re.findall(r"\]\(([^)#]+)", text_of("README.md")))
    assert linked >= {
        "CHANGELOG.md",
        "CITATION.cff",
        "CONTRIBUTING.md",
        "LICENSE",
        "SECURITY.md",
        "data/LICENSES.md",
        "docs/map.md",
    }
