"""The screen: first paint, a key press until all is drawn, what a live screen costs and sends, and
its memory over an hour."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from pathlib import Path

from measure import ENVIRONMENT, Row, figures, ratios

COLUMNS, ROWS = 120, 36
QUIET_S = 0.07
"""no more output for so long: drawn. What follows after 150 ms of nobody typing is not waited
for"""
SHOWN = b"nas-hdd"
"""a tier of the worked example, which both ours and the bare text show"""
BARE = """
from textual.app import App
from textual.widgets import Static
class Bare(App):
    def compose(self):
        yield Static("nas-hdd")
Bare().run()
"""
"""the least that an application of the same toolkit does"""
WORKER = Path(__file__).with_name("screen_worker.py")


class Terminal:
    """A program in a pseudo-terminal; what it writes is counted."""

    def __init__(self, argv: list[str], folder: str) -> None:
        env = {
            **ENVIRONMENT,
            "CKPTCOST_STATE": folder,
            "CKPTCOST_RUNS": f"{folder}/runs",
            "TERM": "xterm-256color",
        }
        for name in ("COLUMNS", "LINES", "NO_COLOR"):
            env.pop(name, None)
        self.began_s = time.perf_counter()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(argv[0], argv, env)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.bytes = 0

    def read(self, for_s: float) -> bytes:
        if not select.select([self.fd], [], [], for_s)[0]:
            return b""
        block = os.read(self.fd, 1 << 16)
        self.bytes += len(block)
        return block

    def until(self, text: bytes, most_s: float = 30.0) -> float:
        """Seconds from the start until it shows a text."""
        seen = b""
        while text not in seen and time.perf_counter() - self.began_s < most_s:
            seen += self.read(0.02)
        return time.perf_counter() - self.began_s

    def quiet(self, since_s: float, quiet_s: float = QUIET_S) -> float:
        """Seconds until the last of what it writes before it is quiet."""
        last_s = since_s
        while time.perf_counter() - max(last_s, since_s) < quiet_s:
            if self.read(0.005):
                last_s = time.perf_counter()
        return last_s - since_s

    def press(self, keys: bytes) -> float:
        began_s = time.perf_counter()
        os.write(self.fd, keys)
        return self.quiet(began_s)

    def cpu_s(self, main_only: bool = False) -> float:
        """Processor time of the program so far; of its main thread alone, which draws and measures
        nothing."""
        where = f"task/{self.pid}/stat" if main_only else "stat"
        words = Path(f"/proc/{self.pid}/{where}").read_text().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def over(self, for_s: float, main_only: bool = False) -> tuple[float, float]:
        """(share of a core, bytes a second) over a while."""
        cpu_s, sent, began_s = self.cpu_s(main_only), self.bytes, time.perf_counter()
        while time.perf_counter() - began_s < for_s:
            self.read(0.1)
        took_s = time.perf_counter() - began_s
        return (self.cpu_s(main_only) - cpu_s) / took_s, (self.bytes - sent) / took_s


@contextlib.contextmanager
def opened(*words: str, code: str = "") -> Iterator[Terminal]:
    with tempfile.TemporaryDirectory() as folder:
        argv = [sys.executable, "-c", code] if code else [sys.executable, "-m", "ckptcost", *words]
        terminal = Terminal(argv, folder)
        try:
            yield terminal
        finally:
            os.kill(terminal.pid, 9)
            os.waitpid(terminal.pid, 0)
            os.close(terminal.fd)


def painted(rounds: int) -> tuple[list[float], list[float]]:
    """First paint of the model screen, and of a text, in turns."""
    ours, least = [], []
    for number in range(-1, rounds):
        with opened("screen", "--fresh") as terminal:
            took_s = terminal.until(SHOWN)
        with opened(code=BARE) as terminal:
            bare_s = terminal.until(b"nas-hdd")
        if number >= 0:
            ours.append(took_s)
            least.append(bare_s)
    return ours, least


def pressed(rounds: int) -> dict[str, list[float]]:
    """A digit typed into the number of GPUs and taken back; to another screen and back."""
    with opened("screen", "--fresh") as terminal:
        terminal.until(SHOWN)
        terminal.quiet(time.perf_counter(), 1.0)
        terminal.press(b"i")
        for _ in range(7):  # down to the number of GPUs
            terminal.press(b"\t")
        terminal.press(b"\x1b[F")
        terminal.quiet(time.perf_counter(), 0.5)
        typing = []
        for number in range(6 * rounds):
            typing.append(terminal.press(b"\x7f" if number % 2 else b"0"))
            terminal.quiet(time.perf_counter(), 0.3)
        terminal.press(b"\x1b")
        terminal.quiet(time.perf_counter(), 1.0)
        for key in (b"2", b"3", b"8", b"1"):
            terminal.press(key)
            terminal.quiet(time.perf_counter(), 2.0)
        switching = []
        for number in range(2 * rounds):
            switching.append(terminal.press((b"2", b"1")[number % 2]))
            terminal.quiet(time.perf_counter(), 0.5)
    return {"typing": typing, "switching": switching}


def live(rounds: int) -> dict[str, list[float]]:
    """The demo machine, with 8 GPUs read ten times a second and drawn twice: seen, and behind
    another screen."""
    found: dict[str, list[float]] = {"seen": [], "sent": [], "hidden": [], "drawing": []}
    with opened("screen", "--fresh", "--demo") as terminal:
        terminal.until(b"SIMULATED")
        terminal.over(10.0)
        for _ in range(rounds):
            share, rate = terminal.over(20.0)
            found["seen"].append(share)
            found["sent"].append(rate)
        terminal.press(b"7")
        terminal.over(10.0)
        for _ in range(rounds):
            found["hidden"].append(terminal.over(20.0)[0])
            found["drawing"].append(terminal.over(20.0, main_only=True)[0])
    return found


def held() -> list[float]:
    """Bytes that Python holds after each ten minutes of an hour of made-up measuring."""
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run([sys.executable, str(WORKER), file.name], check=True, env=ENVIRONMENT)
        return [float(each) for each in json.loads(Path(file.name).read_text())]


def measure(rounds: int = 12) -> str:
    """Figures with the budgets of the design; rounds of starts, keys and watching."""
    first, least = painted(rounds)
    keys = pressed(rounds)
    running = live(max(rounds // 4, 1))
    memory = held()
    typing = sorted(keys["typing"])
    return figures(
        [
            Row("first paint of the model screen, 120x36, from the shell", first, "ms", 350),
            Row("a text in the same toolkit, from the shell", least, "ms"),
            Row("the first over the second", ratios(first, least), "x"),
            Row("a digit typed into the form until everything is drawn", keys["typing"], "ms", 50),
            Row("the same, the slowest twentieth", typing[-max(len(typing) // 20, 1) :], "ms", 100),
            Row("to another screen until everything is drawn", keys["switching"], "ms", 250),
            Row(
                "live, 8 GPUs at 10 Hz, drawn twice a second: share of a core",
                running["seen"],
                "%",
                3,
            ),
            Row("the same: sent to the terminal", running["sent"], "kB/s", 60),
            Row(
                "the same, behind another screen: the thread that draws",
                running["drawing"],
                "%",
                0.5,
            ),
            Row("with the threads that simulate and record", running["hidden"], "%"),
            Row("held by Python after 10 min of simulated measuring", memory[:1], "MB"),
            Row("held after an hour", memory[-1:], "MB"),
            Row("an hour over ten minutes", [memory[-1] / memory[0]], "x"),
        ]
    )


if __name__ == "__main__":
    print(measure())
