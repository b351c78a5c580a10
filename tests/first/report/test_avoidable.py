"""What another tier would have avoided, and what it would have added: never one told as the
other."""

import pytest

from ckptcost.first.report.studies.model_words import avoidable_lines


def said(gpu_h, kwh, usd, kg, goodput=0.9, more=0.0):
    values = {
        "run_gpu_hours": gpu_h,
        "run_energy_kwh": kwh,
        "run_cost_usd": usd,
        "run_location_kgco2e": kg,
        "goodput": more,
    }
    return avoidable_lines(values, "flash", goodput)[0]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((10.0, 5.0, 20.0, 2.0), "Avoidable with flash: 10 GPU-h, 5 kWh, 20 USD, 2 kgCO2e a run."),
        (
            (10.0, None, 20.0, None),
            "Avoidable with flash: 10 GPU-h, - kWh, 20 USD, - kgCO2e a run.",
        ),
        (
            (-10.0, -5.0, -20.0, -2.0),
            (
                "Nothing was avoidable with flash: it would add 10 GPU-h, 5 kWh, 20 USD, 2 kgCO2e a"
                " run."
            ),
        ),
        (
            (10.0, -5.0, 20.0, -2.0),
            "Avoidable with flash: 10 GPU-h, 20 USD a run; it would add 5 kWh, 2 kgCO2e.",
        ),
        ((0.0, 0.0, 0.0, 0.0), "Avoidable with flash: 0 GPU-h, 0 kWh, 0 USD, 0 kgCO2e a run."),
    ],
)
def test_less_and_more(values, text):
    assert said(*values) == text


@pytest.mark.parametrize(
    ("goodput", "more", "whose"),
    [(0.00136, -0.96, "the run makes"), (0.9, 0.86, "the run on flash makes")],
)
def test_nothing_is_saved_against_a_hopeless_run(goodput, more, whose):
    text = said(3e8, 1.7e8, 1.6e9, 6e7, goodput, more)
    assert f"as it stands {whose} next to no headway" in text
    assert "USD" not in text
