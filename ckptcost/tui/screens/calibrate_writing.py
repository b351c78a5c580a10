"""Writing a calibration into the user's catalogue, exactly as `ckptcost calibrate --as` does, and
taking it back."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ckptcost.errors import InputError, OutputError
from ckptcost.jobs.calibrate_files import checked_id, checked_name, free, install, texts_of
from ckptcost.report.studies.runs import shown
from ckptcost.tui.screens.calibrate_fit import Calibrated


class Written(NamedTuple):
    """What was written, so that it can be taken back as long as nobody changed it."""

    id: str
    kinds: tuple[str, ...]
    texts: tuple[tuple[Path, str], ...]

    @property
    def text(self) -> str:
        return f"Written: {', '.join(shown(path) for path, _ in self.texts)}."


def refused(fitted: Calibrated, id_: str, title: str = "") -> str:
    """Why it cannot be written under this name; empty where it can."""
    try:
        checked_name(title)
        checked_id(id_)
        if not fitted.kinds:
            return (
                "these runs give neither a write rate nor the watts of a GPU: there is nothing to"
                " write"
            )
        free(id_, fitted.kinds)
    except InputError as error:
        return (
            str(error.spelled(lambda name: "" if name == "entry" else f"--{name}"))
            .replace("replace it with --force", "delete the file")
            .replace(", or hide it with --force", "")
        )
    except OSError as error:
        return f"the catalogue cannot be looked into: {error.strerror or error}"
    return ""


def write(fitted: Calibrated, id_: str, title: str = "") -> Written:
    """The same files with the same content as the command line's. Raises InputError and
    OutputError, and then nothing is there."""
    if said := refused(fitted, id_, title):
        raise InputError(said)
    named = fitted.named(checked_id(id_), checked_name(title))
    texts = texts_of(named)
    paths = install(named)
    return Written(id_, tuple(texts), tuple(zip(paths, texts.values(), strict=True)))


def undo(written: Written) -> str:
    """Remove what was written; what was done, in a sentence. Raises OutputError where somebody
    changed it meanwhile."""
    for path, text in written.texts:
        try:
            if path.read_text("utf-8") != text:
                raise OutputError(
                    f"{shown(path)}: was changed since; remove it by hand if you mean it"
                )
        except FileNotFoundError:
            continue
        except OSError as error:
            raise OutputError(f"{shown(path)}: {error.strerror or error}") from None
    for path, _ in written.texts:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise OutputError(
                f"{shown(path)}: could not be removed ({error.strerror or error})"
            ) from None
    return (
        f"{written.id} is taken back: its {' and '.join(written.kinds)}"
        f" file{'s are' if len(written.kinds) > 1 else ' is'} removed."
    )
