"""Draws the layers of the program as docs/screenshots/layers.svg, from the import contract in
pyproject.toml: a box may import any box below it. `python docs/draw_map.py`; a test
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
    "@media(prefers-color-scheme:dark){rect{fill:#263238;stroke:#90a4ae}"
    "text{fill:#eceff1}}"
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
            drawn.append(
                f'<rect x="{left:.0f}" y="{top}" width="{wide:.0f}" height="{HEIGHT}"/>'
                f'<text x="{middle:.0f}" y="{top + 22}">{name}</text>'
            )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {tall}" role="img">'
        "<title>The layers of ckptcost: a box may import any box below it</title>"
        f"<style>{STYLE}</style>\n" + "\n".join(drawn) + "\n</svg>\n"
    )


if __name__ == "__main__":
    PICTURE.write_text(picture(), "utf-8")
