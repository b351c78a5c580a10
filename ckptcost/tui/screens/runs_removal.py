"""Deleting a run: only its own files, only of folders among the user's runs, never through a
link."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NamedTuple

from ckptcost.errors import InputError, OutputError
from ckptcost.present.amounts import count, size
from ckptcost.report.studies.runs import shown
from ckptcost.runs import store
from ckptcost.tui.screens.runs_entries import Entry


class Removal(NamedTuple):
    """What would be deleted; nothing is yet."""

    folder: Path
    files: tuple[str, ...]
    bytes: int
    others: int
    """entries of the folder that are not this run's and stay"""

    @property
    def text(self) -> str:
        """For the question."""
        what = (
            f"{count(len(self.files))} file{'' if len(self.files) == 1 else 's'},"
            f" {size(self.bytes)}, of {shown(self.folder)}"
        )
        if self.others:
            return (
                f"{what}.\n{count(self.others)} other thing{'' if self.others == 1 else 's'} in the"
                " folder stay, and so does the folder."
            )
        return f"{what}, and the folder itself.\nThis cannot be undone."


def removal_of(entry: Entry) -> Removal:
    """Raises InputError with the reason where a run is not ours to delete."""
    path, home = entry.kept.path, store.home()
    by_hand = "remove it by hand if you mean it"
    if entry.goes_on:
        raise InputError(
            "is still being recorded", where=entry.summary.name, remedy="stop the recorder first"
        )
    if path.is_symlink():
        raise InputError(
            "is a link", where=str(path), remedy=f"what it leads to stays where it is; {by_hand}"
        )
    if not path.is_dir():
        raise InputError(
            "is a single file that was opened by its name", where=str(path), remedy=by_hand
        )
    if os.path.realpath(path.parent) != os.path.realpath(home) or path.resolve() == home.resolve():
        raise InputError(
            "is not among your runs",
            where=shown(path),
            remedy=f"only folders in {shown(home)} are deleted here; {by_hand}",
        )
    files = tuple(sorted(head.file.name for head in entry.kept.heads if not head.file.is_symlink()))
    if not files:
        raise InputError("holds no file of this run", where=str(path), remedy=by_hand)
    bytes_ = sum(entry.summary.sizes.get(name, 0) for name in files)
    return Removal(path, files, bytes_, len(set(os.listdir(path)) - set(files)))


def remove(removal: Removal) -> str:
    """Do it; what was done, in a sentence. The folder is held open, so that nobody can put another
    in its place meanwhile."""
    gone = 0
    try:
        folder = os.open(removal.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            for name in removal.files:
                if stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                    os.unlink(name, dir_fd=folder)
                    gone += 1
            empty = not os.listdir(folder)
        finally:
            os.close(folder)
        if empty:
            removal.folder.rmdir()
    except OSError as error:
        raise OutputError(
            f"{shown(removal.folder)}: {count(gone)} of {count(len(removal.files))} files deleted,"
            f" then: {error.strerror}"
        ) from None
    where = shown(removal.folder)
    return (
        f"Deleted {where}."
        if empty
        else f"Deleted {count(gone)} files of {where}; the folder holds other things and stays."
    )
