"""The parts of a gap add up to the gap, whatever the numbers; each planted cause is the part that
has it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_scenarios import ASYNC, BASE, SHAPES, changed

from ckptcost.first.core import timing
from ckptcost.first.core.gap import (
    Course,
    Parts,
    main_part,
    measured_course,
    modelled_load,
    modelled_save,
    parts_of,
    product_parts,
    resize_checkpoint,
)

amounts = st.floats(min_value=0.0, max_value=1e6)
positive = st.floats(min_value=1e-3, max_value=1e6)
courses = st.builds(
    Course,
    positive.map(lambda x: x * 1e9),
    amounts,
    positive.map(lambda x: x * 1e6),
    st.floats(1.0, 5.0),
    amounts,
)


def save_of(s) -> Course:
    return modelled_save(s.checkpoint, s.tier, s.cluster, s.policy)


@given(courses, courses, courses)
def test_parts_add_up_to_the_whole_gap(modelled, sized, measured):
    parts = parts_of(modelled, sized, measured)
    most = max(
        course.time_s
        for course in (
            modelled,
            sized,
            measured,
            Course(measured.moved_bytes, 0, sized.rate_bytes_per_s, 5.0, 0),
        )
    )
    assert parts.whole_s == pytest.approx(measured.time_s - modelled.time_s, abs=1e-9 * most)


@given(courses, courses)
def test_without_a_difference_in_size_no_part_is_the_size(modelled, measured):
    modelled = modelled._replace(moved_bytes=measured.moved_bytes)
    assert parts_of(modelled, modelled, measured).size_s == 0.0


@given(courses, positive, amounts, amounts, st.floats(1.0, 5.0))
def test_a_measured_course_takes_the_time_that_was_measured(
    course, moving_s, fixed_s, beside_s, straggler
):
    time_s = fixed_s + beside_s + moving_s
    found = measured_course(time_s, course.moved_bytes, fixed_s, beside_s, straggler)
    assert found.time_s == pytest.approx(time_s, rel=1e-9)


@pytest.mark.parametrize("s", SHAPES.values(), ids=list(SHAPES))
@pytest.mark.parametrize("pipelined", [True, False])
def test_a_modelled_course_is_the_models_own_time(s, pipelined):
    s = changed(
        s,
        policy__pipelined=pipelined,
        checkpoint__straggler_factor=1.3,
        checkpoint__compress_bytes_per_s=9e10,
    )
    saved = timing.save(s.checkpoint, s.tier, s.cluster, s.policy)
    course = save_of(s)
    assert course.time_s == pytest.approx(saved.stall_s + saved.lag_s, rel=1e-12)
    assert course.moved_bytes == saved.written_bytes
    assert course.beside_s >= 0.0
    load = modelled_load(s.checkpoint, s.tier, s.cluster)
    assert load.time_s == pytest.approx(timing.load_s(s.checkpoint, s.tier, s.cluster), rel=1e-12)


def test_writing_that_hides_the_copy_leaves_nothing_beside_it():
    assert save_of(BASE).beside_s == 0.0
    staged = save_of(changed(policy__pipelined=False))
    assert staged.beside_s == pytest.approx(staged.moved_bytes / (8192 * 20e9))
    assert save_of(ASYNC).beside_s == pytest.approx(staged.beside_s)
    slow = save_of(changed(cluster__gpu_d2h_bytes_per_s=1e6))
    assert slow.moving_s + slow.beside_s == pytest.approx(slow.moved_bytes / (8192 * 1e6))


def test_a_resized_checkpoint_writes_what_was_asked():
    checkpoint = replace(
        BASE.checkpoint,
        compression_ratio=1.5,
        replicas_writing=2.0,
        full_every=4.0,
        delta_fraction=0.2,
    )
    s = replace(BASE, checkpoint=checkpoint)
    bigger = replace(s, checkpoint=resize_checkpoint(checkpoint, 3.0))
    assert save_of(bigger).moved_bytes == pytest.approx(3.0 * save_of(s).moved_bytes)
    one, three = (modelled_load(each.checkpoint, s.tier, s.cluster) for each in (s, bigger))
    assert three.moved_bytes == pytest.approx(3.0 * one.moved_bytes)


PLANTED = {
    "size_s": lambda c: c._replace(moved_bytes=2 * c.moved_bytes),
    "fixed_s": lambda c: c._replace(fixed_s=c.fixed_s + 7.0),
    "rate_s": lambda c: c._replace(rate_bytes_per_s=c.rate_bytes_per_s / 2),
    "straggler_s": lambda c: c._replace(straggler=1.7),
    "beside_s": lambda c: c._replace(beside_s=c.beside_s + 3.0),
}


@pytest.mark.parametrize("cause", PLANTED)
def test_a_planted_cause_is_the_only_part(cause):
    modelled = save_of(BASE)
    measured = PLANTED[cause](modelled)
    sized = (
        save_of(changed(checkpoint__params=2 * 70e9, checkpoint__extra_bytes=2e6))
        if cause == "size_s"
        else modelled
    )
    parts = parts_of(modelled, sized, measured)
    gap = measured.time_s - modelled.time_s
    assert gap > 1.0
    for name, value in parts._asdict().items():
        assert value == pytest.approx(gap if name == cause else 0.0, abs=1e-9), name
    assert main_part(parts._asdict(), gap) == cause


def test_arrays_are_divided_element_by_element():
    modelled = save_of(changed(tier__write_bytes_per_s=np.array([10e9, 20e9, 40e9])))
    measured = measured_course(60.0, float(modelled.moved_bytes), 2.0, 0.0)
    parts = parts_of(modelled, modelled, measured)
    assert np.allclose(parts.whole_s, 60.0 - modelled.time_s)
    assert parts.rate_s[0] < parts.rate_s[2]


@given(amounts, amounts, amounts, amounts)
def test_a_product_is_divided_wholly(amount, each, other_amount, other_each):
    first, second = product_parts(amount, each, other_amount, other_each)
    assert first + second == pytest.approx(
        other_amount * other_each - amount * each,
        abs=1e-9 * max(1.0, other_amount * max(each, other_each), amount * each),
    )
    if amount == other_amount:
        assert first == 0.0


def test_what_explains_most_goes_the_way_of_the_gap():
    assert main_part({"size": 5.0, "rate": -7.0}, -2.0) == "rate"
    assert main_part({"size": 5.0, "rate": -7.0}, 0.5) == "size"
    assert main_part({"size": 5.0, "rate": -7.0}, 0.0) == "rate"
    assert Parts(1.0, 2.0, 3.0, 4.0, 5.0).whole_s == 15.0
