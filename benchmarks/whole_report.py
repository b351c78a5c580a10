"""A whole report: made, written as JSON, and checked."""

from __future__ import annotations

import tempfile
from pathlib import Path

from measure import COMMAND, Row, figures, interleaved, process, said_by
from scenarios import PRESET

import ckptcost


def measure(rounds: int = 15) -> str:
    """Milliseconds of a report in process, its size, and `ckptcost check` on it."""
    report = ckptcost.model(PRESET)
    text = said_by(COMMAND, "model", "-s", PRESET, "-f", "json")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.json"
        file.write_text(text, encoding="utf-8")
        t = interleaved(
            {
                "model": lambda: ckptcost.model(PRESET),
                "three": ckptcost.model,
                "json": report.to_json,
                "load": lambda: ckptcost.load_report(str(file)),
                "check": process(COMMAND, "check", str(file)),
            },
            rounds,
        )
    return figures(
        [
            Row(
                f'`ckptcost.model("{PRESET}")` in process, {len(report.rows("cases"))} case',
                t["model"],
                "ms",
            ),
            Row(
                f"`ckptcost.model()` in process, {len(ckptcost.model().rows('cases'))} cases",
                t["three"],
                "ms",
            ),
            Row("`report.to_json()`", t["json"], "ms"),
            Row("the JSON", [float(len(text.encode()))], "kB"),
            Row("`ckptcost.load_report(...)`", t["load"], "ms"),
            Row("`ckptcost check report.json`, from the shell", t["check"], "ms"),
        ]
    )


if __name__ == "__main__":
    print(measure())
