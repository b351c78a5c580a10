"""`import ckptcost`: mypy --strict accepts right calls and rejects wrong ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import ckptcost

RIGHT = """\
import ckptcost

answer = ckptcost.model("job.toml", tier=["nas-hdd"], saves=[100, 1000], gpus=512)
rows = answer.table("cases").to_frame()
words: str = answer.to_json()
ckptcost.interval("job.toml", mode="async", gpu_price="2.50 USD")
ckptcost.compare("a.toml", "b.toml", draws=64)
ckptcost.simulate("job.toml", runs=100, failures="weibull:0.7", seed=2)
ckptcost.need("write", "job.toml", for_="goodput>=0.97", sure=0.95)
ckptcost.catalog("lustre")
ckptcost.init("job.toml", all=True)
"""
WRONG = (
    'ckptcost.model("job.toml", tiers=["nas-hdd"])',
    'ckptcost.model("job.toml", "job.toml")',
    'ckptcost.model(tier=3)',
    'ckptcost.simulate("job.toml", runs="many")',
    'ckptcost.need("write", for_=0.9)',
    'ckptcost.need()',
    'ckptcost.need("write", sure="0.95")',
    'ckptcost.optimize("job.toml")',
    'ckptcost.model().table(3)',
    'ckptcost.model().to_yaml()',
)  # fmt: skip


def test_calls_are_typed(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    first_wrong = len(RIGHT.splitlines()) + 1
    program.write_text(RIGHT + "\n".join(WRONG) + "\n", encoding="utf-8")
    root = Path(ckptcost.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", str(program)],
        capture_output=True,
        text=True,
        check=False,
        cwd=root,
        env={"PATH": "/usr/bin:/bin", "MYPYPATH": str(root)},
    )
    lines = {int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line}
    wanted = set(range(first_wrong, first_wrong + len(WRONG)))
    assert lines == wanted, done.stdout + done.stderr


def test_every_name_is_there_and_no_other() -> None:
    assert set(dir(ckptcost)) == set(ckptcost.__all__)
    assert all(callable(getattr(ckptcost, name)) for name in ("model", "need", "catalog"))
    with pytest.raises(AttributeError, match="optimise"):
        ckptcost.optimise  # type: ignore[attr-defined]  # noqa: B018


def test_importing_costs_nothing() -> None:
    listed = "import sys, ckptcost; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", listed], capture_output=True, text=True, check=True
    )
    assert not {"numpy", "argparse", "ckptcost.answer", "json"} & set(done.stdout.split())
