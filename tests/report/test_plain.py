"""The views read the document's parts as they are; the JSON is the same parts, judged by the
schema. They must not differ."""

import pytest

from ckptcost.catalog.store import Catalog
from ckptcost.jobs.model import model
from ckptcost.layers import layers_for
from ckptcost.report.build import build, parts_of, plain
from ckptcost.report.text import text, to_markdown
from ckptcost.report.to_csv import of_report

SCENARIOS = [
    "gpt4-scale-2tb",
    "llama31-405b-16k",
    "opt-175b",
    "bloom-176b",
    "micron-100k",
    "small-8b",
]


@pytest.fixture(params=SCENARIOS)
def answered(request, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    catalog = Catalog()
    layers = layers_for(catalog, request.param, None, [])
    return model(catalog, layers, against="hdd-network"), catalog


def test_the_parts_are_complete_to_the_last_key(answered):
    """No default of the schema fills in anything but the result's hash."""
    parts = parts_of(*answered)
    dumped = build(*answered).model_dump(mode="json")
    assert len(dumped["reproducibility"].pop("result_sha256")) == 64
    assert parts["reproducibility"].pop("result_sha256") == ""
    assert dumped == parts


@pytest.mark.parametrize("view", [text, to_markdown, of_report])
def test_a_view_of_the_parts_is_a_view_of_the_report(answered, view):
    assert view(plain(*answered)) == view(build(*answered))
