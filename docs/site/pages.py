"""Pages of the site that are made from the program itself: its commands, its Python functions, its
scenario keys, its schema and its catalogue. mkdocs calls `on_files` and `on_page_markdown`."""

from __future__ import annotations

import argparse
import inspect
import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

import ckptcost
from ckptcost.first.catalog.keys import KEYS, unit_of
from ckptcost.first.catalog.store import Catalog, Entity
from ckptcost.first.cli.main import COMMANDS, VERBS, parser_for
from ckptcost.first.present.amounts import quantities

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = ROOT / "ckptcost" / "first" / "report" / "report-2.0.schema.json"
OF_THE_REPOSITORY = {
    name: f"{name.lower().removesuffix('.md')}.md"
    for name in ("CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md")
    if (ROOT / name).exists()
}
"""pages beside docs/, and what the site calls them"""
KINDS = {
    "tier": "Storage tiers",
    "checkpoint": "Checkpoints",
    "cluster": "Clusters",
    "site": "Sites",
    "accelerator": "Accelerators",
    "grid": "Grids",
}


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages that are generated."""
    catalog = Catalog()
    made = {
        "reference/commands.md": commands_page(),
        "reference/api.md": functions_page(),
        "reference/keys.md": keys_page(),
        "reference/schema.md": schema_page(),
        "catalogue/index.md": catalogue_page(catalog),
        "catalogue/scenarios.md": scenarios_page(catalog),
        "catalogue/sources.md": sources_page(catalog),
        **{f"catalogue/{kind}s.md": kind_page(catalog, kind) for kind in KINDS},
        **{ours: (ROOT / name).read_text("utf-8") for name, ours in OF_THE_REPOSITORY.items()},
    }
    for address, text in made.items():
        files.append(File.generated(config, address, content=text))
    for name in ("site.css", "tables.js", "iframe-worker.js"):
        content = (Path(__file__).parent / name).read_bytes()
        files.append(File.generated(config, f"assets/{name}", content=content))
    schema = File.generated(config, f"reference/{SCHEMA.name}", content=SCHEMA.read_bytes())
    files.append(schema)
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


def commands_page() -> str:
    """Every command with its options, from its parser."""
    lines = ["# Every command and option", ""]
    lines += ["Generated from the program. What the commands do together, and exit codes:"]
    lines += ["[Command line](cli.md).", ""]
    for command, what in sorted((COMMANDS | VERBS).items()):
        parser = parser_for(command)
        usage = parser.format_usage().removeprefix("usage: ")
        lines += [f"## {command}", "", f"{what[0].upper()}{what[1:]}.", ""]
        lines += ["```text", usage.rstrip(), "```", ""]
        options = [action for action in parser._actions if action.help != argparse.SUPPRESS]
        lines += table(("option", "what"), [option_row(parser, each) for each in options])
        if parser.epilog:
            lines += ["", "```text", parser.epilog.rstrip(), "```"]
        lines.append("")
    return "\n".join(lines)


def option_row(parser: argparse.ArgumentParser, action: argparse.Action) -> tuple[str, str]:
    formatter = parser._get_formatter()
    name = formatter._format_action_invocation(action)
    return f"`{name}`", formatter._expand_help(action) if action.help else ""


def functions_page() -> str:
    """The functions of the package with their types and defaults."""
    lines = ["# Python functions and types", ""]
    lines += ["Generated from the code. How they are used: [Python](python.md).", ""]
    for name in sorted(ckptcost.__all__):
        found = getattr(ckptcost, name)
        if not callable(found):
            continue
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


def keys_page() -> str:
    """Every key that a scenario may set."""
    lines = ["# Every key of a scenario", "", "Generated from the program. How files are written:"]
    lines += ["[Scenario file](scenario-file.md).", ""]
    rows = [
        (f"`{section}.{key}`", unit_of(section, key) or "a word or a number")
        for section, keys in KEYS.items()
        for key in keys
    ]
    lines += table(("key", "kept in"), rows)
    return "\n".join(lines)


def schema_page() -> str:
    """The document's parts, property by property."""
    schema = json.loads(SCHEMA.read_text("utf-8"))
    lines = ["# The report's schema", ""]
    lines += [f"The schema itself: [{SCHEMA.name}]({SCHEMA.name}). What its parts mean:"]
    lines += ["[Report](report.md).", "", "## Document", ""]
    lines += properties(schema)
    for name, part in sorted(schema["$defs"].items()):
        lines += ["", f"## {name}", "", part.get("description", ""), ""]
        lines += properties(part)
    return "\n".join(lines)


def properties(part: dict[str, Any]) -> Iterator[str]:
    needed = set(part.get("required", ()))
    rows = [
        (f"`{key}`", type_of(what), "yes" if key in needed else "", what.get("description", ""))
        for key, what in part.get("properties", {}).items()
    ]
    return table(("property", "type", "required", "what"), rows)


def type_of(what: dict[str, Any]) -> str:
    """A type in words.

    >>> type_of({"type": "array", "items": {"type": "string"}})
    'list of string'
    """
    if "$ref" in what:
        name = what["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in what:
        return " or ".join(type_of(each) for each in what["anyOf"])
    if "enum" in what or "const" in what:
        return ", ".join(f"`{each}`" for each in what.get("enum", [what.get("const")]))
    if what.get("type") == "array":
        return f"list of {type_of(what.get('items', {}))}"
    return str(what.get("type", "any"))


def catalogue_page(catalog: Catalog) -> str:
    rows = [(f"[{title}]({kind}s.md)", len(catalog.ids(kind))) for kind, title in KINDS.items()]
    rows += [("[Scenarios](scenarios.md)", len(catalog.ids("scenario")))]
    rows += [("[Sources](sources.md)", len(catalog.ids("source")))]
    lines = ["# What ships", ""]
    lines += ["Each figure has its range, its basis and its source. A click on a heading sorts."]
    lines += ["The same from the shell: `ckptcost catalog KIND NAME --sources`.", ""]
    return "\n".join([*lines, *table(("kind", "entries"), rows)])


def kind_page(catalog: Catalog, kind: str) -> str:
    """All figures of a kind in one table that can be sorted, and its words in another."""
    entries = [catalog.get(kind, name) for name in catalog.ids(kind)]
    figures = [row for entry in entries for row in figure_rows(catalog, entry)]
    words = [
        (entry.id, entry.name, "; ".join(f"{key}: {word}" for key, word in entry.words.items()))
        for entry in entries
    ]
    lines = ["---", "hide: [toc]", "---", f"# {KINDS[kind]}", ""]
    lines += list(table(("entry", "figure", "value", "range", "basis", "source", "note"), figures))
    lines += ["", "## Names and words", ""]
    lines += list(table(("entry", "name", "words"), words))
    return "\n".join(lines)


def figure_rows(catalog: Catalog, entity: Entity) -> Iterator[tuple[str, ...]]:
    section = {"accelerator": "cluster", "grid": "site"}.get(entity.kind, entity.kind)
    for key, figure in entity.figures.items():
        span = quantities(figure.low, figure.high, unit_of(section, key))
        sources = [each.strip() for each in figure.source.split(";") if each.strip()]
        cited = ", ".join(
            f"[{each}](sources.md#{each})" if each in catalog.sources else each for each in sources
        )
        value = f'<span data-value="{figure.value!r}">{unbroken(figure.text)}</span>'
        yield entity.id, f"`{key}`", value, unbroken(span), figure.basis, cited, figure.remark


def unbroken(text: str) -> str:
    return text.replace(" ", "&nbsp;")


def scenarios_page(catalog: Catalog) -> str:
    from ckptcost.first.catalog.files import text_of

    lines = ["# Scenarios", ""]
    for name in catalog.ids("scenario"):
        text = text_of(*catalog.file_of("scenario", name))
        lines += [f"## {name}", "", "```toml", text.rstrip(), "```", ""]
    return "\n".join(lines)


def sources_page(catalog: Catalog) -> str:
    lines = ["# Sources", ""]
    for name, entry in catalog.sources.items():
        title = cell(entry["title"])
        said = f"[{title}]({entry['url']})" if "url" in entry else title
        about = [str(entry[key]) for key in ("publisher", "version", "licence") if key in entry]
        about += [f"no address: {entry['no_url']}"] if "no_url" in entry else []
        lines += [f"### {name}", "", f"{said}. {cell(', '.join(about))}", ""]
    return "\n".join(lines)
