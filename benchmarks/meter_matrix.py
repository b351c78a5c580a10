"""How true the joules of a save are for every kind of counter: late, slow, fast, uneven, missing,
averaged, and asked late.

A machine whose power is known exactly is read on a clock that jumps: the recorder, its pace, the
run and the evaluation are those of a real recording, only the sensors are made up here. Nothing
sleeps and every row has its seed, so the table is the same everywhere.
"""

from __future__ import annotations

import argparse
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core.channels import Channel
from ckptcost.first.jobs.energies import Energies
from ckptcost.first.meters.base import Basic
from ckptcost.first.meters.nvml_driver import LAG_S
from ckptcost.first.runs.clocks import S, VirtualClock, Wake
from ckptcost.first.runs.recorder import Recorder
from ckptcost.first.runs.run import Run
from ckptcost.first.runs.sinks import MemorySink

Floats = NDArray[np.float64]

PAGE: Final = Path(__file__).parents[1] / "docs" / "accuracy.md"
BEGIN, END = "<!-- meters: written by benchmarks/meter_matrix.py -->", "<!-- end of meters -->"
BEFORE: Final = Path(__file__).with_name("meter_matrix_before.json")
"""the same rows with the code before lags, calls and the beat were allowed for"""
LENGTHS_S: Final = (0.3, 1.0, 10.0)
SPREAD: Final = 0.1
"""a save is so much shorter or longer: one of whole ticks is easy"""
REST_S: Final = (3.0, 4.5)
"""between saves: longer than the quick pace lasts after a mark"""
BEGIN_S: Final = 6.0
TRAINING_W, WAITING_W, SAVING_W = 620.0, 420.0, 120.0
"""a step's computing, its waiting for the network, and a GPU that waits for a save"""
DUTY: Final = 0.7
CALL_S: Final = 2e-4
GPUS: Final = 4


class Power:
    """Watts that are constant between instants, and their exact integral."""

    def __init__(self, at_s: Floats, watts: Floats) -> None:
        self._at_s = at_s
        self._joules = np.concatenate([[0.0], np.cumsum(np.diff(at_s) * watts[:-1])])

    def joules(self, t_s: Floats | float) -> Floats:
        """From the first instant on."""
        return np.asarray(np.interp(t_s, self._at_s, self._joules))


class Save(NamedTuple):
    begin_s: float
    length_s: float
    about_s: float

    @property
    def end_s(self) -> float:
        return self.begin_s + self.length_s


def saves(rng: np.random.Generator, each: int) -> list[Save]:
    """One after the other, in any order."""
    lengths = [about_s for about_s in LENGTHS_S for _ in range(each)]
    rng.shuffle(lengths)
    plan, at_s = [], BEGIN_S
    for about_s in lengths:
        plan.append(Save(at_s, about_s * rng.uniform(1 - SPREAD, 1 + SPREAD), about_s))
        at_s = plan[-1].end_s + rng.uniform(*REST_S)
    return plan


def power(plan: Sequence[Save], step_s: float, phase_s: float) -> Power:
    """Training in steps of `step_s` (0: at constant power, saves or not), which stand still while a
    save is written."""
    until_s = plan[-1].end_s + 10.0
    if step_s == 0:
        return Power(np.array([-20.0, until_s]), np.array([TRAINING_W, TRAINING_W]))
    step = np.arange(-20.0 - phase_s, until_s, step_s)
    at = np.concatenate([step, step + DUTY * step_s, [s.begin_s for s in plan]])
    at = np.unique(np.concatenate([at, [s.end_s for s in plan], [until_s]]))
    along = np.mod(at + 20.0 + phase_s + 1e-9, step_s)
    watts = np.where(along < DUTY * step_s, TRAINING_W, WAITING_W)
    for save in plan:
        watts[(at >= save.begin_s) & (at < save.end_s)] = SAVING_W
    return Power(at, watts)


@dataclass(frozen=True)
class Sensor:
    """How a GPU or a processor tells of itself."""

    tick_s: float = 0.1
    lag_s: float = 0.0
    """a counter shows what had been counted so long ago"""
    jitter_s: float = 0.0
    """ticks are up to half of it early or late"""
    step_s: float = 1.7
    """of training"""
    counter: bool = True
    power_over_s: float = 0.0
    """samples of watts are means over so long; 0: there are none"""
    told_s: float = 0.1
    """the period as published"""
    most_lag_s: float | None = LAG_S
    """what its meter says of the lag, as that of NVIDIA GPUs does"""
    call_s: float = CALL_S
    slow_s: float = 0.0
    """calls of another meter that is asked first"""
    busy: bool = False
    poll_s: float = 0.0
    """it is asked so often at most"""
    kind: str = "gpu"


class LateClock(VirtualClock):
    """Time that passes in waits and in calls; on a busy machine a wait ends late."""

    def __init__(self, rng: np.random.Generator, busy: bool) -> None:
        super().__init__(0)
        self.rng, self._busy = rng, busy

    def spend(self, span_s: float) -> None:
        self.set(self.now_ns() + round(span_s * S))

    def late_s(self) -> float:
        """A fifth of all waits end up to 0.15 s late, the others up to 4 ms."""
        if not self._busy:
            return float(self.rng.uniform(5e-5, 4e-4))
        return float(self.rng.uniform(0.0, 0.15 if self.rng.random() < 0.2 else 4e-3))

    def wait(self, until_ns: int, wake: Wake) -> bool:
        if wake.wait(0.0):
            self.spend(self.late_s())
            return True
        self.set(until_ns + round(self.late_s() * S))
        return False


class Slow(Basic):
    """Asked before the others, and slow."""

    def __init__(self, clock: LateClock, call_s: float) -> None:
        super().__init__("slow", (Channel("host", "temperature_c", "slow"),), simulated=True)
        self._clock, self._call_s = clock, call_s

    def read(self, t_ns: int) -> list[float]:
        self._clock.spend(self._call_s * self._clock.rng.uniform(0.5, 1.5))
        return [40.0]


class Metered(Basic):
    """Devices of one kind, each with its own power, phase of ticks, and instant within the call at
    which it is read."""

    def __init__(self, sensor: Sensor, clock: LateClock, powers: Sequence[Power], end_s: float):
        channels: list[Channel] = []
        for n in range(len(powers)):
            about = {"domain": f"{sensor.kind}:{n}", "scope": sensor.kind, "source": "made up"}
            if sensor.counter:
                channels.append(
                    Channel(
                        **about,
                        quantity="energy_j",
                        tick_s=sensor.told_s,
                        lag_s=sensor.most_lag_s,
                        resolution=1e-3,
                    )
                )
            if sensor.power_over_s:
                role = "detail" if sensor.counter else "part"
                over_s, told_s = sensor.power_over_s, sensor.told_s
                channels.append(
                    Channel(
                        **about, quantity="power_w", role=role, averaging_s=over_s, tick_s=told_s
                    )
                )
        super().__init__(sensor.kind, tuple(channels), least_s=sensor.poll_s, simulated=True)
        self._sensor, self._clock = sensor, clock
        rng, self._shown = clock.rng, []
        for one in powers:
            at = np.arange(-15.0, end_s + 5.0, sensor.tick_s) + rng.uniform(0.0, sensor.tick_s)
            at += sensor.jitter_s * rng.uniform(-0.5, 0.5, len(at))
            at = np.sort(at)
            joules = np.floor(one.joules(at - sensor.lag_s) * 1e3) / 1e3
            mean = sensor.power_over_s or 1.0
            seen = at - (sensor.lag_s if sensor.counter else 0.0)
            watts = np.round((one.joules(seen) - one.joules(seen - mean)) / mean, 3)
            self._shown.append((at, joules, watts))

    def read(self, t_ns: int) -> list[float]:
        row: list[float] = []
        clock, sensor = self._clock, self._sensor
        for at, joules, watts in self._shown:
            call_s = sensor.call_s * clock.rng.uniform(0.5, 2.0)
            if sensor.busy and clock.rng.random() < 0.1:
                call_s += clock.rng.uniform(0.0, 0.03)
            share = clock.rng.uniform(0.0, 1.0)
            clock.spend(call_s * share)
            last = int(np.searchsorted(at, clock.now_ns() / S, side="right")) - 1
            clock.spend(call_s * (1.0 - share))
            row += [float(joules[last])] if sensor.counter else []
            row += [float(watts[last])] if sensor.power_over_s else []
        return row


class Case(NamedTuple):
    """A row of the table."""

    group: str
    name: str
    sensor: Sensor


class Judged(NamedTuple):
    """One save of one device. Shares of the exact joules."""

    about_s: float
    error: float
    holds: bool
    width: float


def recorded(
    sensor: Sensor, rng: np.random.Generator, each: int
) -> tuple[Run, list[Save], list[Power]]:
    """A recording of some saves, as the recorder makes it."""
    plan = saves(rng, each)
    phases = rng.uniform(0.0, 1.0, GPUS) * sensor.step_s
    powers = [power(plan, sensor.step_s, phase_s) for phase_s in phases.tolist()]
    clock = LateClock(rng, sensor.busy)
    end_s = plan[-1].end_s + 4.5
    meters = [Metered(sensor, clock, powers, end_s + 5.0)]
    if sensor.slow_s:
        meters.insert(0, Slow(clock, sensor.slow_s))
    sink = MemorySink(most_values=4_000_000)
    recorder = Recorder(meters, sink, clock)
    recorder.begin()
    for number, save in enumerate(plan):
        for t_s, name in (
            (save.begin_s, "begin"),
            (save.end_s, "returned"),
            (save.end_s, "durable"),
        ):
            recorder.run_until(round(t_s * S))
            recorder.mark(name, f"save-{number}", t_ns=round(t_s * S))
            recorder.step()
    recorder.run_until(round(end_s * S))
    recorder.stop()
    return sink.run(), plan, powers


def judged(sensor: Sensor, seed: int, each: int, recordings: int) -> Iterator[Judged]:
    """Every save of every device, against the exact integral."""
    for number in range(recordings):
        run, plan, powers = recorded(sensor, np.random.default_rng([seed, number]), each)
        node = run.node()
        ahead_s = node.origin_ns / S
        energies = Energies(node)
        for save in plan:
            for n, one in enumerate(powers):
                amount = energies.joules(
                    f"{sensor.kind}:{n}", save.begin_s - ahead_s, save.end_s - ahead_s
                )
                truth = float(one.joules(save.end_s) - one.joules(save.begin_s))
                yield Judged(
                    save.about_s,
                    amount.value / truth - 1.0,
                    amount.low <= truth <= amount.high,
                    (amount.high - amount.low) / truth,
                )


def cases() -> Iterator[Case]:
    """The rows: what `P` and `ticks` are is in the table's head."""
    steps = (0.23, 1.7, 3.4)
    for tick_s in (0.02, 0.1, 1.0):
        for lag_s in (0.0, 0.03, 0.06, 0.1):
            for jitter_s in (0.0, 0.03):
                for step_s in steps if jitter_s else (1.7,):
                    yield Case(
                        "counter",
                        f"ticks {1e3 * tick_s:g} ms, lag {1e3 * lag_s:g} ms, "
                        f"jitter {1e3 * jitter_s:g} ms, P {step_s:g} s",
                        Sensor(tick_s, lag_s, jitter_s, step_s),
                    )
    for poll_s in steps:
        yield Case(
            "polled",
            f"ticks 100 ms, lag 60 ms, asked every {poll_s:g} s",
            Sensor(lag_s=0.06, jitter_s=0.03, poll_s=poll_s),
        )
    for step_s in steps:
        yield Case(
            "no counter",
            f"watts of 100 ms each 100 ms, P {step_s:g} s",
            Sensor(counter=False, power_over_s=0.1, step_s=step_s),
        )
        yield Case(
            "no counter",
            f"average over 1 s (GH200), P {step_s:g} s",
            Sensor(counter=False, power_over_s=1.0, step_s=step_s),
        )
    for tick_s in (0.02, 0.1, 1.0):
        yield Case(
            "busy machine",
            f"ticks {1e3 * tick_s:g} ms, lag 30 ms, polls up to 150 ms late",
            Sensor(tick_s, 0.03, 0.03, busy=True),
        )
    yield Case(
        "busy machine",
        "average over 1 s (GH200), polls up to 150 ms late",
        Sensor(counter=False, power_over_s=1.0, busy=True),
    )
    rapl = Sensor(1e-3, 0.0, told_s=1e-3, most_lag_s=None, call_s=2e-5, kind="cpu")
    for step_s, slow_s, busy, name in (
        (0.0, 0.0, False, "constant power"),
        (0.0, 0.028, False, "constant power, after a meter of 28 ms"),
        (0.0, 0.028, True, "constant power, after a meter of 28 ms, polls up to 150 ms late"),
        (1.7, 0.028, False, "P 1.7 s, after a meter of 28 ms"),
    ):
        yield Case(
            "RAPL",
            f"ticks 1 ms, {name}",
            Sensor(**(vars(rapl) | {"step_s": step_s, "slow_s": slow_s, "busy": busy})),
        )


class Figures(NamedTuple):
    """What a row comes to for saves of one length, or of all."""

    windows: int
    mean: float
    worst: float
    holds: float
    width: float


def figures(of: Sequence[Judged]) -> Figures:
    """Means over the windows; the worst is the largest either way."""
    errors = np.array([each.error for each in of])
    return Figures(
        len(of),
        float(np.abs(errors).mean()),
        float(errors[np.abs(errors).argmax()]),
        sum(each.holds for each in of) / len(of),
        float(np.mean([each.width for each in of])),
    )


def row_of(case: Case, each: int, recordings: int) -> dict[str, Figures]:
    """By length of the save, and of all."""
    found = list(judged(case.sensor, zlib.crc32(case.name.encode()), each, recordings))
    lengths = {f"{s:g} s": [one for one in found if one.about_s == s] for s in LENGTHS_S}
    return {length: figures(of) for length, of in (lengths | {"all": found}).items()}


def table(rows: dict[str, dict[str, Figures]], before: dict[str, dict[str, list[float]]]) -> str:
    """One line a row: at 0.3 s, 1 s and 10 s mean and worst error, and of all lengths how many
    intervals hold and how wide they are."""
    lengths = [f"{s:g} s" for s in LENGTHS_S]
    head = [
        "sensor",
        *(f"{s}: mean, worst error %, before and now" for s in lengths),
        "holds % before",
        "holds %",
        f"least of {', '.join(lengths)}",
        *(f"{s}: width % before, now" for s in lengths),
    ]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for name, row in rows.items():
        old = {length: Figures(*of) for length, of in before.get(name, {}).items()}
        cells = [name]
        for s in lengths:
            errors = [
                f"{100 * of[s].mean:.1f}, {100 * of[s].worst:+.0f}" for of in (old, row) if of
            ]
            cells.append("; ".join(errors))
        cells.append(f"{100 * old['all'].holds:.0f}" if old else "")
        cells.append(f"{100 * row['all'].holds:.1f}")
        cells.append(f"{100 * min(row[s].holds for s in lengths):.0f}")
        for s in lengths:
            was = f"{100 * old[s].width:.0f}, " if old else ""
            cells.append(f"{was}{100 * row[s].width:.0f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=3, help="saves of each length in a recording")
    parser.add_argument("--recordings", type=int, default=8)
    parser.add_argument("--only", default="", help="rows with this in their name")
    parser.add_argument("--json", type=Path, help="keep the figures here")
    parser.add_argument("--write", action="store_true", help="bring docs/accuracy.md up to date")
    wanted = parser.parse_args()
    rows = {
        f"{case.group}: {case.name}": row_of(case, wanted.each, wanted.recordings)
        for case in cases()
        if wanted.only in f"{case.group}: {case.name}"
    }
    if wanted.json:
        wanted.json.write_text(json.dumps(rows, indent=0) + "\n", "utf-8")
    text = table(rows, json.loads(BEFORE.read_text("utf-8")) if BEFORE.exists() else {})
    print(text)
    if wanted.write:
        page = PAGE.read_text("utf-8")
        before, after = page.partition(BEGIN)[0], page.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", "utf-8")


if __name__ == "__main__":
    main()
