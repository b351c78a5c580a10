"""OTLP metrics as JSON: OpenTelemetry's own protocol buffers read the statement from them, from the
file and over HTTP."""

from __future__ import annotations

import json
import math
import re
import subprocess
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from statements import START, document, documents, export_text, seconds, statement, with_fields

from ckptcost.first.errors import InputError
from ckptcost.first.exports import otlp
from ckptcost.first.exports.formats import exported
from ckptcost.first.report.document import Report

PYTHON = Path(__file__).parents[3] / ".consumers" / "py" / "bin" / "python"
MEANT = {
    "ckptcost.energy": ("J", 3.6e6, "energy", "energy_kwh"),
    "ckptcost.gpu_time_lost": ("s", 3600.0, "gpu_time_lost", "gpu_hours"),
    "ckptcost.emissions.location": ("g", 1000.0, "emissions_location", "emissions_location_kgco2e"),
    "ckptcost.emissions.market": ("g", 1000.0, "emissions_market", "emissions_market_kgco2e"),
    "ckptcost.emissions.embodied": ("g", 1000.0, "embodied", "embodied_kgco2e"),
    "ckptcost.cost": ("{USD}", 1.0, "cost", "cost_usd"),
    "ckptcost.water": ("L", 1.0, "water", "water_l"),
}
"""by name: unit, how many in one of the statement's, the component's field, the series' column"""
Series = dict[tuple[str, str, str | None], list[tuple[int, int, float]]]
"""by run, name and component: begin, end and value of the points"""


def written(what: Report) -> str:
    return "".join(str(piece) for piece in exported(what, "otlp")["metrics.jsonl"])


def plain(attributes: list[dict[str, Any]]) -> dict[str, Any]:
    return {each["key"]: next(iter(each["value"].values())) for each in attributes}


def read(text: str) -> Series:
    found: Series = defaultdict(list)
    for line in text.splitlines():
        for resource in json.loads(line)["resourceMetrics"]:
            run = plain(resource["resource"]["attributes"])["ckptcost.run.id"]
            for scope in resource["scopeMetrics"]:
                for metric in scope["metrics"]:
                    assert (
                        metric["sum"]["aggregationTemporality"],
                        metric["sum"]["isMonotonic"],
                    ) == (2, True)
                    for point in metric["sum"]["dataPoints"]:
                        said = plain(point["attributes"])
                        if metric["name"] != "ckptcost.checkpoints":
                            assert metric["unit"] == MEANT[metric["name"]][0]
                            assert said.keys() == {"component", "basis"}
                        found[run, metric["name"], said.get("component")].append(
                            (
                                int(point["startTimeUnixNano"]),
                                int(point["timeUnixNano"]),
                                point["asDouble"],
                            )
                        )
    return found


def same(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-290)


def ns(text: str | None) -> int:
    return round(seconds(str(text)) * 1000) * 1_000_000


def check(what: Report, text: str) -> None:
    """Raises where the metrics say something else than the statement."""
    found = read(text)
    expected = set()
    for s in what.statements:
        run = s.subject.run_id
        for name, (_, scale, quantity, column) in MEANT.items():
            last = []
            for component in s.marginal():
                value = getattr(component, quantity).value
                points = found.get((run, name, component.id), [])
                assert bool(points) == (value is not None), f"{name} of {component.id}"
                if value is None:
                    continue
                expected.add((run, name, component.id))
                assert {begin for begin, _, _ in points} == {ns(s.period_start)}
                assert same(points[-1][2], value * scale), f"{name} of {component.id}"
                assert points == sorted(points), f"{name} of {component.id} falls"
                last.append(points[-1][2])
                _check_rows(s, component.id, column, scale, points)
            stated = getattr(s.totals, quantity).value
            assert same(math.fsum(last), stated * scale) if last else stated is None, (
                f"sum of {name}"
            )
        saves = found[run, "ckptcost.checkpoints", None]
        expected.add((run, "ckptcost.checkpoints", None))
        assert saves == sorted(saves)
        assert same(saves[-1][2], s.totals.checkpoints.value or 0.0)
    assert set(found) == expected


def _check_rows(
    s: Any, component: str, column: str, scale: float, points: list[tuple[int, int, float]]
) -> None:
    rows = (
        []
        if s.series is None
        else [n for n, each in enumerate(s.series.component) if each == component]
    )
    if not rows:
        assert [end for _, end, _ in points] == [ns(s.period_end)]
        return
    ends = [
        round(seconds(s.series.start[n]) * 1000 + s.series.duration_s[n] * 1000) * 1_000_000
        for n in rows
    ]
    assert [end for _, end, _ in points] == ends
    before = 0.0
    for n, (_, _, value) in zip(rows, points, strict=True):
        assert (
            abs(value - before - getattr(s.series, column)[n] * scale) <= 1e-9 * value + 1e-290
        ), f"{column} at {s.series.start[n]}"
        before = value


def slip(text: str) -> str:
    """kWh that are Wh."""
    head, energy, rest = re.split(
        r'(?="name":"ckptcost\.(?:energy|gpu_time_lost)")', text, maxsplit=2
    )
    return (
        head
        + re.sub(
            r'"asDouble":([^}]+)', lambda found: f'"asDouble":{float(found[1]) * 1000}', energy
        )
        + rest
    )


def drop(text: str) -> str:
    request = json.loads(text)
    metrics = request["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]
    request["resourceMetrics"][0]["scopeMetrics"][0]["metrics"] = [
        metric for metric in metrics if metric["name"] != "ckptcost.cost"
    ]
    return json.dumps(request)


def drop_one(text: str) -> str:
    request = json.loads(text)
    points = request["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0]["sum"]["dataPoints"]
    del points[1]
    return json.dumps(request)


def swap(text: str) -> str:
    other = {"location": "market", "market": "location"}
    return re.sub(
        r'(?<="name":"ckptcost\.emissions\.)(location|market)(?=")',
        lambda found: other[found[1]],
        text,
    )


def test_the_metrics_are_the_statement() -> None:
    what = document(
        statement(),
        statement(run_id="b", name='=1, "x"\r\n<b> 東京', market=None),
        statement(run_id="c", grid=None, rows=1),
    )
    check(what, written(what))


def test_a_resource_says_whose_and_how() -> None:
    request = json.loads(written(document(statement().model_copy(update={"simulated": True}))))
    said = plain(request["resourceMetrics"][0]["resource"]["attributes"])
    assert said["service.name"] == "ckptcost"
    assert said["service.version"] == "0.1.0"
    assert said["ckptcost.run.id"] == "3449a33ac9b5dd46-nas-hdd-100"
    assert said["ckptcost.run.name"] == "GPT-4 scale, nas-hdd"
    assert said["ckptcost.schema"] == "ckptcost.report/2.0"
    assert said["ckptcost.method_version"] == "2026.1"
    assert said["ckptcost.inventory_treatment"] == "memo_item"
    assert said["ckptcost.simulated"] is True
    assert said["ckptcost.grid_method"] == "unknown"


def test_what_stands_there_anyway_is_in_no_metric() -> None:
    assert "standing" not in {component for *_, component in read(written(document()))}


def test_unknown_has_no_point_and_zero_has_one() -> None:
    found = read(written(document()))
    run = document().statements[0].subject.run_id
    assert (run, "ckptcost.energy", "storage_write") not in found
    assert {value for *_, value in found[run, "ckptcost.energy", "retention"]} == {0.0}


def test_rows_in_any_order_add_up_in_time() -> None:
    s = statement()
    assert s.series is not None
    columns = {
        name: list(reversed(value))
        for name, value in s.series.model_dump().items()
        if isinstance(value, list)
    }
    other = s.model_copy(update={"series": s.series.model_copy(update=columns)})
    assert {key: points[-1][:2] for key, points in read(written(document(other))).items()} == {
        key: points[-1][:2] for key, points in read(written(document(s))).items()
    }


def test_a_row_of_which_nothing_is_known_has_no_point() -> None:
    s = statement(rows=4)
    assert s.series is not None
    energies = [None if n == 1 else value for n, value in enumerate(s.series.energy_kwh)]
    other = s.model_copy(update={"series": s.series.model_copy(update={"energy_kwh": energies})})
    points = read(written(document(other)))[s.subject.run_id, "ckptcost.energy", "gpu_wait"]
    assert len(points) == 3
    assert same(
        points[-1][2], 3.6e6 * math.fsum(value for value in energies[:4] if value is not None)
    )


def test_a_short_statement_is_one_request() -> None:
    assert written(document(statement(rows=48))).count("\n") == 1
    assert written(document(statement(), statement(run_id="b"))).count("\n") == 1


def test_no_line_is_longer_than_a_file_receiver_reads() -> None:
    long = document(statement(rows=900, name="東京" * 20), statement(run_id="b", rows=900))
    many = document(*(statement(run_id=f"run-{n}", rows=1) for n in range(150)))
    for what in (long, many):
        text = written(what)
        check(what, text)
        lines = text.splitlines()
        assert max(len(line.encode()) for line in lines) < 2**20
        assert 1 < len(lines) < 20


def test_the_same_statement_gives_the_same_bytes() -> None:
    assert written(document()) == written(document())


def test_without_dates_there_is_nothing_to_write() -> None:
    with pytest.raises(InputError, match="--start"):
        exported(document(statement(dated=False)), "otlp")


@given(documents(dated=True))
@settings(max_examples=60)
def test_any_statement_reads_back(what: Report) -> None:
    check(what, written(what))


@pytest.mark.parametrize("change", [slip, drop, drop_one, swap])
def test_wrong_metrics_do_not_read_back(change: Any) -> None:
    text = written(document())
    assert change(text) != text
    with pytest.raises(AssertionError):
        check(document(), change(text))


# --- OpenTelemetry's own protocol buffers, on a file and behind a receiver on a port of its own

PARSE = """
import json, sys
from google.protobuf.json_format import Parse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
def plain(attributes):
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}
def points(text):
    for resource in Parse(text, ExportMetricsServiceRequest()).resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                assert metric.WhichOneof("data") == "sum" and metric.sum.is_monotonic and metric.sum.aggregation_temporality == 2
                for point in metric.sum.data_points:
                    assert point.WhichOneof("value") == "as_double"
                    yield [plain(resource.resource.attributes)["ckptcost.run.id"], metric.name, metric.unit, plain(point.attributes),
                           point.start_time_unix_nano, point.time_unix_nano, point.as_double]
"""
FROM_FILE = (
    PARSE + "print(json.dumps([point for line in open(sys.argv[1], encoding='utf-8') for point in"
    " points(line)]))"
)
RECEIVER = (
    PARSE
    + """
from http.server import BaseHTTPRequestHandler, HTTPServer
got = []
class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            assert self.path == "/v1/metrics" and self.headers["Content-Type"] == "application/json"
            got.extend(points(body))
            answer, code = b"{}", 200
        except Exception as error:
            answer, code = str(error).encode(), 400
        self.send_response(code)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
    def log_message(self, *args):
        pass
server = HTTPServer(("127.0.0.1", 0), Receiver)
print(server.server_port, flush=True)
for _ in range(int(sys.argv[1])):
    server.handle_request()
print(json.dumps(got))
"""
)


@pytest.fixture
def reader() -> str:
    """A Python that has OpenTelemetry's protocol buffers."""
    if not PYTHON.is_file():
        pytest.skip("opentelemetry-proto is not installed: make consumers")
    return str(PYTHON)


def last_of(points: list[Any]) -> dict[tuple[str, str, Any], tuple[int, int, float]]:
    return {
        (run, name, said.get("component")): (begin, end, value)
        for run, name, _, said, begin, end, value in points
    }


def ours(text: str) -> dict[tuple[str, str, Any], tuple[int, int, float]]:
    return {key: points[-1] for key, points in read(text).items()}


def test_opentelemetry_reads_the_file(reader: str, tmp_path: Path) -> None:
    text = written(
        document(statement(), statement(run_id="b", name='"x"\r\n東京', begin=1790812800.25))
    )
    file = tmp_path / "metrics.jsonl"
    file.write_text(text, "utf-8", newline="")
    ran = subprocess.run(
        [reader, "-c", FROM_FILE, str(file)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    points = json.loads(ran.stdout)
    assert len(points) == sum(len(each) for each in read(text).values())
    assert last_of(points) == ours(text)


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ('"asDouble"', '"asFloat"'),
        ('"dataPoints"', '"datapoints_"'),
        ('"timeUnixNano":"1', '"timeUnixNano":"x1'),
        ('"isMonotonic":true', '"isMonotonic":"yes"'),
    ],
)
def test_opentelemetry_refuses_what_is_no_otlp(
    reader: str, tmp_path: Path, good: str, bad: str
) -> None:
    file = tmp_path / "metrics.jsonl"
    text = written(document())
    assert good in text
    file.write_text(text.replace(good, bad), "utf-8", newline="")
    ran = subprocess.run(
        [reader, "-c", FROM_FILE, str(file)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode != 0
    assert "ParseError" in ran.stderr


@contextmanager
def receiving(reader: str, requests: int) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    with subprocess.Popen(
        [reader, "-c", RECEIVER, str(requests)], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1/metrics", process
        finally:
            process.kill()


def post(url: str, line: str) -> int:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(
            urllib.request.Request(url, line.encode(), {"Content-Type": "application/json"}),
            timeout=60,
        ) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_a_receiver_takes_every_request(reader: str) -> None:
    text = written(document(statement(rows=200), statement(run_id="b", rows=200)))
    lines = text.splitlines()
    assert len(lines) > 1
    with receiving(reader, len(lines) + 1) as (url, process):
        assert [post(url, line) for line in lines] == [200] * len(lines)
        assert post(url, lines[0].replace('"asDouble"', '"asFloat"')) == 400
        points = json.loads(process.communicate(timeout=120)[0])
    assert len(points) == sum(len(each) for each in read(text).values())
    assert last_of(points) == ours(text)


def test_zeros_of_a_sum_that_is_not_known_are_not_written() -> None:
    known = statement(energies=(None, 0.0, None, 0.0, 0.0))
    energy = known.totals.energy.model_copy(update={"value": None, "low": None, "high": None})
    unknown = known.model_copy(
        update={"totals": known.totals.model_copy(update={"energy": energy})}
    )
    told = "".join(str(each) for each in exported(document(unknown), "otlp")["metrics.jsonl"])
    assert '"ckptcost.energy"' not in told
    assert '"ckptcost.gpu_time_lost"' in told


@pytest.mark.parametrize("name", ["otlp", "openmetrics"])
def test_days_to_come_are_refused(name) -> None:
    """Prometheus with samples of next month drops what it scrapes until then."""
    early = document().model_copy(update={"generated_at": "2026-10-01T00:00:00Z"})
    with pytest.raises(
        InputError, match=r"for what has been.*let it begin earlier: --start 2026-09-"
    ):
        exported(early, name)
    assert exported(early, "datapackage")


def test_otlp_attributes_that_are_false_or_zero_are_told():
    (line,) = export_text(statement(), "otlp").splitlines()
    attributes = {
        each["key"]: each["value"]
        for each in json.loads(line)["resourceMetrics"][0]["resource"]["attributes"]
    }
    assert attributes["ckptcost.simulated"] == {"boolValue": False}
    assert attributes["ckptcost.inventory_treatment"] == {"stringValue": "memo_item"}
    assert attributes["ckptcost.method_version"] == {"stringValue": "2026.1"}
    assert otlp._attributes({"a": 0.0, "b": "", "c": None}) == [
        {"key": "a", "value": {"doubleValue": 0.0}},
        {"key": "b", "value": {"stringValue": ""}},
    ]


def points(s, name):
    found = {}
    for line in export_text(s, "otlp").splitlines():
        for resource in json.loads(line)["resourceMetrics"]:
            for metric in resource["scopeMetrics"][0]["metrics"]:
                if metric["name"] == name:
                    for p in metric["sum"]["dataPoints"]:
                        who = {a["key"]: a["value"].get("stringValue") for a in p["attributes"]}
                        found.setdefault(who.get("component"), []).append(
                            (int(p["timeUnixNano"]) / 1e9, p["asDouble"])
                        )
    return found


def test_otlp_has_all_saves_of_an_instant_in_one_point():
    s = statement(rows=2, begin=START)
    shared = [1.0] * len(s.series.start)
    found = points(
        with_fields(s, series=s.series.model_copy(update={"checkpoints": shared})),
        "ckptcost.checkpoints",
    )[None]
    half = len(shared) / 2
    assert found == [(START + 3600, half), (START + 7200, 2 * half)]
