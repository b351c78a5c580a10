"""Pictures of the running screen: `python docs/screenshots/take.py`. That of the README is made by
docs/make_pictures.py.

Needs Chromium (Debian: chromium). Each is the application itself at 120x36, driven by keys, with
the simulated machine where something is measured. Textual writes an SVG; a browser turns it into a
PNG, because other converters drop blanks and shift braille.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent
SIZE = (120, 36)
PIXELS = "1482,930"


class Shot(NamedTuple):
    name: str
    start: str
    keys: tuple[str, ...] = ()
    wait_s: float = 0.5
    demo: bool = False


SHOTS = (
    Shot("model", "model"),
    Shot("live", "live", demo=True, wait_s=4.0),
)


async def drawn(shot: Shot) -> str:
    """The screen as SVG."""
    from ckptcost.first.tui.app import CkptcostApp

    app = CkptcostApp(start=shot.start, meters="simulated", demo=shot.demo)
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause(shot.wait_s)
        for key in shot.keys:
            await pilot.press(key)
            await pilot.pause(0.3)
        return app.export_screenshot(title="ckptcost")


def to_png(svg: str, target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        # the font that the SVG would fetch is not fetched: the browser's own monospace stands in
        body = "\n".join(
            line for line in svg.splitlines() if "url(" not in line or "clip-path" in line
        )
        page.write_text(f"<body style='margin:0;background:#10151A'>{body}</body>", "utf-8")
        taken(page, target, PIXELS)


def taken(page: Path, target: Path, pixels: str) -> None:
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [
                shutil.which("chromium") or "chromium",
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                "--disable-background-networking",
                f"--user-data-dir={profile}",
                f"--window-size={pixels}",
                f"--screenshot={target}",
                page.as_uri(),
            ],
            check=True,
            capture_output=True,
            timeout=120,
        )


def main() -> None:
    wanted = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {
            "CKPTCOST_STATE": folder,
            "CKPTCOST_RUNS": f"{folder}/runs",
            "CKPTCOST_USER": f"{folder}/user",
        }
        for shot in SHOTS:
            if not wanted or shot.name in wanted:
                to_png(asyncio.run(drawn(shot)), FOLDER / f"{shot.name}.png")
                print(shot.name)


if __name__ == "__main__":
    main()
