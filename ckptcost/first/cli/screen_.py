"""`ckptcost screen`, which is also what `ckptcost` alone opens on a terminal."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ckptcost.first.tui.desk import Desk
    from ckptcost.first.tui.state import Remembered

EPILOG = """\
examples:
  ckptcost                              # the same as ckptcost screen
  ckptcost --demo                       # the live screen on a made-up machine
  ckptcost screen -s job.toml --set cluster.gpus=4096 --go interval
  ckptcost --serve                      # in a browser on this machine
It goes on where it was left; -s or --fresh begins anew.
exit code 2: the scenario is wrong; 4: no terminal; 5: --serve without its
extra
"""
PORT = 8642
MODES = ("model", "tiers", "interval", "live", "probe", "runs", "audit", "report", "doctor")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-s", "--scenario", metavar="FILE|PRESET", help="begin with this scenario")
    parser.add_argument(
        "--interval", metavar="TIME", help='training time between saves, e.g. "30 min"'
    )
    parser.add_argument(
        "--mtbf",
        action="append",
        dest="changes",
        default=[],
        type="failures.mtbf={}".format,
        metavar="TIME",
        help='mean time between failures of the whole job, e.g. "6 h"; instead of rates',
    )
    parser.add_argument(
        "--set",
        action="append",
        dest="changes",
        default=[],
        metavar="PATH=VALUE",
        help="change one input; may repeat",
    )
    parser.add_argument(
        "--go", choices=MODES, metavar="SCREEN", help=f"begin there: {', '.join(MODES)}"
    )
    parser.add_argument(
        "--meters",
        default="auto",
        metavar="WHICH",
        help="what the live screen reads (default: auto; simulated: a made-up machine)",
    )
    parser.add_argument(
        "--demo",
        action="store_true",
        help="the live screen on a made-up machine with 8 GPUs, running",
    )
    parser.add_argument("--plain", action="store_true", help="letters only: no braille, no boxes")
    parser.add_argument("--fresh", action="store_true", help="forget where it was left")
    parser.add_argument(
        "--serve",
        nargs="?",
        type=int,
        const=PORT,
        metavar="PORT",
        help=f"show it in a browser on this machine (default port: {PORT})",
    )


def run(options: argparse.Namespace) -> int:
    """What is made on the way to the first frame, a hundred thousand objects, stays to the end:
    looking through them for garbage costs a twentieth of that way. The application takes the
    collector up again after the frame, and spares it those objects for good.
    """
    gc.disable()
    try:
        _numpy_alone()
        return _run(options)
    finally:
        gc.enable()


def _numpy_alone() -> None:
    """Numpy's linear algebra starts a thread for every core, and each of them spins for a while,
    beside the start or in its way. The screen multiplies no large matrices. What it starts itself
    may: for them nothing is said."""
    name = "OPENBLAS_NUM_THREADS"
    if name not in os.environ:
        os.environ[name] = "1"
        import numpy  # noqa: F401

        del os.environ[name]


def _run(options: argparse.Namespace) -> int:
    from ckptcost.first.tui import state

    remembered = state.Remembered(welcomed=True) if options.fresh else state.load()
    desk = _desk(options, remembered)
    if options.serve is not None:
        return _serve(options)
    _check_terminal()
    from ckptcost.first.catalog.files import overlay
    from ckptcost.first.tui import preferences
    from ckptcost.first.tui.app import CkptcostApp

    start = options.go or ("live" if options.demo else remembered.mode)
    app = CkptcostApp(
        desk,
        start=start,
        meters="simulated" if options.demo else options.meters,
        plain=options.plain or _lacks_glyphs(),
        remembered=remembered,
        welcome=not remembered.welcomed and not options.demo,
        demo=options.demo,
        look=True,
        preferences=preferences.load(overlay()),
    )
    app.run()
    return app.return_code or 0


def _check_terminal() -> None:
    from ckptcost.first.errors import OutputError

    if not _in_browser():
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise OutputError("the screen needs a terminal; the commands do not: ckptcost --help")
        if not sys.stderr.isatty():
            raise OutputError(
                "the screen is drawn on stderr, which is no terminal here: leave off the 2>"
            )
    if os.environ.get("TERM") == "dumb":
        raise OutputError(
            "a terminal that calls itself dumb (TERM) shows no screen; the commands do not need"
            " one: ckptcost --help"
        )


def _desk(options: argparse.Namespace, remembered: Remembered) -> Desk:
    """The scenario that was asked for, else the one that was left; one that cannot be read any more
    is left too."""
    from ckptcost.first.errors import InputError
    from ckptcost.first.tui.desk import Desk

    edits = dict(_split(text) for text in options.changes)
    if options.interval is not None:
        edits["policy.interval"] = options.interval
    if options.scenario is not None or edits or options.fresh:
        desk = Desk(base=options.scenario) if options.scenario is not None else Desk()
        for path, text in edits.items():
            desk = desk.edited(path, text)
        desk.resolved()
        return desk
    left = Desk(
        base=remembered.base,
        edits=remembered.edits,
        tiers=remembered.tiers,
        baseline=remembered.baseline,
        metric=remembered.metric,
    )
    try:
        for tier in left.tiers_shown():
            left.resolved(tier)
    except (InputError, OSError):
        return Desk()
    return left


def _split(text: str) -> tuple[str, str]:
    from ckptcost.first.errors import InputError, brief

    path, equals, value = text.partition("=")
    if not equals:
        raise InputError(
            f"{brief(text)} is not path=value",
            where="--set",
            remedy="write e.g. --set cluster.gpus=1024",
        )
    return path.strip(), value.strip()


def _lacks_glyphs() -> bool:
    """The console's font has no braille, and a charset other than UTF-8 no boxes either."""
    return (
        os.environ.get("TERM") == "linux"
        or "utf" not in (sys.stdout.encoding or "").lower()
        or not _says_utf8()
    )


def _says_utf8() -> bool:
    """The locale, as far as it says anything; Python itself writes UTF-8 whatever it says."""
    said = next(
        (value for name in ("LC_ALL", "LC_CTYPE", "LANG") if (value := os.environ.get(name))), ""
    )
    return said == "" or "utf" in said.lower()


def _in_browser() -> bool:
    """Started by the server, which is no terminal."""
    return bool(os.environ.get("TEXTUAL_DRIVER"))


def _serve(options: argparse.Namespace) -> int:
    from ckptcost.first.errors import InputError, MeterUnavailable

    gc.enable()  # the server goes on for hours, and is no screen itself
    if not 1024 <= options.serve <= 65535:
        raise InputError("expected a port from 1024 to 65535", where="--serve")
    try:
        from ckptcost.first.tui.serving import serve
    except ImportError as error:
        raise MeterUnavailable(
            f"a browser's screen needs the extra `serve` ({error})", "pip install 'ckptcost[serve]'"
        ) from None
    words = [
        word
        for word in options.words
        if not word.startswith("--serve") and word != str(options.serve)
    ]
    serve(words if words[:1] == ["screen"] else ["screen", *words], options.serve)
    return 0
