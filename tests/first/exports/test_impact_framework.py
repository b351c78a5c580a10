"""The manifest, read back by hand and by js-yaml, and computed by the real if-run."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import statements
from hypothesis import given, settings
from statements import START, document, export_text, statement, with_fields

from ckptcost.first.errors import InputError
from ckptcost.first.exports import impact_framework
from ckptcost.first.exports.formats import exported
from ckptcost.first.report.document import Report
from ckptcost.first.report.statement import Series, Statement

NODE = Path(__file__).parents[3] / ".consumers" / "node" / "node_modules"
NASTY = (
    'a, "b": {c} # d - &e *f !g |h\n\ttab \\ %i @j `k` é \U0001f600 \u2028 \x9f <b>x</b> =1+1 ${y}'
    " yes ~ null: 1"
)
TO_JSON = (
    "const"
    ' y=require(process.argv[1]+"/js-yaml");console.log(JSON.stringify(y.load(require("fs").readFileSync(0,"utf8"))))'
)
Tree = Mapping[str, Mapping[str, list[dict[str, Any]]]]
"""rows by statement and component"""


def text_of(document: Report) -> str:
    return "".join(str(piece) for piece in exported(document, "impact-framework")["manifest.yaml"])


def little_parser(text: str) -> Tree:
    """Only what this file has: groups, children and one row a line."""
    tree: dict[str, dict[str, list[dict[str, Any]]]] = {}
    group, child = "", ""
    for line in text.split("\n  children:\n", 1)[1].splitlines():
        if found := re.fullmatch(r'    (".*"):', line):
            group = json.loads(found[1])
            tree[group] = {}
        elif found := re.fullmatch(r'        (".*"):', line):
            child = json.loads(found[1])
            tree[group][child] = []
        elif found := re.fullmatch(r"            - \{(.*)\}", line):
            pairs = dict(pair.split(": ", 1) for pair in found[1].split(", "))
            tree[group][child].append({key: json.loads(value) for key, value in pairs.items()})
    return tree


def computed(tree: Tree) -> Tree:
    """What if-run does with the rows."""
    return {
        group: {
            child: [
                {**row, "carbon-operational": row["energy"] * row["grid/carbon-intensity"]}
                for row in rows
            ]
            for child, rows in children.items()
        }
        for group, children in tree.items()
    }


def near(what: str, told: float | None, known: float | None) -> None:
    if told is None or known is None:
        assert told is known, f"{what}: {told} in the manifest, {known} in the statement"
    else:
        assert math.isclose(told, known, rel_tol=1e-9, abs_tol=1e-300), (
            f"{what}: {told} in the manifest, {known} in the statement"
        )


def computable(s: Statement) -> set[str]:
    dated = set(s.series.component if s.series else ())
    unknown = (
        {
            line
            for line, g, kwh in zip(
                s.series.component, s.series.grid_kgco2e_per_kwh, s.series.energy_kwh, strict=True
            )
            if g is None or kwh is None
        }
        if s.series
        else set()
    )
    return {c.id for c in s.marginal() if c.energy.value is not None and c.id in dated - unknown}


def check(document: Report, tree: Tree) -> None:
    """Rows, components and totals of the manifest are the statement's, in grams; raises where they
    are not."""
    wanted = {f"run {s.subject.run_id}": s for s in document.statements if computable(s)}
    assert set(tree) == set(wanted)
    for key, s in wanted.items():
        assert set(tree[key]) == computable(s)
        sums: dict[str, list[float]] = {
            "energy": [],
            "carbon-operational": [],
            "carbon-embodied": [],
        }
        for child, rows in tree[key].items():
            line = next(c for c in s.components if c.id == child)
            check_rows(child, rows, s.series)
            for name, quantity, unit in (
                ("energy", line.energy, 1.0),
                ("carbon-operational", line.emissions_location, 1e3),
                ("carbon-embodied", line.embodied, 1e3),
            ):
                values = [row[name] for row in rows if name in row]
                near(
                    f"{child} {name}",
                    math.fsum(values) if values else None,
                    None if quantity.value is None else quantity.value * unit,
                )
                sums[name] += values
        for name, quantity, unit in (
            ("energy", s.totals.energy, 1.0),
            ("carbon-operational", s.totals.emissions_location, 1e3),
            ("carbon-embodied", s.totals.embodied, 1e3),
        ):
            left_out = [
                getattr(
                    c,
                    {
                        "energy": "energy",
                        "carbon-operational": "emissions_location",
                        "carbon-embodied": "embodied",
                    }[name],
                ).value
                for c in s.marginal()
                if c.id not in tree[key]
            ]
            known = [each for each in left_out if each]
            if quantity.value is not None:
                near(
                    f"total {name}",
                    math.fsum([*sums[name], *(each * unit for each in known)]),
                    quantity.value * unit,
                )


def check_rows(child: str, rows: list[dict[str, Any]], series: Series | None) -> None:
    """Each row against the rows of series that begin within it."""
    assert series is not None
    known = [
        (statements.seconds(start), kwh, kg, embodied)
        for start, line, kwh, kg, embodied in zip(
            series.start,
            series.component,
            series.energy_kwh,
            series.emissions_location_kgco2e,
            series.embodied_kgco2e,
            strict=True,
        )
        if line == child
    ]
    for row in rows:
        assert row["duration"] >= 1.0
        begin = statements.seconds(row["timestamp"])
        inside = [each for each in known if begin <= each[0] < begin + row["duration"]]
        near(
            f"{child} at {row['timestamp']} energy",
            row["energy"],
            math.fsum(each[1] or 0.0 for each in inside),
        )
        near(
            f"{child} at {row['timestamp']} carbon",
            row["carbon-operational"],
            math.fsum((each[2] or 0.0) * 1e3 for each in inside),
        )
        if "carbon-embodied" in row:
            near(
                f"{child} at {row['timestamp']} embodied",
                row["carbon-embodied"],
                math.fsum((each[3] or 0.0) * 1e3 for each in inside),
            )


def changed(
    s: Statement, keep: Callable[[int], bool] = lambda n: True, **columns: Callable[[int, Any], Any]
) -> Statement:
    """With rows of the series left out or replaced; components and totals follow the rows."""
    assert s.series is not None
    rows = [n for n in range(len(s.series.start)) if keep(n)]
    table = {
        name: [getattr(s.series, name)[n] for n in rows]
        for name in Series.model_fields
        if name != "width_s"
    }
    for name, make in columns.items():
        table[name] = [make(n, getattr(s.series, name)[n]) for n in rows]
    table["emissions_location_kgco2e"] = [
        None if kwh is None or g is None else kwh * g
        for kwh, g in zip(table["energy_kwh"], table["grid_kgco2e_per_kwh"], strict=True)
    ]
    made = []
    for c in s.components:
        at = [i for i, line in enumerate(table["component"]) if line == c.id]
        new = {
            what: (
                getattr(c, what).model_copy(update={"value": total([table[column][i] for i in at])})
            )
            for what, column in (
                ("energy", "energy_kwh"),
                ("emissions_location", "emissions_location_kgco2e"),
                ("embodied", "embodied_kgco2e"),
            )
            if at
        }
        made.append(c.model_copy(update=new))
    sums = {
        what: (
            getattr(s.totals, what).model_copy(
                update={
                    "value": total(
                        [getattr(c, what).value for c in made if c.ledger == "marginal"], skip=True
                    )
                }
            )
        )
        for what in ("energy", "emissions_location", "embodied")
    }
    series = Series(width_s=s.series.width_s, **table)
    return s.model_copy(
        update={"series": series, "components": made, "totals": s.totals.model_copy(update=sums)}
    )


def total(values: list[float | None], skip: bool = False) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) if known and (skip or len(known) == len(values)) else None


NASTY_LINES = tuple(
    (line, NASTY + label, cause, edge) for line, label, cause, edge in statements.LINES
)
GOOD: dict[str, Callable[[], Report]] = {
    "as made": statements.document,
    "nasty names": lambda: statements.document(statements.statement(name=NASTY, lines=NASTY_LINES)),
    "alternatives of different lengths": lambda: statements.document(
        statements.statement(run_id="123456", rows=3),
        statements.statement(run_id="7", rows=5, grid=0.05, begin=statements.START + 86400.0),
    ),
    "jobs of a fleet": lambda: statements.document(
        statements.statement(run_id="123456", rows=3, kind="mixed"),
        statements.statement(
            run_id="7", rows=40, grid=0.05, begin=statements.START + 86000.25, kind="measured"
        ),
    ),
    "some embodied unknown": lambda: statements.document(
        statements.statement(gpu_hours=(3000.0, None, None, 160.5, 0.0))
    ),
    "no embodied known": lambda: statements.document(statements.statement(gpu_hours=(None,) * 5)),
    "rows missing in one component": lambda: statements.document(
        changed(statements.statement(), keep=lambda n: n not in (0, 6, 7))
    ),
    "tiny and huge": lambda: statements.document(
        statements.statement((1e-9, 1e12, None, 1e-300, 0.0))
    ),
    "a first row below a second": lambda: statements.document(
        statements.statement(begin=statements.START + 3599.75)
    ),
    "every row below a second": lambda: statements.document(
        statements.statement(begin=statements.START, width_s=0.25, rows=10)
    ),
    "one row": lambda: statements.document(statements.statement(rows=1)),
    "no checkpoint saved": lambda: statements.document(statements.statement(checkpoints=0.0)),
    "a grid of 0": lambda: statements.document(statements.statement(grid=0.0)),
}


@pytest.mark.parametrize("name", GOOD)
def test_what_is_written_is_what_is_stated(name: str) -> None:
    document = GOOD[name]()
    check(document, computed(little_parser(text_of(document))))


@settings(max_examples=60)
@given(statements.documents(dated=True))
def test_any_statement(document: Report) -> None:
    if not any(computable(s) for s in document.statements):
        with pytest.raises(InputError, match=r"no component has dates|cannot leave open"):
            text_of(document)
        return
    check(document, computed(little_parser(text_of(document))))


MUTATIONS: dict[str, Callable[[str], str]] = {
    "x1000 in one energy": lambda text: re.sub(
        r"energy: ([\d.e+-]+), grid",
        lambda m: f"energy: {float(m[1]) * 1000!r}, grid",
        text,
        count=1,
    ),
    "market for location": lambda text: re.sub(
        r"carbon-intensity: [\d.e+-]+", f"carbon-intensity: {statements.MARKET * 1000}", text
    ),
    "kilograms for grams": lambda text: re.sub(
        r"carbon-intensity: ([\d.e+-]+)",
        lambda m: f"carbon-intensity: {float(m[1]) / 1000!r}",
        text,
    ),
    "dropped child": lambda text: re.sub(r'        "host_wait":\n(?:          .*\n)+', "", text),
    "dropped row": lambda text: re.sub(r"            - \{.*\}\n", "", text, count=1),
    "embodied dropped": lambda text: re.sub(r", carbon-embodied: [\d.e+-]+\}", "}", text),
    "embodied twice": lambda text: re.sub(
        r"carbon-embodied: ([\d.e+-]+)\}", lambda m: f"carbon-embodied: {float(m[1]) * 2!r}}}", text
    ),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_planted_slip_is_found(name: str) -> None:
    document = statements.document()
    text = text_of(document)
    wrong = MUTATIONS[name](text)
    assert wrong != text
    with pytest.raises(AssertionError, match=r"manifest|gpu_wait"):
        check(document, computed(little_parser(wrong)))


def test_unknown_is_left_out_and_said() -> None:
    s = changed(
        statements.statement(), grid_kgco2e_per_kwh=lambda n, g: None if n == 12 else g
    )  # a row of redone_work
    text = text_of(statements.document(s))
    assert set(little_parser(text)[f"run {s.subject.run_id}"]) == {
        "gpu_wait",
        "host_wait",
        "retention",
    }
    assert (
        "left out: storage_write (energy unknown), redone_work (210.125 kWh, grid factor unknown)"
        in text
    )
    with pytest.raises(InputError, match=r"emissions of .* unknown.*site.grid_location"):
        text_of(statements.document(statements.statement(grid=None)))


def test_zero_is_written_where_it_has_rows() -> None:
    rows = little_parser(text_of(statements.document()))["run 3449a33ac9b5dd46-nas-hdd-100"][
        "retention"
    ]
    assert [row["energy"] for row in rows] == [0.0] * 5


def test_a_statement_below_a_second_is_left_out() -> None:
    short = statements.statement(begin=statements.START, width_s=0.25, rows=2, run_id="short")
    with pytest.raises(InputError, match="shorter than 1 s"):
        text_of(statements.document(short))
    text = text_of(statements.document(short, statements.statement()))
    assert set(little_parser(text)) == {"run 3449a33ac9b5dd46-nas-hdd-100"}
    assert "retention (shorter than 1 s in all)" in text


def test_the_standing_share_and_market_figures_are_not_there() -> None:
    s = statements.statement()
    tree = text_of(statements.document(s)).split("\ntree:")[1]
    assert '"standing"' not in tree
    assert "market" not in tree.lower()
    assert "METERS WERE SIMULATED" in text_of(
        statements.document(s.model_copy(update={"simulated": True}))
    )


# the real consumer


@pytest.fixture(scope="module")
def node() -> Path:
    if not (NODE / ".bin" / "if-run").exists() or shutil.which("node") is None:
        pytest.skip("no if-run: make consumers")
    return NODE


@pytest.fixture(scope="module")
def offline() -> list[str]:
    """A network of its own without one, where the system allows that."""
    words = ["unshare", "-rn"]
    works = (
        shutil.which("unshare")
        and subprocess.run([*words, "true"], check=False, capture_output=True).returncode == 0
    )
    return words if works else []


def loaded(node: Path, text: str) -> dict[str, Any]:
    said = subprocess.run(
        ["node", "-e", TO_JSON, str(node)],
        input=text,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    found: dict[str, Any] = json.loads(said.stdout)
    return found


@pytest.fixture
def if_run(node: Path, offline: list[str], tmp_path: Path) -> Callable[[str], dict[str, Any]]:
    """if-run ends with 0 even where it fails; its output says how it went. The name needs its
    .yaml: the path may have dots."""

    def run(text: str) -> dict[str, Any]:
        (tmp_path / "m.yaml").write_text(text, encoding="utf-8")
        words = [*offline, str(node / ".bin" / "if-run"), "-m", "m.yaml", "-o", "out.yaml"]
        said = subprocess.run(
            words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
        )
        assert said.returncode == 0, said.stderr
        return loaded(node, (tmp_path / "out.yaml").read_text(encoding="utf-8"))

    return run


def outputs(told: Mapping[str, Any]) -> Tree:
    return {
        group: {child: node["outputs"] for child, node in groups["children"].items()}
        for group, groups in told["tree"]["children"].items()
        if "children" in groups
    }


def check_sums(document: Report, told: Mapping[str, Any]) -> None:
    """What if-run summed up itself: each component, each statement, and the whole where there is
    only one statement."""
    tree = told["tree"]
    for s in (s for s in document.statements if computable(s)):
        group = tree["children"][f"run {s.subject.run_id}"]
        lines = [c for c in s.marginal() if c.id in computable(s)]
        embodied = all(c.embodied.value is not None for c in lines)
        for c in lines:
            said = group["children"][c.id]["aggregated"]
            near(f"{c.id} energy", said["energy"], c.energy.value)
            near(
                f"{c.id} carbon",
                said["carbon-operational"],
                (c.emissions_location.value or 0.0) * 1e3,
            )
            near(
                f"{c.id} both",
                said["carbon"],
                ((c.emissions_location.value or 0.0) + (c.embodied.value or 0.0)) * 1e3,
            )
        kg = math.fsum(c.emissions_location.value or 0.0 for c in lines)
        made = math.fsum(c.embodied.value or 0.0 for c in lines)
        for said in [
            group["aggregated"],
            *([tree["aggregated"]] if len(document.statements) == 1 else []),
        ]:
            near("energy", said["energy"], math.fsum(c.energy.value or 0.0 for c in lines))
            near("operational", said["carbon-operational"], kg * 1e3)
            near("carbon", said["carbon"], (kg + made) * 1e3)
            assert ("carbon-embodied" in said) == (
                embodied if len(document.statements) == 1 else "carbon-embodied" in said
            )
            saves = 0.0 if adds_up(document) else s.totals.checkpoints.value or 0.0
            near(
                "sci",
                said.get("sci-per-checkpoint"),
                (kg + made) * 1e3 / saves if embodied and saves else None,
            )
        near("our own total", group["statement"].get("energy"), s.totals.energy.value)
    if adds_up(document):
        for name, what, unit in (
            ("energy", "energy", 1.0),
            ("carbon-operational", "emissions_location", 1e3),
        ):
            known = [getattr(s.totals, what).value for s in document.statements]
            near(f"all {name}", tree["aggregated"][name], math.fsum(known) * unit)
    elif len(document.statements) > 1:
        assert tree["aggregated"] == {}


def adds_up(document: Report) -> bool:
    return len(document.statements) > 1 and "modelled" not in {s.kind for s in document.statements}


@pytest.mark.parametrize(
    "name", [name for name in GOOD if name not in ("one row", "as made", "a grid of 0")]
)
def test_if_run_computes_our_carbon(name: str, if_run: Callable[[str], dict[str, Any]]) -> None:
    document = GOOD[name]()
    told = if_run(text_of(document))
    assert told["execution"]["status"] == "success", told["execution"]
    check(document, outputs(told))
    check_sums(document, told)


@pytest.mark.parametrize("name", ["x1000 in one energy", "market for location", "dropped child"])
def test_a_slip_shows_in_what_if_run_computes(
    name: str, if_run: Callable[[str], dict[str, Any]]
) -> None:
    document = statements.document()
    told = if_run(MUTATIONS[name](text_of(document)))
    assert told["execution"]["status"] == "success"  # if-run itself sees nothing wrong
    with pytest.raises(AssertionError, match=r"manifest|gpu_wait"):
        check(document, outputs(told))
    with pytest.raises((AssertionError, KeyError)):
        check_sums(document, told)


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (
            lambda text: re.sub(r"energy: [\d.e+-]+, grid", 'energy: "much", grid', text, count=1),
            "energy",
        ),
        (
            lambda text: re.sub(r"grid/carbon-intensity: [\d.e+-]+, ", "", text, count=1),
            "carbon-intensity",
        ),
        (lambda text: text.replace("name: ", "nome: ", 1), "name"),
        (lambda text: text.replace("duration: 1800.0", "duration: 0.5", 1), "duration"),
    ],
    ids=["text for a number", "no intensity", "no name", "half a second"],
)
def test_if_run_refuses_a_broken_manifest(
    broken: Callable[[str], str], says: str, if_run: Callable[[str], dict[str, Any]]
) -> None:
    text = text_of(statements.document())
    assert broken(text) != text
    told = if_run(broken(text))
    assert told["execution"]["status"] == "fail"
    assert says in told["execution"]["error"]


def test_why_all_children_have_the_same_times(if_run: Callable[[str], dict[str, Any]]) -> None:
    """A first child with a row less: if-run succeeds, and has lost the last hour of every other
    child."""
    document = statements.document()
    text = text_of(document)
    gone = re.search(r'(            - \{.*\}\n)        "host_wait"', text)
    assert gone is not None
    told = if_run(text.replace(gone[1], "", 1))
    assert told["execution"]["status"] == "success"
    group = told["tree"]["children"]["run 3449a33ac9b5dd46-nas-hdd-100"]
    children = math.fsum(child["aggregated"]["energy"] for child in group["children"].values())
    assert group["aggregated"]["energy"] < children * 0.95


def test_any_text_is_the_same_text_to_a_reader_of_yaml(node: Path) -> None:
    document = GOOD["nasty names"]()
    group = loaded(node, text_of(document))["tree"]["children"]["run 3449a33ac9b5dd46-nas-hdd-100"]
    assert group["statement"]["name"] == NASTY
    assert group["children"]["gpu_wait"]["component"]["label"] == NASTY + "GPUs waiting for saves"
    assert group["statement"]["factors"][0]["sources"][0]["licence"] == "CC BY 4.0"


def test_thousands_of_rows_are_aligned() -> None:
    text = text_of(
        statements.document().model_copy(update={"statements": [statements.statement(rows=2_500)]})
    )
    assert len(re.findall(r"^            - \{", text, flags=re.MULTILINE)) == 10_000
    assert text.count('timestamp: "2026-10-01T00:30:00Z"') == 4


ZERO = (0.0,) * 5


def test_there_is_no_score_where_a_row_is_below_zero():
    s = statement((100.0, 50.0, 0.0, 0.0, 0.0), gpu_hours=(1.0, 1.0, 0.0, 0.0, 0.0), costs=ZERO)
    assert "sci-per-checkpoint" in export_text(s, "impact-framework")
    energies = [-1.0 if n == 0 else e for n, e in enumerate(s.series.energy_kwh)]
    told = export_text(
        with_fields(s, series=s.series.model_copy(update={"energy_kwh": energies})),
        "impact-framework",
    )
    assert "sci-per-checkpoint" not in told


def test_a_rows_intensity_is_weighted_with_energy_where_rows_are_merged():
    s = statement(
        (10.0, 0.0, 0.0, 0.0, 0.0),
        gpu_hours=(1.0, 0.0, 0.0, 0.0, 0.0),
        costs=ZERO,
        rows=2,
        begin=START + 3599.5,
    )
    rows = s.series.model_copy(
        update={
            "energy_kwh": [1.0, 3.0],
            "grid_kgco2e_per_kwh": [0.8, 0.4],
            "emissions_location_kgco2e": [0.8, 1.2],
        }
    )
    s = with_fields(s, series=rows)
    group = impact_framework._group(s, *impact_framework._computable(s), None)
    (child,) = group.children
    assert (child.energy_kwh, child.grid_g_per_kwh) == ([4.0], [pytest.approx(500.0)])
    assert group.duration_s == [3600.5]


def test_the_manifest_says_method_and_memo_item_of_every_statement():
    told = export_text(document(statement(), statement(run_id="b")), "impact-framework")
    assert told.count('method-version: "2026.1"') == 2
    assert told.count('inventory-treatment: "memo_item"') == 2


def manifest(s):
    return export_text(s, "impact-framework")


def test_the_manifest_leaves_out_the_other_ledger_and_rows_that_are_not_known():
    s = statement((100.0, 50.0, 0.0, 0.0, 0.0), gpu_hours=(1.0, 1.0, 0.0, 0.0, 0.0))
    assert '"standing"' not in manifest(s)
    assert "standing" not in manifest(s)
    energies = [None if n == 0 else e for n, e in enumerate(s.series.energy_kwh)]
    told = manifest(with_fields(s, series=s.series.model_copy(update={"energy_kwh": energies})))
    assert "gpu_wait (energy of some rows unknown)" in told
    assert '        "gpu_wait":' not in told
    grids = [None if n == 0 else g for n, g in enumerate(s.series.grid_kgco2e_per_kwh)]
    assert "gpu_wait (100.0 kWh, grid factor unknown)" in manifest(
        with_fields(s, series=s.series.model_copy(update={"grid_kgco2e_per_kwh": grids}))
    )


def test_the_manifest_has_our_ends_and_licences():
    told = manifest(statement((100.0, 0.0, 0.0, 0.0, 0.0), gpu_hours=(1.0, 0.0, 0.0, 0.0, 0.0)))
    assert "energy: 100.0, energy-low: 90.0, energy-high: 110.0" in " ".join(
        re.sub(r"(\d)0{6,}\d\b", r"\1", told).split()
    )
    assert 'licence: "CC BY 4.0"' in told


def test_hours_in_which_a_component_has_no_row_have_the_grid_of_that_hour():
    s = statement(
        (100.0, 50.0, 0.0, 0.0, 0.0),
        gpu_hours=(1.0, 1.0, 0.0, 0.0, 0.0),
        costs=ZERO,
        rows=3,
        begin=START,
    )
    keep = [
        n
        for n, (c, start) in enumerate(zip(s.series.component, s.series.start, strict=True))
        if c == "gpu_wait" or start.endswith("T01:00:00Z")
    ]
    names = [name for name in type(s.series).model_fields if name != "width_s"]
    back = keep[::-1]  # rows in any order
    rows = s.series.model_copy(
        update={name: [getattr(s.series, name)[n] for n in back] for name in names}
    )
    host = manifest(with_fields(s, series=rows)).split('"host_wait":\n', 1)[1]
    found = re.findall(
        r'timestamp: "([^"]*)", duration: [\d.]+, energy: ([\d.]+), grid/carbon-intensity:'
        r" ([\d.]+)",
        host,
    )
    assert [start for start, _, _ in found] == [
        "2026-10-01T00:00:00Z",
        "2026-10-01T01:00:00Z",
        "2026-10-01T02:00:00Z",
    ]
    assert [float(kwh) > 0 for _, kwh, _ in found] == [False, True, False]
    grid = [383.5 * (1.0 + 0.1 * math.sin(n)) for n in range(3)]
    assert [float(g) for _, _, g in found] == pytest.approx(grid)
