"""The same over time: what a row cost is what its counter grew, here and in a real Prometheus
filled with it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from prometheus_tools import backfill, prometheus_with, samples
from statements import (
    START,
    document,
    documents,
    export_text,
    quantity,
    seconds,
    statement,
    with_fields,
)

from ckptcost.first.errors import InputError
from ckptcost.first.exports.formats import exported
from ckptcost.first.report.document import Report
from ckptcost.first.report.statement import Statement

MEANING = {
    "energy": ("ckptcost_energy_joules_total", 3.6e6, "energy_kwh"),
    "gpu_time_lost": ("ckptcost_gpu_lost_seconds_total", 3600.0, "gpu_hours"),
    "cost": ("ckptcost_cost_usd_total", 1.0, "cost_usd"),
    "water": ("ckptcost_water_litres_total", 1.0, "water_l"),
    "embodied": ("ckptcost_embodied_emissions_grams_total", 1000.0, "embodied_kgco2e"),
    "emissions_location": (
        "ckptcost_emissions_location_grams_total",
        1000.0,
        "emissions_location_kgco2e",
    ),
    "emissions_market": (
        "ckptcost_emissions_market_grams_total",
        1000.0,
        "emissions_market_kgco2e",
    ),
}
NASTY = 'a,"b"\n\\=1+1 <script>alert("é日")</script> \\n {x="y"} # EOF'
History = list[tuple[float, float]]


def text_of(wanted: Report) -> str:
    (pieces,) = exported(wanted, "openmetrics").values()
    return "".join(pieces)  # type: ignore[arg-type]


def close(a: float, b: float, most: float = 0.0) -> bool:
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=max(1e-11 * most, 1e-300))


def histories(parsed: dict[Any, Any], name: str, run_id: str) -> dict[str, History]:
    """By component."""
    return {
        dict(labels)["component"]: values
        for (series, labels), values in parsed.items()
        if series == name and ("run_id", run_id) in labels
    }


def check(text: str, wanted: Report) -> None:
    """Raises unless every counter goes from 0 at the run's start to what the component cost, by
    what each row says."""
    assert text.endswith("\n# EOF\n")
    parsed = samples(text)
    assert all(at is not None for values in parsed.values() for at, _ in values)
    for run in wanted.statements:
        begin, end = seconds(run.period_start or ""), seconds(run.period_end or "")
        for what, (name, scale, column) in MEANING.items():
            theirs = histories(parsed, name, run.subject.run_id)
            ours = {
                c.id: getattr(c, what).value
                for c in run.marginal()
                if getattr(c, what).value is not None
            }
            assert theirs.keys() == ours.keys(), what
            for component, history in theirs.items():
                times, values = zip(*history, strict=True)
                assert list(times) == sorted(set(times)), what
                assert list(values) == sorted(values), what
                assert history[0] == (begin, 0.0), what
                assert times[-1] <= end, what
                assert close(values[-1] / scale, ours[component]), what
                _check_rows(run, component, column, dict(history), scale)
            total = getattr(run.totals, what).value
            assert (
                total is None
                if not theirs
                else close(math.fsum(each[-1][1] for each in theirs.values()) / scale, total)
            ), what


def _check_rows(
    run: Statement, component: str, column: str, at: dict[float, float], scale: float
) -> None:
    for n, whose in enumerate(run.series.component if run.series else ()):
        amount = getattr(run.series, column)[n]
        if whose == component and amount is not None:
            begin = seconds(run.series.start[n])
            end = round(begin + run.series.duration_s[n], 3)
            assert close((at[end] - at[begin]) / scale, amount, max(at.values()) / scale), column


@pytest.fixture(scope="module")
def sample() -> Report:
    simulated = statement(
        name=NASTY, run_id="b", begin=START + 0.25, rows=30, kind="measured"
    ).model_copy(update={"simulated": True})
    return document(statement(rows=30), simulated)


def test_round_trip(sample):
    check(text_of(sample), sample)


@settings(max_examples=60, deadline=None)
@given(documents(dated=True))
def test_any_statement(drawn):
    check(text_of(drawn), drawn)


def thousandfold(text: str) -> str:
    def dearer(line: str) -> str:
        labels, value, at = line.rsplit(" ", 2)
        return f"{labels} {value}e3 {at}"

    return "\n".join(
        dearer(line) if line.startswith("ckptcost_energy_joules_total") else line
        for line in text.split("\n")
    )


def without(text: str, start: str) -> str:
    return "\n".join(line for line in text.split("\n") if not line.startswith(start))


def swapped(text: str) -> str:
    other = {"location": "market", "market": "location"}
    return re.sub(r"(?<=ckptcost_emissions_)(location|market)", lambda found: other[found[1]], text)


def an_hour_later(text: str) -> str:
    def later(line: str) -> str:
        labels, _, at = line.rpartition(" ")
        return f"{labels} {float(at) + 3600:.3f}"

    return "\n".join(
        later(line) if line.startswith("ckptcost_cost") else line for line in text.split("\n")
    )


def fewer_rows(text: str) -> str:
    lines = text.split("\n")
    del lines[
        next(n for n, line in enumerate(lines) if line.startswith("ckptcost_energy_joules_total"))
        + 3
    ]
    return "\n".join(lines)


@pytest.mark.parametrize(
    "slip",
    [
        thousandfold,
        swapped,
        an_hour_later,
        fewer_rows,
        lambda text: without(text, 'ckptcost_cost_usd_total{run="GPT'),
        lambda text: text[:-6],
    ],
)
def test_a_slip_is_seen(sample, slip: Callable[[str], str]):
    text = text_of(sample)
    with pytest.raises((AssertionError, KeyError)):
        check(slip(text), sample)


def changed(
    run: Statement, keep: Callable[[int], bool] = lambda n: True, **columns: list[Any]
) -> Statement:
    """With only some rows, and other columns."""
    columns = {
        key: each for key, each in {**dict(run.series or ()), **columns}.items() if key != "width_s"
    }
    kept = {
        key: [value for n, value in enumerate(each) if keep(n)] for key, each in columns.items()
    }
    return run.model_copy(update={"series": run.series.model_copy(update=kept)})


def energy_of_gpus(run: Statement) -> History:
    return histories(
        samples(text_of(document(run))), "ckptcost_energy_joules_total", run.subject.run_id
    )["gpu_wait"]


def one_line(
    amounts: list[float | None], keep: Callable[[int], bool] = lambda n: True
) -> Statement:
    """One component, a row an hour of such kWh."""
    known = [amount for n, amount in enumerate(amounts) if amount is not None and keep(n)]
    run = statement(
        (1.0,),
        gpu_hours=(None,),
        costs=(None,),
        lines=(("gpu_wait", "x", "save", "node"),),
        rows=len(amounts),
        begin=START,
    )
    line = run.components[0].model_copy(update={"energy": quantity("energy", math.fsum(known))})
    return changed(run.model_copy(update={"components": [line]}), keep, energy_kwh=amounts)


def test_hours_without_a_row_are_flat():
    """Or the row's amount would seem to have come evenly since the row before."""
    assert energy_of_gpus(one_line([1.0, 9.0, 9.0, 2.0], lambda n: n in (0, 3))) == [
        (START, 0.0),
        (START + 3600, 3.6e6),
        (START + 3 * 3600, 3.6e6),
        (START + 4 * 3600, 10.8e6),
    ]


def test_an_unknown_hour_has_no_sample():
    """Nor is it flat, which would say nought."""
    assert energy_of_gpus(one_line([1.0, None, 2.0])) == [
        (START, 0.0),
        (START + 3600, 3.6e6),
        (START + 3 * 3600, 10.8e6),
    ]


def test_a_saving_is_taken_off_what_came_before_it():
    """A counter that fell would be read as one that began anew."""
    assert [value / 3.6e6 for _, value in energy_of_gpus(one_line([1.0, 3.0, -2.0, 1.0]))] == [
        0.0,
        1.0,
        2.0,
        2.0,
        3.0,
    ]


def test_less_than_nothing_is_refused():
    with pytest.raises(InputError, match="a counter cannot fall"):
        energy_of_gpus(one_line([1.0, -3.0]))


def test_a_sum_without_rows_goes_evenly():
    run = statement().model_copy(update={"series": None})
    assert energy_of_gpus(run) == [
        (seconds(run.period_start), 0.0),
        (seconds(run.period_end), 1200.5 * 3.6e6),
    ]


def test_units_are_the_names_last_words(sample):
    units = [
        line.split(" ")[2:] for line in text_of(sample).splitlines() if line.startswith("# UNIT")
    ]
    assert ["ckptcost_energy_joules", "joules"] in units
    assert ["ckptcost_gpu_lost_seconds", "seconds"] in units
    assert ["ckptcost_run_gpu_lost_low_seconds", "seconds"] in units
    assert all(name.endswith("_" + unit) for name, unit in units)


def test_undated_is_refused():
    with pytest.raises(InputError, match="no dates"):
        text_of(document(statement(dated=False)))


def test_the_same_statement_gives_the_same_text(sample):
    again = Report.model_validate_json(sample.to_json())
    assert text_of(again) == text_of(sample)


@pytest.mark.parametrize(
    "slip",
    [
        lambda text: text.removesuffix("# EOF\n"),
        lambda text: text.replace("} 1 1790812800.250\n", "} 1\n"),
    ],
    ids=["no end", "a series without a timestamp"],
)
def test_promtool_refuses(sample, slip, tmp_path):
    assert backfill(slip(text_of(sample)), tmp_path).returncode != 0


def test_prometheus_answers_with_our_figures(sample, tmp_path):
    """The increase over the run is what it cost; every row's end has its sum."""
    with prometheus_with(text_of(sample), tmp_path) as prometheus:
        for run in sample.statements:
            begin, end, run_id = (
                seconds(run.period_start),
                seconds(run.period_end),
                run.subject.run_id,
            )
            for what, (name, scale, _) in MEANING.items():
                chosen = f'{name}{{run_id="{run_id}"}}'
                # a second more: newer versions leave out a sample at the window's very beginning
                grown = prometheus.query(f"increase({chosen}[{int(end - begin) + 1}s])", end)
                theirs = {
                    each["metric"]["component"]: float(each["value"][1]) / scale for each in grown
                }
                ours = {
                    c.id: getattr(c, what).value
                    for c in run.marginal()
                    if getattr(c, what).value is not None
                }
                assert theirs.keys() == ours.keys()
                assert all(close(value, ours[component]) for component, value in theirs.items()), (
                    what
                )
                assert close(math.fsum(theirs.values()), getattr(run.totals, what).value), what
            history = histories(samples(text_of(sample)), "ckptcost_energy_joules_total", run_id)[
                "gpu_wait"
            ]
            (range_of_hours,) = prometheus.query_range(
                f'ckptcost_energy_joules_total{{run_id="{run_id}",component="gpu_wait"}}',
                history[1][0],
                end,
                3600.0,
            )
            assert [(at, float(value)) for at, value in range_of_hours["values"]] == history[1:]
            (about,) = prometheus.query(f'ckptcost_statement_info{{run_id="{run_id}"}}', end)
            assert about["metric"]["run"] == run.subject.name


def sample_lines(text):
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            head, value, stamp = line.rsplit(" ", 2)
            found.setdefault(head, []).append((float(stamp), float(value)))
    return found


def of(found, name, *words):
    return next(
        values
        for head, values in found.items()
        if head.startswith(name + "{") and all(word in head for word in words)
    )


def test_gauges_of_the_end_are_told_at_the_end_and_the_others_twice():
    found = sample_lines(export_text(statement(), "openmetrics"))
    end = START + 5 * 3600
    assert [at for at, _ in of(found, "ckptcost_run_energy_low_joules")] == [end]
    assert [at for at, _ in of(found, "ckptcost_energy_high_joules", "gpu_wait")] == [end]
    assert [at for at, _ in of(found, "ckptcost_run_accelerators")] == [START + 1800.0, end]


def test_each_counter_grows_by_its_own_column():
    s = statement(
        costs=(1.0, 0.0, None, 0.0, 0.0), gpu_hours=(10.0, 0.0, 0.0, 0.0, 0.0), rows=2, begin=START
    )
    series = s.series.model_copy(
        update={
            "cost_usd": [0.25, 0.75, *s.series.cost_usd[2:]],
            "gpu_hours": [9.0, 1.0, *s.series.gpu_hours[2:]],
        }
    )
    found = sample_lines(export_text(with_fields(s, series=series), "openmetrics"))
    assert [v for _, v in of(found, "ckptcost_cost_usd_total", "gpu_wait")] == [0.0, 0.25, 1.0]
    assert [v for _, v in of(found, "ckptcost_gpu_lost_seconds_total", "gpu_wait")] == [
        0.0,
        32400.0,
        36000.0,
    ]


def test_rows_in_any_order_are_told_in_the_order_of_time():
    s = statement(rows=4, begin=START)
    names = [name for name in type(s.series).model_fields if name != "width_s"]
    back = with_fields(
        s,
        series=s.series.model_copy(update={name: getattr(s.series, name)[::-1] for name in names}),
    )
    one, other = (sample_lines(export_text(each, "openmetrics")) for each in (s, back))
    for head in one:
        if "_total{" in head:
            assert [at for at, _ in other[head]] == [at for at, _ in one[head]], head
            assert [v for _, v in other[head]] == pytest.approx([v for _, v in one[head]]), head
            assert [at for at, _ in one[head]] == sorted({at for at, _ in one[head]})


def test_rows_that_do_not_add_up_to_the_sum_are_not_followed():
    s = statement(rows=2, begin=START)
    energies = [e if e is None else e * 1.01 for e in s.series.energy_kwh]
    found = sample_lines(
        export_text(
            with_fields(s, series=s.series.model_copy(update={"energy_kwh": energies})),
            "openmetrics",
        )
    )
    gpu = of(found, "ckptcost_energy_joules_total", "gpu_wait")
    assert gpu == [(START, 0.0), (START + 7200, pytest.approx(1200.5 * 3.6e6))]


def test_stamps_to_the_millisecond():
    told = export_text(statement(begin=START + 1800.007), "openmetrics")
    assert f" {int(START) + 1800}.007\n" in told


ZERO = (0.0,) * 5


def test_openmetrics_bridges_an_unknown_row_and_forgets_nothing_after_it():
    s = statement((100.0, 0.0, 0.0, 0.0, 0.0), gpu_hours=ZERO, costs=ZERO, rows=3, begin=START)
    rows = s.series.model_copy(update={"energy_kwh": [40.0, None, 60.0]})
    told = export_text(with_fields(s, series=rows), "openmetrics")
    found = [
        (float(line.split()[-1]), float(line.split()[-2]))
        for line in told.splitlines()
        if line.startswith("ckptcost_energy_joules_total") and "gpu_wait" in line
    ]
    assert found == [
        (START, 0.0),
        (START + 3600, 40 * 3.6e6),
        (START + 10800, 100 * 3.6e6),
    ] or found == [
        (START, 0.0),
        (START + 3600, 40 * 3.6e6),
        (START + 7200, 40 * 3.6e6),
        (START + 10800, 100 * 3.6e6),
    ]
