"""How long a command takes from the shell, and what it drags in."""

from __future__ import annotations

import sys

from measure import COMMAND, Row, differences, figures, interleaved, process, ratios, said_by, table
from scenarios import PRESET

HEAVY = ("numpy", "pydantic", "pandas", "rich", "textual")
MODELS = {
    "model": ["model"],
    f"model -s {PRESET}": ["model", "-s", PRESET],
    "model -f json": ["model", "-f", "json"],
}
COMMANDS = {"--help": ["--help"], "--version": ["--version"], **MODELS}
# the command's own output goes to stderr, which leaves stdout for the answer
LOADED = """
import sys
answer, sys.stdout = sys.stdout, open("/dev/null", "w")
words = sys.argv[1:]
if words:
    from ckptcost.first.cli.main import main
    main(words)
else:
    import ckptcost
print(*sys.modules, file=answer)
"""


def measure(rounds: int = 21) -> str:
    """Times and ratios of whole processes, and the libraries that each loads."""
    python = sys.executable
    t = interleaved(
        {
            "bare": process(python, "-c", "pass"),
            "import": process(python, "-c", "import ckptcost"),
            "floor": process(python, "-c", "import numpy, pydantic"),
            "numpy": process(python, "-c", "import numpy"),
            "BaseModel": process(python, "-c", "import numpy; from pydantic import BaseModel"),
            **{name: process(COMMAND, *words) for name, words in COMMANDS.items()},
        },
        rounds,
    )
    rows = [
        Row("`ckptcost --help`", t["--help"], "ms", 80),
        Row("`ckptcost --version`", t["--version"], "ms", 80),
        Row(
            "`import ckptcost`, less a bare `python -c pass`",
            differences(t["import"], t["bare"]),
            "ms",
            40,
        ),
    ]
    for name in MODELS:
        rows += [
            Row(
                f"`ckptcost {name}` over `import numpy, pydantic`",
                ratios(t[name], t["floor"]),
                "x",
                2,
            ),
            Row(
                f"`ckptcost {name}` over `import numpy; from pydantic import BaseModel`",
                ratios(t[name], t["BaseModel"]),
                "x",
            ),
            Row(f"`ckptcost {name}`", t[name], "ms"),
        ]
    rows += [
        Row("`python -c pass`", t["bare"], "ms"),
        Row("`python -c 'import numpy'`", t["numpy"], "ms"),
        Row("`python -c 'import numpy, pydantic'`", t["floor"], "ms"),
        Row("`python -c 'import numpy; from pydantic import BaseModel'`", t["BaseModel"], "ms"),
    ]
    return figures(rows) + "\n" + _loaded()


def _loaded() -> str:
    """A table of the libraries in sys.modules at the end of each command."""
    lines = []
    for name, words in {
        "import ckptcost": [],
        **{f"ckptcost {name}": words for name, words in COMMANDS.items()},
    }.items():
        modules = said_by(sys.executable, "-c", LOADED, *words).split()
        said = ["yes" if library in modules else "no" for library in HEAVY]
        if words[:1] != ["model"] and "yes" in said:
            said = [f"**{word}**, the budget is none" if word == "yes" else word for word in said]
        lines.append((f"`{name}`", *said, str(len(modules))))
    return table(("loaded by", *HEAVY, "modules in all"), lines)


if __name__ == "__main__":
    print(measure())
