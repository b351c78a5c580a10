"""What users import and call answers, wherever it is kept."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

import ckptcost


@pytest.mark.parametrize("name", ckptcost.__all__)
def test_public_names_are_there(name):
    assert getattr(ckptcost, name) is not None


def test_others_are_not():
    with pytest.raises(AttributeError, match="module 'ckptcost' has no attribute 'nonsense'"):
        assert ckptcost.nonsense


@pytest.mark.parametrize(
    "name", ["accelerate", "dcp", "deepspeed", "hugging_face", "lightning", "torch_save"]
)
def test_a_hook_is_one_module_by_either_name(name):
    assert import_module(f"ckptcost.hooks.{name}") is import_module(f"ckptcost.first.hooks.{name}")


def test_a_job_that_imports_the_package_loads_the_names_of_the_questions_only():
    code = "import sys, ckptcost; print([m for m in sys.modules if m.startswith('ckptcost.')])"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).strip()
    assert loaded == "['ckptcost.questions']"


def test_an_error_is_caught_by_its_public_name():
    from ckptcost.errors import InputError

    with pytest.raises(InputError):
        ckptcost.model(tier="nonsense")


@pytest.mark.parametrize(
    "start", [["-m", "ckptcost"], ["-c", "from ckptcost.cli import main; main()"]]
)
def test_the_command_answers(start):
    done = subprocess.run(
        [sys.executable, *start, "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"ckptcost {ckptcost.__version__}\n"
