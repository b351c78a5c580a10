"""Asking an NVMe drive for a page: through the kernel's admin passthrough, or through nvme-cli as a
child process.

Both need CAP_SYS_ADMIN or root. Only Get Log Page 02h and Identify Controller are ever sent;
neither writes. An admin command takes some 100 us, and may wake a drive that sleeps in a
non-operational state. _IOWR('N', 0x41, 72 bytes), linux/nvme_ioctl.h.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import struct
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from ckptcost.meters.nvme_log import IDENTITY_BYTES, PAGE_BYTES

Page = Literal["smart", "identity"]
Ask = Callable[[str, Page], bytes]
"""device name (nvme0) and page to its bytes; raises OSError"""

ADMIN_CMD = 0xC0484E41
_COMMAND = struct.Struct("=BBHIIIQQIIIIIIIIII")
_EVERY_NAMESPACE = 0xFFFFFFFF
_TIMEOUT_MS = 1000
_SENT: dict[Page, tuple[int, int, int, int]] = {
    # opcode, namespace, bytes, dword 10: number of dwords less one and the log's id; or what to
    # identify
    "smart": (0x02, _EVERY_NAMESPACE, PAGE_BYTES, (PAGE_BYTES // 4 - 1) << 16 | 0x02),
    "identity": (0x06, 0, IDENTITY_BYTES, 0x01),
}


class Passthrough:
    """Pages through the ioctl, with the device kept open."""

    how = "admin passthrough"

    def __init__(
        self, dev: Path = Path("/dev"), ioctl: Callable[[int, int, Any], int] = fcntl.ioctl
    ) -> None:
        self._dev, self._ioctl = dev, ioctl
        self._fds: dict[str, int] = {}
        self._buffer = ctypes.create_string_buffer(IDENTITY_BYTES)

    def __call__(self, name: str, page: Page) -> bytes:
        fd = self._fds.get(name)
        if fd is None:
            fd = self._fds[name] = os.open(self._dev / name, os.O_RDONLY | os.O_CLOEXEC)
        opcode, namespace, length, dword10 = _SENT[page]
        ctypes.memset(self._buffer, 0, length)
        address = ctypes.addressof(self._buffer)
        command = bytearray(
            _COMMAND.pack(
                opcode,
                0,
                0,
                namespace,
                0,
                0,
                0,
                address,
                0,
                length,
                dword10,
                0,
                0,
                0,
                0,
                0,
                _TIMEOUT_MS,
                0,
            )
        )
        try:
            status = self._ioctl(fd, ADMIN_CMD, command)
        except OSError:
            self._fds.pop(name)
            os.close(fd)
            raise
        if status:
            raise OSError(0, f"the drive refused it with NVMe status {status:#x}")
        return self._buffer.raw[:length]

    def close(self) -> None:
        for fd in self._fds.values():
            os.close(fd)
        self._fds.clear()


def run(words: Sequence[str]) -> bytes:
    """Standard output of a command; OSError with what it complained of."""
    try:
        done = subprocess.run(words, capture_output=True, timeout=10, check=False)
    except subprocess.TimeoutExpired as error:
        raise OSError(0, f"{words[0]} did not answer in 10 s") from error
    if done.returncode:
        raise OSError(
            0,
            (done.stderr or done.stdout).decode("utf-8", "replace").strip()[:200]
            or f"{words[0]} ended with {done.returncode}",
        )
    return done.stdout


class Commands:
    """Pages through nvme-cli, raw: its JSON has neither energy nor power before version 3.0."""

    how = "nvme-cli"

    def __init__(
        self,
        dev: Path = Path("/dev"),
        runner: Callable[[Sequence[str]], bytes] = run,
        program: str = "",
    ) -> None:
        self._dev, self._runner = dev, runner
        self._program = (
            program
            or shutil.which("nvme", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
            or "nvme"
        )

    def __call__(self, name: str, page: Page) -> bytes:
        verb = "smart-log" if page == "smart" else "id-ctrl"
        return self._runner((self._program, verb, str(self._dev / name), "--output-format=binary"))

    def close(self) -> None:
        """Nothing is kept."""
