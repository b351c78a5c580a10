"""What planted slips in packing, storing and merging showed to be told by no other test."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from packable_runs import NEW_YEAR_NS, packable, save

from ckptcost.core.channels import Mark
from ckptcost.errors import InputError, MeterUnavailable
from ckptcost.fleet import engine
from ckptcost.fleet.engine import collected, grouped
from ckptcost.fleet.node_day import Head, NodeDay, empty_rows, key_of
from ckptcost.fleet.node_file import encode
from ckptcost.fleet.packing import Failed, Packing, study_of
from ckptcost.fleet.recorded_day import Clock, days_of
from ckptcost.fleet.recorded_day import Told as Said
from ckptcost.fleet.same_save import places_of
from ckptcost.fleet.store import ABOUT, open_store
from ckptcost.fleet.validate import day_of
from ckptcost.jobs.measure import reviewed
from ckptcost.report.studies.runs import MOST_WARNED
from ckptcost.runs import job_facts
from ckptcost.runs.clocks import S

DAY, NEXT = "2026-11-20", "2026-11-21"
NOON = day_of(DAY)[0] + 12 * 3600 * S
W = NEW_YEAR_NS / S


# ---- clocks and days of one recording


def test_before_the_first_pair_and_after_the_last_the_clock_goes_on() -> None:
    clock = Clock([(10.0, W), (70.0, W + 90.0)])
    assert [clock.ns(t_s) - NEW_YEAR_NS for t_s in (4.0, 10.0, 40.0, 70.0, 76.0)] == [
        -6 * S,
        0,
        45 * S,
        90 * S,
        96 * S,
    ]


@pytest.mark.parametrize("set_s", [7200.0, -7200.0])
def test_until_a_clock_is_set_it_goes_on_as_before(set_s: float) -> None:
    """Not slowly over the time between two pairs, and the jump is at the second."""
    clock = Clock(
        [(0.0, W), (60.0, W + 60.0), (120.0, W + 120.0 + set_s), (180.0, W + 180.0 + set_s)]
    )
    assert [(clock.ns(t_s) - NEW_YEAR_NS) / S for t_s in (30.0, 90.0, 119.0)] == [30.0, 90.0, 119.0]
    assert [(clock.ns(t_s) - NEW_YEAR_NS) / S for t_s in (121.0, 150.0, 190.0)] == [
        set_s + t_s for t_s in (121.0, 150.0, 190.0)
    ]


def test_a_load_drains_nothing(tmp_path) -> None:
    (day,) = days_of(
        reviewed(
            packable(tmp_path / "run", save("a", 20, 22, 30, of="load"), save("b", 60, 62, 70))
        ),
        Said("j"),
    )
    assert list(day.rows["load"]) == [True, False]
    assert day.rows["drain_s"] == pytest.approx([0.0, 8.0])


@pytest.mark.parametrize("name", ["exit_status", "exit_code"])
def test_how_a_command_ended_by_either_name(tmp_path, name) -> None:
    m = reviewed(packable(tmp_path / "run", seconds=60.0))
    m.run.marks += (
        Mark(55.0, "note", "", 0, "wrap", {name: 7}),
        Mark(56.0, "note", "", 0, "api", {name: 9}),
    )
    (day,) = days_of(m, Said("j"))
    assert day.head.exit_code == 7


def test_of_many_runs_that_could_not_be_packed_the_first_are_named() -> None:
    for many, more in ((MOST_WARNED, False), (MOST_WARNED + 1, True)):
        failed = [Failed(f"run {n}", InputError("is broken")) for n in range(many)]
        notes = [f"note {n}." for n in range(many)]
        study = study_of(Packing("/shared/fleet", [], failed, notes, 0))
        told = [text for code, text in study.warnings if code == "UNREADABLE"]
        assert told[0].startswith("run 0: ")
        assert told[0].endswith("is broken.")
        assert told[MOST_WARNED:] == (["And 1 more."] if more else [])
        assert [text for code, text in study.warnings if code == "JOB"][MOST_WARNED:] == (
            ["And 1 more."] if more else []
        )
    shown = [column.id for column in study.tables[0].columns if column.shown]
    assert shown == ["run", "host", "day", "rows", "size", "outcome"]
    assert (study.title, study.findings, study.simulated) == ("Nothing was packed", [], False)


# ---- places and schedulers


def test_a_folder_of_an_url_has_one_name() -> None:
    fsspec = pytest.importorskip("fsspec")
    try:
        assert open_store("memory://survivors/fleet//", make=True).url == "memory://survivors/fleet"
        assert open_store("memory://", make=True).url == "memory://"
    finally:
        for path in ("/survivors", f"/{ABOUT}"):
            fsspec.filesystem("memory").rm(path, recursive=True)


def test_what_is_not_installed_is_told_apart_from_what_is_broken(monkeypatch) -> None:
    for module, asked in (("dask", engine.dask_of), ("distributed", engine._distributed)):
        with monkeypatch.context() as patched:
            patched.setitem(sys.modules, module, None)
            with pytest.raises(MeterUnavailable, match=f"{module} is not installed"):
                asked()


# ---- nodes of several days


def day_file(host: str, day: str, begins: list[int], **head) -> NodeDay:
    rows = empty_rows(len(begins))
    rows["label"] = np.array([f"step {k} {day}" for k in range(len(begins))], dtype=object)
    rows["key"] = np.array([key_of(label) for label in rows["label"]], dtype=np.int64)
    rows["begin_ns"] = np.array(begins, dtype=np.int64)
    rows["stall_s"][:] = 2.0
    rows["gpu_s"], rows["gpu_j"] = rows["stall_s"] * 8, rows["stall_s"] * 3000
    usual = {"gpus": 8.0, "covered_s": 80_000.0, "meter": host}
    return NodeDay(Head("job", "run", host, day, **{**usual, **head}), rows)


def merged(folder, days: list[NodeDay]):
    store = open_store(str(folder), make=True)
    for day in days:
        store.put(store.path_of(day.head), encode(day))
    return collected(store, grouped(store.listing()))


def test_a_day_on_which_a_node_saved_nothing_stays_beside_one_on_which_it_did(tmp_path) -> None:
    midnight = day_of(NEXT)[0]
    steps = [
        NOON,
        NOON + 600 * S,
        midnight - 60 * S,
    ]  # the last is near midnight, so that days are put together
    days = [day_file(host, DAY, steps) for host in ("a", "b")] + [
        day_file(host, NEXT, []) for host in ("a", "b")
    ]
    nodes = merged(tmp_path / "s", days).nodes
    assert [(row.host, row.day, row.windows) for row in nodes.itertuples()] == [
        ("a", DAY, 3),
        ("a", NEXT, 0),
        ("b", DAY, 3),
        ("b", NEXT, 0),
    ]
    assert nodes["gpu_j"].tolist() == [18_000.0, 0.0, 18_000.0, 0.0]


def test_counts_are_whole_numbers(tmp_path) -> None:
    part = merged(
        tmp_path / "s", [day_file(host, DAY, [NOON, NOON + 600 * S]) for host in ("a", "b")]
    )
    for frame, names in (
        (part.windows, ("key", "begin_ns", "nodes", "gpu_nodes", "wait_nodes")),
        (part.nodes, ("windows", "saves", "slowest", "gpu_windows")),
        (part.heads, ("nodes", "began_ns", "last_kept_ns", "offset_windows")),
    ):
        assert {name: str(frame[name].dtype) for name in names} == dict.fromkeys(names, "int64")


def test_only_of_two_nodes_it_is_said_that_nobody_knows(tmp_path) -> None:
    steps = [NOON + k * 600 * S for k in range(6)]
    strays = [at + stray * S for at, stray in zip(steps, (0, 40, -30, 80, 10, -60), strict=True)]
    for others, doubt in ((1, True), (4, False)):
        days = [*(day_file(f"n{k}", DAY, steps) for k in range(others)), day_file("x", DAY, strays)]
        files = merged(tmp_path / str(others), days).files
        (text,) = files.text[files.code == "UNSTEADY"]
        assert text.endswith(
            "against the other nodes' of its run."
            + (" With two nodes nobody can tell whose clock is being set." * doubt)
        )


def test_what_is_not_known_is_nan(tmp_path) -> None:
    day = day_file("a", DAY, [NOON])
    day.rows["drain_s"][:] = math.nan
    assert math.isnan(merged(tmp_path / "s", [day]).windows.drain_s[0])


def test_what_cannot_be_understood_is_noted_though_nothing_else_is_said() -> None:
    said = []

    class Noting:
        def note(self, domain, text, **detail):
            said.append((domain, text, detail))

    job_facts.told(Noting(), {"CKPTCOST_LABELS": "nonsense"})
    assert said == [("job", "CKPTCOST_LABELS: 'nonsense' is left out, as it is no NAME=TEXT", {})]


def a_label(*at_s: float) -> dict[str, np.ndarray]:
    """Saves of one label by one node."""
    return {
        "key": np.full(len(at_s), 7),
        "load": np.zeros(len(at_s), bool),
        "begin_ns": np.round(np.array(at_s) * S).astype(np.int64),
    }


def test_rows_ten_minutes_apart_are_never_one_save() -> None:
    window, windows = places_of([a_label(0, 2000), a_label(600)])
    assert (windows, len(set(window.tolist()))) == (3, 3)
    assert places_of([a_label(0, 2000), a_label(250)])[1] == 2


def test_a_quarter_of_short_gaps_is_enough_to_tell_quick_saves_apart() -> None:
    """Of eight gaps two are 3 s: a row a moment before the second save is the second's."""
    quick = (0, 3, 600, 1200, 1800)
    window, windows = places_of(
        [a_label(*quick), a_label(*(at_s + 0.5 for at_s in quick)), a_label(2.9)]
    )
    assert windows == 5
    assert window[10] == window[1] == window[6] != window[0]
