"""Runs in a process of its own on the fake NVML: the load step of a self-test, with shorter phases,
and what it told as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(folder: Path) -> None:
    from ckptcost.first.jobs import load_step
    from ckptcost.first.jobs.checkup import checkup
    from ckptcost.first.jobs.instruments import instruments
    from ckptcost.first.meters.found import Wanted
    from ckptcost.first.report.studies.selftest import findings_of, tables_of

    load_step.PHASE_S, load_step.PHASES, load_step.HELD_S = 1.2, 8, 1.5
    load_step.REST_S = 3.0
    wanted = Wanted(environ={})
    seen = checkup(instruments("nvml", wanted, 0.0), 1.0)
    made = load_step.make_loads(instruments("nvml", wanted, 0.0), seen, folder)
    said = {
        "trace": str(made.trace),
        "why": made.why,
        "findings": findings_of(made),
        "tables": {table.id: table.rows for table in tables_of(made)},
    }
    print(json.dumps(said))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
