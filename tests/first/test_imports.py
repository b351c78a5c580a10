"""The shape of the house: layers, names, docstrings, and who knows how many joules are in a kWh."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted(path for path in (ROOT / "ckptcost").rglob("*.py") if "_bundled" not in path.parts)


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_layers_hold():
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from importlinter.cli import lint_imports_command; lint_imports_command()",
            "--no-cache",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-500:]
    assert " 0 broken" in done.stdout


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_module(path):
    source = path.read_text("utf-8")
    tree = parsed(path)
    assert ast.get_docstring(tree), "a module says what it is for"
    if path.stem not in ("__init__", "__main__"):
        assert path.stem not in sys.stdlib_module_names, "shadows a module of the standard library"
    if path.relative_to(ROOT).as_posix() != "ckptcost/first/core/units.py":
        found = [
            line
            for line in source.splitlines()
            if ">>>" not in line
            and re.search(r"3[._]?6e\+?0?6|3_?600_?000|3\.6e-|2\.77+8?e-0?7", line, re.I)
        ]
        assert found == [], "only core/units.py knows how many joules are in a kWh"


ONLINE = "ckptcost/first/meters/redfish.py"
"""the one module that may: it asks the management controller that the user names, and nothing
else"""
WITHIN = "ckptcost/first/hooks/wire.py"
"""a socket in a folder of this machine, between a job and the recorder that wraps it"""


def test_the_socket_of_the_hooks_stays_on_this_machine():
    source = (ROOT / WITHIN).read_text("utf-8")
    families = set(re.findall(r"\bAF_\w+", source))
    assert families == {"AF_UNIX"}
    assert not re.search(r"create_connection|create_server|getaddrinfo|gethostby", source)


SERVED = "ckptcost/first/exports/metrics_server.py"
"""listens where its user says, on this machine alone unless told otherwise; it calls nobody"""


SCREEN = "ckptcost/first/tui/serving.py"
"""listens on this machine alone; it calls nobody"""


@pytest.mark.parametrize("module", [SERVED, SCREEN])
def test_what_is_served_calls_nobody(module):
    source = (ROOT / module).read_text("utf-8")
    assert not re.search(r"create_connection|HTTPConnection|urlopen|\.connect\(", source)


def test_the_served_screen_listens_on_this_machine_alone():
    tree = parsed(ROOT / SCREEN)
    (host,) = [
        node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "HOST"
    ]
    assert host == "127.0.0.1"
    (listening,) = re.findall(r"create_server\(.*", (ROOT / SCREEN).read_text("utf-8"))
    assert listening == "create_server((HOST, port)):"


@pytest.mark.parametrize(
    "path",
    [path for path in MODULES if name_of(path) not in (ONLINE, WITHIN, SERVED, SCREEN)],
    ids=name_of,
)
def test_nothing_reaches_for_the_network(path):
    nodes = list(ast.walk(parsed(path)))
    names = {
        alias.name.split(".")[0]
        for node in nodes
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    # urllib.parse writes and reads names with odd letters, and calls nobody
    names |= {
        (node.module or "").split(".")[0]
        for node in nodes
        if isinstance(node, ast.ImportFrom) and node.module != "urllib.parse"
    }
    assert names & {"socket", "urllib", "http", "requests", "ssl", "ftplib", "smtplib"} == set()


def test_models_and_data_hold_no_python():
    assert [
        p
        for folder in ("models", "data")
        for p in (ROOT / folder).rglob("*")
        if p.suffix in (".py", ".pyc", ".so")
    ] == []


FIRST_FRAME = """
import asyncio
from ckptcost.first.tui.app import CkptcostApp
from ckptcost.first.tui.screens import model
model.IDLE_S = 600.0  # what follows when nobody types comes after the first frame
async def shown(app):
    async with app.run_test(size=(120, 36)):
        assert app.screen.view is not None
asyncio.run(shown(CkptcostApp()))
"""
OF_THE_MODEL = {
    "__init__",
    "base",
    "editing",
    "model",
    "model_runs",
    "model_view",
}
"""the model's screen, which comes first, and its words"""
OTHER_SCREENS = {
    f"ckptcost.first.tui.screens.{path.stem}"
    for path in (ROOT / "ckptcost" / "first" / "tui" / "screens").glob("*.py")
    if path.stem not in OF_THE_MODEL
}
NOT_SEEN_FIRST = {
    "ckptcost.first.questions.optimize",
    "ckptcost.first.core.interruptions",
    "ckptcost.first.core.walk",
    "ckptcost.first.jobs.optimize",
    "ckptcost.first.jobs.walks",
    "ckptcost.first.meters",
    "ckptcost.first.report.document",
    "ckptcost.first.report.study_views",
    "ckptcost.first.report.studies",
    "ckptcost.first.runs",
    "ckptcost.first.savers",
    "ckptcost.first.tui.screens.interval_view",
    "ckptcost.first.watch",
    "markdown_it",
    "numpy.fft",
    "numpy.ma",
    "numpy.polynomial",
    "numpy.random",
    "pygments",
    "rich.markdown",
    "rich.syntax",
    "textual.widgets._data_table",
    "textual.widgets._markdown",
    "textual.widgets._text_area",
    "tree_sitter",
}
"""what comes with another screen, a key, a dialog or the sentences that follow is read then, not on
the way to the first frame"""


@pytest.mark.parametrize(
    ("said", "not_loaded"),
    [
        (
            "from ckptcost.first.cli.main import main; main(['--help'])",
            {"textual", "rich", "numpy", "pandas", "pydantic"},
        ),
        (
            "from ckptcost.first.cli.main import main; main(['model'])",
            {"textual", "rich", "pandas"},
        ),
        (
            "from ckptcost.first.cli.main import main; main(['doctor', '--meters', 'simulated'])",
            {"textual", "rich", "pandas"},
        ),
        (
            "import ckptcost.first.tui.screens.model_view, ckptcost.first.tui.live.sources",
            {"textual", "rich", "pandas"},
        ),
        (
            "import ckptcost.first.tui.draw.picture, ckptcost.first.tui.draw.stack",
            {"textual", "rich", "numpy"},
        ),
        ("import ckptcost.first.tui.app", {"pandas", "torch", "textual_serve", "aiohttp"}),
        (
            FIRST_FRAME,
            {
                "pandas",
                "torch",
                "pydantic",
                "textual_serve",
                "aiohttp",
                *NOT_SEEN_FIRST,
                *OTHER_SCREENS,
            },
        ),
    ],
    ids=["--help", "model", "doctor", "views", "drawing", "the screen", "its first frame"],
)
def test_what_is_heavy_is_loaded_only_where_it_is_used(said, not_loaded):
    """The contracts see imports at the top of modules; this sees what is really loaded."""
    code = (
        f"import sys, io; out, sys.stdout = sys.stdout, io.StringIO()\n{said}\nprint(*sys.modules,"
        " file=out)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert set(done.stdout.split()) & not_loaded == set()
