"""Redfish against servers on loopback: which number is the node's, whom it trusts, and that no
secret gets out."""

from __future__ import annotations

import base64
import contextlib
import json
import math
import shutil
import socket
import ssl
import subprocess
import threading
import time
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ckptcost.first.errors import InputError, MeterUnavailable
from ckptcost.first.meters import redfish, redfish_tree
from ckptcost.first.meters.background import Background
from ckptcost.first.meters.base import Meter

USER, PASSWORD = "meter-user-7", "s3cret-Passw0rd"
SECOND = 1_000_000_000


class Bmc:
    """A Redfish service; `pages` are documents, bytes, status codes or functions of the handler."""

    def __init__(self, pages, port=0, tls=None, account=None):
        self.pages, self.account = dict(pages), account
        self.asked: list[str] = []
        self.methods: set[str] = set()
        self.connections = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 5

            def setup(self):
                outer.connections += 1
                super().setup()

            def handle_one_request(self):
                try:
                    super().handle_one_request()
                    outer.methods.add(self.command) if self.raw_requestline else None
                except (OSError, ValueError):
                    self.close_connection = True

            def do_GET(self):
                outer.asked.append(self.path)
                wants = (
                    outer.account
                    and "Basic " + base64.b64encode(":".join(outer.account).encode()).decode()
                )
                page = outer.pages.get(self.path, 404)
                if wants and self.headers.get("Authorization") != wants:
                    page = 401
                if callable(page):
                    page(self)
                    return
                body = (
                    page
                    if isinstance(page, bytes)
                    else b"{}"
                    if isinstance(page, int)
                    else json.dumps(page).encode()
                )
                self.send(page if isinstance(page, int) else 200, body)

            def send(self, status, body, **headers):
                self.send_response(status)
                for key, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(key, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True

            def handle_error(self, request, client_address):
                pass

            def get_request(self):
                request, address = super().get_request()
                outer.open.append(request)
                return request, address

        self.open: list[socket.socket] = []
        self.server = Server(("127.0.0.1", port), Handler)
        if tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self.thread = threading.Thread(
            target=self.server.serve_forever, kwargs={"poll_interval": 0.01}
        )
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        for request in self.open:
            with contextlib.suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)
            request.close()
        self.thread.join(5.0)


@pytest.fixture
def bmc():
    made: list[Bmc] = []

    def start(pages, **more):
        made.append(Bmc(pages, **more))
        return made[-1]

    yield start
    for each in made:
        each.close()


def ref(path):
    return {"@odata.id": path}


def chassis(name="1", kind="RackMount", systems=True, **links):
    path = f"/redfish/v1/Chassis/{name}"
    system = {"ComputerSystems": [ref("/redfish/v1/Systems/1")]} if systems else {}
    return {
        "Id": name,
        "ChassisType": kind,
        "Links": system,
        **{key: ref(f"{path}/{key}") for key in links or {"Power": 1}},
    }


def tree(*chassis_docs, **pages):
    """Pages of a service: a chassis collection, its members, and what else is given by its path
    under /redfish/v1/Chassis."""
    paths = {f"/redfish/v1/Chassis/{doc['Id']}": doc for doc in chassis_docs}
    more = {f"/redfish/v1/Chassis/{key}": value for key, value in pages.items()}
    return {"/redfish/v1/Chassis": {"Members": [ref(path) for path in paths]}, **paths, **more}


def power(watts=640.0, **more):
    return {"PowerControl": [{"Name": "System Power Control", "PowerConsumedWatts": watts, **more}]}


PLAIN = tree(chassis(), **{"1/Power": power()})


def got(pages, wanted=None):
    """Plan of a service that is only a dictionary, and its values."""

    def get(path):
        if isinstance(pages.get(path), dict):
            return pages[path]
        raise MeterUnavailable(f"HTTP 404 for {path}")

    path, plan = redfish_tree.discover(get, wanted)
    return (
        path.rsplit("/", 1)[-1],
        plan,
        [sum(spot.pick(get(spot.path)) for spot in spots) for _, spots in plan],
    )


# ---- which number ----


def test_power_control_and_its_average():
    more = {"PowerMetrics": {"AverageConsumedWatts": 587, "IntervalInMin": 20}}
    _, plan, values = got(tree(chassis(), **{"1/Power": power(590, **more)}))
    assert values == [590.0, 587.0]
    node, mean = (channel for channel, _ in plan)
    assert (node.domain, node.quantity, node.role) == ("node", "power_w", "whole")
    assert (mean.domain, mean.role, mean.averaging_s) == ("node.average", "detail", 1200.0)


def test_environment_metrics_give_power_and_energy():
    metrics = {
        "PowerWatts": {"Reading": 712.5, "DataSourceUri": "/x"},
        "EnergykWh": {"Reading": 2.5},
    }
    _, plan, values = got(
        tree(
            chassis(EnvironmentMetrics=1, Power=1),
            **{"1/EnvironmentMetrics": metrics, "1/Power": power()},
        )
    )
    assert values == [712.5, 9e6]
    assert [channel.quantity for channel, _ in plan] == ["power_w", "energy_j"]
    assert all(channel.role == "whole" and channel.wraps_at is None for channel, _ in plan)
    _, _, values = got(
        tree(
            chassis(EnvironmentMetrics=1),
            **{"1/EnvironmentMetrics": {**metrics, "EnergyJoules": {"Reading": 1234.5}}},
        )
    )
    assert values == [712.5, 1234.5]


@pytest.mark.parametrize(
    "empty",
    [
        {},
        {"PowerWatts": None},
        {"PowerWatts": {"Reading": None}},
        {"PowerWatts": {"Reading": 0}},
        {"PowerWatts": "x"},
        {"PowerWatts": True},
    ],
)
def test_what_environment_metrics_do_not_tell_power_does(empty):
    assert got(
        tree(
            chassis(EnvironmentMetrics=1, Power=1),
            **{"1/EnvironmentMetrics": empty, "1/Power": power()},
        )
    )[2] == [640.0]


@pytest.mark.parametrize(
    ("names", "which"),
    [
        (["System Power Control", "CPU Sub-system Power"], 0),
        (["CPU Sub-system Power", "Memory Subsystem Power", "System Power"], 2),
        (["Memory", "Server Power Control"], 1),
        (["PSU", "Total"], 1),
        (["A", "B"], 0),
        ([None, 7], 0),
    ],
)
def test_the_entry_of_the_whole_system(names, which):
    entries = [{"Name": name, "PowerConsumedWatts": 100 + n} for n, name in enumerate(names)]
    assert redfish_tree.control({"PowerControl": entries})["PowerConsumedWatts"] == 100 + which


def test_a_sensor_called_total_power():
    sensors = [
        ref(f"/redfish/v1/Chassis/1/Sensors/{name}")
        for name in ("power_psu0", "temp_total", "power_total_power", "total_power")
    ]
    pages = tree(
        chassis(Sensors=1),
        **{
            "1/Sensors": {"Members": sensors},
            "1/Sensors/total_power": {"Reading": 431.0, "ReadingUnits": "W"},
        },
    )
    pages["/redfish/v1/Chassis/1/Sensors/power_total_power"] = {
        "Reading": 99.0,
        "ReadingUnits": "A",
    }
    assert got(pages)[2] == [431.0]


def supplies(*readings):
    """A PowerSubsystem whose supplies read so; None is a supply without a reading, False an empty
    slot."""
    base = "/redfish/v1/Chassis/1/PowerSubsystem"
    pages = tree(chassis(PowerSubsystem=1))
    pages[base] = {"PowerSupplies": ref(f"{base}/PowerSupplies")}
    pages[f"{base}/PowerSupplies"] = {
        "Members": [ref(f"{base}/PowerSupplies/{n}") for n in range(len(readings))]
    }
    for n, reading in enumerate(readings):
        here = f"{base}/PowerSupplies/{n}"
        pages[here] = {
            "Status": {"State": "Absent" if reading is False else "Enabled"},
            "Metrics": ref(f"{here}/Metrics"),
        }
        if reading is not False:
            pages[f"{here}/Metrics"] = {"InputPowerWatts": {"Reading": reading}}
    return pages


def test_the_sum_of_the_supplies_is_the_last_resort():
    assert got(supplies(300.5, 0, False))[2] == [300.5]  # one stands by, one slot is empty
    assert got(supplies(300.5, 299.5))[2] == [600.0]
    old = tree(
        chassis(),
        **{
            "1/Power": {
                "PowerSupplies": [
                    {"PowerInputWatts": 210},
                    {"PowerInputWatts": "190.5"},
                    {"Status": {"State": "Absent"}},
                ]
            }
        },
    )
    assert got(old)[2] == [400.5]


@pytest.mark.parametrize("readings", [(300.5, None), (None,), (0, 0), (False,), ()])
def test_a_part_of_the_supplies_is_not_the_node(readings):
    with pytest.raises(MeterUnavailable, match="no chassis tells"):
        got(supplies(*readings))


def test_the_chassis_of_the_node_is_chosen():
    gpus = [chassis(f"HGX_GPU_{n}", "Component", systems=False) for n in range(8)]
    rack, board = chassis("Rack1", "Rack"), chassis("HGX_Baseboard", "Module")
    node = chassis("DGX")
    pages = tree(rack, *gpus, board, node)
    for doc in (rack, *gpus, board, node):
        pages[f"/redfish/v1/Chassis/{doc['Id']}/Power"] = power(
            9000 if doc is rack else 5000 if doc is node else 600
        )
    assert got(pages)[0::2] == ("DGX", [5000.0])
    assert got(pages, "HGX_Baseboard")[2] == [600.0]
    assert got(pages, "Rack1")[2] == [9000.0]
    with pytest.raises(MeterUnavailable) as caught:
        got(pages, "other")
    assert "DGX" in caught.value.remedy


def test_a_rack_is_not_the_node_unless_named():
    pages = tree(chassis("Rack1", "Rack"), **{"Rack1/Power": power(9000)})
    with pytest.raises(MeterUnavailable, match="no chassis tells"):
        got(pages)
    assert got(pages, "Rack1")[2] == [9000.0]


def test_a_supply_without_metrics_makes_no_sum():
    pages = supplies(300.5, 299.5)
    del pages["/redfish/v1/Chassis/1/PowerSubsystem/PowerSupplies/1"]["Metrics"]
    with pytest.raises(MeterUnavailable, match="no chassis tells"):
        got(pages)


def test_two_nodes_behind_one_service_must_be_told_apart():
    pages = tree(chassis("A"), chassis("B"), **{"A/Power": power(1), "B/Power": power(2)})
    with pytest.raises(MeterUnavailable, match="several chassis tell a power: A, B"):
        got(pages)
    pages["/redfish/v1/Chassis/B"]["Links"]["ContainedBy"] = ref("/redfish/v1/Chassis/A")
    assert got(pages)[2] == [1.0]


def test_pages_of_a_collection_are_followed():
    pages = tree(chassis("X"), **{"X/Power": power()})
    first = pages["/redfish/v1/Chassis"]
    pages["/redfish/v1/Chassis?$skip=1"] = {"Members": first.pop("Members")}
    first["Members@odata.nextLink"] = "/redfish/v1/Chassis?$skip=1"
    assert got(pages)[2] == [640.0]
    first["Members@odata.nextLink"] = "/redfish/v1/Chassis"  # in a circle
    with pytest.raises(MeterUnavailable):
        got(pages)


KEYS = [
    "Members",
    "@odata.id",
    "PowerControl",
    "PowerConsumedWatts",
    "PowerWatts",
    "Reading",
    "Links",
    "ComputerSystems",
    "Name",
    "Status",
]
KEYS += [
    "ChassisType",
    "PowerMetrics",
    "IntervalInMin",
    "AverageConsumedWatts",
    "PowerSupplies",
    "State",
    "Metrics",
    "InputPowerWatts",
    "Power",
]
leaves = (
    st.none()
    | st.booleans()
    | st.floats()
    | st.integers()
    | st.sampled_from(["", "12", "1e999", "/redfish/v1/Chassis/1/Power"])
)
anything = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
    ),
    max_leaves=10,
)
objects = anything.filter(lambda value: isinstance(value, dict))


@settings(max_examples=60)
@given(objects, objects, objects, objects)
def test_any_json_gives_a_number_or_a_reason(top, one, metrics, powers):
    base = "/redfish/v1/Chassis"
    pages = {
        base: {"Members": [ref(f"{base}/1"), top], **top},
        f"{base}/1": {**chassis(EnvironmentMetrics=1, Power=1, Sensors=1, PowerSubsystem=1), **one},
    }
    pages |= {
        f"{base}/1/EnvironmentMetrics": metrics,
        f"{base}/1/Power": powers,
        f"{base}/1/Sensors": top,
        f"{base}/1/PowerSubsystem": one,
    }
    with contextlib.suppress(MeterUnavailable):  # a reason; anything else is a defect
        _, plan, values = got(pages)
        assert len(plan) == len(values) >= 1
        assert 0.0 < values[0] < 1e7


# ---- what the user gave ----


@pytest.mark.parametrize(
    ("url", "more", "says"),
    [
        (f"https://{USER}:{PASSWORD}@bmc", {}, "user name or password"),
        (f"https://{USER}@bmc", {}, "user name or password"),
        ("bmc.example", {}, "no http or https"),
        ("ftp://bmc", {}, "no http or https"),
        ("https://", {}, "no http or https"),
        ("https://bmc:99999", {}, "no URL"),
        ("https://[::1", {}, "no URL"),
        ("https://bmc\r\nHost: x", {}, "no URL"),
        ("https://b mc", {}, "no http or https"),
        ("https://bmc/redfish/v1/Chassis", {}, "more than a host"),
        ("https://bmc/?a=1", {}, "more than a host"),
        ("http://bmc", {}, "plain http"),
        ("http://10.0.0.7", {}, "plain http"),
        ("https://bmc", {"insecure": True, "ca_file": "/etc/hostname"}, "exclude each other"),
        ("https://bmc", {"ca_file": "/nowhere/ca.pem"}, "CA file"),
        ("https://bmc", {"password": None}, "needs a password"),
        ("https://bmc", {"user": "a:b"}, "cannot carry"),
        ("https://bmc", {"password": "a\nb"}, "cannot carry"),
        ("https://bmc", {"password": PASSWORD + "\udcff"}, "cannot carry"),
    ],
)
def test_what_is_wrong_is_said_without_quoting_it(url, more, says):
    with pytest.raises(InputError, match=says) as caught:
        redfish.service(url, **{"user": USER, "password": PASSWORD, **more})
    everything = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    assert PASSWORD not in everything
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("url", "more", "place"),
    [
        ("https://bmc", {}, ("bmc", 443, True)),
        (" https://bmc:8443/redfish/v1/ ", {}, ("bmc", 8443, True)),
        ("https://[fd00::1]/", {}, ("fd00::1", 443, True)),
        ("http://127.0.0.1:8000", {}, ("127.0.0.1", 8000, False)),
        ("http://[::1]", {}, ("::1", 80, False)),
        ("http://localhost", {}, ("localhost", 80, False)),
        ("http://bmc", {"plain_http": True}, ("bmc", 80, False)),
    ],
)
def test_addresses_that_are_right(url, more, place):
    where = redfish.service(url, **more)
    assert (where.host, where.port, where.tls) == place
    assert "Authorization" not in where.headers


def test_no_secret_in_any_repr(bmc):
    server = bmc(PLAIN, account=(USER, PASSWORD))
    (meter,) = redfish.find(server.url, USER, PASSWORD).meters
    inner = meter._meter
    token = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    shown = " ".join(
        map(
            repr,
            (
                meter,
                inner,
                inner._client,
                inner._client._where,
                meter.channels,
                meter.facts,
                meter.events,
            ),
        )
    )
    for secret in (USER, PASSWORD, token, "127.0.0.1", str(server.port)):
        assert secret not in shown
    meter.close()


# ---- over a wire ----


def client_of(server, **more):
    return redfish.RedfishClient(redfish.service(server.url, **{"timeout_s": 5.0, **more}))


def complaint(server, path="/redfish/v1/Chassis", **more):
    client = client_of(server, **more)
    try:
        with pytest.raises(MeterUnavailable) as caught:
            client.get(path)
    finally:
        client.close()
    everything = "".join(traceback.format_exception(caught.value))
    assert PASSWORD not in everything
    assert "127.0.0.1" not in caught.value.reason + caught.value.remedy
    return caught.value


def test_a_whole_reading(bmc):
    server = bmc(PLAIN, account=(USER, PASSWORD))
    found = redfish.find(server.url, USER, PASSWORD, least_s=3.0)
    assert found.absences == ()
    (meter,) = found.meters
    assert isinstance(meter, Background)
    assert isinstance(meter, Meter)
    assert (meter.name, meter.pace_s) == ("redfish", 3.0)
    assert meter.facts["chassis"] == "/redfish/v1/Chassis/1"
    assert meter.facts["connection"] == "plain http"
    server.asked.clear()
    inner = meter._meter
    assert inner._client.until_s is None
    assert list(inner.read(0)) == [640.0]
    server.pages["/redfish/v1/Chassis/1/Power"] = power(700)
    assert list(inner.read(1)) == [700.0]
    assert server.asked == ["/redfish/v1/Chassis/1/Power"] * 2
    assert server.connections == 1  # kept
    assert server.methods == {"GET"}
    meter.close()


def test_one_document_is_fetched_once_for_all_its_channels(bmc):
    more = {"PowerMetrics": {"AverageConsumedWatts": 587, "IntervalInMin": 20}}
    server = bmc(tree(chassis(), **{"1/Power": power(590, **more)}))
    (meter,) = redfish.find(server.url).meters
    server.asked.clear()
    assert list(meter._meter.read(0)) == [590.0, 587.0]
    assert len(server.asked) == 1
    meter.close()


def test_not_asked_for():
    (absence,) = redfish.find().absences
    assert "not asked for" in absence.reason
    assert absence.kind == "node"


def test_a_refused_account_is_not_tried_again_at_once(bmc):
    server = bmc(PLAIN, account=(USER, PASSWORD))
    (absence,) = redfish.find(server.url, USER, "wrong-" + PASSWORD).absences
    assert "401" in absence.reason
    assert PASSWORD not in repr(absence)
    (meter,) = redfish.find(server.url, USER, PASSWORD).meters
    inner = meter._meter
    server.account = (USER, "changed")
    server.asked.clear()
    for second in range(60):
        assert math.isnan(inner.read(second * SECOND)[0])
    assert len(server.asked) == 1
    server.account = (USER, PASSWORD)
    assert list(inner.read(60 * SECOND)) == [640.0]
    assert [event.name for event in inner.events] == ["lost", "found"]
    meter.close()


def redirect(to):
    return lambda handler: handler.send(302, b"", Location=to)


def test_redirects_stay_on_the_host(bmc):
    server = bmc(PLAIN)
    for to in ("/redfish/v1/Chassis", f"{server.url}/redfish/v1/Chassis"):
        server.pages["/redfish/v1/Chassis/"] = redirect(to)
        client = client_of(server)
        assert "Members" in client.get("/redfish/v1/Chassis/")
        client.close()


def test_a_redirect_elsewhere_is_not_followed(bmc):
    other = bmc(PLAIN)
    for to in (
        f"{other.url}/redfish/v1/Chassis",
        "//127.0.0.2/redfish/v1",
        "https://127.0.0.1/redfish",
        "http://[",
        "",
        "gopher:x",
    ):
        server = bmc({"/redfish/v1/Chassis": redirect(to)})
        assert "redirects" in complaint(server, user=USER, password=PASSWORD).reason or to in (
            "",
            "gopher:x",
        )
    assert other.asked == []


def test_a_redirect_in_a_circle(bmc):
    assert (
        "circle" in complaint(bmc({"/redfish/v1/Chassis": redirect("/redfish/v1/Chassis")})).reason
    )


@pytest.mark.parametrize(
    "path",
    [
        "//other/redfish",
        "http://other/redfish/v1",
        "/etc/passwd",
        "/redfish/v1/a b",
        "/redfish/\r\nX: y",
        "",
        "/redfish/" + "x" * 600,
    ],
)
def test_links_out_of_the_tree_are_not_followed(bmc, path):
    server = bmc(PLAIN)
    assert "outside" in complaint(server, path).reason
    assert server.asked == []


@pytest.mark.parametrize(
    ("page", "says"),
    [
        (b"{not json", "not JSON"),
        (b"", "not JSON"),
        (b"[1, 2]", "no JSON object"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (503, "HTTP 503"),
        (403, "403"),
        (404, "HTTP 404"),
        (b" " * (redfish.MOST_BYTES + 1), "larger than 1 MiB"),
    ],
)
def test_replies_that_are_none(bmc, page, says):
    assert says in complaint(bmc({"/redfish/v1/Chassis": page})).reason


def test_a_reply_without_end_is_cut(bmc):
    sent = []

    def endless(handler):
        handler.send_response(200)
        handler.end_headers()
        handler.close_connection = True
        for _ in range(4000):
            handler.wfile.write(b"x" * 4096)
            sent.append(4096)

    assert "larger" in complaint(bmc({"/redfish/v1/Chassis": endless})).reason
    assert sum(sent) < 15 << 20


def cut_off(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"Members": []}')
    handler.close_connection = True


def test_a_reply_that_is_cut_off_is_none(bmc):
    """Even where the part that came is good JSON."""
    assert "no reply" in complaint(bmc({"/redfish/v1/Chassis": cut_off})).reason


def test_silence_ends_at_the_deadline_and_so_does_a_trickle(bmc):
    done = threading.Event()

    def trickle(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        for _ in range(200):
            handler.wfile.write(b" ")
            if done.wait(0.02):
                return

    server = bmc(
        {"/redfish/v1/Chassis": lambda handler: done.wait(5.0), "/redfish/v1/slow": trickle}
    )
    for path in ("/redfish/v1/Chassis", "/redfish/v1/slow"):
        start = time.monotonic()
        assert complaint(server, path, timeout_s=0.2).reason == "no answer within 0.2 s"
        assert time.monotonic() - start < 3.0
    done.set()


def test_a_service_that_goes_and_comes_back(bmc):
    server = bmc(PLAIN)
    (meter,) = redfish.find(server.url).meters
    inner = meter._meter
    assert list(inner.read(0)) == [640.0]
    server.close()
    for t in (1, 2):
        assert math.isnan(inner.read(t)[0])
    again = bmc(PLAIN, port=server.port)
    assert list(inner.read(3)) == [640.0]
    for nothing in (None, 0, 2e6, True, "x", [640.0], math.nan):
        again.pages["/redfish/v1/Chassis/1/Power"] = power(nothing)
        assert math.isnan(inner.read(4)[0])
    again.pages["/redfish/v1/Chassis/1/Power"] = power(5)
    assert list(inner.read(5)) == [5.0]
    assert [event.name for event in inner.events] == ["lost", "found", "lost", "found"]
    assert "no number" in inner.events[2].text
    assert all("127.0.0.1" not in event.text for event in inner.events)
    meter.close()


def test_a_kept_connection_that_was_closed_is_opened_again(bmc):
    server = bmc(PLAIN)
    client = client_of(server)
    client.get("/redfish/v1/Chassis")
    for request in server.open:
        request.shutdown(socket.SHUT_RDWR)
    assert "Members" in client.get("/redfish/v1/Chassis")
    assert server.connections == 2
    client.close()


def test_close_ends_a_call_under_way(bmc):
    done = threading.Event()
    server = bmc(PLAIN)
    (meter,) = redfish.find(server.url, timeout_s=20.0).meters
    meter.stop_s = 10.0
    server.pages["/redfish/v1/Chassis/1/Power"] = lambda handler: done.wait(15.0)
    server.asked.clear()
    meter.read(0)
    end = time.monotonic() + 5.0
    while not server.asked and time.monotonic() < end:
        time.sleep(0.002)
    meter.close()
    assert not meter.thread.is_alive()
    assert not done.is_set()
    done.set()


def test_nobody_there():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        (absence,) = redfish.find(f"http://127.0.0.1:{free.getsockname()[1]}").absences
    assert absence.reason == "no reply (Connection refused)"
    assert absence.remedy


def test_looking_around_has_an_end(bmc):
    client = client_of(bmc(PLAIN))
    client.until_s = time.monotonic() - 1.0
    with pytest.raises(MeterUnavailable, match="too long"):
        redfish_tree.discover(client.get)


# ---- TLS ----


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """name -> (certificate, key): one for 127.0.0.1, one for another name."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl command")
    folder = tmp_path_factory.mktemp("tls")
    made = {}
    for name, alt in (("right", "IP:127.0.0.1"), ("other", "DNS:other.example")):
        cert, key = folder / f"{name}.pem", folder / f"{name}.key"
        argv = [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
            "-subj",
            f"/CN={name}",
            "-addext",
            f"subjectAltName={alt}",
            "-keyout",
            str(key),
            "-out",
            str(cert),
        ]
        subprocess.run(argv, check=True, capture_output=True, timeout=20)
        made[name] = (str(cert), str(key))
    return made


def test_a_certificate_of_the_given_authority_is_trusted(bmc, certificates):
    server = bmc(PLAIN, tls=certificates["right"], account=(USER, PASSWORD))
    (meter,) = redfish.find(server.url, USER, PASSWORD, ca_file=certificates["right"][0]).meters
    assert meter.facts["connection"] == "TLS, certificate verified"
    assert list(meter._meter.read(0)) == [640.0]
    assert "not verified" not in meter.channels[0].note
    meter.close()


def test_an_unknown_certificate_is_refused_before_anything_is_sent(bmc, certificates):
    server = bmc(PLAIN, tls=certificates["right"])
    (absence,) = redfish.find(server.url, USER, PASSWORD).absences
    assert "self-signed" in absence.reason
    assert "CA file" in absence.remedy
    assert server.asked == []


def test_a_certificate_for_another_name_is_refused(bmc, certificates):
    server = bmc(PLAIN, tls=certificates["other"])
    (absence,) = redfish.find(server.url, USER, PASSWORD, ca_file=certificates["other"][0]).absences
    assert "another" in absence.reason
    assert "127.0.0.1" not in absence.reason
    assert server.asked == []


def test_an_unverified_certificate_is_asked_for_and_noted(bmc, certificates):
    server = bmc(PLAIN, tls=certificates["other"])
    (meter,) = redfish.find(server.url, insecure=True).meters
    assert meter.facts["connection"] == "TLS, certificate not verified"
    assert all("not verified" in channel.note for channel in meter.channels)
    assert list(meter._meter.read(0)) == [640.0]
    meter.close()


def test_https_to_a_plain_server(bmc):
    server = bmc(PLAIN)
    (absence,) = redfish.find(server.url.replace("http:", "https:"), timeout_s=2.0).absences
    assert "TLS" in absence.reason or "no answer" in absence.reason or "no reply" in absence.reason
