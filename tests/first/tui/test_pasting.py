"""Whatever is pasted, a field takes what a field can hold."""

from __future__ import annotations

import pytest
from screening import settled
from textual.events import Paste

from ckptcost.first.tui.app import CkptcostApp
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.typing_ahead import MOST_PASTED


async def _pasted(pilot, text: str) -> str:
    pilot.app.screen.form.enter("tier.write")
    await settled(pilot)
    field = pilot.app.focused
    before = field.value
    pilot.app.post_message(Paste(text))
    await settled(pilot)
    assert pilot.app.focused is field
    assert before != field.value or not text
    return field.value


@pytest.mark.parametrize("length", [20_000, 200_000])
def test_of_a_long_text_the_first_letters_are_taken_and_it_says_so(length, drive):
    async def script(pilot):
        value = await _pasted(pilot, "9" * length)
        assert 0 < len(value) <= MOST_PASTED + 20
        assert any("first 1,000 characters" in toast.message for toast in pilot.app._notifications)

    drive(CkptcostApp(Desk(base="small-8b"), start="model"), script)


def test_a_short_one_is_taken_whole(drive):
    async def script(pilot):
        assert "12 GB/s" in await _pasted(pilot, "12 GB/s")
        assert not len(pilot.app._notifications)

    drive(CkptcostApp(Desk(base="small-8b"), start="model"), script)
