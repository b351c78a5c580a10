"""A small job, and scenarios made of it with settings, for the tests of this folder."""

from __future__ import annotations

from pathlib import Path

from ckptcost.scenario import resolve as sc
from ckptcost.scenario.resolve import Scenario

JOB = """
name = "a small job"
[checkpoint]
size = "1 TB"
[cluster]
accelerator = "h100-sxm"
gpus = 512
[policy]
interval = "30 min"
[tier]
write = "25 GB/s"
[run]
work = "30 days"
"""


def job(folder: Path, text: str = JOB, name: str = "job.toml") -> str:
    """The path of a job file."""
    path = folder / name
    path.write_text(text, "utf-8")
    return str(path)


def scenario(name: str, *settings: str, tier: str = "") -> Scenario:
    """The first case of a preset or file with some settings."""
    flags = [sc.layer_of_flags(settings)] if settings else []
    cases = sc.cases_of([*sc.layers_of(name), *flags], [tier] if tier else [])
    return next(iter(cases.values()))


def value(found: Scenario, path: str) -> float:
    return found.figures()[path].value
