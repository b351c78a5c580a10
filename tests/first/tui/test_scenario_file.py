"""Changes written into a file: it then says what was meant, its comments stay, and a file that
cannot be changed is left alone."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.catalog.template import template
from ckptcost.first.errors import CkptcostError, InputError
from ckptcost.first.tui import files
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.scenario_file import changed, quoted

MINE = """\
# our job
name = "ours"   # of March
extends = "gpt4-scale-2tb"

[cluster]  # the new one
gpus = 64      # nodes of 8
# gpu_price = "2 USD/GPU-h"

[policy]
saves = 20
"""


def test_a_change_stands_where_it_stood_and_comments_stay():
    found = changed(MINE, {"cluster.gpus": "128"})
    assert found == MINE.replace(
        "gpus = 64      # nodes of 8", 'gpus = "128"' + " " * 22 + "# nodes of 8"
    )


def test_a_commented_key_is_woken_and_a_new_section_added():
    found = changed(MINE, {"cluster.gpu_price": "3 USD/GPU-h", "site.pue": "1.3"})
    assert '\ngpu_price = "3 USD/GPU-h"\n' in found
    assert tomllib.loads(found)["site"] == {"pue": "1.3"}
    assert "# our job" in found


def test_one_way_to_say_how_often():
    found = tomllib.loads(changed(MINE, {"policy.interval": "30 min"}))
    assert found["policy"] == {"interval": "30 min"}
    assert "# saves = 20" in changed(MINE, {"policy.interval": "30 min"})


def test_another_entry_of_the_catalogue_forgets_what_was_said_of_its_section():
    text = MINE + '\n[tier]\nid = "nas-hdd"\nwrite = "1 GB/s"\n'
    found = tomllib.loads(changed(text, {"tier.id": "generic-pfs"}))
    assert found["tier"] == {"id": "generic-pfs"}
    kept = tomllib.loads(changed(text, {"tier.id": "generic-pfs", "tier.setup": "3 s"}))
    assert kept["tier"] == {"id": "generic-pfs", "setup": "3 s"}


def test_tiers_side_by_side():
    assert tomllib.loads(changed(MINE, {}, ["nas-hdd", "flash-shared"]))["compare"] == {
        "tier": ["nas-hdd", "flash-shared"]
    }


def test_what_is_no_table_of_lines_is_refused():
    for text in ("cluster = { gpus = 64 }\n", "[cluster]\ngpus = 64\n[["):
        with pytest.raises(InputError, match="another name"):
            changed(text, {"cluster.gpus": "128"})


def test_a_text_over_lines_that_looks_like_a_key_is_not_taken_for_one():
    text = '[cluster]\nname = """\ngpus = 1\n"""\ngpus = 64\n'
    with pytest.raises(InputError, match="another name"):
        changed(text, {"cluster.gpus": "128"})


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=40))
def test_any_text_can_be_said(text):
    assert tomllib.loads(f"a = {quoted(text)}")["a"] == text
    assert tomllib.loads(changed(MINE, {"tier.name": text}))["tier"]["name"] == text


def test_the_template_takes_every_change(tmp_path):
    file = tmp_path / "job.toml"
    file.write_text(template())
    edits = {
        "cluster.gpus": "512",
        "policy.optimal": "time",
        "site.pue": "1.25",
        "tier.id": "generic-pfs",
        "failures.detect": "30 s",
    }
    desk = Desk(Catalog(), base=str(file), edits=edits)
    meant = desk.resolved().scenario
    files.save_scenario(desk, str(file), over=True)
    assert Desk(Catalog(), base=str(file)).resolved().scenario == meant
    comments = [
        line for line in template().splitlines() if line.startswith("# ") and "=" not in line
    ]
    assert set(comments) <= set(file.read_text().splitlines()) | {"# [failures]"}


def test_saving_over_ones_own_file_keeps_what_it_held(tmp_path):
    file = tmp_path / "job.toml"
    file.write_text(MINE)
    desk = Desk(Catalog(), base=str(file)).edited("site.pue", "1.5")
    meant = desk.resolved("nas-hdd").scenario
    files.save_scenario(desk, str(file), over=True)
    assert Desk(Catalog(), base=str(file)).resolved("nas-hdd").scenario == meant
    assert "# nodes of 8" in file.read_text()


def test_a_name_without_its_ending_is_asked_about_with_it(tmp_path):
    (tmp_path / "nas").mkdir()
    (tmp_path / "nas.toml").write_text("precious = 1\n")
    with pytest.raises(CkptcostError, match=r"nas\.toml.*there already"):
        files.save_scenario(Desk(Catalog()).edited("site.pue", "1.5"), str(tmp_path / "nas"))
    assert files.scenario_name("a/nas") == "a/nas.toml"
    assert (tmp_path / "nas.toml").read_text() == "precious = 1\n"
