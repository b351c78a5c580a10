"""Polls all GPUs of the fake through our meter for a while of real time; prints the readings, and
windows with their exact joules."""

from __future__ import annotations

import json
import os
import random
import sys
import time

from nvml_worker import fake

from ckptcost.first.meters import nvml


def main(length_s: float, lengths_s: list[float], each: int, seed: int) -> None:
    (meter,) = nvml.find(visible={}).meters
    slots = [
        place for place, channel in enumerate(meter.channels) if channel.quantity == "energy_j"
    ]
    rng = random.Random(seed)
    t_ns: list[int] = []
    took_ns: list[int] = []
    joules: list[list[float]] = []
    spent = time.process_time()
    began = time.monotonic_ns()
    while (now := time.monotonic_ns()) < began + length_s * 1e9:
        row = meter.read(now)
        took_ns.append(time.monotonic_ns() - now)
        t_ns.append(now)
        joules.append([row[slot] for slot in slots])
        time.sleep(rng.uniform(0.010, 0.020))
    spent = time.process_time() - spent
    windows = []
    for length in lengths_s:
        for _ in range(each):
            begin = t_ns[0] + round(rng.uniform(0.3, length_s - length - 0.4) * 1e9)
            end = begin + round(length * 1e9)
            exact = [
                (fake().fake_exact_mj(gpu, end) - fake().fake_exact_mj(gpu, begin)) / 1000.0
                for gpu in range(len(slots))
            ]
            windows.append([length, begin * 1e-9, end * 1e-9, exact])
    said = {
        "t_s": [t * 1e-9 for t in t_ns],
        "took_s": [t * 1e-9 for t in took_ns],
        "joules": joules,
        "windows": windows,
        "spent_s": spent,
    }
    print(json.dumps(said | {"settings": os.environ["FAKE_NVML"]}))


if __name__ == "__main__":
    main(
        float(sys.argv[1]),
        [float(part) for part in sys.argv[2].split(",")],
        int(sys.argv[3]),
        int(sys.argv[4]),
    )
