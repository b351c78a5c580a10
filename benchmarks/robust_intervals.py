"""The robust-advice study of docs/method/robust.md: advised interval and regret of ten jobs,
against Young's and Daly's.

python benchmarks/robust_intervals.py            # prints the table
python benchmarks/robust_intervals.py --write    # and puts it into the page
"""

from __future__ import annotations

import sys
from pathlib import Path

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.jobs.optimize import Optimum, optimize
from ckptcost.first.layers import layers_for
from ckptcost.first.present.amounts import duration, share
from ckptcost.first.report.studies.run_columns import duration_in_two_digits, two_digits

PAGE = Path(__file__).resolve().parents[1] / "docs" / "method" / "robust.md"
BEGIN, END = "<!-- study: begin -->", "<!-- study: end -->"
JOBS = (
    ("gpt4-scale-2tb", "sync"),
    ("gpt4-scale-2tb", "async"),
    ("llama31-405b-16k", "sync"),
    ("llama31-405b-16k", "async"),
    ("micron-100k", "async"),
    ("opt-175b", "sync"),
    ("opt-175b", "async"),
    ("bloom-176b", "sync"),
    ("bloom-176b", "async"),
    ("small-8b", "async"),
)
HEAD = (
    "| preset | mode | best | best, p5-p95 | advised | advised: mean, worst "
    "| Young: mean, worst | Daly: mean, worst |\n|---|---|---|---|---|---|---|---|"
)


def found_for(preset: str, mode: str, catalog: Catalog) -> Optimum:
    return optimize(catalog, layers_for(catalog, preset, None, []), mode=mode)


def row_of(preset: str, mode: str, catalog: Catalog) -> str:
    """One job: intervals, and regrets in wall time, the mean over the draws and the worst
    corner."""
    found = found_for(preset, mode, catalog)
    robust = found.robust
    rules = {point.id: point.interval_s for point in found.points}

    def risk(interval_s: float) -> str:
        return (
            f"{share(two_digits(robust.mean_at(interval_s)))}, {share(robust.worst_at(interval_s))}"
        )

    cells = (
        preset,
        found.option.mode,
        duration(found.best.interval_s),
        (
            f"{duration(duration_in_two_digits(robust.low_s))} to"
            f" {duration(duration_in_two_digits(robust.high_s))}"
        ),
        duration(found.recommended.interval_s) + ("" if robust.moves else ", the best"),
        risk(found.recommended.interval_s),
        risk(rules["young"]),
        risk(rules["daly"]),
    )
    return f"| {' | '.join(cells)} |"


def table() -> str:
    catalog = Catalog()
    return "\n".join([HEAD, *(row_of(preset, mode, catalog) for preset, mode in JOBS)])


def main() -> None:
    text = table()
    print(text)
    if "--write" in sys.argv[1:]:
        page = PAGE.read_text("utf-8")
        before, after = page.partition(BEGIN)[0], page.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", "utf-8")


if __name__ == "__main__":
    main()
