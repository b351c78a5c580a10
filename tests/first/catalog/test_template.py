"""The file that `ckptcost init` writes."""

import tomllib

import pytest

from ckptcost.first.catalog.keys import KEYS, SECTIONS
from ckptcost.first.catalog.schema import section_values
from ckptcost.first.catalog.template import example_of, template


@pytest.mark.parametrize(
    ("section", "key"), [(section, key) for section in SECTIONS for key in KEYS[section]]
)
def test_every_example_may_be_uncommented(section, key):
    raw = tomllib.loads(f"x = {example_of(key)}")["x"]
    assert section_values(section, {key: raw})[key].value >= 0


def test_it_is_toml_whichever_line_is_uncommented():
    lines = template().splitlines()
    for i, line in enumerate(lines):
        if (
            line.startswith("# ")
            and " = " in line.partition("#")[2][:30]
            and not line.startswith(("#  ", "# A", "# Q", "# L"))
        ):
            tomllib.loads(line.removeprefix("# "))
            assert "[" not in line.split("=")[0], i
