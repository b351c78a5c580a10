"""Pages of the site that are made from the program: its measuring functions and its catalogue; and
the files beside docs/. mkdocs calls `on_files` and `on_page_markdown`."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

import ckptcost
from ckptcost.scenario import catalog
from ckptcost.scenario.figures import Figure
from ckptcost.scenario.units import show, show_range
from ckptcost.study import unit_of

ROOT = Path(__file__).resolve().parents[2]
OF_THE_REPOSITORY = {
    name: f"{name.lower().removesuffix('.md')}.md"
    for name in ("CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md")
    if (ROOT / name).exists()
}
"""pages beside docs/, and what the site calls them"""
KINDS = {
    "tier": "Storage tiers",
    "checkpoint": "Models",
    "cluster": "Clusters",
    "site": "Sites",
    "accelerator": "Accelerators",
    "grid": "Grids",
}
SECTION = {"accelerator": "cluster", "grid": "site"}
"""where the figures of a kind belong"""


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages that are generated."""
    made = {
        "reference/api.md": functions_page(),
        "catalogue/index.md": catalogue_page(),
        "catalogue/scenarios.md": scenarios_page(),
        "catalogue/sources.md": sources_page(),
        **{f"catalogue/{kind}s.md": kind_page(kind) for kind in KINDS},
        **{ours: (ROOT / name).read_text("utf-8") for name, ours in OF_THE_REPOSITORY.items()},
    }
    for address, text in made.items():
        files.append(File.generated(config, address, content=text))
    for name in ("site.css", "tables.js", "iframe-worker.js"):
        content = (Path(__file__).parent / name).read_bytes()
        files.append(File.generated(config, f"assets/{name}", content=content))
    return files


_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, page: Any, **_: object) -> str:
    """Links that leave docs/ lead to the site's own copy, or become plain words."""
    here = "" if page.file.src_uri in OF_THE_REPOSITORY.values() else "docs"
    folder = os.path.join(here, os.path.dirname(page.file.src_uri))

    def led(found: re.Match[str]) -> str:
        words, address, anchor = found[1], found[2], found[3] or ""
        if "://" in address or address.startswith("mailto:"):
            return found[0]
        target = os.path.normpath(os.path.join(folder, address))
        if target in OF_THE_REPOSITORY:
            target = os.path.join("docs", OF_THE_REPOSITORY[target])
        elif here == "docs" and target.startswith("docs/") and not target.endswith((".py", "/")):
            return found[0]
        if not target.startswith("docs/") or target.endswith(".py"):
            return words
        within = os.path.dirname(os.path.join("docs", page.file.src_uri))
        return f"[{words}]({os.path.relpath(target, within)}{anchor})"

    return _LINK.sub(led, markdown)


def cell(text: object) -> str:
    """A text that a cell can hold; of markup, only the values that a column is sorted by."""
    plain = " ".join(str(text).split()).replace("\\", "\\\\").replace("|", "\\|")
    return re.sub(r"<(?!span data-value=|/span>)", "&lt;", plain)


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "---|" * len(heads)
    for row in rows:
        yield "| " + " | ".join(cell(each) for each in row) + " |"


def functions_page() -> str:
    """The functions that measure, with their types and defaults."""
    lines = ["# Python functions that measure", "", "Generated from the code. Those that plan are"]
    lines += ["the verbs of [commands](commands.md): [planning](../guide/plan.md#from-python).", ""]
    for name in sorted(ckptcost.__all__):
        found = getattr(ckptcost, name)
        if callable(found) and found.__module__.startswith("ckptcost.first"):
            lines += [f"## {name}", "", "```python", signature_of(name, found), "```", ""]
            lines += [inspect.getdoc(found) or "", ""]
    return "\n".join(lines)


def signature_of(name: str, function: Any) -> str:
    """One parameter a line."""
    signature = inspect.signature(function)
    parts: list[str] = []
    starred = False
    for each in signature.parameters.values():
        if each.kind is each.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        parts.append(str(each).replace("'", ""))
    gives = str(signature.return_annotation).replace("'", "")
    given = "" if signature.return_annotation is inspect.Signature.empty else f" -> {gives}"
    if not parts:
        return f"{name}(){given}"
    inner = "".join(f"    {part},\n" for part in parts)
    return f"{name}(\n{inner}){given}"


def catalogue_page() -> str:
    rows = [(f"[{title}]({kind}s.md)", len(catalog.ids(kind))) for kind, title in KINDS.items()]
    rows += [("[Scenarios](scenarios.md)", len(catalog.ids("scenario")))]
    rows += [("[Sources](sources.md)", len(catalog.sources()))]
    lines = ["# What ships", ""]
    lines += ["Each figure has its range, its basis and its source. A click on a heading sorts."]
    lines += ["The same from the shell: `ckptcost catalog NAME --detail`.", ""]
    return "\n".join([*lines, *table(("kind", "entries"), rows)])


def kind_page(kind: str) -> str:
    """All figures of a kind in one table that can be sorted, and its words in another."""
    entries = [catalog.get(kind, name) for name in catalog.ids(kind)]
    figures = [row for entry in entries for row in figure_rows(entry)]
    words = [(entry.id, entry.name, "; ".join(words_of(entry))) for entry in entries]
    lines = ["---", "hide: [toc]", "---", f"# {KINDS[kind]}", ""]
    lines += list(table(("entry", "figure", "value", "range", "basis", "source", "note"), figures))
    lines += ["", "## Names and words", ""]
    lines += list(table(("entry", "name", "words"), words))
    return "\n".join(lines)


def words_of(entry: catalog.Entry) -> Iterator[str]:
    for key, value in entry.said.items():
        if not isinstance(value, Figure):
            yield f"{key}: {value}"


def figure_rows(entry: catalog.Entry) -> Iterator[tuple[str, ...]]:
    section = SECTION.get(entry.kind, entry.kind)
    for key, figure in entry.said.items():
        if isinstance(figure, Figure):
            unit = unit_of(f"{section}.{key}")
            ends = show_range(figure.low, figure.high, unit) if figure.ranged else ""
            said = unbroken(figure.text or show(figure.value, unit))
            value = f'<span data-value="{figure.value!r}">{said}</span>'
            yield (
                entry.id, f"`{key}`", value, unbroken(ends), figure.basis, cited(figure),
                figure.note,
            )  # fmt: skip


def cited(figure: Figure) -> str:
    sources = [each.strip() for each in figure.source.split(";") if each.strip()]
    known = catalog.sources()
    return ", ".join(f"[{x}](sources.md#{x})" if x in known else x for x in sources)


def unbroken(text: str) -> str:
    return text.replace(" ", "&nbsp;")


def scenarios_page() -> str:
    lines = ["# Scenarios", ""]
    for name in catalog.ids("scenario"):
        text = catalog.file_of("scenario", name).read_text("utf-8")
        lines += [f"## {name}", "", "```toml", text.rstrip(), "```", ""]
    return "\n".join(lines)


def sources_page() -> str:
    lines = ["# Sources", ""]
    for name, entry in catalog.sources().items():
        title = cell(entry["title"])
        said = f"[{title}]({entry['url']})" if "url" in entry else title
        about = [str(entry[key]) for key in ("publisher", "version", "licence") if key in entry]
        about += [f"no address: {entry['no_url']}"] if "no_url" in entry else []
        lines += [f"### {name}", "", f"{said}. {cell(', '.join(about))}", ""]
    return "\n".join(lines)
