"""RAPL through pyRAPL 0.2.3.1, kept on a short lead: a reader of raw microjoules and nothing else.

On import it logs through the root logger, which gives that a handler for good; on Python 3.12 and
later it does not compile where warnings are errors; it leaves files open; it knows nothing of
wraps. So it is imported and built inside a guard, only when it is asked for, its files are closed
here, and where a counter starts again comes from our own reading of the powercap files.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ckptcost.errors import MeterLost
from ckptcost.meters import powercap, rapl_advice
from ckptcost.meters.base import NOTHING, RETRY_NS, Absence, Channelwise, Found
from ckptcost.meters.rapl_domains import TICK_S, Processor, Spot, channels_of, reason_of

KINDS = ("cpu", "dram")
"""pyRAPL's devices 0 and 1; its readings stand at socket * 2 + device"""
ABSENT = -1


def _not_pyrapls(record: logging.LogRecord) -> bool:
    return "pyRAPL" not in record.pathname.replace("\\", "/").split("/")


@contextmanager
def guarded() -> Iterator[None]:
    """Nothing that happens inside reaches the root logger, the warning filters or a screen.

    logging.warning() gives the root logger a handler when it has none, so it has one meanwhile: the
    one it would fall back on. What other threads log comes through.
    """
    root = logging.root
    handlers, level = root.handlers[:], root.level
    if not handlers:
        root.addHandler(logging.lastResort or logging.NullHandler())
    root.addFilter(_not_pyrapls)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        root.removeFilter(_not_pyrapls)
        root.handlers[:] = handlers
        root.setLevel(level)


def sensor(device: int) -> Any:
    """A pyRAPL sensor for one device on all sockets. Any exception of pyRAPL's, or of the files it
    reads, may come out."""
    from pyRAPL import Device, Sensor  # type: ignore[import-untyped]

    return Sensor(devices=[Device(device)])


def let_go(one: Any) -> None:
    """Closes what pyRAPL leaves open."""
    for api in getattr(one, "_device_api", {}).values():
        for file in getattr(api, "_sys_files", ()):
            file.close()


class PyRapl(Channelwise):
    """Joules as pyRAPL reads them. A device that fails is NaN on all sockets, because pyRAPL reads
    them in one go."""

    def __init__(
        self, sensors: dict[int, Any], spots: Sequence[Spot], cpu: Processor, version: str
    ) -> None:
        facts = {
            "backend": "pyrapl",
            "library": f"pyRAPL {version}",
            "processor": cpu.model,
            "kernel": cpu.release,
        }
        super().__init__("rapl", channels_of(spots, cpu.model), TICK_S, facts=facts)
        self._sensors = sensors
        self._at = [
            (KINDS.index(spot.kind), spot.package * 2 + KINDS.index(spot.kind)) for spot in spots
        ]

    def read(self, t_ns: int) -> Sequence[float]:
        if not self._sensors:
            raise MeterLost("rapl is closed")
        said = {device: self._ask(device, t_ns) for device in self._sensors}
        return [_joules(said[device], place) for device, place in self._at]

    def _ask(self, device: int, t_ns: int) -> Sequence[float]:
        domains = [
            channel.domain
            for channel, (of, _) in zip(self.channels, self._at, strict=True)
            if of == device
        ]
        wait_ns = RETRY_NS if device in self.silent else 0
        if wait_ns and self.is_due(device, t_ns):
            self._renew(device)
        try:
            said: Sequence[float] = self._sensors[device].energy()
        except Exception as error:
            self.missing(device, reason_of(error), *domains, t_ns=t_ns, wait_ns=wait_ns)
            return ()
        self.answers(device, "pyRAPL answers again", *domains)
        return said

    def _renew(self, device: int) -> None:
        with guarded():
            try:
                new = sensor(device)
            except Exception:
                return
            let_go(self._sensors[device])
            self._sensors[device] = new

    def close(self) -> None:
        for one in self._sensors.values():
            let_go(one)
        self._sensors = {}


def _joules(said: Sequence[float], place: int) -> float:
    value = said[place] if place < len(said) else ABSENT
    return NOTHING if value == ABSENT else float(value) * 1e-6


def find(*, sysfs: Path, cpu: Processor) -> Found:
    """pyRAPL as a meter. `sysfs` is where our own reader looks up the ranges; pyRAPL itself reads
    /sys whatever it is told."""
    zones = powercap.zones(sysfs)
    own = {
        zone.spot.domain: zone.spot
        for zone in powercap.kept(zones, cpu.is_amd)
        if zone.spot is not None
    }
    sensors: dict[int, Any] = {}
    spots: list[Spot] = []
    absences: list[Absence] = []
    with guarded():
        try:
            import pyRAPL
        except Exception as error:
            reason = f"pyRAPL cannot be imported: {reason_of(error)}"
            return Found(
                (),
                [
                    Absence(
                        "rapl pyrapl",
                        reason,
                        "pip install pyRAPL==0.2.3.1, or --rapl powercap",
                        "cpu",
                    )
                ],
            )
        for device, kind in enumerate(KINDS):
            try:
                one = sensor(device)
            except Exception as error:
                absences.append(_refusal(kind, error, own))
                continue
            try:
                said = one.energy()
            except Exception as error:
                let_go(one)
                absences.append(_refusal(kind, error, own))
                continue
            sensors[device] = one
            spots.extend(_spots(kind, said[device::2], own))
    if not sensors:
        return Found((), absences if zones else rapl_advice.nothing(sysfs, cpu))
    return Found((PyRapl(sensors, spots, cpu, str(getattr(pyRAPL, "__version__", ""))),), absences)


def _spots(kind: str, said: Sequence[float], own: dict[str, Spot]) -> list[Spot]:
    found = []
    for package, value in enumerate(said):
        if value == ABSENT:
            continue
        known = own.get(f"{kind}:{package}")
        note = (
            ""
            if known is not None and known.wraps_at is not None
            else "pyRAPL knows no ranges and neither do we: a wrap is a gap"
        )
        wraps_at, resolution = (
            (known.wraps_at, known.resolution) if known is not None else (None, None)
        )
        where = f"pyRAPL, socket {package}, device {kind}"
        found.append(
            Spot(kind, package, where=where, wraps_at=wraps_at, resolution=resolution, note=note)
        )
    return found


def _refusal(kind: str, error: Exception, own: dict[str, Spot]) -> Absence:
    remedy = "--rapl powercap says why and reads what pyRAPL cannot"
    if isinstance(error, OSError):
        reason = f"{error.filename}: {reason_of(error)}"
        remedy = rapl_advice.powercap_remedy() if error.errno in rapl_advice.DENIED else remedy
    elif any(domain.startswith(f"{kind}:") and ".die" in domain for domain in own):
        reason = f"pyRAPL does not know packages of several dies ({type(error).__name__})"
    else:
        reason = f"pyRAPL finds no {kind} counter on every socket ({reason_of(error)})"
    return Absence(f"rapl pyrapl {kind}", reason, remedy, kind)
