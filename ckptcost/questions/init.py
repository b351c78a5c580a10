"""A job file to start from."""

from __future__ import annotations

import os
import tomllib
from textwrap import wrap
from typing import Annotated

from ckptcost.answer import Answer, Say
from ckptcost.errors import InputError, OutputError
from ckptcost.questions.common import Flag
from ckptcost.scenario.schema import KEYS

WIDTH = 30
"""columns before the comments"""
SHORT = """\
name = "my job"
[checkpoint]
params = "70B"                # or size = "980 GB"
[tier]
write = "25 GB/s"             # of the whole system; ckptcost catalog lustre
[cluster]
id = "h100-1024"              # ckptcost catalog cluster
gpus = 512
gpu_price = "2.50 USD/GPU-h"  # yours; list price if left out
[failures]
mtbf = "20 h"                 # yours; estimated from the size if left out
[policy]
mode = "async"
interval = "30 min"
[run]
work = "30 days"
"""


def init(
    file: Annotated[str, Flag("the file to write, e.g. job.toml", "FILE", place=True)],
    *,
    all: Annotated[bool, Flag("every key with its meaning, as comments")] = False,  # noqa: A002
) -> Answer:
    """Write a 20-line job file to start from.

    ckptcost init job.toml
    ckptcost init job.toml --all
    """
    if not file.endswith(".toml"):
        raise InputError("is no TOML file", file, f"write ckptcost init {file}.toml")
    try:
        with open(file, "x", encoding="utf-8") as out:
            out.write(every_key() if all else SHORT)
    except FileExistsError:
        raise InputError("is there already", file, "name another file, or remove it") from None
    except OSError as error:
        if os.path.exists(file):
            os.unlink(file)  # half a file is none
        raise OutputError(f"could not be written ({error.strerror})", file) from None
    notes = [
        Say("What its checkpoints cost:", "", f"ckptcost model {file}"),
        Say("How often it should save:", "", f"ckptcost interval {file}"),
    ]
    return Answer("init", f"{file} is written; put your own figures in", "", [], [], notes)


def every_key() -> str:
    """The short file, with every other key of each section as a comment."""
    head, *parts = SHORT.rstrip().split("\n[")
    short = {part.partition("]")[0]: f"[{part}" for part in parts}
    lines = [head]
    for section, keys in KEYS.items():
        said = tomllib.loads(SHORT).get(section, ())
        lines += ["", short.get(section, f"# [{section}]")]
        lines += [_comment(key, **keys[key].metadata) for key in keys if key not in said]
    return "\n".join(lines) + "\n"


def _comment(
    key: str, example: str = "", meaning: str = "", options: tuple[object, ...] = (), **_: object
) -> str:
    """One key; a meaning that is too long for its line stands below."""
    choices = [str(each).lower() if isinstance(each, bool) else f'"{each}"' for each in options]
    value = f'"{example}"' if example else next((each for each in choices if each != '""'), '"..."')
    first, words = f"# {key} = {value}", meaning or " or ".join(choices).replace('"', "")
    if len(first) < WIDTH and len(words) <= 100 - WIDTH - 2:
        return f"{first:<{WIDTH}}# {words}"
    return "\n".join([first, *(f"#{'':<{WIDTH - 1}}# {x}" for x in wrap(words, 98 - WIDTH))])
