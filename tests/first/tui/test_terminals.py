"""The real program in real terminals: a pseudo-terminal of each kind, and tmux, which shows what a
person would see."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

WAIT_S = 40.0
"""for what takes a second on a quiet machine"""


class Terminal:
    """A program in a pseudo-terminal; `raw` is all that it has written."""

    def __init__(self, words: list[str], env: dict[str, str], columns: int, rows: int) -> None:
        self.raw = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:  # the program itself
            os.execvpe(sys.executable, [sys.executable, "-m", "ckptcost", *words], env)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.status: int | None = None

    def read(self) -> bool:
        """What is there; False once it has ended."""
        ready, _, _ = select.select([self.fd], [], [], 0.1)
        if ready:
            try:
                block = os.read(self.fd, 65536)
            except OSError:  # the other side is closed
                block = b""
            self.raw += block.decode("utf-8", "replace")
            return bool(block)
        return True

    def wait_for(self, text: str) -> None:
        until_s = time.monotonic() + WAIT_S
        while text not in self.plain and time.monotonic() < until_s:
            if not self.read():
                break
        assert text in self.plain, f"no {text!r} in: {self.plain[-3000:]}"

    @property
    def plain(self) -> str:
        """The letters, without where they go and how they look."""
        return re.sub(
            r"\x1b(\[[0-9;?<>=]*[a-zA-Z]|\][^\x07\x1b]*(\x07|\x1b\\)|[()][A-Z0-9]|[=>a-zA-Z])",
            "",
            self.raw,
        )

    def press(self, keys: str) -> None:
        os.write(self.fd, keys.encode())

    def type(self, keys: str, every_s: float) -> None:
        """One key after the other; all at once where no time lies between them."""
        for typed in keys if every_s else (keys,):
            self.press(typed)
            until_s = time.monotonic() + every_s
            while (left_s := until_s - time.monotonic()) > 0.0:
                if select.select([self.fd], [], [], left_s)[0]:
                    self.read()

    def ended(self) -> int:
        """Its exit code; negative for a signal."""
        until_s = time.monotonic() + WAIT_S
        while time.monotonic() < until_s:
            self.read()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
                return self.status
        raise AssertionError(f"it goes on: {self.plain[-2000:]}")

    def close(self) -> None:
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    """`terminal("screen", columns=80, NO_COLOR="1")` starts the program there."""
    started: list[Terminal] = []

    def start(*words: str, columns: int = 120, rows: int = 36, **env: str) -> Terminal:
        kept = {
            name: value
            for name, value in os.environ.items()
            if name not in ("NO_COLOR", "COLORTERM", "SSH_CONNECTION")
        }
        state = {"CKPTCOST_STATE": str(tmp_path / "state"), "TERM": "xterm-256color"}
        started.append(Terminal(list(words), {**kept, **state, **env}, columns, rows))
        return started[-1]

    yield start
    for each in started:
        each.close()


KINDS = {
    "usual": {},
    "no colours": {"NO_COLOR": "1"},
    "a Linux console": {"TERM": "linux"},
    "16 colours": {"TERM": "xterm-16color", "TEXTUAL_COLOR_SYSTEM": "standard"},
    "no locale": {"LANG": "C", "LC_ALL": "C"},
    "no colours of the terminal's own theme": {"NO_COLOR": "1", "TEXTUAL_THEME": "ansi-dark"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_screen_opens_in_every_kind_of_terminal(kind, terminal):
    seen = terminal("screen", "--fresh", **KINDS[kind])
    seen.wait_for("nas-hdd")
    for key, text in (
        ("2", "goodput"),
        ("3", "interval"),
        ("6", "Runs"),
        ("8", "Report"),
        ("1", "nas-hdd"),
    ):
        before = len(seen.raw)
        seen.press(key)
        until_s = time.monotonic() + WAIT_S
        while (
            text not in re.sub(r"\x1b\[[0-9;]*m", "", seen.raw[before:])
            and time.monotonic() < until_s
        ):
            assert seen.read(), seen.plain[-2000:]
    seen.press("q")
    assert seen.ended() == 0
    assert "Traceback" not in seen.plain
    assert "\x1b[?1049l" in seen.raw, "the screen that was there before comes back"


def test_without_colours_there_are_none(terminal):
    seen = terminal("screen", "--fresh", NO_COLOR="1")
    seen.wait_for("nas-hdd")
    seen.press("q")
    seen.ended()
    colours = {
        code
        for codes in re.findall(r"\x1b\[([0-9;]*)m", seen.raw)
        for code in re.findall(r"38;2;(\d+;\d+;\d+)", codes)
    }
    assert all(len(set(colour.split(";"))) == 1 for colour in colours), "grey is no colour"


@pytest.mark.parametrize(("columns", "rows"), [(60, 15), (40, 10), (20, 5), (1, 1)])
def test_a_terminal_that_is_too_small_says_so_and_lives(columns, rows, terminal):
    seen = terminal("screen", "--fresh", columns=columns, rows=rows)
    time.sleep(0.5)
    until_s = time.monotonic() + WAIT_S
    while "\x1b[?1049h" not in seen.raw and time.monotonic() < until_s:
        seen.read()
    if columns >= 20:
        seen.wait_for("80")
    seen.press("q")
    assert seen.ended() == 0
    assert "Traceback" not in seen.plain


def test_a_closed_terminal_ends_it(terminal):
    seen = terminal("screen", "--fresh")
    seen.wait_for("nas-hdd")
    os.kill(seen.pid, signal.SIGHUP)
    assert seen.ended() == 0


def test_a_kill_leaves_the_terminal_as_it_was(terminal):
    seen = terminal("screen", "--fresh")
    seen.wait_for("nas-hdd")
    os.kill(seen.pid, signal.SIGTERM)
    assert seen.ended() == 0
    assert "\x1b[?1049l" in seen.raw


def test_plain_letters_only(terminal):
    seen = terminal("screen", "--fresh", "--plain", "--go", "interval")
    seen.wait_for("interval")
    seen.press("q")
    assert seen.ended() == 0
    assert not re.search(r"[\u2500-\u259f\u2800-\u28ff]", seen.plain), (
        "no boxes, no blocks, no braille"
    )


@pytest.fixture
def two_busy_loops() -> Iterator[None]:
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    yield
    for each in loops:
        each.kill()
        each.wait()


@pytest.mark.parametrize("every_s", [0.0, 0.02, 0.05, 0.1])
def test_keys_act_in_the_order_in_which_they_are_typed(every_s, terminal, tmp_path, two_busy_loops):
    """The key that opens a dialog, the letters for its field, the tick, the answer, and the end."""
    seen = terminal("screen", "--fresh")
    seen.wait_for("nas-hdd")
    seen.type("taws-fsx-p2-1000 \r", every_s)
    seen.type("tazure-blob \rq", every_s)
    assert seen.ended() == 0
    [state] = (tmp_path / "state").glob("**/*.json")
    tiers = json.loads(state.read_text())["tiers"]
    assert tiers[-2:] == ["aws-fsx-p2-1000", "azure-blob"]
    assert "nas-hdd" in tiers


@pytest.mark.parametrize(
    ("after", "seen_then"),
    [("2", "Each tier at its own best"), ("D", "This machine"), ("$", "USD: one save")],
)
def test_a_key_right_after_escape_loses_neither(after, seen_then, terminal):
    """A terminal sends the two as it sends Alt with the key."""
    seen = terminal("screen", "--fresh")
    seen.wait_for("nas-hdd")
    seen.press("?")
    seen.wait_for("Help: Model")
    seen.press("\x1b" + after)
    seen.wait_for(seen_then)


class Tmux:
    """A server of its own, so that nobody's sessions are touched."""

    def __init__(
        self, folder: Path, columns: int, rows: int, env: dict[str, str], words: list[str]
    ) -> None:
        self._base = ["tmux", "-S", str(folder / "tmux"), "-f", "/dev/null"]
        command = [
            "env",
            "-u",
            "COLUMNS",
            "-u",
            "LINES",
            *(f"{name}={value}" for name, value in env.items()),
            sys.executable,
            "-m",
            "ckptcost",
            *words,
        ]
        self._call("new-session", "-d", "-x", str(columns), "-y", str(rows), *command)

    def _call(self, *words: str) -> str:
        return subprocess.run(
            [*self._base, *words], check=True, capture_output=True, text=True, timeout=20
        ).stdout

    def press(self, *keys: str) -> None:
        self._call("send-keys", *keys)

    def shows(self) -> str:
        return self._call("capture-pane", "-p")

    def wait_for(self, text: str) -> str:
        until_s = time.monotonic() + WAIT_S
        while text not in (seen := self.shows()) and time.monotonic() < until_s:
            time.sleep(0.1)
        assert text in seen, seen
        return seen

    def close(self) -> None:
        subprocess.run([*self._base, "kill-server"], check=False, capture_output=True, timeout=20)


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Callable[..., Tmux]]:
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    opened: list[Tmux] = []

    def start(*words: str, columns: int = 120, rows: int = 36) -> Tmux:
        env = {
            "CKPTCOST_STATE": str(tmp_path / "state"),
            "CKPTCOST_RUNS": str(tmp_path / "runs"),
            "CKPTCOST_USER": str(tmp_path / "user"),
        }
        opened.append(Tmux(tmp_path, columns, rows, env, list(words)))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


def test_a_person_types_and_reads(tmux):
    """From opening the application to which tier, which interval, and what it saves."""
    seen = tmux("screen", "--fresh")
    seen.wait_for("nas-hdd")
    seen.press("i")
    seen.wait_for("Esc tables")
    seen.press("Escape")
    seen.wait_for("Enter its bill")
    seen.press("2")
    shown = seen.wait_for("Robust for time on")
    assert "USD" in shown
    assert "GPU-h" in shown
    seen.press("3")
    seen.wait_for("best for time")
    seen.press("o")
    seen.press("a")
    seen.press("8")
    seen.wait_for("GPT-4-scale checkpoint of 2 TB")
    seen.press("q")


def test_a_terminal_that_is_gone_ends_it_too(terminal):
    """Closed from the other side, where nobody reads what it writes any more."""
    seen = terminal("screen", "--fresh")
    seen.wait_for("nas-hdd")
    os.close(seen.fd)
    seen.fd = os.open(os.devnull, os.O_RDONLY)
    until_s = time.monotonic() + WAIT_S
    while time.monotonic() < until_s:
        pid, status = os.waitpid(seen.pid, os.WNOHANG)
        if pid:
            seen.status = status
            break
        time.sleep(0.1)
    assert seen.status == 0


def test_a_dumb_terminal_is_told_to_use_the_commands(terminal):
    seen = terminal("screen", "--fresh", TERM="dumb")
    assert seen.ended() == 4
    assert "shows no screen" in seen.plain


def test_a_screen_that_nobody_would_see_is_not_opened(tmp_path):
    ours, theirs = pty.openpty()
    with (tmp_path / "log").open("wb") as log:
        done = subprocess.run(
            [sys.executable, "-m", "ckptcost", "screen", "--fresh"],
            stdin=theirs,
            stdout=theirs,
            stderr=log,
            env={**os.environ, "CKPTCOST_STATE": str(tmp_path / "state")},
            timeout=WAIT_S,
            check=False,
        )
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 4
    assert "drawn on stderr" in (tmp_path / "log").read_text("utf-8")


@pytest.mark.parametrize("env", [{"TERM": "linux"}, {"LC_ALL": "C"}], ids=str)
def test_where_glyphs_are_lacking_letters_do(env, terminal):
    seen = terminal("screen", "--fresh", "--go", "interval", **env)
    seen.wait_for("best for time")
    seen.press("q")
    assert seen.ended() == 0
    assert not re.search(r"[\u2500-\u259f\u2800-\u28ff]", seen.plain)


def test_options_without_a_command_are_the_screens(terminal):
    seen = terminal("--go", "interval", "--fresh")
    seen.wait_for("best for time")
    seen.press("q")
    assert seen.ended() == 0
