"""What the first edition still answers, and what its verbs are called now.

`translated` turns a command line into the one that the first edition knows, or says that the new
code answers it. A verb that gets a new form loses its line here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from ckptcost.errors import InputError

if TYPE_CHECKING:
    from argparse import ArgumentParser

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
    "selftest": "ckptcost doctor DIR",
    "completion": "ckptcost --print-completion bash",
    "man": "ckptcost help",
}
"""verbs of the first edition that are refused, and what to type instead"""
STILL = {
    "screen": "ckptcost",
    "measure baseline": "",
    "measure": 'ckptcost run --for "60 s"',
    "runs show": "ckptcost report RUN",
    "runs pack": "ckptcost fleet pack RUN --store DIR",
    "runs": "ckptcost report",
    "serve-metrics": "",
}
"""verbs that the first edition answers as they are, and the new spelling of those that have one"""
SCREEN = {
    *("-s", "--scenario", "--interval", "--mtbf", "--set", "--go", "--meters", "--demo", "--plain"),
    *("--fresh", "--serve"),
}
"""flags of the screen, which has no verb"""
HALVES = {
    "run": {"run": "run", "attach": "run --pid", "measure": "run"},
    "probe": {"probe": "probe"},
    "report": {"report": "report", "runs list": "report"},
    "calibrate": {"calibrate": "calibrate"},
    "export": {"export": "export"},
    "fleet": {"fleet": "fleet", "runs pack": "fleet pack"},
    "doctor": {"doctor": "doctor", "selftest": "doctor"},
}
"""verbs of the first edition whose flags a verb takes, and how they are typed"""
SWITCHES = {
    *("--check", "--detail", "--list", "--force", "--json", "--quiet", "-q", "--dry-run", "--all"),
    *("--anyway", "--one-size", "--no-read", "--no-verify", "--no-load", "--keep-interval"),
}
"""flags without a value: the word behind one of them is no value of it"""


SCHEMA = b"ckptcost.answer/3"


def translated(words: Words) -> Words | None:
    """The first edition's words for a command line; None if the new code answers it."""
    if not words or words[0].partition("=")[0] in SCREEN:
        return ["screen", *words]
    if words[0] in STILL:
        now = STILL.get(" ".join(words[:2]), STILL[words[0]])
        if now:
            print(f"ckptcost: {words[0]} is now: {now}", file=sys.stderr)
        return words
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


def _run(words: Words) -> Words:
    apart = [part for word in own(words) for part in word.split("=", int(word[:2] == "--"))]
    if "--pid" in apart[:-1]:
        at = apart.index("--pid")
        return ["attach", apart[at + 1], *apart[:at], *apart[at + 2 :]]
    if "--" in words or places(words):
        return ["run", *words]
    if "--for" not in apart:
        remedy = "write e.g. ckptcost run -- python train.py"
        raise InputError("names no command", "run", remedy)
    return ["measure", *words]


def _fleet(words: Words) -> Words:
    if words[:1] == ["pack"] and not any(word.startswith("--store") for word in words):
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
    if not asked or is_answer(asked[0]):
        return None
    if not is_run(asked[0]) and not _holds(asked[0], b"ckptcost") and Path(asked[0]).suffix:
        remedy = "write one with ckptcost model JOB -o plan.json"
        raise InputError("is no answer of ckptcost's and no recording", asked[0], remedy)
    return ["export", *words]


def _compare(words: Words) -> Words | None:
    asked = places(words)
    if any(map(is_run, asked)):
        return ["compare", *(f"run:{word}" if word == "last" else word for word in words)]
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
    return _holds(name, SCHEMA)


def _holds(name: str, text: bytes) -> bool:
    """A file that has a text near its beginning."""
    path = Path(name)
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return text in file.read(65536)


def is_run(name: str) -> bool:
    """A recording: "last", "run:ID", a folder of readings or a file of them."""
    path = Path(name)
    held = path.is_dir() and any(path.glob("*.jsonl"))
    return name == "last" or name.startswith("run:") or path.suffix == ".jsonl" or held


def parsers(verb: str) -> Iterator[ArgumentParser]:
    """What the first edition knows of a verb."""
    if verb in HALVES:
        from ckptcost.first.cli.main import parser_for

        for old, now in HALVES[verb].items():
            parser = parser_for(old)
            parser.prog = f"ckptcost {now}"
            parser.epilog = parser.epilog if old == now else ""
            yield parser


def main(words: Words) -> int:
    """Hand a command line to the first edition."""
    from ckptcost.first.cli.main import main as first_edition

    return int(first_edition(words))
