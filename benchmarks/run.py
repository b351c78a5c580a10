"""Run every benchmark and write the results into docs/benchmarks.md; with --quick, fewer rounds and
only to the screen."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path

import exports
import fleet
import planning
import report_scale
import sampler
import saver_fio
import screen
import window_energy
import wrapping

import ckptcost

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
BEGIN, END = "<!-- results: written by benchmarks/run.py -->", "<!-- end of results -->"
SECTIONS = {
    "Planning": planning,
    "Reports of long runs": report_scale,
    "What measuring costs": sampler,
    "Joules of a window": window_energy,
    "Writing and reading checkpoints": saver_fio,
    "What `ckptcost run` costs a job": wrapping,
    "The screen": screen,
    "Exports": exports,
    "Fleet": fleet,
}
QUICK_ROUNDS = 4


def machine() -> str:
    """What was measured on: enough to compare, nothing to recognise."""
    info = Path("/proc/cpuinfo")
    models = (
        [
            line.split(":", 1)[1].strip()
            for line in info.read_text().splitlines()
            if line.startswith("model name")
        ]
        if info.exists()
        else []
    )
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "pydantic", "scipy"))
    return (
        f"{cores} cores, {models[0] if models else platform.machine()}; Python"
        f" {platform.python_version()}, {libraries}."
    )


def edited() -> dict[str, float]:
    """When each file of the package was last written: half of this is measured in other processes,
    which must load the same code."""
    return {
        str(path): path.stat().st_mtime for path in Path(ckptcost.__file__).parent.rglob("*.py")
    }


def main() -> None:
    quick, before_all = sys.argv[1:] == ["--quick"], edited()
    said = [f"Measured on {machine()}\n"]
    for title, module in SECTIONS.items():
        said.append(f"### {title}\n\n{module.measure(QUICK_ROUNDS) if quick else module.measure()}")
        print(said[-1], flush=True)
    if quick:
        return
    if edited() != before_all:
        raise SystemExit("the package changed while it was measured: run again")
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise SystemExit(f"docs/{PAGE.name} lacks its two marker comments")
    PAGE.write_text(
        "".join([before, BEGIN, "\n\n", "\n".join(said), "\n", END, after]), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
