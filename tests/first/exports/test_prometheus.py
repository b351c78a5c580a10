"""The textfile: every figure and no other in it, and node_exporter serves them."""

from __future__ import annotations

import math
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from prometheus_tools import get, program, samples, serving
from statements import (
    START,
    document,
    documents,
    export_text,
    factor,
    quantity,
    statement,
    with_fields,
    with_priced_standing,
)

from ckptcost.first.errors import InputError
from ckptcost.first.exports import metric_names
from ckptcost.first.exports.formats import exported
from ckptcost.first.report.document import Report
from ckptcost.first.report.parts import Component
from ckptcost.first.report.statement import Statement

MEANING = {
    "energy": ("ckptcost_energy_joules_total", 3.6e6),
    "gpu_time_lost": ("ckptcost_gpu_lost_seconds_total", 3600.0),
    "cost": ("ckptcost_cost_usd_total", 1.0),
    "water": ("ckptcost_water_litres_total", 1.0),
    "embodied": ("ckptcost_embodied_emissions_grams_total", 1000.0),
    "emissions_location": ("ckptcost_emissions_location_grams_total", 1000.0),
    "emissions_market": ("ckptcost_emissions_market_grams_total", 1000.0),
}
NASTY = 'a,"b"\n\\=1+1 <script>alert("é日")</script> \\n {x="y"} # EOF'


def text_of(wanted: Report) -> str:
    (pieces,) = exported(wanted, "prometheus").values()
    return "".join(pieces)  # type: ignore[arg-type]


def close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-300)


def check(text: str, wanted: Report) -> None:
    """Raises unless the text says of every component what the statement does, and of none more."""
    found = {(name, labels): values[0][1] for (name, labels), values in samples(text).items()}
    counters = {MEANING[what][0] for what in MEANING}
    expected = 0
    for run in wanted.statements:
        for what, (name, scale) in MEANING.items():
            theirs = {
                dict(labels)["component"]: value
                for (series, labels), value in found.items()
                if series == name and ("run_id", run.subject.run_id) in labels
            }
            ours = {
                c.id: getattr(c, what).value
                for c in run.marginal()
                if getattr(c, what).value is not None
            }
            assert theirs.keys() == ours.keys(), what
            assert all(
                close(value / scale, ours[component]) for component, value in theirs.items()
            ), what
            total = getattr(run.totals, what).value
            assert (
                total is None if not theirs else close(math.fsum(theirs.values()) / scale, total)
            ), what
            expected += len(ours)
        mine = [
            value
            for (series, labels), value in found.items()
            if series == "ckptcost_checkpoints_total" and ("run_id", run.subject.run_id) in labels
        ]
        assert mine == [run.totals.checkpoints.value]
    assert sum(name in counters for name, _ in found) == expected


@pytest.fixture
def sample() -> Report:
    simulated = statement(name=NASTY, run_id="b", kind="measured").model_copy(
        update={"simulated": True}
    )
    return document(statement(), simulated, statement(run_id="undated", dated=False, grid=None))


def test_round_trip(sample):
    check(text_of(sample), sample)


@settings(max_examples=60)
@given(documents())
def test_any_statement(drawn):
    check(text_of(drawn), drawn)


def thousandfold(text: str) -> str:
    return "\n".join(
        line + "e3" if line.startswith("ckptcost_energy_joules_total") else line
        for line in text.split("\n")
    )


def without_a_series(text: str) -> str:
    line = next(line for line in text.split("\n") if line.startswith("ckptcost_cost_usd_total"))
    return text.replace(line + "\n", "")


def swapped(text: str) -> str:
    other = {"location": "market", "market": "location"}
    return re.sub(r"(?<=ckptcost_emissions_)(location|market)", lambda found: other[found[1]], text)


def invented(text: str) -> str:
    return text + 'ckptcost_energy_joules_total{run_id="b",component="storage_write"} 0\n'


@pytest.mark.parametrize("slip", [thousandfold, without_a_series, swapped, invented])
def test_a_slip_is_seen(sample, slip: Callable[[str], str]):
    text = text_of(sample)
    with pytest.raises(AssertionError):
        check(slip(text), sample)


def of(text: str, name: str) -> list[dict[str, str]]:
    return [dict(labels) for series, labels in samples(text) if series == name]


def test_unknown_has_no_series_and_is_named():
    text = text_of(document())
    assert "storage_write" not in {
        each["component"] for each in of(text, "ckptcost_energy_joules_total")
    }
    assert {
        each["quantity"]
        for each in of(text, "ckptcost_component_unknown")
        if each["component"] == "storage_write"
    } == {
        "energy",
        "emissions_location",
        "emissions_market",
        "cost",
        "water",
    }


def test_zeros_of_a_sum_that_is_not_known_are_not_written():
    """Whoever sums the components would read nought where nobody knows."""
    known = statement(energies=(None, 0.0, None, 0.0, 0.0))
    energy = known.totals.energy.model_copy(update={"value": None, "low": None, "high": None})
    totals = known.totals.model_copy(update={"energy": energy})
    text = exported(document(known.model_copy(update={"totals": totals})), "prometheus")
    told = "".join(text["ckptcost.prom"])
    assert "ckptcost_energy_joules_total{" not in told
    assert 'ckptcost_component_unknown{run="GPT-4 scale' in told


def test_nought_is_written():
    values = {
        dict(labels)["component"]: each[0][1]
        for (name, labels), each in samples(text_of(document())).items()
        if name == "ckptcost_energy_joules_total"
    }
    assert values["retention"] == 0.0


def test_what_the_statement_is(sample):
    about = {each["run_id"]: each for each in of(text_of(sample), "ckptcost_statement_info")}
    assert about["b"]["run"] == NASTY
    assert [
        about["b"][key]
        for key in ("simulated", "kind", "inventory_treatment", "method_version", "grid_zone")
    ] == [
        "true",
        "measured",
        "memo_item",
        "2026.1",
        "USA",
    ]
    assert about["undated"]["simulated"] == "false"
    (build,) = of(text_of(sample), "ckptcost_build_info")
    assert build["result_sha256"] == sample.reproducibility.result_sha256


def test_factors_have_source_and_licence(sample):
    grid = next(
        each
        for each in of(text_of(sample), "ckptcost_factor")
        if each["factor"] == "site.grid_location"
    )
    assert (grid["text"], grid["unit"], grid["source"], grid["licence"]) == (
        "383.5 g/kWh",
        "kgco2e_per_j",
        "Yearly electricity data",
        "CC BY 4.0",
    )


def test_ranges(sample):
    found = {
        (name, labels): values[0][1] for (name, labels), values in samples(text_of(sample)).items()
    }
    run = sample.statements[0]
    for family, what in (
        ("ckptcost_run_energy_{}_joules", run.totals.energy),
        ("ckptcost_energy_{}_joules", run.components[0].energy),
    ):
        for end in ("low", "high"):
            values = [
                v
                for (name, labels), v in found.items()
                if name == family.format(end) and ("run_id", run.subject.run_id) in labels
            ]
            assert any(close(value, getattr(what, end) * 3.6e6) for value in values)


def test_what_stands_there_anyway_is_apart(sample):
    text = text_of(sample)
    assert "standing" not in {
        each["component"] for each in of(text, "ckptcost_energy_joules_total")
    }
    assert {each["component"] for each in of(text, "ckptcost_standing_energy_joules_total")} == {
        "standing"
    }


def test_no_family_has_location_and_market_in_it():
    """So that a sum over one, whatever its labels, never adds the two."""
    run = statement()
    carbon = {
        what: getattr(run.components[0], what)
        for what in ("emissions_location", "emissions_market")
    }
    lines = [
        line.model_copy(update=carbon) if line.ledger == "allocated" else line
        for line in run.components
    ]
    found = samples(text_of(document(run.model_copy(update={"components": lines}))))
    families = {
        name.removeprefix("ckptcost_")
        for name, _ in found
        if re.match(r"ckptcost_(run_|standing_)?emissions_", name)
    }
    whose = ("emissions_{}_grams_total", "emissions_{}_low_grams", "emissions_{}_high_grams")
    whose += (
        "run_emissions_{}_low_grams",
        "run_emissions_{}_high_grams",
        "standing_emissions_{}_grams_total",
    )
    assert families == {name.format(method) for name in whose for method in ("location", "market")}
    assert "method" not in {key for _, labels in found for key, _ in labels}


def test_no_label_is_of_one_checkpoint(sample):
    """Series do not multiply with the length of a run."""
    longer = document(statement(rows=50, checkpoints=10_000.0))
    assert len(samples(text_of(longer))) == len(samples(text_of(document())))


def test_the_same_run_twice_is_refused():
    """Neither promtool nor node_exporter does: one of the two would be dropped without a word."""
    with pytest.raises(InputError, match="twice the same series"):
        text_of(document(statement(), statement()))


def rounding_noise(run: Statement) -> Statement:
    def nudged(line: Component) -> Component:
        value = line.energy.value
        return line.model_copy(
            update={
                "energy": quantity("energy", math.nextafter(value, math.inf) if value else value)
            }
        )

    return run.model_copy(update={"components": [nudged(line) for line in run.components]})


def test_noise_in_the_last_bits_is_not_written():
    """Some readers compare the text of a number."""
    lines = [
        [
            line
            for line in text_of(document(run)).splitlines()
            if line.startswith("ckptcost_energy_joules_total")
        ]
        for run in (statement(), rounding_noise(statement()))
    ]
    assert lines[0] == lines[1]


def promtool(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program("promtool"), "check", "metrics"],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_promtool(sample):
    done = promtool(text_of(sample))
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize(
    "slip",
    [
        lambda text: text.replace("ckptcost_energy_joules_total", "ckptcost_energy_kWh"),
        lambda text: text.replace('run="GPT', "run=GPT"),
        lambda text: text.replace("# HELP ckptcost_cost_usd_total", "# HELP other"),
    ],
    ids=["kWh", "no quote", "no help"],
)
def test_promtool_refuses(sample, slip):
    assert promtool(slip(text_of(sample))).returncode != 0


def scraped(folder: Path) -> str:
    command = [
        program("prometheus-node-exporter"),
        "--web.listen-address=127.0.0.1:{port}",
        "--collector.disable-defaults",
        "--collector.textfile",
        f"--collector.textfile.directory={folder}",
        "--web.disable-exporter-metrics",
    ]
    with serving(command, "/") as url:
        return get(f"{url}/metrics")


def test_node_exporter_serves_it(sample, tmp_path):
    text = text_of(sample)
    (tmp_path / "ckptcost.prom").write_text(text)
    answer = scraped(tmp_path)
    assert "\nnode_textfile_scrape_error 0\n" in answer
    # its own metrics are beside ours; where a family's series differ in their labels it fills in
    # empty ones
    every = samples(answer).items()
    served = {
        (name, frozenset((key, value) for key, value in labels if value)): at
        for (name, labels), at in every
        if name.startswith("ckptcost_")
    }
    assert served == samples(text)
    check("\n".join(line for line in answer.split("\n") if "ckptcost_" in line), sample)
    for line in text.splitlines():
        if line.startswith("# "):
            assert line in answer


@pytest.mark.parametrize(
    "slip",
    [
        lambda text: text.replace("} 1\n", "} 1 1790812800000\n", 1),
        lambda text: text.replace("} 1\n", "} one\n", 1),
        lambda text: text.replace(
            "# TYPE ckptcost_cost_usd_total counter", "# TYPE ckptcost_cost_usd_total money"
        ),
    ],
    ids=["with a timestamp", "no number", "no such type"],
)
def test_node_exporter_refuses(sample, tmp_path, slip):
    (tmp_path / "ckptcost.prom").write_text(slip(text_of(sample)))
    answer = scraped(tmp_path)
    assert "\nnode_textfile_scrape_error 1\n" in answer


ZERO = (0.0,) * 5


def test_prometheus_zero_is_told_and_unknown_has_a_series_of_its_own():
    told = export_text(
        with_priced_standing(statement(ZERO, costs=(0.0, 0.0, None, 0.0, 0.0), checkpoints=0.0)),
        "prometheus",
    )
    lines = dict(line.rsplit(" ", 1) for line in told.splitlines() if not line.startswith("#"))
    assert [
        v
        for k, v in lines.items()
        if k.startswith("ckptcost_energy_joules_total") and "gpu_wait" in k
    ] == ["0"]
    assert [v for k, v in lines.items() if k.startswith("ckptcost_checkpoints_total")] == ["0"]
    assert [
        k
        for k in lines
        if k.startswith("ckptcost_component_unknown")
        and "storage_write" in k
        and 'quantity="cost"' in k
    ]
    assert not [k for k in lines if "standing" in k and not k.startswith("ckptcost_standing_")]
    assert not [
        k for k in lines if k.startswith("ckptcost_component_unknown") and '"standing"' in k
    ]


def test_labels_escape_what_ends_them():
    assert (
        metric_names.labels({"a": 'x"\\\n\r\x7f', "b": "", "c": None})
        == '{a="x\\"\\\\\\n\ufffd\ufffd"}'
    )
    assert (metric_names.number(-0.0), metric_names.number(123456789.125)) == ("0", "123456789.125")


def test_prometheus_begins_and_ends_where_the_period_does():
    s = statement(rows=2, begin=START)
    zero = factor("site.tariff", 0.0, "usd_per_j", "0")
    lines = dict(
        line.rsplit(" ", 1)
        for line in export_text(with_fields(s, factors=[zero]), "prometheus").splitlines()
        if not line.startswith("#")
    )
    values = {head.partition("{")[0]: value for head, value in lines.items()}
    assert (
        float(values["ckptcost_run_start_timestamp_seconds"]),
        float(values["ckptcost_run_end_timestamp_seconds"]),
    ) == (
        START,
        START + 7200,
    )
    assert values["ckptcost_factor"] == "0"
