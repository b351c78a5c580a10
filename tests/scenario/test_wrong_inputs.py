"""Wrong inputs: a place, one line of what is wrong, and a remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from ckptcost.errors import InputError, visible
from ckptcost.scenario import resolve as sc

from .jobs import JOB, job, scenario

SETTINGS = [
    ("cluster.gpus", "--set: 'cluster.gpus' is not path=value", "--set cluster.gpus=1024"),
    ("cluster.gpus=40x", "--set: cluster.gpus: '40x': a count has no 'x'", "write e.g. '1024'"),
    ("cluster.gpus=5 %", "--set: cluster.gpus: '5 %': a count has no '%'", "write e.g. '1024'"),
    ("cluster.gpus=-8", "--set: cluster.gpus: '-8' is less than nothing", "write e.g. '1024'"),
    ("cluster.gpus=nan", "--set: cluster.gpus: 'nan' is no quantity", "write e.g. '1024'"),
    ("cluster.gpus=1e309", "--set: cluster.gpus: '1e309' is too large", "write e.g. '1024'"),
    ("cluster.gpus=0", "--set: cluster.gpus: '0' is out of range", "gpus must be between 1 and"),
    ("cluster.gpu=8", "--set: no key in cluster is called 'gpu'", "try gpus"),
    ("clusters.gpus=8", "--set: no section is called 'clusters'", "try cluster"),
    ("tier.write=30 GB", "--set: tier.write: '30 GB': 'GB' is not a unit of", "'30 GB/s'"),
    ("tier.write=fast", "--set: tier.write: 'fast' is no quantity", "'30 GB/s'"),
    ("tier.id=nas-hd", "tier: no tier is called 'nas-hd'", "try nas-hdd"),
    ("tier.id=../../x", "tier: no tier is called '../../x'", "try "),
    ("tier.id=vast:9 parsecs", "tier: vast:9 parsecs: '9 parsecs'", "'1 PB'"),
    ("site.grid=FRX", "site: no grid is called 'FRX'", "try FRA"),
    ("policy.mode=asynch", "--set: policy.mode: no choice is called 'asynch'", "try async"),
    ("policy.interval=all", "--set: policy.interval: 'all' is no quantity", "'30 min'"),
    ("site.pue=0.5", "--set: site.pue: '0.5' is out of range", "pue must be between 1 and 10"),
    ("failures.unusable=95 %", "--set: failures.unusable: '95 %' is out of range", "0 and 0.9"),
    ("tier.name=a\x1b[2Jb", "--set: tier.name: 'a\\x1b[2Jb' has letters", "remove them"),
    ("policy.steps=500", "policy.step: is missing", 'policy.step="12 s"'),
    ("tier.save_time=3 s", "tier.timed_size: is missing", 'tier.timed_size="2 TB"'),
]


@pytest.mark.parametrize(("setting", "says", "remedy"), SETTINGS)
def test_settings(setting: str, says: str, remedy: str) -> None:
    with pytest.raises(InputError) as error:
        scenario("opt-175b", setting)
    check(error.value, says, remedy)


def check(error: InputError, says: str, remedy: str) -> None:
    first, _, rest = str(error).partition("\n")
    assert first.startswith(says)
    assert remedy in rest
    assert str(error).count("\n") == 1
    assert all(letter.isprintable() or letter == "\n" for letter in str(error))


GPUS = "job.toml: cluster.gpus: "
FILES = [
    ("", "run.work: is missing", '--set run.work="54 days"'),
    ("gpus = 512\n" + JOB, "job.toml: gpus stands outside its section", "below [cluster]"),
    ("[cluster\n", "PATH: is no TOML", "[cluster]"),
    ("x = " + "[" * 3000, "PATH: is no TOML", "[cluster]"),
    ("x = " + "9" * 5000, "PATH: is no TOML", "[cluster]"),
    ("tier = 3\n", "job.toml: tier is a section", "write [tier]"),
    ("name = 3\n", "job.toml: name must be a text", 'name = "'),
    (JOB.replace("512", "[512]"), GPUS + "a list is no quantity", "'1024'"),
    (JOB.replace("512", "2026-11-28"), GPUS + "a date or time is no quantity", "'1024'"),
    (JOB.replace("512", "{ value = 5, hi = 9 }"), GPUS + "a figure has value", "low ="),
    (JOB.replace("512", "{ value = 5, high = 3 }"), GPUS + "the value '5' is not", "<="),
    (JOB.replace("512", '{ value = 5, basis = "?" }'), GPUS + "no basis is called", "user"),
    (JOB.replace("512", "true"), GPUS + "'True' is no quantity", "'1024'"),
    (JOB.replace('"h100-sxm"', "7"), "job.toml: cluster.accelerator: a number is no", '"..."'),
    (JOB + '[compare]\ntier = "vast"\n', "job.toml: compare: tier must be a list", 'tier = ["'),
    (JOB + "[compare]\ntiers = []\n", "job.toml: no key in compare is called 'tiers'", "tier"),
    (JOB + "[policy2]\nx = 1\n", "job.toml: no section is called 'policy2'", "policy"),
    (
        JOB.replace("[tier]", "saves = 9\n[tier]"),
        "job.toml: policy: interval and saves",
        "keep one",
    ),
    ('extends = "job.toml"\n' + JOB, "PATH: extends itself", "break the circle"),
    ('extends = "none.toml"\n' + JOB, "NONE: cannot be read", "check the path"),
    ('extends = "llama3"\n' + JOB, "no scenario is called 'llama3'", "llama31-405b-16k"),
    ("#" * 1_000_001, "PATH: is larger than 1 MB", "right file"),
]


@pytest.mark.parametrize(("text", "says", "remedy"), FILES, ids=[each[1] for each in FILES])
def test_files(tmp_path: Path, text: str, says: str, remedy: str) -> None:
    path = job(tmp_path, text)
    says = says.replace("PATH", path).replace("NONE", str(tmp_path / "none.toml"))
    with pytest.raises(InputError) as error:
        scenario(path)
    check(error.value, says, remedy)


@pytest.mark.parametrize(
    "name", ["no/such.toml", "/dev/null/x.toml", "a\x00b/c.toml", "\x1b[2J.toml"]
)
def test_a_file_that_is_not_there(name: str) -> None:
    with pytest.raises(InputError) as error:
        sc.layers_of(name)
    check(error.value, visible(name), "check the path")


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="is no TOML"):
        sc.layers_of(str(path))
