"""Runs back from files: whole ones exactly, broken ones as far as they go, each fault in a
sentence."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest
from steady_meters import EVEN, Steady

from ckptcost.first.core.channels import Channel
from ckptcost.first.errors import InputError, RunFileError, UnknownName
from ckptcost.first.runs.clocks import S, VirtualClock
from ckptcost.first.runs.header import Header, heads_of
from ckptcost.first.runs.lines import Raw, Second, decode, encode, raw_line, seal_line, second_line
from ckptcost.first.runs.reader import load
from ckptcost.first.runs.recorder import Recorder
from ckptcost.first.runs.sinks import FileSink


def recorded(
    directory,
    seconds=30,
    marks=(10,),
    run_id="a" * 32,
    host="node1",
    start_ns=0,
    wall_ns=1_767_225_600 * S,
    **more,
):
    clock = VirtualClock(start_ns, wall_ns)
    recorder = Recorder(
        [Steady(count=1)], FileSink(directory, **more), clock, EVEN, run_id=run_id, host=host
    )
    recorder.begin()
    for second in range(1, seconds + 1):
        while recorder._next_ns <= start_ns + second * S:
            recorder.step()
        if second in marks:
            recorder.mark("begin", f"w{second}")
            recorder.mark("end", f"w{second}")
    recorder.stop()


ONE = Steady(count=1)
HEADER = Header(
    run="r",
    host="n",
    boot="b",
    pid=1,
    monotonic_ns=100 * S,
    wall_ns=1000 * S,
    meters=heads_of([ONE]),
)


def written(path, *lines, header=HEADER):
    path.write_bytes(encode(header.fields()) + b"".join(lines))
    return path


def marked(t_ns, name="note", rank=0):
    return encode({"k": "mark", "t": t_ns, "name": name, "window": "w", "rank": rank, "by": "api"})


def tick(t_s, *row):
    return raw_line(Raw(round(t_s * S), (5,), (row,)))


def test_ticks_win_over_the_summary_of_their_second(tmp_path):
    ticks = [tick(100 + k / 5, 10.0 * k, 100.0 + k) for k in range(5)]
    summary = second_line(
        Second(100 * S, 100 * S + 800_000_000, (5,), (5,), ([40.0, [102.0, 100.0, 104.0, 5]],))
    )
    alone = second_line(
        Second(101 * S, 101 * S + 800_000_000, (5,), (9,), ([90.0, [112.0, 110.0, 114.0, 5]],))
    )
    run = load(written(tmp_path / "a.jsonl", alone, *ticks, summary))
    energy, power = run.series("gpu:0 energy_j"), run.series("gpu:0 power_w")
    assert energy.t_s == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1.8])
    assert energy.value.tolist() == [0, 10, 20, 30, 40, 90]
    assert energy.took_s == pytest.approx([5e-9] * 5 + [9e-9])
    assert power.t_s == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1.4])
    assert power.value.tolist() == [100, 101, 102, 103, 104, 112]


def test_a_summary_wins_over_the_few_ticks_that_are_left_of_it(tmp_path):
    summary = second_line(
        Second(100 * S, 100 * S + 800_000_000, (5,), (5,), ([40.0, [102.0, 100.0, 104.0, 5]],))
    )
    run = load(written(tmp_path / "a.jsonl", tick(100.2, 10.0, 101.0), summary))
    assert run.series("gpu:0 power_w").value.tolist() == [102.0]
    assert run.series("gpu:0 energy_j").t_s == pytest.approx(
        [0.2, 0.8]
    )  # a counter's reading is true wherever it stands


def test_when_a_slow_meter_was_asked_is_remembered(tmp_path):
    summary = second_line(
        Second(
            100 * S,
            100 * S + 800_000_000,
            ((1, 600_000_000, 600_000_000),),
            (5,),
            ([[7.0, 600_000_000], 50.0],),
        )
    )
    run = load(written(tmp_path / "a.jsonl", summary))
    for name in ("gpu:0 energy_j", "gpu:0 power_w"):
        assert run.series(name).t_s == pytest.approx([0.2])


def test_no_answer_is_nan_and_not_asked_is_nothing(tmp_path):
    lines = [tick(100, None, 5.0), raw_line(Raw(101 * S, (0,), (None,))), tick(102, 3.0, None)]
    run = load(written(tmp_path / "a.jsonl", *lines))
    energy = run.series("gpu:0 energy_j")
    assert energy.t_s.tolist() == [0.0, 2.0]
    assert np.isnan(energy.value[0])
    assert energy.value[1] == 3.0


def test_truncated_at_every_byte_it_says_so_and_keeps_what_is_before(tmp_path):
    lines = [tick(100 + k, float(k), 1.0) for k in range(6)] + [marked(101 * S)]
    whole = encode(HEADER.fields()) + b"".join(lines)
    head = len(encode(HEADER.fields()))
    ends = np.cumsum([head, *map(len, lines)])
    path = tmp_path / "a.jsonl"
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        if size < head - 1:
            with pytest.raises(RunFileError, match=r"not a run: (empty|no header)"):
                load(path)
            continue
        run = load(path)
        there = int(np.sum(ends - 1 <= size)) - 1
        assert len(run.series("gpu:0 energy_j").t_s) + len(run.marks) == there, size
        torn = size not in ends and size + 1 not in ends
        assert [str(p).rsplit(": ", 1)[1][:24] for p in run.problems] == (
            ["the last line is cut off"] if torn else []
        )
        assert not run.ended


@pytest.mark.parametrize("zeros", [1, 511, 4096, 100_000])
@pytest.mark.parametrize("cut", [0, 30])
def test_zeros_after_a_power_cut(tmp_path, zeros, cut):
    path = written(tmp_path / "a.jsonl", tick(100, 1.0, 1.0), tick(101, 2.0, 1.0))
    path.write_bytes(path.read_bytes()[: -cut or None] + b"\0" * zeros)
    run = load(path)
    assert len(run.series("gpu:0 energy_j").t_s) == (1 if cut else 2)
    assert f"{zeros} zero bytes" in run.problems[0].text
    assert len(run.problems) == 1


@pytest.mark.parametrize(
    "bad",
    [
        b"garbage\n",
        b"\0\0\0\n",
        b"\n",
        b"\xff\xfe\n",
        tick(1, 1.0, 1.0)[:-5] + b"\n",
        b"x" * 100_000 + b"\n",
    ],
)
def test_bad_lines_are_named_by_part_and_number(tmp_path, bad):
    path = written(tmp_path / "a.jsonl", tick(100, 1.0, 1.0), bad, tick(101, 2.0, 1.0))
    run = load(path)
    assert [(p.part, p.line) for p in run.problems] == [("a.jsonl", 3)]
    assert "left out" in str(run.problems[0])
    assert len(run.series("gpu:0 energy_j").t_s) == 2


@pytest.mark.parametrize(
    "line",
    [
        encode({"k": "raw", "t": 1, "d": [1], "v": [[1.0]]}),
        encode({"k": "raw", "t": 1, "d": [1], "v": [[1.0, 2.0], [3.0]]}),
        encode({"k": "raw", "t": 1, "d": [1], "v": [["x", 2.0]]}),
        encode({"k": "raw"}),
        encode({"k": "raw", "t": 1, "d": [], "v": [[1, 2]]}),
        encode({"k": "second", "t": 1, "from": 1, "n": [1], "d": [1], "v": [[1.0]]}),
        encode({"k": "mark", "t": 1}),
        encode({"k": "mark", "t": "x", "name": "a", "window": "", "rank": 0, "by": ""}),
        encode({"k": "clock", "t": 1}),
        encode({"k": "raw", "t": 2**70, "d": [1], "v": [[1.0, 2.0]]}),
        encode({"k": "raw", "t": -(2**63), "d": [1], "v": [[1.0, 2.0]]}),
        encode({"k": "mark", "t": 1, "name": "a", "window": "", "rank": 2**63, "by": ""}),
        encode({"k": "mark", "t": 1, "name": "a", "window": "", "rank": -1, "by": ""}),
        encode({"k": "mark", "t": 2**62, "name": "a", "window": "", "rank": 0, "by": ""}),
        encode({"k": "second", "t": 1, "from": -(2**62), "n": [1], "d": [1], "v": [[1.0, 2.0]]}),
        encode({"k": "second", "t": 1, "from": 1, "n": [1], "d": [1], "v": 3}),
        encode({"k": "raw", "t": 1, "d": [1], "v": [[1e308, 2.0]]}),
        seal_line('{"k":"raw","t":1,"d":[1],"v":[[1.0,-1e31]]'),
        encode({"k": "second", "t": 1, "from": 1, "n": [1], "d": [1], "v": [[1.0, 1e300]]}),
        encode({"k": "second", "t": 1, "from": 1, "n": [1], "d": [1], "v": [[[1e300, 1], 1.0]]}),
    ],
)
def test_lines_with_a_good_checksum_that_do_not_fit(tmp_path, line):
    run = load(written(tmp_path / "a.jsonl", tick(100, 1.0, 1.0), line, tick(101, 2.0, 1.0)))
    assert [p.line for p in run.problems] == [3]
    assert run.series("gpu:0 energy_j").value.tolist() == [1.0, 2.0]


def test_many_bad_lines_are_counted(tmp_path):
    run = load(written(tmp_path / "a.jsonl", *[b"x\n"] * 500, tick(101, 2.0, 1.0)))
    assert len(run.problems) == 21
    assert "500 bad lines" in run.problems[-1].text


def test_unknown_kinds_and_keys_are_passed_over(tmp_path):
    news = encode({"k": "smell", "t": 1, "x": 3})
    known = encode(
        {
            "k": "mark",
            "t": 100 * S,
            "name": "begin",
            "window": "",
            "rank": 0,
            "by": "api",
            "mood": 3,
        }
    )
    run = load(written(tmp_path / "a.jsonl", news, known))
    assert (run.problems, len(run.marks)) == ((), 1)


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 5000, bytes(range(256)) * 40, b"hello\n", b'{"a": 1}\n', b"[]\n" * 9]
)
def test_what_is_no_run_is_said_politely(tmp_path, content):
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    for there in (path, tmp_path):
        with pytest.raises(RunFileError, match="not a run") as caught:
            load(there)
        assert str(there) in str(caught.value)


def test_nothing_there_and_nothing_in_it(tmp_path):
    with pytest.raises(RunFileError, match="No such file"):
        load(tmp_path / "none")
    with pytest.raises(RunFileError, match=r"no \.jsonl file"):
        load(tmp_path)


def test_a_newer_format(tmp_path):
    written(tmp_path / "a.jsonl", header=replace(HEADER, version="2.1", ckptcost="9.9"))
    with pytest.raises(RunFileError, match=r"version '2.1'.*'9.9'"):
        load(tmp_path)


def test_garbage_beside_a_run_is_named(tmp_path):
    recorded(tmp_path)
    (tmp_path / "z.jsonl").write_bytes(b"\xff" * 100)
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "empty.jsonl").touch()
    run = load(tmp_path)
    assert sorted((p.part, p.text[:5]) for p in run.problems) == [
        ("empty.jsonl", "empty"),
        ("z.jsonl", "no he"),
    ]


def test_parts_missing_in_the_middle_copied_and_of_other_runs(tmp_path):
    recorded(tmp_path, seconds=120, marks=range(10, 110, 10), part_bytes=12_000)
    files = sorted(tmp_path.iterdir())
    assert len(files) >= 6
    whole = load(tmp_path)
    assert (whole.problems, whole.gaps) == ((), ())
    shutil.copy(files[2], tmp_path / "copy of it.jsonl")
    copied = load(tmp_path)
    assert [str(p) for p in copied.problems] == [
        f"{files[2].name}: a copy of copy of it.jsonl, not counted twice"
    ]
    assert copied.marks == whole.marks
    assert np.array_equal(copied.series("gpu:0 power_w").value, whole.series("gpu:0 power_w").value)
    (tmp_path / "copy of it.jsonl").unlink()
    files[3].unlink()
    files[4].unlink()
    holed = load(tmp_path)
    assert [p.text for p in holed.problems] == [
        "parts 3-4 are not here: its time is a gap".replace("are not", "not")
    ]
    assert len(holed.gaps) == 1
    assert holed.gaps[0].end_s - holed.gaps[0].start_s > 3
    recorded(tmp_path / "other", run_id="b" * 32)
    shutil.copy(tmp_path / "other" / "node1.000.jsonl", tmp_path / "b.jsonl")
    with pytest.raises(RunFileError, match=f"2 runs in here.*{'a' * 32}, {'b' * 32}"):
        load(tmp_path)
    assert load(tmp_path, run="b").id == "b" * 32
    assert load(tmp_path, run="b").problems == ()
    with pytest.raises(RunFileError, match="no run whose id"):
        load(tmp_path, run="c")


def test_a_single_part_is_a_run_of_its_own(tmp_path):
    recorded(tmp_path, seconds=120, marks=range(10, 110, 10), part_bytes=12_000)
    run = load(sorted(tmp_path.iterdir())[3])
    assert run.problems == ()
    assert len(run.series("gpu:0 energy_j").t_s) > 10


def test_hosts_meet_on_the_wall_clock(tmp_path):
    recorded(tmp_path, host="one", start_ns=5 * S, wall_ns=2_000_000_000 * S)
    recorded(tmp_path, host="two", start_ns=987 * S, wall_ns=2_000_000_003 * S)
    run = load(tmp_path)
    assert run.hosts == ("one", "two")
    assert [(round(m.t_s, 6), m.name, m.detail["host"]) for m in run.marks] == [
        (10.0, "begin", "one"),
        (10.0, "end", "one"),
        (13.0, "begin", "two"),
        (13.0, "end", "two"),
    ]
    two = run.series("gpu:0 energy_j", "two")
    assert two.t_s[0] == pytest.approx(3.0)
    assert two.value[0] == pytest.approx(98_700.0)
    assert run.began == 2_000_000_000
    for call in (lambda: run.channels, lambda: run.series("gpu:0 energy_j")):
        with pytest.raises(InputError, match="several hosts"):
            call()
    with pytest.raises(UnknownName, match="did you mean"):
        run.series("gpu:0 energy_j", "ones")


def test_parts_whose_clocks_lie_generations_apart_are_no_run(tmp_path):
    recorded(tmp_path, host="one", start_ns=5 * S, wall_ns=1_000_000_000 * S)
    recorded(tmp_path, host="two", start_ns=5 * S, wall_ns=4_000_000_000 * S)
    with pytest.raises(RunFileError, match="95 years apart"):
        load(tmp_path)


def test_a_host_that_was_started_again(tmp_path):
    written(tmp_path / "n.000.jsonl", *[tick(100 + k, float(k), 1.0) for k in range(5)])
    after = replace(HEADER, part=1, boot="c", pid=9, monotonic_ns=7 * S, wall_ns=1060 * S)
    written(tmp_path / "n.001.jsonl", *[tick(7 + k, float(k), 1.0) for k in range(5)], header=after)
    run = load(tmp_path)
    assert run.series("gpu:0 energy_j").t_s.tolist() == [0, 1, 2, 3, 4, 60, 61, 62, 63, 64]
    assert [(gap.start_s, gap.end_s, gap.why) for gap in run.gaps] == [
        (4.0, 60.0, "the host was started again")
    ]
    assert run.problems == ()


def test_ranks_are_merged_by_time(tmp_path):
    written(
        tmp_path / "n.000.jsonl",
        *[tick(100 + k, float(k), 1.0) for k in range(9)],
        marked(103 * S, "b"),
        marked(105 * S, "d"),
    )
    rank = replace(HEADER, rank=3, pid=4, meters=(), monotonic_ns=101 * S, wall_ns=1001 * S)
    written(
        tmp_path / "n.rank3.jsonl", marked(104 * S, "c", 3), marked(102 * S, "a", 3), header=rank
    )
    run = load(tmp_path)
    assert [(m.name, m.rank, m.t_s) for m in run.marks] == [
        ("a", 3, 2.0),
        ("b", 0, 3.0),
        ("c", 3, 4.0),
        ("d", 0, 5.0),
    ]
    assert (run.problems, run.gaps) == ((), ())
    assert run.channels == heads_of([ONE])[0].channels


def test_two_recorders_at_once_are_said(tmp_path):
    written(tmp_path / "n.000.jsonl", *[tick(100 + k, float(k), 1.0) for k in range(9)])
    other = replace(HEADER, pid=2, part=1, monotonic_ns=105 * S, wall_ns=1005 * S)
    written(
        tmp_path / "n.001.jsonl", *[tick(105.5 + k, 5.5 + k, 1.0) for k in range(9)], header=other
    )
    run = load(tmp_path)
    assert [p.text for p in run.problems] == [
        "processes 1 and 2 recorded at the same time for 3.0 s"
    ]
    energy = run.series("gpu:0 energy_j")
    assert np.array_equal(energy.value, energy.t_s)


def test_meters_that_change_from_part_to_part(tmp_path):
    more = (*ONE.channels, Channel("cpu:0", "energy_j", "rapl"))
    written(tmp_path / "n.000.jsonl", tick(100, 1.0, 2.0))
    head = heads_of([ONE])[0]._replace(channels=more)
    written(
        tmp_path / "n.001.jsonl",
        tick(101, 3.0, 4.0, 5.0),
        header=replace(HEADER, part=1, monotonic_ns=101 * S, meters=(head,)),
    )
    run = load(tmp_path)
    assert [channel.name for channel in run.channels] == [
        "gpu:0 energy_j",
        "gpu:0 power_w",
        "cpu:0 energy_j",
    ]
    assert run.series("gpu:0 energy_j").value.tolist() == [1.0, 3.0]
    assert run.series("cpu:0 energy_j").value.tolist() == [5.0]
    with pytest.raises(UnknownName, match="did you mean"):
        run.series("cpu:0 energy")


def test_a_step_of_the_wall_clock_is_followed(tmp_path):
    pairs = [encode({"k": "clock", "t": t * S, "w": w * S}) for t, w in ((160, 1060), (220, 1150))]
    run = load(written(tmp_path / "a.jsonl", tick(100, 1.0, 2.0), *pairs))
    assert run.wall == ((0.0, 1000.0), (60.0, 1060.0), (120.0, 1150.0))
    assert [run.wall_s(t) for t in (-1.0, 0.0, 30.0, 60.0, 90.0, 120.0, 130.0)] == [
        999,
        1000,
        1030,
        1060,
        1105,
        1150,
        1160,
    ]


def test_series_are_what_was_recorded_whatever_the_order_of_lines(tmp_path):
    recorded(tmp_path, seconds=40, marks=(10, 20, 30))
    path = next(tmp_path.iterdir())
    head, *rest = path.read_bytes().splitlines(keepends=True)
    shuffled = [rest[i] for i in np.random.default_rng(3).permutation(len(rest))]
    before = load(path)
    path.write_bytes(head + b"".join(shuffled))
    after = load(path)
    for name in ("gpu:0 energy_j", "gpu:0 power_w"):
        for one, other in zip(before.series(name), after.series(name), strict=True):
            assert np.array_equal(one, other)
    assert after.gaps == ()
    assert [m.window for m in after.marks] == [m.window for m in before.marks]


def test_lines_are_lines(tmp_path):
    recorded(tmp_path)
    path = next(tmp_path.iterdir())
    kinds = [decode(line)["k"] for line in path.read_bytes().splitlines()]
    assert kinds[0] == "run"
    assert kinds[-1] == "end"
    assert kinds.count("second") == 31
    assert kinds.count("mark") == 2
