"""Writes the table in data/LICENSES.md: every source of the catalogue, its licence, and the files
that cite it. `python docs/list_licences.py`; a test of the catalogue holds it current."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "data" / "LICENSES.md"
BEGIN = "| source | licence | cited in |\n|---|---|---|\n"
NONE_STATED = "none stated; figures quoted"
OURS = "Apache-2.0"


def sources() -> dict[str, dict[str, str]]:
    return tomllib.loads((ROOT / "data" / "sources.toml").read_text("utf-8"))


def cited_in() -> dict[str, list[str]]:
    """The files of the catalogue that name a source, several in one folder as the folder."""
    found: dict[str, list[str]] = {name: [] for name in sources()}
    files = sorted([*(ROOT / "data").glob("*.csv"), *(ROOT / "models").rglob("*.toml")])
    for file in files:
        words = set(re.findall(r"[a-z0-9]+(?:-[a-z0-9]+)*", file.read_text("utf-8")))
        for name in found.keys() & words:
            found[name].append(file.relative_to(ROOT).as_posix())
    return found


def shown(files: list[str]) -> str:
    """Where files of one folder are many, the folder and their number."""
    folders: dict[str, list[str]] = {}
    for file in files:
        folders.setdefault(file.rpartition("/")[0], []).append(file)
    return ", ".join(
        f"{folder}/ ({len(of)} files)" if len(of) > 2 else ", ".join(of)
        for folder, of in sorted(folders.items())
    )


def table() -> str:
    lines = []
    for name, files in sorted(cited_in().items()):
        licence = OURS if name == "house" else sources()[name].get("licence", NONE_STATED)
        lines.append(f"| {name} | {licence} | {shown(files) or 'docs, code'} |\n")
    return BEGIN + "".join(lines)


def written() -> str:
    text = PAGE.read_text("utf-8") if PAGE.exists() else BEGIN
    before, _, _ = text.partition(BEGIN)
    return before + table()


if __name__ == "__main__":
    PAGE.write_text(written(), "utf-8")
