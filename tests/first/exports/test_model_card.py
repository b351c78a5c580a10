"""The model card's metadata: only of whole runs, and the same to huggingface_hub."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import statements
from hypothesis import given, settings
from hypothesis import strategies as st
from statements import export_text, statement, with_fields, with_subject

from ckptcost.first.errors import InputError
from ckptcost.first.exports import model_card
from ckptcost.first.exports.formats import exported
from ckptcost.first.present.amounts import number
from ckptcost.first.report.document import Report
from ckptcost.first.report.parts import Warned
from ckptcost.first.report.statement import Measurement, Statement

PYTHON = Path(__file__).parents[3] / ".consumers" / "py" / "bin" / "python"
NASTY = (
    'a, "b": {c} # d - &e *f\n\ttab \\ é \U0001f600 \u2028 \x85 <b>x</b> =1+1 [l](http://x) ~ null'
)
READER = """
import json, sys
from huggingface_hub import ModelCard, ModelInfo
from huggingface_hub.repocard import metadata_load
from huggingface_hub.utils.endpoint_helpers import _is_emission_within_threshold as within
card = ModelCard.load(sys.argv[1])
data = metadata_load(sys.argv[1]) or {}
again = ModelCard(str(card))
grams = data["co2_eq_emissions"]["emissions"] if data else 1.0
info = ModelInfo(id="x", tags=[], cardData=data)
print(json.dumps({"data": data, "again": again.data.to_dict(), "text": card.text, "same_text": again.text == card.text,
                  "found": within(info, grams * 0.99, grams * 1.01), "elsewhere": within(info, grams * 2, grams * 3)}))
"""


def meter(
    domain: str, kwh: float | None, coverage: float | None = 1.0, boundary: str = "node"
) -> Measurement:
    scope = domain.split(":", maxsplit=1)[0]
    return Measurement(
        id=domain,
        instrument=f"{scope} counter",
        scope=scope,
        boundary=boundary,
        basis="measured",
        tick_s=0.1,
        coverage=coverage,
        energy_kwh=kwh,
    )


def whole(*meters: Measurement, gpus: float | None = 2.0, **more: Any) -> Statement:
    """A measured run whose meters tell all of its energy."""
    s = statements.statement((120.5, 30.25, None, 0.0, 0.0), kind="measured", **more)
    told = meters or (
        meter("gpu:0", 400.0),
        meter("gpu:1", 410.0),
        meter("cpu:0", 90.0),
        meter("dram:0", 10.0),
    )
    return s.model_copy(
        update={
            "measurements": list(told),
            "subject": s.subject.model_copy(update={"accelerator_count": gpus, "nodes": 1.0}),
        }
    )


def placed(s: Statement, **boundary: Any) -> Statement:
    return s.model_copy(update={"boundary": s.boundary.model_copy(update=boundary)})


A_DOCUMENT = statements.document()


def of(s: Statement) -> Report:
    """Without the hash over a statement of any length, which the card does not show."""
    return A_DOCUMENT.model_copy(update={"statements": [s]})


def text_of(document: Report) -> str:
    return "".join(str(piece) for piece in exported(document, "model-card")["model-card.md"])


def front(text: str) -> dict[str, Any]:
    """The block's only mapping, by hand: a key a line, numbers bare and texts in quotes."""
    found = re.fullmatch(
        r"---\nco2_eq_emissions:\n((?:  [a-z_]+: .*\n)+)---\n\n## Environmental impact\n\n((?:-"
        r" .*\n)+)",
        text,
    )
    assert found is not None
    pairs = (line.strip().split(": ", 1) for line in found[1].splitlines())
    return {key: value if value.startswith('"') else float(value) for key, value in pairs}


def check(s: Statement, kwh: float, fields: dict[str, Any], text: str) -> None:
    """Grams of the whole run, by hand from the meters; raises where the card says another
    figure."""
    pue = s.boundary.pue or 1.0
    per_j = next(f.value for f in s.factors if f.id == "site.grid_location") or 0.0
    grams = kwh * 3.6e6 * pue * per_j * 1000.0
    assert math.isclose(fields["emissions"], grams, rel_tol=1e-9), (
        f"{fields['emissions']} for {grams} g"
    )
    assert s.method_version in str(fields["source"]), "method"
    assert ("SIMULATED" in str(fields["source"])) == s.simulated, "simulated"
    assert "Memo item" in text, "memo"


def test_a_whole_run_has_a_card() -> None:
    s = whole()
    text = text_of(statements.document(s))
    fields = front(text)
    check(s, 910.0, fields, text)
    assert json.loads(fields["hardware_used"]) == "2 x H100 SXM5 80GB"
    assert json.loads(fields["geographical_location"]) == "United States"
    assert (
        "PUE 1.15; location-based grid factor 383.5 gCO2e/kWh of a method that is not known "
        "from Yearly electricity data (CC BY 4.0)" in fields["source"]
    )
    assert "training_type" not in fields
    assert "Of these, checkpoints and failures: 151 kWh (14.4 %) at the nodes" in text


def test_known_zeros_do_not_stand_for_a_sum_that_is_not_known() -> None:
    s = whole()
    lines = [
        c.model_copy(update={"energy": c.energy.model_copy(update={"value": None, "low": None})})
        if c.energy.value
        else c
        for c in s.components
    ]
    energy = s.totals.energy.model_copy(update={"value": None, "low": None, "high": None})
    s = s.model_copy(
        update={"components": lines, "totals": s.totals.model_copy(update={"energy": energy})}
    )
    text = text_of(of(s))
    check(s, 910.0, front(text), text)
    assert "What checkpoints and failures add to it is not known" in text
    assert "Of these" not in text


def test_the_type_of_training_is_a_tag() -> None:
    assert (
        front(text_of(statements.document(whole(tags={"training_type": "fine-tuning"}))))[
            "training_type"
        ]
        == '"fine-tuning"'
    )


def test_without_a_pue_the_energy_is_as_metered() -> None:
    s = placed(whole(), pue=None, pue_included_in_energy=False)
    text = text_of(statements.document(s))
    check(s, 910.0, front(text), text)
    assert "without a PUE: nobody said one" in text
    assert "151 kWh (16.6 %)" in text


METERS: dict[str, tuple[tuple[Measurement, ...], float]] = {
    "details lie inside": (
        (meter("gpu:0", 400.0), meter("gpu:0.memory", 90.0), meter("gpu:1", 410.0)),
        810.0,
    ),
    "the node's own meter has them all": (
        (meter("gpu:0", 400.0), meter("gpu:1", 410.0), meter("node", 1200.0)),
        1200.0,
    ),
    "a node with a gap": (
        (meter("gpu:0", 400.0), meter("gpu:1", 410.0), meter("node", 1200.0, coverage=0.5)),
        810.0,
    ),
    "psys contains CPUs": (
        (meter("gpu:0", 400.0), meter("gpu:1", 410.0), meter("psys:0", 99.0), meter("cpu:0", 50.0)),
        860.0,
    ),
    "a node alone": ((meter("node", 1200.0),), 1200.0),
    "modules contain CPUs": (
        (
            meter("module:0", 500.0),
            meter("module:1", 510.0),
            meter("cpu:0", 90.0),
            meter("dram:0", 9.0),
        ),
        1010.0,
    ),
    "modules beside GPUs": (
        (
            meter("module:0", 500.0),
            meter("gpu:0", 400.0),
            meter("gpu:1", 410.0),
            meter("cpu:0", 90.0),
        ),
        900.0,
    ),
    "drives are not of the node": (
        (
            meter("gpu:0", 400.0),
            meter("gpu:1", 410.0),
            meter("drive:nvme0n1", 5.0, boundary="drive"),
        ),
        810.0,
    ),
}


@pytest.mark.parametrize("name", METERS)
def test_no_joule_is_counted_twice(name: str) -> None:
    meters, kwh = METERS[name]
    s = whole(*meters)
    text = text_of(statements.document(s))
    check(s, kwh, front(text), text)


def pair(*second: Any, **more: Any) -> Report:
    return statements.document(whole(meter("gpu:0", 400.0), meter("gpu:1", *second, **more)))


def one_host() -> Report:
    return statements.document(
        whole().model_copy(update={"warnings": [Warned(code="ONE_HOST", message="of two")]})
    )


def many_nodes() -> Report:
    s = whole(meter("node", 1200.0))
    return statements.document(
        s.model_copy(update={"subject": s.subject.model_copy(update={"nodes": 128.0})})
    )


REFUSED: dict[str, tuple[Callable[[], Report], str]] = {
    "a plan": (statements.document, "no meter tells"),
    "an undated plan": (
        lambda: statements.document(statements.statement(dated=False)),
        "no meter tells",
    ),
    "a meter with a gap": (
        lambda: pair(410.0, coverage=0.8),
        "gpu:1: not known over the whole time",
    ),
    "a meter without a sum": (lambda: pair(None), "gpu:1: not known"),
    "a coverage nobody knows": (lambda: pair(410.0, coverage=None), "gpu:1: not known"),
    "one of many GPUs": (
        lambda: statements.document(statements.statement(kind="measured")),
        r"meters of 1 of 1,?024 accelerators",
    ),
    "only drives": (
        lambda: statements.document(whole(meter("drive:nvme0n1", 5.0, boundary="drive"))),
        "no meter tells",
    ),
    "one host of many": (one_host, "one host of several"),
    "one node of many": (many_nodes, "a meter of 1 of 128 nodes"),
    "no grid": (
        lambda: statements.document(whole().model_copy(update={"factors": []})),
        "grid factor is not known",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_the_whole_run_has_a_card_that_says_so(name: str) -> None:
    make, why = REFUSED[name]
    document = make()
    text = text_of(document)
    assert "co2_eq_emissions" not in text
    assert re.search(rf"Energy and emissions of the whole run: not known \(.*{why}", text)
    kwh = document.statements[0].totals.energy
    assert f"add, energy: at least {number(kwh.value)} kWh" in text
    assert "Memo item" in text


def test_two_trainings_have_no_one_card_and_a_plan_beside_one_does_not_matter() -> None:
    two = statements.document(whole(run_id="a"), whole(run_id="b"))
    with pytest.raises(InputError, match=r"of one training, and there are 2.*export one"):
        text_of(two)
    text = text_of(statements.document(whole(run_id="a"), statements.statement(run_id="b")))
    assert "run a" in text


def test_simulated_meters_are_told() -> None:
    s = whole().model_copy(update={"simulated": True})
    text = text_of(statements.document(s))
    check(s, 910.0, front(text), text)
    assert "**SIMULATED: no machine was measured for this.**" in text


MUTATIONS: dict[str, Callable[[str], str]] = {
    "kg for g": lambda text: re.sub(
        r"emissions: [\d.e+]+", lambda m: f"emissions: {float(m[0][11:]) / 1000!r}", text
    ),
    "x1000": lambda text: re.sub(
        r"emissions: [\d.e+]+", lambda m: f"emissions: {float(m[0][11:]) * 1000!r}", text
    ),
    "the checkpoints' share": lambda text: re.sub(
        r"emissions: [\d.e+]+", f"emissions: {150.75 * 383.5!r}", text
    ),
    "market for location": lambda text: re.sub(
        r"emissions: [\d.e+]+", f"emissions: {910.0 * 1.15 * statements.MARKET * 1000!r}", text
    ),
    "no memo": lambda text: re.sub(r"- Memo item.*\n", "", text),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_planted_slip_is_found(name: str) -> None:
    s = whole()
    text = MUTATIONS[name](text_of(statements.document(s)))
    assert text != text_of(statements.document(s))
    with pytest.raises(AssertionError, match=r"for|memo"):
        check(s, 910.0, front(text), text)


@settings(max_examples=40)
@given(
    st.lists(st.floats(0.0, 1e9), min_size=1, max_size=8),
    st.one_of(st.none(), st.floats(1.0, 3.0)),
    statements.statements(),
)
def test_any_statement(kwhs: list[float], pue: float | None, s: Statement) -> None:
    meters = [meter(f"gpu:{n}", kwh) for n, kwh in enumerate(kwhs)]
    subject = s.subject.model_copy(update={"accelerator_count": float(len(kwhs))})
    known = placed(
        s.model_copy(update={"measurements": meters, "subject": subject}),
        pue=pue,
        pue_included_in_energy=pue is not None,
    )
    if any(f.id == "site.grid_location" for f in s.factors):
        text = text_of(of(known))
        check(known, math.fsum(kwhs), front(text), text)
    else:
        assert "grid factor is not known" in text_of(of(known))
    assert "co2_eq_emissions" not in text_of(of(s.model_copy(update={"measurements": []})))


# the real consumer


@pytest.fixture(scope="module")
def hub() -> Callable[[Path], dict[str, Any]]:
    if not PYTHON.exists():
        pytest.skip("no huggingface_hub: make consumers")

    def read(file: Path) -> dict[str, Any]:
        offline = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(file.parent)}
        said = subprocess.run(
            [str(PYTHON), "-c", READER, str(file)],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env=offline,
        )
        assert said.returncode == 0, said.stderr[-400:]
        found: dict[str, Any] = json.loads(said.stdout)
        return found

    return read


CARDS: dict[str, tuple[Callable[[], Statement], float]] = {
    "as made": (whole, 910.0),
    "nasty names": (lambda: whole(name=NASTY, tags={"training_type": NASTY}), 910.0),
    "huge": (lambda: whole(meter("node", 1e16)), 1e16),
    "small": (lambda: whole(meter("node", 3e-5)), 3e-5),
    "zero": (lambda: whole(meter("node", 0.0)), 0.0),
}


@pytest.mark.parametrize("name", CARDS)
def test_the_hub_reads_the_same(
    name: str, hub: Callable[[Path], dict[str, Any]], tmp_path: Path
) -> None:
    make, kwh = CARDS[name]
    s = make()
    text = text_of(statements.document(s))
    (tmp_path / "README.md").write_text(text, encoding="utf-8")
    told = hub(tmp_path / "README.md")
    assert set(told["data"]) == {"co2_eq_emissions"}
    check(s, kwh, told["data"]["co2_eq_emissions"], text)
    assert isinstance(told["data"]["co2_eq_emissions"]["emissions"], float)
    assert told["again"] == told["data"]
    assert told["same_text"]
    assert "\n" not in told["data"]["co2_eq_emissions"]["source"]
    if "training_type" in s.subject.tags:
        assert told["data"]["co2_eq_emissions"]["training_type"] == NASTY
        assert "<b>" not in told["text"]
    if name == "as made":
        assert told["found"], "a search of the hub by emissions finds it"
        assert not told["elsewhere"]


def test_the_hub_reads_a_card_without_emissions(
    hub: Callable[[Path], dict[str, Any]], tmp_path: Path
) -> None:
    (tmp_path / "README.md").write_text(text_of(statements.document()), encoding="utf-8")
    told = hub(tmp_path / "README.md")
    assert (told["data"], told["again"], told["found"]) == ({}, {}, False)
    assert "- Hardware: 1,024 x H100 SXM5 80GB, 128 nodes\n- Place: United States\n" in told["text"]


@pytest.mark.parametrize(
    "broken",
    [
        lambda text: text.replace("co2_eq_emissions:\n", "co2_eq_emissions: [\n"),
        lambda text: re.sub(r'source: "', "source: ", text),
    ],
    ids=["not YAML", "a text without quotes"],
)
def test_the_hub_refuses_a_broken_card(
    broken: Callable[[str], str], hub: Callable[[Path], dict[str, Any]], tmp_path: Path
) -> None:
    text = text_of(statements.document(whole()))
    assert broken(text) != text
    (tmp_path / "README.md").write_text(broken(text), encoding="utf-8")
    with pytest.raises(AssertionError, match=r"[Ee]rror"):
        hub(tmp_path / "README.md")


def card_meter(name, kwh=1.0, **more):
    return Measurement(
        **{
            "id": name,
            "instrument": "i",
            "scope": "s",
            "boundary": "node",
            "basis": "measured",
            "tick_s": 0.1,
            "coverage": 1.0,
            "energy_kwh": kwh,
            **more,
        }
    )


@pytest.mark.parametrize(
    ("meters", "chosen"),
    [
        ([card_meter("gpu:0"), card_meter("cpu:0"), card_meter("node")], ["node"]),
        (
            [card_meter("gpu:0"), card_meter("cpu:0"), card_meter("node", coverage=0.5)],
            ["gpu:0", "cpu:0"],
        ),
        (
            [
                card_meter("gpu:0"),
                card_meter("gpu:0.memory"),
                card_meter("module:0"),
                card_meter("dram:0"),
            ],
            ["gpu:0", "dram:0"],
        ),
        ([card_meter("module:0"), card_meter("cpu:0")], ["module:0"]),
        (
            [card_meter("gpu:0"), card_meter("disk:0", boundary="drive"), card_meter("psys:0")],
            ["gpu:0"],
        ),
        ([card_meter("psys:0")], []),
    ],
)
def test_meters_that_add_up(meters, chosen):
    assert [m.id for m in model_card._parts(meters)] == chosen
    assert model_card._is_whole(card_meter("x", coverage=0.99))
    assert not model_card._is_whole(card_meter("x", coverage=0.98))


ZERO = (0.0,) * 5


def test_a_meter_of_another_boundary_is_not_the_nodes():
    assert (
        model_card._parts([card_meter("node", boundary="cluster"), card_meter("gpu:0")])[0].id
        == "gpu:0"
    )
    assert [
        m.id
        for m in model_card._parts([card_meter("cpu:0", boundary="cluster"), card_meter("gpu:0")])
    ] == ["gpu:0"]


@pytest.mark.parametrize(
    ("included", "added"), [(True, "100 kWh (8.7 %)"), (False, "115 kWh (10 %)")]
)
def test_what_checkpoints_add_is_at_the_nodes_and_times_pue_once(included, added):
    s = statement((60.0, 40.0, 7.0, 0.0, 0.0), gpu_hours=ZERO, costs=ZERO)
    s = with_fields(
        s,
        measurements=[card_meter("node", 1000.0)],
        boundary=s.boundary.model_copy(update={"pue_included_in_energy": included}),
    )
    s = with_subject(s, nodes=1.0, accelerator_count=1.0)
    told = export_text(s, "model-card")
    assert f"Of these, checkpoints and failures: {added} at the nodes" in told
    assert "Outside the metered nodes: 7 kWh more" in told
    assert (
        "Energy of the whole run: 1,150 kWh (1,000 kWh metered by node, times a PUE of 1.15)"
        in told
    )
