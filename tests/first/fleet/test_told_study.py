"""A fleet as a study: its sentences, warnings, gates and what is asked of it, by hand and on a
made-up store with known truth."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import inf, nan
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from fleet_truth import Truth
from fleet_with_truth import fleet_with_truth

from ckptcost.first import api
from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.estimates import Estimate, absent
from ckptcost.first.errors import InputError
from ckptcost.first.fleet import bill_tables, frames
from ckptcost.first.fleet.answer import Findings, FleetQuestion, answer_of, study_of, verdicts_of
from ckptcost.first.fleet.figures import Fleet, fleet_of
from ckptcost.first.fleet.grouping import BY
from ckptcost.first.fleet.node_day import LINES
from ckptcost.first.fleet.savings import savings_of
from ckptcost.first.fleet.tiers import tiers_of
from ckptcost.first.fleet.worst import worst_of
from ckptcost.first.jobs.gates import GateVerdict, gate_of
from ckptcost.first.questions.statements import standing
from ckptcost.first.report.schema_file import schema_text
from ckptcost.first.report.study import Study
from ckptcost.first.scenario import Resolved

DAY, NEXT = "2026-11-02", "2026-11-03"
PRICED = ("cluster.gpu_price=2 USD/GPU-h", "cluster.price_includes_electricity=false")
HOURS_8 = 8 * 3600.0


def told(
    made: Any,
    resolved: Resolved | None = None,
    strange: tuple[str, ...] = (),
    fleet: Fleet | None = None,
    **asked: Any,
) -> Study:
    part = made.part() if hasattr(made, "part") else made
    s = None if resolved is None else resolved.scenario
    fleet = fleet or fleet_of(part, asked.get("by", "job"), s)
    found = Findings(
        fleet, part, savings_of(part, fleet, s), tiers_of(part), worst_of(part, fleet), strange
    )
    return study_of(FleetQuestion("store", resolved=resolved, **asked), found, ())


def said(study: Study, begin: str) -> str:
    (sentence,) = [text for text in study.findings if text.startswith(begin)]
    return sentence


def warned(study: Study) -> dict[str, str]:
    return dict(study.warnings)


# ---- sentences


def test_the_title_and_what_it_is_about(written: Callable[[], Any]) -> None:
    made = written().head().node().window(bytes=2.5e12)
    study = told(made)
    assert (study.kind, study.simulated) == ("fleet", True)
    assert study.title == "A fleet of 1 node, 2026-11-02, made up or simulated"
    assert study.about == [
        "1 job, 1 run, 1 checkpoint of 2.5 TB in all, 0 loads.",
        "Energies are the machines' own: no PUE.",
    ]
    made = (
        written()
        .head(simulated=False)
        .head(host="n2", day=NEXT)
        .node()
        .node(host="n2")
        .window()
        .window(day=NEXT, load=True)
    )
    made.window(day=NEXT, at_s=9)
    study = told(made, standing(Catalog(), None, (), "usa"), jobs=("a", "b"))
    assert (study.title, study.simulated) == ("A fleet of 2 nodes, 2026-11-02 to 2026-11-03", False)
    assert study.about == [
        "1 job, 1 run, 2 checkpoints of 2 GB in all, 1 load. Only a, b.",
        "At United States; kgCO2e is location-based, of the whole life cycle.",
    ]
    assert study.question == {
        "by": "job",
        "since": None,
        "until": None,
        "jobs": ["a", "b"],
        "site": "United States",
    }
    assert told(frames.put_together([frames.pieces()])).title == "A fleet of 0 nodes, no day"
    asked = told(made, by="team", since=DAY, until=NEXT).question
    assert asked == {"by": "team", "since": DAY, "until": NEXT, "jobs": [], "site": None}


def test_what_it_took_in_a_sentence(written: Callable[[], Any]) -> None:
    made = written().head().node().window(own_gpu_s=7200.0, gpu=3.6e6)
    assert said(told(made), "Checkpoints") == "Checkpoints and failures took 2 GPU-hours, 1 kWh."
    here = standing(
        Catalog(),
        None,
        ("site.pue=1.5", "site.grid_location=400 g/kWh", "site.tariff=1 USD/kWh", *PRICED),
        "",
    )
    assert (
        said(told(made, here), "Checkpoints")
        == "Checkpoints and failures took 2 GPU-hours, 1.5 kWh, 5.5 USD, 0.6 kgCO2e."
    )
    dark = written().head().node().window(own_gpu_s=7200.0, gpu=nan)
    assert said(told(dark), "Checkpoints") == "Checkpoints and failures took 2 GPU-hours."
    assert not [
        text
        for text in told(written().head().node().window(own_gpu_s=nan)).findings
        if "took" in text
    ]


def test_goodput_and_failures_in_a_sentence(written: Callable[[], Any]) -> None:
    quiet = (
        written().head(until_ns=written.instant(36_000), over=True).node().window(stall_s=3600.0)
    )
    assert (
        said(told(quiet), "Goodput")
        == "Goodput 90 %. No run failed: a node lasts 9,760 s or longer (95 %)."
    )
    made = written()
    made.head(run="r1", until_ns=made.instant(HOURS_8), exit_code=1.0).node(run="r1").window(
        run="r1", at_s=HOURS_8 - 10, stall_s=10.0
    )
    made.head(run="r2", began_ns=made.instant(HOURS_8), until_ns=made.instant(2 * HOURS_8)).node(
        run="r2"
    )
    # 1 failure in 16 node-hours: Garwood's 16/5.572 and 16/0.02532
    assert (
        said(told(made), "Goodput")
        == "Goodput 100 %. 1 failure: a node lasts 16 h in the mean (2.87 to 632 h)."
    )
    assert said(told(frames.put_together([frames.pieces()])), "No run") == "No run failed."


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (Estimate(0.5, 0.3, 0.9), " More often soon after a start than later."),
        (Estimate(2.0, 1.1, 3.0), " More often the longer a run lasts."),
        (Estimate(0.9, 0.5, 1.0), ""),
        (Estimate(1.1, 1.0, 1.5), ""),
        (Estimate(0.5), ""),
        (absent("NO_SPREAD"), ""),
    ],
)
def test_whether_failures_come_evenly(
    written: Callable[[], Any], shape: Estimate, words: str
) -> None:
    made = written()
    made.head(run="r1", until_ns=made.instant(HOURS_8), exit_code=1.0).node(run="r1").window(
        run="r1", at_s=HOURS_8 - 10, stall_s=10.0
    )
    fleet = fleet_of(made.part(), "job", None)
    fleet = fleet._replace(failures=fleet.failures._replace(shape=shape))
    assert said(told(made, fleet=fleet), "Goodput").endswith(f"h).{words}")


def test_who_was_waited_for_in_a_sentence(written: Callable[[], Any]) -> None:
    made = written().window(wait_gpu_s=7200.0, nodes=5)
    for host, blamed in (
        ("n1", 3600.0),
        ("n2", 1800.0),
        ("n3", 1080.0),
        ("n4", 720.0),
        ("n5", 0.0),
    ):
        made.head(host=host).node(host=host, blamed_gpu_s=blamed, wait_gpu_s=1440.0)
    assert (
        said(told(made), "2 GPU-hours of that")
        == "2 GPU-hours of that are nodes that were done and waited, most for n1 (50 %), n2 (25 %),"
        " n3 (15 %)."
    )
    assert not [
        text for text in told(written().head().node().window()).findings if "waited" in text
    ]


def test_what_is_missing_in_a_sentence(written: Callable[[], Any]) -> None:
    made = written()
    for host in ("n1", "n2"):
        made.head(host=host, nodes=9, node_names="n[1-7]").node(
            host=host, windows=2, own_gpu_s=7200.0, gpu=3.6e6, gpu_j=3.6e6
        )
    made.window(nodes=2).window(at_s=60, nodes=2)
    # seven nodes lack two windows each, at one GPU-hour and 0.5 kWh; equal nodes have no spread
    assert (
        said(told(made), "Missing")
        == "Missing: n3, n4, n5 and 2 more; 2 whose names nobody says: estimated at 14 GPU-hours"
        " and 7 kWh (7 to 7), on a line of its own."
    )
    one = written().head(nodes=2).node(own_gpu_s=3600.0, gpu_j=3.6e6).window()
    assert (
        said(told(one), "Missing")
        == "Missing: 1 whose names nobody says: estimated at 1 GPU-hours and 1 kWh (0 to more), on"
        " a line of its own."
    )
    dark = {f"{line}_j": nan for line in (*LINES, "wait")} | {
        f"{line}_windows": 0 for line in LINES
    }
    unmetered = (
        written()
        .head(nodes=2)
        .node(own_gpu_s=3600.0, **dark)
        .window(gpu=nan, host=nan, slow=nan, storage=nan, wait=nan)
    )
    assert (
        said(told(unmetered), "Missing")
        == "Missing: 1 whose names nobody says: estimated at 1 GPU-hours, on a line of its own."
    )
    assert not [
        text
        for text in told(written().head().node().window()).findings
        if text.startswith("Missing")
    ]


def test_saves_that_were_never_completed(written: Callable[[], Any]) -> None:
    made = written().head().node(windows=2).window().window(failed=True, stall_s=nan)
    assert "1 save began and was never completed." in told(made).findings
    assert (
        "2 saves began and were never completed."
        in told(made.window(failed=True, at_s=60)).findings
    )
    assert not [
        text for text in told(written().head().node().window()).findings if "completed" in text
    ]


# ---- what to take care of


def test_warnings_by_code(written: Callable[[], Any]) -> None:
    plain = written().head().node().window()
    assert list(warned(told(plain))) == ["NO_SITE"]
    assert not warned(
        told(plain, standing(Catalog(), None, ("site.grid_market=1 g/kWh", *PRICED), "usa"))
    )
    made = (
        written()
        .head()
        .node()
        .window()
        .file("x/0", "")
        .file("x/1", "CORRUPT")
        .file("x/2", "FUTURE")
        .file("x/3", "FUTURE")
    )
    study = told(made, strange=("notes.txt",))
    aside = {
        "CORRUPT": "1 file set aside: bytes were changed after they were written.",
        "FUTURE": "2 files set aside: written by a newer ckptcost.",
        "STRAY": "1 file set aside: no file of a store.",
    }
    found = {code: text for code, text in study.warnings if code != "NO_SITE"}
    assert list(found) == list(aside)
    assert all(found[code].startswith(text) for code, text in aside.items())


def test_silent_nodes_are_counted(written: Callable[[], Any]) -> None:
    made = written()
    for host, windows in (("n1", 2), ("n2", 1), ("n3", 1)):
        made.head(host=host).node(host=host, windows=windows)
    made.window(nodes=3).window(at_s=60)
    assert (
        warned(told(made))["SILENT"]
        == "2 nodes recorded without saves that others have: counted as waiting, by estimate."
    )


def test_what_is_not_known_is_named_unless_it_is_little(written: Callable[[], Any]) -> None:
    made = written().head().node(windows=4).window(host=nan)
    for at_s in (60, 120, 180):
        made.window(at_s=at_s, gpu=nan if at_s == 60 else 0.0, host=nan)
    assert (
        warned(told(made))["UNKNOWN"]
        == "Energy not known: 25 % of GPUs waiting for saves, all of hosts waiting for saves."
    )
    for many, unknown in ((100, False), (99, True)):
        some = written().head().node(windows=many).window(gpu=nan)
        for at in range(1, many):
            some.window(at_s=60 * at)
        assert ("UNKNOWN" in warned(told(some))) == unknown


def test_clocks_that_are_not_sure(written: Callable[[], Any]) -> None:
    made = (
        written()
        .head(offset_unsure_s=0.25)
        .head(host="n2", offset_unsure_s=nan)
        .head(host="n3", offset_unsure_s=0.01)
    )
    assert warned(told(made))["CLOCKS"] == "Clocks are known to 0.25 s at worst; table clocks."
    assert "CLOCKS" not in warned(told(written().head(offset_unsure_s=0.1)))


# ---- gates


def judged_on(made: Any, resolved: Resolved | None, *texts: str) -> list[GateVerdict]:
    part = made.part()
    fleet = fleet_of(part, "job", None if resolved is None else resolved.scenario)
    return verdicts_of(fleet, part, [gate_of(text, "budget") for text in texts])


@pytest.mark.parametrize(
    ("text", "value", "met"),
    [
        ("goodput>=0.9", 3590 / 3600, True),
        ("goodput>=0.998", 3590 / 3600, False),
        ("gpu_hours<=2", 7200.0, True),
        ("gpu_hours<2", 7200.0, False),
        ("kwh<=1.5", 5.4e6, True),
        ("kwh<=1.49", 5.4e6, False),
        ("usd<=5.5", 5.5, True),
        ("usd<5.5", 5.5, False),
        ("kgco2e<=0.6", 0.6, True),
        ("market_kgco2e<=0.29", 0.3, False),
        ("embodied_kgco2e<=0.1", 0.1, True),
        ("stall<=10 s", 10.0, True),
        ("stall<9 s", 10.0, False),
        ("saves<=1", 1.0, True),
        ("saves_per_day<=24", 24.0, True),
        ("failures<=0", 0.0, True),
    ],
)
def test_gates_are_judged_on_the_whole(
    written: Callable[[], Any], text: str, value: float, met: bool
) -> None:
    here = standing(
        Catalog(),
        None,
        (
            "site.pue=1.5",
            "site.grid_location=400 g/kWh",
            "site.grid_market=200 g/kWh",
            "site.tariff=1 USD/kWh",
            "cluster.gpu_embodied=50 g/GPU-h",
            *PRICED,
        ),
        "",
    )
    made = written().head(over=True).node().window(own_gpu_s=7200.0, gpu=3.6e6)
    (verdict,) = judged_on(made, here, text)
    assert (verdict.value, verdict.met) == (pytest.approx(value), met)


def test_gates_are_judged_on_values_and_not_on_ends(written: Callable[[], Any]) -> None:
    """A missing node makes ends of everything."""
    here = standing(
        Catalog(),
        None,
        ("site.grid_market=200 g/kWh", "cluster.gpu_embodied=50 g/GPU-h", *PRICED),
        "usa",
    )
    made = written().window(nodes=2, own_gpu_s=9000.0, gpu=9e6)
    for host, hours in (("n1", 1.0), ("n2", 1.5)):
        made.head(host=host, nodes=3).node(host=host, own_gpu_s=3600 * hours, gpu_j=3.6e6 * hours)
    fleet = fleet_of(made.part(), "job", here.scenario)
    (row,) = bill_tables.groups(fleet, placed=True).rows
    for name in ("gpu_hours", "kwh", "usd", "kgco2e", "market_kgco2e", "embodied_kgco2e"):
        assert row[f"{name}_low"] < row[name] < row[f"{name}_high"]
        people = {"gpu_hours": 3600.0, "kwh": 3.6e6}.get(name, 1.0)
        (verdict,) = judged_on(made, here, f"{name}<=1")
        assert verdict.value == pytest.approx(row[name] * people)


def test_what_is_not_known_meets_no_gate(written: Callable[[], Any]) -> None:
    made = written().head().node().window()
    assert [
        verdict.met for verdict in judged_on(made, None, "usd<=1e9", "kgco2e<=1e9", "kwh<=1e9")
    ] == [False, False, True]
    for text in ("wall<1 d", "interval<1 h"):
        with pytest.raises(InputError, match="a fleet has no") as error:
            judged_on(made, None, text)
        assert "failures" in str(error.value)
        assert "wall," not in str(error.value)


# ---- a store with known truth


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Truth]:
    folder = str(tmp_path_factory.mktemp("told") / "fleet")
    return folder, fleet_with_truth(20, 2, folder, saves_per_day=24.0, failures_per_node_day=0.2)


def rows_of(study: Study, name: str) -> list[dict[str, Any]]:
    (table,) = [table for table in study.tables if table.id == name]
    return table.rows


@pytest.mark.parametrize("by", BY)
def test_every_grouping_is_as_it_was_planned(made: tuple[str, Truth], by: str) -> None:
    folder, truth = made
    study = answer_of(FleetQuestion(folder, by))
    *rows, whole = rows_of(study, "groups")
    true = truth.by(by)
    assert [row["name"] for row in rows] == sorted(true)
    for row in (
        rows if by != "day" else []
    ):  # a day's saves near midnight are the one's or the other's
        mine = true[str(row["name"])]
        assert (row["checkpoints"], row["failed_saves"]) == (mine.windows, mine.failed)
        assert (row["bytes"], row["stall_sum"]) == (
            pytest.approx(mine.bytes),
            pytest.approx(mine.stall_s, abs=1e-3),
        )
    assert whole["checkpoints"] == sum(row["checkpoints"] for row in rows) == truth.saves.windows
    assert whole["failures"] == sum(row["failures"] for row in rows) == truth.failures > 0
    assert whole["loads"] == truth.loads.windows
    assert whole["gpu_hours"] == pytest.approx(sum(row["gpu_hours"] for row in rows))
    assert whole["kwh"] == pytest.approx(sum(row["kwh"] for row in rows))
    for name in ("gpu_hours", "kwh"):
        assert all(row[f"{name}_low"] <= row[name] for row in (*rows, whole))
        assert all(
            row[f"{name}_high"] is None or row[name] <= row[f"{name}_high"]
            for row in (*rows, whole)
        )
    lines = {row["id"]: row for row in rows_of(study, "lines")}
    assert lines["gpu_wait"]["gpu_hours"] == pytest.approx(truth.saves.own_gpu_s / 3600)
    assert lines["gpu_wait"]["kwh"] == pytest.approx(truth.saves.gpu_j / 3.6e6)
    assert lines["gpu_wait"]["kwh_high"] == pytest.approx(truth.saves.gpu_high_j / 3.6e6)
    assert lines["host_wait"]["kwh_low"] == pytest.approx(truth.saves.host_low_j / 3.6e6)
    assert (truth.saves.host_high_j, lines["host_wait"]["kwh_high"]) == (inf, None)
    for row in rows_of(study, "failures"):
        (job,) = [job for job in truth.jobs if job.job == row["job"]]
        assert (row["runs"], row["failures"]) == (len(job.runs), job.failures)
        assert (row["ran"], row["lost"], row["stall"]) == (
            pytest.approx(job.exposure_s, abs=0.01),
            pytest.approx(job.lost_s, abs=0.01),
            pytest.approx(job.stall_s, abs=0.01),
        )


def test_its_document_satisfies_the_schema_and_has_every_column(made: tuple[str, Truth]) -> None:
    folder, _ = made
    document = json.loads(
        api.roll_up(folder, "team", site="usa", require=["goodput>=0.99", "usd<=1"]).to_json()
    )
    jsonschema.validate(document, json.loads(schema_text()))
    assert (document["kind"], document["simulated"], document["question"]["by"]) == (
        "fleet",
        True,
        "team",
    )
    assert [gate["met"] for gate in document["requirements"]] == [False, False]
    for table in document["tables"].values():
        assert all(list(row) == list(table["columns"]) for row in table["rows"])
    assert {
        "groups",
        "lines",
        "savings",
        "savings_by_job",
        "failures",
        "causes",
        "waited_for",
        "worst",
        "tiers",
        "days",
        "missing",
        "aside",
        "clocks",
    } <= set(document["tables"])
    assert next(iter(document["tables"])) == "groups"


def test_days_and_jobs_that_are_asked_for(made: tuple[str, Truth]) -> None:
    folder, truth = made
    first, last = sorted(truth.by("day"))
    for asked in (
        FleetQuestion(folder, "day", since=last),
        FleetQuestion(folder, "day", until=first),
        FleetQuestion(folder, "day", since=first, until=first),
    ):
        study = answer_of(asked)
        assert rows_of(study, "groups")[-1]["checkpoints"] < truth.saves.windows
        assert (asked.since or first) in study.title
    job = truth.jobs[1]
    study = answer_of(FleetQuestion(folder, jobs=[job.job]))
    (row,) = rows_of(study, "groups")
    assert (row["name"], row["checkpoints"]) == (job.job, job.saves.windows)
    assert study.about[0].endswith(f"Only {job.job}.")


def test_how_many_of_the_worst(made: tuple[str, Truth]) -> None:
    folder, truth = made
    for top in (0, 2):
        study = answer_of(FleetQuestion(folder, top=top))
        assert (len(rows_of(study, "worst")), len(rows_of(study, "waited_for"))) == (top, top)
    blamed: dict[str, float] = {}
    for job in truth.jobs:
        for host, seconds in job.blamed_gpu_s.items():
            blamed[host] = blamed.get(host, 0.0) + seconds
    worst = sorted(blamed, key=lambda host: -blamed[host])[:2]
    assert [row["host"] for row in rows_of(study, "waited_for")] == worst
    assert [row["gpu_hours"] for row in rows_of(study, "waited_for")] == [
        pytest.approx(blamed[host] / 3600) for host in worst
    ]


def test_progress_is_told(made: tuple[str, Truth]) -> None:
    seen: list[tuple[int, int]] = []
    answer_of(FleetQuestion(made[0]), tell=lambda done, of: seen.append((done, of)))
    assert [done for done, _ in seen] == list(range(1, seen[0][1] + 1))


@pytest.mark.parametrize(
    ("asked", "where", "problem"),
    [
        ({"since": "2026-13-01"}, "since", "is no day"),
        ({"since": "2026-02-30"}, "since", "is no day"),
        ({"until": "20261102"}, "until", "is no day"),
        ({"until": "tomorrow"}, "until", "is no day"),
        ({"since": NEXT, "until": DAY}, "since", "is after 2026-11-02"),
        ({"since": "2027-01-01"}, "", "holds nothing of these days"),
        ({"until": "2020-01-01"}, "", "holds nothing of these days"),
        ({"jobs": ["nobody's"]}, "jobs", "no job named"),
        ({"by": "moon"}, "", "is not grouped by"),
        ({"scheduler": "moon"}, "scheduler", "no scheduler named"),
    ],
)
def test_what_cannot_be_asked(
    made: tuple[str, Truth], asked: dict[str, Any], where: str, problem: str
) -> None:
    with pytest.raises(InputError, match=problem) as error:
        answer_of(FleetQuestion(made[0], **asked))
    assert where in str(error.value)


def test_an_empty_store_is_said_to_be_empty(tmp_path: Path) -> None:
    from ckptcost.first.fleet.store import open_store

    open_store(str(tmp_path / "s"), make=True)
    with pytest.raises(InputError, match="is empty") as error:
        answer_of(FleetQuestion(str(tmp_path / "s")))
    assert "runs pack" in str(error.value)


def test_percentiles_are_not_a_fleets(made: tuple[str, Truth]) -> None:
    with pytest.raises(InputError):
        answer_of(FleetQuestion(made[0]), [gate_of("usd.p95<=1", "budget")])


def test_a_site_alone_prices_no_gpus(made: tuple[str, Truth]) -> None:
    folder, _ = made
    by_site, priced = (standing(Catalog(), None, more, "usa") for more in ((), PRICED))
    (alone,) = [
        row
        for row in rows_of(
            answer_of(FleetQuestion(folder, resolved=by_site, priced=False)), "lines"
        )
        if row["id"] == "gpu_wait"
    ]
    (both,) = [
        row
        for row in rows_of(answer_of(FleetQuestion(folder, resolved=priced)), "lines")
        if row["id"] == "gpu_wait"
    ]
    (none,) = [
        row for row in rows_of(answer_of(FleetQuestion(folder)), "lines") if row["id"] == "gpu_wait"
    ]
    assert (alone["usd"], alone["kwh"]) == (None, both["kwh"])
    assert both["kwh"] == pytest.approx(1.15 * none["kwh"])
    assert both["usd"] == pytest.approx(2.0 * both["gpu_hours"] + 0.161 * both["kwh"], rel=1e-3)


def test_a_site_alone_saves_no_gpu_time(made: tuple[str, Truth]) -> None:
    folder, _ = made
    site = standing(Catalog(), None, (), "usa")
    saved = [
        {row["id"]: row["gpu_hours"] for row in rows_of(answer_of(asked), "savings")}
        for asked in (FleetQuestion(folder), FleetQuestion(folder, resolved=site, priced=False))
    ]
    assert saved[0] == pytest.approx(saved[1])
