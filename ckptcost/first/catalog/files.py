"""Where the shipped models/ and data/ are, and reading one file of them safely."""

from __future__ import annotations

import csv
import io
import os
import stat
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ckptcost.first.errors import InputError, UnknownName, brief

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

MOST_BYTES = 1_000_000
"""largest TOML or CSV that is read; a scenario is a few hundred bytes and the grid table 60 kB"""


def shipped_folder() -> Traversable:
    """The folder that holds models/ and data/: $CKPTCOST_HOME, else the wheel's, else the
    checkout's."""
    home = os.environ.get("CKPTCOST_HOME")
    if home:
        root = Path(home)
        if not (root / "models").is_dir() or not (root / "data").is_dir():
            raise InputError(
                "holds no models/ and data/",
                where=f"CKPTCOST_HOME={home}",
                remedy="unset it to use the shipped catalogue",
            )
        return root
    package = Path(__file__).parents[2]
    checkout = package.parent
    if (checkout / "models" / "tiers").is_dir() and (checkout / "pyproject.toml").is_file():
        return checkout
    if (package / "_bundled").is_dir():
        return package / "_bundled"
    # a zipped wheel on sys.path; importlib.resources costs 15 ms, so only where it is needed
    from importlib import resources

    return resources.files("ckptcost") / "_bundled"


def overlay() -> Path:
    """The user's own folder, which lies over the shipped one: $CKPTCOST_USER, else the platform's
    config folder."""
    if own := os.environ.get("CKPTCOST_USER"):
        return Path(own)
    try:
        home = Path.home()
        home.is_dir()
    except (
        RuntimeError,
        PermissionError,
    ):  # a container user without a home, or with somebody else's, has no folder of its own
        home = Path(os.devnull)
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "ckptcost"
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else home / ".config") / "ckptcost"


def text_of(file: Traversable, shown: str, most_bytes: int = MOST_BYTES, start: str = "") -> str:
    """The file's text; every way it can go wrong becomes one message that names it."""
    raw = _bytes_of(file, shown, most_bytes)
    if len(raw) > most_bytes:
        raise _too_large(shown, most_bytes)
    if not raw.strip():
        raise InputError("is empty", where=shown, remedy=start)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(
            "is not text in UTF-8", where=shown, remedy="is it the right file?"
        ) from None


def _bytes_of(file: Traversable, shown: str, most_bytes: int) -> bytes:
    """All of a file, and of one that is too large a byte too many."""
    try:
        if file.is_dir():
            raise InputError("is a folder", where=shown, remedy="name a file in it")
        if isinstance(file, Path):
            _refuse_unread(file, shown, most_bytes)
        with file.open("rb") as stream:
            return stream.read(most_bytes + 1)
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError("no such file", where=shown) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InputError(
            f"cannot be read ({reason})", where=shown, remedy="check its name and permissions"
        ) from None


def _refuse_unread(file: Path, shown: str, most_bytes: int) -> None:
    """What is too large, and what may never end or begin: a pipe that nobody writes to, a device.
    The shell's own pipes are read: `<(...)` has somebody who writes."""
    if shown == "/dev/stdin" or shown.startswith("/dev/fd/"):
        return
    about = file.stat()
    if not stat.S_ISREG(about.st_mode):
        raise InputError("is a pipe or a device", where=shown, remedy="name a file")
    if about.st_size > most_bytes:
        raise _too_large(shown, most_bytes)


def _too_large(shown: str, most_bytes: int) -> InputError:
    limit = f"is larger than {most_bytes // 1_000_000} MB"
    return InputError(limit, where=shown, remedy="this is not such a file")


_DEEPEST = 30


def toml_of(file: Traversable, shown: str, start: str = "") -> dict[str, Any]:
    """A TOML file."""
    return toml_in(text_of(file, shown, start=start), shown)


def toml_in(text: str, shown: str) -> dict[str, Any]:
    """The text of a TOML file; a dotted key of a thousand parts is refused before the parser spends
    its memory on it."""
    if any(line.partition("=")[0].count(".") > _DEEPEST for line in text.splitlines()):
        raise InputError(
            "is not valid TOML here: a key is nested too deep",
            where=shown,
            remedy="a key here is section.key",
        )
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise InputError(
            "is not valid TOML: nested too deep", where=shown, remedy="a key here is section.key"
        ) from None
    except ValueError as error:
        raise InputError(f"is not valid TOML: {brief(str(error), 200)}", where=shown) from None


def tables_in(raw: dict[str, Any], name: str, remedy: str) -> list[dict[str, Any]]:
    """The [[name]] tables of a document that holds nothing else."""
    require_known(raw, (name,), "key")
    tables = raw.get(name)
    if not (tables and isinstance(tables, list) and all(isinstance(t, dict) for t in tables)):
        raise InputError(f"holds no [[{name}]] tables", remedy=remedy)
    return tables


def require_known(table: dict[str, Any], names: tuple[str, ...], what: str) -> None:
    """No key but these; `what` one is called."""
    for name in table:
        if name not in names:
            raise UnknownName(what, str(name), names)


def require_text(table: dict[str, Any], key: str) -> str:
    """The text under a key, which has to be there."""
    text = table.get(key)
    if not isinstance(text, str) or not text.strip():
        raise InputError("is missing", key=key)
    return text


def csv_of(file: Traversable, shown: str, needed: tuple[str, ...]) -> list[dict[str, str]]:
    """Rows of a table that has at least the columns `needed`."""
    reader = csv.DictReader(io.StringIO(text_of(file, shown), newline=""))
    if missing := [name for name in needed if name not in (reader.fieldnames or ())]:
        raise InputError(
            f"has no column {missing[0]!r}",
            where=shown,
            key="line 1",
            remedy="columns: " + ", ".join(needed),
        )
    try:
        rows = list(reader)
    except csv.Error as error:
        raise InputError(
            f"is no table ({error})", where=shown, key=f"line {reader.line_num}"
        ) from None
    for number, row in enumerate(rows, start=2):
        if None in row or None in row.values():
            raise InputError(
                "has more or fewer cells than the header", where=shown, key=f"line {number}"
            )
    return rows


def names_in(folder: Traversable, shown: str) -> list[str]:
    """Ids of the TOML files in a folder; an absent folder has none, an unreadable one is an
    error."""
    try:
        if not folder.is_dir():
            return []
        return sorted(
            item.name.removesuffix(".toml")
            for item in folder.iterdir()
            if item.name.endswith(".toml")
        )
    except OSError as error:
        raise InputError(
            f"cannot be listed ({error.strerror or error})",
            where=shown,
            remedy="check its permissions",
        ) from None
