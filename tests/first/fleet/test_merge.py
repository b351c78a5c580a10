"""Node files to windows and nodes, held against plain loops over the same rows."""

from __future__ import annotations

import itertools
import json
import math
from collections import defaultdict
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from ckptcost.first.fleet import frames, job_day
from ckptcost.first.fleet.engine import collect_parts, group_by_job_day
from ckptcost.first.fleet.job_day import finish_part, pieces_of
from ckptcost.first.fleet.node_day import COLUMNS, LINES, NodeDay, NodeDayHead, empty_rows, key_of
from ckptcost.first.fleet.node_file import encode
from ckptcost.first.fleet.part import FILES, HEADS, NODES, WINDOWS, StorePart
from ckptcost.first.fleet.same_save import places_of
from ckptcost.first.fleet.store import open_store
from ckptcost.first.fleet.validate import date_of, day_of
from ckptcost.first.runs.clocks import S

MINUTE = 60 * S
DAYS = ("2026-11-20", "2026-11-21", "2026-11-22")
NAN = math.nan


class Row(NamedTuple):
    """`at`: by the true clock; the node's own has its offset added."""

    run: str
    host: str
    at: int
    said: dict[str, Any]


def node_days(
    rows: list[Row],
    offsets: dict[str, int],
    job: str = "llama",
    moved: dict[int, int] | None = None,
    **head: Any,
) -> list[NodeDay]:
    """Files by the node's own clock. `moved`: rows, by place, that lie in a file so many days
    later."""
    files: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for place, row in enumerate(rows):
        own = row.at + offsets.get(row.host, 0)
        day = date_of(own + (moved or {}).get(place, 0) * 86_400 * S)
        files[row.run, row.host, day].append({"begin_ns": own, **row.said})
    found = []
    for (run, host, day), said in sorted(files.items()):
        columns = empty_rows(len(said))
        for at, each in enumerate(said):
            for name, value in each.items():
                columns[name][at] = value
        columns["key"][:] = [key_of(label) for label in columns["label"]]
        gpus = {"gpus": 4.0 if host != "n1" else 8.0} | head
        found.append(NodeDay(NodeDayHead(job, run, host, day, covered_s=80_000.0, **gpus), columns))
    return found


def stored(tmp_path, days: list[NodeDay], name: str = "store"):
    store = open_store(str(tmp_path / name), make=True)
    for day in days:
        store.put(store.path_of(day.head), encode(day))
    return store


def merged(store, order=lambda entries: entries) -> StorePart:
    entries = order(store.listing())
    groups = {
        (entry.job, entry.day): [
            each for each in entries if (each.job, each.day) == (entry.job, entry.day)
        ]
        for entry in entries
    }
    return finish_part(frames.put_together([pieces_of(store, group) for group in groups.values()]))


def made_up(seed: int, jitter: bool = True, nodes: int = 5) -> tuple[list[Row], dict[str, int]]:
    """Two runs on the same nodes over three days, with everything unknown now and then, near
    midnight more than elsewhere."""
    rng = np.random.default_rng(seed)
    hosts = [f"n{k}" for k in range(nodes)]
    offsets = {host: int(rng.integers(-200 * S, 200 * S)) for host in hosts}
    first = day_of(DAYS[0])[0]
    rows = []
    for run, (since_h, until_h) in {"run-a": (2, 30), "run-b": (31, 71)}.items():
        begins = sorted(
            {
                *rng.uniform(since_h, until_h, 20),
                *(h + m / 60 for h in (24, 48) for m in (-14, -2, -0.001, 3, 13, 16)),
            }
        )
        for number, at_h in enumerate(begins):
            at = first + int(at_h * 3600 * S)
            if not since_h <= at_h <= until_h:
                continue
            for host in hosts:
                if rng.random() < 0.1 and number not in range(4, 8):
                    continue
                late = int(rng.choice([0, 0, 0, rng.integers(0, S)])) if jitter else 0
                stall_s = float(rng.choice([0.0, NAN, *rng.uniform(0.5, 9.0, 20)]))
                said: dict[str, Any] = {
                    # some labels are there twice in a run, and some both as a save and as a load
                    "label": f"step {number - number % 2 if number in (5, 7) else number}",
                    "load": number in (7, 12),
                    "stall_s": stall_s,
                    "drain_s": float(rng.choice([0.0, NAN, *rng.uniform(0, 20.0, 20)])),
                    "bytes": float(rng.choice([NAN, *rng.uniform(0, 9e9, 20)])),
                    "files": float(rng.choice([NAN, 8.0, 8.0, 8.0, 8.0])),
                    "failed": bool(rng.random() < 0.05),
                    "gpu_s": stall_s * 4,
                }
                for line in LINES:
                    joules = float(rng.choice([NAN, *rng.uniform(1.0, 9e3, 8)]))
                    said |= {
                        f"{line}_j": joules,
                        f"{line}_low_j": joules * 0.9,
                        f"{line}_high_j": float(rng.choice([math.inf, joules * 1.25])),
                    }
                rows.append(Row(run, host, at + late, said))
    return rows, offsets


def known(values: list[float]) -> list[float]:
    return [value for value in values if not math.isnan(value)]


def sum_of_known(values: list[float]) -> float:
    return math.fsum(known(values)) if known(values) or not values else NAN


class Oracle:
    """Windows and nodes by loops over rows on the job's clock."""

    def __init__(self, days: list[NodeDay], offset_ns: dict[tuple[str, str, str], int]) -> None:
        self.windows: dict[tuple[Any, ...], dict[str, Any]] = {}
        self.nodes: dict[tuple[str, str, str], dict[str, list[float]]] = defaultdict(
            lambda: defaultdict(list)
        )
        by_window: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
        seen: dict[tuple[Any, ...], int] = defaultdict(int)
        for day in days:
            head = day.head
            own = [
                dict(zip(day.rows, values, strict=True))
                for values in zip(*day.rows.values(), strict=True)
            ]
            for row in sorted(own, key=lambda row: row["begin_ns"]):
                same = head.run, int(row["key"]), bool(row["load"])
                again = seen[(head.host, *same)]
                seen[(head.host, *same)] += 1
                row |= {
                    name: float(value)
                    for name, value in row.items()
                    if isinstance(value, np.floating)
                }
                begin = int(row["begin_ns"]) - offset_ns[head.run, head.host, head.day]
                by_window[(*same, again)].append(
                    {**row, "begin": begin, "host": head.host, "gpus": head.gpus}
                )
        for same, rows in by_window.items():
            self.window(same, sorted(rows, key=lambda row: row["host"]))

    def window(self, same: tuple[Any, ...], rows: list[dict[str, Any]]) -> None:
        begin = min(row["begin"] for row in rows)
        for row in rows:
            row["done"] = (row["begin"] - begin) * 1e-9 + row["stall_s"]
            joules = row["gpu_j"] + (0.0 if math.isnan(row["host_j"]) else row["host_j"])
            row["w"] = joules / row["stall_s"] if row["stall_s"] > 0 else NAN
            for end in ("low", "high"):
                joules = row[f"gpu_{end}_j"] + (
                    0.0 if math.isnan(row["host_j"]) else row[f"host_{end}_j"]
                )
                row[f"{end}_w"] = joules / row["stall_s"] if row["stall_s"] > 0 else NAN
        stalled = not any(math.isnan(row["stall_s"]) for row in rows)
        last = max(row["done"] for row in rows) if stalled else NAN
        slowest = next((row["host"] for row in rows if row["done"] == last), "")
        for row in rows:
            row["wait_s"] = wait_s = last - row["done"]
            row["wait_gpu_s"] = wait_s * row["gpus"]
            for name, rate in (("wait_j", "w"), ("wait_low_j", "low_w"), ("wait_high_j", "high_w")):
                row[name] = 0.0 if wait_s == 0 else wait_s * row[rate]
            row["blamed_gpu_s"], row["blamed_j"] = (
                self.blame(row, rows, rate) if stalled else NAN for rate in ("gpus", "w")
            )
        found = {
            "failed": any(row["failed"] for row in rows),
            "begin_ns": begin,
            "stall_s": last,
            "drain_s": (
                NAN
                if not stalled or any(math.isnan(row["drain_s"]) for row in rows)
                else max(row["done"] + row["drain_s"] for row in rows) - last
            ),
            "bytes": sum(row["bytes"] for row in rows),
            "files": sum(row["files"] for row in rows),
            "nodes": len(rows),
            "own_gpu_s": sum(row["gpu_s"] for row in rows),
            "wait_gpu_s": sum(row["wait_gpu_s"] for row in rows),
            "wait_nodes": len(known([row["wait_j"] for row in rows])),
            "slowest": slowest,
            "day": date_of(begin),
            "label": rows[0]["label"],
        }
        sure = [row for row in rows if not math.isnan(row["wait_j"])]
        found |= {
            name: sum(row[name] for row in sure) if sure else NAN
            for name in ("wait_j", "wait_low_j", "wait_high_j")
        }
        for line in LINES:
            sure = [row for row in rows if not math.isnan(row[f"{line}_j"])]
            found[f"{line}_nodes"] = len(sure)
            for name in (f"{line}_j", f"{line}_low_j", f"{line}_high_j"):
                found[name] = sum(float(row[name]) for row in sure) if sure else NAN
        self.windows[same] = found
        for row in rows:
            node = self.nodes[same[0], row["host"], found["day"]]
            for name in (
                "wait_gpu_s",
                "wait_j",
                "blamed_gpu_s",
                "blamed_j",
                "stall_s",
                "bytes",
                *(f"{line}_j" for line in LINES),
            ):
                node[name].append(float(row[name]))
            node["own_gpu_s"].append(row["gpu_s"])
            node["windows"].append(1)
            node["saves"].append(not row["load"])
            node["slowest"].append(row["host"] == slowest and len(rows) > 1)

    @staticmethod
    def blame(row: dict[str, Any], rows: list[dict[str, Any]], rate: str) -> float:
        """Between two returns, what those that are done take is on those that are not, in equal
        parts."""
        instants = sorted({each["done"] for each in rows})
        total = 0.0
        for since, until in itertools.pairwise(instants):
            late = [each for each in rows if each["done"] >= until]
            if row["done"] >= until:
                total += (
                    (until - since)
                    * sum(each[rate] for each in rows if each["done"] <= since)
                    / len(late)
                )
        return total

    def node(self, lists: dict[str, list[float]]) -> dict[str, float]:
        found = {name: sum_of_known(values) for name, values in lists.items()}
        return found | {f"{line}_windows": len(known(lists[f"{line}_j"])) for line in LINES}


def offsets_in(part: StorePart) -> dict[tuple[str, str, str], int]:
    heads = part.heads
    return {
        (run, host, day): round(offset_s * S) if told > 0 or offset_s == offset_s else 0
        for run, host, day, offset_s, told in zip(
            heads.run, heads.host, heads.day, heads.offset_s, heads.offset_windows, strict=True
        )
    }


def close(found: Any, expected: Any) -> bool:
    if isinstance(expected, (str, bool)):
        return bool(found == expected)
    if isinstance(expected, int):
        return int(found) == expected
    return bool(np.isclose(found, expected, rtol=1e-9, atol=1e-6, equal_nan=True))


@pytest.mark.parametrize("seed", range(6))
def test_windows_and_nodes_are_what_loops_over_the_rows_say(tmp_path, seed):
    rows, offsets = made_up(seed)
    days = node_days(rows, offsets)
    part = merged(stored(tmp_path, days))
    assert (part.files.code == "").all()
    assert len(part.files) == len(days) == len(part.heads)
    oracle = Oracle(days, offsets_in(part))
    assert len(part.windows) == len(oracle.windows) > 40
    again: dict[tuple[Any, ...], int] = defaultdict(int)
    for line in part.windows.to_dict("records"):
        same = line["run"], line["key"], line["load"]
        expected = oracle.windows[(*same, again[same])]
        again[same] += 1
        assert [
            (name, line[name], value)
            for name, value in expected.items()
            if not close(line[name], value)
        ] == []
    assert max(again.values()) == 2
    nodes = part.nodes[part.nodes.windows > 0].to_dict("records")
    assert len(nodes) == len(oracle.nodes)
    for line in nodes:
        expected = oracle.node(oracle.nodes[line["run"], line["host"], line["day"]])
        assert [
            (name, line[name], value)
            for name, value in expected.items()
            if not close(line[name], value)
        ] == []


def test_what_is_waited_is_blamed_and_what_nodes_have_windows_have(tmp_path):
    rows, offsets = made_up(7)
    part = merged(stored(tmp_path, node_days(rows, offsets)))
    for line in LINES:
        assert part.nodes[f"{line}_j"].sum() == pytest.approx(
            part.windows[f"{line}_j"].sum(), rel=1e-12
        )
        assert part.nodes[f"{line}_windows"].sum() == part.windows[f"{line}_nodes"].sum() > 0
    assert part.nodes.windows.sum() == part.windows.nodes.sum() == len(rows)
    assert part.nodes.blamed_gpu_s.sum() == pytest.approx(part.nodes.wait_gpu_s.sum(), rel=1e-12)
    assert part.windows.wait_gpu_s.sum() == pytest.approx(part.nodes.wait_gpu_s.sum(), rel=1e-12)


def equal(some: StorePart, other: StorePart) -> None:
    for name, left, right in zip(StorePart._fields, some, other, strict=True):
        assert_frame_equal(left, right, check_exact=True, obj=name)


def test_the_order_of_files_changes_no_bit(tmp_path):
    rows, offsets = made_up(11)
    store = stored(tmp_path, node_days(rows, offsets))
    shuffled = np.random.default_rng(1).permutation
    equal(
        merged(store),
        merged(store, lambda entries: [entries[place] for place in shuffled(len(entries))]),
    )
    equal(merged(store), finish_part(merged(store)))


def test_the_order_of_rows_in_a_file_changes_no_more_than_rounding(tmp_path):
    rows, offsets = made_up(12)
    turned = list(reversed(rows))
    one, other = (
        merged(stored(tmp_path, node_days(each, offsets), name))
        for name, each in (("a", rows), ("b", turned))
    )
    assert_frame_equal(one.windows, other.windows, check_exact=True)
    assert_frame_equal(one.nodes, other.nodes, rtol=1e-12, atol=1e-6)


@pytest.mark.parametrize("seed", [3, 4])
def test_where_midnight_cuts_changes_no_bit(tmp_path, seed):
    """A recorder may put a row into the file before or after; the sums do not know."""
    rows, offsets = made_up(seed, jitter=False)
    rng = np.random.default_rng(seed)
    moved = {}
    for place, row in enumerate(rows):
        own = row.at + offsets[row.host]
        since, until = day_of(date_of(own))
        if own - since < 5 * MINUTE and rng.random() < 0.5 and date_of(own) != DAYS[0]:
            moved[place] = -1
        elif until - own < 5 * MINUTE and rng.random() < 0.5:
            moved[place] = 1
    assert len(moved) > 5
    one = merged(stored(tmp_path, node_days(rows, offsets), "as-it-was"))
    other = merged(stored(tmp_path, node_days(rows, offsets, moved=moved), "moved"))
    assert_frame_equal(one.windows, other.windows, check_exact=True)
    some, more = (
        part.nodes[part.nodes.windows > 0].reset_index(drop=True) for part in (one, other)
    )
    assert_frame_equal(some, more, check_exact=True)


def plain_rows(steps: dict[str, int], hosts: str = "ABC", **said: Any) -> list[Row]:
    base = {
        "stall_s": 2.0,
        "drain_s": 1.0,
        "gpu_s": 8.0,
        "gpu_j": 400.0,
        "gpu_low_j": 360.0,
        "gpu_high_j": 440.0,
    }
    return [
        Row("run", host, at, {"label": label, **base, **said})
        for label, at in steps.items()
        for host in hosts
    ]


NOON = day_of(DAYS[0])[0] + 12 * 3600 * S
STEPS = {f"step {k}": NOON + k * 600 * S for k in range(5)}


def test_a_node_that_is_alone_on_a_day_keeps_the_offset_of_the_day_beside(tmp_path):
    """Its clock is 250 s ahead: the save of 23:59 is in its file of the next day, where no other
    node is."""
    midnight = day_of(DAYS[1])[0]
    rows = plain_rows({**STEPS, "late": midnight - 60 * S})
    part = merged(stored(tmp_path, node_days(rows, {"C": 250 * S})))
    late = part.windows[part.windows.label == "late"]
    assert late[["begin_ns", "nodes", "stall_s", "day"]].to_numpy().tolist() == [
        [midnight - 60 * S, 3, 2.0, DAYS[0]]
    ]
    alone = part.heads[part.heads.day == DAYS[1]]
    assert alone[["host", "offset_s", "offset_windows", "last_kept_ns"]].to_numpy().tolist() == [
        ["C", 250.0, 0, midnight - 60 * S]
    ]
    assert part.nodes[part.nodes.windows > 0][["host", "day", "windows"]].to_numpy().tolist() == [
        [h, DAYS[0], 6] for h in "ABC"
    ]


def test_numbers_that_can_be_followed_by_hand(tmp_path):
    """B returns 3 s after A; its GPUs take 800 J in 2 s, A's 400 J in 5 s."""
    rows = [
        Row(
            "run",
            "A",
            NOON,
            {
                "label": "s",
                "stall_s": 2.0,
                "drain_s": 9.0,
                "bytes": 10.0,
                "gpu_j": 800.0,
                "gpu_low_j": 600.0,
                "gpu_high_j": math.inf,
                "host_j": 200.0,
                "host_low_j": 200.0,
                "host_high_j": 200.0,
            },
        ),
        Row(
            "run",
            "B",
            NOON,
            {"label": "s", "stall_s": 5.0, "drain_s": 1.0, "bytes": 20.0, "gpu_j": NAN},
        ),
    ]
    part = merged(stored(tmp_path, node_days(rows, {}, gpus=8.0)))
    (window,) = part.windows.to_dict("records")
    assert {
        name: window[name]
        for name in ("stall_s", "drain_s", "bytes", "wait_gpu_s", "slowest", "nodes")
    } == {
        "stall_s": 5.0,
        "drain_s": 6.0,
        "bytes": 30.0,
        "wait_gpu_s": 24.0,
        "slowest": "B",
        "nodes": 2,
    }
    assert [window[name] for name in ("wait_j", "wait_low_j", "wait_high_j", "wait_nodes")] == [
        1500.0,
        1200.0,
        math.inf,
        2,
    ]
    assert [window[name] for name in ("gpu_j", "gpu_low_j", "gpu_high_j", "gpu_nodes")] == [
        800.0,
        600.0,
        math.inf,
        1,
    ]
    assert np.isnan([window["storage_j"], window["files"], window["own_gpu_s"]]).all()
    nodes = part.nodes.set_index("host")
    assert nodes.blamed_gpu_s.to_dict() == {"A": 0.0, "B": 24.0}
    assert nodes.blamed_j.to_dict() == {"A": 0.0, "B": 1500.0}
    assert nodes.slowest.to_dict() == {"A": 0, "B": 1}


def test_a_high_end_that_is_not_known_is_not_that_of_the_rest(tmp_path):
    """A host that is metered without ends leaves the sum without: leaving it out would make the
    high end lower than the value."""
    said = {"label": "s", "gpu_j": 100.0, "gpu_low_j": 90.0, "gpu_high_j": 110.0, "host_j": 100.0}
    rows = [
        Row("run", host, NOON, {**said, "stall_s": stall_s})
        for host, stall_s in (("A", 1.0), ("B", 2.0))
    ]
    (window,) = merged(stored(tmp_path, node_days(rows, {}))).windows.to_dict("records")
    assert window["wait_j"] == 200.0
    assert np.isnan([window["wait_low_j"], window["wait_high_j"], window["host_high_j"]]).all()
    assert window["gpu_high_j"] == 220.0


def test_heads_say_when_the_last_save_was_kept_on_the_jobs_clock(tmp_path):
    rows = plain_rows(STEPS) + [
        Row("run", "B", NOON + 4000 * S, {"label": "broken", "failed": True, "stall_s": 7.0})
    ]
    rows += [
        Row("run", host, NOON + 5000 * S, {"label": "step 0", "load": True, "stall_s": 3.0})
        for host in "ABC"
    ]
    days = node_days(rows, {"B": 3 * S})
    days = [
        NodeDay(
            replace(
                d.head,
                began_ns=NOON,
                labels={"z": "1", "a": "ü"},
                exit_code=3 if d.head.host == "A" else None,
            ),
            d.rows,
        )
        for d in days
    ]
    heads = merged(stored(tmp_path, days)).heads.set_index("host")
    assert heads.last_kept_ns.to_dict() == dict.fromkeys("ABC", STEPS["step 4"])
    assert heads.last_mark_ns.to_dict() == dict.fromkeys("ABC", NOON + 5003 * S)
    assert heads.began_ns.to_dict() == {"A": NOON, "B": NOON - 3 * S, "C": NOON}
    assert heads.offset_s.to_dict() == {"A": 0.0, "B": 3.0, "C": 0.0}
    assert heads.until_ns.tolist() == [0, 0, 0]
    assert json.loads(heads.labels["A"]) == {"a": "ü", "z": "1"}
    assert heads.labels["A"] == '{"a": "ü", "z": "1"}'
    assert heads.exit_code["A"] == 3.0
    assert heads.exit_code[["B", "C"]].isna().all()


def test_a_node_alone_has_a_clock_of_its_own(tmp_path):
    """Nothing tells its offset, which is not the same as none."""
    heads = merged(stored(tmp_path, node_days(plain_rows(STEPS, "A"), {}))).heads
    assert heads.offset_s.isna().all()
    assert heads.offset_windows.tolist() == [0]


def test_labels_are_read_of_what_took_longest(tmp_path, monkeypatch):
    monkeypatch.setattr(job_day, "LABELS", 3)
    rows = [
        Row("run", host, at, {"label": label, "stall_s": 1.0 + place})
        for place, (label, at) in enumerate(STEPS.items())
        for host in "AB"
    ]
    # one that only B has, and one near midnight
    rows += [Row("run", "B", NOON - 600 * S, {"label": "only B", "stall_s": 50.0})]
    rows += [
        Row("run", host, day_of(DAYS[0])[0] + MINUTE, {"label": "early", "stall_s": 40.0})
        for host in "AB"
    ]
    part = merged(stored(tmp_path, node_days(rows, {})))
    assert part.windows.label.tolist() == ["early", "only B", "", "", "", "", "step 4"]


def test_labels_of_a_file_that_went_away_are_empty(tmp_path):
    class Once(type(open_store(str(tmp_path / "x"), make=True))):  # type: ignore[misc]
        def read(self, path):
            (data,) = [super().read(path)]
            (tmp_path / "store" / path).unlink()
            return data

    store = stored(tmp_path, node_days(plain_rows(STEPS), {}))
    part = merged(Once(store.url, store._place))
    assert part.windows.label.tolist() == [""] * 5
    assert part.windows.nodes.tolist() == [3] * 5


def test_empty_frames_have_the_same_columns_and_types(tmp_path):
    store = stored(
        tmp_path, node_days(plain_rows({**STEPS, "early": day_of(DAYS[0])[0] + MINUTE}), {})
    )
    full, empty = (
        frames.put_together([pieces_of(store, entries)]) for entries in (store.listing(), [])
    )
    assert len(full.edges) == 3
    for name, left, right in zip(StorePart._fields, full, empty, strict=True):
        assert right.empty, name
        assert left.dtypes.to_dict() == right.dtypes.to_dict(), name
    for frame, columns in zip(full, (FILES, HEADS, WINDOWS, NODES), strict=False):
        assert list(frame) == list(columns)
    assert set(full.edges) == {*COLUMNS, "job", "run", "host", "day", "gpus"}
    done = finish_part(full)
    assert [list(frame) for frame in done] == [list(frame) for frame in full]
    assert [frame.dtypes.to_dict() for frame in done] == [frame.dtypes.to_dict() for frame in full]
    assert done.edges.empty
    assert len(done.windows) == 6
    equal(finish_part(empty), empty)
    assert isinstance(full.windows, pd.DataFrame)


def test_files_without_rows_count_as_nodes_that_saved_nothing(tmp_path):
    days = node_days(plain_rows(STEPS), {})
    days.append(NodeDay(NodeDayHead("llama", "run", "Z", DAYS[0]), empty_rows(0)))
    part = merged(stored(tmp_path, days))
    assert part.heads.host.tolist() == ["A", "B", "C", "Z"]
    assert part.windows.nodes.tolist() == [3] * 5
    last = part.nodes.iloc[-1]
    assert (last.host, last.windows, last.gpu_j, last.wait_gpu_s) == ("Z", 0, 0.0, 0.0)


def test_a_run_that_ends_another_begins_are_apart(tmp_path):
    """The same label in two runs is two saves."""
    rows = plain_rows(STEPS, "AB")
    rows += [row._replace(run="other", at=row.at + 7200 * S) for row in rows]
    windows = merged(stored(tmp_path, node_days(rows, {}))).windows
    assert windows.run.tolist() == ["run"] * 5 + ["other"] * 5
    assert windows.nodes.tolist() == [2] * 10


@pytest.mark.parametrize("seed", range(12))
def test_a_label_that_comes_again_is_told_apart_by_time_though_nodes_lack_some(seed: int) -> None:
    """Saves of a few labels, about 20 s between two of a label, begun within a second of each
    other; every node lacks a fifth of them."""
    rng = np.random.default_rng(seed)
    saves = [(key, load, turn) for key in range(3) for load in (False, True) for turn in range(8)]
    at_ns = {save: (save[2] * 20 + int(rng.integers(0, 5))) * S for save in saves}
    files, wanted = [], []
    for _ in range(6):
        mine = [save for save in saves if rng.random() < 0.8]
        order = rng.permutation(len(mine))
        mine = [mine[place] for place in order]
        begin_ns = [at_ns[save] + int(rng.integers(0, S)) for save in mine]
        keys, loads = [save[0] for save in mine], [save[1] for save in mine]
        files.append(
            {
                "key": np.array(keys, np.int64),
                "load": np.array(loads, bool),
                "begin_ns": np.array(begin_ns, np.int64),
            }
        )
        wanted += mine
    window, windows = places_of(files)
    assert (
        len(set(zip(wanted, window.tolist(), strict=True)))
        == len(set(wanted))
        == windows
        == len(set(window.tolist()))
    )


def test_a_node_that_lacks_the_first_of_a_label_shifts_no_other() -> None:
    one = {
        "key": np.full(4, 7),
        "load": np.zeros(4, bool),
        "begin_ns": np.array([0, 600, 1200, 1800]) * S,
    }
    window, windows = places_of([one, {name: values[1:] for name, values in one.items()}])
    assert (windows, window[:4].tolist()[1:]) == (4, window[4:].tolist())


def test_two_quick_saves_of_a_label_are_two() -> None:
    begin_ns = np.array([0, 3, 600, 603, 1200, 1203]) * S
    one = {"key": np.full(6, 7), "load": np.zeros(6, bool), "begin_ns": begin_ns}
    window, windows = places_of([one, {**one, "begin_ns": begin_ns + S // 2}])
    assert windows == 6
    assert window[:6].tolist() == window[6:].tolist()


DAY, NEXT = "2026-11-20", "2026-11-21"


MIDDAY = day_of(DAY)[0] + 12 * 3600 * S


def day_file(host: str, day: str, begins: list[int], **head) -> NodeDay:
    rows = empty_rows(len(begins))
    rows["label"] = np.array([f"step {k} {day}" for k in range(len(begins))], dtype=object)
    rows["key"] = np.array([key_of(label) for label in rows["label"]], dtype=np.int64)
    rows["begin_ns"] = np.array(begins, dtype=np.int64)
    rows["stall_s"][:] = 2.0
    rows["gpu_s"], rows["gpu_j"] = rows["stall_s"] * 8, rows["stall_s"] * 3000
    usual = {"gpus": 8.0, "covered_s": 80_000.0, "meter": host}
    return NodeDay(NodeDayHead("job", "run", host, day, **{**usual, **head}), rows)


def merged_days(folder, days: list[NodeDay]):
    store = open_store(str(folder), make=True)
    for day in days:
        store.put(store.path_of(day.head), encode(day))
    return collect_parts(store, group_by_job_day(store.listing()))


def test_a_day_on_which_a_node_saved_nothing_stays_beside_one_on_which_it_did(tmp_path) -> None:
    midnight = day_of(NEXT)[0]
    steps = [
        MIDDAY,
        MIDDAY + 600 * S,
        midnight - 60 * S,
    ]  # the last is near midnight, so that days are put together
    days = [day_file(host, DAY, steps) for host in ("a", "b")] + [
        day_file(host, NEXT, []) for host in ("a", "b")
    ]
    nodes = merged_days(tmp_path / "s", days).nodes
    assert [(row.host, row.day, row.windows) for row in nodes.itertuples()] == [
        ("a", DAY, 3),
        ("a", NEXT, 0),
        ("b", DAY, 3),
        ("b", NEXT, 0),
    ]
    assert nodes["gpu_j"].tolist() == [18_000.0, 0.0, 18_000.0, 0.0]


def test_counts_are_whole_numbers(tmp_path) -> None:
    part = merged_days(
        tmp_path / "s",
        [day_file(host, DAY, [MIDDAY, MIDDAY + 600 * S]) for host in ("a", "b")],
    )
    for frame, names in (
        (part.windows, ("key", "begin_ns", "nodes", "gpu_nodes", "wait_nodes")),
        (part.nodes, ("windows", "saves", "slowest", "gpu_windows")),
        (part.heads, ("nodes", "began_ns", "last_kept_ns", "offset_windows")),
    ):
        assert {name: str(frame[name].dtype) for name in names} == dict.fromkeys(names, "int64")


def test_only_of_two_nodes_it_is_said_that_nobody_knows(tmp_path) -> None:
    steps = [MIDDAY + k * 600 * S for k in range(6)]
    strays = [at + stray * S for at, stray in zip(steps, (0, 40, -30, 80, 10, -60), strict=True)]
    for others, doubt in ((1, True), (4, False)):
        days = [*(day_file(f"n{k}", DAY, steps) for k in range(others)), day_file("x", DAY, strays)]
        files = merged_days(tmp_path / str(others), days).files
        (text,) = files.text[files.code == "UNSTEADY"]
        assert text.endswith(
            "against the other nodes' of its run."
            + (" With two nodes nobody can tell whose clock is being set." * doubt)
        )


def test_what_is_not_known_is_nan(tmp_path) -> None:
    day = day_file("a", DAY, [MIDDAY])
    day.rows["drain_s"][:] = math.nan
    assert math.isnan(merged_days(tmp_path / "s", [day]).windows.drain_s[0])


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
