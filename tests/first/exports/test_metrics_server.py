"""The HTTP side: who is answered and who is not, that nobody holds up anybody else, and a real
Prometheus that scrapes a recording."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prometheus_tools import Prometheus, get, program, samples, serving
from small_runs import recorded

from ckptcost.first.errors import InputError
from ckptcost.first.exports import live_metrics, metrics_server
from ckptcost.first.exports.live_metrics import LiveSource, Unreadable
from ckptcost.first.exports.metrics_server import MetricsServer
from ckptcost.first.runs.summary import one_of

SUPPORT = Path(__file__).parents[1] / "runs"
RECORDS = """
import sys, time
sys.path.append(sys.argv[1])
from small_runs import Real
from ckptcost.first.runs.recorder import Recorder
from ckptcost.first.runs.sinks import FileSink
recorder = Recorder([Real(2)], FileSink(__import__("pathlib").Path(sys.argv[2])), run_id="c" * 32, host="node1")
recorder.start()
print("recording", flush=True)
for number in range(100_000):
    recorder.mark("begin", f"step {number}", bytes=1000)
    time.sleep(0.1)
    recorder.mark("returned", f"step {number}")
    recorder.mark("durable", f"step {number}", by="watch", how="output")
    time.sleep(0.2)
"""


@contextlib.contextmanager
def server_of(folder: Path, address: str = "127.0.0.1") -> Iterator[MetricsServer]:
    source = LiveSource(folder, one_of(folder).run)
    server = MetricsServer(source, address, 0)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    source.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()
        source.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MetricsServer]:
    recorded(tmp_path / "run")
    with server_of(tmp_path / "run") as server:
        yield server


def connected(server: MetricsServer) -> socket.socket:
    return socket.create_connection(server.server_address[:2], timeout=30)


def said(connection: socket.socket) -> bytes:
    answer = b""
    with contextlib.suppress(ConnectionResetError):
        while more := connection.recv(65536):
            answer += more
    return answer


def asked(server: MetricsServer, raw: str) -> str:
    """What a request as it stands is answered; `{host}` is filled in."""
    with connected(server) as connection:
        connection.sendall(
            raw.replace("\n", "\r\n")
            .replace("{host}", f"127.0.0.1:{server.server_port}")
            .encode("latin-1")
        )
        return said(connection).decode()


def status_of(answer: str) -> int:
    return int(answer.split(" ")[1])


@pytest.mark.parametrize(
    ("path", "kind", "body"),
    [
        (
            "/metrics",
            "text/plain; version=0.0.4; charset=utf-8",
            "ckptcost_live_metered_energy_joules_total{",
        ),
        (
            "/metrics?name[]=x",
            "text/plain; version=0.0.4; charset=utf-8",
            "ckptcost_live_recording{",
        ),
        ("/healthz", "text/plain; charset=utf-8", "ok\n"),
        (
            "/",
            "text/plain; charset=utf-8",
            "metrics of the run run (aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa) are at /metrics\n",
        ),
    ],
)
def test_answers(server, path, kind, body):
    answer = asked(server, f"GET {path} HTTP/1.1\nHost: {{host}}\n\n")
    head, _, rest = answer.partition("\r\n\r\n")
    assert status_of(answer) == 200
    assert f"Content-Type: {kind}" in head
    assert f"Content-Length: {len(rest.encode())}" in head
    assert body in rest
    alone = asked(server, f"HEAD {path} HTTP/1.1\nHost: {{host}}\n\n")
    assert alone.endswith("\r\n\r\n")
    assert status_of(alone) == 200


def test_openmetrics_for_who_asks_for_it(server):
    answer = asked(
        server,
        "GET /metrics HTTP/1.1\nHost: {host}\nAccept:"
        " application/openmetrics-text;version=1.0.0,*/*;q=0.1\n\n",
    )
    assert "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8" in answer
    assert answer.endswith("\n# EOF\n")


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        ("GET /metrics HTTP/1.1\nHost: localhost:{port}\n\n", 200),
        ("GET /metrics HTTP/1.1\nHost: LOCALHOST:{port}\n\n", 200),
        ("GET /metrics HTTP/1.1\nHost: [::1]:{port}\n\n", 200),
        ("GET /metrics HTTP/1.1\nHost: evil.example:{port}\n\n", 403),
        ("GET /metrics HTTP/1.1\nHost: 127.0.0.1.evil.example:{port}\n\n", 403),
        ("GET /metrics HTTP/1.1\nHost: 127.0.0.1\n\n", 403),
        ("GET /metrics HTTP/1.1\nHost: 127.0.0.1:1\n\n", 403),
        ("GET /metrics HTTP/1.1\nHost: {host}\nHost: evil.example\n\n", 403),
        ("GET /metrics HTTP/1.1\n\n", 403),
        ("GET / HTTP/1.1\nHost: evil.example\n\n", 403),
        ("GET /healthz HTTP/1.0\n\n", 403),
        ("GET /../../etc/passwd HTTP/1.1\nHost: {host}\n\n", 404),
        ("GET /metrics/../healthz HTTP/1.1\nHost: {host}\n\n", 404),
        ("GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1\nHost: {host}\n\n", 404),
        ("GET //etc/passwd HTTP/1.1\nHost: {host}\n\n", 404),
        ("GET http://{host}/metrics HTTP/1.1\nHost: {host}\n\n", 404),
        ("POST /metrics HTTP/1.1\nHost: {host}\nContent-Length: 0\n\n", 405),
        ("PUT / HTTP/1.1\nHost: {host}\nContent-Length: 0\n\n", 405),
        ("DELETE /metrics HTTP/1.1\nHost: {host}\n\n", 405),
        ("OPTIONS * HTTP/1.1\nHost: {host}\n\n", 405),
        ("TRACE / HTTP/1.1\nHost: {host}\n\n", 501),
        ("GET /metrics HTTP/9.9\nHost: {host}\n\n", 505),
        ("GET /metrics FTP/1.1\nHost: {host}\n\n", 400),
        ("GET\n\n", 400),
        ("\x16\x03\x01\x02\n\n", 400),
        (f"GET /{'a' * 70_000} HTTP/1.1\nHost: {{host}}\n\n", 414),
        (
            (
                "GET / HTTP/1.1\nHost:"
                f" {{host}}\n{''.join(f'X-{n}: 1{chr(10)}' for n in range(200))}\n"
            ),
            431,
        ),
    ],
)
def test_who_is_answered(server, raw, status):
    answer = asked(server, raw.replace("{port}", str(server.server_port)))
    # a request that is no HTTP has a bare answer
    assert (
        answer.split("\r\n")[0].split(" ")[1] == str(status)
        if answer.startswith("HTTP/")
        else answer.startswith(f"{status} ")
    ), answer
    assert "root:" not in answer
    assert ("ckptcost_live" in answer) == (status == 200)


def test_another_address_has_no_names(tmp_path):
    """Who asks for it to be reached from elsewhere cannot know by what name."""
    recorded(tmp_path)
    with server_of(tmp_path, "0.0.0.0") as server:
        assert not server.is_local
        assert status_of(asked(server, "GET /metrics HTTP/1.1\nHost: node7.cluster:80\n\n")) == 200


def test_the_newer_internet_too(tmp_path):
    recorded(tmp_path)
    try:
        with server_of(tmp_path, "::1") as server:
            assert server.url == f"http://[::1]:{server.server_port}"
            with connected(server) as connection:
                connection.sendall(
                    f"GET /healthz HTTP/1.1\r\nHost: [::1]:{server.server_port}\r\n\r\n".encode()
                )
                assert b"200 OK" in said(connection)
    except InputError as error:
        pytest.skip(f"no IPv6 here: {error}")


def test_where_it_cannot_listen(server, tmp_path):
    source = server.source
    with pytest.raises(
        InputError, match=r"--port \d+: cannot be listened on .*in use.* give another"
    ):
        MetricsServer(source, "127.0.0.1", server.server_port)
    for address, port, why in (
        ("here", 0, "no IP address"),
        ("127.0.0.1", 70_000, "no port"),
        ("203.0.113.7", 0, "--address 203.0.113.7"),
    ):
        with pytest.raises(InputError, match=why):
            MetricsServer(source, address, port)


def until(is_so: Callable[[], bool], within_s: float = 30.0) -> None:
    deadline = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_who_is_slow_holds_up_nobody_and_is_cut_off(server, monkeypatch):
    """Half a request, and a request whose answer is not taken; others are answered meanwhile."""
    with connected(server) as half, connected(server) as deaf:
        half.sendall(b"GET /metrics HTTP/1.1\r\nHo")
        deaf.sendall(b"GET /metrics HTTP/1.1\r\n")
        until(lambda: len(server._open) == 2)
        assert status_of(asked(server, "GET /metrics HTTP/1.1\nHost: {host}\n\n")) == 200
        monkeypatch.setattr(metrics_server, "WHOLE_S", 0.0)
        assert said(half) == b""
        until(lambda: not server._open)


def test_a_silent_one_is_cut_off(tmp_path, monkeypatch):
    monkeypatch.setattr(metrics_server._Handler, "timeout", 0.2)
    recorded(tmp_path)
    with server_of(tmp_path) as server, connected(server) as silent:
        assert said(silent) == b""
        until(lambda: not server._open)


ASK = "GET /metrics HTTP/1.1\nHost: {host}\n\n"


def test_who_holds_connections_without_asking_holds_up_nobody_who_asks(server):
    """However often it comes again: its own oldest one goes, and threads are no more than there may
    be connections."""
    before = threading.active_count()
    with contextlib.ExitStack() as held:
        for _ in range(3 * metrics_server.OF_ONE):
            held.enter_context(connected(server))
        until(lambda: len(server._open) == metrics_server.OF_ONE)
        for _ in range(3):
            assert status_of(asked(server, ASK)) == 200
        until(lambda: threading.active_count() <= before + metrics_server.CONNECTIONS)
    until(lambda: not server._open)
    assert status_of(asked(server, ASK)) == 200


def test_one_address_has_half_of_the_connections(server, monkeypatch):
    """Who asks and never takes the answer is told to come again; another address is answered."""
    waiting = threading.Event()
    real = metrics_server._Handler._metrics

    def slow(handler):
        if handler.client_address[0] == "127.0.0.1":
            waiting.wait(30)
        real(handler)

    monkeypatch.setattr(metrics_server._Handler, "_metrics", slow)
    request = ASK.format(host=f"127.0.0.1:{server.server_port}").replace("\n", "\r\n").encode()
    with contextlib.ExitStack() as held:
        for _ in range(metrics_server.OF_ONE):
            one = held.enter_context(connected(server))
            one.sendall(request)
        until(lambda: sum(known.asked for known in server._open.values()) == metrics_server.OF_ONE)
        with connected(server) as late:
            assert said(late).startswith(b"HTTP/1.0 503 Service Unavailable\r\nRetry-After: 5\r\n")
        there = ("127.0.0.1", server.server_port)
        with socket.create_connection(there, 30, source_address=("127.0.0.2", 0)) as other:
            other.sendall(request)
            assert said(other).startswith(b"HTTP/1.0 200")
        waiting.set()


def test_many_at_once(server):
    """Eight at a time, as several scrapers do: all are answered, and alike."""
    answers: list[str] = []
    threads = [
        threading.Thread(
            target=lambda: answers.append(asked(server, "GET /metrics HTTP/1.1\nHost: {host}\n\n"))
        )
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [status_of(answer) for answer in answers] == [200] * 8
    assert (
        len(
            {
                line
                for answer in answers
                for line in answer.splitlines()
                if "_energy_joules_total{" in line
            }
        )
        == 1
    )


@pytest.mark.parametrize("what", ["removed", "emptied", "replaced"])
def test_a_run_that_is_gone(server, tmp_path, what):
    """Its files are open, and would be told of for ever."""
    assert status_of(asked(server, "GET /metrics HTTP/1.1\nHost: {host}\n\n")) == 200
    if what == "emptied":
        for file in (tmp_path / "run").iterdir():
            file.unlink()
    else:
        (
            (tmp_path / "run").rename(tmp_path / "was")
            if what == "replaced"
            else shutil.rmtree(tmp_path / "run")
        )
    if what == "replaced":
        recorded(tmp_path / "run", run_id="b" * 32)
    for path in ("/metrics", "/healthz"):
        answer = asked(server, f"GET {path} HTTP/1.1\nHost: {{host}}\n\n")
        assert status_of(answer) == 503
        assert "the run is gone" in answer
        assert str(tmp_path) not in answer
    assert status_of(asked(server, "GET / HTTP/1.1\nHost: {host}\n\n")) == 200


def test_a_long_run_is_not_told_by_halves(tmp_path, monkeypatch):
    """Until all that is there was read once, there is no figure of it."""
    recorded(tmp_path)
    monkeypatch.setattr(live_metrics, "PATIENCE_S", 0.1)
    held = threading.Event()
    source = LiveSource(tmp_path, "a" * 32)
    take = source._counters.take
    monkeypatch.setattr(source._counters, "take", lambda line: (held.wait(30), take(line)))
    source.start()
    with pytest.raises(Unreadable, match="for the first time"):
        source.samples()
    held.set()
    monkeypatch.setattr(live_metrics, "PATIENCE_S", 30.0)
    assert len(source.samples()) > 10
    source.close()


def test_a_part_of_a_newer_version(server, tmp_path):
    from ckptcost.first.runs.lines import encode

    header = {"k": "run", "format": "ckptcost.run", "version": "9.0", "run": "a" * 32}
    (tmp_path / "run" / "node1.001.jsonl").write_bytes(encode(header))
    answer = asked(server, "GET /metrics HTTP/1.1\nHost: {host}\n\n")
    assert status_of(answer) == 503
    assert "this run was written in version" in answer


@pytest.fixture
def recording(tmp_path: Path) -> Iterator[tuple[Path, subprocess.Popen[str]]]:
    """A real recorder in a process of its own, on the real clock."""
    folder = tmp_path / "recording"
    process = subprocess.Popen(
        [sys.executable, "-c", RECORDS, str(SUPPORT), str(folder)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "recording\n"
        yield folder, process
    finally:
        process.kill()
        process.wait(30)
        assert process.stdout is not None
        process.stdout.close()


def value_of(parsed: str, name: str, **labels: str) -> float:
    (value,) = (
        values[0][1]
        for (series, of), values in samples(parsed).items()
        if series == name and labels.items() <= dict(of).items()
    )
    return value


def test_a_recorder_that_is_killed(recording, monkeypatch):
    """The server answers on, and how old its readings are grows."""
    folder, process = recording
    with server_of(folder) as server:
        until(lambda: "_energy_joules_total{" in get(f"{server.url}/metrics"))
        first = get(f"{server.url}/metrics")
        assert value_of(first, "ckptcost_live_recording") == 1.0
        assert value_of(first, "ckptcost_live_last_reading_age_seconds") < 10.0
        os.kill(process.pid, signal.SIGKILL)
        process.wait(30)
        until(
            lambda: (
                value_of(get(f"{server.url}/metrics"), "ckptcost_live_last_reading_age_seconds")
                > 2.0
            )
        )
        monkeypatch.setattr("ckptcost.first.jobs.live_counters.SILENT_S", 2.0)
        last = get(f"{server.url}/metrics")
    assert value_of(last, "ckptcost_live_recording") == 0.0
    assert value_of(last, "ckptcost_live_ended") == 0.0
    assert value_of(last, "ckptcost_live_metered_energy_joules_total", domain="gpu:0") > 0.0
    assert "ckptcost_live_power_watts{" not in last


def test_a_real_prometheus_scrapes_a_recording(recording, tmp_path):
    """Its queries see joules and saves grow while they are recorded, by as much as the made-up
    meters draw."""
    folder, _ = recording
    with server_of(folder) as server:
        until(lambda: "_energy_joules_total{" in get(f"{server.url}/metrics"))
        (tmp_path / "prometheus.yml").write_text(
            "scrape_configs:\n- job_name: ckptcost\n  scrape_interval: 500ms\n  scrape_timeout:"
            f" 500ms\n  static_configs:\n  - targets: ['127.0.0.1:{server.server_port}']\n"
        )
        command = [
            program("prometheus"),
            f"--config.file={tmp_path / 'prometheus.yml'}",
            f"--storage.tsdb.path={tmp_path / 'data'}",
            "--web.listen-address=127.0.0.1:{port}",
            "--log.level=error",
        ]
        with serving(command, "/-/ready") as url:
            prometheus = Prometheus(url)

            def asked_of(expr: str) -> float:
                found = prometheus.query(expr, time.time())
                return float(found[0]["value"][1]) if found else float("nan")

            joules = 'ckptcost_live_metered_energy_joules_total{domain="gpu:0",role="part"}'
            until(lambda: asked_of(f"increase({joules}[1m])") > 300.0, 60.0)
            until(
                lambda: asked_of("increase(ckptcost_live_checkpoints_finished_total[1m])") > 3.0,
                60.0,
            )
            assert asked_of('up{job="ckptcost"}') == 1.0
            assert asked_of(f"resets({joules}[1m])") == 0.0
            seconds = "ckptcost_live_measured_seconds"
            grown = {
                name: asked_of(f"max_over_time({name}[1m]) - min_over_time({name}[1m])")
                for name in (joules, seconds)
            }
            assert grown[joules] / grown[seconds] == pytest.approx(
                100.0, rel=0.1
            )  # a scrape may come between the two queries
            stalled = asked_of(
                "ckptcost_live_stall_seconds_total / ckptcost_live_checkpoints_finished_total"
            )
            assert 0.1 <= stalled < 0.2
            assert asked_of("ckptcost_live_recording") == 1.0
            assert asked_of('sum(ckptcost_live_power_watts{role="part"})') == pytest.approx(
                201.0, rel=0.05
            )


@pytest.fixture
def a_server(tmp_path):
    recorded(tmp_path / "run")
    with MetricsServer(LiveSource(tmp_path / "run", "a" * 32).read(), port=0) as found:
        thread = threading.Thread(
            target=found.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def test_who_sends_a_byte_now_and_then_is_cut_off(a_server, monkeypatch):
    """The time without a byte is not what ends it here."""
    monkeypatch.setattr(metrics_server._Handler, "timeout", 60.0)
    monkeypatch.setattr(metrics_server, "WHOLE_S", 0.3)
    with socket.create_connection(a_server.server_address[:2], timeout=10) as slow:
        slow.sendall(b"GET /metrics HTTP/1.1\r\nHo")
        assert slow.recv(100) == b""


def test_the_server_says_nothing_of_its_python(a_server):
    with socket.create_connection(a_server.server_address[:2], timeout=10) as connection:
        connection.sendall(
            f"GET /healthz HTTP/1.0\r\nHost: 127.0.0.1:{a_server.server_port}\r\n\r\n".encode()
        )
        answer = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
    assert answer.startswith("HTTP/1.0 200 ")
    assert "\r\nServer: ckptcost\r\n" in answer
    assert "Python" not in answer
