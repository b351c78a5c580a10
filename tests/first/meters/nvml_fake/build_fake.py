"""Compiles the fake libnvidia-ml.so.1 and says how to run a process on it. Needs a C compiler, no
NVIDIA software."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("fake_nvml.c")


def compiler() -> str | None:
    """The C compiler of this machine, if it has one."""
    return shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc")


def build(folder: Path) -> Path:
    """The library in a folder of its own, with an `nvidia-smi` beside it for tools that look for
    the program first."""
    cc = compiler()
    if cc is None:
        raise FileNotFoundError("no C compiler: install gcc, or set CC")
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / "libnvidia-ml.so.1"
    command = [
        cc,
        "-O2",
        "-Wall",
        "-Wextra",
        "-shared",
        "-fPIC",
        "-Wl,-soname,libnvidia-ml.so.1",
        "-o",
        str(library),
        str(SOURCE),
        "-lm",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the fake NVML does not compile: {done.stderr}")
    program = folder / "nvidia-smi"
    program.write_text("#!/bin/sh\necho fake\n", "ascii")
    program.chmod(0o755)
    return library


def environment(library: Path, settings: str = "", calls: Path | None = None) -> dict[str, str]:
    """The environment of a process that is to see the fake; no real GPU choice of ours leaks in."""
    dropped = {"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"}
    env = {name: value for name, value in os.environ.items() if name not in dropped}
    folder = str(library.parent)
    env["LD_LIBRARY_PATH"] = ":".join(
        part for part in (folder, env.get("LD_LIBRARY_PATH", "")) if part
    )
    env["PATH"] = f"{folder}:{env.get('PATH', '')}"
    env["FAKE_NVML"] = settings
    if calls is not None:
        env["FAKE_NVML_CALLS"] = str(calls)
    return env
