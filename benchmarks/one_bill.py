"""One scenario at a time: what a bill costs."""

from __future__ import annotations

from dataclasses import replace

from measure import Row, figures, interleaved
from scenarios import at_best, at_fixed, preset

from ckptcost.first.core.outcome import evaluate
from ckptcost.first.core.quantities import FIELDS


def measure(rounds: int = 15) -> str:
    """Microseconds a bill, from plain to two tiers."""
    scenario = preset()
    fixed, best = at_fixed(scenario), at_best(scenario)
    background = replace(best, policy=replace(best.policy, mode="async"))
    levels = at_fixed(preset("small-8b"))
    bill = evaluate(best).run
    t = interleaved(
        {
            "fixed": lambda: evaluate(fixed),
            "best": lambda: evaluate(best),
            "async": lambda: evaluate(background),
            "levels": lambda: evaluate(levels),
            "totals": lambda: [bill.total(quantity) for quantity in FIELDS],
        },
        rounds,
        loops=500,
    )
    searched = interleaved({"searched": lambda: evaluate(at_best(levels))}, rounds, loops=5)[
        "searched"
    ]
    return figures(
        [
            Row("one bill, fixed interval, with failures", t["fixed"], "us", 100),
            Row("one bill, optimal interval, with failures", t["best"], "us", 100),
            Row("the same, asynchronous", t["async"], "us", 100),
            Row("two tiers, fixed interval", t["levels"], "us", 100),
            Row("two tiers, optimal interval (a search, no closed form)", searched, "us", 100),
            Row(f"totals of all {len(FIELDS)} quantities of a bill", t["totals"], "us"),
        ]
    )


if __name__ == "__main__":
    print(measure())
