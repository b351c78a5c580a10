"""`ckptcost sweep`."""

from __future__ import annotations

import csv
import io
import itertools
import json

import pytest
from whole_json import whole

from ckptcost.first.report.rows import COLUMNS

TIERS = "tier=nas-hdd,generic-pfs,ddn-exascaler-20,ddn-exascaler-40"


def rows(ran, form: str = "csv") -> list[dict]:
    assert (ran.code, ran.err) == (0, "")
    return list(csv.DictReader(io.StringIO(ran.out))) if form == "csv" else whole(ran.out)["rows"]


def rows_of_model(ran) -> list[dict]:
    assert (ran.code, ran.err) == (0, "")
    found = whole(ran.out)["tables"]["cases"]["rows"]
    assert all(COLUMNS.keys() <= row.keys() for row in found)
    return found


def test_tiers_by_counts(cli):
    found = rows(cli("sweep", "--over", TIERS, "--over", "saves=10:200:10", "-f", "csv"))
    assert len(found) == 4 * 20
    assert [(row["tier"], float(row["saves"])) for row in found] == list(
        itertools.product(TIERS.split("=")[1].split(","), range(10, 201, 10))
    )
    assert {row["tier"]: float(row["stall_s"]) for row in found} == {
        "nas-hdd": 10_005.0,
        "generic-pfs": 1_005.0,
        "ddn-exascaler-20": 105.0,
        "ddn-exascaler-40": 55.0,
    }


def test_csv_json_and_frame_hold_the_same(cli):
    import ckptcost

    overs = [TIERS, "saves=1,10,1000", "cluster.gpus=64:4096:*8"]
    words = [word for over in overs for word in ("--over", over)]
    table, records = (
        rows(cli("sweep", *words, "-f", "csv")),
        rows(cli("sweep", *words, "-f", "json"), "json"),
    )
    frame = ckptcost.sweep(overs)
    assert len(table) == len(records) == len(frame) == 4 * 3 * 3
    assert list(table[0]) == list(records[0]) == list(frame.columns)
    for cells, record, (_, line) in zip(table, records, frame.iterrows(), strict=True):
        for name, value in record.items():
            if isinstance(value, str):
                assert cells[name] == value == line[name]
            elif value is None:
                assert cells[name] == ""
                assert line[name] != line[name]
            else:
                assert float(cells[name]) == value
                assert line[name] == pytest.approx(value, rel=1e-11)


@pytest.mark.parametrize("scenario", ["gpt4-scale-2tb", "small-8b", "micron-100k", "bloom-176b"])
def test_a_sweep_and_a_model_agree(cli, scenario):
    """Two outputs never disagree: the arrays of a sweep give what one scenario at a time gives."""
    tiers, counts = ["generic-pfs", "object-store", "local-nvme-4xgen5"], ["3", "50", "700"]
    swept = rows(
        cli(
            "sweep",
            "-s",
            scenario,
            "--over",
            "tier=" + ",".join(tiers),
            "--over",
            "saves=" + ",".join(counts),
            "-f",
            "json",
        ),
        "json",
    )
    one = cli(
        "model",
        "-s",
        scenario,
        *(w for t in tiers for w in ("--tier", t)),
        *(w for n in counts for w in ("--saves", n)),
        "-f",
        "json",
    )
    cases = rows_of_model(one)
    assert len(swept) == len(cases) == 9
    for row, case in zip(swept, cases, strict=True):
        assert row["tier"] == case["tier"]
        for name in COLUMNS:
            value = case[name]
            assert row[name] == (
                None if value is None else pytest.approx(value, rel=1e-11, abs=0)
            ), (case["case"], name)


@pytest.mark.parametrize(
    ("axis", "setting"),
    [
        ("cluster.gpus=2048", "cluster.gpus=2048"),
        ("tier.write=3 GB/s", "tier.write=3 GB/s"),
        ("site.pue=1.4", "site.pue=1.4"),
        ("site.grid=SWE", "site.grid=SWE"),
        ("cluster.gpu_train=500 W", "cluster.gpu_train=500 W"),
        ("cluster.stall_fraction=0.3", "cluster.stall_fraction=0.3"),
        ("cluster.host_train=1 kW", "cluster.host_train=1 kW"),
        ("checkpoint.size=7 TB", "checkpoint.size=7 TB"),
        ("run.work=10 days", "run.work=10 days"),
        ("failures.rate=10 /1000 node-days", "failures.rate=10 /1000 node-days"),
        ("policy.mode=async", "policy.mode=async"),
        ("cluster.accelerator=a100-sxm-80", "cluster.accelerator=a100-sxm-80"),
        ("policy.keep_last=7", "policy.keep_last=7"),
        ("interval=1 h", "policy.interval=1 h"),
        ("checkpoint.model=llama31-8b", "checkpoint.model=llama31-8b"),
        ("site=germany", "site.id=germany"),
        ("cluster=h100-64", "cluster.id=h100-64"),
        ("tier.write_energy=50 J/GB", "tier.write_energy=50 J/GB"),
        ("tier.read=1 GB/s", "tier.read=1 GB/s"),
        ("tier.active_power=9 kW", "tier.active_power=9 kW"),
        ("policy.slowdown=0.02", "policy.slowdown=0.02"),
        ("cluster.gpus_per_node=4", "cluster.gpus_per_node=4"),
        ("tier.node_write=1 GB/s", "tier.node_write=1 GB/s"),
        ("cluster.gpu_stall=100 W", "cluster.gpu_stall=100 W"),
        ("cluster.host_stall=100 W", "cluster.host_stall=100 W"),
        ("site.grid_location=50 g/kWh", "site.grid_location=50 g/kWh"),
        ("policy.steps=10", "policy.steps=10"),
        ("tier.capacity=9 TB", "tier.capacity=9 TB"),
        ("tier.storage_price=1 USD/GB-month", "tier.storage_price=1 USD/GB-month"),
    ],
    ids=lambda text: text.replace(" ", "_"),
)
def test_every_axis_does_what_its_setting_does(cli, axis, setting):
    """An axis of one value is `--set` of that value, to the last digit."""
    base = ["--set", "policy.step=30 s"] if "steps" in axis else []
    swept = rows(
        cli("sweep", "--over", "tier=nas-hdd", "--over", axis, *base, "-f", "json"), "json"
    )
    one = rows_of_model(
        cli(
            "model",
            "--tier",
            "nas-hdd",
            "--set",
            setting,
            *base,
            *([] if "interval" in axis or "steps" in axis else ["--saves", "100"]),
            "-f",
            "json",
        )
    )
    assert len(swept) == len(one) == 1
    for name in COLUMNS:
        value = one[0][name]
        assert swept[0][name] == (
            None if value is None else pytest.approx(value, rel=1e-11, abs=0)
        ), name


def test_axes_may_come_in_any_order(cli):
    def key(row):
        return row["tier"], float(row["saves"]), float(row["cluster.gpus"])

    axes = ["tier=nas-hdd,generic-pfs", "saves=10,20", "cluster.gpus=64,128"]
    found = [
        sorted(
            rows(cli("sweep", *(w for over in order for w in ("--over", over)), "-f", "csv")),
            key=key,
        )
        for order in itertools.permutations(axes)
    ]
    reference = found[0]
    for other in found[1:]:
        assert [dict(sorted(row.items())) for row in other] == [
            dict(sorted(row.items())) for row in reference
        ]


def test_rows_run_in_the_order_of_the_axes(cli):
    """The last axis runs fastest, whatever its kind: a reader counts on it."""
    found = rows(
        cli("sweep", "--over", "saves=10,20", "--over", "tier=nas-hdd,generic-pfs", "-f", "csv")
    )
    assert [(float(row["saves"]), row["tier"]) for row in found] == [
        (10, "nas-hdd"),
        (10, "generic-pfs"),
        (20, "nas-hdd"),
        (20, "generic-pfs"),
    ]


def test_ends_of_a_range_belong_to_it(cli):
    def values(text: str) -> list[float]:
        return [
            float(row["saves"])
            for row in rows(
                cli("sweep", "--over", "tier=nas-hdd", "--over", f"saves={text}", "-f", "csv")
            )
        ]

    assert values("10:200:10") == list(range(10, 201, 10))
    assert values("1:1024:*2") == [2.0**n for n in range(11)]
    assert values("1:2:0.1") == pytest.approx([1 + n / 10 for n in range(11)])
    assert values("5:5:1") == [5.0]
    assert values("1:10:4") == [1.0, 5.0, 9.0]
    assert values("1,7:9:1,100") == [1.0, 7.0, 8.0, 9.0, 100.0]


def test_an_axis_with_units_says_them(cli):
    """A column without a unit in its name holds what? Base units: so the name must say so, or the
    head of the file."""
    done = json.loads(
        cli("sweep", "--over", "tier=nas-hdd", "--over", "interval=30 min,1 h", "-f", "json").out
    )
    assert [row["interval_s"] for row in done["rows"]] == [1800.0, 3600.0]
    axes = {axis["name"]: axis for axis in done["axes"]}
    assert set(done["rows"][0]) <= {
        *axes,
        *done["columns"],
    }, "an axis column that the document does not explain"
    assert axes["interval"] == {
        "name": "interval",
        "input": "policy.interval",
        "unit": "s",
        "meaning": "training time between saves",
    }


def test_the_default_sweep_needs_no_tier(cli):
    """What the preset compares is what a sweep over something else runs over, or the message says
    to name a tier."""
    done = cli("sweep", "--over", "saves=10,20", "-f", "csv")
    if done.code == 0:
        assert {row["tier"] for row in csv.DictReader(io.StringIO(done.out))} == {
            "nas-hdd",
            "generic-pfs",
            "ddn-exascaler-20",
            "ddn-exascaler-40",
        }
    else:
        assert done.code == 2
        assert "tier=" in done.err or "tier.id" in done.err, done.err


@pytest.mark.parametrize("over", ["gpus=1:3000:1", "saves=1:2001:1"])
def test_a_table_of_thousands_is_refused_for_people_not_for_programs(cli, over):
    done = cli("sweep", "--over", "tier=nas-hdd", "--over", over)
    assert done.code == 2
    assert "-f csv" in done.err
    assert len(rows(cli("sweep", "--over", "tier=nas-hdd", "--over", over, "-f", "csv"))) in (
        2001,
        3000,
    )


def test_chunks_do_not_show(cli):
    """More rows than one chunk: the same numbers as a small sweep at the seam."""
    big = rows(cli("sweep", "--over", "tier=nas-hdd", "--over", "saves=1:8200:1", "-f", "csv"))
    assert len(big) == 8200
    small = rows(cli("sweep", "--over", "tier=nas-hdd", "--over", "saves=8190:8195:1", "-f", "csv"))
    assert big[8189:8195] == small


def test_text_is_80_columns_wide(cli):
    for overs in (
        [TIERS, "saves=10:200:10"],
        [
            "tier=mlperf-everpure-exa-30-405b,aws-fsx-intelligent-tiering",
            "cluster.gpus=1024:131072:*2",
        ],
        [TIERS, "policy.mode=sync,async", "saves=1:1000000:*10"],
    ):
        done = cli("sweep", *(w for over in overs for w in ("--over", over)))
        assert (done.code, done.err) == (0, "")
        assert [line for line in done.out.splitlines() if len(line) > 80] == []


def test_text_says_the_axes_exactly(cli):
    """Two rows of a sweep must not look the same."""
    done = cli("sweep", "--over", "tier=nas-hdd", "--over", "cluster.gpus=1024,1025,1026")
    assert done.code == 0
    firsts = [tuple(line.split()[:2]) for line in done.out.splitlines()[1:4]]
    assert len(set(firsts)) == 3, firsts


@pytest.mark.parametrize(
    "axis",
    [
        "interval=30 min,2 h",
        "tier.write=1 GB/s,30 GB/s",
        "failures.rate=1 /1000 node-days,6 /1000 node-days",
        "cluster.gpu_price=2 USD/GPU-h,3 USD/GPU-h",
    ],
)
def test_text_says_the_axes_with_their_units(cli, axis):
    done = cli("sweep", "--over", "tier=nas-hdd", "--over", axis)
    assert done.code == 0
    unit = {
        "interval": ("s", "min", "h"),
        "tier.write": ("GB/s",),
        "failures.rate": ("/1000 node-days",),
        "cluster.gpu_price": ("USD/GPU-h",),
    }[axis.split("=")[0]]
    head, *body = [line.split("  ") for line in done.out.splitlines()]
    plain = " ".join(" ".join(cells) for cells in [head, *body])
    assert any(word in plain.replace("10,000 s", "").replace("h lost", "") for word in unit), (
        done.out
    )


def test_markdown(cli, unmetered_slow_tiers):
    lines = cli("sweep", "--over", TIERS, "--over", "saves=10,20", "-f", "md").out.splitlines()
    assert len(lines) == 2 + 8 + 2
    assert {line.count("|") for line in lines[:10]} == {lines[0].count("|")}
    assert lines[11].startswith("_left out because unknown: ")


def test_json_is_json_without_rows_too(cli, tmp_path):
    target = tmp_path / "sweep.json"
    assert (
        cli(
            "sweep",
            "--over",
            "tier=nas-hdd",
            "--over",
            "saves=1:3:1",
            "-f",
            "json",
            "-o",
            str(target),
        ).code
        == 0
    )
    document = json.loads(target.read_text())
    assert document["schema_name"] == "ckptcost.sweep"
    assert [axis["name"] for axis in document["axes"]] == ["tier", "saves"]
    assert set(document["rows"][0]) - {"tier"} <= set(document["columns"])


def test_infinite_results_are_empty_not_numbers(cli):
    done = cli(
        "sweep",
        "--over",
        "tier=nas-hdd",
        "--over",
        "saves=1",
        "--over",
        "cluster.gpus=1e6,1e9",
        "-f",
        "csv",
    )
    assert (done.code, done.err) == (0, "")
    assert "inf" not in done.out
    assert "nan" not in done.out
    assert json.loads(
        cli(
            "sweep",
            "--over",
            "tier=nas-hdd",
            "--over",
            "saves=1",
            "--over",
            "cluster.gpus=1e6,1e9",
            "-f",
            "json",
        ).out
    )["rows"]


def test_a_sweep_over_the_objective(cli):
    found = rows(
        cli(
            "sweep",
            "--over",
            "tier=nas-hdd",
            "--over",
            "policy.optimal=time,energy,usd,carbon",
            "-f",
            "csv",
        )
    )
    assert len({row["interval_s"] for row in found}) > 1
    model = whole(cli("model", "--tier", "nas-hdd", "--saves", "100", "-f", "json").out)
    best = model["statements"][0]["schedule"]["best_interval_s"]
    assert [float(row["interval_s"]) for row in found] == pytest.approx(
        [best[name] for name in ("time", "energy", "usd", "carbon")], rel=1e-11
    )


def test_an_optimum_that_does_not_exist_is_refused_in_a_sweep_as_in_a_model(cli):
    flags = ["--set", "policy.optimal=time"]
    assert (
        cli("model", "--tier", "nas-hdd", *flags, "--set", "failures.rate=0 /1000 node-days").code
        == 2
    )
    done = cli(
        "sweep",
        "--over",
        "tier=nas-hdd",
        *flags,
        "--over",
        "failures.rate=0 /1000 node-days,1 /1000 node-days",
    )
    assert (done.code, done.out) == (2, ""), done
