"""Power of the node as its BMC tells it over DCMI: `ipmitool dcmi power reading`, one process a
reading, 0.05 to 2 s each, behind a thread.

Only on request: it starts processes, and whoever may open /dev/ipmi0 may also switch the machine
off. The channel is the instantaneous reading. The average is over a period the BMC chooses, days on
some boards, so it is parsed and kept in `last` but is no channel.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ckptcost.first.core.channels import Channel
from ckptcost.first.errors import MeterUnavailable
from ckptcost.first.meters.background import Background
from ckptcost.first.meters.base import NOTHING, Channelwise, FoundMeters, none_found

if TYPE_CHECKING:
    import subprocess

NODES = ("ipmi0", "ipmi/0", "ipmidev/0")
"""where ipmitool looks, under /dev"""
LOAD = (
    "sudo modprobe -a ipmi_si ipmi_devintf, and for good both names, a line each, in"
    " /etc/modules-load.d/ipmi.conf (a virtual machine has no BMC: ask its host)"
)
LET_IN = (
    'sudo groupadd -f ipmi; echo \'KERNEL=="ipmi*", GROUP="ipmi", MODE="0660"\' | sudo tee'
    " /etc/udev/rules.d/70-ipmi.rules; sudo udevadm control --reload; sudo udevadm trigger; add"
    " yourself to the group, log in again. Who is in that group controls the BMC, power switch"
    " included; running ckptcost with sudo gives no one else that right"
)
BY_NETWORK = "try the BMC's Redfish service (meter redfish), or leave this meter out"


class Dcmi(NamedTuple):
    """One reply to Get Power Reading; NaN where it does not say."""

    now_w: float
    minimum_w: float
    maximum_w: float
    average_w: float
    period_s: float
    active: bool


def _number(text: str, label: str, unit: str) -> float:
    # not only at the start of a line: 1.8.19 ends the timestamp without a newline, and the period
    # follows on the same line
    found = re.search(rf"(?:^|\s){label}\s*:\s*(\d{{1,10}})\s*{unit}\b", text, re.I)
    return float(found[1]) if found else NOTHING


def parse(text: str) -> Dcmi:
    """What `ipmitool dcmi power reading` printed; ValueError where it is something else or has been
    cut off.

    >>> reply = (
    ...     "Instantaneous power reading: 319 Watts\\nSampling period: 00000010 Seconds.\\n"
    ...     "Power reading state is: activated\\n"
    ... )
    >>> parse(reply).now_w, parse(reply).period_s, parse(reply).average_w
    (319.0, 10.0, nan)
    """
    now_w = _number(text, "Instantaneous power reading", "Watts")
    state = re.search(
        r"^\s*Power reading state is\s*:\s*(activated|deactivated)\b", text, re.M | re.I
    )
    if now_w != now_w or state is None:
        start = " ".join(text.split())[:80]
        raise ValueError(f"not a DCMI power reading: {start!r}" if start else "an empty reply")
    return Dcmi(
        now_w,
        _number(text, "Minimum during sampling period", "Watts"),
        _number(text, "Maximum during sampling period", "Watts"),
        _number(text, "Average power reading over sample period", "Watts"),
        _number(text, "Sampling period", "Seconds"),
        state[1].lower() == "activated",
    )


def _complaint(text: str) -> tuple[str, str]:
    """Reason and remedy from what ipmitool wrote when it failed."""
    said = " ".join(text.split())[:200] or "ipmitool failed without a word"
    if "Permission denied" in said:
        return said, LET_IN
    if "Could not open device" in said:
        return said, LOAD
    return said, f"the BMC may not measure power over DCMI: {BY_NETWORK}"


class Ipmi(Channelwise):
    """`argv` is fixed: no shell, nothing of the user's in it."""

    last: Dcmi | None = None

    def __init__(self, tool: str, *, timeout_s: float = 10.0, least_s: float = 2.0) -> None:
        note = "instantaneous DCMI reading; over how long the BMC averages it is not published"
        node = Channel(
            "node",
            "power_w",
            "ipmitool dcmi power reading",
            scope="node",
            role="whole",
            resolution=1.0,
            note=note,
        )
        super().__init__("ipmi", (node,), max(least_s, 1.0), facts={"tool": tool})
        self.argv = (tool, "dcmi", "power", "reading")
        self._timeout_s = timeout_s
        self._process: subprocess.Popen[bytes] | None = None
        self._stuck: subprocess.Popen[bytes] | None = None
        self._stopping = False

    def ask(self) -> Dcmi:
        """One reading; MeterUnavailable with reason and remedy where there is none."""
        code, out, err = self._run()
        if code:
            raise MeterUnavailable(*_complaint(err or out))
        try:
            reading = parse(out)
        except ValueError as error:
            raise MeterUnavailable(str(error), BY_NETWORK) from None
        if not reading.active:
            # DCMI 1.5, Get Power Reading: bit 6 clear is "no measurement available"; some OpenBMC
            # images say so beside a true figure
            raise MeterUnavailable("the BMC says that power measurement is deactivated", BY_NETWORK)
        if not 0.0 < reading.now_w < 65535.0:  # 16 bits; a node that runs this does not draw 0 W
            raise MeterUnavailable(f"the BMC reports {reading.now_w:.0f} W", BY_NETWORK)
        self.last = reading
        return reading

    def _run(self) -> tuple[int, str, str]:
        import subprocess

        if self._stuck is not None:
            if self._stuck.poll() is None:
                raise MeterUnavailable(
                    "the ipmitool before cannot be ended", "the IPMI driver hangs: see dmesg"
                )
            self._stuck = None
        try:
            process = subprocess.Popen(
                self.argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, "LC_ALL": "C"},
                start_new_session=True,  # so that one signal ends whatever it started too
            )
        except OSError as error:
            raise MeterUnavailable(
                f"{self.argv[0]}: {error.strerror}", "sudo apt install ipmitool"
            ) from None
        self._process = process
        try:
            if self._stopping:
                _end(process)
            out, err = process.communicate(timeout=self._timeout_s)
        except subprocess.TimeoutExpired:
            _end(process)
            try:
                process.communicate(timeout=1.0)
            except subprocess.TimeoutExpired:  # in the kernel, where no signal reaches it
                self._stuck = process
            raise MeterUnavailable(f"no answer within {self._timeout_s:g} s", BY_NETWORK) from None
        finally:
            self._process = None
        return process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")

    def read(self, t_ns: int) -> Sequence[float]:
        try:
            reading = self.ask()
        except MeterUnavailable as error:
            return (NOTHING if self._stopping else self.note_missing("node", error.reason),)
        self.note_answer("node", "the BMC answers again")
        return (reading.now_w,)

    def stop(self) -> None:
        """From another thread: end the call under way."""
        self._stopping = True
        process = self._process
        if process is not None:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.returncode is None:  # not reaped yet, so its number is still its own
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)


def find(
    asked: bool = False,
    *,
    tool: str = "ipmitool",
    dev: Path = Path("/dev"),
    timeout_s: float = 10.0,
    least_s: float = 2.0,
) -> FoundMeters:
    """The BMC's reading when it was asked for and answers once; a reason otherwise."""
    import shutil

    def absent(reason: str, remedy: str) -> FoundMeters:
        return none_found("ipmi", reason, remedy, "node")

    if not asked:
        return absent(
            "not asked for: each reading starts a process", "ask for the meter ipmi by name"
        )
    path = shutil.which(tool)
    if path is None:
        return absent(
            f"{tool} is not installed", "sudo apt install ipmitool, or dnf install ipmitool"
        )
    node = next((dev / name for name in NODES if (dev / name).exists()), None)
    if node is None:
        return absent(
            f"no {dev / NODES[0]}: the IPMI driver is not loaded, or there is no BMC", LOAD
        )
    if not os.access(node, os.R_OK | os.W_OK):
        return absent(f"{node}: permission denied", LET_IN)
    meter = Ipmi(path, timeout_s=timeout_s, least_s=least_s)
    try:
        first = meter.ask()
    except MeterUnavailable as error:
        return absent(error.reason, error.remedy)
    if first.period_s > 0.0:
        meter.facts["statistics over"] = f"{first.period_s:.0f} s"
    return FoundMeters((Background(meter),))
