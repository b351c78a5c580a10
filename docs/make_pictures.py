"""The picture of the README, docs/screenshots/interval.svg: python docs/make_pictures.py renews it.

It is the plot of `ckptcost interval` for the job that `ckptcost init` writes, on a ground of its
own and with colours for light and dark, so that it can be read on any page.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import ckptcost
from ckptcost.plot import svg

PICTURE = Path(__file__).resolve().parent / "screenshots" / "interval.svg"
STYLE = """
svg { --ink: #1c2126; --soft: #5a6570; --rule: #d8dde2; --back: #fff; --one: #0b66a8;
  --mark: #b3261e; font: 13px system-ui, sans-serif }
@media (prefers-color-scheme: dark) { svg { --ink: #e6e9ec; --soft: #9aa5b0; --rule: #38414a;
  --back: #14181c; --one: #6db7ef; --mark: #ff8a80 } }
.ground { fill: var(--back) } text { fill: var(--ink) } .tick { fill: var(--soft) }
.label { font-weight: 600 } .mark { fill: var(--mark); font-weight: 600 }
.grid { stroke: var(--rule) } .axis { stroke: var(--soft) }
circle { fill: var(--mark); stroke: var(--back); stroke-width: 2 }
polyline { fill: none; stroke-width: 2.2; stroke: var(--one) }
"""


def picture() -> str:
    """The plot as a file of its own."""
    with tempfile.TemporaryDirectory() as folder:
        job = str(Path(folder) / "job.toml")
        ckptcost.init(job)
        plot = ckptcost.interval(job).plots[0]
    drawn = svg(plot)
    head = '<svg xmlns="http://www.w3.org/2000/svg" width="1280" height="640" '
    ground = f'<style>{STYLE}</style><rect class="ground" width="100%" height="100%" rx="8"/>'
    begin = drawn.index(">") + 1
    return drawn[:begin].replace("<svg ", head, 1) + ground + drawn[begin:] + "\n"


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
