"""Saved answers that the exports are tested with: three tiers, a job of unknown power."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from ckptcost.answer import Answer
from ckptcost.exports import Bills
from ckptcost.exports.plan import bills_of
from ckptcost.questions.model import model

START = datetime(2026, 11, 20, tzinfo=UTC)
TIERS = ("nas-hdd", "generic-pfs", "flash-shared")
UNKNOWN = """\
name = "=our own accelerators"
checkpoint.params = "8B"
tier.write = "5 GB/s"
cluster.gpus = 64
failures.mtbf = "5 days"
policy.interval = "1 h"
run.work = "10 days"
"""


@cache
def three_tiers() -> Answer:
    return model("small-8b", tier=TIERS, draws=256)


@cache
def unknown_power() -> Answer:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "job.toml"
        path.write_text(UNKNOWN)
        return model(str(path), draws=64)


def one_tier(start: datetime | None = START) -> Bills:
    return bills_of(three_tiers(), "generic-pfs", start)
