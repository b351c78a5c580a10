"""The document of a model: its schema, its hashes, and that no two of its parts disagree."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import subprocess
import sys

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

import ckptcost
from ckptcost.first.errors import InputError
from ckptcost.first.report.canonical import canonical, pretty, sha256, tidy
from ckptcost.first.report.document import Report
from ckptcost.first.report.render import text_of
from ckptcost.first.report.schema_file import FILE, schema_text

SCENARIOS = [
    "bloom-176b",
    "gpt4-scale-2tb",
    "llama31-405b-16k",
    "micron-100k",
    "opt-175b",
    "small-8b",
]
UNITS = {
    "energy": "kWh",
    "emissions_location": "kgCO2e",
    "emissions_market": "kgCO2e",
    "embodied": "kgCO2e",
    "gpu_time_lost": "GPU-h",
    "cost": "USD",
    "water": "L",
    "checkpoints": "1",
}
FIELDS = tuple(name for name in UNITS if name != "checkpoints")


ASKED = {
    "against": lambda: ckptcost.model(tier="nas-hdd", saves=100, against="ddn-exascaler-40"),
    "no grid": lambda: ckptcost.model(tier="nas-hdd", changes=["site.id=industry-average"]),
    "never": lambda: ckptcost.model(
        "micron-100k", tier="mlperf-everpure-exa-30", saves=200, changes={"policy.mode": "sync"}
    ),
    "priced": lambda: ckptcost.model(
        tier=["object-store", "aws-fsx-p2-125", "node-ram"],
        changes=["tier.capacity=100 TB", "cluster.price_includes_electricity=false"],
    ),
    "all kept": lambda: ckptcost.model(
        "small-8b", changes=["policy.keep_last=all", "policy.mode=async"]
    ),
}


class Reports(dict):
    """Each is made when the first test asks for it."""

    def __missing__(self, name: str) -> Report:
        self[name] = ASKED[name]() if name in ASKED else ckptcost.model(name)
        return self[name]


REPORTS = Reports()


@pytest.fixture
def reports() -> Reports:
    return REPORTS


ALL = [*SCENARIOS, *ASKED]


def quantities(report: Report):
    """(path, quantity) of everything that has a unit."""
    s = report.statements[0]
    for where, totals in (
        ("totals", s.totals),
        ("allocated", s.allocated),
        ("one_save.totals", s.one_save.totals),
    ):
        for field in FIELDS:
            yield f"{where}.{field}", getattr(totals, field)
    yield "totals.checkpoints", s.totals.checkpoints
    for where, components in (
        ("components", s.components),
        ("one_save", s.one_save.components),
    ):
        for c in components:
            for field in FIELDS:
                yield f"{where}.{c.id}.{field}", getattr(c, field)


# ---- the schema


def test_the_shipped_schema_is_the_models():
    assert FILE.read_text("utf-8") == schema_text()


def _check_jsonschema(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "check_jsonschema", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_schema_is_a_schema():
    done = _check_jsonschema("--check-metaschema", str(FILE))
    assert done.returncode == 0, done.stdout + done.stderr


def test_real_reports_satisfy_the_schema(reports, tmp_path):
    for name in ALL:
        (tmp_path / f"{name}.json").write_text(reports[name].to_json())
    done = _check_jsonschema(
        "--schemafile", str(FILE), *(str(file) for file in sorted(tmp_path.iterdir()))
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("statements.0.totals.energy.unit", "MWh"),
        ("statements.0.totals.energy.value", "12"),
        ("mood", "fine"),
        ("statements.0.totals.energy.mood", "fine"),
        ("schema_name", "other"),
        ("schema_version", "1.0"),
        ("schema_version", "3.0"),
        ("kind", "report"),
        ("tables.cases.columns.stall_s.unit", "min"),
        ("report_id", "urn:sha256:xyz"),
        ("statements.0.components.0.ledger", "mine"),
        ("statements.0.boundary.embodied_included", True),
        ("generated_at", "yesterday"),
    ],
)
def test_the_schema_refuses(reports, tmp_path, path, value):
    import jsonschema

    document = json.loads(reports["gpt4-scale-2tb"].to_json())
    *parents, last = path.split(".")
    at = document
    for name in parents:
        at = at[int(name)] if isinstance(at, list) else at[name]
    at[last] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, json.loads(schema_text()))


# ---- reproducibility


def test_a_second_run_is_byte_identical(cli):
    assert cli("model", "-f", "json") == cli("model", "-f", "json")


def test_generated_at_is_the_source_date_epoch(cli, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    assert json.loads(cli("model", "-f", "json").out)["generated_at"] == "1970-01-01T00:00:00Z"
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert json.loads(cli("model", "-f", "json").out)["generated_at"] > "2026"


@pytest.mark.parametrize("epoch", ["", "abc", "-5", "1e9", "9" * 30, "²", "12.5", " 7 "])
def test_a_wrong_epoch_is_not_a_traceback(cli, monkeypatch, epoch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
    done = cli("model", "-f", "json")
    assert done.code in (0, 2)
    assert "Traceback" not in done.err


def test_the_date_and_the_command_are_outside_the_hash(cli, monkeypatch, tmp_path):
    one = json.loads(cli("model", "-f", "json").out)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
    cli("model", "-f", "json", "-o", str(tmp_path / "x.json"))
    two = json.loads((tmp_path / "x.json").read_text())
    assert one["generated_at"] != two["generated_at"]
    assert one["tool"]["command"] != two["tool"]["command"]
    assert one["reproducibility"] == two["reproducibility"]
    assert one["report_id"] == two["report_id"]


def test_other_inputs_other_hashes():
    one, two = (
        ckptcost.model(tier="nas-hdd"),
        ckptcost.model(tier="nas-hdd", changes={"site.pue": 1.2}),
    )
    three = ckptcost.model(tier="nas-hdd", changes={"policy.mode": "async"})
    assert len({r.reproducibility.inputs_sha256 for r in (one, two, three)}) == 3
    assert len({r.reproducibility.result_sha256 for r in (one, two, three)}) == 3
    assert len({r.report_id for r in (one, two, three)}) == 3
    assert ckptcost.model(tier="nas-hdd").report_id == one.report_id


def test_the_hash_is_over_rfc_8785(reports):
    """Anybody can recompute it: canonical JSON of the document less the parts that say when, who
    and this."""
    import hashlib

    from ckptcost.first.report.build import NOT_HASHED

    document = json.loads(reports["gpt4-scale-2tb"].to_json())
    kept = {key: value for key, value in document.items() if key not in NOT_HASHED}
    assert (
        hashlib.sha256(rfc8785.dumps(kept)).hexdigest()
        == document["reproducibility"]["result_sha256"]
    )


def test_no_folder_of_the_author_is_told(cli, tmp_path):
    file = tmp_path / "secret-project" / "job.toml"
    file.parent.mkdir()
    file.write_text('extends = "../base.toml"\n')
    (tmp_path / "base.toml").write_text('extends = "small-8b"\n[cluster]\ngpus = 8\n')
    for words in (["-s", str(file)], [f"--scenario={file}"], [f"-s{file}"]):
        done = cli("model", *words, "-f", "json", "-o", str(tmp_path / "out.json"))
        assert done.code == 0, done.err
        text = (tmp_path / "out.json").read_text()
        assert str(tmp_path) not in text
        assert "secret-project" not in text


def test_the_users_files_are_inputs_with_their_hash(cli, tmp_path):
    import hashlib

    (tmp_path / "base.toml").write_text('extends = "small-8b"\n[cluster]\ngpus = 8\n')
    file = tmp_path / "job.toml"
    file.write_text('extends = "./base.toml"\n')
    listed = {
        i["path"]: i
        for i in json.loads(cli("model", "-s", str(file), "-f", "json").out)["reproducibility"][
            "inputs"
        ]
    }
    assert listed["job.toml"] == {
        "path": "job.toml",
        "bytes": file.stat().st_size,
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
    }
    assert "base.toml" in listed, "a file that the scenario extends is an input too"


@pytest.mark.parametrize("key", ["bytes", "sha256"])
def test_what_the_users_files_were_is_in_the_hash_and_their_names_are_not(cli, tmp_path, key):
    from ckptcost.first.report.build import result_hash

    file = tmp_path / "job.toml"
    file.write_text('extends = "small-8b"\n')
    raw = json.loads(cli("model", "-s", str(file), "-f", "json").out)
    said, (told, *_) = raw["reproducibility"]["result_sha256"], raw["reproducibility"]["inputs"]
    assert result_hash(Report.model_validate(raw)) == said
    told["path"] = "other.toml"
    assert result_hash(Report.model_validate(raw)) == said
    told[key] = told[key] * 2
    assert result_hash(Report.model_validate(raw)) != said


def test_the_command_can_be_repeated(cli):
    """What was typed stands there as typed, paths apart."""
    words = [
        "model",
        "--tier",
        "nas-hdd",
        "--set",
        "tier.write_per_capacity=125 MB/s/TiB",
        "--set",
        "tier.capacity=100 TB",
        "--interval",
        "30 min",
        "-f",
        "json",
    ]
    assert json.loads(cli(*words).out)["tool"]["command"] == ["ckptcost", *words]


def test_letters_that_are_no_utf8_on_the_command_line(cli):
    done = cli("model", "--tier", "nas-hdd", "--set", "tier.name=caf\udce9", "-f", "json")
    assert done.code in (0, 2)
    assert "Traceback" not in done.err


# ---- reading back


@pytest.mark.parametrize("name", ALL)
def test_round_trip(reports, name, tmp_path):
    file = tmp_path / "report.json"
    file.write_text(reports[name].to_json())
    again = ckptcost.load_report(str(file))
    assert again == reports[name]
    assert again.to_json() == file.read_text()


def test_a_newer_minor_version_is_read(reports, tmp_path):
    document = json.loads(reports["small-8b"].to_json())
    document |= {"schema_version": "2.9", "mood": "fine"}
    first = document["statements"][0]
    first["components"][0]["colour"] = "blue"
    first["factors"][0]["sources"] = [{"id": "x", "title": "y", "stars": 5}]
    (tmp_path / "r.json").write_text(json.dumps(document))
    [read] = ckptcost.load_report(str(tmp_path / "r.json")).statements
    assert read.components[0].id == "gpu_wait"


def test_rules_judged_by_what_is_no_objective_are_refused(reports, tmp_path):
    document = json.loads(reports["small-8b"].to_json())
    document["statements"][0]["schedule"]["rules_judged_by"] = "tim-"
    (tmp_path / "r.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match="rules_judged_by"):
        ckptcost.load_report(str(tmp_path / "r.json"))


# ---- canonical


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"]), max_size=5), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(json_values)
def test_canonical_is_rfc_8785(value):
    assert canonical(value).encode() == rfc8785.dumps(value)


@pytest.mark.parametrize(
    "value",
    [
        0.0,
        -0.0,
        1e-6,
        1e-7,
        9.999999e-7,
        1e20,
        1e21,
        123456789012345680000.0,
        2.0**53,
        2.0**53 + 2,
        -1.5e300,
        5e-324,
        1.7976931348623157e308,
        0.1 + 0.2,
        1e16,
        333333333.3333333,
    ],
)
def test_canonical_numbers(value):
    assert canonical(value).encode() == rfc8785.dumps(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_tidy_is_close_and_settled(value):
    rounded = tidy(value)
    assert rounded is not None
    assert rounded == pytest.approx(value, rel=1e-11, abs=0) or abs(value) < 1e-300
    assert tidy(rounded) == rounded
    assert math.copysign(1, rounded) == 1 or rounded != 0, "no minus zero"


def test_tidy_of_what_is_no_number():
    assert tidy(float("nan")) is tidy(float("inf")) is tidy(float("-inf")) is None


def test_pretty_refuses_nan():
    with pytest.raises(ValueError, match=r"not JSON compliant|Out of range"):
        pretty({"a": float("nan")})


def test_hash_is_of_the_canonical_text():
    assert sha256({"b": 1.0, "a": "é"}) == sha256({"a": "é", "b": 1})


# ---- arithmetic of the document


@pytest.mark.parametrize("name", ALL)
def test_totals_are_sums_of_components(reports, name):
    [s] = reports[name].statements
    for totals, components, ledger in (
        (s.totals, s.components, "marginal"),
        (s.allocated, s.components, "allocated"),
        (s.one_save.totals, s.one_save.components, "marginal"),
    ):
        for field in FIELDS:
            lines = [getattr(c, field) for c in components if c.ledger == ledger]
            known = [q.value for q in lines if q.value is not None]
            total = getattr(totals, field)
            if known:
                assert total.value == pytest.approx(math.fsum(known), rel=1e-9, abs=1e-12), field
            else:
                assert total.value is None, f"{field}: nothing is known and yet there is a total"
            assert total.excludes == [
                c.id for c in components if c.ledger == ledger and getattr(c, field).value is None
            ], field


@pytest.mark.parametrize("name", ALL)
def test_every_quantity(reports, name):
    [s] = reports[name].statements
    ids = {f.id for f in s.factors}
    assert len({tuple(each) for each in s.rests}) == len(s.rests)
    for path, q in quantities(reports[name]):
        assert q.unit == UNITS[path.rsplit(".", 1)[1]], path
        assert (q.low is None) == (q.high is None) == (q.interval is None), path
        if q.low is not None:
            assert q.value is not None, path
            assert q.low <= q.value <= q.high, path
        assert set(s.rests_of(q)) <= ids, path
        if q.value:
            assert q.value > 0, path
            assert s.rests_of(q) or path == "totals.checkpoints", f"{path} rests on nothing"
        else:
            assert q.low in (None, 0.0) or q.value == 0, path


@pytest.mark.parametrize("name", ALL)
def test_nothing_unknown_is_zero(reports, name):
    """Where a price, a grid factor or an energy is not known, what needs it is null."""
    [s] = reports[name].statements
    known = {f.id for f in s.factors}
    for c in [*s.components, *s.one_save.components]:
        if "site.grid_location" not in known:
            assert not c.emissions_location.value, c.id
            assert c.emissions_location.value is None or c.energy.value == 0, c.id
        if "site.grid_market" not in known:
            assert c.emissions_market.value is None or c.energy.value == 0, c.id
        if c.energy.value is None:
            assert c.emissions_location.value is None, c.id
    if "site.grid_market" not in known:
        assert s.totals.emissions_market.value is None
        assert all(row["run_market_kgco2e"] is None for row in reports[name].rows())


@pytest.mark.parametrize("name", ALL)
def test_every_row(reports, name):
    report = reports[name]
    for row in report.rows():
        for column in [each for each in row if each.endswith("_low")]:
            value = row[column.removesuffix("_low")]
            low, high = row[column], row[column.removesuffix("_low") + "_high"]
            if low is None:
                assert high is None, (row["case"], column)
            else:
                assert low <= value <= (math.inf if high is None else high), (row["case"], column)
        numbers = [each for each in row.values() if isinstance(each, float)]
        assert all(math.isfinite(each) for each in numbers)
    named = [row["case"] for row in report.rows()]
    if "avoidable" in report.tables:
        named.append("against")
    assert [each.name for each in report.scenarios] == named
    for each in report.scenarios:
        assert {f.id for f in each.factors}.isdisjoint(each.dropped)


@pytest.mark.parametrize("name", ALL)
def test_the_first_row_is_the_bill(reports, name):
    row, [s] = reports[name].rows()[0], reports[name].statements
    for column, q in (
        ("run_energy_kwh", s.totals.energy),
        ("run_cost_usd", s.totals.cost),
        ("run_gpu_hours", s.totals.gpu_time_lost),
        ("run_location_kgco2e", s.totals.emissions_location),
        ("run_embodied_kgco2e", s.totals.embodied),
        ("run_water_l", s.totals.water),
        ("save_energy_kwh", s.one_save.totals.energy),
        ("save_cost_usd", s.one_save.totals.cost),
        ("saves", s.totals.checkpoints),
    ):
        told = tuple(row.get(column + end) for end in ("", "_low", "_high"))
        assert told == (q.value, q.low, q.high), column
    for column in ("stall_s", "goodput", "wall_s", "failures"):
        assert row[column] == getattr(s.schedule, column)
    for what in ("energy", "cost"):
        assert row[f"{what}_without"].split() == getattr(s.totals, what).excludes
    assert row["emissions_without"].split() == s.totals.emissions_location.excludes


@pytest.mark.parametrize("name", ALL)
def test_the_bills_rows_are_the_statements_lines(reports, name):
    [s] = reports[name].statements
    lines = {line["id"]: line for line in reports[name].rows("bill")}
    for c in [*s.marginal(), s.totals]:
        line = lines.pop(getattr(c, "id", "total"), None)
        told = (c.energy.value, c.gpu_time_lost.value, c.cost.value, c.emissions_location.value)
        if line is None:
            assert set(told[:3]) == {0.0}, "only what adds nothing has no line"
        else:
            assert tuple(line[name] for name in ("kwh", "gpu_hours", "usd", "kgco2e")) == told
    assert lines == {}


@pytest.mark.parametrize("name", ALL)
def test_prices(reports, name):
    for c in reports[name].statements[0].components:
        if c.price_qty is not None:
            assert c.price_unit == "GPU-h"
            assert c.price_qty * c.unit_price == pytest.approx(
                c.cost.value, rel=1e-9
            ) or not _electricity_in_the_price(reports[name])


def _electricity_in_the_price(report: Report) -> bool:
    return report.statements[0].choices.get("cluster.price_includes_electricity", True) is not False


@pytest.mark.parametrize("name", ALL)
def test_factors_assumptions_and_sources(reports, name):
    [s] = reports[name].statements
    ids = [f.id for f in s.factors]
    assert len(set(ids)) == len(ids)
    assert ids == sorted(ids)
    assumed = [f for f in s.factors if f.origin == "default"]
    assert [(a.value, a.unit, a.low, a.high) for a in s.assumptions] == [
        (f.value, f.unit, f.low, f.high) for f in assumed
    ]
    for f in s.factors:
        if f.low is not None:
            assert f.low <= f.value <= f.high, f.id
        for source in f.sources:
            assert source.title
            assert source.title != source.id, f"{f.id}: {source.id} is not in the bibliography"
        if f.origin not in ("user", "default"):
            assert f.sources, f.id
        assert f.name
        assert f.set_by


@pytest.mark.parametrize("name", ALL)
def test_every_id_a_text_names_exists(reports, name):
    [s] = reports[name].statements
    ids = {c.id for c in s.components}
    for _, q in quantities(reports[name]):
        assert set(q.excludes) <= ids
    labels = {c.label for c in s.components}
    assert set(s.boundary.included) <= labels
    assert len(ids) == len(s.components)


def test_a_second_tiers_second_row_can_be_rebuilt(reports):
    """Scenarios carry what differs from the first case, and nothing that does not."""
    report = reports["gpt4-scale-2tb"]
    first = {f.id: f for f in report.statements[0].factors}
    assert len(report.scenarios) > 1
    for each in report.scenarios[1:]:
        assert each.factors
        assert all(first.get(f.id) != f for f in each.factors)
        assert set(each.dropped) <= set(first)
    assert report.scenarios[0].factors == report.scenarios[0].dropped == []
    assert all(each.by_difference for each in report.scenarios)


# ---- views


@pytest.mark.parametrize("name", ALL)
def test_csv_is_the_json(reports, name):
    rows = list(csv.DictReader(io.StringIO(text_of(reports[name], "csv"))))
    for cells, row in zip(rows, reports[name].rows(), strict=True):
        assert list(cells) == list(row)
        for column, value in row.items():
            told = cells[column]
            assert (value or "") == told if isinstance(value, str | None) else float(told) == value


def _read(cell: str) -> float | None:
    """A number as the text prints it, back."""
    if cell == "-":
        return None
    scale = {"M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}.get(cell[-1], 1.0)
    return float(cell.rstrip("MGTP").replace(",", "")) * scale


@pytest.mark.parametrize("name", ["gpt4-scale-2tb", "small-8b", "bloom-176b"])
def test_the_texts_numbers_are_the_jsons(reports, name):
    report = reports[name]
    lines = text_of(report, "text", full=True).splitlines()
    for c in report.statements[0].components:
        found = [line for line in lines if line.startswith(c.label + " ") and "  " in line]
        if c.ledger != "marginal" or not found:
            continue
        cells = found[0][len(c.label) :].split()
        for cell, q in zip(
            (cells[0], *cells[2:]),
            (c.energy, c.gpu_time_lost, c.cost, c.emissions_location),
            strict=True,
        ):
            assert _read(cell) == (None if q.value is None else pytest.approx(q.value, rel=6e-3)), (
                c.id,
                cell,
            )
    start = next(n for n, line in enumerate(lines) if line.startswith("one save"))
    tiers = {row["tier"]: row for row in report.rows()}
    assert {line.split()[0] for line in lines[start + 1 : start + 1 + len(tiers)]} == set(tiers)
    for line in lines[start + 1 : start + 1 + len(tiers)]:
        tier, _, _, stall, unit, gpu_hours, kwh, *_ = line.split()
        v = tiers[tier]
        assert _read(stall) == pytest.approx(
            v["stall_s"] / {"s": 1, "h": 3600, "d": 86400}[unit], rel=6e-3
        )
        assert (_read(gpu_hours), _read(kwh)) == (
            pytest.approx(v["save_gpu_hours"], rel=6e-3),
            pytest.approx(v["save_energy_kwh"], rel=6e-3),
        )


@pytest.mark.parametrize("name", ALL)
def test_markdown_tables_are_well_formed(reports, name):
    report = reports[name]
    lines = text_of(report, "md").splitlines()
    assert lines[0].startswith("# ")
    table: list[str] = []
    tables = 0
    for line in [*lines, ""]:
        if line.startswith("|"):
            table.append(line)
        elif table:
            widths = {len(re.findall(r"(?<!\\)\|", row)) for row in table}
            assert len(widths) == 1, table[0]
            assert re.fullmatch(r"\|( :?-+:? \|)+", table[1]), table[1]
            tables, table = tables + 1, []
    shown = [each for each in report.tables.values() if each.shown and each.rows]
    assert tables == len(shown) + 1 == 5, "the inputs stand below"
    assert "nan" not in "\n".join(lines)


def test_markdown_of_names_with_marks(tmp_path):
    file = tmp_path / "job.toml"
    file.write_text('name = "a | b # c <script>"\nextends = "small-8b"\n')
    out = text_of(ckptcost.model(str(file)), "md")
    assert out.splitlines()[0].startswith("# a ")
    assert "\n# c" not in out, "a line feed in a name opened a heading of its own"


def test_to_frame_is_tidy(reports):
    frame = reports["gpt4-scale-2tb"].to_frame()
    assert len(frame) == 12
    assert frame.columns.is_unique
    assert list(frame["tier"]) == [row["tier"] for row in reports["gpt4-scale-2tb"].rows()]
    assert frame["stall_s"].dtype == float
    assert frame["run_market_kgco2e"].isna().all()
    assert frame["run_market_kgco2e"].dtype == float
    assert (frame["run_energy_kwh_low"] <= frame["run_energy_kwh"]).all()
    unbounded = frame["run_energy_kwh_high"].isna()
    assert (unbounded | (frame["run_energy_kwh"] <= frame["run_energy_kwh_high"])).all()
    assert not unbounded.all()
    assert frame.set_index(["tier", "saves"]).index.is_unique


def test_an_unknown_stays_unknown_in_a_sweep(reports):
    """Arrays too: a sum of nothing known is not zero."""
    frame = ckptcost.sweep(["tier=nas-hdd", "saves=1,10,100"])
    assert frame["run_market_kgco2e"].isna().all()
    other = ckptcost.sweep(["tier=nas-hdd", "saves=1,10,100"], changes=["site.id=industry-average"])
    for column in ("save_location_kgco2e", "saves_location_kgco2e", "run_location_kgco2e"):
        assert other[column].isna().all(), column
    assert (other["run_energy_kwh"] > 0).all()
