"""What the first edition still answers, and what its verbs are called now.

`translated` turns a command line into the one that the first edition knows, or says that the new
code answers it. A verb that gets a new form loses its line here.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from ckptcost.errors import InputError

Words = list[str]

NOW = {
    "sweep": "ckptcost model JOB --over tier.write=2:40:2",
    "optimize": "ckptcost interval",
    "solve": "ckptcost need",
    "sensitivity": "ckptcost model JOB --inputs",
    "lead": "ckptcost interval",
    "fits": "ckptcost model JOB --dir FOLDER",
    "diff": "ckptcost compare OLD.json NEW.json",
    "check": "ckptcost report FILE.json --check",
    "attach": "ckptcost run --pid N",
    "measure": 'ckptcost run --for "60 s"',
    "runs": "ckptcost report",
    "serve-metrics": "ckptcost export RUN --to prometheus",
    "selftest": "ckptcost doctor DIR",
    "completion": "ckptcost --print-completion bash",
    "man": "ckptcost help",
    "screen": "ckptcost",
}
"""verbs of the first edition, and what to type instead"""

SWITCHES = {
    *("--check", "--detail", "--list", "--force", "--json", "--quiet", "-q", "--dry-run", "--all"),
    *("--anyway", "--one-size", "--no-read", "--no-verify", "--no-load", "--keep-interval"),
}
"""flags without a value: the word behind one of them is no value of it"""
SCHEMA = "ckptcost.answer/3"


def translated(words: Words) -> Words | None:
    """The first edition's words for a command line; None if the new code answers it."""
    found = FORMS[words[0]](words[1:]) if words[0] in FORMS else None
    return found and [*_spelled(own(found)), *found[len(own(found)) :]]


def own(words: Words) -> Words:
    """Without the command that `run` is to start."""
    return words[: words.index("--")] if "--" in words else words


def _spelled(words: Words) -> Words:
    """The first edition says --full, and takes the format from -f alone."""
    said = ["--full" if word == "--detail" else word for word in words]
    out = next((b for a, b in pairwise(said) if a in ("-o", "--output")), "")
    form = {".html": "html", ".json": "json", ".csv": "csv", ".md": "md"}.get(Path(out).suffix)
    formless = not {"-f", "--format"} & set(said) and said[0] not in ("export", "fleet", "run")
    return [*said, "-f", form] if form and formless else said


def places(words: Words) -> Words:
    """The words that are no flags and no values of flags."""
    return [
        word
        for last, word in pairwise(["", *words])
        if word[:1] != "-" and (last[:1] != "-" or "=" in last or last in SWITCHES)
    ]


def _value(words: Words, flag: str) -> tuple[str | None, Words]:
    """The value of a flag, and the words without both."""
    for at, word in enumerate(own(words)):
        if word == flag and at + 1 < len(words):
            return words[at + 1], words[:at] + words[at + 2 :]
        if word.startswith(f"{flag}="):
            return word.partition("=")[2], words[:at] + words[at + 1 :]
    return None, words


def _run(words: Words) -> Words:
    pid, rest = _value(words, "--pid")
    if pid is not None:
        return ["attach", pid, *rest]
    if "--" not in words and not places(words):
        length, rest = _value(words, "--for")
        if length is not None:
            return ["measure", "--for", length, *rest]
        raise InputError("names no command", "run", "write e.g. ckptcost run -- python train.py")
    return ["run", *words]


def _fleet(words: Words) -> Words:
    if words[:1] == ["pack"] and _value(words, "--store")[0] is None:
        remedy = "write e.g. ckptcost fleet pack last --store DIR"
        raise InputError("names no store", "fleet pack", remedy)
    return ["runs" if words[:1] == ["pack"] else "fleet", *words]


def _report(words: Words) -> Words | None:
    asked, check = places(words), "--check" in words
    if asked and is_answer(asked[0]):
        return None
    if check and not asked:
        raise InputError("FILE is missing", "report --check", "name a saved answer")
    rest = [word for word in words if word != "--check"]
    return [*(["check"] if check else ["report"] if asked else ["runs", "list"]), *rest]


def _export(words: Words) -> Words | None:
    asked = places(words)
    return None if not asked or is_answer(asked[0]) else ["export", *words]


def _compare(words: Words) -> Words | None:
    asked = places(words)
    if any(map(is_run, asked)):
        said = [f"run:{word}" if word == "last" else word for word in words]
        return ["compare", *said]
    documents = asked and all(word.endswith(".json") and Path(word).is_file() for word in asked)
    return ["diff", *words] if documents and not any(map(is_answer, asked)) else None


FORMS: dict[str, Callable[[Words], Words | None]] = {
    "run": _run,
    "probe": lambda words: ["probe", *words],
    "report": _report,
    "calibrate": lambda words: ["calibrate", *words],
    "export": _export,
    "fleet": _fleet,
    "doctor": lambda words: ["selftest" if places(words) else "doctor", *words],
    "compare": _compare,
}
"""by verb: its words for the first edition"""


def is_answer(name: str) -> bool:
    """A file that holds an answer of this edition."""
    path = Path(name)
    if path.suffix != ".json" or not path.is_file():
        return False
    with path.open("rb") as file:
        return SCHEMA.encode() in file.read(65536)


def is_run(name: str) -> bool:
    """A recording: "last", "run:ID", a folder of readings or a file of them."""
    if name == "last" or name.startswith("run:"):
        return True
    path = Path(name)
    if name and path.is_dir():
        return any(path.glob("*.jsonl"))
    return path.suffix == ".jsonl"


def add_flags(parser: Any, verb: str) -> None:
    """The flags of a verb that the first edition answers."""
    from importlib import import_module

    if verb == "run":
        parser.add_argument("--pid", metavar="N", help="follow this process instead of a command")
        parser.add_argument("--for", metavar="TIME", help="so long; alone: the machine by itself")
    module = import_module(f"ckptcost.first.cli.{verb}_")
    module.arguments(parser)
    parser.epilog = module.EPILOG


def main(words: Words) -> int:
    """Hand a command line to the first edition."""
    from ckptcost.first.cli.main import main as first_edition

    return first_edition(words)
