"""A store under a URL: an object store, or whatever else fsspec has a name for. fsspec is imported
here alone, and only for such a URL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ckptcost.errors import InputError, MeterUnavailable, OutputError
from ckptcost.fleet.kept.places import Thing


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
                f"cannot be listed ({_said(error)})", where=self._where(folder)
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
            raise InputError(f"cannot be read ({_said(error)})", where=self._where(path)) from None

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
                f"{self._where(path)}: could not be written ({_said(error)})"
            ) from None

    def remove(self, path: str) -> str:
        try:
            self._files.rm_file(self._at(path))
        except FileNotFoundError:
            pass
        except Exception as error:
            return str(_said(error))
        return ""

    def sweep(self, folders: Iterator[str]) -> int:
        """Half an upload has no name there."""
        return 0


def _said(error: Exception) -> Any:
    """Drivers of stores raise what they like."""
    return getattr(error, "strerror", None) or error or type(error).__name__
