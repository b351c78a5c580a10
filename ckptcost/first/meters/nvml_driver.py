"""The one door to NVML: NVIDIA's own binding opened without its side effects, what its codes and
power fields mean, and the calls that fill channels.

Numbers of the C interface stand here, because older bindings lack some names. The table of windows
and the steady-state errors are from "Part-time Power Measurements: nvidia-smi's Lack of Attention"
(arXiv 2312.02741, SC24) and its authors' published results; the meaning of power usage before and
after a driver is in the comments of nvml.h.
"""

from __future__ import annotations

import logging
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from ckptcost.first.meters.base import NOTHING, Absence
from ckptcost.first.meters.visible import are_on_bus

(
    UNINITIALIZED,
    INVALID_ARGUMENT,
    NOT_SUPPORTED,
    NO_PERMISSION,
    NOT_FOUND,
    INSUFFICIENT_SIZE,
    DRIVER_NOT_LOADED,
) = (
    1,
    2,
    3,
    4,
    6,
    7,
    9,
)
TIMEOUT, LIBRARY_NOT_FOUND, FUNCTION_NOT_FOUND, GPU_IS_LOST, RESET_REQUIRED, MISMATCH, NO_DATA = (
    10,
    12,
    13,
    15,
    16,
    18,
    21,
)
GPU_NOT_FOUND, UNKNOWN = 28, 999
NO_WATTS, STANDS_STILL, NEVER_COUNTED, NOT_A_NUMBER = -1, -2, -3, -4
"""answers that are no answer, though NVML calls them a success"""

LIBRARY_GONE = frozenset({UNINITIALIZED, DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND, MISMATCH})
DEVICE_GONE = frozenset({INVALID_ARGUMENT, GPU_IS_LOST, RESET_REQUIRED, GPU_NOT_FOUND})

_REASONS = {
    UNINITIALIZED: "NVML is not initialised any more",
    INVALID_ARGUMENT: "the driver does not know this device or field",
    NOT_SUPPORTED: "the driver does not offer it for this GPU",
    NO_PERMISSION: "no permission to open the device",
    DRIVER_NOT_LOADED: "the NVIDIA driver is not loaded",
    TIMEOUT: "the driver did not answer in time",
    FUNCTION_NOT_FOUND: "the driver is older than this query",
    GPU_IS_LOST: "the GPU has fallen off the bus",
    RESET_REQUIRED: "the GPU needs a reset",
    MISMATCH: "the driver in the kernel and the library are of different versions",
    NO_DATA: "the driver has no data",
    UNKNOWN: "the driver reports an unknown error",
    NO_WATTS: "it reads 0 W, which no GPU that is on draws",
    STANDS_STILL: "the energy counter stands still",
    NEVER_COUNTED: "the energy counter is at 0 and does not count",
    NOT_A_NUMBER: "the value is of a type that NVML does not define",
}


def reason(code: int) -> str:
    return _REASONS.get(code, f"NVML error {code}")


def load(
    library: Any | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    devfs: Path = Path("/dev"),
    procfs: Path = Path("/proc"),
    sysfs: Path = Path("/sys"),
) -> Any | Absence:
    """The binding, initialised; or why not. The roots are looked at only to explain a failure."""
    if library is None:
        library = _import_binding()
    if isinstance(library, Absence):
        return library
    try:
        library.nvmlInit()
    except library.NVMLError as error:
        return _explain_failure(int(error.value), environ or {}, devfs, procfs, sysfs)
    return library


def _import_binding() -> Any | Absence:
    """The module pynvml of nvidia-ml-py. Other packages of that name warn on import and may set up
    logging: neither gets out of here."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pynvml  # type: ignore[import-untyped]
    except ImportError as error:
        return Absence(
            "nvml",
            f"the NVIDIA binding cannot be imported ({error})",
            "pip install 'nvidia-ml-py>=12.535'",
            "gpu",
        )
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    if not hasattr(pynvml, "_nvmlGetFunctionPointer"):
        what = (
            f"the module pynvml at {getattr(pynvml, '__file__', 'an unknown place')} is not"
            " NVIDIA's binding"
        )
        return Absence(
            "nvml", what, "pip uninstall pynvml nvidia-ml-py; pip install nvidia-ml-py", "gpu"
        )
    return pynvml


def _explain_failure(
    code: int, environ: Mapping[str, str], devfs: Path, procfs: Path, sysfs: Path
) -> Absence:
    """Why NVML does not start, as far as this machine tells."""
    nodes = sorted(devfs.glob("nvidia*"))
    on_bus = are_on_bus(sysfs, "0x10de", ("0x03",))  # a display or 3D controller
    named = environ.get("NVIDIA_VISIBLE_DEVICES")
    no_library = code == LIBRARY_NOT_FOUND
    may_not = (
        f"no permission to open {next(iter(nodes), devfs / 'nvidiactl')}",
        f"ls -l {devfs}/nvidia*; usermod -aG video $USER, then log in again",
    )
    kept_out = (
        f"the container was started with NVIDIA_VISIBLE_DEVICES={named}, which keeps GPUs out",
        "docker run --gpus all",
    )
    other = ("libnvidia-ml.so.1 is not found" if no_library else reason(code), _INSTALL_DRIVER)
    explanations = (
        (code == NO_PERMISSION, may_not),
        (code == MISMATCH, (reason(MISMATCH), _RESTART)),
        (code == UNKNOWN and nodes, _LOST_DEVICES),
        (no_library and (devfs / "dxg").exists(), _WSL),
        (named in {"void", "none"}, kept_out),
        (no_library and _driver_runs(environ, nodes, procfs, on_bus), _NO_LIBRARY_HERE),
        (not on_bus and not nodes, _NO_CARD),
        (True, other),
    )
    return Absence("nvml", *next(said for holds, said in explanations if holds), "gpu")


_RESTART = "the driver was updated under a running system: restart the machine, or the container"
_LOST_DEVICES = (
    (
        "NVML does not start: an unknown error, which in a container mostly means that it lost"
        " its right to the device files"
    ),
    "restart the container; `nvidia-smi` on the host tells whether the driver itself is well",
)
_WSL = (
    "libnvidia-ml.so.1 is not found, though this is WSL with a GPU",
    "export LD_LIBRARY_PATH=/usr/lib/wsl/lib:$LD_LIBRARY_PATH",
)
_NO_LIBRARY_HERE = (
    "an NVIDIA driver runs, but libnvidia-ml.so.1 is not found here",
    (
        "docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility; outside a"
        " container install libnvidia-ml of the driver"
    ),
)
_NO_CARD = (
    ("no NVIDIA GPU is in this machine, or none was passed into this virtual machine or container"),
    "lspci -d 10de: shows what is there; in a container: docker run --gpus all",
)
_INSTALL_DRIVER = (
    "modprobe nvidia, or install the driver; `nvidia-smi` and `dmesg | grep -i nvrm` tell more"
)
_CONTAINERS = {
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "KUBERNETES_SERVICE_HOST",
    "container",
}


def _driver_runs(
    environ: Mapping[str, str], nodes: Sequence[Path], procfs: Path, on_bus: bool
) -> bool:
    if (procfs / "driver/nvidia/version").exists() or nodes:
        return True
    return on_bus and not _CONTAINERS.isdisjoint(environ)


ENERGY, AVERAGE, INSTANT, USAGE = 191, 185, 186, -1
"""field ids; USAGE is nvmlDeviceGetPowerUsage, which is no field"""
GPU, MODULE, MEMORY = 0, 1, 2
SCOPES = {GPU: "gpu", MODULE: "module", MEMORY: "memory"}

ARCHITECTURES = {
    2: "Kepler",
    3: "Maxwell",
    4: "Pascal",
    5: "Volta",
    6: "Turing",
    7: "Ampere",
    8: "Ada",
    9: "Hopper",
    10: "Blackwell",
    13: "Rubin",
}
_GA100 = re.compile(r"\b(A100|A800|A30|CMP 170HX)\b")
SUPERCHIP = re.compile(r"\bG[HB]\d{2,3}\b")
"""GH200, GB200, GB300, GB10: a Grace CPU and its GPU on one module"""

VALUE = {0: "dVal", 1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", 6: "usVal"}
"""member of nvmlValue_t by nvmlValueType_t"""


class Sensor(NamedTuple):
    """How a power reading comes about; None is not published."""

    averaging_s: float | None = None
    tick_s: float | None = None
    looks: float | None = None
    note: str = ""


_SECOND = Sensor(1.0, 0.1, 1.0)
_QUARTER = Sensor(0.025, 0.1, 0.25, "sees 25 ms of each 100 ms")
_TENTH = Sensor(0.1, 0.1, 1.0)
_HALF = Sensor(0.01, 0.02, 0.5, "sees 10 ms of each 20 ms")
_SENSORS = {
    ("Hopper", AVERAGE): _SECOND,
    ("Hopper", INSTANT): _QUARTER,
    ("Hopper", USAGE): _SECOND,
    ("Ada", AVERAGE): _SECOND,
    ("Ada", INSTANT): _TENTH,
    ("Ada", USAGE): _SECOND,
    ("Ampere", AVERAGE): _SECOND,
    ("Ampere", INSTANT): _TENTH,
    ("Ampere", USAGE): _SECOND,
    ("GA100", INSTANT): _QUARTER,
    ("GA100", USAGE): _QUARTER,
    ("Turing", INSTANT): _TENTH,
    ("Turing", USAGE): _TENTH,
    ("Volta", INSTANT): _HALF,
    ("Volta", USAGE): _HALF,
    ("Pascal", INSTANT): _HALF,
    ("Pascal", USAGE): _HALF,
}
_OFF = (  # steady state against an external meter, as a fraction of the truth
    (re.compile(r"A100.*PCI", re.I), -0.055),
    (re.compile(r"RTX 3090\b"), -0.040),
    (re.compile(r"RTX 4090\b"), -0.043),
    (re.compile(r"RTX 3070 Ti"), -0.023),
    (re.compile(r"RTX 2080 Ti"), -0.062),
    (re.compile(r"\bP100\b"), 0.005),
    (re.compile(r"\bK80\b"), -0.089),
)


def chip(architecture: int | None, name: str) -> str:
    """The row of the table.

    >>> chip(7, "NVIDIA A100-SXM4-80GB"), chip(7, "NVIDIA RTX A3000"), chip(9, "NVIDIA H200")
    ('GA100', 'Ampere', 'Hopper')
    """
    kind = ARCHITECTURES.get(-1 if architecture is None else architecture, "")
    return "GA100" if kind == "Ampere" and _GA100.search(name) else kind


def sensor(kind: str, field: int, driver: str) -> Sensor:
    """How a field comes about on this chip under this driver.

    >>> (
    ...     sensor("Hopper", INSTANT, "590.48.01").looks,
    ...     sensor("Ampere", USAGE, "530.30.02").averaging_s,
    ... )
    (0.25, 0.1)
    """
    branch = driver.split(".", 1)[0]
    if field == USAGE and kind in {"Ampere", "Ada"} and branch == "530":
        return _TENTH._replace(note="under driver 530 a mean of 100 ms, before and after it of 1 s")
    if field == USAGE:
        meant = {"": "its meaning depends on chip and driver, and the chip is not known"}.get(
            kind,
            (
                "instantaneous, as nvml.h has it for GA100 and older"
                if kind in {"GA100", "Turing", "Volta", "Pascal", "Maxwell", "Kepler"}
                else "a mean of 1 s, as nvml.h has it for Ampere other than GA100 and newer"
            ),
        )
        known = _SENSORS.get((kind, USAGE), Sensor(1.0 if kind in {"Blackwell", "Rubin"} else None))
        return known._replace(note="; ".join(part for part in (meant, known.note) if part))
    return _SENSORS.get(
        (kind, field),
        Sensor(
            1.0 if field == AVERAGE else None, note="window and period not published for this chip"
        ),
    )


def steady_error(name: str) -> float | None:
    """Published error of the power sensor at constant load, with its sign; None where nobody
    published one.

    >>> steady_error("NVIDIA A100-PCIE-40GB"), steady_error("NVIDIA H200")
    (-0.055, None)
    """
    return next((error for pattern, error in _OFF if pattern.search(name)), None)


LAG_S: Final = 0.1
"""How late the energy counter may be published, at most: assumed, for nobody measured it. Its ticks
are 20 to 100 ms by board, and power sensors of the same boards are renewed each 100 ms; a board
that ticks faster need not sense faster."""


def energy_note(kind: str) -> str:
    """What is not settled about the energy counter."""
    if kind in {"Hopper", "GA100"}:
        return (
            "whether the counter, like this chip's power sensor, sees only 25 % of the time is not"
            " settled"
        )
    return ""


def number(value: Any, value_type: int) -> float:
    """The member of an nvmlValue_t that its type names."""
    member = VALUE.get(value_type)
    return float(getattr(value, member)) if member else float("nan")


STILL_NS = 10_000_000_000
"""a GPU that is on draws watts; a counter that has not moved for so long is broken"""


def attempt(library: Any, name: str, *arguments: Any) -> tuple[Any, int]:
    """What a call gives, or None and the code it fails with. Older bindings lack some calls."""
    call = getattr(library, name, None)
    if call is None:
        return None, FUNCTION_NOT_FOUND
    try:
        return call(*arguments), 0
    except library.NVMLError as error:
        return None, int(error.value)
    except ValueError:  # a name that is not UTF-8
        return None, UNKNOWN


def text(library: Any, name: str, *arguments: Any) -> str:
    said, _ = attempt(library, name, *arguments)
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said or "")


class NvmlCall(ABC):
    """`slots` are places in the meter's row. Between two calls `every_ns` apart the last answer
    stands."""

    def __init__(self, slots: Sequence[int], every_ns: int = 0) -> None:
        self.slots = tuple(slots)
        self.every_ns = every_ns
        self.next_ns = 0
        self.held = [NOTHING] * len(self.slots)
        self.why = [0] * len(self.slots)
        self.began_anew: tuple[float, float] | None = None
        self.troubled = False
        """something was missing or changed: the meter is to look at the next answer"""

    @abstractmethod
    def call(self, handle: Any, t_ns: int) -> list[float]:
        """One value a slot; NaN with its code in `why` where there is none."""

    def only(self, slots: Sequence[int]) -> NvmlCall | None:
        """This call for fewer channels, numbered as they stand in `slots`; None for none of
        them."""
        self.slots = tuple(slots.index(slot) for slot in self.slots if slot in slots)
        return self if self.slots else None

    def forget(self) -> None:
        """The device was away: nothing said before is to be held against it."""
        self.held = [NOTHING] * len(self.slots)
        self.next_ns = 0


class EnergyCall(NvmlCall):
    """nvmlDeviceGetTotalEnergyConsumption. A counter that stands still is not an answer: it would
    read as 0 J."""

    def __init__(self, slot: int, library: Any) -> None:
        super().__init__([slot])
        self._get: Callable[[Any], int] = library.nvmlDeviceGetTotalEnergyConsumption
        self._last_mj = -1
        self._moved_ns = 0

    def call(self, handle: Any, t_ns: int) -> list[float]:
        now_mj = self._get(handle)
        if now_mj != self._last_mj:
            if now_mj < self._last_mj:
                self.began_anew, self.troubled = (self._last_mj / 1000.0, now_mj / 1000.0), True
            self._last_mj, self._moved_ns = now_mj, t_ns
        elif t_ns - self._moved_ns > STILL_NS:
            self.why[0] = STANDS_STILL
            return [NOTHING]
        if now_mj == 0:
            self.why[0] = NEVER_COUNTED
            return [NOTHING]
        return [now_mj / 1000.0]

    def forget(self) -> None:
        super().forget()
        self._last_mj = -1


class FieldsCall(NvmlCall):
    """nvmlDeviceGetFieldValues with all fields in one call; each element has a result of its own.
    Milliwatts, millijoules."""

    def __init__(
        self,
        slots: Sequence[int],
        pairs: Sequence[tuple[int, int]],
        library: Any,
    ) -> None:
        super().__init__(slots)
        self._get: Callable[[Any, Sequence[tuple[int, int]]], Any] = (
            library.nvmlDeviceGetFieldValues
        )
        self.pairs = list(pairs)

    def only(self, slots: Sequence[int]) -> NvmlCall | None:
        self.pairs = [
            pair for pair, slot in zip(self.pairs, self.slots, strict=True) if slot in slots
        ]
        self.held, self.why = [NOTHING] * len(self.pairs), [0] * len(self.pairs)
        return super().only(slots)

    def call(self, handle: Any, t_ns: int) -> list[float]:
        said = []
        for place, element in enumerate(self._get(handle, self.pairs)):
            code = element.nvmlReturn
            if code:
                self.why[place] = code
                said.append(NOTHING)
                continue
            member = VALUE.get(element.valueType)
            milli = getattr(element.value, member) if member else NOTHING
            if milli > 0:
                said.append(milli / 1000.0)
            else:
                self.why[place] = NO_WATTS if milli <= 0 else NOT_A_NUMBER
                said.append(NOTHING)
        return said


class UsageCall(NvmlCall):
    """nvmlDeviceGetPowerUsage, where the fields are not known to the driver."""

    def __init__(self, slot: int, library: Any) -> None:
        super().__init__([slot])
        self._get: Callable[[Any], int] = library.nvmlDeviceGetPowerUsage

    def call(self, handle: Any, t_ns: int) -> list[float]:
        milliwatts = self._get(handle)
        self.why[0] = NO_WATTS
        return [milliwatts / 1000.0 if milliwatts > 0 else NOTHING]


class UtilisationCall(NvmlCall):
    """nvmlDeviceGetUtilizationRates: share of the driver's last period (1/6 s to 1 s) in which a
    kernel ran."""

    def __init__(self, slot: int, library: Any, every_ns: int) -> None:
        super().__init__([slot], every_ns)
        self._get: Callable[[Any], Any] = library.nvmlDeviceGetUtilizationRates

    def call(self, handle: Any, t_ns: int) -> list[float]:
        return [self._get(handle).gpu / 100.0]


class MemoryCall(NvmlCall):
    """nvmlDeviceGetMemoryInfo; what the driver keeps for itself counts as used."""

    def __init__(self, slot: int, library: Any, every_ns: int) -> None:
        super().__init__([slot], every_ns)
        self._get: Callable[[Any], Any] = library.nvmlDeviceGetMemoryInfo

    def call(self, handle: Any, t_ns: int) -> list[float]:
        return [float(self._get(handle).used)]
