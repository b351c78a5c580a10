"""The name tells the truth: every public formula is run on quantities with units, and its result
must be what its name says.

A GPU, a node, a file, a request, a dollar and a kgCO2e are units of their own here, so watts per
GPU cannot pass for watts. The quantities come in other units than the plain numbers (hours for
seconds, kilobytes for bytes), so their magnitudes must convert.
"""

from __future__ import annotations

import inspect
import math
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from types import ModuleType

import numpy as np
import pint
import pytest

from ckptcost.first.core import (
    bill,
    domain,
    energy,
    failures,
    missing,
    money,
    mtbf,
    nested,
    numeric,
    offsets,
    optimum,
    outcome,
    pareto,
    quantities,
    regret,
    size,
    solve,
    stragglers,
    timing,
    useful,
)
from ckptcost.first.core.bill import Bill, Line
from ckptcost.first.core.quantities import FIELDS
from ckptcost.first.core.units import UNITS, suffix_of

FORMULAS = (
    size,
    timing,
    failures,
    optimum,
    energy,
    money,
    quantities,
    solve,
    nested,
    pareto,
    regret,
)
OF_SAMPLES = (offsets, stragglers, missing, mtbf, useful)
"""take arrays and whole nanoseconds, which no quantity can be: run in other units instead"""

registry = pint.UnitRegistry(None)
for definition in (
    "s = [time]",
    "j = [energy]",
    "bytes = [data]",
    "gpu = [gpu]",
    "node = [node]",
    "file = [file]",
    "request = [request]",
    "usd = [usd]",
    "kgco2e = [kgco2e]",
    "l = [water]",
    "w = j / s",
    "h = 3600 * s",
    "kw = 1000 * w",
    "kwh = 3600000 * j",
    "kb = 1000 * bytes",
    "cent = 0.01 * usd",
    "t = 1000 * kgco2e",
    "m3 = 1000 * l",
    "dozen_gpu = 12 * gpu",
    "rack = 4 * node",
    "k_files = 1000 * file",
    "k_requests = 1000 * request",
):
    registry.define(definition)
# the same dimension in a unit that nobody inside the core uses; GPUs and nodes stay whole, formulas
# round them up
ODD = {
    "s": "h",
    "j": "kwh",
    "bytes": "kb",
    "file": "k_files",
    "request": "k_requests",
    "usd": "cent",
    "kgco2e": "t",
    "l": "m3",
}

SUFFIX = {
    unit: " * ".join(f"{name}**{power}" for name, power in dims) or "dimensionless"
    for unit, (dims, _) in UNITS.items()
} | {"w": "j / s"}
# names whose suffix does not say it all: for one of what?
PER = {
    "gpus": "gpu",
    "gpus_per_node": "gpu / node",
    "counted_gpus": "gpu",
    "nodes": "node",
    "nodes_per_rack": "node",
    "files": "file",
    "bytes_": "bytes",
    "request_bytes": "bytes / request",
    "gpu_w": "j / s / gpu",
    "host_w": "j / s / node",
    "node_ram_bytes": "bytes / node",
    "node_ram_used_bytes": "bytes / node",
    "staging_budget_bytes": "bytes / node",
    "made_kgco2e": "kgco2e / gpu",
}
MAGNITUDE = {
    "bytes_per_s": 1e9,
    "bytes": 2e10,
    "s": 40.0,
    "w": 300.0,
    "j": 1e4,
    "": 2.0,
    "per_s": 1e-4,
    "failures_per_s": 1e-4,
    "failures_per_node_s": 1e-6,
    "failures_per_gpu_s": 1e-7,
    "j_per_byte": 1e-7,
    "usd_per_byte_s": 1e-14,
    "gpu_s": 1e5,
    "files_per_s": 100.0,
}
COUNTS = {
    "params",
    "replicas_writing",
    "straggler_factor",
    "full_every",
    "delta_fraction",
    "compression_ratio",
    "rate_spread_fraction",
    "read_spread_fraction",
    "readers_per_byte",
    "every",
    "slowdown_fraction",
    "in_flight",
    "keep_last",
    "second_keep_last",
    "second_every",
    "third_keep_last",
    "third_every",
    "node_loss_fraction",
    "second_loss_fraction",
    "host_stall_fraction",
    "size_exponent",
    "rate_factor",
    "pue",
}
"""fields of the domain that are plain numbers"""
COUNTED = {"files", "gpus", "gpus_per_node", "counted_gpus", "nodes_per_rack"}
"""fields that count things which are units of their own"""


def unit_of(name: str) -> str:
    if name in PER:
        return PER[name]
    suffix = suffix_of(name)
    base = SUFFIX[suffix]
    if suffix in ("w", "bytes_per_s"):
        for prefix, thing in (("gpu_", "gpu"), ("host_", "node"), ("node_", "node")):
            if name.startswith(prefix):
                return f"{base} / {thing}"
    return base


def odd(unit: str) -> pint.Unit:
    """The unit with every base replaced by its odd sister."""
    found = registry.Unit("dimensionless")
    for name, power in registry.Unit(unit)._units.items():
        found = found * registry.Unit(ODD.get(name, name)) ** power
    return found


def united(value: float, unit: str) -> pint.Quantity:
    return registry.Quantity(value, unit).to(odd(unit))


NAMED = {"goodput": 0.5, "lost_s": 5.0, "mtbf_s": 4000.0}
"""values at which the formulas that turn a goodput round have an answer"""


def value_for(name: str, at: int) -> float:
    return NAMED[name] if name in NAMED else MAGNITUDE.get(suffix_of(name), 2.0) * (1.0 + 0.13 * at)


def names_of(kind: type) -> list[str]:
    """Field names of a dataclass or a named tuple."""
    return list(inspect.signature(kind).parameters)


RATES = {name: "j" if name == "per_save" else "j / s" for name in names_of(optimum.Rates)}
RESULT_FIELDS = {"failures": "dimensionless"}
CLASSES = {
    kind.__name__: kind
    for kind in (
        domain.Checkpoint,
        domain.Tier,
        domain.Cluster,
        domain.Policy,
        domain.Failures,
        domain.Site,
        failures.Recovery,
        failures.States,
        timing.Save,
        optimum.Rates,
    )
}


def field_unit(kind: type, name: str) -> str:
    if kind is optimum.Rates:
        return RATES[name]
    if kind is failures.States:
        return RESULT_FIELDS.get(name, unit_of(name))
    return unit_of(name)


def built(kind: type, with_units: bool, **given: object):
    """An instance with every number filled in; words and switches keep their defaults."""
    values = {}
    for at, (name, parameter) in enumerate(inspect.signature(kind).parameters.items()):
        if isinstance(parameter.default, str | bool):
            continue
        value, unit = value_for(name, at % 7), field_unit(kind, name)
        if unit == "dimensionless":
            values[name] = value
        else:
            values[name] = united(value, unit) if with_units else value
    return kind(**(values | given))


POLICIES = [
    {"mode": mode, "when_busy": busy, "pipelined": pipelined}
    for mode in ("sync", "async")
    for busy in ("block", "skip")
    for pipelined in (True, False)
]
# what a result is, where the function's own name does not say it
RESULTS: dict[str, object] = {
    "transformer_params": "dimensionless",
    "nodes_of": "node",
    "save": timing.Save,
    "backpressure": timing.Cycle,
    "buffers": "dimensionless",
    "staged_bytes": "bytes / node",
    "spilled_fraction": "dimensionless",
    "recovery_times": ("s",) * 5 + ("dimensionless",),
    "segment": failures.States,
    "period": failures.States,
    "goodput": "dimensionless",
    "first_order_goodput": "dimensionless",
    "one_plus_w0": "dimensionless",
    "recovery_cost": "j",
    "goodput_light": "dimensionless",
    "regret_light": "dimensionless",
    "kept_saves": "dimensionless",
    "first_order_window_s": ("s", "s"),
    "level_waste": "dimensionless",
    "regret": "dimensionless",
    "least_ramp_w_per_s": "j / s / s",
    "node_loss_fraction": "dimensionless",
    "rack_loss_fraction": "dimensionless",
}
NOT_RUN = {
    **dict.fromkeys(
        ("derivation", "in_order", "in_people", "pick", "unit_of_people"),
        "reads the table of quantities; no formula",
    ),
    "litres": "test_water proves it: litres per joule of IT equipment are no unit of ours",
    "first_order_levels": "takes a list of levels, each by level_interval_s; test_nested proves it",
    "nest_intervals": "rounds ratios of a list of intervals; test_nested proves it",
    "nested_base_s": "takes lists, one number a level; test_nested proves it",
    "nested_rule": "takes lists, one number a level; test_nested and test_tiers_check prove it",
    "least_interval_s": "takes a scenario and its plan; test_tiers_check proves it",
    "fed_interval_s": "takes a scenario and its plan; test_nested proves it",
    "joint_interval_s": "searches over whole numbers of saves; test_nested proves it",
    "front": "compares rows of numbers of any kind; test_pareto proves it",
    "cost_of": "a total of the bill, in the unit its objective has; test_regret proves it",
    "plateau_s": "searches on the logarithm of a number of seconds; test_regret proves it",
    "boundary": "searches on the logarithm of whatever it is given; test_solve proves it",
    "golden_interval_s": "searches on the logarithm of a number of seconds; test_optimum proves it",
    "mlperf_bytes": (
        "divides whole parameters by whole ranks; the published cases prove it to the byte"
    ),
    "replicas_lost_probability": "counts whole nodes with binomials; test_failures proves it",
}


def public(module: ModuleType) -> dict[str, object]:
    return {
        name: function
        for name, function in vars(module).items()
        if inspect.isfunction(function)
        and function.__module__ == module.__name__
        and not name.startswith("_")
    }


ALL = {
    f"{module.__name__.rsplit('.', 1)[1]}.{name}": function
    for module in FORMULAS
    for name, function in public(module).items()
}


def is_united(x: object) -> bool:
    return isinstance(x, pint.Quantity)


def alike(x: object, y: object) -> tuple[object, object]:
    """A bare 0, inf or NaN takes the unit of its partner; anything else bare stays bare and will
    not mix."""
    if is_united(x) != is_united(y):
        bare, other = (y, x) if is_united(x) else (x, y)
        if not other.dimensionless and (bare == 0 or math.isinf(bare) or math.isnan(bare)):
            bare = registry.Quantity(float(bare), other.units)
        x, y = (other, bare) if is_united(x) else (bare, other)
    return x, y


def where(condition, yes, no):
    """One quantity, so one branch; the two must be of a kind unless the one not taken is a bare
    stand-in or zero."""
    yes, no = alike(yes, no)
    taken, other = (yes, no) if bool(condition) else (no, yes)
    if is_united(yes) and is_united(no) and not yes.is_compatible_with(no) and other.magnitude != 0:
        raise pint.DimensionalityError(yes.units, no.units)
    if is_united(other) and not is_united(taken) and not other.dimensionless:
        raise pint.DimensionalityError("a bare number", other.units)
    return taken


def minimum(x, y):
    return np.minimum(*alike(x, y))


def maximum(x, y):
    return np.maximum(*alike(x, y))


@contextmanager
def quantities_allowed():
    """numpy's `where` and `minimum` take no bare infinity beside a quantity; these do, and check
    the rest as strictly."""
    swapped = []
    for module in (numeric, *FORMULAS, bill, outcome):
        for name, stand_in in (("where", where), ("minimum", minimum), ("maximum", maximum)):
            if hasattr(module, name):
                swapped.append((module, name, getattr(module, name)))
                setattr(module, name, stand_in)
    try:
        yield
    finally:
        for module, name, original in swapped:
            setattr(module, name, original)


def arguments(function, variant: dict[str, object], with_units: bool) -> dict[str, object]:
    found = {}
    for at, (name, parameter) in enumerate(inspect.signature(function).parameters.items()):
        kind = CLASSES.get(str(parameter.annotation))
        if kind is not None:
            found[name] = built(kind, with_units, **(variant if kind is domain.Policy else {}))
            continue
        unit, value = unit_of(name), value_for(name, at)
        found[name] = united(value, unit) if with_units and unit != "dimensionless" else value
    return found


def same(plain, quantity, unit, what: str) -> None:
    """The quantity has the unit, and in it the plain number."""
    if inspect.isclass(unit):
        for name in names_of(unit):
            same(
                getattr(plain, name),
                getattr(quantity, name),
                field_unit(unit, name),
                f"{what}.{name}",
            )
    elif isinstance(unit, tuple):
        assert len(plain) == len(quantity) == len(unit)
        for i, (a, b, c) in enumerate(zip(plain, quantity, unit, strict=True)):
            same(a, b, c, f"{what}[{i}]")
    else:
        quantity = registry.Quantity(quantity) if not is_united(quantity) else quantity
        assert quantity.is_compatible_with(unit), (
            f"{what} is {quantity.units}, its name says {unit}"
        )
        assert float(quantity.to(unit).magnitude) == pytest.approx(float(plain), rel=1e-9), what


def check(function, variant: dict[str, object] | None = None) -> None:
    """The name of a function tells the truth about what it returns."""
    unit = RESULTS.get(function.__name__) or (
        unit_of(function.__name__) if suffix_of(function.__name__) else None
    )
    assert unit is not None, (
        f"{function.__name__}: neither its name nor the table says what it returns"
    )
    plain = function(**arguments(function, variant or {}, with_units=False))
    with quantities_allowed():
        try:
            quantity = function(**arguments(function, variant or {}, with_units=True))
        except (pint.DimensionalityError, pint.OffsetUnitCalculusError) as error:
            raise AssertionError(f"{function.__name__}: {error}") from None
    same(plain, quantity, unit, function.__name__)


def takes_a_policy(function) -> bool:
    return any(
        str(p.annotation) == "Policy" for p in inspect.signature(function).parameters.values()
    )


@pytest.mark.parametrize("name", sorted(name for name in ALL if name.split(".")[1] not in NOT_RUN))
def test_the_name_tells_the_truth(name):
    for variant in POLICIES if takes_a_policy(ALL[name]) else [{}]:
        check(ALL[name], variant)


def test_no_formula_escapes():
    """Each public function is run, or listed with a reason; nothing is listed that does not
    exist."""
    names = {name.split(".")[1] for name in ALL}
    assert set(NOT_RUN) <= names
    assert set(RESULTS) <= names
    assert len(names) == len(ALL), "two formulas of one name"
    silent = {name for name in names - set(RESULTS) - set(NOT_RUN) if not suffix_of(name)}
    assert silent == set(), "say in RESULTS what these return"
    core = {module.__name__.rsplit(".", 1)[1] for module in FORMULAS}
    assert core == {
        "size",
        "timing",
        "failures",
        "optimum",
        "energy",
        "money",
        "quantities",
        "solve",
        "nested",
        "pareto",
        "regret",
    }


def total_j(power_w, energy_j):
    return power_w + energy_j


def spent_j(time_s, power_w):
    return power_w + 0.0 * time_s * power_w / time_s


def job_w(gpus, gpu_w, nodes, host_w):
    return gpus * gpu_w + host_w


def all_w(gpu_w):
    return gpu_w


def drain_s(bytes_, rate_bytes_per_s):
    return rate_bytes_per_s / bytes_


def again_s(time_s, failures_per_s):
    return time_s * np.exp(time_s)


def bill_usd(energy_j, usd_per_j, usd_per_gpu_s):
    return energy_j * usd_per_gpu_s


def least_bytes(held_bytes, rate_bytes_per_s):
    return timing.minimum(held_bytes, rate_bytes_per_s)


def chosen_s(time_s, power_w):
    return timing.where(True, time_s, power_w)


def known_s(time_s):
    return numeric.where(False, time_s, 7.0)


def cost_usd(request_bytes, written_bytes, usd_per_request):
    return written_bytes * usd_per_request


def emitted_kgco2e(energy_j, usd_per_j):
    return energy_j * usd_per_j


def nameless(time_s):
    return time_s


def hidden_kb_s(time_s, bytes_):
    # a magnitude taken out of its unit: right in base units only
    return time_s * (getattr(bytes_, "magnitude", bytes_) / 1e12)


PLANTED = [
    total_j,
    spent_j,
    job_w,
    all_w,
    drain_s,
    again_s,
    bill_usd,
    least_bytes,
    chosen_s,
    known_s,
    cost_usd,
    emitted_kgco2e,
    nameless,
    hidden_kb_s,
]


@pytest.mark.parametrize("fault", PLANTED, ids=lambda f: f.__name__)
def test_planted_faults_are_caught(fault):
    with pytest.raises(AssertionError):
        check(fault)


def right_j(time_s, gpus, gpu_w, pue):
    return (
        time_s * gpus * gpu_w * pue / registry.Quantity(1.0, "dimensionless")
        if is_united(time_s)
        else time_s * gpus * gpu_w * pue
    )


def test_the_checker_lets_the_truth_pass():
    check(right_j)


@pytest.mark.parametrize(
    "kind",
    [k for k in vars(domain).values() if inspect.isclass(k) and is_dataclass(k)],
    ids=lambda k: k.__name__,
)
def test_every_number_of_the_domain_has_a_unit(kind):
    """A known suffix, or a place in the short list of plain counts and fractions."""
    for field in fields(kind):
        if "Number" not in str(field.type):
            assert not isinstance(field.default, float), field.name
            continue
        assert suffix_of(field.name) or field.name in COUNTS | COUNTED, (
            f"{kind.__name__}.{field.name} says no unit"
        )


def test_the_list_of_counts_is_not_stale():
    names = {
        field.name
        for k in vars(domain).values()
        if inspect.isclass(k) and is_dataclass(k)
        for field in fields(k)
    }
    assert names >= COUNTS | COUNTED
    assert not [name for name in COUNTS | COUNTED if suffix_of(name)]


def scenario(with_units: bool, two_tiers: bool, mode: str) -> domain.Scenario:
    tier = built(domain.Tier, with_units)
    work_s = 1e6
    policy = built(
        domain.Policy,
        with_units,
        mode=mode,
        every=united(400.0, "s") if with_units else 400.0,
        slowdown_fraction=0.1,
    )
    return domain.Scenario(
        built(domain.Checkpoint, with_units),
        tier,
        built(domain.Cluster, with_units, price_includes_electricity=False),
        policy,
        built(domain.Failures, with_units, node_loss_fraction=0.5),
        built(domain.Site, with_units),
        united(work_s, "s") if with_units else work_s,
        replace(tier, survives="site") if two_tiers else None,
    )


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("two_tiers", [False, True])
def test_a_whole_bill_has_the_units_its_columns_say(mode, two_tiers):
    """Every line, total and state of an outcome, through all modules at once."""
    plain = outcome.evaluate(scenario(False, two_tiers, mode))
    with quantities_allowed():
        quantity = outcome.evaluate(scenario(True, two_tiers, mode))
    for name in ("interval_s", "wall_s", "saves", "goodput", "failures"):
        same(getattr(plain, name), getattr(quantity, name), unit_of(name), name)
    same(plain.states, quantity.states, failures.States, "states")
    for a, b in zip(plain.run.lines, quantity.run.lines, strict=True):
        compare_lines(a, b)
    assert isinstance(quantity.run, Bill)


def compare_lines(plain: Line, quantity: Line) -> None:
    for name in FIELDS:
        if float(getattr(plain, name)) != 0.0:
            same(getattr(plain, name), getattr(quantity, name), unit_of(name), f"{plain.id}.{name}")


OTHER = {"s": 8, "gpu": 4, "j": 128}
"""how many of our units are in those of somebody else: powers of two, which no float is rounded
by"""
_DRAWN = np.random.default_rng(11)
_WHOLE = np.repeat(np.arange(30), 8)
SAMPLES: dict[object, dict[str, object]] = {
    offsets.offsets_of: {
        "window": _WHOLE,
        "node": np.tile(np.arange(8), 30),
        "begin_ns": _DRAWN.integers(0, 10**9, 240) * 2,
    },
    stragglers.stragglers_of: {
        "window": _WHOLE,
        "windows": 30,
        "begin_ns": _DRAWN.integers(0, 10**9, 240),
        "stall_s": _DRAWN.gamma(9.0, size=240),
        "gpus": np.full(240, 8.0),
        "stall_w": _DRAWN.gamma(9.0, size=240),
    },
    missing.missing_share: {
        "per_node_j": _DRAWN.gamma(9.0, size=20),
        "lacking": np.array([3.0, 50.0]),
    },
    mtbf.mtbf_of: {"failures": 7, "exposure_s": 1e6},
    mtbf.shape_of: {"gaps_s": _DRAWN.gamma(2.0, size=20), "open_s": np.array([4.0])},
    useful.useful_of: {
        "spans": [
            useful.RunSpan(0.0, 1000.0, True, 700.0, 90.0, 20.0, 30.0),
            useful.RunSpan(1300.0, 2000.0, True, -math.inf, 10.0, 30.0),
        ]
    },
}
ESTIMATES = {"missing_share": "j", "mtbf_of": "s", "shape_of": ""}
"""the unit of value, low, high and stderr"""


def other_unit(name: str) -> float:
    dims = (
        (("gpu", 1),)
        if name == "gpus"
        else (("s", 1),)
        if name.endswith("_ns")
        else UNITS[suffix_of(name)][0]
    )
    return math.prod(float(OTHER[thing]) ** power for thing, power in dims)


def in_other_units(name: str, value: object) -> object:
    if isinstance(value, list):
        return [
            type(one)(**{each: in_other_units(each, getattr(one, each)) for each in one._fields})
            for one in value
        ]
    if isinstance(value, bool) or other_unit(name) == 1:
        return value
    return value * (int(other_unit(name)) if name.endswith("_ns") else other_unit(name))


@pytest.mark.parametrize("function", SAMPLES, ids=lambda f: f.__name__)
def test_formulas_of_samples_keep_their_units(function):
    """In other units of time, GPUs and energy the same comes out, in those."""
    given = SAMPLES[function]
    plain = function(*given.values())
    other = function(*(in_other_units(name, value) for name, value in given.items()))
    for name, one, two in zip(plain._fields, plain, other, strict=True):
        of_estimate = name in ("value", "low", "high", "stderr")
        by = other_unit(ESTIMATES[function.__name__] if of_estimate else name)
        if one is not None and not isinstance(one, str):
            # an offset is rounded to whole nanoseconds
            np.testing.assert_allclose(
                two, np.asarray(one) * by, rtol=1e-9, atol=2 * by if name == "offset_ns" else 0.0
            )


def test_no_formula_of_samples_escapes():
    assert set(SAMPLES) == {
        function for module in OF_SAMPLES for function in public(module).values()
    }
