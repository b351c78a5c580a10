"""Views read the model's answer as it was computed; the JSON is the same answer, judged by the
schema. They must not differ."""

import pytest

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.jobs.gates import gate_of
from ckptcost.first.jobs.model import judged_cases, model
from ckptcost.first.layers import layers_for
from ckptcost.first.report import brief, study_views
from ckptcost.first.report.build import build
from ckptcost.first.report.read import study_of as as_read
from ckptcost.first.report.statement import Statement
from ckptcost.first.report.statements.closed_form import statement_part
from ckptcost.first.report.studies.model import study_of

SCENARIOS = [
    "gpt4-scale-2tb",
    "llama31-405b-16k",
    "opt-175b",
    "bloom-176b",
    "micron-100k",
    "small-8b",
]


@pytest.fixture(params=SCENARIOS)
def answer(request):
    return model(Catalog(), layers_for(Catalog(), request.param, None, []), against="hdd-network")


def filled_in(part, whole, path=""):
    """What a judged part holds that was not in it, by its place."""
    if isinstance(part, list):
        found = [filled_in(*each, f"{path}[]") for each in zip(part, whole, strict=True)]
        return {name: value for each in found for name, value in each.items()}
    if not isinstance(part, dict):
        assert part == whole, path
        return {}
    own = {f"{path}.{key}": value for key, value in whole.items() if key not in part}
    for key, value in part.items():
        own |= filled_in(value, whole[key], f"{path}.{key}")
    return own


def test_the_parts_are_complete_to_the_last_key(answer):
    """The schema fills in the dollar, and what nobody says of a plan."""
    part = statement_part(answer.cases[0], Catalog(), "f" * 64, "one", ["one"], [])
    found = filled_in(part, Statement.model_validate(part).model_dump(mode="json"))
    assert found.pop(".currency") == "USD"
    assert {name.split(".")[1] for name in found} == {"subject", "contracts"}
    assert not any(found.values())


def test_a_view_of_the_answer_is_a_view_of_the_document(answer):
    gates = [gate_of("goodput>=0.9", "--require"), gate_of("kwh<=1", "--require")]
    study = study_of(answer, Catalog(), judged_cases(gates, answer.cases))
    read = as_read(build(study, Catalog()))
    views = (brief.of_study, study_views.text, study_views.to_markdown)
    for view in views:
        assert view(study) == view(read)
    for table in study.tables:
        assert study_views.to_csv(study, table.id) == study_views.to_csv(read, table.id)
