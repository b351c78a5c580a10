"""The one door to NVML: NVIDIA's own binding, opened without its side effects, and what to do where
it does not open."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ckptcost.meters.base import Absence

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
        library = _official()
    if isinstance(library, Absence):
        return library
    try:
        library.nvmlInit()
    except library.NVMLError as error:
        return _unopened(int(error.value), environ or {}, devfs, procfs, sysfs)
    return library


def _official() -> Any | Absence:
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


def _unopened(
    code: int, environ: Mapping[str, str], devfs: Path, procfs: Path, sysfs: Path
) -> Absence:
    """Why NVML does not start, as far as this machine tells."""
    nodes = sorted(devfs.glob("nvidia*"))
    driver = (procfs / "driver/nvidia/version").exists()
    container = any(
        name in environ
        for name in (
            "NVIDIA_VISIBLE_DEVICES",
            "NVIDIA_DRIVER_CAPABILITIES",
            "KUBERNETES_SERVICE_HOST",
            "container",
        )
    )
    if code == NO_PERMISSION:
        node = next((str(path) for path in nodes), str(devfs / "nvidiactl"))
        return Absence(
            "nvml",
            f"no permission to open {node}",
            f"ls -l {devfs}/nvidia*; usermod -aG video $USER, then log in again",
            "gpu",
        )
    if code == MISMATCH:
        return Absence(
            "nvml",
            reason(MISMATCH),
            "the driver was updated under a running system: restart the machine, or the container",
            "gpu",
        )
    if code == UNKNOWN and nodes:
        lost = (
            "NVML does not start: an unknown error, which in a container mostly means that it lost"
            " its right to the device files"
        )
        return Absence(
            "nvml",
            lost,
            "restart the container; `nvidia-smi` on the host tells whether the driver itself is"
            " well",
            "gpu",
        )
    if code == LIBRARY_NOT_FOUND and (devfs / "dxg").exists():
        wsl = "export LD_LIBRARY_PATH=/usr/lib/wsl/lib:$LD_LIBRARY_PATH"
        return Absence(
            "nvml", "libnvidia-ml.so.1 is not found, though this is WSL with a GPU", wsl, "gpu"
        )
    if environ.get("NVIDIA_VISIBLE_DEVICES") in {"void", "none"}:
        kept = (
            "the container was started with"
            f" NVIDIA_VISIBLE_DEVICES={environ['NVIDIA_VISIBLE_DEVICES']}, which keeps GPUs out"
        )
        return Absence("nvml", kept, "docker run --gpus all", "gpu")
    if code == LIBRARY_NOT_FOUND and (driver or nodes or (container and _card(sysfs))):
        utility = (
            "docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility; outside a"
            " container install libnvidia-ml of the driver"
        )
        return Absence(
            "nvml", "an NVIDIA driver runs, but libnvidia-ml.so.1 is not found here", utility, "gpu"
        )
    if not _card(sysfs) and not nodes:
        seen = (
            "no NVIDIA GPU is in this machine, or none was passed into this virtual machine or"
            " container"
        )
        return Absence(
            "nvml",
            seen,
            "lspci -d 10de: shows what is there; in a container: docker run --gpus all",
            "gpu",
        )
    what = {
        LIBRARY_NOT_FOUND: "libnvidia-ml.so.1 is not found",
        DRIVER_NOT_LOADED: reason(DRIVER_NOT_LOADED),
    }.get(code, reason(code))
    return Absence(
        "nvml",
        what,
        "modprobe nvidia, or install the driver; `nvidia-smi` and `dmesg | grep -i nvrm` tell more",
        "gpu",
    )


def _card(sysfs: Path) -> bool:
    """Whether a display or 3D controller of NVIDIA is on the PCI bus."""
    for device in sysfs.glob("bus/pci/devices/*"):
        try:
            if (device / "vendor").read_text("ascii").strip() == "0x10de" and (
                device / "class"
            ).read_text("ascii").startswith("0x03"):
                return True
        except (OSError, UnicodeDecodeError):
            continue
    return False
