"""What a command prints passes through untouched, and its tokens are found: real pipes, real
pseudo-terminals."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptcost.first.errors import InputError
from ckptcost.first.watch.output import OutputToken, Relay, Tokens

ROOT = Path(__file__).parents[3]
THROUGH = f"""
import subprocess, sys
sys.path.insert(0, {str(ROOT)!r})
from ckptcost.first.watch.output import Relay
seen = []
relay = Relay(lambda data, t_ns: seen.append(len(data)))
job = subprocess.Popen(sys.argv[1:], stdout=relay.child_fd)
relay.start()
code = job.wait()
relay.finish()
print(code, sum(seen), relay.problem, file=sys.stderr)
"""


def through(*command):
    return [sys.executable, "-S", "-c", THROUGH, *command]


def python(text):
    return [sys.executable, "-S", "-c", text]


# --- tokens

SAVING = [
    ("begin", r"^Saving (?P<what>\w+) to (?P<window>\S+)"),
    ("end", r"saved (\S+)"),
    ("note", "epoch"),
]


def test_tokens_are_found_with_their_windows():
    tokens = Tokens(SAVING)
    assert tokens.feed(b"Saving model to step-9\nwe saved step-9 in 3 s\n") == [
        OutputToken("begin", "step-9"),
        OutputToken("end", "step-9"),
    ]
    assert tokens.feed(b"epoch 3\n") == [OutputToken("note", "")]
    assert tokens.feed(b"nothing\n\n") == []


@given(st.lists(st.integers(1, 30)))
def test_any_chunks_give_the_same_tokens(cuts):
    data = b"Saving a to s1\r\n\x1b[1msaved\x1b[0m s1\r 10%\rSaving b to \xc3\xa4\nlast saved s3"
    tokens, found, at = Tokens(SAVING), [], 0
    for cut in cuts:
        found += tokens.feed(data[at : at + cut])
        at += cut
    found += tokens.feed(data[at:]) + tokens.finish()
    assert found == [
        OutputToken("begin", "s1"),
        OutputToken("end", "s1"),
        OutputToken("begin", "ä"),
        OutputToken("end", "s3"),
    ]


def test_lines_without_an_end_take_no_memory():
    tokens = Tokens([("end", "saved")])
    found = []
    for _ in range(100):
        found += tokens.feed(b"saved " * 5000)
        assert len(tokens._rest) < 1 << 17
    assert found == [OutputToken("end", "")], "one line, looked at once"
    assert tokens.feed(b"saved \nsaved\n") == [OutputToken("end", "")], (
        "the rest of that line is passed over"
    )
    assert tokens.finish() == []


def test_titles_and_colours_are_no_text():
    tokens = Tokens([("end", r"^saved (\S+)$")])
    assert tokens.feed(b"\x1b]0;title\x07\x1b[38;5;196msaved\x1b[0m \x1b[?25lstep\x1b[K\n") == [
        OutputToken("end", "step")
    ]


def test_a_group_that_took_no_part_is_no_window():
    assert Tokens([("end", r"saved( \w+)?")]).feed(b"saved.\n") == [OutputToken("end", "")]


def test_what_is_no_pattern_is_refused():
    with pytest.raises(InputError, match=r"begin: '\(' is no regular expression"):
        Tokens([("begin", "(")])


# --- pipes


def test_fifty_megabytes_pass_as_they_are():
    text = (
        "import os, random; r = random.Random(7); b = r.randbytes(1 << 20)\nfor n in range(50):"
        " os.write(1, b[n:] + b[:n])"
    )
    plain = subprocess.run(python(text), capture_output=True, check=True).stdout
    relayed = subprocess.run(through(*python(text)), capture_output=True, check=True)
    assert len(plain) > 49 << 20
    assert relayed.stdout == plain
    assert relayed.stderr == f"0 {len(plain)} \n".encode()


def test_what_comes_is_passed_on_at_once():
    text = "import os, sys; os.write(1, b'half a li'); sys.stdin.readline(); os.write(1, b'ne')"
    with subprocess.Popen(
        through(*python(text)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as job:
        assert os.read(job.stdout.fileno(), 100) == b"half a li"
        job.stdin.write(b"\n")
        job.stdin.close()
        assert job.stdout.read() == b"ne"


def test_a_reader_that_closes_early_ends_the_command_as_it_would(tmp_path):
    forever = ["yes", "a line"]
    with subprocess.Popen(through(*forever), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as job:
        assert job.stdout.read(14) == b"a line\na line\n"
        job.stdout.close()
        assert job.stderr.read().split()[0] == str(-signal.SIGPIPE).encode()


def test_a_full_disk_is_a_problem_that_is_told():
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    with open("/dev/full", "wb") as full:
        job = subprocess.run(through("yes"), stdout=full, stderr=subprocess.PIPE, check=True)
    code, _, *problem = job.stderr.decode().split()
    assert int(code) == -signal.SIGPIPE
    assert " ".join(problem) == "standard output: No space left on device"


def test_an_output_that_does_not_block_loses_nothing():
    read, write = os.pipe()
    os.set_blocking(write, False)
    text = "import os\nfor n in range(40): os.write(1, bytes([n]) * 100_000)"
    with subprocess.Popen(through(*python(text)), stdout=write, stderr=subprocess.PIPE) as job:
        os.close(write)
        data = b""
        while part := os.read(read, 30_000):
            data += part
            time.sleep(0.0005)
        said = job.stderr.read()
    os.close(read)
    assert data == b"".join(bytes([n]) * 100_000 for n in range(40))
    assert said == b"0 4000000 \n"


def test_the_stamp_is_when_it_was_read():
    read, write = os.pipe()
    stamps = []
    relay = Relay(lambda data, t_ns: stamps.append((data, t_ns)), write)
    before_ns = time.monotonic_ns()
    with subprocess.Popen(["echo", "hello"], stdout=relay.child_fd) as job:
        relay.start()
        job.wait()
    relay.finish()
    os.close(write)
    assert os.read(read, 100) == b"hello\n"
    os.close(read)
    ((data, t_ns),) = stamps
    assert data == b"hello\n"
    assert before_ns <= t_ns <= time.monotonic_ns()


def test_a_defect_of_ours_costs_no_output():
    read, write = os.pipe()

    def broken(data, t_ns):
        raise ZeroDivisionError("oh")

    relay = Relay(broken, write)
    with subprocess.Popen(["sh", "-c", "echo a; sleep 0.05; echo b"], stdout=relay.child_fd) as job:
        relay.start()
        job.wait()
    relay.finish()
    os.close(write)
    with open(read, "rb") as file:
        assert file.read() == b"a\nb\n"
    assert relay.problem == "the output is no longer looked at: ZeroDivisionError: oh"


@pytest.mark.parametrize("writes", ["sleep 30", "while echo x; do sleep 0.01; done", "yes"])
def test_what_goes_on_in_the_background_does_not_hold_us_up(writes):
    command = ["sh", "-c", f"echo $$; ({writes}) & echo $!"]
    with subprocess.Popen(through(*command), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as job:
        begun = time.monotonic()
        text = b""
        while part := os.read(job.stdout.fileno(), 1 << 16):
            text = (text + part)[:1000]
        job.wait()
        took_s = time.monotonic() - begun
        numbers = [int(word) for word in text.split() if word.isdigit()]
    if "sleep 30" in writes:
        os.kill(numbers[1], signal.SIGKILL)
    assert took_s < 10.0


def test_a_command_that_never_started_leaves_nothing_open():
    before = set(os.listdir("/proc/self/fd"))
    relay = Relay(lambda data, t_ns: None, 2)
    with pytest.raises(FileNotFoundError):
        subprocess.Popen(["/no/such/command"], stdout=relay.child_fd)
    relay.finish()
    assert set(os.listdir("/proc/self/fd")) == before


# --- terminals

SHOW = """
import os, sys
print(os.isatty(1), *os.get_terminal_size(1), flush=True)
for done in range(5):
    sys.stdout.write(f"\\r\\x1b[32m{done}/4\\x1b[0m")
print()
os.write(1, bytes(range(32, 256)) + b"\\r\\n\\n\\t|")
"""


def on_terminal(command, size=(33, 101)):
    """What a terminal of that size shows."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    with subprocess.Popen(
        command, stdout=slave, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as job:
        os.close(slave)
        data = b""
        try:
            while part := os.read(master, 1 << 16):
                data += part
        except OSError:  # everybody closed it
            pass
        said = job.stderr.read()
    os.close(master)
    return data, said


def test_on_a_terminal_the_command_is_on_a_terminal_of_that_size():
    plain, _ = on_terminal(python(SHOW))
    relayed, said = on_terminal(through(*python(SHOW)))
    assert plain.startswith(b"True 101 33\r\n\r\x1b[32m0/4"), (
        "our own terminal makes two of a newline"
    )
    assert relayed == plain
    assert said.split()[0] == b"0"


def test_off_a_terminal_the_command_is_off_it_too():
    text = "import os; print(os.isatty(1))"
    assert (
        subprocess.run(through(*python(text)), capture_output=True, check=True).stdout == b"False\n"
    )


def test_much_on_a_terminal_passes_as_it_is():
    text = (
        "import os, random; b = random.Random(3).randbytes(1 << 16)\nfor n in range(16):"
        " os.write(1, b)"
    )
    plain, _ = on_terminal(python(text))
    relayed, _ = on_terminal(through(*python(text)))
    assert relayed == plain


def test_the_size_follows_ours():
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 60, 0, 0))
    relay = Relay(lambda data, t_ns: None, slave)
    text = (
        "import os, select, signal, sys\nsignal.signal(signal.SIGWINCH, lambda *_: print('now',"
        " *os.get_terminal_size(1), flush=True))\nprint('was', *os.get_terminal_size(1),"
        " flush=True)\n"
        # a signal that comes just before a read that never ends would not be told
        "while not select.select([0], [], [], 0.05)[0]:\n    pass"
    )
    with subprocess.Popen(python(text), stdout=relay.child_fd, stdin=subprocess.PIPE) as job:
        relay.start()
        assert relay.resize() is False
        assert shown(master, b"was") == b"was 60 20"
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 25, 70, 0, 0))
        assert relay.resize() is True
        job.send_signal(signal.SIGWINCH)
        assert shown(master, b"now") == b"now 70 25"
        job.stdin.close()
        job.wait()
    relay.finish()
    assert relay.resize() is False
    os.close(slave)
    os.close(master)


def shown(master, word, within_s=10.0):
    data = b""
    deadline = time.monotonic() + within_s
    while not (hit := re.search(word + rb"[^\r]*(?=\r\n)", data)):
        assert select.select([master], [], [], deadline - time.monotonic())[0], data
        data += os.read(master, 1000)
    return hit[0]


def test_a_pipe_has_no_size():
    read, write = os.pipe()
    relay = Relay(lambda data, t_ns: None, write)
    assert (relay.is_terminal, relay.resize()) == (False, False)
    relay.finish()
    os.close(read)
    os.close(write)
