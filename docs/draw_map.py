"""Draws the layers of the program as docs/screenshots/layers.svg, from the import contract in
pyproject.toml: a box may import any box below it. `python docs/draw_map.py`; tests/test_map.py
holds the picture current."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "screenshots" / "layers.svg"
WIDTH, HEIGHT, GAP, EDGE = 760, 34, 10, 12
STYLE = (
    "rect{fill:#eef2f5;stroke:#5a6b78;rx:4}"
    "text{font:14px sans-serif;fill:#1c2529;text-anchor:middle}"
    ".few{font-size:11px;fill:#4b5a63}"
    "@media(prefers-color-scheme:dark){rect{fill:#263238;stroke:#90a4ae}"
    "text{fill:#eceff1}.few{fill:#b0bec5}}"
)


def layers() -> list[list[str]]:
    """Names from the top layer to the bottom one; those of one layer do not import each other."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contract = project["tool"]["importlinter"]["contracts"][0]
    assert contract["type"] == "layers"
    return [
        [name.strip().removeprefix("ckptcost.") for name in layer.split("|")]
        for layer in contract["layers"]
    ]


def modules_of(name: str) -> int:
    folder = ROOT / "ckptcost" / name
    return sum(1 for _ in folder.rglob("*.py")) if folder.is_dir() else 1


def picture() -> str:
    rows = layers()
    tall = 2 * EDGE + len(rows) * (HEIGHT + GAP) - GAP
    drawn = []
    for number, names in enumerate(rows):
        top = EDGE + number * (HEIGHT + GAP)
        wide = (WIDTH - 2 * EDGE - (len(names) - 1) * GAP) / len(names)
        for place, name in enumerate(names):
            left = EDGE + place * (wide + GAP)
            middle = left + wide / 2
            count = modules_of(name)
            few = f"{count} modules" if count > 1 else "one module"
            drawn.append(
                f'<rect x="{left:.0f}" y="{top}" width="{wide:.0f}" height="{HEIGHT}"/>'
                f'<text x="{middle:.0f}" y="{top + 15}">{name}</text>'
                f'<text class="few" x="{middle:.0f}" y="{top + 28}">{few}</text>'
            )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {tall}" role="img">'
        "<title>The layers of ckptcost: a box may import any box below it</title>"
        f"<style>{STYLE}</style>\n" + "\n".join(drawn) + "\n</svg>\n"
    )


if __name__ == "__main__":
    PICTURE.write_text(picture(), "utf-8")
