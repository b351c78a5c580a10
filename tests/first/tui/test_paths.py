"""What somebody types as a path is a path or one line, never a crash."""

import pytest
from nobody import as_nobody

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.errors import CkptcostError, InputError
from ckptcost.first.tui import files
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.paths import path_of
from ckptcost.first.tui.screens import audit, live_start, report, runs_entries

IMPOSSIBLE = ["~nosuchuser/x", "x" * 300, "a\0b", "/dev/null/below"]


def test_a_home_and_blanks_are_seen_through(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert path_of(" ~/a ") == tmp_path / "a"
    assert path_of("new").as_posix() == "new"


@pytest.mark.parametrize("text", IMPOSSIBLE, ids=repr)
def test_what_can_be_no_path_is_one_line(text):
    with pytest.raises(InputError) as told:
        path_of(text)
    assert "\n" not in str(told.value)
    assert len(str(told.value)) < 200


@pytest.mark.parametrize("text", IMPOSSIBLE, ids=repr)
def test_nowhere_does_it_crash(text):
    assert report.standing(text)[1] == "bad"
    for call in (
        lambda: files.write_text("a", text),
        lambda: files.exists(text),
        lambda: files.save_scenario(Desk(Catalog()), text),
        lambda: runs_entries.opened(text),
        lambda: audit.open_sheet(Catalog(), text if text.startswith("~") else f"{text}.toml"),
        lambda: live_start.start_of(live_start.Typed(watch=text), "auto"),
        lambda: live_start.start_of(live_start.Typed(record=text), "auto"),
    ):
        with pytest.raises((CkptcostError, OSError)):
            call()


def test_a_folder_that_may_not_be_looked_into(tmp_path):
    closed = tmp_path / "closed"
    (closed / "in").mkdir(parents=True)
    closed.chmod(0)
    assert as_nobody(lambda: report.standing(str(closed / "in" / "x"))[0]).endswith(
        'permission denied"'
    )
