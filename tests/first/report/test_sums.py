"""When lines of a document have a total: core's rule, and that of a document's own lines."""

from __future__ import annotations

import pytest
from statements import statement

from ckptcost.first.core.lines import OF_THE_JOB
from ckptcost.first.report.sums import has_total, is_needed

ANY = statement().components[0]


def line(id_, energy, needed=None):
    value = ANY.energy.model_copy(update={"value": energy})
    return ANY.model_copy(update={"id": id_, "energy": value, "needed": needed})


@pytest.mark.parametrize("id_", sorted(OF_THE_JOB))
def test_what_gpus_and_hosts_do_is_needed(id_):
    assert is_needed(line(id_, 1.0))
    assert not has_total([line(id_, None), line("storage_write", 5.0)], "energy")


def test_what_is_not_needed_may_be_missing():
    assert has_total([line("gpu_wait", 1.0), line("storage_write", None)], "energy")


def test_a_document_says_what_its_own_lines_need():
    lines = [line("gpu_wait", 1.0), line("restart", None, needed=False)]
    assert has_total(lines, "energy")
    assert not has_total([line("gpu_wait", 1.0), line("waiting", None, needed=True)], "energy")


@pytest.mark.parametrize("lines", [[], [line("storage_write", None)]])
def test_of_nothing_known_there_is_no_total(lines):
    assert not has_total(lines, "energy")


def test_a_known_zero_is_known():
    assert has_total([line("gpu_wait", 0.0)], "energy")
