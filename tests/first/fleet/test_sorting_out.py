"""Every way in which a file does not count, made for real; the rest is as if the file were not
there."""

from __future__ import annotations

import errno
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pandas.testing import assert_frame_equal

from ckptcost.first.fleet import node_file
from ckptcost.first.fleet.clocks import on_one_clock
from ckptcost.first.fleet.frames import put_together
from ckptcost.first.fleet.job_day import finish_part, pieces_of
from ckptcost.first.fleet.node_day import NodeDay, NodeDayHead, empty_rows, key_of
from ckptcost.first.fleet.node_file import encode
from ckptcost.first.fleet.part import StorePart
from ckptcost.first.fleet.store import Store, open_store
from ckptcost.first.fleet.validate import ValidFile, day_of, one_of_each, plain
from ckptcost.first.runs import job_facts

S = 10**9
DAY = "2026-11-20"
NOON = day_of(DAY)[0] + 12 * 3600 * S
STEPS = [NOON + k * 600 * S for k in range(6)]


def node(host: str, begins: list[int] | None = None, offset_s: float = 0.0, **head: Any) -> NodeDay:
    """Six saves, all nodes together."""
    begins = STEPS if begins is None else begins
    rows = empty_rows(len(begins))
    rows["label"] = np.array([f"step {k}" for k in range(len(begins))], dtype=object)
    rows["key"] = np.array([key_of(label) for label in rows["label"]], dtype=np.int64)
    rows["begin_ns"] = np.array(begins, dtype=np.int64) + int(offset_s * S)
    rows["stall_s"][:] = 2.0 + len(host) / 10
    rows["gpu_s"], rows["gpu_j"] = rows["stall_s"] * 8, rows["stall_s"] * 3000
    said = {
        "job": "job",
        "run": "run",
        "host": host,
        "day": DAY,
        "gpus": 8.0,
        "covered_s": 80_000.0,
        "began_ns": NOON - 3600 * S,
        "until_ns": NOON + 7200 * S,
        "gpu_total_j": 1e9,
        "meter": host,
    }
    return NodeDay(NodeDayHead(**{**said, **head}), rows)


GOOD = [node("a"), node("bb", offset_s=2.0), node("ccc", offset_s=-1.0), node("d"), node("e")]


def stored(folder, days: list[NodeDay]) -> Store:
    store = open_store(str(folder), make=True)
    for day in days:
        store.put(store.path_of(day.head), encode(day))
    return store


def merged(store: Store) -> StorePart:
    """As of one job and day, whatever lies beside."""
    entries = [entry for entry in store.listing() if (entry.job, entry.day) == ("job", DAY)]
    return finish_part(put_together([pieces_of(store, entries)]))


def named(part: StorePart) -> dict[str, tuple[str, str]]:
    bad = part.files[part.files.code != ""]
    return {
        path.rpartition("/")[2]: (code, text)
        for path, code, text in zip(bad.path, bad.code, bad.text, strict=True)
    }


def as_without(part: StorePart, good: StorePart) -> None:
    for name in ("heads", "windows", "nodes"):
        assert_frame_equal(getattr(part, name), getattr(good, name), check_exact=True, obj=name)


FOLDER = f"job=job/day={DAY}/"


def flipped(data: bytes) -> bytes:
    return data[:2000] + bytes([data[2000] ^ 1]) + data[2001:]


@pytest.mark.parametrize(
    ("spoilt", "code"),
    [
        (flipped, "CORRUPT"),
        (lambda data: data[:-500], "TRUNCATED"),
        (lambda data: b"", "TRUNCATED"),
        (lambda data: b"# notes of mine\n" * 100, "NOT_OURS"),
    ],
    ids=["a bit", "cut off", "empty", "notes"],
)
def test_what_is_no_whole_file_is_named_and_the_rest_stands(
    tmp_path, spoilt: Callable[[bytes], bytes], code
):
    good = merged(stored(tmp_path / "good", GOOD))
    store = stored(tmp_path / "bad", GOOD)
    (tmp_path / "bad" / FOLDER / "x.parquet").write_bytes(spoilt(encode(node("x"))))
    part = merged(store)
    ((name, (said, text)),) = named(part).items()
    assert (name, said) == ("x.parquet", code)
    assert len(text) > 5
    (row,) = part.files[part.files.code != ""].to_dict("records")
    assert (row["job"], row["day"], row["run"], row["host"]) == ("job", DAY, "", "")
    assert math.isnan(row["rows"])
    assert part.files.rows.sum() == 30
    as_without(part, good)


def test_a_newer_format_is_named(tmp_path, monkeypatch):
    store = stored(tmp_path / "bad", GOOD)
    with monkeypatch.context() as later:
        later.setattr(node_file, "VERSION", "7.0")
        data = encode(node("x"))
    (tmp_path / "bad" / FOLDER / "x.parquet").write_bytes(data)
    part = merged(store)
    assert named(part)["x.parquet"][0] == "FUTURE"
    assert "7" in named(part)["x.parquet"][1]
    as_without(part, merged(stored(tmp_path / "good", GOOD)))


class Failing(Store):
    """A disk that cannot read one file."""

    def read(self, path: str) -> bytes:
        if "x-run" in path:
            raise OSError(errno.EIO, "Input/output error")
        return super().read(path)


def test_what_cannot_be_read_is_named(tmp_path):
    store = stored(tmp_path / "bad", [*GOOD, node("x")])
    part = merged(Failing(store.url, store._place))
    assert list(named(part).values()) == [("UNREADABLE", "could not be read (Input/output error)")]
    as_without(part, merged(stored(tmp_path / "good", GOOD)))


def test_what_went_away_since_it_was_listed_is_named(tmp_path):
    store = stored(tmp_path / "bad", [*GOOD, node("x")])
    entries = store.listing()
    next((tmp_path / "bad" / FOLDER).glob("x-*")).unlink()
    part = finish_part(put_together([pieces_of(store, entries)]))
    assert [code for code, _ in named(part).values()] == ["UNREADABLE"]
    as_without(part, merged(stored(tmp_path / "good", GOOD)))


@pytest.mark.parametrize(
    "head",
    [{"job": "other"}, {"day": "2026-11-19"}, {"job": "job\x00"}],
    ids=["job", "day", "nearly"],
)
def test_a_file_in_a_wrong_place_is_named(tmp_path, head):
    store = stored(tmp_path / "bad", GOOD)
    day = node("x")
    (tmp_path / "bad" / FOLDER / "x.parquet").write_bytes(
        encode(NodeDay(replace(day.head, **head), day.rows))
    )
    part = merged(store)
    assert named(part)["x.parquet"][0] == "MISPLACED"
    assert part.files[part.files.code != ""][["job", "day"]].to_numpy().tolist() == [["job", DAY]]
    as_without(part, merged(stored(tmp_path / "good", GOOD)))


def test_a_job_with_a_long_name_is_in_its_place(tmp_path):
    """The path has a part of it only."""
    long = "ü" * 300
    store = stored(tmp_path / "s", [NodeDay(replace(day.head, job=long), day.rows) for day in GOOD])
    part = finish_part(put_together([pieces_of(store, store.listing())]))
    assert named(part) == {}
    assert set(part.windows.job) == {long}


@pytest.mark.parametrize("days", [-1, 1, 400])
def test_a_clock_that_is_days_off_is_named(tmp_path, days):
    part = merged(
        stored(tmp_path / "bad", [*GOOD, node("x", [at + days * 86_400 * S for at in STEPS])])
    )
    ((code, text),) = named(part).values()
    assert code == "SKEWED"
    assert DAY in text
    as_without(part, merged(stored(tmp_path / "good", GOOD)))


@pytest.mark.parametrize(
    ("offset_s", "counts"), [(299.0, True), (301.0, False), (-299.0, True), (-301.0, False)]
)
def test_a_clock_is_corrected_up_to_five_minutes(tmp_path, offset_s, counts):
    part = merged(stored(tmp_path / "bad", [*GOOD, node("x", offset_s=offset_s)]))
    if counts:
        assert named(part) == {}
        assert part.windows.nodes.tolist() == [6] * 6
        assert part.heads.set_index("host").offset_s["x"] == offset_s
        assert part.windows.begin_ns.tolist() == STEPS
    else:
        ((code, text),) = named(part).values()
        assert code == "SKEWED"
        assert "301 s" in text
        assert ("ahead" in text) == (offset_s > 0)
        assert "two nodes" not in text
        as_without(part, merged(stored(tmp_path / "good", GOOD)))


def test_of_two_clocks_the_one_behind_is_taken_and_it_is_said_that_nobody_knows(tmp_path):
    part = merged(stored(tmp_path / "bad", [node("a", offset_s=400.0), node("b")]))
    ((code, text),) = named(part).values()
    assert code == "SKEWED"
    assert "nobody can tell" in text
    assert part.heads.host.tolist() == ["b"]
    assert part.windows.begin_ns.tolist() == STEPS


def test_a_clock_that_is_being_set_is_named(tmp_path):
    """Against five that agree it is told, in three saves or more."""
    strays = [at + stray * S for at, stray in zip(STEPS, (0, 40, -30, 80, 10, -60), strict=True)]
    part = merged(stored(tmp_path / "bad", [*GOOD, node("x", strays)]))
    ((code, text),) = named(part).values()
    assert code == "UNSTEADY"
    assert " s from save to save" in text
    as_without(part, merged(stored(tmp_path / "good", GOOD)))
    two = [node(day.head.host, STEPS[:2]) for day in GOOD]
    assert named(merged(stored(tmp_path / "few", [*two, node("x", strays[:2])]))) == {}


@pytest.mark.parametrize("others", [1, 2, 3])
def test_one_straying_clock_takes_no_steady_one_with_it(tmp_path, others):
    """In so small a company the steady ones seem to stray, too."""
    strays = [at + stray * S for at, stray in zip(STEPS, (0, 40, -30, 80, 10, -60), strict=True)]
    part = merged(
        stored(tmp_path / "bad", [*(node(host) for host in "abc"[:others]), node("x", strays)])
    )
    assert [(name[0], code) for name, (code, _) in named(part).items()] == [("x", "UNSTEADY")]
    assert part.windows.nodes.tolist() == [others] * 6


def test_where_no_clock_agrees_with_another_one_node_stays(tmp_path):
    rng = np.random.default_rng(5)
    days = [
        node(
            f"n{k:02}",
            [
                at + int(stray)
                for at, stray in zip(STEPS, rng.integers(-200 * S, 200 * S, 6), strict=True)
            ],
        )
        for k in range(12)
    ]
    part = merged(stored(tmp_path / "bad", days))
    assert {code for code, _ in named(part).values()} <= {"UNSTEADY", "SKEWED"}
    assert len(part.heads) == 1
    assert len(part.windows) == 6


@pytest.mark.parametrize(
    ("more", "less"),
    [
        ({"covered_s": 80_001.0, "until_ns": NOON}, {}),
        ({"until_ns": NOON + 7201 * S}, {}),
        ({}, {"begins": STEPS[:5]}),
        ({}, {"covered_s": math.nan, "until_ns": NOON + 9999 * S}),
        ({}, {}),
    ],
    ids=["covers more", "ends later", "more rows", "nothing known of the other", "a copy"],
)
@pytest.mark.parametrize("turned", [False, True])
def test_of_two_files_of_one_run_and_host_the_one_that_covers_more_counts(
    tmp_path, more, less, turned
):
    store = stored(tmp_path / "bad", GOOD)
    folder = tmp_path / "bad" / FOLDER
    names = ["x1.parquet", "x2.parquet"]
    # of a copy the first in the order of paths counts, so there is nothing to turn
    counts, aside = reversed(names) if turned and (more or less) else names
    best = node("x", **more)
    (folder / counts).write_bytes(encode(best))
    (folder / aside).write_bytes(encode(node("x", **less)))
    part = merged(store)
    assert named(part) == {
        aside: (
            "DUPLICATE",
            f"the same run on the same host and day as {FOLDER}{counts}, which counts",
        )
    }
    as_without(part, merged(stored(tmp_path / "good", [*GOOD, best])))


def other_run(host: str, **head: Any) -> NodeDay:
    day = node(host, [at + 1000 * S for at in STEPS], run="run-2", covered_s=70_000.0, **head)
    day.rows["key"][:] += 1
    return day


def test_two_meters_on_one_node_are_not_added(tmp_path):
    """Two recorders of one job on one node read the same GPUs."""
    part = merged(stored(tmp_path / "bad", [*GOOD, other_run("a", meter="second")]))
    ((name, (code, text)),) = named(part).items()
    assert (name[:5], code) == ("a-run", "SECOND_METER")
    assert "run run was recorded on a at the same time" in text
    as_without(part, merged(stored(tmp_path / "good", GOOD)))


def test_the_meter_that_covers_more_counts(tmp_path):
    second = other_run("a")
    second = NodeDay(replace(second.head, covered_s=86_000.0), second.rows)
    part = merged(stored(tmp_path / "bad", [*GOOD, second]))
    assert [code for code, _ in named(part).values()] == ["SECOND_METER"]
    as_without(part, merged(stored(tmp_path / "good", [*GOOD[1:], second])))


@pytest.mark.parametrize(
    "second",
    [
        other_run("a", began_ns=NOON + 7200 * S, until_ns=NOON + 9000 * S),
        other_run("a", began_ns=NOON + 7150 * S, until_ns=NOON + 9000 * S),
        other_run("z"),
    ],
    ids=["after it", "taking over", "another node"],
)
def test_runs_that_follow_each_other_both_count(tmp_path, second):
    part = merged(stored(tmp_path / "both", [*GOOD, second]))
    assert named(part) == {}
    assert len(part.heads) == 6


def without_gpus(day: NodeDay) -> NodeDay:
    return NodeDay(
        replace(day.head, gpu_total_j=math.nan), {**day.rows, "gpu_j": np.full(day.many, math.nan)}
    )


def test_recorders_without_a_common_meter_or_save_both_count(tmp_path):
    part = merged(stored(tmp_path / "both", [*GOOD, without_gpus(other_run("a"))]))
    assert named(part) == {}
    # the same saves under another run id, though, would be waited for twice
    same = without_gpus(node("a", run="run-2", covered_s=1.0))
    part = merged(stored(tmp_path / "twice", [*GOOD, same]))
    assert [code for code, _ in named(part).values()] == ["SECOND_METER"]
    # and the same labels an hour later are what was lost and done again
    again = without_gpus(node("a", [at + 3700 * S for at in STEPS], run="run-2", covered_s=1.0))
    assert named(merged(stored(tmp_path / "again", [*GOOD, again]))) == {}


def test_a_second_recorder_of_the_same_run_is_called_so(tmp_path):
    store = stored(tmp_path / "bad", GOOD)
    (tmp_path / "bad" / FOLDER / "a2.parquet").write_bytes(
        encode(node("a", meter="second", covered_s=1.0))
    )
    part = merged(store)
    assert [code for code, _ in named(part).values()] == ["SECOND_METER"]
    as_without(part, merged(stored(tmp_path / "good", GOOD)))


def test_all_at_once(tmp_path):
    """Every fault in one day: each is named once, and the sums are those of the rest."""
    strays = [at + stray * S for at, stray in zip(STEPS, (0, 40, -30, 80, 10, -60), strict=True)]
    store = stored(
        tmp_path / "bad",
        [
            *GOOD,
            node("skewed", offset_s=310.0),
            node("unsteady", strays),
            other_run("d"),
            node("x"),
        ],
    )
    folder = tmp_path / "bad" / FOLDER
    (folder / "corrupt.parquet").write_bytes(flipped(encode(node("y"))))
    (folder / "other.parquet").write_bytes(b"no Parquet")
    (folder / "cut.parquet").write_bytes(encode(node("y"))[:-9])
    (folder / "misplaced.parquet").write_bytes(encode(node("y", day="2026-11-21")))
    shutil.copy(next(folder.glob("a-*")), folder / "a-copy.parquet")
    part = merged(Failing(store.url, store._place))
    codes = sorted(code for code, _ in named(part).values())
    assert codes == sorted(
        [
            "CORRUPT",
            "TRUNCATED",
            "NOT_OURS",
            "MISPLACED",
            "DUPLICATE",
            "SECOND_METER",
            "SKEWED",
            "UNSTEADY",
            "UNREADABLE",
        ]
    )
    assert len(part.files) == 14
    as_without(part, merged(stored(tmp_path / "good", GOOD)))


def test_a_day_of_which_nothing_counts_is_still_a_part(tmp_path):
    store = open_store(str(tmp_path / "bad"), make=True)
    (tmp_path / "bad" / FOLDER).mkdir(parents=True)
    (tmp_path / "bad" / FOLDER / "x.parquet").write_bytes(b"nothing")
    part = merged(store)
    assert part.files.code.tolist() == ["NOT_OURS"]
    assert part.windows.empty
    assert part.heads.empty


def test_names_of_files_may_hold_bytes_that_are_no_text(tmp_path):
    store = stored(tmp_path / "bad", GOOD)
    (tmp_path / "bad" / FOLDER / "x\udcff.parquet").write_bytes(b"nothing")
    part = merged(store)
    assert list(named(part)) == ["x\\udcff.parquet"]
    assert plain("ü") == "ü"


def test_a_day_that_is_none():
    with pytest.raises(ValueError, match=r"not a day"):
        day_of("2026-11")
    assert day_of("2026-11-21")[0] == day_of("2026-11-20")[1] == 1_795_219_200 * S


def test_sorting_out_nothing():
    assert one_of_each([]) == ([], [])
    timed, aside = on_one_clock([])
    assert (timed.files, timed.windows, len(timed.window), aside) == ([], 0, 0, [])
    alone, aside = on_one_clock([ValidFile("p", node("a", []).head, dict(node("a", []).rows))])
    assert (len(alone.files), alone.windows, alone.told.tolist(), aside) == (1, 0, [0], [])


def test_what_cannot_be_understood_is_noted_though_nothing_else_is_said() -> None:
    said = []

    class Noting:
        def note(self, domain, text, **detail):
            said.append((domain, text, detail))

    job_facts.note_job_facts(Noting(), {"CKPTCOST_LABELS": "nonsense"})
    assert said == [("job", "CKPTCOST_LABELS: 'nonsense' is left out, as it is no NAME=TEXT", {})]
