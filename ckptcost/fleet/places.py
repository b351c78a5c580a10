"""Where a store's files are: in a folder of this machine, or elsewhere. Each lists,
reads, and puts whole files."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, Protocol

from ckptcost.catalog.writing import PART, swept
from ckptcost.errors import InputError, MeterUnavailable, OutputError

_TRIES: Final = 5


class Thing(NamedTuple):
    """In a folder. `bytes` of a file; `kind`: file, folder, or something else."""

    name: str
    kind: str
    bytes: int


class StorePlace(Protocol):
    def things(self, folder: str) -> Iterator[Thing]:
        """Those with a dot first are left out. Nothing where there is no such folder; raises
        InputError where it cannot be looked into."""

    def is_folder(self, path: str) -> bool: ...

    def read(self, path: str) -> bytes:
        """Raises FileNotFoundError, or InputError for all else."""

    def put(self, path: str, data: bytes) -> None:
        """Whole or not at all; its folders are made. Raises OutputError."""

    def remove(self, path: str) -> str:
        """Why it could not be; empty where it is gone."""

    def sweep(self, folders: Iterator[str]) -> int:
        """Takes away what killed writers left."""


class Folder:
    """A file is written under a hidden name, synced, and renamed. The lock on it dies with its
    writer."""

    def __init__(self, root: str) -> None:
        self.root = root

    def _at(self, path: str) -> str:
        return os.path.join(self.root, path) if path else self.root

    def is_folder(self, path: str) -> bool:
        return os.path.isdir(self._at(path))

    def things(self, folder: str) -> Iterator[Thing]:
        try:
            with os.scandir(self._at(folder)) as entries:
                for entry in entries:
                    if not entry.name.startswith("."):
                        with contextlib.suppress(
                            FileNotFoundError
                        ):  # gone meanwhile, unless it is a link to nowhere
                            yield _thing(entry)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise InputError(
                f"cannot be listed ({error.strerror})", where=self._at(folder)
            ) from None

    def read(self, path: str) -> bytes:
        try:
            if not os.path.isfile(self._at(path)) and os.path.exists(self._at(path)):
                raise InputError("is no file", where=self._at(path))  # a pipe would be waited for
            with open(self._at(path), "rb") as file:
                return file.read()
        except FileNotFoundError:
            raise
        except OSError as error:
            raise InputError(f"cannot be read ({error.strerror})", where=self._at(path)) from None

    def put(self, path: str, data: bytes) -> None:
        target = self._at(path)
        folder, name = os.path.split(target)
        for tries in range(_TRIES):
            try:
                self._make(folder)
                self._refuse_links(folder)
                self._write(folder, name, data)
            except (
                FileNotFoundError
            ) as error:  # a sweep took it before it was locked, or somebody the folder
                if tries == _TRIES - 1:
                    raise OutputError(
                        f"{target}: could not be written ({error.strerror})"
                    ) from None
            except OSError as error:
                raise OutputError(f"{target}: could not be written ({error.strerror})") from None
            else:
                return

    def remove(self, path: str) -> str:
        try:
            os.unlink(self._at(path))
        except FileNotFoundError:
            pass
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def _refuse_links(self, folder: str) -> None:
        """Whoever may write into a store must not be able to send others' files elsewhere."""
        inside = os.path.realpath(self.root)
        if os.path.commonpath([os.path.realpath(folder), inside]) != inside:
            raise OutputError(f"{folder}: a link leads out of the store, nothing was written")

    def _mode(self) -> int:
        """The store's own: who may read and write in it is decided once, where it is made."""
        return stat.S_IMODE(os.stat(self.root).st_mode)

    def _make(self, folder: str) -> None:
        """New folders last only once the one above is synced."""
        new = []
        above = folder
        while not os.path.isdir(above):
            new.append(above)
            above = os.path.dirname(above)
        if new:
            os.makedirs(folder, exist_ok=True)
            for made in new:
                if made != self.root:
                    with contextlib.suppress(OSError):  # somebody else made it first
                        os.chmod(made, self._mode())
                _sync(os.path.dirname(made))

    def _write(self, folder: str, name: str, data: bytes) -> None:
        part = os.path.join(folder, f".{name}.{secrets.token_hex(4)}{PART}")
        fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            with contextlib.suppress(
                OSError
            ):  # a file system without locks: what a kill leaves goes when it is old
                fcntl.flock(fd, fcntl.LOCK_EX)
            with contextlib.suppress(OSError):  # a file system without modes
                os.fchmod(fd, self._mode() & 0o666)
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            os.fsync(fd)
            os.rename(part, os.path.join(folder, name))
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(part)
            raise
        finally:
            os.close(fd)
        _sync(folder)

    def sweep(self, folders: Iterator[str]) -> int:
        gone = 0
        for folder in folders:
            with contextlib.suppress(OSError), os.scandir(self._at(folder)) as entries:
                for entry in entries:
                    if (
                        entry.name.startswith(".")
                        and entry.name.endswith(PART)
                        and entry.is_file(follow_symlinks=False)
                    ):
                        gone += swept(entry.path)
        return gone


def _thing(entry: os.DirEntry[str]) -> Thing:
    """A link is what it leads to."""
    try:
        if entry.is_dir():
            return Thing(entry.name, "folder", 0)
        found = entry.stat()
    except FileNotFoundError:
        if not entry.is_symlink():
            raise
        return Thing(entry.name, "other", 0)
    except OSError:  # a link to itself
        return Thing(entry.name, "other", 0)
    return (
        Thing(entry.name, "file", found.st_size)
        if stat.S_ISREG(found.st_mode)
        else Thing(entry.name, "other", 0)
    )


def _sync(folder: str) -> None:
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:  # may be written to, not looked into
        return
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system that syncs no folders
            raise
    finally:
        os.close(fd)


# A store under a URL: an object store, or whatever else fsspec has a name for. fsspec is imported
# here alone, and only for such a URL.


class Remote:
    """An object store appears whole or not at all by itself. Of others, as sftp, a reader may find
    half a file, which its seal tells."""

    def __init__(self, url: str) -> None:
        self.url = url
        try:
            import fsspec  # type: ignore[import-not-found,import-untyped,unused-ignore]

            self._files, self._root = fsspec.core.url_to_fs(url)
        except ImportError as error:
            remedy = (
                "pip install 'ckptcost[fleet]'"
                if "fsspec" in str(error)
                else "install that driver beside 'ckptcost[fleet]'"
            )
            raise MeterUnavailable(
                f"{url} is reached by fsspec, which says: {error}", remedy
            ) from None
        except Exception as error:
            raise InputError(f"is no place that fsspec knows ({error})", where=url) from None
        self._root = self._root.rstrip("/")

    def __reduce__(self) -> tuple[type[Remote], tuple[str]]:
        return type(self), (self.url,)

    def _at(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root or "/"

    def _where(self, path: str) -> str:
        return f"{self.url.rstrip('/')}/{path}" if path else self.url

    def is_folder(self, path: str) -> bool:
        return any(True for _ in self.things(path))

    def things(self, folder: str) -> Iterator[Thing]:
        at = self._at(folder)
        try:
            self._files.invalidate_cache(at)
            found = self._files.ls(at, detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return
        except Exception as error:
            raise InputError(
                f"cannot be listed ({_error_words(error)})", where=self._where(folder)
            ) from None
        for entry in found:
            name = entry["name"].rstrip("/").rpartition("/")[2]
            if (
                name and not name.startswith(".") and entry["name"].strip("/") != at.strip("/")
            ):  # some name the folder itself
                kind = {"file": "file", "directory": "folder"}.get(entry["type"], "other")
                yield Thing(name, kind, int(entry.get("size") or 0))

    def read(self, path: str) -> bytes:
        try:
            return bytes(self._files.cat_file(self._at(path)))
        except FileNotFoundError:
            raise
        except Exception as error:
            raise InputError(
                f"cannot be read ({_error_words(error)})", where=self._where(path)
            ) from None

    def put(self, path: str, data: bytes) -> None:
        at = self._at(path)
        try:
            try:
                self._files.pipe_file(at, data)
            except FileNotFoundError:  # where folders are more than names
                self._files.makedirs(at.rpartition("/")[0], exist_ok=True)
                self._files.pipe_file(at, data)
        except Exception as error:
            raise OutputError(
                f"{self._where(path)}: could not be written ({_error_words(error)})"
            ) from None

    def remove(self, path: str) -> str:
        try:
            self._files.rm_file(self._at(path))
        except FileNotFoundError:
            pass
        except Exception as error:
            return str(_error_words(error))
        return ""

    def sweep(self, folders: Iterator[str]) -> int:
        """Half an upload has no name there."""
        return 0


def _error_words(error: Exception) -> Any:
    """Drivers of stores raise what they like."""
    return getattr(error, "strerror", None) or error or type(error).__name__
