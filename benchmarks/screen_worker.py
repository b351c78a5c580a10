"""An hour of made-up measuring with 8 GPUs, looked at each ten seconds; writes what Python holds
after each ten minutes to a file."""

from __future__ import annotations

import json
import sys
import tracemalloc
from pathlib import Path

from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.live.sources import demo

READ_S, LOOK_S, HOUR_S, TEN_MIN_S = 1.0, 10.0, 3600.0, 600.0


def held() -> list[int]:
    now_s = 0.0
    source = demo(Desk(), history_s=0.0, threaded=False, clock=lambda: now_s, kept=False)
    source.start()
    found: list[int] = []
    tracemalloc.start()
    while now_s < HOUR_S:
        now_s += READ_S
        source.pump(now_s)
        if now_s % LOOK_S == 0:
            source.view()
        if now_s % TEN_MIN_S == 0:
            found.append(tracemalloc.get_traced_memory()[0])
    source.stop()
    return found


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(held()))
