"""`ckptcost`: sends what has no new form yet on to the first edition."""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the value is the exit code."""
    from ckptcost.first.cli.main import main as first_edition

    return first_edition(arguments)
