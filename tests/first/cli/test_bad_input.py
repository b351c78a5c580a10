"""Wrong input: one message that says where, what and the remedy; exit code 2; no traceback; nothing
on stdout, nothing written."""

from __future__ import annotations

import os
import re
import resource
from pathlib import Path

import pytest

from ckptcost.first.report import read

JOB = """\
[checkpoint]
size = "2 TB"
[tier]
id = "nas-hdd"
[cluster]
id = "h100-1024"
[policy]
saves = 100
[run]
work = "200 h"
"""
LONGEST = 700
"""a message is read on a terminal"""


def refused(ran, *, says: str = "", code: int = 2) -> str:
    """The one message of a refused command, checked for form."""
    assert ran.code == code, ran
    assert ran.out == ""
    assert "Traceback" not in ran.err
    assert "Warning" not in ran.err
    assert ran.err.startswith("ckptcost: ")
    assert ran.err.endswith("\n")
    assert ran.err.count("\n") == 1, ran.err
    assert len(ran.err) < LONGEST, f"{len(ran.err)} characters"
    assert re.search(says, ran.err), f"{says!r} is not in {ran.err!r}"
    return ran.err


@pytest.fixture
def job(tmp_path):
    def write(content: str | bytes, name: str = "job.toml") -> str:
        file = tmp_path / name
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(file)

    return write


# ---- the scenario file as a file


FILES = {
    "unknown key": (JOB + '[site]\nzone = "SWE"\n', "job.toml: site.*'zone'.*known: grid"),
    "unknown section": ("[tiers]\n" + JOB, "job.toml.*'tiers'.*did you mean 'tier'"),
    "no unit": (JOB + "[site]\ntariff = 0.1\n", "job.toml: site.tariff: 0.1 has no unit.*USD/kWh"),
    "no unit in text": (
        JOB + '[site]\ntariff = "0.1"\n',
        "site.tariff: '0.1' has no unit.*USD/kWh",
    ),
    "wrong unit": (
        JOB + '[second_tier]\nwrite = "30 GB"\n',
        "job.toml: second_tier.write: '30 GB' is bytes, expected bytes_per_s.*GB/s",
    ),
    "unknown unit": (
        JOB + '[second_tier]\nwrite = "30 furlongs"\n',
        "second_tier.write.*unknown unit 'furlongs'.*GB/s",
    ),
    "negative": (
        JOB + '[second_tier]\nwrite = "-1 GB/s"\n',
        "job.toml: second_tier.write: '-1 GB/s' is negative",
    ),
    "zero bandwidth": (
        JOB + '[second_tier]\nwrite = "0 GB/s"\n',
        "job.toml: second_tier.write: '0 GB/s' is out of range.*at least 1 bytes_per_s",
    ),
    "zero bandwidth as a low end": (
        JOB + '[second_tier]\nwrite = {value="1 GB/s", low="0 GB/s", high="2 GB/s"}\n',
        "second_tier.write.*out of range",
    ),
    "NaN": (JOB.replace("100", "nan"), "policy.saves.*not a finite number"),
    "NaN in text": (JOB.replace('"200 h"', '"nan h"'), "run.work.*not a finite number"),
    "infinity": (JOB.replace("100", "inf"), "policy.saves.*not a finite number"),
    "1e400": (JOB.replace("100", "1e400"), "policy.saves.*not a finite number"),
    "1e400 in text": (JOB.replace('"200 h"', '"1e400 h"'), "run.work.*not a finite number"),
    "an integer of 400 digits": (
        JOB.replace("100", "9" * 400),
        "policy.saves.*not a finite number",
    ),
    "an integer of 5,000 digits": (JOB.replace("100", "9" * 5000), "job.toml"),
    "out of range": (
        JOB + "[failures]\nnode_loss_fraction = 1.5\n",
        "failures.node_loss_fraction: .?1.5.? is out of range.*at most 1",
    ),
    "PUE below 1": (JOB + "[site]\npue = 0.9\n", "site.pue: .?0.9.? is out of range.*at least 1"),
    "range the wrong way round": (
        JOB + "[site]\npue = {value=1.2, low=1.3, high=1.4}\n",
        "site.pue.*does not hold.*low <= value <= high",
    ),
    "low without high": (
        JOB + "[site]\npue = {value=1.2, low=1.1}\n",
        "site.pue: low and high come together",
    ),
    "a figure without a value": (
        JOB + "[site]\npue = {low=1.1, high=1.2}\n",
        "site.pue.*needs a value",
    ),
    "a figure's unknown key": (
        JOB + '[site]\npue = {value=1.2, unit="x"}\n',
        "site.pue.*no key of a figure named 'unit'",
    ),
    "unknown basis of a figure": (
        JOB + '[site]\npue = {value=1.2, basis="guess"}\n',
        "site.pue.*no basis named 'guess'",
    ),
    "unknown basis of a file": (
        'basis = "guess"\n' + JOB,
        "job.toml: basis.*guess.*(known|did you mean)",
    ),
    "no such tier": (
        JOB.replace("nas-hdd", "nas-hdb"),
        "tier.id: no tier named 'nas-hdb'. did you mean 'nas-hdd'",
    ),
    "no such model": (
        JOB.replace('size = "2 TB"', 'model = "lama31-8b"'),
        "checkpoint.model.*'lama31-8b'.*did you mean.*llama31-8b",
    ),
    "no such cluster": (
        JOB.replace("h100-1024", "h100-1025"),
        "cluster.id.*did you mean.*h100-1024",
    ),
    "no such grid": (JOB + '[site]\ngrid = "USAA"\n', "site.grid.*did you mean.*USA"),
    "no such choice": (JOB + "[tier.x]\n", "tier"),
    "empty id": (JOB.replace("nas-hdd", ""), "tier"),
    "path in an id": (
        JOB.replace("nas-hdd", "../../../etc/passwd"),
        "tier.id: no tier named '../../../etc/passwd'",
    ),
    "absolute path in an id": (
        JOB.replace("nas-hdd", "/etc/passwd"),
        "tier.id: no tier named '/etc/passwd'",
    ),
    "huge id": (JOB.replace("nas-hdd", "x" * 900_000), "tier.id"),
    "newline in an id": (JOB.replace("nas-hdd", "x\\ny"), "tier.id"),
    "control characters in an id": (JOB.replace("nas-hdd", "\\u001b[31mred"), "tier.id"),
    "empty": ("", "job.toml: is empty.*init"),
    "white space": (" \n\t\n", "job.toml: is empty.*init"),
    "binary": (bytes(range(256)) * 10, "job.toml: is not text in UTF-8"),
    "NUL": (JOB + "\0", "job.toml: is not valid TOML.*line 11"),
    "50 MB": (b"#" * 50_000_000, "job.toml: is larger than 1 MB"),
    "not UTF-8": (JOB.encode() + b"# caf\xe9\n", "job.toml: is not text in UTF-8"),
    "UTF-16": (JOB.encode("utf-16"), "job.toml: is not text in UTF-8"),
    "arrays nested 100,000 deep": (
        "a = " + "[" * 100_000 + "]" * 100_000,
        "job.toml: is (not valid TOML|nested too deep)",
    ),
    "tables nested 100,000 deep": (
        "a = " + "{a=" * 100_000 + "1" + "}" * 100_000,
        "job.toml: is (not valid TOML|nested too deep)",
    ),
    "the same key twice": (JOB + 'work = "1 h"\n', "job.toml: is not valid TOML.*line 11"),
    "the same section twice": (
        JOB + '[run]\nwork = "1 h"\n',
        "job.toml: is not valid TOML.*line 11",
    ),
    "not TOML": ('{"tier": "nas-hdd"}', "job.toml: is not valid TOML"),
    "extends itself": (
        'extends = "./job.toml"\n' + JOB,
        "job.toml: extends: extends itself.*break the circle",
    ),
    "extends nothing there": ('extends = "./absent.toml"\n' + JOB, "absent.toml: no such file"),
    "extends an unknown preset": (
        'extends = "gpt4-scale-3tb"\n' + JOB,
        "'gpt4-scale-3tb'.*did you mean 'gpt4-scale-2tb'",
    ),
    "extends a folder": ('extends = "./"\n' + JOB, "is a folder"),
    "two cadences": (
        JOB.replace("saves = 100", 'saves = 100\ninterval = "1 h"'),
        "job.toml: policy: interval and saves contradict",
    ),
    "a cadence and optimal": (
        JOB.replace("saves = 100", 'saves = 100\noptimal = "time"'),
        "optimal and saves contradict",
    ),
    "second_every without a second tier": (
        JOB.replace("saves = 100", "saves = 100\nsecond_every = 5"),
        "policy.second_every: there is no second tier.*second_tier.id",
    ),
    "optimal without failures": (
        JOB.replace("saves = 100", 'optimal = "time"') + '[failures]\nrate = "0 /1000 node-days"\n',
        "policy.optimal: without failures.*failures.rate",
    ),
    "optimal for an unknown price": (
        JOB.replace("saves = 100", 'optimal = "carbon"') + '[site]\nid = "industry-average"\n',
        "policy.optimal.*carbon.*cannot be computed.*site.grid_location",
    ),
    "steps without the time of one": (JOB.replace("saves = 100", "steps = 100"), "policy.step"),
    "no cadence": (JOB.replace("saves = 100", ""), "policy: how often.*--interval"),
    "no training time": (JOB.replace('work = "200 h"', ""), "run.work"),
    "no size": (JOB.replace('size = "2 TB"', ""), "checkpoint: the size.*checkpoint.model"),
    "no GPUs": (JOB.replace('id = "h100-1024"', ""), "cluster.gpus"),
    "no rate": (JOB.replace('id = "nas-hdd"', ""), "tier.write: the write rate.*GB/s"),
    "a version from the future": ("schema_version = 2\n" + JOB, "job.toml: schema_version"),
    "a comparison with nothing": (JOB + "[compare]\nsaves = [0]\n", "saves.*at least 1"),
    "a comparison of text": (JOB + '[compare]\nsaves = ["many"]\n', "job.toml: compare.saves"),
    "a comparison with an unknown tier": (JOB + '[compare]\ntier = ["nas-hdb"]\n', "nas-hdb"),
    "a comparison with NaN": (JOB + "[compare]\nsaves = [nan]\n", "saves"),
    "a text of 200,000 characters": (JOB.replace("2 TB", "2" * 200_000), "checkpoint.size"),
    "a name of 1,000,000 characters": ('name = "' + "x" * 900_000 + '"\n' + JOB, "job.toml: name"),
}


@pytest.mark.parametrize("what", FILES)
def test_scenario_file(cli, job, what):
    content, says = FILES[what]
    refused(cli("model", "-s", job(content)), says=says)


@pytest.mark.parametrize("what", ["empty", "no unit", "two cadences", "no such tier", "not UTF-8"])
def test_sweep_refuses_the_same(cli, job, what):
    content, says = FILES[what]
    refused(cli("sweep", "-s", job(content), "--over", "gpus=8,16"), says=says)


@pytest.mark.parametrize(
    "content",
    [
        JOB.encode("utf-8-sig"),
        JOB.replace("\n", "\r\n").encode(),
        b"\xef\xbb\xbf" + JOB.replace("\n", "\r\n").encode(),
    ],
    ids=["BOM", "CRLF", "both"],
)
def test_what_editors_add_is_no_error(cli, job, content):
    plain = cli("model", "-s", job(JOB, "plain.toml"))
    assert cli("model", "-s", job(content)) == plain
    assert plain.code == 0


@pytest.mark.parametrize("limited", [True])
def test_dotted_keys_100000_deep_take_no_memory(shell, job, limited):
    """One line of 200 kB: refused quickly, in bounded memory."""
    file = job(".".join("a" * 100_000) + " = 1\n")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (700 << 20, 700 << 20))

    done = shell("model", "-s", file, preexec_fn=limit)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr[-300:]


def test_headers_100000_deep_are_quick(shell, job):
    done = shell("model", "-s", job("[" + ".".join("a" * 100_000) + "]\nb = 1\n"), timeout=10)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr[-300:]


VALUES = [
    "1",
    "true",
    "[]",
    "{}",
    '"x"',
    '""',
    "1.5",
    "2020-01-01",
    "[[1]]",
    "{value = 1}",
    '{value = "1"}',
    "{value = {value = 1}}",
    "{value = [1]}",
    "[{}]",
    "nan",
    "99999999999999999999",
]
SECTIONS = [
    "checkpoint",
    "tier",
    "second_tier",
    "cluster",
    "policy",
    "failures",
    "site",
    "run",
    "compare",
]
PLACES = {
    "checkpoint": ["model", "params", "size", "files"],
    "tier": ["id", "name", "write", "survives", "boundary", "write_per_capacity"],
    "second_tier": ["id", "write"],
    "cluster": ["id", "gpus", "accelerator", "price_includes_electricity", "gpu_price"],
    "policy": ["saves", "mode", "optimal", "pipelined", "keep_last", "when_busy"],
    "failures": ["rate", "detect"],
    "site": ["id", "grid", "pue", "tariff"],
    "run": ["work"],
    "compare": ["tier", "saves"],
}


def _one_message_or_done(ran, file: str) -> None:
    if ran.code == 0:
        assert ran.out
        assert ran.err == ""
    else:
        refused(ran)
        assert not re.search(r"instance of|pydantic|NoneType|object at 0x|<class", ran.err), ran.err


@pytest.mark.parametrize("value", VALUES)
def test_wrong_types_for_sections(cli, job, value):
    for section in [
        *SECTIONS,
        "name",
        "note",
        "extends",
        "id",
        "basis",
        "source",
        "schema_version",
    ]:
        body = JOB if section not in JOB else re.sub(rf"\[{section}\]\n.*\n", "", JOB)
        _one_message_or_done(cli("model", "-s", job(f"{section} = {value}\n" + body)), section)


@pytest.mark.parametrize("value", VALUES)
def test_wrong_types_for_keys(cli, job, value):
    for section, keys in PLACES.items():
        for key in keys:
            lines = [
                line
                for line in JOB.splitlines()
                if not line.startswith(f"{key} =")
                or section not in ("tier", "cluster", "checkpoint", "policy", "run")
            ]
            text = "\n".join(lines)
            text = (
                text.replace(f"[{section}]", f"[{section}]\n{key} = {value}")
                if f"[{section}]" in text
                else f"{text}\n[{section}]\n{key} = {value}"
            )
            _one_message_or_done(cli("model", "-s", job(text + "\n")), f"{section}.{key}")


# ---- the path itself


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("{tmp}/absent.toml", "absent.toml: no such file"),
        ("{tmp}", "is a folder"),
        ("{tmp}/", "is a folder"),
        ("{tmp}/folder.toml", "folder.toml: is a folder"),
        ("{tmp}/job.toml/x", "job.toml/x"),
        ("gpt4-scale-3tb", "'gpt4-scale-3tb'.*did you mean 'gpt4-scale-2tb'"),
        ("../defaults", "defaults"),
        ("x" * 5000, "no scenario named"),
        ("/" + "x" * 5000 + ".toml", "xxx"),
        ("a\0b.toml", "a.*b.toml"),
        ("a\0b", "no name of a file"),
        ("", "scenario"),
        (" ", "scenario"),
    ],
    ids=[
        "missing",
        "folder",
        "folder/",
        "folder.toml",
        "file as folder",
        "unknown preset",
        "traversal",
        "long id",
        "long path",
        "NUL in a path",
        "NUL in an id",
        "nothing",
        "blank",
    ],
)
def test_scenario_path(cli, tmp_path, name, says):
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "job.toml").write_text(JOB)
    refused(cli("model", "-s", name.format(tmp=tmp_path)), says=says)


def test_an_unreadable_file(cli, job, monkeypatch):
    """Permissions do not bite for root, so the refusal is the operating system's in effigy."""
    file = job(JOB)
    whole = Path.open

    def refuse(self, *args, **more):
        if str(self) == file:
            raise PermissionError(13, "Permission denied")
        return whole(self, *args, **more)

    monkeypatch.setattr(Path, "open", refuse)
    refused(
        cli("model", "-s", file), says="job.toml: cannot be read.*Permission denied.*permissions"
    )


def test_an_endless_file_is_not_read_to_its_end(shell):
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (700 << 20, 700 << 20))

    done = shell("model", "-s", "/dev/zero", preexec_fn=limit)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr[-300:]


def test_a_circle_of_three_files(cli, tmp_path):
    for here, there in ("ab", "bc", "ca"):
        (tmp_path / f"{here}.toml").write_text(f'extends = "./{there}.toml"\n')
    refused(
        cli("model", "-s", str(tmp_path / "a.toml")),
        says="a.toml -> b.toml -> c.toml -> a.toml. break the circle",
    )


def test_a_chain_too_long_says_so(cli, tmp_path):
    for n in range(60):
        (tmp_path / f"{n}.toml").write_text(f'extends = "./{n + 1}.toml"\n')
    (tmp_path / "60.toml").write_text(JOB)
    message = refused(cli("model", "-s", str(tmp_path / "0.toml")), says="extends")
    assert "circle" not in message, "sixty files in a row are no circle"


# ---- flags

FLAGS = {
    "--saves 0": (["model", "--saves", "0"], r"--saves.*\b0\b.*at least 1"),
    "--saves -1": (["model", "--saves", "-1"], "--saves.*-1"),
    "--saves=-1": (["model", "--saves=-1"], "--saves.*-1.*negative"),
    "--saves abc": (["model", "--saves", "abc"], "--saves: 'abc'"),
    "--saves 1e400": (["model", "--saves", "1e400"], "--saves: '1e400'"),
    "--saves nan": (["model", "--saves", "nan"], "--saves: 'nan'"),
    "--saves nothing": (["model", "--saves", ""], "--saves"),
    "--saves with a unit": (["model", "--saves", "1 TB"], "--saves: '1 TB'"),
    "--saves too many": (["model", "--saves", "2e12"], r"--saves.*at most 1e\+?12"),
    "--saves next to none": (["model", "--saves", "1e-300"], "--saves"),
    "--saves and --interval": (["model", "--saves", "4", "--interval", "1 h"], "contradict"),
    "--interval and policy.saves": (
        ["model", "--interval", "1 h", "--set", "policy.saves=4"],
        "contradict",
    ),
    "--saves and policy.interval": (
        ["model", "--saves", "4", "--set", "policy.interval=1 h"],
        "contradict",
    ),
    "--saves and optimal": (
        ["model", "--saves", "4", "--set", "policy.optimal=time"],
        "contradict",
    ),
    "two settings": (
        ["model", "--set", "policy.per_day=4", "--set", "policy.steps=4"],
        "contradict",
    ),
    "--mtbf and a rate": (
        ["model", "--mtbf", "6 h", "--set", "failures.rate=3 /1000 node-days"],
        "mtbf and rate contradict each other",
    ),
    "--mtbf without a unit": (["model", "--mtbf", "30"], "failures.mtbf.*has no unit.*30 min"),
    "--mtbf 0 s": (["model", "--mtbf", "0 s"], "failures.mtbf.*at least 0.001 s"),
    "--interval without a unit": (["model", "--interval", "30"], "--interval.*has no unit.*30 min"),
    "--interval of bytes": (["model", "--interval", "30 GB"], "--interval.*is bytes"),
    "a rate of no tier": (
        ["optimize", "--set", "tier.write=5e-324 GB/s"],
        "tier.write: .* is out of range. write must be at least 1 bytes_per_s",
    ),
    "a save of no bytes": (
        ["model", "--set", "checkpoint.size=1e-300 B"],
        "checkpoint.size: .* is out of range. size must be at least 1 bytes",
    ),
    "an axis of no rate": (
        ["sweep", "--over", "tier.write=1e-300 GB/s,1 GB/s"],
        "tier.write.*must be at least 1 bytes_per_s",
    ),
    "--interval 0 s": (["model", "--interval", "0 s"], "--interval.*at least 1e-06 s"),
    "--interval nothing": (["model", "--interval", ""], "--interval"),
    "--set without =": (
        ["model", "--set", "cluster.gpus"],
        "--set: 'cluster.gpus' is not path=value.*e.g.",
    ),
    "--set without a section": (["model", "--set", "gpus=8"], "--set: 'gpus=8' is not path=value"),
    "--set nothing": (["model", "--set", ""], "--set"),
    "--set an unknown section": (
        ["model", "--set", "tiers.write=1 GB/s"],
        "--set: no section named 'tiers'.*did you mean 'tier'",
    ),
    "--set an unknown key": (
        ["model", "--set", "tier.wrote=1 GB/s"],
        "--set: no key in tier named 'wrote'. did you mean 'write'",
    ),
    "--set no value": (["model", "--set", "tier.write="], "--set: tier.write"),
    "--set a bad truth": (
        ["model", "--set", "policy.pipelined=maybe"],
        "policy.pipelined.*true or false",
    ),
    "--set a bad word": (
        ["model", "--set", "policy.mode=fast"],
        "policy.mode.*'fast'.*async, sync",
    ),
    "--set steps alone": (["model", "--set", "policy.steps=4"], "policy.step"),
    "--set second_every": (
        ["model", "--set", "policy.second_every=4"],
        "policy.second_every: there is no second tier",
    ),
    "--set optimal, no failures": (
        ["model", "--set", "policy.optimal=time", "--set", "failures.rate=0 /1000 node-days"],
        "policy.optimal: without failures",
    ),
    "--tier unknown": (["model", "--tier", "nas-hdb"], "'nas-hdb'.*did you mean 'nas-hdd'"),
    "--tier nothing": (["model", "--tier", ""], "tier"),
    "--tier path": (["model", "--tier", "../sites/usa"], "no tier named '../sites/usa'"),
    "--tier of the file's name": (["model", "--tier", "nas-hdd.toml"], "did you mean 'nas-hdd'"),
    "--tier NUL": (["model", "--tier", "a\0b"], "control character"),
    "--tier huge": (["model", "--tier", "x" * 100_000], "longer than 4,000 characters"),
    "--tier dots": (["model", "--tier", ".."], "no tier named"),
    "--tier surrogate": (["model", "--tier", "\udcff"], "not text in UTF-8"),
    "--against unknown": (["model", "--against", "nas-hdb"], "'nas-hdb'.*did you mean 'nas-hdd'"),
    "--against nothing": (["model", "--against", ""], "tier"),
    "-f unknown": (["model", "-f", "xml"], "xml.*text.*json.*csv.*md"),
    "unknown flag": (["model", "--tire", "x"], "--tire"),
    "a stray word": (["model", "gpt4-scale-2tb"], "gpt4-scale-2tb"),
    "unknown command": (["modle"], "'modle'.*did you mean 'model'"),
    "command like no other": (["xyzzy"], "'xyzzy'.*`ckptcost --help` lists them"),
    "unknown kind": (["catalog", "tire"], "'tire'.*did you mean.*tier"),
    "unknown entry": (["catalog", "tier", "nas-hdb"], "did you mean 'nas-hdd'"),
    "entry by path": (["catalog", "tier", "../sites/usa"], "no tier named"),
    "unknown source": (["catalog", "source", "llama-paper"], "llama3-paper"),
    "unknown accelerator": (["catalog", "accelerator", "h100sxm"], "h100-sxm"),
    "unknown grid": (["catalog", "grid", "SWEE"], "SWE"),
    "unknown scenario": (["catalog", "scenario", "small8b"], "small-8b"),
    "check nothing": (["check"], "file"),
    "check a folder": (["check", "/"], "is a folder"),
    "check nothing there": (["check", "/absent.json"], "/absent.json: no such file"),
    "check a NUL": (["check", "a\0b"], "a.*b"),
    "sweep without axes": (["sweep"], "--over"),
    "unknown axis": (
        ["sweep", "--over", "tire=a,b"],
        "--over: no axis named 'tire'. did you mean 'tier'",
    ),
    "unknown axis by key": (["sweep", "--over", "tier.wrote=1 GB/s"], "did you mean 'write'"),
    "no axis name": (["sweep", "--over", "=1"], "--over"),
    "no values": (["sweep", "--over", "saves="], "--over.*name=values"),
    "no =": (["sweep", "--over", "saves"], "--over.*name=values"),
    "an empty value": (["sweep", "--over", "tier=nas-hdd,,generic-pfs"], "--over"),
    "an unknown tier": (["sweep", "--over", "tier=nas-hdb"], "did you mean 'nas-hdd'"),
    "two points": (["sweep", "--over", "saves=1:2"], "start:stop:step"),
    "four points": (["sweep", "--over", "saves=1:2:3:4"], "start:stop:step"),
    "step 0": (["sweep", "--over", "saves=1:9:0"], "upwards"),
    "downwards": (["sweep", "--over", "saves=9:1:1"], "upwards"),
    "factor 1": (["sweep", "--over", "saves=1:9:*1"], "upwards"),
    "no factor": (["sweep", "--over", "saves=1:9:*"], "--over: saves"),
    "not a number": (["sweep", "--over", "saves=few"], "--over: saves: 'few'"),
    "NaN on an axis": (["sweep", "--over", "saves=1:nan:1"], "--over: saves: 'nan'"),
    "infinity on an axis": (["sweep", "--over", "saves=1:inf:1"], "--over: saves: 'inf'"),
    "0 on an axis": (
        ["sweep", "--over", "saves=0:10:1"],
        "--over: saves: '?0'? is out of range.*at least 1",
    ),
    "negative on an axis": (["sweep", "--over", "saves=-1"], "--over: saves: '?-1"),
    "too much on an axis": (
        ["sweep", "--over", "failures.node_loss_fraction=0.5,1.5"],
        "1.5'? is out of range.*at most 1",
    ),
    "no unit on an axis": (
        ["sweep", "--over", "interval=1,2"],
        "--over: interval: '1' has no unit",
    ),
    "1e12 rows": (["sweep", "--over", "saves=1:1e12:1"], "--over: saves.*5,000,000"),
    "1e12 rows by product": (
        ["sweep", "--over", "saves=1:1e6:1", "--over", "gpus=1:1e6:1"],
        "--over.*rows.*5,000,000",
    ),
    "tiny step": (["sweep", "--over", "saves=1:2:1e-300"], "--over: saves"),
    "the same axis twice": (
        ["sweep", "--over", "tier=nas-hdd", "--over", "saves=1,2", "--over", "saves=3,4"],
        "saves.*(twice|once)",
    ),
    "the same axis by two names": (
        ["sweep", "--over", "tier=nas-hdd", "--over", "tier.id=generic-pfs"],
        "tier.*(twice|once)",
    ),
    "two cadences as axes": (
        ["sweep", "--over", "tier=nas-hdd", "--over", "saves=1,2", "--over", "interval=1 h,2 h"],
        "contradict",
    ),
    "an axis against a flag": (
        ["sweep", "--over", "tier=nas-hdd", "--over", "saves=1,2", "--interval", "1 h"],
        "contradict",
    ),
}


@pytest.mark.parametrize("what", FLAGS)
def test_flags(cli, what):
    words, says = FLAGS[what]
    refused(cli(*words), says=says)


@pytest.mark.parametrize(
    ("words", "most"),
    [
        (["model", "--set", "tier.write=" + "9" * 5000 + " GB/s"], LONGEST),
        (["model", "--set", "x" * 50_000], LONGEST),
        (["y" * 50_000], LONGEST),
        (["sweep", "--over", "z" * 50_000], LONGEST),
        (["sweep", "--over", "saves=" + "1" * 50_000], LONGEST),
        (["catalog", "x" * 50_000], LONGEST),
    ],
    ids=["value", "setting", "command", "axis", "axis value", "kind"],
)
def test_a_message_does_not_repeat_50000_characters(cli, words, most):
    assert len(refused(cli(*words))) <= most


def test_a_refused_command_leaves_no_file(cli, tmp_path):
    target = tmp_path / "out.json"
    refused(cli("model", "--tier", "nas-hdb", "-f", "json", "-o", str(target)), says="nas-hdb")
    refused(
        cli("sweep", "--over", "tier=nas-hdd,nas-hdb", "-f", "csv", "-o", str(target)),
        says="nas-hdb",
    )
    assert list(tmp_path.iterdir()) == []


def test_a_refused_sweep_prints_no_rows(cli):
    """The bad tier comes second: the first one's rows must not be out already."""
    for form in ("text", "json", "csv", "md"):
        refused(
            cli("sweep", "--over", "tier=nas-hdd,nas-hdb", "--over", "saves=1,2", "-f", form),
            says="nas-hdb",
        )


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"{", "not valid JSON"),
        (b"[]", "is no document of ckptcost's"),
        (b"1e400", "is no document of ckptcost's"),
        (b"NaN", "NaN"),
        (
            b'{"schema_name": "ckptcost.report", "schema_version": "3.0"}',
            r"is of the schema ckptcost.report '?3.0'?, this program reads ckptcost.report 2.x"
            ".* newer ckptcost",
        ),
        (
            b'{"schema_name": "ckptcost.report", "schema_version": "1.0"}',
            r"this program reads ckptcost.report 2.x.* write it again",
        ),
        (
            b'{"schema_name": "ckptcost.study", "schema_version": "1.4"}',
            r"is of the schema ckptcost.study '?1.4'?, this program .* write it again",
        ),
        (
            b'{"schema_name": "ckptcost.statement", "schema_version": "1.0"}',
            "is of the schema ckptcost.statement .* write it again",
        ),
        (
            b'{"schema_name": "ckptcost.diff", "schema_version": "1.0"}',
            "is of the schema ckptcost.diff .* write it again",
        ),
        (b'{"schema_name": "ckptcost.report", "schema_version": "2.0"}', "report_id: field req"),
        (b'{"schema_name": "ckptcost.report"}', "schema_version"),
        (b"[" * 100_000, "not valid JSON|nested too deep"),
        (b'{"a":' * 100_000, "not valid JSON|nested too deep"),
        (b"9" * 10_000, "report.json"),
        (b"\xff\xfe\x00", "UTF-8"),
        (bytes(range(256)), "UTF-8"),
        (b'{"schema_name": "ckptcost.report", "schema_version": 1}', "schema_version"),
        (
            b'{"schema_name": "ckptcost.sweep", "schema_version": "1.0"}',
            "is no document but the rows of a sweep",
        ),
    ],
    ids=[
        "empty",
        "cut",
        "list",
        "1e400",
        "NaN",
        "newer",
        "older",
        "a study",
        "a statement",
        "a difference",
        "bare",
        "no version",
        "deep list",
        "deep object",
        "5000 digits",
        "UTF-16",
        "binary",
        "number",
        "sweep",
    ],
)
def test_check_refuses(cli, tmp_path, content, says):
    file = tmp_path / "report.json"
    file.write_bytes(content)
    message = refused(cli("check", str(file)), says=says)
    assert "report.json" in message
    assert "scenario" not in message, "this is not about a scenario"


def test_check_refuses_what_is_too_large_for_a_document(cli, tmp_path, monkeypatch):
    monkeypatch.setattr(read, "MOST_BYTES", 50_000_000)
    file = tmp_path / "report.json"
    file.write_bytes(b" " * 50_000_000)
    refused(cli("check", str(file)), says="is empty")
    file.write_bytes(b" " * 50_000_001)
    assert "report.json" in refused(cli("check", str(file)), says="larger than 50 MB")


def test_as_a_real_process(shell, tmp_path):
    done = shell("model", "-s", str(tmp_path / "absent.toml"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"ckptcost: {tmp_path}/absent.toml: no such file\n"


# ---- what is no file to read: at once, before anything is read


@pytest.fixture
def pipe(tmp_path):
    """A named pipe that nobody writes to: whoever opens it waits for ever."""
    file = tmp_path / "pipe"
    os.mkfifo(file)
    return str(file)


READ_FROM_FILES = {
    "check": ["check", "{}"],
    "report": ["report", "{}"],
    "grid": ["report", "{}", "--grid", "{}"],
    "export": ["export", "{}", "--to", "openmetrics"],
    "diff": ["diff", "{}", "{}"],
    "trace": ["simulate", "--trace", "{}"],
    "scenario": ["model", "-s", "{}"],
    "sheet": ["audit", "{}"],
    "room": ["fits", "{}"],
    "calibration": ["calibrate", "{}", "--as", "x"],
    "run": ["runs", "show", "{}"],
    "served": ["serve-metrics", "{}"],
    "fleet": ["fleet", "{}"],
}


@pytest.mark.parametrize("name", READ_FROM_FILES)
def test_a_pipe_that_nobody_writes_to_is_refused_at_once(name, pipe, shell):
    done = shell(*(word.format(pipe) for word in READ_FROM_FILES[name]), timeout=20)
    assert done.returncode == 2, done.stderr
    assert "pipe" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["check", "report"])
def test_a_file_that_is_too_large_is_refused_before_it_is_read(command, tmp_path, cli, monkeypatch):
    file = tmp_path / "huge.json"
    with file.open("wb") as stream:
        stream.write(b"{")
        stream.truncate(40_000_000_000)  # a hole: reading it would take memory for good
    refused(cli(command, str(file)), says="huge.json: is larger than 300 MB")


def test_what_a_terminal_would_obey_is_shown_in_a_message(cli, tmp_path):
    file = tmp_path / "contracts.toml"
    file.write_text('[[site]]\nid = "us\\u001b]0;x\\u0007\\u202e"\nresidual = "0.4 kg/kWh"\n')
    report = tmp_path / "report.json"
    assert cli("model", "-s", "small-8b", "-f", "json", "-o", str(report)).code == 0
    ran = cli("report", str(report), "--contracts", str(file), "--start", "2026-01-01")
    assert "us\\x1b]0;x\\x07\\u202e" in refused(ran)


def test_half_of_a_letter_in_a_document_is_refused(cli, tmp_path):
    report = tmp_path / "report.json"
    assert cli("model", "-s", "small-8b", "-f", "json", "-o", str(report)).code == 0
    text = report.read_text("utf-8")
    report.write_text(text.replace('"title": "', '"title": "\\ud83d\\ude00 ', 1), "utf-8")
    assert cli("report", str(report)).code == 0, "a whole pair is a letter"
    report.write_text(text.replace('"title": "', '"title": "\\ud800 ', 1), "utf-8")
    refused(cli("check", str(report)), says="report.json: is not valid JSON: it holds half")


def test_marks_that_turn_the_direction_of_writing_are_escapes_in_json_too(cli, tmp_path):
    file = tmp_path / "job.toml"
    file.write_text('name = "a\u202eb"\n' + JOB, "utf-8")
    ran = cli("model", "-s", str(file), "-f", "json")
    assert ran.code == 0, ran.err
    assert "\u202e" not in ran.out
    assert "a\\u202eb" in ran.out


def test_a_factor_of_no_input_is_named(cli, tmp_path):
    report = tmp_path / "report.json"
    assert cli("model", "-s", "small-8b", "-f", "json", "-o", str(report)).code == 0
    text = report.read_text("utf-8").replace('"id": "tier.write_energy"', '"id": "po.write_energy"')
    report.write_text(text, "utf-8")
    refused(cli("check", str(report)), says="po.write_energy: is not an input this version knows")


@pytest.mark.parametrize(
    ("key", "unit"),
    [
        ("rate", "/node-day"),
        ("gpu_rate", "/GPU-day"),
        ("shared_rate", "/day"),
        ("rack_rate", "/day"),
    ],
)
def test_more_failures_than_anything_has(key, unit, cli):
    ran = cli("optimize", "-s", "small-8b", "--set", f"failures.{key}=9.2e18 {unit}")
    refused(ran, says=f"failures.{key}: .* is out of range. {key} must be at least 0 and at most 1")
